"""Meta-features by formula: sizes, columns, target, moments, entropies.

Sources: van Hoof (2018), table 6.3 and appendix B (names as on OpenML); Wistuba et al. (2016),
table 1. Percentages lie in [0, 100], logarithms are natural, entropies are in bits, the kurtosis
is Fisher's (0 for a normal distribution), moments are the population's. Missing values are left
out, column by column.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import log

import numpy as np
import numpy.typing as npt
from scipy import stats

from automl_plugins.arrays import FloatArray, IntArray
from automl_plugins.meta.features.table import Column, Target

Value = float | str
"""A meta-feature, or the sentence that says why there is none."""
Check = Callable[[], None]
"""Raises NoValueError when time is up: called between steps, never inside one."""


class NoValueError(Exception):
    """None of the meta-features that are computed together has a value; the message says why."""


@dataclass(frozen=True)
class Unit:
    """Meta-features that are computed together: ``compute`` returns values in order of names."""

    names: tuple[str, ...]
    compute: Callable[[Check], Sequence[Value]]


_SIZES = (
    *("NumberOfInstances", "LogNumberOfInstances", "NumberOfFeatures", "LogNumberOfFeatures"),
    *("Dimensionality", "LogDimensionality", "InverseDimensionality", "LogInverseDimensionality"),
)
_COLUMNS = (
    *("PercentageOfBinaryFeatures", "PercentageOfInstancesWithMissingValues"),
    *("PercentageOfMissingValues", "PercentageOfNumericFeatures"),
    *("PercentageOfSymbolicFeatures", "StdvNominalAttDistinctValues"),
)
_CLASSES = (
    *("NumberOfClasses", "ClassEntropy", "ClassProbabilityMin", "ClassProbabilityMax"),
    *("ClassProbabilityMean", "ClassProbabilitySTD", "MajorityClassPercentage", "Autocorrelation"),
)
_NUMBERS = ("TargetDistinctPercentage", "TargetModePercentage", "TargetAutocorrelation")


def simple_units(columns: list[Column], target: Target) -> list[Unit]:
    """Sizes, kinds of columns, and how the target is distributed: all rows and columns."""
    about_target = (
        Unit(_CLASSES, lambda check: _describe_classes(target.values.astype(np.int64)))
        if target.task == "classification"
        else Unit(_NUMBERS, lambda check: _describe_numbers(target.values.astype(np.float64)))
    )
    n, p = len(target.values), len(columns)
    return [
        Unit(_SIZES, lambda check: (n, log(n), p, log(p), p / n, log(p / n), n / p, log(n / p))),
        Unit(_COLUMNS, partial(_describe_columns, columns)),
        about_target,
    ]


def _describe_columns(columns: list[Column], check: Check) -> Sequence[Value]:
    """What the columns hold. A binary column, of any type, has two distinct known values."""
    n, p = len(columns[0].values), len(columns)
    row_lacks = np.zeros(n, dtype=np.bool_)
    cells = binary = 0
    distinct: list[int] = []
    for column in columns:
        check()
        row_lacks |= column.missing
        cells += int(column.missing.sum())
        known = column.known
        if column.nominal:
            distinct.append(len(np.unique(known)))
            binary += distinct[-1] == 2
        elif column.varies:
            # Without sorting: if there are two values they are the least and the largest.
            binary += bool(((known == known.min()) | (known == known.max())).all())
    return (
        100.0 * binary / p,
        100.0 * float(row_lacks.mean()),
        100.0 * cells / (n * p),
        100.0 * (p - len(distinct)) / p,
        100.0 * len(distinct) / p,
        float(np.std(distinct)) if distinct else "no column is nominal.",
    )


def _describe_classes(codes: IntArray) -> Sequence[Value]:
    """The class distribution, and how often consecutive rows differ (``Autocorrelation``).

    OpenML's ``AutoCorrelation`` is one minus this.
    """
    p = np.bincount(codes) / len(codes)
    differ = float((codes[1:] != codes[:-1]).mean()) if len(codes) > 1 else "there is one row."
    spread = (p.min(), p.max(), p.mean(), p.std())
    return len(p), stats.entropy(p, base=2), *spread, 100.0 * p.max(), differ


def _describe_numbers(y: FloatArray) -> Sequence[Value]:
    """How a numeric target repeats itself.

    ``TargetAutocorrelation`` is the mean absolute difference of consecutive rows in standard
    deviations of the target: near 2 / sqrt(pi) for independent normal rows, less for sorted ones.
    """
    counts = np.unique(y, return_counts=True)[1]
    scaled = standardise(y)
    return (
        100.0 * len(counts) / len(y),
        100.0 * float(counts.max()) / len(y),
        "the target is constant." if scaled is None else float(np.abs(np.diff(scaled)).mean()),
    )


_Summaries = dict[str, Callable[[FloatArray], float]]
_MOMENTS: _Summaries = {"Min": np.min, "Max": np.max, "Mean": np.mean, "STD": np.std}
_QUARTILES: _Summaries = {f"Quartile{i}": partial(np.quantile, q=i / 4) for i in (1, 2, 3)}
_SPREAD: _Summaries = {"Min": np.min, "Max": np.max, "Mean": np.mean, **_QUARTILES}


def _summarise(summaries: _Summaries, each: npt.ArrayLike, why_empty: str) -> list[Value]:
    values = np.asarray(each, dtype=np.float64)
    return [float(f(values)) if len(values) else why_empty for f in summaries.values()]


def statistical_units(columns: list[Column], target: Target) -> list[Unit]:
    """Kurtosis and skewness of the numeric columns that vary (after Michie et al. 1994).

    For regression the target's as well, and the columns' absolute correlations with it.
    """
    numeric = [column for column in columns if not column.nominal]
    names = tuple(f"{stem}{s}" for stem in ("Kurtosis", "Skewness") for s in _MOMENTS)
    found = [Unit(names, partial(_describe_shapes, numeric))]
    if target.task == "regression":
        y = target.values.astype(np.float64)
        names = tuple(f"TargetCorrelation{s}" for s in _MOMENTS)
        found += [
            Unit(
                ("TargetKurtosis", "TargetSkewness"),
                lambda check: kurtosis_and_skewness(y) or ["the target is constant."] * 2,
            ),
            Unit(names, partial(_correlate, numeric, y)),
        ]
    return found


def kurtosis_and_skewness(x: FloatArray) -> tuple[float, float] | None:
    """m4 / m2^2 - 3 and m3 / m2^(3/2) of values (n,) without NaN; None if they do not vary."""
    deviation = standardise(x)
    if deviation is None:
        return None
    square = deviation * deviation
    return float((square * square).mean()) - 3.0, float((square * deviation).mean())


def standardise(x: FloatArray) -> FloatArray | None:
    """Values (n,) with mean 0 and standard deviation 1; None if it does not vary.

    Values that differ by rounding only, relative to their size, do not vary.
    """
    largest = float(np.abs(x).max(initial=0.0))
    if largest == 0.0:
        return None
    scaled = x / largest  # neither overflow nor underflow below
    deviation = scaled - scaled.mean()
    spread = float(np.sqrt(np.mean(deviation * deviation)))
    if spread <= 4.0 * np.finfo(np.float64).eps:
        return None
    return np.asarray(deviation / spread, dtype=np.float64)


def _describe_shapes(numeric: list[Column], check: Check) -> Sequence[Value]:
    pairs = []
    for column in numeric:
        check()
        if pair := kurtosis_and_skewness(column.known.astype(np.float64, copy=False)):
            pairs.append(pair)
    why = "no numeric column varies."
    kurtosis, skewness = np.reshape(pairs, (-1, 2)).T
    return _summarise(_MOMENTS, kurtosis, why) + _summarise(_MOMENTS, skewness, why)


def _correlate(numeric: list[Column], y: FloatArray, check: Check) -> Sequence[Value]:
    """Absolute Pearson correlations with the target (n,), over rows where a column is known."""
    found: list[float] = []
    for column in numeric:
        check()
        x = standardise(column.known.astype(np.float64, copy=False))
        z = standardise(y[~column.missing])
        if x is not None and z is not None:
            found.append(min(1.0, abs(float((x * z).mean()))))  # rounding may exceed 1
    return _summarise(_MOMENTS, found, "no numeric column varies, or the target is constant.")


_RATIOS = ("EquivalentNumberOfAtts", "MeanNoiseToSignalRatio")


def information_units(columns: list[Column], target: Target) -> list[Unit]:
    """Entropy of the columns and their mutual information with the target.

    On OpenML only nominal columns count; here numeric ones do too, cut into at most 10 bins of
    equal frequency, and so is a numeric target. Constant columns count, with an entropy of 0;
    columns without any value do not.
    """
    stems = ("AttributeEntropy", "MutualInformation")
    names = (*(f"{s}{stem}" for stem in stems for s in _SPREAD), *_RATIOS)
    found = [Unit(names, lambda check: _measure_information(columns, cut_target(target), check))]
    if target.task == "regression":
        found.append(Unit(("TargetEntropy",), lambda check: (entropy(cut_target(target)),)))
    return found


def cut_target(target: Target) -> IntArray:
    """The classes (n,), or the bins of a numeric target."""
    if target.task == "classification":
        return target.values.astype(np.int64, copy=False)
    return cut_evenly(target.values.astype(np.float64))


_BINS = 10  # of a numeric column, whose entropy is that of its bins


def cut_evenly(x: FloatArray) -> IntArray:
    """Bins (n,) of equal frequency of values (n,) without NaN; equal values share a bin.

    Up to ten distinct values are a bin each. Otherwise a bin ends at each quantile, those
    at the maximum moved to the value below it.
    """
    values = np.unique(x)
    if len(values) <= _BINS:
        return np.searchsorted(values, x)
    # Quantiles that are values of x, which a bin includes as its end.
    edges = np.quantile(x, np.arange(1, _BINS) / _BINS, method="inverted_cdf")
    return np.searchsorted(np.unique(np.minimum(edges, values[-2])), x)


def entropy(codes: IntArray) -> float:
    """Entropy in bits of codes (n,) >= 0, n >= 1."""
    n = len(codes)
    # Counting is fast, but makes room for every code below the largest one.
    if int(codes.max()) <= 4 * n + 10_000:
        counts = np.bincount(codes)
        counts = counts[counts > 0]
    else:
        counts = np.unique(codes, return_counts=True)[1]
    # Of a constant it may round to less than 0.
    return max(0.0, float(np.log2(n) - (counts * np.log2(counts)).sum() / n))


def mutual_information(a: IntArray, b: IntArray, of_a: float) -> float:
    """I(a; b) = H(a) + H(b) - H(a, b) in bits of codes (n,) >= 0, n >= 1; ``of_a`` is H(a)."""
    # A code for each pair; of independent ones rounding may leave less than 0.
    return max(0.0, of_a + entropy(b) - entropy(a * (int(b.max()) + 1) + b))


def _measure_information(columns: list[Column], y: IntArray, check: Check) -> Sequence[Value]:
    """Entropies, mutual information with the target bins (n,), and their ratios.

    ``EquivalentNumberOfAtts`` = H(y) / mean I: how many columns of average information would
    explain the target, were they independent. ``MeanNoiseToSignalRatio`` =
    (mean H - mean I) / mean I.
    """
    entropies: list[float] = []
    mutual: list[float] = []
    for column in columns:
        check()
        known = column.known
        if not len(known):
            continue
        codes = known if column.nominal else cut_evenly(known.astype(np.float64, copy=False))
        codes = codes.astype(np.int64, copy=False)
        entropies.append(entropy(codes))
        mutual.append(mutual_information(codes, y[~column.missing], entropies[-1]))
    why = "no column has a value."
    ratios: list[Value] = ["no column has information on the target."] * 2
    if mutual and (signal := float(np.mean(mutual))) >= 1e-9:  # less is rounding
        ratios = [entropy(y) / signal, (float(np.mean(entropies)) - signal) / signal]
    return [*_summarise(_SPREAD, entropies, why), *_summarise(_SPREAD, mutual, why), *ratios]
