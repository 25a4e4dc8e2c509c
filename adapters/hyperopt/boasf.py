"""``fmin`` with ``algo=boasf(...)``, with executors, budgets in seconds and a saved file."""

from __future__ import annotations

import contextlib
import inspect
import logging
import math
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import partial
from inspect import signature
from typing import Any

import numpy as np
from hyperopt import (
    JOB_STATE_DONE,
    JOB_STATE_ERROR,
    JOB_STATE_NEW,
    JOB_STATE_RUNNING,
    STATUS_OK,
    Domain,
    Trials,
    progress,
    pyll,
    space_eval,
    tpe,
)
from hyperopt.base import trials_from_docs, validate_loss_threshold, validate_timeout
from hyperopt.exceptions import AllTrialsFailed, InvalidAnnotatedParameter
from tqdm import tqdm

from automl_plugins._arguments import check_integer, document_arguments
from automl_plugins.addresses import replacing
from automl_plugins.bandits.successive_filtering import Score
from automl_plugins.records.trial import as_number
from automl_plugins.streams import Streams

from ._arms import Split, Values
from ._pool import Evaluated, Pool, Workers
from ._private import all_documents, dump, load
from ._pulls import Cost, Situation, charge
from ._pyll import choices, find_needed, label_of
from .algos import Boasf, boasf
from .proposing import Suggest
from .trials import NOTE, UNFINISHED, Document, new_document, note_of, values_of

logger = logging.getLogger(__name__)

#: ``stop(trials, *args) -> (whether, args for the next call)``, see ``hyperopt.early_stop``.
EarlyStop = Callable[..., tuple[bool, Any]]


def boasf_fmin(
    fn: Callable[..., Any],
    space: Any,
    *,
    budget_seconds: float | None = None,
    max_evals: int | None = None,
    rounds: int = 3,
    score: Score = "maximum",
    c: float | None = None,
    temperature: float | None = None,
    min_pulls: int = 1,
    carry_debts: bool = True,
    label: str | None = None,
    split: Split | None = None,
    max_arms: int = 32,
    inner: Suggest | str = tpe.suggest,
    cost: Cost = None,
    reward_range: tuple[float, float] | None = None,
    paper: bool = False,
    executor: Workers | None = None,
    n_workers: int | None = None,
    timeout: float | None = None,
    loss_threshold: float | None = None,
    trials: Trials | None = None,
    rstate: np.random.Generator | None = None,
    pass_expr_memo_ctrl: bool | None = None,
    catch_eval_exceptions: bool = False,
    verbose: bool = True,
    return_argmin: bool = True,
    points_to_evaluate: Sequence[Mapping[str, Any]] | None = None,
    show_progressbar: Any = True,
    early_stop_fn: EarlyStop | None = None,
    trials_save_file: str = "",
) -> Any:
    """Minimise a function over a search space under a budget, choosing the model and tuning it.

    It is ``fmin`` with ``algo=boasf(...)``, and adds what ``fmin`` lacks: an executor, seconds
    measured around the objective, a second evaluation of trials that a killed search left running,
    and a file that is replaced atomically. Called again with the same arguments and the same
    ``trials`` (or ``trials_save_file``), the search continues where it stopped.

    Arguments besides the options of ``boasf``:
        fn: Objective as for ``fmin``: returns a loss or a result with status and loss.
        space: Search space as for ``fmin``.
        executor: Evaluates trials in parallel: any ``concurrent.futures.Executor``, Dask's
            ``client.get_executor()`` and joblib's too. Objective, points and results must pickle.
            If a worker dies and breaks the executor, the running trials fail and the search ends.
            To survive that, give a function that makes an executor of one worker, such as
            ``partial(ProcessPoolExecutor, 1)``, and ``n_workers``: each worker has its own
            executor, the trial that killed it fails, and the executor is replaced.
        n_workers: Trials at a time; None asks the executor.
        timeout: Seconds of wall-clock time after which no trial is started any more.
        loss_threshold: Stop at a loss below it.
        trials: Trials of any kind but asynchronous ones such as ``SparkTrials``: these run
            ``fmin`` with ``algo=bandit``.
        rstate: Generator from which one seed is drawn.
        pass_expr_memo_ctrl: As for ``fmin``; not with an executor.
        catch_eval_exceptions: Whether a trial that raises, or kills its worker, just fails;
            otherwise the exception ends the search, once the other running trials have ended.
        verbose: False hides the progress bar.
        return_argmin: Whether to return labels and values of the best trial, for ``space_eval``,
            or the point of the space itself.
        points_to_evaluate: Configurations to be evaluated first, values by label; part of the
            budget. Those in ``trials`` already are not evaluated again.
        show_progressbar: As for ``fmin``: a bool, or a progress context.
        early_stop_fn: As for ``fmin``, called after every evaluation with a loss; with several
            workers it gets the finished trials only, the latest last.
        trials_save_file: File that trials are saved to after every evaluation, and read from at
            the start if ``trials`` is None. It is Hyperopt's own pickle: read your own files only.

    Returns:
        As ``fmin``.

    Raises:
        ValueError: For an argument outside its range, or a space without arms.
        AllTrialsFailed: If no trial has a loss.
    """
    given = locals()
    # The seed is drawn from ``rstate``.
    method = Boasf(**{f.name: given[f.name] for f in fields(Boasf) if f.name != "seed"})
    validate_timeout(timeout)
    validate_loss_threshold(loss_threshold)
    workers = _workers(executor, n_workers)
    if isinstance(space, str) and space == "annotated":
        fn, space = _read_annotations(fn)
    domain = Domain(fn, space, pass_expr_memo_ctrl=pass_expr_memo_ctrl)
    if executor is not None and domain.pass_expr_memo_ctrl:
        raise ValueError(
            "pass_expr_memo_ctrl needs the trials in this process: leave out executor=."
        )
    points = [_check_point(domain, point) for point in points_to_evaluate or ()]
    if max_evals is not None and len(points) > max_evals:
        raise ValueError(
            f"points_to_evaluate has {len(points)} points, but max_evals is {max_evals}."
        )
    method.space(domain)  # raises for a space without arms
    trials = _trials(trials, trials_save_file)
    _Run(
        method=method,
        streams=Streams(int(_generator(rstate).integers(2**31 - 1))),
        domain=domain,
        trials=trials,
        points=points,
        pool=Pool(domain, trials, executor, workers),
        timeout=timeout,
        loss_threshold=loss_threshold,
        early_stop_fn=early_stop_fn,
        trials_save_file=trials_save_file,
        catch_eval_exceptions=catch_eval_exceptions,
        progress=_progress(show_progressbar if verbose else False, method),
    ).run_to_the_end()
    if not len(trials.trials):  # which leaves out trials that raised
        if all_documents(trials):
            raise AllTrialsFailed
        if return_argmin:
            raise Exception("There are no evaluation tasks, cannot return argmin of task losses.")
        return None
    return trials.argmin if return_argmin else space_eval(space, trials.argmin)


