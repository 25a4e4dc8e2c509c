"""Studies as tasks of a memory and as searches to compare, and runs of anywhere as a study."""

from __future__ import annotations

import logging
import math
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from typing import Any, Unpack

import numpy as np
import optuna
from ConfigSpace import ConfigurationSpace
from optuna.distributions import BaseDistribution
from optuna.storages import BaseStorage
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState

from automl_plugins.meta.alignment import AlignOptions
from automl_plugins.meta.conversion import calendar, conform, dataset_of, space_of
from automl_plugins.meta.dataset import MetaDataset
from automl_plugins.meta.recorder import Recorder, SearchRecorder, WritableStore
from automl_plugins.records.search import Search
from automl_plugins.records.task_record import TaskRecord
from automl_plugins.records.trial import Status, Trial
from automl_plugins.spaces.conditions import is_active

from .space import distributions_of, drop_foreign_runs, snap, space_of_trials, value_in
from .trials import SECONDS, finished_trials, is_maximized, read_trial, studies_in

_STATE = {
    Status.COMPLETE: TrialState.COMPLETE,
    Status.PRUNED: TrialState.PRUNED,
    Status.FAILED: TrialState.FAIL,
}
_NO_TIME = datetime(2000, 1, 1)  # where trials begin whose time is not known
_GROWTH = 1.2  # of the number of trials, after which conditions are inferred anew
_RECENT = 500  # trials that they are inferred from

Studies = Study | BaseStorage | str | Iterable[Study] | Mapping[str, Study]


# --- searches -------------------------------------------------------------------------------


def curves(
    source: Study | BaseStorage | str,
    *,
    table: str | None = None,
    method: str | None = None,
    seed: int | None = None,
) -> list[Search]:
    """The searches that studies record.

    Args:
        source: A study; or a storage, its address or its journal file, for all studies in it.
        table: What was tuned. None reads the study's user attribute ``"table"``, else its name:
            ``"<table>/<method>"`` or ``"<table>/<method>/<seed>"``.
        method: What tuned it; None as above.
        seed: Number of the repetition; None as above, 0 where there is none.

    Returns:
        One search for each study. Losses are minimised: those of a maximising study change sign.
        Running and waiting trials are left out, which the search says.

    Raises:
        ValueError: For a study of several objectives, or one that does not say what was tuned.
    """
    return [_search(study, table, method, seed) for study in studies_in(source)]


def _search(study: Study, table: str | None, method: str | None, seed: int | None) -> Search:
    done = finished_trials(study)
    trials = _read_all(study, done)
    states = Counter(trial.state for trial in study.get_trials(deepcopy=False))
    return Search.of(
        *_labels(study, table, method, seed),
        trials,
        space=space_of_trials(done),
        left_out={s.name.lower(): states[s] for s in (TrialState.RUNNING, TrialState.WAITING)},
        where=f"Study {study.study_name!r}: ",
    )


def _labels(
    study: Study, table: str | None, method: str | None, seed: int | None
) -> tuple[str, str, int]:
    attributes: dict[str, Any] = study.user_attrs
    parts = study.study_name.split("/")
    named = dict(zip(("table", "method", "seed"), parts, strict=False)) if len(parts) > 1 else {}
    found = {
        key: given if given is not None else attributes.get(key, named.get(key))
        for key, given in (("table", table), ("method", method), ("seed", seed))
    }
    if absent := [key for key in ("table", "method") if found[key] is None]:
        raise ValueError(
            f"Study {study.study_name!r} does not say its {' and '.join(absent)}: name it"
            " '<table>/<method>/<seed>', set these user attributes, or pass them."
        )
    try:
        number = int(found["seed"] or 0)
    except ValueError:
        raise ValueError(
            f"Study {study.study_name!r}: the seed {found['seed']!r} is no whole number."
        ) from None
    return str(found["table"]), str(found["method"]), number


def _read_all(study: Study, trials: Sequence[FrozenTrial]) -> list[Trial]:
    """Trials with all that they reported, and with values as the space of the trials has them."""
    maximize = is_maximized(study)
    sign = -1.0 if maximize else 1.0
    return [
        replace(
            read_trial(trial, maximize=maximize),
            config={n: snap(trial.distributions[n], v) for n, v in trial.params.items()},
            curve={float(s): sign * v for s, v in sorted(trial.intermediate_values.items())},
        )
        for trial in trials
    ]


# --- tasks of a memory ----------------------------------------------------------------------


