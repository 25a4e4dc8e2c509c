"""Plots of how regret and rank fall over trials or simulated seconds."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import TYPE_CHECKING

import numpy as np

from automl_plugins.statistics.runs import Unit
from automl_plugins.visualization._drawing import graph_objects, line_styles
from automl_plugins.visualization.curves import Band, Curves, curves_of

if TYPE_CHECKING:
    import pandas as pd
    import plotly.graph_objects as go

_AXES: dict[Unit, str] = {"trials": "Trial", "seconds": "Simulated seconds"}


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
    result, and runs that end early carry their last one on. Tables without runs of every method
    are left out; the subtitle says how many.

    Args:
        runs: A tidy frame of searches as ``replay`` returns it: table, method, seed, trial and
            regret. Without a regret it is computed from ``best`` or ``loss``, scaled by the least
            and the largest finite loss of any method on the table.
        unit: Horizontal axis; seconds are log-spaced from the least to the largest one and need
            the column ``seconds``.
        band: Mean ± 1.96 standard errors (``"ci"``) or quartiles over the tables; None for no
            band. There is none for a single table.
        methods: Methods to show, in the order of their colours; None for all.
        log_y: Whether the regret has a logarithmic axis. A mean of 0 then is not visible.

    Returns:
        A ``plotly.graph_objects.Figure``.

    Raises:
        ValueError: If columns are missing or illegal, seconds are NaN, an option or a method is
            unknown, or no table has runs of every method.
        ModuleNotFoundError: If plotly is not installed.
    """
    curves = curves_of(runs, unit, band, methods)
    figure = _curve_figure(curves, unit, "Mean normalised regret", "Normalised regret")
    if log_y:
        _logarithmic(figure, curves)
    return figure


def plot_ranks(
    runs: pd.DataFrame,
    *,
    unit: Unit = "trials",
    band: Band | None = "ci",
    methods: Iterable[Hashable] | None = None,
) -> go.Figure:
    """Plot the average rank of each method against trials or simulated seconds.

    Methods are ranked within each table by the mean over the seeds of their regret, see
    ``plot_regret``; rank 1 is the best, ties share their mean.

    Args:
        runs: A tidy frame of searches as ``replay`` returns it, see ``plot_regret``.
        unit: Horizontal axis.
        band: As in ``plot_regret``.
        methods: Methods to rank, in the order of their colours; None for all.

    Returns:
        A ``plotly.graph_objects.Figure``.

    Raises:
        ValueError: As ``plot_regret`` does.
        ModuleNotFoundError: If plotly is not installed.
    """
    curves = curves_of(runs, unit, band, methods, ranked=True)
    return _curve_figure(curves, unit, "Average rank", "Average rank")


def _curve_figure(curves: Curves, unit: Unit, title: str, y_title: str) -> go.Figure:
    figure = graph_objects().Figure()
    for i, (method, style) in enumerate(line_styles(curves.methods).items()):
        name = str(method)
        if curves.band is not None:
            lower, upper = curves.band[:, i]
            figure.add_scatter(
                x=np.concatenate([curves.x, curves.x[::-1]]),
                y=np.concatenate([upper, lower[::-1]]),
                mode="lines",
                line={"width": 0, "color": style["color"]},
                fill="toself",
                fillcolor=_translucent(style["color"]),
                hoverinfo="skip",
                showlegend=False,
                legendgroup=name,
                name=name,
            )
        figure.add_scatter(
            x=curves.x,
            y=curves.mean[i],
            mode="lines" if len(curves.x) > 1 else "markers",
            line=style,
            showlegend=True,
            legendgroup=name,
            name=name,
        )
    figure.update_layout(
        title={"text": title, "subtitle": {"text": curves.note}},
        xaxis={"title": _AXES[unit], "type": "log" if unit == "seconds" else "linear"},
        yaxis={"title": y_title},
    )
    return figure


def _translucent(color: str) -> str:
    red, green, blue = (int(color[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red},{green},{blue},0.15)"


def _logarithmic(figure: go.Figure, curves: Curves) -> None:
    """A logarithmic axis from the decade of the least positive mean; bands end there."""
    positive = curves.mean[curves.mean > 0]
    floor = np.floor(np.log10(positive.min(initial=0.1)))
    top = curves.mean.max() if curves.band is None else curves.band.max()
    for trace in figure.data:
        if trace.fill == "toself":
            trace.y = np.maximum(trace.y, 10.0**floor)
    end = max(np.log10(max(top, 1e-300)), floor + 1) + 0.05
    figure.update_yaxes(type="log", range=[float(floor), float(end)])
