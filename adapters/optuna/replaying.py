"""Any Optuna sampler, with or without a pruner, as a method of ``automl_plugins.replay``."""

from __future__ import annotations

import copy
import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any

import optuna
from ConfigSpace import ConfigurationSpace
from ConfigSpace.hyperparameters import Constant, OrdinalHyperparameter
from optuna.pruners import BasePruner, NopPruner
from optuna.samplers import BaseSampler
from optuna.trial import Trial

from automl_plugins._arguments import check_call, check_kind, did_you_mean
from automl_plugins.frameworks import NamedMethod, Outcome, Problem, Proposal, TrialStatus
from automl_plugins.spaces.conditions import active_names

from . import _private
from .space import distribution_of
from .studies import quiet
from .trials import SECONDS, STATES

Factory = Callable[..., BaseSampler]


def optimizer(
    sampler: BaseSampler | Factory | str,
    *,
    pruner: BasePruner | str | None = None,
    name: str | None = None,
    **arguments: Any,
) -> NamedMethod:
    """An Optuna sampler and pruner to be replayed.

    The study runs on the simulated clock: durations of trials are the recorded ones, which are
    also in the user attribute ``"seconds"``. The search space is asked for define-by-run, ordered
    grids as the integer index of their value. With learning curves every recorded step is
    reported and the pruner may stop there.

    Args:
        sampler: A sampler class or another factory that takes ``seed=``; the name of a class of
            ``optuna.samplers`` or of this package; or an instance. Every search uses a deep copy
            of the instance, with its own seed, not the seed of the replay.
        pruner: Stops evaluations; None never does. The name of a class of ``optuna.pruners``
            means that class with its defaults.
        name: Label in the results.
        **arguments: Arguments of the factory.

    Raises:
        TypeError: For anything but a sampler or a factory.
        ValueError: For an unknown name, or arguments together with an instance.
    """
    if isinstance(sampler, BaseSampler) and arguments:
        raise ValueError(
            f"{', '.join(sorted(arguments))} cannot be given with an instance: pass the class"
            f" {type(sampler).__name__}."
        )
    named = factory = _find("sampler", sampler, "optuna.samplers", __package__)
    allowed = "a sampler, its class or another factory, or the name of one"
    check_kind("optimizer", factory, (BaseSampler, Callable), allowed)
    stops = _find("pruner", pruner or NopPruner(), "optuna.pruners")
    stops = stops() if isinstance(stops, type) else stops
    check_kind("optimizer", stops, BasePruner, "a pruner as pruner=, its class or its name")
    while isinstance(named, partial):
        named = named.func
    if name is None:
        name = getattr(named, "__qualname__", type(named).__qualname__)
    if arguments and callable(factory):
        if "seed" in arguments:
            raise ValueError("seed cannot be given: the replay sets it, see its own seed=.")
        check_call(name, "arguments", factory, seed=0, **arguments)
        factory = partial(factory, **arguments)
    return NamedMethod(name, partial(_start, factory, stops))


def _find(kind: str, name: Any, *modules: str) -> Any:
    """The object that a text names; anything else unchanged."""
    if not isinstance(name, str):
        return name
    for module in modules:
        found: Any = import_module(module)
        for part in name.split("."):  # GBQRSampler.thesis is a factory too
            found = getattr(found, part, None)
        if callable(found):
            return found
    names = (name for module in modules for name in dir(import_module(module)))
    known = [name for name in names if kind in name.lower() and not name.startswith("Base")]
    raise ValueError(
        f"No {kind} {name!r} in {' or '.join(modules)}, which have {', '.join(known)}."
        f"{did_you_mean(name, known)}"
    )


def _start(sampler: BaseSampler | Factory, pruner: BasePruner, problem: Problem) -> OptunaSearch:
    if isinstance(sampler, BaseSampler):
        sampler = copy.deepcopy(sampler)
    else:
        sampler = sampler(seed=problem.seed)
    with quiet(logging.ERROR):
        study = optuna.create_study(
            sampler=sampler,
            pruner=copy.deepcopy(pruner),  # pruners cache facts of a study
            study_name=f"replay {problem.seed}",  # by which ``HyperbandPruner`` draws brackets
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
        with quiet(logging.ERROR):
            trial = self.study.ask()
            return Proposal(suggest(trial, self.space), token=trial)

    def report(self, proposal: Proposal, step: float, loss: float) -> bool:
        """Report to the pruner; the index of the step if not all steps are whole numbers."""
        trial: Trial = proposal.token
        whole = all(s.is_integer() for s in self.steps)
        trial.report(loss, int(step) if whole else self.steps.index(step))
        return trial.should_prune()

    def tell(self, proposal: Proposal, outcome: Outcome) -> None:
        """Finish the trial at its time on the simulated clock."""
        trial: Trial = proposal.token
        trial.set_user_attr(SECONDS, outcome.seconds)
        with quiet(logging.ERROR):
            if outcome.status == TrialStatus.COMPLETE:
                self.study.tell(trial, outcome.loss)
            else:
                self.study.tell(trial, state=STATES[outcome.status])
        _private.set_times(self.study, trial, outcome.started, outcome.finished)


def suggest(trial: Trial, space: ConfigurationSpace) -> dict[str, Any]:
    """Ask for the active hyperparameters of a ConfigSpace space, define-by-run.

    Normal and beta distributions are asked for as uniform ones on their bounds.
    """
    config: dict[str, Any] = {}
    # The loop fills ``config``: which names come next depends on the values so far.
    for name in active_names(space, config):
        hyperparameter = space[name]
        if isinstance(hyperparameter, Constant):
            config[name] = hyperparameter.value
        elif isinstance(hyperparameter, OrdinalHyperparameter):
            sequence = list(hyperparameter.sequence)
            config[name] = sequence[trial.suggest_int(name, 0, len(sequence) - 1)]
        else:
            config[name] = _private.suggest(trial, name, distribution_of(hyperparameter))
    return config
