"""The pulls of arms and their rewards, as columns; rewards from losses of any scale.

Notation of this package::

    n  pulls, one row each
    K  arms, numbered from 0; an array (K,) has an entry for each
    m  finished pulls
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from automl_plugins.arrays import (
    BoolArray,
    FloatArray,
    IntArray,
    check_seconds,
    check_shape,
    refuse_rows,
)
from automl_plugins.records.scores import HUGE, tame
from automl_plugins.records.trial import LONGEST, Status, count_statuses

FAILURES = 3  # finished pulls, all failed, after which an arm is given up
_FAR = 4.0  # times the distance from the best to the median: losses beyond have reward 0


@dataclass(frozen=True)
class ArmRecords:
    """Pulls of one search, finished ones first and in the order in which they finished.

    Attributes:
        arm: Number of the arm of each pull (n,), from 0.
        reward: Reward of each pull (n,), in [0, 1], larger is better; NaN if it has none. A
            pruned pull has the reward of its last report.
        seconds: Cost (n,), >= 0; NaN where unknown, also in place of more than ``LONGEST``.
        status: ``Status`` of each pull (n,).

    Raises:
        ValueError: On construction, naming the column and the row that is wrong.

    Example::

        records = ArmRecords.of([0, 1, 0], reward=[0.4, 0.7, math.nan])  # the last one failed
    """

    arm: IntArray
    reward: FloatArray
    seconds: FloatArray
    status: IntArray

    def __post_init__(self) -> None:
        n = len(self.arm)
        for name, column in vars(self).items():
            check_shape(name, column, n)
        reward, seconds = self.reward, self.seconds
        unknown = (self.status == Status.COMPLETE) & np.isnan(reward)
        refuse_rows("arm", self.arm, self.arm < 0, "must be >= 0")
        # NaN, no reward, passes these comparisons: only COMPLETE pulls need a reward.
        refuse_rows("reward", reward, (reward < 0) | (reward > 1), "must lie in [0, 1]")
        check_seconds("seconds", seconds)
        no_status = ~np.isin(self.status, list(Status))
        refuse_rows("status", self.status, no_status, "must be a Status")
        refuse_rows("reward", reward, unknown, "of a COMPLETE pull must be known")
        object.__setattr__(self, "seconds", np.where(seconds > LONGEST, np.nan, seconds))

    def __repr__(self) -> str:
        return f"ArmRecords({count_statuses(self.status)})"

    def __len__(self) -> int:
        return len(self.arm)

    @property
    def finished(self) -> BoolArray:
        """Mask (n,) of the pulls that are not running."""
        return np.asarray(self.status != Status.RUNNING)

    def results(self) -> tuple[IntArray, FloatArray]:
        """Arms and rewards (m,) of the finished pulls; the reward of a failed one is 0."""
        done = self.finished
        failed = self.status[done] == Status.FAILED
        # A pruned pull that reported nothing has no reward either.
        reward = np.where(failed, 0.0, np.nan_to_num(self.reward[done], nan=0.0))
        return self.arm[done], reward

    def incumbents(self) -> set[int]:
        """Arms of the best complete pull: several if they tie, none without a complete pull."""
        complete = self.status == Status.COMPLETE
        best = self.reward[complete].max(initial=-np.inf)
        return set(self.arm[complete & (self.reward == best)].tolist())

    @classmethod
    def of(
        cls,
        arm: Sequence[int] | IntArray,
        reward: Sequence[float] | FloatArray,
        *,
        seconds: Any = None,
        status: Any = None,
    ) -> ArmRecords:
        """Records from plain sequences; without a status, pulls without a reward have failed."""
        rewards = np.asarray(reward, dtype=np.float64).reshape(-1)
        n = len(rewards)
        failed = np.where(np.isnan(rewards), Status.FAILED, Status.COMPLETE)
        return cls(
            arm=np.asarray(arm, dtype=np.int64).reshape(-1),
            reward=rewards,
            seconds=np.full(n, np.nan) if seconds is None else np.asarray(seconds, np.float64),
            status=np.asarray(failed if status is None else status, dtype=np.int64).reshape(-1),
        )


@dataclass(frozen=True)
class ArmStatistics:
    """Sums over the pulls of each arm, one array entry for each arm (K,).

    Failed pulls count with reward 0 in ``mean`` and ``variance``: their time was wasted.
    Running pulls count in ``pulls`` only.
    """

    pulls: IntArray  # running ones included
    scored: IntArray  # finished pulls
    failed: IntArray  # failed pulls among them
    total: FloatArray  # sum of rewards
    squares: FloatArray  # sum of squared rewards
    best: FloatArray  # largest reward; -inf without one
    seconds: FloatArray  # sum over the finished pulls whose seconds are known
    timed: IntArray  # number of these pulls

    @classmethod
    def from_records(cls, records: ArmRecords, n_arms: int = 0) -> ArmStatistics:
        """Statistics of ``n_arms`` arms, or of more if more have records."""
        n_arms = max(n_arms, int(records.arm.max(initial=-1)) + 1)
        done = records.finished
        (arm, reward), failed = records.results(), records.status[done] == Status.FAILED
        best = np.full(n_arms, -np.inf)
        # With ``best[arm] = reward`` NumPy would keep the last reward of each arm.
        np.maximum.at(best, arm[~failed], reward[~failed])

        def count(of: IntArray, weights: Any = None) -> Any:
            return np.bincount(of, weights, n_arms)  # arms without a pull have an entry, too

        return cls(
            pulls=count(records.arm),
            scored=count(arm),
            failed=count(arm[failed]),
            total=count(arm, reward),
            squares=count(arm, reward**2),
            best=best,
            seconds=count(arm, np.nan_to_num(records.seconds[done], nan=0.0)),
            timed=count(arm[~np.isnan(records.seconds[done])]),
        )

    @property
    def mean(self) -> FloatArray:
        """Mean reward (K,); 0 where nothing has finished."""
        return np.asarray(self.total / np.maximum(self.scored, 1))

    @property
    def variance(self) -> FloatArray:
        """Population variance of the rewards (K,), >= 0."""
        second = self.squares / np.maximum(self.scored, 1)
        # Equal rewards, three of 0.03 for one, may leave a rounding error below 0.
        return np.asarray(np.maximum(second - self.mean**2, 0.0))

    def take(self, arms: IntArray) -> ArmStatistics:
        """The statistics of some arms only, in their order."""
        return ArmStatistics(**{name: column[arms] for name, column in vars(self).items()})

    def working(self, arms: IntArray, failures: int = FAILURES) -> IntArray:
        """The ``arms`` that are not ``failing``; all ``arms`` if every one of them is."""
        failing = self.failing(failures)[arms]
        return arms if failing.all() else arms[~failing]

    def failing(self, failures: int = FAILURES) -> BoolArray:
        """Mask (K,) of the arms with ``failures`` finished pulls or more, all of them failed."""
        return np.asarray((self.failed == self.scored) & (self.scored >= failures))


@dataclass(frozen=True)
class RewardScale:
    """Reward = (worst - loss) / (worst - best), clipped to [0, 1]."""

    best: float  # loss with reward 1
    worst: float  # loss with reward 0
    reason: str  # why this scale, with places for ``best`` and ``worst``; see ``describe``

    @classmethod
    def of(
        cls,
        losses: npt.ArrayLike,
        reward_range: tuple[float, float] | None = None,
        *,
        maximize: bool = False,
    ) -> RewardScale:
        """The scale for the losses (n,) known so far; NaN and infinite ones do not count.

        Losses in [0, 1] (errors) give 1 - loss and losses in [-1, 0] (negated scores) give -loss;
        where all are 0, ``maximize`` says which they are. All others are rescaled, see
        ``spanning``. A ``reward_range``, (best, worst) as ``loss_range`` returns it, overrides
        these rules.
        """
        if reward_range is not None:
            return cls(*reward_range, "rewards are scaled by the given range")
        values = np.asarray(losses, dtype=np.float64)
        values = values[np.isfinite(values)]
        errors = cls(0.0, 1.0, "losses lie in [0, 1]: the reward is 1 - loss")
        scores = cls(-1.0, 0.0, "scores lie in [0, 1]: the reward is the score")
        for scale in (scores, errors) if maximize else (errors, scores):
            if ((scale.best <= values) & (values <= scale.worst)).all():
                return scale
        scale = cls.spanning(values)
        return replace(scale, reason=f"values lie outside [0, 1]: {scale.reason}")

    @classmethod
    def spanning(cls, losses: FloatArray) -> RewardScale:
        """The scale from the best to the worst of the losses (n,), finite, n >= 1.

        The worst one is at most four times as far from the best as the median is, so that one
        diverged run does not make all others equal; far outliers are tamed first
        (``records.scores.tame``).
        """
        # ``tame`` brings all within 2e150; a loss of 1e308 itself lies beyond every ``reach``.
        values = np.clip(losses, -HUGE, HUGE)
        near = tame(values)
        best, worst = float(near.min()), float(near.max())
        reach = best + _FAR * (float(np.median(near)) - best)
        # If the median equals the best loss, the worst one is kept: ``reach`` would be the best.
        if best < reach < values.max():
            worst = reach
        reason = "{worst:g} counts as reward 0 and {best:g} as 1"
        if best == worst:
            reason = "all are {best:g} so far, which counts as reward 1"
        return cls(best, worst, reason)

    def describe(self, *, maximize: bool = False) -> str:
        """The reason, with the values of the objective in the user's own sign."""
        sign = -1.0 if maximize else 1.0
        # + 0.0 turns -0.0 into 0.0.
        return self.reason.format(worst=sign * self.worst + 0.0, best=sign * self.best + 0.0)

    def rewards(self, losses: npt.ArrayLike) -> FloatArray:
        """Rewards (n,), in [0, 1], of losses (n,): 0 for inf, 1 for -inf, NaN for NaN."""
        values = np.asarray(losses, dtype=np.float64)
        width = self.worst - self.best
        if width <= 0.0:  # one loss only, or several equal ones
            return np.where(np.isnan(values), np.nan, (values <= self.best).astype(np.float64))
        values = np.clip(values, -HUGE, HUGE)
        with np.errstate(over="ignore"):  # the width may be the smallest float
            return np.asarray(np.clip((self.worst - values) / width, 0.0, 1.0))


