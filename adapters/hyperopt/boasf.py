"""``fmin`` with ``algo=boasf(...)``, with executors, budgets in seconds and a saved file."""

from __future__ import annotations

import inspect
import logging
import math
import os
import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import fields
from functools import partial
from inspect import signature
from typing import Any

import numpy as np
from hyperopt import Domain, Trials, progress, pyll, space_eval, tpe
from hyperopt.base import validate_loss_threshold, validate_timeout
from hyperopt.exceptions import AllTrialsFailed, InvalidAnnotatedParameter
from tqdm import tqdm

from automl_plugins._arguments import check_integer, check_kind, document_arguments
from automl_plugins.bandits.successive_filtering import Score
from automl_plugins.records.trial import as_number
from automl_plugins.streams import Streams

from ._arms import Split, Values
from ._private import all_documents, load
from ._pulls import Cost
from ._pyll import choices, labels
from ._run import EarlyStop, Pool, Run, Workers
from .algos import Boasf, boasf
from .space import refuse_general
from .suggest import Suggest
from .trials import check_labels, check_trials, values_of

logger = logging.getLogger(__name__)


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
        trials: Trials of any kind but asynchronous ones such as ``SparkTrials``: with these call
            ``fmin`` with ``algo=bandit``.
        rstate: Generator from which one seed is drawn.
        pass_expr_memo_ctrl: As for ``fmin``; not with an executor.
        catch_eval_exceptions: Whether a trial that raises, or kills its worker, just fails;
            otherwise the exception ends the search, once the other running trials have ended.
        verbose: False hides the progress bar.
        return_argmin: Whether to return labels and values of the best trial, for ``space_eval``,
            or the point of the space itself.
        points_to_evaluate: Configurations to be evaluated first, values by label; part of the
            budget. Points that ``trials`` already has are not evaluated again.
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
    given = locals()  # first, while these are the arguments alone
    # The seed is drawn from ``rstate``.
    method = Boasf(**{f.name: given[f.name] for f in fields(Boasf) if f.name != "seed"})
    validate_timeout(timeout)
    validate_loss_threshold(loss_threshold)
    workers = _workers(executor, n_workers)
    refuse_general("boasf_fmin", space)
    if isinstance(space, str) and space == "annotated":
        fn, space = _read_annotations(fn)
    domain = Domain(fn, space, pass_expr_memo_ctrl=pass_expr_memo_ctrl)
    if executor is not None and domain.pass_expr_memo_ctrl:
        raise ValueError(
            "pass_expr_memo_ctrl, which an objective of record has, needs the trials in this"
            " process: leave out executor=, or record afterwards, by record(...).add(trials,"
            " space)."
        )
    points = [_check_point(domain, point) for point in points_to_evaluate or ()]
    if max_evals is not None and len(points) > max_evals:
        raise ValueError(
            f"points_to_evaluate has {len(points)} points, but max_evals is {max_evals}."
        )
    method.space(domain)  # raises for a space without arms
    trials = _trials(trials, trials_save_file)
    for document in all_documents(trials):
        check_labels(f"Trial {document['tid']}", values_of(document), domain.params)
    Run(
        method=method,
        streams=Streams(int(_generator(rstate).integers(2**31 - 1))),  # the range of ``fmin``'s
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
    if not len(trials.trials):  # without trials that raised
        if all_documents(trials):
            raise AllTrialsFailed
        if return_argmin:
            # The same class and message as in ``fmin``.
            raise Exception("There are no evaluation tasks, cannot return argmin of task losses.")
        return None
    return trials.argmin if return_argmin else space_eval(space, trials.argmin)


# --- arguments -------------------------------------------------------------------------------


boasf_fmin.__doc__ = document_arguments(
    {name: name for name in signature(boasf_fmin).parameters}, boasf_fmin, boasf
)


def _trials(trials: Trials | None, trials_save_file: str) -> Trials:
    folder = os.path.dirname(trials_save_file)
    if folder and not os.path.isdir(folder):
        raise ValueError(f"trials_save_file={trials_save_file!r}: there is no folder {folder!r}.")
    if os.path.isdir(trials_save_file):
        raise ValueError(f"trials_save_file={trials_save_file!r} is a folder: name a file in it.")
    if trials is None:
        return _load_trials(trials_save_file) if os.path.exists(trials_save_file) else Trials()
    check_trials("boasf_fmin", trials)
    if trials.asynchronous:
        raise ValueError(
            f"{type(trials).__name__} evaluates trials by itself, which boasf_fmin cannot control:"
            " pass executor= to evaluate in parallel, or fmin(..., algo=bandit, trials=trials)."
        )
    trials.refresh()
    return trials


def _load_trials(path: str) -> Trials:
    found: Any = None
    with suppress(pickle.UnpicklingError, EOFError), open(path, "rb") as file:
        found = load(file)
    if not isinstance(found, Trials):
        raise ValueError(
            f"trials_save_file={path!r} exists, but does not contain trials saved by boasf_fmin or"
            " fmin. Move it away, or name another file."
        )
    return found


def _generator(rstate: Any) -> np.random.Generator:
    """``rstate``; for None, as in ``fmin``, seeded by ``HYPEROPT_FMIN_SEED`` or at random."""
    if rstate is None:
        seed = os.environ.get("HYPEROPT_FMIN_SEED", "")
        return np.random.default_rng(int(seed) if seed else None)
    if not isinstance(rstate, np.random.Generator):
        raise TypeError(f"rstate must be numpy.random.default_rng(seed), got {rstate!r}.")
    return rstate


def _check_point(domain: Domain, point: Mapping[str, Any]) -> Values:
    """The active values of a point, the indices of options as integers."""
    check_kind("points_to_evaluate", point, Mapping, "a list of points, each {label: value}")
    unknown = [label for label in point if label not in domain.params]
    if unknown:
        raise ValueError(
            f"points_to_evaluate: no label {unknown[0]!r}; there are {', '.join(domain.params)}."
        )
    known = choices(domain.expr)
    for label, value in point.items():
        number, drawn_from = as_number(value), domain.params[label].name
        if label in known and number not in known[label].possible:
            raise ValueError(
                f"points_to_evaluate: {label!r} must be the index of an option, one of"
                f" {', '.join(map(str, known[label].possible))}, got {value!r}."
            )
        if not math.isfinite(number):
            raise ValueError(
                f"points_to_evaluate: {label!r} must be a finite number, got {value!r}."
            )
        # TPE would not learn from it.
        if drawn_from in ("loguniform", "lognormal") and number <= 0:
            raise ValueError(
                f"points_to_evaluate: {label!r} must be above 0, got {value!r}: it is the value"
                " itself, not its logarithm."
            )
    point = {n: int(value) if n in known else value for n, value in point.items()}
    active = labels(domain.expr, point)
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
    """Number of evaluations at a time."""
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
    if n_workers is None:
        if callable(executor):
            raise ValueError("n_workers= is needed with a function that makes executors.")
        # Python's own executors have the number, but under no public name.
        n_workers = getattr(executor, "_max_workers", None)
        if not isinstance(n_workers, int):
            logger.warning(
                "The executor's number of workers is unknown: evaluating one trial at a time."
                " Pass n_workers=."
            )
            return 1
    check_integer("n_workers", n_workers, 1)
    return n_workers


def _progress(wanted: Any, method: Boasf) -> Callable[..., Any]:
    """The context of the progress bar, as ``fmin`` chooses it; it may count seconds."""
    if not wanted:
        return progress.no_progress_callback  # type: ignore[no-any-return]
    if wanted is not True:
        return wanted  # type: ignore[no-any-return]
    return _seconds_bar if method.filtering.unit == "seconds" else progress.default_callback


@contextmanager
def _seconds_bar(initial: float, total: float) -> Iterator[Any]:
    form = "{l_bar}{bar}| {n:.1f}/{total:.1f} s [{elapsed}{postfix}]"
    with tqdm(total=total, initial=initial, dynamic_ncols=True, bar_format=form) as bar:
        yield bar
