"""Define-by-run objectives of every kind, failures, costs, constraints, manners, bad input."""

from __future__ import annotations

import json
import logging
import math
import multiprocessing
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import pytest
from automl_plugins.adapters.optuna import (
    AutoSampler,
    BanditSampler,
    EIPerSecondSampler,
    GBQRSampler,
    NoImprovement,
    PMFSampler,
    SurrogateSampler,
    _private,
    explain,
    proposer_sampler,
)
from automl_plugins.adapters.optuna.trials import read_trial
from objectives import (
    bowl,
    conditional,
    fixing,
    layers,
    needs_constraints,
    params,
    reporting,
    search,
)
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.samplers import RandomSampler
from optuna.trial import TrialState

from automl_plugins.proposers.proposal import ask
from automl_plugins.records.history import History
from automl_plugins.surrogates import RandomForest

# --- define-by-run ------------------------------------------------------------------------


@pytest.mark.parametrize("objective", [conditional, layers])
def test_conditional_parameters_are_proposed_jointly(
    objective: Callable[[optuna.Trial], float],
) -> None:
    class Refusing(RandomSampler):
        """After every name has been seen, nothing may be sampled independently."""

        def sample_independent(self, study: Any, trial: Any, name: Any, distribution: Any) -> Any:
            seen = {n for t in study.get_trials(deepcopy=False) for n in t.distributions}
            assert name not in seen - trial.params.keys()
            return super().sample_independent(study, trial, name, distribution)

    study = search(GBQRSampler(seed=0, independent_sampler=Refusing(seed=0)), objective, 26)
    assert study.best_value < sorted(t.value or 0.0 for t in study.trials)[13]
    json.dumps(params(study))  # builtins only, no numpy scalars
    for trial in study.trials:
        for name, value in trial.params.items():
            distribution = trial.distributions[name]
            assert distribution._contains(distribution.to_internal_repr(value))
            assert type(value) is int or not isinstance(distribution, IntDistribution)


@pytest.mark.parametrize("make", [AutoSampler, GBQRSampler])
def test_a_parameter_that_got_another_name_leaves_with_its_trials(
    make: Callable[..., Any], log: pytest.LogCaptureFixture
) -> None:
    def named(name: str) -> Callable[[optuna.Trial], float]:
        return lambda t: abs(t.suggest_float(name, 0, 1) - 0.3) + t.suggest_int("n", 0, 9)

    study = search(make(seed=1), named("old"), 9)
    study.optimize(named("new"), n_trials=12)
    assert _private.read_proposal(study.trials[-1]).keys() == {"new", "n"}
    assert 0 < explain(study.trials[-1]).n_rows <= 11  # without the nine
    assert [r.message.partition(":")[0] for r in log.records if "another name" in r.message] == [
        "'old' seems to have another name now"
    ]
    log.clear()
    study.optimize(named("old"), n_trials=2)  # as an objective with a condition of its own
    assert _private.read_proposal(study.trials[-1]).keys() == {"old", "new", "n"}
    assert explain(study.trials[-1]).n_rows > 11
    assert all(r.levelname == "INFO" for r in log.records)


def test_a_parameter_asked_for_again_is_back_at_once() -> None:
    def objective(trial: optuna.Trial) -> float:
        return trial.suggest_float("new" if 20 <= trial.number < 64 else "old", 0, 1)

    study = search(GBQRSampler(seed=1), objective, 66)  # rules are not inferred at the 65th trial
    assert _private.read_proposal(study.trials[64]).keys() == {"new"}
    assert _private.read_proposal(study.trials[65]).keys() == {"old", "new"}


def test_a_declared_parameter_is_not_left_out() -> None:
    declared = {"x": FloatDistribution(0, 1), "early": FloatDistribution(0, 1)}

    def objective(trial: optuna.Trial) -> float:
        name = "early" if trial.number < 2 else "x"
        return trial.suggest_float(name, 0, 1)

    study = search(GBQRSampler(seed=1, search_space=declared), objective, 16)
    assert _private.read_proposal(study.trials[-1]).keys() == declared.keys()


def test_an_ordinal_of_two_choices_alone() -> None:
    sampler = GBQRSampler(seed=0, ordinal={"o": ["lo", "hi"]})
    study = search(sampler, lambda t: t.suggest_categorical("o", ["lo", "hi"]) == "lo", 3)
    assert study.best_params == {"o": "hi"}


