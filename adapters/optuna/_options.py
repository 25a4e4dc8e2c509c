"""What the named samplers take: the arguments of a recipe, and those of all samplers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from inspect import Parameter, signature
from typing import Any, TypedDict, TypeVar

from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler

from automl_plugins._arguments import at_least
from automl_plugins.proposers.models import FailedTrials
from automl_plugins.recipes import make_proposer

from .proposer_sampler import ProposerSampler
from .trials import Cost

S = TypeVar("S", bound=type[ProposerSampler])


class SamplerOptions(TypedDict, total=False):
    """What every sampler takes, see ``SurrogateSampler``."""

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
    """The same, and ``cost``."""

    cost: Cost


_STARTUP = "n_startup_trials"  # what recipes call n_startup
_DECIDED = {"memory", "per_second"}  # arguments of recipes that no user gives


def takes(recipe: Callable[..., Any], shared: type[SamplerOptions]) -> Callable[[S], S]:
    """Class decorator: the signature of a sampler, which users and ``split`` read.

    It has the sampler's own arguments, those of the recipe and those of ``shared``, with the
    defaults that they have where they are defined.
    """
    every = signature(make_proposer).parameters | signature(ProposerSampler).parameters
    every = every | {_STARTUP: every["n_startup"].replace(name=_STARTUP)}

    def decorated(sampler: S) -> S:
        own = signature(sampler.__init__)
        found = {n: p for n, p in own.parameters.items() if p.kind != p.VAR_KEYWORD}
        del found["self"]
        for name, parameter in signature(recipe).parameters.items():
            if parameter.kind != parameter.VAR_KEYWORD and name not in _DECIDED:
                found.setdefault(name, parameter)
        for name in shared.__annotations__:
            found.setdefault(name, every[name].replace(kind=Parameter.KEYWORD_ONLY))
        sampler.__signature__ = own.replace(parameters=list(found.values()))  # type: ignore[attr-defined]
        return sampler

    return decorated


def split(
    sampler: type[ProposerSampler], options: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Options of a recipe, and those of ``ProposerSampler``.

    Raises:
        TypeError: For an argument that the sampler does not take.
        ValueError: For a negative number of start-up trials.
    """
    known = signature(sampler).parameters
    if foreign := sorted(options.keys() - known.keys()):
        raise TypeError(
            f"{sampler.__name__} takes no argument {', '.join(foreign)}; it takes"
            f" {', '.join(known)}."
        )
    at_least(_STARTUP, options.get(_STARTUP), 0)
    of_sampler = signature(ProposerSampler).parameters.keys() & options.keys()
    of_recipe = {n.replace(_STARTUP, "n_startup"): v for n, v in options.items()}
    return (
        {name: value for name, value in of_recipe.items() if name not in of_sampler},
        {name: options[name] for name in of_sampler},
    )
