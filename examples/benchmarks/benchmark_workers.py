"""Eight workers against one at the same number of trials.

The workers are simulated: all begin at once, an evaluation takes 0.5 to 1.5 seconds, and the other
workers see a proposal ``--latency`` seconds after its worker has read the history. Durations
follow from the seed, so every figure is reproducible. Searches are appended to a file and not run
again.

    benchmark_workers.py  # five spaces, 10 seeds, 100 trials
    benchmark_workers.py --smoke  # seconds

Two of the spaces are recorded tables, left out if they are not installed. Regret is that of the
best loss so far, as a share of the range of the losses; for the geometric mean it is at least
0.1 %.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from common import keep_rows, run_command
from ConfigSpace import Categorical, Configuration, ConfigurationSpace, EqualsCondition, Float
from recorded_tables import data_folder, oboe, svm_grid

from automl_plugins import recipes
from automl_plugins.arrays import FloatArray
from automl_plugins.proposers.proposal import Proposer, ask
from automl_plugins.records.history import History
from automl_plugins.records.trial import Status
from automl_plugins.replay import Table
from automl_plugins.spaces.vector_space import VectorSpace
from automl_plugins.streams import Streams

Row = dict[str, Any]
Loss = Callable[[Mapping[str, Any]], float]

METHODS: dict[str, Callable[[], Proposer]] = {
    "gbqr": recipes.gbqr,
    "ei_per_second": recipes.ei_per_second,
}
FLOOR = 1e-3
N_WORKERS = 8


@dataclass(frozen=True)
class Problem:
    """A space, its loss, and the least and the largest loss."""

    space: ConfigurationSpace
    loss: Loss
    best: float
    worst: float


def floats() -> Problem:
    """Six real numbers: a bowl with ripples, its bottom away from the middle."""
    names = [f"x{i}" for i in range(6)]
    space = ConfigurationSpace({name: (0.0, 1.0) for name in names})

    def loss(values: Mapping[str, Any]) -> float:
        z = np.array([values[name] for name in names]) - np.linspace(0.2, 0.8, 6)
        return float((z**2 + 0.02 * (1.0 - np.cos(12.0 * math.pi * z))).sum())

    return Problem(space, loss, 0.0, 2.5)


def algorithms() -> Problem:
    """Three algorithms with numbers of their own, the best one not the easiest."""
    space = ConfigurationSpace()
    kind = Categorical("algorithm", ["linear", "forest", "kernel"])
    own = {
        "linear": [Float("penalty", (1e-4, 1e2), log=True)],
        "forest": [Float("features", (0.05, 1.0)), Float("samples", (0.2, 1.0))],
        "kernel": [Float("C", (1e-3, 1e3), log=True), Float("gamma", (1e-4, 1e1), log=True)],
    }
    space.add(kind, *[child for children in own.values() for child in children])
    for option, children in own.items():
        space.add(*[EqualsCondition(child, kind, option) for child in children])

    def loss(values: Mapping[str, Any]) -> float:
        if values["algorithm"] == "linear":
            return 0.30 + 0.02 * (math.log10(values["penalty"]) - 1.0) ** 2
        if values["algorithm"] == "forest":
            return float(0.15 + (values["features"] - 0.3) ** 2 + 0.1 * (1.0 - values["samples"]))
        c, gamma = math.log10(values["C"]), math.log10(values["gamma"])
        return 0.05 + 0.05 * (c - 1.5) ** 2 + 0.15 * (gamma + 2.0 - 0.5 * (c - 1.5)) ** 2

    return Problem(space, loss, 0.05, 3.0)


def counts() -> Problem:
    """Integers and categories, 21 600 configurations."""
    space = ConfigurationSpace(
        {
            "depth": (1, 20),
            "leaf": (1, 30),
            "criterion": ["gini", "entropy", "log_loss"],
            "features": ["sqrt", "log2", "all"],
            "bins": [8, 16, 64, 256],
        }
    )
    worth = {"gini": 0.05, "entropy": 0.0, "log_loss": 0.12, "sqrt": 0.1, "log2": 0.15, "all": 0.0}

    def loss(values: Mapping[str, Any]) -> float:
        smooth = ((values["depth"] - 13) / 20) ** 2 + ((values["leaf"] - 4) / 30) ** 2
        bins = 0.05 * abs(math.log2(values["bins"]) - 6.0)
        return float(smooth + worth[values["criterion"]] + worth[values["features"]] + bins)

    return Problem(space, loss, 0.0, 1.5)


def recorded(table: Table) -> Problem:
    """A recorded table."""

    def loss(values: Mapping[str, Any]) -> float:
        return float(table.losses[table.find(dict(values)).row])

    return Problem(
        table.space, loss, float(np.nanmin(table.losses)), float(np.nanmax(table.losses))
    )


PROBLEMS: dict[str, Callable[[], Problem]] = {
    "floats": floats,
    "algorithms": algorithms,
    "counts": counts,
    "svm_grid": lambda: recorded(svm_grid()[4]),
    "oboe": lambda: recorded(oboe(18)[2]),
}


@dataclass
class Run:
    """An evaluation: its configuration, its loss, and the times at which they become known."""

    vector: FloatArray
    loss: float
    published: float
    finished: float


@dataclass
class Workers:
    """Simulated workers on one search.

    Args:
        problem: The problem of the search.
        proposer: The proposer of all workers.
        seed: Seed of the search and of the durations.
        latency: Seconds from reading the history until a proposal can be read.
    """

    problem: Problem
    proposer: Proposer
    seed: int
    latency: float
    runs: list[Run] = field(default_factory=list)

    def search(self, n_workers: int, n_trials: int) -> FloatArray:
        """Losses (n_trials,) by number."""
        space, streams = VectorSpace(self.problem.space), Streams(self.seed)
        free = [0.0] * n_workers
        for k in range(n_trials):
            now = heapq.heappop(free)
            vector = ask(self.proposer, space, self.history(space, now), streams, k).vector
            values = dict(Configuration(self.problem.space, vector=vector))
            seconds = float(streams.generator("duration", k).uniform(0.5, 1.5))
            end = now + self.latency + seconds
            self.runs.append(Run(vector, self.problem.loss(values), now + self.latency, end))
            heapq.heappush(free, end)
        return np.array([run.loss for run in self.runs])

    def history(self, space: VectorSpace, now: float) -> History:
        """The history that a worker can read at a moment."""
        done = [k for k, run in enumerate(self.runs) if run.finished <= now]
        done.sort(key=lambda k: (self.runs[k].finished, k))
        order = done + [k for k, run in enumerate(self.runs) if run.finished > now]
        rows = [self.runs[k] for k in order]
        n = len(done)
        vectors = [np.full(space.d, np.nan) if r.published > now else r.vector for r in rows]
        return History.of(
            np.array(vectors).reshape(len(rows), space.d),
            [r.loss if i < n else math.nan for i, r in enumerate(rows)],
            seconds=[1.0 if i < n else math.nan for i in range(len(rows))],
            number=order,
            status=[Status.COMPLETE if i < n else Status.RUNNING for i in range(len(rows))],
        )


def run(method: str, space: str, workers: int, trials: int, latency: float, seed: int) -> Row:
    """Regret and repeated configurations of a search."""
    problem = PROBLEMS[space]()
    simulated = Workers(problem, METHODS[method](), seed, latency)
    losses = simulated.search(workers, trials)
    different = {run.vector.tobytes() for run in simulated.runs}
    regret = (losses.min() - problem.best) / (problem.worst - problem.best)
    return {"regret": regret, "repeats": len(losses) - len(different)}


def show(found: pd.DataFrame) -> None:
    """Print mean regrets and the ratio of the geometric means."""
    means = found.pivot_table(index=["method", "space"], columns="workers", values="regret")
    repeats = found[found.workers == N_WORKERS].groupby(["method", "space"]).repeats.sum()
    table = (100.0 * means).round(3).assign(repeats=repeats)
    print("Mean regret in percent by workers, and repeated configurations of all seeds")
    print(table.to_string())
    logs = found.assign(log=np.log(found.regret.clip(lower=FLOOR)))
    by_workers = logs.pivot_table(index="method", columns="workers", values="log")
    for method, row in by_workers.iterrows():
        ratio = math.exp(row[N_WORKERS] - row[1])
        print(f"{method}: geometric mean regret of {N_WORKERS} workers is {ratio:.2f} of one's")


def main(
    methods: Sequence[str] = ("gbqr",),
    spaces: Sequence[str] = (),
    trials: int = 100,
    seeds: int = 10,
    latency: float = 0.1,
    smoke: bool = False,
) -> None:
    """Run the missing searches and print the means."""
    if smoke:
        spaces, seeds, trials = ["algorithms", "counts"], 1, 16
    spaces = spaces or list(PROBLEMS)[: None if data_folder() else -2]  # two are recorded
    key = ["method", "space", "workers", "trials", "latency", "seed"]
    wanted = product(methods, spaces, [1, N_WORKERS], [trials], [latency], range(seeds))
    show(keep_rows(Path("build/workers.csv"), key, wanted, run))


if __name__ == "__main__":
    run_command(__doc__, main, methods=METHODS, spaces=PROBLEMS)
