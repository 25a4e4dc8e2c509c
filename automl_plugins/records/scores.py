"""Losses of different tasks made comparable. All functions minimise; NaN is a failed run.

A failed run is worth as much as the worst complete one of its task: it tells where not to go.
Where all complete ones are equal, it is worse by one unit.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


def standardised(losses: FloatArray) -> FloatArray:
    """Losses (n,) of one task with mean 0 and standard deviation 1 (GBQR thesis, 6.1).

    Equal losses become 0.
    """
    known = losses[~np.isnan(losses)]
    if not len(known):
        return np.ones(len(losses))
    filled = np.where(np.isnan(losses), known.max(), losses)
    spread = float(known.std())
    # Equal losses may differ in the last bit of their mean.
    if spread <= 1e-12 * max(float(np.abs(known).max()), 1e-300):
        return np.asarray(np.isnan(losses), dtype=np.float64)
    return np.asarray((filled - known.mean()) / spread)


def regret(losses: FloatArray) -> FloatArray:
    """Losses (n,) of one task scaled to [0, 1]: 0 is its best, 1 its worst (TST, 5.2: ADTM).

    Equal losses become 0.
    """
    known = losses[~np.isnan(losses)]
    if not len(known):
        return np.ones(len(losses))
    low, high = float(known.min()), float(known.max())
    if high <= low:
        return np.asarray(np.isnan(losses), dtype=np.float64)
    return rescale(np.where(np.isnan(losses), high, losses), low, high)


def rescale(values: FloatArray, low: npt.ArrayLike, high: npt.ArrayLike) -> FloatArray:
    """(value - low) / (high - low), kept within [0, 1]; 0 where low = high, NaN stays NaN."""
    half_low = 0.5 * np.asarray(low)  # the difference of halves does not overflow
    width = 0.5 * np.asarray(high) - half_low
    ratio = (0.5 * values - half_low) / np.where(width > 0, width, np.inf)
    return np.asarray(np.clip(ratio, 0.0, 1.0))


def by_task(
    scale: Callable[[FloatArray], FloatArray], losses: FloatArray, task: IntArray
) -> FloatArray:
    """``scale`` applied to the losses (N,) of each task; ``task`` (N,) is the index of each."""
    scaled = np.empty(len(losses))
    order = np.argsort(task, kind="stable")
    starts = np.flatnonzero(np.diff(task[order], prepend=-1))
    for rows in np.split(order, starts[1:]) if len(order) else ():
        scaled[rows] = scale(losses[rows])
    return scaled
