"""What is known of a study when the arm of a trial is chosen."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from optuna.distributions import BaseDistribution, CategoricalDistribution
from optuna.study import Study

from automl_plugins.bandits.records import Pulls, loss_range
from automl_plugins.bandits.successive_filtering import Round

from . import _private
from ._arm_grids import Grids
from ._arm_study import ArmStorage, ArmStudy
from ._arms import ArmMemory, read_pulls
from ._memory import View
from .space import UnionSpace
from .trials import Cost


@dataclass(frozen=True)
class Situation:
    """All that the choice of an arm depends on, but for the seed.

    Attributes:
        k: Number of the trial.
        choices: All arms, as the objective calls them.
        arms: Indices of those that have something left to try; never empty.
        pulls: All pulls so far.
        parameters: By arm, its other parameters, as complete and pruned trials asked for them.
        rounds: Stored rounds of successive filtering, in their order.
        union: The search space of all arms, as far as it is known, conditions inferred.
    """

    k: int
    choices: tuple[Any, ...]
    arms: list[int]
    pulls: Pulls
    parameters: Mapping[int, Mapping[str, BaseDistribution]]
    rounds: tuple[Round, ...]
    union: Callable[[], UnionSpace]


class KnownStudy:
    """What a sampler keeps of one study; it can be thrown away and comes back the same.

    Args:
        study: The whole study.
        arm: Name of the parameter whose choices are the arms.
        cost: How seconds are read from a trial.
        reward_range: Values of the objective that are worth 0 and 1, if known.

    Attributes:
        memory: Its trials.
        grids: The arms that have few configurations.
    """

    def __init__(
        self, study: Study, arm: str, cost: Cost, reward_range: tuple[float, float] | None
    ) -> None:
        self.memory = ArmMemory(study, arm, cost)
        self.grids = Grids(arm, self.memory)
        self._arm = arm
        self._range = loss_range(reward_range, maximize=self.memory.maximize)
        self._storages: dict[int, ArmStorage] = {}
        self._said: set[Any] = set()

    def situation(self, view: View, distribution: CategoricalDistribution, k: int) -> Situation:
        """What is known before trial ``k``."""
        everyone = range(len(distribution.choices))
        left = [i for i in everyone if not self.grids.exhausted(view, i)]
        return Situation(
            k=k,
            choices=distribution.choices,
            arms=left or list(everyone),
            pulls=read_pulls(view, self._arm, self._range),
            parameters=self.memory.parameters,
            rounds=self.memory.stored_rounds,
            union=partial(self.memory.space, view, {}),
        )

    def study_of(self, study: Study, index: int) -> ArmStudy:
        """The study, or the bracket of it, with the trials of arm ``index`` alone."""
        storage = self._storages.get(index)
        if storage is None:  # one object for each arm: samplers know studies by their storage
            memory, raw = self.memory, _private.storage_of(study)
            made = ArmStorage(raw, f"{self._arm}:{index}", lambda t: memory.belongs(t, index))
            storage = self._storages.setdefault(index, made)
        return ArmStudy(study, storage)

    def first_time(self, event: Any) -> bool:
        """True when it is asked for an event for the first time: warnings are given once."""
        if event in self._said:
            return False
        self._said.add(event)
        return True
