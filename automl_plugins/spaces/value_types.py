"""What untyped values are: the type of a hyperparameter, and the identity of a category.

Source: van Hoof, "GBQR" thesis (2018), section 3.1, tables 3.1-3.7. Each value has a kind: none,
bool, number, string, object, or missing (NaN).
"""

from __future__ import annotations

import inspect
import math
import numbers
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from decimal import Decimal
from enum import StrEnum
from typing import Any, Final

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]


class ParameterType(StrEnum):
    """What the values of one hyperparameter are (thesis table 3.1)."""

    NUMERIC = "numeric"
    NOMINAL = "nominal"
    BOOLEAN = "boolean"
    MIXED = "mixed"
    OBJECT = "object"


class _Null(str):
    """Tells the marker below from a category that is called "null"."""


NULL: Final = _Null("null")  # in the nominal part of a mixed column: the value was a number
UNKNOWN: Final = "<unkn>"  # the category with index 0

_BOOLS: Final = (bool, np.bool_)
_NUMBERS: Final = (int, float, numbers.Real, Decimal)  # the quick checks first


def to_float(value: Any) -> float:
    """Return ``float(value)``; infinite where it overflows, NaN where it is no number."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
    except (TypeError, ValueError):
        return math.nan


def kind_of(value: Any) -> str:
    """Return the kind of one value; numpy scalars count as their Python kinds."""
    if value is None:
        return "none"
    if isinstance(value, _BOOLS):
        return "bool"
    if isinstance(value, str):
        return "string"
    if isinstance(value, _NUMBERS):
        return "missing" if math.isnan(to_float(value)) else "number"
    # A data frame's missing values, told by name so that pandas need not be imported.
    return "missing" if type(value).__name__ in ("NAType", "NaTType") else "object"


def truth(value: Any) -> float:
    """Return 0 or 1 for one of {True, False, 0, 1}, NaN for anything else."""
    number = to_float(value) if kind_of(value) in ("bool", "number") else math.nan
    return number if number in (0.0, 1.0) else math.nan


def detect_type(values: Iterable[Any]) -> ParameterType:
    """Return the type of a hyperparameter that takes ``values`` (thesis 3.1.1, table 3.1).

    Any object makes the column OBJECT. Next, a bool makes it BOOLEAN if every value is one of
    {True, False, 0, 1}; beside any other value a bool is a category like a string. Else numbers
    alone are NUMERIC, no numbers NOMINAL, both MIXED.

    None is ignored for OBJECT and BOOLEAN and is a category otherwise: {9, None} is MIXED. NaN
    is a missing value and never counts; without any value: NOMINAL.
    """
    present = [value for value in values if kind_of(value) != "missing"]
    kinds = {kind_of(value) for value in present}
    if "object" in kinds:
        return ParameterType.OBJECT
    if "bool" in kinds and not any(math.isnan(truth(v)) for v in present if v is not None):
        return ParameterType.BOOLEAN
    if kinds == {"number"}:
        return ParameterType.NUMERIC
    return ParameterType.MIXED if "number" in kinds else ParameterType.NOMINAL


def split_mixed(values: Iterable[Any]) -> tuple[FloatArray, list[Any]]:
    """Return the numeric (n,) and the nominal part of ``values`` (thesis table 3.2).

    The numeric part is NaN where the value is no number, the nominal part "null" where it is one.
    """
    pairs = [(value, kind_of(value) == "number") for value in values]
    numeric = [to_float(value) if is_number else math.nan for value, is_number in pairs]
    return np.array(numeric, dtype=float), [NULL if is_num else value for value, is_num in pairs]


def category_key(value: Any) -> str:
    """Return the text that identifies a category, the same in every process.

    True, "True" and 1 differ; numpy scalars equal their Python values. Containers go by content,
    mappings and sets in any order; scikit-learn estimators by class and changed arguments;
    classes and functions by name; other instances by class and repr (by their attributes if the
    repr may show a set), or by class alone if the repr shows a memory address.
    """
    try:
        return _content(value)
    except Exception:  # foreign code: __repr__, get_params or __array__ may raise anything
        return f"<{_type_name(value)}>"


def category_labels(values: Iterable[Any]) -> dict[str, str]:
    """Return {key: label} of the categories, sorted by label in any case (thesis table 3.5).

    A label that several categories would share is replaced by their keys.
    """
    by_key = {category_key(value): value for value in values if kind_of(value) != "missing"}
    labels = {key: _label(value, key) for key, value in by_key.items()}
    count = Counter([UNKNOWN, *labels.values()])
    labels = {key: label if count[label] == 1 else key for key, label in labels.items()}
    return dict(sorted(labels.items(), key=lambda item: (item[1].casefold(), item[0])))


def _label(value: Any, key: str) -> str:
    """Return the readable name of a category (thesis table 3.7)."""
    if isinstance(value, str):
        return str.__str__(value)
    if kind_of(value) != "object" or isinstance(value, Mapping | list | tuple | set | frozenset):
        return key
    named = isinstance(value, type) or inspect.isroutine(value)
    return str((value if named else type(value)).__name__)


def _type_name(value: Any) -> str:
    return f"{type(value).__module__}.{type(value).__qualname__}"


def _changed_arguments(estimator: Any) -> dict[str, Any]:
    """Return the arguments of a scikit-learn estimator that differ from their defaults."""
    known = inspect.signature(type(estimator)).parameters
    given = sorted(estimator.get_params(deep=False).items())
    return {
        name: argument
        for name, argument in given
        if name not in known or _content(argument) != _content(known[name].default)
    }


def _content(value: Any, path: tuple[int, ...] = ()) -> str:
    """Return the recursive part of `category_key`; ``path`` holds the ids of the containers."""
    kind = kind_of(value)
    if kind == "string":
        return "null" if value is NULL else repr(str.__str__(value))
    if kind == "number":
        return repr(int(value) if isinstance(value, numbers.Integral) else to_float(value))
    if kind != "object":
        return "nan" if kind == "missing" else str(value)
    if id(value) in path or len(path) > 50:
        return "..."
    path = (*path, id(value))
    if isinstance(value, Mapping):
        items = (f"{_content(k, path)}: {_content(v, path)}" for k, v in value.items())
        return "{" + ", ".join(sorted(items)) + "}"
    if isinstance(value, set | frozenset):
        return "set(" + ", ".join(sorted(_content(item, path) for item in value)) + ")"
    if isinstance(value, list | tuple):
        listed = ", ".join(_content(item, path) for item in value)
        return f"({listed})" if isinstance(value, tuple) else f"[{listed}]"
    if hasattr(value, "__qualname__"):  # classes and functions
        return f"{value.__module__}.{value.__qualname__}"
    if hasattr(value, "__array__"):  # whose repr may be abridged
        return _type_name(value) + _content(np.asarray(value).tolist(), path)
    if hasattr(value, "get_params"):
        changed = (f"{k}={_content(v, path)}" for k, v in _changed_arguments(value).items())
        return f"{_type_name(value)}({', '.join(changed)})"
    text = repr(value)
    if re.search(r"0x[0-9a-fA-F]{6}", text) or str(id(value)) in text:
        return f"<{_type_name(value)}>"
    if "{" in text and hasattr(value, "__dict__"):  # may show a set in the order of its hashes
        return _type_name(value) + _content(vars(value), path)
    return f"{_type_name(value)} {text}"
