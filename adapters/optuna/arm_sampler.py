"""``ArmSampler``: chooses the arm of a trial, and lets the arm's own sampler choose the rest."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from inspect import signature
from typing import Any, TypedDict

from optuna.distributions import BaseDistribution, CategoricalDistribution
from optuna.logging import get_logger
from optuna.samplers import BruteForceSampler, GridSampler
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState

from automl_plugins._arguments import check_flag, did_you_mean, hint_of_seed, refuse_foreign
from automl_plugins.bandits.confidence import MaxUCB
from automl_plugins.bandits.policy import ArmChoice, Policy
from automl_plugins.bandits.records import loss_range
from automl_plugins.proposers.explanation import ArmFacts
from automl_plugins.proposers.proposal import MOST_ASKING

from . import _private
from ._arm_reader import ArmReader, Budget, Situation
from ._arms import Arms, Choices, Split, declared_arm
from ._inner import Inner, InnerSamplers, Pull
from ._study import View
from .seeded_sampler import NOT_OURS, Cache, SeededSampler, check_parameter
from .space import check_space
from .trials import Cost, StudyColumns, check_cost

_logger = get_logger("optuna.automl_plugins")

_INSIDE = (
    *("n_startup_trials", "n_candidates", "n_ei_candidates", "multivariate", "group"),
    *("constant_liar", "ordinal"),
)
_ELSEWHERE = dict.fromkeys(_INSIDE, "an argument of the sampler inside the arms, see inner") | {
    "policy": "an argument of BanditSampler",
    "weights": "an argument of WeightedModelSampler",
    "label": "here it is arm=",
    **dict.fromkeys(("max_evals", "budget"), "here it is n_trials="),
    "budget_seconds": "here it is seconds=",
}


class ArmOptions(TypedDict, total=False):
    """Arguments that all samplers of arms take, see ``ArmSampler``."""

    search_space: Mapping[str, BaseDistribution] | None
    warn_independent_sampling: bool
    reward_range: tuple[float, float] | None
    cost: Cost
    seed: int | None


class ArmSampler(SeededSampler):
    """The choices of one categorical parameter are arms, each with its own sampler.

    A subclass decides which arm a trial gets, from all trials of the study; everything else is
    proposed by the arm's sampler, which sees the trials of its arm only. If the first complete
    trial has not asked for the parameter, the next one fails with an error that lists the
    categorical parameters. If only some trials ask for it, declare it in ``search_space``; until
    a trial has asked for it, one sampler without an arm proposes everything. A trial that does not
    ask counts for the arm whose sampler proposed it, unless it failed. Equal choices (1, 1.0,
    True) raise a ValueError: Optuna stores the first one for all of them.

    With ``split`` the arms are cells of the search space: the ranges of its parameters are cut.
    The arm's sampler sees the trials of its cell only and proposes within it.

    The arms of a study with ``HyperbandPruner`` are chosen over all of its brackets. An arm with
    few configurations (a grid) leaves when all of them have been tried. Only pruned ones are tried
    again, when no untried one is left, until each has been pruned three times. Processes that
    propose at the same moment may choose the same configuration.

    Args:
        arm, inner: See ``BanditSampler``.
        split: How the search space is split, if cells are the arms.
        **foreign: Any other keyword raises a TypeError that says what to use instead.

    All others are described in ``WeightedModelSampler``.
    """

    def __init__(
        self,
        arm: str,
        *,
        inner: Inner,
        split: Split | None = None,
        search_space: Mapping[str, BaseDistribution] | None = None,
        warn_independent_sampling: bool = True,
        reward_range: tuple[float, float] | None = None,
        cost: Cost = None,
        seed: int | None = None,
        **foreign: Any,
    ) -> None:
        super().__init__(seed)
        if foreign:
            every = signature(type(self)).parameters.values()
            own = [p.name for p in every if p.kind != p.VAR_KEYWORD]
            known = [*own, *ArmOptions.__annotations__]
            refuse_foreign(type(self).__name__, foreign, known, NOT_OURS | _ELSEWHERE)
        if not isinstance(arm, str):
            raise TypeError(
                f"arm must be the name of a categorical parameter, got {arm!r}.{hint_of_seed(arm)}"
            )
        self.arm = arm if split is None else split.key
        self.split = split
        self.reward_range = loss_range(reward_range)
        self.cost = check_cost(cost)
        self.declared: Arms | None = None
        if declared := check_space(search_space):
            self.declared = declared_arm(declared, arm) if split is None else split.cells(declared)
        check_flag("warn_independent_sampling", warn_independent_sampling)
        self._warn_independent_sampling = warn_independent_sampling
        self._samplers = InnerSamplers(inner, self._streams)
        self._readers: Cache[_private.StudyKey, ArmReader] = Cache()
        self._pulls: Cache[_private.TrialKey, Pull] = Cache()

    @abstractmethod
    def _choose(self, situation: Situation) -> ArmChoice:
        """Choose one of ``situation.arms``; must depend on ``situation`` and the seed only."""

    def _record(self, study: Study, trial: FrozenTrial, situation: Situation) -> None:
        """Store with the trial what was decided before its arm (rounds); nothing by default."""

    # --- Optuna's interface ---------------------------------------------------------------

    def reseed_rng(self) -> None:
        """Reseed the arms' samplers; the streams differ by the trial's number already."""
        readers = list(self._readers.values())  # threads may add others meanwhile
        copies = [sampler for reader in readers for sampler in list(reader.copies.values())]
        self._samplers.reseed_rng(copies)

    def after_trial(
        self, study: Study, trial: FrozenTrial, state: TrialState, values: Sequence[float] | None
    ) -> None:
        """Pass the event on to the arm's sampler; store the sampler's own time."""
        # The trial has been refused already: another error would hide that one.
        if len(study.directions) > 1:
            return
        pull = self._pulls.pop(_private.trial_key(study, trial), None)
        if pull is None:  # all its values were given, or another process asked for them
            arms = self._arms(self._reader(study), trial)
            pull = self._pull(study, trial, arms, None if arms is None else arms.owner(trial))
        pull.sampler.after_trial(pull.study, trial, state, values)
        self._store_overhead(study, trial)  # after the arm's sampler, whose time is part of it

    def infer_relative_search_space(
        self, study: Study, trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
        """The arm, if it is known, and what its sampler proposes jointly."""
        with self._clocked(study, trial):
            with self._turn:
                pull = self._begin(study, trial)
            return pull.space(trial)

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """The arm, and the proposal of its sampler."""
        key = _private.trial_key(study, trial)
        if key not in self._pulls:
            self.infer_relative_search_space(study, trial)
        with self._clocked(study, trial):
            pull = self._pulls[key]
            if pull.grid is None:
                return pull.propose(study, trial, search_space)
            with self._turn:
                self._look_again(study, trial, pull)
                return pull.propose(study, trial, search_space)

    def sample_independent(
        self,
        study: Study,
        trial: FrozenTrial,
        param_name: str,
        param_distribution: BaseDistribution,
    ) -> Any:
        """The arm, if it was not known before; else a value from the arm's sampler."""
        check_parameter(param_name)
        with self._clocked(study, trial):
            asked = self._asked(trial)
            if param_name == self.arm and self.split is None:
                self._reader(study).asked = param_distribution
                asked = Choices.from_distribution(self.arm, param_distribution)
            pull = self._pulls.get(_private.trial_key(study, trial))
            # Now that the arm is known, its own sampler takes over.
            if pull is None or (pull.arm is None and asked is not None):
                with self._turn:
                    pull = self._begin(study, trial, asked)
                pull.foretell(trial)
            if param_name == self.arm and pull.parameter is not None:
                return pull.choice
            self._warn_of_independent(study, trial, pull, param_name)
            return pull.ask(trial, param_name, param_distribution)

    # --- the arm --------------------------------------------------------------------------

    def _begin(self, study: Study, trial: FrozenTrial, asked: Arms | None = None) -> Pull:
        """Choose the arm of a trial, if the arms are known, and publish it.

        ``before_trial`` of the arm's sampler is called here, because now the arm is known.
        """
        reader = self._reader(study)
        view = reader.view(study, trial)
        self._check_name(reader)
        arms = asked or self._arms(reader, trial)
        arm = None
        # Cells belong to no single parameter.
        facts = ArmFacts(self.arm if self.split is None else "", sampler=self._samplers.name)
        if arms is not None:
            chosen = self._decide(study, trial, reader, view, arms)
            arm = chosen.arm
            facts = replace(facts, **asdict(chosen) | {"arm": arms.names[arm]})
            # Published before the configuration is made, which takes longer, as the arms that
            # other workers choose depend on it.
            _private.write_arm(study, trial, self.arm, arm)
        outer = _private.base_sampler(study.sampler)
        within = self.arm if isinstance(outer, ArmSampler) and outer is not self else ""
        _private.write_arm_facts(study, trial, facts.to_dict(), within)
        pull = self._pull(study, trial, arms, arm, view)
        pull.sampler.before_trial(pull.study, trial)
        self._pulls[_private.trial_key(study, trial)] = pull
        return pull

    def _pull(
        self,
        study: Study,
        trial: FrozenTrial,
        arms: Arms | None,
        arm: int | None,
        view: View | None = None,
    ) -> Pull:
        reader = self._reader(study)
        seen, grid = study, None
        if arms is not None and arm is not None:
            seen = reader.study_of(study, arms, arm)
            grid = None if view is None else reader.grid(view, arms, arm)
        n_arms = 1 if arms is None else len(arms)
        sampler = self._samplers.of_trial(arm, reader.copies, n_arms, trial.number)
        if isinstance(sampler, GridSampler | BruteForceSampler):
            grid = None  # these repeat nothing, and must be asked in the objective's order
        return Pull(
            arms=arms,
            arm=arm,
            sampler=sampler,
            study=seen,
            grid=grid,
            samplers=self._samplers,
            has_changed=reader.has_changed,
        )

    def _look_again(self, study: Study, trial: FrozenTrial, pull: Pull) -> None:
        """Drop untried configurations that others have published since the pull began."""
        reader = self._reader(study)
        assert pull.grid is not None and pull.arms is not None and pull.arm is not None
        grid = reader.grid(reader.view(study, trial), pull.arms, pull.arm)
        # Optuna was given the space of the first grid, which another grid may not fit.
        if grid is not None and grid.union is pull.grid.union:
            pull.grid = grid

    def _asked(self, trial: FrozenTrial) -> Arms | None:
        """The arms, if the trial has asked for them already."""
        distribution = trial.distributions.get(self.arm)
        if self.split is not None or not isinstance(distribution, CategoricalDistribution):
            return None
        return Choices.from_distribution(self.arm, distribution)

    def _arms(self, reader: ArmReader, trial: FrozenTrial) -> Arms | None:
        """The arms; None as long as no trial has shown them."""
        if found := self._asked(trial) or reader.arms:
            return found
        if not reader.has_complete:
            return self.declared
        if self.declared is not None and reader.first_time("not asked"):
            _logger.warning(
                f"arm={self.arm!r}: no complete trial has asked for this parameter. There are no"
                f" arms to choose from, so {self._samplers.name} samples everything. Categorical"
                f" parameters of the study: {sorted(reader.categories)}."
            )
        return None

    def _check_name(self, reader: ArmReader) -> None:
        """Raise a ValueError if a complete trial that this sampler served has no arm."""
        if reader.arms is not None or not reader.armless or self.declared is not None:
            return
        names = sorted(reader.categories)
        raise ValueError(
            f"arm={self.arm!r}: trial {reader.armless[0]} is complete and has not asked for it."
            f" Categorical parameters of the study: {', '.join(names) or 'none'}."
            f"{did_you_mean(self.arm, names, about='arm=')} arm= must be the name that the"
            " objective passes to suggest_categorical. If only some trials ask for it, declare it:"
            f" search_space={{{self.arm!r}: CategoricalDistribution([...])}}."
        )

    def _decide(
        self, study: Study, trial: FrozenTrial, reader: ArmReader, view: View, arms: Arms
    ) -> ArmChoice:
        allowed = arms.allowed(_private.held_values(study, trial))
        # In order of precedence: values held, the arm published, then the policy.
        if len(allowed) == 1 < len(arms):
            return ArmChoice(allowed[0], "decided beforehand")
        published = _private.read_arm(trial, self.arm)
        if published in allowed:
            return ArmChoice(published, "decided by another worker")
        if len(arms) == 1:
            return ArmChoice(0, "the only arm")
        view = self._foreseen(reader, view, arms, trial.number)
        situation = reader.situation(view, arms, trial.number)
        self._announce(reader, situation)
        if len(allowed) < len(arms):  # rounds need a free choice among all arms
            chosen = self._by_policy(MaxUCB(), situation, allowed)
            return replace(chosen, reason="among those that agree with the values held")
        self._record(study, trial, situation)
        return self._choose(situation)

    def _by_policy(self, policy: Policy, situation: Situation, arms: Sequence[int]) -> ArmChoice:
        return policy.decide(arms, situation.pulls.records, self._streams, situation.k)

    def _foreseen(self, reader: ArmReader, view: View, arms: Arms, k: int) -> View:
        """The view with predicted arms of running trials of lower numbers that have none yet."""
        # In order of number, because each of these workers predicts the arms of lower ones, too.
        running = sorted(view.running, key=lambda row: row.number)
        for i, row in enumerate(running):
            if self.arm not in row.values and k - MOST_ASKING <= row.number < k:
                earlier = replace(view, running=StudyColumns(running[:i]))
                arm = self._choose(reader.situation(earlier, arms, row.number)).arm
                running[i] = replace(row, values=row.values | {self.arm: float(arm)})
        return replace(view, running=StudyColumns(running))

    # --- messages -------------------------------------------------------------------------

    def _announce(self, reader: ArmReader, situation: Situation) -> None:
        arms, pulls = situation.arms, situation.pulls
        if self.reward_range is None and pulls.rescaled and reader.first_time("rescaled"):
            scale = pulls.scale.describe(maximize=reader.maximize)
            _logger.info(f"Rewards of the arms of {self.arm!r}: {scale}.")
        for arm in pulls.given_up():
            if reader.first_time(("failed", arm)):
                _logger.warning(
                    f"{arms.describe(arm)} has failed in all of its trials and gets no more,"
                    " unless all that are left do. NaN and infinite values count as failures."
                )
        for arm in situation.exhausted:
            if reader.first_time(("exhausted", arm)):
                _logger.info(f"{arms.describe(arm)} has no configuration left to try.")
        if len(situation.exhausted) == len(arms) and reader.first_time("all exhausted"):
            _logger.warning(
                f"All configurations of all arms of {self.arm!r} have been tried: from now on they"
                " are repeated. study.stop() ends the search."
            )

    def _warn_of_independent(
        self, study: Study, trial: FrozenTrial, pull: Pull, name: str
    ) -> None:
        if self._samplers.default or not self._warn_independent_sampling:
            return  # the default is not the user's choice
        if not pull.joint or pull.arms is None or pull.arm is None:
            return
        reader = self._reader(study)
        if name in reader.parameters.get(pull.arm, ()) and reader.first_time(("alone", name)):
            _logger.warning(
                f"Parameter {name!r} of trial {trial.number} ({pull.arms.describe(pull.arm)}) is"
                f" sampled independently: {self._samplers.name} left it out of its joint proposal."
                " Pass warn_independent_sampling=False to silence this."
            )

    # --- parts ----------------------------------------------------------------------------

    def _check_settings(self, study: Study, trial: FrozenTrial) -> None:
        reader = self._reader(study)
        reader.view(study, trial)
        self._check_name(reader)
        if reader.asked is not None:
            Choices.from_distribution(self.arm, reader.asked)
        arms = self._arms(reader, trial)
        for arm in (None,) if arms is None else range(len(arms)):
            pull = self._pull(study, trial, arms, arm)
            if isinstance(inner := _private.base_sampler(pull.sampler), SeededSampler):
                inner._check_settings(pull.study, trial)

    @property
    def _budget(self) -> Budget | None:
        """The budget of rounds; None for samplers without rounds."""
        return None

    def _reader(self, study: Study) -> ArmReader:
        settings = self.arm, self.cost, self.reward_range, self.split, self.declared, self._budget
        return self._readers.of(_private.study_key(study), lambda: ArmReader(study, *settings))
