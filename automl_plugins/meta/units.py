"""Units of recorded values, by the names of hyperparameters: counts, fractions, texts.

van Hoof 2018, thesis 3.1.1: "sqrt" of ``max_features`` is sqrt(p) of the p columns of the data,
and 5 of ``min_samples_leaf`` is 5 of its n rows, or the fraction 5 / n. A search space holds
either counts or fractions; what was recorded as the other is converted with the sizes of the data
that it was recorded on.
"""

from __future__ import annotations

import math
import numbers
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple

import numpy as np
from ConfigSpace import ConfigurationSpace
from ConfigSpace.hyperparameters import (
    CategoricalHyperparameter,
    Constant,
    Hyperparameter,
    UniformFloatHyperparameter,
    UniformIntegerHyperparameter,
)

from automl_plugins.arrays import BoolArray, FloatArray
from automl_plugins.spaces.restriction import Range, domain_of
from automl_plugins.spaces.values import choices_of, numbers_of, read, to_number

Unit = Literal["count", "fraction"]

_COUNTED: Final = {
    "max_features": "n_features",
    "max_samples": "n_rows",
    "min_samples_leaf": "n_rows",
    "min_samples_split": "n_rows",
}
_WITH_WORDS: Final = ("max_features", "gamma")  # "sqrt" and "scale"
# The last two have no units, but values with a ``meaning``.
_AT_END: Final = re.compile(rf"(?:^|[._:/])({'|'.join(_COUNTED)}|gamma|max_depth)$")
_NO_LIMIT: Final = (-1.0, 0.0)  # as a ``max_depth``
_DEEP: Final = 20.0  # stands for trees of any depth, see ``meaning``


class DataSize(NamedTuple):
    """Rows and columns of the data of a task; None where they are not known."""

    n_rows: int | None = None
    n_features: int | None = None


def unit_of(hyperparameter: Hyperparameter[Any, Any]) -> Unit | None:
    """The unit of a range or of choices of numbers, by the end of the name; None if not clear.

    "rf.max_features", "rf__max_features" and "rf_max_features" are "max_features".
    """
    is_constant = isinstance(hyperparameter, Constant)
    if _last_part(hyperparameter.name) not in _COUNTED or is_constant:
        return None
    known = ends_of(hyperparameter)
    if not all(isinstance(value, numbers.Real) for value in known):
        return None
    is_whole = [isinstance(value, numbers.Integral) for value in known]
    if all(is_whole) or min(known) >= 1.0:
        return "count"
    # 1 beside fractions, among choices, may be meant as one of them.
    is_mixed = isinstance(hyperparameter, CategoricalHyperparameter) and any(is_whole)
    return "fraction" if max(known) <= 1.0 and not is_mixed else None


def ends_of(hyperparameter: Hyperparameter[Any, Any]) -> Sequence[Any]:
    """The least and the largest value of a range, or all values of another hyperparameter."""
    domain = domain_of(hyperparameter)
    return (domain.low, domain.high) if isinstance(domain, Range) else domain


def meaning(name: str, value: Any, size: DataSize) -> float:
    """The number that a text or None stands for; NaN if it does not stand for a number.

    ``max_features``: all for None, sqrt(p) for "sqrt" and "auto", log2(p) for "log2", at least
    one, as a fraction. ``gamma``: 1 / p for "auto", and for "scale", as on standardised columns.
    ``max_depth``: 20 for None, deep enough not to matter, not so deep as to stick out; also for
    the numbers that mean the same, see ``read_no_limit``.
    """
    p = size.n_features
    match _last_part(name), value:
        case "max_features", None:
            return 1.0
        case "max_features", "auto" | "sqrt" if p:
            return max(1.0, math.sqrt(p)) / p
        case "max_features", "log2" if p:
            return max(1.0, math.log2(p)) / p
        case "gamma", "auto" | "scale" if p:
            return 1.0 / p
        case "max_depth", None:
            return _DEEP
    return math.nan


def read_no_limit(hyperparameter: Hyperparameter[Any, Any], numbers: FloatArray) -> FloatArray:
    """Recorded numbers (n,), those that stand for no limit as that of None, see ``meaning``.

    ``max_depth`` is -1 or 0 in LightGBM, and 0 in XGBoost, for trees of any depth. Where the
    values of the search space begin below 1, these numbers mean there what they mean here.
    """
    if _last_part(hyperparameter.name) != "max_depth":
        return numbers
    # ``fmin`` does not warn of NaN, which texts are.
    least = np.fmin.reduce(numbers_of(ends_of(hyperparameter)))
    return np.where(np.isin(numbers, _NO_LIMIT) & (least >= 1.0), _DEEP, numbers)


