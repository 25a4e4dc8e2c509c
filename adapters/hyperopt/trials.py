"""Hyperopt's trials: their documents, and how the core reads them.

``misc["automl_plugins"]`` of a document holds the state of a search: the proposal, the arm, the
round, the seconds charged, and, in the first trial of a round, its outcome. Hyperopt ignores it.
If an arm is itself divided into arms, ``inner`` has the arm and the round inside it, and so on.
"""

from __future__ import annotations

import logging
import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from operator import is_
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from hyperopt import (
    JOB_STATE_DONE,
    JOB_STATE_ERROR,
    JOB_STATE_NEW,
    JOB_STATE_RUNNING,
    STATUS_OK,
    Domain,
    Trials,
)

from automl_plugins._arguments import check_kind
from automl_plugins.arrays import FloatArray
from automl_plugins.records.history import History
from automl_plugins.records.trial import (
    Columns,
    Status,
    Trial,
    as_number,
    as_seconds,
    read_outcome,
    sortable,
    unix_time,
)
from automl_plugins.spaces.values import choices_of, encoder, plain
from automl_plugins.spaces.vector_space import VectorSpace

from ._private import all_documents
from .space import ROUNDED, PyllSpace

logger = logging.getLogger(__name__)

Document = dict[str, Any]

NOTE = "automl_plugins"  # our key in misc
PROPOSAL = "proposal"  # key of a proposer's note there
_INNER = "inner"  # key of the note of a method of arms that runs inside an arm
_OF_ARMS = ("arm", "why", "round", "opened", "search", _INNER)  # keys that a method of arms writes
#: Key in ``misc`` of documents made by ``initial_trials``: the design, and a suggestion's score
#: (None where it has none) and reason.
INITIAL_DESIGN = "initial_design"

UNFINISHED = (JOB_STATE_NEW, JOB_STATE_RUNNING)
FINISHED = (JOB_STATE_DONE, JOB_STATE_ERROR)


# --- documents -------------------------------------------------------------------------------


def new_document(trials: Trials, domain: Domain, tid: int, values: Mapping[str, Any]) -> Document:
    """A document as Hyperopt's own suggest functions make it, with every label of the space."""
    misc = {
        "tid": tid,
        "cmd": domain.cmd,
        "workdir": domain.workdir,
        "idxs": {label: [tid] if label in values else [] for label in domain.params},
        "vals": {label: [values[label]] if label in values else [] for label in domain.params},
    }
    (document,) = trials.new_trial_docs([tid], [None], [domain.new_result()], [misc])
    written: Document = document
    return written


def begin(trials: Trials, document: Document) -> Document:
    """Insert a new trial as running; return its document in ``trials``, which may be a copy."""
    trials.insert_trial_docs([document])
    trials.refresh()
    # From the end, for an earlier trial may have the same number, see ``_number``.
    inserted: Document = next(d for d in reversed(trials.trials) if d["tid"] == document["tid"])
    inserted["state"] = JOB_STATE_RUNNING
    return inserted


def values_of(document: Mapping[str, Any]) -> dict[str, Any]:
    """Values of the active hyperparameters of a trial, by label."""
    return {k: v[0] for k, v in document["misc"]["vals"].items() if len(v)}


def note_of(document: Mapping[str, Any]) -> dict[str, Any]:
    """The note of this package in a document; empty if there is none."""
    note = document["misc"].get(NOTE)
    return note if isinstance(note, dict) else {}


def outer_note(noted: Mapping[str, Any]) -> dict[str, Any]:
    """The note of a method of arms that contains what the suggest function inside ``noted``."""
    proposal = {PROPOSAL: noted[PROPOSAL]} if PROPOSAL in noted else {}
    others = {key: value for key, value in noted.items() if key != PROPOSAL}
    return proposal | ({_INNER: others} if others else {})


