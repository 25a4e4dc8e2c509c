"""Studies as tasks of a memory, and runs of anywhere as a study."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from typing import Any

import numpy as np
import optuna
from ConfigSpace import ConfigurationSpace
from optuna.distributions import BaseDistribution
from optuna.storages import BaseStorage
from optuna.study import Study, StudyDirection
from optuna.trial import FrozenTrial, TrialState

from automl_plugins.meta.alignment import Missing, OutOfRange
from automl_plugins.meta.conversion import calendar, conform, dataset_of, space_of
from automl_plugins.meta.dataset import MetaDataset
from automl_plugins.records.search import Search
from automl_plugins.records.task_record import TaskRecord
from automl_plugins.records.trial import Status

from ._distributions import contained, distributions_of, typed
from .reading import open_storage, recorded_trial, space_of_trials
from .replaying import SECONDS

_STATE = {
    Status.COMPLETE: TrialState.COMPLETE,
    Status.PRUNED: TrialState.PRUNED,
    Status.FAILED: TrialState.FAIL,
}
_NO_TIME = datetime(2000, 1, 1)  # where trials begin whose time is not known ...
_FIRST = datetime(2010, 1, 1)  # ... and before which no time is taken for one that is

Studies = Study | BaseStorage | str | Iterable[Study] | Mapping[str, Study]


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
    return _read(found[0], name, space)


def meta_dataset_from_studies(
    studies: Studies,
    space: ConfigurationSpace | None = None,
    *,
    meta_features: Mapping[str, Mapping[str, float]] | None = None,
    tags: Mapping[str, Mapping[str, str]] | None = None,
    out_of_range: OutOfRange = "clip",
    missing: Missing = "impute",
    defaults: Mapping[str, Any] | None = None,
) -> MetaDataset:
    """The trials of studies as the memory that initial designs and meta-models read.

    Each study is a task, minimised or maximised; studies of one name are one task.

    Args:
        studies: A study, several, or several by name of the task; or a storage, its address or
            its journal file, for all studies in it. Tasks are called as in ``read_task``.
        space: The search space; None takes the union of those of the studies.
        meta_features: Properties of the data by name of the task.
        tags: What else is known, by name of the task.
        out_of_range: ``"clip"`` or ``"drop"`` numbers outside their range.
        missing: ``"impute"`` or ``"drop"`` runs without a value for an active hyperparameter.
        defaults: Values to impute by name; others have the default of the space.

    Raises:
        ValueError: For a study of several objectives, without any trial, or if no study shares a
            hyperparameter with the space.
    """
    if isinstance(studies, Mapping):
        records = [_read(study, name, None) for name, study in studies.items()]
    else:
        records = [_read(study, None, None) for study in studies_in(studies)]
    return dataset_of(
        records,
        space,
        meta_features=meta_features,
        tags=tags,
        out_of_range=out_of_range,
        missing=missing,
        defaults=defaults,
    )


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
        record = contained(record, distributions)
    else:
        space = space_of(record, space)
        distributions = distributions_of(space)
        record = conform(record, space, partial=True)
    if study is None:
        with _quiet():
            study = optuna.create_study(study_name=record.name)
        study.set_user_attr("table", record.name)
    study.add_trials(_trials(record, distributions, _sign(study)))
    return study


def is_space(thing: Any) -> bool:
    """Whether something is a search space of Optuna's: distributions by name."""
    return (
        isinstance(thing, Mapping)
        and len(thing) > 0
        and all(isinstance(value, BaseDistribution) for value in thing.values())
    )


def studies_in(source: Study | BaseStorage | str | Iterable[Study]) -> list[Study]:
    """The studies that are meant, those of a storage by name.

    Raises:
        TypeError: For anything else.
    """
    if isinstance(source, Study):
        return [source]
    if isinstance(source, BaseStorage | str):
        storage = open_storage(source) if isinstance(source, str) else source
        names = sorted(optuna.get_all_study_names(storage))
        return [optuna.load_study(study_name=name, storage=storage) for name in names]
    found = list(source)
    if wrong := [study for study in found if not isinstance(study, Study)]:
        raise TypeError(f"Expected optuna studies, got {wrong[0]!r}.")
    return found


def _read(
    study: Study,
    name: str | None,
    space: ConfigurationSpace | Mapping[str, BaseDistribution] | None,
) -> TaskRecord:
    done = finished(study)
    record = read_trials(study, done, name)
    known = space if isinstance(space, ConfigurationSpace) else space_of_trials(done)
    return replace(record, space=known)


def read_trials(study: Study, trials: Sequence[FrozenTrial], name: str | None) -> TaskRecord:
    """Finished trials of a study as a task; its space is left open.

    Raises:
        ValueError: For a study of several objectives.
    """
    if len(study.directions) > 1:
        raise ValueError(
            f"Study {study.study_name!r} has {len(study.directions)} objectives; a task has one."
        )
    sign = _sign(study)
    if name is None:
        name = str(study.user_attrs.get("table", study.study_name))
    search = Search(name, "optuna", 0, [recorded_trial(trial, sign, None) for trial in trials])
    ends = [trial.datetime_complete for trial in trials]
    times = np.array([math.nan if end is None else _unix(end) for end in ends], dtype=np.float64)
    record = TaskRecord.from_search(search, framework="optuna")
    seconds = record.seconds.copy()
    for i, trial in enumerate(trials):
        if _is_duration(told := trial.user_attrs.get(SECONDS)):
            seconds[i] = told
    return replace(record, seconds=seconds, times=times, seed=None)


def _is_duration(value: Any) -> bool:
    return isinstance(value, float | int) and not isinstance(value, bool) and 0 <= value < math.inf


def _sign(study: Study) -> float:
    return -1.0 if study.direction == StudyDirection.MAXIMIZE else 1.0


def _unix(moment: datetime) -> float:
    """Optuna's times are local, without saying so."""
    return math.nan if moment < _FIRST else moment.timestamp()


def finished(study: Study) -> list[FrozenTrial]:
    """The finished trials in the order in which ``curves`` has them."""
    trials = study.get_trials(deepcopy=False)
    done = [t for t in trials if t.state.is_finished() and t.datetime_complete is not None]
    return sorted(done, key=lambda t: (t.datetime_complete or datetime.max, t.number))


def _trials(
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
            params={n: typed(distributions[n], v) for n, v in configuration.items()},
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
