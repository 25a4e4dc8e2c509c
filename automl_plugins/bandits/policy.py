"""What every arm policy shares: failing arms leave, and nobody starves."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from automl_plugins._arguments import ShowsArguments
from automl_plugins.streams import Streams

from .records import ArmRecords, ArmStatistics

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Standing:
    """What a rule decides on.

    Attributes:
        arms: Arms that can be chosen (K,), ascending; those that always fail are left out.
        of: Their statistics, in the same order.
        records: All pulls so far, of any arm.
    """

    arms: IntArray
    of: ArmStatistics
    records: ArmRecords

    @classmethod
    def from_records(cls, arms: Sequence[int], records: ArmRecords) -> Standing:
        """The standing of those of ``arms`` that have not always failed.

        Raises:
            ValueError: If there is no arm.
        """
        if not len(arms):
            raise ValueError("There is no arm to choose from.")
        n_arms = max(int(records.arm.max(initial=-1)), *arms) + 1
        statistics = ArmStatistics.from_records(records, n_arms)
        left = statistics.working(np.unique(np.asarray(arms, dtype=np.int64)))
        return cls(left, statistics.take(left), records)

    def play_best(self, scores: FloatArray, rng: np.random.Generator) -> int:
        """The arm with the largest score (K,); ties are drawn."""
        return best_of(self.arms, scores, rng)

    def play_fewest(self, rng: np.random.Generator) -> int:
        """An arm with the fewest pulls."""
        return int(rng.choice(self.arms[self.of.pulls == self.of.pulls.min()]))


@dataclass(frozen=True)
class ArmChoice:
    """An arm, and why it was chosen.

    Attributes:
        arm: Number of the arm.
        reason: In words.
        score: What the rule compared; None where it compared nothing.
        round: Round of successive filtering, from 1; None without rounds.
    """

    arm: int
    reason: str
    score: float | None = None
    round: int | None = None


class Policy(ShowsArguments, ABC):
    """Chooses the arm of the next pull; a pure function of the records, the seed and k.

    An arm whose first three finished pulls all failed is given up unless all arms are. Every
    other arm gets ``max(min_pulls, min_share * t / K)`` of the first t pulls, K the number of
    arms that are left; what the rule of the policy decides are the pulls beyond.

    Args:
        min_pulls: Pulls of each arm before the rule is asked; >= 1.
        min_share: Guaranteed part of an equal share, in [0, 1].

    Raises:
        ValueError: For an argument outside its range.

    Example::

        class FewestPulls(Policy):
            def _pick(self, standing, rng):
                return standing.play_fewest(rng)


        FewestPulls().choose([0, 1], records, Streams(1), k=3)
    """

    def __init__(self, *, min_pulls: int = 2, min_share: float = 0.25) -> None:
        if not min_pulls >= 1:
            raise ValueError(f"min_pulls must be >= 1, got {min_pulls!r}.")
        if not 0.0 <= min_share <= 1.0:
            raise ValueError(f"min_share must lie in [0, 1], got {min_share!r}.")
        self.min_pulls = min_pulls
        self.min_share = min_share

    def choose(self, arms: Sequence[int], records: ArmRecords, streams: Streams, k: int) -> int:
        """The arm to pull next.

        Args:
            arms: Arms that may be chosen, distinct; exhausted ones are left out by the caller.
            records: All pulls so far, of any arm, running ones included.
            streams: Source of randomness.
            k: Number of this pull; pulls of the same number draw the same.

        Raises:
            ValueError: If there is no arm.
        """
        standing = Standing.from_records(arms, records)
        rng = streams.generator("policy", k)
        if self._guarantees(standing.of.pulls):
            return standing.play_fewest(rng)
        return int(self._pick(standing, rng))

    def decide(
        self, arms: Sequence[int], records: ArmRecords, streams: Streams, k: int
    ) -> ArmChoice:
        """What ``choose`` returns, and why."""
        arm = self.choose(arms, records, streams, k)
        standing = Standing.from_records(arms, records)
        if self._guarantees(standing.of.pulls):
            return ArmChoice(arm, f"guaranteed minimum of {type(self).__name__}")
        scores = self._scores(standing)
        score = (
            None if scores is None else float(scores[standing.arms == arm].max(initial=-math.inf))
        )
        return ArmChoice(arm, f"chosen by {type(self).__name__}", score)

    def _guarantees(self, pulls: IntArray) -> bool:
        """Whether an arm has fewer pulls (K,) than it is guaranteed."""
        # One pull ahead for every arm: they may all fall short of the guarantee at once.
        share = self.min_share * (int(pulls.sum()) / len(pulls) + 1)
        return bool(pulls.min() < max(self.min_pulls, math.ceil(share)))

    @abstractmethod
    def _pick(self, standing: Standing, rng: np.random.Generator) -> int:
        """One of the arms, each of which has ``min_pulls`` pulls (maybe still running)."""

    def _scores(self, standing: Standing) -> FloatArray | None:
        """What the rule compares, larger is better (K,); None if it compares nothing."""
        return None


class ScoredPolicy(Policy):
    """A policy that plays the arm with the largest score."""

    @abstractmethod
    def _scores(self, standing: Standing) -> FloatArray: ...

    def _pick(self, standing: Standing, rng: np.random.Generator) -> int:
        return standing.play_best(self._scores(standing), rng)


def best_of(arms: IntArray, scores: FloatArray, rng: np.random.Generator) -> int:
    """The arm with the largest score (len(arms),); ties are drawn."""
    return int(rng.choice(arms[scores == scores.max()]))
