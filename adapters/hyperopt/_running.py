"""``fmin``'s loop with executors: evaluations here or in parallel, early stops, the saved file."""

from __future__ import annotations

import contextlib
import logging
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future
from concurrent.futures import wait as wait_for
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
    progress,
)
from hyperopt.base import Ctrl, spec_from_misc, trials_from_docs
from hyperopt.utils import coarse_utcnow
from tqdm import tqdm

from automl_plugins.streams import Streams

from ._private import all_documents, dump
from ._pulls import Situation, charge
from .algos import Boasf
from .trials import NOTE, UNFINISHED, Document, new_document, note_of, values_of

logger = logging.getLogger("automl_plugins.adapters.hyperopt.boasf")

#: ``stop(trials, *args) -> (whether, args for the next call)``, see ``hyperopt.early_stop``.
EarlyStop = Callable[..., tuple[bool, Any]]


@dataclass
class Run:
    """One run of a search to its end.

    Trials that are new, or were running when an earlier search was killed, are evaluated first.

    Attributes:
        method: What proposes.
        streams: Source of randomness.
        domain: Objective and search space.
        trials: Where trials are and go.
        points: Configurations to be evaluated first, values by label.
        n_workers: Evaluations at a time.

    The others are arguments of ``boasf_fmin``.
    """

    method: Boasf
    streams: Streams
    domain: Domain
    trials: Trials
    points: Sequence[Mapping[str, Any]]
    executor: Executor | None
    n_workers: int
    timeout: float | None
    loss_threshold: float | None
    early_stop_fn: EarlyStop | None
    trials_save_file: str
    catch_eval_exceptions: bool
    show_progressbar: Any
    verbose: bool
    _stop_args: Any = field(default=(), init=False)
    _stopped: bool = field(default=False, init=False)
    _id: int | None = field(default=None, init=False)  # of a trial that there was none for

    def __post_init__(self) -> None:
        self._arms = self.method.space(self.domain).arms
        documents = all_documents(self.trials)
        known = [values_of(document) for document in documents]
        self._points = [dict(point) for point in self.points if point not in known]
        self._waiting = [d for d in documents if d["state"] in UNFINISHED]
        for document in self._waiting:
            document["state"] = JOB_STATE_NEW
            for column in ("idxs", "vals"):
                for label in self.domain.params:
                    document["misc"][column].setdefault(label, [])

    def _read(self) -> Situation:
        return self.method.read(self.domain, self.trials)

    def run_to_the_end(self) -> None:
        """Ask, evaluate and tell until the budget is spent or something else ends it."""
        start = time.monotonic()
        pool = Pool(self.domain, self.trials, self.executor, self.n_workers)
        spent = self._shown()
        error: Exception | None = None
        with self._progress()(initial=spent, total=self.method.filtering.budget) as bar:
            try:
                while True:
                    late = self.timeout is not None and time.monotonic() - start >= self.timeout
                    self._stopped = self._stopped or late or self._good_enough() or pool.broken
                    while pool.free and not self._stopped:
                        document = self._next()
                        if document is None:
                            break
                        pool.start(document)
                    if not len(pool):
                        break
                    for evaluated in pool.wait():
                        error = self._tell(evaluated, parallel=self.n_workers > 1) or error
                    if error is not None:
                        self._stopped = True
                        self._withdraw(pool)
                    bar.postfix = f"best loss: {self._read().best}"
                    spent, before = self._shown(), spent
                    bar.update(spent - before)
            finally:
                self._withdraw(pool)
        if error is not None:
            raise error
        if pool.broken:
            logger.warning(
                "A worker died, and the executor cannot be used any more: the search ends with"
                " what it has. Pass a new executor and the same trials to continue it."
            )

    def _next(self) -> Document | None:
        """The next trial, inserted and running; None if there is none before a result, or at all.

        The end has come when it is None while nothing is running.
        """
        situation = self._read()
        spent = situation.spent(self.method.unit)
        if self.method.unit == "trials":
            spent -= len(self._waiting)
        if spent >= self.method.filtering.budget:
            return None
        if self._waiting:
            document = self._waiting.pop(0)
            document["state"] = JOB_STATE_RUNNING
            return document
        if self._id is None:
            (self._id,) = self.trials.new_trial_ids(1)
        if self._points:
            values = self._points.pop(0)
            document = new_document(self.trials, self.domain, self._id, values)
            document["misc"][NOTE] = {"arm": self._arms.find(values)}
        else:
            found = self.method.suggest([self._id], self.domain, self.trials, self.streams)
            if not found:
                return None
            (document,) = found
        tid, self._id = self._id, None
        self.trials.insert_trial_docs([document])
        self.trials.refresh()
        # As inserted, which may be a copy.
        document = next(d for d in reversed(self.trials.trials) if d["tid"] == tid)
        document["state"] = JOB_STATE_RUNNING
        return document

    def _tell(self, evaluated: Evaluated, *, parallel: bool) -> Exception | None:
        """Take a result; the exception that ends the search, if it is one.

        Raises:
            ValueError: If ``cost`` finds no seconds in the result of a trial that did not fail.
        """
        document, error = evaluated.document, evaluated.error
        document["book_time"], document["refresh_time"] = evaluated.began, evaluated.ended
        if evaluated.result is None:
            document["state"] = JOB_STATE_ERROR
            document["misc"]["error"] = (str(type(error)), str(error))
        else:
            document["state"], document["result"] = JOB_STATE_DONE, evaluated.result
        self.trials.refresh()
        seconds = charge(document, self.method.cost, evaluated.seconds)
        document["misc"][NOTE] = {**note_of(document), "seconds": seconds}
        if self.trials_save_file:
            save(self.trials, self.trials_save_file)
        if error is not None:
            return None if self.catch_eval_exceptions else error
        # Hyperopt's own functions read the loss of the latest trial: one that failed has none.
        valued = document["result"].get("status") == STATUS_OK
        if self.early_stop_fn is not None and valued and not self._stopped:
            latest = self.trials.trials[-1] is document
            seen = self.trials if latest and not parallel else self._list_finished(document)
            stop, self._stop_args = self.early_stop_fn(seen, *self._stop_args)
            if stop:
                logger.info("Early stop: %s ended the search.", self.early_stop_fn)
                self._stopped = True
        return None

    def _list_finished(self, latest: Document) -> Trials:
        """Trials that have finished, the latest last: others may be running."""
        done = [d for d in self.trials.trials if d["state"] == JOB_STATE_DONE]
        done.sort(key=lambda d: (d is latest, d["refresh_time"], d["tid"]))
        return trials_from_docs(done, validate=False)

    def _withdraw(self, pool: Pool) -> None:
        """Make what has not begun new again."""
        for document in pool.cancel():
            document["state"] = JOB_STATE_NEW
            document["book_time"] = document["refresh_time"] = None

    def _good_enough(self) -> bool:
        return self.loss_threshold is not None and self._read().best < self.loss_threshold

    def _shown(self) -> float:
        """What the bar shows: seconds, or trials that have ended, at most the budget.

        The last evaluations may take more seconds than were left, and tqdm warns of that.
        """
        situation = self._read()
        if self.method.unit == "trials":
            return int(situation.pulls.records.finished.sum())
        return min(situation.spent("seconds"), self.method.filtering.budget)

    def _progress(self) -> Callable[..., Any]:
        if not self.show_progressbar or not self.verbose:
            return progress.no_progress_callback  # type: ignore[no-any-return]
        if self.show_progressbar is not True:
            return self.show_progressbar  # type: ignore[no-any-return]
        return _seconds_bar if self.method.unit == "seconds" else progress.default_callback


