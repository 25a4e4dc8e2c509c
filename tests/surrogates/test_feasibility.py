"""Feasibility: the border between success and failure, Laplace's rule, and edges."""

from __future__ import annotations

import numpy as np
import pytest

from automl_plugins.surrogates.base import FloatArray
from automl_plugins.surrogates.seconds_and_success import Feasibility

GRID = np.linspace(0.0, 1.0, 101)[:, None]
PAIR = np.array([[0.2], [0.8]])


def circle(n: int = 300, seed: int = 0) -> tuple[FloatArray, np.ndarray]:
    """Return features (n, 2) of which those in the corner at (1, 1) fail."""
    X = np.random.default_rng(seed).random((n, 2))
    return X, ((X - 1.0) ** 2).sum(axis=1) > 0.5**2


# One dimension


def test_probability_falls_over_the_gap() -> None:
    model = Feasibility(n_trees=500, random_state=0).fit(PAIR, np.array([True, False]))
    p = model.predict(GRID)
    assert (np.diff(p) <= 1e-12).all()
    # Cuts are uniform in the gap, so the average falls along a straight line
    inside = (GRID[:, 0] > 0.2) & (GRID[:, 0] < 0.8)
    line = (0.8 - GRID[inside, 0]) / 0.6
    # prior: 0.1 observations at the rate (1 + 1) / (2 + 2)
    np.testing.assert_allclose(p[inside], (line + 0.1 * 0.5) / 1.1, atol=0.07)
    np.testing.assert_allclose(p[GRID[:, 0] < 0.2], 1.05 / 1.1)
    np.testing.assert_allclose(p[GRID[:, 0] > 0.81], 0.05 / 1.1)


def test_the_border_is_approached_by_bisection() -> None:
    # Whoever evaluates where the probability is one half halves the gap each time.
    border, X, y = 0.637, [0.0, 1.0], [True, False]
    for _ in range(6):
        model = Feasibility(n_trees=100, random_state=0).fit(np.array(X)[:, None], np.array(y))
        fine = np.linspace(0.0, 1.0, 4001)
        p = model.predict(fine[:, None])
        X.append(float(fine[np.argmin(np.abs(p - 0.5))]))
        y.append(X[-1] < border)
    last = max(x for x, success in zip(X, y, strict=True) if success)
    first = min(x for x, success in zip(X, y, strict=True) if not success)
    assert first - last < 0.1


def test_probability_is_monotone_on_average_for_ordered_data() -> None:
    x = np.random.default_rng(0).random(40)
    y = x < 0.6
    p = np.mean(
        [Feasibility(random_state=s).fit(x[:, None], y).predict(GRID) for s in range(5)], axis=0
    )
    assert (np.diff(p) <= 1e-12).all()
    assert p[0] > 0.95
    assert p[-1] < 0.05


# Shares and rates


@pytest.mark.parametrize("n", [1, 2, 8, 100])
def test_laplaces_rule_where_all_agree(n: int) -> None:
    X = np.random.default_rng(0).random((n, 1))
    good = Feasibility().fit(X, np.ones(n, dtype=bool)).predict(GRID)
    bad = Feasibility().fit(X, np.zeros(n, dtype=bool)).predict(GRID)
    np.testing.assert_allclose(good, (n + 1.0) / (n + 2.0))
    np.testing.assert_allclose(bad, 1.0 / (n + 2.0))


def test_the_prior_draws_towards_the_rate() -> None:
    X, y = circle(60)
    rate = (y.sum() + 1.0) / 62.0
    shares = Feasibility(prior=1e-12, random_state=0).fit(X, y).predict(X)
    np.testing.assert_allclose(shares, y, atol=1e-11)  # trees that are grown out repeat the data
    for prior in (0.1, 1.0, 10.0):
        p = Feasibility(prior=prior, random_state=0).fit(X, y).predict(X)
        np.testing.assert_allclose(p, (shares + prior * rate) / (1.0 + prior))
    far = Feasibility(prior=1e9, random_state=0).fit(X, y).predict(X)
    np.testing.assert_allclose(far, rate, atol=1e-6)


def test_contradictions_share_the_probability() -> None:
    X, y = np.zeros((5, 2)), np.array([True, True, True, False, False])
    p = Feasibility(random_state=0).fit(X, y).predict(X)
    np.testing.assert_allclose(p, (3 / 5 + 0.1 * 4 / 7) / 1.1)


def test_votes_are_those_of_scikit_learn() -> None:
    X, y = circle(100)
    X[::7, 1] = np.nan
    model = Feasibility(random_state=0).fit(X, y)
    fresh, _ = circle(200, seed=1)
    fresh[::5, 0] = np.nan
    assert model.trees_ is not None
    share = model.trees_.predict_proba(fresh)[:, 1]
    np.testing.assert_allclose(model.predict(fresh), (share + 0.1 * model.rate_) / 1.1)


@pytest.mark.parametrize("n", [2, 3, 10, 100])
def test_probabilities_lie_strictly_between_0_and_1(n: int) -> None:
    rng = np.random.default_rng(0)
    for seed in range(3):
        X, y = rng.random((n, 3)), rng.random(n) < 0.5
        p = Feasibility(random_state=seed).fit(X, y).predict(rng.random((200, 3)))
        assert (p > 0.0).all()
        assert (p < 1.0).all()
        assert np.isfinite(np.log(p)).all()


def test_one_success_among_failures_and_the_reverse() -> None:
    X = np.linspace(0.0, 1.0, 21)[:, None]
    for flip in (False, True):
        y = np.full(21, flip)
        y[10] = not flip
        p = Feasibility(random_state=0).fit(X, y).predict(X)
        assert p[10] < 0.1 if flip else p[10] > 0.9
        assert np.ptp(np.delete(p, 10)) < 0.01


# More dimensions


def test_failing_regions_are_found() -> None:
    X, y = circle()
    fresh, truth = circle(2000, seed=1)
    p = Feasibility(random_state=0).fit(X, y).predict(fresh)
    assert ((p > 0.5) == truth).mean() > 0.95
    assert p[truth].mean() > 0.9
    assert p[~truth].mean() < 0.2


def test_an_inactive_feature_can_be_what_fails() -> None:
    rng = np.random.default_rng(0)
    X = rng.random((60, 2))
    X[::3, 0] = np.nan
    p = (
        Feasibility(random_state=0)
        .fit(X, ~np.isnan(X[:, 0]))
        .predict(np.array([[np.nan, 0.5], [0.5, 0.5], [np.nan, np.nan]]))
    )
    assert p[0] < 0.2
    assert p[1] > 0.8
    assert np.isfinite(p).all()


def test_inactive_where_none_was_before() -> None:
    model = Feasibility(random_state=0).fit(PAIR, np.array([True, False]))
    p = model.predict(np.array([[np.nan]]))
    assert 0.0 < p[0] < 1.0


# Manners
