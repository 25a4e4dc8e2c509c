"""Which arm got what, when it left, and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from automl_plugins._optional import require
from automl_plugins.records.trial import Status

from . import rendering
from .records import ArmRecords, ArmStatistics
from .rounds import Round
from .successive_filtering import Unit

if TYPE_CHECKING:
    import pandas as pd

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class ArmRow:
    """What one arm got.

    Attributes:
        arm: Its name.
        pulls: All pulls, running ones included.
        running: Running ones among them.
        failed: Failed ones among them.
        pull_share: Part of all pulls, in [0, 1]; NaN if there are none.
        seconds: Known seconds of its finished pulls; NaN if none of them is known.
        seconds_share: Part of the known seconds of all arms, in [0, 1]; NaN if unknown.
        best: Best value of a complete pull, as the user wrote it; NaN if there is none.
        mean_reward: In [0, 1], failed pulls counted as 0; NaN if none has finished.
        left: Round in which it left, the first being 1; None if it did not.
        reason: Why it left; empty if it did not.
    """

    arm: str
    pulls: int
    running: int
    failed: int
    pull_share: float
    seconds: float
    seconds_share: float
    best: float
    mean_reward: float
    left: int | None
    reason: str


@dataclass(frozen=True)
class ArmReport:
    """How a search shared its trials and seconds among its arms.

    Adapters make it from a study or from trials; ``print`` shows it.

    Attributes:
        names: Names of the arms, in the order of their numbers.
        records: All pulls, in the order in which they finished.
        losses: Loss or objective value of each pull (n,), as the user wrote it; NaN if none.
        rounds: Rounds of successive filtering; empty for other policies.
        notes: What else should be known, one sentence each: how rewards were scaled, arms given
            up because they always failed, arms that ran out of configurations.
        maximize: Whether larger values in ``losses`` are better.
        unit: Unit of the rounds' shares and limits.
        opened: How many pulls had finished when each round was opened; empty if unknown.

    Raises:
        ValueError: If the parts do not fit each other.
    """

    names: tuple[str, ...]
    records: ArmRecords
    losses: Sequence[float]
    rounds: tuple[Round, ...] = ()
    notes: tuple[str, ...] = field(default=())
    maximize: bool = False
    unit: Unit = "trials"
    opened: tuple[int, ...] = ()

    def __repr__(self) -> str:
        rounds = f", {len(self.rounds)} rounds" if self.rounds else ""
        return f"ArmReport({len(self.names)} arms, {len(self.records)} pulls{rounds}; print it)"

    def __post_init__(self) -> None:
        n, decided = len(self.records), [d.arm for r in self.rounds for d in r.decisions]
        if len(self.losses) != n:
            raise ValueError(
                f"losses must have one value for each of the {n} pulls, got {len(self.losses)}."
            )
        n_arms = max([*self.records.arm.tolist(), *decided], default=-1) + 1
        if len(self.names) < n_arms:
            raise ValueError(f"names must name all {n_arms} arms, got {len(self.names)}.")
        if self.unit not in ("trials", "seconds"):
            raise ValueError(f"unit must be 'trials' or 'seconds', got {self.unit!r}.")
        if self.opened and len(self.opened) != len(self.rounds):
            raise ValueError(
                f"opened must have one number for each of the {len(self.rounds)} rounds, or none,"
                f" got {len(self.opened)}."
            )
        if list(self.opened) != sorted(self.opened) or not all(0 <= o <= n for o in self.opened):
            raise ValueError(f"opened must ascend from 0 to at most {n}, got {self.opened!r}.")

    def table(self) -> list[ArmRow]:
        """A row for each arm, in the order of their numbers."""
        of = ArmStatistics.from_records(self.records, len(self.names))
        timed = self.records.finished & ~np.isnan(self.records.seconds)
        n_timed = np.bincount(self.records.arm[timed], minlength=len(self.names))
        seconds = np.where((n_timed == 0) & (of.scored > 0), np.nan, of.seconds)
        best = self._best()
        left = self._left()
        n, total = len(self.records), float(of.seconds.sum())
        return [
            ArmRow(
                arm=name,
                pulls=int(of.pulls[k]),
                running=int(of.pulls[k] - of.scored[k]),
                failed=int(of.failed[k]),
                pull_share=float(of.pulls[k]) / n if n else np.nan,
                seconds=float(seconds[k]),
                seconds_share=float(seconds[k]) / total if total else np.nan,
                best=float(best[k]),
                mean_reward=float(of.mean[k]) if of.scored[k] else np.nan,
                left=left[k][0] if k in left else None,
                reason=left[k][1] if k in left else "",
            )
            for k, name in enumerate(self.names)
        ]

    def to_frame(self) -> pd.DataFrame:
        """The table as a data frame, a column for each attribute of ``ArmRow``.

        Raises:
            ModuleNotFoundError: If pandas is not installed.
        """
        pandas = require("pandas", needed_by="automl_plugins.bandits", extra="evidence")
        rows = [asdict(row) for row in self.table()]
        frame: pd.DataFrame = pandas.DataFrame(rows, columns=[f.name for f in fields(ArmRow)])
        return frame.astype({"left": "Int64"})

    def round_lines(self) -> list[str]:
        """A line for each round: who takes part with what, who left and why."""
        return [rendering.round_line(r, self.names, self.unit) for r in self.rounds]

    def __str__(self) -> str:
        """Plain text: a summary, the table with the best arm first, the rounds and the notes."""
        return rendering.text(self)

    def to_markdown(self) -> str:
        """The same in Markdown.

        Raises:
            ModuleNotFoundError: If tabulate is not installed.
        """
        return rendering.markdown(self)

    def _best(self) -> FloatArray:
        """Best value of the complete pulls of each arm (K,), NaN where there is none."""
        sign = -1.0 if self.maximize else 1.0
        values = sign * np.asarray(self.losses, dtype=np.float64).reshape(-1)
        known = (self.records.status == Status.COMPLETE) & ~np.isnan(values)
        best = np.full(len(self.names), np.nan)
        np.fmin.at(best, self.records.arm[known], values[known])
        return sign * best

    def _left(self) -> dict[int, tuple[int, str]]:
        """Number of the round in which an arm left, and why."""
        return {
            d.arm: (r.index + 1, d.reason)
            for r in self.rounds
            for d in r.decisions
            if not d.advances
        }
