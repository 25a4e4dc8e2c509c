"""The learners of the bundled memory, 64 configurations of each, and how one is trained.

The spaces carry the libraries' own parameter names, so a user's space matches them by name, and
are the ranges used in the literature (Feurer 2015 for scikit-learn, Bischl 2023 for the rest),
bounded so that a fit takes seconds. These names differ from the library's, or mean something only
here:

- ``class_weight = "none"`` is the library's ``None``;
- ``n_layers`` layers of ``n_units`` units are ``hidden_layer_sizes`` of the MLP.

A space's default is the library's default where that is a value of the space. It is not for
``max_features`` of random forests and extremely randomised trees ("sqrt", here 0.25) and ``gamma``
of the SVM ("scale", here 1/16).

A time limit has to end code that is deep inside a C library, and should not depend on what else
the machine is doing, so it is one of CPU seconds and kept by the kernel: when the timer has run
out the process dies of SIGPROF. The parent sees how it died.

While such a timer is armed, some kernels count the CPU time of a process in ticks of its timer
interrupt, milliseconds each. That of a thread stays exact, and the learners have one thread.
"""

from __future__ import annotations

import hashlib
import json
import signal
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
from ConfigSpace import (
    Categorical,
    Configuration,
    ConfigurationSpace,
    EqualsCondition,
    Float,
    InCondition,
    Integer,
)
from ConfigSpace.hyperparameters import Hyperparameter
from lightgbm import LGBMClassifier
from memory_data import Fold, IntArray, prepared
from scipy.stats import qmc
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, balanced_accuracy_score, roc_auc_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

from automl_plugins.spaces.vector_space import VectorSpace
from automl_plugins.streams import Streams

N_CONFIGURATIONS = 64
STREAMS = Streams(2025)
_SEED = 0  # of the models: equal configurations have equal losses

Values = dict[str, Any]
FloatArray = npt.NDArray[np.float64]
Record = dict[str, Any]

METRICS = ("error", "balanced_error", "auc_error")
MESSAGE_LENGTH = 200


@dataclass(frozen=True)
class Learner:
    """A classifier and its search space.

    Attributes:
        make: The classifier's class.
        hyperparameters: Those of the search space.
        fixed: Arguments that are not searched.
        conditions: Of a hyperparameter: the one that it depends on, and with which values.
        scaled: Whether its numeric features are standardised.
        arguments: Translates a configuration into arguments of ``make``.
    """

    make: Callable[..., Any]
    hyperparameters: Sequence[Hyperparameter[Any, Any]] = ()
    fixed: Mapping[str, Any] = field(default_factory=dict)
    conditions: Mapping[str, tuple[str, list[Any]]] = field(default_factory=dict)
    scaled: bool = False
    arguments: Callable[[Values], Values] = dict

    def build(self, configuration: Values) -> Any:
        """The classifier of a configuration."""
        return self.make(**self.fixed, **self.arguments(configuration))


def _without_none(configuration: Values) -> Values:
    """``class_weight = "none"`` as the ``None`` that the libraries expect."""
    return {name: None if value == "none" else value for name, value in configuration.items()}


def _layers(configuration: Values) -> Values:
    """``n_layers`` of ``n_units`` as ``hidden_layer_sizes``."""
    arguments = dict(configuration)
    arguments["hidden_layer_sizes"] = (arguments.pop("n_units"),) * arguments.pop("n_layers")
    return arguments


_CLASS_WEIGHT = Categorical("class_weight", ["none", "balanced"], default="none")


def _forest(make: Callable[..., Any], bootstrap: bool) -> Learner:
    return Learner(
        make,
        (
            Categorical("criterion", ["gini", "entropy"], default="gini"),
            Float("max_features", (0.05, 1.0), default=0.25),
            Integer("min_samples_leaf", (1, 20), log=True, default=1),
            Integer("min_samples_split", (2, 20), log=True, default=2),
            _CLASS_WEIGHT,
            Categorical("bootstrap", [True, False], default=bootstrap),
            Float("max_samples", (0.2, 1.0), default=1.0),
        ),
        {"n_estimators": 50, "n_jobs": 1, "random_state": _SEED},
        {"max_samples": ("bootstrap", [True])},
        arguments=_without_none,
    )


