"""SMAC's initial design replaced by what a memory suggests, against its own Sobol points.

A random forest is tuned on a data set that is not in the memory: digits of scikit-learn, whose
family is left out of the bundled memory first (see ``warm_start_tasks.py``).

    python examples/warm_start_smac.py [--n-trials 15] [--seeds 2]
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
from automl_plugins.adapters.smac import MetaInitialDesign
from ConfigSpace import Configuration
from smac import HyperparameterOptimizationFacade, Scenario
from smac.initial_design import AbstractInitialDesign
from warm_start_tasks import NEW, Task, show, space, without_digits

LEARNER = "random_forest"
SUGGESTED = 5

MakeDesign = Callable[[Scenario, Task], AbstractInitialDesign]


def sobol(scenario: Scenario, task: Task) -> AbstractInitialDesign:
    """What SMAC does on its own."""
    return HyperparameterOptimizationFacade.get_initial_design(scenario)


def meta_learned(scenario: Scenario, task: Task) -> AbstractInitialDesign:
    """What earlier data sets say; ``KNNInitialDesign`` does it auto-sklearn's way."""
    design: AbstractInitialDesign = MetaInitialDesign(
        scenario,
        memory=without_digits(LEARNER),
        X=task.X,
        y=task.y,
        n_configs=min(SUGGESTED, scenario.n_trials),
        mode="replace",
    )
    return design


DESIGNS: dict[str, MakeDesign] = {
    "Sobol": sobol,
    "meta-learned": meta_learned,
}


def search(name: str, seed: int, n_trials: int) -> list[float]:
    """One run of SMAC; returns its losses in order."""
    task = Task(NEW, LEARNER)

    def train(config: Configuration, seed: int = 0) -> float:
        return task.loss(config)

    with tempfile.TemporaryDirectory() as folder:
        scenario = Scenario(
            space(LEARNER),
            deterministic=True,
            n_trials=n_trials,
            seed=seed,
            output_directory=Path(folder),
        )
        design = DESIGNS[name](scenario, task)
        if isinstance(design, MetaInitialDesign) and seed == 0:
            print(design.suggestions, end="\n\n", flush=True)
        smac = HyperparameterOptimizationFacade(
            scenario, train, initial_design=design, logging_level=False, overwrite=True
        )
        smac.optimize()
        return [float(np.sum(value.cost)) for value in smac.runhistory.values()]  # one objective


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n-trials", type=int, default=15)
    parser.add_argument("--seeds", type=int, default=2)
    args = parser.parse_args()
    with ProcessPoolExecutor(2) as pool:
        searches = {
            name: [pool.submit(search, name, seed, args.n_trials) for seed in range(args.seeds)]
            for name in DESIGNS
        }
        show({name: [done.result() for done in runs] for name, runs in searches.items()})


if __name__ == "__main__":
    main()
