"""Untyped configurations, collected elsewhere, as a numeric feature matrix.

Source: van Hoof, "GBQR" thesis (2018), section 3.1, tables 3.1-3.7. Notation of this module::

    configurations  n mappings {name: value}; an absent name or NaN = inactive or missing
    kind            of one value: none, bool, number, string, object, missing
    X               features, shape (n, f), float64, sorted by parameter name
"""

from __future__ import annotations

import inspect
import math
import numbers
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from typing import Any, Final, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

FloatArray = npt.NDArray[np.float64]
Configurations = Sequence[Mapping[str, Any]]


class ParameterType(StrEnum):
    """What the values of one hyperparameter are (thesis table 3.1)."""

    NUMERIC = "numeric"
    NOMINAL = "nominal"
    BOOLEAN = "boolean"
    MIXED = "mixed"
    OBJECT = "object"


@dataclass(frozen=True)
class TaskFacts:
    """What known meanings need of a task: rows n, columns p, variance of all cells of X."""

    n_instances: int
    n_features: int
    x_variance: float = 1.0

    def __post_init__(self) -> None:
        """Refuse sizes below one and a variance that is none."""
        for name, least in (("n_instances", 1), ("n_features", 1), ("x_variance", 0)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, numbers.Real):
                raise TypeError(f"{name} must be a number, got {value!r}.")
            if not least <= float(value) < math.inf:
                raise ValueError(f"{name} must be finite and at least {least}, got {value!r}.")


Tasks = TaskFacts | Sequence[TaskFacts] | None
Imputer = Callable[[Any, TaskFacts | None], float | None]
"""A known meaning, ``rule(value, facts)``: a number, or None where the rule cannot tell."""

UNKNOWN: Final = "<unkn>"


class _Null(str):
    """Tells the marker below from a category that is called "null"."""


NULL: Final = _Null("null")  # in the nominal part of a mixed column: the value was a number


