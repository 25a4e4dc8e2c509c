"""Surrogate models: ``fit(X, y)`` and ``predict(X) -> (mean, std)``, numpy in and numpy out."""

from typing import TYPE_CHECKING

from automl_plugins._lazy import import_when_used

if TYPE_CHECKING:
    from automl_plugins.surrogates.averaged_process import AveragedProcess
    from automl_plugins.surrogates.base import Surrogate, SurrogateTemplate
    from automl_plugins.surrogates.blended import Blended
    from automl_plugins.surrogates.distance_aware import DistanceAware
    from automl_plugins.surrogates.gaussian_process import GaussianProcess
    from automl_plugins.surrogates.quantile_boosting import QuantileBoosting
    from automl_plugins.surrogates.random_forest import ExtraTrees, RandomForest
    from automl_plugins.surrogates.seconds_and_success import Feasibility, RunningTime
    from automl_plugins.surrogates.two_stage import TwoStageTransfer
    from automl_plugins.surrogates.two_stage_sources import Sources

import_when_used(
    __name__,
    {
        "averaged_process": ["AveragedProcess"],
        "base": ["Surrogate", "SurrogateTemplate"],
        "blended": ["Blended"],
        "distance_aware": ["DistanceAware"],
        "gaussian_process": ["GaussianProcess"],
        "quantile_boosting": ["QuantileBoosting"],
        "random_forest": ["ExtraTrees", "RandomForest"],
        "seconds_and_success": ["Feasibility", "RunningTime"],
        "two_stage": ["TwoStageTransfer"],
        "two_stage_sources": ["Sources"],
    },
)

__all__ = [
    "AveragedProcess",
    "Blended",
    "DistanceAware",
    "ExtraTrees",
    "Feasibility",
    "GaussianProcess",
    "QuantileBoosting",
    "RandomForest",
    "RunningTime",
    "Sources",
    "Surrogate",
    "SurrogateTemplate",
    "TwoStageTransfer",
]
