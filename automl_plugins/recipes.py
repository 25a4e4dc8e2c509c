"""The methods by name, each a set of parts: what every framework's classes are made of.

All recipes take ``n_startup``, ``n_candidates`` and ``failed_trials`` of ``ProposerSettings`` and
``ModelSettings``, and ``max_rows``. The presets that follow a source (``gbqr_thesis``,
``paper=True``) have defaults of their own for these; None stands for them.
"""

from __future__ import annotations

from collections.abc import Mapping
from inspect import signature
from typing import TYPE_CHECKING, Any, Literal, TypedDict, cast, get_args

from automl_plugins._arguments import at_least, one_of
from automl_plugins.meta.memories import Memory
from automl_plugins.meta.task_memory import AlignedMemory, task_memory
from automl_plugins.meta.transfer import TransferTemplate
from automl_plugins.proposers.fallback import WithFallback
from automl_plugins.proposers.maximizer import SMAC_SEARCH
from automl_plugins.proposers.model_based import ModelBasedProposer, ProposerSettings
from automl_plugins.proposers.models import FailedTrials, ModelSettings
from automl_plugins.proposers.suggested_start import SuggestedStart
from automl_plugins.proposers.targets import TARGETS, Target
from automl_plugins.surrogates import (
    DistanceAware,
    ExtraTrees,
    GaussianProcess,
    QuantileBoosting,
    RandomForest,
)
from automl_plugins.surrogates.two_stage import Distance

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from automl_plugins.meta.factorization import MatrixFactorization
    from automl_plugins.proposers.pipelines import Start as PipelineStart

SURROGATES: dict[str, Any] = {
    "quantile_boosting": QuantileBoosting,
    "random_forest": RandomForest,
    "extra_trees": ExtraTrees,
    "gaussian_process": GaussianProcess,
}
AcquisitionName = Literal["ei", "ei_per_second", "bound", "bound_per_second"]
Startup = Literal["design", "random"]

_FLOOR = 0.1  # of the losses' standard deviation; SMAC's forest has the same variance floor
_RECORDED = 3  # first evaluations of tst, chosen among the best of earlier tasks


class Options(TypedDict, total=False):
    """What all recipes take."""

    n_startup: int | None
    n_candidates: int | None
    max_rows: int | None
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
    thesis: bool = False,
    **options: Unpack[Options],
) -> ModelBasedProposer:
    """Bayesian optimisation by gradient boosting with quantile regression (van Hoof 2018).

    Args:
        alpha: Quantile of the loss in (0, 1) that the models predict.
        n_models: Bootstrap models.
        doubt: Standard deviation far from all evaluations, in that of the losses; >= 0.
        balance: See ``ProposerSettings``.
        per_second: Whether the gain is divided by the predicted seconds.
        cost_exponent: See ``ProposerSettings``; used per second only.
        cost_budget: See ``ProposerSettings``.
        thesis: Whether to take the method as published, ``gbqr_thesis``; of the arguments above
            it has ``per_second`` only.
        **options: See above.

    Raises:
        ValueError: For an argument outside its range, or one that the thesis does not have.
    """
    if thesis:
        given = dict(
            alpha=alpha,
            n_models=n_models,
            doubt=doubt,
            balance=balance,
            cost_exponent=cost_exponent,
            cost_budget=cost_budget,
        )
        defaults = signature(gbqr).parameters
        foreign = [name for name, value in given.items() if value != defaults[name].default]
        if foreign:
            raise ValueError(
                f"thesis=True takes no {', '.join(foreign)}: the thesis has one model of its own"
                " settings. Leave it out, or leave out thesis=True."
            )
        return gbqr_thesis(per_second=per_second, **options)
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


def gbqr_thesis(*, per_second: bool = False, **options: Unpack[Options]) -> ModelBasedProposer:
    """GBQR as published (thesis 5.3): one model of alpha = 0.9 of the score (0.1 of the loss).

    100 trees of 8 leaves, fitted anew on all rows after each evaluation; three random evaluations
    first (``n_startup=3``); the predicted bound is the acquisition. In a space of at most 10 000
    configurations (``n_candidates=10_000``) all that are left are predicted, as in the thesis's
    simulation. In a larger one the best is searched as its chapter 2.5.2 says of SMAC: 10 000
    random configurations, and local searches from the ten evaluated ones of the best bound.
    Failures are not learnt (``failed_trials="ignore"``), nor is the number of rows limited
    (``max_rows=None``).

    What differs from the thesis:

    * LightGBM's defaults of 20 rows in a leaf and 3 in a bin are 1: with them every prediction is
      constant up to 40 rows.
    * Losses are standardised before the fit, which moves no quantile but by rounding; the best
      of equal bounds is drawn at random, where the thesis does not say.
    * Per second (GBQR-median, eq. 5.2) the bound is divided by true seconds instead of their
      logarithm, which is negative below one second; bounds below the median are worth nothing
      instead of less than nothing.
    * Numbers are on the scale of the search space and categories one-hot; no configuration is
      evaluated twice; with several workers running evaluations repel; a pruned evaluation
      counts as one of the worse half.
    """
    options = _preset(options, n_startup=3, n_candidates=10_000, max_rows=None, failed="ignore")
    return made(
        QuantileBoosting.thesis(),
        target="raw",
        timed=per_second,
        acquisition="bound",
        cost_exponent=1.0 if per_second else 0.0,
        uniform_start=True,
        refit="always",
        search=SMAC_SEARCH,
        leave_plateaus=False,
        **options,
    )


