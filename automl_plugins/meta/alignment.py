"""Runs recorded in one search space as vectors of another, matched by name.

What the new space asks for and a run does not tell is imputed, what lies outside is clipped or
dropped, and ``Coverage`` says how much of that there was.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from ConfigSpace.hyperparameters import (
    CategoricalHyperparameter,
    Constant,
    FloatHyperparameter,
    Hyperparameter,
    IntegerHyperparameter,
    OrdinalHyperparameter,
)

from automl_plugins.known_meanings import KNOWN_MEANINGS, TaskFacts, apply_rule, rule_for
from automl_plugins.space import VectorSpace

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]
OutOfRange = Literal["clip", "drop"]
Missing = Literal["impute", "drop"]

_ABSENT = object()


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
    """

    task: str
    n_runs: int
    n_kept: int
    n_clipped: int
    imputed: Mapping[str, int]
    shared: tuple[str, ...]
    ignored: tuple[str, ...]

    @property
    def n_dropped(self) -> int:
        """Runs that are not used."""
        return self.n_runs - self.n_kept

    def __str__(self) -> str:
        parts = [f"{self.task}: {self.n_kept} of {self.n_runs} runs"]
        if self.n_clipped:
            parts.append(f"{self.n_clipped} clipped")
        if self.imputed:
            told = (f"{name} in {n}" for name, n in self.imputed.items())
            parts.append("imputed " + " and ".join(told))
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
    facts: TaskFacts | None = None,
) -> tuple[FloatArray, BoolArray, Coverage]:
    """Configurations of anywhere as vectors of ``space``.

    Args:
        space: The search space.
        configurations: Values by name (n); absent, None or NaN where there is none.
        task: Name of their task, for the report.
        out_of_range: What becomes of a number outside its range: ``"clip"`` moves it to the
            border, ``"drop"`` leaves the run out. A category that the space does not have always
            drops the run.
        missing: What becomes of a run without a value for an active hyperparameter:
            ``"impute"`` sets its default, ``"drop"`` leaves the run out.
        defaults: Value of a hyperparameter, by name, in runs that do not tell it; others have
            the default of the space.
        facts: Sizes of the data, with which ``max_features="sqrt"`` and the like become numbers.

    Returns:
        Vectors (n, d), mask (n,) of the runs that are used, and the coverage. Rows that are not
        used are NaN.

    Raises:
        ValueError: For a default that the space does not allow.
    """
    n = len(configurations)
    named = {name for configuration in configurations for name in configuration}
    vectors = np.full((n, space.d), np.nan)
    keep, clipped = np.ones(n, dtype=bool), np.zeros(n, dtype=bool)
    for column, name in enumerate(space.names):
        if name not in named:
            continue
        values = [configuration.get(name, _ABSENT) for configuration in configurations]
        entries, outside, foreign = _entries(space.space[name], name, values, facts)
        vectors[:, column] = entries
        if out_of_range == "drop":
            foreign |= outside
        keep &= ~foreign
        clipped |= outside
    completed = space.activate(np.where(np.isnan(vectors), _defaults(space, defaults), vectors))
    imputed = np.isnan(vectors) & ~np.isnan(completed) & (space.n_values > 1)
    if missing == "drop":
        keep &= ~imputed.any(axis=1)
    if n:
        keep &= space.allowed(completed)
    completed[~keep] = np.nan
    counts = imputed[keep].sum(axis=0)
    shared = tuple(name for name in space.names if name in named)
    coverage = Coverage(
        task=task,
        n_runs=n,
        n_kept=int(keep.sum()),
        n_clipped=int((clipped & keep).sum()),
        imputed={name: int(c) for name, c in zip(space.names, counts, strict=True) if c},
        shared=shared,
        ignored=tuple(sorted(named - set(shared))),
    )
    return completed, keep, coverage


def _defaults(space: VectorSpace, given: Mapping[str, Any] | None) -> FloatArray:
    """The default of every hyperparameter as vector entries (d,)."""
    given = given or {}
    if foreign := sorted(set(given) - set(space.names)):
        raise ValueError(
            f"defaults names {', '.join(foreign)}, not in the search space, which has"
            f" {', '.join(space.names)}."
        )
    entries = np.empty(space.d)
    for column, name in enumerate(space.names):
        hyperparameter = space.space[name]
        value = given.get(name, hyperparameter.default_value)
        if not hyperparameter.legal_value(value):
            raise ValueError(f"defaults: {name}={value!r} is not a value of {hyperparameter}.")
        entries[column] = hyperparameter.to_vector(value)
    return entries


