"""The named samplers of one task: the recipes of the core as samplers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from automl_plugins import recipes
from automl_plugins._arguments import at_least
from automl_plugins.representation import preset

from ._options import SharedOptions, of_proposer, of_sampler
from .proposer_sampler import ProposerSampler
from .sampler import SurrogateSampler

if TYPE_CHECKING:
    from typing_extensions import Unpack


class GBQRSampler(SurrogateSampler):
    """Bayesian optimisation by gradient boosting with quantile regression (van Hoof 2018).

    LightGBM models of a quantile of the loss, each on a bootstrap sample of the trials, say
    which configuration may be better than the best one; ``GBQRSampler()`` is the whole recipe.
    ``GBQRSampler.thesis()`` has the settings of the thesis. What was changed, and what each
    change bought, is in the README.

    Args:
        alpha: Quantile of the loss in (0, 1) that the models predict.
        n_models: Bootstrap models.
        doubt: Standard deviation far from all trials, in that of the losses; >= 0.
        balance: Confine every ``balance``-th proposal to the branch of a conditional space that
            has been served least for its size; None never does.
        **options: ``seed``, ``n_startup_trials``, ``n_candidates``, ``max_rows``,
            ``search_space``, ``ordinal``, ``independent_sampler``, ``warn_independent_sampling``,
            ``failed_trials`` and ``cost``: see ``SurrogateSampler``. With ``cost`` the gain is
            divided by the predicted seconds.

    Raises:
        ValueError: For an argument outside its range.

    Example::

        study = optuna.create_study(sampler=GBQRSampler(seed=1))
        study.optimize(objective, n_trials=60)
    """

    def __init__(
        self,
        *,
        alpha: float = 0.3,
        n_models: int = 5,
        doubt: float = 0.6,
        balance: int | None = 5,
        **options: Unpack[SharedOptions],
    ) -> None:
        at_least("balance", balance, 2)
        proposer = recipes.gbqr(
            alpha=alpha,
            n_models=n_models,
            doubt=doubt,
            balance=balance,
            per_second=options.get("cost") is not None,
            **of_proposer(options),
        )
        ProposerSampler.__init__(self, proposer, **of_sampler(options))

    @classmethod
    @preset
    def thesis(cls, **options: Unpack[SharedOptions]) -> SurrogateSampler:
        """GBQR as in thesis 5.3.2: one model of alpha = 0.9 of the score (0.1 of the loss).

        100 trees of 8 leaves, three random starts, no interleaving; the predicted bound is the
        acquisition. With ``cost`` it is GBQR-median (thesis eq. 5.2), in true seconds. What still
        differs is in ``automl_plugins.recipes.gbqr_thesis``.
        """
        per_second = options.get("cost") is not None
        proposer = recipes.gbqr_thesis(per_second=per_second, **of_proposer(options))
        return SurrogateSampler._driving(proposer, of_sampler(options))


class EIPerSecondSampler(SurrogateSampler):
    """Expected improvement per second: what is likely to pay off, for the time it takes.

    A LightGBM model of ln seconds (thesis 5.2) divides the expected improvement, by true seconds
    and not by their logarithm, which changes sign at one second.

    Args:
        cost_exponent: kappa in EI / seconds^kappa, in [0, 1]. Smaller values prefer cheap
            configurations less (thesis 5.4.4 found that EI/s over-prefers them).
        cost_budget: Number of trials over which kappa falls to 0; None keeps it.
        **options: See ``SurrogateSampler``; ``cost`` is ``"duration"`` unless given.

    Example::

        study = optuna.create_study(sampler=EIPerSecondSampler(cost="seconds"))
        study.optimize(objective, timeout=3600)  # objective: trial.set_user_attr("seconds", ...)
    """

    def __init__(
        self,
        *,
        cost_exponent: float = 1.0,
        cost_budget: int | None = None,
        **options: Unpack[SharedOptions],
    ) -> None:
        options.setdefault("cost", "duration")
        proposer = recipes.ei_per_second(
            cost_exponent=cost_exponent, cost_budget=cost_budget, **of_proposer(options)
        )
        ProposerSampler.__init__(self, proposer, **of_sampler(options))
