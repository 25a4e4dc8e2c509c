"""One table for the question whether a recorded value is a choice, and properties of the rule."""

import json
import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from ConfigSpace import Categorical, ConfigurationSpace, Constant, Float, OrdinalHyperparameter
from hypothesis import given, settings
from hypothesis import strategies as st

from automl_plugins.spaces.choices import categorical
from automl_plugins.spaces.ranges import stepped_range
from automl_plugins.spaces.scales import Steps
from automl_plugins.spaces.values import ABSENT, find, is_same_space, reader, same, to_values

NAN = math.nan


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (1, 1.0),
        (1, np.int64(1)),
        (True, np.bool_(True)),
        (0.1, np.float32(0.1)),
        (0.1, np.array(0.1)),
        ("a", np.str_("a")),
        (None, None),
        (NAN, np.float32(NAN)),
        (NAN, pd.NA),
        ((1, 2), [1, 2]),
        ((1, (2.0, None)), [1, [2, None]]),
        ((1, 2), np.array([1.0, 2.0])),
        ({"a": (1, NAN)}, {"a": [1.0, NAN]}),
        (2**70, 2**70),
        (int, int),
        ({1, 2}, {2, 1}),
    ],
)
def test_these_are_one_value(a: Any, b: Any) -> None:
    assert same(a, b) and same(b, a)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (1, True),
        (0.0, False),
        (1, "1"),
        (True, "True"),
        (None, NAN),
        (None, "None"),
        (None, False),
        (NAN, "nan"),
        (2**53 + 1, float(2**53)),
        ((1, 2), [1, 2, 3]),
        ((1,), [True]),
        ({"a": 1}, {"a": True}),
        ({"a": 1}, {"b": 1}),
        ([], {}),
        ([], None),
        (int, "int"),
        (b"a", "a"),
    ],
)
def test_these_are_two_values(a: Any, b: Any) -> None:
    assert not same(a, b) and not same(b, a)


class _Odd:
    def __eq__(self, other: object) -> bool:
        raise RuntimeError("not comparable")

    __hash__ = None  # type: ignore[assignment]


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ("xyz", "xyz", True),
        ("xyz", "xzy", False),
        ([1, 0], [True, False], False),
        ([100, 200], [100.0, 200.0], False),
        ([math.nan, "x"], [math.nan, "x"], True),
        ([(1, 2), None], [(1, 2), None], True),
    ],
)
def test_spaces_are_one_if_their_vectors_are(a: Any, b: Any, expected: bool) -> None:
    one, other = ConfigurationSpace(), ConfigurationSpace()
    one.add(categorical("k", list(a), default=a[0]))
    other.add(categorical("k", list(b), default=a[0]))
    assert is_same_space(one, other) == is_same_space(other, one) == expected
    assert is_same_space(one, one)


def test_what_cannot_be_compared_is_only_itself() -> None:
    one = _Odd()
    assert same(one, one) and not same(one, _Odd())
    assert find([_Odd(), one], one) == 1 and find([one], _Odd()) is None


