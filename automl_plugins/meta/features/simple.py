"""Sizes, proportions and class probabilities: all rows and columns, one pass.

Sources: van Hoof (2018), table 6.3 and appendix B (names as on OpenML); Wistuba et al. (2016),
table 1. Percentages lie in [0, 100], logarithms are natural, entropies are in bits.
"""

from __future__ import annotations

from math import log

import numpy as np
from scipy.stats import entropy

from automl_plugins.meta.features.statistical import standardised
from automl_plugins.meta.features.table import Column, Target
from automl_plugins.meta.features.units import Clock, Outcome, Unit

_SIZES = (
    "NumberOfInstances",
    "LogNumberOfInstances",
    "NumberOfFeatures",
    "LogNumberOfFeatures",
    "Dimensionality",
    "LogDimensionality",
    "InverseDimensionality",
    "LogInverseDimensionality",
)
_COLUMNS = (
    "PercentageOfBinaryFeatures",
    "PercentageOfInstancesWithMissingValues",
    "PercentageOfMissingValues",
    "PercentageOfNumericFeatures",
    "PercentageOfSymbolicFeatures",
    "StdvNominalAttDistinctValues",
)
_CLASSES = (
    "NumberOfClasses",
    "ClassEntropy",
    "ClassProbabilityMin",
    "ClassProbabilityMax",
    "ClassProbabilityMean",
    "ClassProbabilitySTD",
    "MajorityClassPercentage",
    "Autocorrelation",
)
_TARGET = ("TargetDistinctPercentage", "TargetModePercentage", "TargetAutocorrelation")


def units(columns: list[Column], target: Target) -> list[Unit]:
    """Sizes, columns and target as three units."""
    about_target = _CLASSES if target.task == "classification" else _TARGET
    return [
        Unit(_SIZES, lambda clock: sizes(len(target.values), len(columns))),
        Unit(_COLUMNS, lambda clock: column_kinds(columns, clock)),
        Unit(about_target, lambda clock: _about(target)),
    ]


def sizes(n: int, p: int) -> dict[str, float]:
    """The size of a table with n rows and p input columns (the target is none of them)."""
    values = (n, log(n), p, log(p), p / n, log(p / n), n / p, log(n / p))
    return dict(zip(_SIZES, map(float, values), strict=True))


def column_kinds(columns: list[Column], clock: Clock) -> Outcome:
    """What the columns hold. A binary column, of any type, has two distinct known values."""
    n, p = len(columns[0].values), len(columns)
    row_lacks = np.zeros(n, dtype=np.bool_)
    cells = binary = 0
    distinct: list[int] = []
    for column in columns:
        clock.check()
        missing = column.missing
        row_lacks |= missing
        cells += int(missing.sum())
        known = column.known
        if column.nominal:
            distinct.append(len(np.unique(known)))
            binary += distinct[-1] == 2
        elif len(known) and known.min() < known.max():
            binary += bool(((known == known.min()) | (known == known.max())).all())
    nominal = len(distinct)
    return {
        "PercentageOfBinaryFeatures": 100.0 * binary / p,
        "PercentageOfInstancesWithMissingValues": 100.0 * float(row_lacks.mean()),
        "PercentageOfMissingValues": 100.0 * cells / (n * p),
        "PercentageOfNumericFeatures": 100.0 * (p - nominal) / p,
        "PercentageOfSymbolicFeatures": 100.0 * nominal / p,
        "StdvNominalAttDistinctValues": (
            float(np.std(distinct)) if distinct else "no column is nominal."
        ),
    }


def _about(target: Target) -> Outcome:
    return class_facts(target) if target.task == "classification" else number_facts(target)


def class_facts(target: Target) -> Outcome:
    """The class distribution, and how often consecutive rows differ (``Autocorrelation``).

    OpenML's ``AutoCorrelation`` is one minus this.
    """
    codes = target.values
    probabilities = np.bincount(codes.astype(np.int64)) / len(codes)
    return {
        "NumberOfClasses": float(len(probabilities)),
        "ClassEntropy": float(entropy(probabilities, base=2)),
        "ClassProbabilityMin": float(probabilities.min()),
        "ClassProbabilityMax": float(probabilities.max()),
        "ClassProbabilityMean": float(probabilities.mean()),
        "ClassProbabilitySTD": float(probabilities.std()),
        "MajorityClassPercentage": 100.0 * float(probabilities.max()),
        "Autocorrelation": (
            float((codes[1:] != codes[:-1]).mean()) if len(codes) > 1 else "there is one row."
        ),
    }


def number_facts(target: Target) -> Outcome:
    """How a numeric target repeats itself.

    ``TargetAutocorrelation`` is the mean absolute difference of consecutive rows in standard
    deviations of the target: near 2 / sqrt(pi) for independent normal rows, less for sorted ones.
    """
    y = target.values.astype(np.float64)
    counts = np.unique(y, return_counts=True)[1]
    scaled = standardised(y)
    return {
        "TargetDistinctPercentage": 100.0 * len(counts) / len(y),
        "TargetModePercentage": 100.0 * float(counts.max()) / len(y),
        "TargetAutocorrelation": (
            "the target is constant." if scaled is None else float(np.abs(np.diff(scaled)).mean())
        ),
    }
