"""Configurations as features: the thesis' worked example (tables 3.1-3.7), properties, edges."""

from __future__ import annotations

import copy
import datetime
import math
import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.preprocessing import OneHotEncoder

from automl_plugins.meta import preprocessing
from automl_plugins.meta.preprocessing import (
    KNOWN_MEANINGS,
    ConfigurationEncoder,
    ParameterType,
    TaskFacts,
    category_key,
    detect_type,
    split_mixed,
)

# The rows of table 3.3, before splitting. The tables leave min_samples_* as counts although the
# text turns them into fractions, so the rules of the tables are two.
TABLE: dict[str, list[Any]] = {
    "n_estimators": [10, 100, 100, 500, 100],
    "criterion": ["gini", "gini", "gini", "entropy", "gini"],
    "max_features": [0.05, 0.10, "log2", "sqrt", None],
    "max_depth": [9, 10, 11, 12, None],
    "min_samples_split": [2, 3, 8, 5, 8],
    "min_samples_leaf": [1, 7, 2, 7, 9],
    "bootstrap": [True, False, 0, 1, True],
    "@preprocessor": [OneHotEncoder(), PCA(), PCA(), PCA(), None],
}
Rows = list[dict[str, Any]]
ROWS: Rows = [dict(zip(TABLE, row, strict=True)) for row in zip(*TABLE.values(), strict=True)]
FACTS = TaskFacts(n_instances=1000, n_features=120)
TABLE_RULES = {name: KNOWN_MEANINGS[name] for name in ("max_features", "max_depth")}


def as_columns(encoder: ConfigurationEncoder, X: np.ndarray) -> dict[str, list[float]]:
    names = encoder.get_feature_names_out()
    assert X.shape[1] == len(names) == len(encoder.nominal_features_)
    assert X.dtype == np.float64
    return dict(zip(names, X.T.tolist(), strict=True))


def encode(values: list[Any], name: str = "a", **options: Any) -> dict[str, list[float]]:
    """Return the features of one parameter; "absent" leaves it out of a row."""
    rows: Rows = [{} if value == "absent" else {name: value} for value in values]
    encoder = ConfigurationEncoder(**options)
    return as_columns(encoder, encoder.fit_transform(rows))


class Plain:
    """Has the default repr, with its address."""


class Shown(Plain):
    def __init__(self, value: Any) -> None:
        self.value = value

    def __repr__(self) -> str:
        return f"Shown({self.value!r})"


class Identity(Plain):
    def __repr__(self) -> str:
        return f"Identity(id={id(self)})"


class Rude(Plain):
    def __repr__(self) -> str:
        raise OSError("no")


class Colour(Enum):
    RED = 1


# --- The worked example ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([10, 100, 500], ParameterType.NUMERIC),
        (["gini", "entropy"], ParameterType.NOMINAL),
        ([0.05, 0.10, "log2", "sqrt", None], ParameterType.MIXED),
        ([9, 10, 11, 12, None], ParameterType.MIXED),
        ([2, 3, 5, 8], ParameterType.NUMERIC),
        ([1, 2, 7, 9], ParameterType.NUMERIC),
        ([True, False, 0, 1], ParameterType.BOOLEAN),
        ([OneHotEncoder(), PCA(), None], ParameterType.OBJECT),
    ],
)
def test_table_3_1_type_detection(values: list[Any], expected: ParameterType) -> None:
    assert detect_type(values) is expected
    assert detect_type(reversed(values)) is expected


def test_table_3_2_splitting_a_mixed_parameter() -> None:
    numeric, nominal = split_mixed(["log2", None, 0.10, "sqrt", 0.20, 0.30])
    np.testing.assert_array_equal(numeric, [np.nan, np.nan, 0.10, np.nan, 0.20, 0.30])
    assert nominal == ["log2", None, "null", "sqrt", "null", "null"]


def test_table_3_3_types_after_splitting() -> None:
    encoder = ConfigurationEncoder().fit(ROWS)
    assert {name: str(kind) for name, kind in encoder.types_.items()} == {
        "n_estimators": "numeric",
        "criterion": "nominal",
        "max_features": "mixed",
        "max_depth": "mixed",
        "min_samples_split": "numeric",
        "min_samples_leaf": "numeric",
        "bootstrap": "boolean",
        "@preprocessor": "object",
    }
    numeric, nominal = split_mixed(TABLE["max_depth"])
    np.testing.assert_array_equal(numeric, [9, 10, 11, 12, np.nan])
    assert nominal == ["null", "null", "null", "null", None]


