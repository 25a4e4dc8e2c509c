"""A user's table and its target, read once.

Numbers are floats with NaN for missing; categories are codes with -1 for missing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from automl_plugins._arguments import check_choice
from automl_plugins.arrays import BoolArray, FloatArray, IntArray

# Known by their names: no library of frames is imported to recognise its own.
_MISSING_TYPES = ("NoneType", "NAType", "NaTType")


@dataclass(frozen=True)
class Column:
    """An input column: numbers (n,), or codes (n,) that count categories by first appearance."""

    nominal: bool
    values: FloatArray | IntArray

    @property
    def missing(self) -> BoolArray:
        """Which values are missing (n,)."""
        return self.values < 0 if self.nominal else np.isnan(self.values)

    @property
    def known(self) -> FloatArray | IntArray:
        """The values that are not missing (m,)."""
        return self.values[~self.missing]

    @property
    def varies(self) -> bool:
        """Whether two values differ; in a nominal column "missing" is a value."""
        values = self.values if self.nominal else self.known
        return len(values) > 0 and bool(values.min() < values.max())

    def take(self, rows: IntArray) -> Column:
        """The same column at these rows."""
        return Column(self.nominal, self.values[rows])


def read_table(X: Any, nominal: Sequence[Any] | npt.NDArray[Any] | None = None) -> list[Column]:
    """The columns of a data frame, of an array (n, p), or of n rows of p values.

    Which are nominal, and what is missing, see ``meta_features``; times count as numbers. Frames
    are used through ``frame.columns`` and ``frame[name]``, so any library's will do.
    """
    names, raw = _columns_of(X)
    if not raw:
        raise ValueError("X has no columns: meta-features need at least one.")
    if len(raw[0]) == 0:
        raise ValueError("X has no rows: meta-features need at least one.")
    kinds = [None] * len(names) if nominal is None else _nominal_mask(nominal, names)
    return [
        _read_column(str(name), column, kind)
        for name, column, kind in zip(names, raw, kinds, strict=True)
    ]


def _columns_of(X: Any) -> tuple[list[Any], list[Any]]:
    if hasattr(X, "columns") and hasattr(X, "__getitem__"):
        names = list(X.columns)
        if len(set(names)) == len(names):
            return names, [X[name] for name in names]
        # Only pandas has names twice, and gives both columns for one.
        return names, [X.iloc[:, j] for j in range(len(names))]
    if hasattr(X, "tocsr"):
        raise TypeError("X is a sparse matrix: pass X.toarray(), or a selection of its columns.")
    if isinstance(X, np.ma.MaskedArray):
        # Integers and truth values have no NaN.
        X = np.ma.filled(X.astype(np.float64 if X.dtype.kind in "biuf" else object), np.nan)
    # Of rows of numbers and texts NumPy would make texts only.
    array = np.asarray(X, dtype=None if isinstance(X, np.ndarray) else object)
    if array.ndim != 2:
        raise ValueError(
            f"X must be a frame or an array (n, p), got {array.ndim} dimension(s): "
            "use X.reshape(-1, 1) for a single column, and rows of equal length."
        )
    return list(range(array.shape[1])), list(array.T)


def _nominal_mask(nominal: Sequence[Any] | npt.NDArray[Any], names: list[Any]) -> list[bool]:
    if isinstance(nominal, str):
        raise TypeError(f"nominal must be a list of columns or a mask, got {nominal!r}.")
    asked = list(nominal)
    # Before numbers, for truth values are integers, too.
    if asked and all(isinstance(item, bool | np.bool_) for item in asked):
        if len(asked) != len(names):
            raise ValueError(f"nominal is a mask of {len(asked)}, but X has {len(names)} columns.")
        return [bool(item) for item in asked]
    mask = [False] * len(names)
    for item in asked:
        if item in names:
            mask[names.index(item)] = True
        elif isinstance(item, int | np.integer) and -len(names) <= item < len(names):
            mask[int(item)] = True
        else:
            raise ValueError(
                f"nominal has {item!r}, which is not a column of X: "
                f"use names or numbers in [0, {len(names)}), or a mask."
            )
    return mask


def _read_column(name: str, column: Any, nominal: bool | None) -> Column:
    kind = "O" if _is_categorical(column) else getattr(column.dtype, "kind", "O")
    if kind == "c":
        raise TypeError(f"column {name!r} holds complex numbers: pass their parts as two columns.")
    # Durations, dates and numbers.
    if kind in "mMiuf":
        values = _read_numbers(column, kind)
        return Column(True, _codes(values, np.isnan(values))) if nominal else Column(False, values)
    # Truth values, and the three kinds of text that NumPy has.
    if nominal is None and (kind in "bUST" or _is_categorical(column)):
        nominal = True
    if not nominal:
        objects = np.asarray(column, dtype=object)
        missing = missing_objects(objects)
        known = objects[~missing]
        if nominal is False or (len(known) and _only_numbers(known)):
            values = np.full(len(objects), np.nan)
            try:
                values[~missing] = _as_floats(known)
            except (TypeError, ValueError):
                raise ValueError(
                    f"column {name!r} is not in nominal, but not all of its values are numbers: "
                    "add it to nominal, or leave nominal=None to detect such columns."
                ) from None
            values[np.isinf(values)] = np.nan
            return Column(False, values)
    try:
        if hasattr(column, "factorize"):  # the same, faster
            return Column(True, np.asarray(column.factorize()[0], dtype=np.int64))
        objects = np.asarray(column, dtype=object)
        return Column(True, _codes(objects, missing_objects(objects)))
    except TypeError:
        raise TypeError(
            f"column {name!r} holds values without a hash: turn them into strings or numbers."
        ) from None


def _is_categorical(column: Any) -> bool:
    name = str(getattr(column, "dtype", "")).lower()
    return name.startswith(("category", "categorical", "enum"))


def _read_numbers(column: Any, kind: str) -> FloatArray:
    if kind in "mM":
        dtype = column.dtype
        if not isinstance(dtype, np.dtype):  # of pandas, with a time zone
            dtype = f"{kind}8[{getattr(dtype, 'unit', 'ns')}]"
        return _nanoseconds(np.asarray(column, dtype=dtype))
    # Copies, for infinite values are replaced in them, and X stays as it is.
    convert: Callable[..., Any] | None = getattr(column, "to_numpy", None)
    if convert is not None and not isinstance(column.dtype, np.dtype):
        values = np.array(convert(dtype=np.float64, na_value=np.nan))
    else:
        values = np.array(column, dtype=np.float64)
    values[np.isinf(values)] = np.nan
    return values


def _nanoseconds(times: npt.NDArray[Any]) -> FloatArray:
    """Dates or durations (n,) as floats; integers of nanoseconds end with the year 2262."""
    unit, count = np.datetime_data(times.dtype)
    if unit in ("Y", "M", "generic"):  # of no length in nanoseconds
        unit, count = ("ns" if unit == "generic" else "s"), 1
        times = times.astype(f"{times.dtype.kind}8[{unit}]")
    length = np.ones(1, dtype=f"m8[{count}{unit}]") / np.timedelta64(1, "ns")
    return np.where(np.isnat(times), np.nan, times.astype(np.int64) * length)


def missing_objects(column: npt.NDArray[Any]) -> BoolArray:
    """Which objects (n,) are None, NaN, or a frame library's missing value."""
    types = set(map(type, column))
    lacking = {t for t in types if t.__name__ in _MISSING_TYPES}
    floats = {t for t in types if issubclass(t, float | np.floating | Decimal)}
    return np.array(
        [type(v) in lacking or (type(v) in floats and v != v) for v in column], dtype=np.bool_
    )