def _to_float(value: Any) -> float:
    """Return ``float(value)``; infinite where it overflows, NaN where it is no number."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
    except (TypeError, ValueError):
        return math.nan


_BOOLS: Final = (bool, np.bool_)
_NUMBERS: Final = (int, float, numbers.Real, Decimal)  # the quick checks first


def _kind(value: Any) -> str:
    """Return the kind of one value; numpy scalars count as their Python kinds."""
    if value is None:
        return "none"
    if isinstance(value, _BOOLS):
        return "bool"
    if isinstance(value, str):
        return "string"
    if isinstance(value, _NUMBERS):
        return "missing" if math.isnan(_to_float(value)) else "number"
    # A data frame's missing values, told by name so that pandas need not be imported.
    return "missing" if type(value).__name__ in ("NAType", "NaTType") else "object"


def _truth(value: Any) -> float:
    """Return 0 or 1 for one of {True, False, 0, 1}, NaN for anything else."""
    number = _to_float(value) if _kind(value) in ("bool", "number") else math.nan
    return number if number in (0.0, 1.0) else math.nan


def detect_type(values: Iterable[Any]) -> ParameterType:
    """Return the type of a hyperparameter that takes ``values`` (thesis 3.1.1, table 3.1).

    Any object makes the column OBJECT. Next, a bool makes it BOOLEAN if every value is one of
    {True, False, 0, 1}. Beside any other value (True, "auto", 3) a bool is a category like a
    string, so such a column is NOMINAL, or MIXED if it holds numbers: read as BOOLEAN, "auto"
    and 3 would be lost. Else numbers alone are NUMERIC, no numbers NOMINAL, both MIXED.

    None is ignored for OBJECT and BOOLEAN and is a category otherwise: {9, None} is MIXED, None
    alone NOMINAL. NaN is a missing value and never counts; without any value: NOMINAL.
    """
    present = [value for value in values if _kind(value) != "missing"]
    kinds = {_kind(value) for value in present}
    if "object" in kinds:
        return ParameterType.OBJECT
    if "bool" in kinds and not any(math.isnan(_truth(v)) for v in present if v is not None):
        return ParameterType.BOOLEAN
    if kinds == {"number"}:
        return ParameterType.NUMERIC
    return ParameterType.MIXED if "number" in kinds else ParameterType.NOMINAL


def split_mixed(values: Iterable[Any]) -> tuple[FloatArray, list[Any]]:
    """Return the numeric (n,) and the nominal part of ``values`` (thesis table 3.2).

    The numeric part is NaN where the value is no number, the nominal part "null" where it is one.
    """
    pairs = [(value, _kind(value) == "number") for value in values]
    numeric = [_to_float(value) if is_number else math.nan for value, is_number in pairs]
    return np.array(numeric, dtype=float), [NULL if is_num else value for value, is_num in pairs]


def _fraction(value: Any, total: float | None) -> float | None:
    """Return a count as a fraction of ``total``; floats up to 1 are fractions already.

    The int 1 is a count, the float 1.0 a fraction; a float above 1 is a count again (data frames
    turn a column of counts with gaps into floats).
    """
    if _kind(value) != "number":
        return None
    if not isinstance(value, numbers.Integral) and value <= 1:
        return _to_float(value)
    return None if total is None else _to_float(value) / total


def _max_features(value: Any, facts: TaskFacts | None) -> float | None:
    """Return sqrt(p)/p, log2(p)/p, 1 for None; at least one feature, as in scikit-learn."""
    if value is None:
        return 1.0
    p = None if facts is None else facts.n_features
    if p is not None and isinstance(value, str) and value in ("auto", "sqrt", "log2"):
        return max(1.0, math.log2(p) if value == "log2" else math.sqrt(p)) / p
    return _fraction(value, p)


def _gamma(value: Any, facts: TaskFacts | None) -> float | None:
    """Return 1/p for "auto", 1/(p Var X) for "scale"; 1 at zero variance, as in scikit-learn."""
    if facts is None or not isinstance(value, str) or value not in ("auto", "scale"):
        return None
    divisor = facts.n_features * (facts.x_variance if value == "scale" else 1.0)
    return 1.0 / divisor if divisor > 0 else 1.0


def _min_samples(value: Any, facts: TaskFacts | None) -> float | None:
    """Return a count of rows as a fraction of the rows."""
    return _fraction(value, None if facts is None else facts.n_instances)


def _max_depth(value: Any, facts: TaskFacts | None) -> float | None:
    """Return 20 for None: deep enough not to matter, not so deep as to stick out."""
    return 20.0 if value is None else None


def _rule_for(name: str, rules: Mapping[str, Imputer]) -> Imputer | None:
    """Return the rule for "max_depth", "rf.max_depth", "tree:max_depth" or "rf__max_depth"."""
    return rules.get(name, rules.get(re.split(r"\.|:|__", name)[-1]))


KNOWN_MEANINGS: Final[Mapping[str, Imputer]] = {
    "max_features": _max_features,
    "gamma": _gamma,
    "min_samples_leaf": _min_samples,
    "min_samples_split": _min_samples,
    "max_depth": _max_depth,
}
"""The rules of thesis 3.1.1, "parameter specific imputing"; ``{**KNOWN_MEANINGS, ...}`` adds."""


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
    kind = _kind(value)
    if kind == "string":
        return "null" if value is NULL else repr(str.__str__(value))
    if kind == "number":
        return repr(int(value) if isinstance(value, numbers.Integral) else _to_float(value))
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


def _label(value: Any, key: str) -> str:
    """Return the readable name of a category (thesis table 3.7)."""
    if isinstance(value, str):
        return str.__str__(value)
    if _kind(value) != "object" or isinstance(value, Mapping | list | tuple | set | frozenset):
        return key
    named = isinstance(value, type) or inspect.isroutine(value)
    return str((value if named else type(value)).__name__)


def _labels(values: Iterable[Any]) -> dict[str, str]:
    """Return {key: label} of the categories, sorted by label in any case (thesis table 3.5).

    A label that several categories would share is replaced by their keys.
    """
    by_key = {category_key(value): value for value in values if _kind(value) != "missing"}
    labels = {key: _label(value, key) for key, value in by_key.items()}
    count = Counter([UNKNOWN, *labels.values()])
    labels = {key: label if count[label] == 1 else key for key, label in labels.items()}
    return dict(sorted(labels.items(), key=lambda item: (item[1].casefold(), item[0])))


@dataclass(frozen=True)
class _Parameter:
    """What `fit` learns of one hyperparameter."""

    name: str
    type: ParameterType
    labels: Mapping[str, str]  # {key: label} of the categories
    limits: tuple[float, float, float]  # lowest, median and highest finite number; 0 if none


def _column(
    name: str, rows: Configurations, facts: Sequence[TaskFacts | None], rule: Imputer | None
) -> tuple[list[Any], FloatArray]:
    """Return a parameter's values, NaN where absent, and the numbers its rule knows (n,)."""
    values = [row.get(name, math.nan) for row in rows]
    known = np.full(len(values), math.nan)
    for i, value in enumerate(values):
        if rule is not None and _kind(value) != "missing":
            number = rule(value, facts[i])
            known[i] = math.nan if number is None else _to_float(number)
        if rule is _max_features and isinstance(value, str) and value == "auto":
            values[i] = "sqrt"  # two names of one thing
    return values, known