def test_table_3_4_parameter_specific_imputing() -> None:
    encoder = ConfigurationEncoder(one_hot=False, imputers=TABLE_RULES)
    columns = as_columns(encoder, encoder.fit_transform(ROWS, FACTS))
    assert [round(x, 4) for x in columns["max_features_num"]] == [0.05, 0.10, 0.0576, 0.0913, 1]
    assert columns["max_features_num"][2:4] == [math.log2(120) / 120, math.sqrt(120) / 120]
    assert columns["max_depth_num"] == [9, 10, 11, 12, 20]
    assert columns["min_samples_split"] == [2, 3, 8, 5, 8]


def test_table_3_5_mapping() -> None:
    rows: Rows = [{"criterion": "gini", "max_features": "sqrt"}, {"criterion": "entropy"}]
    rows += [{"max_features": "log2"}, {"max_features": None}]
    assert ConfigurationEncoder().fit(rows).categories_ == {
        "criterion": {"<unkn>": 0, "entropy": 1, "gini": 2},
        "max_features": {"<unkn>": 0, "log2": 1, "None": 2, "sqrt": 3},
    }


def test_table_3_6_numerical_values() -> None:
    """The table counts from the first category; here 0 is the unknown one, as in table 3.5."""
    encoder = ConfigurationEncoder(one_hot=False, imputers=TABLE_RULES)
    columns = as_columns(encoder, encoder.fit_transform(ROWS, FACTS))
    nominal = encoder.get_feature_names_out()[encoder.nominal_features_]
    shifted = {name: (np.array(columns[name]) - 1).tolist() for name in nominal}
    assert shifted == {
        "@preprocessor": [1, 2, 2, 2, 0],
        "criterion": [1, 1, 1, 0, 1],
        "max_depth_nom": [1, 1, 1, 1, 0],
        "max_features_nom": [2, 2, 0, 3, 1],
    }
    assert columns["bootstrap"] == [1, 0, 0, 1, 1]


def test_table_3_7_one_hot_encoding() -> None:
    encoder = ConfigurationEncoder(imputers=TABLE_RULES)
    columns = as_columns(encoder, encoder.fit_transform(ROWS, FACTS))
    assert not encoder.nominal_features_.any()
    columns["max_features_num"] = [round(x, 4) for x in columns["max_features_num"]]
    assert list(columns.items()) == [  # in our order: sorted by parameter
        ("@preprocessor_None", [0, 0, 0, 0, 1]),
        ("@preprocessor_OneHotEncoder", [1, 0, 0, 0, 0]),
        ("@preprocessor_PCA", [0, 1, 1, 1, 0]),
        ("bootstrap", [1, 0, 0, 1, 1]),
        ("criterion_entropy", [0, 0, 0, 1, 0]),
        ("criterion_gini", [1, 1, 1, 0, 1]),
        ("max_depth_num", [9, 10, 11, 12, 20]),
        ("max_depth_nom_None", [0, 0, 0, 0, 1]),
        ("max_depth_nom_null", [1, 1, 1, 1, 0]),
        ("max_features_num", [0.05, 0.10, 0.0576, 0.0913, 1]),
        ("max_features_nom_log2", [0, 0, 1, 0, 0]),
        ("max_features_nom_None", [0, 0, 0, 0, 1]),
        ("max_features_nom_null", [1, 1, 0, 0, 0]),
        ("max_features_nom_sqrt", [0, 0, 0, 1, 0]),
        ("min_samples_leaf", [1, 7, 2, 7, 9]),
        ("min_samples_split", [2, 3, 8, 5, 8]),
        ("n_estimators", [10, 100, 100, 500, 100]),
    ]


def test_all_known_meanings_turn_counts_of_rows_into_fractions() -> None:
    columns = as_columns(
        encoder := ConfigurationEncoder(), encoder.fit_transform(ROWS, tasks=FACTS)
    )
    assert columns["min_samples_leaf"] == [0.001, 0.007, 0.002, 0.007, 0.009]


