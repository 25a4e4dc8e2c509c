"""One hyperparameter of a Hyperopt search space in ConfigSpace's language."""

from __future__ import annotations

import math
import statistics
import sys
from collections.abc import Mapping
from typing import Any

from ConfigSpace.hyperparameters import (
    Hyperparameter,
    NormalFloatHyperparameter,
    NormalIntegerHyperparameter,
    OrdinalHyperparameter,
)
from hyperopt import pyll

from automl_plugins.spaces.ranges import MOST_EXACT, ExactFloat, float_range, integer_range

from ._pyll import label_of

#: Probability beyond each end of the range that a normal distribution is given.
TAIL = 1e-4

_DEVIATIONS = -statistics.NormalDist().inv_cdf(TAIL)
_GRID = 1000  # multiples of q beyond which they count as continuous
_LEAST = sys.float_info.min
_LARGEST = math.log(sys.float_info.max)
_LOG = ("loguniform", "qloguniform", "lognormal", "qlognormal")
_NORMAL = ("normal", "qnormal", "lognormal", "qlognormal")


def hyperparameter_of(label: str, node: Any) -> Hyperparameter[Any, Any]:
    """The hyperparameter that a distribution stands for, see ``translate``.

    Args:
        label: Its label.
        node: The distribution.

    Raises:
        ValueError: For a distribution that is none of Hyperopt's, or whose range depends on other
            hyperparameters or is too narrow for ConfigSpace.
    """
    arguments = _arguments(label, node)
    name = node.name
    if name == "randint":
        ends = (0, arguments["low"]) if "high" not in arguments else _ends(arguments)
        return _integers(label, int(ends[0]), int(ends[1]) - 1, log=False)
    if name not in (*_LOG, *_NORMAL, "uniform", "quniform"):
        raise ValueError(
            f"{label!r} is drawn from {shown(node)}, which ConfigSpace cannot express: use one of"
            " Hyperopt's own distributions (hp.uniform, hp.choice, ...)."
        )
    log, normal = name in _LOG, name in _NORMAL
    if normal:
        mu, sigma = float(arguments["mu"]), float(arguments["sigma"])
        arguments["low"], arguments["high"] = mu - _DEVIATIONS * sigma, mu + _DEVIATIONS * sigma
    low, high = map(float, _ends(arguments))
    if "q" in arguments:
        first, last = multiples("qloguniform" if log else "quniform", arguments)
        q = arguments["q"]
        if q == 1 and not (log and first < 1):
            if normal and not log and max(-first, last) <= MOST_EXACT:
                return NormalIntegerHyperparameter(label, mu, sigma, first, last)
            return _integers(label, first, last, log=log)
        if last - first < _GRID:
            return OrdinalHyperparameter(label, [i * q for i in range(first, last + 1)])
    if log:
        least = max(math.exp(low), _LEAST)
        if "q" in arguments and first < 1:  # half of q and less is 0: an octave is enough for it
            least = max(least, arguments["q"] / 4.0)
        low, high = least, _exp(high)
    if low == high:
        return OrdinalHyperparameter(label, [low])
    found = float_range(label, low, high, log=log)
    if normal and not log and not isinstance(found, ExactFloat):
        return NormalFloatHyperparameter(label, mu, sigma, low, high)
    return found


def multiples(name: str, constants: Mapping[str, Any]) -> tuple[int, int]:
    """First and last multiple of q that rounding gives; not one that only an end point gives."""
    low, high, q = constants["low"], constants["high"], constants["q"]
    if name == "qloguniform":
        low, high = math.exp(low), math.exp(high)
    return math.floor(low / q + 0.5), math.ceil(high / q - 0.5)


def _exp(x: float) -> float:
    return math.exp(min(x, _LARGEST))


def _ends(arguments: Mapping[str, Any]) -> tuple[Any, Any]:
    return arguments["low"], arguments["high"]


def _integers(label: str, low: int, high: int, *, log: bool) -> Hyperparameter[Any, Any]:
    if low == high or (max(-low, high) > MOST_EXACT and high - low < _GRID):
        return OrdinalHyperparameter(label, list(range(low, high + 1)))
    return integer_range(label, low, high, log=log)


def _arguments(label: str, node: Any) -> dict[str, Any]:
    """Arguments of a distribution by name.

    Raises:
        ValueError: If one of them depends on a hyperparameter.
    """
    given = {}
    for name, arg in node.arg.items():
        if name not in ("low", "high", "mu", "sigma", "q") or not isinstance(arg, pyll.Apply):
            continue
        if depends(arg):
            raise ValueError(
                f"{name} of {label!r} depends on other hyperparameters: {shown(arg)}. A range"
                " must be constant: draw from [0, 1] and scale in the objective, or give each"
                " option of an hp.choice a range of its own."
            )
        given[name] = pyll.rec_eval(arg)
    return {name: value for name, value in given.items() if value is not None}


def depends(node: Any) -> bool:
    """Whether the value of an expression depends on hyperparameters."""
    return any(below.name == "hyperopt_param" for below in pyll.dfs(node))


def shown(node: Any) -> str:
    """An expression in one line."""
    if node.name == "literal":
        return repr(node.obj)
    if node.name == "hyperopt_param":
        return f"{node.arg['obj'].name}({label_of(node)!r})"
    inputs = ", ".join(shown(child) for child in node.inputs())
    return f"{node.name}({inputs})"
