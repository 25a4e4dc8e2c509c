"""The memories of real runs that come with the package, one for each learner."""

from __future__ import annotations

from functools import cache
from importlib.resources import as_file, files
from typing import NamedTuple

from automl_plugins._arguments import one_of
from automl_plugins.meta.alignment import speak_alike
from automl_plugins.meta.dataset import MetaDataset
from automl_plugins.meta.files import read_records
from automl_plugins.records.task_record import TaskRecord
from automl_plugins.spaces.vector_space import VectorSpace

from .names import spelling

_FOREST = [
    "bootstrap",
    "class_weight",
    "criterion",
    "max_features",
    "max_samples",
    "min_samples_leaf",
    "min_samples_split",
]
_BOOSTING = [
    "colsample_bytree",
    "learning_rate",
    "n_estimators",
    "reg_alpha",
    "reg_lambda",
    "subsample",
]
_LIGHTGBM = sorted([*_BOOSTING, "min_child_samples", "num_leaves"])
_XGBOOST = sorted([*_BOOSTING, "gamma", "max_depth", "min_child_weight"])
#: Hyperparameters by learner, known without reading the runs.
HYPERPARAMETERS = {
    "lightgbm": _LIGHTGBM,
    "random_forest": _FOREST,
    "extra_trees": _FOREST,
    "svm": ["C", "class_weight", "coef0", "degree", "gamma", "kernel"],
    "logistic_regression": ["C", "class_weight", "fit_intercept", "l1_ratio", "solver", "tol"],
    "mlp": [
        "activation",
        "alpha",
        "batch_size",
        "early_stopping",
        "learning_rate_init",
        "n_layers",
        "n_units",
    ],
    "knn": ["n_neighbors", "p", "weights"],
    "hist_gradient_boosting": [
        "class_weight",
        "l2_regularization",
        "learning_rate",
        "max_features",
        "max_iter",
        "max_leaf_nodes",
        "min_samples_leaf",
    ],
    "xgboost": _XGBOOST,
    "catboost": [
        "auto_class_weights",
        "depth",
        "iterations",
        "l2_leaf_reg",
        "learning_rate",
        "random_strength",
        "rsm",
    ],
    "lightgbm_regression": _LIGHTGBM,
    "xgboost_regression": _XGBOOST,
    "random_forest_regression": [n for n in _FOREST if n not in ("class_weight", "criterion")],
}
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
    before the clock moved on. A task's tag ``"family"`` is equal for data sets that stem from
    one source.

    Args:
        learner: One of ``LEARNERS``.
        metric: Of classifications ``"balanced_error"``, 1 - the mean of the classes' recalls
            (None); ``"error"``, 1 - accuracy; or ``"auc_error"``, 1 - the area under the ROC
            curve (one against the rest). Of regressions ``"r2_error"``, 1 - R^2 (None); or
            ``"absolute_error"``, the mean absolute error over that of the median.

    Raises:
        ValueError: For another learner or metric.
    """
    one_of("learner", learner, LEARNERS)
    if metric is None:
        metric = "r2_error" if learner in REGRESSIONS else "balanced_error"
    known = REGRESSION_METRICS if learner in REGRESSIONS else METRICS
    one_of("metric", metric, known)
    with as_file(files("automl_plugins") / "data" / f"{learner}.json.xz") as path:
        records = read_records(path)
    memory = MetaDataset.from_records(r for r in records if r.tags["metric"] == metric)
    for column in (memory.task, memory.vectors, memory.losses, memory.seconds, memory.status):
        column.setflags(write=False)  # all callers share them
    return memory


def together(learners: tuple[str, ...]) -> MetaDataset | list[TaskRecord]:
    """The bundled memory of a learner, or the runs of its two."""
    if len(learners) == 1:
        return bundled(learners[0])
    return [record for learner in learners for record in bundled(learner).records()]


class Recognition(NamedTuple):
    """Learners whose hyperparameters a search space has.

    Attributes:
        learners: The memories to use: none, one, or one of classifications and one of regressions.
        candidates: Those of which the space has the most; more than ``learners`` if it is not
            clear which is meant.
        line: What is to be known of it, for the log.
        choices: Categorical hyperparameters of the space that are not the learner's.
    """

    learners: tuple[str, ...]
    candidates: tuple[str, ...]
    line: str
    choices: tuple[str, ...] = ()


def recognise(space: VectorSpace) -> Recognition:
    """The memories of the learner whose hyperparameters a space has.

    The rule is that of ``automl_plugins.meta.memories.RecognisedMemory``.
    """
    varying = [n for n, size in zip(space.names, space.n_values, strict=True) if size > 1]
    least = max(2.0, len(varying) / 2)
    found: dict[str, list[str]] = {}  # names of the space
    most = (0, 0)  # hyperparameters, and how many of them in the learner's own spelling
    best: list[str] = []
    for learner, names in HYPERPARAMETERS.items():
        new = spelling(varying, names)
        called = {new.get(name, name): name for name in names}
        shared = [name for name in varying if name in called]
        if len(shared) >= least:  # only then are its runs read
            known = bundled(learner).space
            shared = [n for n in shared if speak_alike(known[called[n]], space.space[n])]
        if len(shared) >= least and len(_without_foreign_parents(space, shared)) >= 2:
            found[learner] = shared
            rank = len(shared), sum(n.rpartition("__")[2] == called[n] for n in shared)
            if rank >= most:
                best = [*best, learner] if rank == most else [learner]
                most = rank
    if not best:
        line = (
            "The search space is that of no learner with a bundled memory"
            f" ({', '.join(LEARNERS)}): the search continues without one."
        )
        return Recognition((), (), line)
    first = best[0]
    name = REGRESSIONS.get(first, first)
    listed = ", ".join(found[first])
    twins = tuple(learner for learner in best if REGRESSIONS.get(learner, learner) == name)
    others = [learner for learner in best if learner not in twins]
    if any(HYPERPARAMETERS[other] != HYPERPARAMETERS[first] for other in others):
        line = (
            f"The search space may be that of {' or '.join(best)} ({listed}): the search"
            " continues without a memory. If one of them is meant, pass its name:"
            f" memory={first!r}."
        )
        return Recognition((), tuple(best), line)
    same = f" That of {' or '.join(others)} would fit as well." if others else ""
    used = "memory is" if len(twins) == 1 else f"memories {' and '.join(twins)} are"
    line = (
        f"The search space is that of {name} ({listed}), whose bundled {used} used."
        f"{same} memory=None turns it off, the name of a memory chooses that one."
    )
    own = set(found[first])
    choices = [n for n, c in zip(space.names, space.categorical, strict=True) if c]
    foreign = tuple(n for n in choices if n in varying and n not in own)
    return Recognition(twins, tuple(best), line, foreign)


def _without_foreign_parents(space: VectorSpace, names: list[str]) -> list[str]:
    """Those of ``names`` that are active whatever parameters outside ``names`` are.

    The hyperparameters of one algorithm among several depend on the choice of it.
    """
    found: list[str] = []
    for name in space.names:  # parents first
        parents = [p.name for p in space.space.parents_of[name] if p.size > 1]
        if name in names and all(parent in found for parent in parents):
            found.append(name)
    return found
