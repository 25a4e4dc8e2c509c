"""Hyperopt adapter: choosing a model and tuning it; replays and comparisons of any search."""

from typing import TYPE_CHECKING

from automl_plugins._lazy import import_when_used

from .._optional import require

require("hyperopt", "hyperopt")

if TYPE_CHECKING:
    from .algos import bandit, boasf, weighted
    from .arm_report import arm_report
    from .boasf import boasf_fmin
    from .explain import explain
    from .initial_design import INITIAL_DESIGN, initial_trials
    from .memory_io import is_space, meta_dataset_from_trials, read_task, write_history
    from .reading import curves, owns
    from .recipes import blended, ei_per_second, gbqr, pmf, surrogate, tst
    from .recording import record
    from .replaying import optimizer
    from .space import PyllSpace, translate

import_when_used(
    __name__,
    {
        "algos": ["bandit", "boasf", "weighted"],
        "arm_report": ["arm_report"],
        "boasf": ["boasf_fmin"],
        "explain": ["explain"],
        "initial_design": ["INITIAL_DESIGN", "initial_trials"],
        "memory_io": ["is_space", "meta_dataset_from_trials", "read_task", "write_history"],
        "reading": ["curves", "owns"],
        "recipes": ["blended", "ei_per_second", "gbqr", "pmf", "surrogate", "tst"],
        "recording": ["record"],
        "replaying": ["optimizer"],
        "space": ["PyllSpace", "translate"],
    },
)

__all__ = [
    "INITIAL_DESIGN",
    "PyllSpace",
    "arm_report",
    "bandit",
    "blended",
    "boasf",
    "boasf_fmin",
    "curves",
    "ei_per_second",
    "explain",
    "gbqr",
    "initial_trials",
    "is_space",
    "meta_dataset_from_trials",
    "optimizer",
    "owns",
    "pmf",
    "read_task",
    "record",
    "surrogate",
    "translate",
    "tst",
    "weighted",
    "write_history",
]
