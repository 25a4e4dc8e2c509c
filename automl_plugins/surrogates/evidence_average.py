"""Gaussian process of a task with few observations: fixed kernels, weighted by their evidence.

With ten observations the hyperparameters cannot be told from the data, and the most likely ones
are overconfident. A few fixed candidates are cheap to try, and averaging them over their marginal
likelihood keeps what the data cannot decide as uncertainty. "RW" is Rasmussen and Williams,
"Gaussian Processes for Machine Learning" (MIT Press, 2006).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.linalg import cholesky, solve_triangular

from automl_plugins.surrogates.base import FloatArray, standardised
from automl_plugins.surrogates.stationary import Kernel, correlation

_LENGTHS = (0.125, 0.25, 0.5, 1.0, 2.0)  # of inputs in [0, 1]
_NOISES = (1e-3, 5e-2)
_NEGLIGIBLE = 1e-4  # weight of a kernel that is not asked


@dataclass(frozen=True)
class Candidate:
    """A kernel of unit variance.

    Attributes:
        scales: Length scales (d,).
        noise: Noise variance.
        log_prior: Logarithm of its prior weight, up to a constant.
    """

    scales: FloatArray
    noise: float
    log_prior: float = 0.0


def uninformed(d: int) -> list[Candidate]:
    """Kernels for a task of which nothing is known: one length scale for all inputs."""
    return [Candidate(np.full(d, length), noise) for length in _LENGTHS for noise in _NOISES]


class EvidenceAverage:
    """Average of Gaussian processes on standardised losses, weighted by prior and evidence.

    The standard deviation is that of the mixture, without noise. Without observations it is the
    prior: mean 0, deviation 1.

    Args:
        candidates: Kernels, at least one.
        kernel: Their form.

    Attributes:
        evidence_: Posterior weight of each candidate, summing to 1.
    """

    def __init__(self, candidates: Sequence[Candidate], kernel: Kernel) -> None:
        self.candidates = tuple(candidates)
        self.kernel = kernel

    def fit(self, inputs: FloatArray, y: FloatArray) -> EvidenceAverage:
        """Condition every candidate on losses ``y`` (n,) of complete ``inputs`` (n, d), n >= 0."""
        z, self.centre_, self.scale_ = standardised(y) if len(y) else (y, 0.0, 1.0)
        self.inputs_ = inputs
        self.solved_: list[tuple[FloatArray, FloatArray]] = []
        log_weights = np.empty(len(self.candidates))
        correlations = self._correlations(inputs)
        for i, candidate in enumerate(self.candidates):
            K = correlations[candidate.scales.tobytes()].copy()
            K[np.diag_indices_from(K)] += candidate.noise
            L = cholesky(K, lower=True, check_finite=False) if len(z) else K
            w = solve_triangular(L, z, lower=True, check_finite=False) if len(z) else z
            self.solved_.append((L, w))
            # RW eq. 2.30 without the constant; constant losses tell the kernels nothing.
            fit = -0.5 * (w @ w) - np.log(np.diag(L)).sum() if z.any() else 0.0
            log_weights[i] = fit + candidate.log_prior
        weights = np.exp(log_weights - log_weights.max())
        self.evidence_ = weights / weights.sum()
        return self

    def predict(self, inputs: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean and standard deviation (m,) in the units of the losses."""
        mean, square = np.zeros(len(inputs)), np.zeros(len(inputs))
        asked = np.where(self.evidence_ < _NEGLIGIBLE, 0.0, self.evidence_)
        correlations = self._correlations(inputs, asked > 0)
        for weight, candidate, (L, w) in zip(
            asked / asked.sum(), self.candidates, self.solved_, strict=True
        ):
            if weight == 0.0:
                continue
            m, v = np.zeros(len(inputs)), np.ones(len(inputs))
            if len(w):
                K = correlations[candidate.scales.tobytes()]
                V = solve_triangular(L, K, lower=True, check_finite=False)
                m, v = w @ V, np.maximum(1.0 - np.einsum("nm,nm->m", V, V), 0.0)  # RW 2.25, 2.26
            mean += weight * m
            square += weight * (v + m * m)
        std = np.sqrt(np.maximum(square - mean * mean, 0.0))
        return self.centre_ + self.scale_ * mean, self.scale_ * std

    def _correlations(
        self, inputs: FloatArray, asked: npt.NDArray[np.bool_] | None = None
    ) -> dict[bytes, FloatArray]:
        """Correlations (n, m) of the rows learnt from with ``inputs`` (m, d) by length scales.

        Candidates that differ in their noise only share them.
        """
        found: dict[bytes, FloatArray] = {}
        for i, candidate in enumerate(self.candidates):
            key = candidate.scales.tobytes()
            if key not in found and (asked is None or asked[i]):
                found[key] = correlation(self.inputs_, inputs, candidate.scales, self.kernel)
        return found