LEARNERS: dict[str, Learner] = {
    "lightgbm": Learner(
        LGBMClassifier,
        (
            Integer("n_estimators", (10, 300), log=True, default=100),
            Float("learning_rate", (0.005, 0.5), log=True, default=0.1),
            Integer("num_leaves", (4, 128), log=True, default=31),
            Integer("min_child_samples", (1, 100), log=True, default=20),
            Float("colsample_bytree", (0.2, 1.0), default=1.0),
            Float("subsample", (0.3, 1.0), default=1.0),
            Float("reg_alpha", (1e-8, 10.0), log=True, default=1e-8),
            Float("reg_lambda", (1e-8, 10.0), log=True, default=1e-8),
        ),
        {"subsample_freq": 1, "n_jobs": 1, "random_state": _SEED, "verbosity": -1},
    ),
    "random_forest": _forest(RandomForestClassifier, bootstrap=True),
    "extra_trees": _forest(ExtraTreesClassifier, bootstrap=False),
    "svm": Learner(
        SVC,
        (
            Categorical("kernel", ["rbf", "poly", "sigmoid"], default="rbf"),
            Float("C", (2.0**-5, 2.0**15), log=True, default=1.0),
            Float("gamma", (2.0**-15, 2.0**3), log=True, default=2.0**-4),
            Integer("degree", (2, 5), default=3),
            Float("coef0", (-1.0, 1.0), default=0.0),
            _CLASS_WEIGHT,
        ),
        {"max_iter": 20_000, "random_state": _SEED},
        {"degree": ("kernel", ["poly"]), "coef0": ("kernel", ["poly", "sigmoid"])},
        scaled=True,
        arguments=_without_none,
    ),
    "logistic_regression": Learner(
        LogisticRegression,
        (
            Float("C", (2.0**-10, 2.0**10), log=True, default=1.0),
            Categorical("solver", ["lbfgs", "saga"], default="lbfgs"),
            Float("l1_ratio", (0.0, 1.0), default=0.0),
            Float("tol", (1e-5, 1e-2), log=True, default=1e-4),
            _CLASS_WEIGHT,
            Categorical("fit_intercept", [True, False], default=True),
        ),
        {"max_iter": 100, "random_state": _SEED},
        {"l1_ratio": ("solver", ["saga"])},  # lbfgs has no L1
        scaled=True,
        arguments=_without_none,
    ),
    "mlp": Learner(
        MLPClassifier,
        (
            Integer("n_layers", (1, 3), default=1),
            Integer("n_units", (8, 128), log=True, default=100),
            Categorical("activation", ["relu", "tanh", "logistic"], default="relu"),
            Float("alpha", (1e-7, 1e-1), log=True, default=1e-4),
            Float("learning_rate_init", (1e-4, 1e-1), log=True, default=1e-3),
            Integer("batch_size", (32, 256), log=True, default=200),
            Categorical("early_stopping", [True, False], default=False),
        ),
        {"max_iter": 100, "random_state": _SEED},
        scaled=True,
        arguments=_layers,
    ),
    "knn": Learner(
        KNeighborsClassifier,
        (
            Integer("n_neighbors", (1, 50), log=True, default=5),
            Categorical("weights", ["uniform", "distance"], default="uniform"),
            Integer("p", (1, 2), default=2),
        ),
        {"n_jobs": 1},
        scaled=True,
    ),
}


@cache
def space(learner: str) -> ConfigurationSpace:
    """The search space of a learner; do not change it."""
    found, own = ConfigurationSpace(name=learner), LEARNERS[learner]
    found.add(own.hyperparameters)
    for child, (parent, values) in own.conditions.items():
        pair = found[child], found[parent]
        single = len(values) == 1
        found.add(EqualsCondition(*pair, values[0]) if single else InCondition(*pair, values))
    return found


@cache
def configurations(learner: str) -> tuple[Values, ...]:
    """The 64 configurations of a learner, the same on every data set.

    The first is the default; the others are a scrambled Sobol sequence over all hyperparameters,
    whose inactive values are dropped. What occurs twice is tried once.
    """
    vectors = VectorSpace(space(learner))
    default = np.array(space(learner).get_default_configuration().get_array())
    rng = STREAMS.generator(f"{learner}: configurations")
    points = qmc.Sobol(vectors.d, scramble=True, rng=rng).random(8 * N_CONFIGURATIONS)
    drawn = [[vectors.quantile(column, u) for column, u in enumerate(p)] for p in points]
    design = vectors.canonical(vectors.activate(np.vstack([default, drawn])))
    _, first = np.unique(vectors.keys(design), return_index=True)
    chosen = np.sort(first)[:N_CONFIGURATIONS]
    return tuple(_values(Configuration(space(learner), vector=design[i])) for i in chosen)


