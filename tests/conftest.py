"""Fixtures and settings shared by all tests."""

from __future__ import annotations

import importlib.util
import logging
import sqlite3
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import hypothesis
import pytest
import sqlalchemy as sa

# The same examples in every run, and no time limit for one of them: the first may have to load
# LightGBM, and machines are shared.
hypothesis.settings.register_profile("automl_plugins", deadline=None, derandomize=True)
hypothesis.settings.load_profile("automl_plugins")

# Optuna 4.8 is the first with test cases for samplers.
collect_ignore = (
    []
    if importlib.util.find_spec("optuna.testing.pytest_samplers")
    else ["adapters/optuna/test_arm_contracts.py", "contracts/test_optuna_samplers.py"]
)


@sa.event.listens_for(sa.Engine, "connect")
def do_not_wait_for_the_disk(connection: Any, _: Any) -> None:
    """Half of the time of a test with SQLite: tests kill processes, and not the machine."""
    if isinstance(connection, sqlite3.Connection):
        connection.execute("PRAGMA synchronous=OFF")


@pytest.fixture(autouse=True)
def heard() -> None:
    """Turn on all loggers of the package, which benchmarks and facades of SMAC turn off."""
    for framework in ("optuna", "hyperopt"):
        if logging.getLogger(framework).level > logging.INFO:
            logging.getLogger(framework).setLevel(logging.INFO)
    for name, logger in logging.root.manager.loggerDict.items():
        if name.startswith("automl_plugins") and isinstance(logger, logging.Logger):
            logger.setLevel(logging.NOTSET)
            logger.disabled = False


@pytest.fixture(scope="session")
def recorded_runs() -> ModuleType:
    """The module ``recorded_tables`` of the benchmarks; skips the test without its data."""
    name = "recorded_tables"
    path = Path(__file__).resolve().parents[1] / "examples" / "benchmarks" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # ``dataclass`` looks up the module of its class
    spec.loader.exec_module(module)
    folder = module.data_folder()
    if folder is None or not all((folder / name).is_dir() for name in ("oboe", "svm_grid")):
        pytest.skip("no recorded runs on this machine: set AUTOML_PLUGINS_DATA to their folder")
    return module
