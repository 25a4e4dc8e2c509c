"""What BOASF does with its budget: rounds, arms, seconds, cells, continued runs, replays."""

from __future__ import annotations

import inspect
import itertools
import json
import logging
import math
import pickle
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from automl_plugins.adapters.hyperopt import (
    arm_report,
    bandit,
    boasf,
    boasf_fmin,
    gbqr,
    optimizer,
    weighted,
)
from automl_plugins.adapters.hyperopt.algos import Boasf
from automl_plugins.adapters.hyperopt.trials import note_of
from ConfigSpace import (
    Categorical,
    ConfigurationSpace,
    EqualsCondition,
    ForbiddenEqualsClause,
    Integer,
)
from effort import Clock
from hyperopt import (
    JOB_STATE_DONE,
    JOB_STATE_ERROR,
    JOB_STATE_NEW,
    STATUS_FAIL,
    STATUS_OK,
    Domain,
    Trials,
    hp,
    rand,
    tpe,
)
from hyperopt.exceptions import AllTrialsFailed
from hyperopt.fmin import generate_trials_to_calculate
from hyperopt_runs import configs, minimise, options_of, values_of

from automl_plugins.bandits.successive_filtering import Round
from automl_plugins.frameworks import Method, Optimizer, Outcome, Problem, TrialStatus
from automl_plugins.replay import replay
from automl_plugins.replay.simulation import Budget, Simulation
from automl_plugins.replay.table import Table

MODELS = ("svm", "rf", "knn", "mlp")


def space() -> Any:
    """Four models with a continuous hyperparameter each, one with a choice, and a bare one."""
    kernel = hp.choice("kernel", [{"k": "lin"}, {"k": "rbf", "gamma": hp.uniform("gamma", 0, 1)}])
    options: list[Any] = [{"type": m, "x": hp.uniform(f"{m}.x", 0, 1)} for m in MODELS]
    options[0]["kernel"] = kernel
    return hp.choice("model", [*options, {"type": "nb"}])


def loss_of(config: dict[str, Any]) -> float:
    if config["type"] == "nb":
        return 0.6
    return float(0.1 * (1 + MODELS.index(config["type"])) + 0.1 * abs(config["x"] - 0.3))


def timed(config: dict[str, Any]) -> dict[str, Any]:
    """A result with seconds on a simulated clock: 1 to 5, by model."""
    index = [*MODELS, "nb"].index(config["type"])
    return {"status": STATUS_OK, "loss": loss_of(config), "took": 1.0 + index}


def failing(config: dict[str, Any]) -> Any:
    """A model that raises, another that fails."""
    if config["type"] == "svm":
        raise RuntimeError("on purpose")
    return {"status": STATUS_FAIL} if config["type"] == "rf" else timed(config)


def search(fn: Any = loss_of, where: Any = None, *, seed: int = 0, **options: Any) -> Trials:
    """Trials of a quiet search by random sampling within the arms, which is quick."""
    trials = options.pop("trials", None)
    trials = Trials() if trials is None else trials
    settings: dict[str, Any] = {"inner": "random", "verbose": False, "return_argmin": False}
    where = space() if where is None else where
    rstate = np.random.default_rng(seed)
    boasf_fmin(fn, where, trials=trials, rstate=rstate, **(settings | options))
    return trials


def spent(trials: Trials) -> float:
    return math.fsum(result["took"] for result in trials.results if "took" in result)


# --- rounds -------------------------------------------------------------------------------


def test_evaluations_are_shared_in_rounds_that_the_trials_keep(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.INFO, logger="automl_plugins"):
        trials = search(max_evals=60)
    lines = [line for line in caplog.messages if line.startswith("Round")]
    assert len(lines) == 3 and all(name in lines[0] for name in MODELS)
    assert "left: " in lines[1] and "Best loss 0.1" in lines[1]
    report = arm_report(trials)
    assert len(trials) == 60 and report.names == (*MODELS, "nb")
    # What a round decided is what happened: nobody else was evaluated in it.
    for document, arm in zip(trials.trials, options_of(trials), strict=True):
        assert note_of(document)["arm"] == arm
        assert arm in report.rounds[note_of(document)["round"]].arms
    # A fifth of a third of 60 for each, but nothing more to try in the last.
    assert report.opened[:2] == (0, 4 * 4 + 1) and 4 not in report.rounds[1].arms
    stored = [data for d in trials.trials for data in note_of(d).get("opened", [])]
    assert [Round.from_dict(json.loads(json.dumps(data))) for data in stored] == [*report.rounds]


