"""Meta-features: numbers that describe a data set, so that tasks can be compared.

Names and definitions are those of van Hoof (2018), chapter 2.3.1, table 6.3 and appendix B, and
of Wistuba et al. (2016), table 1. Standardise them before use, and impute NaN by the median over
the tasks.
"""

from __future__ import annotations

import time
import warnings
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial
from itertools import chain
from math import inf, isfinite, nan
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from automl_plugins._arguments import check_choice, check_finite, check_integer, did_you_mean
from automl_plugins.meta.features.landmarkers import landmark_units, subsample
from automl_plugins.meta.features.measures import (
    NoValueError,
    Unit,
    Value,
    information_units,
    simple_units,
    statistical_units,
)
from automl_plugins.meta.features.table import TASKS, Column, Target, Task, read_table, read_target
from automl_plugins.streams import Streams

Group = Literal["simple", "statistical", "information", "landmarking"]
GROUPS: tuple[Group, ...] = get_args(Group)


def _groups(
    columns: list[Column], target: Target, caps: Mapping[str, int], streams: Streams
) -> dict[Group, list[Unit]]:
    """The work of each group; nothing is computed yet."""
    # The streams 0 to 3 are those of the landmarkers.
    few, shorter = columns, target
    if len(columns) > (most := caps["max_statistics_columns"]):
        keep = streams.generator("meta-features", 4).permutation(len(columns))[:most]
        few = [columns[j] for j in sorted(keep)]  # in their order
    if len(target.values) > (rows := caps["max_statistics_rows"]):
        chosen = subsample(target.values, rows, streams.generator("meta-features", 5))
        few, shorter = [column.take(chosen) for column in few], target.take(chosen)
    most_rows, most_columns = caps["max_landmark_rows"], caps["max_landmark_columns"]
    return {
        # In this order they are computed, until the budget runs out.
        "simple": simple_units(columns, target),
        "statistical": statistical_units(few, shorter),
        "information": information_units(few, shorter),
        "landmarking": landmark_units(columns, target, most_rows, most_columns, streams),
    }


@cache
def _names(task: Task) -> dict[str, tuple[str, ...]]:
    # Units know their names before anything is computed: no data, and caps of 0, will do.
    groups = _groups([], Target(task, np.empty(0)), defaultdict(int), Streams(0))
    return {
        group: tuple(n for unit in units for n in unit.names) for group, units in groups.items()
    }


@dataclass(frozen=True, eq=False)
class MetaFeatures(Mapping[str, float]):
    """The meta-features of one data set: a mapping from name to value.

    Attributes:
        features: Name -> value; NaN where there is none. The mapping itself reads it.
        seconds: Name -> seconds. Features that are computed together share the time equally, so
            that the sum is the time of the whole extraction; what several of them need (the
            subsample, the selection of CFS) counts for the first that needs it. Reading the
            table is not in it.
        failures: Name -> why the value is NaN, for exactly the features that are NaN.
        task: What the target was taken for.
        total_seconds: The whole call.

    Example::

        features = meta_features(X, y)
        print(features["NumberOfInstances"], features.failures)
    """

    features: dict[str, float]
    seconds: dict[str, float]
    failures: dict[str, str]
    task: Task
    total_seconds: float

    def __getitem__(self, name: str) -> float:
        return self.features[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.features)

    def __len__(self) -> int:
        return len(self.features)

    def __repr__(self) -> str:
        return (
            f"MetaFeatures({len(self)} of {self.task}, {len(self.failures)} unknown,"
            f" {self.total_seconds:.3g} s)"
        )


