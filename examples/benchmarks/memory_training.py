"""Train one configuration of a learner, and record its losses and seconds.

The time limit is in CPU seconds and enforced by the kernel: it has to end code deep inside a C
library, and should not depend on the load of the machine. When the timer runs out, the process
dies of SIGPROF, and the parent sees how it died.

While such a timer is armed, some kernels count the CPU time of a process in ticks of its timer
interrupt, milliseconds each. The CPU time of a thread stays exact, and the learners have one
thread.
"""

from __future__ import annotations

import signal
import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from memory_data import Fold, Target, prepared
from memory_learners import LEARNERS, LIBRARY, METRICS, Task, Values, configuration
from sklearn.metrics import (
    accuracy_score,
    balanced_accuracy_score,
    mean_absolute_error,
    r2_score,
    roc_auc_score,
)
from threadpoolctl import threadpool_limits

from automl_plugins.arrays import FloatArray

MESSAGE_LENGTH = 200
Record = dict[str, Any]


def evaluate(learner: str, data: str, index: int, limit: float) -> Record:
    """Train a configuration of ``learner`` on the folds of ``data``, see ``measure``.

    The record of the library's default, which differs between data sets, has its ``values``.
    """
    folds = prepared(data, LEARNERS[learner].scaled)
    values = configuration(learner, index, folds[0][:2])
    record = measure(learner, values, folds, limit)
    return record | {"values": values} if index == LIBRARY else record


def measure(learner: str, values: Values, folds: list[Fold], limit: float) -> Record:
    """Train a configuration on some folds, see ``train``."""
    own = LEARNERS[learner]
    return train(partial(own.build, values), own.task, folds, limit)


def train(make: Callable[[], Any], task: Task, folds: list[Fold], limit: float) -> Record:
    """Train the models that ``make`` returns on some folds.

    If fit and prediction of a fold take more than ``limit`` CPU seconds, this process is killed.

    Returns:
        ``status`` ("complete" or "failed"), ``seconds`` of CPU summed over the folds (None where
        the clock stood still), the means of the task's ``METRICS`` over the folds (absent if it
        failed) and the ``message`` of the error.
    """
    losses, seconds = [], 0.0
    # Unconverged models, and batches larger than a small data set, are scored as they are.
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for X_train, y_train, X_test, y_test in folds:
            start = time.thread_time()
            signal.setitimer(signal.ITIMER_PROF, limit)
            try:
                model = make().fit(X_train, y_train)
                found = _predict(model, X_test, task)
                seconds += time.thread_time() - start
                losses.append(loss(y_test, *found))
            except Exception as error:  # whatever a library raises is recorded as a failure
                message = f"{type(error).__name__}: {error}"[:MESSAGE_LENGTH]
                seconds += time.thread_time() - start
                return unfinished("failed", seconds, message)
            finally:
                signal.setitimer(signal.ITIMER_PROF, 0)
    means = np.mean(losses, axis=0).round(6).tolist()
    return {
        "status": "complete",
        "seconds": _recorded(seconds),
        **dict(zip(METRICS[task], means, strict=True)),
        "message": "",
    }


def unfinished(status: str, seconds: float | None, message: str) -> Record:
    """The record of a configuration without losses."""
    return {
        "status": status,
        "seconds": _recorded(seconds),
        "message": message,
    }


def _recorded(seconds: float | None) -> float | None:
    """Seconds rounded to microseconds; None for 0, where the clock stood still."""
    return None if seconds is None else round(seconds, 6) or None


def _predict(model: Any, X: FloatArray, task: Task) -> tuple[Target, FloatArray | None]:
    """Numbers (n,) and None, or classes (n,) and scores (n, k), in one pass if possible."""
    if task == "regression":
        return np.asarray(model.predict(X), dtype=np.float64), None
    if hasattr(model, "predict_proba"):
        scores = np.asarray(model.predict_proba(X), dtype=np.float64)
        return model.classes_[scores.argmax(axis=1)], scores
    scores = np.asarray(model.decision_function(X), dtype=np.float64)
    if scores.ndim == 1:
        scores = np.column_stack([-scores, scores])
    return model.predict(X), scores


def loss(y: Target, predicted: Target, scores: FloatArray | None) -> tuple[float, ...]:
    """The ``METRICS`` of a test fold.

    For classes: 1 - accuracy, 1 - balanced accuracy, and 1 - area under the ROC curve. The area is
    that of each class against the rest by ``scores`` (n, k), averaged over the classes; for two
    classes it is that of the second.

    For numbers, which have no scores: 1 - R^2, and the mean absolute error divided by that of the
    median of ``y``. Both are 0 for perfect predictions and 1 for the best constant.

    Raises:
        ValueError: If a score or a prediction is not finite.
    """
    if scores is None:
        if not np.isfinite(predicted).all():
            raise ValueError("the model's predictions are not finite")
        median = mean_absolute_error(y, np.full(len(y), np.median(y)))
        r2, absolute = r2_score(y, predicted), mean_absolute_error(y, predicted)
        return 1.0 - float(r2), float(absolute) / median
    if not np.isfinite(scores).all():
        raise ValueError("the model's scores are not finite")
    k = scores.shape[1]
    areas = [roc_auc_score(y == c, scores[:, c]) for c in (range(k) if k > 2 else [1])]
    right, recall = accuracy_score(y, predicted), balanced_accuracy_score(y, predicted)
    return 1.0 - float(right), 1.0 - float(recall), 1.0 - float(np.mean(areas))
