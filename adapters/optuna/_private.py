"""The only module that uses private parts of Optuna.

Optuna has no public way for a sampler to write to a trial, to identify a study, to see the values
that ``PartialFixedSampler`` fixes, or to ask whether a distribution contains a value.
``tests/adapters/optuna/test_private.py`` fails loudly when one of these changes.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Container, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, cast

from optuna.distributions import BaseDistribution, CategoricalDistribution
from optuna.samplers import BaseSampler, PartialFixedSampler
from optuna.storages import BaseStorage
from optuna.study import Study
from optuna.trial import FrozenTrial, Trial, TrialState

from automl_plugins.records.trial import CLOCK_START, finite_or_none, finite_parts

_PREFIX = "automl_plugins"
_OVERHEAD = f"{_PREFIX}:overhead"
_PROPOSAL = f"{_PREFIX}:proposal"
_POSITIONS = f"{_PREFIX}:positions"
_SOURCES = f"{_PREFIX}:sources"
_MAX_NAMED = 500  # sources with a share of their own; MySQL keeps 64 KiB of an attribute
_SHOWN = {  # dashboards sort and plot plain values only
    "member": f"{_PREFIX}:member",
    "bound": f"{_PREFIX}:predicted_bound",
    "seconds": f"{_PREFIX}:predicted_seconds",
}

TrialKey = tuple[int, int, int]
StudyKey = tuple[int, int, str, str]


def trial_key(study: Study, trial: FrozenTrial) -> TrialKey:
    """Identity of a trial in this process, the same in every bracket of the study."""
    return id(study._storage), study._study_id, trial.number


def study_key(study: Study) -> StudyKey:
    """Identity of a study in this process, the same in every bracket of it.

    A database may give the id of a deleted study to another one.
    """
    directions = "/".join(direction.name for direction in study.directions)
    return id(study._storage), study._study_id, study.study_name, directions


def storage_of(study: Study) -> Any:
    """The storage; caches hold it, so that no other object can take over its ``id``."""
    return study._storage


def write_proposal(
    study: Study,
    trial: FrozenTrial,
    values: Mapping[str, float],
    positions: Mapping[str, float] | None = None,
) -> None:
    """Publish the joint proposal of a running trial, in internal values, for other workers.

    ``positions`` are from 0 to 1, in ranges that are not known before the objective asks.
    """
    if positions:  # first: a reader takes the values as the sign that all is there
        _write(study, trial, _POSITIONS, dict(positions))
    _write(study, trial, _PROPOSAL, dict(values))


def read_proposal(trial: FrozenTrial) -> dict[str, float]:
    """The values that ``write_proposal`` published; empty if nothing."""
    return dict(trial.system_attrs.get(_PROPOSAL) or {})


def read_positions(trial: FrozenTrial) -> dict[str, float]:
    """The positions that ``write_proposal`` published; empty if none."""
    return dict(trial.system_attrs.get(_POSITIONS) or {})


def _write(study: Study, trial: FrozenTrial, key: str, value: Any) -> None:
    study._storage.set_trial_system_attr(trial._trial_id, key, value)


def write_overhead(study: Study, trial: FrozenTrial, seconds: float) -> None:
    """Store the seconds of the trial's duration that the sampler itself took."""
    _write(study, trial, _OVERHEAD, seconds)


def read_overhead(trial: FrozenTrial) -> float:
    """The seconds of the trial's duration that the sampler took; 0 if none are stored."""
    return finite_or_none(trial.system_attrs.get(_OVERHEAD)) or 0.0


def write_failure(study: Study, trial: FrozenTrial) -> None:
    """Fail a trial that will not be given to its objective."""
    study._storage.set_trial_state_values(trial._trial_id, state=TrialState.FAIL)


def has_overhead(trial: FrozenTrial) -> bool:
    """Whether the seconds that a sampler of ours spent on a trial are stored."""
    return _OVERHEAD in trial.system_attrs


def ended_elsewhere(trial: FrozenTrial) -> bool:
    """Whether a trial of our samplers was not ended by the object that proposed it.

    Optuna fails a trial whose worker has died when another worker notices it, perhaps hours
    later; a user may fail it by ``study.tell``.
    """
    served = any(key.startswith(f"{_PREFIX}:") for key in trial.system_attrs)
    return served and not has_overhead(trial)