def meta_feature_names(
    groups: str | Sequence[str] = GROUPS, task: str = "classification"
) -> tuple[str, ...]:
    """The names ``meta_features`` will give, in its order.

    ``groups`` are names of groups, of features, or both; ``task`` is ``"classification"`` or
    ``"regression"``.

    Raises:
        ValueError: For an unknown task, group or feature.
    """
    check_choice("task", task, TASKS)
    chosen: Task = "classification" if task == "classification" else "regression"
    groups = (groups,) if isinstance(groups, str) else tuple(groups)
    known = _names(chosen)
    features = [name for names in known.values() for name in names]
    found: dict[str, None] = {}
    for item in groups:
        if item in known:
            found |= dict.fromkeys(known[item])
        elif item in features:
            found[item] = None
        else:
            raise ValueError(
                f"{item!r} is not a group or feature for {chosen}; the groups are {GROUPS}."
                f"{did_you_mean(item, [*known, *features])}"
            )
    if not found:
        raise ValueError(f"groups is empty: name at least one of {GROUPS}, or a feature.")
    return tuple(found)


def meta_features(
    X: Any,
    y: Any,
    *,
    task: Literal["auto", "classification", "regression"] = "auto",
    nominal: Sequence[Any] | npt.NDArray[Any] | None = None,
    groups: str | Sequence[str] = GROUPS,
    time_limit: float | None = 10.0,
    budget: float | None = 60.0,
    max_landmark_rows: int = 2_000,
    max_landmark_columns: int = 200,
    max_statistics_rows: int = 100_000,
    max_statistics_columns: int = 1_000,
    seed: int = 0,
) -> MetaFeatures:
    """Describe a data set.

    **What is computed.** ``simple``: sizes, kinds of columns, class distribution (from all rows).
    The target is not counted as a column; OpenML's qualities, which the thesis has, count it.
    ``statistical``: kurtosis and skewness of the numeric columns. ``information``: entropies and
    mutual information, numbers cut into 10 bins of equal frequency. ``landmarking``: area under
    the ROC curve (``AUC``), error rate and Cohen's kappa of simple learners, from their pooled
    predictions in 3 stratified folds of a stratified subsample. Regression has the same but for
    the classes: a target's own statistics (``Target...``), and ``R2``, relative absolute error
    (``RAE``) and ``Spearman`` as scores.

    **Learners.** Weka's become scikit-learn's nearest equivalents, on numbers scaled to [0, 1]
    and indicators of the categories, the median for missing numbers, and a category of its own
    for missing ones:

    - ``DecisionStump``: ``DecisionTreeClassifier(criterion="entropy", max_depth=1)``.
    - ``NaiveBayes``: ``GaussianNB`` and ``CategoricalNB``, multiplied. Regression:
      ``LinearRegression`` is ``Ridge(alpha=1)``.
    - ``kNN1N``: ``NearestNeighbors(1)`` in Weka's distance.
    - ``J48.C.``: ``DecisionTreeClassifier(criterion="entropy", min_samples_leaf=2)``, pruned by
      C4.5's pessimistic errors at the confidences 0.00001, 0.0001 and 0.001. Regression:
      ``CART.A.``, ``DecisionTreeRegressor`` with ``ccp_alpha`` = 0.001, 0.01 and 0.1 variances.
    - ``REPTreeDepthD``: an entropy tree of depth D with reduced-error pruning on a third.
    - ``RandomTreeDepthD``: a tree of depth D with log2(p) + 1 random columns for each split.
    - ``CfsSubsetEval_L``: L on the columns that correlation-based feature selection picks in
      each training fold.

    **Limits.** A clock is asked before each feature (those computed together are one), between
    columns and between folds; a single step is never interrupted, but the four ``max_`` caps bound
    its size. A feature that is out of time, or fails, is NaN with its reason in ``failures``, and
    the rest continues; a value that came late is kept. Without time-outs the result depends on the
    data and the seed only; new labels for the same classes change nothing. With
    ``time_limit=None`` and ``budget=None`` there are no time-outs. The time for reading ``X`` and
    ``y`` counts towards the budget, but reading is not cut short by it.

    Args:
        X: A data frame or an array (n, p) of numbers or objects; values may be missing. Infinite
            values count as missing.
        y: The target (n,), without missing values: strings, bools, integers or floats.
        task: ``"auto"`` takes fractions, and whole numbers with more than 100 distinct values or
            less than two rows for each, for regression.
        nominal: Nominal columns by name, by number or as a mask (p,). None: those of type
            category, bool or str, and object columns that are not all numbers.
        groups: Groups, or names of features, or both; see ``meta_feature_names``.
        time_limit: Seconds for each feature, or group of features computed together.
        budget: Seconds for the whole call.
        max_landmark_rows: Rows of the landmarkers' subsample, which keeps the distribution of
            the target. Above K = 10 classes it is divided by sqrt(K / 10), down to 500.
        max_landmark_columns: Columns of the landmarkers; a random choice of those that vary.
        max_statistics_rows: The same for the groups ``statistical`` and ``information``.
        max_statistics_columns: The same for these groups.
        seed: Seed of subsamples, folds and learners.

    Returns:
        Exactly the features of ``meta_feature_names(groups, task)``, with the seconds of each.

    Raises:
        ValueError: For a table without rows or columns, lengths that differ, missing targets,
            unknown names, or limits that are not positive.
        TypeError: For sparse matrices, complex numbers, or values without a hash.
    """
    start = time.perf_counter()
    for name, limit in (("time_limit", time_limit), ("budget", budget)):
        # Infinity is legal here, as is None.
        if limit != inf:
            check_finite(name, limit, positive=True, optional=True)
    caps = {
        "max_landmark_rows": max_landmark_rows,
        "max_landmark_columns": max_landmark_columns,
        "max_statistics_rows": max_statistics_rows,
        "max_statistics_columns": max_statistics_columns,
    }
    for name, cap in caps.items():
        check_integer(name, cap, 1)
    streams = Streams(seed)
    with _no_warnings():
        columns = read_table(X, nominal)
        target = read_target(y, task=task, n_rows=len(columns[0].values))
    wanted = meta_feature_names(groups, target.task)
    units = chain(*_groups(columns, target, caps, streams).values())
    end = None if budget is None else start + budget
    found = _compute(units, set(wanted), time_limit, end)
    # A unit gives all its features, of which some may not be wanted.
    values = {name: found[name][0] for name in wanted}
    return MetaFeatures(
        features={n: nan if isinstance(v, str) else float(v) for n, v in values.items()},
        seconds={name: found[name][1] for name in wanted},
        failures={name: value for name, value in values.items() if isinstance(value, str)},
        task=target.task,
        total_seconds=time.perf_counter() - start,
    )


