"""The learners of the bundled memories, and the configurations of each.

The spaces have the libraries' own parameter names, so a user's space matches them by name. Their
ranges are those of the literature (Feurer 2015 for scikit-learn, Bischl 2023 for the rest),
bounded so that a fit takes seconds. Some names and values need an explanation:

- ``class_weight = "none"`` is the library's ``None``;
- ``auto_class_weights = "None"`` is CatBoost's own name of its default;
- ``n_layers`` layers of ``n_units`` units are ``hidden_layer_sizes`` of the MLP.

The first configuration is the default of the space, which is the library's own if the space
contains it. Some libraries choose a default by the data: ``max_features="sqrt"`` of forests,
``gamma="scale"`` of the SVM, CatBoost's learning rate. Learners have it as ``default``, and it is
recorded as one more configuration, with the number chosen on the data set. A fixed number of trees
or iterations applies to the default as well.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from importlib import import_module
from typing import Any, Literal

import numpy as np
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
from lightgbm import LGBMClassifier, LGBMRegressor
from memory_data import Target
from scipy.stats import qmc
from sklearn.ensemble import (
    ExtraTreesClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.svm import SVC

from automl_plugins.arrays import FloatArray
from automl_plugins.spaces.vector_space import VectorSpace
from automl_plugins.streams import Streams

N_CONFIGURATIONS = 64
LIBRARY = -1  # index of the configuration that a library chooses by the data
_AFFORDED = 32  # configurations of learners that would take too long with all
_N_COMPARED = 16  # configurations that identify a design
STREAMS = Streams(2025)
_SEED = 0  # of the models: equal configurations have equal losses

Values = dict[str, Any]
Task = Literal["classification", "regression"]
METRICS: dict[Task, tuple[str, ...]] = {
    "classification": ("error", "balanced_error", "auc_error"),
    "regression": ("r2_error", "absolute_error"),
}


@dataclass(frozen=True)
class Learner:
    """A classifier or regressor and its search space.

    Attributes:
        make: The model's class.
        hyperparameters: The hyperparameters of the search space.
        fixed: Arguments that are not searched.
        conditions: Parent and activating values of each conditional hyperparameter.
        scaled: Whether its numeric features are standardised.
        arguments: Translates a configuration into arguments of ``make``.
        task: Classification or regression.
        default: Returns the values that the library chooses by the features and target of a data
            set, where they differ from the space's default.
        n_configurations: Number of configurations that are trained on every data set.
    """

    make: Callable[..., Any]
    hyperparameters: Sequence[Hyperparameter[Any, Any]] = ()
    fixed: Mapping[str, Any] = field(default_factory=dict)
    conditions: Mapping[str, tuple[str, list[Any]]] = field(default_factory=dict)
    scaled: bool = False
    arguments: Callable[[Values], Values] = dict
    task: Task = "classification"
    default: Callable[[FloatArray, Target], Values] | None = None
    n_configurations: int = N_CONFIGURATIONS

    @property
    def indices(self) -> list[int]:
        """The indices of its configurations, with ``LIBRARY`` if there is a ``default``."""
        own = [LIBRARY] if self.default is not None else []
        return [*range(self.n_configurations), *own]

    def build(self, configuration: Values) -> Any:
        """The model of a configuration."""
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
        default=_square_root,
    )


def _square_root(X: FloatArray, y: Target) -> Values:
    """``max_features="sqrt"`` as a fraction of the columns that is rounded down to it."""
    d = X.shape[1]
    return {"max_features": min(1.0, (int(d**0.5) + 0.5) / d)}


def _scale(X: FloatArray, y: Target) -> Values:
    """``gamma="scale"`` as a number within the range."""
    return {"gamma": float(np.clip(1.0 / (X.shape[1] * X.var()), 2.0**-15, 2.0**3))}


def _imported(library: str, kind: str, **options: Any) -> Any:
    """A model of a library that is large, and not a dependency: imported when it is made."""
    return getattr(import_module(library), kind)(**options)


def _learning_rate(X: FloatArray, y: Target) -> Values:
    """The learning rate that CatBoost chooses by the number of rows, within the range."""
    model = LEARNERS["catboost"].make(**LEARNERS["catboost"].fixed, depth=1).fit(X, y)
    return {"learning_rate": float(np.clip(model.get_all_params()["learning_rate"], 0.001, 0.5))}


_LIGHTGBM = (
    Integer("n_estimators", (10, 300), log=True, default=100),
    Float("learning_rate", (0.005, 0.5), log=True, default=0.1),
    Integer("num_leaves", (4, 128), log=True, default=31),
    Integer("min_child_samples", (1, 100), log=True, default=20),
    Float("colsample_bytree", (0.2, 1.0), default=1.0),
    Float("subsample", (0.3, 1.0), default=1.0),
    Float("reg_alpha", (1e-8, 10.0), log=True, default=1e-8),
    Float("reg_lambda", (1e-8, 10.0), log=True, default=1e-8),
)
_LIGHTGBM_FIXED = {"subsample_freq": 1, "n_jobs": 1, "random_state": _SEED, "verbosity": -1}
_XGBOOST = (
    Integer("n_estimators", (10, 300), log=True, default=100),
    Float("learning_rate", (0.005, 0.5), log=True, default=0.3),
    Integer("max_depth", (1, 12), default=6),
    Float("min_child_weight", (0.1, 100.0), log=True, default=1.0),
    Float("colsample_bytree", (0.2, 1.0), default=1.0),
    Float("subsample", (0.3, 1.0), default=1.0),
    Float("gamma", (1e-8, 10.0), log=True, default=1e-8),
    Float("reg_alpha", (1e-8, 10.0), log=True, default=1e-8),
    Float("reg_lambda", (1e-8, 10.0), log=True, default=1.0),
)
_XGBOOST_FIXED = {"n_jobs": 1, "random_state": _SEED, "verbosity": 0}

LEARNERS: dict[str, Learner] = {
    "lightgbm": Learner(LGBMClassifier, _LIGHTGBM, _LIGHTGBM_FIXED),
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
        default=_scale,
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
    "hist_gradient_boosting": Learner(
        HistGradientBoostingClassifier,
        (
            Integer("max_iter", (10, 300), log=True, default=100),
            Float("learning_rate", (0.005, 0.5), log=True, default=0.1),
            Integer("max_leaf_nodes", (4, 128), log=True, default=31),
            Integer("min_samples_leaf", (1, 100), log=True, default=20),
            Float("l2_regularization", (1e-8, 10.0), log=True, default=1e-8),
            Float("max_features", (0.2, 1.0), default=1.0),
            _CLASS_WEIGHT,
        ),
        {"random_state": _SEED},
        arguments=_without_none,
        n_configurations=_AFFORDED,
    ),
    "xgboost": Learner(
        partial(_imported, "xgboost", "XGBClassifier"),
        _XGBOOST,
        _XGBOOST_FIXED,
        n_configurations=_AFFORDED,
    ),
    "catboost": Learner(
        partial(_imported, "catboost", "CatBoostClassifier"),
        (
            Integer("iterations", (30, 1000), log=True, default=1000),
            Float("learning_rate", (0.001, 0.5), log=True, default=0.03),
            Integer("depth", (2, 8), default=6),
            Float("l2_leaf_reg", (0.1, 30.0), log=True, default=3.0),
            Float("random_strength", (0.1, 10.0), log=True, default=1.0),
            Float("rsm", (0.2, 1.0), default=1.0),
            Categorical("auto_class_weights", ["None", "Balanced"], default="None"),
        ),
        {"thread_count": 1, "random_state": _SEED, "verbose": 0, "allow_writing_files": False},
        default=_learning_rate,
        n_configurations=16,
    ),
    "lightgbm_regression": Learner(LGBMRegressor, _LIGHTGBM, _LIGHTGBM_FIXED, task="regression"),
    "random_forest_regression": Learner(
        RandomForestRegressor,
        (
            Float("max_features", (0.05, 1.0), default=1.0),
            Integer("min_samples_leaf", (1, 20), log=True, default=1),
            Integer("min_samples_split", (2, 20), log=True, default=2),
            Categorical("bootstrap", [True, False], default=True),
            Float("max_samples", (0.2, 1.0), default=1.0),
        ),
        {"n_estimators": 50, "n_jobs": 1, "random_state": _SEED},
        {"max_samples": ("bootstrap", [True])},
        task="regression",
        n_configurations=_AFFORDED,
    ),
    "xgboost_regression": Learner(
        partial(_imported, "xgboost", "XGBRegressor"),
        _XGBOOST,
        _XGBOOST_FIXED,
        task="regression",
        n_configurations=_AFFORDED,
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
    """The configurations of a learner that are the same on every data set.

    The first is the default; the others are a scrambled Sobol sequence over all hyperparameters,
    whose inactive values and duplicates are dropped. A regressor has the configurations of the
    classifier with the same space.
    """
    n = LEARNERS[learner].n_configurations
    vectors = VectorSpace(space(learner))
    default = np.array(space(learner).get_default_configuration().get_array())
    rng = STREAMS.generator(f"{learner.removesuffix('_regression')}: configurations")
    points = qmc.Sobol(vectors.d, scramble=True, rng=rng).random(8 * N_CONFIGURATIONS)
    drawn = [[vectors.quantile(column, u) for column, u in enumerate(p)] for p in points]
    design = vectors.canonical(vectors.activate(np.vstack([default, drawn])))
    _, first = np.unique(vectors.keys(design), return_index=True)
    chosen = np.sort(first)[:n]
    return tuple(_values(Configuration(space(learner), vector=design[i])) for i in chosen)


def configuration(learner: str, index: int, data: tuple[FloatArray, Target]) -> Values:
    """A configuration by its index; ``LIBRARY`` is what the library chooses by ``data``."""
    common, default = configurations(learner), LEARNERS[learner].default
    if index != LIBRARY or default is None:
        return common[index]
    return common[0] | default(*data)


def _values(configuration: Configuration) -> Values:
    """The values as plain Python objects, which JSON can store."""
    return {
        name: value.item() if isinstance(value, np.generic) else value
        for name, value in configuration.items()
    }


@cache
def design_key(learner: str) -> str:
    """A fingerprint of the configurations, to keep results of different designs apart.

    More configurations of the same sequence are the same design.
    """
    design = [configurations(learner)[:_N_COMPARED], dict(LEARNERS[learner].fixed)]
    return hashlib.sha256(json.dumps(design, sort_keys=True).encode()).hexdigest()[:12]
