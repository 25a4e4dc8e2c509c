"""Blended optimisation: predictions of earlier tasks, corrected by this search.

The idea is that of van Hoof (2018), thesis chapter 6: the meta-learner's vote is large at first
and fades while the surrogate's grows. The thesis gives no formula; this is the one used here.
Notation of this module::

    n    observations, y their losses as normal scores
    p    losses that the earlier tasks predict, in standard deviations of a task
    w    vote of p
    g    surrogate, fitted to y - w p
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from automl_plugins._arguments import check_finite
from automl_plugins.arrays import FloatArray
from automl_plugins.surrogates.base import (
    OutOfSample,
    Surrogate,
    as_features,
    as_training,
    complete_inputs,
    prepare,
)
from automl_plugins.surrogates.distance_aware import DistanceAware, gaps_to, typical_gap
from automl_plugins.surrogates.quantile_boosting import QuantileBoosting

Earlier = Callable[[FloatArray], FloatArray]

_NO_FLAGS = np.arange(0)
_FIRST_STD = 0.5  # before the first observation, when the mean alone decides


@dataclass(eq=False, repr=False)
class Blended(BaseEstimator):  # type: ignore[misc]
    """``mean = w p + g``: the surrogate g learns what the earlier tasks do not explain.

    ::

        w     = min(1, fade * slope)
        fade  = patience / (patience + n)
        slope = max(0, (sum dp dy + caution) / (sum dp dp + caution))

    ``dp`` and ``dy`` are the differences of p and y from their means over the observations. The
    slope is that of a regression of y on p; y are normal scores, so only ranks count. It starts at
    1, as if ``caution`` observations had shown that. Observations that rank the other way, or
    unlike p, bring it to 0, and with w = 0 this is the plain surrogate. Without observations the
    prediction is p.

    While p votes, ``std^2`` grows by ``fade (doubt min(1, u / scale))^2``, where u is the distance
    to the nearest observation, and ``scale`` the typical distance between observations. A wrong p
    leads to observations that are all alike and contradict nothing; this term leads away again.

    The surrogate learns a residual: an average of its predictions and p would water down what it
    finds out, and searches were worse on recorded tables of one and of twelve algorithms.

    Args:
        earlier: Predicts p (m,) from features (m, f); None for nothing.
        surrogate: g, with ``fit`` and ``predict`` returning (mean, std); copied. None takes the
            surrogate of the recipe ``gbqr``.
        patience: Observations after which the vote has halved.
        caution: Observations that the slope of 1 at the start is worth.
        doubt: Standard deviation of p far from all observations, at the start.
        name: Name of the earlier tasks in ``shares_``.
        random_state: Passed on to the surrogate.

    Attributes:
        shares_: The vote w by name, in [0, 1].
        vote_: w.
        surrogate_: g; None before the first observation.

    Example::

        model = Blended(earlier=lambda X: X[:, 0]).fit(X, y)
        mean, std = model.predict(X_new)
        print(model.shares_)
    """

    earlier: Earlier | None = None
    surrogate: Surrogate | None = None
    _: KW_ONLY
    patience: float = 4.0
    caution: float = 2.0
    doubt: float = 2.0
    name: str = "meta-learner"
    random_state: int | None = None

    def fit(self, X: FloatArray, y: FloatArray) -> Self:
        """Learn from features ``X`` (n, f) and losses ``y`` (n,) as normal scores, n >= 0.

        Raises:
            ValueError: For illegal arguments or data.
        """
        self.check_arguments()
        X, y = as_training(X, y, least=0)
        self.surrogate_, self.vote_ = None, 1.0
        if len(X):
            self._p = p = self._predict_earlier(X)
            self.vote_ = vote(y, p, self.patience, self.caution) if self.earlier else 0.0
            own = DistanceAware(QuantileBoosting()) if self.surrogate is None else self.surrogate
            self.surrogate_ = prepare(own, self.random_state)
            # The vote is decided first, by p alone: g learns what is left of y.
            self.surrogate_.fit(X, y - self.vote_ * p)
            self._points = complete_inputs(X, _NO_FLAGS)
            # With sqrt(fade): ``predict`` adds squares.
            self._spread = self.doubt * np.sqrt(self.patience / (self.patience + len(y)))
            self._scale = typical_gap(self._points)
        self.shares_: Mapping[str, float] = {self.name: self.vote_} if self.earlier else {}
        return self

    def predict(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean and standard deviation (m,) of the losses at features ``X`` (m, f)."""
        check_is_fitted(self, "vote_")
        X = as_features(X)
        if self.surrogate_ is None:
            return self._predict_earlier(X), np.full(len(X), _FIRST_STD)
        mean, std = self.surrogate_.predict(X)
        if self.vote_ > 0.0:
            mean = mean + self.vote_ * self._predict_earlier(X)
            gaps = gaps_to(self._points, complete_inputs(X, _NO_FLAGS))
            std = np.hypot(std, self._spread * np.minimum(1.0, gaps / self._scale))
        return mean, std

    def held_out(self) -> FloatArray:
        """Prediction (n,) for each row without it; NaN where g has none."""
        check_is_fitted(self, "vote_")
        if self.surrogate_ is None:
            return np.zeros(0)
        own = self.surrogate_
        rest = own.held_out() if isinstance(own, OutOfSample) else np.full(self._p.shape, np.nan)
        # p has never seen a row. The vote has, but is one number for all of them.
        return self.vote_ * self._p + rest

    def check_arguments(self) -> None:
        """Raise ValueError or TypeError for the first illegal argument."""
        for argument in ("patience", "caution", "doubt"):
            check_finite(argument, getattr(self, argument), positive=True)

    def _predict_earlier(self, X: FloatArray) -> FloatArray:
        return np.zeros(len(X)) if self.earlier is None else np.asarray(self.earlier(X))


def vote(y: FloatArray, p: FloatArray, patience: float, caution: float) -> float:
    """The vote w in [0, 1] of predictions ``p`` (n,) for losses ``y`` (n,), n >= 1."""
    dy, dp = y - y.mean(), p - p.mean()
    # ``caution`` keeps the slope at 1 if p is equal at all observations, or there is only one.
    slope = max(0.0, (dp @ dy + caution) / (dp @ dp + caution))
    return float(min(1.0, patience / (patience + len(y)) * slope))
