"""Weights of data sets at the start, the shortcut to the largest EI, single precision."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from automl_plugins.meta.factorization import (
    MatrixFactorization,
    by_distance,
    complementary,
    posterior,
)
from automl_plugins.meta.factorization.likelihood import Kernel, column_of, covariance
from automl_plugins.meta.factorization.recommendation import most_improving
from automl_plugins.surrogates.base import log_expected_improvement

INF = float("inf")


def test_weights_are_a_gaussian_of_half_the_median_distance() -> None:
    weights = by_distance(np.array([0.0, 2.0, 4.0, INF]))
    expected = np.exp([0.0, -2.0, -8.0, -INF])  # width 1
    np.testing.assert_allclose(weights, expected / expected.sum())


def test_where_most_data_sets_are_at_no_distance_they_alone_count() -> None:
    np.testing.assert_allclose(by_distance(np.array([0.0, 0.0, 0.0, 3.0])), [1 / 3] * 3 + [0])


def test_weights_of_far_data_sets_do_not_underflow_together() -> None:
    weights = by_distance(np.full(4, 1e6))
    np.testing.assert_allclose(weights, 0.25)


def test_the_portfolio_follows_the_weights() -> None:
    # Pipeline d is the best of data set d, pipeline 3 good on all.
    z = np.array([[0.0, 1.0, 1.0], [1.0, 0.0, 1.0], [1.0, 1.0, 0.0], [0.3, 0.3, 0.3]])
    means = z.mean(axis=1)
    assert complementary(z, means, 1)[0].row == 3
    first, second = complementary(z, means, 2, np.array([0.1, 0.8, 0.1]))
    assert (first.row, second.row) == (1, 3)
    np.testing.assert_allclose(first.shares, [0.0, 1.0, 0.0])
    np.testing.assert_allclose(second.shares, [0.5, 0.0, 0.5])


@settings(max_examples=30)
@given(
    seed=st.integers(0, 1000),
    best=st.sampled_from([-60.0, -3.0, 0.0, 3.0]),
    spread=st.sampled_from([0.0, 0.1, 3.0]),
)
def test_the_shortcut_finds_the_largest_expected_improvement(
    seed: int, best: float, spread: float
) -> None:
    rng = np.random.default_rng(seed)
    mean, std = rng.normal(size=4000), np.exp(rng.normal(0.0, spread, 4000))
    rows = np.flatnonzero(rng.random(4000) < 0.9)
    utility = log_expected_improvement(mean, std, best, 0.01)[rows]
    assert most_improving(mean, std, best, 0.01, rows) == rows[utility.argmax()]


def test_without_any_improvement_the_smallest_mean_is_chosen() -> None:
    mean = np.array([3.0, 1.0, 2.0])
    assert most_improving(mean, np.zeros(3), -1.0, 0.0, np.array([0, 2])) == 2


@pytest.mark.parametrize("kernel", ["se", "linear"])
def test_a_column_is_that_of_the_covariance(kernel: Kernel) -> None:
    rng = np.random.default_rng(0)
    model = MatrixFactorization(4, kernel=kernel, epochs=1, validation=0.0)
    model.fit(rng.random((30, 12)))
    places = model.embedding_
    K = covariance(kernel, model.parameters_)
    k = column_of(kernel, model.parameters_, places, (places**2).sum(axis=1), 7)
    np.testing.assert_allclose(k, K[:, 7], rtol=1e-9, atol=1e-12)


def test_single_precision_changes_hardly_anything(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    z = rng.normal(size=(300, 5)) @ rng.normal(size=(5, 60)) + 0.1 * rng.normal(size=(300, 60))
    model = MatrixFactorization(20, epochs=0).fit(z)
    rows = rng.permutation(300)[:280]  # more than there is room for at first
    mean, std = model.posterior(rows, z[rows, 0])
    monkeypatch.setattr(posterior, "_SINGLE", 1)
    single_mean, single_std = model.posterior(rows, z[rows, 0])
    assert float(np.abs(single_mean - mean).max()) < 1e-2 * float(std.min())
    np.testing.assert_allclose(single_std, std, rtol=1e-2)
    assert not np.array_equal(single_std, std)
