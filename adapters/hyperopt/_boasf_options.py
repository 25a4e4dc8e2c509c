"""Options of BOASF, checked, and the search that they describe."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from hyperopt import Domain, Trials, tpe

from automl_plugins.bandits.successive_filtering import PAPER, Score, SuccessiveFiltering, Unit
from automl_plugins.streams import Streams

from ._arms import Arms, Split, Suggest, Values, arms_of, inner_of
from ._boasf_search import BoasfSearch, Cost


@dataclass(frozen=True, kw_only=True)
class BoasfOptions:
    """What ``boasf_fmin`` and a replay of it share; see ``boasf_fmin`` for the attributes.

    Raises:
        ValueError: On construction, for an argument outside its range.
    """

    budget_seconds: float | None = None
    max_evals: int | None = None
    rounds: int = 3
    c: float | None = None
    temperature: float | None = None
    score: Score = "maximum"
    min_pulls: int = 1
    carry_debts: bool = True
    label: str | None = None
    split: Split | None = None
    max_arms: int = 32
    inner: Suggest | str = tpe.suggest
    cost: Cost = None
    reward_range: tuple[float, float] | None = None
    paper: bool = False

    def __post_init__(self) -> None:
        if (self.budget_seconds is None) == (self.max_evals is None):
            given = "neither" if self.max_evals is None else "both"
            raise ValueError(
                "Give one budget, budget_seconds= (seconds of all evaluations together) or"
                f" max_evals= (their number), got {given}."
            )
        for name in ("budget_seconds", "max_evals"):
            value = getattr(self, name)
            if value is not None and not (math.isfinite(value) and value > 0):
                raise ValueError(f"{name} must be a positive number, got {value!r}.")
        if self.label is not None and self.split is not None:
            raise ValueError(
                "label= names the choice whose options are the arms, split= makes cells of the"
                " whole space the arms: give one of them."
            )
        if self.paper:
            own = {field.name: field.default for field in fields(self)}
            changed = [name for name in PAPER if getattr(self, name) != own[name]]
            if changed:
                raise ValueError(
                    f"paper=True takes no {', '.join(changed)}: the paper has its own. Leave it"
                    " out, or leave out paper=True."
                )
        self.filtering()
        inner_of(self.inner, 1)

    @property
    def budget(self) -> float:
        """The one that was given."""
        budget = self.budget_seconds if self.max_evals is None else self.max_evals
        assert budget is not None
        return budget

    def filtering(self) -> SuccessiveFiltering:
        """Budget and rules."""
        if self.paper:
            unit: Unit = "seconds" if self.max_evals is None else "trials"
            return SuccessiveFiltering.paper(self.budget, unit=unit, rounds=self.rounds)
        return SuccessiveFiltering(
            self.budget,
            unit="seconds" if self.max_evals is None else "trials",
            rounds=self.rounds,
            c=self.c,
            temperature=self.temperature,
            score=self.score,
            min_pulls=self.min_pulls,
            carry_debts=self.carry_debts,
        )

    def arms(self, domain: Domain) -> Arms:
        """The arms of a search space."""
        return arms_of(domain, label=self.label, split=self.split, max_arms=self.max_arms)

    def settings(self, arms: Arms) -> dict[str, Any]:
        """What tells this search from others in the same trials; plain data."""
        split: Any = self.split
        if isinstance(split, Mapping):
            split = [[label, k] for label, k in split.items()]
        return {
            "budget_seconds": self.budget_seconds,
            "max_evals": self.max_evals,
            "rounds": self.rounds,
            "label": self.label,
            "split": split,
            "max_arms": self.max_arms,
            "arms": len(arms.arms),
        }

    def search(
        self, domain: Domain, trials: Trials, streams: Streams, points: Sequence[Values] = ()
    ) -> BoasfSearch:
        """The search under way."""
        arms = self.arms(domain)
        return BoasfSearch(
            domain,
            trials,
            arms,
            self.filtering(),
            settings=self.settings(arms),
            inner=inner_of(self.inner, len(arms.arms)),
            streams=streams,
            cost=self.cost,
            reward_range=self.reward_range,
            points=points,
        )

    def warn_of_shortage(self, arms: Arms) -> None:
        """Say so if there are more arms than evaluations."""
        n = len(arms.arms)
        if self.max_evals is not None and self.max_evals < n * self.min_pulls:
            warnings.warn(
                f"{n} arms, but {self.max_evals} evaluations: not every arm gets"
                f" {self.min_pulls}. They are taken in random order; raise max_evals, or have"
                " fewer arms.",
                stacklevel=3,
            )
