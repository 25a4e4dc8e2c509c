"""What is known of a hyperparameter by its name (thesis 3.1.1, "parameter specific imputing").

A rule turns a value into a number: "sqrt" of ``max_features`` means sqrt(p)/p on a task with p
columns. Without the facts of the task, rules that need them cannot tell and return None.
"""

from __future__ import annotations

import math
import numbers
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from automl_plugins.spaces.value_types import FloatArray, kind_of, to_float


@dataclass(frozen=True)
class TaskFacts:
    """What known meanings need of a task: rows n, columns p, variance of all cells of X."""

    n_instances: int
    n_features: int
    x_variance: float = 1.0

    def __post_init__(self) -> None:
        """Refuse sizes below one and a variance that is none."""
        for name, least in (("n_instances", 1), ("n_features", 1), ("x_variance", 0)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, numbers.Real):
                raise TypeError(f"{name} must be a number, got {value!r}.")
            if not least <= float(value) < math.inf:
                raise ValueError(f"{name} must be finite and at least {least}, got {value!r}.")


Tasks = TaskFacts | Sequence[TaskFacts] | None
Imputer = Callable[[Any, TaskFacts | None], float | None]
"""A known meaning, ``rule(value, facts)``: a number, or None where the rule cannot tell."""


def _fraction(value: Any, total: float | None) -> float | None:
    """Return a count as a fraction of ``total``; floats up to 1 are fractions already.

    The int 1 is a count, the float 1.0 a fraction; a float above 1 is a count again (data frames
    turn a column of counts with gaps into floats).
    """
    if kind_of(value) != "number":
        return None
    if not isinstance(value, numbers.Integral) and value <= 1:
        return to_float(value)
    return None if total is None else to_float(value) / total


def _max_features(value: Any, facts: TaskFacts | None) -> float | None:
    """Return sqrt(p)/p, log2(p)/p, 1 for None; at least one feature, as in scikit-learn."""
    if value is None:
        return 1.0
    p = None if facts is None else facts.n_features
    if p is not None and isinstance(value, str) and value in ("auto", "sqrt", "log2"):
        return max(1.0, math.log2(p) if value == "log2" else math.sqrt(p)) / p
    return _fraction(value, p)


def _gamma(value: Any, facts: TaskFacts | None) -> float | None:
    """Return 1/p for "auto", 1/(p Var X) for "scale"; 1 at zero variance, as in scikit-learn."""
    if facts is None or not isinstance(value, str) or value not in ("auto", "scale"):
        return None
    divisor = facts.n_features * (facts.x_variance if value == "scale" else 1.0)
    return 1.0 / divisor if divisor > 0 else 1.0


def _min_samples(value: Any, facts: TaskFacts | None) -> float | None:
    """Return a count of rows as a fraction of the rows."""
    return _fraction(value, None if facts is None else facts.n_instances)


def _max_depth(value: Any, facts: TaskFacts | None) -> float | None:
    """Return 20 for None: deep enough not to matter, not so deep as to stick out."""
    return 20.0 if value is None else None


KNOWN_MEANINGS: Final[Mapping[str, Imputer]] = {
    "max_features": _max_features,
    "gamma": _gamma,
    "min_samples_leaf": _min_samples,
    "min_samples_split": _min_samples,
    "max_depth": _max_depth,
}
"""The rules of the thesis; ``{**KNOWN_MEANINGS, ...}`` adds to them."""


def rule_for(name: str, rules: Mapping[str, Imputer]) -> Imputer | None:
    """Return the rule for "max_depth", "rf.max_depth", "tree:max_depth" or "rf__max_depth"."""
    return rules.get(name, rules.get(re.split(r"\.|:|__", name)[-1]))


def apply_rule(
    rule: Imputer | None, values: Sequence[Any], facts: Sequence[TaskFacts | None]
) -> tuple[list[Any], FloatArray]:
    """Return ``values`` with one name for one thing, and the numbers known (n,), else NaN."""
    known = np.full(len(values), math.nan)
    if rule is None:
        return list(values), known
    for i, value in enumerate(values):
        if kind_of(value) != "missing":
            known[i] = to_float(rule(value, facts[i]))  # None becomes NaN
    if rule is _max_features:
        return ["sqrt" if isinstance(v, str) and v == "auto" else v for v in values], known
    return list(values), known


def facts_by_row(tasks: Any, n_rows: int) -> list[TaskFacts | None]:
    """Return the facts for each row, or raise TypeError or ValueError for illegal ``tasks``."""
    if tasks is None or isinstance(tasks, TaskFacts):
        return [tasks] * n_rows
    facts = list(tasks) if isinstance(tasks, Iterable) else [tasks]
    for index, fact in enumerate(facts):
        if not isinstance(fact, TaskFacts):
            raise TypeError(
                "tasks must be None, one TaskFacts, or one TaskFacts for each row, got "
                f"{fact!r} at position {index}."
            )
    if len(facts) != n_rows:
        raise ValueError(f"tasks must have one entry per row, {n_rows}, got {len(facts)}.")
    return facts
