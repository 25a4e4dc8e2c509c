"""Plain callables and ready-made ask-and-tell objects as methods of a replay."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from ConfigSpace import ConfigurationSpace

from automl_plugins._frameworks import adapter_of, method_of
from automl_plugins.records.trial import Status

from .protocol import Method, Optimizer, Outcome, Problem, Proposal


class Record(NamedTuple):
    """A finished evaluation, as a plain callable sees it."""

    config: Mapping[str, Any]
    loss: float  # NaN for a failed one
    seconds: float
    status: Status


Propose = Callable[
    [ConfigurationSpace, Sequence[Record], np.random.Generator], Mapping[str, Any] | None
]


@dataclass
class _Asking:
    """Search by a plain callable."""

    propose: Propose
    space: ConfigurationSpace
    rng: np.random.Generator
    records: list[Record] = field(default_factory=list)

    def ask(self) -> Proposal | None:
        config = self.propose(self.space, self.records, self.rng)
        return None if config is None else Proposal(dict(config))

    def tell(self, proposal: Proposal, outcome: Outcome) -> None:
        record = Record(proposal.config, outcome.loss, outcome.seconds, outcome.status)
        self.records.append(record)


@dataclass(frozen=True)
class _Callable:
    """``propose(space, records, rng) -> config`` as a method."""

    propose: Propose
    name: str

    def start(self, problem: Problem) -> Optimizer:
        return _Asking(self.propose, problem.space, np.random.default_rng(problem.seed))


@dataclass(frozen=True)
class _Copied:
    """An ask-and-tell object of the user's own; every search works on a deep copy."""

    optimizer: Optimizer
    name: str

    def start(self, problem: Problem) -> Optimizer:
        return copy.deepcopy(self.optimizer)


def as_method(thing: Any) -> Method:
    """What ``replay`` takes, as a method.

    Args:
        thing: A method (``optimizer(...)`` of an adapter), a sampler, algo or facade that an
            adapter knows, an object with ``ask`` and ``tell``, or a callable
            ``propose(space, records, rng)`` that returns a configuration.

    Raises:
        TypeError: For anything else.
    """
    if not isinstance(thing, type):
        if isinstance(thing, Method):
            return thing
        if adapter_of(thing) is None and isinstance(thing, Optimizer):
            return _Copied(thing, type(thing).__name__)
    if adapter_of(thing) is None and callable(thing) and not isinstance(thing, type):
        return _Callable(thing, getattr(thing, "__name__", type(thing).__name__))
    return method_of(thing)
