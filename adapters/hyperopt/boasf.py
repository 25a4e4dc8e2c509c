"""``fmin`` by BOASF: Bayesian optimisation within arms, adaptive successive filtering of arms."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from typing import Any

import numpy as np
from hyperopt import Domain, Trials, pyll, space_eval, tpe
from hyperopt.base import validate_loss_threshold, validate_timeout
from hyperopt.exceptions import InvalidAnnotatedParameter

from automl_plugins.bandits.successive_filtering import Score
from automl_plugins.streams import Streams

from ._arms import Split, Suggest, Values
from ._boasf_options import BoasfOptions
from ._boasf_search import Cost
from ._pool import workers_of
from ._private import load
from ._pyll import choices, label_of, needed
from ._running import EarlyStop, Run


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

    BOASF (Zhu 2020): the options of the root choice are arms. The budget is spent in rounds; a
    suggest function proposes within each arm and sees that arm's trials only. Before a round, arms
    advance with a probability that grows with their score, and those that do share the round's
    budget by a softmax of it. A configuration is not evaluated twice; an option without
    hyperparameters is evaluated once. An arm that always fails is dropped. A line for each round
    goes to the log (level INFO).

    Rounds are kept in the documents of the trials. Called again with the same arguments and the
    same ``trials`` (or ``trials_save_file``), the search goes on where it was. With another
    budget it opens rounds anew; trials that are there count, as they do in ``fmin``.

    Args:
        fn: Objective as for ``fmin``: returns a loss or a result with status and loss.
        space: Search space as for ``fmin``.
        budget_seconds: Budget in seconds, added up over all evaluations, parallel ones too. An
            evaluation under way is never cut, one that is not expected to fit is not started.
        max_evals: Budget in evaluations, failed ones and those in ``trials`` included.
        rounds: Rounds of equal budget.
        score: ``"maximum"``, an arm's best reward: the arm of the best trial always advances. Or
            ``"mean"``, the paper's bound of the mean reward: it may drop that arm, with a warning.
        c: Weight of the uncertainty in the bound; None is 0 for maxima and 2 for means, as in the
            paper.
        temperature: Of the softmax, smaller values favour the best arms; None is 0.02 for maxima
            and 1 for means, as in the paper.
        min_pulls: Evaluations of each arm in the first round.
        carry_debts: False is the paper's loop, in which the last evaluation of every arm in
            every round overruns.
        label: The choice whose options are the arms; None is the root, or where that is none,
            the only one whose options have hyperparameters.
        split: Makes cells of the space the arms: number of parts of each hyperparameter's range
            on its own scale, or numbers by label, the most important first. Normal distributions
            and what only some options of a choice have are left whole.
        max_arms: Most cells; what would make more is left whole. The paper has up to 32.
        inner: What proposes in an arm: ``"random"``, ``"tpe"`` or a suggest function. Hyperopt's
            TPE starts with 20 random trials that the arms share, but each has at least 3;
            ``functools.partial(tpe.suggest, n_startup_jobs=...)`` sets the number.
        cost: Seconds that an evaluation is charged: None measures them, a text is a key of the
            result, a function gets the result. What failed and says nothing is measured.
        reward_range: The best and the worst loss there may be, which get the rewards 1 and 0;
            None scales by the losses so far, see ``RewardScale``.
        paper: Whether to follow algorithm 1 of the paper: score, c, temperature, min_pulls and
            carry_debts are then its own and cannot be given. Rewards are scaled to [0, 1] unless
            ``reward_range`` is given; for the rest see ``bandits.SuccessiveFiltering.paper``.
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
    options = BoasfOptions(
        budget_seconds=budget_seconds,
        max_evals=max_evals,
        rounds=rounds,
        c=c,
        temperature=temperature,
        score=score,
        min_pulls=min_pulls,
        carry_debts=carry_debts,
        label=label,
        split=split,
        max_arms=max_arms,
        inner=inner,
        cost=cost,
        reward_range=reward_range,
        paper=paper,
    )
    validate_timeout(timeout)
    validate_loss_threshold(loss_threshold)
    workers = workers_of(executor, n_workers)
    if isinstance(space, str) and space == "annotated":
        fn, space = _annotated(fn)
    domain = Domain(fn, space, pass_expr_memo_ctrl=pass_expr_memo_ctrl)
    if executor is not None and domain.pass_expr_memo_ctrl:
        raise ValueError("pass_expr_memo_ctrl needs the trials at hand: leave out executor=.")
    points = [_checked(domain, point) for point in points_to_evaluate or ()]
    if max_evals is not None and len(points) > max_evals:
        raise ValueError(
            f"points_to_evaluate has {len(points)} points, but max_evals is {max_evals}."
        )
    options.warn_of_shortage(options.arms(domain))
    trials = _trials(trials, trials_save_file)
    seed = int(_generator(rstate).integers(2**31 - 1))
    Run(
        search=options.search(domain, trials, Streams(seed), points),
        domain=domain,
        executor=executor,
        n_workers=workers,
        budget=options.budget,
        seconds=max_evals is None,
        timeout=timeout,
        loss_threshold=loss_threshold,
        early_stop_fn=early_stop_fn,
        trials_save_file=trials_save_file,
        catch_eval_exceptions=catch_eval_exceptions,
        show_progressbar=show_progressbar,
        verbose=verbose,
    ).to_the_end()
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


def _checked(domain: Domain, point: Mapping[str, Any]) -> Values:
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


def _annotated(fn: Callable[..., Any]) -> tuple[Callable[..., Any], dict[str, Any]]:
    """The search space in the type hints of an objective, as ``fmin`` reads it."""
    space = inspect.getfullargspec(fn).annotations
    for name, node in space.items():
        if not isinstance(node, pyll.base.Apply):
            raise InvalidAnnotatedParameter(
                f'space="annotated" needs an hp expression as the type hint of {name}.'
            )
    return _Keywords(fn), space
