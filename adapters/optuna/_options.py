"""What all samplers take, checked and told apart: for the proposer, for the sampler itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypedDict, cast

from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler

from automl_plugins._arguments import at_least, one_of
from automl_plugins.proposers.models import FailedTrials
from automl_plugins.recipes.without_memory import Options

from .trials import Cost


class TransferOptions(TypedDict, total=False):
    """Arguments that every sampler of this package takes, see ``SurrogateSampler``."""

    seed: int | None
    n_startup_trials: int | None
    n_candidates: int | None
    max_rows: int | None
    search_space: Mapping[str, BaseDistribution] | None
    ordinal: Mapping[str, Sequence[Any]] | None
    independent_sampler: BaseSampler | None
    warn_independent_sampling: bool
    failed_trials: FailedTrials


class SharedOptions(TransferOptions, total=False):
    """The same, and ``cost``."""

    cost: Cost


_PROPOSER = {
    "n_startup_trials": "n_startup",
    "n_candidates": "n_candidates",
    "max_rows": "max_rows",
    "failed_trials": "failed_trials",
}


def of_proposer(options: Mapping[str, Any]) -> Options:
    """Those that the recipes of the core take.

    Raises:
        ValueError: For a value outside its range.
    """
    at_least("n_candidates", options.get("n_candidates"), 1)
    at_least("max_rows", options.get("max_rows"), 2)
    at_least("n_startup_trials", options.get("n_startup_trials"), 0)
    one_of("failed_trials", options.get("failed_trials", "avoid"), ("avoid", "ignore"))
    kept = {_PROPOSER[name]: value for name, value in options.items() if name in _PROPOSER}
    return cast("Options", kept)


def of_sampler(options: Mapping[str, Any]) -> dict[str, Any]:
    """Those of ``ProposerSampler``."""
    return {name: value for name, value in options.items() if name not in _PROPOSER}
