"""Values of hyperparameters: when two are the same, and which one a recorded value stands for.

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
import numbers
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from enum import Enum
from functools import partial
from typing import Any, Final

import numpy as np
from ConfigSpace import Configuration, ConfigurationSpace
from ConfigSpace.hyperparameters import (
    CategoricalHyperparameter,
    Constant,
    FloatHyperparameter,
    Hyperparameter,
    IntegerHyperparameter,
    OrdinalHyperparameter,
)
from ConfigSpace.hyperparameters.hp_components import ROUND_PLACES

from automl_plugins.arrays import FloatArray, IndexArray
from automl_plugins.spaces.ranges import scale_of
from automl_plugins.spaces.scales import Steps


class _Absent(Enum):
    ABSENT = "absent"


#: Stands for no value, because None may be a value.
ABSENT: Final = _Absent.ABSENT

_WORDS = {"none": None, "true": True, "false": False, "nan": math.nan}
# Longest text that is read as a value: Python takes seconds for a megabyte of numbers.
_LONGEST = 1000
_LEAST, _LARGEST = sys.float_info.min, sys.float_info.max
_BOOLS: Final = (bool, np.bool_)
_NUMBERS: Final = (int, float, numbers.Real, Decimal)  # the quick checks first


# --- kinds -----------------------------------------------------------------------------------


def kind_of(value: Any) -> str:
    """Kind of one value: none, bool, number, string, object, or missing (NaN).

    numpy scalars count as their Python kinds.
    """
    if value is None:
        return "none"
    if isinstance(value, _BOOLS):  # before numbers: to Python, True is one
        return "bool"
    if isinstance(value, str):
        return "string"
    if isinstance(value, _NUMBERS):
        return "missing" if math.isnan(to_float(value)) else "number"
    # A data frame's missing values, recognised by name so that pandas need not be imported.
    return "missing" if type(value).__name__ in ("NAType", "NaTType") else "object"


def to_float(value: Any) -> float:
    """``float(value)``; infinite where it overflows, NaN where it is not a number."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
    except (TypeError, ValueError):
        return math.nan


# --- identity --------------------------------------------------------------------------------


def same(a: Any, b: Any) -> bool:
    """Whether two values of a hyperparameter are the same.

    1 and 1.0 are the same, a tuple and a list of the same values, and NaN and NaN. True and 1
    differ, None and NaN, and a value and its text. numpy scalars count as Python's; a float of
    less than double precision is the number that it prints.
    """
    a, b = plain(a), plain(b)
    if a is b:  # even if its == says otherwise
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
    except Exception:  # the == of a foreign class may raise anything
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
    found = index_of(choices, value)
    if found is not None:
        return found
    if not isinstance(value, str):
        return index_of([read(c) if isinstance(c, str) else _NOTHING for c in choices], value)
    texts = [c.lower() if isinstance(c, str) else _NOTHING for c in choices]
    # Before it is read: among texts "None" is a choice, not the value None.
    if value.lower() in _WORDS and (found := index_of(texts, value.lower())) is not None:
        return found
    meant = read(value)
    if isinstance(meant, str) or (meant is not None and any(t is not _NOTHING for t in texts)):
        return None
    return index_of(choices, meant)


def finder(choices: Iterable[Any]) -> Callable[[Any], int | None]:
    """A function that returns ``find(choices, value)`` and remembers its results."""
    listed = list(choices)
    known: dict[tuple[type, Any], int | None] = {}  # a study repeats its choices in every trial

    def place(value: Any) -> int | None:
        value = plain(value)
        if not isinstance(value, _ATOMS):  # (1,) and (True,) are equal keys
            return find(listed, value)
        # With its type, as 1 and True are equal keys; as text, as two NaN are different keys.
        key = type(value), ("nan" if value != value else value)
        if key not in known:
            known[key] = find(listed, value)
        return known[key]

    return place


def plain(value: Any) -> Any:
    """A value with builtin types in place of numpy's: 1 for ``np.int64(1)``, lists for arrays."""
    if isinstance(value, np.ndarray):
        return [plain(item) for item in value] if value.ndim else plain(value[()])
    if isinstance(value, np.floating) and not isinstance(value, float):
        return float(str(value))  # 0.1 in single precision is 0.10000000149 in double
    return value.item() if isinstance(value, np.generic) else value


_NOTHING = object()  # no value is the same
_ATOMS = (bool, int, float, str, type(None))


def index_of(choices: Sequence[Any], value: Any) -> int | None:
    """Index of the choice that is the ``same``, of the same type if possible; None without any."""
    # All choices by the stricter rule first: of 1 and 1.0 the one of the value's type is found.
    rules: tuple[Callable[[Any, Any], bool], ...] = (are_identical, same)
    found = (i for rule in rules for i, choice in enumerate(choices) if rule(choice, value))
    return next(found, None)


