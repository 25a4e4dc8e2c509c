"""The only module that uses private parts of Hyperopt.

``Trials.trials`` hides the trials whose objective raised, and Hyperopt has no other public list;
``MongoTrials.trials`` does not even fetch them from the database.
``fmin``'s ``trials_save_file`` is a pickle written with whatever pickler ``hyperopt.fmin`` found.
``tests/adapters/hyperopt/test_hyperopt_private.py`` fails loudly when this changes.
"""

from __future__ import annotations

from operator import itemgetter
from typing import IO, Any
from weakref import WeakKeyDictionary

from hyperopt import JOB_STATE_ERROR, Trials
from hyperopt.fmin import pickler

#: A cache for trials in a database: documents of trials that raised, by ``_id`` and version.
_RAISED: WeakKeyDictionary[Trials, dict[tuple[Any, Any], dict[str, Any]]] = WeakKeyDictionary()


def all_documents(trials: Trials) -> list[dict[str, Any]]:
    """The documents of all trials of an experiment, raised and cancelled ones included."""
    documents, key = getattr(trials, "_dynamic_trials", None), trials._exp_key
    if documents is None:  # a database
        raised = _raised_documents(trials)
        ended = {document["_id"] for document in raised}  # some raised after the last refresh
        others = [document for document in trials.trials if document["_id"] not in ended]
        # Two queries: raised trials take their places among the others.
        return sorted([*others, *raised], key=itemgetter("tid"))
    return [document for document in documents if key is None or document["exp_key"] == key]


def _raised_documents(trials: Trials) -> list[dict[str, Any]]:
    """Documents that ``MongoTrials.refresh`` does not fetch; unchanged ones are fetched once."""
    jobs, query = trials.handle.jobs, {"state": JOB_STATE_ERROR}
    if trials._exp_key is not None:
        query["exp_key"] = trials._exp_key
    listed = [(d["_id"], d["version"]) for d in jobs.find(query, projection=["_id", "version"])]
    known = _RAISED.get(trials, {})
    if new := [_id for _id, version in listed if (_id, version) not in known]:
        fetched = jobs.find({**query, "_id": {"$in": new}})
        known = known | {(document["_id"], document["version"]): document for document in fetched}
    _RAISED[trials] = kept = {key: known[key] for key in listed if key in known}
    return list(kept.values())


def replace_documents(trials: Trials, documents: list[dict[str, Any]]) -> None:
    """Replace all documents of ``trials`` by ``documents``, which are not copied."""
    trials._ids.clear()
    trials._dynamic_trials = documents
    trials.refresh()


def dump(trials: Trials, file: IO[bytes]) -> None:
    """Write trials as ``fmin`` writes its ``trials_save_file``."""
    pickler.dump(trials, file)


def load(file: IO[bytes]) -> Trials:
    """Read what ``dump`` or ``fmin`` wrote; only the user's own files, as pickles run any code."""
    return pickler.load(file)
