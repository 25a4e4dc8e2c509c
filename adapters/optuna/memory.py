"""Studies as tasks of a memory and as searches to compare, and runs of any origin as a study."""

from __future__ import annotations

import math
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Unpack

import numpy as np
import optuna
from ConfigSpace import ConfigurationSpace
from optuna.distributions import BaseDistribution
from optuna.storages import BaseStorage
from optuna.study import Study
from optuna.trial import FrozenTrial

from automl_plugins._arguments import level_of_caller
from automl_plugins.formats import format_count
from automl_plugins.meta.alignment import AlignOptions
from automl_plugins.meta.conversion import calendar, conform, dataset_of, require_space
from automl_plugins.meta.dataset import MetaDataset
from automl_plugins.records.search import Search
from automl_plugins.records.task_record import TaskRecord
from automl_plugins.records.trial import Status
from automl_plugins.spaces.values import ABSENT

from .space import (
    Distributions,
    check_kinds,
    distributions_in,
    distributions_of,
    space_of_trials,
    value_in,
)
from .studies import (
    StudySource,
    check_study,
    finished_trials,
    is_maximized,
    one_study,
    quiet,
    reading,
    studies_in,
)
from .trials import SECONDS, STATES, StudyColumns, StudyTrial, read_trial

Studies = StudySource | Iterable[StudySource] | Mapping[str, Study]


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
        seed: Number of the repetition; None as above, 0 if there is none.

    Returns:
        One search for each study. Losses are minimised: those of a maximising study change sign.
        Running and waiting trials are left out, and counted in ``left_out``.

    Raises:
        ValueError: For a study of several objectives, one without a table or method, or a storage
            that cannot be read.
    """
    searches = []
    for study in studies_in(source):
        with reading(f"Study {study.study_name!r}"):
            done = finished_trials(study)
            everything = study.get_trials(deepcopy=False)
        states = Counter(trial.state.name.lower() for trial in everything)
        read = _read_all(study, done)
        found = Search.of(
            *_labels(study, table, method, seed),
            read,
            space=space_of_trials(done, StudyColumns(read).moving),
            left_out={state: states[state] for state in ("running", "waiting")},
            where=f"Study {study.study_name!r}: ",
            maximized=is_maximized(study),
        )
        searches.append(found)
    return searches


def _labels(
    study: Study, table: str | None, method: str | None, seed: int | None
) -> tuple[str, str, int]:
    given = {"table": table, "method": method, "seed": seed}
    given = {key: value for key, value in given.items() if value is not None}
    parts = study.study_name.split("/")
    if len(parts) > 3 and not {"table", "method"} <= study.user_attrs.keys() | given.keys():
        raise ValueError(
            f"Study {study.study_name!r}: a name has at most three parts,"
            " '<table>/<method>/<seed>'. Set the user attributes table, method and seed, or pass"
            " them."
        )
    named = dict(zip(("table", "method", "seed"), parts, strict=False)) if len(parts) > 1 else {}
    # Arguments take precedence over attributes, and attributes over the name.
    found = {"table": None, "method": None, "seed": 0} | named | study.user_attrs | given
    if absent := [key for key in ("table", "method") if found[key] is None]:
        raise ValueError(
            f"Study {study.study_name!r} has no {' and '.join(absent)}: name it"
            " '<table>/<method>/<seed>', set these user attributes (optuna study set-user-attr),"
            " or pass them in Python."
        )
    try:
        number = found["seed"] or 0
        if isinstance(number, float) and not number.is_integer():  # ``int`` would cut it off
            raise ValueError
        return str(found["table"]), str(found["method"]), int(number)
    except (TypeError, ValueError):
        raise ValueError(
            f"Study {study.study_name!r}: the seed {found['seed']!r} is not a whole number."
        ) from None


def _read_all(study: Study, trials: Sequence[FrozenTrial]) -> list[StudyTrial]:
    maximize = is_maximized(study)
    return [read_trial(trial, maximize=maximize) for trial in trials]


# --- tasks of a memory ----------------------------------------------------------------------


def read_task(
    source: Study | BaseStorage | str,
    *,
    name: str | None = None,
    space: ConfigurationSpace | Mapping[str, BaseDistribution] | None = None,
) -> TaskRecord:
    """The only study of a source as a task, see ``read_study``."""
    # Distributions by name say nothing new: the trials have their own.
    own = space if isinstance(space, ConfigurationSpace) else None
    return read_study(one_study(source), name, own)


def meta_dataset_from_studies(
    studies: Studies,
    space: ConfigurationSpace | None = None,
    *,
    meta_features: Mapping[str, Mapping[str, float]] | None = None,
    tags: Mapping[str, Mapping[str, str]] | None = None,
    **options: Unpack[AlignOptions],
) -> MetaDataset:
    """The trials of studies as the memory that initial designs and meta-models read.

    Each study is a task, minimised or maximised; studies with the same name are one task.

    Args:
        studies: A study, several, or several by name of the task; or a storage, its address or
            its journal file, for all studies in it. Tasks are named as in ``read_task``.
        space: The search space; None takes the union of the studies' spaces.
        meta_features: Properties of the data by name of the task.
        tags: Further facts by name of the task.
        **options: ``out_of_range``, ``missing``: see ``MetaDataset.from_records``.

    Raises:
        ValueError: For a study of several objectives, without any trial, or if no study shares a
            hyperparameter with the space.
    """
    if isinstance(studies, Mapping):
        for study in studies.values():
            check_study("A memory by name", study)
        records = [read_study(study, str(name)) for name, study in studies.items()]
    else:
        records = [read_study(study) for study in studies_in(studies)]
    return dataset_of(records, space, meta_features=meta_features, tags=tags, **options)


def task_name(study: Study) -> str:
    """Default name of a study's task."""
    return str(study.user_attrs.get("table", study.study_name))


