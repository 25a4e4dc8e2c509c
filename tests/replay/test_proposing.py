"""Proposers of the core in a replay, without a framework."""

from __future__ import annotations

import logging
import math
import pickle
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pytest
from ConfigSpace import (
    Categorical,
    ConfigurationSpace,
    EqualsCondition,
    Float,
    OrdinalHyperparameter,
)

from automl_plugins.proposers.proposal import Proposal, Proposer, SurrogateFailure
from automl_plugins.recipes import ei_per_second, gbqr
from automl_plugins.records.history import History
from automl_plugins.records.trial import Status
from automl_plugins.replay import Outcome, Problem, Table, TrialStatus, proposing, replay
from automl_plugins.replay.simulation import ProposerSearch
from automl_plugins.spaces.vector_space import VectorSpace
from automl_plugins.streams import Streams

COMPLETE, FAILED, PRUNED = TrialStatus.COMPLETE, TrialStatus.FAILED, TrialStatus.PRUNED


def a_space() -> ConfigurationSpace:
    space = ConfigurationSpace()
    kind = Categorical("kind", ["a", "b"])
    x = Float("x", (1e-3, 1.0), log=True)
    level = OrdinalHyperparameter("level", [1, 2, 5, 10])
    space.add(kind, x, level, EqualsCondition(level, kind, "b"))
    return space


def a_table(n: int = 60) -> Table:
    rng = np.random.default_rng(0)
    configs: list[dict[str, Any]] = [
        {"kind": "b", "x": float(x), "level": int(rng.choice([1, 2, 5, 10]))}
        if i % 2
        else {"kind": "a", "x": float(x)}
        for i, x in enumerate(10.0 ** rng.uniform(-3.0, 0.0, n))
    ]
    losses = [abs(math.log10(c["x"]) + 1.5) + (c["kind"] == "a") for c in configs]
    return Table("t", a_space(), configs, losses, seconds=1.0 + np.arange(n))


class Scripted:
    """Proposes random configurations and keeps what it was shown."""

    def __init__(self, fails: tuple[int, ...] = ()) -> None:
        self.fails = fails
        self.seen: list[tuple[int, History]] = []

    def propose(
        self,
        space: VectorSpace,
        history: History,
        streams: Streams,
        k: int,
        fixed: object = None,
    ) -> Proposal:
        self.seen.append((k, history))
        if k in self.fails:
            raise SurrogateFailure("no model.")
        return Proposal(space.sample(1, streams.generator("script", k))[0], "random")


def gbqr_of(problem: Problem, n_startup: int = 4) -> Proposer:
    return gbqr(n_startup=n_startup)


def timed_of(problem: Problem) -> Proposer:
    return ei_per_second(n_startup=4)


def started(proposer: Scripted, seed: int = 3) -> ProposerSearch:
    return ProposerSearch(lambda problem: proposer, Problem(a_space(), seed))


def test_it_is_told_all_in_the_order_in_which_it_ended() -> None:
    proposer = Scripted()
    search = started(proposer)
    first, second, third, fourth = (search.ask() for _ in range(4))
    search.tell(third, Outcome(COMPLETE, 0.5, 0.0, 2.0))
    search.tell(first, Outcome(FAILED, math.nan, 0.0, 7.0))
    search.tell(second, Outcome(PRUNED, 0.9, 1.0, 4.0))
    fifth = search.ask()
    assert [p.token for p in (first, second, third, fourth, fifth)] == [0, 1, 2, 3, 4]
    k, history = proposer.seen[-1]
    assert k == 4
    np.testing.assert_array_equal(history.number, [2, 0, 1, 3])
    np.testing.assert_array_equal(
        history.status, [Status.COMPLETE, Status.FAILED, Status.PRUNED, Status.RUNNING]
    )
    np.testing.assert_array_equal(history.losses, [0.5, np.nan, 0.9, np.nan])
    np.testing.assert_array_equal(history.seconds, [2.0, 7.0, 3.0, np.nan])
    vectors = [
        VectorSpace(a_space()).sample(1, Streams(3).generator("script", n))[0]
        for n in (2, 0, 1, 3)
    ]
    np.testing.assert_array_equal(history.vectors, vectors)


def test_a_model_that_fails_is_replaced_by_lot_and_warned_of_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    search, again = started(Scripted((1, 3))), started(Scripted((1, 3)))
    with caplog.at_level(logging.WARNING, logger="automl_plugins.replay.simulation"):
        asked = [search.ask() for _ in range(5)]
    assert [r.message for r in caplog.records] == [
        "no model. Random configurations are tried instead."
    ]
    assert [p.config for p in asked] == [again.ask().config for _ in range(5)]
    assert [k for k, _ in again.proposer.seen] == [0, 1, 2, 3, 4]  # type: ignore[attr-defined]
    assert asked[1].config != asked[3].config


def test_without_a_model_no_configuration_is_repeated() -> None:
    space = ConfigurationSpace({"n": (1, 12)})
    search = ProposerSearch(lambda _: Scripted(tuple(range(12))), Problem(space, 3))
    assert sorted(search.ask().config["n"] for _ in range(12)) == list(range(1, 13))


def test_a_mistake_in_the_code_is_no_failure_of_a_surrogate() -> None:
    class Mistaken(Scripted):
        def propose(self, *_: Any, **__: Any) -> Proposal:
            raise KeyError("a mistake")

    with pytest.raises(KeyError, match="a mistake"):
        started(Mistaken()).ask()


def test_replay_with_seeds_workers_and_pickled() -> None:
    table = a_table()
    method = proposing("GBQR", partial(gbqr_of, n_startup=5))
    run = partial(replay, method, table, budget=8, seed=[0, 1], progress=False)
    frame = run()
    assert frame.method.unique().tolist() == ["GBQR"]
    assert frame.groupby("seed").size().tolist() == [8, 8]
    pd.testing.assert_frame_equal(frame, run())
    pd.testing.assert_frame_equal(
        frame, replay(pickle.loads(pickle.dumps(method)), table, budget=8, seed=[0, 1])
    )
    first = frame[frame.seed == 0].row.tolist()
    assert first != frame[frame.seed == 1].row.tolist()
    assert len(run(n_workers=3)) == 16


def test_seconds_reach_the_proposer() -> None:
    table = a_table()
    configs = [table.config(row) for row in range(len(table))]
    losses = [abs(math.log10(c["x"]) + 1.5) for c in configs]
    seconds = [500.0 if c["kind"] == "b" else 1.0 for c in configs]  # and no better
    table = table.with_losses("u", losses, seconds=seconds)
    methods = {"timed": proposing("timed", timed_of), "plain": proposing("plain", gbqr_of)}
    frame = replay(methods, table, budget=15, progress=False)
    spent = frame.groupby("method").seconds.max()
    assert spent["timed"] < 0.7 * spent["plain"]


def test_what_is_no_factory_is_refused() -> None:
    with pytest.raises(TypeError, match="function of the problem"):
        proposing("GBQR", gbqr())  # type: ignore[arg-type]
