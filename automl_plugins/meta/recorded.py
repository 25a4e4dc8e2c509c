"""What is known of recorded hyperparameters: which are ranges, of which None is a choice."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from ConfigSpace.hyperparameters import (
    CategoricalHyperparameter,
    FloatHyperparameter,
    Hyperparameter,
    IntegerHyperparameter,
)

from automl_plugins.records.task_record import TaskRecord
from automl_plugins.spaces.values import choices_of, finder, kind_of, numbers_of, to_float
from automl_plugins.spaces.vector_space import VectorSpace

_RANGES = FloatHyperparameter | IntegerHyperparameter


def nones_of(space: VectorSpace, records: Sequence[TaskRecord]) -> set[str]:
    """The hyperparameters of which None is a choice where they were recorded."""
    known = _recorded(records)
    # Runs that came without a space may be of this one, in which None may be a choice.
    if not records or any(record.space is None for record in records):
        known += space.space.values()
    return {hp.name for hp in known if None in (choices_of(hp) or ())}


def ranges_of(records: Sequence[TaskRecord], guessed: Iterable[str]) -> set[str]:
    """The hyperparameters that are ranges in every recorded space, or ``guessed`` if in none."""
    recorded = _recorded(records)
    # Only what is a range in every recorded space has numbers that can be ordered.
    others = {hp.name for hp in recorded if not isinstance(hp, _RANGES)}
    return {*guessed, *(hp.name for hp in recorded)} - others


def guess_ranges(space: VectorSpace, records: Iterable[TaskRecord]) -> dict[str, float]:
    """The hyperparameters that are taken for ranges in runs without a space.

    Those for which ``space`` has at least two choices that are numbers, and of whose recorded
    numbers, each counted once, at least half are none of its choices.

    Returns:
        By name the number that is no part of the range; NaN if there is none. It is the only
        negative one, where no choice is negative: -1 often stands for what has no limit.
    """
    runs = [run for r in records if r.space is None for run in r.configurations]
    found: dict[str, float] = {}
    for name in space.names:
        hyperparameter = space.space[name]
        choices = choices_of(hyperparameter) or []
        numbers = numbers_of(choices)
        is_category = isinstance(hyperparameter, CategoricalHyperparameter)
        if not is_category or np.count_nonzero(~np.isnan(numbers)) < 2:
            continue
        place = finder(choices)
        values = read_switch(hyperparameter, [run[name] for run in runs if name in run])
        known = {value: place(value) for value in values if kind_of(value) == "number"}
        negative = [to_float(value) for value in known if value < 0]
        apart = negative[0] if len(negative) == 1 and np.nanmin(numbers) >= 0.0 else math.nan
        of_range = [i for value, i in known.items() if to_float(value) != apart]
        if of_range and of_range.count(None) >= len(of_range) / 2:
            found[name] = apart
    return found


def read_switch(hyperparameter: Hyperparameter[Any, Any], values: list[Any]) -> list[Any]:
    """The values of a switch as the space writes them: ``False`` and ``True``, or 0 and 1.

    Numbers are truth values only if there are no others than 0 and 1, recorded or in the space.
    """
    choices = choices_of(hyperparameter) or []
    # Where a framework has no truth values, a switch is an integer from 0 to 1.
    if isinstance(hyperparameter, IntegerHyperparameter) and hyperparameter.size == 2:
        choices = [hyperparameter.lower, hyperparameter.upper]
    numbers = [choice for choice in choices if kind_of(choice) == "number"]
    n_truths = sum(kind_of(choice) == "bool" for choice in choices)
    if n_truths == 0 and sorted(numbers) == [0, 1]:
        return [int(value) if kind_of(value) == "bool" else value for value in values]
    recorded = [value for value in values if kind_of(value) == "number"]
    if n_truths == 2 and not numbers and all(value in (0, 1) for value in recorded):
        return [bool(value) if kind_of(value) == "number" else value for value in values]
    return values


def _recorded(records: Sequence[TaskRecord]) -> list[Hyperparameter[Any, Any]]:
    return [hp for r in records if r.space is not None for hp in r.space.values()]
