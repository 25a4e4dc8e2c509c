"""The designs: each chooses configurations of the earlier tasks to begin with."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from ConfigSpace import ConfigurationSpace
from scipy.spatial.distance import cdist
from scipy.stats import kendalltau, rankdata

from automl_plugins._arguments import check_finite
from automl_plugins.arrays import FloatArray, as_floats, check_shape
from automl_plugins.meta.dataset import MetaDataset
from automl_plugins.meta.designs.design import Design, align_memory, make_design
from automl_plugins.meta.designs.performance import (
    WIDTH,
    Performance,
    coordinates,
    performance,
    predict,
)
from automl_plugins.meta.tasks import TaskDescription, TaskFeatures, by_distance
from automl_plugins.records.scores import rescale
from automl_plugins.spaces.choices import ENCODERS
from automl_plugins.surrogates.base import expected_improvement

if TYPE_CHECKING:
    from automl_plugins.meta.meta_learner import MetaLearner


# Chosen on tables of 13 sources: benchmark_designs.py.
_SHIFT = 0.7  # share that is taken of the difference which meta-features predict
_FADE = 0.75  # factor of the trust in meta-features from one pick to the next
_DOUBT = 0.1  # deviation of a regret on a new task after one known task

_NOT_IN_FEATURES = ("default_value", "weights", "meta")  # of a hyperparameter

_UNDESCRIBED = (
    "The task has no meta-feature that differs between the known tasks: all of them count alike."
)
_UNCORRELATED = "No known task has a rank correlation with the new one: they come as stored."


def portfolio(
    space: ConfigurationSpace, memory: MetaDataset, task: TaskDescription, k: int
) -> Design:
    """The configurations that together are best on the known tasks, for any new task.

    Of large memories 500 configurations are compared, the best on average and the best of each
    task, here and in all designs but those of a learner. Arguments and errors are those of
    ``top_k``; ``task`` is not used. Scores are mean regrets over tasks, each scaled to [0, 1].
    """
    known = performance(align_memory(space, memory, task, k))
    return _choose("portfolio", known, known.filled, k)


def diverse(
    space: ConfigurationSpace, memory: MetaDataset, task: TaskDescription, k: int
) -> Design:
    """A portfolio over samples of what the new task may be; arguments and errors of ``top_k``.

    Every known task is two scenarios of the new one: as it is, and as predicted for the new task
    from meta-features plus the error of the prediction for the known task. So good meta-features
    move the scenarios together and useless ones leave a plain portfolio. Similar tasks weigh more;
    one that shares no meta-feature with the new task is not similar. The first pick trusts
    meta-features, each further one 0.75 times as much as the one before: in the end all tasks
    weigh alike, as they are. Losses are smoothed over neighbouring configurations first, which a
    plain portfolio lacks: it picks what was best on some task by luck. Where tasks are few the
    picks keep apart: the new task may change the difference between two regrets, the more the
    farther apart the two configurations lie, by 0.1 over the number of tasks at most. Scores are
    expected regrets.

    Without meta-features of the task it is the smoothed portfolio, and the notes say so.
    """
    known = performance(align_memory(space, memory, task, k))
    plain, doubt = known.smoothed, _doubt(known)
    described = TaskFeatures(known.memory.tasks, task)
    if not described.useful:
        return _choose("diverse", known, plain, k, doubt=doubt, notes=(_UNDESCRIBED,))
    rows, moved = described.described, plain.copy()
    predicted = predict(described.known[rows], plain[rows], described.new)
    moved[rows] += _SHIFT * (predicted.new - predicted.known)  # (C,) - (n, C)
    moved -= moved.min(axis=1, keepdims=True)  # regrets again: a task's best one has none
    trust = _FADE ** np.arange(k)[:, None]
    likely = trust * by_distance(described.gaps) + (1.0 - trust) / len(plain)
    # A task's two scenarios share its weight: the moved one has as much of it as is trusted.
    weights = np.hstack([trust * likely, (1.0 - trust) * likely])
    scenarios = np.vstack([moved, plain])
    return _choose("diverse", known, scenarios, k, weights, doubt)


def _doubt(known: Performance) -> FloatArray:
    """Standard deviation (C, C) of what the new task adds to a difference between two regrets.

    Few tasks say little of what a new one may be like, and near-copies fare alike on any.
    """
    places = coordinates(known.memory.vector_space, known.candidates)
    # The difference of a process with this kernel has a variance in proportion to 1 - alike.
    alike = np.exp(-0.5 * cdist(places, places, metric="sqeuclidean") / WIDTH**2)
    return np.asarray(_DOUBT / len(known.memory.tasks) * np.sqrt(1.0 - alike))


def _choose(
    method: str,
    known: Performance,
    scenarios: FloatArray,
    k: int,
    weights: FloatArray | None = None,
    doubt: FloatArray | None = None,
    notes: tuple[str, ...] = (),
) -> Design:
    """The ``greedy`` choice; scenario s is that of task s modulo their number."""
    memory, n_tasks = known.memory, len(known.memory.tasks)
    if weights is None:
        weights = np.full((k, n_tasks), 1.0 / n_tasks)
    picks = greedy(scenarios, weights, doubt)
    best = scenarios[:, picks[0]]
    reasons = [f"expected regret {float(weights[0] @ best):.3f}, the least"]
    # There are fewer picks than weights where configurations run out.
    for pick, row in zip(picks[1:], weights[1:], strict=False):
        losses = scenarios[:, pick]
        gain = row * np.maximum(best - losses, 0.0)
        if gain.sum() > NO_GAIN:
            by_task = gain.reshape(-1, n_tasks).sum(axis=0)
            most = [t for t in np.argsort(-by_task, kind="stable")[:3].tolist() if by_task[t] > 0]
            helped = " and ".join(memory.tasks[t].name for t in most)
            reasons.append(
                f"lowers the expected regret by {gain.sum():.3f}, on tasks like {helped}"
            )
        else:
            why = "the least of the rest" if doubt is None else "unlike the picks before it"
            reasons.append(f"expected regret {float(row @ losses):.3f}, {why}")
        best = np.minimum(best, losses)
    # Of each pick by the weights at which it was chosen.
    scores = np.einsum("ks,sk->k", weights[: len(picks)], scenarios[:, picks])
    return make_design(method, memory, known.candidates[picks], scores, reasons, notes)


NO_GAIN = 1e-9  # what rounding leaves of a gain of nothing


def greedy(
    scenarios: FloatArray, weights: FloatArray, doubt: FloatArray | None = None
) -> list[int]:
    """The configurations that most reduce the expected regret of the best one, one by one.

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
    # With nothing chosen the first pick is the best on average.
    best = np.full(n_scenarios, np.inf)
    chosen: list[int] = []
    for row in weights[:n]:
        if chosen and doubt is not None:
            std = doubt[chosen].min(axis=0)  # (C,), to the pick nearest to each
            gain = expected_improvement(scenarios, std, best[:, None])
            expected = row @ (best[:, None] - gain)
        else:
            expected = row @ np.minimum(best[:, None], scenarios)
        expected[chosen] = np.inf  # none twice
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

    auto-sklearn scales meta-features to [0, 1] first, the thesis standardises them; here each is
    the rank among the known tasks (``meta.tasks``), so that long tails decide nothing. A
    configuration that a nearer task has contributed is not repeated; a farther task takes its
    place. Tasks without meta-features of the new one are left aside. Without any it is the
    portfolio, and the notes say so. Scores are expected regrets. Arguments and errors are those of
    ``top_k``; k is 25 in auto-sklearn.
    """
    known = performance(align_memory(space, memory, task, k))
    described = TaskFeatures(known.memory.tasks, task)
    if not described.useful:
        return _choose("knn", known, known.filled, k, notes=(_UNDESCRIBED,))
    gaps = described.gaps
    order = [int(t) for t in np.argsort(gaps, kind="stable") if described.described[t]]
    notes: tuple[str, ...] = ()
    n_tasks = len(known.memory.tasks)
    if n := n_tasks - len(order):
        notes = (
            f"{n} of {n_tasks} known tasks have no meta-features of the new one: left aside.",
        )
    expected = by_distance(gaps) @ known.filled
    return _nearest("knn", known, k, order, expected, lambda t: f"distance {gaps[t]:.2f}", notes)


def opt(
    space: ConfigurationSpace,
    memory: MetaDataset,
    task: TaskDescription,
    k: int,
    *,
    vectors: FloatArray,
    losses: FloatArray,
) -> Design:
    """``knn`` by the true rank correlation of losses, which only a benchmark knows (thesis 6.5).

    It is taken over the configurations in ``vectors`` that ``portfolio`` compares, of large
    memories 500, in the thesis over all; losses that a task lacks are estimated. Arguments and
    errors are those of ``top_k``; ``task`` is not used. ``vectors`` (n, d) are the configurations
    of the new task, all that matter, ``losses`` (n,) their true losses, NaN for failures, which
    do not count. Without a correlation with any task the notes say so.
    """
    known = performance(align_memory(space, memory, task, k))
    vectors, losses = as_floats(vectors, "vectors"), as_floats(losses, "losses")
    check_shape("vectors", vectors, "n", known.memory.vector_space.d)
    check_shape("losses", losses, len(vectors))
    done = ~np.isnan(losses)
    keys_of = known.memory.vector_space.keys
    keys = keys_of(vectors[done])
    _, here, there = np.intersect1d(keys_of(known.candidates), keys, return_indices=True)
    truth = losses[done][there]
    tau = np.full(len(known.filled), np.nan)
    if len(truth) >= 2:  # scipy warns of fewer
        tau[:] = [kendalltau(row[here], truth).statistic for row in known.filled]
    # NaN where all losses of a task are equal: it comes last.
    order = np.argsort(-np.nan_to_num(tau, nan=-1.0), kind="stable").tolist()
    expected = known.filled.mean(axis=0)
    notes = (_UNCORRELATED,) if np.isnan(tau).all() else ()
    return _nearest(
        "opt", known, k, order, expected, lambda t: f"rank correlation {tau[t]:.2f}", notes
    )


def _nearest(
    method: str,
    known: Performance,
    k: int,
    order: Iterable[int],
    expected: FloatArray,
    reason: Callable[[int], str],
    notes: tuple[str, ...] = (),
) -> Design:
    """The best configurations of tasks, in their order, none twice."""
    found = best_in_order(known.measured, order, k)
    picks, tasks = list(found), known.memory.tasks
    reasons = [f"the best on {tasks[t].name}, {reason(t)}" for t in found.values()]
    return make_design(
        method, known.memory, known.candidates[picks], expected[picks], reasons, notes
    )


def best_in_order(
    losses: npt.NDArray[np.floating], order: Iterable[int], k: int
) -> dict[int, int]:
    """The best configuration of each task, in this ``order``: at most ``k``, none twice.

    ``losses`` (T, C) are NaN where there is none. Each configuration is returned with its task.
    """
    found: dict[int, int] = {}
    for t in order:
        if len(found) < k and not np.isnan(losses[t]).all():
            found.setdefault(int(np.nanargmin(losses[t])), t)
    return found


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
        TypeError: For an argument of the wrong type.
        ValueError: For a meta-feature that is not a number, a memory that shares no hyperparameter
            with the space, a learner of another space, or k below 1.
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
    check_finite("delta", delta)
    return _by_learner(
        "delta", space, memory, task, k, learner, lambda predicted: delta_scores(predicted, delta)
    )


def delta_scores(predicted: FloatArray, delta: float) -> FloatArray:
    """The thesis's trade between rank and spread (thesis 6.4, eq. 6.2), larger is better.

    score = (1 - p)^delta + p, p the predictions (n,) of losses scaled so that 1 is the best. With
    delta = 0 the first term is 1 everywhere (0^0 = 1), so the order is that of p.
    """
    gap = rescale(predicted, predicted.min(), predicted.max())  # 1 - p
    return np.asarray(gap**delta + (1.0 - gap))


def _columns(space: ConfigurationSpace) -> str:
    """What the features of configurations are made of, as text; not the defaults, say."""
    written = space.to_serialized_dict(ENCODERS)["hyperparameters"]
    # Text, for a choice that is NaN does not equal itself.
    return repr([{key: hp[key] for key in hp if key not in _NOT_IN_FEATURES} for hp in written])


def _by_learner(
    method: str,
    space: ConfigurationSpace,
    memory: MetaDataset,
    task: TaskDescription,
    k: int,
    learner: MetaLearner | None,
    rank: Callable[[FloatArray], FloatArray],
) -> Design:
    from sklearn.utils.validation import check_is_fitted

    # Loads LightGBM, which the other designs do without.
    from automl_plugins.meta.meta_learner import MetaLearner

    memory = align_memory(space, memory, task, k)
    if learner is None:
        learner = MetaLearner().fit(memory)
    elif not isinstance(learner, MetaLearner):
        raise TypeError(f"learner must be a fitted MetaLearner or None, got {learner!r}.")
    check_is_fitted(learner)
    if _columns(learner.space_.space) != _columns(memory.space):
        raise ValueError("learner was fitted in another search space: fit(memory.aligned(space)).")
    candidates = memory.distinct[0]
    if method != "bad_start":  # what never completed fails, whatever its neighbours do
        candidates = candidates[memory.completed]
    predicted = learner.predict(candidates, task)
    order = np.argsort(-rank(predicted), kind="stable")[:k]
    place = rankdata(predicted, method="ordinal").astype(int)  # the best is 1
    reasons = [
        f"predicted to be number {place[i]} of the {len(candidates)} known configurations"
        for i in order
    ]
    notes = () if TaskFeatures(memory.tasks, task).useful else (_UNDESCRIBED,)
    return make_design(method, memory, candidates[order], predicted[order], reasons, notes)
