"""GBQR: gradient boosting with quantile regression (van Hoof 2018, thesis 5.3 and 5.4).

One LightGBM model per quantile. Three forms, all ``fit(X, y)`` / ``predict(X)``:

* ``"bound"``: one model of the alpha-quantile of the loss. Its prediction is the bound that
  is optimised, without a mean and without expected improvement (thesis 5.3.2). std = 0. As in the
  thesis it is fitted to a score, the negated loss, by the quantile 1 - alpha: LightGBM counts a
  residual of exactly 0, of which there are many in small data, as one below the prediction, so
  the two are no mirror images.
* ``"three_quantile"``: q16, q50 and q84; std = (q84 - q16) / 2 around q50 (thesis eq. 5.1).
* ``"ensemble"``: ``n_models`` models of the alpha-quantile, each with the weights of a bootstrap
  sample; mean and standard deviation between them. Not in the thesis, whose single model has no
  deviation: where it is wrong it stays wrong, see ``docs/ideas/gbqr.md``. A row of weight 0 takes
  no part in the cuts, but LightGBM interpolates the quantile of a leaf between all its rows.

``X`` (n, f), ``y`` (n,) and ``z`` (n,) are those of ``base``; ``quantiles`` (models, m) are
predicted on the scale of z, and negated for a bound.
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Literal, Self, get_args

import lightgbm
import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from automl_plugins._arguments import check_choice, check_finite, check_integer
from automl_plugins.arrays import FloatArray
from automl_plugins.surrogates.base import as_features, as_training, standardise

Form = Literal["bound", "three_quantile", "ensemble"]

_THREE_QUANTILES = (0.16, 0.50, 0.84)  # eq. 5.1: one standard deviation around the median


@dataclass(eq=False, repr=False, kw_only=True)
class QuantileBoosting(BaseEstimator):  # type: ignore[misc]
    """LightGBM quantile regression as a surrogate of the loss.

    Args:
        form: ``"ensemble"``, ``"bound"`` or ``"three_quantile"``, see the module's head.
        alpha: Quantile of the **loss** in (0, 1); the thesis's 0.9 of a score is 0.1 here.
            Unused by the three-quantile form.
        n_models: Bootstrap models of the ensemble form.
        n_trees: Boosting rounds of each model.
        learning_rate: Shrinkage of each tree.
        num_leaves: Leaves of each tree.
        min_leaf_rows: Least number of rows in a leaf. LightGBM's own default of 20 makes every
            prediction constant up to 40 rows.
        max_bin: Bins of a column. The search for a split among them takes most of the time of a
            fit; up to 62 rows, 63 bins hold one row each. LightGBM's own default is 255.
        random_state: Seed of the bootstrap samples and of LightGBM.

    Attributes:
        models_: The fitted boosters, of standardised losses, negated for ``"bound"``; none when
            the losses were constant.
        centre_: Loss that is 0 on the boosters' scale.
        scale_: Difference of losses that is 1 on the boosters' scale.
        constant_: The prediction when all losses are equal, else NaN.
        left_out_: Mask (n_models, n) of the rows that each bootstrap sample left out.

    Example::

        mean, std = QuantileBoosting(alpha=0.3, random_state=1).fit(X, y).predict(X_new)
    """

    form: Form = "ensemble"
    alpha: float = 0.3
    n_models: int = 5
    n_trees: int = 30
    learning_rate: float = 0.3
    num_leaves: int = 16
    min_leaf_rows: int = 1
    max_bin: int = 63
    random_state: int | None = None

    @classmethod
    def thesis(cls, *, random_state: int | None = None) -> QuantileBoosting:
        """The settings of thesis 5.3.2: one model, alpha 0.9 of the score, 100 trees, 8 leaves."""
        return cls(
            form="bound",
            alpha=0.1,
            n_trees=100,
            learning_rate=0.1,
            num_leaves=8,
            max_bin=255,
            random_state=random_state,
        )

    def fit(self, X: FloatArray, y: FloatArray) -> Self:
        """Fit the models on features ``X`` (n, f) and losses ``y`` (n,)."""
        self.check_arguments()
        X, y = as_training(X, y)
        rng = np.random.default_rng(self.random_state)
        self.models_: list[lightgbm.Booster] = []
        self.constant_ = float("nan")
        self.left_out_ = np.zeros((0, len(y)), dtype=bool)
        # LightGBM keeps targets in single precision; quantiles are equivariant, so nothing else
        # changes.
        z, self.centre_, self.scale_ = standardise(y)
        self.n_features_in_ = X.shape[1]
        if y.min() == y.max():  # there is nothing to split
            self.constant_ = float(y[0])
            return self
        self._learnt = X  # for ``held_out``: ``left_out_`` refers to these rows
        binned = SMALL_DATA | {"max_bin": self.max_bin}
        data = lightgbm.Dataset(X, self._sign * z, params=binned).construct()
        if self.form == "ensemble":
            for _ in range(self.n_models):
                # A bootstrap sample is a weight: how often each row was drawn. One data set,
                # binned once, serves all models.
                drawn = np.bincount(rng.integers(len(y), size=len(y)), minlength=len(y))
                self.left_out_ = np.vstack([self.left_out_, drawn == 0])
                data.set_weight(drawn.astype(np.float64))
                self.models_.append(self._boost(data, self.alpha, rng))
        else:
            quantiles = (1.0 - self.alpha,) if self.form == "bound" else _THREE_QUANTILES
            self.models_ = [self._boost(data, quantile, rng) for quantile in quantiles]
        return self

    def predict(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean (m,) and standard deviation (m,) of the predicted quantiles at ``X`` (m, f)."""
        check_is_fitted(self)
        X = as_features(X, self.n_features_in_)
        if not self.models_:
            return np.full(len(X), self.constant_), np.zeros(len(X))
        quantiles = np.stack(
            [np.asarray(model.predict(X, num_threads=1)) for model in self.models_]
        )
        if self.form == "three_quantile":
            # Separately fitted quantiles may cross; sorting is the least change that uncrosses.
            low, median, high = np.sort(quantiles, axis=0)
            mean, std = median, (high - low) / 2.0  # eq. 5.1
        else:
            # The single model of a bound has no deviation: std is 0.
            mean, std = self._sign * quantiles.mean(axis=0), quantiles.std(axis=0)
        return self.centre_ + self.scale_ * mean, self.scale_ * std

    def held_out(self) -> FloatArray:
        """Mean prediction (n,) for each row by the models whose sample left it out; NaN without.

        A row that was left out has weight 0, and still bounds the interpolated quantile of its
        leaf: a loss far below all others remains visible, and on noise the correlation with the
        losses is about 0.1 instead of 0. Models without these rows were tried: searches were
        level, see "How these searches came about" in docs/evidence/README.md.
        """
        check_is_fitted(self)
        n_models, n = self.left_out_.shape
        if not n_models:  # constant losses, or NaN for a form without bootstrap samples
            return np.full(n, self.constant_)
        predicted = [np.asarray(m.predict(self._learnt, num_threads=1)) for m in self.models_]
        votes = self.left_out_.sum(axis=0)
        total = np.where(self.left_out_, predicted, 0.0).sum(axis=0)
        return np.asarray(self.centre_ + self.scale_ * total / np.where(votes > 0, votes, np.nan))

    @property
    def _sign(self) -> float:
        """-1 if the models are fitted to a score, the negated loss; 1 if they are fitted to it."""
        return -1.0 if self.form == "bound" else 1.0

    def _boost(
        self, data: lightgbm.Dataset, quantile: float, rng: np.random.Generator
    ) -> lightgbm.Booster:
        parameters: dict[str, object] = {
            "objective": "quantile",
            "alpha": quantile,
            "num_leaves": self.num_leaves,
            "learning_rate": self.learning_rate,
            # The Hessian of the quantile loss is the row's weight, so rows that were not drawn do
            # not count here; min_data_in_leaf counts them. Half a row less, as sums are rounded.
            "min_sum_hessian_in_leaf": self.min_leaf_rows - 0.5,
            "min_data_in_leaf": 1,
            "seed": int(rng.integers(2**31)),
            "max_bin": self.max_bin,
        }
        return boost(data, parameters, self.n_trees)

    def check_arguments(self) -> None:
        """Raise ValueError or TypeError for the first illegal argument."""
        check_choice("form", self.form, get_args(Form))
        is_number = isinstance(self.alpha, Real)
        if not is_number or not 0.0 < self.alpha < 1.0:
            error = ValueError if is_number else TypeError
            raise error(f"alpha must lie in (0, 1), got {self.alpha!r}.")
        least = {"n_models": 1, "n_trees": 1, "num_leaves": 2, "min_leaf_rows": 1, "max_bin": 2}
        for name, low in least.items():
            check_integer(name, getattr(self, name), low)
        check_finite("learning_rate", self.learning_rate, positive=True)


def boost(data: lightgbm.Dataset, parameters: dict[str, object], n_trees: int) -> lightgbm.Booster:
    """A booster of ``n_trees`` rounds on ``data``, which was made with ``SMALL_DATA``.

    ``lightgbm.train`` would end by writing the model to text and reading it back, which takes as
    long as the training does at these sizes; ``LGBMRegressor.fit`` refuses a single row.
    """
    booster = lightgbm.Booster(SMALL_DATA | parameters, data)
    for _ in range(n_trees):
        if booster.update():  # no split improves anything any more
            break
    return booster


SMALL_DATA: dict[str, object] = {
    # LightGBM's defaults are made for large data: they bin and stop far too early here, and
    # more than one thread is slower. One thread also keeps a forked child from waiting for the
    # OpenMP threads that only its parent has.
    # With 3 rows in a bin, the default, neighbours cannot be told apart.
    "min_data_in_bin": 1,
    # LightGBM would drop, while binning, columns that cannot be split with 20 rows in a leaf.
    "feature_pre_filter": False,
    "num_threads": 1,
    # Each fit would choose the faster of two layouts, whose sums differ in the last digits.
    "deterministic": True,
    "force_row_wise": True,
    "verbosity": -1,
}
