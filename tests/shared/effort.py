"""Time and work that are the same on every machine: a clock that sleeping moves, and calls."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest


class Clock:
    """Stands in for the clocks and the sleep of ``time``; no time passes but in a sleep."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        for name in ("perf_counter", "monotonic"):
            monkeypatch.setattr(time, name, lambda: self.now)
        monkeypatch.setattr(time, "sleep", self.sleep)

    def sleep(self, seconds: float) -> None:
        """Let time pass."""
        self.now += seconds


def count_calls(work: Callable[[], Any]) -> int:
    """How many functions ``work`` calls, in Python and in C; run it once before, for its caches.

    What goes through its data element by element shows in this number, as it would in seconds.
    """
    n = 0

    def count(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal n
        n += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(None)
    return n
