"""The state of a study from which the arm of a trial is chosen."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution
from optuna.samplers import BaseSampler
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState

from automl_plugins.arrays import FloatArray, IntArray
from automl_plugins.bandits.records import Pulls, loss_range
from automl_plugins.bandits.successive_filtering import Round
from automl_plugins.newest import Newest
from automl_plugins.proposers.design import distances
from automl_plugins.proposers.explanation import ArmFacts
from automl_plugins.records.trial import Status
from automl_plugins.spaces.branches import log_volume

from . import _private
from ._arms import Arms, Cells, Choices, Split, promised_arm
from ._study import StudyReader, View
from ._union import UnionSpace
from .space import Distributions, are_equal, infer_rules
from .trials import Cost, StudyTrial

_FULL = (TrialState.COMPLETE, TrialState.PRUNED)  # have asked for all of their parameters
Budget = tuple[float, str]  # of a search by successive filtering: amount and unit
# An arm with more configurations has no ``Grid``. Each trial of an arm lists them again: with 300
# trials 0.04 s for 2000, 0.4 s for 20 000.
_MOST = 2000
_PRUNINGS = 3  # after which a configuration is not tried again


@dataclass(frozen=True)
class Situation:
    """All that the choice of an arm depends on, except the seed."""

    k: int  # number of the trial
    arms: Arms
    exhausted: list[int]  # arms without untried configurations
    pulls: Pulls
    parameters: Mapping[int, Distributions]  # see ``ArmReader``
    rounds: tuple[Round, ...]  # of successive filtering, as stored
    budget: Budget | None  # of these rounds
    log_volume: Callable[[int], float]  # of the space of an arm's parameters, see ``log_volumes``

    @property
    def left(self) -> list[int]:
        """Arms that are not exhausted; all arms if every one is."""
        every = range(len(self.arms))
        return [arm for arm in every if arm not in self.exhausted] or list(every)


class ArmReader(StudyReader):
    """Reads one study for a sampler of arms: also the arm of each trial, and the rounds.

    Args:
        study, cost, reward_range: As the sampler has them.
        key: Name of the parameter whose choices are the arms, or the key of ``split``.
        split: If the arms are cells, how the parameters of the first complete trial are split.
        declared: The cells, if they are known up front.
        budget: Budget whose rounds count; None for the budget of the round opened last.
    """

    def __init__(
        self,
        study: Study,
        key: str,
        cost: Cost,
        reward_range: tuple[float, float] | None,
        split: Split | None = None,
        declared: Arms | None = None,
        budget: Budget | None = None,
    ) -> None:
        # Declared choices count only until a trial is complete, see ``ArmSampler._arms``.
        self._at_first = declared if split is not None else None
        # The base class calls ``_forget``, which reads ``_at_first``.
        super().__init__(study, cost, {}, {})
        self._key, self._split, self._budget = key, split, budget
        self._range = loss_range(reward_range, maximize=self.maximize)
        # By arm, the volume of its space, and the space.
        self._volumes: dict[int, Newest[float]] = defaultdict(Newest)
        self._unions: dict[int, Newest[UnionSpace]] = defaultdict(Newest)
        self.copies: dict[int | None, BaseSampler] = {}  # by arm, see ``InnerSamplers.of_trial``
        self.asked: BaseDistribution | None = None  # of the arm, when a trial served here asked

    def _forget(self) -> None:
        super()._forget()
        self.arms: Arms | None = self._at_first  # None until they are known
        self._grids: dict[int, Newest[Grid | None]] = defaultdict(Newest)
        self._storages: dict[int, _private.ArmStorage] = {}
        self.owner: dict[int, int | None] = {}  # arm of each finished trial, by its number
        # By arm, the newest distribution of each other parameter that its complete and pruned
        # trials asked for, and that can vary.
        self.parameters: dict[int, dict[str, BaseDistribution]] = {}
        self.endless: set[int] = set()  # arms that have, or had, a continuous parameter
        # By index and number of the opening trial: mark of the cells, budget and round.
        self.rounds: dict[tuple[int, int], tuple[int | None, Budget, Round]] = {}
        self.categories: set[str] = set()  # names of all categorical parameters asked for
        self._first: dict[str, BaseDistribution] = {}  # of each name, when first asked for
        self._changed: set[str] = set()  # names whose choices, or kind, changed later
        self.has_complete = False
        self.armless: list[int] = []  # complete trials served here that did not ask for the arm

    def view(self, study: Study, trial: FrozenTrial) -> View:
        """See the base class; the first complete trial with a parameter defines the cells."""
        view = super().view(study, trial)
        if self._split is not None and self.arms is None:
            complete = (row for row in view.columns.trials if row.status == Status.COMPLETE)
            first = next((row for row in complete if row.distributions), None)
            if first is not None:
                cells = self._split.cells(first.distributions)
                self._forget()  # only now the trials can be assigned to arms
                self.arms = cells
                view = super().view(study, trial)
        return view

    def _read(self, trial: FrozenTrial) -> StudyTrial:
        row = super()._read(trial)
        for name, distribution in trial.distributions.items():
            if self.has_changed(name, distribution):
                self._changed.add(name)
            self._first.setdefault(name, distribution)
        self.arms = self._asked(trial) or self.arms
        index = self._owner(trial)
        if trial.state.is_finished():
            self.owner[trial.number] = index
        if trial.state in _FULL:
            self._note_parameters(trial, row, index)
        if index is not None:  # a running trial, or one of a cell, has no such value of its own
            row.values.setdefault(self._key, float(index))
        for data in _private.read_rounds(trial, self._key):
            opened, (amount, unit) = Round.from_dict(data), data["budget"]
            budget = float(amount), str(unit)
            self.rounds[opened.index, trial.number] = data.get("cells"), budget, opened
        return row

    def _asked(self, trial: FrozenTrial) -> Arms | None:
        """The arms, if a trial has asked for them."""
        if self._split is not None or self._key not in trial.distributions:
            return None
        return Choices.from_distribution(self._key, trial.distributions[self._key])

    def _owner(self, trial: FrozenTrial) -> int | None:
        arms = self._asked(trial) or self.arms
        return promised_arm(trial, self._key) if arms is None else arms.owner(trial)

    def _note_parameters(self, trial: FrozenTrial, row: StudyTrial, index: int | None) -> None:
        if trial.state == TrialState.COMPLETE:
            self.has_complete = True
            # The sampler of these arms may be inside the arms of another one.
            stored = [_private.read_arm_facts(trial, within) for within in ("", self._key)]
            served = {facts.parameter for facts in map(ArmFacts.from_dict, stored) if facts}
            if self._key not in trial.distributions and self._key in served:
                self.armless.append(trial.number)
        named = trial.distributions.items()
        self.categories |= {n for n, d in named if isinstance(d, CategoricalDistribution)}
        if index is not None:
            seen = self.parameters.setdefault(index, {})
            own = {n: d for n, d in row.distributions.items() if n != self._key}
            if not all(are_equal(seen.get(n, d), d) for n, d in own.items()):
                self.endless.add(index)  # its range depends on others: no grid has all values
            seen |= own
            if any(isinstance(d, FloatDistribution) and d.step is None for d in [*seen.values()]):
                self.endless.add(index)

    def with_finished(self, view: View, trial: FrozenTrial) -> View:
        """The view with ``trial``, for which it was read, as a finished one."""
        columns = view.columns.extended([self._read(trial)])
        return View(columns, view.running, view.asked | columns.distributions)

    def has_changed(self, name: str, distribution: BaseDistribution) -> bool:
        """Whether a name was asked for with other choices, or as choices and as numbers."""
        first = self._first.get(name, distribution)
        is_choice = CategoricalDistribution in (type(first), type(distribution))
        return name in self._changed or (is_choice and not are_equal(first, distribution))

    # --- what the choice of an arm depends on ---------------------------------------------

    def situation(self, view: View, arms: Arms, k: int) -> Situation:
        """The situation before trial ``k``."""
        grids = [self.grid(view, arms, index) for index in range(len(arms))]
        # Running trials that have published only their arm will take one configuration each.
        waiting = [
            row.values[self._key] for row in view.running if row.values.keys() == {self._key}
        ]
        exhausted = [
            i
            for i, grid in enumerate(grids)
            if grid is not None and len(grid.untried) <= waiting.count(float(i))
        ]
        rounds, budget = self._rounds(arms)
        return Situation(
            k=k,
            arms=arms,
            exhausted=exhausted,
            pulls=self._pulls(view),
            parameters=self.parameters,
            rounds=rounds,
            budget=budget,
            log_volume=partial(self._log_volume, view),
        )

    def _log_volume(self, view: View, index: int) -> float:
        """Log volume of an arm's space; arms may have other ranges under the same names."""
        rules, _ = self._rules(view)
        facts = dict(self.parameters[index]), rules
        return self._volumes[index].get(
            facts, lambda: log_volume(UnionSpace(*facts).vectors.space)
        )

    def _rounds(self, arms: Arms) -> tuple[tuple[Round, ...], Budget | None]:
        """The rounds that count for these arms, in order, and their budget, None if unknown.

        Rounds of the reader's budget count; without one, rounds of the budget opened last.
        """
        # A copy, because other threads may read new rounds meanwhile.
        stored = sorted(self.rounds.copy().items(), key=lambda item: item[0])
        found = [(at, of, r) for at, (mark, of, r) in stored if mark in (None, arms.mark)]
        # Optuna's retries copy attributes: a round was opened by the first trial that has it.
        noted = {(of, opened): trial for (_, trial), of, opened in reversed(found)}
        budget = self._budget or (max(noted, key=noted.__getitem__)[0] if noted else None)
        # If two workers opened the same round, the one with the earlier trial counts.
        rounds = {index: opened for (index, _), of, opened in reversed(found) if of == budget}
        return tuple(rounds[index] for index in sorted(rounds)), budget

    def _pulls(self, view: View) -> Pulls:
        # The arm of each trial (n,), NaN without one.
        index = view.values(self._key)
        pulled = ~np.isnan(index)
        return Pulls.from_losses(
            index[pulled].astype(np.int64),
            view.facts("loss")[pulled],
            seconds=view.facts("seconds")[pulled],
            status=view.facts("status")[pulled].astype(np.int64),
            reward_range=self._range,
            infeasible=view.facts("feasible")[pulled] == 0.0,
            maximize=self.maximize,
        )

    # --- one arm --------------------------------------------------------------------------

    def belongs(self, trial: FrozenTrial, arms: Arms, index: int) -> bool:
        """Whether the sampler of arm ``index`` may see a trial.

        A running trial without an arm is seen by the samplers of all arms that it may still get.
        """
        if trial.number in self.owner:
            return self.owner[trial.number] == index
        if (owner := self._owner(trial)) is not None:
            return owner == index
        return not trial.state.is_finished() and index in arms.allowed(trial.params)

    def study_of(self, study: Study, arms: Arms, index: int) -> _private.ArmStudy:
        """The study, or its bracket, with the trials of arm ``index`` only."""
        storage = _private.ArmStorage(
            _private.storage_of(study),
            f"{self._key}:{index}",
            lambda trial: self.belongs(trial, arms, index),
            lambda trial: arms.narrow_trial(index, trial),
        )
        # Each arm keeps its first storage, as samplers identify studies by their storage.
        return _private.ArmStudy(study, self._storages.setdefault(index, storage))

    def grid(self, view: View, arms: Arms, index: int) -> Grid | None:
        """The configurations of an arm; None if there are too many or they are not known yet.

        They are made of the parameters of its complete and pruned trials, with conditions that
        complete trials show; a branch that no trial has entered always counts as untried.
        """
        if index not in self.parameters or index in self.endless:
            return None
        # Rows without an arm have NaN, which equals no index.
        rows = np.flatnonzero(view.values(self._key) == index)
        running = [row for row in view.running if row.values.get(self._key) == index]
        # Finished trials do not change: their number says whether there are new ones.
        key = (len(rows), [(row.number, dict(row.values)) for row in running])
        return self._grids[index].get(key, lambda: self._list(view, arms, index, rows))

    def _list(self, view: View, arms: Arms, index: int, rows: IntArray) -> Grid | None:
        parameters = dict(sorted(self.parameters[index].items()))
        values = {name: view.values(name)[rows] for name in parameters}
        status = view.facts("status")[rows]
        full, pruned = status == Status.COMPLETE, status == Status.PRUNED
        complete = {name: column[full] for name, column in values.items()}
        facts = (parameters, infer_rules(complete, parameters))
        union = self._unions[index].get(facts, lambda: UnionSpace(*facts))
        space = union.vectors
        # For cells the whole space is listed, then configurations of other cells are left out.
        everything = space.enumerate(_MOST * len(arms) if isinstance(arms, Cells) else _MOST)
        if everything is not None and isinstance(arms, Cells):
            for name in arms.whole.keys() & union.column.keys():
                entries, place = np.unique(everything[:, union.column[name]], return_inverse=True)
                internal = [v if np.isnan(v) else union.internal(name, v) for v in entries]
                everything = everything[arms.contains(index, name, np.array(internal))[place]]
        # A cell's own part may still be too large.
        if everything is None or len(everything) > _MOST:
            return None
        # Vectors (n, d) of the arm's trials; ``everything`` has the configurations (m, d).
        tried = np.empty((len(rows), space.d))
        for name, column in union.column.items():
            tried[:, column] = union.encode(name, values[name])
        # Trials with other parameters failed, or run in an unknown branch: they exhaust nothing.
        trials, known = [*view.columns.trials, *view.running.trials], {self._key, *parameters}
        explained = np.array([trials[i].values.keys() <= known for i in rows], dtype=bool)
        seen = space.seen(everything, np.unique(space.keys(tried[explained & ~pruned])))
        # What a complete trial did not ask for counts with any value: conditions on several
        # parameters are not inferred.
        for done in np.unique(tried[explained & full], axis=0):
            seen |= (np.isnan(done) | (everything == done)).all(axis=1)
        # Compared with other trials, or in another bracket of Hyperband, a pruned one may survive.
        keys = space.keys(tried[explained & pruned])
        # Prunings of each configuration (m,), by comparison (m, p) with the p pruned trials.
        times = (space.keys(everything)[:, None] == keys).sum(axis=1)
        fresh = ~seen & (times == 0)
        return Grid(union, everything[fresh if fresh.any() else ~seen & (times < _PRUNINGS)])


