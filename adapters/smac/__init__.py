"""SMAC adapter: any facade to be replayed, any run history to be compared."""

from .._optional import require

require("smac", "smac")

from .reading import curves, owns
from .replaying import optimizer

__all__ = ["curves", "optimizer", "owns"]
