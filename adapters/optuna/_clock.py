"""A sampler's own time, which is no cost of the objective."""

from __future__ import annotations

import time

Key = tuple[int, int, int, int]  # storage, study, bracket, trial


class Clock:
    """Adds the time spent in a ``with`` block to one entry of a table."""

    def __init__(self, table: dict[Key, float], key: Key) -> None:
        self._table, self._key = table, key

    def __enter__(self) -> None:
        self._start = time.perf_counter()

    def __exit__(self, *_: object) -> None:
        spent = time.perf_counter() - self._start
        self._table[self._key] = self._table.get(self._key, 0.0) + spent
