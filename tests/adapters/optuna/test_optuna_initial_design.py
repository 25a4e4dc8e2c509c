"""Studies begin with what a memory suggests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import optuna
import pytest
from automl_plugins.adapters.optuna import GBQRSampler, explain
from automl_plugins.adapters.optuna.initial_design import INITIAL_DESIGN, enqueue_initial_design
from ConfigSpace import ConfigurationSpace
from ConfigSpace.hyperparameters import Constant, NormalFloatHyperparameter, OrdinalHyperparameter
from known_runs import TASK, loss, model_space, records
from objectives import Refusing, distinct, params
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.samplers import TPESampler
from optuna.study import Study
from optuna.trial import Trial, TrialState
from storages import storage_in

from automl_plugins.meta import MetaDataset, TaskRecord, diverse

MODEL: dict[str, BaseDistribution] = {
    "model": CategoricalDistribution(["svm", "forest"]),
    "C": FloatDistribution(0.001, 1000.0, log=True),
    "depth": IntDistribution(1, 10),
}
MEMORY = MetaDataset.from_records(records())


@pytest.fixture(autouse=True)
def quiet() -> None:
    optuna.logging.set_verbosity(optuna.logging.ERROR)


def objective(trial: Trial) -> float:
    model = trial.suggest_categorical("model", ["svm", "forest"])
    if model == "svm":
        return loss({"model": model, "C": trial.suggest_float("C", 0.001, 1000.0, log=True)})
    return loss({"model": model, "depth": trial.suggest_int("depth", 1, 10)})


def fixed(study: Study) -> list[dict[str, Any]]:
    waiting = study.get_trials(deepcopy=False, states=[TrialState.WAITING])
    return [t.system_attrs["fixed_params"] for t in waiting]


# --- modes ----------------------------------------------------------------------------------


@pytest.mark.parametrize("space", [MODEL, model_space()], ids=["distributions", "ConfigSpace"])
@pytest.mark.parametrize(
    ("mode", "suggested", "filled"), [("part", 5, 0), ("replace", 10, 0), ("add", 5, 10)]
)
def test_modes(mode: Any, suggested: int, filled: int, space: Any) -> None:
    study = optuna.create_study(sampler=Refusing())
    design = enqueue_initial_design(
        study, memory=MEMORY, meta_features=TASK, search_space=space, mode=mode
    )
    assert fixed(study)[:suggested] == design.configurations and len(design) == suggested
    assert len(fixed(study)) == suggested + filled
    study.optimize(objective, n_trials=suggested + filled)
    assert params(study)[:suggested] == design.configurations
    notes = [t.user_attrs[INITIAL_DESIGN] for t in study.trials]
    assert notes[:suggested] == [
        {"design": "diverse", "score": s.score, "reason": s.reason} for s in design
    ]
    assert notes[suggested:] == [{"design": "space_filling"}] * filled
    assert distinct(params(study)) == suggested + filled
    for values in params(study):  # the conditions are those of the memory
        assert values.keys() == {"model", "C" if values["model"] == "svm" else "depth"}


@pytest.mark.parametrize(("mode", "n"), [("part", 3), ("replace", 6), ("add", 9)])
@pytest.mark.parametrize("kind", [TPESampler, GBQRSampler])
def test_samplers_count_enqueued_trials_as_start_up(mode: Any, n: int, kind: Any) -> None:
    study = optuna.create_study(sampler=kind(n_startup_trials=6, seed=0))
    enqueue_initial_design(
        study, memory=MEMORY, search_space=model_space(), mode=mode, n_startup_trials=6
    )
    assert len(fixed(study)) == n
    study.optimize(objective, n_trials=n + 7)
    assert all(t.state == TrialState.COMPLETE for t in study.trials)
    assert sum(INITIAL_DESIGN in t.user_attrs for t in study.trials) == n
    if kind is GBQRSampler:
        origins = [explain(t).origin for t in study.trials[n:]]
        left = max(0, 6 - n)
        assert set(origins[:left]) <= {"design"} and "model" in origins[left:]


@pytest.mark.parametrize("kind", ["memory", "sqlite", "journal"])
def test_enqueued_once_in_every_storage(kind: str, tmp_path: Path) -> None:
    study = optuna.create_study(storage=storage_in(tmp_path, kind))
    for _ in range(2):
        enqueue_initial_design(study, memory=MEMORY, search_space=MODEL, mode="add")
        study.optimize(objective, n_trials=1)
    assert len(study.trials) == 15
    assert study.trials[0].user_attrs[INITIAL_DESIGN]["reason"]


# --- values ---------------------------------------------------------------------------------


def test_studies_of_a_storage_are_a_memory(tmp_path: Path) -> None:
    storage = f"sqlite:///{tmp_path / 'studies.db'}"
    for name in ("one", "two"):
        study = optuna.create_study(storage=storage, study_name=name)
        study.optimize(objective, n_trials=12)
    asked = [optuna.create_study() for _ in range(3)]
    studies = [optuna.load_study(study_name=n, storage=storage) for n in ("one", "two")]
    for new, memory in zip(
        asked, (storage, optuna.storages.RDBStorage(storage), studies), strict=True
    ):
        enqueue_initial_design(new, memory=memory, search_space=MODEL)
    suggested = [fixed(new) for new in asked]
    assert len(suggested[0]) == 5 and suggested == [suggested[0]] * 3


def test_a_study_of_several_objectives_is_refused_where_it_was_picked(
    tmp_path: Path, log: pytest.LogCaptureFixture
) -> None:
    storage = f"sqlite:///{tmp_path / 'studies.db'}"
    several = optuna.create_study(storage=storage, directions=["minimize", "maximize"])
    several.optimize(lambda trial: (trial.suggest_float("x", 0, 1), 1.0), n_trials=2)
    study = optuna.create_study(storage=storage)
    study.optimize(objective, n_trials=12)
    asked = optuna.create_study()
    with pytest.raises(ValueError, match="2 objectives"):
        enqueue_initial_design(asked, memory=[several, study], search_space=MODEL)
    assert not asked.trials
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    enqueue_initial_design(asked, memory=storage, search_space=MODEL)
    assert asked.trials and "left out: it has several objectives" in log.text


@pytest.mark.filterwarnings("ignore:Choices for a categorical distribution")  # the tuple
def test_values_are_those_of_the_distributions() -> None:
    choices: Any = (None, True, 1.5, "x", ("a", 1))
    space: dict[str, BaseDistribution] = {
        "step": FloatDistribution(0.0, 1.0, step=0.1),
        "fine": FloatDistribution(0.0, 1000.0, step=0.001),
        "log": FloatDistribution(1e-5, 1.0, log=True),
        "int": IntDistribution(1, 9, step=2),
        "logint": IntDistribution(1, 1000, log=True),
        "one": IntDistribution(3, 3),
        "choice": CategoricalDistribution(choices),
        "twins": CategoricalDistribution([True, 1]),
    }
    given = {"step": 0.28, "fine": 3.14159, "log": 1, "int": 4.2, "logint": 30.4, "one": 3}
    twins = [True, 1, 1, True, 1]
    rows = [given | {"choice": c, "twins": t} for c, t in zip(choices, twins, strict=True)]
    study = optuna.create_study()
    recorded = [TaskRecord("t", rows, np.arange(5.0))]
    design = enqueue_initial_design(study, memory=recorded, search_space=space, n_configs=5)
    # Optuna itself takes 1 for True when a trial asks for it.
    assert [type(c["twins"]) for c in design.configurations] == list(map(type, twins))
    study.optimize(lambda t: float(len([t._suggest(n, d) for n, d in space.items()])), n_trials=5)
    for trial, row in zip(study.trials, rows, strict=True):
        assert trial.params["choice"] is row["choice"]
        numbers = [trial.params[name] for name in given]
        assert numbers == pytest.approx([0.3, 3.142, 1.0, 5, 30, 3], abs=1e-9)
        assert [type(v) for v in numbers] == [float, float, float, int, int, int]
        assert all(d._contains(d.to_internal_repr(trial.params[n])) for n, d in space.items())


def test_a_configuration_space_becomes_what_optuna_has() -> None:
    space = ConfigurationSpace()
    space.add(
        OrdinalHyperparameter("size", ["s", "m", "l"]),
        OrdinalHyperparameter("grid", [0.1, 0.2, 0.3]),
        NormalFloatHyperparameter("bell", 0.0, 1.0, lower=-3.0, upper=3.0),
        Constant("fixed", "yes"),
    )
    row = {"size": "m", "grid": 0.3, "bell": 0.7, "fixed": "yes"}
    study = optuna.create_study()
    record = TaskRecord("t", [row], np.zeros(1), space=space)
    design = enqueue_initial_design(study, memory=[record], search_space=space, n_configs=1)
    assert design.configurations == [pytest.approx(row)]
    assert fixed(study) == design.configurations


# --- designs and spaces ---------------------------------------------------------------------


def test_a_ready_design_needs_no_space() -> None:
    ready = diverse(model_space(), MEMORY, TASK, 6)
    study = optuna.create_study()
    found = enqueue_initial_design(study, ready, n_configs=6)
    assert fixed(study) == ready.configurations == found.configurations
    half = enqueue_initial_design(optuna.create_study(), ready)
    assert len(half) == 5  # half of the start-up
    narrow = MODEL | {"C": FloatDistribution(0.5, 2.0, log=True)}
    study = optuna.create_study()
    found = enqueue_initial_design(study, ready, search_space=narrow, n_configs=6)
    assert all(0.5 <= p.get("C", 1.0) <= 2.0 for p in fixed(study))
    assert any("clipped" in note for note in found.notes)


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"mode": "only"}, "'replace'"),
        ({"design": "best"}, "design must be one of"),
        ({"X": np.zeros((9, 1))}, "X without y"),
        ({"n_configs": 0}, "an integer >= 1"),
        ({"n_startup_trials": -1}, "n_startup_trials must be an integer >= 0"),
        ({"memory": "nothing"}, "no memory 'nothing'"),
        ({"search_space": None}, "Pass search_space="),
        ({"search_space": {"alpha": FloatDistribution(0, 1)}}, "share no hyperparameter"),
        (
            {"search_space": lambda trial: 1.0},
            "asked for no parameter when it was called: pass the distributions",
        ),
        ({"search_space": 3}, "search_space must be Optuna's distributions by name"),
    ],
)
def test_bad_input_enqueues_nothing(options: dict[str, Any], error: str) -> None:
    study = optuna.create_study()
    with pytest.raises((TypeError, ValueError), match=error):
        enqueue_initial_design(study, **({"memory": MEMORY, "search_space": MODEL} | options))
    assert not study.trials


def test_the_space_is_read_from_the_objective_or_a_study(
    log: pytest.LogCaptureFixture,
) -> None:
    calls: list[dict[str, Any]] = []

    def objective(trial: Trial) -> float:
        calls.append({name: trial._suggest(name, d) for name, d in MODEL.items()})
        raise optuna.TrialPruned

    def suggested(study: Study, **options: Any) -> Any:
        return enqueue_initial_design(study, memory=MEMORY, **options).configurations

    expected = suggested(optuna.create_study(), search_space=MODEL)
    study = optuna.create_study()
    optuna.logging.set_verbosity(optuna.logging.INFO)
    assert suggested(study, search_space=objective) == expected and len(calls) == 1
    assert "A new study" not in log.text  # the user made no other one
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    assert len(fixed(study)) == len(study.trials) == 5
    earlier = optuna.create_study()
    earlier.optimize(objective, n_trials=1)
    assert suggested(optuna.create_study(), search_space=earlier) == expected
    assert suggested(earlier) == expected


@pytest.mark.parametrize("directions", [["minimize"], ["minimize", "maximize"]])
def test_a_range_that_depends_on_others_is_the_widest_of_the_study(directions: Any) -> None:
    def dependent(trial: Trial) -> list[float]:
        high = trial.suggest_int("high", 1, 9)
        return [float(high), float(trial.suggest_int("low", 1, high))][: len(directions)]

    study = optuna.create_study(directions=directions)
    for high in (2, 9, 3, 8, 4, 7, 2):
        study.enqueue_trial({"high": high, "low": 2})
    study.optimize(dependent, n_trials=7)
    recorded = TaskRecord("t", [{"high": 8, "low": 5}, {"high": 7, "low": 6}], np.arange(2.0))
    asked = optuna.create_study()
    options: Any = {"mode": "add", "n_configs": 2, "n_startup_trials": 6, "search_space": study}
    found = enqueue_initial_design(asked, memory=[recorded], **options)
    if len(directions) == 1:
        assert {"high": 8, "low": 5} in found.configurations
        assert all(values.keys() == {"high"} for values in fixed(asked)[len(found) :])
    else:  # only the newest range is known of it
        assert all(values["low"] <= 2 for values in found.configurations)


def test_names_that_an_objective_has_replaced_are_not_suggested() -> None:
    """Suggestions for the old name alone would change nothing in the new trials."""
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    for name in ("lr", "learning_rate"):
        study.optimize(lambda trial, n=name: trial.suggest_float(n, 1e-4, 1.0, log=True), 20)  # type: ignore[misc]
    old, new = (
        TaskRecord("t", [{name: 0.02}, {name: 0.5}], np.arange(2.0))
        for name in ("lr", "learning_rate")
    )
    with pytest.raises(ValueError, match=r"the runs have lr; the space has learning_rate\."):
        enqueue_initial_design(study, memory=[old])
    enqueue_initial_design(study, memory=[new], mode="add", n_configs=1, n_startup_trials=3)
    assert len(fixed(study)) > 1
    assert all(values.keys() == {"learning_rate"} for values in fixed(study))
