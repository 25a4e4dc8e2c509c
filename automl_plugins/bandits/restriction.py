"""A ConfigSpace space of which some hyperparameters keep a part of their values only.

What decides nothing any more is simplified: a condition that always holds goes, a hyperparameter
whose condition cannot hold goes with its children, and so do forbidden clauses that cannot apply.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from ConfigSpace import ConfigurationSpace
from ConfigSpace.conditions import (
    AndConjunction,
    Condition,
    ConditionLike,
    GreaterThanCondition,
    InCondition,
    LessThanCondition,
    NotEqualsCondition,
    OrConjunction,
)
from ConfigSpace.forbidden import (
    ForbiddenAndConjunction,
    ForbiddenConjunction,
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

from automl_plugins.spaces.forbidden import at_least, sound
from automl_plugins.spaces.vector_space import VectorSpace

from .domains import Active, Domain, Range, activity, domain_of, truth

_ENUMERATED = 10_000  # configurations among which a default is looked for
_DRAWN = 10_000  # the same in spaces with more


def restricted(
    space: ConfigurationSpace, domains: Mapping[str, Domain]
) -> ConfigurationSpace | None:
    """The part of a space in which some hyperparameters keep some of their values.

    Names, scales, distributions, meta data, conditions and forbidden clauses stay; defaults move
    inside. A whole number with one value left becomes a constant. Beta distributions, and normal
    ones on a log scale, become uniform where they are cut: ConfigSpace has no truncated form of
    them. Normal ones stay what they are, truncated.

    Args:
        space: The whole space; it stays as it is.
        domains: Values left, by name: a ``Range`` or a tuple of categories.

    Returns:
        A new space, or None if the forbidden clauses leave nothing of it (beyond 10 000
        configurations: if none of 10 000 random ones is allowed).
    """
    active = activity(space, domains)
    out, clauses = _built(space, domains, active, {})
    if clauses is None:
        return None
    if clauses:
        defaults = _allowed_defaults(out, clauses)
        if defaults is None:
            return None
        if defaults:
            out, clauses = _built(space, domains, active, defaults)
        assert clauses is not None
        out.add(clauses)
    return out


def _built(
    space: ConfigurationSpace,
    domains: Mapping[str, Domain],
    active: Mapping[str, Active],
    defaults: Mapping[str, Any],
) -> tuple[ConfigurationSpace, list[ForbiddenLike] | None]:
    """The space without its forbidden clauses, and these; None if they forbid everything."""
    hps = {n: narrowed(space[n], domains.get(n), defaults.get(n, NotSet)) for n in active}
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
) -> ConditionLike:
    if isinstance(when, tuple):
        join = AndConjunction if when[0] == "and" else OrConjunction
        return join(*(_condition(part, child, hps, active) for part in when[1]))
    assert isinstance(when, Condition)
    parent = hps[when.parent.name]
    if isinstance(when, InCondition):
        return InCondition(child, parent, [v for v in when.values if parent.legal_value(v)])
    if isinstance(when, NotEqualsCondition) and active[parent.name] is not True:
        return _other(when.value, child, parent)
    return type(when)(child, parent, when.value)


def _other(
    value: Any, child: Hyperparameter[Any, Any], parent: Hyperparameter[Any, Any]
) -> ConditionLike:
    """That the parent has another value; ConfigSpace's "not equal" holds for inactive ones too."""
    domain = domain_of(parent)
    if isinstance(domain, tuple):
        return InCondition(child, parent, [v for v in domain if v != value])
    sides: list[Condition] = []
    if value > domain.low:
        sides.append(LessThanCondition(child, parent, value))
    if value < domain.high:
        sides.append(GreaterThanCondition(child, parent, value))
    return OrConjunction(*sides) if len(sides) > 1 else sides[0]


