"""The parts of meta-features by hand: tables, groups of features, landmarkers."""

from __future__ import annotations

import itertools
import math
from math import log
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
import sklearn.datasets
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.optimize import brentq
from scipy.stats import norm
from sklearn.metrics import cohen_kappa_score, mutual_info_score, roc_auc_score, v_measure_score

from automl_plugins.meta.features import information as cfs
from automl_plugins.meta.features import learners
from automl_plugins.meta.features.encoding import Encoded, encode, folds, subsample
from automl_plugins.meta.features.extraction import meta_features
from automl_plugins.meta.features.information import (
    entropy,
    equal_frequency,
    mutual_information,
)
from automl_plugins.meta.features.landmarkers import (
    classification_scores,
    landmark_rows,
    regression_scores,
)
from automl_plugins.meta.features.learners import ends, extra_errors
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

    @given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=80), st.integers(2, 10))
    def test_bins_keep_order_and_ties(self, values: list[float], bins: int) -> None:
        x = np.array(values)
        binned = equal_frequency(x, bins)
        assert len(np.unique(binned)) <= bins
        assert (len(np.unique(binned)) > 1) == (len(np.unique(x)) > 1)
        order = np.argsort(x, kind="stable")
        assert (np.diff(binned[order]) >= 0).all()
        assert (np.diff(binned[order])[np.diff(x[order]) == 0] == 0).all()

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


def encoded(X: Any) -> Encoded:
    found = encode(read_table(X))
    assert found is not None
    return found


class TestSamples:
    @given(st.lists(st.integers(0, 4), min_size=1, max_size=60), st.integers(1, 60))
    def test_a_subsample_keeps_each_class_to_within_a_row(self, y: list[int], size: int) -> None:
        codes = np.array(y)
        rows = subsample(codes, size, np.random.default_rng(0))
        assert len(rows) == min(size, len(codes)) == len(np.unique(rows))
        share = np.bincount(codes, minlength=5) * len(rows) / len(codes)
        assert (np.abs(np.bincount(codes[rows], minlength=5) - share) <= 1 + 1e-9).all()

    @given(st.lists(st.integers(0, 4), min_size=1, max_size=60))
    def test_folds_are_even_in_each_class(self, y: list[int]) -> None:
        codes = np.array(y)
        fold = folds(codes, 3, np.random.default_rng(0))
        for rows in (slice(None), *(codes == c for c in set(y))):
            sizes = np.bincount(fold[rows], minlength=3)
            assert sizes.max() - sizes.min() <= 1

    def test_numbers_are_sampled_along_their_distribution(self) -> None:
        y = np.random.default_rng(0).permutation(1000) / 10.0
        rows = subsample(y, 100, np.random.default_rng(1))
        np.testing.assert_allclose(np.sort(y[rows]), np.arange(100.0), atol=1.0)

    def test_many_classes_cost_rows(self) -> None:
        assert [landmark_rows(2000, k) for k in (2, 10, 40, 1000)] == [2000, 2000, 1000, 500]
        assert landmark_rows(300, 1000) == 300


class TestEncoding:
    def test_distances_are_wekas(self) -> None:
        X = [[0.0, "a"], [5.0, "b"], [10.0, "a"]]
        squared = ((encoded(X).matrix[:, None] - encoded(X).matrix) ** 2).sum(axis=2)
        np.testing.assert_allclose(
            squared, [[0, 1.25, 1], [1.25, 0, 1.25], [1, 1.25, 0]], rtol=1e-6
        )

    def test_missing_numbers_become_the_median_and_missing_categories_one_more(self) -> None:
        found = encoded([[1.0, "a"], [None, None], [2.0, "a"], [9.0, "a"]])
        np.testing.assert_allclose(found.numbers[:, 0], [0, 1 / 8, 1 / 8, 1], rtol=1e-6)
        np.testing.assert_array_equal(found.categories[:, 0], [0, 1, 0, 0])
        assert found.matrix.shape == (4, 3)

    def test_rare_categories_share_a_code(self) -> None:
        rng = np.random.default_rng(0)
        found = encoded([[f"v{v}"] for v in rng.zipf(1.3, 2000)])
        assert found.matrix.shape[1] == 32
        assert found.codes.max() == 32
        assert (found.matrix[found.codes[:, 0] == 32] == 0).all()

    def test_columns_without_variation_are_dropped(self) -> None:
        assert encode(read_table([[1.0, None, "a"], [1.0, None, "a"]])) is None
        assert encoded([[1.0, 2, "a"], [1.0, 3, "a"]]).codes.shape == (2, 1)


