"""Which methods differ? Wilcoxon's signed-rank test, with Finner's adjustment for many tests."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt
from scipy.stats import rankdata, wilcoxon

from automl_plugins.statistics.ranks import FloatArray, score_matrix

ZeroMethod = Literal["zsplit", "pratt", "wilcox"]
ZERO_METHODS: tuple[ZeroMethod, ...] = get_args(ZeroMethod)

_ENUMERATED = 13  # tasks up to which SciPy enumerates the signs where something ties


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
    if zero_method not in ZERO_METHODS:
        raise ValueError(f"zero_method must be one of {ZERO_METHODS}, got {zero_method!r}.")
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
