"""Conditions inferred from what was recorded, and checked on plain values."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from ConfigSpace import (
    AndConjunction,
    Categorical,
    Configuration,
    ConfigurationSpace,
    EqualsCondition,
    Float,
    GreaterThanCondition,
    InCondition,
    Integer,
    LessThanCondition,
    NotEqualsCondition,
    OrConjunction,
    OrdinalHyperparameter,
)
from ConfigSpace.exceptions import ActiveHyperparameterNotSetError, InactiveHyperparameterSetError
from ConfigSpace.forbidden import (
    ForbiddenAndConjunction,
    ForbiddenEqualsClause,
    ForbiddenGreaterThanClause,
    ForbiddenGreaterThanEqualsClause,
    ForbiddenLessThanClause,
    ForbiddenLessThanEqualsClause,
    ForbiddenLike,
    ForbiddenOrConjunction,
)

from automl_plugins.spaces.conditions import Rule, infer_rules, is_active
from automl_plugins.spaces.vector_space import VectorSpace

NAN = math.nan


@pytest.mark.parametrize(
    ("columns", "categories", "integers", "expected"),
    [
        (
            {"kind": [0, 1, 2, 0, 2], "x": [NAN, 0.5, 0.1, NAN, 0.2]},
            "kind",
            "",
            [Rule("x", "kind", "in", (1.0, 2.0))],
        ),
        (
            {"layers": [1, 2, 3, 4], "width": [NAN, NAN, 8, 9], "skip": [0, 1, NAN, NAN]},
            "",
            "layers",
            [Rule("skip", "layers", "below", (3.0,)), Rule("width", "layers", "above", (2.0,))],
        ),
        # always or never there
        ({"kind": [0, 1], "x": [1.0, 2.0], "y": [NAN, NAN]}, "kind", "", []),
        # one exception; the parent is missing where the child is there; numbers that overlap
        ({"kind": [0, 0, 1], "x": [NAN, 1.0, 2.0]}, "kind", "", []),
        ({"kind": [NAN, 0, 1], "x": [1.0, NAN, 2.0]}, "kind", "", []),
        ({"n": [1, 2, 3], "x": [NAN, 1.0, NAN]}, "", "n", []),
        # real numbers are not parents
        ({"r": [0.1, 0.9], "x": [NAN, 1.0]}, "", "", []),
        # the parent asked for least often is the nearest
        (
            {
                "top": [0, 0, 1, 1, 1, 1],
                "middle": [NAN, NAN, 0, 0, 1, 1],
                "leaf": [NAN, NAN, NAN, NAN, 3.0, 4.0],
            },
            "top middle",
            "",
            [Rule("leaf", "middle", "in", (1.0,)), Rule("middle", "top", "in", (1.0,))],
        ),
        # of parents asked for equally often categories and then names come first
        (
            {"n": [1, 2], "b": [0, 1], "a": [0, 1], "x": [NAN, 1.0]},
            "a b",
            "n",
            [Rule("x", "a", "in", (1.0,))],
        ),
    ],
)
def test_rules_by_hand(
    columns: Mapping[str, Any], categories: str, integers: str, expected: list[Rule]
) -> None:
    values = {name: np.array(column, dtype=float) for name, column in columns.items()}
    found = infer_rules(values, categories=categories.split(), integers=integers.split())
    assert found == expected


@pytest.mark.parametrize(
    ("make", "holds"),
    [
        (lambda c, p, _: EqualsCondition(c, p, 1), False),
        (lambda c, p, _: NotEqualsCondition(c, p, 1), True),
        (lambda c, p, _: InCondition(c, p, [0, 1]), False),
        (lambda c, p, _: InCondition(c, p, list(range(9))), False),  # more than are compared
        (lambda c, p, _: LessThanCondition(c, p, 9), False),
        (lambda c, p, _: GreaterThanCondition(c, p, 0), False),
        (
            lambda c, p, a: AndConjunction(
                NotEqualsCondition(c, p, 1), EqualsCondition(c, a, "off")
            ),
            True,
        ),
        (
            lambda c, p, a: AndConjunction(
                NotEqualsCondition(c, p, 1), EqualsCondition(c, a, "on")
            ),
            False,
        ),
        (
            lambda c, p, a: OrConjunction(
                EqualsCondition(c, a, "on"), NotEqualsCondition(c, p, 1)
            ),
            True,
        ),
    ],
)
def test_what_holds_of_an_inactive_parent_is_what_configspace_holds(
    make: Callable[..., Any], holds: bool
) -> None:
    space = ConfigurationSpace()
    a, p, x = Categorical("a", ["on", "off"]), Integer("p", (0, 9)), Float("x", (0.0, 1.0))
    space.add(a, p, x)
    space.add(EqualsCondition(p, a, "on"), make(x, p, a))
    found: list[dict[str, Any]] = [{"a": "off"}, {"a": "off", "x": 0.5}]
    right, wrong = found[holds], found[not holds]
    Configuration(space, right)
    with pytest.raises((ActiveHyperparameterNotSetError, InactiveHyperparameterSetError)):
        Configuration(space, wrong)
    assert is_active(space, "x", {"a": "off"}) is holds
    active = VectorSpace(space).activate(np.array([[1.0, 0.35, 0.5]]))  # a, p, x
    assert np.isnan(active).tolist() == [[False, True, not holds]]


RELATIONS: dict[Any, Callable[[Any, Any], bool]] = {
    ForbiddenLessThanClause: lambda v, limit: v < limit,
    ForbiddenLessThanEqualsClause: lambda v, limit: v <= limit,
    ForbiddenGreaterThanClause: lambda v, limit: v > limit,
    ForbiddenGreaterThanEqualsClause: lambda v, limit: v >= limit,
}


def sizes(*, high: bool = True) -> ConfigurationSpace:
    """Defaults at one end, since they must be allowed."""
    space = ConfigurationSpace()
    space.add(Integer("n", (1, 9), default=9 if high else 1))
    space.add(Float("x", (0.0, 1.0), default=1.0 if high else 0.0))
    space.add(OrdinalHyperparameter("size", [1, 2, 4, 8], default_value=4 if high else 1))
    return space


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize(("name", "limit"), [("n", 4), ("size", 2), ("x", 0.25)])
def test_vectors_are_allowed_if_their_values_are(
    relation: Any, name: str, limit: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    less = RELATIONS[relation](0, 1)
    space, free = sizes(high=less), VectorSpace(sizes())
    space.add(relation(space[name], limit))
    vectors = free.sample(300, np.random.default_rng(0))
    values = [space[name].to_value(v) for v in vectors[:, space.index_of[name]]]
    expected = [not RELATIONS[relation](value, limit) for value in values]
    assert True in expected and False in expected
    view = VectorSpace(space)
    capsys.readouterr()  # ConfigSpace has printed what it checked when the clause was added
    assert view.allowed(vectors).tolist() == expected
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("kind", [ForbiddenAndConjunction, ForbiddenOrConjunction])
def test_clauses_within_conjunctions(kind: Any) -> None:
    space, free = sizes(), VectorSpace(sizes())
    parts: list[ForbiddenLike] = [
        ForbiddenLessThanEqualsClause(space["n"], 4),
        ForbiddenEqualsClause(space["size"], 8),
    ]
    space.add(kind(*parts))
    vectors = free.sample(300, np.random.default_rng(0))
    combine = all if kind is ForbiddenAndConjunction else any
    expected = []
    for vector in vectors:
        n, size = (space[h].to_value(vector[space.index_of[h]]) for h in ("n", "size"))
        expected.append(not combine([n <= 4, size == 8]))
    assert VectorSpace(space).allowed(vectors).tolist() == expected
