"""A value that is kept until it is asked for with another key."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Newest(Generic[T]):
    """The value that was computed last, and its key.

    Most keys contain a search space, which equals only itself: the adapters keep the same object
    while nothing in it changes. There is no lock: two threads may both compute a value, with equal
    results. The value is not pickled.
    """

    def __init__(self) -> None:
        self._last: tuple[object, T] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {"_last": None}

    def copy(self) -> Newest[T]:
        """A new ``Newest`` with the same key and value."""
        other = Newest[T]()
        other._last = self._last
        return other

    def get(self, key: object, compute: Callable[[], T]) -> T:
        """The value of ``key``: the last one if it has this key, else that of ``compute()``."""
        return self.timed(key, compute)[0]

    def timed(self, key: object, compute: Callable[[], T]) -> tuple[T, float | None]:
        """The value as in ``get``, and the seconds that ``compute`` took; None without a call."""
        last = self._last  # read once: threads share it
        if last is not None and last[0] == key:  # by ==: equal tuples are different objects
            return last[1], None
        started = time.perf_counter()
        value = compute()
        self._last = (key, value)
        return value, time.perf_counter() - started
