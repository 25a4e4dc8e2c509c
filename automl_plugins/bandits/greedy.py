"""Policies that play the best arm so far, an arm at random, or now this and now that."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from .policy import Policy, Standing
from .records import ArmRecords, ArmStatistics

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
Weights = Mapping[int, float] | Sequence[float] | npt.NDArray[Any]


def mean_rewards(of: ArmStatistics) -> FloatArray:
    """Mean rewards (K,).

    An arm of which nothing has finished gets the mean of all rewards, 0 if there are none: a slow
    first pull neither draws all workers to its arm nor keeps them away.
    """
    overall = of.total.sum() / max(int(of.scored.sum()), 1)
    return np.asarray(np.where(of.scored > 0, of.mean, overall))


def linear_epsilon(t: int, start: float, end: float, horizon: int) -> float:
    """From ``start`` at t = 0 in a straight line to ``end`` at t = ``horizon``, then constant."""
    return start + (end - start) * min(t / horizon, 1.0)


class EpsilonGreedy(Policy):
    """With probability epsilon any arm, else the one with the best mean (GBQR thesis 2.4.1).

    Args:
        epsilon: Part of the pulls that is drawn uniformly, in [0, 1].
        min_pulls, min_share: See ``Policy``.

    Example::

        EpsilonGreedy(epsilon=0.2).choose([0, 1], records, Streams(1), k=3)
    """

    def __init__(
        self, *, epsilon: float = 0.1, min_pulls: int = 2, min_share: float = 0.25
    ) -> None:
        super().__init__(min_pulls=min_pulls, min_share=min_share)
        _refuse_outside_unit("epsilon", epsilon)
        self.epsilon = epsilon

    def _pick(self, standing: Standing, rng: np.random.Generator) -> int:
        if rng.random() < self._epsilon(int(standing.of.pulls.sum())):
            return int(rng.choice(standing.arms))
        return standing.play_best(mean_rewards(standing.of), rng)

    def _epsilon(self, t: int) -> float:
        """Probability of any arm after t pulls."""
        return self.epsilon


class DecreasingEpsilon(EpsilonGreedy):
    """Epsilon-greedy whose epsilon falls linearly with the pulls (GBQR thesis 2.4.1).

    Args:
        start: Epsilon before the first pull, in [0, 1].
        end: Epsilon from pull ``horizon`` on, in [0, 1].
        horizon: Pulls until ``end`` is reached, best the number of trials planned; >= 1.
        min_pulls, min_share: See ``Policy``.

    Example::

        DecreasingEpsilon(horizon=50).choose([0, 1], records, Streams(1), k=3)
    """

    def __init__(
        self,
        *,
        start: float = 1.0,
        end: float = 0.0,
        horizon: int = 100,
        min_pulls: int = 2,
        min_share: float = 0.25,
    ) -> None:
        super().__init__(epsilon=start, min_pulls=min_pulls, min_share=min_share)
        _refuse_outside_unit("end", end)
        if not horizon >= 1:
            raise ValueError(f"horizon must be >= 1 pulls, got {horizon!r}.")
        self.end = end
        self.horizon = horizon

    def _epsilon(self, t: int) -> float:
        return linear_epsilon(t, self.epsilon, self.end, self.horizon)


class RandomArm(Policy):
    """Draws an arm, uniformly or with given weights; the rewards do not matter.

    Weighted model sampling is this policy with ``min_pulls=0, min_share=0``: with a guarantee,
    the shares of the pulls are not the weights.

    Args:
        weights: Weight of each arm, by its number: a mapping or a sequence; finite, >= 0, one of
            them positive. Only arms that are left are drawn; if none of them has a positive
            weight, all are drawn alike. None weighs all alike.
        min_pulls: See ``Policy``; here 0 is allowed: not even one pull is guaranteed.
        min_share: See ``Policy``.

    Raises:
        ValueError: For an argument outside its range; on choosing, for an arm without a weight.

    Example::

        RandomArm(weights=[1, 4]).choose([0, 1], records, Streams(1), k=3)
    """

    def __init__(
        self,
        *,
        weights: Weights | None = None,
        min_pulls: int = 2,
        min_share: float = 0.25,
    ) -> None:
        if not min_pulls >= 0:
            raise ValueError(f"min_pulls must be >= 0, got {min_pulls!r}.")
        super().__init__(min_pulls=max(min_pulls, 1), min_share=min_share)
        self.min_pulls = min_pulls
        self.weights = None if weights is None else _weights(weights)

    def _pick(self, standing: Standing, rng: np.random.Generator) -> int:
        arms = standing.arms
        if self.weights is None:
            return int(rng.choice(arms))
        unknown = [arm for arm in arms.tolist() if arm not in self.weights]
        if unknown:
            raise ValueError(f"weights name arms {sorted(self.weights)}, but not {unknown}.")
        weights = np.array([self.weights[arm] for arm in arms.tolist()])
        if not weights.any():
            return int(rng.choice(arms))
        weights /= weights.max()  # the sum of very large ones would overflow
        return int(rng.choice(arms, p=weights / weights.sum()))


class AlwaysBest(Policy):
    """Always the arm whose first reward was best, or always a given one: baselines (thesis 7.5).

    A failed first pull has reward 0. Without any reward yet, arms are drawn.

    Args:
        arm: Play this one as long as it is left.
        min_pulls: See ``Policy``.
        min_share: See ``Policy``; 0 with ``min_pulls=1`` is the thesis's baseline.

    Raises:
        ValueError: For an argument outside its range.

    Example::

        AlwaysBest(arm=1).choose([0, 1], records, Streams(1), k=3)
    """

    def __init__(
        self, *, arm: int | None = None, min_pulls: int = 2, min_share: float = 0.25
    ) -> None:
        super().__init__(min_pulls=min_pulls, min_share=min_share)
        if arm is not None and arm < 0:
            raise ValueError(f"arm must be the number of an arm, >= 0, or None, got {arm!r}.")
        self.arm = arm

    def _pick(self, standing: Standing, rng: np.random.Generator) -> int:
        if self.arm is not None and self.arm in standing.arms:
            return self.arm
        return standing.play_best(first_rewards(standing.records, standing.arms), rng)


def first_rewards(records: ArmRecords, arms: IntArray) -> FloatArray:
    """Reward of the pull of each arm that finished first (K,); -inf where there is none."""
    done = records.finished
    arm, reward = records.arm[done], np.nan_to_num(records.reward[done], nan=0.0)
    out = np.full(max(arm.max(initial=-1), arms.max()) + 1, -np.inf)
    out[arm[::-1]] = reward[::-1]  # of several values for one place, the last one stays
    return out[arms]


def _refuse_outside_unit(name: str, value: float) -> None:
    if not 0.0 <= value <= 1.0:
        raise ValueError(f"{name} must lie in [0, 1], got {value!r}.")


def _weights(weights: Weights) -> dict[int, float]:
    """Weights by the number of the arm, checked."""
    pairs = weights.items() if isinstance(weights, Mapping) else enumerate(weights)
    out = {int(arm): float(weight) for arm, weight in pairs}
    wrong = {arm: w for arm, w in out.items() if not (np.isfinite(w) and w >= 0.0)}
    if wrong:
        raise ValueError(f"weights must be finite and >= 0, got {wrong}.")
    if not any(out.values()):
        raise ValueError("weights must have a positive entry.")
    return out
