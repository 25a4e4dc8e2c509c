"""The landmarkers' parts: samples, encoding, pruning, selection, learners, scores."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.stats import norm
from sklearn.metrics import cohen_kappa_score, roc_auc_score, v_measure_score
from sklearn.tree import DecisionTreeClassifier

from automl_plugins.meta.features import information as cfs
from automl_plugins.meta.features import learners
from automl_plugins.meta.features.encoding import Encoded, encode, folds, subsample
from automl_plugins.meta.features.landmarkers import (
    classification_scores,
    landmark_rows,
    regression_scores,
)
from automl_plugins.meta.features.learners import confidence_ends, ends, extra_errors
from automl_plugins.meta.features.table import read_table


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

    def test_a_smaller_confidence_prunes_more_and_noise_goes_first(self) -> None:
        rng = np.random.default_rng(0)
        X = rng.random((400, 4))
        y = (X[:, 0] > 0.5) ^ (rng.random(400) < 0.2)
        tree = DecisionTreeClassifier(random_state=0).fit(X, y).tree_
        sizes = [len(np.unique(confidence_ends(tree, c))) for c in (0.25, 1e-3, 1e-5)]
        assert tree.node_count > sizes[0] >= sizes[1] >= sizes[2]
        assert sizes[2] < tree.node_count / 10
        assert 0 not in confidence_ends(tree, 1e-5)[1:]  # the one true split stays
        noise = DecisionTreeClassifier(random_state=0).fit(X, rng.random(400) < 0.3).tree_
        assert set(confidence_ends(noise, 1e-5)) == {0}


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
