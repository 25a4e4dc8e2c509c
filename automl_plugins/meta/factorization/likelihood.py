"""Negative log likelihood of observations of some pipelines on some data sets, and its gradient.

    L = sum over d of 1/2 [ n_d log 2 pi + log |C_d| + z_d' C_d^-1 z_d ]   (Fusi eq. 5)

with ``C_d`` the rows and columns of C of the pipelines observed on d. (The paper prints n_d/2
before the determinant; the Gaussian has 1/2.) Data sets that miss the same pipelines share one
factorisation, so where nothing is missing there is one for all of them.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import cho_solve, cholesky, lapack

from .kernels import FloatArray, Kernel, Parameters, chain, covariance

_LOG_2_PI = float(np.log(2.0 * np.pi))


def objective(kernel: Kernel, p: Parameters, z: FloatArray) -> tuple[float, Parameters]:
    """L and its gradient.

    Args:
        kernel: The kernel.
        p: Parameters of the pipelines (n).
        z: Centred losses (n, b) of the pipelines on b data sets; NaN where there is none.

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
