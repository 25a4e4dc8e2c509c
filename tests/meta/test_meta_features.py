"""Meta-features: tables, formulas by hand, landmarkers, and the extraction as a whole."""

from __future__ import annotations

import itertools
import math
import pickle
from collections.abc import Mapping
from decimal import Decimal
from math import log, log2, nan
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
import sklearn.datasets
from effort import Clock, count_calls
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.optimize import brentq
from scipy.sparse import csr_matrix
from scipy.stats import norm
from sklearn.metrics import cohen_kappa_score, mutual_info_score, roc_auc_score, v_measure_score

from automl_plugins.meta import meta_feature_names, meta_features
from automl_plugins.meta.features import landmarkers, learners, measures
from automl_plugins.meta.features.extraction import GROUPS
from automl_plugins.meta.features.learners import Encoded, Split, encode
from automl_plugins.meta.features.table import Column, read_table, read_target

RNG = np.random.default_rng
STEMS = ("AttributeEntropy", "MutualInformation")
SPREAD = ("Min", "Max", "Mean", "Quartile1", "Quartile2", "Quartile3")
MOMENTS = ("Min", "Max", "Mean", "STD")

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
LANDMARKS = set(meta_feature_names("landmarking"))


def table(n: int = 120, seed: int = 0) -> tuple[pd.DataFrame, npt.NDArray[Any]]:
    """Two informative columns, noise, missing values; three classes of unequal size."""
    rng = RNG(seed)
    latent = rng.normal(size=n)
    frame = pd.DataFrame(
        {
            "a": latent + rng.normal(size=n),
            "b": np.exp(rng.normal(size=n)),
            "c": np.array(["u", "v", "w"], dtype=object)[rng.integers(0, 3, n)],
            "d": np.where(latent > 0, "yes", "no").astype(object),
            "e": rng.random(n) < 0.4,
        }
    )
    frame.loc[rng.random(n) < 0.1, "a"] = nan
    frame.loc[rng.random(n) < 0.1, "c"] = None
    return frame, np.array(["x", "y", "z"])[np.digitize(latent, [-0.2, 1.0])]


FRAME, Y = table()
X3 = np.arange(6.0).reshape(3, 2)
WHOLE = meta_features(FRAME, Y)


def moved(a: Mapping[str, float], b: Mapping[str, float], tolerance: float = 0.0) -> set[str]:
    """Names whose values differ."""
    assert list(a) == list(b)
    return {n for n in a if a[n] != pytest.approx(b[n], tolerance, tolerance, nan_ok=True)}


def encoded(X: Any) -> Encoded:
    return encode(read_table(X))


def kinds(columns: list[Column]) -> list[bool]:
    return [column.nominal for column in columns]


