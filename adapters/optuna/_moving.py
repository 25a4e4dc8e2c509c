"""Ranges that change from trial to trial: the position in the range is modelled, not the value.

A range changes if it depends on other parameters, as in ``suggest_int("b", 1, a)``, or if a name
has another range in each branch. ``StudyColumns.moving`` has the names.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

import numpy as np
from optuna.distributions import BaseDistribution, IntDistribution

from automl_plugins.records.trial import Status

from . import _private
from ._steps import steps_of
from ._union import UnionSpace
from .trials import StudyTrial


def position_of(distribution: BaseDistribution, internal: float) -> float:
    """The position of an internal value in its range."""
    (entry,) = UnionSpace({"value": distribution}).encode("value", np.array([internal]))
    return float(entry)


def value_at(
    distribution: BaseDistribution, position: float, taken: Collection[float] = ()
) -> Any:
    """The value at a position in a range; of a grid, the nearest one that is not taken.

    Args:
        distribution: The range.
        position: From 0 to 1.
        taken: Values that should not be returned, unless there is no other nearby.
    """
    value = UnionSpace({"value": distribution}).decode("value", position)
    steps = steps_of(distribution)
    if not taken or (steps is None and not isinstance(distribution, IntDistribution)):
        return value
    # Nearest first; one of 1 + len(taken) gaps is free, unless the range ends before.
    place = 0 if steps is None else round(steps.steps.index(np.array([value]))[0])
    for gap in range(1 + len(taken)):
        for there in (gap, -gap):
            if steps is None:  # integers on a logarithmic scale
                other = value + there
            else:
                other = steps.value(min(max(place + there, 0), steps.n - 1))
            if other not in taken and _private.contains(distribution, float(other)):
                return other
    return value


def positions_in(trial: StudyTrial, moving: Collection[str]) -> dict[str, float]:
    """The position of each moving parameter of a trial in its range of this trial.

    Of integers, many positions are the same value. The one that was proposed is what the model
    has to learn about; else it would propose that position again.
    """
    found: dict[str, float] = {}
    for name in moving:
        proposed = trial.positions.get(name)
        if name in trial.distributions:
            distribution, value = trial.distributions[name], trial.values[name]
            if proposed is None or value_at(distribution, proposed) != value:
                proposed = position_of(distribution, value)
            found[name] = proposed
        elif name in trial.constants:  # any position is its only value
            found[name] = 0.5 if proposed is None else proposed
        elif proposed is not None and trial.status != Status.COMPLETE:  # not asked for yet
            found[name] = proposed
    return found


def taken_values(
    trials: Iterable[StudyTrial], name: str, others: Mapping[str, float]
) -> set[float]:
    """Internal values of a parameter in the trials with these internal values of the others."""
    return {
        trial.values[name]
        for trial in trials
        if name in trial.values and others.items() <= (trial.constants | trial.values).items()
    }
