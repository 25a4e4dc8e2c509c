"""The samplers without a memory, and how recipes of the core become samplers of Optuna."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from inspect import Parameter, signature
from typing import Any, Self, TypedDict, TypeVar, Unpack

from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler

from automl_plugins import recipes
from automl_plugins._arguments import check_integer, document_arguments, preset, refuse_foreign
from automl_plugins.proposers.model_based import ProposerSettings
from automl_plugins.proposers.models import FailedTrials
from automl_plugins.recipes.without_memory import CostArguments, GBQRArguments, SurrogateArguments
from automl_plugins.surrogates import Surrogate

from .proposer_sampler import ProposerSampler
from .seeded_sampler import NOT_OURS
from .trials import Cost

S = TypeVar("S", bound=type[ProposerSampler])


class SamplerOptions(TypedDict, total=False):
    """Options of every sampler."""

    seed: int | None
    n_startup_trials: int | None
    n_candidates: int | None
    max_rows: int | None
    search_space: Mapping[str, BaseDistribution] | None
    ordinal: Mapping[str, Sequence[Any]] | None
    independent_sampler: BaseSampler | None
    warn_independent_sampling: bool
    failed_trials: FailedTrials


class CostOptions(SamplerOptions, total=False):
    """Options of every sampler, and ``cost``."""

    cost: Cost


_STARTUP = "n_startup_trials"  # called ``n_startup`` in the recipes
#: Arguments of other samplers that a sampler does not take, and what to use instead.
_OF_OPTUNA = NOT_OURS | {
    "cost": "AutoSampler(memory=..., cost=...) learns from earlier tasks and weighs costs",
    "constant_liar": "running trials always count",
    "group": "conditional parameters are always modelled jointly",
    "multivariate": "parameters are always modelled jointly",
    "n_ei_candidates": "it is called n_candidates here",
    "n_startup": "it is called n_startup_trials here",
    "per_second": "here it is cost='duration'",
}
_DECIDED = {"memory", "per_second"}  # arguments of recipes that the samplers set


def takes(recipe: Callable[..., Any], shared: type[SamplerOptions]) -> Callable[[S], S]:
    """Class decorator that writes the signature of a sampler, which users and ``split`` read.

    It has the arguments of the sampler, of the recipe and of ``shared``, with the defaults of
    their definitions.
    """
    every = signature(ProposerSettings).parameters | signature(ProposerSampler).parameters
    every = every | {_STARTUP: every["n_startup"].replace(name=_STARTUP)}

    def decorated(sampler: S) -> S:
        # If a name has several definitions, the first counts: in the sampler, then in its recipe,
        # then in ``shared``.
        own = signature(sampler.__init__)
        found = {n: p for n, p in own.parameters.items() if p.kind != p.VAR_KEYWORD}
        del found["self"]
        for name, parameter in signature(recipe).parameters.items():
            if parameter.kind != parameter.VAR_KEYWORD and name not in _DECIDED:
                found.setdefault(name, parameter)
        for name in shared.__annotations__:
            found.setdefault(name, every[name].replace(kind=Parameter.KEYWORD_ONLY))
        sampler.__signature__ = own.replace(parameters=list(found.values()))  # type: ignore[attr-defined]
        names = {name: name.replace(_STARTUP, "n_startup") for name in found}
        owners = sampler, recipe, ProposerSampler, ProposerSettings  # the last for what all share
        sampler.__doc__ = document_arguments(names, *owners)
        return sampler

    return decorated


def split(
    sampler: type[ProposerSampler], options: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Options of the recipe, and options of ``ProposerSampler``; TypeError for any others."""
    refuse_foreign(sampler.__name__, options, signature(sampler).parameters, _OF_OPTUNA)
    check_integer(_STARTUP, options.get(_STARTUP), 0, optional=True)
    of_sampler = signature(ProposerSampler).parameters.keys() & options.keys()
    of_recipe = {n.replace(_STARTUP, "n_startup"): v for n, v in options.items()}
    return (
        {name: value for name, value in of_recipe.items() if name not in of_sampler},
        {name: options[name] for name in of_sampler},
    )


class SurrogateOptions(SurrogateArguments, CostOptions, total=False):
    """Arguments of ``SurrogateSampler``."""


