"""Record three studies into one SQLite file, and begin new studies with its suggestions.

A study is recorded by a callback, here and in the other frameworks.

    python examples/warm_start_optuna.py [--n-trials 15] [--seeds 2]
"""

import argparse
from functools import partial
from pathlib import Path

import numpy as np
import optuna
from automl_plugins.adapters.optuna import enqueue_initial_design, record
from sklearn import datasets
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from automl_plugins.meta import MetaStore, meta_features

FILE = Path("build/warm_start.db")


def objective(trial: optuna.Trial, X: np.ndarray, y: np.ndarray) -> float:
    kernel = trial.suggest_categorical("kernel", ["rbf", "poly", "sigmoid"])
    C = trial.suggest_float("C", 2.0**-5, 2.0**15, log=True)
    gamma = trial.suggest_float("gamma", 2.0**-15, 2.0**3, log=True)
    model = make_pipeline(StandardScaler(), SVC(kernel=kernel, C=C, gamma=gamma, max_iter=10_000))
    return 100.0 * (1.0 - float(cross_val_score(model, X, y, cv=3).mean()))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n-trials", type=int, default=15)
    parser.add_argument("--seeds", type=int, default=2)
    args = parser.parse_args()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    FILE.parent.mkdir(exist_ok=True)
    store = MetaStore(FILE)
    for data in (datasets.load_iris, datasets.load_wine, datasets.load_breast_cancer):
        X, y = data(return_X_y=True)
        remember = record(store, task=data.__name__, meta_features=meta_features(X, y))
        earlier = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=0))
        earlier.optimize(partial(objective, X=X, y=y), n_trials=30, callbacks=[remember])
        print(f"{data.__name__}: {remember.n_recorded} trials, best {earlier.best_value:.2f} %")
    X, y = datasets.load_digits(return_X_y=True)
    space = earlier.best_trial.distributions
    for name in ("cold", "warm"):
        best = []
        for seed in range(args.seeds):
            study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=seed))
            if name == "warm":
                print(enqueue_initial_design(study, memory=store, X=X, y=y, search_space=space))
            search = partial(objective, X=X, y=y)
            study.optimize(search, args.n_trials, show_progress_bar=True)
            best.append(np.minimum.accumulate([t.values[0] for t in study.trials if t.values]))
        print(f"digits, {name}: best error after 1, 2, ... trials", np.mean(best, axis=0).round(1))
