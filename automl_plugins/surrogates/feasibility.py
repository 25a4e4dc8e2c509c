"""Will this configuration succeed? A probability learnt from failures and broken constraints."""

from __future__ import annotations

from typing import Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.ensemble import ExtraTreesClassifier

from automl_plugins.surrogates.base import validated

FloatArray = npt.NDArray[np.float64]


class Feasibility(BaseEstimator):  # type: ignore[misc]
    """P(success) by extremely randomised trees with a Laplace prior.

    Random cuts put the border between a success and a failure at every place between the two, so
    the averaged probability falls smoothly over the gap: the search approaches the border of a
    failing region by bisection, and does not need to crash along all of it.

    Args:
        n_trees: Number of trees.
        prior: Weight of the prior, in observations; the prior mean is the share of successes.
        random_state: Seed of the trees.
    """

    def __init__(
        self, *, n_trees: int = 50, prior: float = 0.1, random_state: int | None = None
    ) -> None:
        self.n_trees = n_trees
        self.prior = prior
        self.random_state = random_state

    def fit(self, X: FloatArray, success: npt.NDArray[np.bool_]) -> Self:
        """Learn from features ``X`` (n, f) and the mask ``success`` (n,)."""
        X, y = validated(X, success)
        self.rate_ = float((y.sum() + 1.0) / (len(y) + 2.0))  # Laplace's rule of succession
        self.trees_: ExtraTreesClassifier | None = None
        if 0.0 < y.mean() < 1.0:
            self.trees_ = ExtraTreesClassifier(
                self.n_trees, max_features=None, random_state=self.random_state
            ).fit(X, y > 0.5)
        return self

    def predict(self, X: FloatArray) -> FloatArray:
        """Probability of success (m,), strictly between 0 and 1."""
        X, _ = validated(X)
        if self.trees_ is None:
            return np.full(len(X), self.rate_)
        X32 = np.ascontiguousarray(X, dtype=np.float32)
        votes = np.zeros(len(X))
        for tree in self.trees_.estimators_:
            # value holds class shares; column 1 is success. Skips the per-tree validation of
            # predict_proba, which costs more than the trees.
            votes += tree.tree_.value[tree.tree_.apply(X32), 0, 1]
        share = votes / self.n_trees
        return (share + self.prior * self.rate_) / (1.0 + self.prior)
