"""Meta-learned initial designs: configurations for a new task from the runs of earlier ones.

Every design has the same form, ``design(space, memory, task, k)``: the user's search space, a
``MetaDataset``, the meta-features of the new task (None where they are not known) and the number
of configurations. All are deterministic.

==============  =====================================================================
``top_k``       the best predicted (GBQR thesis 6.3); weak, since these are near-copies
``delta``       the thesis's trade between predicted rank and spread
``knn``         the best configuration of each of the nearest tasks (auto-sklearn)
``portfolio``   greedy: best on average over all tasks, then what complements it most
``diverse``     the portfolio of what the new task may be like; the default
``opt``         nearest by the true rank correlation: a ceiling, for benchmarks only
``bad_start``   the worst predicted: a control that must lose
==============  =====================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
import numpy.typing as npt
from ConfigSpace import ConfigurationSpace

from . import task_regression
from .dataset import MetaDataset, plain_values
from .meta_learner import MetaLearner, rank_correlation
from .performance import Performance, performance
from .selection import delta_scores, greedy
from .suggestion import Design, Suggestion
from .task_features import TaskDescription, TaskFeatures, distances

FloatArray = npt.NDArray[np.float64]

InitialDesign = Callable[[ConfigurationSpace, MetaDataset, TaskDescription, int], Design]

_UNDESCRIBED = "The task shares no meta-feature with the memory: all known tasks count alike."
_SHIFT = 0.7  # of what meta-features predict; measured on tables of six sources
_SIMILARITY = 1.0  # width of the weights of tasks, in median distances


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
    near-copies. ``diverse`` mends both.

    Args:
        space: The search space.
        memory: Runs of earlier tasks.
        task: Meta-features of the new task.
        k: Number of configurations.
        delta: The exponent, 0 is ``top_k``; the thesis used 0.1 and 0.2.
        learner: As in ``top_k``.

    Raises:
        ValueError: As in ``top_k``, and for a negative or infinite delta.
    """
    if not 0 <= delta < np.inf:
        raise ValueError(f"delta must be finite and >= 0, got {delta}.")

    def rank(predicted: FloatArray) -> FloatArray:
        return delta_scores(predicted, delta)

    return _by_learner("delta", space, memory, task, k, learner, rank)


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
    memory = _checked(space, memory, k)
    known = performance(memory)
    return _portfolio("portfolio", memory, known, known.filled, k, None, ())


def diverse(
    space: ConfigurationSpace, memory: MetaDataset, task: TaskDescription, k: int
) -> Design:
    """A portfolio of what the new task may be like.

    Every known task is a scenario of the new one: what is predicted from the meta-features, plus
    how wrong that prediction was on the known task. So good meta-features move all scenarios
    together and useless ones leave the plain portfolio; similar tasks weigh more. Losses are
    smoothed over neighbouring configurations first, which a plain portfolio lacks: it picks what
    was best on some task by luck. Scores are expected regrets.

    Args:
        space: The search space.
        memory: Runs of earlier tasks.
        task: Meta-features of the new task; without any it is the smoothed portfolio, and the
            design's notes say so.
        k: Number of configurations.

    Raises:
        ValueError: As in ``top_k``.
    """
    memory = _checked(space, memory, k)
    known = performance(memory)
    scenarios = known.smoothed
    described = TaskFeatures(memory, task)
    if not described.useful:
        return _portfolio("diverse", memory, known, scenarios, k, None, (_UNDESCRIBED,))
    predicted = task_regression.predict(described.known, scenarios, described.new)
    scenarios = scenarios + _SHIFT * (predicted.new - predicted.known)
    gaps = distances(described.known, described.new[None, :])[:, 0]
    typical = np.median(gaps)
    weights = np.exp(-0.5 * (gaps / (_SIMILARITY * typical)) ** 2) if typical > 0 else gaps + 1.0
    scenarios = scenarios - scenarios.min(axis=1, keepdims=True)
    return _portfolio("diverse", memory, known, scenarios, k, weights / weights.sum(), ())


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
    memory = _checked(space, memory, k)
    described = TaskFeatures(memory, task)
    if not described.useful:
        known = performance(memory)
        return _portfolio("knn", memory, known, known.filled, k, None, (_UNDESCRIBED,))
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
    memory = _checked(space, memory, k)
    known = performance(memory)
    keys = memory.vector_space.keys(np.asarray(vectors, dtype=np.float64))
    place = {int(key): i for i, key in enumerate(keys)}
    own = [place.get(int(key), -1) for key in memory.vector_space.keys(known.candidates)]
    here = np.array([i >= 0 for i in own])
    truth = np.asarray(losses, dtype=np.float64)[np.array(own)[here]]
    tau = np.array([rank_correlation(row[here], truth) for row in known.filled])
    order = np.argsort(-np.nan_to_num(tau, nan=-1.0), kind="stable").tolist()
    return _nearest("opt", memory, k, order, lambda t: f"rank correlation {tau[t]:.2f}")


