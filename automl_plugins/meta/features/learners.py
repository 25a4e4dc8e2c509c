"""The learners of landmarkers: scikit-learn's nearest equivalents of Weka's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from math import sqrt
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import softmax
from scipy.stats import norm
from sklearn.linear_model import Ridge
from sklearn.naive_bayes import CategoricalNB, GaussianNB
from sklearn.neighbors import NearestNeighbors
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from automl_plugins.arrays import BoolArray, FloatArray, IntArray
from automl_plugins.meta.features.measures import cut_evenly
from automl_plugins.meta.features.table import Column
from automl_plugins.records.scores import rescale

_MOST_CATEGORIES = 32  # of one column
_MOST_INDICATORS = 256  # of all columns together, roughly

Block = npt.NDArray[np.float32]
Labels = npt.NDArray[Any]  # class codes or numbers (n,)


@dataclass(frozen=True)
class Encoded:
    """m rows of p columns, all of them varying.

    ``blocks`` has an array (m, w_j) for each column: a number scaled to [0, 1] with the median for
    missing values (w = 1), or the indicators of a nominal column's most frequent categories,
    divided by sqrt(2). ``codes`` are bins of the numbers, categories of the nominal columns; rare
    categories share a code, and so do missing values.
    """

    blocks: tuple[Block, ...]
    codes: IntArray  # (m, p)
    nominal: BoolArray  # which columns are nominal (p,)

    @cached_property
    def matrix(self) -> Block:
        """All blocks side by side; its Euclidean distances are those of Weka's IBk.

        A difference in category counts 1, as does the whole range of a number.
        """
        return np.ascontiguousarray(np.hstack(self.blocks))

    def take(self, rows: IntArray) -> Encoded:
        """The same columns at these rows."""
        return Encoded(tuple(b[rows] for b in self.blocks), self.codes[rows], self.nominal)

    def select(self, columns: list[int]) -> Encoded:
        """The same rows of these columns."""
        blocks = tuple(self.blocks[j] for j in columns)
        return Encoded(blocks, self.codes[:, columns], self.nominal[columns])


def encode(columns: list[Column]) -> Encoded:
    """Encode columns, at least one and all varying, without a look at the target.

    A missing category is a category. Of a nominal column the 32 most frequent categories keep
    their own code and indicator, less if there are more than 8 such columns (256 indicators in
    all); the others share a code and have no indicator.
    """
    nominal = np.array([column.nominal for column in columns])
    most = max(2, min(_MOST_CATEGORIES, _MOST_INDICATORS // max(1, int(nominal.sum()))))
    pairs = [
        _encode_categories(column.values, most) if column.nominal else _encode_number(column)
        for column in columns
    ]
    codes = np.column_stack([codes for _, codes in pairs])
    return Encoded(tuple(block for block, _ in pairs), codes, nominal)


def _encode_number(column: Column) -> tuple[Block, IntArray]:
    missing, known = column.missing, column.known.astype(np.float64)
    codes = np.empty(len(missing), dtype=np.int64)
    codes[~missing] = cut_evenly(known)
    codes[missing] = int(codes[~missing].max()) + 1
    x = np.where(missing, np.median(known), column.values)
    return rescale(x, known.min(), known.max()).astype(np.float32)[:, None], codes


def _encode_categories(values: npt.NDArray[Any], most: int) -> tuple[Block, IntArray]:
    distinct, first, inverse, counts = np.unique(
        values, return_index=True, return_inverse=True, return_counts=True
    )
    order = np.lexsort((first, -counts))  # the most frequent, then the first to appear
    codes = np.minimum(np.argsort(order)[inverse], most)
    width = min(len(distinct), most)
    return (codes[:, None] == np.arange(width)).astype(np.float32) / np.float32(sqrt(2.0)), codes


def stratified_order(y: Labels, rng: np.random.Generator) -> IntArray:
    """Row numbers (n,) sorted by the target, in random order where it ties."""
    return np.lexsort((rng.random(len(y)), y))


def divide(y: Labels, k: int, rng: np.random.Generator) -> IntArray:
    """The fold in [0, k) of each row (n,), by classes or by the rank of a number.

    Folds differ by at most one row in size, and by at most one row in each class.
    """
    fold = np.empty(len(y), dtype=np.int64)
    fold[stratified_order(y, rng)] = np.arange(len(y)) % k
    return fold


@dataclass(frozen=True)
class Split:
    """What a learner gets: training rows and their target, test rows, K (0: regression), seed."""

    train: Encoded
    y: Labels
    test: Encoded
    n_classes: int
    seed: int


Learner = Callable[[Split], tuple[FloatArray, ...]]
"""Returns predictions for each of its variants: class scores (m, K) or numbers (m,)."""

CONFIDENCES = {"00001": 1e-5, "0001": 1e-4, "001": 1e-3}
ALPHAS = {"001": 1e-3, "01": 1e-2, "1": 1e-1}


def _make_tree(split: Split, **options: Any) -> Any:
    if split.n_classes:
        return DecisionTreeClassifier(criterion="entropy", random_state=split.seed, **options)
    return DecisionTreeRegressor(random_state=split.seed, **options)


def _node_values(model: Any, n_classes: int) -> FloatArray:
    """Class frequencies (nodes, K) or means (nodes,) of every node."""
    values = model.tree_.value[:, 0, :]
    if not n_classes:
        return np.asarray(values[:, 0], dtype=np.float64)
    scores = np.zeros((len(values), n_classes))
    scores[:, model.classes_] = values  # others have no training row
    return scores


def decision_stump(split: Split) -> tuple[FloatArray, ...]:
    """Weka's DecisionStump: one split by information gain (variance for regression)."""
    return _predict_by(_make_tree(split, max_depth=1), split)