def _parts(
    parameter_type: ParameterType, values: list[Any], known: FloatArray
) -> tuple[FloatArray | None, list[Any] | None]:
    """Return the numeric (n,) and the nominal part of a column, None where its type has none."""
    if parameter_type is ParameterType.BOOLEAN:
        return np.array([_truth(value) for value in values]), None
    numeric, nominal = split_mixed(values)
    numeric = np.where(np.isnan(known), numeric, known)
    if parameter_type is ParameterType.MIXED:
        return numeric, nominal
    return (numeric, None) if parameter_type is ParameterType.NUMERIC else (None, values)


def _learn(name: str, values: list[Any], known: FloatArray) -> _Parameter:
    """Detect the type, list the categories and find the range of one hyperparameter."""
    parameter_type = detect_type(values)
    numeric, nominal = _parts(parameter_type, values, known)
    limits = (0.0, 0.0, 0.0)
    if numeric is not None:
        is_number = np.array([_kind(value) in ("number", "bool") for value in values])
        observed = numeric[is_number & np.isfinite(numeric)]
        if observed.size:  # halved, so that the mean of two cannot overflow
            median = 2.0 * float(np.median(observed / 2.0))
            limits = (float(observed.min()), median, float(observed.max()))
    return _Parameter(name, parameter_type, _labels(nominal or []), limits)


def _encode(
    learnt: _Parameter, values: list[Any], known: FloatArray, one_hot: bool, impute: bool
) -> Iterator[tuple[str, bool, FloatArray]]:
    """Yield (feature name, is nominal, feature (n,)) of one hyperparameter."""
    numeric, nominal = _parts(learnt.type, values, known)
    missing = np.array([_kind(value) == "missing" for value in values])
    mixed = learnt.type is ParameterType.MIXED
    if numeric is not None:
        low, median, high = learnt.limits
        x = np.where(np.isinf(numeric), np.clip(numeric, low, high), numeric)
        fill = np.isnan(x) & (impute | (mixed & ~missing))
        yield learnt.name + "_num" * mixed, False, np.where(fill, median, x)
    if nominal is not None:
        indices = {key: float(index) for index, key in enumerate(learnt.labels, start=1)}
        x = np.array([indices.get(category_key(value), 0.0) for value in nominal])
        x[missing] = 0.0 if impute else math.nan
        name = learnt.name + "_nom" * mixed
        if not one_hot:
            yield name, True, x
        for key, label in learnt.labels.items() if one_hot else ():
            yield f"{name}_{label}", False, np.where(np.isnan(x), x, x == indices[key])


def _checked(configurations: Any, tasks: Any) -> tuple[list[Any], list[TaskFacts | None]]:
    """Return the rows and the facts for each of them, or raise what `fit` documents."""
    rows = list(configurations) if isinstance(configurations, Iterable) else [configurations]
    if not rows:
        raise ValueError("configurations must hold at least one mapping, got none.")
    for index, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise TypeError(
                "configurations must be a sequence of mappings of name to value, got a "
                f"{type(row).__name__} at position {index} (from a data frame, take "
                'frame.to_dict("records")).'
            )
    if tasks is None or isinstance(tasks, TaskFacts):
        return rows, [tasks] * len(rows)
    facts = list(tasks) if isinstance(tasks, Iterable) else [tasks]
    for index, fact in enumerate(facts):
        if not isinstance(fact, TaskFacts):
            raise TypeError(
                "tasks must be None, one TaskFacts, or one TaskFacts for each row, got "
                f"{fact!r} at position {index}."
            )
    if len(facts) != len(rows):
        raise ValueError(f"tasks must have one entry per row, {len(rows)}, got {len(facts)}.")
    return rows, facts


