"""The interface between the core and the adapters of the frameworks.

The core imports no framework. It drives optimizers of any framework through the few types below,
and finds the ``ADAPTER`` of a framework by its name when it meets one of its objects.
"""

from __future__ import annotations

import logging
import os
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, partial
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from ConfigSpace import ConfigurationSpace

from automl_plugins._imports import OutdatedError
from automl_plugins.addresses import check_exists, hint_of_database
from automl_plugins.records.search import Search
from automl_plugins.records.task_record import TaskRecord
from automl_plugins.records.trial import Status

if TYPE_CHECKING:
    from automl_plugins.bandits.report import ArmReport

_ADAPTERS = "automl_plugins.adapters"
_logger = logging.getLogger(__name__)

Shares = Mapping[int, Mapping[str, float]]  # {number of the evaluation: {name: share}}
TrialStatus = Status  # its public name in ``automl_plugins.replay``


@dataclass(frozen=True)
class Problem:
    """The problem as an optimizer gets it when its search starts.

    Attributes:
        space: The search space; a copy of its own for every search, seeded with ``seed``.
        seed: Seed of this search.
        n_trials: Evaluations it may make; None when the budget is in seconds.
        n_workers: Evaluations that run at the same time.
        steps: Steps of the learning curves, ascending; empty where there are none.
        seconds: Seconds it may take; None when the budget is in trials.

    Example::

        problem = Problem(table.space, seed=1, n_trials=20)
    """

    space: ConfigurationSpace
    seed: int
    n_trials: int | None = None
    n_workers: int = 1
    steps: tuple[float, ...] = ()
    seconds: float | None = None


@dataclass(frozen=True)
class Proposal:
    """A configuration to be evaluated.

    Attributes:
        config: Values of the active hyperparameters by name; inactive ones are ignored.
        step: The step of the learning curve at which to stop; None evaluates in full.
        token: The optimizer's own handle of the trial.

    Example::

        Proposal({"C": 0.5, "depth": 3})
    """

    config: Mapping[str, Any]
    step: float | None = None
    token: Any = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class Outcome:
    """The result of an evaluation.

    Attributes:
        status: How it ended.
        loss: To be minimised; NaN for a failed evaluation, the last report for a pruned one.
        started: When the evaluation began, in simulated seconds since the start of the search.
        finished: When it ended, in the same seconds.

    Example::

        outcome = Outcome(TrialStatus.COMPLETE, loss=0.3, started=10.0, finished=12.5)
        assert outcome.seconds == 2.5
    """

    status: Status
    loss: float
    started: float
    finished: float

    @property
    def seconds(self) -> float:
        """Simulated duration of the evaluation."""
        return self.finished - self.started


@runtime_checkable
class Optimizer(Protocol):
    """A running search: asked for configurations, given their results.

    With several workers it is asked again before it is told; results come in the order in which
    they finish. Two methods are optional: ``report`` (see ``Prunes``) and ``close()``, which is
    called when the search is over.

    Example::

        class UniformSearch:  # an Optimizer
            def __init__(self, space):
                self.space = space

            def ask(self):
                return Proposal(dict(self.space.sample_configuration()))

            def tell(self, proposal, outcome):
                pass


        replay(UniformSearch(table.space), table, budget=5)
    """

    def ask(self) -> Proposal | None:
        """The next configuration; None if it needs a further result first, or has no more."""
        ...

    def tell(self, proposal: Proposal, outcome: Outcome) -> None:
        """Take the result of an earlier proposal."""
        ...


@runtime_checkable
class Prunes(Protocol):
    """An optimizer that watches learning curves.

    Example::

        class Watching(UniformSearch):  # Prunes, too
            def report(self, proposal, step, loss):
                return loss > 0.9
    """

    def report(self, proposal: Proposal, step: float, loss: float) -> bool:
        """Take an intermediate loss; True stops the evaluation there."""
        ...


@runtime_checkable
class Method(Protocol):
    """A way of searching, as ``optimizer(...)`` of an adapter returns it; picklable.

    Example::

        class Uniform:  # a Method
            name = "uniform"

            def start(self, problem):
                return UniformSearch(problem.space)  # an Optimizer
    """

    @property
    def name(self) -> str:
        """Label of the results if the caller gives no name."""
        ...

    def start(self, problem: Problem) -> Optimizer:
        """A fresh search."""
        ...


@dataclass(frozen=True)
class NamedMethod:
    """A function that starts a search, as a ``Method``."""

    name: str
    start: Callable[[Problem], Optimizer]


