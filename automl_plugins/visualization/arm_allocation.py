"""Which arm got how much of a search, as it went on."""

from __future__ import annotations

import html
import textwrap
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from automl_plugins._frameworks import arm_report_of
from automl_plugins.bandits.report import ArmReport
from automl_plugins.records.trial import Status
from automl_plugins.statistics.runs import UNITS, Unit
from automl_plugins.statistics.scores import listed
from automl_plugins.visualization._drawing import graph_objects, line_styles

if TYPE_CHECKING:
    import plotly.graph_objects as go

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

_TITLES: dict[Unit, tuple[str, str]] = {
    "trials": ("Pulls", "Share of the pulls so far (%)"),
    "seconds": ("Seconds of all pulls", "Share of the seconds so far (%)"),
}
_MAX_POINTS = 1000  # more than a screen has pixels help nobody
_HOVER_WIDTH = 90  # characters
_GREY = "#7f7f7f"
_OPACITY = {"solid": 0.7, "dash": 0.4, "dot": 0.2}  # tells areas of one colour apart


def plot_arm_allocation(source: Any, *, unit: Unit = "trials", **options: Any) -> go.Figure:
    """Plot each arm's cumulative share of the pulls, or of their seconds, over a search.

    The areas add up to 100 %; the arm with the largest final share comes first in the legend.
    Vertical lines are the rounds of successive filtering: pointing at one shows who took part
    with what, who left and why.

    Args:
        source: An ``ArmReport``, or what the ``arm_report`` of an adapter reads: an Optuna study,
            or Hyperopt trials together with ``space=``.
        unit: ``"trials"`` counts pulls, running ones included; ``"seconds"`` adds up the known
            seconds of finished pulls, in the order in which they finished.
        **options: Passed on to that ``arm_report``; a report takes none.

    Returns:
        A ``plotly.graph_objects.Figure``.

    Raises:
        ValueError: For an unknown unit, or if seconds are asked for and none is known.
        TypeError: If no adapter knows the source, or for options beside a report.
        ModuleNotFoundError: If plotly is not installed.
    """
    if unit not in UNITS:
        raise ValueError(f"unit must be one of {listed(UNITS)}, got {unit!r}.")
    if options and isinstance(source, ArmReport):
        raise TypeError(f"A report takes no options, got {listed(options)}.")
    report = source if isinstance(source, ArmReport) else arm_report_of(source, **options)
    cost, note = _costs(report, unit)
    spent = np.concatenate([[0.0], np.cumsum(cost)])
    shares = 100.0 * cumulative_shares(report.records.arm, cost, len(report.names))
    figure = graph_objects().Figure()
    if len(cost):
        _draw_arms(figure, report.names, spent[1:], shares)
    for index, opened in enumerate(_openings(report)):
        _draw_round(figure, report, index, float(spent[opened]))
    x_title, y_title = _TITLES[unit]
    figure.update_layout(
        title={"text": "Allocation to arms", "subtitle": {"text": note}},
        xaxis={"title": x_title},
        yaxis={"title": y_title, "range": [0, 100]},
        legend={"traceorder": "normal"},
    )
    return figure


def cumulative_shares(arm: IntArray, cost: FloatArray, n_arms: int) -> FloatArray:
    """Each arm's part of the cost of the first t pulls (K, n); 0 where they cost nothing.

    Args:
        arm: Arm of each pull (n,).
        cost: Its cost (n,), >= 0.
        n_arms: Number of arms K.
    """
    spent = np.zeros((n_arms, len(arm)))
    spent[arm, np.arange(len(arm))] = cost
    spent = np.cumsum(spent, axis=1)
    total = spent.sum(axis=0)
    return np.asarray(np.divide(spent, total, out=np.zeros_like(spent), where=total > 0))


def _costs(report: ArmReport, unit: Unit) -> tuple[FloatArray, str]:
    """Cost of each pull (n,), and a note on what is shown."""
    n = len(report.records)
    note = f"{n} pull{'s' * (n != 1)}, {len(report.names)} arm{'s' * (len(report.names) != 1)}"
    if unit == "trials" or not n:
        return np.ones(n), note
    finished = report.records.status != Status.RUNNING
    known = finished & ~np.isnan(report.records.seconds)
    cost = np.where(known, report.records.seconds, 0.0)
    if not cost.sum() > 0:
        raise ValueError("No finished pull has known seconds above 0: use unit='trials'.")
    if unknown := int((finished & ~known).sum()):
        note += f"; without the seconds of {unknown}, which are unknown"
    return cost, note


def _openings(report: ArmReport) -> list[int]:
    """How many pulls had finished when each round was opened.

    Where the report does not say, it is when the round before had spent its limit, as near as the
    order of the pulls allows.
    """
    if report.opened:
        return [min(opened, len(report.records)) for opened in report.opened]
    cost = np.ones(len(report.records))
    if report.unit == "seconds":
        cost = np.where(report.records.finished, np.nan_to_num(report.records.seconds), 0.0)
    spent = np.cumsum(cost)
    limits = [0.0, *(r.limit for r in report.rounds[:-1])]
    ends = np.searchsorted(spent, np.array(limits) * (1 - 1e-9)) + 1
    return [0, *np.minimum(ends, len(spent)).tolist()[1:]][: len(report.rounds)]


def _draw_arms(
    figure: go.Figure, names: tuple[str, ...], spent: FloatArray, shares: FloatArray
) -> None:
    n = len(spent)
    shown = np.unique(np.linspace(0, n - 1, min(n, _MAX_POINTS)).round().astype(np.int64))
    styles = list(line_styles(range(len(names))).values())
    for k in np.argsort(-shares[:, -1], kind="stable").tolist():
        figure.add_scatter(
            x=spent[shown],
            y=shares[k, shown],
            mode="lines" if n > 1 else "lines+markers",
            line={"width": 1, **styles[k]},
            fillcolor=_translucent(**styles[k]),
            stackgroup="arms",
            showlegend=True,
            name=names[k],
            hovertemplate="%{y:.1f} %",
        )


def _draw_round(figure: go.Figure, report: ArmReport, index: int, x: float) -> None:
    """A vertical line with points all along it: only points answer the mouse."""
    lines = textwrap.wrap(report.round_lines()[index], _HOVER_WIDTH)
    height = np.linspace(0.0, 100.0, 21)
    figure.add_scatter(
        x=np.full(len(height), x),
        y=height,
        mode="lines",
        line={"color": _GREY, "width": 2, "dash": "dot"},
        showlegend=False,
        legendgroup="rounds",
        name=f"round {report.rounds[index].index + 1}",
        hovertext="<br>".join(map(html.escape, lines)),
        hoverinfo="text",
    )


def _translucent(color: str, dash: str) -> str:
    red, green, blue = (int(color[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red},{green},{blue},{_OPACITY[dash]})"
