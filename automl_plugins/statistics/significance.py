"""Friedman's test with Iman and Davenport's correction; Wilcoxon's with Finner's adjustment."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln
from scipy.stats import chi2, f, rankdata, wilcoxon

from automl_plugins._arguments import one_of
from automl_plugins.statistics.ranks import FloatArray, score_matrix

ZeroMethod = Literal["zsplit", "pratt", "wilcox"]
ZERO_METHODS: tuple[ZeroMethod, ...] = get_args(ZeroMethod)

_ENUMERATED = 13  # tasks up to which SciPy enumerates the signs where something ties


@dataclass(frozen=True)
class OmnibusTest:
    """Result of a test whether K methods differ over N tasks.

    Attributes:
        chi2: Friedman's statistic with the correction for ties.
        chi2_p: Its p-value, from chi-squared on K - 1 degrees of freedom.
        F: The statistic of Iman and Davenport; inf if all tasks rank the methods alike.
        F_p: Its p-value; exact where F is inf.
        df: Degrees of freedom of F, (K - 1, (K - 1)(N - 1)).
        n_tasks: N.
        n_methods: K.

    Example::

        test = iman_davenport(scores)  # tasks x methods
        print(test.F, test.F_p)
    """

    chi2: float
    chi2_p: float
    F: float
    F_p: float
    df: tuple[int, int]
    n_tasks: int
    n_methods: int


def iman_davenport(scores: npt.ArrayLike) -> OmnibusTest:
    """Friedman's chi-squared and F = (N - 1) chi2 / (N (K - 1) - chi2).

    With r the ranks within the tasks, S = sum_k (sum_n r - N (K + 1) / 2)^2 and
    A = sum_nk (r - (K + 1) / 2)^2::

        chi2 = (K - 1) S / A          on K - 1 degrees of freedom
        F    = (N - 1) S / (N A - S)  on (K - 1, (K - 1)(N - 1))

    which is the tie-corrected form (Conover 1999): ties make A smaller. Ranks are
    multiples of one half, so N A - S is exactly 0 where all tasks agree, and F is inf. Its
    distribution would give p = 0, however few the tasks; p is exact there: of the m arrangements
    of a task's ranks (K! without ties) all tasks have the same with probability m^(1 - N).
    Where all methods tie on every task, both statistics are 0 and p = 1. Chi-squared is too
    conservative a reference, F the better one (Iman and Davenport 1980; Demsar 2006,
    section 3.2.2).

    Args:
        scores: Scores (N, K), N >= 2 and K >= 3. Whether they are losses or gains does not matter.

    Raises:
        ValueError: If there are too few tasks or methods, or the scores are NaN somewhere.
    """
    matrix = score_matrix(scores)
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
        return OmnibusTest(0.0, 1.0, 0.0, 1.0, df, n, k)
    statistic = (k - 1) * between / within
    rest = n * within - between
    ratio = (n - 1) * between / rest if rest > 0 else np.inf
    return OmnibusTest(
        chi2=statistic,
        chi2_p=float(chi2.sf(statistic, k - 1)),
        F=ratio,
        F_p=float(f.sf(ratio, *df)) if rest > 0 else _all_alike(deviation[0], n),
        df=df,
        n_tasks=n,
        n_methods=k,
    )


def _all_alike(ranks: FloatArray, n: int) -> float:
    """Probability that ``n`` tasks rank alike by chance, with the ties of ``ranks`` (K,)."""
    _, ties = np.unique(ranks, return_counts=True)
    log_arrangements = gammaln(len(ranks) + 1) - gammaln(ties + 1).sum()
    return float(np.exp((1 - n) * log_arrangements))


def differences(a: FloatArray, b: FloatArray) -> FloatArray:
    """The differences a - b (N,), 0 where both are the same infinity."""
    with np.errstate(invalid="ignore", over="ignore"):
        return np.where(a == b, 0.0, a - b)


def wilcoxon_pairs(
    scores: npt.ArrayLike,
    pairs: Iterable[tuple[int, int]],
    *,
    zero_method: ZeroMethod = "zsplit",
) -> FloatArray:
    """Two-sided p-values of Wilcoxon's signed-rank test for pairs of methods.

    The p-values are those of ``scipy.stats.wilcoxon``: exact up to 13 tasks, and up to 50 if
    nothing ties; else by the normal approximation. Differences count as they are: round scores
    first whose differences should tie but for their last digits. Two methods that tie on every
    task have p = 1.

    Args:
        scores: Scores (N, K), N >= 2.
        pairs: Column numbers of m pairs.
        zero_method: What to do with tasks on which a pair ties. ``"zsplit"`` ranks them and gives
            each side half of their ranks, ``"pratt"`` ranks and then drops them, ``"wilcox"``
            drops them first.

    Returns:
        p-values (m,), not adjusted.

    Raises:
        ValueError: For an unknown ``zero_method``, a single task, or scores that are NaN.
    """
    matrix = score_matrix(scores)
    one_of("zero_method", zero_method, ZERO_METHODS)
    if len(matrix) < 2:
        raise ValueError("Wilcoxon's test needs 2 tasks, got 1: compare on more tasks.")
    return np.array([_p(differences(matrix[:, i], matrix[:, j]), zero_method) for i, j in pairs])


def _p(difference: FloatArray, zero_method: ZeroMethod) -> float:
    if not difference.any():
        return 1.0
    if len(difference) <= _ENUMERATED:
        return _enumerated_p(difference, zero_method)
    return min(1.0, float(wilcoxon(difference, zero_method=zero_method).pvalue))


def _enumerated_p(difference: FloatArray, zero_method: ZeroMethod) -> float:
    """The p-value among all 2^N signs of the ranks; SciPy's takes seconds for each pair."""
    nonzero = difference != 0
    if zero_method == "wilcox":
        ranks = rankdata(np.abs(difference[nonzero]))
    else:
        ranks = rankdata(np.abs(difference))[nonzero]
    positive = ranks[difference[nonzero] > 0].sum()
    signs = np.arange(2 ** len(ranks))[:, None] >> np.arange(len(ranks)) & 1
    sums = signs @ ranks  # multiples of one half: exact
    return min(1.0, 2.0 * float(min((sums <= positive).mean(), (sums >= positive).mean())))


def finner(p: npt.ArrayLike) -> FloatArray:
    """Finner's step-down adjustment of the p-values of m hypotheses.

    With p_1 <= ... <= p_m the adjusted p_i is min(1, max_{j <= i} 1 - (1 - p_j)^(m / j)); all
    hypotheses whose adjusted p-value is at most alpha are rejected at that level (Finner 1993).
    The first step is that of Sidak. Accurate for p down to the least float.

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
    with np.errstate(divide="ignore"):
        single = -np.expm1(power * np.log1p(-values[order]))
    adjusted = np.empty_like(values)
    # expm1(log1p(-p)) may fall a rounding below -p
    adjusted[order] = np.maximum(np.maximum.accumulate(single), values[order])
    return np.minimum(adjusted, 1.0)
