"""Figures as SVG files that are legible on light and on dark pages: the same bytes every time.

Of plotly's figures it draws what ``plot_ranks`` makes: lines, filled bands, titles and a legend.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.figure import Figure

#: Text stays text: smaller, and it can be searched. The salt makes the ids repeat.
_SETTINGS: Any = {"svg.fonttype": "none", "svg.hashsalt": "automl_plugins", "font.size": 10}
_DASHES = {"solid": "-", "dash": "--", "dot": ":"}
_PIXELS, _DPI = (800, 450), 100  # plotly's

#: The ink is dark, or light where the page is dark; pictures have no ground of their own.
_INK = (
    "svg{color:#222222} text{fill:currentColor}"
    " @media (prefers-color-scheme:dark){svg{color:#dddddd}}"
)


def save_svg(figure: Any, path: str | Path) -> None:
    """Write a figure, of plotly or of matplotlib, as SVG."""
    with matplotlib.rc_context(_SETTINGS):
        drawn = figure if isinstance(figure, Figure) else _of_plotly(figure)
        drawn.savefig(path, format="svg", metadata={"Date": None, "Creator": None})
    text = _follow_the_page(Path(path).read_text(encoding="utf-8"))
    short = re.sub(r' d="[^"]*"', lambda d: re.sub(r"(\.\d\d)\d+", r"\1", d[0]), text)
    Path(path).write_text(short, encoding="utf-8", newline="\n")


def _follow_the_page(svg: str) -> str:
    """An SVG of matplotlib with black and white replaced: it is drawn on any ground."""
    svg = svg.replace("</style>", f" {_INK}</style>", 1)
    svg = re.sub(r"(fill|stroke): #(000000|555555)", r"\1: currentColor", svg)
    svg = svg.replace("fill: #ffffff", "fill: none")
    return svg.replace("stroke: #e5e5e5", "stroke: #7f7f7f; stroke-opacity: 0.3")


def _of_plotly(figure: Any) -> Figure:
    layout, (width, height) = figure.layout, _PIXELS
    drawn = Figure(figsize=(width / _DPI, height / _DPI), dpi=_DPI)
    left, right = 70, 80 + 7 * max(len(trace.name) for trace in figure.data)
    axes = drawn.add_axes(
        (left / width, 50 / height, (width - left - right) / width, (height - 110) / height)
    )
    for trace in figure.data:
        if trace.fill == "toself":
            red, green, blue, alpha = map(float, trace.fillcolor[5:-1].split(","))
            fill = (red / 255, green / 255, blue / 255, alpha)
            axes.fill(trace.x, trace.y, facecolor=fill, linewidth=0)
        else:
            axes.plot(
                trace.x,
                trace.y,
                color=trace.line.color,
                linewidth=1.6,
                linestyle=_DASHES[trace.line.dash],
                label=trace.name,
            )
    for axis, spec in ((axes.xaxis, layout.xaxis), (axes.yaxis, layout.yaxis)):
        axis.set_label_text(spec.title.text)
        axis.grid(True, color="#e5e5e5", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right", "left"]].set_visible(False)
    drawn.text(20 / width, 1 - 22 / height, layout.title.text, size=13, parse_math=False)
    note = layout.title.subtitle.text
    drawn.text(20 / width, 1 - 42 / height, note, color="#555555", parse_math=False)
    axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), frameon=False)
    return drawn
