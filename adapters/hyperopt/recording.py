"""Trials written to a memory while ``fmin`` goes on."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

import numpy as np
from hyperopt import JOB_STATE_DONE, JOB_STATE_ERROR, STATUS_OK, Trials, pyll

from automl_plugins.meta.recorder import Recorder, WritableStore, search_name

from ._documents import Document
from ._expression import SearchSpace, read_space
from .memory_io import finished, read_documents

_SEARCH = "hyperopt"  # trials without an experiment key


def record(
    objective: Callable[..., Any],
    store: WritableStore | str | os.PathLike[str],
    task: str,
    space: Any = None,
    meta_features: Mapping[str, float] | None = None,
    tags: Mapping[str, str] | None = None,
) -> RecordedObjective:
    """An objective for ``fmin`` that writes each trial to a store.

    Complete and failed trials are recorded, and those that raise: as failed ones, then the
    exception goes on its way. A trial is known by its experiment key, its number and its
    beginning, so it is never there twice, however often it is recorded or imported (``add``).

    Nothing that happens while trials are recorded stops ``fmin``: the first failure is logged as a
    warning, all are counted in ``n_lost``. What is wrong with the arguments is raised at once.

    Only an objective that is called in the process of ``fmin``, or of a Mongo worker, knows its
    labels: ``SparkTrials`` and the ``executor=`` of ``boasf_fmin`` cannot use it. Import their
    trials afterwards, ``record(objective, store, task).add(trials, space)``. Pass the space to
    ``fmin`` itself: ``space="annotated"`` looks for it in the objective, which is hidden here.

    Args:
        objective: What ``fmin`` would be given.
        store: A ``MetaStore``, or its address or path.
        task: Name of the task.
        space: The search space that ``fmin`` is given. None takes it when the first trial comes;
            then a space that cannot be translated is a failure to record, not an error.
        meta_features: Properties of the data by name, such as ``meta_features(X, y)``.
        tags: What else is known of the task.

    Raises:
        StoreError: If the store cannot be opened.
        TypeError: For an objective that cannot be called, a store that is none, meta-features
            that are no numbers, tags that are no text.
        ValueError: For an infinite meta-feature, an address that is none, or a space that cannot
            be translated.

    Example::

        fmin(record(objective, "memory.db", task="iris"), space, algo=tpe.suggest, max_evals=50)
    """
    if not callable(objective):
        raise TypeError(f"objective must be callable, got {objective!r}.")
    if not isinstance(task, str):
        raise TypeError(f"task must be the name of a task, got {task!r}.")
    recorder = Recorder(store, task=task, meta_features=meta_features, tags=tags)
    return RecordedObjective(objective, recorder, None if space is None else read_space(space))


class RecordedObjective:
    """An objective that is recorded, see ``record``.

    Args:
        objective: The user's.
        recorder: Writes to the store.
        space: The search space, if it is known.
    """

    fmin_pass_expr_memo_ctrl = True  # Hyperopt then tells the trial, and with it the labels

    def __init__(
        self, objective: Callable[..., Any], recorder: Recorder, space: SearchSpace | None
    ) -> None:
        self.objective = objective
        self.recorder = recorder
        self._given = space
        self._found: tuple[Any, SearchSpace] | None = None  # by expression: a cache
        self.__name__ = getattr(objective, "__name__", type(objective).__name__)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_found": None}

    @property
    def n_recorded(self) -> int:
        """Trials that were written and not there before."""
        return self.recorder.n_recorded

    @property
    def n_lost(self) -> int:
        """Trials that could not be written."""
        return self.recorder.n_lost

    def __call__(self, expr: Any, memo: Mapping[Any, Any], ctrl: Any) -> Any:
        """Evaluate the user's objective as Hyperopt would, and record what it came to."""
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
        """Write all finished trials that are not there yet; returns how many.

        Args:
            trials: The trials.
            space: Their search space; None takes that given to ``record``.

        Raises:
            StoreError: If the store cannot be written.
            ValueError: Without a space, or with the wrong one.
        """
        known = self._given if space is None else read_space(space)
        if known is None:
            raise ValueError("Trials do not keep their search space: pass space=.")
        groups: dict[str, list[Document]] = {}
        for document in finished(trials):
            groups.setdefault(_search(document, known), []).append(document)
        return sum(
            self.recorder.add(
                read_documents(documents, name=str(self.recorder.task), known=known),
                search=search,
                keys=[_key(document) for document in documents],
            )
            for search, documents in groups.items()
        )

    def _write(self, expr: Any, trial: Document, result: Any, seconds: float) -> None:
        self.recorder.write(
            lambda: read_documents(
                [_ended(trial, result, seconds)],
                name=str(self.recorder.task),
                known=self._space(expr),
            ),
            search=lambda: _search(trial, self._space(expr)),
            key=lambda: _key(trial),
        )

    def _space(self, expr: Any) -> SearchSpace:
        if self._given is not None:
            return self._given
        if self._found is None or self._found[0] is not expr:
            self._found = (expr, read_space(expr))
        return self._found[1]


def _ended(trial: Document, result: Any, seconds: float) -> Document:
    """The document as it will be when Hyperopt has stored the result; None has raised."""
    if isinstance(result, float | int | np.number):
        result = {"status": STATUS_OK, "loss": float(result)}
    told = dict(result) if isinstance(result, Mapping) else {}
    if not isinstance(told.get("seconds"), float | int) or math.isnan(told["seconds"]):
        told["seconds"] = seconds
    return {
        **trial,
        "result": told,
        "state": JOB_STATE_ERROR if result is None else JOB_STATE_DONE,
        "refresh_time": datetime.now(UTC).replace(tzinfo=None),
    }


def _search(trial: Document, known: SearchSpace) -> str:
    return search_name(str(trial.get("exp_key") or _SEARCH), known.space)


def _key(trial: Document) -> str:
    began = trial.get("book_time")
    return f"{trial['tid']}" if began is None else f"{trial['tid']}@{began.isoformat()}"
