"""SMAC with the suggestions of a memory as its initial design, against SMAC's own Sobol points.

A random forest is tuned on handwritten digits, whose family is left out of the bundled memory.

    python examples/warm_start_smac.py [--n-trials 15] [--seeds 2]
"""

import argparse

import numpy as np
from automl_plugins.adapters.smac import MetaInitialDesign
from ConfigSpace import Configuration
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import cross_val_score
from smac import HyperparameterOptimizationFacade, Scenario

from automl_plugins.meta import bundled

X, y = load_digits(return_X_y=True)
MEMORY = bundled("random_forest").subset(lambda task: task.tags["family"] != "optdigits")


def train(config: Configuration, seed: int = 0) -> float:
    """Balanced error in percent, three folds."""
    options = {name: None if value == "none" else value for name, value in config.items()}
    model = RandomForestClassifier(50, random_state=0, **options)
    scores = cross_val_score(model, X, y, scoring="balanced_accuracy", cv=3)
    return 100.0 * (1.0 - float(scores.mean()))


def search(seed: int, n_trials: int, warm: bool) -> list[float]:
    scenario = Scenario(MEMORY.space, deterministic=True, n_trials=n_trials, seed=seed)
    design = HyperparameterOptimizationFacade.get_initial_design(scenario)
    if warm:
        options = {"n_configs": min(5, n_trials), "mode": "replace"}  # no Sobol points beside them
        design = MetaInitialDesign(scenario, memory=MEMORY, X=X, y=y, **options)
    smac = HyperparameterOptimizationFacade(scenario, train, initial_design=design, overwrite=True)
    smac.optimize()
    return [float(np.sum(value.cost)) for value in smac.runhistory.values()]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n-trials", type=int, default=15)
    parser.add_argument("--seeds", type=int, default=2)
    args = parser.parse_args()
    for name, warm in (("Sobol", False), ("meta-learned", True)):
        losses = [search(seed, args.n_trials, warm) for seed in range(args.seeds)]
        best = np.minimum.accumulate(losses, axis=1).mean(axis=0)
        print(f"{name:13s} best error in % after 1, 2, ... trials: {best.round(2)}", flush=True)