class TestReading:
    def test_types_of_a_frame(self) -> None:
        days = pd.DatetimeIndex(["2020-01-01", pd.NaT, "2020-01-02"])
        frame = pd.DataFrame(
            {
                "float": [1.0, nan, 2.0],
                "int": [1, 2, 3],
                "nullable": pd.array([1, None, 2], dtype="Int64"),
                "time": days,
                "zoned": days.tz_localize("UTC"),
                "numbers as objects": np.array([1, None, 2.5], dtype=object),
                "bool": [True, False, True],
                "str": ["a", None, "b"],
                "category": pd.Categorical([3, 5, None]),
                "nullable bool": pd.array([True, None, True], dtype="boolean"),
                "mixed": np.array([1, "a", pd.NA], dtype=object),
                "none": np.array([None, None, None], dtype=object),
            }
        )
        columns = read_table(frame)
        assert kinds(columns) == [False] * 6 + [True] * 6
        assert [int(c.missing.sum()) for c in columns] == [1, 0, 1, 1, 1, 1, 0, 1, 1, 1, 1, 3]
        by_name = {name: c.values for name, c in zip(frame, columns, strict=True)}
        np.testing.assert_array_equal(by_name["nullable"], [1, nan, 2])
        np.testing.assert_array_equal(by_name["str"], [0, -1, 1])
        assert by_name["time"][2] - by_name["time"][0] == 86_400e9
        np.testing.assert_array_equal(by_name["time"], by_name["zoned"])

    @pytest.mark.parametrize("unit", ["Y", "M", "D", "s", "us"])
    def test_dates_of_any_century_keep_their_order(self, unit: str) -> None:
        dates = ["1066-01-01", "2020-01-01", "2021-01-01", "9999-01-01", "NaT"]
        (column,) = read_table(np.array(dates, dtype=f"datetime64[{unit}]")[:, None])
        assert (np.diff(column.values[:4]) > 0).all() and column.missing.tolist() == [
            False
        ] * 4 + [True]
        assert column.values[2] - column.values[1] == 366 * 86_400e9
        (zoned,) = read_table(
            pd.DataFrame({"t": pd.Series(np.array(dates, "M8[s]")).dt.tz_localize("UTC")})
        )
        np.testing.assert_array_equal(zoned.values, column.values)

    @pytest.mark.parametrize(
        ("X", "nominal"),
        [
            (np.array([[1, 2], [3, 4]]), [False, False]),
            (np.array([["1", "2"]]), [True, True]),
            (np.array([[True, False]]), [True, True]),
            ([[1, "a", True, None], [2.5, "b", False, 1]], [False, True, True, False]),
            (np.ma.masked_greater([[1, 2], [3, 4]], 3), [False, False]),
            (csr_matrix([[1, 2], [3, 4]]).todense(), [False, False]),
            (pd.DataFrame([[1, "a"], [2, "b"]], columns=["x", "x"]), [False, True]),
        ],
    )
    def test_types_of_arrays(self, X: Any, nominal: list[bool]) -> None:
        columns = read_table(X)
        assert kinds(columns) == nominal
        assert {column.values.shape for column in columns} == {(len(X),)}

    @pytest.mark.parametrize("nominal", [["a", "c"], [0, 2], [0, -1], [True, False, True]])
    def test_nominal_columns_may_be_named(self, nominal: list[Any]) -> None:
        frame = pd.DataFrame({"a": [1.0, nan, 1.0], "b": [1, 2, 3], "c": [7, 8, 9]})
        columns = read_table(frame, nominal)
        assert kinds(columns) == [True, False, True]
        np.testing.assert_array_equal(columns[0].values, [0, -1, 0])

    @pytest.mark.parametrize(
        ("y", "task"),
        [
            (["a", "b", "a", "b"], "classification"),
            ([True, False, True, True], "classification"),
            ([0, 1, 0, 1], "classification"),
            ([0.0, 1.0, 2.0, 2.0], "regression"),  # less than two rows for each value
            ([3.0, 3.0, 1.0, 1.0], "classification"),
            ([0.5, 1.0, 0.5, 1.0], "regression"),
            ([Decimal("0.5"), Decimal(1), Decimal("0.5"), Decimal(1)], "regression"),
            (np.arange(1000) % 100, "classification"),
            (np.arange(1000) % 101, "regression"),
            ([1, "a", 1, "a"], "classification"),
            (pd.Series([1.5, 2.5, 3.5], dtype="category"), "classification"),
            (pd.array([1, 2, 3, 4], dtype="Int64"), "regression"),
            (np.array([[0], [1], [0], [1]]), "classification"),
            (np.ma.array([1.5, 2.5, 3.5]), "regression"),
            (pd.DataFrame({"y": pd.Categorical([1.5, 2.5, 3.5])}), "classification"),
            (pd.DataFrame({"y": [1.5, 2.5, 3.5]}), "regression"),
        ],
    )
    def test_the_task_of_a_target(self, y: Any, task: str) -> None:
        assert read_target(y, n_rows=len(y)).task == task

    @pytest.mark.parametrize(
        ("given", "error", "match"),
        [
            ({"X": np.zeros(3)}, ValueError, r"X.reshape\(-1, 1\)"),
            ({"X": [[1, 2], [3]]}, ValueError, "inhomogeneous|equal length"),
            ({"X": np.zeros((0, 2))}, ValueError, "no rows"),
            ({"X": np.zeros((2, 0))}, ValueError, "no columns"),
            ({"X": np.zeros((2, 2), dtype=complex)}, TypeError, "complex"),
            ({"X": [["a", 1.0]], "nominal": [1]}, ValueError, "not in nominal"),
            ({"X": X3, "nominal": [2]}, ValueError, "not a column of X"),
            ({"X": X3, "nominal": ["a"]}, ValueError, "not a column of X"),
            ({"X": X3, "nominal": [True]}, ValueError, "mask of 1"),
            ({"X": X3, "nominal": "ab"}, TypeError, "list of columns"),
            ({"X": pd.DataFrame({"a": [[1], [2]]})}, TypeError, "without a hash"),
            ({"X": csr_matrix(np.eye(3))}, TypeError, "toarray"),
            ({"y": [0, 1]}, ValueError, "X has 3 rows but y has 2"),
            ({"y": [0, nan, 1]}, ValueError, "1 missing"),
            ({"y": ["a", None, None]}, ValueError, "2 missing"),
            ({"y": np.ma.array([0, 1, -9], mask=[False, False, True])}, ValueError, "1 missing"),
            ({"y": [0.0, math.inf, 1.0]}, ValueError, "infinite"),
            ({"y": [0, 10**400, 1]}, ValueError, "infinite"),
            ({"y": ["a", "b", "c"], "task": "regression"}, ValueError, "numeric"),
            ({"task": "ranking"}, ValueError, "task must be"),
            ({"y": np.zeros((3, 2))}, ValueError, "one column"),
            ({"y": pd.Series([[1], [2], [3]])}, TypeError, "without a hash"),
            ({"time_limit": 0.0}, ValueError, "time_limit"),
            ({"time_limit": "10"}, TypeError, "time_limit must be a finite number > 0, or None"),
            ({"time_limit": True}, TypeError, "time_limit"),
            ({"budget": -1.0}, ValueError, "budget"),
            ({"budget": nan}, ValueError, "budget"),
            ({"max_landmark_rows": 0}, ValueError, "max_landmark_rows"),
            ({"max_statistics_columns": 2.5}, TypeError, "max_statistics_columns"),
            ({"max_landmark_columns": True}, TypeError, "max_landmark_columns"),
            ({"seed": -1}, ValueError, "seed"),
        ],
    )
    def test_errors_teach(self, given: Any, error: type[Exception], match: str) -> None:
        with pytest.raises(error, match=match):
            meta_features(**({"X": X3, "y": [0, 1, 0]} | given))