def test_declared_names_that_no_trial_asks_for_are_said_once(
    log: pytest.LogCaptureFixture,
) -> None:
    def objective(trial: optuna.Trial) -> float:
        depth = trial.suggest_categorical("depth", [1, 2, 4])
        return float(depth) if trial.number < 15 else trial.suggest_float("late", 0, 1)

    sampler = GBQRSampler(
        seed=0,
        ordinal={"dept": [1, 2, 4]},
        search_space={"late": FloatDistribution(0, 1), "y": FloatDistribution(0, 1)},
    )
    study = optuna.create_study(sampler=sampler)
    study.optimize(objective, n_trials=10)
    assert not log.records or all(r.levelname != "WARNING" for r in log.records)
    study.optimize(objective, n_trials=10)
    said = [r.message for r in log.records if "has asked for" in r.message]
    assert said == [
        "GBQRSampler: none of 10 finished trials has asked for 'late', which search_space names;"
        " they ask for depth.",
        "GBQRSampler: none of 10 finished trials has asked for 'y', which search_space names;"
        " they ask for depth.",
        "GBQRSampler: none of 10 finished trials has asked for 'dept', which ordinal names;"
        " they ask for depth. Did you mean 'depth'?",
    ]


def test_a_declared_parameter_with_one_value_is_asked_for(log: pytest.LogCaptureFixture) -> None:
    declared = {
        "x": FloatDistribution(0, 1),
        "depth": IntDistribution(5, 5),
        "size": CategoricalDistribution(["small"]),
    }
    sampler = GBQRSampler(seed=0, search_space=declared, ordinal={"size": ["small"]})
    study = optuna.create_study(sampler=sampler)
    for k in range(12):
        study.tell(study.ask(declared), float(k))
    assert not any("has asked for" in r.message for r in log.records)


def test_ranges_that_move_between_trials(log: pytest.LogCaptureFixture) -> None:
    study = search(
        GBQRSampler(seed=0),
        lambda t: t.suggest_float("x", 1, 10, log=True) + t.suggest_int("i", 0, 9),
        15,
    )
    moved = lambda t: t.suggest_float("x", 100, 1000, log=True) + t.suggest_int("i", 5, 50)  # noqa: E731
    study.optimize(moved, n_trials=15)
    assert all(values["x"] >= 100 for values in params(study)[15:])
    # Only the first trial of the new range cannot know it.
    assert sum("sampled independently" in r.message for r in log.records) <= 2
    assert explain(study.trials[-1]).origin == "model"


def test_what_is_enqueued_or_fixed_is_kept_and_the_rest_is_proposed_given_it() -> None:
    def objective(trial: optuna.Trial) -> float:
        kind = trial.suggest_categorical("kind", ["a", "b"])
        x = trial.suggest_float("x", 0, 1)
        # The best x depends on the kind: a joint proposal must look at the enqueued one.
        return (x - (0.2 if kind == "a" else 0.8)) ** 2

    study = search(RandomSampler(seed=0), objective, 60)
    study.sampler = GBQRSampler(seed=0)
    study.enqueue_trial({"kind": "b", "x": 0.5})
    study.optimize(objective, n_trials=1)
    assert study.trials[-1].params == {"kind": "b", "x": 0.5}
    for kind, best in (("a", 0.2), ("b", 0.8)):
        study.enqueue_trial({"kind": kind})
        study.optimize(objective, n_trials=1)
        assert study.trials[-1].params["kind"] == kind
        assert abs(study.trials[-1].params["x"] - best) < 0.2
        study.sampler = fixing({"kind": kind}, GBQRSampler(seed=0))
        study.optimize(objective, n_trials=1)
        assert study.trials[-1].params["kind"] == kind
        assert abs(study.trials[-1].params["x"] - best) < 0.2


def test_each_hyperband_bracket_learns_from_all() -> None:
    study = search(
        GBQRSampler(seed=0, n_startup_trials=4),
        reporting(bowl),
        24,
        pruner=optuna.pruners.HyperbandPruner(max_resource=9),
    )
    origins = [explain(trial).origin for trial in study.trials]
    assert origins == ["independent"] + ["design"] * 3 + ["model"] * 20  # one start for all
    assert any(t.state == TrialState.PRUNED for t in study.trials)


# --- constraints, cost ----------------------------------------------------------------------


@needs_constraints
def test_constraints_are_learnt() -> None:
    def objective(trial: optuna.Trial) -> float:
        x, y = trial.suggest_float("x", 0, 1), trial.suggest_float("y", 0, 1)
        trial.set_constraint("x + y >= 1", 1 - x - y)
        return x + y

    study = search(GBQRSampler(seed=0), objective, 28)
    feasible = [t.constraints["x + y >= 1"] <= 0 for t in study.trials]
    assert np.mean(feasible[14:]) >= 0.5
    values = [t.value for t, ok in zip(study.trials, feasible, strict=True) if ok]
    assert min(v for v in values if v is not None) < 1.1


@needs_constraints
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_an_optimum_on_a_border_is_found(seed: int) -> None:
    def objective(trial: optuna.Trial) -> float:
        x, y = trial.suggest_float("x", 0, 1), trial.suggest_float("y", 0, 1)
        trial.set_constraint("c", x + y - 1.13)
        return (x - 0.9) ** 2 + (y - 0.7) ** 2

    study = search(AutoSampler(seed=seed), objective, 25)
    optimum = (0.9 + 0.7 - 1.13) ** 2 / 2.0  # at the foot of the perpendicular
    best = min(t.value or 1.0 for t in study.trials if t.constraints["c"] <= 0)
    assert best < optimum + 1e-3


