"""Policies that are optimistic in the face of uncertainty.

They play the arm with the largest upper bound of its mean or maximum, the arm with the largest
draw from a distribution of its rewards, or an arm that may still beat the best reward. Notation:

=====  =====================================================================
n_k    pulls of arm k, running ones included; failed ones have reward 0
t, K   pulls of all arms that are left; their number
=====  =====================================================================
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from scipy.special import betaln, stdtr

from automl_plugins._arguments import check_choice, check_finite, check_share
from automl_plugins.arrays import BoolArray, FloatArray, IntArray

from .policy import Policy, ScoredPolicy, Standing, best_of, mean_rewards
from .records import ArmStatistics

Scale = Literal["arms", "unit"]
Unit = Literal["pulls", "seconds"]

_ALPHA: dict[Scale, float] = {"arms": 1.75, "unit": 0.5}
_LEAST = 0.1  # a pull counts for at least this many, however little time it took
_SHRINKAGE = 3.0  # weight of all arms' deficit, in pulls, against the deficit of one arm

_EDGE = 1e-3  # means are kept this far from 0 and 1
_SMALLEST_SD = 1e-3  # for arms that always have the same reward
_SMALLEST_SUM = 0.01  # of alpha + beta, which is 0 for rewards that are all 0 or 1
_REDRAWS = 5, 10  # batches, draws of each: a sure winner may keep winning almost for ever

_NO_SPREAD = 1e-12  # smaller variances are rounding errors
_TINY = 1e-280  # smaller tails are computed as logarithms


# --- upper bounds -----------------------------------------------------------------------------


def arm_scales(best: FloatArray, finished: IntArray, total: FloatArray) -> FloatArray:
    """Units S_k = sqrt(A d_k) (K,) in which rewards of arm k are compared with those of others.

    A is the median absolute deviation of the arms' maxima (the mean absolute deviation if that is
    0). d_k estimates how far a reward of arm k lies below the largest possible one: it is
    (n best - total) / (n - 1), unbiased if these distances are exponential, shrunk towards the
    estimate for all arms. A and d_k scale with the rewards, and an arm far behind changes neither
    for the others. ``best`` is finite, ``total`` the sum of the rewards of ``finished`` pulls.
    """
    away = np.abs(best - np.median(best))
    apart = np.median(away) or away.mean()
    # Equal rewards may leave a rounding error below 0, of which there is no root.
    below = np.where(finished > 0, np.maximum(finished * best - total, 0.0), 0.0)
    free = np.maximum(finished - 1, 0)  # the best reward itself lies 0 below
    pooled = below.sum() / max(int(free.sum()), 1)
    deficit = (below + _SHRINKAGE * pooled) / (free + _SHRINKAGE)
    return np.asarray(np.sqrt(apart * deficit))


def pulls_by_time(pulls: IntArray, timed: IntArray, seconds: FloatArray) -> FloatArray:
    """Pulls (K,) as if all took the same time: all pulls t, times the arm's share of all seconds.

    ``seconds`` are sums over ``timed`` pulls. Any other pull counts with the mean seconds of its
    arm, or of all arms if the arm has none. Each pull counts as a tenth of a pull at least, else
    an arm that takes no time would always win. If no seconds are known, ``pulls`` are returned.
    """
    if not seconds.sum() > 0:
        return pulls.astype(np.float64)
    known = seconds > 0  # zeros are unknown, see ``records.trial.Trial``
    usual = seconds.sum() / timed[known].sum()
    each = np.where(known, seconds / np.maximum(timed, 1), usual)
    spent = each * pulls
    return np.asarray(np.maximum(pulls.sum() * spent / spent.sum(), _LEAST * pulls))


@dataclass(kw_only=True, eq=False, repr=False)
class UCB1(ScoredPolicy):
    """The arm with the largest mean + sqrt(c ln t / n_k) (Auer 2002, fig. 1; GBQR thesis 2.4.3).

    Args:
        c: Weight of the uncertainty, >= 0.
        min_pulls, min_share: See ``Policy``.

    Example::

        UCB1(c=1.0).choose([0, 1], records, Streams(1), k=3)
    """

    c: float = 2.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_finite("c", self.c)

    def _scores(self, standing: Standing) -> FloatArray:
        pulls = standing.of.pulls
        bonus = np.sqrt(self.c * np.log(pulls.sum()) / pulls)  # pulls >= ``min_pulls`` >= 1
        return np.asarray(mean_rewards(standing.of) + bonus)


class UCB1Tuned(ScoredPolicy):
    """The arm with the largest mean + sqrt(ln t / n_k min(1/4, V_k)).

    V_k = variance + sqrt(2 ln t / n_k) (Auer et al. 2002, section 4); the GBQR thesis prints it
    without the "- mean^2" of the variance.

    Args:
        min_pulls, min_share: See ``Policy``.

    Example::

        UCB1Tuned().choose([0, 1], records, Streams(1), k=3)
    """

    def _scores(self, standing: Standing) -> FloatArray:
        of, log_t = standing.of, np.log(standing.of.pulls.sum())
        v = of.variance + np.sqrt(2.0 * log_t / of.pulls)
        return np.asarray(mean_rewards(of) + np.sqrt(log_t / of.pulls * np.minimum(0.25, v)))


@dataclass(kw_only=True, eq=False, repr=False)
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

    alpha: float | None = None
    scale: Scale = "arms"
    unit: Unit = "pulls"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("scale", self.scale, get_args(Scale))
        check_choice("unit", self.unit, get_args(Unit))
        if self.alpha is None:
            self.alpha = _ALPHA[self.scale]
        check_finite("alpha", self.alpha)

    def _scores(self, standing: Standing) -> FloatArray:
        of = standing.of
        best, pulls = best_rewards(of), of.pulls.astype(np.float64)
        assert self.alpha is not None
        if self.unit == "seconds":
            pulls = pulls_by_time(of.pulls, of.timed, of.seconds)
        if self.scale == "unit":
            return np.asarray(best + (self.alpha * np.log(pulls.sum()) / pulls) ** 2)
        bonus = (self.alpha * np.log1p(pulls.mean()) / pulls) ** 2  # the mean is t / K
        return np.asarray(best + arm_scales(best, of.scored - of.failed, of.total) * bonus)


def best_rewards(of: ArmStatistics) -> FloatArray:
    """Largest rewards (K,), finite.

    An arm whose finished pulls all failed has 0. An arm without a finished pull has the median of
    the other arms, or 0 if no pull has finished at all.
    """
    scored = of.scored > 0
    best = np.where(scored & np.isneginf(of.best), 0.0, of.best)
    if not scored.all():
        best[~scored] = np.median(best[scored]) if scored.any() else 0.0
    return best


# --- Thompson sampling ------------------------------------------------------------------------


def beta_parameters(mean: FloatArray, variance: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Parameters (K,), both > 0, of the Beta distributions with these moments.

    alpha = ((1 - mu) / s^2 - 1 / mu) mu^2 (GBQR thesis, eq. 2.24), beta = alpha (1 / mu - 1)
    (eq. 2.15), that is alpha + beta = mu (1 - mu) / s^2 - 1. They exist only for 0 < mu < 1 and
    0 < s^2 < mu (1 - mu): other moments are moved to the nearest ones in these ranges.
    """
    mu = np.clip(mean, _EDGE, 1.0 - _EDGE)
    s2 = np.maximum(variance, _SMALLEST_SD**2)
    total = np.maximum(mu * (1.0 - mu) / s2 - 1.0, _SMALLEST_SUM)
    return mu * total, (1.0 - mu) * total


