"""Processes over latent places of pipelines: covariance, likelihood, and a new data set.

Notation of this package::

    N, D   pipelines and data sets
    x_n    latent place of pipeline n (Q,), X all of them (N, Q)
    k      kernel of the processes f_d over places, the same for all data sets
    K      its matrix, C = K + diag(noise) that of the observations

The kernels are "se", ``amplitude exp(-|x - x'|^2 / 2)`` with every dimension divided by its length
scale first (SE-ARD), and "linear", the inner product, which makes the model probabilistic PCA.

Losses of data set d are ``y = shift_d + stretch_d z``. For a new one both are unknown. They have
the posterior of a Gaussian model: ``z`` is that of the factorisation, ``log stretch`` and then
``shift`` are distributed as among the known data sets, with a wide alternative in case that the
new losses are in another unit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy.linalg import cho_solve, cholesky, lapack, solve_triangular
from scipy.special import softmax

from automl_plugins.arrays import FloatArray, IntArray

AnyFloats = npt.NDArray[np.floating]
Kernel = Literal["se", "linear"]
ScalingName = Literal["regret", "standardised"]
Scaling = ScalingName | None


OF_PIPELINES = ("places", "log_noise")  # the parameters of which each pipeline has its own


@dataclass(frozen=True)
class Parameters:
    """The trained parameters, all unconstrained."""

    places: FloatArray  # X (N, Q)
    log_noise: FloatArray  # log variance of an observation that the processes do not explain (N,)
    log_lengths: FloatArray  # log length scale of each latent dimension (Q,)
    log_amplitude: FloatArray  # log variance of the processes (1,)

    @property
    def noise(self) -> FloatArray:
        """Variances (N,)."""
        return np.asarray(np.exp(self.log_noise))

    @property
    def amplitude(self) -> float:
        """Variance of the processes."""
        return float(np.exp(self.log_amplitude[0]))

    @property
    def embedding(self) -> FloatArray:
        """X with dimensions in units of their length scales (N, Q)."""
        return np.asarray(self.places / np.exp(self.log_lengths))

    def of(self, rows: IntArray) -> Parameters:
        """The parameters of some pipelines."""
        return replace(self, **{name: getattr(self, name)[rows] for name in OF_PIPELINES})


def covariance(kernel: Kernel, p: Parameters, others: FloatArray | None = None) -> FloatArray:
    """K between ``p.places`` (n, Q) and other places (m, Q), by default the same ones."""
    lengths = 1.0 if kernel == "linear" else np.exp(p.log_lengths)
    a = p.places / lengths
    b = a if others is None else others / lengths
    return np.asarray(_compare(kernel, a, b, _halves(a), p.amplitude), dtype=np.float64)


def _compare(
    kernel: Kernel, a: AnyFloats, b: AnyFloats, halves: AnyFloats, amplitude: float
) -> AnyFloats:
    """Kernel (n, m) of places a (n, Q), with their ``_halves``, and b (m, Q), in length scales."""
    k: AnyFloats = a @ b.T
    if kernel == "se":
        k -= halves[:, None]
        k -= _halves(b)
        # Minus half a squared distance: rounding may make it positive.
        np.minimum(k, 0.0, out=k)
        np.exp(k, out=k)
        k *= amplitude
    return k


def _halves(a: AnyFloats) -> AnyFloats:
    """Half the squared norms of places."""
    return np.asarray(0.5 * np.einsum("ij,ij->i", a, a))


def variance(kernel: Kernel, p: Parameters) -> FloatArray:
    """The diagonal of K (n,)."""
    if kernel == "linear":
        return np.asarray((p.places**2).sum(axis=1))
    return np.full(len(p.places), p.amplitude)


def _chain(p: Parameters, K: FloatArray, dK: FloatArray) -> Parameters:
    """Gradient of the parameters of SE from the gradient (n, n) of C, which is symmetric."""
    noise = p.noise * np.diagonal(dK)
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

        L = sum over d of 1/2 [ n_d log 2 pi + log |C_d| + z_d' C_d^-1 z_d ]   (Fusi eq. 6)

    with ``C_d`` the rows and columns of C of the pipelines observed on d. (The paper prints n_d/2
    before the determinant; the Gaussian has 1/2.) Data sets that miss the same pipelines share
    one factorisation.
    """
    if kernel == "linear":
        return _linear(p, z)
    K = covariance(kernel, p)
    C = K + np.diag(p.noise)
    total, dC = 0.0, np.zeros_like(C)
    for rows, columns in patterns(z):
        values = z[np.ix_(rows, columns)]
        # Indexing would copy C, the largest array here, where nothing is missing.
        whole = len(rows) == len(z)
        L = cholesky(C if whole else C[np.ix_(rows, rows)], lower=True, check_finite=False)
        alpha = cho_solve((L, True), values, check_finite=False)  # C^-1 z (n_d, b)
        inverse, _ = lapack.dpotri(L, lower=1)  # the factor of a singular C was refused
        # LAPACK fills the lower triangle only.
        inverse = np.tril(inverse) + np.tril(inverse, -1).T
        b = len(columns)
        log_det = 2.0 * float(np.log(np.diagonal(L)).sum())
        total += 0.5 * (b * (len(rows) * _LOG_2_PI + log_det) + float((values * alpha).sum()))
        gradient = 0.5 * (b * inverse - alpha @ alpha.T)
        if whole:
            dC += gradient
        else:
            dC[np.ix_(rows, rows)] += gradient
    return total, _chain(p, K, dC)


