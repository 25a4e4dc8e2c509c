"""Every list of choices that Optuna takes, through all samplers: none may fail or mix them up."""

from collections.abc import Callable, Mapping
from typing import Any

import optuna
import pytest
from automl_plugins.adapters.optuna import (
    BanditSampler,
    BlendedSampler,
    BOASFSampler,
    EIPerSecondSampler,
    GBQRSampler,
    PMFSampler,
    SurrogateSampler,
    TSTSampler,
    WeightedModelSampler,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from optuna.samplers import BaseSampler, RandomSampler
from optuna.study import Study

Lists = Mapping[str, list[Any]]

KNOWN: Lists = {
    "bools": [True, False],
    "numbers and a bool": [1.5, True],
    "equal": [1, True, 1.0],
    "None": ["auto", None, 0.5],
    "text of values": ["True", True, "1", 1, "None", None],
    "nan": [float("nan"), None, float("inf")],
    "huge": [2**60 + 1, 0.5, 2**63, -1],
}
_ATOMS = st.sampled_from([value for values in KNOWN.values() for value in values])
_LISTS = st.lists(st.lists(_ATOMS, min_size=2, max_size=4), min_size=1, max_size=4)


def objective(lists: Lists) -> Callable[[optuna.Trial], float]:
    def of(trial: optuna.Trial) -> float:
        loss = trial.suggest_float("x", 0, 1)
        for i, (name, choices) in enumerate(lists.items()):
            value = trial.suggest_categorical(name, choices)
            assert any(value is choice for choice in choices)
            loss += len(repr(value))
            if i % 2 and value is choices[0]:
                loss += trial.suggest_float(f"{name} u", 0, 1)
        return loss

    return of


def searched(sampler: BaseSampler, lists: Lists, n: int) -> Study:
    study = optuna.create_study(sampler=sampler)
    study.optimize(objective(lists), n_trials=n)
    return study


SAMPLERS: dict[str, Callable[[list[Study], str], BaseSampler]] = {
    "GBQR": lambda sources, arm: GBQRSampler(n_startup_trials=2, seed=0),
    "EI per second": lambda sources, arm: EIPerSecondSampler(n_startup_trials=2, seed=0),
    "forest": lambda sources, arm: SurrogateSampler(
        surrogate="random_forest", n_startup_trials=2, seed=0
    ),
    "TST": lambda sources, arm: TSTSampler(sources, seed=0),
    "blended": lambda sources, arm: BlendedSampler(sources, n_suggested=1, seed=0),
    "PMF": lambda sources, arm: PMFSampler(sources, n_start=1, seed=0),
    "bandit": lambda sources, arm: BanditSampler(arm, seed=0),
    "BOASF": lambda sources, arm: BOASFSampler(arm, n_trials=5, seed=0),
    "weighted": lambda sources, arm: WeightedModelSampler(arm, seed=0),
}


def check(lists: Lists, names: list[str], n: int) -> None:
    sources = [searched(RandomSampler(seed=seed), lists, 6) for seed in range(2)]
    for name in names:
        study = searched(SAMPLERS[name](sources, next(iter(lists))), lists, n)
        assert len(study.trials) == n and all(t.state.name == "COMPLETE" for t in study.trials)


@pytest.mark.parametrize("name", SAMPLERS)
def test_lists_that_users_write(name: str) -> None:
    check(KNOWN, [name], 5)


@settings(max_examples=4, deadline=None)
@given(_LISTS)
def test_lists_that_nobody_thought_of(lists: list[list[Any]]) -> None:
    check({f"c{i}": choices for i, choices in enumerate(lists)}, list(SAMPLERS), 4)
