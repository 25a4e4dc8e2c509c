"""Eight workers that start together on one study: no configuration twice, whatever the storage.

In the objectives all eight wait for each other, so that none has finished before the last one has
its values. No assertion depends on who is faster.
"""

from __future__ import annotations

import contextlib
import copy
import multiprocessing
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import pytest
from automl_plugins.adapters.optuna import (
    AutoSampler,
    BanditSampler,
    BOASFSampler,
    EIPerSecondSampler,
    GBQRSampler,
    SurrogateSampler,
    _private,
    proposer_sampler,
)
from automl_plugins.adapters.optuna.proposer_sampler import ProposerSampler
from objectives import TRANSFER, Objective, distinct, params, search, studied
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.samplers import BaseSampler
from optuna.storages import BaseStorage, InMemoryStorage
from optuna.trial import TrialState
from storages import PATIENCE, SlowStorage, UnpublishedStorage, storage_in

from automl_plugins.proposers.proposal import Proposal
from automl_plugins.recipes import gbqr
from automl_plugins.records.history import History
from automl_plugins.spaces.vector_space import VectorSpace
from automl_plugins.streams import Streams

WORKERS = 8


def floats(trial: optuna.Trial) -> float:
    x, y = trial.suggest_float("x", 0, 1), trial.suggest_float("y", 1e-4, 1, log=True)
    return x + y + trial.suggest_int("n", 1, 100)


def branches(trial: optuna.Trial) -> float:
    algorithm = trial.suggest_categorical("algorithm", ["svm", "rf", "knn"])
    if algorithm == "knn":
        return float(trial.suggest_int("k", 1, 50))
    return trial.suggest_float("C" if algorithm == "svm" else "x", 0, 1)


def small(trial: optuna.Trial) -> float:
    return float((trial.suggest_int("a", 0, 30) - 7) ** 2)


OWN: dict[str, Callable[[Objective], BaseSampler]] = {
    "alone": lambda _: AutoSampler(seed=1),
    "gbqr": lambda _: GBQRSampler(seed=1),
    "ei_per_second": lambda _: EIPerSecondSampler(cost=lambda t: 1.0 + t.number % 3, seed=1),
    "forest": lambda _: SurrogateSampler(surrogate="random_forest", seed=1),
}
SAMPLERS: dict[str, Callable[[Objective], BaseSampler]] = {
    **OWN,
    **{
        name: lambda objective, made=made: made(  # type: ignore[misc]
            [studied(f"s{seed}", objective, n=15, seed=seed) for seed in range(2)], seed=1
        )
        for name, made in TRANSFER.items()
    },
}


def waiting_for_all(objective: Objective, everyone: Any) -> Objective:
    def of(trial: optuna.Trial) -> float:
        value: float = objective(trial)
        if trial.number < WORKERS:
            everyone.wait(PATIENCE)
        return value

    return of


def in_threads(
    objective: Objective, sampler: BaseSampler, storage: BaseStorage, n_trials: int
) -> list[dict[str, Any]]:
    """Values of all trials, the first eight of which are asked for at once."""
    study = optuna.create_study(storage=storage, sampler=sampler)
    waiting = waiting_for_all(objective, threading.Barrier(WORKERS))
    study.optimize(waiting, n_trials=n_trials, n_jobs=WORKERS)
    return params(study)


@pytest.mark.parametrize(
    ("name", "objective"),
    [("gbqr", floats), ("gbqr", branches), ("alone", branches), ("tst", floats)],
)
def test_threads_that_start_together(name: str, objective: Objective) -> None:
    """Who has the turn is the business of what all samplers share."""
    storage = SlowStorage() if name in OWN else InMemoryStorage()
    # Later ones may repeat each other in the branch "knn", which has no continuous parameter.
    n = 2 * WORKERS if objective is floats else WORKERS
    assert distinct(in_threads(objective, SAMPLERS[name](objective), storage, n)) == n


@pytest.mark.slow
@pytest.mark.parametrize("declared", [False, True])
def test_threads_exhaust_a_grid_without_repeats(declared: bool) -> None:
    space = {"a": IntDistribution(0, 30)} if declared else None
    found = in_threads(small, GBQRSampler(seed=0, search_space=space), InMemoryStorage(), 31)
    assert distinct(found) == 31


