"""What can be replayed besides the frameworks: callables, objects that ask and tell, proposers."""

from __future__ import annotations

import copy
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
from ConfigSpace import ConfigurationSpace

from automl_plugins.frameworks import (
    Method,
    Optimizer,
    Outcome,
    Problem,
    Proposal,
    adapter_of,
    method_of,
)
from automl_plugins.proposers.proposal import SurrogateFailure
from automl_plugins.records.history import History
from automl_plugins.records.trial import Status
from automl_plugins.spaces.values import as_configuration, values_of
from automl_plugins.spaces.vector_space import VectorSpace
from automl_plugins.streams import Streams

if TYPE_CHECKING:
    from automl_plugins.proposers.proposal import Proposer

_logger = logging.getLogger(__name__)


class Record(NamedTuple):
    """A finished evaluation, as a plain callable sees it.

    Example::

        def cheapest_first(space, records, rng):
            print(min((record.loss for record in records), default=None))
            return dict(space.sample_configuration())


        replay(cheapest_first, table, budget=3)
    """

    config: Mapping[str, Any]
    loss: float  # NaN for a failed one
    seconds: float
    status: Status


FloatArray = npt.NDArray[np.float64]
ProposerFactory = Callable[[Problem], "Proposer"]
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


# --- proposers of the core -------------------------------------------------------------------


def proposing(name: str, proposer: ProposerFactory) -> ProposerMethod:
    """A proposer of the core to be replayed.

    Streams come from the seed of each search, and evaluations are numbered as they are asked.
    Where a model fails, a random configuration is tried instead, with one warning.

    A proposer that transfers must not know the runs of the table it is tried on. A problem does
    not tell its table's name, so replay such methods table by table, each with a method of its
    own: ``replay(proposing("TST", partial(make, task=table.name)), table, ...)``.

    Args:
        name: Label in the results.
        proposer: Makes the proposer of a search from its ``Problem``. To be replayed in several
            processes it must pickle: a function of a module, or a ``functools.partial`` of one.

    Raises:
        TypeError: If ``proposer`` cannot be called.
    """
    if not callable(proposer):
        raise TypeError(
            f"proposer must be a function of the problem that returns a proposer, such as"
            f" lambda problem: gbqr(); got {proposer!r}."
        )
    return ProposerMethod(name, proposer)


@dataclass(frozen=True)
class ProposerMethod:
    """A way of making proposers, see ``proposing``."""

    name: str
    proposer: ProposerFactory

    def start(self, problem: Problem) -> ProposerSearch:
        """A fresh search."""
        return ProposerSearch(
            self.proposer(problem), VectorSpace(problem.space), Streams(problem.seed)
        )


@dataclass(frozen=True)
class _Row:
    number: int
    vector: FloatArray
    loss: float = np.nan
    seconds: float = np.nan
    status: Status = Status.RUNNING
    budget: float = np.nan


@dataclass
class ProposerSearch:
    """A running search.

    Args:
        proposer: What is asked.
        space: What is searched.
        streams: Random streams of the search.

    Attributes:
        asked: Number of evaluations asked for.
    """

    proposer: Proposer
    space: VectorSpace
    streams: Streams
    asked: int = 0
    _finished: list[_Row] = field(default_factory=list)
    _running: dict[int, FloatArray] = field(default_factory=dict)  # by number
    _failed: bool = False

    def ask(self) -> Proposal:
        """The next configuration; its token is its number."""
        k = self.asked
        try:
            proposal = self.proposer.propose(self.space, self.history(), self.streams, k)
            vector = proposal.vector
        except SurrogateFailure as failure:
            if not self._failed:
                self._failed = True
                _logger.warning(f"{failure} Random configurations are tried instead.")
            vector = self.space.sample(1, self.streams.generator("fallback", k))[0]
        self.asked += 1
        self._running[k] = vector
        return Proposal(values_of(as_configuration(self.space.space, vector)), token=k)

    def tell(self, proposal: Proposal, outcome: Outcome) -> None:
        """Take the result of an earlier proposal."""
        number = proposal.token
        self._finished.append(
            _Row(
                number,
                self._running.pop(number),
                outcome.loss,
                outcome.seconds,
                outcome.status,
                np.nan if proposal.step is None else proposal.step,
            )
        )

    def history(self) -> History:
        """What was told, in that order, then what is running."""
        rows = self._finished + [_Row(k, vector) for k, vector in self._running.items()]
        vectors = [row.vector for row in rows]
        return History.of(
            np.array(vectors).reshape(len(rows), self.space.d),
            [row.loss for row in rows],
            number=[row.number for row in rows],
            seconds=[row.seconds for row in rows],
            status=[row.status for row in rows],
            budget=[row.budget for row in rows],
        )
