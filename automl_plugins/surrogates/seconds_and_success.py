"""Models of the seconds (GBQR thesis 5.2) and of the probability of success, not of the loss.

Trees learn which rows failed. The value of a constraint may also say how far its border is, and
the loss is known on both sides: a Gaussian process learns it.

Notation of this module, besides that of ``base``::

    c       values of a constraint, shape (n,); it holds where c <= 0
    z       c compressed, so that far values count less, shape (n,)
    y       1 where a row succeeded, else 0, shape (n,)
    shares  share of successes at each node of a tree, for each of ``_LEAST_ROWS``, (4, nodes)
    votes   sums over trees of the shares at the nodes that rows end in, (4, n)
    target  ln seconds, shape (n,); ``raised`` to the prediction where a lower bound is below it
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import lightgbm
import numpy as np
import numpy.typing as npt
from scipy.special import log_ndtr, softmax
from sklearn import config_context
from sklearn.base import BaseEstimator
from sklearn.tree import ExtraTreeRegressor
from sklearn.utils.validation import check_is_fitted

from automl_plugins._arguments import check_finite, check_integer
from automl_plugins.arrays import BoolArray, FloatArray, IndexArray, check_seconds, check_shape
from automl_plugins.records.scores import HUGE
from automl_plugins.surrogates.averaged_process import AveragedProcess
from automl_plugins.surrogates.base import as_features, as_training, informative_rows
from automl_plugins.surrogates.quantile_boosting import SMALL_DATA, boost

_LEAST_ROWS = (1, 4, 16, np.inf)  # fewest rows of a node that predicts; inf leaves only the root
_TINY = 1e-300  # a likelihood that has a logarithm
_N_HALVINGS = 10  # random halvings of the rows that judge these: 20 trees, each of half the rows


@dataclass(eq=False, repr=False, kw_only=True)
class Feasibility(BaseEstimator):  # type: ignore[misc]
    """P(success) by extremely randomised trees, as detailed as held-out rows support.

    Random cuts put the border between a success and a failure at every place between the two, so
    the averaged probability falls smoothly over the gap: the search approaches the border of a
    failing region by bisection, and does not need to crash along all of it.

    But a failure may be due to chance, and say nothing about its neighbours. So the trees predict
    in four ways: by their leaves, by nodes of at least 4 and of at least 16 rows, and by the share
    of successes everywhere. Each way is weighted by its likelihood on held-out rows, from trees
    of random halves of the rows (the posterior probabilities of four models, equal a priori).

    Args:
        n_trees: Number of trees.
        prior: Weight of the prior, > 0, in observations; the prior mean is the share of successes
            with one more success and one more failure.
        random_state: Seed of the trees.

    Example::

        probability = Feasibility(random_state=1).fit(X, succeeded).predict(X_new)
    """

    n_trees: int = 50
    prior: float = 0.1
    random_state: int | None = None

    def fit(self, X: FloatArray, success: BoolArray) -> Self:
        """Learn from features ``X`` (n, f) and the mask ``success`` (n,).

        Raises:
            ValueError: For wrong shapes, or anything but a mask.
        """
        check_integer("n_trees", self.n_trees, 1)
        check_finite("prior", self.prior, positive=True)
        X, y = as_training(X, success)
        if not np.isin(y, (0.0, 1.0)).all():
            raise ValueError("success must be a mask: true where a row succeeded.")
        self.n_features_in_ = X.shape[1]
        n = len(y)
        self.rate_ = float((y.sum() + 1.0) / (n + 2.0))  # Laplace's rule of succession
        self.trees_: list[tuple[Any, FloatArray]] = []  # with the prediction of each node
        self.held_out_ = np.full(n, self.rate_)
        if not 0.0 < y.mean() < 1.0:  # no tree could split
            return self
        X32 = np.ascontiguousarray(X, dtype=np.float32)
        has_nan = not np.isfinite(X32).all()
        seeds = np.random.RandomState(self.random_state)
        with config_context(skip_parameter_validation=True):
            grown = [_grow(X32, y, seeds, has_nan) for _ in range(self.n_trees)]
            votes = np.zeros((len(_LEAST_ROWS), n))
            for _ in range(_N_HALVINGS):
                order = seeds.permutation(n)
                halves = order[: n // 2], order[n // 2 :]
                for rows, others in (halves, halves[::-1]):  # so each halving votes on each row
                    tree, shares = _grow(X32[rows], y[rows], seeds, has_nan)
                    votes[:, others] += shares[:, tree.apply(X32[others])]
        held_out = self._with_prior(votes / _N_HALVINGS)
        # Probability of each outcome (4, n). The logarithms add up to the log likelihood of each
        # way, and softmax turns these into posterior probabilities.
        observed = np.where(y > 0.5, held_out, 1.0 - held_out)
        self.weights_ = softmax(np.log(np.maximum(observed, _TINY)).sum(axis=1))
        self.held_out_ = self.weights_ @ held_out
        # Weighed here, once, so that a prediction looks up one number in each tree.
        self.trees_ = [(tree, self.weights_ @ shares) for tree, shares in grown]
        return self

    def predict(self, X: FloatArray) -> FloatArray:
        """Probability of success (m,), strictly between 0 and 1."""
        check_is_fitted(self)
        X = as_features(X, self.n_features_in_)
        if not self.trees_:
            return np.full(len(X), self.rate_)
        X32 = np.ascontiguousarray(X, dtype=np.float32)
        votes = np.zeros(len(X))
        for tree, shares in self.trees_:  # predict_proba would check the input for each of them
            votes += shares[tree.apply(X32)]
        return self._with_prior(votes / self.n_trees)

    def held_out(self) -> FloatArray:
        """Probability of success (n,) of each row of ``fit``, by trees that did not learn it."""
        check_is_fitted(self)
        return self.held_out_

    @property
    def predictable(self) -> bool:
        """Whether success depends on the configuration: the leaves have most of the weight."""
        return bool(self.trees_) and bool(self.weights_[0] > 0.5)

    def _with_prior(self, share: FloatArray) -> FloatArray:
        return (share + self.prior * self.rate_) / (1.0 + self.prior)


def _grow(
    X: npt.NDArray[np.float32], y: FloatArray, seeds: np.random.RandomState, has_nan: bool
) -> tuple[Any, FloatArray]:
    """A tree, and the share of successes (4, nodes) at each node by ``_LEAST_ROWS``.

    A node with too few rows has the share of the nearest node above it that has enough.
    """
    # As in ExtraTreesClassifier, without its own work for each tree: the variance of 0 and 1 is
    # half of their Gini impurity, and a regression tree does not look for classes first, which
    # takes as long as growing it. Only missing values need scikit-learn's input check. And a
    # generator that all trees share saves a quarter of the time, which seeding one each takes.
    model = ExtraTreeRegressor(max_features=None, random_state=seeds)
    tree = model.fit(X, y, check_input=has_nan).tree_
    share = tree.value[:, 0, 0]
    above = np.zeros(tree.node_count, dtype=np.int64)
    inner = np.flatnonzero(tree.children_left >= 0)
    above[tree.children_left[inner]] = above[tree.children_right[inner]] = inner
    node = np.arange(tree.node_count)
    rows = tree.n_node_samples
    shares = np.empty((len(_LEAST_ROWS), tree.node_count))
    for i, least in enumerate(_LEAST_ROWS):
        # A level up at a time; the root, node 0, ends it.
        while (small := np.flatnonzero((rows[node] < least) & (node > 0))).size:
            node[small] = above[node[small]]
        shares[i] = share[node]
    return tree, shares


_BORDER_ROWS = 150  # most rows of a constraint that are learnt


@dataclass(eq=False, repr=False, kw_only=True)
class Constraints(BaseEstimator):  # type: ignore[misc]
    """P(all constraints hold), by a Gaussian process on the values of each (Gardner et al. 2014).

    The values are compressed, z = sign(c) ln(1 + |c| / median |c|): the border counts, not how
    large a violation may become. A constraint that is never below 0 does not say by how much it
    holds: there its distance from the border counts as the median one.

    Args:
        implied: Columns without an activity flag, see ``AveragedProcess``.

    Example::

        log_p = Constraints().fit(X, values).log_probability(X_new)
    """

    implied: Sequence[int] = ()

    def fit(self, X: FloatArray, values: FloatArray) -> Self:
        """Learn from features ``X`` (n, f) and ``values`` (n, c), NaN where unknown.

        Each constraint must have at least one value above 0.
        """
        self.processes_ = []
        for column in np.asarray(values, dtype=np.float64).T:
            known = np.flatnonzero(~np.isnan(column))
            c = np.clip(column[known], -HUGE, HUGE)
            # Rows on the border itself, c = 0, give no unit.
            unit = np.median(np.abs(c[c != 0.0]))
            if not (c < 0.0).any():  # c = 0 wherever it holds, not on the border
                c[c == 0.0] = -unit
            with np.errstate(over="ignore"):
                size = np.minimum(np.abs(c) / unit, HUGE)
            z = np.sign(c) * np.log1p(size)
            rows = _border_rows(z)
            process = AveragedProcess(implied=self.implied)
            self.processes_.append(process.fit(X[known[rows]], z[rows]))
        return self

    def log_probability(self, X: FloatArray) -> FloatArray:
        """Logarithm (m,) of the probability that all constraints hold."""
        check_is_fitted(self)
        total = np.zeros(len(X))
        for process in self.processes_:
            mean, std = process.predict(X)
            # Constraints are independent, as in the paper; a product of many would underflow.
            total += log_ndtr(-mean / np.maximum(std, _TINY))
        return total


def _border_rows(z: FloatArray) -> IndexArray:
    """Positions of at most ``_BORDER_ROWS`` compressed values (n,) that show the border.

    If one side has few rows, all of them are kept: yes-or-no values are equally far from the
    border, and nothing else shows it. Of the others half are nearest to the border; a process
    itself would keep rows far inside. Of equally far rows the newest are kept, for the search
    draws near to the border.
    """
    few, many = sorted((np.flatnonzero(z > 0.0), np.flatnonzero(z <= 0.0)), key=len)
    if len(few) > _BORDER_ROWS // 2:
        few, many = few[:0], np.arange(len(z))
    newest_first = many[::-1]  # equal values rank in the order of the rows
    chosen = informative_rows(np.abs(z[newest_first]), _BORDER_ROWS - len(few))
    return np.sort(np.concatenate([few, newest_first[chosen]]))


_FLOOR = 1e-3  # seconds: below a millisecond clocks measure themselves
_CEILING = 1e9  # seconds, a generation: beyond it a clock was wrong
_BEYOND = 1e3  # factor by which costs, in units such as money, may differ from their median
_CENSORED_ROUNDS = 4  # with 300 rows, half of them bounds, the bias is half that of 2 rounds


@dataclass(eq=False, repr=False, kw_only=True)
class RunningTime(BaseEstimator):  # type: ignore[misc]
    """LightGBM regression on ln seconds: 100 trees, 4 leaves, rate 0.15, L1 0.20 (thesis 5.2.3).

    Targets are **seconds**; the logarithm is taken inside. Rows whose seconds are only a lower
    bound (pruned or still running) are raised to the model's own prediction where that is
    higher, and the model is fitted again, four times (the EM steps of a censored regression).

    What differs from the thesis: a leaf has a twentieth of the rows or more, where LightGBM's 20
    would never split a few. Outliers are clipped, bounds are censored, and the mean of the seconds
    is predicted, not the mean of their logarithm.

    Args:
        n_trees: Boosting rounds.
        learning_rate: Shrinkage of each tree.
        num_leaves: Leaves of each tree.
        l1: L1 regularisation of the leaf values.
        random_state: Seed of LightGBM.

    Example::

        seconds_new = RunningTime().fit(X, seconds).predict_seconds(X_new)
    """

    n_trees: int = 100
    learning_rate: float = 0.15
    num_leaves: int = 4
    l1: float = 0.20
    random_state: int | None = None

    def fit(
        self, X: FloatArray, seconds: FloatArray, lower_bound: BoolArray | None = None
    ) -> Self:
        """Fit on features ``X`` (n, f) and ``seconds`` (n,).

        Args:
            X: Features, NaN = inactive.
            seconds: Cost of each row, >= 0, in seconds or any other unit. Costs are clipped to
                [0.001, 10^9], but never within a factor of 1 000 of their median.
            lower_bound: Mask (n,) of the rows that took at least this long.
        """
        check_integer("n_trees", self.n_trees, 1)
        check_integer("num_leaves", self.num_leaves, 2)
        check_finite("learning_rate", self.learning_rate, positive=True)
        check_finite("l1", self.l1)
        X, seconds = as_training(X, seconds)
        check_seconds("seconds", seconds)
        self.n_features_in_ = X.shape[1]
        typical = float(np.median(seconds)) or 1.0  # most are 0, which is no unit
        limits = min(_FLOOR, typical / _BEYOND), max(_CEILING, typical * _BEYOND)
        # Limits around the median, because a cost need not be in seconds.
        target = raised = np.log(np.clip(seconds, *limits))
        self.model_ = self._boost(X, target)
        if lower_bound is None:
            lower_bound = np.zeros(len(target), dtype=bool)
        lower_bound = np.asarray(lower_bound, dtype=bool)
        check_shape("lower_bound", lower_bound, len(target))
        for _ in range(_CENSORED_ROUNDS if lower_bound.any() else 0):
            predicted = np.asarray(self.model_.predict(X, num_threads=1))
            # From the bounds anew, so that what a round has predicted too high can fall again.
            raised = np.where(lower_bound, np.maximum(target, predicted), target)
            self.model_ = self._boost(X, raised)
        residual = raised - np.asarray(self.model_.predict(X, num_threads=1))
        # Residuals of bounds do not count: they say nothing about how times vary.
        self.std_ = float(residual[~lower_bound | lower_bound.all()].std())
        return self

    def predict(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean of ln seconds (m,) and its residual standard deviation (m,)."""
        check_is_fitted(self)
        X = as_features(X, self.n_features_in_)
        mean = np.asarray(self.model_.predict(X, num_threads=1), dtype=np.float64)
        return mean, np.full(len(X), self.std_)

    def predict_seconds(self, X: FloatArray) -> FloatArray:
        """Expected seconds (m,): the mean exp(mu + sigma^2 / 2) of a log-normal."""
        mean, std = self.predict(X)
        return np.exp(mean + std**2 / 2.0)

    def _boost(self, X: FloatArray, target: FloatArray) -> lightgbm.Booster:
        parameters: dict[str, object] = {
            "objective": "regression",
            "num_leaves": self.num_leaves,
            "learning_rate": self.learning_rate,
            "lambda_l1": self.l1,
            # The default of 20 predicts one constant below 40 rows.
            "min_data_in_leaf": int(np.clip(len(target) // 20, 1, 20)),
            "min_sum_hessian_in_leaf": 0.0,
            "seed": 0 if self.random_state is None else self.random_state,
        }
        return boost(lightgbm.Dataset(X, target, params=SMALL_DATA), parameters, self.n_trees)