def test_space_first_runs_later() -> None:
    """Thesis 3.1.2: fit on the values of a space, transform what is drawn from it."""
    space: Rows = [{"criterion": "gini", "depth": 8}, {"criterion": "entropy", "depth": None}]
    encoder = ConfigurationEncoder(drop_constant=False).fit(space)
    X = encoder.transform([{"criterion": "entropy", "depth": 8}])
    assert as_columns(encoder, X) == {
        "criterion_entropy": [1],
        "criterion_gini": [0],
        "depth_num": [8],
        "depth_nom_None": [0],
        "depth_nom_null": [1],
    }


# --- Types ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([np.int64(3), np.float32(0.5), Fraction(1, 2), Decimal("0.1")], ParameterType.NUMERIC),
        ([np.bool_(True), np.int64(0)], ParameterType.BOOLEAN),
        ([np.str_("a"), "b"], ParameterType.NOMINAL),
        ([0, 1, 1.0], ParameterType.NUMERIC),
        ([True, 1.0, None], ParameterType.BOOLEAN),
        ([True, "auto"], ParameterType.NOMINAL),
        ([True, "auto", 3], ParameterType.MIXED),
        ([True, 3], ParameterType.MIXED),
        ([None, None], ParameterType.NOMINAL),
        ([None, "a"], ParameterType.NOMINAL),
        ([], ParameterType.NOMINAL),
        ([math.nan, 1], ParameterType.NUMERIC),
        ([math.nan, "a", pd.NA, pd.NaT, np.float64("nan")], ParameterType.NOMINAL),
        ([math.inf, 10**400], ParameterType.NUMERIC),
        (["a", [1]], ParameterType.OBJECT),
        ([True, (1, 2)], ParameterType.OBJECT),
        ([1, 1j], ParameterType.OBJECT),
        ([1, b"a"], ParameterType.OBJECT),
        ([1, np.array(1)], ParameterType.OBJECT),
    ],
)
def test_detect_type(values: list[Any], expected: ParameterType) -> None:
    assert detect_type(values) is expected


def test_bool_beside_other_values_is_a_category() -> None:
    assert encode([True, "auto", 3]) == {  # a_num never varies
        "a_nom_auto": [0, 1, 0],
        "a_nom_null": [0, 0, 1],
        "a_nom_True": [1, 0, 0],
    }


def test_boolean_column() -> None:
    encoder = ConfigurationEncoder().fit([{"a": True}, {"a": False}])
    values = [True, 0, np.bool_(True), 1.0, None, 2, "True", [], math.nan]
    X = encoder.transform([{"a": value} for value in values])
    np.testing.assert_array_equal(X[:, 0], [1, 0, 1, 1] + [np.nan] * 5)


# --- Known meanings -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("max_features", "auto", math.sqrt(120) / 120),
        ("max_features", "sqrt", math.sqrt(120) / 120),
        ("max_features", np.str_("log2"), math.log2(120) / 120),
        ("max_features", None, 1.0),
        ("max_features", 30, 0.25),
        ("max_features", np.int64(30), 0.25),
        ("max_features", 30.0, 0.25),  # a count that has been through a data frame
        ("max_features", 0.3, 0.3),
        ("max_features", 1, 1 / 120),
        ("max_features", 1.0, 1.0),
        ("max_features", np.float64(1.0), 1.0),
        ("gamma", "auto", 1 / 120),
        ("gamma", "scale", 1 / 480),
        ("gamma", 0.7, 0.7),
        ("min_samples_leaf", 5, 0.005),
        ("min_samples_leaf", 0.1, 0.1),
        ("min_samples_split", 20, 0.02),
        ("max_depth", None, 20),
        ("max_depth", 3, 3),
        ("rf.max_features", 30, 0.25),
        ("classifier:max_features", 30, 0.25),
        ("svm__gamma", "scale", 1 / 480),
        ("a.b:c__max_depth", None, 20),
        ("my_max_depth", None, 3),  # not the same name: the median
    ],
)
def test_known_meaning(name: str, value: Any, expected: float) -> None:
    facts = TaskFacts(n_instances=1000, n_features=120, x_variance=4.0)
    rows: Rows = [{name: 3}, {name: "other"}, {name: value}]
    encoder = ConfigurationEncoder(drop_constant=False).fit(rows, facts)
    assert as_columns(encoder, encoder.transform(rows))[f"{name}_num"][2] == expected


