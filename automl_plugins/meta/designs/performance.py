"""Losses of candidate configurations on every known task, measured or estimated, and on a new one.

Each task is scaled to [0, 1]: 0 is its best run, 1 its worst, failed ones included. ``predict``
goes from meta-features to the losses of many configurations at once: the output is a whole row of
losses, so one small linear system serves all of them, and the prediction of each known task from
all others has a closed form. Its notation::

    T, C    known tasks, configurations
    M       scaled meta-features (T, m) of at least two tasks;  m, those of the new task (m,)
    Y       losses (T, C)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import ndimage
from scipy.spatial.distance import cdist
from scipy.special import softmax
from scipy.stats import rankdata

from automl_plugins.arrays import FloatArray, evenly_spaced
from automl_plugins.meta.tasks import distances
from automl_plugins.records.scores import regret
from automl_plugins.spaces.vector_space import VectorSpace

from ..dataset import MetaDataset

MAX_CANDIDATES = 500  # the portfolio's work grows with their number times the tasks'
_MAX_ROWS = 1000  # runs of a task that its estimates look at
WIDTH = 0.2  # of the kernel, in ranges of a hyperparameter
_TRUST = 0.5  # in a measured loss, the rest is its neighbours'


@dataclass(frozen=True)
class Performance:
    """Regrets of ``candidates`` (C, d), distinct configurations of a memory, on all its tasks.

    ``measured`` (T, C) is NaN where a task did not run a configuration; ``estimated`` (T, C) are
    kernel estimates from each task's own runs.
    """

    memory: MetaDataset
    candidates: FloatArray
    measured: FloatArray
    estimated: FloatArray

    @property
    def filled(self) -> FloatArray:
        """Measured regrets (T, C), estimates where unmeasured."""
        return np.where(np.isnan(self.measured), self.estimated, self.measured)

    @property
    def smoothed(self) -> FloatArray:
        """Measured regrets (T, C) averaged with their estimates; these alone where unmeasured.

        A configuration that is best on a task by luck has neighbours that are not.
        """
        mixed = _TRUST * self.measured + (1.0 - _TRUST) * self.estimated
        return np.where(np.isnan(self.measured), self.estimated, mixed)


def performance(dataset: MetaDataset) -> Performance:
    """Regrets of a memory's configurations on all its tasks.

    A configuration that never completed is no candidate: it fails, whatever its neighbours do. If
    there are more than ``MAX_CANDIDATES``, half of them are those of the least mean regret that at
    least half of the tasks have run; the others are the best of each task, then the second best,
    ... The best of every task is always a candidate.
    """
    space = dataset.vector_space
    scores, losses = dataset.scores(regret), dataset.complete_losses
    distinct, which = dataset.distinct
    chosen = _choose(dataset, scores)
    candidates = distinct[chosen]
    column = np.full(len(distinct), -1)
    column[chosen] = np.arange(len(chosen))
    places = coordinates(space, candidates)
    measured = np.full((len(dataset.tasks), len(chosen)), np.nan)
    estimated = np.empty_like(measured)
    for t, rows in enumerate(dataset.rows):
        own = scores[rows]
        # What is no candidate has the label -1, which is not asked for.
        with np.errstate(invalid="ignore"):  # NaN for what the task has not run
            measured[t] = ndimage.mean(own, column[which[rows]], np.arange(len(chosen)))
        # A failure says nothing of its neighbours, unless none of them completed.
        known = np.flatnonzero(~np.isnan(losses[rows]))
        known = known if len(known) else np.arange(len(own))
        thinned = known[evenly_spaced(len(known), _MAX_ROWS)]
        runs = coordinates(space, dataset.vectors[rows][thinned])
        estimated[t] = kernel_means(places, runs, own[thinned])
    return Performance(dataset, candidates, measured, estimated)


def coordinates(space: VectorSpace, vectors: FloatArray) -> FloatArray:
    """Features (n, f) without gaps: an inactive number lies half its range below the least."""
    features = space.features(vectors)
    gaps = np.isnan(features).any(axis=0)
    # From [-0.5, 1] to [0, 1], so that a column with gaps counts as much as others.
    return np.where(gaps, (np.nan_to_num(features, nan=-0.5) + 0.5) / 1.5, features)


def kernel_means(places: FloatArray, runs: FloatArray, values: FloatArray) -> FloatArray:
    """Nadaraya-Watson estimates (C,) at ``places`` (C, f) of ``values`` (n,) at ``runs`` (n, f).

    Gaussian weights; far from all runs the nearest one decides.
    """
    squared = cdist(places, runs, metric="sqeuclidean")
    # Not exp and a quotient: far from all runs every weight would be 0.
    return np.asarray(softmax(-0.5 * squared / WIDTH**2, axis=1) @ values)


def _choose(dataset: MetaDataset, scores: FloatArray) -> npt.NDArray[np.int64]:
    """Indices of the distinct configurations to be compared, ascending; all have completed."""
    which = dataset.distinct[1]
    worked = dataset.completed
    if worked.sum() <= MAX_CANDIDATES:
        return np.flatnonzero(worked)
    place = np.concatenate([rankdata(scores[rows], method="ordinal") for rows in dataset.rows])
    order = np.lexsort((dataset.task, place))  # all bests, then all second bests
    order = order[worked[which[order]]]
    n_tasks = len(dataset.rows)
    runs = np.unique(which * n_tasks + dataset.task)  # each configuration once for each task
    widely = 2 * np.bincount(runs // n_tasks, minlength=len(worked)) >= n_tasks
    means = np.bincount(which, scores) / np.bincount(which)
    common = np.flatnonzero(worked & widely)
    best = common[np.argsort(means[common], kind="stable")]
    chosen = dict.fromkeys(best[: MAX_CANDIDATES // 2].tolist())
    # Room for the best of every task, whatever the limit.
    most = max(MAX_CANDIDATES, len(chosen) + n_tasks)
    chosen |= dict.fromkeys(which[order].tolist())
    return np.sort(list(chosen)[:most])


_LENGTHS = (0.25, 0.5, 1.0, 2.0, 4.0)  # of the median distance between tasks
# The last one leaves the mean of all tasks, for meta-features that say nothing.
_RIDGES = (0.1, 0.3, 1.0, 3.0, 10.0, 100.0, 1e4)
_NEARBY = 0.3  # width of the local average, in median distances, too


class TaskPrediction(NamedTuple):
    """Predicted losses of the new task (C,), and of each known one from the others (T, C)."""

    new: FloatArray
    known: FloatArray


def predict(M: FloatArray, Y: FloatArray, m: FloatArray) -> TaskPrediction:
    """The mean of ``ridge_regression``, which extrapolates, and ``local_average``."""
    a, b = ridge_regression(M, Y, m), local_average(M, Y, m)
    return TaskPrediction((a.new + b.new) / 2.0, (a.known + b.known) / 2.0)


def ridge_regression(M: FloatArray, Y: FloatArray, m: FloatArray) -> TaskPrediction:
    """Kernel ridge regression with a Gaussian kernel.

    Its length and the ridge minimise the leave-one-out error. With K the kernel between known
    tasks and A = (K + ridge I)^-1, the prediction of a task from all others is
    Y - (A Y) / diag(A) (Golub, Heath and Wahba 1979). Y is centred by the mean over all tasks, the
    predicted one included: with few tasks this draws predictions to their truth, and designs made
    of them were better than with the exact form.
    """
    mean = Y.mean(axis=0)
    centred = Y - mean
    root = np.sqrt(M.shape[1])
    between, to_new = cdist(M, M) / root, cdist(m[None, :], M)[0] / root
    scale = _typical(between)
    least, best = np.inf, TaskPrediction(mean, np.broadcast_to(mean, Y.shape))
    for length in _LENGTHS:
        K = np.exp(-0.5 * (between / (scale * length)) ** 2)
        k = np.exp(-0.5 * (to_new / (scale * length)) ** 2)
        for ridge in _RIDGES:
            inverse = np.linalg.inv(K + ridge * np.eye(len(M)))
            weights = inverse @ centred
            error = weights / np.diag(inverse)[:, None]
            if (loss := float((error**2).mean())) < least:
                least, best = loss, TaskPrediction(mean + k @ weights, Y - error)
    return best


def local_average(M: FloatArray, Y: FloatArray, m: FloatArray) -> TaskPrediction:
    """Averages weighted by a Gaussian of the L1 distance; far from all the nearest decides."""
    between = distances(M, M)
    width = _NEARBY * _typical(between)
    # A known task is predicted from the others only.
    np.fill_diagonal(between, np.inf)
    return TaskPrediction(
        softmax(-0.5 * (distances(m[None, :], M)[0] / width) ** 2) @ Y,
        softmax(-0.5 * (between / width) ** 2, axis=1) @ Y,
    )


def _typical(between: FloatArray) -> float:
    """The median distance between tasks that differ."""
    apart = between[between > 0]
    return float(np.median(apart)) if len(apart) else 1.0
