"""Ranges in k parts on their own scale: the arithmetic of a partition, for spaces of any kind."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence


def split_interval(
    low: float, high: float, k: int, *, log: bool = False
) -> list[tuple[float, float]]:
    """The k intervals (low, high) of equal width on their scale; neighbours share a bound.

    Args:
        low: Lower bound; > 0 if ``log``.
        high: Upper bound; > ``low``.
        k: Number of intervals; >= 1.
        log: Whether widths are equal on a log scale.

    Raises:
        ValueError: For an argument outside its range.
    """
    _check_k(k)
    if not low < high:
        raise ValueError(f"low must be less than high, got {low!r} and {high!r}.")
    if log and low <= 0:
        raise ValueError(f"A log scale needs low > 0, got {low!r}.")
    inner = [between(low, high, i / k, log=log) for i in range(1, k)]
    bounds = [low, *inner, high]
    return list(itertools.pairwise(bounds))


def between(low: float, high: float, u: float, *, log: bool) -> float:
    """The number at u in [0, 1] on the scale from ``low`` to ``high``."""
    if log:
        return math.exp((1 - u) * math.log(low) + u * math.log(high))
    return (1 - u) * low + u * high


def split_integers(low: int, high: int, k: int, *, log: bool = False) -> list[tuple[int, int]]:
    """Groups (first, last) of the whole numbers from ``low`` to ``high``, both included.

    On a linear scale their sizes differ by at most one. On a log scale the widths of their
    rounding intervals, [first - 1/2, last + 1/2], are about equal. None is empty: there are k
    groups, or as many as numbers.

    Raises:
        ValueError: For an argument outside its range.
    """
    _check_k(k)
    if not low <= high:
        raise ValueError(f"low must be at most high, got {low!r} and {high!r}.")
    if log and low <= 0:
        raise ValueError(f"A log scale needs low > 0, got {low!r}.")
    if not log:
        return [(low + g.start, low + g.stop - 1) for g in split_groups(high - low + 1, k)]
    cuts = [between(low - 0.5, high + 0.5, i / k, log=True) for i in range(1, k)]
    return integers_at(low, high, cuts)


def integers_at(low: int, high: int, cuts: Sequence[float]) -> list[tuple[int, int]]:
    """Groups that end at the last whole number <= each cut, moved where one would be empty."""
    cuts = cuts[: high - low]  # not more groups than numbers
    groups, first = [], low
    for i, cut in enumerate(cuts):
        last = min(max(math.floor(cut), first), high - (len(cuts) - i))
        groups.append((first, last))
        first = last + 1
    return [*groups, (first, high)]


def split_groups(n: int, k: int) -> list[range]:
    """The indices 0 to n - 1 in min(n, k) contiguous groups whose sizes differ by at most one.

    Raises:
        ValueError: For n < 1 or k < 1.
    """
    _check_k(k)
    if n < 1:
        raise ValueError(f"There must be something to split, got n = {n!r}.")
    k = min(n, k)
    return [range(n * i // k, n * (i + 1) // k) for i in range(k)]


def _check_k(k: int) -> None:
    if k < 1:
        raise ValueError(f"k must be at least 1, got {k!r}.")


def splittable(pieces: Sequence[int], max_arms: int) -> int:
    """How many of the first parameters can be split so that there are at most ``max_arms`` cells.

    Args:
        pieces: Number of parts of each parameter.
        max_arms: Largest number of cells.
    """
    cells = list(itertools.accumulate(pieces, lambda a, b: a * b))
    return sum(n <= max_arms for n in cells)


def product_cells(pieces: Sequence[int], max_arms: int) -> list[tuple[int, ...]]:
    """Cells of the grid over the first ``splittable`` parameters, by numbers of the parts."""
    first = pieces[: splittable(pieces, max_arms)]
    return list(itertools.product(*map(range, first)))
