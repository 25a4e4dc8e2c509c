"""Earlier studies and objectives shared by the tests of samplers that learn from them."""

from __future__ import annotations

from collections.abc import Callable

import optuna
from automl_plugins.adapters.optuna import BlendedSampler, PMFSampler, TSTSampler
from optuna.samplers import RandomSampler
from optuna.study import Study

SAMPLERS = {"tst": TSTSampler, "pmf": PMFSampler, "blended": BlendedSampler}


def branches(trial: optuna.Trial, best: float = 0.3) -> float:
    """Two kinds, one with a parameter of its own, choices that ConfigSpace cannot have."""
    kind = trial.suggest_categorical("kind", ["tree", None, True])
    rate = trial.suggest_float("rate", 1e-3, 1.0, log=True)
    if kind == "tree":
        leaf = trial.suggest_int("leaf", 2, 20, step=3)
        return abs(leaf - 11) / 11 + abs(rate - best)
    if kind is None:
        return 0.4 + abs(trial.suggest_float("x", 0.0, 1.0, step=0.25) - best) + abs(rate - best)
    return 0.8 + rate


def studied(
    name: str,
    objective: Callable[[optuna.Trial], float],
    *,
    n: int = 25,
    seed: int = 0,
    sign: float = 1.0,
) -> Study:
    """A random search; a negative sign maximises."""
    study = optuna.create_study(
        study_name=name,
        sampler=RandomSampler(seed=seed),
        direction="minimize" if sign > 0 else "maximize",
    )
    study.optimize(lambda trial: sign * objective(trial), n_trials=n)
    return study


def earlier(n: int = 3, sign: float = 1.0) -> list[Study]:
    """Studies of ``branches`` with different optima."""
    bests = [0.3, 0.2, 0.5, 0.9][:n]
    return [
        studied(f"task {i}", lambda t, b=best: branches(t, b), seed=i, sign=sign)  # type: ignore[misc]
        for i, best in enumerate(bests)
    ]
