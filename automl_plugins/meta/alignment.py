"""Runs recorded in one search space as vectors of another, matched by name.

What the new space asks for and a run does not have is imputed, what lies outside is clipped or
dropped, and ``Coverage`` says how much of that there was.
"""

from __future__ import annotations

import math
import numbers
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, NamedTuple, TypedDict, get_args

import numpy as np
import numpy.typing as npt
from ConfigSpace import ConfigurationSpace
from ConfigSpace.hyperparameters import (
    CategoricalHyperparameter,
    Constant,
    FloatHyperparameter,
    Hyperparameter,
    IntegerHyperparameter,
    OrdinalHyperparameter,
)

from automl_plugins._arguments import one_of
from automl_plugins.spaces.ranges import Steps, scale_of
from automl_plugins.spaces.values import (
    ABSENT,
    choices_of,
    find,
    finder,
    is_near,
    kind_of,
    numbers_of,
    read,
    to_number,
    to_vector,
)
from automl_plugins.spaces.vector_space import VectorSpace

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]
OutOfRange = Literal["clip", "drop"]
Missing = Literal["impute", "drop"]


class DataSize(NamedTuple):
    """Rows and columns of the data of a task; None where they are not known."""

    n_rows: int | None = None
    n_features: int | None = None


class AlignOptions(TypedDict, total=False):
    """What becomes of runs that do not fit, see ``align``."""

    out_of_range: OutOfRange
    missing: Missing
    defaults: Mapping[str, Any] | None


class MemoryMismatch(ValueError):
    """A memory of which a search can use nothing.

    Args:
        message: What is missing.
        final: Whether it stays so; False as long as the search space may still grow.
        expected: Whether nobody has said that the memory fits: then the search does without, and
            needs no warning.

    Example::

        try:
            memory.aligned(other_space)
        except MemoryMismatch as error:
            print(error)
    """

    def __init__(self, message: str, *, final: bool = True, expected: bool = False) -> None:
        super().__init__(message)
        self.final = final
        self.expected = expected


@dataclass(frozen=True)
class Coverage:
    """How much of a task's runs a search space can use.

    Attributes:
        task: Name of the task.
        n_runs: Runs that were recorded.
        n_kept: Those that are used.
        n_clipped: Those among them with a value that was moved into its range.
        imputed: Runs used for which a hyperparameter had to be imputed, by name.
        shared: Hyperparameters that both know.
        ignored: Hyperparameters of the runs that the space does not have.
        clipped: Runs used with a value that was moved into its range, by hyperparameter.
        dropped: Runs left out for a value that the space does not have, by hyperparameter.
        n_partial: Runs left out because they were evaluated at a lower budget.
        converted: Runs used with a count for a fraction, or the reverse, by hyperparameter.

    Example::

        for coverage in memory.aligned(space).coverage:
            print(coverage.task, coverage.n_kept, coverage.imputed)
    """

    task: str
    n_runs: int
    n_kept: int
    n_clipped: int
    imputed: Mapping[str, int]
    shared: tuple[str, ...]
    ignored: tuple[str, ...]
    clipped: Mapping[str, int] = field(default_factory=dict)
    dropped: Mapping[str, int] = field(default_factory=dict)
    n_partial: int = 0
    converted: Mapping[str, int] = field(default_factory=dict)

    @property
    def n_dropped(self) -> int:
        """Runs that are not used."""
        return self.n_runs - self.n_kept

    def __str__(self) -> str:
        parts = [f"{self.task}: {self.n_kept} of {self.n_runs} runs"]
        if self.n_partial:
            parts.append(f"{self.n_partial} at a lower budget")
        for verb, counts in (
            ("dropped for", self.dropped),
            ("clipped", self.clipped),
            ("imputed", self.imputed),
            ("converted between counts and fractions", self.converted),
        ):
            if counts:
                told = (f"{name} in {n}" for name, n in counts.items())
                parts.append(f"{verb} " + " and ".join(told))
        if self.ignored:
            parts.append("ignored " + " and ".join(self.ignored))
        return ", ".join(parts)


