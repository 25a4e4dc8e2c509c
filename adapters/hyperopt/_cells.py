"""Parts of the values of one hyperparameter, and expressions that are restricted to them.

==========================================  ====================================================
Hyperopt                                    parts
==========================================  ====================================================
``uniform``, ``loguniform``                 intervals of equal length, on its own scale
``quniform``, ``uniformint``,               the same, with ends between two values
``qloguniform``
``randint``                                 runs of integers
``choice``, ``pchoice``                     groups of neighbouring options
``normal``, ``lognormal`` and their ``q``   not split: Hyperopt has no truncated form
==========================================  ====================================================
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol

from hyperopt import pyll

from automl_plugins.bandits.splitting import split_groups, split_integers, split_interval

from ._branches import Choice, label_of, switched_by

_MISSING = pyll.base.MissingArgument


class Part(Protocol):
    """A part of the values of one hyperparameter."""

    @property
    def label(self) -> str:
        """Label of the hyperparameter."""
        ...

    @property
    def node(self) -> Any:
        """The distribution of the part; None where a single value is left, see ``fixed``."""
        ...

    @property
    def fixed(self) -> int | None:
        """The only value."""
        ...

    def contains(self, value: float) -> bool:
        """Whether a value of the hyperparameter lies in the part."""
        ...

    def inner(self, value: Any) -> Any:
        """What a value of the hyperparameter is called in the restricted expression."""
        ...

    def outer(self, value: Any) -> Any:
        """The value of the hyperparameter, from the restricted expression's."""
        ...


@dataclass(frozen=True)
class Interval:
    """Numbers from ``low`` up to, but without, ``high``; both infinite where the range ends."""

    label: str
    low: float
    high: float
    node: Any
    fixed: None = None

    def contains(self, value: float) -> bool:
        """Whether it lies in the interval; every number lies in exactly one of a range."""
        return self.low <= value < self.high

    def inner(self, value: Any) -> Any:
        """The value itself."""
        return value

    def outer(self, value: Any) -> Any:
        """The value itself."""
        return value

    def __str__(self) -> str:
        """For example ``C < 3``."""
        left = "" if math.isinf(self.low) else f"{self.low:.4g} <= "
        right = "" if math.isinf(self.high) else f" < {self.high:.4g}"
        return f"{left}{self.label}{right}"


@dataclass(frozen=True)
class Options:
    """Some options of a choice, numbered from 0 in the restricted expression."""

    choice: Choice
    kept: tuple[int, ...]

    @property
    def label(self) -> str:
        """Label of the choice."""
        return self.choice.label

    @property
    def fixed(self) -> int | None:
        """The option, if there is one only."""
        return self.kept[0] if len(self.kept) == 1 else None

    @property
    def node(self) -> Any:
        """Draws the number of the option."""
        p = self.choice.probabilities
        if p is None:
            return pyll.scope.randint(len(self.kept))
        total = sum(p[i] for i in self.kept)
        return pyll.scope.categorical(tuple(p[i] / total for i in self.kept))

    def contains(self, value: float) -> bool:
        """Whether the option is one of them."""
        return int(value) in self.kept

    def inner(self, value: Any) -> int:
        """Its number among those kept."""
        return self.kept.index(int(value))

    def outer(self, value: Any) -> int:
        """Its number among all."""
        return self.kept[int(value)]

    def __str__(self) -> str:
        """For example ``kernel = rbf | poly``."""
        names = self.choice.names()
        return f"{self.label} = {' | '.join(names[i] for i in self.kept)}"


def restricted(expr: Any, parts: Mapping[str, Part]) -> Any:
    """A copy of an expression whose hyperparameters are drawn from parts of their values.

    A choice with one option left is replaced by that option, and its label is gone.
    """
    new: dict[Any, Any] = {}
    for node in pyll.dfs(expr):
        part = parts.get(switched_by(node) or "")
        if isinstance(part, Options):
            kept = [new[node.pos_args[1 + i]] for i in part.kept]
            switch = pyll.scope.switch(new[node.pos_args[0]], *kept)
            new[node] = switch if part.fixed is None else kept[0]
        elif node.name == "hyperopt_param" and label_of(node) in parts:
            part = parts[label_of(node)]
            new[node] = (
                pyll.scope.hyperopt_param(part.label, part.node)
                if part.fixed is None
                else pyll.Literal(part.fixed)
            )
        else:
            new[node] = node.clone_from_inputs([new[i] for i in node.inputs()])
    return new[expr]


def split_values(param: Any, choice: Choice | None, k: int) -> Sequence[Part]:
    """Parts, at most ``k``, of the values of a hyperparameter; at most one if it has no parts.

    Args:
        param: Its ``hyperopt_param`` node.
        choice: The choice that it makes, if it is one.
        k: Number of parts.
    """
    label, node = label_of(param), param.arg["obj"]
    if choice is not None:
        possible = choice.possible
        groups = split_groups(len(possible), k)
        return [Options(choice, tuple(possible[i] for i in group)) for group in groups]
    constants = constants_of(node)
    if node.name == "randint" and constants is not None:
        low, high = constants["low"], constants["high"]
        low, high = (0, low) if high is None else (low, high)
        runs = split_integers(int(low), int(high) - 1, k)
        nodes = [pyll.scope.randint(first, last + 1) for first, last in runs]
        return _intervals(label, [first for first, _ in runs[1:]], nodes)
    if node.name not in _RANGES or constants is None:
        return []
    log = node.name in ("loguniform", "qloguniform")
    low, high, q = float(constants["low"]), float(constants["high"]), constants.get("q")
    ends = [end for _, end in split_interval(low, high, k)][:-1]
    inside = sorted({_between(end, float(q), log=log) if q else end for end in ends})
    inside = [end for end in inside if low < end < high]
    distribution = getattr(pyll.scope, node.name)
    step = () if q is None else (q,)
    nodes = [distribution(a, b, *step) for a, b in pairwise([low, *inside, high])]
    return _intervals(label, [math.exp(end) if log else end for end in inside], nodes)


_RANGES = ("uniform", "loguniform", "quniform", "qloguniform")


def _intervals(label: str, ends: Sequence[float], nodes: Sequence[Any]) -> list[Part]:
    limits = pairwise([-math.inf, *ends, math.inf])
    return [Interval(label, a, b, node) for (a, b), node in zip(limits, nodes, strict=True)]


def _between(end: float, q: float, *, log: bool) -> float:
    """The point between two multiples of ``q`` that is next to an end, on the node's scale."""
    value = math.exp(end) if log else end
    middle = (math.floor(value / q) + 0.5) * q
    return math.log(middle) if log else middle


def constants_of(node: Any) -> dict[str, Any] | None:
    """Arguments of a distribution; None if one of them is not a constant."""
    given = {name: arg for name, arg in node.arg.items() if name in ("low", "high", "q")}
    for name, arg in given.items():
        if arg is _MISSING:
            given[name] = None
        elif isinstance(arg, pyll.Literal):
            given[name] = arg.obj
        else:
            return None
    return given