@pytest.mark.parametrize(("options", "kept"), [({"score": "mean"}, False), ({}, True)])
def test_a_warning_when_the_arm_of_the_best_trial_leaves(
    options: dict[str, Any], kept: bool, caplog: pytest.LogCaptureFixture
) -> None:
    calls = itertools.count()

    def peak(config: dict[str, Any]) -> float:
        return (0.1 if next(calls) < 3 else 0.9) if config["type"] == "peak" else 0.3

    arms = [{"type": t, "x": hp.uniform(f"{t}.x", 0, 1)} for t in ("peak", "flat")]
    trials = search(peak, hp.choice("model", arms), max_evals=30, c=0.0, **options)
    assert trials.best_trial["misc"]["vals"]["model"] == [0]
    assert (0 in arm_report(trials).rounds[-1].arms) == kept
    assert ("the arm of the best trial" in caplog.text) == (not kept)


# --- seconds ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("budget", "cost"), [(7.0, "took"), (60.5, lambda result: result["took"]), (150.0, "took")]
)
def test_a_budget_in_seconds_is_kept(budget: float, cost: Any) -> None:
    trials = search(timed, budget_seconds=budget, cost=cost)
    assert spent(trials) <= budget + 5.0
    if budget >= 60:
        assert budget - 5.0 <= spent(trials) <= budget
    report = arm_report(trials)
    assert report.unit == "seconds"
    assert report.records.seconds.sum() == spent(trials)


def test_seconds_are_measured_where_nothing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)

    def slow(config: dict[str, Any]) -> float:
        clock.sleep(0.125)
        return loss_of(config)

    trials = search(slow, budget_seconds=4.0)
    measured = [note_of(document)["seconds"] for document in trials.trials]
    assert set(measured) == {0.125}
    assert 3.0 < sum(measured) <= 4.25

    def fails_late(config: dict[str, Any]) -> Any:
        clock.sleep(0.5 if config["type"] == "svm" else 0.0)
        return failing(config)

    for cost in ("took", lambda result: result["took"]):
        trials = search(fails_late, budget_seconds=40, cost=cost, catch_eval_exceptions=True)
        silent = [d for d in trials._dynamic_trials if "took" not in d["result"]]
        charged = [note_of(d)["seconds"] for d in silent]
        assert len(charged) >= 2 and set(charged) == {0.0, 0.5}
        assert spent(trials) <= 40


@pytest.mark.parametrize("took", [-1.0, math.nan, math.inf, "much", None])
def test_a_cost_that_is_no_number_of_seconds_is_refused(took: Any) -> None:
    result = {"status": STATUS_OK, "loss": 0.5, "took": took}
    with pytest.raises(ValueError, match=r"cost='took' must give seconds >= 0"):
        search(lambda config: dict(result), budget_seconds=10, cost="took")


@pytest.mark.parametrize("executor", [None, ThreadPoolExecutor], ids=["here", "threads"])
def test_a_result_without_its_cost_ends_the_search_and_loses_nothing(
    executor: Any, tmp_path: Path
) -> None:
    path, evaluated, lock = tmp_path / "trials.pkl", list[Any](), threading.Lock()

    def unpriced(config: dict[str, Any]) -> dict[str, Any]:
        result = timed(config)
        with lock:
            evaluated.append(config)
            if len(evaluated) == 4:
                del result["took"]
        return result

    trials = Trials()
    options: dict[str, Any] = {"budget_seconds": 60, "cost": "took"}
    refused = pytest.raises(ValueError, match=r"cost='took' must give seconds >= 0, got None")
    with nullcontext() if executor is None else executor(3) as workers, refused:
        search(unpriced, trials=trials, trials_save_file=str(path), executor=workers, **options)
    for kept in (trials, pickle.loads(path.read_bytes())):
        states = Counter(document["state"] for document in kept)
        assert states.keys() <= {JOB_STATE_DONE, JOB_STATE_NEW}  # of which no evaluation began
        assert states[JOB_STATE_DONE] == len(evaluated)
    search(timed, trials=trials, **options)
    (unpriced_trial,) = [d for d in trials if "took" not in d["result"]]
    assert note_of(unpriced_trial)["seconds"] < 1.0  # measured
    assert 55.0 <= sum(note_of(document)["seconds"] for document in trials) <= 60.0


