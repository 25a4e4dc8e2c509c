"""Read the values of a data frame of runs, and infer the search space that they span."""

from __future__ import annotations

import math
import sys
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from ConfigSpace import ConfigurationSpace, Constant, OrdinalHyperparameter
from ConfigSpace.hyperparameters import FloatHyperparameter, Hyperparameter, IntegerHyperparameter

from automl_plugins._arguments import check_kind, repeated
from automl_plugins.arrays import FloatArray
from automl_plugins.records.trial import Status, Trial, fail_violating
from automl_plugins.spaces.choices import categorical
from automl_plugins.spaces.conditions import Rule, as_condition, infer_rules
from automl_plugins.spaces.ranges import ExactFloat, float_range, integer_range
from automl_plugins.spaces.scales import scale_of_floats
from automl_plugins.spaces.values import ABSENT, choices_of, kind_of, placer, plain, read

if TYPE_CHECKING:
    import pandas as pd


_NUMBERS = IntegerHyperparameter | FloatHyperparameter
_LOSS, _SECONDS = "\0loss", "\0seconds"  # columns of ``frame_of``; no names of hyperparameters
_NONE = "\0None"  # stands for None in a frame; not a value of any hyperparameter
_LARGEST_INTEGER = 2**53  # every float beyond it is whole


class InferredSpace(NamedTuple):
    """A search space inferred from recorded configurations."""

    space: ConfigurationSpace
    cells: Mapping[str, list[Any]]  # values (n) by name, ``ABSENT`` for gaps
    notes: tuple[str, ...]  # what was assumed, one sentence each


@np.errstate(over="ignore")  # ConfigSpace rounds defaults, however large they are
def infer_space(
    frame: pd.DataFrame,
    *,
    log: Iterable[str] | Literal["auto"] = "auto",
    grid: Iterable[str] = (),
    none: str | None = None,
) -> InferredSpace:
    """Infer the search space that recorded configurations span.

    Texts, truth values and pandas categories become categories; whole numbers (also those stored
    as floats, with a note) and real numbers span the recorded range. A column with gaps is
    conditional on the column that explains them, if there is one. ``log="auto"`` selects columns
    of positive numbers that span two decades or more and are spread more evenly on a log scale
    than on a linear one. The other arguments are those of ``Table.from_frame``.

    Raises:
        ValueError: If ``log`` or ``grid`` names a column that is not numerical, or ``log`` one
            with values <= 0; if a column is empty, or has a number that is infinite or too large
            for a float; if no cell has the text ``none``.
        TypeError: If ``log`` or ``grid`` are no names, or ``none`` is no text.
    """
    check_kind("log", log, Iterable, "'auto' or names of columns")
    check_kind("grid", grid, Iterable, "names of columns")
    frame = frame.rename(columns=str)
    if twice := repeated(frame.columns):
        raise ValueError(f"The frame has more than one column {', '.join(map(repr, twice))}.")
    cells = cells_of(frame, none)
    known = {name: [v for v in values if v is not ABSENT] for name, values in cells.items()}
    numerical = [
        name
        for name, values in known.items()
        if frame[name].dtype.name != "category" and all(kind_of(v) == "number" for v in values)
    ]
    for name in numerical:
        # Whole numbers of Python have no end; vectors hold floats.
        if any(type(v) is int and abs(v) > sys.float_info.max for v in known[name]):
            raise ValueError(
                f"Column {name!r} has a whole number too large for a float: leave its rows out, or"
                " write it as text."
            )
    if isinstance(log, str) and log != "auto":
        raise ValueError(f"log must be 'auto' or names of columns, got {log!r}: [{log!r}].")
    if isinstance(grid, str):
        raise ValueError(f"grid must be names of columns, got {grid!r}: [{grid!r}].")
    wanted = set() if isinstance(log, str) else set(map(str, log))
    grid = set(map(str, grid))
    if wrong := sorted((wanted | grid) - set(numerical)):
        raise ValueError(
            f"log and grid take numerical columns ({', '.join(sorted(numerical)) or 'none here'}),"
            f" got {', '.join(wrong)}."
        )
    if isinstance(log, str):
        # A grid has no scale.
        wanted = {n for n in numerical if n not in grid and _spans_decades(known[n])}
    space = ConfigurationSpace()
    space.add(
        [
            _hyperparameter(name, values, name in numerical, name in wanted, name in grid)
            for name, values in known.items()
        ]
    )
    rules = infer_rules(
        {name: _codes(values, space[name]) for name, values in cells.items()},
        categories=[n for n in space if not isinstance(space[n], _NUMBERS)],
        integers=[n for n in space if isinstance(space[n], IntegerHyperparameter)],
    )
    space.add([_condition(space, rule) for rule in rules])
    notes = [
        f"{name} is taken to be on a log scale: its values span {min(known[name]):g} to"
        f" {max(known[name]):g}. Another choice: log=[...]."
        for name in (sorted(wanted) if isinstance(log, str) else ())
    ]
    notes += _note_integers(frame, space)
    notes += _note_gaps(cells, explained={rule.child for rule in rules})
    return InferredSpace(space, cells, tuple(notes))


