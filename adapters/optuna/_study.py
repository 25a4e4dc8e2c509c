"""A study as a sampler reads it: a cache that can be thrown away and comes back the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from optuna.distributions import BaseDistribution
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState

from automl_plugins.proposers.model_based import refit_point
from automl_plugins.records.history import History
from automl_plugins.records.trial import Status
from automl_plugins.spaces.conditions import Rule

from . import _private
from ._foresight import Foresight
from .space import UnionSpace, infer_rules
from .trials import Cost, StudyColumns, StudyTrial, is_maximized, read_trial

FloatArray = npt.NDArray[np.float64]

_FINISHED = (TrialState.COMPLETE, TrialState.PRUNED, TrialState.FAIL)
_RULE_TRIALS = 1000  # newest complete trials from which conditions are inferred


@dataclass(frozen=True)
class View:
    """A study at one moment, as a sampler sees it.

    Attributes:
        columns: Finished trials.
        running: Other running trials, published proposals included.
        asked: Union of all names declared or asked for, the newest distribution of each.
        expected: Distributions of further names that earlier tasks have shown.
    """

    columns: StudyColumns
    running: StudyColumns
    asked: dict[str, BaseDistribution]
    expected: Mapping[str, BaseDistribution] = field(default_factory=dict)

    @property
    def distributions(self) -> dict[str, BaseDistribution]:
        """The distribution of each name."""
        return {**self.expected, **self.asked}

    def __len__(self) -> int:
        return len(self.columns) + len(self.running)

    def values(self, name: str) -> FloatArray:
        """Internal values of a name in all trials (n,), NaN where it was not asked for."""
        return np.concatenate([self.columns.values(name), self.running.values(name)])

    def facts(self, name: str) -> FloatArray:
        """A number that is an attribute of each trial (n,)."""
        return np.concatenate([self.columns.facts(name), self.running.facts(name)])

    def constraints(self) -> FloatArray:
        """Constraint values of all trials (n, c), names sorted."""
        names = sorted(self.columns.constraint_names)
        parts = self.columns, self.running
        values = [np.concatenate([part.constraint(name) for part in parts]) for name in names]
        return np.array(values).reshape(len(names), len(self)).T


@dataclass(frozen=True)
class Reading:
    """How far the trials of a study have been read.

    Attributes:
        columns: The finished ones.
        n_trials: Length of the list that was read.
        last: Number of the last trial in it.
        still_open: Places of the trials that had not finished.
        has_cost: Whether a finished trial has the user attribute that ``cost`` names.
    """

    columns: StudyColumns = field(default_factory=StudyColumns)
    n_trials: int = 0
    last: int = -1
    still_open: tuple[int, ...] = ()
    has_cost: bool = False

    def is_continued_by(self, trials: list[FrozenTrial]) -> bool:
        """Whether ``trials`` begins with what was read."""
        n = self.n_trials
        return len(trials) >= n and (n == 0 or trials[n - 1].number == self.last)


class StudyReader:
    """Reads one study (or bracket): its trials each once, its conditions, its search space.

    Args:
        study: The study, as shown to the sampler.
        cost: How seconds are read from a trial.
        declared: Distributions known up front.
        ordinal: Ordered choices of categorical parameters.
        foresight: What earlier tasks tell of the search space.
    """

    def __init__(
        self,
        study: Study,
        cost: Cost,
        declared: Mapping[str, BaseDistribution],
        ordinal: Mapping[str, Sequence[Any]],
        foresight: Foresight | None = None,
    ) -> None:
        self._storage = _private.storage_of(study)  # kept alive: its identity is our key
        self._maximize = is_maximized(study)
        self._cost = cost
        self._declared = dict(declared)
        self._ordinal = ordinal
        self._foresight = foresight
        self._reading = Reading()
        self._conditions: tuple[int, list[Rule], set[str]] = (-1, [], set())
        self._space: tuple[Any, UnionSpace] | None = None

    def view(self, study: Study, trial: FrozenTrial) -> View:
        """Read what is new.

        Raises:
            ValueError: If the cost of a trial is not a number of seconds, or ``cost`` names a
                user attribute that no complete trial has.
        """
        reading = self._reading  # read once: threads share the sampler
        trials = study.get_trials(deepcopy=False)
        if not reading.is_continued_by(trials):  # the storage lost or reordered trials
            reading = Reading()
        columns = reading.columns
        finished: list[FrozenTrial] = []
        running: list[FrozenTrial] = []
        still_open: list[int] = []
        # Trials keep their places, so only the new ones and those still open are looked at.
        for position in (*reading.still_open, *range(reading.n_trials, len(trials))):
            other = trials[position]
            if other.state in _FINISHED:
                if other.number not in columns.numbers:
                    finished.append(other)
                continue
            still_open.append(position)
            if other.state == TrialState.RUNNING and other.number != trial.number:
                running.append(other)
        has_cost = reading.has_cost or any(self._cost in t.user_attrs for t in finished)
        if finished:
            columns = columns.extended([self._read(t) for t in finished])
            self._check_cost(columns, has_cost)
        last = trials[-1].number if trials else -1
        self._reading = Reading(columns, len(trials), last, tuple(still_open), has_cost)
        return View(
            columns,
            StudyColumns(_published(self._read(other), other) for other in running),
            self._declared | columns.distributions,
            {} if self._foresight is None else self._foresight.distributions,
        )

    def _read(self, trial: FrozenTrial) -> StudyTrial:
        return read_trial(trial, maximize=self._maximize, cost=self._cost)

    def _check_cost(self, columns: StudyColumns, has_cost: bool) -> None:
        if has_cost or not isinstance(self._cost, str) or self._cost == "duration":
            return
        if (columns.facts("status") == Status.COMPLETE).any():
            raise ValueError(
                f"cost={self._cost!r}: no complete trial has a user attribute of that name. Write"
                f" it in the objective, trial.set_user_attr({self._cost!r}, seconds), or use"
                " cost='duration'."
            )

    def space(self, view: View, asked: Mapping[str, BaseDistribution]) -> UnionSpace:
        """The union space, with ``asked`` as the newest distributions.

        The same object is returned as long as nothing has changed.
        """
        rules, gone = self._rules(view)
        known = view.distributions | dict(asked)
        distributions = {n: d for n, d in known.items() if n not in gone or n in asked}
        key = (distributions, rules)
        last = self._space  # read once: threads share the memory
        if last is None or last[0] != key:
            self._space = last = (key, UnionSpace(distributions, rules, self._ordinal))
        return last[1]

    def _rules(self, view: View) -> tuple[list[Rule], set[str]]:
        """The conditions, and the expected names that the trials do not confirm."""
        n = refit_point(len(view.columns))
        if self._conditions[0] != n:
            rows = view.columns.trials[:n]
            complete = [i for i, row in enumerate(rows) if row.status == Status.COMPLETE]
            recent = complete[-_RULE_TRIALS:]
            own = view.columns.distributions
            names = own if self._foresight is None else view.distributions
            values = {name: view.columns.values(name)[recent] for name in names}
            if self._foresight is None:
                self._conditions = (n, infer_rules(values, own), set())
            else:
                rules = self._foresight.rules(values, view.distributions)
                gone = self._foresight.refuted(values, rules, view.asked)
                self._conditions = (n, rules, gone)
        return self._conditions[1:]

    def history(self, view: View, union: UnionSpace) -> History:
        """The core's history: finished rows, then the running ones."""
        space = union.vectors
        vectors = np.empty((len(view), space.d))
        proposed = np.zeros(vectors.shape, dtype=bool)
        for name, column in union.column.items():
            vectors[:, column] = union.encode(name, view.values(name))
            # Running trials know names that they have not asked for, and perhaps never will.
            asked = [name in row.distributions for row in view.running.trials]
            proposed[len(view.columns) :, column] = ~np.array(asked, dtype=bool)
        if view.running:
            # What was proposed before its condition was known will not be asked for.
            running = slice(len(view.columns), None)
            vectors[running] = space.activate(vectors[running])
        return History.of_trials(
            view.columns,
            view.running,
            vectors=vectors,
            missing=np.where(
                np.isnan(vectors),
                ~np.isnan(space.activate(np.nan_to_num(vectors))),
                proposed,
            ),
        )


def _published(row: StudyTrial, trial: FrozenTrial) -> StudyTrial:
    """A running trial's row with the values it was proposed but has not asked for yet."""
    row.values.update(_private.read_proposal(trial) | row.values)
    return row
