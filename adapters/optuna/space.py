"""Optuna's distributions and values translated to ConfigSpace and back.

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
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
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

from automl_plugins.arrays import FloatArray
from automl_plugins.spaces import conditions
from automl_plugins.spaces.choices import categorical, ordinal
from automl_plugins.spaces.conditions import Rule, as_condition
from automl_plugins.spaces.ranges import float_range, integer_range, stepped_range
from automl_plugins.spaces.values import ABSENT, choices_of, find, index_of, is_near, to_number
from automl_plugins.spaces.vector_space import VectorSpace

from . import _private
from ._steps import SteppedValues, steps_of

Distributions = Mapping[str, BaseDistribution]

_MOST_LISTED = 1000  # stepped parameters with more values count as continuous


# --- distributions as a space ----------------------------------------------------------------


@np.errstate(over="ignore")  # ConfigSpace rounds defaults, however large they are
def read_space(search_space: Any) -> tuple[ConfigurationSpace, dict[str, BaseDistribution]]:
    """A search space, distributions by name or a ``ConfigurationSpace``, in both forms.

    Raises:
        TypeError: For something else.
    """
    if isinstance(search_space, ConfigurationSpace):
        return search_space, distributions_of(search_space)
    if search_space != {} and not is_space(search_space):
        raise TypeError(
            "search_space must be Optuna's distributions by name, or a ConfigurationSpace, got"
            f" {search_space!r}."
        )
    space = ConfigurationSpace()
    space.add([hyperparameter_of(name, d) for name, d in search_space.items()])
    return space, dict(search_space)


def is_space(thing: Any) -> bool:
    """Whether an object is an Optuna search space: distributions by name."""
    return (
        isinstance(thing, Mapping)
        and len(thing) > 0
        and all(isinstance(value, BaseDistribution) for value in thing.values())
    )


def checked_space(search_space: Any) -> dict[str, BaseDistribution]:
    """A copy of the distributions that a sampler is given; empty for None.

    Raises:
        TypeError: For anything but distributions by name.
    """
    if search_space is None or search_space == {}:
        return {}
    if not is_space(search_space):
        raise TypeError(
            "search_space must be Optuna's distributions by name, such as"
            f" {{'x': FloatDistribution(0.0, 1.0)}}, got {search_space!r}."
        )
    return dict(search_space)


def distributions_in(trials: Iterable[FrozenTrial]) -> dict[str, BaseDistribution]:
    """The newest distribution of each parameter that trials have asked for."""
    found: dict[str, BaseDistribution] = {}
    for trial in trials:
        found |= trial.distributions
    return found


@np.errstate(over="ignore")  # ConfigSpace rounds defaults, however large they are
def space_of_trials(trials: Sequence[FrozenTrial]) -> ConfigurationSpace | None:
    """The union of all parameters, conditions inferred; None without parameters."""
    distributions = distributions_in(trials)
    if not distributions:
        return None
    space, _ = read_space(distributions)
    complete = [t.params for t in trials if t.state == TrialState.COMPLETE]
    values = {
        name: np.array([_internal(d, p[name]) if name in p else math.nan for p in complete])
        for name, d in distributions.items()
    }
    found = []
    for rule in infer_rules(values, distributions):
        parent, known = space[rule.parent], _parent_values(rule, distributions[rule.parent])
        legal = [value for value in known if parent.legal_value(value)]
        # The range of the parent may have moved, and one that has a single value has no order.
        if legal and (rule.relation == "in" or not isinstance(parent, Constant)):
            found.append(as_condition(space, rule, legal))
    space.add(found)
    return space


def _internal(distribution: BaseDistribution, value: Any) -> float:
    """Optuna's internal value; NaN for a value that is no longer a choice."""
    try:
        return float(distribution.to_internal_repr(value))
    except ValueError:
        return math.nan


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
        # The parent may have had more choices earlier, or been a number.
        return [parent.choices[int(i)] for i in rule.values if i in range(len(parent.choices))]
    return [int(v) for v in rule.values]


def hyperparameter_of(
    name: str, distribution: BaseDistribution, *, listed: bool = True
) -> Hyperparameter[Any, Any]:
    """The hyperparameter of a distribution; with ``listed`` a few steps become an ordinal."""
    if distribution.single():
        return Constant(name, single_value(distribution))
    if isinstance(distribution, CategoricalDistribution):
        return categorical(name, distribution.choices)
    assert isinstance(distribution, FloatDistribution | IntDistribution)
    steps = _listed_steps(distribution) if listed else steps_of(distribution)
    if steps is None:
        low, high, log = distribution.low, distribution.high, distribution.log
        if isinstance(distribution, IntDistribution):
            return integer_range(name, int(low), int(high), log=log)
        return float_range(name, low, high, log=log)
    if steps.n > 1 and not listed:
        return stepped_range(name, steps.steps)
    values = [_listed_value(steps, i) for i in range(steps.n)]
    return Constant(name, values[0]) if steps.n == 1 else OrdinalHyperparameter(name, values)


