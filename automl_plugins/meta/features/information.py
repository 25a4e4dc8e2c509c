"""Entropy of the columns and their mutual information with the target, in bits.

Names as on OpenML. There only nominal columns count; here numeric ones count too, cut into at most
10 bins of equal frequency, and so is a numeric target. Missing values are left out, column by
column. Constant columns count, with an entropy of 0; columns without any value do not.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from automl_plugins.meta.features.aggregate import prefixed, summarise
from automl_plugins.meta.features.budget import Clock, Outcome, Unit
from automl_plugins.meta.features.table import Column, FloatArray, IntArray
from automl_plugins.meta.features.target import Target, Task

BINS = 10

_ENTROPY = prefixed("AttributeEntropy")
_MUTUAL = prefixed("MutualInformation")
_RATIOS = ("EquivalentNumberOfAtts", "MeanNoiseToSignalRatio")
_COLUMNS = (*_ENTROPY.values(), *_MUTUAL.values(), *_RATIOS)


def names(task: Task) -> tuple[str, ...]:
    """The features of this group; ``ClassEntropy`` is among the simple ones."""
    return _COLUMNS + (() if task == "classification" else ("TargetEntropy",))


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
