"""Trials as pulls of arms: what policies are shown."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any
from weakref import WeakKeyDictionary

from hyperopt import STATUS_OK, Trials

from automl_plugins.bandits.records import Pulls
from automl_plugins.bandits.successive_filtering import Round, Unit
from automl_plugins.records.trial import Status, Trial, as_number

from ._arms import Arms
from .trials import FINISHED, UNFINISHED, Document, note_of, read_trial, values_of

#: None, a key of the result, or a function of the result: the seconds an evaluation is charged.
Cost = str | Callable[[dict[str, Any]], float] | None


@dataclass(frozen=True)
class Row:
    """A trial as a pull of an arm.

    Attributes:
        document: The trial.
        trial: The same, read; its seconds are those that it is charged.
        arm: Number of the arm.
        key: Identity of the configuration within the arm.
    """

    document: Document
    trial: Trial
    arm: int
    key: tuple[Any, ...]


@dataclass(frozen=True)
class Situation:
    """All pulls of the arms of a search so far.

    Attributes:
        arms: The arms.
        known: The trials.
        rows: Finished pulls in the order in which they finished, then the running ones.
        reward_range: The best and the worst loss there may be, if known.
    """

    arms: Arms
    known: Sequence[Document]
    rows: Sequence[Row]
    reward_range: tuple[float, float] | None

    @cached_property
    def pulls(self) -> Pulls:
        """The same for policies."""
        return Pulls.from_losses(
            [row.arm for row in self.rows],
            [row.trial.loss for row in self.rows],
            seconds=[row.trial.seconds for row in self.rows],
            status=[row.trial.status for row in self.rows],
            reward_range=self.reward_range,
        )

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

    @property
    def left(self) -> list[int]:
        """Numbers of the arms that have configurations not tried yet."""
        sizes = enumerate(arm.size for arm in self.arms.arms)
        return [i for i, size in sizes if size is None or len(self.tried.get(i, ())) < size]

    @property
    def best(self) -> float:
        """The least loss of a complete trial; infinite if there is none."""
        trials = (row.trial for row in self.rows)
        return min((t.loss for t in trials if t.status == Status.COMPLETE), default=math.inf)

    def spent(self, unit: Unit) -> float:
        """Trials, running ones included, or known seconds so far."""
        if unit == "trials":
            return float(len(self.rows))
        return math.fsum(s for row in self.rows if not math.isnan(s := row.trial.seconds))


class PullReader:
    """Reads trials as pulls, each again only when its state or its result has changed.

    Args:
        arms: The arms.
        cost: What a finished trial cost, see ``charge``.
    """

    def __init__(self, arms: Arms, cost: Cost = None) -> None:
        self.arms, self.cost = arms, cost
        self._known: dict[int, tuple[Any, Any, Row]] = {}  # read again when it is lost

    def read(
        self, documents: Sequence[Document], reward_range: tuple[float, float] | None = None
    ) -> Situation:
        """The trials that are pulls; cancelled ones and those of no arm are left out."""
        rows = (self._read(document) for document in documents)
        found = sorted((row for row in rows if row is not None), key=lambda row: row.trial.place)
        return Situation(self.arms, documents, found, reward_range)

    def _read(self, document: Document) -> Row | None:
        state, result, tid = document["state"], document["result"], document["tid"]
        known_state, known_result, row = self._known.get(tid, (None, None, None))
        same = known_state == state and known_result is result
        if row is not None and row.document is document and same:
            return row
        values = values_of(document)
        arm = self.arms.find(values)
        if arm is None or state not in UNFINISHED + FINISHED:
            return None
        key = self.arms.arms[arm].key(values)
        trial = read_trial(document)
        if trial.status != Status.RUNNING:
            trial = replace(trial, seconds=charge(document, self.cost, trial.seconds))
        row = Row(document, trial, arm, key)
        self._known[tid] = state, result, row
        return row


_READERS: WeakKeyDictionary[Trials, PullReader] = WeakKeyDictionary()


def reader_of(trials: Trials, arms: Arms, cost: Cost = None) -> PullReader:
    """The reader that was used for these trials and arms the last time, or a new one."""
    reader = _READERS.get(trials)
    if reader is None or reader.arms is not arms or reader.cost is not cost:
        reader = _READERS[trials] = PullReader(arms, cost)
    return reader


def last_search(documents: Sequence[Document]) -> dict[str, Any] | None:
    """What the last search noted of itself; None if none has."""
    newest = sorted(documents, key=lambda document: -int(document["tid"]))
    return next((note_of(d)["search"] for d in newest if "search" in note_of(d)), None)


def read_rounds(documents: Sequence[Document], search: Mapping[str, Any]) -> list[Round]:
    """Rounds that a search has stored, in their order."""
    notes = [note_of(document) for document in sorted(documents, key=lambda d: int(d["tid"]))]
    own = [note for note in notes if note.get("search") == search]
    return [Round.from_dict(data) for note in own for data in note.get("opened", ())]


def charge(document: Document, cost: Cost, measured: float) -> float:
    """Seconds that a finished trial is charged; one that failed need not say them.

    Args:
        document: The trial.
        cost: None, a key of the result, or a function of the result.
        measured: Where ``cost`` says nothing.

    Raises:
        ValueError: If ``cost`` finds no seconds in the result of a trial that did not fail.
    """
    if cost is None:
        return measured
    result = document["result"]
    failed = result.get("status") != STATUS_OK
    try:
        given = cost(result) if callable(cost) else result.get(cost)
    except Exception:
        if not failed:
            raise
        given = None
    charged = as_number(given)
    if charged >= 0 and math.isfinite(charged):
        return charged
    if given is None and failed:
        return measured
    raise ValueError(
        f"cost={cost!r} must give seconds >= 0, got {given!r} for trial {document['tid']} with the"
        f" result {result!r}."
    )
