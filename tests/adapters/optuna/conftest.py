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
