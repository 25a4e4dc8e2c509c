"""Trials that stay RUNNING because their worker was killed: a while they count, then no more."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import optuna
import pytest
from automl_plugins.adapters.optuna import (
    AutoSampler,
    BanditSampler,
    BOASFSampler,
    GBQRSampler,
    WeightedModelSampler,
    _private,
)
from automl_plugins.adapters.optuna.trials import read_trial
from objectives import bowl, params
from optuna.distributions import CategoricalDistribution, FloatDistribution
from optuna.samplers import BaseSampler
from optuna.trial import FrozenTrial, TrialState, create_trial
from test_workers import branches, small

from automl_plugins.records.trial import MOST_RUNNING

ALGORITHM = {"algorithm": CategoricalDistribution(["svm", "rf", "knn"])}
SAMPLERS: dict[str, Callable[[], BaseSampler]] = {
    "auto": lambda: AutoSampler(seed=1, memory=None),
    "gbqr": lambda: GBQRSampler(seed=1),
    "bandit": lambda: BanditSampler(seed=1, search_space=ALGORITHM),
    "boasf": lambda: BOASFSampler(seed=1, n_trials=60, search_space=ALGORITHM),
}


def abandon(study: optuna.Study, objective: Callable[[optuna.Trial], float], n: int) -> None:
    """Trials that are begun, and of which nothing is heard again."""
    for _ in range(n):
        objective(study.ask())


@pytest.mark.slow
@pytest.mark.parametrize("name", ["auto", "bandit", "boasf"])
def test_a_study_goes_on_beside_300_dead_ones(name: str) -> None:
    study = optuna.create_study(sampler=SAMPLERS[name]())
    study.optimize(branches, n_trials=10)
    sampler, study.sampler = study.sampler, optuna.samplers.RandomSampler(seed=0)
    abandon(study, branches, 300)
    study.sampler = sampler
    study.optimize(branches, n_trials=12)
    new = study.trials[310:]
    assert all(trial.state == TrialState.COMPLETE for trial in new)
    values = [trial.params for trial in new if trial.params["algorithm"] != "knn"]
    assert len({repr(v) for v in values}) == len(values)  # continuous: none twice


def trial_of(state: TrialState, value: float | None = None, **values: Any) -> FrozenTrial:
    known = ALGORITHM | {"x": FloatDistribution(0, 1)}
    return create_trial(
        state=state, value=value, params=values, distributions={n: known[n] for n in values}
    )


@pytest.mark.parametrize("name", ["gbqr", "bandit"])
@pytest.mark.parametrize(("n_later", "counts"), [(MOST_RUNNING - 1, True), (MOST_RUNNING, False)])
def test_how_long_they_count(n_later: int, counts: bool, name: str) -> None:
    study = optuna.create_study()
    abandon(study, branches, 1)
    for _ in range(n_later):
        study.add_trial(trial_of(TrialState.COMPLETE, 0.1, algorithm="svm", x=0.5))
    sampler: Any = SAMPLERS[name]()
    reader = sampler._reader(study)
    view = reader.view(study, trial_of(TrialState.WAITING))
    assert len(view.running) == counts


def test_what_dead_workers_had_begun_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("automl_plugins.records.trial.MOST_RUNNING", 40)
    study = optuna.create_study(sampler=GBQRSampler(seed=0))
    abandon(study, small, 5)
    dead = {p["a"] for p in params(study)}
    study.optimize(small, n_trials=45)  # of 31 configurations
    tried = [p["a"] for p in params(study)[5:]]
    assert set(tried[:26]) == set(range(31)) - dead
    assert set(tried[40:]) == dead


def test_an_arm_whose_first_worker_died_is_tried_again() -> None:
    study = optuna.create_study(sampler=WeightedModelSampler(seed=1, search_space=ALGORITHM))
    begun: list[str] = []

    def dies_on_svm(trial: optuna.Trial) -> float:
        value: float = branches(trial)
        begun.append(trial.params["algorithm"])
        return value

    while begun.count("svm") < 1:
        trial = study.ask()
        value = dies_on_svm(trial)
        if begun[-1] != "svm":
            study.tell(trial, value)
    study.optimize(dies_on_svm, n_trials=12)
    assert begun.count("svm") > 1


# --- clocks -----------------------------------------------------------------------------------


def test_a_clock_that_goes_back_gives_no_seconds() -> None:
    sampler = GBQRSampler(seed=0)
    study = optuna.create_study(sampler=sampler)
    noon = datetime(2026, 3, 1, 12)
    for i in range(30):
        trial = trial_of(TrialState.COMPLETE, (i - 10) ** 2 / 100, x=i / 30)
        trial.datetime_start = noon + timedelta(minutes=i)
        trial.datetime_complete = noon + timedelta(minutes=i, seconds=-30 if i % 2 else 30)
        study.add_trial(trial)
    view = sampler._reader(study).view(study, trial_of(TrialState.WAITING))
    seconds = view.columns.facts("seconds")
    assert np.isnan(seconds[1::2]).all() and (seconds[::2] == 30).all()
    study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=3)
    assert len(study.trials) == 33


# --- told in another order ---------------------------------------------------------------------


def test_told_in_any_order() -> None:
    found = []
    for order in (range(12), reversed(range(12)), np.random.default_rng(0).permutation(12)):
        study = optuna.create_study(sampler=GBQRSampler(seed=0))
        asked = [study.ask() for _ in range(12)]
        values = [bowl(trial) for trial in asked]
        for i in order:
            study.tell(asked[i], values[i])
        study.optimize(bowl, n_trials=5)
        assert [t.state for t in study.trials] == [TrialState.COMPLETE] * 17
        found.append(params(study))
    assert found[0][:12] == found[1][:12] == found[2][:12]


@pytest.mark.parametrize("served", [True, False])
def test_hours_until_a_stale_trial_was_noticed_are_none_of_its_seconds(served: bool) -> None:
    study = optuna.create_study(sampler=SAMPLERS["gbqr"]())
    study.optimize(bowl, n_trials=2)
    if not served:
        study.sampler = optuna.samplers.RandomSampler(seed=0)
    trial = study.ask()
    bowl(trial)
    study._storage.set_trial_state_values(trial._trial_id, TrialState.FAIL)  # by heartbeat
    seconds = read_trial(study.trials[2], maximize=False, cost=None).seconds
    assert math.isnan(seconds) == served
    failed = study.ask()
    bowl(failed)
    study.tell(failed, state=TrialState.FAIL)
    assert read_trial(study.trials[3], maximize=False, cost=None).seconds >= 0.0


@pytest.mark.parametrize("name", ["gbqr", "boasf", "bandit"])
def test_a_dead_trial_that_another_sampler_object_is_told_of_has_no_seconds(name: str) -> None:
    study = optuna.create_study(sampler=SAMPLERS[name]())
    study.optimize(branches, n_trials=2)
    dead, living = study.ask(), study.ask()
    branches(dead)
    branches(living)
    storage = study._storage
    after = optuna.load_study(
        study_name=study.study_name, storage=storage, sampler=SAMPLERS[name]()
    )
    after.tell(dead.number, state=TrialState.FAIL)
    after.tell(living.number, 1.0)
    read = [read_trial(trial, maximize=False, cost=None).seconds for trial in after.trials]
    assert math.isnan(read[2]) and read[3] >= 0.0
    assert not _private.has_overhead(after.trials[3])  # it was not measured
    assert all(_private.has_overhead(trial) for trial in after.trials[:2])


def test_a_retried_trial_has_its_own_seconds() -> None:
    study = optuna.create_study(sampler=SAMPLERS["gbqr"]())
    study.optimize(bowl, n_trials=2)
    dead = study.ask()
    bowl(dead)
    study._storage.set_trial_state_values(dead._trial_id, TrialState.FAIL)  # by heartbeat
    known = study.trials[2]
    again = create_trial(
        state=TrialState.WAITING,
        params=known.params,
        distributions=known.distributions,
        system_attrs=known.system_attrs,
    )
    study.add_trial(again)
    retried = study.ask()
    bowl(retried)
    study.tell(retried, state=TrialState.FAIL)
    assert study.trials[3].params == known.params
    assert read_trial(study.trials[3], maximize=False, cost=None).seconds >= 0.0


def test_a_function_for_the_cost_is_asked_for_finished_trials_only() -> None:
    def cost(trial: FrozenTrial) -> float:
        assert trial.duration is not None
        return trial.duration.total_seconds()

    study = optuna.create_study(sampler=AutoSampler(seed=1, memory=None, cost=cost))
    study.optimize(bowl, n_trials=3)
    study.ask()  # runs elsewhere
    study.optimize(bowl, n_trials=3)
    assert [t.state for t in study.trials].count(TrialState.COMPLETE) == 6
