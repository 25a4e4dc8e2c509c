"""A proposal follows from the seed, the number of the trial and the stored trials alone.

That another process with another hash seed proposes the same is held by the goldens.
"""

from __future__ import annotations

import dataclasses
import pickle
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import pytest
from automl_plugins.adapters.optuna import (
    AutoSampler,
    EIPerSecondSampler,
    GBQRSampler,
    SurrogateSampler,
    source_shares,
)
from automl_plugins.adapters.optuna._study import StudyReader
from automl_plugins.adapters.optuna.proposer_sampler import ProposerSampler
from objectives import TRANSFER, bowl, branches, conditional, earlier, params, search
from optuna.distributions import BaseDistribution, FloatDistribution
from optuna.samplers import RandomSampler
from optuna.trial import TrialState
from storages import storage_in

from automl_plugins.records.history import History

N = 16  # trials of a search in one go


def remembering(name: str, **options: Any) -> ProposerSampler:
    return TRANSFER[name](earlier(**options), seed=3, n_candidates=60)


PLAIN: dict[str, Callable[[], ProposerSampler]] = {
    "alone": lambda: AutoSampler(seed=3),
    "gbqr": lambda: GBQRSampler(seed=3),
    "ei_per_second": lambda: EIPerSecondSampler(cost="seconds", seed=3),
    "forest": lambda: SurrogateSampler(surrogate="random_forest", interleave=3, seed=3),
}
SAMPLERS: dict[str, Callable[[], ProposerSampler]] = {
    **PLAIN,
    **{name: lambda name=name: remembering(name) for name in TRANSFER},  # type: ignore[misc]
}


def objective_of(name: str) -> Callable[[optuna.Trial], float]:
    return timed if name in PLAIN else branches


def timed(trial: optuna.Trial) -> float:
    value = conditional(trial)
    trial.set_user_attr("seconds", 1.0 + value)
    return value


@cache
def whole(name: str) -> tuple[list[dict[str, Any]], dict[int, dict[str, float]]]:
    """All trials in one go."""
    study = search(SAMPLERS[name](), objective_of(name), N)
    return params(study), source_shares(study)


def test_losing_the_cache_between_refits_changes_nothing() -> None:
    # From 150 finished trials on the model is fitted on every second one only.
    begun = search(RandomSampler(seed=0), bowl, 149).trials
    found = []
    for n_lost in (0, 1, 2, 3):  # a new sampler after so many proposals
        study = optuna.create_study(sampler=GBQRSampler(seed=1, n_candidates=50))
        study.add_trials(begun)
        study.optimize(bowl, n_trials=n_lost)
        study.sampler = GBQRSampler(seed=1, n_candidates=50)
        study.optimize(bowl, n_trials=4 - n_lost)
        found.append(params(study)[149:])
    assert found[1:] == found[:-1]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gbqr", "ei_per_second", "tst", "auto"])
def test_maximising_f_equals_minimising_its_negative(name: str) -> None:
    """Signs are turned by the readers of studies and of memories, which all samplers share."""
    given = objective_of(name)
    high = search(SAMPLERS[name](), lambda t: -given(t), N, direction="maximize")
    assert params(high) == whole(name)[0]
    if name in TRANSFER:
        assert params(search(remembering(name, sign=-1.0), given, N)) == whole(name)[0]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("alone", "memory"),
        ("gbqr", "sqlite"),
        ("ei_per_second", "journal"),
        ("forest", "memory"),
        ("tst", "memory"),
        ("pmf", "journal"),
        ("blended", "memory"),
        ("auto", "memory"),
    ],
)
def test_a_pickled_reseeded_or_new_sampler_continues_the_same_and_leaves_others_alone(
    name: str, kind: str, tmp_path: Path
) -> None:
    np.random.seed(7)  # noqa: NPY002 - the state that must not move
    before = np.random.get_state()  # noqa: NPY002
    storage, objective = storage_in(tmp_path, kind), objective_of(name)
    study = search(SAMPLERS[name](), objective, N // 2, study_name="s", storage=storage)
    study.sampler = pickle.loads(pickle.dumps(study.sampler))
    study.sampler.reseed_rng()
    study.optimize(objective, n_trials=N // 4)
    again = optuna.load_study(study_name="s", storage=storage, sampler=SAMPLERS[name]())
    again.optimize(objective, n_trials=N // 4)
    after = np.random.get_state()  # noqa: NPY002
    assert (params(again), source_shares(again)) == whole(name)
    assert all(np.array_equal(a, b) for a, b in zip(before, after, strict=True))


def test_a_seed_that_was_drawn_is_kept_and_logged(log: pytest.LogCaptureFixture) -> None:
    sampler = GBQRSampler()
    assert f"seed={sampler.seed}" in log.text
    assert pickle.loads(pickle.dumps(sampler)).seed == sampler.seed
    assert GBQRSampler().seed != sampler.seed


def test_a_running_trial_is_seen_before_it_has_asked_for_everything() -> None:
    # The joint proposal is published at the first suggest: a second worker must see all of it.
    sampler = GBQRSampler(seed=0)
    study = search(sampler, bowl, 12)
    first = study.ask()
    x = first.suggest_float("x", -5, 5)
    second = study._storage.get_trial(study.ask()._trial_id)
    (running,) = sampler._reader(study).view(study, second).running
    assert running.number == first.number and running.values["x"] == x
    assert running.values["y"] == first.suggest_float("y", -5, 5)


def test_trials_that_are_read_one_by_one_are_those_read_at_once() -> None:
    start = datetime(2026, 1, 1)
    study = optuna.create_study()
    other = optuna.trial.create_trial(state=TrialState.WAITING)
    other.number = -1
    kept = StudyReader(study, None, {}, {})
    # The third one ends before the second; the fifth one has another parameter.
    for number, ended in enumerate((1, 5, 3, 6, 7, 8)):
        ranges: dict[str, BaseDistribution] = {"x": FloatDistribution(0, 1)}
        if number == 4:
            ranges["y"] = FloatDistribution(0, 2)
        study.add_trial(
            optuna.trial.FrozenTrial(
                number=number,
                trial_id=number,
                state=TrialState.PRUNED if number == 3 else TrialState.COMPLETE,
                value=float(number),
                datetime_start=start,
                datetime_complete=start + timedelta(seconds=ended),
                params=dict.fromkeys(ranges, 0.1 * number),
                distributions=ranges,
                user_attrs={},
                system_attrs={},
                intermediate_values={},
            )
        )
        histories = []
        for reader in (kept, StudyReader(study, None, {}, {})):
            view = reader.view(study, other)
            histories.append(reader.history(view, reader.space(view, {})))
        for column in dataclasses.fields(History):
            np.testing.assert_array_equal(*(getattr(h, column.name) for h in histories))
    assert list(histories[0].number) == [0, 2, 1, 3, 4, 5]
