"""Define-by-run objectives of every kind, failures, costs, constraints, manners, bad input."""

from __future__ import annotations

import json
import logging
import math
import multiprocessing
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import optuna
import pytest
from automl_plugins.adapters.optuna import (
    EIPerSecondSampler,
    GBQRSampler,
    NoImprovement,
    SurrogateSampler,
    explain,
)
from objectives import bowl, conditional, layers
from optuna.distributions import FloatDistribution, IntDistribution
from optuna.trial import TrialState

from automl_plugins.surrogates import RandomForest


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    optuna.logging.enable_propagation()
    yield caplog
    optuna.logging.disable_propagation()


# --- define-by-run ------------------------------------------------------------------------


@pytest.mark.parametrize("objective", [conditional, layers])
def test_conditional_parameters_are_proposed_jointly(
    objective: Callable[[optuna.Trial], float],
) -> None:
    class Refusing(optuna.samplers.RandomSampler):
        """After every name has been seen, nothing may be sampled independently."""

        def sample_independent(self, study: Any, trial: Any, name: Any, distribution: Any) -> Any:
            seen = {n for t in study.get_trials(deepcopy=False) for n in t.distributions}
            assert name not in seen - trial.params.keys()
            return super().sample_independent(study, trial, name, distribution)

    sampler = GBQRSampler(seed=0, independent_sampler=Refusing(seed=0))
    study = optuna.create_study(sampler=sampler)
    study.optimize(objective, n_trials=40)
    assert study.best_value < sorted(t.value or 0.0 for t in study.trials)[20]
    json.dumps([t.params for t in study.trials])  # builtins only, no numpy scalars


def test_the_start_visits_every_branch_once_before_any_twice() -> None:
    arms = [f"arm{i}" for i in range(10)]

    def objective(trial: optuna.Trial) -> float:
        arm = trial.suggest_categorical("arm", arms)
        return trial.suggest_float(f"{arm}.x", 0, 1)

    study = optuna.create_study(sampler=GBQRSampler(seed=0))
    study.optimize(objective, n_trials=10)
    assert {trial.params["arm"] for trial in study.trials} == set(arms)


def test_an_ordinal_of_two_choices_alone() -> None:
    study = optuna.create_study(sampler=GBQRSampler(seed=0, ordinal={"o": ["lo", "hi"]}))
    study.optimize(
        lambda t: float(t.suggest_categorical("o", ["lo", "hi"]) == "lo"), n_trials=3, catch=()
    )
    assert study.best_params == {"o": "hi"}


def test_ranges_that_move_between_trials(log: pytest.LogCaptureFixture) -> None:
    study = optuna.create_study(sampler=GBQRSampler(seed=0))
    study.optimize(
        lambda t: t.suggest_float("x", 1, 10, log=True) + t.suggest_int("i", 0, 9), n_trials=15
    )
    moved = lambda t: t.suggest_float("x", 100, 1000, log=True) + t.suggest_int("i", 5, 50)  # noqa: E731
    study.optimize(moved, n_trials=15)
    assert all(t.params["x"] >= 100 for t in study.trials[15:])
    # Only the first trial of the new range cannot know it.
    assert sum("sampled independently" in r.message for r in log.records) <= 2
    assert study.trials[-1].user_attrs["automl_plugins"]["origin"] == "model"


def test_enqueued_trials_are_kept_and_the_rest_is_proposed_given_them() -> None:
    def objective(trial: optuna.Trial) -> float:
        kind = trial.suggest_categorical("kind", ["a", "b"])
        x = trial.suggest_float("x", 0, 1)
        # The best x depends on the kind: a joint proposal must look at the enqueued one.
        return (x - (0.2 if kind == "a" else 0.8)) ** 2

    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    study.enqueue_trial({"kind": "b", "x": 0.5})
    study.optimize(objective, n_trials=60)
    assert study.trials[0].params == {"kind": "b", "x": 0.5}
    study.sampler = GBQRSampler(seed=0)
    for kind, best in (("a", 0.2), ("b", 0.8)):
        study.enqueue_trial({"kind": kind})
        study.optimize(objective, n_trials=1)
        assert study.trials[-1].params["kind"] == kind
        assert abs(study.trials[-1].params["x"] - best) < 0.2


