"""Summaries of one number per column: min, max, mean, standard deviation, quartiles."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from automl_plugins.meta.features.table import FloatArray

_SUMMARIES: dict[str, Callable[[FloatArray], float]] = {
    "Min": lambda v: float(v.min()),
    "Max": lambda v: float(v.max()),
    "Mean": lambda v: float(v.mean()),
    "STD": lambda v: float(v.std()),
    "Quartile1": lambda v: float(np.quantile(v, 0.25)),
    "Quartile2": lambda v: float(np.quantile(v, 0.5)),
    "Quartile3": lambda v: float(np.quantile(v, 0.75)),
}
MOMENTS = ("Min", "Max", "Mean", "STD")
SPREAD = ("Min", "Max", "Mean", "Quartile1", "Quartile2", "Quartile3")


def suffixed(stem: str) -> dict[str, str]:
    """Summary -> name in the manner of ``KurtosisMin``."""
    return {summary: f"{stem}{summary}" for summary in MOMENTS}


def prefixed(stem: str) -> dict[str, str]:
    """Summary -> name in the manner of ``Quartile1AttributeEntropy``."""
    return {summary: f"{summary}{stem}" for summary in SPREAD}


def summarise(
    names: dict[str, str], per_column: Sequence[float] | FloatArray, why_empty: str
) -> dict[str, float | str]:
    """The summaries of the values that are not NaN, or the reason why there are none.

    The standard deviation is the population's (divisor n).
    """
    values = np.asarray(per_column, dtype=np.float64)
    values = values[~np.isnan(values)]
    if not len(values):
        return dict.fromkeys(names.values(), why_empty)
    return {name: _SUMMARIES[summary](values) for summary, name in names.items()}
