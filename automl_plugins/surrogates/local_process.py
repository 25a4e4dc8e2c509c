"""A Gaussian process of the rows nearest to the best one, for the region around it.

In many dimensions, and where valleys curve, one kernel for the whole space fits no part of it
well. After the trust regions of Eriksson et al., "Scalable global optimization via local Bayesian
optimization" (NeurIPS 2019). There the region grows with the gains of a search and shrinks with
its failures; here it has the spread of the best rows in each input, as in evolution strategies, so
that it follows from the rows alone.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from automl_plugins._arguments import check_integer
from automl_plugins.arrays import BoolArray, FloatArray, IndexArray
from automl_plugins.surrogates.averaged_process import AveragedProcess
from automl_plugins.surrogates.base import as_features, as_training, standardise

_LEAST, _LARGEST = 1e-4, 0.5  # half widths of a region, as shares of each range
_FEWEST = 10  # best rows whose spread is measured; twice the number of inputs, if that is more


@dataclass(eq=False, repr=False, kw_only=True)
class LocalProcess(BaseEstimator):  # type: ignore[misc]
    """``AveragedProcess`` of the rows nearest to the best one, on inputs scaled to their region.

    The region is a box around the best row. Its half width in each feature is the mean distance of
    the best rows from the best one, at least 1e-4 and at most half of the range, so that of a 0/1
    feature it contains only the value of the best row. Rows in which other features are missing
    belong to another branch; there mean and deviation are those of the losses learnt from.

    Args:
        max_rows: Largest number of rows to learn from, at least 2.

    Attributes:
        low_, high_: Ends of the region (f,); NaN for a feature that is missing in the best row.
        process_: The fitted process.

    Example::

        model = LocalProcess().fit(X, y)
        mean, std = model.predict((model.low_ + model.high_)[None] / 2)  # at the best row
    """

    max_rows: int = 100

    def fit(self, X: FloatArray, y: FloatArray) -> Self:
        """Learn from features ``X`` (n, f) and losses ``y`` (n,)."""
        check_integer("max_rows", self.max_rows, 2)
        X, y = as_training(X, y)
        self.n_features_in_ = X.shape[1]
        near = self._place(X, y)
        process = AveragedProcess(max_rows=self.max_rows)
        self.process_ = process.fit(self._scaled(X[near]), y[near])
        return self

    def predict(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean and standard deviation (m,) of the losses at features ``X`` (m, f)."""
        check_is_fitted(self, "process_")
        X = as_features(X, self.n_features_in_)
        mean, std = np.full(len(X), self._mean), np.full(len(X), self._std)
        if (own := self._is_of_branch(X)).any():
            mean[own], std[own] = self.process_.predict(self._scaled(X[own]))
        return mean, std

    @property
    def noise_(self) -> float:
        """Variance of noise / variance of losses without noise, by the likeliest kernel."""
        check_is_fitted(self, "process_")
        return self.process_.noise_

    def conditioned(self, X: FloatArray, y: FloatArray) -> Self:
        """A copy with ``X`` (n, f) and ``y`` (n,) as all its rows, in place of those of ``fit``.

        The region is that of these rows; the kernels stay the same in units of its widths.
        """
        check_is_fitted(self, "process_")
        X, y = as_training(as_features(X, self.n_features_in_), y)
        seen = copy.copy(self)
        near = seen._place(X, y)
        if not self._is_of_branch(seen.low_[None]).all():
            return seen.fit(X, y)  # the kernels are those of other inputs
        seen.process_ = self.process_.conditioned(seen._scaled(X[near]), y[near])
        return seen

    def beside(self, pending: FloatArray) -> Self:
        """A copy that takes running evaluations (p, f) for finished, with the predicted losses."""
        check_is_fitted(self, "process_")
        seen, pending = copy.copy(self), as_features(pending, self.n_features_in_)
        if (own := self._is_of_branch(pending)).any():
            seen.process_ = self.process_.beside(self._scaled(pending[own]))
        return seen

    def _place(self, X: FloatArray, y: FloatArray) -> IndexArray:
        """The rows to learn from, ascending; places the region around the best one."""
        order = np.argsort(y, kind="stable")
        self.low_ = self.high_ = best = X[order[0]]
        order = order[self._is_of_branch(X[order])]
        distances = np.abs(X[order] - best)
        n_best = max(_FEWEST, 2 * int((~np.isnan(best)).sum()))
        near = distances[:n_best]
        # A branch with fewer rows than ``n_best`` is searched widely: missing rows are far.
        width = (near.sum(axis=0) + _LARGEST * (n_best - len(near))) / n_best
        width = np.clip(width, _LEAST, _LARGEST)
        self.low_, self.high_ = best - width, best + width
        farthest = np.nan_to_num(distances / width).max(axis=1)  # 0 between missing features
        rows = np.sort(order[np.argsort(farthest, kind="stable")[: self.max_rows]])
        _, self._mean, self._std = standardise(y[rows])
        return np.asarray(rows)

    def _is_of_branch(self, X: FloatArray) -> BoolArray:
        """Mask (n,) of the rows in which the same features are missing as in the best one."""
        return np.asarray((np.isnan(X) == np.isnan(self.low_)).all(axis=1))

    def _scaled(self, X: FloatArray) -> FloatArray:
        """Inputs (n, d) of rows of the branch: 0 and 1 are the ends of the region."""
        known = ~np.isnan(self.low_)
        if not known.any():
            return np.zeros((len(X), 1))
        low, high = self.low_[known], self.high_[known]
        return np.asarray((X[:, known] - low) / (high - low))
