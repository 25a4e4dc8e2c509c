"""Plots of how regret and rank fall over trials or simulated seconds.

Notation of this module::

    N  tables that have runs of every method shown
    K  methods shown
    G  points of the horizontal axis, trials or seconds
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
from scipy.stats import rankdata

from automl_plugins._arguments import one_of
from automl_plugins.formats import join_names
from automl_plugins.statistics.runs import UNITS, FloatArray, Unit, runs_of
from automl_plugins.visualization._drawing import (
    MAX_POINTS,
    graph_objects,
    line_styles,
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
_N_SECONDS = 100


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
    curves = _curves(runs, unit, band, methods)
    figure = _draw(curves, unit, "Mean normalised regret", "Normalised regret")
    if log_y:
        _make_logarithmic(figure, curves)
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
    best, ties share their mean. Arguments and errors are those of ``plot_regret``.
    """
    curves = _curves(runs, unit, band, methods, ranked=True)
    return _draw(curves, unit, "Average rank", "Average rank")


@dataclass(frozen=True, eq=False)
class _Curves:
    """Means (K, G) over the tables at points (G,), with the ends of their bands (2, K, G)."""

    methods: list[Hashable]
    x: FloatArray
    mean: FloatArray
    band: FloatArray | None
    note: str


def _curves(
    frame: pd.DataFrame,
    unit: Unit,
    band: Band | None,
    methods: Iterable[Hashable] | None,
    *,
    ranked: bool = False,
) -> _Curves:
    one_of("unit", unit, UNITS)
    if band is not None:
        one_of("band", band, list(_BANDS))
    names, x, scores, n_tables = _table_scores(frame, unit, methods)
    if ranked:
        scores = np.asarray(rankdata(scores, axis=1), dtype=np.float64)
    shown = len(scores)
    note = f"{shown} table{'s' * (shown > 1)}"
    if shown < n_tables:
        note = f"{shown} of {n_tables} tables, those with runs of every method"
    mean, ends = scores.mean(axis=0), None
    if band is not None and shown > 1:
        note += f"; {_BANDS[band]}"
        half = 1.96 * scores.std(axis=0, ddof=1) / np.sqrt(shown)
        ends = np.stack([mean - half, mean + half])
        if band == "quartiles":
            ends = np.asarray(np.quantile(scores, [0.25, 0.75], axis=0), dtype=np.float64)
    return _Curves(names, x, mean, ends, note)


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
    has = np.zeros((len(runs.tables), len(runs.methods)), dtype=np.bool_)
    has[runs.table, runs.method] = True
    complete = has[:, columns].sum(axis=1) == len(columns)
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
        last = float(np.ceil(spent.max()))
        points = np.linspace(1, last, min(int(last), MAX_POINTS)).round()
        return np.asarray(np.unique(points), dtype=np.float64)
    positive = spent[spent > 0]
    if not len(positive) or not np.isfinite(spent).all():
        raise ValueError("seconds must be finite, and above 0 somewhere.")
    return np.unique(np.geomspace(positive.min(), positive.max(), _N_SECONDS))


def _draw(curves: _Curves, unit: Unit, title: str, y_title: str) -> go.Figure:
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
                fillcolor=translucent(style["color"], 0.15),
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


def _make_logarithmic(figure: go.Figure, curves: _Curves) -> None:
    """A logarithmic axis from the decade of the least positive mean; bands end there."""
    positive = curves.mean[curves.mean > 0]
    floor = np.floor(np.log10(positive.min(initial=0.1)))
    top = curves.mean.max() if curves.band is None else curves.band.max()
    for trace in figure.data:
        if trace.fill == "toself":
            trace.y = np.maximum(trace.y, 10.0**floor)
    end = max(np.log10(max(top, 1e-300)), floor + 1) + 0.05
    figure.update_yaxes(type="log", range=[float(floor), float(end)])
