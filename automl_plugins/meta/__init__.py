"""A memory of earlier tasks, and what it advises for a new one."""

from .alignment import Coverage
from .dataset import MetaDataset, MetaTask
from .records import TaskRecord
from .suggestion import Design, Suggestion

__all__ = ["Coverage", "Design", "MetaDataset", "MetaTask", "Suggestion", "TaskRecord"]
