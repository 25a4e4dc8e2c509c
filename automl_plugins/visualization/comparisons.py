"""Plots that compare methods: regret and rank during a search, and the rank diagram.

Notation of this module::

    N  tables that have runs of every method shown
    K  methods shown
    G  points of the horizontal axis, trials or seconds
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from scipy.stats import rankdata

from automl_plugins._arguments import check_choice
from automl_plugins.arrays import FloatArray
from automl_plugins.formats import format_budget, format_count, join_names, text_width
from automl_plugins.statistics.results import Comparison
from automl_plugins.statistics.runs import UNITS, Unit, runs_of
from automl_plugins.visualization._drawing import (
    GREY,
    MAX_POINTS,
    line_styles,
    new_figure,
    plain,
    translucent,
)

if TYPE_CHECKING:
    import pandas as pd
    import plotly.graph_objects as go

Band = Literal["ci", "quartiles"]
_BANDS: dict[Band, str] = {
    "ci": "band: mean ± 1.96 standard errors over tables",
    "quartiles": "band: quartiles over tables",
}
_AXES: dict[Unit, str] = {"trials": "Trial", "seconds": "Simulated seconds"}
_N_SECONDS = 100  # points of a curve over time


def plot_regret(
    runs: pd.DataFrame,
    *,
    unit: Unit = "trials",
    band: Band | None = "ci",
    methods: Iterable[Hashable] | None = None,
    log_y: bool = True,
) -> go.Figure:
    """Plot the mean normalised regret of each method against trials or simulated seconds.

    Seeds are averaged within each table first, then tables. The regret is 1 before the first
    result, and runs that end early keep their last regret. Tables without runs of every method
    are left out; the subtitle says how many.

    Args:
        runs: A tidy frame of searches as ``replay`` returns it: table, method, seed, trial and
            regret. Without a column ``regret`` it is computed from ``best`` or ``loss``, scaled by
            the least and the largest finite loss of any method on the table.
        unit: Horizontal axis; seconds are log-spaced from the least to the largest one and need
            the column ``seconds``.
        band: Mean ± 1.96 standard errors (``"ci"``) or quartiles over the tables; None for no
            band. A single table has no band.
        methods: Methods to show, in the order of their colours; None for all.
        log_y: Whether the axis of the regret is logarithmic; it cannot show a mean of 0, so it is
            linear if all means are 0.

    Raises:
        ValueError: If columns are missing or illegal, seconds are NaN, an option or a method is
            unknown, or no table has runs of every method.
    """
    titles = ("Mean normalised regret", "Normalised regret")
    figure = _draw_curves(runs, unit, band, methods, titles)
    if log_y:
        _make_logarithmic(figure)
    return figure


def plot_ranks(
    runs: pd.DataFrame,
    *,
    unit: Unit = "trials",
    band: Band | None = "ci",
    methods: Iterable[Hashable] | None = None,
) -> go.Figure:
    """Plot the average rank of each method against trials or simulated seconds.

    Methods are ranked within each table by the mean over the seeds of their regret; rank 1 is the
    best, ties get mean ranks. Arguments and errors are those of ``plot_regret``.
    """
    return _draw_curves(runs, unit, band, methods, ("Average rank", "Average rank"), ranked=True)


def _draw_curves(
    frame: pd.DataFrame,
    unit: Unit,
    band: Band | None,
    methods: Iterable[Hashable] | None,
    titles: tuple[str, str],
    *,
    ranked: bool = False,
) -> go.Figure:
    """Draw a line and a band for each method; ``titles`` of the figure and the vertical axis."""
    check_choice("unit", unit, UNITS)
    if band is not None:
        check_choice("band", band, list(_BANDS))
    names, x, scores, n_tables = _table_scores(frame, unit, methods)
    if ranked:
        scores = np.asarray(rankdata(scores, axis=1), dtype=np.float64)
    n = len(scores)
    note = format_count(n, "table")
    if n < n_tables:
        note = f"{n} of {n_tables} tables, those with runs of every method"
    mean = scores.mean(axis=0)  # (K, G) of (N, K, G)
    if n == 1:  # one table has no spread
        band = None
    if band is not None:
        note += f"; {_BANDS[band]}"
        half = 1.96 * scores.std(axis=0, ddof=1) / np.sqrt(n)
        lower, upper = mean - half, mean + half
        if band == "quartiles":
            lower, upper = np.quantile(scores, [0.25, 0.75], axis=0)
    figure = new_figure(titles[0], note, _AXES[unit], titles[1])
    figure.update_xaxes(type="log" if unit == "seconds" else "linear")
    for i, (method, style) in enumerate(line_styles(names).items()):
        name = plain(method)
        if band is not None:
            figure.add_scatter(
                # One outline, there and back: two curves filled between would be two traces.
                x=np.concatenate([x, x[::-1]]),
                y=np.concatenate([upper[i], lower[i][::-1]]),
                mode="lines",
                line={"width": 0, "color": style["color"]},
                fill="toself",
                fillcolor=translucent(style["color"], 0.15),
                hoverinfo="skip",
                showlegend=False,
                legendgroup=name,
                name=name,
            )
        figure.add_scatter(
            x=x,
            y=mean[i],
            mode="lines" if len(x) > 1 else "markers",
            line=style,
            showlegend=True,
            legendgroup=name,
            name=name,
        )
    return figure


def _table_scores(
    frame: pd.DataFrame, unit: Unit, methods: Iterable[Hashable] | None
) -> tuple[list[Hashable], FloatArray, FloatArray, int]:
    """Methods (K), points (G,), seed means of the regret (N, K, G), and the number of tables."""
    runs = runs_of(frame, unit)
    names = list(runs.methods if methods is None else dict.fromkeys(methods))
    unknown = [name for name in names if name not in runs.methods]
    if unknown or not names:
        what = f"No runs of {join_names(unknown)}" if unknown else "methods is empty"
        raise ValueError(f"{what}; there are runs of {join_names(runs.methods)}.")
    columns = [runs.methods.index(name) for name in names]
    complete = np.asarray(runs.present[:, columns].all(axis=1))
    use = complete[runs.table] & np.isin(runs.method, columns)
    if not use.any():
        raise ValueError(f"No table has runs of every method: {join_names(names)}.")
    x = _points(runs.spent[use[runs.run]], unit)
    regret = runs.regret_at(x)
    means = runs.mean_over_seeds(np.where(np.isnan(regret), 1.0, regret), use)
    return names, x, means[complete][:, columns], len(runs.tables)


def _points(spent: FloatArray, unit: Unit) -> FloatArray:
    """Points (G,) of the horizontal axis up to the end of the longest run."""
    if unit == "trials":
        last = int(np.ceil(spent.max()))
        return np.unique(np.linspace(1.0, last, min(last, MAX_POINTS)).round())  # trials are whole
    positive = spent[spent > 0]
    if not len(positive) or not np.isfinite(spent).all():
        raise ValueError("seconds must be finite, and above 0 somewhere.")
    return np.unique(np.geomspace(positive.min(), positive.max(), _N_SECONDS))


def _make_logarithmic(figure: go.Figure) -> None:
    """Make the axis logarithmic, from the decade of the least positive mean; clip bands there."""
    bands = [trace for trace in figure.data if trace.fill == "toself"]
    means = np.concatenate([trace.y for trace in figure.data if trace.fill is None])
    if not means.any():
        return
    # At least down to 0.1: a regret that hardly falls would fill the plot.
    floor = np.floor(np.log10(means[means > 0].min(initial=0.1)))
    top = max(trace.y.max() for trace in figure.data)  # means may exceed upper quartiles
    for trace in bands:
        trace.y = np.maximum(trace.y, 10.0**floor)
    # At least one decade, and a margin for lines at the top; in logarithms, as plotly has it.
    end = max(np.log10(top), floor + 1) + 0.05
    figure.update_yaxes(type="log", range=[float(floor), float(end)], exponentformat="power")


def plot_rank_diagram(comparison: Comparison, *, budget: float | None = None) -> go.Figure:
    """Plot average ranks, and below them bars that join methods that are not different.

    Each bar is a maximal group of methods no two of which differ, with a marker at each member. A
    method without a marker is not part of the bar that passes below it. With a control, each bar
    joins it with one method that is not different; the others are not compared with each other.

    Args:
        comparison: Result of ``compare``.
        budget: Which of its budgets, in its unit; None if there is only one.

    Raises:
        ValueError: If there is no such budget, or there are several and ``budget`` is None.
        TypeError: For anything but a comparison.
    """
    if not isinstance(comparison, Comparison):
        raise TypeError(
            "plot_rank_diagram takes a Comparison, as statistics.compare(...) returns it; got a"
            f" {type(comparison).__name__}."
        )
    result = comparison.at(budget)
    tested = not result.pairs["p_finner"].isna().all()
    at = "" if result.budget is None else f" at {format_budget(result.budget, comparison.unit)}"
    joined = f"joined: not different at alpha={comparison.alpha:g}, Wilcoxon with Finner"
    if comparison.control is not None:
        joined += f"; compared with {comparison.control} only"
    if not tested:
        joined = "one task only: nothing could be tested"
    figure = new_figure(f"Average ranks{at}", joined, "Average rank")
    styles = line_styles(comparison.methods)
    rank_of: dict[Hashable, float] = dict(result.ranks.items())
    n, margin = len(rank_of), 0
    _draw_line(figure, [1, n], [0, 0], "ranks", {"color": "black", "width": 1})
    for i, (method, rank) in enumerate(rank_of.items()):
        left = i < (n + 1) // 2  # the better half
        # Heights rise from both ends to the middle, so that no line crosses another.
        height, end = (i + 1, 1) if left else (n - i, n)
        _draw_line(figure, [rank, rank, end], [0, height, height], str(method), styles[method])
        label = f"{method}{' (control)' * (method == comparison.control)} {rank:.2f}"
        margin = max(margin, 30 + 7 * text_width(label))  # pixels: about 7 for each character
        figure.add_annotation(
            x=end,
            y=height,
            text=plain(label),
            xanchor="right" if left else "left",
            xshift=-6 if left else 6,
            showarrow=False,
        )
    groups = result.groups if tested else []
    for i, group in enumerate(groups, start=1):
        _draw_line(figure, [rank_of[m] for m in group], [-i] * len(group), join_names(group), {})
        figure.data[-1].update(
            mode="lines+markers",
            line={"color": GREY, "width": 3},
            marker={"color": [styles[m]["color"] for m in group], "size": 9},
            legendgroup="groups",
        )
    rows = (n + 1) // 2, len(groups)
    figure.update_layout(
        xaxis={"range": [0.95, n + 0.05], "dtick": 1},
        yaxis={"visible": False, "range": [-rows[1] - 0.6, rows[0] + 0.6]},
        showlegend=False,
        height=190 + 26 * sum(rows),
        width=None if margin < 250 else 2 * margin + 400,  # the names leave room for the ranks
        margin={"l": margin, "r": margin},
    )
    return figure


def _draw_line(
    figure: go.Figure, x: list[Any], y: list[Any], name: str, style: dict[str, Any]
) -> None:
    figure.add_scatter(x=x, y=y, mode="lines", line=style, name=plain(name), hoverinfo="name+x")
