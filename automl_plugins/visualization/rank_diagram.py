"""Diagram of average ranks that joins the methods that are not different."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

from automl_plugins.formats import format_number, join_names
from automl_plugins.statistics.results import BudgetComparison, Comparison
from automl_plugins.visualization._drawing import GREY, graph_objects, line_styles

if TYPE_CHECKING:
    import plotly.graph_objects as go


def plot_rank_diagram(comparison: Comparison, *, budget: float | None = None) -> go.Figure:
    """Plot average ranks, and below them bars that join the methods that are not different.

    Each bar is a maximal group of methods no two of which differ, with a marker at each member: a
    bar that passes below another method does not join it. With a control, bars join it with each
    method that is not different from it; the others were not compared with each other.

    Args:
        comparison: Result of ``compare``.
        budget: Which of its budgets, in its unit; None if there is only one.

    Returns:
        A ``plotly.graph_objects.Figure``.

    Raises:
        ValueError: If there is no such budget, or several and none is chosen.
        ModuleNotFoundError: If plotly is not installed.
    """
    if budget is None and len(comparison.budgets) > 1:
        names = join_names(
            "None" if b.budget is None else format_number(b.budget) for b in comparison.budgets
        )
        raise ValueError(f"There are several budgets: pass budget=, one of {names}.")
    result = comparison.budgets[0] if budget is None else comparison.at(budget)
    return _rank_figure(comparison, result)


def _rank_figure(comparison: Comparison, result: BudgetComparison) -> go.Figure:
    figure = graph_objects().Figure()
    styles = line_styles(comparison.methods)
    rank_of: dict[Hashable, float] = dict(result.ranks.items())
    n = len(rank_of)
    _line(figure, [1, n], [0, 0], "ranks", {"color": "black", "width": 1})
    for i, (method, rank) in enumerate(rank_of.items()):
        left = i < (n + 1) // 2
        height, end = (i + 1, 1) if left else (n - i, n)
        _line(figure, [rank, rank, end], [0, height, height], str(method), styles[method])
        figure.add_annotation(
            x=end,
            y=height,
            text=f"{method}{' (control)' * (method == comparison.control)} {rank:.2f}",
            xanchor="right" if left else "left",
            xshift=-6 if left else 6,
            showarrow=False,
        )
    tested = not result.pairs["p_finner"].isna().all()
    groups = result.groups if tested else []
    for i, group in enumerate(groups, start=1):
        _line(figure, [rank_of[m] for m in group], [-i] * len(group), join_names(group), {})
        figure.data[-1].update(
            mode="lines+markers",
            line={"color": GREY, "width": 3},
            marker={"color": [styles[m]["color"] for m in group], "size": 9},
            legendgroup="groups",
        )
    at = "" if result.budget is None else f" at {format_number(result.budget)} {comparison.unit}"
    joined = f"joined: not different at alpha={comparison.alpha:g}, Wilcoxon with Finner"
    if comparison.control is not None:
        joined += f"; compared with {comparison.control} only"
    if not tested:
        joined = "one task only: nothing could be tested"
    rows = (n + 1) // 2, len(groups)
    margin = 30 + 7 * max(len(a.text) for a in figure.layout.annotations)
    figure.update_layout(
        title={"text": f"Average ranks{at}", "subtitle": {"text": joined}},
        xaxis={"title": "Average rank", "range": [0.95, n + 0.05], "dtick": 1},
        yaxis={"visible": False, "range": [-rows[1] - 0.6, rows[0] + 0.6]},
        showlegend=False,
        height=190 + 26 * sum(rows),
        margin={"l": margin, "r": margin},
    )
    return figure


def _line(figure: go.Figure, x: list[Any], y: list[Any], name: str, style: dict[str, Any]) -> None:
    figure.add_scatter(x=x, y=y, mode="lines", line=style, name=name, hoverinfo="name+x")
