"""Proposers that wrap another one: suggestions of a memory come first, a fallback comes last."""

from __future__ import annotations

import logging
import pickle
from typing import Any

import numpy as np
import pytest
from ConfigSpace import ConfigurationSpace, EqualsCondition

from automl_plugins.arrays import FloatArray
from automl_plugins.meta import MetaDataset, TaskRecord, diverse
from automl_plugins.meta.coverage import MemoryMismatch
from automl_plugins.meta.memories import TaskMemory
from automl_plugins.meta.recognition import RecognisedMemory
from automl_plugins.meta.transfer import BlendedTemplate
from automl_plugins.proposers.proposal import Proposal, SurrogateFailure
from automl_plugins.proposers.with_memory import SuggestedStart, WithFallback, check_fits
from automl_plugins.records.history import History
from automl_plugins.records.trial import Status
from automl_plugins.spaces.vector_space import VectorSpace
from automl_plugins.streams import Streams

SPACE = ConfigurationSpace({"x": (0.0, 1.0), "c": ["a", "b"]})
VECTORS = VectorSpace(SPACE)
NOTHING = History.of(np.empty((0, 2)), [])


def a_memory() -> TaskMemory:
    points = [(x / 10, c) for x in range(11) for c in "ab"]
    records = []
    for t, best in enumerate((0.1, 0.5, 0.9)):
        losses = np.array([(x - best) ** 2 + (c == "a") for x, c in points])
        values: list[dict[str, Any]] = [{"x": x, "c": c} for x, c in points]
        records.append(TaskRecord(f"task{t}", values, losses, space=SPACE))
    return TaskMemory(MetaDataset.from_records(records))


class Afterwards:
    """Always proposes the same configuration."""

    def propose(self, *args: Any, **kwargs: Any) -> Proposal:
        return Proposal(np.array([0.123, 0.0]), "model")


class Failing(Afterwards):
    """Raises the errors in turn."""

    def __init__(self, *errors: Exception) -> None:
        self.errors = list(errors)

    def propose(self, *args: Any, **kwargs: Any) -> Proposal:
        raise self.errors.pop(0)


def start(n_suggested: Any = 3) -> SuggestedStart:
    return SuggestedStart(a_memory(), Afterwards(), n_suggested=n_suggested)


SUGGESTED = np.array([s.vector for s in diverse(SPACE, a_memory().on(VECTORS), None, 3)])


def run(proposer: SuggestedStart, n: int) -> FloatArray:
    found: list[FloatArray] = []
    for k in range(n):
        history = History.of(np.array(found).reshape(k, 2), np.arange(k, dtype=float))
        found.append(proposer.propose(VECTORS, history, Streams(0), k).vector)
    return np.array(found)


def test_the_suggestions_come_first_and_once() -> None:
    found = run(start(), 4)
    np.testing.assert_array_equal(found[:3], SUGGESTED)
    assert found[3, 0] == run(start(0), 1)[0, 0] == 0.123
    np.testing.assert_array_equal(run(pickle.loads(pickle.dumps(start())), 4), found)


def test_running_or_known_configurations_are_not_suggested_again() -> None:
    history = History.of(SUGGESTED[:2], [np.nan] * 2, status=[Status.FAILED, Status.RUNNING])
    proposal = start().propose(VECTORS, history, Streams(0), 2)
    np.testing.assert_array_equal(proposal.vector, SUGGESTED[2])
    assert proposal.shares == {"meta-learner": 1.0}
    foreign = History.of(np.array([[0.77, 0.0], [0.78, 0.0]]), [1.0, 2.0])
    found = start().propose(VECTORS, foreign, Streams(0), 2).vector
    np.testing.assert_array_equal(found, SUGGESTED[0])


def test_shares_name_the_bundled_memory() -> None:
    """The one that was named, or recognised; of a learner's two the classifications'."""
    space = VectorSpace(ConfigurationSpace({"num_leaves": (4, 64), "learning_rate": (0.01, 0.3)}))
    for memory, learner in (
        (TaskMemory("lightgbm_regression"), "lightgbm_regression"),
        (RecognisedMemory(), "lightgbm"),
    ):
        expected = {f"meta-learner of {learner}": 1.0}
        proposer = SuggestedStart(memory, Afterwards(), n_suggested=2)
        assert proposer.propose(space, NOTHING, Streams(0), 0).shares == expected
        again = pickle.loads(pickle.dumps(memory))
        model = BlendedTemplate(again).for_space(space).fit(np.empty((0, 2)), np.empty(0))
        assert model.shares_ == expected


def test_decided_values_are_respected() -> None:
    fixed = np.array([np.nan, SUGGESTED[0, 1]])
    assert start().propose(VECTORS, NOTHING, Streams(0), 0, fixed).vector[1] == SUGGESTED[0, 1]
    chosen = start().propose(VECTORS, NOTHING, Streams(0), 0, np.array([0.333, np.nan]))
    assert chosen.vector[0] == 0.123  # from the other proposer


