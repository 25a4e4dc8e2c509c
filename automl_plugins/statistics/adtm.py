"""ADTM, the average distance to the minimum (Wistuba et al. 2016, section 5.3)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from automl_plugins.statistics.ranks import FloatArray, score_matrix


def distance_to_minimum(losses: npt.ArrayLike) -> FloatArray:
    """(loss - min) / (max - min) within each task; its mean over the tasks is the ADTM.

    Minimum and maximum are those of the finite losses of the task. A constant task has distance
    0 everywhere; a loss of -inf has distance 0 and one of +inf distance 1, also in a task that is
    constant without it.

    Args:
        losses: Losses (N, K).

    Returns:
        Distances (N, K) in [0, 1].

    Raises:
        ValueError: If the losses are no matrix, empty, or NaN somewhere.
    """
    matrix = score_matrix(losses)
    finite = np.where(np.isfinite(matrix), matrix, np.nan)
    low = np.fmin.reduce(finite, axis=1, keepdims=True)
    high = np.fmax.reduce(finite, axis=1, keepdims=True)
    return np.where(np.isfinite(matrix), scaled(finite, low, high), matrix > 0)


def scaled(values: FloatArray, low: FloatArray, high: FloatArray) -> FloatArray:
    """(value - low) / (high - low), kept within [0, 1]; 0 where low = high, NaN stays NaN."""
    width = 0.5 * high - 0.5 * low  # halves, whose difference does not overflow
    ratio = (0.5 * values - 0.5 * low) / np.where(width > 0, width, 1.0)
    return np.clip(ratio, 0.0, 1.0)
