"""Any SMAC facade as a method of ``automl_plugins.replay``."""

from __future__ import annotations

import copy
import inspect
import math
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from itertools import product
from pathlib import Path
from typing import Any

import smac
from ConfigSpace import Configuration
from smac import HyperparameterOptimizationFacade, Scenario
from smac.facade.abstract_facade import AbstractFacade
from smac.main.exceptions import ConfigurationSpaceExhaustedException
from smac.runhistory import StatusType, TrialInfo, TrialValue

from automl_plugins._arguments import check_call
from automl_plugins.frameworks import Outcome, Problem, Proposal, TrialStatus
from automl_plugins.spaces.values import as_configuration, values_of
from automl_plugins.spaces.vector_space import VectorSpace

from ._private import quiet

_UNLIMITED = 10**6  # trials of a search whose budget is in seconds: SMAC always has a limit
_SMALL = 10_000  # largest size of a space that a search may exhaust

# Arguments that the replay sets, or that have no meaning in it.
_SCENARIO_OF_THE_REPLAY = ("configspace", "n_trials", "n_workers", "output_directory", "seed")
_PARTS_OF_THE_REPLAY = ("dask_client", "overwrite", "scenario", "target_function")


def optimizer(
    facade: type[AbstractFacade] | str = HyperparameterOptimizationFacade,
    *,
    name: str | None = None,
    scenario: Mapping[str, Any] | None = None,
    **parts: Any,
) -> SMACMethod:
    """A SMAC facade to be replayed.

    Facades with several fidelities evaluate at steps of the learning curves, from the first to the
    last. SMAC cannot fit its model to the infinite cost of a failure: a failed trial costs as
    much as the worst one so far, and is reported after the first success. In a small finite
    space SMAC gives up when 16 random draws (``retries`` of its config selector) give nothing
    new; the search then ends, sometimes before everything was tried.

    Args:
        facade: A facade class; or its name in ``smac``, or among those of this package, with or
            without "Facade".
        name: Label in the results.
        scenario: Further arguments of ``Scenario``; the defaults here are deterministic=True, and
            the first and the last step as min_budget and max_budget.
        **parts: Further arguments of the facade. A function, method or ``functools.partial`` is
            called with the scenario of each search and returns the part, for example
            ``config_selector=partial(Facade.get_config_selector, retrain_after=1)``. Any other
            object is copied for each search.

    Raises:
        ValueError: For an unknown name, or arguments that the replay sets.
        TypeError: For anything but a facade class, or a part or setting that is not known.
    """
    if isinstance(facade, str):
        facade = _find_facade(facade)
    if not (isinstance(facade, type) and issubclass(facade, AbstractFacade)):
        raise TypeError(f"optimizer takes a class of facades or its name; got {facade!r}.")
    extra = dict(scenario or {})
    if taken := sorted({*extra} & {*_SCENARIO_OF_THE_REPLAY} | {*parts} & {*_PARTS_OF_THE_REPLAY}):
        raise ValueError(f"{', '.join(taken)} cannot be given: the replay sets them.")
    check_call("Scenario", "settings", Scenario, None, **extra)
    check_call(facade.__name__, "parts", facade, None, **parts)
    if (check_parts := getattr(facade, "check_parts", None)) is not None:
        check_parts(parts)
    return SMACMethod(facade, label(facade.__name__) if name is None else name, extra, parts)


def _find_facade(name: str) -> type[AbstractFacade]:
    own = import_module(__package__)
    for module, called in product((smac, own), (name, f"{name}Facade")):
        found = getattr(module, called, None)
        if isinstance(found, type) and issubclass(found, AbstractFacade):
            return found
    known = ", ".join(sorted(key for key in vars(smac) if key.endswith("Facade")))
    ours = " and ".join(key for key in dir(own) if key.endswith("Facade"))
    raise ValueError(f"No facade {name!r} in smac, which has {known}, or here: {ours}.")


def label(facade: str) -> str:
    """Label of a facade's results, from the name of its class."""
    return f"smac.{facade.removesuffix('Facade')}"


