"""Trials written to a store while ``fmin`` continues, or afterwards."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import numpy as np
from hyperopt import JOB_STATE_DONE, JOB_STATE_ERROR, STATUS_OK, Trials, pyll

from automl_plugins.meta.recorder import (
    Recorder,
    SearchRecorder,
    WritableStore,
    run_key,
    search_name,
)
from automl_plugins.newest import Newest
from automl_plugins.records.trial import as_seconds

from .memory import read_documents
from .space import SearchSpace, read_space
from .trials import NOTE, Document, check_trials, finished_documents


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
    exception is passed on. A trial is identified by its experiment key, its number and its start,
    so it is stored once, however often it is recorded or imported (``add``).

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

    def __call__(self, expr: Any, memo: Mapping[Any, Any], ctrl: Any) -> Any:
        """Evaluate the user's objective as Hyperopt does, and record the result."""
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
            space: Their search space; None takes that given to ``record``.

        Raises:
            StoreError: If the store cannot be written.
            TypeError: For anything but trials.
            ValueError: Without a space, or with another one.
        """
        check_trials("add", trials)
        known = self._given if space is None else read_space(space)
        if known is None:
            raise ValueError("Trials do not store their search space: pass space=.")
        groups: dict[str, list[Document]] = {}
        for document in finished_documents(trials):
            groups.setdefault(_search(document, known), []).append(document)
        return sum(
            self.recorder.add(
                read_documents(documents, str(self.recorder.task), known),
                search=search,
                keys=[_key(document) for document in documents],
            )
            for search, documents in groups.items()
        )

    def _write(self, expr: Any, trial: Document, result: Any, seconds: float) -> None:
        with self.recorder.survive():
            document = _end(trial, result, seconds)
            # ``fmin`` passes one expression to all trials, which is translated once.
            space = self._given or self._found.get(expr, lambda: read_space(expr))
            record = read_documents([document], str(self.recorder.task), space)
            self.recorder.add(record, search=_search(trial, space), keys=[_key(trial)])


def _end(trial: Document, result: Any, seconds: float) -> Document:
    """The document as Hyperopt will store it; the result is None if the objective raised."""
    if isinstance(result, float | int | np.number):
        result = {"status": STATUS_OK, "loss": result}
    known = dict(result) if isinstance(result, Mapping) else {}
    if known.get("status") == STATUS_OK:
        with suppress(KeyError, TypeError, ValueError):  # for which Hyperopt raises then
            known["loss"] = float(known["loss"])
    known["seconds"] = as_seconds(known.get("seconds"), seconds)
    return {
        **trial,
        "result": known,
        "state": JOB_STATE_ERROR if result is None else JOB_STATE_DONE,
        "refresh_time": datetime.now(UTC).replace(tzinfo=None),  # naive, as Hyperopt's are
    }


def _search(trial: Document, known: SearchSpace) -> str:
    return search_name(str(trial.get("exp_key") or "hyperopt"), known.space)


def _key(trial: Document) -> str:
    result = trial.get("result") or {}
    facts = (trial["misc"]["vals"], result.get("status"), result.get("loss"), result.get(NOTE))
    return run_key(trial["tid"], trial.get("book_time"), *facts)
