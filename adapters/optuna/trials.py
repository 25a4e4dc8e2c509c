"""The only reader of Optuna's trials."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime
from numbers import Real

from optuna.distributions import BaseDistribution
from optuna.trial import FrozenTrial, TrialState

from automl_plugins.arrays import FloatArray
from automl_plugins.records.trial import (
    Columns,
    Status,
    Trial,
    as_number,
    as_seconds,
    sortable,
    unix_time,
)

from . import _private
from ._steps import count_values
from .space import are_equal

Cost = str | Callable[[FrozenTrial], float | None] | None

SECONDS = "seconds"
"""User attribute with the seconds of a trial, if they differ from its duration."""

# A range that the user edits changes less often. Until a range counts as moving, values proposed
# for it often miss it and are sampled independently, with warnings.
_CHANGES, _WITHIN = 4, 10

STATES = {
    Status.COMPLETE: TrialState.COMPLETE,
    Status.PRUNED: TrialState.PRUNED,
    Status.FAILED: TrialState.FAIL,
}
"""Optuna's states of finished trials; trials in other states count as running."""

_STATUS = {state: status for status, state in STATES.items()}


@dataclass(frozen=True)
class UnusableCost:
    """What is wrong with a cost that is no number of seconds."""

    message: str
    is_number: bool


@dataclass(frozen=True)
class StudyTrial(Trial):
    """A trial of a study, with Optuna's internal values of its parameters."""

    values: dict[str, float] = field(default_factory=dict)  # of the parameters that could vary
    constants: dict[str, float] = field(default_factory=dict)  # of those with one value only
    distributions: dict[str, BaseDistribution] = field(default_factory=dict, repr=False)
    positions: dict[str, float] = field(default_factory=dict, repr=False)  # see ``_union``
    completed: datetime | None = field(default=None, repr=False, compare=False)  # as stored
    unusable: UnusableCost | None = field(default=None, repr=False, compare=False)

    @property
    def place(self) -> tuple[bool, float, int]:
        """As in the base class, but by the stored time, not the Unix time.

        Optuna 4 stores local time without its zone. In another time zone one hour of it may not
        exist, and Unix times would order the trials differently.
        """
        running, _, number = super().place
        return running, 0.0 if running else as_written(self.completed), number


def read_trial(trial: FrozenTrial, *, maximize: bool, cost: Cost = "duration") -> StudyTrial:
    """Read one trial.

    Its loss is the objective value, with the sign changed if the study maximises; of a pruned
    trial, the last one reported. ``cost`` defines its seconds:

    * ``"duration"`` or None: the user attribute ``SECONDS`` if that is a duration; else the time
      from start to end less that of the sampler, if a sampler of this package measured it. NaN
      for a trial that was added, not run, and for one that Optuna failed as stale.
    * the name of another user attribute, or a callable, which is called for finished trials only.
      The result must be a finite number above 0, in any unit, or None where it is unknown.
    """
    loss, sign = math.nan, -1.0 if maximize else 1.0
    if trial.state == TrialState.COMPLETE:
        loss = as_number(trial.value)
    elif trial.state == TrialState.PRUNED and trial.last_step is not None:
        loss = as_number(trial.intermediate_values[trial.last_step])
    # A running trial is read again for each proposal, and nobody asks for its curve.
    reports = trial.intermediate_values if trial.state.is_finished() else {}
    asked = trial.distributions
    # Optuna shows the values of a trial as the objective got them; models need numbers.
    internal = {n: float(d.to_internal_repr(trial.params[n])) for n, d in asked.items()}
    # A range with one value has no scale, but a condition may depend on its value.
    varied = {n: d for n, d in asked.items() if not d.single()}
    seconds = _seconds(trial) if cost is None or cost == "duration" else _cost(trial, cost)
    return StudyTrial(
        trial.params,
        _STATUS.get(trial.state, Status.RUNNING),
        sign * loss,
        math.nan if isinstance(seconds, UnusableCost) else seconds,
        curve={float(step): sign * v for step, v in sorted(reports.items())},
        number=trial.number,
        started=unix_time(trial.datetime_start, local=True),
        ended=unix_time(trial.datetime_complete, local=True),
        constraints=_private.constraints_of(trial),
        values={name: internal[name] for name in varied},
        constants={name: value for name, value in internal.items() if name not in varied},
        distributions=varied,
        positions=_private.read_positions(trial),
        completed=trial.datetime_complete,
        unusable=seconds if isinstance(seconds, UnusableCost) else None,
    )


