"""Landmarkers: how well simple learners do in cross-validation on a subsample.

Sources: van Hoof (2018), appendix B (names as on OpenML, where Weka computes them); Pfahringer et
al. (2000). A learner's scores are those of its pooled predictions in 3 stratified folds.
"""

from __future__ import annotations

from functools import partial
from math import sqrt

import numpy as np
from scipy.stats import rankdata, spearmanr
from sklearn.metrics import cohen_kappa_score, r2_score

from automl_plugins.meta.features import information as cfs
from automl_plugins.meta.features import learners
from automl_plugins.meta.features.encoding import Encoded, encode, folds, subsample, varies
from automl_plugins.meta.features.information import target_bins
from automl_plugins.meta.features.learners import Labels, Learner
from automl_plugins.meta.features.statistical import standardised
from automl_plugins.meta.features.table import Column, FloatArray, IntArray, Target, Task
from automl_plugins.meta.features.units import Clock, Outcome, Unit
from automl_plugins.streams import Streams

FOLDS = 3
_FEWEST_ROWS = 2 * FOLDS
_MANY_CLASSES = 10
_FEWER_ROWS = 500

_CFS = "CfsSubsetEval_"


def _catalogue(task: Task) -> dict[tuple[str, ...], Learner]:
    """Prefixes of the names -> learner, with one prefix per variant."""
    simple: dict[str, Learner] = {"DecisionStump": learners.decision_stump}
    if task == "classification":
        simple["NaiveBayes"] = learners.naive_bayes
    else:
        simple["LinearRegression"] = learners.linear_regression
    simple["kNN1N"] = learners.nearest_neighbour
    found: dict[tuple[str, ...], Learner] = {(name,): simple[name] for name in simple}
    if task == "classification":
        found[tuple(f"J48.{c}." for c in learners.CONFIDENCES)] = learners.pruned_trees
    else:
        found[tuple(f"CART.{a}." for a in learners.ALPHAS)] = learners.cost_complexity_trees
    found |= {(f"REPTreeDepth{d}",): learners.rep_tree(d) for d in (1, 2, 3)}
    found |= {(f"RandomTreeDepth{d}",): learners.random_tree(d) for d in (1, 2, 3)}
    return found | {(_CFS + name,): simple[name] for name in simple}


def _named(prefix: str, task: Task) -> tuple[str, ...]:
    metrics = CLASSIFICATION if task == "classification" else REGRESSION
    return tuple(prefix + metric for metric in metrics)


def landmark_rows(most: int, n_classes: int) -> int:
    """Rows of the subsample: ``most``, divided by sqrt(K / 10) above K = 10 classes.

    The time of a tree grows with rows x classes. Not below 500 for that reason.
    """
    if n_classes <= _MANY_CLASSES:
        return most
    return min(most, max(_FEWER_ROWS, round(most * sqrt(_MANY_CLASSES / n_classes))))


class NoLandmarkError(Exception):
    """The data allow no landmarker; the message says why."""