def test_partial_fixing_conditions_the_proposals() -> None:
    def objective(trial: optuna.Trial) -> float:
        x, y = trial.suggest_float("x", 0, 1), trial.suggest_float("y", 0, 1)
        return (x - y) ** 2

    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    study.optimize(objective, n_trials=50)
    study.sampler = GBQRSampler(seed=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        study.sampler = optuna.samplers.PartialFixedSampler({"x": 0.9}, study.sampler)
    study.optimize(objective, n_trials=10)
    assert all(t.params["x"] == 0.9 for t in study.trials[50:])
    assert np.median([abs(t.params["y"] - 0.9) for t in study.trials[50:]]) < 0.3


def test_hyperband_brackets() -> None:
    def objective(trial: optuna.Trial) -> float:
        value = bowl(trial)
        for step in range(9):
            trial.report(value + 1 / (step + 1), step)
            if trial.should_prune():
                raise optuna.TrialPruned
        return value

    study = optuna.create_study(
        sampler=GBQRSampler(seed=0, n_startup_trials=4),
        pruner=optuna.pruners.HyperbandPruner(max_resource=9),
    )
    study.optimize(objective, n_trials=40)
    origins = [t.user_attrs.get("automl_plugins", {}).get("origin") for t in study.trials]
    assert origins.count("model") > 10
    assert any(t.state == TrialState.PRUNED for t in study.trials)


def test_a_declared_search_space_is_used_from_the_first_trial() -> None:
    space = {"x": FloatDistribution(-5, 5), "y": FloatDistribution(-5, 5)}
    study = optuna.create_study(sampler=GBQRSampler(seed=0, search_space=space))
    study.optimize(bowl, n_trials=1)
    assert study.trials[0].user_attrs["automl_plugins"]["origin"] == "design"


def test_choices_that_equal_each_other_stay_apart() -> None:
    seen = set()

    def objective(trial: optuna.Trial) -> float:
        choice = trial.suggest_categorical("c", [True, 1.5, None, "True", float("nan")])
        seen.add(repr(choice))
        return 0.0 if choice is None else 1.0

    study = optuna.create_study(sampler=GBQRSampler(seed=0))
    study.optimize(objective, n_trials=20)
    assert len(seen) == 5


# --- failures, infinities, constraints, cost ----------------------------------------------


def partly_failing(trial: optuna.Trial, how: str) -> float:
    x, y = trial.suggest_float("x", 0, 1), trial.suggest_float("y", 0, 1)
    if x > 0.6:
        if how == "raise":
            raise RuntimeError("out of memory")
        return math.nan
    return (x - 0.62) ** 2 + (y - 0.3) ** 2


def test_constraints_are_learnt() -> None:
    def objective(trial: optuna.Trial) -> float:
        x, y = trial.suggest_float("x", 0, 1), trial.suggest_float("y", 0, 1)
        trial.set_constraint("x + y >= 1", 1 - x - y)
        return x + y

    study = optuna.create_study(sampler=GBQRSampler(seed=0))
    study.optimize(objective, n_trials=60)
    feasible = [t.constraints["x + y >= 1"] <= 0 for t in study.trials]
    assert np.mean(feasible[30:]) >= 0.5
    values = [t.value for t, ok in zip(study.trials, feasible, strict=True) if ok]
    assert min(v for v in values if v is not None) < 1.1


def test_equal_costs_do_not_change_the_search() -> None:
    def objective(trial: optuna.Trial) -> float:
        trial.set_user_attr("seconds", 2.0)
        return conditional(trial)

    aware = optuna.create_study(sampler=EIPerSecondSampler(cost="seconds", seed=0))
    aware.optimize(objective, n_trials=30)
    blind = optuna.create_study(sampler=EIPerSecondSampler(cost_exponent=0.0, seed=0))
    blind.optimize(objective, n_trials=30)
    assert [t.params for t in aware.trials] == [t.params for t in blind.trials]


def test_own_time_is_no_cost_of_the_objective() -> None:
    class Slow(RandomForest):
        def fit(self, X: Any, y: Any) -> Slow:
            import time

            time.sleep(0.05)
            super().fit(X, y)
            return self

    from automl_plugins.adapters.optuna import _private
    from automl_plugins.adapters.optuna.trials import read_trial

    sampler = SurrogateSampler(surrogate=Slow(), n_startup_trials=2, seed=0)
    study = optuna.create_study(sampler=sampler)
    study.optimize(bowl, n_trials=6)
    for trial in study.trials[3:]:
        assert trial.duration is not None
        whole, own = trial.duration.total_seconds(), _private.read_overhead(trial)
        assert own >= 0.05
        assert read_trial(trial, maximize=False).seconds == pytest.approx(whole - own, rel=1e-6)


# --- manners ------------------------------------------------------------------------------


def test_one_debug_line_for_each_refit(log: pytest.LogCaptureFixture) -> None:
    optuna.logging.set_verbosity(optuna.logging.DEBUG)
    study = optuna.create_study(sampler=GBQRSampler(seed=0, n_startup_trials=5))
    study.optimize(bowl, n_trials=12)
    lines = [r for r in log.records if "fitted on" in r.message]
    assert len(lines) == 7
    assert {r.levelno for r in lines} == {logging.DEBUG}  # INFO has Optuna's line of each trial
    assert "GBQRSampler fitted on 11 trials" in lines[-1].message


class Broken:
    """A foreign surrogate whose fit fails."""

    def fit(self, X: Any, y: Any) -> Broken:
        raise FloatingPointError("singular")

    def predict(self, X: Any) -> Any:
        return X[:, 0]


def test_a_model_that_fails_warns_once_and_samples_independently(
    log: pytest.LogCaptureFixture,
) -> None:
    sampler = SurrogateSampler(
        surrogate=Broken(), n_startup_trials=3, warn_independent_sampling=False, seed=0
    )
    study = optuna.create_study(sampler=sampler)
    study.optimize(bowl, n_trials=10)
    assert len(study.trials) == 10
    assert sum("singular" in r.message for r in log.records) == 1


class Bound:
    """A foreign surrogate that answers with a bare bound."""

    def fit(self, X: Any, y: Any) -> Bound:
        self.best = X[np.argmin(y)]
        return self

    def predict(self, X: Any) -> Any:
        return np.abs(X - self.best).sum(axis=1)


def test_a_foreign_surrogate_may_answer_with_a_bound() -> None:
    sampler = SurrogateSampler(surrogate=Bound(), acquisition="bound", seed=0)
    study = optuna.create_study(sampler=sampler)
    study.optimize(bowl, n_trials=20)
    why = explain(study.trials[-1])
    assert why.origin == "model" and why.bound == why.value


def test_every_proposal_can_be_explained() -> None:
    def objective(trial: optuna.Trial) -> float:
        trial.set_user_attr("seconds", 1.0)
        if trial.params and trial.number == 3:
            raise RuntimeError
        return conditional(trial)

    study = optuna.create_study(sampler=EIPerSecondSampler(cost="seconds", seed=0))
    study.optimize(objective, n_trials=20)
    assert explain(study.trials[0]).origin == "independent"  # its names were not known yet
    assert explain(study.trials[2]).origin == "design"
    why = explain(study.trials[-1])
    assert why.origin == "model" and why.n_rows == 19
    assert why.bound is not None and why.value is not None and why.bound <= why.value
    assert why.seconds == pytest.approx(1.0, rel=0.05)
    assert "predicted cost 1 s" in str(why)


def test_no_improvement_stops_the_study() -> None:
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    study.optimize(lambda t: float(t.number < 5), n_trials=100, callbacks=[NoImprovement(10)])
    assert len(study.trials) == 16  # best at number 5, ten more without an improvement
    study.optimize(lambda t: 0.5, n_trials=100, callbacks=[NoImprovement(12)])
    assert len(study.trials) == 18  # a resumed study goes on counting


def test_no_improvement_counts_feasible_gains_above_min_delta() -> None:
    def objective(trial: optuna.Trial) -> float:
        trial.suggest_float("x", 0, 1)
        trial.set_constraint("c", 1.0 if trial.number == 3 else 0.0)
        return {0: 1.0, 3: 9.0}.get(trial.number, 1.0 + 0.001 * trial.number)

    study = optuna.create_study(direction="maximize")
    stop = NoImprovement(4, min_delta=0.1)
    study.optimize(objective, n_trials=50, callbacks=[stop])
    assert len(study.trials) == 5


def _child(queue: Any) -> None:
    study = optuna.create_study(sampler=GBQRSampler(seed=0))
    study.optimize(bowl, n_trials=12)
    queue.put(study.best_value)


@pytest.mark.skipif(
    "fork" not in multiprocessing.get_all_start_methods(), reason="this system cannot fork"
)
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_child_can_use_lightgbm() -> None:
    optuna.create_study(sampler=GBQRSampler(seed=0)).optimize(bowl, n_trials=12)
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
        (lambda: GBQRSampler(n_candidates=0), ValueError, "n_candidates must be >= 1, got 0"),
        (lambda: GBQRSampler(seed=-1), ValueError, "seed must be >= 0, got -1"),
        (lambda: GBQRSampler(seed="x"), TypeError, "seed must be an integer or None, got 'x'"),
        (lambda: SurrogateSampler(interleave=1), ValueError, "interleave must be >= 2, got 1"),
        (lambda: GBQRSampler(failed_trials="x"), ValueError, "one of 'avoid', 'ignore', got 'x'"),
        (lambda: GBQRSampler(cost=3), TypeError, "cost must be None, 'duration'"),
        (lambda: GBQRSampler(nonsense=1), TypeError, "nonsense"),
        (lambda: SurrogateSampler(surrogate=3), TypeError, r"fit\(X, y\) and predict\(X\), got 3"),
        (lambda: SurrogateSampler(surrogate=RandomForest), TypeError, "an object with fit"),
        (lambda: SurrogateSampler(surrogate="gbm"), ValueError, "surrogate must be one of"),
        (lambda: SurrogateSampler(acquisition="ucb"), ValueError, "acquisition must be one of"),
        (lambda: EIPerSecondSampler(cost_exponent=2), ValueError, r"lie in \[0, 1\], got 2"),
        (lambda: NoImprovement(0), ValueError, "patience must be >= 1, got 0"),
    ],
)
def test_bad_arguments(make: Callable[[], Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        make()


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


@pytest.mark.parametrize("bad", [-1.0, math.inf, math.nan, "fast"])
def test_unusable_costs_name_the_trial(bad: object) -> None:
    def objective(trial: optuna.Trial) -> float:
        trial.set_user_attr("seconds", bad)
        return bowl(trial)

    study = optuna.create_study(sampler=GBQRSampler(cost="seconds", seed=0))
    with pytest.raises(ValueError, match=r"cost='seconds' gave .* for trial 0"):
        study.optimize(objective, n_trials=3)
    assert study.trials[0].state == TrialState.COMPLETE


def test_an_unknown_cost_attribute_is_named() -> None:
    study = optuna.create_study(sampler=GBQRSampler(cost="secnods", seed=0))
    with pytest.raises(ValueError, match="cost='secnods': no complete trial has"):
        study.optimize(bowl, n_trials=3)
    assert study.trials[0].state == TrialState.COMPLETE


def test_steps_and_logs_stay_on_their_grids() -> None:
    study = optuna.create_study(sampler=GBQRSampler(seed=0))
    study.optimize(conditional, n_trials=60)
    for trial in study.trials:
        for name, value in trial.params.items():
            distribution = trial.distributions[name]
            assert distribution._contains(distribution.to_internal_repr(value))
            if isinstance(distribution, IntDistribution):
                assert type(value) is int
                assert (value - distribution.low) % distribution.step == 0
