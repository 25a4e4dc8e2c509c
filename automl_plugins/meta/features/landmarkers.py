"""Landmarkers: how well simple learners do in cross-validation on a subsample.

Sources: van Hoof (2018), appendix B (names as on OpenML, where Weka computes them); Pfahringer et
al. (2000). A learner's scores are those of its pooled predictions in 3 stratified folds.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from math import sqrt

import numpy as np
from scipy.stats import rankdata, spearmanr
from sklearn.metrics import cohen_kappa_score, r2_score

from automl_plugins.arrays import FloatArray, IntArray
from automl_plugins.meta.features import learners
from automl_plugins.meta.features.measures import (
    Check,
    NoValueError,
    Unit,
    Value,
    cut_target,
    entropy,
    standardise,
)
from automl_plugins.meta.features.table import Column, Target, Task
from automl_plugins.streams import Streams

_FOLDS = 3  # of the cross-validation of a landmarker
_FEWEST_ROWS = 2 * _FOLDS  # two to a fold
# See ``landmark_rows``.
_MANY_CLASSES = 10
_FEWER_ROWS = 500

_CFS = "CfsSubsetEval_"


def _catalogue(task: Task) -> dict[tuple[str, ...], learners.Learner]:
    """Prefixes of the names -> learner, with one prefix per variant."""
    simple: dict[str, learners.Learner] = {"DecisionStump": learners.decision_stump}
    if task == "classification":
        simple["NaiveBayes"] = learners.naive_bayes
        trees = {tuple(f"J48.{c}." for c in learners.CONFIDENCES): learners.pruned_trees}
    else:
        simple["LinearRegression"] = learners.linear_regression
        trees = {tuple(f"CART.{a}." for a in learners.ALPHAS): learners.cost_complexity_trees}
    simple["kNN1N"] = learners.nearest_neighbour
    depths = (1, 2, 3)
    return {
        **{(name,): learner for name, learner in simple.items()},
        **trees,
        **{(f"REPTreeDepth{d}",): partial(learners.rep_tree, depth=d) for d in depths},
        **{(f"RandomTreeDepth{d}",): partial(learners.random_tree, depth=d) for d in depths},
        **{(_CFS + name,): learner for name, learner in simple.items()},
    }


def landmark_units(
    columns: list[Column], target: Target, max_rows: int, max_columns: int, streams: Streams
) -> list[Unit]:
    """A unit for each learner; see ``meta_features`` for the limits."""
    metrics = ("AUC", "ErrRate", "Kappa")
    if target.task == "regression":
        metrics = ("R2", "RAE", "Spearman")
    sample = _Sample(columns, target, max_rows, max_columns, streams)
    return [
        Unit(
            tuple(prefix + metric for prefix in prefixes for metric in metrics),
            partial(_landmark, sample, prefixes, learner),
        )
        for prefixes, learner in _catalogue(target.task).items()
    ]


def landmark_rows(most: int, n_classes: int) -> int:
    """Rows of the subsample, see ``meta_features``: a tree takes the time of rows x classes."""
    if n_classes <= _MANY_CLASSES:
        return most
    return min(most, max(_FEWER_ROWS, round(most * sqrt(_MANY_CLASSES / n_classes))))


def subsample(y: learners.Labels, size: int, rng: np.random.Generator) -> IntArray:
    """At most ``size`` rows with the target's own distribution, in ascending order.

    Each class keeps its share to within one row, so a class with less than n / size rows may be
    left out.
    """
    n = len(y)
    if n <= size:
        return np.arange(n)
    # Every (n / size)-th row of the sorted target, from a random start.
    places = ((np.arange(size) + rng.random()) * (n / size)).astype(np.int64)
    return np.sort(learners.stratified_order(y, rng)[np.minimum(places, n - 1)])


@dataclass
class _Sample:
    """The rows and columns that every landmarker sees, encoded on first use."""

    columns: list[Column]
    target: Target
    max_rows: int
    max_columns: int
    streams: Streams
    _encoded: tuple[learners.Encoded, learners.Labels, IntArray] | None = None
    _selected: dict[int, list[int]] = field(default_factory=dict)

    def encode(self, check: Check) -> tuple[learners.Encoded, learners.Labels, IntArray]:
        """Columns, target (m,) and fold (m,); NoValueError if the data allow no landmarker."""
        if self._encoded is not None:
            return self._encoded
        rng = partial(self.streams.generator, "meta-features")
        size = landmark_rows(self.max_rows, self.target.n_classes)
        rows = subsample(self.target.values, size, rng(0))
        y = self.target.take(rows).values
        if len(y) < _FEWEST_ROWS:
            raise NoValueError(f"no landmarkers: {len(y)} rows, landmarkers need {_FEWEST_ROWS}.")
        if (y == y[0]).all():
            raise NoValueError("no landmarkers: the target is constant.")
        if self.target.task == "regression":
            scaled = standardise(y.astype(np.float64))
            if scaled is None:
                raise NoValueError("no landmarkers: the target is constant but for rounding.")
            y = scaled
        else:
            y = np.unique(y, return_inverse=True)[1]  # rare classes may be absent
        check()
        varying = [c for c in (column.take(rows) for column in self.columns) if c.varies]
        if not varying:
            raise NoValueError("no landmarkers: no column varies.")
        keep = sorted(rng(1).permutation(len(varying))[: self.max_columns])
        varying = [varying[j] for j in keep]
        check()
        self._encoded = learners.encode(varying), y, learners.divide(y, _FOLDS, rng(2))
        return self._encoded

    def select(self, fold: int, codes: IntArray, y: learners.Labels, check: Check) -> list[int]:
        """The columns CFS selects on the training rows of a fold, computed once."""
        if fold not in self._selected:
            classes = cut_target(Target(self.target.task, y))
            self._selected[fold] = select_columns(codes, classes, check)
        return self._selected[fold]


def _landmark(
    sample: _Sample, prefixes: tuple[str, ...], learner: learners.Learner, check: Check
) -> Sequence[Value]:
    columns, y, fold = sample.encode(check)
    n_classes = int(y.max()) + 1 if sample.target.task == "classification" else 0
    shape = (len(y), n_classes) if n_classes else (len(y),)
    # Over all folds: a rare class may be absent from one, which then has no AUC.
    pooled = [np.full(shape, np.nan) for _ in prefixes]
    seed = sample.streams.integer("meta-features", 3)
    for k in range(_FOLDS):
        check()
        train, test = np.flatnonzero(fold != k), np.flatnonzero(fold == k)
        seen, unseen = columns.take(train), columns.take(test)
        if prefixes[0].startswith(_CFS):
            chosen = sample.select(k, seen.codes, y[train], check)
            seen, unseen = seen.select(chosen), unseen.select(chosen)
        predicted = learner(learners.Split(seen, y[train], unseen, n_classes, seed))
        for out, variant in zip(pooled, predicted, strict=True):
            out[test] = variant
    found: list[Value] = []
    for predictions in pooled:
        check()
        if not np.isfinite(predictions).all():
            found += ["some predictions are not finite."] * 3
        elif n_classes:
            found += score_classes(y.astype(np.int64), predictions)
        else:
            found += score_numbers(y.astype(np.float64), predictions)
    return found


def score_classes(y: IntArray, scores: FloatArray) -> tuple[float, float, float]:
    """AUC, error rate and Cohen's kappa of class scores (n, K); the largest is the prediction.

    The AUC is the mean over the classes, each against the rest, weighted by their frequency.
    """
    n, k = scores.shape
    positives = np.bincount(y, minlength=k).astype(np.float64)
    sums = np.bincount(y, weights=rankdata(scores, axis=0)[np.arange(n), y], minlength=k)
    present = positives > 0
    count, total = positives[present], sums[present]
    # Mann and Whitney: the ranks of the rows of a class, less their ranks among themselves.
    # No class has all n rows: a constant target is refused in ``encode``.
    auc = (total - count * (count + 1.0) / 2.0) / (count * (n - count))
    predicted = scores.argmax(axis=1)
    kappa = float(cohen_kappa_score(y, predicted))
    return float(np.average(auc, weights=count)), float((predicted != y).mean()), kappa


def score_numbers(y: FloatArray, predicted: FloatArray) -> tuple[float, float, float]:
    """R2, absolute error relative to that of the mean, Spearman's correlation (0 if constant)."""
    absolute = float(np.abs(y - predicted).mean() / np.abs(y - y.mean()).mean())
    varies = predicted.min() < predicted.max()
    rank = float(spearmanr(y, predicted).statistic) if varies else 0.0
    return float(r2_score(y, predicted)), absolute, rank


