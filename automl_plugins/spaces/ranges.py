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
integers beyond 2^53                         low + u (high - low), rounded; by their place among
                                             the floats where these are few or evenly spaced
steps, see ``stepped_range``                 by their place among the steps
===========================================  =================================================

Integers are those that 64-bit floats can hold: optimisers keep them as such. See ``scales``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping
from functools import partial
from typing import Any, Final

import numpy as np
from ConfigSpace import Constant, Float, Integer
from ConfigSpace.hyperparameters import (
    Hyperparameter,
    UniformFloatHyperparameter,
    UniformIntegerHyperparameter,
)
from ConfigSpace.hyperparameters.distributions import (
    UniformIntegerNormalizedDistribution,
    UnitUniformContinuousDistribution,
)
from ConfigSpace.hyperparameters.hp_components import ROUND_PLACES

from automl_plugins.spaces.scales import (
    FEW_FLOATS,
    MOST_EXACT,
    LogScale,
    Scale,
    Steps,
    count_floats,
    floats_within,
    is_narrow,
    scale_of_floats,
    scale_of_integers,
)

#: ``meta`` of a hyperparameter that is the position, 0 to 1, in a range that depends on others.
POSITION: Final[Mapping[Hashable, Any]] = {"is_position": True}
_HARDLY = 1e-10  # share of the range, far below the difference of any two evaluations
_ROUNDABLE = 1e295  # larger numbers overflow when ConfigSpace rounds them: it multiplies by 10^13


def float_range(
    name: str, low: float, high: float, *, log: bool = False, default: float | None = None
) -> UniformFloatHyperparameter:
    """The numbers from ``low`` to ``high``, low < high; ConfigSpace's own class where it is exact.

    Raises:
        ValueError: If low >= high or an end is not finite, or if low <= 0 on a logarithmic scale.
    """
    low, high = float(low), float(high)
    _check(name, low, high, log)
    # Few floats need a scale with their number: a search may exhaust them, and a step must reach
    # another one.
    if _is_kept(low, high, log) and count_floats(low, high) > FEW_FLOATS:
        return Float(name, (low, high), log=log, default=default)
    return ExactFloat(name, scale_of_floats(low, high, log), log=log, default=default)


def integer_range(
    name: str, low: int, high: int, *, log: bool = False, default: int | None = None
) -> UniformIntegerHyperparameter:
    """The integers from ``low`` to ``high``; ConfigSpace's own class where it is exact.

    Beyond 2^53 only the integers that 64-bit floats can hold belong to it.

    Raises:
        ValueError: If it has fewer than two integers, or if low <= 0 on a logarithmic scale.
    """
    low, high = int(low), int(high)
    _check(name, low, high, log)
    least, most = floats_within(low, high)
    # Each integer, and each number of integers, is a float of its own.
    exact = max(-least, most) <= MOST_EXACT and 0.0 < most - least < MOST_EXACT
    if exact and not (log and is_narrow(low, high)):
        return Integer(name, (int(least), int(most)), log=log, default=default)
    if (scale := scale_of_integers(low, high, log)) is None:
        raise ValueError(
            f"The range of {name!r}, {low} to {high}, has no two integers that 64-bit floats"
            " can tell apart: tune the distance to the low end instead."
        )
    return ExactInteger(name, scale, log=log, default=default)


def stepped_range(
    name: str, steps: Steps
) -> UniformFloatHyperparameter | UniformIntegerHyperparameter:
    """The values of a grid, n > 1, as numbers on a scale of their own."""
    return (ExactInteger if steps.is_integer else ExactFloat)(name, steps)


def multiples_on_a_log_scale(
    name: str, low: float, high: float, step: float
) -> UniformFloatHyperparameter:
    """Multiples of ``step`` on a logarithmic scale; those outside the range count as its ends."""
    _check(name, low, high, log=True)
    return ExactFloat(name, LogScale(low, high, step=step), log=True)


def part_of(
    whole: ExactFloat | ExactInteger, low: float, high: float, default: Any = None
) -> Hyperparameter[Any, Any]:
    """The numbers of a range from ``low`` to ``high``, on the same steps where it has some.

    Raises:
        ValueError: If there are none.
    """
    name, log, scale = whole.name, bool(whole.log), whole.scale
    # If only the default changes, the scale stays, with its steps.
    if (low, high) != (whole.lower, whole.upper):
        if steps_of(whole) is None and multiples_of(whole) is None:
            if isinstance(whole, ExactInteger):
                return integer_range(name, int(low), int(high), log=log, default=default)
            return float_range(name, low, high, log=log, default=default)
        assert isinstance(scale, LogScale | Steps)
        part = scale.part(*floats_within(low, high))
        if part is None:
            raise ValueError(f"{name!r} has no value from {low} to {high}.")
        scale = part
    if scale.low == scale.high:
        # Scales hold floats, and the constant of an integer range must be an ``int`` again.
        return Constant(name, type(whole.lower)(scale.low))
    return type(whole)(name, scale, log=log, default=default)


