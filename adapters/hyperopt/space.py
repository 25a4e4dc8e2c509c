"""A Hyperopt search space translated to ConfigSpace, and values in both.

===============================  ===============================================================
Hyperopt                         ConfigSpace
===============================  ===============================================================
``choice``, ``pchoice``          categorical, with weights; what is in its options is conditional,
                                 and an option with probability 0 is forbidden
``randint``                      integer; as the index of a ``switch`` like ``choice``
``uniform``, ``loguniform``      float, on a log scale
``normal``                       normal float between two quantiles, 0.0001 and 0.9999
``lognormal``                    float on a log scale between the same quantiles
``quniform``, ``qnormal``,       ``q`` = 1: integer; else an ordinal of all multiples of ``q``, or
``qloguniform``,                 a float in steps, where these are more than 1000; on a log scale,
``qlognormal``, ``uniformint``   which an ordinal does not have, more than 16
===============================  ===============================================================

Values are those of the labels, as ``fmin`` returns them: of ``hp.uniform("x", 0, 1) * 10`` the
number drawn from [0, 1], not the product that the objective gets.

An option that is a number, a text, a bool or None is its own name. A dictionary is named by its
value under the label of the choice, if all options have different ones. Other options are named
by the text under "type", "name", "model", ..., or by their first text; a constant such as
``(64, 32)`` is written out, a function or class has its own name; all others are ``label[i]``.
"""

from __future__ import annotations

import math
import statistics
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from numbers import Integral, Real
from typing import Any

import numpy as np
from ConfigSpace import ConfigurationSpace, ForbiddenEqualsClause
from ConfigSpace.conditions import OrConjunction
from ConfigSpace.hyperparameters import (
    FloatHyperparameter,
    Hyperparameter,
    IntegerHyperparameter,
    NormalFloatHyperparameter,
    NormalIntegerHyperparameter,
    OrdinalHyperparameter,
    UniformFloatHyperparameter,
)
from hyperopt import Domain, pyll

from automl_plugins.records.trial import as_number
from automl_plugins.spaces.choices import one_of, ordered, unordered
from automl_plugins.spaces.ranges import (
    ExactFloat,
    float_range,
    integer_range,
    multiples_on_a_log_scale,
    stepped_range,
)
from automl_plugins.spaces.scales import MOST_EXACT, Steps
from automl_plugins.spaces.values import find, plain, to_number

from ._pyll import (
    active_among,
    choices,
    constant,
    depends,
    describe,
    ends_of,
    foreign_switches,
    labels,
    places_of,
    simplify,
    why_foreign,
)
from .expressions import ExpressionSpace

ROUNDED = 1e-9  # share of a range: a value beyond its end by less counts as the end
_TAIL = 1e-4  # probability beyond each end of the range of a normal distribution
_LEAST = 5e-324  # float above 0
_LARGEST_LOG = math.log(sys.float_info.max)
_DEVIATIONS = -statistics.NormalDist().inv_cdf(_TAIL)
_GRID = 1000  # multiples of q that are listed, at most
_LOG_GRID = 16  # the same on a log scale
_LOG = ("loguniform", "qloguniform", "lognormal", "qlognormal")
_NORMAL = ("normal", "qnormal", "lognormal", "qlognormal")
_DISTRIBUTIONS = ("randint", "uniform", "quniform", *_LOG, *_NORMAL)


