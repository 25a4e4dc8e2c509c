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
from collections.abc import Collection, Iterable, Mapping, Sequence
from fractions import Fraction
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
    check_distribution_compatibility,
)
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState

from automl_plugins.arrays import FloatArray
from automl_plugins.spaces import conditions
from automl_plugins.spaces.choices import ordered, unordered
from automl_plugins.spaces.conditions import Rule, as_condition
from automl_plugins.spaces.ranges import float_range, integer_range
from automl_plugins.spaces.values import ABSENT, choices_of, find, is_near, to_number

from . import _private
from ._steps import Numeric, steps_of

Distributions = Mapping[str, BaseDistribution]

# Stepped parameters with more values count as continuous: ConfigSpace holds each value of an
# ordinal, which takes 0.03 s for 1000 and 0.26 s for 4000.
_MOST_LISTED = 1000


# --- distributions as a space ----------------------------------------------------------------


@np.errstate(over="ignore")  # ConfigSpace rounds defaults, however large they are
def read_space(search_space: Any) -> tuple[ConfigurationSpace, dict[str, BaseDistribution]]:
    """A search space in both forms, given in one of them; TypeError for anything else."""
    if isinstance(search_space, ConfigurationSpace):
        return search_space, distributions_of(search_space)
    distributions = check_space(search_space, or_else=", or a ConfigurationSpace")
    space = ConfigurationSpace()
    space.add([hyperparameter_of(name, d) for name, d in distributions.items()])
    return space, distributions


def is_space(thing: Any) -> bool:
    """Whether an object is an Optuna search space: distributions by name."""
    return (
        isinstance(thing, Mapping)
        and len(thing) > 0
        and all(isinstance(n, str) and isinstance(d, BaseDistribution) for n, d in thing.items())
    )


def check_space(search_space: Any, *, or_else: str = "") -> dict[str, BaseDistribution]:
    """A copy of the distributions that are given; empty for None.

    Raises TypeError for anything but distributions by name; its message names ``or_else``, too.
    """
    if search_space is None or search_space == {}:
        return {}
    if not is_space(search_space):
        raise TypeError(
            "search_space must be Optuna's distributions by name, such as"
            f" {{'x': FloatDistribution(0.0, 1.0)}}{or_else}; got {search_space!r}."
        )
    return dict(search_space)


def check_ordinal(ordinal: Mapping[str, Sequence[Any]] | None) -> dict[str, list[Any]]:
    """The ordered choices by name of the parameter; TypeError for anything else."""
    is_mapping = isinstance(ordinal, Mapping | None)
    every = ordinal.values() if is_mapping and ordinal else ()
    if not is_mapping or any(isinstance(c, str) or not isinstance(c, Iterable) for c in every):
        raise TypeError(
            "ordinal must be ordered choices by name of the parameter, such as"
            f" {{'size': ['small', 'medium', 'large']}}, got {ordinal!r}."
        )
    return {name: list(choices) for name, choices in (ordinal or {}).items()}


def distributions_in(
    trials: Sequence[FrozenTrial], moving: Collection[str] = ()
) -> dict[str, BaseDistribution]:
    """The distribution of each parameter that trials have asked for.

    It is the newest one, which the user may have edited; of a ``moving`` name the widest.
    """
    found = {name: d for trial in trials for name, d in trial.distributions.items()}
    for name in moving:
        each = [t.distributions[name] for t in trials if name in t.distributions]
        found[name] = widest(each) or found[name]
    return found


