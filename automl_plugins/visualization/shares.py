"""Stacked areas over a search: the shares of arms, earlier tasks and committee members."""

from __future__ import annotations

import textwrap
from collections.abc import Hashable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from automl_plugins._arguments import check_choice, check_integer
from automl_plugins.arrays import FloatArray, IntArray, evenly_spaced
from automl_plugins.bandits.report import ArmReport
from automl_plugins.formats import format_count, join_names
from automl_plugins.frameworks import Shares, adapter_of, ask_adapter
from automl_plugins.records.trial import finite_or_none
from automl_plugins.statistics.runs import UNITS, Unit
from automl_plugins.visualization._drawing import (
    GREY,
    MAX_POINTS,
    line_styles,
    new_figure,
    plain,
    translucent,
)

if TYPE_CHECKING:
    import plotly.graph_objects as go

_Area = tuple[Hashable, FloatArray, dict[str, str]]  # name, shares (n,), style
_TITLES: dict[Unit, tuple[str, str]] = {
    "trials": ("Pulls", "Share of the pulls so far (%)"),
    "seconds": ("Seconds of all pulls", "Share of the seconds so far (%)"),
}
_HOVER_WIDTH = 90  # characters
_OPACITY = {"solid": 0.7, "dash": 0.4, "dot": 0.2}  # distinguishes areas of one colour
_OWN, _REST = {"color": GREY, "dash": "solid"}, {"color": "#c7c7c7", "dash": "solid"}


def plot_arm_allocation(source: Any, *, unit: Unit = "trials", **options: Any) -> go.Figure:
    """Plot each arm's cumulative share of the pulls, or of their seconds, over a search.

    The areas add up to 100 %; the arm with the largest final share comes first in the legend.
    Vertical lines are the rounds of successive filtering: with the mouse over one, the plot shows
    which arms took part, which left and why.

    Args:
        source: An ``ArmReport``, or an object that the ``arm_report`` of an adapter reads: an
            Optuna study, or Hyperopt trials together with ``space=``.
        unit: ``"trials"`` counts pulls, running ones included; ``"seconds"`` adds up the known
            seconds of finished pulls, in the order in which they finished.
        **options: Passed on to that ``arm_report``; not allowed with an ``ArmReport``.

    Raises:
        ValueError: For an unknown unit, or if seconds are asked for and none is known.
        TypeError: If no adapter knows the source, or for options with an ``ArmReport``.
    """
    check_choice("unit", unit, UNITS)
    if options and isinstance(source, ArmReport):
        raise TypeError(f"A report takes no options, got {join_names(options)}.")
    report: ArmReport = source
    if not isinstance(source, ArmReport):
        report = ask_adapter("arm_report", source, **options)
    cost, note = _costs(report, unit)
    spent = np.concatenate([[0.0], np.cumsum(cost)])
    of_arms = np.zeros((len(report.names), len(cost)))
    of_arms[report.records.arm, np.arange(len(cost))] = cost
    # As long as the pulls cost nothing, every share is 0.
    shares = 100.0 * np.cumsum(of_arms, axis=1) / np.where(spent[1:] > 0, spent[1:], 1.0)
    figure = _new_figure("Allocation to arms", note, *_TITLES[unit])
    if len(cost):
        shown = evenly_spaced(len(cost), MAX_POINTS)
        # By number of the arm: its colour does not depend on its share.
        styles = list(line_styles(range(len(report.names))).values())
        for k in np.argsort(-shares[:, -1], kind="stable").tolist():
            _draw_area(figure, report.names[k], spent[1:][shown], shares[k, shown], styles[k])
    # What was spent when ``opened`` pulls had finished; records are in that order.
    for index, opened in enumerate(report.opened):
        _draw_round(figure, report, index, float(spent[min(opened, len(cost))]))
    return figure


def _new_figure(title: str, note: str, x: str, y: str) -> go.Figure:
    figure = new_figure(title, note, x, y)
    figure.update_yaxes(range=[0, 100])
    # plotly reverses the legend of stacked areas
    return figure.update_layout(legend={"traceorder": "normal"})


def _draw_area(
    figure: go.Figure,
    name: Hashable,
    x: npt.NDArray[Any],
    percent: FloatArray,
    style: dict[str, str],
    *,
    shape: str = "linear",
) -> None:
    """Stack an area on top of the others, in a style of ``line_styles``."""
    figure.add_scatter(
        x=x,
        y=percent,
        # A line of one point is not seen.
        mode="lines" if len(x) > 1 else "lines+markers",
        line={"width": 1, "shape": shape, **style},
        fillcolor=translucent(style["color"], _OPACITY[style["dash"]]),
        stackgroup="shares",
        showlegend=True,
        name=plain(name),
        hovertemplate="%{y:.1f} %",
    )


def _costs(report: ArmReport, unit: Unit) -> tuple[FloatArray, str]:
    """Cost of each pull (n,), and a note on what is shown."""
    n = len(report.records)
    note = f"{format_count(n, 'pull')}, {format_count(len(report.names), 'arm')}"
    cost = report.costs(unit)
    if unit == "trials" or not n:
        return cost, note
    if not cost.sum() > 0:
        raise ValueError("No finished pull has known seconds above 0: use unit='trials'.")
    if unknown := int(np.isnan(report.records.seconds[report.records.finished]).sum()):
        note += f"; without the seconds of {unknown}, which are unknown"
    return cost, note


