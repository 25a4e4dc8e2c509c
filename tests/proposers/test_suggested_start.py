"""A search that begins with what a memory suggests."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from ConfigSpace import ConfigurationSpace

from automl_plugins.meta import MetaDataset, TaskRecord, diverse
from automl_plugins.meta.memories import TaskMemory
from automl_plugins.proposers.proposal import Proposal
from automl_plugins.proposers.suggested_start import SuggestedStart
from automl_plugins.records.history import History
from automl_plugins.records.trial import Status
from automl_plugins.spaces.vector_space import VectorSpace
from automl_plugins.streams import Streams

SPACE = ConfigurationSpace({"x": (0.0, 1.0), "c": ["a", "b"]})
VECTORS = VectorSpace(SPACE)
POINTS = [(x / 10, c) for x in range(11) for c in "ab"]
GRID: list[dict[str, Any]] = [{"x": x, "c": c} for x, c in POINTS]


def a_memory() -> TaskMemory:
    records = []
    for t, best in enumerate((0.1, 0.5, 0.9)):
        losses = np.array([(x - best) ** 2 + (c == "a") for x, c in POINTS])
        records.append(TaskRecord(f"task{t}", GRID, losses, space=SPACE))
    return TaskMemory(MetaDataset.from_records(records))


class Afterwards:
    """Proposes one and the same."""

    timed = False

    def propose(self, *args: Any, **kwargs: Any) -> Proposal:
        return Proposal(np.array([0.123, 0.0]), "model")


def suggestions(n: int) -> np.ndarray[Any, Any]:
    dataset = a_memory().on(VECTORS)
    return np.array([s.vector for s in diverse(SPACE, dataset, None, n)])


def run(start: SuggestedStart, n: int) -> np.ndarray[Any, Any]:
    found: list[np.ndarray[Any, Any]] = []
    for k in range(n):
        history = History.of(np.array(found).reshape(k, 2), np.arange(k, dtype=float))
        found.append(start.propose(VECTORS, history, Streams(0), k).vector)
    return np.array(found)


def test_the_suggestions_come_first_and_once() -> None:
    found = run(SuggestedStart(a_memory(), Afterwards(), n_suggested=3), 4)
    np.testing.assert_array_equal(found[:3], suggestions(3))
    assert found[3, 0] == 0.123
    assert run(SuggestedStart(a_memory(), Afterwards(), n_suggested=0), 1)[0, 0] == 0.123


def test_what_is_running_or_known_is_not_suggested_again() -> None:
    start = SuggestedStart(a_memory(), Afterwards(), n_suggested=3)
    expected = suggestions(3)
    status = [Status.FAILED, Status.RUNNING]
    history = History.of(expected[:2], [np.nan, np.nan], status=status)
    proposal = start.propose(VECTORS, history, Streams(0), 2)
    np.testing.assert_array_equal(proposal.vector, expected[2])
    assert proposal.shares == {"meta-learner": 1.0}
    foreign = History.of(np.array([[0.77, 0.0], [0.78, 0.0]]), [1.0, 2.0])
    np.testing.assert_array_equal(
        start.propose(VECTORS, foreign, Streams(0), 2).vector, expected[0]
    )


def test_decided_values_are_respected() -> None:
    start = SuggestedStart(a_memory(), Afterwards(), n_suggested=3)
    empty = History.of(np.empty((0, 2)), [])
    some = suggestions(3)
    fixed = np.array([np.nan, some[0, 1]])
    assert start.propose(VECTORS, empty, Streams(0), 0, fixed).vector[1] == some[0, 1]
    nothing_like_it = np.array([0.333, np.nan])
    chosen = start.propose(VECTORS, empty, Streams(0), 0, nothing_like_it)
    assert chosen.vector[0] == 0.123  # the other proposer's affair


def test_it_pickles_and_refuses_nonsense() -> None:
    start = SuggestedStart(a_memory(), Afterwards(), n_suggested=3)
    before = run(start, 3)
    np.testing.assert_array_equal(run(pickle.loads(pickle.dumps(start)), 3), before)
    for wrong in (-1, 1.5, True):
        with pytest.raises(ValueError, match="n_suggested"):
            SuggestedStart(a_memory(), Afterwards(), n_suggested=wrong)  # type: ignore[arg-type]
