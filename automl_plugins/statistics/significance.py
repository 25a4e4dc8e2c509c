"""Ranks of methods over tasks, distances to the minimum, tests for differences, and groups.

Notation of this package::

    N       tasks, the rows of a matrix of scores
    K       methods, its columns
    scores  (N, K), without NaN; infinite scores are the worst or best of their row
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from numbers import Integral
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln
from scipy.stats import chi2, f, rankdata, wilcoxon

from automl_plugins._arguments import check_choice
from automl_plugins.arrays import FloatArray
from automl_plugins.records.scores import rescale

ZeroMethod = Literal["zsplit", "pratt", "wilcox"]
ZERO_METHODS: tuple[ZeroMethod, ...] = get_args(ZeroMethod)

_MAX_ENUMERATED = 13  # tasks up to which SciPy enumerates all signs in the presence of ties


def _matrix(scores: npt.ArrayLike) -> FloatArray:
    """The scores as floats (N, K), checked: a matrix, not empty, without NaN."""
    matrix = np.asarray(scores, dtype=np.float64)
    if matrix.ndim != 2 or not matrix.size:
        raise ValueError(f"scores must be a tasks x methods matrix, got shape {matrix.shape}.")
    if (gaps := int(np.isnan(matrix).sum())) > 0:
        raise ValueError(f"scores are NaN in {gaps} cells: leave out those tasks.")
    return matrix


def average_ranks(losses: npt.ArrayLike) -> FloatArray:
    """Mean over the tasks of the rank within the task; rank 1 is the best, ties get mean ranks.

    Args:
        losses: Losses (N, K): the least gets rank 1.

    Returns:
        Average ranks (K,) in [1, K], of sum K (K + 1) / 2.

    Raises:
        ValueError: If the losses are not a matrix, empty, or NaN somewhere.
    """
    return np.asarray(rankdata(_matrix(losses), axis=1).mean(axis=0), dtype=np.float64)


def distance_to_minimum(losses: npt.ArrayLike) -> FloatArray:
    """(loss - min) / (max - min) within each task; its mean over the tasks is the ADTM.

    The average distance to the minimum was defined by Wistuba et al. (2016, section 5.3).
    Minimum and maximum are taken over the finite losses of the task. If all finite losses are
    equal, their distance is 0. A loss of -inf always has distance 0, a loss of +inf distance 1.

    Args:
        losses: Losses (N, K).

    Returns:
        Distances (N, K) in [0, 1].

    Raises:
        ValueError: If the losses are not a matrix, empty, or NaN somewhere.
    """
    matrix = _matrix(losses)
    finite = np.where(np.isfinite(matrix), matrix, np.nan)
    # ``fmin`` passes over NaN, and does not warn where a row has nothing else.
    low = np.fmin.reduce(finite, axis=1, keepdims=True)
    high = np.fmax.reduce(finite, axis=1, keepdims=True)
    # 1 for inf, 0 for -inf.
    return np.where(np.isfinite(matrix), rescale(finite, low, high), matrix > 0)


def cliques(not_different: npt.ArrayLike) -> list[tuple[int, ...]]:
    """Maximal groups of two or more methods no two of which are different.

    These are the maximal cliques of the graph whose edges are ``not_different``, found by the
    algorithm of Bron and Kerbosch (1973). "Not different" need not be transitive, nor follow the
    order of the ranks, so a method may be in several groups and a group may have gaps.

    Args:
        not_different: Symmetric matrix (K, K) of truth values; the diagonal is ignored.

    Returns:
        Groups of ascending column numbers, sorted.

    Raises:
        ValueError: If the matrix is not square, symmetric and of truth values.
    """
    given = np.asarray(not_different)
    edges = given.astype(np.bool_)
    if edges.ndim != 2 or not np.array_equal(edges, edges.T) or (edges != given).any():
        raise ValueError(
            "not_different must be a symmetric K x K matrix of truth values, such as p > 0.05."
        )
    neighbours = [set(np.flatnonzero(row).tolist()) - {i} for i, row in enumerate(edges)]
    found: list[tuple[int, ...]] = []

    def extend(group: set[int], open_: set[int], done: set[int]) -> None:
        if not open_ and not done and len(group) > 1:
            found.append(tuple(sorted(group)))
        if not open_:
            return
        # A maximal group without the pivot has a member that is no neighbour of it.
        pivot = max(open_ | done, key=lambda i: len(neighbours[i] & open_))
        for i in sorted(open_ - neighbours[pivot]):
            extend(group | {i}, open_ & neighbours[i], done & neighbours[i])
            open_ = open_ - {i}
            done = done | {i}

    extend(set(), set(range(len(edges))), set())
    return sorted(found)


@dataclass(frozen=True)
class OmnibusTest:
    """Result of a test of whether K methods differ over N tasks.

    Attributes:
        chi2: Friedman's statistic with the correction for ties.
        chi2_p: Its p-value, from chi-squared on K - 1 degrees of freedom.
        F: The statistic of Iman and Davenport; inf if all tasks rank the methods alike.
        F_p: Its p-value: exact if F is inf, else at least the p-value of perfect agreement.
        df: Degrees of freedom of F, (K - 1, (K - 1)(N - 1)).

    Example::

        test = iman_davenport(scores)  # tasks x methods
        print(test.F, test.F_p)
    """

    chi2: float
    chi2_p: float
    F: float
    F_p: float
    df: tuple[int, int]


def iman_davenport(scores: npt.ArrayLike) -> OmnibusTest:
    """Friedman's chi-squared and F = (N - 1) chi2 / (N (K - 1) - chi2).

    With r the ranks within the tasks, S = sum_k (sum_n r - N (K + 1) / 2)^2 and
    A = sum_nk (r - (K + 1) / 2)^2::

        chi2 = (K - 1) S / A          on K - 1 degrees of freedom
        F    = (N - 1) S / (N A - S)  on (K - 1, (K - 1)(N - 1))

    which is the tie-corrected form (Conover 1999): ties make A smaller. Ranks are
    multiples of one half, so N A - S is exactly 0 if all tasks agree, and F is inf. The F
    distribution would then give p = 0, however few the tasks, so p is computed exactly: a task
    has m arrangements of its ranks (K! without ties), and all tasks have the same one with
    probability m^(1 - N). Less agreement has no smaller p: it is at least K!^(1 - N). If all
    methods tie on every task, both statistics are 0 and p = 1.

    Chi-squared is too conservative, and F the better test (Iman and Davenport 1980; Demsar 2006,
    section 3.2.2), but not for few tasks: with 3 methods that do not differ, p of F is at most
    0.05 in 19 % of cases on 3 tasks, in 7 % on 4 and in 5 % on 8.

    Args:
        scores: Scores (N, K), N >= 2 and K >= 3, either losses or gains.

    Raises:
        ValueError: If there are too few tasks or methods, or the scores are NaN somewhere.
    """
    matrix = _matrix(scores)
    n, k = matrix.shape
    if k < 3:
        raise ValueError(f"Friedman's test needs 3 methods, got {k}: use Wilcoxon's for two.")
    if n < 2:
        raise ValueError(f"Friedman's test needs 2 tasks, got {n}: compare on more tasks.")
    deviation = rankdata(matrix, axis=1) - 0.5 * (k + 1)
    within = float(np.square(deviation).sum())
    between = float(np.square(deviation.sum(axis=0)).sum())
    df = (k - 1, (k - 1) * (n - 1))
    if within == 0:
        return OmnibusTest(0.0, 1.0, 0.0, 1.0, df)
    statistic = (k - 1) * between / within
    rest = n * within - between
    ratio = (n - 1) * between / rest if rest > 0 else np.inf
    return OmnibusTest(
        chi2=statistic,
        chi2_p=float(chi2.sf(statistic, k - 1)),
        F=ratio,
        F_p=max(float(f.sf(ratio, *df)), _agreement_p(deviation[0] if rest == 0 else range(k), n)),
        df=df,
    )


def _agreement_p(ranks: npt.ArrayLike, n: int) -> float:
    """Probability that ``n`` tasks with the ties of ``ranks`` (K,) agree by chance."""
    _, ties = np.unique(ranks, return_counts=True)
    # K! / product of (number of equal ranks)!, in logarithms: 171! is no float.
    log_arrangements = gammaln(ties.sum() + 1) - gammaln(ties + 1).sum()
    return float(np.exp((1 - n) * log_arrangements))


def differences(a: FloatArray, b: FloatArray) -> FloatArray:
    """The differences a - b (N,), 0 where both are the same infinity."""
    with np.errstate(invalid="ignore", over="ignore"):
        return np.where(a == b, 0.0, a - b)


def wilcoxon_pairs(
    scores: npt.ArrayLike, pairs: Iterable[tuple[int, int]], *, zero_method: ZeroMethod = "zsplit"
) -> FloatArray:
    """Two-sided p-values of Wilcoxon's signed-rank test for pairs of methods.

    The p-values are those of ``scipy.stats.wilcoxon``: exact up to 13 tasks, and up to 50 without
    ties; else by the normal approximation, which with ``"zsplit"`` is too large where a pair ties
    on most tasks: six wins have .03 beside seven ties, and .07 beside 24. Differences are not
    rounded: round the scores first if differences in their last digits should count as ties. Two
    methods that tie on every task have p = 1.

    Args:
        scores: Scores (N, K), N >= 2.
        pairs: Column numbers of m pairs.
        zero_method: What to do with tasks on which a pair ties. ``"zsplit"`` ranks them and gives
            each side half of their ranks, ``"pratt"`` ranks and then drops them, ``"wilcox"``
            drops them first.

    Returns:
        p-values (m,), not adjusted.

    Raises:
        ValueError: For an unknown ``zero_method``, a pair that is not two column numbers, a single
            task, or scores that are NaN.
    """
    matrix = _matrix(scores)
    check_choice("zero_method", zero_method, ZERO_METHODS)
    if len(matrix) < 2:
        raise ValueError("Wilcoxon's test needs 2 tasks, got 1: compare on more tasks.")
    pairs, n = list(pairs), matrix.shape[1]
    if wrong := [pair for pair in pairs if not _are_columns(pair, n)]:
        raise ValueError(f"pairs must be column numbers below {n}, got {wrong[0]}.")
    return np.array([_p(differences(matrix[:, i], matrix[:, j]), zero_method) for i, j in pairs])


def _are_columns(pair: tuple[int, int], n: int) -> bool:
    # True is an integer, too.
    return len(pair) == 2 and all(
        isinstance(i, Integral) and not isinstance(i, bool) and 0 <= i < n for i in pair
    )


def _p(difference: FloatArray, zero_method: ZeroMethod) -> float:
    if not difference.any():
        return 1.0
    if len(difference) <= _MAX_ENUMERATED:
        return _enumerated_p(difference, zero_method)
    return min(1.0, float(wilcoxon(difference, zero_method=zero_method).pvalue))


def _enumerated_p(difference: FloatArray, zero_method: ZeroMethod) -> float:
    """The exact p-value over all 2^N signs of the ranks; SciPy takes seconds for each pair."""
    nonzero = difference != 0
    if zero_method == "wilcox":
        ranks = rankdata(np.abs(difference[nonzero]))
    else:
        ranks = rankdata(np.abs(difference))[nonzero]
    positive = ranks[difference[nonzero] > 0].sum()
    # Row s has the bits of s: 1 where the difference is positive.
    signs = np.arange(2 ** len(ranks))[:, None] >> np.arange(len(ranks)) & 1
    sums = signs @ ranks  # multiples of one half: exact
    return min(1.0, 2.0 * float(min((sums <= positive).mean(), (sums >= positive).mean())))


def finner(p: npt.ArrayLike) -> FloatArray:
    """Finner's step-down adjustment of the p-values of m hypotheses.

    With p_1 <= ... <= p_m the adjusted p_i is min(1, max_{j <= i} 1 - (1 - p_j)^(m / j)); all
    hypotheses whose adjusted p-value is at most alpha are rejected at that level (Finner 1993).
    The first step is Sidak's correction. Accurate down to the smallest positive float.

    Args:
        p: p-values (m,) in any order; m may be 0.

    Returns:
        Adjusted p-values (m,) in the order of the input, none less than its p.

    Raises:
        ValueError: If a p-value is NaN or not in [0, 1].
    """
    values = np.asarray(p, dtype=np.float64)
    if values.ndim != 1 or not ((values >= 0) & (values <= 1)).all():
        raise ValueError(f"p must be a vector of probabilities without NaN, got {values}.")
    order = np.argsort(values, kind="stable")
    power = len(values) / np.arange(1.0, len(values) + 1.0)
    # p = 1 has the logarithm -inf, and becomes 1 again.
    with np.errstate(divide="ignore"):
        single = -np.expm1(power * np.log1p(-values[order]))
    adjusted = np.empty_like(values)
    # Rounding may make -expm1(log1p(-p)) less than p.
    adjusted[order] = np.maximum(np.maximum.accumulate(single), values[order])
    return np.minimum(adjusted, 1.0)
