"""Curves of regrets and ranks over trials or simulated seconds, as arrays.

Notation of this module::

    N  tables that have runs of every method shown
    K  methods shown
    G  points of the horizontal axis, trials or seconds
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
from scipy.stats import rankdata

from automl_plugins.statistics.ranks import FloatArray
from automl_plugins.statistics.runs import UNITS, IntArray, Unit, runs_of
from automl_plugins.statistics.scores import listed

if TYPE_CHECKING:
    import pandas as pd

Band = Literal["ci", "quartiles"]
_BANDS: dict[Band, str] = {
    "ci": "band: mean ± 1.96 standard errors over tables",
    "quartiles": "band: quartiles over tables",
}
_MAX_TRIALS = 1000  # more points than a screen has pixels help nobody
_N_SECONDS = 100


@dataclass(frozen=True, eq=False)
class Curves:
    """Means over tables, with bands.

    Attributes:
        methods: Names (K).
        x: Trials or seconds (G,), ascending.
        mean: Means over the tables (K, G).
        band: Lower and upper ends (2, K, G), or None.
        note: What was averaged.
    """

    methods: list[Hashable]
    x: FloatArray
    mean: FloatArray
    band: FloatArray | None
    note: str


def curves_of(
    frame: pd.DataFrame,
    unit: Unit,
    band: Band | None,
    methods: Iterable[Hashable] | None,
    *,
    ranked: bool = False,
) -> Curves:
    """Mean regrets, or average ranks, of the methods; see ``plot_regret`` and ``plot_ranks``.

    Raises:
        ValueError: If columns are missing or illegal, seconds are NaN, an option or a method is
            unknown, or no table has runs of every method.
    """
    if unit not in UNITS:
        raise ValueError(f"unit must be one of {listed(UNITS)}, got {unit!r}.")
    if band is not None and band not in _BANDS:
        raise ValueError(f"band must be one of {listed(_BANDS)}, or None, got {band!r}.")
    names, x, scores, n_tables = _table_scores(frame, unit, methods)
    if ranked:
        scores = np.asarray(rankdata(scores, axis=1), dtype=np.float64)
    ends = _band(scores, band)
    shown = len(scores)
    note = f"{shown} table{'s' * (shown > 1)}"
    if shown < n_tables:
        note = f"{shown} of {n_tables} tables, those with runs of every method"
    if band is not None and ends is not None:
        note += f"; {_BANDS[band]}"
    return Curves(names, x, scores.mean(axis=0), ends, note)


def _table_scores(
    frame: pd.DataFrame, unit: Unit, methods: Iterable[Hashable] | None
) -> tuple[list[Hashable], FloatArray, FloatArray, int]:
    """Methods (K), grid (G,), seed means of the regret (N, K, G), and the number of all tables."""
    runs = runs_of(frame, unit)
    names = list(runs.methods if methods is None else dict.fromkeys(methods))
    unknown = [name for name in names if name not in runs.methods]
    if unknown or not names:
        what = f"No runs of {listed(unknown)}" if unknown else "methods is empty"
        raise ValueError(f"{what}; there are runs of {listed(runs.methods)}.")
    column = np.full(len(runs.methods), -1)
    column[[runs.methods.index(name) for name in names]] = np.arange(len(names))
    method = column[runs.method]
    has = np.zeros((len(runs.tables), len(names)), dtype=np.bool_)
    has[runs.table[method >= 0], method[method >= 0]] = True
    complete = np.flatnonzero(has.all(axis=1))
    use = (method >= 0) & np.isin(runs.table, complete)
    if not use.any():
        raise ValueError(f"No table has runs of every method: {listed(names)}.")
    run = np.repeat(np.arange(len(use)), np.diff(runs.first, append=len(runs.spent)))
    rows = use[run]
    x = _grid(runs.spent[rows], unit)
    number_of = np.cumsum(use) - 1
    regret = _on_grid(x, number_of[run[rows]], runs.spent[rows], runs.regret[rows])
    means = _cell_means(regret, runs.table[use] * len(names) + method[use])
    return names, x, means.reshape(-1, len(names), len(x)), len(runs.tables)


def _grid(spent: FloatArray, unit: Unit) -> FloatArray:
    """Points (G,) of the horizontal axis up to the end of the longest run."""
    if unit == "trials":
        last = float(np.ceil(spent.max()))
        points = np.linspace(1, last, min(int(last), _MAX_TRIALS)).round()
        return np.asarray(np.unique(points), dtype=np.float64)
    positive = spent[spent > 0]
    if not len(positive) or not np.isfinite(spent).all():
        raise ValueError("seconds must be finite, and above 0 somewhere.")
    return np.unique(np.geomspace(positive.min(), positive.max(), _N_SECONDS))


def _on_grid(x: FloatArray, run: IntArray, spent: FloatArray, regret: FloatArray) -> FloatArray:
    """Regret of each run (r, G): the last one known at each point, and 1 before the first.

    Args:
        x: Points (G,), ascending and not below the last of ``spent``.
        run: Number of the run of each row (n,), ascending.
        spent: Trials or seconds at each row (n,), ascending within a run.
        regret: Regret after each row (n,), NaN where there is no result yet.
    """
    known = ~np.isnan(regret)
    values = np.ones((run[-1] + 1, len(x) + 1))
    filled = np.zeros(values.shape, dtype=np.int64)
    point = np.searchsorted(x, spent[known]) + 1  # the first point at which the row counts
    values[run[known], point] = regret[known]  # of several rows at one point, the last remains
    filled[run[known], point] = point
    return np.take_along_axis(values, np.maximum.accumulate(filled, axis=1), axis=1)[:, 1:]


def _cell_means(values: FloatArray, cell: IntArray) -> FloatArray:
    """Means of the rows (r, G) of each cell, cells ascending.

    Values are sorted before they are added, so that the order of the seeds cannot part methods
    that tie.
    """
    cells = np.broadcast_to(cell[:, None], values.shape)
    ordered = np.take_along_axis(values, np.lexsort((values, cells), axis=0), axis=0)
    _, size = np.unique(cell, return_counts=True)
    total = np.add.reduceat(ordered, np.cumsum(size) - size, axis=0)
    return np.asarray(total / size[:, None], dtype=np.float64)


def _band(scores: FloatArray, band: Band | None) -> FloatArray | None:
    """Lower and upper ends (2, K, G) over the tables of scores (N, K, G)."""
    if band is None or len(scores) < 2:
        return None
    if band == "quartiles":
        return np.asarray(np.quantile(scores, [0.25, 0.75], axis=0), dtype=np.float64)
    half = 1.96 * scores.std(axis=0, ddof=1) / np.sqrt(len(scores))
    mean = scores.mean(axis=0)
    return np.stack([mean - half, mean + half])
