"""Recipes that learn from this search only, and the helpers of all recipes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from inspect import signature
from typing import TYPE_CHECKING, Any, Literal, TypedDict, Unpack, cast, get_args

from automl_plugins import surrogates
from automl_plugins._arguments import check_choice, check_finite, check_flag, refuse_foreign
from automl_plugins.proposers.acquisition import SMAC_SEARCH
from automl_plugins.proposers.model_based import ModelBasedProposer, ProposerSettings
from automl_plugins.proposers.models import FailedTrials
from automl_plugins.proposers.targets import Target
from automl_plugins.surrogates.base import Surrogate, SurrogateTemplate, check_surrogate

if TYPE_CHECKING:
    from automl_plugins.surrogates import DistanceAware

# Functions, so that the module of a surrogate is imported only when one is made.
SURROGATES: dict[str, Callable[[], Surrogate]] = {
    "quantile_boosting": lambda: surrogates.QuantileBoosting(),
    "random_forest": lambda: surrogates.RandomForest(),
    "extra_trees": lambda: surrogates.ExtraTrees(),
    "gaussian_process": lambda: surrogates.GaussianProcess(),
    "averaged_process": lambda: surrogates.AveragedProcess(),
}
AcquisitionName = Literal["ei", "ei_per_second", "bound", "bound_per_second"]
Startup = Literal["design", "random"]

_FLOOR = 0.1  # of the losses' standard deviation; SMAC's forest has the same variance floor


class Options(TypedDict, total=False):
    """Arguments of all recipes, see ``ProposerSettings``."""

    n_startup: int | None
    n_candidates: int | None
    max_rows: int | None
    failed_trials: FailedTrials


class CostArguments(TypedDict, total=False):
    """Arguments of all recipes that divide by seconds."""

    cost_exponent: float
    cost_budget: int | None


class GBQRArguments(CostArguments, total=False):
    """Own arguments of ``gbqr``, except ``per_second``."""

    alpha: float
    n_models: int
    doubt: float
    balance: int | None
    thesis: bool


class SurrogateArguments(CostArguments, total=False):
    """Own arguments of ``surrogate``, except the surrogate itself."""

    acquisition: AcquisitionName
    interleave: int | None
    balance: int | None
    xi: float
    beta: float
    target: Target
    startup: Startup


class GBQROptions(GBQRArguments, Options, total=False):
    """All arguments of ``gbqr``."""

    per_second: bool


class EIPerSecondOptions(CostArguments, Options, total=False):
    """All arguments of ``ei_per_second``."""


class SurrogateOptions(SurrogateArguments, Options, total=False):
    """All arguments of ``surrogate``, except the surrogate itself."""


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
        doubt: Standard deviation added far from all evaluations, as a share of that of the losses;
            >= 0.
        balance: See ``ProposerSettings``.
        per_second: Whether the gain is divided by the predicted seconds.
        cost_exponent: See ``ProposerSettings``.
        cost_budget: See ``ProposerSettings``.
        thesis: Whether to take the method as published, ``gbqr_thesis``; of the arguments above
            it takes only ``per_second``.
        **options: The arguments of ``Options``, see ``ProposerSettings``.

    Raises:
        ValueError: For an argument outside its range, or one that ``thesis=True`` does not take.
    """
    check_flag("thesis", thesis)
    check_flag("per_second", per_second)
    models: dict[str, Any] = dict(alpha=alpha, n_models=n_models, doubt=doubt)
    settings = dict(balance=balance, cost_exponent=cost_exponent, cost_budget=cost_budget)
    if thesis:
        defaults, given = signature(gbqr).parameters, models | settings
        # An argument at its default asks for nothing, whoever passed it on.
        foreign = [name for name, value in given.items() if value != defaults[name].default]
        if foreign:
            raise ValueError(
                f"thesis=True takes no {', '.join(foreign)}: the settings of the thesis are fixed."
                " Leave it out, or leave out thesis=True."
            )
        return gbqr_thesis(per_second=per_second, **options)
    return make_proposer(
        gbqr_surrogate(**models, per_second=per_second),
        target="normal_scores",
        timed=per_second,
        **settings,
        **options,
    )


def gbqr_surrogate(
    *, alpha: float = 0.3, n_models: int = 5, doubt: float = 0.6, per_second: bool = False
) -> DistanceAware:
    """The surrogate of ``gbqr``, for losses as normal scores."""
    models = surrogates.QuantileBoosting(alpha=alpha, n_models=n_models)
    # Errors are raised here, and not at the first fit after the start design.
    models.check_arguments()
    check_finite("doubt", doubt)
    # A floor only for gains that are divided by seconds, see ``ei_per_second``.
    return surrogates.DistanceAware(models, strength=doubt, floor=_FLOOR if per_second else 0.0)