class TestPruning:
    @pytest.mark.parametrize("confidence", [0.25, 1e-3, 1e-5])
    def test_the_allowance_solves_its_equation(self, confidence: float) -> None:
        """The limit u of a proportion: e + 1/2 = n u - z sqrt(n u (1 - u))."""
        z = norm.isf(confidence)
        for n, e in ((20.0, 1.0), (50.0, 7.0), (1000.0, 300.0)):
            u = brentq(lambda u: n * u - z * np.sqrt(n * u * (1 - u)) - e - 0.5, (e + 0.5) / n, 1)  # noqa: B023
            got = extra_errors(np.array([n]), np.array([e]), confidence)
            assert got[0] == pytest.approx(n * u - e, rel=1e-6)

    def test_the_allowance_without_errors_is_exact(self) -> None:
        """With probability C, n rows show no error at an error rate of u: (1 - u)^n = C."""
        got = extra_errors(np.array([6.0, 9.0]), np.zeros(2), 0.25)
        np.testing.assert_allclose(got, [6 * (1 - 0.25 ** (1 / 6)), 9 * (1 - 0.25 ** (1 / 9))])

    def test_a_subtree_goes_where_a_leaf_costs_no_more(self) -> None:
        class Tree:
            #        0
            #    1       4
            #  2   3   5   6
            children_left = np.array([1, 2, -1, -1, 5, -1, -1])
            children_right = np.array([4, 3, -1, -1, 6, -1, -1])

        cost = [10.0, 3, 2, 1, 5, 2, 2]
        np.testing.assert_array_equal(ends(Tree(), cost), [0, 1, 1, 1, 4, 5, 6])
        np.testing.assert_array_equal(ends(Tree(), cost, tolerance=1.0), [0, 1, 1, 1, 4, 4, 4])
        np.testing.assert_array_equal(ends(Tree(), [7.0, *cost[1:]]), [0] * 7)


