"""The arm and the proposal follow from the seed, the trial's number and the stored trials."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import pytest
from arm_objectives import Even, alike, arm_choices, grid, zoo
from automl_plugins.adapters.optuna import BanditSampler, BOASFSampler, WeightedModelSampler
from automl_plugins.adapters.optuna.arm_sampler import ArmSampler
from objectives import params, search
from optuna.samplers import CmaEsSampler, RandomSampler, TPESampler
from optuna.storages import BaseStorage, InMemoryStorage, JournalStorage, RDBStorage
from optuna.storages.journal import JournalFileBackend

Factory = Callable[..., ArmSampler]

SAMPLERS: dict[str, Factory] = {
    "bandit": partial(BanditSampler, seed=3),
    "boasf": partial(BOASFSampler, n_trials=40, temperature=0.1, seed=3),
    "weighted": partial(WeightedModelSampler, seed=3),
    "weighted_cma_es": partial(
        WeightedModelSampler,
        inner=partial(CmaEsSampler, warn_independent_sampling=False),
        seed=3,
    ),
}


def timed(trial: optuna.Trial) -> float:
    value = zoo(trial)
    trial.set_user_attr("seconds", 1.0 + value)
    if trial.number % 9 == 8:
        raise optuna.TrialPruned
    return value


@pytest.mark.parametrize(
    ("name", "stored"), [("bandit", "memory"), ("bandit", "journal"), ("boasf", "sqlite")]
)
def test_two_halves_equal_the_whole_in_every_storage(
    name: str, stored: str, tmp_path: Path
) -> None:
    storage: BaseStorage = InMemoryStorage()
    if stored == "sqlite":
        storage = RDBStorage(f"sqlite:///{tmp_path / 'study.db'}")
    elif stored == "journal":
        storage = JournalStorage(JournalFileBackend(str(tmp_path / "study.log")))
    sampler = partial(SAMPLERS[name], cost="seconds")
    whole = search(sampler(), timed, 14)
    search(sampler(), timed, 7, study_name="s", storage=storage)
    again = optuna.load_study(study_name="s", storage=storage, sampler=sampler())
    again.optimize(timed, n_trials=7)
    assert params(again) == params(whole)


def test_an_instance_keeps_its_state_within_the_process() -> None:
    whole, parts = (
        optuna.create_study(sampler=BanditSampler(policy=Even(), inner=TPESampler(seed=1), seed=0))
        for _ in range(2)
    )
    whole.optimize(alike, n_trials=20)
    for n in (7, 13):
        parts.optimize(alike, n_trials=n)
    assert params(whole) == params(parts)


@pytest.mark.parametrize("name", ["bandit", "boasf"])
@pytest.mark.parametrize("objective", [zoo, grid])
def test_maximising_f_equals_minimising_its_negative(name: str, objective: Any) -> None:
    low = search(SAMPLERS[name](), objective, 18)
    high = search(SAMPLERS[name](), lambda t: -objective(t), 18, direction="maximize")
    assert params(low) == params(high)


def test_reward_ranges_follow_the_direction() -> None:
    low = search(BanditSampler(reward_range=(0.0, 2.0), seed=0), zoo, 20)
    sampler = BanditSampler(reward_range=(-2.0, 0.0), seed=0)
    high = search(sampler, lambda t: -zoo(t), 20, direction="maximize")
    assert params(low) == params(high)


@pytest.mark.parametrize("sampler", SAMPLERS.values(), ids=SAMPLERS)
def test_pickles_and_copies_propose_the_same(sampler: Factory) -> None:
    study = optuna.create_study(sampler=sampler())
    study.optimize(zoo, n_trials=15)
    trials = study.get_trials()
    asked = study.ask()
    zoo(asked)
    for twin in (pickle.loads(pickle.dumps(study.sampler)), copy.deepcopy(study.sampler)):
        other = optuna.create_study(sampler=twin)
        other.add_trials(trials)
        again = other.ask()
        zoo(again)
        assert again.params == asked.params
        assert isinstance(twin, ArmSampler) and twin.seed == 3


def test_global_random_state_is_left_alone() -> None:
    np.random.seed(7)  # noqa: NPY002 - the state that must not move
    before = np.random.get_state()  # noqa: NPY002
    for sampler in SAMPLERS.values():
        search(sampler(), zoo, 8)
    after = np.random.get_state()  # noqa: NPY002
    assert all(np.array_equal(a, b) for a, b in zip(before, after, strict=True))


def test_parameters_hang_on_their_name_and_not_on_the_order_of_asking() -> None:
    def backwards(trial: optuna.Trial) -> float:
        arm = trial.suggest_categorical("algorithm", ["a", "b", "c"])
        y, x = trial.suggest_float("y", 0, 1), trial.suggest_float("x", 0, 1)
        return {"a": 0.1, "b": 0.3, "c": 0.5}[arm] + 0.2 * ((x - 0.3) ** 2 + (y - 0.6) ** 2)

    studies = []
    for objective in (alike, backwards):
        sampler = WeightedModelSampler(
            weights={"a": 1, "b": 1, "c": 1}, search_space=arm_choices("a", "b", "c"), seed=0
        )
        studies.append(optuna.create_study(sampler=sampler))
        studies[-1].optimize(objective, n_trials=10)
    assert params(studies[0]) == params(studies[1])
    assert len({p["x"] for p in params(studies[0])} | {p["y"] for p in params(studies[0])}) == 20


@pytest.mark.parametrize("inner", [RandomSampler, TPESampler(seed=2)])
def test_two_studies_share_one_sampler(inner: Any) -> None:
    sampler = BanditSampler(policy=Even(), inner=inner, seed=0)
    studies = [optuna.create_study(sampler=sampler) for _ in range(2)]
    for study in studies * 3:
        study.optimize(alike, n_trials=4)
    assert [len(study.trials) for study in studies] == [12, 12]