def _entries(
    hyperparameter: Hyperparameter[Any, Any],
    name: str,
    values: list[Any],
    facts: TaskFacts | None,
) -> tuple[FloatArray, BoolArray, BoolArray]:
    """Vector entries (n,), NaN where absent; masks (n,) of those clipped and of foreign values."""
    if isinstance(hyperparameter, CategoricalHyperparameter):
        return _looked_up(values, list(hyperparameter.choices))
    if isinstance(hyperparameter, Constant):
        return _constant(hyperparameter, values)
    if isinstance(hyperparameter, OrdinalHyperparameter):
        sequence = list(hyperparameter.sequence)
        if not all(_is_number(v) for v in sequence):
            return _looked_up(values, sequence)
        numbers, foreign = _numbers(name, values, facts)
        return *_snapped(numbers, np.array(sequence, dtype=np.float64)), foreign
    numbers, foreign = _numbers(name, values, facts)
    assert isinstance(hyperparameter, FloatHyperparameter | IntegerHyperparameter)
    lower, upper = float(hyperparameter.lower), float(hyperparameter.upper)
    if isinstance(hyperparameter, IntegerHyperparameter):
        numbers = np.rint(numbers)
    legal = np.clip(numbers, lower, upper)
    outside = ~np.isnan(numbers) & (legal != numbers)
    known = ~np.isnan(legal)
    entries = np.full(len(values), np.nan)
    entries[known] = hyperparameter.to_vector(legal[known])
    return entries, outside, foreign


def _looked_up(values: list[Any], choices: list[Any]) -> tuple[FloatArray, BoolArray, BoolArray]:
    exact = {choice: float(i) for i, choice in enumerate(choices)}
    spelled = {_spelling(choice): float(i) for i, choice in enumerate(choices)}

    def place(value: Any) -> float:
        if value is _ABSENT:
            return math.nan
        found = exact.get(value) if value.__hash__ else None
        if found is None:
            found = spelled.get(_spelling(value))
        return -1.0 if found is None else found

    entries = np.array([place(value) for value in values], dtype=np.float64)
    foreign = entries == -1.0
    none = np.array([_is_missing(v) for v in values], dtype=bool)
    entries[foreign] = np.nan
    return entries, np.zeros(len(values), dtype=bool), foreign & ~none


def _spelling(value: Any) -> str:
    """A value as text: files and frames turn None into "None", and spaces into "none"."""
    text = str(value)
    return text.lower() if text.lower() in ("none", "true", "false") else text


def _constant(
    hyperparameter: Constant, values: list[Any]
) -> tuple[FloatArray, BoolArray, BoolArray]:
    entries, _, foreign = _looked_up(values, [hyperparameter.value])
    return np.where(foreign, 0.0, entries), foreign, np.zeros(len(values), dtype=bool)


def _snapped(numbers: FloatArray, sequence: FloatArray) -> tuple[FloatArray, BoolArray]:
    """The nearest place (n,) in an ordered sequence, and whether the value had to be moved."""
    known = ~np.isnan(numbers)
    entries = np.full(len(numbers), np.nan)
    gaps = np.abs(numbers[known, None] - sequence[None, :])
    entries[known] = gaps.argmin(axis=1)
    moved = np.zeros(len(numbers), dtype=bool)
    moved[known] = ~np.isclose(numbers[known], sequence[gaps.argmin(axis=1)])
    return entries, moved


def _numbers(
    name: str, values: list[Any], facts: TaskFacts | None
) -> tuple[FloatArray, BoolArray]:
    """Numbers (n,), NaN where there is none, and a mask (n,) of values that are none."""
    kinds = set(map(type, values))  # a million values: looked at one by one only if need be
    if kinds <= {int, float, object}:
        plain = [math.nan if v is _ABSENT else v for v in values] if object in kinds else values
        return np.array(plain, dtype=np.float64), np.zeros(len(values), dtype=bool)
    numbers = np.array([v if _is_number(v) else math.nan for v in values], dtype=np.float64)
    other = np.array([not _is_number(v) and not _is_missing(v) for v in values], dtype=bool)
    none = np.array([v is None for v in values], dtype=bool)
    if (other | none).any() and (rule := rule_for(name, KNOWN_MEANINGS)) is not None:
        odd = np.flatnonzero(other | none)
        _, meant = apply_rule(rule, [values[i] for i in odd], [facts] * len(odd))
        numbers[odd] = meant
    return numbers, other & np.isnan(numbers)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)


def _is_missing(value: Any) -> bool:
    return value is _ABSENT or value is None or (isinstance(value, float) and math.isnan(value))
