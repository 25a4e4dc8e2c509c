"""Fails loudly when Optuna changes what ``_private`` relies on."""

from __future__ import annotations

import warnings

import optuna
from automl_plugins.adapters.optuna import _private
from optuna.distributions import FloatDistribution


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


def test_a_sampler_written_as_ours_still_fits_optuna() -> None:
    study = optuna.create_study()
    trial = study.ask({"x": FloatDistribution(0, 1)})
    frozen = study._storage.get_trial(trial._trial_id)
    assert frozen.params.keys() == {"x"}
