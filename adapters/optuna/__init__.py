"""Optuna adapter: samplers that turn trials into the core's history and proposals into params."""

from .._optional import require

require("optuna", "optuna")

from .callbacks import NoImprovement
from .explain import Explanation, explain
from .reading import curves, owns
from .recipes import EIPerSecondSampler, GBQRSampler
from .replaying import SECONDS, optimizer
from .sampler import SurrogateSampler

__all__ = [
    "SECONDS",
    "EIPerSecondSampler",
    "Explanation",
    "GBQRSampler",
    "NoImprovement",
    "SurrogateSampler",
    "curves",
    "explain",
    "optimizer",
    "owns",
]