def random_tree(split: Split, depth: int) -> tuple[FloatArray, ...]:
    """Weka's RandomTree: the best split among log2(p) + 1 random columns, not pruned."""
    p = split.train.matrix.shape[1]
    tree = _make_tree(split, max_depth=depth, max_features=int(np.log2(p)) + 1)
    return _predict_by(tree, split)


def _predict_by(tree: Any, split: Split) -> tuple[FloatArray, ...]:
    tree.fit(split.train.matrix, split.y)
    return (_node_values(tree, split.n_classes)[tree.apply(split.test.matrix)],)


def rep_tree(split: Split, depth: int) -> tuple[FloatArray, ...]:
    """Weka's REPTree: grown on two thirds, pruned by the errors on the rest, then refilled."""
    X, y, n_classes = split.train.matrix, split.y, split.n_classes
    held = divide(y, 3, np.random.default_rng(split.seed)) == 0
    model = _make_tree(split, max_depth=depth, min_samples_leaf=2).fit(X[~held], y[~held])
    values = _node_values(model, n_classes)
    reached = model.decision_path(X[held]).T.tocsr()  # (nodes, held rows)
    grown = model.tree_.n_node_samples.astype(np.float64)
    count = np.asarray(reached.sum(axis=1)).reshape(-1)
    if n_classes:
        sums = reached @ np.eye(n_classes)[y[held]]
        cost = count - sums[np.arange(len(sums)), values.argmax(axis=1)]  # errors among held rows
        refilled = (values * grown[:, None] + sums) / (grown + count)[:, None]
    else:
        sums = reached @ y[held]
        # Sum of (y - value)^2 over the held rows that reach the node.
        cost = reached @ (y[held] ** 2) - 2.0 * values * sums + count * values**2
        refilled = (values * grown + sums) / (grown + count)
    return (refilled[prune(model.tree_, cost)[model.apply(split.test.matrix)]],)


def pruned_trees(split: Split) -> tuple[FloatArray, ...]:
    """Weka's J48 at each confidence: a full entropy tree, then error-based pruning.

    Splits are binary and by information gain (C4.5 has the gain ratio and many-way splits). The
    pruning is C4.5's without subtree raising.
    """
    model = _make_tree(split, min_samples_leaf=2).fit(split.train.matrix, split.y)
    values, leaves = _node_values(model, split.n_classes), model.apply(split.test.matrix)
    n = model.tree_.n_node_samples.astype(np.float64)
    # Values are shares of the classes; rounding makes whole errors of them again.
    errors = np.clip(np.round(n * (1.0 - model.tree_.value[:, 0, :].max(axis=1))), 0.0, n)
    return tuple(
        # C4.5 prunes where a leaf costs up to a tenth of an error more.
        values[prune(model.tree_, errors + extra_errors(n, errors, c), tolerance=0.1)[leaves]]
        for c in CONFIDENCES.values()
    )


