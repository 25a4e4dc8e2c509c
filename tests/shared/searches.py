"""A search space and a history in the form of every framework, and the next proposal of each.

Only the proposals are made by the project, so that they can be compared between frameworks and
with those before a change.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Literal

import numpy as np
import optuna
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
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.trial import TrialState
from smac import RunHistory, Scenario
from smac.runhistory import StatusType, TrialInfo, TrialValue

Values = dict[str, Any]
Outcome = Literal["complete", "failed", "pruned", "running"]

_BEGIN = datetime(2026, 1, 1)
_STEP = 3  # step at which runs are pruned


# --- spaces -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Parameter:
    """A hyperparameter, active under ``options`` of its parent if it has one.

    ``low`` and ``high`` of kind "log" are exponents of e; ``high`` of a choice is the number of
    its options.
    """

    name: str
    kind: str  # "float", "log", "int", "log_int" or "choice"
    low: int = 0
    high: int = 1
    parent: str | None = None
    options: tuple[int, ...] = (0,)

    def is_below(self, parent: str | None, option: int) -> bool:
        return self.parent == parent and option in self.options

    def is_active(self, values: Values) -> bool:
        return self.parent is None or values.get(self.parent) in self.parent_choices

    @property
    def choices(self) -> list[str]:
        return [f"{self.name}{i}" for i in range(self.high)]

    @property
    def parent_choices(self) -> list[str]:
        return [f"{self.parent}{option}" for option in self.options]

    def at(self, u: float) -> Any:
        """The value at ``u`` in [0, 1), rounded to be the same on every machine."""
        if self.kind == "choice":
            return self.choices[int(u * self.high)]
        if self.kind == "int":
            return self.low + int(u * (self.high - self.low + 1))
        if self.kind == "log_int":
            return round(self.low * (self.high / self.low) ** u)
        value = self.low + u * (self.high - self.low)
        return float(f"{math.exp(value) if self.kind == 'log' else value:.6g}")


Space = Sequence[Parameter]  # parents first


def as_configspace(parameters: Space) -> ConfigurationSpace:
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
            space.add(InCondition(space[p.name], space[p.parent], p.parent_choices))
    return space


def as_pyll(parameters: Space) -> Any:
    nodes: dict[str, Any] = {}  # one node for all options of its parent

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


def distribution(p: Parameter) -> BaseDistribution:
    if p.kind == "choice":
        return CategoricalDistribution(p.choices)
    if p.kind == "int":
        return IntDistribution(p.low, p.high)
    if p.kind == "log_int":
        return IntDistribution(p.low, p.high, log=True)
    if p.kind == "log":
        return FloatDistribution(float(np.exp(p.low)), float(np.exp(p.high)), log=True)
    return FloatDistribution(p.low, p.high)


def ask_for(trial: optuna.Trial, parameters: Space) -> Values:
    values: Values = {}
    for p in parameters:
        if p.is_active(values):
            values[p.name] = trial._suggest(p.name, distribution(p))
    return values


# --- histories --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Run:
    values: Values
    status: Outcome
    loss: float
    seconds: float


def draw_values(parameters: Space, rng: np.random.Generator) -> tuple[Values, float]:
    """A random configuration and its loss; uses only ``rng.random``."""
    values: Values = {}
    loss = 0.1 * rng.random()
    for p in parameters:
        u = rng.random()
        if p.is_active(values):
            values[p.name] = p.at(u)
            loss += (u - 0.3) ** 2
    return values, round(loss, 6)


def draw_runs(
    parameters: Space,
    n: int,
    rng: np.random.Generator,
    *,
    failed: float = 0.0,
    pruned: float = 0.0,
    running: int = 0,
    allowed: Callable[[Values], bool] = lambda values: True,
) -> list[Run]:
    """Runs of distinct configurations; shares failed or were pruned, the last are running."""
    runs: list[Run] = []
    while len(runs) < n:
        values, loss = draw_values(parameters, rng)
        lot = rng.random()
        # Whole milliseconds, the resolution of Hyperopt's clock.
        seconds = round(0.01 + 10 ** (2 * rng.random()) * loss, 3)
        status: Outcome = "complete"
        if len(runs) >= n - running:
            status = "running"
        elif lot < failed:
            status = "failed"
        elif lot < failed + pruned:
            status = "pruned"
        # SMAC has one row for equal configurations.
        if allowed(values) and all(values != run.values for run in runs):
            runs.append(Run(values, status, loss, seconds))
    return runs


def draw_tasks(
    parameters: Space,
    n: int,
    rng: np.random.Generator,
    names: Sequence[str],
    *,
    allowed: Callable[[Values], bool] = lambda values: True,
) -> dict[str, list[Run]]:
    """Earlier tasks with similar rankings of the same configurations."""
    shared = draw_runs(parameters, n, rng, allowed=allowed)
    return {
        name: [replace(run, loss=round(run.loss + 0.2 * rng.random(), 6)) for run in shared]
        for name in names
    }


def as_study(
    parameters: Space, runs: Sequence[Run], sampler: optuna.samplers.BaseSampler | None = None
) -> optuna.Study:
    """The runs in sequence; their seconds are durations and the user attribute "seconds"."""
    study = optuna.create_study(sampler=sampler)
    by_name = {p.name: distribution(p) for p in parameters}
    state = {
        "complete": TrialState.COMPLETE,
        "failed": TrialState.FAIL,
        "pruned": TrialState.PRUNED,
        "running": TrialState.RUNNING,
    }
    moment = _BEGIN
    for run in runs:
        has_loss = run.status in ("complete", "pruned")
        trial = optuna.trial.create_trial(
            state=state[run.status],
            value=run.loss if has_loss else None,
            params=run.values,
            distributions={name: by_name[name] for name in run.values},
            user_attrs={"seconds": run.seconds},
            intermediate_values={_STEP: run.loss} if run.status == "pruned" else None,
        )
        trial.datetime_start = moment
        moment += timedelta(seconds=run.seconds)
        trial.datetime_complete = None if run.status == "running" else moment
        study.add_trial(trial)
    return study


def as_trials(parameters: Space, runs: Sequence[Run]) -> Trials:
    """The runs in sequence by Hyperopt's clock; a pruned run is "fail" with a loss."""
    trials, domain = Trials(), Domain(lambda values: 0.0, as_pyll(parameters))
    moment = _BEGIN
    documents = []
    for tid, run in enumerate(runs):
        vals: dict[str, list[Any]] = {p.name: [] for p in parameters}
        for p in parameters:
            if p.name in run.values:
                value = run.values[p.name]
                vals[p.name] = [p.choices.index(value) if p.kind == "choice" else value]
        results: dict[Outcome, Values] = {
            "complete": {"status": "ok", "loss": run.loss},
            "failed": {"status": "fail"},
            "pruned": {"status": "fail", "loss": run.loss},
            "running": {"status": "new"},
        }
        document = as_document(trials, domain, tid, vals, results[run.status])
        document["state"] = JOB_STATE_RUNNING if run.status == "running" else JOB_STATE_DONE
        document["book_time"] = moment
        moment += timedelta(seconds=run.seconds)
        document["refresh_time"] = moment
        documents.append(document)
    trials.insert_trial_docs(documents)
    trials.refresh()
    return trials


