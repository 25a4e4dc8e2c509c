"""Studies begin with what a memory suggests."""

from __future__ import annotations

import json
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
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.samplers import RandomSampler, TPESampler
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend
from optuna.study import Study
from optuna.trial import FrozenTrial, Trial, TrialState

from automl_plugins.meta import MetaDataset, TaskRecord, diverse

MODEL: dict[str, BaseDistribution] = {
    "model": CategoricalDistribution(["svm", "forest"]),
    "C": FloatDistribution(0.001, 1000.0, log=True),
    "depth": IntDistribution(1, 10),
}


@pytest.fixture(autouse=True)
def quiet() -> None:
    optuna.logging.set_verbosity(optuna.logging.ERROR)


def objective(trial: Trial) -> float:
    model = trial.suggest_categorical("model", ["svm", "forest"])
    if model == "svm":
        return loss({"model": model, "C": trial.suggest_float("C", 0.001, 1000.0, log=True)})
    return loss({"model": model, "depth": trial.suggest_int("depth", 1, 10)})


@pytest.fixture
def memory() -> MetaDataset:
    return MetaDataset.from_records(records())


def waiting(study: Study) -> list[FrozenTrial]:
    return study.get_trials(deepcopy=False, states=[TrialState.WAITING])


def fixed(study: Study) -> list[dict[str, Any]]:
    return [t.system_attrs["fixed_params"] for t in waiting(study)]


class Counting(RandomSampler):
    """Counts the trials for which it had to draw something."""

    drawn: set[int]

    def sample_independent(self, study: Any, trial: Any, name: Any, distribution: Any) -> Any:
        self.__dict__.setdefault("drawn", set()).add(trial.number)
        return super().sample_independent(study, trial, name, distribution)


# --- modes ----------------------------------------------------------------------------------


@pytest.mark.parametrize("space", [MODEL, model_space()], ids=["distributions", "ConfigSpace"])
@pytest.mark.parametrize(
    ("mode", "suggested", "filled"), [("part", 5, 0), ("replace", 10, 0), ("add", 5, 10)]
)
def test_modes(memory: MetaDataset, mode: Any, suggested: int, filled: int, space: Any) -> None:
    study = optuna.create_study(sampler=Counting(seed=0))
    design = enqueue_initial_design(
        study, memory=memory, meta_features=TASK, search_space=space, mode=mode
    )
    assert fixed(study)[:suggested] == design.configurations and len(design) == suggested
    assert len(waiting(study)) == suggested + filled
    study.optimize(objective, n_trials=suggested + filled)
    assert not hasattr(study.sampler, "drawn")  # nothing was left to the sampler
    assert [t.params for t in study.trials][:suggested] == design.configurations
    notes = [t.user_attrs[INITIAL_DESIGN] for t in study.trials]
    assert notes[:suggested] == [
        {"design": "diverse", "score": s.score, "reason": s.reason} for s in design
    ]
    assert notes[suggested:] == [{"design": "space_filling"}] * filled
    assert len({json.dumps(t.params) for t in study.trials}) == suggested + filled


@pytest.mark.parametrize("mode", ["part", "replace", "add"])
@pytest.mark.parametrize("kind", [TPESampler, GBQRSampler])
def test_samplers_count_enqueued_trials_as_start_up(
    memory: MetaDataset, mode: Any, kind: Any
) -> None:
    study = optuna.create_study(sampler=kind(n_startup_trials=6, seed=0))
    enqueue_initial_design(
        study, memory=memory, search_space=model_space(), mode=mode, n_startup_trials=6
    )
    n = len(waiting(study))
    assert n == {"part": 3, "replace": 6, "add": 9}[mode]
    study.optimize(objective, n_trials=n + 7)
    assert all(t.state == TrialState.COMPLETE for t in study.trials)
    assert sum(INITIAL_DESIGN in t.user_attrs for t in study.trials) == n
    if kind is GBQRSampler:
        origins = [explain(t).origin for t in study.trials[n:]]
        left = max(0, 6 - n)
        assert set(origins[:left]) <= {"design"} and "model" in origins[left:]


def test_a_maximised_study_and_the_best_first(memory: MetaDataset) -> None:
    study = optuna.create_study(direction="maximize")
    enqueue_initial_design(study, memory=memory, meta_features=TASK, search_space=MODEL)
    expected = diverse(model_space(), memory, TASK, 5).configurations
    study.optimize(lambda trial: -objective(trial), n_trials=5)
    assert [t.params for t in study.trials] == expected


@pytest.mark.parametrize("storage", [None, "sqlite", "journal"])
def test_enqueued_once_in_every_storage(
    memory: MetaDataset, storage: str | None, tmp_path: Path
) -> None:
    where: Any = None
    if storage == "sqlite":
        where = f"sqlite:///{tmp_path / 'study.db'}"
    elif storage == "journal":
        where = JournalStorage(JournalFileBackend(str(tmp_path / "study.log")))
    study = optuna.create_study(storage=where)
    for _ in range(3):
        enqueue_initial_design(study, memory=memory, search_space=MODEL, mode="add")
        study.optimize(objective, n_trials=2)
    assert len(study.trials) == 15
    assert study.trials[0].user_attrs[INITIAL_DESIGN]["reason"]


