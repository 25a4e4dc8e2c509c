"""Trials as the ``History`` that proposers read, column by column."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import cached_property
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt
from ConfigSpace.hyperparameters import IntegerHyperparameter, OrdinalHyperparameter
from hyperopt import JOB_STATE_DONE, STATUS_OK, Trials

from automl_plugins.records.history import History
from automl_plugins.records.trial import Status
from automl_plugins.spaces.ranges import MOST_EXACT, scale_of
from automl_plugins.spaces.vector_space import VectorSpace

from ._documents import Document
from ._pulls import FINISHED, UNFINISHED, number, seconds_of
from .space import PyllSpace

FloatArray = npt.NDArray[np.float64]


class TrialReader:
    """Reads trials of one search space, the values of each only once.

    What the states and results of Hyperopt mean:

    ==============================================  ========
    done, status "ok" and a finite loss             COMPLETE
    done otherwise: status "fail", NaN, infinite    FAILED
    error                                           FAILED
    new, running                                    RUNNING
    cancelled                                       left out
    ==============================================  ========

    Rows are in the order in which trials finished: by ``refresh_time``, at equal ones by number.
    Trials without it were there from the beginning. Values beyond a range are clipped to it, an
    active hyperparameter that a document lacks is missing, and labels that are not of the space
    are not read, as with TPE: an arm of a bandit sees documents of the whole space.

    Args:
        known: The search space.
    """

    def __init__(self, known: PyllSpace) -> None:
        self.known = known
        self.vectors = VectorSpace(known.space)
        self._rows: WeakKeyDictionary[Trials, dict[int, tuple[Any, FloatArray]]] = (
            WeakKeyDictionary()
        )

    def read(self, trials: Trials, documents: Iterable[Document], *, timed: bool) -> History:
        """The trials as a history.

        Args:
            trials: What the documents belong to; only told apart by it.
            documents: All trials.
            timed: Whether to read seconds: ``result["seconds"]``, else the time between
                ``book_time`` and ``refresh_time``; those of unfinished trials are unknown.

        Raises:
            ValueError: For trials that are not of this search space.
        """
        read = [d for d in documents if d["state"] in FINISHED + UNFINISHED]
        read.sort(key=_place)
        status = [_status(d) for d in read]
        complete = [s == Status.COMPLETE for s in status]
        vectors = self._encoded(trials, read)
        return History.of(
            self.vectors.activate(vectors),
            [
                number(d["result"]["loss"]) if ok else math.nan
                for d, ok in zip(read, complete, strict=True)
            ],
            seconds=[
                seconds_of(d) if timed and s != Status.RUNNING else math.nan
                for d, s in zip(read, status, strict=True)
            ],
            status=status,
            number=[d["tid"] for d in read],
            missing=self._missing(vectors),
        )

    def _encoded(self, trials: Trials, documents: Sequence[Document]) -> FloatArray:
        """Vectors (n, d) with NaN where a document has no value."""
        known = self._rows.setdefault(trials, {})
        new = [d for d in documents if known.get(d["tid"], (None,))[0] is not d["misc"]["vals"]]
        if new:
            rows = self.encode([d["misc"]["vals"] for d in new])
            for document, row in zip(new, rows, strict=True):
                known[document["tid"]] = document["misc"]["vals"], row
        shape = len(documents), self.vectors.d  # of none, or of no hyperparameters
        return np.array([known[d["tid"]][1] for d in documents], np.float64).reshape(shape)

    def encode(self, vals: Sequence[Mapping[str, Sequence[Any]]]) -> FloatArray:
        """Vectors (n, d) of the ``vals`` of documents, inactive ones not removed.

        Raises:
            ValueError: For an option that the space does not have, or no label of it at all.
        """
        for row in vals:
            drawn = [name for name, values in row.items() if len(values)]
            if drawn and self._names and self._names.isdisjoint(drawn):
                raise ValueError(
                    f"A trial has the labels {', '.join(drawn)}; the search space has"
                    f" {', '.join(self.vectors.names)}. A search of another space needs trials of"
                    " its own."
                )
        encoded = np.empty((len(vals), self.vectors.d))
        for column, name in enumerate(self.vectors.names):
            given = [row.get(name, ()) for row in vals]
            origin = self._origins.get(name, 0)
            encoded[:, column] = self._column(
                name, np.array([float(v[0] - origin) if len(v) else math.nan for v in given])
            )
        return encoded

    def _column(self, name: str, drawn: FloatArray) -> FloatArray:
        hyperparameter: Any = self.known.space[name]
        there = ~np.isnan(drawn)
        vector = np.full(len(drawn), np.nan)
        values = drawn[there]
        if name in self.known.options:
            n = len(self.known.options[name])
            wrong = (values < 0) | (values >= n)
            if wrong.any():
                raise ValueError(
                    f"A trial has option {int(values[wrong][0])} of {name!r}, which has {n}"
                    " options. A search of another space needs trials of its own."
                )
            vector[there] = np.floor(values)
        elif isinstance(hyperparameter, OrdinalHyperparameter):
            origin = self._origins.get(name, 0)
            legal = np.array([v - origin for v in hyperparameter.sequence], dtype=np.float64)
            vector[there] = np.abs(values[:, None] - legal).argmin(axis=1)
        else:
            values = np.clip(values, hyperparameter.lower, hyperparameter.upper)
            if isinstance(hyperparameter, IntegerHyperparameter) and not scale_of(hyperparameter):
                values = np.rint(values).astype(np.int64)
            vector[there] = hyperparameter.to_vector(values)
        return vector

    def _missing(self, vectors: FloatArray) -> npt.NDArray[np.bool_]:
        """Mask (n, d) of active hyperparameters without a value."""
        absent = np.isnan(vectors)
        if not absent.any():
            return absent
        wanted = self.vectors.activate(np.where(absent, self._defaults, vectors))
        return absent & ~np.isnan(wanted)

    @cached_property
    def _names(self) -> frozenset[str]:
        return frozenset(self.vectors.names)

    @cached_property
    def _origins(self) -> dict[str, int]:
        """First value of sequences of integers that are too large for floats, by label."""
        found = {}
        for name in self._names:
            hyperparameter = self.known.space[name]
            if isinstance(hyperparameter, OrdinalHyperparameter):
                first = hyperparameter.sequence[0]
                if isinstance(first, int) and abs(first) >= MOST_EXACT // 2:
                    found[name] = first
        return found

    @cached_property
    def _defaults(self) -> FloatArray:
        space = self.known.space
        defaults = [space[n].to_vector(space[n].default_value) for n in self.vectors.names]
        return np.array(defaults, dtype=np.float64)


def _place(document: Document) -> tuple[bool, datetime, int]:
    running = document["state"] in UNFINISHED
    finished = None if running else document["refresh_time"]
    return running, finished or datetime.min, document["tid"]


def _status(document: Document) -> Status:
    if document["state"] in UNFINISHED:
        return Status.RUNNING
    result = document["result"]
    ended_well = document["state"] == JOB_STATE_DONE and result.get("status") == STATUS_OK
    if ended_well and math.isfinite(number(result.get("loss"))):
        return Status.COMPLETE
    return Status.FAILED
