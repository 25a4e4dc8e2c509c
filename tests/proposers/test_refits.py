"""What is kept of models between proposals."""

from __future__ import annotations

import pickle

from ConfigSpace import ConfigurationSpace
from proposing import LINE

from automl_plugins.proposers.refits import Newest, total_seconds
from automl_plugins.spaces.vector_space import VectorSpace


def test_the_newest_value_is_kept_for_a_space_and_a_key() -> None:
    kept: Newest[list[int]] = Newest()
    other = VectorSpace(ConfigurationSpace({"x": (0.0, 1.0)}))
    value, seconds = kept.get(LINE, b"1", lambda: [1])
    assert value == [1] and seconds is not None and seconds >= 0.0
    assert kept.get(LINE, b"1", list) == (value, None)
    for space, key in ((other, b"1"), (other, b"2")):
        assert kept.get(space, key, lambda: [2])[1] is not None
    assert pickle.loads(pickle.dumps(kept)).get(other, b"2", list)[0] == []


def test_unknown_seconds_are_left_out_of_a_sum() -> None:
    assert total_seconds(1.0, None, 2.0) == 3.0 and total_seconds(0.0) == 0.0
    assert total_seconds(None, None) is None