def surrogate(
    surrogate: str | Any = "quantile_boosting",
    *,
    acquisition: AcquisitionName = "ei",
    interleave: int | None = None,
    balance: int | None = None,
    xi: float = 0.0,
    beta: float = 1.0,
    target: Target = "log_regret",
    cost_exponent: float = 1.0,
    cost_budget: int | None = None,
    startup: Startup = "design",
    **options: Unpack[Options],
) -> ModelBasedProposer:
    """Bayesian optimisation with any surrogate.

    Args:
        surrogate: ``"quantile_boosting"``, ``"random_forest"``, ``"extra_trees"``,
            ``"gaussian_process"``, or an object with ``fit(X, y)`` and ``predict(X)``, the latter
            returning (mean, std) or a bound of the loss.
        acquisition: ``"ei"``, ``"bound"`` (lower confidence bound of the loss), or either with
            ``"_per_second"``.
        interleave: See ``ProposerSettings``; at least 2.
        balance: See ``ProposerSettings``; at least 2.
        xi: Improvement below which EI gains nothing, in units of the transformed loss.
        beta: Standard deviations between the predicted mean and the bound.
        target: Transform of the losses, see ``automl_plugins.proposers.targets``.
        cost_exponent: See ``ProposerSettings``; used per second only.
        cost_budget: See ``ProposerSettings``.
        startup: ``"design"`` fills the space and visits every branch, ``"random"`` draws.
        **options: See above.

    Raises:
        ValueError: For an argument outside its range.
        TypeError: For a surrogate without ``fit`` and ``predict``.
    """
    at_least("interleave", interleave, 2)
    at_least("balance", balance, 2)
    at_least("xi", xi, 0)
    at_least("beta", beta, 0)
    one_of("acquisition", acquisition, get_args(AcquisitionName))
    one_of("startup", startup, get_args(Startup))
    one_of("target", target, TARGETS)
    timed = acquisition.endswith("_per_second")
    if not 0.0 <= cost_exponent <= 1.0:
        raise ValueError(f"cost_exponent must lie in [0, 1], got {cost_exponent!r}.")
    return made(
        _resolve(surrogate),
        target=target,
        timed=timed,
        acquisition="ei" if acquisition.startswith("ei") else "bound",
        xi=xi,
        beta=beta,
        cost_exponent=cost_exponent if timed else 0.0,
        cost_budget=cost_budget,
        interleave=interleave,
        balance=balance,
        uniform_start=startup == "random",
        **options,
    )


def ei_per_second(
    *, cost_exponent: float = 1.0, cost_budget: int | None = None, **options: Unpack[Options]
) -> ModelBasedProposer:
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
    memory: Memory | AlignedMemory,
    *,
    task: str | None = None,
    meta_features: Mapping[str, float] | None = None,
    distance: Distance = "ranks",
    bandwidth: float | None = None,
    paper: bool = False,
    **options: Unpack[Options],
) -> WithFallback:
    """Two-stage transfer (Wistuba 2016): the processes of earlier tasks vote while they agree.

    Where nothing was recorded a process can promise more than any task ever gave. If in the first
    three evaluations the tasks promise nearly their best or better, the best recorded
    configuration of each is chosen among instead. The paper chooses among all.

    Args:
        memory: The earlier tasks.
        task: Name of this task; its own runs in the memory are left out.
        meta_features: Those of this task, for ``distance="meta_features"``.
        distance: ``"ranks"`` (TST-R) or ``"meta_features"`` (TST-M).
        bandwidth: See ``TwoStageTransfer``.
        paper: Whether to follow the authors: the surrogate is ``TwoStageTransfer.paper``, which
            says what still differs, conditioned anew on every evaluation; failures are not
            learnt (``failed_trials="ignore"``). Where the authors predict a whole grid, spaces of
            more than ``n_candidates=1000`` configurations are searched by random configurations
            and local search.
        **options: See above.

    Raises:
        TypeError: For what is no memory.
        MemoryMismatch: For a memory without another task.
        ValueError: For an argument outside its range.
    """
    settings: dict[str, Any] = {"n_recorded": _RECORDED}
    plain = gbqr(**options)
    if paper:
        options = _preset(options, n_candidates=1000, max_rows=None, failed="ignore")
        settings = {"refit": "always", "leave_plateaus": False}
    known = task_memory(memory, task=task)
    template = TransferTemplate(
        known,
        paper=paper,
        distance=distance,
        bandwidth=bandwidth,
        meta_features=meta_features,
    )
    proposer = made(template, target="raw", informed=True, **settings, **options)
    return WithFallback(proposer, plain, memory=known)


