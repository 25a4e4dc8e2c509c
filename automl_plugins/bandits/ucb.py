"""Policies that play the arm with the largest upper bound: of its mean, or of its maximum.

=====  =====================================================================
n_k    pulls of arm k, running ones included; failed ones have reward 0
t, K   pulls of all arms that are left; their number
=====  =====================================================================
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt

from .greedy import mean_rewards
from .policy import ScoredPolicy, Standing
from .records import ArmStatistics

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
Scale = Literal["arms", "unit"]
Unit = Literal["pulls", "seconds"]

_ALPHA: dict[Scale, float] = {"arms": 1.75, "unit": 0.5}
_LEAST = 0.1  # pulls that a pull counts for at least, however little time it took
_SHRINKAGE = 3.0  # pulls that the deficit of all arms weighs against an arm's own


def ucb1(mean: FloatArray, pulls: IntArray, c: float = 2.0) -> FloatArray:
    """Bounds mean + sqrt(c ln t / n_k) (K,) (Auer et al. 2002, fig. 1; GBQR thesis 2.4.3)."""
    return np.asarray(mean + np.sqrt(c * np.log(pulls.sum()) / pulls))


def ucb1_tuned(mean: FloatArray, variance: FloatArray, pulls: IntArray) -> FloatArray:
    """Bounds mean + sqrt(ln t / n_k min(1/4, V_k)) (K,), V_k = variance + sqrt(2 ln t / n_k).

    Auer et al. 2002, section 4; the GBQR thesis prints V_k without the "- mean^2" of the variance.
    """
    log_t = np.log(pulls.sum())
    v = variance + np.sqrt(2.0 * log_t / pulls)
    return np.asarray(mean + np.sqrt(log_t / pulls * np.minimum(0.25, v)))


def max_ucb(best: FloatArray, pulls: FloatArray, alpha: float = 0.5) -> FloatArray:
    """Bounds best + (alpha ln t / n_k)^2 (K,) of the arms' maxima (Balef et al. 2025)."""
    return np.asarray(best + (alpha * np.log(pulls.sum()) / pulls) ** 2)


def arm_scales(best: FloatArray, finished: IntArray, total: FloatArray) -> FloatArray:
    """Units S_k = sqrt(A d_k) (K,) in which rewards of arm k are compared with those of others.

    A is the median absolute deviation of the arms' maxima (the mean one where that is 0). d_k is
    how far a reward of arm k lies below the arm's end: (n best - total) / (n - 1), which is exact
    for rewards end - exponential, shrunk towards that of all arms. Both are proportional to the
    rewards, and one arm that is far behind changes neither for the others.

    Args:
        best: Largest reward of each arm, finite.
        finished: Pulls with a reward.
        total: Sums of these rewards.
    """
    away = np.abs(best - np.median(best))
    apart = np.median(away) or away.mean()
    below = np.where(finished > 0, np.maximum(finished * best - total, 0.0), 0.0)
    free = np.maximum(finished - 1, 0)
    pooled = below.sum() / max(int(free.sum()), 1)
    deficit = (below + _SHRINKAGE * pooled) / (free + _SHRINKAGE)
    return np.asarray(np.sqrt(apart * deficit))


def pulls_by_time(pulls: IntArray, finished: IntArray, seconds: FloatArray) -> FloatArray:
    """Pulls (K,) as if all took the same time: t times the arm's part of all seconds.

    A running pull counts with the mean seconds of its arm, or of all arms where those are not
    known. A pull counts for at least a tenth of one: what takes no time would be pulled for ever.
    Without any known seconds the pulls stay as they are.

    Args:
        pulls: Pulls of each arm (K,), running ones included.
        finished: Finished ones among them (K,).
        seconds: Their known seconds (K,), 0 where unknown.
    """
    if not seconds.sum() > 0:
        return pulls.astype(np.float64)
    known = seconds > 0
    usual = seconds.sum() / finished[known].sum()
    each = np.where(known, seconds / np.maximum(finished, 1), usual)
    spent = each * pulls
    return np.asarray(np.maximum(pulls.sum() * spent / spent.sum(), _LEAST * pulls))