def test_auto_is_renamed_only_where_it_means_sqrt() -> None:
    assert list(encode(["auto", "sqrt", 0.5], "max_features")) == [
        "max_features_nom_null",
        "max_features_nom_sqrt",
    ]
    assert "gamma_nom_auto" in encode(["auto", 0.5], "gamma")
    assert "max_features_nom_auto" in encode(["auto", "sqrt", 0.5], "max_features", imputers={})


def test_smallest_task() -> None:
    one = TaskFacts(n_instances=1, n_features=1, x_variance=0.0)
    for name, value in (("max_features", "log2"), ("max_features", "sqrt"), ("gamma", "scale")):
        assert KNOWN_MEANINGS[name](value, one) == 1.0, f"{name=}, {value=}"


def test_without_facts_counts_stay_and_categories_take_the_median() -> None:
    columns = encode([2, 4, 9, "sqrt", None, "absent"], "max_features")
    np.testing.assert_array_equal(columns["max_features_num"], [2, 4, 9, 4, 1, np.nan])


def test_the_median_is_that_of_the_numbers_not_of_what_a_rule_computes() -> None:
    columns = encode([1, 2, None, None, None, "deep"], "max_depth")
    assert columns["max_depth_num"] == [1, 2, 20, 20, 20, 1.5]


def test_a_rule_serves_numeric_columns_too() -> None:
    encoder = ConfigurationEncoder().fit([{"max_depth": 3}, {"max_depth": 4}])
    assert encoder.transform([{"max_depth": None}]) == [[20.0]]


def test_tasks_by_row_and_remembered() -> None:
    rows: Rows = [{"max_features": 5}, {"max_features": 5}]
    tasks = [TaskFacts(100, 10), TaskFacts(100, 50)]
    encoder = ConfigurationEncoder().fit(rows, tasks)
    np.testing.assert_array_equal(encoder.transform(rows, tasks), [[0.5], [0.1]])
    np.testing.assert_array_equal(encoder.transform(rows, TaskFacts(9, 5)), [[1.0], [1.0]])
    with pytest.raises(ValueError, match="tasks must be given to transform"):
        encoder.transform(rows)
    encoder.fit(rows, tasks[0])
    assert encoder.tasks_ == tasks[0]
    np.testing.assert_array_equal(encoder.transform(rows), [[0.5], [0.5]])


def test_own_rules() -> None:
    def tenth(value: Any, facts: TaskFacts | None) -> float | None:
        return 0.1 if value == "low" else None

    rules = {**KNOWN_MEANINGS, "eta": tenth, "b.eta": lambda value, facts: 7.0}
    rows: Rows = [{"a.eta": 0.5, "b.eta": 0.5}, {"a.eta": "low", "b.eta": "low"}, {"a.eta": "?"}]
    encoder = ConfigurationEncoder(imputers=rules, drop_constant=False)
    columns = as_columns(encoder, encoder.fit_transform(rows))
    assert columns["a.eta_num"] == [0.5, 0.1, 0.5]
    np.testing.assert_array_equal(columns["b.eta_num"], [7, 7, np.nan])  # the full name wins


# --- Categories -----------------------------------------------------------------------------


def test_keys_do_not_collide() -> None:
    values = [
        *(True, "True", 1, 1.0, "1", None, "None", "null", "nan", b"a", "a", "'a'", "<unkn>"),
        *([], (), {}, set(), "[]", [1], ["1"], [True], [[1]], (1,), {1: 2}, {"1": 2}, [None]),
        *(
            PCA,
            PCA(),
            PCA(2),
            OneHotEncoder(),
            Plain,
            Plain(),
            Shown(1),
            Shown("1"),
            len,
            math.log,
        ),
        *(np.array([1]), np.array([1.0]), Colour.RED, 1j, datetime.date(2018, 1, 1), ...),
        *(CountVectorizer(stop_words=["a"]), CountVectorizer(stop_words=["b"])),
    ]
    keys = [category_key(value) for value in values]
    assert len(set(keys)) == len(keys), keys


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (np.int64(3), 3),
        (np.float64(0.5), 0.5),
        (np.bool_(True), True),
        (np.str_("a"), "a"),
        ([1, {"a": 2, "b": 3}], [np.int64(1), {"b": 3, "a": 2}]),
        ({"x", "y", "z"}, frozenset({"z", "y", "x"})),
        (PCA(n_components=3), PCA(n_components=3)),
        (np.arange(5000), np.arange(5000)),
        (Plain(), Plain()),
        (Identity(), Identity()),
        (Rude(), Rude()),
        (Shown({"a", "b", "c"}), Shown({"c", "b", "a"})),
        (lambda: 0, lambda: 0),
    ],
)
def test_equal_content_is_one_category(one: Any, other: Any) -> None:
    assert category_key(one) == category_key(other)
    assert "0x" not in category_key(one)


