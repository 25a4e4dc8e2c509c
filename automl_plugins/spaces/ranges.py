"""Ranges of numbers as hyperparameters that lose nothing.

ConfigSpace rounds the ends of ranges to 13 decimal places and counts integers in 64 bits. Where
that changes more than the last digits of a range, ``float_range`` and ``integer_range`` return a
hyperparameter with a unit scale of its own:

===========================================  =================================================
range                                        scale
===========================================  =================================================
numbers, linear                              low + u (high - low)
numbers or integers, logarithmic             exp(ln low + u (ln high - ln low)), rounded
at most 2^40 floats, all of about one size   by their place among the 64-bit floats
integers beyond 2^53                         by their place among the multiples of a power of 2
                                             that 64-bit floats can all hold
steps, see ``stepped_range``                 by their place among the steps
===========================================  =================================================

Values are 64-bit floats, integers too: optimisers keep them as such. All scales are increasing,
and give a value back exactly where the vector can tell it from its neighbours.
"""

from __future__ import annotations

import math
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, ClassVar, Final

import numpy as np
import numpy.typing as npt
from ConfigSpace import Float, Integer
from ConfigSpace.hyperparameters import (
    Hyperparameter,
    UniformFloatHyperparameter,
    UniformIntegerHyperparameter,
)
from ConfigSpace.hyperparameters.distributions import (
    UniformIntegerNormalizedDistribution,
    UnitUniformContinuousDistribution,
)

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]

#: Largest integer below which 64-bit floats hold every integer.
MOST_EXACT: Final = 2**53

_FARTHEST = 2.0**20  # widths of the range from its ends: values of an old range may be anywhere
_FEW_FLOATS = 2**40
_LARGE, _NEAR = 2**40, 2**12
_ROUND_PLACES = 13  # of ConfigSpace
_HARDLY = 1e-10
_LARGEST, _LEAST = sys.float_info.max, 5e-324
_ROUNDABLE = 1e295  # larger numbers overflow when ConfigSpace rounds them


def float_range(
    name: str, low: float, high: float, *, log: bool = False, default: float | None = None
) -> UniformFloatHyperparameter:
    """The numbers from ``low`` to ``high``, low < high; ConfigSpace's own class where it is exact.

    Raises:
        ValueError: For an empty range, or one of zero and less on a logarithmic scale.
    """
    low, high = float(low), float(high)
    _check(name, low, high, log)
    if _is_kept(low, high, log) and count_floats(low, high) > _FEW_FLOATS:
        return Float(name, (low, high), log=log, default=default)
    return ExactFloat(name, low, high, log=log, default=default)


def integer_range(
    name: str, low: int, high: int, *, log: bool = False, default: int | None = None
) -> UniformIntegerHyperparameter:
    """The integers from ``low`` to ``high``; ConfigSpace's own class where it is exact.

    Of integers beyond 2^53 these are the ones that 64-bit floats can tell apart.

    Raises:
        ValueError: For fewer than two of them, or one of zero and less on a logarithmic scale.
    """
    low, high = int(low), int(high)
    _check(name, low, high, log)
    exact = max(-low, high) <= MOST_EXACT and high - low < MOST_EXACT
    if exact and not (log and is_narrow(low, high)):
        return Integer(name, (low, high), log=log, default=default)
    return ExactInteger(name, low, high, log=log, default=default)


def stepped_range(
    name: str, steps: Steps
) -> UniformFloatHyperparameter | UniformIntegerHyperparameter:
    """The values of a grid, n > 1, as numbers on a scale of their own."""
    if steps.is_integer:
        return ExactInteger(name, int(steps.low), int(steps.high), scale=steps)
    return ExactFloat(name, steps.low, steps.high, scale=steps)


def is_narrow(low: int, high: int) -> bool:
    """Whether integers are so large and so near that their logarithms are hard to tell apart."""
    return low > _LARGE and (high - low) * _NEAR <= low


def count_floats(low: float, high: float) -> int:
    """Number of 64-bit floats from ``low`` to ``high``."""
    return int(_place(high)) - int(_place(low)) + 1


def _check(name: str, low: float, high: float, log: bool) -> None:
    if not low < high or (log and low <= 0) or not math.isfinite(low) or not math.isfinite(high):
        rule = "0 < low < high" if log else "low < high"
        raise ValueError(f"The range of {name!r} needs {rule}, both finite: got {low}, {high}.")


