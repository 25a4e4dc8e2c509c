"""What is known of tasks: names, tags, and meta-features on one scale to compare tasks by.

Sizes span five orders of magnitude and ratios have long tails, so each meta-feature becomes its
rank among the known tasks: 0 is below all of them, 1 above all, 1/2 unknown.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.special import softmax

from automl_plugins import meta
from automl_plugins._arguments import describe
from automl_plugins.arrays import FloatArray
from automl_plugins.formats import format_count
from automl_plugins.meta.plain import plain_float
from automl_plugins.meta.units import DataSize

TaskDescription = Mapping[str, float] | None

_WIDTH = 0.5  # width of the weights of tasks, in median distances


@dataclass(frozen=True)
class MetaTask:
    """A task: its name, unique in a ``MetaDataset``, meta-features (empty = unknown), tags.

    Example::

        MetaTask("iris", {"NumberOfClasses": 3.0}, {"learner": "svm"})
    """

    name: str
    meta_features: Mapping[str, float] = field(default_factory=dict)
    tags: Mapping[str, str] = field(default_factory=dict)

    def __repr__(self) -> str:
        tags = f", {dict(self.tags)}" if self.tags else ""
        known = format_count(len(self.meta_features), "meta-feature")
        return f"MetaTask({self.name!r}, {known}{tags})"

    @property
    def size(self) -> DataSize:
        """Sizes of its data, as far as the meta-features contain them."""
        sizes = [self.meta_features.get(f"NumberOf{what}") for what in ("Instances", "Features")]
        # 0, NaN and inf are no sizes.
        return DataSize(*(int(n) if n is not None and 1 <= n < np.inf else None for n in sizes))


def meta_feature_names_of(tasks: Sequence[MetaTask]) -> tuple[str, ...]:
    """Names of all meta-features that any task has, in order of first appearance."""
    return tuple({name: None for task in tasks for name in task.meta_features})


def meta_feature_values(tasks: Sequence[MetaTask], names: Sequence[str]) -> FloatArray:
    """Meta-features (T, m) by task; NaN where a task does not have one."""
    rows = [meta_feature_row(task.meta_features, names) for task in tasks]
    return np.array(rows, dtype=np.float64).reshape(len(tasks), len(names))


def meta_feature_row(task: TaskDescription, names: Sequence[str]) -> FloatArray:
    """Meta-features (m,) of a task by name; NaN where it has none, or None."""
    return np.array([(task or {}).get(name) for name in names], dtype=np.float64)


def read_meta_features(meta_features: Mapping[str, Any], where: str = "") -> dict[str, Any]:
    """Meta-features by name, NaN for None; the message of the error begins with ``where``."""
    read = {name: math.nan if value is None else value for name, value in meta_features.items()}
    for name, value in read.items():
        if not isinstance(value, numbers.Real | np.bool_):
            raise ValueError(
                f"{where}Meta-features must be numbers by name, got {name}={value!r}."
            )
        plain_float(value, name=f"{where}The meta-feature {name}")  # refuses what is too large
    return read


def check_task(task: object) -> None:
    """Raise TypeError unless ``task`` is the name of a task, or None."""
    if not isinstance(task, str | None):
        raise TypeError(f"task must be the name of this task, or None, got {describe(task)}.")


def read_names(argument: str, names: Iterable[str]) -> tuple[str, ...]:
    """Names of tasks in an argument, each once; TypeError for a text, and for what is no list."""
    if isinstance(names, str):
        raise TypeError(f"{argument} must be names of tasks, got the text {names!r}: [{names!r}].")
    if not isinstance(names, Iterable):
        raise TypeError(f"{argument} must be names of tasks, got {describe(names)}.")
    listed = [*names]
    if others := [name for name in listed if not isinstance(name, str)]:
        raise TypeError(f"{argument} must be names of tasks, got {others[0]!r} among them.")
    return tuple(dict.fromkeys(listed))


def update_known(known: Mapping[str, Any], newer: Mapping[str, Any]) -> dict[str, Any]:
    """Facts by name; newer ones win, unless they could not be computed: None or NaN."""
    found = {n: v for n, v in newer.items() if n not in known or not (v is None or v != v)}
    return {**known, **found}


def describe_task(
    meta_features: TaskDescription = None,
    X: Any = None,
    y: Any = None,
    *,
    wanted: bool = True,
) -> TaskDescription:
    """Meta-features of a new task, given or computed from its data; None if neither is given.

    They are computed only if ``wanted``: if there are others to compare them with.
    """
    if (X is None) != (y is None):
        given, absent = ("X", "y") if y is None else ("y", "X")
        raise ValueError(f"{given} without {absent}: meta-features need both.")
    if X is not None and meta_features is not None:
        raise ValueError("Pass X and y or their meta-features, not both.")
    if meta_features is not None:
        if not isinstance(meta_features, Mapping):
            raise TypeError(f"Meta-features must be numbers by name, got {meta_features!r}.")
        meta_features = read_meta_features(meta_features)
    if X is not None and wanted:
        meta_features = meta.meta_features(X, y)  # loads the learners of landmarkers
    return meta_features or None


def describe_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options of a recipe with meta-features in place of ``X`` and ``y``: computed once."""
    found = dict(options)
    X, y = found.pop("X", None), found.pop("y", None)
    if X is not None or y is not None:
        found["meta_features"] = describe_task(found.get("meta_features"), X, y)
    return found