def cost_complexity_trees(split: Split) -> tuple[FloatArray, ...]:
    """Regression's counterpart of J48: CART with pruning at three alphas (in target variances)."""
    spread = float(np.var(split.y))
    trees = [_make_tree(split, min_samples_leaf=2, ccp_alpha=a * spread) for a in ALPHAS.values()]
    return tuple(t.fit(split.train.matrix, split.y).predict(split.test.matrix) for t in trees)


def naive_bayes(split: Split) -> tuple[FloatArray, ...]:
    """Weka's NaiveBayes: normal densities for numbers, add-one frequencies for categories."""
    train, test = split.train, split.test
    classes, local = np.unique(split.y, return_inverse=True)
    prior = np.log(np.bincount(local) / len(local))
    joint = np.tile(prior, (len(test.codes), 1))
    columns = np.flatnonzero(~train.nominal).tolist()
    if columns:
        numbers, asked = (rows.select(columns).matrix.astype(np.float64) for rows in (train, test))
        # Each of the two models has the prior in it, which counts once.
        joint += GaussianNB().fit(numbers, local).predict_joint_log_proba(asked) - prior
    if train.nominal.any():
        codes, asked_codes = train.codes[:, train.nominal], test.codes[:, train.nominal]
        # Test rows may have codes that no training row has.
        width = np.maximum(codes.max(axis=0), asked_codes.max(axis=0)) + 1
        frequencies = CategoricalNB(min_categories=width).fit(codes, local)
        joint += frequencies.predict_joint_log_proba(asked_codes) - prior
    scores = np.zeros((len(joint), split.n_classes))
    scores[:, classes] = softmax(joint, axis=1)
    return (scores,)


def linear_regression(split: Split) -> tuple[FloatArray, ...]:
    """Regression's counterpart of naive Bayes: ridge regression, penalty 1 on [0, 1] columns."""
    # It computes in the precision of its input, as ``GaussianNB`` does.
    model = Ridge(alpha=1.0).fit(split.train.matrix.astype(np.float64), split.y)
    return (np.asarray(model.predict(split.test.matrix.astype(np.float64)), dtype=np.float64),)


def nearest_neighbour(split: Split) -> tuple[FloatArray, ...]:
    """Weka's IBk with k = 1."""
    # Of equally near rows the first; trees, which scikit-learn may choose, take any of them.
    neighbours = NearestNeighbors(n_neighbors=1, algorithm="brute").fit(split.train.matrix)
    y = split.y[neighbours.kneighbors(split.test.matrix, return_distance=False)[:, 0]]
    return (np.eye(split.n_classes)[y] if split.n_classes else y.astype(np.float64),)


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
    # Half a row short of all wrong, or less: as in Weka; C4.5 itself adds 0.67 (n - e).
    many = np.where(low + 0.5 >= n, np.maximum(n - low, 0.0), limit * n - low)
    return np.where(e < 1.0, none + e * (many - none), many)


def prune(tree: Any, leaf_cost: npt.ArrayLike, *, tolerance: float = 0.0) -> IntArray:
    """Where the path to each node (m,) of a fitted ``tree_`` ends once it is pruned, bottom-up.

    A subtree becomes a leaf if that costs (``leaf_cost``) at most ``tolerance`` more than it does.
    """
    left, right = tree.children_left, tree.children_right
    own = np.asarray(leaf_cost, dtype=np.float64)
    cost = own.copy()
    cut = left < 0
    # Ascending, so parents come first: scikit-learn numbers children after their parents.
    inner = np.flatnonzero(~cut).tolist()
    for node in reversed(inner):
        below = cost[left[node]] + cost[right[node]]
        if own[node] <= below + tolerance:
            cut[node] = True
        else:
            cost[node] = below
    end = np.arange(len(cost))
    for node in inner:
        if cut[end[node]]:
            end[left[node]] = end[right[node]] = end[node]
    return end
