"""The methods by name, each an ``algo=`` for ``fmin``.

Options are given by a call, ``algo=gbqr(alpha=0.2)``, or by ``functools.partial``. Their names and
defaults are those of ``automl_plugins.recipes``, which describes them; in Hyperopt's terms all
take:

- ``seed``: for runs that are to be continued. Proposals then depend on it, the trials and the
  number of the trial, in place of what ``fmin`` draws from ``rstate``: 25 trials and 25 more are
  the 50 of one run. So they are with the same generator as ``rstate`` of both.
- ``n_startup``: trials before the model is asked; None follows the size of the space.
- ``n_candidates``: random candidates for each proposal, beside the local searches; a space of at
  most that size is searched completely. None is 1 000, and 300 from 256 trials on.
- ``max_rows``: trials that models see at most; None for all.
- ``failed_trials``: ``"avoid"`` learns where trials fail, ``"ignore"`` does not.

Where a method has them, ``balance`` confines every ``balance``-th proposal to the option of a
choice that has been served least for its size, and the gain is divided by seconds^kappa: kappa is
``cost_exponent``, in [0, 1], and falls to 0 over ``cost_budget`` trials. Seconds are
``result["seconds"]`` where the objective returns it, else the time between ``book_time`` and
``refresh_time``; those of failed trials count as well. A ``memory`` is ``{name: its Trials}`` of
the same search space, or what the recipes of the core take: a ``MetaDataset``, a ``MetaStore``,
its path or address, records of tasks, the name of a bundled memory. The trials of the search
itself are left out, and the runs of ``task``.

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
    configuration may be better than the best one; ``algo=gbqr`` is the whole recipe. Options:
    alpha, n_models, doubt, balance, per_second, cost_exponent, cost_budget, thesis; see
    ``automl_plugins.recipes.gbqr``, and the module for those that all take.

    Example::

        fmin(objective, space, algo=gbqr, max_evals=60)
        fmin(objective, space, algo=gbqr(seed=1, alpha=0.2), max_evals=60)
    """
    return core.gbqr(**options)


@ProposerAlgorithm
def ei_per_second(*, seed: int | None = None, **options: Unpack[EIPerSecondOptions]) -> Proposer:
    """Expected improvement per second: what is likely to pay off, for the time it takes.

    A LightGBM model of ln seconds (van Hoof 2018, 5.2) divides the expected improvement of a
    random forest. Options: cost_exponent (smaller values prefer cheap configurations less),
    cost_budget, and those that all take, see the module.

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

    Options: surrogate (``"quantile_boosting"``, ``"random_forest"``, ``"extra_trees"``,
    ``"gaussian_process"``, or an object with ``fit(X, y)`` and ``predict(X)``), acquisition,
    interleave, balance, xi, beta, target, cost_exponent, cost_budget, startup; see
    ``automl_plugins.recipes.surrogate``, and the module for those that all take.

    Example::

        fmin(objective, space, algo=surrogate(surrogate="random_forest"), max_evals=60)
    """
    return core.surrogate(surrogate, **options)


@ProposerAlgorithm
def tst(*, memory: AnyMemory, seed: int | None = None, **options: Unpack[TSTOptions]) -> Proposer:
    """Two-stage transfer surrogate (Wistuba 2016): earlier tasks vote while they agree.

    Useful from the first trial on. Options: memory, task, meta_features or X and y, distance,
    bandwidth, paper; see ``automl_plugins.recipes.tst``, and the module for those that all take.

    Example::

        earlier = {"monday": trials_1, "tuesday": trials_2}
        fmin(objective, space, algo=tst(memory=earlier), max_evals=30)
    """
    return core.tst(memory, **options)


@ProposerAlgorithm
def pmf(*, memory: AnyMemory, seed: int | None = None, **options: Unpack[PMFOptions]) -> Proposer:
    """Probabilistic matrix factorisation (Fusi 2018) over the configurations of a memory.

    Options: memory, task, meta_features or X and y, model, n_start, xi, start, paper; see
    ``automl_plugins.recipes.pmf``, and the module for those that all take.
    """
    return core.pmf(memory, **options)


@ProposerAlgorithm
def blended(
    *, memory: AnyMemory, seed: int | None = None, **options: Unpack[BlendedOptions]
) -> Proposer:
    """Blended optimisation (van Hoof 2018, ch. 6): a meta-learner votes first, GBQR ever more.

    The share of the meta-learner is in the document. Options: memory, task, meta_features or X
    and y, surrogate, n_suggested, balance; see ``automl_plugins.recipes.blended``, and the module
    for those that all take.
    """
    return core.blended(memory, **options)
