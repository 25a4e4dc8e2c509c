"""Why was this trial proposed?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hyperopt import Trials

from automl_plugins.proposers.explanation import ArmFacts, Explanation

from ._documents import note_of
from ._private import all_documents
from .initial_design import INITIAL_DESIGN
from .proposing import PROPOSAL


def explain(trials: Trials, tid: int | None = None) -> Explanation:
    """Why a trial was proposed, whoever proposed it.

    It is read from what the algos of this package note in ``misc["automl_plugins"]`` of a
    document. What somebody has changed there to something that is no fact is left out.

    Args:
        trials: The trials of a search.
        tid: Number of the trial; None is the newest.

    Raises:
        ValueError: If there is no such trial.

    Example::

        fmin(objective, space, algo=gbqr, max_evals=60, trials=trials)
        print(explain(trials))
    """
    documents = {document["tid"]: document for document in all_documents(trials)}
    number = max(documents, default=None) if tid is None else tid
    if number is None or number not in documents:
        raise ValueError(f"There is no trial {number!r}; there are {len(documents)} trials.")
    misc, note = documents[number]["misc"], note_of(documents[number])
    arm = ArmFacts.from_dict(note.get("why"))
    return Explanation.from_proposal(
        number,
        note.get(PROPOSAL),
        arm=arm,
        origin=_design(misc) or ("inner" if arm else "enqueued" if "arm" in note else "foreign"),
    )


def _design(misc: Mapping[str, Any]) -> str | None:
    """The origin of a trial of ``initial_trials``; None for others."""
    note = misc.get(INITIAL_DESIGN)
    if not isinstance(note, Mapping):
        return None
    origins = {"random": "random", "space_filling": "design"}
    return origins.get(str(note.get("design")), "suggested")
