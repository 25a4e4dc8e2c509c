"""Meta-features as a whole: names, the result, invariances, use, limits, bad data."""

from __future__ import annotations

import math
import pickle
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import pytest
from effort import Clock, count_calls
from known_data import landmark_names, same, table

from automl_plugins.meta.features import learners
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


class TestLimits:
    def test_a_passed_limit_is_nan_with_its_reason_for_every_feature(self) -> None:
        found = meta_features(*table(), time_limit=1e-9)
        assert all(map(math.isnan, found.values()))
        assert "time limit of 1e-09 s" in found.failures["kNN1NAUC"]

    def test_one_slow_feature_costs_only_itself(self, monkeypatch: pytest.MonkeyPatch) -> None:
        clock = Clock(monkeypatch)

        def slow(*args: Any) -> Any:
            clock.sleep(0.4)
            return learners.nearest_neighbour(*args)

        monkeypatch.setattr(learners, "naive_bayes", slow)
        frame, y = table(60)
        found = meta_features(frame, y, groups=["NaiveBayesAUC", "kNN1NAUC"], time_limit=0.3)
        # given up after one of three folds
        assert found.total_seconds == found.seconds["NaiveBayesAUC"] == pytest.approx(0.4)
        assert set(found.failures) == {"NaiveBayesAUC"}

    def test_the_budget_keeps_what_was_there_before(self, monkeypatch: pytest.MonkeyPatch) -> None:
        clock = Clock(monkeypatch)

        def slow(*args: Any) -> Any:
            clock.sleep(2.0)
            return learners.nearest_neighbour(*args)

        monkeypatch.setattr(learners, "decision_stump", slow)
        found = meta_features(*table(60), budget=1.9)
        assert found["NumberOfClasses"] == 3
        assert set(found.failures) == landmark_names()
        assert "budget" in found.failures["DecisionStumpAUC"]
        assert "budget" in found.failures["kNN1NAUC"]
        assert found.total_seconds == pytest.approx(2.0)

    def test_one_failing_feature_costs_only_itself(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def broken(*args: Any) -> Any:
            raise FloatingPointError("strange data")

        monkeypatch.setattr(learners, "nearest_neighbour", broken)
        found = meta_features(*table())
        assert found.failures["kNN1NAUC"] == "FloatingPointError: strange data"
        assert {n for n in found.failures if "kNN1N" not in n} == set()

    def test_predictions_that_are_not_finite_are_a_failure(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(
            learners, "naive_bayes", lambda a, y, b, k, seed: (np.full((len(b.codes), k), np.nan),)
        )
        found = meta_features(*table(), groups=["NaiveBayesAUC"])
        assert "not finite" in found.failures["NaiveBayesAUC"]

    @pytest.mark.parametrize(
        "options",
        [
            {"time_limit": 0.0},
            {"budget": -1.0},
            {"budget": math.nan},
            {"max_landmark_rows": 0},
            {"max_statistics_columns": 2.5},
            {"max_landmark_columns": True},
            {"seed": -1},
        ],
    )
    def test_limits_that_mean_nothing_are_errors(self, options: dict[str, Any]) -> None:
        with pytest.raises(ValueError, match=next(iter(options))):
            meta_features(*table(20), **options)

    def test_caps_leave_the_simple_features_exact(self) -> None:
        rng = np.random.default_rng(0)
        X = rng.normal(size=(400, 30))
        y = (X[:, 0] > 1).astype(int)
        full = meta_features(X, y)
        capped = meta_features(
            X,
            y,
            max_landmark_rows=50,
            max_landmark_columns=3,
            max_statistics_rows=60,
            max_statistics_columns=4,
        )
        assert not capped.failures.keys() - {"StdvNominalAttDistinctValues"}
        moved = set(same(full, capped))
        assert moved
        assert not moved & set(meta_feature_names("simple"))

    def test_no_row_is_gone_through_by_itself(self) -> None:
        def calls(n: int) -> int:
            rng = np.random.default_rng(0)
            frame = pd.DataFrame(rng.normal(size=(n, 8)))
            for j in range(0, 8, 2):
                frame[j] = np.array(list("abcdefgh"), dtype=object)[rng.integers(0, 8, n)]
                frame.loc[rng.random(n) < 0.05, j + 1] = np.nan
            y = np.array(["p", "q", "r"])[rng.integers(0, 3, n)]
            meta_features(frame, y)
            return count_calls(lambda: meta_features(frame, y))

        assert calls(20_000) < 2 * calls(2_000)


class TestBadData:
    def test_one_class(self) -> None:
        found = meta_features(table()[0], ["only"] * 120)
        assert found["NumberOfClasses"] == found["ClassProbabilityMin"] == 1
        assert found["ClassEntropy"] == found["Autocorrelation"] == 0
        assert found["MaxMutualInformation"] == 0
        lost = landmark_names() | {"EquivalentNumberOfAtts", "MeanNoiseToSignalRatio"}
        assert found.failures.keys() == lost
        assert "constant" in found.failures["DecisionStumpAUC"]

    def test_a_constant_numeric_target(self) -> None:
        found = meta_features(table()[0], np.full(120, 0.1), task="regression")
        assert found["TargetModePercentage"] == 100
        assert found["TargetEntropy"] == 0
        assert landmark_names("regression") < found.failures.keys()
        assert found.failures["TargetKurtosis"] == "the target is constant."

    def test_no_column_has_a_value(self) -> None:
        found = meta_features(np.full((30, 4), np.nan), [0, 1] * 15)
        assert found["PercentageOfMissingValues"] == 100
        assert found["ClassEntropy"] == 1
        assert "no column varies" in found.failures["kNN1NAUC"]
        assert found.failures["MeanAttributeEntropy"] == "no column has a value."
        assert found.failures["KurtosisMean"] == "no numeric column varies."

    def test_a_single_row(self) -> None:
        found = meta_features([[1.0, "a"]], ["x"])
        assert found["NumberOfInstances"] == 1
        assert found["LogDimensionality"] == pytest.approx(math.log(2))
        assert found.failures["Autocorrelation"] == "there is one row."

    @pytest.mark.parametrize("scale", [1e-310, 1e-160, 1e150, 1e300, 1.7e308])
    def test_extreme_numbers(self, scale: float) -> None:
        X = np.random.default_rng(0).uniform(-1, 1, size=(60, 3)) * scale
        found = meta_features(X, (X[:, 0] > 0).astype(int))
        plain = meta_features(X / scale, (X[:, 0] > 0).astype(int))
        assert found.failures.keys() == plain.failures.keys()
        assert found["KurtosisMean"] == pytest.approx(plain["KurtosisMean"], rel=1e-9)
        assert found["kNN1NErrRate"] == plain["kNN1NErrRate"]

    @pytest.mark.parametrize("scale", [1e-310, 1e-290, 1e300])
    def test_extreme_targets(self, scale: float) -> None:
        frame, _ = table()
        y = np.random.default_rng(0).uniform(-1, 1, 120)
        found, plain = meta_features(frame, y * scale), meta_features(frame, y)
        assert not found.failures
        for name in ("TargetAutocorrelation", "TargetKurtosis", "LinearRegressionR2"):
            assert found[name] == pytest.approx(plain[name], rel=1e-9)

    def test_infinite_values_count_as_missing(self) -> None:
        X = np.random.default_rng(0).normal(size=(40, 2))
        lacking = X.copy()
        X[::4, 0], lacking[::4, 0] = np.inf, np.nan
        y = np.arange(40) % 2
        assert not same(meta_features(X, y), meta_features(lacking, y))
        assert meta_features(X, y)["PercentageOfMissingValues"] == 12.5
