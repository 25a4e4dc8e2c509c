"""Search spaces that have only a few configurations, one by one."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hyperopt import pyll

from ._branches import always_drawn, label_of, switched_by
from ._cells import constants_of

MOST = 1000  # more configurations are not listed


def grid_of(expr: Any, most: int = MOST) -> list[dict[str, Any]] | None:
    """All configurations of an expression, values by label; None for more than ``most``."""
    sizes = [count_of(node.arg["obj"]) for node in always_drawn(expr).values()]
    if math.prod(sizes) > most:
        return None
    found: list[dict[str, Any]] = [{}]
    complete: list[dict[str, Any]] = []
    while found:
        partial = found.pop()
        param = next(missing(expr, partial), None)
        if param is None:
            complete.append(partial)
        else:
            values = _values(param.arg["obj"], most)
            if values is None:
                return None
            found += [partial | {label_of(param): value} for value in reversed(values)]
        if len(found) + len(complete) > most:
            return None
    return complete


def missing(expr: Any, values: Mapping[str, Any]) -> Iterator[Any]:
    """``hyperopt_param`` nodes that a configuration needs but has no value for."""
    return (node for node in needed(expr, values) if label_of(node) not in values)


def needed(expr: Any, values: Mapping[str, Any]) -> Iterator[Any]:
    """``hyperopt_param`` nodes that a configuration needs, outer ones first.

    Options of a choice whose value is unknown are not looked into.
    """
    stack, seen = [expr], set()
    while stack:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        inputs = node.inputs()
        if node.name == "hyperopt_param":
            yield node
        label = switched_by(node)
        if label is not None:
            inputs = [inputs[0]]
            if label in values:
                inputs.append(node.pos_args[1 + int(values[label])])
        stack.extend(reversed(inputs))


def count_of(node: Any) -> float:
    """How many values a distribution has; infinite for numbers in a range."""
    constants = constants_of(node)
    if node.name == "categorical":
        return len(pyll.rec_eval(node.arg["p"]))
    if constants is None or node.name not in ("randint", "quniform", "qloguniform"):
        return math.inf
    if node.name == "randint":
        low, high = constants["low"], constants["high"]
        return int(low if high is None else high - low)
    first, last = multiples(node.name, constants)
    return last - first + 1


def _values(node: Any, most: int) -> Sequence[Any] | None:
    """All values of a distribution, ascending; None for more than ``most``."""
    if count_of(node) > most:
        return None
    if node.name == "categorical":
        return [i for i, p in enumerate(pyll.rec_eval(node.arg["p"])) if p > 0]
    constants = constants_of(node)
    assert constants is not None
    if node.name == "randint":
        low, high = constants["low"], constants["high"]
        return range(low) if high is None else range(low, high)
    first, last = multiples(node.name, constants)
    return [i * constants["q"] for i in range(first, last + 1)]


def multiples(name: str, constants: Mapping[str, Any]) -> tuple[int, int]:
    """First and last multiple of q that rounding gives; not one that only an end point gives."""
    low, high, q = constants["low"], constants["high"], constants["q"]
    if name == "qloguniform":
        low, high = math.exp(low), math.exp(high)
    return math.floor(low / q + 0.5), math.ceil(high / q - 0.5)