def gbqr_thesis(*, per_second: bool = False, **options: Unpack[Options]) -> ModelBasedProposer:
    """GBQR as published (thesis 5.3): one model of alpha = 0.9 of the score (0.1 of the loss).

    100 trees of 8 leaves, fitted anew on all rows after each evaluation; three random evaluations
    first (``n_startup=3``); the predicted bound is the acquisition. In a space of at most 10 000
    configurations (``n_candidates=10_000``) all that are left are predicted, as in the thesis's
    simulation. A larger space is searched as the thesis (2.5.2) describes SMAC: 10 000 random
    configurations, and local searches from the ten evaluated ones with the best bounds.
    Failures are not learnt (``failed_trials="ignore"``), nor is the number of rows limited
    (``max_rows=None``). The thesis has no constraints: if trials have any, they are learnt.

    What differs from the thesis:

    * LightGBM's defaults of 20 rows in a leaf and 3 in a bin are 1: with them every prediction is
      constant up to 40 rows.
    * Losses are standardised before the fit, which changes quantiles only by rounding, and before
      that, losses far from all others are moved near them (``records.scores.tame``). Among equal
      best bounds one is drawn at random; the thesis does not say.
    * Per second (GBQR-median, eq. 5.2) the bound is divided by the seconds instead of their
      logarithm, which is negative below one second; bounds below the median gain 0 instead of
      less. The model of seconds is ``surrogates.RunningTime``, whose docstring says what differs.
    * A local search ends after 100 steps, and no step begins after 30 000 predictions.
    * Numbers are on the scale of the search space and categories one-hot; no configuration is
      evaluated twice; with several workers running evaluations repel; the final loss of a
      pruned evaluation is predicted, see ``proposers.targets.effective_losses``.
    """
    check_flag("per_second", per_second)
    options = preset_options(
        options, n_startup=3, n_candidates=10_000, max_rows=None, failed_trials="ignore"
    )
    return make_proposer(
        surrogates.QuantileBoosting.thesis(),
        target="raw",
        timed=per_second,
        acquisition="bound",
        uniform_start=True,
        refit="always",
        search=SMAC_SEARCH,
        plateau_reach=None,
        **options,
    )


def surrogate(
    surrogate: str | Surrogate = "quantile_boosting",
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
            ``"gaussian_process"``, ``"averaged_process"``, or an object with ``fit(X, y)`` and
            ``predict(X)``, the latter returning (mean, std) or a bound of the loss.
        acquisition: ``"ei"``, ``"bound"`` (lower confidence bound of the loss), or either with
            ``"_per_second"``.
        interleave: See ``ProposerSettings``.
        balance: See ``ProposerSettings``.
        xi: Improvement below which EI gains nothing, in units of the transformed loss.
        beta: Standard deviations between the predicted mean and the bound.
        target: Transform of the losses, see ``automl_plugins.proposers.targets``.
        cost_exponent: See ``ProposerSettings``.
        cost_budget: See ``ProposerSettings``.
        startup: ``"design"`` fills the space and visits every branch, ``"random"`` draws.
        **options: The arguments of ``Options``, see ``ProposerSettings``.

    Raises:
        ValueError: For an argument outside its range.
        TypeError: For a surrogate without ``fit`` and ``predict``.
    """
    check_choice("acquisition", acquisition, get_args(AcquisitionName))
    check_choice("startup", startup, get_args(Startup))
    if isinstance(surrogate, str):
        check_choice("surrogate", surrogate, tuple(SURROGATES))
        surrogate = SURROGATES[surrogate]()
    check_surrogate(surrogate, allowed=f"one of {sorted(SURROGATES)} or ")
    timed = acquisition.endswith("_per_second")
    return make_proposer(
        surrogate,
        target=target,
        timed=timed,
        acquisition="ei" if acquisition.startswith("ei") else "bound",
        xi=xi,
        beta=beta,
        cost_exponent=cost_exponent,
        cost_budget=cost_budget,
        interleave=interleave,
        balance=balance,
        uniform_start=startup == "random",
        **options,
    )


def ei_per_second(
    *, cost_exponent: float = 1.0, cost_budget: int | None = None, **options: Unpack[Options]
) -> ModelBasedProposer:
    """Expected improvement of a random forest per predicted second (thesis 5.2)."""
    return make_proposer(
        # Without a floor, near certainty of no gain would be infinitely bad, however quick it is.
        surrogates.DistanceAware(surrogates.RandomForest(), floor=_FLOOR),
        target="log_regret",
        timed=True,
        cost_exponent=cost_exponent,
        cost_budget=cost_budget,
        **options,
    )


def make_proposer(
    surrogate: Surrogate | SurrogateTemplate, *, target: Target, **settings: Any
) -> ModelBasedProposer:
    """A proposer with this surrogate; ``settings`` are further arguments of ``ProposerSettings``.

    Raises:
        TypeError: For an unknown option.
        ValueError: For an option outside its range.
    """
    if foreign := settings.keys() - {field.name for field in fields(ProposerSettings)}:
        known, of_optimizer = Options.__annotations__, {"seed": "an argument of the optimizer"}
        refuse_foreign("A recipe, beside its own arguments,", foreign, known, of_optimizer)
    return ModelBasedProposer(ProposerSettings(surrogate, target, **settings))


def preset_options(options: Options, **own: Unpack[Options]) -> Options:
    """The ``own`` options of a preset, replaced by the given ``options`` that are not None."""
    given = {name: value for name, value in options.items() if value is not None}
    return cast("Options", own | given)