def _note_integers(frame: pd.DataFrame, space: ConfigurationSpace) -> list[str]:
    return [
        f"{name} is searched as an integer: all of its values are whole numbers. Another choice:"
        " space=..."
        for name in space
        if isinstance(space[name], IntegerHyperparameter)
        and frame[name].dtype.kind == "f"
        and not frame[name].isna().any()  # with gaps pandas stores integers as floats
    ]


def _note_gaps(cells: Mapping[str, list[Any]], explained: Collection[str]) -> list[str]:
    gaps = {name: sum(v is ABSENT for v in values) for name, values in cells.items()}
    return [
        f"{name} is empty in {n} of {len(cells[name])} rows, which no other column explains: it is"
        " searched as if it were always active, and these rows are far from what has a value. If"
        " empty means the value None, write a text there and name it, as in none='none'."
        for name, n in gaps.items()
        if n and name not in explained
    ]


# --- trials ---------------------------------------------------------------------------------


def frame_of(trials: Sequence[Trial]) -> dict[str, Any]:
    """Arguments of ``Table.from_frame`` for the trials that have a final loss or have failed.

    Pruned trials and trials at a lower budget are left out. A complete trial that violates a
    constraint counts as failed. ValueError if no trial is complete.
    """
    import pandas as pd

    trials = [t for t in trials if t.status != Status.PRUNED and t.step is None]
    complete = [t for t in trials if t.status == Status.COMPLETE]
    trials = fail_violating(trials)
    if not any(t.status == Status.COMPLETE for t in trials):
        but = " that violates no constraint" if complete else ""
        raise ValueError(f"There is no complete trial{but} to build a table from.")
    # A trial that failed half-way through its suggestions has only part of a configuration.
    asked = {frozenset(t.config) for t in complete}
    trials = [t for t in trials if frozenset(t.config) in asked]
    # pandas treats None like an absent value, so another value stands for it.
    marked = [{n: _NONE if v is None else v for n, v in t.config.items()} for t in trials]
    frame = pd.DataFrame(marked, dtype=object).infer_objects()
    # Before the columns of what was measured are added.
    names = [str(c) for c in frame.columns]
    frame[_LOSS], frame[_SECONDS] = [t.loss for t in trials], [t.seconds for t in trials]
    # A gap in a curve would mean that the run has ended, but complete trials ran to the end.
    steps = sorted(set.intersection(*(set(t.curve) for t in complete)))
    curves = {step: f"\0at {step}" for step in steps}
    for step, column in curves.items():
        frame[column] = [t.curve.get(step, math.nan) for t in trials]
    has_none = any(v is None for t in trials for v in t.config.values())
    return {
        "frame": frame,
        "parameters": names,
        "loss": _LOSS,
        "seconds": _SECONDS,
        "curves": curves,
        "none": _NONE if has_none else None,
    }


# --- cells ----------------------------------------------------------------------------------


def check_values(frame: pd.DataFrame) -> None:
    """Raise ValueError for a frame without rows, or a value that no hyperparameter can have."""
    if not len(frame):
        raise ValueError("The frame has no row: a table needs recorded runs.")
    for column in frame:
        for value in frame[column] if frame[column].dtype == object else ():
            if not isinstance(value, Hashable):
                raise ValueError(
                    f"Column {column!r} holds {value!r}: no hyperparameter has a"
                    f" {type(value).__name__} as its value. Write it as text."
                )


