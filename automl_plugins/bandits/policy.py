"""The base of all policies, and those that play the best arm so far or one at random."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from automl_plugins._arguments import ShowsArguments, check_integer, check_share
from automl_plugins.arrays import FloatArray, IntArray
from automl_plugins.streams import Streams

from .records import ArmRecords, ArmStatistics

Weights = Mapping[int, float] | Sequence[float] | npt.NDArray[Any]


@dataclass(frozen=True)
class Standing:
    """The state of a search as the rule of a policy sees it."""

    arms: IntArray  # arms that can be chosen (K,), ascending; without those that always fail
    of: ArmStatistics  # of these arms, in the same order
    records: ArmRecords  # all pulls so far, of any arm

    def play_best(self, scores: FloatArray, rng: np.random.Generator) -> int:
        """The arm with the largest score (K,); ties are drawn."""
        return best_of(self.arms, scores, rng)

    def play_fewest(self, rng: np.random.Generator) -> int:
        """An arm with the fewest pulls."""
        return best_of(self.arms, -self.of.pulls, rng)


@dataclass(frozen=True)
class ArmChoice:
    """An arm, and why it was chosen."""

    arm: int
    reason: str  # in words
    score: float | None = None  # its score, if the rule compares scores
    round: int | None = None  # round of successive filtering, counted from 1, if there are rounds


@dataclass(kw_only=True, eq=False, repr=False)
class Policy(ShowsArguments, ABC):
    """Chooses the arm of the next pull; a pure function of the records, the seed and k.

    An arm that has failed three times and never succeeded is given up unless all arms are. Every
    other arm gets ``max(min_pulls, min_share * t / K)`` of the first t pulls, K the number of
    arms that are left. The rule of the policy decides on the other pulls.

    Args:
        min_pulls: Pulls of each arm before the rule is asked; >= 1.
        min_share: Guaranteed part of an equal share, in [0, 1]. The published rules have
            ``min_pulls=1, min_share=0``.

    Raises:
        ValueError: For an argument outside its range, here and in every policy.

    Example::

        class FewestPulls(Policy):
            def _pick(self, standing, rng):
                return standing.play_fewest(rng)


        FewestPulls().choose([0, 1], records, Streams(1), k=3)
    """

    min_pulls: int = 2
    min_share: float = 0.25
    _fewest: ClassVar[int] = 1  # smallest legal min_pulls

    def __post_init__(self) -> None:
        check_integer("min_pulls", self.min_pulls, self._fewest)
        check_share("min_share", self.min_share)

    def choose(self, arms: Sequence[int], records: ArmRecords, streams: Streams, k: int) -> int:
        """The arm to pull next.

        Args:
            arms: Arms that may be chosen, distinct; exhausted ones are left out by the caller.
            records: All pulls so far, of any arm, running ones included.
            streams: Source of randomness.
            k: Number of this pull; the same number gives the same random draws.

        Raises:
            ValueError: If there is no arm.
        """
        standing = _standing(arms, records)
        rng = streams.generator("policy", k)
        # The fewest pulls first: guarantees are caught up evenly.
        if self._guarantees(standing.of.pulls):
            return standing.play_fewest(rng)
        return int(self._pick(standing, rng))

    def decide(
        self, arms: Sequence[int], records: ArmRecords, streams: Streams, k: int
    ) -> ArmChoice:
        """The arm that ``choose`` returns, and why."""
        arm, name = self.choose(arms, records, streams, k), type(self).__name__
        standing = _standing(arms, records)  # again: a policy may have a ``choose`` of its own
        if self._guarantees(standing.of.pulls):
            return ArmChoice(arm, f"guaranteed minimum of {name}")
        scores = self._scores(standing)
        own = np.empty(0) if scores is None else scores[standing.arms == arm]
        # Such a ``choose`` may also return an arm that is given up, which has no score.
        return ArmChoice(arm, f"chosen by {name}", float(own[0]) if len(own) else None)

    def _guarantees(self, pulls: IntArray) -> bool:
        """Whether an arm has fewer pulls (K,) than it is guaranteed."""
        # The guarantee K pulls ahead: all arms may fall short of theirs at the same time.
        share = self.min_share * (int(pulls.sum()) / len(pulls) + 1)
        return bool(pulls.min() < max(self.min_pulls, math.ceil(share)))

    @abstractmethod
    def _pick(self, standing: Standing, rng: np.random.Generator) -> int:
        """Choose one of the arms; each has ``min_pulls`` pulls or more, running ones included."""

    def _scores(self, standing: Standing) -> FloatArray | None:
        """Scores that the rule compares, larger is better (K,); None if it compares none."""
        return None


class ScoredPolicy(Policy):
    """A policy that plays the arm with the largest score."""

    @abstractmethod
    def _scores(self, standing: Standing) -> FloatArray: ...

    def _pick(self, standing: Standing, rng: np.random.Generator) -> int:
        return standing.play_best(self._scores(standing), rng)


def _standing(arms: Sequence[int], records: ArmRecords) -> Standing:
    if not len(arms):
        raise ValueError("There is no arm to choose from.")
    statistics = ArmStatistics.from_records(records, max(arms) + 1)
    left = statistics.working(np.unique(np.asarray(arms, dtype=np.int64)))
    return Standing(left, statistics.take(left), records)


def best_of(arms: IntArray, scores: npt.NDArray[Any], rng: np.random.Generator) -> int:
    """The arm with the largest score (len(arms),); ties are drawn."""
    return int(rng.choice(arms[scores == scores.max()]))


def weights_from_numbers(numbers: npt.ArrayLike) -> FloatArray:
    """Probabilities (M,) proportional to given weights (M,) of any sum."""
    values = np.asarray(numbers, dtype=np.float64)
    if not ((values >= 0) & (values < np.inf)).all() or not values.any():
        raise ValueError(f"weights must be finite, >= 0 and not all 0, got {values.tolist()}.")
    values = values / values.max()  # their sum may overflow
    return np.asarray(values / values.sum())


def mean_rewards(of: ArmStatistics) -> FloatArray:
    """Mean rewards (K,).

    An arm without a finished pull has the mean of all rewards, or 0 if there are none: so a slow
    first pull neither attracts all workers to its arm nor keeps them away.
    """
    overall = of.total.sum() / max(int(of.scored.sum()), 1)
    return np.asarray(np.where(of.scored > 0, of.mean, overall))


class _Greedy(Policy):
    """A policy that plays the arm with the best mean, and sometimes any."""

    def _pick(self, standing: Standing, rng: np.random.Generator) -> int:
        if rng.random() < self._epsilon(int(standing.of.pulls.sum())):
            return int(rng.choice(standing.arms))
        return standing.play_best(mean_rewards(standing.of), rng)

    @abstractmethod
    def _epsilon(self, t: int) -> float:
        """Probability of drawing the arm uniformly, after t pulls."""


@dataclass(kw_only=True, eq=False, repr=False)
class EpsilonGreedy(_Greedy):
    """With probability epsilon any arm, else the one with the best mean (GBQR thesis 2.4.1).

    Args:
        epsilon: Part of the pulls that is drawn uniformly, in [0, 1].
        min_pulls, min_share: See ``Policy``.

    Example::

        EpsilonGreedy(epsilon=0.2).choose([0, 1], records, Streams(1), k=3)
    """

    epsilon: float = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        check_share("epsilon", self.epsilon)

    def _epsilon(self, t: int) -> float:
        return self.epsilon


@dataclass(kw_only=True, eq=False, repr=False)
class DecreasingEpsilon(_Greedy):
    """Epsilon-greedy whose epsilon falls linearly with the pulls (GBQR thesis 2.4.1).

    Args:
        start: Epsilon before the first pull, in [0, 1].
        end: Epsilon from pull ``horizon`` on, in [0, 1].
        horizon: Pulls until ``end`` is reached, ideally the number of trials planned; >= 1.
        min_pulls, min_share: See ``Policy``.

    Example::

        DecreasingEpsilon(horizon=50).choose([0, 1], records, Streams(1), k=3)
    """

    start: float = 1.0
    end: float = 0.0
    horizon: int = 100

    def __post_init__(self) -> None:
        super().__post_init__()
        check_share("start", self.start)
        check_share("end", self.end)
        check_integer("horizon", self.horizon, 1)

    def _epsilon(self, t: int) -> float:
        return self.start + (self.end - self.start) * min(t / self.horizon, 1.0)


@dataclass(kw_only=True, eq=False, repr=False)
class RandomArm(Policy):
    """Draws an arm, uniformly or with given weights; the rewards do not matter.

    Weighted model sampling is this policy with ``min_pulls=0, min_share=0``: a guarantee would
    move the arms' shares of the pulls away from the weights.

    Args:
        weights: Weight of each arm, by its number: a mapping or a sequence; finite, >= 0, one of
            them positive. Only arms that are left are drawn; if none of them has a positive
            weight, they are drawn uniformly. None weighs all equally.
        min_pulls: See ``Policy``; here 0 is allowed: not even one pull is guaranteed.
        min_share: See ``Policy``.

    Raises:
        ValueError: For an argument outside its range; on choosing, for an arm without a weight.

    Example::

        RandomArm(weights=[1, 4]).choose([0, 1], records, Streams(1), k=3)
    """

    weights: Weights | None = None
    _fewest: ClassVar[int] = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.weights is None:
            return
        given = self.weights
        pairs = given.items() if isinstance(given, Mapping) else enumerate(given)
        self.weights = {int(arm): float(weight) for arm, weight in pairs}
        wrong = {a: w for a, w in self.weights.items() if not (np.isfinite(w) and w >= 0.0)}
        if wrong:
            raise ValueError(f"weights must be finite and >= 0, got {wrong}.")
        if not any(self.weights.values()):
            raise ValueError("weights must have a positive entry.")

    def _pick(self, standing: Standing, rng: np.random.Generator) -> int:
        arms = standing.arms
        if self.weights is None:
            return int(rng.choice(arms))
        assert isinstance(self.weights, dict)
        unknown = [arm for arm in arms.tolist() if arm not in self.weights]
        if unknown:
            raise ValueError(f"weights name arms {sorted(self.weights)}, but not {unknown}.")
        weights = np.array([self.weights[arm] for arm in arms.tolist()])
        return int(rng.choice(arms, p=weights_from_numbers(weights) if weights.any() else None))


@dataclass(kw_only=True, eq=False, repr=False)
class AlwaysBest(Policy):
    """Always the arm whose first reward was best, or always a given one: baselines (thesis 7.5).

    A failed first pull has reward 0. Until a pull has finished, arms are drawn uniformly. The
    thesis's baseline has ``min_pulls=1, min_share=0``.

    Args:
        arm: Number of the arm to play as long as it is left; None is the one that began best.
        min_pulls, min_share: See ``Policy``.

    Example::

        AlwaysBest(arm=1).choose([0, 1], records, Streams(1), k=3)
    """

    arm: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_integer("arm", self.arm, 0, optional=True)

    def _pick(self, standing: Standing, rng: np.random.Generator) -> int:
        arms = standing.arms
        if self.arm is not None and self.arm in arms:
            return self.arm
        arm, reward = standing.records.results()
        first = np.full(max(arm.max(initial=-1), arms.max()) + 1, -np.inf)
        first[arm[::-1]] = reward[::-1]  # NumPy keeps the last of several values for one place
        return standing.play_best(first[arms], rng)