@pytest.mark.parametrize("other", [None, GBQRSampler(seed=1)])
def test_own_time_is_no_cost_of_the_objective(other: Any) -> None:
    class Slow(RandomForest):
        def fit(self, X: Any, y: Any) -> Slow:
            time.sleep(0.05)
            super().fit(X, y)
            return self

    sampler = SurrogateSampler(Slow(), independent_sampler=other, n_startup_trials=2, seed=0)
    for trial in search(sampler, bowl, 6).trials[3:]:
        assert trial.duration is not None
        passed = trial.duration.total_seconds()
        assert 0.0 <= read_trial(trial, maximize=False).seconds < passed - 0.05 + 1e-6


@pytest.mark.parametrize("acquisition", ["ei", "bound"])
def test_a_cost_divides_the_gain_of_any_surrogate(acquisition: Any) -> None:
    def objective(trial: optuna.Trial) -> float:
        x = trial.suggest_float("x", 0.0, 1.0)
        trial.set_user_attr("seconds", 1.0 + 100.0 * x)
        return (x - 0.5) ** 2

    def found(name: Any, cost: str | None) -> list[float]:
        sampler = SurrogateSampler("random_forest", acquisition=name, cost=cost, seed=0)
        return [trial.params["x"] for trial in search(sampler, objective, 14).trials]

    with_cost = found(acquisition, "seconds")
    assert with_cost == found(f"{acquisition}_per_second", "seconds")
    assert with_cost != found(acquisition, None)


def test_ei_per_second_learns_from_the_duration_unless_told_otherwise() -> None:
    def objective(trial: optuna.Trial) -> float:
        x = trial.suggest_float("x", 0.0, 1.0)
        trial.set_user_attr("seconds", 1.0 + 100.0 * x)
        return (x - 0.5) ** 2

    def found(**options: Any) -> list[float]:
        study = search(EIPerSecondSampler(seed=0, **options), objective, 14)
        return [trial.params["x"] for trial in study.trials]

    assert found() == found(cost="duration") == found(cost="seconds")
    assert found() != found(cost=lambda trial: 1.0)


def raising(trial: optuna.trial.FrozenTrial) -> float:
    return float(trial.user_attrs["secnods"])


@pytest.mark.parametrize(
    ("bad", "cost", "message"),
    [
        ("fast", "seconds", r"cost='seconds' gave 'fast' for trial 0"),
        ([1.0], "seconds", r"cost='seconds' gave \[1.0\] for trial 0"),
        (1.0, raising, r"raised KeyError\('secnods'\) for trial 0"),
    ],
)
def test_a_cost_that_no_trial_has_is_refused(bad: Any, cost: Any, message: str) -> None:
    def objective(trial: optuna.Trial) -> float:
        trial.set_user_attr("seconds", bad)
        return bowl(trial)

    study = optuna.create_study(sampler=GBQRSampler(cost=cost, seed=0))
    with pytest.raises(ValueError, match=message):
        study.optimize(objective, n_trials=3)
    assert study.trials[0].state == TrialState.COMPLETE


@pytest.mark.parametrize(
    ("number", "bad", "named"),
    [
        (0, math.nan, True),
        (3, -1e-3, False),
        (3, math.inf, True),
        (3, "fast", False),
        (3, None, True),
        (3, None, False),
    ],
)
def test_the_seconds_of_an_unusable_cost_are_unknown(
    number: int, bad: Any, named: bool, log: pytest.LogCaptureFixture
) -> None:
    def objective(trial: optuna.Trial) -> float:
        if trial.number == 5:
            raise MemoryError  # before it has a cost
        trial.set_user_attr("seconds", bad if trial.number == number else 1.0 + trial.number % 3)
        return bowl(trial)

    cost: Any = "seconds" if named else (lambda trial: trial.user_attrs["seconds"])
    study = optuna.create_study(sampler=GBQRSampler(cost=cost, seed=0, n_startup_trials=6))
    study.optimize(objective, n_trials=9, catch=(MemoryError,))
    assert [t.state for t in study.trials].count(TrialState.COMPLETE) == 8
    assert explain(study.trials[-1]).seconds == pytest.approx(2.0, abs=1.0)
    said = [m for m in log.messages if "counts as unknown" in m]
    assert len(said) == (bad is not None) and all(f"for trial {number}:" in m for m in said)


