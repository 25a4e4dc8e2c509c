"""SMAC adapter: any facade to be replayed, any run history to be compared or remembered."""

from typing import TYPE_CHECKING

from automl_plugins._lazy import import_when_used

from .._optional import require

require("smac", "smac")

if TYPE_CHECKING:
    from .acquisition import EIPerSecond, QuantileBound
    from .cost_and_seconds import CostAndSecondsEncoder, CostEncoder
    from .gbqr_facade import GBQRFacade
    from .initial_design import KNNInitialDesign, MetaInitialDesign
    from .memory import (
        RecordCallback,
        curves,
        is_space,
        meta_dataset_from_runhistory,
        read_task,
        write_history,
    )
    from .proposing import ExplainCallback, ProposerConfigSelector
    from .replaying import optimizer
    from .surrogate_model import SurrogateModel
    from .trials import owns

import_when_used(
    __name__,
    {
        "acquisition": ["EIPerSecond", "QuantileBound"],
        "cost_and_seconds": ["CostAndSecondsEncoder", "CostEncoder"],
        "gbqr_facade": ["GBQRFacade"],
        "initial_design": ["KNNInitialDesign", "MetaInitialDesign"],
        "memory": [
            "RecordCallback",
            "curves",
            "is_space",
            "meta_dataset_from_runhistory",
            "read_task",
            "write_history",
        ],
        "proposing": ["ExplainCallback", "ProposerConfigSelector"],
        "replaying": ["optimizer"],
        "surrogate_model": ["SurrogateModel"],
        "trials": ["owns"],
    },
)

__all__ = [
    "CostAndSecondsEncoder",
    "CostEncoder",
    "EIPerSecond",
    "ExplainCallback",
    "GBQRFacade",
    "KNNInitialDesign",
    "MetaInitialDesign",
    "ProposerConfigSelector",
    "QuantileBound",
    "RecordCallback",
    "SurrogateModel",
    "curves",
    "is_space",
    "meta_dataset_from_runhistory",
    "optimizer",
    "owns",
    "read_task",
    "write_history",
]
