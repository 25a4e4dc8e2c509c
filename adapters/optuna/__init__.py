"""Optuna adapter: samplers that turn trials into the core's history and proposals into params."""

from .._optional import require

require("optuna", "optuna")

from .arm_recipes import BanditSampler, WeightedModelSampler
from .arm_report import arm_report
from .boasf_sampler import BOASFSampler
from .callbacks import NoImprovement
from .explain import Explanation, explain
from .filtering_pruner import SuccessiveFilteringPruner
from .reading import curves, owns
from .recipes import EIPerSecondSampler, GBQRSampler
from .replaying import SECONDS, optimizer
from .sampler import SurrogateSampler

__all__ = [
    "SECONDS",
    "BOASFSampler",
    "BanditSampler",
    "EIPerSecondSampler",
    "Explanation",
    "GBQRSampler",
    "NoImprovement",
    "SuccessiveFilteringPruner",
    "SurrogateSampler",
    "WeightedModelSampler",
    "arm_report",
    "curves",
    "explain",
    "optimizer",
    "owns",
]
