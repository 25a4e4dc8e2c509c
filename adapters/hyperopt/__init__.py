"""Hyperopt adapter: any suggest function to be replayed, any Trials to be compared."""

from .._optional import require

require("hyperopt", "hyperopt")

from .reading import curves, owns
from .replaying import optimizer

__all__ = ["curves", "optimizer", "owns"]