class TestSelection:
    @pytest.mark.parametrize("seed", range(6))
    def test_finds_the_best_of_all_sets(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        y = rng.integers(0, 3, 150)
        codes = np.column_stack(
            [np.where(rng.random(150) < q, y, rng.integers(0, 3, 150)) for q in (0.5, 0.4, 0.3, 0)]
            + [rng.integers(0, 4, 150)]
        )
        codes = np.column_stack([codes, codes[:, 0]])
        p = codes.shape[1]

        def uncertainty(a: npt.NDArray[Any], b: npt.NDArray[Any]) -> float:
            """2 I / (H(a) + H(b)), by scikit-learn."""
            return float(v_measure_score(a, b))

        with_class = np.array([uncertainty(c, y) for c in codes.T])
        among = np.array([[uncertainty(a, b) for a in codes.T] for b in codes.T])

        def merit(s: tuple[int, ...]) -> float:  # k mean U(f, class) / sqrt(k + k (k - 1) mean U)
            pairs = among[np.ix_(s, s)].sum() - among[s, s].sum()
            return float(with_class[list(s)].sum() / np.sqrt(len(s) + pairs))

        merits = {
            s: merit(s) for k in range(1, p + 1) for s in itertools.combinations(range(p), k)
        }
        chosen = tuple(cfs.select(codes, y))
        assert merits[chosen] == pytest.approx(max(merits.values()), abs=2e-5)

    def test_something_is_selected_from_noise_and_no_more_than_asked(self) -> None:
        assert cfs.select(np.zeros((9, 3), dtype=np.int64), np.arange(9)) == [0]
        y = np.random.default_rng(0).integers(0, 2, 300)
        codes = np.column_stack([y ^ (np.arange(300) % 5 == j) for j in range(5)])
        assert len(cfs.select(codes, y)) > 2
        assert len(cfs.select(codes, y, most=2)) == 2


class TestLearners:
    def test_naive_bayes_by_hand(self) -> None:
        X = [[0.0, "u"], [2.0, "u"], [4.0, "v"], [10.0, "v"], [8.0, "u"]]
        y = np.array([0, 0, 0, 1, 1])
        train, test = encoded(X), encoded(X).take(np.array([1, 3]))
        (scores,) = learners.naive_bayes(train, y, test, 3, 0)
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
        (scores,) = learners.nearest_neighbour(train, np.array([0, 1, 2]), test, 4, 0)
        np.testing.assert_array_equal(scores, [[0, 0, 1, 0], [1, 0, 0, 0]])

    def test_a_rep_tree_prunes_what_the_held_out_rows_deny(self) -> None:
        rng = np.random.default_rng(0)
        X = rng.random((300, 3))
        train = encoded(X)
        (noise,) = learners.rep_tree(3)(train, rng.integers(0, 2, 300), train, 2, 0)
        y = (X[:, 1] > 0.5).astype(int)
        (signal,) = learners.rep_tree(3)(train, y, train, 2, 0)
        assert len(np.unique(signal, axis=0)) == 2
        assert (signal.argmax(axis=1) == y).mean() > 0.98
        np.testing.assert_allclose(signal.sum(axis=1), 1)
        assert len(np.unique(noise, axis=0)) < 8

    def test_classes_absent_from_the_training_rows_score_nothing(self) -> None:
        train = encoded(np.arange(12.0)[:, None])
        y = np.array([1] * 6 + [3] * 6)
        for learner in (
            *(learners.decision_stump, learners.naive_bayes, learners.nearest_neighbour),
            *(learners.pruned_trees, learners.rep_tree(2), learners.random_tree(2)),
        ):
            for scores in learner(train, y, train, 5, 0):
                assert scores.shape == (12, 5)
                assert (scores[:, [0, 2, 4]] == 0).all()
                np.testing.assert_allclose(scores.sum(axis=1), 1)


class TestScores:
    @given(st.integers(0, 10_000), st.integers(2, 5))
    def test_agree_with_scikit_learn(self, seed: int, k: int) -> None:
        rng = np.random.default_rng(seed)
        y = np.concatenate([np.arange(k), rng.integers(0, k, 30)])
        scores = np.round(rng.dirichlet(np.ones(k), len(y)), 1)  # with ties
        auc, error, kappa = classification_scores(y, scores)
        each = [roc_auc_score(y == c, scores[:, c]) for c in range(k)]
        assert auc == pytest.approx(np.average(each, weights=np.bincount(y)))
        assert error == pytest.approx(np.mean(scores.argmax(axis=1) != y))
        assert kappa == pytest.approx(cohen_kappa_score(y, scores.argmax(axis=1)))

    def test_the_prior_is_worth_nothing(self) -> None:
        y = np.array([0, 0, 0, 1])
        assert classification_scores(y, np.tile([0.75, 0.25], (4, 1))) == (0.5, 0.25, 0.0)

    def test_regression_by_hand(self) -> None:
        y = np.array([1.0, 2, 3, 6])
        assert regression_scores(y, y) == pytest.approx((1, 0, 1))
        assert regression_scores(y, np.full(4, 3.0)) == pytest.approx((0, 1, 0))
        # errors 1, 1, 1, 3: 12 of 14 squared, 6 of 6 absolute; ranks 2.5, 2.5, 2.5, 2.5 but one
        r2, rae, rho = regression_scores(y, np.array([2.0, 3, 2, 3]))
        assert r2 == pytest.approx(1 - 12 / 14)
        assert rae == pytest.approx(1)
        assert rho == pytest.approx(1 / np.sqrt(5))
