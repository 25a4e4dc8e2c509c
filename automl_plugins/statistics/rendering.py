"""A comparison as text, Markdown or LaTeX."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from automl_plugins.formats import Format, one_line
from automl_plugins.statistics.scores import number

if TYPE_CHECKING:
    from automl_plugins.statistics.omnibus import OmnibusTest
    from automl_plugins.statistics.results import BudgetComparison, Comparison

_LEAST_P = 1e-300


def render(comparison: Comparison, form: Format) -> str:
    """The results at each budget and the notes, in a format.

    Raises:
        ModuleNotFoundError: If tabulate is not installed.
    """
    blocks = [block for b in comparison.budgets for block in _blocks(comparison, b, form)]
    notes = [form.escape(one_line(note)) for note in comparison.notes]
    return "\n\n".join([*blocks, form.heading("Notes"), form.items(notes)]) + "\n"


def _blocks(comparison: Comparison, result: BudgetComparison, form: Format) -> Iterator[str]:
    n_tasks, n_methods = result.scores.shape
    size = f"{n_methods} methods on {n_tasks} {'task' if n_tasks == 1 else 'tasks'}"
    at = "" if result.budget is None else f" at {number(result.budget)} {comparison.unit}"
    yield form.heading(form.escape(size + at))
    yield _table(
        ("Method", "Rank", "ADTM (%)"),
        [
            (str(name), f"{rank:.3f}", f"{100 * distance:.2f}")
            for name, rank, distance in zip(
                result.ranks.index, result.ranks, result.adtm, strict=True
            )
        ],
        form,
    )
    if result.iman_davenport is not None:
        yield form.escape(_omnibus_line(result.iman_davenport))
    yield form.escape(one_line(_pairs_line(comparison)))
    yield _pair_table(result, form)


def _omnibus_line(test: OmnibusTest) -> str:
    return (
        f"Iman-Davenport: F({test.df[0]}, {test.df[1]}) = {test.F:.4g},"
        f" p {_equals(test.F_p)}; Friedman: chi-squared({test.df[0]}) = {test.chi2:.5g},"
        f" p {_equals(test.chi2_p)}."
    )


def _pairs_line(comparison: Comparison) -> str:
    what = "all pairs"
    if comparison.control is not None:
        what = f"{comparison.control} against each other method"
    return (
        f"Wilcoxon's signed-rank test, p adjusted by Finner over {what}; different: adjusted p at"
        f" most {comparison.alpha:g}. W/T/L: tasks won, tied and lost by A."
    )


def _pair_table(result: BudgetComparison, form: Format) -> str:
    headers = ("A", "B", "W/T/L", "Median A - B", "p", "p (Finner)", "Different")
    rows = [
        (
            str(row["method_a"]),
            str(row["method_b"]),
            f"{row['wins']}/{row['ties']}/{row['losses']}",
            f"{row['median_difference']:.3g}",
            format_p(row["p_wilcoxon"]),
            format_p(row["p_finner"]),
            "yes" if row["different"] else "no",
        )
        for row in result.pairs.to_dict("records")
    ]
    return _table(headers, rows, form)


def _table(headers: Sequence[str], rows: Sequence[Sequence[str]], form: Format) -> str:
    """A table whose columns of names are left and whose columns of numbers are right."""
    n_names = sum(header in ("Method", "A", "B") for header in headers)
    align = ["left"] * n_names + ["right"] * (len(headers) - n_names)
    return form.tabulate(headers, rows, align, needed_by="automl_plugins.statistics")


def format_p(p: float) -> str:
    """A p-value with three digits; "-" where there is none, never a bare 0."""
    if math.isnan(p):
        return "-"
    return f"<{_LEAST_P:g}" if p < _LEAST_P else f"{p:.3g}"


def _equals(p: float) -> str:
    text = format_p(p)
    return text.replace("<", "< ") if text.startswith("<") else f"= {text}"
