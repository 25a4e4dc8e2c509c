"""Does a two-stage transfer surrogate search better? Leave one data set out, on svm_grid.

    benchmark_tst.py  # the sampler, its model alone, without sources
    benchmark_tst.py --methods negated shuffled none

Candidates are all configurations of a table, and the acquisition is EI. The first proposal is the
best mean of the first stage, or random where there are no sources. The sources know 50 of the 288
configurations: those that the authors' program gives them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pandas as pd
from common import run_command, spoil
from recorded_tables import MEMORIES

from automl_plugins import recipes
from automl_plugins.arrays import FloatArray
from automl_plugins.meta import MetaDataset, TaskRecord
from automl_plugins.proposers.proposal import Proposer
from automl_plugins.records.history import History
from automl_plugins.replay import regret
from automl_plugins.spaces.vector_space import VectorSpace
from automl_plugins.streams import Streams
from automl_plugins.surrogates.base import log_expected_improvement
from automl_plugins.surrogates.two_stage import TwoStageTransfer

BUDGETS = (1, 2, 3, 5, 10, 20, 30, 50, 100)
# The authors' program on svm_grid, in percent, at these budgets.
AUTHORS = (14.6, 12.3, 11.9, 7.0, 4.3, 1.7, 1.6, 0.51, 0.03)

MODELS = ("default", "tst_m", "none", "negated", "shuffled")  # alone, without a recipe
# Whole recipes, as in samplers and algos: they make their sources from the memory themselves.
RECIPES: dict[str, Callable[[MetaDataset], Proposer]] = {
    "sampler": recipes.tst,
    "paper": lambda memory: recipes.tst(memory, paper=True),
}


def sub_grid(memory: MetaDataset) -> MetaDataset:
    """The 50 of the 288 configurations of svm_grid that the authors' sources have."""
    legal = {
        "C": {2.0**-4, 2.0**-1, 1.0, 4.0, 32.0},
        "gamma": {1e-3, 0.1, 1.0, 2.0, 20.0, 1e3},
        "degree": {2.0, 5.0, 8.0},
    }
    records = []
    for record in memory.records():
        kept = [
            i
            for i, configuration in enumerate(record.configurations)
            if all(float(configuration[n]) in legal[n] for n in legal if n in configuration)
        ]
        records.append(
            TaskRecord(
                record.name,
                [record.configurations[i] for i in kept],
                np.asarray(record.losses)[kept],
                space=memory.space,
                meta_features=record.meta_features,
            )
        )
    return MetaDataset.from_records(records, memory.space)


def model_of(name: str, memory: MetaDataset, task: Mapping[str, float]) -> TwoStageTransfer:
    """One of ``MODELS``, given the meta-features of its task."""
    if name == "none":
        return TwoStageTransfer()
    if name == "tst_m":
        return TwoStageTransfer(memory, distance="meta_features", meta_features=task)
    return TwoStageTransfer(memory)


def search(
    features: FloatArray, losses: FloatArray, surrogate: TwoStageTransfer, trials: int, seed: int
) -> list[int]:
    """Rows tried, in order."""
    tried: list[int] = []
    free = np.ones(len(losses), dtype=bool)
    for k in range(min(trials, len(losses))):
        surrogate.fit(features[tried], losses[tried])
        candidates = np.flatnonzero(free)
        mean, std = surrogate.predict(features[candidates])
        if k:
            utility = log_expected_improvement(mean, std, float(losses[tried].min()))
        elif surrogate.shares_:
            utility = -mean
        else:
            utility = np.random.default_rng(seed).random(len(candidates))
        row = int(candidates[utility.argmax()])
        tried.append(row)
        free[row] = False
    return tried


def propose(
    proposer: Proposer,
    space: VectorSpace,
    vectors: FloatArray,
    losses: FloatArray,
    trials: int,
) -> list[int]:
    """Rows that a proposer tries, in order, in a space that has no other configurations."""
    place = {int(key): row for row, key in enumerate(space.keys(vectors))}
    tried: list[int] = []
    for k in range(min(trials, len(losses))):
        history = History.of(vectors[tried].reshape(-1, space.d), losses[tried])
        vector = proposer.propose(space, history, Streams(0), k).vector
        tried.append(place[int(space.keys(vector[None])[0])])
    return tried


def main(
    methods: Sequence[str] = ("sampler", "default", "none"),
    every: int = 1,
    trials: int = 100,
) -> None:
    """Print the mean regret of each method, on every ``every``-th table."""
    tables, whole = MEMORIES["svm_grid"]()
    memory = sub_grid(whole)
    space, vectors = whole.vector_space, whole.vectors[whole.rows[0]]
    described = {task.name: task.meta_features for task in memory.tasks}
    budgets = [b for b in BUDGETS if b <= trials]
    rows = {}
    for name in methods:
        begin = time.perf_counter()
        used = spoil(memory, name) if name in ("negated", "shuffled") else memory
        curves = []
        for seed, table in list(enumerate(tables))[::every]:
            known = used.without(table.name)
            if name in RECIPES:
                tried = propose(RECIPES[name](known), space, vectors, table.losses, trials)
            else:
                model = model_of(name, known, described[table.name])
                tried = search(space.features(vectors), table.losses, model, trials, seed)
            curves.append(regret(table.losses[tried], best=table.best, worst=table.worst))
        rows[name] = _summary(np.array(curves), budgets, time.perf_counter() - begin)
        print(f"{name}: {rows[name]}", flush=True)
    if trials == 100:
        authors = dict(zip(map(str, BUDGETS), AUTHORS, strict=True))
        rows["(authors)"] = authors | {"mean": 1.56, "found": 97.5, "hit": 15.5}
    print(f"\n{len(curves)} tables, {trials} trials; mean normalised regret in percent")
    print(pd.DataFrame(rows).T.round(2).to_string())


def _summary(curves: FloatArray, budgets: list[int], seconds: float) -> dict[str, float]:
    found = curves <= 0.0
    hits = np.where(found.any(axis=1), found.argmax(axis=1) + 1, np.inf)
    at = {str(b): round(100.0 * float(curves[:, b - 1].mean()), 3) for b in budgets}
    return at | {
        "mean": round(100.0 * float(curves.mean()), 3),
        "found": round(100.0 * float(found[:, -1].mean()), 1),
        "hit": float(np.median(hits)),
        "seconds": round(seconds),
    }


if __name__ == "__main__":
    run_command(__doc__, main, methods=[*MODELS, *RECIPES])
