"""Optuna adapter: samplers that turn trials into the core's history and proposals into params."""

from .._optional import require

require("optuna", "optuna")

from .callbacks import NoImprovement
from .explain import Explanation, explain
from .recipes import EIPerSecondSampler, GBQRSampler
from .sampler import SurrogateSampler

__all__ = [
    "EIPerSecondSampler",
    "Explanation",
    "GBQRSampler",
    "NoImprovement",
    "SurrogateSampler",
    "explain",
]
