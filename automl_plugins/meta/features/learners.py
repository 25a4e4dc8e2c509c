"""The landmarkers' learners: scikit-learn's nearest equivalents of Weka's, and pruning of trees.

Each takes training rows, their target, test rows and a seed, and returns one array of predictions
per variant: class scores (m, K) for classification, K known beforehand, or numbers (m,).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.stats import norm
from sklearn.linear_model import Ridge
from sklearn.naive_bayes import CategoricalNB, GaussianNB
from sklearn.neighbors import NearestNeighbors
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from automl_plugins.meta.features.encoding import Encoded, folds
from automl_plugins.meta.features.table import FloatArray, IntArray

CONFIDENCES = {"00001": 1e-5, "0001": 1e-4, "001": 1e-3}
ALPHAS = {"001": 1e-3, "01": 1e-2, "1": 1e-1}

Labels = npt.NDArray[Any]  # class codes or numbers (n,)
Learner = Callable[[Encoded, Labels, Encoded, int, int], tuple[FloatArray, ...]]
"""(train, y, test, K or 0 for regression, seed) -> predictions of each variant."""


def _tree(n_classes: int, seed: int, **options: Any) -> Any:
    if n_classes:
        return DecisionTreeClassifier(criterion="entropy", random_state=seed, **options)
    return DecisionTreeRegressor(random_state=seed, **options)


def _node_values(model: Any, n_classes: int) -> FloatArray:
    """Class frequencies (nodes, K) or means (nodes,) of every node."""
    values = model.tree_.value[:, 0, :]
    if not n_classes:
        return np.asarray(values[:, 0], dtype=np.float64)
    scores = np.zeros((len(values), n_classes))
    scores[:, model.classes_] = values
    return scores


def _grown(options: Callable[[Encoded], dict[str, Any]]) -> Learner:
    def learner(
        train: Encoded, y: Labels, test: Encoded, n_classes: int, seed: int
    ) -> tuple[FloatArray, ...]:
        model = _tree(n_classes, seed, **options(train)).fit(train.matrix, y)
        return (_node_values(model, n_classes)[model.apply(test.matrix)],)

    return learner


decision_stump = _grown(lambda train: {"max_depth": 1})
"""Weka's DecisionStump: one split by information gain (variance for regression)."""


def random_tree(depth: int) -> Learner:
    """Weka's RandomTree: the best split among log2(p) + 1 random columns, not pruned."""
    return _grown(
        lambda train: {
            "max_depth": depth,
            "max_features": int(np.log2(train.matrix.shape[1])) + 1,
        }
    )


def rep_tree(depth: int) -> Learner:
    """Weka's REPTree: grown on two thirds, pruned by the errors on the rest, then refilled."""

    def learner(
        train: Encoded, y: Labels, test: Encoded, n_classes: int, seed: int
    ) -> tuple[FloatArray, ...]:
        held = folds(y, 3, np.random.default_rng(seed)) == 0
        if held.all() or not held.any():
            held = np.arange(len(y)) == 0
        model = _tree(n_classes, seed, max_depth=depth, min_samples_leaf=2)
        model.fit(train.matrix[~held], y[~held])
        values = _node_values(model, n_classes)
        reached = model.decision_path(train.matrix[held]).T.tocsr()  # (nodes, held rows)
        grown = model.tree_.n_node_samples.astype(np.float64)
        count = np.asarray(reached.sum(axis=1)).reshape(-1)
        if n_classes:
            sums = reached @ np.eye(n_classes)[y[held]]
            cost = count - sums[np.arange(len(sums)), values.argmax(axis=1)]
            refilled = (values * grown[:, None] + sums) / (grown + count)[:, None]
        else:
            sums = reached @ y[held]
            cost = reached @ (y[held] ** 2) - 2.0 * values * sums + count * values**2
            refilled = (values * grown + sums) / (grown + count)
        return (refilled[ends(model.tree_, cost)[model.apply(test.matrix)]],)

    return learner


def pruned_trees(
    train: Encoded, y: Labels, test: Encoded, n_classes: int, seed: int
) -> tuple[FloatArray, ...]:
    """Weka's J48, one variant per confidence: a full entropy tree, then error-based pruning.

    Splits are binary and by information gain (C4.5 has the gain ratio and many-way splits).
    """
    model = _tree(n_classes, seed, min_samples_leaf=2).fit(train.matrix, y)
    values, leaves = _node_values(model, n_classes), model.apply(test.matrix)
    return tuple(values[confidence_ends(model.tree_, c)[leaves]] for c in CONFIDENCES.values())