class TestFormulas:
    X = pd.DataFrame(
        {
            "number": [1.0, 2.0, nan, 4.0],
            "binary": [0, 1, 1, 0],
            "letter": ["a", "b", "c", None],
            "flag": [True, True, False, True],
            "same": ["k"] * 4,
        }
    )

    def test_simple_ones_by_hand(self) -> None:
        found = meta_features(self.X, ["n", "n", "p", "n"], groups="simple")
        sizes, columns, classes = np.split(list(found.values()), [8, 14])
        logs = [log(4), log(5), log(5 / 4), log(4 / 5)]
        np.testing.assert_allclose(sizes[::2], [4, 5, 5 / 4, 4 / 5])
        np.testing.assert_allclose(sizes[1::2], logs)
        # binary, rows and values that are missing, numeric, symbolic; 3, 2 and 1 symbols
        np.testing.assert_allclose(columns, [40, 50, 10, 40, 60, math.sqrt(2 / 3)])
        entropy = 2 - 0.75 * log2(3)
        np.testing.assert_allclose(classes, [2, entropy, 0.25, 0.75, 0.5, 0.25, 75, 2 / 3])
        assert list(found)[14:] == [
            *("NumberOfClasses", "ClassEntropy", "ClassProbabilityMin", "ClassProbabilityMax"),
            *("ClassProbabilityMean", "ClassProbabilitySTD", "MajorityClassPercentage"),
            "Autocorrelation",
        ]
        found = meta_features(self.X, [0.5, 0.5, 2.5, 4.5], groups="simple")
        assert found["TargetDistinctPercentage"] == 75
        assert found["TargetModePercentage"] == 50
        assert found["TargetAutocorrelation"] == pytest.approx(4 / 3 / math.sqrt(2.75))

    @pytest.mark.parametrize("shift", [0.0, 1e3])
    def test_moments_are_scipys(self, shift: float) -> None:
        rng = RNG(0)
        X = np.column_stack([rng.normal(size=300), rng.exponential(size=300), rng.random(300)])
        X += shift
        X[rng.random(X.shape) < 0.2] = nan
        found = meta_features(X, rng.integers(0, 2, 300), groups="statistical")
        for name, moment in (("Kurtosis", stats.kurtosis), ("Skewness", stats.skew)):
            each = np.array([moment(c[~np.isnan(c)]) for c in X.T])
            expected = [each.min(), each.max(), each.mean(), each.std()]
            got = [found[f"{name}{m}"] for m in MOMENTS]
            np.testing.assert_allclose(got, expected, rtol=1e-7)

    def test_rounding_is_no_variation(self) -> None:
        x = np.full(50, 0.1)
        x[0] = np.nextafter(0.1, 1)
        assert measures.kurtosis_and_skewness(x) is None

    def test_correlations_with_a_numeric_target(self) -> None:
        rng = RNG(0)
        X = rng.normal(size=(200, 3))
        y = X[:, 0] - 0.5 * X[:, 1] + rng.normal(size=200)
        X[:40, 1] = nan
        found = meta_features(X, y, groups="statistical")
        each = [abs(stats.pearsonr(X[i:, j], y[i:]).statistic) for j, i in enumerate((0, 40, 0))]
        assert found["TargetCorrelationMax"] == pytest.approx(max(each))
        assert found["TargetCorrelationMean"] == pytest.approx(np.mean(each))
        assert found["TargetKurtosis"] == pytest.approx(stats.kurtosis(y))

    def test_information_by_hand(self) -> None:
        X = [["a", "u", "k"], ["a", "v", "k"], ["b", "u", "k"], ["b", "v", "k"]]
        found = meta_features(X, ["p", "p", "n", "n"], groups="information")
        # entropies 1, 1, 0; mutual information 1, 0, 0
        spread = [[0, 1, 2 / 3, 0.5, 1, 1], [0, 1, 1 / 3, 0, 0, 0.5]]
        expected = {
            f"{s}{stem}": value
            for stem, row in zip(STEMS, spread, strict=True)
            for s, value in zip(SPREAD, row, strict=True)
        }
        expected |= {"EquivalentNumberOfAtts": 3, "MeanNoiseToSignalRatio": 1}
        assert dict(found) == pytest.approx(expected)

    @given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3)), min_size=1, max_size=40))
    def test_information_is_scikit_learns(self, pairs: list[tuple[int, int]]) -> None:
        a, b = np.array(pairs).T
        of_a = measures.entropy(a)
        assert measures.entropy(a) == pytest.approx(
            stats.entropy(np.bincount(a), base=2), abs=1e-12
        )
        assert measures.entropy(a * 10**6) == measures.entropy(a)
        expected = mutual_info_score(a, b) / log(2)
        assert measures.mutual_information(a, b, of_a) == pytest.approx(expected, abs=1e-12)
        assert measures.mutual_information(a, a, of_a) == pytest.approx(of_a)

    def test_the_entropy_of_a_column_is_computed_once(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        seen: list[tuple[int, ...]] = []
        entropy = measures.entropy

        def count(codes: npt.NDArray[np.int64]) -> float:
            seen.append(tuple(codes.tolist()))
            return entropy(codes)

        monkeypatch.setattr(measures, "entropy", count)
        meta_features([["a"], ["b"], ["c"], ["a"]], [0, 1, 0, 1], groups="information")
        assert seen.count((0, 1, 2, 0)) == 1  # the other ones are of the target and of both

    @given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=80), st.integers(2, 10))
    def test_bins_keep_order_and_ties(self, values: list[float], bins: int) -> None:
        x = np.sort(values)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(measures, "_BINS", bins)
            binned = measures.cut_evenly(x)
        assert len(np.unique(binned)) <= bins
        assert (len(np.unique(binned)) > 1) == (len(np.unique(x)) > 1)
        assert (np.diff(binned) >= 0).all()
        assert (np.diff(binned)[np.diff(x) == 0] == 0).all()

    def test_missing_values_are_left_out_column_by_column(self) -> None:
        X = [["a"], ["b"], [None], ["a"], ["b"], [None]]
        found = meta_features(X, [0, 1, 0, 0, 1, 1], groups="information")
        assert found["MeanAttributeEntropy"] == found["MeanMutualInformation"] == 1

    def test_the_entropy_of_a_numeric_target_is_that_of_its_bins(self) -> None:
        y = RNG(0).normal(size=500)
        found = meta_features(y[:, None], y, groups="information")
        assert found["TargetEntropy"] == found["MeanMutualInformation"] == pytest.approx(log2(10))
        assert found["EquivalentNumberOfAtts"] == pytest.approx(1)

    @pytest.mark.parametrize(("loader", "row"), [("load_wine", 187), ("load_breast_cancer", 1510)])
    def test_values_published_for_the_same_data(
        self, loader: str, row: int, recorded_runs: ModuleType
    ) -> None:
        """Those of another implementation, recorded in the shared table of meta-features."""
        file = recorded_runs.data_folder() / "pmf_metafeatures" / "metafeatures.csv.gz"
        if not file.exists():
            pytest.skip(f"no published meta-features: there is no {file}")
        table = pd.read_csv(file).set_index("dataset_id").drop(columns="paper_split")
        published = dict(zip(table.columns, table.loc[[row]].to_numpy(np.float64)[0], strict=True))
        found = meta_features(*getattr(sklearn.datasets, loader)(return_X_y=True))
        shared = [name for name in found if name in published]
        assert len(shared) == 20
        for name in shared:
            assert found[name] == pytest.approx(published[name], rel=1e-4, abs=1e-6), name
        for name, theirs in (("NaiveBayes", "LandmarkNaiveBayes"), ("kNN1N", "Landmark1NN")):
            assert 1 - found[f"{name}ErrRate"] == pytest.approx(published[theirs], abs=0.03)


