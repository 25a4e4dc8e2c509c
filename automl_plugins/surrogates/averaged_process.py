"""Gaussian processes averaged over kernels by their evidence, instead of one that fits best.

"RW" is Rasmussen and Williams, "Gaussian Processes for Machine Learning" (MIT Press, 2006).
Notation of this module, besides that of ``gaussian_process``::

    inputs  complete features, shape (n, d) of the rows learnt from, (m, d) of queries
    z       standardised losses, shape (n,)
    C       correlations by one kernel, shape (n, n), or (n, m) with queries
    L       Cholesky factor of variance C + noise I, shape (n, n)
    w       L^-1 z, shape (n,)
    V       correlations with queries times the inverse of L', shape (m, n)
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from math import log
from typing import Self

import numpy as np
from scipy.linalg.blas import dtrmm
from scipy.linalg.lapack import dtrtri, dtrtrs
from scipy.optimize import minimize
from scipy.special import softmax
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from automl_plugins._arguments import check_integer
from automl_plugins.arrays import FloatArray, IndexArray
from automl_plugins.surrogates.base import (
    as_features,
    as_training,
    complete_inputs,
    informative_rows,
    standardise,
)
from automl_plugins.surrogates.gaussian_process import (
    NOISE_BOUNDS,
    SHARED_SCALE_BOUNDS,
    Kernel,
    cholesky,
    correlation,
    correlation_of,
    log_likelihood,
    squared_distances,
)

_KERNEL: Kernel = "matern52"  # of ``AveragedProcess``
_LENGTHS = (0.125, 0.25, 0.5, 1.0, 2.0)  # of inputs in [0, 1]; the ascent refines the likeliest
_NOISES = (1e-3, 5e-2)
_OWN_NOISES = (1e-5, 1e-2)  # for losses that may be exact, such as those of a simulation
_NOISY = (0.1, 0.3, 1.0)  # start a further ascent if they are likelier than those above
# Evidence below which a kernel takes no part in predictions: it would cost a product of (m, n) and
# (n, n), and move the mean by less than a ten thousandth of its difference from the mean.
_NEGLIGIBLE = 1e-4
_SURPRISE = 2.0  # growth of the misfit beyond which the likely kernels do not explain new rows
# Prior deviations of a log length scale from that shared by all inputs, and of the log constant. A
# narrower one of 1 was better on the tables it was chosen on, and level on the others.
_LOG_SCALE_STD, _LOG_CONSTANT_STD = 3.0, 2.0
_CONSTANT_BOUNDS = (0.01, 100.0)  # losses are standardised
# Rows that relevances are fitted to; the cost of an ascent grows with their cube. With many inputs
# for few rows it takes chance for relevance: the evidence of the rows left out then tells.
_RELEVANCE_ROWS, _MORE_RELEVANCE_ROWS = 64, 128
_FEW_SCALES = 20  # up to so many inputs the ascent gets more rows
_RELEVANCE_STEPS = 25  # of the ascent, each of which costs a factorisation
_CHUNK = 256  # rows predicted at a time, whose correlations fit into the processor's cache


@dataclass(frozen=True)
class Candidate:
    """A kernel with length scales (d,); variance and noise are in units of standardised losses.

    ``log_prior`` is the logarithm of its prior weight, up to a constant.
    """

    scales: FloatArray
    noise: float
    log_prior: float = 0.0
    variance: float = 1.0


def uninformed_kernels(d: int, noises: Sequence[float] = _NOISES) -> list[Candidate]:
    """Kernels for a task without prior knowledge: one length scale for all ``d`` inputs."""
    return [Candidate(np.full(d, length), noise) for length in _LENGTHS for noise in noises]


def fit_relevances(
    inputs: FloatArray, z: FloatArray, start: Candidate, kernel: Kernel
) -> Candidate:
    """The kernel of largest posterior probability with one length scale for each input.

    An ascent from ``start`` finds it. The prior of the logarithms is normal: about the length
    scales of ``start`` with deviation 3, about 0 for the constant with deviation 2. An input
    without influence gets a long length scale, so that no evaluations are spent on it.

    Args:
        inputs: Complete inputs (n, d).
        z: Standardised losses (n,), not all alike.
        start: Kernel to start from.
        kernel: Its form.

    Returns:
        A candidate whose log prior is that of its length scales and its constant.
    """
    first = np.concatenate([[0.0], np.log(start.scales), [log(start.noise)]])
    bounds = np.log([_CONSTANT_BOUNDS, *[SHARED_SCALE_BOUNDS] * len(start.scales), NOISE_BOUNDS])
    precision = np.full(len(first), _LOG_SCALE_STD**-2.0)
    precision[0], precision[-1] = _LOG_CONSTANT_STD**-2.0, 0.0  # noise has bounds, but no prior

    def loss(theta: FloatArray) -> tuple[float, FloatArray]:
        value, slope = log_likelihood(theta, inputs, z[:, None], kernel)
        step = theta - first
        return 0.5 * float(precision @ step**2) - value, precision * step - slope

    # A step takes one evaluation as a rule; the second limit bounds line searches that take more.
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
        self._misfits: list[float] = []
        self._condition(self.candidates)
        return self

    def add(self, candidate: Candidate) -> None:
        """Condition a further candidate on the same losses."""
        self.candidates = (*self.candidates, candidate)
        self._condition([candidate])

    def _condition(self, candidates: Sequence[Candidate]) -> None:
        z = self.z_
        correlations = self._correlations(self.inputs_, candidates)
        for candidate, C in zip(candidates, correlations, strict=True):
            L, fit, misfit = C, 0.0, 0.0  # without rows: the prior
            if len(z):
                L = cholesky(candidate.variance * C, candidate.noise)
                w, _ = dtrtrs(L, z, lower=1)
                misfit = float(w @ w) / len(z)
                # RW eq. 2.30 without the constant; constant losses favour no kernel.
                fit = -0.5 * (w @ w) - np.log(np.diag(L)).sum() if z.any() else 0.0
            self.factors_.append(L)
            self._misfits.append(misfit)
            self._log_weights.append(fit + candidate.log_prior)
        self._weigh()

    def _weigh(self) -> None:
        self.evidence_ = softmax(self._log_weights)
        self._asked: list[_Solved] | None = None  # the old ones had other weights

    def first(self, n: int) -> EvidenceAverage:
        """The average over the first ``n`` candidates alone."""
        part = copy.copy(self)
        part.candidates, part.factors_ = self.candidates[:n], self.factors_[:n]
        part._log_weights, part._misfits = self._log_weights[:n], self._misfits[:n]
        part._weigh()
        return part

    @property
    def likely(self) -> list[Candidate]:
        """The candidates whose evidence is not negligible."""
        return [solved.candidate for solved in self._solved()]

    @property
    def likeliest(self) -> Candidate:
        """The candidate with the largest evidence."""
        return self.candidates[int(self.evidence_.argmax())]

    @property
    def misfit(self) -> float:
        """Mean squared error of the rows in predictive deviations, by the likeliest candidate.

        z' K^-1 z / n, which is about 1 where the losses are as this kernel expects.
        """
        return self._misfits[int(self.evidence_.argmax())]

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
        for solved, C in zip(self._solved(), self._correlations(inputs, self.likely), strict=True):
            variance = solved.candidate.variance
            m, v = np.zeros(len(inputs)), np.full(len(inputs), variance)
            if len(self.z_):
                V = dtrmm(1.0, solved.inverse, C.T, side=1, trans_a=1, lower=1)  # (m, n)
                m = variance * (V @ solved.whitened)  # RW 2.25, 2.26
                v -= variance**2 * np.einsum("mn,mn->m", V, V)
            mean += solved.weight * m
            square += solved.weight * (np.maximum(v, 0.0) + m * m)
        return mean, np.sqrt(np.maximum(square - mean * mean, 0.0))

    def _solved(self) -> list[_Solved]:
        """The candidates whose evidence is not negligible, ready for predictions."""
        if self._asked is None:
            asked = np.flatnonzero(self.evidence_ >= _NEGLIGIBLE)
            weights = self.evidence_[asked] / self.evidence_[asked].sum()
            solved = []
            for i, weight in zip(asked, weights.tolist(), strict=True):
                L = self.factors_[i]
                inverse = dtrtri(L, lower=1)[0] if len(L) else L  # LAPACK refuses no rows
                solved.append(_Solved(self.candidates[i], weight, inverse, inverse @ self.z_))
            self._asked = solved  # at once: another thread may ask, too
        return self._asked

    def _correlations(
        self, inputs: FloatArray, candidates: Sequence[Candidate]
    ) -> list[FloatArray]:
        """Correlations (n, m) of the rows learnt from with ``inputs`` (m, d) by each candidate.

        Candidates with the same length scales share an array.
        """
        shared: FloatArray | None = None
        found: dict[bytes, FloatArray] = {}
        for key, scales in {c.scales.tobytes(): c.scales for c in candidates}.items():
            if len(scales) and (scales == scales[0]).all():
                # A length scale of all inputs only divides the distances, computed once.
                if shared is None:
                    shared = squared_distances(self.inputs_, inputs)
                found[key] = correlation_of(shared / scales[0] ** 2, self.kernel)
            else:
                found[key] = correlation(self.inputs_, inputs, scales, self.kernel)
        return [found[candidate.scales.tobytes()] for candidate in candidates]


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


@dataclass(eq=False, repr=False, kw_only=True)
class AveragedProcess(BaseEstimator):  # type: ignore[misc]
    """Gaussian process on standardised losses, averaged over kernels by their evidence.

    Ten kernels (Matern-5/2) have one length scale for all inputs, of five sizes, and one of two
    noise variances. A further kernel has a length scale for each input, see ``fit_relevances``; a
    second one joins if much noisier kernels are likelier than the ten. With few rows no kernel is
    certain, and the average says so. Missing values are completed as in ``GaussianProcess``. A
    fit takes a fraction of the time of a search for hyperparameters from several starts.

    Args:
        max_rows: Largest number of rows to learn from, at least 2; see ``informative_rows``.
        implied: Columns without an activity flag, see ``Flagging``.

    Attributes:
        process_: The fitted average.
        rows_: Positions of the rows learnt from.
        flagged_: Columns with an activity flag, ascending.

    Example::

        mean, std = AveragedProcess().fit(X, y).predict(X_new)
    """

    max_rows: int = 150
    implied: Sequence[int] = ()

    def fit(self, X: FloatArray, y: FloatArray) -> Self:
        """Learn from features ``X`` (n, f) and losses ``y`` (n,)."""
        check_integer("max_rows", self.max_rows, 2)
        X, y = self._informative(*as_training(X, y))
        self.n_features_in_ = X.shape[1]
        self.flagged_ = self._incomplete(X)
        inputs = complete_inputs(X, self.flagged_)
        own, noisy = (uninformed_kernels(inputs.shape[1], n) for n in (_OWN_NOISES, _NOISY))
        # The noisy ones take no part in predictions: they say where a further ascent may start.
        both = EvidenceAverage([*own, *noisy], _KERNEL).fit(inputs, y)
        self.process_ = both.first(len(own))
        # Equal losses say nothing about length scales.
        if y.min() < y.max():
            is_small = inputs.shape[1] <= _FEW_SCALES
            few = informative_rows(y, _MORE_RELEVANCE_ROWS if is_small else _RELEVANCE_ROWS)
            z, starts = standardise(y[few])[0], [self.process_.likeliest]
            # An ascent from little noise may end at short length scales that explain the noise.
            if both.likeliest is not self.process_.likeliest:
                starts.append(both.likeliest)
            for start in starts:
                # Fitted to some of the rows, but weighed by the evidence of all of them.
                self.process_.add(fit_relevances(inputs[few], z, start, _KERNEL))
        return self

    def predict(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean and standard deviation (m,) of the losses at features ``X`` (m, f)."""
        check_is_fitted(self, "process_")
        return self.process_.predict(self._inputs(X))

    @property
    def noise_(self) -> float:
        """Variance of noise / variance of losses without noise, by the likeliest kernel."""
        check_is_fitted(self, "process_")
        return self.process_.likeliest.noise / self.process_.likeliest.variance

    def held_out(self) -> FloatArray:
        """Mean (n,) at each row, conditioned on the others; NaN for rows not learnt from."""
        check_is_fitted(self, "process_")
        mean = np.full(self.n_rows_, np.nan)
        # The last rows of a copy ``beside`` others are the running evaluations.
        mean[self.rows_] = self.process_.held_out()[: len(self.rows_)]
        return mean

    def conditioned(self, X: FloatArray, y: FloatArray) -> Self:
        """A copy with ``X`` (n, f) and ``y`` (n,) as all its rows, in place of those of ``fit``.

        The kernels stay the likely ones of ``fit``. If they do not explain the new rows, the other
        kernels are averaged, too; if a column has its first missing value, all are fitted again.
        """
        check_is_fitted(self, "process_")
        seen, everything = copy.copy(self), as_training(as_features(X, self.n_features_in_), y)
        X, y = seen._informative(*everything)
        # A further flag is a further input, for which the kernels have no length scale.
        if np.setdiff1d(self._incomplete(X), self.flagged_).size:
            return seen.fit(*everything)
        inputs, known = complete_inputs(X, self.flagged_), self.process_
        # The others, conditioned too, would take as long as they did in ``fit``.
        seen.process_ = EvidenceAverage(known.likely, _KERNEL).fit(inputs, y)
        # A single likely kernel with little noise would be too certain where it extrapolates.
        if seen.process_.misfit > _SURPRISE * max(1.0, known.misfit):
            seen.process_ = EvidenceAverage(known.candidates, _KERNEL).fit(inputs, y)
        return seen

    def beside(self, pending: FloatArray) -> Self:
        """A copy that takes running evaluations (p, f) for finished, with the predicted losses.

        The kriging believer of Ginsbourger et al. 2010.
        """
        check_is_fitted(self, "process_")
        seen, known = copy.copy(self), self.process_
        # All at once: each believes only in what is finished, so their order does not matter.
        inputs = self._inputs(pending)
        believed = np.concatenate([known.losses_, known.predict(inputs)[0]])
        seen.process_ = EvidenceAverage(known.candidates, _KERNEL).fit(
            np.vstack([known.inputs_, inputs]), believed
        )
        return seen

    def _informative(self, X: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The rows to learn from; ``rows_`` keeps their positions."""
        self.n_rows_, self.rows_ = len(y), informative_rows(y, self.max_rows)
        return X[self.rows_], y[self.rows_]

    def _incomplete(self, X: FloatArray) -> IndexArray:
        """Columns of ``X`` (n, f) whose missing values call for a flag."""
        return np.setdiff1d(np.flatnonzero(np.isnan(X).any(axis=0)), self.implied)

    def _inputs(self, X: FloatArray) -> FloatArray:
        return complete_inputs(as_features(X, self.n_features_in_), self.flagged_)
