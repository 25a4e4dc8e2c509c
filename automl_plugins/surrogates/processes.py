"""Gaussian processes with a stationary kernel: likelihood, shared kernels, averages of kernels.

"RW" is Rasmussen and Williams, "Gaussian Processes for Machine Learning" (MIT Press, 2006).
Notation of this module::

    X       inputs without NaN, shape (n, d)
    Z       standardised losses of T tasks on the same inputs, shape (n, T)
    scales  one length scale for each input (ARD), shape (d,)
    theta   logarithms of constant, length scales and noise variance, shape (d + 2,)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log, pi
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt
from scipy.linalg import cho_solve, cholesky, solve_triangular
from scipy.optimize import minimize
from scipy.spatial.distance import cdist

from automl_plugins.surrogates.base import FloatArray, standardise

Kernel = Literal["matern52", "se"]
KERNELS: tuple[Kernel, ...] = get_args(Kernel)

_CONSTANT_BOUNDS = (0.01, 1000.0)
_SCALE_BOUNDS = (0.05, 100.0)  # inputs lie in [0, 1]; a grid of 20 values is resolved
_NOISE_BOUNDS = (1e-6, 1.0)


def complete_inputs(X: FloatArray, flagged: npt.NDArray[np.intp]) -> FloatArray:
    """Features (n, f) with 0.5 in place of NaN, and a flag for each of the ``flagged`` columns.

    Returns:
        Inputs (n, f + len(flagged)); a flag is 1 where the value is present.
    """
    missing = np.isnan(X)
    return np.hstack([np.where(missing, 0.5, X), ~missing[:, flagged]])


def informative_rows(y: FloatArray, limit: int) -> npt.NDArray[np.intp]:
    """Choose at most ``limit`` of the rows with losses ``y`` (n,).

    The better half of the limit are the rows with the lowest losses, because the optimum is sought
    near them; the others are evenly spaced in the ranking of the rest, the worst row included, so
    that the model still knows where not to look. Equal losses rank in the order of the rows.

    Returns:
        Row numbers, ascending.
    """
    order = np.argsort(y, kind="stable")
    if len(y) <= limit:
        return np.sort(order)
    n_best = limit // 2
    spread = np.linspace(len(y) - 1, n_best, limit - n_best).round().astype(np.intp)
    return np.sort(np.concatenate([order[:n_best], order[spread]]))


def correlation(A: FloatArray, B: FloatArray, scales: FloatArray, kernel: Kernel) -> FloatArray:
    """Correlations (n, m) of the rows of ``A`` (n, d) and ``B`` (m, d).

    ``"matern52"``: (1 + r + r^2 / 3) exp(-r), r = sqrt(5) u (RW eq. 4.17); ``"se"``:
    exp(-u^2 / 2) (RW eq. 5.1); u the Euclidean distance in units of the length scales.
    """
    squares = cdist(A / scales, B / scales, "sqeuclidean")
    if kernel == "se":
        return np.asarray(np.exp(-0.5 * squares))
    squares *= 5.0
    r = np.sqrt(squares)
    squares /= 3.0
    squares += r
    squares += 1.0
    squares *= np.exp(-r)
    return np.asarray(squares)


def log_likelihood(
    theta: FloatArray, X: FloatArray, Z: FloatArray, kernel: Kernel
) -> tuple[float, FloatArray]:
    """Log marginal likelihood of all tasks together, and its gradient.

    The tasks are independent given ``theta``, so their log likelihoods (RW eq. 2.30) add up, and
    one factorisation serves them all. The derivatives with respect to the length scales are
    summed without an array of shape (n, n, d).

    Returns:
        The value and its gradient with respect to ``theta`` (d + 2,).
    """
    n, n_tasks = Z.shape
    constant, noise = np.exp(theta[[0, -1]])
    # Centred, so that the last sum below does not cancel for columns far from 0.
    U = (X - X.mean(axis=0)) / np.exp(theta[1:-1])
    if kernel == "se":
        signal = constant * np.exp(-0.5 * cdist(U, U, "sqeuclidean"))
    else:
        r = np.sqrt(5.0) * cdist(U, U)
        decay = constant * np.exp(-r)
        signal = decay * (1.0 + r + r**2 / 3.0)
    L = cholesky(signal + noise * np.eye(n), lower=True, check_finite=False)
    alpha = cho_solve((L, True), Z, check_finite=False)
    log_det = 2.0 * np.log(np.diag(L)).sum()
    value = -0.5 * np.vdot(Z, alpha) - 0.5 * n_tasks * log_det - 0.5 * n_tasks * n * log(2.0 * pi)
    # RW eq. 5.9 summed over the tasks: tr(W dK/dtheta) / 2, W = sum_t alpha_t alpha_t' - T K^-1.
    W = alpha @ alpha.T - n_tasks * cho_solve((L, True), np.eye(n), check_finite=False)
    # W_ij dK_ij / dlog(l_k) = M_ij (u_ik - u_jk)^2, and M is symmetric.
    M = W * signal if kernel == "se" else W * decay * (1.0 + r) * (5.0 / 3.0)
    d_scales = M.sum(axis=1) @ U**2 - np.sum(U * (M @ U), axis=0)
    d_constant, d_noise = 0.5 * np.sum(W * signal), 0.5 * noise * np.trace(W)
    return float(value), np.concatenate([[d_constant], d_scales, [d_noise]])


def fit_shared(
    groups: Sequence[tuple[FloatArray, FloatArray]], kernel: Kernel, max_steps: int = 60
) -> FloatArray:
    """The ``theta`` (d + 2,) under which all groups of tasks are most likely.

    One ascent (L-BFGS-B) from constant and length scales 1 and noise 0.01. With tens of tasks the
    likelihood is sharp, and further starts found nothing better.

    Args:
        groups: Inputs (n, d) and losses (n, T) of tasks that share their inputs.
        kernel: Kernel.
        max_steps: Largest number of steps of the ascent.
    """
    d = groups[0][0].shape[1]
    start = np.zeros(d + 2)
    start[-1] = log(0.01)
    bounds = np.log([_CONSTANT_BOUNDS, *[_SCALE_BOUNDS] * d, _NOISE_BOUNDS])

    def loss(theta: FloatArray) -> tuple[float, FloatArray]:
        parts = [log_likelihood(theta, X, Z, kernel) for X, Z in groups]
        return -sum(value for value, _ in parts), -np.sum([slope for _, slope in parts], axis=0)

    found = minimize(
        loss, start, jac=True, bounds=bounds, method="L-BFGS-B", options={"maxiter": max_steps}
    )
    return np.asarray(found.x, dtype=np.float64)


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
        z, self.centre_, self.scale_ = standardise(y) if len(y) else (y, 0.0, 1.0)
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
