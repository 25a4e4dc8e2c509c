"""The only reader of Optuna's trials, and of the studies, storages and files that hold them."""

from __future__ import annotations

import json
import logging
import math
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from numbers import Real
from pathlib import Path
from typing import Any

import optuna
from optuna.distributions import BaseDistribution
from optuna.exceptions import StorageInternalError
from optuna.storages import BaseStorage
from optuna.storages.journal import JournalFileBackend
from optuna.study import Study, StudyDirection
from optuna.trial import FrozenTrial, TrialState

from automl_plugins._arguments import check_kind, describe
from automl_plugins.addresses import (
    STORE,
    STUDIES,
    as_path,
    check_exists,
    hint_of_database,
    tables_of,
    without_password,
)
from automl_plugins.arrays import FloatArray
from automl_plugins.formats import one_line
from automl_plugins.logs import hidden
from automl_plugins.records.trial import (
    Columns,
    Status,
    Trial,
    as_number,
    as_seconds,
    sortable,
    unix_time,
)

from . import _private
from .space import are_equal

Cost = str | Callable[[FrozenTrial], float | None] | None

SECONDS = "seconds"
"""User attribute with the seconds of a trial, where they differ from its duration."""

_CHANGES, _WITHIN = 4, 10  # a range that has been edited changes less often

STATES = {
    Status.COMPLETE: TrialState.COMPLETE,
    Status.PRUNED: TrialState.PRUNED,
    Status.FAILED: TrialState.FAIL,
}
"""State of a finished trial; all others are running."""

_STATUS = {state: status for status, state in STATES.items()}


@dataclass(frozen=True)
class UnusableCost:
    """What is wrong with a cost that is no number of seconds."""

    message: str
    is_number: bool


@dataclass(frozen=True)
class StudyTrial(Trial):
    """A trial of a study, with Optuna's internal values of its parameters."""

    values: dict[str, float] = field(default_factory=dict)  # of the parameters that could vary
    constants: dict[str, float] = field(default_factory=dict)  # of those with one value only
    distributions: dict[str, BaseDistribution] = field(default_factory=dict, repr=False)
    positions: dict[str, float] = field(default_factory=dict, repr=False)  # see ``_union``
    completed: datetime | None = field(default=None, repr=False, compare=False)  # as stored
    unusable: UnusableCost | None = field(default=None, repr=False, compare=False)

    @property
    def place(self) -> tuple[bool, float, int]:
        """As in the base class, but by the stored time, not the Unix time.

        Optuna 4 stores local time without its zone. In another time zone one hour of it may not
        exist, and Unix times would order the trials differently.
        """
        running, _, number = super().place
        return running, 0.0 if running else _as_written(self.completed), number


def read_trial(trial: FrozenTrial, *, maximize: bool, cost: Cost = "duration") -> StudyTrial:
    """Read one trial.

    Its loss is the objective value, with the sign changed if the study maximises; of a pruned
    trial, the last one reported. ``cost`` defines its seconds:

    * ``"duration"`` or None: the user attribute ``SECONDS`` if that is a duration; else the time
      from start to end less that of the sampler, if a sampler of this package measured it. NaN
      for a trial that was added, not run, and for one that Optuna failed as stale.
    * the name of another user attribute, or a callable, which is called for finished trials only.
      The result must be a finite number above 0, in any unit, or None where it is unknown.
    """
    loss, sign = math.nan, -1.0 if maximize else 1.0
    if trial.state == TrialState.COMPLETE:
        loss = as_number(trial.value)
    elif trial.state == TrialState.PRUNED and trial.last_step is not None:
        loss = as_number(trial.intermediate_values[trial.last_step])
    # A running trial is read again for each proposal, and nobody asks for its curve.
    reports = trial.intermediate_values if trial.state.is_finished() else {}
    asked = trial.distributions
    internal = {n: float(d.to_internal_repr(trial.params[n])) for n, d in asked.items()}
    varied = {n: d for n, d in asked.items() if not d.single()}
    seconds = _seconds(trial) if cost is None or cost == "duration" else _cost(trial, cost)
    return StudyTrial(
        trial.params,
        _STATUS.get(trial.state, Status.RUNNING),
        sign * loss,
        math.nan if isinstance(seconds, UnusableCost) else seconds,
        curve={float(step): sign * v for step, v in sorted(reports.items())},
        number=trial.number,
        started=unix_time(trial.datetime_start, local=True),
        ended=unix_time(trial.datetime_complete, local=True),
        constraints=_private.constraints_of(trial),
        values={name: internal[name] for name in varied},
        constants={name: value for name, value in internal.items() if name not in varied},
        distributions=varied,
        positions=_private.read_positions(trial),
        completed=trial.datetime_complete,
        unusable=seconds if isinstance(seconds, UnusableCost) else None,
    )


