"""Plotly, if it is installed, and the line styles that all plots share."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from importlib import import_module
from itertools import cycle
from typing import Any

from automl_plugins._optional import require


def graph_objects() -> Any:
    """The module ``plotly.graph_objects``, or one sentence on how to get it.

    Raises:
        ModuleNotFoundError: If plotly is not installed.
    """
    require("plotly", needed_by="automl_plugins.visualization", extra="plot")
    return import_module("plotly.graph_objects")


def line_styles(methods: Iterable[Hashable]) -> dict[Hashable, dict[str, str]]:
    """Line style by method: plotly's default colours, then the same ones dashed."""
    palette = import_module("plotly.colors").qualitative.Plotly
    styles = cycle((color, dash) for dash in ("solid", "dash", "dot") for color in palette)
    return {m: {"color": c, "dash": d} for m, (c, d) in zip(methods, styles, strict=False)}
