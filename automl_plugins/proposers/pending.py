"""Evaluations that other workers have begun, but not published yet.

A worker gets the number of its evaluation first, reads the history, proposes and publishes. So
whoever has number k sees every lower number: finished, running with a configuration, or running
without one, while its worker is still proposing. What the latter will be is known, for a proposal
is a function of the history and the number.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from automl_plugins.proposers.proposal import Proposal, Proposer, SurrogateFailure
from automl_plugins.records.history import History
from automl_plugins.records.trial import Status
from automl_plugins.spaces.vector_space import VectorSpace
from automl_plugins.streams import Streams

FloatArray = npt.NDArray[np.float64]

MOST_ASKING = 32  # numbers that may be asked for at one moment; older ones belong to dead workers


def ask(
    proposer: Proposer,
    space: VectorSpace,
    history: History,
    streams: Streams,
    k: int,
    fixed: FloatArray | None = None,
) -> Proposal:
    """The proposal for number ``k`` beside those that other workers are just making.

    Arguments and errors are those of ``Proposer.propose``.
    """
    return proposer.propose(
        space, foresee(proposer, space, history, streams, k), streams, k, fixed
    )


def foresee(
    proposer: Proposer, space: VectorSpace, history: History, streams: Streams, k: int
) -> History:
    """The history with the configurations that running rows of lower numbers will get.

    Exact if the other workers have read the same finished rows; a guess otherwise. A row without a
    single value counts as not published.
    """
    asking = (history.status == Status.RUNNING) & np.isnan(history.vectors).all(axis=1)
    asking &= (history.number < k) & (history.number >= k - MOST_ASKING)
    for number in np.sort(history.number[asking]).tolist():
        place = history.number == number
        others = history.rows(~place)
        try:
            vector = proposer.propose(space, others, streams, number).vector
        except SurrogateFailure:  # that worker has no better answer either
            continue
        history = replace(
            history,
            vectors=np.where(place[:, None], vector, history.vectors),
            missing=np.where(place[:, None], ~np.isnan(vector), history.missing),
        )
    return history


def taken(space: VectorSpace, history: History, k: int) -> FloatArray:
    """Running rows with less than all of their values: whoever has these values is a copy.

    A parameter that no row asks for, or only rows of another branch, tells no two configurations
    apart; what the conditions are is not always known before the first evaluations are complete.
    So a row that has asked for a number is known by all that it asked for, and by what complete
    rows of the same categories asked for. One that has not is known by what any row asked for.

    Returns:
        Vectors (p, d), NaN for values that do not count.
    """
    proposed = history.missing & ~np.isnan(history.vectors)
    recent = (history.number >= k - MOST_ASKING) & proposed.any(axis=1)
    asked = ~np.isnan(history.vectors) & ~proposed
    complete = history.status == Status.COMPLETE
    found = []
    for row in np.flatnonzero(recent):
        vector, own = history.vectors[row], asked[row]
        if (own & ~space.categorical).any():
            branch = np.where(own & space.categorical, vector, np.nan)
            own = own | asked[complete & space.agrees(history.vectors, branch)].any(axis=0)
        else:
            own = asked.any(axis=0)
        if (own & ~space.categorical & ~np.isnan(vector)).any():
            found.append(np.where(own, vector, np.nan))
    return np.array(found).reshape(-1, space.d)
