"""The call as a whole: names, the result, invariances, use."""

from __future__ import annotations

import math
import pickle
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import pytest
from known_data import landmark_names, same, table

from automl_plugins.meta.features.extraction import (
    GROUPS,
    meta_feature_names,
    meta_features,
)

# van Hoof (2018), table 6.3 and appendix B, in the spelling of methods.md
THESIS_SIMPLE = {
    *("NumberOfInstances", "NumberOfFeatures", "NumberOfClasses", "Dimensionality"),
    *("ClassEntropy", "MajorityClassPercentage", "Autocorrelation"),
    *("PercentageOfBinaryFeatures", "PercentageOfInstancesWithMissingValues"),
    *("PercentageOfMissingValues", "PercentageOfNumericFeatures", "PercentageOfSymbolicFeatures"),
    "StdvNominalAttDistinctValues",
}
THESIS_LEARNERS = {
    *("CfsSubsetEval_DecisionStump", "CfsSubsetEval_NaiveBayes", "CfsSubsetEval_kNN1N"),
    *("DecisionStump", "NaiveBayes", "kNN1N", "J48.00001.", "J48.0001.", "J48.001."),
    *("REPTreeDepth1", "REPTreeDepth2", "REPTreeDepth3"),
    *("RandomTreeDepth1", "RandomTreeDepth2", "RandomTreeDepth3"),
}


class TestNames:
    def test_holds_both_papers_lists(self) -> None:
        names = set(meta_feature_names())
        learners_ = {f"{s}{m}" for s in THESIS_LEARNERS for m in ("AUC", "ErrRate", "Kappa")}
        moments = {
            f"{s}{m}" for s in ("Kurtosis", "Skewness") for m in ("Min", "Max", "Mean", "STD")
        }
        assert THESIS_SIMPLE | learners_ | moments <= names
        assert landmark_names() == learners_

    @pytest.mark.parametrize("task", ["classification", "regression"])
    @pytest.mark.parametrize("groups", [GROUPS, *GROUPS, ("landmarking", "simple")])
    def test_are_known_before_extraction(self, task: str, groups: Any) -> None:
        frame, _ = table(40)
        y = np.arange(40) % 2 if task == "classification" else np.linspace(0, 1, 40)
        found = meta_features(frame, y, groups=groups)
        names = meta_feature_names(groups, task)
        assert found.task == task
        assert tuple(found) == names == tuple(dict.fromkeys(names))
        assert list(found.seconds) == list(found)

    def test_a_list_of_features_gives_just_these_in_its_order(self) -> None:
        frame, y = table()
        names = ("kNN1NAUC", "NumberOfClasses", "J48.001.Kappa")
        found, full = meta_features(frame, y, groups=names), meta_features(frame, y)
        assert dict(found) == {name: full[name] for name in names}

    def test_an_unknown_name_is_an_error_with_a_hint(self) -> None:
        with pytest.raises(ValueError, match="did you mean NumberOfClasses"):
            meta_feature_names(["NumberOfClases"])
        with pytest.raises(ValueError, match="no group or feature for regression"):
            meta_feature_names(["ClassEntropy"], "regression")
        with pytest.raises(ValueError, match="groups is empty"):
            meta_feature_names([])
        with pytest.raises(ValueError, match="task must be one of"):
            meta_feature_names(task="auto")


class TestResult:
    def test_is_a_mapping_that_pickles(self) -> None:
        found = meta_features(*table(), groups="simple")
        assert isinstance(found, Mapping)
        assert dict(found) == found.features == dict(pickle.loads(pickle.dumps(found)))
        assert found == dict(found)
        assert list(found.values()) == list(found.features.values())

    def test_every_nan_has_a_reason_and_nothing_else_has(self) -> None:
        found = meta_features(np.random.default_rng(0).normal(size=(5, 2)), list("aabba"))
        assert found.failures.keys() == {n for n, v in found.items() if math.isnan(v)}
        assert found.failures.keys() == landmark_names() | {"StdvNominalAttDistinctValues"}
        assert "5 rows" in found.failures["kNN1NAUC"]