def test_abridged_reprs_are_told_apart() -> None:
    long = np.arange(5000)
    assert category_key(long) != category_key(np.where(long == 2500, 0, long))
    assert category_key(pd.Series(long)) != category_key(pd.Series(np.where(long == 9, 0, long)))


def test_a_container_that_holds_itself() -> None:
    loop: list[Any] = [1]
    loop.append(loop)
    assert category_key(loop) == "[1, ...]"
    deep: list[Any] = []
    for _ in range(10_000):
        deep = [deep]
    assert category_key(deep).startswith("[[")


def test_shared_labels_become_keys() -> None:
    assert list(encode([PCA(2), PCA(3), None, "None"])) == [
        "a_'None'",
        "a_None",
        "a_sklearn.decomposition._pca.PCA(n_components=2)",
        "a_sklearn.decomposition._pca.PCA(n_components=3)",
    ]
    assert list(encode(["null", 1, 2])) == ["a_num", "a_nom_'null'", "a_nom_null"]
    assert list(encode(["<unkn>", "b"])) == ["a_'<unkn>'", "a_b"]
    assert list(encode([PCA, len, Shown(1), [1], {"k": 1}])) == [
        "a_[1]",
        "a_len",
        "a_PCA",
        "a_Shown",
        "a_{'k': 1}",
    ]


def test_feature_names_are_unique() -> None:
    rows: Rows = [{"a": "b_c", "a_b": "c"}, {"a": "x", "a_b": "y"}]
    names = ConfigurationEncoder().fit(rows).get_feature_names_out()
    assert names.tolist() == ["a_b_c", "a_x", "a_b_c_", "a_b_y"]


def test_unseen_categories_are_all_zeros_or_index_zero() -> None:
    rows: Rows = [{"a": "x", "b": "p"}, {"a": "y", "b": 5}]
    unseen: Rows = [{"a": "z", "b": "q"}, {"a": 3, "b": [1]}, {"a": None, "b": Plain()}]
    encoder = ConfigurationEncoder(one_hot=False, drop_constant=False).fit(rows)
    assert encoder.transform(unseen).tolist() == [[0, 5, 0]] * 3
    encoder = ConfigurationEncoder(drop_constant=False).fit(rows)
    assert encoder.transform(unseen).tolist() == [[0, 0, 5, 0, 0]] * 3


# --- Missing, infinite, constant ------------------------------------------------------------


def test_inactive_is_nan_in_all_its_features() -> None:
    rows: Rows = [
        {"kernel": "rbf", "gamma": 0.1, "depth": None, "flag": True},
        {"kernel": "poly", "gamma": 0.2, "depth": 3, "flag": False},
        {},
        dict.fromkeys(("kernel", "gamma", "depth", "flag"), math.nan),
    ]
    for one_hot in (True, False):
        X = ConfigurationEncoder(one_hot=one_hot, drop_constant=False).fit_transform(rows)
        assert np.isfinite(X[:2]).all()
        assert np.isnan(X[2:]).all()


def test_missing_impute_leaves_no_nan() -> None:
    rows: Rows = [
        {"a": 1, "b": "x", "c": True, "d": 5},
        {"a": 4, "d": None},
        {"a": 5, "b": "y"},
        {},
    ]
    encoder = ConfigurationEncoder(missing="impute", drop_constant=False)
    columns = as_columns(encoder, encoder.fit_transform(rows))
    assert columns["a"] == [1, 4, 5, 4]
    assert columns["b_x"] == [1, 0, 0, 0]
    assert columns["c"] == [1, 1, 1, 1]
    assert columns["d_num"] == [5, 5, 5, 5]
    assert columns["d_nom_null"] == [1, 0, 0, 0]