def cost_complexity_trees(
    train: Encoded, y: Labels, test: Encoded, n_classes: int, seed: int
) -> tuple[FloatArray, ...]:
    """Regression's counterpart of J48: CART with pruning at three alphas (in target variances)."""
    spread = float(np.var(y))
    found = []
    for alpha in ALPHAS.values():
        model = DecisionTreeRegressor(
            min_samples_leaf=2, ccp_alpha=alpha * spread, random_state=seed
        )
        found.append(model.fit(train.matrix, y).predict(test.matrix))
    return tuple(found)


def naive_bayes(
    train: Encoded, y: Labels, test: Encoded, n_classes: int, seed: int
) -> tuple[FloatArray, ...]:
    """Weka's NaiveBayes: normal densities for numbers, add-one frequencies for categories."""
    del seed
    classes, local = np.unique(y, return_inverse=True)
    prior = np.log(np.bincount(local) / len(local))
    joint = np.tile(prior, (len(test.codes), 1))
    if train.numbers.shape[1]:
        gaussian = GaussianNB().fit(train.numbers, local)
        joint += gaussian.predict_joint_log_proba(test.numbers) - prior
    if train.categories.shape[1]:
        width = np.maximum(train.categories.max(axis=0), test.categories.max(axis=0)) + 1
        frequencies = CategoricalNB(min_categories=width).fit(train.categories, local)
        joint += frequencies.predict_joint_log_proba(test.categories) - prior
    scores = np.zeros((len(joint), n_classes))
    likelihood = np.exp(joint - joint.max(axis=1, keepdims=True))
    scores[:, classes] = likelihood / likelihood.sum(axis=1, keepdims=True)
    return (scores,)


def linear_regression(
    train: Encoded, y: Labels, test: Encoded, n_classes: int, seed: int
) -> tuple[FloatArray, ...]:
    """Regression's counterpart of naive Bayes: ridge regression, penalty 1 on [0, 1] columns."""
    del n_classes, seed
    model = Ridge(alpha=1.0).fit(train.matrix.astype(np.float64), y)
    return (np.asarray(model.predict(test.matrix.astype(np.float64)), dtype=np.float64),)


def nearest_neighbour(
    train: Encoded, y: Labels, test: Encoded, n_classes: int, seed: int
) -> tuple[FloatArray, ...]:
    """Weka's IBk with k = 1."""
    del seed
    nearest: IntArray = (
        NearestNeighbors(n_neighbors=1, algorithm="brute")
        .fit(train.matrix)
        .kneighbors(test.matrix, return_distance=False)[:, 0]
    )
    return (np.eye(n_classes)[y[nearest]] if n_classes else y[nearest].astype(np.float64),)


def extra_errors(n: FloatArray, e: FloatArray, confidence: float) -> FloatArray:
    """C4.5's pessimistic allowance: errors to add to e (m,) observed ones among n (m,) rows.

    The upper limit of a binomial proportion at this confidence by the normal approximation with
    continuity correction; exact for e = 0, interpolated up to e = 1 (Quinlan 1993, chapter 4).
    """
    none = n * -np.expm1(np.log(confidence) / n)
    z = float(norm.isf(confidence))
    low = np.where(e < 1.0, 1.0, e)
    f = (low + 0.5) / n
    root = z * np.sqrt(np.maximum(0.0, f / n - f * f / n + z * z / (4.0 * n * n)))
    limit = (f + z * z / (2.0 * n) + root) / (1.0 + z * z / n)
    many = np.where(low + 0.5 >= n, np.maximum(n - low, 0.0), limit * n - low)
    return np.where(e < 1.0, none + e * (many - none), many)


def ends(tree: Any, leaf_cost: npt.ArrayLike, *, tolerance: float = 0.0) -> IntArray:
    """Where the path to each node (m,) of a fitted ``tree_`` ends once it is pruned, bottom-up.

    A subtree becomes a leaf if that costs (``leaf_cost``) at most ``tolerance`` more than it does.
    """
    left, right = tree.children_left, tree.children_right
    own = np.asarray(leaf_cost, dtype=np.float64)
    cost = own.copy()
    cut = left < 0
    for node in range(len(cost) - 1, -1, -1):
        if left[node] < 0:
            continue
        below = cost[left[node]] + cost[right[node]]
        if own[node] <= below + tolerance:
            cut[node] = True
        else:
            cost[node] = below
    end = np.arange(len(cost))
    for node in np.flatnonzero(left >= 0).tolist():
        if cut[end[node]]:
            end[left[node]] = end[right[node]] = end[node]
    return end


def confidence_ends(tree: Any, confidence: float) -> IntArray:
    """``ends`` of C4.5's error-based pruning of a classifier, without subtree raising."""
    n = tree.n_node_samples.astype(np.float64)
    errors = n * (1.0 - tree.value[:, 0, :].max(axis=1))
    errors = np.clip(np.round(errors), 0.0, n)
    return ends(tree, errors + extra_errors(n, errors, confidence), tolerance=0.1)
