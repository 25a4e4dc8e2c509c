"""Hyperopt's expressions: their hyperparameters and choices, and what is left of parts of them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from hyperopt import pyll

#: Keys whose value names an option that is a dict, in order of preference.
_NAMING = ("type", "name", "model", "algorithm", "classifier", "estimator", "kind")


@dataclass(frozen=True)
class Choice:
    """An ``hp.choice`` or ``hp.pchoice``.

    Attributes:
        label: Its label.
        switches: Nodes that it switches; one, unless the user built the graph by hand.
    """

    label: str
    switches: tuple[Any, ...]

    @property
    def n_options(self) -> int:
        """How many there are."""
        return len(self.switches[0].pos_args) - 1

    @property
    def probabilities(self) -> tuple[float, ...] | None:
        """Of the options of an ``hp.pchoice``; None for ``hp.choice``."""
        distribution = self.switches[0].pos_args[0].arg["obj"]
        if distribution.name != "categorical":
            return None
        return tuple(float(p) for p in pyll.rec_eval(distribution.arg["p"]))

    @property
    def possible(self) -> tuple[int, ...]:
        """Indices of the options whose probability is not zero."""
        p = self.probabilities
        return tuple(i for i in range(self.n_options) if p is None or p[i] > 0)

    def names(self) -> tuple[str, ...]:
        """A name for each option: the text in it, else label and index."""
        found = [_name(switched) for switched in self.switches[0].pos_args[1:]]
        return tuple(
            name if name is not None and found.count(name) == 1 else f"{self.label}[{i}]"
            for i, name in enumerate(found)
        )


def choices(expr: Any) -> dict[str, Choice]:
    """All choices by label, outer ones before those in their options."""
    switches: dict[str, list[Any]] = {}
    for node in nodes(expr):
        if (label := switched_by(node)) is not None:
            switches.setdefault(label, []).append(node)
    return {label: Choice(label, tuple(found)) for label, found in switches.items()}


def labels(expr: Any) -> tuple[str, ...]:
    """Labels of all hyperparameters of an expression, outer ones first."""
    return tuple(dict.fromkeys(label_of(n) for n in nodes(expr) if n.name == "hyperopt_param"))


def label_of(param: Any) -> str:
    """Label of a ``hyperopt_param`` node."""
    return str(param.arg["label"].obj)


def switched_by(node: Any) -> str | None:
    """Label of the choice that a node switches on; None for any other node."""
    if node.name != "switch" or node.pos_args[0].name != "hyperopt_param":
        return None
    return label_of(node.pos_args[0])


def nodes(expr: Any, values: Mapping[str, Any] | None = None) -> Iterator[Any]:
    """Nodes of an expression, each once, parents first.

    Args:
        expr: The expression.
        values: If given, only what a configuration with these values by label needs; options of
            a choice without a value are left out.
    """
    stack, seen = [expr], set()
    while stack:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        yield node
        inputs = node.inputs()
        if values is not None and (label := switched_by(node)) is not None:
            inputs = [inputs[0]]
            if label in values:
                inputs.append(node.pos_args[1 + int(values[label])])
        stack.extend(reversed(inputs))


def needed(expr: Any, values: Mapping[str, Any]) -> Iterator[Any]:
    """``hyperopt_param`` nodes that a configuration needs, outer ones first."""
    return (node for node in nodes(expr, values) if node.name == "hyperopt_param")


def _name(option: Any) -> str | None:
    """Text that tells an option from the others, if there is any."""
    if option.name == "literal":
        return str(option.obj) if isinstance(option.obj, str | int | float | bool) else None
    if option.name == "dict":
        named = dict(option.named_args)
        inputs = [named[key] for key in _NAMING if key in named] + list(named.values())
    elif option.name == "pos_args":
        inputs = option.pos_args
    else:
        return None
    texts = (node.obj for node in inputs if node.name == "literal" and isinstance(node.obj, str))
    return next(texts, None)


# --- parts -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Interval:
    """Numbers from ``low`` up to, but without, ``high``; both infinite where the range ends."""

    low: float
    high: float

    def __contains__(self, value: float) -> bool:
        return self.low <= value < self.high


#: A part of the values of a hyperparameter: numbers, or indices of the options of a choice.
Part = Interval | tuple[int, ...]


def restrict(expr: Any, parts: Mapping[str, Part]) -> Any:
    """A copy of an expression whose hyperparameters are drawn from parts of their values.

    The options that are left of a choice are numbered from 0. A choice with one option left is
    replaced by that option, and its label is gone.
    """
    new: dict[Any, Any] = {}
    for node in pyll.dfs(expr):
        kept = parts.get(switched_by(node) or "")
        if isinstance(kept, tuple):
            options = [new[node.pos_args[1 + i]] for i in kept]
            switch = pyll.scope.switch(new[node.pos_args[0]], *options)
            new[node] = switch if len(kept) > 1 else options[0]
        elif node.name == "hyperopt_param" and label_of(node) in parts:
            new[node] = _restrict_param(node, parts[label_of(node)])
        else:
            new[node] = node.clone_from_inputs([new[i] for i in node.inputs()])
    return new[expr]


def _restrict_param(param: Any, part: Part) -> Any:
    """A ``hyperopt_param`` node that draws from a part of its values."""
    node, label = param.arg["obj"], label_of(param)
    if isinstance(part, tuple):
        if len(part) == 1:
            return pyll.Literal(part[0])
        drawn = pyll.scope.randint(len(part))
        if node.name == "categorical":
            p = pyll.rec_eval(node.arg["p"])
            total = sum(p[i] for i in part)
            drawn = pyll.scope.categorical(tuple(float(p[i] / total) for i in part))
        return pyll.scope.hyperopt_param(label, drawn)
    given = {name: _constant(node.arg[name]) for name in ("low", "high", "q") if name in node.arg}
    low, high = part.low, part.high
    if node.name == "randint":
        whole = (0, given["low"]) if given.get("high") is None else (given["low"], given["high"])
        ends = [math.ceil(end) for end in (max(whole[0], low), min(whole[1], high))]
    else:
        if node.name in ("loguniform", "qloguniform"):
            low, high = (x if math.isinf(x) else math.log(x) for x in (low, high))
        ends = [max(given["low"], low), min(given["high"], high)]
        ends += [given["q"]] if "q" in given else []
    return pyll.scope.hyperopt_param(label, getattr(pyll.scope, node.name)(*ends))


def _constant(arg: Any) -> Any:
    return pyll.rec_eval(arg) if isinstance(arg, pyll.Apply) else None
