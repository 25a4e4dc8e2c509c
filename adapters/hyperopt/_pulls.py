"""Trials as pulls of arms: what policies are shown."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any
from weakref import WeakKeyDictionary

from hyperopt import (
    JOB_STATE_DONE,
    JOB_STATE_ERROR,
    JOB_STATE_NEW,
    JOB_STATE_RUNNING,
    STATUS_OK,
    Trials,
)

from automl_plugins.bandits.records import ArmRecords, RewardScale
from automl_plugins.records.trial import Status

from ._arms import Arms
from ._documents import Document, note_of, values_of

UNFINISHED = (JOB_STATE_NEW, JOB_STATE_RUNNING)
FINISHED = (JOB_STATE_DONE, JOB_STATE_ERROR)


@dataclass(frozen=True)
class Pull:
    """A trial as an evaluation of an arm.

    Attributes:
        document: The trial.
        arm: Number of the arm.
        key: Identity of the configuration within the arm.
        loss: NaN where there is none.
        seconds: What it cost; NaN where unknown.
        status: State of the trial.
    """

    document: Document
    arm: int
    key: tuple[Any, ...]
    loss: float
    seconds: float
    status: Status

    @property
    def order(self) -> tuple[bool, datetime, int]:
        """Sorts by the moment at which it finished, running ones last and by number."""
        running = self.status == Status.RUNNING
        when = None if running else self.document["refresh_time"]
        return running, when or datetime.max, self.document["tid"]


@dataclass(frozen=True)
class Pulls:
    """All pulls of a search.

    Attributes:
        rows: Finished ones first and in the order in which they finished.
        reward_range: The best and the worst loss there may be, if known.
    """

    rows: Sequence[Pull]
    reward_range: tuple[float, float] | None

    @classmethod
    def of(cls, rows: Iterable[Pull], reward_range: tuple[float, float] | None = None) -> Pulls:
        """Pulls in order."""
        return cls(sorted(rows, key=lambda row: row.order), reward_range)

    @property
    def losses(self) -> list[float]:
        """The loss of each (n,), NaN where there is none."""
        return [row.loss for row in self.rows]

    @cached_property
    def scale(self) -> RewardScale:
        """How losses are turned into rewards."""
        return RewardScale.of(self.losses, self.reward_range)

    @cached_property
    def records(self) -> ArmRecords:
        """The same for policies."""
        return ArmRecords.of(
            [row.arm for row in self.rows],
            self.scale.rewards(self.losses),
            seconds=[row.seconds for row in self.rows],
            status=[row.status for row in self.rows],
        )

    @property
    def best(self) -> float:
        """The least loss; infinite if there is none."""
        return min((row.loss for row in self.rows if not math.isnan(row.loss)), default=math.inf)

    def documents(self, arm: int) -> list[Document]:
        """Trials of an arm in the order of their numbers."""
        own = [row.document for row in self.rows if row.arm == arm]
        return sorted(own, key=lambda document: document["tid"])

    @cached_property
    def tried(self) -> Mapping[int, set[Any]]:
        """Identities of the configurations of each arm that were tried or are being tried."""
        tried: dict[int, set[Any]] = defaultdict(set)
        for row in self.rows:
            tried[row.arm].add(row.key)
        return tried

    def left(self, arms: Arms) -> list[int]:
        """Numbers of the arms that have configurations not tried yet."""
        return [
            i
            for i, arm in enumerate(arms.arms)
            if i not in self.tried or arm.grid is None or len(self.tried[i]) < len(arm.grid)
        ]


class PullReader:
    """Reads trials as pulls, each again only when its state has changed.

    Args:
        arms: The arms.
        charge: What a finished trial cost; None is ``seconds_of``.
    """

    def __init__(self, arms: Arms, charge: Callable[[Document], float] | None = None) -> None:
        self._arms, self._charge = arms, charge or seconds_of
        self._known: dict[int, tuple[Any, Any, Pull]] = {}  # read again when it is lost

    def read(
        self, documents: Iterable[Document], reward_range: tuple[float, float] | None = None
    ) -> Pulls:
        """The trials that are pulls, in order."""
        rows = (self._read(document) for document in documents)
        return Pulls.of((row for row in rows if row is not None), reward_range)

    def _read(self, document: Document) -> Pull | None:
        state, result, tid = document["state"], document["result"], document["tid"]
        known_state, known_result, pull = self._known.get(tid, (None, None, None))
        same = known_state == state and known_result is result
        if pull is not None and pull.document is document and same:
            return pull
        seconds = self._charge(document) if state in FINISHED else None
        pull = pull_of(document, self._arms, seconds)
        if pull is not None:
            self._known[tid] = state, result, pull
        return pull


_READERS: WeakKeyDictionary[Trials, tuple[Arms, PullReader]] = WeakKeyDictionary()


def reader_of(trials: Trials, arms: Arms) -> PullReader:
    """The reader that was used for these trials and arms the last time, or a new one."""
    known, reader = _READERS.get(trials, (None, None))
    if reader is None or known is not arms:
        reader = PullReader(arms)
        _READERS[trials] = arms, reader
    return reader


def pull_of(document: Document, arms: Arms, seconds: float | None = None) -> Pull | None:
    """A trial as a pull; None for a cancelled one and for one of no arm.

    Args:
        document: The trial.
        arms: The arms.
        seconds: What it cost; None reads it, see ``seconds_of``.
    """
    state, result = document["state"], document["result"]
    values = values_of(document)
    arm = arms.find(values)
    if arm is None or state not in UNFINISHED + FINISHED:
        return None
    key = arms.arms[arm].key(values)
    if state in UNFINISHED:
        return Pull(document, arm, key, math.nan, math.nan, Status.RUNNING)
    loss = number(result.get("loss"))
    done = state == JOB_STATE_DONE and result.get("status") == STATUS_OK and math.isfinite(loss)
    cost = seconds_of(document) if seconds is None else seconds
    if done:
        return Pull(document, arm, key, loss, cost, Status.COMPLETE)
    return Pull(document, arm, key, math.nan, cost, Status.FAILED)


def seconds_of(document: Document) -> float:
    """What a finished trial cost; NaN where it is unknown.

    It is what was noted, else ``result["seconds"]``, else the time between ``book_time`` and
    ``refresh_time``.
    """
    begin, end = document["book_time"], document["refresh_time"]
    passed = math.nan if begin is None or end is None else (end - begin).total_seconds()
    known = (note_of(document).get("seconds"), document["result"].get("seconds"), passed)
    return next((s for s in map(number, known) if s >= 0 and math.isfinite(s)), math.nan)


def number(value: Any) -> float:
    """A number, or NaN."""
    try:
        return math.nan if value is None else float(value)
    except (TypeError, ValueError):
        return math.nan
