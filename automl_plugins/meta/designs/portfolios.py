"""Designs of configurations that complement each other."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from ConfigSpace import ConfigurationSpace
from scipy.spatial.distance import cdist

from ..dataset import MetaDataset
from ..task_features import TaskDescription, TaskFeatures, distances
from . import task_regression
from .making import UNDESCRIBED, checked, told
from .performance import WIDTH, Performance, coordinates, performance
from .selection import NO_GAIN, greedy
from .suggestion import Design

FloatArray = npt.NDArray[np.float64]

# Chosen on tables of four sources: benchmark_designs.py.
_SHIFT = 0.7  # of what meta-features predict
_FADE = 0.7  # of the trust in it, with each pick
_DOUBT = 0.1  # deviation of a regret on a new task after one known task
_SIMILARITY = 1.0  # width of the weights of tasks, in median distances


def portfolio(
    space: ConfigurationSpace, memory: MetaDataset, task: TaskDescription, k: int
) -> Design:
    """The configurations that together are best on the known tasks, whatever the new one is.

    Scores are mean regrets over tasks, each scaled to [0, 1].

    Args:
        space: The search space.
        memory: Runs of earlier tasks.
        task: Not used.
        k: Number of configurations.

    Raises:
        ValueError: As in ``top_k``.
    """
    memory = checked(space, memory, k)
    known = performance(memory)
    return _portfolio("portfolio", memory, known, known.filled, _equal(memory, k))


def diverse(
    space: ConfigurationSpace, memory: MetaDataset, task: TaskDescription, k: int
) -> Design:
    """A portfolio of what the new task may be like.

    Every known task is a scenario of the new one, twice: as it is, and as what is predicted from
    the meta-features plus how wrong that prediction was on the known task. So good meta-features
    move the scenarios together and useless ones leave a plain portfolio. The first pick trusts
    the prediction, each further one 0.7 times as much as the one before; similar tasks weigh
    more. Losses are smoothed over neighbouring configurations first, which a plain portfolio
    lacks: it picks what was best on some task by luck. Where tasks are few the picks keep apart:
    the new task may change the difference between two regrets, the more the farther apart the two
    configurations lie, by 0.1 over the number of tasks at most. Scores are expected regrets.

    Args:
        space: The search space.
        memory: Runs of earlier tasks.
        task: Meta-features of the new task; without any it is the smoothed portfolio, and the
            design's notes say so.
        k: Number of configurations.

    Raises:
        ValueError: As in ``top_k``.
    """
    memory = checked(space, memory, k)
    known = performance(memory)
    plain = known.smoothed
    described = TaskFeatures(memory, task)
    if not described.useful:
        return undescribed("diverse", memory, known, plain, k, _doubt(memory, known))
    predicted = task_regression.predict(described.known, plain, described.new)
    moved = plain + _SHIFT * (predicted.new - predicted.known)
    moved -= moved.min(axis=1, keepdims=True)
    likely = similarity(described)
    trust = _FADE ** np.arange(k)[:, None]
    weights = np.hstack([trust * likely, (1.0 - trust) * likely])
    scenarios = np.vstack([moved, plain])
    return _portfolio("diverse", memory, known, scenarios, weights, doubt=_doubt(memory, known))


def undescribed(
    method: str,
    memory: MetaDataset,
    known: Performance,
    scenarios: FloatArray,
    k: int,
    doubt: FloatArray | None = None,
) -> Design:
    """The portfolio of a task of which nothing is known, which its notes say."""
    return _portfolio(method, memory, known, scenarios, _equal(memory, k), (UNDESCRIBED,), doubt)


def _doubt(memory: MetaDataset, known: Performance) -> FloatArray:
    """Standard deviation (C, C) of what the new task adds to a difference between two regrets.

    Few tasks say little of what a new one may be like, and near-copies fare alike on any.
    """
    places = coordinates(memory.vector_space, known.candidates)
    alike = np.exp(-0.5 * cdist(places, places, metric="sqeuclidean") / WIDTH**2)
    return np.asarray(_DOUBT / len(memory.tasks) * np.sqrt(1.0 - alike))


def _equal(memory: MetaDataset, k: int) -> FloatArray:
    return np.full((k, len(memory.tasks)), 1.0 / len(memory.tasks))


def similarity(described: TaskFeatures) -> FloatArray:
    """Probability of each known task (T,): a Gaussian of its distance to the new one."""
    gaps = distances(described.known, described.new[None, :])[:, 0]
    typical = float(np.median(gaps))
    weights = np.exp(-0.5 * (gaps / (_SIMILARITY * typical)) ** 2) if typical > 0 else gaps + 1.0
    return np.asarray(weights / weights.sum())


def _portfolio(
    method: str,
    memory: MetaDataset,
    known: Performance,
    scenarios: FloatArray,
    weights: FloatArray,
    notes: tuple[str, ...] = (),
    doubt: FloatArray | None = None,
) -> Design:
    """The greedy choice; scenario s is that of task s modulo their number."""
    picks = greedy(scenarios, weights, doubt)
    n_tasks = len(memory.tasks)
    best = np.full(len(scenarios), np.inf)
    reasons: list[str] = []
    for pick, row in zip(picks, weights, strict=False):
        if not reasons:
            reasons.append(f"expected regret {float(row @ scenarios[:, pick]):.3f}, the least")
        else:
            gain = row * np.maximum(best - scenarios[:, pick], 0.0)
            by_task = gain.reshape(-1, n_tasks).sum(axis=0)
            most = [t for t in np.argsort(-by_task, kind="stable")[:3].tolist() if by_task[t] > 0]
            helped = " and ".join(memory.tasks[t].name for t in most)
            if gain.sum() > NO_GAIN:
                reasons.append(
                    f"lowers the expected regret by {gain.sum():.3f}, on tasks like {helped}"
                )
            else:
                mean = float(row @ scenarios[:, pick])
                why = "the least of the rest" if doubt is None else "unlike the picks before it"
                reasons.append(f"expected regret {mean:.3f}, {why}")
        best = np.minimum(best, scenarios[:, pick])
    scores = np.einsum("ks,sk->k", weights[: len(picks)], scenarios[:, picks])
    return told(method, memory, known.candidates[picks], scores, reasons, notes)
