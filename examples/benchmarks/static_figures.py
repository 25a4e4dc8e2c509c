"""Figures as SVG files that are legible on light and on dark pages: the same bytes every time.

It draws the parts of plotly figures that ``automl_plugins.visualization`` makes: lines, filled
bands, markers, annotations, logarithmic axes, titles and a legend.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

#: Text stays text: smaller, and it can be searched. The salt makes the ids repeat.
_SETTINGS: Any = {"svg.fonttype": "none", "svg.hashsalt": "automl_plugins", "font.size": 10}
_DASHES = {None: "-", "solid": "-", "dash": "--", "dot": ":"}
_DPI = 100  # plotly's pixels per inch

#: The ink is dark, or light where the page is dark; pictures have no ground of their own.
_INK = (
    "svg{color:#222222} text{fill:currentColor}"
    " @media (prefers-color-scheme:dark){svg{color:#dddddd}}"
)


def save_svg(figure: Any, path: str | Path) -> None:
    """Write a figure, of plotly or of matplotlib, as SVG."""
    with matplotlib.rc_context(_SETTINGS):
        drawn = figure if isinstance(figure, Figure) else draw(figure)
        drawn.savefig(path, format="svg", metadata={"Date": None, "Creator": None})
    text = follow_the_page(Path(path).read_text(encoding="utf-8"))
    short = re.sub(r' d="[^"]*"', lambda d: re.sub(r"(\.\d\d)\d+", r"\1", d[0]), text)
    Path(path).write_text(short, encoding="utf-8", newline="\n")


def follow_the_page(svg: str) -> str:
    """An SVG of matplotlib with black and white replaced: it is drawn on any ground."""
    if _INK in svg:
        return svg
    svg = svg.replace("</style>", f" {_INK}</style>", 1)
    svg = re.sub(r"(fill|stroke): #(000000|555555)", r"\1: currentColor", svg)
    svg = svg.replace("fill: #ffffff", "fill: none")
    return svg.replace("stroke: #e5e5e5", "stroke: #7f7f7f; stroke-opacity: 0.3")


def draw(figure: Any) -> Figure:
    """The plotly figure as one of matplotlib."""
    layout = figure.layout
    width, height = layout.width or 800, layout.height or 450
    drawn = Figure(figsize=(width / _DPI, height / _DPI), dpi=_DPI)
    legend = [t.name for t in figure.data if t.showlegend and layout.showlegend is not False]
    left = layout.margin.l or 70
    right = (layout.margin.r or 20) + (60 + 7 * max(map(len, legend)) if legend else 0)
    axes = drawn.add_axes(
        (left / width, 50 / height, (width - left - right) / width, (height - 110) / height)
    )
    for trace in figure.data:
        _draw_trace(axes, trace, trace.name if trace.name in legend else None)
    for note in layout.annotations:
        axes.annotate(
            note.text,
            (note.x, note.y),
            (note.xshift or 0, note.yshift or 0),
            textcoords="offset pixels",
            ha=note.xanchor or "center",
            va="center",
            parse_math=False,
        )
    _draw_axes(axes, layout)
    drawn.text(20 / width, 1 - 22 / height, layout.title.text, size=13, parse_math=False)
    subtitle = layout.title.subtitle.text or ""
    drawn.text(20 / width, 1 - 42 / height, subtitle, color="#555555", parse_math=False)
    if legend:
        axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), frameon=False)
    return drawn


def _draw_trace(axes: Axes, trace: Any, label: str | None) -> None:
    if trace.fill == "toself":
        red, green, blue, alpha = map(float, trace.fillcolor[5:-1].split(","))
        fill = (red / 255, green / 255, blue / 255, alpha)
        axes.fill(trace.x, trace.y, facecolor=fill, linewidth=0)
        return
    color = trace.line.color
    if "lines" in trace.mode:
        width, dash = trace.line.width or 1.6, _DASHES[trace.line.dash]
        axes.plot(trace.x, trace.y, color=color, linewidth=width, linestyle=dash, label=label)
    if "markers" in trace.mode:
        own = None if "lines" in trace.mode else label
        colors = trace.marker.color or color
        area = (0.72 * (trace.marker.size or 6)) ** 2  # pixels to points
        axes.scatter(trace.x, trace.y, s=area, c=colors, zorder=3, label=own)


def _draw_axes(axes: Axes, layout: Any) -> None:
    for name, axis, spec in (("x", axes.xaxis, layout.xaxis), ("y", axes.yaxis, layout.yaxis)):
        log = spec.type == "log"
        axes.set(**{f"{name}scale": "log" if log else "linear"})
        if spec.range:
            axes.set(**{f"{name}lim": [10**end if log else end for end in spec.range]})
        axis.set_label_text(spec.title.text or "")
        if log:
            low, high = axis.get_view_interval()
            axis.set_major_formatter("{x:g}")
            axis.set_minor_formatter(NullFormatter() if high >= 10 * low else "{x:g}")
        if spec.dtick:
            first, last = spec.range
            axis.set_ticks([t for t in range(int(last) + 1) if first <= t <= last])
        axis.set_visible(spec.visible is not False)
        axis.grid(True, color="#e5e5e5", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right", "left"]].set_visible(False)
