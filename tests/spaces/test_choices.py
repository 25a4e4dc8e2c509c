"""Choices that ConfigSpace cannot tell apart."""

from __future__ import annotations

import copy
import json
import math
import pickle
from typing import Any

import numpy as np
import pytest
from ConfigSpace import Configuration, ConfigurationSpace, Float
from ConfigSpace.hyperparameters import CategoricalHyperparameter
from ConfigSpace.types import NotSet

from automl_plugins.spaces.choices import (
    DECODERS,
    ENCODERS,
    ExactCategorical,
    categorical,
    one_of,
    ordinal,
    usual_place,
)
from automl_plugins.spaces.conditions import is_active
from automl_plugins.spaces.values import are_identical, to_values, values_of
from automl_plugins.spaces.vector_space import VectorSpace

LISTS: list[list[Any]] = [
    [1, True],
    [1, 1.0, "1"],
    [math.nan, 1],
    [2**53 + 1, 0.5],
    ["a", "a\0"],
    [(1, 2), (True, 2)],
]
KEPT: list[list[Any]] = [["a", "b"], [None, 1], [1, "1"], [1.5, True], [(1, 2), None]]


def conditional(choices: list[Any], make: Any = categorical) -> ConfigurationSpace:
    """A child under the second choice."""
    space = ConfigurationSpace()
    parent, child = make("x", choices), Float("y", (0.0, 1.0))
    space.add(parent, child)
    space.add(one_of(child, parent, [choices[1]]))
    return space


@pytest.mark.parametrize("choices", KEPT, ids=str)
def test_ordinary_choices_are_those_of_configspace(choices: list[Any]) -> None:
    assert type(categorical("x", choices)) is CategoricalHyperparameter


@pytest.mark.parametrize(
    ("choices", "expected"),
    [
        ([3, 5, 7, None], 3),
        (["a", None, 5], 1),
        ([None, "balanced"], None),  # no numbers: nothing is known of words
        ([7, 3, 5, 9], 2),
        ([0.1, math.nan, "x", 1.0, 10.0], 3),
        ([5, -1, 3], 1),
        ([-1, 0, 1], 1),  # a correlation, say
        ([-2, 1, 5], 1),
        ([5, "x"], None),
        (["a", "b"], None),
        ([True, False], None),
    ],
)
def test_the_usual_choice_sets_no_limit_or_is_the_middle_number(
    choices: list[Any], expected: int | None
) -> None:
    assert usual_place(choices) == expected


@pytest.mark.parametrize("make", [categorical, ordinal])
@pytest.mark.parametrize("choices", LISTS, ids=str)
def test_each_choice_has_its_place(choices: list[Any], make: Any) -> None:
    found = make("x", choices)
    assert [found.to_vector(choice) for choice in choices] == [*range(len(choices))]
    assert all(found.legal_value(choice) for choice in choices)
    assert not found.legal_value("another") and not found.legal_value(False)
    assert found == make("x", choices) and found != make("x", choices[::-1])


@pytest.mark.parametrize("choices", LISTS, ids=str)
def test_conditions_tell_true_from_one(choices: list[Any]) -> None:
    space = conditional(choices)
    assert [is_active(space, "y", {"x": choice}) for choice in choices[:2]] == [False, True]
    vectors = VectorSpace(space)
    drawn = vectors.sample(50, np.random.default_rng(0))
    has_child = ~np.isnan(drawn[:, space.index_of["y"]])
    np.testing.assert_array_equal(has_child, drawn[:, space.index_of["x"]] == 1.0)
    for vector, values in zip(drawn, to_values(space, drawn), strict=True):
        choice = choices[int(vector[space.index_of["x"]])]
        assert are_identical(values["x"], choice)
        assert are_identical(values_of(Configuration(space, vector=vector))["x"], choice)


@pytest.mark.parametrize("make", [categorical, ordinal])
@pytest.mark.parametrize("choices", [*LISTS[:5], *KEPT[:4]], ids=str)
def test_spaces_are_written_copied_and_pickled(choices: list[Any], make: Any) -> None:
    space = conditional(choices, make)
    written = json.dumps(space.to_serialized_dict(ENCODERS))
    assert ConfigurationSpace.from_serialized_dict(json.loads(written), DECODERS) == space
    assert copy.deepcopy(space) == space and pickle.loads(pickle.dumps(space)) == space


@pytest.mark.parametrize("make", [categorical, ordinal])
@pytest.mark.parametrize("choices", LISTS[:5], ids=str)
def test_the_default_is_written(choices: list[Any], make: Any) -> None:
    space = ConfigurationSpace()
    space.add(make("x", choices, default=choices[-1]))
    written = json.loads(json.dumps(space.to_serialized_dict(ENCODERS)))
    read = ConfigurationSpace.from_serialized_dict(copy.deepcopy(written), DECODERS)
    assert are_identical(read["x"].default_value, choices[-1])
    # Older forms do not have it, and those that need none are as they were.
    del written["hyperparameters"][0]["default_value"]
    read = ConfigurationSpace.from_serialized_dict(copy.deepcopy(written), DECODERS)
    assert are_identical(read["x"].default_value, choices[0])
    assert read.to_serialized_dict(ENCODERS)["hyperparameters"] == written["hyperparameters"]


def test_the_default_of_weighted_choices_is_written() -> None:
    weights = [1.0, 2.0, 3.0]
    for default in (1, True, 0):
        space = ConfigurationSpace()
        space.add(categorical("x", [1, True, 0], weights=weights, default=default))
        written = space.to_serialized_dict(ENCODERS)
        read = ConfigurationSpace.from_serialized_dict(written, DECODERS)
        assert are_identical(read["x"].default_value, default)


def test_weights_belong_to_the_choices() -> None:
    found = categorical("x", [1, True, 0], weights=[0.0, 1.0, 0.0])
    assert isinstance(found, ExactCategorical) and found.default_value is True
    assert set(found.sample_vector(20, seed=np.random.RandomState(0))) == {1.0}


def test_conditions_on_equal_choices_are_two() -> None:
    """ConfigSpace joins the conditions of children that hang on the same value of a parent."""
    space = ConfigurationSpace()
    parent = categorical("parent", [1, True])
    below, beside = Float("below", (0, 1)), Float("beside", (0, 1))
    space.add(parent, below, beside)
    space.add(one_of(below, parent, [1]), one_of(beside, parent, [True]))
    first, second = (one_of(below, parent, [value]) for value in (1, True))
    assert first == one_of(below, parent, [1]) and first != second
    assert not first.equivalent_condition_on_parent(second)
    for value, child in ((1, "below"), (True, "beside")):
        assert set(Configuration(space, {"parent": value, child: 0.5})) == {"parent", child}


def test_below_an_inactive_choice_nothing_is_active() -> None:
    space = ConfigurationSpace()
    outer, inner = categorical("outer", ["a", "b"]), categorical("inner", [0, False, None])
    leaf = Float("leaf", (0, 1))
    space.add(outer, inner, leaf)
    space.add(one_of(inner, outer, ["b"]), one_of(leaf, inner, [False]))
    assert dict(Configuration(space, {"outer": "a"})) == {"outer": "a"}
    condition = one_of(leaf, inner, [False])
    assert not condition.satisfied_by_value({"inner": NotSet})
