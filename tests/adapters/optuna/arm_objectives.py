"""Objectives with arms, and a sampler that writes down what it is shown."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import optuna
from automl_plugins.adapters.optuna._private import ArmStudy
from optuna.distributions import BaseDistribution, CategoricalDistribution
from optuna.samplers import RandomSampler
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState

from automl_plugins.bandits.policy import Policy, Standing


class Even(Policy):
    """The least-pulled arm."""

    def _pick(self, standing: Standing, rng: np.random.Generator) -> int:
        return standing.play_fewest(rng)


def zoo(trial: optuna.Trial) -> float:
    """Four algorithms: two numbers, nested choices, a number shared by two, and nothing."""
    algorithm = trial.suggest_categorical("algorithm", ["svm", "net", "tree", "dummy"])
    if algorithm == "dummy":
        return 0.9
    if algorithm == "svm":
        c = trial.suggest_float("C", 1e-3, 1e3, log=True)
        return float(0.3 + 0.05 * abs(np.log10(c)) + 0.1 * trial.suggest_float("eps", 0, 1))
    seed = trial.suggest_float("subsample", 0.1, 1.0)
    if algorithm == "tree":
        return 0.2 + abs(trial.suggest_int("depth", 1, 10) - 4) / 20 + 0.1 * seed
    if trial.suggest_categorical("solver", ["adam", "sgd"]) == "sgd":
        return 0.25 + 0.3 * trial.suggest_float("momentum", 0, 1) + 0.1 * seed
    return 0.15 + 0.1 * seed


def alike(trial: optuna.Trial) -> float:
    """Three algorithms with parameters of the same names; a and b can be told by their best."""
    algorithm = trial.suggest_categorical("algorithm", ["a", "b", "c"])
    x, y = trial.suggest_float("x", 0, 1), trial.suggest_float("y", 0, 1)
    return {"a": 0.1, "b": 0.3, "c": 0.5}[algorithm] + 0.2 * ((x - 0.3) ** 2 + (y - 0.6) ** 2)


def grid(trial: optuna.Trial) -> float:
    """Finite arms of 1, 4 and 12 configurations, the last one with nested choices."""
    algorithm = trial.suggest_categorical("algorithm", ["one", "four", "twelve"])
    if algorithm == "one":
        return 0.5
    if algorithm == "four":
        return 0.1 * trial.suggest_int("i", 0, 1) + 0.2 * trial.suggest_categorical("j", [0, 1])
    k = trial.suggest_int("k", 1, 4)
    if k == 4:
        return 0.3 + 0.01 * trial.suggest_int("deep", 1, 9)
    return 0.4 + 0.1 * k


def counts(study: Study, arm: str = "algorithm") -> Counter[Any]:
    """How many trials each arm got."""
    return Counter(t.params.get(arm) for t in study.get_trials(deepcopy=False))


class Spy(RandomSampler):
    """Draws at random; every hook looks at the study in every way that samplers use."""

    def __init__(self, seed: int | None = None) -> None:
        super().__init__(seed=seed)
        self.log: list[tuple[str, int, set[Any], set[int]]] = []

    def _look(self, hook: str, study: Study, trial: FrozenTrial) -> None:
        complete, storage, key = (TrialState.COMPLETE,), study._storage, study._study_id
        done = storage.get_all_trials(key, deepcopy=False, states=complete)
        lists = [
            study.trials,
            study.get_trials(deepcopy=False, states=complete),
            study._get_trials(),
            study._get_trials(deepcopy=False, use_cache=True),
            study._get_trials(deepcopy=False, states=complete, use_cache=True),
            storage.get_all_trials(key),
            done,
        ]
        assert storage.get_n_trials(key, TrialState.COMPLETE) == len(done)
        if done:
            lists += [
                [study.best_trial],
                study.best_trials,
                [study._get_best_trial(deepcopy=False)],
            ]
            assert study.best_value == min(t.values[0] for t in done)
            assert study.best_params == study.best_trial.params
        shown = [t for trials in lists for t in trials if t.params]
        arms = {t.params.get("algorithm") for t in shown if t.number != trial.number}
        self.log.append((hook, trial.number, arms, {t.number for t in shown}))

    def before_trial(self, study: Study, trial: FrozenTrial) -> None:
        self._look("before", study, trial)

    def after_trial(self, study: Study, trial: FrozenTrial, state: Any, values: Any) -> None:
        self._look("after", study, trial)

    def infer_relative_search_space(
        self, study: Study, trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
        self._look("infer", study, trial)
        done = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
        return dict(done[-1].distributions) if done else {}

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        if "algorithm" in search_space:  # no arm: everything is ours
            assert not isinstance(study, ArmStudy)
        self._look("relative", study, trial)
        draw = super().sample_independent
        return {name: draw(study, trial, name, d) for name, d in search_space.items()}

    def sample_independent(
        self, study: Study, trial: FrozenTrial, param_name: str, param_distribution: Any
    ) -> Any:
        self._look("independent", study, trial)
        return super().sample_independent(study, trial, param_name, param_distribution)


def arm_choices(*choices: Any) -> dict[str, BaseDistribution]:
    """A declared search space that holds the arm alone."""
    return {"algorithm": CategoricalDistribution(choices)}


def spies(sampler: Any) -> dict[int | None, Spy]:
    """The spies inside the arms; that of None was asked before its arm was known."""
    (known,) = sampler._readers.values()
    return dict(known.copies)
