"""What arms have been tried with which reward, as columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from automl_plugins.records.trial import Status, count_statuses

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True)
class ArmRecords:
    """Pulls of one search, finished ones first and in the order in which they finished.

    Attributes:
        arm: Which arm (n,), numbered from 0.
        reward: Larger is better, in [0, 1] (n,); NaN where there is none. A pruned pull has the
            reward of its last report.
        seconds: Cost (n,), >= 0; NaN where unknown.
        status: ``Status`` of each pull (n,).

    Raises:
        ValueError: On construction, naming the column and the row that is wrong.
    """

    arm: IntArray
    reward: FloatArray
    seconds: FloatArray
    status: IntArray

    def __post_init__(self) -> None:
        n = len(self.arm)
        for name in ("arm", "reward", "seconds", "status"):
            shape = getattr(self, name).shape
            if shape != (n,):
                raise ValueError(f"{name} must have shape ({n},), got {shape}.")
        self._refuse(self.arm < 0, "arm", "must be >= 0")
        self._refuse((self.reward < 0) | (self.reward > 1), "reward", "must lie in [0, 1]")
        self._refuse(
            (self.seconds < 0) | np.isinf(self.seconds), "seconds", "must be finite, >= 0"
        )
        unknown = (self.status < min(Status)) | (self.status > max(Status))
        self._refuse(unknown, "status", "must be a Status")
        complete = self.status == Status.COMPLETE
        self._refuse(
            complete & np.isnan(self.reward), "reward", "of a COMPLETE pull must be known"
        )

    def _refuse(self, wrong: npt.NDArray[np.bool_], column: str, rule: str) -> None:
        if wrong.any():
            row = int(wrong.argmax())
            raise ValueError(f"{column} {rule}, got {getattr(self, column)[row]} in row {row}.")

    def __repr__(self) -> str:
        return f"ArmRecords({count_statuses(self.status)})"

    def __len__(self) -> int:
        return len(self.arm)

    @property
    def finished(self) -> npt.NDArray[np.bool_]:
        """Mask (n,) of the pulls that are not under way."""
        return np.asarray(self.status != Status.RUNNING)

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

    @classmethod
    def empty(cls) -> ArmRecords:
        """No pulls."""
        return cls.of([], [])


@dataclass(frozen=True)
class ArmStatistics:
    """Sums over the pulls of each arm, one array entry for each arm (K,).

    Failed pulls count with reward 0 in ``mean`` and ``sd``: time was spent on nothing. Running
    pulls count in ``pulls`` only.

    Attributes:
        pulls: All pulls, running ones included.
        scored: Finished pulls.
        failed: Failed ones among them.
        total: Sum of rewards.
        squares: Sum of squared rewards.
        best: Largest reward; -inf where there is none.
        seconds: Known seconds of finished pulls.
    """

    pulls: IntArray
    scored: IntArray
    failed: IntArray
    total: FloatArray
    squares: FloatArray
    best: FloatArray
    seconds: FloatArray

    @classmethod
    def from_records(cls, records: ArmRecords, n_arms: int) -> ArmStatistics:
        """Statistics of arms 0 to ``n_arms`` - 1."""
        done = records.finished
        arm, failed = records.arm[done], records.status[done] == Status.FAILED
        reward = np.where(failed, 0.0, np.nan_to_num(records.reward[done], nan=0.0))
        best = np.full(n_arms, -np.inf)
        np.maximum.at(best, arm[~failed], reward[~failed])

        def count(weights: Any = None, of: IntArray = arm) -> Any:
            return np.bincount(of, weights=weights, minlength=n_arms)

        return cls(
            pulls=count(of=records.arm),
            scored=count(),
            failed=count(of=arm[failed]),
            total=count(reward),
            squares=count(reward**2),
            best=best,
            seconds=count(np.nan_to_num(records.seconds[done], nan=0.0)),
        )

    @property
    def mean(self) -> FloatArray:
        """Mean reward (K,); 0 where nothing has finished."""
        return np.asarray(self.total / np.maximum(self.scored, 1))

    @property
    def variance(self) -> FloatArray:
        """Population variance of the rewards (K,), >= 0."""
        second = self.squares / np.maximum(self.scored, 1)
        return np.asarray(np.maximum(second - self.mean**2, 0.0))
