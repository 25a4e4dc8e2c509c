"""Values of hyperparameters: when two are the same, and which choice a recorded value stands for.

Recorded values come from files, data frames and other frameworks, where ``True`` may be text, a
tuple a list, and a whole number a float. ConfigSpace compares with ``==``, for which True is 1,
and keeps choices in an array, which turns ``[1.5, True]`` into ``[1.5, 1.0]``. Hence:

- Values of different kinds differ: None, truth values, numbers, texts, missing (NaN), others.
- Numbers are compared by value, whatever their type; a list is the same as a tuple.
- Vectors hold the index of a category, and the index gives the choice itself.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from ConfigSpace import Configuration, ConfigurationSpace
from ConfigSpace.hyperparameters import (
    CategoricalHyperparameter,
    Constant,
    OrdinalHyperparameter,
)

from automl_plugins.spaces.value_types import kind_of

FloatArray = npt.NDArray[np.float64]

_WORDS = {"none": None, "true": True, "false": False, "nan": math.nan}
_LONGEST = 1000  # characters of a text that is read as a value


# --- identity --------------------------------------------------------------------------------


def same(a: Any, b: Any) -> bool:
    """Whether two values of a hyperparameter are one.

    1 and 1.0 are, and a tuple and a list of the same values; NaN is itself. True and 1 are not,
    nor are None and NaN, nor a value and its text. numpy's scalars count as Python's; a float of
    less than double precision is the number that it prints.
    """
    a, b = plain(a), plain(b)
    if a is b:
        return True
    kind = kind_of(a)
    if kind != kind_of(b):
        return False
    if kind in ("none", "missing"):
        return True
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        return len(a) == len(b) and all(key in b and same(a[key], b[key]) for key in a)
    try:
        return bool(a == b)
    except Exception:  # whatever the == of a foreign class does
        return False


def find(choices: Iterable[Any], value: Any) -> int | None:
    """Index of the choice that a recorded value stands for; None if it stands for none.

    The first of these rules that finds a choice counts:

    1. The same value of the same type: 1.0 among ``[1, True, 1.0]`` is the last.
    2. The ``same`` value.
    3. A text and a choice that is written like it: "none" is the choice None, and "1" or "true"
       the choices 1 or True where no choice is a text. A value is also found among texts:
       None is the choice "None", 0.5 the choice "0.5".
    """
    choices, value = list(choices), plain(value)
    found = _first(choices, value)
    if found is not None:
        return found
    if not isinstance(value, str):
        return _first([read(c) if isinstance(c, str) else _NOTHING for c in choices], value)
    texts = [c.lower() if isinstance(c, str) else _NOTHING for c in choices]
    if value.lower() in _WORDS and (found := _first(texts, value.lower())) is not None:
        return found
    meant = read(value)
    if isinstance(meant, str) or (meant is not None and any(t is not _NOTHING for t in texts)):
        return None
    return _first(choices, meant)


def plain(value: Any) -> Any:
    """A value as a builtin, where it is of numpy."""
    if isinstance(value, np.ndarray):
        return [plain(item) for item in value] if value.ndim else plain(value[()])
    if isinstance(value, np.floating) and not isinstance(value, float):
        return float(str(value))  # 0.1 in single precision is 0.10000000149 in double
    return value.item() if isinstance(value, np.generic) else value


_NOTHING = object()  # no value is the same


def _first(choices: Sequence[Any], value: Any) -> int | None:
    rules: tuple[Callable[[Any, Any], bool], ...] = (_alike, same)
    found = (i for rule in rules for i, choice in enumerate(choices) if rule(choice, value))
    return next(found, None)


def _alike(a: Any, b: Any) -> bool:
    """Whether two values are the same and of one type, throughout."""
    a, b = plain(a), plain(b)
    if a is b:
        return True
    if type(a) is not type(b) or not same(a, b):
        return False
    return not isinstance(a, list | tuple) or all(map(_alike, a, b))


def read(text: str) -> Any:
    """The value that a text writes, such as "none", "1e-3" or "(1, 2)"; else the text itself."""
    if (word := text.strip().lower()) in _WORDS:
        return _WORDS[word]
    if len(text) > _LONGEST or "_" in text or "\\" in text:
        return text
    try:
        if text.strip()[:1] in ("(", "["):
            return ast.literal_eval(text.strip())
        return float(text) if set(".eEnN") & set(text) else int(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return text


# --- vectors ---------------------------------------------------------------------------------


def to_values(space: ConfigurationSpace, vectors: FloatArray) -> list[dict[str, Any]]:
    """Active values by name of each vector (n, d), as builtins; categories as their choices."""
    columns = {}
    for name, column in space.index_of.items():
        active = ~np.isnan(vectors[:, column])
        found = iter(_values(space[name], vectors[active, column]))
        there = active.tolist()
        columns[name] = [(next(found) if here else None, here) for here in there]
    rows = zip(*columns.values(), strict=True)
    return [
        {name: value for name, (value, there) in zip(columns, row, strict=True) if there}
        for row in rows
    ]


def values_of(configuration: Configuration) -> dict[str, Any]:
    """Active values by name of a configuration, as builtins; categories as their choices.

    Real numbers are rounded as ConfigSpace does, to 13 places: what a target function is given.
    """
    space, vector = configuration.config_space, configuration.get_array()
    values = {}
    for name, value in configuration.items():
        known = _listed(space[name])
        values[name] = (
            plain(value) if known is None else known[round(vector[space.index_of[name]])]
        )
    return values


def _values(hyperparameter: Any, entries: FloatArray) -> list[Any]:
    """Values (n) of the active entries (n,) of one column."""
    if isinstance(hyperparameter, Constant):
        return [plain(hyperparameter.value)] * len(entries)
    known = _listed(hyperparameter)
    if known is None:
        return [plain(value) for value in hyperparameter.to_value(entries)]
    return [known[i] for i in np.rint(entries).astype(np.int64).tolist()]


def _listed(hyperparameter: Any) -> list[Any] | None:
    """The values of a category or ordinal, by index."""
    if isinstance(hyperparameter, CategoricalHyperparameter):
        return [plain(choice) for choice in hyperparameter.choices]
    if isinstance(hyperparameter, OrdinalHyperparameter):
        return [plain(value) for value in hyperparameter.sequence]
    return None


def as_configuration(space: ConfigurationSpace, vector: FloatArray) -> Configuration:
    """The configuration of a vector (d,) in canonical form: equal ones hash equally."""
    return Configuration(space, vector=np.array(vector, dtype=np.float64))
