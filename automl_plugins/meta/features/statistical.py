"""Kurtosis and skewness of the numeric columns, and of a numeric target.

Source: Wistuba et al. (2016), table 1, after Michie et al. (1994). Moments are the population's
(biased, as ``scipy.stats`` computes them by default), the kurtosis is Fisher's (0 for a normal
distribution). Missing values are left out, and so are columns that do not vary.
"""

from __future__ import annotations

import numpy as np

from automl_plugins.meta.features.table import Column, FloatArray, Target
from automl_plugins.meta.features.units import Clock, Outcome, Unit, suffixed, summarise

_KURTOSIS = suffixed("Kurtosis")
_SKEWNESS = suffixed("Skewness")
_CORRELATION = suffixed("TargetCorrelation")
_SHAPE = (*_KURTOSIS.values(), *_SKEWNESS.values())
_TARGET_SHAPE = ("TargetKurtosis", "TargetSkewness")


def units(columns: list[Column], target: Target) -> list[Unit]:
    """The shape of the columns, and for regression the target's and the correlations with it."""
    found = [Unit(_SHAPE, lambda clock: shapes(columns, clock))]
    if target.task == "regression":
        y = target.values.astype(np.float64)
        found += [
            Unit(_TARGET_SHAPE, lambda clock: target_shape(y)),
            Unit(tuple(_CORRELATION.values()), lambda clock: correlations(columns, y, clock)),
        ]
    return found


def skewness_and_kurtosis(x: FloatArray) -> tuple[float, float]:
    """m3 / m2^(3/2) and m4 / m2^2 - 3 of values (n,) without NaN; NaN if they do not vary."""
    deviation = standardised(x)
    if deviation is None:
        return np.nan, np.nan
    square = deviation * deviation
    return float((square * deviation).mean()), float((square * square).mean()) - 3.0


def standardised(x: FloatArray) -> FloatArray | None:
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


def shapes(columns: list[Column], clock: Clock) -> Outcome:
    """Skewness and kurtosis over the numeric columns."""
    pairs = []
    for column in columns:
        if not column.nominal:
            clock.check()
            pairs.append(skewness_and_kurtosis(column.known.astype(np.float64, copy=False)))
    skewness, kurtosis = np.reshape(pairs, (-1, 2)).T
    why = "no numeric column varies."
    return summarise(_KURTOSIS, kurtosis, why) | summarise(_SKEWNESS, skewness, why)


def target_shape(y: FloatArray) -> Outcome:
    """Skewness and kurtosis of the target (n,)."""
    skewness, kurtosis = skewness_and_kurtosis(y)
    if np.isnan(skewness):
        return dict.fromkeys(_TARGET_SHAPE, "the target is constant.")
    return {"TargetKurtosis": kurtosis, "TargetSkewness": skewness}


def correlations(columns: list[Column], y: FloatArray, clock: Clock) -> Outcome:
    """The absolute Pearson correlation of each numeric column with the target (n,).

    Over the rows where the column is known.
    """
    found: list[float] = []
    for column in columns:
        if column.nominal:
            continue
        clock.check()
        x = standardised(column.known.astype(np.float64, copy=False))
        z = standardised(y[~column.missing])
        if x is not None and z is not None:
            found.append(min(1.0, abs(float((x * z).mean()))))
    return summarise(_CORRELATION, found, "no numeric column varies, or the target is constant.")