def patterns(z: FloatArray) -> list[tuple[np.ndarray, np.ndarray]]:
    """Observed rows and the columns (data sets) that have just these, for every such set."""
    seen = ~np.isnan(z)
    # Eight pipelines in a byte: there is less to sort.
    packed = np.packbits(seen, axis=0)
    _, first, which = np.unique(packed, axis=1, return_index=True, return_inverse=True)
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
        dX[rows] += b * solved - alpha @ (alpha.T @ x)  # no row comes twice in a pattern
        inverse = 1.0 / s - (solved * scaled).sum(axis=1)  # the diagonal of C^-1
        d_noise[rows] += 0.5 * s * (b * inverse - (alpha**2).sum(axis=1))
    return total, Parameters(dX, d_noise, np.zeros_like(p.log_lengths), np.zeros(1))


LARGEST = 1e300  # losses beyond it count as it: differences of larger ones are not representable

_QUANTILES = 15  # stretches of known data sets that are tried for a new one
_WIDE = 13  # other stretches, around the deviation of its losses
_ROUNDING = 1e-9  # deviation of equal losses, as a share of the largest
_LEAST_SIZE = 1e-300  # deviation of which a fifth is not 0 yet
_FOREIGN = -10.0  # log prior odds of losses in another unit
_LEAST = 0.01  # deviation of the shift among data sets, in their median stretch
_VAGUE = 10.0  # deviation of the shift then, in stretches


def scales(y: FloatArray, scaling: Scaling) -> tuple[FloatArray, FloatArray]:
    """Shift (D,) and stretch (D,) of the losses (N, D; NaN = none) of each data set.

    The stretch of equal losses, or of none, is 1.
    """
    d = y.shape[1]
    shift, stretch = np.zeros(d), np.ones(d)
    if scaling is None:
        return shift, stretch
    for column in range(d):
        known = y[~np.isnan(y[:, column]), column].astype(np.float64)
        if not len(known):
            continue
        if scaling == "regret":
            shift[column], spread = float(known.min()), float(np.ptp(known))
        else:
            shift[column], spread = float(known.mean()), _deviation(known)
        # Losses that differ by rounding only are equal ones.
        # A stretch below 1e-312, of denormal losses, would give a posterior of NaN.
        if spread > 1e-12 * max(float(np.abs(known).max()), 1e-300):
            stretch[column] = spread
    return shift, stretch


@dataclass(frozen=True)
class ScalePrior:
    """The distribution of shift and stretch among data sets."""

    # Stretches that are tried, all equally likely (G,); none if all data sets have one scale.
    log_stretch: FloatArray
    line: FloatArray  # intercept and slope of the shift in ``log stretch`` (2,)
    deviation: float  # standard deviation of the shift around that line

    @classmethod
    def learn(cls, shift: FloatArray, stretch: FloatArray, scaling: Scaling) -> ScalePrior:
        """The distribution among known data sets (D,)."""
        if scaling is None:
            return cls(np.zeros(0), np.zeros(2), 0.0)
        logs = np.log(stretch)
        grid = np.unique(np.quantile(logs, np.linspace(0.01, 0.99, _QUANTILES)))
        design = np.column_stack([np.ones(len(logs)), logs])
        unit = float(np.exp(np.median(logs)))  # squares of losses may not be representable
        line = np.linalg.lstsq(design, shift / unit, rcond=None)[0]
        residual = shift / unit - design @ line
        # One data set has no deviation.
        return cls(grid, line * unit, max(_deviation(residual), _LEAST) * unit)

    def infer(self, y: FloatArray, mean: FloatArray, L: FloatArray) -> tuple[float, float]:
        """Posterior mean of the shift and geometric mean of the stretch of a new data set.

        Given the stretch b, ``y ~ N(shift + b mean, b^2 C)`` is linear in the shift, which is
        integrated out; b is summed out on a grid. ``mean`` (n,) and the Cholesky factor ``L`` of C
        are those of its losses ``y`` (n,) on the common scale.
        """
        n = len(y)
        if not len(self.log_stretch) or not n:
            return 0.0, 1.0
        white = solve_triangular(
            L, np.column_stack([np.ones(n), mean, y]), lower=True, check_finite=False
        )
        one, m, w = white.T
        near = self.log_stretch
        size, largest = _deviation(y), float(np.abs(y).max())
        if size <= _ROUNDING * largest:  # equal losses tell no unit but that of their size
            size = largest
        # From 0.2 to 55 deviations: of few pipelines, or of like ones, it tells little of all.
        log_size = np.log(max(size, _LEAST_SIZE))
        far = log_size + np.linspace(-1.5, 4.0, _WIDE) if size else np.zeros(0)
        log_b = np.concatenate([near, far])
        b = np.exp(log_b)
        # In units of b: losses w, centre and deviation of the shift, and the shift itself.
        losses = w[:, None] / b - m[:, None]
        centre = np.append(self.line[0] + self.line[1] * near, np.full(len(far), y.mean())) / b
        deviation = np.append(self.deviation / b[: len(near)], np.full(len(far), _VAGUE))
        # Equal within each grid, the two of them in the odds of ``_FOREIGN``.
        prior = np.repeat([-np.log(len(near)), _FOREIGN - np.log(_WIDE)], [len(near), len(far)])
        precision = float(one @ one) + deviation**-2.0
        shift = (one @ losses + centre * deviation**-2.0) / precision
        with np.errstate(over="ignore"):  # a stretch that is wrong by 150 digits: impossible
            quadratic = ((losses - np.outer(one, shift)) ** 2).sum(axis=0)
            quadratic += ((shift - centre) / deviation) ** 2
            # Log posterior of b, but for a constant, with the shift integrated out.
            log = prior - n * log_b - 0.5 * (quadratic + np.log(precision * deviation**2))
        weights = softmax(log)
        return float(weights @ (shift * b)), float(np.exp(weights @ log_b))


