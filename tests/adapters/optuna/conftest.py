"""Optuna's logger is the same for all tests: each one finds it as Optuna sets it up."""

from __future__ import annotations

from collections.abc import Iterator

import optuna
import pytest


@pytest.fixture(autouse=True)
def fresh_logging() -> Iterator[None]:
    optuna.logging.set_verbosity(optuna.logging.INFO)
    yield
    optuna.logging.disable_propagation()
    optuna.logging.set_verbosity(optuna.logging.INFO)


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    """What Optuna's logger said, ours included."""
    optuna.logging.enable_propagation()
    return caplog