def _draw_round(figure: go.Figure, report: ArmReport, index: int, x: float) -> None:
    """Draw a vertical line with points all along it: only points show text under the mouse."""
    lines = textwrap.wrap(report.round_lines()[index], _HOVER_WIDTH)
    height = np.linspace(0.0, 100.0, 21)
    figure.add_scatter(
        x=np.full(len(height), x),
        y=height,
        mode="lines",
        line={"color": GREY, "width": 2, "dash": "dot"},
        showlegend=False,
        legendgroup="rounds",
        name=f"round {report.rounds[index].index + 1}",
        hovertext="<br>".join(map(plain, lines)),
        hoverinfo="text",
    )


def plot_source_weights(source: Any, *, n_sources: int = 8) -> go.Figure:
    """Plot the share of each earlier task in the proposals of a search that learns from them.

    The areas add up to 100 %. The share of the search's own evaluations is at the bottom, then
    the sources with the largest mean share, each by name, then all others together.

    Args:
        source: The shares of the sources in each evaluation, by its number, such as
            ``{12: {"iris": 0.4}}``; the search's own share is the rest to 1. Or an object that the
            ``source_shares`` of an adapter reads: an Optuna study, Hyperopt trials, a SMAC run
            history or facade.
        n_sources: Largest number of sources with an area of their own.

    Raises:
        ValueError: If no evaluation has shares, or one is no finite number, or ``n_sources`` is
            negative.
        TypeError: If no adapter knows the source, or an evaluation has no shares by name.
    """
    check_integer("n_sources", n_sources, 0)
    numbers, each = _read_shares(
        "source_shares",
        source,
        "No evaluation was proposed with the help of earlier tasks: use a sampler that learns"
        " from them, such as TSTSampler.",
    )
    n, none = len(each), np.zeros(len(numbers))
    styles = line_styles(list(each)[:n_sources])
    # Shares that are rounded may add up to a little more than 1.
    rows: list[_Area] = [("this search", np.maximum(0.0, 1.0 - sum(each.values(), none)), _OWN)]
    rows += [(name, each[name], style) for name, style in styles.items()]
    if n > n_sources:
        rest = f"{n - n_sources} other sources" if n_sources else "sources"
        rows.append((rest, sum(list(each.values())[n_sources:], none), _REST))
    note = f"{format_count(n, 'source')} with a share"
    return _draw_shares("Weights of the sources", note, "Share in the proposal (%)", numbers, rows)


def plot_member_trust(source: Any) -> go.Figure:
    """Plot how much each member of a committee was trusted over a search.

    The areas add up to 100 %; the member with the largest mean trust is at the bottom.
    Evaluations for which no member was drawn, such as the first ones, are left out.

    Args:
        source: The trust in the members at each evaluation, by its number, such as
            ``{12: {"trees": 0.7, "process": 0.3}}``. Or an object that the ``member_trust`` of an
            adapter reads: an Optuna study, Hyperopt trials, a SMAC run history or facade.

    Raises:
        ValueError: If no evaluation was proposed by a committee, or a share is no finite number.
        TypeError: If no adapter knows the source, or an evaluation has no shares by name.
    """
    numbers, each = _read_shares(
        "member_trust",
        source,
        "No evaluation was proposed by a committee: use AutoSampler (Optuna), auto (Hyperopt)"
        " or AutoFacade (SMAC), with more evaluations than the start design has.",
    )
    rows = [(name, each[name], style) for name, style in line_styles(each).items()]
    note = f"{format_count(len(each), 'member')} with trust"
    title = "Trust in the members of the committee"
    return _draw_shares(title, note, "Trust (%)", numbers, rows)


def _draw_shares(
    title: str, note: str, y: str, numbers: IntArray, rows: Iterable[_Area]
) -> go.Figure:
    """Stack the areas ``rows`` over the numbers of the evaluations (n,)."""
    note = f"{format_count(len(numbers), 'proposal')}, {note}"
    figure = _new_figure(title, note, "Number of the evaluation", y)
    for name, row, style in rows:
        # Steps: a share belongs to its proposal, and nothing lies between two of them.
        _draw_area(figure, name, numbers, 100.0 * row, style, shape="hv")
    return figure


def _read_shares(part: str, source: Any, none: str) -> tuple[IntArray, dict[Hashable, FloatArray]]:
    """Numbers of the evaluations (n,), and shares (n,) by name, the largest mean first.

    Names without any share are left out; ``none`` is the message if no evaluation has shares.
    """
    shares: Shares = source
    # A framework's object may be a mapping, too, as a run history of SMAC is.
    if not isinstance(source, Mapping) or adapter_of(source) is not None:
        shares = ask_adapter(part, source)
    if not shares:
        raise ValueError(none)
    for number, named in shares.items():
        if not isinstance(named, Mapping):
            raise TypeError(
                "Shares are given by name, by number of the evaluation, such as"
                f" {{12: {{'svm': 0.4, 'knn': 0.6}}}}; got {named!r} for {number!r}."
            )
        for name, share in named.items():
            if finite_or_none(share) is None:
                raise ValueError(
                    f"A share must be a finite number, got {share!r} of {name!r} for {number!r}."
                )
    numbers = np.array(sorted(shares))
    found = dict.fromkeys(name for number in numbers.tolist() for name in shares[number])
    each = {n: np.array([shares[k].get(n, 0.0) for k in numbers.tolist()]) for n in found}
    names = sorted((n for n in each if each[n].any()), key=lambda n: -float(each[n].mean()))
    return numbers, {name: each[name] for name in names}
