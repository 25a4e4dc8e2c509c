"""Thompson sampling for rewards in [0, 1]: draw a reward of every arm, play the largest.

The rewards of an arm are taken as Beta distributed, with the moments they have (GBQR thesis,
2.11 to 2.24 and algorithm 2).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from .policy import Policy, Standing, best_of
from .records import ArmStatistics

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

_EDGE = 1e-3  # means are kept this far from 0 and 1
_SMALLEST_SD = 1e-3  # for arms that always have the same reward
_SMALLEST_SUM = 0.01  # of alpha and beta: rewards that are all 0 or 1 have a sum of 0
_REDRAWS = 5, 10  # times, at once: the challenger of a sure winner may not come up for ages


def beta_parameters(mean: FloatArray, variance: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Parameters (K,), both > 0, of the Beta distributions with these moments.

    alpha = ((1 - mu) / s^2 - 1 / mu) mu^2 (eq. 2.24), beta = alpha (1 / mu - 1) (eq. 2.15), that
    is alpha + beta = mu (1 - mu) / s^2 - 1. Exists only for 0 < mu < 1 and 0 < s^2 < mu (1 - mu):
    moments outside are moved to the nearest that are allowed.
    """
    mu = np.clip(mean, _EDGE, 1.0 - _EDGE)
    s2 = np.maximum(variance, _SMALLEST_SD**2)
    total = np.maximum(mu * (1.0 - mu) / s2 - 1.0, _SMALLEST_SUM)
    return mu * total, (1.0 - mu) * total


class Thompson(Policy):
    """The arm with the largest draw from the Beta distributions of their rewards.

    An arm whose rewards do not vary is pulled at once until it has two pulls; after that its
    standard deviation counts as 0.001. One of which nothing has finished is drawn uniformly.

    Example::

        Thompson().choose([0, 1], records, Streams(1), k=3)
    """

    def _pick(self, standing: Standing, rng: np.random.Generator) -> int:
        fresh = standing.arms[standing.of.pulls < 2]  # they have no standard deviation
        if len(fresh):
            return int(rng.choice(fresh))
        return self._play(standing.arms, *_posterior(standing.of), rng)

    def _play(
        self, arms: IntArray, alpha: FloatArray, beta: FloatArray, rng: np.random.Generator
    ) -> int:
        return best_of(arms, rng.beta(alpha, beta), rng)


class TopTwoThompson(Thompson):
    """Thompson sampling that plays the challenger in part of the pulls (Russo 2016).

    With probability gamma the winner of the draw is played, else all arms are drawn again until
    another one wins, and that is played (the listing in the GBQR thesis plays the first again).
    After 50 draws without another winner the best of the other arms in the last one is played.

    Args:
        gamma: Part of the pulls that the winner gets, in [0, 1].
        min_pulls, min_share: See ``Policy``.

    Example::

        TopTwoThompson(gamma=0.7).choose([0, 1], records, Streams(1), k=3)
    """

    def __init__(self, *, gamma: float = 0.5, min_pulls: int = 2, min_share: float = 0.25) -> None:
        super().__init__(min_pulls=min_pulls, min_share=min_share)
        if not 0.0 <= gamma <= 1.0:
            raise ValueError(f"gamma must lie in [0, 1], got {gamma!r}.")
        self.gamma = gamma

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
                return best_of(arms[others], draws[ahead.argmax(), others], rng)
        return best_of(arms[others], draws[-1, others], rng)


def _posterior(of: ArmStatistics) -> tuple[FloatArray, FloatArray]:
    """Parameters of the distributions of the arms; uniform where nothing has finished."""
    alpha, beta = beta_parameters(of.mean, of.variance)
    known = of.scored > 0
    return np.where(known, alpha, 1.0), np.where(known, beta, 1.0)
