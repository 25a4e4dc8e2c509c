"""Run-history encoders: costs as the proposers transform them, and the logarithms of seconds."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from smac import Scenario
from smac.runhistory import TrialKey, TrialValue
from smac.runhistory.encoder import AbstractRunHistoryEncoder

from automl_plugins._arguments import check_choice
from automl_plugins.arrays import FloatArray
from automl_plugins.proposers.targets import TARGETS, Target, transform
from automl_plugins.records.trial import Status

from .rows import TICK
from .trials import canonical, check_one_objective, read_trial


def as_bad_as_the_worst(costs: FloatArray) -> FloatArray:
    """Costs (n,), in which the worst finite one, 0 without any, replaces those not finite."""
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
        """Targets (n, 1) of costs, the first column, that are NaN where a trial failed."""
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

    SMAC stores no running time of trials that crashed or ran out of time or memory: their seconds
    are those from start to end. Unknown seconds (ask and tell without ``time``) become the median
    of the others, and seconds below a millisecond a millisecond. Arguments and errors are those of
    ``CostEncoder``.

    Example::

        GBQRFacade(scenario, train, runhistory_encoder=CostAndSecondsEncoder(scenario))
    """

    def transform_response_values(self, values: FloatArray) -> FloatArray:
        """Targets (n, 2) of costs and seconds (n, 2) that are NaN where they are unknown."""
        seconds = np.asarray(values[:, 1], dtype=np.float64)
        known = np.isfinite(seconds)
        usual = np.median(seconds[known]) if known.any() else 1.0  # any: a constant says nothing
        seconds = np.maximum(np.where(known, seconds, usual), TICK)
        return np.column_stack([super().transform_response_values(values), np.log(seconds)])
