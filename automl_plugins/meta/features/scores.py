"""What a landmarker's pooled out-of-fold predictions are worth."""

from __future__ import annotations

import numpy as np
from scipy.stats import rankdata, spearmanr
from sklearn.metrics import cohen_kappa_score, r2_score

from automl_plugins.meta.features.table import FloatArray, IntArray

CLASSIFICATION = ("AUC", "ErrRate", "Kappa")
REGRESSION = ("R2", "RAE", "Spearman")


def classification_scores(y: IntArray, scores: FloatArray) -> tuple[float, float, float]:
    """AUC, error rate and Cohen's kappa.

    The AUC is the mean over the classes, each against the rest, weighted by their frequency.

    Args:
        y: Class codes (n,), at least two distinct.
        scores: Class scores (n, K); the largest is the prediction, the first where several are.
    """
    n, k = scores.shape
    positives = np.bincount(y, minlength=k).astype(np.float64)
    sums = np.bincount(y, weights=rankdata(scores, axis=0)[np.arange(n), y], minlength=k)
    present = positives > 0
    count, total = positives[present], sums[present]
    auc = (total - count * (count + 1.0) / 2.0) / (count * (n - count))
    predicted = scores.argmax(axis=1)
    return (
        float(np.average(auc, weights=count)),
        float((predicted != y).mean()),
        float(cohen_kappa_score(y, predicted)),
    )


def regression_scores(y: FloatArray, predicted: FloatArray) -> tuple[float, float, float]:
    """R2, relative absolute error and Spearman's correlation (0 for constant predictions).

    The relative absolute error is the mean absolute error over that of predicting the mean.
    """
    absolute = float(np.abs(y - predicted).mean() / np.abs(y - y.mean()).mean())
    varies = predicted.min() < predicted.max()
    rank = float(spearmanr(y, predicted).statistic) if varies else 0.0
    return float(r2_score(y, predicted)), absolute, rank