class TestSamples:
    @given(st.lists(st.integers(0, 4), min_size=1, max_size=60), st.integers(1, 60))
    def test_samples_and_folds_keep_each_class_to_within_a_row(
        self, y: list[int], size: int
    ) -> None:
        codes = np.array(y)
        rows = landmarkers.subsample(codes, size, RNG(0))
        assert len(rows) == min(size, len(codes)) == len(np.unique(rows))
        share = np.bincount(codes, minlength=5) * len(rows) / len(codes)
        assert (np.abs(np.bincount(codes[rows], minlength=5) - share) <= 1 + 1e-9).all()
        fold = learners.divide(codes, 3, RNG(0))
        for part in (slice(None), *(codes == c for c in set(y))):
            sizes = np.bincount(fold[part], minlength=3)
            assert sizes.max() - sizes.min() <= 1

    def test_how_many_rows_and_along_the_distribution(self) -> None:
        y = RNG(0).permutation(1000) / 10.0
        rows = landmarkers.subsample(y, 100, RNG(1))
        np.testing.assert_allclose(np.sort(y[rows]), np.arange(100.0), atol=1.0)
        assert [landmarkers.landmark_rows(2000, k) for k in (2, 10, 40, 1000)] == [
            2000,
            2000,
            1000,
            500,
        ]
        assert landmarkers.landmark_rows(300, 1000) == 300

    def test_encoding_by_hand(self) -> None:
        matrix = encoded([[0.0, "a"], [5.0, "b"], [10.0, "a"]]).matrix
        squared = ((matrix[:, None] - matrix) ** 2).sum(axis=2)  # Weka's distances
        expected = [[0, 1.25, 1], [1.25, 0, 1.25], [1, 1.25, 0]]
        np.testing.assert_allclose(squared, expected, rtol=1e-6)
        # missing numbers become the median, missing categories one more
        found = encoded([[1.0, "a"], [None, None], [2.0, "a"], [9.0, "a"]])
        np.testing.assert_allclose(found.blocks[0][:, 0], [0, 1 / 8, 1 / 8, 1], rtol=1e-6)
        np.testing.assert_array_equal(found.codes[:, 1], [0, 1, 0, 0])
        assert found.matrix.shape == (4, 3)

    def test_rare_categories_share_a_code(self) -> None:
        found = encoded([[f"v{v}"] for v in RNG(0).zipf(1.3, 2000)])
        assert found.matrix.shape[1] == found.codes.max() == 32
        assert (found.matrix[found.codes[:, 0] == 32] == 0).all()


