"""Logs of frameworks that are hidden for a while."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_changing = threading.Lock()
#: By logger: its own level, then the level of each block that is running; else no entry.
_levels: dict[str, list[int]] = {}


@contextmanager
def hidden(logger: str, below: int) -> Iterator[None]:
    """Hide the messages of a logger below a level.

    Blocks of several threads may overlap: the last one to end restores the logger's own level.
    """
    known = logging.getLogger(logger)
    with _changing:
        levels = _levels.setdefault(logger, [known.level])
        # A logger without a level of its own has its parent's, which may hide more.
        inherited = known.parent.getEffectiveLevel() if known.parent and not levels[0] else 0
        level = max(below, inherited)
        levels.append(level)
        known.setLevel(max(levels))
    try:
        yield
    finally:
        with _changing:
            # Equal levels need not be told apart.
            levels.remove(level)
            known.setLevel(max(levels))
            if len(levels) == 1:
                _levels.pop(logger, None)
