"""Random conditional search spaces, and the same one in the words of each framework."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from ConfigSpace import ConfigurationSpace, ForbiddenAndConjunction, ForbiddenEqualsClause
from ConfigSpace.hyperparameters import (
    BetaFloatHyperparameter,
    CategoricalHyperparameter,
    Constant,
    NormalFloatHyperparameter,
    OrdinalHyperparameter,
    UniformFloatHyperparameter,
    UniformIntegerHyperparameter,
)
from drawing import Source
from hyperopt import hp
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)

from automl_plugins.spaces.choices import categorical, one_of
from automl_plugins.spaces.ranges import float_range, integer_range

Values = dict[str, Any]


class Refused(Exception):
    """The framework itself has no such thing: nothing of ours was asked."""


NAMES = (
    *(
        "x",
        "C",
        "n_layers",
        "kernel",
        "a.b",
        "a/b/c",
        "it's",
        'a "b"',
        "größe",
        "学习率",
        "λ",
        "🙂",
    ),
    *("", " ", "a b", "0", "-1", "None", "nan", "x:y", "a\\b", "tab\there", "line\nbreak", "%s"),
    *("{x}", "value", "loss", "type", "status", "seconds", "x" * 300, "é", "e\u0301", "__class__"),
)
CHOICES: list[list[Any]] = [
    ["a", "b"],
    ["a", "b", "c", "d"],
    [False, True],
    [None, "a"],
    [1, 2, 3],
    [0.1, 0.5],
    [1, True],
    [0, False, None, "", "0"],
    [1, 1.0, "1"],
    ["ä", "ö", "学", "🙂"],
    [math.nan, 1.0],
    [math.inf, -math.inf, 0.0],
    [-0.0, 1],
    ["only"],
    [None],
    [2**60, 0.5],
    [2**53, 2**53 + 1],
    ["a", "a "],
    ["", " "],
    ["x" * 500, "y"],
    [*range(40)],
    [f"option {i}" for i in range(130)],
]
_MAX = sys.float_info.max
_TINY = 5e-324
FLOATS: list[tuple[float, float]] = [
    (0.0, 1.0),
    (-5.0, 5.0),
    (1e-8, 1.0),
    (0.5, 0.5),
    (-0.0, 0.0),
    (0.0, _TINY),
    (0.0, 1e-300),
    (_TINY, 1e-310),
    (1.0, math.nextafter(1.0, 2.0)),
    (1.0, 1.0 + 1e-12),
    (1e16, 1e16 + 4),
    (-1e308, 1e308),
    (-_MAX, _MAX),
    (1e-300, 1e300),
    (sys.float_info.min, _MAX),
    (0.1, 0.3),
    (1e300, 1e308),
    (-1e-5, 1e10),
]
INTS: list[tuple[int, int]] = [
    (0, 3),
    (0, 1),
    (1, 100),
    (5, 5),
    (-3, 3),
    (1, 2),
    (1, 10**6),
    (0, 2**31),
    (2**53 - 1, 2**53 + 1),
    (2**53, 2**53 + 8),
    (-(2**63), 2**63 - 1),
    (1, 2**62),
    (10**6, 10**6 + 1),
    (0, 10**9),
]
#: Steps as parts of the range.
STEPS = (0.5, 0.1, 0.25, 1 / 3, 0.7, 1.0, 1.5, 1e-3, 1e-7)


@dataclass(frozen=True)
class Parameter:
    """A hyperparameter, below some options of a choice if it has a parent."""

    name: str
    kind: str = "float"  # "float", "int" or "choice"
    low: float = 0.0
    high: float = 1.0
    log: bool = False
    step: float | None = None
    choices: tuple[Any, ...] = ()
    parent: str | None = None
    options: tuple[int, ...] = ()  # of the parent

    def is_active(self, places: Mapping[str, int]) -> bool:
        """Whether it is asked for, given the places of the choices made before."""
        return self.parent is None or places.get(self.parent, -1) in self.options

    @property
    def n(self) -> float:
        """Number of values, as far as that matters: 1, or more."""
        return len(self.choices) if self.choices else 1 + (self.low < self.high)

    def value(self, u: float) -> Any:
        """The value at a place in [0, 1], within the range and on its steps."""
        if self.kind == "choice":
            return self.choices[self.place(u)]
        low, high = self.low, self.high
        if self.log and low > 0:
            found = low if u == 0 else math.exp(math.log(low) * (1 - u) + math.log(high) * u)
        else:
            found = low * (1 - u) + high * u
        if self.kind == "int":
            if self.log:
                return min(max(round(found), int(low)), int(high))
            step = int(self.step or 1)
            return int(low) + round(u * 2**20) * ((int(high) - int(low)) // step) // 2**20 * step
        if self.step is not None:
            return min(low + math.floor(u * ((high - low) / self.step)) * self.step, high)
        return min(max(found, low), high)

    def place(self, u: float) -> int:
        return min(int(u * len(self.choices)), len(self.choices) - 1)


Space = tuple[Parameter, ...]  # parents first


# --- drawn ------------------------------------------------------------------------------------


def draw_space(source: Source, n: int, *, arm: bool = False) -> Space:
    """``n`` parameters; ``arm`` puts a choice named "algorithm" first."""
    found: list[Parameter] = []
    if arm:
        options = source.pick([("a", "b"), ("a", "b", "c"), (None, True, 1, "ä"), ("one",)])
        found.append(Parameter("algorithm", "choice", choices=options))
    for i in range(n):
        name = source.pick(NAMES) if source.chance(30) else f"p{i}"
        if any(p.name == name for p in found):
            name = f"{name}{i}"
        parameter = draw_parameter(source, name)
        parents = [p for p in found if p.kind == "choice"]
        if parents and source.chance(60):
            parent = source.pick(parents)
            first = source.whole(0, len(parent.choices) - 1)
            last = source.whole(first, min(len(parent.choices) - 1, first + 2))
            below = tuple(range(first, last + 1))
            parameter = replace(parameter, parent=parent.name, options=below)
        found.append(parameter)
    return tuple(found)


def draw_parameter(source: Source, name: str) -> Parameter:
    kind = source.pick(["float", "int", "choice", "choice"])
    if kind == "choice":
        return Parameter(name, kind, choices=tuple(source.pick(CHOICES)))
    low, high = source.pick(FLOATS if kind == "float" else INTS)
    shape = source.pick(["plain", "plain", "log", "step"])
    if shape == "log" and low > 0:
        return Parameter(name, kind, low, high, log=True)
    if shape == "step" and 0 < high - low < math.inf:
        step = (high - low) * source.pick(STEPS)
        if kind == "int":
            step = max(1, int(step))
        # fewer steps than Optuna can count are refused by Optuna
        if step > 0 and (high - low) / step < 1e9 and step > abs(high) * 1e-12:
            return Parameter(name, kind, low, high, step=step)
    return Parameter(name, kind, low, high)


def altered(source: Source, parameter: Parameter) -> Parameter:
    """The same name with another range, or of another kind."""
    if source.chance(50):
        fresh = draw_parameter(source, parameter.name)
        return replace(fresh, parent=parameter.parent, options=parameter.options)
    if parameter.kind == "choice":
        return replace(parameter, choices=(*parameter.choices, "new"))
    low, high = parameter.low, parameter.high
    if not (0 < high - low < 1e300):
        return parameter
    span = high - low
    if parameter.kind == "int":
        return replace(parameter, high=int(high) + 1 + int(span), step=None)
    return replace(parameter, high=high + span, step=None)


def draw_values(source: Source, space: Sequence[Parameter]) -> Values:
    """A configuration."""
    values: Values = {}
    places: dict[str, int] = {}
    for parameter in space:
        if parameter.is_active(places):
            u = source.unit()
            values[parameter.name] = parameter.value(u)
            if parameter.kind == "choice":
                places[parameter.name] = parameter.place(u)
    return values


# --- Optuna -----------------------------------------------------------------------------------


def distribution(p: Parameter) -> BaseDistribution:
    """The parameter in Optuna's words.

    Raises:
        Refused: By Optuna.
    """
    try:
        return _distribution(p)
    except Exception as error:
        raise Refused(f"Optuna: {error!r}") from error


def _distribution(p: Parameter) -> BaseDistribution:
    if p.kind == "choice":
        return CategoricalDistribution(p.choices)
    if p.kind == "int":
        return IntDistribution(int(p.low), int(p.high), log=p.log, step=int(p.step or 1))
    return FloatDistribution(p.low, p.high, log=p.log, step=p.step)


# --- ConfigSpace ------------------------------------------------------------------------------


@np.errstate(over="ignore")  # ConfigSpace rounds defaults, however large they are
def as_configspace(space: Space, forbidden: int = 0) -> ConfigurationSpace:
    """The space in the package's own hyperparameters, which hold any choice and any range."""
    found = ConfigurationSpace()
    for p in space:
        if p.n == 1:
            found.add(Constant(p.name, p.choices[0] if p.choices else p.low))
        elif p.kind == "choice":
            found.add(categorical(p.name, p.choices))
        elif p.kind == "int":
            found.add(integer_range(p.name, int(p.low), int(p.high), log=p.log))
        else:
            found.add(float_range(p.name, p.low, p.high, log=p.log))
    _add_conditions(found, space)
    _forbid(found, space, forbidden)
    return found


