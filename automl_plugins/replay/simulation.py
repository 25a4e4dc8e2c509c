"""One search on a table, on a simulated clock: workers take proposals, results come when due."""

from __future__ import annotations

import copy
import heapq
import logging
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
from ConfigSpace import ConfigurationSpace

from automl_plugins.arrays import FloatArray
from automl_plugins.frameworks import (
    Method,
    NamedMethod,
    Optimizer,
    Outcome,
    Problem,
    Proposal,
    Prunes,
    adapter_of,
    ask_adapter,
)
from automl_plugins.proposers.proposal import Asker, Proposer
from automl_plugins.records.history import History
from automl_plugins.records.scores import rescale
from automl_plugins.records.trial import ROUNDING, Status, is_used_up
from automl_plugins.spaces.values import as_configuration, values_of
from automl_plugins.spaces.vector_space import VectorSpace
from automl_plugins.streams import Streams

from .lookup import Answer
from .table import Table, share_at

_logger = logging.getLogger(__name__)

T = TypeVar("T")


@dataclass(frozen=True)
class Budget:
    """The limits of a search, see ``replay``."""

    n_trials: int  # evaluations that are started
    seconds: float = math.inf
    n_workers: int = 1
    overhead: bool = False


@dataclass
class Evaluation:
    """An evaluation and the moments at which its losses become known."""

    proposal: Proposal
    answer: Answer
    started: float
    moments: list[tuple[float, float, float]]  # simulated time, step (NaN = the end), loss
    overhead: float  # real seconds the optimizer took for it
    outcome: Outcome = field(init=False, repr=False)  # once it has finished


class Simulation:
    """A running search: proposals of an optimizer, answered by a table."""

    def __init__(self, table: Table, optimizer: Optimizer, budget: Budget) -> None:
        self.table, self.optimizer, self.budget = table, optimizer, budget
        self.evaluations: list[Evaluation] = []  # in the order in which they finished
        self.clock = 0.0  # simulated seconds since the start
        self.started = 0  # evaluations, finished or not
        self._queue: list[tuple[float, int, Evaluation]] = []  # next moment, order of start
        self._reports_curves = table.curves is not None and isinstance(optimizer, Prunes)

    def run(self) -> list[Evaluation]:
        """Run the search; return the evaluations in the order in which they finished.

        Raises:
            ValueError: For a proposal outside the space or an unknown step.
        """
        end = (1.0 + ROUNDING) * self.budget.seconds
        self._start()
        while self._queue and self._queue[0][0] <= end:
            self.clock = self._queue[0][0]
            # All results due at one moment are reported before the optimizer is asked again.
            while self._queue and self._queue[0][0] == self.clock:
                _, order, running = heapq.heappop(self._queue)
                self._advance(order, running)
            self._start()
        return self.evaluations

    def _start(self) -> None:
        """Give every free worker a proposal, until the budget or the proposals run out."""
        while (
            len(self._queue) < self.budget.n_workers
            and self.started < self.budget.n_trials
            and not is_used_up(self.clock, self.budget.seconds)
        ):
            proposal, spent = _timed(self.optimizer.ask)
            if proposal is None:
                return
            answer = self.table.find(proposal.config)
            started = self.clock + (spent if self.budget.overhead else 0.0)
            moments = self._moments(proposal, answer.row, started)
            running = Evaluation(proposal, answer, started, moments, spent)
            # Results due at the same moment come in the order in which their evaluations began.
            heapq.heappush(self._queue, (moments[0][0], self.started, running))
            self.started += 1

    def _moments(
        self, proposal: Proposal, row: int, started: float
    ) -> list[tuple[float, float, float]]:
        """The moments at which losses of a recorded run become known, see ``Evaluation``."""
        table = self.table
        if proposal.step is not None:
            if not table.steps or proposal.step < table.steps[0]:
                raise ValueError(
                    f"A proposal for step {proposal.step}, but table {table.name!r} has the steps"
                    f" {table.steps}."
                )
            # The last recorded step not beyond the proposed one.
            column = int(np.searchsorted(table.steps, proposal.step, side="right")) - 1
            assert table.curves is not None
            seconds = self._seconds_at(row, column)
            return [(started + seconds, math.nan, float(table.curves[row, column]))]
        # Without recorded seconds every evaluation takes one unit of time.
        spent = 1.0 if table.seconds is None else float(table.seconds[row])
        end = (started + spent, math.nan, float(table.losses[row]))
        if not self._reports_curves:
            return [end]
        assert table.curves is not None
        moments, now = [], started
        for column, step in enumerate(table.steps):
            # Recorded seconds may be out of order; the clock never goes back.
            now = min(max(now, started + self._seconds_at(row, column)), end[0])
            if not math.isnan(table.curves[row, column]):
                moments.append((now, step, float(table.curves[row, column])))
        return [*moments, end]

    def _seconds_at(self, row: int, column: int) -> float:
        # Without seconds an evaluation takes one unit of time, and a step its share of it.
        if self.table.curve_seconds is None:
            return share_at(self.table.steps, column)
        return float(self.table.curve_seconds[row, column])

    def _advance(self, order: int, running: Evaluation) -> None:
        _, step, loss = running.moments.pop(0)
        if math.isnan(step):
            failed = not math.isfinite(loss)
            status = Status.FAILED if failed else Status.COMPLETE
            self._finish(running, status, math.nan if failed else loss)
            return
        assert isinstance(self.optimizer, Prunes)
        stop, spent = _timed(partial(self.optimizer.report, running.proposal, step, loss))
        running.overhead += spent
        if stop:
            self._finish(running, Status.PRUNED, loss)
        else:
            heapq.heappush(self._queue, (running.moments[0][0], order, running))

    def _finish(self, running: Evaluation, status: Status, loss: float) -> None:
        running.outcome = Outcome(status, loss, running.started, self.clock)
        _, spent = _timed(partial(self.optimizer.tell, running.proposal, running.outcome))
        running.overhead += spent
        self.evaluations.append(running)


