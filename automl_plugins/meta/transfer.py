"""Surrogates with a memory, made for any search space."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from automl_plugins import surrogates
from automl_plugins.arrays import FloatArray
from automl_plugins.newest import Newest

if TYPE_CHECKING:
    from automl_plugins.meta.memories import AlignedMemory
    from automl_plugins.meta.meta_learner import MetaLearner
    from automl_plugins.spaces.vector_space import VectorSpace
    from automl_plugins.surrogates import Blended, Sources, TwoStageTransfer

_KEPT = 5_000  # predictions that are remembered


class TransferTemplate:
    """Makes ``TwoStageTransfer`` surrogates; the first stage is fitted once for each space.

    Arguments and their errors are those of ``TwoStageTransfer``, or of ``TwoStageTransfer.paper``.
    """

    def __init__(self, memory: AlignedMemory, *, paper: bool = False, **options: Any) -> None:
        kind = surrogates.TwoStageTransfer
        self.memory = memory
        self._surrogate = kind.paper(**options) if paper else kind(**options)
        self._surrogate.check_arguments()
        self._sources: Newest[Sources] = Newest()

    def for_space(self, space: VectorSpace) -> TwoStageTransfer:
        """An unfitted surrogate for features of ``space``.

        Raises:
            MemoryMismatch: If the space can use no run of the memory.
        """
        made = copy.copy(self._surrogate)
        made.sources = self._sources.get(
            space,
            lambda: surrogates.Sources.fit(
                self.memory.on(space), kernel=made.kernel, max_rows=made.max_rows
            ),
        )
        return made

    def best_recorded(self, space: VectorSpace) -> FloatArray:
        """The best complete run of each earlier task (n, d), n <= S, distinct."""
        dataset = self.memory.on(space)
        losses = dataset.complete_losses
        best = [
            rows.start + int(np.nanargmin(losses[rows]))
            for rows in dataset.rows
            if not np.isnan(losses[rows]).all()
        ]
        vectors = space.canonical(dataset.vectors[best])
        _, first = np.unique(space.keys(vectors), return_index=True)
        return vectors[np.sort(first)]  # in the order of the tasks, not of their hashes

    def __repr__(self) -> str:
        return f"TwoStageTransfer({self.memory!r})"


class LearnedLosses:
    """The predictions of a fitted meta-learner for one task; shared by copies.

    A search asks for the same configurations again, most of all in a finite space, and 500 trees
    take their time: predictions are remembered.
    """

    def __init__(self, learner: MetaLearner, meta_features: Mapping[str, float] | None) -> None:
        self.learner = learner
        self.meta_features = meta_features
        self._known: dict[bytes, float] = {}

    def __call__(self, X: FloatArray) -> FloatArray:
        """Predicted losses (m,) of features ``X`` (m, f), in standard deviations of a task."""
        keys = [row.tobytes() for row in np.ascontiguousarray(X)]
        known = self._known  # threads share it: it is replaced, never emptied
        new = [i for i, key in enumerate(keys) if key not in known]
        predicted = np.array([known.get(key, np.nan) for key in keys])
        if new:
            predicted[new] = self.learner.predict_features(X[new], self.meta_features)
        if len(known) + len(new) > _KEPT:
            self._known = known = {}
        known.update((keys[i], float(predicted[i])) for i in new)
        return predicted

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_known": {}}


class BlendedTemplate:
    """Makes ``Blended`` surrogates; the meta-learner is fitted once for each space.

    Args:
        memory: The earlier tasks.
        surrogate: See ``Blended``, also for the errors.
        meta_features: Meta-features of the new task. If it has none that a task of the memory
            has, the meta-learner ignores them and predicts the mean over the tasks.
    """

    def __init__(
        self,
        memory: AlignedMemory,
        surrogate: Any = None,
        *,
        meta_features: Mapping[str, float] | None = None,
    ) -> None:
        self.memory = memory
        self._surrogate = surrogates.Blended(None, surrogate)
        self._surrogate.check_arguments()
        self.meta_features = dict(meta_features or {})
        self._earlier: Newest[LearnedLosses] = Newest()

    def for_space(self, space: VectorSpace) -> Blended:
        """See ``TransferTemplate``; the name in its shares says which bundled memory it is of."""
        made = copy.copy(self._surrogate)
        made.earlier = self._earlier.get(space, lambda: self._learn(space))
        made.name = self.memory.name_in(space)
        return made

    def _learn(self, space: VectorSpace) -> LearnedLosses:
        from automl_plugins.meta.meta_learner import MetaLearner

        dataset = self.memory.on(space)
        described = {name: v for name, v in self.meta_features.items() if np.isfinite(v)}
        if not set(described) & set(dataset.meta_feature_names()):
            described = {}
            # Trees that see configurations only predict the mean over the tasks, in one pass.
            tasks = tuple(replace(task, meta_features={}) for task in dataset.tasks)
            dataset = replace(dataset, tasks=tasks)
        return LearnedLosses(MetaLearner().fit(dataset), described or None)

    def __repr__(self) -> str:
        return f"Blended({self.memory!r})"
