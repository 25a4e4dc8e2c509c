"""Choose among four classifiers and tune them at once, in one minute: BOASF over Optuna's TPE.

Each classifier is an arm with its own parameters. Three rounds share the seconds among the arms;
after each, an arm stays by chance, the likelier the better it is. Prints and plots the seconds of
each classifier.

    python examples/boasf_optuna.py [--seconds 60]
"""

import argparse
from pathlib import Path
from typing import Any

import optuna
from automl_plugins.adapters.optuna import BOASFSampler, arm_report
from sklearn.datasets import load_digits
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.model_selection import cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC

from automl_plugins.visualization import plot_arm_allocation

PLOT = Path("build/boasf_optuna.html")
X, y = load_digits(return_X_y=True)


def suggest(trial: optuna.Trial) -> Any:
    """The classifier of a trial; only its own parameters are suggested."""
    name = trial.suggest_categorical("classifier", ["svm", "knn", "trees", "bayes"])
    if name == "svm":
        C = trial.suggest_float("C", 1e-2, 1e4, log=True)
        return SVC(C=C, gamma=trial.suggest_float("gamma", 1e-5, 1e-2, log=True))
    if name == "knn":
        return KNeighborsClassifier(trial.suggest_int("n_neighbors", 1, 50, log=True))
    if name == "trees":
        return ExtraTreesClassifier(max_features=trial.suggest_float("max_features", 0.05, 1.0))
    return GaussianNB(var_smoothing=trial.suggest_float("var_smoothing", 1e-9, 1.0, log=True))


def objective(trial: optuna.Trial) -> float:
    return float(cross_val_score(suggest(trial), X, y, cv=3).mean())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    budget = parser.parse_args().seconds
    sampler = BOASFSampler("classifier", seconds=budget, stop_when_spent=True, seed=0)
    study = optuna.create_study(direction="maximize", sampler=sampler)
    study.optimize(objective)
    report = arm_report(study)
    print(f"{report}\nBest accuracy {study.best_value:.4f}: {study.best_params}\nPlot: {PLOT}")
    PLOT.parent.mkdir(exist_ok=True)
    plot_arm_allocation(report, unit="seconds").write_html(PLOT)
