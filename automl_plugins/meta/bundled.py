"""The memories of real runs that come with the package, one for each learner."""

from __future__ import annotations

from functools import cache
from importlib.resources import as_file, files

from automl_plugins._arguments import one_of
from automl_plugins.meta.alignment import speak_alike
from automl_plugins.meta.dataset import MetaDataset
from automl_plugins.meta.files import read_records
from automl_plugins.spaces.vector_space import VectorSpace

_FOREST = [
    "bootstrap",
    "class_weight",
    "criterion",
    "max_features",
    "max_samples",
    "min_samples_leaf",
    "min_samples_split",
]
#: Hyperparameters by learner, known without reading the runs.
HYPERPARAMETERS = {
    "lightgbm": [
        "colsample_bytree",
        "learning_rate",
        "min_child_samples",
        "n_estimators",
        "num_leaves",
        "reg_alpha",
        "reg_lambda",
        "subsample",
    ],
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
}
LEARNERS = tuple(HYPERPARAMETERS)
METRICS = ("error", "balanced_error", "auc_error")


@cache
def bundled(learner: str, *, metric: str = "balanced_error") -> MetaDataset:
    """The runs of a learner on at least 50 classification data sets, which come with the package.

    ``examples/benchmarks/build_memory.py`` trained every learner at the same 64 configurations
    on each data set (KEEL's and one of scikit-learn, at most 2 000 rows), three stratified folds
    each. Hyperparameters have the names and scales of scikit-learn and LightGBM. Fixed were: 50
    trees of the forests, 100 iterations at most of the networks and of logistic regression. The
    layers of ``mlp`` are ``n_layers`` times ``n_units``; ``class_weight="none"`` stands for None.
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
    one_of("learner", learner, LEARNERS)
    one_of("metric", metric, METRICS)
    with as_file(files("automl_plugins") / "data" / f"{learner}.json.xz") as path:
        records = read_records(path)
    memory = MetaDataset.from_records(r for r in records if r.tags["metric"] == metric)
    for column in (memory.task, memory.vectors, memory.losses, memory.seconds, memory.status):
        column.setflags(write=False)  # all callers share them
    return memory


def recognise(space: VectorSpace) -> tuple[str | None, str]:
    """The learner of which a space has the hyperparameters, if any, and what to say of it.

    The rule is that of ``automl_plugins.meta.memories.RecognisedMemory``.
    """
    varying = [n for n, size in zip(space.names, space.n_values, strict=True) if size > 1]
    least = max(2.0, len(varying) / 2)
    found: dict[str, list[str]] = {}
    for learner, names in HYPERPARAMETERS.items():
        shared = [name for name in varying if name in names]
        if len(shared) >= least:  # only then are its runs read
            known = bundled(learner).space
            shared = [n for n in shared if speak_alike(known[n], space.space[n])]
        if len(shared) >= least:
            found[learner] = shared
    most = max(map(len, found.values()), default=0)
    best = [learner for learner, shared in found.items() if len(shared) == most]
    if not best:
        return None, (
            "The search space is that of no learner with a bundled memory"
            f" ({', '.join(LEARNERS)}): the search continues without one."
        )
    first, *others = best
    told = ", ".join(found[first])
    if any(HYPERPARAMETERS[other] != HYPERPARAMETERS[first] for other in others):
        return None, (
            f"The search space may be that of {' or '.join(best)} ({told}): the search continues"
            f" without a memory. If one of them is meant, pass its name: memory={first!r}."
        )
    same = f" That of {' or '.join(others)} would fit as well." if others else ""
    return first, (
        f"The search space is that of {first} ({told}), whose bundled memory is used.{same}"
        " memory=None turns it off, the name of a learner chooses another one."
    )
