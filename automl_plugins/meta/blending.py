"""Blended optimisation on a memory, in whatever search space it is asked for."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from automl_plugins.surrogates.base import FloatArray
from automl_plugins.surrogates.blended import Blended

if TYPE_CHECKING:
    from automl_plugins.meta.meta_learner import MetaLearner
    from automl_plugins.meta.task_memory import AlignedMemory
    from automl_plugins.spaces.vector_space import VectorSpace

_KEPT = 5_000  # predictions that are remembered


class LearnedLosses:
    """What a fitted meta-learner predicts for one task; shared by copies.

    A search asks for the same configurations again, most of all in a finite space, and 500 trees
    take their time: predictions are remembered.

    Args:
        learner: The fitted meta-learner.
        meta_features: Those of the task; None predicts the mean over the known tasks.
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
        if len(new) == len(keys):
            predicted = self.learner.predict_features(X, self.meta_features)
        else:
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
        surrogate: The voter that learns from the search itself, see ``Blended``.
        meta_features: Those of the new task; None, or none that a task of the memory has, ranks
            by the mean over the tasks, and meta-features are not looked at.
        learner: Settings of the meta-learner; None takes its defaults.
        **options: Further arguments of ``Blended``.

    Raises:
        ValueError: For illegal arguments.
    """

    def __init__(
        self,
        memory: AlignedMemory,
        surrogate: Any = None,
        *,
        meta_features: Mapping[str, float] | None = None,
        learner: MetaLearner | None = None,
        **options: Any,
    ) -> None:
        self.memory = memory
        self.meta_features = dict(meta_features or {})
        self.learner = learner
        self._surrogate = Blended(None, surrogate, **options)
        self._surrogate.check_arguments()
        self._last: tuple[VectorSpace, LearnedLosses] | None = None

    def for_space(self, space: VectorSpace) -> Blended:
        """An unfitted surrogate for features of ``space``.

        Raises:
            ValueError: If the space can use no run of the memory.
        """
        last = self._last  # read once: threads share the template
        if last is None or last[0] is not space:
            self._last = last = (space, self._learnt(space))
        made = copy.copy(self._surrogate)
        made.earlier = last[1]
        return made

    def _learnt(self, space: VectorSpace) -> LearnedLosses:
        from automl_plugins.meta.meta_learner import MetaLearner  # the memory imports surrogates

        dataset = self.memory.on(space)
        told = {name: v for name, v in self.meta_features.items() if np.isfinite(v)}
        if not set(told) & set(dataset.meta_feature_names()):
            told = {}
            # Trees that see configurations only predict the mean over the tasks, in one pass.
            tasks = tuple(replace(task, meta_features={}) for task in dataset.tasks)
            dataset = replace(dataset, tasks=tasks)
        learner = MetaLearner() if self.learner is None else self.learner.clone()
        return LearnedLosses(learner.fit(dataset), told or None)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_last": None}

    def __repr__(self) -> str:
        return f"Blended({self.memory!r})"
