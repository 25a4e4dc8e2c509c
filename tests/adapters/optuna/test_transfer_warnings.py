"""A memory that does not fit is spoken of when no option is left that could need it; once."""

from __future__ import annotations

from collections.abc import Callable

import optuna
import pytest
from automl_plugins.adapters.optuna import BlendedSampler, PMFSampler, TSTSampler, explain
from optuna.samplers import BaseSampler

Objective = Callable[[optuna.Trial], float]


def matching(trial: optuna.Trial) -> float:
    """Three branches, of which one is what the bundled memory of "svm" knows."""
    algorithm = trial.suggest_categorical("algorithm", ["forest", "svm", "neighbours"])
    if algorithm == "forest":
        return trial.suggest_float("share", 0, 1) + 1
    if algorithm == "neighbours":
        return trial.suggest_int("k", 1, 50) / 50 + 1
    c, gamma = trial.suggest_float("C", 0.1, 100, log=True), trial.suggest_float("gamma", 0.001, 1)
    return abs(c - 10) + gamma


def foreign(trial: optuna.Trial) -> float:
    algorithm = trial.suggest_categorical("algorithm", ["forest", "neighbours"])
    if algorithm == "forest":
        return trial.suggest_float("share", 0, 1)
    return trial.suggest_int("k", 1, 50) / 50


def flat(trial: optuna.Trial) -> float:
    return trial.suggest_float("share", 0, 1)


def trials_of(
    sampler: BaseSampler, objective: Objective, n: int
) -> list[optuna.trial.FrozenTrial]:
    study = optuna.create_study(sampler=sampler)
    study.optimize(objective, n_trials=n)
    return study.trials


def warned(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.message for record in caplog.records if record.levelname == "WARNING"]


@pytest.mark.parametrize("seed", range(4))
def test_another_branch_first_is_no_mismatch(seed: int, caplog: pytest.LogCaptureFixture) -> None:
    trials = trials_of(TSTSampler("svm", seed=seed), matching, 12)
    assert warned(caplog) == []
    assert any(sum((explain(trial).shares or {}).values()) > 0 for trial in trials[1:])


@pytest.mark.parametrize("sampler", [BlendedSampler, PMFSampler])
def test_other_memories_wait_too(
    sampler: Callable[..., BaseSampler], caplog: pytest.LogCaptureFixture
) -> None:
    trials_of(sampler("svm", seed=1), matching, 8)
    assert warned(caplog) == []


@pytest.mark.parametrize(("objective", "n"), [(flat, 4), (foreign, 8)])
def test_a_true_mismatch_is_spoken_of_once(
    objective: Objective, n: int, caplog: pytest.LogCaptureFixture
) -> None:
    trials_of(TSTSampler("svm", seed=0), objective, n)
    (told,) = warned(caplog)
    assert "share no hyperparameter" in told