def no_limit_among(name: str, choices: Sequence[Any], numbers: FloatArray) -> FloatArray:
    """Index (n,) of the choice that means no limit where the number does; NaN where none does.

    It is None, or the other one of the numbers of ``read_no_limit``.
    """
    means = (read(choice) if isinstance(choice, str) else choice for choice in choices)
    found = [i for i, value in enumerate(means) if value is None or to_number(value) in _NO_LIMIT]
    if _last_part(name) != "max_depth" or not found:
        return np.full(len(numbers), np.nan)
    return np.where(np.isin(numbers, _NO_LIMIT), found[0], np.nan)


def without_no_limit(name: str, choices: FloatArray) -> FloatArray:
    """Choices as numbers (k,), NaN for "no limit" beside positive ones: no number is near to it.

    It is -1, or 0 of a ``max_depth``, and would be the choice nearest to 0 or 1.
    """
    no_limit = _NO_LIMIT if _last_part(name) == "max_depth" else _NO_LIMIT[:1]
    is_lone = np.isin(choices, no_limit) & (np.count_nonzero(choices <= 0.0) == 1)
    return np.where(is_lone, np.nan, choices) if (choices > 0.0).any() else choices


def in_unit(
    name: str, values: Sequence[Any], known: FloatArray, unit: Unit, size: DataSize
) -> tuple[FloatArray, BoolArray]:
    """Recorded numbers (n,) in the unit of the search space, and a mask of those converted to it.

    A converted number is NaN if the size of the data is not known. ``known`` are the ``values`` as
    numbers, NaN where there is none; the number of a text is a fraction.

    As in scikit-learn a whole number is a count and a float up to 1 a fraction. A float above 1
    is a count, too: data frames turn a column of counts with gaps into floats. 1.0 has the unit of
    the other floats of the column; without others, that of the space.
    """
    is_whole = np.array([isinstance(value, numbers.Integral) for value in values], dtype=bool)
    is_number = np.array([isinstance(value, numbers.Real) for value in values], dtype=bool)
    is_float = is_number & ~is_whole
    floats = known[is_float]
    one_counts = (floats > 1.0).any() or (unit == "count" and not (floats < 1.0).any())
    is_count = is_whole | (is_float & ((known > 1.0) | ((known == 1.0) & one_counts)))
    other = ~np.isnan(known) & (is_count if unit == "fraction" else ~is_count)
    total = getattr(size, _COUNTED[_last_part(name)]) or math.nan
    converted = known / total if unit == "fraction" else known * total
    return np.where(other, converted, known), other


def as_numbers(name: str, values: Sequence[Any], size: DataSize) -> FloatArray:
    """Values of a hyperparameter with words (n,): words by their ``meaning``, counts as fractions.

    NaN for what is no number.
    """
    means = [read(value) if isinstance(value, str) else value for value in values]
    known = np.array([to_number(value) for value in means], dtype=np.float64)
    for i in np.flatnonzero(np.isnan(known)):
        known[i] = meaning(name, means[i], size)
    if _last_part(name) not in _COUNTED:
        return known
    return in_unit(name, means, known, "fraction", size)[0]


def has_words(hyperparameter: Hyperparameter[Any, Any]) -> bool:
    """Whether choices mean numbers without being numbers, as "sqrt" does, for data of known size.

    A depth without limit is no such word: it is far from all others, see ``no_limit_among``.
    """
    if _last_part(hyperparameter.name) not in _WITH_WORDS:
        return False
    texts = [c for c in choices_of(hyperparameter) or () if math.isnan(to_number(c))]
    known = [meaning(hyperparameter.name, text, DataSize(1, 1)) for text in texts]
    return bool((~np.isnan(known)).any())


def are_exponents(asked: Hyperparameter[Any, Any]) -> bool:
    """Whether a range is one of exponents if the recorded one was logarithmic.

    What was searched by its logarithm is positive: a range from -3 to 3 is of the exponents of
    ``C = 10 ** trial.suggest_float("C", -3, 3)``. A -1 may stand for no limit.
    """
    if not isinstance(asked, UniformFloatHyperparameter | UniformIntegerHyperparameter):
        return False
    return bool(asked.lower < -1)


def in_other_units(
    space: ConfigurationSpace, configurations: Sequence[Mapping[str, Any]]
) -> BoolArray:
    """Which runs (n,) have a count for a hyperparameter of fractions, or the reverse."""
    found = np.zeros(len(configurations), dtype=bool)
    for name, hyperparameter in space.items():
        if unit := unit_of(hyperparameter):
            values = [configuration.get(name) for configuration in configurations]
            known = np.array([to_number(value) for value in values], dtype=np.float64)
            found |= in_unit(name, values, known, unit, DataSize())[1]  # whatever the sizes
    return found


def _last_part(name: str) -> str:
    """What has a unit or a meaning here, after any prefix; empty for another name."""
    found = _AT_END.search(name)
    return found[1] if found else ""
