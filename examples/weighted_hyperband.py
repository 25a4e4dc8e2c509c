"""Weighted model sampling under Hyperband, with training rows as the resource.

The more hyperparameters a classifier has, the more of its configurations are drawn: p ~ 2^N. A
configuration is trained on a ninth of the rows, a third, then all, unless Hyperband stops it.

    python examples/weighted_hyperband.py [--seconds 30]
"""

import argparse
from typing import Any

import optuna
from automl_plugins.adapters.optuna import WeightedModelSampler, arm_report
from sklearn.datasets import load_digits
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import SVC

X, X_valid, y, y_valid = train_test_split(*load_digits(return_X_y=True), random_state=0)


def suggest(trial: optuna.Trial) -> Any:
    name = trial.suggest_categorical("classifier", ["bayes", "svm", "trees"])
    if name == "bayes":
        return GaussianNB(var_smoothing=trial.suggest_float("var_smoothing", 1e-9, 1.0, log=True))
    if name == "svm":
        gamma = trial.suggest_float("gamma", 1e-5, 0.1, log=True)
        return SVC(gamma=gamma, C=trial.suggest_float("C", 1e-2, 1e4, log=True))
    return ExtraTreesClassifier(
        n_estimators=trial.suggest_int("n_estimators", 5, 100, log=True),
        max_features=trial.suggest_float("max_features", 0.05, 1.0),
        min_samples_leaf=trial.suggest_int("min_samples_leaf", 1, 20, log=True),
        max_depth=trial.suggest_int("max_depth", 2, 20),
    )


def objective(trial: optuna.Trial) -> float:
    model, score = suggest(trial), 0.0
    for ninths in (1, 3, 9):
        n = len(y) * ninths // 9
        score = float(model.fit(X[:n], y[:n]).score(X_valid, y_valid))
        trial.report(score, ninths)
        if ninths < 9 and trial.should_prune():
            raise optuna.TrialPruned
    return score


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=30.0)
    timeout = parser.parse_args().seconds
    pruner = optuna.pruners.HyperbandPruner(1, 9, reduction_factor=3)
    study = optuna.create_study(
        direction="maximize", sampler=WeightedModelSampler("classifier", seed=0), pruner=pruner
    )
    study.optimize(objective, timeout=timeout)
    print(arm_report(study))
    print(f"Best accuracy {study.best_value:.4f}: {study.best_params}")
