"""Optuna's distributions as one ConfigSpace space: the union of all names, conditions inferred."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from ConfigSpace import (
    Categorical,
    ConfigurationSpace,
    Float,
    Integer,
    OrdinalHyperparameter,
)
from ConfigSpace.hyperparameters import Hyperparameter
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)

from automl_plugins import conditions
from automl_plugins.conditions import Rule, as_condition
from automl_plugins.space import VectorSpace

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
        space = ConfigurationSpace()
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
        if (steps := _n_steps(distribution)) is not None:
            return Integer(name, (0, steps))
        assert isinstance(distribution, FloatDistribution | IntDistribution)
        if isinstance(distribution, IntDistribution):
            return Integer(name, (distribution.low, distribution.high), log=distribution.log)
        return Float(name, (distribution.low, distribution.high), log=distribution.log)

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
        distribution = self.distributions[name]
        if name in self._ranks:
            ranks = np.append(self._ranks[name], np.nan)
            return ranks[np.where(np.isnan(internal), -1, internal).astype(np.int64)]
        if _n_steps(distribution) is not None:
            assert isinstance(distribution, FloatDistribution | IntDistribution)
            # (0.3 - 0.0) / 0.1 is 2.9999999999999996, and equal values must have equal vectors.
            return np.round((internal - distribution.low) / float(distribution.step or 1), 9)
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
        if _n_steps(distribution) is not None:
            plain = distribution.low + int(plain) * (distribution.step or 1)
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


def _n_steps(distribution: BaseDistribution) -> int | None:
    """Index of the last grid point, for distributions that are an even grid."""
    if isinstance(distribution, IntDistribution) and not distribution.log:
        return (distribution.high - distribution.low) // distribution.step
    if isinstance(distribution, FloatDistribution) and distribution.step is not None:
        return round((distribution.high - distribution.low) / distribution.step)
    return None


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
