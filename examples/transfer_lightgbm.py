"""Tune LightGBM with its bundled memory: AutoSampler("lightgbm"), no history of yours needed.

Prints the mean balanced error in %, also of TPE: alone, and with the library's default first.

    python examples/transfer_lightgbm.py [--n-trials 10] [--seeds 5]
"""

import argparse
from functools import partial

import numpy as np
import optuna
from automl_plugins.adapters.optuna import AutoSampler
from lightgbm import LGBMClassifier
from optuna.samplers import TPESampler
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.model_selection import cross_val_score

from automl_plugins.meta import bundled

MEMORY = bundled("lightgbm")
DATA = {"breast cancer wisconsin": load_breast_cancer, "wine": load_wine}
DEFAULT = LGBMClassifier().get_params() | {"reg_lambda": 1e-8}  # 0 has no logarithm


def objective(trial: optuna.Trial, family: str) -> float:
    """Balanced error in percent, three folds."""
    model = LGBMClassifier(
        n_estimators=trial.suggest_int("n_estimators", 10, 100, log=True),
        learning_rate=trial.suggest_float("learning_rate", 1e-3, 0.5, log=True),
        num_leaves=trial.suggest_int("num_leaves", 2, 128, log=True),
        min_child_samples=trial.suggest_int("min_child_samples", 1, 100, log=True),
        colsample_bytree=trial.suggest_float("colsample_bytree", 0.2, 1.0),
        reg_lambda=trial.suggest_float("reg_lambda", 1e-8, 10.0, log=True),
    ).set_params(n_jobs=1, random_state=0, verbose=-1)
    X, y = DATA[family](return_X_y=True)
    scores = cross_val_score(model, X, y, scoring="balanced_accuracy", cv=3)
    return 100.0 * (1.0 - float(scores.mean()))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n-trials", type=int, default=10)
    parser.add_argument("--seeds", type=int, default=5)
    args = parser.parse_args()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    for family in DATA:
        unseen = MEMORY.without(*(t.name for t in MEMORY.tasks if t.tags["family"] == family))
        for name in ("TPE", "TPE, default first", "AutoSampler"):
            make = TPESampler if "TPE" in name else partial(AutoSampler, unseen)
            best = []
            for seed in range(args.seeds):
                study = optuna.create_study(sampler=make(seed=seed))
                if "default" in name:
                    study.enqueue_trial(DEFAULT)
                study.optimize(partial(objective, family=family), n_trials=args.n_trials)
                best.append(np.minimum.accumulate([trial.values[0] for trial in study.trials]))
            means = " ".join(f"{error:.1f}" for error in np.mean(best, axis=0))
            print(f"{family}, {name}: best error in % after 1, 2, ... trials {means}", flush=True)
