"""Tables from data frames and from searches: the search space inferred from what was recorded."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from ConfigSpace import (
    Categorical,
    ConfigurationSpace,
    Constant,
    Float,
    Integer,
    OrdinalHyperparameter,
)
from ConfigSpace.hyperparameters import (
    FloatHyperparameter,
    Hyperparameter,
    IntegerHyperparameter,
)

from automl_plugins.conditions import Rule, as_condition, infer_rules

from .protocol import TrialStatus
from .search import RecordedTrial, Search

_NUMBERS = IntegerHyperparameter | FloatHyperparameter


def infer_space(
    frame: pd.DataFrame, *, log: Iterable[str] = (), grid: Iterable[str] = ()
) -> ConfigurationSpace:
    """The search space that recorded configurations span.

    Text, truth values and categories become categories; whole numbers and real numbers span the
    recorded range. A column with gaps is conditional on the column that explains them, if one
    does.

    Args:
        frame: A column for each hyperparameter, NaN or None where it was inactive.
        log: Numerical columns on a log scale.
        grid: Numerical columns whose recorded values are the only ones, in order.

    Raises:
        ValueError: If ``log`` or ``grid`` name no numerical column, or a column is empty.
    """
    log, grid = set(log), set(grid)
    numerical = {str(c) for c in frame if _is_number(frame[c])}
    if wrong := sorted((log | grid) - numerical):
        raise ValueError(
            f"log and grid take numerical columns ({', '.join(sorted(numerical)) or 'none here'}),"
            f" got {', '.join(wrong)}."
        )
    space = ConfigurationSpace()
    for column in frame:
        space.add(_hyperparameter(str(column), frame[column].dropna(), log, grid))
    for rule in infer_rules(
        {str(c): _codes(frame[c], space[str(c)]) for c in frame},
        categories=[
            n
            for n in space
            if not isinstance(space[n], IntegerHyperparameter | FloatHyperparameter)
        ],
        integers=[n for n in space if isinstance(space[n], IntegerHyperparameter)],
    ):
        space.add(_condition(space, rule))
    return space


def _is_number(column: pd.Series[Any]) -> bool:
    return pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column)


def _hyperparameter(
    name: str, values: pd.Series[Any], log: set[str], grid: set[str]
) -> Hyperparameter[Any, Any]:
    if not len(values):
        raise ValueError(f"Column {name!r} has no value in any row: leave it out.")
    distinct = values.unique().tolist()
    if len(distinct) == 1:
        return Constant(name, distinct[0])
    if not _is_number(values):
        return Categorical(name, sorted(distinct, key=str))
    # Whole numbers with gaps come as floats.
    whole = all(float(v).is_integer() for v in distinct)
    if name in grid:
        return OrdinalHyperparameter(name, sorted(int(v) if whole else v for v in distinct))
    low, high = min(distinct), max(distinct)
    if whole:
        return Integer(name, (int(low), int(high)), log=name in log)
    return Float(name, (float(low), float(high)), log=name in log)


def _codes(column: pd.Series[Any], hyperparameter: Hyperparameter[Any, Any]) -> Any:
    """Numbers (n,) that stand for the values, NaN for gaps."""
    if isinstance(hyperparameter, _NUMBERS):
        return column.to_numpy(dtype=np.float64, na_value=math.nan)
    values = _values(hyperparameter)
    known = {value: float(i) for i, value in enumerate(values)}
    return np.array([math.nan if pd.isna(v) else known[v] for v in column], dtype=np.float64)


def _values(hyperparameter: Any) -> Sequence[Any]:
    if isinstance(hyperparameter, Constant):
        return [hyperparameter.value]
    if isinstance(hyperparameter, OrdinalHyperparameter):
        return list(hyperparameter.sequence)
    return list(hyperparameter.choices)


def _condition(space: ConfigurationSpace, rule: Rule) -> Any:
    if rule.relation == "in":
        known = _values(space[rule.parent])
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
    log: tuple[str, ...],
    grid: tuple[str, ...],
    repeats: str | None,
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
    if space is None:
        space = infer_space(frame[names], log=log, grid=grid)
    sign = -1.0 if maximize else 1.0
    steps = sorted(curves)
    spent = [curve_seconds[s] for s in steps] if curve_seconds else None
    return {
        "space": space,
        "configs": _configs(frame[names], space),
        "losses": sign * frame[loss].to_numpy(dtype=np.float64),
        "seconds": None if seconds is None else frame[seconds].to_numpy(dtype=np.float64),
        "curves": sign * frame[[curves[s] for s in steps]].to_numpy(np.float64) if steps else None,
        "steps": steps,
        "curve_seconds": None if spent is None else frame[spent].to_numpy(np.float64),
    }


def _configs(frame: pd.DataFrame, space: ConfigurationSpace) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = [{} for _ in range(len(frame))]
    if foreign := sorted({str(c) for c in frame} - set(space)):
        raise ValueError(
            f"{', '.join(foreign)} not in the search space, which has {', '.join(space)}: name the"
            " parameters= or leave these columns out."
        )
    for column in frame:
        name = str(column)
        hyperparameter = space[name]
        integer = isinstance(hyperparameter, IntegerHyperparameter) or (
            isinstance(hyperparameter, OrdinalHyperparameter)
            and all(isinstance(v, int) for v in hyperparameter.sequence)
        )
        for row, value in zip(rows, frame[column].tolist(), strict=True):
            if not pd.isna(value):
                row[name] = int(value) if integer else value
    return rows


def arguments_of_searches(
    studies: Any, *, space: ConfigurationSpace | None, repeats: str | None
) -> dict[str, Any]:
    """Arguments of ``Table`` after its name, see ``Table.from_studies``."""
    searches = _searches(studies)
    trials = [
        t
        for search in searches
        for t in search.trials
        if t.status != TrialStatus.PRUNED and t.step is None
    ]
    # A trial that failed half-way through its suggestions is no configuration.
    asked = {frozenset(t.config) for t in trials if t.status == TrialStatus.COMPLETE}
    trials = [t for t in trials if frozenset(t.config) in asked]
    if not trials:
        raise ValueError("There is no complete trial to build a table from.")
    frame = pd.DataFrame([t.config for t in trials], dtype=object).infer_objects()
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
        log=(),
        grid=(),
        repeats=repeats,
    )


def _searches(studies: Any) -> list[Search]:
    from automl_plugins._frameworks import curves_of

    if isinstance(studies, Search) or not isinstance(studies, list | tuple):
        studies = [studies]
    labels = {"table": "", "method": "", "seed": 0}
    return [
        search
        for study in studies
        for search in ([study] if isinstance(study, Search) else curves_of(study, **labels))
    ]


def _common_steps(trials: Sequence[RecordedTrial]) -> list[float]:
    """Steps that every complete trial reported."""
    complete = [set(t.curve) for t in trials if t.status == TrialStatus.COMPLETE]
    return sorted(set.intersection(*complete)) if complete else []
