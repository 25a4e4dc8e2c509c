"""A memory that does not fit is refused if the space is known, else ignored with one warning."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import hyperopt
import numpy as np
import optuna
import pytest
from automl_plugins.adapters import hyperopt as hyperopt_algos
from automl_plugins.adapters import optuna as optuna_samplers
from automl_plugins.adapters.smac import AutoFacade, GBQRFacade, ProposerConfigSelector
from ConfigSpace import ConfigurationSpace, Float
from hyperopt import hp
from optuna.distributions import BaseDistribution, FloatDistribution
from smac import Scenario

from automl_plugins import recipes
from automl_plugins.frameworks import Outcome, Problem, TrialStatus
from automl_plugins.meta import MemoryMismatch, MetaDataset, MetaStore, TaskRecord
from automl_plugins.meta.bundled_memories import bundled
from automl_plugins.meta.recognition import RecognisedMemory
from automl_plugins.proposers.proposal import Proposer
from automl_plugins.replay.simulation import proposing

METHODS: dict[str, Callable[..., Proposer]] = {
    "auto": recipes.auto,
    "tst": recipes.tst,
    "blended": recipes.blended,
    "pmf": recipes.pmf,
}
SAMPLERS = {
    "auto": "AutoSampler",
    "tst": "TSTSampler",
    "blended": "BlendedSampler",
    "pmf": "PMFSampler",
    "gbqr": "GBQRSampler",
}
AnyMemory = MetaDataset | MetaStore | str
N = 8


def a_space(*names: str) -> ConfigurationSpace:
    space = ConfigurationSpace()
    space.add([Float(name, (0.0, 1.0)) for name in names])
    return space


def a_memory() -> MetaDataset:
    rows = [{"C": c} for c in (0.1, 0.3, 0.5, 0.9)]
    losses = np.array([0.4, 0.1, 0.2, 0.3])
    records = [TaskRecord(name, rows, losses * k, space=a_space("C")) for name, k in TASKS.items()]
    return MetaDataset.from_records(records)


TASKS = {"first": 1.0, "second": 2.0}


def loss(x: float, y: float) -> float:
    return (x - 0.3) ** 2 + y


Points = list[tuple[float, float]]


def of_optuna(sampler: optuna.samplers.BaseSampler) -> Points:
    study = optuna.create_study(sampler=sampler)
    study.optimize(lambda t: loss(t.suggest_float("x", 0, 1), t.suggest_float("y", 0, 1)), N)
    return [(trial.params["x"], trial.params["y"]) for trial in study.trials]


def without(method: str) -> tuple[str, dict[str, Any]]:
    """The method that continues without a memory, and its options."""
    return ("auto", {"memory": None}) if method == "auto" else ("gbqr", {})


def optuna_door(method: str, memory: AnyMemory, **options: Any) -> tuple[Points, Points]:
    sampler = getattr(optuna_samplers, SAMPLERS[method])(memory, seed=3, **options)
    # The first trial's parameters are unknown, so both samplers draw them in the same way.
    name, of_plain = without(method)
    plain = getattr(optuna_samplers, SAMPLERS[name])(seed=3, **of_plain)
    return of_optuna(sampler), of_optuna(plain)


def of_hyperopt(algo: Any) -> Points:
    trials = hyperopt.Trials()
    space = {name: hp.uniform(name, 0, 1) for name in ("x", "y")}
    hyperopt.fmin(
        lambda v: loss(**v), space, algo, N, trials=trials, show_progressbar=False, verbose=False
    )
    return list(zip(trials.vals["x"], trials.vals["y"], strict=True))


def hyperopt_door(method: str, memory: AnyMemory, **options: Any) -> tuple[Points, Points]:
    algo = getattr(hyperopt_algos, method)(memory=memory, seed=3, **options)
    name, of_plain = without(method)
    return of_hyperopt(algo), of_hyperopt(getattr(hyperopt_algos, name)(seed=3, **of_plain))


def of_replay(make: Callable[[], Proposer]) -> Points:
    search = proposing("method", lambda problem: make()).start(
        Problem(a_space("x", "y"), seed=3, n_trials=N)
    )
    points = []
    for _ in range(N):
        proposal = search.ask()
        assert proposal is not None
        x, y = (float(proposal.config[name]) for name in ("x", "y"))
        search.tell(proposal, Outcome(TrialStatus.COMPLETE, loss(x, y), 0.0, 1.0))
        points.append((x, y))
    return points


def replay_door(method: str, memory: AnyMemory, **options: Any) -> tuple[Points, Points]:
    made = of_replay(lambda: METHODS[method](memory, **options))
    name, of_plain = without(method)
    return made, of_replay(lambda: getattr(recipes, name)(**of_plain))


DOORS = {"optuna": optuna_door, "hyperopt": hyperopt_door, "replay": replay_door}


@pytest.mark.parametrize("method", list(METHODS))
@pytest.mark.parametrize("door", list(DOORS))
def test_one_warning_and_the_search_continues_without(
    door: str, method: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        found, plain = DOORS[door](method, a_memory())
    (record,) = caplog.records
    message = record.message
    assert "share no hyperparameter" in message and "continues without its memory" in message
    # Optuna's samplers write to Optuna's log, whose verbosity its users set.
    assert record.name.startswith("optuna.") == (door == "optuna")
    assert found == plain


@pytest.mark.parametrize(
    ("method", "held"), [*((method, "nothing") for method in METHODS), ("tst", "itself")]
)
@pytest.mark.parametrize("door", list(DOORS))
def test_a_store_that_has_nothing_yet_is_warned_of_once(
    door: str, method: str, held: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Else no project could be the first one to use and fill its store."""
    with MetaStore(tmp_path / "runs.db") as store:
        if held == "itself":
            store.add(a_memory().records()[0])
        with caplog.at_level(logging.WARNING):
            found, plain = DOORS[door](method, store, task="first")
    (record,) = caplog.records
    assert "to learn from" in record.message and "does without a memory" in record.message
    assert record.name.startswith("optuna.") == (door == "optuna")
    assert found == plain


