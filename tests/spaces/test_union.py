"""The union of search spaces."""

from __future__ import annotations

import pytest
from ConfigSpace import (
    Categorical,
    ConfigurationSpace,
    EqualsCondition,
    Float,
    ForbiddenAndConjunction,
    ForbiddenEqualsClause,
    Integer,
    NotEqualsCondition,
)
from ConfigSpace.hyperparameters import Constant, OrdinalHyperparameter
from proposing import conditional

from automl_plugins.spaces.union import unite
from automl_plugins.spaces.values import choices_of


def union(*spaces: ConfigurationSpace) -> ConfigurationSpace:
    return unite(spaces)


def test_the_union_has_the_widest_ranges() -> None:
    a = ConfigurationSpace({"x": (0.0, 1.0), "n": (1, 5), "k": ["a", "b"]})
    b = ConfigurationSpace({"x": (0.5, 3.0), "n": (2, 9), "k": ["b", "c"], "y": (0.0, 1.0)})
    found = union(a, b)
    assert found["x"] == Float("x", (0.0, 3.0))
    assert found["n"] == Integer("n", (1, 9))
    assert found["k"] == Categorical("k", ["a", "b", "c"]) and "y" in found
    assert union(a, a) is a
    steps, fixed = ConfigurationSpace(), ConfigurationSpace()
    steps.add(OrdinalHyperparameter("x", [1, 3, 5, 7]))
    fixed.add(Constant("x", 12))
    assert union(steps, fixed, ConfigurationSpace({"x": (2, 9)}))["x"] == Integer("x", (1, 12))
    lone, whole = ConfigurationSpace(), ConfigurationSpace()
    lone.add(Constant("x", 5), Constant("n", 0.5))
    whole.add(OrdinalHyperparameter("x", [5]), OrdinalHyperparameter("n", [0.5]))
    found = union(lone, whole)
    assert (found["x"], found["n"]) == (Constant("x", 5), Constant("n", 0.5))
    logarithmic, zero = ConfigurationSpace(), ConfigurationSpace()
    logarithmic.add(Float("x", (1e-3, 1.0), log=True), Integer("n", (1, 9), log=True))
    zero.add(Constant("x", 0.0), Constant("n", 0))
    found = union(logarithmic, zero)
    assert (found["x"], found["n"]) == (Float("x", (0.0, 1.0)), Integer("n", (0, 9)))
    # A single end that is no integer makes all of them floats.
    halves = ConfigurationSpace({"x": (0.5, 2.5)})
    assert union(ConfigurationSpace({"x": (1, 4)}), halves)["x"] == Float("x", (0.5, 4.0))
    with pytest.raises(ValueError, match="x is a number in one recorded space and a category"):
        union(a, ConfigurationSpace({"x": ["p", "q"]}))


def test_a_truth_value_is_no_number_in_the_union() -> None:
    numbers, words = ConfigurationSpace({"k": [1, 0]}), ConfigurationSpace({"k": [True, False]})
    for space in (numbers, words):
        first = 1 if space is numbers else True
        space.add(child := Float("x", (0.0, 1.0)), EqualsCondition(child, space["k"], first))
    found = union(numbers, words)
    assert repr(choices_of(found["k"])) == "[1, 0, True, False]"
    assert not found.parents_of["x"]  # it is active with True here, with 1 there
    # The same values in another order, or of another type, are no others.
    again = ConfigurationSpace()
    again.add(Categorical("k", [0, 1], default=1))
    again.add(child := Float("x", (0.0, 1.0)), EqualsCondition(child, again["k"], 1))
    assert union(numbers, again) is numbers


def test_conditions_hold_where_all_agree() -> None:
    a, b = conditional("x", "y"), conditional("x", "z")
    for space in (a, b):
        space.add(ForbiddenEqualsClause(space["k"], "b"))
    found = union(a, b)
    assert {n for n in found if found.parents_of[n]} == {"x", "y", "z"}
    assert len(found.forbidden_clauses) == 1
    found = union(a, conditional("x", when="b"))
    assert {n for n in found if found.parents_of[n]} == {"y"}
    assert not found.forbidden_clauses


def test_the_defaults_of_the_union_are_allowed() -> None:
    a, b = ConfigurationSpace({"x": (0, 12)}), ConfigurationSpace({"x": (0, 20), "z": (0.0, 1.0)})
    a.add(Categorical("p", ["l1", "l2"], default="l2"), Categorical("s", ["lbfgs", "saga"]))
    b["x"].default_value = 3
    b.add(Categorical("p", ["l1", "none"], default="none"), Categorical("s", ["lbfgs", "saga"]))
    for space in (a, b):
        p, s = ForbiddenEqualsClause(space["p"], "l1"), ForbiddenEqualsClause(space["s"], "lbfgs")
        space.add(ForbiddenAndConjunction(p, s), ForbiddenEqualsClause(space["x"], 10))
    found = union(a, b)
    assert dict(found.get_default_configuration()) == {"x": 6, "z": 0.5, "p": "l2", "s": "lbfgs"}
    assert len(found.forbidden_clauses) == 2

    # ConfigSpace refuses a "not equal" whose parent is inactive where all have their defaults.
    c, d = (ConfigurationSpace({"p": (1, 4), "x": (0.0, 1.0)}) for _ in range(2))
    for space, choices in ((c, ["a", "b"]), (d, ["a", "b", "c"])):
        space.add(kind := Categorical("k", choices, default="b"))
        space.add(EqualsCondition(space["p"], kind, "b"))
        space.add(NotEqualsCondition(space["x"], space["p"], 1))
    assert union(c, d).get_default_configuration()["k"] == "b"


def test_defaults_of_any_of_the_spaces_may_be_those_of_the_union() -> None:
    """Where a parameter is inactive by default, its own default may be forbidden."""

    def needing(kind: str, default: str) -> ConfigurationSpace:
        space = ConfigurationSpace({"k": ["a", "b", "c"]})
        space.add(x := Categorical("x", ["p", "q"], default=default))
        space.add(EqualsCondition(x, space["k"], kind), ForbiddenEqualsClause(x, "p"))
        return space

    assert union(needing("b", "p"), needing("c", "q"))["x"].default_value == "q"
    with pytest.raises(ValueError, match="Pass the space"):
        union(needing("b", "p"), needing("c", "p"))
