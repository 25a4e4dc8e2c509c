"""One evaluation, as every part of the package sees it.

The adapters read a trial of their framework once, into a ``Trial``. Samplers (``History``),
memories (``TaskRecord``), comparisons (``Search``) and arms are built from trials, so they agree
on its status, its loss and its seconds.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import IntEnum
from operator import attrgetter
from typing import Any, Generic, Self, TypeVar

import numpy as np

from automl_plugins.arrays import FloatArray, IntArray
from automl_plugins.formats import format_count

FIRST_MOMENT = datetime(2010, 1, 1)
"""Moments before this one come from a simulated clock, or are unknown."""

CLOCK_START = datetime(2000, 1, 1)
"""Start of simulated clocks, and of runs whose time is not known."""

LONGEST = 1e18
"""Longest duration in seconds, beyond the age of the universe; longer ones count as unknown."""


class Status(IntEnum):
    """State of an evaluation.

    Example::

        assert TrialStatus.COMPLETE != TrialStatus.FAILED
    """

    COMPLETE = 0
    PRUNED = 1
    FAILED = 2
    RUNNING = 3

    def __str__(self) -> str:
        return self.name.lower()

    @classmethod
    def _missing_(cls, value: object) -> Status | None:
        # By name, as files and frames have it: Status("pruned").
        text = value.lower() if isinstance(value, str) else value
        return next((status for status in cls if str(status) == text), None)


def count_statuses(status: IntArray) -> str:
    """How many rows there are, and how many of each ``Status``, in words."""
    parts = [f"{n} {s}" for s in Status if (n := int((status == s).sum()))]
    return format_count(len(status), "row") + (f": {', '.join(parts)}" if parts else "")


@dataclass(frozen=True)
class Trial:
    """One evaluation.

    The rules below hold for every trial, whatever it was read from:

    * A loss is a finite number. A complete trial without one has failed: infinite losses and NaN
      are how objectives report a failure. A failed or running trial has no loss; a pruned one has
      the last loss that it reported, if that is finite.
    * Seconds are a number above 0, at most ``LONGEST``. Anything else is unknown: a zero comes
      from a clock whose ticks are longer than the trial.

    Attributes:
        config: Values by name, as the framework shows them; inactive hyperparameters are absent.
        status: Its state.
        loss: To be minimised; NaN without one.
        seconds: Its cost; NaN where unknown, a lower bound for pruned trials.
        finished: Seconds from the start of the search to its end; NaN where unknown.
        curve: Intermediate losses by step, ascending.
        step: Step or budget at which it was evaluated; None at the full budget.
        number: Identifies it in its search; -1 where it has none.
        started: When it began, Unix time; NaN where unknown.
        ended: When it ended, Unix time; NaN where unknown.
        constraints: Values of constraints by name; feasible iff all <= 0.

    Example::

        RecordedTrial({"C": 0.5}, TrialStatus.COMPLETE, loss=0.3, seconds=2.0)
    """

    config: Mapping[str, Any]
    status: Status
    loss: float = math.nan
    seconds: float = math.nan
    finished: float = math.nan
    curve: Mapping[float, float] = field(default_factory=dict)
    step: float | None = None
    # Not compared: trials with the same result are equal, whatever their number and time.
    number: int = field(default=-1, compare=False)
    started: float = field(default=math.nan, compare=False)
    ended: float = field(default=math.nan, compare=False)
    constraints: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "status", Status(self.status))
        known = math.isfinite(self.loss)
        # Optuna keeps +-inf as the value of a COMPLETE trial.
        if self.status == Status.COMPLETE and not known:
            object.__setattr__(self, "status", Status.FAILED)
        if not known or self.status in (Status.FAILED, Status.RUNNING):
            object.__setattr__(self, "loss", math.nan)
        object.__setattr__(self, "seconds", as_seconds(self.seconds))

    @property
    def budget(self) -> float:
        """Step or budget of the loss; NaN at the full budget."""
        if self.step is not None:
            return float(self.step)
        if self.status == Status.PRUNED and self.curve:
            # The loss of a pruned trial is the last one that it reported.
            return max(self.curve)
        return math.nan

    @property
    def feasible(self) -> bool:
        """Whether no known constraint is violated."""
        return is_feasible(self.constraints)

    @property
    def place(self) -> tuple[bool, float, int]:
        """Sort key of trials: finished ones in the order in which they ended, then running ones.

        Trials that ended at the same moment are sorted by number. Those with an unknown end come
        first.
        """
        if self.status == Status.RUNNING:
            return True, 0.0, self.number  # without an end, the number decides
        return False, sortable(self.ended), self.number


AnyTrial = TypeVar("AnyTrial", bound=Trial)


def is_feasible(constraints: Mapping[str, float]) -> bool:
    """Whether no value is above 0; NaN, an unknown value, is not above 0."""
    return not any(value > 0 for value in constraints.values())


def violates(trial: Trial) -> bool:
    """Whether a trial is complete and violates a constraint."""
    return trial.status == Status.COMPLETE and not trial.feasible


def fail_violating(trials: Iterable[AnyTrial]) -> list[AnyTrial]:
    """The trials for code without constraints: a trial that violates one becomes FAILED."""
    return [replace(t, status=Status.FAILED) if violates(t) else t for t in trials]


def sortable(time: float) -> float:
    """The time as a sort key: an unknown time, NaN, sorts before all others."""
    return -math.inf if math.isnan(time) else time


MOST_RUNNING = 128
"""A running trial is ignored once this many trials with higher numbers have finished.

