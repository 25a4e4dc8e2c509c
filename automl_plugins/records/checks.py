"""Checks of columns, whatever holds them: a row for each evaluation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from automl_plugins.arrays import BoolArray, FloatArray


def as_floats(values: npt.ArrayLike, what: str, remedy: str = "") -> FloatArray:
    """A copy of ``values`` as floats, in any shape.

    Raises:
        ValueError: For anything but numbers; it begins with ``what`` and ends with ``remedy``.
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


def check_configuration(what: str, row: int, configuration: object) -> None:
    """Raise TypeError for a configuration that is not values by name."""
    if not isinstance(configuration, Mapping):
        raise TypeError(
            f"{what}: configurations are values by name, such as {{'C': 1.0}}; row {row} has"
            f" {configuration!r}."
        )


def check_shape(what: str, values: npt.NDArray[Any], *shape: int | str) -> None:
    """Raise ValueError for an array of another shape; a length that is a name may be any."""
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
