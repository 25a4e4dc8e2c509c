"""Spaces in which hyperparameters keep a part of their values, and which of them stay active.

An inactive parent satisfies "not equal" and no other condition, as in ConfigSpace.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
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
    OrConjunction,
)
from ConfigSpace.forbidden import (
    ForbiddenAndConjunction,
    ForbiddenClause,
    ForbiddenConjunction,
    ForbiddenEqualsClause,
    ForbiddenGreaterThanEqualsClause,
    ForbiddenInClause,
    ForbiddenLike,
    ForbiddenRelation,
)
from ConfigSpace.hyperparameters import (
    BetaFloatHyperparameter,
    BetaIntegerHyperparameter,
    CategoricalHyperparameter,
    Constant,
    Hyperparameter,
    IntegerHyperparameter,
    NormalFloatHyperparameter,
    NormalIntegerHyperparameter,
    OrdinalHyperparameter,
    UniformFloatHyperparameter,
    UniformIntegerHyperparameter,
)
from ConfigSpace.types import NotSet

from automl_plugins.spaces.choices import categorical, one_of, ordinal
from automl_plugins.spaces.conditions import make_sound
from automl_plugins.spaces.ranges import ExactFloat, ExactInteger, part_of
from automl_plugins.spaces.values import choices_of, index_of
from automl_plugins.spaces.vector_space import VectorSpace


@dataclass(frozen=True)
class Range:
    """Numbers from ``low`` to ``high``, both included; whole numbers if both are ``int``.

    Attributes:
        low: Smallest one.
        high: Largest one.
        limit: Where the next range begins, for real numbers; None where none follows. ``high`` is
            the number or step before it, or up to 1e-13 below it where ConfigSpace rounds bounds
            to 13 decimal places.
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
# True: always active. A condition on one parent, "and" / "or" of several such, or "not" one such.
Active = bool | Condition | tuple[Literal["and", "or", "not"], tuple[Any, ...]]


def holds(domain: Domain, value: Any) -> bool:
    """Whether a value lies in a domain; True is not the category 1."""
    return value in domain if isinstance(domain, Range) else index_of(domain, value) is not None


def domain_of(hp: Hyperparameter[Any, Any]) -> Domain:
    """All values of a hyperparameter."""
    if (known := choices_of(hp)) is not None:
        return tuple(known)
    # Whole numbers where both are ``int``, which ConfigSpace sees to.
    return Range(hp.lower, hp.upper)  # type: ignore[attr-defined]


# On numbers all other clauses are monotone.
_LISTED = (
    EqualsCondition,
    ForbiddenEqualsClause,
    ForbiddenInClause,
    InCondition,
    NotEqualsCondition,
)


def values_named(clause: Condition | ForbiddenClause) -> Sequence[Any]:
    """The values that a condition or forbidden clause on one hyperparameter names."""
    is_set = isinstance(clause, InCondition | ForbiddenInClause)
    return clause.values if is_set else [clause.value]  # type: ignore[union-attr]


def truth(clause: Condition | ForbiddenClause, domain: Domain) -> bool | None:
    """True if a clause holds for all values of a domain, False if for none, None if for some."""
    if isinstance(domain, Range):
        if not isinstance(clause, _LISTED):
            domain = domain.low, domain.high  # the ends decide
        else:
            # A set, as a clause may list a value twice. If no named value is in the domain, "not
            # equal" holds for all values and other clauses for none. If all are: the opposite.
            inside = len({v for v in values_named(clause) if domain.low <= v <= domain.high})
            differs = isinstance(clause, NotEqualsCondition)
            # Real numbers can be listed only if there is a single one.
            is_listed = isinstance(domain.low, int) or domain.low == domain.high
            whole = is_listed and inside == domain.high - domain.low + 1
            return differs if not inside else not differs if whole else None
    if isinstance(clause, Condition):
        held = {bool(clause.satisfied_by_value({clause.parent.name: v})) for v in domain}
    else:
        held = {bool(clause.is_forbidden_value({clause.hyperparameter.name: v})) for v in domain}
    return held.pop() if len(held) == 1 else None


