"""Train one configuration on three folds: what a worker of ``build_memory.py`` does.

A time limit has to end code that is deep inside a C library, and should not depend on what else
the machine is doing, so it is one of CPU seconds and kept by the kernel: when the timer has run
out the process dies of SIGPROF. The parent sees how it died.

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
from sklearn.metrics import accuracy_score, balanced_accuracy_score, roc_auc_score
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

FloatArray = npt.NDArray[np.float64]
Record = dict[str, Any]

METRICS = ("error", "balanced_error", "auc_error")
MESSAGE_LENGTH = 200


def evaluate(learner: str, data: str, configuration: Values, limit: float) -> Record:
    """Train a configuration of ``learner`` on the folds of ``data``, see ``measure``."""
    return measure(learner, configuration, prepared(data, LEARNERS[learner].scaled), limit)


def measure(learner: str, configuration: Values, folds: list[Fold], limit: float) -> Record:
    """Train a configuration on some folds.

    A fold's fit and prediction may take ``limit`` CPU seconds; more kill this process.

    Returns:
        ``status`` ("complete" or "failed"), ``seconds`` of CPU summed over the folds (None where
        the clock stood still), the means of ``METRICS`` over the folds (None if it failed) and the
        ``message`` of the error.
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

    The area is that of each class against the rest by ``scores`` (n, k), averaged over the
    classes; of two classes the second speaks for both.

    Raises:
        ValueError: If a score is not finite.
    """
    if not np.isfinite(scores).all():
        raise ValueError("the model's scores are not finite")
    k = scores.shape[1]
    areas = [roc_auc_score(y == c, scores[:, c]) for c in (range(k) if k > 2 else [1])]
    right, recall = accuracy_score(y, predicted), balanced_accuracy_score(y, predicted)
    return 1.0 - float(right), 1.0 - float(recall), 1.0 - float(np.mean(areas))
