"""One search on a table, by a simulated clock: workers take proposals, results come when due."""

from __future__ import annotations

import heapq
import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from automl_plugins.frameworks import Optimizer, Outcome, Proposal, Prunes
from automl_plugins.records.scores import rescale
from automl_plugins.records.trial import Status

from .table import Answer, Table

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Budget:
    """When a search is over.

    Attributes:
        n_trials: Evaluations that may be started.
        seconds: Simulated seconds; an evaluation that would end later does not count.
        n_workers: Evaluations that run at the same time.
        overhead: Whether the optimizer's own (real) seconds pass on the simulated clock too.
    """

    n_trials: int
    seconds: float = math.inf
    n_workers: int = 1
    overhead: bool = False


@dataclass(frozen=True)
class Evaluation:
    """A finished evaluation: a row of the result."""

    proposal: Proposal
    outcome: Outcome
    answer: Answer
    overhead: float  # real seconds the optimizer took for it

    @property
    def full(self) -> bool:
        """Whether its loss is a final one."""
        return self.outcome.status == Status.COMPLETE and self.proposal.step is None


@dataclass
class _Running:
    """A running evaluation, with the moments at which something becomes known of it."""

    proposal: Proposal
    answer: Answer
    started: float
    moments: list[tuple[float, float, float]]  # simulated time, step (NaN = the end), loss
    overhead: float = 0.0
    last: float = math.nan  # last report


@dataclass
class Simulation:
    """A running search.

    Args:
        table: What answers.
        optimizer: What asks.
        budget: When it is over.
    """

    table: Table
    optimizer: Optimizer
    budget: Budget
    evaluations: list[Evaluation] = field(default_factory=list)
    clock: float = 0.0

    def __post_init__(self) -> None:
        self._queue: list[tuple[float, int, _Running]] = []
        self.started = 0  # evaluations, finished or not
        self._watches = self.table.curves is not None and isinstance(self.optimizer, Prunes)

    def run(self) -> list[Evaluation]:
        """Evaluations in the order in which they finished.

        Raises:
            ValueError: For a proposal outside the space or an unknown step.
        """
        self._start()
        while self._queue and self._queue[0][0] <= self.budget.seconds:
            self.clock = self._queue[0][0]
            # Everything that happens at one moment is reported before anything is asked.
            while self._queue and self._queue[0][0] == self.clock:
                _, order, running = heapq.heappop(self._queue)
                self._advance(order, running)
            self._start()
        return self.evaluations

    def _start(self) -> None:
        """Give every free worker a proposal, as far as there are any."""
        while (
            len(self._queue) < self.budget.n_workers
            and self.started < self.budget.n_trials
            and self.clock < self.budget.seconds
        ):
            with _stopwatch() as spent:
                proposal = self.optimizer.ask()
            if proposal is None:
                return
            answer = self.table.find(proposal.config)
            started = self.clock + (spent[0] if self.budget.overhead else 0.0)
            moments = self._moments(proposal, answer.row, started)
            running = _Running(proposal, answer, started, moments, spent[0])
            heapq.heappush(self._queue, (moments[0][0], self.started, running))
            self.started += 1

    def _moments(
        self, proposal: Proposal, row: int, started: float
    ) -> list[tuple[float, float, float]]:
        table = self.table
        if proposal.step is not None:
            column = self._column(proposal.step)
            assert table.curves is not None
            seconds = self._seconds_at(row, column)
            return [(started + seconds, math.nan, float(table.curves[row, column]))]
        end = (started + self._seconds(row), math.nan, float(table.losses[row]))
        if not self._watches:
            return [end]
        assert table.curves is not None
        moments, now = [], started
        for column, step in enumerate(table.steps):
            # Recorded seconds may be unknown or out of order; the clock never goes back.
            now = min(max(now, started + self._seconds_at(row, column)), end[0])
            if not math.isnan(table.curves[row, column]):
                moments.append((now, step, float(table.curves[row, column])))
        return [*moments, end]

    def _column(self, step: float) -> int:
        """The last recorded step that is not beyond ``step``."""
        if not self.table.steps or step < self.table.steps[0]:
            raise ValueError(
                f"A proposal for step {step}, but table {self.table.name!r} has the steps"
                f" {self.table.steps}."
            )
        return int(np.searchsorted(self.table.steps, step, side="right")) - 1

    def _seconds(self, row: int) -> float:
        if self.table.seconds is None:
            return 1.0  # equal costs, in a unit of their own
        seconds = float(self.table.seconds[row])
        return 0.0 if math.isnan(seconds) else seconds

    def _seconds_at(self, row: int, column: int) -> float:
        if self.table.curve_seconds is None:
            return self.table.steps[column] / self.table.steps[-1]
        seconds = float(self.table.curve_seconds[row, column])
        return 0.0 if math.isnan(seconds) else seconds

    def _advance(self, order: int, running: _Running) -> None:
        _, step, loss = running.moments.pop(0)
        if math.isnan(step):
            failed = not math.isfinite(loss)
            status = Status.FAILED if failed else Status.COMPLETE
            self._finish(running, status, math.nan if failed else loss)
            return
        assert isinstance(self.optimizer, Prunes)
        running.last = loss
        with _stopwatch() as spent:
            stop = self.optimizer.report(running.proposal, step, loss)
        running.overhead += spent[0]
        if stop:
            self._finish(running, Status.PRUNED, loss)
        else:
            heapq.heappush(self._queue, (running.moments[0][0], order, running))

    def _finish(self, running: _Running, status: Status, loss: float) -> None:
        outcome = Outcome(status, loss, running.started, self.clock)
        with _stopwatch() as spent:
            self.optimizer.tell(running.proposal, outcome)
        overhead = running.overhead + spent[0]
        self.evaluations.append(Evaluation(running.proposal, outcome, running.answer, overhead))


@contextmanager
def _stopwatch() -> Iterator[list[float]]:
    spent = [0.0]
    start = time.perf_counter()
    yield spent
    spent[0] = time.perf_counter() - start


def regret(
    losses: npt.ArrayLike, *, best: float | None = None, worst: float | None = None
) -> FloatArray:
    """Normalised regret of the best loss so far: (min so far - best) / (worst - best).

    0 is the best loss there is, 1 the worst; before the first loss it is 1. Its mean over data
    sets is the ADTM (Wistuba et al. 2016, section 5.3).

    Args:
        losses: Losses (n,) in the order in which they came; NaN and infinite ones do not count.
        best: The least loss there is; None takes the least of ``losses``.
        worst: The largest one; None takes the largest of ``losses``.

    Returns:
        Regret (n,) in [0, 1]; 0 everywhere if best and worst are equal.

    Raises:
        ValueError: If ``best`` exceeds ``worst``, or neither is given nor found.
    """
    values = np.asarray(losses, dtype=np.float64)
    finite = values[np.isfinite(values)]
    if (best is None or worst is None) and not len(finite):
        raise ValueError("No finite loss: give best and worst.")
    low = float(finite.min()) if best is None else best
    high = float(finite.max()) if worst is None else worst
    if not low <= high:
        raise ValueError(f"best must not exceed worst, got {low} and {high}.")
    known = np.where(np.isfinite(values), values, high)
    return rescale(np.minimum.accumulate(known), low, high)
