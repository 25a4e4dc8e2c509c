"""The methods by name, each an ``algo=`` for ``fmin``.

Options are given by a call, ``algo=gbqr(alpha=0.2)``, or by ``functools.partial``. All take:

- ``seed``: for runs that are to be continued. Proposals then depend on it, the trials and the
  number of the trial, in place of what ``fmin`` draws from ``rstate``: 25 trials and 25 more are
  the 50 of one run. So they are with the same generator as ``rstate`` of both.
- ``n_startup``: trials before the model is asked; None follows the size of the space.
- ``n_candidates``: random candidates for each proposal, beside the local searches; a space of at
  most that size is searched completely. None is 1 000, and 300 from 256 trials on.
- ``max_rows``: trials that models see at most; None for all.
- ``failed_trials``: ``"avoid"`` learns where trials fail, ``"ignore"`` does not.

The search space may have conditions, of any depth. Trials may come from any other algorithm and go
on with it. Failed trials, NaN and trials that raised (``catch_eval_exceptions=True``) are failures
to be avoided, unfinished ones are counted, and configurations are repeated only when there are no
others. What drove a proposal is in ``misc["automl_plugins"]["proposal"]`` of its document: where
it is from, what the model expects of it, and the share of each earlier task in the decision.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Unpack

from automl_plugins import recipes as core
from automl_plugins.proposers.proposal import Proposer
from automl_plugins.recipes.without_memory import (
    EIPerSecondOptions,
    GBQROptions,
    SurrogateOptions,
)
from automl_plugins.surrogates import Surrogate

from .proposing import ProposerAlgorithm

if TYPE_CHECKING:
    from automl_plugins.recipes.with_memory import BlendedOptions, PMFOptions, TSTOptions

#: ``{name: its Trials}``, or what the recipes of the core take.
AnyMemory = Any

__all__ = ["blended", "ei_per_second", "gbqr", "pmf", "surrogate", "tst"]


@ProposerAlgorithm
def gbqr(*, seed: int | None = None, **options: Unpack[GBQROptions]) -> Proposer:
    """Bayesian optimisation by gradient boosting with quantile regression (van Hoof 2018).

    LightGBM models of a quantile of the loss, each on a bootstrap sample of the trials, say which
    configuration may be better than the best one; ``algo=gbqr`` is the whole recipe.

    Options, beside those that all take:
        alpha: Quantile of the loss in (0, 1) that the models predict.
        n_models: Bootstrap models.
        doubt: Standard deviation far from all trials, in that of the losses; >= 0.
        balance: Confine every ``balance``-th proposal to the option of a choice that has been
            served least for its size; None never does.
        per_second: Whether the gain is divided by the predicted seconds: those in
            ``result["seconds"]``, else between ``book_time`` and ``refresh_time``.
        cost_exponent: kappa in gain / seconds^kappa, in [0, 1].
        cost_budget: Number of trials over which kappa falls to 0; None keeps it.
        thesis: Whether to take the method as published, see ``recipes.gbqr_thesis``; of the
            options above it has ``per_second`` only.

    Example::

        fmin(objective, space, algo=gbqr, max_evals=60)
        fmin(objective, space, algo=gbqr(seed=1, alpha=0.2), max_evals=60)
    """
    return core.gbqr(**options)


@ProposerAlgorithm
def ei_per_second(*, seed: int | None = None, **options: Unpack[EIPerSecondOptions]) -> Proposer:
    """Expected improvement per second: what is likely to pay off, for the time it takes.

    A LightGBM model of ln seconds (van Hoof 2018, 5.2) divides the expected improvement of a
    random forest. Seconds are ``result["seconds"]`` where the objective returns it, else the
    time between ``book_time`` and ``refresh_time``; those of failed trials count as well.

    Options, beside those that all take:
        cost_exponent: kappa in EI / seconds^kappa, in [0, 1]; smaller values prefer cheap
            configurations less.
        cost_budget: Number of trials over which kappa falls to 0; None keeps it.

    Example::

        fmin(objective, space, algo=ei_per_second, timeout=3600)
    """
    return core.ei_per_second(**options)


@ProposerAlgorithm
def surrogate(
    *,
    surrogate: str | Surrogate = "quantile_boosting",
    seed: int | None = None,
    **options: Unpack[SurrogateOptions],
) -> Proposer:
    """Bayesian optimisation with any surrogate: SMAC's forest, extra trees, a Gaussian process.

    Options, beside those that all take:
        surrogate: ``"quantile_boosting"``, ``"random_forest"``, ``"extra_trees"``,
            ``"gaussian_process"``, or an object with ``fit(X, y)`` and ``predict(X)``.
        acquisition: ``"ei"``, ``"bound"`` (lower confidence bound of the loss), or either with
            ``"_per_second"``; seconds are those of ``ei_per_second``.
        interleave: Make every ``interleave``-th proposal a space-filling one; None never does.
        balance: See ``gbqr``.
        xi: Improvement below which EI gains nothing, in units of the transformed loss.
        beta: Standard deviations between the predicted mean and the bound.
        target: Transform of the losses: ``"log_regret"``, ``"normal_scores"``, ``"standardize"``
            or ``"raw"``.
        cost_exponent: See ``gbqr``.
        cost_budget: See ``gbqr``.
        startup: ``"design"`` fills the space and visits every option, ``"random"`` draws.

    Example::

        fmin(objective, space, algo=surrogate(surrogate="random_forest"), max_evals=60)
    """
    return core.surrogate(surrogate, **options)


@ProposerAlgorithm
def tst(*, memory: AnyMemory, seed: int | None = None, **options: Unpack[TSTOptions]) -> Proposer:
    """Two-stage transfer surrogate (Wistuba 2016): earlier tasks vote while they agree.

    Useful from the first trial on.

    Options, beside those that all take:
        memory: The earlier tasks: ``{name: its Trials}`` of the same search space, a
            ``MetaDataset``, a ``MetaStore``, its path or address, records of tasks, or the name of
            a bundled memory. The trials of this search itself are left out.
        task: Name of this task; its own runs in the memory are left out.
        meta_features: Those of this task, for ``distance="meta_features"``.
        X: Its data instead, of which meta-features are computed.
        y: Its target.
        distance: ``"ranks"`` (TST-R) or ``"meta_features"`` (TST-M).
        bandwidth: Distance at which an earlier task has lost its vote.
        paper: Whether to follow the authors, see ``automl_plugins.recipes.tst``.

    Example::

        earlier = {"monday": trials_1, "tuesday": trials_2}
        fmin(objective, space, algo=tst(memory=earlier), max_evals=30)
    """
    return core.tst(memory, **options)


@ProposerAlgorithm
def pmf(*, memory: AnyMemory, seed: int | None = None, **options: Unpack[PMFOptions]) -> Proposer:
    """Probabilistic matrix factorisation (Fusi 2018) over the configurations of a memory.

    Options, beside those that all take:
        memory: The earlier tasks, see ``tst``.
        task: Name of this task; its own runs in the memory are left out.
        meta_features: Those of this task, or ``X`` and ``y``; without them the start is the same
            for all tasks.
        model: A ``MatrixFactorization``, fitted on this memory or not; None takes the default.
        n_start: Configurations that are proposed before the model is asked.
        xi: Improvement below which expected improvement gains nothing.
        start: ``"portfolio"``, configurations that together are best on the earlier tasks, or
            ``"nearest"``, the best ones of the tasks nearest by their meta-features.
        paper: Whether to follow the authors, see ``automl_plugins.recipes.pmf``.
    """
    return core.pmf(memory, **options)


@ProposerAlgorithm
def blended(
    *, memory: AnyMemory, seed: int | None = None, **options: Unpack[BlendedOptions]
) -> Proposer:
    """Blended optimisation (van Hoof 2018, ch. 6): a meta-learner votes first, GBQR ever more.

    The share of the meta-learner is in the document.

    Options, beside those that all take:
        memory: The earlier tasks, see ``tst``.
        task: Name of this task; its own runs in the memory are left out.
        meta_features: Those of this task, or ``X`` and ``y``; without them the meta-learner
            predicts their mean.
        surrogate: What votes more and more; None takes that of ``gbqr``.
        n_suggested: Trials before anything is voted on; 0 begins with the meta-learner.
        balance: See ``gbqr``.
    """
    return core.blended(memory, **options)