class TestInvariances:
    def test_the_seed_settles_everything(self) -> None:
        frame, y = table(300)
        first = meta_features(frame, y, seed=3, max_landmark_rows=100)
        assert not same(first, meta_features(frame, y, seed=3, max_landmark_rows=100))
        other = same(first, meta_features(frame, y, seed=4, max_landmark_rows=100))
        assert other
        assert set(other) <= landmark_names()

    def test_the_order_of_rows_moves_autocorrelation_and_landmarkers_only(self) -> None:
        frame, y = table(300)
        order = np.random.default_rng(1).permutation(300)
        moved = same(
            meta_features(frame, y), meta_features(frame.iloc[order], y[order]), tolerance=1e-9
        )
        assert "Autocorrelation" in moved
        assert set(moved) - landmark_names() == {"Autocorrelation"}

    @pytest.mark.parametrize("labels", [[2, 0, 1], ["r", "q", "p"], [0.0, 5.0, -3.0]])
    def test_new_labels_for_the_classes_change_nothing(self, labels: list[Any]) -> None:
        frame, y = table()
        renamed = np.array([labels["xyz".index(v)] for v in y], dtype=object)
        assert not same(meta_features(frame, y), meta_features(frame, renamed))

    def test_units_of_the_columns_do_not_matter(self) -> None:
        frame, y = table()
        scaled = frame.assign(a=frame["a"] * 4.0 - 16.0, b=frame["b"] * 1024.0)
        moved = set(same(meta_features(frame, y), meta_features(scaled, y), 1e-7))
        assert not moved - landmark_names()
        # trees put their thresholds between rounded values; the rest is the same to the digit
        assert not {n for n in moved if n.startswith(("NaiveBayes", "kNN1N"))}

    def test_units_of_a_numeric_target_do_not_matter(self) -> None:
        frame, _ = table()
        y = np.random.default_rng(2).normal(size=120) + frame["b"].to_numpy()
        assert not same(meta_features(frame, y), meta_features(frame, 8.0 * y), 1e-9)
        moved = set(same(meta_features(frame, y), meta_features(frame, y - 64.0), 1e-7))
        assert not moved - landmark_names("regression")  # trees feel the rounding
        assert not {n for n in moved if n.startswith(("Linear", "kNN1N"))}

    def test_frames_and_object_arrays_agree(self) -> None:
        frame, y = table()
        found = meta_features(frame, y)
        assert not same(found, meta_features(frame.to_numpy(dtype=object), y))
        assert not same(found, meta_features(frame.to_numpy(dtype=object).tolist(), list(y)))
        assert not same(found, meta_features(frame.astype({"c": "category", "d": "string"}), y))

    def test_inputs_are_left_alone(self) -> None:
        frame, y = table()
        values = np.random.default_rng(0).normal(size=(120, 3))
        values[0, 0] = np.inf
        before = frame.copy(), y.copy(), values.copy()
        meta_features(frame, y)
        meta_features(values, y)
        pd.testing.assert_frame_equal(frame, before[0])
        assert (y == before[1]).all()
        assert (values == before[2]).all()


class TestUse:
    def test_an_easy_task_and_a_hopeless_one_are_told_apart(self) -> None:
        rng = np.random.default_rng(0)
        X = rng.normal(size=(600, 8))
        easy = meta_features(X, (X[:, 3] > 0).astype(int))
        noise = meta_features(X, rng.integers(0, 2, 600))
        for name in ("DecisionStump", "J48.001.", "REPTreeDepth2", "CfsSubsetEval_DecisionStump"):
            assert easy[f"{name}AUC"] > 0.98
            assert easy[f"{name}Kappa"] > 0.95
            assert abs(noise[f"{name}AUC"] - 0.5) < 0.1
        assert easy["MaxMutualInformation"] > 0.9
        assert noise["MaxMutualInformation"] < 0.05

    def test_a_linear_regression_task_is_known_as_one(self) -> None:
        rng = np.random.default_rng(0)
        X = rng.normal(size=(400, 5))
        found = meta_features(X, X @ np.array([3.0, -2.0, 1.0, 0.0, 0.0]))
        assert found.task == "regression"
        assert found["LinearRegressionR2"] > 0.98
        assert found["LinearRegressionRAE"] < 0.15
        assert 0.1 < found["DecisionStumpR2"] < 0.6
        assert found["TargetCorrelationMax"] == pytest.approx(3 / math.sqrt(14), abs=0.06)
