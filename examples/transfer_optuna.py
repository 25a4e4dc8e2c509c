"""Earlier studies of a support vector machine, and new ones that learn from them.

The earlier studies are kept in a file, as usual, and AutoSampler is given the file. Optuna's
default sampler, for comparison, knows nothing of them.

    python examples/transfer_optuna.py [--n-trials 20] [--seeds 3]
"""

import argparse
from functools import partial
from pathlib import Path

import numpy as np
import optuna
from automl_plugins.adapters.optuna import AutoSampler, explain
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend
from sklearn import datasets
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

FILE = Path("build/transfer.log")


def objective(trial: optuna.Trial, data: str) -> float:
    """Error in percent, three folds."""
    kernel = trial.suggest_categorical("kernel", ["rbf", "poly", "sigmoid"])
    C = trial.suggest_float("C", 2.0**-5, 2.0**15, log=True)
    gamma = trial.suggest_float("gamma", 2.0**-15, 2.0**3, log=True)
    model = make_pipeline(StandardScaler(), SVC(kernel=kernel, C=C, gamma=gamma, max_iter=10_000))
    X, y = getattr(datasets, f"load_{data}")(return_X_y=True)
    return 100.0 * (1.0 - float(cross_val_score(model, X[:600], y[:600], cv=3).mean()))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n-trials", type=int, default=20)
    parser.add_argument("--seeds", type=int, default=3)
    args = parser.parse_args()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    FILE.parent.mkdir(exist_ok=True)
    storage = JournalStorage(JournalFileBackend(str(FILE)))
    for data in ("iris", "wine", "breast_cancer"):
        study = optuna.create_study(storage=storage, study_name=data, load_if_exists=True)
        missing = 30 - len(study.trials)  # what is in the file is not repeated
        study.optimize(partial(objective, data=data), n_trials=missing, show_progress_bar=True)
        print(f"{data}: {len(study.trials)} trials, best error {study.best_value:.2f} %")
    print(f"digits: best error in % after 1, 2, ... trials, mean over {args.seeds} seeds")
    new = partial(objective, data="digits")
    for make in (optuna.samplers.TPESampler, partial(AutoSampler, str(FILE))):
        best = []
        for seed in range(args.seeds):
            study = optuna.create_study(sampler=make(seed=seed))
            study.optimize(new, n_trials=args.n_trials, show_progress_bar=True)
            best.append(np.minimum.accumulate([trial.values[0] for trial in study.trials]))
        print(type(study.sampler).__name__, np.mean(best, axis=0).round(1), flush=True)
    print(explain(study.best_trial))
