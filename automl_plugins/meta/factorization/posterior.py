"""What a factorisation expects of all pipelines on a new data set, pipeline by pipeline.

Observations are added one by one: each costs one column of the kernel and one row of the
Cholesky factor, milliseconds for tens of thousands of pipelines.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from scipy.linalg import solve_triangular

from .kernels import AnyFloats, column, variance

if TYPE_CHECKING:
    from .model import MatrixFactorization

FloatArray = npt.NDArray[np.float64]

_GROWTH = 256  # observations that are made room for at once
_SINGLE = 8192  # pipelines from which the columns are kept in single precision


class Conditioned:
    """The processes of a new data set, conditioned on losses of some pipelines.

    Args:
        model: A fitted factorisation.

    Attributes:
        rows: Pipelines observed so far, in order, each once.
    """

    def __init__(self, model: MatrixFactorization) -> None:
        self.model = model
        self.rows: list[int] = []
        self._p = model.parameters_
        n = len(self._p.places)
        self._kind: Any = np.float32 if n >= _SINGLE else np.float64
        self._places: AnyFloats = np.asarray(model.embedding_, dtype=self._kind)
        self._squares = np.einsum("ij,ij->i", self._places, self._places)
        self._V = np.empty((0, n), dtype=self._kind)  # L^-1 K(rows, all)
        self._L = np.zeros((0, 0))
        self._explained = np.zeros(n)
        self._prior = variance(model.kernel, self._p)
        self._noise = self._p.noise

    def observe(self, row: int) -> None:
        """Add a pipeline; a second time changes nothing."""
        if row in self.rows:
            return
        t = len(self.rows)
        if t == len(self._V):
            grown = np.empty((t + _GROWTH, self._V.shape[1]), dtype=self._kind)
            grown[:t] = self._V
            L = np.zeros((t + _GROWTH, t + _GROWTH))
            L[:t, :t] = self._L
            self._V, self._L = grown, L
        k = column(self.model.kernel, self._p, self._places, self._squares, row)
        known = self._V[:t, row].copy()  # L^-1 K(rows, row)
        pivot = np.sqrt(max(self._prior[row] - known @ known, 0.0) + self._noise[row])
        self._L[t, :t] = known
        self._L[t, t] = pivot
        k -= known @ self._V[:t]
        k /= self._kind(pivot)
        self._V[t] = k
        self._explained += k * k
        self.rows.append(row)

    def posterior(self, losses: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean and standard deviation (N,) of the losses of all pipelines, noise included.

        Args:
            losses: Those of ``rows`` (n,), in any unit.
        """
        shift, stretch = self.scale(losses)
        mean, std = self.scaled_posterior(losses, shift, stretch)
        return shift + stretch * mean, stretch * std

    def scaled_posterior(
        self, losses: FloatArray, shift: float, stretch: float
    ) -> tuple[FloatArray, FloatArray]:
        """``posterior`` on the common scale, given that of the new data set.

        ``mu_m = k' C^-1 z`` and ``v_m = k_mm + s^2 - k' C^-1 k`` (Fusi eqs. 6 and 7), around the
        means of the pipelines.
        """
        t = len(self.rows)
        z = (losses - shift) / stretch - self.model.mean_[self.rows]
        weights = solve_triangular(self._L[:t, :t], z, lower=True, check_finite=False)
        mean = self.model.mean_ + weights.astype(self._kind) @ self._V[:t]
        left = np.maximum(self._prior - self._explained, 0.0) + self._noise
        return mean, np.sqrt(left)

    def deviation_after(self, rows: Sequence[int]) -> FloatArray:
        """Standard deviation (N,) on the common scale if further rows were observed, too.

        It does not depend on their losses.
        """
        observed, explained = list(self.rows), self._explained.copy()
        for row in rows:
            self.observe(row)
        std = np.sqrt(np.maximum(self._prior - self._explained, 0.0) + self._noise)
        self.rows, self._explained = observed, explained
        return np.asarray(std)

    def scale(self, losses: FloatArray) -> tuple[float, float]:
        """Shift and stretch of the new data set, given losses (n,) of ``rows``."""
        t = len(self.rows)
        return self.model.scale_prior_.infer(
            np.asarray(losses, dtype=np.float64), self.model.mean_[self.rows], self._L[:t, :t]
        )

    def __getstate__(self) -> dict[str, Any]:
        raise TypeError("Conditioned is a cache and is not pickled: make it anew from the model.")
