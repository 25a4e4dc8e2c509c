"""Losses with plateaus, such as accuracies of few rows: is a plateau searched again and again?

Every function is a bowl with ripples, in three forms: as it is (the control), as the accuracy of
100 test rows, and constant within the cells of a grid. Methods are samplers of Optuna. Searches
are appended to a file; a search in the file is not run again.

    benchmark_plateaus.py  # 4 spaces, 3 forms, 10 seeds, 50 trials

Regret is the gap between the best loss so far and the least one, as a share of the range of the
losses. A near-copy is a trial, from the 21st on, that is within 1 % of an earlier trial in every
range.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import optuna
from benchmark_choices import METHODS
from common import keep_rows, run_command

from automl_plugins.arrays import FloatArray

FORMS = ("smooth", "accuracy", "steps")
SPACES = {f"{d} numbers": d for d in (2, 3, 4, 6)}
N_ROWS = 100  # rows on which an accuracy is measured
N_CELLS = 12  # grid cells of each number
FROM = 20  # trials before near-copies are counted
NEAR = 0.01
LEVEL = 0.05  # smallest loss that a bowl without ripples would have
_GRID = np.linspace(0.0, 1.0, 2001)


@dataclass(frozen=True)
class Bowl:
    """sum_i w_i ((x_i - c_i)^2 + ripples) + ``LEVEL``, in [0, 1]^d.

    Attributes:
        centre: c (d,).
        weights: w (d,), their sum is 1.
        phases: Where the ripples begin (d,).
        form: One of ``FORMS``.
    """

    centre: FloatArray
    weights: FloatArray
    phases: FloatArray
    form: str

    @classmethod
    def draw(cls, space: str, form: str, seed: int) -> Bowl:
        """The function of a seed; for one seed, only the form differs."""
        rng, d = np.random.default_rng([seed, list(SPACES).index(space)]), SPACES[space]
        weights = rng.uniform(0.5, 2.0, d)
        centre, phases = rng.uniform(0.15, 0.85, d), rng.uniform(0.0, 2.0 * math.pi, d)
        return cls(centre, weights / weights.sum(), phases, form)

    def parts(self, x: FloatArray) -> FloatArray:
        """The contribution of each number to the loss (..., d), for values (..., d)."""
        if self.form == "steps":
            x = (np.minimum(np.floor(x * N_CELLS), N_CELLS - 1) + 0.5) / N_CELLS
        ripples = 0.02 * (1.0 + np.sin(6.0 * math.pi * x + self.phases))
        return np.asarray(self.weights * ((x - self.centre) ** 2 + ripples))

    def loss(self, total: float) -> float:
        """The measured loss, given the sum of the parts."""
        loss = LEVEL + total
        return math.ceil(round(loss * N_ROWS, 9)) / N_ROWS if self.form == "accuracy" else loss

    def __call__(self, trial: optuna.Trial) -> float:
        x = [trial.suggest_float(f"x0{i}", 0.0, 1.0) for i in range(len(self.centre))]
        return self.loss(float(self.parts(np.array(x)).sum()))

    def extremes(self) -> tuple[float, float]:
        """The least and the largest loss."""
        parts = self.parts(np.repeat(_GRID[:, None], len(self.centre), axis=1))
        return self.loss(parts.min(axis=0).sum()), self.loss(parts.max(axis=0).sum())


def search(space: str, form: str, method: str, n_trials: int, seed: int) -> dict[str, Any]:
    """Regret at 30 and at all trials, and the share of near-copies."""
    bowl = Bowl.draw(space, form, seed)
    study = optuna.create_study(sampler=METHODS[method](seed=seed))
    study.optimize(bowl, n_trials=n_trials)
    low, high = bowl.extremes()
    best = np.minimum.accumulate([trial.values[0] for trial in study.trials])
    regret = np.maximum((best - low) / (high - low), 0.0)
    points = np.array([list(trial.params.values()) for trial in study.trials])
    near = [
        np.any(np.all(np.abs(points[:k] - points[k]) <= NEAR, axis=1))
        for k in range(min(FROM, n_trials - 1), n_trials)
    ]
    at = min(30, n_trials) - 1
    return {"at30": regret[at], "end": regret[-1], "copies": float(np.mean(near))}


def main(
    methods: Sequence[str] = tuple(METHODS),
    spaces: Sequence[str] = tuple(SPACES),
    trials: int = 50,
    seeds: int = 10,
) -> None:
    """Run the missing searches and print the means."""
    key = ["space", "form", "method", "trials", "seed"]
    wanted = product(spaces, FORMS, methods, [trials], range(seeds))
    found = keep_rows(Path("build/plateaus.csv"), key, wanted, search)
    print(f"Percent: mean regret at 30 and {trials} trials, share of near-copies")
    for index in (["form", "method"], ["form", "space", "method"]):
        means = 100.0 * found.groupby(index)[["at30", "end", "copies"]].mean()
        print(means.rename(columns={"end": f"at{trials}"}).round(2).to_string(), end="\n\n")


if __name__ == "__main__":
    run_command(__doc__, main, methods=METHODS, spaces=SPACES)