def test_what_the_memory_does_not_know_may_have_been_decided() -> None:
    """A memory of one algorithm, in the arms of a search among two."""
    only_x = ConfigurationSpace({"x": (0.0, 1.0)})
    losses = [(np.arange(11) / 10 - best) ** 2 for best in (0.1, 0.5, 0.9)]
    memory = TaskMemory(
        [
            TaskRecord(f"t{i}", [{"x": x / 10} for x in range(11)], column, space=only_x)
            for i, column in enumerate(losses)
        ]
    )
    proposer = SuggestedStart(memory, Afterwards(), n_suggested=3)
    free = proposer.propose(VECTORS, NOTHING, Streams(0), 0).vector
    x, c = SPACE.index_of["x"], SPACE.index_of["c"]
    assert free[c] == 0.0  # its default
    fixed = np.full(2, np.nan)
    fixed[c] = 1.0
    found = proposer.propose(VECTORS, NOTHING, Streams(0), 0, fixed)
    assert found.vector[c] == 1.0 and found.vector[x] == free[x]
    assert found.shares == {"meta-learner": 1.0}
    # Evaluated with the other option, it is not suggested again.
    used = History.of(free[None], [1.0])
    assert proposer.propose(VECTORS, used, Streams(0), 1, fixed).vector[x] != free[x]
    # Nor is it where nothing is decided, as after the first trial of an objective that asks for c.
    other = History.of(found.vector[None], [1.0])
    assert proposer.propose(VECTORS, other, Streams(0), 1).vector[x] != free[x]
    # Where x belongs to one of the options, the other has nothing to suggest.
    branches = ConfigurationSpace({"x": (0.0, 1.0), "c": ["a", "b"]})
    branches.add(EqualsCondition(branches["x"], branches["c"], "b"))
    vectors = VectorSpace(branches)
    nothing = History.of(np.empty((0, 2)), [])
    for option, shares in ((1.0, {"meta-learner": 1.0}), (0.0, {})):
        decided = np.full(2, np.nan)
        decided[branches.index_of["c"]] = option
        assert proposer.propose(vectors, nothing, Streams(0), 0, decided).shares == shares


def test_a_suggestion_is_known_again_once_its_switch_has_more_below_it() -> None:
    """In Optuna a hyperparameter may be discovered by a trial that chose its branch."""
    wider = ConfigurationSpace(
        {"x": (0.0, 1.0), "c": ["a", "b"], "m": ["p", "q"], "qq": (0.0, 1.0)}
    )
    wider.add(EqualsCondition(wider["qq"], wider["m"], "q"))
    vectors = VectorSpace(wider)
    proposer = SuggestedStart(a_memory(), Afterwards(), n_suggested=3)
    nothing = History.of(np.empty((0, 4)), [])
    first, second = (
        proposer.propose(vectors, history, Streams(0), k).vector
        for k, history in enumerate([nothing, History.of(np.full((1, 4), 0.99), [1.0])])
    )
    np.testing.assert_array_equal(first, second)  # nothing of it was evaluated
    evaluated = first.copy()
    evaluated[wider.index_of["m"]], evaluated[wider.index_of["qq"]] = 1.0, 0.5
    third = proposer.propose(vectors, History.of(evaluated[None], [1.0]), Streams(0), 1).vector
    assert third[wider.index_of["x"]] != first[wider.index_of["x"]]


def test_what_the_memory_does_not_know_is_spread() -> None:
    wider = ConfigurationSpace({"x": (0.0, 1.0), "c": ["a", "b"], "z": (0.0, 1.0)})
    vectors, z, n = VectorSpace(wider), wider.index_of["z"], 8
    proposer = SuggestedStart(a_memory(), Afterwards(), n_suggested=n)
    found: list[FloatArray] = []
    for k in range(n):
        # As it was evaluated elsewhere, with another value of what is not known.
        history = History.of(np.array(found).reshape(k, 3), np.arange(k, dtype=float))
        history.vectors[:, z] = 0.9
        found.append(proposer.propose(vectors, history, Streams(0), k).vector)
    assert [vector[z] for vector in found] == [0.5] * 5 + [0.75, 0.25, 0.375]
    known = np.array([s.vector for s in diverse(SPACE, a_memory().on(VECTORS), None, n)])
    np.testing.assert_array_equal(np.delete(found, z, axis=1), known)
    decided = np.full(3, np.nan)
    decided[z] = 0.6
    first = History.of(np.array(found[:5]), np.arange(5.0))
    sixth = proposer.propose(vectors, first, Streams(0), 5, decided).vector
    np.testing.assert_array_equal(sixth, np.where(decided == 0.6, 0.6, found[5]))


@pytest.mark.parametrize(
    ("wrong", "error"), [(-1, ValueError), (1.5, TypeError), (True, TypeError)]
)
def test_invalid_numbers_of_suggestions_are_refused(wrong: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="n_suggested must be an integer >= 0"):
        start(wrong)


def test_each_kind_of_trouble_is_warned_of_once(caplog: pytest.LogCaptureFixture) -> None:
    failure, mismatch = SurrogateFailure("A model failed."), MemoryMismatch("Nothing fits.")
    mismatch.final = True
    failing = Failing(failure, failure, mismatch, mismatch, failure)
    proposer = WithFallback(failing, Afterwards(), memory=a_memory())
    with caplog.at_level(logging.WARNING):
        for k in range(5):
            assert proposer.propose(VECTORS, NOTHING, Streams(0), k).vector[0] == 0.123
    found = [message.partition(". ")[0] for message in caplog.messages]
    assert found == ["A model failed", "Nothing fits"]


def test_a_memory_is_told_once_the_space_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    memory, told = a_memory(), list[VectorSpace]()
    monkeypatch.setattr(memory, "settle", told.append)
    proposer = WithFallback(Afterwards(), Afterwards(), memory=memory)
    rows = np.array([[0.0, 0.5], [1.0, 0.5]])
    one, both = History.of(rows[:1], [1.0]), History.of(rows, [1.0, 2.0])
    failed = History.of(rows, [np.nan] * 2, status=[Status.FAILED] * 2)
    for history in (NOTHING, one, failed):
        proposer.propose(VECTORS, history, Streams(0), len(history.vectors))
    assert not told
    proposer.propose(VECTORS, both, Streams(0), 2)
    assert told == [VECTORS]
    check_fits(memory, VECTORS)
    assert told == [VECTORS] * 2
    check_fits(RecognisedMemory(), VECTORS)  # which has nothing to say then