def as_plain_configspace(space: Space, forbidden: int = 0) -> ConfigurationSpace:
    """The space as a user of SMAC writes it, of every kind that ConfigSpace has.

    Raises:
        Refused: By ConfigSpace.
    """
    try:
        return _plain_configspace(space, forbidden)
    except Exception as error:
        raise Refused(f"ConfigSpace: {error}") from error


def listed(p: Parameter) -> list[Any]:
    """Choices as ConfigSpace can hold them: texts, where it would take two for one."""
    kinds = {type(c) for c in p.choices}
    return list(p.choices) if kinds in ({str}, {bool}, {int}) else [repr(c) for c in p.choices]


def _plain_configspace(space: Space, forbidden: int) -> ConfigurationSpace:
    found = ConfigurationSpace()
    plain: list[Parameter] = []
    for i, p in enumerate(space):
        p = replace(p, choices=tuple(listed(p)))
        span, size = p.high - p.low, max(abs(p.low), abs(p.high))
        if p.kind == "float" and not (max(1e-9, 1e-9 * size) < span < 1e100):
            p = replace(p, low=0.0, high=1.0, log=False)  # ConfigSpace rounds to 13 places
        elif p.kind == "int" and p.n > 1 and (p.high - p.low > 2**31 or p.high > 2**52):
            p = replace(p, low=1, high=2**31)
        plain.append(p)
        if p.n == 1:
            found.add(Constant(p.name, p.choices[0] if p.choices else p.low))
        elif p.kind == "choice":
            kind = OrdinalHyperparameter if i % 3 == 1 else CategoricalHyperparameter
            found.add(kind(p.name, list(p.choices)))
        elif p.kind == "int":
            found.add(UniformIntegerHyperparameter(p.name, int(p.low), int(p.high), log=p.log))
        elif i % 4 == 1 and not p.log:
            middle, wide = (p.low + p.high) / 2, p.high - p.low
            found.add(NormalFloatHyperparameter(p.name, middle, wide, p.low, p.high))
        elif i % 4 == 2 and not p.log:
            found.add(BetaFloatHyperparameter(p.name, 2, 3, p.low, p.high))
        else:
            found.add(UniformFloatHyperparameter(p.name, p.low, p.high, log=p.log))
    # SMAC's own designs make no valid configuration where a constant is a parent.
    _add_conditions(found, [_without_constants(p, plain) for p in plain])
    _forbid(found, tuple(plain), forbidden)
    return found