def write_explanation(
    study: Study,
    trial: FrozenTrial,
    facts: Mapping[str, Any],
    shares: Mapping[str, float] | None = None,
) -> None:
    """Store why a configuration was proposed, as the user attribute ``automl_plugins``.

    Facts for dashboards are repeated as attributes of their own, see ``_SHOWN``. The ``shares`` of
    earlier tasks are ``automl_plugins:sources``: ``{"own": share of the search itself, "sources":
    {name: share}}``, largest first, to 6 digits; sources that are left out have the share 0.
    """
    stored: dict[str, Any] = {shown: facts.get(name) for name, shown in _SHOWN.items()}
    stored[_SOURCES] = None
    if shares is not None:
        found = sorted(shares.items(), key=lambda item: (-item[1], item[0]))
        # Smaller shares than 5e-7 would be rounded to 0.
        named = {n: round(float(s), 6) for n, s in found[:_MAX_NAMED] if s >= 5e-7}
        # The sum may exceed 1 by a rounding.
        own = max(0.0, 1.0 - float(sum(shares.values())))
        stored[_SOURCES] = {"own": round(own, 6), "sources": named}
    for name, content in [*stored.items(), (_PREFIX, dict(facts))]:
        if content is not None or name in trial.user_attrs:  # copied by a retry of a dead trial
            study._storage.set_trial_user_attr(trial._trial_id, name, content)


def read_explanation(trial: FrozenTrial | Trial) -> dict[str, Any]:
    """What ``write_explanation`` stored; empty if nothing, or if it was overwritten."""
    stored = trial.user_attrs.get(_PREFIX)
    return dict(stored) if isinstance(stored, Mapping) else {}


def frozen(trial: FrozenTrial | Trial) -> FrozenTrial:
    """The present state of a trial in its storage."""
    return trial if isinstance(trial, FrozenTrial) else trial.storage.get_trial(trial._trial_id)


def constraints_of(trial: FrozenTrial) -> dict[str, float]:
    """Constraint values by name; Optuna 4 has a list, numbered here, and no public reader."""
    if hasattr(trial, "constraints"):
        return dict(trial.constraints)
    stored = trial.system_attrs.get("constraints") or ()
    return {str(i): float(value) for i, value in enumerate(stored)}


def enqueued_values(trial: FrozenTrial) -> dict[str, Any]:
    """The values with which a trial was enqueued."""
    stored = trial.system_attrs.get("fixed_params")
    return dict(stored) if isinstance(stored, Mapping) else {}


def read_shares(trial: FrozenTrial | Trial) -> tuple[float, dict[str, float]] | None:
    """The search's own share, and the sources' by name; None if nothing valid is stored."""
    content = trial.user_attrs.get(_SOURCES)
    if not isinstance(content, Mapping):  # absent, or the user's own
        return None
    own, shares = finite_or_none(content.get("own")), finite_parts(content.get("sources"))
    return None if own is None or shares is None else (own, shares)


def given_values(study: Study, trial: FrozenTrial) -> dict[str, Any]:
    """Values of this trial that the user decided: enqueued, or in a ``PartialFixedSampler``."""
    fixed: dict[str, Any] = {}
    sampler = study.sampler
    while isinstance(sampler, PartialFixedSampler):  # of nested ones the outermost decides
        fixed = sampler._fixed_params | fixed
        sampler = sampler._base_sampler
    # Optuna looks up enqueued values before it asks a sampler, so they precede fixed ones.
    return {**fixed, **enqueued_values(trial)}


def held_values(study: Study, trial: FrozenTrial) -> dict[str, Any]:
    """Values of this trial that are decided: by the user, or already asked for."""
    return {**given_values(study, trial), **trial.params}


def suggest(trial: Trial, name: str, distribution: BaseDistribution) -> Any:
    """The value of a parameter with this distribution."""
    return trial._suggest(name, distribution)


def contains(distribution: BaseDistribution, internal: float) -> bool:
    """Whether a value in internal representation lies in a distribution."""
    return bool(distribution._contains(internal))


def set_times(study: Study, trial: Trial, started: float, finished: float) -> None:
    """Set when a finished trial of a study in memory began and ended, by a simulated clock."""
    # In memory this is the stored trial itself, not a copy.
    stored = study._storage.get_trial(trial._trial_id)
    stored.datetime_start = CLOCK_START + timedelta(seconds=started)
    stored.datetime_complete = CLOCK_START + timedelta(seconds=finished)


# --- arms -----------------------------------------------------------------------------------