def test_data_frames_as_records() -> None:
    text = pd.Series(["x", np.nan, "y"], dtype=object)  # pandas 2 has no missing value in "str"
    records: Any = pd.DataFrame({"a": [1, None, 3], "b": text}).to_dict("records")
    for record, value in zip(records, (1, pd.NA, 0), strict=True):
        record["c"] = value
    encoder = ConfigurationEncoder().fit(records)
    assert list(encoder.types_.values()) == ["numeric", "nominal", "numeric"]
    assert np.isnan(encoder.transform(records)[1]).all()


def test_infinities_take_the_nearest_observed_number() -> None:
    assert encode([1.0, 5.0, math.inf, -math.inf, 10**400]) == {"a": [1, 5, 5, 1, 5]}
    assert encode([math.inf, -math.inf]) == {"a": [0, 0]}
    assert encode([1.7e308, 1.7e308, "x", 1e308])["a_num"] == [1.7e308, 1.7e308, 1.7e308, 1e308]


def test_constant_columns() -> None:
    rows: Rows = [{"same": 1, "one": "x", "part": 2, "a": 1}, {"same": 1, "one": "x", "a": 2}]
    names = ConfigurationEncoder().fit(rows).get_feature_names_out()
    assert names.tolist() == ["a", "part"]  # present or not is information
    names = ConfigurationEncoder(missing="impute").fit(rows).get_feature_names_out()
    assert names.tolist() == ["a"]
    names = ConfigurationEncoder(drop_constant=False).fit(rows).get_feature_names_out()
    assert names.tolist() == ["a", "one_x", "part", "same"]


def test_where_nothing_varies_all_columns_stay() -> None:
    encoder = ConfigurationEncoder().fit([{"a": 1, "b": "x"}])
    np.testing.assert_array_equal(encoder.transform([{"a": 2, "b": "y"}]), [[2, 0]])


def test_parameters_without_a_value_and_unknown_parameters_are_ignored() -> None:
    encoder = ConfigurationEncoder().fit([{"a": 1, "b": math.nan}, {"a": 2}])
    assert list(encoder.types_) == ["a"]
    odd: Any = [{"a": 3, "c": "new", 7: 7}]
    np.testing.assert_array_equal(encoder.transform(odd), [[3]])


# --- Estimator manners ----------------------------------------------------------------------


def test_clone_pickle_and_copy() -> None:
    encoder = ConfigurationEncoder(imputers=KNOWN_MEANINGS, one_hot=False)
    assert clone(encoder).get_params() == encoder.get_params()
    X = encoder.fit_transform(ROWS, FACTS)
    for twin in (pickle.loads(pickle.dumps(encoder)), copy.deepcopy(encoder)):
        np.testing.assert_array_equal(twin.transform(ROWS), X)
        assert twin.get_feature_names_out().tolist() == encoder.get_feature_names_out().tolist()


def test_options_count_at_fit() -> None:
    encoder = ConfigurationEncoder().fit(ROWS)
    X = encoder.transform(ROWS)
    encoder.set_params(one_hot=False, missing="impute")
    np.testing.assert_array_equal(encoder.transform(ROWS), X)
    encoder.get_feature_names_out()[:] = "changed"
    assert "changed" not in encoder.get_feature_names_out()


def test_native_categories_serve_a_booster() -> None:
    encoder = ConfigurationEncoder(one_hot=False)
    X = encoder.fit_transform(ROWS * 10)
    model = HistGradientBoostingRegressor(categorical_features=encoder.nominal_features_)
    y = np.array([row["criterion"] == "gini" for row in ROWS * 10], dtype=float)
    unseen = encoder.transform([{**ROWS[0], "criterion": "mse"}, {}])
    assert np.isfinite(model.set_params(max_iter=2).fit(X, y).predict(unseen)).all()


def test_inputs_stay_as_they_are() -> None:
    rows: Rows = [{"max_features": "auto", "a": [1, {2}]}, {"max_features": 0.5}]
    before = copy.deepcopy(rows)
    ConfigurationEncoder().fit_transform(rows)
    assert rows == before


