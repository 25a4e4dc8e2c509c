"""Recipes that learn from the memory of earlier tasks; ``auto``, the default, also without one."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from automl_plugins import surrogates
from automl_plugins._arguments import check_flag, check_integer, level_of_caller
from automl_plugins.meta.memories import AlignedMemory
from automl_plugins.meta.recognition import task_memory
from automl_plugins.meta.sources import AUTO, Memory
from automl_plugins.meta.tasks import check_task, describe_task
from automl_plugins.meta.transfer import BlendedTemplate, TransferTemplate
from automl_plugins.proposers.acquisition import LocalSearch
from automl_plugins.proposers.committee import Committee
from automl_plugins.proposers.model_based import ModelBasedProposer
from automl_plugins.proposers.proposal import Proposer
from automl_plugins.proposers.targets import Target
from automl_plugins.proposers.with_memory import SuggestedStart, WithFallback
from automl_plugins.surrogates.base import Surrogate

from .without_memory import (
    CostArguments,
    Options,
    gbqr,
    gbqr_surrogate,
    make_proposer,
    preset_options,
)

if TYPE_CHECKING:
    from automl_plugins.meta.factorization import MatrixFactorization
    from automl_plugins.proposers.pipelines import Start
    from automl_plugins.surrogates.two_stage import Distance

_RECORDED = 3  # first evaluations of tst, chosen among the best of earlier tasks

# The committee of ``auto``: with few evaluations processes predict better, because trees need some
# to split at all.
_PRIOR = {"process": 1.5, "log process": 1.5}
# Members that noise misleads: the logarithm of the regret stretches differences near the
# luckiest loss, and trees, which average few losses, follow it, too.
_EXACT = ("trees", "log process")
# No more than a process: some memories mislead, and the suggestions are a head start already.
_PRIOR_WITH_MEMORY = _PRIOR | {"earlier tasks": 1.5}
_LOCAL_CANDIDATES = 300
_GRADIENTS = 20  # with fewer, searches of networks were worse
# With narrower plateaus a process with noise would return to the best one again and again.
_REACH = 0.2


class TransferArguments(TypedDict, total=False):
    """Own arguments of all recipes that learn from a memory, except the memory."""

    task: str | None
    meta_features: Mapping[str, float] | None
    X: Any
    y: Any


class AutoArguments(CostArguments, TransferArguments, total=False):
    """Own arguments of ``auto``, except the memory and ``per_second``."""

    n_suggested: int
    balance: int | None


class TSTArguments(TransferArguments, total=False):
    """Own arguments of ``tst``."""

    distance: Distance
    bandwidth: float | None
    paper: bool


class BlendedArguments(TransferArguments, total=False):
    """Own arguments of ``blended``."""

    surrogate: Surrogate | None
    n_suggested: int
    balance: int | None


class PMFArguments(TransferArguments, total=False):
    """Own arguments of ``pmf``."""

    model: MatrixFactorization | None
    n_start: int
    xi: float
    start: Start | None
    paper: bool


class AutoOptions(AutoArguments, Options, total=False):
    """All arguments of ``auto``, except the memory."""

    per_second: bool


class TSTOptions(TSTArguments, Options, total=False):
    """All arguments of ``tst``, except the memory."""


class BlendedOptions(BlendedArguments, Options, total=False):
    """All arguments of ``blended``, except the memory."""


class PMFOptions(PMFArguments, Options, total=False):
    """All arguments of ``pmf``, except the memory."""


def auto(
    memory: Memory | AlignedMemory | None = AUTO,
    *,
    task: str | None = None,
    meta_features: Mapping[str, float] | None = None,
    X: Any = None,
    y: Any = None,
    n_suggested: int = 5,
    per_second: bool = False,
    cost_exponent: float = 1.0,
    cost_budget: int | None = None,
    balance: int | None = 5,
    **options: Unpack[Options],
) -> Proposer:
    """Bayesian optimisation by a committee of models, drawn by how they rank this search's trials.

    Its members are the quantile boosting of ``gbqr`` and two Gaussian processes averaged over
    kernels, one of the losses and one of the logarithms of their regrets. With a memory the
    two-stage surrogate of ``tst`` and the meta-learner of ``blended`` join them, and the design
    ``diverse`` suggests the first configurations. In a long search a process of the region around
    the best evaluation has every second turn, see ``proposers.trust_region.has_region``. How
    members are trusted: ``proposers.committee``.

    Args:
        memory: The earlier tasks; ``"auto"`` takes the bundled memory of the learner whose
            hyperparameters the search space has, if there is one, see
            ``automl_plugins.meta.recognition.RecognisedMemory``; None learns from this search
            only.
        task: See ``automl_plugins.recipes.tst``.
        meta_features: Meta-features of this task; without them the meta-learner predicts the mean
            over the earlier tasks.
        X: See ``automl_plugins.recipes.tst``.
        y: See ``automl_plugins.recipes.tst``.
        n_suggested: Evaluations, of any origin, before the committee is asked; before them the
            memory suggests.
        per_second: Whether the gain is divided by the predicted seconds.
        cost_exponent: See ``automl_plugins.recipes.gbqr``.
        cost_budget: See ``automl_plugins.recipes.gbqr``.
        balance: See ``automl_plugins.recipes.gbqr``.
        **options: The arguments of ``Options``, see ``ProposerSettings``.

    Raises:
        TypeError: For a memory of the wrong type.
        MemoryMismatch: For a memory with no other task than this one, unless it is a store.
        ValueError: For an argument outside its range.
    """
    check_task(task)  # without a memory, too
    check_integer("n_suggested", n_suggested, 0)
    check_flag("per_second", per_second)
    shared: dict[str, Any] = dict(
        timed=per_second,
        cost_exponent=cost_exponent,
        cost_budget=cost_budget,
        balance=balance,
        plateau_reach=_REACH,
        **options,
    )
    own = _own_members(shared, per_second)
    near = _near_the_best(shared)
    alone = Committee(own, prior=_PRIOR, exact=_EXACT, local=near)
    if memory is None:
        if not (meta_features is None and X is None and y is None):
            warnings.warn(
                "X, y and meta_features are not used with memory=None: there are no earlier tasks"
                " to compare this one with.",
                stacklevel=level_of_caller(),
            )
        return alone
    known = task_memory(memory, task=task)
    described = describe_task(meta_features, X, y)
    # After the suggestions the members with the memory need no start design. The others, when
    # drawn, still make theirs: it makes up for a memory that misleads.
    start = shared | ({"n_startup": n_suggested} if shared.get("n_startup") is None else {})
    # With the targets of ``tst`` and ``blended``.
    votes = TransferTemplate(known)
    blend = BlendedTemplate(known, meta_features=described)
    members = own | {
        "earlier tasks": make_proposer(votes, target="raw", **start),
        "meta-learner": make_proposer(blend, target="normal_scores", **start),
    }
    suggested = SuggestedStart(
        known,
        Committee(members, prior=_PRIOR_WITH_MEMORY, exact=_EXACT, local=near),
        n_suggested=n_suggested,
        meta_features=described,
    )
    return WithFallback(suggested, alone, memory=known)


def _own_members(shared: dict[str, Any], per_second: bool) -> dict[str, ModelBasedProposer]:
    """The members that learn from this search only.

    One process models the losses, which is best where they are smooth; the other the logarithm of
    their regret, for losses that differ by orders of magnitude.
    """
    targets: dict[str, Target] = {"process": "standardize", "log process": "log_regret"}
    trees = gbqr_surrogate(per_second=per_second)
    return {"trees": make_proposer(trees, target="normal_scores", **shared)} | {
        name: make_proposer(
            surrogates.AveragedProcess(),
            target=target,
            incumbent="predicted",
            search=LocalSearch(n_gradients=_GRADIENTS),
            **shared,
        )
        for name, target in targets.items()
    }


def _near_the_best(shared: dict[str, Any]) -> ModelBasedProposer:
    """The proposer for the region around the best trial of a long search."""
    n_candidates = shared.get("n_candidates") or _LOCAL_CANDIDATES
    return make_proposer(
        surrogates.LocalProcess(),
        target="standardize",
        incumbent="predicted",
        feasible_only=True,  # the region is that of the best row which breaks no constraint
        # Steps from observed configurations are shares of the whole range and would leave it.
        search=LocalSearch(n_observed=0, n_candidates=0, n_gradients=_GRADIENTS),
        **(shared | {"n_candidates": n_candidates}),
    )


def tst(
    memory: Memory | AlignedMemory,
    *,
    task: str | None = None,
    meta_features: Mapping[str, float] | None = None,
    X: Any = None,
    y: Any = None,
    distance: Distance = "ranks",
    bandwidth: float | None = None,
    paper: bool = False,
    **options: Unpack[Options],
) -> WithFallback:
    """Two-stage transfer (Wistuba 2016): the processes of earlier tasks vote while they agree.

    Far from its records a process may predict lower losses than any recorded one. So where, in the
    first three evaluations, the tasks promise nearly their best losses or better, one of their
    best recorded configurations is chosen instead. The paper chooses among all configurations.

    Args:
        memory: The earlier tasks.
        task: Name of this task; its own runs in the memory are left out.
        meta_features: Meta-features of this task, for ``distance="meta_features"``.
        X: Data of this task instead, from which meta-features are computed.
        y: The target of this data.
        distance: ``"ranks"`` (TST-R) or ``"meta_features"`` (TST-M).
        bandwidth: Distance from which a task has no vote; None for 0.3 (ranks) or 0.69
            (meta-features).
        paper: Whether to follow the authors: the surrogate is ``TwoStageTransfer.paper``, whose
            docstring says what still differs, refitted after every evaluation; failures are not
            learnt (``failed_trials="ignore"``), constraints are, if there are any. Where the
            authors predict a whole grid, spaces of more than ``n_candidates=1000`` configurations
            are searched by random configurations and local search.
        **options: The arguments of ``Options``, see ``ProposerSettings``.

    Raises:
        TypeError: For a memory of the wrong type.
        MemoryMismatch: For a memory with no other task than this one, unless it is a store.
        ValueError: For an argument outside its range.
    """
    settings: dict[str, Any] = {"n_recorded": _RECORDED}
    # The fallback does not take the options of the paper, which are added below.
    plain = gbqr(**options)
    if paper:
        own = Options(n_candidates=1000, max_rows=None, failed_trials="ignore")
        options = preset_options(options, **own)
        settings = {"refit": "always", "plateau_reach": None}
    known = task_memory(memory, task=task)
    template = TransferTemplate(
        known,
        paper=paper,
        distance=distance,
        bandwidth=bandwidth,
        meta_features=describe_task(meta_features, X, y),
    )
    # Raw, because the surrogate itself brings the votes to the scale of the losses.
    proposer = make_proposer(template, target="raw", informed=True, **settings, **options)
    return WithFallback(proposer, plain, memory=known)


def blended(
    memory: Memory | AlignedMemory,
    *,
    task: str | None = None,
    meta_features: Mapping[str, float] | None = None,
    X: Any = None,
    y: Any = None,
    surrogate: Surrogate | None = None,
    n_suggested: int = 5,
    balance: int | None = 5,
    **options: Unpack[Options],
) -> WithFallback:
    """Blended optimisation (thesis ch. 6): the memory decides first, GBQR more and more.

    The design ``diverse`` suggests the first configurations; then the meta-learner and GBQR vote.

    Args:
        memory: The earlier tasks.
        task: Name of this task; its own runs in the memory are left out.
        meta_features: Meta-features of this task; without them the meta-learner predicts the mean
            over the earlier tasks.
        X: See ``tst``.
        y: See ``tst``.
        surrogate: The surrogate whose vote grows with the trials; None takes the one of ``gbqr``.
        n_suggested: Evaluations before the vote; 0 begins with the meta-learner.
        balance: See ``ProposerSettings``.
        **options: The arguments of ``Options``, see ``ProposerSettings``.

    Raises:
        TypeError: For a memory of the wrong type.
        MemoryMismatch: For a memory with no other task than this one, unless it is a store.
        ValueError: For an argument outside its range.
    """
    known = task_memory(memory, task=task)
    described = describe_task(meta_features, X, y)
    template = BlendedTemplate(known, surrogate, meta_features=described)
    voted = make_proposer(
        template, target="normal_scores", informed=True, balance=balance, **options
    )
    start = SuggestedStart(known, voted, n_suggested=n_suggested, meta_features=described)
    return WithFallback(start, gbqr(balance=balance, **options), memory=known)


def pmf(
    memory: Memory | AlignedMemory,
    *,
    task: str | None = None,
    meta_features: Mapping[str, float] | None = None,
    X: Any = None,
    y: Any = None,
    model: MatrixFactorization | None = None,
    n_start: int = 5,
    xi: float = 0.01,
    start: Start | None = None,
    paper: bool = False,
    **options: Unpack[Options],
) -> WithFallback:
    """Probabilistic matrix factorisation (Fusi 2018) over the configurations of a memory.

    Args:
        memory: The earlier tasks.
        task: Name of this task; its own runs in the memory are left out.
        meta_features: Meta-features of this task; without them the start is the same for all.
        X: See ``tst``.
        y: See ``tst``.
        model: Settings of the factorisation, or one fitted on this memory; None takes the default.
        n_start: Configurations proposed before the model is asked.
        xi: Improvement, in the range of the losses, below which EI gains nothing; of the losses
            themselves with ``paper=True``.
        start: ``"portfolio"`` or ``"nearest"``, see ``PipelineProposer``; None is the portfolio,
            the nearest for the paper.
        paper: Whether to follow the authors: the start, and ``MatrixFactorization.paper``, whose
            docstring says what it leaves open and which losses it expects. What still differs:
            failed evaluations count as the worst, not as missing, and configurations that are
            likely to fail are left out; losses far above all others are moved closer, and losses
            of a memory whose tasks hardly share configurations are estimated on [0, 1]; expected
            improvement divides by the standard deviation where the paper prints the variance;
            running evaluations count; after the known configurations GBQR continues.
        **options: The arguments of ``Options``, for the search after all known configurations.

    Raises:
        TypeError: For a memory of the wrong type.
        MemoryMismatch: For a memory with no other task than this one, unless it is a store.
        ValueError: For an argument outside its range.
    """
    # Here, because they take longer to import than all that the other recipes need.
    from automl_plugins.meta.factorization import MatrixFactorization
    from automl_plugins.proposers.pipelines import PipelineProposer

    if paper and model is None:
        model = MatrixFactorization.paper()
    # The plain proposer is asked after the last pipeline, and if the memory does not fit.
    known, plain = task_memory(memory, task=task), gbqr(**options)
    pipelines = PipelineProposer(
        known,
        fallback=plain,
        model=model,
        meta_features=describe_task(meta_features, X, y),
        n_start=n_start,
        xi=xi,
        start=("nearest" if paper else "portfolio") if start is None else start,
    )
    return WithFallback(pipelines, plain, memory=known)