def at_one_moment(
    objective: Objective, sampler: BaseSampler, n_finished: int
) -> list[dict[str, Any]]:
    """Values of eight trials that see nothing of each other."""
    storage = UnpublishedStorage()
    study = search(sampler, objective, n_finished, storage=storage)
    trials = [storage.create_new_trial(study._study_id) for _ in range(WORKERS)]
    for trial in trials:
        objective(optuna.Trial(study, trial))
    return [storage.get_trial(trial).params for trial in trials]


@pytest.mark.parametrize(
    ("name", "objective", "n_finished"),
    [
        ("auto", branches, 10),
        *(
            pytest.param(name, branches, 10, marks=pytest.mark.slow)
            for name in SAMPLERS
            if name != "auto"
        ),
        # Before a trial is finished all samplers without a memory begin alike.
        *(("gbqr", objective, 0) for objective in (branches, floats, small)),
        *((name, branches, 0) for name in TRANSFER),
        *(("gbqr", objective, 10) for objective in (floats, small)),
    ],
)
def test_workers_that_see_nothing_of_each_other(
    name: str, objective: Objective, n_finished: int
) -> None:
    assert distinct(at_one_moment(objective, SAMPLERS[name](objective), n_finished)) == WORKERS


ALGORITHM = {"algorithm": CategoricalDistribution(["svm", "rf", "knn"])}


def test_branches_and_arms_are_balanced_from_the_first_trials_on() -> None:
    for found in (
        in_threads(branches, GBQRSampler(seed=2), InMemoryStorage(), WORKERS),
        at_one_moment(branches, BanditSampler(seed=1, search_space=ALGORITHM), 0),
        at_one_moment(branches, BOASFSampler(seed=1, n_trials=30, search_space=ALGORITHM), 0),
    ):
        counts = [sum(p["algorithm"] == a for p in found) for a in ("svm", "rf", "knn")]
        assert sorted(counts) == [2, 3, 3]


def shared(trial: optuna.Trial) -> float:
    if trial.suggest_categorical("algorithm", ["svm", "rf", "knn"]) == "knn":
        return float(trial.suggest_int("k", 1, 7))
    return trial.suggest_float("x", 0, 1)


def elsewhere(trial: optuna.Trial) -> float:
    algorithm = trial.suggest_categorical("algorithm", ["svm", "rf", "knn"])
    if algorithm == "knn":
        return float(trial.suggest_int("k", 1, 7))
    return trial.suggest_float("C" if algorithm == "svm" else "features", 0, 1)


DECLARED = ALGORITHM | {"k": IntDistribution(1, 7), "x": FloatDistribution(0, 1)}
HALF_KNOWN: dict[str, Callable[[], BaseSampler]] = {
    "gbqr": lambda: GBQRSampler(seed=1, search_space=DECLARED),
    "tst": lambda: SAMPLERS["tst"](elsewhere),
    "blended": lambda: SAMPLERS["blended"](elsewhere),
}


@pytest.mark.parametrize("name", HALF_KNOWN)
def test_values_that_are_not_asked_for_tell_no_trials_apart(name: str) -> None:
    # While no trial of "knn" is complete, x counts as a parameter of it.
    study = optuna.create_study(sampler=HALF_KNOWN[name]())
    for algorithm in ["svm", "rf", "svm", "rf"]:
        study.enqueue_trial({"algorithm": algorithm})
    study.optimize(shared, n_trials=4)
    for _ in range(7):
        study.enqueue_trial({"algorithm": "knn"})
        shared(study.ask())
    assert distinct(params(study)[4:]) == 7


class Nested:
    """Number 2 of the first study asks the same sampler for another study, number 3 fails."""

    def __init__(self) -> None:
        self.sampler: BaseSampler | None = None
        self.others: list[optuna.Study] = []

    def propose(self, *args: Any) -> Proposal:
        k = args[3]
        if not self.others and k == 2:
            self.others.append(optuna.create_study(sampler=self.sampler))
            self.others[0].optimize(small, n_trials=2)
        if k == 3:
            raise KeyError("no proposal")
        return gbqr().propose(*args)


