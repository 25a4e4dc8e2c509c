"""Untyped configurations, collected elsewhere, as a numeric feature matrix.

Source: van Hoof, "GBQR" thesis (2018), section 3.1, tables 3.1-3.7. Notation of this module::

    configurations  n mappings {name: value}; an absent name or NaN = inactive or missing
    X               features, shape (n, f), float64, sorted by parameter name
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from automl_plugins.meta.known_meanings import (
    KNOWN_MEANINGS,
    Imputer,
    TaskFacts,
    Tasks,
    apply_rule,
    facts_by_row,
    rule_for,
)
from automl_plugins.spaces.value_types import (
    NULL,
    UNKNOWN,
    FloatArray,
    ParameterType,
    category_key,
    category_labels,
    detect_type,
    kind_of,
    split_mixed,
    truth,
)

__all__ = [
    "KNOWN_MEANINGS",
    "NULL",
    "UNKNOWN",
    "ConfigurationEncoder",
    "Imputer",
    "ParameterType",
    "TaskFacts",
    "Tasks",
    "category_key",
    "detect_type",
    "split_mixed",
]

Configurations = Sequence[Mapping[str, Any]]
Facts = Sequence[TaskFacts | None]


@dataclass(frozen=True)
class _Parameter:
    """What `fit` learns of one hyperparameter."""

    name: str
    rule: Imputer | None
    type: ParameterType
    labels: Mapping[str, str]  # {key: label} of the categories
    limits: tuple[float, float, float]  # lowest, median and highest finite number; 0 if none

    @property
    def nominal_name(self) -> str:
        """The name of the column of categories."""
        return self.name + "_nom" * (self.type is ParameterType.MIXED)


def _column(
    name: str, rule: Imputer | None, rows: Configurations, facts: Facts
) -> tuple[list[Any], FloatArray]:
    """Return a parameter's values, NaN where absent, and the numbers its rule knows (n,)."""
    return apply_rule(rule, [row.get(name, math.nan) for row in rows], facts)


def _parts(
    parameter_type: ParameterType, values: list[Any], known: FloatArray
) -> tuple[FloatArray | None, list[Any] | None]:
    """Return the numeric (n,) and the nominal part of a column, None where its type has none."""
    if parameter_type is ParameterType.BOOLEAN:
        return np.array([truth(value) for value in values]), None
    numeric, nominal = split_mixed(values)
    numeric = np.where(np.isnan(known), numeric, known)
    if parameter_type is ParameterType.MIXED:
        return numeric, nominal
    return (numeric, None) if parameter_type is ParameterType.NUMERIC else (None, values)


def _learn(name: str, rule: Imputer | None, rows: Configurations, facts: Facts) -> _Parameter:
    """Detect the type, list the categories and find the range of one hyperparameter."""
    values, known = _column(name, rule, rows, facts)
    parameter_type = detect_type(values)
    numeric, nominal = _parts(parameter_type, values, known)
    limits = (0.0, 0.0, 0.0)
    if numeric is not None:
        is_number = np.array([kind_of(value) in ("number", "bool") for value in values])
        observed = numeric[is_number & np.isfinite(numeric)]
        if observed.size:  # halved, so that the mean of two cannot overflow
            median = 2.0 * float(np.median(observed / 2.0))
            limits = (float(observed.min()), median, float(observed.max()))
    return _Parameter(name, rule, parameter_type, category_labels(nominal or []), limits)


def _encode(
    learnt: _Parameter, rows: Configurations, facts: Facts, one_hot: bool, impute: bool
) -> Iterator[tuple[str, bool, FloatArray]]:
    """Yield (feature name, is nominal, feature (n,)) of one hyperparameter."""
    values, known = _column(learnt.name, learnt.rule, rows, facts)
    numeric, nominal = _parts(learnt.type, values, known)
    missing = np.array([kind_of(value) == "missing" for value in values])
    if numeric is not None:
        mixed = learnt.type is ParameterType.MIXED
        low, median, high = learnt.limits
        x = np.where(np.isinf(numeric), np.clip(numeric, low, high), numeric)
        fill = np.isnan(x) & (impute | (mixed & ~missing))
        yield learnt.name + "_num" * mixed, False, np.where(fill, median, x)
    if nominal is not None:
        indices = {key: float(index) for index, key in enumerate(learnt.labels, start=1)}
        x = np.array([indices.get(category_key(value), 0.0) for value in nominal])
        x[missing] = 0.0 if impute else math.nan
        if not one_hot:
            yield learnt.nominal_name, True, x
            return
        for key, label in learnt.labels.items():
            spelled_out = np.where(np.isnan(x), x, x == indices[key])
            yield f"{learnt.nominal_name}_{label}", False, spelled_out


def _checked_rows(configurations: Any) -> list[Any]:
    """Return the rows, or raise TypeError or ValueError for what are none."""
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
    return rows


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
    gives a number, numbers stay as they are and categories of a mixed column take the median of
    the numbers in `fit`.

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
        tasks_: The facts that `fit` remembers for `transform`, else None.
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
        rows = _checked_rows(configurations)
        facts = facts_by_row(tasks, len(rows))
        if self.missing not in ("nan", "impute"):
            raise ValueError(f"missing must be 'nan' or 'impute', got {self.missing!r}.")
        rules = KNOWN_MEANINGS if self.imputers is None else self.imputers
        if not isinstance(rules, Mapping) or not all(map(callable, rules.values())):
            raise TypeError(f"imputers must be a mapping of names to callables, got {rules!r}.")
        names = {name for row in rows for name, v in row.items() if kind_of(v) != "missing"}
        if not names:
            raise ValueError("configurations must hold at least one value, all are missing.")
        if odd := [name for name in names if not isinstance(name, str)]:
            raise TypeError(f"configurations must have names of type str, got {odd[0]!r}.")
        self._options = self.one_hot, self.missing == "impute"
        self.tasks_ = tasks if isinstance(tasks, TaskFacts) else None
        self._tasks_by_row = tasks is not None and self.tasks_ is None
        self._learnt = [_learn(name, rule_for(name, rules), rows, facts) for name in sorted(names)]
        self.types_ = {learnt.name: learnt.type for learnt in self._learnt}
        self.categories_ = {
            learnt.nominal_name: {
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
        rows = _checked_rows(configurations)
        facts = facts_by_row(self.tasks_ if tasks is None else tasks, len(rows))
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

    def _features(self, rows: Configurations, facts: Facts) -> list[tuple[str, bool, FloatArray]]:
        """Return (name, is nominal, column (n,)) of all features, constant ones included."""
        return [
            feature
            for learnt in self._learnt
            for feature in _encode(learnt, rows, facts, *self._options)
        ]
