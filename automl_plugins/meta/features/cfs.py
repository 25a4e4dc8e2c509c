"""Correlation-based feature selection (Hall 1999): columns that predict the class, not each other.

The merit of a set S of k columns is, with U the symmetrical uncertainty::

    M(S) = k mean U(f, class) / sqrt(k + k (k - 1) mean U(f, g)),    f != g in S

Best-first search forward from the empty set, which ends after 5 expansions in a row without a
better set, as in Weka's ``BestFirst -D 1 -N 5``. Weka's addition of locally predictive columns
is left out, and the numbers come in bins of equal frequency instead of the supervised ones.
"""

from __future__ import annotations

import heapq

import numpy as np

from automl_plugins.meta.features.budget import Clock
from automl_plugins.meta.features.information import entropy
from automl_plugins.meta.features.table import FloatArray, IntArray

_STALE = 5
_EPSILON = 1e-5  # a better set is better by more than this, as in Weka


def symmetrical_uncertainty(a: IntArray, b: IntArray) -> float:
    """2 I(a; b) / (H(a) + H(b)) of codes (n,), in [0, 1]; 0 if both are constant."""
    return float(_uncertainties(a[:, None], np.array([entropy(a)]), b)[0])


def _uncertainties(codes: IntArray, entropies: FloatArray, b: IntArray) -> FloatArray:
    """``symmetrical_uncertainty`` of b (n,) with codes (n, p), whose entropies (p,) are given."""
    base = int(b.max()) + 1
    joint = np.array([entropy(column * base + b) for column in codes.T])
    total = entropies + entropy(b)
    gain = np.maximum(0.0, total - joint)
    return np.asarray(np.divide(2.0 * gain, total, out=np.zeros_like(total), where=total > 0))


def merit(with_class: FloatArray, among: FloatArray) -> float:
    """M(S) from U(f, class) (k,) and the matrix U(f, g) (k, k), whose diagonal is not read."""
    k = len(with_class)
    off = float(among.sum() - np.trace(among))
    return float(with_class.sum() / np.sqrt(k + off))


def select(
    codes: IntArray, y: IntArray, *, most: int = 50, clock: Clock | None = None
) -> list[int]:
    """The columns of the best set found, ascending; never empty.

    Args:
        codes: Codes >= 0 of p columns, shape (n, p), n and p >= 1.
        y: Class codes (n,) >= 0.
        most: Largest size of a set.
        clock: Asked between expansions.

    Raises:
        TimeUpError: If the clock says so.
    """
    p = codes.shape[1]
    entropies = np.array([entropy(column) for column in codes.T])
    with_class = _uncertainties(codes, entropies, y)
    among: dict[int, FloatArray] = {}
    best, best_merit = [int(np.argmax(with_class))], -1.0
    # an entry: -merit, order of insertion, the set, sum of U(f, class), sum of U(f, g) over f != g
    queue: list[tuple[float, int, tuple[int, ...], float, float]] = [(0.0, 0, (), 0.0, 0.0)]
    seen: set[frozenset[int]] = set()
    added = stale = 0
    while queue and stale < _STALE:
        if clock is not None:
            clock.check()
        _, _, chosen, class_sum, pair_sum = heapq.heappop(queue)
        if len(chosen) >= min(most, p):
            stale += 1
            continue
        for f in chosen:
            if f not in among:
                among[f] = _uncertainties(codes, entropies, codes[:, f])
        class_sums = class_sum + with_class
        pair_sums = pair_sum + 2.0 * sum((among[f] for f in chosen), np.zeros(p))
        merits = class_sums / np.sqrt(len(chosen) + 1 + pair_sums)
        improved = False
        for f in np.argsort(-merits, kind="stable").tolist():
            key = frozenset((*chosen, f))
            if f in chosen or key in seen:
                continue
            seen.add(key)
            added += 1
            entry = (*chosen, f)
            heapq.heappush(
                queue, (-merits[f], added, entry, float(class_sums[f]), float(pair_sums[f]))
            )
            if merits[f] > best_merit + _EPSILON:
                best, best_merit, improved = sorted(entry), float(merits[f]), True
        stale = 0 if improved else stale + 1
    return best
