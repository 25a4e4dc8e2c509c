"""Acquisition functions (larger is better) and their maximisation.

Expected improvement is in ``surrogates.base``. Notation of this module (losses are minimised)::

    mean, std  predicted loss and its standard deviation, (m,), std >= 0
    utility    any score, larger is better; may be negative
    gain       a score that is >= 0; its logarithm may be -inf
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from scipy.optimize import minimize
from scipy.spatial.distance import cdist

from automl_plugins.arrays import BoolArray, FloatArray, IndexArray
from automl_plugins.spaces.vector_space import VectorSpace

# Vectors (m, d) -> score (m,), larger is better, and predicted loss (m,), which breaks ties.
Score = Callable[[FloatArray], tuple[FloatArray, FloatArray]]
Batch = tuple[FloatArray, FloatArray, FloatArray]  # vectors, scores, predicted losses
Ends = tuple[FloatArray, FloatArray]  # lowest and highest values (d,), NaN for what stays

# Losses are equal if they differ by at most the larger of these two.
_TIED = 1e-12  # in units of half the distance between the best loss and the median
_ROUNDED = 8.0  # in units of the distance to the next float, for sums in another order
LEAST_RADIUS = 0.02  # of a plateau, as a share of each range
_GROWTH = 2.0  # radius of a plateau, in distances of its farthest evaluation
_INACTIVE = 1e300  # in place of a missing feature, far from all others
# Larger steps feel the curvature of the score, those below 1e-7 the rounding of a process.
_DIFFERENCE = 1e-4  # step of a difference quotient, as a share of the range
_LOWEST = -1e9  # lower bound of the scores, which may be -inf, in difference quotients
_MOST_SCORED = 30_000  # no step begins once a proposal has scored so many configurations
_MAX_STEPS = 100  # of a local search, which may gain a little at every step


def lower_confidence_bound(mean: FloatArray, std: FloatArray, beta: float = 1.0) -> FloatArray:
    """Utility -(mean - beta std): the negated lower bound of the loss.

    With std = 0 the mean is itself the bound: GBQR's acquisition (thesis 5.3.2).
    """
    return -(np.asarray(mean) - beta * np.asarray(std))


def log_excess(utility: FloatArray, reference: float) -> FloatArray:
    """log(utility - reference), -inf at or below the reference.

    Only a positive score may be scaled by seconds and probability of success. A bound may be
    negative, so it is replaced by its excess over a reference, which is fixed during one proposal.
    If the reference is the median bound of the first random batch, the excess per second is
    GBQR-median (thesis eq. 5.2). Bounds below the reference have no gain: a negative gain would
    prefer the slower of two bad candidates.
    """
    with np.errstate(divide="ignore"):
        return np.log(np.maximum(np.asarray(utility) - reference, 0.0))


def log_score(
    log_gain: FloatArray,
    *,
    log_success: FloatArray | float = 0.0,
    log_seconds: FloatArray | float = 0.0,
    exponent: float = 1.0,
    log_distance: FloatArray | float = 0.0,
) -> FloatArray:
    """Log (m,) of gain * P(success) * distance / seconds^exponent.

    Source: thesis 2.2.5 (EI per second), with seconds in place of their logarithm. A lower P or
    more seconds never raise the result. ``exponent`` is kappa in [0, 1]; the distance is a factor
    in [0, 1], see ``distance_factor``.
    """
    return np.asarray(log_gain + log_success + log_distance - exponent * np.asarray(log_seconds))


def fade_exponent(exponent: float, n: int, budget: int | None) -> float:
    """``exponent`` after ``n`` evaluations: falls linearly to 0 at ``budget``; None keeps it."""
    return exponent if budget is None else exponent * max(0.0, 1.0 - n / budget)


def distance_factor(gaps: FloatArray, radius: float | FloatArray) -> FloatArray:
    """Factor (m,) in [0, 1] of candidates near evaluations: 0 on one, 1 from its radius on.

    Local penalisation in the spirit of Gonzalez et al. 2016, with the smallest of the parabolas
    min(1, (u / radius)^2) of the distances u.

    Args:
        gaps: Distances u (m, p) between candidates and evaluations.
        radius: Distance at which the penalty ends, one for all or one for each (p,), > 0.
    """
    return np.asarray(np.minimum(1.0, (gaps / radius).min(axis=1, initial=np.inf)) ** 2)


def plateau_radii(features: FloatArray, losses: FloatArray, reach: float) -> FloatArray:
    """Radii (n,) around the evaluations within which the loss is assumed constant; 0 off plateaus.

    An evaluation lies on a plateau if another one of equal loss is nearer than all of different
    losses, and nearer than ``reach``. The radius is twice the distance of the farthest such one,
    at least 2 % of each range, and at most ``reach`` and the distance of the nearest different
    loss. On a slope no losses are equal; on most grids equal losses are too far apart.

    Args:
        features: Evaluations (n, f), NaN = inactive.
        losses: Their losses (n,), finite.
        reach: Largest radius, as a share of each range; at least 2 %.
    """
    radii = np.zeros(len(losses))
    if not len(losses):
        return radii
    least = np.sort(losses)
    with np.errstate(over="ignore"):  # losses as large as floats get are infinitely far apart
        # In units of a difference of losses, so that adding a constant changes nothing.
        typical = 0.5 * least[len(least) // 2] - 0.5 * least[0]
        alike = np.maximum(_TIED * typical, _ROUNDED * np.spacing(np.abs(losses)))
        # Equal losses are neighbours once sorted: without any, no pair has to be compared.
        if not (np.diff(least) <= alike.max()).any():
            return radii
        tied = np.abs(losses[:, None] - losses[None, :]) <= np.maximum.outer(alike, alike)
    gaps = largest_differences(features, features)
    other = np.where(tied, np.inf, gaps).min(axis=1)
    near = tied & (gaps < np.minimum(other, reach)[:, None])
    np.fill_diagonal(near, False)
    width = _GROWTH * np.where(near, gaps, 0.0).max(axis=1)
    flat = near.any(axis=1)
    radii[flat] = np.minimum(np.clip(width, LEAST_RADIUS, reach), other)[flat]
    return radii


def largest_differences(a: FloatArray, b: FloatArray) -> FloatArray:
    """Largest absolute difference (m, n) of features ``a`` (m, f) and ``b`` (n, f).

    Infinite where a feature is active (not NaN) on one side only.
    """
    # A feature inactive on both sides differs by 0, on one side by more than active ones can.
    filled = [np.where(np.isnan(features), _INACTIVE, features) for features in (a, b)]
    largest = cdist(*filled, "chebyshev")
    return np.where(largest > 0.5 * _INACTIVE, np.inf, largest)


# --- the maximum ------------------------------------------------------------------------------


@dataclass(frozen=True)
class LocalSearch:
    """Where the local searches begin and what counts as a gain.

    Attributes:
        n_observed: Number of observed configurations to start from.
        by: Whether these have the lowest ``"loss"`` or the largest ``"score"``.
        n_candidates: Number of the best configurations of the first batch to start from.
        tolerance: Smallest gain worth a further step, in standard deviations of the scores of
            the first batch; 0 stops only where no neighbour is better at all.
        joins: Whether a step also tries all single gains of a start together, which saves steps
            where there are many hyperparameters.
        n_gradients: Number of gradients of a last ascent from the best configuration found, see
            ``climb``; 0 for no ascent. For smooth models.
    """

    n_observed: int = 5
    by: Literal["loss", "score"] = "loss"
    n_candidates: int = 3
    tolerance: float = 0.05
    joins: bool = True
    n_gradients: int = 0

    def at_most(self, **limits: int) -> LocalSearch:
        """The same search with at most these numbers of starts and gradients."""
        return replace(self, **{n: min(getattr(self, n), limit) for n, limit in limits.items()})


# The local search of SMAC (Hutter et al. 2011, section 4.3; GBQR thesis 2.5.2).
SMAC_SEARCH = LocalSearch(n_observed=10, by="score", n_candidates=0, tolerance=0.0, joins=False)


def maximize(
    space: VectorSpace,
    score: Score,
    first: FloatArray,
    incumbents: FloatArray,
    fixed: FloatArray | None,
    rng: np.random.Generator,
    *,
    repeats: Callable[[FloatArray], BoolArray],
    search: LocalSearch,
    ends: Ends | None = None,
) -> FloatArray:
    """The best configuration (d,) found that repeats nothing.

    From each start a local search moves to the best of its one-exchange neighbours, or to a
    combination of all better ones, until none is better. All searches step together, so that
    their neighbours are scored in one batch. Each search compares with its own last point, so it
    continues even if another one is ahead. No step begins after 30 000 scored configurations.

    Args:
        space: The search space.
        score: Acquisition and predicted loss of vectors.
        first: First batch (m, d), which repeats nothing.
        incumbents: Observed configurations (b, d), lowest loss first.
        fixed: Values (d,) already decided, NaN where free, or None.
        rng: Draws the steps and breaks the last ties.
        repeats: Returns the mask of vectors that should not be proposed.
        search: Starts and tolerance.
        ends: Lowest and highest values of the numbers in the ascent; None for their ranges.
    """
    scores, losses = score(first)
    batches = [(first, scores, losses)]
    finite = scores[np.isfinite(scores)]  # the logarithm of no gain is -inf
    least = search.tolerance * float(finite.std()) if len(finite) else 0.0
    if search.by == "loss":  # by which they are sorted
        incumbents = incumbents[: search.n_observed]
    # Observed values of an old range may lie outside the present one.
    incumbents = space.canonical(incumbents)
    if fixed is not None and search.by == "score":  # neighbours are compared with these scores
        incumbents = space.complete(incumbents, rng, fixed)
    points, levels = _starts(score, first, scores, incumbents, search)
    points = space.complete(points, rng, fixed)  # observed ones may have other fixed values
    for _ in range(_MAX_STEPS):
        if sum(len(vectors) for vectors, _, _ in batches) >= _MOST_SCORED:
            break  # with hundreds of hyperparameters a step alone may score thousands
        # Neighbours (m', d) of all points, and which of the points each belongs to (m',).
        moved, owner = space.neighbours(points, rng)
        moved = space.complete(moved, rng, fixed)
        fresh = space.allowed(moved) & ~repeats(moved)  # fixed values may make one forbidden
        moved, owner = moved[fresh], owner[fresh]
        if not len(moved):
            break
        scores, losses = score(moved)
        batches.append((moved, scores, losses))
        if search.joins:
            gains = scores > levels[owner] + least
            joined, joiner = _join(points, moved[gains], owner[gains], scores[gains])
            joined = space.complete(joined, rng, fixed)  # two changes may activate others
            fresh = space.allowed(joined) & ~repeats(joined)
            if fresh.any():
                joined = joined[fresh]
                batches.append((joined, *score(joined)))
                owner = np.concatenate([owner, joiner[fresh]])
                moved, scores, losses = _stack(batches[-2:])  # in the order of ``owner``
        # Sorted by start, then by score, so that the first of each start is its best.
        order = np.lexsort((losses, -scores, owner))  # ties go to the lower loss
        best = order[np.unique(owner[order], return_index=True)[1]]  # of each start
        best = best[scores[best] > levels[owner[best]] + least]
        if not len(best):
            break
        points, levels = moved[best], scores[best]
    # From all batches: some searches ended before the last step.
    found = best_of(*_stack(batches), rng)
    if search.n_gradients:
        higher = climb(space, score, found, fixed, search.n_gradients, ends)[None]
        if space.allowed(higher)[0] and not repeats(higher)[0]:
            batches.append((higher, *score(higher)))
            # Among all others: snapping to legal values may have made it worse than its start.
            found = best_of(*_stack(batches), rng)
    return found


def climb(
    space: VectorSpace,
    score: Score,
    start: FloatArray,
    fixed: FloatArray | None,
    n_gradients: int,
    ends: Ends | None = None,
) -> FloatArray:
    """The end (d,) of a gradient ascent of the score (L-BFGS-B) from ``start`` (d,).

    It ends with the line search that takes the last of ``n_gradients``. Active real numbers move,
    unless they are ``fixed`` or decide which others are active. A gradient consists of central
    differences, scored in one batch.
    """
    low, high = (np.zeros(space.d), np.ones(space.d)) if ends is None else ends
    free = np.isinf(space.n_values) & ~np.isnan(low)
    if fixed is not None:
        free &= np.isnan(fixed)
    columns = moving(space, start)
    columns = columns[free[columns]]
    m, low, high = len(columns), low[columns], high[columns]
    if not m:
        return start
    # (1 + 2 m, m): the point itself, a step forward in each column, then a step backward.
    steps = np.concatenate([np.zeros((1, m)), np.eye(m), -np.eye(m)])
    steps *= _DIFFERENCE * (high - low)

    def loss(x: FloatArray) -> tuple[float, FloatArray]:
        rows = np.repeat(start[None], len(steps), axis=0)
        rows[:, columns] = places = np.clip(x + steps, low, high)
        scores = np.maximum(score(rows)[0], _LOWEST)
        # Clipped at a border, a difference spans one step instead of two.
        widths = np.diagonal(places[1 : m + 1] - places[m + 1 :])
        return -float(scores[0]), -(scores[1 : m + 1] - scores[m + 1 :]) / widths

    bounds, options = np.transpose([low, high]), {"maxfun": n_gradients}
    end = minimize(
        loss, start[columns], jac=True, bounds=bounds, method="L-BFGS-B", options=options
    )
    higher = start.copy()
    higher[columns] = end.x
    return np.asarray(space.canonical(higher[None])[0])


def moving(space: VectorSpace, vector: FloatArray) -> IndexArray:
    """Columns of the active numbers of ``vector`` (d,) on which no other column depends."""
    moves = ~np.isnan(vector) & ~space.categorical & (space.n_values > 1)
    moves[list(space.deciding)] = False  # else others begin or cease to be active
    return np.flatnonzero(moves)


def best_of(
    vectors: FloatArray, scores: FloatArray, losses: FloatArray, rng: np.random.Generator
) -> FloatArray:
    """The vector of the best score; ties, frequent with trees, go by loss, then at random."""
    tied = np.flatnonzero(scores == scores.max())
    tied = tied[losses[tied] == losses[tied].min()]
    return np.asarray(vectors[rng.choice(tied)])


def _starts(
    score: Score,
    candidates: FloatArray,
    scores: FloatArray,
    incumbents: FloatArray,
    search: LocalSearch,
) -> tuple[FloatArray, FloatArray]:
    """Starts (b, d) of the local searches, and the scores (b,) that a first step has to exceed."""
    if search.by == "score" and len(incumbents):
        worth, _ = score(incumbents)
        best = np.argsort(-worth, kind="stable")[: search.n_observed]
        observed, levels = incumbents[best], worth[best]
    else:
        observed = incumbents
        # An observed configuration cannot be proposed again, so any neighbour is a gain.
        levels = np.full(len(observed), -np.inf)
    top = np.argsort(-scores, kind="stable")[: search.n_candidates]
    starts = np.concatenate([observed, candidates[top]])
    return starts, np.concatenate([levels, scores[top]])


def _stack(batches: list[Batch]) -> Batch:
    vectors, scores, losses = zip(*batches, strict=True)
    return np.concatenate(vectors), np.concatenate(scores), np.concatenate(losses)


def _join(
    points: FloatArray, moved: FloatArray, owner: IndexArray, scores: FloatArray
) -> tuple[FloatArray, IndexArray]:
    """Combine the gains of each start in one configuration (b', d), returned with its start (b',).

    Where the score is nearly a sum over the hyperparameters, one step does the work of many. Only
    neighbours that change a single value are combined: others change which columns are active.
    """
    before = points[owner]
    changed = (moved != before) & ~(np.isnan(moved) & np.isnan(before))
    single = np.flatnonzero(changed.sum(axis=1) == 1)
    single = single[np.argsort(scores[single], kind="stable")]  # the best value is written last
    column = changed[single].argmax(axis=1)
    joined = points.copy()
    joined[owner[single], column] = moved[single, column]
    # NaN differs from itself, so inactive values, which no single change touches, are subtracted.
    several = np.flatnonzero((joined != points).sum(axis=1) - np.isnan(points).sum(axis=1) > 1)
    return joined[several], several