The trial of a killed worker is never closed and looks like a long one. If an ignored trial
finishes after all, it counts again.
"""


def oldest_running(finished: IntArray | FloatArray) -> float:
    """Running trials with lower numbers than this are ignored, see ``MOST_RUNNING``.

    ``finished`` are the numbers (n,) of the finished trials, in any order.
    """
    if len(finished) < MOST_RUNNING:
        return -math.inf
    # The least of the MOST_RUNNING largest numbers; not sorted, as each proposal asks for it.
    return float(np.partition(finished, -MOST_RUNNING)[-MOST_RUNNING])


def in_order(trials: Iterable[AnyTrial]) -> list[AnyTrial]:
    """Trials sorted by ``Trial.place``."""
    return sorted(trials, key=lambda trial: trial.place)


def as_number(value: Any) -> float:
    """A recorded value as a number; NaN for texts, truth values, None and anything else."""
    if value is None or isinstance(value, str | bytes | bool | np.bool_):
        return math.nan
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):  # an integer may be too large for a float
        return math.nan


def finite_or_none(value: Any) -> float | None:
    """A recorded value as a finite number, which JSON keeps; None for anything else."""
    number = as_number(value)
    return number if math.isfinite(number) else None


def finite_parts(given: Any) -> dict[str, float] | None:
    """Finite numbers by name, largest first; None for anything but a mapping."""
    if not isinstance(given, Mapping):
        return None
    legal = {
        str(n): part for n, share in given.items() if (part := finite_or_none(share)) is not None
    }
    # Stable: equal parts keep the order in which they were written.
    return dict(sorted(legal.items(), key=lambda item: -item[1]))


def note_outcome(status: Status, loss: float, budget: float) -> dict[str, Any]:
    """Status, loss and budget as plain data, for frameworks without pruned trials and budgets.

    Empty for a complete or failed trial at the full budget, which every framework can express.
    """
    if status != Status.PRUNED and math.isnan(budget):
        return {}
    facts = {"loss": finite_or_none(loss), "budget": finite_or_none(budget)}
    return {"status": int(status), **facts}


def read_outcome(note: Any) -> tuple[Status, float, float] | None:
    """Status, loss and budget that ``note_outcome`` has noted; None for anything else."""
    # ``as_number`` refuses truth values: True equals 1, which is PRUNED.
    status = as_number(note.get("status")) if isinstance(note, Mapping) else math.nan
    if status not in (Status.COMPLETE, Status.PRUNED, Status.FAILED):
        return None
    return Status(int(status)), as_number(note.get("loss")), as_number(note.get("budget"))


def as_seconds(*values: Any) -> float:
    """The first recorded value that is a duration in (0, ``LONGEST``]; NaN without any."""
    return next((s for s in map(as_number, values) if 0.0 < s <= LONGEST), math.nan)


def unix_time(moment: Any, *, local: bool = False) -> float:
    """Unix time of a ``datetime``; NaN for anything else.

    Args:
        moment: Without a time zone, as the frameworks write them.
        local: Whether it is local time; else it is UTC.
    """
    if not isinstance(moment, datetime):
        return math.nan
    # A simulated clock shows the same time everywhere, so local time does not apply to it.
    if moment.tzinfo is None and not (local and moment >= FIRST_MOMENT):
        moment = moment.replace(tzinfo=UTC)
    return float(moment.timestamp())


#: Share of a budget in seconds that rounding may cost its sum: 0.1 added twenty times is not 2.0.
ROUNDING = 1e-9


def is_used_up(spent: float, budget: float) -> bool:
    """Whether ``spent`` reaches the budget, up to the rounding of its sum."""
    return spent >= (1.0 - ROUNDING) * budget


def known_seconds(seconds: FloatArray) -> FloatArray:
    """Recorded seconds (n,), NaN (unknown) in place of 0 and of more than ``LONGEST``."""
    return np.where((seconds == 0.0) | (seconds > LONGEST), np.nan, seconds)


def known_times(times: FloatArray) -> FloatArray:
    """Unix times (n,) with NaN in place of those before ``FIRST_MOMENT``."""
    return np.where(times < unix_time(FIRST_MOMENT), np.nan, times)


class Columns(Generic[AnyTrial]):
    """Trials sorted by ``Trial.place``, with their attributes as cached columns; append-only.

    Args:
        trials: All trials, in any order.

    Attributes:
        trials: The trials in their order.
        numbers: Their numbers.
        constraint_names: Names of the constraints that any of them has.
    """

    def __init__(self, trials: Iterable[AnyTrial] = ()) -> None:
        self.trials: list[AnyTrial] = []
        self.numbers: set[int] = set()
        self.constraint_names: set[str] = set()
        self._arrays: dict[tuple[str, str], tuple[Callable[[AnyTrial], float], FloatArray]] = {}
        self._append(in_order(trials))

    def extended(self, trials: Iterable[AnyTrial]) -> Self:
        """Columns with these trials added; ``self`` stays as it is."""
        new = in_order(trials)
        # A trial that ended before others, but is read after them, changes the order of rows.
        if self.trials and new and new[0].place < self.trials[-1].place:
            return type(self)([*self.trials, *new])
        longer = copy.copy(self)
        longer._append(new)
        longer._arrays = {
            key: (read, np.concatenate([known, column_of(new, read)]))
            for key, (read, known) in list(self._arrays.items())  # other threads add to it
        }
        return longer

    def _append(self, new: list[AnyTrial]) -> None:
        """Append sorted trials, without changing anything that a copy shares."""
        self.trials = [*self.trials, *new]
        self.numbers = self.numbers | {trial.number for trial in new}
        self.constraint_names = self.constraint_names.union(*(t.constraints for t in new))

    def facts(self, name: str) -> FloatArray:
        """A numeric attribute of the trials (n,)."""
        return self._array("fact", name, attrgetter(name))

    def constraint(self, name: str) -> FloatArray:
        """Values of a constraint (n,), NaN where it was not set."""
        return self._array("constraint", name, lambda t: t.constraints.get(name, math.nan))

    def _array(self, kind: str, name: str, read: Callable[[AnyTrial], float]) -> FloatArray:
        """A cached column; ``read`` returns its value for one trial."""
        if (kind, name) not in self._arrays:
            # ``read`` is kept, so that ``extended`` needs to read the new trials only.
            self._arrays[kind, name] = read, column_of(self.trials, read)
        return self._arrays[kind, name][1]

    def __iter__(self) -> Iterator[AnyTrial]:
        return iter(self.trials)

    def __len__(self) -> int:
        return len(self.trials)


def column_of(trials: Iterable[Any], read: Callable[[Any], float | None]) -> FloatArray:
    """What ``read`` returns for each trial (n,); NaN where it is None."""
    return np.array([read(trial) for trial in trials], dtype=np.float64)
