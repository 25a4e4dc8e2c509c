"""Proposers that wrap another one: with a fallback, or after suggestions of a memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from automl_plugins._arguments import check_integer
from automl_plugins.arrays import FloatArray
from automl_plugins.meta.coverage import MemoryMismatch
from automl_plugins.meta.dataset import MetaDataset
from automl_plugins.meta.designs import diverse
from automl_plugins.meta.memories import AlignedMemory
from automl_plugins.newest import Newest
from automl_plugins.proposers.proposal import (
    Proposal,
    Proposer,
    Repeats,
    SurrogateFailure,
    as_failure,
)
from automl_plugins.records.history import History
from automl_plugins.records.trial import Status
from automl_plugins.spaces.vector_space import VectorSpace
from automl_plugins.streams import Streams

_MOST_OPTIONS = 10  # most values of a parameter whose values may open branches
_ENOUGH = 10  # complete evaluations after which no further branch is expected


class WithFallback:
    """Asks a proposer that learns from a memory, and a fallback if that proposer cannot propose.

    It cannot if the search space can use nothing of the memory, or if a model fails; the first
    time of each, a warning is logged. Every proposal asks it again: a search space that the trials
    discover may grow until the memory fits.
    """

    def __init__(self, proposer: Proposer, fallback: Proposer, *, memory: AlignedMemory) -> None:
        self.proposer = proposer
        self.fallback = fallback
        self.memory = memory
        self._warned_of: set[type[Exception]] = set()

    def propose(
        self,
        space: VectorSpace,
        history: History,
        streams: Streams,
        k: int,
        fixed: FloatArray | None = None,
    ) -> Proposal:
        """See ``Proposer.propose``; failures of a model are raised by the fallback only."""
        memory = self.memory
        try:
            if not memory.waits(space, history):
                memory.on(space)
                # Before a trial is complete, the space may be that of the memory itself.
                complete = bool((history.status == Status.COMPLETE).any())
                if complete and not may_branch(space, history):
                    memory.settle(space)
                return self.proposer.propose(space, history, streams, k, fixed)
        except MemoryMismatch as mismatch:
            # Otherwise the memory may fit after some more trials: no warning yet.
            lasting = mismatch.final or not may_branch(space, history)
            if lasting and not mismatch.expected:
                self._warn(mismatch)
        except SurrogateFailure as failure:
            self._warn(failure)
        return self.fallback.propose(space, history, streams, k, fixed)

    def _warn(self, trouble: Exception) -> None:
        if type(trouble) not in self._warned_of:
            self._warned_of.add(type(trouble))
            self.memory.logger.warning(
                f"{trouble} The search continues without its memory while this lasts."
            )

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.proposer!r}, {self.fallback!r})"


def check_fits(memory: AlignedMemory, space: VectorSpace) -> None:
    """Check that a memory fits a search space, unless a mismatch is expected.

    Raises:
        MemoryMismatch: If the space can use nothing of the memory, and that is not expected.
    """
    try:
        memory.on(space)
        memory.settle(space)
    except MemoryMismatch as mismatch:
        if not mismatch.expected:
            raise


def may_branch(space: VectorSpace, history: History) -> bool:
    """Whether trials may still ask for further parameters: some option has no complete evaluation.

    The memory may know the parameters of exactly that option.
    """
    if (history.status == Status.COMPLETE).sum() >= _ENOUGH:
        return False
    few = space.n_values <= _MOST_OPTIONS
    return bool((history.n_tried < space.n_values)[few].any())


def as_remembered(
    history: History, dataset: MetaDataset, vectors: FloatArray, fixed: FloatArray | None = None
) -> History:
    """The history without differences in parameters that no run of the memory has.

    A configuration of the memory that was evaluated with another value of such a parameter is not
    a new one. So the value becomes the one that all ``vectors`` (n, d) of the memory share, or the
    ``fixed`` one (d,).
    """
    unknown = dataset.unknown
    if not unknown.any() or not len(vectors):
        return history
    # The choice among the algorithms of several memories has other values in other vectors.
    shared = np.where((vectors == vectors[0]).all(axis=0), vectors[0], np.nan)
    if fixed is not None:
        shared = np.where(np.isnan(fixed), shared, fixed)
    known = history.vectors
    replaced = unknown & ~np.isnan(shared) & ~np.isnan(known)
    # With another value of a switch, others are active.
    vectors = dataset.vector_space.activate(np.where(replaced, shared, known))
    return replace(history, vectors=vectors)


def _as_recorded(dataset: MetaDataset, vectors: FloatArray) -> FloatArray:
    """Suggestions (n, d) with one value for all in parameters that no run of the memory has."""
    made = dataset.arbitrary & ~np.isnan(vectors)
    # Any common value will do: here the largest. ``initial`` is for no rows.
    return np.where(made, np.fmax.reduce(vectors, initial=0.0), vectors)


def _with_fixed(dataset: MetaDataset, vectors: FloatArray, fixed: FloatArray) -> FloatArray:
    """Suggestions (n, d) with the ``fixed`` values (d,) of parameters that no run has."""
    free = dataset.unknown & ~np.isnan(fixed) & ~np.isnan(vectors)
    changed = np.where(free, fixed, vectors)
    # On another branch the suggestion would lose values, or lack some.
    activated = dataset.vector_space.activate(changed)
    same = (np.isnan(activated) == np.isnan(vectors)).all(axis=1)
    return np.where(same[:, None], changed, vectors)


class SuggestedStart:
    """Proposes the suggestions of the design ``diverse``, each once, then asks another proposer.

    A suggestion that contradicts values already decided is skipped, unless it does so only in
    parameters that no run of the memory has: in a memory of one algorithm, say, the choice of it.

    Args:
        memory: The earlier tasks.
        proposer: The proposer after the suggestions.
        n_suggested: Evaluations of any origin before ``proposer`` is asked; 0 asks it at once.
        meta_features: Meta-features of this task; None if unknown.

    Raises:
        ValueError: For a negative number of suggestions.
    """

    def __init__(
        self,
        memory: AlignedMemory,
        proposer: Proposer,
        *,
        n_suggested: int,
        meta_features: Mapping[str, float] | None = None,
    ) -> None:
        check_integer("n_suggested", n_suggested, 0)
        self.memory = memory
        self.proposer = proposer
        self.n_suggested = n_suggested
        self.meta_features = dict(meta_features) if meta_features else None
        self._suggested: Newest[FloatArray] = Newest()

    def propose(
        self,
        space: VectorSpace,
        history: History,
        streams: Streams,
        k: int,
        fixed: FloatArray | None = None,
    ) -> Proposal:
        """See ``Proposer.propose``."""
        if len(history.before(k)) < self.n_suggested:
            dataset = self.memory.on(space)
            vectors = self._suggestions(space, dataset)
            if fixed is not None:
                vectors = _with_fixed(dataset, vectors, fixed)
            recorded = _as_recorded(dataset, vectors)
            seen = as_remembered(history, dataset, recorded, fixed)
            fresh = ~Repeats(space, seen, k).among(recorded) & space.agrees(vectors, fixed)
            if fresh.any():
                # As suggested: ``recorded`` serves comparisons only.
                vector = vectors[np.flatnonzero(fresh)[0]].copy()
                return Proposal(vector, "design", shares={self.memory.name_in(space): 1.0})
        proposal = self.proposer.propose(space, history, streams, k, fixed)
        # There is a memory, so a model that does not use it gives it no share.
        return proposal if proposal.shares is not None else replace(proposal, shares={})

    def _suggestions(self, space: VectorSpace, dataset: MetaDataset) -> FloatArray:
        def suggest() -> FloatArray:
            with as_failure("the design of the memory"):
                found = diverse(space.space, dataset, self.meta_features, self.n_suggested)
            vectors = np.array([suggestion.vector for suggestion in found])
            return space.canonical(vectors.reshape(-1, space.d))

        return self._suggested.get(dataset, suggest)
