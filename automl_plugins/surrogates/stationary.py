"""Gaussian processes with a stationary kernel that several tasks share: pure functions.

"RW" is Rasmussen and Williams, "Gaussian Processes for Machine Learning" (MIT Press, 2006).
Notation of this module::

    X       inputs without NaN, shape (n, d)
    Z       standardised losses of T tasks on the same inputs, shape (n, T)
    scales  one length scale for each input (ARD), shape (d,)
    theta   logarithms of constant, length scales and noise variance, shape (d + 2,)
"""

from __future__ import annotations

from collections.abc import Sequence
from math import log, pi
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt
from scipy.linalg import cho_solve, cholesky
from scipy.optimize import minimize
from scipy.spatial.distance import cdist

from automl_plugins.surrogates.base import FloatArray

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
