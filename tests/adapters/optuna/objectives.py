"""Objectives and searches shared by the tests of the Optuna adapter."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from typing import Any

import optuna
import pytest
from automl_plugins.adapters.optuna import AutoSampler, BlendedSampler, PMFSampler, TSTSampler
from optuna.samplers import BaseSampler, PartialFixedSampler, RandomSampler
from optuna.study import Study

Objective = Callable[[optuna.Trial], Any]

needs_constraints = pytest.mark.skipif(
    not hasattr(optuna.Trial, "set_constraint"), reason="Optuna 4 has no constraints by name"
)


def bowl(trial: optuna.Trial) -> float:
    x, y = trial.suggest_float("x", -5, 5), trial.suggest_float("y", -5, 5)
    return (x - 1) ** 2 + (y + 2) ** 2


def conditional(trial: optuna.Trial) -> float:
    """Three branches, every kind of parameter, choices None, bool and str."""
    kind = trial.suggest_categorical("kind", ["tree", None, True])
    shared = trial.suggest_float("shared", 1e-4, 1.0, log=True)
    if kind == "tree":
        depth = trial.suggest_int("depth", 1, 64, log=True)
        leaf = trial.suggest_int("leaf", 2, 20, step=3)
        return abs(depth - 8) / 8 + abs(leaf - 11) / 11 + shared
    if kind is None:
        rate = trial.suggest_float("rate", 0.0, 1.0, step=0.25)
        return 0.5 + rate + shared
    trial.suggest_int("only", 3, 3)
    return 1.0 + shared


def layers(trial: optuna.Trial) -> float:
    """An integer parent decides how many children are asked for."""
    n = trial.suggest_int("n_layers", 1, 3)
    return sum(abs(trial.suggest_int(f"units_{i}", 1, 100) - 30 * (i + 1)) for i in range(n)) / n


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


def reporting(objective: Objective) -> Objective:
    """The objective with learning curves, for pruners."""

    def of(trial: optuna.Trial) -> float:
        value = objective(trial)
        for step in range(1, 10):
            trial.report(value + 1 / step, step)
            if trial.should_prune():
                raise optuna.TrialPruned
        return float(value)

    return of


# --- searches -------------------------------------------------------------------------------


def search(
    sampler: BaseSampler, objective: Objective, n: int, *, catch: Any = (), **options: Any
) -> Study:
    """A new study of ``n`` trials; further options are those of ``create_study``."""
    study = optuna.create_study(sampler=sampler, **options)
    study.optimize(objective, n_trials=n, catch=catch)
    return study


def params(study: Study) -> list[dict[str, Any]]:
    return [trial.params for trial in study.get_trials(deepcopy=False)]


def distinct(configurations: list[dict[str, Any]]) -> int:
    return len({json.dumps(values, sort_keys=True) for values in configurations})


class Refusing(RandomSampler):
    """Nothing may be left to it."""

    def sample_independent(self, study: Any, trial: Any, name: Any, distribution: Any) -> Any:
        raise AssertionError(f"{name} of trial {trial.number}")


def fixing(values: dict[str, Any], sampler: BaseSampler) -> BaseSampler:
    """``PartialFixedSampler`` without its warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        return PartialFixedSampler(values, sampler)


# --- earlier studies ------------------------------------------------------------------------

TRANSFER = {
    "tst": TSTSampler,
    "pmf": PMFSampler,
    "blended": BlendedSampler,
    "auto": AutoSampler,
}


def studied(
    name: str, objective: Objective, *, n: int = 25, seed: int = 0, sign: float = 1.0
) -> Study:
    """A random search; a negative sign maximises."""
    direction = "minimize" if sign > 0 else "maximize"
    signed = lambda trial: sign * objective(trial)  # noqa: E731
    return search(RandomSampler(seed=seed), signed, n, study_name=name, direction=direction)


def earlier(n: int = 3, sign: float = 1.0) -> list[Study]:
    """Studies of ``branches`` with different optima."""
    bests = [0.3, 0.2, 0.5, 0.9][:n]
    return [
        studied(f"task {i}", lambda t, b=best: branches(t, b), seed=i, sign=sign)  # type: ignore[misc]
        for i, best in enumerate(bests)
    ]