# --- arguments -------------------------------------------------------------------------------


boasf_fmin.__doc__ = document_arguments(
    {name: name for name in signature(boasf_fmin).parameters}, boasf_fmin, boasf
)


def _trials(trials: Trials | None, trials_save_file: str) -> Trials:
    if trials is None:
        if trials_save_file and os.path.exists(trials_save_file):
            with open(trials_save_file, "rb") as file:
                return load(file)
        return Trials()
    if trials.asynchronous:
        raise ValueError(
            f"{type(trials).__name__} evaluates trials by itself, which boasf_fmin cannot control:"
            " pass executor= to evaluate in parallel, or fmin(..., algo=bandit, trials=trials)."
        )
    trials.refresh()
    return trials


def _generator(rstate: Any) -> np.random.Generator:
    """As ``fmin``: a seed in the environment, else a random one."""
    if rstate is None:
        seed = os.environ.get("HYPEROPT_FMIN_SEED", "")
        return np.random.default_rng(int(seed) if seed else None)
    if not isinstance(rstate, np.random.Generator):
        raise TypeError(f"rstate must be numpy.random.default_rng(seed), got {rstate!r}.")
    return rstate


def _check_point(domain: Domain, point: Mapping[str, Any]) -> Values:
    """The active values of a point, the indices of options as integers."""
    unknown = [label for label in point if label not in domain.params]
    if unknown:
        raise ValueError(
            f"points_to_evaluate: no label {unknown[0]!r}; there are {', '.join(domain.params)}."
        )
    known = choices(domain.expr)
    for label, value in point.items():
        number = as_number(value)
        if label in known and number not in known[label].possible:
            raise ValueError(
                f"points_to_evaluate: {label!r} must be the index of an option, one of"
                f" {', '.join(map(str, known[label].possible))}, got {value!r}."
            )
        if not math.isfinite(number):
            raise ValueError(
                f"points_to_evaluate: {label!r} must be a finite number, got {value!r}."
            )
    point = {n: int(value) if n in known else value for n, value in point.items()}
    active = [label_of(node) for node in find_needed(domain.expr, point)]
    missing = [label for label in active if label not in point]
    if missing:
        raise ValueError(f"points_to_evaluate: {dict(point)} has no value for {missing[0]!r}.")
    return {label: point[label] for label in active}


def _call_by_keywords(fn: Callable[..., Any], point: Mapping[str, Any]) -> Any:
    return fn(**point)


def _read_annotations(fn: Callable[..., Any]) -> tuple[Callable[..., Any], dict[str, Any]]:
    """The search space in the type hints of an objective, as ``fmin`` reads it."""
    space = inspect.getfullargspec(fn).annotations
    for name, node in space.items():
        if not isinstance(node, pyll.base.Apply):
            raise InvalidAnnotatedParameter(
                f'space="annotated" needs an hp expression as the type hint of {name}.'
            )
    return partial(_call_by_keywords, fn), space  # pickles if the objective does