def _is_kept(low: float, high: float, log: bool) -> bool:
    """Whether ConfigSpace hardly moves the ends of a range, and can subtract them."""
    ends = np.array([low, high])
    with np.errstate(over="ignore"):
        span = high - low
        moved = np.abs(np.round(ends, _ROUND_PLACES) - ends)
        size = ends if log else np.array([span, span])
        return bool(np.isfinite(span) and (moved <= _HARDLY * size).all())


# --- scales ----------------------------------------------------------------------------------


class Scale(ABC):
    """A way from values to [0, 1] and back: a transformer of ConfigSpace.

    Args:
        low: Least value.
        high: Largest value.

    Attributes:
        n: Number of values, evenly spaced on the scale; None for continuous scales.
        is_rounded: Whether many vectors stand for one value.
    """

    lower_vectorized: ClassVar[np.float64] = np.float64(0.0)
    upper_vectorized: ClassVar[np.float64] = np.float64(1.0)
    n: int | None = None
    is_rounded = False
    is_integer = False

    def __init__(self, low: float, high: float) -> None:
        self.low, self.high = low, high

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.__dict__ == self.__dict__

    __hash__ = None  # type: ignore[assignment]

    @abstractmethod
    def to_value(self, vector: FloatArray) -> FloatArray:
        """Values (n,) of vectors (n,)."""

    def to_vector(self, value: Any) -> FloatArray:
        """Vectors (n,) of values (n,); they leave [0, 1] where the values leave the range."""
        values = np.clip(np.asarray(value, dtype=np.float64), -_LARGEST, _LARGEST)
        with np.errstate(over="ignore", invalid="ignore"):
            return np.clip(self._vector(values), -_FARTHEST, _FARTHEST)

    @abstractmethod
    def _vector(self, values: FloatArray) -> FloatArray: ...

    def legal_value(self, value: Any) -> BoolArray:
        """Mask (n,) of the values that lie in the range."""
        values = np.asarray(value, dtype=np.float64)
        inside = (values >= self.low) & (values <= self.high)
        return np.asarray(inside & (values == np.rint(values)) if self.is_integer else inside)

    def legal_vector(self, vector: FloatArray) -> BoolArray:
        """Mask (n,) of the vectors that stand for a value: beyond [0, 1] it is an end."""
        return np.isfinite(vector)

    def legal_value_single(self, value: Any) -> bool:
        """Whether one value is legal."""
        is_number = isinstance(value, int | float | np.number)
        return is_number and bool(self.legal_value(np.array([value]))[0])

    def legal_vector_single(self, vector: Any) -> bool:
        """Whether one vector entry is legal."""
        return math.isfinite(vector)


class LinearScale(Scale):
    """Equal differences are equally far."""

    def __init__(self, low: float, high: float) -> None:
        super().__init__(low, high)
        # The difference of the largest floats is infinite; that of their halves is not.
        self._unit = 1.0 if math.isfinite(high - low) else 2.0
        self._low = low / self._unit
        self._span = high / self._unit - self._low

    def to_value(self, vector: FloatArray) -> FloatArray:
        """See ``Scale``."""
        values = (vector * self._span + self._low) * self._unit
        return np.clip(values, self.low, self.high)

    def _vector(self, values: FloatArray) -> FloatArray:
        return np.asarray((values / self._unit - self._low) / self._span)


class LogScale(Scale):
    """Equal ratios are equally far.

    Args:
        low: Least value.
        high: Largest value.
        is_integer: Whether values are rounded to integers.
        is_rounded: Whether there are so few values that many vectors stand for one.
    """

    def __init__(
        self, low: float, high: float, *, is_integer: bool = False, is_rounded: bool = False
    ) -> None:
        super().__init__(low, high)
        self.is_integer = is_integer
        self.is_rounded = is_integer or is_rounded

    def to_value(self, vector: FloatArray) -> FloatArray:
        """See ``Scale``."""
        least, most = math.log(self.low), math.log(self.high)
        with np.errstate(over="ignore", under="ignore"):
            values = np.exp(least + vector * (most - least))
        return np.clip(np.rint(values) if self.is_integer else values, self.low, self.high)

    def _vector(self, values: FloatArray) -> FloatArray:
        least, most = math.log(self.low), math.log(self.high)
        # ConfigSpace rounds defaults to 13 places, that is to 0.
        logarithms = np.log(np.where(values == 0.0, _LEAST, values))
        return np.asarray((logarithms - least) / (most - least))


