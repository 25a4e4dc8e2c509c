"""Friedman's test after Iman and Davenport; Wilcoxon's after Finner; a published table."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import f, friedmanchisquare, rankdata, wilcoxon

from automl_plugins.statistics import (
    average_ranks,
    cliques,
    compare,
    distance_to_minimum,
    finner,
    iman_davenport,
    wilcoxon_pairs,
)
from automl_plugins.statistics.significance import ZERO_METHODS, ZeroMethod

Matrix = npt.NDArray[np.float64]

MATRICES = arrays(
    np.float64,
    st.tuples(st.integers(2, 8), st.integers(3, 6)),
    elements=st.integers(0, 4).map(float),
)
PAIRS = [(0, 1), (0, 2), (1, 2)]
P_VALUES = st.lists(st.floats(0.0, 1.0), min_size=1, max_size=12)
METHODS = ["SelectBest", "RandomForest&TPE", "AutoSklearn", "BOASF"]


# Friedman and Iman-Davenport


def test_omnibus_hand_values_without_ties() -> None:
    # Rank sums 4, 5, 9: chi2 = 12 / (3 * 3 * 4) * (16 + 25 + 81) - 3 * 3 * 4 = 14 / 3,
    # F = 2 * (14 / 3) / (3 * 2 - 14 / 3) = 7
    test = iman_davenport([[1.0, 2.0, 3.0], [0.1, 0.2, 0.3], [20.0, 10.0, 30.0]])
    assert test.chi2 == pytest.approx(14 / 3)
    np.testing.assert_allclose(test.F, 7.0)
    assert test.df == (2, 4)
    assert test.chi2_p == pytest.approx(np.exp(-7 / 3))  # closed form on 2 degrees of freedom
    assert test.F_p == pytest.approx((1 + 2 * 7 / 4) ** -2)  # closed form on (2, 4)


@given(MATRICES)
def test_omnibus_agrees_with_scipy(scores: Matrix) -> None:
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


@pytest.mark.parametrize("scores", [np.ones((5, 4)), [[1, 2, 3], [3, 2, 1]]])
def test_ties_and_opposite_rankings_show_no_difference(scores: npt.ArrayLike) -> None:
    test = iman_davenport(scores)
    assert (test.chi2, test.chi2_p, test.F, test.F_p) == (0.0, 1.0, 0.0, 1.0)


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        ([[1, 2], [2, 1]], "3 methods, got 2: use Wilcoxon's"),
        ([[1, 2, 3]], "2 tasks, got 1"),
        ([[1, 2, np.nan], [1, 2, 3]], "NaN in 1 cells"),
    ],
)
def test_omnibus_refuses_what_it_cannot_test(scores: npt.ArrayLike, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        iman_davenport(scores)


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
    assert result.chi2 == pytest.approx(n * (len(row) - 1))
    assert result.F_p == pytest.approx(p)
    # By counting: how many of all rankings of the tasks agree.
    if n <= 3:
        arrangements = sorted(set(itertools.permutations(row)))
        draws = list(itertools.product(arrangements, repeat=n))
        assert result.F_p == pytest.approx(sum(len(set(d)) == 1 for d in draws) / len(draws))


def null_sums(n: int, k: int) -> Iterator[tuple[Matrix, float]]:
    """Rankings (n, k) of n tasks for each set of rank sums, and how often it comes by chance."""
    arrangements = [np.array(ranks) for ranks in itertools.permutations(range(1, k + 1))]
    share: dict[tuple[tuple[int, ...], ...], float] = {(tuple(range(1, k + 1)),): 1.0}
    for _ in range(n - 1):
        following: dict[tuple[tuple[int, ...], ...], float] = {}
        for rows, p in share.items():
            for ranks in arrangements:
                key = tuple(sorted((*rows, tuple(ranks.tolist()))))
                following[key] = following.get(key, 0.0) + p / len(arrangements)
        share = following
    yield from ((np.array(rows, dtype=float), p) for rows, p in share.items())


@pytest.mark.parametrize(("n", "share"), [(3, 0.19), (4, 0.07), (8, 0.05)])
def test_f_is_liberal_for_few_tasks_as_it_says(n: int, share: float) -> None:
    cases = [(iman_davenport(scores).F_p, p) for scores, p in null_sums(n, 3)]
    assert sum(p for _, p in cases) == pytest.approx(1.0)
    assert round(sum(p for f_p, p in cases if f_p <= 0.05), 2) == share


@pytest.mark.parametrize(("n", "k"), [(5, 5), (10, 5), (20, 6)])
def test_less_agreement_has_no_smaller_p(n: int, k: int) -> None:
    scores = np.tile(np.arange(float(k)), (n, 1))
    agreed = iman_davenport(scores).F_p
    scores[0, :2] = scores[0, 1::-1]
    assert iman_davenport(scores).F_p >= agreed == pytest.approx(math.factorial(k) ** (1 - n))


# Wilcoxon


def scores_of(n: int, decimals: int | None) -> Matrix:
    """Scores (n, 3) of which the second and the third are worse; rounded ones tie."""
    scores: Matrix = np.random.default_rng(3).random((n, 3)) + np.array([0.0, 0.1, 0.4])
    return scores if decimals is None else scores.round(decimals)


@pytest.mark.parametrize("zero_method", ZERO_METHODS)
@pytest.mark.parametrize("decimals", [None, 1])
@pytest.mark.parametrize("n", [2, 6, 14, 51])
def test_wilcoxon_agrees_with_scipy(n: int, decimals: int | None, zero_method: ZeroMethod) -> None:
    scores = scores_of(n, decimals)
    pairs = PAIRS[: 1 if n < 14 else 3]  # SciPy is slow where it enumerates
    expected = [
        wilcoxon(scores[:, i], scores[:, j], zero_method=zero_method).pvalue for i, j in pairs
    ]
    found = wilcoxon_pairs(scores, pairs, zero_method=zero_method)
    np.testing.assert_allclose(found, expected, rtol=1e-9)


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
        for signs in itertools.product((1, -1), repeat=len(d))
    ]
    tails = np.mean(np.less_equal(sums, sums[0])), np.mean(np.greater_equal(sums, sums[0]))
    scores = np.column_stack([difference, np.zeros(len(difference))])
    found = wilcoxon_pairs(scores, [(0, 1)], zero_method=zero_method)
    np.testing.assert_allclose(found, min(1.0, 2 * min(tails)), rtol=1e-12)


@pytest.mark.parametrize("zero_method", ZERO_METHODS)
@pytest.mark.parametrize("n", [2, 60])
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


@pytest.mark.parametrize(("ties", "p"), [(7, 0.03), (24, 0.07)])
def test_ties_beyond_enumeration_make_p_too_large_as_it_says(ties: int, p: float) -> None:
    difference = np.append(np.zeros(ties), np.arange(1.0, 7.0))
    (found,) = wilcoxon_pairs(np.column_stack([difference, 0.0 * difference]), [(0, 1)])
    assert round(float(found), 2) == p


def test_wilcoxon_refuses_what_it_cannot_test() -> None:
    with pytest.raises(ValueError, match="2 tasks, got 1"):
        wilcoxon_pairs([[1.0, 2.0]], [(0, 1)])
    with pytest.raises(ValueError, match="NaN in 1 cells"):
        wilcoxon_pairs([[1.0, np.nan], [1.0, 2.0]], [(0, 1)])
    for wrong in ((0, 5), (0, -1), ("a", "b"), (True, 0), (0.0, 1), (0, 1, 0)):
        with pytest.raises(ValueError, match="pairs must be column numbers below 2, got"):
            wilcoxon_pairs(np.eye(2), [(0, 1), wrong])  # type: ignore[list-item]
    with pytest.raises(ValueError, match=r"zero_method must be one of .*'drop'"):
        wilcoxon_pairs(np.eye(2), [(0, 1)], zero_method="drop")  # type: ignore[arg-type]


# Finner


def test_finner_by_hand() -> None:
    # 1 - 0.99^3, 1 - 0.97^(3/2), and the third, 0.04, is held up by the second
    first, second = 0.029701, 0.0446608
    np.testing.assert_allclose(finner([0.01, 0.03, 0.04]), [first, second, second], 1e-5)
    np.testing.assert_allclose(finner([0.04, 0.01, 0.03]), [second, first, second], 1e-5)
    assert finner([]).shape == (0,)


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


def test_finner_of_tiny_p() -> None:
    np.testing.assert_allclose(finner([1e-300, 1e-200, 1.0]), [3e-300, 1.5e-200, 1.0], rtol=1e-12)
    assert finner([0.0, 5e-324]).tolist() == [0.0, 5e-324]


@pytest.mark.parametrize("p", [[0.1, np.nan], [-0.1], [1.5], [np.inf], [[0.1, 0.2]], 0.1])
def test_finner_refuses_what_is_no_probability(p: npt.ArrayLike) -> None:
    with pytest.raises(ValueError, match="probabilities"):
        finner(p)


# The table of the paper on BOASF, from its thirty rows


def boasf(hours: int) -> pd.DataFrame:
    """Balanced accuracies after some hours, data sets x methods."""
    path = Path(__file__).with_name("boasf_table_1.csv")
    table = pd.read_csv(path, comment="#", index_col="Dataset")
    columns = [f"{hours} h {method}" for method in METHODS]
    return table[columns].set_axis(METHODS, axis=1)


@pytest.mark.parametrize(
    ("hours", "chi2", "F", "ranks"),
    [
        (2, 49.934, 36.14, [3.417, 3.133, 2.050, 1.400]),
        (4, 63.384, 69.06, [3.533, 3.233, 2.017, 1.217]),
    ],
)
def test_omnibus_and_ranks(hours: int, chi2: float, F: float, ranks: list[float]) -> None:
    scores = boasf(hours)
    comparison = compare(scores, higher_is_better=True)
    test = comparison.iman_davenport
    assert test is not None
    assert test.chi2 == pytest.approx(chi2, abs=5e-4)
    assert test.chi2 == pytest.approx(friedmanchisquare(*scores.to_numpy().T).statistic, rel=1e-9)
    np.testing.assert_allclose(test.F, F, atol=5e-3)
    assert test.df == (3, 87)
    np.testing.assert_allclose(comparison.ranks[METHODS], ranks, atol=5e-4)
    assert list(comparison.ranks.index) == METHODS[::-1]


@pytest.mark.parametrize(("hours", "wins"), [(2, 20), (4, 23)])
def test_boasf_against_autosklearn(hours: int, wins: int) -> None:
    scores = boasf(hours)
    comparison = compare(scores, higher_is_better=True, control="BOASF")
    pair = comparison.pairs.iloc[0]
    assert (pair["method_a"], pair["method_b"]) == ("BOASF", "AutoSklearn")
    assert (pair["wins"], pair["ties"], pair["losses"]) == (wins, 3, 27 - wins)
    difference = scores["BOASF"] - scores["AutoSklearn"]
    assert pair["median_difference"] == pytest.approx(difference.median())
    expected = wilcoxon(difference, zero_method="zsplit").pvalue
    assert pair["p_wilcoxon"] == pytest.approx(expected, rel=1e-9)
    assert comparison.pairs["different"].all()


# Average ranks


@given(MATRICES)
def test_ranks_count_wins_and_half_the_ties(scores: Matrix) -> None:
    better = (scores[:, :, None] > scores[:, None, :]).sum(axis=2)
    tied = (scores[:, :, None] == scores[:, None, :]).sum(axis=2) - 1
    expected = (1 + better + 0.5 * tied).mean(axis=0)
    np.testing.assert_allclose(average_ranks(scores), expected)


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        (np.empty((0, 3)), "tasks x methods matrix, got shape"),
        ([[np.nan, 1.0], [np.nan, 2.0]], "NaN in 2 cells"),
    ],
)
def test_no_matrix_is_refused(scores: npt.ArrayLike, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        average_ranks(scores)


# Groups


def test_groups_of_a_chain_and_of_nothing() -> None:
    chain = np.eye(4, k=1) + np.eye(4, k=-1) > 0
    assert cliques(chain) == [(0, 1), (1, 2), (2, 3)]
    assert cliques(np.zeros((3, 3))) == []
    assert cliques(np.ones((3, 3))) == [(0, 1, 2)]
    assert cliques([[True]]) == []


@given(st.integers(1, 7), st.data())
def test_groups_agree_with_all_subsets(k: int, data: st.DataObject) -> None:
    edges = np.zeros((k, k), dtype=bool)
    for a, b in combinations(range(k), 2):
        edges[a, b] = edges[b, a] = data.draw(st.booleans())
    joined = [
        set(group)
        for size in range(2, k + 1)
        for group in combinations(range(k), size)
        if all(edges[a, b] for a, b in combinations(group, 2))
    ]
    maximal = [g for g in joined if not any(g < other for other in joined)]
    assert cliques(edges) == sorted(tuple(sorted(g)) for g in maximal)


@pytest.mark.parametrize("edges", [[True, False], [[0, 1], [0, 0]], [[0, 1, 1], [1, 0, 1]]])
def test_an_asymmetric_relation_is_refused(edges: npt.ArrayLike) -> None:
    with pytest.raises(ValueError, match="symmetric"):
        cliques(edges)


# Distances


def test_distances_by_hand() -> None:
    distances = distance_to_minimum([[1.0, 3.0, 2.0], [5.0, 5.0, 5.0], [0.0, -1.0, 3.0]])
    np.testing.assert_allclose(distances, [[0.0, 1.0, 0.5], [0.0, 0.0, 0.0], [0.25, 0.0, 1.0]])


def test_distances_of_infinite_losses() -> None:
    losses = [[np.inf, 1.0, 2.0], [-np.inf, 1.0, 2.0], [np.inf, 1.0, 1.0], [np.inf, -np.inf, 7.0]]
    expected = [[1.0, 0.0, 1.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [1.0, 0.0, 0.0]]
    np.testing.assert_array_equal(distance_to_minimum(losses), expected)
    np.testing.assert_array_equal(distance_to_minimum([[np.inf, np.inf]]), [[1.0, 1.0]])


@pytest.mark.parametrize("size", [1e-300, 1e-9, 1.0, 1e150, 1.7e308])
def test_distances_of_any_size(size: float) -> None:
    losses = size * np.array([[-1.0, 0.0, 1.0]])
    np.testing.assert_allclose(distance_to_minimum(losses), [[0.0, 0.5, 1.0]])