def whole_study(study: Study) -> Study:
    """The whole study, also where ``HyperbandPruner`` shows one of its brackets."""
    # A bracket, of Optuna or of an arm, has the whole study as ``_study``.
    whole: Study = getattr(study, "_study", study)
    return whole


def as_finished(
    study: Study, trial: FrozenTrial, state: TrialState, values: Sequence[float] | None
) -> FrozenTrial:
    """A running trial as it will be stored once ``after_trial`` is over."""
    # In memory this is the stored trial itself: setting its state would finish it.
    done = copy.copy(study._storage.get_trial(trial._trial_id))
    done.state = state
    done.values = None if values is None else list(values)
    done.datetime_complete = datetime.now()  # local time without a zone, as Optuna stores it
    return done


def base_sampler(sampler: BaseSampler) -> BaseSampler:
    """The sampler inside ``PartialFixedSampler``; any other sampler unchanged."""
    while isinstance(sampler, PartialFixedSampler):
        sampler = sampler._base_sampler
    return sampler


def write_arm(study: Study, trial: FrozenTrial, arm: str, index: int) -> None:
    """Publish which choice of the parameter ``arm`` a running trial will get."""
    _write(study, trial, f"{_PREFIX}:arm:{arm}", index)


def read_arm(trial: FrozenTrial, arm: str) -> int | None:
    """The index that ``write_arm`` published; None if there is none."""
    index = trial.system_attrs.get(f"{_PREFIX}:arm:{arm}")
    return None if index is None else int(index)


def write_arm_facts(
    study: Study, trial: FrozenTrial, facts: Mapping[str, Any], within: str = ""
) -> None:
    """Store which arm a trial got and why, as the user attribute ``automl_plugins:arm``.

    ``within`` names the parameter of a sampler that is inside the arms of another one: its facts
    are stored beside those of the outer one, as ``automl_plugins:arm:NAME``.
    """
    study._storage.set_trial_user_attr(trial._trial_id, _arm_facts_key(within), dict(facts))


def read_arm_facts(trial: FrozenTrial, within: str = "") -> Any:
    """What ``write_arm_facts`` stored; None, or anything else if the user changed it."""
    return trial.user_attrs.get(_arm_facts_key(within))


def _arm_facts_key(within: str) -> str:
    return f"{_PREFIX}:arm:{within}" if within else f"{_PREFIX}:arm"


def write_rounds(
    study: Study, trial: FrozenTrial, arm: str, rounds: Sequence[Mapping[str, Any]]
) -> None:
    """Store the rounds of successive filtering that were opened for a trial."""
    _write(study, trial, f"{_PREFIX}:rounds:{arm}", list(rounds))


def read_rounds(trial: FrozenTrial, arm: str) -> list[dict[str, Any]]:
    """What ``write_rounds`` stored; empty if nothing."""
    return list(trial.system_attrs.get(f"{_PREFIX}:rounds:{arm}") or [])


def write_rung(study: Study, trial: FrozenTrial, rung: int, outcome: Mapping[str, Any]) -> None:
    """Store what ``SuccessiveFilteringPruner`` decided on a trial at a rung."""
    # Optuna's retries copy attributes: the number identifies the trial of the outcome.
    _write(study, trial, f"{_PREFIX}:rung:{rung}", {**outcome, "number": trial.number})


def read_rung(trial: FrozenTrial, rung: int) -> dict[str, Any] | None:
    """What ``write_rung`` stored; None if the trial itself has not reached the rung."""
    # A copy: in memory the attribute is the stored one, and ``pop`` would change it.
    outcome = dict(trial.system_attrs.get(f"{_PREFIX}:rung:{rung}") or {})
    return outcome if outcome and outcome.pop("number", trial.number) == trial.number else None


