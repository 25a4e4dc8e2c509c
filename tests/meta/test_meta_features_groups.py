"""Reading a table, and the simple, statistical and information-theoretic features, by hand."""

from __future__ import annotations

import math
from math import log
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd
import pytest
import sklearn.datasets
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from sklearn.metrics import mutual_info_score

from automl_plugins.meta.features.extraction import meta_features
from automl_plugins.meta.features.information import (
    entropy,
    equal_frequency,
    mutual_information,
)
from automl_plugins.meta.features.statistical import skewness_and_kurtosis
from automl_plugins.meta.features.table import Column, read_table, read_target

nan = math.nan


def kinds(columns: list[Column]) -> list[bool]:
    return [column.nominal for column in columns]


class TestReading:
    def test_types_of_a_frame(self) -> None:
        days = pd.DatetimeIndex(["2020-01-01", pd.NaT, "2020-01-02"])
        frame = pd.DataFrame(
            {
                "float": [1.0, nan, 2.0],
                "int": [1, 2, 3],
                "bool": [True, False, True],
                "str": ["a", None, "b"],
                "category": pd.Categorical([3, 5, None]),
                "nullable": pd.array([1, None, 2], dtype="Int64"),
                "nullable bool": pd.array([True, None, True], dtype="boolean"),
                "time": days,
                "zoned": days.tz_localize("UTC"),
                "numbers as objects": np.array([1, None, 2.5], dtype=object),
                "mixed": np.array([1, "a", pd.NA], dtype=object),
                "none": np.array([None, None, None], dtype=object),
            }
        )
        columns = read_table(frame)
        assert [c.name for c in columns if c.nominal] == [
            *("bool", "str", "category", "nullable bool", "mixed", "none")
        ]
        assert [int(c.missing.sum()) for c in columns] == [1, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 3]
        by_name = {c.name: c.values for c in columns}
        np.testing.assert_array_equal(by_name["nullable"], [1, nan, 2])
        np.testing.assert_array_equal(by_name["str"], [0, -1, 1])
        assert by_name["time"][2] - by_name["time"][0] == 86_400e9
        np.testing.assert_array_equal(by_name["time"], by_name["zoned"])

    def test_types_of_arrays(self) -> None:
        assert kinds(read_table(np.array([[1, 2], [3, 4]]))) == [False, False]
        assert kinds(read_table(np.array([["1", "2"]]))) == [True, True]
        assert kinds(read_table(np.array([[True, False]]))) == [True, True]
        assert kinds(read_table([[1, "a", True, None], [2.5, "b", False, 1]])) == [
            *(False, True, True, False)
        ]

    @pytest.mark.parametrize("nominal", [["a", "c"], [0, 2], [0, -1], [True, False, True]])
    def test_nominal_columns_may_be_named(self, nominal: list[Any]) -> None:
        frame = pd.DataFrame({"a": [1.0, nan, 1.0], "b": [1, 2, 3], "c": [7, 8, 9]})
        columns = read_table(frame, nominal)
        assert kinds(columns) == [True, False, True]
        np.testing.assert_array_equal(columns[0].values, [0, -1, 0])

    @pytest.mark.parametrize(
        ("X", "nominal", "error", "match"),
        [
            (np.zeros(3), None, ValueError, r"X.reshape\(-1, 1\)"),
            ([[1, 2], [3]], None, ValueError, "inhomogeneous|equal length"),
            (np.zeros((0, 2)), None, ValueError, "no rows"),
            (np.zeros((2, 0)), None, ValueError, "no columns"),
            (np.zeros((2, 2), dtype=complex), None, TypeError, "complex"),
            ([["a", 1.0]], [1], ValueError, "not in nominal"),
            (np.zeros((2, 2)), [2], ValueError, "no column of X"),
            (np.zeros((2, 2)), ["a"], ValueError, "no column of X"),
            (np.zeros((2, 2)), [True], ValueError, "mask of 1"),
            (np.zeros((2, 2)), "ab", TypeError, "list of columns"),
            (pd.DataFrame({"a": [[1], [2]]}), None, TypeError, "without a hash"),
        ],
    )
    def test_errors_teach(self, X: Any, nominal: Any, error: type[Exception], match: str) -> None:
        with pytest.raises(error, match=match):
            read_table(X, nominal)

    def test_a_sparse_matrix_is_sent_back(self) -> None:
        sparse = pytest.importorskip("scipy.sparse").csr_matrix(np.eye(3))
        with pytest.raises(TypeError, match="toarray"):
            read_table(sparse)