def _only_numbers(known: npt.NDArray[Any]) -> bool:
    """Whether all objects (n,) are numbers; bools do not count."""
    types = set(map(type, known))
    return all(issubclass(t, int | float | np.number | Decimal) and t is not bool for t in types)


def _as_floats(known: npt.NDArray[Any]) -> FloatArray:
    """Numbers as floats (n,); whole numbers beyond all floats are infinite."""
    try:
        return np.asarray(known.astype(np.float64))
    except OverflowError:
        largest = np.finfo(np.float64).max
        known = np.where(known > largest, np.inf, np.where(known < -largest, -np.inf, known))
        return np.asarray(known.astype(np.float64))


def _codes(values: npt.NDArray[Any], missing: BoolArray) -> IntArray:
    """Codes (n,) of values (n,), counted by first appearance; -1 where missing."""
    index: dict[Any, int] = {}
    codes = np.full(len(values), -1, dtype=np.int64)
    codes[~missing] = [index.setdefault(value, len(index)) for value in values[~missing].tolist()]
    return codes


Task = Literal["classification", "regression"]
TASKS: tuple[Task, ...] = get_args(Task)

_MOST_CLASSES = 100  # integers with more distinct values are taken for numbers


@dataclass(frozen=True)
class Target:
    """The target: class codes (n,), counted by first appearance, or numbers (n,)."""

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
    """The target of ``n_rows`` rows; what ``"auto"`` is, see ``meta_features``."""
    check_choice("task", task, ("auto", *TASKS))
    # A frame of one column.
    if len(getattr(y, "columns", ())) == 1:
        y = y[y.columns[0]]
    if isinstance(y, np.ma.MaskedArray):
        y = np.ma.filled(y.astype(object), np.nan)
    array = np.asarray(y, dtype=None if hasattr(y, "dtype") else object)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise ValueError(f"y must be one column (n,), got shape {array.shape}.")
    if len(array) != n_rows:
        raise ValueError(f"X has {n_rows} rows but y has {len(array)}.")
    objects = array.astype(object)
    missing = missing_objects(objects)
    if missing.any():
        raise ValueError(f"y has {missing.sum()} missing value(s): drop these rows of X and y.")
    numbers = _as_floats(objects) if _only_numbers(objects) else None
    if numbers is not None and np.isinf(numbers).any():
        raise ValueError("y has infinite values: drop these rows of X and y.")
    if task == "auto":
        number = numbers is not None and not _is_categorical(y) and _is_continuous(numbers)
        task = "regression" if number else "classification"
    if task == "classification":
        try:
            return Target("classification", _codes(objects, missing))
        except TypeError:
            raise TypeError("y holds labels without a hash: use strings or numbers.") from None
    if numbers is None:
        raise ValueError("task='regression' needs a numeric y: this one holds other values.")
    return Target("regression", numbers)


def _is_continuous(numbers: FloatArray) -> bool:
    if (numbers != np.round(numbers)).any():
        return True
    distinct = len(np.unique(numbers))
    # Two values are classes, however few rows there are.
    return distinct > _MOST_CLASSES or 2 * distinct > max(len(numbers), 4)