@dataclass(frozen=True, eq=False)
class PyllSpace:
    """A Hyperopt search space and its translation, see ``translate``.

    Attributes:
        expr: The space, as a pyll expression.
        space: The translation.
        options: Names of the options of each choice, by label.
        stand_ins: Labels of hyperparameters that ConfigSpace cannot express; a number in [0, 1]
            replaces them.

    Example::

        print(translate(space).space)  # the ConfigurationSpace
    """

    expr: Any
    space: ConfigurationSpace
    options: Mapping[str, tuple[Any, ...]]
    stand_ins: frozenset[str] = frozenset()

    @cached_property
    def domain(self) -> Domain:
        """The domain of suggest functions, without an objective."""
        return Domain(None, self.expr, pass_expr_memo_ctrl=False)

    def values(self, drawn: Mapping[str, Any]) -> dict[str, Any]:
        """Values by name, from the draws of a trial by label; inactive labels are absent.

        Points that a user gives may have labels of all branches.

        Raises:
            ValueError: For a label or an option that the space does not have, or a value that is
                no number.
        """
        if foreign := [label for label in drawn if label not in self.space]:
            raise ValueError(
                f"A trial has the label {foreign[0]!r}; the search space has"
                f" {', '.join(self.space)}. Pass the space of these trials."
            )
        values = {label: self.value(label, value) for label, value in drawn.items()}
        return {label: values[label] for label in active_among(drawn, self.expr)}

    def value(self, label: str, drawn: Any) -> Any:
        """The value of a hyperparameter that was ``drawn``; ValueError as in ``values``.

        A number more than half a step from all listed ones stays: its loss is not the nearest's.
        """
        number = as_number(drawn)
        hyperparameter: Any = self.space[label]
        real = isinstance(hyperparameter, FloatHyperparameter)  # which may be drawn as infinite
        if math.isnan(number) or (math.isinf(number) and not real):
            raise ValueError(
                f"A trial has {drawn!r} for {label!r}, which must be a number: points_to_evaluate="
                " has the index of an option, not the option itself."
            )
        if label in self.options:
            names = self.options[label]
            if not (number.is_integer() and 0 <= number < len(names)):
                raise ValueError(
                    f"A trial has option {number:g} of {label!r}, which has {len(names)}"
                    " options: an index may mean another option than in these trials. A search of"
                    " another space needs trials of its own, which are read with that space."
                )
            return names[int(drawn)]
        if isinstance(hyperparameter, OrdinalHyperparameter):
            listed = hyperparameter.sequence
            nearest = min(listed, key=lambda value: abs(value - drawn))
            step = listed[1] - listed[0] if len(listed) > 1 else 0.0
            reach = step / 2.0 + ROUNDED * max(abs(listed[0]), abs(listed[-1]))
            return nearest if abs(nearest - drawn) <= reach else plain(drawn)
        if isinstance(hyperparameter, IntegerHyperparameter):
            return round(drawn)
        if drawn == 0 and hyperparameter.log:  # 0 is a multiple of q, but not on a log scale
            return float(hyperparameter.lower)
        return float(drawn)

    def labels(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """What a trial with these values would have drawn, by label; the inverse of ``values``.

        Labels missing in ``values`` are left out, with all hyperparameters below them.

        Raises:
            ValueError: For a value that is not an option of a choice, or not a number.
        """
        given = [label for label in self.space.at if label in values]
        drawn = {label: self._draw(label, values[label]) for label in given}
        return active_among(drawn, self.expr)

    def _draw(self, label: str, value: Any) -> Any:
        if label in self.options:
            index = find(self.options[label], value)
            if index is None:
                raise ValueError(
                    f"{value!r} is not an option of {label!r}; its options are"
                    f" {', '.join(map(repr, self.options[label]))}."
                )
            return index
        number, q = to_number(value), self.step(label)
        is_integer = self.domain.params[label].name == "randint"
        if math.isnan(number) or (math.isinf(number) and (is_integer or q)):
            raise ValueError(f"{label}={value!r} is not a number, as {self.space[label]} needs.")
        number = int(value) if isinstance(value, Integral) else number  # exact beyond 2^53, too
        if is_integer:
            return int(number)
        if q:
            return float(round(number / q) * q)  # a range may end between two multiples
        return float(number)

    def step(self, label: str) -> float | None:
        """The ``q`` of a hyperparameter; None if it has none."""
        q: float | None = constant(self.domain.params[label], "q")
        return q


#: A search space of Hyperopt and of ConfigSpace.
SearchSpace = PyllSpace | ExpressionSpace


def read_space(space: Any) -> SearchSpace:
    """Read a ``ConfigurationSpace``, or anything that ``fmin`` takes as a search space.

    Raises:
        ValueError: For a space that ConfigSpace cannot express.
    """
    if isinstance(space, ConfigurationSpace):
        return ExpressionSpace(space)
    return space if isinstance(space, PyllSpace | ExpressionSpace) else translate(space)


def is_space(thing: Any) -> bool:
    """Whether an object is a Hyperopt search space: an expression with hyperparameters."""
    try:
        return depends(pyll.as_apply(thing))
    except Exception:  # pyll may raise anything for foreign objects
        return False


def refuse_general(function: str, space: Any) -> None:
    """Raise TypeError for a ``ConfigurationSpace``, which is a constant to pyll."""
    if isinstance(space, ConfigurationSpace):
        raise TypeError(
            f"{function} takes a space of Hyperopt; expression makes one of a ConfigurationSpace."
        )


@np.errstate(over="ignore")  # ConfigSpace rounds defaults, however large they are
def translate(space: Any, *, lenient: bool = False) -> PyllSpace:
    """A Hyperopt search space as a ``ConfigurationSpace``, conditions included.

    Args:
        space: Anything that ``fmin`` takes as a search space.
        lenient: Whether a number in [0, 1] replaces what ConfigSpace cannot express.

    Raises:
        ValueError: For an expression that ConfigSpace cannot express: a range that depends on
            another hyperparameter, a switch on anything but ``hp.choice`` or ``hp.randint``.
        TypeError: For a ``ConfigurationSpace``.
    """
    refuse_general("translate", space)
    expr = pyll.as_apply(space)
    foreign = foreign_switches(expr)
    if foreign and not lenient:
        raise ValueError(why_foreign(foreign[0]))
    stand_ins = {label for node in foreign for part in node.pos_args[1:] for label in labels(part)}
    params, places = places_of(expr)
    found = {label: c for label, c in choices(expr).items() if label not in stand_ins}
    options = {label: choice.names() for label, choice in found.items()}
    hyperparameters: list[Hyperparameter[Any, Any]] = []
    for label, node in params.items():
        # The stand-in, unless there is something better.
        made: Hyperparameter[Any, Any] = UniformFloatHyperparameter(label, 0.0, 1.0)
        try:
            if label in found:
                made = unordered(label, options[label], weights=found[label].probabilities)
            elif label not in stand_ins:
                made = _hyperparameter(label, node.arg["obj"])
        except ValueError:
            if not lenient:
                raise
            stand_ins.add(label)
        hyperparameters.append(made)
    translated = ConfigurationSpace()
    translated.add(hyperparameters)
    limits: list[Any] = []
    for label, where in places.items():
        # What switches it on is not known: it counts as always active.
        if set(where) & stand_ins:
            continue
        parts = [
            one_of(translated[label], translated[parent], [options[parent][i] for i in sorted(to)])
            for parent, to in simplify(where, places, found).items()
        ]
        if parts:
            limits.append(parts[0] if len(parts) == 1 else OrConjunction(*parts))
    for label, choice in found.items():
        # A weight of zero keeps ConfigSpace from drawing it, but not a model from proposing it.
        for i in set(range(len(choice.options))) - set(choice.possible):
            limits.append(ForbiddenEqualsClause(translated[label], options[label][i]))
    translated.add(limits)
    return PyllSpace(expr, translated, options, frozenset(stand_ins))


# --- one hyperparameter ----------------------------------------------------------------------


def _hyperparameter(label: str, node: Any) -> Hyperparameter[Any, Any]:
    """The hyperparameter of a distribution; ValueError for one that ConfigSpace cannot express."""
    if node.name not in _DISTRIBUTIONS:
        raise ValueError(
            f"{label!r} is drawn from {describe(node)}, which ConfigSpace cannot express: use one"
            " of Hyperopt's own distributions (hp.uniform, hp.choice, ...)."
        )
    given = _constants(label, node)
    if node.name == "randint":
        return _of_randint(label, node, given)
    drawn = _read_numbers(label, node, given)
    found = None if drawn.q is None else _of_multiples(drawn, drawn.q)
    return _of_range(drawn) if found is None else found


def _of_randint(label: str, node: Any, given: Mapping[str, Any]) -> Hyperparameter[Any, Any]:
    if not all(map(math.isfinite, given.values())):
        raise ValueError(f"{label!r} needs finite ends, got {[*given.values()]}.")
    whole = ends_of(node)
    assert whole is not None  # ``_constants`` has refused others
    first, end = whole
    if not first < end:
        raise ValueError(
            f"{label!r} needs an upper end above the lower one, got {first!r} and {end!r}."
        )
    return _integers(label, first, end - 1, log=False)


@dataclass(frozen=True)
class _Numbers:
    """What a distribution draws."""

    label: str
    low: float  # with ``log`` the natural logarithm of the least number
    high: float
    log: bool
    q: float | None  # draws are rounded to multiples of q; None if they are not rounded
    normal: tuple[float, float] | None  # mean and standard deviation; None if it is uniform

    def multiples(self, q: float) -> tuple[int, int]:
        """The first and the last multiple of q, but not one that only an end is rounded to."""
        ends = (math.exp(self.low), math.exp(self.high)) if self.log else (self.low, self.high)
        first, last = math.floor(ends[0] / q + 0.5), math.ceil(ends[1] / q - 0.5)
        if last < first:  # one number in the middle of two multiples: the even one
            first = last = round(ends[0] / q)
        return first, last


def _read_numbers(label: str, node: Any, given: Mapping[str, Any]) -> _Numbers:
    name, q = node.name, given.get("q")
    log = name in _LOG
    if q is not None and not 0 < q < math.inf:
        raise ValueError(f"q of {label!r} must be a finite number above 0, got {q!r}.")
    normal = None
    if name in _NORMAL:
        mu, sigma = normal = float(given["mu"]), float(given["sigma"])
        if not 0.0 <= sigma < math.inf:
            raise ValueError(f"sigma of {label!r} must be a finite number >= 0, got {sigma!r}.")
        low, high = mu - _DEVIATIONS * sigma, mu + _DEVIATIONS * sigma
    else:
        low, high = given["low"], given["high"]
    # On a log scale -inf stands for 0, and an end that is too large is cut off or refused below.
    if math.isnan(low) or math.isnan(high) or (not log and math.inf in (high, -low)):
        raise ValueError(f"{label!r} needs finite ends, got {low!r} and {high!r}.")
    if low > high:  # Hyperopt lets it pass if one of them is 0
        raise ValueError(f"{label!r} needs low <= high in hp.{name}, got {low!r} and {high!r}.")
    # Without q, a range that is partly too large for a float is cut off, not refused.
    end = low if q is None else high
    if log and max(end, end - math.log(q or 1.0)) > _LARGEST_LOG:
        raise ValueError(
            f"{label!r} reaches e ** {end:g}, which is too large for a float: the numbers of"
            f" hp.{name} are natural logarithms."
        )
    return _Numbers(label, low, high, log, q, normal)


def _of_multiples(drawn: _Numbers, q: float) -> Hyperparameter[Any, Any] | None:
    """The multiples of q; None where they are so many that they count as a range of numbers."""
    label, log = drawn.label, drawn.log
    first, last = drawn.multiples(q)
    # A log scale cannot begin at 0, to which all below q / 2 is rounded.
    if q == 1 and not (log and first < 1):
        if first < last and drawn.normal and not log and max(-first, last) <= MOST_EXACT:
            return NormalIntegerHyperparameter(label, *drawn.normal, first, last)
        return _integers(label, first, last, log=log)
    if last - first < (_LOG_GRID if log else _GRID):
        return ordered(label, [i * q for i in range(first, last + 1)])
    if not log and last - first < MOST_EXACT:
        n = last - first + 1
        return stepped_range(label, Steps(first * q, q, n, high=last * q, is_integer=False))
    return None


def _of_range(drawn: _Numbers) -> Hyperparameter[Any, Any]:
    """All numbers between two ends; with q and a log scale, those that are multiples."""
    label, log, q = drawn.label, drawn.log, drawn.q
    low, high = float(drawn.low), float(drawn.high)
    if log:
        # Logarithms of subnormal numbers are not exact: they count only in a range of them alone.
        least = sys.float_info.min if high > math.log(sys.float_info.min) else _LEAST
        least = max(math.exp(low), least)
        # Up to q / 2 all numbers are rounded to 0: keep an octave.
        if q is not None and drawn.multiples(q)[0] < 1:
            least = max(least, q / 4.0)
        low, high = least, max(math.exp(min(high, _LARGEST_LOG)), least)
        if q is not None and low < high:
            # What a number at an end is rounded to is the end, or a trial there would lie beyond.
            first, last = (float(min(i * q, sys.float_info.max)) for i in drawn.multiples(q))
            return multiples_on_a_log_scale(label, first or low, last, q)
    if low == high:
        return ordered(label, [low])
    found = float_range(label, low, high, log=log)
    if drawn.normal and not log and not isinstance(found, ExactFloat):
        return NormalFloatHyperparameter(label, *drawn.normal, low, high)
    return found


def _integers(label: str, low: int, high: int, *, log: bool) -> Hyperparameter[Any, Any]:
    # Beyond 2^53 a range would merge integers that are one float.
    if low == high or (max(-low, high) > MOST_EXACT and high - low < _GRID):
        return ordered(label, list(range(low, high + 1)))
    return integer_range(label, low, high, log=log)


def _constants(label: str, node: Any) -> dict[str, Any]:
    """Arguments of a distribution by name; ValueError if one is missing or not constant."""
    given: dict[str, Any] = {}
    arguments = node.arg
    takes = [name for name in ("low", "high", "mu", "sigma", "q") if name in arguments]
    for name in takes:
        argument = arguments[name]
        if not isinstance(argument, pyll.Apply):  # it is not given
            continue
        if depends(argument):
            raise ValueError(
                f"{name} of {label!r} depends on other hyperparameters: {describe(argument)}. A"
                " range must be constant: draw from [0, 1] and scale in the objective, or give"
                " each option of an hp.choice a range of its own."
            )
        value = constant(node, name)
        if not isinstance(value, Real):
            raise ValueError(f"{name} of {label!r} must be a number, got {value!r}.")
        try:
            float(value)
        except OverflowError:
            raise ValueError(f"{name} of {label!r} is too large for a float.") from None
        given[name] = value
    missing = set(takes) - set(given) - ({"high"} if node.name == "randint" else set())
    # Hyperopt takes a surplus argument, such as a step, for the random generator.
    if missing or isinstance(arguments["rng"], pyll.Apply):
        raise ValueError(
            f"{label!r} must be drawn from {node.name}({', '.join(takes)}), got {describe(node)}."
        )
    return given