def single_value(distribution: BaseDistribution) -> Any:
    """The value of a distribution that has only one."""
    if isinstance(distribution, CategoricalDistribution):
        return distribution.choices[0]
    assert isinstance(distribution, FloatDistribution | IntDistribution)
    return distribution.low


def _listed_steps(distribution: BaseDistribution) -> SteppedValues | None:
    """The values of a parameter with steps; None if it counts as a range."""
    steps = steps_of(distribution)
    if steps is None or steps.n > _MOST_LISTED:
        return None
    if isinstance(distribution, IntDistribution) and distribution.step == 1:
        return None if steps.listed is None else steps
    return steps


def _listed_value(steps: SteppedValues, i: int) -> Any:
    return steps.value(i) if steps.listed is not None else steps.low + i * steps.step


def snap(distribution: BaseDistribution, value: Any) -> Any:
    """A value as in ``space_of_trials``: in steps of 0.1, 0.3 is 0.30000000000000004."""
    if isinstance(distribution, FloatDistribution):
        steps = _listed_steps(distribution)
        if steps is not None:
            return _listed_value(steps, round(steps.steps.index(np.array([value]))[0]))
    return value


# --- a space as distributions ----------------------------------------------------------------


def distributions_of(space: ConfigurationSpace) -> dict[str, BaseDistribution]:
    """Distribution of each hyperparameter; normal and beta ones are uniform on their bounds."""
    return {name: distribution_of(space[name]) for name in space.at}


def distribution_of(hyperparameter: Hyperparameter[Any, Any]) -> BaseDistribution:
    """The distribution of a hyperparameter; an evenly spaced ordinal becomes a stepped number."""
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
    # 0.1 + 2 * 0.1 is 0.30000000000000004: remove the rounding errors.
    mean = (values[-1] - values[0]) / (len(values) - 1)
    low, high, step = (float(f"{number:.12g}") for number in (values[0], values[-1], mean))
    return FloatDistribution(low, high, step=step)


# --- values ----------------------------------------------------------------------------------


def value_in(distribution: BaseDistribution, value: Any, *, nearest: bool = False) -> Any:
    """The value of a distribution that matches a recorded one; a choice is the same object.

    Args:
        distribution: The distribution.
        value: The recorded value.
        nearest: Whether any number outside the distribution is moved to the nearest inside;
            else only one that missed a step, or an end of the range, by a rounding error.

    Returns:
        The value; ``ABSENT`` if none matches.
    """
    if isinstance(distribution, CategoricalDistribution):
        index = find(distribution.choices, value)
        return ABSENT if index is None else distribution.choices[index]
    assert isinstance(distribution, FloatDistribution | IntDistribution)
    number = to_number(value)
    if math.isnan(number):
        return ABSENT
    if type(value) is int and math.isfinite(number):  # keeps the digits that a float loses
        number = value
    is_whole = isinstance(distribution, IntDistribution)
    if (not is_whole or number % 1 == 0) and _has(distribution, number):
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


# --- the union space -------------------------------------------------------------------------


POSITION = FloatDistribution(0.0, 1.0)
"""The distribution of the position in a range that moves, see ``_moving``; compare with ``is``."""


