"""Forbidden clauses that say the same about vectors as about values.

ConfigSpace 1.2 takes "at most" for "at least" where it checks vectors, and prints each vector that
it checks for "at least". Both are written here as "less, or equal" and "greater, or equal".
"""

from __future__ import annotations

from typing import Any

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
from ConfigSpace.hyperparameters import Hyperparameter


def sound(clause: ForbiddenLike) -> ForbiddenLike:
    """An equivalent of ``clause`` that can be trusted with vectors; itself where it can."""
    if isinstance(clause, ForbiddenConjunction):
        return type(clause)(*[sound(part) for part in clause.components])
    if isinstance(clause, ForbiddenLessThanEqualsClause):
        return at_most(clause.hyperparameter, clause.value)
    if isinstance(clause, ForbiddenGreaterThanEqualsClause):
        return at_least(clause.hyperparameter, clause.value)
    return clause


def at_most(hyperparameter: Hyperparameter[Any, Any], value: Any) -> ForbiddenLike:
    """Forbids all values up to ``value``, itself included."""
    less = ForbiddenLessThanClause(hyperparameter, value)
    return ForbiddenOrConjunction(less, ForbiddenEqualsClause(hyperparameter, value))


def at_least(hyperparameter: Hyperparameter[Any, Any], value: Any) -> ForbiddenLike:
    """Forbids all values from ``value`` on, itself included."""
    greater = ForbiddenGreaterThanClause(hyperparameter, value)
    return ForbiddenOrConjunction(greater, ForbiddenEqualsClause(hyperparameter, value))
