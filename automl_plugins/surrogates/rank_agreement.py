"""How alike two tasks are, and how much vote that gives one of them: pure functions.

The equations are those of Wistuba, Schilling and Schmidt-Thieme, "Two-stage transfer surrogate
model for automatic hyperparameter optimization" (ECML-PKDD 2016), called "TST".
Notation: S earlier tasks, t observations of the new one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np

from automl_plugins.surrogates.base import FloatArray

Ties = Literal["half", "strict"]

_CHUNK = 2_000_000  # pairs compared at a time


def discordance(losses: FloatArray, predicted: FloatArray, ties: Ties = "half") -> FloatArray:
    """Share of the pairs of observations that each earlier task would rank the other way round.

    The distance of TST eqs. 12 and 13. The paper's vectors have a coordinate for (i, j) and one
    for (j, i); here each pair counts once.

    Args:
        losses: Observed losses (t,).
        predicted: What the earlier tasks predict for the same configurations (S, t).
        ties: ``"half"``: a pair that only one side ties is half a discordance, one that both tie
            is none. ``"strict"``: discordant where y_i < y_j differs, i before j, as in the
            authors' program; its value depends on the order of tied observations.

    Returns:
        Shares (S,) in [0, 1]; 0 with fewer than two observations.
    """
    n_sources, t = predicted.shape
    if t < 2:
        return np.zeros(n_sources)
    i, j = np.triu_indices(t, 1)
    own = np.sign(losses[i] - losses[j])
    total = np.empty(n_sources)
    step = max(1, _CHUNK // len(i))
    for start in range(0, n_sources, step):
        part = predicted[start : start + step]
        theirs = np.sign(part[:, i] - part[:, j])
        if ties == "strict":
            a, b = (own < 0).astype(np.float64), (theirs < 0).astype(np.float64)
            count = a.sum() + b.sum(axis=1) - 2.0 * (b @ a)
        else:
            # For signs a and b: |a - b| / 2 = (a^2 + b^2 - a b - a^2 b^2) / 2.
            a, b = own * own, theirs * theirs
            count = 0.5 * (a.sum() + b.sum(axis=1) - theirs @ own - b @ a)
        total[start : start + step] = count
    return total / len(i)


def epanechnikov(distance: FloatArray, bandwidth: float) -> FloatArray:
    """Weights 3/4 (1 - u^2) for u = distance / bandwidth <= 1, else 0 (TST eqs. 9, 10)."""
    u = np.asarray(distance) / bandwidth
    return np.where(u <= 1.0, 0.75 * (1.0 - np.minimum(u, 1.0) ** 2), 0.0)


def meta_feature_distance(
    own: Mapping[str, float], earlier: FloatArray, names: Sequence[str]
) -> FloatArray:
    """Root mean square difference of the meta-features, each scaled to [0, 1] over all tasks.

    The mean in place of TST's sum makes it comparable where tasks know different meta-features.

    Args:
        own: Meta-features of the new task by name.
        earlier: Those of the earlier tasks (S, m), NaN where unknown.
        names: Their names (m).

    Returns:
        Distances (S,) in [0, 1]; inf for a task that shares no known meta-feature.
    """
    new = np.array([[own.get(name, np.nan) for name in names]], dtype=np.float64)
    every = np.vstack([earlier, new.reshape(1, len(names))])
    every = np.where(np.isfinite(every), every, np.nan)
    known = ~np.isnan(every)
    low = np.where(known, every, np.inf).min(axis=0, initial=np.inf)
    high = np.where(known, every, -np.inf).max(axis=0, initial=-np.inf)
    spread = np.where(high > low, high - low, 1.0)
    squares = ((every[:-1] - every[-1]) / spread) ** 2
    both = known[:-1] & known[-1]
    n_known = both.sum(axis=1)
    mean = np.where(both, squares, 0.0).sum(axis=1) / np.maximum(n_known, 1)
    return np.where(n_known > 0, np.sqrt(mean), np.inf)