class TaskFeatures:
    """Meta-features of known tasks, and of a new one, as ranks among the known tasks.

    Attributes:
        names: Meta-features (m) that vary among the known tasks and, if there is a new one, that
            it has.
        known: Scaled meta-features (T, m) of the known tasks.
        new: Scaled meta-features of the new task (m,).
        described: Mask (T,) of the known tasks that have any of these meta-features.
        useful: Whether the new task can be compared with at least two known ones.
    """

    def __init__(self, tasks: Sequence[MetaTask], task: TaskDescription = None) -> None:
        names = meta_feature_names_of(tasks)
        values = meta_feature_values(tasks, names)
        # Without a new task all of them count.
        has = np.isfinite(meta_feature_row(task, names)) | (task is None)
        n_values = [len(np.unique(column[np.isfinite(column)])) for column in values.T]
        # What does not vary tells no tasks apart, and has no ranks to divide by.
        use = [i for i in range(len(names)) if has[i] and n_values[i] > 1]
        self.names: tuple[str, ...] = tuple(names[i] for i in use)
        self._values = values[:, use]
        self.described = np.asarray(np.isfinite(self._values).any(axis=1))
        self.known = self._rank_all(self._values)
        self.new = self.describe(task)
        self.useful = task is not None and bool(self.names)

    def describe(self, task: TaskDescription) -> FloatArray:
        """Scaled meta-features (m,) of a task."""
        return np.asarray(self._rank_all(meta_feature_row(task, self.names)[None])[0])

    def _rank_all(self, values: FloatArray) -> FloatArray:
        """Mid-ranks (n, m) of raw values (n, m) among the finite known ones, in [0, 1]."""
        ranks = np.full(values.shape, 0.5)
        for known, new, out in zip(self._values.T, values.T, ranks.T, strict=True):
            ordered = np.sort(known[np.isfinite(known)])
            below = np.searchsorted(ordered, new, side="left")
            upto = np.searchsorted(ordered, new, side="right")
            np.divide(below + upto, 2.0 * len(ordered), out=out, where=np.isfinite(new))
        return ranks

    @property
    def gaps(self) -> FloatArray:
        """Distance of each known task (T,) to the new one; inf where it is not ``described``."""
        return np.where(self.described, distances(self.known, self.new[None, :])[:, 0], np.inf)


def distances(a: FloatArray, b: FloatArray) -> FloatArray:
    """Mean absolute difference (n, m) of scaled meta-features: L1, as in auto-sklearn."""
    return np.asarray(np.abs(a[:, None, :] - b[None, :, :]).mean(axis=2))


def by_distance(gaps: FloatArray) -> FloatArray:
    """Weights (T,) of tasks by the distance of their meta-features; they sum to 1.

    A Gaussian of half the median distance; 0 at an infinite one. On 60 held-out training data sets
    of the paper's table the first pipeline was better than without weights (regret 31 against
    40 %), the first five were about as good.
    """
    width = _WIDTH * float(np.median(gaps[np.isfinite(gaps)]))
    # At least half of the tasks are described as the new one: no width to divide by.
    if width <= 0.0:
        nearest = gaps == gaps.min()
        return np.asarray(nearest / nearest.sum())
    return np.asarray(softmax(-0.5 * (gaps / width) ** 2))
