"""Scales from numbers to [0, 1] and back that lose nothing, as transformers of ConfigSpace.

All are increasing. A value comes back from its vector exactly, unless a neighbouring value has the
same vector. Notation::

    low, high  the ends of the range, legal values both
    vector     places on the scale, (n,), in [0, 1] for legal values
    place      index of a value among the n legal ones, or of a float among all 64-bit floats
"""

from __future__ import annotations

import math
import sys
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Final

import numpy as np

from automl_plugins.arrays import FARTHEST, BoolArray, FloatArray, IntArray

#: Largest integer below which 64-bit floats hold every integer.
MOST_EXACT: Final = 2**53
FEW_FLOATS: Final = 2**40  # of a range whose floats have a vector each

# Integers above 2^40, in a range narrower than 2^-12 of its low end: in [2^50, 2^50 + 2^20] seven
# of eight integers would not come back from their logarithms.
_LARGE, _NEAR = 2**40, 2**12
_LAST_DIGITS = 4.0  # last digits that rounding may cost the sum of an end and many steps
_LARGEST_SNAP = 0.25  # of a step: from one half on any number would count as a step
# Last digits that a rounding may cost; the first that fits is taken, so the nearest come first.
_AROUND = np.array([[-1.0], [1.0], [-2.0], [2.0]])
_FEW = 1000  # most whole numbers that a scale lists, also in the text of its space
_LARGEST, _LEAST = sys.float_info.max, 5e-324


def is_narrow(low: int, high: int) -> bool:
    """Whether integers are so large and so near that their logarithms hardly differ."""
    return low > _LARGE and (high - low) * _NEAR <= low


def count_floats(low: float, high: float) -> int:
    """Number of 64-bit floats from ``low`` to ``high``."""
    return int(_place(high)) - int(_place(low)) + 1


class Scale(ABC):
    """A way from values in [low, high] to [0, 1] and back: a transformer of ConfigSpace."""

    lower_vectorized: ClassVar[np.float64] = np.float64(0.0)
    upper_vectorized: ClassVar[np.float64] = np.float64(1.0)
    n: int | None = None  # values, evenly spaced on the scale; None for continuous scales
    is_rounded = False  # whether many vectors stand for one value

    def __init__(self, low: float, high: float) -> None:
        self.low, self.high = low, high

    def __eq__(self, other: object) -> bool:
        # ConfigSpace compares spaces by their hyperparameters, and these by their transformers.
        return type(other) is type(self) and other.__dict__ == self.__dict__

    __hash__ = None  # type: ignore[assignment]

    @abstractmethod
    def to_value(self, vector: FloatArray) -> FloatArray:
        """Values (n,) of vectors (n,)."""

    def to_vector(self, value: Any) -> FloatArray:
        """Vectors (n,) of values (n,); they leave [0, 1] where the values leave the range."""
        values = np.clip(np.asarray(value, dtype=np.float64), -_LARGEST, _LARGEST)
        with np.errstate(over="ignore", invalid="ignore"):
            # Values of an old range may be anywhere.
            return np.clip(self._vector(values), -FARTHEST, FARTHEST)

    @abstractmethod
    def _vector(self, values: FloatArray) -> FloatArray: ...

    def legal_value(self, value: Any) -> BoolArray:
        """Mask (n,) of the values that lie in the range."""
        values = np.asarray(value, dtype=np.float64)
        return np.asarray((values >= self.low) & (values <= self.high))

    def legal_vector(self, vector: FloatArray) -> BoolArray:
        """Mask (n,) of the finite vectors; beyond [0, 1] they stand for an end of the range."""
        return np.isfinite(vector)

    def legal_value_single(self, value: Any) -> bool:
        """Whether one value is legal."""
        is_number = isinstance(value, int | float | np.number)
        return is_number and bool(self.legal_value(np.array([value]))[0])

    def legal_vector_single(self, vector: Any) -> bool:
        """Whether one vector entry is legal."""
        return math.isfinite(vector)