@contextmanager
def _no_warnings() -> Iterator[None]:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


def _compute(
    units: Iterable[Unit], wanted: set[str], time_limit: float | None, end: float | None
) -> dict[str, tuple[Value, float]]:
    """Values, or why there are none, and seconds of the units with a wanted feature, in order."""
    found: dict[str, tuple[Value, float]] = {}
    for unit in units:
        names = [name for name in unit.names if name in wanted]
        if not names:
            continue
        start = time.perf_counter()
        check = partial(_check_clock, start, time_limit, end)
        values: Sequence[Value]
        try:
            check()
            with _no_warnings():
                values = unit.compute(check)
        except NoValueError as reason:
            values = [str(reason)] * len(unit.names)
        except Exception as error:  # whatever a learner may raise on strange data
            values = [f"{type(error).__name__}: {error}"] * len(unit.names)
        seconds = (time.perf_counter() - start) / len(names)
        for name, value in zip(unit.names, values, strict=True):
            unusable = not isinstance(value, str) and not isfinite(value)
            found[name] = f"the value is {value}." if unusable else value, seconds
    return found


def _check_clock(start: float, time_limit: float | None, end: float | None) -> None:
    now = time.perf_counter()
    if end is not None and now > end:
        raise NoValueError("out of time: the total budget ran out.")
    if time_limit is not None and now - start > time_limit:
        raise NoValueError(f"out of time: the time limit of {time_limit:g} s passed.")