def test_seconds_of_the_result_count_as_in_fmin() -> None:
    calls = []

    def told(config: dict[str, Any]) -> dict[str, Any]:
        calls.append(config)
        assert len(calls) <= 40  # else measured seconds would not spend the budget for long
        return {"status": STATUS_OK, "loss": loss_of(config), "seconds": 10.0}

    trials, algo = Trials(), boasf(budget_seconds=100, inner="random")
    minimise(told, space(), algo, 40, trials=trials)
    again = search(told, budget_seconds=100)
    assert len(trials) == len(again) == 10
    assert str(arm_report(again)).splitlines()[0].startswith("5 arms, 10 pulls, 100.0 s;")


@pytest.mark.parametrize("cost", ["took", lambda result: result["took"]], ids=["key", "function"])
def test_a_report_has_the_costs_of_the_search(cost: Any) -> None:
    trials = Trials()
    minimise(
        timed, space(), boasf(budget_seconds=40, cost=cost, inner="random"), 99, trials=trials
    )
    report = arm_report(trials) if cost == "took" else arm_report(trials, cost=cost)
    assert report.records.seconds.sum() == sum(d["result"]["took"] for d in trials)


# --- what can be tried --------------------------------------------------------------------


@pytest.mark.parametrize("inner", ["random", partial(tpe.suggest, n_startup_jobs=3)])
def test_no_configuration_is_evaluated_twice_and_the_search_ends_with_them(inner: Any) -> None:
    where = hp.choice(
        "model", [{"k": hp.randint("k", 6)}, {"q": hp.quniform("q", 0, 3, 1)}, "bare"]
    )
    trials = search(lambda c: 0.5, where, max_evals=40, inner=inner)
    assert len(trials) == len({str(sorted(c.items())) for c in configs(trials)}) == 6 + 4 + 1


def test_what_cannot_be_listed_is_not_evaluated_twice_either() -> None:
    # TPE soon draws the same few of a branch without a real number, again and again
    where = hp.choice(
        "model",
        [
            {"n": hp.randint("n", 6), "of": hp.choice("of", [1, 2, hp.uniform("u", 0, 1)])},
            {"q": hp.qnormal("q", 0, 10, 3), "r": hp.qlognormal("r", 0, 1, 1)},
        ],
    )
    trials = search(lambda c: c["n"] if "n" in c else abs(c["q"]) + c["r"], where, max_evals=60)
    assert len(trials) == len({str(sorted(c.items())) for c in configs(trials)}) == 60


def test_arms_that_left_come_back_when_the_others_have_nothing_left() -> None:
    # 10 and 10, 20 more, and in the last round the 5 that are left of the better one
    where = hp.choice("model", [{"k": hp.randint("k", 35)}, {"x": hp.uniform("x", 0, 1)}])
    trials = search(lambda c: 0.1 if "k" in c else 0.9, where, max_evals=60)
    assert Counter(options_of(trials)) == {0: 35, 1: 25}
    report = arm_report(trials)
    assert "model[0] has no configuration left to try." in report.notes
    assert any("Round 4 takes back model[1]" in note for note in report.notes)


def test_arms_that_always_fail_are_dropped_and_reported() -> None:
    trials = search(failing, max_evals=60, catch_eval_exceptions=True)
    counts = Counter(options_of(trials))
    assert sum(counts.values()) == 60
    assert counts[0] <= 4 and counts[1] <= 4  # a share of the first round each
    report = arm_report(trials)
    assert {f"{name} failed in all of its trials." for name in ("svm", "rf")} <= {*report.notes}
    reasons = {d.arm: d.reason for r in report.rounds for d in r.decisions if not d.advances}
    assert reasons[0] == reasons[1] == "failed every time"
    raised = [d for d in trials._dynamic_trials if d["state"] == JOB_STATE_ERROR]
    assert len(trials) == 60 - len(raised) < len(report.records) == 60
    errors = {d["misc"]["error"] for d in raised}
    assert errors == {("<class 'RuntimeError'>", "on purpose")}


def test_an_arm_that_always_fails_has_the_rest_once_no_other_has_anything_left() -> None:
    where = hp.choice("model", [{"x": hp.uniform("x", 0, 1)}, {"k": hp.randint("k", 4)}])

    def objective(config: Any) -> float:
        if "x" in config:
            raise RuntimeError("on purpose")
        return float(config["k"])

    trials = search(objective, where, max_evals=20, catch_eval_exceptions=True)
    assert Counter(options_of(trials)) == {1: 4, 0: 16}


