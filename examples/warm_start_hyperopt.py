"""Start Hyperopt's TPE with suggestions of the bundled memory of support vector machines.

The search space is Hyperopt's own; its labels are matched with the names in the memory. The memory
may also be a store that Optuna or SMAC has written: `memory="build/warm_start.db"`. The data are
handwritten digits, whose family is left out of the memory.

    python examples/warm_start_hyperopt.py [--n-trials 15] [--seeds 2]
"""

import argparse
from functools import partial
from math import log
from typing import Any

import numpy as np
from automl_plugins.adapters.hyperopt import initial_trials
from hyperopt import Trials, fmin, hp, tpe
from sklearn.datasets import load_digits
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from automl_plugins.meta import bundled

X, y = load_digits(return_X_y=True)
MEMORY = bundled("svm").subset(lambda task: task.tags["family"] != "optdigits")
START_UP = {"n_startup_jobs": 10}  # TPE draws these at random; suggestions count among them
SPACE = {
    "kernel": hp.choice("kernel", ["rbf", "poly", "sigmoid"]),
    "C": hp.loguniform("C", log(2.0**-5), log(2.0**15)),
    "gamma": hp.loguniform("gamma", log(2.0**-15), log(2.0**3)),
}


def loss(options: dict[str, Any]) -> float:
    """Balanced error in percent, three folds."""
    model = make_pipeline(StandardScaler(), SVC(**options, max_iter=10_000))
    scores = cross_val_score(model, X, y, scoring="balanced_accuracy", cv=3)
    return 100.0 * (1.0 - float(scores.mean()))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n-trials", type=int, default=15)
    parser.add_argument("--seeds", type=int, default=2)
    args = parser.parse_args()
    algo = partial(tpe.suggest, **START_UP)
    n = min(5, args.n_trials - 1)  # fmin needs room for a trial of its own
    for name in ("cold", "warm"):
        best = []
        for seed in range(args.seeds):
            trials, rng = Trials(), np.random.default_rng(seed)
            if name == "warm":
                trials = initial_trials(SPACE, memory=MEMORY, X=X, y=y, n_configs=n, **START_UP)
            fmin(loss, SPACE, algo=algo, max_evals=args.n_trials, trials=trials, rstate=rng)
            best.append(np.minimum.accumulate(trials.losses()))
        print(f"{name}: best error in % after 1, 2, ... trials", np.mean(best, axis=0).round(1))
