"""Optuna's distributions of a ConfigSpace search space, and the other way round."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from ConfigSpace import Categorical, ConfigurationSpace
from ConfigSpace.hyperparameters import (
    CategoricalHyperparameter,
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
from optuna.trial import FrozenTrial, TrialState, create_trial

from automl_plugins.records.task_record import TaskRecord
from automl_plugins.spaces.conditions import Rule, as_condition
from automl_plugins.spaces.ranges import float_range, integer_range

from ._space import infer_rules
from ._steps import Steps, steps_of


def distributions_of(space: ConfigurationSpace) -> dict[str, BaseDistribution]:
    """Distribution of each hyperparameter; normal and beta ones are uniform on their bounds."""
    return {name: _distribution(space[name]) for name in space.at}


def _distribution(hyperparameter: Hyperparameter[Any, Any]) -> BaseDistribution:
    if isinstance(hyperparameter, Constant):
        return _single(_builtin(hyperparameter.value))
    if isinstance(hyperparameter, OrdinalHyperparameter):
        values = [_builtin(value) for value in hyperparameter.sequence]
        return _stepped(values) or CategoricalDistribution(values)
    if isinstance(hyperparameter, IntegerHyperparameter):
        low, high = int(hyperparameter.lower), int(hyperparameter.upper)
        return IntDistribution(low, high, log=bool(hyperparameter.log))
    if isinstance(hyperparameter, FloatHyperparameter):
        bounds = float(hyperparameter.lower), float(hyperparameter.upper)
        return FloatDistribution(*bounds, log=bool(hyperparameter.log))
    assert isinstance(hyperparameter, CategoricalHyperparameter)
    return CategoricalDistribution([_builtin(choice) for choice in hyperparameter.choices])


def _single(value: Any) -> BaseDistribution:
    if type(value) is int:
        return IntDistribution(value, value)
    if type(value) is float:
        return FloatDistribution(value, value)
    return CategoricalDistribution([value])


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


def contained(record: TaskRecord, distributions: Mapping[str, BaseDistribution]) -> TaskRecord:
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
        values = {name: _builtin(v) for name, v in given.items() if name in distributions}
        if _is_contained(values, distributions):
            configurations.append(values)
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


def _is_contained(
    values: Mapping[str, Any], distributions: Mapping[str, BaseDistribution]
) -> bool:
    try:
        create_trial(
            value=0.0,
            params={name: typed(distributions[name], value) for name, value in values.items()},
            distributions={name: distributions[name] for name in values},
        )
    except (TypeError, ValueError):
        return False
    return True


def typed(distribution: BaseDistribution, value: Any) -> Any:
    """A value as Optuna has it; grid points may miss the ends of their range by a rounding."""
    if isinstance(distribution, FloatDistribution):
        ends = np.array([distribution.low, distribution.high])
        near = ends[np.isclose(ends, value, rtol=1e-9, atol=0.0)]
        return float(near[0]) if near.size and distribution.step is not None else float(value)
    if isinstance(distribution, IntDistribution):
        return int(value) if float(value).is_integer() else value
    return value


def _builtin(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


# --- and back ---------------------------------------------------------------------------------

_GRID = 1000  # stepped parameters with more values count as continuous


def space_of_trials(trials: Sequence[FrozenTrial]) -> ConfigurationSpace | None:
    """The union of all parameters, conditions inferred; None if ConfigSpace cannot express it."""
    distributions: dict[str, BaseDistribution] = {}
    for trial in trials:
        distributions.update(trial.distributions)
    if not distributions:
        return None
    space = ConfigurationSpace()
    try:
        space.add([hyperparameter_of(name, d) for name, d in distributions.items()])
    except (TypeError, ValueError):  # choices such as [None, 1] or [True, 1]
        return None
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
        parent_values = _parent_values(rule, distributions[rule.parent])
        space.add(as_condition(space, rule, parent_values))
    return space


def _parent_values(rule: Rule, parent: BaseDistribution) -> list[Any]:
    if isinstance(parent, CategoricalDistribution):
        return [parent.choices[int(i)] for i in rule.values]
    return [int(v) for v in rule.values]


def hyperparameter_of(name: str, distribution: BaseDistribution) -> Hyperparameter[Any, Any]:
    """The hyperparameter of a distribution.

    Raises:
        TypeError, ValueError: For choices that ConfigSpace does not take.
    """
    if isinstance(distribution, CategoricalDistribution):
        if distribution.single():
            return Constant(name, distribution.choices[0])
        return Categorical(name, list(distribution.choices))
    assert isinstance(distribution, FloatDistribution | IntDistribution)
    if distribution.single():
        return Constant(name, distribution.low)
    if (steps := _grid(distribution)) is not None:
        if steps.n == 1:
            return Constant(name, _grid_value(steps, 0))
        return OrdinalHyperparameter(name, [_grid_value(steps, i) for i in range(steps.n)])
    low, high = distribution.low, distribution.high
    log = distribution.log
    if isinstance(distribution, IntDistribution):
        return integer_range(name, distribution.low, distribution.high, log=log)
    return float_range(name, low, high, log=log)


def _grid(distribution: BaseDistribution) -> Steps | None:
    """The values of a parameter with steps, None if it counts as a range."""
    steps = steps_of(distribution)
    if steps is None or steps.n > _GRID:
        return None
    if isinstance(distribution, IntDistribution) and distribution.step == 1:
        return None if steps.listed is None else steps
    return steps


def _grid_value(steps: Steps, i: int) -> Any:
    return steps.value(i) if steps.listed is not None else steps.low + i * steps.step


def snapped(distribution: BaseDistribution, value: Any) -> Any:
    """A value as the grid has it: 0.3 is 0.30000000000000004 in steps of 0.1."""
    if isinstance(distribution, FloatDistribution) and (steps := _grid(distribution)) is not None:
        return _grid_value(steps, round(steps.index(np.array([value]))[0]))
    return value