class UnionSpace:
    """A ``VectorSpace`` over the Optuna parameters that can vary; encodes and decodes values.

    Raises:
        ValueError: If ``ordinal`` is not a permutation of a parameter's choices.
    """

    def __init__(
        self,
        distributions: Distributions,
        rules: Sequence[Rule] = (),
        ordinal: Mapping[str, Sequence[Any]] | None = None,
    ) -> None:
        ordered = ordinal or {}
        self.distributions = {n: d for n, d in distributions.items() if not d.single()}
        # The code of each choice, where it is not the choice's own number.
        self._ranks: dict[str, FloatArray] = {}
        self._ordered = ordered.keys()
        self.moving = {n for n, d in self.distributions.items() if d is POSITION}
        for name, distribution in self.distributions.items():
            if name in ordered:
                self._ranks[name] = _ranks(name, distribution, ordered[name])
            elif isinstance(distribution, CategoricalDistribution):
                kept, codes = np.unique(_stored(distribution), return_inverse=True)
                if len(kept) < len(distribution.choices):
                    self._ranks[name] = codes.astype(np.float64)
        space = ConfigurationSpace()
        with np.errstate(over="ignore"):  # ConfigSpace rounds defaults, however large they are
            space.add([self._hyperparameter(name) for name in self.distributions])
            # All at once: ConfigSpace sorts the space anew at each addition.
            found = (self._condition(space, rule) for rule in rules)
            space.add([condition for condition in found if condition is not None])
        self.vectors = VectorSpace(space)
        self.column = {name: i for i, name in enumerate(self.vectors.names)}

    def _hyperparameter(self, name: str) -> Hyperparameter[Any, Any]:
        if name not in self._ranks:
            return hyperparameter_of(name, self.distributions[name], listed=False)
        choices = self.distributions[name].choices  # type: ignore[attr-defined]
        # Of equal choices, which have one rank, the first.
        _, first = np.unique(self._ranks[name], return_index=True)
        if len(first) == 1:
            return Constant(name, choices[0])
        make = ordinal if name in self._ordered else categorical
        return make(name, [choices[i] for i in first])

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
        if len(values) != len(rule.values):  # the parent has lost values of the rule
            return None
        return as_condition(space, rule, values)

    def encode(self, name: str, internal: FloatArray) -> FloatArray:
        """Vector column (n,) of internal values; NaN stays NaN.

        Values of old ranges may leave [0, 1]. Values that the present scale cannot express (the
        log of 0, an overflow), and choices that no longer exist, become NaN.
        """
        distribution, hyperparameter = self.distributions[name], self.vectors.space[name]
        out = np.full(len(internal), np.nan)
        known = ~np.isnan(internal)
        if isinstance(hyperparameter, Constant):
            out[known] = float(hyperparameter.lower_vectorized)
        elif isinstance(distribution, CategoricalDistribution):
            known &= np.isin(internal, np.arange(len(distribution.choices)))
            out[known] = internal[known]
            if name in self._ranks:
                out[known] = self._ranks[name][internal[known].astype(np.int64)]
        else:
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                out[known] = hyperparameter.to_vector(internal[known])
        out[np.isinf(out)] = np.nan
        return out

    def encode_all(self, rows: Sequence[Mapping[str, float]]) -> FloatArray:
        """Vectors (n, d) of rows of internal values by name; NaN where a row has no value."""
        vectors = np.full((len(rows), self.vectors.d), np.nan)
        places: dict[str, list[int]] = {}
        for i, row in enumerate(rows):
            for name in row:
                places.setdefault(name, []).append(i)
        for name in places.keys() & self.column.keys():
            internal = np.array([rows[i][name] for i in places[name]])
            vectors[places[name], self.column[name]] = self.encode(name, internal)
        return vectors

    def decode(self, name: str, entry: float) -> Any:
        """The parameter value of a vector entry, as a builtin."""
        distribution, hyperparameter = self.distributions[name], self.vectors.space[name]
        if isinstance(distribution, CategoricalDistribution):
            index = 0 if isinstance(hyperparameter, Constant) else int(entry)
            if name in self._ranks:
                # Of equal choices the first, as Optuna stores them.
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

    def values(self, vector: FloatArray, rng: np.random.Generator) -> dict[str, Any]:
        """Parameter values of a vector (d,); those of inactive parameters are drawn."""
        complete = self.vectors.fill(vector, rng)
        return {name: self.decode(name, complete[i]) for name, i in self.column.items()}

    def internals(self, vector: FloatArray) -> dict[str, float]:
        """Optuna's internal values of the active parameters of a vector (d,)."""
        active = {name: vector[i] for name, i in self.column.items() if not np.isnan(vector[i])}
        return {name: self.internal(name, entry) for name, entry in active.items()}

    def fixed(self, values: Mapping[str, Any]) -> FloatArray:
        """Vector (d,) of external values that are fixed, NaN elsewhere.

        A value of a range that moves has no place yet.
        """
        vector = np.full(self.vectors.d, np.nan)
        for name, value in values.items():
            if name in self.column and name not in self.moving:
                try:
                    internal = self.distributions[name].to_internal_repr(value)
                except ValueError:  # no longer a value of the parameter
                    continue
                vector[self.column[name]] = self.encode(name, np.array([float(internal)]))[0]
        return vector


def distinct_choices(distribution: CategoricalDistribution) -> list[int]:
    """Numbers of the choices that differ in Optuna: of equal ones (1, 1.0, True) the first."""
    return sorted(set(_stored(distribution)))


def _stored(distribution: CategoricalDistribution) -> list[int]:
    """The number that Optuna stores for each choice: that of the first one equal to it."""
    choices = distribution.choices
    if all(isinstance(choice, str) for choice in choices) and len(set(choices)) == len(choices):
        return list(range(len(choices)))
    return [int(distribution.to_internal_repr(choice)) for choice in choices]


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
    # The inverse of a permutation is what sorts it.
    return np.argsort(np.array(order)).astype(np.float64)