# What follows is ill-typed on purpose.
Encoder: Any = ConfigurationEncoder
Facts: Any = TaskFacts
GOOD = [{"a": 1}]


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: Encoder().fit([]), ValueError, "configurations must hold at least"),
        (lambda: Encoder().fit([{}, {}]), ValueError, "at least one value"),
        (lambda: Encoder().fit([{"a": math.nan}]), ValueError, "at least one value"),
        (lambda: Encoder().fit({"a": 1}), TypeError, "got a str at position 0"),
        (lambda: Encoder().fit(5), TypeError, "got a int at position 0"),
        (lambda: Encoder().fit([*GOOD, 5]), TypeError, "got a int at position 1"),
        (lambda: Encoder().fit(pd.DataFrame(GOOD)), TypeError, "to_dict"),
        (lambda: Encoder().fit([{1: 1}]), TypeError, "names of type str, got 1"),
        (lambda: Encoder().transform(GOOD), NotFittedError, "not fitted"),
        (lambda: Encoder().get_feature_names_out(), NotFittedError, "not fitted"),
        (lambda: Encoder().fit(GOOD).transform([]), ValueError, "at least one mapp"),
        (lambda: Encoder(missing="drop").fit(GOOD), ValueError, "'impute', got 'dro"),
        (lambda: Encoder(imputers=[1]).fit(GOOD), TypeError, "imputers must be"),
        (lambda: Encoder(imputers={"a": 1}).fit(GOOD), TypeError, "callables"),
        (lambda: Encoder(onehot=True), TypeError, "onehot"),
        (lambda: Encoder().fit(GOOD, [FACTS] * 2), ValueError, "per row, 1, got 2"),
        (lambda: Encoder().fit(GOOD, [0.5]), TypeError, "got 0.5 at position 0"),
        (lambda: Encoder().fit(GOOD, 7), TypeError, "tasks must be None"),
        (
            lambda: Facts(n_instances=1, n_features=0),
            ValueError,
            "n_features must be .* got 0",
        ),
        (lambda: Facts(n_instances=0, n_features=1), ValueError, "n_instances must be"),
        (lambda: Facts(1, 1, x_variance=-1.0), ValueError, "x_variance must be .* least 0"),
        (lambda: Facts(1, 1, x_variance=math.nan), ValueError, "got nan"),
        (lambda: Facts("9", 1), TypeError, "n_instances must be a number, got '9'"),
        (lambda: Facts(1, True), TypeError, "n_features must be a number"),
    ],
)
def test_errors_teach(call: Callable[[], Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call()


# --- Properties -----------------------------------------------------------------------------

SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.sampled_from(["sqrt", "auto", "log2", "None", "null", "<unkn>", "", "a_b"]),
    st.text(max_size=3),
    st.sampled_from([np.int64(3), np.float32(0.1), np.bool_(True), np.str_("a"), 10**400]),
)
ODD = st.one_of(
    st.lists(SCALARS, max_size=2),
    st.sets(st.text(max_size=2), max_size=2),
    st.dictionaries(st.text(max_size=2), SCALARS, max_size=2),
    st.sampled_from([PCA(), PCA(2), PCA, Plain(), Identity(), Rude(), Shown({1}), len, 1j, b""]),
    st.decimals(),
    st.fractions(),
    st.sampled_from([Decimal("sNaN"), np.timedelta64(1, "s"), np.datetime64("NaT"), pd.NA]),
    st.sampled_from([np.zeros((0, 2)), object(), Colour.RED, Plain, lambda: 0, pd.DataFrame()]),
)
NAMES = st.sampled_from(["a", "b_num", "max_features", "rf.max_depth", "svm__gamma", "x:b_num"])
CONFIGURATIONS = st.one_of(
    st.lists(st.dictionaries(NAMES, SCALARS, max_size=4), min_size=1, max_size=6),
    st.lists(st.dictionaries(NAMES, SCALARS | ODD, max_size=4), min_size=1, max_size=6),
).map(lambda rows: [{"always": 0.5, **rows[0]}, *rows[1:]])
OPTIONS = st.fixed_dictionaries(
    {
        "one_hot": st.booleans(),
        "drop_constant": st.booleans(),
        "missing": st.sampled_from(["nan", "impute"]),
    }
)
TASKS = st.sampled_from([None, FACTS, TaskFacts(1, 1, 0.0)])
check = settings(deadline=None, max_examples=40)


@check
@given(CONFIGURATIONS, CONFIGURATIONS, OPTIONS, TASKS)
def test_nothing_raises_after_fit(
    seen: Rows, new: Rows, options: dict[str, Any], tasks: Any
) -> None:
    encoder = ConfigurationEncoder(**options).fit(seen, tasks)
    names = encoder.get_feature_names_out()
    assert len(set(names)) == len(names) > 0
    for rows in (seen, new):
        X = encoder.transform(rows)
        assert X.shape == (len(rows), len(names))
        assert not np.isinf(X).any()
        assert options["missing"] == "nan" or not np.isnan(X).any()
        np.testing.assert_array_equal(encoder.transform(rows[-1:]), X[-1:])
    indices = X[:, encoder.nominal_features_]
    assert (np.isnan(indices) | ((indices >= 0) & (indices == np.floor(indices)))).all()


@check
@given(CONFIGURATIONS, OPTIONS, TASKS, st.randoms(use_true_random=False))
def test_permuted_rows_give_permuted_features(
    rows: Rows, options: dict[str, Any], tasks: Any, random: Any
) -> None:
    order = list(range(len(rows)))
    random.shuffle(order)
    permuted = [dict(reversed(rows[i].items())) for i in order]
    one, other = ConfigurationEncoder(**options), ConfigurationEncoder(**options)
    X, Z = one.fit_transform(rows, tasks), other.fit_transform(permuted, tasks)
    assert one.get_feature_names_out().tolist() == other.get_feature_names_out().tolist()
    np.testing.assert_array_equal(X[order], Z)


@check
@given(st.lists(SCALARS, min_size=1, max_size=8))
def test_one_hot_columns_are_the_indices_spelled_out(values: list[Any]) -> None:
    rows: Rows = [{"a": value} for value in values] + [{"a": "x"}, {"a": "y"}]
    indices = ConfigurationEncoder(one_hot=False, drop_constant=False).fit(rows)
    one_hot = ConfigurationEncoder(drop_constant=False).fit(rows)
    k = len(next(iter(indices.categories_.values()))) - 1
    expected = indices.transform(rows)[:, -1]
    got = one_hot.transform(rows)[:, -k:]
    missing = np.isnan(expected)
    assert np.isnan(got[missing]).all()
    np.testing.assert_array_equal(got[~missing].sum(axis=1), 1)
    np.testing.assert_array_equal(got[~missing].argmax(axis=1) + 1, expected[~missing])


@check
@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=2, max_size=9))
def test_numbers_pass_unchanged(values: list[float]) -> None:
    rows: Rows = [{"a": value} for value in values]
    X = ConfigurationEncoder(drop_constant=False).fit_transform(rows)
    np.testing.assert_array_equal(X[:, 0], values)


