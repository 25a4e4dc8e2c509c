"""One hyperparameter of a search space as a column of vectors, see ``vector_space``."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from ConfigSpace.hyperparameters import (
    CategoricalHyperparameter,
    Constant,
    Hyperparameter,
    IntegerHyperparameter,
    OrdinalHyperparameter,
)

from automl_plugins.arrays import FloatArray
from automl_plugins.spaces.ranges import scale_of


class Column:
    """Vectorised view of one hyperparameter.

    Args:
        hyperparameter: The hyperparameter.

    Attributes:
        is_categorical: Whether it holds unordered categories.
        is_indexed: Whether its entries are indices: categories and ordinals.
        is_constant: Whether it is a constant.
        n_values: Number of legal values, inf for real numbers.
        scale: Largest vector entry.
    """

    def __init__(self, hyperparameter: Hyperparameter[Any, Any]) -> None:
        is_ordinal = isinstance(hyperparameter, OrdinalHyperparameter)
        self._hyperparameter = hyperparameter
        own = scale_of(hyperparameter)
        self._is_even = own is not None and own.n is not None
        self._is_rounded = own is not None and own.is_rounded
        self.is_categorical = isinstance(hyperparameter, CategoricalHyperparameter)
        self.is_indexed = self.is_categorical or is_ordinal
        self.is_constant = isinstance(hyperparameter, Constant)
        self.n_values = float(hyperparameter.size)
        self.scale = self.n_values - 1.0 if is_ordinal else 1.0

    @property
    def is_grid(self) -> bool:
        """Whether it has finitely many values, on a scale of its own."""
        return bool(np.isfinite(self.n_values)) and not self.is_indexed

    def legal_vectors(self) -> FloatArray:
        """All legal entries (n_values,), ascending; finite columns only."""
        if self.is_indexed:
            return np.arange(int(self.n_values), dtype=np.float64)
        if self.is_constant:
            return np.array([float(self._hyperparameter.lower_vectorized)])
        if self._is_even:
            return np.arange(int(self.n_values)) / (self.n_values - 1.0)
        values = np.arange(self._integer.lower, self._integer.upper + 1)
        return np.asarray(self._integer.to_vector(values), dtype=np.float64)

    def snap(self, values: FloatArray) -> FloatArray:
        """The nearest legal entries (n,) of ``values`` (n,) without NaN."""
        hp = self._hyperparameter
        legal = np.clip(values, hp.lower_vectorized, hp.upper_vectorized)
        if self.is_indexed:
            return np.rint(legal)
        if self._is_even:
            return np.rint(legal * (self.n_values - 1.0)) / (self.n_values - 1.0)
        if self.is_grid or self._is_rounded:
            return np.asarray(hp.to_vector(hp.to_value(legal)), dtype=np.float64)
        return legal

    def draw(self, n: int, state: np.random.RandomState) -> FloatArray:
        """``n`` entries from the hyperparameter's own distribution."""
        drawn = np.asarray(self._hyperparameter.sample_vector(n, seed=state))
        return self.snap(drawn) if self._is_rounded else drawn

    def quantile(self, u: float) -> float:
        """Legal entry at ``u`` in [0, 1), every legal value equally likely.

        Integers on a log scale have the probability of their rounding interval.
        """
        hp = self._hyperparameter
        if self.is_indexed or self.is_constant:
            return float(self.legal_vectors()[int(u * self.n_values)])
        if self._is_even:
            place = int(u * self.n_values)
            if isinstance(hp, IntegerHyperparameter) and u * self.n_values == place > 0:
                place -= (int(hp.lower) + place) % 2  # between two the even one, as below
            return place / (self.n_values - 1.0)
        if not self.is_grid:
            return float(self.snap(np.array([u]))[0]) if self._is_rounded else u
        hp = self._integer
        low, high = hp.lower - 0.5, hp.upper + 0.5
        value = low * (high / low) ** u if hp.log else low + u * (high - low)
        legal = np.clip(np.rint(value), hp.lower, hp.upper).astype(np.int64)
        return float(hp.to_vector(np.array([legal]))[0])

    def stepped(self, old: FloatArray, rng: np.random.Generator) -> FloatArray:
        """A random step from each of ``old`` (n,), its width log-uniform from 0.01 to 0.3.

        At least one grid value, unless a border or a log scale is in the way of that, too.
        """
        width = 10.0 ** rng.uniform(np.log10(0.01), np.log10(0.3), size=len(old))
        step = rng.standard_normal(len(old)) * width * self.scale
        if np.isfinite(self.n_values):
            grid = self.scale / (self.n_values - 1.0)
            step = np.copysign(np.maximum(np.abs(step), grid), step)
        new = old + step
        # A step over the border is reflected, so the corners stay reachable.
        new = self.snap(np.where((new < 0) | (new > self.scale), old - step, new))
        if self.is_grid:
            # At the low end of a log scale even a step of one mean grid value is rounded away.
            stuck = new == old
            new[stuck] = self._adjacent(old[stuck], step[stuck])
        return new

    def _adjacent(self, values: FloatArray, step: FloatArray) -> FloatArray:
        """The next legal value in the direction of each step, the other one at the border."""
        if self._is_even:
            grid = np.where(step < 0, -1.0, 1.0) / (self.n_values - 1.0)
            moved = values + grid
            return self.snap(np.where((moved < 0.0) | (moved > 1.0), values - grid, moved))
        hp = self._integer
        old, sign = np.asarray(hp.to_value(values)), np.where(step < 0, -1, 1)
        new = old + sign
        new = np.where((new < hp.lower) | (new > hp.upper), old - sign, new)
        return np.asarray(hp.to_vector(new), dtype=np.float64)

    @property
    def _integer(self) -> IntegerHyperparameter:
        return cast("IntegerHyperparameter", self._hyperparameter)
