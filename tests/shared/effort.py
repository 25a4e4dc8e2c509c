"""Measures that are the same on every machine: a simulated clock, and counts of calls."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest


class Clock:
    """Replaces the clocks and the sleep of ``time``; time passes only in a sleep."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        for name in ("perf_counter", "monotonic"):
            monkeypatch.setattr(time, name, lambda: self.now)
        monkeypatch.setattr(time, "sleep", self.sleep)

    def sleep(self, seconds: float) -> None:
        """Let time pass."""
        self.now += seconds


def count_calls(work: Callable[[], Any]) -> int:
    """Number of function calls of ``work``, in Python and C; run it once before, for its caches.

    Code that loops over its data in Python shows in this number, as it would in seconds.
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
