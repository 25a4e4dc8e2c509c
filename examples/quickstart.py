"""Tune a real classifier with GBQRSampler and with Optuna's default sampler, trial for trial.

Two model families on scikit-learn's breast-cancer data, 5-fold cross-validated log loss, one
conditional search space. Prints a table, writes a plot.

    python examples/quickstart.py            # about a minute on two cores
    python examples/quickstart.py --quick    # a few seconds
"""

from __future__ import annotations

import argparse
import functools
import warnings
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
import optuna
from automl_plugins.adapters.optuna import GBQRSampler
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.model_selection import StratifiedKFold, cross_val_score

SAMPLERS = {"GBQRSampler": GBQRSampler, "TPESampler (default)": optuna.samplers.TPESampler}


def objective(trial: optuna.Trial, n_splits: int) -> float:
    """Cross-validated log loss of LightGBM or extra-trees, as ``trial`` decides."""
    family = trial.suggest_categorical("family", ["lightgbm", "extra_trees"])
    if family == "lightgbm":
        parameters: dict[str, Any] = {
            "boosting_type": trial.suggest_categorical("boosting", ["gbdt", "dart"]),
            "n_estimators": trial.suggest_int("n_estimators", 20, 160, step=20),
            "learning_rate": trial.suggest_float("learning_rate", 1e-2, 1.0, log=True),
            "num_leaves": trial.suggest_int("num_leaves", 2, 64, log=True),
            "min_child_samples": trial.suggest_int("min_child_samples", 1, 50),
            "extra_trees": trial.suggest_categorical("extra_trees", [False, True]),
            "class_weight": trial.suggest_categorical("lightgbm_weight", [None, "balanced"]),
        }
        if parameters["boosting_type"] == "dart":
            parameters["drop_rate"] = trial.suggest_float("drop_rate", 0.05, 0.5, step=0.05)
        model = lightgbm.LGBMClassifier(n_jobs=1, random_state=0, verbose=-1, **parameters)
    else:
        model = ExtraTreesClassifier(
            n_estimators=50,
            max_features=trial.suggest_float("max_features", 0.05, 1.0),
            min_samples_leaf=trial.suggest_int("min_samples_leaf", 1, 30, log=True),
            criterion=trial.suggest_categorical("criterion", ["gini", "entropy"]),
            class_weight=trial.suggest_categorical("forest_weight", [None, "balanced"]),
            random_state=0,
        )
    X, y = load_breast_cancer(return_X_y=True)
    folds = StratifiedKFold(n_splits, shuffle=True, random_state=0)
    return -float(cross_val_score(model, X, y, cv=folds, scoring="neg_log_loss").mean())


def search(name: str, seed: int, n_trials: int, n_splits: int) -> tuple[str, int, list[float]]:
    """One study; returns its losses in order."""
    warnings.filterwarnings("ignore", message="X does not have valid feature names")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(sampler=SAMPLERS[name](seed=seed))
    study.optimize(functools.partial(objective, n_splits=n_splits), n_trials=n_trials)
    return name, seed, [trial.value for trial in study.trials if trial.value is not None]


def plot(best: dict[str, np.ndarray], file: Path) -> None:
    """Mean of the best loss so far, by trial."""
    import plotly.graph_objects as go

    figure = go.Figure(
        [go.Scatter(y=curves.mean(axis=0), name=name) for name, curves in best.items()]
    )
    figure.update_layout(
        title="LightGBM or extra-trees on breast cancer",
        xaxis_title="trials",
        yaxis_title="best log loss so far, mean over seeds",
    )
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.write_html(file)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="one seed, few trials")
    parser.add_argument("--n-trials", type=int, default=50)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--plot", type=Path, default=Path("build/quickstart.html"))
    args = parser.parse_args()
    n_trials, n_seeds, n_splits = (12, 1, 2) if args.quick else (args.n_trials, args.seeds, 5)

    losses: dict[str, list[list[float]]] = {name: [] for name in SAMPLERS}
    with ProcessPoolExecutor(2) as pool:
        studies = [
            pool.submit(search, name, seed, n_trials, n_splits)
            for seed in range(n_seeds)
            for name in SAMPLERS
        ]
        for i, future in enumerate(as_completed(studies), 1):
            name, seed, curve = future.result()
            losses[name].append(curve)
            print(f"[{i}/{len(studies)}] {name}, seed {seed}: best {min(curve):.5f}", flush=True)

    best = {name: np.minimum.accumulate(curves, axis=1) for name, curves in losses.items()}
    half = n_trials // 2
    print(f"\nBest log loss, mean over {n_seeds} seeds (smaller is better)")
    print(f"{'sampler':24s} {f'{half} trials':>12s} {f'{n_trials} trials':>12s}")
    for name, curves in best.items():
        middle, end = curves[:, half - 1].mean(), curves[:, -1].mean()
        print(f"{name:24s} {middle:12.5f} {end:12.5f}")
    plot(best, args.plot)
    print(f"\nCurves: {args.plot}")


if __name__ == "__main__":
    main()