class Thompson(Policy):
    """The arm with the largest draw from a Beta distribution of its rewards.

    The distributions have the moments of the rewards (GBQR thesis, 2.11 to 2.24, algorithm 2). An
    arm whose rewards do not vary is pulled at once until it has two pulls; after that its
    standard deviation counts as 0.001. For an arm without a finished pull the draw is uniform.

    Args:
        min_pulls, min_share: See ``Policy``.

    Example::

        Thompson().choose([0, 1], records, Streams(1), k=3)
    """

    def _pick(self, standing: Standing, rng: np.random.Generator) -> int:
        of = standing.of
        fresh = standing.arms[of.pulls < 2]  # they have no standard deviation
        if len(fresh):
            return int(rng.choice(fresh))
        known = of.scored > 0
        parameters = beta_parameters(of.mean, of.variance)
        alpha, beta = (np.where(known, parameter, 1.0) for parameter in parameters)
        return self._play(standing.arms, alpha, beta, rng)

    def _play(
        self, arms: IntArray, alpha: FloatArray, beta: FloatArray, rng: np.random.Generator
    ) -> int:
        return best_of(arms, rng.beta(alpha, beta), rng)


@dataclass(kw_only=True, eq=False, repr=False)
class TopTwoThompson(Thompson):
    """Thompson sampling that plays the challenger in part of the pulls (Russo 2016).

    With probability gamma the winner of the draw is played. Else the draw is repeated until
    another arm wins, which is played (the listing in the GBQR thesis plays the first again).
    After 50 draws without another winner, the second of the last draw is played.

    Args:
        gamma: Part of the pulls that the winner gets, in [0, 1].
        min_pulls, min_share: See ``Policy``.

    Example::

        TopTwoThompson(gamma=0.7).choose([0, 1], records, Streams(1), k=3)
    """

    gamma: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        check_share("gamma", self.gamma)

    def _play(
        self, arms: IntArray, alpha: FloatArray, beta: FloatArray, rng: np.random.Generator
    ) -> int:
        winner = best_of(arms, rng.beta(alpha, beta), rng)
        if len(arms) == 1 or rng.random() < self.gamma:
            return winner
        others = arms != winner
        times, rows = _REDRAWS
        for _ in range(times):
            draws = rng.beta(alpha, beta, size=(rows, len(arms)))
            ahead = draws[:, others].max(axis=1) > draws[:, ~others][:, 0]
            if ahead.any():
                return best_of(arms[others], draws[ahead.argmax(), others], rng)  # the first one
        return best_of(arms[others], draws[-1, others], rng)


