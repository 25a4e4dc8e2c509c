"""Where random decisions come from: from Hypothesis, which can shrink them, or from numpy.

Hypothesis decides what is small, so that what it finds can be read; what is large is drawn by a
generator that it seeds, for it takes a hundred times as long.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, TypeVar

import numpy as np
from hypothesis import strategies as some

T = TypeVar("T")


class Source(ABC):
    """Random decisions; the first option and the lowest number are the simplest."""

    @abstractmethod
    def whole(self, low: int, high: int) -> int:
        """A number from ``low`` to ``high``, both included."""

    def pick(self, options: Sequence[T]) -> T:
        return options[self.whole(0, len(options) - 1)]

    def chance(self, percent: int) -> bool:
        return self.whole(0, 99) >= 100 - percent

    def unit(self) -> float:
        """A number in [0, 1], the ends included."""
        return self.whole(0, 200) / 200


class ByHypothesis(Source):
    def __init__(self, draw: Callable[[Any], Any]) -> None:
        self._draw = draw

    def whole(self, low: int, high: int) -> int:
        found: int = self._draw(_integers(low, high))
        return found


class ByNumpy(Source):
    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng(seed)

    def whole(self, low: int, high: int) -> int:
        return int(self._rng.integers(low, high, endpoint=True))


@cache
def _integers(low: int, high: int) -> some.SearchStrategy[int]:
    return some.integers(low, high)
