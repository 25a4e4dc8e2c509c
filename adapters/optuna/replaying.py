"""Any Optuna sampler, with or without a pruner, as a method of ``automl_plugins.replay``."""

from __future__ import annotations

import copy
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np
import optuna
from ConfigSpace import ConfigurationSpace
from ConfigSpace.hyperparameters import (
    CategoricalHyperparameter,
    Constant,
    FloatHyperparameter,
    Hyperparameter,
    IntegerHyperparameter,
    OrdinalHyperparameter,
)
from optuna.pruners import BasePruner, NopPruner
from optuna.samplers import BaseSampler
from optuna.trial import Trial, TrialState

from automl_plugins.frameworks import Outcome, Problem, Proposal, TrialStatus
from automl_plugins.spaces.conditions import is_active

from ._private import SimulatedStorage
from .trials import SECONDS

Factory = Callable[..., BaseSampler]

_EPOCH = datetime(2000, 1, 1)  # where simulated clocks begin


def optimizer(
    sampler: BaseSampler | Factory | str,
    *,
    pruner: BasePruner | str | None = None,
    name: str | None = None,
    **arguments: Any,
) -> OptunaMethod:
    """An Optuna sampler and pruner to be replayed.

    The study runs on the simulated clock: durations of trials are the recorded ones, also found
    in the user attribute ``"seconds"``. The search space is asked for define-by-run, ordered
    grids as the integer index of their value. With learning curves every recorded step is
    reported and the pruner may stop there.

    Args:
        sampler: A sampler class or another factory that takes ``seed=``; the name of a class of
            ``optuna.samplers`` or of this package; or an instance, of which every search uses
            a deep copy: its own seed rules, and that of the replay does not reach it.
        pruner: Stops evaluations; None never does. The name of a class of ``optuna.pruners`` is
            that class with its defaults.
        name: Label in the results.
        **arguments: For the factory.

    Raises:
        ValueError: For an unknown name, or arguments beside an instance.
    """
    if isinstance(sampler, BaseSampler) and arguments:
        raise ValueError(
            f"{', '.join(sorted(arguments))} cannot be given beside an instance: pass"
            f" {type(sampler).__name__} itself."
        )
    if isinstance(sampler, str):
        sampler = _named(sampler)
    if isinstance(pruner, str):
        pruner = _named_pruner(pruner)
    if name is None:
        name = _label(sampler)
    factory = partial(sampler, **arguments) if arguments and callable(sampler) else sampler
    return OptunaMethod(factory, pruner or NopPruner(), name)


def _named(name: str) -> Factory:
    for module in ("optuna.samplers", __package__):
        found: Any = import_module(module)
        for part in name.split("."):  # GBQRSampler.thesis is a factory too
            found = getattr(found, part, None)
        if callable(found):
            factory: Factory = found
            return factory
    raise ValueError(f"No sampler {name!r} in optuna.samplers or {__package__}.")


def _named_pruner(name: str) -> BasePruner:
    found = getattr(optuna.pruners, name, None)
    if isinstance(found, type) and issubclass(found, BasePruner):
        return found()
    raise ValueError(f"No pruner {name!r} in optuna.pruners.")


def _label(sampler: Any) -> str:
    while isinstance(sampler, partial):
        sampler = sampler.func
    return getattr(sampler, "__qualname__", type(sampler).__qualname__)


@dataclass(frozen=True)
class OptunaMethod:
    """A sampler (or its factory) and a pruner, see ``optimizer``."""

    sampler: BaseSampler | Factory
    pruner: BasePruner
    name: str

    def start(self, problem: Problem) -> OptunaSearch:
        """A study of its own."""
        if isinstance(self.sampler, BaseSampler):
            sampler = copy.deepcopy(self.sampler)
        else:
            sampler = self.sampler(seed=problem.seed)
        with _quiet():
            study = optuna.create_study(
                storage=SimulatedStorage(), sampler=sampler, pruner=copy.deepcopy(self.pruner)
            )
        return OptunaSearch(study, problem.space, problem.steps)


@dataclass
class OptunaSearch:
    """A running search: a study."""

    study: optuna.Study
    space: ConfigurationSpace
    steps: tuple[float, ...]

    def ask(self) -> Proposal:
        """The study's next trial."""
        with _quiet():
            trial = self.study.ask()
            return Proposal(suggest(trial, self.space), token=trial)

    def report(self, proposal: Proposal, step: float, loss: float) -> bool:
        """Report to the pruner. Optuna's steps are whole numbers, so others are counted."""
        trial: Trial = proposal.token
        whole = all(s.is_integer() for s in self.steps)
        trial.report(loss, int(step) if whole else self.steps.index(step))
        return trial.should_prune()

    def tell(self, proposal: Proposal, outcome: Outcome) -> None:
        """Finish the trial, at its moment of the simulated clock."""
        trial: Trial = proposal.token
        trial.set_user_attr(SECONDS, outcome.seconds)
        storage = self.study._storage
        assert isinstance(storage, SimulatedStorage)
        storage.schedule(trial, _moment(outcome.started), _moment(outcome.finished))
        with _quiet():
            if outcome.status == TrialStatus.COMPLETE:
                self.study.tell(trial, outcome.loss)
            else:
                pruned = outcome.status == TrialStatus.PRUNED
                self.study.tell(trial, state=TrialState.PRUNED if pruned else TrialState.FAIL)


def _moment(seconds: float) -> datetime:
    return _EPOCH + timedelta(seconds=seconds)


@contextmanager
def _quiet() -> Iterator[None]:
    """A search has no log of its own: there are hundreds."""
    logger = logging.getLogger("optuna")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)


def suggest(trial: Trial, space: ConfigurationSpace) -> dict[str, Any]:
    """Ask for the active hyperparameters of a ConfigSpace space, define-by-run.

    Normal and beta distributions are asked for as uniform ones on their bounds.
    """
    config: dict[str, Any] = {}
    for name in space.at:  # parents first
        if is_active(space, name, config):
            config[name] = _suggest(trial, name, space[name])
    return config


def _suggest(trial: Trial, name: str, hyperparameter: Hyperparameter[Any, Any]) -> Any:
    if isinstance(hyperparameter, Constant):
        return hyperparameter.value
    if isinstance(hyperparameter, OrdinalHyperparameter):
        sequence = list(hyperparameter.sequence)
        return sequence[trial.suggest_int(name, 0, len(sequence) - 1)]
    if isinstance(hyperparameter, IntegerHyperparameter):
        low, high = int(hyperparameter.lower), int(hyperparameter.upper)
        return trial.suggest_int(name, low, high, log=bool(hyperparameter.log))
    if isinstance(hyperparameter, FloatHyperparameter):
        low_, high_ = float(hyperparameter.lower), float(hyperparameter.upper)
        return trial.suggest_float(name, low_, high_, log=bool(hyperparameter.log))
    assert isinstance(hyperparameter, CategoricalHyperparameter)
    choices = [c.item() if isinstance(c, np.generic) else c for c in hyperparameter.choices]
    return trial.suggest_categorical(name, choices)
