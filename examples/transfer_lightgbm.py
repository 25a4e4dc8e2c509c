"""Tune LightGBM with its bundled memory: AutoSampler("lightgbm"), no history of yours needed.

Compared with Optuna's default sampler, alone and with the library's default as its first trial;
the memory leaves out the families of the data sets.

    python examples/transfer_lightgbm.py [--n-trials 10] [--seeds 5]
"""

import argparse
import warnings
from functools import partial
from typing import Any

import numpy as np
import optuna
from automl_plugins.adapters.optuna import AutoSampler
from lightgbm import LGBMClassifier
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.model_selection import cross_val_score

from automl_plugins.meta import bundled

MEMORY = bundled("lightgbm")
DATA = {"breast cancer wisconsin": load_breast_cancer, "wine": load_wine}
# The default of the library; its reg_lambda is 0, which has no logarithm.
DEFAULT = {
    "n_estimators": 100,
    "learning_rate": 0.1,
    "num_leaves": 31,
    "min_child_samples": 20,
    "colsample_bytree": 1.0,
    "reg_lambda": 1e-8,
}


def objective(trial: optuna.Trial, family: str) -> float:
    """Balanced error in percent, three folds."""
    options: dict[str, Any] = {
        "n_estimators": trial.suggest_int("n_estimators", 10, 100, log=True),
        "learning_rate": trial.suggest_float("learning_rate", 1e-3, 0.5, log=True),
        "num_leaves": trial.suggest_int("num_leaves", 2, 128, log=True),
        "min_child_samples": trial.suggest_int("min_child_samples", 1, 100, log=True),
        "colsample_bytree": trial.suggest_float("colsample_bytree", 0.2, 1.0),
        "reg_lambda": trial.suggest_float("reg_lambda", 1e-8, 10.0, log=True),
    }
    model = LGBMClassifier(n_jobs=1, random_state=0, verbose=-1, **options)
    X, y = DATA[family](return_X_y=True)
    scores = cross_val_score(model, X, y, scoring="balanced_accuracy", cv=3)
    return 100.0 * (1.0 - float(scores.mean()))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n-trials", type=int, default=10)
    parser.add_argument("--seeds", type=int, default=5)
    args = parser.parse_args()
    warnings.filterwarnings("ignore", message="X does not have valid feature names")
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    print(f"Balanced error in % after 1, 2, ... trials, mean of {args.seeds} (less is better)")
    for family in DATA:
        unseen = MEMORY.without(*(t.name for t in MEMORY.tasks if t.tags["family"] == family))
        tuned = partial(objective, family=family)
        for name, make, first in (
            ("TPESampler", optuna.samplers.TPESampler, None),
            ("TPESampler, default first", optuna.samplers.TPESampler, DEFAULT),
            ("AutoSampler", partial(AutoSampler, unseen), None),
        ):
            best = []
            for seed in range(args.seeds):
                study = optuna.create_study(sampler=make(seed=seed))
                if first:
                    study.enqueue_trial(first)
                study.optimize(tuned, n_trials=args.n_trials, show_progress_bar=True)
                best.append(np.minimum.accumulate([trial.values[0] for trial in study.trials]))
            print(family, name, np.mean(best, axis=0).round(1), flush=True)
