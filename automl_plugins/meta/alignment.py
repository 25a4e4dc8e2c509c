"""Runs recorded in one search space as vectors of another, matched by name.

What the new space asks for and a run does not have is imputed, what lies outside is clipped or
dropped, and ``Coverage`` says how much of that there was.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Collection, Mapping, Sequence, Set
from typing import Any, Literal, NamedTuple, TypedDict, Unpack, get_args

import numpy as np
from ConfigSpace.hyperparameters import (
    CategoricalHyperparameter,
    Constant,
    FloatHyperparameter,
    Hyperparameter,
    IntegerHyperparameter,
)

from automl_plugins._arguments import check_choice
from automl_plugins.arrays import BoolArray, FloatArray
from automl_plugins.meta.coverage import Beyond, Coverage, count_varied
from automl_plugins.meta.imputation import dependent_elsewhere, impute
from automl_plugins.meta.recorded import guess_ranges, nones_of, ranges_of, read_switch
from automl_plugins.meta.units import (
    DataSize,
    ends_of,
    in_unit,
    meaning,
    no_limit_among,
    read_no_limit,
    unit_of,
    without_no_limit,
)
from automl_plugins.records.task_record import TaskRecord
from automl_plugins.spaces.ranges import scale_of
from automl_plugins.spaces.scales import LinearScale, Steps
from automl_plugins.spaces.values import (
    ABSENT,
    choices_of,
    find,
    finder,
    is_near,
    kind_of,
    numbers_of,
    read,
    to_float,
    to_number,
    to_vector,
)
from automl_plugins.spaces.vector_space import VectorSpace

OutOfRange = Literal["clip", "drop"]
Missing = Literal["impute", "drop"]

_RANGES = FloatHyperparameter | IntegerHyperparameter
_LARGEST = sys.float_info.max
_ROUNDED = 1e-3  # of a step, by which single precision or printed digits miss it
#: Share of recorded values in a range, or among choices, below which it is that of something else.
IN_RANGE = 0.05


class AlignOptions(TypedDict, total=False):
    """How runs that do not fit are treated.

    Attributes:
        out_of_range: What becomes of a number outside its range: ``"clip"`` moves it to the
            border, ``"drop"`` leaves the run out. One inside, between two steps, goes to the
            nearer one in any case. A number of a recorded range, or of one that is taken for it
            (``guess_ranges``), is moved in the same way among categories that are numbers, and is
            not known where it is none of other categories.
            Any other category that the space does not have always drops the run. Where hardly
            any value of a hyperparameter is in the language of the space (numbers for categories;
            counts for fractions without the sizes), the others are not known. The values of a
            switch, truth values or 0 and 1, are those of either language.
        missing: What becomes of a run without a value for an active hyperparameter:
            ``"impute"`` sets its default, ``"drop"`` leaves the run out.
        defaults: Value of a hyperparameter, by name, in runs that do not have it; others have
            the default of the space.
    """

    out_of_range: OutOfRange
    missing: Missing
    defaults: Mapping[str, Any] | None


class Alignment(NamedTuple):
    """Runs (n) in a search space: vectors (n, d), and the mask (n,) of those that are used.

    Rows that are not used are NaN. ``imputed`` (n, d) are the entries that were not recorded.
    """

    vectors: FloatArray
    keep: BoolArray
    coverage: Coverage
    imputed: BoolArray


def align(
    space: VectorSpace,
    configurations: Sequence[Mapping[str, Any]],
    *,
    task: str,
    size: DataSize | None = None,
    records: Sequence[TaskRecord] = (),
    **options: Unpack[AlignOptions],
) -> Alignment:
    """Configurations of any space as vectors of ``space``.

    Runs of a branch that the space does not have are left out: they would be default
    configurations with losses of another algorithm. Such a run has none of the hyperparameters
    of the space, or lacks one that depends on another where it was recorded, which the space does
    not have. Runs of a space that is a branch of this one belong to that branch, see ``impute``.

    Args:
        space: The search space.
        configurations: Values by name (n); absent, None or NaN where there is none. None is a
            value where it is a choice of the recorded space, or of ``space`` if none was recorded.
        task: Name of their task, for the report.
        size: Sizes of the data of the task, with which ``max_features="sqrt"`` becomes a number,
            and counts become the fractions that the space has, or the reverse.
        records: The records of the runs: their own spaces say what depends on what there, which
            hyperparameters are ranges, and of which None is a choice.
        **options: See ``AlignOptions``.

    Raises:
        ValueError: For a default that the space does not allow, or an unknown policy.
    """
    reading = read_runs(space, configurations, size=size, records=records)
    return complete(space, reading, task, **options)


class Reading(NamedTuple):
    """What runs (n) say in the language of a search space.

    Arrays (n, d): the ``entries`` of their vectors, NaN where not known; the ``numbers`` that they
    were made of, where they are numbers; and masks. ``recorded``: where there was a value at all.
    ``outside`` were moved to an end of the range, ``rounded`` to a step, ``foreign`` are not
    values of the space, ``converted`` were counts for fractions, or the reverse.
    """

    configurations: Sequence[Mapping[str, Any]]
    names: Set[str]  # of all their values
    records: Sequence[TaskRecord]
    entries: FloatArray
    numbers: FloatArray
    recorded: BoolArray
    outside: BoolArray
    rounded: BoolArray
    foreign: BoolArray
    converted: BoolArray
    beyond: Mapping[str, Beyond] = {}

    def column(self, i: int) -> _Column:
        """Views of all arrays at a hyperparameter."""
        return _Column(*(getattr(self, name)[:, i] for name in _Column._fields))


def read_runs(
    space: VectorSpace,
    configurations: Sequence[Mapping[str, Any]],
    *,
    size: DataSize | None = None,
    records: Sequence[TaskRecord] = (),
    guessed: Mapping[str, float] | None = None,
) -> Reading:
    """The first half of ``align``, with its arguments.

    ``guessed`` are the ``guess_ranges`` of a whole memory; None takes those of ``records``.
    """
    entries, numbers = np.full((2, len(configurations), space.d), np.nan)
    masks = np.zeros((5, *entries.shape), dtype=bool)
    names = {name for configuration in configurations for name in configuration}
    reading = Reading(configurations, names, records, entries, numbers, *masks)
    guessed = guess_ranges(space, records) if guessed is None else guessed
    nones, ranges = nones_of(space, records), ranges_of(records, guessed)
    for i, name in enumerate(space.names):
        if name in names:
            values = [configuration.get(name, ABSENT) for configuration in configurations]
            column = reading.column(i)
            kinds = ("missing",) if name in nones else ("none", "missing")
            column.recorded[:] = ~_absent(values, kinds)
            apart = guessed.get(name, math.nan)
            _fill(column, space.space[name], values, size or DataSize(), name in ranges, apart)
    return reading


def complete(
    space: VectorSpace,
    reading: Reading,
    task: str,
    *,
    out_of_range: OutOfRange = "clip",
    missing: Missing = "impute",
    defaults: Mapping[str, Any] | None = None,
) -> Alignment:
    """The second half of ``align``, with its arguments."""
    check_choice("out_of_range", out_of_range, get_args(OutOfRange))
    check_choice("missing", missing, get_args(Missing))
    configurations, records, vectors = reading.configurations, reading.records, reading.entries
    outside, foreign, n = reading.outside, reading.foreign, len(configurations)
    lost = foreign | outside if out_of_range == "drop" else foreign
    given = np.array([name in (defaults or {}) for name in space.names], dtype=bool)
    completed = impute(space, vectors, _defaults(space, defaults), given)
    # A constant has its value, recorded or not: nothing is guessed.
    imputed = np.isnan(vectors) & ~np.isnan(completed) & (space.n_values > 1)
    absent = imputed & ~reading.recorded
    unrelated = np.any(absent[:, dependent_elsewhere(space, records) & ~given], axis=1)
    # A run without any value is the default configuration; one with other values only is not.
    for i in np.flatnonzero(~reading.recorded.any(axis=1)).tolist():
        values = list(configurations[i].values())
        unrelated[i] |= not _absent(values, ("none", "missing")).all()
    if missing == "drop":
        lost = lost | (imputed & reading.recorded)  # what is missing itself is no reason to name
    keep = ~lost.any(axis=1) & ~unrelated
    if missing == "drop":
        keep &= ~imputed.any(axis=1)
    keep &= space.allowed(completed)
    completed[~keep] = np.nan

    def by_name(mask: BoolArray) -> dict[str, int]:
        counts = mask.sum(axis=0).tolist()
        return {name: count for name, count in zip(space.names, counts, strict=True) if count}

    shared = tuple(name for name in space.names if name in reading.names)
    ignored = tuple(sorted(reading.names - set(shared)))
    kept = [configurations[i] for i in np.flatnonzero(keep).tolist()] if ignored else []
    coverage = Coverage(
        task=task,
        n_runs=n,
        n_kept=int(keep.sum()),
        n_clipped=int(outside[keep].any(axis=1).sum()),
        imputed=by_name(imputed[keep]),
        shared=shared,
        ignored=ignored,
        clipped=by_name(outside[keep]),
        dropped=by_name(lost),
        converted=by_name(reading.converted[keep]),
        n_unrelated=int(unrelated.sum()),
        rounded=by_name(reading.rounded[keep]),
        unusable=by_name((imputed & reading.recorded)[keep]),
        beyond=reading.beyond,
        lacking=count_varied(kept, ignored),
    )
    imputed[~keep] = False
    return Alignment(completed, np.asarray(keep), coverage, imputed)


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
    """Entries (n,) of a hyperparameter to be filled, see ``Reading``; ``recorded`` is known."""

    entries: FloatArray
    numbers: FloatArray
    recorded: BoolArray
    outside: BoolArray
    rounded: BoolArray
    foreign: BoolArray
    converted: BoolArray

    def place(self, hyperparameter: Hyperparameter[Any, Any], numbers: FloatArray) -> None:
        """Fill in what the numbers (n,) are in the space; NaN changes nothing."""
        known = ~np.isnan(numbers)
        self.numbers[known] = numbers[known]
        placed = _place(hyperparameter, numbers[known])
        self.entries[known], self.outside[known], self.rounded[known] = placed
        self.rounded[self.converted] = False  # hardly one is whole; they are noted


def _fill(
    column: _Column,
    hyperparameter: Hyperparameter[Any, Any],
    values: list[Any],
    size: DataSize,
    of_range: bool,
    apart: float,
) -> None:
    choices, values = _categories(hyperparameter), read_switch(hyperparameter, values)
    if isinstance(hyperparameter, Constant):
        known = column.recorded
        column.entries[known] = 1.0
        # As with categories another text drops the run; as with ranges another number is moved.
        is_text = math.isnan(to_number(hyperparameter.value))
        other = column.foreign if is_text else column.outside
        choices = choices_of(hyperparameter) or ()
        other[:] = known & [find(choices, value) is None for value in values]
    elif choices is not None:
        place = finder(choices)
        found = [None if value is ABSENT else place(value) for value in values]
        column.entries[:] = [math.nan if i is None else i for i in found]
        others = np.isnan(column.entries) & column.recorded
        kinds = {kind_of(values[i]) for i in np.flatnonzero(others)}
        if kinds != {"number"}:
            column.foreign[:] = others
        elif of_range:
            given = np.array([to_number(value) for value in values])
            texts = _texts(hyperparameter.name, choices, given, size)
            texts = np.fmax(texts, no_limit_among(hyperparameter.name, choices, given))
            column.entries[others] = texts[others]
            rest, numbers = others & np.isnan(texts), read_no_limit(hyperparameter, given)
            column.foreign[:] = rest & (numbers == apart)
            # 0.01 for "scale" or "auto": nothing is known of it, whatever equals a choice.
            if np.count_nonzero(~np.isnan(numbers_of(choices))) > 1:
                column.numbers[:] = np.where(column.foreign, np.nan, numbers)
                column.place(hyperparameter, np.where(rest, column.numbers, np.nan))
        # Only numbers, and hardly one a choice.
        elif np.mean(~others[column.recorded]) >= IN_RANGE:
            column.foreign[:] = others
    else:
        column.place(hyperparameter, _to_numbers(column, hyperparameter, values, size))


def _texts(name: str, choices: Sequence[Any], numbers: FloatArray, size: DataSize) -> FloatArray:
    """Index (n,) of the text that means the number, as "sqrt" does; NaN where none does."""
    found = np.full(len(numbers), np.nan)
    for i, choice in reversed([*enumerate(choices)]):  # the first one counts
        if isinstance(choice, str):
            found[np.isclose(numbers, meaning(name, choice, size), rtol=1e-6, atol=0.0)] = i
    return found


def _categories(hyperparameter: Hyperparameter[Any, Any]) -> Sequence[Any] | None:
    """The choices unless they are ordered numbers; None for a numeric hyperparameter."""
    choices = choices_of(hyperparameter)
    if choices is None or isinstance(hyperparameter, CategoricalHyperparameter):
        return choices
    return None if _are_numbers(choices) else choices


def _are_numbers(choices: Sequence[Any]) -> bool:
    return not np.isnan(numbers_of(choices)).any()


def speak_alike(
    known: Hyperparameter[Any, Any], asked: Hyperparameter[Any, Any], recorded: FloatArray
) -> bool:
    """Whether what is ``known`` of a hyperparameter means something for the one that is ``asked``.

    It does if both are numbers, and a twentieth of those ``recorded`` (n,), entries of vectors,
    lie in the range that is asked; or if both are categories of which some are the same.
    """
    theirs, mine = _categories(known), _categories(asked)
    if theirs is not None:
        return mine is not None and any(find(mine, value) is not None for value in theirs)
    if mine is not None and not _are_numbers(mine):
        return False
    unit = unit_of(asked)
    if unit is not None and unit != unit_of(known):  # counts and fractions have other ranges
        return True
    legal, values = ends_of(asked), known.to_value(recorded)
    return bool(np.mean((values >= min(legal)) & (values <= max(legal))) >= IN_RANGE)


def _absent(values: Sequence[Any], kinds: Collection[str]) -> BoolArray:
    return np.array([v is ABSENT or kind_of(v) in kinds for v in values], dtype=bool)


def _to_numbers(
    column: _Column, hyperparameter: Hyperparameter[Any, Any], values: list[Any], size: DataSize
) -> FloatArray:
    """Numbers (n,) in the unit of the space, NaN where there is none."""
    name, unit = hyperparameter.name, unit_of(hyperparameter)
    if set(map(type, values)) <= {int, float, type(ABSENT)}:  # of a million values: faster
        numbers = np.array([to_float(value) for value in values], dtype=np.float64)
    else:
        values = [read(value) if isinstance(value, str) else value for value in values]
        numbers = np.array([to_number(value) for value in values], dtype=np.float64)
        for i in np.flatnonzero(np.isnan(numbers)):
            if values[i] is not ABSENT:
                numbers[i] = meaning(name, values[i], size)
        column.foreign[:] = np.isnan(numbers) & column.recorded
    numbers = read_no_limit(hyperparameter, numbers)
    if unit is None:
        return numbers
    numbers, other = in_unit(name, values, numbers, unit, size)
    unknown = other & np.isnan(numbers)
    if not np.isnan(numbers).all():  # else none is known in the unit of the space
        column.foreign[:] |= unknown
    column.converted[:] = other & ~unknown
    return numbers


def _place(
    hyperparameter: Hyperparameter[Any, Any], numbers: FloatArray
) -> tuple[FloatArray, BoolArray, BoolArray]:
    """The entries (n,) nearest to the numbers; whether each was outside, or between two steps."""
    if (choices := choices_of(hyperparameter)) is not None:
        sequence = numbers_of(choices)
        if isinstance(hyperparameter, CategoricalHyperparameter) and (numbers >= 0.0).all():
            sequence = without_no_limit(sequence)
        low, high = np.nanmin(sequence), np.nanmax(sequence)
        legal = np.clip(numbers, low, high)  # from afar all choices are equally near
        # Infinities have no difference, nor have floats as large as they get; halves have.
        halves = [np.clip(found, -_LARGEST, _LARGEST) / 2.0 for found in (legal, sequence)]
        nearest = np.nanargmin(np.abs(halves[0][:, None] - halves[1]), axis=1)
        moved = ~np.isclose(numbers, sequence[nearest])
        outside = moved & ((numbers < low) | (numbers > high))
        return nearest.astype(np.float64), outside, moved & ~outside
    assert isinstance(hyperparameter, _RANGES)
    whole = isinstance(hyperparameter, IntegerHyperparameter)
    between = whole & ~np.isclose(numbers, np.rint(numbers), rtol=0.0, atol=_ROUNDED)
    numbers = np.rint(numbers) if whole else numbers
    lower, upper = hyperparameter.lower, hyperparameter.upper
    legal = np.clip(numbers, float(lower), float(upper))
    # ConfigSpace rounds the ends of a range: what lies beyond by that only is the end.
    outside = (legal != numbers) & ~is_near(numbers, lower, upper)
    rounded = np.zeros_like(outside)
    entries = hyperparameter.to_vector(legal)
    scale = scale_of(hyperparameter)
    if isinstance(scale, Steps):
        found, place = scale.to_value(entries), scale.index(legal)
        near = scale.legal_value(legal) | (np.abs(place - np.rint(place)) <= _ROUNDED)
        # Integers are recorded exactly; real steps may be missed by a rounding.
        rounded = found != legal if scale.is_integer else ~near
        entries = scale.to_vector(found)
    elif isinstance(scale, LinearScale) and scale.is_rounded:
        rounded = scale.to_value(entries) != legal
    return entries, outside, (rounded | between) & ~outside
