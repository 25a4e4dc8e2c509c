"""The only place that touches what SMAC does not promise to keep.

``tests/adapters/smac/test_smac_private.py`` fails loudly when one of these changes.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from smac import Scenario
from smac.facade.abstract_facade import AbstractFacade
from smac.main.exceptions import ConfigurationSpaceExhaustedException
from smac.main.smbo import SMBO
from smac.runhistory import TrialInfo

_WARNINGS: tuple[tuple[type[Warning], str], ...] = (
    # AbstractInitialDesign.meta calls Configuration.get_dictionary
    (DeprecationWarning, "Please use `dict"),
    # LocalSearch logs the mean duration of evaluations of which there may be none
    (RuntimeWarning, "Mean of empty slice"),
    (RuntimeWarning, "invalid value encountered in scalar divide"),
)


def next_trial(facade: AbstractFacade) -> TrialInfo | None:
    """What ``ask`` returns; None where SMAC has no further trial, for which it raises."""
    try:
        return facade.ask()
    except (StopIteration, ConfigurationSpaceExhaustedException):
        return None


def uses_budgets(facade: AbstractFacade) -> bool:
    """Whether trials are evaluated at a part of their budget."""
    return bool(facade.intensifier.uses_budgets)


def scenario_of(smbo: SMBO) -> Scenario:
    """The scenario, which callbacks are not told."""
    return smbo._scenario


def facade_name(meta: Mapping[str, Any]) -> str | None:
    """Name of the facade's class in the meta data of a scenario, None where it is not there."""
    name = meta.get("facade", {}).get("name")
    return None if name is None else str(name)


@contextmanager
def quiet() -> Iterator[None]:
    """Hide SMAC's log, for there are hundreds of searches, and the warnings that it provokes."""
    logger = logging.getLogger("smac")
    level = logger.level
    logger.setLevel(max(level, logging.ERROR))
    try:
        with warnings.catch_warnings():
            for category, message in _WARNINGS:
                warnings.filterwarnings("ignore", message, category)
            yield
    finally:
        logger.setLevel(level)
