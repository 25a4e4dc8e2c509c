"""Ranks of methods over tasks, distances to the minimum, and the groups of a rank diagram.

Notation of this package::

    N       tasks, the rows of a matrix of scores
    K       methods, its columns
    scores  (N, K), without NaN; infinite scores are the worst or best of their row
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.stats import rankdata

from automl_plugins.records.scores import rescale

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]


def score_matrix(scores: npt.ArrayLike) -> FloatArray:
    """The scores as floats (N, K).

    Raises:
        ValueError: If they are no matrix, empty, or NaN somewhere.
    """
    matrix = np.asarray(scores, dtype=np.float64)
    if matrix.ndim != 2 or not matrix.size:
        raise ValueError(f"scores must be a tasks x methods matrix, got shape {matrix.shape}.")
    if (gaps := int(np.isnan(matrix).sum())) > 0:
        raise ValueError(f"scores are NaN in {gaps} cells: leave out those tasks.")
    return matrix


def average_ranks(scores: npt.ArrayLike, *, higher_is_better: bool = False) -> FloatArray:
    """Mean over the tasks of the rank within the task; rank 1 is the best, ties share their mean.

    Args:
        scores: Scores (N, K).
        higher_is_better: Whether the largest score gets rank 1 rather than the least.

    Returns:
        Average ranks (K,) in [1, K], of sum K (K + 1) / 2.

    Raises:
        ValueError: If the scores are no matrix, empty, or NaN somewhere.
    """
    matrix = score_matrix(scores)
    ranks = rankdata(-matrix if higher_is_better else matrix, axis=1)
    return np.asarray(ranks.mean(axis=0), dtype=np.float64)


def distance_to_minimum(losses: npt.ArrayLike) -> FloatArray:
    """(loss - min) / (max - min) within each task; its mean over the tasks is the ADTM.

    The average distance to the minimum is that of Wistuba et al. (2016, section 5.3).
    Minimum and maximum are those of the finite losses of the task. A constant task has distance
    0 everywhere; a loss of -inf has distance 0 and one of +inf distance 1, also in a task that is
    constant without it.

    Args:
        losses: Losses (N, K).

    Returns:
        Distances (N, K) in [0, 1].

    Raises:
        ValueError: If the losses are no matrix, empty, or NaN somewhere.
    """
    matrix = score_matrix(losses)
    finite = np.where(np.isfinite(matrix), matrix, np.nan)
    low = np.fmin.reduce(finite, axis=1, keepdims=True)
    high = np.fmax.reduce(finite, axis=1, keepdims=True)
    return np.where(np.isfinite(matrix), rescale(finite, low, high), matrix > 0)


def cliques(not_different: npt.ArrayLike) -> list[tuple[int, ...]]:
    """Maximal groups of two or more methods no two of which are different.

    These are the maximal cliques of the graph whose edges are ``not_different``, found by the
    algorithm of Bron and Kerbosch (1973). "Not different" need not be transitive, nor follow the
    order of the ranks, so a method may be in several groups and a group may have gaps.

    Args:
        not_different: Symmetric matrix (K, K); the diagonal is not looked at.

    Returns:
        Groups of ascending column numbers, sorted.

    Raises:
        ValueError: If the matrix is not square and symmetric.
    """
    edges = np.asarray(not_different, dtype=np.bool_)
    if edges.ndim != 2 or not np.array_equal(edges, edges.T):
        raise ValueError("not_different must be a symmetric K x K matrix.")
    neighbours = [set(np.flatnonzero(row).tolist()) - {i} for i, row in enumerate(edges)]
    found: list[tuple[int, ...]] = []

    def extend(group: set[int], open_: set[int], done: set[int]) -> None:
        if not open_ and not done and len(group) > 1:
            found.append(tuple(sorted(group)))
        if not open_:
            return
        pivot = max(open_ | done, key=lambda i: len(neighbours[i] & open_))
        for i in sorted(open_ - neighbours[pivot]):
            extend(group | {i}, open_ & neighbours[i], done & neighbours[i])
            open_ = open_ - {i}
            done = done | {i}

    extend(set(), set(range(len(edges))), set())
    return sorted(found)
