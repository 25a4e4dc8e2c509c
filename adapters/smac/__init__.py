"""SMAC adapter: any facade to be replayed, any run history to be compared or remembered."""

from typing import TYPE_CHECKING

from automl_plugins._lazy import import_when_used
from automl_plugins._versions import require

require("smac", needed_by=__name__, extra="smac")

if TYPE_CHECKING:
    from .acquisition import EIPerSecond, QuantileBound
    from .adapter import ADAPTER
    from .cost_and_seconds import CostAndSecondsEncoder, CostEncoder
    from .gbqr_facade import GBQRFacade
    from .initial_design import KNNInitialDesign, MetaInitialDesign
    from .memory import RecordCallback, curves, meta_dataset_from_runhistory
    from .proposing import ExplainCallback, ProposerConfigSelector
    from .replaying import optimizer
    from .surrogate_model import SurrogateModel

import_when_used(
    __name__,
    {
        "adapter": ["ADAPTER"],
        "acquisition": ["EIPerSecond", "QuantileBound"],
        "cost_and_seconds": ["CostAndSecondsEncoder", "CostEncoder"],
        "gbqr_facade": ["GBQRFacade"],
        "initial_design": ["KNNInitialDesign", "MetaInitialDesign"],
        "memory": ["RecordCallback", "curves", "meta_dataset_from_runhistory"],
        "proposing": ["ExplainCallback", "ProposerConfigSelector"],
        "replaying": ["optimizer"],
        "surrogate_model": ["SurrogateModel"],
    },
)

__all__ = [
    "ADAPTER",
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
    "meta_dataset_from_runhistory",
    "optimizer",
]
