"""``compare`` of frames of tasks x methods."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from effort import count_calls
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import wilcoxon

from automl_plugins.statistics import Comparison, compare, finner
from automl_plugins.statistics.significance import ZERO_METHODS, ZeroMethod

MATRICES = arrays(
    np.float64,
    st.tuples(st.integers(2, 9), st.integers(2, 5)),
    elements=st.integers(0, 5).map(float),
)


def wide(values: Any) -> pd.DataFrame:
    """A frame with tasks t0, t1, ... and methods A, B, ..."""
    array = np.asarray(values, dtype=float)
    return pd.DataFrame(
        array,
        index=[f"t{i}" for i in range(len(array))],
        columns=[chr(ord("A") + i) for i in range(array.shape[1])],
    )


def random_frame(n_tasks: int, n_methods: int) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return wide(rng.random((n_tasks, n_methods)) + 0.2 * np.arange(n_methods))


def noted(comparison: Comparison, *parts: str) -> bool:
    """Whether one note has all the parts."""
    return any(all(part in note for part in parts) for note in comparison.notes)


def by_pair(comparison: Comparison) -> dict[frozenset[Any], tuple[Any, ...]]:
    """What does not depend on which method of a pair comes first."""
    return {
        frozenset((row["method_a"], row["method_b"])): (
            row["ties"],
            abs(row["median_difference"]),
            row["p_wilcoxon"],
            row["p_finner"],
            row["different"],
        )
        for row in comparison.pairs.to_dict("records")
    }


# Results


def test_results_by_hand() -> None:
    comparison = compare(wide([[1, 2, 3], [1, 3, 2], [1, 1, 4], [0, 4, 4]]))
    assert comparison.methods == ("A", "B", "C")
    assert comparison.unit is None
    assert comparison.at(None) is comparison.budgets[0]
    ranks = {"A": 4.5 / 4, "B": 9 / 4, "C": 10.5 / 4}
    assert comparison.ranks.to_dict() == pytest.approx(ranks)
    adtm = {"A": 0.0, "B": (0.5 + 1 + 0 + 1) / 4, "C": (1 + 0.5 + 1 + 1) / 4}
    assert comparison.adtm.to_dict() == pytest.approx(adtm)
    pairs = comparison.pairs
    assert list(zip(pairs["method_a"], pairs["method_b"], strict=True)) == [
        ("A", "B"),
        ("A", "C"),
        ("B", "C"),
    ]
    assert pairs[["wins", "ties", "losses"]].to_numpy().tolist() == [
        [3, 1, 0],
        [4, 0, 0],
        [2, 1, 1],
    ]
    assert pairs["median_difference"].tolist() == [-1.5, -2.5, -0.5]
    np.testing.assert_array_equal(pairs["p_finner"], finner(pairs["p_wilcoxon"]))


@pytest.mark.parametrize("zero_method", ZERO_METHODS)
def test_pairs_agree_with_scipy(zero_method: ZeroMethod) -> None:
    frame = random_frame(40, 4).round(1)
    comparison = compare(frame, zero_method=zero_method)
    for row in comparison.pairs.to_dict("records"):
        expected = wilcoxon(frame[row["method_a"]], frame[row["method_b"]], zero_method)
        assert row["p_wilcoxon"] == pytest.approx(expected.pvalue, rel=1e-9)
    assert comparison.zero_method == zero_method
    assert noted(comparison, f"Wilcoxon's test, {zero_method}: tasks on which a pair ties")


def test_a_control_is_compared_with_each_other_method() -> None:
    frame = random_frame(12, 4)
    comparison = compare(frame, control="C")
    pairs = comparison.pairs
    assert comparison.control == "C"
    assert pairs["method_a"].tolist() == ["C", "C", "C"]
    assert pairs["method_b"].tolist() == [m for m in comparison.ranks.index if m != "C"]
    p = [wilcoxon(frame["C"], frame[other]).pvalue for other in pairs["method_b"]]
    np.testing.assert_allclose(pairs["p_finner"], finner(p), rtol=1e-9)


def test_higher_is_better_mirrors_the_losses() -> None:
    frame = random_frame(15, 3).round(1)
    gains, losses = compare(frame, higher_is_better=True), compare(-frame)
    pd.testing.assert_series_equal(gains.ranks, losses.ranks)
    pd.testing.assert_series_equal(gains.adtm, losses.adtm)
    # Differences are in the unit of the scores
    expected = losses.pairs.assign(median_difference=-losses.pairs["median_difference"])
    pd.testing.assert_frame_equal(gains.pairs, expected)
    assert noted(gains, "ADTM", "(max - score)")
    assert noted(losses, "ADTM", "(score - min)")


def test_alpha_is_the_level_of_the_adjusted_p() -> None:
    frame = random_frame(8, 4)
    p = compare(frame).pairs["p_finner"]
    middle = float(np.sort(p)[2])
    result = compare(frame, alpha=middle)
    assert result.alpha == middle
    assert result.pairs["different"].tolist() == (p <= middle).tolist()


def test_groups_join_what_is_not_different() -> None:
    rng = np.random.default_rng(1)
    base = rng.random(30)
    near = base + 0.01 * rng.normal(size=30)
    frame = pd.DataFrame({"far": base + 1.0, "near": near, "base": base})
    result = compare(frame).budgets[0]
    (group,) = result.groups
    assert set(group) == {"base", "near"}
    against = compare(frame, control="far").budgets[0]
    assert against.groups == []  # base and near were not compared


def test_names_may_be_of_any_kind() -> None:
    frame = random_frame(6, 3).set_axis([1, 2, 10], axis=1).set_axis(range(6), axis=0)
    comparison = compare(frame, control=10)
    assert comparison.methods == (1, 2, 10)
    assert set(comparison.ranks.index) == {1, 2, 10}


def test_equal_ranks_are_ordered_by_name() -> None:
    frame = wide([[1, 2], [2, 1]])[["B", "A"]]
    assert list(compare(frame).ranks.index) == ["A", "B"]


def test_whole_and_missing_numbers_of_any_dtype() -> None:
    frame = pd.DataFrame({"A": [1, 2, 3], "B": [2, 3, 4], "C": [3.0, 1.0, 2.0]})
    expected = compare(frame).ranks
    nullable = frame.astype({"A": "Int64", "B": "Float64"})
    pd.testing.assert_series_equal(compare(nullable).ranks, expected)
    nullable.loc[1, "A"] = pd.NA
    assert noted(compare(nullable), "no value of A", "1")


# Properties


@settings(max_examples=40)
@given(MATRICES, st.integers(0, 2**32 - 1))
def test_order_of_tasks_and_methods_does_not_matter(values: Any, seed: int) -> None:
    rng = np.random.default_rng(seed)
    frame = wide(values)
    shuffled = frame.iloc[rng.permutation(len(frame)), rng.permutation(frame.shape[1])]
    one, other = compare(frame), compare(shuffled)
    pd.testing.assert_series_equal(other.ranks, one.ranks)
    pd.testing.assert_series_equal(other.adtm, one.adtm)
    pd.testing.assert_frame_equal(other.pairs, one.pairs)
    assert other.iman_davenport == one.iman_davenport


@settings(max_examples=40)
@given(MATRICES)
def test_an_increasing_function_of_each_task_leaves_ranks_and_wins(values: Any) -> None:
    task = np.arange(1.0, len(values) + 1.0)[:, None]
    one, other = compare(wide(values)), compare(wide(np.exp(values / task)))
    pd.testing.assert_series_equal(other.ranks, one.ranks)
    counts = ["method_a", "method_b", "wins", "ties", "losses"]
    pd.testing.assert_frame_equal(other.pairs[counts], one.pairs[counts])
    assert other.iman_davenport == one.iman_davenport


@settings(max_examples=40)
@given(MATRICES, st.sampled_from(ZERO_METHODS))
def test_identical_methods_do_not_differ(values: Any, zero_method: ZeroMethod) -> None:
    frame = wide(values)
    frame["copy"] = frame["A"]
    result = compare(frame, zero_method=zero_method)
    same = by_pair(result)[frozenset(("A", "copy"))]
    assert same == (len(frame), 0.0, 1.0, 1.0, False)
    assert result.ranks["A"] == result.ranks["copy"]
    assert result.adtm["A"] == result.adtm["copy"]


@settings(max_examples=40)
@given(MATRICES)
def test_adjusted_p_is_at_least_p(values: Any) -> None:
    pairs = compare(wide(values)).pairs.sort_values("p_wilcoxon")
    assert (pairs["p_finner"] >= pairs["p_wilcoxon"]).all()
    assert pairs["p_finner"].is_monotonic_increasing
    assert (pairs[["wins", "ties", "losses"]].sum(axis=1) == len(values)).all()


# What is left out, or unusual


def test_tasks_with_a_gap_are_left_out_by_name() -> None:
    frame = random_frame(6, 3)
    frame.loc["t1", "B"] = np.nan
    frame.loc["t3", "B"] = np.nan
    frame.loc["t4", ["A", "C"]] = np.nan
    comparison = compare(frame)
    assert list(comparison.budgets[0].scores.index) == ["t0", "t2", "t5"]
    assert noted(comparison, "no value of B: t1, t3.")
    assert noted(comparison, "no value of A, C: t4.")
    pd.testing.assert_series_equal(comparison.ranks, compare(frame.dropna()).ranks)


def test_nothing_left_names_the_methods_with_most_gaps() -> None:
    frame = random_frame(4, 3)
    frame["B"] = np.nan
    frame.loc["t0", "C"] = np.nan
    with pytest.raises(ValueError, match=r"most gaps: B \(lacks 4 of 4\), C \(lacks 1 of 4\)"):
        compare(frame)
    with pytest.raises(ValueError, match="No task has a value of every method"):
        compare(frame.iloc[:0])


def test_one_task_has_no_p_values() -> None:
    comparison = compare(wide([[1, 2, 2]]))
    assert comparison.iman_davenport is None
    pairs = comparison.pairs
    assert pairs[["wins", "ties", "losses"]].to_numpy().tolist() == [
        [1, 0, 0],
        [1, 0, 0],
        [0, 1, 0],
    ]
    assert pairs[["p_wilcoxon", "p_finner"]].isna().all(axis=None)
    assert not pairs["different"].any()
    assert noted(comparison, "one task only")


def test_two_methods_have_wilcoxon_alone() -> None:
    frame = random_frame(10, 2)
    comparison = compare(frame)
    assert comparison.iman_davenport is None
    assert noted(comparison, "Friedman's test needs three methods")
    p = wilcoxon(frame["A"], frame["B"]).pvalue
    assert comparison.pairs["p_finner"].tolist() == pytest.approx([p])


@pytest.mark.parametrize("n_methods", [0, 1])
def test_one_method_is_refused(n_methods: int) -> None:
    with pytest.raises(ValueError, match="compare needs two methods, got"):
        compare(random_frame(5, 3).iloc[:, :n_methods])


def test_a_constant_column_is_kept_and_noted() -> None:
    frame = random_frame(5, 3).assign(D=0.5)
    comparison = compare(frame)
    assert noted(comparison, "same on every task, and is kept, of: D.")
    assert "D" in comparison.ranks
    assert not noted(compare(frame.drop(columns="D")), "same on every task")


def test_a_constant_task_has_no_distance() -> None:
    comparison = compare(wide([[2, 2, 2], [1, 2, 3]]))
    assert comparison.adtm.to_dict() == pytest.approx({"A": 0.0, "B": 0.25, "C": 0.5})
    assert noted(comparison, "ADTM", "0 where they are equal")


def test_infinite_scores_are_kept_and_noted() -> None:
    comparison = compare(wide([[1, 2, np.inf], [1, 2, 3], [-np.inf, np.inf, 3]]))
    assert comparison.ranks.to_dict() == pytest.approx({"A": 1.0, "B": 7 / 3, "C": 8 / 3})
    adtm = {"A": 0.0, "B": (1 + 0.5 + 1) / 3, "C": (1 + 1 + 0) / 3}
    assert comparison.adtm.to_dict() == pytest.approx(adtm)
    assert noted(comparison, "Infinite scores rank as they are", "A, B, C")
    gains = compare(wide([[1, 2, np.inf], [1, 2, 3]]), higher_is_better=True)
    assert gains.adtm["C"] == 0.0
    opposite = compare(wide([[np.inf, 0], [-np.inf, 0]]))
    assert opposite.pairs["median_difference"].isna().all()


# Refusals


def test_repeated_names_are_refused() -> None:
    frame = random_frame(4, 3)
    with pytest.raises(ValueError, match="tasks must be unique; more than once: t1"):
        compare(frame.set_axis(["t0", "t1", "t1", "t1"], axis=0))
    with pytest.raises(ValueError, match="methods must be unique; more than once: A"):
        compare(frame.set_axis(["A", "B", "A"], axis=1))


def test_columns_that_are_not_numeric_are_refused() -> None:
    frame = random_frame(4, 3).assign(task="x", when=pd.Timestamp("2020-01-01"), z=1j)
    with pytest.raises(ValueError, match="not numeric: task, when, z"):
        compare(frame)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"control": "Z"}, "control 'Z' is none of the methods: A, B, C"),
        ({"budgets": 10}, "has no budgets"),
        ({"unit": "seconds"}, "has no budgets"),
        ({"unit": "hours"}, "unit must be one of 'trials', 'seconds', got 'hours'"),
        ({"zero_method": "drop"}, "zero_method must be one of 'zsplit', 'pratt', 'wilcox'"),
        ({"short_runs": "drop"}, "short_runs must be one of 'carry', 'leave_out', 'raise'"),
        ({"alpha": 0.0}, "alpha must be in"),
        ({"alpha": float("nan")}, "alpha must be in"),
        ({"label": str}, "label names the objects of a sequence"),
    ],
)
def test_illegal_arguments(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        compare(random_frame(5, 3), **arguments)


def test_no_task_is_gone_through_by_itself() -> None:
    few, many = random_frame(60, 10), random_frame(600, 10)
    compare(few)  # imports
    assert count_calls(lambda: compare(many)) < 1.5 * count_calls(lambda: compare(few))


@pytest.mark.parametrize("n_tasks", [10, 13, 40])
def test_ties_on_few_tasks_are_enumerated_as_arrays(n_tasks: int) -> None:
    frame = random_frame(n_tasks, 10).round(1)  # SciPy's enumeration takes minutes for 13 tasks
    compare(frame.head())  # imports
    assert count_calls(lambda: compare(frame)) < 200_000
