"""``MongoTrials`` of Hyperopt, as it reads its database, without a server."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any

import numpy as np
from hyperopt import JOB_STATE_DONE, JOB_STATE_ERROR, Domain
from hyperopt.base import spec_from_misc
from hyperopt.mongoexp import MongoJobs, MongoTrials
from hyperopt.utils import coarse_utcnow


class Jobs:
    """A collection of documents; what it returns are copies, which it counts."""

    def __init__(self) -> None:
        self.stored: list[dict[str, Any]] = []
        self.n_fetched = 0  # whole documents

    def find(
        self, query: Mapping[str, Any], projection: Sequence[str] | None = None
    ) -> list[dict[str, Any]]:
        """Copies of the documents, or of some of their entries."""
        found = [document for document in self.stored if _matches(document, query)]
        if projection is not None:
            return [{key: document[key] for key in projection} for document in found]
        self.n_fetched += len(found)
        return copy.deepcopy(found)

    def insert(self, document: dict[str, Any]) -> int:
        """Store a copy of a document."""
        self.stored.append(copy.deepcopy(document) | {"_id": len(self.stored)})
        return len(self.stored) - 1


def _matches(document: Mapping[str, Any], query: Mapping[str, Any]) -> bool:
    for key, wanted in query.items():
        value = document[key]
        if not isinstance(wanted, Mapping):
            wanted = {"$in": [wanted]}
        if value == wanted.get("$ne", ()) or value not in wanted.get("$in", [value]):
            return False
    return True


class Handle(MongoJobs):  # type: ignore[misc]
    """A database; tids are unique in it."""

    def __init__(self) -> None:
        self.jobs, self.n_tids = Jobs(), 0


class DatabaseTrials(MongoTrials):  # type: ignore[misc]
    """Hyperopt's own trials of a database, with its own ``refresh``."""

    def __init__(self, handle: Handle | None = None, exp_key: str | None = None) -> None:
        self.handle = Handle() if handle is None else handle
        self._exp_key, self.cmd, self.workdir = exp_key, None, None
        self.refresh()

    def new_trial_ids(self, last_id: int) -> list[int]:
        """The next numbers; Hyperopt counts them in the database."""
        first = self.handle.n_tids
        self.handle.n_tids += last_id
        return [*range(first, self.handle.n_tids)]


def work(trials: DatabaseTrials, domain: Domain) -> None:
    """Evaluate the newest trial as Hyperopt's worker does, each for a second."""
    document = trials.handle.jobs.stored[-1]
    document["version"] += 1
    document["book_time"] = coarse_utcnow()
    document["refresh_time"] = document["book_time"] + timedelta(seconds=1)
    try:
        document["result"] = domain.evaluate(spec_from_misc(document["misc"]), None)
        document["state"] = JOB_STATE_DONE
    except Exception as error:
        document["state"] = JOB_STATE_ERROR
        document["error"] = (str(type(error)), str(error))


def minimise_in_database(
    fn: Callable[[Any], Any], space: Any, algo: Any, n: int, *, exp_key: str | None = None
) -> DatabaseTrials:
    """The trials of ``fmin`` with one worker; fewer if nothing is left to propose."""
    trials, domain, rng = (
        DatabaseTrials(exp_key=exp_key),
        Domain(fn, space),
        np.random.default_rng(0),
    )
    for _ in range(n):
        ids = trials.new_trial_ids(1)
        trials.refresh()
        documents = algo(ids, domain, trials, int(rng.integers(2**31 - 1)))
        if not documents:
            break
        trials.insert_trial_docs(documents)
        work(trials, domain)
    trials.refresh()
    return trials
