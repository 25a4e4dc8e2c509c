"""Expected improvement of a normal prediction, in pure functions of arrays.

Notation of this module (losses are minimised)::

    mean, std  predicted loss and its standard deviation, (m,), std >= 0
    best       best observed loss f*, on the scale of ``mean``
    xi         improvement below which nothing is gained, >= 0
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.special import log_ndtr, ndtr

FloatArray = npt.NDArray[np.float64]

_LOG_SQRT_2_PI = 0.5 * np.log(2.0 * np.pi)


def expected_improvement(
    mean: FloatArray, std: FloatArray, best: float | FloatArray, xi: float = 0.0
) -> FloatArray:
    """EI = std * (z Phi(z) + phi(z)), z = (best - mean - xi) / std.

    Source: GBQR thesis eq. 2.2 (Jones et al. 1998). Where std = 0, EI = max(best - mean - xi, 0).
    Underflows to 0 for z < -38; compare candidates with ``log_expected_improvement``.

    Returns:
        Expected improvement (m,), >= 0.
    """
    gain = best - np.asarray(mean, dtype=np.float64) - xi
    std = np.asarray(std, dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        z = gain / std
        # gain, not std z: a z that overflows leaves the gain.
        smooth = gain * ndtr(z) + std * np.exp(-0.5 * z * z - _LOG_SQRT_2_PI)
    return np.where(std > 0, np.maximum(smooth, 0.0), np.maximum(gain, 0.0))


def log_expected_improvement(
    mean: FloatArray, std: FloatArray, best: float, xi: float = 0.0
) -> FloatArray:
    """Log EI, accurate where EI itself underflows.

    log EI = log std + log h(z) with h(z) = phi(z) + z Phi(z). For z < -1 the two terms nearly
    cancel, so h = phi(z) (1 - |z| Phi(z) / phi(z)) is used, and for z < -50 its expansion
    phi(z) / z^2 (1 - 3 / z^2 + 15 / z^4), whose relative error is below 105 / z^6 < 7e-9. Where
    std = 0, or z overflows: log max(best - mean - xi, 0), which may be -inf.

    Returns:
        log EI (m,).
    """
    gain = best - np.asarray(mean, dtype=np.float64) - xi
    std = np.asarray(std, dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        z = gain / std
        log_phi = -0.5 * z * z - _LOG_SQRT_2_PI
        near = np.log(np.maximum(z * ndtr(z) + np.exp(log_phi), np.finfo(float).tiny))
        mills = np.exp(log_ndtr(z) - log_phi)  # Phi(z) / phi(z), finite for z < 0
        tail = log_phi + np.log1p(-np.minimum(np.abs(z) * mills, 1.0 - 1e-16))
        square = z**-2.0
        far = log_phi - 2.0 * np.log(np.abs(z)) + np.log1p(square * (15.0 * square - 3.0))
        log_h = np.where(z > -1.0, near, np.where(z > -50.0, tail, far))
        smooth = (std > 0) & ~np.isposinf(z)
        return np.where(smooth, np.log(std) + log_h, np.log(np.maximum(gain, 0.0)))