class ConfigurationEncoder(BaseEstimator):  # type: ignore[misc]
    """Turn untyped configurations into features (thesis 3.1.1, figure 3.1).

    Numeric parameters keep their value, boolean ones become 0/1, nominal ones and objects become
    categories, mixed ones split into ``<name>_num`` and ``<name>_nom``. Features are sorted by
    parameter, so neither row nor dictionary order matters; one-hot columns
    ``<name>_<category>`` follow ``categories_``. A repeated feature name gets a final "_".

    Nothing in a configuration makes `transform` fail: an unseen category has index 0 and is all
    zeros, an unseen kind of value in a numeric or boolean column is NaN, an unseen parameter is
    ignored, an infinity becomes the smallest or largest number of `fit`. (What a rule of one's
    own raises is passed on.)

    Rules match a parameter's full name, or what follows its last ".", ":" or "__". Where no rule
    gives a number (without facts, those that need some do not), numbers stay as they are and
    categories of a mixed column take the median of the numbers in `fit`.

    Args:
        one_hot: One column per category; else one column of category indices, for models that
            split on categories themselves.
        drop_constant: Drop features that are the same, or missing, in all rows of `fit`. Where
            nothing varies, as in a single row, all stay.
        imputers: Known meanings by name; None for `KNOWN_MEANINGS`, {} for none.
        missing: "nan" leaves an inactive parameter NaN in all its features; "impute", as the
            thesis does, sets the median or no category, so that no NaN remains.

    Attributes:
        types_: {parameter: `ParameterType`}.
        categories_: {column: {category: index}}, index 0 being "<unkn>" (thesis table 3.5).
        nominal_features_: Mask (f,) of the features that are category indices (table 3.6).
    """

    def __init__(
        self,
        *,
        one_hot: bool = True,
        drop_constant: bool = True,
        imputers: Mapping[str, Imputer] | None = None,
        missing: str = "nan",
    ) -> None:
        self.one_hot = one_hot
        self.drop_constant = drop_constant
        self.imputers = imputers
        self.missing = missing

    def fit(self, configurations: Configurations, tasks: Tasks = None) -> Self:
        """Learn types, categories and medians.

        Args:
            configurations: Mappings of name to value (n,).
            tasks: Facts of the one task of all rows, then remembered for `transform`, or of the
                task of each row. They stand where a pipeline passes y: encode before it.

        Raises:
            TypeError: For an argument, a row, a name, a rule or a task of the wrong type.
            ValueError: For no row, no value, an unknown option or a wrong number of tasks.
        """
        rows, facts = _checked(configurations, tasks)
        if self.missing not in ("nan", "impute"):
            raise ValueError(f"missing must be 'nan' or 'impute', got {self.missing!r}.")
        rules = KNOWN_MEANINGS if self.imputers is None else self.imputers
        if not isinstance(rules, Mapping) or not all(map(callable, rules.values())):
            raise TypeError(f"imputers must be a mapping of names to callables, got {rules!r}.")
        names = {name for row in rows for name, v in row.items() if _kind(v) != "missing"}
        if not names:
            raise ValueError("configurations must hold at least one value, all are missing.")
        if odd := [name for name in names if not isinstance(name, str)]:
            raise TypeError(f"configurations must have names of type str, got {odd[0]!r}.")
        self._options = self.one_hot, self.missing == "impute"
        self.tasks_ = tasks if isinstance(tasks, TaskFacts) else None
        self._tasks_by_row = tasks is not None and self.tasks_ is None
        self._rules = [_rule_for(name, rules) for name in sorted(names)]
        self._learnt = [
            _learn(name, *_column(name, rows, facts, rule))
            for name, rule in zip(sorted(names), self._rules, strict=True)
        ]
        self.types_ = {learnt.name: learnt.type for learnt in self._learnt}
        self.categories_ = {
            learnt.name + "_nom" * (learnt.type is ParameterType.MIXED): {
                label: index for index, label in enumerate([UNKNOWN, *learnt.labels.values()])
            }
            for learnt in self._learnt
            if learnt.labels
        }
        features = self._features(rows, facts)
        varies = np.array([np.unique(x).size > 1 for _, _, x in features])
        self._keep = varies if self.drop_constant and varies.any() else np.ones_like(varies)
        names_out: dict[str, None] = {}
        for name, _, _ in features:
            while name in names_out:
                name += "_"
            names_out[name] = None
        self._names_out = np.array(list(names_out), dtype=object)[self._keep]
        self.nominal_features_ = np.array([nominal for _, nominal, _ in features])[self._keep]
        return self

    def transform(self, configurations: Configurations, tasks: Tasks = None) -> FloatArray:
        """Return the features (n, f) of ``configurations``; the arguments are those of `fit`.

        Raises:
            NotFittedError: Before `fit`.
            TypeError: As in `fit`.
            ValueError: As in `fit`, and for no tasks after a `fit` with one for each row, as
                counts would then share a column with fractions.
        """
        check_is_fitted(self)
        if tasks is None and self._tasks_by_row:
            raise ValueError("tasks must be given to transform, as fit had one for each row.")
        rows, facts = _checked(configurations, self.tasks_ if tasks is None else tasks)
        X = np.column_stack([x for _, _, x in self._features(rows, facts)])
        return X[:, self._keep]

    def fit_transform(self, configurations: Configurations, tasks: Tasks = None) -> FloatArray:
        """Return ``fit(configurations, tasks).transform(configurations, tasks)``."""
        return self.fit(configurations, tasks).transform(configurations, tasks)

    def get_feature_names_out(self, input_features: Any = None) -> npt.NDArray[np.object_]:
        """Return the names (f,) of the features; ``input_features`` is ignored."""
        check_is_fitted(self)
        names: npt.NDArray[np.object_] = self._names_out.copy()
        return names

    def _features(
        self, rows: Configurations, facts: Sequence[TaskFacts | None]
    ) -> list[tuple[str, bool, FloatArray]]:
        """Return (name, is nominal, column (n,)) of all features, constant ones included."""
        return [
            feature
            for p, rule in zip(self._learnt, self._rules, strict=True)
            for feature in _encode(p, *_column(p.name, rows, facts, rule), *self._options)
        ]