def known_to_smac(method: str, memory: Any) -> None:
    scenario = Scenario(a_space("x", "y"), n_trials=N, deterministic=True)
    ProposerConfigSelector(scenario, METHODS[method](memory))


def known_to_optuna(method: str, memory: Any) -> None:
    declared = {name: FloatDistribution(0, 1) for name in ("x", "y")}
    getattr(optuna_samplers, SAMPLERS[method])(memory, search_space=declared)


@pytest.mark.parametrize("open_door", [known_to_smac, known_to_optuna])
def test_where_the_space_is_known_no_memory_yet_is_no_error(
    open_door: Callable[[str, Any], Any], tmp_path: Path
) -> None:
    path = tmp_path / "runs.db"
    MetaStore(path).close()
    for method in ("auto", "tst"):
        open_door(method, path)
    open_door("auto", "auto")  # and no learner has these names


@pytest.mark.parametrize("method", ["auto", "tst"])
@pytest.mark.parametrize("door", list(DOORS))
def test_where_no_learner_is_recognised_nothing_is_warned_of(
    door: str, method: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        found, plain = DOORS[door](method, "auto")
    assert found == plain and not caplog.records


Searched = list[dict[str, Any]]
FEW = 3  # the trials of a search on the parameters of an SVM


def svm_in_optuna(**memory: Any) -> Searched:
    """After a first trial: from the second one on the names are known."""
    study = optuna.create_study()
    study.enqueue_trial({"C": 1.0, "gamma": 0.5})

    def objective(trial: optuna.Trial) -> float:
        C = trial.suggest_float("C", 0.1, 10.0, log=True)
        return C + trial.suggest_float("gamma", 0.0, 1.0)

    study.optimize(objective, 1)
    study.sampler = optuna_samplers.AutoSampler(**memory, seed=3)
    study.optimize(objective, FEW)
    return [trial.params for trial in study.trials]


def test_a_declared_space_is_recognised_before_the_first_trial() -> None:
    declared: dict[str, BaseDistribution]
    declared = {"C": FloatDistribution(0.1, 10.0, log=True), "gamma": FloatDistribution(0, 1)}
    sampler = optuna_samplers.AutoSampler(search_space=declared, seed=3)
    first = optuna.create_study(sampler=sampler).ask(declared)
    assert optuna_samplers.explain(first).origin == "suggested"


def svm_in_hyperopt(**memory: Any) -> Searched:
    trials = hyperopt.Trials()
    space = {"C": hp.loguniform("C", -2, 2), "gamma": hp.uniform("gamma", 0, 1)}
    algo = hyperopt_algos.auto(seed=3, **memory)
    hyperopt.fmin(lambda v: v["C"] + v["gamma"], space, algo, FEW, trials=trials, verbose=False)
    return [{n: trials.vals[n][i] for n in space} for i in range(FEW)]


def svm_in_smac(tmp_path: Path, **memory: Any) -> Searched:
    space = ConfigurationSpace()
    space.add(Float("C", (0.1, 10.0), log=True), Float("gamma", (0.0, 1.0)))
    folder = tmp_path / str(memory.get("memory", "default"))
    scenario = Scenario(space, n_trials=FEW, deterministic=True, seed=3, output_directory=folder)
    facade = AutoFacade(scenario, lambda c, seed=0: c["C"] + c["gamma"], **memory, **QUIET)
    facade.optimize()
    return [dict(config) for config in facade.runhistory.get_configs()]


QUIET: dict[str, Any] = {"logging_level": False, "overwrite": True}


@pytest.mark.parametrize("door", ["optuna", "hyperopt", "smac"])
def test_the_memory_of_a_learner_that_is_recognised_is_the_default(
    door: str, tmp_path: Path
) -> None:
    searches: dict[str, Callable[..., Searched]] = {
        "optuna": svm_in_optuna,
        "hyperopt": svm_in_hyperopt,
        "smac": partial(svm_in_smac, tmp_path),
    }
    found = searches[door]()
    assert found == searches[door](memory="auto") == searches[door](memory="svm")
    assert found != searches[door](memory=None)


@pytest.mark.parametrize("door", ["recipe", "optuna", "hyperopt", "smac"])
def test_data_without_a_memory_are_said_to_be_of_no_use_once(door: str) -> None:
    data: dict[str, Any] = {"X": np.eye(3), "y": np.arange(3), "memory": None}
    scenario = Scenario(a_space("C"), n_trials=N, deterministic=True)
    searches: dict[str, Callable[[], Any]] = {
        "recipe": lambda: recipes.auto(None, meta_features={"n": 1.0}),
        "optuna": lambda: of_optuna(optuna_samplers.AutoSampler(seed=1, **data)),
        "hyperopt": lambda: of_hyperopt(hyperopt_algos.auto(seed=1, **data)),
        "smac": lambda: AutoFacade(scenario, lambda c, seed=0: c["C"], **data, **QUIET),
    }
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("default")
        searches[door]()
    (told,) = [w for w in warned if "are not used with memory=None" in str(w.message)]
    assert Path(told.filename).name == Path(__file__).name  # the user's line, not the library's


def test_the_default_memory_is_no_obstacle_to_another_model() -> None:
    """Only a memory that was given would be lost."""
    scenario = Scenario(a_space("C", "gamma"), n_trials=N, deterministic=True)
    selector = ProposerConfigSelector(scenario, recipes.gbqr())
    AutoFacade(scenario, lambda c, seed=0: c["C"], config_selector=selector, **QUIET)
    with pytest.raises(ValueError, match="memory would not be used"):
        AutoFacade(
            scenario,
            lambda c, seed=0: c["C"],
            memory="svm",
            config_selector=selector,
            **QUIET,
        )


def test_a_memory_that_is_recognised_can_leave_data_sets_out() -> None:
    """As for a search on one of them."""
    memory = RecognisedMemory().without({task.name for task in bundled("svm").tasks})
    assert svm_in_optuna(memory=memory) == svm_in_optuna(memory=None)
    assert svm_in_optuna(memory=RecognisedMemory()) == svm_in_optuna()


@pytest.mark.parametrize("method", list(METHODS))
@pytest.mark.parametrize("open_door", [known_to_smac, known_to_optuna])
def test_where_the_space_is_known_the_memory_is_refused(
    open_door: Callable[[str, Any], Any], method: str
) -> None:
    with pytest.raises(MemoryMismatch, match="share no hyperparameter"):
        open_door(method, a_memory())


@pytest.mark.parametrize("method", list(METHODS))
def test_the_task_itself_is_no_memory(method: str) -> None:
    memory = a_memory().without("second")
    sampler = getattr(optuna_samplers, SAMPLERS[method])
    for construct in (METHODS[method], sampler):
        with pytest.raises(MemoryMismatch):
            construct(memory, task="first")
    with pytest.raises(MemoryMismatch):
        getattr(hyperopt_algos, method)(memory=memory, task="first")


def test_a_model_that_fails_in_smac_is_replaced_by_gbqr_too(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: Any) -> None:
        raise np.linalg.LinAlgError("on purpose")

    monkeypatch.setattr("automl_plugins.surrogates.two_stage.TwoStageTransfer.fit", broken)
    scenario = Scenario(a_space("C"), n_trials=N, deterministic=True, seed=3)
    selector = ProposerConfigSelector(scenario, recipes.tst(a_memory()))
    smac = GBQRFacade(
        scenario, lambda config, seed=0: float(config["C"]), config_selector=selector,
        logging_level=False, overwrite=True,
    )  # fmt: skip
    with caplog.at_level(logging.WARNING, logger="smac"):
        smac.optimize()
    (message,) = [r.message for r in caplog.records if r.name == "smac.automl_plugins"]
    assert "on purpose" in message and "continues without its memory" in message
    assert {c.origin for c in smac.runhistory.get_configs()} <= {
        "Proposer: design",
        "Proposer: model",
    }
