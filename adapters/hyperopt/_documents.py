"""Trial documents, written with every label of the space.

``misc["automl_plugins"]`` of a document holds what a search must find again in the trials: the
arm, the round, the seconds it was charged, and with the first trial of a round its outcome.
Hyperopt leaves it alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hyperopt import Domain, Trials

Document = dict[str, Any]

NOTE = "automl_plugins"  # our key in misc


def new_document(trials: Trials, domain: Domain, tid: int, values: Mapping[str, Any]) -> Document:
    """A document as Hyperopt's own suggest functions write it: every label of the space is there.

    Args:
        trials: The trials that it is to be inserted into.
        domain: The whole search space.
        tid: Its number.
        values: Active hyperparameters.
    """
    misc = {
        "tid": tid,
        "cmd": domain.cmd,
        "workdir": domain.workdir,
        "idxs": {label: [tid] if label in values else [] for label in domain.params},
        "vals": {label: [values[label]] if label in values else [] for label in domain.params},
    }
    (document,) = trials.new_trial_docs([tid], [None], [domain.new_result()], [misc])
    written: Document = document
    return written


def values_of(document: Mapping[str, Any]) -> dict[str, Any]:
    """Active hyperparameters of a trial."""
    return {k: v[0] for k, v in document["misc"]["vals"].items() if len(v)}


def note_of(document: Mapping[str, Any]) -> dict[str, Any]:
    """What we wrote into a document; empty for one that somebody else wrote."""
    note = document["misc"].get(NOTE)
    return note if isinstance(note, dict) else {}
