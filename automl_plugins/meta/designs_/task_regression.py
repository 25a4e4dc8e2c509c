"""From meta-features to the losses of many configurations at once.

The output is a whole row of losses, one for each configuration, so one small linear system serves
all of them, and what each known task would have been predicted without itself comes in closed
form. Two predictors are averaged: ridge regression extrapolates from all tasks, a local average
looks at the nearest ones only. Notation of this module::

    T, C    known tasks, configurations
    M       scaled meta-features (T, m);  m, those of the new task (m,)
    Y       losses (T, C), less their mean over tasks
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from .task_features import distances

FloatArray = npt.NDArray[np.float64]

_LENGTHS = (0.25, 0.5, 1.0, 2.0, 4.0)  # of the median distance between tasks
_RIDGES = (0.1, 0.3, 1.0, 3.0, 10.0, 100.0, 1e4)
_NEARBY = 0.3  # width of the local average, in the same


class TaskPrediction(NamedTuple):
    """What is predicted.

    Attributes:
        new: Losses of the new task (C,).
        known: Losses of each known task (T, C), predicted from the others.
    """

    new: FloatArray
    known: FloatArray


def predict(M: FloatArray, Y: FloatArray, m: FloatArray) -> TaskPrediction:
    """The mean of ``ridge_regression`` and ``local_average``.

    Args:
        M: Scaled meta-features (T, m) of at least two tasks.
        Y: Losses (T, C).
        m: Scaled meta-features of the new task (m,).
    """
    a, b = ridge_regression(M, Y, m), local_average(M, Y, m)
    return TaskPrediction((a.new + b.new) / 2.0, (a.known + b.known) / 2.0)


def ridge_regression(M: FloatArray, Y: FloatArray, m: FloatArray) -> TaskPrediction:
    """Kernel ridge regression with a Gaussian kernel; the arguments are those of ``predict``.

    The kernel's length and the ridge are those of the least leave-one-out error. With K the
    kernel between known tasks and A = (K + ridge I)^-1, the prediction of a task from all others
    is Y - (A Y) / diag(A) (Golub, Heath and Wahba 1979).
    """
    mean = Y.mean(axis=0)
    centred = Y - mean
    between = _root_mean_square(M, M)
    scale = _typical(between)
    to_new = _root_mean_square(m[None, :], M)[0]
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
    """Averages weighted by a Gaussian of the L1 distance; the arguments are those of ``predict``.

    Far from all others, the nearest task decides.
    """
    between = distances(M, M)
    width = _NEARBY * _typical(between)
    np.fill_diagonal(between, np.inf)
    return TaskPrediction(
        _softmax(-0.5 * (distances(m[None, :], M) / width) ** 2)[0] @ Y,
        _softmax(-0.5 * (between / width) ** 2) @ Y,
    )


def _typical(between: FloatArray) -> float:
    """The median distance between tasks that differ."""
    apart = between[between > 0]
    return float(np.median(apart)) if len(apart) else 1.0


def _softmax(exponents: FloatArray) -> FloatArray:
    weights = np.exp(exponents - exponents.max(axis=1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def _root_mean_square(a: FloatArray, b: FloatArray) -> FloatArray:
    return np.asarray(np.sqrt(((a[:, None, :] - b[None, :, :]) ** 2).mean(axis=2)))
