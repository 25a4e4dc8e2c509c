"""Why a trial was proposed, and the share of earlier tasks in the decision."""

from __future__ import annotations

from collections.abc import Mapping

from hyperopt import Trials

from automl_plugins._arguments import check_integer, check_kind
from automl_plugins.proposers.explanation import ArmFacts, Explanation, Parts, read_parts

from ._private import all_documents
from .trials import INITIAL_DESIGN, PROPOSAL, Document, check_trials, note_of


def explain(trials: Trials | Document, tid: int | None = None) -> Explanation:
    """Why a trial was proposed, by any algorithm.

    It is read from the notes of this package's algorithms in ``misc["automl_plugins"]`` of a
    document. Entries that were changed to something invalid are left out.

    Args:
        trials: The trials of a search; or one of their documents, such as ``trials.best_trial``.
        tid: Number of the trial; None is the newest.

    Raises:
        TypeError: For anything but trials or a document.
        ValueError: If there is no such trial, or several; if a document and ``tid`` are given.

    Example::

        fmin(objective, space, algo=gbqr, max_evals=60, trials=trials)
        print(explain(trials.best_trial))
    """
    if isinstance(trials, dict) and "misc" in trials:
        if tid is not None:
            raise ValueError(f"The document is of trial {trials['tid']}: leave out tid={tid!r}.")
        return _explain_document(trials)
    allowed = "hyperopt.Trials, those that fmin was given as trials=, or a document of theirs"
    check_kind("explain", trials, Trials, allowed)
    check_integer("tid", tid, 0, optional=True)
    documents = all_documents(trials)
    if not documents:
        raise ValueError("There are no trials yet: fmin adds them to the trials it is given.")
    number = max(document["tid"] for document in documents) if tid is None else tid
    found = [document for document in documents if document["tid"] == number]
    if not found:
        raise ValueError(f"There is no trial {number}; there are {len(documents)} trials.")
    if tid is not None and len(found) > 1:
        raise ValueError(
            f"There are {len(found)} trials with the number {number}: pass the document of one of"
            " them, such as trials.trials[-1]."
        )
    return _explain_document(found[-1])


def _explain_document(document: Document) -> Explanation:
    note, design = note_of(document), document["misc"].get(INITIAL_DESIGN)
    arm = ArmFacts.from_dict(note.get("why"))
    # A point that ``boasf_fmin`` was given has an arm, too, but no policy has chosen it.
    origin = "inner" if arm else "enqueued" if "arm" in note else "foreign"
    if isinstance(design, Mapping):
        origin = "random" if design.get("design") == "random" else "suggested"
    return Explanation.from_proposal(document["tid"], note.get(PROPOSAL), arm=arm, origin=origin)


def member_trust(trials: Trials) -> dict[int, dict[str, float]]:
    """How much each member of the committee was trusted when each trial was proposed.

    Args:
        trials: The trials of a search by ``auto``.

    Returns:
        Probabilities by name of the member, by number of the trial; trials for which no member was
        drawn are absent.

    Raises:
        TypeError: For anything but trials.
    """
    return _read_parts("member_trust", trials, "trust")


def source_shares(trials: Trials) -> dict[int, dict[str, float]]:
    """Share of each earlier task in the proposal of each trial; the rest to 1 is the search's own.

    Args:
        trials: The trials of a search that learns from earlier tasks.

    Returns:
        Shares by name of the source, by number of the trial; trials that no such algorithm
        proposed are absent.

    Raises:
        TypeError: For anything but trials.
    """
    return _read_parts("source_shares", trials, "shares")


def _read_parts(function: str, trials: Trials, which: Parts) -> dict[int, dict[str, float]]:
    check_trials(function, trials)
    stored = ((d["tid"], note_of(d).get(PROPOSAL)) for d in all_documents(trials))
    return {tid: parts for tid, note in stored if (parts := read_parts(note, which)) is not None}
