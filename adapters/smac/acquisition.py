"""Acquisition functions for SMAC's own config selector: a bound, and gain per second."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from smac.acquisition.function.abstract_acquisition_function import AbstractAcquisitionFunction
from smac.model.abstract_model import AbstractModel

from automl_plugins.proposers.acquisition import gbqr_median, lower_confidence_bound, weighted
from automl_plugins.spaces.vector_space import VectorSpace
from automl_plugins.surrogates.base import log_expected_improvement

from ._private import space_of

FloatArray = npt.NDArray[np.float64]

_BATCH = 1000  # random configurations of which the median bound is taken


class QuantileBound(AbstractAcquisitionFunction):
    """The negated lower bound of the cost, mean - beta std: GBQR's acquisition (thesis 5.3.2).

    Of a model that predicts ln seconds too (``CostAndSecondsEncoder``), GBQR-median (thesis
    eq. 5.2): how far the bound is better than that of the median random configuration, per
    second.

    Args:
        beta: Standard deviations between mean and bound; a model of a quantile needs none.

    Raises:
        ValueError: For a negative or infinite beta.

    Example::

        HyperparameterOptimizationFacade(scenario, train, acquisition_function=QuantileBound())
    """

    def __init__(self, beta: float = 1.0) -> None:
        super().__init__()
        if not (np.isfinite(beta) and beta >= 0):
            raise ValueError(f"beta must be finite and >= 0, got {beta!r}.")
        self.beta = float(beta)
        self._median: float | None = None

    @property
    def name(self) -> str:
        """Name of the function."""
        return "Quantile Bound"

    @property
    def meta(self) -> dict[str, Any]:
        """What SMAC stores of the function."""
        return {**super().meta, "beta": self.beta}

    def _update(self, **kwargs: Any) -> None:
        self._median = None

    def _compute(self, X: FloatArray) -> FloatArray:
        model = _model_of(self)
        bound, seconds = self._bound(model, X)
        if seconds is None:
            return bound[:, None]
        if self._median is None:  # kept until the next update, so that scores can be compared
            rng = np.random.default_rng(0)
            batch = VectorSpace(space_of(model)).sample(_BATCH, rng)
            self._median = float(np.median(self._bound(model, batch)[0]))
        return gbqr_median(bound, self._median, seconds)[:, None]

    def _bound(self, model: AbstractModel, X: FloatArray) -> tuple[FloatArray, FloatArray | None]:
        mean, variance = model.predict_marginalized(X)
        bound = lower_confidence_bound(mean[:, 0], np.sqrt(variance[:, 0]), self.beta)
        seconds = np.exp(_log_seconds(mean, variance)) if mean.shape[1] == 2 else None
        return bound, seconds


class EIPerSecond(AbstractAcquisitionFunction):
    """log(EI / seconds^kappa): expected improvement for the time that it takes (thesis 2.2.5).

    Unlike SMAC's ``EIPS`` it divides by seconds and not by their logarithm, which changes sign.
    It needs costs and ln seconds, as ``CostAndSecondsEncoder`` encodes and ``SurrogateModel`` (or
    SMAC's ``MultiObjectiveModel`` of a list of two) predicts them.

    Args:
        xi: Improvement of the encoded cost below which nothing is gained.
        cost_exponent: kappa, in [0, 1]; 0 ignores the seconds.
        cost_budget: Evaluated configurations over which kappa falls linearly to 0; None keeps it.

    Raises:
        ValueError: For an argument outside its range.

    Example::

        facade = HyperparameterOptimizationFacade(
            scenario,
            train,
            model=SurrogateModel(scenario.configspace, seed=scenario.seed),
            acquisition_function=EIPerSecond(),
            runhistory_encoder=CostAndSecondsEncoder(scenario),
        )
    """

    def __init__(
        self, xi: float = 0.0, *, cost_exponent: float = 1.0, cost_budget: int | None = None
    ) -> None:
        super().__init__()
        if not (np.isfinite(xi) and xi >= 0):
            raise ValueError(f"xi must be finite and >= 0, got {xi!r}.")
        if not 0.0 <= cost_exponent <= 1.0:
            raise ValueError(f"cost_exponent must lie in [0, 1], got {cost_exponent!r}.")
        if cost_budget is not None and cost_budget < 1:
            raise ValueError(f"cost_budget must be None or >= 1, got {cost_budget!r}.")
        self.xi = float(xi)
        self.cost_exponent = float(cost_exponent)
        self.cost_budget = cost_budget
        self._best: float | None = None
        self._n_evaluated = 0

    @property
    def name(self) -> str:
        """Name of the function."""
        return "Expected Improvement per Second"

    @property
    def meta(self) -> dict[str, Any]:
        """What SMAC stores of the function."""
        return {
            **super().meta,
            "xi": self.xi,
            "cost_exponent": self.cost_exponent,
            "cost_budget": self.cost_budget,
        }

    def _update(self, **kwargs: Any) -> None:
        self._best = float(kwargs["eta"])
        self._n_evaluated = int(kwargs.get("num_data", 0))

    def _compute(self, X: FloatArray) -> FloatArray:
        if self._best is None:
            raise ValueError("The best cost is unknown: call update(model, eta=...) first.")
        mean, variance = _model_of(self).predict_marginalized(X)
        if mean.shape[1] != 2:
            raise ValueError(
                "EIPerSecond needs predictions of cost and ln seconds, the model predicts"
                f" {mean.shape[1]} value(s): pass runhistory_encoder=CostAndSecondsEncoder("
                "scenario) and model=SurrogateModel(scenario.configspace)."
            )
        log_gain = log_expected_improvement(
            mean[:, 0], np.sqrt(variance[:, 0]), self._best, self.xi
        )
        budget = self.cost_budget
        left = 1.0 if budget is None else max(0.0, 1.0 - self._n_evaluated / budget)
        score = weighted(
            log_gain,
            log_seconds=_log_seconds(mean, variance),
            exponent=self.cost_exponent * left,
        )
        return np.maximum(score, np.finfo(np.float64).min)[:, None]


def _model_of(function: AbstractAcquisitionFunction) -> AbstractModel:
    if function.model is None:
        raise ValueError("The acquisition function has no model: call update(model, ...) first.")
    return function.model


def _log_seconds(mean: FloatArray, variance: FloatArray) -> FloatArray:
    """Log of the expected seconds (m,) of a log-normal, from the second column."""
    return np.asarray(mean[:, 1] + variance[:, 1] / 2.0)
