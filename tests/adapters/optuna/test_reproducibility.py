"""A proposal follows from the seed, the number of the trial and the stored trials alone."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import pytest
from automl_plugins.adapters.optuna import EIPerSecondSampler, GBQRSampler, SurrogateSampler
from objectives import bowl, conditional, layers
from optuna.storages import BaseStorage, JournalStorage, RDBStorage
from optuna.storages.journal import JournalFileBackend

Factory = Callable[[], SurrogateSampler]

SAMPLERS: dict[str, Factory] = {
    "gbqr": lambda: GBQRSampler(seed=3),
    "ei_per_second": lambda: EIPerSecondSampler(cost="seconds", seed=3),
    "forest": lambda: SurrogateSampler(surrogate="random_forest", interleave=3, seed=3),
}


def timed(trial: optuna.Trial) -> float:
    value = conditional(trial)
    trial.set_user_attr("seconds", 1.0 + value)
    return value


def params(study: optuna.Study) -> list[dict[str, Any]]:
    return [trial.params for trial in study.get_trials(deepcopy=False)]


@pytest.fixture(params=["memory", "sqlite", "journal"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> BaseStorage:
    if request.param == "sqlite":
        return RDBStorage(f"sqlite:///{tmp_path / 'study.db'}")
    if request.param == "journal":
        return JournalStorage(JournalFileBackend(str(tmp_path / "study.log")))
    return optuna.storages.InMemoryStorage()


@cache
def fifty_trials(name: str) -> list[dict[str, Any]]:
    study = optuna.create_study(sampler=SAMPLERS[name]())
    study.optimize(timed, n_trials=50)
    return params(study)


# Every storage with one sampler, and every sampler with one storage.
@pytest.mark.parametrize(
    ("name", "storage"),
    [
        ("gbqr", "memory"),
        ("gbqr", "sqlite"),
        ("gbqr", "journal"),
        ("ei_per_second", "sqlite"),
        ("forest", "journal"),
    ],
    indirect=["storage"],
)
def test_25_and_25_trials_equal_50_in_one_go(name: str, storage: BaseStorage) -> None:
    sampler = SAMPLERS[name]
    optuna.create_study(study_name="s", storage=storage, sampler=sampler()).optimize(
        timed, n_trials=25
    )
    again = optuna.load_study(study_name="s", storage=storage, sampler=sampler())
    again.optimize(timed, n_trials=25)
    assert params(again) == fifty_trials(name)


def test_losing_the_cache_between_refits_changes_nothing() -> None:
    # 150 finished trials: the model is fitted on every second one only.
    whole = optuna.create_study(sampler=GBQRSampler(seed=1, n_candidates=50))
    whole.optimize(bowl, n_trials=151)
    part = optuna.create_study(sampler=GBQRSampler(seed=1, n_candidates=50))
    part.add_trials(whole.trials)  # what is cached is left behind
    for study in (whole, part):
        study.optimize(bowl, n_trials=4)
    assert params(part) == params(whole)


SCRIPT = """
import json, sys
sys.path.insert(0, sys.argv[1])
import optuna
from objectives import conditional
from automl_plugins.adapters.optuna import GBQRSampler
optuna.logging.set_verbosity(optuna.logging.ERROR)
study = optuna.create_study(sampler=GBQRSampler(seed=3))
study.optimize(conditional, n_trials=25)
print(json.dumps([trial.params for trial in study.trials]))
"""


def test_same_points_in_a_fresh_process_with_another_hash_seed() -> None:
    runs = []
    for hash_seed in ("1", "2"):
        environment = os.environ | {"PYTHONHASHSEED": hash_seed}
        folder = str(Path(__file__).parent)
        command = [sys.executable, "-c", SCRIPT, folder]
        output = subprocess.run(
            command, env=environment, capture_output=True, text=True, check=True
        ).stdout
        runs.append(json.loads(output))
    assert runs[0] == runs[1]

    here = optuna.create_study(sampler=GBQRSampler(seed=3))
    here.optimize(conditional, n_trials=25)
    assert params(here) == runs[0]


@pytest.mark.parametrize(
    ("sampler", "objective"),
    [
        *((SAMPLERS["gbqr"], objective) for objective in (bowl, conditional, layers)),
        (SAMPLERS["ei_per_second"], layers),
        (SAMPLERS["forest"], conditional),
    ],
)
def test_maximising_f_equals_minimising_its_negative(
    sampler: Factory, objective: Callable[[optuna.Trial], float]
) -> None:
    def with_seconds(trial: optuna.Trial, sign: float) -> float:
        trial.set_user_attr("seconds", 1.0)
        return sign * objective(trial)

    low = optuna.create_study(sampler=sampler())
    low.optimize(lambda t: with_seconds(t, 1.0), n_trials=30)
    high = optuna.create_study(sampler=sampler(), direction="maximize")
    high.optimize(lambda t: with_seconds(t, -1.0), n_trials=30)
    assert params(low) == params(high)


@pytest.mark.parametrize("sampler", SAMPLERS.values(), ids=SAMPLERS)
def test_a_pickled_sampler_proposes_the_same(sampler: Factory) -> None:
    study = optuna.create_study(sampler=sampler())
    study.optimize(timed, n_trials=20)
    copy: SurrogateSampler = pickle.loads(pickle.dumps(study.sampler))
    assert copy.seed == 3
    trials = [study.ask()]
    asked = timed(trials[0])
    twin = optuna.create_study(sampler=copy)
    twin.add_trials(study.get_trials(states=(optuna.trial.TrialState.COMPLETE,)))
    trials.append(twin.ask())
    assert timed(trials[1]) == asked
    assert trials[0].params == trials[1].params


def test_a_seed_that_was_drawn_is_kept_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    optuna.logging.enable_propagation()
    optuna.logging.set_verbosity(optuna.logging.INFO)
    try:
        sampler = GBQRSampler()
    finally:
        optuna.logging.disable_propagation()
    assert f"seed={sampler.seed}" in caplog.text
    assert pickle.loads(pickle.dumps(sampler)).seed == sampler.seed
    assert GBQRSampler().seed != sampler.seed


def test_reseeding_leaves_the_streams_alone() -> None:
    study = optuna.create_study(sampler=GBQRSampler(seed=3))
    study.sampler.reseed_rng()
    study.optimize(bowl, n_trials=12)
    twin = optuna.create_study(sampler=GBQRSampler(seed=3))
    twin.optimize(bowl, n_trials=12)
    assert params(study) == params(twin)


def test_global_random_state_is_left_alone() -> None:
    np.random.seed(7)  # noqa: NPY002 - the state that must not move
    before = np.random.get_state()  # noqa: NPY002
    optuna.create_study(sampler=GBQRSampler(seed=0)).optimize(conditional, n_trials=15)
    after = np.random.get_state()  # noqa: NPY002
    assert all(np.array_equal(a, b) for a, b in zip(before, after, strict=True))


@pytest.mark.parametrize("n_finished", [0, 20])
def test_eight_points_asked_at_once_are_distinct(n_finished: int, storage: BaseStorage) -> None:
    study = optuna.create_study(storage=storage, sampler=GBQRSampler(seed=0))
    study.optimize(conditional, n_trials=n_finished)
    asked = []
    for _ in range(8):
        trial = study.ask()
        conditional(trial)
        asked.append(trial.params)
    assert len({json.dumps(p, sort_keys=True) for p in asked}) == 8


def test_a_running_trial_is_seen_before_it_has_asked_for_everything() -> None:
    # The joint proposal is published at the first suggest: a second worker must see all of it.
    sampler = GBQRSampler(seed=0)
    study = optuna.create_study(sampler=sampler)
    study.optimize(bowl, n_trials=12)
    first = study.ask()
    x = first.suggest_float("x", -5, 5)
    second = study._storage.get_trial(study.ask()._trial_id)
    (running,) = sampler._reader(study).view(study, second).running
    assert running.number == first.number and running.values["x"] == x
    assert running.values["y"] == first.suggest_float("y", -5, 5)


def test_two_threads_share_one_sampler() -> None:
    study = optuna.create_study(sampler=GBQRSampler(seed=0))
    study.optimize(conditional, n_trials=24, n_jobs=2)
    assert all(trial.state.name == "COMPLETE" for trial in study.trials)
