"""The landmarkers' view of a table: columns in [0, 1], indicators, codes; subsamples and folds."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import sqrt

import numpy as np
import numpy.typing as npt

from automl_plugins.meta.features.information import equal_frequency
from automl_plugins.meta.features.table import Column, FloatArray, IntArray

_MOST_CATEGORIES = 32  # of one column
_MOST_INDICATORS = 256  # of all columns together, roughly


@dataclass(frozen=True)
class Encoded:
    """m rows of p columns, all of them varying.

    Attributes:
        blocks: One array float32 (m, w_j) per column: a number scaled to [0, 1] with the median
            for missing values (w = 1), or the indicators of a nominal column's most frequent
            categories, divided by sqrt(2).
        codes: int64 (m, p): bins of the numbers, categories of the nominal columns; rare
            categories share a code, and so do missing values.
        nominal: Which columns are nominal (p,).
    """

    blocks: tuple[npt.NDArray[np.float32], ...]
    codes: IntArray
    nominal: npt.NDArray[np.bool_]

    @cached_property
    def matrix(self) -> npt.NDArray[np.float32]:
        """All blocks side by side; its Euclidean distances are those of Weka's IBk.

        A difference in category counts 1, as does the whole range of a number.
        """
        return np.ascontiguousarray(np.hstack(self.blocks))

    @cached_property
    def numbers(self) -> FloatArray:
        """The numeric columns (m, a)."""
        blocks = [b for b, n in zip(self.blocks, self.nominal, strict=True) if not n]
        return np.hstack([np.empty((len(self.codes), 0)), *blocks]).astype(np.float64)

    @cached_property
    def categories(self) -> IntArray:
        """The codes of the nominal columns (m, b)."""
        return self.codes[:, self.nominal]

    def take(self, rows: IntArray) -> Encoded:
        """The same columns at these rows."""
        return Encoded(tuple(b[rows] for b in self.blocks), self.codes[rows], self.nominal)

    def select(self, columns: list[int]) -> Encoded:
        """The same rows of these columns."""
        blocks = tuple(self.blocks[j] for j in columns)
        return Encoded(blocks, self.codes[:, columns], self.nominal[columns])


def encode(columns: list[Column]) -> Encoded | None:
    """Encode the columns that vary, without a look at the target; None if none does.

    A missing category is a category. Of a nominal column the 32 most frequent categories keep
    their own code and indicator, less if there are more than 8 such columns (256 indicators in
    all); the others share a code and have no indicator.
    """
    varying = [column for column in columns if varies(column)]
    if not varying:
        return None
    nominal = np.array([column.nominal for column in varying])
    cap = max(2, min(_MOST_CATEGORIES, _MOST_INDICATORS // max(1, int(nominal.sum()))))
    pairs = [_category(column, cap) if column.nominal else _number(column) for column in varying]
    return Encoded(
        tuple(block for block, _ in pairs),
        np.column_stack([codes for _, codes in pairs]),
        nominal,
    )


def varies(column: Column) -> bool:
    """Whether two values differ; in a nominal column "missing" is a value."""
    if column.nominal:
        return len(column.values) > 0 and bool((column.values != column.values[0]).any())
    known = column.known
    return len(known) > 0 and bool(known.min() < known.max())


def _number(column: Column) -> tuple[npt.NDArray[np.float32], IntArray]:
    missing = column.missing
    x = column.values.astype(np.float64)
    known = x[~missing]
    low = float(known.min())
    half = known.max() / 2 - low / 2  # the range itself may overflow
    codes = np.empty(len(x), dtype=np.int64)
    codes[~missing] = equal_frequency(known)
    codes[missing] = int(codes[~missing].max()) + 1
    x[missing] = float(np.median(known))
    scaled = (x / 2 - low / 2) / half if half > 0 else np.zeros_like(x)
    return scaled.astype(np.float32)[:, None], codes


def _category(column: Column, cap: int) -> tuple[npt.NDArray[np.float32], IntArray]:
    values, first, inverse, counts = np.unique(
        column.values, return_index=True, return_inverse=True, return_counts=True
    )
    order = np.lexsort((first, -counts))  # the most frequent, then the first to appear
    rank = np.empty(len(values), dtype=np.int64)
    rank[order] = np.arange(len(values))
    codes = np.minimum(rank[inverse.reshape(-1)], cap)
    width = min(len(values), cap)
    return (codes[:, None] == np.arange(width)).astype(np.float32) / np.float32(sqrt(2.0)), codes


def stratified_order(y: IntArray | FloatArray, rng: np.random.Generator) -> IntArray:
    """Row numbers (n,) sorted by the target, in random order where it ties."""
    return np.lexsort((rng.random(len(y)), y))


def subsample(y: IntArray | FloatArray, size: int, rng: np.random.Generator) -> IntArray:
    """At most ``size`` rows with the target's own distribution, in ascending order.

    Each class keeps its share to within one row, so a class with less than n / size rows may be
    left out.
    """
    n = len(y)
    if n <= size:
        return np.arange(n)
    places = ((np.arange(size) + rng.random()) * (n / size)).astype(np.int64)
    return np.sort(stratified_order(y, rng)[np.minimum(places, n - 1)])


def folds(y: IntArray | FloatArray, k: int, rng: np.random.Generator) -> IntArray:
    """The fold in [0, k) of each row (n,), by classes or by the rank of a number.

    Folds differ by at most one row in size, and by at most one row in each class.
    """
    fold = np.empty(len(y), dtype=np.int64)
    fold[stratified_order(y, rng)] = np.arange(len(y)) % k
    return fold