def _forbidden(
    clause: ForbiddenLike,
    active: Mapping[str, Active],
    hps: Mapping[str, Hyperparameter[Any, Any]],
) -> ForbiddenLike | bool:
    """The clause on what is left; True if it always applies, False if it never does."""
    if isinstance(clause, ForbiddenConjunction):
        parts = [_forbidden(c, active, hps) for c in clause.components]
        decides = not isinstance(clause, ForbiddenAndConjunction)
        if any(part is decides for part in parts):
            return decides
        left = [part for part in parts if not isinstance(part, bool)]
        if len(left) < 2:
            return left[0] if left else not decides
        return type(clause)(*left)
    if isinstance(clause, ForbiddenRelation):
        if clause.left.name not in active or clause.right.name not in active:
            return False
        return type(clause)(left=hps[clause.left.name], right=hps[clause.right.name])
    hp = hps.get(clause.hyperparameter.name)
    if hp is None:
        return False
    holds = truth(clause, domain_of(hp))
    if holds is False or (holds and active[hp.name] is True):
        return holds
    if holds:
        return _always(hp)
    if isinstance(clause, ForbiddenInClause):
        return ForbiddenInClause(hp, [v for v in clause.values if hp.legal_value(v)])
    return sound(type(clause)(hp, clause.value))  # type: ignore[call-arg, attr-defined]


def _always(hp: Hyperparameter[Any, Any]) -> ForbiddenLike:
    """What forbids every value of a hyperparameter, so that it must not be active."""
    domain = domain_of(hp)
    if isinstance(domain, Range):
        return at_least(hp, domain.low)
    return ForbiddenInClause(hp, domain)


def _allowed_defaults(
    space: ConfigurationSpace, clauses: list[ForbiddenLike]
) -> dict[str, Any] | None:
    """Defaults that the clauses allow: none needed ({}), values by name, or None if none is."""
    for clause in clauses:
        clause.set_vector_idx(space.index_of)

    def allowed(vectors: Any) -> Any:
        return ~np.any([c.is_forbidden_vector_array(vectors.T) for c in clauses], axis=0)

    if allowed(space.get_default_configuration().get_array()[None, :])[0]:
        return {}
    view = VectorSpace(space)
    rows = view.enumerate(_ENUMERATED)
    if rows is None:
        rows = view.sample(_DRAWN, np.random.default_rng(0))
    rows = rows[allowed(rows)]
    if not len(rows):
        return None
    pairs = zip(view.names, rows[0], strict=True)
    return {name: space[name].to_value(v) for name, v in pairs if not np.isnan(v)}


def narrowed(
    hp: Hyperparameter[Any, Any], domain: Domain | None = None, default: Any = NotSet
) -> Hyperparameter[Any, Any]:
    """A hyperparameter with a part of its values, and a default among them.

    Args:
        hp: The whole one.
        domain: Values left, in their order; None keeps all.
        default: Default; ``NotSet`` keeps the old one, or takes the middle if that has gone.
    """
    whole = domain_of(hp)
    domain = whole if domain is None else domain
    if isinstance(hp, Constant) or (domain == whole and default is NotSet):
        return hp
    if default is NotSet and hp.default_value in domain:
        default = hp.default_value
    if isinstance(domain, Range):
        return _narrowed_number(hp, domain, default, keep=domain == whole)
    if isinstance(hp, OrdinalHyperparameter):
        return OrdinalHyperparameter(hp.name, domain, default_value=default, meta=hp.meta)
    assert isinstance(hp, CategoricalHyperparameter)
    weights = hp.weights and [hp.weights[hp.choices.index(value)] for value in domain]
    if weights and not any(weights):
        weights = None  # what is never drawn has no other distribution
    return CategoricalHyperparameter(
        hp.name, domain, default_value=default, weights=weights, meta=hp.meta
    )


def _narrowed_number(
    hp: Hyperparameter[Any, Any], domain: Range, default: Any, *, keep: bool
) -> Hyperparameter[Any, Any]:
    low, high, log = domain.low, domain.high, bool(hp.log)  # type: ignore[attr-defined]
    integer = isinstance(hp, IntegerHyperparameter)
    if low == high:
        return Constant(hp.name, low, meta=hp.meta)
    if default is NotSet:
        middle = math.sqrt(low) * math.sqrt(high) if log else low + (high - low) / 2
        default = round(middle) if integer else middle
    options = {"lower": low, "upper": high, "log": log, "default_value": default, "meta": hp.meta}
    if isinstance(hp, NormalFloatHyperparameter | NormalIntegerHyperparameter):
        if keep or not log:
            return type(hp)(hp.name, mu=hp.mu, sigma=hp.sigma, **options)
    elif keep and isinstance(hp, BetaFloatHyperparameter | BetaIntegerHyperparameter):
        return type(hp)(hp.name, alpha=hp.alpha, beta=hp.beta, **options)
    uniform = UniformIntegerHyperparameter if integer else UniformFloatHyperparameter
    return uniform(hp.name, **options)
