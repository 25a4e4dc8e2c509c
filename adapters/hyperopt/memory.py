"""Trials as searches and as tasks of a memory, also recorded; runs of any origin as trials."""

from __future__ import annotations

import math
import os
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Unpack

import numpy as np
from hyperopt import (
    JOB_STATE_DONE,
    JOB_STATE_ERROR,
    JOB_STATE_NEW,
    JOB_STATE_RUNNING,
    STATUS_FAIL,
    STATUS_OK,
    Trials,
    pyll,
)
from hyperopt.base import JOB_STATE_CANCEL

from automl_plugins._arguments import check_kind, describe
from automl_plugins.meta.alignment import AlignOptions
from automl_plugins.meta.conversion import calendar, conform, dataset_of, require_space
from automl_plugins.meta.dataset import MetaDataset
from automl_plugins.meta.recorder import (
    Recorder,
    SearchRecorder,
    WritableStore,
    run_key,
    search_name,
)
from automl_plugins.newest import Newest
from automl_plugins.records.search import Search
from automl_plugins.records.task_record import TaskRecord, UnnamedTask
from automl_plugins.records.trial import Status, as_seconds, note_outcome

from ._private import all_documents
from ._pyll import labels
from .space import SearchSpace, is_space, read_space
from .trials import (
    NOTE,
    Document,
    check_trials,
    finished_documents,
    new_document,
    read_trial,
    values_of,
)

_LEFT_OUT = {"new": JOB_STATE_NEW, "running": JOB_STATE_RUNNING, "cancelled": JOB_STATE_CANCEL}
_AS_MEMORY = "or to a design or sampler memory=meta_dataset_from_trials({name: trials}, space)"


# --- searches -------------------------------------------------------------------------------


def curves(
    source: Trials,
    *,
    table: str | None = None,
    method: str | None = None,
    seed: int | None = None,
) -> list[Search]:
    """The search that a ``Trials`` object records.

    Configurations are values by label, for ``hp.choice`` and ``hp.pchoice`` the index of the
    option. The search space is unknown.

    Args:
        source: The trials of one run of ``fmin``.
        table: What was tuned.
        method: What tuned it.
        seed: Number of the repetition; None is 0.

    Returns:
        One search. Trials that raised, failed or have no finite loss are failed ones; unfinished
        trials are left out, and counted in ``left_out``.

    Raises:
        TypeError: For anything but trials.
        ValueError: Without ``table`` or ``method``, which trials do not store.
    """
    pickles = "Stored trials are pickles, which run any code: load those you trust yourself"
    check_kind("curves", source, Trials, f"hyperopt.Trials. {pickles}")
    if table is None or method is None:
        raise ValueError(
            "Trials do not store what was tuned and what tuned it: pass table= and method=."
        )
    states = Counter(document["state"] for document in all_documents(source))
    left_out = {word: states[state] for word, state in _LEFT_OUT.items()}
    trials = map(read_trial, finished_documents(source))
    return [Search.of(table, method, seed or 0, trials, left_out=left_out)]


# --- tasks of a memory ----------------------------------------------------------------------


def read_task(source: Trials, *, name: str | None = None, space: Any = None) -> TaskRecord:
    """The finished trials of a ``Trials`` object.

    Configurations are values by label, for a choice the name of the option; see ``translate``.
    Trials that raised, failed or have no finite loss are failed ones.

    Args:
        source: The trials.
        name: Name of the task; None takes the experiment key of the trials.
        space: The search space that ``fmin`` was given; or a ``ConfigurationSpace``, for trials
            in it from ``write_history`` or a replay.

    Raises:
        TypeError: For anything but trials.
        ValueError: Without a name or a space, which trials do not store, or with another space.
    """
    check_trials("read_task", source)
    if name is None:
        keys = {document["exp_key"] for document in all_documents(source)}
        if len(keys) != 1 or None in keys:
            raise UnnamedTask(f"Trials do not store what was tuned: pass name=, {_AS_MEMORY}.")
        name = keys.pop()
    if space is None:
        raise ValueError(
            "Trials store only the index of an option: pass space=, the search space that fmin was"
            f" given (pyll expressions), {_AS_MEMORY}."
        )
    return read_documents(finished_documents(source), str(name), read_space(space))


def read_documents(documents: Sequence[Document], name: str, known: SearchSpace) -> TaskRecord:
    """Finished trials as a task; ValueError if they are not of the space."""
    trials = [replace(read_trial(d), config=known.values(values_of(d))) for d in documents]
    return TaskRecord.of(name, trials, space=known.space, framework="hyperopt")