def inner_note(note: Mapping[str, Any]) -> dict[str, Any]:
    """The note for the suggest function inside an arm: its own, and entries on no arm."""
    shared = {key: value for key, value in note.items() if key not in _OF_ARMS}
    own = note.get(_INNER)
    return {**shared, **own} if isinstance(own, dict) else shared


def check_trials(function: str, trials: Any) -> None:
    """Raise TypeError for anything but trials."""
    check_kind(function, trials, Trials, "hyperopt.Trials, those that fmin was given as trials=")


def check_labels(trial: str, drawn: Collection[str], labels: Collection[str]) -> None:
    """Raise ValueError if a ``trial`` has labels, but none of the labels of the space."""
    if drawn and labels and not set(labels) & set(drawn):
        raise ValueError(
            f"{trial} has the labels {', '.join(drawn)}; the search space has"
            f" {', '.join(labels)}. A search of another space needs trials of its own."
        )


def finished_documents(trials: Trials) -> list[Document]:
    """Documents of the trials that have ended, in the order of their ends."""
    done = [d for d in all_documents(trials) if d["state"] in FINISHED]
    return sorted(done, key=lambda d: (sortable(unix_time(d["refresh_time"])), d["tid"]))


# --- trials of the core ----------------------------------------------------------------------


def read_trial(document: Document) -> Trial:
    """Read one trial that is not cancelled.

    ==============================================  ========
    state and result of the document                status
    ==============================================  ========
    done, status "ok" and a finite loss             COMPLETE
    done otherwise: status "fail", NaN, infinite    FAILED
    error                                           FAILED
    new, running                                    RUNNING
    ==============================================  ========

    A note of ``write_history`` in a result overrides the status "fail": Hyperopt has no pruned
    trials. The seconds are those noted in ``misc``, else ``result["seconds"]``, else the time
    between ``book_time`` and ``refresh_time``, which are whole milliseconds in UTC: the first of
    them that is a duration. Values are by label; for ``hp.choice`` the value is the index of the
    option.
    """
    result = document["result"]
    started, ended = unix_time(document["book_time"]), unix_time(document["refresh_time"])
    took = round(ended - started, 6)  # floats of Unix times are not exact to the microsecond
    status, loss, budget = Status.FAILED, as_number(result.get("loss")), math.nan
    if document["state"] in UNFINISHED:
        status = Status.RUNNING
    elif document["state"] == JOB_STATE_DONE and result.get("status") == STATUS_OK:
        status = Status.COMPLETE
    elif (noted := read_outcome(result.get(NOTE))) is not None:
        status, loss, budget = noted
    return Trial(
        {name: plain(value) for name, value in values_of(document).items()},
        status,
        loss,
        math.nan
        if status == Status.RUNNING
        else as_seconds(note_of(document).get("seconds"), result.get("seconds"), took),
        step=None if math.isnan(budget) else budget,
        number=document["tid"],
        started=started,
        ended=ended,
    )


#: What a trial was read from (``source_of``), the trial and its vector; None if it is left out.
_Read = tuple[tuple[Any, ...], Trial, FloatArray | None]


