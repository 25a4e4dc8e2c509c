"""Space-filling start that covers every branch of a conditional space, one point at a time.

A branch (an algorithm, say) is visited in proportion to the size of its part of the space. Its
first point is the middle of its ranges, which users choose around plausible values; each next one
is the best of a few candidates (Mitchell 1991): the farthest from all tried. Points depend only
on the history, so a design continues where it was interrupted. Notation::

    pool     candidates as vectors of a space, (m, d)
    tried    vectors evaluated or under way, (n, d)
    counts   tried vectors of each option of a column, (k,)
    weights  1 + mean bits of the configurations of each option, see ``volume_bits``, (k,)
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.spatial.distance import cdist
from scipy.stats import qmc

from automl_plugins.arrays import BoolArray, FloatArray
from automl_plugins.spaces.vector_space import VectorSpace

_BEST_OF = 8  # candidates per point; more push the design into the corners of the space
_POOL = 256  # candidates for each point of ``space_filling``
_SMALL_GRID = 256  # most values of a grid whose values ``stratified_value`` does not repeat


def next_point(
    space: VectorSpace, pool: FloatArray, tried: FloatArray, rng: np.random.Generator
) -> FloatArray:
    """The member of ``pool`` that fills the space best.

    Args:
        space: The search space.
        pool: Candidates (m, d), not tried yet where possible.
        tried: Configurations evaluated or under way (n, d).
        rng: Breaks ties and draws the candidates.

    Returns:
        One vector (d,) of the pool.
    """
    pool, tried = branch(space, pool, tried, rng)
    for column in np.flatnonzero(space.categorical).tolist():
        # Any category may prove to be a branch once its children are seen: balance them all.
        pool, _ = _least_served(space, pool, tried, column, rng)
    if not len(tried):
        return _most_central(space, pool, rng)
    if len(pool) > _BEST_OF:
        pool = pool[rng.choice(len(pool), _BEST_OF, replace=False)]
    gaps = distances(space.features(pool), space.features(tried)).min(axis=1)
    return np.asarray(pool[int(gaps.argmax())])


def space_filling(
    space: VectorSpace, tried: FloatArray, n: int, rng: np.random.Generator
) -> FloatArray:
    """Up to n points (m, d) that fill a space beside those tried (t, d).

    Fewer if nothing new is drawn.
    """
    begun = len(tried)
    for _ in range(n):
        pool = space.sample(_POOL, rng)
        pool = pool[~space.seen(pool, np.sort(space.keys(tried)))]
        if not len(pool):
            break
        tried = np.vstack([tried, next_point(space, pool, tried, rng)])
    return tried[begun:]


def is_branch_turn(space: VectorSpace, k: int, balance: int | None) -> bool:
    """Whether evaluation ``k`` is the turn of the ``branch`` that has been served least.

    Evaluation 0 never is: a surrogate that knows earlier tasks is asked from k = 0 on.
    """
    return balance is not None and k > 0 and k % balance == 0 and bool(space.branching)


def branch(
    space: VectorSpace, pool: FloatArray, tried: FloatArray, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """The rows of ``pool`` (m, d) and ``tried`` (n, d) in the branch served least for its size."""
    for column in space.branching:
        pool, tried = _least_served(space, pool, tried, column, rng)
    return pool, tried


def _least_served(
    space: VectorSpace, pool: FloatArray, tried: FloatArray, column: int, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Pool and history restricted to the option of ``column`` whose turn it is."""
    active = ~np.isnan(pool[:, column])
    if not active.all():  # the column is inactive in the branch chosen above
        return pool, tried
    options = np.unique(pool[:, column])
    counts = np.array([(tried[:, column] == option).sum() for option in options])
    bits = space.volume_bits(pool)
    # 1 is added, so that a branch without hyperparameters, of 0 bits, has its turns, too.
    weights = np.array([1.0 + bits[pool[:, column] == option].mean() for option in options])
    option = options[apportion(counts, weights, rng)]
    return pool[pool[:, column] == option], tried[tried[:, column] == option]