def test_when_everything_fails_it_is_said_as_fmin_says_it() -> None:
    for result in ({"status": STATUS_FAIL}, math.nan):
        with pytest.raises(AllTrialsFailed):
            search(lambda c, result=result: result, max_evals=12, return_argmin=True)


def test_more_arms_than_evaluations_is_warned_of() -> None:
    with pytest.warns(UserWarning, match="5 arms, but 3 evaluations"):
        trials = search(max_evals=3)
    assert len(set(options_of(trials))) == 3
    with pytest.warns(UserWarning, match="5 arms, but 1 evaluation: not every arm gets 1"):
        search(max_evals=1)
    with pytest.warns(UserWarning, match="not every arm gets 2"):
        search(max_evals=9, min_pulls=2)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "one budget, .* got neither"),
        ({"max_evals": 5, "budget_seconds": 5.0}, "one budget, .* got both"),
        ({"max_evals": 0}, "max_evals must be an integer >= 1, got 0"),
        ({"budget_seconds": -1}, "budget_seconds must be a finite number > 0, got -1"),
        ({"budget_seconds": math.nan}, "a finite number > 0, got nan"),
        (
            {"max_evals": 5, "rounds": 0},
            "rounds must be an integer >= 1",
        ),  # and others of the core
        ({"max_evals": 5, "inner": "tpee"}, "'random', 'tpe' or a suggest function"),
        ({"max_evals": 5, "label": "model", "split": 2}, "label= makes .* give one"),
        ({"max_evals": 9, "reward_range": (1, 1)}, "reward_range must be two different finite"),
        ({"max_evals": 9, "reward_range": (0,)}, "reward_range must be two different finite"),
        ({"max_evals": 9, "reward_range": "ab"}, "reward_range must be two different finite"),
        ({"max_evals": 5, "n_workers": 2}, "n_workers=2 needs an executor="),
        ({"max_evals": 5, "where": hp.uniform("x", 0, 1)}, "split=2"),
        ({"max_evals": 5, "split": 1}, "split must be an integer >= 2, got 1"),
        ({"max_evals": 5, "split": {}}, "split is empty: name at least one parameter"),
        ({"max_evals": 5, "split": 2, "max_arms": 1}, "max_arms must be an integer >= 2, got 1"),
    ],
)
def test_bad_arguments_are_refused_before_anything_is_evaluated(
    options: dict[str, Any], message: str
) -> None:
    def never(config: Any) -> float:
        raise AssertionError("evaluated")

    with pytest.raises(ValueError, match=message):
        search(never, **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"split": 2, "max_arms": "x"}, "max_arms must be an integer >= 2, got 'x'"),
        ({"split": {"x": 2.5}}, r"split\['x'\] must be an integer >= 2, got 2.5"),
        ({"cost": 3}, "cost takes None, a key of the result, or a function .*; got 3"),
    ],
)
def test_options_of_another_type_are_refused_when_they_are_given(
    options: dict[str, Any], message: str
) -> None:
    with pytest.raises(TypeError, match=message):
        boasf(max_evals=5, **options)


# --- cells --------------------------------------------------------------------------------


def test_cells_of_the_space_are_arms() -> None:
    where = {
        "x": hp.uniform("x", -5, 5),
        "y": hp.loguniform("y", -3, 3),
        "n": hp.normal("n", 0, 1),
    }

    def bowl(config: dict[str, Any]) -> float:
        return float((config["x"] - 2) ** 2 + (math.log(config["y"]) + 1) ** 2)

    inner = partial(tpe.suggest, n_startup_jobs=3)
    trials = search(bowl, where, max_evals=60, split=2, inner=inner)
    report = arm_report(trials)  # knows from the trials how the space was split
    low, high = "y in [0.04979, 1)", "y in [1, 20.09]"
    halves = ("x in [-5, 0)", "x in [0, 5]")
    assert report.names == tuple(f"{x}, {y}" for x in halves for y in (low, high))
    assert max(report.table(), key=lambda row: row.pulls).arm == report.names[2]
    assert "Not split, since they have no bounds: n." in report.notes
    for document in trials.trials:
        values = values_of(document)
        assert note_of(document)["arm"] == 2 * (values["x"] >= 0) + (values["y"] >= 1)


