"""Results of a comparison of methods over tasks."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from automl_plugins.formats import LATEX, MARKDOWN, TEXT
from automl_plugins.statistics.omnibus import OmnibusTest
from automl_plugins.statistics.pairwise import ZeroMethod
from automl_plugins.statistics.ranks import cliques
from automl_plugins.statistics.rendering import render
from automl_plugins.statistics.runs import Unit
from automl_plugins.statistics.scores import listed, number

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class BudgetComparison:
    """The comparison at one budget.

    Attributes:
        budget: Trials or seconds; None for a frame of tasks x methods.
        scores: What was compared, tasks x methods.
        ranks: Average rank of each method, the best first.
        adtm: Average distance to the minimum of each method, in the order of ``ranks``.
        iman_davenport: Whether the methods differ at all; None for two methods or one task.
        pairs: A row for each pair with the columns method_a, method_b, wins, ties and losses of
            method_a, median_difference (a - b, in the unit of the scores), p_wilcoxon, p_finner
            and different. The p-values are NaN if there is only one task.
    """

    budget: float | None
    scores: pd.DataFrame = field(repr=False)
    ranks: pd.Series[float]
    adtm: pd.Series[float]
    iman_davenport: OmnibusTest | None
    pairs: pd.DataFrame

    def __repr__(self) -> str:
        at = "" if self.budget is None else f" at {number(self.budget)}"
        return f"BudgetComparison({len(self.ranks)} methods on {len(self.scores)} tasks{at})"

    @property
    def groups(self) -> list[tuple[Hashable, ...]]:
        """Maximal groups of methods no two of which are different, in the order of ``ranks``.

        Pairs that were not compared, since neither is the control, count as different.
        """
        names = list(self.ranks.index)
        position = {name: i for i, name in enumerate(names)}
        edges = np.zeros((len(names), len(names)), dtype=np.bool_)
        same = self.pairs[~self.pairs["different"]]
        for a, b in zip(same["method_a"], same["method_b"], strict=True):
            edges[position[a], position[b]] = edges[position[b], position[a]] = True
        return [tuple(names[i] for i in group) for group in cliques(edges)]


@dataclass(frozen=True, eq=False)
class Comparison:
    """Methods compared over tasks, at one budget or several.

    Where there is one budget, its results are attributes of the comparison too.

    Attributes:
        methods: Names of the methods, in the order of the data.
        control: The method all others are compared with; None compares all pairs.
        unit: Unit of the budgets; None for a frame of tasks x methods.
        zero_method: How Wilcoxon's test treats ties, see ``wilcoxon_pairs``.
        alpha: Level of ``different``.
        notes: What was left out and why, and how the figures came about.
        budgets: The results, budgets ascending.
    """

    methods: tuple[Hashable, ...]
    control: Hashable | None
    unit: Unit | None
    zero_method: ZeroMethod
    alpha: float
    notes: tuple[str, ...]
    budgets: tuple[BudgetComparison, ...]

    def at(self, budget: float | None) -> BudgetComparison:
        """The results at a budget.

        Raises:
            ValueError: If there is no such budget; it names those that there are.
        """
        for result in self.budgets:
            if result.budget == budget:
                return result
        raise ValueError(f"No budget {budget!r}; there are {self._budget_names()}.")

    @property
    def ranks(self) -> pd.Series[float]:
        """Average rank of each method, the best first."""
        return self._only().ranks

    @property
    def adtm(self) -> pd.Series[float]:
        """Average distance to the minimum of each method."""
        return self._only().adtm

    @property
    def iman_davenport(self) -> OmnibusTest | None:
        """Whether the methods differ at all."""
        return self._only().iman_davenport

    @property
    def pairs(self) -> pd.DataFrame:
        """The pairwise comparisons."""
        return self._only().pairs

    def to_text(self) -> str:
        """The results as plain text."""
        return render(self, TEXT)

    def to_markdown(self) -> str:
        """The results as Markdown, with pipe tables."""
        return render(self, MARKDOWN)

    def to_latex(self) -> str:
        """The results as LaTeX; the tables need the package booktabs."""
        return render(self, LATEX)

    def __str__(self) -> str:
        return self.to_text()

    def __repr__(self) -> str:
        at = f" at {self._budget_names()}" if self.unit else ""
        against = "" if self.control is None else f" with {self.control!r}"
        return f"Comparison({len(self.methods)} methods{against}{at}; print it to read it)"

    def _only(self) -> BudgetComparison:
        if len(self.budgets) > 1:
            raise ValueError(f"There are several budgets, {self._budget_names()}: use at(budget).")
        return self.budgets[0]

    def _budget_names(self) -> str:
        return listed("None" if b.budget is None else number(b.budget) for b in self.budgets)
