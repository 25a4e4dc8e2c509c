"""Tree ensembles that know how unsure they are: a random forest and extremely randomised trees.

The formulas are those of van Hoof, "Automated machine learning with gradient boosting and
meta-learning" (TU Eindhoven, 2018), called "thesis" below. Notation of this module::

    X      features, shape (n, f); trees see them as float32, scaled to the training range
    z      standardised losses, shape (n,)
    B      number of trees
    mu_b   means of the leaves that the m queries fall in, one row a tree, shape (B, m)
    s2_b   variances of the training losses in these leaves, shape (B, m)

Missing values (NaN) are handled by the trees themselves: each split learns on which side they
belong. Where a split has seen none, they follow the larger part of its rows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from math import ceil
from numbers import Real
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt
from sklearn import config_context
from sklearn.base import BaseEstimator
from sklearn.tree import DecisionTreeRegressor, ExtraTreeRegressor
from sklearn.utils.validation import check_is_fitted

from automl_plugins._arguments import check_choice, check_finite, check_integer
from automl_plugins.arrays import FloatArray, IndexArray
from automl_plugins.surrogates.base import Seed, as_features, as_training, standardise


def leaf_statistics(
    leaves: IndexArray, z: FloatArray, n_nodes: int
) -> tuple[FloatArray, FloatArray]:
    """Mean and variance (1/n) of the targets of each node, (n_nodes,); 0 where no row ends.

    ``leaves`` (n,) are the nodes in which the rows with targets ``z`` (n,) end; a row that was
    drawn twice counts twice.
    """
    # No row ends in an inner node. The squares are about the means, so they do not cancel.
    counts = np.maximum(np.bincount(leaves, minlength=n_nodes), 1)
    means = np.bincount(leaves, z, n_nodes) / counts
    return means, np.bincount(leaves, (z - means[leaves]) ** 2, n_nodes) / counts


def _look_up(values: list[FloatArray], leaves: list[IndexArray]) -> FloatArray:
    """The value of the leaf that each query reaches in each tree (B, m)."""
    return np.stack([value[leaf] for value, leaf in zip(values, leaves, strict=True)])


class _TreeEnsemble(BaseEstimator, ABC):  # type: ignore[misc]
    """Grows trees, keeps the statistics of their leaves and looks them up."""

    n_trees: int
    random_state: Seed
    bootstrap = False

    @abstractmethod
    def _check_arguments(self) -> None: ...

    @abstractmethod
    def _new_tree(self, n_features: int, seed: int) -> Any: ...

    def fit(self, X: FloatArray, y: FloatArray) -> Self:
        """Grow the trees on features ``X`` (n, f) and losses ``y`` (n,)."""
        self._check_arguments()
        X, y = as_training(X, y)
        rng = np.random.default_rng(self.random_state)
        z, self.y_centre_, self.y_scale_ = standardise(y)
        self.n_features_in_ = X.shape[1]
        # fmin and fmax skip NaN; a column of nothing but NaN keeps NaN bounds and stays NaN.
        self.X_low_ = np.fmin.reduce(X, axis=0)
        self.X_high_ = np.fmax.reduce(X, axis=0)
        X32 = self._scale(X)
        # Without its input check, scikit-learn would not notice NaN and grow a wrong tree.
        has_nan = bool(np.isnan(X32).any())
        self.trees_: list[Any] = []
        self.leaf_means_: list[FloatArray] = []
        self.leaf_variances_: list[FloatArray] = []
        n = len(z)
        # The arguments are checked above; to check them for each tree takes a quarter of the time.
        # Only ``tree_`` is kept of each tree, because its ``apply`` does not check its input.
        with config_context(skip_parameter_validation=True):
            for _ in range(self.n_trees):
                rows = rng.integers(n, size=n) if self.bootstrap else np.arange(n)
                model = self._new_tree(X.shape[1], seed=int(rng.integers(2**31 - 1)))
                tree = model.fit(X32[rows], z[rows], check_input=has_nan).tree_
                leaves = tree.apply(X32[rows])
                means, variances = leaf_statistics(leaves, z[rows], tree.node_count)
                self.trees_.append(tree)
                self.leaf_means_.append(means)
                self.leaf_variances_.append(variances)
        return self

    def predict(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean and standard deviation (m,) of the losses at features ``X`` (m, f)."""
        check_is_fitted(self, "trees_")
        X = as_features(X, self.n_features_in_)
        X32 = self._scale(X)
        mean, variance = self._moments([tree.apply(X32) for tree in self.trees_])
        return self.y_centre_ + self.y_scale_ * mean, self.y_scale_ * np.sqrt(variance)

    def _scale(self, X: FloatArray) -> npt.NDArray[np.float32]:
        """Clip each column to its training range and map it to [0, 1].

        A split asks only on which side of a threshold a value lies, so that its scale should not
        matter. But scikit-learn takes float32 values closer than 1e-7 for equal, and its random
        splits may send a value above the range of training to the side of the missing ones.
        """
        scaled = np.clip(X, self.X_low_, self.X_high_)
        scaled -= self.X_low_
        span = self.X_high_ - self.X_low_
        # A column with one value is 0 everywhere, one without any stays NaN.
        scaled /= np.where(span > 0, span, 1.0)
        # ``tree_`` takes only this type, and without an input check nothing is converted to it.
        return np.ascontiguousarray(scaled, dtype=np.float32)

    def _moments(self, leaves: list[IndexArray]) -> tuple[FloatArray, FloatArray]:
        """Mean (m,) and variance (m,) of standardised losses from the leaves reached.

        They are taken over the predictions of the B trees (thesis 3.2.1): one tree has variance 0.
        """
        means = _look_up(self.leaf_means_, leaves)
        return means.mean(axis=0), means.var(axis=0)


