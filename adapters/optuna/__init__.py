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
    from .explain import explain
    from .filtering_pruner import SuccessiveFilteringPruner
    from .initial_design import INITIAL_DESIGN, enqueue_initial_design
    from .memory_io import is_space, meta_dataset_from_studies, read_task, write_history
    from .reading import curves, owns
    from .recipes import EIPerSecondSampler, GBQRSampler
    from .recording import record
    from .replaying import SECONDS, optimizer
    from .sampler import SurrogateSampler
    from .source_shares import source_shares
    from .transfer_recipes import BlendedSampler, PMFSampler, TSTSampler

import_when_used(
    __name__,
    {
        "arm_recipes": ["BanditSampler", "WeightedModelSampler"],
        "arm_report": ["arm_report"],
        "boasf_sampler": ["BOASFSampler"],
        "callbacks": ["NoImprovement"],
        "explain": ["explain"],
        "automl_plugins.proposers.explanation": ["Explanation"],
        "filtering_pruner": ["SuccessiveFilteringPruner"],
        "initial_design": ["INITIAL_DESIGN", "enqueue_initial_design"],
        "memory_io": ["is_space", "meta_dataset_from_studies", "read_task", "write_history"],
        "reading": ["curves", "owns"],
        "recipes": ["EIPerSecondSampler", "GBQRSampler"],
        "recording": ["record"],
        "replaying": ["SECONDS", "optimizer"],
        "sampler": ["SurrogateSampler"],
        "source_shares": ["source_shares"],
        "transfer_recipes": ["BlendedSampler", "PMFSampler", "TSTSampler"],
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
