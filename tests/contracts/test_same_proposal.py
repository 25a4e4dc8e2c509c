"""The same history and seed, the same proposal: in Optuna, in SMAC and in Hyperopt."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import pytest
from automl_plugins.adapters import hyperopt as our_hyperopt
from automl_plugins.adapters import optuna as our_optuna
from automl_plugins.adapters import smac as our_smac
from ConfigSpace import (
    Categorical,
    Configuration,
    ConfigurationSpace,
    Float,
    InCondition,
    Integer,
)
from hyperopt import Domain, Trials, hp
from hyperopt.base import JOB_STATE_DONE, JOB_STATE_RUNNING
from smac import Scenario
from smac.runhistory import StatusType, TrialInfo, TrialValue

from automl_plugins import recipes
from automl_plugins.meta import TaskRecord
from automl_plugins.proposers.proposal import Proposer
from automl_plugins.records.history import History
from automl_plugins.records.trial import Status
from automl_plugins.spaces.vector_space import VectorSpace
from automl_plugins.streams import Streams

SEED = 7


# --- spaces that all three can express --------------------------------------------------------


@dataclass(frozen=True)
class Parameter:
    """A hyperparameter, below options of its parent if it has one.

    ``low`` and ``high`` of a real log scale are exponents of e.
    """

    name: str
    kind: str
    low: int = 0
    high: int = 1
    parent: str | None = None
    options: tuple[int, ...] = (0,)

    def is_below(self, parent: str | None, option: int) -> bool:
        return self.parent == parent and option in self.options

    @property
    def choices(self) -> list[str]:
        return [f"{self.name}{i}" for i in range(self.high)]


def random_space(rng: np.random.Generator) -> list[Parameter]:
    """One to two choices, nested at random, with numbers above and below them; parents first."""
    parameters = [number(rng, "always")]
    outer = Parameter("outer", "choice", high=int(rng.integers(2, 4)))
    parameters.append(outer)
    for option in range(outer.high):
        for i in range(int(rng.integers(0, 3))):
            below = number(rng, f"n{option}{i}")
            parameters.append(replace(below, parent="outer", options=(option,)))
    if outer.high > 2:  # else it is below all options, which Optuna cannot tell from none
        parameters.append(replace(number(rng, "both"), parent="outer", options=(0, 1)))
    if rng.random() < 0.6:
        inner = Parameter("inner", "choice", high=2, parent="outer", options=(0,))
        below = replace(number(rng, "deep"), parent="inner", options=(1,))
        parameters += [inner, below]
    return parameters


def number(rng: np.random.Generator, name: str) -> Parameter:
    kind = str(rng.choice(["float", "log", "int", "log_int"]))
    low = int(rng.integers(-4, 2))
    if kind == "log_int":
        return Parameter(name, kind, abs(low) + 1, abs(low) + 1 + int(rng.integers(2, 500)))
    return Parameter(name, kind, low, low + int(rng.integers(2, 9)))


def as_configspace(parameters: list[Parameter]) -> ConfigurationSpace:
    space = ConfigurationSpace()
    for p in parameters:
        if p.kind == "choice":
            space.add(Categorical(p.name, p.choices))
        elif p.kind == "int":
            space.add(Integer(p.name, (p.low, p.high)))
        elif p.kind == "log_int":
            space.add(Integer(p.name, (p.low, p.high), log=True))
        elif p.kind == "log":
            space.add(Float(p.name, (float(np.exp(p.low)), float(np.exp(p.high))), log=True))
        else:
            space.add(Float(p.name, (float(p.low), float(p.high))))
    for p in parameters:
        if p.parent is not None:
            values = [f"{p.parent}{option}" for option in p.options]
            space.add(InCondition(space[p.name], space[p.parent], values))
    return space


def as_pyll(parameters: list[Parameter]) -> Any:
    nodes: dict[str, Any] = {}  # the same one in all options that it is below

    def below(parent: str | None, option: int) -> dict[str, Any]:
        for p in parameters:
            if p.is_below(parent, option) and p.name not in nodes:
                nodes[p.name] = node(p)
        return {p.name: nodes[p.name] for p in parameters if p.is_below(parent, option)}

    def node(p: Parameter) -> Any:
        if p.kind == "choice":
            options = [{"type": name} | below(p.name, i) for i, name in enumerate(p.choices)]
            return hp.choice(p.name, options)
        if p.kind == "int":
            return hp.randint(p.name, p.low, p.high + 1)
        if p.kind == "log_int":
            return hp.qloguniform(p.name, np.log(p.low), np.log(p.high), 1)
        if p.kind == "log":
            return hp.loguniform(p.name, p.low, p.high)
        return hp.uniform(p.name, p.low, p.high)

    return below(None, 0)


def asked(trial: optuna.Trial, parameters: list[Parameter]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for p in parameters:
        if p.parent is not None and values.get(p.parent) not in [
            f"{p.parent}{option}" for option in p.options
        ]:
            continue
        values[p.name] = trial._suggest(p.name, distribution(p))
    return values


def distribution(p: Parameter) -> optuna.distributions.BaseDistribution:
    if p.kind == "choice":
        return optuna.distributions.CategoricalDistribution(p.choices)
    if p.kind == "int":
        return optuna.distributions.IntDistribution(p.low, p.high)
    if p.kind == "log_int":
        return optuna.distributions.IntDistribution(p.low, p.high, log=True)
    if p.kind == "log":
        return optuna.distributions.FloatDistribution(
            float(np.exp(p.low)), float(np.exp(p.high)), log=True
        )
    return optuna.distributions.FloatDistribution(p.low, p.high)


# --- histories ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Run:
    values: dict[str, Any]
    status: Status
    loss: float
    seconds: float


def random_runs(
    parameters: list[Parameter], n: int, rng: np.random.Generator
) -> tuple[ConfigurationSpace, list[Run]]:
    space = as_configspace(parameters)
    vectors = VectorSpace(space)
    drawn = vectors.canonical(vectors.sample(n, rng))
    # SMAC has one row for equal configurations.
    _, distinct = np.unique(vectors.keys(drawn), return_index=True)
    runs = []
    for vector in drawn[np.sort(distinct)]:
        values = {k: plain(v) for k, v in dict(Configuration(space, vector=vector)).items()}
        failed = rng.random() < 0.1
        loss = float(np.nansum((vector - 0.3) ** 2) + 0.1 * rng.random())
        # Whole milliseconds, which is what Hyperopt's clock has.
        seconds = float(rng.integers(1, 5000)) / 1000.0
        runs.append(Run(values, Status.FAILED if failed else Status.COMPLETE, loss, seconds))
    for i in range(2):  # the last ones are under way
        runs[-1 - i] = replace(runs[-1 - i], status=Status.RUNNING)
    return space, runs


def random_memory(parameters: list[Parameter], rng: np.random.Generator) -> list[TaskRecord]:
    """Earlier tasks; those of one space rank their configurations alike, more or less."""
    records = []
    for name in ("monday", "tuesday", "wednesday"):
        space, runs = random_runs(parameters, 14, rng)
        complete = [run for run in runs if run.status == Status.COMPLETE]
        losses = np.array([run.loss for run in complete])
        records.append(TaskRecord(name, [run.values for run in complete], losses, space=space))
    return records


def plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def in_core(proposer: Proposer, space: ConfigurationSpace, runs: list[Run]) -> dict[str, Any]:
    vectors = VectorSpace(space)
    raw = [Configuration(space, values=run.values).get_array() for run in runs]
    complete = np.array([run.status == Status.COMPLETE for run in runs])
    finished = np.array([run.status != Status.RUNNING for run in runs])
    history = History.of(
        vectors.canonical(np.array(raw).reshape(len(runs), vectors.d)),
        np.where(complete, [run.loss for run in runs], np.nan),
        seconds=np.where(finished, [run.seconds for run in runs], np.nan),
        status=[run.status for run in runs],
    )
    chosen = proposer.propose(vectors, history, Streams(SEED), len(runs)).vector
    return {k: plain(v) for k, v in dict(Configuration(space, vector=chosen)).items()}


def in_optuna(
    sampler: optuna.samplers.BaseSampler, parameters: list[Parameter], runs: list[Run]
) -> dict[str, Any]:
    study = optuna.create_study(sampler=sampler)
    by_name = {p.name: distribution(p) for p in parameters}
    state = {
        Status.COMPLETE: optuna.trial.TrialState.COMPLETE,
        Status.FAILED: optuna.trial.TrialState.FAIL,
        Status.RUNNING: optuna.trial.TrialState.RUNNING,
    }
    moment = datetime(2026, 1, 1)
    for run in runs:
        trial = optuna.trial.create_trial(
            state=state[run.status],
            value=run.loss if run.status == Status.COMPLETE else None,
            params=run.values,
            distributions={name: by_name[name] for name in run.values},
            user_attrs={"seconds": run.seconds},
        )
        trial.datetime_start = moment
        moment += timedelta(seconds=run.seconds)
        trial.datetime_complete = None if run.status == Status.RUNNING else moment
        study.add_trial(trial)
    return asked(study.ask(), parameters)


def in_smac(
    proposer: Proposer, space: ConfigurationSpace, runs: list[Run], folder: Path
) -> dict[str, Any]:
    scenario = Scenario(
        space, n_trials=1000, deterministic=True, seed=SEED, output_directory=folder
    )
    selector = our_smac.ProposerConfigSelector(scenario, proposer)
    facade = our_smac.GBQRFacade(
        scenario, config_selector=selector, overwrite=True, logging_level=False
    )
    status = {Status.COMPLETE: StatusType.SUCCESS, Status.FAILED: StatusType.CRASHED}
    moment = 0.0
    for run in runs:
        info = TrialInfo(Configuration(space, values=run.values), seed=0)
        if run.status == Status.RUNNING:
            facade.runhistory.add_running_trial(info)
            continue
        moment += 1e4
        complete = run.status == Status.COMPLETE
        value = TrialValue(
            run.loss if complete else np.inf,
            time=run.seconds if complete else 0.0,  # which SMAC leaves out of crashes
            status=status[run.status],
            starttime=moment - run.seconds,
            endtime=moment,
        )
        facade.runhistory.add_trial(info, value)
    return {k: plain(v) for k, v in dict(next(iter(selector))).items()}


def in_hyperopt(
    algo: Callable[..., Any], parameters: list[Parameter], runs: list[Run]
) -> dict[str, Any]:
    trials, domain = Trials(), Domain(lambda values: 0.0, as_pyll(parameters))
    moment = datetime(2026, 1, 1)
    documents = []
    for tid, run in enumerate(runs):
        vals = {
            p.name: [p.choices.index(run.values[p.name])]
            if p.kind == "choice" and p.name in run.values
            else [run.values[p.name]]
            if p.name in run.values
            else []
            for p in parameters
        }
        misc = {
            "tid": tid,
            "cmd": domain.cmd,
            "workdir": domain.workdir,
            "idxs": {name: [tid] if value else [] for name, value in vals.items()},
            "vals": vals,
        }
        result = {
            Status.COMPLETE: {"status": "ok", "loss": run.loss},
            Status.FAILED: {"status": "fail"},
            Status.RUNNING: {"status": "new"},
        }[run.status]
        (document,) = trials.new_trial_docs([tid], [None], [result], [misc])
        document["state"] = JOB_STATE_RUNNING if run.status == Status.RUNNING else JOB_STATE_DONE
        document["book_time"] = moment
        moment += timedelta(seconds=run.seconds)
        document["refresh_time"] = moment
        documents.append(document)
    trials.insert_trial_docs(documents)
    trials.refresh()
    (document,) = algo([len(runs)], domain, trials, 123)
    values = {k: v[0] for k, v in document["misc"]["vals"].items() if len(v)}
    by_name = {p.name: p for p in parameters}
    return {
        name: by_name[name].choices[int(v)] if by_name[name].kind == "choice" else plain(v)
        for name, v in values.items()
    }


# --- the contract -------------------------------------------------------------------------------

Make = Callable[[list[TaskRecord]], Any]
METHODS: dict[str, tuple[Make, Make, Make]] = {
    "gbqr": (
        lambda memory: recipes.gbqr(),
        lambda memory: our_optuna.GBQRSampler(seed=SEED),
        lambda memory: our_hyperopt.gbqr(seed=SEED),
    ),
    "gbqr_per_second": (
        lambda memory: recipes.gbqr(per_second=True),
        lambda memory: our_optuna.GBQRSampler(seed=SEED, cost="seconds"),
        lambda memory: our_hyperopt.gbqr(seed=SEED, per_second=True),
    ),
    "ei_per_second": (
        lambda memory: recipes.ei_per_second(),
        lambda memory: our_optuna.EIPerSecondSampler(seed=SEED, cost="seconds"),
        lambda memory: our_hyperopt.ei_per_second(seed=SEED),
    ),
    "tst": (
        lambda memory: recipes.tst(memory),
        lambda memory: our_optuna.TSTSampler(memory, seed=SEED),
        lambda memory: our_hyperopt.tst(memory=memory, seed=SEED),
    ),
}
SURROGATES: dict[str, tuple[Make, Make, Make]] = {
    name: (
        lambda memory, name=name: recipes.surrogate(name),  # type: ignore[misc]
        lambda memory, name=name: our_optuna.SurrogateSampler(surrogate=name, seed=SEED),  # type: ignore[misc]
        lambda memory, name=name: our_hyperopt.surrogate(surrogate=name, seed=SEED),  # type: ignore[misc]
    )
    for name in ("random_forest", "extra_trees", "gaussian_process")
}
PRESETS: dict[str, tuple[Make, Make, Make]] = {
    "gbqr_thesis": (
        lambda memory: recipes.gbqr_thesis(),
        lambda memory: our_optuna.GBQRSampler.thesis(seed=SEED),
        lambda memory: our_hyperopt.gbqr(seed=SEED, thesis=True),
    ),
    "gbqr_thesis_per_second": (
        lambda memory: recipes.gbqr_thesis(per_second=True),
        lambda memory: our_optuna.GBQRSampler.thesis(seed=SEED, cost="seconds"),
        lambda memory: our_hyperopt.gbqr(seed=SEED, thesis=True, per_second=True),
    ),
    "tst_paper": (
        lambda memory: recipes.tst(memory, paper=True),
        lambda memory: our_optuna.TSTSampler.paper(memory, seed=SEED),
        lambda memory: our_hyperopt.tst(memory=memory, seed=SEED, paper=True),
    ),
    "pmf_paper": (
        lambda memory: recipes.pmf(memory, paper=True),
        lambda memory: our_optuna.PMFSampler.paper(memory, seed=SEED),
        lambda memory: our_hyperopt.pmf(memory=memory, seed=SEED, paper=True),
    ),
}
ALL = METHODS | SURROGATES | PRESETS


@pytest.mark.parametrize(
    ("method", "case"),
    [(method, case) for method in METHODS for case in range(4)]
    + [(method, 0) for method in SURROGATES | PRESETS],
)
def test_all_frameworks_propose_the_same(method: str, case: int, tmp_path: Path) -> None:
    rng = np.random.default_rng([case, 5])
    parameters = random_space(rng)
    # enough for Optuna's trials to tell all conditions
    space, runs = random_runs(parameters, int(rng.integers(60, 80)), rng)
    memory = random_memory(parameters, rng)
    check(method, parameters, memory, space, runs, tmp_path)


@pytest.mark.parametrize("case", range(2))
def test_transfer_begins_the_same(case: int, tmp_path: Path) -> None:
    """Before any trial; Optuna has the space from the memory, as the others from the user."""
    rng = np.random.default_rng([case, 6])
    parameters = random_space(rng)
    memory = random_memory(parameters, rng)
    check("tst", parameters, memory, as_configspace(parameters), [], tmp_path)


def test_the_spaces_are_of_every_kind() -> None:
    spaces = [random_space(np.random.default_rng([case, 5])) for case in range(4)]
    found = {p.kind for space in spaces for p in space}
    assert found == {"choice", "float", "log", "int", "log_int"}
    assert {"both", "inner"} <= {p.name for space in spaces for p in space}


def check(
    method: str,
    parameters: list[Parameter],
    memory: list[TaskRecord],
    space: ConfigurationSpace,
    runs: list[Run],
    folder: Path,
) -> None:
    proposer, sampler, algo = ALL[method]
    expected = in_core(proposer(memory), space, runs)
    found = {
        "Optuna": in_optuna(sampler(memory), parameters, runs),
        "SMAC": in_smac(proposer(memory), space, runs, folder),
        "Hyperopt": in_hyperopt(algo(memory), parameters, runs),
    }
    for framework, values in found.items():
        assert values.keys() == expected.keys(), framework
        for name, value in values.items():
            if isinstance(value, str):
                assert value == expected[name], framework
            else:
                assert value == pytest.approx(expected[name], rel=1e-9), framework
