"""Optuna's distributions as one ConfigSpace space: the union of all names, conditions inferred."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from ConfigSpace import (
    Categorical,
    ConfigurationSpace,
    Integer,
    OrdinalHyperparameter,
)
from ConfigSpace.hyperparameters import Constant, Hyperparameter
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)

from automl_plugins.spaces import conditions
from automl_plugins.spaces.conditions import Rule, as_condition
from automl_plugins.spaces.ranges import float_range, integer_range
from automl_plugins.spaces.vector_space import VectorSpace

from ._steps import steps_of

FloatArray = npt.NDArray[np.float64]


def infer_rules(
    values: Mapping[str, FloatArray], distributions: Mapping[str, BaseDistribution]
) -> list[Rule]:
    """Conditions that explain which parameters complete trials asked for.

    Args:
        values: Internal values (n,) by name, NaN where a trial did not ask.
        distributions: Distribution of each name.
    """
    return conditions.infer_rules(
        values,
        categories=[n for n in values if isinstance(distributions[n], CategoricalDistribution)],
        integers=[n for n in values if isinstance(distributions[n], IntDistribution)],
    )


class UnionSpace:
    """A ``VectorSpace`` over Optuna parameters, with the way there and back.

    Args:
        distributions: Distribution of each name; single values are left out.
        rules: Inferred conditions.
        ordinal: Ordered choices of categorical parameters whose order means something.
    """

    def __init__(
        self,
        distributions: Mapping[str, BaseDistribution],
        rules: Sequence[Rule] = (),
        ordinal: Mapping[str, Sequence[Any]] | None = None,
    ) -> None:
        ordinal = ordinal or {}
        self.distributions = {n: d for n, d in distributions.items() if not d.single()}
        self._ranks = {
            name: _ranks(name, distribution, ordinal[name])
            for name, distribution in self.distributions.items()
            if name in ordinal
        }
        self._steps = {
            name: steps
            for name, distribution in self.distributions.items()
            if (steps := steps_of(distribution)) is not None
        }
        space = ConfigurationSpace()
        with np.errstate(over="ignore"):  # ConfigSpace rounds defaults, however large they are
            for name, distribution in self.distributions.items():
                space.add(self._hyperparameter(name, distribution))
            for rule in rules:
                condition = self._condition(space, rule)
                if condition is not None:
                    space.add(condition)
        self.vectors = VectorSpace(space)
        self.column = {name: i for i, name in enumerate(self.vectors.names)}

    def _hyperparameter(
        self, name: str, distribution: BaseDistribution
    ) -> Hyperparameter[Any, Any]:
        # Choices such as [True, 1] or NaN are legal in Optuna only, so categories enter as index.
        if isinstance(distribution, CategoricalDistribution):
            indices = list(range(len(distribution.choices)))
            if name in self._ranks:
                return OrdinalHyperparameter(name, indices)
            return Categorical(name, indices)
        if name in self._steps:
            n = self._steps[name].n
            return Integer(name, (0, n - 1)) if n > 1 else Constant(name, 0)
        assert isinstance(distribution, FloatDistribution | IntDistribution)
        low, high = distribution.low, distribution.high
        if isinstance(distribution, FloatDistribution):
            return float_range(name, low, high, log=distribution.log)
        return integer_range(name, distribution.low, distribution.high, log=True)

    def _condition(self, space: ConfigurationSpace, rule: Rule) -> Any:
        if rule.child not in space or rule.parent not in space:
            return None
        parent = space[rule.parent]
        values = self._grid(rule.parent, np.array(rule.values))
        legal = [int(v) for v in np.rint(values) if parent.legal_value(int(v))]
        if len(legal) != len(values):  # the parent's range has moved away from under the rule
            return None
        return as_condition(space, rule, legal)

    def _grid(self, name: str, internal: FloatArray) -> FloatArray:
        """Internal values as the values of the ConfigSpace hyperparameter."""
        if name in self._ranks:
            ranks = np.append(self._ranks[name], np.nan)
            return ranks[np.where(np.isnan(internal), -1, internal).astype(np.int64)]
        if name in self._steps:
            return self._steps[name].index(internal)
        return internal

    def encode(self, name: str, internal: FloatArray) -> FloatArray:
        """Vector column (n,) of internal values; NaN stays NaN.

        Values of old ranges may leave [0, 1]; what the present scale cannot express (the log of
        0) becomes NaN.
        """
        out = np.full(len(internal), np.nan)
        known = ~np.isnan(internal)
        grid = self._grid(name, internal[known])
        hyperparameter = self.vectors.space[name]
        if isinstance(self.distributions[name], CategoricalDistribution):
            out[known] = grid
            return out
        if isinstance(hyperparameter, Constant):
            out[known] = 0.0
            return out
        with np.errstate(divide="ignore", invalid="ignore"):
            out[known] = hyperparameter.to_vector(grid)
        out[np.isinf(out)] = np.nan
        return out

    def decode(self, name: str, value: float) -> Any:
        """The parameter value that a vector entry stands for, as a builtin."""
        distribution = self.distributions[name]
        if isinstance(distribution, CategoricalDistribution):
            index = int(value)
            if name in self._ranks:
                index = int(np.flatnonzero(self._ranks[name] == index)[0])
            return distribution.choices[index]
        assert isinstance(distribution, FloatDistribution | IntDistribution)
        plain = self.vectors.space[name].to_value(np.array([value]))[0]
        if name in self._steps:
            return self._steps[name].value(int(plain))
        if isinstance(distribution, IntDistribution):
            return int(min(max(int(plain), distribution.low), distribution.high))
        return float(min(max(float(plain), distribution.low), distribution.high))

    def internal(self, name: str, value: float) -> float:
        """Optuna's internal representation of a vector entry."""
        return float(self.distributions[name].to_internal_repr(self.decode(name, value)))

    def fixed(self, values: Mapping[str, Any]) -> FloatArray:
        """Vector (d,) of external values that are decided, NaN elsewhere."""
        vector = np.full(self.vectors.d, np.nan)
        for name, value in values.items():
            if name in self.column:
                try:
                    internal = self.distributions[name].to_internal_repr(value)
                except ValueError:  # a value that the parameter has no more
                    continue
                vector[self.column[name]] = self.encode(name, np.array([float(internal)]))[0]
        return vector


def _ranks(
    name: str, distribution: BaseDistribution, ordered: Sequence[Any]
) -> npt.NDArray[np.float64]:
    """Rank of each choice (k,) in ``ordered``.

    Raises:
        ValueError: If ``ordered`` is not a permutation of the parameter's choices.
    """
    if not isinstance(distribution, CategoricalDistribution):
        raise ValueError(f"ordinal names {name!r}, which is not categorical: {distribution}.")
    try:
        order = [int(distribution.to_internal_repr(choice)) for choice in ordered]
    except ValueError as error:
        raise ValueError(f"ordinal[{name!r}]: {error}") from error
    if sorted(order) != list(range(len(distribution.choices))):
        raise ValueError(
            f"ordinal[{name!r}] must list each choice once, got {list(ordered)!r} for the choices"
            f" {list(distribution.choices)!r}."
        )
    return np.argsort(order).astype(np.float64)
