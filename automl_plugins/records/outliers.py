"""Far outliers among losses: their order counts, their size does not.

A penalty of the largest float there is would leave no digits for all other losses, in a mean, a
difference or a regression tree.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]

HUGE = 1e150  # its square, and sums of many such, are finite
_FAR = 1e4  # spreads from the middle half: others keep their digits, in 32-bit floats too
_RESOLVED = 1e12  # of two spreads: in sums with the larger one the smaller one has no digits


def tame(losses: FloatArray) -> FloatArray:
    """Losses (n,) with far outliers moved near the others; NaN stays.

    The spread is the larger distance from the median to a quartile of the distinct losses. Losses
    farther than 10^4 spreads beyond the quartiles are spaced evenly, in their order, from one to
    two spreads beyond the farthest of the others, which stay as they are: standardised, the
    others would have no digits beside anything farther. Where there is no spread, losses beyond
    +-1e150 are alike.
    """
    known = losses[~np.isnan(losses)]
    distinct = np.unique(known)
    sizes = np.clip(distinct, -HUGE, HUGE)
    if len(sizes) < 3:
        return np.clip(losses, -HUGE, HUGE)
    last = len(sizes) - 1
    low, middle, high = sizes[[last // 4, last // 2, last - last // 4]].tolist()
    spreads = sorted(gap for gap in (middle - low, high - middle) if gap > 0)
    spread = max(spreads, default=0.0)
    if spread > _RESOLVED * min(spreads, default=0.0):  # one of the quartiles is an outlier
        spread = min(spreads, default=0.0)
        low, high = max(low, middle - spread), min(high, middle + spread)
    reach = _FAR * spread
    above, below = sizes > high + reach, sizes < low - reach
    if spread == 0.0 or not (above | below).any():
        return np.clip(losses, -HUGE, HUGE)
    near = sizes[~(above | below)]
    sizes[above] = near[-1] + spread * (1.0 + _even(int(above.sum())))
    sizes[below] = near[0] - spread * (1.0 + _even(int(below.sum())))[::-1]
    out = losses.copy()
    out[~np.isnan(losses)] = sizes[np.searchsorted(distinct, known)]
    return out


def _even(n: int) -> FloatArray:
    """Even steps (n,) from 0 to 1, both left out."""
    return np.arange(1, n + 1) / (n + 1.0)
