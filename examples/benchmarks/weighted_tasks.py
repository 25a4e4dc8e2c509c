"""Tasks and models of benchmark_weighted.py: what scikit-learn has, and 11 classifiers."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
from ConfigSpace import Categorical, ConfigurationSpace, Float, Integer
from ConfigSpace.hyperparameters import Hyperparameter
from lightgbm import LGBMClassifier
from sklearn import datasets, discriminant_analysis, ensemble, naive_bayes
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier

from automl_plugins.arrays import FloatArray, IntArray
from automl_plugins.streams import Streams

Data = tuple[FloatArray, IntArray]

STREAMS = Streams(2019)

# --- tasks --------------------------------------------------------------------------------


def _flipped(data: Data, share: float, rng: np.random.Generator) -> Data:
    X, y = data
    return X, np.where(rng.random(len(y)) < share, 1 - y, y)


def _noisy(data: Data, sd: float, rng: np.random.Generator) -> Data:
    """Gaussian noise, ``sd`` times the standard deviation of each feature."""
    X, y = data
    return X + sd * X.std(axis=0) * rng.standard_normal(X.shape), y


def _wide(data: Data, n: int, rng: np.random.Generator) -> Data:
    """``n`` features more that mean nothing."""
    X, y = data
    return np.hstack([X, rng.standard_normal((len(X), n))]), y


def _made(rng: np.random.Generator, **options: Any) -> Data:
    seed = int(rng.integers(2**31))
    made = {"n_samples": 1600, "n_features": 20, "n_redundant": 2, "random_state": seed}
    X, y = datasets.make_classification(**made | options)
    return X, y


def tasks() -> dict[str, Data]:
    """Binary tasks as in the paper, 442 to 1 797 rows; wine and iris are too small for 1/9."""
    tumours: Data = datasets.load_breast_cancer(return_X_y=True)
    X, digit = datasets.load_digits(return_X_y=True)
    patients, progress = datasets.load_diabetes(return_X_y=True)
    low: Data = X, (digit < 5).astype(int)
    even: Data = X, (digit % 2 == 0).astype(int)
    recipes: dict[str, Callable[[np.random.Generator], Data]] = {
        "tumours": lambda _: tumours,
        "tumours, means only": lambda _: (tumours[0][:, :10], tumours[1]),
        "tumours, noise 1": lambda rng: _noisy(tumours, 1.0, rng),
        "tumours, 10 % flipped": lambda rng: _flipped(tumours, 0.1, rng),
        "diabetes above median": lambda _: (patients, (progress > 140).astype(int)),
        **{
            f"digit {d} or not": lambda _, d=d: (X, (digit == d).astype(int))  # type: ignore[misc]
            for d in (1, 3, 8, 9)
        },
        "digits 6, 8, 9, 0 or not": lambda _: (X, np.isin(digit, [6, 8, 9, 0]).astype(int)),
        "digits, even": lambda _: even,
        "digits, even, every 4th pixel": lambda _: (X[:, ::4], even[1]),
        "digits, even, noise 2": lambda rng: _noisy(even, 2.0, rng),
        "digits below 5": lambda _: low,
        "digits below 5, noise 1": lambda rng: _noisy(low, 1.0, rng),
        "digits below 5, 10 % flipped": lambda rng: _flipped(low, 0.1, rng),
        "made, linear": lambda rng: _made(
            rng, n_informative=4, n_clusters_per_class=1, flip_y=0.1
        ),
        "made, 5 informative": lambda rng: _made(rng, n_informative=5, n_clusters_per_class=4),
        "made, 15 informative": lambda rng: _made(rng, n_informative=15, n_clusters_per_class=3),
        "made, overlapping": lambda rng: _made(rng, n_informative=8, class_sep=0.5, flip_y=0.05),
        "made, 1 in 10": lambda rng: _made(rng, n_informative=6, weights=[0.9], class_sep=0.7),
        "moons": lambda rng: _wide(
            datasets.make_moons(1600, noise=0.3, random_state=int(rng.integers(2**31))), 8, rng
        ),
        "circles": lambda rng: _wide(
            datasets.make_circles(1600, noise=0.2, factor=0.5, random_state=int(rng.integers(9))),
            4,
            rng,
        ),
        "squared radius": lambda rng: _radius(rng.standard_normal((1600, 10))),
        "friedman 1 above 14": lambda rng: _above(datasets.make_friedman1, 14.0, rng),
        "friedman 2 above 450": lambda rng: _above(datasets.make_friedman2, 450.0, rng),
    }
    return {name: recipe(stream("task", name)) for name, recipe in recipes.items()}


def _radius(X: FloatArray) -> Data:
    return X, ((X**2).sum(axis=1) > 9.34).astype(int)


def _above(make: Callable[..., Data], limit: float, rng: np.random.Generator) -> Data:
    """A regression task with noise as a question of yes and no."""
    seed = int(rng.integers(2**31))
    X, z = make(1600, noise=2.0 if limit < 100 else 100.0, random_state=seed)
    return X, (z > limit).astype(int)


def stream(use: str, name: str) -> np.random.Generator:
    """The generator of a task or model."""
    return STREAMS.generator(use, zlib.crc32(name.encode()))


# --- models: the paper's table 3, with LightGBM in place of XGBoost ------------------------

_TREES = Integer("n_estimators", (5, 30))
_DEPTH = Integer("max_depth", (2, 16))
_LEAF = Integer("min_samples_leaf", (1, 20))
_SPLIT = Integer("min_samples_split", (2, 20))
_GINI = Categorical("criterion", ["gini", "entropy"])
_WEIGHT = Categorical("class_weight", ["none", "balanced"])
_BAGS = Categorical("bootstrap", [True, False])
_SUBSET = Categorical("max_features", ["sqrt", "log2", "all"])

MODELS: dict[str, tuple[Callable[..., Any], list[Hyperparameter[Any, Any]]]] = {
    "RandomForest": (
        ensemble.RandomForestClassifier,
        [_GINI, _BAGS, _WEIGHT, _TREES, _DEPTH, _LEAF, _SPLIT, Float("max_features", (0.05, 1.0))],
    ),
    "LogisticRegression": (
        LogisticRegression,
        [
            Categorical("l1_ratio", [0, 1]),
            Categorical("solver", ["liblinear", "saga"]),
            Categorical("fit_intercept", [True, False]),
            _WEIGHT,
            Float("C", (1e-3, 1e2), log=True),
            Float("tol", (1e-5, 1e-2), log=True),
        ],
    ),
    "LightGBM": (
        LGBMClassifier,
        [
            Categorical("extra_trees", [False, True]),
            _WEIGHT,
            Integer("n_estimators", (5, 50)),
            Integer("num_leaves", (4, 31)),
            Integer("min_child_samples", (2, 40)),
            Float("learning_rate", (0.01, 0.5), log=True),
            Float("subsample", (0.4, 1.0)),
            Float("colsample_bytree", (0.2, 1.0)),
            Float("reg_alpha", (1e-6, 10.0), log=True),
            Float("reg_lambda", (1e-6, 10.0), log=True),
            Float("min_split_gain", (1e-6, 1.0), log=True),
        ],
    ),
    "GradientBoosting": (
        ensemble.GradientBoostingClassifier,
        [
            Categorical("loss", ["log_loss", "exponential"]),
            Categorical("init", ["none", "zero"]),
            _SUBSET,
            _TREES,
            Integer("max_depth", (1, 5)),
            _LEAF,
            _SPLIT,
            Float("learning_rate", (0.01, 0.5), log=True),
            Float("subsample", (0.4, 1.0)),
            Float("ccp_alpha", (1e-6, 1e-2), log=True),
        ],
    ),
    "AdaBoost": (
        ensemble.AdaBoostClassifier,
        [_TREES, Float("learning_rate", (0.01, 2.0), log=True)],
    ),
    "BernoulliNB": (
        naive_bayes.BernoulliNB,
        [
            Categorical("fit_prior", [True, False]),
            Float("alpha", (1e-2, 1e2), log=True),
            Float("binarize", (0.0, 1.0)),
        ],
    ),
    "GaussianNB": (naive_bayes.GaussianNB, [Float("var_smoothing", (1e-9, 1.0), log=True)]),
    "ExtraTrees": (
        ensemble.ExtraTreesClassifier,
        [
            *(_GINI, _BAGS, _WEIGHT, _SUBSET, _TREES, _DEPTH, _LEAF),
            Float("ccp_alpha", (1e-6, 1e-2), log=True),
        ],
    ),
    "KNeighbors": (
        KNeighborsClassifier,
        [
            Integer("n_neighbors", (1, 20)),
            Categorical("weights", ["uniform", "distance"]),
            Categorical("p", [1, 2]),
        ],
    ),
    "LinearDiscriminant": (
        discriminant_analysis.LinearDiscriminantAnalysis,
        [
            Categorical("solver", ["lsqr", "eigen"]),
            Categorical("priors", ["none", "equal"]),
            Float("shrinkage", (1e-4, 1.0), log=True),
            Float("tol", (1e-5, 1e-3), log=True),  # of the third solver: as idle as in the paper
        ],
    ),
    "QuadraticDiscriminant": (
        discriminant_analysis.QuadraticDiscriminantAnalysis,
        [Float("reg_param", (1e-4, 1.0), log=True)],
    ),
}
_POOL_SIZES = {"LightGBM": 190, "GradientBoosting": 108}  # of the others 44

_FIXED: dict[str, dict[str, Any]] = {
    "LightGBM": {"n_jobs": 1, "verbosity": -1, "subsample_freq": 1, "deterministic": True},
}
_RANDOM = {"RandomForest", "LightGBM", "GradientBoosting", "AdaBoost", "ExtraTrees"}
_VALUES: dict[tuple[str, Any], Any] = {
    ("class_weight", "none"): None,
    ("init", "none"): None,
    ("max_features", "all"): None,
    ("priors", "none"): None,
    ("priors", "equal"): [0.5, 0.5],
}


def pool(model: str) -> list[dict[str, Any]]:
    """Configurations of a model, drawn uniformly; the same on every task."""
    space = ConfigurationSpace(seed=STREAMS.integer("pool", zlib.crc32(model.encode())))
    space.add(MODELS[model][1])
    size = _POOL_SIZES.get(model, 44)
    return [dict(c) for c in space.sample_configuration(size)]


def estimator(model: str, configuration: dict[str, Any]) -> Any:
    values = {name: _VALUES.get((name, value), value) for name, value in configuration.items()}
    if model in _RANDOM:
        values["random_state"] = 0
    return MODELS[model][0](**values, **_FIXED.get(model, {}))
