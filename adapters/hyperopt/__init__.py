"""Hyperopt adapter: choosing a model and tuning it; replays and comparisons of any search."""

from typing import TYPE_CHECKING

from automl_plugins._lazy import import_when_used
from automl_plugins._versions import require

require("hyperopt", needed_by=__name__, extra="hyperopt")

if TYPE_CHECKING:
    from ._pulls import arm_report
    from ._pyll import expression
    from .adapter import ADAPTER
    from .algos import bandit, boasf, weighted
    from .boasf import boasf_fmin
    from .initial_design import initial_trials
    from .memory import curves, meta_dataset_from_trials, record
    from .recipes import auto, blended, ei_per_second, gbqr, pmf, surrogate, tst
    from .replaying import optimizer
    from .space import PyllSpace, translate
    from .trials import INITIAL_DESIGN, explain, member_trust, source_shares

import_when_used(
    __name__,
    {
        "adapter": ["ADAPTER"],
        "algos": ["bandit", "boasf", "weighted"],
        "_pulls": ["arm_report"],
        "_pyll": ["expression"],
        "boasf": ["boasf_fmin"],
        "initial_design": ["initial_trials"],
        "memory": ["curves", "meta_dataset_from_trials", "record"],
        "recipes": ["auto", "blended", "ei_per_second", "gbqr", "pmf", "surrogate", "tst"],
        "replaying": ["optimizer"],
        "space": ["PyllSpace", "translate"],
        "trials": ["INITIAL_DESIGN", "explain", "member_trust", "source_shares"],
    },
)

__all__ = [
    "ADAPTER",
    "INITIAL_DESIGN",
    "PyllSpace",
    "arm_report",
    "auto",
    "bandit",
    "blended",
    "boasf",
    "boasf_fmin",
    "curves",
    "ei_per_second",
    "explain",
    "expression",
    "gbqr",
    "initial_trials",
    "member_trust",
    "meta_dataset_from_trials",
    "optimizer",
    "pmf",
    "record",
    "source_shares",
    "surrogate",
    "translate",
    "tst",
    "weighted",
]
