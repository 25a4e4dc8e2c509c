"""The only place that touches what Hyperopt does not promise to keep.

``Trials.trials`` hides the trials whose objective raised, and Hyperopt has no other public list.
``tests/adapters/hyperopt/test_hyperopt_private.py`` fails loudly when this changes.
"""

from __future__ import annotations

from typing import Any

from hyperopt import Trials


def all_documents(trials: Trials) -> list[dict[str, Any]]:
    """The documents of all trials of an experiment, those that raised or were cancelled too."""
    documents = getattr(trials, "_dynamic_trials", None)
    if documents is None:  # a database, whose list hides nothing
        return list(trials.trials)
    key = trials._exp_key
    return [document for document in documents if key is None or document["exp_key"] == key]
