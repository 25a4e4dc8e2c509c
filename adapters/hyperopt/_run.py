"""One run of ``boasf_fmin``: it chooses the next trial, evaluates it, and stores the result."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future
from concurrent.futures import wait as wait_for
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from hyperopt import (
    JOB_STATE_DONE,
    JOB_STATE_ERROR,
    JOB_STATE_NEW,
    JOB_STATE_RUNNING,
    STATUS_OK,
    Domain,
    Trials,
)
from hyperopt.base import Ctrl, spec_from_misc, trials_from_docs
from hyperopt.utils import coarse_utcnow

from automl_plugins.addresses import replacing
from automl_plugins.records.trial import as_seconds, is_used_up
from automl_plugins.streams import Streams

from ._private import all_documents, dump
from ._pulls import Situation, charge
from ._pyll import active_among
from .algos import Boasf
from .trials import (
    NOTE,
    UNFINISHED,
    Document,
    begin,
    finished_documents,
    new_document,
    note_of,
    values_of,
)

logger = logging.getLogger("automl_plugins.adapters.hyperopt.boasf")

#: ``stop(trials, *args) -> (whether, args for the next call)``, see ``hyperopt.early_stop``.
EarlyStop = Callable[..., tuple[bool, Any]]
Workers = Executor | Callable[[], Executor]


@dataclass
class Run:
    """One run of ``boasf_fmin`` to its end; the fields are its arguments or made of them.

    Trials that are new, or were running when an earlier search was killed, are evaluated first.
    """

    method: Boasf
    streams: Streams
    domain: Domain
    trials: Trials
    points: Sequence[Mapping[str, Any]]
    pool: Pool
    timeout: float | None
    loss_threshold: float | None
    early_stop_fn: EarlyStop | None
    trials_save_file: str
    catch_eval_exceptions: bool
    progress: Callable[..., Any]
    _stop_args: Any = field(default=(), init=False)
    _stopped: bool = field(default=False, init=False)
    _warned: bool = field(default=False, init=False)
    _id: int | None = field(default=None, init=False)  # of a trial not proposed yet
    _known: Situation | None = field(default=None, init=False)  # None if the trials have changed

    def __post_init__(self) -> None:
        self.method.owns_workers = True
        documents = all_documents(self.trials)
        known = [active_among(values_of(d), self.domain.expr) for d in documents]
        self._points = []
        for point in map(dict, self.points):
            if point in known:
                known.remove(point)  # one that is given twice is evaluated twice
            else:
                self._points.append(point)
        self._waiting = [d for d in documents if d["state"] in UNFINISHED]
        for document in self._waiting:
            document["state"] = JOB_STATE_NEW
            # A point that ``fmin`` was given lacks inactive labels, without which TPE fails.
            for column in ("idxs", "vals"):
                for label in self.domain.params:
                    document["misc"][column].setdefault(label, [])

    def run_to_the_end(self) -> None:
        """Ask, evaluate and tell until the budget is spent or something else ends it."""
        start, pool = time.monotonic(), self.pool
        shown = self._measure_progress()
        error: Exception | None = None
        with self.progress(initial=shown, total=self.method.filtering.budget) as bar:
            try:
                while True:
                    elapsed = time.monotonic() - start
                    late = self.timeout is not None and elapsed >= self.timeout
                    self._warn_of_quick_objective(elapsed)
                    least = self.loss_threshold
                    good = least is not None and self._read().best < least
                    self._stopped = self._stopped or late or good or pool.broken
                    while pool.free and not self._stopped:
                        document = self._next()
                        if document is None:
                            break
                        pool.start(document)
                    if not len(pool):
                        break
                    # All that have ended are stored before an error among them ends the search.
                    for evaluated in pool.wait():
                        error = self._tell(evaluated) or error
                    if error is not None:
                        self._stopped = True
                        self._withdraw()
                    bar.postfix = f"best loss: {self._read().best}"
                    shown, before = self._measure_progress(), shown
                    bar.update(shown - before)
            finally:  # after an interruption, too: trials that wait are new ones again
                self._withdraw()
                pool.close()
        if error is not None:
            raise error
        if pool.broken:
            logger.warning(
                "A worker died, and the executor cannot be used any more: the search ends with"
                " what it has. Pass a new executor and the same trials to continue it, or a"
                " function that makes executors, such as partial(ProcessPoolExecutor, 1)."
            )

    def _next(self) -> Document | None:
        """The next trial, inserted and running; None if there is none until a trial ends.

        If it is None while no trial is running, the search is over.
        """
        situation = self._read()
        spent = situation.spent(self.method.filtering.unit)
        if self.method.filtering.unit == "trials":
            # Waiting trials are counted already, but their evaluation is yet to come.
            spent -= len(self._waiting)
        if is_used_up(spent, self.method.filtering.budget):
            return None
        if self._waiting:
            self._known = None
            document = self._waiting.pop(0)
            document["misc"][NOTE] = note_of(document) | self.method.note_search(situation)
            document["state"] = JOB_STATE_RUNNING
            return document
        # Kept until it is used: each call of ``new_trial_ids`` takes a number.
        if self._id is None:
            (self._id,) = self.trials.new_trial_ids(1)
        if self._points:
            values = self._points.pop(0)
            document = new_document(self.trials, self.domain, self._id, values)
            arm = {"arm": situation.arms.find(values)}
            document["misc"][NOTE] = arm | self.method.note_search(situation)
        else:
            found = self.method.suggest(
                [self._id], self.domain, self.trials, self.streams, situation
            )
            if not found:
                return None
            (document,) = found
        self._id = self._known = None
        return begin(self.trials, document)

    def _tell(self, evaluated: Evaluated) -> Exception | None:
        """Store a result; return the exception if it ends the search."""
        document, outcome = evaluated.document, evaluated.outcome
        self._known = None
        document["refresh_time"] = evaluated.ended
        error: Exception | None = None
        if isinstance(outcome, Exception):
            document["state"] = JOB_STATE_ERROR
            document["misc"]["error"] = (str(type(outcome)), str(outcome))
            error = None if self.catch_eval_exceptions else outcome
        else:
            document["state"], document["result"] = JOB_STATE_DONE, outcome
        self.trials.refresh()
        given = as_seconds(document["result"].get("seconds"))
        seconds = evaluated.seconds if math.isnan(given) else given
        try:
            seconds = charge(document, self.method.cost, seconds)
        except Exception as raised:  # by the user's cost: what was evaluated is kept
            error = raised
        document["misc"][NOTE] = {**note_of(document), "seconds": seconds}
        # Before the user's early stop, which may raise.
        self._save()
        return self._stop_early(document) if error is None else error

    def _stop_early(self, latest: Document) -> Exception | None:
        """Ask the user's function whether the search ends; return the exception if it raises."""
        # Hyperopt's early-stop functions read the loss of the latest trial, so it must have one.
        valued = latest["result"].get("status") == STATUS_OK
        if self.early_stop_fn is None or not valued or self._stopped:
            return None
        seen = self.trials
        # Early stops read the last document, which may be another trial, even a running one.
        if self.pool.n_workers > 1 or seen.trials[-1] is not latest:
            done = [d for d in finished_documents(seen) if d["state"] == JOB_STATE_DONE]
            others = [d for d in done if d is not latest]
            seen = trials_from_docs([*others, latest], validate=False)
        try:
            self._stopped, self._stop_args = self.early_stop_fn(seen, *self._stop_args)
        except Exception as raised:  # other trials that have ended are still to be stored
            return raised
        if self._stopped:
            logger.info("Early stop: %s ended the search.", self.early_stop_fn)
        return None

    def _withdraw(self) -> None:
        """Make trials that have not begun new again."""
        withdrawn, self._known = self.pool.cancel(), None
        for document in withdrawn:
            document["state"] = JOB_STATE_NEW
            document["book_time"] = document["refresh_time"] = None
        if withdrawn:
            self._save()

    def _save(self) -> None:
        """Save the trials as ``fmin`` does, but atomically: a crash leaves the old file."""
        if path := self.trials_save_file:
            with replacing(path) as file:
                dump(self.trials, file)

    def _read(self) -> Situation:
        """All pulls; they are read once, until a trial begins or ends."""
        if self._known is None:
            self._known = self.method.read(self.domain, self.trials)
        return self._known

    def _warn_of_quick_objective(self, elapsed: float) -> None:
        """Log once if less than half of the budget is spent when as many seconds have passed."""
        budget = self.method.filtering.budget
        measured = self.method.filtering.unit == "seconds" and self.method.cost is None
        if self._warned or not measured or self.timeout is not None or elapsed < budget:
            return
        self._warned = True
        if (spent := self._read().spent("seconds")) < 0.5 * budget:
            logger.warning(
                f"After {elapsed:.3g} s evaluations have spent {spent:.3g} s of the budget of"
                f" {budget:g} s: the rest is the time of proposals. timeout={budget:g} ends the"
                " search by the clock."
            )

    def _measure_progress(self) -> float:
        """The value of the progress bar: seconds or finished trials, at most the budget.

        The last evaluations may exceed the budget in seconds, of which tqdm would warn.
        """
        situation = self._read()
        if self.method.filtering.unit == "trials":
            return int(situation.pulls.records.finished.sum())
        return min(situation.spent("seconds"), self.method.filtering.budget)


# --- evaluation -----------------------------------------------------------------------------


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
        self._ended: list[Evaluated] = []  # evaluated in this process; ``wait`` returns them
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
        # The user's own nodes may raise while the point is made, which fails the trial, too.
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
        except Exception:  # the executor was shut down
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
        # Replaced by the worker's own seconds, which leave out the wait for a worker.
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
