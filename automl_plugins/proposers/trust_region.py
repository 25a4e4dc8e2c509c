"""The part of a search space in which a local model proposes."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from automl_plugins.arrays import FloatArray
from automl_plugins.proposers.models import FittedModels
from automl_plugins.proposers.proposal import Question
from automl_plugins.surrogates.base import Local

_DOUBLINGS = 14  # from the least width of a ``LocalProcess`` to the whole range


def trust_region(asked: Question, models: FittedModels) -> TrustRegion | None:
    """The region of a ``Local`` surrogate, around the best row that it has learnt; None of others.

    Numbers move in it, except those that decide which other hyperparameters are active.
    """
    surrogate, learnt, space = models.surrogate, models.learnt, asked.space
    if not isinstance(surrogate, Local):
        return None
    best = asked.history.vectors[learnt.positions[learnt.values.argmin()]]
    # Observed values of an old range may lie outside the present one.
    centre = space.complete(space.canonical(best[None]), asked.rng)[0]
    moves = ~np.isnan(centre) & ~space.categorical & (space.n_values > 1)
    moves[list(space.deciding)] = False
    columns = np.flatnonzero(moves)
    place = {name: feature for feature, name in enumerate(space.feature_names)}
    features = [place[space.names[column]] for column in columns]
    largest = space.largest[columns]
    width = 0.5 * (surrogate.high_ - surrogate.low_)[features] * largest
    low, high = np.full((2, space.d), np.nan)
    low[columns] = np.maximum(0.0, centre[columns] - width)
    high[columns] = np.minimum(largest, centre[columns] + width)
    return TrustRegion(asked, centre, low, high)


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
        """At most ``n`` configurations (m, d), m > 0, that repeat nothing; see ``Question``.

        Where all of a region was evaluated, it grows; if nothing is left around its centre, they
        are of the whole space.
        """
        asked, region = self.asked, self
        columns = np.flatnonzero(~np.isnan(self.low))
        for _ in range(_DOUBLINGS if len(columns) else 0):
            drawn = np.repeat(self.centre[None], n, axis=0)
            ends = region.low[columns], region.high[columns]
            drawn[:, columns] = asked.rng.uniform(*ends, (n, len(columns)))
            drawn = asked.space.canonical(drawn)
            legal = drawn[asked.space.allowed(drawn)]
            fresh = legal[~asked.repeats.among(legal)]
            if len(fresh):
                return fresh, False
            region = region._doubled()
        return asked.unseen(n)

    @property
    def ends(self) -> tuple[FloatArray, FloatArray]:
        """The lowest and the highest values (d,)."""
        return self.low, self.high

    def _doubled(self) -> TrustRegion:
        margin = 0.5 * (self.high - self.low)
        high = np.minimum(self.asked.space.largest, self.high + margin)
        return replace(self, low=np.maximum(0.0, self.low - margin), high=high)