def blended(
    memory: Memory | AlignedMemory,
    *,
    task: str | None = None,
    meta_features: Mapping[str, float] | None = None,
    surrogate: Any = None,
    n_suggested: int = 5,
    balance: int | None = 5,
    **options: Unpack[Options],
) -> WithFallback:
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
        MemoryMismatch: For a memory without another task.
        ValueError: For an argument outside its range.
    """
    from automl_plugins.meta.blending import BlendedTemplate

    known = task_memory(memory, task=task)
    template = BlendedTemplate(
        known, boosted() if surrogate is None else surrogate, meta_features=meta_features
    )
    voted = made(template, target="normal_scores", informed=True, balance=balance, **options)
    start = SuggestedStart(known, voted, n_suggested=n_suggested, meta_features=meta_features)
    return WithFallback(start, gbqr(**options), memory=known)


def pmf(
    memory: Memory | AlignedMemory,
    *,
    task: str | None = None,
    meta_features: Mapping[str, float] | None = None,
    model: MatrixFactorization | None = None,
    n_start: int = 5,
    xi: float = 0.01,
    start: PipelineStart | None = None,
    paper: bool = False,
    **options: Unpack[Options],
) -> WithFallback:
    """Probabilistic matrix factorisation (Fusi 2018) over the configurations of a memory.

    Args:
        memory: The earlier tasks.
        task: Name of this task; its own runs in the memory are left out.
        meta_features: Those of this task; without them the start is the same for all tasks.
        model: Settings of the factorisation, or one fitted on this memory; None takes the default.
        n_start: Configurations that are proposed before the model is asked.
        xi: Improvement below which EI gains nothing.
        start: ``"portfolio"`` or ``"nearest"``, see ``PipelineProposer``; None is the portfolio,
            the nearest for the paper.
        paper: Whether to follow the authors: the start, and ``MatrixFactorization.paper``, which
            says what it leaves open and what losses it expects. What still differs: a failed
            evaluation counts as the worst instead of as missing; expected improvement divides by
            the standard deviation where the paper prints the variance; running evaluations
            count; after the known configurations GBQR continues.
        **options: See above; for the search after all known configurations are evaluated.

    Raises:
        TypeError: For what is no memory.
        MemoryMismatch: For a memory without another task.
        ValueError: For an argument outside its range.
    """
    from automl_plugins.meta.factorization import MatrixFactorization
    from automl_plugins.proposers.pipelines import PipelineProposer

    if paper and model is None:
        model = MatrixFactorization.paper()
    known, plain = task_memory(memory, task=task), gbqr(**options)
    pipelines = PipelineProposer(
        known,
        fallback=plain,
        model=model,
        meta_features=meta_features,
        n_start=n_start,
        xi=xi,
        start=("nearest" if paper else "portfolio") if start is None else start,
    )
    return WithFallback(pipelines, plain, memory=known)


def made(
    surrogate: Any,
    *,
    target: Target,
    timed: bool = False,
    max_rows: int | None = 500,
    failed_trials: FailedTrials = "avoid",
    n_startup: int | None = None,
    n_candidates: int | None = None,
    **settings: Any,
) -> ModelBasedProposer:
    """A proposer with this surrogate; further arguments are those of ``ProposerSettings``.

    Raises:
        ValueError: For an option outside its range.
    """
    at_least("n_candidates", n_candidates, 1)
    at_least("max_rows", max_rows, 2)
    at_least("n_startup", n_startup, 0)
    at_least("balance", settings.get("balance"), 1)
    at_least("cost_budget", settings.get("cost_budget"), 1)
    if not 0.0 <= settings.get("cost_exponent", 0.0) <= 1.0:
        raise ValueError(f"cost_exponent must lie in [0, 1], got {settings['cost_exponent']!r}.")
    one_of("failed_trials", failed_trials, get_args(FailedTrials))
    models = ModelSettings(
        surrogate=surrogate,
        target=target,
        max_rows=max_rows,
        failed_trials=failed_trials,
        timed=timed,
    )
    return ModelBasedProposer(
        ProposerSettings(models=models, n_startup=n_startup, n_candidates=n_candidates, **settings)
    )


def _preset(
    options: Options,
    *,
    n_candidates: int,
    max_rows: int | None,
    failed: FailedTrials,
    n_startup: int | None = None,
) -> Options:
    """The options of a preset, replaced by those given; None is none given."""
    own = Options(
        n_startup=n_startup,
        n_candidates=n_candidates,
        max_rows=max_rows,
        failed_trials=failed,
    )
    given = {name: value for name, value in options.items() if value is not None}
    return cast("Options", own | given)


def _resolve(surrogate: Any) -> Any:
    """An instance of the surrogate."""
    if isinstance(surrogate, str):
        one_of("surrogate", surrogate, tuple(SURROGATES))
        return SURROGATES[surrogate]()
    for method in ("fit", "predict"):
        if isinstance(surrogate, type) or not callable(getattr(surrogate, method, None)):
            raise TypeError(
                f"surrogate must be one of {sorted(SURROGATES)} or an object with fit(X, y) and"
                f" predict(X), got {surrogate!r} without a usable {method}."
            )
    return surrogate
