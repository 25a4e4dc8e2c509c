"""What recorded runs say in the language of a search space, before ``align`` completes it.

Numbers are converted, moved into ranges and to steps, categories are found among the choices; a
``Reading`` keeps what became of each value.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Any, NamedTuple

import numpy as np
from ConfigSpace.hyperparameters import (
    CategoricalHyperparameter,
    Constant,
    FloatHyperparameter,
    Hyperparameter,
    IntegerHyperparameter,
)

from automl_plugins.arrays import BoolArray, FloatArray
from automl_plugins.meta.coverage import Beyond
from automl_plugins.meta.units import (
    DataSize,
    are_exponents,
    as_numbers,
    ends_of,
    has_words,
    in_unit,
    meaning,
    no_limit_among,
    read_no_limit,
    unit_of,
    without_no_limit,
)
from automl_plugins.records.task_record import TaskRecord
from automl_plugins.spaces.ranges import POSITION, scale_of
from automl_plugins.spaces.scales import LinearScale, Steps
from automl_plugins.spaces.values import (
    ABSENT,
    choices_of,
    find,
    finder,
    is_near,
    kind_of,
    nearest,
    numbers_of,
    read,
    to_float,
    to_number,
)
from automl_plugins.spaces.vector_space import VectorSpace

_RANGES = FloatHyperparameter | IntegerHyperparameter
_ROUNDED = 1e-3  # of a step, by which single precision or printed digits miss it
#: Share of recorded values in a range, or among choices, below which they mean something else.
IN_RANGE = 0.05
_ALIKE = 4.0  # a number is taken for a word that means at most so many times as much, or as little
_AT_THE_EDGE = 3  # of so many configurations one goes to the end of the range


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
    """What runs of one task say, for ``align``.

    Args:
        space: The search space.
        configurations: Values by name (n); absent, None or NaN where there is none. None is a
            value where it is a choice of the recorded space, or of ``space`` if none was recorded.
        size: Sizes of the data of the task, with which ``max_features="sqrt"`` becomes a number,
            and counts become the fractions that the space has, or the reverse.
        records: The records of the runs: their own spaces say what depends on what there, which
            hyperparameters are ranges, and of which None is a choice.
        guessed: The ``guess_ranges`` of a whole memory; None takes those of ``records``.
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
            column.recorded[:] = [v is not ABSENT and kind_of(v) not in kinds for v in values]
            apart = guessed.get(name, math.nan)
            _fill(column, space.space[name], values, size or DataSize(), ranges.get(name), apart)
    return reading


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

    def place(self, hp: Hyperparameter[Any, Any], numbers: FloatArray, is_log: bool) -> None:
        """Fill in what the numbers (n,) are in the space, see ``_place``; NaN changes nothing."""
        known = ~np.isnan(numbers)
        self.numbers[known] = numbers[known]
        placed = _place(hp, numbers[known], is_log)
        self.entries[known], self.outside[known], self.rounded[known] = placed
        self.rounded[self.converted] = False  # hardly one is whole; they are noted


def _fill(
    column: _Column,
    hyperparameter: Hyperparameter[Any, Any],
    values: list[Any],
    size: DataSize,
    is_log: bool | None,
    apart: float,
) -> None:
    """Fill in the column; ``is_log`` as in ``ranges_of``, None for what is no range there."""
    if hyperparameter.meta == POSITION or (is_log and are_exponents(hyperparameter)):
        return  # nobody has recorded these
    values = read_switch(hyperparameter, values)
    if isinstance(hyperparameter, Constant):
        _fill_constant(column, hyperparameter, values)
        return
    choices = _categories(hyperparameter)
    if choices is None or (is_log is not None and unit_of(hyperparameter) is not None):
        numbers = _to_numbers(column, hyperparameter, values, size)
        column.place(hyperparameter, numbers, bool(is_log))
        return
    place = finder(choices)
    found = [None if value is ABSENT else place(value) for value in values]
    column.entries[:] = [math.nan if i is None else i for i in found]
    others = np.isnan(column.entries) & column.recorded
    kinds = {kind_of(values[i]) for i in np.flatnonzero(others)}
    if kinds != {"number"}:
        column.foreign[:] = others
    elif is_log is not None:
        given = np.array([to_number(value) for value in values])
        no_limit = no_limit_among(hyperparameter.name, choices, given)
        column.entries[others] = no_limit[others]
        numbers = read_no_limit(hyperparameter, given)
        rest = others & np.isnan(no_limit)
        column.foreign[:] = rest & (numbers == apart)
        rest &= ~column.foreign
        if has_words(hyperparameter) and size.n_features:
            known = as_numbers(hyperparameter.name, values, size)
            meant = as_numbers(hyperparameter.name, choices, size)
            _fill_words(column, np.where(rest, known, np.nan), meant)
        # 0.01 for "scale" alone, without the sizes: nothing is known of it.
        elif np.count_nonzero(~np.isnan(numbers_of(choices))) > 1:
            column.numbers[:] = np.where(column.foreign, np.nan, numbers)
            column.place(hyperparameter, np.where(rest, column.numbers, np.nan), is_log)
    # Only numbers, and hardly one a choice.
    elif np.mean(~others[column.recorded]) >= IN_RANGE:
        column.foreign[:] = others


