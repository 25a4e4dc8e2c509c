"""Wilcoxon's signed-rank test and Finner's adjustment."""

from __future__ import annotations

import warnings
from decimal import Decimal, localcontext
from itertools import combinations, product
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import rankdata, wilcoxon

from automl_plugins.statistics import finner, wilcoxon_pairs
from automl_plugins.statistics.significance import ZERO_METHODS, ZeroMethod

Matrix = npt.NDArray[np.float64]

PAIRS = [(0, 1), (0, 2), (1, 2)]
P_VALUES = st.lists(st.floats(0.0, 1.0), min_size=1, max_size=12)


def scores_of(n: int, decimals: int | None) -> Matrix:
    """Scores (n, 3) of which the second and the third are worse; rounded ones tie."""
    scores: Matrix = np.random.default_rng(3).random((n, 3)) + np.array([0.0, 0.1, 0.4])
    return scores if decimals is None else scores.round(decimals)


def imported(name: str) -> Any:
    """A peer library; its own warnings at import are not ours."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip(name)


# Wilcoxon


@pytest.mark.parametrize("zero_method", ZERO_METHODS)
@pytest.mark.parametrize("decimals", [None, 1])
@pytest.mark.parametrize("n", [2, 3, 6, 9, 14, 20, 50, 51, 200])
def test_wilcoxon_agrees_with_scipy(n: int, decimals: int | None, zero_method: ZeroMethod) -> None:
    scores = scores_of(n, decimals)
    pairs = PAIRS[: 1 if n < 14 else 3]  # SciPy is slow where it enumerates
    expected = [
        wilcoxon(scores[:, i], scores[:, j], zero_method=zero_method).pvalue for i, j in pairs
    ]
    found = wilcoxon_pairs(scores, pairs, zero_method=zero_method)
    np.testing.assert_allclose(found, expected, rtol=1e-9)


@pytest.mark.parametrize("zero_method", ZERO_METHODS)
@pytest.mark.parametrize("decimals", [None, 1])
def test_wilcoxon_agrees_with_scikit_posthocs(
    decimals: int | None, zero_method: ZeroMethod
) -> None:
    scores = scores_of(30, decimals)
    posthoc = imported("scikit_posthocs").posthoc_wilcoxon(scores.T, zero_method=zero_method)
    found = wilcoxon_pairs(scores, PAIRS, zero_method=zero_method)
    np.testing.assert_allclose(found, posthoc.to_numpy()[[0, 0, 1], [1, 2, 2]], rtol=1e-9)


@settings(max_examples=40)
@given(st.lists(st.integers(-3, 3), min_size=2, max_size=6), st.sampled_from(ZERO_METHODS))
def test_few_tasks_are_enumerated(difference: list[int], zero_method: ZeroMethod) -> None:
    d = np.array(difference, dtype=float)
    if zero_method == "wilcox":
        d = d[d != 0]
    ranks = rankdata(np.abs(d))
    of_a_zero = 0.5 if zero_method == "zsplit" else 0.0
    sums = [
        (np.where(d == 0, of_a_zero, d * signs > 0) * ranks).sum()
        for signs in product((1, -1), repeat=len(d))
    ]
    tails = np.mean(np.less_equal(sums, sums[0])), np.mean(np.greater_equal(sums, sums[0]))
    scores = np.column_stack([difference, np.zeros(len(difference))])
    found = wilcoxon_pairs(scores, [(0, 1)], zero_method=zero_method)
    np.testing.assert_allclose(found, min(1.0, 2 * min(tails)), rtol=1e-12)


def test_wilcoxon_by_hand() -> None:
    # Six tasks, always better: 2 of the 64 signs are as extreme
    np.testing.assert_allclose(wilcoxon_pairs(np.c_[np.zeros(6), 1:7], [(0, 1)]), [1 / 32])


@pytest.mark.parametrize("zero_method", ZERO_METHODS)
@pytest.mark.parametrize("n", [2, 13, 14, 60])
def test_identical_methods_have_p_one(n: int, zero_method: ZeroMethod) -> None:
    column = np.random.default_rng(0).normal(size=n)
    scores = np.column_stack([column, column])
    assert wilcoxon_pairs(scores, [(0, 1)], zero_method=zero_method).tolist() == [1.0]


@pytest.mark.parametrize("zero_method", ZERO_METHODS)
@pytest.mark.parametrize("n", [8, 40])
def test_infinite_scores_are_the_largest_differences(n: int, zero_method: ZeroMethod) -> None:
    finite, infinite = scores_of(n, None), scores_of(n, None)
    finite[:2, 1], infinite[:2, 1] = 1e9, np.inf
    finite[2:4, :2], infinite[2:4, :2] = 5.0, np.inf  # both have failed: a tie
    finite[:2, 0] = infinite[:2, 0] = 0.25
    found = wilcoxon_pairs(infinite, [(0, 1)], zero_method=zero_method)
    expected = wilcoxon_pairs(finite, [(0, 1)], zero_method=zero_method)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_p_is_that_of_the_mirrored_pair() -> None:
    scores = scores_of(25, 1)
    np.testing.assert_array_equal(
        wilcoxon_pairs(scores, PAIRS), wilcoxon_pairs(scores, [(j, i) for i, j in PAIRS])
    )


def test_wilcoxon_refuses_what_it_cannot_test() -> None:
    with pytest.raises(ValueError, match="2 tasks, got 1"):
        wilcoxon_pairs([[1.0, 2.0]], [(0, 1)])
    with pytest.raises(ValueError, match="NaN in 1 cells"):
        wilcoxon_pairs([[1.0, np.nan], [1.0, 2.0]], [(0, 1)])
    with pytest.raises(ValueError, match=r"zero_method must be one of .*'drop'"):
        wilcoxon_pairs(np.eye(2), [(0, 1)], zero_method="drop")  # type: ignore[arg-type]


# Finner


def test_finner_by_hand() -> None:
    # 1 - 0.99^3, 1 - 0.97^(3/2), and the third, 0.04, is held up by the second
    np.testing.assert_allclose(finner([0.01, 0.03, 0.04]), [0.029701, 0.0446608, 0.0446608], 1e-5)


def test_finner_keeps_the_order_of_its_input() -> None:
    np.testing.assert_allclose(finner([0.04, 0.01, 0.03]), [0.0446608, 0.029701, 0.0446608], 1e-5)


def test_finner_in_fifty_digits() -> None:
    p = ["0.000006", "0.0011", "0.0011", "0.019", "0.0332", "0.26", "0.7", "0.9999"]
    expected, largest = [], Decimal(0)
    with localcontext() as context:
        context.prec = 50
        for j, text in enumerate(p, start=1):
            largest = max(largest, 1 - (1 - Decimal(text)) ** (Decimal(len(p)) / j))
            expected.append(float(largest))
    np.testing.assert_allclose(finner([float(text) for text in p]), expected, rtol=1e-12)


@given(P_VALUES)
def test_finner_is_monotone_and_at_least_p(p: list[float]) -> None:
    adjusted = finner(p)
    assert ((adjusted >= p) & (adjusted <= 1.0)).all()
    assert (np.diff(adjusted[np.argsort(p, kind="stable")]) >= 0).all()


@given(P_VALUES, st.floats(0.001, 0.5))
def test_finner_rejects_as_the_step_down_procedure(p: list[float], alpha: float) -> None:
    # Go down the sorted p-values until one exceeds 1 - (1 - alpha)^(j / m)
    m = len(p)
    critical = 1.0 - (1.0 - alpha) ** (np.arange(1, m + 1) / m)
    exceeded = np.sort(p) > critical
    rejected = int(exceeded.argmax()) if exceeded.any() else m
    adjusted = np.sort(finner(p))
    near = np.isclose(adjusted, alpha, rtol=1e-9)
    assert ((adjusted <= alpha) == (np.arange(m) < rejected))[~near].all()


def statsmodels_adjusted(p: list[float], method: str) -> Matrix:
    multitest = imported("statsmodels.stats.multitest")
    with np.errstate(divide="ignore"):  # of log(1 - p) at p = 1
        return np.asarray(multitest.multipletests(p, method=method)[1])


@given(P_VALUES)
def test_finner_lies_between_p_and_holm_sidak(p: list[float]) -> None:
    # m / j <= m - j + 1, and the exponents of both are equal at the first of any, or of two
    adjusted = finner(p)
    assert (adjusted <= statsmodels_adjusted(p, "holm-sidak") + 1e-9).all()
    sidak = statsmodels_adjusted(p, "sidak")
    np.testing.assert_allclose(adjusted.min(), sidak.min(), rtol=1e-9)
    np.testing.assert_allclose(finner(p[:2]), statsmodels_adjusted(p[:2], "holm-sidak"), 1e-9)


@pytest.mark.parametrize("p", [0.0, 1e-12, 0.03, 0.5, 1.0])
def test_finner_of_equal_p_is_sidak(p: float) -> None:
    np.testing.assert_allclose(finner([p] * 5), statsmodels_adjusted([p] * 5, "sidak"), 1e-9)
    np.testing.assert_allclose(finner([p]), [p], rtol=1e-15)


def test_finner_of_tiny_p() -> None:
    np.testing.assert_allclose(finner([1e-300, 1e-200, 1.0]), [3e-300, 1.5e-200, 1.0], rtol=1e-12)
    assert finner([0.0, 5e-324]).tolist() == [0.0, 5e-324]


def test_finner_of_nothing() -> None:
    assert finner([]).shape == (0,)


@pytest.mark.parametrize("p", [[0.1, np.nan], [-0.1], [1.5], [np.inf], [[0.1, 0.2]], 0.1])
def test_finner_refuses_what_is_no_probability(p: npt.ArrayLike) -> None:
    with pytest.raises(ValueError, match="probabilities"):
        finner(p)


def test_pairs_may_be_any_iterable() -> None:
    assert wilcoxon_pairs(scores_of(5, None), combinations(range(3), 2)).shape == (3,)
    assert wilcoxon_pairs(scores_of(5, None), []).shape == (0,)
