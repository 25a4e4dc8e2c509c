"""What was measured of a table's runs, checked: losses, seconds, learning curves."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]


def column(table: str, what: str, values: npt.ArrayLike, n: int) -> FloatArray:
    """A number for each of n configurations; errors name the table and ``what`` it is.

    Raises:
        ValueError: For another shape.
    """
    numbers = np.array(values, dtype=np.float64)
    if numbers.shape != (n,):
        raise ValueError(
            f"Table {table!r}: {what} has shape {numbers.shape} for {n} configurations."
        )
    return numbers


def durations(table: str, what: str, values: FloatArray) -> FloatArray:
    """Seconds of any shape, NaN where unknown.

    Raises:
        ValueError: For negative or infinite ones.
    """
    wrong = np.argwhere(~(values >= 0) & ~np.isnan(values) | np.isinf(values))
    if len(wrong):
        place = tuple(int(i) for i in wrong[0])
        raise ValueError(
            f"Table {table!r}: {what} must be finite and >= 0, row {place[0]} has {values[place]}."
        )
    return np.array(values)


def learning_curves(
    table: str,
    n: int,
    seconds: FloatArray | None,
    curves: npt.ArrayLike | None,
    steps: Sequence[float],
    curve_seconds: npt.ArrayLike | None,
) -> tuple[tuple[float, ...], FloatArray | None, FloatArray | None]:
    """Steps (s,), losses (n, s) and seconds (n, s) of the curves of n runs.

    Without ``curve_seconds`` the ``seconds`` (n,) of a run are spread evenly over its steps.

    Raises:
        ValueError: For shapes that do not fit, steps that do not ascend, or negative seconds.
    """
    if curves is None:
        if len(steps) or curve_seconds is not None:
            raise ValueError(f"Table {table!r} has steps or curve_seconds but no curves.")
        return (), None, None
    ascending = tuple(float(s) for s in steps)
    losses = np.array(curves, dtype=np.float64)
    shape = (n, len(ascending))
    if losses.shape != shape or not ascending:
        raise ValueError(
            f"Table {table!r}: curves has shape {losses.shape} for {shape[0]} runs and"
            f" {shape[1]} steps."
        )
    if any(b <= a for a, b in pairwise(ascending)):
        raise ValueError(f"Table {table!r}: steps must ascend, got {ascending}.")
    spent = None
    if curve_seconds is not None:
        spent = durations(table, "curve_seconds", np.array(curve_seconds, dtype=np.float64))
        if spent.shape != shape:
            raise ValueError(f"Table {table!r}: curve_seconds has shape {spent.shape}.")
    elif seconds is not None:
        spent = seconds[:, None] * np.array(ascending) / ascending[-1]
    return ascending, losses, spent
