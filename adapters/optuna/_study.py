"""A study as a sampler reads it. Readers are caches: they can be rebuilt from the trials."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from optuna.distributions import BaseDistribution
from optuna.logging import get_logger
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState, create_trial

from automl_plugins.arrays import FloatArray
from automl_plugins.newest import Newest
from automl_plugins.proposers.refits import refit_point
from automl_plugins.records.history import History
from automl_plugins.records.trial import Status, oldest_running, unix_time
from automl_plugins.spaces.conditions import Rule

from . import _private
from ._foresight import Foresight, explain_by_stopped, find_abandoned, find_refuted
from ._union import POSITION, UnionSpace, positions_in
from .space import Distributions
from .studies import is_maximized
from .trials import Cost, StudyColumns, StudyTrial, read_trial

_logger = get_logger("optuna.automl_plugins")

# Seconds after which a running trial without values counts as dead: others would wait for it, and
# predict a proposal for it. A worker that is alive may take a while to load its data.
_ASKS = 60.0
_ENOUGH = 5  # complete trials after which a warning is due if none has a cost
# Newest complete trials from which conditions are inferred: 0.04 s for 33 names on one core. Older
# ones may be of an objective that asked differently.
_RULE_TRIALS = 1000


@dataclass(frozen=True)
class View:
    """A study at one moment, as a sampler sees it."""

    columns: StudyColumns  # finished trials
    running: StudyColumns  # other running trials, published proposals included
    asked: dict[str, BaseDistribution]  # newest of each name declared or asked for
    expected: Distributions = field(default_factory=dict)  # from earlier tasks

    @property
    def distributions(self) -> dict[str, BaseDistribution]:
        """The distribution of each name, which is ``POSITION`` if its range moves."""
        return {**self.expected, **self.asked, **dict.fromkeys(self.columns.moving, POSITION)}

    def __len__(self) -> int:
        return len(self.columns) + len(self.running)

    def values(self, name: str) -> FloatArray:
        """Internal values of a parameter in all trials (n,), NaN where it was not asked for."""
        return np.concatenate([self.columns.values(name), self.running.values(name)])

    def sizes(self, name: str) -> FloatArray:
        """Number of values that the range of a parameter had in all trials (n,)."""
        return np.concatenate([self.columns.sizes(name), self.running.sizes(name)])

    def facts(self, name: str) -> FloatArray:
        """An attribute of all trials (n,), such as ``"loss"``, as numbers."""
        return np.concatenate([self.columns.facts(name), self.running.facts(name)])


@dataclass(frozen=True)
class Reading:
    """What has been read of the trials of a study."""

    columns: StudyColumns = field(default_factory=StudyColumns)  # the finished ones
    n_trials: int = 0  # length of the list that was read
    still_open: Sequence[int] = ()  # places in the list of the trials that had not finished
    # By place, ``_identity`` of the first and of the last finished trial.
    ends: Mapping[int, object] = field(default_factory=dict)

    def is_continued_by(self, trials: list[FrozenTrial]) -> bool:
        """Whether ``trials`` begins with the list that was read.

        Only its first and last finished trials are compared; unfinished trials are read again.
        """
        if len(trials) < self.n_trials:
            return False
        return all(_identity(trials[place]) == known for place, known in self.ends.items())


class StudyReader:
    """Reads one study: its trials, each once, its conditions and its search space.

    ``declared`` are the distributions known up front; see ``ProposerSampler`` for the others.
    ``space`` caches a union space made before the study was read, under its ``key_of_space``.
    """

    _reading: Reading
    _has_cost: bool  # whether a finished trial has the user attribute of ``cost``
    _conditions: Newest[tuple[list[Rule], set[str]]]

    def __init__(
        self,
        study: Study,
        cost: Cost,
        declared: Distributions,
        ordinal: Mapping[str, Sequence[Any]],
        foresight: Foresight | None = None,
        space: Newest[UnionSpace] | None = None,
    ) -> None:
        self._storage = _private.storage_of(study)  # kept alive: its ``id`` is a key of caches
        self.maximize = is_maximized(study)  # whether larger objective values are better
        self._cost = cost
        self._declared = dict(declared)
        self._ordinal = ordinal
        self._foresight = foresight or Foresight({}, ())
        self._reported: set[Any] = set()  # events, see ``first_time``
        self._begun: int | None = None  # number of the first trial that the study was read for
        self._space = Newest[UnionSpace]() if space is None else space.copy()
        # The space, the last finished trial, and the ``_rows`` of all finished trials.
        self._finished: tuple[UnionSpace, StudyTrial, FloatArray] | None = None
        self._forget()

    def view(self, study: Study, trial: FrozenTrial) -> View:
        """Read the new trials, in all brackets of ``HyperbandPruner``.

        Trials of other brackets are as informative, and a single bracket has few. Optuna's TPE
        reads them all, too.

        An unusable cost counts as unknown; the first one is logged as a warning. Raises ValueError
        if a cost is no number and no trial has a usable one, or if no complete trial has the user
        attribute that ``cost`` names.
        """
        if self._begun is None:
            self._begun = trial.number
        reading = self._reading  # read once: threads share the sampler
        # Not copied, which would take longer than reading the new ones: nothing changes them.
        trials = _private.whole_study(study).get_trials(deepcopy=False)
        if not reading.is_continued_by(trials):  # lost, reordered, or of a study made again
            self._forget()
            reading, self._begun = self._reading, trial.number
        columns = reading.columns
        # Trials keep their places, so only new and unfinished ones have to be read.
        places = [*reading.still_open, *range(reading.n_trials, len(trials))]
        new = [t for t in (trials[i] for i in places) if t.number not in columns.numbers]
        finished = [t for t in new if t.state.is_finished()]
        running = [t for t in new if t.state == TrialState.RUNNING and t.number != trial.number]
        if finished:
            read = [self._read(t) for t in finished]
            # A new object: views that other trials hold stay as they are.
            columns = columns.extended(read)
            if isinstance(self._cost, str):  # a callable need not have a hash
                self._has_cost |= any(self._cost in t.user_attrs for t in finished)
            self._check_cost(columns, read)
        # A killed worker leaves its trial running for ever.
        oldest = oldest_running(columns.facts("number")) if running else 0
        still_open = [i for i in places if not trials[i].state.is_finished()]
        done = [*reading.ends, *(i for i in places if trials[i].state.is_finished())]
        ends = {i: _identity(trials[i]) for i in (min(done), max(done))} if done else {}
        self._reading = Reading(columns, len(trials), still_open, ends)
        begun = unix_time(trial.datetime_start, local=True)
        # ``not <``, because an unknown start is NaN and must count as recent.
        rows = [self._read(other) for other in running if other.number >= oldest]
        alive = StudyColumns(row for row in rows if row.values or not row.started < begun - _ASKS)
        expected = {} if self._declared else self._foresight.distributions
        # A running trial may have asked for another range than earlier tasks, or for choices in
        # another order: in the tasks' distribution, its internal value would mean another value.
        shown = {n: d for n, d in alive.distributions.items() if n in expected}
        # Distributions that the objective asks for take precedence over declared ones.
        return View(columns, alive, self._declared | shown | columns.distributions, expected)

    def everything(self, study: Study) -> View:
        """The view of all trials, for what is done for no trial."""
        # Its number is -1 and its start unknown, so no running trial is left out.
        return self.view(study, create_trial(state=TrialState.WAITING))

    def _forget(self) -> None:
        """Forget all that was read of the trials."""
        self._reading, self._has_cost = Reading(), False
        self._conditions = Newest()

    def _read(self, trial: FrozenTrial) -> StudyTrial:
        """Read a trial; add proposed values that a running or failed one has not asked for."""
        row = read_trial(trial, maximize=self.maximize, cost=self._cost)
        if row.status not in (Status.COMPLETE, Status.PRUNED):
            # Values that the objective asked for take precedence over proposed ones.
            row.values.update(_private.read_proposal(trial) | row.values)
        return row

    def _check_cost(self, columns: StudyColumns, new: list[StudyTrial]) -> None:
        is_known = np.isfinite(columns.facts("seconds")).any()
        for row in new:  # one that is not complete may have stopped before it had a cost
            if row.unusable is not None and row.status == Status.COMPLETE:
                # If no trial gave a number, the setting is wrong, not one trial.
                if not (is_known or row.unusable.is_number):
                    raise ValueError(row.unusable.message)
                if self.first_time("unusable cost"):
                    _logger.warning(
                        f"{row.unusable.message} Its cost counts as unknown, and so do those of"
                        " further trials of which this is true; they are not logged."
                    )
        complete = columns.facts("status") == Status.COMPLETE
        is_asked = callable(self._cost) or self._has_cost
        is_late = is_asked and not is_known and complete.sum() >= _ENOUGH
        if is_late and self.first_time("no cost"):
            _logger.warning(
                f"cost={self._cost!r} has given no number above 0 for any of"
                f" {len(columns)} trials: the search does without costs."
            )
        if self._has_cost or not isinstance(self._cost, str) or self._cost == "duration":
            return
        # Trials before ``_begun`` may be of an objective that did not set the cost yet.
        assert self._begun is not None
        if (complete & (columns.facts("number") >= self._begun)).any():
            raise ValueError(
                f"cost={self._cost!r}: no complete trial has a user attribute of that name. Set"
                f" it in the objective, trial.set_user_attr({self._cost!r}, seconds), or use"
                " cost='duration'."
            )

    def first_time(self, event: Any) -> bool:
        """Whether an event has not been reported yet; marks it as reported."""
        reported = event in self._reported
        self._reported.add(event)
        return not reported

    def space(self, view: View, asked: Distributions) -> UnionSpace:
        """The union space, with ``asked`` as the newest distributions.

        The same object is returned as long as nothing has changed.
        """
        rules, gone = self._rules(view)
        known = view.distributions | dict(asked)  # the newest, also of names left out
        distributions = {n: d for n, d in known.items() if n not in gone or n in asked}
        key = key_of_space(distributions, rules)
        return self._space.get(key, lambda: UnionSpace(distributions, rules, self._ordinal))

    def _rules(self, view: View) -> tuple[list[Rule], set[str]]:
        """The conditions, and the names that are left out of the space.

        Left out are expected names that the trials contradict, and abandoned names: new trials
        would have gaps there, filled at random, and proposals would depend on unused names.
        """
        # Inferred only when models are fitted anyway, as a new space is a new key for all of them.
        # So workers that have read a few trials more or less infer the same.
        n = refit_point(len(view.columns))
        # A range that moves is no parent, and the order of choices may differ from the expected.
        key = n, view.columns.moving, view.expected.keys() - view.asked.keys()
        rules, gone = self._conditions.get(key, lambda: self._infer(view, n))
        # A name that is asked for again is back at once, not at the next point.
        again = (row.distributions.keys() for row in view.columns.trials[n:] if gone)
        return rules, gone.difference(*again)

    def _infer(self, view: View, n: int) -> tuple[list[Rule], set[str]]:
        rows = view.columns.trials[:n]
        complete = [i for i, row in enumerate(rows) if row.status == Status.COMPLETE]
        recent = complete[-_RULE_TRIALS:]
        values = {name: view.columns.values(name)[recent] for name in view.distributions}
        rules = self._foresight.rules(values, view.distributions)
        rules = explain_by_stopped(rows[-_RULE_TRIALS:], view.distributions, rules)
        # A name that was asked for needs no foresight: its own trials say when it is active.
        expected = view.expected.keys() - view.asked.keys()
        # Names that the user has declared stay, asked for or not.
        own = view.columns.distributions.keys() - self._declared.keys()
        # Of all complete trials: those in which one name replaced another may be old.
        every = {name: view.columns.values(name)[complete] for name in own}
        abandoned = find_abandoned(every, rules, own)
        return rules, find_refuted(values, rules, expected) | abandoned

    def left_out(self, view: View) -> set[str]:
        """Names left out of the space unless asked for; logs those that trials have asked for."""
        gone = self._rules(view)[1]
        for name in sorted(gone & view.columns.distributions.keys()):
            if self.first_time(f"left out {name}"):
                _logger.info(
                    f"{name!r} seems to have another name now: until a trial asks for it again,"
                    " it is left out, and so are the trials that did."
                )
        return gone

    def history(self, view: View, union: UnionSpace) -> History:
        """The core's history: finished rows, then the running ones.

        Finished trials that asked for a name which is left out now are left out, too.
        """
        columns = view.columns
        if gone := self._rules(view)[1]:
            columns = StudyColumns(t for t in columns if t.distributions.keys().isdisjoint(gone))
        # Rows are in the order of ``columns.trials``, in which the trials ended.
        trials, known = columns.trials, _rows([], union)
        if self._finished is not None:
            known_union, last, rows = self._finished  # read once: threads share the reader
            # Trials are only added. If one was inserted before the last one, all are encoded anew.
            is_begun = len(rows) <= len(trials) and trials[len(rows) - 1] is last
            known = rows if is_begun and known_union is union else known
        new = _rows([*trials[len(known) :], *view.running.trials], union)
        rows = np.concatenate([known, new])
        if trials:
            self._finished = union, trials[-1], rows[: len(trials)]
        vectors, missing = rows[:, 0], rows[:, 1] > 0
        return History.of_trials(columns, view.running, vectors=vectors, missing=missing)


def _identity(trial: FrozenTrial) -> object:
    """Key that distinguishes a finished trial from a trial of another study at the same place.

    Not its id, which a database may use again. Values are texts, as NaN does not equal itself.
    """
    return trial.number, trial.datetime_start, trial.datetime_complete, repr(trial.values)


def key_of_space(distributions: Distributions, rules: list[Rule]) -> object:
    """Key of a search space: equal for equal spaces."""
    # An ordinary range from 0 to 1 equals ``POSITION``.
    return distributions, rules, [n for n, d in distributions.items() if d is POSITION]


def _rows(trials: Sequence[StudyTrial], union: UnionSpace) -> FloatArray:
    """Trials in a space (n, 2, d): their vectors, and 1 for each value that is missing.

    If a range moves, the vectors contain the position in it. Running and failed trials contain
    proposed values of parameters that they have not asked for, which count as missing in running
    trials only.
    """
    vectors = union.encode_all(
        [row.constants | row.values | positions_in(row, union.moving) for row in trials]
    )
    proposed = np.zeros(vectors.shape, dtype=bool)
    for i, row in enumerate(trials):
        # Complete ones have the values that they asked for only, see ``_read``.
        if row.status != Status.COMPLETE:
            proposed[i] = [name not in row.distributions for name in union.column]
    activated, missing = union.vectors.find_missing(vectors)  # ``fill_gaps`` completes its draws
    # Drop values that were proposed before their condition was known.
    vectors[proposed & np.isnan(activated)] = np.nan
    is_running = np.array([row.status == Status.RUNNING for row in trials], dtype=bool)
    missing = np.where(np.isnan(vectors), missing, proposed & is_running[:, None])
    return np.stack([vectors, missing], axis=1)


@np.errstate(over="ignore")  # of the number of combinations
def mark_spent(history: History, view: View, union: UnionSpace) -> History:
    """The history with values as missing where no other value of their range is left to try.

    A range of one value never has another; one that moves, if all were tried with the same values
    of other parameters. Any other position would repeat an evaluation.
    """
    kept = np.isin(view.facts("number"), history.number)
    sizes = np.stack([view.sizes(name)[kept] for name in union.column], axis=1)  # (n, d)
    spent = sizes == 1.0
    if union.moving:
        moving = np.array([name in union.moving for name in union.column])
        values = np.stack([view.values(name)[kept] for name in union.column], axis=1)
        ranges = union.vectors.keys(np.where(moving, sizes, history.vectors))
        tried = union.vectors.keys(np.where(moving, values, history.vectors))
        _, alike = np.unique(ranges, return_inverse=True)
        _, distinct = np.unique(tried, return_index=True)
        n_tried = np.bincount(alike[distinct], minlength=len(alike))[alike]
        spent |= moving & (n_tried >= np.nanprod(sizes[:, moving], axis=1))[:, None]
        # The first row that asked keeps its position: before it, the parameter counts as new.
        first = np.where(np.isnan(sizes), np.inf, history.number[:, None]).argmin(axis=0)
        spent[first[moving], moving] = False
    spent &= np.isin(history.status, (Status.COMPLETE, Status.PRUNED))[:, None]
    spent &= ~np.isnan(history.vectors)
    return replace(history, missing=history.missing | spent) if spent.any() else history
