"""Objectives shared by the tests of the Optuna adapter."""

from __future__ import annotations

import optuna


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
