"""Optuna adapter: samplers that turn trials into the core's history and proposals into params."""

from typing import TYPE_CHECKING

from automl_plugins._imports import import_when_used, require

require("optuna", needed_by=__name__, extra="optuna")

# For type checkers, which cannot follow ``import_when_used``; both have the same names.
if TYPE_CHECKING:
    from automl_plugins.proposers.explanation import Explanation as Explanation

    from .adapter import ADAPTER as ADAPTER
    from .arm_recipes import BanditSampler as BanditSampler
    from .arm_recipes import BOASFSampler as BOASFSampler
    from .arm_recipes import WeightedModelSampler as WeightedModelSampler
    from .callbacks import NoImprovement as NoImprovement
    from .callbacks import record as record
    from .explain import arm_report as arm_report
    from .explain import explain as explain
    from .explain import member_trust as member_trust
    from .explain import source_shares as source_shares
    from .filtering_pruner import SuccessiveFilteringPruner as SuccessiveFilteringPruner
    from .initial_design import INITIAL_DESIGN as INITIAL_DESIGN
    from .initial_design import enqueue_initial_design as enqueue_initial_design
    from .memory import curves as curves
    from .memory import meta_dataset_from_studies as meta_dataset_from_studies
    from .replaying import optimizer as optimizer
    from .samplers import EIPerSecondSampler as EIPerSecondSampler
    from .samplers import GBQRSampler as GBQRSampler
    from .samplers import SurrogateSampler as SurrogateSampler
    from .transfer_samplers import AutoSampler as AutoSampler
    from .transfer_samplers import BlendedSampler as BlendedSampler
    from .transfer_samplers import PMFSampler as PMFSampler
    from .transfer_samplers import TSTSampler as TSTSampler
    from .trials import SECONDS as SECONDS

import_when_used(
    __name__,
    {
        "adapter": ["ADAPTER"],
        "arm_recipes": ["BOASFSampler", "BanditSampler", "WeightedModelSampler"],
        "callbacks": ["NoImprovement", "record"],
        "explain": ["arm_report", "explain", "member_trust", "source_shares"],
        "automl_plugins.proposers.explanation": ["Explanation"],
        "filtering_pruner": ["SuccessiveFilteringPruner"],
        "initial_design": ["INITIAL_DESIGN", "enqueue_initial_design"],
        "memory": ["curves", "meta_dataset_from_studies"],
        "replaying": ["optimizer"],
        "samplers": ["EIPerSecondSampler", "GBQRSampler", "SurrogateSampler"],
        "transfer_samplers": ["AutoSampler", "BlendedSampler", "PMFSampler", "TSTSampler"],
        "trials": ["SECONDS"],
    },
)