@pytest.mark.parametrize("named", [True, False])
def test_a_cost_that_is_never_known_is_said_once(
    named: bool, log: pytest.LogCaptureFixture
) -> None:
    def nothing(trial: optuna.trial.FrozenTrial) -> Any:
        return trial.user_attrs.get("secnods")

    def objective(trial: optuna.Trial) -> float:
        trial.set_user_attr("nothing", int(0.9))  # a quick one, in whole seconds
        return bowl(trial)

    cost: Any = "nothing" if named else nothing
    study = optuna.create_study(sampler=GBQRSampler(cost=cost, seed=0))
    study.optimize(objective, n_trials=5)
    assert not [m for m in log.messages if "costs" in m]
    study.optimize(objective, n_trials=5)
    (said,) = [m for m in log.messages if "costs" in m]
    assert "nothing" in said and "has given no number above 0 for any of 5 trials" in said


def test_unusable_costs_are_said_once(log: pytest.LogCaptureFixture) -> None:
    study = optuna.create_study(sampler=GBQRSampler(cost=lambda trial: -1.0, seed=0))
    study.optimize(bowl, n_trials=9)
    (said,) = [m for m in log.messages if "gave -1.0" in m]
    assert "for trial 0: it must be a finite number above 0" in said


def test_a_cost_need_not_have_a_hash() -> None:
    @dataclass
    class Slower:
        factor: float

        def __call__(self, trial: optuna.trial.FrozenTrial) -> float:
            return self.factor * float(trial.user_attrs["seconds"])

    def objective(trial: optuna.Trial) -> float:
        trial.set_user_attr("seconds", 1.0)
        return bowl(trial)

    study = search(GBQRSampler(cost=Slower(3.0), seed=0), objective, 8)
    assert explain(study.trials[-1]).seconds == pytest.approx(3.0)


@pytest.mark.slow
@pytest.mark.parametrize("make", [GBQRSampler, AutoSampler])
def test_a_branch_that_always_fails_lets_nothing_be_repeated(make: Any) -> None:
    """No complete trial has its parameters, so that nobody knows that they are conditional."""

    def objective(trial: optuna.Trial) -> float:
        if trial.suggest_categorical("algorithm", ["trees", "network"]) == "network":
            trial.suggest_float("rate", 1e-5, 1.0, log=True)
            raise MemoryError
        depth, leaf = trial.suggest_int("depth", 1, 15), trial.suggest_int("leaf", 1, 15)
        return 0.03 * abs(depth - 11) + 0.02 * abs(leaf - 4)

    study = optuna.create_study(sampler=make(seed=0))
    study.optimize(objective, n_trials=40, catch=(MemoryError,))
    done = study.get_trials(states=(TrialState.COMPLETE,))
    assert len(done) == len({tuple(trial.params.items()) for trial in done}) > 25


@pytest.mark.parametrize("end", [optuna.TrialPruned, MemoryError])
def test_nothing_is_repeated_before_a_trial_is_complete(end: type[Exception]) -> None:
    """What each branch asks for is seen in trials that have stopped."""

    def objective(trial: optuna.Trial) -> float:
        kind = trial.suggest_categorical("kind", ["a", "b"])
        trial.report(trial.suggest_float(f"x_{kind}", 0, 1) + (kind == "b"), 1)
        raise end

    study = optuna.create_study(sampler=GBQRSampler(seed=1))
    study.optimize(objective, n_trials=25, catch=(MemoryError,))
    assert len({str(trial.params) for trial in study.trials}) == 25
    for trial in study.trials[10:]:  # what the other branch asks for is not part of a proposal
        assert _private.read_proposal(trial).keys() == trial.params.keys()


def test_a_declared_parameter_that_nobody_asks_for_lets_nothing_be_repeated() -> None:
    x, n = FloatDistribution(0, 1), IntDistribution(1, 4)
    sampler = GBQRSampler(seed=1, search_space={"x": x, "n": n, "typo": x})
    study = optuna.create_study(sampler=sampler)
    study.optimize(lambda t: t.suggest_float("x", 0, 1) + t.suggest_int("n", 1, 4), n_trials=25)
    assert len({str(trial.params) for trial in study.trials}) == 25


def test_underflow_may_be_an_error_for_the_user() -> None:
    with np.errstate(all="raise"):
        study = search(AutoSampler(seed=1), bowl, 14)
    plain = search(AutoSampler(seed=1), bowl, 14)
    assert [t.params for t in study.trials] == [t.params for t in plain.trials]


def test_an_unknown_cost_attribute_is_named() -> None:
    with pytest.raises(ValueError, match="cost='secnods': no complete trial has"):
        search(GBQRSampler(cost="secnods", seed=0), bowl, 3)


# --- manners ------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [GBQRSampler, AutoSampler])  # one model, several members
def test_one_debug_line_for_each_refit(make: Any, log: pytest.LogCaptureFixture) -> None:
    optuna.logging.set_verbosity(optuna.logging.DEBUG)
    search(make(seed=0, n_startup_trials=5), bowl, 9)
    lines = [r for r in log.records if "fitted on" in r.message]
    assert len(lines) == 4
    assert {r.levelno for r in lines} == {logging.DEBUG}  # INFO has Optuna's line of each trial
    assert f"{make.__name__} fitted on 8 trials" in lines[-1].message


