"""Scaled losses: comparable between tasks, and not dominated by outliers. NaN is a failed run.

A failed run counts as the worst complete run of its task, so that no design suggests it. Where
all complete losses are equal, a failed run is worse by one unit. Notation::

    losses    losses of one task, (n,), in any order
    distinct  known losses, each once, ascending, (m,)
    sizes     new values of the ``distinct`` losses, in the same order, (m,)
    spread    distance from the median to a quartile, see ``_middle_half``
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from automl_plugins.arrays import FloatArray


def standardise_losses(losses: FloatArray) -> FloatArray:
    """Losses (n,) of one task, the known ones with mean 0 and standard deviation 1.

    If all known losses are equal, they become 0 and failed runs 1 (GBQR thesis 6.2.1).
    """
    failed = np.isnan(losses)
    largest = float(np.abs(losses[~failed]).max(initial=0.0))
    losses = losses / largest if largest > HUGE else losses  # their squares would be infinite
    known = losses[~failed]
    spread = float(known.std()) if len(known) else 0.0
    # Equal losses may differ in the last bit of their mean.
    if spread <= 1e-12 * float(np.abs(known).max(initial=1e-300)):
        return np.asarray(failed, dtype=np.float64)
    return np.asarray((np.where(failed, known.max(), losses) - known.mean()) / spread)


def regret(losses: FloatArray) -> FloatArray:
    """Losses (n,) of one task scaled to [0, 1]: 0 is the best, 1 the worst (TST 5.3: ADTM).

    If all known losses are equal, they become 0 and failed runs 1.
    """
    failed = np.isnan(losses)
    low = float(losses[~failed].min(initial=np.inf))
    high = float(losses[~failed].max(initial=-np.inf))
    if high <= low:
        return np.asarray(failed, dtype=np.float64)
    return rescale(np.where(failed, high, losses), low, high)


def rescale(values: FloatArray, low: npt.ArrayLike, high: npt.ArrayLike) -> FloatArray:
    """(value - low) / (high - low), kept within [0, 1]; 0 where low = high, NaN stays NaN."""
    half_low = 0.5 * np.asarray(low)  # the difference of halves does not overflow
    width = 0.5 * np.asarray(high) - half_low
    ratio = (0.5 * values - half_low) / np.where(width > 0, width, np.inf)
    return np.asarray(np.clip(ratio, 0.0, 1.0))


HUGE = 1e150  # sums of its squares are finite
_FAR = 1e4  # spreads beyond the middle half: the losses within keep their digits in 32-bit floats
_DIVERGED = 100.0  # spreads above the middle half: a cliff that no smooth model fits
_GAP = 30.0  # ratio of the distances of two neighbouring losses to the middle half
_RESOLVED = 1e6  # ratio of the distances of the quartiles beyond which one is an outlier


def tame(losses: FloatArray) -> FloatArray:
    """Losses (n,) with far outliers moved near the others; NaN stays.

    Losses farther than 10^4 spreads (see ``_middle_half``) beyond the quartiles are outliers. They
    keep their order, and are spaced evenly from one to two spreads beyond the farthest other loss:
    larger outliers would leave the others no digits in a mean, a difference or a regression tree.
    Other losses stay as they are, except beyond +-1e150: these are spaced evenly up to +-2e150.
    """
    known = ~np.isnan(losses)
    # Equal losses count once: ties must not make the spread 0.
    distinct, which = np.unique(losses[known], return_inverse=True)
    sizes = _bound(distinct)
    if len(sizes) >= 3:
        low, high, spread = _middle_half(sizes)
        reach = _FAR * spread
        above, below = sizes > high + reach, sizes < low - reach
        near = sizes[~(above | below)]
        # Ascending like ``sizes``, so the farthest loss below comes first.
        sizes[above] = near[-1] + spread * (1.0 + _even(int(above.sum())))
        sizes[below] = near[0] - spread * (1.0 + _even(int(below.sum())))[::-1]
    out = losses.copy()
    out[known] = sizes[which]
    return out


def _bound(distinct: FloatArray) -> FloatArray:
    """Ascending losses (n,), with those beyond +-1e150 spaced evenly up to +-2e150."""
    sizes = distinct.copy()
    above, below = distinct > HUGE, distinct < -HUGE
    n, m = int(above.sum()), int(below.sum())
    sizes[above] = HUGE * (1.0 + np.arange(1, n + 1) / max(n, 1))
    sizes[below] = -HUGE * (1.0 + np.arange(m, 0, -1) / max(m, 1))
    return sizes


def divergence_limit(losses: FloatArray) -> float:
    """The loss above which an evaluation has diverged; NaN among the losses (n,) does not count.

    A loss has diverged if it lies more than 100 spreads (see ``_middle_half``) above the upper
    quartile, and more than 30 times as far above it as the largest loss that has not: the tail of
    an ill-conditioned function has no such gap. Infinite if no loss has diverged, or if there are
    fewer than three distinct losses.
    """
    # Clipped, because differences of the largest floats overflow.
    distinct = np.unique(np.clip(losses[~np.isnan(losses)], -HUGE, HUGE))
    if len(distinct) < 3:
        return np.inf
    _, high, spread = _middle_half(distinct)
    above = distinct[distinct > high]
    # The first loss above the quartile is compared with the spread, each other with the one below.
    excess = np.append(spread, above - high)
    diverged = (excess[1:] > _DIVERGED * spread) & (excess[1:] > _GAP * excess[:-1])
    if not diverged.any():
        return np.inf
    # Beyond the first gap all have diverged, whether a further gap follows or not.
    return float(np.append(high, above)[np.argmax(diverged)])


def _middle_half(distinct: FloatArray) -> tuple[float, float, float]:
    """Lower and upper quartile, and the spread > 0, of distinct ascending losses (n,), n >= 3.

    The spread is the larger distance from the median to a quartile. A quartile more than 10^6
    times as far from the median as the other one has diverged: it is moved to the distance of the
    other one, which is then the spread.
    """
    last = len(distinct) - 1
    # Symmetric: as many losses lie below the lower quartile as above the upper one.
    low, middle, high = distinct[[last // 4, last // 2, last - last // 4]].tolist()
    near, far = sorted((middle - low, high - middle))  # above 0: the losses are distinct
    if far > _RESOLVED * near:
        return max(low, middle - near), min(high, middle + near), near
    return low, high, far


def _even(n: int) -> FloatArray:
    """Even steps (n,) between 0 and 1, both excluded."""
    return np.arange(1, n + 1) / (n + 1.0)