_MOST_SELECTED = 50  # columns; the search takes time in proportion to their square
_STALE = 5  # expansions in a row without a better set, as in Weka
_EPSILON = 1e-5  # a better set is better by more than this, as in Weka


def select_columns(codes: IntArray, y: IntArray, check: Check) -> list[int]:
    """Correlation-based feature selection (Hall 1999): columns that predict y, not each other.

    The merit of a set S of k columns is, with U the symmetrical uncertainty::

        M(S) = k mean U(f, y) / sqrt(k + k (k - 1) mean U(f, g)),    f != g in S

    Best-first search forward from the empty set, which ends after 5 expansions in a row without a
    better set, as in Weka's ``BestFirst -D 1 -N 5``. Weka's addition of locally predictive columns
    is left out, and numbers come in bins of equal frequency instead of supervised ones.

    Returns:
        The columns of the best set found, ascending, of the codes (n, p) >= 0; never empty.
    """
    p = codes.shape[1]
    entropies = np.array([entropy(column) for column in codes.T])

    def uncertainties(b: IntArray) -> FloatArray:
        """2 I(f; b) / (H(f) + H(b)) of all columns (p,), 0 for two constants."""
        base = int(b.max()) + 1
        joint = np.array([entropy(column * base + b) for column in codes.T])
        total = entropies + entropy(b)
        gain = np.maximum(0.0, total - joint)
        return np.asarray(np.divide(2.0 * gain, total, out=np.zeros_like(total), where=total > 0))

    with_class = uncertainties(y)
    among: dict[int, FloatArray] = {}
    best, best_merit = [int(np.argmax(with_class))], -1.0
    # an entry: -merit, order of insertion, the set, sum of U(f, y), sum of U(f, g) over f != g
    queue: list[tuple[float, int, tuple[int, ...], float, float]] = [(0.0, 0, (), 0.0, 0.0)]
    seen: set[frozenset[int]] = set()
    stale = 0
    while queue and stale < _STALE:
        check()
        _, _, chosen, class_sum, pair_sum = heapq.heappop(queue)
        stale += 1
        if len(chosen) >= min(_MOST_SELECTED, p):
            continue
        for f in chosen:
            if f not in among:
                among[f] = uncertainties(codes[:, f])
        class_sums = class_sum + with_class
        pair_sums = pair_sum + 2.0 * sum((among[f] for f in chosen), np.zeros(p))
        # M of the set with each column (p,): means times k, and k (k - 1) pairs, are sums.
        merits = class_sums / np.sqrt(len(chosen) + 1 + pair_sums)
        for f in np.argsort(-merits, kind="stable").tolist():
            entry = (*chosen, f)
            key = frozenset(entry)
            if f in chosen or key in seen:
                continue
            seen.add(key)
            place = (entry, float(class_sums[f]), float(pair_sums[f]))
            heapq.heappush(queue, (-merits[f], len(seen), *place))  # of equal merits the oldest
            if merits[f] > best_merit + _EPSILON:
                best, best_merit, stale = sorted(entry), float(merits[f]), 0
    return best
