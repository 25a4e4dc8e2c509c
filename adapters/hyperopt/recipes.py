"""The methods by name, each an ``algo=`` for ``fmin``.

Options are given by a call, ``algo=gbqr(alpha=0.2)``, or by ``functools.partial``. They are those
of ``automl_plugins.recipes``, documented there and, at run time, in the docstring of each method.

A search keeps the seed that it began with, ``seed`` or what ``fmin`` drew from ``rstate`` for its
first trial, so 25 trials and 25 more are the 50 of one search.

Seconds are ``result["seconds"]`` if the objective returns it, else the time between ``book_time``
and ``refresh_time``; those of failed trials count as well.

The search space may have conditions of any depth. Trials may come from any other algorithm, and
any other may continue them. Failed trials, NaN and trials that raised
(``catch_eval_exceptions=True``) are failures to be avoided, unfinished ones are counted, and
configurations are repeated only when there are no others. ``misc["automl_plugins"]["proposal"]``
of a document explains its proposal: the origin, the predictions of the model, and the share of
each earlier task in the decision.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Unpack

from automl_plugins import recipes as core
from automl_plugins.meta.sources import AUTO
from automl_plugins.proposers.proposal import Proposer
from automl_plugins.recipes.without_memory import EIPerSecondOptions, GBQROptions, SurrogateOptions
from automl_plugins.surrogates import Surrogate

from .proposing import ProposerAlgorithm

if TYPE_CHECKING:
    from automl_plugins.recipes.with_memory import (
        AutoOptions,
        BlendedOptions,
        PMFOptions,
        TSTOptions,
    )

#: ``{name: its Trials}``, or what the recipes of the core take.
AnyMemory = Any

__all__ = ["auto", "blended", "ei_per_second", "gbqr", "pmf", "surrogate", "tst"]


@ProposerAlgorithm
def auto(
    *, memory: AnyMemory = AUTO, seed: int | None = None, **options: Unpack[AutoOptions]
) -> Proposer:
    """The one to use: a committee of models, drawn by how well they rank the trials.

    Its members are the quantile boosting of ``gbqr`` and Gaussian processes averaged over kernels;
    earlier tasks and a meta-learner join them if there is a memory, which also suggests the first
    trials. ``explain`` says which member proposed, and how much each was trusted.

    Arguments besides those of the recipe:
        memory: See ``tst``. None for a search without a memory.

    Example::

        earlier = {"monday": trials_1, "tuesday": trials_2}
        fmin(objective, space, algo=auto, max_evals=60)
        fmin(objective, space, algo=auto(memory=earlier, seed=1), max_evals=60)
    """
    return core.auto(memory, **options)


@ProposerAlgorithm
def gbqr(*, seed: int | None = None, **options: Unpack[GBQROptions]) -> Proposer:
    """Bayesian optimisation by gradient boosting with quantile regression (van Hoof 2018).

    LightGBM models of a quantile of the loss, each on a bootstrap sample of the trials, predict
    which configuration may be better than the best one; ``algo=gbqr`` is the whole recipe.

    Example::

        fmin(objective, space, algo=gbqr, max_evals=60)
        fmin(objective, space, algo=gbqr(seed=1, alpha=0.2), max_evals=60)
    """
    return core.gbqr(**options)


@ProposerAlgorithm
def ei_per_second(*, seed: int | None = None, **options: Unpack[EIPerSecondOptions]) -> Proposer:
    """Expected improvement per second: what is likely to pay off, for the time it takes.

    The expected improvement of a random forest is divided by the seconds that a LightGBM model of
    ln seconds predicts (van Hoof 2018, 5.2).

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
    """Bayesian optimisation with any surrogate: a random forest, extra trees, a Gaussian process.

    Example::

        fmin(objective, space, algo=surrogate(surrogate="random_forest"), max_evals=60)
    """
    return core.surrogate(surrogate, **options)


@ProposerAlgorithm
def tst(*, memory: AnyMemory, seed: int | None = None, **options: Unpack[TSTOptions]) -> Proposer:
    """Two-stage transfer surrogate (Wistuba 2016): earlier tasks vote while they agree.

    Useful from the first trial on.

    Arguments besides those of the recipe:
        memory: The earlier tasks: ``{name: its Trials}`` of the same search space; records of
            tasks and searches of other frameworks, in a list or by name, where trials may be among
            them; a ``MetaDataset``, a ``MetaStore``, its path or address; or the name of a bundled
            memory. The trials of this search itself are left out; trials of another space too,
            with a warning. ``"auto"`` takes the bundled memory of a learner if the labels of the
            space are its hyperparameters, by their names in the learner's library; the log names
            the memory.

    Example::

        earlier = {"monday": trials_1, "tuesday": trials_2}
        fmin(objective, space, algo=tst(memory=earlier), max_evals=30)
    """
    return core.tst(memory, **options)


@ProposerAlgorithm
def pmf(*, memory: AnyMemory, seed: int | None = None, **options: Unpack[PMFOptions]) -> Proposer:
    """Probabilistic matrix factorisation (Fusi 2018) over the configurations of a memory.

    Arguments besides those of the recipe:
        memory: See ``tst``.
    """
    return core.pmf(memory, **options)


@ProposerAlgorithm
def blended(
    *, memory: AnyMemory, seed: int | None = None, **options: Unpack[BlendedOptions]
) -> Proposer:
    """Blended optimisation (van Hoof 2018, ch. 6): a meta-learner votes first, GBQR ever more.

    The share of the meta-learner is in the document.

    Arguments besides those of the recipe:
        memory: See ``tst``.
    """
    return core.blended(memory, **options)
