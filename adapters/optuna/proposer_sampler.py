"""Any proposer of the core behind Optuna's interface."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from optuna.distributions import BaseDistribution, IntDistribution
from optuna.logging import get_logger
from optuna.samplers import BaseSampler
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState

from automl_plugins._arguments import check_flag, did_you_mean
from automl_plugins.meta.names import spelling
from automl_plugins.newest import Newest
from automl_plugins.proposers.proposal import (
    MOST_ASKING,
    Proposal,
    Proposer,
    SurrogateFailure,
    ask,
)
from automl_plugins.spaces.values import ABSENT

from . import _private
from ._foresight import Foresight
from ._steps import merged_note
from ._study import StudyReader, View, mark_spent
from ._union import UnionSpace, even_value, value_at
from .seeded_sampler import Cache, SeededSampler, check_parameter
from .space import Distributions, check_ordinal, check_space, value_in
from .studies import is_maximized
from .trials import SECONDS, Cost, check_cost

_logger = get_logger("optuna.automl_plugins")

_PACE = 0.02  # least seconds to wait for another worker: each look reads the storage
_ENOUGH = 10  # finished trials after which each declared parameter should have been asked for
_IN_SECONDS = (None, "duration", SECONDS)  # costs; others may be in any unit
_TRIES = 4  # proposals for one trial at most, if other workers publish the same ones


class _Asked(NamedTuple):
    """What was known when a trial asked for its search space, and values beyond it."""

    names: frozenset[str] = frozenset()  # all parameters known then; none without a proposal
    moving: frozenset[str] = frozenset()  # names whose range moves, see ``StudyColumns``
    foretold: Mapping[str, Any] = {}  # proposed values of parameters not in the search space


class ProposerSampler(SeededSampler):
    """A proposer of the core on any define-by-run objective.

    The proposer sees one space, the union of all parameters, its conditions inferred from the
    trials. A proposal depends only on the seed, the trial's number and the stored trials.
    Threads that share a sampler propose one after another: each sees what the last one published.

    Args:
        proposer: The proposer.
        search_space: Distributions known up front; everything else is learnt from the trials.
        ordinal: Choices, in order, of categorical parameters that are ordered.
        independent_sampler: Sampler of parameters never seen before; None fills each parameter's
            range evenly.
        warn_independent_sampling: Log a warning when a known parameter has to be sampled
            independently.
        cost: Where the seconds of a trial come from: ``"duration"`` (the user attribute
            ``"seconds"`` if it is set, else the duration less the sampler's own time), the
            name of another user attribute, or a function of the finished trial, both in any
            unit. None means duration if costs are needed. Numbers that are 0, negative or not
            finite count as unknown; the first one below 0 or not finite is logged as a warning,
            0 only if no trial has a cost.
        seed: Non-negative integer; None draws one and logs it.
        foresight: The search space expected from earlier tasks; counts until the trials
            contradict it.
    """

    def __init__(
        self,
        proposer: Proposer,
        *,
        search_space: Mapping[str, BaseDistribution] | None = None,
        ordinal: Mapping[str, Sequence[Any]] | None = None,
        independent_sampler: BaseSampler | None = None,
        warn_independent_sampling: bool = True,
        cost: Cost = None,
        seed: int | None = None,
        foresight: Foresight | None = None,
    ) -> None:
        super().__init__(seed)
        self._proposer = proposer
        self._search_space = check_space(search_space)
        self._ordinal = check_ordinal(ordinal)
        if self._search_space:
            UnionSpace(self._search_space, (), self._ordinal)  # bad input fails here, not later
        if not isinstance(independent_sampler, BaseSampler | None):
            raise TypeError(
                "independent_sampler must be a sampler of Optuna, such as RandomSampler(), or"
                f" None, got {independent_sampler!r}."
            )
        check_flag("warn_independent_sampling", warn_independent_sampling)
        self._independent_sampler = independent_sampler
        self._warn_independent_sampling = warn_independent_sampling
        self._cost = check_cost(cost)
        self._foresight = foresight
        self._declared: Newest[UnionSpace] = Newest()  # the space, if it was made already
        self._readers: Cache[_private.StudyKey, StudyReader] = Cache()
        self._asked: Cache[_private.TrialKey, _Asked] = Cache()
        # Trials of this process, and trials of other processes that were awaited in vain.
        self._unawaited: Cache[_private.TrialKey, bool] = Cache()
        self._pace = _PACE  # seconds that the last proposal took

    # --- Optuna's interface ---------------------------------------------------------------

    def reseed_rng(self) -> None:
        """Leave the streams alone: parallel trials differ by their numbers already."""
        if self._independent_sampler is not None:
            self._independent_sampler.reseed_rng()

    def before_trial(self, study: Study, trial: FrozenTrial) -> None:
        """Pass the event on; see the base class."""
        super().before_trial(study, trial)
        self._unawaited[_private.trial_key(study, trial)] = True
        if self._independent_sampler is not None:
            self._independent_sampler.before_trial(study, trial)

    def after_trial(
        self, study: Study, trial: FrozenTrial, state: TrialState, values: Sequence[float] | None
    ) -> None:
        """Store the sampler's own time, which is not a cost of the objective."""
        key = _private.trial_key(study, trial)
        self._asked.pop(key, None)
        self._unawaited.pop(key, None)
        if self._independent_sampler is not None:
            self._independent_sampler.after_trial(study, trial, state, values)
        self._store_overhead(study, trial)  # after that sampler, whose time is part of it

    def infer_relative_search_space(
        self, study: Study, trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
        """All parameters seen or declared that can vary, except those whose range moves.

        In a range that moves a position is proposed, which becomes a value when it is asked for.
        """
        with self._clocked(study, trial):
            reader = self._reader(study)
            view = reader.view(study, trial)
            self._warn_of_unasked(study, view)
            gone, moving = reader.left_out(view), view.columns.moving
            names = frozenset(view.columns.distributions.keys() - gone)
            self._asked[_private.trial_key(study, trial)] = _Asked(names, moving)
            known = sorted(view.asked.items())
            return {n: d for n, d in known if n not in gone | moving and not d.single()}

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """Propose values for all of ``search_space`` jointly.

        Threads take turns, so each sees the published proposal of the last.
        """
        key = _private.trial_key(study, trial)
        with self._clocked(study, trial):
            asked = self._asked.setdefault(key, _Asked())
            found = None
            # Else no parameter is known for a joint proposal.
            if search_space or asked.moving or self._foresight is not None:
                with self._turn:
                    found = self._publish(study, trial, search_space)
            if found is None:  # all parameters are sampled independently
                self._asked[key] = asked._replace(names=frozenset())
                _private.write_explanation(study, trial, {"origin": "independent"})
                return {}
            union, proposal = found
            self._note(study, trial, union, proposal)
            rng = self._streams.generator("unasked", trial.number)
            # Values of inactive parameters are harmless, and serve an objective that asks anyway.
            values = union.values(proposal.vector, rng)
            if self._foresight is not None or asked.moving:
                # Optuna fails a trial whose objective asks for another kind of distribution than
                # was announced, so values of expected parameters are kept until asked for.
                foretold = {n: v for n, v in values.items() if n not in search_space}
                self._asked[key] = asked._replace(foretold=foretold)
            return {name: values[name] for name in search_space}

    def sample_independent(
        self,
        study: Study,
        trial: FrozenTrial,
        param_name: str,
        param_distribution: BaseDistribution,
    ) -> Any:
        """Sample a parameter that was never seen before, or propose one whose range moves.

        If this is the ``independent_sampler`` of another sampler, it proposes each known
        parameter, given the values that the trial has by then.
        """
        check_parameter(param_name)
        with self._clocked(study, trial):
            asked = self._asked.get(_private.trial_key(study, trial))
            if asked is not None:
                found = self._foretold(study, trial, asked, param_name, param_distribution)
                if found is not ABSENT:
                    return found
            view = self._reader(study).view(study, trial)
            # No warning for parameters that other trials have shown since the proposal, or if
            # there is no proposal because this is the independent sampler of another one.
            is_expected = asked is not None and param_name in asked.names
            if is_expected and self._warn_independent_sampling:
                _logger.warning(
                    f"Parameter {param_name!r} of trial {trial.number} is sampled"
                    f" independently: the joint proposal for it is not in {param_distribution}."
                    " Pass warn_independent_sampling=False to silence this."
                )
            if asked is None and param_name in view.asked.keys() - view.columns.moving:
                found = self._alone(study, trial, param_name, param_distribution)
                if found is not ABSENT:
                    return found
            if self._independent_sampler is not None:
                return self._independent_sampler.sample_independent(
                    study, trial, param_name, param_distribution
                )
            if note := merged_note(param_name, param_distribution):
                self._warn_once(study, note, about=param_name)
            seen = view.columns, view.running, self._streams, trial.number
            return even_value(*seen, param_name, param_distribution)

    # --- parts ----------------------------------------------------------------------------

    def _check_settings(self, study: Study, trial: FrozenTrial) -> None:
        reader = self._reader(study)
        # An ``ordinal`` that is no permutation of the choices, or an unusable cost, raises here.
        reader.space(reader.view(study, trial), {})

    def _publish(
        self, study: Study, trial: FrozenTrial, search_space: Distributions
    ) -> tuple[UnionSpace, Proposal] | None:
        """Make the joint proposal and publish it for other workers; None if there is none."""
        reader = self._reader(study)
        view = reader.view(study, trial)
        union = reader.space(view, search_space)
        if not union.vectors.d:
            return None
        view = self._await_others(study, trial, view)
        fixed = union.fixed(_private.held_values(study, trial))
        proposer = self._proposer_of(study)
        proposal: Proposal | None = None
        values: dict[str, float] = {}
        for _ in range(_TRIES):
            history = mark_spent(reader.history(view, union), view, union)
            begin = time.perf_counter()
            try:
                found = ask(proposer, union.vectors, history, self._streams, trial.number, fixed)
            except SurrogateFailure as failure:
                text = f"{failure} Parameters are sampled independently instead."
                self._warn_once(study, text, about="proposals")
                break
            # ``ask`` has also computed the proposals of silent workers.
            foreseen = len(_silent(trial, view))
            self._pace = max(_PACE, (time.perf_counter() - begin) / (1 + foreseen))
            published, values = values, union.internals(found.vector)
            if values == published:  # there is nothing else to propose
                break
            proposal = found
            moving = {n: v for n, v in values.items() if n in union.moving}
            known = {n: v for n, v in values.items() if n not in moving}
            _private.write_proposal(study, trial, known, moving)
            # Another process may have proposed the same meanwhile. Both publish before they read
            # again, so at least one of them sees the other.
            if not len(view.running):
                break
            earlier, view = view, reader.view(study, trial)
            if not _has_twin(view, earlier, values):
                break
        return None if proposal is None else (union, proposal)

    def _alone(
        self, study: Study, trial: FrozenTrial, name: str, distribution: BaseDistribution
    ) -> Any:
        """The joint proposal's value of one parameter; ``ABSENT`` if there is no proposal."""
        # Read before ``_publish`` writes over it.
        proposed = _private.read_proposal(trial)  # of the other sampler, if it is one of ours
        with self._turn:
            found = self._publish(study, trial, {name: distribution})
            if found is None:
                return ABSENT
            union, proposal = found
            rng = self._streams.generator("unasked", trial.number)
            value = union.values(proposal.vector, rng)[name]
            # The other sampler decides all other parameters.
            internal = {name: float(distribution.to_internal_repr(value))}
            _private.write_proposal(study, trial, internal | proposed)
            return value

    def _foretold(
        self,
        study: Study,
        trial: FrozenTrial,
        asked: _Asked,
        name: str,
        distribution: BaseDistribution,
    ) -> Any:
        """The joint proposal's value of a parameter that was not in the search space.

        ``ABSENT`` if there is none. The value is published as the objective asks for it: the
        proposal may have another name, order of choices or steps.
        """
        # The memory may write it without the prefix of a step, or as another interface does.
        written = {new: known for known, new in spelling([name], asked.foretold, 1).items()}
        if (known := written.get(name, name)) not in asked.foretold:
            return ABSENT
        value = asked.foretold[known]
        if known == name and name in asked.moving:
            found = value_at(distribution, value, self._taken(study, trial, name))
        else:
            # A share such as 0.5 must not become the nearest count.
            kind = int if isinstance(distribution, IntDistribution) else float
            found = value_in(distribution, value, nearest=type(value) is kind)
        if found is not ABSENT:
            proposed = _private.read_proposal(trial)
            internal = float(distribution.to_internal_repr(found))
            if proposed.get(name) != internal:
                _private.write_proposal(study, trial, proposed | {name: internal})
        return found

    def _taken(self, study: Study, trial: FrozenTrial, name: str) -> set[float]:
        """Values of a parameter that would repeat a configuration; empty if others are open."""
        if not _private.read_positions(trial).keys() <= trial.params.keys() | {name}:
            return set()
        view, others = self._reader(study).view(study, trial), _private.read_proposal(trial)
        others.pop(name, None)
        return {
            row.values[name]
            for row in (*view.columns, *view.running)
            if name in row.values and others.items() <= (row.constants | row.values).items()
        }

    def _await_others(self, study: Study, trial: FrozenTrial, view: View) -> View:
        """The view after waiting for proposals of other processes, as long as any are published.

        They could be predicted, but that takes as long as making them: workers that predict each
        other instead of waiting keep the processors busy and finish no sooner.
        """
        asking = self._asking(study, trial, view)
        while asking:
            time.sleep(len(asking) * self._pace)
            view = self._reader(study).view(study, trial)
            left = self._asking(study, trial, view)
            if len(left) >= len(asking):  # they are slow, or dead, or do not ask yet
                self._unawaited.update(dict.fromkeys(left, True))
                break
            asking = left
        return view

    def _asking(self, study: Study, trial: FrozenTrial, view: View) -> list[_private.TrialKey]:
        """Earlier trials of other processes that may be about to publish a proposal."""
        own = _private.trial_key(study, trial)[:-1]
        keys = [(*own, number) for number in _silent(trial, view)]
        return [key for key in keys if key not in self._unawaited]

    def _proposer_of(self, study: Study) -> Proposer:
        return self._proposer

    def _reader(self, study: Study) -> StudyReader:
        known = self._cost, self._search_space, self._ordinal, self._foresight, self._declared
        return self._readers.of(_private.study_key(study), lambda: StudyReader(study, *known))

    def _note(
        self, study: Study, trial: FrozenTrial, union: UnionSpace, proposal: Proposal
    ) -> None:
        """Store, and log, why a configuration was proposed."""
        facts = proposal.to_dict()
        shares = facts.pop("shares", None)
        # The core minimises; users are shown values of their own objective.
        if is_maximized(study):
            facts |= {name: -facts[name] for name in ("loss", "bound") if name in facts}
        if "loss" in facts:
            facts["value"] = facts.pop("loss")
        if self._cost not in _IN_SECONDS:
            facts["unit"] = ""  # money, or energy
        given = union.fixed(_private.given_values(study, trial))
        if fixed := [name for name, i in union.column.items() if not np.isnan(given[i])]:
            facts["fixed"] = fixed
        _private.write_explanation(study, trial, facts, shares)
        if proposal.fit_seconds is not None and proposal.n_rows:
            shown = [f"{k} {facts[k]:.6g}" for k in ("value", "bound") if k in facts]
            predicted = f", predicted {', '.join(shown)}" if shown else ""
            _logger.debug(
                f"Trial {trial.number}: model of {type(self).__name__} fitted on"
                f" {proposal.n_rows} trials in {proposal.fit_seconds:.3f} s{predicted}."
            )

    def _warn_of_unasked(self, study: Study, view: View) -> None:
        """Warn, once for each name, of declared parameters that no trial has asked for."""
        if len(view.columns) < _ENOUGH or not (self._search_space or self._ordinal):
            return
        # Columns have no distribution of a parameter with one value.
        constant = {name for row in view.columns for name in row.constants}
        asked = view.columns.distributions.keys() | constant
        given = ("search_space", self._search_space.keys()), ("ordinal", self._ordinal.keys())
        for argument, declared in given:
            for name in sorted(declared - asked):
                self._warn_once(
                    study,
                    f"none of {len(view.columns)} finished trials has asked for {name!r}, which"
                    f" {argument} names; they ask for {', '.join(sorted(asked))}."
                    f"{did_you_mean(name, asked - declared)}",
                    about=f"{argument} {name}",
                )

    def _warn_once(self, study: Study, message: str, about: str) -> None:
        if self._reader(study).first_time(about):
            _logger.warning(f"{self}: {message}")


def _silent(trial: FrozenTrial, view: View) -> list[int]:
    """Numbers below the trial's of running trials without a published proposal."""
    window = range(trial.number - MOST_ASKING, trial.number)
    return [row.number for row in view.running if not row.values and row.number in window]


def _has_twin(view: View, earlier: View, values: Mapping[str, float]) -> bool:
    """Whether a trial that was not finished in ``earlier`` has the same proposed ``values``."""
    known = earlier.columns.numbers
    others = [row for row in view.columns if row.number not in known] + view.running.trials
    found = [row.positions | row.values for row in others]
    return any(proposed and proposed.items() <= values.items() for proposed in found)