class Broken:
    """A foreign surrogate whose fit fails."""

    def fit(self, X: Any, y: Any) -> Broken:
        raise FloatingPointError("singular")

    def predict(self, X: Any) -> Any:
        return X[:, 0]


def test_a_trial_that_stopped_half_way_counts_with_what_it_was_proposed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def objective(trial: optuna.Trial) -> float:
        size = trial.suggest_float("size", -2.0, 4.0)
        if size > 1.5:
            raise MemoryError
        return (trial.suggest_float("rate", -5.0, 0.0) + 2.0) ** 2 - size

    seen: list[History] = []

    def watched(proposer: Any, space: Any, history: History, *others: Any) -> Any:
        seen.append(history)
        return ask(proposer, space, history, *others)

    monkeypatch.setattr(proposer_sampler, "ask", watched)
    study = optuna.create_study(sampler=AutoSampler(seed=0))
    study.optimize(objective, n_trials=3)
    study.enqueue_trial({"size": 3.0})  # nobody proposed a rate
    study.optimize(objective, n_trials=22, catch=MemoryError)
    crashed = [t for t in study.trials[4:-1] if t.state == TrialState.FAIL]
    assert 2 <= len(crashed) <= 8  # about 14 where they are not learnt from
    columns = seen[-1].vectors[:, 0], seen[-1].vectors[:, 1]  # rate, size
    gaps = np.flatnonzero(np.isnan(columns[0]))
    assert gaps.tolist() == [3] and seen[-1].missing[3, 0]
    for trial in crashed:
        rate = (_private.read_proposal(trial)["rate"] + 5.0) / 5.0
        assert columns[0][trial.number] == pytest.approx(rate)
        assert "rate" not in trial.params


def test_a_model_that_fails_warns_once_and_samples_independently(
    log: pytest.LogCaptureFixture,
) -> None:
    sampler = SurrogateSampler(
        surrogate=Broken(), n_startup_trials=3, warn_independent_sampling=False, seed=0
    )
    assert len(search(sampler, bowl, 10).trials) == 10
    assert sum("singular" in r.message for r in log.records) == 1


def test_no_improvement_stops_the_study() -> None:
    study = optuna.create_study(sampler=RandomSampler(seed=0))
    study.optimize(lambda t: float(t.number < 5), n_trials=100, callbacks=[NoImprovement(10)])
    assert len(study.trials) == 16  # best at number 5, ten more without an improvement
    study.optimize(lambda t: 0.5, n_trials=100, callbacks=[NoImprovement(12)])
    assert len(study.trials) == 18  # a resumed study continues to count


@needs_constraints
def test_no_improvement_counts_feasible_gains_above_min_delta() -> None:
    def objective(trial: optuna.Trial) -> float:
        trial.suggest_float("x", 0, 1)
        trial.set_constraint("c", 1.0 if trial.number == 3 else 0.0)
        return {0: 1.0, 3: 9.0}.get(trial.number, 1.0 + 0.001 * trial.number)

    study = optuna.create_study(direction="maximize")
    study.optimize(objective, n_trials=50, callbacks=[NoImprovement(4, min_delta=0.1)])
    assert len(study.trials) == 5


@needs_constraints
def test_there_is_nothing_to_improve_on_before_a_feasible_finite_trial() -> None:
    def objective(trial: optuna.Trial) -> float:
        trial.set_constraint("c", 1.0 if trial.number < 5 else 0.0)
        return math.inf if trial.number < 8 else 1.0

    study = optuna.create_study()
    study.optimize(objective, n_trials=50, callbacks=[NoImprovement(3)])
    assert len(study.trials) == 12  # best at number 8, three more


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_an_infinite_value_is_not_the_best_there_can_be(direction: Any) -> None:
    sign = 1.0 if direction == "minimize" else -1.0
    values = [-math.inf, 5.0, 4.0, 3.0, 2.0, 2.0, 2.0, 2.0]
    study = optuna.create_study(direction=direction)
    study.optimize(lambda t: sign * values[t.number], 8, callbacks=[NoImprovement(2)])
    assert len(study.trials) == 7


def _child(queue: Any) -> None:
    queue.put(search(GBQRSampler(seed=0), bowl, 12).best_value)


@pytest.mark.skipif(
    "fork" not in multiprocessing.get_all_start_methods(), reason="this system cannot fork"
)
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_child_can_use_lightgbm() -> None:
    search(GBQRSampler(seed=0), bowl, 12)
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    process = context.Process(target=_child, args=(queue,))
    process.start()
    assert queue.get(timeout=600) >= 0
    process.join(timeout=600)
    assert process.exitcode == 0