# --- what they share ------------------------------------------------------------------------


def _checked(space: ConfigurationSpace, memory: MetaDataset, k: int) -> MetaDataset:
    if k < 1:
        raise ValueError(f"k must be at least 1, got {k}.")
    memory = memory.aligned(space)
    if not len(memory):
        raise ValueError(
            "No run of the memory lies in the search space: "
            + "; ".join(str(covered) for covered in memory.coverage[:3])
        )
    return memory


def _by_learner(
    method: str,
    space: ConfigurationSpace,
    memory: MetaDataset,
    task: TaskDescription,
    k: int,
    learner: MetaLearner | None,
    rank: Callable[[FloatArray], FloatArray],
) -> Design:
    memory = _checked(space, memory, k)
    learner = MetaLearner().fit(memory) if learner is None else learner
    candidates, _ = memory.distinct
    predicted = learner.predict(candidates, task)
    order = np.argsort(-rank(predicted), kind="stable")[:k]
    place = np.argsort(np.argsort(predicted, kind="stable"))
    reasons = [
        f"predicted to be number {place[i] + 1} of the {len(candidates)} known configurations"
        for i in order
    ]
    notes = () if TaskFeatures(memory, task).useful else (_UNDESCRIBED,)
    return _design(method, memory, candidates[order], predicted[order], reasons, notes)


def _portfolio(
    method: str,
    memory: MetaDataset,
    known: Performance,
    scenarios: FloatArray,
    k: int,
    weights: FloatArray | None,
    notes: tuple[str, ...],
) -> Design:
    picks = greedy(scenarios, k, weights)
    if weights is None:
        weights = np.full(len(scenarios), 1.0 / len(scenarios))
    reasons, best = [], np.full(len(scenarios), np.inf)
    for pick in picks:
        if np.isinf(best).any():
            reasons.append(f"expected regret {float(weights @ scenarios[:, pick]):.3f}, the least")
        else:
            gain = weights * np.maximum(best - scenarios[:, pick], 0.0)
            helped = [
                memory.tasks[t].name for t in np.argsort(-gain, kind="stable")[:3] if gain[t]
            ]
            on = f", on tasks like {' and '.join(helped)}" if helped else ""
            reasons.append(f"lowers the expected regret by {gain.sum():.3f}{on}")
        best = np.minimum(best, scenarios[:, pick])
    scores = weights @ scenarios[:, picks]
    return _design(method, memory, known.candidates[picks], scores, reasons, notes)


def _nearest(
    method: str,
    memory: MetaDataset,
    k: int,
    order: Iterable[int],
    told: Callable[[int], str],
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
    reasons = [f"the best on {memory.tasks[t].name}, {told(t)}" for _, t in rows.values()]
    unknown = np.full(len(picks), np.nan)
    return _design(method, memory, memory.vectors[picks], unknown, reasons, ())


def _design(
    method: str,
    memory: MetaDataset,
    vectors: FloatArray,
    scores: FloatArray,
    reasons: Sequence[str],
    notes: tuple[str, ...],
) -> Design:
    values: Sequence[Mapping[str, object]] = plain_values(memory.space, vectors)
    return Design(
        method,
        tuple(
            Suggestion(vector, configuration, float(score), reason)
            for vector, configuration, score, reason in zip(
                vectors, values, scores, reasons, strict=True
            )
        ),
        notes,
    )
