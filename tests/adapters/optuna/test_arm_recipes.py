"""How often each sampler draws which arm."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
import optuna
import pytest
from arm_objectives import Even, alike, arm_choices, counts, grid, zoo
from automl_plugins.adapters.optuna import (
    AutoSampler,
    BanditSampler,
    BOASFSampler,
    GBQRSampler,
    TSTSampler,
    WeightedModelSampler,
    _private,
    explain,
)
from ConfigSpace import ConfigurationSpace
from objectives import params, search, studied
from optuna.samplers import RandomSampler
from optuna.trial import TrialState
from scipy import stats

from automl_plugins.bandits.policy import Policy, Standing
from automl_plugins.bandits.records import ArmRecords
from automl_plugins.records.task_record import TaskRecord
from automl_plugins.streams import Streams

N_PARAMETERS = {"none": 0, "one": 1, "three": 3, "five": 5}


def sizes(trial: optuna.Trial) -> float:
    """Arms with 0, 1, 3 and 5 parameters of their own, and one that all share."""
    model = trial.suggest_categorical("model", list(N_PARAMETERS))
    total = trial.suggest_float("shared", 0, 1)
    for i in range(N_PARAMETERS[model]):
        total += trial.suggest_float(f"{model}_{i}", 0, 1)
    trial.suggest_int("fixed", 3, 3)
    return total


def run(sampler: Any, n: int, objective: Any = sizes, **options: Any) -> optuna.Study:
    return search(sampler, objective, n, catch=ArithmeticError, **options)


def p_value(study: optuna.Study, expected: Mapping[Any, float], arm: str, skip: int) -> float:
    """Of the arms' counts, after the first ``skip`` trials, under the expected weights."""
    drawn = [t.params[arm] for t in study.get_trials(deepcopy=False)[skip:]]
    weights = np.array(list(expected.values()), dtype=float)
    observed = [drawn.count(name) for name in expected]
    return float(stats.chisquare(observed, len(drawn) * weights / weights.sum()).pvalue)


# --- WeightedModelSampler -------------------------------------------------------------------


def test_each_model_once_then_in_proportion_to_two_to_the_n() -> None:
    study = run(WeightedModelSampler("model", seed=3), 250)
    assert set(counts(study, "model")) == set(N_PARAMETERS)
    assert {t.params["model"] for t in study.get_trials(deepcopy=False)[:4]} == set(N_PARAMETERS)
    expected = {name: 2.0**n for name, n in N_PARAMETERS.items()}
    assert p_value(study, expected, "model", 4) > 0.01
    assert p_value(study, dict.fromkeys(expected, 1.0), "model", 4) < 1e-6


def test_weights_whose_sum_is_no_float() -> None:
    study = run(
        WeightedModelSampler("model", weights=dict.fromkeys(N_PARAMETERS, 1e308), seed=0), 3
    )
    assert len(study.trials) == 3


def test_given_weights_from_the_first_trial_on() -> None:
    weights = {"none": 1, "one": 2, "three": 0, "five": 3.0}
    study = run(WeightedModelSampler("model", weights=weights, seed=0), 300)
    assert counts(study, "model")["three"] == 0
    positive = {name: w for name, w in weights.items() if w}
    assert p_value(study, positive, "model", 0) > 0.01


def test_nested_parameters_count_once_they_have_been_seen() -> None:
    # zoo: svm 2 parameters, tree 2, net 2 or 3 (momentum under sgd only), dummy none.
    sampler = WeightedModelSampler(seed=0)
    study = run(sampler, 40, zoo)
    known = sampler._reader(study)
    assert {arm: len(names) for arm, names in known.parameters.items()} == {
        0: 2, 1: 3, 2: 2, 3: 0,
    }  # fmt: skip


def test_volume_counts_the_configurations_of_a_grid() -> None:
    sampler = WeightedModelSampler(weights="volume", seed=0)
    study = run(sampler, 17, grid)
    known = sampler._reader(study)
    assert known.arms is not None
    situation = known.situation(known.everything(study), known.arms, 17)
    volumes = np.exp([situation.log_volume(arm) for arm in range(3)])
    np.testing.assert_allclose(volumes / volumes.sum(), np.array([1, 4, 12]) / 17)


def test_volumes_are_of_the_ranges_that_the_model_has_itself() -> None:
    def objective(trial: optuna.Trial) -> float:
        model = trial.suggest_categorical("algorithm", ["narrow", "wide", "steps"])
        if model == "steps":
            return trial.suggest_float("x", 0, 10, step=0.002)  # 5 001 values
        return trial.suggest_float("x", 0, 1000 if model == "narrow" else 4000)

    study = run(WeightedModelSampler(weights="volume", seed=0), 200, objective)
    assert p_value(study, {"narrow": 1, "wide": 4, "steps": 5}, "algorithm", 3) > 0.01


