"""Spaces of numbers and of several choices of four options, on invented functions.

In each function one option of a choice is the best, every other one costs something, and the best
value of the first number depends on the first choice. Methods are samplers of Optuna.
Searches are appended to a file; a search in the file is not run again.

    benchmark_choices.py  # 3 spaces, 10 seeds, 60 trials

Regret is the best loss so far in percent of the median loss of random configurations; the least
possible loss is 0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import pandas as pd
from automl_plugins.adapters.optuna import AutoSampler, GBQRSampler
from common import keep_rows, run_command

from automl_plugins.arrays import FloatArray

#: Numbers in [0, 1], integers from 1 to 100, and choices of four options.
SPACES = {
    "1 number, 5 choices": (1, 0, 5),
    "6 numbers, 3 integers, 3 choices": (6, 3, 3),
    "30 numbers, 10 integers, 10 choices": (30, 10, 10),
}
N_OPTIONS = 4
N_INTEGERS = 100
SHIFT = 0.15  # of the best value of the first number, by the options of the first choice
AT = (10, 20, 30)
_DRAWS = 1000

METHODS: dict[str, Callable[..., optuna.samplers.BaseSampler]] = {
    "AutoSampler": AutoSampler,
    "GBQR": GBQRSampler,
    "TPE": optuna.samplers.TPESampler,
    "random": optuna.samplers.RandomSampler,
}


@dataclass(frozen=True)
class Mixture:
    """sum_i w_i (x_i - c_i)^2 + sum_j v_j |n_j - m_j| / 100 + sum_k cost_k(choice k).

    Attributes:
        weights: w (d,) of the numbers.
        centres: c (d,).
        slopes: v (n,) of the integers.
        middles: m (n,).
        costs: Of each option of each choice (k, 4), 0 for the best one.
    """

    weights: FloatArray
    centres: FloatArray
    slopes: FloatArray
    middles: FloatArray
    costs: FloatArray

    @classmethod
    def draw(cls, space: str, seed: int) -> Mixture:
        """The function of a seed."""
        rng = np.random.default_rng([seed, list(SPACES).index(space)])
        d, n, k = SPACES[space]
        costs = rng.uniform(0.02, 0.2, (k, N_OPTIONS))
        costs[np.arange(k), rng.integers(N_OPTIONS, size=k)] = 0.0
        return cls(
            rng.uniform(0.2, 2.0, d),
            rng.uniform(0.2, 0.8, d),
            rng.uniform(0.2, 2.0, n),
            rng.integers(10, N_INTEGERS - 10, n).astype(np.float64),
            costs,
        )

    def loss(self, x: FloatArray, n: FloatArray, options: Sequence[int]) -> float:
        """The loss of numbers ``x`` (d,), integers ``n`` (n,) and options of the choices (k,)."""
        centres = self.centres.copy()
        best = int(self.costs[0].argmin())
        centres[0] += SHIFT * (options[0] - best) / (N_OPTIONS - 1)
        numbers = self.weights @ (x - centres) ** 2
        integers = self.slopes @ np.abs(n - self.middles) / N_INTEGERS
        choices = self.costs[np.arange(len(options)), list(options)].sum()
        return float(numbers + integers + choices)

    def __call__(self, trial: optuna.Trial) -> float:
        x = [trial.suggest_float(f"x{i}", 0.0, 1.0) for i in range(len(self.centres))]
        n = [trial.suggest_int(f"n{i}", 1, N_INTEGERS) for i in range(len(self.middles))]
        names = "abcd"
        options = [
            names.index(trial.suggest_categorical(f"c{i}", list(names)))
            for i in range(len(self.costs))
        ]
        return self.loss(np.array(x), np.array(n, dtype=np.float64), options)

    def typical(self) -> float:
        """The median loss of random configurations."""
        rng = np.random.default_rng(0)
        losses = [
            self.loss(
                rng.random(len(self.centres)),
                rng.integers(1, N_INTEGERS + 1, len(self.middles)).astype(np.float64),
                rng.integers(N_OPTIONS, size=len(self.costs)).tolist(),
            )
            for _ in range(_DRAWS)
        ]
        return float(np.median(losses))


def search(space: str, method: str, n_trials: int, seed: int) -> dict[str, Any]:
    """Regret at some trials and at the end, in percent."""
    function = Mixture.draw(space, seed)
    study = optuna.create_study(sampler=METHODS[method](seed=seed))
    study.optimize(function, n_trials=n_trials)
    best = np.minimum.accumulate([trial.values[0] for trial in study.trials])
    regret = 100.0 * best / function.typical()
    return {f"at{k}": regret[min(k, n_trials) - 1] for k in AT} | {"end": regret[-1]}


def main(
    methods: Sequence[str] = tuple(METHODS),
    spaces: Sequence[str] = tuple(SPACES),
    trials: int = 60,
    seeds: int = 10,
) -> None:
    """Run the missing searches and print the means."""
    key = ["space", "method", "trials", "seed"]
    wanted = product(spaces, methods, [trials], range(seeds))
    found = keep_rows(Path("build/choices.csv"), key, wanted, search)
    at = [k for k in AT if k < trials]
    columns = [*(f"at{k}" for k in at), "end"]
    means = found.groupby(["space", "method"])[columns].mean().round(1)
    print(f"Percent: mean regret at {', '.join(map(str, at))} and {trials} trials")
    print(pd.DataFrame(means).rename(columns={"end": f"at{trials}"}).to_string())


if __name__ == "__main__":
    run_command(__doc__, main, methods=METHODS, spaces=SPACES)