def meta_dataset_from_trials(
    trials: Mapping[str, Trials],
    space: Any,
    *,
    meta_features: Mapping[str, Mapping[str, float]] | None = None,
    tags: Mapping[str, Mapping[str, str]] | None = None,
    **options: Unpack[AlignOptions],
) -> MetaDataset:
    """Trials as the memory that initial designs and meta-models read.

    Args:
        trials: The ``Trials`` of each task, by its name.
        space: The search space that ``fmin`` was given; or the spaces of the tasks by name (more
            names are legal), whose union is taken.
        meta_features: Properties of the data by name of the task.
        tags: Further facts by name of the task.
        **options: ``out_of_range``, ``missing``: see ``MetaDataset.from_records``.

    Raises:
        TypeError: If ``trials`` does not name the tasks.
        ValueError: For trials that are not of their space.
    """
    if not isinstance(trials, Mapping):
        raise TypeError(
            "Trials do not store what was tuned: pass {name of the task: its trials}, not"
            f" {describe(trials)}."
        )
    for own in trials.values():
        check_trials("meta_dataset_from_trials", own)
    spaces, union = _spaces_by_name(trials, space), None
    if spaces is None:
        known = read_space(space)
        spaces, union = dict.fromkeys(trials, known), known.space
    records = [read_task(own, name=name, space=spaces[name]) for name, own in trials.items()]
    return dataset_of(records, union, meta_features=meta_features, tags=tags, **options)


def _spaces_by_name(trials: Mapping[str, Trials], space: Any) -> dict[str, SearchSpace] | None:
    """The space of each task, if ``space`` has spaces by name of the task; None if it is one."""
    if not isinstance(space, Mapping) or not set(trials) <= set(space):
        return None
    spaces = {name: read_space(space[name]) for name in trials}
    drawn = [_labels(own) for own in trials.values()]
    if all(own <= set(known.space) for own, known in zip(drawn, spaces.values(), strict=True)):
        return spaces
    # If it is one space whose parts have names of tasks, all trials have the labels of all parts.
    parts = [read_space(part).space for part in space.values() if is_space(part)]
    return None if all(own == set[str]().union(*parts) for own in drawn) else spaces


def _labels(trials: Trials) -> set[str]:
    return {label for document in all_documents(trials) for label in document["misc"]["vals"]}


# --- runs of any origin as trials -----------------------------------------------------------


def write_history(record: TaskRecord, space: Any = None, *, exp_key: str | None = None) -> Trials:
    """Runs as trials that suggest functions continue from, one document for each run.

    A document has every label of the search space; inactive ones are empty. Hyperopt has neither
    pruned trials nor budgets: a run that was pruned or at a lower budget is a trial with status
    "fail", which TPE ranks last; its loss is kept for ``read_task``. Trials begin and end when
    their runs did, or one after the other if that is unknown.

    Args:
        record: The runs.
        space: The space that ``fmin`` will be given; or a ``ConfigurationSpace`` if ``fmin`` will
            be given its ``expression``; None takes the recorded one.
        exp_key: Experiment key of the trials.

    Raises:
        ValueError: If the space is not known or cannot be translated, or no run fits it.
    """
    known = read_space(require_space(record, space))
    record = conform(record, known.space)
    trials = Trials(exp_key=exp_key)
    trials.insert_trial_docs(_documents(record, known, trials))
    trials.refresh()
    return trials


def _documents(record: TaskRecord, known: SearchSpace, trials: Trials) -> list[Document]:
    documents = []
    moments = calendar(record, lambda t: datetime.fromtimestamp(t, UTC).replace(tzinfo=None))
    for tid, configuration in enumerate(record.configurations):
        loss, budget, seconds = (
            float(column[tid]) for column in (record.losses, record.budget, record.seconds)
        )
        status = Status(record.status[tid])
        result: dict[str, Any] = {"status": STATUS_FAIL}
        if note := note_outcome(status, loss, budget):
            result[NOTE] = note
        elif status == Status.COMPLETE:
            result = {"status": STATUS_OK, "loss": loss}
        document = new_document(trials, known.domain, tid, known.labels(configuration))
        began, document["refresh_time"] = moments[tid]
        # Without a start there is no duration.
        document["book_time"] = None if math.isnan(seconds) else began
        document["result"] = result if math.isnan(seconds) else result | {"seconds": seconds}
        document["state"] = JOB_STATE_DONE
        documents.append(document)
    return documents


# --- trials written to a store, while ``fmin`` continues or afterwards ------------------------


def record(
    objective: Callable[..., Any],
    store: WritableStore | str | os.PathLike[str],
    task: str,
    space: Any = None,
    meta_features: Mapping[str, float] | None = None,
    tags: Mapping[str, str] | None = None,
) -> RecordedObjective:
    """An objective for ``fmin`` that writes each trial to a store.

    Complete and failed trials are recorded. A trial that raises is recorded as failed before the
    exception is passed on. A trial is identified by its search space, its experiment key, its
    number and its start, so it is stored once, however often it is recorded or imported (``add``)
    with that space.

    A failure to record does not stop ``fmin``: the first is logged as a warning, all are counted
    in ``n_lost``. Wrong arguments raise at once.

    Only an objective that is called in the process of ``fmin`` gets the labels of its trial:
    ``SparkTrials`` and the ``executor=`` of ``boasf_fmin`` cannot use it. Import their trials
    afterwards, ``record(objective, store, task).add(trials, space)``. Pass the space to
    ``fmin`` itself: ``space="annotated"`` looks for it in the objective, which is hidden here.

    Args:
        objective: The objective for ``fmin``.
        store: A ``MetaStore``, or its address or path.
        task: Name of the task.
        space: The search space that ``fmin`` is given. None takes it from the first trial; then a
            space that cannot be translated is a failure to record, not an error.
        meta_features: Properties of the data by name, such as ``meta_features(X, y)``.
        tags: Further facts about the task.

    Raises:
        StoreError, TypeError, ValueError: As ``Recorder``; for an objective that cannot be called,
            or a space that cannot be translated.

    Example::

        fmin(record(objective, "memory.db", task="iris"), space, algo=tpe.suggest, max_evals=50)
    """
    if not callable(objective):
        raise TypeError(f"objective must be callable, got {objective!r}.")
    if not isinstance(task, str):
        raise TypeError(f"task must be the name of a task, got {task!r}.")
    recorder = Recorder(store, task=task, meta_features=meta_features, tags=tags)
    return RecordedObjective(objective, recorder, None if space is None else read_space(space))