def test_turns_may_be_nested_and_end_with_an_error() -> None:
    nested = Nested()
    sampler = ProposerSampler(nested, seed=1, search_space={"a": IntDistribution(0, 30)})
    nested.sampler = sampler = copy.deepcopy(sampler)
    sampler._proposer = nested
    study = optuna.create_study(sampler=sampler)

    def work() -> None:
        with contextlib.suppress(KeyError):
            study.optimize(small, n_trials=1)

    for _ in range(6):  # each in a thread of its own: nobody waits for a turn for ever
        worker = threading.Thread(target=work, daemon=True)
        worker.start()
        worker.join(timeout=300)
        assert not worker.is_alive()
    states = [trial.state for trial in study.trials]
    assert [k for k, state in enumerate(states) if state != TrialState.COMPLETE] == [3]
    assert len(nested.others[0].trials) == 2


class Corner:
    """Number ``k`` gets the first value that is free; what others get is guessed wrongly."""

    def __init__(self, k: int, values: Sequence[float]) -> None:
        self.k, self.values = k, values
        self.meanwhile: Callable[[], Any] = lambda: None
        self.proposed: list[float] = []

    def propose(
        self, space: VectorSpace, history: History, streams: Streams, k: int, *_: Any
    ) -> Proposal:
        if k != self.k:
            return Proposal(np.array([0.9]), "random")
        meanwhile, self.meanwhile = self.meanwhile, lambda: None
        meanwhile()
        free = [x for x in self.values if x not in history.vectors]
        self.proposed.append(free[0] if free else self.values[0])
        return Proposal(np.array(self.proposed[-1:]), "model")


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("values", [(0.0, 0.1), (0.0,)])
def test_workers_that_guessed_each_other_wrongly(values: Sequence[float], first: int) -> None:
    study = optuna.create_study()
    study.ask()  # a third worker
    corners = [Corner(k, values) for k in (1, 2)]
    space = {"x": FloatDistribution(0, 1)}
    trials = [
        optuna.load_study(
            study_name=study.study_name,
            storage=study._storage,
            sampler=ProposerSampler(corner, seed=1, search_space=space),
        ).ask()
        for corner in corners
    ]
    last = 1 - first
    corners[last].meanwhile = lambda: trials[first].suggest_float("x", 0, 1)
    trials[last].suggest_float("x", 0, 1)
    assert [trials[i].params["x"] for i in (first, last)] == [0.0, values[-1]]
    # Who publishes later sees the other; it asks once more, and no more if nothing is left.
    assert [corners[i].proposed for i in (first, last)] == [[0.0], [0.0, values[-1]]]


class Sleepless:
    """In place of ``time``: what other workers do while this one sleeps."""

    perf_counter = staticmethod(time.perf_counter)

    def __init__(self, *meanwhile: Callable[[], Any]) -> None:
        self.meanwhile = list(meanwhile)
        self.slept: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        if self.meanwhile:
            self.meanwhile.pop(0)()


