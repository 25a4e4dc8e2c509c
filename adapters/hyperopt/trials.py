"""The one reader of Hyperopt's trials, and where they are found."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from hyperopt import (
    JOB_STATE_DONE,
    JOB_STATE_ERROR,
    JOB_STATE_NEW,
    JOB_STATE_RUNNING,
    STATUS_OK,
    Trials,
)

from automl_plugins.records.trial import (
    Status,
    Trial,
    as_number,
    as_seconds,
    sortable,
    unix_time,
)

from ._documents import NOTE, Document, note_of, values_of
from ._private import all_documents

UNFINISHED = (JOB_STATE_NEW, JOB_STATE_RUNNING)
FINISHED = (JOB_STATE_DONE, JOB_STATE_ERROR)


def read_trial(document: Document) -> Trial:
    """Read one trial that is not cancelled.

    ==============================================  ========
    state and result of the document                status
    ==============================================  ========
    done, status "ok" and a finite loss             COMPLETE
    done otherwise: status "fail", NaN, infinite    FAILED
    error                                           FAILED
    new, running                                    RUNNING
    ==============================================  ========

    What ``write_history`` noted in a result counts instead: Hyperopt has no pruned trials. The
    seconds are what a search noted in ``misc``, else ``result["seconds"]``, else the time between
    ``book_time`` and ``refresh_time``, which are whole milliseconds in UTC: the first of them that
    is a duration. Values are those of the labels, the index of the option for ``hp.choice``.
    """
    result = document["result"]
    started, ended = unix_time(document["book_time"]), unix_time(document["refresh_time"])
    took = round(ended - started, 6)  # floats of Unix times are not exact to the microsecond
    status, loss, budget = Status.FAILED, as_number(result.get("loss")), math.nan
    if document["state"] in UNFINISHED:
        status = Status.RUNNING
    elif document["state"] == JOB_STATE_DONE and result.get("status") == STATUS_OK:
        status = Status.COMPLETE
    elif isinstance(note := result.get(NOTE), Mapping) and note.get("status") in list(Status):
        status = Status(note["status"])
        loss, budget = as_number(note.get("loss")), as_number(note.get("budget"))
    return Trial(
        {name: _builtin(value) for name, value in values_of(document).items()},
        status,
        loss,
        math.nan
        if status == Status.RUNNING
        else as_seconds(note_of(document).get("seconds"), result.get("seconds"), took),
        step=None if math.isnan(budget) else budget,
        number=document["tid"],
        started=started,
        ended=ended,
    )


def finished_documents(trials: Trials) -> list[Document]:
    """Documents of the trials that have ended, in the order in which they did."""
    done = [d for d in all_documents(trials) if d["state"] in FINISHED]
    return sorted(done, key=lambda d: (sortable(unix_time(d["refresh_time"])), d["tid"]))


def _builtin(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def owns(source: str) -> bool:
    """Whether ``curves`` can read a path or address: never, Hyperopt writes pickles only."""
    return False