def save(trials: Trials, path: str) -> None:
    """Pickle trials as ``fmin`` does; a crash while it writes leaves the old file."""
    with open(f"{path}.tmp", "wb") as file:
        dump(trials, file)
    os.replace(f"{path}.tmp", path)


@contextlib.contextmanager
def _seconds_bar(initial: float, total: float) -> Iterator[Any]:
    """The bar of ``fmin``, counting seconds of the budget in place of trials."""
    form = "{l_bar}{bar}| {n:.1f}/{total:.1f} s [{elapsed}{postfix}]"
    with tqdm(total=total, initial=initial, dynamic_ncols=True, bar_format=form) as bar:
        yield bar


# --- evaluations -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Evaluated:
    """A trial that has ended.

    Attributes:
        document: The trial.
        result: What Hyperopt makes of the objective's; None if it raised.
        error: What it raised.
        began: When it began (naive UTC, milliseconds, as Hyperopt writes it).
        ended: When it ended.
        seconds: How long the objective took.
    """

    document: Document
    result: dict[str, Any] | None
    error: Exception | None
    began: datetime
    ended: datetime
    seconds: float


class Pool:
    """Evaluates trials; with an executor ``n_workers`` of them at a time.

    With an executor the point of the search space is made here and the objective is called there:
    the objective, the point and the result must pickle (threads: be safe to share).

    Args:
        domain: Objective and search space.
        trials: Where attachments go.
        executor: Any ``concurrent.futures.Executor``; None evaluates in this thread.
        n_workers: Trials at a time.

    Attributes:
        broken: Whether a worker has died and taken the executor with it: nothing can be started.
    """

    def __init__(
        self, domain: Domain, trials: Trials, executor: Executor | None, n_workers: int
    ) -> None:
        self._domain, self._trials, self._executor = domain, trials, executor
        self._n_workers = n_workers
        self._queue: list[Document] = []
        self._running: dict[Future[Any], tuple[Document, datetime, float]] = {}
        self._failed: list[Evaluated] = []
        self._refused: list[Document] = []
        self.broken = False

    def __len__(self) -> int:
        return len(self._queue) + len(self._running) + len(self._failed)

    @property
    def free(self) -> bool:
        """Whether another trial may be started."""
        return len(self) < self._n_workers and not self.broken

    def start(self, document: Document) -> None:
        """Evaluate a trial, now or in ``wait``."""
        began, start = coarse_utcnow(), time.perf_counter()
        document["book_time"] = document["refresh_time"] = began
        if self._executor is None:
            self._queue.append(document)
            return
        try:
            spec, ctrl = spec_from_misc(document["misc"]), Ctrl(self._trials, document)
            fn, point = self._domain.evaluate_async(spec, ctrl)
        except Exception as error:
            self._failed.append(_end(document, None, error, began, start))
            return
        try:
            future = self._executor.submit(_measure, fn, point)
        except BrokenExecutor:  # before any result of the trials that died with it has come
            self.broken = True
            self._refused.append(document)
        else:
            self._running[future] = document, began, start

    def wait(self) -> list[Evaluated]:
        """The trials that have ended, at least one; empty if none was started."""
        if self._queue:
            return [self._evaluate(self._queue.pop(0))]
        if self._failed:
            failed, self._failed = self._failed, []
            return failed
        done, _ = wait_for(self._running, return_when=FIRST_COMPLETED)
        # In the order in which they were started: sets have none.
        return [self._collect(future) for future in list(self._running) if future in done]

    def _evaluate(self, document: Document) -> Evaluated:
        began, start = coarse_utcnow(), time.perf_counter()
        spec, ctrl = spec_from_misc(document["misc"]), Ctrl(self._trials, document)
        try:
            result = self._domain.evaluate(spec, ctrl)
        except Exception as error:
            return _end(document, None, error, began, start)
        return _end(document, result, None, began, start)

    def _collect(self, future: Future[Any]) -> Evaluated:
        document, began, start = self._running.pop(future)
        try:
            returned, seconds = future.result()
            result = self._domain.evaluate_async2(returned, Ctrl(self._trials, document))
        except Exception as error:
            # Which of the running trials killed its worker is not known: all of them have failed.
            self.broken = self.broken or isinstance(error, BrokenExecutor)
            return _end(document, None, error, began, start)
        return Evaluated(document, result, None, began, coarse_utcnow(), seconds)

    def cancel(self) -> list[Document]:
        """Take back the trials whose evaluation has not begun."""
        queued, self._queue = self._queue + self._refused, []
        self._refused = []
        cancelled = [future for future in self._running if future.cancel()]
        return queued + [self._running.pop(future)[0] for future in cancelled]


def _end(
    document: Document,
    result: dict[str, Any] | None,
    error: Exception | None,
    began: datetime,
    start: float,
) -> Evaluated:
    seconds = time.perf_counter() - start
    if error is not None:
        logger.error("trial %s raised: %s", document["tid"], error)
    return Evaluated(document, result, error, began, coarse_utcnow(), seconds)


def _measure(fn: Callable[[Any], Any], point: Any) -> tuple[Any, float]:
    """What the objective returns and how long it took; runs on the workers."""
    start = time.perf_counter()
    return fn(point), time.perf_counter() - start
