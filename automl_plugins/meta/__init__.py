"""A memory of earlier tasks, and what it advises for a new one."""

from .alignment import Coverage
from .dataset import MetaDataset, MetaTask
from .designs import bad_start, delta, diverse, knn, opt, portfolio, top_k
from .meta_learner import MetaLearner
from .records import TaskRecord
from .suggestion import Design, Suggestion

__all__ = [
    "Coverage",
    "Design",
    "MetaDataset",
    "MetaLearner",
    "MetaTask",
    "Suggestion",
    "TaskRecord",
    "bad_start",
    "delta",
    "diverse",
    "knn",
    "opt",
    "portfolio",
    "top_k",
]