def _workers(executor: Workers | None, n_workers: int | None) -> int:
    """Evaluations at a time."""
    if executor is None:
        if n_workers not in (None, 1):
            raise ValueError(
                f"n_workers={n_workers!r} needs an executor=, such as"
                " concurrent.futures.ProcessPoolExecutor(n_workers)."
            )
        return 1
    if not (callable(executor) or callable(getattr(executor, "submit", None))):
        raise TypeError(
            "executor must be an executor of concurrent.futures, or a function that makes one,"
            f" got {executor!r}."
        )
    if n_workers is None and callable(executor):
        raise ValueError("n_workers= is needed with a function that makes executors.")
    if n_workers is None:
        known = getattr(executor, "_max_workers", None)
        if not isinstance(known, int):
            logger.warning(
                "The executor's number of workers is unknown: evaluating one trial at a time."
                " Pass n_workers=."
            )
        return known if isinstance(known, int) else 1
    check_integer("n_workers", n_workers, 1)
    return n_workers


def _progress(wanted: Any, method: Boasf) -> Callable[..., Any]:
    """The context of the progress bar, as ``fmin`` chooses it; it may count seconds."""
    if not wanted:
        return progress.no_progress_callback  # type: ignore[no-any-return]
    if wanted is not True:
        return wanted  # type: ignore[no-any-return]
    return _seconds_bar if method.unit == "seconds" else progress.default_callback


@contextlib.contextmanager
def _seconds_bar(initial: float, total: float) -> Iterator[Any]:
    form = "{l_bar}{bar}| {n:.1f}/{total:.1f} s [{elapsed}{postfix}]"
    with tqdm(total=total, initial=initial, dynamic_ncols=True, bar_format=form) as bar:
        yield bar


# --- the loop --------------------------------------------------------------------------------


@dataclass
class _Run:
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
    _id: int | None = field(default=None, init=False)  # of a trial not proposed yet

    def __post_init__(self) -> None:
        documents = all_documents(self.trials)
        known = [values_of(document) for document in documents]
        self._points = [dict(point) for point in self.points if point not in known]
        self._waiting = [d for d in documents if d["state"] in UNFINISHED]
        for document in self._waiting:
            document["state"] = JOB_STATE_NEW
            for column in ("idxs", "vals"):
                for label in self.domain.params:
                    document["misc"][column].setdefault(label, [])

    def run_to_the_end(self) -> None:
        """Ask, evaluate and tell until the budget is spent or something else ends it."""
        start, pool = time.monotonic(), self.pool
        shown = self._show_progress()
        error: Exception | None = None
        with self.progress(initial=shown, total=self.method.filtering.budget) as bar:
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
                        error = self._tell(evaluated) or error
                    if error is not None:
                        self._stopped = True
                        self._withdraw()
                    bar.postfix = f"best loss: {self._read().best}"
                    shown, before = self._show_progress(), shown
                    bar.update(shown - before)
            finally:
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
        spent = self._read().spent(self.method.unit)
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
            document["misc"][NOTE] = {"arm": self._read().arms.find(values)}
        else:
            found = self.method.suggest([self._id], self.domain, self.trials, self.streams)
            if not found:
                return None
            (document,) = found
        tid, self._id = self._id, None
        self.trials.insert_trial_docs([document])
        self.trials.refresh()
        # The inserted document may be a copy.
        document = next(d for d in reversed(self.trials.trials) if d["tid"] == tid)
        document["state"] = JOB_STATE_RUNNING
        return document

    def _tell(self, evaluated: Evaluated) -> Exception | None:
        """Store a result; return the exception if it ends the search."""
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
        self._save()
        if error is not None:
            return None if self.catch_eval_exceptions else error
        # Hyperopt's early-stop functions read the loss of the latest trial, so it must have one.
        valued = document["result"].get("status") == STATUS_OK
        if self.early_stop_fn is not None and valued and not self._stopped:
            is_last = self.trials.trials[-1] is document and self.pool.n_workers == 1
            seen = self.trials if is_last else self._list_finished(document)
            self._stopped, self._stop_args = self.early_stop_fn(seen, *self._stop_args)
            if self._stopped:
                logger.info("Early stop: %s ended the search.", self.early_stop_fn)
        return None

    def _list_finished(self, latest: Document) -> Trials:
        """The finished trials without the running ones, the latest last."""
        done = [d for d in self.trials.trials if d["state"] == JOB_STATE_DONE]
        done.sort(key=lambda d: (d is latest, d["refresh_time"], d["tid"]))
        return trials_from_docs(done, validate=False)

    def _withdraw(self) -> None:
        """Make trials that have not begun new again."""
        withdrawn = self.pool.cancel()
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
        return self.method.read(self.domain, self.trials)

    def _good_enough(self) -> bool:
        return self.loss_threshold is not None and self._read().best < self.loss_threshold

    def _show_progress(self) -> float:
        """The value of the progress bar: seconds or finished trials, at most the budget.

        The last evaluations may exceed the budget in seconds, of which tqdm would warn.
        """
        situation = self._read()
        if self.method.unit == "trials":
            return int(situation.pulls.records.finished.sum())
        return min(situation.spent("seconds"), self.method.filtering.budget)
