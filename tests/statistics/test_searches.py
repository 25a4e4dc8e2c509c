"""``compare`` of searches: tidy frames, ``Search`` objects and the objects of frameworks."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from effort import count_calls

from automl_plugins.records.search import Search, search_frame
from automl_plugins.records.trial import Status, Trial
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


@pytest.mark.parametrize("unit", ["trials", "seconds"])
def test_agrees_with_a_loop_over_the_runs(unit: Any) -> None:
    frame = random_frame(4, 3, 2, 12)
    frame.loc[::5, "loss"] = NAN
    frame["seconds"] = frame["trial"] * 1.5
    frame = frame[(frame["seed"] > 0) | (frame["trial"] < 9)]
    comparison = compare(frame.sample(frac=1, random_state=0), budgets=[2, 7, 12], unit=unit)
    for budget in (2, 7, 12):
        for table, rows in frame.groupby("table"):
            low, high = rows["loss"].min(), rows["loss"].max()
            for method, mine in rows.groupby("method"):
                runs = [
                    run[run[unit.rstrip("s") if unit == "trials" else unit] <= budget]["loss"]
                    for _, run in mine.groupby("seed")
                ]
                regret = [
                    1.0 if run.isna().all() else (run.min() - low) / (high - low) for run in runs
                ]
                found = comparison.at(budget).scores.loc[str(table), str(method)]
                assert found == pytest.approx(np.mean(regret))


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
    with pytest.raises(ValueError, match=r"At 4 trials: No task .* A \(lacks 2 of 2\)"):
        compare(short_frame(), budgets=4, short_runs="leave_out")


def test_unequal_seeds_are_noted() -> None:
    comparison = compare(short_frame())
    assert noted(comparison, "not have the same seeds on 1 of 2 tasks; first, x", "A 1, B 2")
    assert not noted(compare(TWO_TABLES), "same seeds")
    shifted = TWO_TABLES.assign(seed=(TWO_TABLES["method"] == "A").astype(int))
    assert noted(compare(shifted), "not have the same seeds on 2 of 2 tasks")


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
    assert noted(comparison, "At 1 trial: no result yet, so regret 1: A 2.")
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
    with pytest.raises(
        ValueError, match="regret is infinite in 16 rows: it must be finite, or NaN"
    ):
        compare(frame.assign(regret=np.inf))


def test_tables_without_a_difference_are_noted() -> None:
    constant = tidy({(t, m, 0): [3.0 if t == "x" else NAN] for t in "xy" for m in "AB"})
    comparison = compare(constant)
    np.testing.assert_array_equal(comparison.budgets[0].scores, [[0.0, 0.0], [1.0, 1.0]])
    assert noted(comparison, "regret is 0, on: x.")
    assert noted(comparison, "No method has a result", "on: y.")
    assert comparison.pairs["p_finner"].tolist() == [1.0]
    assert not noted(comparison, "lowest hundredth")


def test_tables_with_one_far_loss_are_noted() -> None:
    losses = {"x": [1.0, 2.0, 1e6, 3.0], "y": [1.0, 2.0, 5.0, 3.0]}
    comparison = compare(tidy({(t, m, 0): losses[t] for t in losses for m in "AB"}))
    assert noted(comparison, "lowest hundredth of the scale", "on: x.")


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


# Refusals


SECONDS = TWO_TABLES["trial"] * 1.0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"loss": "high"}, "not numeric: loss"),
        ({"trial": "first"}, "not numeric: trial"),
        ({"trial": 0}, "count finished evaluations from 1"),
        ({"trial": NAN}, "count finished evaluations from 1"),
        ({"trial": np.inf}, "count finished evaluations from 1"),
        ({"trial": TWO_TABLES["trial"] + 0.5}, "count finished evaluations from 1"),
        ({"trial": 3}, r"12 rows repeat .* table x, method A, seed 0, trial 3; table"),
        ({"seed": NAN}, "seed is empty in 16 rows"),
        ({"table": None}, "table is empty in 16 rows"),
        (
            {"seconds": SECONDS.where(TWO_TABLES["table"] == "x").where(SECONDS.index > 0)},
            r"no seconds on table x \(in 1 of 8 rows\), y \(in 8 .*: use unit='trials', or fill",
        ),
        ({"seconds": -SECONDS}, r"fall .* at table x, method A, seed 0, trial 2"),
    ],
)
def test_columns_without_sense_are_refused(change: dict[str, Any], message: str) -> None:
    unit: Any = "seconds" if "seconds" in change else "trials"
    with pytest.raises(ValueError, match=message):
        compare(TWO_TABLES.assign(**change), budgets=1, unit=unit)


@pytest.mark.parametrize(
    ("frame", "options", "message"),
    [
        (TWO_TABLES.drop(columns="seed"), {}, "lacks: seed"),
        (
            TWO_TABLES.drop(columns=["trial", "loss"]),
            {},
            "lacks: trial, one of regret, best and loss",
        ),
        (TWO_TABLES, {"budgets": 1, "unit": "seconds"}, "lacks: seconds"),
        (TWO_TABLES.assign(seconds=1.0), {"unit": "seconds"}, "budgets must be given"),
        (TWO_TABLES.iloc[:0], {}, "no rows"),
        (TWO_TABLES, {"higher_is_better": True}, "leave out higher_is_better"),
        (TWO_TABLES[TWO_TABLES["method"] == "A"], {}, "needs two methods, got A"),
        (TWO_TABLES, {"control": "C"}, "control 'C' is not one of the methods: A, B"),
    ],
)
def test_frames_and_options_that_do_not_fit(
    frame: pd.DataFrame, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        compare(frame, **options)


def test_no_table_is_gone_through_by_itself() -> None:
    few, many = random_frame(60, 5, 1, 12), random_frame(600, 5, 1, 12)
    compare(few, budgets=[6, 12])  # imports
    least = count_calls(lambda: compare(few, budgets=[6, 12]))
    assert count_calls(lambda: compare(many, budgets=[6, 12])) < 1.5 * least


# Searches and the objects of frameworks


def search(table: str, method: str, losses: Sequence[float], seed: int = 0) -> Search:
    trials = [Trial({"x": loss}, Status.COMPLETE, loss) for loss in losses]
    return Search(table, method, seed, trials)


SEARCHES = [
    search("t0", "A", [3.0, 1.0]),
    search("t0", "B", [5.0, 2.0]),
    search("t1", "A", [0.5, 0.25]),
    search("t1", "B", [1.0, 0.0]),
]


def assert_same(one: Comparison, other: Comparison) -> None:
    pd.testing.assert_frame_equal(one.budgets[0].scores, other.budgets[0].scores)
    pd.testing.assert_frame_equal(one.pairs, other.pairs)


def test_a_sequence_of_searches_is_their_frame() -> None:
    expected = compare(search_frame(SEARCHES))
    assert_same(compare(SEARCHES), expected)
    assert_same(compare(iter(SEARCHES)), expected)
    assert compare(SEARCHES).notes == expected.notes


def test_a_mapping_names_searches() -> None:
    nameless = [replace(s, table="", method="") for s in SEARCHES]
    keys = [(s.table, s.method) for s in SEARCHES]
    assert_same(compare(dict(zip(keys, nameless, strict=True))), compare(SEARCHES))
    seeded = {(*key, 7): s for key, s in zip(keys, nameless, strict=True)}
    assert_same(compare(seeded), compare(SEARCHES))


def test_names_with_commas_are_told_apart() -> None:
    names = [("a, b", "c"), ("a", "b, c"), ("a, b", "b, c"), ("a", "c")]
    runs = [search("", "", [float(i), 0.0]) for i in range(4)]
    comparison = compare(dict(zip(names, runs, strict=True)))
    assert set(comparison.methods) == {"c", "b, c"} and len(comparison.budgets[0].scores) == 2


def test_searches_without_seeds_are_numbered() -> None:
    twice = [*SEARCHES, search("t0", "A", [9.0, 9.0])]
    with pytest.raises(ValueError, match=r"same task, method and seed: t0, A, seed 0\. Name"):
        compare(twice)
    alike = [search("t0", "A", [1.0], seed=1), search("t0", "A", [2.0], seed=True)]
    with pytest.raises(ValueError, match="method and seed: t0, A, seed True"):
        compare(alike)
    comparison = compare(twice, label=lambda s: (s.table, s.method))
    numbered = compare([*SEARCHES, search("t0", "A", [9.0, 9.0], seed=1)])
    assert_same(comparison, numbered)
    assert noted(comparison, "Without seeds, so numbered in the order given: A on t0 (2).")
    mine = compare(SEARCHES, label=lambda s: (s.table, f"my {s.method}", 3))
    assert mine.methods == ("my A", "my B") and not noted(mine, "Without seeds")


def test_what_readers_left_out_is_noted_once() -> None:
    sentence = "1 running trial."
    searches = [replace(s, left_out=(sentence,)) for s in SEARCHES[:2]] + SEARCHES[2:]
    comparison = compare(searches)
    assert f"t0, A, seed 0; t0, B, seed 0: {sentence}" in comparison.notes


def test_what_violates_a_constraint_is_no_result() -> None:
    """A search cannot win by trials that its framework would not call the best."""

    def violating(search: Search, row: int, loss: float) -> Search:
        trials = list(search.trials)
        trials[row] = Trial({"x": loss}, Status.COMPLETE, loss, constraints={"c": 1.0})
        return replace(search, trials=trials)

    failed = [replace(s, trials=[Trial({}, Status.FAILED), *s.trials[1:]]) for s in SEARCHES]
    mixed = [violating(s, 0, -9.0) for s in SEARCHES[:3]] + failed[3:]
    assert_same(compare(mixed), compare(failed))
    told = "violate a constraint"
    assert noted(compare(mixed), f"3 of 8 evaluations {told} (A 2, B 1): they count as failed.")
    assert not noted(compare(failed), told)


def test_a_diverged_loss_that_sets_the_scale_is_noted() -> None:
    rows = [
        ("t", method, 0, k + 1, 0.1 * k + shift)
        for method, shift in (("A", 0.5), ("B", 0.6), ("C", 0.7))
        for k in range(5)
    ]
    frame = pd.DataFrame(rows, columns=["table", "method", "seed", "trial", "loss"])
    assert not noted(compare(frame), "of any method sets")
    frame.loc[frame["method"] == "C", "loss"] += np.array([1000.0, 0.0, 0.0, 0.0, 0.0])
    assert noted(compare(frame), "which the largest loss of any method sets", "on: t.")


def test_searches_of_both_directions_on_one_table_are_noted() -> None:
    told = "Some searches were maximised and others minimised"
    searches = [replace(s, maximized=(s.table, s.method) == ("t0", "A")) for s in SEARCHES]
    assert noted(compare(searches), told, "on: t0.")
    # Each task may have a direction of its own.
    searches = [replace(s, maximized=s.table == "t0") for s in SEARCHES]
    assert not noted(compare(searches), told)


def test_a_search_without_trials_is_noted() -> None:
    comparison = compare([*SEARCHES, search("t0", "A", [], seed=1)])
    assert_same(comparison, compare(SEARCHES))
    assert noted(comparison, "no finished trial: t0, A, seed 1.")
    gap = compare([*SEARCHES[:3], search("t1", "B", [])])
    assert noted(gap, "no finished trial: t1, B, seed 0.")
    assert noted(gap, "no run of B: t1.")


@pytest.mark.parametrize("searches", [[], [search("t", "A", [])]])
def test_no_trials_at_all(searches: list[Search]) -> None:
    with pytest.raises(ValueError, match="no searches with finished trials"):
        compare(searches)


def test_illegal_labels() -> None:
    with pytest.raises(ValueError, match=r"A label is \(task, method\) .* got 't0'"):
        compare(SEARCHES, label=lambda s: s.table)
    with pytest.raises(ValueError, match="A label is"):
        compare({("t0",): SEARCHES[0]})
    with pytest.raises(ValueError, match="a mapping has names already"):
        compare({("t0", "A"): SEARCHES[0]}, label=lambda s: ("t0", "A"))


def test_an_unknown_object_is_refused() -> None:
    for data in (object(), [object()], 5):
        with pytest.raises(TypeError, match="Cannot read the searches"):
            compare(data)  # type: ignore[arg-type]
