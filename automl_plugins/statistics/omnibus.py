"""Do the methods differ at all? Friedman's test and its correction by Iman and Davenport."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln
from scipy.stats import chi2, f, rankdata

from automl_plugins.statistics.ranks import score_matrix


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


def _all_alike(ranks: npt.NDArray[np.float64], n: int) -> float:
    """Probability that ``n`` tasks rank alike by chance, with the ties of ``ranks`` (K,)."""
    _, ties = np.unique(ranks, return_counts=True)
    log_arrangements = gammaln(len(ranks) + 1) - gammaln(ties + 1).sum()
    return float(np.exp((1 - n) * log_arrangements))