def activity(space: ConfigurationSpace, domains: Mapping[str, Domain]) -> dict[str, Active]:
    """When each hyperparameter is active, by name, if some keep only the values in ``domains``.

    Parents come first. Hyperparameters that are never active are left out.
    """
    active: dict[str, Active] = {}
    for name in space.at:  # sorted by depth
        parts = [_simplify(c, active, domains) for c in space.parent_conditions_of[name]]
        when = _join("and", parts)
        if when is not False:
            active[name] = when
    return active


def _simplify(
    condition: ConditionLike, active: Mapping[str, Active], domains: Mapping[str, Domain]
) -> Active:
    if isinstance(condition, Conjunction):
        kind: Literal["and", "or"] = "and" if isinstance(condition, AndConjunction) else "or"
        return _join(kind, [_simplify(c, active, domains) for c in condition.components])
    name = condition.parent.name
    differs = isinstance(condition, NotEqualsCondition)
    if name not in active:
        # Never active, so only "not equal" holds.
        return differs
    met = truth(condition, domains.get(name, domain_of(condition.parent)))
    if met is None:
        return condition
    if differs:  # an inactive parent satisfies it, even if no value does
        return met or _not(active[name])
    # A condition that all values meet holds whenever the parent is active.
    return active[name] if met else False


def _not(when: Active) -> Active:
    return not when if isinstance(when, bool) else ("not", (when,))


def _join(kind: Literal["and", "or"], parts: list[Active]) -> Active:
    decides = kind == "or"  # the truth value that one part forces on all
    if any(part is decides for part in parts):
        return decides
    left: list[Active] = []
    for part in parts:
        if not isinstance(part, bool) and part not in left:  # equal parts count once
            left.append(part)
    if len(left) < 2:
        return left[0] if left else not decides
    return kind, tuple(left)


def conditions_in(when: Active) -> list[Condition]:
    """The conditions that an expression is made of."""
    if isinstance(when, tuple):
        return [condition for part in when[1] for condition in conditions_in(part)]
    return [] if isinstance(when, bool) else [when]


_TRIED = 10_000  # configurations among which a default is looked for


def restrict_space(
    space: ConfigurationSpace, domains: Mapping[str, Domain]
) -> ConfigurationSpace | None:
    """The part of a space in which some hyperparameters keep some of their values.

    Names, scales, distributions, meta data, conditions and forbidden clauses stay; defaults move
    inside. A whole number with one value left becomes a constant. Beta distributions, and normal
    ones on a log scale, become uniform where they are cut: ConfigSpace has no truncated form of
    them. Normal ones stay what they are, truncated.

    Args:
        space: The whole space; it stays as it is.
        domains: Values left, by name: a ``Range``, or a tuple of categories or of neighbours in
            an ordinal.

    Returns:
        A new space, or None if the forbidden clauses leave nothing of it (beyond 10 000
        configurations: if none of 10 000 random ones is allowed).
    """
    active = activity(space, domains)
    out, clauses = _build(space, domains, active, {})
    if clauses is None:
        return None
    if clauses:
        defaults = _allowed_defaults(out, clauses)
        if defaults is None:
            return None
        if defaults:  # ConfigSpace refuses clauses that the defaults violate
            out, clauses = _build(space, domains, active, defaults)
        assert clauses is not None
        out.add(clauses)
    return out


@np.errstate(over="ignore")  # ConfigSpace rounds defaults, however large they are
def _build(
    space: ConfigurationSpace,
    domains: Mapping[str, Domain],
    active: Mapping[str, Active],
    defaults: Mapping[str, Any],
) -> tuple[ConfigurationSpace, list[ForbiddenLike] | None]:
    """The space without its forbidden clauses, and these; None if they forbid everything."""
    hps = {n: narrow(space[n], domains.get(n), defaults.get(n, NotSet)) for n in active}
    out = ConfigurationSpace(meta=space.meta)
    out.add(list(hps.values()))
    out.add([_condition(w, hps[n], hps, active) for n, w in active.items() if w is not True])
    clauses = [_forbidden(c, active, hps) for c in space.forbidden_clauses]
    if any(c is True for c in clauses):
        return out, None
    return out, [c for c in clauses if not isinstance(c, bool)]


