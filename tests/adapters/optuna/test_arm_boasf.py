"""BOASF keeps its budget, stores its rounds once, and says when the money is gone."""

from __future__ import annotations

from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import pytest
from arm_objectives import Even, Spy, alike, arm_choices, counts, spies, zoo
from automl_plugins.adapters.optuna import BanditSampler, BOASFSampler, _private, arm_report
from objectives import fixing, params, search
from optuna.samplers import RandomSampler
from optuna.storages import RDBStorage
from optuna.trial import TrialState

from automl_plugins.bandits import ArmRecords, SuccessiveFiltering
from automl_plugins.records.trial import Status
from automl_plugins.streams import Streams

boasf = partial(BOASFSampler, inner=RandomSampler, seed=1)


def run(sampler: Any, n: int, objective: Any = alike, **options: Any) -> optuna.Study:
    return search(sampler, objective, n, catch=ArithmeticError, **options)


# --- rounds ---------------------------------------------------------------------------------


def test_the_same_as_the_core_by_hand() -> None:
    """An independent loop over SuccessiveFiltering gives the same arms."""
    study = run(boasf(n_trials=24, c=0.5), 24)
    filtering, streams, current = SuccessiveFiltering(24, c=0.5), Streams(1), None
    report = arm_report(study)
    rounds: list[int] = []
    for k, trial in enumerate(study.trials):
        before = ArmRecords(**{n: column[:k] for n, column in vars(report.records).items()})
        while (
            current is None
            or (arm := filtering.choose(current, before, [0, 1, 2], streams, k)) is None
        ):
            current = filtering.open([0, 1, 2], before, current, streams)
            rounds.append(k)
        assert trial.params["algorithm"] == "abc"[arm] and arm in current.arms
    assert report.opened == tuple(rounds) and report.unit == "trials"


def peak(trial: optuna.Trial) -> float:
    """The arm with the best trial is the worst on average."""
    algorithm = trial.suggest_categorical("algorithm", ["peak", "flat"])
    x = trial.suggest_float("x", 0, 1)
    if algorithm == "flat":
        return 0.3 + 0.01 * x
    return 0.1 if trial.number < 4 else 0.9


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize(("options", "kept"), [({"score": "mean"}, False), ({}, True)])
def test_the_arm_of_the_best_trial_stays(
    sign: int, options: Any, kept: bool, log: pytest.LogCaptureFixture
) -> None:
    sampler, direction = (
        boasf(n_trials=30, c=0.0, **options),
        "minimize" if sign > 0 else "maximize",
    )
    study = run(sampler, 30, lambda t: sign * peak(t), direction=direction)
    assert study.best_trial.params["algorithm"] == "peak"
    assert (0 in arm_report(study).rounds[-1].arms) == kept
    assert ("the arm of the best trial" in log.text) == (not kept)


def test_late_results_do_not_rewrite_the_past() -> None:
    study = run(boasf(n_trials=30), 9)
    late = study.ask()
    alike(late)
    study.optimize(alike, n_trials=10)
    before = arm_report(study).rounds
    assert len(before) == 2
    study.tell(late, -100.0)  # by far the best, and of another scale
    study.optimize(alike, n_trials=1)
    assert arm_report(study).rounds[:2] == before


def test_of_two_workers_the_one_with_the_earlier_trial_counts() -> None:
    study = run(boasf(n_trials=30), 9)
    first, second = study.ask(), study.ask()
    for trial, arms in ((second, (2,)), (first, (0,))):  # the later trial writes first
        frozen = study._storage.get_trial(trial._trial_id)
        opened = arm_report(study).rounds[0].to_dict()
        decisions = [d | {"advances": d["arm"] in arms} for d in opened["decisions"]]
        data = opened | {"index": 1, "limit": 30.0, "decisions": decisions}
        data |= {"budget": [30.0, "trials"]}
        _private.write_rounds(study, frozen, "algorithm", [data])
        assert arm_report(study).rounds[1].arms == arms
    study.tell(second, 0.5)
    assert arm_report(study).rounds[1].arms == (0,)
    study.tell(first, 0.5)
    assert arm_report(study).rounds[1].arms == (0,)
    study.sampler = boasf(n_trials=30)  # and so for a new worker
    assert arm_report(study).rounds[1].arms == (0,)


