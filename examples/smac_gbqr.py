"""GBQR in SMAC, against SMAC's default, on a data set of scikit-learn.

Tuned are the learner and its hyperparameters, conditional on it, for breast cancer data.

    python examples/smac_gbqr.py
    python examples/smac_gbqr.py --n-trials 60 --seeds 5
"""

from __future__ import annotations

import argparse
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
from automl_plugins.adapters.smac import GBQRFacade
from ConfigSpace import Categorical, Configuration, ConfigurationSpace, EqualsCondition, Float
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from smac import HyperparameterOptimizationFacade, Scenario
from smac.facade.abstract_facade import AbstractFacade

X, Y = load_breast_cancer(return_X_y=True)


def space() -> ConfigurationSpace:
    learner = Categorical("learner", ["svm", "knn"])
    kernel = Categorical("kernel", ["rbf", "poly"])
    c, gamma = Float("C", (1e-3, 1e3), log=True), Float("gamma", (1e-5, 10.0), log=True)
    k = Float("n_neighbors", (1.0, 100.0), log=True)
    made = ConfigurationSpace()
    made.add(learner, kernel, c, gamma, k)
    made.add([EqualsCondition(child, learner, "svm") for child in (kernel, c, gamma)])
    made.add(EqualsCondition(k, learner, "knn"))
    return made


def train(config: Configuration, seed: int = 0) -> float:
    """Error of three-fold cross-validation."""
    model = (
        SVC(C=config["C"], kernel=config["kernel"], gamma=config["gamma"], degree=2)
        if config["learner"] == "svm"
        else KNeighborsClassifier(round(config["n_neighbors"]))
    )
    return 1.0 - float(
        np.mean(cross_val_score(make_pipeline(StandardScaler(), model), X, Y, cv=3))
    )


def default(scenario: Scenario) -> AbstractFacade:
    return HyperparameterOptimizationFacade(scenario, train, logging_level=False, overwrite=True)


def gbqr(scenario: Scenario) -> AbstractFacade:
    facade: AbstractFacade = GBQRFacade(scenario, train, logging_level=False, overwrite=True)
    return facade


def search(name: str, seed: int, n_trials: int) -> tuple[list[float], float]:
    """Errors in order, and seconds SMAC took besides training."""
    with tempfile.TemporaryDirectory() as folder:
        scenario = Scenario(
            space(),
            n_trials=n_trials,
            deterministic=True,
            seed=seed,
            output_directory=Path(folder),
        )
        facade = FACADES[name](scenario)
        start = time.perf_counter()
        best = facade.optimize()
        spent = time.perf_counter() - start
        if isinstance(facade, GBQRFacade) and isinstance(best, Configuration) and seed == 0:
            print(f"GBQR's best: {dict(best)}, error {facade.runhistory.get_cost(best):.4f}")
    values = facade.runhistory.values()
    return [float(np.sum(v.cost)) for v in values], spent - sum(v.time for v in values)


FACADES = {"SMAC": default, "GBQR": gbqr}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--n-trials", type=int, default=25)
    parser.add_argument("--seeds", type=int, default=1)
    args = parser.parse_args()
    warnings.simplefilter("ignore")  # SMAC's own, of empty means
    points = [n for n in (5, 10, 15, 20, 25, 40, 60) if n <= args.n_trials]
    rows = []
    for name in FACADES:
        found = [search(name, seed, args.n_trials) for seed in range(args.seeds)]
        best = np.mean([np.minimum.accumulate(errors) for errors, _ in found], axis=0)
        overhead = np.mean([spent for _, spent in found]) / args.n_trials
        cells = "".join(f"{100 * best[n - 1]:8.2f}" for n in points)
        rows.append(f"{name:6s}{cells}{overhead:13.3f}")
    print("\nBest error in % after so many trials, and SMAC's own seconds for each")
    print(" " * 6 + "".join(f"{n:8d}" for n in points) + f"{'s/trial':>13s}")
    print("\n".join(rows))


if __name__ == "__main__":
    main()