@pytest.mark.parametrize(("published", "naps"), [(0, [3]), (1, [3, 2]), (2, [3, 1]), (3, [3])])
def test_workers_wait_for_what_others_are_about_to_publish(
    published: int, naps: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    space = {"x": FloatDistribution(0, 1)}
    study = optuna.create_study(sampler=GBQRSampler(seed=1, search_space=space))
    trials = [study.ask() for _ in range(3)]  # of workers in other processes
    own = GBQRSampler(seed=1, search_space=space)
    asked: list[int] = []
    proposer = own._proposer

    class Asked:
        def propose(self, *args: Any) -> Proposal:
            asked.append(args[3])
            found: Proposal = proposer.propose(*args)
            return found

    own._proposer = Asked()
    mine = optuna.load_study(study_name=study.study_name, storage=study._storage, sampler=own)
    trial = mine.ask()

    def publish() -> None:
        for other in trials[:published]:
            other.suggest_float("x", 0, 1)

    clock = Sleepless(publish)
    monkeypatch.setattr(proposer_sampler, "time", clock)
    trial.suggest_float("x", 0, 1)
    # In proportion to how many are awaited; again while there is progress.
    assert clock.slept == pytest.approx([0.02 * n for n in naps])
    assert asked == [*range(published, 3), 3]  # what was not published is foreseen
    values = [other.suggest_float("x", 0, 1) for other in trials]
    assert len({*values, trial.params["x"]}) == 4


def test_a_trial_that_does_not_ask_is_awaited_once(monkeypatch: pytest.MonkeyPatch) -> None:
    space: dict[str, BaseDistribution] = {"x": FloatDistribution(0, 1)}
    study = optuna.create_study()
    for _ in range(2):
        study.ask()  # of workers in other processes, which load their data first
    monkeypatch.setattr(proposer_sampler, "time", clock := Sleepless())
    study.sampler = GBQRSampler(seed=1, search_space=space)
    held = study.ask()
    study.ask(space)
    assert clock.slept == pytest.approx([0.04])
    study.ask()  # of this process, too
    study.ask(space)
    assert len(clock.slept) == 1
    assert held.suggest_float("x", 0, 1) not in {t.params.get("x") for t in study.trials[3:]}


def test_threads_of_one_sampler_do_not_wait_for_each_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Whoever proposes has the turn: the others could not publish meanwhile.
    monkeypatch.setattr(proposer_sampler, "time", clock := Sleepless())
    space = {"x": FloatDistribution(0, 1)}
    sampler = GBQRSampler(seed=1, search_space=space)
    study = optuna.create_study(sampler=sampler)
    first, second = study.ask(), study.ask()
    sampler.infer_relative_search_space(study, study.trials[0])  # another thread has come so far
    second.suggest_float("x", 0, 1)
    assert clock.slept == []
    assert first.suggest_float("x", 0, 1) != second.params["x"]


def test_what_others_show_meanwhile_is_no_reason_to_warn(log: pytest.LogCaptureFixture) -> None:
    study = optuna.create_study(sampler=GBQRSampler(seed=1))
    trial = study.ask()
    trial.suggest_float("x", 0, 1)  # proposed while y is unknown
    study.tell(study.ask({"y": FloatDistribution(0, 1)}), 1.0)
    trial.suggest_float("y", 0, 1)
    assert "is sampled independently" not in log.text
    # nor to propose it anew: its range has not moved
    assert _private.read_proposal(study.trials[trial.number]).keys() <= {"x"}


SCRIPT = """
import sys
sys.path.insert(0, sys.argv[1])
from test_workers import *

def work(folder, kind, everyone):
    storage = storage_in(Path(folder), kind)
    everyone.wait(PATIENCE)
    study = optuna.load_study(study_name="s", storage=storage, sampler=GBQRSampler(seed=1))
    study.optimize(waiting_for_all(branches, everyone), n_trials=1)

fork = multiprocessing.get_context("fork")
everyone = fork.Barrier(WORKERS)
children = [fork.Process(target=work, args=(*sys.argv[2:4], everyone)) for _ in range(WORKERS)]
for child in children:
    child.start()
for child in children:
    child.join()
assert not any(child.exitcode for child in children)
"""


@pytest.mark.slow
@pytest.mark.skipif(
    "fork" not in multiprocessing.get_all_start_methods(), reason="this system cannot fork"
)
@pytest.mark.parametrize("kind", ["sqlite", "journal"])
def test_processes_that_start_together(kind: str, tmp_path: Path) -> None:
    optuna.create_study(study_name="s", storage=storage_in(tmp_path, kind))
    command = [sys.executable, "-c", SCRIPT, str(Path(__file__).parent), str(tmp_path), kind]
    subprocess.run(command, check=True, capture_output=True, text=True)
    study = optuna.load_study(study_name="s", storage=storage_in(tmp_path, kind))
    assert len(study.trials) == distinct(params(study)) == WORKERS


# --- processes that die ---------------------------------------------------------------------


def test_a_process_that_is_killed_is_a_failed_trial() -> None:
    """As docs/recipes.md has it: threads ask and tell, each trial has a process of its own."""

    def objective(trial: optuna.Trial) -> float:
        x = trial.suggest_float("x", 0, 1)
        does = trial.suggest_categorical("does", ["works", "kills", "raises"])
        task: Any = {
            "works": (abs, x),
            "kills": (signal.raise_signal, signal.SIGKILL),
            "raises": (int, "on purpose"),
        }[does]
        with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as process:
            return float(process.submit(*task).result())

    study = optuna.create_study(sampler=GBQRSampler(seed=0))
    study.optimize(objective, n_trials=8, n_jobs=2, catch=(RuntimeError, ValueError))
    assert len(study.trials) == 8 and len({str(t.params) for t in study.trials}) == 8
    for trial in study.trials:
        works = trial.params["does"] == "works"
        assert trial.state == (TrialState.COMPLETE if works else TrialState.FAIL)
    assert {t.params["does"] for t in study.trials} == {"works", "kills", "raises"}