class GBQROptions(GBQRArguments, CostOptions, total=False):
    """Arguments of ``GBQRSampler``."""


class EIPerSecondOptions(CostArguments, CostOptions, total=False):
    """Arguments of ``EIPerSecondSampler``."""


@takes(recipes.surrogate, CostOptions)
class SurrogateSampler(ProposerSampler):
    """Bayesian optimisation with any surrogate, on any define-by-run objective.

    Conditional parameters are modelled jointly: the union of all parameters seen is one space,
    its conditions are inferred from the trials. Failed, pruned and running trials count. A
    proposal depends on the seed, the trial's number and the stored trials alone, so a resumed
    study continues as if it had never stopped.

    Args:
        cost: See ``ProposerSampler``. If given, the gain is divided by the predicted seconds, as
            with the ``acquisition`` of the same name and ``"_per_second"``.

    Raises:
        ValueError: For an argument outside its range.
        TypeError: For a surrogate without ``fit`` and ``predict``.

    Example::

        sampler = SurrogateSampler("gaussian_process", acquisition="ei", seed=1)
        study = optuna.create_study(sampler=sampler)
        study.optimize(objective, n_trials=60)
    """

    def __init__(
        self, surrogate: str | Surrogate = "quantile_boosting", **options: Unpack[SurrogateOptions]
    ) -> None:
        of_recipe, of_sampler = split(type(self), options)
        acquisition = of_recipe.get("acquisition", "ei")
        if options.get("cost") is not None and acquisition in ("ei", "bound"):
            of_recipe["acquisition"] = f"{acquisition}_per_second"
        super().__init__(recipes.surrogate(surrogate, **of_recipe), **of_sampler)


@takes(recipes.gbqr, CostOptions)
class GBQRSampler(ProposerSampler):
    """Bayesian optimisation by gradient boosting with quantile regression (van Hoof 2018).

    LightGBM models of a quantile of the loss, each on a bootstrap sample of the trials, predict
    which configuration may be better than the best one; ``GBQRSampler()`` is the whole recipe.
    ``GBQRSampler.thesis()`` has the settings of the thesis; ``docs/ideas/gbqr.md`` explains the
    changes.

    Args:
        cost: See ``ProposerSampler``. If given, the gain is divided by the predicted seconds.
        thesis: See ``GBQRSampler.thesis``.

    Raises:
        ValueError: For an argument outside its range.

    Example::

        study = optuna.create_study(sampler=GBQRSampler(seed=1))
        study.optimize(objective, n_trials=60)
    """

    def __init__(self, **options: Unpack[GBQROptions]) -> None:
        of_recipe, of_sampler = split(type(self), options)
        per_second = options.get("cost") is not None
        super().__init__(recipes.gbqr(per_second=per_second, **of_recipe), **of_sampler)

    @classmethod
    @preset
    def thesis(cls, **options: Unpack[CostOptions]) -> Self:
        """GBQR as in thesis 5.3.2: one model of alpha = 0.9 of the score (0.1 of the loss).

        100 trees of 8 leaves, three random starts, no interleaving; the predicted bound is the
        acquisition. With ``cost`` it is GBQR-median (thesis eq. 5.2), in true seconds. The
        remaining differences are in ``automl_plugins.recipes.gbqr_thesis``.
        """
        return cls(thesis=True, **options)


@takes(recipes.ei_per_second, CostOptions)
class EIPerSecondSampler(ProposerSampler):
    """Expected improvement per second: what is likely to pay off, for the time it takes.

    The expected improvement is divided by the seconds that a LightGBM model of ln seconds predicts
    (thesis 5.2), not by their logarithm, which changes sign at one second.

    Args:
        cost_exponent: kappa in EI / seconds^kappa, in [0, 1]. Smaller values prefer cheap
            configurations less (thesis 5.4.4 found that EI/s over-prefers them).
        cost: See ``ProposerSampler``.

    Example::

        study = optuna.create_study(sampler=EIPerSecondSampler(cost="seconds"))
        study.optimize(objective, timeout=3600)  # objective: trial.set_user_attr("seconds", ...)
    """

    def __init__(self, **options: Unpack[EIPerSecondOptions]) -> None:
        of_recipe, of_sampler = split(type(self), options)
        super().__init__(recipes.ei_per_second(**of_recipe), **of_sampler)
