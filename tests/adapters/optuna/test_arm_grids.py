"""Arms with few configurations are asked for each of them once, and leave."""

from __future__ import annotations

import json
from functools import partial
from typing import Any
from zlib import crc32

import optuna
import pytest
from arm_objectives import Even, counts, grid
from automl_plugins.adapters.optuna import (
    BanditSampler,
    BOASFSampler,
    GBQRSampler,
    WeightedModelSampler,
    _private,
    arm_report,
)
from automl_plugins.adapters.optuna.arm_sampler import ArmSampler
from objectives import distinct, fixing, params, search
from optuna.distributions import CategoricalDistribution
from optuna.samplers import (
    BruteForceSampler,
    CmaEsSampler,
    GridSampler,
    QMCSampler,
    RandomSampler,
    TPESampler,
)
from optuna.trial import TrialState

from automl_plugins.streams import Streams

even = partial(BanditSampler, policy=Even(), seed=0)


def run(sampler: Any, n: int, objective: Any = grid) -> optuna.Study:
    return search(sampler, objective, n, catch=ArithmeticError)


@pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
@pytest.mark.parametrize(
    "inner",
    [
        RandomSampler,
        partial(TPESampler, n_startup_trials=3),
        partial(TPESampler, n_startup_trials=3, group=True, multivariate=True),
        partial(CmaEsSampler, n_startup_trials=3, warn_independent_sampling=False),
        partial(QMCSampler, warn_independent_sampling=False),
        TPESampler(seed=4),
    ],
    ids=["random", "tpe", "grouped", "cma_es", "qmc", "instance"],
)
def test_every_configuration_is_tried_once(inner: Any) -> None:
    study = run(even(inner=inner), 17)  # 1 + 4 + 12, and one more branch is found on the way
    assert distinct(params(study)) == 17
    assert counts(study) == {"one": 1, "four": 4, "twelve": 12}


def two_grids(trial: optuna.Trial) -> float:
    trial.suggest_categorical("model", ["a", "b"])
    return trial.suggest_int("x", 0, 2) + trial.suggest_int("n", 1, 3)


@pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
@pytest.mark.parametrize(
    "make",
    [
        lambda: BruteForceSampler(seed=1),
        lambda: GridSampler({"x": [0, 1, 2], "n": [1, 2, 3]}, seed=1),
        lambda: partial(GridSampler, {"x": [0, 1, 2], "n": [1, 2, 3]}),
    ],
    ids=["brute_force", "grid", "grids"],
)
@pytest.mark.parametrize(
    "kind",
    [BanditSampler, WeightedModelSampler, partial(BOASFSampler, n_trials=18)],
    ids=["bandit", "weighted", "boasf"],
)
def test_samplers_that_enumerate_try_every_configuration_once(kind: Any, make: Any) -> None:
    study = search(kind("model", inner=make(), seed=1), two_grids, 18)
    assert distinct(params(study)) == 18


@pytest.mark.parametrize(
    "sampler",
    [
        even(inner=RandomSampler),
        WeightedModelSampler(seed=0),
        WeightedModelSampler(weights="volume", seed=0),
        BOASFSampler(n_trials=17, inner=RandomSampler, seed=0),
    ],
    ids=["bandit", "weighted", "volume", "boasf"],
)
def test_arms_that_have_nothing_left_leave_and_come_back_when_all_have(
    sampler: ArmSampler, log: pytest.LogCaptureFixture
) -> None:
    study = run(sampler, 25)
    assert distinct(params(study)) == 17
    assert len(study.trials) == 25
    said = {id(r): r.message for r in log.records if "no configuration left" in r.message}
    arms = sorted(message.split("'")[1] for message in said.values())
    assert arms == ["four", "one", "twelve"]
    (repeated,) = {r.message for r in log.records if "from now on they are repeated" in r.message}
    assert "All configurations of all arms of 'algorithm' have been tried" in repeated
    assert sum("no configuration left" in note for note in arm_report(study).notes) == 3


def test_a_trial_that_asks_for_nothing_does_not_exhaust_an_arm() -> None:
    study = run(even(inner=RandomSampler), 6)
    for _ in range(3):
        trial = study.ask()
        study.sampler.infer_relative_search_space(study, _private.frozen(trial))
        study.tell(trial, 0.5)
    study.optimize(grid, n_trials=11)
    assert distinct([p for p in params(study) if p]) == 17