def _timed(call: Callable[[], T]) -> tuple[T, float]:
    """The result of a call, and the real seconds it took."""
    start = time.perf_counter()
    result = call()
    return result, time.perf_counter() - start


def regret(
    losses: npt.ArrayLike, *, best: float | None = None, worst: float | None = None
) -> FloatArray:
    """Normalised regret of the best loss so far: (min so far - best) / (worst - best).

    0 stands for ``best``, 1 for ``worst``; before the first loss it is 1. Its mean over data
    sets is the ADTM (Wistuba et al. 2016, section 5.3).

    Args:
        losses: Losses (n,) in the order of the evaluations; NaN and infinite ones do not count.
        best: The least possible loss; None takes the least of ``losses``.
        worst: The largest possible loss; None takes the largest of ``losses``.

    Returns:
        Regret (n,) in [0, 1]; 0 everywhere if best and worst are equal.

    Raises:
        ValueError: If ``best`` exceeds ``worst``, or one is not given and no loss is finite.
    """
    values = np.asarray(losses, dtype=np.float64)
    finite = values[np.isfinite(values)]
    if (best is None or worst is None) and not len(finite):
        raise ValueError("No finite loss: give best and worst.")
    low = float(finite.min()) if best is None else best
    high = float(finite.max()) if worst is None else worst
    if not low <= high:
        raise ValueError(f"best must not exceed worst, got {low} and {high}.")
    # A missing loss counts as the worst one: regret 1 before the first loss, no change later.
    known = np.where(np.isfinite(values), values, high)
    return rescale(np.minimum.accumulate(known), low, high)


class Record(NamedTuple):
    """A finished evaluation, as passed to a plain callable.

    Example::

        def cheapest_first(space, records, rng):
            print(min((record.loss for record in records), default=None))
            return dict(space.sample_configuration())


        replay(cheapest_first, table, budget=3)
    """

    config: Mapping[str, Any]
    loss: float  # NaN if failed
    seconds: float
    status: Status


ProposerFactory = Callable[[Problem], Proposer]
Propose = Callable[
    [ConfigurationSpace, Sequence[Record], np.random.Generator], Mapping[str, Any] | None
]


