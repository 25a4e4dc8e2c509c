"""Types of arrays, whose shapes are in the docstrings, and indices."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]
IntArray = npt.NDArray[np.int64]
IndexArray = npt.NDArray[np.intp]  # positions, as numpy gives them

#: Largest distance of a value from its range, in widths: sums of squares stay finite, and rounded
#: to 2^-40 (``VectorSpace.keys``) it fits into 64 bits.
FARTHEST = 2.0**20


def evenly_spaced(n: int, most: int) -> IntArray:
    """At most ``most`` evenly spaced indices below n, including the first and the last."""
    return np.linspace(0, n - 1, min(n, most)).round().astype(np.int64)
