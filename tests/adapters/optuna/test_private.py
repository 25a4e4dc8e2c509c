"""Fails loudly when Optuna changes what ``_private`` relies on."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import optuna
import pytest
from automl_plugins.adapters.optuna import _private
from automl_plugins.adapters.optuna._private import ArmStorage, ArmStudy
from objectives import fixing, search
from optuna.distributions import FloatDistribution
from optuna.samplers import RandomSampler
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState


def asked() -> tuple[Study, Callable[[], FrozenTrial]]:
    """A study with a running trial, and what is stored of it."""
    study = optuna.create_study(sampler=RandomSampler())
    trial = study.ask()
    return study, lambda: study._storage.get_trial(trial._trial_id)


def test_attributes_written_by_a_sampler_come_back() -> None:
    study, stored = asked()
    values = {f"parameter {i}": i / 7 for i in range(400)}
    _private.write_proposal(study, stored(), values)
    _private.write_overhead(study, stored(), 0.25)
    _private.write_explanation(study, stored(), {"origin": "model"})
    assert _private.read_proposal(stored()) == values
    _private.write_proposal(study, stored(), {"x0": 0.5})
    assert _private.read_proposal(stored()) == {"x0": 0.5}
    assert _private.read_overhead(stored()) == 0.25
    assert _private.read_explanation(stored()) == {"origin": "model"}


def test_enqueued_and_partially_fixed_values_are_seen() -> None:
    study = optuna.create_study()
    study.enqueue_trial({"x": 0.5})
    frozen = study._storage.get_trial(study.ask()._trial_id)
    assert _private.held_values(study, frozen) == {"x": 0.5}
    study.sampler = fixing({"y": 1, "w": 4}, study.sampler)
    assert _private.held_values(study, frozen) == {"x": 0.5, "y": 1, "w": 4}
    study.sampler = fixing({"y": 2, "z": 3}, study.sampler)  # the outer one decides
    given = {"x": 0.5, "y": 2, "w": 4, "z": 3}
    assert _private.held_values(study, frozen) == _private.given_values(study, frozen) == given
    frozen.distributions, frozen.params = {"v": FloatDistribution(0, 1)}, {"v": 0.25}
    assert _private.given_values(study, frozen) == given
    assert _private.held_values(study, frozen) == {**given, "v": 0.25}


def test_constraints_of_either_form() -> None:
    listed: Any = SimpleNamespace(system_attrs={"constraints": [1, -0.5]})  # as Optuna 4 has them
    assert _private.constraints_of(listed) == {"0": 1.0, "1": -0.5}
    assert _private.constraints_of(cast(Any, SimpleNamespace(system_attrs={}))) == {}
    study, stored = asked()
    study._storage.set_trial_system_attr(stored()._trial_id, "constraints", [1.0, -0.5])
    assert _private.constraints_of(stored()) == {"0": 1.0, "1": -0.5}


def test_brackets_of_a_study_are_the_study_itself() -> None:
    pruner = optuna.pruners.HyperbandPruner(max_resource=9)
    study = optuna.create_study(pruner=pruner)
    pruner._initialize = lambda *_: None  # type: ignore[attr-defined]
    bracket = pruner._create_bracket_study(study, 1)
    assert _private.study_key(bracket) == _private.study_key(study)
    assert _private.study_key(optuna.create_study()) != _private.study_key(study)
    assert _private.storage_of(bracket) is study._storage
    assert _private.whole_study(bracket) is study is _private.whole_study(study)
    frozen = study._storage.get_trial(study.ask()._trial_id)
    assert _private.trial_key(study, frozen) == _private.trial_key(bracket, frozen)


def test_the_whole_of_an_arm_has_the_trials_of_all_brackets() -> None:
    study = search(RandomSampler(seed=0), lambda t: t.suggest_float("x", 0, 1), 9)
    pruner: Any = optuna.pruners.HyperbandPruner(max_resource=9)
    pruner._initialize = lambda *_: None
    pruner._get_bracket_id = lambda _, trial: trial.number % 3
    storage = ArmStorage(study._storage, "model:0", lambda t: t.number % 2 == 0, same)
    own = ArmStudy(pruner._create_bracket_study(study, 1), storage)
    assert [t.number for t in own.get_trials()] == [4]
    whole = _private.whole_study(own)
    assert [t.number for t in whole.get_trials()] == [0, 2, 4, 6, 8]
    assert _private.whole_study(whole) is whole


def test_distributions_are_asked_for_and_tell_what_they_contain() -> None:
    stepped = FloatDistribution(0, 1, step=0.25)
    assert _private.contains(stepped, 0.75) and not _private.contains(stepped, 0.7)
    trial = optuna.create_study(sampler=RandomSampler(seed=0)).ask()
    assert _private.suggest(trial, "x", stepped) == trial.params["x"]
    assert trial.distributions == {"x": stepped}


def same(trial: FrozenTrial) -> FrozenTrial:
    return trial


# --- arms -----------------------------------------------------------------------------------


def test_arms_rounds_and_rungs_come_back() -> None:
    study, stored = asked()
    assert _private.read_arm(stored(), "model") is None
    assert _private.read_rounds(stored(), "model") == []
    assert _private.read_rung(stored(), 1) is None
    rounds = [{"index": 0, "decisions": [{"arm": i, "reason": "first"} for i in range(2000)]}]
    _private.write_arm(study, stored(), "model", 3)
    _private.write_rounds(study, stored(), "model", rounds)
    _private.write_rung(study, stored(), 1, {"value": 0.5, "advances": True})
    assert _private.read_arm(stored(), "model") == 3
    assert _private.read_arm(stored(), "another") is None
    assert _private.read_rounds(stored(), "model") == rounds
    assert _private.read_rung(stored(), 1) == {"value": 0.5, "advances": True}
    _private.write_rounds(study, stored(), "model", [{"index": 1}])
    assert _private.read_rounds(stored(), "model") == [{"index": 1}]


def test_a_trial_as_it_will_be_stored() -> None:
    study, stored = asked()
    done = _private.as_finished(study, stored(), TrialState.COMPLETE, [2.0])
    assert (done.state, done.value) == (TrialState.COMPLETE, 2.0)
    assert done.duration is not None and done.duration.total_seconds() >= 0
    failed = _private.as_finished(study, stored(), TrialState.FAIL, None)
    assert (failed.state, failed.values) == (TrialState.FAIL, None)
    assert stored().state == TrialState.RUNNING and stored().values is None


def test_the_sampler_under_a_partial_fixing() -> None:
    sampler = RandomSampler()
    twice = fixing({"y": 1}, fixing({"x": 1}, sampler))
    assert _private.base_sampler(twice) is sampler is _private.base_sampler(sampler)


def test_optunas_samplers_read_a_study_as_the_arms_filter_it() -> None:
    """All that an arm's study must offer: nothing else of Study is used by the samplers."""
    study = search(RandomSampler(seed=0), lambda t: t.suggest_float("x", 0, 1), 6)
    storage = ArmStorage(study._storage, "model:0", lambda t: t.number % 2 == 0, same)
    own = ArmStudy(study, storage)
    assert set(vars(own)) - {"_base"} == set(vars(study))
    for trials in (
        own.trials,
        own.get_trials(deepcopy=False),
        own._get_trials(),
        own._get_trials(use_cache=True),
        own._storage.get_all_trials(own._study_id),
    ):
        assert [t.number for t in trials] == [0, 2, 4]
    assert own.best_trial.number in {0, 2, 4} and own.best_trials[0] == own.best_trial
    assert own._storage.get_n_trials(own._study_id) == 3
    assert own._storage.get_n_trials(own._study_id, TrialState.FAIL) == 0
    assert own.get_trials(states=(TrialState.FAIL,)) == []
    own.get_trials()[0].params["x"] = 7.0  # a deep copy
    assert study.trials[0].params["x"] != 7.0
    empty = ArmStudy(study, ArmStorage(study._storage, "model:1", lambda t: False, same))
    with pytest.raises(ValueError, match="No trials are completed"):
        empty.best_trial  # noqa: B018
    own.stop()  # ends nothing, raises nothing


def test_what_an_arms_sampler_stores_for_the_study_is_its_own() -> None:
    study = optuna.create_study()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        study.set_metric_names(["loss"])
    first, second = (
        ArmStorage(study._storage, f"model:{i}", lambda t: True, same) for i in range(2)
    )
    first.set_study_system_attr(study._study_id, "qmc:1", 5)
    assert first.get_study_system_attrs(study._study_id)["qmc:1"] == 5
    assert "qmc:1" not in second.get_study_system_attrs(study._study_id)
    assert ArmStudy(study, second).metric_names == ["loss"]
    assert study._storage.get_study_system_attrs(study._study_id)[
        "automl_plugins:model:0:qmc:1"
    ] == 5  # fmt: skip