class RecordedObjective(SearchRecorder):
    """An objective that is recorded, see ``record``."""

    fmin_pass_expr_memo_ctrl = True  # Hyperopt then passes the trial, and with it the labels

    def __init__(
        self, objective: Callable[..., Any], recorder: Recorder, space: SearchSpace | None
    ) -> None:
        self.objective = objective
        self.recorder = recorder
        self._given = space
        self._found: Newest[SearchSpace] = Newest()
        self.__name__ = getattr(objective, "__name__", type(objective).__name__)

    def __call__(self, expr: Any, memo: Any = None, ctrl: Any = None) -> Any:
        """Evaluate the user's objective as Hyperopt does, and record the result."""
        if ctrl is None:
            raise TypeError(
                "A recorded objective must be given the trial: call fmin without"
                " pass_expr_memo_ctrl=False."
            )
        start = time.perf_counter()
        try:
            if getattr(self.objective, "fmin_pass_expr_memo_ctrl", False):
                result = self.objective(expr=expr, memo=memo, ctrl=ctrl)
            else:
                result = self.objective(pyll.rec_eval(expr, memo=memo, print_node_on_error=False))
        except Exception:
            self._write(expr, ctrl.current_trial, None, time.perf_counter() - start)
            raise
        self._write(expr, ctrl.current_trial, result, time.perf_counter() - start)
        return result

    def add(self, trials: Trials, space: Any = None) -> int:
        """Write all finished trials that are not stored yet; return their number.

        Args:
            trials: The trials.
            space: Their search space; None takes the one given to ``record``.

        Raises:
            StoreError: If the store cannot be written.
            TypeError: For anything but trials.
            ValueError: Without a space, or if the trials are of another one.
        """
        check_trials("add", trials)
        known = self._given if space is None else read_space(space)
        if known is None:
            raise ValueError("Trials do not store their search space: pass space=.")
        return self._add(finished_documents(trials), known)

    def _write(self, expr: Any, running: Document, result: Any, seconds: float) -> None:
        with self.recorder.survive():
            # ``fmin`` passes one expression to all trials, which is translated once.
            space = self._given or self._found.get(expr, lambda: read_space(expr))
            self._add([_end(running, result, seconds)], space)

    def _add(self, documents: Sequence[Document], known: SearchSpace) -> int:
        _check_drawn(documents, known)
        experiments: dict[str, list[Document]] = {}
        for document in documents:
            experiments.setdefault(str(document["exp_key"] or "hyperopt"), []).append(document)
        return sum(
            self.recorder.add(
                read_documents(own, str(self.recorder.task), known),
                search=search_name(experiment, known.space),
                keys=[_key(document) for document in own],
            )
            for experiment, own in experiments.items()
        )


def _check_drawn(documents: Sequence[Document], known: SearchSpace) -> None:
    """Raise ValueError if a label of the space should have been drawn, but never was."""
    values = [values_of(document) for document in documents]
    needed = {label: None for own in values for label in labels(known.domain.expr, own)}
    if never := [label for label in needed if not any(label in own for own in values)]:
        raise ValueError(
            f"No trial has a value for {never[0]!r}, which the search space has: pass the space of"
            " these trials, the one that fmin was given."
        )


def _end(running: Document, result: Any, seconds: float) -> Document:
    """The document as Hyperopt will store it; the result is None if the objective raised."""
    if isinstance(result, float | int | np.number):
        result = {"status": STATUS_OK, "loss": result}
    known = dict(result) if isinstance(result, Mapping) else {}
    if known.get("status") == STATUS_OK:
        with suppress(KeyError, TypeError, ValueError):  # Hyperopt will raise for these
            known["loss"] = float(known["loss"])
    known["seconds"] = as_seconds(known.get("seconds"), seconds)
    return {
        **running,
        "result": known,
        "state": JOB_STATE_ERROR if result is None else JOB_STATE_DONE,
        "refresh_time": datetime.now(UTC).replace(tzinfo=None),  # naive, as Hyperopt's are
    }


def _key(document: Document) -> str:
    result = document["result"]
    facts = (document["misc"]["vals"], result.get("status"), result.get("loss"), result.get(NOTE))
    return run_key(document["tid"], document["book_time"], *facts)
