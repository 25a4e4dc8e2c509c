"""LightGBM, tuned with what the package knows of it: TSTSampler("lightgbm"), no history of yours.

Beside Optuna's default sampler. The data sets searched here, and their families, are left out of
the bundled memory, so that the comparison is fair; for your own data its name is enough.

    python examples/transfer_lightgbm.py [--n-trials 10] [--seeds 5]
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
import optuna
from automl_plugins.adapters.optuna import TSTSampler
from lightgbm import LGBMClassifier
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.model_selection import cross_val_score

from automl_plugins.meta import MetaDataset, bundled

DATA = {"breast cancer wisconsin": load_breast_cancer, "wine": load_wine}


def search(family: str, memory: MetaDataset | None, seed: int, n_trials: int) -> list[float]:
    """The best error after each trial, in percent; without a memory TPE's."""
    X, y = DATA[family](return_X_y=True)

    def objective(trial: optuna.Trial) -> float:
        model = LGBMClassifier(
            n_estimators=trial.suggest_int("n_estimators", 10, 100, log=True),
            learning_rate=trial.suggest_float("learning_rate", 1e-3, 0.5, log=True),
            num_leaves=trial.suggest_int("num_leaves", 2, 128, log=True),
            min_child_samples=trial.suggest_int("min_child_samples", 1, 100, log=True),
            colsample_bytree=trial.suggest_float("colsample_bytree", 0.2, 1.0),
            reg_lambda=trial.suggest_float("reg_lambda", 1e-8, 10.0, log=True),
            n_jobs=1,
            random_state=0,
            verbose=-1,
        )
        scores = cross_val_score(model, X, y, scoring="balanced_accuracy", cv=3)
        return 100.0 * (1.0 - float(scores.mean()))

    default = optuna.samplers.TPESampler(seed=seed)
    study = optuna.create_study(sampler=TSTSampler(memory, seed=seed) if memory else default)
    study.optimize(objective, n_trials=n_trials)
    return list(np.minimum.accumulate([trial.values[0] for trial in study.trials]))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--n-trials", type=int, default=10)
    parser.add_argument("--seeds", type=int, default=5)
    args = parser.parse_args()
    warnings.filterwarnings("ignore", message="X does not have valid feature names")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    points = [n for n in (1, 3, 5, 10, 20, 30) if n <= args.n_trials]
    print(f"Balanced error in % after {points} trials, 3 folds, mean over {args.seeds} seeds")
    for family in DATA:
        unseen = bundled("lightgbm").subset(lambda task: task.tags["family"] != family)  # noqa: B023
        for name, memory in (("TPESampler (default)", None), ("TSTSampler", unseen)):
            curves = [search(family, memory, s, args.n_trials) for s in range(args.seeds)]
            means = np.mean(curves, axis=0)[[n - 1 for n in points]]
            print(f"{family:24s}{name:21s}" + "".join(f"{mean:7.2f}" for mean in means))
