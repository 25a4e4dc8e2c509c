"""What a memory says, in the log of SMAC."""

from __future__ import annotations

import logging
import pickle
from collections.abc import Callable, Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from automl_plugins.adapters.smac import AutoFacade, GBQRFacade, ProposerConfigSelector
from ConfigSpace import Configuration, ConfigurationSpace
from smac import Scenario
from smac_runs import scenario

from automl_plugins.meta.memories import TaskMemory
from automl_plugins.recipes import auto, tst

#: Recorded learning rates lie outside, which is noted.
SPACE: dict[str, Any] = {"num_leaves": (2, 256), "learning_rate": (0.01, 0.3)}


@pytest.fixture(params=[logging.INFO, logging.WARNING])
def level(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """The level that facades set up for SMAC's log, which is another one before."""
    logger = logging.getLogger("smac")
    usual = logger.level
    logger.setLevel(logging.INFO + logging.WARNING - request.param)
    monkeypatch.setattr("smac.facade.abstract_facade.setup_logging", logger.setLevel)
    yield request.param
    logger.setLevel(usual)


def loss(config: Configuration, seed: int = 0) -> float:
    return float(config["learning_rate"])


def whole(run: Scenario, **given: Any) -> GBQRFacade:
    return AutoFacade(run, loss, **given)


def with_a_selector(run: Scenario, **given: Any) -> GBQRFacade:
    selector = ProposerConfigSelector(run, auto("auto", task="iris"))
    return GBQRFacade(run, loss, config_selector=selector, **given)


@pytest.mark.parametrize("make", [whole, with_a_selector])
def test_what_was_recognised_is_said_when_the_log_has_been_set_up(
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    level: int,
    make: Callable[..., GBQRFacade],
) -> None:
    """Selectors, which look at their memory at once, are made before that."""
    run = scenario(tmp_path, ConfigurationSpace(SPACE, seed=0))
    smac = make(run, logging_level=level, overwrite=True)
    smac.ask()
    said = [r for r in caplog.records if "automl_plugins" in r.name]
    assert {r.name for r in said} <= {"smac.automl_plugins"}
    for what in ("The search space is that of lightgbm", "learning_rate is outside the range"):
        assert sum(what in r.message for r in said) == (level == logging.INFO)


def test_a_memory_that_has_a_logger_keeps_it(tmp_path: Path) -> None:
    own = logging.getLogger("of.the.user")
    run = scenario(tmp_path, ConfigurationSpace(SPACE, seed=0))
    memory = TaskMemory("lightgbm", logger=own)
    ProposerConfigSelector(run, tst(memory))
    assert memory.logger is own


@pytest.mark.parametrize("copy", [deepcopy, lambda selector: pickle.loads(pickle.dumps(selector))])
def test_a_copy_of_a_selector_that_has_not_spoken_yet_serves_a_facade(
    tmp_path: Path, copy: Callable[[Any], Any]
) -> None:
    run = scenario(tmp_path, ConfigurationSpace(SPACE, seed=0))
    selector = AutoFacade.get_config_selector(run)
    copied = copy(selector)
    assert copied.meta == selector.meta
    smac = GBQRFacade(run, loss, config_selector=copied, logging_level=False, overwrite=True)
    assert smac.ask().config is not None


def test_what_a_memory_has_said_to_a_selector_without_a_facade_is_not_lost(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    run = scenario(tmp_path, ConfigurationSpace(SPACE, seed=0))
    proposer = tst("lightgbm")
    ProposerConfigSelector(run, proposer)
    with caplog.at_level(logging.INFO, logger="smac"):
        selector = ProposerConfigSelector(run, proposer)
        GBQRFacade(run, loss, config_selector=selector, logging_level=False, overwrite=True)
    said = [r.message for r in caplog.records if r.name == "smac.automl_plugins"]
    assert sum("learning_rate is outside the range" in line for line in said) == 1
