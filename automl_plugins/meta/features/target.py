"""The target: classes as codes, or numbers, and which of the two it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from automl_plugins.meta.features.table import (
    FloatArray,
    IntArray,
    first_appearance_codes,
    missing_objects,
    only_numbers,
)

Task = Literal["classification", "regression"]
TASKS: tuple[Task, ...] = get_args(Task)

_MOST_CLASSES = 100  # integers with more distinct values are taken for numbers


@dataclass(frozen=True)
class Target:
    """The target of n rows.

    Attributes:
        task: What is to be predicted.
        values: Class codes int64 (n,), counted by first appearance (so that new labels for the
            same classes change nothing), or numbers float64 (n,).
    """

    task: Task
    values: IntArray | FloatArray

    @property
    def n_classes(self) -> int:
        """Number of classes; 0 for a number."""
        return int(self.values.max()) + 1 if self.task == "classification" else 0

    def take(self, rows: IntArray) -> Target:
        """The target at these rows; codes keep their meaning, so some may be absent."""
        return Target(self.task, self.values[rows])


def read_target(y: Any, *, task: str = "auto", n_rows: int) -> Target:
    """The target of ``n_rows`` rows.

    ``"auto"`` takes categories, strings, bools and other objects for classes, and numbers with a
    fraction for regression. Whole numbers are classes if at most 100 of them are distinct and each
    occurs twice on average; name the task where that guess is wrong.

    Raises:
        ValueError: For an unknown task, missing or infinite values, another length than the
            table, more than one column, or a regression target that is not numeric.
        TypeError: For labels without a hash.
    """
    if task not in ("auto", *TASKS):
        raise ValueError(f"task must be 'auto' or one of {TASKS}, got {task!r}.")
    array = np.asarray(y, dtype=None if hasattr(y, "dtype") else object)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise ValueError(f"y must be one column (n,), got shape {array.shape}.")
    if len(array) != n_rows:
        raise ValueError(f"X has {n_rows} rows but y has {len(array)}.")
    objects = array.astype(object)
    missing = int(missing_objects(objects).sum())
    if missing:
        raise ValueError(f"y has {missing} missing value(s): drop these rows of X and y.")
    numbers = _numbers(objects)
    if numbers is not None and np.isinf(numbers).any():
        raise ValueError("y has infinite values: drop these rows of X and y.")
    if task == "auto":
        named = (
            str(getattr(y, "dtype", "")).lower().startswith(("category", "categorical", "enum"))
        )
        number = not named and numbers is not None and _continuous(numbers)
        task = "regression" if number else "classification"
    if task == "classification":
        try:
            return Target("classification", first_appearance_codes(objects))
        except TypeError:
            raise TypeError("y holds labels without a hash: use strings or numbers.") from None
    if numbers is None:
        raise ValueError("task='regression' needs a numeric y: this one holds other values.")
    return Target("regression", numbers)


def _numbers(objects: npt.NDArray[Any]) -> FloatArray | None:
    return objects.astype(np.float64) if only_numbers(objects) else None


def _continuous(numbers: FloatArray) -> bool:
    if (numbers != np.round(numbers)).any():
        return True
    distinct = len(np.unique(numbers))
    return distinct > _MOST_CLASSES or 2 * distinct > max(len(numbers), 4)
