"""The outcome of a round of successive filtering: drawn once, stored, read afterwards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from .records import ArmRecords


@dataclass(frozen=True)
class Decision:
    """What a round decided on one arm.

    Attributes:
        arm: Which one.
        advances: Whether it takes part in the round.
        score: Upper confidence bound; None where it has no rewards.
        probability: Of advancing; None in the first round.
        share: Part of the round's budget, in its unit; 0 for an arm that left.
        limit: What the arm may have spent in all when its share is used up.
        reason: Why it takes part or left, in words.
    """

    arm: int
    advances: bool
    score: float | None
    probability: float | None
    share: float = 0.0
    limit: float = 0.0
    reason: str = ""


@dataclass(frozen=True)
class Round:
    """One round.

    Attributes:
        index: Counted from 0.
        limit: What all arms together may have spent at its end.
        decisions: On every arm that took part in the round before, in ascending order.
    """

    index: int
    limit: float
    decisions: tuple[Decision, ...]

    @property
    def arms(self) -> tuple[int, ...]:
        """The arms that take part."""
        return tuple(d.arm for d in self.decisions if d.advances)

    def score_of(self, arm: int) -> float | None:
        """Score of an arm; None where it has no rewards, or took no part in the round before."""
        return next((d.score for d in self.decisions if d.arm == arm), None)

    def to_dict(self) -> dict[str, Any]:
        """Plain data that JSON can hold."""
        return {**asdict(self), "decisions": [asdict(d) for d in self.decisions]}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Round:
        """What ``to_dict`` returned."""
        decisions = tuple(Decision(**d) for d in data["decisions"])
        return cls(int(data["index"]), float(data["limit"]), decisions)


def lost_incumbent(opened: Round, records: ArmRecords, arms: Sequence[int]) -> int | None:
    """The arm of the best complete pull, if a round dropped it although it can still be pulled.

    Args:
        opened: The round.
        records: The pulls that it was drawn from.
        arms: Arms that still can be pulled.
    """
    dropped = {d.arm for d in opened.decisions if not d.advances} & set(arms)
    best = records.incumbents()
    return min(best) if best and best <= dropped else None