def test_volumes_below_a_parent_with_many_values() -> None:
    def objective(trial: optuna.Trial) -> float:
        if trial.suggest_categorical("algorithm", ["large", "small"]) == "small":
            return float(trial.suggest_int("m", 1, 20_000))
        n = trial.suggest_int("n", 1, 20_000)
        return trial.suggest_float("x", 0, 3) if n > 10_000 else 0.5  # 10 000 (1 + 3)

    study = run(WeightedModelSampler(weights="volume", seed=0), 200, objective)
    assert p_value(study, {"large": 4, "small": 2}, "algorithm", 20) > 0.01


def test_a_model_whose_first_trial_failed_is_tried_again_at_once() -> None:
    def objective(trial: optuna.Trial) -> float:
        value = sizes(trial)
        if trial.number == 1:
            raise ZeroDivisionError
        return value

    study = run(WeightedModelSampler("model", seed=3), 5, objective)
    complete = [t.params["model"] for t in study.trials if t.state == TrialState.COMPLETE]
    assert sorted(complete) == sorted(N_PARAMETERS)


def test_models_under_way_for_the_first_time_are_not_asked_again() -> None:
    study = run(WeightedModelSampler("model", seed=0), 1)
    trials = [study.ask() for _ in range(6)]
    for trial in trials:
        sizes(trial)
    drawn = [t.params["model"] for t in study.get_trials(deepcopy=False)]
    assert set(drawn[:4]) == set(N_PARAMETERS)
    assert set(drawn[4:]) == {drawn[0]}  # the only one whose size is known


def test_more_workers_than_models_begin_with_all_of_them() -> None:
    study = optuna.create_study(sampler=WeightedModelSampler("model", seed=0))
    for _ in range(12):
        sizes(study.ask())
    drawn = [t.params["model"] for t in study.get_trials(deepcopy=False)]
    assert set(drawn[:4]) == set(N_PARAMETERS)
    assert len(set(drawn[4:])) > 1
    assert "all are tried for the first time" in str(explain(study.trials[-1]))


