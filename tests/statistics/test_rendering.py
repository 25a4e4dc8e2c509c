"""A comparison as text, Markdown and LaTeX."""

from __future__ import annotations

import re
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from automl_plugins.statistics import compare
from automl_plugins.statistics.results import format_p

ODD_NAMES = ["a|b_c", "50% & $x$", r"\new#{1}^2~<*>", "plain"]


def frame(columns: list[str], n_tasks: int = 25) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    scores = rng.random((n_tasks, len(columns))) + 0.1 * np.arange(len(columns))
    return pd.DataFrame(scores, columns=columns)


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
    comparison = compare(frame(ODD_NAMES))
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


def test_text_is_what_print_shows() -> None:
    comparison = compare(frame(["A", "B", "C"]))
    assert str(comparison) == comparison.to_text()
    lines = comparison.to_text().splitlines()
    assert lines[:2] == ["3 methods on 25 tasks", "====================="]
    assert lines[3].split() == ["Method", "Rank", "ADTM", "(%)"]


def test_latex_is_escaped_and_has_rules() -> None:
    ill = frame(ODD_NAMES)
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


def test_names_stay_on_one_line() -> None:
    comparison = compare(frame(["two\nlines", "B"]))
    assert markdown_tables(comparison.to_markdown())[0][0]["Method"] == "two lines"


@pytest.mark.parametrize(
    ("p", "text"),
    [
        (1.0, "1"),
        (0.04567, "0.0457"),
        (1.234e-9, "1.23e-09"),
        (1e-300, "1e-300"),
        (9e-301, "<1e-300"),
        (0.0, "<1e-300"),
        (np.nan, "-"),
    ],
)
def test_p_values_are_never_a_bare_zero(p: float, text: str) -> None:
    assert format_p(p) == text


def test_perfect_agreement_and_one_task() -> None:
    rows = pd.DataFrame([[1.0, 2.0, 3.0]] * 10, columns=["A", "B", "C"])
    assert "F(2, 18) = inf, p = 9.92e-08" in compare(rows).to_text()
    many = pd.concat([rows] * 40, ignore_index=True)
    assert r"p \textless{} 1e-300" in compare(many).to_latex()
    one = compare(rows.head(1)).to_text()
    assert "3 methods on 1 task\n" in one
    assert "Iman-Davenport" not in one
    assert "one task only" in one


@pytest.mark.parametrize("package", ["pandas", "tabulate"])
def test_a_missing_package_is_named(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    scores = frame(["A", "B"])
    monkeypatch.setitem(sys.modules, package, None)
    message = rf"needs {package} .* automl_plugins\[evidence\]"
    with pytest.raises(ModuleNotFoundError, match=message):
        compare(scores).to_text()


def test_the_numeric_part_needs_neither_package_nor_framework() -> None:
    code = (
        "import sys, automl_plugins.statistics as s; s.finner([0.1]); s.average_ranks([[1, 2]]);"
        "print(sorted({'pandas', 'tabulate', 'optuna', 'smac', 'hyperopt'} & set(sys.modules)))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
