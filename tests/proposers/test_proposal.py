"""Workers that ask at one moment: each considers the lower numbers, published or not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from ConfigSpace import Categorical, ConfigurationSpace, EqualsCondition, Float, Integer

from automl_plugins.arrays import FloatArray
from automl_plugins.meta import MetaDataset, TaskRecord
from automl_plugins.meta.memories import TaskMemory
from automl_plugins.proposers.model_based import ModelBasedProposer, ProposerSettings
from automl_plugins.proposers.pipelines import PipelineProposer
from automl_plugins.proposers.proposal import (
    Proposal,
    Proposer,
    Repeats,
    SurrogateFailure,
    ask,
    fill_gaps,
    propose_randomly,
)
from automl_plugins.proposers.with_memory import SuggestedStart
from automl_plugins.recipes import gbqr
from automl_plugins.records.history import History
from automl_plugins.records.trial import Status
from automl_plugins.spaces.vector_space import VectorSpace
from automl_plugins.streams import Streams
from automl_plugins.surrogates import RandomForest

WORKERS = 8
STREAMS = Streams(5)
GRID = VectorSpace(ConfigurationSpace({"a": (0, 6), "b": (0, 5)}))


def branches() -> VectorSpace:
    space = ConfigurationSpace()
    kind, x, n = Categorical("kind", ["a", "b"]), Float("x", (0, 1)), Integer("n", (1, 20))
    space.add([kind, x, n])
    space.add([EqualsCondition(x, kind, "a"), EqualsCondition(n, kind, "b")])
    return VectorSpace(space)


def forest(**settings: Any) -> ModelBasedProposer:
    return ModelBasedProposer(ProposerSettings(RandomForest(n_trees=10), **settings))


def memory() -> TaskMemory:
    values = [{"a": a, "b": b} for a in range(7) for b in range(6)]
    records = [
        TaskRecord(
            f"t{t}", values, np.array([(v["a"] - t) ** 2.0 + v["b"] for v in values]),
            space=GRID.space,
        )
        for t in range(3)
    ]  # fmt: skip
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


def at_once(name: str, space: VectorSpace, history: History) -> list[FloatArray]:
    """Proposals of simultaneous workers, which see each other's numbers but no configuration."""
    found, numbers = [], range(len(history), len(history) + WORKERS)
    for k in numbers:
        known = with_running(history, {n: None for n in numbers if n != k})
        found.append(ask(PROPOSERS[name](), space, known, STREAMS, k).vector)
    return found


@pytest.mark.parametrize("n", [0, 30])
@pytest.mark.parametrize("name", PROPOSERS)
def test_simultaneous_workers_differ_on_a_small_grid(name: str, n: int) -> None:
    history = finished(GRID, n)
    keys = GRID.keys(np.vstack([history.vectors, *at_once(name, GRID, history)]))
    assert len(set(keys.tolist())) == n + WORKERS


@pytest.mark.parametrize(("name", "n"), [("forest", 0), ("forest", 20), ("balanced", 10)])
def test_computed_proposals_are_those_of_the_other_workers(name: str, n: int) -> None:
    space = branches()
    history = finished(space, n)
    one_by_one: dict[int, FloatArray | None] = {}
    for k in range(n, n + WORKERS):
        known = with_running(history, one_by_one)
        one_by_one[k] = ask(PROPOSERS[name](), space, known, STREAMS, k).vector
    found = at_once(name, space, history)
    np.testing.assert_array_equal(found, list(one_by_one.values()))
    if not n:
        # Both branches have one hyperparameter of as many bits: four each, give or take one
        assert 3 <= (np.array(found)[:, space.names.index("kind")] == 0).sum() <= 5


def test_higher_numbers_make_way_but_are_not_repeated() -> None:
    history = finished(GRID, 20)
    alone = forest().propose(GRID, history, STREAMS, 20).vector
    elsewhere = GRID.sample(1, np.random.default_rng(3))[0]
    assert not np.array_equal(elsewhere, alone)
    higher = with_running(history, {21: elsewhere, 22: None})
    np.testing.assert_array_equal(ask(forest(), GRID, higher, STREAMS, 20).vector, alone)
    taken = with_running(history, {21: alone})
    assert not np.array_equal(ask(forest(), GRID, taken, STREAMS, 20).vector, alone)