def _condition(
    when: Active,
    child: Hyperparameter[Any, Any],
    hps: Mapping[str, Hyperparameter[Any, Any]],
    active: Mapping[str, Active],
    *,
    negated: bool = False,
) -> ConditionLike:
    """An expression as conditions of ``child``; its negation if ``negated``."""
    if isinstance(when, tuple):
        kind, parts = when
        if kind == "not":
            return _condition(parts[0], child, hps, active, negated=not negated)
        # De Morgan: "and" does not hold if one part does not, and "or" if none of them does.
        join = AndConjunction if (kind == "and") != negated else OrConjunction
        return join(*(_condition(part, child, hps, active, negated=negated) for part in parts))
    assert isinstance(when, Condition)
    if negated:
        return _opposite(when, child, hps, active)
    parent = hps[when.parent.name]
    if isinstance(when, InCondition):
        return one_of(child, parent, _left(when, parent))
    if isinstance(when, NotEqualsCondition) and active[parent.name] is not True:
        # ConfigSpace refuses a "not equal" whose parent is inactive where all have their defaults.
        equal = EqualsCondition(when.child, when.parent, when.value)
        return _opposite(equal, child, hps, active)
    return type(when)(child, parent, when.value)


def _opposite(
    when: Condition,
    child: Hyperparameter[Any, Any],
    hps: Mapping[str, Hyperparameter[Any, Any]],
    active: Mapping[str, Active],
) -> ConditionLike:
    """The negation of a condition, made of conditions that no inactive parent satisfies."""
    parent = hps[when.parent.name]
    if isinstance(when, NotEqualsCondition):
        return EqualsCondition(child, parent, when.value)
    others = _others(when, child, parent)
    if active[parent.name] is True:
        return others
    inactive = _condition(active[parent.name], child, hps, active, negated=True)
    return OrConjunction(inactive, others)


def _others(
    condition: Condition, child: Hyperparameter[Any, Any], parent: Hyperparameter[Any, Any]
) -> ConditionLike:
    """The condition that the parent is active and fails ``condition``, which some values meet."""
    domain = domain_of(parent)
    if isinstance(domain, tuple):
        return one_of(child, parent, [v for v in domain if not truth(condition, (v,))])
    if isinstance(condition, InCondition):
        equal = [EqualsCondition(child, parent, v) for v in condition.values if v in domain]
        beside = [_others(each, child, parent) for each in equal]
        return AndConjunction(*beside) if len(beside) > 1 else beside[0]
    value = condition.value
    # The parts of the range below, above and at the value that the condition does not cover.
    sides: list[Condition] = []
    if value > domain.low and not isinstance(condition, LessThanCondition):
        sides.append(LessThanCondition(child, parent, value))
    if value < domain.high and not isinstance(condition, GreaterThanCondition):
        sides.append(GreaterThanCondition(child, parent, value))
    if not isinstance(condition, EqualsCondition):
        sides.append(EqualsCondition(child, parent, value))
    return OrConjunction(*sides) if len(sides) > 1 else sides[0]


def _left(clause: InCondition | ForbiddenInClause, hp: Hyperparameter[Any, Any]) -> list[Any]:
    """The values of a clause that a narrowed hyperparameter still has; True is not 1."""
    domain = domain_of(hp)
    return [v for v in clause.values if holds(domain, v)]


def _forbidden(
    clause: ForbiddenLike,
    active: Mapping[str, Active],
    hps: Mapping[str, Hyperparameter[Any, Any]],
) -> ForbiddenLike | bool:
    """The clause on the values left; True if it always applies, False if it never does."""
    if isinstance(clause, ForbiddenConjunction):
        parts = [_forbidden(c, active, hps) for c in clause.components]
        # As in ``_join``: a part that always applies decides "or", one that never does "and".
        decides = not isinstance(clause, ForbiddenAndConjunction)
        if any(part is decides for part in parts):
            return decides
        left = [part for part in parts if not isinstance(part, bool)]
        if len(left) < 2:
            return left[0] if left else not decides
        return type(clause)(*left)
    if isinstance(clause, ForbiddenRelation):
        # ConfigSpace forbids nothing where a side is inactive.
        if clause.left.name not in active or clause.right.name not in active:
            return False
        return type(clause)(left=hps[clause.left.name], right=hps[clause.right.name])
    hp = hps.get(clause.hyperparameter.name)
    if hp is None:
        return False
    domain = domain_of(hp)
    met = truth(clause, domain)
    if met is False or (met and active[hp.name] is True):
        return met
    if met:  # it must not be active: every value is forbidden
        if isinstance(domain, tuple):
            return ForbiddenInClause(hp, domain)
        return make_sound(ForbiddenGreaterThanEqualsClause(hp, domain.low))  # all numbers
    if isinstance(clause, ForbiddenInClause):
        return ForbiddenInClause(hp, _left(clause, hp))
    return make_sound(type(clause)(hp, clause.value))  # type: ignore[call-arg, attr-defined]