@dataclass(frozen=True)
class Adapter:
    """A framework as the core sees it; the package of each adapter has one, its ``ADAPTER``.

    Attributes:
        name: Name of the framework, and of the package.
        owns: Whether a path or address is one that ``curves`` and ``read_task`` can read.
        is_space: Whether something is a search space in the language of the framework.
        curves: Reads the searches of a framework's object, path or address. Takes the labels
            ``table``, ``method`` and ``seed``; the framework's own replace those that are None.
        read_task: Reads such an object as the runs of one task; takes ``name`` and ``space``.
        read_tasks: Reads such an object as the runs of several tasks, each by its own name, or of
            one task if ``name`` is given.
        write_history: Writes a ``TaskRecord`` as an object that the framework continues from;
            takes a space or None, and further options.
        optimizer: Makes a method to be replayed.
        arm_report: Reports on the arms of a search; None if the framework has none.
        source_shares: Reads the ``Shares`` of earlier tasks; None if the framework keeps none.
        member_trust: Reads how much each member of a committee was trusted, as ``Shares``; None if
            the framework keeps none.
    """

    name: str
    owns: Callable[[str], bool]
    is_space: Callable[[Any], bool]
    curves: Callable[..., list[Search]]
    read_task: Callable[..., TaskRecord]
    read_tasks: Callable[..., list[TaskRecord]]
    write_history: Callable[..., Any]
    optimizer: Callable[..., Method]
    arm_report: Callable[..., ArmReport] | None = None
    source_shares: Callable[[Any], Shares] | None = None
    member_trust: Callable[[Any], Shares] | None = None


def load_adapter(name: str) -> Adapter:
    """The adapter of a framework; ValueError if there is none of that name.

    ModuleNotFoundError if its framework is not installed.
    """
    if name not in _names():
        raise ValueError(f"There is no adapter {name!r}; there are {', '.join(_names())}.")
    adapter: Adapter = import_module(f"{_ADAPTERS}.{name}").ADAPTER
    return adapter


def adapter_of(thing: Any) -> Adapter | None:
    """The adapter of the framework that an object, class or function comes from, if any."""
    while isinstance(thing, partial):
        thing = thing.func
    owners = thing.__mro__ if isinstance(thing, type) else type(thing).__mro__
    # A user's class comes from the framework of its first base class that a framework defines.
    modules = [getattr(thing, "__module__", ""), *(owner.__module__ for owner in owners)]
    for module in modules:
        parts = (module or "").split(".")
        # our own samplers live in automl_plugins.adapters.<framework>
        name = parts[2] if ".".join(parts[:2]) == _ADAPTERS and len(parts) > 2 else parts[0]
        if name in _names():
            return load_adapter(name)
    return None


def owner_of(address: str) -> Adapter | None:
    """The first installed adapter that can read a path or address, if any."""
    for name in _names():
        # Adapter and framework have the same name; ``find_spec`` does not import the framework.
        if find_spec(name) is not None:
            try:
                adapter = load_adapter(name)
            except OutdatedError as error:  # another framework may know the address
                _logger.warning("%s", error)
                continue
            if adapter.owns(address):
                return adapter
    return None


def reader_of(history: Any) -> Adapter:
    """The adapter that can read a history: a framework's object, a folder, path or address.

    Raises:
        TypeError: If none can.
        ValueError: For a path or address where there is nothing.
    """
    found = adapter_of(history)
    if found is None and isinstance(history, str | os.PathLike):
        found = owner_of(check_exists(os.fspath(history)))
    if found is None:
        given = repr(history) if isinstance(history, str) else f"a {type(history).__name__}"
        raise TypeError(
            f"Cannot read {given} as a history: pass an Optuna study or storage, Hyperopt trials,"
            " a SMAC run history, facade or folder, or a TaskRecord."
            + (hint_of_database(history) if isinstance(history, str) else "")
        )
    return found


_NOT_KNOWN = {
    "optimizer": "Cannot replay {thing!r}: pass optimizer(...) of an adapter, an object with ask()"
    " and tell(), or a callable propose(space, records, rng).",
    "curves": "Cannot read the searches of a {kind}: pass studies, run histories or trials of"
    " {known}, or a data frame.",
    "arm_report": "Cannot report on the arms of a {kind}: pass an ArmReport, an Optuna study or"
    " Hyperopt trials.",
    "source_shares": "Cannot read the sources of a {kind}: pass an Optuna study, Hyperopt trials,"
    " a SMAC run history or facade, or shares by number of the evaluation, such as"
    " {{12: {{'iris': 0.4}}}}.",
    "member_trust": "Cannot read the members' trust of a {kind}: pass an Optuna study, Hyperopt"
    " trials, a SMAC run history or facade, or the trust by number of the evaluation, such as"
    " {{12: {{'trees': 0.7, 'process': 0.3}}}}.",
}


def ask_adapter(part: str, thing: Any, /, **options: Any) -> Any:
    """``part(thing, **options)`` of the adapter that knows ``thing``; TypeError if none has it."""
    # Also None if the adapter has no such part.
    if (function := getattr(adapter_of(thing), part, None)) is None:
        facts = {"thing": thing, "kind": type(thing).__name__, "known": ", ".join(_names())}
        raise TypeError(_NOT_KNOWN[part].format(**facts))
    return function(thing, **options)


def searches_of(thing: Any, **labels: Any) -> list[Search]:
    """The searches of ``thing``: itself if it is a ``Search``, else as its adapter reads it.

    ``labels`` (table, method, seed) replace the known ones. TypeError if no adapter knows it.
    """
    if isinstance(thing, Search):
        return [replace(thing, **labels)]
    found: list[Search] = ask_adapter("curves", thing, **labels)
    return found


@cache  # ``adapter_of`` asks for each base class of a thing
def _names() -> tuple[str, ...]:
    folder = import_module(_ADAPTERS)
    return tuple(sorted(m.name for m in pkgutil.iter_modules(folder.__path__) if m.ispkg))
