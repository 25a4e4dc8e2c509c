"""Finished trials as growing columns, so that each trial is read once.

Reading 10 000 trials takes a tenth of a second; a sampler is asked before every one of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime

import numpy as np
import numpy.typing as npt
from optuna.distributions import BaseDistribution
from optuna.trial import FrozenTrial, TrialState

from automl_plugins.records.trial import Status

from . import _private

FloatArray = npt.NDArray[np.float64]
Cost = str | Callable[[FrozenTrial], float | None] | None

_STATUS = {
    TrialState.COMPLETE: Status.COMPLETE,
    TrialState.PRUNED: Status.PRUNED,
    TrialState.FAIL: Status.FAILED,
    TrialState.RUNNING: Status.RUNNING,
}


@dataclass(frozen=True)
class Row:
    """One trial, read."""

    number: int
    finished: datetime
    status: Status
    loss: float  # as reported: may be infinite
    seconds: float
    step: float
    values: dict[str, float]  # internal representation by name
    constraints: dict[str, float]
    distributions: dict[str, BaseDistribution] = field(repr=False)

    @property
    def place(self) -> tuple[datetime, int]:
        """Sorts rows in the order in which they finished."""
        return self.finished, self.number


class Columns:
    """Rows in the order in which they finished, and the same by column; append-only.

    Args:
        rows: All rows, in any order.
    """

    def __init__(self, rows: Iterable[Row] = ()) -> None:
        self.rows = sorted(rows, key=lambda row: row.place)
        self.numbers = {row.number for row in self.rows}
        self.constraint_names = {name for row in self.rows for name in row.constraints}
        self.distributions: dict[str, BaseDistribution] = {}
        for row in self.rows:
            self.distributions.update(row.distributions)  # the newest range of a name counts
        self._arrays: dict[tuple[str, str], FloatArray] = {}

    def extended(self, rows: list[Row]) -> Columns:
        """New columns that hold ``rows`` too."""
        rows = sorted(rows, key=lambda row: row.place)
        if self.rows and rows[0].place < self.rows[-1].place:
            return Columns([*self.rows, *rows])
        longer = Columns()
        longer.rows = [*self.rows, *rows]
        longer.numbers = self.numbers | {row.number for row in rows}
        longer.constraint_names = self.constraint_names.union(*(row.constraints for row in rows))
        longer.distributions = dict(self.distributions)
        for row in rows:
            longer.distributions.update(row.distributions)
        longer._arrays = {
            (kind, name): np.concatenate([old, _read(rows, kind, name)])
            for (kind, name), old in self._arrays.items()
        }
        return longer

    def values(self, name: str) -> FloatArray:
        """Internal values of a parameter (n,), NaN where it was not asked for."""
        return self._array("values", name)

    def constraint(self, name: str) -> FloatArray:
        """Values of a constraint (n,), NaN where it was not set."""
        return self._array("constraints", name)

    def facts(self, name: str) -> FloatArray:
        """A scalar attribute of ``Row`` (n,)."""
        return self._array("row", name)

    def _array(self, kind: str, name: str) -> FloatArray:
        if (kind, name) not in self._arrays:
            self._arrays[kind, name] = _read(self.rows, kind, name)
        return self._arrays[kind, name]

    def __len__(self) -> int:
        return len(self.rows)


def _read(rows: list[Row], kind: str, name: str) -> FloatArray:
    if kind == "row":
        return np.array([getattr(row, name) for row in rows], dtype=np.float64)
    return np.array([getattr(row, kind).get(name, math.nan) for row in rows], dtype=np.float64)


def checked_cost(cost: Cost) -> Cost:
    """``cost`` itself.

    Raises:
        TypeError: If it is nothing that seconds can be read with.
    """
    if not (cost is None or isinstance(cost, str) or callable(cost)):
        raise TypeError(
            "cost must be None, 'duration', the name of a user attribute or a callable,"
            f" got {cost!r}."
        )
    return cost


def read_trial(trial: FrozenTrial, *, maximize: bool, cost: Cost) -> Row:
    """Read one trial.

    Raises:
        ValueError: If ``cost`` gives a negative or non-finite number of seconds.
    """
    values = {
        name: float(distribution.to_internal_repr(trial.params[name]))
        for name, distribution in trial.distributions.items()
        if not distribution.single()
    }
    step, loss = math.nan, math.nan
    if trial.state == TrialState.COMPLETE and trial.value is not None:
        loss = trial.value
    elif trial.state == TrialState.PRUNED and trial.last_step is not None:
        step = float(trial.last_step)
        loss = trial.intermediate_values[trial.last_step]
    return Row(
        number=trial.number,
        finished=trial.datetime_complete or datetime.max,
        status=_STATUS[trial.state],
        loss=-loss if maximize else loss,
        seconds=cost_of(trial, cost),
        step=step,
        values=values,
        constraints=dict(trial.constraints),
        distributions={n: d for n, d in trial.distributions.items() if not d.single()},
    )


def cost_of(trial: FrozenTrial, cost: Cost) -> float:
    """Seconds of a trial, NaN where unknown.

    ``"duration"`` and None read the trial's duration less the sampler's own time in it; a duration
    of zero belongs to a trial that was added, not run, and is unknown.

    Raises:
        ValueError: For a negative, infinite or NaN cost.
    """
    if cost is None or cost == "duration":
        duration = trial.duration
        if duration is None or duration.total_seconds() == 0.0:
            return math.nan
        return max(duration.total_seconds() - _private.read_overhead(trial), 0.0)
    value = cost(trial) if callable(cost) else trial.user_attrs.get(cost)
    if value is None:
        return math.nan
    if isinstance(value, bool) or not isinstance(value, int | float | np.number):
        raise ValueError(_complaint(trial, cost, value))
    if not math.isfinite(value) or value < 0:
        raise ValueError(_complaint(trial, cost, value))
    return float(value)


def _complaint(trial: FrozenTrial, cost: Cost, value: object) -> str:
    return (
        f"cost={cost!r} gave {value!r} for trial {trial.number}: it must be a finite number of"
        " seconds >= 0, or None where it is unknown."
    )