def read_task(
    source: Study | BaseStorage | str,
    *,
    name: str | None = None,
    space: ConfigurationSpace | Mapping[str, BaseDistribution] | None = None,
) -> TaskRecord:
    """The finished trials of a study.

    Losses of a maximising study change sign; an infinite one fails its trial. The seconds are the
    user attribute ``SECONDS`` where an objective, or ``write_history``, has set it; else the
    duration of a trial less the time of its sampler, where one of ours measured it.

    Args:
        source: A study; or a storage, its address or its journal file, with one study in it.
        name: Name of the task; None takes the study's user attribute ``"table"``, else its name.
        space: The search space; None, or distributions by name, which the trials know themselves,
            takes the union of all parameters seen, conditions inferred.

    Raises:
        ValueError: For several studies, or a study of several objectives.
    """
    found = studies_in(source)
    if len(found) != 1:
        raise ValueError(
            f"There are {len(found)} studies, a task is one of them: load it with"
            " optuna.load_study(study_name=..., storage=...), or read all with"
            " meta_dataset_from_studies."
        )
    return _read_study(found[0], name, space if isinstance(space, ConfigurationSpace) else None)


def meta_dataset_from_studies(
    studies: Studies,
    space: ConfigurationSpace | None = None,
    *,
    meta_features: Mapping[str, Mapping[str, float]] | None = None,
    tags: Mapping[str, Mapping[str, str]] | None = None,
    **options: Unpack[AlignOptions],
) -> MetaDataset:
    """The trials of studies as the memory that initial designs and meta-models read.

    Each study is a task, minimised or maximised; studies of one name are one task.

    Args:
        studies: A study, several, or several by name of the task; or a storage, its address or
            its journal file, for all studies in it. Tasks are called as in ``read_task``.
        space: The search space; None takes the union of those of the studies.
        meta_features: Properties of the data by name of the task.
        tags: What else is known, by name of the task.
        **options: ``out_of_range``, ``missing``, ``defaults``: see ``MetaDataset.from_records``.

    Raises:
        ValueError: For a study of several objectives, without any trial, or if no study shares a
            hyperparameter with the space.
    """
    named: Iterable[tuple[str | None, Study]]
    if isinstance(studies, Mapping):
        named = studies.items()
    else:
        named = [(None, study) for study in studies_in(studies)]
    return dataset_of(
        [_read_study(study, name) for name, study in named],
        space,
        meta_features=meta_features,
        tags=tags,
        **options,
    )


def _read_study(
    study: Study, name: str | None, space: ConfigurationSpace | None = None
) -> TaskRecord:
    done = finished_trials(study)
    return read_record(study, done, name, space=space_of_trials(done) if space is None else space)


def read_record(
    study: Study,
    trials: Sequence[FrozenTrial],
    name: str | None,
    *,
    space: ConfigurationSpace | None = None,
) -> TaskRecord:
    """Finished trials of a study as a task.

    Raises:
        ValueError: For a study of several objectives.
    """
    if name is None:
        name = str(study.user_attrs.get("table", study.study_name))
    return TaskRecord.of(name, _read_all(study, trials), space=space, framework="optuna")


# --- runs of anywhere as a study ------------------------------------------------------------


def write_history(
    record: TaskRecord,
    space: ConfigurationSpace | Mapping[str, BaseDistribution] | None = None,
    *,
    study: Study | None = None,
) -> Study:
    """Runs as the trials of a study.

    Conditional parameters are absent where they are inactive. What was evaluated at a lower budget
    is a PRUNED trial that reported its loss there, at the next lower whole step. Trials begin and
    end when their runs did, one after the other where that is not known, and have their seconds
    as the user attribute ``SECONDS``.

    Args:
        record: The runs.
        space: The search space, or the distributions that the objective will ask for, by name;
            None takes the recorded space. Steps of an evenly spaced ordinal are those of a number,
            any other ordinal is categorical; a constant has a distribution with one value.
        study: The study that the trials are added to; losses change sign if it maximises. None
            creates one in memory, named like the task.

    Raises:
        ValueError: If the space is not known, or none of the runs fits it.
    """
    if isinstance(space, Mapping) and not isinstance(space, ConfigurationSpace):
        distributions = dict(space)
        record = drop_foreign_runs(record, distributions)
    else:
        space = space_of(record, space)
        distributions = distributions_of(space)
        record = conform(record, space, partial=True)
    if study is None:
        with _quiet():
            study = optuna.create_study(study_name=record.name)
        study.set_user_attr("table", record.name)
    study.add_trials(_make_trials(record, distributions, -1.0 if is_maximized(study) else 1.0))
    return study


def _make_trials(
    record: TaskRecord, distributions: Mapping[str, BaseDistribution], sign: float
) -> Iterator[FrozenTrial]:
    moments = calendar(record, _NO_TIME, datetime.fromtimestamp)
    for i, (configuration, (began, ended)) in enumerate(
        zip(record.configurations, moments, strict=True)
    ):
        seconds = record.seconds[i]
        status, loss, budget = Status(record.status[i]), record.losses[i], record.budget[i]
        if status == Status.COMPLETE and not np.isnan(budget):
            status = Status.PRUNED
        value = None if np.isnan(loss) else float(sign * loss)
        step = 0 if np.isnan(budget) else math.floor(budget)
        trial = optuna.trial.create_trial(
            state=_STATE[status],
            value=value,
            params={n: value_in(distributions[n], v) for n, v in configuration.items()},
            distributions={n: distributions[n] for n in configuration},
            user_attrs=None if np.isnan(seconds) else {SECONDS: float(seconds)},
            intermediate_values={step: value}
            if status == Status.PRUNED and value is not None
            else None,
        )
        trial.datetime_start, trial.datetime_complete = began, ended
        yield trial


