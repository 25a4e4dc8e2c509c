"""The methods by name, each a set of parts: what every framework's classes are made of.

All recipes take ``n_startup``, ``n_candidates`` and ``failed_trials`` of ``ProposerSettings`` and
``ModelSettings``, and ``max_rows``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypedDict, get_args

from automl_plugins.meta.memories import Memory
from automl_plugins.meta.suggested_start import SuggestedStart
from automl_plugins.meta.task_memory import AnyTaskMemory, task_memory
from automl_plugins.models import FailedTrials, ModelSettings
from automl_plugins.proposer import Proposer, ProposerSettings
from automl_plugins.surrogates import DistanceAware, QuantileBoosting, RandomForest
from automl_plugins.surrogates.transfer import TransferTemplate
from automl_plugins.surrogates.two_stage import Distance
from automl_plugins.targets import Target

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from automl_plugins.meta.factorization import MatrixFactorization
    from automl_plugins.meta.pipeline_proposer import PipelineProposer

_FLOOR = 0.1  # of the losses' standard deviation; SMAC's forest has the same variance floor


class Options(TypedDict, total=False):
    """What all recipes take."""

    n_startup: int | None
    n_candidates: int | None
    max_rows: int
    failed_trials: FailedTrials


def gbqr(
    *,
    alpha: float = 0.3,
    n_models: int = 5,
    doubt: float = 0.6,
    balance: int | None = 5,
    per_second: bool = False,
    cost_exponent: float = 1.0,
    cost_budget: int | None = None,
    **options: Unpack[Options],
) -> Proposer:
    """Bayesian optimisation by gradient boosting with quantile regression (van Hoof 2018).

    Args:
        alpha: Quantile of the loss in (0, 1) that the models predict.
        n_models: Bootstrap models.
        doubt: Standard deviation far from all evaluations, in that of the losses; >= 0.
        balance: See ``ProposerSettings``.
        per_second: Whether the gain is divided by the predicted seconds.
        cost_exponent: See ``ProposerSettings``; used per second only.
        cost_budget: See ``ProposerSettings``.
        **options: See above.

    Raises:
        ValueError: For an argument outside its range.
    """
    return made(
        boosted(alpha=alpha, n_models=n_models, doubt=doubt, per_second=per_second),
        target="normal_scores",
        timed=per_second,
        balance=balance,
        cost_exponent=cost_exponent if per_second else 0.0,
        cost_budget=cost_budget,
        **options,
    )


def boosted(
    *, alpha: float = 0.3, n_models: int = 5, doubt: float = 0.6, per_second: bool = False
) -> DistanceAware:
    """The surrogate of ``gbqr``, for losses as normal scores."""
    models = QuantileBoosting(alpha=alpha, n_models=n_models)
    models.check_arguments()
    return DistanceAware(models, strength=doubt, floor=_FLOOR if per_second else 0.0)


def gbqr_thesis(*, per_second: bool = False, **options: Unpack[Options]) -> Proposer:
    """GBQR as in thesis 5.3.2: one model of alpha = 0.9 of the score (0.1 of the loss).

    100 trees of 8 leaves, three random starts; the predicted bound is the acquisition. Per second
    it is GBQR-median (thesis eq. 5.2), in true seconds.
    """
    options.setdefault("n_startup", 3)
    return made(
        QuantileBoosting.thesis(),
        target="raw",
        timed=per_second,
        acquisition="bound",
        cost_exponent=1.0 if per_second else 0.0,
        uniform_start=True,
        **options,
    )


def ei_per_second(
    *, cost_exponent: float = 1.0, cost_budget: int | None = None, **options: Unpack[Options]
) -> Proposer:
    """Expected improvement of a random forest, for the seconds that it takes (thesis 5.2)."""
    return made(
        DistanceAware(RandomForest(), floor=_FLOOR),
        target="log_regret",
        timed=True,
        cost_exponent=cost_exponent,
        cost_budget=cost_budget,
        **options,
    )


def tst(
    memory: Memory | AnyTaskMemory,
    *,
    task: str | None = None,
    meta_features: Mapping[str, float] | None = None,
    distance: Distance = "ranks",
    bandwidth: float | None = None,
    paper: bool = False,
    **options: Unpack[Options],
) -> Proposer:
    """Two-stage transfer (Wistuba 2016): the processes of earlier tasks vote while they agree.

    Args:
        memory: The earlier tasks.
        task: Name of this task; its own runs in the memory are left out.
        meta_features: Those of this task, for ``distance="meta_features"``.
        distance: ``"ranks"`` (TST-R) or ``"meta_features"`` (TST-M).
        bandwidth: See ``TwoStageTransfer``.
        paper: Whether to follow the authors in everything, see ``TwoStageTransfer.paper``.
        **options: See above.

    Raises:
        TypeError: For what is no memory.
        ValueError: For a memory without another task, or an argument outside its range.
    """
    template = TransferTemplate(
        task_memory(memory, task=task),
        paper=paper,
        distance=distance,
        bandwidth=bandwidth,
        meta_features=meta_features,
    )
    return made(template, target="raw", informed=True, **options)


def blended(
    memory: Memory | AnyTaskMemory,
    *,
    task: str | None = None,
    meta_features: Mapping[str, float] | None = None,
    surrogate: Any = None,
    n_suggested: int = 5,
    balance: int | None = 5,
    **options: Unpack[Options],
) -> SuggestedStart:
    """Blended optimisation (thesis ch. 6): the memory decides first, GBQR more and more.

    The design ``diverse`` suggests the first configurations; then the meta-learner and GBQR vote.

    Args:
        memory: The earlier tasks.
        task: Name of this task; its own runs in the memory are left out.
        meta_features: Those of this task; without them the meta-learner predicts their mean.
        surrogate: What votes more and more; None takes that of ``gbqr``.
        n_suggested: Evaluations before anything is voted on; 0 begins with the meta-learner.
        balance: See ``ProposerSettings``.
        **options: See above.

    Raises:
        TypeError: For what is no memory.
        ValueError: For a memory without another task, or an argument outside its range.
    """
    from automl_plugins.surrogates.blending import BlendedTemplate

    known = task_memory(memory, task=task)
    template = BlendedTemplate(
        known, boosted() if surrogate is None else surrogate, meta_features=meta_features
    )
    voted = made(template, target="normal_scores", informed=True, balance=balance, **options)
    return SuggestedStart(known, voted, n_suggested=n_suggested, meta_features=meta_features)


def pmf(
    memory: Memory | AnyTaskMemory,
    *,
    task: str | None = None,
    meta_features: Mapping[str, float] | None = None,
    model: MatrixFactorization | None = None,
    n_start: int = 5,
    xi: float = 0.01,
    **options: Unpack[Options],
) -> PipelineProposer:
    """Probabilistic matrix factorisation (Fusi 2018) over the configurations of a memory.

    Args:
        memory: The earlier tasks.
        task: Name of this task; its own runs in the memory are left out.
        meta_features: Those of this task; without them the start is the same for all tasks.
        model: Settings of the factorisation, or one fitted on this memory; None takes the default.
        n_start: Configurations that are proposed before the model is asked.
        xi: Improvement below which EI gains nothing.
        **options: See above; for the search after all known configurations are evaluated.

    Raises:
        TypeError: For what is no memory.
        ValueError: For a memory without another task, or an argument outside its range.
    """
    from automl_plugins.meta.pipeline_proposer import PipelineProposer

    return PipelineProposer(
        task_memory(memory, task=task),
        model=model,
        meta_features=meta_features,
        n_start=n_start,
        xi=xi,
        fallback=gbqr(**options),
    )


def made(
    surrogate: Any,
    *,
    target: Target,
    timed: bool = False,
    max_rows: int = 500,
    failed_trials: FailedTrials = "avoid",
    n_startup: int | None = None,
    n_candidates: int | None = None,
    **settings: Any,
) -> Proposer:
    """A proposer with this surrogate; further arguments are those of ``ProposerSettings``.

    Raises:
        ValueError: For an option outside its range.
    """
    _at_least("n_candidates", n_candidates, 1)
    _at_least("max_rows", max_rows, 2)
    _at_least("n_startup", n_startup, 0)
    _at_least("balance", settings.get("balance"), 1)
    _at_least("cost_budget", settings.get("cost_budget"), 1)
    if not 0.0 <= settings.get("cost_exponent", 0.0) <= 1.0:
        raise ValueError(f"cost_exponent must lie in [0, 1], got {settings['cost_exponent']!r}.")
    if failed_trials not in get_args(FailedTrials):
        told = ", ".join(map(repr, get_args(FailedTrials)))
        raise ValueError(f"failed_trials must be one of {told}, got {failed_trials!r}.")
    models = ModelSettings(
        surrogate=surrogate,
        target=target,
        max_rows=max_rows,
        failed_trials=failed_trials,
        timed=timed,
    )
    return Proposer(
        ProposerSettings(models=models, n_startup=n_startup, n_candidates=n_candidates, **settings)
    )


def _at_least(name: str, value: float | None, low: int) -> None:
    """Raise a ValueError for a value below ``low``; None is legal."""
    if value is not None and not value >= low:
        raise ValueError(f"{name} must be >= {low}, got {value!r}.")
