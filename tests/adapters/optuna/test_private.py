"""Fails loudly when Optuna changes what ``_private`` relies on."""

from __future__ import annotations

import warnings

import optuna
import pytest
from automl_plugins.adapters.optuna import _private
from automl_plugins.adapters.optuna._private import ArmStorage, ArmStudy
from optuna.distributions import FloatDistribution
from optuna.trial import FrozenTrial, TrialState


def test_attributes_written_by_a_sampler_come_back() -> None:
    study = optuna.create_study()
    trial = study.ask()
    frozen = study._storage.get_trial(trial._trial_id)
    values = {f"parameter {i}": i / 7 for i in range(400)}  # several chunks
    _private.write_proposal(study, frozen, values)
    _private.write_overhead(study, frozen, 0.25)
    _private.write_explanation(study, frozen, {"origin": "model"})
    frozen = study._storage.get_trial(trial._trial_id)
    assert len(frozen.system_attrs) > 4
    assert _private.read_proposal(frozen) == values
    assert _private.read_overhead(frozen) == 0.25
    assert _private.read_explanation(frozen) == {"origin": "model"}


def test_half_a_proposal_is_no_proposal() -> None:
    study = optuna.create_study()
    trial = study.ask()
    frozen = study._storage.get_trial(trial._trial_id)
    study._storage.set_trial_system_attr(trial._trial_id, "automl_plugins:proposal:0", '{"x": 0.')
    frozen = study._storage.get_trial(trial._trial_id)
    assert _private.read_proposal(frozen) == {}


def test_enqueued_and_partially_fixed_values_are_seen() -> None:
    study = optuna.create_study()
    study.enqueue_trial({"x": 0.5})
    trial = study.ask()
    frozen = study._storage.get_trial(trial._trial_id)
    assert _private.held_values(study, frozen) == {"x": 0.5}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        study.sampler = optuna.samplers.PartialFixedSampler({"y": 1}, study.sampler)
    assert _private.held_values(study, frozen) == {"x": 0.5, "y": 1}


def test_brackets_and_studies_are_told_apart() -> None:
    pruner = optuna.pruners.HyperbandPruner(max_resource=9)
    study = optuna.create_study(pruner=pruner)
    pruner._initialize = lambda *_: None  # type: ignore[attr-defined]
    plain = _private.study_key(study)
    assert plain[2] == -1
    bracket = pruner._create_bracket_study(study, 1)
    assert _private.study_key(bracket) == (*plain[:2], 1)
    other = optuna.create_study()
    assert _private.study_key(other) != plain
    assert _private.storage_of(bracket) is study._storage


def test_shares_come_back() -> None:
    study = optuna.create_study()
    trial = study.ask()
    frozen = study._storage.get_trial(trial._trial_id)
    assert _private.read_shares(frozen) is None
    _private.write_shares(study, frozen, {"a": 0.125, "none": 0.0, "b": 0.5})
    read = _private.read_shares(study._storage.get_trial(trial._trial_id))
    assert read == (0.375, {"b": 0.5, "a": 0.125}) and list(read[1]) == ["b", "a"]


def test_a_distribution_tells_what_it_contains() -> None:
    stepped = FloatDistribution(0, 1, step=0.25)
    assert _private.contains(stepped, 0.75) and not _private.contains(stepped, 0.7)
    assert not _private.contains(FloatDistribution(0, 1), 1.5)


def same(trial: FrozenTrial) -> FrozenTrial:
    return trial


# --- arms -----------------------------------------------------------------------------------


def test_arms_and_rounds_come_back() -> None:
    study = optuna.create_study()
    study.ask()
    frozen = study.trials[0]
    assert _private.read_arm(frozen, "model") is None
    assert _private.read_rounds(frozen, "model") == []
    rounds = [{"index": 0, "decisions": [{"arm": i, "reason": "first"} for i in range(200)]}]
    _private.write_arm(study, frozen, "model", 3)
    _private.write_rounds(study, frozen, "model", rounds)
    frozen = study.trials[0]
    assert _private.read_arm(frozen, "model") == 3
    assert _private.read_arm(frozen, "another") is None
    assert _private.read_rounds(frozen, "model") == rounds
    chunks = [v for key, v in frozen.system_attrs.items() if "rounds" in key]
    assert len(chunks) > 2 and max(map(len, chunks)) < 2048


def test_rungs_come_back() -> None:
    study = optuna.create_study()
    study.ask()
    assert _private.read_rung(study.trials[0], 1) is None
    _private.write_rung(study, study.trials[0], 1, {"value": 0.5, "advances": True})
    assert _private.read_rung(study.trials[0], 1) == {"value": 0.5, "advances": True}


def test_a_bracket_knows_its_whole_study() -> None:
    pruner = optuna.pruners.HyperbandPruner(max_resource=9)
    study = optuna.create_study(pruner=pruner)
    bracket = pruner._create_bracket_study(study, 0)
    assert _private.whole_study(bracket) is study
    assert _private.whole_study(study) is study


def test_a_trial_as_it_will_be_stored() -> None:
    study = optuna.create_study()
    trial = study.ask()
    running = study._storage.get_trial(trial._trial_id)
    done = _private.as_finished(study, running, TrialState.COMPLETE, [2.0])
    assert (done.state, done.value) == (TrialState.COMPLETE, 2.0)
    assert done.duration is not None and done.duration.total_seconds() >= 0
    failed = _private.as_finished(study, running, TrialState.FAIL, None)
    assert (failed.state, failed.values) == (TrialState.FAIL, None)
    stored = study._storage.get_trial(trial._trial_id)
    assert stored.state == TrialState.RUNNING and stored.values is None


def test_the_sampler_under_a_partial_fixing() -> None:
    sampler = optuna.samplers.RandomSampler()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        once = optuna.samplers.PartialFixedSampler({"x": 1}, sampler)
        twice = optuna.samplers.PartialFixedSampler({"y": 1}, once)
    assert _private.base_sampler(twice) is sampler is _private.base_sampler(sampler)


def test_optunas_samplers_read_a_study_as_the_arms_filter_it() -> None:
    """All that an arm's study must offer: nothing else of Study is used by the samplers."""
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    study.optimize(lambda t: t.suggest_float("x", 0, 1), n_trials=6)
    storage = ArmStorage(study._storage, "model:0", lambda t: t.number % 2 == 0, same)
    own = ArmStudy(study, storage)
    assert set(vars(own)) - {"_base", "_bracket_id"} == set(vars(study))
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
