"""Spaces of ConfigSpace as expressions of Hyperopt, and values in both.

============================  ==================================================================
ConfigSpace                   Hyperopt
============================  ==================================================================
categorical                   ``hp.choice``, with weights ``hp.pchoice``, of the values; of dicts
                              if others are active under some of them only
ordinal                       the index, ``hp.quniform``
float                         ``hp.uniform``, ``hp.loguniform``
integer                       ``hp.quniform``, ``hp.qloguniform``, all values equally likely
normal, normal integer        ``hp.normal``, ``hp.qnormal``, clipped to the bounds; like a float
                              or an integer if these cut off more than 5 %, or on a log scale
beta, beta integer            like a float or an integer
constant                      its value
============================  ==================================================================

Integers and ordinals are not ``hp.randint``: TPE treats its values as unordered categories.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ConfigSpace import ConfigurationSpace
from ConfigSpace.hyperparameters import (
    CategoricalHyperparameter,
    Constant,
    IntegerHyperparameter,
    NormalFloatHyperparameter,
    NormalIntegerHyperparameter,
    OrdinalHyperparameter,
)
from hyperopt import Domain, hp

from automl_plugins._arguments import check_kind
from automl_plugins.records.trial import as_number
from automl_plugins.spaces.branches import options_of
from automl_plugins.spaces.conditions import active_names, is_active
from automl_plugins.spaces.values import choices_of, encoder, plain, to_number

# Half of a rounding interval, without its ends: halves are rounded to even numbers, so 0.5 would
# become 0 in a range that begins at 1.
_HALF = 0.49999


def expression(space: ConfigurationSpace) -> dict[str, Any]:
    """A Hyperopt search space: nodes by the name of the hyperparameter, which is the label.

    A hyperparameter whose only parent is categorical is nested in the parent's options: the
    objective gets ``{"kernel": {"kernel": "rbf", "gamma": 0.1}}``. Hyperopt cannot nest by numbers
    or by several parents: such a hyperparameter is a node of the first level, drawn every time. So
    is one with a "not equal" condition on a conditional parent, for it is also active where the
    parent is not. Forbidden clauses are lost. ``translate`` is the inverse, but for what is lost.

    Args:
        space: The space to search.

    Raises:
        TypeError: For anything but a ``ConfigurationSpace``.

    Example::

        space = expression(ConfigurationSpace({"C": (0.01, 100.0), "kernel": ["rbf", "linear"]}))
        fmin(lambda c: c["C"] if c["kernel"] == "rbf" else 50.0, space, algo=gbqr, max_evals=60)
    """
    check_kind("expression", space, ConfigurationSpace, "a ConfigurationSpace")
    first: dict[str, Any] = {}
    options: dict[str, list[dict[str, Any]]] = {  # by categorical: the nodes under each value
        name: [{} for _ in parent.choices]
        for name, parent in space.items()
        if isinstance(parent, CategoricalHyperparameter)
    }
    for name in reversed(list(space.at)):  # children first
        node = _node(space[name], options.get(name, []))
        parents = {parent.name for parent in space.parents_of[name]}
        only = parents.pop() if len(parents) == 1 else None
        # "Not equal" also holds where the parent is not drawn; nothing nested in it would be.
        hidden = only is not None and space.parents_of[only] and is_active(space, name, {})
        if only is not None and only in options and not hidden:
            named = zip(options_of(space, only), options[only], strict=True)
            for value, nested in named:
                # All its conditions are on this parent.
                if is_active(space, name, {only: value}):
                    nested[name] = node
        else:
            first[name] = node
    return first or {"nothing to choose": 0}  # Hyperopt refuses an empty space


def _node(hyperparameter: Any, options: Sequence[dict[str, Any]]) -> Any:
    name = hyperparameter.name
    if isinstance(hyperparameter, Constant):
        return plain(hyperparameter.value)
    if isinstance(hyperparameter, CategoricalHyperparameter):
        values: list[Any] = [plain(value) for value in hyperparameter.choices]
        if any(options):
            values = [{name: v, **nested} for v, nested in zip(values, options, strict=True)]
        if hyperparameter.weights is None:
            return hp.choice(name, values)
        weights = [float(p) for p in hyperparameter.probabilities]
        return hp.pchoice(name, list(zip(weights, values, strict=True)))
    if isinstance(hyperparameter, OrdinalHyperparameter):
        return hp.quniform(name, -_HALF, len(hyperparameter.sequence) - 1 + _HALF, 1)
    low, high = hyperparameter.lower, hyperparameter.upper
    whole = isinstance(hyperparameter, IntegerHyperparameter)
    if _is_normal(hyperparameter):
        mean, deviation = float(hyperparameter.mu), float(hyperparameter.sigma)
        return hp.qnormal(name, mean, deviation, 1) if whole else hp.normal(name, mean, deviation)
    if whole:
        low, high = low - _HALF, high + _HALF
        if hyperparameter.log:
            return hp.qloguniform(name, math.log(low), math.log(high), 1)
        return hp.quniform(name, low, high, 1)
    if hyperparameter.log:
        return hp.loguniform(name, math.log(low), math.log(high))
    return hp.uniform(name, float(low), float(high))


def _is_normal(hyperparameter: Any) -> bool:
    """Whether it becomes a normal distribution: the bounds are at least two deviations away."""
    kinds = NormalFloatHyperparameter | NormalIntegerHyperparameter
    if not isinstance(hyperparameter, kinds) or hyperparameter.log:
        return False
    room = min(hyperparameter.mu - hyperparameter.lower, hyperparameter.upper - hyperparameter.mu)
    return bool(room >= 2 * hyperparameter.sigma)


# --- values -----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class ExpressionSpace:
    """A ``ConfigurationSpace`` and its ``expression``; the methods are as in ``PyllSpace``."""

    space: ConfigurationSpace

    @cached_property
    def domain(self) -> Domain:
        """The domain of suggest functions, without an objective."""
        return Domain(None, expression(self.space), pass_expr_memo_ctrl=False)

    def values(self, drawn: Mapping[str, Any]) -> dict[str, Any]:
        """Active values by name, within their bounds; ValueError if one is missing."""
        found: dict[str, Any] = {}
        try:
            for name in active_names(self.space, found):
                hyperparameter = self.space[name]
                if isinstance(hyperparameter, Constant):
                    found[name] = hyperparameter.value
                    continue
                if math.isnan(number := as_number(drawn[name])):
                    raise ValueError(f"{name}={drawn[name]!r} is not a number")
                if (known := choices_of(hyperparameter)) is not None:
                    # A dict: a list would accept an index below 0.
                    found[name] = dict(enumerate(known))[round(number)]
                else:
                    found[name] = _number(hyperparameter, number)
        except (KeyError, ValueError, OverflowError) as error:
            raise ValueError(
                f"A trial with the labels {', '.join(drawn) or 'none'} is not of this search"
                f" space ({error}): pass the expression that was given to fmin."
            ) from None
        return found

    def labels(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """What a trial would have drawn; ValueError for an invalid value."""
        drawn: dict[str, Any] = {}
        for label, value in values.items():
            hyperparameter = self.space[label]
            if isinstance(hyperparameter, Constant):
                continue
            listed = choices_of(hyperparameter) is not None
            found = encoder(hyperparameter)(value) if listed else to_number(value)
            if math.isnan(found):
                raise ValueError(f"{label}={value!r} is not a value of {hyperparameter}.")
            whole = isinstance(hyperparameter, CategoricalHyperparameter)
            drawn[label] = int(found) if whole else found
        return drawn


def _number(hyperparameter: Any, drawn: float) -> float:
    """A number that was drawn, rounded where it must be whole, within its range."""
    kind = int if isinstance(hyperparameter, IntegerHyperparameter) else float
    value = round(drawn) if kind is int else drawn
    # Hyperopt's normal distributions have no bounds.
    return min(max(value, kind(hyperparameter.lower)), kind(hyperparameter.upper))
