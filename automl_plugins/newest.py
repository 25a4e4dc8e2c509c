"""A value that is kept until it is asked for with another key."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Newest(Generic[T]):
    """The value that was computed last, and its key.

    Most keys hold a search space, which is equal to itself only: the adapters keep one as long as
    nothing in it changes. There is no lock: threads that compute a value anew compute equal ones.
    It is not pickled.
    """

    def __init__(self) -> None:
        self._last: tuple[object, T] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {"_last": None}

    def copy(self) -> Newest[T]:
        """Another one that begins with the same value."""
        other = Newest[T]()
        other._last = self._last
        return other

    def get(self, key: object, compute: Callable[[], T]) -> T:
        """The value of a key."""
        return self.timed(key, compute)[0]

    def timed(self, key: object, compute: Callable[[], T]) -> tuple[T, float | None]:
        """The value, and the seconds that ``compute`` took; None if the last one has this key."""
        last = self._last  # read once: threads share it
        if last is not None and last[0] == key:  # by ==, for keys are tuples made anew
            return last[1], None
        started = time.perf_counter()
        value = compute()
        self._last = (key, value)
        return value, time.perf_counter() - started