def _fill_constant(column: _Column, hyperparameter: Constant, values: list[Any]) -> None:
    column.entries[column.recorded] = 1.0
    # As with categories another text drops the run; as with ranges another number is moved.
    is_text = math.isnan(to_number(hyperparameter.value))
    other = column.foreign if is_text else column.outside
    known = choices_of(hyperparameter) or ()
    other[:] = column.recorded & [find(known, value) is None for value in values]


def _fill_words(column: _Column, numbers: FloatArray, choices: FloatArray) -> None:
    """Fill in the choices (k,) nearest to the numbers (n,), by their ratio; NaN changes nothing.

    What is far from every choice is none of them: with ``gamma`` ten times as large another ``C``
    is best. If nearly all is far, it is unknown, as are the numbers of other categories.
    """
    known = np.flatnonzero(~np.isnan(numbers))
    found = nearest(numbers[known], choices, by_ratio=True)
    given, meant = numbers[known], choices[found]
    near = (given <= _ALIKE * meant) & (meant <= _ALIKE * given)
    column.entries[known[near]] = found[near]
    column.rounded[known] = near & ~np.isclose(given, meant)
    if np.count_nonzero(near) >= IN_RANGE * len(near):
        column.foreign[known] = ~near


def _categories(hyperparameter: Hyperparameter[Any, Any]) -> Sequence[Any] | None:
    """The choices unless they are ordered numbers; None for a numeric hyperparameter."""
    choices = choices_of(hyperparameter)
    if choices is None or isinstance(hyperparameter, CategoricalHyperparameter):
        return choices
    return choices if np.isnan(numbers_of(choices)).any() else None


def speak_alike(
    known: Hyperparameter[Any, Any], asked: Hyperparameter[Any, Any], recorded: FloatArray
) -> bool:
    """Whether what is ``known`` of a hyperparameter means something for the one that is ``asked``.

    It does if both are numbers, and a twentieth of those ``recorded`` (n,), entries of vectors,
    lie in the range that is asked, or between its choices that are numbers, two at least; or if
    both are categories of which some are the same; or if words that mean numbers are asked.
    """
    if (theirs := _categories(known)) is not None:
        mine = ends_of(asked)
        return any(find(mine, value) is not None for value in read_switch(asked, [*theirs]))
    if are_exponents(asked) and getattr(known, "log", False):
        return False
    legal = numbers_of(ends_of(asked))
    # None or "auto" beside numbers is one choice more.
    if has_words(asked) or np.count_nonzero(~np.isnan(legal)) < 2:
        return has_words(asked)
    unit = unit_of(asked)
    if unit is not None and unit != unit_of(known):  # counts and fractions have other ranges
        return True
    values = known.to_value(recorded)
    inside = (values >= np.nanmin(legal)) & (values <= np.nanmax(legal))
    return bool(np.mean(inside) >= IN_RANGE)


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
            # pandas' NA, compared with a text, is neither true nor false.
            if values[i] is not ABSENT and kind_of(values[i]) != "missing":
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
    hyperparameter: Hyperparameter[Any, Any], numbers: FloatArray, is_log: bool = False
) -> tuple[FloatArray, BoolArray, BoolArray]:
    """The entries (n,) nearest to the numbers; whether each was outside, or between two steps.

    Among choices of positive numbers the nearest has the least ratio if ``is_log``.
    """
    if (choices := choices_of(hyperparameter)) is not None:
        sequence = numbers_of(choices)
        if isinstance(hyperparameter, CategoricalHyperparameter) and (numbers >= 0.0).all():
            sequence = without_no_limit(hyperparameter.name, sequence)
        low, high = np.nanmin(sequence), np.nanmax(sequence)
        legal = np.clip(numbers, low, high)  # from afar all choices are equally near
        index = nearest(legal, sequence, by_ratio=is_log and bool(low > 0.0))
        moved = ~np.isclose(numbers, sequence[index])
        outside = moved & ((numbers < low) | (numbers > high))
        return index.astype(np.float64), outside, moved & ~outside
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


# --- what the records say of hyperparameters: ranges, choices, switches ----------------------


def nones_of(space: VectorSpace, records: Sequence[TaskRecord]) -> set[str]:
    """The hyperparameters of which None is a choice where they were recorded."""
    known = _recorded(records)
    # Runs that came without a space may be of this one, in which None may be a choice.
    if not records or any(record.space is None for record in records):
        known += space.space.values()
    return {hp.name for hp in known if None in (choices_of(hp) or ())}


def ranges_of(records: Sequence[TaskRecord], guessed: Iterable[str]) -> dict[str, bool]:
    """The hyperparameters that are ranges in every recorded space, or ``guessed`` if in none.

    With each, whether it is on a logarithmic scale in all of these spaces.
    """
    found, recorded = dict.fromkeys(guessed, False), _recorded(records)
    for hp in recorded:
        found[hp.name] = bool(getattr(hp, "log", False)) and found.get(hp.name, True)
    # Only what is a range in every recorded space has numbers that can be ordered.
    others = {hp.name for hp in recorded if not isinstance(hp, _RANGES)}
    return {name: is_log for name, is_log in found.items() if name not in others}


