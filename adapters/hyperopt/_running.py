"""``fmin``'s loop for a search that is asked and told: progress, early stops, the saved file."""

from __future__ import annotations

import contextlib
import logging
import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from dataclasses import dataclass, field
from typing import Any

from hyperopt import JOB_STATE_DONE, JOB_STATE_NEW, STATUS_OK, Domain, Trials, progress
from hyperopt.base import trials_from_docs
from tqdm import tqdm

from ._boasf_search import BoasfSearch
from ._documents import Document
from ._pool import Evaluated, Pool
from ._private import dump
from ._pulls import number

logger = logging.getLogger("automl_plugins.adapters.hyperopt.boasf")

#: ``stop(trials, *args) -> (whether, args for the next call)``, see ``hyperopt.early_stop``.
EarlyStop = Callable[..., tuple[bool, Any]]


@dataclass
class Run:
    """One run of a search to its end.

    Attributes:
        search: What proposes.
        domain: Objective and search space.
        executor: What evaluates; None is this thread.
        n_workers: Evaluations at a time.
        budget: Trials or seconds at the end of the progress bar.
        seconds: Whether ``budget`` is in seconds.
        timeout: Real seconds after which nothing is started any more.
        loss_threshold: A loss below which the search stops.
        early_stop_fn: Stops the search.
        trials_save_file: Where trials are saved after every evaluation; empty for nowhere.
        catch_eval_exceptions: Whether a trial that raises is a failed one.
        show_progressbar: As ``fmin`` takes it.
        verbose: As ``fmin`` takes it.
    """

    search: BoasfSearch
    domain: Domain
    executor: Executor | None
    n_workers: int
    budget: float
    seconds: bool
    timeout: float | None
    loss_threshold: float | None
    early_stop_fn: EarlyStop | None
    trials_save_file: str
    catch_eval_exceptions: bool
    show_progressbar: Any
    verbose: bool
    _stop_args: Any = field(default=(), init=False)
    _stopped: bool = field(default=False, init=False)

    def to_the_end(self) -> None:
        """Ask, evaluate and tell until the budget is spent or something else ends it."""
        start = time.monotonic()
        pool = Pool(self.domain, self.search.trials, self.executor, self.n_workers)
        spent = self._spent()
        error: Exception | None = None
        with self._progress()(initial=spent, total=self.budget) as bar:
            try:
                while True:
                    late = self.timeout is not None and time.monotonic() - start >= self.timeout
                    self._stopped = self._stopped or late or self._good_enough() or pool.broken
                    while pool.free and not self._stopped:
                        document = self.search.ask()
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
                    bar.postfix = f"best loss: {self._best()}"
                    spent, before = self._spent(), spent
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

    def _tell(self, evaluated: Evaluated, *, parallel: bool) -> Exception | None:
        """Take a result; the exception that ends the search, if it is one."""
        self.search.tell(
            evaluated.document,
            evaluated.result,
            began=evaluated.began,
            ended=evaluated.ended,
            seconds=evaluated.seconds,
            error=evaluated.error,
        )
        trials = self.search.trials
        if self.trials_save_file:
            save(trials, self.trials_save_file)
        if evaluated.error is not None:
            return None if self.catch_eval_exceptions else evaluated.error
        # Hyperopt's own functions read the loss of the latest trial: one that failed has none.
        valued = evaluated.document["result"].get("status") == STATUS_OK
        if self.early_stop_fn is not None and valued and not self._stopped:
            latest = trials.trials[-1] is evaluated.document
            seen = trials if latest and not parallel else self._finished(evaluated.document)
            stop, self._stop_args = self.early_stop_fn(seen, *self._stop_args)
            if stop:
                logger.info("Early stop: %s ended the search.", self.early_stop_fn)
                self._stopped = True
        return None

    def _finished(self, latest: Document) -> Trials:
        """Trials that have finished, the latest last: others may be running."""
        done = [d for d in self.search.trials.trials if d["state"] == JOB_STATE_DONE]
        done.sort(key=lambda d: (d is latest, d["refresh_time"], d["tid"]))
        return trials_from_docs(done, validate=False)

    def _withdraw(self, pool: Pool) -> None:
        """Make what has not begun new again."""
        for document in pool.cancel():
            document["state"] = JOB_STATE_NEW
            document["book_time"] = document["refresh_time"] = None

    def _best(self) -> float:
        results = [d["result"] for d in self.search.trials.trials]
        losses = [number(r.get("loss")) for r in results if r.get("status") == STATUS_OK]
        return min((loss for loss in losses if loss == loss), default=float("inf"))

    def _good_enough(self) -> bool:
        return self.loss_threshold is not None and self._best() < self.loss_threshold

    def _spent(self) -> float:
        """What the bar shows: seconds, or trials that have ended, at most the budget.

        The last evaluations may take more seconds than were left, and tqdm warns of that.
        """
        pulls = self.search.pulls()
        if not self.seconds:
            return int(pulls.records.finished.sum())
        return min(self.search.spent(pulls), self.budget)

    def _progress(self) -> Callable[..., Any]:
        if not self.show_progressbar or not self.verbose:
            return progress.no_progress_callback  # type: ignore[no-any-return]
        if self.show_progressbar is not True:
            return self.show_progressbar  # type: ignore[no-any-return]
        return _seconds_bar if self.seconds else progress.default_callback


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
