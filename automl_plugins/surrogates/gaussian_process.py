"""A Gaussian process with a stationary kernel; likelihood and kernels, which other models share.

"RW" is Rasmussen and Williams, "Gaussian Processes for Machine Learning" (MIT Press, 2006),
"thesis" van Hoof, "Automated machine learning with gradient boosting and meta-learning" (TU
Eindhoven, 2018). Notation of this module::

    X       inputs without NaN, shape (n, d), with activity flags
    Z       standardised losses of T tasks on the same inputs, shape (n, T)
    scales  one length scale for each input (ARD), shape (d,)
    theta   logarithms of constant, length scales and noise variance, shape (d + 2,)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log, pi
from typing import Literal, Self, get_args

import numpy as np
from scipy.linalg import LinAlgError, solve_triangular
from scipy.linalg.lapack import dpotrf, dpotri, dpotrs
from scipy.optimize import minimize
from scipy.spatial.distance import cdist
from sklearn.base import BaseEstimator
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel
from sklearn.utils.validation import check_is_fitted

from automl_plugins._arguments import check_integer
from automl_plugins.arrays import FloatArray
from automl_plugins.surrogates.base import (
    Seed,
    as_features,
    as_training,
    complete_inputs,
    informative_rows,
    standardise,
)

Kernel = Literal["matern52", "se"]
KERNELS: tuple[Kernel, ...] = get_args(Kernel)

_CONSTANT_BOUNDS = (0.01, 1000.0)  # thesis 4.1.2
_SCALE_BOUNDS = (0.01, 100.0)  # thesis 4.1.2
SHARED_SCALE_BOUNDS = (0.05, 100.0)  # inputs lie in [0, 1]; a grid of 20 values is resolved
# The lower bound keeps K positive definite in float64: its condition number is at most
# n * 1000 / 1e-6, duplicates included. The upper one explains all of the variance as noise.
NOISE_BOUNDS = (1e-6, 1.0)
_FIRST_NOISE = 0.01  # where the ascent starts
_MAX_STEPS = 60  # of the ascent that fits a kernel to many tasks
# With more inputs distances are matrix products: a third of the time for a hundred inputs.
_FEW_INPUTS = 24


def correlation(A: FloatArray, B: FloatArray, scales: FloatArray, kernel: Kernel) -> FloatArray:
    """Correlations (n, m) of the rows of ``A`` (n, d) and ``B`` (m, d).

    ``"matern52"``: (1 + r + r^2 / 3) exp(-r), r = sqrt(5) u (RW eq. 4.17); ``"se"``:
    exp(-u^2 / 2) (RW eq. 5.1); u the Euclidean distance in units of the length scales.
    """
    return correlation_of(squared_distances(A / scales, B / scales), kernel)


def squared_distances(A: FloatArray, B: FloatArray) -> FloatArray:
    """Squared Euclidean distances (n, m) of the rows of ``A`` (n, d) and ``B`` (m, d)."""
    if A.shape[1] <= _FEW_INPUTS:
        return np.asarray(cdist(A, B, "sqeuclidean"))
    # A matrix product takes a fraction of the time, and its rounding is far below any noise.
    between = -2.0 * (A @ B.T)
    between += np.einsum("nd,nd->n", A, A)[:, None]
    between += np.einsum("md,md->m", B, B)
    return np.maximum(between, 0.0)


def correlation_of(squares: FloatArray, kernel: Kernel) -> FloatArray:
    """Correlations at squared distances in units of the length scales; see ``correlation``."""
    if kernel == "se":
        return np.asarray(np.exp(-0.5 * squares))
    squares = 5.0 * squares  # a new array, on which the steps below work in place
    r = np.sqrt(squares)
    squares /= 3.0
    squares += r
    squares += 1.0
    squares *= np.exp(-r)
    return np.asarray(squares)


def log_likelihood(
    theta: FloatArray, X: FloatArray, Z: FloatArray, kernel: Kernel
) -> tuple[float, FloatArray]:
    """Log marginal likelihood of all tasks together, and its gradient (d + 2,).

    The tasks are independent given ``theta``, so their log likelihoods (RW eq. 2.30) add up, and
    one factorisation serves them all. The derivatives with respect to the length scales are
    summed without an array of shape (n, n, d).
    """
    n, n_tasks = Z.shape
    constant, noise = np.exp(theta[[0, -1]])
    # Centred, so that the last sum below does not cancel for columns far from 0.
    U = (X - X.mean(axis=0)) / np.exp(theta[1:-1])
    squares = squared_distances(U, U)
    if kernel == "se":
        signal = slope = constant * np.exp(-0.5 * squares)
    else:
        r = np.sqrt(5.0 * squares)
        decay = constant * np.exp(-r)
        # (1 + r + r^2 / 3) exp(-r), and minus its derivative by u^2 / 2.
        slope = decay * (1.0 + r)
        signal = slope + decay * squares * (5.0 / 3.0)
        slope *= 5.0 / 3.0
    L = cholesky(signal, noise)
    alpha, _ = dpotrs(L, Z, lower=1)
    log_det = 2.0 * np.log(np.diag(L)).sum()
    value = -0.5 * np.vdot(Z, alpha) - 0.5 * n_tasks * log_det - 0.5 * n_tasks * n * log(2.0 * pi)
    # RW eq. 5.9 summed over the tasks: tr(W dK/dtheta) / 2, W = sum_t alpha_t alpha_t' - T K^-1.
    # L is not needed any more: this writes over it. The upper triangle stays 0.
    lower, _ = dpotri(L, lower=1, overwrite_c=1)
    inverse = lower + lower.T
    inverse.flat[:: n + 1] *= 0.5  # the sum has the diagonal twice
    W = alpha @ alpha.T - n_tasks * inverse
    # W_ij dK_ij / dlog(l_k) = M_ij (u_ik - u_jk)^2, and M is symmetric.
    M = W * slope
    d_scales = M.sum(axis=1) @ U**2 - np.einsum("nd,nd->d", U, M @ U)
    d_constant, d_noise = 0.5 * np.vdot(W, signal), 0.5 * noise * np.trace(W)
    return float(value), np.concatenate([[d_constant], d_scales, [d_noise]])


def cholesky(K: FloatArray, noise: float) -> FloatArray:
    """The lower Cholesky factor (n, n) of ``K + noise I``, zeros above the diagonal.

    The bare LAPACK routine: at these sizes scipy's checks would take longer.

    Raises:
        LinAlgError: If the sum is not positive definite.
    """
    noisy = K.T.copy(order="F")  # K is symmetric; LAPACK may overwrite this copy
    noisy.flat[:: len(K) + 1] += noise
    L, failed = dpotrf(noisy, lower=1, clean=1, overwrite_a=1)
    if failed:
        raise LinAlgError("The covariance of the observations is not positive definite.")
    return np.asarray(L)


def fit_shared(groups: Sequence[tuple[FloatArray, FloatArray]], kernel: Kernel) -> FloatArray:
    """The ``theta`` (d + 2,) under which all groups of tasks are most likely.

    One ascent from constant and length scales 1 and noise 0.01. With tens of tasks the likelihood
    is sharp, and further starts found nothing better.

    Args:
        groups: Inputs (n, d) and losses (n, T) of tasks that share their inputs.
        kernel: Kernel.
    """
    start = np.zeros(groups[0][0].shape[1] + 2)
    start[-1] = log(_FIRST_NOISE)
    bounds = np.log([_CONSTANT_BOUNDS, *[SHARED_SCALE_BOUNDS] * (len(start) - 2), NOISE_BOUNDS])
    return _most_likely(groups, kernel, [start], bounds, maxiter=_MAX_STEPS)


def _most_likely(
    groups: Sequence[tuple[FloatArray, FloatArray]],
    kernel: Kernel,
    starts: Sequence[FloatArray],
    bounds: FloatArray,
    **options: int,
) -> FloatArray:
    """The best end point of the ascents from all ``starts``."""

    def loss(theta: FloatArray) -> tuple[float, FloatArray]:
        parts = [log_likelihood(theta, X, Z, kernel) for X, Z in groups]
        return -sum(value for value, _ in parts), -np.sum([slope for _, slope in parts], axis=0)

    ends = [
        minimize(loss, start, jac=True, bounds=bounds, method="L-BFGS-B", options=options)
        for start in starts
    ]
    return np.asarray(min(ends, key=lambda end: end.fun).x, dtype=np.float64)


@dataclass(eq=False, repr=False, kw_only=True)
class GaussianProcess(BaseEstimator):  # type: ignore[misc]
    """Gaussian process on standardised losses: constant x Matern-5/2 (ARD) + noise.

    Kernel and bounds are those of thesis 4.1.2, with a length scale for each column and the noise
    added. Features should lie in about [0, 1], which is what the bounds of the length scales are
    made for. A missing value becomes 0.5, and each column with missing values in training gets a
    flag beside it, 1 where the value is present; a value missing only in ``predict`` is imputed
    alone. The standard deviation is that of the loss without its noise.

    Hyperparameters maximise the marginal likelihood, starting from all at 1 (noise at 0.01) and
    from ``n_restarts`` random points. With constant losses, or one row, they stay where they
    start: the mean is the constant, and the deviation about 0.1 at the rows and 1 far from them.

    Args:
        n_restarts: Number of further starts (thesis: 2).
        max_rows: Largest number of rows to learn from, at least 2; see ``informative_rows``.
            The cost of a fit grows with its cube.
        random_state: Seed or generator of the starts; None draws fresh entropy.

    Attributes:
        regressor_: scikit-learn's regressor, conditioned on the rows kept.
        flagged_: Columns with an activity flag, ascending.
        y_centre_: Mean of the losses.
        y_scale_: Standard deviation of the losses, 1 for constant ones.

    Example::

        mean, std = GaussianProcess(random_state=1).fit(X, y).predict(X_new)
    """

    n_restarts: int = 2
    max_rows: int = 300
    random_state: Seed = None

    def fit(self, X: FloatArray, y: FloatArray) -> Self:
        """Find the hyperparameters and condition on features ``X`` (n, f) and losses ``y`` (n,).

        All losses count in the standardisation, even if their rows are left out.
        """
        check_integer("n_restarts", self.n_restarts, 0)
        check_integer("max_rows", self.max_rows, 2)
        X, y = as_training(X, y)
        z, self.y_centre_, self.y_scale_ = standardise(y)
        self.n_features_in_ = X.shape[1]
        rows = informative_rows(y, self.max_rows)
        self.flagged_ = np.flatnonzero(np.isnan(X[rows]).any(axis=0))
        inputs, z = complete_inputs(X[rows], self.flagged_), z[rows]
        # Its hyperparameters are in the order of ``theta``: ``log_likelihood`` is of this kernel.
        kernel = ConstantKernel(1.0, _CONSTANT_BOUNDS) * Matern(
            np.ones(inputs.shape[1]), _SCALE_BOUNDS, nu=2.5
        ) + WhiteKernel(_FIRST_NOISE, NOISE_BOUNDS)
        if z.any():  # constant losses would only make the kernel as small as it may be
            starts = [kernel.theta, *self._random_starts(kernel.bounds, inputs)]
            theta = _most_likely([(inputs, z[:, None])], "matern52", starts, kernel.bounds)
            kernel = kernel.clone_with_theta(theta)
        # scikit-learn's own search, replaced above, warns at each bound that it meets. Without it
        # the regressor draws nothing; the seed keeps it away from numpy's global generator. Its
        # noise, alpha, is 0 because the kernel has one.
        self.regressor_ = GaussianProcessRegressor(
            kernel, alpha=0.0, optimizer=None, random_state=0
        )
        self.regressor_.fit(inputs, z)
        return self

    def predict(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean and standard deviation (m,) of the losses at features ``X`` (m, f)."""
        check_is_fitted(self, "regressor_")
        inputs = complete_inputs(as_features(X, self.n_features_in_), self.flagged_)
        model = self.regressor_
        signal = model.kernel_.k1  # without the noise, which scikit-learn's ``predict`` adds
        K_query = signal(inputs, model.X_train_)  # (m, n)
        mean = K_query @ model.alpha_  # RW eq. 2.25
        v = solve_triangular(model.L_, K_query.T, lower=True, check_finite=False)
        variance = signal.diag(inputs) - np.einsum("nm,nm->m", v, v)  # RW eq. 2.26
        # Rounding may leave less than 0 at a training row with little noise.
        std = np.sqrt(np.maximum(variance, 0.0))
        return self.y_centre_ + self.y_scale_ * mean, self.y_scale_ * std

    def _random_starts(self, bounds: FloatArray, inputs: FloatArray) -> FloatArray:
        low, high = bounds.T
        # In the outer quarters of the intervals the likelihood is flat, and a search stays there.
        starts = np.random.default_rng(self.random_state).uniform(
            0.75 * low + 0.25 * high, 0.25 * low + 0.75 * high, (self.n_restarts, len(low))
        )
        # A column that is constant so far gives no slope: its length scale stays at 1.
        starts[:, 1:-1][:, np.ptp(inputs, axis=0) == 0] = 0.0
        return np.asarray(starts)
