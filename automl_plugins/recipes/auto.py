"""The method to use by default: a committee of the models of the other recipes."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any, Unpack

from automl_plugins import surrogates
from automl_plugins._arguments import check_flag, check_integer, level_of_caller
from automl_plugins.meta.memories import AlignedMemory
from automl_plugins.meta.recognition import task_memory
from automl_plugins.meta.sources import AUTO, Memory
from automl_plugins.meta.tasks import describe_task
from automl_plugins.meta.transfer import BlendedTemplate, TransferTemplate
from automl_plugins.proposers.acquisition import LocalSearch
from automl_plugins.proposers.committee import Committee
from automl_plugins.proposers.model_based import ModelBasedProposer
from automl_plugins.proposers.proposal import Proposer
from automl_plugins.proposers.targets import Target
from automl_plugins.proposers.with_memory import SuggestedStart, WithFallback

from .with_memory import TransferArguments
from .without_memory import CostArguments, Options, gbqr_surrogate, make_proposer

# With few evaluations processes predict better: trees need some to split at all.
_PRIOR = {"process": 1.5, "log process": 1.5}
# Of noisy losses the logarithm of the regret is that of the luckiest one, and trees, which average
# few of them, follow it, too.
_EXACT = ("trees", "log process")
# No more than a process: some memories mislead, and the suggestions are a head start already.
_PRIOR_WITH_MEMORY = _PRIOR | {"earlier tasks": 1.5}
_GRADIENTS = 20  # with fewer, searches of networks were worse
# With narrower plateaus a process with noise would return to the best one again and again.
_REACH = 0.2


class AutoArguments(CostArguments, TransferArguments, total=False):
    """Own arguments of ``auto``, except the memory and ``per_second``."""

    n_suggested: int
    balance: int | None


class AutoOptions(AutoArguments, Options, total=False):
    """All arguments of ``auto``, except the memory."""

    per_second: bool


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
    ``diverse`` suggests the first configurations. See ``automl_plugins.proposers.committee`` for
    how members are trusted.

    Args:
        memory: The earlier tasks; ``"auto"`` takes the bundled memory of the learner whose
            hyperparameters the search space has, if there is one, see
            ``automl_plugins.meta.recognition.RecognisedMemory``; None learns from this search
            only.
        task: See ``automl_plugins.recipes.tst``.
        meta_features: Those of this task; without them the meta-learner predicts the mean over the
            earlier tasks.
        X: See ``automl_plugins.recipes.tst``.
        y: See ``automl_plugins.recipes.tst``.
        n_suggested: Evaluations, of any origin, before the committee is asked; while there are
            fewer, the memory suggests.
        per_second: Whether the gain is divided by the predicted seconds.
        cost_exponent: See ``automl_plugins.recipes.gbqr``.
        cost_budget: See ``automl_plugins.recipes.gbqr``.
        balance: See ``automl_plugins.recipes.gbqr``.
        **options: Those of ``Options``, see ``ProposerSettings``.

    Raises:
        TypeError: For a memory of the wrong type.
        MemoryMismatch: For a memory without another task, unless it is a store.
        ValueError: For an argument outside its range.
    """
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
    alone = Committee(own, prior=_PRIOR, exact=_EXACT)
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
        Committee(members, prior=_PRIOR_WITH_MEMORY, exact=_EXACT),
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