def _allowed_defaults(
    space: ConfigurationSpace, clauses: list[ForbiddenLike]
) -> dict[str, Any] | None:
    """Defaults by name that the clauses allow; {} keeps the old ones, None if none are allowed."""
    for clause in clauses:  # they get their columns only when they are added to a space
        clause.set_vector_idx(space.index_of)

    def allowed(vectors: Any) -> Any:
        return ~np.any([c.is_forbidden_vector_array(vectors.T) for c in clauses], axis=0)

    if allowed(space.get_default_configuration().get_array()[None, :])[0]:
        return {}
    view = VectorSpace(space)
    # First all of them, so that a part with a single allowed configuration is found.
    rows = view.enumerate(_TRIED)
    if rows is None:
        rows = view.sample(_TRIED, np.random.default_rng(0))  # the same defaults in every search
    rows = rows[allowed(rows)]
    if not len(rows):
        return None
    pairs = zip(view.names, rows[0], strict=True)
    return {name: space[name].to_value(v) for name, v in pairs if not np.isnan(v)}


def narrow(
    hp: Hyperparameter[Any, Any], domain: Domain | None = None, default: Any = NotSet
) -> Hyperparameter[Any, Any]:
    """A hyperparameter with a part of its values, and a default among them.

    Without ``default`` the old default stays, if it is among the values. If it is not, a number
    takes the middle of its range, and a choice the default of ConfigSpace.
    """
    whole = domain_of(hp)
    domain = whole if domain is None else domain
    if isinstance(hp, Constant) or (domain == whole and default is NotSet):
        return hp
    if default is NotSet and holds(domain, hp.default_value):
        default = hp.default_value
    if isinstance(domain, Range):
        # A number between ``high`` and ``limit`` would be rounded to ``high``.
        default = default if default is NotSet else min(default, domain.high)
        return _narrow_number(hp, domain, default, keep=domain == whole)
    if isinstance(hp, OrdinalHyperparameter):
        return ordinal(hp.name, domain, default=default, meta=hp.meta)
    assert isinstance(hp, CategoricalHyperparameter)
    places = [index_of(hp.choices, value) for value in domain]
    weights = hp.weights and [hp.weights[i] for i in places if i is not None]
    if weights and not any(weights):
        weights = None  # weights of 0 only are no distribution
    return categorical(hp.name, domain, weights=weights, default=default, meta=hp.meta)


def _narrow_number(
    hp: Hyperparameter[Any, Any], domain: Range, default: Any, *, keep: bool
) -> Hyperparameter[Any, Any]:
    low, high, log = domain.low, domain.high, bool(hp.log)  # type: ignore[attr-defined]
    integer = isinstance(hp, IntegerHyperparameter)
    if low == high:
        return Constant(hp.name, low, meta=hp.meta)
    if isinstance(hp, ExactFloat | ExactInteger):
        # Up to where the next range begins: numbers with steps are not rounded.
        end = high if domain.limit is None else math.nextafter(domain.limit, -math.inf)
        return part_of(hp, low, high if keep else end, None if default is NotSet else default)
    if default is NotSet:
        # Roots and halves first: products and sums of the largest floats overflow.
        middle = math.sqrt(low) * math.sqrt(high) if log else low / 2 + high / 2
        default = round(middle) if integer else middle
    options = {"lower": low, "upper": high, "log": log, "default_value": default, "meta": hp.meta}
    if isinstance(hp, NormalFloatHyperparameter | NormalIntegerHyperparameter):
        if keep or not log:
            return type(hp)(hp.name, mu=hp.mu, sigma=hp.sigma, **options)
    elif keep and isinstance(hp, BetaFloatHyperparameter | BetaIntegerHyperparameter):
        return type(hp)(hp.name, alpha=hp.alpha, beta=hp.beta, **options)
    uniform = UniformIntegerHyperparameter if integer else UniformFloatHyperparameter
    return uniform(hp.name, **options)
