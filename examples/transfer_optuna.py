"""Ten earlier studies of a support vector machine, and an eleventh on a new data set.

The ten are kept in a journal file, as studies that were run at some time usually are. The eleventh
tunes the same machine on digits: with Optuna's default sampler, which knows nothing of them, and
with ``TSTSampler``, which is given the file.

    python examples/transfer_optuna.py [--journal build/transfer.log] [--n-trials 20] [--seeds 3]
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import optuna
from automl_plugins.adapters.optuna import TSTSampler, explain
from optuna.samplers import BaseSampler, RandomSampler, TPESampler
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend
from optuna.study import Study
from sklearn import datasets
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

Data = tuple[npt.NDArray[Any], npt.NDArray[Any]]

MAX_ROWS = 300
NEW = "digits"


def _diabetes() -> Data:
    X, y = datasets.load_diabetes(return_X_y=True)
    return X, y > np.median(y)


def _made(seed: int, n_informative: int) -> Callable[[], Data]:
    def load() -> Data:
        made: Data = datasets.make_classification(
            MAX_ROWS, 20, n_informative=n_informative, n_classes=3, flip_y=0.1, random_state=seed
        )
        return made

    return load


EARLIER: dict[str, Callable[[], Data]] = {
    "iris": lambda: datasets.load_iris(return_X_y=True),
    "wine": lambda: datasets.load_wine(return_X_y=True),
    "breast_cancer": lambda: datasets.load_breast_cancer(return_X_y=True),
    "diabetes": _diabetes,
    "moons": lambda: datasets.make_moons(MAX_ROWS, noise=0.3, random_state=0),
    "circles": lambda: datasets.make_circles(MAX_ROWS, noise=0.2, factor=0.5, random_state=0),
    "quantiles": lambda: datasets.make_gaussian_quantiles(
        n_samples=MAX_ROWS, n_features=6, n_classes=3, random_state=0
    ),
    "hastie": lambda: datasets.make_hastie_10_2(MAX_ROWS, random_state=0),
    "made_5": _made(0, 5),
    "made_15": _made(1, 15),
}


class Objective:
    """Error of a support vector machine on a data set, 3-fold cross-validation."""

    def __init__(self, load: Callable[[], Data]) -> None:
        X, y = load()
        rows = np.random.default_rng(0).permutation(len(X))[:MAX_ROWS]
        self.X, self.y = X[rows], y[rows]

    def __call__(self, trial: optuna.Trial) -> float:
        options: dict[str, Any] = {
            "kernel": trial.suggest_categorical("kernel", ["linear", "rbf", "poly"]),
            "C": trial.suggest_float("C", 2.0**-8, 2.0**12, log=True),
            "class_weight": trial.suggest_categorical("class_weight", [None, "balanced"]),
        }
        if options["kernel"] != "linear":
            options["gamma"] = trial.suggest_float("gamma", 2.0**-14, 2.0**4, log=True)
        if options["kernel"] == "poly":
            options["degree"] = trial.suggest_int("degree", 2, 5)
        model = make_pipeline(StandardScaler(), SVC(**options, max_iter=20_000, random_state=0))
        folds = StratifiedKFold(3, shuffle=True, random_state=0)
        with threadpool_limits(1), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # some machines do not converge
            scores = cross_val_score(model, self.X, self.y, cv=folds, error_score="raise")
        return 1.0 - float(np.mean(scores))


def studied(journal: Path, n_trials: int) -> None:
    """The ten earlier studies, in the file; what is there already is not run again."""
    journal.parent.mkdir(parents=True, exist_ok=True)
    storage = JournalStorage(JournalFileBackend(str(journal)))
    for seed, (name, load) in enumerate(EARLIER.items()):
        study = optuna.create_study(
            study_name=name,
            storage=storage,
            sampler=RandomSampler(seed=seed) if seed % 2 else TPESampler(seed=seed),
            load_if_exists=True,
        )
        missing = n_trials - len(study.trials)
        if missing > 0:
            study.optimize(Objective(load), n_trials=missing)
        print(f"{name:14s} {len(study.trials):3d} trials, best {study.best_value:.4f}")


def study_on(objective: Objective, sampler: BaseSampler, n_trials: int) -> Study:
    """A new study."""
    study = optuna.create_study(sampler=sampler)
    study.optimize(objective, n_trials=n_trials)
    return study


def show(studies: dict[str, list[Study]], n_trials: int) -> None:
    """Best error so far in %, mean over the seeds."""
    points = [n for n in (1, 2, 3, 5, 10, 15, 20, 30, 50, 100) if n <= n_trials]
    print(f"\nBest error in % after so many trials, {NEW}, mean of {len(studies['TPE'])} seeds")
    print(" " * 4 + "".join(f"{n:8d}" for n in points))
    for name, runs in studies.items():
        best = np.minimum.accumulate([[t.values[0] for t in s.trials] for s in runs], axis=1)
        print(f"{name:4s}" + "".join(f"{100 * best[:, n - 1].mean():8.2f}" for n in points))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--journal", type=Path, default=Path("build/transfer.log"))
    parser.add_argument("--n-earlier", type=int, default=30, help="trials of each earlier study")
    parser.add_argument("--n-trials", type=int, default=20)
    parser.add_argument("--seeds", type=int, default=3)
    args = parser.parse_args()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    studied(args.journal, args.n_earlier)
    objective = Objective(lambda: datasets.load_digits(return_X_y=True))
    seeds = range(args.seeds)
    studies = {
        "TPE": [study_on(objective, TPESampler(seed=s), args.n_trials) for s in seeds],
        "TST": [
            study_on(objective, TSTSampler(str(args.journal), seed=s), args.n_trials)
            for s in seeds
        ],
    }
    show(studies, args.n_trials)
    for trial in (studies["TST"][0].trials[i] for i in (0, args.n_trials // 2, -1)):
        print(f"\n{explain(trial)}")


if __name__ == "__main__":
    main()
