"""Covariances of pipelines with latent places, the likelihood of losses, and its gradient.

Notation of this module and its neighbours::

    N, D   pipelines and data sets
    x_n    latent place of pipeline n (Q,), X all of them (N, Q)
    k      kernel of the processes f_d over places, the same for all data sets
    K      its matrix, C = K + diag(noise) that of the observations

The kernels are "se", ``amplitude exp(-|x - x'|^2 / 2)`` with every dimension divided by its length
scale first (SE-ARD), and "linear", the inner product, which makes the model probabilistic PCA.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy.linalg import cho_solve, cholesky, lapack

FloatArray = npt.NDArray[np.float64]
AnyFloats = npt.NDArray[np.floating]
IntArray = npt.NDArray[np.int64]
Kernel = Literal["se", "linear"]


@dataclass(frozen=True)
class Parameters:
    """What training changes, all of it unconstrained.

    Attributes:
        places: X (N, Q).
        log_noise: Log variance of an observation that the processes do not explain (N,).
        log_lengths: Log length scale of each latent dimension (Q,).
        log_amplitude: Log variance of the processes (1,).
    """

    places: FloatArray
    log_noise: FloatArray
    log_lengths: FloatArray
    log_amplitude: FloatArray

    @property
    def noise(self) -> FloatArray:
        """Variances (N,)."""
        return np.asarray(np.exp(self.log_noise))

    @property
    def embedding(self) -> FloatArray:
        """X with dimensions in units of their length scales (N, Q)."""
        return np.asarray(self.places / np.exp(self.log_lengths))

    def of(self, rows: IntArray) -> Parameters:
        """The parameters of some pipelines."""
        return replace(self, places=self.places[rows], log_noise=self.log_noise[rows])


def covariance(kernel: Kernel, p: Parameters, others: FloatArray | None = None) -> FloatArray:
    """K between ``p.places`` (n, Q) and other places (m, Q), by default the same ones."""
    other = p.places if others is None else others
    if kernel == "linear":
        return np.asarray(p.places @ other.T)
    lengths = np.exp(p.log_lengths)
    a, b = p.places / lengths, other / lengths
    squared = (a * a).sum(1)[:, None] + (b * b).sum(1)[None, :]
    squared -= 2.0 * (a @ b.T)
    np.maximum(squared, 0.0, out=squared)
    squared *= -0.5
    np.exp(squared, out=squared)
    squared *= float(np.exp(p.log_amplitude[0]))
    return np.asarray(squared)


def column_of(
    kernel: Kernel, p: Parameters, scaled: AnyFloats, squares: AnyFloats, row: int
) -> AnyFloats:
    """Column ``row`` (N,) of K, in the precision of ``scaled``.

    ``scaled`` are all places (N, Q) in units of the length scales, ``squares`` (N,) the sums of
    their squares.
    """
    if kernel == "linear":
        return np.asarray(p.places @ p.places[row]).astype(scaled.dtype)
    k = scaled @ scaled[row]
    k -= scaled.dtype.type(0.5) * squares
    k -= scaled.dtype.type(0.5) * squares[row]
    np.minimum(k, 0.0, out=k)
    np.exp(k, out=k)
    k *= scaled.dtype.type(np.exp(p.log_amplitude[0]))
    return np.asarray(k)


def variance(kernel: Kernel, p: Parameters) -> FloatArray:
    """The diagonal of K (n,)."""
    if kernel == "linear":
        return np.asarray((p.places**2).sum(axis=1))
    return np.full(len(p.places), float(np.exp(p.log_amplitude[0])))


def chain(kernel: Kernel, p: Parameters, K: FloatArray, dK: FloatArray) -> Parameters:
    """Gradient of the parameters from the gradient (n, n) of C, which is symmetric."""
    noise = p.noise * np.diagonal(dK)
    zero = np.zeros_like(p.log_lengths)
    if kernel == "linear":
        return Parameters(2.0 * dK @ p.places, noise, zero, np.zeros(1))
    weights = dK * K
    rows = weights.sum(axis=1)
    lengths = np.exp(p.log_lengths)
    scaled = p.places / lengths
    mixed = weights @ scaled
    # d K_ij / d x_i = -K_ij (x_i - x_j) / length^2, and every pair counts twice.
    places = -2.0 * (rows[:, None] * scaled - mixed) / lengths
    spread = 2.0 * ((rows[:, None] * scaled**2).sum(0) - (scaled * mixed).sum(0))
    return Parameters(places, noise, spread, np.array([weights.sum()]))


_LOG_2_PI = float(np.log(2.0 * np.pi))


def objective(kernel: Kernel, p: Parameters, z: FloatArray) -> tuple[float, Parameters]:
    """Negative log likelihood of centred losses ``z`` (n, b; NaN = none), and its gradient.

        L = sum over d of 1/2 [ n_d log 2 pi + log |C_d| + z_d' C_d^-1 z_d ]   (Fusi eq. 5)

    with ``C_d`` the rows and columns of C of the pipelines observed on d. (The paper prints n_d/2
    before the determinant; the Gaussian has 1/2.) Data sets that miss the same pipelines share
    one factorisation.

    Raises:
        numpy.linalg.LinAlgError: If a covariance is not positive definite.
    """
    if kernel == "linear" and len(z) > p.places.shape[1]:
        return _linear(p, z)
    K = covariance(kernel, p)
    C = K + np.diag(p.noise)
    total, dC = 0.0, np.zeros_like(C)
    for rows, columns in patterns(z):
        values = z[np.ix_(rows, columns)]
        whole = len(rows) == len(z)
        L = cholesky(C if whole else C[np.ix_(rows, rows)], lower=True, check_finite=False)
        alpha = cho_solve((L, True), values, check_finite=False)
        inverse, failed = lapack.dpotri(L, lower=1)
        if failed:
            raise np.linalg.LinAlgError("singular covariance")
        inverse = np.tril(inverse) + np.tril(inverse, -1).T
        b = len(columns)
        log_det = 2.0 * float(np.log(np.diagonal(L)).sum())
        total += 0.5 * (b * (len(rows) * _LOG_2_PI + log_det) + float((values * alpha).sum()))
        gradient = 0.5 * (b * inverse - alpha @ alpha.T)
        if whole:
            dC += gradient
        else:
            dC[np.ix_(rows, rows)] += gradient
    return total, chain(kernel, p, K, dC)


def patterns(z: FloatArray) -> list[tuple[np.ndarray, np.ndarray]]:
    """Observed rows and the columns (data sets) that have just these, for every such set."""
    seen = ~np.isnan(z)
    packed = np.packbits(seen, axis=0)
    _, first, which = np.unique(packed, axis=1, return_index=True, return_inverse=True)
    which = np.ravel(which)
    return [
        (np.flatnonzero(seen[:, column]), np.flatnonzero(which == i))
        for i, column in enumerate(first)
        if seen[:, column].any()
    ]


def _linear(p: Parameters, z: FloatArray) -> tuple[float, Parameters]:
    """``objective`` of the linear kernel with Q x Q solves.

    C^-1 = S^-1 - S^-1 X A^-1 X' S^-1, A = I + X' S^-1 X, S the noise; |C| = |A| |S|.
    """
    X, noise = p.places, p.noise
    total, dX, d_noise = 0.0, np.zeros_like(X), np.zeros(len(X))
    for rows, columns in patterns(z):
        values, x, s = z[np.ix_(rows, columns)], X[rows], noise[rows]
        scaled = x / s[:, None]
        A = np.eye(x.shape[1]) + scaled.T @ x
        L = cholesky(A, lower=True, check_finite=False)
        solved = cho_solve((L, True), scaled.T, check_finite=False).T  # C^-1 X
        alpha = values / s[:, None] - solved @ (x.T @ (values / s[:, None]))
        b = len(columns)
        log_det = 2.0 * float(np.log(np.diagonal(L)).sum()) + float(np.log(s).sum())
        total += 0.5 * (b * (len(rows) * _LOG_2_PI + log_det) + float((values * alpha).sum()))
        dX[rows] += b * solved - alpha @ (alpha.T @ x)
        inverse = 1.0 / s - (solved * scaled).sum(axis=1)  # the diagonal of C^-1
        d_noise[rows] += 0.5 * s * (b * inverse - (alpha**2).sum(axis=1))
    return total, Parameters(dX, d_noise, np.zeros_like(p.log_lengths), np.zeros(1))
