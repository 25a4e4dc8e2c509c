"""The memories of real runs that come with the package, one for each learner."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from importlib.resources import as_file, files

from automl_plugins._arguments import check_choice
from automl_plugins.meta.dataset import MetaDataset
from automl_plugins.meta.files import read_records
from automl_plugins.meta.tasks import MetaTask
from automl_plugins.records.task_record import TaskRecord

_FOREST = """
    bootstrap class_weight criterion max_features max_samples min_samples_leaf min_samples_split
"""
_LIGHTGBM = """
    colsample_bytree learning_rate min_child_samples n_estimators num_leaves reg_alpha reg_lambda
    subsample
"""
_XGBOOST = """
    colsample_bytree gamma learning_rate max_depth min_child_weight n_estimators reg_alpha
    reg_lambda subsample
"""
_RECORDED = {
    "lightgbm": _LIGHTGBM,
    "random_forest": _FOREST,
    "extra_trees": _FOREST,
    "svm": "C class_weight coef0 degree gamma kernel",
    "logistic_regression": "C class_weight fit_intercept l1_ratio solver tol",
    "mlp": "activation alpha batch_size early_stopping learning_rate_init n_layers n_units",
    "knn": "n_neighbors p weights",
    "hist_gradient_boosting": """
        class_weight l2_regularization learning_rate max_features max_iter max_leaf_nodes
        min_samples_leaf
    """,
    "xgboost": _XGBOOST,
    "catboost": """
        auto_class_weights depth iterations l2_leaf_reg learning_rate random_strength rsm
    """,
    "lightgbm_regression": _LIGHTGBM,
    "xgboost_regression": _XGBOOST,
    "random_forest_regression": """
        bootstrap max_features max_samples min_samples_leaf min_samples_split
    """,
}
#: Hyperparameters by learner, known without reading the runs.
HYPERPARAMETERS = {learner: text.split() for learner, text in _RECORDED.items()}
LEARNERS = tuple(HYPERPARAMETERS)
#: The memories of regressions, and of which learner: the name of its classifications.
REGRESSIONS = {f"{name}_regression": name for name in ("lightgbm", "xgboost", "random_forest")}
METRICS = ("error", "balanced_error", "auc_error")
REGRESSION_METRICS = ("r2_error", "absolute_error")


@cache
def bundled(learner: str, *, metric: str | None = None) -> MetaDataset:
    """The runs of a learner on real data sets, which come with the package.

    At least 50 data sets for a classifier, 20 for those of ``REGRESSIONS``.
    ``examples/benchmarks/build_memory.py`` trained every learner at the same 64 configurations (32
    of XGBoost, histogram boosting and forests of regressions, 16 of CatBoost) on each data set (of
    KEEL, of packages of R and of scikit-learn; at most 2 000 rows), three folds each.
    Hyperparameters have the names and scales of the libraries. Fixed were: 50 trees of forests,
    100 iterations at most of the networks and of logistic regression. The layers of ``mlp`` are
    ``n_layers`` times ``n_units``; ``class_weight="none"`` stands for None. The library's default
    is among the runs of every task; where it depends on the data (``max_features="sqrt"``,
    ``gamma="scale"``, CatBoost's learning rate) with the number that it comes to there.
    ``seconds`` are CPU seconds of one thread over all folds, without preprocessing; NaN for the
    few runs (1.3 % of ``knn``, 0.4 % of ``logistic_regression``, 0.1 % of ``svm``) that ended
    before the clock moved on. A task's tag ``"family"`` is equal for data sets from one
    source; ``"learner"`` is ``learner``, by which suggestions have what all runs had of other
    hyperparameters.

    Args:
        learner: One of ``LEARNERS``.
        metric: Of classifications ``"balanced_error"``, 1 - the mean of the classes' recalls
            (None); ``"error"``, 1 - accuracy; or ``"auc_error"``, 1 - the area under the ROC
            curve (one against the rest). Of regressions ``"r2_error"``, 1 - R^2 (None); or
            ``"absolute_error"``, the mean absolute error over that of the median.

    Raises:
        ValueError: For another learner or metric.
    """
    check_choice("learner", learner, LEARNERS)
    if metric is None:
        metric = "r2_error" if learner in REGRESSIONS else "balanced_error"
    known = REGRESSION_METRICS if learner in REGRESSIONS else METRICS
    check_choice("metric", metric, known)
    # A path also where the package is imported from a zip file.
    with as_file(files("automl_plugins") / "data" / f"{learner}.json.xz") as path:
        records = read_records(path)
    memory = MetaDataset.from_records(
        replace(record, tags={**record.tags, "learner": learner})
        for record in records
        if record.tags["metric"] == metric
    )
    for column in (memory.task, memory.vectors, memory.losses, memory.seconds, memory.status):
        column.setflags(write=False)  # all callers share them
    return memory


def bundled_among(tasks: Iterable[MetaTask | TaskRecord]) -> frozenset[str]:
    """Names of those tasks that come with the package, by their tags."""
    metrics = {*METRICS, *REGRESSION_METRICS}
    return frozenset(
        task.name for task in tasks if "family" in task.tags and task.tags.get("metric") in metrics
    )
