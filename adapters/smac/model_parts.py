"""Parts for SMAC's own config selector: encoders of costs, a model, acquisition functions."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from ConfigSpace import ConfigurationSpace
from scipy.special import logsumexp
from smac import Scenario
from smac.acquisition.function.abstract_acquisition_function import AbstractAcquisitionFunction
from smac.runhistory import TrialKey, TrialValue
from smac.runhistory.encoder import AbstractRunHistoryEncoder

from automl_plugins import surrogates
from automl_plugins._arguments import (
    check_choice,
    check_finite,
    check_integer,
    check_kind,
    check_share,
)
from automl_plugins.arrays import FloatArray
from automl_plugins.proposers.acquisition import (
    fade_exponent,
    log_excess,
    log_score,
    lower_confidence_bound,
)
from automl_plugins.proposers.targets import TARGETS, Target, transform
from automl_plugins.recipes import gbqr_surrogate
from automl_plugins.records.trial import Status
from automl_plugins.spaces.vector_space import VectorSpace
from automl_plugins.streams import Streams
from automl_plugins.surrogates.base import (
    Surrogate,
    check_surrogate,
    log_expected_improvement,
    prepare,
)

from ._private import Model, space_of
from .continuing import describe
from .rows import TICK
from .trials import canonical, check_one_objective, read_trial

_logger = logging.getLogger("smac.automl_plugins")

_BATCH = 1000  # random configurations for the median bound, whose rank is then exact to 1.6 %


# --- encoders -------------------------------------------------------------------------------


def as_bad_as_the_worst(costs: FloatArray) -> FloatArray:
    """Costs (n,) with those not finite replaced by the worst finite cost, or 0 without any."""
    finite = np.isfinite(costs)
    return np.where(finite, costs, costs[finite].max() if finite.any() else 0.0)


class CostEncoder(AbstractRunHistoryEncoder):
    """Costs as ``automl_plugins.proposers.targets`` transforms them, for ``runhistory_encoder=``.

    A trial that failed, or has an infinite cost, gets the worst cost of a success, not the
    scenario's crash cost, which would dwarf every measured cost.

    Args:
        scenario: The scenario, with one objective.
        target: ``"log_regret"``, ``"normal_scores"``, ``"standardize"`` or ``"raw"``.

    Raises:
        ValueError: For several objectives or an unknown target.

    Example::

        HyperparameterOptimizationFacade(
            scenario, train, runhistory_encoder=CostEncoder(scenario, target="normal_scores")
        )
    """

    def __init__(self, scenario: Scenario, *, target: Target = "log_regret") -> None:
        check_one_objective(type(self).__name__, scenario)
        check_choice("target", target, TARGETS)
        super().__init__(scenario)
        self.target = target

    @property
    def meta(self) -> dict[str, Any]:
        """What SMAC stores of the encoder."""
        return {**super().meta, "target": self.target}

    def transform(self, budget_subset: list[Any] | None = None) -> tuple[FloatArray, FloatArray]:
        """Configurations (n, d) followed by instance features, and targets (n, c).

        Args:
            budget_subset: The budgets whose trials are used; None takes all.
        """
        trials = self._get_considered_trials(budget_subset)
        # SMAC scales these separately, which makes them incomparable with the others.
        trials.update(self._get_timeout_trials(budget_subset))
        return self._build_matrix(trials)

    def transform_response_values(self, values: FloatArray) -> FloatArray:
        """Targets (n, 1) of the costs in column 0 of ``values``, which are NaN for failures."""
        costs = np.asarray(values[:, 0], dtype=np.float64)
        if not np.isfinite(costs).any():  # all have failed, and none is better than another
            return np.zeros((len(costs), 1))
        return transform(as_bad_as_the_worst(costs), self.target).values[:, None]

    def _build_matrix(
        self, trials: Mapping[TrialKey, TrialValue], store_statistics: bool = False
    ) -> tuple[FloatArray, FloatArray]:
        X = np.empty((len(trials), self._n_params + self._n_features))
        values = np.empty((len(trials), 2))  # cost and seconds
        for row, (key, value) in enumerate(trials.items()):
            config = self.runhistory.get_config(key.config_id)
            X[row, : self._n_params] = canonical(config)
            if self._n_features and self._instance_features is not None:
                X[row, self._n_params :] = self._instance_features[str(key.instance)]
            trial = read_trial(config, key, value)
            loss = trial.loss if trial.status == Status.COMPLETE else math.nan
            values[row] = loss, trial.seconds
        return X, self.transform_response_values(values)


class CostAndSecondsEncoder(CostEncoder):
    """Costs as in ``CostEncoder``, and ln seconds: two columns, for ``EIPerSecond``, see there.

    SMAC stores no running time of trials that crashed or ran out of time or memory: the time from
    start to end is taken. Unknown seconds (ask and tell without ``time``) become the median of the
    others, and seconds below a millisecond one millisecond. See ``CostEncoder`` for arguments and
    errors.

    Example::

        GBQRFacade(scenario, train, runhistory_encoder=CostAndSecondsEncoder(scenario))
    """

    def transform_response_values(self, values: FloatArray) -> FloatArray:
        """Targets (n, 2) of costs and seconds (n, 2), both NaN if unknown."""
        seconds = np.asarray(values[:, 1], dtype=np.float64)
        known = np.isfinite(seconds)
        usual = np.median(seconds[known]) if known.any() else 1.0  # or any constant
        seconds = np.maximum(np.where(known, seconds, usual), TICK)
        return np.column_stack([super().transform_response_values(values), np.log(seconds)])


# --- models ---------------------------------------------------------------------------------


class SurrogateModel(Model):
    """A surrogate with ``fit(X, y)`` and ``predict(X)``, for ``model=`` of a facade.

    Only ``BlackBoxFacade`` refuses it, because it takes Gaussian processes only.

    It sees the features of ``VectorSpace``: numbers on [0, 1], one-hot categories, NaN for
    inactive hyperparameters; then the features of the instance, if there are any. Trained on
    two columns, costs and ln seconds (``CostAndSecondsEncoder``), it predicts both: the second by
    a ``RunningTime``.

    Costs that are not finite, such as SMAC's crash cost, are replaced by the worst finite one.

    Args:
        configspace: The search space.
        surrogate: A surrogate, of which copies are fitted. None takes the surrogate of GBQR.
        instance_features: ``instance_features`` of the scenario.
        pca_components: Largest number of instance features; more are reduced by a PCA.
        seed: Seed of the fits, which are then reproducible.

    Raises:
        TypeError: If ``configspace`` is no search space, or the surrogate lacks ``fit`` or
            ``predict``.

    Example::

        model = SurrogateModel(scenario.configspace, RandomForest(), seed=scenario.seed)
        facade = HyperparameterOptimizationFacade(scenario, train, model=model)
    """

    def __init__(
        self,
        configspace: ConfigurationSpace,
        surrogate: Surrogate | None = None,
        *,
        instance_features: dict[str, list[int | float]] | None = None,
        pca_components: int | None = 7,
        seed: int = 0,
    ) -> None:
        allowed = "a search space first, scenario.configspace, then the surrogate"
        check_kind(type(self).__name__, configspace, ConfigurationSpace, allowed)
        surrogate = gbqr_surrogate() if surrogate is None else surrogate
        check_surrogate(surrogate)
        super().__init__(configspace, instance_features, pca_components, seed)
        self.surrogate = surrogate
        self._space = VectorSpace(configspace)
        self._streams = Streams(seed)
        self._fitted: Any = None
        self._running_time: surrogates.RunningTime | None = None
        self._warned = False

    @property
    def meta(self) -> dict[str, Any]:
        """What SMAC stores of the model."""
        return {**super().meta, "surrogate": describe(self.surrogate), "seed": self._seed}

    def _train(self, X: FloatArray, Y: FloatArray) -> Self:
        Y = Y.reshape(len(X), -1)  # MultiObjectiveModel passes single columns as vectors
        if Y.shape[1] > 2:
            raise ValueError(
                "SurrogateModel models a cost, or a cost and its seconds;"
                f" the encoder gave {Y.shape[1]} columns."
            )
        features, n = self._features(X), len(X)
        costs = np.array(Y[:, 0], dtype=np.float64)
        if not self._warned and n > 1 and not np.isfinite(costs).any():
            self._warned = True
            _logger.warning(
                "The runhistory encoder gave no finite cost, as happens when it scales by an"
                " infinite crash cost: pass runhistory_encoder=CostEncoder(scenario), or a"
                " scenario with a finite crash_cost."
            )
        # Seeds follow from the number of trials, so a continued run fits the same models.
        fitted = prepare(
            self.surrogate, self._streams.integer("surrogate", n), self._space.implied
        )
        self._fitted = fitted.fit(features, as_bad_as_the_worst(costs))
        self._running_time = None
        if Y.shape[1] == 2:
            model = surrogates.RunningTime(random_state=self._streams.integer("running_time", n))
            self._running_time = model.fit(features, np.exp(Y[:, 1]))  # takes logarithms itself
        return self

    def _predict(
        self, X: FloatArray, covariance_type: str | None = "diagonal"
    ) -> tuple[FloatArray, FloatArray | None]:
        if covariance_type not in (None, "std", "diagonal"):
            raise ValueError(
                "covariance_type must be None, 'std' or 'diagonal', for a surrogate predicts no"
                f" covariances; got {covariance_type!r}."
            )
        if self._fitted is None:
            raise ValueError("The model has to be trained before it can predict.")
        features = self._features(X)
        answers = [self._fitted.predict(features)]
        if self._running_time is not None:
            answers.append(self._running_time.predict(features))
        # Surrogates that predict only a bound have the deviation 0.
        pairs = [a if isinstance(a, tuple) else (a, np.zeros(len(X))) for a in answers]
        mean, std = (np.column_stack(c).astype(np.float64) for c in zip(*pairs, strict=True))
        if covariance_type is None:
            return mean, None
        return mean, std if covariance_type == "std" else std**2

    def predict_marginalized(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean and variance (m, outputs) at ``X`` (m, d), over all instances.

        SMAC's own method predicts each configuration separately, and only one output. Here seconds
        are averaged over the instances, not their logarithms: the second output is the logarithm
        of the expected mean seconds, with the smallest variance that SMAC allows.
        """
        if self._instance_features is None or X.ndim != 2 or X.shape[1] != self._n_hps:
            return super().predict_marginalized(X)  # which refuses other shapes
        instances = np.array(list(self._instance_features.values()), dtype=np.float64)
        m, n = len(X), len(instances)
        # (m n, d + features): the first configuration on all instances, then the second, ...
        pairs = np.hstack([np.repeat(X, n, axis=0), np.tile(instances, (m, 1))])
        mean, variance = self.predict(pairs)
        assert variance is not None
        mean, variance = mean.reshape(m, n, -1), variance.reshape(m, n, -1)
        # Var[1/n sum X_i] = 1/n^2 sum Var[X_i] for independent X_i, as in SMAC.
        over_all, uncertain = mean.mean(axis=1), variance.sum(axis=1) / n**2
        if self._running_time is not None:
            expected = mean[:, :, 1] + variance[:, :, 1] / 2.0  # log-normal
            over_all[:, 1], uncertain[:, 1] = logsumexp(expected, axis=1) - np.log(n), 0.0
        # As in SMAC, whose EI warns of deviations of 0.
        return over_all, np.maximum(uncertain, self._var_threshold)

    def _features(self, X: FloatArray) -> FloatArray:
        vectors, instances = X[:, : self._n_hps], X[:, self._n_hps :]
        return np.hstack([self._space.features(np.asarray(vectors, dtype=np.float64)), instances])


