"""Trials as tasks of a memory, and runs of anywhere as trials."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
from ConfigSpace import ConfigurationSpace
from hyperopt import JOB_STATE_DONE, JOB_STATE_ERROR, STATUS_FAIL, STATUS_OK, Trials

from automl_plugins.meta.alignment import Missing, OutOfRange
from automl_plugins.meta.conversion import calendar, conform, dataset_of, space_of
from automl_plugins.meta.dataset import MetaDataset
from automl_plugins.records.search import Search
from automl_plugins.records.task_record import TaskRecord, UnnamedTask
from automl_plugins.records.trial import Status

from ._documents import NOTE, Document, new_document, values_of
from ._expression import SearchSpace, read_space
from ._private import all_documents
from .reading import recorded_trial
from .space import is_space

__all__ = ["is_space", "meta_dataset_from_trials", "read_task", "write_history"]

_NO_TIME = datetime(2000, 1, 1)  # where trials begin whose time is not known ...
_FIRST = datetime(2010, 1, 1)  # ... and before which no time is taken for one that is


def read_task(source: Trials, *, name: str | None = None, space: Any = None) -> TaskRecord:
    """The finished trials of a ``Trials`` object.

    Values are those of the labels, the name of the option for a choice; see ``translate``. Trials
    that raised, failed or have no finite loss are failed ones.

    Args:
        source: The trials.
        name: Name of the task; None takes the experiment key of the trials.
        space: The search space that ``fmin`` was given; or a ``ConfigurationSpace``, for trials
            that ``write_history`` or a replay has made of it.

    Raises:
        TypeError: For anything else than trials.
        ValueError: Without a name or a space, which trials do not know, or with the wrong one.
    """
    if not isinstance(source, Trials):
        raise TypeError(f"read_task() reads hyperopt.Trials, not {source!r}.")
    if name is None:
        keys = {document["exp_key"] for document in all_documents(source)}
        if len(keys) != 1 or None in keys:
            raise UnnamedTask("Trials do not say what was tuned: pass name=.")
        name = keys.pop()
    if space is None:
        raise ValueError(
            "Trials keep no more than the index of an option: pass space=, the search space that"
            " fmin was given, so that options become values."
        )
    return read_documents(finished(source), name=str(name), known=read_space(space))


def finished(source: Trials) -> list[Document]:
    """Documents of the trials that have ended, in the order in which ``curves`` has them."""
    done = [d for d in all_documents(source) if d["state"] in (JOB_STATE_DONE, JOB_STATE_ERROR)]
    return sorted(done, key=lambda d: (d["refresh_time"] or datetime.max, d["tid"]))


def read_documents(documents: Sequence[Document], *, name: str, known: SearchSpace) -> TaskRecord:
    """Finished trials as a task.

    Raises:
        ValueError: If they are not of the space.
    """
    search = Search(
        name, "hyperopt", 0, [recorded_trial(document, None) for document in documents]
    )
    record = TaskRecord.from_search(search, framework="hyperopt")
    losses, status, budget = record.losses.copy(), record.status.copy(), record.budget.copy()
    for i, document in enumerate(documents):
        if (note := document["result"].get(NOTE)) is not None:
            losses[i], status[i], budget[i] = note["loss"], note["status"], note["budget"]
    times = [_unix(document["refresh_time"]) for document in documents]
    return replace(
        record,
        configurations=[known.values(values_of(document)) for document in documents],
        losses=losses,
        status=status,
        budget=budget,
        times=np.array(times, dtype=np.float64),
        space=known.space,
        seed=None,
    )


def meta_dataset_from_trials(
    trials: Mapping[str, Trials],
    space: Any,
    *,
    meta_features: Mapping[str, Mapping[str, float]] | None = None,
    tags: Mapping[str, Mapping[str, str]] | None = None,
    out_of_range: OutOfRange = "clip",
    missing: Missing = "impute",
    defaults: Mapping[str, Any] | None = None,
) -> MetaDataset:
    """Trials as the memory that initial designs and meta-models read.

    Args:
        trials: The ``Trials`` of each task, by its name.
        space: The search space that ``fmin`` was given; or those of the tasks by name, whose
            union is taken.
        meta_features: Properties of the data by name of the task.
        tags: What else is known, by name of the task.
        out_of_range: ``"clip"`` or ``"drop"`` numbers outside their range.
        missing: ``"impute"`` or ``"drop"`` runs without a value for an active hyperparameter.
        defaults: Values to impute by name; others have the default of the space.

    Raises:
        TypeError: If ``trials`` does not name the tasks.
        ValueError: For trials that are not of their space.
    """
    if not isinstance(trials, Mapping):
        raise TypeError(
            "Trials do not say what was tuned: pass {name of the task: its trials}, not"
            f" {trials!r}."
        )
    of_task = isinstance(space, Mapping) and set(space) == set(trials) and len(trials) > 0
    of_task = of_task and all(map(_is_either, space.values()))
    if of_task:
        spaces = {name: read_space(space[name]) for name in trials}
    else:
        spaces = dict.fromkeys(trials, read_space(space))
    records = [read_task(own, name=name, space=spaces[name]) for name, own in trials.items()]
    return dataset_of(
        records,
        None if of_task or not spaces else next(iter(spaces.values())).space,
        meta_features=meta_features,
        tags=tags,
        out_of_range=out_of_range,
        missing=missing,
        defaults=defaults,
    )


def write_history(record: TaskRecord, space: Any = None, *, exp_key: str | None = None) -> Trials:
    """Runs as trials that suggest functions go on from, one document for each run.

    A document has every label of the search space; inactive ones are empty. Hyperopt has no
    pruned trials, and one loss for each: what was pruned or evaluated at a lower budget is a trial
    with status "fail", which TPE ranks last; its loss is kept for ``read_task``. Trials begin and
    end when their runs did, one after the other where that is not known.

    Args:
        record: The runs.
        space: What ``fmin`` will be given; or a ``ConfigurationSpace``, whose ``expression`` it
            will be given; None takes the recorded one.
        exp_key: Experiment key of the trials.

    Raises:
        ValueError: If the space is not known or cannot be translated, or no run fits it.
    """
    known = read_space(space_of(record, None) if space is None else space)
    record = conform(record, known.space)
    trials = Trials(exp_key=exp_key)
    if len(record):
        trials.insert_trial_docs(_documents(record, known, trials))
    trials.refresh()
    return trials


def _documents(record: TaskRecord, known: SearchSpace, trials: Trials) -> list[Document]:
    documents = []
    moments = calendar(record, _NO_TIME, _utc)
    for tid, (configuration, (began, ended)) in enumerate(
        zip(record.configurations, moments, strict=True)
    ):
        document = new_document(trials, known.domain, tid, known.labels(configuration))
        document["result"] = _result(record, tid)
        # Without a beginning there is no duration.
        document["book_time"] = None if math.isnan(record.seconds[tid]) else began
        document["refresh_time"] = ended
        document["state"] = JOB_STATE_DONE
        documents.append(document)
    return documents


def _result(record: TaskRecord, row: int) -> dict[str, Any]:
    loss, budget = float(record.losses[row]), float(record.budget[row])
    status = Status(record.status[row])
    result: dict[str, Any] = {"status": STATUS_FAIL}
    if status == Status.COMPLETE and math.isnan(budget):
        result = {"status": STATUS_OK, "loss": loss}
    elif status == Status.PRUNED or not math.isnan(budget):
        result[NOTE] = {"status": int(status), "loss": loss, "budget": budget}
    if not math.isnan(record.seconds[row]):
        result["seconds"] = float(record.seconds[row])
    return result


def _is_either(thing: Any) -> bool:
    return isinstance(thing, ConfigurationSpace) or is_space(thing)


def _unix(moment: datetime | None) -> float:
    """Hyperopt's times are UTC, without saying so."""
    if moment is None or moment < _FIRST:
        return math.nan
    return moment.replace(tzinfo=UTC).timestamp()


def _utc(unix: float) -> datetime:
    return datetime.fromtimestamp(unix, UTC).replace(tzinfo=None)
