"""Types of arrays, whose shapes are in the docstrings; indices; checks of columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]
IntArray = npt.NDArray[np.int64]
IndexArray = npt.NDArray[np.intp]  # positions, as numpy gives them
KeyArray = npt.NDArray[np.uint64]  # of configurations, see ``VectorSpace.keys``

#: Largest distance of a value from its range, in widths: sums of squares stay finite, and rounded
#: to 2^-40 (``VectorSpace.keys``) it fits into 64 bits.
FARTHEST = 2.0**20


def evenly_spaced(n: int, most: int) -> IntArray:
    """At most ``most`` evenly spaced indices below n, including the first and the last."""
    return np.linspace(0, n - 1, min(n, most)).round().astype(np.int64)


# --- checks ---------------------------------------------------------------------------------


def as_floats(values: npt.ArrayLike, what: str, remedy: str = "") -> FloatArray:
    """A copy of ``values`` as floats, in any shape.

    Raises:
        ValueError: For anything but numbers; begins with ``what`` and ends with ``remedy``.
    """
    try:
        if getattr(getattr(values, "dtype", None), "kind", "") == "c":  # numpy drops a part
            raise TypeError("complex numbers have no order")
        # A copy: what is recorded does not change with the caller's array.
        return np.array(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(
            f"{what} must be numbers, NaN where one is unknown: {error}{remedy}."
        ) from error


def check_shape(what: str, values: npt.NDArray[Any], *shape: int | str) -> None:
    """Raise ValueError for an array of another shape; a length that is a name may be any size."""
    # Not strict: another number of axes is found by the comparison below.
    lengths = [m if isinstance(n, str) else n for n, m in zip(shape, values.shape, strict=False)]
    if values.shape != (*lengths, *shape[len(lengths) :]):
        text = ", ".join(map(str, shape)) + ("," if len(shape) == 1 else "")
        raise ValueError(f"{what} must have shape ({text}), got {values.shape}.")


def refuse_rows(what: str, values: npt.NDArray[Any], wrong: BoolArray, rule: str) -> None:
    """Raise ValueError with the ``rule`` and the first row of ``values`` that is ``wrong``."""
    if wrong.any():
        place = tuple(np.argwhere(wrong)[0].tolist())
        raise ValueError(f"{what} {rule}; row {place[0]} has {values[place]}.")


def check_seconds(what: str, seconds: FloatArray) -> None:
    """Raise ValueError for seconds that are negative or infinite; NaN is unknown."""
    wrong = (seconds < 0) | np.isinf(seconds)
    refuse_rows(what, seconds, wrong, "must be finite and >= 0, or NaN")
