"""Conditions, some of them inferred from what was recorded, and forbidden clauses.

``vectors`` (n, d) are those of ``vector_space``; ``columns`` (d, n) are the same transposed, as
ConfigSpace takes them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from ConfigSpace import ConfigurationSpace
from ConfigSpace.conditions import (
    AndConjunction,
    Condition,
    ConditionLike,
    Conjunction,
    GreaterThanCondition,
    InCondition,
    LessThanCondition,
    NotEqualsCondition,
)
from ConfigSpace.forbidden import (
    ForbiddenConjunction,
    ForbiddenEqualsClause,
    ForbiddenGreaterThanClause,
    ForbiddenGreaterThanEqualsClause,
    ForbiddenLessThanClause,
    ForbiddenLessThanEqualsClause,
    ForbiddenLike,
    ForbiddenOrConjunction,
)

from automl_plugins.arrays import BoolArray, FloatArray
from automl_plugins.spaces.choices import one_of

_FEW_VALUES = 4  # of a condition, up to which comparing each takes less than a look-up


@dataclass(frozen=True)
class Rule:
    """``child`` is asked for exactly when ``parent`` is in ``values``, or beyond the threshold."""

    child: str
    parent: str
    relation: str  # "in" a set of values, "above" or "below" a threshold
    values: tuple[float, ...]  # the set, or the threshold alone, as numbers


def infer_rules(
    values: Mapping[str, FloatArray], *, categories: Collection[str], integers: Collection[str]
) -> list[Rule]:
    """Conditions that explain in which rows a parameter has a value.

    A rule holds if one categorical or integer parent separates the rows with the child from the
    rows without it, without exception. Of several such parents the one with a value in the fewest
    rows is taken. A parameter without a rule stays unconditional. ``values`` are numbers (n,) by
    name (categories as index), NaN where a row has no value.
    """
    present = {name: ~np.isnan(column) for name, column in values.items()}
    counts = {name: int(mask.sum()) for name, mask in present.items()}
    rules = []
    # By name, so that the rules do not depend on the order of the columns.
    for child in sorted(values):
        # Never there or always there: nothing has to be explained.
        if not 0 < counts[child] < len(present[child]):
            continue
        # With more rows than the child: otherwise two with the same rows explain each other.
        parents = [
            name
            for name in values
            if counts[name] > counts[child]
            and (name in categories or name in integers)
            and not np.any(present[child] & ~present[name])
        ]
        # Among equals a category, whose rule needs no threshold; then by name, as above.
        for parent in sorted(parents, key=lambda n: (counts[n], n not in categories, n)):
            # Neither is empty: the parent is always there with the child, and in more rows.
            with_child = values[parent][present[child]]
            without = values[parent][present[parent] & ~present[child]]
            rule = _separate(child, parent, with_child, without, parent in categories)
            if rule is not None:
                rules.append(rule)
                break
    return rules


def _separate(
    child: str, parent: str, with_child: FloatArray, without: FloatArray, is_category: bool
) -> Rule | None:
    if is_category:
        inside = np.unique(with_child)
        if np.isin(without, inside).any():
            return None
        return Rule(child, parent, "in", tuple(inside.tolist()))
    # The threshold is a value that was seen without the child: what lies beyond it has the child.
    if with_child.min() > without.max():
        return Rule(child, parent, "above", (float(without.max()),))
    if with_child.max() < without.min():
        return Rule(child, parent, "below", (float(without.min()),))
    return None


def as_condition(space: ConfigurationSpace, rule: Rule, values: Sequence[Any]) -> Condition:
    """A rule as a condition of ``space``, its values given as values of the parent."""
    child, parent = space[rule.child], space[rule.parent]
    if rule.relation == "in":
        return one_of(child, parent, values)
    kind = GreaterThanCondition if rule.relation == "above" else LessThanCondition
    return kind(child, parent, values[0])


def is_active(space: ConfigurationSpace, name: str, values: Mapping[str, Any]) -> bool:
    """Whether a hyperparameter is active, given the values of its active parents."""
    return all(_holds(condition, values) for condition in space.parent_conditions_of[name])


def active_names(space: ConfigurationSpace, values: Mapping[str, Any]) -> Iterator[str]:
    """Names of the active hyperparameters, parents first.

    A loop over them may add the value of each to ``values``, which decides on its children.
    """
    return (name for name in space.at if is_active(space, name, values))


def _holds(condition: ConditionLike, values: Mapping[str, Any]) -> bool:
    if isinstance(condition, Conjunction):
        parts = [_holds(part, values) for part in condition.components]
        return all(parts) if isinstance(condition, AndConjunction) else any(parts)
    assert isinstance(condition, Condition)
    if condition.parent.name not in values:
        # ConfigSpace compares vectors, and an inactive parent, NaN, differs from every value.
        return isinstance(condition, NotEqualsCondition)
    return bool(condition.satisfied_by_value(dict(values)))


def satisfied(condition: ConditionLike, columns: FloatArray) -> BoolArray:
    """Mask (n,) of the rows of ``columns`` (d, n) whose parents fulfil it.

    An inactive parent fulfils "not equal" and nothing else, as in ConfigSpace.
    """
    if isinstance(condition, Conjunction):
        parts = [satisfied(part, columns) for part in condition.components]
        combine = np.logical_and if isinstance(condition, AndConjunction) else np.logical_or
        return np.asarray(combine.reduce(parts), dtype=bool)
    assert isinstance(condition, Condition)
    # An inactive parent, NaN, equals none of them.
    if isinstance(condition, InCondition) and len(condition.vector_values) <= _FEW_VALUES:
        parent = columns[condition.parent_vector_id]
        mask = parent == condition.vector_values[0]
        for value in condition.vector_values[1:]:
            mask |= parent == value
        return np.asarray(mask)
    return np.asarray(condition.satisfied_by_vector_array(columns), dtype=bool)


# --- inactive columns ------------------------------------------------------------------------


class Deactivation(NamedTuple):
    """When some columns of vectors are inactive."""

    children: slice  # the columns
    inactive: Callable[[FloatArray], BoolArray]  # vectors (n, d) -> mask (n, c) of the children


def deactivations(
    conditions: Sequence[tuple[int, ConditionLike]], n_values: FloatArray, categorical: BoolArray
) -> list[Deactivation]:
    """``conditions`` of columns, as (child, condition), as functions to be applied in order.

    Columns and conditions have parents before their children.
    """

    def decides(condition: ConditionLike) -> np.intp | None:
        """The column of the category that alone decides; None if anything else decides."""
        if isinstance(condition, Condition) and categorical[condition.parent_vector_id]:
            return condition.parent_vector_id
        return None

    found: list[Deactivation] = []
    # Ascending, and in each column first whether it is active, then what its category rules out:
    # the functions are applied in this order, so each finds the parents decided.
    for column in range(len(n_values)):
        of_column = [c for child, c in conditions if child == column and decides(c) is None]
        found += [_by_comparison(column, condition) for condition in of_column]
        if simple := [(child, c) for child, c in conditions if decides(c) == column]:
            found.append(_by_category(column, n_values, simple))
    return found


def _by_comparison(child: int, condition: ConditionLike) -> Deactivation:
    # A function of its own: a lambda in the loop above would see the last condition only.
    return Deactivation(
        slice(child, child + 1), lambda vectors: ~satisfied(condition, vectors.T)[:, None]
    )


def _by_category(
    parent: int, n_values: FloatArray, conditions: Sequence[tuple[int, ConditionLike]]
) -> Deactivation:
    """One deactivation for all (child, condition) of one categorical parent.

    A look-up for all children takes a fraction of the time of a comparison for each.
    """
    none = int(n_values[parent])  # the row of the table for vectors without a category
    # One configuration for each category (d, k), and a last one without any.
    columns = np.full((len(n_values), none + 1), np.nan)
    columns[parent, :none] = np.arange(none)
    inactive = np.zeros((none + 1, len(n_values)), dtype=bool)
    for child, condition in conditions:  # a child with two is active if both hold
        inactive[:, child] |= ~satisfied(condition, columns)
    children = [child for child, _ in conditions]
    # Other columns may lie between the children; the table leaves them as they are.
    span = slice(min(children), max(children) + 1)
    table = np.ascontiguousarray(inactive[:, span])

    def look_up(vectors: FloatArray) -> BoolArray:
        entries = vectors[:, parent]
        known = (entries >= 0) & (entries < none)  # not NaN, not an option of an old space
        return table[np.where(known, entries, none).astype(np.intp)]

    return Deactivation(span, look_up)


# --- forbidden clauses -----------------------------------------------------------------------


def make_sound(clause: ForbiddenLike) -> ForbiddenLike:
    """An equivalent of ``clause`` that says the same about vectors as about values.

    ConfigSpace 1.2 takes "at most" for "at least" where it checks vectors, and prints each vector
    that it checks for "at least". Both are written as "less, or equal" and "greater, or equal".
    """
    if isinstance(clause, ForbiddenConjunction):
        return type(clause)(*[make_sound(part) for part in clause.components])
    for written, strict in (
        (ForbiddenLessThanEqualsClause, ForbiddenLessThanClause),
        (ForbiddenGreaterThanEqualsClause, ForbiddenGreaterThanClause),
    ):
        if isinstance(clause, written):
            hyperparameter, value = clause.hyperparameter, clause.value
            equal = ForbiddenEqualsClause(hyperparameter, value)
            return ForbiddenOrConjunction(strict(hyperparameter, value), equal)
    return clause