# --- increasing effort ------------------------------------------------------------------------


def log_t_tail(z: FloatArray, degrees: FloatArray) -> FloatArray:
    """Log of the probability that Student's t exceeds z >= 0; accurate where that underflows.

    The tail is I_x(a, 1/2) / 2 with a = degrees / 2 and x = degrees / (degrees + z^2), and
    I_x(a, b) = x^a (1 - x)^b / (a B(a, b)) 2F1(a + b, 1; a + 1; x) (DLMF 8.17.8). That series is
    1 / (1 - x) up to a factor of 1 - 1 / z^2: 0.999 where it is needed.
    """
    tail = stdtr(degrees, -z)  # 1 - stdtr(degrees, z) would be 0 from 1e-16 on
    out = np.log(np.maximum(tail, _TINY))
    far = tail < _TINY
    if far.any():
        z, degrees = z[far], degrees[far]
        a, rest = degrees / 2.0, z**2 / (degrees + z**2)  # rest = 1 - x
        front = -a * np.log1p(z**2 / degrees) - np.log(a) - betaln(a, 0.5)
        out[far] = front - 0.5 * np.log(rest) - np.log(2.0)
    return np.asarray(out)


def effort(count: Any, mean: Any, variance: Any, best: Any) -> FloatArray:
    """The smallest r of ``IncreasingEffort`` at which each arm is a candidate (m,).

    ``count`` rewards of each arm have this mean and population variance (m,); ``best`` is the
    best reward so far of any arm. r is 0 for an arm with fewer than two rewards, whose limit is
    infinite, and inf for an arm whose rewards do not vary, whose limit is its mean.
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

    An arm is a candidate if its upper confidence limit exceeds the best reward y* so far::

        mean + t(1 - 0.1 / 2^r, n - 1) s / sqrt(n) > y*

    with r the number of times that no candidate was left (eq. 7.1). Solved for r, this gives the
    smallest r at which the arm is a candidate, its ``effort``: the tail of Student's t beyond
    z = (y* - mean) sqrt(n) / s exceeds 0.1 / 2^r. r rises until there is a candidate. So it is the
    largest value so far of the smallest effort, taken over the arms that are left now, as if the
    rule had been asked after each finished pull. If every effort is infinite, since no arm's
    rewards vary, all arms are candidates.

    Args:
        min_pulls, min_share: See ``Policy``.

    Example::

        IncreasingEffort().choose([0, 1], records, Streams(1), k=3)
    """

    def _pick(self, standing: Standing, rng: np.random.Generator) -> int:
        arms, (arm, reward) = standing.arms, standing.records.results()
        efforts = _efforts(arm[:, None] == arms, reward)
        smallest = efforts.min(axis=1)
        ran_out = smallest[np.isfinite(smallest)].max(initial=0.0)
        candidate = efforts[-1] <= ran_out
        if not candidate.any():
            candidate[:] = True
        pulls = standing.of.pulls
        return best_of(arms[candidate], -pulls[candidate], rng)


def _efforts(mine: BoolArray, reward: FloatArray) -> FloatArray:
    """Efforts of the arms before the first record and after each (n + 1, K).

    ``mine[i, k]`` says whether record i, with ``reward[i]``, is a pull of arm k.
    """
    value = reward[:, None]
    count, total, squares = np.stack([mine, mine * value, mine * value**2]).cumsum(axis=1)
    best = np.maximum.accumulate(np.append(0.0, reward))  # from the least reward there is
    # An effort stands until the arm's rewards or the best of all change.
    changed = mine | (np.diff(best) > 0.0)[:, None]
    at, who = np.nonzero(changed)
    n = count[at, who]
    mean = total[at, who] / np.maximum(n, 1.0)
    variance = np.maximum(squares[at, who] / np.maximum(n, 1.0) - mean**2, 0.0)
    efforts = np.zeros((len(mine) + 1, mine.shape[1]))
    efforts[at + 1, who] = effort(n, mean, variance, best[at + 1])
    # For each row the row in which the effort last changed.
    since = np.maximum.accumulate(np.where(changed, np.arange(1, len(mine) + 1)[:, None], 0))
    efforts[1:] = np.take_along_axis(efforts, since, axis=0)
    return efforts


def policy_or_default(policy: Policy | None) -> Policy:
    """The policy itself; ``MaxUCB()`` for None, TypeError for anything else."""
    if policy is not None and not isinstance(policy, Policy):
        raise TypeError(
            "policy must be a policy of automl_plugins.bandits, such as UCB1(), or None; got"
            f" {policy!r}."
        )
    return MaxUCB() if policy is None else policy
