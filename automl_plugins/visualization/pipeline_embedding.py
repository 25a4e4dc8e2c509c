"""Plot of the latent positions of pipelines: near ones do well on the same data sets."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.decomposition import PCA
from sklearn.utils.validation import check_is_fitted

from automl_plugins.arrays import FloatArray, IntArray, evenly_spaced
from automl_plugins.visualization._drawing import (
    line_styles,
    new_figure,
    plain,
)

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from automl_plugins.meta.factorization import MatrixFactorization

_MAX_DRAWN = 20_000  # points that a browser draws without delay
_MARKERS = {"solid": "circle", "dash": "diamond", "dot": "cross"}


def plot_pipeline_embedding(
    model: MatrixFactorization,
    *,
    labels: Sequence[Hashable] | None = None,
    names: Sequence[str] | None = None,
    values: Sequence[float] | None = None,
    dimensions: tuple[int, int] | None = None,
) -> go.Figure:
    """Plot the latent positions of pipelines (Fusi 2018, figures 2 and 3).

    Pipelines that lie close together do well and badly on the same data sets. Of more than
    20 000, an evenly spaced subset is drawn.

    Args:
        model: A fitted factorisation.
        labels: Category of each pipeline, such as its classifier (N); each has its own colour.
        names: Text shown when the mouse is over a point (N).
        values: A number for each pipeline as colour, such as a hyperparameter (N); None or NaN
            where it has none. Not together with ``labels``; without both, colours show the mean
            loss.
        dimensions: The two dimensions to plot; None takes the first two principal axes.

    Raises:
        NotFittedError: If the model is not fitted.
        ValueError: If labels, names or values do not have one entry for each pipeline, if both
            labels and values are given, or if the model does not have these dimensions.
    """
    check_is_fitted(model, "embedding_")
    n, q = model.embedding_.shape
    for argument, given in (("labels", labels), ("names", names), ("values", values)):
        if given is not None and len(given) != n:
            raise ValueError(
                f"{argument} must have one entry for each of {n} pipelines, got {len(given)}."
            )
    # By position, like the pipelines: a series may have any index.
    labels = None if labels is None else list(labels)
    texts = None if names is None else np.array([plain(name) for name in names], dtype=object)
    if labels is not None and values is not None:
        raise ValueError("Colours show labels or values: pass one of them.")
    places, axes = _plane(model, dimensions)
    shown = evenly_spaced(n, _MAX_DRAWN)
    parts: list[tuple[Hashable, IntArray, dict[str, Any]]] = []
    if labels is None:
        colours = model.mean_ if values is None else np.array(values, dtype=np.float64)
        title = "mean loss" if values is None else ""
        marker = {"color": colours[shown], "colorbar": {"title": title}, "showscale": True}
        parts.append(("pipelines", shown, marker))
    else:
        # All kinds, shown or not: a colour does not depend on which pipelines are drawn.
        groups: dict[Hashable, list[int]] = {kind: [] for kind in labels}
        for row in shown.tolist():
            groups[labels[row]].append(row)
        for kind, style in line_styles(groups).items():
            marker = {"color": style["color"], "symbol": _MARKERS[style["dash"]]}
            if rows := groups[kind]:
                parts.append((kind, np.array(rows), marker))
    part = "" if len(shown) == n else f", {len(shown)} of {n} shown"
    figure = new_figure("Pipelines by latent place", f"{n} pipelines, {q} dimensions{part}", *axes)
    # One scale for both axes: distances are what the picture shows.
    figure.update_layout(yaxis={"scaleanchor": "x"}, showlegend=labels is not None)
    for name, drawn, marker in parts:
        # Drawn by WebGL: as SVG, thousands of points are slow to move.
        figure.add_scattergl(
            x=places[drawn, 0],
            y=places[drawn, 1],
            mode="markers",
            marker=marker | {"size": 5, "opacity": 0.7},
            name=plain(name),
            text=None if texts is None else texts[drawn],
            hoverinfo="name+x+y" if texts is None else "name+text",
        )
    return figure


def _plane(
    model: MatrixFactorization, dimensions: tuple[int, int] | None
) -> tuple[FloatArray, list[str]]:
    """Coordinates (N, 2) and the names of the axes."""
    X = model.embedding_
    n, q = X.shape
    if dimensions is not None:
        if len(dimensions) != 2 or not all(0 <= i < q for i in dimensions):
            raise ValueError(f"dimensions must be two in [0, {q}), got {dimensions!r}.")
        return X[:, list(dimensions)], [f"Dimension {i}" for i in dimensions]
    shown = min(n, q, 2)
    with np.errstate(invalid="ignore", divide="ignore"):  # if all pipelines have the same position
        pca = PCA(shown).fit(X)
    rest = (0, 2 - shown)  # 0 where there is one axis
    shares = np.pad(np.nan_to_num(pca.explained_variance_ratio_), rest)
    names = [f"Main axis {i} ({share:.0%})" for i, share in enumerate(shares, start=1)]
    return np.pad(pca.transform(X), ((0, 0), rest)), names