@dataclass(eq=False, repr=False, kw_only=True)
class RandomForest(_TreeEnsemble):
    """Random forest with the tree-level or the leaf-level uncertainty of SMAC.

    Args:
        n_trees: Number of trees B.
        max_features: Share of the columns eligible at each split, in (0, 1]; rounded up to whole
            columns (thesis 3.2.3).
        min_samples_split: Rows a node needs to be split further (n_min), repetitions counted.
        min_samples_leaf: Rows each side of a split must keep, repetitions counted.
        splitter: "random" draws one threshold per eligible column and takes the best of these,
            "best" searches all thresholds.
        bootstrap: Whether each tree learns from n rows drawn with repetition, or from all rows.
        uncertainty: "leaf" adds the variance within the leaves to that between the trees (eq.
            3.2), "tree" uses the latter alone (3.2.1).
        variance_floor: Lower bound of the variance in a leaf, for losses of variance 1. Without
            it a leaf of one row would be certain. Unused if ``uncertainty`` is "tree".
        random_state: Seed or generator; None draws fresh entropy.

    Constant losses keep their scale: the mean is the constant, the standard deviation is 0 at tree
    level and ``sqrt(variance_floor)`` at leaf level.

    Example::

        mean, std = RandomForest.smac(random_state=1).fit(X, y).predict(X_new)
    """

    n_trees: int = 10
    max_features: float = 1.0
    min_samples_split: int = 2
    min_samples_leaf: int = 1
    splitter: Literal["random", "best"] = "random"
    bootstrap: bool = True
    uncertainty: Literal["leaf", "tree"] = "leaf"
    variance_floor: float = 0.01
    random_state: Seed = None

    @classmethod
    def smac(cls, *, random_state: Seed = None) -> Self:
        """Return the forest of SMAC 2.4's hyperparameter optimisation facade.

        These are the defaults of the class but for the uncertainty, which SMAC 2 takes at tree
        level. SMAC also models the logarithm of the loss; take it before ``fit`` if wanted.
        """
        return cls(uncertainty="tree", random_state=random_state)

    @classmethod
    def thesis(cls, *, random_state: Seed = None) -> Self:
        """Return SMAC's forest as the thesis describes it (3.2.3): p = 5/6, n_min = 10.

        The variance floor, 0.01 in the thesis, is in units of the variance of the losses here.
        """
        return cls(
            max_features=5 / 6, min_samples_split=10, splitter="best", random_state=random_state
        )

    def _check_arguments(self) -> None:
        check_integer("n_trees", self.n_trees, 1)
        check_integer("min_samples_split", self.min_samples_split, 2)
        check_integer("min_samples_leaf", self.min_samples_leaf, 1)
        is_number = isinstance(self.max_features, Real)
        if not is_number or not 0 < self.max_features <= 1:
            error = ValueError if is_number else TypeError  # scikit-learn also takes "sqrt"
            raise error(f"max_features must be in (0, 1], got {self.max_features!r}.")
        check_finite("variance_floor", self.variance_floor)
        check_choice("splitter", self.splitter, ("random", "best"))
        check_choice("uncertainty", self.uncertainty, ("leaf", "tree"))

    def _new_tree(self, n_features: int, seed: int) -> Any:
        return DecisionTreeRegressor(
            splitter=self.splitter,
            # 1e-9 is for products such as 0.07 * 100 = 7.000000000000001.
            max_features=max(1, ceil(self.max_features * n_features - 1e-9)),
            min_samples_split=self.min_samples_split,
            min_samples_leaf=self.min_samples_leaf,
            random_state=seed,
        )

    def _moments(self, leaves: list[IndexArray]) -> tuple[FloatArray, FloatArray]:
        mean, variance = super()._moments(leaves)
        if self.uncertainty == "leaf":
            # sigma^2 = mean_b(s2_b + mu_b^2) - mu^2 (eq. 3.2), in a form that cannot cancel.
            within = np.maximum(_look_up(self.leaf_variances_, leaves), self.variance_floor)
            variance = within.mean(axis=0) + variance
        return mean, variance


@dataclass(eq=False, repr=False, kw_only=True)
class ExtraTrees(_TreeEnsemble):
    """Extremely randomised trees on all rows, with tree-level uncertainty (thesis 4.1.2).

    Args:
        n_trees: Number of trees B.
        max_leaves: Largest number of leaves of a tree, at least 2.
        random_state: Seed or generator; None draws fresh entropy.

    Example::

        mean, std = ExtraTrees(random_state=1).fit(X, y).predict(X_new)
    """

    n_trees: int = 100
    max_leaves: int = 64
    random_state: Seed = None

    def _check_arguments(self) -> None:
        check_integer("n_trees", self.n_trees, 1)
        check_integer("max_leaves", self.max_leaves, 2)

    def _new_tree(self, n_features: int, seed: int) -> Any:
        return ExtraTreeRegressor(max_leaf_nodes=self.max_leaves, random_state=seed)
