"""Entropy of the columns, their mutual information with the target, and a selection by it.

Names as on OpenML, in bits. There only nominal columns count; here numeric ones count too, cut
into at most 10 bins of equal frequency, and so is a numeric target. Missing values are left out,
column by column. Constant columns count, with an entropy of 0; columns without any value do not.

``select`` is correlation-based feature selection (Hall 1999): columns that predict the class, not
each other. The merit of a set S of k columns is, with U the symmetrical uncertainty::

    M(S) = k mean U(f, class) / sqrt(k + k (k - 1) mean U(f, g)),    f != g in S

Best-first search forward from the empty set, which ends after 5 expansions in a row without a
better set, as in Weka's ``BestFirst -D 1 -N 5``. Weka's addition of locally predictive columns
is left out, and the numbers come in bins of equal frequency instead of the supervised ones.
"""

from __future__ import annotations

import heapq

import numpy as np
import numpy.typing as npt

from automl_plugins.meta.features.table import Column, FloatArray, IntArray, Target
from automl_plugins.meta.features.units import Clock, Outcome, Unit, prefixed, summarise

BINS = 10

_ENTROPY = prefixed("AttributeEntropy")
_MUTUAL = prefixed("MutualInformation")
_RATIOS = ("EquivalentNumberOfAtts", "MeanNoiseToSignalRatio")
_COLUMNS = (*_ENTROPY.values(), *_MUTUAL.values(), *_RATIOS)


def units(columns: list[Column], target: Target) -> list[Unit]:
    """All columns as one unit: they share the binning."""
    found = [Unit(_COLUMNS, lambda clock: column_information(columns, target_bins(target), clock))]
    if target.task == "regression":
        found.append(Unit(("TargetEntropy",), lambda clock: target_entropy(target)))
    return found


def target_entropy(target: Target) -> Outcome:
    """Entropy of a numeric target in its bins."""
    return {"TargetEntropy": entropy(target_bins(target))}


def target_bins(target: Target) -> IntArray:
    """The classes (n,), or the bins of a numeric target."""
    if target.task == "classification":
        return target.values.astype(np.int64, copy=False)
    return equal_frequency(target.values.astype(np.float64))


def equal_frequency(x: FloatArray, bins: int = BINS) -> IntArray:
    """Bins (n,) of values (n,) without NaN; equal values share a bin.

    Up to ``bins`` distinct values are a bin each. Otherwise a bin ends at each quantile, those
    at the maximum moved to the value below it.
    """
    values = np.unique(x)
    if len(values) <= bins:
        return np.searchsorted(values, x)
    edges = np.quantile(x, np.arange(1, bins) / bins, method="inverted_cdf")
    return np.searchsorted(np.unique(np.minimum(edges, values[-2])), x)


def entropy(codes: npt.NDArray[np.int64]) -> float:
    """Entropy in bits of codes (n,) >= 0, n >= 1."""
    n = len(codes)
    if int(codes.max()) <= 4 * n + 10_000:
        counts = np.bincount(codes)
        counts = counts[counts > 0]
    else:
        counts = np.unique(codes, return_counts=True)[1]
    return max(0.0, float(np.log2(n) - (counts * np.log2(counts)).sum() / n))


def mutual_information(a: IntArray, b: IntArray) -> float:
    """I(a; b) = H(a) + H(b) - H(a, b) in bits of codes (n,) >= 0, n >= 1."""
    joint = a * (int(b.max()) + 1) + b
    return max(0.0, entropy(a) + entropy(b) - entropy(joint))


def column_information(columns: list[Column], y: IntArray, clock: Clock) -> Outcome:
    """Entropies, mutual information with the target bins (n,), and their ratios.

    ``EquivalentNumberOfAtts`` = H(y) / mean I: how many columns of average information would
    explain the target, were they independent. ``MeanNoiseToSignalRatio`` =
    (mean H - mean I) / mean I.
    """
    entropies: list[float] = []
    mutual: list[float] = []
    for column in columns:
        clock.check()
        missing = column.missing
        if missing.all():
            continue
        known = column.values[~missing]
        codes = known if column.nominal else equal_frequency(known.astype(np.float64, copy=False))
        codes = codes.astype(np.int64, copy=False)
        entropies.append(entropy(codes))
        mutual.append(mutual_information(codes, y[~missing]))
    why = "no column has a value."
    found = summarise(_ENTROPY, entropies, why) | summarise(_MUTUAL, mutual, why)
    signal = float(np.mean(mutual)) if mutual else 0.0
    if signal < 1e-9:
        return found | dict.fromkeys(_RATIOS, "no column has information on the target.")
    noise = float(np.mean(entropies)) - signal
    ratios = (entropy(y) / signal, noise / signal)
    return found | dict(zip(_RATIOS, ratios, strict=True))


_STALE = 5
_EPSILON = 1e-5  # a better set is better by more than this, as in Weka


def _uncertainties(codes: IntArray, entropies: FloatArray, b: IntArray) -> FloatArray:
    """2 I(f; b) / (H(f) + H(b)) (p,) of columns (n, p), 0 for two constants."""
    base = int(b.max()) + 1
    joint = np.array([entropy(column * base + b) for column in codes.T])
    total = entropies + entropy(b)
    gain = np.maximum(0.0, total - joint)
    return np.asarray(np.divide(2.0 * gain, total, out=np.zeros_like(total), where=total > 0))


def select(
    codes: IntArray, y: IntArray, *, most: int = 50, clock: Clock | None = None
) -> list[int]:
    """The columns of the best set found, ascending; never empty.

    ``codes`` (n, p) and classes ``y`` (n,) are >= 0; ``most`` is the largest size of a set.
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
