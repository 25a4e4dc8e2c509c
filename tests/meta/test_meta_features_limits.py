"""The call as a whole: limits, speed, bad data."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from effort import Clock, count_calls
from known_data import landmark_names, same, table

from automl_plugins.meta.features import learners
from automl_plugins.meta.features.extraction import (
    meta_feature_names,
    meta_features,
)


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

    def test_every_row_a_class_or_a_category_of_its_own(self) -> None:
        ids = [f"id{i}" for i in range(90)]
        found = meta_features([[v, i % 7] for i, v in enumerate(ids)], ids, task="classification")
        assert found["NumberOfClasses"] == 90
        assert found["kNN1NErrRate"] == 1
        assert found["MaxMutualInformation"] == pytest.approx(math.log2(90))
        assert not found.failures

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
