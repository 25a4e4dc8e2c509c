"""What is still active, always or sometimes, where hyperparameters keep a part of their values.

An inactive parent never satisfies a condition, as in ``VectorSpace``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from ConfigSpace import ConfigurationSpace
from ConfigSpace.conditions import (
    AndConjunction,
    Condition,
    ConditionLike,
    Conjunction,
    EqualsCondition,
    GreaterThanCondition,
    InCondition,
    LessThanCondition,
    NotEqualsCondition,
)
from ConfigSpace.forbidden import (
    ForbiddenClause,
    ForbiddenEqualsClause,
    ForbiddenGreaterThanClause,
    ForbiddenGreaterThanEqualsClause,
    ForbiddenInClause,
    ForbiddenLessThanClause,
    ForbiddenLessThanEqualsClause,
)
from ConfigSpace.hyperparameters import (
    CategoricalHyperparameter,
    Constant,
    Hyperparameter,
    OrdinalHyperparameter,
)


@dataclass(frozen=True)
class Range:
    """Numbers from ``low`` to ``high``, both included; whole numbers if both are ``int``.

    Attributes:
        low: Smallest one.
        high: Largest one.
        limit: Where the next range begins, for real numbers; None where none follows. ConfigSpace
            rounds bounds to 13 decimal places, so ``high`` is up to 1e-13 below it.
    """

    low: float
    high: float
    limit: float | None = None

    def __contains__(self, value: object) -> bool:
        if not isinstance(value, int | float | np.number):
            return False
        below = value <= self.high if self.limit is None else value < self.limit
        return bool(self.low <= value and below)


Domain = Range | tuple[Any, ...]  # categories and ordinals have tuples
# True: always active. A condition on one parent, or "and" / "or" of several such.
Active = bool | Condition | tuple[Literal["and", "or"], tuple[Any, ...]]


def domain_of(hp: Hyperparameter[Any, Any]) -> Domain:
    """All values of a hyperparameter."""
    if isinstance(hp, CategoricalHyperparameter):
        return tuple(hp.choices)
    if isinstance(hp, OrdinalHyperparameter):
        return tuple(hp.sequence)
    if isinstance(hp, Constant):
        return (hp.value,)
    return Range(hp.lower, hp.upper)  # type: ignore[attr-defined]


_OPERATORS: dict[type, str] = {
    EqualsCondition: "==",
    ForbiddenEqualsClause: "==",
    NotEqualsCondition: "!=",
    InCondition: "in",
    ForbiddenInClause: "in",
    LessThanCondition: "<",
    ForbiddenLessThanClause: "<",
    ForbiddenLessThanEqualsClause: "<=",
    GreaterThanCondition: ">",
    ForbiddenGreaterThanClause: ">",
    ForbiddenGreaterThanEqualsClause: ">=",
}


def truth(clause: Condition | ForbiddenClause, domain: Domain) -> bool | None:
    """Whether a clause on one hyperparameter holds for all values or for none; None: for some."""
    if isinstance(domain, tuple):
        if isinstance(clause, Condition):
            held = [clause.satisfied_by_value({clause.parent.name: v}) for v in domain]
        else:
            held = [clause.is_forbidden_value({clause.hyperparameter.name: v}) for v in domain]
        return all(held) if all(held) == any(held) else None
    low, high, operator = domain.low, domain.high, _OPERATORS[type(clause)]
    if operator in ("==", "!=", "in"):
        values = clause.values if operator == "in" else [clause.value]  # type: ignore[union-attr]
        inside = len({v for v in values if low <= v <= high})
        if not inside:
            return operator == "!="
        whole = isinstance(low, int) and inside == high - low + 1
        return operator != "!=" if whole else None
    value = clause.value  # type: ignore[union-attr]
    always, never = {
        "<": (high < value, low >= value),
        "<=": (high <= value, low > value),
        ">": (low > value, high <= value),
        ">=": (low >= value, high < value),
    }[operator]
    return True if always else False if never else None


def activity(space: ConfigurationSpace, domains: Mapping[str, Domain]) -> dict[str, Active]:
    """When each hyperparameter that is left is active, parents first.

    Args:
        space: The whole space.
        domains: Values left, by name; the others keep all of theirs.
    """
    active: dict[str, Active] = {}
    for name in space.at:  # sorted by depth
        parts = [_simplified(c, active, domains) for c in space.parent_conditions_of[name]]
        when = _joined("and", parts)
        if when is not False:
            active[name] = when
    return active


def _simplified(
    condition: ConditionLike, active: Mapping[str, Active], domains: Mapping[str, Domain]
) -> Active:
    if isinstance(condition, Conjunction):
        kind: Literal["and", "or"] = "and" if isinstance(condition, AndConjunction) else "or"
        return _joined(kind, [_simplified(c, active, domains) for c in condition.components])
    name = condition.parent.name
    if name not in active:
        return False
    holds = truth(condition, domains.get(name, domain_of(condition.parent)))
    # What holds for all values is true whenever the parent is active.
    return active[name] if holds else condition if holds is None else False


def _joined(kind: Literal["and", "or"], parts: list[Active]) -> Active:
    decides = kind == "or"  # the truth value that one part forces on all
    if any(part is decides for part in parts):
        return decides
    left: list[Active] = []
    for part in parts:
        if not isinstance(part, bool) and part not in left:
            left.append(part)
    if len(left) < 2:
        return left[0] if left else not decides
    return kind, tuple(left)


def conditions_in(when: Active) -> list[Condition]:
    """The conditions that an expression is made of."""
    if isinstance(when, tuple):
        return [condition for part in when[1] for condition in conditions_in(part)]
    return [] if isinstance(when, bool) else [when]