def _seconds(trial: FrozenTrial) -> float:
    passed = math.nan
    stale = trial.state == TrialState.FAIL and _private.ended_elsewhere(trial)
    if trial.duration is not None and not stale:
        passed = trial.duration.total_seconds() - _private.read_overhead(trial)
    return as_seconds(trial.user_attrs.get(SECONDS), passed)


def _cost(trial: FrozenTrial, cost: Cost) -> float | UnusableCost:
    if callable(cost) and not trial.state.is_finished():
        return math.nan
    value = None
    try:
        value = cost(trial) if callable(cost) else trial.user_attrs.get(str(cost))
    except Exception as error:  # a function of the user's may raise anything
        gave = f"raised {error!r}"
    else:
        if value is None or 0.0 <= as_number(value) < math.inf:  # 0 counts as unknown
            return as_number(value)
        gave = f"gave {value!r}"
    return UnusableCost(
        f"cost={cost!r} {gave} for trial {trial.number}: it must be a finite number above 0, in"
        " seconds or another unit, or None where it is unknown.",
        is_number=isinstance(value, Real),
    )


def check_cost(cost: Cost) -> Cost:
    """Return ``cost``; raise a TypeError if seconds cannot be read with it."""
    if not (cost is None or isinstance(cost, str) or callable(cost)):
        raise TypeError(
            "cost must be None, 'duration', the name of a user attribute or a callable,"
            f" got {cost!r}."
        )
    return cost


class StudyColumns(Columns[StudyTrial]):
    """Trials of a study as columns.

    Attributes:
        distributions: The newest distribution of each parameter that varies.
        moving: Parameters whose range changed ``_CHANGES`` times within ``_WITHIN`` trials: it
            depends on other parameters, or the name has another range in each branch.
    """

    def __init__(self, trials: Iterable[StudyTrial] = ()) -> None:
        self.distributions: dict[str, BaseDistribution] = {}
        self.moving: frozenset[str] = frozenset()
        # By name, the number of trials that asked for it, and at which of them its range changed.
        self._changes: dict[str, tuple[int, tuple[int, ...]]] = {}
        super().__init__(trials)

    def _append(self, new: list[StudyTrial]) -> None:
        super()._append(new)
        # Copied first, for the shorter columns share them.
        self.distributions, self._changes = dict(self.distributions), dict(self._changes)
        for trial in new:
            for name, distribution in trial.distributions.items():
                n, changes = self._changes.get(name, (0, ()))
                if not are_equal(self.distributions.get(name, distribution), distribution):
                    changes = (*changes, n)[-_CHANGES:]
                    if len(changes) == _CHANGES and n - changes[0] < _WITHIN:
                        self.moving |= {name}
                self._changes[name] = n + 1, changes
            self.distributions |= trial.distributions

    def values(self, name: str) -> FloatArray:
        """Internal values of a parameter (n,), NaN where it was not asked for."""

        def read(trial: StudyTrial) -> float:
            return trial.values.get(name, trial.constants.get(name, math.nan))

        return self._array("values", name, read)


# --- studies and storages -------------------------------------------------------------------


def is_maximized(study: Study) -> bool:
    """Whether larger values are better; ValueError for a study of several objectives."""
    if len(study.directions) > 1:
        raise ValueError(
            f"Study {study.study_name!r} has {len(study.directions)} objectives; a search has one."
        )
    return study.direction == StudyDirection.MAXIMIZE


def check_study(function: str, study: Any) -> None:
    """Raise TypeError for anything but a study."""
    check_kind(
        function, study, Study, "a study, such as optuna.load_study(study_name=..., storage=...)"
    )


def finished_trials(study: Study) -> list[FrozenTrial]:
    """The finished trials of a study, in the order in which they ended."""
    done = [t for t in study.get_trials(deepcopy=False) if t.state.is_finished()]
    return sorted(done, key=lambda t: (_as_written(t.datetime_complete), t.number))


def _as_written(moment: datetime | None) -> float:
    """Sort key of a moment, the same in every time zone; unknown ones come first."""
    return sortable(unix_time(moment))


