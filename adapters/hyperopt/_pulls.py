"""Trials as pulls of arms: the input of policies, the notes of a search, and the report."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from hyperopt import STATUS_OK, Domain, Trials

from automl_plugins.bandits.records import Pulls, loss_range
from automl_plugins.bandits.report import ArmReport
from automl_plugins.bandits.successive_filtering import Round, Unit
from automl_plugins.records.trial import Status, Trial, as_number, oldest_running

from ._arms import Arms, Split, arms_of
from ._private import all_documents
from ._pyll import active_among
from .space import refuse_general
from .trials import (
    FINISHED,
    UNFINISHED,
    Document,
    check_labels,
    check_trials,
    has_changed,
    note_of,
    read_trial,
    source_of,
    values_of,
)

#: Source of the seconds charged for a trial: None, a key of the result, or a function of it.
Cost = str | Callable[[dict[str, Any]], float] | None


@dataclass(frozen=True)
class Row:
    """A trial as a pull of an arm."""

    document: Document
    trial: Trial  # the document as it was read, with the seconds charged for it
    arm: int
    key: tuple[Any, ...]  # identity of the configuration within the arm
    source: tuple[Any, ...]  # see ``source_of``


@dataclass(frozen=True)
class Situation:
    """All pulls of the arms of a search so far."""

    arms: Arms
    known: Sequence[Document]  # all trials
    rows: Sequence[Row]  # finished pulls in the order of their ends, then the running ones
    reward_range: tuple[float, float] | None  # the best and the worst possible loss
    exhausted: frozenset[int] = frozenset()  # arms whose suggest function proposes nothing

    def without(self, arm: int) -> Situation:
        """A copy in which ``arm`` is exhausted, too."""
        return replace(self, exhausted=self.exhausted | {arm})

    @cached_property
    def pulls(self) -> Pulls:
        """The pulls in the form that policies take."""
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
        """Identities of the configurations of each arm that were tried or are running."""
        tried: dict[int, set[Any]] = defaultdict(set)
        for row in self.rows:
            tried[row.arm].add(row.key)
        return tried

    @property
    def left(self) -> list[int]:
        """Indices of the arms that have untried configurations and are not exhausted."""
        sizes = enumerate(arm.size for arm in self.arms.arms)
        untried = [i for i, size in sizes if size is None or len(self.tried.get(i, ())) < size]
        return [i for i in untried if i not in self.exhausted]

    @property
    def best(self) -> float:
        """The least loss of a complete trial; infinite if there is none."""
        complete = self.pulls.records.status == Status.COMPLETE
        return float(self.pulls.losses[complete].min(initial=math.inf))

    def spent(self, unit: Unit) -> float:
        """Number of trials, running ones included, or the sum of their known seconds."""
        if unit == "trials":
            return float(len(self.rows))
        return math.fsum(s for row in self.rows if not math.isnan(s := row.trial.seconds))


_MOST_READ = 8  # ways to read the same trials: ``hyperopt.mix`` may ask several algorithms in turn

#: A cache: by trials, a list of (way to read them, rows by number of the trial), the newest last.
_READ: WeakKeyDictionary[Trials, list[tuple[object, dict[int, Row]]]] = WeakKeyDictionary()


def _rows_read(trials: Trials, arms: Arms, cost: Cost, *, inactive: bool) -> dict[int, Row]:
    """The rows that were read in the same way, by number; the caller adds the new ones.

    With ``inactive`` the labels of all branches are part of a configuration.
    """
    known, key = _READ.get(trials, []), (arms, cost, inactive)
    found = next((kept for kept in known if kept[0] == key), (key, {}))
    # A new list: threads may share the old one.
    _READ[trials] = [*(kept for kept in known if kept is not found), found][-_MOST_READ:]
    return found[1]


def read_pulls(
    trials: Trials,
    arms: Arms,
    *,
    domain: Domain | None = None,
    cost: Cost = None,
    reward_range: tuple[float, float] | None = None,
    new: Sequence[Document] = (),
    all_alive: bool = False,
) -> Situation:
    """Read the trials as pulls; cancelled trials and those outside all arms are left out.

    A trial is read again only if its state or its result has changed. Points that a user gives may
    have labels of all branches; with the ``domain`` only the active ones are part of the
    configuration, and trials of another search space raise a ValueError. ``cost`` gives the
    seconds of a finished trial, see ``charge``; ``new`` are trials that are not inserted yet.
    Unless ``all_alive``, a running trial that many others have overtaken is left out: its worker
    is presumed dead.
    """
    read = _rows_read(trials, arms, cost, inactive=domain is None)
    documents = [*all_documents(trials), *new]
    rows = []
    for document in documents:
        row = read.get(document["tid"])
        if row is None or row.document is not document or has_changed(document, row.source):
            values = values_of(document)
            if domain is not None:
                check_labels(f"Trial {document['tid']}", values, domain.params)
                values = active_among(values, domain.expr)
            arm = arms.find(values)
            if arm is None or document["state"] not in UNFINISHED + FINISHED:
                continue
            source = source_of(document)  # first: a worker may change it while it is read
            trial = read_trial(document)
            if trial.status != Status.RUNNING:
                trial = replace(trial, seconds=charge(document, cost, trial.seconds))
            row = Row(document, trial, arm, arms.arms[arm].key(values), source)
            read[document["tid"]] = row
        rows.append(row)
    if not all_alive:
        done = [row.trial.number for row in rows if row.trial.status != Status.RUNNING]
        oldest = oldest_running(np.array(done, dtype=np.int64))
        rows = [r for r in rows if r.trial.status != Status.RUNNING or r.trial.number >= oldest]
    return Situation(arms, documents, sorted(rows, key=lambda row: row.trial.place), reward_range)


def last_search(documents: Sequence[Document]) -> dict[str, Any] | None:
    """What the last search has noted about itself, ``"search"`` of a note; None if nothing."""
    newest = sorted(documents, key=lambda document: -int(document["tid"]))
    return next((note_of(d)["search"] for d in newest if "search" in note_of(d)), None)


def read_rounds(documents: Sequence[Document], search: Mapping[str, Any]) -> list[Round]:
    """The rounds that a search has stored, in order."""
    notes = [note_of(document) for document in sorted(documents, key=lambda d: int(d["tid"]))]
    own = [note for note in notes if note.get("search") == search]
    return [Round.from_dict(data) for note in own for data in note.get("opened", ())]


def charge(document: Document, cost: Cost, measured: float) -> float:
    """Seconds charged for a finished trial: by ``cost``, else ``measured``.

    A failed trial may have no cost. Seconds that ``boasf_fmin`` has noted replace an invalid cost,
    which has ended that search. Any other cost must be a finite number >= 0, else ValueError.
    """
    if cost is None:
        return measured
    result = document["result"]
    failed = result.get("status") != STATUS_OK
    noted = not math.isnan(as_number(note_of(document).get("seconds")))
    try:
        given = cost(result) if callable(cost) else result.get(cost)
    except Exception:
        if not failed and not noted:
            raise
        given = None
    charged = as_number(given)
    if charged >= 0 and math.isfinite(charged):
        return charged
    if noted or (given is None and failed):
        return measured
    raise ValueError(
        f"cost={cost!r} must give seconds >= 0, got {given!r} for trial {document['tid']} with the"
        f" result {result!r}."
    )


def arm_report(
    trials: Trials,
    space: Any = None,
    *,
    label: str | None = None,
    split: Split | None = None,
    max_arms: int = 32,
    reward_range: tuple[float, float] | None = None,
    cost: Cost = None,
) -> ArmReport:
    """How a search shared its trials and seconds among its arms.

    Arms and rounds are those of the last ``boasf``, ``bandit`` or ``weighted`` on these trials.
    After ``fmin`` with any other algorithm, or with ``label`` or ``split``, the arms are the
    options of a choice or the cells of the space, and there are no rounds.

    Args:
        trials: What the search left.
        space: Its search space; needed only if the trials do not store the arms.
        label: The choice whose options are the arms; None is the root.
        split: See ``boasf``.
        max_arms: See ``boasf``.
        reward_range: The best and the worst possible loss, in either order; None scales by the
            losses.
        cost: See ``boasf``; None takes the cost of the search if it was a key of the result.

    Raises:
        TypeError: For anything but trials, or a ``ConfigurationSpace``.
        ValueError: If the space is needed and missing, has no such choice, or is not the space of
            the trials.
    """
    check_trials("arm_report", trials)
    documents = all_documents(trials)
    search = last_search(documents) if label is None and split is None else None
    domain = None
    if search is not None:
        arms = Arms.from_dict(search["arms"])
    elif space is not None:
        refuse_general("arm_report", space)
        domain = Domain(None, space, pass_expr_memo_ctrl=False)
        arms = arms_of(domain, label=label, split=split, max_arms=max_arms).arms
    else:
        raise ValueError(
            "The trials do not store the arms: pass the search space, arm_report(trials, space)."
        )
    if cost is None and search is not None:
        cost = search.get("cost")
    situation = read_pulls(
        trials, arms, domain=domain, cost=cost, reward_range=loss_range(reward_range)
    )
    rounds = [] if search is None else read_rounds(documents, search)
    return ArmReport.from_pulls(
        arms.names,
        situation.pulls,
        situation.left,
        rounds=rounds,
        notes=arms.notes,
        unit="trials" if search is None or search.get("budget_seconds") is None else "seconds",
    )