def test_many_arms_fit_into_a_relational_storage(tmp_path: Path) -> None:
    storage = RDBStorage(f"sqlite:///{tmp_path / 'study.db'}")
    names = [f"an algorithm with a long name, number {i}" for i in range(60)]

    sampler = boasf(n_trials=180, search_space=arm_choices(*names))

    def objective(trial: optuna.Trial) -> float:
        trial.suggest_categorical("algorithm", names)
        return trial.suggest_float("x", 0, 1)

    study = run(sampler, 2, objective, storage=storage)
    again = optuna.load_study(study_name=study.study_name, storage=storage, sampler=sampler)
    assert len(arm_report(again).rounds[0].decisions) == 60
    assert len(arm_report(again).rounds) == 1


# --- budgets --------------------------------------------------------------------------------


@pytest.mark.parametrize(("n_trials", "before"), [(1, 0), (7, 0), (7, 4), (30, 0)])
def test_stop_when_spent(n_trials: int, before: int) -> None:
    study = optuna.create_study(sampler=boasf(n_trials=n_trials, stop_when_spent=True))
    for n in (before, 60):
        study.optimize(alike, n_trials=n)
    assert len(study.trials) == n_trials
    study.optimize(alike, n_trials=60)  # a resumed study has no budget left: one trial tells so
    assert len(study.trials) == n_trials + 1


def test_stop_when_spent_in_seconds() -> None:
    def objective(trial: optuna.Trial) -> float:
        value = alike(trial)
        seconds = 3.0 if trial.params["algorithm"] == "c" else 1.0
        trial.set_user_attr("seconds", seconds)
        if trial.number % 7 == 6:
            raise ZeroDivisionError  # its time is spent too
        return value

    sampler = boasf(seconds=40.0, cost="seconds", stop_when_spent=True)
    study = run(sampler, 100, objective)
    spent = sum(t.user_attrs["seconds"] for t in study.trials)
    assert 37.0 <= spent <= 40.0
    assert arm_report(study).unit == "seconds"


@pytest.mark.parametrize("unit", ["n_trials", "seconds"])
@pytest.mark.parametrize("asks", ["now and then", "never", "fails before"])
def test_trials_without_an_arm_spend_the_budget(asks: str, unit: str) -> None:
    def objective(trial: optuna.Trial) -> float:
        trial.set_user_attr("seconds", 1.0)
        if asks == "never" or trial.suggest_categorical("plain", [True, False]):
            return 1 / 0 if asks == "fails before" else trial.suggest_float("x", 0, 1)
        return alike(trial)

    options: dict[str, Any] = {unit: 12, "search_space": arm_choices("a", "b", "c")}
    inner = Spy(seed=0)
    study = run(boasf(stop_when_spent=True, inner=inner, **options), 40, objective)
    assert len(study.trials) == 12
    if asks == "now and then":  # each trial is of the arm whose sampler proposed it
        records = arm_report(study).records
        for arm, spy in spies(study.sampler).items():
            own = {n for hook, n, *_ in spy.log if hook == "before"}
            assert own <= spy.log[-1][3] | {spy.log[-1][1]}
            assert arm is None or (records.arm == arm).sum() == len(own)
        assert len(records) == 12 and None in counts(study)


def test_trials_that_have_not_asked_for_an_arm_yet_spend_the_budget() -> None:
    study = optuna.create_study(sampler=boasf(n_trials=6, stop_when_spent=True))
    for _ in range(2):
        study.ask()
    study.optimize(alike, n_trials=20)
    assert len(study.trials) == 6