def test_a_parameter_of_two_others_does_not_make_a_grid_endless() -> None:
    def objective(trial: optuna.Trial) -> float:
        if trial.suggest_categorical("algorithm", ["lr", "other"]) == "other":
            return 1.0 + trial.suggest_float("x", 0.0, 1.0)
        solver = trial.suggest_categorical("solver", ["saga", "lbfgs"])
        penalty = trial.suggest_categorical("penalty", ["l2", "en"])
        if (solver, penalty) == ("saga", "en"):
            return 0.5 - trial.suggest_categorical("l1", [0.1, 0.3, 0.5])
        return 0.5

    study = run(even(inner=RandomSampler), 40, objective)
    mine = [t.params for t in study.trials if t.params["algorithm"] == "lr"]
    assert len(mine) == distinct(mine) == 6


def test_an_arm_whose_range_depends_on_others_is_no_grid() -> None:
    def objective(trial: optuna.Trial) -> float:
        if trial.suggest_categorical("algorithm", ["tree", "other"]) == "other":
            return 1.0 + trial.suggest_float("x", 0.0, 1.0)
        deepest = 6 if trial.suggest_categorical("rule", ["gini", "entropy"]) == "entropy" else 3
        return 1.0 - 0.1 * trial.suggest_int("depth", 1, deepest)

    study = run(even(inner=RandomSampler), 60, objective)
    assert not any("no configuration left" in note for note in arm_report(study).notes)
    assert sum(t.params["algorithm"] == "tree" for t in study.trials) > 15


def test_running_and_failed_configurations_are_not_proposed_again() -> None:
    def objective(trial: optuna.Trial) -> float:
        value = grid(trial)
        if trial.number % 5 == 4:
            raise ZeroDivisionError
        return value

    study = run(even(inner=RandomSampler), 12, objective)
    waiting = [study.ask() for _ in range(5)]
    for trial in waiting:
        grid(trial)
    assert distinct(params(study)) == 17
    assert any(t.state == TrialState.FAIL for t in study.trials)


@pytest.mark.parametrize(("n_prunings", "tries"), [(1, 2), (9, 3)])
def test_a_pruned_configuration_comes_again_when_no_other_is_left(
    n_prunings: int, tries: int
) -> None:
    pruned: list[int] = []

    def objective(trial: optuna.Trial) -> float:
        if trial.suggest_categorical("algorithm", ["grid", "other"]) == "other":
            return 1.0 + trial.suggest_float("x", 0.0, 1.0)
        k = trial.suggest_int("k", 0, 3)
        if k == 2 and len(pruned) < n_prunings:
            pruned.append(trial.number)
            trial.report(1.0, 1)
            raise optuna.TrialPruned
        return float(k)

    study = run(even(inner=RandomSampler), 30, objective)
    found = [t.params["k"] for t in study.trials if t.params["algorithm"] == "grid"]
    assert sorted(found) == sorted([0, 1, 3, *[2] * tries])
    assert set(found[:4]) == {0, 1, 2, 3}
    assert any("no configuration left" in note for note in arm_report(study).notes)


def test_a_worker_sees_what_another_one_was_promised() -> None:
    # The joint proposal is published before the objective has asked for all of it.
    study = run(even(inner=RandomSampler), 6)
    trials = [study.ask() for _ in range(11)]
    for trial in trials:
        trial.suggest_categorical("algorithm", ["one", "four", "twelve"])
    for trial in trials:
        grid(trial)
    own = [p for p in params(study) if p["algorithm"] == "four"]
    assert len(own) == 4 == len({json.dumps(p) for p in own})


@pytest.mark.parametrize("make", [BanditSampler, partial(BOASFSampler, n_trials=30)])
def test_the_sampler_inside_may_know_parameters_of_failed_trials(make: Any) -> None:
    """They are not the grid's, which consists of what complete and pruned trials asked for."""

    def objective(trial: optuna.Trial) -> float:
        arm = trial.suggest_categorical("algorithm", ["a", "b"])
        k = trial.suggest_int(f"k_{arm}", 1, 3)
        if k == 3:
            trial.suggest_float("x", 0.0, 1.0)
            raise ArithmeticError
        return k

    study = run(make(inner=GBQRSampler, seed=0), 30, objective)
    assert len(study.trials) == 30
    assert {t.state for t in study.trials} == {TrialState.COMPLETE, TrialState.FAIL}


