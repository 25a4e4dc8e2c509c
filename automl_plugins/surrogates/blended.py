"""Blended optimisation: what earlier tasks predict, corrected by what the search finds.

The idea is that of van Hoof (2018), thesis chapter 6: the meta-learner's vote is large at first
and fades while the surrogate's grows. The thesis gives no formula; this is the one used here.
Notation of this module::

    n    observations, y their losses as normal scores
    p    losses that the earlier tasks predict, in standard deviations of a task
    w    vote of p
    g    surrogate, fitted to y - w p
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from automl_plugins.surrogates.base import FloatArray, validated
from automl_plugins.surrogates.distance_aware import DistanceAware
from automl_plugins.surrogates.quantile_boosting import QuantileBoosting
from automl_plugins.surrogates.rank_agreement import discordance

Earlier = Callable[[FloatArray], FloatArray]

_AGREEMENT = 0.5  # tau_0
_FIRST_STD = 0.5  # before the first observation, when nothing is weighed against it


class Blended(BaseEstimator):  # type: ignore[misc]
    """``mean = w p + g``: the surrogate g learns what the earlier tasks do not explain.

    ::

        w     = min(1, fade * trust * slope)
        fade  = patience / (patience + n)
        trust = max(0, min(1, (n tau + caution tau_0) / ((n + caution) tau_0)))
        slope = max(0, (sum dp dy + caution) / (sum dp dp + caution))

    ``tau`` is the rank agreement of p and y, 1 - 2 x discordant share of the pairs; ``dp`` and
    ``dy`` are differences from their means. Both factors start at what an agreeing memory gives
    (tau_0 = 1/2, slope 1, as if seen ``caution`` times), and the more observations contradict it,
    the smaller they are: at w = 0 this is the plain surrogate. Without observations the
    prediction is p.

    A residual, not an average of two predictions: averaged with p, the surrogate's finds of its
    own are watered down, and the search was worse on all recorded tables.

    Args:
        earlier: Predicts p (m,) from features (m, f); None for nothing.
        surrogate: g, with ``fit`` and ``predict`` returning (mean, std); copied. None takes that
            of GBQR.
        patience: Observations after which the vote has halved.
        caution: Observations that the start of trust and slope is worth.
        name: Name of the first voter in ``shares_``.
        random_state: Passed on to the surrogate.

    Attributes:
        shares_: The vote w by name, in [0, 1].
        agreement_: tau; NaN before there are two observations.
        surrogate_: g; None before the first observation.
    """

    def __init__(
        self,
        earlier: Earlier | None = None,
        surrogate: Any = None,
        *,
        patience: float = 8.0,
        caution: float = 5.0,
        name: str = "meta-learner",
        random_state: int | None = None,
    ) -> None:
        self.earlier = earlier
        self.surrogate = surrogate
        self.patience = patience
        self.caution = caution
        self.name = name
        self.random_state = random_state

    def fit(self, X: FloatArray, y: FloatArray) -> Self:
        """Learn from features ``X`` (n, f) and losses ``y`` (n,) as normal scores, n >= 0.

        Raises:
            ValueError: For illegal arguments or data.
        """
        self.check_arguments()
        X, y = np.asarray(X, dtype=np.float64), np.asarray(y, dtype=np.float64)
        self.surrogate_ = None
        self.agreement_ = np.nan
        if len(X) == 0 and y.shape == (0,):
            self.vote_ = 1.0
        else:
            X, y = validated(X, y)
            p = self._predicted(X)
            if len(y) > 1:
                self.agreement_ = 1.0 - 2.0 * float(discordance(y, p[None])[0])
            self.vote_ = vote(y, p, self.agreement_, self.patience, self.caution)
            self.surrogate_ = self._fresh().fit(X, y - self.vote_ * p)
        self.shares_: Mapping[str, float] = {self.name: self.vote_} if self.earlier else {}
        return self

    def predict(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean and standard deviation (m,) of the losses at features ``X`` (m, f)."""
        check_is_fitted(self, "vote_")
        X, _ = validated(X)
        if self.surrogate_ is None:
            return self._predicted(X), np.full(len(X), _FIRST_STD)
        mean, std = self.surrogate_.predict(X)
        if self.vote_ > 0.0:
            mean = mean + self.vote_ * self._predicted(X)
        return mean, std

    def check_arguments(self) -> None:
        """Raise ValueError for the first argument outside its range."""
        for argument in ("patience", "caution"):
            value = getattr(self, argument)
            if not 0.0 < value < np.inf:
                raise ValueError(f"{argument} must be positive and finite, got {value!r}.")

    def _predicted(self, X: FloatArray) -> FloatArray:
        return np.zeros(len(X)) if self.earlier is None else np.asarray(self.earlier(X))

    def _fresh(self) -> Any:
        if self.surrogate is None:
            made: Any = DistanceAware(QuantileBoosting())
        else:
            made = copy.deepcopy(self.surrogate)
        if hasattr(made, "random_state"):
            made.random_state = self.random_state
        return made


def vote(y: FloatArray, p: FloatArray, agreement: float, patience: float, caution: float) -> float:
    """The vote w in [0, 1] of predictions ``p`` (n,) for losses ``y`` (n,), n >= 1.

    Args:
        y: Observed losses as normal scores.
        p: Predicted losses in standard deviations.
        agreement: Their tau; NaN counts as nothing seen.
        patience: See ``Blended``.
        caution: See ``Blended``.
    """
    n = len(y)
    tau = _AGREEMENT if np.isnan(agreement) else agreement
    trust = (n * tau + caution * _AGREEMENT) / ((n + caution) * _AGREEMENT)
    dy, dp = y - y.mean(), p - p.mean()
    slope = max(0.0, (dp @ dy + caution) / (dp @ dp + caution))
    fade = patience / (patience + n)
    return float(min(1.0, fade * np.clip(trust, 0.0, 1.0) * slope))