def test_published_configurations_are_not_computed_again() -> None:
    class Counting:
        def __init__(self) -> None:
            self.asked: list[tuple[int, History]] = []

        def propose(
            self, space: Any, history: History, streams: Any, k: int, fixed: Any = None
        ) -> Proposal:
            self.asked.append((k, history))
            if k == 46:
                raise SurrogateFailure("nothing")
            return Proposal(np.full(2, 0.5), "model")

    published = np.array([0.25, 0.25])
    # 3 died long ago; 45 is partly published; 47 is published; 49 comes later
    rows = {3: None, 44: None, 45: np.array([0.5, np.nan]), 46: None, 47: published, 49: None}
    counting = Counting()
    ask(counting, GRID, with_running(finished(GRID, 0), rows), STREAMS, 48)
    assert [k for k, _ in counting.asked] == [44, 46, 48]
    seen = counting.asked[-1][1]
    by_number = dict(zip(seen.number.tolist(), seen.vectors, strict=True))
    np.testing.assert_array_equal(by_number[44], [0.5, 0.5])
    np.testing.assert_array_equal(by_number[47], published)
    assert all(np.isnan(by_number[unknown]).all() for unknown in (3, 46, 49))
    assert seen.missing[seen.number == 44].all()  # computed, but not asked for
    known = finished(GRID, 5)
    ask(counting, GRID, known, STREAMS, 48)
    assert counting.asked[-1] == (48, known)


# Only "a" has an x and only "b" an n, which no complete trial has shown yet.
UNKNOWN = VectorSpace(
    ConfigurationSpace({"kind": ["a", "b"], "x": (0.0, 1.0), "n": (0, 3), "y": (0.0, 1.0)})
)
KIND, X, N, Y = (UNKNOWN.names.index(name) for name in ("kind", "x", "n", "y"))


def half_asked(numbers: list[int]) -> History:
    """Complete rows of "a" that asked for x, running ones of "b" that asked for n alone."""
    m = len(numbers)
    vectors = np.full((6 + m, 4), np.nan)
    vectors[:6, KIND], vectors[:6, X] = 0.0, np.linspace(0.0, 1.0, 6)
    vectors[6:] = UNKNOWN.sample(m, np.random.default_rng(0))
    vectors[6:, KIND], vectors[6:, N] = 1.0, np.array(numbers) / 3.0
    missing = np.zeros(vectors.shape, dtype=bool)
    missing[6:, [X, Y]] = True
    return History.of(
        vectors,
        np.append(np.linspace(0.0, 1.0, 6), np.full(m, np.nan)),
        status=[Status.COMPLETE] * 6 + [Status.RUNNING] * m,
        missing=missing,
    )


def taken(history: History, k: int = 9) -> FloatArray:
    return Repeats(UNKNOWN, history, k).taken


def test_a_branch_that_is_drawn_for_a_gap_is_complete() -> None:
    """A row that failed before it asked for the choice has no value on any branch."""
    space, nan = branches(), np.full(20, np.nan)  # kind, n, x
    missing = np.tile([True, False, True], (20, 1))
    history = History.of(
        np.full((20, 3), np.nan), nan, status=[Status.FAILED] * 20, missing=missing
    )
    filled = fill_gaps(space, history, STREAMS).vectors
    assert set(filled[:, 0]) == {0.0, 1.0}
    np.testing.assert_array_equal((~np.isnan(filled)).sum(axis=1), 2)


