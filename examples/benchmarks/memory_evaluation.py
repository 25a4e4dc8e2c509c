"""Train one configuration on three folds: what a worker of ``build_memory.py`` does.

A time limit has to end code that is deep inside a C library, and should
not depend on what else the machine is doing, so it is one of CPU seconds and kept by the kernel:
when the timer has run out the process dies of SIGPROF. The parent sees how it died.

While such a timer is armed, some kernels count the CPU time of a process in ticks of its timer
interrupt, milliseconds each. That of a thread stays exact, and the learners have one thread.
"""

from __future__ import annotations

import signal
import time
import warnings
from typing import Any

import numpy as np
import numpy.typing as npt
from memory_data import Fold, IntArray, prepared
from memory_learners import LEARNERS, Values
from scipy.stats import rankdata
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

FloatArray = npt.NDArray[np.float64]
Record = dict[str, Any]

METRICS = ("error", "balanced_error", "auc_error")
MESSAGE_LENGTH = 200


def evaluate(learner: str, data: str, configuration: Values, limit: float) -> Record:
    """Train a configuration of ``learner`` on the folds of ``data``.

    Args:
        learner: A key of ``LEARNERS``.
        data: A key of ``SOURCES``.
        configuration: One of the learner's ``configurations``.
        limit: CPU seconds that one fold's fit and prediction may take; more kill this process.

    Returns:
        ``status`` ("complete" or "failed"), ``seconds`` (None if unknown), the means of
        ``METRICS`` over the folds (None if it failed) and the ``message`` of the error.
    """
    folds = prepared(data, LEARNERS[learner].scaled)
    return measure(learner, configuration, folds, limit)


def measure(learner: str, configuration: Values, folds: list[Fold], limit: float) -> Record:
    """Mean losses over ``folds``, and CPU seconds of fit and prediction summed over them.

    The seconds are None where the clock stood still.
    """
    losses, seconds = [], 0.0
    # Unconverged models, and batches larger than a small data set, are scored as they are.
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for X_train, y_train, X_test, y_test in folds:
            start = time.thread_time()
            signal.setitimer(signal.ITIMER_PROF, limit)
            try:
                model = LEARNERS[learner].build(configuration).fit(X_train, y_train)
                predicted, scores = _predict(model, X_test)
                seconds += time.thread_time() - start
                losses.append(loss(y_test, predicted, scores))
            except Exception as error:  # any: what a library raises is a result here
                message = f"{type(error).__name__}: {error}"[:MESSAGE_LENGTH]
                seconds += time.thread_time() - start
                return unfinished("failed", seconds, message)
            finally:
                signal.setitimer(signal.ITIMER_PROF, 0)
    means = np.mean(losses, axis=0).round(6).tolist()
    return {
        "status": "complete",
        "seconds": _recorded(seconds),
        **dict(zip(METRICS, means, strict=True)),
        "message": "",
    }


def unfinished(status: str, seconds: float | None, message: str) -> Record:
    """The record of a configuration without losses."""
    return {
        "status": status,
        "seconds": _recorded(seconds),
        **dict.fromkeys(METRICS),
        "message": message,
    }


def _recorded(seconds: float | None) -> float | None:
    """Microseconds are kept; a zero is no measurement."""
    return None if seconds is None else round(seconds, 6) or None


def _predict(model: Any, X: FloatArray) -> tuple[IntArray, FloatArray]:
    """Classes (n,) and scores (n, k), with one pass over the model where one is enough."""
    if hasattr(model, "predict_proba"):
        scores = np.asarray(model.predict_proba(X), dtype=np.float64)
        return model.classes_[scores.argmax(axis=1)], scores
    scores = np.asarray(model.decision_function(X), dtype=np.float64)
    if scores.ndim == 1:
        scores = np.column_stack([-scores, scores])
    return model.predict(X), scores


def loss(y: IntArray, predicted: IntArray, scores: FloatArray) -> tuple[float, float, float]:
    """1 - accuracy, 1 - balanced accuracy, and 1 - area under the ROC curve.

    Args:
        y: Classes (n,) as 0, 1, ..., k - 1, all of them present.
        predicted: Predicted classes (n,).
        scores: The higher, the likelier the class, (n, k).

    Returns:
        The three losses. The area is that of each class against the rest, averaged over the
        classes; of two classes the second speaks for both. Tied scores count half.

    Raises:
        ValueError: If a score is not finite.
    """
    if not np.isfinite(scores).all():
        raise ValueError("the model's scores are not finite")
    right = predicted == y
    positive = y[:, None] == np.arange(scores.shape[1])  # (n, k)
    n_positive = positive.sum(axis=0)
    recall = (positive & right[:, None]).sum(axis=0) / n_positive
    # The area is the statistic of Mann and Whitney, from the ranks of the positive rows.
    rank_sum = np.where(positive, rankdata(scores, axis=0), 0.0).sum(axis=0)
    pairs = n_positive * (len(y) - n_positive)
    area = (rank_sum - n_positive * (n_positive + 1) / 2) / pairs
    if len(area) == 2:  # the first one's scores are the same but for rounding, which splits ties
        area = area[1:]
    return 1.0 - float(right.mean()), 1.0 - float(recall.mean()), 1.0 - float(area.mean())
