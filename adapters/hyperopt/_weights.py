"""How often each option of a choice is drawn, by what there is to tune below it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from hyperopt import pyll

from automl_plugins.bandits.model_weights import (
    weights_from_counts,
    weights_from_logs,
    weights_from_numbers,
)

from ._branches import Choice, always_drawn, choices, labels
from ._cells import constants_of
from ._grid import count_of

FloatArray = npt.NDArray[np.float64]

#: ``"2^N"``, ``"volume"``, or a number for each option: by its name or index, or in their order.
Weights = str | Mapping[Any, float] | Sequence[float]


def option_weights(choice: Choice, weights: Weights) -> FloatArray:
    """The probability of each option of a choice (K,); 0 for those that ``hp.pchoice`` rules out.

    Raises:
        ValueError: For weights that do not fit the choice.
    """
    possible = choice.possible
    out = np.zeros(choice.n_options)
    if isinstance(weights, str):
        if weights == "2^N":
            out[list(possible)] = weights_from_counts([n_tuned(choice, i) for i in possible])
        elif weights == "volume":
            out[list(possible)] = weights_from_logs([log_volume(choice, i) for i in possible])
        else:
            raise ValueError(
                f"weights must be '2^N', 'volume' or a number for each option, got {weights!r}."
            )
        return out
    out[list(possible)] = weights_from_numbers(_given(choice, weights)[list(possible)])
    return out


def n_tuned(choice: Choice, option: int) -> int:
    """N, the number of hyperparameters of an option, nested ones included; constants are none."""
    below = pyll.as_apply([switch.pos_args[1 + option] for switch in choice.switches])
    single = {
        label
        for node in pyll.dfs(below)
        if node.name == "hyperopt_param" and count_of(node.arg["obj"]) == 1
        for label in labels(node)
    }
    return len(set(choice.labels_below(option)) - single)


def log_volume(choice: Choice, option: int) -> float:
    """Logarithm of theta of an option: the product of the ranges of its hyperparameters.

    It is high - low of ``hp.uniform``, the same on the log scale of ``hp.loguniform``, the number
    of values of all others, and the sum over the options of nested choices.

    Raises:
        ValueError: If there is a normal distribution, whose range has no end.
    """
    below = pyll.as_apply([switch.pos_args[1 + option] for switch in choice.switches])
    return _log_volume(below, frozenset())


def _log_volume(expr: Any, counted: frozenset[str]) -> float:
    drawn, nested = always_drawn(expr), choices(expr)
    inside = counted | set(drawn)
    total = 0.0
    for label, param in drawn.items():
        if label in counted:
            continue
        if label in nested:
            switches, options = nested[label].switches, nested[label].possible
            exprs = [pyll.as_apply([s.pos_args[1 + i] for s in switches]) for i in options]
            total += float(np.logaddexp.reduce([_log_volume(e, inside) for e in exprs]))
        else:
            total += _log_size(label, param.arg["obj"])
    return total


def _log_size(label: str, node: Any) -> float:
    count = count_of(node)
    if math.isfinite(count):
        return math.log(count)
    constants = constants_of(node)
    if node.name not in ("uniform", "loguniform") or constants is None:
        raise ValueError(
            f"The volume of {label!r}, drawn from {node.name}, cannot be told: weights='2^N', or a"
            " number for each option."
        )
    return math.log(float(constants["high"]) - float(constants["low"]))


def _given(choice: Choice, weights: Mapping[Any, float] | Sequence[float]) -> FloatArray:
    """Numbers by option (n_options,)."""
    names, n = choice.names(), choice.n_options
    if not isinstance(weights, Mapping):
        if len(weights) != n:
            raise ValueError(
                f"weights must have one number for each of the {n} options of {choice.label!r},"
                f" got {len(weights)}."
            )
        return np.array([float(w) for w in weights])
    unknown = [key for key in weights if key not in names and key not in range(n)]
    if unknown:
        raise ValueError(
            f"weights: no option {unknown[0]!r} in the choice {choice.label!r}; there are"
            f" {', '.join(names)}, or their indices."
        )
    missing = [name for i, name in enumerate(names) if name not in weights and i not in weights]
    if missing:
        raise ValueError(f"weights: {', '.join(missing)} of {choice.label!r} must have one too.")
    keys = [name if name in weights else i for i, name in enumerate(names)]
    return np.array([float(weights[key]) for key in keys])
