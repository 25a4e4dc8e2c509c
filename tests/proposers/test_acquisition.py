"""Acquisition functions: by hand, against quadrature, over all magnitudes, and their signs."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import erfcx
from scipy.stats import norm

from automl_plugins.proposers.acquisition import (
    FloatArray,
    gbqr_median,
    lower_confidence_bound,
    pending_distance,
    plateau_distance,
    plateau_radii,
    positive_part,
    weighted,
)
from automl_plugins.surrogates.improvement import expected_improvement, log_expected_improvement

ONE = np.ones(1)


def log_h(z: FloatArray) -> FloatArray:
    """Return log EI for std = 1 and best - mean = z."""
    return log_expected_improvement(-z, np.ones_like(z), 0.0)


def log_h_by_series(z: float) -> float:
    """Return log h(z) for z <= -20 by the asymptotic series of Mills' ratio, exact rationals.

    1 - |z| Phi(z) / phi(z) = 1 / z^2 - 3 / z^4 + 15 / z^6 - ..., whose error is below the first
    term left out.
    """
    square, term, total = Fraction(z) ** 2, Fraction(1), Fraction(0)
    for k in range(1, 30):
        following = -term * (2 * k - 1) / square
        if abs(following) >= abs(term):
            break
        term = following
        total -= term
    return -z * z / 2.0 - 0.5 * math.log(2.0 * math.pi) + math.log(total)


# Expected improvement


def test_expected_improvement_by_hand() -> None:
    # z = 0: std / sqrt(2 pi); z = 1: Phi(1) + phi(1) = 0.8413447 + 0.2419707
    mean, std = np.array([0.0, 0.0, 2.0, 0.0]), np.array([1.0, 3.0, 1.0, 2.0])
    value = expected_improvement(mean[:2], std[:2], 0.0)
    np.testing.assert_allclose(value, [0.3989422804, 1.1968268412])
    np.testing.assert_allclose(expected_improvement(mean[2:3], ONE, 3.0), [1.0833154706])
    np.testing.assert_allclose(expected_improvement(mean[2:3], ONE, 1.0), [0.0833154706])
    np.testing.assert_allclose(expected_improvement(mean[3:], std[3:], 2.0), [2.1666309411])


def test_expected_improvement_without_doubt() -> None:
    mean, std = np.array([1.0, 2.0, 3.0]), np.zeros(3)
    np.testing.assert_array_equal(expected_improvement(mean, std, 2.0), [1.0, 0.0, 0.0])
    np.testing.assert_array_equal(expected_improvement(mean, std, 2.0, 0.25), [0.75, 0.0, 0.0])
    np.testing.assert_array_equal(
        log_expected_improvement(mean, std, 2.0), [0.0, -np.inf, -np.inf]
    )


@pytest.mark.parametrize("xi", [0.0, 0.01, 0.5])
@pytest.mark.parametrize(
    ("mean", "std", "best"),
    [(0.0, 1.0, 0.0), (0.3, 0.2, 0.1), (-5.0, 2.0, 1.0), (10.0, 3.0, 2.0), (1e3, 1e2, 9e2)],
)
def test_expected_improvement_is_the_integral(
    mean: float, std: float, best: float, xi: float
) -> None:
    def integrand(loss: float) -> float:
        return float((best - xi - loss) * norm.pdf(loss, mean, std))

    # Both tails end at 12 standard deviations: norm.sf(12) = 2e-33.
    low, high = mean - 12.0 * std, min(best - xi, mean + 12.0 * std)
    integral, _ = quad(integrand, low, high, epsabs=1e-14, epsrel=1e-12, limit=200)
    value = expected_improvement(np.array([mean]), np.array([std]), best, xi)
    np.testing.assert_allclose(value, integral, rtol=1e-9)


# Its logarithm


def test_log_expected_improvement_is_its_logarithm() -> None:
    z = np.linspace(-37.0, 50.0, 20_001)
    # Below z = -5 the plain formula cancels: h = phi(z) (1 - |z| sqrt(pi / 2) erfcx(|z| / sqrt 2))
    upper = z > -5.0
    plain = np.log(expected_improvement(-z[upper], np.ones(upper.sum()), 0.0))
    np.testing.assert_allclose(log_h(z[upper]), plain, rtol=1e-9, atol=1e-10)
    tail = -z[~upper]
    mills = np.sqrt(np.pi / 2.0) * erfcx(tail / np.sqrt(2.0))
    expected = norm.logpdf(tail) + np.log1p(-tail * mills)
    np.testing.assert_allclose(log_h(-tail), expected, rtol=1e-9)


def test_log_expected_improvement_is_finite_and_increasing_from_minus_1e100() -> None:
    magnitudes = 10.0 ** np.linspace(-100, 100, 20_001)
    z = np.concatenate([-magnitudes[::-1], [0.0], magnitudes[magnitudes <= 1e3]])
    value = log_h(z)
    assert np.isfinite(value).all()
    distinct = np.abs(np.diff(z)) > 1e-12  # closer than that, z + 1 is z + 1
    assert (np.diff(value) >= 0).all()
    assert (np.diff(value)[distinct] > 0).all()


@pytest.mark.parametrize("seam", [-1.0, -50.0])
def test_log_expected_improvement_has_no_step_where_the_formula_changes(seam: float) -> None:
    # Over a width w the logarithm rises by |seam| w (or less); the rest would be a step.
    width = 1e-6 * abs(seam)
    low, middle, high = log_h(np.array([seam - width, seam, seam + width]))
    assert middle - low == pytest.approx(high - middle, rel=1e-3)


def test_log_expected_improvement_is_as_accurate_as_it_says() -> None:
    z = -np.concatenate([np.linspace(50.0, 60.0, 21)[1:], [200.0, 999.0, 1001.0]])
    # Differences to log phi, for log phi itself is in the thousands
    log_phi = -0.5 * z * z - 0.5 * math.log(2.0 * math.pi)
    expected = np.array([log_h_by_series(value) for value in z]) - log_phi
    np.testing.assert_allclose(log_h(z) - log_phi, expected, rtol=0, atol=1e-8)


@pytest.mark.filterwarnings("error")
def test_a_ratio_that_overflows_leaves_the_gain() -> None:
    mean, std = np.array([-1.0, -1e10, 1.0]), np.array([5e-324, 1e-310, 5e-324])
    np.testing.assert_array_equal(expected_improvement(mean, std, 0.0), [1.0, 1e10, 0.0])
    np.testing.assert_array_equal(
        log_expected_improvement(mean, std, 0.0), [0.0, np.log(1e10), -np.inf]
    )


def test_log_expected_improvement_invariances() -> None:
    rng = np.random.default_rng(0)
    mean, std = rng.normal(size=50), rng.uniform(0.01, 2.0, size=50)
    value = log_expected_improvement(mean, std, -3.0, 0.05)
    np.testing.assert_allclose(
        log_expected_improvement(mean + 1.0, std, -2.0, 0.05), value, rtol=1e-9
    )
    for k in (-100, -5, 5, 100):
        scale = 10.0**k
        np.testing.assert_allclose(
            log_expected_improvement(scale * mean, scale * std, scale * -3.0, scale * 0.05),
            value + np.log(scale),
            rtol=1e-9,
            atol=1e-9,
        )


# Bounds


def test_lower_confidence_bound_by_hand() -> None:
    mean, std = np.array([1.0, 2.0, -1.0]), np.array([0.5, 2.0, 0.0])
    np.testing.assert_array_equal(lower_confidence_bound(mean, std), [-0.5, 0.0, 1.0])
    np.testing.assert_array_equal(lower_confidence_bound(mean, std, 2.0), [0.0, 2.0, 1.0])
    np.testing.assert_array_equal(lower_confidence_bound(mean, std, 0.0), -mean)


def test_gbqr_median_by_hand() -> None:
    bound, cost = np.array([1.0, 3.0, 5.0, 5.0]), np.array([1.0, 4.0, 2.0, 8.0])
    np.testing.assert_array_equal(gbqr_median(bound, 2.0, cost), [0.0, 0.25, 1.5, 0.375])


@pytest.mark.parametrize("cost", [0.0, -1.0, np.nan, np.inf])
def test_gbqr_median_refuses_costs_that_are_none(cost: float) -> None:
    with pytest.raises(ValueError, match="cost must be positive and finite everywhere"):
        gbqr_median(np.ones(3), 0.0, np.array([1.0, cost, 2.0]))


def test_positive_part_by_hand() -> None:
    np.testing.assert_allclose(
        positive_part(np.array([-1.0, 2.0, 2.0 + math.e, 1e-300 + 2.0, 3.0]), 2.0),
        [-np.inf, -np.inf, 1.0, -np.inf, 0.0],
        atol=1e-15,
    )
    utility = np.random.default_rng(0).normal(size=100)
    part = positive_part(utility, -1.0)
    assert not np.isnan(part).any()
    order = np.argsort(utility)
    assert (part[order][1:] >= part[order][:-1]).all()


# Weights


def test_weighted_by_hand() -> None:
    log = np.log
    value = weighted(
        log(np.array([3.0])),
        log_success=log(np.array([0.5])),
        log_seconds=log(np.array([4.0])),
        exponent=0.5,
        log_distance=log(np.array([0.2])),
    )
    np.testing.assert_allclose(np.exp(value), [3.0 * 0.5 * 0.2 / 2.0])
    np.testing.assert_array_equal(weighted(np.array([-1.5, 2.0])), [-1.5, 2.0])


@pytest.mark.parametrize("exponent", [0.0, 0.3, 1.0])
def test_lowering_success_or_raising_seconds_never_raises(exponent: float) -> None:
    rng = np.random.default_rng(0)
    n = 2000
    gains = np.concatenate([rng.normal(size=n // 2) * 50.0, np.full(n // 2, -np.inf)])
    success, distance = np.log(rng.random((2, n)))
    seconds = rng.uniform(np.log(1e-3), np.log(1e6), size=n)  # both signs of the logarithm
    parts = {"log_success": success, "log_seconds": seconds, "log_distance": distance}
    value = weighted(gains, exponent=exponent, **parts)
    less = rng.exponential(size=n)
    for name, changed in (
        ("log_success", success - less),
        ("log_seconds", seconds + less),
        ("log_distance", distance - less),
    ):
        worse = weighted(gains, exponent=exponent, **{**parts, name: changed})
        assert not np.isnan(worse).any()
        assert (worse <= value).all()
    assert (weighted(gains + less, exponent=exponent, **parts) >= value).all()


def test_cheaper_wins_below_and_above_one_second() -> None:
    # Where "per ln(seconds)" changes its sign: the trap of thesis 2.2.5.
    seconds = np.log([0.1, 0.5, 0.999, 1.0, 1.001, 2.0, 1e4])
    value = weighted(np.zeros(7), log_seconds=seconds)
    assert (np.diff(value) < 0).all()


# Running evaluations


def test_pending_distance_by_hand() -> None:
    pending = np.array([[0.5, 0.5], [1.0, np.nan]])
    candidates = np.array([[0.5, 0.5], [0.5, 0.52], [0.48, 0.46], [1.0, np.nan], [0.0, np.nan]])
    # Mean distances 0, 0.01, 0.03, 0, 0.5; with radius 0.02 squared and capped
    np.testing.assert_allclose(
        pending_distance(candidates, pending), [0.0, 0.25, 1.0, 0.0, 1.0], atol=1e-12
    )
    np.testing.assert_allclose(
        pending_distance(candidates, pending, radius=0.06)[:3], [0.0, 1 / 36, 0.25], atol=1e-12
    )
    # A radius of each: 0.01 / 0.06 of the first, however near the second may be
    own = pending_distance(
        candidates[1:2], np.array([[0.5, 0.5], [0.5, 0.53]]), np.array([0.06, 1e-4])
    )
    np.testing.assert_allclose(own, [1 / 36], atol=1e-12)


def test_pending_distance_without_pending() -> None:
    np.testing.assert_array_equal(pending_distance(np.zeros((3, 2)), np.empty((0, 2))), np.ones(3))


def test_more_pending_never_raise_the_distance() -> None:
    rng = np.random.default_rng(0)
    candidates, pending = rng.random((300, 2)), rng.random((10, 2))
    factors = [pending_distance(candidates, pending[:k], radius=0.3) for k in range(11)]
    assert (np.diff(factors, axis=0) <= 0).all()
    assert np.min(factors) >= 0.0
    assert np.max(factors) <= 1.0
    np.testing.assert_allclose(pending_distance(pending, pending), np.zeros(10), atol=1e-15)


# Plateaus


@pytest.mark.parametrize(
    ("x", "losses", "radii"),
    [
        # Twice the gap, at least 0.02 and at most 0.05
        ([0.1, 0.115, 0.9], [1.0, 1.0, 2.0], [0.03, 0.03, 0.0]),
        ([0.1, 0.104, 0.9], [1.0, 1.0, 2.0], [0.02, 0.02, 0.0]),
        ([0.1, 0.14, 0.9], [1.0, 1.0, 2.0], [0.05, 0.05, 0.0]),
        # Too far apart, as on a grid; on a slope; equal but for rounding
        ([0.1, 0.16, 0.9], [1.0, 1.0, 2.0], [0.0, 0.0, 0.0]),
        ([0.1, 0.104, 0.9], [1.0, 1.0 + 1e-6, 2.0], [0.0, 0.0, 0.0]),
        ([0.1, 0.104, 0.9], [0.1 + 0.2, 0.3, 2.0], [0.02, 0.02, 0.0]),
        # Not beyond another loss; another loss that is as near or nearer
        ([0.1, 0.12, 0.145], [1.0, 1.0, 2.0], [0.04, 0.025, 0.0]),
        ([0.1, 0.12, 0.13], [1.0, 1.0, 2.0], [0.03, 0.0, 0.0]),
        ([], [], []),
    ],
)
def test_plateau_radii_by_hand(x: list[float], losses: list[float], radii: list[float]) -> None:
    features = np.array(x).reshape(-1, 1)
    np.testing.assert_allclose(plateau_radii(features, np.array(losses)), radii, atol=1e-12)


def test_a_plateau_ends_where_a_branch_does() -> None:
    features = np.array([[0.1, np.nan], [0.1, 0.5], [0.11, 0.5], [0.12, np.nan], [0.1, 0.9]])
    radii = plateau_radii(features, np.ones(5))
    # The last one is far in a number of its own branch.
    np.testing.assert_allclose(radii, [0.04, 0.02, 0.02, 0.04, 0.0], atol=1e-12)
    factor = plateau_distance(features + 0.01, features[:1], radii[:1])
    np.testing.assert_allclose(factor, [1 / 16, 1.0, 1.0, 9 / 16, 1.0], atol=1e-12)
    np.testing.assert_array_equal(plateau_distance(features, features[:0], radii[:0]), np.ones(5))


@pytest.mark.parametrize("xi", [0.0, 0.01, 0.5, 3.0])
def test_xi_lowers_the_log_as_it_lowers_the_plain_form(xi: float) -> None:
    mean, std = np.linspace(-1.0, 2.0, 13), np.linspace(0.1, 1.0, 13)
    plain = expected_improvement(mean, std, 1.5, xi)
    rows = plain > 1e-12
    found = log_expected_improvement(mean, std, 1.5, xi)
    np.testing.assert_allclose(found[rows], np.log(plain[rows]), rtol=1e-6)
    assert rows.sum() > 3 and (found <= log_expected_improvement(mean, std, 1.5)).all()
