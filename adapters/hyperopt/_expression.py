"""A ConfigSpace search space in Hyperopt's language, and what is drawn from it in ConfigSpace's.

============================  ==================================================================
ConfigSpace                   Hyperopt
============================  ==================================================================
categorical                   ``hp.choice``, with weights ``hp.pchoice``
ordinal                       the index, ``hp.quniform``
float                         ``hp.uniform``, ``hp.loguniform``
integer                       ``hp.quniform``, ``hp.qloguniform``, all values equally likely
normal, normal integer        ``hp.normal``, ``hp.qnormal``, clipped to the bounds; like a float
                              or an integer where these cut off more than 5 % or on a log scale
beta, beta integer            like a float or an integer
constant                      nothing, its value is added
============================  ==================================================================

Integers and ordinals are no ``hp.randint``: TPE takes its values for unordered categories.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

from ConfigSpace import ConfigurationSpace
from ConfigSpace.conditions import (
    AndConjunction,
    ConditionLike,
    Conjunction,
    EqualsCondition,
    InCondition,
    NotEqualsCondition,
)
from ConfigSpace.hyperparameters import (
    CategoricalHyperparameter,
    Constant,
    Hyperparameter,
    IntegerHyperparameter,
    NormalFloatHyperparameter,
    NormalIntegerHyperparameter,
    OrdinalHyperparameter,
)
from hyperopt import Domain, hp

from automl_plugins.spaces.conditions import is_active
from automl_plugins.spaces.values import choices_of, placer, plain, to_number

from .space import PyllSpace, translate

AnyHyperparameter = Hyperparameter[Any, Any]

#: A categorical hyperparameter and the indices of those of its values that activate another one.
Branch = tuple[str, frozenset[int]]

_HALF = 0.49999  # a rounding interval, open at both ends


def expression(space: ConfigurationSpace) -> dict[str, Any]:
    """The nodes of a Hyperopt search space by the name of the hyperparameter, which is the label.

    What one categorical alone switches on (equal, not equal, in; alone or in conjunctions) is
    nested in its options. Hyperopt cannot nest by numbers or by several parents: such a
    hyperparameter is a node of the first level, drawn every time. It knows nothing of forbidden
    clauses either.
    """
    first: dict[str, Any] = {}
    options: dict[str, list[dict[str, Any]]] = {}  # by categorical: the nodes under each value
    for name in space:
        parent = space[name]
        if isinstance(parent, CategoricalHyperparameter):
            options[name] = [{} for _ in parent.choices]
    for name in reversed(list(space.at)):  # children first
        hyperparameter = space[name]
        if isinstance(hyperparameter, Constant):
            continue
        node = _node(hyperparameter, options.get(name, []))
        branch = _branch_of(space.parent_conditions_of[name])
        if branch is None:
            first[name] = node
            continue
        parent_name, values = branch
        for value in values:
            options[parent_name][value][name] = node
    return first or {"nothing to choose": 0}  # Hyperopt refuses the empty one


def configuration(
    space: ConfigurationSpace, values: Mapping[str, Sequence[Any]]
) -> dict[str, Any]:
    """Active values by name from the ``vals`` of a Hyperopt trial."""
    config: dict[str, Any] = {}
    for name in space.at:  # parents first
        hyperparameter = space[name]
        if not is_active(space, name, config):
            continue
        if isinstance(hyperparameter, Constant):
            config[name] = hyperparameter.value
        else:
            (drawn,) = values[name]
            config[name] = _value(hyperparameter, float(drawn))
    return config


# --- both kinds of spaces -------------------------------------------------------------------


class SearchSpace(Protocol):
    """A search space in both languages: a ``PyllSpace`` or an ``ExpressionSpace``."""

    @property
    def space(self) -> ConfigurationSpace:
        """In ConfigSpace's language."""
        ...

    @property
    def domain(self) -> Domain:
        """What suggest functions are shown; the objective is not part of it."""
        ...

    def values(self, drawn: Mapping[str, Any]) -> dict[str, Any]:
        """Values by name from what a trial has drawn by label; inactive ones are absent."""
        ...

    def labels(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """What a trial with these values would have drawn, by label."""
        ...


@dataclass(frozen=True, eq=False)
class ExpressionSpace:
    """A ``ConfigurationSpace`` and the ``expression`` of it; see ``SearchSpace``."""

    space: ConfigurationSpace

    @cached_property
    def domain(self) -> Domain:
        """See ``SearchSpace``."""
        return Domain(None, expression(self.space), pass_expr_memo_ctrl=False)

    def values(self, drawn: Mapping[str, Any]) -> dict[str, Any]:
        """See ``SearchSpace``.

        Raises:
            ValueError: If one is missing.
        """
        try:
            return configuration(self.space, {label: [value] for label, value in drawn.items()})
        except (KeyError, IndexError) as error:
            raise ValueError(
                f"A trial with the labels {', '.join(drawn) or 'none'} is not of this search"
                f" space ({error}): pass the expression that was given to fmin."
            ) from None

    def labels(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """See ``SearchSpace``.

        Raises:
            ValueError: For what is no value of a hyperparameter.
        """
        drawn: dict[str, Any] = {}
        for label, value in values.items():
            hyperparameter = self.space[label]
            if isinstance(hyperparameter, Constant):
                continue
            known = choices_of(hyperparameter)
            found = to_number(value) if known is None else placer(hyperparameter)(value)
            if found is None or math.isnan(found):
                raise ValueError(f"{label}={value!r} is not a value of {hyperparameter}.")
            whole = isinstance(hyperparameter, CategoricalHyperparameter)
            drawn[label] = int(found) if whole else float(found)
        return drawn


def read_space(space: Any) -> SearchSpace:
    """A search space that is a ``ConfigurationSpace``, or anything that ``fmin`` takes for one.

    Raises:
        ValueError: For what ConfigSpace cannot express.
    """
    if isinstance(space, ConfigurationSpace):
        return ExpressionSpace(space)
    return space if isinstance(space, PyllSpace | ExpressionSpace) else translate(space)


# --- conditions -----------------------------------------------------------------------------


def _branch_of(conditions: Sequence[ConditionLike]) -> Branch | None:
    """The branch in which all conditions hold; None where it takes more than one categorical."""
    return _merge([_branch(condition) for condition in conditions], AndConjunction)


def _branch(condition: ConditionLike) -> Branch | None:
    if isinstance(condition, Conjunction):
        return _merge([_branch(part) for part in condition.components], type(condition))
    parent = condition.parent
    if not isinstance(parent, CategoricalHyperparameter):
        return None
    if isinstance(condition, InCondition):
        return parent.name, frozenset(int(parent.to_vector(v)) for v in condition.values)
    index = int(parent.to_vector(condition.value))
    if isinstance(condition, EqualsCondition):
        return parent.name, frozenset([index])
    if isinstance(condition, NotEqualsCondition):
        return parent.name, frozenset(range(len(parent.choices))) - {index}
    return None


def _merge(parts: Sequence[Branch | None], kind: type[Conjunction]) -> Branch | None:
    branches = [part for part in parts if part is not None]
    if not branches or len(branches) < len(parts) or len({name for name, _ in branches}) > 1:
        return None
    sets = [values for _, values in branches]
    combine = frozenset.intersection if issubclass(kind, AndConjunction) else frozenset.union
    return branches[0][0], combine(*sets)


# --- one hyperparameter ---------------------------------------------------------------------


def _node(hyperparameter: AnyHyperparameter, options: Sequence[dict[str, Any]]) -> Any:
    name = hyperparameter.name
    if isinstance(hyperparameter, CategoricalHyperparameter):
        if hyperparameter.weights is None:
            return hp.choice(name, options)
        weights = [float(p) for p in hyperparameter.probabilities]
        return hp.pchoice(name, list(zip(weights, options, strict=True)))
    if isinstance(hyperparameter, OrdinalHyperparameter):
        return hp.quniform(name, -_HALF, len(hyperparameter.sequence) - 1 + _HALF, 1)
    return _number(hyperparameter)


def _number(hyperparameter: Any) -> Any:
    name, low, high = hyperparameter.name, hyperparameter.lower, hyperparameter.upper
    if _is_normal(hyperparameter):
        mean, deviation = float(hyperparameter.mu), float(hyperparameter.sigma)
        if isinstance(hyperparameter, IntegerHyperparameter):
            return hp.qnormal(name, mean, deviation, 1)
        return hp.normal(name, mean, deviation)
    if isinstance(hyperparameter, IntegerHyperparameter):
        low, high = low - _HALF, high + _HALF
        if hyperparameter.log:
            return hp.qloguniform(name, math.log(low), math.log(high), 1)
        return hp.quniform(name, low, high, 1)
    if hyperparameter.log:
        return hp.loguniform(name, math.log(low), math.log(high))
    return hp.uniform(name, float(low), float(high))


def _is_normal(hyperparameter: Any) -> bool:
    """Whether a normal distribution describes it: its bounds are two deviations away."""
    kinds = NormalFloatHyperparameter | NormalIntegerHyperparameter
    if not isinstance(hyperparameter, kinds) or hyperparameter.log:
        return False
    room = min(hyperparameter.mu - hyperparameter.lower, hyperparameter.upper - hyperparameter.mu)
    return bool(room >= 2 * hyperparameter.sigma)


def _value(hyperparameter: Any, drawn: float) -> Any:
    """ConfigSpace's own value, within the bounds, from Hyperopt's number."""
    if isinstance(hyperparameter, CategoricalHyperparameter):
        return plain(hyperparameter.choices[int(drawn)])
    if isinstance(hyperparameter, OrdinalHyperparameter):
        return plain(hyperparameter.sequence[round(drawn)])
    if isinstance(hyperparameter, IntegerHyperparameter):
        return min(max(round(drawn), int(hyperparameter.lower)), int(hyperparameter.upper))
    return min(max(drawn, float(hyperparameter.lower)), float(hyperparameter.upper))