def widest(distributions: Sequence[BaseDistribution]) -> BaseDistribution | None:
    """The distribution that contains the values of all; None if they differ in kind."""
    # By their text: a distribution whose choices are lists has no hash.
    distinct: list[Any] = list({repr(d): d for d in distributions}.values())
    kind = type(distinct[-1])
    if len(distinct) == 1:
        return distributions[0]
    if any(type(d) is not kind for d in distinct):
        return None
    if kind is CategoricalDistribution:
        choices = [choice for d in distinct for choice in d.choices]
        # Choices may be lists, without a hash; and 1 equals True.
        return CategoricalDistribution(list({(type(c), str(c)): c for c in choices}.values()))
    # The scale and the steps of a range with one value mean nothing: they need not agree.
    wide = [d for d in distinct if not d.single()] or distinct
    low, high = min(d.low for d in distinct), max(d.high for d in distinct)
    # A range that had one value may lie below a logarithmic scale, or between the steps.
    log = low > 0 and all(d.log for d in wide)
    step = wide[0].step
    if log or any(d.step != step for d in wide):
        step = None
    elif step is not None:
        if any(abs(_on_steps(d.low, wide[0]) - d.low) > 1e-9 * step for d in distinct):
            step = None
        else:  # Optuna shortens a range that ends beside a step by a rounding error
            low, high = _on_steps(low, wide[0]), _on_steps(high, wide[0])
    if step is None and kind is IntDistribution:
        step = 1
    made: BaseDistribution = kind(low, high, log=log, step=step)
    return made


def _on_steps(value: float, grid: Any) -> float:
    """The nearest value on the steps of ``grid``, also beyond its ends, without rounding error."""
    numbers = (value, grid.low, grid.step)
    # 15 digits: what a float keeps of the decimal that the user wrote.
    exact = [Fraction(n if isinstance(n, int) else f"{n:.15g}") for n in numbers]
    first, step = exact[1:]
    return type(value)(first + round((exact[0] - first) / step) * step)


def are_equal(first: BaseDistribution, second: BaseDistribution) -> bool:
    """Whether two distributions are equal.

    Faster than Optuna's ``==``, which takes 40 ms for 10 000 choices.
    """
    if type(first) is type(second) is CategoricalDistribution and first.choices == second.choices:
        return True
    return bool(first == second)


def check_kinds(study: Study, distributions: Distributions) -> None:
    """Raise ValueError for a parameter that is of another kind in the study."""
    known = distributions_in(study.get_trials(deepcopy=False))
    for name in known.keys() & distributions.keys():
        try:
            check_distribution_compatibility(known[name], distributions[name])
        except ValueError as error:
            raise ValueError(
                f"{name!r} is {known[name]} in the study {study.study_name!r}, and"
                f" {distributions[name]} in the runs ({error}) Nothing was added: pass space= with"
                " the distributions of the study."
            ) from None


@np.errstate(over="ignore")  # ConfigSpace rounds defaults, however large they are
def space_of_trials(
    trials: Sequence[FrozenTrial], moving: Collection[str] = ()
) -> ConfigurationSpace | None:
    """The union of all parameters, conditions inferred; None without parameters.

    Ranges are as in ``distributions_in``.
    """
    distributions = distributions_in(trials, moving)
    if not distributions:
        return None
    space, _ = read_space(distributions)
    # Other trials may have ended before they asked for all of their parameters.
    complete = [t.params for t in trials if t.state == TrialState.COMPLETE]
    values = {
        name: np.array([internal_of(d, p[name]) if name in p else math.nan for p in complete])
        for name, d in distributions.items()
    }
    found = []
    for rule in infer_rules(values, distributions):
        parent, known = space[rule.parent], parent_values(rule, distributions[rule.parent])
        legal = [value for value in known if parent.legal_value(value)]
        # The range of the parent may have moved, and a parent with a single value has no order.
        if legal and (rule.relation == "in" or not isinstance(parent, Constant)):
            found.append(as_condition(space, rule, legal))
    space.add(found)
    return space


def internal_of(distribution: BaseDistribution, value: Any) -> float:
    """Optuna's internal value; NaN for a value that is no longer a choice."""
    try:
        return float(distribution.to_internal_repr(value))
    except ValueError:
        return math.nan


