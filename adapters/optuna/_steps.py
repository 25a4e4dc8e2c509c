"""Evenly spaced values: the distributions that are grids.

Optuna stores every number as a 64-bit float, so a grid has only the values that are different
floats: the integers from 10**18 to 10**18 + 10 are one value.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)

from automl_plugins.spaces.scales import MOST_EXACT, Steps, is_narrow

from . import _private

Numeric = FloatDistribution | IntDistribution

_LISTED = 2**12  # steps up to which values are checked one by one, which takes 12 ms at most
_ENOUGH = 32  # integers that are exact floats: with more, a grid is reduced to them
_GAPS = sorted(range(-16, 17), key=abs)  # distances at which an index that Optuna takes is sought
_FEW = 1000  # values that can be stored: a grid with as many is searched without a warning


@dataclass(frozen=True)
class SteppedValues:
    """The values of a grid, by index."""

    distribution: Numeric
    low: float  # the first value
    step: float  # distance of the values
    n: int  # their number, at most 2^53 + 1
    listed: tuple[float, ...] | None = None  # all values where they are not evenly spaced

    @cached_property
    def steps(self) -> Steps:
        """The grid as the core's ``Steps``, without the distribution."""
        whole = isinstance(self.distribution, IntDistribution)
        high = self._plain(self.n - 1)
        return Steps(self.low, self.step, self.n, high=high, is_integer=whole, listed=self.listed)

    def value(self, i: int) -> Any:
        """Value number ``i``."""
        value = self._plain(i)
        if isinstance(self.distribution, IntDistribution):
            return value
        return next((v for v in self._around(i) if _private.contains(self.distribution, v)), value)

    def index(self, value: float) -> int:
        """Index of the value of the grid that is nearest to a number."""
        # As a float: numpy keeps larger integers than 64 bits as objects.
        (place,) = self.steps.index(np.array([float(value)])).clip(0.0, self.n - 1.0)
        return round(float(place))

    def _plain(self, i: int) -> Any:
        if self.listed is not None:
            return self.listed[i]
        value = self.low + i * self.step
        if isinstance(self.distribution, IntDistribution):
            return value
        # low + i * step may exceed the end by a rounding, and Optuna would not take it.
        return min(max(float(value), self.distribution.low), self.distribution.high)

    def _around(self, i: int) -> Iterator[float]:
        """The floats next to value number ``i``, then those next to its neighbours."""
        # Far from 0, or from the first value, a multiple may fail Optuna's test by a rounding: its
        # quotient has to be within 1e-8 of a whole number. Mostly the float next to it passes.
        for gap in _GAPS:
            value = self._plain(min(max(i + gap, 0), self.n - 1))
            yield from (value, math.nextafter(value, math.inf), math.nextafter(value, -math.inf))


def steps_of(distribution: BaseDistribution) -> SteppedValues | None:
    """The grid of a distribution; None if it is not a grid."""
    # Choices may be lists, and a distribution of these has no hash.
    return None if isinstance(distribution, CategoricalDistribution) else _read_steps(distribution)


@lru_cache(maxsize=4096)
def _read_steps(distribution: BaseDistribution) -> SteppedValues | None:
    if isinstance(distribution, IntDistribution) and (
        not distribution.log or is_narrow(distribution.low, distribution.high)
    ):
        return _of_integers(distribution)
    if isinstance(distribution, FloatDistribution) and distribution.step is not None:
        return _of_floats(distribution, distribution.step)
    return None


def merged_note(name: str, distribution: BaseDistribution) -> str | None:
    """A warning if Optuna can store only few values of a grid; None otherwise."""
    found = steps_of(distribution)
    if found is None or found.n >= min(count_steps(found.distribution), _FEW):
        return None
    kind = "int" if isinstance(distribution, IntDistribution) else "float"
    return (
        f"Of the {count_steps(found.distribution)} values of {name!r}, {distribution}, Optuna can"
        f" store {found.n}, for it keeps numbers as 64-bit floats. Ask for the offset instead:"
        f" {found.distribution.low!r} + trial.suggest_{kind}({name!r}, 0, ...)."
    )


def count_steps(distribution: Numeric) -> int:
    """Number of values that a grid has in exact arithmetic."""
    if isinstance(distribution, IntDistribution):
        return (distribution.high - distribution.low) // distribution.step + 1
    assert distribution.step is not None
    # Two quotients, because the difference of the ends may be infinite.
    return round(distribution.high / distribution.step - distribution.low / distribution.step) + 1


def count_values(distribution: BaseDistribution) -> float:
    """Number of values of a distribution, inf for real numbers."""
    if isinstance(distribution, CategoricalDistribution):
        return len(distribution.choices)
    if (steps := steps_of(distribution)) is not None:
        return steps.n
    if isinstance(distribution, IntDistribution):
        return distribution.high - distribution.low + 1
    return math.inf


def _of_integers(distribution: IntDistribution) -> SteppedValues:
    low, high, step = distribution.low, distribution.high, distribution.step
    n = count_steps(distribution)
    if max(-low, high) <= MOST_EXACT:
        return _thin_out(distribution, low, step, n)
    if n <= _LISTED:
        return _list_values(distribution, n)
    coarse = int(math.ulp(float(max(-low, high))))  # all multiples of it are floats
    # A value low + i * step is a float if it is a multiple of ``coarse``: the first such value
    # follows from the modular inverse of ``step``, the others at the least common multiple.
    common = math.gcd(step, coarse)
    if low % common == 0:
        wide = math.lcm(step, coarse)
        ahead = (-low // common) * pow(step // common, -1, coarse // common) % (coarse // common)
        first = low + ahead * step
        # A search would soon have tried a smaller grid, so that one also keeps values that Optuna
        # stores as the nearest float; mostly they have to be sampled independently.
        if (high - first) // wide >= _ENOUGH:
            return _thin_out(distribution, first, wide, (high - first) // wide + 1)
    wide = max(step, coarse)  # all floats between the ends, if these are farther apart
    return _thin_out(distribution, low, wide, (high - low) // wide + 1)


def _of_floats(distribution: FloatDistribution, step: float) -> SteppedValues:
    low, high = distribution.low, distribution.high
    n = count_steps(distribution)
    coarse = math.ulp(max(-low, high))
    if step < 4.0 * coarse and n <= _LISTED:  # rounding may merge values
        return _list_values(distribution, n)
    # Neighbours nearer than floats are the same one: keep one of ``times``.
    times = max(1, math.ceil(coarse / step))
    return _thin_out(distribution, low, times * step, (n - 1) // times + 1)


def _thin_out(distribution: Numeric, low: float, step: float, n: int) -> SteppedValues:
    """A coarser grid if indices would not be exact floats; else the grid as it is."""
    times = -(-(n - 1) // MOST_EXACT) or 1  # rounded up; 1 for a single value
    return SteppedValues(distribution, low, times * step, (n - 1) // times + 1)


def _list_values(distribution: Numeric, n: int) -> SteppedValues:
    """A grid with one value for each float; floats that Optuna accepts, if there are any."""
    step = distribution.step or 1
    by_float: dict[float, Any] = {}
    for value in (distribution.low + i * step for i in range(n)):
        # Of integers that are the same float, the one that Optuna returns unchanged.
        if float(value) not in by_float or float(value) == value:
            by_float[float(value)] = value
    legal = {f: v for f, v in by_float.items() if _private.contains(distribution, f)}
    found = tuple(v for _, v in sorted((legal or by_float).items()))
    return SteppedValues(distribution, found[0], step, len(found), found)
