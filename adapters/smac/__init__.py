"""SMAC adapter: any facade to be replayed, any run history to be compared or remembered."""

from .._optional import require

require("smac", "smac")

from .initial_design import KNNInitialDesign, MetaInitialDesign
from .memory_io import is_space, meta_dataset_from_runhistory, read_task, write_history
from .reading import curves, owns
from .recording import RecordCallback
from .replaying import optimizer

__all__ = [
    "KNNInitialDesign",
    "MetaInitialDesign",
    "RecordCallback",
    "curves",
    "is_space",
    "meta_dataset_from_runhistory",
    "optimizer",
    "owns",
    "read_task",
    "write_history",
]
