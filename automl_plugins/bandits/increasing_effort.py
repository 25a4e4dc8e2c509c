"""Increasing effort: the least-pulled arm that may still beat the best score (thesis 7.4)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import stdtrit

from .policy import Policy
from .records import ArmRecords, ArmStatistics

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

_MOST = 40  # doublings of the effort: 100 - 10 / 2^40 % is as good as certainty


def upper_limits(
    mean: npt.ArrayLike, sd: npt.ArrayLike, n: npt.ArrayLike, effort: int
) -> FloatArray:
    """One-sided upper confidence limits of means (K,): mean + t(level, n - 1) s / sqrt(n).

    Args:
        mean: Means (K,).
        sd: Sample standard deviations (K,), with n - 1 in the denominator.
        n: Rewards (K,); fewer than two give +inf.
        effort: k in the level of 100 - 10 / 2^k %, >= 0.
    """
    n = np.asarray(n, dtype=np.float64)
    level = 1.0 - 0.1 / 2.0**effort
    quantile = stdtrit(np.maximum(n - 1.0, 1.0), level)
    limit = np.asarray(mean) + quantile * np.asarray(sd) / np.sqrt(np.maximum(n, 1.0))
    return np.asarray(np.where(n >= 2, limit, np.inf))


@dataclass(frozen=True)
class _Past:
    """How far the records have been replayed: rows, sums by arm, and the effort after them."""

    arm: IntArray
    reward: FloatArray
    n: FloatArray
    total: FloatArray
    squares: FloatArray
    best: float
    effort: int

    def continues(self, arm: IntArray, reward: FloatArray) -> bool:
        """Whether these rows (n,) begin with the replayed ones."""
        m = len(self.arm)
        return (
            len(arm) >= m
            and np.array_equal(arm[:m], self.arm)
            and np.array_equal(reward[:m], self.reward)
        )


class IncreasingEffort(Policy):
    """The least-pulled of the arms whose upper confidence limit exceeds the best reward so far.

    The level of the limits is 100 - 10 / 2^k % (thesis eq. 7.1), k the number of times that no
    arm was left. It is replayed from the finished pulls, one decision after each; what has been
    replayed is kept and thrown away as soon as the records do not continue it.
    """

    _past: _Past | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_past"}

    def _pick(
        self,
        arms: IntArray,
        records: ArmRecords,
        statistics: ArmStatistics,
        rng: np.random.Generator,
    ) -> int:
        past = self._replay(records, len(statistics.pulls))
        effort = past.effort
        candidates = _candidates(past, effort)[arms]
        while not candidates.any() and effort < _MOST:  # the open ones may be fewer
            effort += 1
            candidates = _candidates(past, effort)[arms]
        if not candidates.any():
            candidates[:] = True
        pulls = statistics.pulls[arms]
        return int(rng.choice(arms[candidates & (pulls == pulls[candidates].min())]))

    def _replay(self, records: ArmRecords, n_arms: int) -> _Past:
        done = records.finished
        arm, reward = records.arm[done], np.nan_to_num(records.reward[done], nan=0.0)
        past = self._past
        if past is None or len(past.n) != n_arms or not past.continues(arm, reward):
            zeros = np.zeros(n_arms)
            past = _Past(arm[:0], reward[:0], zeros, zeros, zeros, 0.0, 0)
        start = len(past.arm)
        n, total, squares = past.n.copy(), past.total.copy(), past.squares.copy()
        now = replace(past, arm=arm, reward=reward, n=n, total=total, squares=squares)
        for a, r in zip(arm[start:].tolist(), reward[start:].tolist(), strict=True):
            n[a] += 1
            total[a] += r
            squares[a] += r * r
            now = replace(now, best=max(now.best, r))
            while now.effort < _MOST and not _candidates(now, now.effort).any():
                now = replace(now, effort=now.effort + 1)
        self._past = now
        return now


def _candidates(past: _Past, effort: int) -> npt.NDArray[np.bool_]:
    """Mask (K,) of the arms that may still beat the best reward."""
    n = np.maximum(past.n, 1.0)
    mean = past.total / n
    variance = np.maximum(past.squares / n - mean**2, 0.0) * n / np.maximum(n - 1.0, 1.0)
    return upper_limits(mean, np.sqrt(variance), past.n, effort) > past.best