class LinearScale(Scale):
    """Equal differences are equally far; with ``is_whole`` values are whole numbers."""

    def __init__(self, low: float, high: float, *, is_whole: bool = False) -> None:
        super().__init__(low, high)
        self.is_rounded = is_whole
        # The difference of the largest floats is infinite; that of their halves is not.
        self._unit = 1.0 if math.isfinite(high - low) else 2.0
        self._low = low / self._unit
        self._span = high / self._unit - self._low

    def to_value(self, vector: FloatArray) -> FloatArray:
        """See ``Scale``."""
        # Rounding alone may lead beyond an end.
        values = np.clip((vector * self._span + self._low) * self._unit, self.low, self.high)
        if not self.is_rounded:
            return values
        # The number next to the end may have the same vector; the end is meant.
        return self._correct(np.where(vector >= 1.0, self.high, np.rint(values)), vector)

    def _correct(self, values: FloatArray, vector: FloatArray) -> FloatArray:
        """The ``values`` (n,), each replaced by a neighbour if only that has the vector (n,)."""
        lost = np.flatnonzero(self._vector(values) != vector)
        if not lost.size:
            return values
        near = values[lost] + _AROUND * np.maximum(np.spacing(np.abs(values[lost])), 1.0)
        near = np.clip(near, self.low, self.high)
        found = self._vector(near) == vector[lost]
        chosen = near[found.argmax(axis=0), np.arange(lost.size)]
        values[lost] = np.where(found.any(axis=0), chosen, values[lost])
        return values

    def legal_value(self, value: Any) -> BoolArray:
        """See ``Scale``."""
        values, legal = np.asarray(value, dtype=np.float64), super().legal_value(value)
        return legal & (values == np.rint(values)) if self.is_rounded else legal

    def _vector(self, values: FloatArray) -> FloatArray:
        return np.asarray((values / self._unit - self._low) / self._span)


class LogScale(Scale):
    """Equal ratios are equally far; values between the ends are multiples of ``step``, if any."""

    def __init__(
        self, low: float, high: float, *, step: float | None = None, is_rounded: bool = False
    ) -> None:
        super().__init__(low, high)
        self.step = step
        self.is_rounded = step is not None or is_rounded
        self._least = math.log(low)
        self._span = math.log(high) - self._least

    def to_value(self, vector: FloatArray) -> FloatArray:
        """See ``Scale``."""
        with np.errstate(over="ignore", under="ignore"):  # of vectors far beyond [0, 1]
            values = np.exp(self._least + vector * self._span)
        if self.step is not None:
            values = np.rint(values / self.step) * self.step
        return np.clip(values, self.low, self.high)  # a multiple beyond an end counts as the end

    @property
    def multiples(self) -> range | None:
        """Integers i with i * ``step`` in the range; None without a step, or beyond 2^53."""
        if self.step is None or self.high / self.step > MOST_EXACT:
            return None
        # The last multiple is minus the first one that is not below minus the high end.
        return range(self._above(self.low), 1 - self._above(-self.high))

    def part(self, low: float, high: float) -> LogScale | None:
        """The scale of the multiples in [low, high], with the old ends there; None without any."""
        if self.step is not None and self.multiples is not None:
            low = low if low <= self.low else self._above(low) * self.step
            high = high if high >= self.high else -self._above(-high) * self.step
        return LogScale(low, high, step=self.step) if low <= high else None

    def _above(self, least: float) -> int:
        """The first whole number whose product with ``step`` is not below ``least``."""
        assert self.step is not None
        near = math.ceil(least / self.step)
        # The quotient of a multiple may be rounded.
        return next(i for i in (near - 1, near, near + 1) if i * self.step >= least)

    def _vector(self, values: FloatArray) -> FloatArray:
        # ConfigSpace rounds defaults to 13 places, so small ones become 0.
        logarithms = np.log(np.where(values == 0.0, _LEAST, values))
        return np.asarray((logarithms - self._least) / self._span)


class FewFloats(Scale):
    """All 64-bit floats of a range, by their place among them."""

    n: int

    def __init__(self, low: float, high: float) -> None:
        super().__init__(low, high)
        self.n = count_floats(low, high)

    def to_value(self, vector: FloatArray) -> FloatArray:
        """See ``Scale``."""
        places = np.rint(np.clip(vector, 0.0, 1.0) * (self.n - 1)).astype(np.int64)
        return _float_at(places + _place(self.low))

    def _vector(self, values: FloatArray) -> FloatArray:
        places = _place(np.clip(values, self.low, self.high)) - _place(self.low)
        inside = places / (self.n - 1)
        # Values of an old range become -1 or 2: the difference of far places may overflow.
        return np.where(values < self.low, -1.0, np.where(values > self.high, 2.0, inside))


