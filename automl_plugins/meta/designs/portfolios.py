"""Designs of configurations that complement each other."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import numpy.typing as npt
from ConfigSpace import ConfigurationSpace
from scipy.spatial.distance import cdist

from automl_plugins.meta.dataset import MetaDataset
from automl_plugins.meta.designs.design import UNDESCRIBED, Design, align_memory, make_design
from automl_plugins.meta.designs.performance import (
    WIDTH,
    Performance,
    coordinates,
    performance,
    predict,
)
from automl_plugins.meta.meta_learner import rank_correlation
from automl_plugins.meta.tasks import TaskDescription, TaskFeatures, distances
from automl_plugins.surrogates.base import expected_improvement

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

    Arguments and errors are those of ``top_k``; ``task`` is not used. Scores are mean regrets
    over tasks, each scaled to [0, 1].
    """
    memory = align_memory(space, memory, k)
    known = performance(memory)
    return _portfolio("portfolio", memory, known, known.filled, _equal(memory, k))


def diverse(
    space: ConfigurationSpace, memory: MetaDataset, task: TaskDescription, k: int
) -> Design:
    """A portfolio of what the new task may be like; arguments and errors of ``top_k``.

    Every known task is a scenario of the new one, twice: as it is, and as what is predicted from
    the meta-features plus how wrong that prediction was on the known task. So good meta-features
    move the scenarios together and useless ones leave a plain portfolio. The first pick trusts
    the prediction, each further one 0.7 times as much as the one before; similar tasks weigh
    more. Losses are smoothed over neighbouring configurations first, which a plain portfolio
    lacks: it picks what was best on some task by luck. Where tasks are few the picks keep apart:
    the new task may change the difference between two regrets, the more the farther apart the two
    configurations lie, by 0.1 over the number of tasks at most. Scores are expected regrets.

    Without meta-features of the task it is the smoothed portfolio, and the notes say so.
    """
    memory = align_memory(space, memory, k)
    known = performance(memory)
    plain = known.smoothed
    described = TaskFeatures(memory.tasks, task)
    if not described.useful:
        return plain_portfolio("diverse", memory, known, plain, k, _doubt(memory, known))
    predicted = predict(described.known, plain, described.new)
    moved = plain + _SHIFT * (predicted.new - predicted.known)
    moved -= moved.min(axis=1, keepdims=True)
    likely = similarity(described)
    trust = _FADE ** np.arange(k)[:, None]
    weights = np.hstack([trust * likely, (1.0 - trust) * likely])
    scenarios = np.vstack([moved, plain])
    return _portfolio("diverse", memory, known, scenarios, weights, doubt=_doubt(memory, known))


def plain_portfolio(
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
    return make_design(method, memory, known.candidates[picks], scores, reasons, notes)


NO_GAIN = 1e-9  # what rounding leaves of a gain of nothing


def greedy(
    scenarios: FloatArray, weights: FloatArray, doubt: npt.NDArray[np.float64] | None = None
) -> list[int]:
    """The configurations that lower the expected regret of the best one most, one by one.

    The gain has diminishing returns, so with equal weights for all picks the greedy choice is at
    least 1 - 1/e as good as the best set of k (Nemhauser, Wolsey and Fisher 1978).

    Args:
        scenarios: Regrets (S, C).
        weights: Probabilities of the scenarios at each pick (k, S).
        doubt: Standard deviation (C, C) of the difference between the regrets of two
            configurations in a scenario. A pick then gains as much as is expected of a regret
            with that deviation from the pick nearest to it. None for none.

    Returns:
        Distinct indices: k, or as many as there are configurations.
    """
    n_scenarios, n = scenarios.shape
    best = np.full(n_scenarios, np.inf)
    chosen: list[int] = []
    for row in weights[:n]:
        if chosen and doubt is not None:
            std = doubt[chosen].min(axis=0)
            gain = expected_improvement(scenarios, std, best[:, None])
            expected = row @ (best[:, None] - gain)
        else:
            expected = row @ np.minimum(best[:, None], scenarios)
        expected[chosen] = np.inf
        # Once the best of every scenario is chosen nothing is gained: then the best on average.
        tied = np.flatnonzero(expected <= expected.min() + NO_GAIN)
        pick = int(tied[(row @ scenarios[:, tied]).argmin()])
        chosen.append(pick)
        best = np.minimum(best, scenarios[:, pick])
    return chosen


def knn(
    space: ConfigurationSpace, memory: MetaDataset, task: TaskDescription, k: int = 25
) -> Design:
    """The best configuration of each of the k nearest tasks, by L1 distance of meta-features.

    auto-sklearn and the thesis standardise meta-features before; here each is the rank among the
    known tasks (``meta.tasks``), so that long tails decide nothing. A configuration that a nearer
    task has contributed is not repeated; a farther task takes its place. Tasks without
    meta-features are left aside. Without those of the new task it is the portfolio, and the notes
    say so. Scores are expected regrets. Arguments and errors are those of ``top_k``; k is 25 in
    auto-sklearn.
    """
    memory = align_memory(space, memory, k)
    known = performance(memory)
    described = TaskFeatures(memory.tasks, task)
    if not described.useful:
        return plain_portfolio("knn", memory, known, known.filled, k)
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

    Arguments and errors are those of ``top_k``; ``task`` is not used. ``vectors`` (n, d) are the
    configurations of the new task, all that matter, ``losses`` (n,) their true losses.
    """
    memory = align_memory(space, memory, k)
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
    return make_design(method, memory, known.candidates[picks], expected[picks], reasons, notes)