# --- values ---------------------------------------------------------------------------------


def test_conditions_of_the_memory_hold_for_distributions(memory: MetaDataset) -> None:
    study = optuna.create_study()
    enqueue_initial_design(study, memory=memory, search_space=MODEL, n_configs=8, mode="add")
    for params in fixed(study):
        assert params.keys() == {"model", "C" if params["model"] == "svm" else "depth"}


@pytest.mark.filterwarnings("ignore:Choices for a categorical distribution")  # the tuple
def test_values_are_those_of_the_distributions() -> None:
    choices: Any = (None, True, 1.5, "x", ("a", 1))
    space: dict[str, BaseDistribution] = {
        "step": FloatDistribution(0.0, 1.0, step=0.1),
        "fine": FloatDistribution(0.0, 1000.0, step=0.001),
        "log": FloatDistribution(1e-5, 1.0, log=True),
        "int": IntDistribution(1, 9, step=2),
        "logint": IntDistribution(1, 1000, log=True),
        "choice": CategoricalDistribution(choices),
        "twins": CategoricalDistribution([True, 1]),
        "one": IntDistribution(3, 3),
    }
    given: dict[str, Any] = {
        "step": 0.28,
        "fine": 3.14159,
        "log": 1,
        "int": 4.2,
        "logint": 30.4,
        "one": 3,
    }
    rows = [
        given | {"choice": c, "twins": t}
        for c, t in zip(choices, [True, 1, 1, True, 1], strict=True)
    ]
    recorded = TaskRecord("t", rows, np.arange(5.0))
    study = optuna.create_study()
    design = enqueue_initial_design(
        study,
        memory=[recorded],
        search_space=space,
        n_configs=5,
    )
    # Optuna itself takes 1 for True when a trial asks for it.
    twins = [c["twins"] for c in design.configurations]
    assert list(map(type, twins)) == [type(row["twins"]) for row in rows]
    study.optimize(
        lambda trial: float(len([trial._suggest(n, d) for n, d in space.items()])), n_trials=5
    )
    for trial, row in zip(study.trials, rows, strict=True):
        assert trial.params["choice"] is row["choice"]
        numbers = [trial.params[n] for n in ("step", "fine", "log", "int", "logint", "one")]
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


# --- designs and memories -------------------------------------------------------------------


def test_a_ready_design_needs_no_space(memory: MetaDataset) -> None:
    ready = diverse(model_space(), memory, TASK, 6)
    study = optuna.create_study()
    found = enqueue_initial_design(study, ready, n_configs=6)
    assert fixed(study) == ready.configurations == found.configurations
    study = optuna.create_study()
    assert len(enqueue_initial_design(study, ready)) == 5  # half of the start-up
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
        ({"n_configs": 0}, "at least 1"),
        ({"n_startup_trials": -1}, "n_startup_trials must be at least 0"),
        ({"memory": "nothing"}, "no memory 'nothing'"),
        ({"search_space": None}, "Pass search_space="),
        ({"search_space": {"alpha": FloatDistribution(0, 1)}}, "share no hyperparameter"),
    ],
)
def test_bad_input_enqueues_nothing(
    memory: MetaDataset, options: dict[str, Any], error: str
) -> None:
    study = optuna.create_study()
    with pytest.raises(ValueError, match=error):
        enqueue_initial_design(study, **({"memory": memory, "search_space": MODEL} | options))
    assert not study.trials


def test_the_space_is_read_from_the_objective_or_a_study(memory: MetaDataset) -> None:
    calls: list[dict[str, Any]] = []

    def objective(trial: optuna.Trial) -> float:
        for name, distribution in MODEL.items():
            trial._suggest(name, distribution)
        calls.append(dict(trial.params))
        raise optuna.TrialPruned

    expected = enqueue_initial_design(optuna.create_study(), memory=memory, search_space=MODEL)
    study = optuna.create_study()
    found = enqueue_initial_design(study, memory=memory, search_space=objective)
    assert found.configurations == expected.configurations and len(calls) == 1
    assert len(waiting(study)) == len(study.trials) == 5
    earlier = optuna.create_study()
    earlier.optimize(objective, n_trials=1)
    found = enqueue_initial_design(optuna.create_study(), memory=memory, search_space=earlier)
    assert found.configurations == expected.configurations
    assert enqueue_initial_design(earlier, memory=memory).configurations == expected.configurations
    with pytest.raises(ValueError, match="asked for no parameter when it was called"):
        enqueue_initial_design(study, memory=memory, search_space=lambda trial: 1.0)