def test_gaps_are_filled_by_column(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where names change with each trial there are hundreds of gaps in each row."""
    space, asked = branches(), []

    def quantile(self: VectorSpace, column: int, u: FloatArray) -> FloatArray:
        asked.append((column, len(u)))
        return self._columns[column].quantile(u)

    monkeypatch.setattr(VectorSpace, "quantile", quantile)
    nan = np.full((20, 3), np.nan)
    failed = [Status.FAILED] * 20
    fill_gaps(space, History.of(nan, nan[:, 0], status=failed, missing=np.isnan(nan)), STREAMS)
    assert asked == [(0, 20), (1, 20), (2, 20)]


def test_rows_that_stopped_half_way_are_completed_always_with_the_same_values() -> None:
    space, nan = branches(), np.nan  # kind, n, x
    vectors = np.array([[0.0, nan, nan], [0.0, nan, nan], [1.0, 0.5, nan], [0.0, nan, nan]])
    running = np.array([[0.0, nan, nan]])
    missing = np.array([[False, False, True]] * 2 + [[False] * 3] + [[False, False, True]] * 2)
    status = [Status.FAILED, Status.PRUNED, Status.COMPLETE, Status.FAILED, Status.RUNNING]
    history = History.of(
        np.vstack([vectors, running]),
        [nan, 2.0, 1.0, nan, nan],
        status=status,
        missing=missing,
    )
    filled = fill_gaps(space, history, STREAMS)
    drawn = filled.vectors[[0, 1, 3], 2]
    assert ((drawn >= 0.0) & (drawn <= 1.0)).all() and len(set(drawn)) == 3
    np.testing.assert_array_equal(filled.vectors[:, :2], history.vectors[:, :2])
    np.testing.assert_array_equal(filled.vectors[[2, 4]], history.vectors[[2, 4]])
    marked = [[False, False, row in (1, 4)] for row in range(5)]  # the pruned and the running one
    np.testing.assert_array_equal(filled.missing, marked)
    shorter = fill_gaps(space, history.first(2), STREAMS)
    np.testing.assert_array_equal(shorter.vectors, filled.vectors[:2])
    assert fill_gaps(space, history, Streams(6)).vectors[0, 2] != drawn[0]

    class Watching:
        def propose(self, space: Any, history: History, *others: Any) -> Proposal:
            np.testing.assert_array_equal(history.vectors, filled.vectors)
            return Proposal(history.vectors[2], "model")

    ask(Watching(), space, history, STREAMS, 5)


def test_taken_configurations_by_hand() -> None:
    history = half_asked([2])
    # A row is compared by what it asked for
    own = np.full(4, np.nan)
    own[[KIND, N]] = 1.0, 2.0 / 3.0
    np.testing.assert_array_equal(taken(history), [own])
    # A complete row of the branch has asked for y, so this one will
    row = np.full((1, 4), np.nan)
    row[0, [KIND, N, Y]] = 1.0, 0.0, 0.3
    shown = History.of(
        np.vstack([row, history.vectors]),
        np.append(0.5, history.losses),
        status=np.append(Status.COMPLETE, history.status),
        missing=np.vstack([np.isnan(row), history.missing]),
    )
    own[Y] = history.vectors[6, Y]
    np.testing.assert_array_equal(taken(shown), [own])
    # A row that has asked for nothing is compared by what any row asked for
    foretold = replace(history, missing=history.missing | (history.status == 3)[:, None])
    own[[N, Y]], own[X] = np.nan, history.vectors[6, X]
    np.testing.assert_array_equal(taken(foretold), [own])
    # Not taken: categories alone, a row of a dead worker, a row that asked for everything
    first = replace(foretold, status=np.full(7, Status.RUNNING), missing=np.full((7, 4), True))
    assert len(taken(first)) == 0
    assert (len(taken(history, 6 + 32)), len(taken(history, 6 + 33))) == (1, 0)
    assert len(taken(replace(history, missing=np.full((7, 4), False)))) == 0


def told_apart(numbers: list[int], shown_first: bool) -> History:
    """Complete rows that asked for kind and n alone, and one that asked for all but n."""
    m = len(numbers)
    vectors = np.full((m + 1, 4), np.nan)
    vectors[:, KIND] = 0.0
    vectors[0, [X, Y]] = 0.5
    vectors[1:, N] = np.array(numbers) / 3.0
    number = np.arange(m + 1) if shown_first else np.append(m, np.arange(m))
    missing = np.isnan(vectors)
    missing[0] = False
    losses = np.linspace(1.0, 0.0, m + 1)
    return History.of(vectors, losses, number=number, missing=missing)


def test_complete_rows_are_compared_by_what_they_asked_for() -> None:
    asked = told_apart([0, 2], shown_first=True)
    history = fill_gaps(UNKNOWN, asked, STREAMS)
    assert not np.isnan(history.vectors[1:]).any()
    np.testing.assert_array_equal(history.missing, asked.missing)
    candidates = UNKNOWN.sample(400, np.random.default_rng(1))
    tried = (candidates[:, KIND] == 0.0) & np.isin(np.rint(3.0 * candidates[:, N]), [0, 2])
    assert tried.any() and len(taken(history)) == 0
    np.testing.assert_array_equal(Repeats(UNKNOWN, history, 9).among(candidates), tried)
    # x and y are newer than these rows, which say nothing about them
    older = fill_gaps(UNKNOWN, told_apart([0, 2], shown_first=False), STREAMS)
    assert not Repeats(UNKNOWN, older, 9).among(candidates).any()
    # Failures may come before the other values are asked for
    status = np.array([Status.COMPLETE, Status.FAILED, Status.FAILED])
    failed = fill_gaps(UNKNOWN, replace(asked, status=status), STREAMS)
    assert not failed.missing.any()
    assert not Repeats(UNKNOWN, failed, 9).among(candidates).any()


@pytest.mark.parametrize(
    "settings", [{}, {"n_startup": 20}, {"n_startup": 3, "uniform_start": True}]
)
def test_proposals_that_differ_in_unused_parameters_are_copies(settings: Any) -> None:
    fixed = np.full(4, np.nan)
    fixed[KIND] = 1.0
    for left in range(4):
        history = half_asked([n for n in range(4) if n != left])
        proposal = ask(forest(**settings), UNKNOWN, history, STREAMS, 9, fixed)
        assert proposal.vector[N] == pytest.approx(left / 3.0)
    # No other configuration is left, so a copy is proposed
    proposal = ask(forest(**settings), UNKNOWN, half_asked([0, 1, 2, 3]), STREAMS, 10, fixed)
    assert UNKNOWN.agrees(proposal.vector[None], fixed)[0]


def test_of_fixed_values_of_which_all_was_tried_the_others_are_not_proposed() -> None:
    everything = GRID.enumerate(42)
    assert everything is not None
    tried = everything[everything[:, 0] == 0.5]
    history = History.of(tried, np.arange(6.0))
    fixed = np.array([0.5, np.nan])
    for proposer in (forest(n_startup=2), forest(n_startup=20)):
        proposal = ask(proposer, GRID, history, STREAMS, 6, fixed)
        assert proposal.vector[0] == 0.5


@pytest.mark.parametrize("name", ["suggested", "factorisation"])
def test_suggestions_that_differ_in_unused_parameters_are_copies(name: str) -> None:
    # Earlier tasks know a and b. Here a complete row has asked for b alone, and so does another.
    history = with_running(finished(GRID, 1), {1: None})
    a, b = (GRID.names.index(n) for n in ("a", "b"))
    first = ask(PROPOSERS[name](), GRID, history.first(1), STREAMS, 1).vector
    vectors = np.vstack([history.vectors[0], first])
    vectors[0, a] = np.nan
    missing = np.zeros((2, 2), dtype=bool)
    missing[1, a] = True
    half = replace(history, vectors=vectors, missing=missing)
    assert ask(PROPOSERS[name](), GRID, half, STREAMS, 2).vector[b] != first[b]


@pytest.mark.parametrize(
    ("known", "text"),
    [
        ({"origin": "design"}, "Proposal(2 parameters by design)"),
        (
            {"origin": "model", "loss": 0.25, "n_rows": 7, "shares": {"a": 0.5}},
            "Proposal(2 parameters by model, loss 0.25, 7 rows, 1 earlier task)",
        ),
        ({"origin": "model", "n_diverged": 2}, "Proposal(2 parameters by model)"),
        ({"origin": "model", "n_infeasible": 2}, "Proposal(2 parameters by model)"),
    ],
)
def test_a_proposal_as_data_and_as_text(known: dict[str, Any], text: str) -> None:
    proposal = Proposal(np.zeros(2), **known)
    assert proposal.to_dict() == known and repr(proposal) == text


@pytest.mark.parametrize("n", [0, 38, 42])
def test_random_proposals_are_new_while_there_are_new_ones(n: int) -> None:
    history = finished(GRID, n)  # of 42 configurations
    drawn = list(propose_randomly(GRID, history, n, np.random.default_rng(0)))
    found = GRID.keys(np.array([proposal.vector for proposal in drawn])).tolist()
    assert {proposal.origin for proposal in drawn} == {"random"}
    assert len(found) == len(set(found)) == (42 - n or 42)
    assert bool(set(found) & set(GRID.keys(history.vectors).tolist())) == (n == 42)
    first = [next(propose_randomly(GRID, history, n, np.random.default_rng(s))) for s in (0, 0, 1)]
    np.testing.assert_array_equal(first[0].vector, first[1].vector)
    assert (first[0].vector != first[2].vector).any()


def test_an_empty_space_has_nothing_to_repeat() -> None:
    space = VectorSpace(ConfigurationSpace())
    history = History.of(np.empty((3, 0)), [0.1, 0.2, 0.3])
    assert Repeats(space, history, 3).taken.shape == (0, 0)
    assert ask(gbqr(), space, history, STREAMS, 3).vector.shape == (0,)
