"""``compare`` of frames of tasks x methods, and its results as text, Markdown and LaTeX."""

from __future__ import annotations

import re
import sys
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
ODD_NAMES = ["a|b_c", "50% & $x$", r"\new#{1}^2~<*>", "plain"]


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
def test_a_control_is_compared_with_each_other_method(zero_method: ZeroMethod) -> None:
    frame = random_frame(12, 4)
    comparison = compare(frame, control="C", zero_method=zero_method)
    pairs = comparison.pairs
    assert comparison.control == "C"
    assert pairs["method_a"].tolist() == ["C", "C", "C"]
    assert pairs["method_b"].tolist() == [m for m in comparison.ranks.index if m != "C"]
    assert noted(comparison, f"Wilcoxon's test, {zero_method}: tasks on which a pair ties")
    p = [wilcoxon(frame["C"], frame[m], zero_method).pvalue for m in pairs["method_b"]]
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
    tied = compare(wide([[1, 1], [1, 1], [2, 3]]), higher_is_better=True).to_text()
    assert " 0 " in tied and "-0" not in tied


def test_numbers_given_as_text_are_refused() -> None:
    with pytest.raises(TypeError, match="higher_is_better must be True or False, got 'False'"):
        compare(random_frame(8, 4), higher_is_better="False")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"alpha must be in \(0, 1\), got '0.05'"):
        compare(random_frame(8, 4), alpha="0.05")  # type: ignore[arg-type]
    rows = [("t", method, 0, k, 0.5) for method in "ab" for k in (1, 2, 3)]
    tidy = pd.DataFrame(rows, columns=["table", "method", "seed", "trial", "regret"])
    with pytest.raises(ValueError, match=r"budgets must be positive and finite, got .*'12'"):
        compare(tidy, budgets="12")  # type: ignore[arg-type]


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


def test_names_and_numbers_may_be_of_any_kind() -> None:
    frame = random_frame(6, 3).set_axis([1, 2, 10], axis=1).set_axis(range(6), axis=0)
    comparison = compare(frame, control=10)
    assert comparison.methods == (1, 2, 10) and set(comparison.ranks.index) == {1, 2, 10}
    tie = wide([[1, 2], [2, 1]])[["B", "A"]]
    assert list(compare(tie).ranks.index) == ["A", "B"]
    whole = pd.DataFrame({"A": [1, 2, 3], "B": [2, 3, 4], "C": [3.0, 1.0, 2.0]})
    nullable = whole.astype({"A": "Int64", "B": "Float64"})
    pd.testing.assert_series_equal(compare(nullable).ranks, compare(whole).ranks)
    nullable.loc[1, "A"] = pd.NA
    assert noted(compare(nullable), "no value of A", "1")


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
    assert comparison.budgets[0].groups == []  # nothing was tested
    assert noted(comparison, "one task only")


@pytest.mark.parametrize(("n_tasks", "n_methods"), [(4, 3), (5, 2), (8, 10)])
def test_too_few_tasks_for_any_difference_are_noted(n_tasks: int, n_methods: int) -> None:
    frame = wide([list(range(n_methods))] * n_tasks)
    comparison = compare(frame)
    assert not comparison.pairs["different"].any()
    least = comparison.pairs["p_finner"].min()
    assert noted(comparison, f"With {n_tasks} tasks", f"has p = {least:.2g} by Finner")
    more = compare(pd.concat([frame, frame.add_prefix("more ", axis=0)]), control="A")
    assert more.pairs["different"].all() and not noted(more, "none can be different")


def test_units_of_the_scores_are_noted_where_they_count() -> None:
    frame = random_frame(12, 3)
    assert noted(compare(frame), "scale the scores of each first")


def test_two_methods_have_wilcoxon_alone() -> None:
    frame = random_frame(10, 2)
    comparison = compare(frame)
    assert comparison.iman_davenport is None
    assert noted(comparison, "Friedman's test needs three methods")
    p = wilcoxon(frame["A"], frame["B"]).pvalue
    assert comparison.pairs["p_finner"].tolist() == pytest.approx([p])


def test_a_constant_column_is_kept_and_noted() -> None:
    frame = random_frame(5, 3).assign(D=0.5)
    comparison = compare(frame)
    assert noted(comparison, "The score is the same on every task, and is kept: D.")
    assert "D" in comparison.ranks
    assert not noted(compare(frame.drop(columns="D")), "same on every task")


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


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (random_frame(5, 3).iloc[:, :1], "compare needs two methods, got A"),
        (random_frame(5, 3).iloc[:, :0], "compare needs two methods, got none"),
        (
            random_frame(4, 3).set_axis(["t0", "t1", "t1", "t1"], axis=0),
            "tasks must be unique; more than once: t1",
        ),
        (
            random_frame(4, 3).set_axis(["A", "B", "A"], axis=1),
            "methods must be unique; more than once: A",
        ),
        (
            random_frame(4, 3).assign(task="x", when=pd.Timestamp("2020-01-01"), z=1j),
            "not numeric: task, when, z",
        ),
        (
            random_frame(4, 3).assign(task_id=range(4)),
            r"make it the index .*set_index\('task_id'\)",
        ),
    ],
)
def test_frames_without_sense_are_refused(frame: pd.DataFrame, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        compare(frame)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"control": "Z"}, "control 'Z' is not one of the methods: A, B, C"),
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


# Texts


def searches() -> pd.DataFrame:
    table, method, trial = np.indices((6, 3, 9)).reshape(3, -1)
    loss = np.random.default_rng(0).random(len(table))
    names = np.array(["A", "B", "C"])[method]
    return pd.DataFrame(
        {"table": table, "method": names, "seed": 0, "trial": trial + 1, "loss": loss}
    )


