"""Upper confidence bounds: UCB1, UCB1-tuned (Auer 2002), and one for the best maximum.

=====  =====================================================================================
t      finished pulls of all arms
n      finished pulls of an arm
mu     its mean reward
V      its variance bound: mean of squares - mu^2 + sqrt(2 ln t / n)
=====  =====================================================================================
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from .policy import Policy, best_of
from .records import ArmRecords, ArmStatistics

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


class UCB1(Policy):
    """mu + sqrt(2 ln t / n) (Auer 2002; thesis 2.4)."""

    def _pick(
        self,
        arms: IntArray,
        records: ArmRecords,
        statistics: ArmStatistics,
        rng: np.random.Generator,
    ) -> int:
        n, t = _counts(arms, statistics)
        return best_of(arms, statistics.mean[arms] + np.sqrt(2 * np.log(t) / n), rng)


class UCB1Tuned(Policy):
    """mu + sqrt(ln t / n * min(1/4, V)) (Auer 2002; the thesis's print drops ``- mu^2``)."""

    def _pick(
        self,
        arms: IntArray,
        records: ArmRecords,
        statistics: ArmStatistics,
        rng: np.random.Generator,
    ) -> int:
        n, t = _counts(arms, statistics)
        v = statistics.variance[arms] + np.sqrt(2 * np.log(t) / n)
        bound = statistics.mean[arms] + np.sqrt(np.log(t) / n * np.minimum(0.25, v))
        return best_of(arms, bound, rng)


class MaxUCB(Policy):
    """max + (alpha ln t / n)^2: looks for the arm with the best maximum (Balef 2025)."""

    def __init__(self, *, alpha: float = 0.5, min_pulls: int = 2, min_share: float = 0.25) -> None:
        super().__init__(min_pulls=min_pulls, min_share=min_share)
        self.alpha = alpha

    def _pick(
        self,
        arms: IntArray,
        records: ArmRecords,
        statistics: ArmStatistics,
        rng: np.random.Generator,
    ) -> int:
        n, t = _counts(arms, statistics)
        return best_of(arms, statistics.best[arms] + (self.alpha * np.log(t) / n) ** 2, rng)


def _counts(arms: IntArray, statistics: ArmStatistics) -> tuple[FloatArray, float]:
    """Pulls n of each arm, running ones included, and t; both at least 1."""
    n = np.maximum(statistics.pulls, 1).astype(np.float64)
    return n[arms], max(float(statistics.pulls[arms].sum()), 1.0)
