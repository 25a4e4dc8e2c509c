"""What becomes of a search whose memory does not fit: one warning, then another proposer."""

from __future__ import annotations

import logging

import numpy as np

from automl_plugins.meta.alignment import MemoryMismatch
from automl_plugins.meta.memories import AlignedMemory
from automl_plugins.proposers.proposal import FloatArray, Proposal, Proposer, SurrogateFailure
from automl_plugins.records.history import History
from automl_plugins.records.trial import Status
from automl_plugins.spaces.vector_space import VectorSpace
from automl_plugins.streams import Streams

_logger = logging.getLogger(__name__)

_MOST_OPTIONS = 10  # values of a parameter that each may open a branch
_ENOUGH = 30  # complete evaluations after which no further branch is waited for


class WithFallback:
    """Asks a proposer that learns from a memory, and another one where that cannot answer.

    It cannot where the search space can use nothing of the memory, or where a model fails. The
    first time a warning says so. Every proposal asks again: a search space that is discovered by
    the trials may grow into one that fits.

    Args:
        proposer: Learns from the memory.
        fallback: Proposes in its place.
        memory: The memory.
    """

    def __init__(self, proposer: Proposer, fallback: Proposer, *, memory: AlignedMemory) -> None:
        self.proposer = proposer
        self.fallback = fallback
        self.memory = memory
        self._warned = False

    @property
    def timed(self) -> bool:
        """Whether the seconds of the history matter."""
        return self.proposer.timed or self.fallback.timed

    def check(self, space: VectorSpace) -> None:
        """Raise what would be warned of, where the search space is known beforehand.

        Raises:
            MemoryMismatch: If the space can use nothing of the memory.
        """
        self.memory.on(space)

    def propose(
        self,
        space: VectorSpace,
        history: History,
        streams: Streams,
        k: int,
        fixed: FloatArray | None = None,
    ) -> Proposal:
        """The configuration to evaluate as number ``k``; see ``ModelBasedProposer.propose``.

        Raises:
            SurrogateFailure: As the fallback.
        """
        try:
            self.memory.on(space)
            return self.proposer.propose(space, history, streams, k, fixed)
        except MemoryMismatch as mismatch:
            if mismatch.final or not may_branch(space, history):
                self._warn(mismatch)
        except SurrogateFailure as failure:
            self._warn(failure)
        return self.fallback.propose(space, history, streams, k, fixed)

    def _warn(self, trouble: Exception) -> None:
        if not self._warned:
            self._warned = True
            _logger.warning(f"{trouble} The search continues without its memory.")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.proposer!r}, {self.fallback!r})"


def may_branch(space: VectorSpace, history: History) -> bool:
    """Whether trials may yet ask for other parameters: some option has no complete evaluation.

    What a memory knows may belong to an option that no trial has taken.
    """
    complete = history.vectors[history.status == Status.COMPLETE]
    if len(complete) >= _ENOUGH:
        return False
    return any(
        len(np.unique(column[~np.isnan(column)])) < size
        for column, size in zip(complete.T, space.n_values, strict=True)
        if size <= _MOST_OPTIONS
    )