@dataclass(frozen=True)
class Pulls:
    """All pulls of a search, and the losses behind their rewards."""

    records: ArmRecords  # finished pulls in the order in which they finished, then running ones
    losses: FloatArray  # of each pull (n,), minimised; NaN where unknown or infeasible
    scale: RewardScale  # from losses to rewards

    @classmethod
    def from_losses(
        cls,
        arm: Sequence[int] | IntArray,
        losses: npt.ArrayLike,
        *,
        seconds: npt.ArrayLike,
        status: npt.ArrayLike,
        reward_range: tuple[float, float] | None = None,
        infeasible: BoolArray | None = None,
        maximize: bool = False,
    ) -> Pulls:
        """The pulls, with rewards on the scale of their losses; see ``RewardScale.of``.

        ``infeasible`` is a mask (n,) of the pulls that violate a constraint. Like infinite losses
        they have reward 0 and do not set the scale. The other arrays have an entry for each pull.
        """
        values = np.asarray(losses, dtype=np.float64)
        bad = np.isposinf(values)  # -inf, the best there is, has reward 1
        if infeasible is not None:
            # A failed pull, whose loss is NaN, stays without a reward.
            bad |= infeasible & ~np.isnan(values)
        scale = RewardScale.of(values[~bad], reward_range, maximize=maximize)
        rewards = scale.rewards(values)
        rewards[bad] = 0.0
        if infeasible is not None:
            values = np.where(infeasible, np.nan, values)
        return cls(ArmRecords.of(arm, rewards, seconds=seconds, status=status), values, scale)

    @property
    def rescaled(self) -> bool:
        """Whether the losses differ and were neither errors nor scores in [0, 1]."""
        best, worst = self.scale.best, self.scale.worst
        return best != worst and (best, worst) not in ((0.0, 1.0), (-1.0, 0.0))

    def given_up(self) -> set[int]:
        """Arms whose finished pulls, three or more, have all failed."""
        failing = ArmStatistics.from_records(self.records).failing()
        return set(np.flatnonzero(failing).tolist())


def loss_range(
    reward_range: tuple[float, float] | None, *, maximize: bool = False
) -> tuple[float, float] | None:
    """A ``reward_range``, two values of the objective in either order, as losses (best, worst).

    ValueError unless the values are finite and differ.
    """
    if reward_range is None:
        return None
    try:
        a, b = (float(value) for value in reward_range)
    except (TypeError, ValueError):
        a, b = math.nan, math.nan
    if not (math.isfinite(a) and math.isfinite(b) and a != b):
        raise ValueError(
            "reward_range must be two different finite values of the objective, the best and the"
            f" worst possible one in either order, got {reward_range!r}."
        )
    low, high = sorted((-a, -b) if maximize else (a, b))
    return low, high
