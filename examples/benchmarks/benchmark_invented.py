"""Invented objectives like those that users write, as they are and with noisy losses.

``ridge`` has learning rate and number of rounds on a ridge, ``decay`` numbers on logarithmic
scales, ``counts`` integers, ``models`` a category that decides where the best numbers are,
``wide`` forty numbers of which five matter, ``layers`` a width and a dropout for each of up to
eight layers. Searches are appended to a file; a search in the file is not run again.

    benchmark_invented.py  # with noise and without, 24 seeds, 50 trials

A search is judged by the loss without noise of the trial that has the best observed loss.
Functions are at least 0.001. Means are of the logarithm of the loss plus 0.01.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import pandas as pd
from automl_plugins.adapters.optuna import AutoSampler
from common import keep_rows, run_command

Objective = Callable[[optuna.Trial], float]
AT = (10, 20, 30, 50)
N_MODELS, N_LAYERS, N_WIDE, N_COUNTS = 15, 8, 40, 8


def ridge(rng: np.random.Generator) -> Objective:
    """The product of learning rate and rounds matters, and large rates do harm."""
    a, b, c = rng.uniform(-0.5, 0.5, 3)

    def loss(trial: optuna.Trial) -> float:
        rate = math.log10(trial.suggest_float("learning_rate", 1e-4, 1.0, log=True))
        rounds = math.log10(trial.suggest_int("rounds", 10, 5000, log=True))
        depth = trial.suggest_int("depth", 1, 16)
        rows = trial.suggest_float("rows", 0.1, 1.0)
        penalty = math.log10(trial.suggest_float("penalty", 1e-8, 100.0, log=True))
        kind = trial.suggest_categorical("kind", ["a", "b", "c"])
        return float(
            0.3 * (rate + rounds - 1.5 - a) ** 2
            + 0.5 * max(0.0, rate + 0.8) ** 2
            + 0.005 * (depth - 6.0 - 4.0 * b) ** 2
            + 0.4 * (rows - 0.7 - 0.4 * c) ** 2
            + 0.01 * (penalty + 2.0) ** 2
            + {"a": 0.0, "b": 0.05, "c": 0.3}[kind]
        )

    return loss


def decay(rng: np.random.Generator) -> Objective:
    """A narrow optimum on a wide level."""
    centre, weights = rng.uniform(0.2, 0.8, 4), np.array([6.0, 3.0, 2.0, 1.0])

    def loss(trial: optuna.Trial) -> float:
        x = (
            0.2 * math.log10(trial.suggest_float("learning_rate", 1e-5, 1.0, log=True)) + 1.0,
            math.log10(trial.suggest_float("decay", 1e-6, 1.0, log=True)) / 6.0 + 1.0,
            trial.suggest_float("dropout", 0.0, 1.0),
            (trial.suggest_int("units", 1, 64) - 1) / 63.0,
        )
        return 0.7 * (1.0 - math.exp(-3.0 * float(weights @ (np.array(x) - centre) ** 2)))

    return loss


def counts(rng: np.random.Generator) -> Objective:
    """Integers of small ranges."""
    high = rng.integers(2, 20, N_COUNTS)
    best, weights = rng.integers(0, high + 1), rng.uniform(0.2, 2.0, N_COUNTS)

    def loss(trial: optuna.Trial) -> float:
        n = np.array([trial.suggest_int(f"n{i}", 0, int(end)) for i, end in enumerate(high)])
        return float(weights @ (np.abs(n - best) / high) ** 1.5)

    return loss


def models(rng: np.random.Generator) -> Objective:
    """A level and an optimum of its own for each of many models."""
    level, centre = rng.uniform(0.0, 1.0, N_MODELS), rng.uniform(0.0, 1.0, (N_MODELS, 3))
    options = rng.uniform(0.0, 0.3, 4)

    def loss(trial: optuna.Trial) -> float:
        i = trial.suggest_categorical("model", range(N_MODELS))
        option = options[trial.suggest_categorical("option", range(4))] - options.min()
        x = np.array([trial.suggest_float(f"x{j}", 0.0, 1.0) for j in range(3)])
        return float(level[i] - level.min() + option + 3.0 * ((x - centre[i]) ** 2).sum())

    return loss


def wide(rng: np.random.Generator) -> Objective:
    """Few of many numbers matter."""
    chosen, centre = rng.choice(N_WIDE, 5, replace=False), rng.uniform(0.1, 0.9, 5)
    weights = np.array([8.0, 4.0, 3.0, 2.0, 1.0])

    def loss(trial: optuna.Trial) -> float:
        x = np.array([trial.suggest_float(f"x{i}", 0.0, 1.0) for i in range(N_WIDE)])
        return float(weights @ (x[chosen] - centre) ** 2)

    return loss


def layers(rng: np.random.Generator) -> Objective:
    """The number of layers decides which widths and dropouts there are."""
    best, rate = int(rng.integers(1, N_LAYERS + 1)), rng.uniform(-4.0, -2.0)
    widths, dropouts = rng.uniform(4.0, 9.0, N_LAYERS), rng.uniform(0.05, 0.45, N_LAYERS)

    def loss(trial: optuna.Trial) -> float:
        n = trial.suggest_int("n_layers", 1, N_LAYERS)
        own = math.log10(trial.suggest_float("learning_rate", 1e-5, 0.1, log=True))
        total = 0.0
        for i in range(n):
            width = math.log2(trial.suggest_int(f"units_{i}", 4, 1024, log=True))
            dropout = trial.suggest_float(f"dropout_{i}", 0.0, 0.5)
            total += 0.05 * (width - widths[i]) ** 2 + 4.0 * (dropout - dropouts[i]) ** 2
        return float(0.9 * abs(n - best) / N_LAYERS + 0.15 * (own - rate) ** 2 + total / n)

    return loss


# Standard deviations of the noise.
NOISE = {ridge: 0.15, decay: 0.1, counts: 0.5, models: 0.3, wide: 0.5, layers: 0.1}
OBJECTIVES = {objective.__name__: objective for objective in NOISE}
METHODS: dict[str, Callable[..., optuna.samplers.BaseSampler]] = {
    "AutoSampler": partial(AutoSampler, memory=None),
    "TPE": optuna.samplers.TPESampler,
    "random": optuna.samplers.RandomSampler,
}


def search(objective: str, noisy: bool, method: str, n_trials: int, seed: int) -> dict[str, Any]:
    """Loss without noise of the best observed trial, after each number of ``AT``."""
    make = OBJECTIVES[objective]
    plain, noise = make(np.random.default_rng(seed)), np.random.default_rng([seed, 1])
    losses: list[float] = []

    def observe(trial: optuna.Trial) -> float:
        losses.append(plain(trial) + 0.001)
        return losses[-1] + noisy * NOISE[make] * noise.standard_normal()

    study = optuna.create_study(sampler=METHODS[method](seed=seed))
    study.optimize(observe, n_trials=n_trials)
    observed = np.array([trial.values[0] for trial in study.trials])
    return {f"at{n}": losses[int(observed[:n].argmin())] for n in AT}


def show(found: pd.DataFrame) -> None:
    """Print geometric means of the losses, less 0.01 again."""
    columns = [f"at{n}" for n in AT]
    found = found.assign(**{column: np.log(found[column] + 0.01) for column in columns})
    for index in (["noisy", "method"], ["noisy", "objective", "method"]):
        means = found.groupby(index)[columns].mean().apply(np.exp) - 0.01
        print(means.round(3).to_string(), end="\n\n")


def main(
    methods: Sequence[str] = tuple(METHODS),
    objectives: Sequence[str] = tuple(OBJECTIVES),
    trials: int = 50,
    seeds: int = 24,
) -> None:
    """Run the missing searches and print the means."""
    key = ["objective", "noisy", "method", "trials", "seed"]
    wanted = product(objectives, (False, True), methods, [trials], range(seeds))
    show(keep_rows(Path("build/invented.csv"), key, wanted, search))


if __name__ == "__main__":
    run_command(__doc__, main, methods=METHODS, objectives=OBJECTIVES)
