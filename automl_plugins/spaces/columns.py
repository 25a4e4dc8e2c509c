"""One hyperparameter of a search space as a column of vectors, see ``vector_space``.

Entries (n,) of a column are numbers on the scale [0, 1] of a range, or indices of categories and
ordinals; u (n,) are probabilities, steps (n,) differences of entries as shares of the range.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from ConfigSpace.hyperparameters import (
    CategoricalHyperparameter,
    Constant,
    Hyperparameter,
    IntegerHyperparameter,
    OrdinalHyperparameter,
    UniformFloatHyperparameter,
)

from automl_plugins.arrays import FloatArray
from automl_plugins.spaces.ranges import ExactFloat, scale_of

# Logarithms of the least and the largest width of a step. In the middle is SMAC's 0.05; larger
# steps leave a basin, smaller ones refine what was found in it.
_WIDTHS = np.log10(0.01), np.log10(0.3)


class Column:
    """Vectorised view of one hyperparameter.

    Attributes:
        is_categorical: Whether it holds unordered categories.
        is_indexed: Whether its entries are indices: categories and ordinals.
        is_constant: Whether it is a constant.
        is_uniform: Whether its entries are the real numbers from 0 to 1, all equally likely.
        n_values: Number of legal values, inf for real numbers.
        largest: Largest vector entry.
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
        # Not isinstance: a class derived from these may draw otherwise.
        uniform = type(hyperparameter) in (UniformFloatHyperparameter, ExactFloat)
        self.is_uniform = uniform and np.isinf(self.n_values) and not self._is_rounded
        # Categories have features of 0 and 1, ordinals their indices, scaled by the largest one.
        self.largest = self.n_values - 1.0 if is_ordinal else 1.0

    @property
    def is_grid(self) -> bool:
        """Whether it has finitely many values, on a scale of its own."""
        return bool(np.isfinite(self.n_values)) and not self.is_indexed

    def legal_vectors(self) -> FloatArray:
        """All legal entries (n_values,), ascending; finite columns only."""
        if self.is_indexed:
            return np.arange(int(self.n_values), dtype=np.float64)
        if self.is_constant:
            # 1 in ConfigSpace, not 0.
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
            # By place: by the value and back takes three times as long, and rounds far from 0.
            return np.rint(legal * (self.n_values - 1.0)) / (self.n_values - 1.0)
        if self.is_grid or self._is_rounded:
            return np.asarray(hp.to_vector(hp.to_value(legal)), dtype=np.float64)
        return legal

    def draw(self, n: int, state: np.random.RandomState) -> FloatArray:
        """``n`` entries from the hyperparameter's own distribution."""
        # ``seed`` may be a state: it is drawn from, and moves on.
        drawn = np.asarray(self._hyperparameter.sample_vector(n, seed=state))
        # ConfigSpace does not know our rounding, and draws integers on a log scale near their
        # entries. Equal values must have equal entries: conditions and clauses compare entries.
        is_off = self._is_rounded or (self.is_grid and getattr(self._hyperparameter, "log", False))
        return self.snap(drawn) if is_off else drawn

    def quantile(self, u: FloatArray) -> FloatArray:
        """Legal entries (n,) at ``u`` (n,) in [0, 1), every legal value equally likely.

        Integers on a log scale have the probability of their rounding interval.
        """
        if self.is_indexed or self.is_constant:
            return self.legal_vectors()[(u * self.n_values).astype(np.int64)]
        if self._is_even:
            place = np.floor(u * self.n_values)
            if isinstance(self._hyperparameter, IntegerHyperparameter):
                # Halfway between two integers the even one, as ``rint`` does for others below.
                between = (u * self.n_values == place) & (place > 0)
                place -= between * ((int(self._integer.lower) % 2 + place) % 2)
            return np.asarray(place / (self.n_values - 1.0))
        if not self.is_grid:
            return self.snap(u) if self._is_rounded else u
        hp = self._integer
        low, high = hp.lower - 0.5, hp.upper + 0.5
        value = np.rint(low * (high / low) ** u if hp.log else low + u * (high - low))
        # An end of the outermost intervals may be rounded to the integer outside the range.
        legal = np.clip(value, hp.lower, hp.upper).astype(np.int64)
        return np.asarray(hp.to_vector(legal), dtype=np.float64)

    def step_from(self, old: FloatArray, step: FloatArray) -> FloatArray:
        """The legal entries (n,) after a ``step`` (n,) from each of ``old`` (n,).

        A step over the border is reflected, so the corners stay reachable. On a grid of numbers it
        reaches at least the next value, on the other side if the old one is at the border. A
        category moves on by a whole number of places; the first one follows the last.
        """
        if self.is_categorical:
            return np.asarray((old + step) % self.n_values)
        step = step * self.largest
        if np.isfinite(self.n_values):
            grid = self.largest / (self.n_values - 1.0)  # the mean one, on a log scale
            step = np.copysign(np.maximum(np.abs(step), grid), step)
        # A step that is longer than the way to either border is cut off there by ``snap``.
        new = self.snap(reflect(old, step, self.largest))
        if self.is_grid:
            # At the low end of a log scale even a step of one mean grid value is rounded away.
            stuck = new == old
            new[stuck] = self._adjacent(old[stuck], step[stuck])
        return new

    def _adjacent(self, values: FloatArray, step: FloatArray) -> FloatArray:
        """The next legal value in the direction of each step, the other one at the border."""
        if self._is_even:
            grid = np.where(step < 0, -1.0, 1.0) / (self.n_values - 1.0)
            moved = values + grid  # this or the other side is inside, as there are two values
            return self.snap(np.where((moved < 0.0) | (moved > 1.0), values - grid, moved))
        hp = self._integer
        old, sign = np.asarray(hp.to_value(values)), np.where(step < 0, -1, 1)
        new = old + sign
        new = np.where((new < hp.lower) | (new > hp.upper), old - sign, new)
        return np.asarray(hp.to_vector(new), dtype=np.float64)

    @property
    def _integer(self) -> IntegerHyperparameter:
        return cast("IntegerHyperparameter", self._hyperparameter)


def random_steps(n: int, rng: np.random.Generator) -> FloatArray:
    """``n`` normal steps, as shares of a range, their widths log-uniform from 0.01 to 0.3."""
    width = 10.0 ** rng.uniform(*_WIDTHS, size=n)
    return rng.standard_normal(n) * width


def reflect(old: FloatArray, step: FloatArray, largest: float = 1.0) -> FloatArray:
    """``old + step`` (n,), or ``old - step`` where that leaves [0, ``largest``]."""
    new = old + step
    return np.where((new < 0) | (new > largest), old - step, new)