class ArmStorage:
    """A storage that shows the trials of one arm only; everything else is unchanged.

    Samplers read a study through its storage, publicly or privately, so the storage is filtered.
    What samplers store for the whole study (a place in a quasi-random sequence) is kept
    separately for every arm.
    """

    def __init__(
        self,
        storage: BaseStorage,
        name: str,  # of the arm: prefix of the attributes that its sampler gives the study
        belongs: Callable[[FrozenTrial], bool],  # whether a trial is the arm's
        narrow: Callable[[FrozenTrial], FrozenTrial],  # a trial as the arm's sampler sees it
    ) -> None:
        self._storage = storage
        self._prefix = f"{_PREFIX}:{name}:"
        self._belongs = belongs
        self._narrow = narrow
        self._narrowed: dict[int, FrozenTrial] = {}  # finished trials do not change

    def __getattr__(self, name: str) -> Any:
        # Not ``self._storage``: a copy that has no attributes yet would ask for it without end.
        return getattr(self.__dict__["_storage"], name)

    def get_all_trials(
        self, study_id: int, deepcopy: bool = True, states: Container[TrialState] | None = None
    ) -> list[FrozenTrial]:
        """The arm's trials."""
        # Copied, if at all, after the others are left out.
        return self.of_arm(self._storage.get_all_trials(study_id, False, states), deepcopy)

    def of_arm(self, trials: list[FrozenTrial], deepcopy: bool) -> list[FrozenTrial]:
        """The arm's trials among ``trials``, copied on demand."""
        own = [self._shown(trial) for trial in trials if self._belongs(trial)]
        return copy.deepcopy(own) if deepcopy else own

    def _shown(self, trial: FrozenTrial) -> FrozenTrial:
        if not trial.state.is_finished():
            return self._narrow(trial)
        if trial.number not in self._narrowed:
            self._narrowed[trial.number] = self._narrow(trial)
        return self._narrowed[trial.number]

    # By ``get_all_trials``, as in every storage.
    get_n_trials: Any = BaseStorage.get_n_trials
    get_best_trial: Any = BaseStorage.get_best_trial

    def get_study_system_attrs(self, study_id: int) -> dict[str, Any]:
        """The study's own attributes, and those that the arm's sampler gave it."""
        stored = self._storage.get_study_system_attrs(study_id)
        # Without attributes of other arms: each arm has its own place in a sequence.
        common = {key: v for key, v in stored.items() if not key.startswith(f"{_PREFIX}:")}
        own = {key: v for key, v in stored.items() if key.startswith(self._prefix)}
        return common | {key.removeprefix(self._prefix): v for key, v in own.items()}

    def set_study_system_attr(self, study_id: int, key: str, value: Any) -> None:
        """Store under the arm's own key."""
        self._storage.set_study_system_attr(study_id, self._prefix + key, value)


class ArmStudy(Study):
    """A study as Optuna passed it to the sampler, perhaps a bracket, with the trials of one arm.

    One object serves one trial of one thread, because Optuna caches the listed trials in it.
    """

    def __init__(self, study: Study, storage: ArmStorage) -> None:
        # Not through Study.__init__, which looks the study up in the storage again.
        self.study_name = study.study_name
        self.sampler = study.sampler
        self.pruner = study.pruner
        self._base = study
        self._storage: Any = storage
        self._study_id = study._study_id
        self._directions = study._directions
        # A new one, because the study's may hold trials of all arms.
        self._thread_local = type(study._thread_local)()
        self._stop_flag = False

    def get_trials(
        self, deepcopy: bool = True, states: Container[TrialState] | None = None
    ) -> list[FrozenTrial]:
        """The arm's trials; in a bracket, its trials of the bracket."""
        # Not from the storage, which knows no brackets.
        trials = self._base.get_trials(deepcopy=False, states=states)
        return cast("ArmStorage", self._storage).of_arm(trials, deepcopy)

    @property
    def _study(self) -> ArmStudy:
        """The arm's trials of all brackets, see ``whole_study``."""
        base = whole_study(self._base)
        return self if base is self._base else ArmStudy(base, self._storage)

    def stop(self) -> None:
        """Do nothing: a sampler with nothing left to try ends its arm, not the study."""


def without_foreign(study: Study, name: str, distribution: BaseDistribution) -> Study:
    """The study without the values of a parameter that do not fit a distribution.

    Optuna's TPE raises on them, or computes with infinities.
    """

    def narrow(trial: FrozenTrial) -> FrozenTrial:
        if name not in trial.params or not _is_foreign(trial, name, distribution):
            return trial
        own = copy.copy(trial)
        own.params = {n: value for n, value in trial.params.items() if n != name}
        own.distributions = {n: d for n, d in trial.distributions.items() if n != name}
        return own

    return ArmStudy(study, ArmStorage(study._storage, "", lambda trial: True, narrow))


def _is_foreign(trial: FrozenTrial, name: str, distribution: BaseDistribution) -> bool:
    if isinstance(distribution, CategoricalDistribution):
        from automl_plugins.spaces.values import index_of  # ConfigSpace, which no pruner needs

        return index_of(distribution.choices, trial.params[name]) is None
    return isinstance(trial.distributions[name], CategoricalDistribution)
