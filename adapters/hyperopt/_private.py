"""The only module that uses private parts of Hyperopt.

``Trials.trials`` hides the trials whose objective raised, and Hyperopt has no other public list.
``fmin``'s ``trials_save_file`` is a pickle written with whatever pickler ``hyperopt.fmin`` found.
``tests/adapters/hyperopt/test_hyperopt_private.py`` fails loudly when this changes.
"""

from __future__ import annotations

from typing import IO, Any

from hyperopt import Trials
from hyperopt.fmin import pickler


def all_documents(trials: Trials) -> list[dict[str, Any]]:
    """The documents of all trials of an experiment, raised and cancelled ones included."""
    documents = getattr(trials, "_dynamic_trials", None)
    if documents is None:  # a database, whose ``trials`` hides nothing
        return list(trials.trials)
    key = trials._exp_key
    return [document for document in documents if key is None or document["exp_key"] == key]


def dump(trials: Trials, file: IO[bytes]) -> None:
    """Write trials as ``fmin`` writes its ``trials_save_file``."""
    pickler.dump(trials, file)


def load(file: IO[bytes]) -> Trials:
    """Read what ``dump`` or ``fmin`` wrote; only the user's own files, as pickles run any code."""
    return pickler.load(file)