class TestTarget:
    @pytest.mark.parametrize(
        ("y", "task"),
        [
            (["a", "b", "a", "b"], "classification"),
            ([True, False, True, True], "classification"),
            ([0, 1, 0, 1], "classification"),
            ([0.0, 1.0, 2.0, 2.0], "regression"),  # less than two rows for each value
            ([3.0, 3.0, 1.0, 1.0], "classification"),
            ([0.5, 1.0, 0.5, 1.0], "regression"),
            (np.arange(1000) % 100, "classification"),
            (np.arange(1000) % 101, "regression"),
            ([1, "a", 1, "a"], "classification"),
            (pd.Series(["u", "v", "v"], dtype="category"), "classification"),
            (pd.Series([1.5, 2.5, 3.5], dtype="category"), "classification"),
            (pd.array([1, 2, 3, 4], dtype="Int64"), "regression"),
            (np.array([[0], [1], [0], [1]]), "classification"),
        ],
    )
    def test_auto(self, y: Any, task: str) -> None:
        assert read_target(y, n_rows=len(y)).task == task

    @pytest.mark.parametrize(
        ("y", "task", "match"),
        [
            ([0, 1], "auto", "X has 3 rows but y has 2"),
            ([0, nan, 1], "auto", "1 missing"),
            (["a", None, None], "auto", "2 missing"),
            ([0.0, math.inf, 1.0], "auto", "infinite"),
            (["a", "b", "c"], "regression", "numeric"),
            ([0, 1, 0], "ranking", "task must be"),
            (np.zeros((3, 2)), "auto", "one column"),
        ],
    )
    def test_errors_teach(self, y: Any, task: str, match: str) -> None:
        with pytest.raises(ValueError, match=match):
            read_target(y, task=task, n_rows=3)


class TestSimple:
    X = pd.DataFrame(
        {
            "number": [1.0, 2.0, nan, 4.0],
            "binary": [0, 1, 1, 0],
            "letter": ["a", "b", "c", None],
            "flag": [True, True, False, True],
            "same": ["k"] * 4,
        }
    )

    def test_a_table_by_hand(self) -> None:
        found = meta_features(self.X, ["n", "n", "p", "n"], groups="simple")
        assert dict(found) == pytest.approx(
            {
                "NumberOfInstances": 4,
                "LogNumberOfInstances": log(4),
                "NumberOfFeatures": 5,
                "LogNumberOfFeatures": log(5),
                "Dimensionality": 5 / 4,
                "LogDimensionality": log(5 / 4),
                "InverseDimensionality": 4 / 5,
                "LogInverseDimensionality": log(4 / 5),
                "PercentageOfBinaryFeatures": 40,
                "PercentageOfInstancesWithMissingValues": 50,
                "PercentageOfMissingValues": 10,
                "PercentageOfNumericFeatures": 40,
                "PercentageOfSymbolicFeatures": 60,
                "StdvNominalAttDistinctValues": math.sqrt(2 / 3),  # of 3, 2 and 1
                "NumberOfClasses": 2,
                "ClassEntropy": 2 - 0.75 * math.log2(3),
                "ClassProbabilityMin": 0.25,
                "ClassProbabilityMax": 0.75,
                "ClassProbabilityMean": 0.5,
                "ClassProbabilitySTD": 0.25,
                "MajorityClassPercentage": 75,
                "Autocorrelation": 2 / 3,
            }
        )

    def test_a_numeric_target_by_hand(self) -> None:
        found = meta_features(self.X, [0.5, 0.5, 2.5, 4.5], groups="simple")
        assert found["TargetDistinctPercentage"] == 75
        assert found["TargetModePercentage"] == 50
        assert found["TargetAutocorrelation"] == pytest.approx(4 / 3 / math.sqrt(2.75))


class TestStatistical:
    @pytest.mark.parametrize("shift", [0.0, 1e3])
    def test_scipys_moments_of_what_is_known(self, shift: float) -> None:
        rng = np.random.default_rng(0)
        X = np.column_stack([rng.normal(size=300), rng.exponential(size=300), rng.random(300)])
        X += shift
        X[rng.random(X.shape) < 0.2] = nan
        found = meta_features(X, rng.integers(0, 2, 300), groups="statistical")
        for name, moment in (("Kurtosis", stats.kurtosis), ("Skewness", stats.skew)):
            each = np.array([moment(c[~np.isnan(c)]) for c in X.T])
            expected = [each.min(), each.max(), each.mean(), each.std()]
            got = [found[f"{name}{m}"] for m in ("Min", "Max", "Mean", "STD")]
            np.testing.assert_allclose(got, expected, rtol=1e-7)

    def test_rounding_is_no_variation(self) -> None:
        x = np.full(50, 0.1)
        x[0] = np.nextafter(0.1, 1)
        assert np.isnan(skewness_and_kurtosis(x)).all()

    def test_correlations_with_a_numeric_target(self) -> None:
        rng = np.random.default_rng(0)
        X = rng.normal(size=(200, 3))
        y = X[:, 0] - 0.5 * X[:, 1] + rng.normal(size=200)
        X[:40, 1] = nan
        found = meta_features(X, y, groups="statistical")
        each = [
            abs(stats.pearsonr(X[:, 0], y).statistic),
            abs(stats.pearsonr(X[40:, 1], y[40:]).statistic),
            abs(stats.pearsonr(X[:, 2], y).statistic),
        ]
        assert found["TargetCorrelationMax"] == pytest.approx(max(each))
        assert found["TargetCorrelationMean"] == pytest.approx(np.mean(each))
        assert found["TargetKurtosis"] == pytest.approx(stats.kurtosis(y))


