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
    from .memory import curves, meta_dataset_from_trials, read_task, record, write_history
    from .recipes import blended, ei_per_second, gbqr, pmf, surrogate, tst
    from .replaying import optimizer
    from .space import PyllSpace, is_space, translate
    from .trials import owns

import_when_used(
    __name__,
    {
        "algos": ["bandit", "boasf", "weighted"],
        "arm_report": ["arm_report"],
        "boasf": ["boasf_fmin"],
        "explain": ["explain"],
        "initial_design": ["INITIAL_DESIGN", "initial_trials"],
        "memory": ["curves", "meta_dataset_from_trials", "read_task", "record", "write_history"],
        "recipes": ["blended", "ei_per_second", "gbqr", "pmf", "surrogate", "tst"],
        "replaying": ["optimizer"],
        "space": ["PyllSpace", "is_space", "translate"],
        "trials": ["owns"],
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
