"""Fails loudly when SMAC changes what ``_private`` relies on."""

from __future__ import annotations

import logging
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from automl_plugins.adapters.smac import _private
from ConfigSpace import ConfigurationSpace
from smac import HyperbandFacade, RandomFacade, Scenario
from smac.main.exceptions import ConfigurationSpaceExhaustedException
from smac.runhistory import TrialValue


def facade_on(folder: Path, kind: Any = RandomFacade, **arguments: Any) -> Any:
    space = ConfigurationSpace({"a": ["x", "y"]}, seed=0)
    scenario = Scenario(
        space, deterministic=True, n_trials=50, output_directory=folder, **arguments
    )
    with _private.quiet():
        return kind(scenario, logging_level=False, overwrite=True)


def test_ask_raises_when_everything_was_tried_and_then_ends(tmp_path: Path) -> None:
    facade = facade_on(tmp_path)
    for cost in (1.0, 2.0):
        facade.tell(facade.ask(), TrialValue(cost=cost), save=False)
    with pytest.raises(ConfigurationSpaceExhaustedException):
        facade.ask()
    with pytest.raises(StopIteration):
        facade.ask()
    assert _private.next_trial(facade) is None


def test_exhaustion_is_no_error_here(tmp_path: Path) -> None:
    facade = facade_on(tmp_path)
    for cost in (1.0, 2.0):
        facade.tell(_private.next_trial(facade), TrialValue(cost=cost), save=False)
    assert _private.next_trial(facade) is None


def test_facades_know_their_budgets_and_their_name(tmp_path: Path) -> None:
    plain = facade_on(tmp_path / "a")
    several = facade_on(tmp_path / "b", HyperbandFacade, min_budget=1, max_budget=9)
    assert not _private.uses_budgets(plain) and _private.uses_budgets(several)
    assert _private.facade_name(several.scenario.meta) == "HyperbandFacade"
    assert _private.facade_name({}) is None


def test_what_smac_provokes_and_logs_is_hidden(caplog: pytest.LogCaptureFixture) -> None:
    config = ConfigurationSpace({"a": ["x", "y"]}, seed=0).get_default_configuration()
    with pytest.warns(DeprecationWarning, match="Please use `dict"):
        config.get_dictionary()
    with pytest.warns(RuntimeWarning) as provoked:
        np.mean([])
    assert len(provoked) == 2
    logger = logging.getLogger("smac.main.smbo")
    with _private.quiet():
        config.get_dictionary()
        np.mean([])
        logger.warning("hidden")
        with pytest.raises(DeprecationWarning, match="another"):
            warnings.warn("another", DeprecationWarning, stacklevel=1)
    logger.warning("shown")
    assert caplog.messages == ["shown"]