def align(
    space: VectorSpace,
    configurations: Sequence[Mapping[str, Any]],
    *,
    task: str,
    out_of_range: OutOfRange = "clip",
    missing: Missing = "impute",
    defaults: Mapping[str, Any] | None = None,
    size: DataSize | None = None,
) -> tuple[FloatArray, BoolArray, Coverage]:
    """Configurations of anywhere as vectors of ``space``.

    Args:
        space: The search space.
        configurations: Values by name (n); absent, None or NaN where there is none.
        task: Name of their task, for the report.
        out_of_range: What becomes of a number outside its range: ``"clip"`` moves it to the
            border, ``"drop"`` leaves the run out. A category that the space does not have always
            drops the run. Where no value of a hyperparameter is in the language of the space
            (numbers for categories; counts for fractions without the sizes), none is known.
        missing: What becomes of a run without a value for an active hyperparameter:
            ``"impute"`` sets its default, ``"drop"`` leaves the run out.
        defaults: Value of a hyperparameter, by name, in runs that do not have it; others have
            the default of the space.
        size: Sizes of the data of the task, with which ``max_features="sqrt"`` becomes a number,
            and counts become the fractions that the space has, or the reverse.

    Returns:
        Vectors (n, d), mask (n,) of the runs that are used, and the coverage. Rows that are not
        used are NaN.

    Raises:
        ValueError: For a default that the space does not allow, or an unknown policy.
    """
    one_of("out_of_range", out_of_range, get_args(OutOfRange))
    one_of("missing", missing, get_args(Missing))
    n = len(configurations)
    named = {name for configuration in configurations for name in configuration}
    vectors = np.full((n, space.d), np.nan)
    moved, foreign, converted = np.zeros((3, n, space.d), dtype=bool)
    for i, name in enumerate(space.names):
        if name in named:
            column = _Column(vectors[:, i], moved[:, i], foreign[:, i], converted[:, i])
            values = [configuration.get(name, ABSENT) for configuration in configurations]
            _fill(column, space.space[name], values, size or DataSize())
    lost = foreign | moved if out_of_range == "drop" else foreign
    keep = ~lost.any(axis=1)
    completed = space.activate(np.where(np.isnan(vectors), _defaults(space, defaults), vectors))
    imputed = np.isnan(vectors) & ~np.isnan(completed) & (space.n_values > 1)
    if missing == "drop":
        keep &= ~imputed.any(axis=1)
    if n:
        keep &= space.allowed(completed)
    completed[~keep] = np.nan

    def by_name(mask: BoolArray) -> dict[str, int]:
        counts = mask.sum(axis=0).tolist()
        return {name: count for name, count in zip(space.names, counts, strict=True) if count}

    shared = tuple(name for name in space.names if name in named)
    coverage = Coverage(
        task=task,
        n_runs=n,
        n_kept=int(keep.sum()),
        n_clipped=int(moved[keep].any(axis=1).sum()),
        imputed=by_name(imputed[keep]),
        shared=shared,
        ignored=tuple(sorted(named - set(shared))),
        clipped=by_name(moved[keep]),
        dropped=by_name(lost),
        converted=by_name(converted[keep]),
    )
    return completed, np.asarray(keep), coverage


def _defaults(space: VectorSpace, given: Mapping[str, Any] | None) -> FloatArray:
    given = given or {}
    if foreign := sorted(set(given) - set(space.names)):
        raise ValueError(
            f"defaults names {', '.join(foreign)}, not in the search space, which has"
            f" {', '.join(space.names)}."
        )
    values = {name: space.space[name].default_value for name in space.names} | dict(given)
    entries = to_vector(space.space, values)
    for name, entry in zip(space.names, entries, strict=True):
        if math.isnan(entry):
            raise ValueError(
                f"defaults: {name}={values[name]!r} is not a value of {space.space[name]}."
            )
    return entries


# --- the values of a hyperparameter -----------------------------------------------------------


class _Column(NamedTuple):
    """Entries (n,) of a hyperparameter, NaN where absent, and masks (n,), to be filled.

    ``moved`` were outside the range, ``foreign`` are no values of the space, ``converted`` were
    counts for fractions, or the reverse.
    """

    entries: FloatArray
    moved: BoolArray
    foreign: BoolArray
    converted: BoolArray


def _fill(
    column: _Column, hyperparameter: Hyperparameter[Any, Any], values: list[Any], size: DataSize
) -> None:
    choices = _categories(hyperparameter)
    if isinstance(hyperparameter, Constant):
        told = ~_missing(values)
        column.entries[told] = 1.0
        is_text = math.isnan(to_number(hyperparameter.value))
        other = column.foreign if is_text else column.moved
        choices = choices_of(hyperparameter) or ()
        other[:] = told & [find(choices, value) is None for value in values]
    elif choices is not None:
        place = finder(choices)
        found = [None if value is ABSENT else place(value) for value in values]
        column.entries[:] = [math.nan if i is None else i for i in found]
        others = np.isnan(column.entries) & ~_missing(values)
        # Only numbers, 0.01 for "scale" or "auto": another language, so nothing is told.
        kinds = {kind_of(values[i]) for i in np.flatnonzero(others)}
        if kinds != {"number"} or not np.isnan(column.entries).all():
            column.foreign[:] = others
    else:
        numbers = _to_numbers(column, hyperparameter, values, size)
        known = ~np.isnan(numbers)
        column.entries[known], column.moved[known] = _place(hyperparameter, numbers[known])


