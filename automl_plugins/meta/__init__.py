"""A memory of earlier tasks, and what it advises for a new one."""

from typing import TYPE_CHECKING

from automl_plugins._lazy import import_when_used

if TYPE_CHECKING:
    from automl_plugins.meta.bundled import bundled
    from automl_plugins.meta.coverage import Coverage, MemoryMismatch
    from automl_plugins.meta.designs.design import Design, Suggestion
    from automl_plugins.records.task_record import TaskRecord

    from .conversion import convert
    from .dataset import MetaDataset
    from .designs import bad_start, delta, diverse, knn, opt, portfolio, top_k
    from .factorization import MatrixFactorization
    from .features.extraction import MetaFeatures, meta_feature_names, meta_features
    from .meta_learner import MetaLearner
    from .store import MetaStore, StoreError
    from .tasks import MetaTask

import_when_used(
    __name__,
    {
        "bundled": ["bundled"],
        "conversion": ["convert"],
        "coverage": ["Coverage", "MemoryMismatch"],
        "dataset": ["MetaDataset"],
        "designs": ["bad_start", "delta", "diverse", "knn", "opt", "portfolio", "top_k"],
        "designs.design": ["Design", "Suggestion"],
        "factorization": ["MatrixFactorization"],
        "features.extraction": ["MetaFeatures", "meta_feature_names", "meta_features"],
        "meta_learner": ["MetaLearner"],
        "automl_plugins.records.task_record": ["TaskRecord"],
        "store": ["MetaStore", "StoreError"],
        "tasks": ["MetaTask"],
    },
)

__all__ = [
    "Coverage",
    "Design",
    "MatrixFactorization",
    "MemoryMismatch",
    "MetaDataset",
    "MetaFeatures",
    "MetaLearner",
    "MetaStore",
    "MetaTask",
    "StoreError",
    "Suggestion",
    "TaskRecord",
    "bad_start",
    "bundled",
    "convert",
    "delta",
    "diverse",
    "knn",
    "meta_feature_names",
    "meta_features",
    "opt",
    "portfolio",
    "top_k",
]