class Steps(Scale):
    """At most 2^53 + 1 values at even distances, or those that are listed.

    ``high`` is the largest value, if rounding makes the sum of n - 1 steps miss it.
    """

    n: int

    def __init__(
        self,
        low: float,
        step: float,
        n: int,
        *,
        high: float | None = None,
        is_integer: bool = True,
        listed: Sequence[float] | None = None,
    ) -> None:
        super().__init__(float(low), float(low + step * (n - 1) if high is None else high))
        self.step, self.n, self.is_integer = float(step), n, is_integer
        self.listed = None if listed is None else tuple(float(value) for value in listed)

    def to_value(self, vector: FloatArray) -> FloatArray:
        """See ``Scale``."""
        places = np.rint(np.clip(vector, 0.0, 1.0) * (self.n - 1))
        if self.listed is not None:
            return np.array(self.listed)[places.astype(np.int64)]
        return np.clip(self.low + places * self.step, self.low, self.high)

    def index(self, values: FloatArray) -> FloatArray:
        """Place (n,) of values among the steps; between two of them for values in between."""
        if self.listed is not None:
            return np.interp(values, self.listed, np.arange(self.n))
        with np.errstate(over="ignore", invalid="ignore"):
            place = (values - self.low) / self.step
            whole = np.rint(place)
            # (0.3 - 0.0) / 0.1 is 2.9999999999999996, and equal values must have equal vectors.
            size = max(abs(self.low), abs(self.high))
            least = min(_LAST_DIGITS * np.spacing(size) / self.step, _LARGEST_SNAP)
            near = np.maximum(1e-9 * np.maximum(1.0, whole), least)
            return np.where(np.abs(place - whole) <= near, whole, place)

    def at(self, place: int) -> float:
        """The step at a place."""
        # A part may have a single step.
        return float(self.to_value(np.array([place / max(self.n - 1, 1)]))[0])

    def part(self, low: float, high: float) -> Steps | None:
        """The steps in [low, high]; None without any."""
        # After the last step comes the first one above ``high``.
        first, after = self._first(low), self._first(math.nextafter(high, math.inf))
        if first >= after:
            return None
        return Steps(
            self.at(first),
            self.step,
            after - first,
            high=self.at(after - 1),
            is_integer=self.is_integer,
            listed=None if self.listed is None else self.listed[first:after],
        )

    def _first(self, least: float) -> int:
        """Place of the first step that is not below ``least``; n without any."""
        (place,) = self.index(np.array([least])).clip(0.0, self.n)
        near = math.ceil(place)
        # A number close to a step has its place, even if it is larger than the step.
        around = range(near, min(near + 2, self.n))
        return next((i for i in around if self.at(i) >= least), self.n)

    def _vector(self, values: FloatArray) -> FloatArray:
        return self.index(values) / max(self.n - 1, 1)

    def legal_value(self, value: Any) -> BoolArray:
        """Mask (n,) of the values that are steps."""
        values = np.asarray(value, dtype=np.float64)
        place = self.index(values)
        # Outside the range places are whole, too, but their values are those of the ends.
        near = np.isclose(self.to_value(self._vector(values)), values, rtol=1e-9, atol=0.0)
        return np.asarray((place == np.rint(place)) & near)


def _place(value: Any) -> Any:
    """Place of floats among all 64-bit floats, an integer that grows with them; 0 for 0."""
    bits = np.asarray(value, dtype=np.float64).view(np.int64)
    # Bits of negative floats grow with their size: turned round, they end at 0 for -0.0.
    return np.where(bits < 0, np.int64(-(2**63)) - bits, bits)


def _float_at(place: IntArray) -> FloatArray:
    """The reverse of ``_place``."""
    bits = np.where(place < 0, np.int64(-(2**63)) - place, place)
    return bits.view(np.float64)


def scale_of_floats(low: float, high: float, log: bool) -> Scale:
    """The scale of the 64-bit floats from ``low`` to ``high``."""
    n = count_floats(low, high)
    if n <= FEW_FLOATS and (not log or high <= 2.0 * low):
        # Within a factor of 2 their places are even on a linear scale, and nearly so on a
        # logarithmic one. Only subnormal floats are few over a larger factor.
        return FewFloats(low, high)
    return LogScale(low, high, is_rounded=n <= FEW_FLOATS) if log else LinearScale(low, high)


def floats_within(low: float, high: float) -> tuple[float, float]:
    """The least and the largest float in a range: ends may be integers between two floats."""
    least, most = float(low), float(high)
    return (
        math.nextafter(least, math.inf) if least < low else least,
        math.nextafter(most, -math.inf) if most > high else most,
    )


def scale_of_integers(low: int, high: int, log: bool) -> Scale | None:
    """The scale of the integers that 64-bit floats can hold; None if there are not two."""
    least, most = floats_within(low, high)
    if not least < most:
        return None
    # In a narrow range logarithms are nearly linear, so a linear scale stands in.
    if log and not is_narrow(low, high):
        return LogScale(least, most, step=1.0)
    # Distance of floats at the number farthest from 0 and at the nearest: equal if it is the same
    # in the whole range.
    coarse, fine = (max(1, int(math.ulp(x))) for x in (max(-least, most), max(least, -most, 0.0)))
    n = (int(most) - int(least)) // fine + 1
    if coarse == fine and n <= MOST_EXACT:
        return Steps(least, fine, n, high=most)
    if n <= _FEW:
        # A set: where floats are coarser, several of these integers become one float.
        known = sorted({float(int(least) + i * fine) for i in range(n)})
        return Steps(least, coarse, len(known), high=most, listed=known)
    return LinearScale(least, most, is_whole=True)