# choices, recorded value, index of the choice
TABLE: list[tuple[list[Any], Any, int | None]] = [
    # numbers of any type, by value
    ([1, 2], 1.0, 0),
    ([1.0, 2.0], np.int64(2), 1),
    ([1, 2], 1.5, None),
    ([0.1, 0.5], np.float32(0.1), 0),
    ([2**53 + 1, 0.5], 2**53 + 1, 0),
    ([2**53 + 1, 0.5], float(2**53), None),
    # truth values are not numbers
    ([1, 2], True, None),
    ([True, False], 1, None),
    ([True, False], np.bool_(False), 1),
    ([1.5, True], 1.0, None),
    ([0, False], False, 1),
    # equal values of different types stay apart
    ([1, True, 1.0], 1, 0),
    ([1, True, 1.0], True, 1),
    ([1, True, 1.0], 1.0, 2),
    ([1, True], 1.0, 0),
    (["1", 1], "1", 0),
    (["1", 1], 1, 1),
    ([[1, 2], (1, 2)], (1, 2), 1),
    ([[1, 2], [1.0, 2.0]], [1.0, 2.0], 1),
    # None and NaN
    ([None, 1], None, 0),
    ([None, 1], NAN, None),
    ([NAN, 1], NAN, 0),
    ([NAN, 1], None, None),
    ([None, NAN], np.float64(NAN), 1),
    # lists stand for tuples, also within mappings: JSON has no tuples
    ([(64, 32), (64,)], [64], 1),
    ([{"layers": (64, 32)}, None], {"layers": [64, 32]}, 0),
    # texts of values, where no choice is a text
    ([True, False], "true", 0),
    ([True, False], "False", 1),
    (["auto", True], "true", None),
    (["auto", True], "True", None),
    ([1, 10], "10", 1),
    ([1, 10], "1.0", 0),
    ([1, True], "1", 0),
    ([1, 1.0], "1.0", 1),
    ([0.001, 0.01], "1e-2", 1),
    (["sqrt", 0.5], "0.5", None),
    ([(1, 2), (1,)], "(1,)", 1),
    ([(1, 2), (1,)], "[1, 2]", 0),
    ([(1, 2), (1,)], "(1, 2", None),
    ([1, 10], "ten", None),
    ([1, 10], "", None),
    # None is "None" in every file, beside other texts too
    (["sqrt", None], "None", 1),
    (["sqrt", None], "none", 1),
    (["none", None], "None", 0),
    # values among texts
    (["None", "balanced"], None, 0),
    (["none", "balanced"], "None", 0),
    (["True", "False"], False, 1),
    (["0.5", "sqrt"], 0.5, 0),
    (["1", "2"], 2.0, 1),
    (["1", "1.0"], 1.0, 1),
    (["True", "False"], 1, None),
    (["(1, 2)", "(1,)"], [1], 1),
    (["a", "A"], "A", 1),
    (["a"], "A", None),
    (["a", "b"], 3, None),
    ([], 3, None),
]


@pytest.mark.parametrize(("choices", "value", "index"), TABLE)
def test_the_table(choices: list[Any], value: Any, index: int | None) -> None:
    assert find(choices, value) == index


_ATOMS = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 3), st.floats(width=16), st.text("ab1.", max_size=3)
)
_CHOICES = st.lists(
    st.one_of(_ATOMS, st.tuples(_ATOMS, _ATOMS), st.sampled_from(["True", "None", "nan", "1"])),
    min_size=1,
    max_size=5,
)


@settings(max_examples=100, deadline=None)
@given(_CHOICES)
def test_every_choice_finds_itself_and_its_like(choices: list[Any]) -> None:
    for i, choice in enumerate(choices):
        found = find(choices, choice)
        assert found is not None and found <= i
        assert same(choices[found], choice) and type(choices[found]) is type(choice)
        numpy = np.array([None, choice], dtype=object)[1] if choice is None else choice
        if isinstance(choice, bool | int | float):
            numpy = np.array([choice])[0]
        assert find(choices, numpy) == found


@settings(max_examples=100, deadline=None)
@given(_CHOICES)
def test_json_keeps_what_a_value_stands_for(choices: list[Any]) -> None:
    for choice in choices:
        read = json.loads(json.dumps(choice))
        found = find(choices, read)
        assert found is not None and same(choices[found], choice)


def test_recorded_steps_are_read_as_numbers_of_their_kind() -> None:
    real = stepped_range("x", Steps(0.0, 0.25, 5, is_integer=False))
    whole = stepped_range("n", Steps(0, 5, 3))
    found = [reader(real)(value) for value in (0.75, 1, "0.25", 0.3)]
    assert found[:3] == [0.75, 1.0, 0.25] and found[3] is ABSENT
    assert [reader(whole)(value) for value in (5, 5.0)] == [5, 5]
    assert [type(reader(h)(1 if h is real else 5.0)) for h in (real, whole)] == [float, int]


def test_categories_of_vectors_are_the_choices_themselves() -> None:
    space = ConfigurationSpace()
    space.add(
        Categorical("c", [1.5, True, 2]),  # an array of these is of floats
        Categorical("t", [(1, 2), None]),
        OrdinalHyperparameter("o", [1, 2.5]),
        Constant("k", True),
        Float("x", (0.0, 1.0)),
    )
    vectors = np.array([{"c": 1, "t": 0, "o": 0, "k": 1, "x": 0.5}[n] for n in space.at], float)
    (values,) = to_values(space, vectors[None])
    assert values == {"c": True, "t": (1, 2), "o": 1, "k": True, "x": 0.5}
    assert [type(values[n]) for n in "ctokx"] == [bool, tuple, int, bool, float]
    vectors[space.index_of["x"]] = NAN
    assert "x" not in to_values(space, vectors[None])[0]
