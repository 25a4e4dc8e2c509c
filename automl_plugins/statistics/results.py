"""Results of a comparison of methods over tasks, as values, text, Markdown and LaTeX."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from automl_plugins.formats import (
    LATEX,
    MARKDOWN,
    TEXT,
    Format,
    format_budget,
    format_count,
    format_number,
    join_names,
    one_line,
)
from automl_plugins.statistics.runs import Unit
from automl_plugins.statistics.significance import OmnibusTest, cliques

if TYPE_CHECKING:
    import pandas as pd

_LEAST_P = 1e-300  # below it digits of a float get lost


@dataclass(frozen=True, eq=False)  # ``==`` of frames has no single truth value
class BudgetComparison:
    """A comparison of methods at one budget.

    Attributes:
        budget: Trials or seconds; None for a frame of tasks x methods.
        scores: What was compared, tasks x methods.
        ranks: Average rank of each method, the best first.
        adtm: Average distance to the minimum of each method, in the order of ``ranks``.
        iman_davenport: Whether the methods differ at all; None for two methods or one task.
        pairs: A row for each pair with the columns method_a, method_b, wins, ties and losses of
            method_a, median_difference (a - b, in the unit of the scores), p_wilcoxon, p_finner
            and different. The p-values are NaN if there is only one task.

    Example::

        at = compare(frame, budgets=[5, 10]).at(10)
        print(at.ranks, at.pairs)
    """

    budget: float | None
    scores: pd.DataFrame = field(repr=False)
    ranks: pd.Series[float]
    adtm: pd.Series[float]
    iman_davenport: OmnibusTest | None
    pairs: pd.DataFrame

    def __repr__(self) -> str:
        at = "" if self.budget is None else f" at {format_number(self.budget)}"
        tasks = format_count(len(self.scores), "task")
        return f"BudgetComparison({len(self.ranks)} methods on {tasks}{at})"

    @property
    def groups(self) -> list[tuple[Hashable, ...]]:
        """Maximal groups of methods no two of which are different, in the order of ``ranks``.

        Pairs that were not compared, since neither is the control or there is one task only, are
        in no group.
        """
        names = list(self.ranks.index)
        position = {name: i for i, name in enumerate(names)}
        edges = np.zeros((len(names), len(names)), dtype=np.bool_)
        # A pair that was not tested has p = NaN: "different" is False, but it joins no group.
        same = self.pairs[~self.pairs["different"] & self.pairs["p_finner"].notna()]
        for a, b in zip(same["method_a"], same["method_b"], strict=True):
            # Each pair is there in one order only.
            edges[position[a], position[b]] = edges[position[b], position[a]] = True
        return [tuple(names[i] for i in group) for group in cliques(edges)]


@dataclass(frozen=True, eq=False)
class Comparison:
    """A comparison of methods over tasks, at one budget or several.

    With one budget, its results are attributes of the comparison too.

    Attributes:
        methods: Names of the methods, in the order of the data.
        control: The method all others are compared with; None compares all pairs.
        unit: Unit of the budgets; None for a frame of tasks x methods.
        alpha: Level of ``different``.
        notes: Which data were left out and why, and how the figures were computed.
        budgets: The results, budgets ascending.

    Example::

        comparison = compare(frame, budgets=[5, 10], control="random")
        print(comparison.to_markdown())
    """

    methods: tuple[Hashable, ...]
    control: Hashable | None
    unit: Unit | None
    alpha: float
    notes: tuple[str, ...]
    budgets: tuple[BudgetComparison, ...]

    def at(self, budget: float | None) -> BudgetComparison:
        """The results at ``budget``; None stands for the only budget.

        Raises:
            ValueError: If there is no such budget, or there are several for None.
        """
        found = [result for result in self.budgets if budget in (None, result.budget)]
        if len(found) == 1:
            return found[0]
        names = self._budget_names()
        if found:
            raise ValueError(f"There are several budgets, {names}: use at(budget) or budget=.")
        raise ValueError(f"No budget {budget!r}; there are {names}.")

    @property
    def ranks(self) -> pd.Series[float]:
        """Average rank of each method, the best first."""
        return self.at(None).ranks

    @property
    def adtm(self) -> pd.Series[float]:
        """Average distance to the minimum of each method."""
        return self.at(None).adtm

    @property
    def iman_davenport(self) -> OmnibusTest | None:
        """Whether the methods differ at all."""
        return self.at(None).iman_davenport

    @property
    def pairs(self) -> pd.DataFrame:
        """The pairwise comparisons."""
        return self.at(None).pairs

    def to_text(self) -> str:
        """The results as plain text."""
        return _render(self, TEXT)

    def to_markdown(self) -> str:
        """The results as Markdown, with pipe tables."""
        return _render(self, MARKDOWN)

    def to_latex(self) -> str:
        """The results as LaTeX; the tables need the package booktabs."""
        return _render(self, LATEX)

    def __str__(self) -> str:
        return self.to_text()

    def __repr__(self) -> str:
        at = f" at {self._budget_names()}" if self.unit else ""
        against = "" if self.control is None else f" with {self.control!r}"
        return f"Comparison({len(self.methods)} methods{against}{at}; print it to read it)"

    def _budget_names(self) -> str:
        return join_names(
            "None" if b.budget is None else format_number(b.budget) for b in self.budgets
        )


def _render(comparison: Comparison, form: Format) -> str:
    blocks = [block for b in comparison.budgets for block in _blocks(comparison, b, form)]
    notes = [form.escape(one_line(note)) for note in comparison.notes]
    return "\n\n".join([*blocks, form.heading("Notes"), form.items(notes)]) + "\n"


def _blocks(comparison: Comparison, result: BudgetComparison, form: Format) -> Iterator[str]:
    n_tasks, n_methods = result.scores.shape
    size = f"{n_methods} methods on {format_count(n_tasks, 'task')}"
    at = "" if result.budget is None else f" at {format_budget(result.budget, comparison.unit)}"
    yield form.heading(form.escape(size + at))
    means = zip(result.ranks.index, result.ranks, result.adtm, strict=True)
    yield form.tabulate(
        ("Method", "Rank", "ADTM (%)"),
        [(str(name), f"{rank:.3f}", f"{100 * adtm:.2f}") for name, rank, adtm in means],
        ["left", "right", "right"],
        needed_by="automl_plugins.statistics",
    )
    if (test := result.iman_davenport) is not None:
        yield form.escape(
            f"Iman-Davenport: F({test.df[0]}, {test.df[1]}) = {test.F:.4g},"
            f" p {_equals(test.F_p)}; Friedman: chi-squared({test.df[0]}) = {test.chi2:.5g},"
            f" p {_equals(test.chi2_p)}."
        )
    what = "all pairs"
    if comparison.control is not None:
        what = f"{comparison.control} against each other method"
    sentence = (
        f"Wilcoxon's signed-rank test, p adjusted by Finner over {what}; different: adjusted p at"
        f" most {comparison.alpha:g}. W/T/L: tasks won, tied and lost by A."
    )
    yield form.escape(one_line(sentence))
    rows = [
        (
            str(row["method_a"]),
            str(row["method_b"]),
            f"{row['wins']}/{row['ties']}/{row['losses']}",
            f"{row['median_difference']:.3g}",
            _format_p(row["p_wilcoxon"]),
            _format_p(row["p_finner"]),
            "yes" if row["different"] else "no",
        )
        for row in result.pairs.to_dict("records")
    ]
    yield form.tabulate(
        ("A", "B", "W/T/L", "Median A - B", "p", "p (Finner)", "Different"),
        rows,
        ["left", "left", *["right"] * 5],
        needed_by="automl_plugins.statistics",
    )


def _format_p(p: float) -> str:
    """A p-value with three digits; "-" for NaN, an upper bound instead of 0."""
    if math.isnan(p):
        return "-"
    return f"<{_LEAST_P:g}" if p < _LEAST_P else f"{p:.3g}"


def _equals(p: float) -> str:
    text = _format_p(p)
    return text.replace("<", "< ") if text.startswith("<") else f"= {text}"
