"""What several tests of SMAC's adapter need."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from automl_plugins.adapters.smac import trials
from distributed import Client


@pytest.fixture
def nobody_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """SMAC asks at the keyboard what to do with a run that it does not continue."""
    monkeypatch.setattr("builtins.input", lambda question: "abort")


@pytest.fixture(autouse=True)
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The seconds that are waited for files which seem damaged; here that takes no time."""
    waited: list[float] = []
    monkeypatch.setattr(trials, "sleep", waited.append)
    return waited


@pytest.fixture
def client() -> Iterator[Client]:
    """Dask with workers in threads, which start at once."""
    make: Any = Client  # which has no types
    with make(processes=False, n_workers=2, threads_per_worker=1, dashboard_address=":0") as own:
        yield own