def as_document(
    trials: Trials, domain: Domain, tid: int, vals: Mapping[str, list[Any]], result: Values
) -> dict[str, Any]:
    """A document of Hyperopt, not inserted yet; ``vals`` of inactive labels are empty."""
    misc = {
        "tid": tid,
        "cmd": domain.cmd,
        "workdir": domain.workdir,
        "idxs": {name: [tid] if value else [] for name, value in vals.items()},
        "vals": vals,
    }
    (document,) = trials.new_trial_docs([tid], [None], [result], [misc])
    return dict(document)


def add_to(
    history: RunHistory, space: ConfigurationSpace, runs: Sequence[Run], *, begin: float = 0.0
) -> RunHistory:
    """The runs in sequence in SMAC's history; a pruned run ran out of time."""
    status = {
        "complete": StatusType.SUCCESS,
        "failed": StatusType.CRASHED,
        "pruned": StatusType.TIMEOUT,
    }
    moment = begin
    for run in runs:
        info = TrialInfo(Configuration(space, values=run.values), seed=0)
        if run.status == "running":
            history.add_running_trial(info)
            continue
        moment += 1e4
        complete = run.status == "complete"
        value = TrialValue(
            run.loss if complete else np.inf,
            time=run.seconds if complete else 0.0,  # SMAC stores no time of a crash
            status=status[run.status],
            starttime=moment - run.seconds,
            endtime=moment,
        )
        history.add_trial(info, value)
    return history


# --- the next proposal ------------------------------------------------------------------------


def in_optuna(
    sampler: optuna.samplers.BaseSampler, parameters: Space, runs: Sequence[Run]
) -> Values:
    return ask_for(as_study(parameters, runs, sampler).ask(), parameters)


def in_smac(
    proposer: Any, space: ConfigurationSpace, runs: Sequence[Run], folder: Path, seed: int
) -> Values:
    scenario = Scenario(
        space, n_trials=1000, deterministic=True, seed=seed, output_directory=folder
    )
    selector = our_smac.ProposerConfigSelector(scenario, proposer)
    facade = our_smac.GBQRFacade(
        scenario, config_selector=selector, overwrite=True, logging_level=False
    )
    add_to(facade.runhistory, space, runs)
    return {k: plain(v) for k, v in dict(next(iter(selector))).items()}


def in_hyperopt(algo: Callable[..., Any], parameters: Space, runs: Sequence[Run]) -> Values:
    domain = Domain(lambda values: 0.0, as_pyll(parameters))
    (document,) = algo([len(runs)], domain, as_trials(parameters, runs), 123)
    return values_of(document, parameters)


def values_of(document: dict[str, Any], parameters: Space) -> Values:
    """The values of a document of Hyperopt, with options by name."""
    vals = document["misc"]["vals"]
    return {
        p.name: p.choices[int(vals[p.name][0])] if p.kind == "choice" else plain(vals[p.name][0])
        for p in parameters
        if len(vals[p.name])
    }


def plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value
