"""What is between a study and its arms: redraws, promises of other workers, steps, seeds."""

from __future__ import annotations

from typing import Any
from zlib import crc32

import numpy as np
import optuna
from arm_objectives import Even, alike
from automl_plugins.adapters.optuna import BanditSampler
from automl_plugins.adapters.optuna._study import StudyReader
from automl_plugins.adapters.optuna.proposer_sampler import ProposerSampler
from optuna.distributions import CategoricalDistribution
from optuna.samplers import RandomSampler
from optuna.trial import Trial

from automl_plugins.bandits import AlwaysBest
from automl_plugins.proposers.proposal import SurrogateFailure
from automl_plugins.streams import Streams


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


def test_an_arm_that_another_worker_has_promised_is_kept() -> None:
    def workers(arm: int) -> BanditSampler:
        policy = AlwaysBest(arm=arm, min_pulls=1, min_share=0.0)
        return BanditSampler(policy=policy, inner=RandomSampler, seed=arm)

    study = optuna.create_study(sampler=BanditSampler(policy=Even(), inner=RandomSampler, seed=0))
    study.optimize(alike, n_trials=6)
    for promised, own in ((0, 2), (2, 1), (1, 0)):
        study.sampler = workers(promised)
        trial = study.ask()
        trial.suggest_float("x", 0, 1)  # the arm is decided and published, and not asked for yet
        study.sampler = workers(own)
        assert alike(Trial(study, trial._trial_id)) > 0
        assert study.trials[trial.number].params["algorithm"] == "abc"[promised]


def test_the_step_of_a_pruned_trial_reaches_the_history() -> None:
    study = optuna.create_study(sampler=RandomSampler(seed=0))

    def objective(trial: optuna.Trial) -> float:
        x = trial.suggest_float("x", 0, 1)
        if trial.number:
            for step in range(trial.number + 1):
                trial.report(x + step, step)
            raise optuna.TrialPruned
        return x

    study.optimize(objective, n_trials=4)
    memory = StudyReader(study, None, {}, {})
    view = memory.view(study, study._storage.get_trial(study.ask()._trial_id))
    history = memory.history(view, memory.space(view, {}))
    np.testing.assert_array_equal(history.budget, [np.nan, 1, 2, 3])
    np.testing.assert_allclose(history.losses[1:], [t.params["x"] + t.number for t in
                                                    study.trials[1:4]])  # fmt: skip


class _Failing:
    """A proposer that never proposes."""

    timed = False

    def propose(self, *args: Any, **kwargs: Any) -> Any:
        raise SurrogateFailure("on purpose")


def test_independent_categories_are_drawn_by_name_and_by_number() -> None:
    names = [f"c{i}" for i in range(6)]

    def objective(trial: optuna.Trial) -> float:
        return float(sum(trial.suggest_categorical(name, list(range(4))) for name in names))

    sampler = ProposerSampler(_Failing(), warn_independent_sampling=False, seed=0)
    study = optuna.create_study(sampler=sampler)
    study.optimize(objective, n_trials=16)
    drawn = np.array([[t.params[name] for name in names] for t in study.trials])
    assert len(set(drawn[0].tolist())) > 1  # names differ within a trial
    blocks = drawn.reshape(4, 4, 6)  # every choice once in four trials
    assert (np.sort(blocks, axis=1) == np.arange(4)[:, None]).all()
    assert not (blocks == blocks[0]).all()  # and in another order each time


def test_independent_values_in_an_arm_are_drawn_by_name_and_by_number() -> None:
    def objective(trial: optuna.Trial) -> float:
        trial.suggest_categorical("algorithm", ["a", "b"])
        return trial.suggest_float("x", 0, 1) + trial.suggest_float("y", 0, 1)

    study = optuna.create_study(sampler=BanditSampler(inner=RandomSampler, seed=0))
    study.optimize(objective, n_trials=6)
    values = [t.params[name] for t in study.trials for name in ("x", "y")]
    assert len(set(values)) == 12