# --- continued ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("stop_at", "inner"), [(3, "random"), (20, partial(tpe.suggest, n_startup_jobs=2))]
)
def test_a_run_that_was_interrupted_continues_as_if_it_had_not_been(
    stop_at: int, inner: Any
) -> None:
    def interrupted(config: dict[str, Any]) -> float:
        if len(trials.trials) == stop_at:
            raise KeyboardInterrupt
        return loss_of(config)

    whole, trials = search(max_evals=36, inner=inner), Trials()
    with pytest.raises(KeyboardInterrupt):
        search(interrupted, max_evals=36, inner=inner, trials=trials)
    assert len(trials) == stop_at
    search(max_evals=36, inner=inner, trials=trials)
    assert configs(trials) == configs(whole)
    rounds = [[note_of(d)["round"] for d in t.trials] for t in (trials, whole)]
    assert rounds[0] == rounds[1]
    assert arm_report(trials).rounds == arm_report(whole).rounds
    assert configs(whole) != configs(search(max_evals=36, inner=inner, seed=1))


def test_a_spent_budget_is_spent_and_a_larger_one_opens_rounds_of_its_own() -> None:
    trials = search(max_evals=15)
    search(lambda c: 1 / 0, max_evals=15, trials=trials)
    assert len(trials) == 15
    search(max_evals=40, trials=trials)
    assert len(trials) == 40
    report = arm_report(trials)
    assert report.rounds[0].arms == (0, 1, 2, 3)  # all that can be pulled still, anew
    assert report.rounds[-1].limit == pytest.approx(40)
    timed_trials = search(timed, budget_seconds=30, cost="took")
    n = len(timed_trials)
    search(lambda c: 1 / 0, budget_seconds=30, cost="took", trials=timed_trials)
    assert len(timed_trials) == n


# --- as an algo of fmin -------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        {"max_evals": 30},
        {"budget_seconds": 60.5, "cost": "took"},
        {"max_evals": 24, "split": 2, "max_arms": 8, "inner": partial(tpe.suggest, gamma=0.3)},
    ],
)
def test_the_algo_is_what_boasf_fmin_does_and_ends_fmin(options: dict[str, Any]) -> None:
    seed = int(np.random.default_rng(3).integers(2**31 - 1))
    ours = search(timed, seed=3, **options)
    theirs = minimise(timed, space(), boasf(**({"inner": "random"} | options), seed=seed), 100)
    assert len(ours) == len(theirs) < 100
    assert configs(ours) == configs(theirs)
    assert arm_report(ours).rounds == arm_report(theirs).rounds


def test_the_algo_continues_and_takes_its_options_by_partial_or_call() -> None:
    options = {"max_evals": 30, "inner": "random", "seed": 1}
    whole = minimise(timed, space(), boasf(**options), 100)
    parts = minimise(timed, space(), partial(boasf, **options), 11)
    minimise(timed, space(), pickle.loads(pickle.dumps(boasf(**options))), 100, trials=parts)
    assert configs(whole) == configs(parts) and len(parts) == 30
    with pytest.raises(TypeError, match="max_eval"):
        boasf(max_eval=3)
    with pytest.raises(ValueError, match="one budget"):
        boasf(rounds=3)


def test_the_options_of_boasf_fmin_are_those_of_the_algo() -> None:
    given, ours = (inspect.signature(function).parameters for function in (boasf, boasf_fmin))
    for field in fields(Boasf):
        assert given[field.name].default == field.default
        assert field.name == "seed" or ours[field.name].default == field.default


def test_several_trials_are_proposed_at_a_time() -> None:
    domain, trials = Domain(timed, space(), pass_expr_memo_ctrl=False), Trials()
    algo = boasf(max_evals=8, inner="random", seed=0)
    documents = algo(trials.new_trial_ids(6), domain, trials, 0)
    assert len({d["misc"]["vals"]["model"][0] for d in documents}) == 5
    trials.insert_trial_docs(documents)
    trials.refresh()
    assert len(algo(trials.new_trial_ids(6), domain, trials, 0)) == 2  # of 8 in all