def _most_central(space: VectorSpace, pool: FloatArray, rng: np.random.Generator) -> FloatArray:
    """The member of ``pool`` whose numbers are nearest to the middle of their ranges."""
    numbers = space.numbers(pool)
    eccentricity = np.nan_to_num(np.abs(numbers - 0.5), nan=0.0).sum(axis=1)
    # Rounded, so that 0.3 and 0.7, equally far from 0.5, tie; ties are drawn.
    central = np.flatnonzero(np.round(eccentricity - eccentricity.min(), 9) == 0.0)
    return np.asarray(pool[rng.choice(central)])


def apportion(counts: npt.ArrayLike, weights: npt.ArrayLike, rng: np.random.Generator) -> int:
    """Index of the option to be served next, by Webster's method after each has been served once.

    The option with the largest weight / (count + 1/2) is next, so that the counts become
    proportional to the weights up to rounding.
    """
    counts = np.asarray(counts, dtype=np.float64)
    priority = np.asarray(weights, dtype=np.float64) / (counts + 0.5)
    if (counts == 0).any():
        priority = np.where(counts == 0, 1.0, 0.0)
    return int(rng.choice(np.flatnonzero(priority == priority.max())))


def stratify(index: int, rng: np.random.Generator) -> float:
    """The middle of [0, 1) at index 0, else element ``index`` of a van der Corput sequence.

    The sequence is scrambled; equal generators give the same one. For every m the elements 1 to
    2^m - 1 lie in distinct intervals [k 2^-m, (k + 1) 2^-m), and each later block of 2^m elements
    that starts at a multiple of 2^m hits all of these once. For numbers drawn before the space is
    known: each name has its own sequence, indexed by how often the name was drawn.
    """
    if index == 0:
        return 0.5
    # The first dimension of Halton's sequence has base 2, which these intervals need.
    return float(qmc.Halton(1, scramble=True, rng=rng).fast_forward(index).random(1)[0, 0])


def stratified_value(
    space: VectorSpace, column: int, index: int, rng: np.random.Generator
) -> float:
    """Vector entry of ``column`` at element ``index`` of ``stratify``.

    The values of a small grid are taken in the order in which the sequence first reaches them, so
    none repeats before all have come. The least probable values of a long logarithmic grid may
    never come.
    """
    n = space.n_values[column]
    if n > _SMALL_GRID:
        return float(space.quantile(column, np.array([stratify(index, rng)]))[0])
    index %= int(n)  # once all values have come, they come again
    # Four elements for each value: with one for each, some values would not be reached.
    numbers = qmc.Halton(1, scramble=True, rng=rng).random(4 * (index + 1))[:, 0]
    numbers[0] = 0.5  # as in ``stratify``
    reached = list(dict.fromkeys(space.quantile(column, numbers).tolist()))
    return float(reached[index % len(reached)])


def distances(a: FloatArray, b: FloatArray) -> FloatArray:
    """Mean absolute difference (m, n) of features ``a`` (m, f) and ``b`` (n, f).

    A feature that is active (not NaN) on one side only differs by 1.
    """
    optional = np.asarray(np.isnan(np.vstack([a, b])).any(axis=0))
    sums = cdist(_spread(a, optional), _spread(b, optional), "cityblock")
    return np.asarray(sums / a.shape[1])


def _spread(features: FloatArray, optional: BoolArray) -> FloatArray:
    """Points (n, f + o) whose absolute differences add up to those of ``features`` (n, f).

    Each of the o ``optional`` features x becomes (x / 2, (1 - x) / 2), which keeps the distances
    of active ones; an inactive one becomes (-1/4, -1/4), at distance 1 from all active ones.
    """
    if not optional.any():
        return features
    x = features[:, optional]
    missing = np.isnan(x)
    low, high = np.where(missing, -0.25, 0.5 * x), np.where(missing, -0.25, 0.5 - 0.5 * x)
    return np.hstack([features[:, ~optional], low, high])
