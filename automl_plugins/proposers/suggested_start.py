"""A search that begins with what a memory suggests, in whatever framework."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from automl_plugins.meta.dataset import MetaDataset
from automl_plugins.meta.designs import InitialDesign, diverse
from automl_plugins.meta.memories import AlignedMemory
from automl_plugins.proposers.maximizer import repeats
from automl_plugins.proposers.pending import taken
from automl_plugins.proposers.proposal import Proposal, Proposer
from automl_plugins.records.history import History
from automl_plugins.spaces.vector_space import VectorSpace
from automl_plugins.streams import Streams

FloatArray = npt.NDArray[np.float64]


class SuggestedStart:
    """Proposes the suggestions of a design, each once, then asks another proposer.

    A suggestion that does not fit values that are already decided is passed over.

    Args:
        memory: The earlier tasks.
        proposer: What proposes after the suggestions.
        n_suggested: Evaluations, of whatever origin, before ``proposer`` is asked; 0 asks it at
            once.
        meta_features: Those of the new task; None where they are not known.
        design: Makes the suggestions.

    Raises:
        ValueError: For a negative number of suggestions.
    """

    def __init__(
        self,
        memory: AlignedMemory,
        proposer: Proposer,
        *,
        n_suggested: int = 10,
        meta_features: Mapping[str, float] | None = None,
        design: InitialDesign = diverse,
    ) -> None:
        if isinstance(n_suggested, bool) or not isinstance(n_suggested, int) or n_suggested < 0:
            raise ValueError(f"n_suggested must be an integer >= 0, got {n_suggested!r}.")
        self.memory = memory
        self.proposer = proposer
        self.n_suggested = n_suggested
        self.meta_features = dict(meta_features) if meta_features else None
        self.design = design
        self._last: tuple[MetaDataset, FloatArray] | None = None

    @property
    def timed(self) -> bool:
        """Whether the seconds of the history matter."""
        return self.proposer.timed

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
            MemoryMismatch: If the space can use no run of the memory.
            SurrogateFailure: As the other proposer.
        """
        if len(history.before(k)) < self.n_suggested:
            vectors = self._suggestions(space)
            seen = np.sort(space.keys(history.vectors))
            fresh = ~repeats(space, vectors, seen, taken(space, history, k))
            fresh &= space.agrees(vectors, fixed)
            if fresh.any():
                vector = vectors[np.flatnonzero(fresh)[0]].copy()
                return Proposal(vector, "design", shares={"meta-learner": 1.0})
        return self.proposer.propose(space, history, streams, k, fixed)

    def _suggestions(self, space: VectorSpace) -> FloatArray:
        dataset = self.memory.on(space)
        last = self._last  # read once: threads share the proposer
        if last is None or last[0] is not dataset:
            found = self.design(space.space, dataset, self.meta_features, self.n_suggested)
            vectors = np.array([suggestion.vector for suggestion in found])
            self._last = last = (dataset, space.canonical(vectors.reshape(-1, space.d)))
        return last[1]

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_last": None}
