"""``SurrogateModel``: any surrogate of the core as a model of SMAC."""

from __future__ import annotations

import logging
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from ConfigSpace import ConfigurationSpace
from smac.model.abstract_model import AbstractModel

from automl_plugins.recipes import gbqr_surrogate
from automl_plugins.spaces.vector_space import VectorSpace
from automl_plugins.streams import Streams
from automl_plugins.surrogates import RunningTime
from automl_plugins.surrogates.base import Surrogate, check_surrogate, reseed

from ._meta import described

FloatArray = npt.NDArray[np.float64]

_logger = logging.getLogger("smac.automl_plugins")


class SurrogateModel(AbstractModel):
    """A surrogate with ``fit(X, y)`` and ``predict(X)``, for ``model=`` of a facade.

    ``BlackBoxFacade`` alone refuses it: it takes Gaussian processes only.

    It sees the features of ``VectorSpace``: numbers on [0, 1], categories one by one, inactive
    hyperparameters as NaN; after them the features of the instance, if there are any. Trained on
    two columns, costs and ln seconds (``CostAndSecondsEncoder``), it predicts both: the second by
    a ``RunningTime``.

    Costs that are not finite, such as SMAC's crash cost, count as the worst finite one.

    Args:
        configspace: The search space.
        surrogate: Copied, never fitted itself. None takes that of GBQR.
        instance_features: Those of the scenario.
        pca_components: Most features of an instance; more are reduced by a PCA.
        seed: Seed of the fits: equal data, equal model.

    Raises:
        TypeError: For a surrogate without ``fit`` and ``predict``.

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
        surrogate = gbqr_surrogate() if surrogate is None else surrogate
        check_surrogate(surrogate)
        super().__init__(
            configspace,
            instance_features=instance_features,
            pca_components=pca_components,
            seed=seed,
        )
        self.surrogate = surrogate
        self._space = VectorSpace(configspace)
        self._streams = Streams(seed)
        self._fitted: Any = None
        self._running_time: RunningTime | None = None
        self._warned = False

    @property
    def meta(self) -> dict[str, Any]:
        """What SMAC stores of the model."""
        return {**super().meta, "surrogate": described(self.surrogate), "seed": self._seed}

    def _train(self, X: FloatArray, Y: FloatArray) -> Self:
        Y = Y.reshape(len(X), -1)  # MultiObjectiveModel passes on single columns, flat
        if Y.shape[1] > 2:
            raise ValueError(
                "SurrogateModel models a cost, or a cost and its seconds;"
                f" the encoder gave {Y.shape[1]} columns."
            )
        features, n = self._features(X), len(X)
        costs = self._finite(np.array(Y[:, 0], dtype=np.float64))
        fitted = reseed(self.surrogate, self._streams.integer("surrogate", n))
        self._fitted = fitted.fit(features, costs)
        self._running_time = None
        if Y.shape[1] == 2:
            model = RunningTime(random_state=self._streams.integer("running_time", n))
            self._running_time = model.fit(features, np.exp(Y[:, 1]))
        return self

    def _predict(
        self, X: FloatArray, covariance_type: str | None = "diagonal"
    ) -> tuple[FloatArray, FloatArray | None]:
        if covariance_type not in (None, "std", "diagonal"):
            raise ValueError(
                "covariance_type must be None, 'std' or 'diagonal': a surrogate knows no"
                f" covariances, got {covariance_type!r}."
            )
        if self._fitted is None:
            raise ValueError("The model has to be trained before it can predict.")
        features = self._features(X)
        answers = [self._fitted.predict(features)]
        if self._running_time is not None:
            answers.append(self._running_time.predict(features))
        # A bare bound knows no deviation.
        pairs = [a if isinstance(a, tuple) else (a, np.zeros(len(X))) for a in answers]
        mean = np.column_stack([np.asarray(m, dtype=np.float64) for m, _ in pairs])
        std = np.column_stack([np.asarray(s, dtype=np.float64) for _, s in pairs])
        if covariance_type is None:
            return mean, None
        return mean, std if covariance_type == "std" else std**2

    def predict_marginalized(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean and variance (m, outputs) at ``X`` (m, d), over all instances.

        SMAC's own method asks for each configuration by itself, and knows one output.
        """
        if self._instance_features is None or X.ndim != 2 or X.shape[1] != self._n_hps:
            return super().predict_marginalized(X)
        instances = np.array(list(self._instance_features.values()), dtype=np.float64)
        m, n = len(X), len(instances)
        pairs = np.hstack([np.repeat(X, n, axis=0), np.tile(instances, (m, 1))])
        mean, variance = self.predict(pairs)
        assert variance is not None
        # Var[1/n sum X_i] = 1/n^2 sum Var[X_i] for independent X_i, as SMAC has it.
        variance = variance.reshape(m, n, -1).sum(axis=1) / n**2
        return mean.reshape(m, n, -1).mean(axis=1), np.maximum(variance, self._var_threshold)

    def _features(self, X: FloatArray) -> FloatArray:
        vectors, instances = X[:, : self._n_hps], X[:, self._n_hps :]
        return np.hstack([self._space.features(np.asarray(vectors, dtype=np.float64)), instances])

    def _finite(self, costs: FloatArray) -> FloatArray:
        finite = np.isfinite(costs)
        if finite.all():
            return costs
        if not self._warned and not finite.any() and len(costs) > 1:
            self._warned = True
            _logger.warning(
                "The runhistory encoder gave no finite cost, for scaling by an infinite crash cost"
                " leaves none: pass runhistory_encoder=CostEncoder(scenario), or a scenario with a"
                " finite crash_cost."
            )
        worst = float(costs[finite].max()) if finite.any() else 0.0
        return np.where(finite, costs, worst)