def read_study(
    study: Study,
    name: str | None = None,
    space: ConfigurationSpace | None = None,
    *,
    trials: Sequence[FrozenTrial] | None = None,
) -> TaskRecord:
    """A study as a task; by default all finished trials, in the space inferred from them."""
    trials = finished_trials(study) if trials is None else trials
    read = _read_all(study, trials)
    space = space_of_trials(trials, StudyColumns(read).moving) if space is None else space
    name = task_name(study) if name is None else name
    return TaskRecord.of(name, read, space=space, framework="optuna")


# --- runs of any origin as a study ----------------------------------------------------------


def write_history(
    record: TaskRecord,
    space: ConfigurationSpace | Mapping[str, BaseDistribution] | None = None,
    *,
    study: Study | None = None,
) -> Study:
    """Runs as the trials of a study.

    Inactive parameters are absent. A run at a lower budget is a PRUNED trial that reported its
    loss at this budget, rounded down to a whole step. Trials begin and end when their runs did,
    or one after the other if that is unknown. Their user attribute ``SECONDS`` has the seconds.

    Args:
        record: The runs.
        space: The search space, or the distributions that the objective will ask for, by name;
            None takes the recorded space. An evenly spaced ordinal becomes a number with steps,
            any other ordinal categorical, a constant a distribution with one value.
        study: The study that the trials are added to; losses change sign if it maximises. None
            creates one in memory, named like the task.

    Raises:
        ValueError: If the space is not known, none of the runs fits it, or a parameter is of
            another kind in the study, to which nothing is added then.
    """
    if isinstance(space, Mapping) and not isinstance(space, ConfigurationSpace):
        distributions = dict(space)
        record = _drop_foreign_runs(record, distributions)
    else:
        space = require_space(record, space)
        distributions = distributions_of(space)
        record = conform(record, space, partial=True)
    if study is None:
        with quiet():
            study = optuna.create_study(study_name=record.name)
        study.set_user_attr("table", record.name)
    made = list(_make_trials(record, distributions, -1.0 if is_maximized(study) else 1.0))
    # Optuna checks kinds only in databases, and there after earlier trials have been added.
    check_kinds(study, distributions_in(made))
    study.add_trials(made)
    return study


def _make_trials(
    record: TaskRecord, distributions: Distributions, sign: float
) -> Iterator[FrozenTrial]:
    # Local time without a zone, as Optuna stores it.
    moments = calendar(record, datetime.fromtimestamp)
    for i, (configuration, (began, ended)) in enumerate(
        zip(record.configurations, moments, strict=True)
    ):
        seconds = record.seconds[i]
        status, loss, budget = Status(record.status[i]), record.losses[i], record.budget[i]
        if status == Status.COMPLETE and not np.isnan(budget):
            status = Status.PRUNED
        value = None if np.isnan(loss) else float(sign * loss)
        # Optuna's steps are whole numbers.
        step = 0 if np.isnan(budget) else math.floor(budget)
        pruned = status == Status.PRUNED and value is not None
        reported: Any = {step: value} if pruned else None
        trial = optuna.trial.create_trial(
            state=STATES[status],
            value=value,
            params={n: value_in(distributions[n], v) for n, v in configuration.items()},
            distributions={n: distributions[n] for n in configuration},
            user_attrs=None if np.isnan(seconds) else {SECONDS: float(seconds)},
            intermediate_values=reported,
        )
        # ``create_trial`` has set the present time.
        trial.datetime_start, trial.datetime_complete = began, ended
        yield trial


def _drop_foreign_runs(record: TaskRecord, distributions: Distributions) -> TaskRecord:
    """The runs that lie in the distributions, without parameters that have no distribution."""
    names = {name for values in record.configurations for name in values}
    if names and names.isdisjoint(distributions):
        raise ValueError(
            f"The runs of {record.name!r} and the distributions share no parameter: the runs have"
            f" {', '.join(sorted(names))}; the distributions are of {', '.join(distributions)}."
        )
    known = [
        {n: value_in(distributions[n], v) for n, v in given.items() if n in distributions}
        for given in record.configurations
    ]
    kept = {
        i: values
        for i, values in enumerate(known)
        if all(v is not ABSENT for v in values.values())
    }
    if len(record) and not kept:
        raise ValueError(
            f"None of the {len(record)} runs of {record.name!r} lies in the distributions:"
            f" {distributions}. Give wider ones, or all choices."
        )
    if left := len(record) - len(kept):
        warnings.warn(
            f"{format_count(left, 'run')} of {record.name!r} left out: a value is not in its"
            " distribution.",
            stacklevel=level_of_caller(),
        )
    return record.rows(kept)
