"""The numeric functions below TwoStageTransfer: kernels, likelihood, agreement, averaging."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import approx_fprime
from scipy.stats import kendalltau
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern, WhiteKernel

from automl_plugins.surrogates.base import FloatArray, complete_inputs, informative_rows
from automl_plugins.surrogates.gaussian_process import (
    KERNELS,
    Candidate,
    EvidenceAverage,
    Kernel,
    correlation,
    fit_shared,
    log_likelihood,
    uninformed,
)
from automl_plugins.surrogates.two_stage import discordance, epanechnikov, meta_feature_distance

THETA = np.log([1.7, 0.4, 1.3, 0.05])


def two_tasks(n: int = 12) -> tuple[FloatArray, FloatArray]:
    rng = np.random.default_rng(0)
    X = rng.random((n, 2))
    Y = np.stack([np.sin(6.0 * X[:, 0]), X[:, 1] - X[:, 0]], axis=1)
    return X, Y + 0.05 * rng.normal(size=Y.shape)


def reference(theta: FloatArray, kernel: Kernel) -> GaussianProcessRegressor:
    scales = np.exp(theta[1:-1])
    form = RBF(scales) if kernel == "se" else Matern(scales, nu=2.5)
    k = ConstantKernel(np.exp(theta[0])) * form + WhiteKernel(np.exp(theta[-1]))
    return GaussianProcessRegressor(k, alpha=0.0, optimizer=None, random_state=0)


# Kernels and likelihood


def test_correlation_by_hand() -> None:
    A, B, scales = np.array([[0.0, 0.0]]), np.array([[3.0, 8.0]]), np.array([1.0, 2.0])  # u = 5
    assert correlation(A, B, scales, "se")[0, 0] == pytest.approx(np.exp(-12.5))
    r = 5.0 * np.sqrt(5.0)
    by_hand = (1.0 + r + r * r / 3.0) * np.exp(-r)
    assert correlation(A, B, scales, "matern52")[0, 0] == pytest.approx(by_hand)


@pytest.mark.parametrize("kernel", KERNELS)
def test_likelihood_is_the_sum_over_the_tasks(kernel: Kernel) -> None:
    X, Y = two_tasks()
    single = [reference(THETA, kernel).fit(X, y).log_marginal_likelihood_value_ for y in Y.T]
    assert log_likelihood(THETA, X, Y, kernel)[0] == pytest.approx(sum(single))


@pytest.mark.parametrize("kernel", KERNELS)
def test_gradient_against_finite_differences(kernel: Kernel) -> None:
    X, Y = two_tasks()
    slope = log_likelihood(THETA, X + 100.0, Y, kernel)[1]
    numeric = approx_fprime(THETA, lambda theta: log_likelihood(theta, X, Y, kernel)[0], 1e-6)
    np.testing.assert_allclose(slope, numeric, rtol=1e-4)


def test_likelihood_of_one_row_by_hand() -> None:
    # K = 2 + 0.5: the density of N(0, 2.5) at 3
    theta, x, z = np.log([2.0, 1.0, 0.5]), np.array([[0.3]]), np.array([[3.0]])
    value, gradient = log_likelihood(theta, x, z, "matern52")
    assert value == pytest.approx(-0.5 * 9.0 / 2.5 - 0.5 * np.log(2.0 * np.pi * 2.5))
    slope = 0.5 * (9.0 / 2.5**2 - 1.0 / 2.5)
    np.testing.assert_allclose(gradient, [2.0 * slope, 0.0, 0.5 * slope], atol=1e-15)


def test_learnt_hyperparameters_find_what_matters() -> None:
    rng = np.random.default_rng(0)
    X = rng.random((40, 2))
    Y = np.stack([np.sin(8.0 * X[:, 0] + phase) for phase in range(5)], axis=1)
    theta = fit_shared([(X, Y)], "matern52")
    assert np.exp(theta[1]) < 2.0 < 10.0 < np.exp(theta[2])  # the second column does nothing
    assert np.exp(theta[-1]) < 1e-4  # there is no noise
    start = np.append(np.zeros(3), np.log(0.01))
    assert log_likelihood(theta, X, Y, "matern52")[0] > log_likelihood(start, X, Y, "matern52")[0]


def test_complete_inputs() -> None:
    X = np.array([[1.0, np.nan], [np.nan, 0.25]])
    np.testing.assert_array_equal(
        complete_inputs(X, np.array([1])), [[1.0, 0.5, 0.0], [0.5, 0.25, 1.0]]
    )


@pytest.mark.parametrize(("n", "limit"), [(30, 2), (31, 3), (97, 29), (30, 10)])
def test_informative_rows_are_distinct_and_hold_both_ends(n: int, limit: int) -> None:
    y = np.random.default_rng(n).normal(size=n)
    rows = informative_rows(y, limit)
    assert len(set(rows.tolist())) == len(rows) == limit
    assert set(np.argsort(y)[: limit // 2].tolist()) | {int(np.argmax(y))} <= set(rows.tolist())


def test_informative_rows_by_hand() -> None:
    # In order of loss: rows 5, 1, 3, 4, 2, 0; the best two, then ranks 5 and 2.
    y = np.array([5.0, 1.0, 4.0, 2.0, 3.0, 0.0])
    np.testing.assert_array_equal(informative_rows(y, 4), [0, 1, 3, 5])
    np.testing.assert_array_equal(informative_rows(np.zeros(3), 9), np.arange(3))


# Agreement


def test_discordance_by_hand() -> None:
    losses = np.array([1.0, 2.0, 2.0])
    predicted = np.array(
        [
            [1.0, 2.0, 2.0],  # the same
            [0.1, 0.3, 0.2],  # one pair tied on one side
            [3.0, 2.0, 2.0],  # two of three the other way round
            [5.0, 5.0, 5.0],  # two ties on its side only
        ]
    )
    np.testing.assert_allclose(discordance(losses, predicted), [0.0, 0.5 / 3, 2 / 3, 1.0 / 3])
    # y_i < y_j: (1, 2), (1, 3) and not (2, 3)
    np.testing.assert_allclose(discordance(losses, predicted, "strict"), [0, 0, 2 / 3, 2 / 3])


@pytest.mark.parametrize("t", [0, 1])
def test_without_pairs_nothing_is_discordant(t: int) -> None:
    np.testing.assert_array_equal(discordance(np.zeros(t), np.ones((3, t))), np.zeros(3))


@given(seed=st.integers(0, 10_000), t=st.integers(2, 12))
def test_without_ties_it_is_kendalls_tau(seed: int, t: int) -> None:
    rng = np.random.default_rng(seed)
    losses, predicted = rng.permutation(t).astype(float), rng.random((2, t))
    expected = [(1.0 - kendalltau(losses, row).statistic) / 2.0 for row in predicted]
    for ties in ("half", "strict"):
        found = discordance(losses, predicted, ties)
        np.testing.assert_allclose(found, expected, atol=1e-12)


@given(seed=st.integers(0, 10_000))
def test_half_ties_know_no_order_and_negation_is_the_opposite(seed: int) -> None:
    rng = np.random.default_rng(seed)
    losses, predicted = rng.integers(3, size=8).astype(float), rng.integers(3, size=(4, 8)) / 2.0
    order = rng.permutation(8)
    found = discordance(losses, predicted)
    np.testing.assert_allclose(discordance(losses[order], predicted[:, order]), found)
    tied = np.array(
        [
            np.mean(
                [(losses[i] == losses[j]) & (row[i] == row[j]) for j in range(8) for i in range(j)]
            )
            for row in predicted
        ]
    )
    np.testing.assert_allclose(discordance(losses, -predicted) + found, 1.0 - tied, atol=1e-12)


def test_epanechnikov_by_hand() -> None:
    k = epanechnikov(np.array([0.0, 0.1, 0.2, 0.3, np.inf]), 0.2)
    np.testing.assert_allclose(k, [0.75, 0.5625, 0.0, 0.0, 0.0])


def test_meta_feature_distance_by_hand() -> None:
    earlier = np.array([[0.0, 5.0], [10.0, np.nan], [5.0, 5.0], [np.nan, np.nan]])
    # the first ranges over 0..10, the second over 5..7
    found = meta_feature_distance({"a": 5.0, "b": 7.0, "c": 1.0}, earlier, ["a", "b"])
    np.testing.assert_allclose(found, [np.sqrt((0.25 + 1.0) / 2), 0.5, np.sqrt(0.5), np.inf])
    assert np.isinf(meta_feature_distance({}, earlier, ["a", "b"])).all()
    assert np.isinf(meta_feature_distance({"a": 1.0}, np.empty((2, 0)), [])).all()


# Average over kernels


@pytest.mark.parametrize("kernel", KERNELS)
def test_one_candidate_is_the_gaussian_process(kernel: Kernel) -> None:
    X, Y = two_tasks()
    y = 3.0 + 2.0 * Y[:, 0]
    new = np.random.default_rng(1).random((5, 2))
    theta = np.log([1.0, 0.4, 1.3, 0.05])
    model = EvidenceAverage([Candidate(np.exp(theta[1:-1]), 0.05)], kernel).fit(X, y)
    expected = reference(theta, kernel).fit(X, (y - y.mean()) / y.std())
    mean, std = expected.predict(new, return_std=True)
    found = model.predict(new)
    np.testing.assert_allclose(found[0], y.mean() + y.std() * mean)
    np.testing.assert_allclose(found[1], y.std() * np.sqrt(std**2 - 0.05), rtol=1e-6)


def test_candidates_are_weighed_by_prior_and_evidence() -> None:
    X, Y = two_tasks()
    z = (Y[:, 0] - Y[:, 0].mean()) / Y[:, 0].std()
    candidates = [
        Candidate(np.full(2, length), 0.01, prior) for length, prior in ((0.3, 0), (1, 2))
    ]
    model = EvidenceAverage(candidates, "matern52").fit(X, Y[:, 0])
    logs = [
        log_likelihood(np.log([1.0, *c.scales, c.noise]), X, z[:, None], "matern52")[0]
        + c.log_prior
        for c in candidates
    ]
    assert model.evidence_[0] / model.evidence_[1] == pytest.approx(np.exp(logs[0] - logs[1]))
    # mean and variance of the mixture
    new = np.random.default_rng(1).random((5, 2))
    alone = [EvidenceAverage([c], "matern52").fit(X, Y[:, 0]).predict(new) for c in candidates]
    mean = model.evidence_ @ [m for m, _ in alone]
    square = model.evidence_ @ [s**2 + m**2 for m, s in alone]
    np.testing.assert_allclose(model.predict(new)[0], mean)
    np.testing.assert_allclose(model.predict(new)[1], np.sqrt(square - mean**2))


def test_without_observations_it_is_the_prior() -> None:
    model = EvidenceAverage(uninformed(2), "matern52").fit(np.empty((0, 2)), np.empty(0))
    mean, std = model.predict(np.random.default_rng(0).random((4, 2)))
    np.testing.assert_array_equal(mean, np.zeros(4))
    np.testing.assert_allclose(std, np.ones(4))


def test_constant_losses_leave_the_prior_weights() -> None:
    X = np.random.default_rng(0).random((6, 2))
    model = EvidenceAverage(uninformed(2), "se").fit(X, np.full(6, 7.0))
    np.testing.assert_allclose(model.evidence_, 1.0 / len(model.candidates))
    mean, std = model.predict(X)
    np.testing.assert_array_equal(mean, np.full(6, 7.0))
    assert (std < 0.2).all()
