"""Import of plotly, and elements that several plots share."""

from __future__ import annotations

import html
from collections.abc import Hashable, Iterable
from importlib import import_module
from itertools import cycle
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from automl_plugins._versions import require
from automl_plugins.arrays import FloatArray, IntArray

if TYPE_CHECKING:
    import plotly.graph_objects as go

GREY = "#7f7f7f"
MAX_POINTS = 1000  # screens are not much wider

_OPACITY = {"solid": 0.7, "dash": 0.4, "dot": 0.2}  # distinguishes areas of one colour


def graph_objects() -> Any:
    """Import ``plotly.graph_objects``; an error says how to install it."""
    require("plotly", needed_by="automl_plugins.visualization", extra="plot")
    return import_module("plotly.graph_objects")


def line_styles(methods: Iterable[Hashable]) -> dict[Hashable, dict[str, str]]:
    """Line style by method: plotly's default colours, first solid, then dashed, then dotted."""
    palette = import_module("plotly.colors").qualitative.Plotly
    styles = cycle((color, dash) for dash in ("solid", "dash", "dot") for color in palette)
    return {m: {"color": c, "dash": d} for m, (c, d) in zip(methods, styles, strict=False)}


def translucent(color: str, opacity: float) -> str:
    """A colour ``#rrggbb`` with an opacity in [0, 1]."""
    red, green, blue = (int(color[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red},{green},{blue},{opacity})"


def plain(name: Hashable) -> str:
    """The text of a name, in which plotly would take <b> for HTML."""
    return html.escape(str(name), quote=False)


def set_titles(figure: go.Figure, title: str, note: str, x: str, y: str | None = None) -> None:
    """Set the title, the note below it, and the titles of the axes."""
    figure.update_layout(
        title={"text": title, "subtitle": {"text": plain(note)}},
        xaxis={"title": x},
        yaxis={"title": y},
    )


def thin_out(n: int, most: int = MAX_POINTS) -> IntArray:
    """At most ``most`` evenly spaced indices below n, including the first and the last."""
    return np.unique(np.linspace(0, n - 1, min(n, most)).round().astype(np.int64))


def draw_area(
    figure: go.Figure,
    name: str,
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
        mode="lines" if len(x) > 1 else "lines+markers",
        line={"width": 1, "shape": shape, **style},
        fillcolor=translucent(style["color"], _OPACITY[style["dash"]]),
        stackgroup="shares",
        showlegend=True,
        name=plain(name),
        hovertemplate="%{y:.1f} %",
    )
