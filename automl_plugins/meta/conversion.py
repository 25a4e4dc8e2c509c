"""Histories of one framework as histories of another.

In between they are a ``TaskRecord``: adapters read one from what their framework has
(``read_task``), and write one as what their framework continues from (``write_history``).
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Unpack

import numpy as np
from ConfigSpace import ConfigurationSpace
from ConfigSpace.hyperparameters import Constant

from automl_plugins._arguments import level_of_caller
from automl_plugins.formats import format_count
from automl_plugins.frameworks import load_adapter, reader_of
from automl_plugins.records.task_record import TaskRecord, UnnamedTask
from automl_plugins.records.trial import CLOCK_START, Status
from automl_plugins.spaces.conditions import active_names
from automl_plugins.spaces.values import ABSENT, reader, to_values, to_vector
from automl_plugins.spaces.vector_space import VectorSpace

from .alignment import AlignOptions, Missing, align
from .coverage import Coverage, MemoryMismatch
from .dataset import MetaDataset
from .readings import read_runs
from .tasks import MetaTask
from .units import in_other_units


def convert(
    history: Any, to: str, *, space: Any = None, name: str | None = None, **options: Any
) -> Any:
    """The history of a search as another framework would have recorded it.

    Configurations, losses, statuses, seconds and times are kept, except that a complete trial at
    a lower budget is a pruned one in Optuna. Losses are minimised, so those of a maximised study
    change sign. Values are matched by name. Values that do not fit the space of the target are
    clipped, imputed or left out, with a warning. Of learning curves only the last report of a
    pruned trial and the loss of a complete one are kept.

    Args:
        history: An Optuna study, Hyperopt trials, a SMAC facade, run history or its folder, or a
            ``TaskRecord``.
        to: ``"optuna"`` (a study in memory), ``"smac"`` (a ``RunHistory``) or ``"hyperopt"``
            (``Trials``).
        space: A ``ConfigurationSpace``, or a search space in the language of either framework:
            pyll expressions for Hyperopt, distributions by name for Optuna. None takes the space
            that the history contains; Hyperopt's trials have none and need theirs.
        name: Name of the task; None takes that of the history, else "converted".
        **options: Further options of the adapter's ``write_history``.

    Raises:
        ValueError: For an unknown framework, without a space where one is needed, or for a space
            that cannot be translated.
        TypeError: For a history, or a space, that no adapter knows.

    Example::

        study = convert(trials, "optuna", space=pyll_space)
        trials = convert(study, "hyperopt", space=pyll_space)
    """
    target = load_adapter(to)
    general = space is None or isinstance(space, ConfigurationSpace)
    source = None if isinstance(history, TaskRecord) else reader_of(history)
    understood = general or (source is not None and source.is_space(space))
    if not (understood or target.is_space(space)):
        raise TypeError(
            f"space={space!r} is not a search space of either framework: pass a"
            " ConfigurationSpace, pyll expressions (Hyperopt) or distributions by name (Optuna)."
        )
    if source is None:
        record = history if name is None else replace(history, name=name)
    else:
        known = space if understood else None
        try:
            record = source.read_task(history, name=name, space=known)
        except UnnamedTask:  # matters to a memory of tasks, and not here
            record = source.read_task(history, name="converted", space=known)
    # A ``space`` in the language of the source is in the record, which was read by it.
    known = space if general or target.is_space(space) else None
    return target.write_history(record, known, **options)


def require_space(record: TaskRecord, space: ConfigurationSpace | None) -> ConfigurationSpace:
    """``space``, else the recorded one; ValueError if neither is known."""
    found = record.space if space is None else space
    if found is None:
        raise ValueError(
            f"The search space of {record.name!r} is not known: pass space=, a ConfigurationSpace."
        )
    return found


def conform(record: TaskRecord, space: ConfigurationSpace, *, partial: bool = False) -> TaskRecord:
    """The runs of a record as configurations of a space, with exactly its active hyperparameters.

    Values that the space allows stay as they are; runs with others are aligned (``align``:
    clipped, imputed, dropped), which is said in a warning. A failed run may have stopped before
    it had all its values: nothing is imputed there. With ``partial`` it stays, with the values
    that it has; else it is left out.

    Raises:
        MemoryMismatch: If there are runs, but none has a hyperparameter of the space.
    """
    found: dict[int, dict[str, Any]] = {}
    converted = in_other_units(space, record.configurations)
    readers = {name: reader(space[name]) for name in space}
    for i, given in enumerate(record.configurations):
        values, complete = _legal_values(space, readers, given)
        complete |= partial and record.status[i] == Status.FAILED
        # A count of 1 is a legal fraction, too: it is converted, not kept.
        if complete and not converted[i]:
            found[i] = values
    vectors = VectorSpace(space)
    if space.forbidden_clauses:
        rows = np.array([to_vector(space, values) for values in found.values()])
        # From no rows NumPy makes an array of one dimension.
        legal = vectors.allowed(rows.reshape(len(found), vectors.d))
        found = {i: v for (i, v), fine in zip(found.items(), legal, strict=True) if fine}
    if odd := [i for i in range(len(record)) if i not in found]:
        found |= _align_odd(vectors, record, odd)
    return record.rows(found).described(space=space)


def _align_odd(
    space: VectorSpace, record: TaskRecord, rows: Sequence[int]
) -> dict[int, dict[str, Any]]:
    """Align the runs that are not configurations of the space, with a warning."""
    found: dict[int, dict[str, Any]] = {}
    coverages: list[Coverage] = []
    size = MetaTask(record.name, record.meta_features).size
    # Apart, since nothing is imputed in failed runs.
    for failed in (False, True):
        missing: Missing = "drop" if failed else "impute"
        part = [i for i in rows if (record.status[i] == Status.FAILED) == failed]
        if not part:
            continue
        given = [record.configurations[i] for i in part]
        reading = read_runs(space, given, size=size, records=[record])
        vectors, keep, coverage, _ = align(space, reading, record.name, missing=missing)
        if not coverage.shared and any(given):
            raise MemoryMismatch(
                f"The runs of {record.name!r} and the search space share no hyperparameter: the"
                f" runs have {', '.join(coverage.ignored)}; the space has"
                f" {', '.join(space.names)}."
            )
        plain = to_values(space.space, vectors[keep])
        found |= dict(zip(np.array(part)[keep].tolist(), plain, strict=True))
        coverages.append(coverage)
    warnings.warn(
        f"{format_count(len(rows), 'run')} of {record.name!r} had to be fitted to the search"
        f" space. {'; '.join(map(str, coverages))}.",
        stacklevel=level_of_caller(),
    )
    return found


def _legal_values(
    space: ConfigurationSpace,
    readers: Mapping[str, Callable[[Any], Any]],
    given: Mapping[str, Any],
) -> tuple[dict[str, Any], bool]:
    values: dict[str, Any] = {}
    complete = True
    # It looks at the values that are filled in meanwhile: parents come before their children.
    for name in active_names(space, values):
        # A constant need not be recorded to be known.
        constant = isinstance(space[name], Constant)
        recorded = given.get(name, space[name].default_value if constant else ABSENT)
        value = ABSENT if recorded is ABSENT else readers[name](recorded)
        if value is ABSENT:
            complete = False
        else:
            values[name] = value
    return values, complete


def calendar(
    record: TaskRecord, moment: Callable[[float], datetime]
) -> list[tuple[datetime, datetime]]:
    """Start and end of each run, for frameworks that store dates.

    Runs whose end is unknown, or cannot be a date (with a warning), come one after the other from
    ``CLOCK_START`` on. ``moment`` returns the date of a Unix time.
    """
    found: list[tuple[datetime, datetime]] = []
    clock, n_odd = CLOCK_START, 0
    for seconds, end in zip(record.seconds.tolist(), record.times.tolist(), strict=True):
        try:
            length = timedelta(seconds=0.0 if math.isnan(seconds) else seconds)
            ended = clock + length if math.isnan(end) else moment(end)
            began = ended - length
        except (OverflowError, ValueError, OSError):  # by platform
            n_odd += 1
            began = ended = clock
        clock = ended
        found.append((began, ended))
    if n_odd:
        warnings.warn(
            f"{format_count(n_odd, 'run')} of {record.name!r} took or ended at a time"
            " that no date can have: they count as ended with the run before them. Times are Unix"
            " times in seconds.",
            stacklevel=level_of_caller(),
        )
    return found


def dataset_of(
    records: Iterable[TaskRecord],
    space: ConfigurationSpace | None,
    *,
    meta_features: Mapping[str, Mapping[str, float]] | None = None,
    tags: Mapping[str, Mapping[str, str]] | None = None,
    **options: Unpack[AlignOptions],
) -> MetaDataset:
    """Records as one ``MetaDataset``, with meta-features and tags by name of the task."""
    records = list(records)
    meta_features, tags = meta_features or {}, tags or {}
    names = {record.name for record in records}
    for argument, given in (("meta_features", meta_features), ("tags", tags)):
        if foreign := sorted(set(given) - names):
            raise ValueError(
                f"{argument} names {', '.join(map(repr, foreign))}; the tasks are"
                f" {', '.join(map(repr, sorted(names)))}."
            )
    described = [
        record.described(meta_features=meta_features.get(record.name), tags=tags.get(record.name))
        for record in records
    ]
    return MetaDataset.from_records(described, space, **options)
