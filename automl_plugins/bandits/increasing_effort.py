"""Increasing effort (GBQR thesis 7.4): candidates are the arms that may still beat the best score.

An arm is a candidate if its upper confidence limit exceeds the best reward y* so far::

    mean + t(1 - 0.1 / 2^r, n - 1) s / sqrt(n) > y*

with r the number of times that no candidate was left (eq. 7.1). Solved for r, this is the
first r at which the arm is a candidate, its ``effort``: the tail of Student's t beyond
z = (y* - mean) sqrt(n) / s exceeds 0.1 / 2^r. As r rises until there is a candidate, it is the
largest value that the smallest effort ever had.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import betaln, stdtr

from .policy import Policy, Standing

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

_BLOCK = 512  # records replayed at once: bounds the memory
_NO_SPREAD = 1e-12  # a variance below is rounding
_TINY = 1e-280  # tails below are computed as logarithms


def log_t_tail(z: FloatArray, degrees: FloatArray) -> FloatArray:
    """Log of the probability that Student's t exceeds z >= 0; accurate where that underflows.

    The tail is I_x(a, 1/2) / 2 with a = degrees / 2 and x = degrees / (degrees + z^2), and
    I_x(a, b) = x^a (1 - x)^b / (a B(a, b)) 2F1(a + b, 1; a + 1; x) (DLMF 8.17.8). That series is
    1 / (1 - x) up to a factor of 1 - 1 / z^2: 0.999 where it is needed.
    """
    tail = stdtr(degrees, -z)
    out = np.log(np.maximum(tail, _TINY))
    far = tail < _TINY
    if far.any():
        z, degrees = z[far], degrees[far]
        a, rest = degrees / 2.0, z**2 / (degrees + z**2)  # rest = 1 - x
        front = -a * np.log1p(z**2 / degrees) - np.log(a) - betaln(a, 0.5)
        out[far] = front - 0.5 * np.log(rest) - np.log(2.0)
    return np.asarray(out)


def effort(count: Any, mean: Any, variance: Any, best: Any) -> FloatArray:
    """How often no candidate must have been left for arms to become candidates.

    Args:
        count: Rewards of each arm (m,).
        mean: Their means (m,).
        variance: Their population variances (m,).
        best: Best reward so far of any arm, a number or (m,).

    Returns:
        Whole numbers >= 0 (m,); 0 for an arm with fewer than two rewards, whose limit is
        infinite, and inf for one whose rewards do not vary, whose limit is its mean.
    """
    count = np.asarray(count, dtype=np.float64)
    mean, variance, best = np.broadcast_arrays(mean, variance, np.asarray(best, np.float64))
    out = np.where(count < 2, 0.0, np.inf)
    ask = (count >= 2) & (variance > _NO_SPREAD)
    n = count[ask]
    # s / sqrt(n) with the n - 1 of the sample variance
    z = np.maximum(best[ask] - mean[ask], 0.0) / np.sqrt(variance[ask] / (n - 1.0))
    bits = (np.log(0.1) - log_t_tail(z, n - 1.0)) / np.log(2.0)
    out[ask] = np.maximum(np.floor(bits) + 1.0, 0.0)  # strictly more than 0.1 / 2^r
    return out


class IncreasingEffort(Policy):
    """The candidate with the fewest pulls (GBQR thesis 7.4).

    How often no candidate was left is replayed from the finished pulls, as if the rule had been
    asked after each of them, among the arms that are left now. If no effort makes an arm a
    candidate - none of their rewards vary - all are.

    Example::

        IncreasingEffort().choose([0, 1], records, Streams(1), k=3)
    """

    _replayed: _Replay | None = None  # discardable: what is new is added, or all is done again

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_replayed"}

    def _pick(self, standing: Standing, rng: np.random.Generator) -> int:
        arms, records, done = standing.arms, standing.records, standing.records.finished
        arm, reward = records.arm[done], np.nan_to_num(records.reward[done], nan=0.0)
        replay = self._replayed
        if replay is None or not replay.precedes(arms, arm, reward):
            replay = _Replay.start(arms)
        self._replayed = replay = replay.extended(arm, reward)
        candidate = replay.effort <= replay.ran_out
        if not candidate.any():
            candidate[:] = True
        pulls = standing.of.pulls
        return int(rng.choice(arms[candidate & (pulls == pulls[candidate].min())]))


@dataclass(frozen=True)
class _Replay:
    """The search as the rule saw it until some record.

    Attributes:
        arms: Arms that take part (K,), ascending.
        arm: Finished records so far (n,).
        reward: Their rewards (n,).
        sums: Counts, sums and sums of squares of the rewards of ``arms`` (3, K).
        best: Best reward of any arm.
        effort: ``effort`` of ``arms`` (K,).
        ran_out: How often no candidate was left.
    """

    arms: IntArray
    arm: IntArray
    reward: FloatArray
    sums: FloatArray
    best: float
    effort: FloatArray
    ran_out: float

    @classmethod
    def start(cls, arms: IntArray) -> _Replay:
        """Before the first record."""
        none = np.empty(0)
        k = len(arms)
        return cls(arms, none.astype(np.int64), none, np.zeros((3, k)), 0.0, np.zeros(k), 0.0)

    def precedes(self, arms: IntArray, arm: IntArray, reward: FloatArray) -> bool:
        """Whether these records begin with those replayed, with the same arms taking part."""
        n = len(self.arm)
        return (
            np.array_equal(arms, self.arms)
            and np.array_equal(arm[:n], self.arm)
            and np.array_equal(reward[:n], self.reward)
        )

    def extended(self, arm: IntArray, reward: FloatArray) -> _Replay:
        """After all of these records."""
        replay = self
        while len(replay.arm) < len(arm):
            n = len(replay.arm) + _BLOCK
            replay = replay._block(arm[:n], reward[:n])
        return replay

    def _block(self, arm: IntArray, reward: FloatArray) -> _Replay:
        """After these records, a block more than before: row 0 of each array is the state now.

        Sums run over the rows one by one, so the cut into blocks does not change them.
        """
        new = slice(len(self.arm), None)
        value = reward[new, None]
        mine = arm[new, None] == self.arms
        rows = np.stack([mine, mine * value, mine * value**2]).astype(np.float64)
        sums = np.concatenate([self.sums[:, None], rows], axis=1).cumsum(axis=1)
        best = np.maximum.accumulate(np.concatenate([[self.best], reward[new]]))
        changed = mine | (np.diff(best) > 0.0)[:, None]

        at, who = np.nonzero(changed)
        count, total, squares = sums[:, at + 1, who]
        mean = total / np.maximum(count, 1.0)
        variance = np.maximum(squares / np.maximum(count, 1.0) - mean**2, 0.0)
        efforts = np.vstack([self.effort, np.zeros(mine.shape)])
        efforts[at + 1, who] = effort(count, mean, variance, best[at + 1])
        # An effort stands until it changes.
        since = np.where(changed, np.arange(1, len(mine) + 1)[:, None], 0)
        since = np.maximum.accumulate(since, axis=0)
        efforts = np.take_along_axis(efforts, since, axis=0)

        smallest = efforts.min(axis=1)
        ran_out = float(smallest[np.isfinite(smallest)].max(initial=self.ran_out))
        return _Replay(self.arms, arm, reward, sums[:, -1], float(best[-1]), efforts[-1], ran_out)