def cells_of(frame: pd.DataFrame, none: str | None = None) -> dict[str, list[Any]]:
    """Values (n) of each column as builtins, ``ABSENT`` for gaps, None for the text ``none``.

    One text makes pandas read a whole column of a file as text. If all other values of a column
    with ``none`` are texts of numbers or truth values, they are converted.

    Raises:
        ValueError: If no cell has the text ``none``.
        TypeError: If ``none`` is no text.
    """
    check_kind("none", none, str | None, "the text that stands for None")
    cells = {
        str(c): [
            ABSENT if kind_of(value) in ("none", "missing") else plain(value)
            for value in frame[c].tolist()
        ]
        for c in frame
    }
    if none is None:
        return cells
    texts = {n: [v for v in values if isinstance(v, str)] for n, values in cells.items()}
    marked = [name for name, found in texts.items() if none in found]
    if not marked:
        raise ValueError(
            f"none={none!r} stands in no cell: leave it out, or name the text that stands for no"
            " value. pandas reads some texts, such as 'None', as missing, unless the file is read"
            " with keep_default_na=False, na_values=[''], as a configuration of replay is."
        )
    for name in marked:
        values = [None if isinstance(v, str) and v == none else v for v in cells[name]]
        converted = [read(v) if isinstance(v, str) else v for v in values]
        cells[name] = values if any(isinstance(v, str) for v in converted) else converted
    return cells


def _spans_decades(values: Sequence[Any]) -> bool:
    distinct = np.unique(np.array(values, dtype=np.float64))
    # The median of two values lies in the middle on either scale.
    if len(distinct) < 3 or distinct[0] <= 0 or distinct[-1] < 100 * float(distinct[0]):
        return False
    return bool(_skew(np.log(distinct)) < _skew(distinct))


def _skew(values: FloatArray) -> float:
    """Distance of the median from the middle of the range, as a fraction of the range."""
    low, high = values[0], values[-1]  # they ascend
    return float(abs((np.median(values) - low) / (high - low) - 0.5))


# --- hyperparameters ------------------------------------------------------------------------


def _hyperparameter(
    name: str, values: list[Any], is_number: bool, log: bool, grid: bool
) -> Hyperparameter[Any, Any]:
    if not values:
        raise ValueError(f"Column {name!r} has no value in any row: leave it out.")
    # As categories, 1 and True differ although they are equal.
    distinct = list(
        {v if is_number else (type(v), v): v for v in _restore_integers(values)}.values()
    )
    if len(distinct) == 1:
        return Constant(name, distinct[0])
    if not is_number:
        return categorical(name, sorted(distinct, key=_order))
    if grid:
        return OrdinalHyperparameter(name, sorted(distinct))
    low, high = min(distinct), max(distinct)
    if math.isinf(low) or math.isinf(high):
        raise ValueError(f"Column {name!r} has an infinite value: leave its rows out.")
    if log and low <= 0:
        raise ValueError(
            f"log names {name!r}, which has the value {low:g}: a log scale needs values > 0."
        )
    if all(isinstance(v, int) for v in distinct):
        return integer_range(name, *_around(low, high), log=log)
    found = float_range(name, low, high, log=log)
    if found.lower <= low and high <= found.upper:  # ConfigSpace rounds the ends
        return found
    return ExactFloat(name, scale_of_floats(float(low), float(high), log), log=log)


def _around(low: int, high: int) -> tuple[int, int]:
    """Ends that floats hold, with ``low`` and ``high`` between them."""
    least, most = float(low), float(high)
    least = math.nextafter(least, -math.inf) if least > low else least
    most = math.nextafter(most, math.inf) if most < high else most
    return int(least), int(most)


def _restore_integers(values: list[Any]) -> list[Any]:
    """Numbers as int if all are whole: pandas stores integers with gaps as floats."""
    numbers = [v for v in values if kind_of(v) == "number"]
    if not all(abs(v) < _LARGEST_INTEGER and float(v).is_integer() for v in numbers):
        return values
    return [int(v) if kind_of(v) == "number" else v for v in values]


def _order(value: Any) -> tuple[bool, bool, float, str]:
    """Sort key: None first, then numbers by size, then texts."""
    number = float(value) if kind_of(value) == "number" else 0.0
    return value is not None, isinstance(value, str), number, str(value)


def _codes(cells: Sequence[Any], hyperparameter: Hyperparameter[Any, Any]) -> FloatArray:
    """Encode values as numbers (n,), categories by their position, NaN for gaps."""
    if isinstance(hyperparameter, _NUMBERS):
        return np.array([math.nan if v is ABSENT else v for v in cells], dtype=np.float64)
    place = placer(hyperparameter)
    places = [None if value is ABSENT else place(value) for value in cells]
    return np.array([math.nan if i is None else i for i in places], dtype=np.float64)


def _condition(space: ConfigurationSpace, rule: Rule) -> Any:
    if rule.relation == "in":
        known = choices_of(space[rule.parent]) or []
        return as_condition(space, rule, [known[int(i)] for i in rule.values])
    return as_condition(space, rule, [int(rule.values[0])])
