"""Stratified subsamples and folds, for classes and for numbers alike."""

from __future__ import annotations

import numpy as np

from automl_plugins.meta.features.table import FloatArray, IntArray


def stratified_order(y: IntArray | FloatArray, rng: np.random.Generator) -> IntArray:
    """Row numbers (n,) sorted by the target, in random order where it ties."""
    return np.lexsort((rng.random(len(y)), y))


def subsample(y: IntArray | FloatArray, size: int, rng: np.random.Generator) -> IntArray:
    """At most ``size`` rows with the target's own distribution, in ascending order.

    Evenly spaced in ``stratified_order``, from a random start: each class keeps its share to
    within one row, so a class with less than n / size rows may be left out.
    """
    n = len(y)
    if n <= size:
        return np.arange(n)
    places = ((np.arange(size) + rng.random()) * (n / size)).astype(np.int64)
    return np.sort(stratified_order(y, rng)[np.minimum(places, n - 1)])


def folds(y: IntArray | FloatArray, k: int, rng: np.random.Generator) -> IntArray:
    """The fold in [0, k) of each row (n,): dealt in ``stratified_order``.

    Folds differ by at most one row in size, and by at most one row in each class; no class is
    too small.
    """
    fold = np.empty(len(y), dtype=np.int64)
    fold[stratified_order(y, rng)] = np.arange(len(y)) % k
    return fold
