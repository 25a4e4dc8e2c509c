"""What is known of a study when the arm of a trial is chosen."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from optuna.distributions import BaseDistribution, FloatDistribution
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState, create_trial

from automl_plugins.bandits.records import Pulls, loss_range
from automl_plugins.bandits.successive_filtering import Round
from automl_plugins.proposers.explanation import ArmFacts
from automl_plugins.records.trial import Status

from . import _private
from ._arm_grids import Grids
from ._arms import Arms, Choices, Split, is_categorical
from ._study import Reading, StudyReader, View
from .space import UnionSpace
from .trials import Cost, StudyTrial

_FULL = (TrialState.COMPLETE, TrialState.PRUNED)  # have asked for all of their parameters


class ArmMemory(StudyReader):
    """Cache of one study that knows whose each trial is.

    Args:
        study: The whole study.
        key: Name of the parameter whose choices are the arms, or the key of ``split``.
        cost: How seconds are read from a trial.
        split: How cells are made, if they are the arms: of the first complete trial's parameters.
        arms: The arms, if they are known up front.

    Attributes:
        arms: The arms, once they are known.
        maximize: Whether larger objective values are better.
        owner: Arm of each finished trial, by its number; None where it has none.
        parameters: By arm, the newest distribution of each other parameter that its complete and
            pruned trials asked for, and that can vary.
        endless: Arms that have, or had, a continuous parameter.
        rounds: Stored rounds, by index and number of the trial that opened them.
        categories: Names of all categorical parameters that were asked for.
        has_complete: Whether any trial is complete.
        armless: Numbers of the complete trials that a sampler of this arm has served, and that
            did not ask for it.
    """

    def __init__(
        self, study: Study, key: str, cost: Cost, split: Split | None, arms: Arms | None = None
    ) -> None:
        super().__init__(study, cost, {}, {})
        self.arms: Arms | None = arms if split is not None else None
        self.maximize = self._maximize
        self._key = key
        self._split = split
        self._forget()

    def _forget(self) -> None:
        self._reading = Reading()
        self.owner: dict[int, int | None] = {}
        self.parameters: dict[int, dict[str, BaseDistribution]] = {}
        self.endless: set[int] = set()
        self.rounds: dict[tuple[int, int], Round] = {}
        self.categories: set[str] = set()
        self.has_complete = False
        self.armless: list[int] = []

    def view(self, study: Study, trial: FrozenTrial) -> View:
        """See the base class; the first complete trial says which cells there are."""
        view = super().view(study, trial)
        if self._split is not None and self.arms is None:
            status = Status.COMPLETE
            first = next((row for row in view.columns.trials if row.status == status), None)
            if first is not None:
                self.arms = self._split.cells(first.distributions)
                self._forget()  # whose the trials are is only known now
                view = super().view(study, trial)
        return view

    def _read(self, trial: FrozenTrial) -> StudyTrial:
        row = super()._read(trial)
        if self._split is None and self._key in trial.distributions:
            self.arms = Choices.from_distribution(self._key, trial.distributions[self._key])
        index = self._owner(trial)
        if trial.state.is_finished():
            self.owner[trial.number] = index
        if trial.state in _FULL:
            self._note_parameters(trial, row, index)
        if index is not None:
            row.values.setdefault(self._key, float(index))
        for data in _private.read_rounds(trial, self._key):
            opened = Round.from_dict(data)
            self.rounds[opened.index, trial.number] = opened
        return row

    def _owner(self, trial: FrozenTrial) -> int | None:
        arms = self.arms
        if self._split is None and self._key in trial.distributions:
            arms = Choices.from_distribution(self._key, trial.distributions[self._key])
        if arms is None:
            return None if trial.state.is_finished() else _private.read_arm(trial, self._key)
        return arms.owner(trial)

    def _note_parameters(self, trial: FrozenTrial, row: StudyTrial, index: int | None) -> None:
        if trial.state == TrialState.COMPLETE:
            self.has_complete = True
            facts = ArmFacts.from_dict(_private.read_arm_facts(trial))
            if self._key not in trial.distributions and facts is not None:
                self.armless += [trial.number] if facts.parameter == self._key else []
        self.categories |= {n for n, d in trial.distributions.items() if is_categorical(d)}
        if index is not None:
            seen = self.parameters.setdefault(index, {})
            seen.update((n, d) for n, d in row.distributions.items() if n != self._key)
            if any(
                isinstance(d, FloatDistribution) and d.step is None for d in list(seen.values())
            ):
                self.endless.add(index)

    def everything(self, study: Study) -> View:
        """All trials, nobody's own left out."""
        return self.view(study, create_trial(state=TrialState.WAITING))

    def with_finished(self, view: View, trial: FrozenTrial) -> View:
        """The view with one trial more."""
        columns = view.columns.extended([self._read(trial)])
        return View(columns, view.running, view.distributions | columns.distributions)

    @property
    def stored_rounds(self) -> tuple[Round, ...]:
        """The rounds that count, in their order.

        Of two workers that opened the same round, the one with the earlier trial counts.
        """
        first: dict[int, Round] = {}
        for (index, _), opened in sorted(self.rounds.copy().items(), key=lambda item: item[0]):
            first.setdefault(index, opened)
        return tuple(first.values())

    def belongs(self, trial: FrozenTrial, index: int) -> bool:
        """Whether the sampler of arm ``index`` may see a trial.

        A trial that has not decided yet is seen by all: it may still turn out to be theirs.
        """
        if trial.number in self.owner:
            return self.owner[trial.number] == index
        owner = self._owner(trial)
        return owner == index if owner is not None else not trial.state.is_finished()


