"""Thompson sampling for rewards in [0, 1], with Beta distributions matched by moments.

==========  =================================================================================
mu, s^2     mean and variance of an arm's rewards
alpha       ((1 - mu) / s^2 - 1 / mu) mu^2 (thesis 2.4)
beta        alpha (1 / mu - 1)
==========  =================================================================================

The two are positive only while 0 < mu < 1 and s^2 < mu (1 - mu), so mu and s are kept within
that. The thesis pulls an arm with s = 0 at once; an arm that always scores the same would then be
pulled for ever, so this ends with the second pull.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from .policy import Policy
from .records import ArmRecords, ArmStatistics

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

_EDGE = 1e-3  # least distance of mu from 0 and 1
_FLOOR = 1e-2  # least standard deviation of the rewards
_REDRAWS = 100  # until another arm wins


def beta_parameters(mean: npt.ArrayLike, variance: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Parameters alpha and beta (K,) of Beta distributions with these moments (K,), kept valid."""
    mu = np.clip(np.asarray(mean, dtype=np.float64), _EDGE, 1.0 - _EDGE)
    limit = mu * (1.0 - mu)
    # 0.99: at the limit itself alpha and beta are 0.
    s2 = np.minimum(np.maximum(np.asarray(variance, dtype=np.float64), _FLOOR**2), 0.99 * limit)
    alpha = ((1.0 - mu) / s2 - 1.0 / mu) * mu**2
    return alpha, alpha * (1.0 / mu - 1.0)


class Thompson(Policy):
    """The arm whose draw from its Beta distribution is the largest (thesis 2.4)."""

    def _pick(
        self,
        arms: IntArray,
        records: ArmRecords,
        statistics: ArmStatistics,
        rng: np.random.Generator,
    ) -> int:
        alpha, beta = _beliefs(arms, statistics)
        return int(arms[int(rng.beta(alpha, beta).argmax())])


class TopTwoThompson(Policy):
    """With probability gamma the winner of a draw, else the first other winner of a redraw.

    Args:
        gamma: In (0, 1].
        min_pulls: See ``Policy``.
        min_share: See ``Policy``.

    Raises:
        ValueError: For an argument outside its range.
    """

    def __init__(self, gamma: float = 0.5, *, min_pulls: int = 2, min_share: float = 0.25) -> None:
        super().__init__(min_pulls=min_pulls, min_share=min_share)
        if not 0.0 < gamma <= 1.0:
            raise ValueError(f"gamma must lie in (0, 1], got {gamma!r}.")
        self.gamma = gamma

    def _pick(
        self,
        arms: IntArray,
        records: ArmRecords,
        statistics: ArmStatistics,
        rng: np.random.Generator,
    ) -> int:
        alpha, beta = _beliefs(arms, statistics)
        winner = int(rng.beta(alpha, beta).argmax())
        if len(arms) == 1 or rng.random() < self.gamma:
            return int(arms[winner])
        # The listing in the thesis plays the first winner again; the challenger is what is meant.
        challengers = rng.beta(alpha, beta, size=(_REDRAWS, len(arms))).argmax(axis=1)
        others = challengers[challengers != winner]
        if len(others):
            return int(arms[others[0]])
        mean = np.delete(alpha / (alpha + beta), winner)
        return int(np.delete(arms, winner)[int(mean.argmax())])


def _beliefs(arms: IntArray, statistics: ArmStatistics) -> tuple[FloatArray, FloatArray]:
    return beta_parameters(statistics.mean[arms], statistics.variance[arms])
