"""Losses of any scale as rewards in [0, 1], which all rules for arms assume."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from automl_plugins.records.outliers import HUGE, tame

FloatArray = npt.NDArray[np.float64]

_FAR = 4.0  # times the distance from the best to the median: what is worse is no better than 0


@dataclass(frozen=True)
class RewardScale:
    """Reward = (worst - loss) / (worst - best), clipped to [0, 1].

    Attributes:
        best: Loss with reward 1.
        worst: Loss with reward 0.
        reason: Why this scale, one sentence.
    """

    best: float
    worst: float
    reason: str

    @classmethod
    def of(
        cls, losses: npt.ArrayLike, reward_range: tuple[float, float] | None = None
    ) -> RewardScale:
        """The scale for losses (n,) as they are known so far; NaN and infinite ones do not count.

        Losses in [0, 1] (errors) give 1 - loss and losses in [-1, 0] (negated scores) give -loss.
        All others are rescaled by the best and the worst one; a worst one that is further from
        the best than four times the median is cut there, so that one diverged run does not make
        all others equal; far outliers are tamed for that (``outliers.tame``).

        Args:
            losses: Minimised.
            reward_range: Losses with reward 1 and 0, if known; overrides all rules.

        Raises:
            ValueError: If the two are not finite or not in ascending order.
        """
        if reward_range is not None:
            best, worst = reward_range
            if not (np.isfinite(best) and np.isfinite(worst) and best < worst):
                raise ValueError(
                    "reward_range must be two finite losses, the better one first, got"
                    f" {reward_range!r}."
                )
            return cls(float(best), float(worst), "rewards are scaled by the given range")
        values = np.asarray(losses, dtype=np.float64)
        values = np.clip(values[np.isfinite(values)], -HUGE, HUGE)
        if not len(values) or (values.min() >= 0.0 and values.max() <= 1.0):
            return cls(0.0, 1.0, "losses lie in [0, 1]: the reward is 1 - loss")
        if values.min() >= -1.0 and values.max() <= 0.0:
            return cls(-1.0, 0.0, "scores lie in [0, 1]: the reward is the score")
        near = tame(values)
        best, worst = float(near.min()), float(near.max())
        reach = best + _FAR * (float(np.median(near)) - best)
        if best < reach < values.max():
            worst = reach
        reason = f"losses lie outside [0, 1]: {worst:g} counts as reward 0 and {best:g} as 1"
        return cls(best, worst, reason)

    def rewards(self, losses: npt.ArrayLike) -> FloatArray:
        """Rewards of losses (n,) in [0, 1]; NaN stays, infinities are 0 and 1."""
        values = np.asarray(losses, dtype=np.float64)
        width = self.worst - self.best
        if width <= 0.0:  # one loss only, or several equal ones
            return np.where(np.isnan(values), np.nan, (values <= self.best).astype(np.float64))
        values = np.clip(values, -HUGE, HUGE)
        with np.errstate(over="ignore"):  # the width may be the least there is
            return np.asarray(np.clip((self.worst - values) / width, 0.0, 1.0))