def test_held_values_are_kept() -> None:
    study = run(even(inner=RandomSampler), 9)
    sampler = study.sampler
    study.sampler = fixing({"algorithm": "twelve", "k": 4}, sampler)
    study.optimize(grid, n_trials=6)
    for _ in range(2):
        study.enqueue_trial({"algorithm": "four", "i": 1})
    study.optimize(grid, n_trials=2)
    assert all(p["algorithm"] == "twelve" and p["k"] == 4 for p in params(study)[9:15])
    assert len({p["deep"] for p in params(study)[9:15]}) == 6
    assert all(p["i"] == 1 for p in params(study)[15:])


def test_held_values_may_repeat_what_was_tried() -> None:
    study = run(even(inner=RandomSampler), 6)
    for _ in range(2):
        study.enqueue_trial({"algorithm": "four", "i": 1})
    study.optimize(grid, n_trials=2)
    held = [p for p in params(study) if p.get("i") == 1]
    assert len(held) == 4 and distinct(held) == 2 and params(study)[6:] == held[2:]
    assert distinct([p for p in params(study) if p["algorithm"] == "four"]) == 3  # of four


def test_large_and_continuous_arms_are_left_to_their_sampler() -> None:
    def objective(trial: optuna.Trial) -> float:
        if trial.suggest_categorical("algorithm", ["large", "real"]) == "large":
            return float(trial.suggest_int("i", 1, 100) + trial.suggest_int("j", 1, 100))
        return trial.suggest_float("x", 0, 1)

    study = run(even(inner=RandomSampler), 20, objective)
    with_grid = [t for t in study.trials if any("proposal" in key for key in t.system_attrs)]
    assert not with_grid
    assert counts(study) == {"large": 10, "real": 10}


def test_steps_logs_and_shared_names() -> None:
    def objective(trial: optuna.Trial) -> float:
        arm = trial.suggest_categorical("algorithm", ["a", "b"])
        scale = trial.suggest_categorical("scale", [None, "minmax"])
        if arm == "a":
            return trial.suggest_float("f", 0.1, 0.5, step=0.2) + (scale is None)
        return trial.suggest_int("n", 1, 4, log=True) + trial.suggest_int("m", 0, 9, step=9)

    study = run(even(inner=RandomSampler), 6 + 16, objective)
    assert distinct(params(study)) == 22
    assert counts(study) == {"a": 6, "b": 16}


def test_what_a_grid_has_tried_is_drawn_again_before_the_nearest_is_taken() -> None:
    def objective(trial: optuna.Trial) -> float:
        trial.suggest_categorical("algorithm", ["only"])
        return float(trial.suggest_categorical("i", list(range(9))))

    study = optuna.create_study(sampler=BanditSampler(inner=RandomSampler, seed=3))
    study.optimize(objective, n_trials=9)
    drawn = [t.params["i"] for t in study.trials]
    assert sorted(drawn) == list(range(9))
    streams, redrawn = Streams(3), 0
    distribution = CategoricalDistribution(list(range(9)))
    for k in range(1, 9):
        attempts = [
            RandomSampler(
                seed=streams.integer("inner of a name", k, crc32(b"i"), attempt)
            ).sample_independent(study, study.trials[k], "i", distribution)
            for attempt in range(4)
        ]
        fresh = [value for value in attempts if value not in drawn[:k]]
        if fresh:
            assert drawn[k] == fresh[0]
            redrawn += fresh[0] != attempts[0]
    assert redrawn >= 2


@pytest.mark.parametrize(
    "make", [partial(BanditSampler, seed=0), partial(BOASFSampler, n_trials=60, seed=0)]
)
def test_threads_try_every_configuration_once(make: Any) -> None:
    """Also where the arms have fewer untried configurations than threads ask for."""

    def objective(trial: optuna.Trial) -> float:
        arm = trial.suggest_categorical("algorithm", ["a", "b", "c"])
        return ord(arm) + trial.suggest_int(f"n_{arm}", 0, 9) + trial.suggest_int("m", 0, 1)

    study = search(make(), objective, 6)  # one of each arm is complete
    study.optimize(objective, n_trials=54, n_jobs=4)
    assert distinct(params(study)) == 60
