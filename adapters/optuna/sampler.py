"""``SurrogateSampler``: a proposer whose parts are chosen by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Self

from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler

from automl_plugins import recipes
from automl_plugins.proposers.model_based import ModelBasedProposer
from automl_plugins.proposers.models import FailedTrials
from automl_plugins.proposers.proposal import Proposer
from automl_plugins.proposers.targets import Target
from automl_plugins.recipes.without_memory import AcquisitionName

from ._options import of_proposer
from .proposer_sampler import ProposerSampler
from .trials import Cost


class SurrogateSampler(ProposerSampler):
    """Bayesian optimisation with any surrogate, on any define-by-run objective.

    Conditional parameters are modelled jointly: the union of all parameters seen is one space,
    its conditions are inferred from the trials. Failed, pruned and running trials count. A
    proposal depends on the seed, the trial's number and the stored trials alone, so a resumed
    study goes on as if it had never stopped.

    Args:
        surrogate: ``"quantile_boosting"``, ``"random_forest"``, ``"extra_trees"``,
            ``"gaussian_process"``, or an object with ``fit(X, y)`` and ``predict(X)``, the latter
            returning (mean, std) or a bound of the loss.
        acquisition: ``"ei"``, ``"bound"`` (lower confidence bound of the loss), or either with
            ``"_per_second"``.
        interleave: Make every ``interleave``-th proposal a space-filling one; None never does.
        balance: Confine every ``balance``-th proposal to the branch of a conditional space that
            has been served least for its size; None never does.
        xi: Improvement below which EI gains nothing, in units of the transformed loss.
        beta: Standard deviations between the predicted mean and the bound.
        target: Transform of the losses: ``"log_regret"``, ``"normal_scores"`` (only their order
            counts), ``"standardize"`` or ``"raw"``; see ``automl_plugins.proposers.targets``.
        cost_exponent: kappa in gain / seconds^kappa, in [0, 1]; used per second only.
        cost_budget: Number of trials over which kappa falls to 0; None keeps it.
        n_startup_trials: Trials before the model is asked. None follows the space: at least 6,
            more with many branches or parameters.
        startup: ``"design"`` fills the space and visits every branch, ``"random"`` draws.
        n_candidates: Random candidates for each proposal, beside the local searches. A space of
            at most that many configurations is searched completely. None is 1 000, and 300 from
            256 trials on.
        max_rows: Trials the models see at most; None for all.
        search_space: Distributions known up front; everything else is learnt from the trials.
        ordinal: Choices, in order, of categorical parameters whose order means something.
        independent_sampler: Sampler of parameters never seen before; None fills each parameter's
            range evenly.
        warn_independent_sampling: Log a warning when a known parameter has to be sampled
            independently.
        failed_trials: ``"avoid"`` weighs proposals by a learnt probability of success,
            ``"ignore"`` does not.
        cost: Where the seconds of a trial come from: ``"duration"`` (less the sampler's own
            time), the name of a user attribute, or a function of the finished trial. None means
            duration where costs are needed.
        seed: Non-negative integer; None draws one and logs it.

    Raises:
        ValueError: For an argument outside its range.
        TypeError: For a surrogate without ``fit`` and ``predict``.
    """

    def __init__(
        self,
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
        n_startup_trials: int | None = None,
        startup: Literal["design", "random"] = "design",
        n_candidates: int | None = None,
        max_rows: int | None = 500,
        search_space: Mapping[str, BaseDistribution] | None = None,
        ordinal: Mapping[str, Sequence[Any]] | None = None,
        independent_sampler: BaseSampler | None = None,
        warn_independent_sampling: bool = True,
        failed_trials: FailedTrials = "avoid",
        cost: Cost = None,
        seed: int | None = None,
    ) -> None:
        proposer = recipes.surrogate(
            surrogate,
            acquisition=acquisition,
            interleave=interleave,
            balance=balance,
            xi=xi,
            beta=beta,
            target=target,
            cost_exponent=cost_exponent,
            cost_budget=cost_budget,
            startup=startup,
            **of_proposer(
                {
                    "n_startup_trials": n_startup_trials,
                    "n_candidates": n_candidates,
                    "max_rows": max_rows,
                    "failed_trials": failed_trials,
                }
            ),
        )
        super().__init__(
            proposer,
            search_space=search_space,
            ordinal=ordinal,
            independent_sampler=independent_sampler,
            warn_independent_sampling=warn_independent_sampling,
            cost=cost,
            seed=seed,
        )

    @classmethod
    def _driving(cls, proposer: Proposer, options: Mapping[str, Any]) -> Self:
        """A sampler of a ready proposer."""
        sampler = cls.__new__(cls)
        ProposerSampler.__init__(sampler, proposer, **options)
        return sampler

    @property
    def _model_name(self) -> str:
        assert isinstance(self._proposer, ModelBasedProposer)
        model = self._proposer.settings.models.surrogate
        return type(getattr(model, "surrogate", model)).__name__