#: Studies, storages (or their addresses or journal files) for all studies in them.
StudySource = Study | BaseStorage | str


def studies_in(source: StudySource | Iterable[StudySource]) -> list[Study]:
    """The studies of a source, or of several, those of a storage by name.

    TypeError for anything else, ValueError for a storage that does not exist or cannot be read.
    """
    if isinstance(source, Study):
        return [source]
    if isinstance(source, BaseStorage | str):
        what = repr(without_password(source)) if isinstance(source, str) else "The storage"
        with reading(what):
            storage = open_storage(source) if isinstance(source, str) else source
            names = sorted(optuna.get_all_study_names(storage))
            return [optuna.load_study(study_name=name, storage=storage) for name in names]
    each = list(source) if isinstance(source, Iterable) else [source]
    for item in each:
        if not isinstance(item, StudySource):
            raise TypeError(
                "Expected optuna studies, a storage, its address or its journal file, or several"
                f" of them, got {describe(item)}."
            )
    return [study for item in each for study in studies_in(item)]


def one_study(source: StudySource) -> Study:
    """The only study of a source, which is a task; ValueError if it has none or several."""
    found = studies_in(source)
    if len(found) != 1:
        raise ValueError(
            f"There are {len(found)} studies, but a task is one study: load it with"
            " optuna.load_study(study_name=..., storage=...), or read all with"
            " meta_dataset_from_studies."
        )
    return found[0]


@contextmanager
def reading(what: str) -> Iterator[None]:
    """Raise ValueError if the block cannot read a storage: damaged, outdated, out of reach."""
    try:
        yield
    except (ImportError, OSError):
        raise
    except Exception as error:  # of Optuna, SQLAlchemy, a driver, or a journal of anything
        if isinstance(error, ValueError) and not isinstance(error, json.JSONDecodeError):
            raise
        # Optuna's message only says that a commit failed, and SQLAlchemy's repeats the statement;
        # the error of the driver says what is wrong.
        cause = error.__cause__ if isinstance(error, StorageInternalError) else error
        cause = getattr(cause, "orig", None) or cause
        raise ValueError(
            f"{what} cannot be read: {type(cause).__name__}: {one_line(str(cause))}"
        ) from error


def owns(source: str) -> bool:
    """Whether a text may be a storage: an address, or a journal file.

    An empty file is one only if it is called ``.log``.
    """
    if "://" in source:
        return True
    path = as_path(source)
    if not os.path.isfile(path):  # False for what is no path, too
        return False
    return source.endswith(".log") or (path.stat().st_size > 0 and _is_journal(path))


def open_storage(source: str) -> BaseStorage | str:
    """The storage at an address or in a journal file, as Optuna takes it.

    Optuna makes its tables in every database that it opens, so one without them is not opened:
    one without any table is a storage without studies. See ``tables_of`` for what is raised.
    """
    check_exists(source)
    if "://" not in source:
        path = as_path(source)
        if path.is_file() and _is_journal(path):
            return optuna.storages.JournalStorage(JournalFileBackend(str(path)))
        hint = hint_of_database(source) or (
            " Studies are read from such a file, or from a database by its address, as in"
            " 'sqlite:///studies.db'."
        )
        raise ValueError(f"{source!r} is not a journal file of Optuna.{hint}")
    tables, shown = sorted(tables_of(source)), repr(without_password(source))
    if not tables:
        return optuna.storages.InMemoryStorage()
    if STUDIES.issubset(tables):
        return source
    if STORE in tables:
        raise ValueError(
            f"{shown} is a store of runs (MetaStore), and holds no studies of Optuna:"
            " samplers take it as their memory, and `automl-plugins store` shows what is in it."
        )
    raise ValueError(
        f"{shown} holds no studies of Optuna, but the tables {', '.join(tables[:5])}"
        f"{', ...' if len(tables) > 5 else ''}: name the database with the studies."
    )


def _is_journal(path: Path) -> bool:
    with path.open("rb") as file:
        first = file.readline()
    try:
        return not first or "op_code" in json.loads(first)
    except (ValueError, TypeError):
        return False


# --- its log --------------------------------------------------------------------------------


def quiet(level: int = logging.WARNING) -> AbstractContextManager[None]:
    """Hide Optuna's log below a level, for studies that the user did not ask for."""
    return hidden("optuna", level)