def _values(configuration: Configuration) -> Values:
    """As plain Python values, which survive JSON."""
    return {
        name: value.item() if isinstance(value, np.generic) else value
        for name, value in configuration.items()
    }


@cache
def design_key(learner: str) -> str:
    """A fingerprint of what is trained: results of another design do not mix with these."""
    what = [configurations(learner), dict(LEARNERS[learner].fixed)]
    return hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()[:12]


def evaluate(learner: str, data: str, configuration: Values, limit: float) -> Record:
    """Train a configuration of ``learner`` on the folds of ``data``, see ``measure``."""
    return measure(learner, configuration, prepared(data, LEARNERS[learner].scaled), limit)


def measure(learner: str, configuration: Values, folds: list[Fold], limit: float) -> Record:
    """Train a configuration on some folds.

    A fold's fit and prediction may take ``limit`` CPU seconds; more kill this process.

    Returns:
        ``status`` ("complete" or "failed"), ``seconds`` of CPU summed over the folds (None where
        the clock stood still), the means of ``METRICS`` over the folds (None if it failed) and the
        ``message`` of the error.
    """
    losses, seconds = [], 0.0
    # Unconverged models, and batches larger than a small data set, are scored as they are.
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for X_train, y_train, X_test, y_test in folds:
            start = time.thread_time()
            signal.setitimer(signal.ITIMER_PROF, limit)
            try:
                model = LEARNERS[learner].build(configuration).fit(X_train, y_train)
                predicted, scores = _predict(model, X_test)
                seconds += time.thread_time() - start
                losses.append(loss(y_test, predicted, scores))
            except Exception as error:  # any: what a library raises is a result here
                message = f"{type(error).__name__}: {error}"[:MESSAGE_LENGTH]
                seconds += time.thread_time() - start
                return unfinished("failed", seconds, message)
            finally:
                signal.setitimer(signal.ITIMER_PROF, 0)
    means = np.mean(losses, axis=0).round(6).tolist()
    return {
        "status": "complete",
        "seconds": _recorded(seconds),
        **dict(zip(METRICS, means, strict=True)),
        "message": "",
    }


def unfinished(status: str, seconds: float | None, message: str) -> Record:
    """The record of a configuration without losses."""
    return {
        "status": status,
        "seconds": _recorded(seconds),
        **dict.fromkeys(METRICS),
        "message": message,
    }


def _recorded(seconds: float | None) -> float | None:
    """Microseconds are kept; a zero is no measurement."""
    return None if seconds is None else round(seconds, 6) or None


def _predict(model: Any, X: FloatArray) -> tuple[IntArray, FloatArray]:
    """Classes (n,) and scores (n, k), with one pass over the model where one is enough."""
    if hasattr(model, "predict_proba"):
        scores = np.asarray(model.predict_proba(X), dtype=np.float64)
        return model.classes_[scores.argmax(axis=1)], scores
    scores = np.asarray(model.decision_function(X), dtype=np.float64)
    if scores.ndim == 1:
        scores = np.column_stack([-scores, scores])
    return model.predict(X), scores


def loss(y: IntArray, predicted: IntArray, scores: FloatArray) -> tuple[float, float, float]:
    """1 - accuracy, 1 - balanced accuracy, and 1 - area under the ROC curve.

    The area is that of each class against the rest by ``scores`` (n, k), averaged over the
    classes; of two classes the second speaks for both.

    Raises:
        ValueError: If a score is not finite.
    """
    if not np.isfinite(scores).all():
        raise ValueError("the model's scores are not finite")
    k = scores.shape[1]
    areas = [roc_auc_score(y == c, scores[:, c]) for c in (range(k) if k > 2 else [1])]
    right, recall = accuracy_score(y, predicted), balanced_accuracy_score(y, predicted)
    return 1.0 - float(right), 1.0 - float(recall), 1.0 - float(np.mean(areas))