# --- acquisition functions ------------------------------------------------------------------


class QuantileBound(AbstractAcquisitionFunction):
    """The negated lower bound of the cost, mean - beta std: GBQR's acquisition (thesis 5.3.2).

    If the model predicts ln seconds too (``CostAndSecondsEncoder``), GBQR-median (thesis
    eq. 5.2): the improvement of the bound over that of the median random configuration, per
    second.

    Args:
        beta: Standard deviations between mean and bound; a model of a quantile needs none.

    Raises:
        ValueError: For a negative or infinite beta.

    Example::

        HyperparameterOptimizationFacade(scenario, train, acquisition_function=QuantileBound())
    """

    name = "Quantile Bound"

    def __init__(self, beta: float = 1.0) -> None:
        super().__init__()
        check_finite("beta", beta)
        self.beta = float(beta)
        self._median: float | None = None

    @property
    def meta(self) -> dict[str, Any]:
        """What SMAC stores of the function."""
        return {**super().meta, "beta": self.beta}

    def _update(self, **kwargs: Any) -> None:
        self._median = None

    def _compute(self, X: FloatArray) -> FloatArray:
        bound, log_seconds = self._bound(X)
        if log_seconds is None:
            return bound[:, None]
        if self._median is None:  # kept until the next update, so that scores are comparable
            assert self.model is not None
            space = VectorSpace(space_of(self.model))
            batch = space.sample(_BATCH, np.random.default_rng(0))  # the same ones in each run
            self._median = float(np.median(self._bound(batch)[0]))
        return np.exp(log_excess(bound, self._median) - log_seconds)[:, None]

    def _bound(self, X: FloatArray) -> tuple[FloatArray, FloatArray | None]:
        mean, std, log_seconds = _predict(self, X)
        return lower_confidence_bound(mean, std, self.beta), log_seconds


