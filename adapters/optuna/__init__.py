"""Optuna adapter: samplers that turn trials into the core's history and proposals into params."""

from typing import TYPE_CHECKING

from automl_plugins._lazy import import_when_used
from automl_plugins._versions import require

require("optuna", needed_by=__name__, extra="optuna")

if TYPE_CHECKING:
    from automl_plugins.proposers.explanation import Explanation

    from .adapter import ADAPTER
    from .arm_recipes import BanditSampler, BOASFSampler, WeightedModelSampler
    from .arm_report import arm_report
    from .callbacks import NoImprovement
    from .explain import explain, member_trust, source_shares
    from .filtering_pruner import SuccessiveFilteringPruner
    from .initial_design import INITIAL_DESIGN, enqueue_initial_design
    from .memory import curves, meta_dataset_from_studies, record
    from .replaying import optimizer
    from .samplers import EIPerSecondSampler, GBQRSampler, SurrogateSampler
    from .transfer_samplers import AutoSampler, BlendedSampler, PMFSampler, TSTSampler
    from .trials import SECONDS

import_when_used(
    __name__,
    {
        "adapter": ["ADAPTER"],
        "arm_recipes": ["BOASFSampler", "BanditSampler", "WeightedModelSampler"],
        "arm_report": ["arm_report"],
        "callbacks": ["NoImprovement"],
        "explain": ["explain", "member_trust", "source_shares"],
        "automl_plugins.proposers.explanation": ["Explanation"],
        "filtering_pruner": ["SuccessiveFilteringPruner"],
        "initial_design": ["INITIAL_DESIGN", "enqueue_initial_design"],
        "memory": ["curves", "meta_dataset_from_studies", "record"],
        "replaying": ["optimizer"],
        "samplers": ["EIPerSecondSampler", "GBQRSampler", "SurrogateSampler"],
        "transfer_samplers": ["AutoSampler", "BlendedSampler", "PMFSampler", "TSTSampler"],
        "trials": ["SECONDS"],
    },
)

__all__ = [
    "ADAPTER",
    "INITIAL_DESIGN",
    "SECONDS",
    "AutoSampler",
    "BOASFSampler",
    "BanditSampler",
    "BlendedSampler",
    "EIPerSecondSampler",
    "Explanation",
    "GBQRSampler",
    "NoImprovement",
    "PMFSampler",
    "SuccessiveFilteringPruner",
    "SurrogateSampler",
    "TSTSampler",
    "WeightedModelSampler",
    "arm_report",
    "curves",
    "enqueue_initial_design",
    "explain",
    "member_trust",
    "meta_dataset_from_studies",
    "optimizer",
    "record",
    "source_shares",
]
