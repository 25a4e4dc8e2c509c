"""Infinite and largest losses, in either direction, in every sampler."""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Callable
from typing import Literal

import optuna
import pytest
from automl_plugins.adapters.optuna import (
    BanditSampler,
    EIPerSecondSampler,
    GBQRSampler,
    TSTSampler,
    WeightedModelSampler,
)
from optuna.samplers import BaseSampler, RandomSampler

Direction = Literal["minimize", "maximize"]

LARGEST = sys.float_info.max
ODD = [LARGEST, 1e308, math.inf, -LARGEST, -math.inf]

# What each recipe makes of such losses is tested in tests/records/test_outliers.py.
SAMPLERS: dict[str, Callable[[optuna.Study], BaseSampler]] = {
    "gbqr": lambda _: GBQRSampler(seed=0),
    "ei": lambda _: EIPerSecondSampler(seed=0),
    "tst": lambda study: TSTSampler(study, seed=0),
}


def objective(trial: optuna.Trial) -> float:
    x, y = trial.suggest_float("x", 0, 1), trial.suggest_float("y", 0, 1)
    sign = 1.0 if trial.study.direction.name == "MINIMIZE" else -1.0
    if trial.number % 4 == 3:
        return sign * ODD[trial.number // 4 % len(ODD)]
    return sign * ((x - 0.3) ** 2 + (y - 0.7) ** 2)


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
@pytest.mark.parametrize("name", SAMPLERS)
def test_the_model_continues(name: str, direction: Direction) -> None:
    earlier = optuna.create_study(sampler=RandomSampler(seed=1), direction=direction)
    earlier.optimize(objective, n_trials=9)
    study = optuna.create_study(sampler=SAMPLERS[name](earlier), direction=direction)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        study.optimize(objective, n_trials=22)
    origins = [t.user_attrs["automl_plugins"].get("origin") for t in study.trials[1:]]
    assert None not in origins  # every trial has a joint proposal
    assert origins.count("model") >= 12


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
@pytest.mark.parametrize("sampler", [BanditSampler, WeightedModelSampler])
def test_arms_continue(sampler: Callable[..., BaseSampler], direction: Direction) -> None:
    def with_arms(trial: optuna.Trial) -> float:
        arm = trial.suggest_categorical("arm", ["a", "b"])
        value = objective(trial)
        return value if abs(value) > 1e9 or arm == "a" else value * 2

    study = optuna.create_study(sampler=sampler("arm", seed=0), direction=direction)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        study.optimize(with_arms, n_trials=22)
    assert {trial.params["arm"] for trial in study.trials[8:]} == {"a", "b"}


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_an_infinite_loss_keeps_the_search_away(direction: Direction) -> None:
    sign = 1.0 if direction == "minimize" else -1.0

    def half(trial: optuna.Trial) -> float:
        x = trial.suggest_float("x", 0, 1)
        return sign * (math.inf if x > 0.5 else (x - 0.2) ** 2)

    study = optuna.create_study(sampler=GBQRSampler(seed=0), direction=direction)
    study.optimize(half, n_trials=30)
    assert sum(t.params["x"] > 0.5 for t in study.trials) <= 15
