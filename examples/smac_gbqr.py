"""GBQR in SMAC, against SMAC's default: a support vector machine on breast cancer data.

The search tunes the kernel and its conditional hyperparameters.

    python examples/smac_gbqr.py [--n-trials 25] [--seeds 1]
"""

import argparse
import time
from typing import Any

import numpy as np
from automl_plugins.adapters.smac import GBQRFacade
from ConfigSpace import Categorical, Configuration, ConfigurationSpace, EqualsCondition, Float
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from smac import HyperparameterOptimizationFacade, Scenario

X, y = load_breast_cancer(return_X_y=True)
KERNEL = Categorical("kernel", ["linear", "rbf", "poly"])
COST, DEGREE = Float("C", (1e-3, 1e3), log=True), Categorical("degree", [2, 3, 4])
GAMMA, COEF0 = Float("gamma", (1e-5, 10.0), log=True), Float("coef0", (0.0, 1.0))
SPACE = ConfigurationSpace()
SPACE.add(KERNEL, COST, GAMMA, DEGREE, COEF0, EqualsCondition(GAMMA, KERNEL, "rbf"))
SPACE.add([EqualsCondition(child, KERNEL, "poly") for child in (DEGREE, COEF0)])


def train(config: Configuration, seed: int = 0) -> float:
    """Error of three-fold cross-validation in percent."""
    model = make_pipeline(StandardScaler(), SVC(**config))
    return 100.0 * (1.0 - float(cross_val_score(model, X, y, cv=3).mean()))


def search(facade: Any, n_trials: int, seed: int) -> float:
    """The best error."""
    scenario = Scenario(SPACE, deterministic=True, n_trials=n_trials, seed=seed)
    smac = facade(scenario, train, overwrite=True)
    return float(smac.runhistory.get_cost(smac.optimize()))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n-trials", type=int, default=25)
    parser.add_argument("--seeds", type=int, default=1)
    args = parser.parse_args()
    for facade in (HyperparameterOptimizationFacade, GBQRFacade):
        start = time.perf_counter()
        best = [search(facade, args.n_trials, seed) for seed in range(args.seeds)]
        seconds = time.perf_counter() - start
        print(f"{facade.__name__}: best error {np.mean(best):.2f} %, {seconds:.0f} s in all")
