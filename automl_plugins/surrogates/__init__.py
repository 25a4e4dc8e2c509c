"""Surrogate models: ``fit(X, y)`` and ``predict(X) -> (mean, std)``, numpy in and numpy out."""

from typing import TYPE_CHECKING

from automl_plugins._imports import import_when_used

if TYPE_CHECKING:
    from automl_plugins.surrogates.averaged_process import AveragedProcess as AveragedProcess
    from automl_plugins.surrogates.base import Surrogate as Surrogate
    from automl_plugins.surrogates.base import SurrogateTemplate as SurrogateTemplate
    from automl_plugins.surrogates.blended import Blended as Blended
    from automl_plugins.surrogates.distance_aware import DistanceAware as DistanceAware
    from automl_plugins.surrogates.gaussian_process import GaussianProcess as GaussianProcess
    from automl_plugins.surrogates.local_process import LocalProcess as LocalProcess
    from automl_plugins.surrogates.quantile_boosting import QuantileBoosting as QuantileBoosting
    from automl_plugins.surrogates.random_forest import ExtraTrees as ExtraTrees
    from automl_plugins.surrogates.random_forest import RandomForest as RandomForest
    from automl_plugins.surrogates.seconds_and_success import Constraints as Constraints
    from automl_plugins.surrogates.seconds_and_success import Feasibility as Feasibility
    from automl_plugins.surrogates.seconds_and_success import RunningTime as RunningTime
    from automl_plugins.surrogates.two_stage import TwoStageTransfer as TwoStageTransfer
    from automl_plugins.surrogates.two_stage_sources import Sources as Sources

import_when_used(
    __name__,
    {
        "averaged_process": ["AveragedProcess"],
        "base": ["Surrogate", "SurrogateTemplate"],
        "blended": ["Blended"],
        "distance_aware": ["DistanceAware"],
        "gaussian_process": ["GaussianProcess"],
        "local_process": ["LocalProcess"],
        "quantile_boosting": ["QuantileBoosting"],
        "random_forest": ["ExtraTrees", "RandomForest"],
        "seconds_and_success": ["Constraints", "Feasibility", "RunningTime"],
        "two_stage": ["TwoStageTransfer"],
        "two_stage_sources": ["Sources"],
    },
)
