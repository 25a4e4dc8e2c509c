"""Hyperopt adapter: choosing a model and tuning it; replays and comparisons of any search."""

from .._optional import require

require("hyperopt", "hyperopt")

from .algos import bandit, weighted
from .arm_report import arm_report
from .boasf import boasf_fmin
from .reading import curves, owns
from .replaying import optimizer

__all__ = ["arm_report", "bandit", "boasf_fmin", "curves", "optimizer", "owns", "weighted"]