@check
@given(CONFIGURATIONS, st.integers(1, 5))
def test_fit_on_some_transform_all(rows: Rows, some: int) -> None:
    encoder = ConfigurationEncoder().fit(rows[:some])
    X = encoder.transform(rows)
    np.testing.assert_array_equal(X[:some], encoder.transform(rows[:some]))


SCRIPT = """
from types import SimpleNamespace
from automl_plugins.meta.preprocessing import ConfigurationEncoder
words = {"alpha", "beta", "gamma", "delta", "epsilon"}
class Bag:
    def __repr__(self): return f"Bag({self.words})"
class Estimator:
    def __init__(self, words=None): self.words = words
    def get_params(self, deep): return {"words": self.words}
bag = Bag()
bag.words = words
values = [words, frozenset({"b", "a"}), {"k": words}, bag, SimpleNamespace(a=words), object(),
          Estimator(words), len, lambda: 0, Bag, None, "text", [1, {"y", "x"}]]
rows = [{"v": v, "m": m, n: 1} for v, m, n in zip(values, ["x", 1, None] * 5, "zyxwvutsrqpon")]
encoder = ConfigurationEncoder()
print(encoder.fit_transform(rows).tolist(), encoder.get_feature_names_out().tolist())
print(ConfigurationEncoder(one_hot=False).fit_transform(rows).tolist())
"""


def test_hash_seed_does_not_matter() -> None:
    root = Path(preprocessing.__file__).parents[1]
    one, other = (
        subprocess.run(
            [sys.executable, "-c", SCRIPT],
            cwd=root,
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    )
    assert len(one) > 1000
    assert one == other
