"""Gaussian processes with a stationary kernel: likelihood, shared kernels, averages of kernels.

"RW" is Rasmussen and Williams, "Gaussian Processes for Machine Learning" (MIT Press, 2006),
"thesis" van Hoof, "Automated machine learning with gradient boosting and meta-learning" (TU
Eindhoven, 2018). Notation of this module::

    X       inputs without NaN, shape (n, d), with activity flags
    Z       standardised losses of T tasks on the same inputs, shape (n, T)
    scales  one length scale for each input (ARD), shape (d,)
    theta   logarithms of constant, length scales and noise variance, shape (d + 2,)
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from math import log, pi
from typing import Any, Literal, Self, get_args

import numpy as np
from scipy.linalg import LinAlgError, solve_triangular
from scipy.linalg.blas import dtrmm
from scipy.linalg.lapack import dpotrf, dpotri, dpotrs, dtrtri, dtrtrs
from scipy.optimize import minimize
from scipy.spatial.distance import cdist
from sklearn.base import BaseEstimator
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel
from sklearn.utils.validation import check_is_fitted

from automl_plugins._arguments import check_integer, one_of
from automl_plugins.surrogates.base import (
    FloatArray,
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
_OWN_SCALE_BOUNDS = (0.01, 100.0)  # thesis 4.1.2
_SHARED_SCALE_BOUNDS = (0.05, 100.0)  # inputs lie in [0, 1]; a grid of 20 values is resolved
# The lower bound keeps K positive definite in float64: its condition number is at most
# n * 1000 / 1e-6, duplicates included. The upper one explains all of the variance as noise.
_NOISE_BOUNDS = (1e-6, 1.0)
_FIRST_NOISE = 0.01
_MAX_STEPS = 60  # of the ascent that fits a kernel to many tasks

_LENGTHS = (0.125, 0.25, 0.5, 1.0, 2.0)  # of inputs in [0, 1]
_NOISES = (1e-3, 5e-2)
_FEW_INPUTS = 24  # with more, distances are matrix products
_NEGLIGIBLE = 1e-4  # weight of a kernel that is not asked
_OWN_NOISES = (1e-5, 1e-2)  # where losses may be exact, as those of a simulation are
# Prior deviations of a log length scale from that shared by all inputs, and of the log constant.
_LOG_SCALE_STD, _LOG_CONSTANT_STD = 3.0, 2.0
_RELEVANCE_ROWS = 64  # the cost of an ascent grows with their cube
_RELEVANCE_STEPS = 25
_OWN_CONSTANT_BOUNDS = (0.01, 100.0)  # losses are standardised
_CHUNK = 256  # rows predicted at a time, whose correlations fit into the processor's cache


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
    squares = 5.0 * squares
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
    L = _factor(signal, noise)
    alpha, _ = dpotrs(L, Z, lower=1)
    log_det = 2.0 * np.log(np.diag(L)).sum()
    value = -0.5 * np.vdot(Z, alpha) - 0.5 * n_tasks * log_det - 0.5 * n_tasks * n * log(2.0 * pi)
    # RW eq. 5.9 summed over the tasks: tr(W dK/dtheta) / 2, W = sum_t alpha_t alpha_t' - T K^-1.
    lower, _ = dpotri(L, lower=1, overwrite_c=1)  # the upper triangle stays 0
    inverse = lower + lower.T
    inverse.flat[:: n + 1] *= 0.5
    W = alpha @ alpha.T - n_tasks * inverse
    # W_ij dK_ij / dlog(l_k) = M_ij (u_ik - u_jk)^2, and M is symmetric.
    M = W * slope
    d_scales = M.sum(axis=1) @ U**2 - np.einsum("nd,nd->d", U, M @ U)
    d_constant, d_noise = 0.5 * np.vdot(W, signal), 0.5 * noise * np.trace(W)
    return float(value), np.concatenate([[d_constant], d_scales, [d_noise]])


def _factor(K: FloatArray, noise: float) -> FloatArray:
    """The lower Cholesky factor (n, n) of ``K + noise I``, zeros above the diagonal.

    The bare LAPACK routine: at these sizes scipy's checks would take longer.

    Raises:
        LinAlgError: If the sum is not positive definite.
    """
    noisy = K.T.copy(order="F")  # of a symmetric matrix the copy that LAPACK may overwrite
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
    bounds = np.log([_CONSTANT_BOUNDS, *[_SHARED_SCALE_BOUNDS] * (len(start) - 2), _NOISE_BOUNDS])
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


@dataclass(frozen=True)
class Candidate:
    """A kernel with length scales (d,); ``variance`` and ``noise`` are of standardised losses.

    ``log_prior`` is the logarithm of its prior weight, up to a constant.
    """

    scales: FloatArray
    noise: float
    log_prior: float = 0.0
    variance: float = 1.0


def uninformed_kernels(d: int, noises: Sequence[float] = _NOISES) -> list[Candidate]:
    """Kernels for a task of which nothing is known: one length scale for all inputs."""
    return [Candidate(np.full(d, length), noise) for length in _LENGTHS for noise in noises]


def fit_relevances(
    inputs: FloatArray, z: FloatArray, start: Candidate, kernel: Kernel
) -> Candidate:
    """The kernel with a length scale of its own for each input that is most likely a posteriori.

    An ascent from ``start``, whose length scales are the prior means (in logarithms; deviation 3,
    2 for the constant, whose prior mean is 1).
    What has no influence gets a long length scale, so that no evaluations are spent on it.

    Args:
        inputs: Complete inputs (n, d).
        z: Standardised losses (n,), not all alike.
        start: Kernel to start from.
        kernel: Its form.

    Returns:
        A candidate whose log prior is that of its length scales and its constant.
    """
    first = np.concatenate([[0.0], np.log(start.scales), [log(start.noise)]])
    bounds = np.log(
        [_OWN_CONSTANT_BOUNDS, *[_SHARED_SCALE_BOUNDS] * len(start.scales), _NOISE_BOUNDS]
    )
    precision = np.full(len(first), _LOG_SCALE_STD**-2.0)
    precision[0], precision[-1] = _LOG_CONSTANT_STD**-2.0, 0.0

    def loss(theta: FloatArray) -> tuple[float, FloatArray]:
        value, slope = log_likelihood(theta, inputs, z[:, None], kernel)
        step = theta - first
        return 0.5 * float(precision @ step**2) - value, precision * step - slope

    options = {"maxiter": _RELEVANCE_STEPS, "maxfun": _RELEVANCE_STEPS + 2}
    end = minimize(loss, first, jac=True, bounds=bounds, method="L-BFGS-B", options=options).x
    log_prior = -0.5 * float(precision @ (end - first) ** 2)
    variance = float(np.exp(end[0]))
    return Candidate(np.exp(end[1:-1]), float(np.exp(end[-1])), log_prior, variance)


class EvidenceAverage:
    """Average of Gaussian processes on standardised losses, weighted by prior and evidence.

    The standard deviation is that of the mixture, without noise. Without observations it is the
    prior: mean 0, deviation 1. ``evidence_`` are the posterior weights of the candidates, of which
    there is at least one.
    """

    def __init__(self, candidates: Sequence[Candidate], kernel: Kernel) -> None:
        self.candidates = tuple(candidates)
        self.kernel = kernel

    def fit(self, inputs: FloatArray, y: FloatArray) -> EvidenceAverage:
        """Condition every candidate on losses ``y`` (n,) of complete ``inputs`` (n, d), n >= 0."""
        self.z_, self.centre_, self.scale_ = standardise(y) if len(y) else (y, 0.0, 1.0)
        self.inputs_, self.losses_ = inputs, y
        self.factors_: list[FloatArray] = []
        self._log_weights: list[float] = []
        correlations = self._correlations(inputs, self.candidates)
        for candidate in self.candidates:
            self._condition(candidate, correlations[candidate.scales.tobytes()])
        return self

    def add(self, candidate: Candidate) -> None:
        """Condition a further candidate on the same losses."""
        self.candidates = (*self.candidates, candidate)
        correlations = self._correlations(self.inputs_, [candidate])
        self._condition(candidate, correlations[candidate.scales.tobytes()])

    def _condition(self, candidate: Candidate, correlations: FloatArray) -> None:
        z, fit = self.z_, 0.0
        L = correlations
        if len(z):
            L = _factor(candidate.variance * correlations, candidate.noise)
            w, _ = dtrtrs(L, z, lower=1)
            # RW eq. 2.30 without the constant; constant losses tell the kernels nothing.
            fit = -0.5 * (w @ w) - np.log(np.diag(L)).sum() if z.any() else 0.0
        self.factors_.append(L)
        self._log_weights.append(fit + candidate.log_prior)
        weights = np.exp(np.array(self._log_weights) - max(self._log_weights))
        self.evidence_ = weights / weights.sum()
        self._asked: list[_Solved] | None = None

    def held_out(self) -> FloatArray:
        """Mean (n,) at each row, conditioned on all others (RW eq. 5.12).

        The weights of the candidates are those of all rows.
        """
        z, mean = self.z_, np.zeros(len(self.z_))
        for solved in self._solved():
            # The inverse of K is L^-T L^-1.
            diagonal = np.einsum("nm,nm->m", solved.inverse, solved.inverse)
            mean += solved.weight * (z - (solved.whitened @ solved.inverse) / diagonal)
        return np.asarray(self.centre_ + self.scale_ * mean)

    def predict(self, inputs: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean and standard deviation (m,) in the units of the losses."""
        mean, std = np.empty(len(inputs)), np.empty(len(inputs))
        for start in range(0, len(inputs), _CHUNK):
            rows = slice(start, start + _CHUNK)
            mean[rows], std[rows] = self._predict(inputs[rows])
        return self.centre_ + self.scale_ * mean, self.scale_ * std

    def _predict(self, inputs: FloatArray) -> tuple[FloatArray, FloatArray]:
        mean, square = np.zeros(len(inputs)), np.zeros(len(inputs))
        asked = self._solved()
        correlations = self._correlations(inputs, [solved.candidate for solved in asked])
        for solved in asked:
            variance = solved.candidate.variance
            m, v = np.zeros(len(inputs)), np.full(len(inputs), variance)
            if len(self.z_):
                C = correlations[solved.candidate.scales.tobytes()]
                V = dtrmm(1.0, solved.inverse, C.T, side=1, trans_a=1, lower=1)  # (m, n)
                m = variance * (V @ solved.whitened)  # RW 2.25, 2.26
                v -= variance**2 * np.einsum("mn,mn->m", V, V)
            mean += solved.weight * m
            square += solved.weight * (np.maximum(v, 0.0) + m * m)
        return mean, np.sqrt(np.maximum(square - mean * mean, 0.0))

    def _solved(self) -> list[_Solved]:
        """What is needed of the candidates that are asked, which not all are."""
        if self._asked is None:
            asked = np.flatnonzero(self.evidence_ >= _NEGLIGIBLE)
            weights = self.evidence_[asked] / self.evidence_[asked].sum()
            self._asked = [
                _Solved.of(self.candidates[i], float(weight), self.factors_[i], self.z_)
                for i, weight in zip(asked, weights, strict=True)
            ]
        return self._asked

    def _correlations(
        self, inputs: FloatArray, candidates: Sequence[Candidate]
    ) -> dict[bytes, FloatArray]:
        """Correlations (n, m) of the rows learnt from with ``inputs`` (m, d) by length scales.

        Candidates that differ in their noise only share them.
        """
        distinct = {candidate.scales.tobytes(): candidate.scales for candidate in candidates}
        shared: FloatArray | None = None
        found = {}
        for key, scales in distinct.items():
            if len(scales) and (scales == scales[0]).all():
                if shared is None:
                    shared = squared_distances(self.inputs_, inputs)
                found[key] = correlation_of(shared / scales[0] ** 2, self.kernel)
            else:
                found[key] = correlation(self.inputs_, inputs, scales, self.kernel)
        return found