class TrialReader:
    """Reads trials of one search space as the history that proposers read, each only once.

    Cancelled trials are left out. A number outside its range, as of an earlier search of a wider
    one, stays outside: its loss is not the loss of the end. A trial is left out if it has a number
    outside the listed values, an unknown option, or a value that is no number; the first of the
    last two kinds is logged as a warning. An active hyperparameter without a value is missing.
    Labels outside the space are ignored, as by TPE: an arm of a bandit sees documents of the whole
    space.
    """

    def __init__(self, known: PyllSpace) -> None:
        self.known = known
        self.vectors = VectorSpace(known.space)
        listed = (h for h in known.space.values() if choices_of(h) is not None)
        self._listed = {h.name: encoder(h) for h in listed}
        self._read: WeakKeyDictionary[Trials, dict[int, _Read]] = WeakKeyDictionary()
        self._warned = False

    def read(self, trials: Trials, documents: Iterable[Document]) -> History:
        """The documents of ``trials`` as a history; ValueError for trials of another space."""
        numbered = _number(d for d in documents if d["state"] in FINISHED + UNFINISHED)
        known = self._read.setdefault(trials, {})
        for number, document in numbered:
            if number not in known or has_changed(document, known[number][0]):
                source = source_of(document)  # first: a worker may change it while it is read
                vector = self._encode(values_of(document))
                known[number] = source, replace(read_trial(document), number=number), vector
        read = [known[number][1:] for number, _ in numbered]
        kept = [(trial, vector) for trial, vector in read if vector is not None]
        kept.sort(key=lambda pair: pair[0].place)
        # Without trials the array is flat, but a history needs vectors (0, d).
        vectors = np.array([vector for _, vector in kept], dtype=np.float64)
        vectors, missing = self.vectors.find_missing(vectors.reshape(len(kept), self.vectors.d))
        trials_read = Columns(trial for trial, _ in kept)
        return History.of_trials(trials_read, vectors=vectors, missing=missing)

    def _encode(self, drawn: Mapping[str, Any]) -> FloatArray | None:
        """The vector (d,) of values by label; inactive ones are not removed yet.

        None for a number beyond those listed, and for what ``PyllSpace.value`` refuses.
        """
        check_labels("A trial", drawn, self.vectors.names)
        vector = np.full(self.vectors.d, math.nan)
        for column, name in enumerate(self.vectors.names):
            if name not in drawn:
                continue
            try:
                value = self.known.value(name, drawn[name])
            except ValueError as error:
                if not self._warned:
                    self._warned = True
                    logger.warning(f"{error} Trials like this one are left out.")
                return None
            vector[column] = self._entry(name, value)
            if not math.isfinite(vector[column]):
                return None
        return vector

    def _entry(self, name: str, value: Any) -> float:
        """The entry of a value; NaN for a number beyond those listed."""
        if name in self._listed:
            return self._listed[name](value)
        hyperparameter: Any = self.known.space[name]
        legal = min(max(value, hyperparameter.lower), hyperparameter.upper)
        end = float(hyperparameter.to_vector(legal))
        if hyperparameter.log and value <= 0:  # without a logarithm it counts as the lower end
            return end
        entry = float(hyperparameter.to_vector(value))  # of a normal distribution: unbounded
        return entry if abs(entry - end) > ROUNDED else end


def _number(documents: Iterable[Document]) -> list[tuple[int, Document]]:
    """Documents with unique numbers, mostly their own.

    Hyperopt gives a number twice if trials that raised were read from a file: it takes the count
    of trials as the next number. The later ones get negative numbers here.
    """
    found: list[tuple[int, Document]] = []
    seen: Counter[int] = Counter()
    for document in documents:
        tid = document["tid"]
        # Below 0, as no number of Hyperopt's, and all different while these are below 2^32.
        found.append((-1 - tid - seen[tid] * 2**32 if seen[tid] else tid, document))
        seen[tid] += 1
    return found


def unique_number(tid: int, documents: Sequence[Document]) -> int:
    """The number of a new trial among ``documents``: its own, or one after all of them.

    Hyperopt may give a number twice, see ``_number``. A proposal depends on the number, so these
    trials would all have the same configuration.
    """
    # The number of documents grows with each trial, so the next one gets another number.
    given = {document["tid"] for document in documents}
    return max(given) + len(documents) if tid in given else tid


def source_of(document: Document) -> tuple[Any, ...]:
    """The objects that a trial is read from: if one is replaced, the trial has changed."""
    result = document["result"]
    facts = (result.get("status"), result.get("loss"), result.get("seconds"))
    return *facts, result, document["state"], document["refresh_time"], document["misc"]["vals"]


def has_changed(document: Document, source: tuple[Any, ...]) -> bool:
    """Whether a trial has changed since it was read from ``source``."""
    return not all(map(is_, source, source_of(document)))