def test_stopping_under_hyperband_and_a_report_through_a_partial_fixing() -> None:
    pruner = optuna.pruners.HyperbandPruner(max_resource=9)
    sampler = boasf(n_trials=20, stop_when_spent=True)
    study = run(sampler, 60, alike, pruner=pruner, study_name="a name")
    assert len(study.trials) == 20  # all brackets together
    study.sampler = fixing({"x": 0.5}, study.sampler)
    assert len(arm_report(study).rounds) >= 1


def test_ask_and_tell_goes_on_with_the_survivors() -> None:
    study = optuna.create_study(sampler=boasf(n_trials=24, temperature=0.05, stop_when_spent=True))
    for _ in range(60):
        trial = study.ask()
        study.tell(trial, alike(trial))
    survivors = {"abc"[a] for a in arm_report(study).rounds[-1].arms}
    assert {p["algorithm"] for p in params(study)[24:]} == survivors
    assert counts(study)["a"] > 30


@pytest.mark.parametrize(
    ("n_before", "arms"), [(0, None), (40, "all arms: there was no round"), (24, "the last round")]
)
def test_a_budget_that_is_spent_is_said_once(
    n_before: int, arms: str | None, log: pytest.LogCaptureFixture
) -> None:
    """By the level, whether it was spent before the run began, where nothing is filtered."""
    before = boasf(n_trials=24) if n_before == 24 else RandomSampler(seed=1)
    study = run(before, n_before)
    log.clear()
    study.sampler = boasf(n_trials=24)
    study.optimize(alike, n_trials=30)
    (said,) = [r for r in log.records if "24 trials is spent" in r.message]
    assert said.levelname == ("INFO" if arms is None else "WARNING")
    assert (arms or "among the arms of the last round.") in said.message
    assert ("give a larger budget" in said.message) == (arms is not None)
    assert "24 trials is spent" in str(arm_report(study))
    assert "spent" not in str(arm_report(run(boasf(n_trials=40), 30)))


def test_more_arms_than_trials_is_said_and_survived(log: pytest.LogCaptureFixture) -> None:
    def objective(trial: optuna.Trial) -> float:
        trial.suggest_categorical("algorithm", list(range(10)))
        return trial.suggest_float("x", 0, 1)

    study = run(boasf(n_trials=4, stop_when_spent=True), 20, objective)
    assert len(study.trials) == 4 and max(counts(study).values()) == 1
    assert "10 arms share a budget of 4 trials" in log.text
    log.clear()
    run(boasf(n_trials=19, min_pulls=2), 1, objective)
    assert "10 arms share a budget of 19 trials: not every arm gets 2." in log.text
    log.clear()
    run(boasf(n_trials=20, min_pulls=2), 1, objective)
    assert "not every arm" not in log.text
    study = run(boasf(n_trials=1), 2, objective)
    assert "10 arms share a budget of 1 trial: not every arm gets 1." in log.text
    assert "The budget of 1 trial is spent" in str(arm_report(study))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({}, r"one budget, n_trials= .* or seconds= .*, one of the two; got neither"),
        ({"n_trials": 10, "seconds": 60}, "one of the two; got both"),
        ({"n_trials": 0}, "n_trials must be an integer >= 1"),
        ({"n_trials": 2.5}, "n_trials must be an integer"),
        ({"n_trials": True}, "n_trials must be an integer"),
        ({"seconds": 0.0}, "seconds must be a finite number > 0, got 0.0"),
        ({"seconds": "600"}, "seconds must be a finite number > 0, got '600'"),
        ({"n_trials": 9, "rounds": 0}, "rounds"),  # and what else SuccessiveFiltering refuses
    ],
)
def test_bad_arguments(arguments: dict[str, Any], words: str) -> None:
    with pytest.raises((TypeError, ValueError), match=words):
        boasf(**arguments)


