"""Optuna's distributions and values in ConfigSpace's language, and the way back.

================================  ==============================================================
Optuna                            ConfigSpace
================================  ==============================================================
``CategoricalDistribution``       categorical, or ordinal where an order was given
``FloatDistribution``,            a range
``IntDistribution``
the same in steps                 an ordinal of at most 1000 values, else a range; in a
                                  ``UnionSpace`` a range that has these steps only
one value                         a constant
================================  ==============================================================
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
from ConfigSpace import ConfigurationSpace
from ConfigSpace.hyperparameters import (
    Constant,
    FloatHyperparameter,
    Hyperparameter,
    IntegerHyperparameter,
    OrdinalHyperparameter,
)
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.trial import FrozenTrial, TrialState

from automl_plugins.records.task_record import TaskRecord
from automl_plugins.spaces import conditions
from automl_plugins.spaces.choices import categorical, ordinal
from automl_plugins.spaces.conditions import Rule, as_condition
from automl_plugins.spaces.ranges import float_range, integer_range, stepped_range
from automl_plugins.spaces.values import ABSENT, choices_of, find, index_of, is_near, to_number
from automl_plugins.spaces.vector_space import VectorSpace

from . import _private
from ._steps import SteppedValues, steps_of

FloatArray = npt.NDArray[np.float64]
Distributions = Mapping[str, BaseDistribution]

_MOST_LISTED = 1000  # stepped parameters with more values count as continuous


# --- distributions as a space ----------------------------------------------------------------


def read_space(search_space: Any) -> tuple[ConfigurationSpace, dict[str, BaseDistribution]]:
    """A search space, distributions by name or a ``ConfigurationSpace``, in both languages.

    Raises:
        TypeError: For something else.
    """
    if isinstance(search_space, ConfigurationSpace):
        return search_space, distributions_of(search_space)
    if not isinstance(search_space, Mapping) or not all(
        isinstance(name, str) and isinstance(distribution, BaseDistribution)
        for name, distribution in search_space.items()
    ):
        raise TypeError(
            "search_space must be Optuna's distributions by name, or a ConfigurationSpace, got"
            f" {search_space!r}."
        )
    space = ConfigurationSpace()
    space.add([hyperparameter_of(name, d) for name, d in search_space.items()])
    return space, dict(search_space)


def space_of_trials(trials: Sequence[FrozenTrial]) -> ConfigurationSpace | None:
    """The union of all parameters, conditions inferred; None where there is no parameter."""
    distributions: dict[str, BaseDistribution] = {}
    for trial in trials:
        distributions.update(trial.distributions)
    if not distributions:
        return None
    space, _ = read_space(distributions)
    complete = [t for t in trials if t.state == TrialState.COMPLETE]
    values = {
        name: np.array(
            [
                d.to_internal_repr(t.params[name]) if name in t.params else math.nan
                for t in complete
            ],
            dtype=np.float64,
        )
        for name, d in distributions.items()
    }
    for rule in infer_rules(values, distributions):
        space.add(as_condition(space, rule, _parent_values(rule, distributions[rule.parent])))
    return space


def infer_rules(values: Mapping[str, FloatArray], distributions: Distributions) -> list[Rule]:
    """Conditions that explain which parameters complete trials asked for.

    Args:
        values: Internal values (n,) by name, NaN where a trial did not ask.
        distributions: Distribution of each name.
    """
    return conditions.infer_rules(
        values,
        categories=[n for n in values if isinstance(distributions[n], CategoricalDistribution)],
        integers=[n for n in values if isinstance(distributions[n], IntDistribution)],
    )


def _parent_values(rule: Rule, parent: BaseDistribution) -> list[Any]:
    if isinstance(parent, CategoricalDistribution):
        return [parent.choices[int(i)] for i in rule.values]
    return [int(v) for v in rule.values]


def hyperparameter_of(name: str, distribution: BaseDistribution) -> Hyperparameter[Any, Any]:
    """The hyperparameter of a distribution."""
    if isinstance(distribution, CategoricalDistribution):
        if distribution.single():
            return Constant(name, distribution.choices[0])
        return categorical(name, distribution.choices)
    assert isinstance(distribution, FloatDistribution | IntDistribution)
    if distribution.single():
        return Constant(name, distribution.low)
    if (steps := _listed_steps(distribution)) is not None:
        values = [_listed_value(steps, i) for i in range(steps.n)]
        return Constant(name, values[0]) if steps.n == 1 else OrdinalHyperparameter(name, values)
    return _range(name, distribution)


def _range(
    name: str, distribution: FloatDistribution | IntDistribution
) -> FloatHyperparameter | IntegerHyperparameter:
    if isinstance(distribution, IntDistribution):
        return integer_range(name, distribution.low, distribution.high, log=distribution.log)
    return float_range(name, distribution.low, distribution.high, log=distribution.log)


def _listed_steps(distribution: BaseDistribution) -> SteppedValues | None:
    """The values of a parameter with steps, None if it counts as a range."""
    steps = steps_of(distribution)
    if steps is None or steps.n > _MOST_LISTED:
        return None
    if isinstance(distribution, IntDistribution) and distribution.step == 1:
        return None if steps.listed is None else steps
    return steps


def _listed_value(steps: SteppedValues, i: int) -> Any:
    return steps.value(i) if steps.listed is not None else steps.low + i * steps.step


def snap(distribution: BaseDistribution, value: Any) -> Any:
    """A value as ``space_of_trials`` has it: 0.3 is 0.30000000000000004 in steps of 0.1."""
    if isinstance(distribution, FloatDistribution):
        steps = _listed_steps(distribution)
        if steps is not None:
            return _listed_value(steps, round(steps.steps.index(np.array([value]))[0]))
    return value


# --- a space as distributions ----------------------------------------------------------------


def distributions_of(space: ConfigurationSpace) -> dict[str, BaseDistribution]:
    """Distribution of each hyperparameter; normal and beta ones are uniform on their bounds."""
    return {name: _distribution(space[name]) for name in space.at}


def _distribution(hyperparameter: Hyperparameter[Any, Any]) -> BaseDistribution:
    if isinstance(hyperparameter, IntegerHyperparameter):
        low, high = int(hyperparameter.lower), int(hyperparameter.upper)
        return IntDistribution(low, high, log=bool(hyperparameter.log))
    if isinstance(hyperparameter, FloatHyperparameter):
        bounds = float(hyperparameter.lower), float(hyperparameter.upper)
        return FloatDistribution(*bounds, log=bool(hyperparameter.log))
    values = choices_of(hyperparameter) or []
    if isinstance(hyperparameter, Constant):
        if type(values[0]) is int:
            return IntDistribution(values[0], values[0])
        if type(values[0]) is float:
            return FloatDistribution(values[0], values[0])
    if isinstance(hyperparameter, OrdinalHyperparameter) and (found := _stepped(values)):
        return found
    return CategoricalDistribution(values)


def _stepped(values: list[Any]) -> BaseDistribution | None:
    """The distribution of evenly spaced, ascending numbers; None for anything else."""
    if len(values) < 2 or any(type(value) not in (int, float) for value in values):
        return None
    gaps = np.diff(values)
    step = gaps[0]
    if step <= 0 or not np.allclose(gaps, step, rtol=1e-9, atol=0.0):
        return None
    if all(type(value) is int for value in values):
        return IntDistribution(values[0], values[-1], step=int(step))
    # 0.1 + 2 * 0.1 is 0.30000000000000004: the numbers that were meant have fewer digits.
    mean = (values[-1] - values[0]) / (len(values) - 1)
    low, high, step = (float(f"{number:.12g}") for number in (values[0], values[-1], mean))
    return FloatDistribution(low, high, step=step)


# --- values ----------------------------------------------------------------------------------


def value_in(distribution: BaseDistribution, value: Any, *, nearest: bool = False) -> Any:
    """The value of a distribution that a recorded one stands for, of a choice the very object.

    Args:
        distribution: The distribution.
        value: What was recorded.
        nearest: Whether a number that the distribution lacks is moved to the nearest it has;
            else only what missed a step, or an end of the range, by a rounding.

    Returns:
        The value; ``ABSENT`` if it stands for none.
    """
    if isinstance(distribution, CategoricalDistribution):
        index = find(distribution.choices, value)
        return ABSENT if index is None else distribution.choices[index]
    assert isinstance(distribution, FloatDistribution | IntDistribution)
    number = value if type(value) is int else to_number(value)
    if math.isnan(number):
        return ABSENT
    is_whole = isinstance(distribution, IntDistribution)
    if (not is_whole or number == int(number)) and _has(distribution, number):
        return int(number) if is_whole else float(number)
    steps = steps_of(distribution)
    low, high = distribution.low, distribution.high
    moved = min(max(number, low), high) if steps is None else steps.nearest(number)
    if nearest:
        return round(moved) if is_whole else float(moved)
    near = math.isclose(moved, number) if steps is not None else is_near(number, low, high)
    return float(moved) if near and not is_whole else ABSENT


def _has(distribution: FloatDistribution | IntDistribution, number: float) -> bool:
    if distribution.log and number <= 0:
        return False
    return _private.contains(distribution, float(number))


def drop_foreign_runs(record: TaskRecord, distributions: Distributions) -> TaskRecord:
    """The runs with the parameters that have a distribution, without runs that leave one.

    Raises:
        ValueError: If there are runs, but none has one of the parameters.
    """
    names = {name for values in record.configurations for name in values}
    if names and names.isdisjoint(distributions):
        raise ValueError(
            f"The runs of {record.name!r} and the distributions share no parameter: the runs have"
            f" {', '.join(sorted(names))}; the distributions are of {', '.join(distributions)}."
        )
    configurations, kept = [], []
    for i, given in enumerate(record.configurations):
        known = {n: value_in(distributions[n], v) for n, v in given.items() if n in distributions}
        if all(value is not ABSENT for value in known.values()):
            configurations.append(known)
            kept.append(i)
    if left := len(record) - len(kept):
        warnings.warn(
            f"{left} run{'s' if left > 1 else ''} of {record.name!r} left out: a value does not"
            " lie in its distribution.",
            stacklevel=4,
        )
    rows = np.array(kept, dtype=np.int64)
    columns = {
        column: getattr(record, column)[rows]
        for column in ("losses", "seconds", "status", "budget", "times")
    }
    return replace(record, configurations=configurations, **columns)


# --- the union space -------------------------------------------------------------------------


class UnionSpace:
    """A ``VectorSpace`` over Optuna parameters, with the way there and back.

    Args:
        distributions: Distribution of each name; single values are left out.
        rules: Inferred conditions.
        ordinal: Ordered choices of categorical parameters whose order means something.

    Raises:
        ValueError: If ``ordinal`` is no permutation of a parameter's choices.
    """

    def __init__(
        self,
        distributions: Distributions,
        rules: Sequence[Rule] = (),
        ordinal: Mapping[str, Sequence[Any]] | None = None,
    ) -> None:
        ordered = ordinal or {}
        self.distributions = {n: d for n, d in distributions.items() if not d.single()}
        self._ranks = {
            name: _ranks(name, distribution, ordered[name])
            for name, distribution in self.distributions.items()
            if name in ordered
        }
        space = ConfigurationSpace()
        with np.errstate(over="ignore"):  # ConfigSpace rounds defaults, however large they are
            for name, distribution in self.distributions.items():
                space.add(self._hyperparameter(name, distribution))
            for rule in rules:
                condition = self._condition(space, rule)
                if condition is not None:
                    space.add(condition)
        self.vectors = VectorSpace(space)
        self.column = {name: i for i, name in enumerate(self.vectors.names)}

    def _hyperparameter(
        self, name: str, distribution: BaseDistribution
    ) -> Hyperparameter[Any, Any]:
        if isinstance(distribution, CategoricalDistribution):
            if name in self._ranks:
                order = np.argsort(self._ranks[name]).tolist()
                return ordinal(name, [distribution.choices[i] for i in order])
            return categorical(name, distribution.choices)
        assert isinstance(distribution, FloatDistribution | IntDistribution)
        steps = steps_of(distribution)
        if steps is None:
            return _range(name, distribution)
        return Constant(name, steps.value(0)) if steps.n == 1 else stepped_range(name, steps.steps)

    def _condition(self, space: ConfigurationSpace, rule: Rule) -> Any:
        if rule.child not in space or rule.parent not in space:
            return None
        parent, distribution = space[rule.parent], self.distributions[rule.parent]
        values = _parent_values(rule, distribution)
        if isinstance(distribution, IntDistribution):
            if (steps := steps_of(distribution)) is not None:
                places = np.rint(steps.steps.index(np.array(rule.values))).astype(np.int64)
                values = [steps.value(int(i)) for i in places if 0 <= i < steps.n]
            values = [value for value in values if parent.legal_value(value)]
        if len(values) != len(rule.values):  # the parent's range has moved away from the rule
            return None
        return as_condition(space, rule, values)

    def encode(self, name: str, internal: FloatArray) -> FloatArray:
        """Vector column (n,) of internal values; NaN stays NaN.

        Values of old ranges may leave [0, 1]; what the present scale cannot express (the log of
        0), and choices that there are not, become NaN.
        """
        distribution, hyperparameter = self.distributions[name], self.vectors.space[name]
        out = np.full(len(internal), np.nan)
        known = ~np.isnan(internal)
        if isinstance(distribution, CategoricalDistribution):
            known &= internal < len(distribution.choices)
            out[known] = internal[known]
            if name in self._ranks:
                out[known] = self._ranks[name][internal[known].astype(np.int64)]
        elif isinstance(hyperparameter, Constant):
            out[known] = float(hyperparameter.lower_vectorized)
        else:
            with np.errstate(divide="ignore", invalid="ignore"):
                out[known] = hyperparameter.to_vector(internal[known])
        out[np.isinf(out)] = np.nan
        return out

    def decode(self, name: str, entry: float) -> Any:
        """The parameter value that a vector entry stands for, as a builtin."""
        distribution, hyperparameter = self.distributions[name], self.vectors.space[name]
        if isinstance(distribution, CategoricalDistribution):
            index = int(entry)
            if name in self._ranks:
                index = int(np.flatnonzero(self._ranks[name] == index)[0])
            return distribution.choices[index]
        if (steps := steps_of(distribution)) is not None:
            return steps.value(round(min(max(entry, 0.0), 1.0) * (steps.n - 1)))
        assert isinstance(distribution, FloatDistribution | IntDistribution)
        (value,) = hyperparameter.to_value(np.array([entry]))
        cast = int if isinstance(distribution, IntDistribution) else float
        return cast(min(max(cast(value), distribution.low), distribution.high))

    def internal(self, name: str, entry: float) -> float:
        """Optuna's internal representation of a vector entry."""
        return float(self.distributions[name].to_internal_repr(self.decode(name, entry)))

    def fixed(self, values: Mapping[str, Any]) -> FloatArray:
        """Vector (d,) of external values that are decided, NaN elsewhere."""
        vector = np.full(self.vectors.d, np.nan)
        for name, value in values.items():
            if name in self.column:
                try:
                    internal = self.distributions[name].to_internal_repr(value)
                except ValueError:  # a value that the parameter has no more
                    continue
                vector[self.column[name]] = self.encode(name, np.array([float(internal)]))[0]
        return vector


def _ranks(name: str, distribution: BaseDistribution, ordered: Sequence[Any]) -> FloatArray:
    """Rank of each choice (k,) in ``ordered``."""
    if not isinstance(distribution, CategoricalDistribution):
        raise ValueError(f"ordinal names {name!r}, which is not categorical: {distribution}.")
    order = [index_of(distribution.choices, choice) for choice in ordered]
    if set(order) != set(range(len(distribution.choices))) or len(order) != len(set(order)):
        raise ValueError(
            f"ordinal[{name!r}] must list each choice once, got {list(ordered)!r} for the choices"
            f" {list(distribution.choices)!r}."
        )
    return np.argsort(np.array(order)).astype(np.float64)
