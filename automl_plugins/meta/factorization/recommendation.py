"""The choice of the next pipeline to evaluate on a new data set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from automl_plugins.arrays import BoolArray, FloatArray, IntArray, evenly_spaced
from automl_plugins.meta.designs.methods import best_in_order, greedy
from automl_plugins.meta.factorization.model import MatrixFactorization
from automl_plugins.meta.factorization.processes import LARGEST, Conditioned, scales
from automl_plugins.surrogates.base import log_expected_improvement

_COMPARED = 2000  # pipelines over which data sets are compared with the posterior


@dataclass(frozen=True)
class Recommendation:
    """A pipeline, with the mean and deviation of its predicted loss (None at the start).

    ``shares`` (D,) is the share of each known data set in the decision, see ``Recommender``.

    Example::

        first = recommender.next([], np.array([]), [], allowed)
        print(first.row, first.loss, first.std)
    """

    row: int
    loss: float | None
    std: float | None
    shares: FloatArray

    def __repr__(self) -> str:
        loss = "at the start" if self.loss is None else f"loss {self.loss:.4g} ± {self.std:.2g}"
        return f"Recommendation(pipeline {self.row}, {loss}, {len(self.shares)} data sets)"


class Recommender:
    """Start, then expected improvement over all pipelines (Fusi 2018, section 3.4).

    At the start ``Pick`` has the shares of the data sets in a decision. Later all data sets
    together have the part of the variance that the new one's observations leave unexplained: there
    the prediction comes from the earlier data sets. It is divided among them in proportion to the
    squared correlation, where positive, of the recorded losses of each with the predicted ones,
    both around the means of the pipelines.

    Args:
        model: A fitted factorisation.
        Y: The losses (N, D) that it was fitted on.
        start: The first pipelines, and more of them in case that some are not allowed or fail.
        n_start: Pipelines before the model is asked.
        xi: Improvement below which EI gains nothing, in the stretch of the data set's losses.

    Example::

        recommender = Recommender(model, Y, complementary(Y, Y.mean(axis=1), 3), n_start=3)
        print(recommender.next([0], np.array([0.2]), [], allowed).row)
    """

    def __init__(
        self,
        model: MatrixFactorization,
        Y: npt.NDArray[np.floating],
        start: Sequence[Pick],
        *,
        n_start: int = 5,
        xi: float = 0.0,
    ) -> None:
        self.model = model
        self.start = list(start)
        self.n_start = n_start
        self.xi = xi
        n = model.n_pipelines_
        self._rows = evenly_spaced(n, _COMPARED)
        deviations = _deviations(np.asarray(Y[self._rows], dtype=np.float64))
        self._deviations = deviations.astype(np.float32)
        self._prior = float(np.mean(model.prior_variance))
        self._cache: list[Conditioned] = []  # at most one, taken out by the thread that uses it

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_cache": []}

    def next(
        self,
        rows: Sequence[int],
        losses: FloatArray,
        pending: Sequence[int],
        allowed: BoolArray,
    ) -> Recommendation:
        """The pipeline to evaluate, among those ``allowed`` (N,), at least one.

        ``rows`` were evaluated, none twice; their ``losses`` are NaN for what failed before
        anything succeeded. ``pending`` are being evaluated.
        """
        losses = np.clip(np.asarray(losses, dtype=np.float64), -LARGEST, LARGEST)
        known = ~np.isnan(losses)
        if len(rows) + len(pending) < self.n_start or not known.any():
            for pick in self.start:
                if allowed[pick.row]:
                    return Recommendation(pick.row, None, None, pick.shares)
        if not known.any():
            row = int(np.where(allowed, self.model.mean_, np.inf).argmin())
            d = self._deviations.shape[1]
            return Recommendation(row, None, None, np.full(d, 1.0 / d))
        conditioned = self._condition([r for r, k in zip(rows, known, strict=True) if k])
        values = losses[known]
        mean, std, shift, stretch = conditioned.scaled_posterior(values)
        # Before running pipelines lower the deviation: only results tell of the data set.
        shares = self._shares(mean, std)
        best = (float(values.min()) - shift) / stretch
        if len(pending):  # as if they were what is expected of them: the mean stays
            std = conditioned.deviation_after(pending)
        row = most_improving(mean, std, best, self.xi, np.flatnonzero(allowed))
        self._cache[:] = [conditioned]
        loss, deviation = shift + stretch * float(mean[row]), stretch * float(std[row])
        return Recommendation(row, loss, deviation, shares)

    def _condition(self, rows: list[int]) -> Conditioned:
        """The model conditioned on these rows; the last one is extended if it begins them."""
        try:
            conditioned = self._cache.pop()
        except IndexError:
            conditioned = self.model.conditioned()
        if conditioned.rows != rows[: len(conditioned.rows)]:
            conditioned = self.model.conditioned()
        for row in rows[len(conditioned.rows) :]:
            conditioned.observe(row)
        return conditioned

    def _shares(self, mean: FloatArray, std: FloatArray) -> FloatArray:
        predicted = mean[self._rows] - self.model.mean_[self._rows]
        # Squares of losses may not be representable; a power of two rounds nothing.
        predicted = np.ldexp(predicted, -np.frexp(np.abs(predicted).max())[1])
        predicted = predicted - predicted.mean()
        norm = float(np.sqrt(predicted @ predicted))
        left = min(1.0, float(np.mean(std**2)) / self._prior)
        if norm <= 0.0:
            return np.full(self._deviations.shape[1], left / self._deviations.shape[1])
        correlations = (predicted / norm).astype(np.float32) @ self._deviations
        agreement = np.maximum(correlations.astype(np.float64), 0.0) ** 2
        total = float(agreement.sum())
        return np.asarray(left * agreement / total) if total > 0 else 0.0 * agreement


def most_improving(
    mean: FloatArray, std: FloatArray, best: float, xi: float, rows: IntArray
) -> int:
    """The one of ``rows`` (m,) with the largest expected improvement, else the least mean."""
    utility = log_expected_improvement(mean[rows], std[rows], best, xi)
    i = int(utility.argmax())
    return int(rows[i if np.isfinite(utility[i]) else int(mean[rows].argmin())])


def _deviations(Y: FloatArray) -> FloatArray:
    """Deviations (n, D) from row means, each column with mean 0 and norm 1 where it varies."""
    known = ~np.isnan(Y)
    shift, stretch = scales(Y, "regret")
    z = (Y - shift) / stretch
    # Not ``nanmean``, which warns of rows and columns without any loss.
    z -= np.nansum(z, axis=1, keepdims=True) / np.maximum(known.sum(axis=1, keepdims=True), 1)
    z -= np.nansum(z, axis=0) / np.maximum(known.sum(axis=0), 1)
    z = np.where(known, z, 0.0)
    norms = np.sqrt((z**2).sum(axis=0))
    return np.asarray(z / np.where(norms > 0, norms, 1.0))


_MOST = 2000  # pipelines among which a portfolio is chosen


@dataclass(frozen=True)
class Pick:
    """A pipeline of the start.

    ``shares`` (D,) say how much the choice is due to each data set: all of it to the one whose
    best pipeline it is, or to each in proportion to its gain in a portfolio. The sum is at most 1.

    Example::

        picks = complementary(Y, Y.mean(axis=1), 3)
        print([pick.row for pick in picks])
    """

    row: int
    shares: FloatArray


def of_nearest(z: npt.NDArray[np.floating], order: IntArray, n: int) -> list[Pick]:
    """The best pipelines of the nearest data sets, none twice (Fusi 2018, section 4.3).

    ``z`` are losses (N, D), NaN where there is none; ``order`` is the data sets, nearest first.
    """
    picks = best_in_order(z.T, order.tolist(), n)
    return [Pick(row, np.eye(z.shape[1])[column]) for row, column in picks.items()]


def complementary(
    z: npt.NDArray[np.floating], means: FloatArray, n: int, weights: FloatArray | None = None
) -> list[Pick]:
    """Pipelines that together are best on the known data sets, greedily.

    A missing loss counts as halfway between the pipeline's mean and the worst loss, so that
    measured ones are preferred.

    Args:
        z: Losses (N, D) on one scale; NaN where there is none.
        means: Mean of each pipeline (N,).
        n: Number of pipelines.
        weights: How much each data set counts (D,), with sum 1; None for all alike.
    """
    rows = _candidates(z, means)
    part = np.asarray(z[rows], dtype=np.float64)
    worst = max(float(np.nanmax(part)), float(means[rows].max()))  # no guess is above it
    guess = 0.5 * (means[rows, None] + worst)
    scenarios = np.where(np.isnan(part), guess, part).T
    d = len(scenarios)
    share = np.full(d, 1.0 / d) if weights is None else weights
    picks, best = [], np.full(d, worst)
    for i in greedy(scenarios, np.tile(share, (n, 1))):
        # As in ``greedy``, but from the worst on, so that the first pick has a finite gain.
        gain = share * np.maximum(best - scenarios[:, i], 0.0)
        total = float(gain.sum())
        picks.append(Pick(int(rows[i]), gain / total if total > 0 else share))
        best = np.minimum(best, scenarios[:, i])
    return picks


def _candidates(z: npt.NDArray[np.floating], means: FloatArray) -> IntArray:
    """At most 2 000 pipelines (c,), ascending: the best on average and the bests of data sets.

    What is far from best on all data sets lowers no minimum.
    """
    if len(means) <= _MOST:
        return np.arange(len(means))
    chosen = dict.fromkeys(np.argsort(means, kind="stable")[: _MOST // 2].tolist())
    each = max(1, _MOST // z.shape[1])
    bests = np.argpartition(np.where(np.isnan(z), np.inf, z), each, axis=0)[:each]  # (each, D)
    chosen |= dict.fromkeys(bests.ravel().tolist())
    return np.sort(list(chosen)[:_MOST])