codes = st.lists(st.integers(0, 5), min_size=1, max_size=40)


@pytest.mark.parametrize(("loader", "row"), [("load_wine", 187), ("load_breast_cancer", 1510)])
def test_values_published_for_the_same_data(
    loader: str, row: int, recorded_runs: ModuleType
) -> None:
    """Those of another implementation, recorded in the shared table of meta-features."""
    file = recorded_runs.data_folder() / "pmf_metafeatures" / "metafeatures.csv.gz"
    if not file.exists():
        pytest.skip(f"no published meta-features: there is no {file}")
    table = pd.read_csv(file).set_index("dataset_id").drop(columns="paper_split")
    published = dict(zip(table.columns, table.loc[[row]].to_numpy(np.float64)[0], strict=True))
    X, y = getattr(sklearn.datasets, loader)(return_X_y=True)
    found = meta_features(X, y)
    shared = [name for name in found if name in published]
    assert len(shared) == 20
    for name in shared:
        assert found[name] == pytest.approx(published[name], rel=1e-4, abs=1e-6), name
    assert 1 - found["NaiveBayesErrRate"] == pytest.approx(
        published["LandmarkNaiveBayes"], abs=0.03
    )
    assert 1 - found["kNN1NErrRate"] == pytest.approx(published["Landmark1NN"], abs=0.03)


class TestInformation:
    def test_a_table_by_hand(self) -> None:
        X = [["a", "u", "k"], ["a", "v", "k"], ["b", "u", "k"], ["b", "v", "k"]]
        found = meta_features(X, ["p", "p", "n", "n"], groups="information")
        # entropies 1, 1, 0; mutual information 1, 0, 0
        assert dict(found) == pytest.approx(
            {
                "MinAttributeEntropy": 0,
                "MaxAttributeEntropy": 1,
                "MeanAttributeEntropy": 2 / 3,
                "Quartile1AttributeEntropy": 0.5,
                "Quartile2AttributeEntropy": 1,
                "Quartile3AttributeEntropy": 1,
                "MinMutualInformation": 0,
                "MaxMutualInformation": 1,
                "MeanMutualInformation": 1 / 3,
                "Quartile1MutualInformation": 0,
                "Quartile2MutualInformation": 0,
                "Quartile3MutualInformation": 0.5,
                "EquivalentNumberOfAtts": 3,
                "MeanNoiseToSignalRatio": 1,
            }
        )

    @given(st.data())
    def test_agrees_with_scikit_learn(self, data: st.DataObject) -> None:
        a = np.array(data.draw(codes))
        b = np.array(data.draw(st.lists(st.integers(0, 3), min_size=len(a), max_size=len(a))))
        assert entropy(a) == pytest.approx(stats.entropy(np.bincount(a), base=2), abs=1e-12)
        expected = mutual_info_score(a, b) / log(2)
        assert mutual_information(a, b) == pytest.approx(expected, abs=1e-12)
        assert mutual_information(a, b) == pytest.approx(mutual_information(b, a), abs=1e-12)
        assert mutual_information(a, a) == pytest.approx(entropy(a))

    def test_large_codes_need_no_large_table(self) -> None:
        assert entropy(np.array([0, 10**15, 10**15, 3])) == 1.5

    @given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=80), st.integers(2, 10))
    def test_bins_keep_order_and_ties(self, values: list[float], bins: int) -> None:
        x = np.array(values)
        binned = equal_frequency(x, bins)
        assert len(np.unique(binned)) <= bins
        assert (len(np.unique(binned)) > 1) == (len(np.unique(x)) > 1)
        order = np.argsort(x, kind="stable")
        assert (np.diff(binned[order]) >= 0).all()
        assert (np.diff(binned[order])[np.diff(x[order]) == 0] == 0).all()

    @pytest.mark.parametrize("sign", [1.0, -1.0])
    def test_a_common_value_at_either_end_is_told_from_the_rest(self, sign: float) -> None:
        x = sign * np.concatenate([np.zeros(950), np.arange(1.0, 51.0)])
        binned = equal_frequency(x)
        assert (binned[:950] == binned[0]).all()
        assert (binned[950:] != binned[0]).all()

    def test_missing_values_are_left_out_column_by_column(self) -> None:
        X = [["a"], ["b"], [None], ["a"], ["b"], [None]]
        found = meta_features(X, [0, 1, 0, 0, 1, 1], groups="information")
        assert found["MeanAttributeEntropy"] == found["MeanMutualInformation"] == 1

    def test_the_entropy_of_a_numeric_target_is_that_of_its_bins(self) -> None:
        y = np.random.default_rng(0).normal(size=500)
        found = meta_features(y[:, None], y, groups="information")
        assert found["TargetEntropy"] == pytest.approx(math.log2(10))
        assert found["MeanMutualInformation"] == pytest.approx(math.log2(10))
        assert found["EquivalentNumberOfAtts"] == pytest.approx(1)
