"""Import of plotly, and what several plots share."""

from __future__ import annotations

import html
from collections.abc import Hashable, Iterable
from importlib import import_module
from itertools import cycle
from typing import TYPE_CHECKING, Any

from automl_plugins._imports import require

if TYPE_CHECKING:
    import plotly.graph_objects as go

GREY = "#7f7f7f"
MAX_POINTS = 1000  # screens are not much wider


def _plotly(module: str) -> Any:
    """Import a module of plotly; an error says how to install it."""
    require("plotly", needed_by="automl_plugins.visualization", extra="plot")
    return import_module(f"plotly.{module}")


def new_figure(title: str, note: str, x: str, y: str | None = None) -> go.Figure:
    """A figure with a title, a note below it, and titles of the axes."""
    figure: go.Figure = _plotly("graph_objects").Figure()
    return figure.update_layout(
        title={"text": title, "subtitle": {"text": plain(note)}},
        xaxis={"title": x},
        yaxis={"title": y},
    )


def line_styles(methods: Iterable[Hashable]) -> dict[Hashable, dict[str, str]]:
    """Line style by method: plotly's default colours, first solid, then dashed, then dotted."""
    palette = _plotly("colors").qualitative.Plotly  # ten colours: 30 styles
    styles = cycle((color, dash) for dash in ("solid", "dash", "dot") for color in palette)
    return {m: {"color": c, "dash": d} for m, (c, d) in zip(methods, styles, strict=False)}


def translucent(color: str, opacity: float) -> str:
    """A colour ``#rrggbb`` with an opacity in [0, 1]."""
    red, green, blue = (int(color[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red},{green},{blue},{opacity})"


def plain(name: Hashable) -> str:
    """The text of a name, escaped: plotly would interpret <b> as HTML."""
    return html.escape(str(name), quote=False)
