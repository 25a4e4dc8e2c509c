"""``fmin`` with ``algo=boasf(...)``, with executors and budgets in seconds."""

from __future__ import annotations

import inspect
import logging
import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import fields
from typing import Any

import numpy as np
from hyperopt import Domain, Trials, pyll, space_eval, tpe
from hyperopt.base import validate_loss_threshold, validate_timeout
from hyperopt.exceptions import InvalidAnnotatedParameter

from automl_plugins.bandits.successive_filtering import Score
from automl_plugins.streams import Streams

from ._arms import Split, Values
from ._private import load
from ._pulls import Cost
from ._pyll import choices, label_of, needed
from ._running import EarlyStop, Run
from .algos import Boasf
from .proposing import Suggest

logger = logging.getLogger(__name__)

#: What the search itself needs to know; ``seed`` is drawn from ``rstate``.
_OPTIONS = tuple(field.name for field in fields(Boasf) if field.name != "seed")


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
    executor: Executor | None = None,
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

    It is ``fmin`` with ``algo=boasf(...)``, which describes the method, and with what ``fmin`` has
    not: an executor, seconds as measured around the objective, trials of a killed search that are
    evaluated again, and a file that is replaced in one step. Called again with the same arguments
    and the same ``trials`` (or ``trials_save_file``), the search continues where it was.

    Args:
        fn: Objective as for ``fmin``: returns a loss or a result with status and loss.
        space: Search space as for ``fmin``.
        budget_seconds: See ``boasf``.
        max_evals: See ``boasf``.
        rounds: See ``boasf``.
        score: See ``boasf``.
        c: See ``boasf``.
        temperature: See ``boasf``.
        min_pulls: See ``boasf``.
        carry_debts: See ``boasf``.
        label: See ``boasf``.
        split: See ``boasf``.
        max_arms: See ``boasf``.
        inner: See ``boasf``.
        cost: See ``boasf``.
        reward_range: See ``boasf``.
        paper: See ``boasf``.
        executor: Evaluates trials in parallel: any ``concurrent.futures.Executor``, Dask's
            ``client.get_executor()`` and joblib's too. What is sent must pickle. If a worker dies
            and the executor breaks, the trials under way have failed, and the search ends.
        n_workers: Trials at a time; None asks the executor.
        timeout: Real seconds after which nothing is started any more.
        loss_threshold: Stop at a loss below it.
        trials: Trials of any kind but asynchronous ones (Spark, Mongo): these run ``fmin`` with
            ``algo=bandit``.
        rstate: Generator of which one seed is drawn.
        pass_expr_memo_ctrl: As for ``fmin``; not with an executor.
        catch_eval_exceptions: Whether a trial that raises is a failed one; otherwise the
            exception ends the search, once the other running trials have ended.
        verbose: False hides the progress bar.
        return_argmin: Whether to return labels and values of the best trial, for ``space_eval``,
            or the point of the space itself.
        points_to_evaluate: Configurations to be evaluated first, values by label; part of the
            budget. Those in ``trials`` already are not evaluated again.
        show_progressbar: As for ``fmin``: whether, or a progress context of one's own.
        early_stop_fn: As for ``fmin``, called after every evaluation that has a loss; with several
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
    method = Boasf(**{name: given[name] for name in _OPTIONS})
    validate_timeout(timeout)
    validate_loss_threshold(loss_threshold)
    workers = _workers(executor, n_workers)
    if isinstance(space, str) and space == "annotated":
        fn, space = _read_annotations(fn)
    domain = Domain(fn, space, pass_expr_memo_ctrl=pass_expr_memo_ctrl)
    if executor is not None and domain.pass_expr_memo_ctrl:
        raise ValueError("pass_expr_memo_ctrl needs the trials at hand: leave out executor=.")
    points = [_check_point(domain, point) for point in points_to_evaluate or ()]
    if max_evals is not None and len(points) > max_evals:
        raise ValueError(
            f"points_to_evaluate has {len(points)} points, but max_evals is {max_evals}."
        )
    method.space(domain)  # raises for a space without arms
    trials = _trials(trials, trials_save_file)
    seed = int(_generator(rstate).integers(2**31 - 1))
    Run(
        method=method,
        streams=Streams(seed),
        domain=domain,
        trials=trials,
        points=points,
        executor=executor,
        n_workers=workers,
        timeout=timeout,
        loss_threshold=loss_threshold,
        early_stop_fn=early_stop_fn,
        trials_save_file=trials_save_file,
        catch_eval_exceptions=catch_eval_exceptions,
        show_progressbar=show_progressbar,
        verbose=verbose,
    ).run_to_the_end()
    if return_argmin:
        if not len(trials.trials):
            raise Exception("There are no evaluation tasks, cannot return argmin of task losses.")
        return trials.argmin
    return space_eval(space, trials.argmin) if len(trials) else None


def _trials(trials: Trials | None, trials_save_file: str) -> Trials:
    if trials is None:
        if trials_save_file and os.path.exists(trials_save_file):
            with open(trials_save_file, "rb") as file:
                return load(file)
        return Trials()
    if trials.asynchronous:
        raise ValueError(
            f"{type(trials).__name__} evaluates trials by itself, which boasf_fmin cannot steer:"
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
    """The active values of a point.

    Raises:
        ValueError: For labels that are unknown or missing, or options that there are not.
    """
    unknown = [label for label in point if label not in domain.params]
    if unknown:
        raise ValueError(
            f"points_to_evaluate: no label {unknown[0]!r}; there are {', '.join(domain.params)}."
        )
    for label, choice in choices(domain.expr).items():
        if label in point and point[label] not in choice.possible:
            raise ValueError(
                f"points_to_evaluate: {label!r} must be the index of an option, one of"
                f" {', '.join(map(str, choice.possible))}, got {point[label]!r}."
            )
    active = [label_of(node) for node in needed(domain.expr, point)]
    missing = [label for label in active if label not in point]
    if missing:
        raise ValueError(f"points_to_evaluate: {dict(point)} lacks a value of {missing[0]!r}.")
    return {label: point[label] for label in active}


class _Keywords:
    """Calls an objective with the point as keyword arguments; pickles if the objective does."""

    def __init__(self, fn: Callable[..., Any]) -> None:
        self._fn = fn

    def __call__(self, point: Mapping[str, Any]) -> Any:
        return self._fn(**point)


def _read_annotations(fn: Callable[..., Any]) -> tuple[Callable[..., Any], dict[str, Any]]:
    """The search space in the type hints of an objective, as ``fmin`` reads it."""
    space = inspect.getfullargspec(fn).annotations
    for name, node in space.items():
        if not isinstance(node, pyll.base.Apply):
            raise InvalidAnnotatedParameter(
                f'space="annotated" needs an hp expression as the type hint of {name}.'
            )
    return _Keywords(fn), space


def _workers(executor: Executor | None, n_workers: int | None) -> int:
    """Evaluations at a time.

    Raises:
        ValueError: For a number that is not positive, or more than one without an executor.
    """
    if executor is None:
        if n_workers not in (None, 1):
            raise ValueError(
                f"n_workers={n_workers!r} needs an executor=, such as"
                " concurrent.futures.ProcessPoolExecutor(n_workers)."
            )
        return 1
    if n_workers is None:
        known = getattr(executor, "_max_workers", None)
        if not isinstance(known, int):
            logger.warning(
                "It is unknown how many workers the executor has: evaluating one trial at a time."
                " Pass n_workers=."
            )
        return known if isinstance(known, int) else 1
    if not n_workers >= 1:
        raise ValueError(f"n_workers must be >= 1, got {n_workers!r}.")
    return n_workers
