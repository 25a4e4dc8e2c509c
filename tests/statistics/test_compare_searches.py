"""``compare`` of tidy frames of searches."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pytest
from effort import count_calls

from automl_plugins.statistics import Comparison, compare

NAN = math.nan

Key = tuple[str, str, int]


def tidy(runs: Mapping[Key, Sequence[float]], **columns: Any) -> pd.DataFrame:
    """Losses by table, method and seed as a tidy frame."""
    rows = [
        {"table": table, "method": method, "seed": seed, "trial": i, "loss": loss}
        for (table, method, seed), losses in runs.items()
        for i, loss in enumerate(losses, start=1)
    ]
    return pd.DataFrame(rows).assign(**columns)


def random_frame(n_tables: int, n_methods: int, n_seeds: int, n_trials: int) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    shape = (n_tables, n_methods, n_seeds, n_trials)
    table, method, seed, trial = np.indices(shape).reshape(4, -1)
    return pd.DataFrame(
        {
            "table": np.array([f"t{i}" for i in range(n_tables)])[table],
            "method": np.array([f"m{i}" for i in range(n_methods)])[method],
            "seed": seed,
            "trial": trial + 1,
            "loss": rng.random(len(trial)) ** (1 + method / 5),
        }
    )


def noted(comparison: Comparison, *parts: str) -> bool:
    """Whether one note has all the parts."""
    return any(all(part in note for part in parts) for note in comparison.notes)


TWO_TABLES = tidy(
    {
        ("x", "A", 0): [5.0, 1.0, 3.0, 0.0],
        ("x", "B", 0): [10.0, 4.0, 6.0, 2.0],
        ("y", "A", 0): [0.5, 0.5, 0.5, 0.5],
        ("y", "B", 0): [0.75, 0.7, 1.0, 0.5],
    }
)


# Scores


def test_losses_are_scaled_by_all_losses_of_the_table() -> None:
    comparison = compare(TWO_TABLES, budgets=[1, 3])
    assert comparison.unit == "trials"
    assert [b.budget for b in comparison.budgets] == [1.0, 3.0]
    first, third = (b.scores for b in comparison.budgets)
    np.testing.assert_allclose(first.loc[["x", "y"], ["A", "B"]], [[0.5, 1.0], [0.0, 0.5]])
    np.testing.assert_allclose(third.loc[["x", "y"], ["A", "B"]], [[0.1, 0.4], [0.0, 0.4]])
    assert comparison.at(3).adtm.to_dict() == pytest.approx({"A": 0.05, "B": 0.4})
    assert noted(comparison, "scaled on each table from 0, the least, to 1, the largest")
    assert noted(comparison, "ADTM: mean of the scores over the tasks")


def test_the_regret_column_is_taken_as_it_is() -> None:
    frame = TWO_TABLES.assign(regret=np.linspace(0.9, 0.1, len(TWO_TABLES)))
    scores = compare(frame, budgets=2).budgets[0].scores
    at_two = frame[frame["trial"] == 2].pivot(index="table", columns="method", values="regret")
    np.testing.assert_allclose(scores.loc[["x", "y"], ["A", "B"]], at_two[["A", "B"]])
    assert noted(compare(frame, budgets=2), "the column regret at the budget")


def test_the_best_column_comes_before_the_loss() -> None:
    # The third loss of A on x was met at a part of the fidelity
    frame = TWO_TABLES.assign(best=TWO_TABLES.groupby(["table", "method"])["loss"].cummin())
    partial = (frame["table"] == "x") & (frame["method"] == "A") & (frame["trial"] == 2)
    frame.loc[partial, ["loss", "best"]] = [-100.0, 5.0]
    frame.loc[
        (frame["table"] == "x") & (frame["method"] == "A") & (frame["trial"] == 3), "best"
    ] = 3
    scores = compare(frame, budgets=[2, 3])
    assert scores.at(2).scores.loc["x", "A"] == pytest.approx(0.5)
    assert scores.at(3).scores.loc["x", "A"] == pytest.approx(0.3)
    without_loss = compare(frame.drop(columns="loss"), budgets=3)
    assert without_loss.budgets[0].scores.loc["x", "A"] == pytest.approx(0.3)


def test_the_mean_is_over_the_seeds() -> None:
    frame = tidy(
        {
            ("x", "A", 0): [0.0],
            ("x", "A", 1): [1.0],
            ("x", "A", 2): [4.0],
            ("x", "B", 0): [8.0],
            ("x", "B", 1): [8.0],
            ("x", "B", 2): [2.0],
        }
    )
    comparison = compare(frame)
    assert comparison.budgets[0].scores.loc["x"].to_dict() == pytest.approx(
        {"A": 5 / 24, "B": 18 / 24}
    )


def test_order_of_seeds_cannot_part_methods_that_tie() -> None:
    values = np.random.default_rng(0).random((20, 7))
    orders = {"A": slice(None), "B": slice(None, None, -1)}
    frame = tidy(
        {
            (f"t{i}", method, seed): [loss]
            for i, row in enumerate(values)
            for method, order in orders.items()
            for seed, loss in enumerate(row[order])
        }
    )
    pair = compare(frame).pairs.iloc[0]
    assert (pair["wins"], pair["ties"], pair["losses"]) == (0, 20, 0)
    assert pair["p_finner"] == 1.0


def test_order_of_rows_does_not_matter() -> None:
    frame = random_frame(6, 3, 2, 9)
    one = compare(frame, budgets=[3, 9])
    other = compare(frame.sample(frac=1.0, random_state=0), budgets=[9, 3])
    for budget in (3, 9):
        pd.testing.assert_series_equal(one.at(budget).ranks, other.at(budget).ranks)
        pd.testing.assert_frame_equal(one.at(budget).pairs, other.at(budget).pairs)


def test_agrees_with_a_loop_over_the_runs() -> None:
    frame = random_frame(4, 3, 2, 12)
    scores = compare(frame, budgets=7).budgets[0].scores
    for table, rows in frame.groupby("table"):
        low, high = rows["loss"].min(), rows["loss"].max()
        for method, mine in rows.groupby("method"):
            best = [run[run["trial"] <= 7]["loss"].min() for _, run in mine.groupby("seed")]
            expected = np.mean((np.array(best) - low) / (high - low))
            assert scores.loc[str(table), str(method)] == pytest.approx(expected)


@pytest.mark.parametrize("size", [1e-200, 1.0, 1e308])
def test_losses_of_any_size(size: float) -> None:
    frame = TWO_TABLES.assign(loss=(TWO_TABLES["loss"] / 10 - 0.5) * 2 * size)
    expected = compare(TWO_TABLES, budgets=2).adtm.to_dict()
    assert compare(frame, budgets=2).adtm.to_dict() == pytest.approx(expected)


# Budgets


def test_the_default_budget_is_the_longest_common_one() -> None:
    frame = tidy(
        {
            ("x", "A", 0): [1.0] * 9,
            ("x", "B", 0): [2.0] * 3,
            ("x", "B", 1): [0.0] * 7,
            ("y", "A", 0): [3.0] * 8,
            ("y", "B", 0): [2.0] * 8,
            ("z", "A", 0): [2.0],  # left out, so its length does not count
        }
    )
    comparison = compare(frame)
    assert comparison.budgets[0].budget == 7
    assert noted(comparison, "Budget: 7 trials", "B on x made no more")
    assert noted(comparison, "runs that end earlier: B 1 (the shortest at 3)")


def test_budgets_in_seconds() -> None:
    frame = TWO_TABLES.assign(seconds=TWO_TABLES["trial"] * 10.0)
    seconds = compare(frame, budgets=[9.5, 20, 39.9], unit="seconds")
    trials = compare(frame, budgets=[1, 2, 3])
    pd.testing.assert_series_equal(seconds.at(20).ranks, trials.at(2).ranks)
    pd.testing.assert_series_equal(seconds.at(39.9).adtm, trials.at(3).adtm)
    assert (seconds.at(9.5).scores == 1.0).all(axis=None)
    assert noted(seconds, "At 9.5 seconds: no result yet, so regret 1: A 2, B 2.")
    assert seconds.unit == "seconds"


def test_several_budgets_are_named_where_one_is_meant() -> None:
    comparison = compare(TWO_TABLES, budgets=[3, 1, 3])
    for name in ("ranks", "adtm", "iman_davenport", "pairs"):
        with pytest.raises(ValueError, match=r"several budgets, 1, 3: use at\(budget\)"):
            getattr(comparison, name)
    with pytest.raises(ValueError, match="No budget 2; there are 1, 3"):
        comparison.at(2)


@pytest.mark.parametrize("budgets", [0, -1, math.inf, NAN, [], [1, NAN]])
def test_illegal_budgets(budgets: Any) -> None:
    with pytest.raises(ValueError, match="budgets must be positive and finite"):
        compare(TWO_TABLES, budgets=budgets)


def test_seconds_need_a_budget() -> None:
    with pytest.raises(ValueError, match="budgets must be given"):
        compare(TWO_TABLES.assign(seconds=1.0), unit="seconds")


def test_tables_without_seconds_are_named() -> None:
    frame = TWO_TABLES.assign(seconds=1.0)
    frame.loc[frame["table"] == "y", "seconds"] = NAN
    frame.loc[0, "seconds"] = NAN
    with pytest.raises(ValueError, match=r"no seconds on table x \(in 1 of 8 rows\), y \(in 8"):
        compare(frame, budgets=1, unit="seconds")
    with pytest.raises(ValueError, match="lacks: seconds"):
        compare(TWO_TABLES, budgets=1, unit="seconds")


def test_seconds_that_fall_are_refused() -> None:
    frame = TWO_TABLES.assign(seconds=10.0 - TWO_TABLES["trial"])
    with pytest.raises(ValueError, match=r"fall .* at table x, method A, seed 0, trial 2"):
        compare(frame, budgets=1, unit="seconds")


# Short runs and gaps


def short_frame() -> pd.DataFrame:
    return tidy(
        {
            ("x", "A", 0): [4.0, 2.0, 0.0],
            ("x", "B", 0): [4.0],
            ("x", "B", 1): [4.0, 4.0, 2.0],
            ("y", "A", 0): [4.0, 2.0, 2.0],
            ("y", "B", 0): [4.0, 0.0],
        }
    )


def test_short_runs_are_carried() -> None:
    comparison = compare(short_frame(), budgets=3)
    scores = comparison.budgets[0].scores
    np.testing.assert_allclose(scores.loc[["x", "y"], ["A", "B"]], [[0.0, 0.75], [0.5, 0.0]])
    assert noted(
        comparison, "At 3 trials: runs that end earlier: B 2 (the shortest at 1)", "counts on"
    )


def test_short_runs_are_left_out() -> None:
    comparison = compare(short_frame(), budgets=[1, 3], short_runs="leave_out")
    assert list(comparison.at(1).scores.index) == ["x", "y"]
    scores = comparison.at(3).scores
    assert list(scores.index) == ["x"]
    np.testing.assert_allclose(scores.loc["x", ["A", "B"]].astype(float), [0.0, 0.5])
    assert noted(comparison, "At 3 trials: runs that end earlier: B 2", "they are left out")
    assert noted(comparison, "At 3 trials: Left out, since there is no run of B: y.")
    assert noted(comparison, "At 3 trials: There is one task only")


def test_short_runs_raise() -> None:
    compare(short_frame(), budgets=1, short_runs="raise")
    with pytest.raises(ValueError, match="At 3 trials: runs that end earlier: B 2"):
        compare(short_frame(), budgets=[1, 3], short_runs="raise")


def test_only_short_runs_leave_nothing() -> None:
    with pytest.raises(ValueError, match=r"At 4 trials: No task .* A \(lacks 2 of 2\)"):
        compare(short_frame(), budgets=4, short_runs="leave_out")


def test_a_method_with_runs_on_some_tables_only() -> None:
    frame = tidy(
        {(t, m, 0): [1.0, float(i)] for t in "xyz" for i, m in enumerate("ABC") if t + m != "yB"}
    )
    comparison = compare(frame)
    assert list(comparison.budgets[0].scores.index) == ["x", "z"]
    assert noted(comparison, "Left out, since there is no run of B: y.")


def test_no_table_with_every_method() -> None:
    frame = tidy({("x", "A", 0): [1.0], ("x", "B", 0): [1.0], ("y", "C", 0): [1.0]})
    with pytest.raises(ValueError, match=r"most gaps: .* \(lacks 1 of 2\)"):
        compare(frame)


def test_unequal_seeds_are_noted() -> None:
    comparison = compare(short_frame())
    assert noted(comparison, "not have the same seeds on 1 of 2 tasks; first, x", "A 1, B 2")
    assert not noted(compare(TWO_TABLES), "same seeds")
    shifted = TWO_TABLES.assign(seed=(TWO_TABLES["method"] == "A").astype(int))
    assert noted(compare(shifted), "not have the same seeds on 2 of 2 tasks")


def test_one_task_of_searches() -> None:
    comparison = compare(TWO_TABLES[TWO_TABLES["table"] == "x"])
    assert noted(comparison, "one task only")
    assert comparison.pairs["p_wilcoxon"].isna().all()


# Losses that are missing


def test_missing_losses_improve_nothing_and_are_noted() -> None:
    frame = tidy(
        {
            ("x", "A", 0): [NAN, 2.0, NAN],
            ("x", "B", 0): [4.0, 0.0, math.inf],
            ("y", "A", 0): [NAN, NAN, -math.inf],
            ("y", "B", 0): [1.0, 1.0, 0.0],
        }
    )
    comparison = compare(frame, budgets=[1, 3])
    at_three = comparison.at(3).scores.loc[["x", "y"], ["A", "B"]]
    np.testing.assert_allclose(at_three, [[0.5, 0.0], [1.0, 0.0]])
    np.testing.assert_allclose(comparison.at(1).scores["A"], [1.0, 1.0])
    assert noted(comparison, "6 of 12 evaluations have no complete and finite loss (A 5, B 1)")
    assert noted(comparison, "At 1 trials: no result yet, so regret 1: A 2.")
    assert noted(comparison, "At 3 trials: no result yet, so regret 1: A 1.")


def test_losses_of_pruned_and_failed_trials_do_not_count() -> None:
    frame = TWO_TABLES.assign(status="complete")
    frame.loc[[1, 3], "status"] = ["pruned", "failed"]
    comparison = compare(frame, budgets=4)
    assert comparison.budgets[0].scores.loc["x"].to_dict() == pytest.approx({"A": 1 / 8, "B": 0.0})
    assert noted(comparison, "2 of 16 evaluations have no complete")
    with pytest.raises(
        ValueError, match="status must be one of complete, pruned, failed, got Done"
    ):
        compare(TWO_TABLES.assign(status="Done"))


def test_missing_regrets_are_carried_and_noted() -> None:
    frame = TWO_TABLES.assign(regret=[NAN, 0.5, NAN, 0.25] * 4)
    comparison = compare(frame, budgets=[1, 3])
    assert (comparison.at(1).scores == 1.0).all(axis=None)
    assert (comparison.at(3).scores == 0.5).all(axis=None)
    assert noted(comparison, "8 of 16 evaluations have no regret (A 4, B 4)")
    with pytest.raises(ValueError, match="regret is infinite in 16 rows"):
        compare(frame.assign(regret=np.inf))


def test_tables_without_a_difference_are_noted() -> None:
    constant = tidy({(t, m, 0): [3.0 if t == "x" else NAN] for t in "xy" for m in "AB"})
    comparison = compare(constant)
    np.testing.assert_array_equal(comparison.budgets[0].scores, [[0.0, 0.0], [1.0, 1.0]])
    assert noted(comparison, "regret is 0, on: x.")
    assert noted(comparison, "No method has a result", "on: y.")
    assert comparison.pairs["p_finner"].tolist() == [1.0]


# Refusals


def test_repeated_trials_are_refused() -> None:
    frame = pd.concat([TWO_TABLES, TWO_TABLES.iloc[[2, 9]]])
    with pytest.raises(
        ValueError, match=r"2 rows repeat .* table x, method A, seed 0, trial 3; table"
    ):
        compare(frame)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"loss": "high"}, "not numeric: loss"),
        ({"trial": "first"}, "not numeric: trial"),
        ({"trial": 0}, "count finished evaluations from 1"),
        ({"trial": NAN}, "count finished evaluations from 1"),
        ({"seed": NAN}, "seed is empty in 16 rows"),
        ({"table": None}, "table is empty in 16 rows"),
    ],
)
def test_columns_without_sense_are_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        compare(TWO_TABLES.assign(**change))


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (["seed"], "lacks: seed"),
        (["trial", "loss"], "lacks: trial, one of regret, best and loss"),
    ],
)
def test_missing_columns_are_named(columns: list[str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        compare(TWO_TABLES.drop(columns=columns))


def test_other_refusals() -> None:
    with pytest.raises(ValueError, match="no rows"):
        compare(TWO_TABLES.iloc[:0])
    with pytest.raises(ValueError, match="leave out higher_is_better"):
        compare(TWO_TABLES, higher_is_better=True)
    with pytest.raises(ValueError, match="needs two methods, got A"):
        compare(TWO_TABLES[TWO_TABLES["method"] == "A"])
    with pytest.raises(ValueError, match="control 'C' is none of the methods: A, B"):
        compare(TWO_TABLES, control="C")


def test_no_table_is_gone_through_by_itself() -> None:
    few, many = random_frame(60, 5, 1, 12), random_frame(600, 5, 1, 12)
    compare(few, budgets=[6, 12])  # imports
    least = count_calls(lambda: compare(few, budgets=[6, 12]))
    assert count_calls(lambda: compare(many, budgets=[6, 12])) < 1.5 * least


@pytest.mark.parametrize("budgets", [None, [2, 4]])
def test_notes_are_those_of_shuffled_rows(budgets: Any) -> None:
    rows = [
        (table, method, seed, trial, 1.0 if table in "de" else trial / 7 + seed)
        for table in "edcba"
        for method in "zyx"
        for seed in range(1 if (table, method) in (("c", "y"), ("b", "z")) else 2)
        for trial in range(1, 4 if table in "cb" else 6)
        if (table, method) not in (("a", "x"), ("a", "y"))
    ]
    frame = pd.DataFrame(rows, columns=["table", "method", "seed", "trial", "loss"])
    frame["status"] = np.where(frame["trial"] == 2, "failed", "complete")
    notes = compare(frame, budgets=budgets).notes
    for seed in range(3):
        assert compare(frame.sample(frac=1, random_state=seed), budgets=budgets).notes == notes
