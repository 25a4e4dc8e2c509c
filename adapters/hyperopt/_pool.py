"""Evaluation of trials, in this thread or on an executor."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future
from concurrent.futures import wait as wait_for
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from hyperopt import Domain, Trials
from hyperopt.base import Ctrl, spec_from_misc
from hyperopt.utils import coarse_utcnow

from .trials import Document

logger = logging.getLogger("automl_plugins.adapters.hyperopt.boasf")

Workers = Executor | Callable[[], Executor]


@dataclass(frozen=True)
class Evaluated:
    """A trial that has ended."""

    document: Document
    outcome: dict[str, Any] | Exception  # result as Hyperopt stores it, or what was raised
    ended: datetime  # naive UTC, milliseconds, as Hyperopt writes it
    seconds: float  # duration of the objective


class Pool:
    """Evaluates trials; with an executor ``n_workers`` of them at a time.

    With an executor the point of the search space is made here and the objective is called there:
    the objective, the point and the result must pickle (threads: be safe to share).

    Args:
        domain, n_workers: Objective and search space; trials at a time.
        trials: Receives the attachments.
        executor: See ``boasf_fmin``; a function that makes one is called for each worker, and
            again when a worker dies; None evaluates in this thread.

    Attributes:
        broken: Whether a worker died and broke the executor: no trial can be started any more.
    """

    def __init__(
        self, domain: Domain, trials: Trials, executor: Workers | None, n_workers: int
    ) -> None:
        self.n_workers, self.broken = n_workers, False
        self._domain, self._trials, self._executor = domain, trials, executor
        self._idle: list[Executor] = []  # made here, without a trial
        self._running: dict[Future[Any], tuple[Document, float, Executor]] = {}
        self._ended: list[Evaluated] = []  # in this process, before ``wait``
        self._refused: list[Document] = []

    def __len__(self) -> int:
        return len(self._running) + len(self._ended)

    @property
    def free(self) -> bool:
        """Whether another trial may be started."""
        return len(self) < self.n_workers and not self.broken

    def start(self, document: Document) -> None:
        """Begin to evaluate a trial; without an executor it has ended when this returns."""
        document["book_time"] = document["refresh_time"] = coarse_utcnow()
        start = time.perf_counter()
        outcome: dict[str, Any] | Exception | None = None
        try:
            spec, ctrl = spec_from_misc(document["misc"]), Ctrl(self._trials, document)
            if self._executor is None:
                outcome = self._domain.evaluate(spec, ctrl)
            else:
                fn, point = self._domain.evaluate_async(spec, ctrl)
        # What the user's own nodes raise while the point is made fails the trial, too.
        except Exception as error:
            outcome = error
        if outcome is not None:
            self._ended.append(_end(document, outcome, time.perf_counter() - start))
            return
        try:
            future, executor = self._submit(fn, point)
        except BrokenExecutor:  # the running trials have failed too, which ``wait`` returns
            self.broken = True
            self._refused.append(document)
        except Exception:  # it was shut down
            self._refused.append(document)
            raise
        else:
            self._running[future] = document, start, executor

    def wait(self) -> list[Evaluated]:
        """Wait for at least one trial to end; empty only if none is running."""
        if self._ended:
            ended, self._ended = self._ended, []
            return ended
        done, _ = wait_for(self._running, return_when=FIRST_COMPLETED)
        # In the order of their start, for ``done`` is a set.
        return [self._collect(future) for future in list(self._running) if future in done]

    def cancel(self) -> list[Document]:
        """Take back the trials whose evaluation has not begun."""
        withdrawn, self._refused = self._refused, []
        for future in [future for future in self._running if future.cancel()]:
            document, _, executor = self._running.pop(future)
            self._give_back(executor)
            withdrawn.append(document)
        return withdrawn

    def close(self) -> None:
        """Shut down the executors made here; a busy one ends after its trial."""
        for executor in self._idle:
            executor.shutdown()
        if callable(self._executor):  # one that was given is the user's to shut down
            for *_, executor in self._running.values():
                executor.shutdown(wait=False)

    def _submit(self, fn: Callable[[Any], Any], point: Any) -> tuple[Future[Any], Executor]:
        while self._idle:
            executor = self._idle.pop()
            with suppress(BrokenExecutor):  # its worker died when it had nothing to do
                return executor.submit(_measure, fn, point), executor
        given = self._executor
        assert given is not None  # see start
        executor = given() if callable(given) else given
        return executor.submit(_measure, fn, point), executor

    def _give_back(self, executor: Executor, *, died: bool = False) -> None:
        if not callable(self._executor):
            # Which trial killed the worker is unknown: all that were running have failed.
            self.broken = self.broken or died
        elif died:
            executor.shutdown(wait=False)
        else:
            self._idle.append(executor)

    def _collect(self, future: Future[Any]) -> Evaluated:
        document, start, executor = self._running.pop(future)
        # Unless the worker returns its own, which leave out the wait for a worker.
        seconds = time.perf_counter() - start
        outcome: dict[str, Any] | Exception
        try:
            returned, seconds = future.result()
            outcome = self._domain.evaluate_async2(returned, Ctrl(self._trials, document))
        except SystemExit:  # of the worker, not of this process
            outcome = RuntimeError("The objective has called sys.exit().")
        except Exception as error:
            outcome = error
        self._give_back(executor, died=isinstance(outcome, BrokenExecutor))
        return _end(document, outcome, seconds)


def _end(document: Document, outcome: dict[str, Any] | Exception, seconds: float) -> Evaluated:
    if isinstance(outcome, Exception):
        logger.error("trial %s raised: %r", document["tid"], outcome)
    return Evaluated(document, outcome, coarse_utcnow(), seconds)


def _measure(fn: Callable[[Any], Any], point: Any) -> tuple[Any, float]:
    """Call the objective and measure its seconds; runs on the workers."""
    start = time.perf_counter()
    return fn(point), time.perf_counter() - start
