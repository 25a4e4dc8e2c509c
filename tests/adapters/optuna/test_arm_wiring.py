"""What samplers read and draw one by one: steps of pruned trials, independent categories."""

from __future__ import annotations

from typing import Any

import numpy as np
import optuna
from automl_plugins.adapters.optuna._study import StudyReader
from automl_plugins.adapters.optuna.proposer_sampler import ProposerSampler
from optuna.samplers import RandomSampler

from automl_plugins.proposers.proposal import SurrogateFailure


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
