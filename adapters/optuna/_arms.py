"""The arms of a study: which trials are whose, with which rewards."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState, create_trial

from automl_plugins.bandits.records import Pulls
from automl_plugins.bandits.successive_filtering import Round
from automl_plugins.proposers.explanation import ArmFacts

from . import _private
from ._memory import Memory, View
from .trials import Cost, StudyTrial

_FULL = (TrialState.COMPLETE, TrialState.PRUNED)  # have asked for all of their parameters


def arm_of(trial: FrozenTrial, arm: str) -> int | None:
    """Index of the choice that a trial has for the parameter ``arm``, or was promised.

    A finished trial that never asked for it, and a waiting one, has none.
    """
    distribution = trial.distributions.get(arm)
    if distribution is not None:
        refuse_other(arm, distribution)
        return int(distribution.to_internal_repr(trial.params[arm]))
    return None if trial.state.is_finished() else _private.read_arm(trial, arm)


def continuous(distribution: BaseDistribution) -> bool:
    """Whether a parameter has more values than can be counted."""
    return isinstance(distribution, FloatDistribution) and distribution.step is None


def refuse_other(arm: str, distribution: BaseDistribution) -> None:
    """Arms are the choices of a categorical parameter.

    Raises:
        ValueError: For a parameter of another kind.
    """
    if not isinstance(distribution, CategoricalDistribution):
        raise ValueError(
            f"arm={arm!r} names a parameter with {distribution}; arms are the choices of a"
            " categorical parameter. Give the name that your objective passes to"
            " suggest_categorical."
        )


class ArmMemory(Memory):
    """Cache of one study that knows whose each trial is.

    Args:
        study: The whole study.
        arm: Name of the parameter whose choices are the arms.
        cost: How seconds are read from a trial.

    Attributes:
        maximize: Whether larger objective values are better.
        owner: Arm of each finished trial, by its number; None where it did not ask.
        parameters: By arm, the newest distribution of each other parameter that its complete and
            pruned trials asked for, and that can vary.
        endless: Arms that have, or had, a continuous parameter.
        rounds: Stored rounds, by index and number of the trial that opened them.
        distribution: Of the arm parameter, once a trial has asked for it.
        categories: Names of all categorical parameters that were asked for.
        has_complete: Whether any trial is complete.
        armless: Numbers of the complete trials that a sampler of this arm has served, and that
            did not ask for it.
    """

    def __init__(self, study: Study, arm: str, cost: Cost) -> None:
        super().__init__(study, cost, {}, {})
        self._arm = arm
        self.maximize = self._maximize
        self.owner: dict[int, int | None] = {}
        self.parameters: dict[int, dict[str, BaseDistribution]] = {}
        self.endless: set[int] = set()
        self.rounds: dict[tuple[int, int], Round] = {}
        self.distribution: CategoricalDistribution | None = None
        self.categories: set[str] = set()
        self.has_complete = False
        self.armless: list[int] = []

    def _read(self, trial: FrozenTrial) -> StudyTrial:
        row = super()._read(trial)
        index = arm_of(trial, self._arm)
        asked = trial.distributions.get(self._arm)
        if isinstance(asked, CategoricalDistribution):
            self.distribution = asked
        if trial.state.is_finished():
            self.owner[trial.number] = index
        if trial.state in _FULL:
            self.has_complete |= trial.state == TrialState.COMPLETE
            if trial.state == TrialState.COMPLETE and asked is None:
                facts = ArmFacts.from_dict(_private.read_arm_facts(trial))
                if facts is not None and facts.parameter == self._arm:
                    self.armless.append(trial.number)
            self.categories |= {
                name
                for name, distribution in trial.distributions.items()
                if isinstance(distribution, CategoricalDistribution)
            }
            if index is not None:
                seen = self.parameters.setdefault(index, {})
                seen.update((n, d) for n, d in row.distributions.items() if n != self._arm)
                if any(continuous(distribution) for distribution in list(seen.values())):
                    self.endless.add(index)
        if index is not None:
            row.values.setdefault(self._arm, float(index))
        for data in _private.read_rounds(trial, self._arm):
            opened = Round.from_dict(data)
            self.rounds[opened.index, trial.number] = opened
        return row

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
        owner = arm_of(trial, self._arm)
        return owner == index if owner is not None else not trial.state.is_finished()


def read_pulls(view: View, arm: str, reward_range: tuple[float, float] | None) -> Pulls:
    """The pulls among the trials of a view.

    Args:
        view: The trials.
        arm: Name of the arm parameter.
        reward_range: Losses with reward 1 and 0, if known.
    """
    index = view.values(arm)
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


def declared_arm(
    search_space: Mapping[str, BaseDistribution] | None, arm: str
) -> CategoricalDistribution | None:
    """The distribution of the arm in a declared search space.

    Raises:
        ValueError: If the space has no such parameter, or one of another kind.
    """
    if not search_space:
        return None
    if arm not in search_space:
        raise ValueError(
            f"search_space has no parameter {arm!r}: arm= must name one of its categorical"
            f" parameters {categorical_names(search_space)}."
        )
    distribution = search_space[arm]
    refuse_other(arm, distribution)
    assert isinstance(distribution, CategoricalDistribution)
    return distribution


def categorical_names(space: Mapping[str, BaseDistribution]) -> list[str]:
    """Names of the categorical parameters, sorted."""
    return sorted(n for n, d in space.items() if isinstance(d, CategoricalDistribution))
