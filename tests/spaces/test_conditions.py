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


def rules(columns: Mapping[str, Any], categories: str = "", integers: str = "") -> list[Rule]:
    values = {name: np.array(column, dtype=float) for name, column in columns.items()}
    return infer_rules(values, categories=categories.split(), integers=integers.split())


def test_a_category_that_separates_is_the_condition() -> None:
    columns = {"kind": [0, 1, 2, 0, 2], "x": [NAN, 0.5, 0.1, NAN, 0.2]}
    assert rules(columns, "kind") == [Rule("x", "kind", "in", (1.0, 2.0))]


def test_an_integer_that_separates_is_a_threshold() -> None:
    columns = {"layers": [1, 2, 3, 4], "width": [NAN, NAN, 8, 9], "skip": [0, 1, NAN, NAN]}
    assert rules(columns, integers="layers") == [
        Rule("skip", "layers", "below", (3.0,)),
        Rule("width", "layers", "above", (2.0,)),
    ]


def test_a_parameter_that_is_always_or_never_there_has_no_condition() -> None:
    assert rules({"kind": [0, 1], "x": [1.0, 2.0], "y": [NAN, NAN]}, "kind") == []


@pytest.mark.parametrize(
    ("kind", "x"),
    [
        ([0, 0, 1], [NAN, 1.0, 2.0]),  # one exception
        ([NAN, 0, 1], [1.0, NAN, 2.0]),  # the parent is missing where the child is there
    ],
)
def test_an_exception_refutes_a_condition(kind: list[float], x: list[float]) -> None:
    assert rules({"kind": kind, "x": x}, "kind") == []


def test_integers_that_overlap_do_not_separate() -> None:
    assert rules({"n": [1, 2, 3], "x": [NAN, 1.0, NAN]}, integers="n") == []


def test_real_numbers_are_no_parents() -> None:
    assert rules({"r": [0.1, 0.9], "x": [NAN, 1.0]}) == []


def test_the_parent_asked_for_least_often_is_the_nearest() -> None:
    columns = {
        "top": [0, 0, 1, 1, 1, 1],
        "middle": [NAN, NAN, 0, 0, 1, 1],
        "leaf": [NAN, NAN, NAN, NAN, 3.0, 4.0],
    }
    assert rules(columns, "top middle") == [
        Rule("leaf", "middle", "in", (1.0,)),
        Rule("middle", "top", "in", (1.0,)),
    ]


def test_of_parents_asked_for_equally_often_categories_and_then_names_come_first() -> None:
    columns = {"n": [1, 2], "b": [0, 1], "a": [0, 1], "x": [NAN, 1.0]}
    assert rules(columns, "a b", "n") == [Rule("x", "a", "in", (1.0,))]
    assert rules(columns, "b", "n a")[0].parent == "b"


def test_the_order_of_rows_does_not_matter() -> None:
    rng = np.random.default_rng(0)
    kind = rng.integers(0, 4, 50).astype(float)
    x = np.where(kind > 1, rng.random(50), NAN)
    order = rng.permutation(50)
    whole = infer_rules({"kind": kind, "x": x}, categories=["kind"], integers=[])
    assert whole == [Rule("x", "kind", "in", (2.0, 3.0))]
    shuffled = {"x": x[order], "kind": kind[order]}
    assert infer_rules(shuffled, categories=["kind"], integers=[]) == whole


# --- checked --------------------------------------------------------------------------------


def flat_space() -> ConfigurationSpace:
    """A child for every kind of condition, named after it."""
    space = ConfigurationSpace()
    kind, n = Categorical("kind", ["a", "b", "c"]), Integer("n", (1, 9), default=5)
    child = {
        name: Float(name, (0.0, 1.0))
        for name in ("eq", "ne", "among", "above", "below", "both", "either")
    }
    space.add(kind, n, *child.values())
    space.add(
        EqualsCondition(child["eq"], kind, "a"),
        NotEqualsCondition(child["ne"], kind, "a"),
        InCondition(child["among"], kind, ["a", "c"]),
        GreaterThanCondition(child["above"], n, 4),
        LessThanCondition(child["below"], n, 4),
        AndConjunction(
            EqualsCondition(child["both"], kind, "a"), GreaterThanCondition(child["both"], n, 4)
        ),
        OrConjunction(
            EqualsCondition(child["either"], kind, "a"),
            GreaterThanCondition(child["either"], n, 4),
        ),
    )
    return space


def chain(kind: str = "b", last: Any = NotEqualsCondition) -> ConfigurationSpace:
    """kind = b -> inner -> grand, which is there unless inner is p."""
    space = ConfigurationSpace()
    top, inner = Categorical("kind", ["a", "b"], default=kind), Categorical("inner", ["p", "q"])
    grand = Float("grand", (0.0, 1.0))
    space.add(top, inner, grand)
    space.add(EqualsCondition(inner, top, "b"), last(grand, inner, "p"))
    return space


@pytest.mark.parametrize(
    ("values", "active"),
    [
        ({"kind": "a", "n": 4}, "eq among either"),
        ({"kind": "a", "n": 5}, "eq among above both either"),
        ({"kind": "a", "n": 3}, "eq among below either"),
        ({"kind": "b", "n": 3}, "ne below"),
        ({"kind": "b", "n": 4}, "ne"),
        ({"kind": "c", "n": 9}, "ne among above either"),
    ],
)
def test_conditions_hold_as_their_names_say(values: dict[str, Any], active: str) -> None:
    space = flat_space()
    assert {name for name in space if is_active(space, name, values)} == {
        *("kind", "n"),
        *active.split(),
    }


def test_conditions_reach_through_their_parents() -> None:
    space = chain()
    assert is_active(space, "grand", {"kind": "b", "inner": "q"})
    assert not is_active(space, "grand", {"kind": "b", "inner": "p"})


def test_an_inactive_parent_satisfies_nothing() -> None:
    # Not even "inner is not p".
    assert not is_active(chain(), "grand", {"kind": "a"})


def test_what_configspace_samples_is_active() -> None:
    for space in (chain("a", EqualsCondition), chain("b", EqualsCondition)):
        space.seed(3)
        for configuration in space.sample_configuration(100):
            values = dict(configuration)
            assert {name for name in space if is_active(space, name, values)} == set(values)


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


def test_samples_and_neighbours_obey() -> None:
    space = sizes()
    space.add(ForbiddenLessThanEqualsClause(space["n"], 4))
    vectors = VectorSpace(space).sample(100, np.random.default_rng(0))
    numbers = {int(space["n"].to_value(v)) for v in vectors[:, space.index_of["n"]]}
    assert numbers == {5, 6, 7, 8, 9}