def markdown_tables(text: str) -> list[list[dict[str, str]]]:
    """Rows of each pipe table, by the names of the columns."""
    tables = []
    for block in re.findall(r"(?:^\|.*\n)+", text, flags=re.MULTILINE):
        rows = [
            [re.sub(r"\\(.)", r"\1", cell.strip()) for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
            for line in block.splitlines()
        ]
        header, rule, *body = rows
        assert all(re.fullmatch(r":?-+:?", cell) for cell in rule)
        tables.append([dict(zip(header, row, strict=True)) for row in body])
    return tables


def test_markdown_can_be_read_back() -> None:
    comparison = compare(random_frame(25, 4).set_axis(ODD_NAMES, axis=1))
    text = comparison.to_markdown()
    methods, pairs = markdown_tables(text)
    assert [row["Method"] for row in methods] == list(comparison.ranks.index)
    for row in methods:
        name = row["Method"]
        assert float(row["Rank"]) == pytest.approx(comparison.ranks[name], abs=5e-4)
        assert float(row["ADTM (%)"]) == pytest.approx(100 * comparison.adtm[name], abs=5e-3)
    for row, expected in zip(pairs, comparison.pairs.to_dict("records"), strict=True):
        assert (row["A"], row["B"]) == (expected["method_a"], expected["method_b"])
        counts = "{wins}/{ties}/{losses}".format_map(expected)
        assert row["W/T/L"] == counts
        assert float(row["p"]) == pytest.approx(expected["p_wilcoxon"], rel=5e-3)
        assert float(row["p (Finner)"]) == pytest.approx(expected["p_finner"], rel=5e-3)
        assert float(row["Median A - B"]) == pytest.approx(expected["median_difference"], rel=5e-3)
        assert row["Different"] == ("yes" if expected["different"] else "no")


@pytest.mark.parametrize("form", ["to_text", "to_markdown", "to_latex"])
def test_every_budget_and_note_is_rendered(form: str) -> None:
    comparison = compare(searches(), budgets=[3, 9, 30], control="B")
    text = getattr(comparison, form)()
    for budget in comparison.budgets:
        assert f"3 methods on 6 tasks at {budget.budget:g} trials" in text
        test = budget.iman_davenport
        assert test is not None
        assert f"F(2, 10) = {test.F:.4g}, p = {test.F_p:.3g}" in text
        for p in [*budget.pairs["p_wilcoxon"], *budget.pairs["p_finner"]]:
            assert f" {p:.3g} " in text
    assert text.count("B against each other method") == 3
    assert "different: adjusted p at most 0.05" in text
    plain = re.sub(r"\\(.)", r"\1", text)
    assert all(note in plain for note in comparison.notes)
    assert len(comparison.notes) >= 4


@pytest.mark.parametrize("unit", ["trials", "seconds"])
def test_one_trial_is_no_plural(unit: Any) -> None:
    frame = searches().assign(seconds=1.0)
    text = compare(frame, budgets=[1, 2], unit=unit).to_text()
    assert f"tasks at 1 {unit[:-1]}\n" in text and f"tasks at 2 {unit}\n" in text


def test_latex_is_escaped_and_has_rules() -> None:
    ill = random_frame(25, 4).set_axis(ODD_NAMES, axis=1)
    ill.loc[0, "a|b_c"] = np.nan  # a note with an odd name
    text = compare(ill).to_latex()
    for rule in (r"\toprule", r"\midrule", r"\bottomrule"):
        assert text.count(rule) == 2
    assert r"50\% \& \$x\$" in text
    assert r"a\textbar{}b\_c" in text
    assert r"\textbackslash{}new\#\{1\}\^{}2\textasciitilde{}" in text
    math_free = re.sub(r"\\ensuremath\{[<>]\}", "", text)
    bare = re.sub(r"\\(begin|end)\{\w+\}(\{\w+\})?|\\[a-z]+(\{\})?|\\[&%$#_{}^\\]", "", math_free)
    assert not re.search(r"[$#_%~^<>]", bare)
    for line in text.splitlines():
        if line.endswith(r"\\"):
            assert len(re.findall(r"(?<!\\)&", line)) in (2, 6)


def test_perfect_agreement_and_one_task() -> None:
    rows = wide([[1.0, 2.0, 3.0]] * 400)
    comparison = compare(rows.head(10).rename(columns={"A": "two\nlines"}))
    assert str(comparison) == comparison.to_text()
    lines = comparison.to_text().splitlines()
    assert lines[:2] == ["3 methods on 10 tasks", "====================="]
    assert lines[3].split() == ["Method", "Rank", "ADTM", "(%)"]
    assert lines[5].startswith("two lines")
    assert "F(2, 18) = inf, p = 9.92e-08" in comparison.to_text()
    assert r"p \textless{} 1e-300" in compare(rows).to_latex()
    one = compare(rows.head(1)).to_text()
    assert "3 methods on 1 task\n" in one and "one task only" in one
    assert "Iman-Davenport" not in one


@pytest.mark.parametrize("package", ["pandas", "tabulate"])
def test_a_missing_package_is_named(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    scores = random_frame(25, 2)
    monkeypatch.setitem(sys.modules, package, None)
    message = rf"needs {package} .* automl_plugins\[evidence\]"
    with pytest.raises(ModuleNotFoundError, match=message):
        compare(scores).to_text()


@pytest.mark.filterwarnings("error")
def test_differences_beyond_the_largest_float_have_an_infinite_median() -> None:
    scores = pd.DataFrame({"a": [1.5e308, 1.5e308], "b": [0.0, 1.0]})
    assert compare(scores, control="b").pairs["median_difference"].tolist() == [-np.inf]
