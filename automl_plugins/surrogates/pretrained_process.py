"""A Gaussian process whose mean and kernel earlier tasks have taught.

After the pre-trained processes of Wang, Dahl, Swersky et al., "Pre-trained Gaussian processes for
Bayesian optimization" (JMLR 2024), with the empirical mean and covariance over the earlier tasks
in place of a fitted network, beside kernels that know nothing of them. Notation::

    f_s     prediction of the earlier task s, its losses with mean 0 and deviation 1; S of them
    m       their mean, sum_s f_s / S
    b_j     principal functions of the differences: sum_j b_j(x) b_j(x') is their covariance
            sum_s (f_s - m)(x) (f_s - m)(x') / S
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.linalg import cho_solve

from automl_plugins.arrays import FloatArray
from automl_plugins.surrogates.averaged_process import AveragedProcess, Candidate
from automl_plugins.surrogates.gaussian_process import cholesky, correlation
from automl_plugins.surrogates.two_stage_sources import EarlierTasks, Sources

# Prior variances of the parts of a loss: the mean over the earlier tasks, their differences from
# it, and the rest, of which they know nothing.
_PARTS = ((0.6, 0.3, 0.1), (0.1, 0.8, 0.1), (0.35, 0.35, 0.3), (0.15, 0.25, 0.6))
_LEVEL = 0.5  # prior variance of the level: few losses do not show it
_LENGTHS = (0.25, 1.0)  # of the rest, beside the relevances that the losses themselves show
_NOISES = (1e-5, 1e-3, 5e-2)
_PLACES = 200  # configurations at which the earlier tasks are asked
_CHUNK = 128  # rows at a time; larger correlation matrices leave the processor's cache
_KEPT = 0.99  # of the variance between the tasks, by the principal functions
_JITTER = 1e-7  # for the inverse of the correlations between the places
_FLAT = 1e-6  # deviation below which predictions of a task are all alike


@dataclass(frozen=True)
class TaskFunctions:
    """Mean and principal functions of earlier tasks, interpolated between places.

    Attributes:
        sources: The processes of the tasks.
        places: Complete inputs (p, d).
        weights: Of the correlations with the places (p, 1 + r), for m and b_1 .. b_r.
        loadings: Weight of each task in each b_j (S, r).
    """

    sources: Sources
    places: FloatArray
    weights: FloatArray
    loadings: FloatArray

    @classmethod
    def fit(cls, sources: Sources, memory: EarlierTasks) -> Self:
        """Decompose the predictions of at least one task at the memory's configurations."""
        X = memory.vector_space.features(_places(memory))
        F = sources.predict(X)
        F -= F.mean(axis=1, keepdims=True)
        F /= np.maximum(F.std(axis=1, keepdims=True), _FLAT)
        m = F.mean(axis=0)
        U, sizes, V = np.linalg.svd((F - m) / np.sqrt(len(F)), full_matrices=False)
        variances = np.cumsum(sizes**2)
        r = int(np.searchsorted(variances, _KEPT * variances[-1])) + 1
        places = sources.inputs(X)
        K = correlation(places, places, sources.scales, sources.kernel)
        functions = np.vstack([m, sizes[:r, None] * V[:r]])
        weights = cho_solve((cholesky(K, _JITTER), True), functions.T)
        return cls(sources, places, weights, U[:, :r])

    def __call__(self, X: FloatArray) -> FloatArray:
        """A column of ones, m and b_1 .. b_r (n, 2 + r) at features ``X`` (n, f)."""
        sources, inputs = self.sources, self.sources.inputs(X)
        out = np.ones((len(X), 1 + self.weights.shape[1]))
        for start in range(0, len(X), _CHUNK):
            rows = slice(start, start + _CHUNK)
            C = correlation(inputs[rows], self.places, sources.scales, sources.kernel)
            out[rows, 1:] = C @ self.weights
        return out

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self  # nothing in it ever changes


def _places(memory: EarlierTasks) -> FloatArray:
    """Configurations (p, d) of the memory, distinct: the best of each task, and of all others."""
    space, losses = memory.vector_space, memory.scores(_ranks)
    order = np.argsort(losses, kind="stable")  # all bests, then all second bests
    _, first = np.unique(space.keys(memory.vectors[order]), return_index=True)
    order = order[np.sort(first)]
    if len(order) > _PLACES:
        n_best = _PLACES // 2
        others = np.linspace(n_best, len(order) - 1, _PLACES - n_best).round().astype(np.intp)
        order = order[np.concatenate([np.arange(n_best), others])]
    return memory.vectors[order]


def _ranks(losses: FloatArray) -> FloatArray:
    return np.argsort(np.argsort(losses, kind="stable"), kind="stable").astype(np.float64)


@dataclass(eq=False, repr=False, kw_only=True)
class PretrainedProcess(AveragedProcess):
    """``AveragedProcess`` with further kernels that earlier tasks have taught.

    A taught kernel has losses that are ``c + w_0 m + sum_j w_j b_j + g``: a level, a multiple of
    the mean over the earlier tasks, a combination of their differences from it, and a process of
    which they know nothing. The weights are normal; how large each part is differs between the
    kernels. The evidence of the losses shows how much they resemble the earlier tasks; a weight
    may be negative, for a task that they oppose. Where they resemble none, the kernels of
    ``AveragedProcess`` have the evidence.

    Args:
        functions: Those of the earlier tasks; None learns from the search alone.

    Attributes:
        shares_: Share of each earlier task in the predictions, by name.

    Example::

        functions = TaskFunctions.fit(Sources.fit(memory), memory)  # memory: a MetaDataset
        model = PretrainedProcess(functions=functions).fit(features, losses)
        mean, std = model.predict(features)
    """

    functions: TaskFunctions | None = None

    def fit(self, X: FloatArray, y: FloatArray) -> Self:
        """Learn from features ``X`` (n, f) and losses ``y`` (n,)."""
        super().fit(X, y)
        if self.functions is not None:
            self.process_.add(self._make_candidates())
        return self

    @property
    def shares_(self) -> Mapping[str, float]:
        """Evidence of the taught kernels, shared out by the weights of the tasks in the mean."""
        if self.functions is None:
            return {}
        names, loadings = self.functions.sources.names, self.functions.loadings
        total = np.zeros(len(names))
        for evidence, w in self.process_.linear_weights():
            # m has the weight 1 / S of each task.
            tasks = np.maximum(w[1] / len(names) + loadings @ w[2:] / np.sqrt(len(names)), 0.0)
            if tasks.sum() > 0.0:
                total += evidence * tasks / tasks.sum()
        return dict(zip(names, total.tolist(), strict=True))

    def _make_candidates(self) -> list[Candidate]:
        """The taught kernels."""
        assert self.functions is not None
        r = self.functions.loadings.shape[1]
        known = self.process_.candidates
        d = len(known[-1].scales)
        scales = [known[-1].scales, *(np.full(d, length) for length in _LENGTHS)]
        mixtures = [
            (rest, np.array([_LEVEL, mean, *[differences] * r]) / rest)
            for mean, differences, rest in _PARTS
        ]
        # Together as likely as the kernels that know nothing of the earlier tasks.
        log_prior = np.log(len(known) / (len(scales) * len(mixtures) * len(_NOISES)))
        return [
            Candidate(own, noise, float(log_prior), rest, linear)
            for own in scales
            for rest, linear in mixtures
            for noise in _NOISES
        ]

    def _inputs(self, X: FloatArray) -> FloatArray:
        inputs = super()._inputs(X)
        return inputs if self.functions is None else np.hstack([inputs, self.functions(X)])