@pytest.mark.parametrize(
    "algo", [boasf(max_evals=12, inner="random"), bandit(inner="random"), weighted]
)
def test_a_report_needs_no_space(algo: Any) -> None:
    trials = minimise(timed, space(), rand.suggest, 4)
    with pytest.raises(ValueError, match=r"pass the search space"):
        arm_report(trials)
    minimise(timed, space(), algo, 12, trials=trials)
    report, again = arm_report(trials), arm_report(trials, space(), label="model")
    assert report.names == again.names == (*MODELS, "nb")
    assert report.records.arm.tolist() == again.records.arm.tolist() == options_of(trials)
    assert bool(report.rounds) == ("boasf" in str(algo)) and not again.rounds
    assert arm_report(trials, space()).rounds == report.rounds


def branching() -> Any:
    """Two models, each with a choice whose options are arms inside it."""
    names = {"svm": ["rbf", "poly"], "rf": ["gini", "entropy"]}
    options = [
        {"how": hp.choice(model, [{"name": n, "x": hp.uniform(n, 0, 1)} for n in inside])}
        for model, inside in names.items()
    ]
    return hp.choice("model", [options[0] | {"type": "svm"}, options[1] | {"type": "rf"}])


@pytest.mark.parametrize("outer", [bandit, partial(boasf, max_evals=18), weighted], ids=str)
def test_arms_inside_an_arm_have_notes_of_their_own(outer: Any) -> None:
    inner = bandit(inner=gbqr(n_startup=99), seed=1)
    trials = minimise(lambda c: c["how"]["x"], branching(), outer(inner=inner, seed=1), 18)
    report, notes = arm_report(trials), [note_of(document) for document in trials.trials]
    assert report.names == ("svm", "rf") and report.records.arm.tolist() == options_of(trials)
    assert len(report.rounds) == (3 if "boasf" in str(outer) else 0)
    assert sum("search" in note for note in notes) == max(len(report.rounds), 1)
    for option, label in enumerate(("svm", "rf")):
        own = [d for d in trials.trials if d["misc"]["vals"]["model"] == [option]]
        inside = [note_of(document)["inner"] for document in own]
        assert [note["arm"] for note in inside] == [d["misc"]["vals"][label][0] for d in own]
        (search,) = (note["search"] for note in inside if "search" in note)
        assert search["arms"]["choice"] == label
        seeds: dict[int, set[int]] = {}
        for document, note in zip(own, inside, strict=True):
            seeds.setdefault(note["arm"], set()).add(note_of(document)["proposal"]["seed"])
        assert all(len(found) == 1 for found in seeds.values())  # it has read its own notes


@pytest.mark.parametrize("outer", [bandit, partial(boasf, max_evals=18), weighted], ids=str)
def test_boasf_inside_an_arm_keeps_its_rounds(outer: Any) -> None:
    inner = boasf(max_evals=18, rounds=6, inner="random", seed=1)
    trials = minimise(lambda c: c["how"]["x"], branching(), outer(inner=inner, seed=1), 18)
    n_opened = []
    for option in range(2):
        own = [d for d in trials.trials if d["misc"]["vals"]["model"] == [option]]
        inside = [note_of(document)["inner"] for document in own]
        opened = [data["index"] for note in inside for data in note.get("opened", [])]
        assert opened == [*range(len(opened))]  # none is opened again
        assert [note["round"] for note in inside] == sorted(note["round"] for note in inside)
        n_opened.append(len(opened))
    assert min(n_opened) and max(n_opened) > 1


# --- replays ------------------------------------------------------------------------------


def table() -> Table:
    """Three algorithms with grids of their own, one without any; seconds by algorithm."""
    made = ConfigurationSpace(seed=0)
    algorithm = Categorical("algorithm", ["svm", "rf", "knn", "nb"])
    made.add(algorithm)
    rows: list[dict[str, Any]] = [{"algorithm": "nb"}]
    for name, n in (("svm", 6), ("rf", 10), ("knn", 3)):
        child = Integer(f"{name}.k", (1, n))
        made.add(child, EqualsCondition(child, algorithm, name))
        rows += [{"algorithm": name, f"{name}.k": k} for k in range(1, n + 1)]
    order = {"svm": 0.1, "rf": 0.2, "knn": 0.4, "nb": 0.6}
    losses = [order[r["algorithm"]] + 0.01 * r.get(f"{r['algorithm']}.k", 0) for r in rows]
    seconds = [{"svm": 3.0, "rf": 2.0, "knn": 1.0, "nb": 0.5}[r["algorithm"]] for r in rows]
    return Table("toy", made, rows, losses, seconds=seconds)


