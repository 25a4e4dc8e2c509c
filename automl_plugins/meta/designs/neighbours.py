"""Designs of the best configurations of the nearest tasks."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import numpy.typing as npt
from ConfigSpace import ConfigurationSpace

from ..dataset import MetaDataset
from ..meta_learner import rank_correlation
from ..task_features import TaskDescription, TaskFeatures, distances
from .making import checked, told
from .performance import Performance, performance
from .portfolios import similarity, undescribed
from .suggestion import Design

FloatArray = npt.NDArray[np.float64]


def knn(
    space: ConfigurationSpace, memory: MetaDataset, task: TaskDescription, k: int = 25
) -> Design:
    """The best configuration of each of the k nearest tasks, by L1 distance of meta-features.

    A configuration that a nearer task has contributed is not repeated; a farther task takes its
    place. Scores are expected regrets.

    Args:
        space: The search space.
        memory: Runs of earlier tasks; those without meta-features are left aside.
        task: Meta-features of the new task; without any it is the portfolio, and the design's
            notes say so.
        k: Number of configurations (auto-sklearn: 25).

    Raises:
        ValueError: As in ``top_k``.
    """
    memory = checked(space, memory, k)
    known = performance(memory)
    described = TaskFeatures(memory, task)
    if not described.useful:
        return undescribed("knn", memory, known, known.filled, k)
    gaps = distances(described.known, described.new[None, :])[:, 0]
    order = [int(t) for t in np.argsort(gaps, kind="stable") if described.described[t]]
    notes: tuple[str, ...] = ()
    if n := len(memory.tasks) - len(order):
        notes = (f"{n} of {len(memory.tasks)} known tasks have no meta-features: left aside.",)
    expected = similarity(described) @ known.filled
    return _nearest(
        "knn", memory, known, k, order, expected, lambda t: f"distance {gaps[t]:.2f}", notes
    )


def opt(
    space: ConfigurationSpace,
    memory: MetaDataset,
    task: TaskDescription,
    k: int,
    *,
    vectors: FloatArray,
    losses: FloatArray,
) -> Design:
    """``knn`` by the true rank correlation of losses, which only a benchmark knows.

    Args:
        space: The search space.
        memory: Runs of earlier tasks.
        task: Not used.
        k: Number of configurations.
        vectors: Configurations (n, d) of the new task, all that matter.
        losses: Their true losses (n,).

    Raises:
        ValueError: As in ``top_k``.
    """
    memory = checked(space, memory, k)
    known = performance(memory)
    keys = memory.vector_space.keys(np.asarray(vectors, dtype=np.float64))
    place = {int(key): i for i, key in enumerate(keys)}
    own = [place.get(int(key), -1) for key in memory.vector_space.keys(known.candidates)]
    here = np.array([i >= 0 for i in own])
    truth = np.asarray(losses, dtype=np.float64)[np.array(own)[here]]
    tau = np.array([rank_correlation(row[here], truth) for row in known.filled])
    order = np.argsort(-np.nan_to_num(tau, nan=-1.0), kind="stable").tolist()
    expected = known.filled.mean(axis=0)
    return _nearest(
        "opt", memory, known, k, order, expected, lambda t: f"rank correlation {tau[t]:.2f}"
    )


def _nearest(
    method: str,
    memory: MetaDataset,
    known: Performance,
    k: int,
    order: Iterable[int],
    expected: FloatArray,
    reason: Callable[[int], str],
    notes: tuple[str, ...] = (),
) -> Design:
    """The best configurations of tasks, in their order, none twice."""
    found: dict[int, str] = {}
    for t in order:
        if len(found) < k and not np.isnan(known.measured[t]).all():
            best = int(np.nanargmin(known.measured[t]))
            found.setdefault(best, f"the best on {memory.tasks[t].name}, {reason(t)}")
    picks = list(found)
    reasons = list(found.values())
    return told(method, memory, known.candidates[picks], expected[picks], reasons, notes)
