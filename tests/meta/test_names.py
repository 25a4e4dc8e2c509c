"""Names with the prefix of a step, and the other names that libraries have."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest
from ConfigSpace import (
    AndConjunction,
    ConfigurationSpace,
    EqualsCondition,
    ForbiddenAndConjunction,
    ForbiddenEqualsClause,
    ForbiddenGreaterThanRelation,
    ForbiddenInClause,
    GreaterThanCondition,
)

from automl_plugins.meta import MetaDataset, bundled
from automl_plugins.meta.names import held_values, rename_all, spelling
from automl_plugins.meta.recognition import recognise
from automl_plugins.meta.warm_start import advise
from automl_plugins.records.task_record import TaskRecord
from automl_plugins.spaces.vector_space import VectorSpace

ANY = (0.01, 1.0)
# The names of Optuna's examples for the native interfaces.
NATIVE_LIGHTGBM = {
    "lambda_l1": (1e-8, 10.0),
    "lambda_l2": (1e-8, 10.0),
    "num_leaves": (2, 256),
    "feature_fraction": (0.4, 1.0),
    "bagging_fraction": (0.4, 1.0),
    "bagging_freq": (1, 7),
    "min_child_samples": (5, 100),
}
NATIVE_XGBOOST = {
    "booster": ["gbtree", "gblinear", "dart"],
    "lambda": (1e-8, 1.0),
    "alpha": (1e-8, 1.0),
    "subsample": (0.2, 1.0),
    "colsample_bytree": (0.2, 1.0),
    "max_depth": (3, 9),
    "min_child_weight": (2, 10),
    "eta": (1e-8, 1.0),
    "gamma": (1e-8, 1.0),
}


@pytest.mark.parametrize(
    ("names", "known", "expected"),
    [
        ("x y", "x y", ""),
        ("s__x y", "x y", ""),  # ``y`` is known as it is
        ("s__x s__z y", "x z", "x:s__x z:s__z"),
        ("s__x", "x w", "x:s__x w:s__w"),
        ("s__x t__x", "x", ""),  # either could be meant
        ("s_x s_y", "x y", "x:s_x y:s_y"),
        ("s_x", "x y", ""),  # a name with a word before it
        ("s.x", "x y", "x:s.x y:s.y"),
        ("s/x", "x y", "x:s/x y:s/y"),
        ("s_x s_y t_x t_y", "x y", ""),
        ("s_x s_y t_z t_x", "x y", "x:s_x y:s_y"),
        ("x y", "s_x s_y", "s_x:x s_y:y"),
        ("a_s_x_y a_s_z", "x_y y z", "x_y:a_s_x_y z:a_s_z y:a_s_y"),  # the longest one
        ("x", "s__x s__w t__v", "s__x:x s__w:w"),  # the reverse
        ("lambda_l2 num_leaves", "reg_lambda num_leaves", "reg_lambda:lambda_l2"),
        ("reg_lambda num_leaves", "lambda_l2 num_leaves", "lambda_l2:reg_lambda"),
        ("alpha", "reg_alpha max_depth", ""),  # alone it may be of another learner
        ("alpha eta", "reg_alpha learning_rate", "reg_alpha:alpha learning_rate:eta"),
        ("alpha reg_alpha eta", "reg_alpha learning_rate", "learning_rate:eta"),
        ("reg_alpha eta", "reg_alpha alpha eta", ""),  # two hyperparameters
        ("lambda eta", "reg_lambda lambda_l2 eta", "reg_lambda:lambda"),  # the first one
        ("s__eta s__gamma", "learning_rate gamma", "learning_rate:s__eta gamma:s__gamma"),
        ("eta gamma", "s__learning_rate s__gamma", "s__learning_rate:eta s__gamma:gamma"),
    ],
)
def test_spelling(names: str, known: str, expected: str) -> None:
    pairs = dict(pair.split(":") for pair in expected.split())
    assert spelling(names.split(), known.split()) == pairs


def test_a_space_keeps_all_but_the_names() -> None:
    def made(a: str, b: str, c: str) -> ConfigurationSpace:
        space = ConfigurationSpace("a", space={a: (0.1, 1.0), b: ["a", "name"], c: (1, 4)})
        space[a].meta = {"name": "a"}
        larger, equal = GreaterThanCondition(space[c], space[a], 0.3), EqualsCondition
        space.add(AndConjunction(larger, equal(space[c], space[b], "a")))
        not_b, not_c = ForbiddenEqualsClause(space[b], "a"), ForbiddenInClause(space[c], [3, 4])
        space.add(ForbiddenAndConjunction(not_b, not_c))
        space.add(ForbiddenGreaterThanRelation(space[a], space[c]))
        return space

    assert rename_all(made("a", "b", "c"), {"a": "b", "b": "s__a", "c": "c"}) == made(
        "b", "s__a", "c"
    )


@pytest.mark.parametrize(
    ("learner", "space"), [("lightgbm", NATIVE_LIGHTGBM), ("xgboost", NATIVE_XGBOOST)]
)
def test_native_names_are_those_of_the_bundled_memories(learner: str, space: Any) -> None:
    native = ConfigurationSpace(space)
    found, _, told, _ = recognise(VectorSpace(native))
    assert found == (learner, f"{learner}_regression"), told
    dataset = bundled(learner).aligned(native)
    shared = set(dataset.coverage[0].shared)
    assert set(space) - shared == {"lightgbm": {"bagging_freq"}, "xgboost": {"booster"}}[learner]


# Ranges in which people search, by name.
RANGES: dict[str, Any] = {
    name: values
    for names, values in (
        ("subsample bagging_fraction colsample_bytree feature_fraction", (0.4, 1.0)),
        ("colsample_bylevel colsample_bynode rsm max_features", (0.1, 1.0)),
        ("reg_alpha reg_lambda lambda_l1 lambda_l2 lambda alpha", (1e-8, 10.0)),
        ("l2_regularization", (1e-8, 10.0)),
        ("l2_leaf_reg", (1.0, 10.0)),
        ("learning_rate eta", (0.005, 0.5)),
        ("n_estimators num_boost_round iterations max_iter", (50, 1000)),
        ("max_depth depth", (2, 12)),
        ("num_leaves max_leaf_nodes", (8, 256)),
        ("min_child_samples min_data_in_leaf min_samples_leaf", (1, 100)),
        ("min_child_weight random_strength", (1e-3, 10.0)),
        ("gamma", (0.0, 5.0)),
    )
    for name in names.split()
}


@pytest.mark.parametrize("prefix", ["", "clf__", "lgbm_", "model."])
@pytest.mark.parametrize(
    ("names", "learner"),
    [
        # LightGBM's classes, and its parameters
        ("num_leaves max_depth learning_rate", "lightgbm"),
        ("num_leaves max_depth learning_rate n_estimators", "lightgbm"),
        ("num_leaves max_depth learning_rate min_child_samples", "lightgbm"),
        ("num_leaves max_depth learning_rate subsample min_child_weight", "lightgbm"),
        ("num_leaves learning_rate subsample colsample_bytree min_child_weight", "lightgbm"),
        (
            "num_leaves max_depth learning_rate n_estimators subsample colsample_bytree reg_alpha"
            " reg_lambda",
            "lightgbm",
        ),
        ("max_depth learning_rate subsample reg_lambda min_child_samples", "lightgbm"),
        ("learning_rate subsample colsample_bytree min_split_gain", "lightgbm"),
        (
            "num_leaves max_depth learning_rate lambda_l1 lambda_l2 min_gain_to_split"
            " bagging_fraction feature_fraction min_data_in_leaf",
            "lightgbm",
        ),
        ("num_leaves max_depth eta num_boost_round feature_fraction bagging_freq", "lightgbm"),
        ("max_depth learning_rate feature_fraction bagging_fraction lambda_l1", "lightgbm"),
        # XGBoost's
        ("max_depth learning_rate", "xgboost"),
        ("max_depth learning_rate n_estimators", "xgboost"),
        ("max_depth eta", "xgboost"),
        ("max_depth learning_rate n_estimators subsample colsample_bytree", "xgboost"),
        ("max_depth learning_rate subsample colsample_bytree min_child_weight", "xgboost"),
        ("max_depth learning_rate subsample reg_alpha reg_lambda gamma", "xgboost"),
        ("max_depth eta subsample colsample_bytree lambda alpha min_child_weight", "xgboost"),
        ("eta num_boost_round max_depth gamma", "xgboost"),
        ("max_depth learning_rate subsample colsample_bynode max_leaves", "xgboost"),
        ("eta lambda alpha", "xgboost"),
        # CatBoost's
        ("iterations learning_rate depth", "catboost"),
        ("iterations learning_rate depth l2_leaf_reg", "catboost"),
        ("learning_rate depth l2_leaf_reg subsample", "catboost"),
        ("iterations learning_rate depth l2_leaf_reg subsample", "catboost"),
        ("learning_rate depth l2_leaf_reg subsample min_data_in_leaf", "catboost"),
        ("learning_rate depth l2_leaf_reg border_count bagging_temperature", "catboost"),
        ("learning_rate depth l2_leaf_reg colsample_bylevel min_data_in_leaf", "catboost"),
        ("learning_rate depth border_count", "catboost"),
        ("learning_rate max_depth l2_leaf_reg random_strength subsample", "catboost"),
        # of either of two: the one that was taken before
        ("colsample_bylevel max_depth learning_rate", "catboost"),
        # histogram boosting
        ("learning_rate max_iter max_leaf_nodes", "hist_gradient_boosting"),
        ("learning_rate max_iter max_depth", "hist_gradient_boosting"),
        ("learning_rate max_iter max_depth l2_regularization", "hist_gradient_boosting"),
        (
            "learning_rate max_iter max_depth max_leaf_nodes min_samples_leaf l2_regularization",
            "hist_gradient_boosting",
        ),
        ("learning_rate max_leaf_nodes min_samples_leaf max_depth", "hist_gradient_boosting"),
        # of LightGBM, XGBoost and others alike
        ("learning_rate subsample", None),
        ("learning_rate n_estimators", None),
        # of too little of the one whose names these are, and of no other
        ("learning_rate depth border_count one_hot_max_size bagging_temperature", None),
        # networks, also with what no booster has
        ("learning_rate depth", None),
        ("learning_rate depth width", None),
        ("learning_rate iterations", None),
        ("learning_rate max_iter", None),
        ("learning_rate lambda", None),
        ("learning_rate gamma lambda", None),
        ("learning_rate alpha", None),
        ("learning_rate gamma alpha", None),
        ("learning_rate lambda_l1 lambda_l2 dropout", None),
        ("learning_rate l2_regularization batch_size", None),
        ("learning_rate lambda_l1 lambda_l2 dropout_rate", None),
        ("learning_rate reg_alpha subsample hidden_size", None),
        ("learning_rate gamma num_train_epochs", None),
        # forests, not histogram boosting, and gradient boosting, not forests
        ("n_estimators max_depth max_features min_samples_leaf", "random_forest"),
        ("max_depth max_features min_samples_leaf min_samples_split", "random_forest"),
        ("max_features max_leaf_nodes min_samples_leaf min_samples_split", "random_forest"),
        (
            "n_estimators learning_rate max_depth max_features min_samples_leaf min_samples_split",
            "xgboost",
        ),
        # an isolation forest, local outlier factors, an elastic net
        ("max_features max_samples contamination", None),
        ("n_neighbors p contamination", None),
        ("alpha l1_ratio tol", None),
    ],
)
def test_spaces_as_people_write_them(names: str, learner: str | None, prefix: str) -> None:
    space = {f"{prefix}{name}": RANGES.get(name, (0.0, 7.0)) for name in names.split()}
    found = recognise(VectorSpace(ConfigurationSpace(space)))
    assert found.learners[:1] == (() if learner is None else (learner,)), found.line


@pytest.mark.parametrize("before", ["log_", "log2_", "log10_", "inv_", "svc__log10_", "svc_log_"])
def test_what_has_been_transformed_is_another_hyperparameter(before: str) -> None:
    """Its values are others: 3 is the logarithm of a ``C`` of 1000."""
    names = [f"{before}C", f"{before}gamma"]
    assert spelling(names, ["C", "gamma"]) == spelling(["C", "gamma"], names) == {}
    space = ConfigurationSpace(dict.fromkeys(names, (-3.0, 3.0)))
    assert not recognise(VectorSpace(space)).candidates


def test_discounts_of_reinforcement_learning_are_no_boosters() -> None:
    """Its lambda lies in another range than XGBoost's, which does not make it XGBoost's."""
    ranges = {"learning_rate": (1e-4, 0.1), "gamma": (0.0, 0.9999), "lambda": (0.8, 1.0)}
    assert not recognise(VectorSpace(ConfigurationSpace(ranges))).learners


def test_a_prefix_is_that_of_all_names_or_of_a_step() -> None:
    def found(*names: str) -> tuple[str, ...]:
        space = ConfigurationSpace(dict.fromkeys(names, ANY))
        return recognise(VectorSpace(space)).learners[:1]

    forest = ("max_features", "min_samples_leaf", "min_samples_split")
    assert found(*(f"rf_{name}" for name in forest)) == ("random_forest",)
    assert found(*(f"rf.{name}" for name in forest), "n_components") == ("random_forest",)
    assert not found(*(f"rf_{name}" for name in forest), "n_components")
    # A stack of two, in which one has more.
    assert not found(*(f"rf_{name}" for name in forest), "svm_C", "svm_gamma")
    assert not found("log_alpha", "learning_rate_init")  # no alpha of something called log


@pytest.mark.parametrize("prefix", ["my_", "my.", "my__"])
@pytest.mark.parametrize(
    ("learner", "ranges"),
    [
        ("lightgbm", {n: RANGES[n] for n in ("num_leaves", "learning_rate", "lambda_l2")}),
        # recorded as fractions, and as counts
        ("random_forest", {"max_features": (1, 9), "min_samples_leaf": (0.001, 0.1)}),
    ],
)
def test_suggestions_are_called_as_in_the_space(learner: str, ranges: Any, prefix: str) -> None:
    bare = ConfigurationSpace(ranges)
    space = ConfigurationSpace({f"{prefix}{name}": values for name, values in ranges.items()})
    expected, found = (advise(s, learner, k=3).design.configurations for s in (bare, space))
    assert found == [{f"{prefix}{n}": v for n, v in c.items()} for c in expected]


@pytest.mark.parametrize(
    ("learner", "module", "model"),
    [
        ("lightgbm", "lightgbm", "LGBMClassifier"),
        ("lightgbm_regression", "lightgbm", "LGBMRegressor"),
        ("random_forest", "sklearn.ensemble", "RandomForestClassifier"),
        ("random_forest_regression", "sklearn.ensemble", "RandomForestRegressor"),
        ("extra_trees", "sklearn.ensemble", "ExtraTreesClassifier"),
        ("hist_gradient_boosting", "sklearn.ensemble", "HistGradientBoostingClassifier"),
        ("svm", "sklearn.svm", "SVC"),
        ("mlp", "sklearn.neural_network", "MLPClassifier"),
        ("knn", "sklearn.neighbors", "KNeighborsClassifier"),
    ],
)
def test_what_no_run_has_was_at_the_default_of_the_library(
    learner: str, module: str, model: str
) -> None:
    defaults = getattr(importlib.import_module(module), model)().get_params()
    recorded = list(bundled(learner).space)
    held = held_values(learner, defaults, recorded)
    assert held and not held.keys() & {*recorded}
    # In a LightGBM without it, the recorded ``subsample`` would change nothing.
    changed = {"subsample_freq": 1} if "lightgbm" in learner else {}
    # "auto" stops early on more than 10 000 rows; no recorded data set has as many.
    changed |= {"early_stopping": False} if "hist" in learner else {}
    library = {n: -1 if n == "max_depth" and d is None else d for n, d in defaults.items()}
    # Names of other interfaces of LightGBM, and its own default of what it does not list.
    library |= {n: held[n] for n in held if "lightgbm" in learner and n not in library}
    assert held == {name: library[name] for name in held} | changed


@pytest.mark.parametrize("prefix", ["", "clf__", "my_"])
def test_what_no_run_has_is_called_as_in_the_space(prefix: str) -> None:
    names = [f"{prefix}{n}" for n in ("num_leaves", "bagging_freq", "lambda_l1", "max_bin")]
    held = held_values("lightgbm", names, list(bundled("lightgbm").space))
    assert held[f"{prefix}max_bin"] == 255
    assert "subsample" not in held and "n_estimators" not in held
    assert held_values("another learner", names, []) == {}


def test_what_the_space_does_not_have_keeps_the_name_that_was_recorded() -> None:
    space = ConfigurationSpace({"clf__C": ANY, "clf__gamma": ANY})
    runs = [{"C": 0.1, "gamma": 0.2, "kernel": "rbf"}]
    for known in (None, ConfigurationSpace({"C": ANY, "gamma": ANY, "kernel": ["rbf", "poly"]})):
        record = TaskRecord("t", runs, np.array([1.0]), space=known)
        (coverage,) = MetaDataset.from_records([record], space).coverage
        assert (coverage.shared, coverage.ignored) == (("clf__C", "clf__gamma"), ("kernel",))


def test_runs_have_the_values_of_either_name() -> None:
    space = ConfigurationSpace({"eta": ANY, "subsample": ANY})
    runs = [{"learning_rate": 0.1, "subsample": 0.2}, {"learning_rate": 0.5, "subsample": 0.4}]
    records = [
        TaskRecord("either", runs, np.array([1.0, 2.0])),
        TaskRecord("other", [{"eta": 0.5, "subsample": 0.4}], np.array([3.0])),
    ]
    dataset = MetaDataset.from_records(records, space)
    values = ANY[0] + dataset.vectors * (ANY[1] - ANY[0])
    np.testing.assert_allclose(values, [[0.1, 0.2], [0.5, 0.4], [0.5, 0.4]])
