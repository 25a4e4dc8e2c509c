"""Optuna adapter: samplers that turn trials into the core's history and proposals into params."""

from typing import TYPE_CHECKING

from automl_plugins._lazy import import_when_used

from .._optional import require

require("optuna", "optuna")

if TYPE_CHECKING:
    from automl_plugins.proposers.explanation import Explanation

    from .arm_recipes import BanditSampler, WeightedModelSampler
    from .arm_report import arm_report
    from .boasf_sampler import BOASFSampler
    from .callbacks import NoImprovement
    from .explain import explain, source_shares
    from .filtering_pruner import SuccessiveFilteringPruner
    from .initial_design import INITIAL_DESIGN, enqueue_initial_design
    from .memory import (
        curves,
        is_space,
        meta_dataset_from_studies,
        read_task,
        record,
        write_history,
    )
    from .replaying import optimizer
    from .samplers import EIPerSecondSampler, GBQRSampler, SurrogateSampler
    from .transfer_samplers import BlendedSampler, PMFSampler, TSTSampler
    from .trials import SECONDS, owns

import_when_used(
    __name__,
    {
        "arm_recipes": ["BanditSampler", "WeightedModelSampler"],
        "arm_report": ["arm_report"],
        "boasf_sampler": ["BOASFSampler"],
        "callbacks": ["NoImprovement"],
        "explain": ["explain", "source_shares"],
        "automl_plugins.proposers.explanation": ["Explanation"],
        "filtering_pruner": ["SuccessiveFilteringPruner"],
        "initial_design": ["INITIAL_DESIGN", "enqueue_initial_design"],
        "memory": [
            "curves",
            "is_space",
            "meta_dataset_from_studies",
            "read_task",
            "record",
            "write_history",
        ],
        "replaying": ["optimizer"],
        "samplers": ["EIPerSecondSampler", "GBQRSampler", "SurrogateSampler"],
        "transfer_samplers": ["BlendedSampler", "PMFSampler", "TSTSampler"],
        "trials": ["SECONDS", "owns"],
    },
)

__all__ = [
    "INITIAL_DESIGN",
    "SECONDS",
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
    "is_space",
    "meta_dataset_from_studies",
    "optimizer",
    "owns",
    "read_task",
    "record",
    "source_shares",
    "write_history",
]
