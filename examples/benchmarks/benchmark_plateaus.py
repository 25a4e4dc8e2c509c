"""Losses with plateaus, such as accuracies of few rows: is a plateau searched again and again?

Every function is a bowl with ripples, in 2 to 6 numbers or below a choice of three algorithms.
Each comes in three forms: as it is (the control), as the accuracy of 100 test rows, and constant
within the cells of a grid. Methods are samplers of Optuna, TPE is the peer; ``TST`` has searched
three tasks whose optimum lies elsewhere, 40 random trials each. Searches are appended to a file;
what is in it is not run again.

    benchmark_plateaus.py  # 15 functions, 10 seeds, 50 trials
    benchmark_plateaus.py --smoke  # seconds

Regret is that of the best loss so far, in the range of the losses. A near-copy is a trial, from
the 21st on, that lies within 1 % of each range of an earlier one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import pandas as pd
from automl_plugins.adapters.optuna import BOASFSampler, GBQRSampler, TSTSampler
from common import keep_rows, make_parser, silence

FloatArray = np.ndarray[Any, np.dtype[np.float64]]

FORMS = ("smooth", "accuracy", "steps")
SPACES: dict[str, tuple[int, ...]] = {  # numbers of each algorithm
    "2 numbers": (2,),
    "3 numbers": (3,),
    "4 numbers": (4,),
    "6 numbers": (6,),
    "algorithms": (1, 2, 3),
}
N_ROWS = 100  # on which an accuracy is measured
N_CELLS = 12  # of a number
N_EARLIER, N_EARLIER_TRIALS = 3, 40
FROM = 20  # trials before near-copies are counted
NEAR = 0.01
_GRID = np.linspace(0.0, 1.0, 2001)


@dataclass(frozen=True)
class Bowl:
    """sum_i w_i ((x_i - c_i)^2 + ripples) + level, in [0, 1]^d.

    Attributes:
        centre: c (d,).
        weights: w (d,), their sum is 1.
        phases: Where the ripples begin (d,).
        level: Smallest loss that a bowl without ripples would have.
        form: One of ``FORMS``.
    """

    centre: FloatArray
    weights: FloatArray
    phases: FloatArray
    level: float
    form: str

    @classmethod
    def of(cls, d: int, level: float, form: str, rng: np.random.Generator) -> Bowl:
        """A bowl at random."""
        weights = rng.uniform(0.5, 2.0, d)
        centre, phases = rng.uniform(0.15, 0.85, d), rng.uniform(0.0, 2.0 * math.pi, d)
        return cls(centre, weights / weights.sum(), phases, level, form)

    def shifted(self, rng: np.random.Generator) -> Bowl:
        """One of another task."""
        centre = np.clip(self.centre + rng.normal(0.0, 0.1, len(self.centre)), 0.0, 1.0)
        return Bowl(centre, self.weights, self.phases, self.level, self.form)

    def parts(self, x: FloatArray) -> FloatArray:
        """What each number adds to the loss (..., d), of values (..., d)."""
        if self.form == "steps":
            x = (np.minimum(np.floor(x * N_CELLS), N_CELLS - 1) + 0.5) / N_CELLS
        ripples = 0.02 * (1.0 + np.sin(6.0 * math.pi * x + self.phases))
        return np.asarray(self.weights * ((x - self.centre) ** 2 + ripples))

    def rounded(self, loss: float) -> float:
        """The loss as it is measured."""
        return math.ceil(round(loss * N_ROWS, 9)) / N_ROWS if self.form == "accuracy" else loss

    def __call__(self, x: FloatArray) -> float:
        return self.rounded(self.level + float(self.parts(x).sum()))

    def extremes(self) -> tuple[float, float]:
        """The least and the largest loss."""
        parts = self.parts(np.repeat(_GRID[:, None], len(self.centre), axis=1))
        least, largest = parts.min(axis=0).sum(), parts.max(axis=0).sum()
        return self.rounded(self.level + least), self.rounded(self.level + largest)


@dataclass(frozen=True)
class Problem:
    """One bowl, or a choice of several."""

    bowls: tuple[Bowl, ...]

    @classmethod
    def of(cls, space: str, form: str, seed: int) -> Problem:
        """The function of a seed; its forms differ in nothing else."""
        rng = np.random.default_rng([seed, list(SPACES).index(space)])
        return cls(
            tuple(Bowl.of(d, 0.05 + 0.02 * i, form, rng) for i, d in enumerate(SPACES[space]))
        )

    def shifted(self, seed: int) -> Problem:
        """The function of an earlier task."""
        rng = np.random.default_rng([seed, 99])
        return Problem(tuple(bowl.shifted(rng) for bowl in self.bowls))

    def __call__(self, trial: optuna.Trial) -> float:
        kind = 0
        if len(self.bowls) > 1:
            kind = trial.suggest_categorical("algorithm", list(range(len(self.bowls))))
        bowl = self.bowls[kind]
        x = [trial.suggest_float(f"x{kind}{i}", 0.0, 1.0) for i in range(len(bowl.centre))]
        return bowl(np.array(x))

    def extremes(self) -> tuple[float, float]:
        """The least and the largest loss."""
        low, high = zip(*(bowl.extremes() for bowl in self.bowls), strict=True)
        return min(low), max(high)


def _transfer(problem: Problem, n_trials: int, seed: int) -> optuna.samplers.BaseSampler:
    earlier = []
    for i in range(N_EARLIER):
        study = optuna.create_study(
            study_name=f"earlier {i}", sampler=optuna.samplers.RandomSampler(seed=100 * seed + i)
        )
        study.optimize(problem.shifted(100 * seed + i), n_trials=N_EARLIER_TRIALS)
        earlier.append(study)
    sampler: optuna.samplers.BaseSampler = TSTSampler(earlier, seed=seed)
    return sampler


# Of a problem, the trials and the seed.
METHODS: dict[str, Callable[[Problem, int, int], optuna.samplers.BaseSampler]] = {
    "TPE": lambda problem, n_trials, seed: optuna.samplers.TPESampler(seed=seed),
    "GBQR": lambda problem, n_trials, seed: GBQRSampler(seed=seed),
    "TST": _transfer,
    "BOASF": lambda problem, n_trials, seed: BOASFSampler(n_trials=n_trials, seed=seed),
}
NEEDS_CHOICE = ("BOASF",)


def near_copy(trial: optuna.trial.FrozenTrial, other: optuna.trial.FrozenTrial) -> bool:
    """Whether two trials are the same but for 1 % of each range."""
    return set(trial.params) == set(other.params) and all(
        abs(value - other.params[name]) <= NEAR for name, value in trial.params.items()
    )


def search(space: str, form: str, method: str, n_trials: int, seed: int) -> dict[str, Any]:
    """Regret at 30 and at all trials, and the share of near-copies."""
    problem = Problem.of(space, form, seed)
    study = optuna.create_study(sampler=METHODS[method](problem, n_trials, seed))
    study.optimize(problem, n_trials=n_trials)
    low, high = problem.extremes()
    trials = study.trials
    best = np.minimum.accumulate(np.array([trial.value for trial in trials], dtype=float))
    regret = np.maximum((best - low) / (high - low), 0.0)
    late = range(min(FROM, n_trials - 1), n_trials)
    copies = [any(near_copy(trials[k], trials[j]) for j in range(k)) for k in late]
    at = min(30, n_trials) - 1
    return {"at30": regret[at], "end": regret[-1], "copies": float(np.mean(copies))}


def show(found: pd.DataFrame, n_trials: int) -> None:
    """Print the means of every form and method."""
    print(f"Percent: mean regret at 30 and {n_trials} trials, share of near-copies")
    columns = ["at30", "end", "copies"]
    for index in (["form", "method"], ["form", "space", "method"]):
        means = 100.0 * found.groupby(index)[columns].mean()
        print(means.rename(columns={"end": f"at{n_trials}"}).round(2).to_string(), end="\n\n")


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=list(METHODS))
    parser.add_argument("--spaces", nargs="+", default=list(SPACES), choices=list(SPACES))
    parser.add_argument("--trials", type=int, default=50)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--smoke", action="store_true", help="two spaces, one seed, 22 trials")
    parser.add_argument("--path", type=Path, default=Path("build/plateaus.csv"))
    args = parser.parse_args()
    if args.smoke:
        args.spaces, args.seeds, args.trials = ["2 numbers", "algorithms"], 1, 22
    silence()
    wanted = [
        place
        for place in product(args.spaces, FORMS, args.methods, [args.trials], range(args.seeds))
        if place[2] not in NEEDS_CHOICE or len(SPACES[place[0]]) > 1
    ]
    key = ["space", "form", "method", "trials", "seed"]
    show(keep_rows(args.path, key, wanted, search), args.trials)


if __name__ == "__main__":
    main()
