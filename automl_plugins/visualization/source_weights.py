"""What part earlier tasks had in the proposals of a search, as it went on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from automl_plugins._frameworks import adapter_of
from automl_plugins.visualization._drawing import graph_objects, line_styles

if TYPE_CHECKING:
    import plotly.graph_objects as go

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
Shares = Mapping[int, Mapping[str, float]]

_GREY, _LIGHT = "#7f7f7f", "#c7c7c7"
_OPACITY = {"solid": 0.7, "dash": 0.4, "dot": 0.2}  # tells areas of one colour apart


def plot_source_weights(source: Any, *, n_sources: int = 8) -> go.Figure:
    """Plot the share of each earlier task in the proposals of a search that learns from them.

    The areas add up to 100 %. The share of the search's own evaluations is at the bottom, then
    the sources with the largest mean share, each by name, then all others together.

    Args:
        source: Shares of the sources by name, by number of the evaluation; what is left to 1 is
            the search's own. Or what the ``source_shares`` of an adapter reads, such as an Optuna
            study.
        n_sources: Largest number of sources with an area of their own.

    Returns:
        A ``plotly.graph_objects.Figure``.

    Raises:
        ValueError: If no evaluation has shares, or for a negative number of sources.
        TypeError: If no adapter knows the source.
        ModuleNotFoundError: If plotly is not installed.
    """
    if isinstance(n_sources, bool) or not isinstance(n_sources, int) or n_sources < 0:
        raise ValueError(f"n_sources must be an integer >= 0, got {n_sources!r}.")
    shares = source if isinstance(source, Mapping) else _shares_of(source)
    if not shares:
        raise ValueError(
            "No evaluation was proposed with the help of earlier tasks: use a sampler that learns"
            " from them, such as TSTSampler."
        )
    numbers, names, table = by_source(shares)
    own = np.maximum(0.0, 1.0 - table.sum(axis=0))
    figure = graph_objects().Figure()
    _draw(figure, "this search", numbers, own, _GREY, "solid")
    styles = list(line_styles(range(min(n_sources, len(names)))).values())
    for name, row, style in zip(names, table, styles, strict=False):
        _draw(figure, name, numbers, row, style["color"], style["dash"])
    if len(names) > n_sources:
        rest = table[n_sources:].sum(axis=0)
        told = f"{len(names) - n_sources} other sources" if n_sources else "sources"
        _draw(figure, told, numbers, rest, _LIGHT, "solid")
    n = len(names)
    figure.update_layout(
        title={
            "text": "Weights of the sources",
            "subtitle": {
                "text": f"{len(numbers)} proposal{'s' * (len(numbers) != 1)}, {n}"
                f" source{'s' * (n != 1)} with a share"
            },
        },
        xaxis={"title": "Number of the evaluation"},
        yaxis={"title": "Share in the proposal (%)", "range": [0, 100]},
        legend={"traceorder": "normal"},
    )
    return figure


def by_source(shares: Shares) -> tuple[IntArray, tuple[str, ...], FloatArray]:
    """Numbers (n,) ascending, names (S) by mean share, largest first, and their shares (S, n).

    Sources that never have a share are absent.
    """
    numbers = sorted(shares)
    found = {name: None for number in numbers for name in shares[number]}
    table = np.array(
        [[shares[number].get(name, 0.0) for number in numbers] for name in found],
        dtype=np.float64,
    ).reshape(len(found), len(numbers))
    order = [i for i in np.argsort(-table.mean(axis=1), kind="stable") if table[i].any()]
    named = list(found)
    return np.array(numbers), tuple(named[i] for i in order), table[order]


def _shares_of(source: Any) -> Shares:
    found = adapter_of(source)
    if found is None or not hasattr(found, "source_shares"):
        raise TypeError(
            f"Cannot read the sources of a {type(source).__name__}: pass an Optuna study, or the"
            " shares of the sources by name, by number of the evaluation."
        )
    shares: Shares = found.source_shares(source)
    return shares


def _draw(
    figure: go.Figure, name: str, numbers: IntArray, shares: FloatArray, color: str, dash: str
) -> None:
    red, green, blue = (int(color[i : i + 2], 16) for i in (1, 3, 5))
    figure.add_scatter(
        x=numbers,
        y=100.0 * shares,
        mode="lines" if len(numbers) > 1 else "lines+markers",
        line={"width": 1, "color": color, "dash": dash, "shape": "hv"},
        fillcolor=f"rgba({red},{green},{blue},{_OPACITY[dash]})",
        stackgroup="sources",
        showlegend=True,
        name=name,
        hovertemplate="%{y:.1f} %",
    )