class EIPerSecond(AbstractAcquisitionFunction):
    """log(EI / seconds^kappa): expected improvement for the time that it takes (thesis 2.2.5).

    Unlike SMAC's ``EIPS`` it divides by seconds and not by their logarithm, which changes sign.
    It needs costs and ln seconds, as ``CostAndSecondsEncoder`` encodes and ``SurrogateModel`` (or
    SMAC's ``MultiObjectiveModel`` of a list of two) predicts them; ``GBQRFacade`` adds both. Over
    several instances ``MultiObjectiveModel`` averages ln seconds, ``SurrogateModel`` the seconds.

    Args:
        xi: Improvements of the encoded cost count only beyond this.
        cost_exponent: kappa, in [0, 1]; 0 ignores the seconds.
        cost_budget: Evaluated configurations over which kappa falls linearly to 0; None keeps it.

    Raises:
        ValueError: For an argument outside its range.

    Example::

        facade = GBQRFacade(scenario, train, acquisition_function=EIPerSecond())
    """

    name = "Expected Improvement per Second"

    def __init__(
        self, xi: float = 0.0, *, cost_exponent: float = 1.0, cost_budget: int | None = None
    ) -> None:
        super().__init__()
        check_finite("xi", xi)
        check_share("cost_exponent", cost_exponent)
        check_integer("cost_budget", cost_budget, 1, optional=True)
        self.xi = float(xi)
        self.cost_exponent = float(cost_exponent)
        self.cost_budget = cost_budget
        self._best: float | None = None
        self._n_evaluated = 0

    @property
    def meta(self) -> dict[str, Any]:
        """What SMAC stores of the function."""
        own = {"xi": self.xi, "cost_exponent": self.cost_exponent, "cost_budget": self.cost_budget}
        return {**super().meta, **own}

    def _update(self, **kwargs: Any) -> None:
        self._best = float(kwargs["eta"])
        self._n_evaluated = int(kwargs.get("num_data", 0))

    def _compute(self, X: FloatArray) -> FloatArray:
        if self._best is None:
            raise ValueError("The best cost is unknown: call update(model, eta=...) first.")
        mean, std, log_seconds = _predict(self, X)
        if log_seconds is None:
            raise ValueError(
                "EIPerSecond needs predictions of cost and ln seconds, but the model predicts no"
                " seconds: pass runhistory_encoder=CostAndSecondsEncoder(scenario) and"
                " model=SurrogateModel(scenario.configspace)."
            )
        log_gain = log_expected_improvement(mean, std, self._best, self.xi)
        exponent = fade_exponent(self.cost_exponent, self._n_evaluated, self.cost_budget)
        score = log_score(log_gain, log_seconds=log_seconds, exponent=exponent)
        return np.maximum(score, np.finfo(np.float64).min)[:, None]


def _predict(
    function: AbstractAcquisitionFunction, X: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray | None]:
    """Mean and deviation (m,) of the cost, and the log of the expected seconds if predicted."""
    if function.model is None:
        raise ValueError("The acquisition function has no model: call update(model, ...) first.")
    mean, variance = function.model.predict_marginalized(X)
    log_seconds = mean[:, 1] + variance[:, 1] / 2.0 if mean.shape[1] == 2 else None  # log-normal
    return mean[:, 0], np.sqrt(variance[:, 0]), log_seconds
