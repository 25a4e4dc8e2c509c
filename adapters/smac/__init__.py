"""SMAC adapter: any facade to be replayed, any run history to be compared or remembered."""

from typing import TYPE_CHECKING

from automl_plugins._imports import import_when_used, require

require("smac", needed_by=__name__, extra="smac")

if TYPE_CHECKING:
    from .adapter import ADAPTER as ADAPTER
    from .facades import AutoFacade as AutoFacade
    from .facades import GBQRFacade as GBQRFacade
    from .initial_design import KNNInitialDesign as KNNInitialDesign
    from .initial_design import MetaInitialDesign as MetaInitialDesign
    from .memory import RecordCallback as RecordCallback
    from .memory import curves as curves
    from .memory import meta_dataset_from_runhistory as meta_dataset_from_runhistory
    from .model_parts import CostAndSecondsEncoder as CostAndSecondsEncoder
    from .model_parts import CostEncoder as CostEncoder
    from .model_parts import EIPerSecond as EIPerSecond
    from .model_parts import QuantileBound as QuantileBound
    from .model_parts import SurrogateModel as SurrogateModel
    from .proposing import ExplainCallback as ExplainCallback
    from .proposing import ProposerConfigSelector as ProposerConfigSelector
    from .proposing import member_trust as member_trust
    from .proposing import source_shares as source_shares
    from .replaying import optimizer as optimizer

import_when_used(
    __name__,
    {
        "adapter": ["ADAPTER"],
        "facades": ["AutoFacade", "GBQRFacade"],
        "initial_design": ["KNNInitialDesign", "MetaInitialDesign"],
        "memory": ["RecordCallback", "curves", "meta_dataset_from_runhistory"],
        "model_parts": [
            "CostAndSecondsEncoder",
            "CostEncoder",
            "EIPerSecond",
            "QuantileBound",
            "SurrogateModel",
        ],
        "proposing": [
            "ExplainCallback",
            "ProposerConfigSelector",
            "member_trust",
            "source_shares",
        ],
        "replaying": ["optimizer"],
    },
)
