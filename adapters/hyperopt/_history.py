"""Trials as the ``History`` that proposers read, column by column."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt
from ConfigSpace.hyperparameters import IntegerHyperparameter, OrdinalHyperparameter
from hyperopt import Trials

from automl_plugins.records.columns import Columns
from automl_plugins.records.history import History
from automl_plugins.records.trial import Trial
from automl_plugins.spaces.ranges import MOST_EXACT, scale_of
from automl_plugins.spaces.vector_space import VectorSpace

from ._documents import Document
from .space import PyllSpace
from .trials import FINISHED, UNFINISHED, read_trial

FloatArray = npt.NDArray[np.float64]


class _Read(NamedTuple):
    """A trial that was read, with what it was read from: another object there, and it is again."""

    source: tuple[Any, ...]
    trial: Trial
    vector: FloatArray


class TrialReader:
    """Reads trials of one search space, each only once.

    Cancelled trials are left out. Values beyond a range are clipped to it, an active
    hyperparameter that a document lacks is missing, and labels that are not of the space are not
    read, as with TPE: an arm of a bandit sees documents of the whole space.

    Args:
        known: The search space.
    """

    def __init__(self, known: PyllSpace) -> None:
        self.known = known
        self.vectors = VectorSpace(known.space)
        self._read: WeakKeyDictionary[Trials, dict[int, _Read]] = WeakKeyDictionary()

    def read(self, trials: Trials, documents: Iterable[Document], *, timed: bool) -> History:
        """The trials as a history.

        Args:
            trials: What the documents belong to; only told apart by it.
            documents: All trials.
            timed: Whether their seconds count; else they are unknown.

        Raises:
            ValueError: For trials that are not of this search space.
        """
        documents = [d for d in documents if d["state"] in FINISHED + UNFINISHED]
        known = self._read.setdefault(trials, {})
        new = [d for d in documents if not _is_read(known.get(d["tid"]), d)]
        if new:
            for document, row in zip(
                new, self.encode([d["misc"]["vals"] for d in new]), strict=True
            ):
                known[document["tid"]] = _Read(_source(document), read_trial(document), row)
        read = sorted((known[d["tid"]] for d in documents), key=lambda r: r.trial.place)
        shape = len(read), self.vectors.d  # of no trials, or of no hyperparameters
        vectors = np.array([r.vector for r in read], dtype=np.float64).reshape(shape)
        history = History.of_trials(
            Columns(r.trial for r in read),
            vectors=self.vectors.activate(vectors),
            missing=self._missing(vectors),
        )
        return history if timed else replace(history, seconds=np.full(len(read), math.nan))

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


def _source(document: Document) -> tuple[Any, ...]:
    result = document["result"]
    told = (result.get("status"), result.get("loss"), result.get("seconds"))
    return *told, result, document["state"], document["refresh_time"], document["misc"]["vals"]


def _is_read(known: _Read | None, document: Document) -> bool:
    return known is not None and all(
        a is b for a, b in zip(known.source, _source(document), strict=True)
    )
