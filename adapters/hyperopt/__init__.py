"""Hyperopt adapter: choosing a model and tuning it; replays and comparisons of any search."""

from typing import TYPE_CHECKING

from automl_plugins._imports import import_when_used, require

require("hyperopt", needed_by=__name__, extra="hyperopt")

if TYPE_CHECKING:
    from ._pulls import arm_report as arm_report
    from .adapter import ADAPTER as ADAPTER
    from .algos import bandit as bandit
    from .algos import boasf as boasf
    from .algos import weighted as weighted
    from .boasf import boasf_fmin as boasf_fmin
    from .explain import explain as explain
    from .explain import member_trust as member_trust
    from .explain import source_shares as source_shares
    from .expressions import expression as expression
    from .initial_design import initial_trials as initial_trials
    from .memory import curves as curves
    from .memory import meta_dataset_from_trials as meta_dataset_from_trials
    from .memory import record as record
    from .recipes import auto as auto
    from .recipes import blended as blended
    from .recipes import ei_per_second as ei_per_second
    from .recipes import gbqr as gbqr
    from .recipes import pmf as pmf
    from .recipes import surrogate as surrogate
    from .recipes import tst as tst
    from .replaying import optimizer as optimizer
    from .space import PyllSpace as PyllSpace
    from .space import translate as translate
    from .trials import INITIAL_DESIGN as INITIAL_DESIGN

import_when_used(
    __name__,
    {
        "adapter": ["ADAPTER"],
        "algos": ["bandit", "boasf", "weighted"],
        "_pulls": ["arm_report"],
        "boasf": ["boasf_fmin"],
        "explain": ["explain", "member_trust", "source_shares"],
        "expressions": ["expression"],
        "initial_design": ["initial_trials"],
        "memory": ["curves", "meta_dataset_from_trials", "record"],
        "recipes": ["auto", "blended", "ei_per_second", "gbqr", "pmf", "surrogate", "tst"],
        "replaying": ["optimizer"],
        "space": ["PyllSpace", "translate"],
        "trials": ["INITIAL_DESIGN"],
    },
)
