"""Hyperopt's trials as a ``Search``, for comparisons and tables."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

import numpy as np
from hyperopt import JOB_STATE_DONE, JOB_STATE_ERROR, JOB_STATE_RUNNING, STATUS_OK, Trials
from hyperopt.base import JOB_STATE_CANCEL, JOB_STATE_NEW

from automl_plugins.records.search import RecordedTrial, Search
from automl_plugins.replay.protocol import TrialStatus

from ._private import all_documents

_UNFINISHED = {JOB_STATE_NEW: "new", JOB_STATE_RUNNING: "running", JOB_STATE_CANCEL: "cancelled"}


def owns(source: str) -> bool:
    """Whether ``curves`` can read a path or address: never, Hyperopt writes pickles only."""
    return False


def curves(
    source: Trials,
    *,
    table: str | None = None,
    method: str | None = None,
    seed: int | None = None,
) -> list[Search]:
    """The search that a ``Trials`` object records.

    Values are those of the labels: the index of the option for ``hp.choice`` and ``hp.pchoice``.
    The duration is ``result["seconds"]`` where the objective returned it, else the time between
    ``book_time`` and ``refresh_time``, which are whole milliseconds. The search space is unknown.

    Args:
        source: The trials of one run of ``fmin``.
        table: What was tuned.
        method: What tuned it.
        seed: Number of the repetition; None is 0.

    Returns:
        One search. Trials that raised, failed or have no finite loss are failed ones; those that
        have not finished are left out, which the search says.

    Raises:
        TypeError: For anything else than trials.
        ValueError: Without ``table`` or ``method``, which trials do not know.
    """
    if not isinstance(source, Trials):
        raise TypeError(
            f"curves() reads hyperopt.Trials, not {source!r}. Stored trials are pickles, which can"
            " run any code when they are loaded: load those you trust yourself."
        )
    if table is None or method is None:
        raise ValueError(
            "Trials do not say what was tuned and what tuned it: pass table= and method=."
        )
    documents = all_documents(source)
    finished = [d for d in documents if d["state"] in (JOB_STATE_DONE, JOB_STATE_ERROR)]
    finished.sort(key=lambda d: (d["refresh_time"] or datetime.max, d["tid"]))
    begin = min((d["book_time"] for d in documents if d["book_time"]), default=None)
    trials = [recorded_trial(document, begin) for document in finished]
    return [Search(table, method, seed or 0, trials, left_out=_left_out(documents))]


def _left_out(documents: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    counts = Counter(document["state"] for document in documents)
    return tuple(
        f"{counts[state]} {word} trial{'s' if counts[state] > 1 else ''} left out."
        for state, word in _UNFINISHED.items()
        if counts[state]
    )


def recorded_trial(document: Mapping[str, Any], begin: datetime | None) -> RecordedTrial:
    """A finished document; ``begin`` is the start of its search."""
    result = document["result"]
    loss = _number(result.get("loss"))
    complete = (
        document["state"] == JOB_STATE_DONE
        and result.get("status") == STATUS_OK
        and math.isfinite(loss)
    )
    seconds = _number(result.get("seconds"))
    return RecordedTrial(
        {k: _builtin(v[0]) for k, v in document["misc"]["vals"].items() if len(v)},
        TrialStatus.COMPLETE if complete else TrialStatus.FAILED,
        loss if complete else math.nan,
        _between(document["book_time"], document["refresh_time"])
        if math.isnan(seconds)
        else seconds,
        _between(begin, document["refresh_time"]),
    )


def _between(begin: datetime | None, end: datetime | None) -> float:
    return math.nan if begin is None or end is None else (end - begin).total_seconds()


def _number(value: Any) -> float:
    return math.nan if value is None else float(value)


def _builtin(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value