def _check(name: str, low: float, high: float, log: bool) -> None:
    if not low < high or (log and low <= 0) or not math.isfinite(low) or not math.isfinite(high):
        rule = "0 < low < high" if log else "low < high"
        raise ValueError(f"The range of {name!r} needs {rule}, both finite: got {low}, {high}.")


def _is_kept(low: float, high: float, log: bool) -> bool:
    """Whether ConfigSpace hardly moves the ends of a range, and can subtract them."""
    ends = np.array([low, high])
    with np.errstate(over="ignore"):
        span = high - low
        # By the rounding in the constructors of ConfigSpace.
        moved = np.abs(np.round(ends, ROUND_PLACES) - ends)
        # Relative to the range, and on a log scale to the number itself.
        size = ends if log else np.array([span, span])
        return bool(np.isfinite(span) and (moved <= _HARDLY * size).all())


# --- hyperparameters -------------------------------------------------------------------------


class ExactFloat(UniformFloatHyperparameter):
    """A range of numbers with a scale of its own, see ``float_range``."""

    scale: Scale

    def __init__(
        self, name: str, scale: Scale, *, log: bool = False, default: float | None = None
    ) -> None:
        # The constructor of the class above is left out: it would round the ends.
        self.lower, self.upper, self.log = scale.low, scale.high, log
        _set_up(self, name, scale, float, default)


class ExactInteger(UniformIntegerHyperparameter):
    """A range of integers with a scale of its own, see ``integer_range``."""

    scale: Scale

    def __init__(
        self, name: str, scale: Scale, *, log: bool = False, default: int | None = None
    ) -> None:
        # The constructor of the class above is left out: it would count in 64 bits.
        self.lower, self.upper, self.log = int(scale.low), int(scale.high), log
        _set_up(self, name, scale, int, default)


def _set_up(
    hyperparameter: ExactFloat | ExactInteger,
    name: str,
    scale: Scale,
    cast: Callable[[Any], Any],
    default: float | None,
) -> None:
    """Set what ConfigSpace's own classes set at the end of their constructors."""
    # Even scales have an entry for each value. On others any entry is drawn; ``Column`` rounds it.
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
    # ConfigSpace rounds the values of a configuration: a larger default would become infinite.
    if abs(middle) < _ROUNDABLE:
        return middle
    smallest = min(max(0.0, scale.low), scale.high)
    if scale.n is None:
        return smallest
    return float(scale.to_value(scale.to_vector(np.array([smallest])))[0])  # of the grid


def scale_of(hyperparameter: Hyperparameter[Any, Any]) -> Scale | None:
    """The scale of a hyperparameter of this module; None for one of ConfigSpace."""
    if not isinstance(hyperparameter, ExactFloat | ExactInteger):
        return None
    return hyperparameter.scale


def steps_of(hyperparameter: Hyperparameter[Any, Any]) -> Steps | None:
    """The scale of numbers at even distances; None for any others, and on a log scale."""
    # ``Steps`` also stand in for a log scale where logarithms of neighbours hardly differ.
    if not isinstance(hyperparameter, ExactFloat | ExactInteger) or hyperparameter.log:
        return None
    return hyperparameter.scale if isinstance(hyperparameter.scale, Steps) else None


def multiples_of(hyperparameter: Hyperparameter[Any, Any]) -> float | None:
    """The step of numbers that are ``multiples_on_a_log_scale``; None for any others."""
    scale = scale_of(hyperparameter)
    if isinstance(hyperparameter, ExactFloat) and isinstance(scale, LogScale):
        return scale.step
    return None


# --- written down ----------------------------------------------------------------------------


def _encode(hyperparameter: ExactFloat | ExactInteger, _: Any) -> dict[str, Any]:
    plain: dict[str, Any] = {
        "name": hyperparameter.name,
        "lower": hyperparameter.lower,
        "upper": hyperparameter.upper,
        "log": hyperparameter.log,
    }
    if step := multiples_of(hyperparameter):
        plain["multiples_of"] = step
    if steps := steps_of(hyperparameter):
        plain["steps"] = {"step": steps.step, "n": steps.n, "listed": steps.listed}
    # Only an unusual default is written: stores have the text of other spaces.
    if hyperparameter.default_value != type(hyperparameter.lower)(_default(hyperparameter.scale)):
        plain["default_value"] = hyperparameter.default_value
    return plain


def _decode(item: dict[str, Any], *_: Any, is_integer: bool) -> Any:
    found = _decode_range(item, is_integer)
    default = item.get("default_value")
    return found if default is None else part_of(found, found.lower, found.upper, default)


def _decode_range(item: dict[str, Any], is_integer: bool) -> Any:
    name, low, high = item["name"], item["lower"], item["upper"]
    if (step := item.get("multiples_of")) is not None:
        return multiples_on_a_log_scale(name, low, high, step)
    if (known := item.get("steps")) is None:
        # All other scales follow from the ends.
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