class FewFloats(Scale):
    """All 64-bit floats of a range, by their place among them."""

    def __init__(self, low: float, high: float) -> None:
        super().__init__(low, high)
        self.n = count_floats(low, high)

    def to_value(self, vector: FloatArray) -> FloatArray:
        """See ``Scale``."""
        assert self.n is not None
        places = np.rint(np.clip(vector, 0.0, 1.0) * (self.n - 1)).astype(np.int64)
        return _float_at(places + _place(self.low))

    def _vector(self, values: FloatArray) -> FloatArray:
        assert self.n is not None
        places = _place(np.clip(values, self.low, self.high)) - _place(self.low)
        inside = places / (self.n - 1)
        return np.where(values < self.low, -1.0, np.where(values > self.high, 2.0, inside))


class Steps(Scale):
    """Values at even distances, or those that are listed.

    Args:
        low: Least value.
        step: Distance of the values.
        n: Their number, at most 2^53 + 1.
        high: The largest value, where the sum of so many steps may miss it by a rounding.
        is_integer: Whether all values are whole.
        listed: All values, where they are not at even distances.
    """

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
        assert self.n is not None
        places = np.rint(np.clip(vector, 0.0, 1.0) * (self.n - 1))
        if self.listed is not None:
            return np.array(self.listed)[places.astype(np.int64)]
        return np.clip(self.low + places * self.step, self.low, self.high)

    def index(self, values: FloatArray) -> FloatArray:
        """Place (n,) of values among the steps; between two of them for values in between."""
        assert self.n is not None
        if self.listed is not None:
            return np.interp(values, self.listed, np.arange(self.n))
        with np.errstate(over="ignore", invalid="ignore"):
            place = (values - self.low) / self.step
        whole = np.rint(place)
        # (0.3 - 0.0) / 0.1 is 2.9999999999999996, and equal values must have equal vectors.
        return np.where(np.abs(place - whole) <= 1e-9 * np.maximum(1.0, whole), whole, place)

    def _vector(self, values: FloatArray) -> FloatArray:
        assert self.n is not None
        return self.index(values) / max(self.n - 1, 1)

    def legal_value(self, value: Any) -> BoolArray:
        """Mask (n,) of the values that are steps."""
        values = np.asarray(value, dtype=np.float64)
        place = self.index(values)
        near = np.isclose(self.to_value(self._vector(values)), values, rtol=1e-9, atol=0.0)
        return np.asarray((place == np.rint(place)) & near)


def _place(value: Any) -> Any:
    """Place of floats among all 64-bit floats, an integer that grows with them; 0 for 0."""
    bits = np.asarray(value, dtype=np.float64).view(np.int64)
    return np.where(bits < 0, np.int64(-(2**63)) - bits, bits)


def _float_at(place: npt.NDArray[np.int64]) -> FloatArray:
    """The reverse of ``_place``."""
    bits = np.where(place < 0, np.int64(-(2**63)) - place, place)
    return bits.view(np.float64)


def _scale_of_floats(low: float, high: float, log: bool) -> Scale:
    n = count_floats(low, high)
    if n <= _FEW_FLOATS and (not log or high <= 2.0 * low):
        return FewFloats(low, high)
    return LogScale(low, high, is_rounded=n <= _FEW_FLOATS) if log else LinearScale(low, high)


