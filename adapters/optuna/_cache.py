"""What a sampler keeps between its calls: caches that pickle, and are copied, empty; its time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, TypeVar

K = TypeVar("K")
V = TypeVar("V")

_MAX_STUDIES = 16  # studies (or brackets) remembered by one sampler


class Cache(dict[K, V]):
    """A dictionary whose pickle and whose copies are empty.

    Keys hold identities of objects, which mean nothing in another process. There is no lock: each
    step is one operation of a dictionary, and threads that make the same entry make equal ones.
    """

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), ()

    def of(self, key: K, make: Callable[[], V]) -> V:
        """The entry of a study, made if it is new; the oldest ones go."""
        found = self.get(key)
        if found is None:
            found = self.setdefault(key, make())
            for old in list(self)[:-_MAX_STUDIES]:
                self.pop(old, None)
        return found


Key = tuple[int, int, int, int]  # storage, study, bracket, trial


class Clock:
    """Adds the time spent in a ``with`` block to an entry of a table: it is no cost of a trial."""

    def __init__(self, table: dict[Key, float], key: Key) -> None:
        self._table, self._key = table, key

    def __enter__(self) -> None:
        self._start = time.perf_counter()

    def __exit__(self, *_: object) -> None:
        spent = time.perf_counter() - self._start
        self._table[self._key] = self._table.get(self._key, 0.0) + spent
