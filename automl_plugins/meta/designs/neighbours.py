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
from .performance import performance
from .portfolios import undescribed
from .suggestion import Design

FloatArray = npt.NDArray[np.float64]


def knn(
    space: ConfigurationSpace, memory: MetaDataset, task: TaskDescription, k: int = 25
) -> Design:
    """The best configuration of each of the k nearest tasks, by L1 distance of meta-features.

    A configuration that a nearer task has contributed is not repeated; a farther task takes its
    place. Scores are unknown.

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
    described = TaskFeatures(memory, task)
    if not described.useful:
        known = performance(memory)
        return undescribed("knn", memory, known, known.filled, k)
    gaps = distances(described.known, described.new[None, :])[:, 0]
    order = [int(t) for t in np.argsort(gaps, kind="stable") if described.described[t]]
    return _nearest("knn", memory, k, order, lambda t: f"distance {gaps[t]:.2f}")


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
    return _nearest("opt", memory, k, order, lambda t: f"rank correlation {tau[t]:.2f}")


def _nearest(
    method: str,
    memory: MetaDataset,
    k: int,
    order: Iterable[int],
    reason: Callable[[int], str],
) -> Design:
    """The best configurations of tasks, in their order, none twice."""
    keys = memory.vector_space.keys(memory.vectors)
    rows: dict[int, tuple[int, int]] = {}  # key: row, task
    for t in order:
        losses = memory.losses[memory.rows[t]]
        if len(rows) == k or np.isnan(losses).all():
            continue
        row = memory.rows[t].start + int(np.nanargmin(losses))
        rows.setdefault(int(keys[row]), (row, t))
    picks = [row for row, _ in rows.values()]
    reasons = [f"the best on {memory.tasks[t].name}, {reason(t)}" for _, t in rows.values()]
    unknown = np.full(len(picks), np.nan)
    return told(method, memory, memory.vectors[picks], unknown, reasons, ())
