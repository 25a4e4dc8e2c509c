"""Workers that ask at one moment: each number goes by the lower ones, published or not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from ConfigSpace import Categorical, ConfigurationSpace, EqualsCondition, Float, Integer

from automl_plugins.meta import MetaDataset, TaskRecord
from automl_plugins.meta.memories import TaskMemory
from automl_plugins.proposers.model_based import ModelBasedProposer, ProposerSettings
from automl_plugins.proposers.models import ModelSettings
from automl_plugins.proposers.pending import ask, foresee, taken
from automl_plugins.proposers.pipelines import PipelineProposer
from automl_plugins.proposers.proposal import Proposal, Proposer, SurrogateFailure
from automl_plugins.proposers.suggested_start import SuggestedStart
from automl_plugins.records.history import FloatArray, History
from automl_plugins.records.trial import Status
from automl_plugins.spaces.vector_space import VectorSpace
from automl_plugins.streams import Streams
from automl_plugins.surrogates import RandomForest

FOREST = ModelSettings(surrogate=RandomForest(n_trees=10))
WORKERS = 8
STREAMS = Streams(5)


def grid() -> VectorSpace:
    return VectorSpace(ConfigurationSpace({"a": (0, 6), "b": (0, 5)}))


def branches() -> VectorSpace:
    space = ConfigurationSpace()
    kind, x, n = Categorical("kind", ["a", "b"]), Float("x", (0, 1)), Integer("n", (1, 20))
    space.add([kind, x, n])
    space.add([EqualsCondition(x, kind, "a"), EqualsCondition(n, kind, "b")])
    return VectorSpace(space)


def forest(**settings: Any) -> ModelBasedProposer:
    return ModelBasedProposer(ProposerSettings(FOREST, **settings))


def losses(t: int, a: int, b: int) -> float:
    return float((a - t) ** 2 + b)


def memory() -> TaskMemory:
    space = grid().space
    values = [{"a": a, "b": b} for a in range(7) for b in range(6)]
    records = [
        TaskRecord(f"t{t}", values, np.array([losses(t, **v) for v in values]), space=space)
        for t in range(3)
    ]
    return TaskMemory(MetaDataset.from_records(records))


PROPOSERS: dict[str, Callable[[], Proposer]] = {
    "forest": forest,
    "drawn start": lambda: forest(uniform_start=True),
    "interleaved": lambda: forest(interleave=2),
    "balanced": lambda: forest(balance=2),
    "suggested": lambda: SuggestedStart(memory(), forest(), n_suggested=5),
    "factorisation": lambda: PipelineProposer(memory(), fallback=forest(), n_start=3),
}


def finished(space: VectorSpace, n: int) -> History:
    vectors = space.sample(400, np.random.default_rng(0))
    vectors = np.unique(vectors, axis=0)[:n] if n else vectors[:0]
    return History.of(vectors, ((np.nan_to_num(vectors) - 0.3) ** 2).sum(axis=1))


def with_running(history: History, rows: dict[int, FloatArray | None]) -> History:
    """The history with running rows by number; None has published nothing."""
    d = history.vectors.shape[1]
    vectors = [np.full(d, np.nan) if row is None else row for row in rows.values()]
    n, m = len(history), len(rows)
    return History.of(
        np.vstack([history.vectors, *vectors]),
        np.append(history.losses, np.full(m, np.nan)),
        number=[*history.number, *rows],
        status=[*history.status, *[Status.RUNNING] * m],
        missing=np.vstack([history.missing, *[np.isnan(v) for v in vectors]]) if n + m else None,
    )


def at_once(
    make: Callable[[], Proposer], space: VectorSpace, history: History
) -> list[FloatArray]:
    """What workers are given that all know of each other and have published nothing."""
    numbers = range(len(history), len(history) + WORKERS)
    return [
        ask(
            make(),
            space,
            with_running(history, {n: None for n in numbers if n != k}),
            STREAMS,
            k,
        ).vector
        for k in numbers
    ]


@pytest.mark.parametrize("n", [0, 10, 30])
@pytest.mark.parametrize("name", PROPOSERS)
def test_simultaneous_workers_differ_on_a_small_grid(name: str, n: int) -> None:
    space = grid()
    history = finished(space, n)
    found = at_once(PROPOSERS[name], space, history)
    keys = space.keys(np.vstack([history.vectors, *found]))
    assert len(set(keys.tolist())) == n + WORKERS


@pytest.mark.parametrize("n", [0, 20])
@pytest.mark.parametrize("name", ["forest", "balanced"])
def test_what_is_foreseen_is_what_the_others_get(name: str, n: int) -> None:
    space = branches()
    history = finished(space, n)
    one_by_one: dict[int, FloatArray | None] = {}
    for k in range(n, n + WORKERS):
        known = with_running(history, one_by_one)
        one_by_one[k] = ask(PROPOSERS[name](), space, known, STREAMS, k).vector
    np.testing.assert_array_equal(
        at_once(PROPOSERS[name], space, history), list(one_by_one.values())
    )


def test_branches_are_shared_out_among_workers_that_begin_together() -> None:
    space = branches()
    kinds = np.array(at_once(forest, space, finished(space, 0)))[:, space.names.index("kind")]
    # Both have one hyperparameter of as many bits: four each, give or take one
    assert 3 <= (kinds == 0).sum() <= 5


def test_higher_numbers_make_way_but_are_not_repeated() -> None:
    space, history = grid(), finished(grid(), 20)
    alone = forest().propose(space, history, STREAMS, 20).vector
    elsewhere = space.sample(1, np.random.default_rng(3))[0]
    assert not np.array_equal(elsewhere, alone)
    higher = with_running(history, {21: elsewhere, 22: None})
    np.testing.assert_array_equal(ask(forest(), space, higher, STREAMS, 20).vector, alone)
    taken = with_running(history, {21: alone})
    assert not np.array_equal(ask(forest(), space, taken, STREAMS, 20).vector, alone)


def test_what_is_published_is_not_asked_for_again() -> None:
    class Counting:
        timed = False

        def __init__(self) -> None:
            self.numbers: list[int] = []

        def propose(self, *args: Any) -> Proposal:
            self.numbers.append(args[3])
            if args[3] == 46:
                raise SurrogateFailure("nothing")
            return Proposal(np.full(2, 0.5), "model")

    space, published = grid(), np.array([0.25, 0.25])
    # 3 died long ago; 45 is half known; 47 is published; 49 comes later
    rows = {3: None, 44: None, 45: np.array([0.5, np.nan]), 46: None, 47: published, 49: None}
    history = with_running(finished(space, 0), rows)
    counting = Counting()
    seen = foresee(counting, space, history, STREAMS, 48)
    assert counting.numbers == [44, 46]
    by_number = dict(zip(seen.number.tolist(), seen.vectors, strict=True))
    np.testing.assert_array_equal(by_number[44], [0.5, 0.5])
    np.testing.assert_array_equal(by_number[47], published)
    for unknown in (3, 46, 49):
        assert np.isnan(by_number[unknown]).all()
    assert seen.missing[seen.number == 44].all()  # foreseen, but not asked for
    assert foresee(counting, space, replace(finished(space, 5)), STREAMS, 48).n_finished == 5
    assert counting.numbers == [44, 46]


def unknown_conditions() -> VectorSpace:
    """Only "a" has an x and only "b" an n, which no complete trial has shown yet."""
    return VectorSpace(
        ConfigurationSpace({"kind": ["a", "b"], "x": (0.0, 1.0), "n": (0, 3), "y": (0.0, 1.0)})
    )


def half_asked(numbers: list[int], first: int = 6) -> History:
    """Complete rows of "a" that asked for x, running ones of "b" that asked for n alone."""
    space = unknown_conditions()
    kind, x, n, y = (space.names.index(name) for name in ("kind", "x", "n", "y"))
    vectors = np.full((6 + len(numbers), 4), np.nan)
    vectors[:6, kind], vectors[:6, x] = 0.0, np.linspace(0.0, 1.0, 6)
    vectors[6:] = space.sample(len(numbers), np.random.default_rng(0))
    vectors[6:, kind] = 1.0
    missing = np.zeros(vectors.shape, dtype=bool)
    missing[6:, [x, y]] = True
    for i, value in enumerate(numbers):
        vectors[6 + i, n] = value / 3.0
    return History.of(
        vectors,
        np.append(np.linspace(0.0, 1.0, 6), np.full(len(numbers), np.nan)),
        number=[*range(6), *range(first, first + len(numbers))],
        status=[Status.COMPLETE] * 6 + [Status.RUNNING] * len(numbers),
        missing=missing,
    )


def test_what_takes_a_configuration_by_hand() -> None:
    space = unknown_conditions()
    kind, x, n, y = (space.names.index(name) for name in ("kind", "x", "n", "y"))
    history = half_asked([2])
    # The branch is known by what its row asked for
    own = np.full(4, np.nan)
    own[[kind, n]] = 1.0, 2.0 / 3.0
    np.testing.assert_array_equal(taken(space, history, 9), [own])
    # A complete row of the branch has asked for y: this one will
    row = np.full((1, 4), np.nan)
    row[0, [kind, n, y]] = 1.0, 0.0, 0.3
    shown = History.of(
        np.vstack([row, history.vectors]),
        np.append(0.5, history.losses),
        status=np.append(Status.COMPLETE, history.status),
        missing=np.vstack([np.isnan(row), history.missing]),
    )
    own[y] = history.vectors[6, y]
    np.testing.assert_array_equal(taken(space, shown, 9), [own])
    # Nothing is asked for yet: what some row has asked for counts
    foretold = replace(history, missing=history.missing | (history.status == 3)[:, None])
    own[[n, y]], own[x] = np.nan, history.vectors[6, x]
    np.testing.assert_array_equal(taken(space, foretold, 9), [own])
    # Categories alone say too little, a worker of long ago is dead, all asked for needs no rule
    first = replace(foretold, status=np.full(7, Status.RUNNING), missing=np.full((7, 4), True))
    assert len(taken(space, first, 9)) == 0
    assert len(taken(space, history, 6 + 32)) == 1
    assert len(taken(space, history, 6 + 33)) == 0
    assert len(taken(space, replace(history, missing=np.full((7, 4), False)), 9)) == 0


@pytest.mark.parametrize(
    "settings", [{}, {"n_startup": 20}, {"n_startup": 3, "uniform_start": True}]
)
def test_proposals_that_differ_in_what_nobody_asks_for_are_copies(settings: Any) -> None:
    space = unknown_conditions()
    fixed = np.full(4, np.nan)
    fixed[space.names.index("kind")] = 1.0
    column = space.names.index("n")
    for left in range(4):
        history = half_asked([n for n in range(4) if n != left])
        proposal = ask(forest(**settings), space, history, STREAMS, 9, fixed)
        assert proposal.vector[column] == pytest.approx(left / 3.0)
    # None is left: a copy is better than none
    proposal = ask(forest(**settings), space, half_asked([0, 1, 2, 3]), STREAMS, 10, fixed)
    assert space.agrees(proposal.vector[None], fixed)[0]


@pytest.mark.parametrize("name", ["suggested", "factorisation"])
def test_suggestions_that_differ_in_what_nobody_asks_for_are_copies(name: str) -> None:
    # Earlier tasks know a and b. Here a complete row has asked for b alone, and so does another.
    space = grid()
    history = with_running(finished(space, 1), {1: None})
    a, b = (space.names.index(n) for n in ("a", "b"))
    first = ask(PROPOSERS[name](), space, history.first(1), STREAMS, 1).vector
    vectors = np.vstack([history.vectors[0], first])
    vectors[0, a] = np.nan
    missing = np.zeros((2, 2), dtype=bool)
    missing[1, a] = True
    found = ask(
        PROPOSERS[name](), space, replace(history, vectors=vectors, missing=missing), STREAMS, 2
    )
    assert found.vector[b] != first[b]