@dataclass(frozen=True)
class _Solved:
    """A candidate conditioned on losses z: L L' = K, so that predictions are matrix products.

    A product with the inverse of L takes a third of the time of solving with L. The noise bounds
    the condition number of L at 1e6, and the errors with it.
    """

    candidate: Candidate
    weight: float
    inverse: FloatArray  # L^-1 (n, n)
    whitened: FloatArray  # L^-1 z (n,)

    @classmethod
    def of(cls, candidate: Candidate, weight: float, L: FloatArray, z: FloatArray) -> _Solved:
        inverse = dtrtri(L, lower=1)[0] if len(z) else L
        return cls(candidate, weight, inverse, inverse @ z)


@dataclass(eq=False, repr=False, kw_only=True)
class AveragedProcess(BaseEstimator):  # type: ignore[misc]
    """Gaussian process on standardised losses, averaged over kernels by their evidence.

    The kernels have one length scale for all inputs, of five sizes, and little noise or some; and
    one has a length scale for each, see ``fit_relevances``. With few rows none of them is certain,
    and the average says so. Missing values are completed as in ``GaussianProcess``. A fit takes a
    fraction of the time of a search for hyperparameters from several starts.

    Args:
        kernel: ``"matern52"`` or ``"se"``.
        max_rows: Largest number of rows to learn from, at least 2; see ``informative_rows``.

    Attributes:
        process_: The fitted average.
        rows_: Positions of the rows learnt from.
        flagged_: Columns with an activity flag, ascending.

    Example::

        mean, std = AveragedProcess().fit(X, y).predict(X_new)
    """

    kernel: Kernel = "matern52"
    max_rows: int = 150

    def fit(self, X: FloatArray, y: FloatArray) -> Self:
        """Learn from features ``X`` (n, f) and losses ``y`` (n,)."""
        one_of("kernel", self.kernel, KERNELS)
        check_integer("max_rows", self.max_rows, 2)
        X, y = as_training(X, y)
        self.n_features_in_, self.n_rows_ = X.shape[1], len(y)
        self.rows_ = informative_rows(y, self.max_rows)
        X, y = X[self.rows_], y[self.rows_]
        self.flagged_ = np.flatnonzero(np.isnan(X).any(axis=0))
        inputs = complete_inputs(X, self.flagged_)
        candidates = uninformed_kernels(inputs.shape[1], _OWN_NOISES)
        self.process_ = EvidenceAverage(candidates, self.kernel).fit(inputs, y)
        if y.min() < y.max():
            few = informative_rows(y, _RELEVANCE_ROWS)
            start = candidates[int(self.process_.evidence_.argmax())]
            z = standardise(y[few])[0]
            self.process_.add(fit_relevances(inputs[few], z, start, self.kernel))
        return self

    def predict(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean and standard deviation (m,) of the losses at features ``X`` (m, f)."""
        if not hasattr(self, "process_"):  # asked so often that scikit-learn's own check is dear
            check_is_fitted(self, "process_")
        return self.process_.predict(self._inputs(X))

    def held_out(self) -> FloatArray:
        """Mean (n,) at each row, conditioned on the others; NaN for rows not learnt from."""
        check_is_fitted(self, "process_")
        mean = np.full(self.n_rows_, np.nan)
        mean[self.rows_] = self.process_.held_out()
        return mean

    def beside(self, pending: FloatArray) -> Self:
        """A copy for which evaluations under way (p, f) came out as predicted: no doubt there.

        The kriging believer of Ginsbourger et al. 2010.
        """
        seen, known = copy.copy(self), self.process_
        inputs = self._inputs(pending)
        believed = np.concatenate([known.losses_, known.predict(inputs)[0]])
        seen.process_ = EvidenceAverage(known.candidates, self.kernel).fit(
            np.vstack([known.inputs_, inputs]), believed
        )
        return seen

    def _inputs(self, X: FloatArray) -> FloatArray:
        return complete_inputs(as_features(X, self.n_features_in_), self.flagged_)


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

        All losses count in the standardisation, also those of rows left out.
        """
        check_integer("n_restarts", self.n_restarts, 0)
        check_integer("max_rows", self.max_rows, 2)
        X, y = as_training(X, y)
        z, self.y_centre_, self.y_scale_ = standardise(y)
        self.n_features_in_ = X.shape[1]
        rows = informative_rows(y, self.max_rows)
        self.flagged_ = np.flatnonzero(np.isnan(X[rows]).any(axis=0))
        inputs, z = complete_inputs(X[rows], self.flagged_), z[rows]
        kernel = ConstantKernel(1.0, _CONSTANT_BOUNDS) * Matern(
            np.ones(inputs.shape[1]), _OWN_SCALE_BOUNDS, nu=2.5
        ) + WhiteKernel(_FIRST_NOISE, _NOISE_BOUNDS)
        if z.any():
            starts = [kernel.theta, *self._random_starts(kernel, inputs)]
            theta = _most_likely([(inputs, z[:, None])], "matern52", starts, kernel.bounds)
            kernel = kernel.clone_with_theta(theta)
        # The search above replaces that of scikit-learn, which warns at each bound that it meets.
        # It draws nothing; the seed keeps it from holding on to numpy's global generator.
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
        signal = model.kernel_.k1  # without the noise
        K_query = signal(inputs, model.X_train_)  # (m, n)
        mean = K_query @ model.alpha_  # RW eq. 2.25
        v = solve_triangular(model.L_, K_query.T, lower=True, check_finite=False)
        variance = signal.diag(inputs) - np.einsum("nm,nm->m", v, v)  # RW eq. 2.26
        # 0 is for rounding at a training row with little noise.
        std = np.sqrt(np.maximum(variance, 0.0))
        return self.y_centre_ + self.y_scale_ * mean, self.y_scale_ * std

    def _random_starts(self, kernel: Any, inputs: FloatArray) -> FloatArray:
        low, high = kernel.bounds.T
        # From the outer quarters of the intervals the likelihood is flat and no search gets away.
        starts = np.random.default_rng(self.random_state).uniform(
            0.75 * low + 0.25 * high, 0.25 * low + 0.75 * high, (self.n_restarts, len(low))
        )
        # A column that is constant so far gives no slope: its length scale stays at 1.
        starts[:, 1:-1][:, np.ptp(inputs, axis=0) == 0] = 0.0
        return np.asarray(starts)
