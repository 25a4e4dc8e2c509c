"""What a memory says, in the log of SMAC."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from automl_plugins.adapters.smac import AutoFacade, GBQRFacade, ProposerConfigSelector
from ConfigSpace import Configuration, ConfigurationSpace
from smac_runs import scenario

from automl_plugins.meta.memories import TaskMemory
from automl_plugins.recipes import tst

#: Recorded learning rates lie outside, which is noted.
SPACE: dict[str, Any] = {"num_leaves": (2, 256), "learning_rate": (0.01, 0.3)}


@pytest.fixture(params=[logging.INFO, logging.WARNING])
def level(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """The level that facades set up for SMAC's log, which is another one before."""
    logger = logging.getLogger("smac")
    usual = logger.level
    logger.setLevel(logging.INFO + logging.WARNING - request.param)
    for facades in ("smac.facade.abstract_facade", GBQRFacade.__module__):
        monkeypatch.setattr(f"{facades}.setup_logging", logger.setLevel)
    yield request.param
    logger.setLevel(usual)


def loss(config: Configuration, seed: int = 0) -> float:
    return float(config["learning_rate"])


def test_what_was_recognised_is_said_when_the_log_has_been_set_up(
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    level: int,
) -> None:
    """Selectors look at their memory at once, before SMAC sets up its log."""
    run = scenario(tmp_path, ConfigurationSpace(SPACE, seed=0))
    smac = AutoFacade(run, loss, logging_level=level, overwrite=True)
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