def read_pulls(view: View, key: str, reward_range: tuple[float, float] | None) -> Pulls:
    """The pulls among the trials of a view.

    Args:
        view: The trials.
        key: Key of the arms.
        reward_range: Losses with reward 1 and 0, if known.
    """
    index = view.values(key)
    asked = ~np.isnan(index)
    pulled = slice(None) if asked.all() else asked
    violated = None
    if view.columns.constraint_names:
        violated = np.asarray((view.constraints()[pulled] > 0).any(axis=1))
    return Pulls.from_losses(
        index[pulled].astype(np.int64),
        view.facts("loss")[pulled],
        seconds=view.facts("seconds")[pulled],
        status=view.facts("status")[pulled].astype(np.int64),
        reward_range=reward_range,
        infeasible=violated,
    )


@dataclass(frozen=True)
class Situation:
    """All that the choice of an arm depends on, but for the seed.

    Attributes:
        k: Number of the trial.
        arms: All arms.
        left: Indices of those that have something left to try; never empty.
        pulls: All pulls so far.
        parameters: By arm, its other parameters, as complete and pruned trials asked for them.
        rounds: Stored rounds of successive filtering, in their order.
        union: The search space of all arms, as far as it is known, conditions inferred.
    """

    k: int
    arms: Arms
    left: list[int]
    pulls: Pulls
    parameters: Mapping[int, Mapping[str, BaseDistribution]]
    rounds: tuple[Round, ...]
    union: Callable[[], UnionSpace]


class KnownStudy:
    """What a sampler keeps of one study; it can be thrown away and comes back the same.

    Args:
        study: The whole study.
        key: Key of the arms.
        cost: How seconds are read from a trial.
        reward_range: Values of the objective that are worth 0 and 1, if known.
        split: How cells are made, if they are the arms.
        arms: The arms, if they are known up front.

    Attributes:
        memory: Its trials.
        grids: The arms that have few configurations.
    """

    def __init__(
        self,
        study: Study,
        key: str,
        cost: Cost,
        reward_range: tuple[float, float] | None,
        split: Split | None = None,
        arms: Arms | None = None,
    ) -> None:
        self.memory = ArmMemory(study, key, cost, split, arms)
        self.grids = Grids(key, self.memory)
        self._key = key
        self._range = loss_range(reward_range, maximize=self.memory.maximize)
        self._storages: dict[int, _private.ArmStorage] = {}
        self._said: set[Any] = set()

    def situation(self, view: View, arms: Arms, k: int) -> Situation:
        """What is known before trial ``k``."""
        everyone = range(len(arms))
        left = [i for i in everyone if not self.grids.is_exhausted(view, arms, i)]
        return Situation(
            k=k,
            arms=arms,
            left=left or list(everyone),
            pulls=read_pulls(view, self._key, self._range),
            parameters=self.memory.parameters,
            rounds=self.memory.stored_rounds,
            union=partial(self.memory.space, view, {}),
        )

    def study_of(self, study: Study, arms: Arms, index: int) -> _private.ArmStudy:
        """The study, or the bracket of it, with the trials of arm ``index`` alone."""
        storage = self._storages.get(index)
        if storage is None:  # one object for each arm: samplers know studies by their storage
            memory, raw = self.memory, _private.storage_of(study)
            made = _private.ArmStorage(
                raw,
                f"{self._key}:{index}",
                lambda trial: memory.belongs(trial, index),
                lambda trial: arms.narrow_trial(index, trial),
            )
            storage = self._storages.setdefault(index, made)
        return _private.ArmStudy(study, storage)

    def first_time(self, event: Any) -> bool:
        """True when it is asked for an event for the first time: warnings are given once."""
        if event in self._said:
            return False
        self._said.add(event)
        return True
