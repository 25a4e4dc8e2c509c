"""GaussianProcess and the numeric functions below it."""

from __future__ import annotations

import pickle
from math import log, pi

import numpy as np
import pytest
from scipy.optimize import approx_fprime
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

from automl_plugins.surrogates.base import FloatArray, Surrogate
from automl_plugins.surrogates.gaussian_process import (
    CONSTANT_BOUNDS,
    LENGTH_SCALE_BOUNDS,
    NOISE_BOUNDS,
    GaussianProcess,
    informative_rows,
    log_marginal_likelihood,
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


def test_likelihood_of_one_row_by_hand() -> None:
    # K = 2 + 0.5: the density of N(0, 2.5) at 3
    value, gradient = log_marginal_likelihood(
        np.log([2.0, 1.0, 0.5]), np.array([[0.3]]), np.array([3.0])
    )
    assert value == pytest.approx(-0.5 * 9.0 / 2.5 - 0.5 * log(2.0 * pi * 2.5))
    slope = 0.5 * (9.0 / 2.5**2 - 1.0 / 2.5)
    np.testing.assert_allclose(gradient, [2.0 * slope, 0.0, 0.5 * slope], atol=1e-15)


@pytest.mark.parametrize("d", [1, 4])
@pytest.mark.parametrize("seed", range(5))
def test_likelihood_and_gradient_are_those_of_scikit_learn(d: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    X, z = rng.random((15, d)), rng.normal(size=15)
    kernel = ConstantKernel(1.0, CONSTANT_BOUNDS) * Matern(
        np.ones(d), LENGTH_SCALE_BOUNDS, nu=2.5
    ) + WhiteKernel(1.0, NOISE_BOUNDS)
    theta = rng.uniform(-2.0, 2.0, size=d + 2)
    regressor = GaussianProcessRegressor(kernel, alpha=0.0, optimizer=None).fit(X, z)
    expected, expected_gradient = regressor.log_marginal_likelihood(theta, eval_gradient=True)
    value, gradient = log_marginal_likelihood(theta, X, z)
    assert value == pytest.approx(expected, rel=1e-10)
    np.testing.assert_allclose(gradient, expected_gradient, rtol=1e-8, atol=1e-8)


def test_gradient_of_the_likelihood_is_its_slope() -> None:
    X, z = sample(12)
    theta = np.log([1.5, 0.4, 0.7, 2.0, 0.1])
    slope = approx_fprime(theta, lambda t: log_marginal_likelihood(t, X, z)[0], 1e-6)
    np.testing.assert_allclose(log_marginal_likelihood(theta, X, z)[1], slope, rtol=1e-4)


def test_gradient_survives_columns_far_from_zero() -> None:
    X, z = sample(12)
    theta = np.log([1.5, 0.4, 0.7, 2.0, 0.1])
    _, expected = log_marginal_likelihood(theta, X, z)
    _, shifted = log_marginal_likelihood(theta, X + 1e6, z)
    np.testing.assert_allclose(shifted, expected, rtol=1e-6)


@pytest.mark.parametrize("missing", [False, True])
def test_posterior_by_solving_the_linear_systems(missing: bool) -> None:
    X, y = sample(noise=0.1, missing=missing)
    Q, _ = sample(7, seed=1, missing=True)
    model = GaussianProcess(random_state=0).fit(X, y)
    mean, std = model.predict(Q)

    def inputs(A: FloatArray) -> FloatArray:
        filled = np.where(np.isnan(A), 0.5, A)
        return np.column_stack([filled, ~np.isnan(A[:, 1])]) if missing else filled

    theta = model.regressor_.kernel_.theta
    z = (y - y.mean()) / y.std()
    K = kernel_matrix(inputs(X), inputs(X), theta) + np.exp(theta[-1]) * np.eye(len(X))
    K_query = kernel_matrix(inputs(Q), inputs(X), theta)
    expected = K_query @ np.linalg.solve(K, z)
    variance = np.exp(theta[0]) - np.diag(K_query @ np.linalg.solve(K, K_query.T))
    np.testing.assert_allclose(mean, y.mean() + y.std() * expected, rtol=1e-7)
    np.testing.assert_allclose(std, y.std() * np.sqrt(variance), rtol=1e-6)


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


def test_informative_rows_by_hand() -> None:
    # In order of loss: rows 5, 1, 3, 4, 2, 0; the best two, then ranks 5 and 2.
    y = np.array([5.0, 1.0, 4.0, 2.0, 3.0, 0.0])
    np.testing.assert_array_equal(informative_rows(y, 4), [0, 1, 3, 5])
    np.testing.assert_array_equal(informative_rows(y, 6), np.arange(6))
    np.testing.assert_array_equal(informative_rows(np.zeros(3), 9), np.arange(3))


@pytest.mark.parametrize("limit", [2, 3, 10, 29])
@pytest.mark.parametrize("n", [30, 31, 97])
def test_informative_rows_are_distinct_and_hold_both_ends(n: int, limit: int) -> None:
    y = np.random.default_rng(n).normal(size=n)
    rows = informative_rows(y, limit)
    assert len(set(rows.tolist())) == len(rows) == limit
    best = np.argsort(y)[: limit // 2]
    assert set(best.tolist()) <= set(rows.tolist())
    assert np.argmax(y) in rows


# Fit


def test_more_starts_are_never_worse() -> None:
    X, y = sample(noise=0.1)
    values = []
    for n_restarts in (0, 2, 5):
        model = GaussianProcess(n_restarts=n_restarts, random_state=0).fit(X, y)
        values.append(model.regressor_.log_marginal_likelihood_value_)
    assert values == sorted(values)


def test_search_improves_on_its_first_start() -> None:
    X, y = sample(noise=0.1)
    z = (y - y.mean()) / y.std()
    first, _ = log_marginal_likelihood(np.log([1.0, 1.0, 1.0, 1.0, 0.01]), X, z)
    model = GaussianProcess(n_restarts=0).fit(X, y)
    assert model.regressor_.log_marginal_likelihood_value_ > first + 1.0


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


# Contract


def test_same_seed_same_output() -> None:
    X, y = sample(noise=0.1, missing=True)
    first = GaussianProcess(random_state=5).fit(X, y).predict(X)
    np.testing.assert_array_equal(GaussianProcess(random_state=5).fit(X, y).predict(X), first)
    generator = np.random.default_rng(5)
    np.testing.assert_array_equal(
        GaussianProcess(random_state=generator).fit(X, y).predict(X), first
    )


@pytest.mark.parametrize("seed", [None, 0])
def test_global_generator_is_left_alone(seed: int | None) -> None:
    before = pickle.dumps(np.random.get_state())  # noqa: NPY002
    GaussianProcess(random_state=seed).fit(*sample()).predict(sample()[0])
    assert pickle.dumps(np.random.get_state()) == before  # noqa: NPY002


def test_data_are_left_alone() -> None:
    X, y = sample(missing=True)
    X_before, y_before = X.copy(), y.copy()
    GaussianProcess(random_state=0).fit(X, y).predict(X)
    np.testing.assert_array_equal(X, X_before)
    np.testing.assert_array_equal(y, y_before)


def test_clone_and_pickle() -> None:
    X, y = sample(missing=True)
    model = GaussianProcess(n_restarts=1, max_rows=20, random_state=0)
    assert model.get_params() == {"n_restarts": 1, "max_rows": 20, "random_state": 0}
    assert model.fit(X, y) is model
    expected = model.predict(X)
    np.testing.assert_array_equal(clone(model).fit(X, y).predict(X), expected)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(X), expected)


def test_is_a_surrogate() -> None:
    assert isinstance(GaussianProcess(), Surrogate)
    mean, std = GaussianProcess(random_state=0).fit(*sample()).predict(sample()[0])
    assert mean.shape == std.shape == (25,)
    assert mean.dtype == std.dtype == np.float64


def test_predict_before_fit() -> None:
    with pytest.raises(NotFittedError):
        GaussianProcess().predict(np.zeros((1, 2)))


def test_wrong_number_of_columns() -> None:
    model = GaussianProcess(random_state=0).fit(*sample())
    with pytest.raises(ValueError, match="X must have 3 columns, got 2"):
        model.predict(np.zeros((2, 2)))


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (GaussianProcess(n_restarts=-1), "n_restarts must be an integer >= 0, got -1"),
        (GaussianProcess(max_rows=1), "max_rows must be an integer >= 2, got 1"),
        (GaussianProcess(max_rows=9.5), "max_rows must be an integer >= 2, got 9.5"),  # type: ignore[arg-type]
    ],
)
def test_illegal_arguments_are_named(model: GaussianProcess, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        model.fit(*sample())


def test_illegal_data() -> None:
    X, y = sample()
    with pytest.raises(ValueError, match="y must be finite"):
        GaussianProcess().fit(X, np.where(y > 0, y, np.nan))
    with pytest.raises(ValueError, match="infinities"):
        GaussianProcess().fit(np.where(X > 0.5, X, np.inf), y)
