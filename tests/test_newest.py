"""A value that is kept until it is asked for with another key."""

from __future__ import annotations

import pickle

from ConfigSpace import ConfigurationSpace
from proposing import LINE

from automl_plugins.newest import Newest
from automl_plugins.spaces.vector_space import VectorSpace


def test_the_newest_value_is_kept_for_its_key() -> None:
    kept: Newest[list[int]] = Newest()
    other = VectorSpace(ConfigurationSpace({"x": (0.0, 1.0)}))
    value, seconds = kept.timed((LINE, b"1"), lambda: [1])
    assert value == [1] and seconds is not None and seconds >= 0.0
    assert kept.timed((LINE, b"1"), list) == (value, None)
    assert kept.get((LINE, b"1"), list) is value
    for key in ((other, b"1"), (other, b"2")):
        assert kept.timed(key, lambda: [2])[1] is not None
    assert pickle.loads(pickle.dumps(kept)).get((other, b"2"), list) == []


def test_equal_spaces_are_two() -> None:
    kept: Newest[list[int]] = Newest()
    one, two = (VectorSpace(ConfigurationSpace({"x": (0.0, 1.0)})) for _ in range(2))
    value = kept.get(one, list)
    assert kept.get(one, list) is value
    assert kept.get(two, list) is not value


def test_a_copy_begins_with_the_value_and_goes_its_own_way() -> None:
    kept: Newest[list[int]] = Newest()
    value = kept.get(1, list)
    copy = kept.copy()
    assert copy.get(1, list) is value
    copy.get(2, list)
    assert kept.get(1, list) is value