# --- bad input ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: GBQRSampler(alpha=0.0), ValueError, r"alpha must lie in \(0, 1\), got 0.0"),
        (lambda: GBQRSampler(alpha=1.5), ValueError, r"alpha must lie in \(0, 1\), got 1.5"),
        (lambda: GBQRSampler(alpha=None), TypeError, r"alpha must lie in \(0, 1\), got None"),
        (lambda: GBQRSampler(ordinal=True), TypeError, "ordered choices by name .* got True"),
        (lambda: GBQRSampler(ordinal={"a": 1}), TypeError, r"such as .*got \{'a': 1\}"),
        (
            lambda: GBQRSampler(independent_sampler=True),
            TypeError,
            r"a sampler of Optuna, such as RandomSampler\(\), or None, got True",
        ),
        (lambda: PMFSampler("svm", xi=10**400), ValueError, "xi must be a finite number >= 0"),
        (
            lambda: GBQRSampler(n_candidates=0),
            ValueError,
            "n_candidates must be an integer >= 1, or None, got 0",
        ),
        (
            lambda: GBQRSampler(seed=-1),
            ValueError,
            "seed must be an integer >= 0, or None, got -1",
        ),
        (
            lambda: GBQRSampler(seed="x"),
            TypeError,
            "seed must be an integer >= 0, or None, got 'x'",
        ),
        (
            lambda: SurrogateSampler(interleave=1),
            ValueError,
            "interleave must be an integer >= 2, or None, got 1",
        ),
        (lambda: GBQRSampler(failed_trials="x"), ValueError, "one of 'avoid', 'ignore', got 'x'"),
        (lambda: GBQRSampler(cost=3), TypeError, "cost must be None, 'duration'"),
        *(
            (
                partial(make, warn_independent_sampling="no"),
                TypeError,
                "warn_independent_sampling must be True or False, got 'no'",
            )
            for make in (GBQRSampler, AutoSampler)
        ),
        *(
            (
                partial(AutoSampler, memory, task=3),
                TypeError,
                "task must be the name of this task, or None, got 3",
            )
            for memory in ("auto", "svm", None)
        ),
        (lambda: GBQRSampler(nonsense=1), TypeError, "nonsense"),
        (
            lambda: GBQRSampler(search_space={"x": (0, 1)}),
            TypeError,
            r"distributions by name, such as .*FloatDistribution.*got \{'x': \(0, 1\)\}",
        ),
        (lambda: GBQRSampler(search_space=["x"]), TypeError, "distributions by name"),
        (
            lambda: GBQRSampler(search_space={1: FloatDistribution(0, 1)}),
            TypeError,
            r"distributions by name, .*got \{1: Float",
        ),
        (
            lambda: AutoSampler(constraints_func=len, multivariate=True),
            TypeError,
            r"constraints_func: .*set_constraint.*; multivariate: .*always.*; it takes memory",
        ),
        (lambda: AutoSampler(n_ei_candidates=9), TypeError, "it is called n_candidates here"),
        (lambda: SurrogateSampler(surrogate=3), TypeError, r"fit\(X, y\) and predict\(X\), got 3"),
        (lambda: SurrogateSampler(surrogate=RandomForest), TypeError, "an object with fit"),
        (lambda: SurrogateSampler(surrogate="gbm"), ValueError, "surrogate must be one of"),
        (lambda: SurrogateSampler(acquisition="ucb"), ValueError, "acquisition must be one of"),
        (lambda: EIPerSecondSampler(cost_exponent=2), ValueError, r"a number in \[0, 1\], got 2"),
        (lambda: NoImprovement(0), ValueError, "patience must be an integer >= 1, got 0"),
        (
            lambda: NoImprovement(1, min_delta=-1),
            ValueError,
            "min_delta must be a finite number >= 0, got -1",
        ),
    ],
)
def test_bad_arguments(make: Callable[[], Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        make()


@pytest.mark.parametrize("sampler", [GBQRSampler(seed=0), BanditSampler("kind", seed=0)])
def test_a_name_that_is_no_text_is_refused(sampler: Any) -> None:
    """Such as that of a column: Optuna's samplers take it, as long as they need not sort it."""
    study = optuna.create_study(sampler=sampler)
    with pytest.raises(TypeError, match=r"name of a parameter must be a text, got 3: pass '3' to"):
        study.optimize(lambda trial: trial.suggest_float(3, 0, 1), n_trials=1)  # type: ignore[arg-type]


@pytest.mark.parametrize("sampler", [GBQRSampler(seed=0), BanditSampler("kind", seed=0)])
def test_a_name_without_an_encoding_is_one_like_others(sampler: Any) -> None:
    """Such as that of a file whose name is no UTF-8."""

    def objective(trial: optuna.Trial) -> float:
        trial.suggest_categorical("kind", ["a", "b"])
        return trial.suggest_float("x\udcff", 0, 1)

    study = optuna.create_study(sampler=sampler)
    study.optimize(objective, n_trials=8)
    assert len(study.trials) == 8


@pytest.mark.parametrize(
    ("declared", "objective", "message"),
    [
        (
            FloatDistribution(0, 5),
            lambda t: t.suggest_int("x", 0, 5),
            "Cannot set different .* to the same parameter name",
        ),
        (
            FloatDistribution(1, 5),
            lambda t: t.suggest_float("x", 1, 5, log=True),
            "Cannot set different .* to the same parameter name",
        ),
        (
            CategoricalDistribution([1, 2]),
            lambda t: t.suggest_categorical("x", [2, 1]),
            "CategoricalDistribution does not support dynamic value space",
        ),
    ],
)
def test_a_parameter_declared_in_another_way_fails_as_the_docs_say(
    declared: Any, objective: Callable[[optuna.Trial], float], message: str
) -> None:
    """Optuna compares the proposal with what is asked for, before a sampler can."""
    study = optuna.create_study(sampler=AutoSampler(search_space={"x": declared}))
    with pytest.raises(ValueError, match=message):
        study.optimize(objective, 1)


def test_added_trials_with_other_choices_fail_the_next_and_what_the_docs_advise_works() -> None:
    def objective(trial: optuna.Trial) -> float:
        kind = trial.suggest_categorical("kind", ["svm", "rf", "knn"])  # "knn" is new
        return trial.suggest_float("x", 0, 1) + len(kind)

    def added(distributions: dict[str, Any], sampler: Any = None) -> optuna.Study:
        study = optuna.create_study(sampler=sampler or AutoSampler(memory=None, seed=0))
        params = {name: {"kind": "svm", "x": 0.5}[name] for name in distributions}
        for value in range(3):
            trial = optuna.trial.create_trial(
                value=value, params=params, distributions=distributions
            )
            study.add_trial(trial)
        return study

    x = {"x": FloatDistribution(0, 1)}
    old = x | {"kind": CategoricalDistribution(["svm", "rf"])}
    new = x | {"kind": CategoricalDistribution(["svm", "rf", "knn"])}
    for sampler in (AutoSampler(memory=None, seed=0), BanditSampler("kind", seed=0)):
        with pytest.raises(ValueError, match="does not support dynamic value space"):
            added(old, sampler).optimize(objective, n_trials=1)
        for distributions in (x, new):
            added(distributions, sampler).optimize(objective, n_trials=4)
    search(AutoSampler(added(old), seed=0), objective, 4)


@pytest.mark.slow
@pytest.mark.parametrize("direction", ["maximize", "minimize"])
def test_a_study_with_the_id_of_a_deleted_one_is_another(direction: Any, tmp_path: Path) -> None:
    storage = optuna.storages.get_storage(f"sqlite:///{tmp_path / 'studies.db'}")
    sampler = GBQRSampler(seed=3)
    first = optuna.create_study(storage=storage, study_name="x", sampler=sampler)
    first.optimize(lambda t: t.suggest_float("a", 0, 1), n_trials=8)
    optuna.delete_study(study_name="x", storage=storage)
    found = []
    for again in (sampler, GBQRSampler(seed=3)):
        second = optuna.create_study(
            storage=storage, study_name="x", sampler=again, direction=direction
        )
        assert second._study_id == first._study_id
        second.optimize(lambda t: t.suggest_float("b", 0, 1), n_trials=8)
        found.append(params(second))
        optuna.delete_study(study_name="x", storage=storage)
    assert found[0] == found[1]


def test_the_independent_sampler_hears_of_every_trial(monkeypatch: pytest.MonkeyPatch) -> None:
    own = optuna.samplers.RandomSampler(seed=0)
    heard: list[Any] = []
    monkeypatch.setattr(own, "before_trial", lambda study, trial: heard.append(trial.number))
    monkeypatch.setattr(
        own, "after_trial", lambda study, trial, state, values: heard.append((state, values))
    )
    monkeypatch.setattr(own, "reseed_rng", lambda: heard.append("reseed"))
    sampler = GBQRSampler(independent_sampler=own, seed=0)
    search(sampler, lambda t: t.suggest_float("x", 0, 1) * 0.0, 2)
    sampler.reseed_rng()
    complete = (TrialState.COMPLETE, [0.0])
    assert heard == [0, complete, 1, complete, "reseed"]


def test_the_independent_sampler_of_another_warns_of_nothing(
    log: pytest.LogCaptureFixture,
) -> None:
    own = GBQRSampler(seed=0)
    sampler = optuna.samplers.CmaEsSampler(
        independent_sampler=own, warn_independent_sampling=False, seed=0
    )
    study = optuna.create_study(sampler=sampler)
    study.optimize(
        lambda t: t.suggest_float("x", 0, 1) + t.suggest_categorical("c", [0, 1]), n_trials=8
    )
    assert not [m for m in log.messages if "independently" in m]


def test_the_independent_sampler_of_another_learns(monkeypatch: pytest.MonkeyPatch) -> None:
    held: list[bool] = []
    alone = GBQRSampler._alone

    def noted(sampler: Any, study: Any, trial: Any, name: str, distribution: Any) -> Any:
        value = alone(sampler, study, trial, name, distribution)
        held.append("x" in trial.params)
        published = _private.read_proposal(study.trials[trial.number])
        assert published == {name: distribution.to_internal_repr(value)}
        return value

    def objective(trial: optuna.Trial) -> float:
        x, y = trial.suggest_float("x", 0, 1), trial.suggest_float("y", 0, 1)
        return abs(x - y) + 2.0 * (trial.suggest_categorical("c", list("abcd")) != "c")

    monkeypatch.setattr(GBQRSampler, "_alone", noted)
    sampler = optuna.samplers.CmaEsSampler(
        independent_sampler=GBQRSampler(seed=0), warn_independent_sampling=False, seed=0
    )
    study = search(sampler, objective, 30)
    chosen = [trial.params["c"] for trial in study.trials[12:]]
    assert chosen.count("c") > 0.7 * len(chosen)
    assert all(held) and len(held) == 29  # of the first trial nothing was known
    assert {explain(trial).origin for trial in study.trials} == {"independent"}


def test_the_independent_sampler_of_another_leaves_what_that_one_proposed() -> None:
    def objective(trial: optuna.Trial) -> float:
        low = 0.0 if trial.number < 8 else 9.9  # where the joint proposal is not
        x = trial.suggest_float("x", low, 10)
        return x + trial.suggest_float("y", 0, 1) - trial.suggest_float("z", 0, 1)

    sampler = GBQRSampler(
        independent_sampler=GBQRSampler(seed=1), warn_independent_sampling=False, seed=0
    )
    study = search(sampler, objective, 9)
    assert explain(study.trials[8]).independent == ("x",)


def test_the_independent_sampler_of_another_survives_a_model_that_fails() -> None:
    own = SurrogateSampler(surrogate=Broken(), n_startup_trials=3, seed=0)
    sampler = optuna.samplers.CmaEsSampler(
        independent_sampler=own, warn_independent_sampling=False, seed=0
    )
    study = search(sampler, lambda t: t.suggest_categorical("c", list("abcd")) != "c", 12)
    assert {trial.params["c"] for trial in study.trials} == set("abcd")


def test_multi_objective_studies_are_refused_and_nothing_is_lost() -> None:
    study = optuna.create_study(directions=["minimize", "maximize"], sampler=GBQRSampler(seed=0))
    study.add_trial(
        optuna.create_trial(
            params={"x": 0.5}, distributions={"x": FloatDistribution(0, 1)}, values=[1.0, 2.0]
        )
    )
    with pytest.raises(ValueError, match="GBQRSampler optimises one objective, the study has 2"):
        study.optimize(lambda t: (t.suggest_float("x", 0, 1), 1.0), n_trials=1)
    assert study.trials[0].values == [1.0, 2.0]
    assert len(study.trials) == 2
    with pytest.raises(ValueError, match="has 2 objectives"):
        NoImprovement(1)(study, study.trials[0])


PLACE = {"a": 0.63, "b": 0.27, "c": 0.81}


def pruned_bowl(trial: optuna.Trial) -> float:
    loss = sum((trial.suggest_float(name, 0.0, 1.0) - at) ** 2 for name, at in PLACE.items())
    trial.report(loss, 1)
    if trial.should_prune():
        raise optuna.TrialPruned
    return loss


def pruned_above(loss: float) -> optuna.Study:
    pruner = optuna.pruners.ThresholdPruner(upper=loss)
    return optuna.create_study(sampler=AutoSampler(seed=0), pruner=pruner)


def test_a_search_whose_trials_are_all_pruned_but_the_first_one_learns_from_them() -> None:
    """As by successive halving after a good default: one complete loss has no worse half."""
    study = pruned_above(0.02)
    study.enqueue_trial({name: at + 0.08 for name, at in PLACE.items()})  # loss 0.0192
    study.optimize(pruned_bowl, n_trials=25)
    assert study.best_value < 0.002


def test_a_search_whose_trials_are_all_pruned_learns_how_far_they_came() -> None:
    study = pruned_above(0.003)
    study.optimize(pruned_bowl, n_trials=25)
    first = next(t.number for t in study.trials if t.state == TrialState.COMPLETE)
    assert first > 6 and study.best_value < 0.003
    assert explain(study.trials[first - 1]).bound is None  # no loss was there to predict


@pytest.mark.slow
@needs_constraints
def test_a_search_without_a_feasible_trial_looks_for_one() -> None:
    def objective(trial: optuna.Trial) -> float:
        values = [trial.suggest_float(name, 0.0, 1.0) for name in "abcd"]
        trial.set_constraint("c", math.dist(values, [0.25] * 4) - 0.22)
        return -sum(values)

    feasible = []
    for seed in range(3):  # one search alone may find it late
        study = search(AutoSampler(seed=seed), objective, 30)
        feasible.append([t.value or 0.0 for t in study.trials if t.constraints["c"] <= 0.0])
    # Of 90 random trials one is feasible.
    assert sum(map(len, feasible)) >= 6 and min(map(min, filter(None, feasible))) < -1.2
