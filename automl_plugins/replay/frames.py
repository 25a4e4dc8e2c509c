"""Tables from data frames and from searches: the search space inferred from what was recorded."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt
from ConfigSpace import (
    ConfigurationSpace,
    Constant,
    OrdinalHyperparameter,
)
from ConfigSpace.hyperparameters import (
    FloatHyperparameter,
    Hyperparameter,
    IntegerHyperparameter,
)

from automl_plugins.frameworks import searches_of
from automl_plugins.records.search import Search
from automl_plugins.records.trial import Status, Trial
from automl_plugins.spaces.choices import categorical
from automl_plugins.spaces.conditions import Rule, as_condition, infer_rules
from automl_plugins.spaces.ranges import ExactFloat, float_range, integer_range
from automl_plugins.spaces.values import ABSENT, choices_of, kind_of, placer, plain, read

if TYPE_CHECKING:
    import pandas as pd

FloatArray = npt.NDArray[np.float64]

_NUMBERS = IntegerHyperparameter | FloatHyperparameter
_NONE = "\0None"  # no value of a hyperparameter
_MOST_INTEGERS = 2**53  # beyond, floats are all whole


@dataclass(frozen=True)
class InferredSpace:
    """What recorded configurations say about their search space.

    Attributes:
        space: The search space.
        cells: Values (n) by name, ``ABSENT`` where there is none.
        notes: What was assumed, one sentence each.
    """

    space: ConfigurationSpace
    cells: Mapping[str, list[Any]]
    notes: tuple[str, ...]


def infer_space(
    frame: pd.DataFrame,
    *,
    log: Iterable[str] | Literal["auto"] = "auto",
    grid: Iterable[str] = (),
    none: str | None = None,
) -> InferredSpace:
    """The search space that recorded configurations span.

    Text, truth values and categories become categories; whole numbers and real numbers span the
    recorded range. A column with gaps is conditional on the column that explains them, if one
    does.

    Args:
        frame: A column for each hyperparameter; NaN or None, a gap, where it was inactive.
        log: Numerical columns on a log scale; ``"auto"`` takes those of positive numbers that
            span two decades or more and lie more evenly on a log scale than on their own.
        grid: Numerical columns whose recorded values are the only ones, in order.
        none: What is written where the value is None. A column with it is a category.

    Raises:
        ValueError: If ``log`` or ``grid`` name no numerical column, or one that cannot be on a log
            scale; if a column is empty or infinite; if ``none`` is nowhere.
    """
    cells = cells_of(frame, none)
    kinds = {name: _kind(frame[name], values) for name, values in cells.items()}
    numerical = [name for name, kind in kinds.items() if kind == "number"]
    if isinstance(log, str) and log != "auto":
        raise ValueError(f"log must be 'auto' or names of columns, got {log!r}: [{log!r}].")
    wanted = set() if isinstance(log, str) else set(log)
    grid = set(grid)
    if wrong := sorted((wanted | grid) - set(numerical)):
        raise ValueError(
            f"log and grid take numerical columns ({', '.join(sorted(numerical)) or 'none here'}),"
            f" got {', '.join(wrong)}."
        )
    known = {name: [v for v in values if v is not ABSENT] for name, values in cells.items()}
    if isinstance(log, str):
        wanted = {n for n in numerical if n not in grid and _spans_decades(known[n])}
    space = ConfigurationSpace()
    for name, values in known.items():
        space.add(_hyperparameter(name, values, kinds[name], name in wanted, name in grid))
    rules = infer_rules(
        {name: _codes(values, space[name]) for name, values in cells.items()},
        categories=[n for n in space if not isinstance(space[n], _NUMBERS)],
        integers=[n for n in space if isinstance(space[n], IntegerHyperparameter)],
    )
    for rule in rules:
        space.add(_condition(space, rule))
    notes = [_log_note(n, known[n]) for n in sorted(wanted)] if isinstance(log, str) else []
    explained = {rule.child for rule in rules}
    notes += [
        _gap_note(name, len(values) - len(known[name]), len(values))
        for name, values in cells.items()
        if len(known[name]) < len(values) and name not in explained
    ]
    return InferredSpace(space, cells, tuple(notes))


def _log_note(name: str, values: Sequence[Any]) -> str:
    return (
        f"{name} is taken to be on a log scale: its values span {min(values):g} to"
        f" {max(values):g}. Another choice: log=[...]."
    )


def _gap_note(name: str, n_gaps: int, n: int) -> str:
    return (
        f"{name} is empty in {n_gaps} of {n} rows, which no other column explains: it is searched"
        " as if it were always active. If empty means the value None, write a text there and name"
        " it, as in none='none'."
    )


# --- cells ----------------------------------------------------------------------------------


def cells_of(frame: pd.DataFrame, none: str | None = None) -> dict[str, list[Any]]:
    """Values (n) of each column as builtins, ``ABSENT`` for gaps, None where ``none`` stands.

    Where a column has that text, the others are read as numbers or truth values if all of them
    are such: files with a text in a column have texts only.

    Raises:
        ValueError: If ``none`` stands nowhere.
    """
    cells = {str(c): [_cell(value) for value in frame[c].tolist()] for c in frame}
    if none is None:
        return cells
    marked = [n for n, values in cells.items() if any(_is_text(v, none) for v in values)]
    if not marked:
        raise ValueError(
            f"none={none!r} stands in no cell. pandas takes some texts, 'None' among them, for"
            " missing: read the file with keep_default_na=False, na_values=['']."
        )
    return cells | {name: _without_marker(cells[name], none) for name in marked}


def _cell(value: Any) -> Any:
    return ABSENT if kind_of(value) in ("none", "missing") else plain(value)


def _is_text(value: Any, text: str) -> bool:
    return isinstance(value, str) and value == text


def _without_marker(cells: list[Any], none: str) -> list[Any]:
    values = [None if _is_text(v, none) else v for v in cells]
    meant = [read(v) if isinstance(v, str) else v for v in values]
    return values if any(isinstance(v, str) for v in meant) else meant


def _kind(column: pd.Series[Any], cells: list[Any]) -> str:
    """Whether a column is "number" or "category"."""
    if column.dtype.name == "category":
        return "category"
    kinds = {kind_of(value) for value in cells if value is not ABSENT}
    return "number" if kinds <= {"number"} else "category"


def _spans_decades(values: Sequence[Any]) -> bool:
    distinct = np.unique(np.array(values, dtype=np.float64))
    if len(distinct) < 3 or distinct[0] <= 0 or distinct[-1] < 100 * distinct[0]:
        return False
    return bool(_middle(np.log(distinct)) < _middle(distinct))


def _middle(values: FloatArray) -> float:
    """How far the median is from the middle of the range, as a fraction of the range."""
    low, high = values[0], values[-1]
    return float(abs((np.median(values) - low) / (high - low) - 0.5))


# --- hyperparameters ------------------------------------------------------------------------


def _hyperparameter(
    name: str, values: list[Any], kind: str, log: bool, grid: bool
) -> Hyperparameter[Any, Any]:
    if not values:
        raise ValueError(f"Column {name!r} has no value in any row: leave it out.")
    whole = _whole(values)
    is_number = kind == "number"  # else 1 and True are two
    distinct = list({v if is_number else (type(v), v): v for v in whole}.values())
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
        return integer_range(name, low, high, log=log)
    found = float_range(name, low, high, log=log)
    inside = found.lower <= low and high <= found.upper  # ConfigSpace rounds the ends
    return found if inside else ExactFloat(name, float(low), float(high), log=log)


def _whole(values: list[Any]) -> list[Any]:
    """Whole numbers as such if all numbers are whole: with gaps they come as floats."""
    numbers = [v for v in values if kind_of(v) == "number"]
    if not all(abs(v) < _MOST_INTEGERS and float(v).is_integer() for v in numbers):
        return values
    return [int(v) if kind_of(v) == "number" else v for v in values]


def _order(value: Any) -> tuple[bool, bool, float, str]:
    """None, then numbers by size, then texts."""
    number = float(value) if kind_of(value) == "number" else 0.0
    return value is not None, isinstance(value, str), number, str(value)


def _codes(cells: Sequence[Any], hyperparameter: Hyperparameter[Any, Any]) -> FloatArray:
    """Numbers (n,) that stand for the values, NaN for gaps."""
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


# --- arguments of Table ---------------------------------------------------------------------


def table_arguments(
    frame: pd.DataFrame,
    *,
    loss: str,
    parameters: Sequence[str] | None,
    space: ConfigurationSpace | None,
    seconds: str | None,
    curves: Mapping[float, str],
    curve_seconds: Mapping[float, str],
    maximize: bool,
    log: Iterable[str] | Literal["auto"],
    grid: tuple[str, ...],
    repeats: str | None,
    none: str | None = None,
) -> dict[str, Any]:
    """Arguments of ``Table`` after its name, see ``Table.from_frame``."""
    if repeats not in (None, "mean"):
        raise ValueError(f"repeats must be None or 'mean', got {repeats!r}.")
    if curve_seconds and set(curve_seconds) != set(curves):
        raise ValueError("curve_seconds must name the same steps as curves.")
    measured = [loss, *([seconds] if seconds else []), *curves.values(), *curve_seconds.values()]
    if parameters is None:
        parameters = [c for c in frame.columns if c not in measured]
    names = list(parameters)
    if absent := [c for c in [*names, *measured] if c not in frame.columns]:
        raise ValueError(
            f"The frame has no column {', '.join(map(repr, absent))}; it has"
            f" {', '.join(map(str, frame.columns))}."
        )
    if frame[names].duplicated().any() and repeats == "mean":
        groups = frame.groupby(names, dropna=False, sort=False, observed=True)
        frame = groups[measured].mean().reset_index()
    notes: tuple[str, ...] = ()
    if space is None:
        inferred = infer_space(frame[names], log=log, grid=grid, none=none)
        space, cells, notes = inferred.space, inferred.cells, inferred.notes
    else:
        cells = cells_of(frame[names], none)
    sign = -1.0 if maximize else 1.0
    steps = sorted(curves)
    spent = [curve_seconds[s] for s in steps] if curve_seconds else None
    return {
        "space": space,
        "configs": _configs(cells, space),
        "losses": sign * frame[loss].to_numpy(dtype=np.float64),
        "seconds": None if seconds is None else frame[seconds].to_numpy(dtype=np.float64),
        "curves": sign * frame[[curves[s] for s in steps]].to_numpy(np.float64) if steps else None,
        "steps": steps,
        "curve_seconds": None if spent is None else frame[spent].to_numpy(np.float64),
        "notes": notes,
    }


def _configs(cells: Mapping[str, list[Any]], space: ConfigurationSpace) -> list[dict[str, Any]]:
    if foreign := sorted(set(cells) - set(space)):
        raise ValueError(
            f"{', '.join(foreign)} not in the search space, which has {', '.join(space)}: name the"
            " parameters= or leave these columns out."
        )
    return [
        {n: v for n, v in zip(cells, row, strict=True) if v is not ABSENT}
        for row in zip(*cells.values(), strict=True)
    ]


def arguments_of_searches(
    studies: Any, *, space: ConfigurationSpace | None, repeats: str | None
) -> dict[str, Any]:
    """Arguments of ``Table`` after its name, see ``Table.from_studies``."""
    import pandas as pd

    searches = _searches(studies)
    trials = [
        t
        for search in searches
        for t in search.trials
        if t.status != Status.PRUNED and t.step is None
    ]
    # A trial that failed half-way through its suggestions is no configuration.
    asked = {frozenset(t.config) for t in trials if t.status == Status.COMPLETE}
    trials = [t for t in trials if frozenset(t.config) in asked]
    if not trials:
        raise ValueError("There is no complete trial to build a table from.")
    # A frame has one thing for a value that is absent and for the value None.
    marked = [{n: _NONE if v is None else v for n, v in t.config.items()} for t in trials]
    frame = pd.DataFrame(marked, dtype=object).infer_objects()
    has_none = any(v is None for t in trials for v in t.config.values())
    names = [str(c) for c in frame.columns]
    frame["_loss"], frame["_seconds"] = [t.loss for t in trials], [t.seconds for t in trials]
    steps = _common_steps(trials)
    for step in steps:
        frame[f"_at {step}"] = [t.curve.get(step, math.nan) for t in trials]
    if space is None:
        space = next((s.space for s in searches if s.space is not None), None)
    return table_arguments(
        frame,
        loss="_loss",
        parameters=names,
        space=space,
        seconds=None if frame["_seconds"].isna().any() else "_seconds",
        curves={step: f"_at {step}" for step in steps},
        curve_seconds={},
        maximize=False,
        log="auto",
        grid=(),
        repeats=repeats,
        none=_NONE if has_none else None,
    )


def _searches(studies: Any) -> list[Search]:
    if isinstance(studies, Search) or not isinstance(studies, list | tuple):
        studies = [studies]
    labels = {"table": "", "method": "", "seed": 0}
    return [
        search
        for study in studies
        for search in ([study] if isinstance(study, Search) else searches_of(study, **labels))
    ]


def _common_steps(trials: Sequence[Trial]) -> list[float]:
    """Steps that every complete trial reported."""
    complete = [set(t.curve) for t in trials if t.status == Status.COMPLETE]
    return sorted(set.intersection(*complete)) if complete else []