def guess_ranges(space: VectorSpace, records: Iterable[TaskRecord]) -> dict[str, float]:
    """The hyperparameters that are taken for ranges in runs without a space.

    At least two of their choices in ``space`` are numbers, and at least half of the distinct
    recorded numbers are not among these.

    Returns:
        By name the number that does not belong to the range, NaN if there is none: the only
        negative one, if no choice is negative. -1 often stands for "no limit".
    """
    runs = [run for r in records if r.space is None for run in r.configurations]
    found: dict[str, float] = {}
    for name in space.names:
        hyperparameter = space.space[name]
        choices = choices_of(hyperparameter) or []
        numbers = numbers_of(choices)
        is_category = isinstance(hyperparameter, CategoricalHyperparameter)
        if not is_category or np.count_nonzero(~np.isnan(numbers)) < 2:
            continue
        place = finder(choices)
        values = read_switch(hyperparameter, [run[name] for run in runs if name in run])
        known = {value: place(value) for value in values if kind_of(value) == "number"}
        negative = [to_float(value) for value in known if value < 0]
        apart = negative[0] if len(negative) == 1 and np.nanmin(numbers) >= 0.0 else math.nan
        of_range = [i for value, i in known.items() if to_float(value) != apart]
        if of_range and of_range.count(None) >= len(of_range) / 2:
            found[name] = apart
    return found


def read_switch(hyperparameter: Hyperparameter[Any, Any], values: list[Any]) -> list[Any]:
    """The values of a switch as the space writes them: ``False`` and ``True``, or 0 and 1.

    Numbers are truth values only if there are no others than 0 and 1, recorded or in the space.
    """
    choices = choices_of(hyperparameter) or []
    # Where a framework has no truth values, a switch is an integer from 0 to 1.
    if isinstance(hyperparameter, IntegerHyperparameter) and hyperparameter.size == 2:
        choices = [hyperparameter.lower, hyperparameter.upper]
    numbers = [choice for choice in choices if kind_of(choice) == "number"]
    n_truths = sum(kind_of(choice) == "bool" for choice in choices)
    if n_truths == 0 and sorted(numbers) == [0, 1]:
        return [int(value) if kind_of(value) == "bool" else value for value in values]
    recorded = [value for value in values if kind_of(value) == "number"]
    if n_truths == 2 and not numbers and all(value in (0, 1) for value in recorded):
        return [bool(value) if kind_of(value) == "number" else value for value in values]
    return values


def _recorded(records: Sequence[TaskRecord]) -> list[Hyperparameter[Any, Any]]:
    return [hp for r in records if r.space is not None for hp in r.space.values()]


# --- a whole memory ---------------------------------------------------------------------------


def doubt_edges(space: VectorSpace, readings: Sequence[Reading]) -> list[Reading]:
    """Readings of a memory's tasks without most numbers of hyperparameters nearly all outside.

    If the best value of a new task is beyond the end of a range, the end is the best guess. If it
    is anywhere else, the end is a bad guess, and the first trials of a search would all be there.
    The recorded values cannot say which: so of each three configurations outside one goes to the
    end, and the values of the other two are unknown.
    """
    numbers, outside, entries = (
        np.concatenate([getattr(reading, name) for reading in readings])
        for name in ("numbers", "outside", "entries")
    )
    n, n_outside = np.count_nonzero(~np.isnan(numbers), axis=0), np.count_nonzero(outside, axis=0)
    places = np.flatnonzero((space.n_values > 1) & (n > 0) & (n - n_outside < IN_RANGE * n))
    if not len(places):
        return [*readings]
    # By what was recorded, so that a configuration is the same one in every task.
    rows = np.nan_to_num(np.hstack([entries, numbers[:, places]]), nan=-1.0)
    doubted = np.zeros_like(outside)
    beyond: dict[str, Beyond] = {}
    for i in places.tolist():
        own = np.flatnonzero(outside[:, i])
        # All runs of a configuration go the same way.
        _, which = np.unique(rows[own], axis=0, return_inverse=True)
        # In no order of the recording, in which a grid repeats itself.
        drawn = np.random.default_rng(0).permutation(which.max() + 1)[which]
        doubted[own, i] = drawn % _AT_THE_EDGE != 0
        legal = numbers_of(ends_of(space.space[space.names[i]]))
        beyond[space.names[i]] = Beyond(
            n_outside=len(own),
            n=int(n[i]),
            n_at_end=int(np.count_nonzero(~doubted[own, i])),
            least=float(np.nanmin(numbers[:, i])),
            most=float(np.nanmax(numbers[:, i])),
            low=float(np.nanmin(legal)),
            high=float(np.nanmax(legal)),
        )
    parts = np.split(doubted, np.cumsum([len(reading.entries) for reading in readings])[:-1])
    return [
        reading._replace(
            entries=np.where(part, np.nan, reading.entries),
            outside=reading.outside & ~part,
            beyond=beyond,
        )
        for reading, part in zip(readings, parts, strict=True)
    ]