class Sample:
    """The rows and columns that every landmarker sees, encoded on first use.

    ``max_rows`` is for ``landmark_rows``; of more columns that vary than ``max_columns`` some are
    drawn at random.
    """

    def __init__(
        self,
        columns: list[Column],
        target: Target,
        *,
        max_rows: int,
        max_columns: int,
        streams: Streams,
    ) -> None:
        self._columns, self._target = columns, target
        self._max_rows, self._max_columns = max_rows, max_columns
        self._streams = streams
        self._prepared: tuple[Encoded, Labels, IntArray] | None = None
        self._cfs: dict[int, list[int]] = {}

    def prepared(self, clock: Clock) -> tuple[Encoded, Labels, IntArray]:
        """Columns, target (m,) and fold (m,); NoLandmarkError where too few."""
        if self._prepared is None:
            self._prepared = self._prepare(clock)
        return self._prepared

    def _prepare(self, clock: Clock) -> tuple[Encoded, Labels, IntArray]:
        rng = partial(self._streams.generator, "meta-features")
        size = landmark_rows(self._max_rows, self._target.n_classes)
        rows = subsample(self._target.values, size, rng(0))
        y = self._target.take(rows).values
        if len(y) < _FEWEST_ROWS:
            raise NoLandmarkError(f"{len(y)} rows, landmarkers need {_FEWEST_ROWS}.")
        if (y == y[0]).all():
            raise NoLandmarkError("the target is constant.")
        if self._target.task == "regression":
            scaled = standardised(y.astype(np.float64))
            if scaled is None:
                raise NoLandmarkError("the target is constant but for rounding.")
            y = scaled
        else:
            y = np.unique(y, return_inverse=True)[1]  # rare classes may be absent
        clock.check()
        varying = [c for c in (column.take(rows) for column in self._columns) if varies(c)]
        if len(varying) > self._max_columns:
            keep = rng(1).permutation(len(varying))[: self._max_columns]
            varying = [varying[j] for j in sorted(keep)]
        clock.check()
        encoded = encode(varying)
        if encoded is None:
            raise NoLandmarkError("no column varies.")
        return encoded, y, folds(y, FOLDS, rng(2))

    def selected(self, fold: int, train: Encoded, y: Labels, clock: Clock) -> list[int]:
        """The columns CFS selects on the training rows of a fold, computed once."""
        if fold not in self._cfs:
            classes = target_bins(Target(self._target.task, y))
            self._cfs[fold] = cfs.select(train.codes, classes, clock=clock)
        return self._cfs[fold]


def units(sample: Sample | None, task: Task, seed: int) -> list[Unit]:
    """One unit per learner."""
    return [
        Unit(
            tuple(name for prefix in prefixes for name in _named(prefix, task)),
            partial(_landmark, sample, prefixes, learner, task, seed),
        )
        for prefixes, learner in _catalogue(task).items()
    ]


def _landmark(
    sample: Sample | None,
    prefixes: tuple[str, ...],
    learner: Learner,
    task: Task,
    seed: int,
    clock: Clock,
) -> Outcome:
    assert sample is not None  # units without one are asked for their names only
    try:
        columns, y, fold = sample.prepared(clock)
    except NoLandmarkError as reason:
        return {name: f"no landmarkers: {reason}" for p in prefixes for name in _named(p, task)}
    n_classes = int(y.max()) + 1 if task == "classification" else 0
    pooled: list[FloatArray] = [
        np.full((len(y), n_classes) if n_classes else len(y), np.nan) for _ in prefixes
    ]
    for k in range(FOLDS):
        clock.check()
        train, test = np.flatnonzero(fold != k), np.flatnonzero(fold == k)
        seen, unseen = columns.take(train), columns.take(test)
        if prefixes[0].startswith(_CFS):
            chosen = sample.selected(k, seen, y[train], clock)
            seen, unseen = seen.select(chosen), unseen.select(chosen)
        for out, predicted in zip(
            pooled, learner(seen, y[train], unseen, n_classes, seed), strict=True
        ):
            out[test] = predicted
    found: dict[str, float | str] = {}
    for prefix, predictions in zip(prefixes, pooled, strict=True):
        clock.check()
        if not np.isfinite(predictions).all():
            found |= dict.fromkeys(_named(prefix, task), "some predictions are not finite.")
            continue
        scored = (
            classification_scores(y.astype(np.int64), predictions)
            if task == "classification"
            else regression_scores(y.astype(np.float64), predictions)
        )
        found |= dict(zip(_named(prefix, task), scored, strict=True))
    return found


CLASSIFICATION = ("AUC", "ErrRate", "Kappa")
REGRESSION = ("R2", "RAE", "Spearman")


def classification_scores(y: IntArray, scores: FloatArray) -> tuple[float, float, float]:
    """AUC, error rate and Cohen's kappa of class scores (n, K); the largest is the prediction.

    The AUC is the mean over the classes, each against the rest, weighted by their frequency.
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
    """R2, absolute error relative to that of the mean, Spearman's correlation (0 if constant)."""
    absolute = float(np.abs(y - predicted).mean() / np.abs(y - y.mean()).mean())
    varies = predicted.min() < predicted.max()
    rank = float(spearmanr(y, predicted).statistic) if varies else 0.0
    return float(r2_score(y, predicted)), absolute, rank