def _scale_of_integers(low: int, high: int, log: bool) -> Scale | None:
    """The scale of the integers that 64-bit floats can hold; None if there are not two."""
    step = max(1, int(math.ulp(float(max(-low, high)))))
    if log and not is_narrow(low, high):
        # The largest float there is, for a float of ``high`` may lie above it.
        least, most = float(low), float(high if high <= MOST_EXACT else high // step * step)
        least = math.nextafter(least, math.inf) if least < low else least
        return LogScale(least, most, is_integer=True) if least < most else None
    while (high - low) // step >= MOST_EXACT:
        step *= 2
    first, last = -(-low // step), high // step
    return Steps(first * step, step, last - first + 1) if first < last else None


# --- hyperparameters -------------------------------------------------------------------------


class ExactFloat(UniformFloatHyperparameter):
    """A range of numbers with a scale of its own, see ``float_range``."""

    scale: Scale

    def __init__(
        self,
        name: str,
        low: float,
        high: float,
        *,
        log: bool = False,
        scale: Scale | None = None,
        default: float | None = None,
    ) -> None:
        self.lower, self.upper, self.log = low, high, log
        _set_up(self, name, scale or _scale_of_floats(low, high, log), float, default)


class ExactInteger(UniformIntegerHyperparameter):
    """A range of integers with a scale of its own, see ``integer_range``."""

    scale: Scale

    def __init__(
        self,
        name: str,
        low: int,
        high: int,
        *,
        log: bool = False,
        scale: Scale | None = None,
        default: int | None = None,
    ) -> None:
        scale = scale or _scale_of_integers(low, high, log)
        if scale is None:
            raise ValueError(
                f"The range of {name!r}, {low} to {high}, has no two integers that 64-bit floats"
                " can tell apart: tune the distance to the low end instead."
            )
        self.lower, self.upper, self.log = int(scale.low), int(scale.high), log
        _set_up(self, name, scale, int, default)


def _set_up(
    hyperparameter: ExactFloat | ExactInteger,
    name: str,
    scale: Scale,
    cast: Callable[[Any], Any],
    default: float | None,
) -> None:
    """What ConfigSpace's own classes do at the end of their constructors."""
    distribution: Any = UnitUniformContinuousDistribution(pdf_max_density=1.0)
    if scale.n is not None:
        distribution = UniformIntegerNormalizedDistribution(size=scale.n)
    size: Any = math.inf if scale.n is None else scale.n
    hyperparameter.scale = scale
    Hyperparameter.__init__(
        hyperparameter,
        name=name,
        default_value=cast(_default(scale) if default is None else default),
        vector_dist=distribution,
        transformer=scale,  # type: ignore[arg-type]
        neighborhood=distribution.neighborhood,
        size=size,
        neighborhood_size=size,
        value_cast=cast,
    )


def _default(scale: Scale) -> float:
    """The middle of a range, or its smallest number where ConfigSpace cannot round the middle."""
    middle = float(scale.to_value(np.array([0.5]))[0])
    return middle if abs(middle) < _ROUNDABLE else min(max(0.0, scale.low), scale.high)


def scale_of(hyperparameter: Hyperparameter[Any, Any]) -> Scale | None:
    """The scale of a hyperparameter of this module; None for those of ConfigSpace."""
    if not isinstance(hyperparameter, ExactFloat | ExactInteger):
        return None
    return hyperparameter.scale


# --- written down ----------------------------------------------------------------------------


def _encode(hyperparameter: ExactFloat | ExactInteger, _: Any) -> dict[str, Any]:
    plain: dict[str, Any] = {
        "name": hyperparameter.name,
        "lower": hyperparameter.lower,
        "upper": hyperparameter.upper,
        "log": hyperparameter.log,
    }
    scale = hyperparameter.scale
    if isinstance(scale, Steps) and not hyperparameter.log:  # else the range says all
        plain["steps"] = {"step": scale.step, "n": scale.n, "listed": scale.listed}
    return plain


def _decode(item: dict[str, Any], *_: Any, is_integer: bool) -> Any:
    name, low, high = item["name"], item["lower"], item["upper"]
    if (known := item.get("steps")) is None:
        return (integer_range if is_integer else float_range)(name, low, high, log=item["log"])
    steps = Steps(
        low, known["step"], known["n"], high=high, is_integer=is_integer, listed=known["listed"]
    )
    return stepped_range(name, steps)


#: For ``ConfigurationSpace.to_serialized_dict`` and ``from_serialized_dict``, see ``choices``.
ENCODERS: Final[Any] = {
    ExactFloat: ("exact_float", _encode),
    ExactInteger: ("exact_int", _encode),
}
DECODERS: Final[Any] = {
    "hyperparameters": {
        "exact_float": partial(_decode, is_integer=False),
        "exact_int": partial(_decode, is_integer=True),
    }
}