class _CallableSearch:
    """Search by a plain callable."""

    def __init__(self, propose: Propose, problem: Problem) -> None:
        self._propose, self._space = propose, problem.space
        self._rng = np.random.default_rng(problem.seed)
        self._records: list[Record] = []

    def ask(self) -> Proposal | None:
        config = self._propose(self._space, self._records, self._rng)
        return None if config is None else Proposal(dict(config))

    def tell(self, proposal: Proposal, outcome: Outcome) -> None:
        record = Record(proposal.config, outcome.loss, outcome.seconds, outcome.status)
        self._records.append(record)


# At module level, since methods are pickled.
def _copy(optimizer: Optimizer, problem: Problem) -> Optimizer:
    return copy.deepcopy(optimizer)


def as_method(thing: Any) -> Method:
    """Convert anything that ``replay`` accepts as an optimizer to a method; else TypeError."""
    if isinstance(thing, Method) and not isinstance(thing, type):
        return thing
    # A framework's object may have ``ask`` and ``tell``, too, but its adapter replays it.
    if adapter_of(thing) is None and not isinstance(thing, type):
        if isinstance(thing, Optimizer):
            return NamedMethod(type(thing).__name__, partial(_copy, thing))
        if callable(thing):
            name = getattr(thing, "__name__", type(thing).__name__)
            return NamedMethod(name, partial(_CallableSearch, thing))
    method: Method = ask_adapter("optimizer", thing)
    return method


# --- proposers of the core -------------------------------------------------------------------


def proposing(name: str, proposer: ProposerFactory) -> Method:
    """Make a method that ``replay`` can run from a proposer of the core.

    Random streams come from the seed of each search, and evaluations are numbered in the order of
    their proposals. Where a surrogate fails, a random configuration is tried instead; the first
    failure is logged as a warning.

    A proposer that transfers must not know the runs of the table it is replayed on. A ``Problem``
    does not contain the name of its table, so replay such methods table by table, each with a
    method of its own: ``replay(proposing("TST", partial(make, task=table.name)), table, ...)``.

    Args:
        name: Label in the results.
        proposer: Makes the proposer of a search from its ``Problem``. For several processes it
            must be picklable: a function of a module, or a ``functools.partial`` of one.

    Raises:
        TypeError: If ``proposer`` cannot be called.
    """
    if not callable(proposer):
        raise TypeError(
            f"proposer must be a function of the problem that returns a proposer, such as"
            f" lambda problem: gbqr(); got {proposer!r}."
        )
    return NamedMethod(name, partial(ProposerSearch, proposer))


class ProposerSearch:
    """A running search by the proposer that ``make`` returns for its problem."""

    def __init__(self, make: ProposerFactory, problem: Problem) -> None:
        self.proposer = make(problem)
        self._asker = Asker(self.proposer, _logger)
        self._space, self._streams = VectorSpace(problem.space), Streams(problem.seed)
        self._asked = 0
        self._running: dict[int, FloatArray] = {}  # vectors by number
        self._finished: list[tuple[int, FloatArray, Outcome]] = []

    def ask(self) -> Proposal:
        """The next configuration; its token is its number."""
        k, history = self._asked, self.history()
        vector = self._asker.ask(self._space, history, self._streams, k).vector
        self._asked += 1
        self._running[k] = vector
        return Proposal(values_of(as_configuration(self._space.space, vector)), token=k)

    def tell(self, proposal: Proposal, outcome: Outcome) -> None:
        """Take the result of an earlier proposal."""
        vector = self._running.pop(proposal.token)
        self._finished.append((proposal.token, vector, outcome))

    def history(self) -> History:
        """Finished evaluations in the order of their results, then running ones."""
        done, unknown = [row[2] for row in self._finished], [np.nan] * len(self._running)
        vectors = [row[1] for row in self._finished] + list(self._running.values())
        return History.of(
            np.array(vectors).reshape(len(vectors), self._space.d),  # (0, d) at the start
            [outcome.loss for outcome in done] + unknown,
            number=[row[0] for row in self._finished] + list(self._running),
            seconds=[outcome.seconds for outcome in done] + unknown,
            status=[outcome.status for outcome in done] + [Status.RUNNING] * len(unknown),
        )
