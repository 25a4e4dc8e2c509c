"""GaussianProcess and the numeric functions below it."""

from __future__ import annotations

import numpy as np
import pytest

from automl_plugins.surrogates.base import FloatArray
from automl_plugins.surrogates.gaussian_process import (
    GaussianProcess,
)


def sample(
    n: int = 25, seed: int = 0, *, noise: float = 0.0, missing: bool = False
) -> tuple[FloatArray, FloatArray]:
    """Return features (n, 3), of which the last does not matter, and losses (n,)."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, 3))
    y = np.sin(5.0 * X[:, 0]) + X[:, 1] ** 2 + noise * rng.normal(size=n)
    if missing:
        X[::4, 1] = np.nan
    return X, y


def kernel_matrix(A: FloatArray, B: FloatArray, theta: FloatArray) -> FloatArray:
    """Constant x Matern-5/2 of all pairs of rows, one pair at a time."""
    K = np.empty((len(A), len(B)))
    for i, a in enumerate(A):
        for j, b in enumerate(B):
            r = np.sqrt(5.0 * np.sum(((a - b) / np.exp(theta[1:-1])) ** 2))
            K[i, j] = np.exp(theta[0]) * (1.0 + r + r * r / 3.0) * np.exp(-r)
    return K


# Hand-computed values and independent implementations


def test_std_is_that_of_scikit_learn_without_the_noise() -> None:
    X, y = sample(noise=0.2)
    model = GaussianProcess(random_state=0).fit(X, y)
    Q, _ = sample(10, seed=1)
    mean, std = model.predict(Q)
    z_mean, z_std = model.regressor_.predict(Q, return_std=True)
    noise = model.regressor_.kernel_.k2.noise_level
    assert noise > 1e-3
    np.testing.assert_allclose(mean, y.mean() + y.std() * z_mean)
    np.testing.assert_allclose(std, y.std() * np.sqrt(z_std**2 - noise))


# Fit


def test_more_starts_are_never_worse() -> None:
    X, y = sample(noise=0.1)
    values = []
    for n_restarts in (0, 2, 5):
        model = GaussianProcess(n_restarts=n_restarts, random_state=0).fit(X, y)
        values.append(model.regressor_.log_marginal_likelihood_value_)
    assert values == sorted(values)


@pytest.mark.parametrize("noise", [0.0, 10.0])
def test_hyperparameters_stay_in_their_bounds_without_warning(noise: float) -> None:
    # Warnings are errors: scikit-learn's own search would warn at the bounds touched here.
    X, y = sample(noise=noise)
    kernel = GaussianProcess(random_state=0).fit(X, y).regressor_.kernel_
    assert (kernel.theta >= kernel.bounds[:, 0]).all()
    assert (kernel.theta <= kernel.bounds[:, 1]).all()


def test_column_without_effect_gets_the_longest_length_scale() -> None:
    scales = GaussianProcess(random_state=0).fit(*sample(60)).regressor_.kernel_.k1.k2.length_scale
    assert np.argmax(scales) == 2


@pytest.mark.parametrize("seed", range(5))
def test_constant_column_keeps_its_length_scale(seed: int) -> None:
    X, y = sample(noise=0.1)
    X[:, 2] = 0.7
    kernel = GaussianProcess(n_restarts=4, random_state=seed).fit(X, y).regressor_.kernel_
    assert kernel.k1.k2.length_scale[2] == pytest.approx(1.0, rel=1e-6)


def test_rows_beyond_the_limit_are_left_out() -> None:
    X, y = sample(40)
    model = GaussianProcess(max_rows=10, random_state=0).fit(X, y)
    assert model.regressor_.X_train_.shape == (10, 3)
    assert X[np.argmin(y)] in model.regressor_.X_train_
    assert X[np.argmax(y)] in model.regressor_.X_train_
    assert model.y_centre_ == pytest.approx(y.mean())
    assert model.y_scale_ == pytest.approx(y.std())


# Invariants


@pytest.mark.parametrize(("scale", "shift"), [(1e-12, 0.0), (1e12, 0.0), (0.1, -7.0), (1.0, 1e6)])
def test_affine_map_of_losses(scale: float, shift: float) -> None:
    X, y = sample(noise=0.1)
    Q, _ = sample(20, seed=1)
    mean, std = GaussianProcess(random_state=0).fit(X, y).predict(Q)
    mapped_mean, mapped_std = GaussianProcess(random_state=0).fit(X, scale * y + shift).predict(Q)
    # The search ends at slightly different points.
    np.testing.assert_allclose((mapped_mean - shift) / scale, mean, atol=1e-3)
    np.testing.assert_allclose(mapped_std / scale, std, atol=1e-3)


def test_order_of_rows_and_queries_does_not_matter() -> None:
    X, y = sample(noise=0.1, missing=True)
    Q, _ = sample(20, seed=1)
    order = np.random.default_rng(1).permutation(len(X))
    model = GaussianProcess(random_state=0).fit(X, y)
    permuted = GaussianProcess(random_state=0).fit(X[order], y[order])
    np.testing.assert_allclose(permuted.predict(Q), model.predict(Q), atol=1e-3)
    for whole, part in zip(model.predict(Q), model.predict(Q[::-1]), strict=True):
        np.testing.assert_allclose(part, whole[::-1], atol=1e-9)


def test_smooth_losses_are_interpolated() -> None:
    X, y = sample(40)
    Q, y_query = sample(50, seed=1)
    model = GaussianProcess(random_state=0).fit(X, y)
    mean, std = model.predict(X)
    np.testing.assert_allclose(mean, y, atol=0.01 * y.std())
    assert (std < 0.01 * y.std()).all()
    mean, std = model.predict(Q)
    assert np.corrcoef(mean, y_query)[0, 1] > 0.99
    assert (np.abs(mean - y_query) < 5.0 * std + 1e-3).all()


def test_far_from_the_data_the_prior_returns() -> None:
    X, y = sample()
    model = GaussianProcess(random_state=0).fit(X, y)
    mean, std = model.predict(np.full((1, 3), 1e9))
    assert mean[0] == pytest.approx(y.mean())
    assert std[0] == pytest.approx(
        y.std() * np.sqrt(model.regressor_.kernel_.k1.k1.constant_value)
    )


# Edges


@pytest.mark.parametrize("n", [1, 2, 20])
def test_constant_losses(n: int) -> None:
    X = np.random.default_rng(0).random((n, 2))
    mean, std = (
        GaussianProcess(random_state=0)
        .fit(X, np.full(n, 0.1))
        .predict(np.vstack([X, [[0.5, np.nan], [1e9, 1e9]]]))
    )
    np.testing.assert_array_equal(mean, 0.1)
    assert (std > 0.0).all()
    assert (std[:n] <= 0.1).all()
    assert std[-1] == pytest.approx(1.0)


def test_one_row_of_missing_values() -> None:
    model = GaussianProcess(random_state=0).fit(np.full((1, 2), np.nan), np.array([3.0]))
    mean, std = model.predict(np.array([[np.nan, np.nan], [0.5, 0.5]]))
    np.testing.assert_array_equal(mean, 3.0)
    assert 0.0 < std[0] < std[1]


def test_contradicting_duplicates_are_averaged() -> None:
    X = np.repeat([[0.0], [0.5], [1.0]], 10, axis=0)
    y = np.repeat([1.0, 3.0, 2.0], 10) + np.tile([-0.5, 0.5], 15)
    mean, std = GaussianProcess(random_state=0).fit(X, y).predict(X[::10])
    np.testing.assert_allclose(mean, [1.0, 3.0, 2.0], atol=0.1)
    # The noise of a single loss is 0.5, that of the mean of ten is 0.16.
    np.testing.assert_allclose(std, 0.5 / np.sqrt(10.0), rtol=0.3)


def test_many_identical_rows_stay_solvable() -> None:
    X = np.vstack([np.full((150, 2), 0.5), [[0.5, 0.6]]])
    y = np.append(np.zeros(150), 1.0)
    mean, std = GaussianProcess(random_state=0).fit(X, y).predict(X)
    np.testing.assert_allclose(mean, y, atol=0.05)
    assert np.isfinite(std).all()


def test_flag_tells_missing_from_the_imputed_value() -> None:
    rng = np.random.default_rng(0)
    X = rng.random((40, 2))
    X[:, 1] = np.where(np.arange(40) % 2 == 0, np.nan, 0.4 + 0.2 * X[:, 1])
    y = np.isnan(X[:, 1]) + 0.1 * X[:, 0]
    model = GaussianProcess(random_state=0).fit(X, y)
    np.testing.assert_array_equal(model.flagged_, [1])
    mean, _ = model.predict(np.array([[0.5, np.nan], [0.5, 0.5]]))
    np.testing.assert_allclose(mean, [1.05, 0.05], atol=0.05)


def test_value_missing_only_at_prediction_is_imputed() -> None:
    X, y = sample()
    model = GaussianProcess(random_state=0).fit(X, y)
    assert model.flagged_.size == 0
    np.testing.assert_array_equal(
        model.predict(np.array([[0.2, np.nan, 0.3]])), model.predict(np.array([[0.2, 0.5, 0.3]]))
    )


def test_column_of_nothing_but_missing_values() -> None:
    X, y = sample()
    X[:, 2] = np.nan
    model = GaussianProcess(random_state=0).fit(X, y)
    mean, std = model.predict(X)
    np.testing.assert_allclose(mean, y, atol=0.05)
    present = X.copy()
    present[:, 2] = 0.5
    assert (model.predict(present)[1] > std).all()