class TestLearners:
    def test_naive_bayes_by_hand(self) -> None:
        X = [[0.0, "u"], [2.0, "u"], [4.0, "v"], [10.0, "v"], [8.0, "u"]]
        y = np.array([0, 0, 0, 1, 1])
        test = encoded(X).take(np.array([1, 3]))
        (scores,) = learners.naive_bayes(Split(encoded(X), y, test, 3, 0))
        expected = []
        for x, v in ((0.2, "u"), (1.0, "v")):
            joint = []
            for k in (0, 1):
                mine = [row for row, label in zip(X, y, strict=True) if label == k]
                numbers = np.array([row[0] for row in mine], dtype=float) / 10
                same = sum(row[1] == v for row in mine)
                density = norm.pdf(x, numbers.mean(), numbers.std())
                joint.append(len(mine) / 5 * density * (same + 1) / (len(mine) + 2))
            expected.append([*(np.array(joint) / sum(joint)), 0.0])
        np.testing.assert_allclose(scores, expected, rtol=1e-4)

    def test_the_nearest_neighbour(self) -> None:
        train = encoded([[0.0], [1.0], [0.4]])
        test = train.take(np.array([2, 0]))
        (scores,) = learners.nearest_neighbour(Split(train, np.arange(3), test, 4, 0))
        np.testing.assert_array_equal(scores, [[0, 0, 1, 0], [1, 0, 0, 0]])

    def test_a_rep_tree_prunes_what_the_held_out_rows_deny(self) -> None:
        X = RNG(0).random((300, 3))
        train, y = encoded(X), (X[:, 1] > 0.5).astype(int)
        noisy = RNG(1).integers(0, 2, 300)
        (noise,) = learners.rep_tree(Split(train, noisy, train, 2, 0), 3)
        (signal,) = learners.rep_tree(Split(train, y, train, 2, 0), 3)
        assert len(np.unique(signal, axis=0)) == 2
        assert (signal.argmax(axis=1) == y).mean() > 0.98
        np.testing.assert_allclose(signal.sum(axis=1), 1)
        assert len(np.unique(noise, axis=0)) < 8

    def test_naive_bayes_of_categories_alone(self) -> None:
        train = encoded([["u"], ["u"], ["v"], ["v"]])
        (scores,) = learners.naive_bayes(Split(train, np.array([0, 0, 0, 1]), train, 2, 0))
        # Priors 3/4 and 1/4; add-one frequencies of v: 2 of 5 and 2 of 3.
        expected = np.array([0.75 * 2 / 5, 0.25 * 2 / 3])
        np.testing.assert_allclose(scores[3], expected / expected.sum())

    def test_classes_absent_from_the_training_rows_score_nothing(self) -> None:
        train = encoded(np.arange(12.0)[:, None])
        split = Split(train, np.array([1] * 6 + [3] * 6), train, 5, 0)
        found = [
            *(learners.rep_tree(split, 2), learners.random_tree(split, 2)),
            *(learners.decision_stump(split), learners.naive_bayes(split)),
            *(learners.nearest_neighbour(split), learners.pruned_trees(split)),
        ]
        for scores in itertools.chain(*found):
            assert scores.shape == (12, 5)
            assert (scores[:, [0, 2, 4]] == 0).all()
            np.testing.assert_allclose(scores.sum(axis=1), 1)

    @pytest.mark.parametrize("confidence", [0.25, 1e-3, 1e-5])
    def test_the_allowance_solves_its_equation(self, confidence: float) -> None:
        """The limit u of a proportion: e + 1/2 = n u - z sqrt(n u (1 - u))."""
        z = norm.isf(confidence)
        for n, e in ((20.0, 1.0), (50.0, 7.0), (1000.0, 300.0)):
            u = brentq(lambda u: n * u - z * np.sqrt(n * u * (1 - u)) - e - 0.5, (e + 0.5) / n, 1)  # noqa: B023
            got = learners.extra_errors(np.array([n]), np.array([e]), confidence)
            assert got[0] == pytest.approx(n * u - e, rel=1e-6)

            none_right = learners.extra_errors(np.array([n]), np.array([n]), confidence)
            assert none_right[0] == 0.0

        # without errors: with probability C, n rows show none at a rate of u: (1 - u)^n = C
        rows = np.array([6.0, 9.0])
        got = learners.extra_errors(rows, np.zeros(2), confidence)
        np.testing.assert_allclose(got, rows * (1 - confidence ** (1 / rows)))

    def test_a_subtree_goes_where_a_leaf_costs_no_more(self) -> None:
        class Tree:
            #        0
            #    1       4
            #  2   3   5   6
            children_left = np.array([1, 2, -1, -1, 5, -1, -1])
            children_right = np.array([4, 3, -1, -1, 6, -1, -1])

        cost = [10.0, 3, 2, 1, 5, 2, 2]
        np.testing.assert_array_equal(learners.prune(Tree(), cost), [0, 1, 1, 1, 4, 5, 6])
        np.testing.assert_array_equal(
            learners.prune(Tree(), cost, tolerance=1.0), [0, 1, 1, 1, 4, 4, 4]
        )
        np.testing.assert_array_equal(learners.prune(Tree(), [7.0, *cost[1:]]), [0] * 7)

    @pytest.mark.parametrize("seed", range(4))
    def test_cfs_finds_the_best_of_all_sets(self, seed: int) -> None:
        rng = RNG(seed)
        y = rng.integers(0, 3, 150)
        codes = np.column_stack(
            [np.where(rng.random(150) < q, y, rng.integers(0, 3, 150)) for q in (0.5, 0.4, 0.3, 0)]
            + [rng.integers(0, 4, 150)]
        )
        codes = np.column_stack([codes, codes[:, 0]])
        p = codes.shape[1]
        # v_measure_score is 2 I / (H(a) + H(b))
        with_class = np.array([v_measure_score(c, y) for c in codes.T])
        among = np.array([[v_measure_score(a, b) for a in codes.T] for b in codes.T])

        def merit(s: tuple[int, ...]) -> float:  # k mean U(f, class) / sqrt(k + k (k - 1) mean U)
            pairs = among[np.ix_(s, s)].sum() - among[s, s].sum()
            return float(with_class[list(s)].sum() / np.sqrt(len(s) + pairs))

        sets = itertools.chain(*(itertools.combinations(range(p), k) for k in range(1, p + 1)))
        merits = {s: merit(s) for s in sets}
        chosen = tuple(landmarkers.select_columns(codes, y, lambda: None))
        assert merits[chosen] == pytest.approx(max(merits.values()), abs=2e-5)

    def test_cfs_selects_something_of_noise_and_not_too_much(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        noise = np.zeros((9, 3), dtype=np.int64)
        assert landmarkers.select_columns(noise, np.arange(9), lambda: None) == [0]
        y = RNG(0).integers(0, 2, 300)
        codes = np.column_stack([y ^ (np.arange(300) % 5 == j) for j in range(5)])
        assert len(landmarkers.select_columns(codes, y, lambda: None)) > 2
        monkeypatch.setattr(landmarkers, "_MOST_SELECTED", 2)
        assert len(landmarkers.select_columns(codes, y, lambda: None)) == 2

    @given(st.integers(0, 10_000), st.integers(2, 5))
    def test_scores_are_scikit_learns(self, seed: int, k: int) -> None:
        rng = RNG(seed)
        y = np.concatenate([np.arange(k), rng.integers(0, k, 30)])
        scores = np.round(rng.dirichlet(np.ones(k), len(y)), 1)  # with ties
        each = [roc_auc_score(y == c, scores[:, c]) for c in range(k)]
        assert landmarkers.score_classes(y, scores) == pytest.approx(
            (
                np.average(each, weights=np.bincount(y)),
                np.mean(scores.argmax(axis=1) != y),
                cohen_kappa_score(y, scores.argmax(axis=1)),
            )
        )

    def test_scores_by_hand(self) -> None:
        prior = np.tile([0.75, 0.25], (4, 1))
        assert landmarkers.score_classes(np.array([0, 0, 0, 1]), prior) == (0.5, 0.25, 0.0)
        y = np.array([1.0, 2, 3, 6])
        assert landmarkers.score_numbers(y, y) == pytest.approx((1, 0, 1))
        assert landmarkers.score_numbers(y, np.full(4, 3.0)) == pytest.approx((0, 1, 0))
        # errors 1, 1, 1, 3: 12 of 14 squared, 6 of 6 absolute; ranks 2.5, 2.5, 2.5, 2.5 but one
        found = landmarkers.score_numbers(y, np.array([2.0, 3, 2, 3]))
        assert found == pytest.approx((1 - 12 / 14, 1, 1 / np.sqrt(5)))


class TestNames:
    def test_holds_both_papers_lists(self) -> None:
        assert {f"{s}{m}" for s in THESIS_LEARNERS for m in ("AUC", "ErrRate", "Kappa")} == (
            LANDMARKS
        )
        moments = {f"{s}{m}" for s in ("Kurtosis", "Skewness") for m in MOMENTS}
        assert THESIS_SIMPLE | moments <= set(meta_feature_names())

    @pytest.mark.parametrize("task", ["classification", "regression"])
    @pytest.mark.parametrize("groups", [GROUPS, *GROUPS, ("landmarking", "simple")])
    def test_are_known_before_extraction(self, task: str, groups: Any) -> None:
        y = np.arange(40) % 2 if task == "classification" else np.linspace(0, 1, 40)
        found = meta_features(FRAME[:40], y, groups=groups)
        names = meta_feature_names(groups, task)
        assert found.task == task
        assert tuple(found) == names == tuple(dict.fromkeys(names)) == tuple(found.seconds)

    def test_a_list_of_features_gives_just_these_in_its_order(self) -> None:
        names = ("kNN1NAUC", "NumberOfClasses", "J48.001.Kappa")
        found = meta_features(FRAME, Y, groups=names)
        assert list(found.items()) == [(name, WHOLE[name]) for name in names]

    @pytest.mark.parametrize(
        ("groups", "task", "match"),
        [
            (["NumberOfClases"], "classification", "Did you mean 'NumberOfClasses'"),
            (["ClassEntropy"], "regression", "not a group or feature for regression"),
            ([], "classification", "groups is empty"),
            (GROUPS, "auto", "task must be one of"),
        ],
    )
    def test_errors_teach(self, groups: Any, task: str, match: str) -> None:
        with pytest.raises(ValueError, match=match):
            meta_feature_names(groups, task)


class TestWhole:
    def test_is_a_mapping_that_pickles(self) -> None:
        assert isinstance(WHOLE, Mapping)
        assert WHOLE == WHOLE.features == dict(pickle.loads(pickle.dumps(WHOLE)))

    def test_every_nan_has_a_reason_and_nothing_else_has(self) -> None:
        found = meta_features(RNG(0).normal(size=(5, 2)), list("aabba"))
        assert found.failures.keys() == {n for n, v in found.items() if math.isnan(v)}
        assert found.failures.keys() == LANDMARKS | {"StdvNominalAttDistinctValues"}
        assert "5 rows" in found.failures["kNN1NAUC"]

    def test_the_seed_settles_everything(self) -> None:
        frame, y = table(300)
        three, again, four = (
            meta_features(frame, y, seed=seed, max_landmark_rows=100) for seed in (3, 3, 4)
        )
        assert not moved(three, again)
        other = moved(three, four)
        assert other
        assert other <= LANDMARKS

    def test_the_order_of_rows_moves_autocorrelation_and_landmarkers_only(self) -> None:
        order = RNG(1).permutation(len(Y))
        other = moved(WHOLE, meta_features(FRAME.iloc[order], Y[order]), tolerance=1e-9)
        assert other - LANDMARKS == {"Autocorrelation"}

    @pytest.mark.parametrize(
        ("X", "y"),
        [
            (FRAME, [{"x": 2.0, "y": 0.0, "z": -1.0}[v] for v in Y]),
            (FRAME, [{"x": "r", "y": "q", "z": "p"}[v] for v in Y]),
            (FRAME.to_numpy(dtype=object), Y),
            (FRAME.to_numpy(dtype=object).tolist(), list(Y)),
            (FRAME.astype({"c": "category", "d": "string"}), Y),
        ],
    )
    def test_labels_and_containers_do_not_matter(self, X: Any, y: Any) -> None:
        assert not moved(WHOLE, meta_features(X, y))

    def test_units_of_the_columns_do_not_matter(self) -> None:
        scaled = FRAME.assign(a=FRAME["a"] * 4.0 - 16.0, b=FRAME["b"] * 1024.0)
        other = moved(WHOLE, meta_features(scaled, Y), 1e-7)
        assert not other - LANDMARKS
        # trees put their thresholds between rounded values; the rest is the same to the digit
        assert not {n for n in other if n.startswith(("NaiveBayes", "kNN1N"))}

    def test_inputs_are_left_alone_and_infinite_values_count_as_missing(self) -> None:
        X = RNG(0).normal(size=(40, 2))
        lacking, y = X.copy(), np.arange(40) % 2
        X[::4, 0], lacking[::4, 0] = np.inf, nan
        before = X.copy(), FRAME.copy()
        found = meta_features(X, y)
        meta_features(FRAME, Y)
        assert not moved(found, meta_features(lacking, y))
        assert found["PercentageOfMissingValues"] == 12.5
        np.testing.assert_array_equal(X, before[0])
        pd.testing.assert_frame_equal(FRAME, before[1])

    def test_decimals_and_whole_numbers_of_any_size_are_numbers(self) -> None:
        largest = int(np.finfo(np.float64).max)
        column: list[Any] = [Decimal("0.25"), 10**400, -(10**400), largest, 7, None]
        (read,) = read_table(np.array([column], dtype=object).T)
        assert not read.nominal
        np.testing.assert_array_equal(read.values, [0.25, nan, nan, float(largest), 7.0, nan])

    def test_an_easy_task_and_a_hopeless_one_are_told_apart(self) -> None:
        X = RNG(0).normal(size=(600, 8))
        easy = meta_features(X, (X[:, 3] > 0).astype(int))
        noise = meta_features(X, RNG(1).integers(0, 2, 600))
        for name in ("DecisionStump", "J48.001.", "REPTreeDepth2", "CfsSubsetEval_DecisionStump"):
            assert easy[f"{name}AUC"] > 0.98
            assert easy[f"{name}Kappa"] > 0.95
            assert abs(noise[f"{name}AUC"] - 0.5) < 0.1
        assert easy["MaxMutualInformation"] > 0.9
        assert noise["MaxMutualInformation"] < 0.05


class TestLimits:
    def test_a_passed_limit_is_nan_with_its_reason_for_every_feature(self) -> None:
        found = meta_features(FRAME, Y, time_limit=1e-9)
        assert all(map(math.isnan, found.values()))
        assert "time limit of 1e-09 s" in found.failures["kNN1NAUC"]

    @pytest.mark.parametrize(
        ("slow", "options", "lost", "reason", "seconds"),
        [  # given up after one of three folds
            ("naive_bayes", {"time_limit": 0.3}, "NaiveBayesAUC", "time limit of 0.3 s", 0.4),
            ("decision_stump", {"budget": 1.9}, "DecisionStumpAUC kNN1NAUC", "total budget", 2.0),
        ],
    )
    def test_slow_features_keep_the_others(
        self,
        slow: str,
        options: Any,
        lost: str,
        reason: str,
        seconds: float,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        clock = Clock(monkeypatch)

        def learn(split: Split) -> Any:
            clock.sleep(seconds)
            return learners.nearest_neighbour(split)

        monkeypatch.setattr(learners, slow, learn)
        names = ["NumberOfClasses", "DecisionStumpAUC", "NaiveBayesAUC", "kNN1NAUC"]
        names.remove("NaiveBayesAUC" if slow == "decision_stump" else "DecisionStumpAUC")
        found = meta_features(FRAME, Y, groups=names, **options)
        assert found["NumberOfClasses"] == 3
        assert set(found.failures) == set(lost.split())
        assert all(reason in why for why in found.failures.values())
        assert found.total_seconds == pytest.approx(seconds)
        assert found.seconds[lost.split()[0]] == pytest.approx(seconds)

    def test_one_failing_feature_costs_only_itself(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def fail(split: Split) -> Any:
            raise FloatingPointError("strange data")

        def overflow(split: Split) -> Any:
            return (np.full((len(split.test.codes), split.n_classes), nan),)

        monkeypatch.setattr(learners, "nearest_neighbour", fail)
        monkeypatch.setattr(learners, "naive_bayes", overflow)
        found = meta_features(FRAME, Y)
        assert found.failures["kNN1NAUC"] == "FloatingPointError: strange data"
        assert "not finite" in found.failures["NaiveBayesAUC"]
        assert not {n for n in found.failures if "kNN1N" not in n and "NaiveBayes" not in n}

    def test_caps_leave_the_simple_features_exact(self) -> None:
        X = RNG(0).normal(size=(400, 30))
        y = (X[:, 0] > 1).astype(int)
        caps: Any = {"max_landmark_rows": 50, "max_landmark_columns": 3}
        caps |= {"max_statistics_rows": 60, "max_statistics_columns": 4}
        capped = meta_features(X, y, **caps)
        assert not capped.failures.keys() - {"StdvNominalAttDistinctValues"}
        other = moved(meta_features(X, y), capped)
        assert other
        assert not other & set(meta_feature_names("simple"))

    def test_no_row_is_gone_through_by_itself(self) -> None:
        def calls(n: int) -> int:
            rng = RNG(0)
            frame = pd.DataFrame(rng.normal(size=(n, 8)))
            for j in range(0, 8, 2):
                frame[j] = np.array(list("abcdefgh"), dtype=object)[rng.integers(0, 8, n)]
                frame.loc[rng.random(n) < 0.05, j + 1] = nan
            y = np.array(["p", "q", "r"])[rng.integers(0, 3, n)]
            meta_features(frame, y)
            return count_calls(lambda: meta_features(frame, y))

        assert calls(20_000) < 2 * calls(2_000)


class TestBadData:
    def test_one_class(self) -> None:
        found = meta_features(FRAME, ["only"] * 120)
        assert found["NumberOfClasses"] == found["ClassProbabilityMin"] == 1
        assert found["ClassEntropy"] == found["Autocorrelation"] == 0
        assert found["MaxMutualInformation"] == 0
        lost = LANDMARKS | {"EquivalentNumberOfAtts", "MeanNoiseToSignalRatio"}
        assert found.failures.keys() == lost
        assert "constant" in found.failures["DecisionStumpAUC"]

    def test_a_constant_numeric_target(self) -> None:
        found = meta_features(FRAME, np.full(120, 0.1), task="regression")
        assert found["TargetModePercentage"] == 100
        assert found["TargetEntropy"] == 0
        assert set(meta_feature_names("landmarking", "regression")) < found.failures.keys()
        assert found.failures["TargetKurtosis"] == "the target is constant."
        rounded = np.nextafter(np.full(120, 0.1), np.arange(120) % 2)
        found = meta_features(FRAME, rounded, task="regression")
        assert "but for rounding" in found.failures["kNN1NR2"]

    def test_no_column_has_a_value(self) -> None:
        found = meta_features(np.full((30, 4), nan), [0, 1] * 15)
        assert found["PercentageOfMissingValues"] == 100
        assert found["ClassEntropy"] == 1
        assert "no column varies" in found.failures["kNN1NAUC"]
        assert found.failures["MeanAttributeEntropy"] == "no column has a value."
        assert found.failures["KurtosisMean"] == "no numeric column varies."

    def test_a_single_row(self) -> None:
        found = meta_features([[1.0, "a"]], ["x"])
        assert found["NumberOfInstances"] == 1
        assert found["LogDimensionality"] == pytest.approx(log(2))
        assert found.failures["Autocorrelation"] == "there is one row."

    @pytest.mark.parametrize("scale", [1e-310, 1e-160, 1e150, 1.7e308])
    def test_extreme_numbers(self, scale: float) -> None:
        X, target = np.split(RNG(0).uniform(-1, 1, size=(60, 4)), [3], axis=1)
        y = (X[:, 0] > 0).astype(int)
        found, plain = meta_features(X * scale, y), meta_features(X, y)
        assert found.failures.keys() == plain.failures.keys()
        assert found["KurtosisMean"] == pytest.approx(plain["KurtosisMean"], rel=1e-9)
        assert found["kNN1NErrRate"] == plain["kNN1NErrRate"]
        found, plain = meta_features(X, target * scale), meta_features(X, target)
        assert found.failures.keys() == plain.failures.keys()
        for name in ("TargetAutocorrelation", "TargetKurtosis", "LinearRegressionR2"):
            assert found[name] == pytest.approx(plain[name], rel=1e-9)