@dataclass(frozen=True)
class Grid:
    """The configurations of an arm with few of them."""

    union: UnionSpace  # of the arm's own parameters
    untried: FloatArray  # configurations (n, d) without a trial; if there are none, pruned ones

    def vector(self, values: Mapping[str, Any]) -> FloatArray:
        """The vector (d,) of a configuration with ``values`` of all parameters."""
        return np.asarray(self.union.vectors.activate(self.union.fixed(values)[None])[0])

    def is_untried(self, vector: FloatArray) -> bool:
        """Whether a configuration (d,) is among the untried ones."""
        keys = self.union.vectors.keys
        return bool(np.isin(keys(vector[None]), keys(self.untried))[0])

    def nearest(
        self, vector: FloatArray, held: Mapping[str, Any], rng: np.random.Generator
    ) -> FloatArray | None:
        """The untried configuration with the values ``held`` that is nearest to ``vector`` (d,).

        Ties are broken at random; None if every configuration with these values has been tried.
        """
        fixed = self.union.fixed(held)
        pool = self.untried[(np.isnan(fixed) | (self.untried == fixed)).all(axis=1)]
        if not len(pool):
            return None
        features = self.union.vectors.features
        # Distances (n, 1) to the one vector.
        gaps = distances(features(pool), features(vector[None]))[:, 0]
        return np.asarray(pool[rng.choice(np.flatnonzero(gaps == gaps.min()))])