def _categories(hyperparameter: Hyperparameter[Any, Any]) -> Sequence[Any] | None:
    """The choices that are no numbers in order; None for a numeric hyperparameter."""
    choices = choices_of(hyperparameter)
    if choices is None or isinstance(hyperparameter, CategoricalHyperparameter):
        return choices
    return choices if np.isnan(numbers_of(choices)).any() else None


def speak_alike(known: Hyperparameter[Any, Any], asked: Hyperparameter[Any, Any]) -> bool:
    """Whether values of a known hyperparameter can be values of the one that is asked for.

    Numbers can be numbers, and categories others of which some are the same.
    """
    theirs, mine = _categories(known), _categories(asked)
    if theirs is None or mine is None:
        return theirs is None and mine is None
    return any(find(mine, value) is not None for value in theirs)


def _missing(values: Sequence[Any]) -> BoolArray:
    kinds = ("none", "missing")
    return np.array([v is ABSENT or kind_of(v) in kinds for v in values], dtype=bool)


def _to_numbers(
    column: _Column, hyperparameter: Hyperparameter[Any, Any], values: list[Any], size: DataSize
) -> FloatArray:
    """Numbers (n,) in the unit of the space, NaN where there is none."""
    name, unit = hyperparameter.name, unit_of(hyperparameter)
    kinds = set(map(type, values))  # a million values: looked at one by one only if need be
    if kinds <= {int, float, type(ABSENT)}:
        if type(ABSENT) in kinds:
            values = [math.nan if value is ABSENT else value for value in values]
        numbers = np.array(values, dtype=np.float64)
    else:
        values = [read(value) if isinstance(value, str) else value for value in values]
        numbers = np.array([to_number(value) for value in values], dtype=np.float64)
        for i in np.flatnonzero(np.isnan(numbers)):
            if values[i] is not ABSENT:
                numbers[i] = meaning(name, values[i], size)
        column.foreign[:] = np.isnan(numbers) & ~_missing(values)
    if unit is None:
        return numbers
    numbers, other = in_unit(name, values, numbers, unit, size)
    unknown = other & np.isnan(numbers)
    if not np.isnan(numbers).all():  # else nothing is told in the language of the space
        column.foreign[:] |= unknown
    column.converted[:] = other & ~unknown
    return numbers


def _place(
    hyperparameter: Hyperparameter[Any, Any], numbers: FloatArray
) -> tuple[FloatArray, BoolArray]:
    """The nearest entries (n,) of numbers, and whether they had to be moved."""
    if (choices := choices_of(hyperparameter)) is not None:
        sequence = numbers_of(choices)
        nearest = np.abs(numbers[:, None] - sequence).argmin(axis=1)
        return nearest.astype(np.float64), ~np.isclose(numbers, sequence[nearest])
    assert isinstance(hyperparameter, FloatHyperparameter | IntegerHyperparameter)
    if isinstance(hyperparameter, IntegerHyperparameter):
        numbers = np.rint(numbers)
    lower, upper = hyperparameter.lower, hyperparameter.upper
    legal = np.clip(numbers, float(lower), float(upper))
    outside = (legal != numbers) & ~is_near(numbers, lower, upper)
    entries = hyperparameter.to_vector(legal)
    if isinstance(scale := scale_of(hyperparameter), Steps):
        steps = scale.to_value(entries)
        entries = scale.to_vector(steps)
        outside |= ~np.isclose(steps, legal)
    return entries, outside


# --- what became of them ----------------------------------------------------------------------


def note_coverage(coverage: Sequence[Coverage]) -> tuple[str, ...]:
    """What a user should know of the runs of several tasks, a sentence each."""
    n_runs, n_kept = sum(c.n_runs for c in coverage), sum(c.n_kept for c in coverage)
    out = []
    if n_kept < n_runs:
        n_partial = sum(c.n_partial for c in coverage)
        told = [f"{name} in {n}" for name, n in _sum_up(coverage, "dropped")]
        told += [f"a lower budget in {n_partial}"] * bool(n_partial)
        because = f" because of {' and '.join(told)}" if told else ""
        out.append(f"{n_runs - n_kept} of {n_runs} recorded runs are left out{because}.")
    for counts, sentence in (
        ("clipped", "{} was moved into the range of this search in {} of {} recorded runs."),
        ("imputed", "{} is missing in {} of {} recorded runs, its default is taken."),
        ("converted", "{} was converted between counts and fractions in {} of {} recorded runs."),
    ):
        out += [sentence.format(name, n, n_kept) for name, n in _sum_up(coverage, counts)]
    return tuple(out)