class UCB1(ScoredPolicy):
    """The arm with the largest ``ucb1``.

    Args:
        c: Weight of the uncertainty, >= 0.
        min_pulls, min_share: See ``Policy``.

    Example::

        UCB1(c=1.0).choose([0, 1], records, Streams(1), k=3)
    """

    def __init__(self, *, c: float = 2.0, min_pulls: int = 2, min_share: float = 0.25) -> None:
        super().__init__(min_pulls=min_pulls, min_share=min_share)
        if not 0.0 <= c < np.inf:
            raise ValueError(f"c must be finite and >= 0, got {c!r}.")
        self.c = c

    def _scores(self, standing: Standing) -> FloatArray:
        return ucb1(mean_rewards(standing.of), standing.of.pulls, self.c)


class UCB1Tuned(ScoredPolicy):
    """The arm with the largest ``ucb1_tuned``.

    Example::

        UCB1Tuned().choose([0, 1], records, Streams(1), k=3)
    """

    def _scores(self, standing: Standing) -> FloatArray:
        of = standing.of
        return ucb1_tuned(mean_rewards(of), of.variance, of.pulls)


class MaxUCB(ScoredPolicy):
    """The arm with the largest upper bound of its maximum, which is the goal of a search.

    The published bound (Balef et al. 2025), best + (alpha ln t / n_k)^2, takes a reward of 1 as
    its unit and settles late: with 12 arms not within 100 pulls. Here the bonus has the unit of
    the problem at hand and counts rounds, not pulls::

        U_k = best_k + S_k (alpha ln(1 + t / K) / n_k)^2,    S_k: ``arm_scales``

    so the choice does not change when all rewards are multiplied or shifted. The price is a
    little exploration, which pays after some hundred pulls. It fails where rewards spread much
    wider than the maxima differ: arms uniform on [0, max] with a gap of 0.05, or a best maximum
    that is rarely approached while the others' narrow ranges lie just below it.

    Args:
        alpha: Weight of the uncertainty, >= 0; None takes 1.75, and the published 0.5 for
            ``scale="unit"``.
        scale: ``"arms"`` or, the published rule, ``"unit"``.
        unit: ``"pulls"``, or ``"seconds"`` where the budget is time: n_k then are pulls by time,
            so a cheap arm is pulled more often than an expensive one that looks as good.
        min_pulls, min_share: See ``Policy``.

    Example::

        MaxUCB(unit="seconds").choose([0, 1], records, Streams(1), k=3)
    """

    def __init__(
        self,
        *,
        alpha: float | None = None,
        scale: Scale = "arms",
        unit: Unit = "pulls",
        min_pulls: int = 2,
        min_share: float = 0.25,
    ) -> None:
        super().__init__(min_pulls=min_pulls, min_share=min_share)
        if scale not in _ALPHA:
            raise ValueError(f"scale must be 'arms' or 'unit', got {scale!r}.")
        if unit not in ("pulls", "seconds"):
            raise ValueError(f"unit must be 'pulls' or 'seconds', got {unit!r}.")
        if alpha is not None and not 0.0 <= alpha < np.inf:
            raise ValueError(f"alpha must be finite and >= 0, or None, got {alpha!r}.")
        self.alpha = _ALPHA[scale] if alpha is None else alpha
        self.scale: Scale = scale
        self.unit: Unit = unit

    def _scores(self, standing: Standing) -> FloatArray:
        of = standing.of
        best, pulls = best_rewards(of), of.pulls.astype(np.float64)
        if self.unit == "seconds":
            pulls = pulls_by_time(of.pulls, of.scored, of.seconds)
        if self.scale == "unit":
            return max_ucb(best, pulls, self.alpha)
        bonus = (self.alpha * np.log1p(pulls.mean()) / pulls) ** 2
        return np.asarray(best + arm_scales(best, of.scored - of.failed, of.total) * bonus)


def best_rewards(of: ArmStatistics) -> FloatArray:
    """Largest rewards (K,), finite.

    0 for an arm of which all pulls failed so far, and the median of the others for one of which
    nothing has finished (0 if nothing has at all).
    """
    scored = of.scored > 0
    best = np.where(scored & np.isneginf(of.best), 0.0, of.best)
    if not scored.all():
        best[~scored] = np.median(best[scored]) if scored.any() else 0.0
    return best
