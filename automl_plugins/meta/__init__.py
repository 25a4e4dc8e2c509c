"""A memory of earlier tasks, and what it advises for a new one."""

from typing import TYPE_CHECKING

from automl_plugins._imports import import_when_used

if TYPE_CHECKING:
    from automl_plugins.meta.coverage import Coverage as Coverage
    from automl_plugins.meta.coverage import MemoryMismatch as MemoryMismatch
    from automl_plugins.meta.designs.design import Design as Design
    from automl_plugins.meta.designs.design import Suggestion as Suggestion
    from automl_plugins.records.task_record import TaskRecord as TaskRecord

    from .bundled_memories import bundled as bundled
    from .conversion import convert as convert
    from .dataset import MetaDataset as MetaDataset
    from .designs import bad_start as bad_start
    from .designs import delta as delta
    from .designs import diverse as diverse
    from .designs import knn as knn
    from .designs import opt as opt
    from .designs import portfolio as portfolio
    from .designs import top_k as top_k
    from .factorization import MatrixFactorization as MatrixFactorization
    from .features.extraction import MetaFeatures as MetaFeatures
    from .features.extraction import meta_feature_names as meta_feature_names
    from .features.extraction import meta_features as meta_features
    from .meta_learner import MetaLearner as MetaLearner
    from .store import MetaStore as MetaStore
    from .store import StoreError as StoreError
    from .tasks import MetaTask as MetaTask

import_when_used(
    __name__,
    {
        "bundled_memories": ["bundled"],
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
