"""Will this configuration succeed? A probability learnt from failures and broken constraints."""

from __future__ import annotations

from math import isfinite
from typing import Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.utils.validation import check_is_fitted

from automl_plugins.surrogates.base import check_integer, validate

FloatArray = npt.NDArray[np.float64]


class Feasibility(BaseEstimator):  # type: ignore[misc]
    """P(success) by extremely randomised trees with a Laplace prior.

    Random cuts put the border between a success and a failure at every place between the two, so
    the averaged probability falls smoothly over the gap: the search approaches the border of a
    failing region by bisection, and does not need to crash along all of it.

    Args:
        n_trees: Number of trees.
        prior: Weight of the prior, > 0, in observations; the prior mean is the share of successes.
        random_state: Seed of the trees.

    Example::

        probability = Feasibility(random_state=1).fit(X, succeeded).predict(X_new)
    """

    def __init__(
        self, *, n_trees: int = 50, prior: float = 0.1, random_state: int | None = None
    ) -> None:
        self.n_trees = n_trees
        self.prior = prior
        self.random_state = random_state

    def fit(self, X: FloatArray, success: npt.NDArray[np.bool_]) -> Self:
        """Learn from features ``X`` (n, f) and the mask ``success`` (n,).

        Raises:
            ValueError: For an invalid argument or wrong shapes.
        """
        check_integer("n_trees", self.n_trees, 1)
        if not (self.prior > 0 and isfinite(self.prior)):
            raise ValueError(f"prior must be finite and > 0, got {self.prior!r}.")
        X, y = validate(X, success)
        self.rate_ = float((y.sum() + 1.0) / (len(y) + 2.0))  # Laplace's rule of succession
        self.trees_: ExtraTreesClassifier | None = None
        if 0.0 < y.mean() < 1.0:
            seed = self.random_state
            if seed is None:  # scikit-learn would take numpy's global generator
                seed = int(np.random.default_rng().integers(2**31 - 1))
            self.trees_ = ExtraTreesClassifier(
                self.n_trees, max_features=None, random_state=seed
            ).fit(X, y > 0.5)
        return self

    def predict(self, X: FloatArray) -> FloatArray:
        """Probability of success (m,), strictly between 0 and 1."""
        check_is_fitted(self)
        X, _ = validate(X)
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
