"""Gaussian process with a Matern-5/2 kernel, one length scale a column, and noise.

The kernel and its bounds are those of van Hoof, "Automated machine learning with gradient boosting
and meta-learning" (TU Eindhoven, 2018), section 4.1.2, called "thesis" below, with a length scale
for each column (ARD) and a noise term added. "RW" is Rasmussen and Williams, "Gaussian Processes
for Machine Learning" (MIT Press, 2006). Notation of this module::

    X      features, shape (n, f); after imputation and with activity flags, shape (n, d)
    z      standardised losses, shape (n,)
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from scipy.linalg import solve_triangular
from scipy.optimize import minimize
from sklearn.base import BaseEstimator
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel
from sklearn.utils.validation import check_is_fitted

from automl_plugins.surrogates.base import FloatArray, Seed, check_integer, standardise, validate
from automl_plugins.surrogates.processes import complete_inputs, informative_rows, log_likelihood

CONSTANT_BOUNDS = (0.01, 1000.0)  # thesis 4.1.2
LENGTH_SCALE_BOUNDS = (0.01, 100.0)  # thesis 4.1.2
# The lower bound keeps K positive definite in float64: its condition number is at most
# n * 1000 / 1e-6, duplicates included. The upper one explains all of the variance as noise.
NOISE_BOUNDS = (1e-6, 1.0)


class GaussianProcess(BaseEstimator):  # type: ignore[misc]
    """Gaussian process on standardised losses: constant x Matern-5/2 (ARD) + noise.

    Features should lie in about [0, 1], which is what the bounds of the length scales are made
    for. A missing value becomes 0.5, and each column with missing values in training gets a flag
    beside it, 1 where the value is present; a value missing only in ``predict`` is imputed alone.
    The standard deviation is that of the loss without its noise.

    Hyperparameters maximise the marginal likelihood, starting from all at 1 (noise at 0.01) and
    from ``n_restarts`` random points. With constant losses, or one row, they stay where they
    start: the mean is the constant, and the deviation about 0.1 at the rows and 1 far from them.

    Args:
        n_restarts: Number of further starts (thesis: 2).
        max_rows: Largest number of rows to learn from, at least 2; see ``informative_rows``.
            The cost of a fit grows with its cube.
        random_state: Seed or generator of the starts; None draws fresh entropy.

    Attributes:
        regressor_: scikit-learn's regressor, conditioned on the rows kept.
        flagged_: Columns with an activity flag, ascending.
        y_centre_: Mean of the losses.
        y_scale_: Standard deviation of the losses, 1 for constant ones.

    Example::

        mean, std = GaussianProcess(random_state=1).fit(X, y).predict(X_new)
    """

    def __init__(
        self, *, n_restarts: int = 2, max_rows: int = 300, random_state: Seed = None
    ) -> None:
        self.n_restarts = n_restarts
        self.max_rows = max_rows
        self.random_state = random_state

    def fit(self, X: FloatArray, y: FloatArray) -> Self:
        """Find the hyperparameters and condition on the data.

        Args:
            X: Features (n, f), n >= 1; NaN is legal.
            y: Losses (n,); constant ones are legal. All of them count in the standardisation,
                also those of rows left out.

        Raises:
            ValueError: For illegal constructor arguments or data.
        """
        check_integer("n_restarts", self.n_restarts, 0)
        check_integer("max_rows", self.max_rows, 2)
        X, y = validate(X, y)
        z, self.y_centre_, self.y_scale_ = standardise(y)
        self.n_features_in_ = X.shape[1]
        rows = informative_rows(y, self.max_rows)
        self.flagged_ = np.flatnonzero(np.isnan(X[rows]).any(axis=0))
        inputs, z = complete_inputs(X[rows], self.flagged_), z[rows]
        kernel = ConstantKernel(1.0, CONSTANT_BOUNDS) * Matern(
            np.ones(inputs.shape[1]), LENGTH_SCALE_BOUNDS, nu=2.5
        ) + WhiteKernel(0.01, NOISE_BOUNDS)
        if z.any():
            rng = np.random.default_rng(self.random_state)
            kernel = kernel.clone_with_theta(self._best_theta(kernel, inputs, z, rng))
        # The search above replaces that of scikit-learn, which warns at each bound that it meets.
        # It draws nothing; the seed keeps it from holding on to numpy's global generator.
        self.regressor_ = GaussianProcessRegressor(
            kernel, alpha=0.0, optimizer=None, random_state=0
        )
        self.regressor_.fit(inputs, z)
        return self

    def predict(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Predict the losses of configurations.

        Args:
            X: Features (m, f); NaN is legal.

        Returns:
            Mean (m,) and standard deviation (m,), in the units of the losses.

        Raises:
            NotFittedError: If ``fit`` was not called.
            ValueError: If the number of columns is not that of ``fit``.
        """
        check_is_fitted(self, "regressor_")
        X, _ = validate(X)
        if X.shape[1] != self.n_features_in_:
            raise ValueError(f"X must have {self.n_features_in_} columns, got {X.shape[1]}.")
        model, inputs = self.regressor_, complete_inputs(X, self.flagged_)
        signal = model.kernel_.k1  # without the noise
        K_query = signal(inputs, model.X_train_)  # (m, n)
        mean = K_query @ model.alpha_  # RW eq. 2.25
        v = solve_triangular(model.L_, K_query.T, lower=True, check_finite=False)
        variance = signal.diag(inputs) - np.einsum("nm,nm->m", v, v)  # RW eq. 2.26
        # 0 is for rounding at a training row with little noise.
        std = np.sqrt(np.maximum(variance, 0.0))
        return self.y_centre_ + self.y_scale_ * mean, self.y_scale_ * std

    def _best_theta(
        self, kernel: Any, inputs: FloatArray, z: FloatArray, rng: np.random.Generator
    ) -> FloatArray:
        """Return the best end point of the searches from all starts."""
        low, high = kernel.bounds.T
        # From the outer quarters of the intervals the likelihood is flat and no search gets away.
        starts = rng.uniform(
            0.75 * low + 0.25 * high, 0.25 * low + 0.75 * high, (self.n_restarts, len(low))
        )
        # A column that is constant so far gives no slope: its length scale stays at 1.
        starts[:, 1:-1][:, np.ptp(inputs, axis=0) == 0] = 0.0
        Z = z[:, None]
        ends = [
            minimize(
                lambda theta: tuple(
                    -part for part in log_likelihood(theta, inputs, Z, "matern52")
                ),
                start,
                jac=True,
                bounds=kernel.bounds,
                method="L-BFGS-B",
            )
            for start in (kernel.theta, *starts)
        ]
        best: FloatArray = min(ends, key=lambda end: end.fun).x
        return best