def _deviation(values: FloatArray) -> float:
    """Standard deviation of values (n,) whose squares may not be representable."""
    exponent = np.frexp(np.abs(values).max())[1]  # a power of two rounds nothing
    return float(np.ldexp(np.ldexp(values, -exponent).std(), exponent))


_GROWTH = 256  # observations that are made room for at once
_SINGLE = 8192  # pipelines from which the columns are kept in single precision


class Conditioned:
    """The processes of a new data set, conditioned on losses of some pipelines.

    Each costs one column of the kernel and one row of the Cholesky factor, milliseconds for tens
    of thousands of pipelines.

    Args:
        kernel: The kernel of a fitted factorisation.
        parameters: What it was trained to.
        mean: Mean scaled loss of each pipeline (N,).
        scale_prior: How data sets are scaled.

    Attributes:
        rows: Pipelines observed so far, in order, each once.

    Example::

        new = model.conditioned()
        new.observe(0)
        mean, std = new.posterior(np.array([0.2]))
    """

    def __init__(
        self, kernel: Kernel, parameters: Parameters, mean: FloatArray, scale_prior: ScalePrior
    ) -> None:
        self.rows: list[int] = []
        self._kernel, self._amplitude = kernel, parameters.amplitude
        self._mean, self._scale_prior = mean, scale_prior
        n = len(mean)
        self._kind: Any = np.float32 if n >= _SINGLE else np.float64
        places = parameters.places if kernel == "linear" else parameters.embedding
        self._places: AnyFloats = places.astype(self._kind)
        self._halves = _halves(self._places)
        self._V = np.empty((0, n), dtype=self._kind)  # L^-1 K(rows, all)
        self._L = np.zeros((0, 0))
        self._explained = np.zeros(n)
        self._prior = variance(kernel, parameters)
        self._noise = parameters.noise

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
        place = self._places[[row]]
        k = _compare(self._kernel, self._places, place, self._halves, self._amplitude)[:, 0]
        known = self._V[:t, row].copy()  # L^-1 K(rows, row)
        # What is left of the variance of a near-copy may round to less than nothing.
        pivot = np.sqrt(max(self._prior[row] - known @ known, 0.0) + self._noise[row])
        self._L[t, :t] = known
        self._L[t, t] = pivot
        k -= known @ self._V[:t]
        k /= self._kind(pivot)
        self._V[t] = k
        self._explained += k * k
        self.rows.append(row)

    def posterior(self, losses: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean and deviation (N,) of all losses, noise included, given those (n,) of ``rows``."""
        mean, std, shift, stretch = self.scaled_posterior(losses)
        return shift + stretch * mean, stretch * std

    def scaled_posterior(self, losses: FloatArray) -> tuple[FloatArray, FloatArray, float, float]:
        """``posterior`` on the common scale, and the shift and stretch of the new data set.

        ``mu_m = k' C^-1 z`` and ``v_m = k_mm + s^2 - k' C^-1 k`` (Fusi eq. 9), around the
        means of the pipelines.
        """
        t = len(self.rows)
        known, L = self._mean[self.rows], self._L[:t, :t]
        shift, stretch = self._scale_prior.infer(losses, known, L)
        z = (losses - shift) / stretch - known
        weights = solve_triangular(L, z, lower=True, check_finite=False)
        mean = self._mean + weights.astype(self._kind) @ self._V[:t]
        return mean, self.deviation_after(()), shift, stretch

    def deviation_after(self, rows: Sequence[int]) -> FloatArray:
        """Deviation (N,) on the common scale if further rows, of any loss, were observed."""
        observed, explained = list(self.rows), self._explained.copy()
        for row in rows:
            self.observe(row)
        std = np.sqrt(np.maximum(self._prior - self._explained, 0.0) + self._noise)
        # What was written beyond ``rows`` is overwritten by the next pipeline observed.
        self.rows, self._explained = observed, explained
        return np.asarray(std)