def _without_constants(p: Parameter, space: Sequence[Parameter]) -> Parameter:
    """The parameter below the nearest parent that has several choices."""
    above = {q.name: q for q in space}
    while p.parent is not None and above[p.parent].n == 1:
        parent = above[p.parent]
        p = replace(p, parent=parent.parent, options=parent.options)
    return p


def _add_conditions(found: ConfigurationSpace, space: Sequence[Parameter]) -> None:
    choices = {p.name: p.choices for p in space if p.kind == "choice"}
    for p in space:
        if p.parent is not None:
            values = [choices[p.parent][i] for i in p.options]
            found.add(one_of(found[p.name], found[p.parent], values))


def _forbid(found: ConfigurationSpace, space: Space, n: int) -> None:
    """Forbid pairs of choices, the last with the last."""
    plain = [p for p in space if p.kind == "choice" and p.n > 2 and p.parent is None]
    for a, b in list(pairwise(plain))[:n]:
        clauses = [ForbiddenEqualsClause(found[p.name], p.choices[-1]) for p in (a, b)]
        found.add(ForbiddenAndConjunction(*clauses))


# --- Hyperopt ---------------------------------------------------------------------------------


def as_pyll(space: Space) -> Any:
    """The space as nested dictionaries of Hyperopt's distributions, of every kind that it has."""
    nodes: dict[str, Any] = {}

    def below(parent: str | None, option: int) -> dict[str, Any]:
        here = [p for p in space if p.parent == parent and (parent is None or option in p.options)]
        for p in here:
            if p.name not in nodes:
                nodes[p.name] = node(p)
        return {p.name: nodes[p.name] for p in here}

    def node(p: Parameter) -> Any:
        if p.kind != "choice":
            # Hyperopt has no range of one number.
            return _numbers(p) if p.n > 1 else hp.choice(p.name, [p.low])
        options = [({"value": c} | below(p.name, i)) for i, c in enumerate(p.choices)]
        if p.n == 3:
            return hp.pchoice(p.name, list(zip([0.2, 0.3, 0.5], options, strict=True)))
        return hp.choice(p.name, options)

    return below(None, 0)


def _numbers(p: Parameter) -> Any:
    if p.kind == "int":
        low, high = int(p.low), int(p.high)
        if p.log:
            return hp.qloguniform(p.name, math.log(low), math.log(high), 1)
        if p.step is not None:
            return hp.quniform(p.name, low, high, int(p.step))
        return hp.randint(p.name, low, high + 1)
    if p.log:
        return hp.loguniform(p.name, math.log(p.low), math.log(p.high))
    if p.step is not None:
        return hp.quniform(p.name, p.low, p.high, p.step)
    if (p.low, p.high) == (-5.0, 5.0):
        return hp.normal(p.name, 0, 2)
    if (p.low, p.high) == (0.1, 0.3):
        return hp.lognormal(p.name, -1, 1)
    return hp.uniform(p.name, p.low, p.high)


# --- the same, or not -------------------------------------------------------------------------


def is_in(value: Any, p: Parameter) -> bool:
    """Whether a value is one of a parameter's, of the right type."""
    if p.kind == "choice":
        return any(value is c or _same(value, c) for c in p.choices)
    if p.kind == "int":
        return type(value) is int and p.low <= value <= p.high
    return isinstance(value, float) and math.isfinite(value) and p.low <= value <= p.high


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, float) and isinstance(b, float) and math.isnan(a) and math.isnan(b):
        return True
    return type(a) is type(b) and bool(a == b)


def plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value
