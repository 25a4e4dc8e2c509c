"""Searches whose ranges change: by hand, between branches, or with other parameters.

Methods are samplers of Optuna. Searches are appended to a file; a search in the file is not run
again.

    benchmark_ranges.py  # 8 changes, 8 seeds

Regret is the best loss after the change, less the least possible one.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import optuna
from benchmark_choices import METHODS
from common import keep_rows, run_command
from optuna.samplers import PartialFixedSampler

BEFORE, AFTER = 40, 30  # trials before and after a change
_LEAST = 16.0  # the loss of x = 0, the best value that a change leaves


def bowl(high: float) -> Callable[[optuna.Trial], float]:
    """(x - 4)^2 + (y - 1)^2 + (z + 2)^2 with x in [-5, high]."""

    def loss(trial: optuna.Trial) -> float:
        x = trial.suggest_float("x", -5, high)
        y, z = trial.suggest_float("y", -5, 5), trial.suggest_float("z", -5, 5)
        return (x - 4) ** 2 + (y - 1) ** 2 + (z + 2) ** 2

    return loss


def optimizers(trial: optuna.Trial) -> float:
    """A rate that has another range with each of two optimizers, one of them worse by 5."""
    worse = trial.suggest_categorical("optimizer", ["sgd", "adam"]) == "sgd"
    low, high = (1e-1, 10.0) if worse else (1e-5, 1e-2)
    rate = np.log10(trial.suggest_float("rate", low, high, log=True)) + (0 if worse else 3)
    decay = np.log10(trial.suggest_float("decay", 1e-6, 1e-1, log=True)) + 4
    momentum = trial.suggest_float("momentum", 0, 1) - 0.3
    return float(rate**2 + decay**2 + momentum**2 + 5 * worse)


def integers(trial: optuna.Trial) -> float:
    """Two parameters in ranges that others define."""
    a = trial.suggest_int("a", 1, 50)
    b = trial.suggest_int("b", 1, a)
    c = trial.suggest_float("c", a, a + b)
    return (a - 20) ** 2 / 100 + (b - 3) ** 2 / 10 + (c - 22) ** 2 / 10


def layers(trial: optuna.Trial) -> float:
    """Up to four layers, none of them wider than the one before."""
    n, width = trial.suggest_int("layers", 1, 4), 512
    loss = float(abs(n - 3))
    for i in range(n):
        width = trial.suggest_int(f"width {i}", 4, width, log=True)
        loss += abs(np.log2(width) - (7 - i)) / 2
    return loss


def shares(trial: optuna.Trial) -> float:
    """Three shares of a whole."""
    a = trial.suggest_float("a", 0, 1)
    b = trial.suggest_float("b", 0, 1 - a)
    c = trial.suggest_float("c", 0, 1 - a - b)
    return abs(a - 0.3) + abs(b - 0.5) + abs(c - 0.1)


WHOLE = {  # searches from the first trial on, and their number of trials
    "two ranges": (optimizers, 100),
    "integers": (integers, 40),
    "layers": (layers, 50),
    "shares": (shares, 50),
}
CHANGES = ("shrunk", "shrunk, anew", "fixed", "fixed, anew", *WHOLE)


def fixed(sampler: optuna.samplers.BaseSampler) -> PartialFixedSampler:
    """The sampler with x = 0."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        return PartialFixedSampler({"x": 0.0}, sampler)


def search(change: str, method: str, seed: int) -> dict[str, Any]:
    """The regret after the change."""
    study = optuna.create_study(sampler=METHODS[method](seed=seed))
    if change in WHOLE:
        objective, n_trials = WHOLE[change]
        study.optimize(objective, n_trials=n_trials)
        return {"regret": study.best_value}
    begun = not change.endswith("anew")
    if begun:
        study.optimize(bowl(5.0), n_trials=BEFORE)
    if change.startswith("fixed"):
        study.sampler = fixed(study.sampler)
    study.optimize(bowl(0.0 if change.startswith("shrunk") else 5.0), n_trials=AFTER)
    found = min(trial.values[0] for trial in study.trials[BEFORE if begun else 0 :])
    return {"regret": found - _LEAST}


def main(
    changes: Sequence[str] = CHANGES, methods: Sequence[str] = tuple(METHODS), seeds: int = 8
) -> None:
    """Run the missing searches and print the medians."""
    wanted = product(changes, methods, range(seeds))
    found = keep_rows(Path("build/ranges.csv"), ["change", "method", "seed"], wanted, search)
    medians = found.groupby(["change", "method"])["regret"].median().unstack()
    print("Median regret")
    print(medians.map("{:.2g}".format).to_string())


if __name__ == "__main__":
    run_command(__doc__, main, changes=CHANGES, methods=METHODS)
