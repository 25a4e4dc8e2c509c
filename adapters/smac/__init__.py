"""SMAC adapter: any facade to be replayed, any run history to be compared or remembered."""

from typing import TYPE_CHECKING

from automl_plugins._lazy import import_when_used
from automl_plugins._versions import require

require("smac", needed_by=__name__, extra="smac")

if TYPE_CHECKING:
    from .adapter import ADAPTER
    from .encoders import CostAndSecondsEncoder, CostEncoder
    from .facades import AutoFacade, GBQRFacade
    from .initial_design import KNNInitialDesign, MetaInitialDesign
    from .memory import RecordCallback, curves, meta_dataset_from_runhistory
    from .model_parts import EIPerSecond, QuantileBound, SurrogateModel
    from .proposing import (
        ExplainCallback,
        ProposerConfigSelector,
        member_trust,
        source_shares,
    )
    from .replaying import optimizer

import_when_used(
    __name__,
    {
        "adapter": ["ADAPTER"],
        "encoders": ["CostAndSecondsEncoder", "CostEncoder"],
        "facades": ["AutoFacade", "GBQRFacade"],
        "initial_design": ["KNNInitialDesign", "MetaInitialDesign"],
        "memory": ["RecordCallback", "curves", "meta_dataset_from_runhistory"],
        "model_parts": ["EIPerSecond", "QuantileBound", "SurrogateModel"],
        "proposing": [
            "ExplainCallback",
            "ProposerConfigSelector",
            "member_trust",
            "source_shares",
        ],
        "replaying": ["optimizer"],
    },
)

__all__ = [
    "ADAPTER",
    "AutoFacade",
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
    "member_trust",
    "meta_dataset_from_runhistory",
    "optimizer",
    "source_shares",
]