# Not a ``NamedMethod`` with a partial: methods made alike are equal, and partials are not.
@dataclass(frozen=True)
class SMACMethod:
    """A facade class with its arguments, see ``optimizer``."""

    facade: type[AbstractFacade]
    name: str
    scenario: Mapping[str, Any] = field(hash=False)  # mappings have no hash
    parts: Mapping[str, Any] = field(hash=False)

    def start(self, problem: Problem) -> SMACSearch:
        """Start a search with a new facade.

        Raises:
            ValueError: If the facade has several fidelities, but the problem has no steps.
        """
        arguments: dict[str, Any] = {"deterministic": True}
        budgets = [step for step in problem.steps if step > 0]
        if budgets:
            arguments |= {"min_budget": budgets[0], "max_budget": budgets[-1]}
        with tempfile.TemporaryDirectory() as folder, quiet():
            scenario = _UnsavedScenario(
                problem.space,
                seed=problem.seed,
                n_trials=_UNLIMITED if problem.n_trials is None else problem.n_trials,
                output_directory=Path(folder),
                **(arguments | dict(self.scenario)),
            )
            parts = {name: _make_part(part, scenario) for name, part in self.parts.items()}
            parts = {"logging_level": False, "overwrite": True} | parts
            facade = self.facade(scenario, **parts)
        if facade.intensifier.uses_budgets and not budgets:
            raise ValueError(
                f"{self.facade.__name__} evaluates at several fidelities, so it needs steps > 0:"
                " replay a table with learning curves, or use another facade."
            )
        return SMACSearch(facade, problem)


class _UnsavedScenario(Scenario):
    """A scenario that is not written: SMAC cannot write spaces with our own hyperparameters."""

    def save(self) -> None:
        """Make the folder, in which facades write other files."""
        self.output_directory.mkdir(parents=True, exist_ok=True)


def _make_part(part: Any, scenario: Scenario) -> Any:
    # Not every callable is a factory: acquisition functions are callable, too.
    if inspect.isroutine(part) or isinstance(part, partial):
        return part(scenario)
    return copy.deepcopy(part)


class SMACSearch:
    """A running search of ``problem``: a facade that is asked and told."""

    def __init__(self, facade: AbstractFacade, problem: Problem) -> None:
        self.facade = facade
        self._steps = problem.steps
        everything = VectorSpace(problem.space).enumerate(_SMALL)
        self._size = math.inf if everything is None else len(everything)
        self._asked: set[Configuration] = set()
        self._under_way = 0
        self._worst: float | None = None  # the largest loss told so far
        self._failed: list[tuple[Proposal, Outcome]] = []  # reported after the first success

    def ask(self) -> Proposal | None:
        """The next configuration; None if there is none, or none before the next result."""
        # Once everything was asked for, SMAC's ``ask`` never returns before the first result, and
        # ends the search before the last, although a result could still promote a configuration.
        missing = self._under_way > 0 or self._worst is None
        if missing and len(self._asked) >= self._size:
            return None
        try:
            with quiet():
                info = self.facade.ask()
        except (StopIteration, ConfigurationSpaceExhaustedException):  # there is no further one
            return None
        self._under_way += 1
        # In canonical form, in which equal configurations have equal hashes.
        self._asked.add(as_configuration(info.config.config_space, info.config.get_array()))
        return Proposal(values_of(info.config), self._step(info.budget), token=info)

    def _step(self, budget: float | None) -> float | None:
        """The step to stop at, None for the last; budgets differ from steps by rounding errors."""
        if budget is None:
            return None
        step = next((step for step in self._steps if math.isclose(step, budget)), budget)
        return step if step < self._steps[-1] else None

    def tell(self, proposal: Proposal, outcome: Outcome) -> None:
        """Take the result of an earlier proposal."""
        self._under_way -= 1
        if outcome.status != TrialStatus.COMPLETE:
            self._failed.append((proposal, outcome))
        else:
            self._worst = max(outcome.loss, -math.inf if self._worst is None else self._worst)
            self._record(proposal.token, StatusType.SUCCESS, outcome.loss, outcome)
        if self._worst is not None:
            for failure, end in self._failed:
                self._record(failure.token, StatusType.CRASHED, self._worst, end)
            self._failed.clear()

    def _record(self, info: TrialInfo, status: StatusType, cost: float, outcome: Outcome) -> None:
        times: dict[str, Any] = {"starttime": outcome.started, "endtime": outcome.finished}
        value = TrialValue(cost=cost, time=outcome.seconds, status=status, **times)
        with quiet():
            self.facade.tell(info, value, save=False)  # its folder is gone, see ``start``