# --- the report -----------------------------------------------------------------------------


def test_report_of_any_study() -> None:
    def objective(trial: optuna.Trial) -> float:
        value = zoo(trial)
        return 1 / 0 if trial.params["algorithm"] == "svm" else -100.0 * value

    sampler = BanditSampler(policy=Even(), inner=RandomSampler, seed=0)
    study = run(sampler, 20, objective, direction="maximize")
    names = ("svm", "net", "tree", "dummy")
    study.ask().suggest_categorical("algorithm", names)
    report = arm_report(study)
    assert report.names == names and len(report.records) == 21
    assert report.records.status[-1] == Status.RUNNING
    values = [t.value for t in study.trials if t.state == TrialState.COMPLETE]
    complete = report.records.status == Status.COMPLETE
    assert np.array(report.losses)[complete].tolist() == values
    assert report.maximize and report.rounds == ()
    text = " ".join(report.notes)
    assert "lie outside [0, 1]" in text and "svm failed in all of its trials." in text
    assert "dummy has no configuration left to try." in text and "svm" in str(report)


def test_report_of_a_loaded_study_has_the_unit_of_its_rounds() -> None:
    sampler = BOASFSampler(seconds=60, cost=lambda _: 1.0, inner=RandomSampler, seed=0)
    study = run(sampler, 20)
    rounds = arm_report(study).round_lines()
    assert "(20.0 s)" in rounds[0]
    study.sampler = RandomSampler()
    assert arm_report(study, "algorithm", cost=sampler.cost).round_lines() == rounds


def test_report_of_other_arms_says_nothing_of_the_budget() -> None:
    study = run(BOASFSampler(n_trials=12, inner=RandomSampler, seed=0), 12)
    assert any("The budget of 12 trials is spent" in note for note in arm_report(study).notes)
    other = arm_report(study, split=2)
    assert not any("budget" in note for note in other.notes)
    with pytest.raises(ValueError, match="on cells of the search space: give one of them"):
        arm_report(study, "algorithm", split=2)


def test_report_needs_an_arm_a_single_objective_and_trials() -> None:
    study = optuna.create_study(sampler=RandomSampler(seed=0))
    with pytest.raises(ValueError, match="RandomSampler has no arms"):
        arm_report(study)
    with pytest.raises(ValueError, match="No trial of the study has asked for 'model'"):
        arm_report(study, "model")
    study.optimize(zoo, n_trials=5)
    with pytest.raises(ValueError, match="'algorithm'"):
        arm_report(study, "model")
    assert len(arm_report(study, "algorithm").records) == 5
    several = optuna.create_study(directions=["minimize", "minimize"])
    with pytest.raises(ValueError, match="has 2 objectives"):
        arm_report(several, "algorithm")


def test_a_study_that_continues_with_another_budget_has_other_rounds() -> None:
    study = run(boasf(n_trials=30), 30)
    assert max(r.limit for r in arm_report(study).rounds) <= 30.0
    study.sampler = boasf(n_trials=120)
    study.optimize(alike, n_trials=90)
    assert max(r.limit for r in arm_report(study).rounds) > 30.0
    later = Counter(trial.params["algorithm"] for trial in study.trials[30:])
    assert len(later) > 1  # the last arm of the first search does not get all of them


def test_a_retried_trial_does_not_bring_back_the_rounds_of_an_older_budget() -> None:
    study = run(boasf(n_trials=9), 9)
    study.sampler = boasf(n_trials=30)
    study.optimize(alike, n_trials=5)
    own = arm_report(study).rounds
    copied = study.trials[0].system_attrs
    # As RetryFailedTrialCallback enqueues it: attributes are copied.
    study.add_trial(optuna.trial.create_trial(state=TrialState.WAITING, system_attrs=copied))
    study.optimize(alike, n_trials=1)
    study.sampler = RandomSampler()
    assert arm_report(study, "algorithm").rounds == own