@pytest.mark.parametrize(
    ("weights", "words"),
    [
        ("3^N", "must be '2\\^N', 'volume' or a mapping"),
        (np.array([1.0, 2.0]), "must be '2\\^N', 'volume' or a mapping"),
        ({"a": -1.0, "b": 1.0}, ">= 0"),
        ({"a": float("nan"), "b": 1.0}, "finite"),
        ({"a": 0.0, "b": 0}, "not all 0"),
        ({}, "not all 0"),
        ({"a": 1.0}, "missing: \\['b'\\]"),
        ({"a": 1.0, "b": 1.0, "z": 1.0}, "unknown: \\['z'\\]"),
    ],
)
def test_bad_weights(weights: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        WeightedModelSampler(weights=weights, search_space=arm_choices("a", "b"))
    if "missing" in words or "unknown" in words:  # found when the choices are known
        with pytest.raises(ValueError, match=words):
            run(WeightedModelSampler(weights=weights), 1, lambda t: float(
                t.suggest_categorical("algorithm", ["a", "b"]) == "a"))  # fmt: skip


# --- BanditSampler --------------------------------------------------------------------------


def test_the_policy_gets_arms_records_and_the_number_of_the_trial() -> None:
    asked: list[tuple[list[int], ArmRecords, int, int]] = []

    class Watch(Policy):
        def choose(self, arms: Any, records: ArmRecords, streams: Streams, k: int) -> int:
            asked.append((list(arms), records, streams.seed, k))
            return int(arms[k % len(arms)])

        def _pick(self, standing: Standing, rng: np.random.Generator) -> int:
            raise AssertionError

    sampler = BanditSampler(policy=Watch(), inner=RandomSampler, seed=5)
    study = run(sampler, 9, alike)
    assert [t.params["algorithm"] for t in study.trials] == list("abcabcabc")
    assert [k for *_, k in asked] == list(range(9))
    for arms, records, seed, k in asked:
        assert (arms, seed, len(records)) == ([0, 1, 2], 5, k)
        assert records.arm.tolist() == [i % 3 for i in range(k)]
        expected = [1 - t.value for t in study.trials[:k] if t.value is not None]
        np.testing.assert_allclose(records.reward, expected)
        assert (records.seconds >= 0).all()


@pytest.mark.parametrize("policy", ["UCB1", Even, 3])
def test_bad_policies(policy: Any) -> None:
    with pytest.raises(TypeError, match="policy"):
        BanditSampler(policy=policy)


# --- inside the arms ------------------------------------------------------------------------


def test_a_memory_suggests_in_every_arm_that_it_knows() -> None:
    """The memory has runs of one algorithm, and not the choice that makes it an arm."""
    space = ConfigurationSpace({"C": (0.0, 1.0)})
    losses = [(np.arange(11) / 10 - best) ** 2 for best in (0.1, 0.5, 0.9)]
    memory = [
        TaskRecord(f"t{i}", [{"C": x / 10} for x in range(11)], column, space=space)
        for i, column in enumerate(losses)
    ]

    def objective(trial: optuna.Trial) -> float:
        if trial.suggest_categorical("algorithm", ["mlp", "svm"]) == "svm":
            return (trial.suggest_float("C", 0, 1) - 0.4) ** 2
        return trial.suggest_float("alpha", 0, 1)

    inner = AutoSampler(memory=memory, n_suggested=3, seed=0)
    study = run(BanditSampler("algorithm", inner=inner, seed=0), 12, objective)
    of_svm = [t for t in study.trials if t.params["algorithm"] == "svm"]
    recorded = {x / 10 for x in range(11)}
    assert [explain(t).origin for t in of_svm[:3]] == ["suggested"] * 3
    assert len({t.params["C"] for t in of_svm[:3]}) == 3
    assert all(round(t.params["C"], 9) in recorded for t in of_svm[:3])


@pytest.mark.parametrize("form", ["partial", "function", "instance"])
def test_an_arm_proposes_jointly_from_the_first_trial_on_with_a_memory(form: str) -> None:
    def objective(trial: optuna.Trial, best: float = 3.0) -> float:
        if trial.suggest_categorical("algorithm", ["a", "b"]) == "a":
            return (trial.suggest_float("x", -5, 5) - best) ** 2
        return (trial.suggest_float("y", -5, 5) + best) ** 2 + trial.suggest_int("n", 1, 9)

    olds = [studied(f"old {i}", partial(objective, best=3.0 + i / 10), seed=i) for i in range(3)]
    inner: dict[str, Any] = {
        "partial": partial(TSTSampler, olds),
        "function": lambda seed: TSTSampler(olds, seed=seed),
        "instance": TSTSampler(olds, seed=0),
    }
    study = search(BanditSampler("algorithm", inner=inner[form], seed=1), objective, 5)
    for trial in study.trials:
        assert _private.read_proposal(trial).items() >= {
            (name, float(value)) for name, value in trial.params.items() if name != "algorithm"
        }
        assert explain(trial).independent == ()


def test_a_class_inside_is_made_once_and_proposes_as_one_made_for_every_trial() -> None:
    made: list[int] = []

    class Counted(GBQRSampler):  # type: ignore[misc]
        def __init__(self, seed: int) -> None:
            made.append(seed)
            super().__init__(n_startup_trials=3, seed=seed)

    once = search(BanditSampler(policy=Even(), inner=Counted, seed=0), alike, 15)
    assert len(made) == 1
    again = BanditSampler(policy=Even(), inner=lambda seed: Counted(seed), seed=0)
    assert params(once) == params(search(again, alike, 15))


def test_a_class_with_a_memory_says_once_what_it_has_recognised(log: Any) -> None:
    def objective(trial: optuna.Trial) -> float:
        trial.suggest_categorical("algorithm", ["lightgbm"])
        rate = trial.suggest_float("learning_rate", 1e-3, 1.0, log=True)
        return rate / trial.suggest_int("num_leaves", 2, 100)

    search(BanditSampler(inner=AutoSampler, seed=0), objective, 4)
    assert sum("search space is that of lightgbm" in r.message for r in log.records) == 1


@pytest.mark.parametrize(
    ("make", "arguments", "message"),
    [
        (
            BanditSampler,
            {"constraints_func": len},
            "BanditSampler takes no argument constraints_f",
        ),
        (
            WeightedModelSampler,
            {"multivariate": True},
            "of the sampler inside the arms, see inner",
        ),
        # before the budget that is missing
        (BOASFSampler, {"budget_seconds": 9.0}, r"\(budget_seconds: here it is seconds=\)"),
        (BanditSampler, {"polcy": None}, r"it takes arm, policy, inner.*Did you mean 'policy'\?"),
        (WeightedModelSampler, {"sed": 1}, r"Did you mean 'seed'\?"),
        (WeightedModelSampler, {"policy": 1}, r"\(policy: an argument of BanditSampler\)"),
        (BanditSampler, {"foo": 1}, "it takes arm, policy, inner, search_space, warn"),
    ],
)
def test_unknown_arguments_are_named(make: Any, arguments: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        make(**arguments)