def _seconds(trial: FrozenTrial) -> float:
    passed = math.nan
    stale = trial.state == TrialState.FAIL and _private.ended_elsewhere(trial)
    if trial.duration is not None and not stale:
        # The duration begins before the proposal, so the sampler's time is subtracted.
        passed = trial.duration.total_seconds() - _private.read_overhead(trial)
    return as_seconds(trial.user_attrs.get(SECONDS), passed)


def _cost(trial: FrozenTrial, cost: Cost) -> float | UnusableCost:
    if callable(cost) and not trial.state.is_finished():
        return math.nan
    value = None
    try:
        value = cost(trial) if callable(cost) else trial.user_attrs.get(str(cost))
    except Exception as error:  # a function of the user's may raise anything
        gave = f"raised {error!r}"
    else:
        if value is None or 0.0 <= as_number(value) < math.inf:  # 0 counts as unknown
            return as_number(value)
        gave = f"gave {value!r}"
    return UnusableCost(
        f"cost={cost!r} {gave} for trial {trial.number}: it must be a finite number above 0, in"
        " seconds or another unit, or None where it is unknown.",
        is_number=isinstance(value, Real),
    )


def as_written(moment: datetime | None) -> float:
    """Sort key of a moment, the same in every time zone; unknown ones come first."""
    return sortable(unix_time(moment))


def check_cost(cost: Cost) -> Cost:
    """Return ``cost``; raise a TypeError if seconds cannot be read with it."""
    if not (cost is None or isinstance(cost, str) or callable(cost)):
        raise TypeError(
            "cost must be None, 'duration', the name of a user attribute or a callable,"
            f" got {cost!r}."
        )
    return cost


class StudyColumns(Columns[StudyTrial]):
    """Trials of a study as columns.

    Attributes:
        distributions: The newest distribution of each parameter that varies.
        moving: Parameters whose range changed ``_CHANGES`` times within ``_WITHIN`` trials: it
            depends on other parameters, or the name has another range in each branch.
    """

    def __init__(self, trials: Iterable[StudyTrial] = ()) -> None:
        self.distributions: dict[str, BaseDistribution] = {}
        self.moving: frozenset[str] = frozenset()
        # By name, the number of trials that asked for it, and at which of them its range changed.
        self._changes: dict[str, tuple[int, tuple[int, ...]]] = {}
        super().__init__(trials)

    def _append(self, new: list[StudyTrial]) -> None:
        super()._append(new)
        # Copied first, because the shorter columns share them.
        self.distributions, self._changes = dict(self.distributions), dict(self._changes)
        for trial in new:
            for name, distribution in trial.distributions.items():
                n, changes = self._changes.get(name, (0, ()))
                # Compared with the last trial that asked for it; the first one changes nothing.
                if not are_equal(self.distributions.get(name, distribution), distribution):
                    # The last few are enough to see whether they are close together.
                    changes = (*changes, n)[-_CHANGES:]
                    if len(changes) == _CHANGES and n - changes[0] < _WITHIN:
                        self.moving |= {name}
                self._changes[name] = n + 1, changes
            self.distributions |= trial.distributions

    def values(self, name: str) -> FloatArray:
        """Internal values of a parameter (n,), NaN where it was not asked for."""
        # The range of a name may have had one value in some trials only.
        return self._array(
            "values", name, lambda t: t.values.get(name, t.constants.get(name, math.nan))
        )

    def sizes(self, name: str) -> FloatArray:
        """Number of values that the range of a parameter had (n,), NaN where it was not asked for.

        It is inf for real numbers.
        """

        def read(trial: StudyTrial) -> float:
            if name in trial.distributions:
                return count_values(trial.distributions[name])
            return 1.0 if name in trial.constants else math.nan

        return self._array("sizes", name, read)
