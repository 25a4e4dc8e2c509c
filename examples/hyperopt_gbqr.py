"""GBQR as ``algo=`` of Hyperopt's fmin, beside TPE: a classifier for handwritten digits.

The search space has three classifiers with hyperparameters of their own; one evaluation is 3-fold
balanced accuracy on real data. Prints the best error after some trials, the mean over two seeds.
Then it shows what drove a proposal, and goes on with a search by another algorithm.

    python examples/hyperopt_gbqr.py [--n-trials 35] [--seeds 2]
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from automl_plugins.adapters.hyperopt import ei_per_second, gbqr
from hyperopt import STATUS_OK, Trials, fmin, hp, space_eval, tpe
from sklearn.datasets import load_digits
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

SPACE = hp.choice(
    "classifier",
    [
        {
            "type": "svm",
            "C": hp.loguniform("C", math.log(2.0**-5), math.log(2.0**15)),
            "gamma": hp.loguniform("gamma", math.log(2.0**-20), math.log(2.0**-3)),
        },
        {
            "type": "neighbours",
            "n_neighbors": hp.uniformint("n_neighbors", 1, 30),
            "weights": hp.choice("weights", ["uniform", "distance"]),
            "p": hp.choice("p", [1, 2]),
        },
        {
            "type": "extra_trees",
            "max_features": hp.uniform("max_features", 0.05, 1.0),
            "min_samples_leaf": hp.uniformint("min_samples_leaf", 1, 20),
            "criterion": hp.choice("criterion", ["gini", "entropy"]),
        },
    ],
)
MAKE: dict[str, Callable[..., Any]] = {
    "svm": SVC,
    "neighbours": KNeighborsClassifier,
    "extra_trees": lambda **options: ExtraTreesClassifier(20, random_state=0, **options),
}
FOLDS = StratifiedKFold(3, shuffle=True, random_state=0)
X, Y = load_digits(return_X_y=True)
X, Y = X[::3], Y[::3]


def objective(configuration: Mapping[str, Any]) -> dict[str, Any]:
    """One minus the balanced accuracy, and the seconds that it took."""
    options = dict(configuration)
    start = time.perf_counter()
    with threadpool_limits(1):
        model = MAKE[options.pop("type")](**options)
        scores = cross_val_score(model, X, Y, cv=FOLDS, scoring="balanced_accuracy")
    seconds = time.perf_counter() - start
    return {"status": STATUS_OK, "loss": 1.0 - float(scores.mean()), "seconds": seconds}


def search(algo: Any, n_trials: int, seed: int, trials: Trials | None = None) -> Trials:
    """``max_evals`` counts the trials that are there."""
    trials = Trials() if trials is None else trials
    fmin(
        objective,
        SPACE,
        algo=algo,
        max_evals=n_trials,
        trials=trials,
        rstate=np.random.default_rng(seed),
        show_progressbar=False,
    )
    return trials


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--n-trials", type=int, default=35)
    parser.add_argument("--seeds", type=int, default=2)
    args = parser.parse_args()

    searches = {
        name: [search(algo, args.n_trials, seed) for seed in range(args.seeds)]
        for name, algo in (("tpe.suggest", tpe.suggest), ("gbqr", gbqr))
    }
    at = [n for n in (10, 15, 20, 25, 30, 35, 50, 75, 100) if n <= args.n_trials]
    print("Best error in % after so many trials")
    print(" " * 12 + "".join(f"{n:8d}" for n in at))
    for name, runs in searches.items():
        curves = np.minimum.accumulate([run.losses() for run in runs], axis=1)
        print(f"{name:12s}" + "".join(f"{100 * curves[:, n - 1].mean():8.2f}" for n in at))

    trials = searches["gbqr"][0]
    best = trials.best_trial
    print(f"\nThe best of the first search by gbqr: {space_eval(SPACE, trials.argmin)}")
    print(f"What drove it: {best['misc']['automl_plugins']['proposal']}")

    search(ei_per_second, args.n_trials + 5, 0, trials)
    print("\nFive more trials by ei_per_second:")
    for document in trials.trials[-5:]:
        expected = document["misc"]["automl_plugins"]["proposal"].get("seconds", math.nan)
        loss, seconds = (document["result"][key] for key in ("loss", "seconds"))
        print(f"error {100 * loss:6.2f} %, {seconds:.3f} s (expected {expected:.3f})")


if __name__ == "__main__":
    main()
