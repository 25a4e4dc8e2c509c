"""SMAC adapter: any facade to be replayed, any run history to be compared or remembered."""

from .._optional import require

require("smac", "smac")

from .acquisition import EIPerSecond, QuantileBound
from .cost_and_seconds import CostAndSecondsEncoder, CostEncoder
from .gbqr_facade import GBQRFacade
from .initial_design import KNNInitialDesign, MetaInitialDesign
from .memory_io import is_space, meta_dataset_from_runhistory, read_task, write_history
from .proposing import ExplainCallback, ProposerConfigSelector
from .reading import curves, owns
from .recording import RecordCallback
from .replaying import optimizer
from .surrogate_model import SurrogateModel

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