def are_identical(a: Any, b: Any) -> bool:
    """Whether two values are the same and of one type, throughout."""
    a, b = plain(a), plain(b)
    if a is b:
        return True
    if type(a) is not type(b) or not same(a, b):
        return False
    return not isinstance(a, list | tuple) or all(map(are_identical, a, b))


def read(text: str) -> Any:
    """The value that a text like "none", "1e-3" or "(1, 2)" stands for; else the text itself."""
    if (word := text.strip().lower()) in _WORDS:
        return _WORDS[word]
    # Python reads 1_000 as 1000, and warns of escapes that it does not know.
    if len(text) > _LONGEST or "_" in text or "\\" in text:
        return text
    try:
        if text.strip()[:1] in ("(", "["):
            return ast.literal_eval(text.strip())
        # A whole number stays an ``int``: a float beyond 2^53 may differ. "n" is for nan and inf.
        return float(text) if set(".eEnN") & set(text) else int(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return text


def to_number(value: Any) -> float:
    """The number that a recorded value stands for, such as 2.0 for 2 and "2".

    NaN for anything else, such as True, None and "a".
    """
    value = read(value) if isinstance(value, str) else value
    return to_float(value) if kind_of(value) == "number" else math.nan


# --- values of a hyperparameter --------------------------------------------------------------


def reader(hyperparameter: Hyperparameter[Any, Any]) -> Callable[[Any], Any]:
    """A function that returns the value of a hyperparameter that a recorded one stands for.

    It returns ``ABSENT`` for anything that is not a value of the hyperparameter, such as another
    choice or a number outside the range. Numbers are returned as recorded, but with the type of
    the hyperparameter, and moved to a step or an end of the range that rounding has missed.
    """
    known = choices_of(hyperparameter)
    if known is None:
        return _number_reader(hyperparameter)
    place = placer(hyperparameter)
    return lambda value: ABSENT if (index := place(value)) is None else known[index]


def placer(hyperparameter: Hyperparameter[Any, Any]) -> Callable[[Any], int | None]:
    """A function that returns the index of a recorded value in ``choices_of``, or None."""
    known = choices_of(hyperparameter) or []
    place = finder(known)
    if not isinstance(hyperparameter, OrdinalHyperparameter):
        return place
    numbers = numbers_of(known)

    def nearest(value: Any) -> int | None:  # an ordered number that rounding has missed
        if (index := place(value)) is not None:
            return index
        close = np.flatnonzero(np.isclose(numbers, to_number(value), rtol=1e-9, atol=0.0))
        return int(close[0]) if close.size else None

    return nearest


def _number_reader(hyperparameter: Any) -> Callable[[Any], Any]:
    assert isinstance(hyperparameter, FloatHyperparameter | IntegerHyperparameter)
    low, high = hyperparameter.lower, hyperparameter.upper
    whole = isinstance(hyperparameter, IntegerHyperparameter)
    scale = scale_of(hyperparameter)
    if isinstance(scale, Steps):
        return partial(_step, scale)

    def integer(value: Any) -> Any:
        # Not by way of a float, which may be another integer beyond 2^53.
        number = value if type(value) is int else to_number(plain(value))
        return int(number) if low <= number <= high and number == int(number) else ABSENT

    def real(value: Any) -> Any:
        number = value if type(value) is float else to_number(plain(value))
        if low <= number <= high:
            return number
        return min(max(number, float(low)), float(high)) if is_near(number, low, high) else ABSENT

    return integer if whole else real


def is_near(numbers: Any, low: float, high: float) -> Any:
    """Whether numbers, rounded to 13 places as ConfigSpace rounds ends, lie in a range."""
    with np.errstate(over="ignore", invalid="ignore"):
        rounded = np.round(numbers, ROUND_PLACES)
        return np.isfinite(numbers) & (low <= rounded) & (rounded <= high)


def nearest(numbers: FloatArray, choices: FloatArray, *, by_ratio: bool) -> IndexArray:
    """Index (n,) of the choice (k,) nearest to each number; choices may be NaN.

    With ``by_ratio`` 4 is nearer to 10 than to 1; what is not positive is the least number then.
    """
    # Infinities have no difference, nor have floats as large as they get; halves have.
    least = _LEAST if by_ratio else -_LARGEST
    a, b = (np.clip(found, least, _LARGEST) / 2.0 for found in (numbers, choices))
    if by_ratio:
        a, b = np.log(a), np.log(b)
    return np.asarray(np.nanargmin(np.abs(a[:, None] - b), axis=1))


def _step(steps: Steps, value: Any) -> Any:
    number = to_number(value)
    if math.isnan(number) or not steps.legal_value(np.array([number]))[0]:
        return ABSENT
    (found,) = steps.to_value(steps.to_vector(np.array([number]))).tolist()
    if not steps.is_integer:
        return found
    # A recorded ``int`` is kept: several integers beyond 2^53 are one float.
    return value if type(value) is int and float(value) == found else int(found)


def numbers_of(choices: Sequence[Any]) -> FloatArray:
    """Choices as numbers (k,), NaN for those that are not numbers."""
    numbers = [math.nan if isinstance(choice, str) else to_number(choice) for choice in choices]
    return np.array(numbers, dtype=np.float64)


def choices_of(hyperparameter: Hyperparameter[Any, Any]) -> list[Any] | None:
    """The values of a category, ordinal or constant as builtins, by index; None for a range."""
    if isinstance(hyperparameter, CategoricalHyperparameter):
        return [plain(choice) for choice in hyperparameter.choices]
    if isinstance(hyperparameter, OrdinalHyperparameter):
        return [plain(value) for value in hyperparameter.sequence]
    if isinstance(hyperparameter, Constant):
        return [plain(hyperparameter.value)]
    return None


def is_same_space(
    a: ConfigurationSpace,
    b: ConfigurationSpace,
    *,
    agree: Callable[[Any, Any], bool] = are_identical,
) -> bool:
    """Whether two spaces are equal, and a vector of one is the same configuration of the other.

    To ConfigSpace choices are equal in any order, 1 is True, and 100 is 100.0; here they are not.
    ``agree`` compares the ``choices_of`` a hyperparameter in the two spaces.
    """
    if a is b:
        return True
    return a == b and all(agree(choices_of(a[name]), choices_of(b[name])) for name in a)


# --- vectors ---------------------------------------------------------------------------------


def to_vector(space: ConfigurationSpace, values: Mapping[str, Any]) -> FloatArray:
    """Vector (d,) of values by name; NaN for a missing or illegal one."""
    entries = [
        encoder(space[name])(values[name]) if name in values else math.nan for name in space.at
    ]
    return np.array(entries, dtype=np.float64)


def encoder(hyperparameter: Hyperparameter[Any, Any]) -> Callable[[Any], float]:
    """A function that returns the vector entry of a recorded value, NaN if it is illegal."""
    if isinstance(hyperparameter, CategoricalHyperparameter | OrdinalHyperparameter):
        place = placer(hyperparameter)
        return lambda value: math.nan if (index := place(value)) is None else float(index)
    read_value = reader(hyperparameter)  # for a constant, too: its entry is not its index

    def entry(value: Any) -> float:
        found = read_value(value)
        return math.nan if found is ABSENT else float(hyperparameter.to_vector(found))

    return entry


def to_values(space: ConfigurationSpace, vectors: FloatArray) -> list[dict[str, Any]]:
    """Active values by name of each vector (n, d), as builtins; categories as their choices."""
    rows: list[dict[str, Any]] = [{} for _ in vectors]
    for name, column in space.index_of.items():
        active = np.flatnonzero(~np.isnan(vectors[:, column]))
        values = _values(space[name], vectors[active, column])
        for row, value in zip(active.tolist(), values, strict=True):
            rows[row][name] = value
    return rows


def values_of(configuration: Configuration) -> dict[str, Any]:
    """Active values by name of a configuration, as builtins; categories as their choices.

    Real numbers are rounded as ConfigSpace does, to 13 places: what a target function is given.
    """
    space, vector = configuration.config_space, configuration.get_array()
    values = {}
    for name, value in configuration.items():
        known = choices_of(space[name])
        entry = vector[space.index_of[name]]
        values[name] = plain(value) if known is None else known[_index(known, entry)]
    return values


def _values(hyperparameter: Any, entries: FloatArray) -> list[Any]:
    """Values (n) of the active entries (n,) of one column."""
    known = choices_of(hyperparameter)
    if known is None:
        cast = int if isinstance(hyperparameter, IntegerHyperparameter) else plain
        return [cast(value) for value in hyperparameter.to_value(entries)]
    return [known[_index(known, entry)] for entry in entries.tolist()]


def _index(known: Sequence[Any], entry: float) -> int:
    return round(entry) if len(known) > 1 else 0  # the entry of a constant is 1


def as_configuration(space: ConfigurationSpace, vector: FloatArray) -> Configuration:
    """The configuration of a vector (d,) in canonical form: equal ones hash equally."""
    # From the vector: one that is made from values is equal but hashes otherwise, and SMAC takes
    # it for another. From a copy: the configuration keeps the array.
    return Configuration(space, vector=np.array(vector, dtype=np.float64))
