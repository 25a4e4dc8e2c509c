"""What several tests of SMAC's adapter need."""

from __future__ import annotations

import pytest


@pytest.fixture
def nobody_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """SMAC asks at the keyboard what to do with a run that it does not continue."""
    monkeypatch.setattr("builtins.input", lambda question: "abort")