def infer_rules(values: Mapping[str, FloatArray], distributions: Distributions) -> list[Rule]:
    """Conditions that explain which parameters complete trials asked for.

    ``values`` (n,) are the internal ones by name, NaN where a trial did not ask.
    """
    return conditions.infer_rules(
        values,
        categories=[n for n in values if isinstance(distributions[n], CategoricalDistribution)],
        integers=[n for n in values if isinstance(distributions[n], IntDistribution)],
    )


def parent_values(rule: Rule, parent: BaseDistribution) -> list[Any]:
    """The values of the parent that a rule names, as ConfigSpace has them."""
    if isinstance(parent, CategoricalDistribution):
        # The parent may have had more choices earlier, or been a number.
        return [parent.choices[int(i)] for i in rule.values if i in range(len(parent.choices))]
    return [int(v) for v in rule.values]


def hyperparameter_of(name: str, distribution: BaseDistribution) -> Hyperparameter[Any, Any]:
    """The hyperparameter of a distribution; a few steps become an ordinal."""
    if distribution.single() and (value := single_value(distribution)) == value:
        return Constant(name, value)  # which cannot be NaN
    if isinstance(distribution, CategoricalDistribution):
        return unordered(name, distribution.choices)
    steps = steps_of(distribution)
    is_whole = isinstance(distribution, IntDistribution) and distribution.step == 1
    if steps is None or steps.n > _MOST_LISTED or (is_whole and steps.listed is None):
        return range_of(name, distribution)
    values = [steps.value(i) for i in range(steps.n)]
    return Constant(name, values[0]) if steps.n == 1 else ordered(name, values)


def range_of(name: str, distribution: BaseDistribution) -> Hyperparameter[Any, Any]:
    """The range of a number, without its steps."""
    assert isinstance(distribution, Numeric)
    low, high, log = distribution.low, distribution.high, distribution.log
    if isinstance(distribution, IntDistribution):
        return integer_range(name, int(low), int(high), log=log)
    return float_range(name, low, high, log=log)


def single_value(distribution: BaseDistribution) -> Any:
    """The value of a distribution that has only one."""
    if isinstance(distribution, CategoricalDistribution):
        return distribution.choices[0]
    assert isinstance(distribution, Numeric)
    return distribution.low


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
        # Not by isinstance: True is an int, and as a number it would come back as 1.
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
    # The gaps of 0.1, 0.2, 0.3 differ in their last digits.
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
    """The value of a distribution that matches a recorded one; ``ABSENT`` if none does.

    Numbers that missed a step, or an end of the range, by a rounding error are moved there; with
    ``nearest`` all other numbers are, too.
    """
    if isinstance(distribution, CategoricalDistribution):
        index = find(distribution.choices, value)
        return ABSENT if index is None else distribution.choices[index]
    assert isinstance(distribution, Numeric)
    number = to_number(value)
    if math.isnan(number):
        return ABSENT
    if type(value) is int and math.isfinite(number):  # keeps the digits that a float loses
        number = value
    is_whole = isinstance(distribution, IntDistribution)
    inside = _private.contains(distribution, float(number))
    if inside and (not is_whole or number % 1 == 0):
        return int(number) if is_whole else float(number)
    steps = steps_of(distribution)
    low, high = distribution.low, distribution.high
    moved = min(max(number, low), high) if steps is None else steps.value(steps.index(number))
    if nearest:
        return round(moved) if is_whole else float(moved)
    if is_whole:
        return ABSENT
    # As a float: numpy keeps larger integers than 64 bits as objects.
    near = is_near(float(number), low, high) if steps is None else math.isclose(moved, number)
    return float(moved) if near else ABSENT


def stored_choices(distribution: CategoricalDistribution) -> list[int]:
    """The index that Optuna stores for each choice; equal ones (1, 1.0, True) share the first."""
    choices = distribution.choices
    # Optuna looks for each choice from the first on: 2 s for 10 000 of them.
    if all(isinstance(choice, str) for choice in choices) and len(set(choices)) == len(choices):
        return list(range(len(choices)))
    return [int(distribution.to_internal_repr(choice)) for choice in choices]
