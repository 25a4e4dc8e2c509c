"""Pruning of a fitted scikit-learn tree: bottom-up replacement of subtrees by leaves."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.stats import norm

from automl_plugins.meta.features.table import FloatArray, IntArray


def extra_errors(n: FloatArray, e: FloatArray, confidence: float) -> FloatArray:
    """C4.5's pessimistic allowance: errors to add to e observed ones among n rows.

    The upper limit of a binomial proportion at this confidence by the normal approximation with
    continuity correction; exact for e = 0, interpolated up to e = 1 (Quinlan 1993, chapter 4).

    Args:
        n: Rows (m,), > 0.
        e: Errors (m,), 0 <= e <= n.
        confidence: In (0, 0.5]; the smaller, the more is added, the more is pruned.
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
    """Where the path to each node (m,) ends once the tree is pruned.

    A subtree becomes a leaf if that costs at most ``tolerance`` more than the (pruned) subtree.

    Args:
        tree: ``tree_`` of a fitted tree: children come after their parents.
        leaf_cost: Cost of each node (m,) were it a leaf.
        tolerance: See above.
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