def simulate(method: Method, budget: Budget, *, seed: int = 0) -> Simulation:
    made = table()
    problem = Problem(made.space, seed=seed, n_trials=budget.n_trials, n_workers=budget.n_workers)
    simulation = Simulation(made, method.start(problem), budget)
    simulation.run()
    return simulation


def test_a_replay_ends_with_the_configurations_or_with_its_own_budget() -> None:
    assert len(simulate(optimizer(boasf), Budget(n_trials=12)).evaluations) == 12
    with pytest.raises(ValueError, match="one budget"):
        optimizer("boasf").start(Problem(table().space, seed=0))
    simulation = simulate(optimizer("boasf", inner="random"), Budget(n_trials=100))
    found = {str(sorted(e.proposal.config.items())) for e in simulation.evaluations}
    assert len(found) == len(simulation.evaluations) == 20  # all there are


@pytest.mark.parametrize("n_workers", [1, 3])
def test_a_budget_in_seconds_is_that_of_the_table(n_workers: int) -> None:
    method = optimizer(boasf_fmin, budget_seconds=20.0, inner=rand.suggest)
    simulation = simulate(method, Budget(n_trials=100, n_workers=n_workers))
    took = sum(e.outcome.seconds for e in simulation.evaluations)
    assert 20 - 3 * n_workers <= took <= 20 + 3 * (n_workers - 1)
    search: Any = simulation.optimizer
    report = arm_report(search.trials)
    assert report.records.seconds.sum() == pytest.approx(took)
    assert len(report.rounds) == 3 and report.unit == "seconds"


@pytest.mark.parametrize("n_workers", [1, 3])
def test_without_a_budget_of_its_own_it_has_the_seconds_of_the_replay(n_workers: int) -> None:
    searches: list[Any] = []

    class Watched:
        name = "watched"

        def start(self, problem: Problem) -> Optimizer:
            searches.append(optimizer(boasf, inner=rand.suggest).start(problem))
            return cast(Optimizer, searches[-1])

    method = {"boasf": Watched()}
    replay(method, table(), budget=9.0, unit="seconds", n_workers=n_workers, progress=False)
    report = arm_report(searches[0].trials)
    took = np.nansum(report.records.seconds)  # one may still be running when the clock stops
    assert report.unit == "seconds" and 9 * n_workers - 3 * n_workers <= took <= 9 * n_workers


def test_replays_are_named_pickled_and_repeatable() -> None:
    method = optimizer("boasf", rounds=2)
    assert isinstance(method, Method) and method.name == "automl_plugins.boasf"
    assert isinstance(method.start(Problem(table().space, seed=0, n_trials=9)), Optimizer)
    assert optimizer(boasf_fmin, name="mine").name == "mine"
    runs = [
        [dict(e.proposal.config) for e in simulate(m, Budget(n_trials=15), seed=s).evaluations]
        for m, s in ((method, 3), (pickle.loads(pickle.dumps(method)), 3), (method, 4))
    ]
    assert runs[0] == runs[1] != runs[2]
    for options in ({"budget": 3}, {"executor": None}, {"trials": None}):
        with pytest.raises(TypeError):
            optimizer("boasf", **options)


def test_failures_are_dropped_and_forbidden_ones_cost_nothing() -> None:
    made = table()
    made.space.add(ForbiddenEqualsClause(made.space["rf.k"], 3))
    replayed = optimizer("boasf", budget_seconds=12.0).start(Problem(made.space, seed=1))
    clock, seen = 0.0, []
    while (proposal := replayed.ask()) is not None:
        seen.append(dict(proposal.config))
        failed = proposal.config["algorithm"] == "svm"
        status = TrialStatus.FAILED if failed else TrialStatus.COMPLETE
        loss = math.nan if failed else 0.5
        replayed.tell(proposal, Outcome(status, loss, clock, clock + 1.0))
        clock += 1.0
    assert {"algorithm": "rf", "rf.k": 3} not in seen
    assert [c["algorithm"] for c in seen].count("svm") <= 3
    assert clock <= 12


def test_a_point_that_is_no_number_lies_in_no_cell() -> None:
    """Hyperopt cannot evaluate it, but goes on where exceptions are caught."""
    trials, x = generate_trials_to_calculate([{"x": "0.5"}]), {"x": hp.uniform("x", 0, 1)}
    algo = boasf(max_evals=5, split=2)
    minimise(lambda c: 2 * c["x"], x, algo, 6, trials=trials, catch_eval_exceptions=True)
    assert len(arm_report(trials).losses) == 5  # of six trials
