"""The part of a search space in which a local model proposes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from automl_plugins.arrays import FloatArray
from automl_plugins.proposers.acquisition import moving
from automl_plugins.proposers.models import FittedModels
from automl_plugins.proposers.proposal import Question
from automl_plugins.records.history import History
from automl_plugins.records.trial import Status
from automl_plugins.spaces.vector_space import VectorSpace
from automl_plugins.surrogates.base import Local

# Rows from which a region can be told from the rest; with branches, each has only some.
_FEWEST, _FEWEST_WITH_BRANCHES = 64, 128


class RegionExhausted(Exception):
    """No configuration of a region is new."""


@dataclass(frozen=True)
class TrustRegion:
    """A box around a configuration, in which some of its numbers move.

    Attributes:
        asked: The question that is answered in it.
        centre: The configuration (d,), NaN = inactive.
        low, high: Ends (d,) of its numbers; NaN for what does not move.
    """

    asked: Question
    centre: FloatArray
    low: FloatArray
    high: FloatArray

    def unseen(self, n: int) -> tuple[FloatArray, bool]:
        """At most ``n`` configurations (m, d) that repeat nothing, and False: there may be more.

        Raises:
            RegionExhausted: If none of ``n`` draws is new.
        """
        asked, columns = self.asked, np.flatnonzero(~np.isnan(self.low))
        drawn = np.repeat(self.centre[None], n, axis=0)
        ends = self.low[columns], self.high[columns]
        drawn[:, columns] = asked.rng.uniform(*ends, (n, len(columns)))
        drawn = asked.space.canonical(drawn)
        legal = drawn[asked.space.allowed(drawn)]
        fresh = legal[~asked.repeats.among(legal)]
        if not len(fresh):
            raise RegionExhausted
        return fresh, False


def trust_region(asked: Question, models: FittedModels) -> TrustRegion | None:
    """The region of a ``Local`` surrogate around the best row that it has learnt; else None.

    The numbers that ``moving`` returns vary in it.
    """
    surrogate, learnt, space = models.surrogate, models.learnt, asked.space
    if not isinstance(surrogate, Local):
        return None
    best = asked.history.vectors[learnt.positions[learnt.values.argmin()]]
    # Observed values of an old range may lie outside the present one.
    centre = space.complete(space.canonical(best[None]), asked.rng)[0]
    columns = moving(space, centre)
    place = {name: feature for feature, name in enumerate(space.feature_names)}
    features = [place[space.names[column]] for column in columns]
    largest = space.largest[columns]
    width = 0.5 * (surrogate.high_ - surrogate.low_)[features] * largest
    low, high = np.full((2, space.d), np.nan)
    low[columns] = np.maximum(0.0, centre[columns] - width)
    high[columns] = np.minimum(largest, centre[columns] + width)
    return TrustRegion(asked, centre, low, high)


def has_region(space: VectorSpace, history: History) -> bool:
    """Whether a search is long enough for a model of the region around its best row.

    It needs 64 complete and feasible rows, 128 in a space with branches. Exactly one of them is
    the best (several would lie on a plateau), may still be proposed, and has numbers to vary.
    """
    good = np.flatnonzero((history.status == Status.COMPLETE) & history.feasible)
    if len(good) < (_FEWEST_WITH_BRANCHES if space.branching else _FEWEST):
        return False
    losses = history.losses[good]
    best = good[losses == losses.min()]
    return bool(
        len(best) == 1
        and space.within_reach(history.vectors[best], None)[0]
        and len(moving(space, history.vectors[best[0]]))
    )
