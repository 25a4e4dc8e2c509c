"""Greedy policies and the baselines that every other one has to beat (thesis 2.4 and 7)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from automl_plugins.streams import Streams

from .policy import Policy, best_of, working
from .records import ArmRecords, ArmStatistics

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


class EpsilonGreedy(Policy):
    """The arm with the best mean; with probability epsilon any arm.

    Args:
        epsilon: In [0, 1].
        min_pulls: See ``Policy``.
        min_share: See ``Policy``.

    Raises:
        ValueError: For an argument outside its range.
    """

    def __init__(
        self, epsilon: float = 0.1, *, min_pulls: int = 2, min_share: float = 0.25
    ) -> None:
        super().__init__(min_pulls=min_pulls, min_share=min_share)
        if not 0.0 <= epsilon <= 1.0:
            raise ValueError(f"epsilon must lie in [0, 1], got {epsilon!r}.")
        self.epsilon = epsilon

    def _pick(
        self,
        arms: IntArray,
        records: ArmRecords,
        statistics: ArmStatistics,
        rng: np.random.Generator,
    ) -> int:
        if rng.random() < self._exploration(len(records)):
            return int(rng.choice(arms))
        return best_of(arms, statistics.mean[arms], rng)

    def _exploration(self, t: int) -> float:
        """Probability of a random arm after t pulls."""
        return self.epsilon


class DecreasingEpsilon(EpsilonGreedy):
    """Epsilon-greedy whose epsilon falls linearly, from 1 to 0 after ``n_pulls``.

    Args:
        n_pulls: Pulls after which it is greedy; > 0.
        min_pulls: See ``Policy``.
        min_share: See ``Policy``.

    Raises:
        ValueError: For an argument outside its range.
    """

    def __init__(self, n_pulls: int = 100, *, min_pulls: int = 2, min_share: float = 0.25) -> None:
        super().__init__(1.0, min_pulls=min_pulls, min_share=min_share)
        if not n_pulls > 0:
            raise ValueError(f"n_pulls must be > 0, got {n_pulls!r}.")
        self.n_pulls = n_pulls

    def _exploration(self, t: int) -> float:
        return self.epsilon * max(0.0, 1.0 - t / self.n_pulls)


class RandomArm(Policy):
    """Draws an arm, uniformly or with given weights; nothing is guaranteed to any arm.

    With weights 2^N it is weighted model sampling (Sarigiannis 2019).

    Args:
        weights: Weight >= 0 of each arm, by its number; None draws uniformly.

    Raises:
        ValueError: For weights that are negative, not finite, or all 0.
    """

    def __init__(self, weights: Mapping[int, float] | Sequence[float] | None = None) -> None:
        super().__init__(min_pulls=1, min_share=0.0)
        items = weights.items() if isinstance(weights, Mapping) else enumerate(weights or ())
        self.weights = {int(arm): float(weight) for arm, weight in items}
        values = np.array(list(self.weights.values()))
        if weights is not None and (
            not (np.isfinite(values) & (values >= 0)).all() or not values.any()
        ):
            raise ValueError(f"weights must be finite, >= 0 and not all 0, got {weights!r}.")

    def choose(self, arms: Sequence[int], records: ArmRecords, streams: Streams, k: int) -> int:
        """The arm to pull next, see ``Policy.choose``.

        Raises:
            ValueError: If there is no arm, or one without a weight.
        """
        if not len(arms):
            raise ValueError("There is no arm to choose from.")
        open_arms = np.unique(np.asarray(arms, dtype=np.int64))
        seen = int(records.arm.max()) + 1 if len(records) else 0
        statistics = ArmStatistics.from_records(records, max(seen, int(open_arms.max()) + 1))
        left = working(open_arms, statistics)
        return self._pick(left, records, statistics, streams.generator("policy", k))

    def _pick(
        self,
        arms: IntArray,
        records: ArmRecords,
        statistics: ArmStatistics,
        rng: np.random.Generator,
    ) -> int:
        if not self.weights:
            return int(rng.choice(arms))
        if missing := [arm for arm in arms.tolist() if arm not in self.weights]:
            raise ValueError(f"weights must have one for each arm; there is none for {missing}.")
        weights = np.array([self.weights[arm] for arm in arms.tolist()])
        # Where only arms of weight 0 are left, they are all that can be drawn.
        return int(rng.choice(arms, p=weights / weights.sum() if weights.any() else None))


class AlwaysBest(Policy):
    """Every arm once, then always the one with the best first reward.

    The baseline "always the first best" of the thesis: no evidence after the first pull counts.
    """

    def __init__(self) -> None:
        super().__init__(min_pulls=1, min_share=0.0)

    def _pick(
        self,
        arms: IntArray,
        records: ArmRecords,
        statistics: ArmStatistics,
        rng: np.random.Generator,
    ) -> int:
        done = records.finished
        rewards = np.full(len(statistics.pulls), -1.0)  # a first pull may be running still
        # Backwards, for of several values that go to one place the last one stays.
        rewards[records.arm[done][::-1]] = np.nan_to_num(records.reward[done][::-1], nan=0.0)
        return best_of(arms, rewards[arms], rng)