def _sum_up(coverage: Sequence[Coverage], counts: str) -> list[tuple[str, int]]:
    total = Counter[str]()
    for covered in coverage:
        total.update(getattr(covered, counts))
    return total.most_common()


def nothing_left(coverage: Sequence[Coverage]) -> MemoryMismatch:
    """The error for runs of which a search space can use none."""
    told = "; ".join(str(covered) for covered in coverage[:3])
    return MemoryMismatch(f"No run of the memory lies in the search space: {told}.")


# --- what a value means by the name of its hyperparameter ---------------------------------------

# van Hoof 2018, thesis 3.1.1: "sqrt" of max_features is sqrt(p) of the p columns of the data, and
# 5 of min_samples_leaf is 5 of its n rows, or the fraction 5 / n. A search space holds either
# counts or fractions; what was recorded as the other is converted with the sizes of the data that
# it was recorded on.

Unit = Literal["count", "fraction"]

_COUNTED: Final = {
    "max_features": "n_features",
    "max_samples": "n_rows",
    "min_samples_leaf": "n_rows",
    "min_samples_split": "n_rows",
}


def unit_of(hyperparameter: Hyperparameter[Any, Any]) -> Unit | None:
    """What a numeric hyperparameter counts in, by the end of its name; None if neither or either.

    "rf.max_features", "rf:max_features" and "rf__max_features" are "max_features".
    """
    if _last_part(hyperparameter.name) not in _COUNTED:
        return None
    if isinstance(hyperparameter, OrdinalHyperparameter):
        known = hyperparameter.sequence
        if not all(isinstance(value, numbers.Real) for value in known):
            return None
        whole = all(isinstance(value, numbers.Integral) for value in known)
    elif isinstance(hyperparameter, FloatHyperparameter | IntegerHyperparameter):
        known = (hyperparameter.lower, hyperparameter.upper)
        whole = isinstance(hyperparameter, IntegerHyperparameter)
    else:
        return None
    if whole or min(known) >= 1.0:
        return "count"
    return "fraction" if max(known) <= 1.0 else None


def meaning(name: str, value: Any, size: DataSize) -> float:
    """The number that a text or None stands for; NaN where it stands for none.

    ``max_features``: all for None, sqrt(p) for "sqrt" and "auto", log2(p) for "log2", at least
    one, as a fraction. ``gamma``: 1 / p for "auto", and for "scale", as on standardised columns.
    ``max_depth``: 20 for None, deep enough not to matter, not so deep as to stick out.
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
            return 20.0
    return math.nan


def in_unit(
    name: str, values: Sequence[Any], known: FloatArray, unit: Unit, size: DataSize
) -> tuple[FloatArray, BoolArray]:
    """Recorded numbers (n,) in the unit of the search space, and which were in the other one.

    Numbers are NaN where the sizes that it takes are not known. ``known`` are the ``values`` as
    numbers, NaN where there is none; the number of a text is a fraction.

    As in scikit-learn a whole number is a count and a float up to 1 a fraction. A float above 1
    is a count again: data frames turn a column of counts with gaps into floats. 1.0 is what the
    other floats of the column are, and what the space has where there are none.
    """
    is_whole = np.array([isinstance(value, numbers.Integral) for value in values], dtype=bool)
    is_float = np.array([isinstance(value, numbers.Real) for value in values]) & ~is_whole
    floats = known[is_float]
    one_counts = (floats > 1.0).any() or (unit == "count" and not (floats < 1.0).any())
    is_count = is_whole | (is_float & ((known > 1.0) | ((known == 1.0) & one_counts)))
    other = ~np.isnan(known) & (is_count if unit == "fraction" else ~is_count)
    total = getattr(size, _COUNTED[_last_part(name)]) or math.nan
    converted = known / total if unit == "fraction" else known * total
    return np.where(other, converted, known), other


def in_other_units(
    space: ConfigurationSpace, configurations: Sequence[Mapping[str, Any]]
) -> BoolArray:
    """Which runs (n,) have a count for a hyperparameter of fractions, or the reverse."""
    found = np.zeros(len(configurations), dtype=bool)
    for name, hyperparameter in space.items():
        if unit := unit_of(hyperparameter):
            values = [configuration.get(name) for configuration in configurations]
            known = np.array([to_number(value) for value in values], dtype=np.float64)
            found |= in_unit(name, values, known, unit, DataSize())[1]
    return found


def _last_part(name: str) -> str:
    return re.split(r"\.|:|__", name)[-1]
