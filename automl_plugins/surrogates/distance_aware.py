"""A surrogate whose doubt grows with the distance from what was observed.

Trees extend the value of a leaf as far as the space goes, and an ensemble of them agrees there as
firmly as it does on the observations. This wrapper adds what a Gaussian process has by nature.
Notation of this module, besides that of ``base``::

    points  the best observations, without NaN, shape (n, f); f includes flags
    gaps    distance u of each query to the nearest point, shape (m,)
"""

from __future__ import annotations

import copy
from dataclasses import KW_ONLY, dataclass
from typing import Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from automl_plugins._arguments import check_finite, check_integer
from automl_plugins.arrays import FloatArray
from automl_plugins.surrogates.base import (
    OutOfSample,
    Surrogate,
    as_features,
    as_training,
    complete_inputs,
    prepare,
    standardise,
)

# Share of the largest norm below which a distance is 0: rounding a^2 + b^2 - 2ab makes it 1e-8.
_NO_GAP = 1e-6
_MANY_ROWS = 256  # observations from which a fit for one proposal takes too long


@dataclass(eq=False, repr=False)
class DistanceAware(BaseEstimator):  # type: ignore[misc]
    """std^2 + (strength s_y min(1, u / scale))^2 around the mean of another surrogate.

    u is the distance to the nearest of the best observations (``max_rows``), s_y the standard
    deviation of the targets, and scale the median distance between an observation and its nearest
    neighbour: the doubt is full where a configuration is farther from all of them than they are
    from each other.

    Args:
        surrogate: Model with ``fit`` and ``predict`` returning (mean, std).
        strength: Standard deviation added far from the data, as a share of that of the targets.
        floor: Smallest standard deviation, as a share of that of the targets. Needed if a gain is
            divided by seconds: without it a nearly certain prediction counts as infinitely bad.
        max_rows: Largest number of observations, the best ones, whose distances count.
        random_state: Passed on to the surrogate.

    Example::

        mean, std = DistanceAware(QuantileBoosting(), strength=0.6).fit(X, y).predict(X_new)
    """

    surrogate: Surrogate
    _: KW_ONLY
    strength: float = 0.6
    floor: float = 0.0
    max_rows: int = 200
    random_state: int | None = None

    def fit(self, X: FloatArray, y: FloatArray) -> Self:
        """Fit the surrogate on ``X`` (n, f) and ``y`` (n,), and remember where ``X`` lies.

        Raises:
            ValueError: For ``strength`` < 0, ``floor`` < 0 or ``max_rows`` < 1.
            TypeError: For an argument of the wrong type.
        """
        check_finite("strength", self.strength)
        check_finite("floor", self.floor)
        check_integer("max_rows", self.max_rows, 1)
        X, y = self.observed_ = as_training(X, y)  # kept for ``beside``, which fits again
        self.surrogate_ = self._fit_copy(X, y)
        # Stable: which of equal rows count does not depend on the processor.
        best = np.argsort(y, kind="stable")[: self.max_rows]
        # Without conditions there are no flags, and distances cost half.
        self.flagged_ = np.arange(X.shape[1] if np.isnan(X).any() else 0)
        self.points_ = complete_inputs(X[best], self.flagged_)
        self.spread_ = 0.0 if y.min() == y.max() else standardise(y)[2]
        self.scale_ = typical_gap(self.points_)
        return self

    def predict(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean (m,) and standard deviation (m,) at ``X`` (m, f)."""
        check_is_fitted(self, "surrogate_")
        X = as_features(X)
        mean, std = self.surrogate_.predict(X)
        gaps = gaps_to(self.points_, complete_inputs(X, self.flagged_))
        doubt = self.strength * self.spread_ * np.minimum(1.0, gaps / self.scale_)
        return mean, np.maximum(np.hypot(std, doubt), self.floor * self.spread_)

    def held_out(self) -> FloatArray:
        """``held_out()`` of the surrogate (n,); all NaN if it has no such method."""
        check_is_fitted(self, "surrogate_")
        surrogate = self.surrogate_
        if isinstance(surrogate, OutOfSample):
            return surrogate.held_out()
        return np.full(len(self.observed_[1]), np.nan)

    def beside(self, pending: FloatArray) -> Self:
        """A copy for which evaluations under way (p, f) are observed, with a typical outcome.

        Each counts as an observation of the median target: the constant liar of Ginsbourger et al.
        2010, who lie with the best, mean or worst one. The doubt ends there, so that not all
        workers try the same promising direction. From 256 observations on only the doubt ends, and
        the mean stays as it is.
        """
        check_is_fitted(self, "surrogate_")
        seen = copy.copy(self)
        seen.points_ = np.vstack([self.points_, complete_inputs(pending, self.flagged_)])
        X, y = self.observed_
        # The points above end the doubt; the rest is for the mean.
        if len(pending) and len(y) < _MANY_ROWS:
            supposed = np.full(len(pending), np.median(y))
            seen.surrogate_ = self._fit_copy(np.vstack([X, pending]), np.append(y, supposed))
        return seen

    def _fit_copy(self, X: FloatArray, y: FloatArray) -> Surrogate:
        surrogate = prepare(self.surrogate, self.random_state)
        surrogate.fit(X, y)
        return surrogate


def typical_gap(points: FloatArray) -> float:
    """Median distance between a point (n, f) and its nearest neighbour; 1 where it is 0."""
    if len(points) < 2:
        return 1.0
    between = _squared_distances(points, points)
    np.fill_diagonal(between, np.inf)
    gap = float(np.median(np.sqrt(between.min(axis=1))))
    largest = float(np.linalg.norm(points, axis=1).max())
    return gap if gap > _NO_GAP * largest else 1.0


def gaps_to(points: FloatArray, X: FloatArray) -> FloatArray:
    """Distance (m,) of each row of ``X`` (m, f) to the nearest of ``points`` (n, f)."""
    return np.asarray(np.sqrt(_squared_distances(X, points).min(axis=1)))


def _squared_distances(a: FloatArray, b: FloatArray) -> FloatArray:
    """Squared Euclidean distances (m, n) of ``a`` (m, f) and ``b`` (n, f), never negative."""
    square = (a**2).sum(axis=1)[:, None] + (b**2).sum(axis=1)[None, :] - 2.0 * (a @ b.T)
    # Rounding may leave less than 0 for a point and itself, and the root would be NaN.
    return np.asarray(np.maximum(square, 0.0))
