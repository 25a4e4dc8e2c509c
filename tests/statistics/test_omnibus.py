"""Friedman's test and its correction by Iman and Davenport."""

from __future__ import annotations

import itertools
import math

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import f, friedmanchisquare

from automl_plugins.statistics import iman_davenport

Matrix = npt.NDArray[np.float64]

MATRICES = arrays(
    np.float64,
    st.tuples(st.integers(2, 8), st.integers(3, 6)),
    elements=st.integers(0, 4).map(float),
)


def test_hand_values_without_ties() -> None:
    # Rank sums 4, 5, 9: chi2 = 12 / (3 * 3 * 4) * (16 + 25 + 81) - 3 * 3 * 4 = 14 / 3,
    # F = 2 * (14 / 3) / (3 * 2 - 14 / 3) = 7
    test = iman_davenport([[1.0, 2.0, 3.0], [0.1, 0.2, 0.3], [20.0, 10.0, 30.0]])
    assert test.chi2 == pytest.approx(14 / 3)
    np.testing.assert_allclose(test.F, 7.0)
    assert test.df == (2, 4)
    assert (test.n_tasks, test.n_methods) == (3, 3)
    assert test.chi2_p == pytest.approx(np.exp(-7 / 3))  # closed form on 2 degrees of freedom
    assert test.F_p == pytest.approx((1 + 2 * 7 / 4) ** -2)  # closed form on (2, 4)


def test_hand_values_with_ties() -> None:
    # Ranks (1.5, 1.5, 3), (1, 2, 3), (2, 1, 3), (1, 2.5, 2.5): sums 5.5, 7, 11.5 about 8, so
    # S = 6.25 + 1 + 12.25 = 19.5; A = 1.5 + 2 + 2 + 1.5 = 7; chi2 = 2 S / A, F = 3 S / (4 A - S)
    test = iman_davenport([[1, 1, 2], [1, 2, 3], [2, 1, 3], [0, 5, 5]])
    assert test.chi2 == pytest.approx(39 / 7)
    np.testing.assert_allclose(test.F, 58.5 / 8.5)


@given(MATRICES)
def test_agrees_with_scipy(scores: Matrix) -> None:
    assume((scores != scores[:, :1]).any())  # SciPy divides by 0 where all methods tie
    test = iman_davenport(scores)
    n, k = scores.shape
    expected = friedmanchisquare(*scores.T)
    assert test.chi2 == pytest.approx(expected.statistic, rel=1e-9, abs=1e-9)
    assert test.chi2_p == pytest.approx(expected.pvalue, rel=1e-9, abs=1e-12)
    rest = n * (k - 1) - test.chi2
    if rest > 1e-9:
        np.testing.assert_allclose(test.F, (n - 1) * test.chi2 / rest, rtol=1e-9)
        assert test.F_p == pytest.approx(f.sf(test.F, k - 1, (k - 1) * (n - 1)), rel=1e-9)


@given(MATRICES, st.integers(0, 2**32 - 1))
def test_order_of_tasks_and_methods_does_not_matter(scores: Matrix, seed: int) -> None:
    rng = np.random.default_rng(seed)
    shuffled = rng.permutation(rng.permutation(scores, axis=0), axis=1)
    assert iman_davenport(shuffled) == iman_davenport(scores)
    assert iman_davenport(-scores) == iman_davenport(scores)


@pytest.mark.parametrize("row", [[1.0, 2.0, 3.0], [1.0, 1.0, 3.0], [5.0, 1.0, 1.0, 1.0, 2.0]])
def test_perfect_agreement(row: list[float]) -> None:
    test = iman_davenport([row] * 7)
    assert test.chi2 == pytest.approx(7 * (len(row) - 1))
    assert math.inf == test.F
    assert 0 < test.F_p < 0.01


def test_all_ties() -> None:
    test = iman_davenport(np.ones((5, 4)))
    assert (test.chi2, test.chi2_p, test.F, test.F_p) == (0.0, 1.0, 0.0, 1.0)


def test_opposite_rankings_cancel() -> None:
    test = iman_davenport([[1.0, 2.0, 3.0], [3.0, 2.0, 1.0]])
    assert (test.chi2, test.chi2_p, test.F, test.F_p) == (0.0, 1.0, 0.0, 1.0)


def test_infinite_scores_count_by_their_ranks() -> None:
    finite = [[1.0, 2.0, 9.0], [2.0, 1.0, 9.0], [-9.0, 2.0, 3.0]]
    infinite = [[1.0, 2.0, np.inf], [2.0, 1.0, np.inf], [-np.inf, 2.0, 3.0]]
    assert iman_davenport(infinite) == iman_davenport(finite)


def test_two_methods_are_sent_to_wilcoxon() -> None:
    with pytest.raises(ValueError, match="3 methods, got 2: use Wilcoxon's"):
        iman_davenport([[1.0, 2.0], [2.0, 1.0]])


def test_one_task_is_too_few() -> None:
    with pytest.raises(ValueError, match="2 tasks, got 1"):
        iman_davenport([[1.0, 2.0, 3.0]])


def test_nan_is_refused() -> None:
    with pytest.raises(ValueError, match="NaN in 1 cells"):
        iman_davenport([[1.0, 2.0, np.nan], [1.0, 2.0, 3.0]])


@pytest.mark.parametrize(
    ("row", "n", "p"),
    [
        ([1, 2, 3], 3, 1 / 36),
        ([1, 2, 3], 2, 1 / 6),
        ([1, 1, 2], 3, 1 / 9),
        ([4, 3, 2, 1], 5, 24**-4),
    ],
)
def test_few_tasks_that_agree_are_no_certainty(row: list[float], n: int, p: float) -> None:
    result = iman_davenport([row] * n)
    assert math.inf == result.F
    assert result.F_p == pytest.approx(p)
    # By counting: how many of all rankings of the tasks agree.
    if n <= 3:
        arrangements = sorted(set(itertools.permutations(row)))
        draws = list(itertools.product(arrangements, repeat=n))
        assert result.F_p == pytest.approx(sum(len(set(d)) == 1 for d in draws) / len(draws))
