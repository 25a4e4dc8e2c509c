"""Tune a real classifier with AutoSampler and with Optuna's default sampler.

LightGBM or extra-trees on scikit-learn's breast cancer data, 5-fold cross-validated log loss.

    python examples/quickstart.py [--n-trials 50] [--seeds 3]    # about two minutes
"""

import argparse
import warnings
from typing import Any

import numpy as np
import optuna
from automl_plugins.adapters.optuna import AutoSampler
from lightgbm import LGBMClassifier
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.model_selection import cross_val_score

X, y = load_breast_cancer(return_X_y=True)


def objective(trial: optuna.Trial) -> float:
    """The log loss of the classifier that ``trial`` suggests."""
    if trial.suggest_categorical("family", ["lightgbm", "extra_trees"]) == "lightgbm":
        options: dict[str, Any] = {
            "n_estimators": trial.suggest_int("n_estimators", 20, 160, step=20),
            "learning_rate": trial.suggest_float("learning_rate", 1e-2, 1.0, log=True),
            "num_leaves": trial.suggest_int("num_leaves", 2, 64, log=True),
            "min_child_samples": trial.suggest_int("min_child_samples", 1, 50),
            "extra_trees": trial.suggest_categorical("extra_trees", [False, True]),
            "class_weight": trial.suggest_categorical("lightgbm_weight", [None, "balanced"]),
        }
        model = LGBMClassifier(n_jobs=1, random_state=0, verbose=-1, **options)
    else:
        model = ExtraTreesClassifier(
            n_estimators=50,
            max_features=trial.suggest_float("max_features", 0.05, 1.0),
            min_samples_leaf=trial.suggest_int("min_samples_leaf", 1, 30, log=True),
            class_weight=trial.suggest_categorical("forest_weight", [None, "balanced"]),
            random_state=0,
        )
    return -float(cross_val_score(model, X, y, cv=5, scoring="neg_log_loss").mean())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n-trials", type=int, default=50)
    parser.add_argument("--seeds", type=int, default=3)
    args = parser.parse_args()
    warnings.filterwarnings("ignore", message="X does not have valid feature names")
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    for sampler in (optuna.samplers.TPESampler, AutoSampler):
        best = []
        for seed in range(args.seeds):
            study = optuna.create_study(sampler=sampler(seed=seed))
            study.optimize(objective, n_trials=args.n_trials, show_progress_bar=True)
            best.append(study.best_value)
        print(f"{sampler.__name__}: mean log loss {np.mean(best):.5f} (less is better)")
