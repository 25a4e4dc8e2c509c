"""Designs that follow the meta-learner (van Hoof 2018, thesis 6.3)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from ConfigSpace import ConfigurationSpace

from automl_plugins.meta.designs.design import UNDESCRIBED, Design, align_memory, make_design
from automl_plugins.meta.tasks import TaskDescription, TaskFeatures

from ..dataset import MetaDataset
from ..meta_learner import MetaLearner

FloatArray = npt.NDArray[np.float64]


def top_k(
    space: ConfigurationSpace,
    memory: MetaDataset,
    task: TaskDescription,
    k: int,
    *,
    learner: MetaLearner | None = None,
) -> Design:
    """The k configurations of the least predicted loss; scores are standardised losses.

    Args:
        space: The search space.
        memory: Runs of earlier tasks, in this or another space.
        task: Meta-features of the new task.
        k: Number of configurations.
        learner: A learner fitted on ``memory.aligned(space)``; None fits one.

    Raises:
        ValueError: For a memory that shares no hyperparameter with the space, or k below 1.
    """
    return _by_learner("top_k", space, memory, task, k, learner, lambda p: -p)


def bad_start(
    space: ConfigurationSpace,
    memory: MetaDataset,
    task: TaskDescription,
    k: int,
    *,
    learner: MetaLearner | None = None,
) -> Design:
    """The k configurations of the largest predicted loss; see ``top_k``."""
    return _by_learner("bad_start", space, memory, task, k, learner, lambda p: p)


def delta(
    space: ConfigurationSpace,
    memory: MetaDataset,
    task: TaskDescription,
    k: int,
    *,
    delta: float = 0.1,
    learner: MetaLearner | None = None,
) -> Design:
    """The k configurations of the largest (1 - p)^delta + p; see ``delta_scores`` and ``top_k``.

    For 0 < delta < 1 the best predicted one scores least, as the worst does: the maximum lies at
    p = 0.92 for delta 0.1. And the score never looks at the configurations, so the picks can be
    near-copies. ``diverse`` mends both. ``delta`` 0 is ``top_k``; the thesis used 0.1 and 0.2.

    Raises:
        ValueError: As in ``top_k``, and for a negative or infinite delta.
    """
    if not 0 <= delta < np.inf:
        raise ValueError(f"delta must be finite and >= 0, got {delta}.")

    def rank(predicted: FloatArray) -> FloatArray:
        return delta_scores(predicted, delta)

    return _by_learner("delta", space, memory, task, k, learner, rank)


def delta_scores(predicted: FloatArray, delta: float) -> FloatArray:
    """The thesis's trade between rank and spread (thesis 6.3), larger is better.

    score = (1 - p)^delta + p, p the predictions (n,) of losses scaled so that 1 is the best. With
    delta = 0 the first term is 1 everywhere (0^0 = 1), so the order is that of p.
    """
    low, high = predicted.min(), predicted.max()
    p = (high - predicted) / (high - low) if high > low else np.ones(len(predicted))
    return np.asarray((1.0 - p) ** delta + p)


def _by_learner(
    method: str,
    space: ConfigurationSpace,
    memory: MetaDataset,
    task: TaskDescription,
    k: int,
    learner: MetaLearner | None,
    rank: Callable[[FloatArray], FloatArray],
) -> Design:
    memory = align_memory(space, memory, k)
    learner = MetaLearner().fit(memory) if learner is None else learner
    candidates = memory.distinct[0]
    if method != "bad_start":  # what never completed fails, whatever its neighbours do
        candidates = candidates[memory.completed]
    predicted = learner.predict(candidates, task)
    order = np.argsort(-rank(predicted), kind="stable")[:k]
    place = np.argsort(np.argsort(predicted, kind="stable"))
    reasons = [
        f"predicted to be number {place[i] + 1} of the {len(candidates)} known configurations"
        for i in order
    ]
    notes = () if TaskFeatures(memory.tasks, task).useful else (UNDESCRIBED,)
    return make_design(method, memory, candidates[order], predicted[order], reasons, notes)