@contextmanager
def _quiet() -> Iterator[None]:
    """Without the log of a study that the user did not ask for."""
    logger = logging.getLogger("optuna")
    level = logger.level
    logger.setLevel(max(level, logging.WARNING))
    try:
        yield
    finally:
        logger.setLevel(level)


def is_space(thing: Any) -> bool:
    """Whether something is a search space of Optuna's: distributions by name."""
    return (
        isinstance(thing, Mapping)
        and len(thing) > 0
        and all(isinstance(value, BaseDistribution) for value in thing.values())
    )


# --- recording while a study continues ------------------------------------------------------


def record(
    store: WritableStore | str | os.PathLike[str],
    task: str | None = None,
    meta_features: Mapping[str, float] | None = None,
    tags: Mapping[str, str] | None = None,
) -> StudyRecorder:
    """A callback that writes finished trials to a store: complete, pruned and failed ones.

    A trial is known by the name of its study, its number and its beginning, so it is never there
    twice, however often it is recorded or imported (``add``). Works with ``n_jobs`` threads, with
    several processes and pickled. Optuna calls no callbacks for a trial whose exception is not
    caught (``catch=``): it ends ``optimize``, and ``add`` takes the trial over.

    Nothing that happens while trials are recorded stops the study: the first failure is logged as
    a warning, all are counted in ``n_lost``. What is wrong with the arguments is raised at once.

    Args:
        store: A ``MetaStore``, or its address or path.
        task: Name of the task; None takes the study's user attribute ``"table"``, else its name.
        meta_features: Properties of the data by name, such as ``meta_features(X, y)``.
        tags: What else is known of the task.

    Raises:
        StoreError, TypeError, ValueError: As ``Recorder``.

    Example::

        study.optimize(objective, n_trials=100, callbacks=[record("memory.db", task="iris")])
    """
    return StudyRecorder(Recorder(store, task=task, meta_features=meta_features, tags=tags))


class StudyRecorder(SearchRecorder):
    """A callback for ``study.optimize``, see ``record``.

    Args:
        recorder: Writes to the store.
    """

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self._spaces: dict[str, _KnownSpace] = {}  # by study: a cache

    def __call__(self, study: Study, trial: FrozenTrial) -> None:
        """Write a finished trial; one that is not finished is left alone."""
        if not trial.state.is_finished():
            return
        with self.recorder.survive():
            space = self._space_of(study, trial)
            runs = read_record(study, [trial], self.recorder.task, space=space)
            self.recorder.add(runs, search=study.study_name, keys=[_key(trial)])

    def add(self, source: Study | BaseStorage | str | Iterable[Study]) -> int:
        """Write all finished trials of studies that are not there yet; returns how many.

        Args:
            source: A study or several; a storage, its address or journal file, for all in it.

        Raises:
            StoreError: If the store cannot be written.
            ValueError: For a study of several objectives.
        """
        new = 0
        for study in studies_in(source):
            if done := finished_trials(study):
                runs = read_record(study, done, self.recorder.task, space=space_of_trials(done))
                keys = [_key(trial) for trial in done]
                new += self.recorder.add(runs, search=study.study_name, keys=keys)
        return new

    def _space_of(self, study: Study, trial: FrozenTrial) -> ConfigurationSpace | None:
        known = self._spaces.get(study.study_name)
        if known is None or not known.holds(trial):
            done = finished_trials(study)
            known = _KnownSpace(space_of_trials(done[-_RECENT:]), len(done), trial)
            self._spaces[study.study_name] = known
        return known.space


class _KnownSpace:
    """The search space of a study as it was inferred after some trials.

    Args:
        space: The space; None where ConfigSpace cannot express it.
        n_trials: How many had finished.
        trial: The last of them.
    """

    def __init__(
        self, space: ConfigurationSpace | None, n_trials: int, trial: FrozenTrial
    ) -> None:
        self.space = space
        self._until = math.ceil(n_trials * _GROWTH)
        self._seen: dict[str, BaseDistribution] = dict(trial.distributions)

    def holds(self, trial: FrozenTrial) -> bool:
        """Whether the space need not be inferred anew because of a trial."""
        if trial.number >= self._until:
            return False
        for name, distribution in trial.distributions.items():
            if self._seen.setdefault(name, distribution) != distribution:
                return False
            if self.space is not None and name not in self.space:
                return False
        if self.space is None or trial.state != TrialState.COMPLETE:
            return True
        active = {name for name in self.space if is_active(self.space, name, trial.params)}
        return active == trial.params.keys()


def _key(trial: FrozenTrial) -> str:
    """Names of studies are not unique: studies of one name differ by when their trials began."""
    began = trial.datetime_start
    return f"{trial.number}" if began is None else f"{trial.number}@{began.isoformat()}"
