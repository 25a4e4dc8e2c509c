"""Memories that come with the package: real runs of seven learners on real data sets.

Made by ``examples/benchmarks/build_memory.py``, which trains every learner at the same 64
configurations on each data set, three stratified folds each, and records losses, seconds and
meta-features. Data sets are those of KEEL and one of scikit-learn, at most 2 000 rows of each; the
files hold results only. ``bundled("svm").space`` tells what was searched.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import as_file, files
from typing import Literal, get_args

from .dataset import MetaDataset
from .files import read_records

Learner = Literal[
    "lightgbm", "random_forest", "extra_trees", "svm", "logistic_regression", "mlp", "knn"
]
Metric = Literal["error", "balanced_error", "auc_error"]

LEARNERS: tuple[Learner, ...] = get_args(Learner)
METRICS: tuple[Metric, ...] = get_args(Metric)


@cache
def bundled(learner: str, *, metric: str = "balanced_error") -> MetaDataset:
    """The runs of a learner on at least 50 classification data sets.

    Hyperparameters have the names and scales of scikit-learn and LightGBM. Fixed were: 50 trees
    of the forests, 100 iterations at most of the networks and of logistic regression. The layers
    of ``mlp`` are ``n_layers`` times ``n_units``; ``class_weight="none"`` stands for None.
    ``seconds`` are CPU seconds of one thread over all folds, without preprocessing; NaN for the
    few runs (1.3 % of ``knn``, 0.4 % of ``logistic_regression``, 0.1 % of ``svm``) that ended
    before the clock moved on. A task's tag ``"family"`` is equal for data sets that stem from
    one source.

    Args:
        learner: One of ``LEARNERS``.
        metric: ``"error"`` is 1 - accuracy, ``"balanced_error"`` 1 - the mean of the classes'
            recalls, ``"auc_error"`` 1 - the area under the ROC curve (one against the rest).

    Raises:
        ValueError: For another learner or metric.
    """
    if learner not in LEARNERS:
        raise ValueError(f"learner must be one of {', '.join(LEARNERS)}, got {learner!r}.")
    if metric not in METRICS:
        raise ValueError(f"metric must be one of {', '.join(METRICS)}, got {metric!r}.")
    with as_file(files("automl_plugins") / "data" / f"{learner}.json.xz") as path:
        records = read_records(path)
    memory = MetaDataset.from_records(r for r in records if r.tags["metric"] == metric)
    for column in (memory.task, memory.vectors, memory.losses, memory.seconds, memory.status):
        column.setflags(write=False)  # all callers share them
    return memory
