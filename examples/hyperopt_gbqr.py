"""GBQR as algo= of Hyperopt's fmin, compared with TPE: a classifier of handwritten digits.

Three classifiers with hyperparameters of their own; the loss is the balanced error of three folds.

    python examples/hyperopt_gbqr.py [--n-trials 35] [--seeds 2]
"""

import argparse
from math import log
from typing import Any

import numpy as np
from automl_plugins.adapters.hyperopt import explain, gbqr
from hyperopt import Trials, fmin, hp, space_eval, tpe
from sklearn.datasets import load_digits
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.model_selection import cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC

X, y = load_digits(return_X_y=True)
MAKE = {"svm": SVC, "knn": KNeighborsClassifier, "trees": ExtraTreesClassifier}
SPACE = hp.choice(
    "classifier",
    [
        {
            "name": "svm",
            "C": hp.loguniform("C", log(2.0**-5), log(2.0**15)),
            "gamma": hp.loguniform("gamma", log(2.0**-20), log(2.0**-3)),
        },
        {"name": "knn", "n_neighbors": hp.uniformint("n_neighbors", 1, 30)},
        {"name": "trees", "max_features": hp.uniform("max_features", 0.05, 1.0)},
    ],
)


def loss(configuration: dict[str, Any]) -> float:
    """Balanced error in percent."""
    options = dict(configuration)
    model = MAKE[options.pop("name")](**options)
    scores = cross_val_score(model, X[::3], y[::3], scoring="balanced_accuracy", cv=3)
    return 100.0 * (1.0 - float(scores.mean()))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n-trials", type=int, default=35)
    parser.add_argument("--seeds", type=int, default=2)
    args = parser.parse_args()
    for name, algo in (("tpe.suggest", tpe.suggest), ("gbqr", gbqr)):
        best = []
        for seed in range(args.seeds):
            trials, rng = Trials(), np.random.default_rng(seed)
            fmin(loss, SPACE, algo=algo, max_evals=args.n_trials, trials=trials, rstate=rng)
            best.append(np.minimum.accumulate(trials.losses())[::5])
        print(f"{name}: best error in % after 1, 6, ... trials", np.mean(best, axis=0).round(2))
    print(f"The best of the last one: {space_eval(SPACE, trials.argmin)}")
    print(f"What drove it: {explain(trials.best_trial)}")
