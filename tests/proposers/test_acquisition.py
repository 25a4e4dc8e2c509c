"""Acquisitions by hand, by quadrature and over all magnitudes; their maximisation."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from ConfigSpace import (
    AndConjunction,
    Categorical,
    ConfigurationSpace,
    EqualsCondition,
    Float,
    ForbiddenEqualsClause,
    ForbiddenGreaterThanRelation,
    GreaterThanCondition,
    Integer,
)
from scipy.integrate import quad
from scipy.optimize import minimize
from scipy.special import erfcx
from scipy.stats import norm

from automl_plugins.arrays import FloatArray
from automl_plugins.proposers.acquisition import (
    SMAC_SEARCH,
    LocalSearch,
    Score,
    best_of,
    climb,
    distance_factor,
    largest_differences,
    log_excess,
    log_score,
    lower_confidence_bound,
    maximize,
    plateau_radii,
)
from automl_plugins.spaces.vector_space import VectorSpace
from automl_plugins.surrogates import AveragedProcess
from automl_plugins.surrogates.base import expected_improvement, log_expected_improvement

INF, NAN = float("inf"), float("nan")


def log_h(z: FloatArray) -> FloatArray:
    """Log EI for std = 1 and best - mean = z."""
    return log_expected_improvement(-z, np.ones_like(z), 0.0)


def log_h_by_series(z: float) -> float:
    """Log h(z) for z <= -20 by the asymptotic series of Mills' ratio, exact rationals.

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


@pytest.mark.parametrize(
    ("mean", "std", "best", "xi", "value"),
    [
        # z = 0: std / sqrt(2 pi); z = 1: Phi(1) + phi(1) = 0.8413447 + 0.2419707
        (0.0, 1.0, 0.0, 0.0, 0.3989422804),
        (0.0, 3.0, 0.0, 0.0, 1.1968268412),
        (2.0, 1.0, 3.0, 0.0, 1.0833154706),
        (2.0, 1.0, 1.0, 0.0, 0.0833154706),
        (0.0, 2.0, 2.0, 0.0, 2.1666309411),
        # std = 0; a ratio that overflows leaves the gain
        (1.0, 0.0, 2.0, 0.0, 1.0),
        (3.0, 0.0, 2.0, 0.0, 0.0),
        (1.0, 0.0, 2.0, 0.25, 0.75),
        (-1.0, 5e-324, 0.0, 0.0, 1.0),
        (-1e10, 1e-310, 0.0, 0.0, 1e10),
        (1.0, 5e-324, 0.0, 0.0, 0.0),
    ],
)
@pytest.mark.filterwarnings("error")
def test_expected_improvement_by_hand(
    mean: float, std: float, best: float, xi: float, value: float
) -> None:
    arguments = (np.array([mean]), np.array([std]), best, xi)
    np.testing.assert_allclose(expected_improvement(*arguments), [value], rtol=1e-9)
    expected = math.log(value) if value else -INF
    np.testing.assert_allclose(log_expected_improvement(*arguments), [expected], atol=1e-9)


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


@pytest.mark.parametrize("xi", [0.0, 0.01, 0.5, 3.0])
def test_xi_lowers_the_log_as_it_lowers_the_plain_form(xi: float) -> None:
    mean, std = np.linspace(-1.0, 2.0, 13), np.linspace(0.1, 1.0, 13)
    plain = expected_improvement(mean, std, 1.5, xi)
    rows = plain > 1e-12
    found = log_expected_improvement(mean, std, 1.5, xi)
    np.testing.assert_allclose(found[rows], np.log(plain[rows]), rtol=1e-6)
    assert rows.sum() > 3 and (found <= log_expected_improvement(mean, std, 1.5)).all()


def test_log_expected_improvement_is_finite_and_increasing_from_minus_1e100() -> None:
    magnitudes = 10.0 ** np.linspace(-100, 100, 20_001)
    z = np.concatenate([-magnitudes[::-1], [0.0], magnitudes[magnitudes <= 1e3]])
    value = log_h(z)
    assert np.isfinite(value).all()
    distinct = np.abs(np.diff(z)) > 1e-12  # closer than that, z + 1 is z + 1
    assert (np.diff(value) >= 0).all()
    assert (np.diff(value)[distinct] > 0).all()


def test_log_expected_improvement_is_as_accurate_as_documented() -> None:
    z = -np.concatenate([np.linspace(50.0, 60.0, 21)[1:], [200.0, 999.0, 1001.0]])
    # Differences to log phi, as log phi itself is in the thousands
    log_phi = -0.5 * z * z - 0.5 * math.log(2.0 * math.pi)
    expected = np.array([log_h_by_series(value) for value in z]) - log_phi
    np.testing.assert_allclose(log_h(z) - log_phi, expected, rtol=0, atol=1e-8)
    for seam in (-1.0, -50.0):  # no step where the formula changes
        width = 1e-6 * abs(seam)
        low, middle, high = log_h(np.array([seam - width, seam, seam + width]))
        assert middle - low == pytest.approx(high - middle, rel=1e-3)


@pytest.mark.parametrize("k", [-100, -5, 0, 5, 100])
def test_expected_improvement_follows_scale_and_shift(k: int) -> None:
    rng = np.random.default_rng(0)
    mean, std = rng.normal(size=50), rng.uniform(0.01, 2.0, size=50)
    value, scale = log_expected_improvement(mean, std, -3.0, 0.05), 10.0**k
    shift = 1.0 if k == 0 else 0.0
    scaled = log_expected_improvement(
        scale * mean + shift, scale * std, scale * -3.0 + shift, scale * 0.05
    )
    np.testing.assert_allclose(scaled, value + np.log(scale), rtol=1e-9, atol=1e-9)


def test_bounds_by_hand() -> None:
    mean, std = np.array([1.0, 2.0, -1.0]), np.array([0.5, 2.0, 0.0])
    np.testing.assert_array_equal(lower_confidence_bound(mean, std), [-0.5, 0.0, 1.0])
    np.testing.assert_array_equal(lower_confidence_bound(mean, std, 2.0), [0.0, 2.0, 1.0])
    np.testing.assert_array_equal(lower_confidence_bound(mean, std, 0.0), -mean)
    # GBQR-median (thesis eq. 5.2): (bound - median) / seconds, at least 0
    bound, seconds = np.array([1.0, 3.0, 5.0, 5.0]), np.array([1.0, 4.0, 2.0, 8.0])
    quality = np.exp(log_score(log_excess(bound, 2.0), log_seconds=np.log(seconds)))
    np.testing.assert_allclose(quality, [0.0, 0.25, 1.5, 0.375])
    utility = np.array([-1.0, 2.0, 2.0 + math.e, 1e-300 + 2.0, 3.0])
    expected = [-INF, -INF, 1.0, -INF, 0.0]
    np.testing.assert_allclose(log_excess(utility, 2.0), expected, atol=1e-15)


def test_weighted_by_hand() -> None:
    value = log_score(
        np.log([3.0]),
        log_success=np.log([0.5]),
        log_seconds=np.log([4.0]),
        exponent=0.5,
        log_distance=np.log([0.2]),
    )
    np.testing.assert_allclose(np.exp(value), [3.0 * 0.5 * 0.2 / 2.0])
    np.testing.assert_array_equal(log_score(np.array([-1.5, 2.0])), [-1.5, 2.0])
    # Where "per ln(seconds)" changes its sign: the trap of thesis 2.2.5.
    seconds = np.log([0.1, 0.5, 0.999, 1.0, 1.001, 2.0, 1e4])
    assert (np.diff(log_score(np.zeros(7), log_seconds=seconds)) < 0).all()


@pytest.mark.parametrize("exponent", [0.0, 0.3, 1.0])
def test_lowering_success_or_raising_seconds_never_raises(exponent: float) -> None:
    rng = np.random.default_rng(0)
    n = 2000
    gains = np.concatenate([rng.normal(size=n // 2) * 50.0, np.full(n // 2, -INF)])
    success, distance = np.log(rng.random((2, n)))
    seconds = rng.uniform(np.log(1e-3), np.log(1e6), size=n)  # both signs of the logarithm
    parts = {"log_success": success, "log_seconds": seconds, "log_distance": distance}
    value = log_score(gains, exponent=exponent, **parts)
    less = rng.exponential(size=n)
    for name, part in parts.items():
        changed = part + less if name == "log_seconds" else part - less
        worse = log_score(gains, exponent=exponent, **{**parts, name: changed})
        assert not np.isnan(worse).any() and (worse <= value).all()
    assert (log_score(gains + less, exponent=exponent, **parts) >= value).all()


@pytest.mark.parametrize(
    ("gaps", "radius", "factor"),
    [
        ([[0.0, 0.5], [0.01, 0.5], [0.03, 0.5]], 0.02, [0.0, 0.25, 1.0]),
        ([[0.01, 9.0], [0.03, 9.0]], 0.06, [1 / 36, 0.25]),
        # One radius each: the first counts, 0.01 / 0.06, though the second is nearer
        ([[0.01, 0.005]], np.array([0.06, 1e-4]), [1 / 36]),
        (np.empty((3, 0)), 0.02, [1.0, 1.0, 1.0]),
    ],
)
def test_distance_factor_by_hand(gaps: Any, radius: Any, factor: list[float]) -> None:
    np.testing.assert_allclose(distance_factor(np.array(gaps), radius), factor, atol=1e-12)


@pytest.mark.parametrize(
    ("x", "losses", "radii"),
    [
        # Twice the gap, at least 0.02 and at most 0.05
        ([0.1, 0.115, 0.9], [1.0, 1.0, 2.0], [0.03, 0.03, 0.0]),
        ([0.1, 0.104, 0.9], [1.0, 1.0, 2.0], [0.02, 0.02, 0.0]),
        ([0.1, 0.14, 0.9], [1.0, 1.0, 2.0], [0.05, 0.05, 0.0]),
        # Too far apart, as on a grid; on a slope; equal up to rounding
        ([0.1, 0.16, 0.9], [1.0, 1.0, 2.0], [0.0, 0.0, 0.0]),
        ([0.1, 0.104, 0.9], [1.0, 1.0 + 1e-6, 2.0], [0.0, 0.0, 0.0]),
        ([0.1, 0.104, 0.9], [0.1 + 0.2, 0.3, 2.0], [0.02, 0.02, 0.0]),
        # With any constant added, and with any worst loss
        ([0.1, 0.104, 0.9], [1e9 + 1.0, 1e9 + 1.001, 1e9 + 2.0], [0.0, 0.0, 0.0]),
        ([0.1, 0.104, 0.9], [1e9 + 0.3, 1e9 + (0.1 + 0.2), 1e9 + 2.0], [0.02, 0.02, 0.0]),
        ([0.1, 0.104, 0.9, 0.5], [1.0, 1.0 + 1e-6, 2.0, 1e15], [0.0, 0.0, 0.0, 0.0]),
        ([0.1, 0.104, 0.9], [-1e308, 1e308, 1.7e308], [0.0, 0.0, 0.0]),
        # Not beyond a different loss; a different loss that is as near or nearer
        ([0.1, 0.12, 0.145], [1.0, 1.0, 2.0], [0.04, 0.025, 0.0]),
        ([0.1, 0.12, 0.13], [1.0, 1.0, 2.0], [0.03, 0.0, 0.0]),
        ([], [], []),
    ],
)
def test_plateau_radii_by_hand(x: list[float], losses: list[float], radii: list[float]) -> None:
    features = np.array(x).reshape(-1, 1)
    np.testing.assert_allclose(plateau_radii(features, np.array(losses), 0.05), radii, atol=1e-12)


@pytest.mark.parametrize(
    ("x", "losses", "radii"),
    [
        ([0.1, 0.16, 0.9], [1.0, 1.0, 2.0], [0.12, 0.12, 0.0]),  # twice the gap
        ([0.1, 0.25, 0.9], [1.0, 1.0, 2.0], [0.2, 0.2, 0.0]),  # but no farther than the reach
        ([0.1, 0.32, 0.9], [1.0, 1.0, 2.0], [0.0, 0.0, 0.0]),
        ([0.1, 0.25, 0.41], [1.0, 1.0, 2.0], [0.2, 0.16, 0.0]),  # nor than a different loss
        ([0.1, 0.104, 0.9], [1.0, 1.0, 2.0], [0.02, 0.02, 0.0]),
    ],
)
def test_a_plateau_ends_at_its_reach(
    x: list[float], losses: list[float], radii: list[float]
) -> None:
    features = np.array(x).reshape(-1, 1)
    np.testing.assert_allclose(plateau_radii(features, np.array(losses), 0.2), radii, atol=1e-12)


def test_a_plateau_ends_where_a_branch_does() -> None:
    features = np.array([[0.1, np.nan], [0.1, 0.5], [0.11, 0.5], [0.12, np.nan], [0.1, 0.9]])
    radii = plateau_radii(features, np.ones(5), 0.05)
    # The last one is far in a number that is active in its branch only.
    np.testing.assert_allclose(radii, [0.04, 0.02, 0.02, 0.04, 0.0], atol=1e-12)
    gaps = largest_differences(features + 0.01, features[:1])
    np.testing.assert_allclose(gaps[:, 0], [0.01, INF, INF, 0.03, INF], atol=1e-12)


# The maximum

N_CATEGORIES, N_COLUMNS = 4, 5


def letters() -> VectorSpace:
    """1 024 configurations; one letter is forbidden."""
    space = ConfigurationSpace()
    for i in range(N_COLUMNS):
        space.add(Categorical(f"c{i}", [f"v{j}" for j in range(N_CATEGORIES)]))
    space.add(ForbiddenEqualsClause(space["c0"], "v3"))
    return VectorSpace(space)


def rugged(seed: int) -> Score:
    """A different random score for every configuration."""
    table = np.random.default_rng(seed).standard_normal((N_CATEGORIES,) * N_COLUMNS)

    def score(vectors: FloatArray) -> tuple[FloatArray, FloatArray]:
        values = table[tuple(vectors.astype(int).T)]
        return values, -values

    return score


def exchange(start: FloatArray, level: float, value: Callable[[FloatArray], float]) -> float:
    """The best value that one best-improvement search scores, as a plain loop."""
    best = -INF
    while True:
        options = []
        for column in range(N_COLUMNS):
            for category in range(N_CATEGORIES):
                other = start.copy()
                other[column] = category
                if other[0] != 3 and category != start[column]:
                    options.append((value(other), tuple(other)))
        top, where = max(options)
        best = max(best, top)
        if top <= level:
            return best
        level, start = top, np.array(where)


def maximum(
    space: VectorSpace,
    score: Score,
    first: FloatArray,
    observed: FloatArray | None = None,
    seed: int = 1,
    search: LocalSearch | None = None,
    fixed: FloatArray | None = None,
) -> FloatArray:
    observed = first[:0] if observed is None else observed
    keys = np.sort(space.keys(observed))
    return maximize(
        space,
        score,
        first,
        observed,
        fixed,
        np.random.default_rng(seed),
        repeats=lambda vectors: space.seen(vectors, keys),
        search=search or LocalSearch(),
    )


@pytest.mark.parametrize("smac", [False, True])
@pytest.mark.parametrize("seed", range(8))
def test_every_start_is_searched_until_nothing_is_better(seed: int, smac: bool) -> None:
    space, score = letters(), rugged(seed)
    rng = np.random.default_rng(seed)
    first, observed = space.sample(6, rng), space.sample(30 if smac else 4, rng)

    def value(vector: FloatArray) -> float:
        hidden = (observed == vector).all(axis=1).any()
        return -INF if hidden else float(score(vector[None])[0][0])

    worth = score(first)[0]
    if smac:  # from the observed ones that score best
        own = score(observed)[0]
        found = [exchange(observed[i], float(own[i]), value) for i in np.argsort(-own)[:10]]
        search = SMAC_SEARCH
    else:
        found = [exchange(start, -INF, value) for start in observed[:3]]
        found += [exchange(start, value(start), value) for start in first[np.argsort(-worth)[:2]]]
        search = LocalSearch(n_observed=3, n_candidates=2, tolerance=0.0, joins=False)
    best = maximum(space, score, first, observed, seed, search)
    assert score(best[None])[0][0] == max(float(worth.max()), *found)


@pytest.mark.parametrize("search", [SMAC_SEARCH, LocalSearch()])
def test_with_fixed_values_starts_are_worth_what_they_are_with_these(search: LocalSearch) -> None:
    """Scored with their own values, no neighbour with the fixed one would be a gain."""
    space = VectorSpace(ConfigurationSpace({f"x{i}": (0.0, 1.0) for i in range(4)}))

    def score(v: FloatArray) -> tuple[FloatArray, FloatArray]:
        return -((v - 0.37) ** 2).sum(axis=1) - 10.0 * (v[:, 0] - 0.1) ** 2, np.zeros(len(v))

    rng = np.random.default_rng(0)
    fixed = np.array([0.9, NAN, NAN, NAN])
    first = space.complete(space.sample(20, rng), rng, fixed)
    observed = space.sample(20, rng)
    observed[:, 0] = 0.1
    found = maximum(space, score, first, observed, 0, search, fixed)
    assert found[0] == 0.9
    assert np.abs(found[1:] - 0.37).max() < 0.05


@pytest.mark.parametrize("seed", range(5))
def test_a_start_that_is_behind_at_first_finds_the_higher_hill(seed: int) -> None:
    space = VectorSpace(ConfigurationSpace({f"x{i}": (0.0, 1.0) for i in range(6)}))

    def hills(v: FloatArray) -> tuple[FloatArray, FloatArray]:
        low = np.exp(-((v - 0.25) ** 2).sum(axis=1) / 0.5)
        high = 2.0 * np.exp(-((v - 0.8) ** 2).sum(axis=1) / 0.3)
        return np.maximum(low, high), np.zeros(len(v))

    rng = np.random.default_rng(seed)
    near = np.clip(0.25 + 0.1 * rng.standard_normal((1000, 6)), 0, 1)
    observed = np.clip(0.25 + 0.08 * rng.standard_normal((5, 6)), 0, 1)
    observed[0] = 0.55  # worth 0.57, where the others are worth 0.9
    assert hills(maximum(space, hills, near, observed, seed)[None])[0][0] > 1.2


def test_joined_gains_climb_a_sum_with_half_of_the_neighbours() -> None:
    space = VectorSpace(ConfigurationSpace({f"x{i}": (0.0, 1.0) for i in range(20)}))
    first = space.sample(50, np.random.default_rng(0))

    def search(joins: bool) -> tuple[float, int]:
        rows = 0

        def score(vectors: FloatArray) -> tuple[FloatArray, FloatArray]:
            nonlocal rows
            rows += len(vectors)
            distances = np.abs(vectors - 0.4).sum(axis=1)
            return -distances, distances

        best = maximum(space, score, first, search=LocalSearch(tolerance=0.02, joins=joins))
        return float(np.abs(best - 0.4).sum()), rows

    (together, fewer), (single, many) = search(joins=True), search(joins=False)
    assert together <= single
    assert 2 * fewer <= many


def recorded(score: Score, seen: list[FloatArray]) -> Score:
    def record(vectors: FloatArray) -> tuple[FloatArray, FloatArray]:
        seen.append(vectors)
        return score(vectors)

    return record


def test_scores_are_bounded_in_number_and_the_best_is_taken() -> None:
    space = VectorSpace(
        ConfigurationSpace({f"c{i}": [f"v{j}" for j in range(6)] for i in range(120)})
    )
    seen = list[FloatArray]()

    def score(vectors: FloatArray) -> tuple[FloatArray, FloatArray]:
        return -vectors.sum(axis=1), vectors.sum(axis=1)

    first = space.sample(3, np.random.default_rng(0))
    best = maximum(space, recorded(score, seen), first, search=LocalSearch(joins=False))
    scored = np.concatenate(seen)
    step = 3 * 120 * 5  # neighbours of three starts
    assert 30_000 <= len(scored) < 30_000 + step
    assert best.sum() == scored.sum(axis=1).min()


def test_joined_gains_keep_to_forbidden_clauses() -> None:
    space, seen = letters(), list[FloatArray]()
    maximum(space, recorded(rugged(3), seen), space.sample(5, np.random.default_rng(0)))
    assert (np.concatenate(seen)[:, 0] != 3).all()


def test_joined_gains_that_activate_a_parameter_give_it_a_value() -> None:
    both = ConfigurationSpace()
    a, b, c = (Categorical(name, ["off", "on"]) for name in "abc")
    child = Float("child", (0.0, 1.0))
    both.add([a, b, c, child])
    both.add(AndConjunction(EqualsCondition(child, a, "on"), EqualsCondition(child, b, "on")))
    space, seen = VectorSpace(both), list[FloatArray]()
    parents = [space.names.index(name) for name in "ab"]

    def score(vectors: FloatArray) -> tuple[FloatArray, FloatArray]:
        value = (vectors[:, parents] == 1.0).sum(axis=1).astype(np.float64)
        return value, -value

    off = space.sample(200, np.random.default_rng(0))
    off = off[(off[:, parents] == 0.0).all(axis=1)][:3]
    maximum(space, recorded(score, seen), off)
    scored = np.concatenate(seen)
    active = (scored[:, parents] == 1.0).all(axis=1)
    assert active.any()
    assert (~np.isnan(scored[:, space.names.index("child")]) == active).all()


def test_ties_go_to_the_lower_loss() -> None:
    points, losses = np.linspace(0.0, 1.0, 40)[:, None], np.random.default_rng(0).random(40)
    scores: npt.NDArray[np.float64] = np.zeros(40)
    found = best_of(points, scores, losses, np.random.default_rng(0))
    assert found[0] == points[losses.argmin(), 0]


# The ascent


def cube(d: int) -> VectorSpace:
    return VectorSpace(ConfigurationSpace({f"x{i}": (0.0, 1.0) for i in range(d)}))


def bowl(d: int) -> tuple[Score, FloatArray]:
    """A smooth score of unequal, dependent columns, and the place of its maximum."""
    top = np.linspace(0.15, 0.85, d)
    Q, _ = np.linalg.qr(np.random.default_rng(d).standard_normal((d, d)))
    A = Q @ np.diag(np.linspace(1.0, 5.0, d)) @ Q.T

    def score(vectors: FloatArray) -> tuple[FloatArray, FloatArray]:
        offset = vectors - top
        values = -np.log1p(np.einsum("nd,de,ne->n", offset, A, offset))
        return values, -values

    return score, top


@pytest.mark.parametrize("d", [2, 6, 10])
def test_an_ascent_ends_at_the_maximum_of_a_smooth_score(d: int) -> None:
    (score, top), rng = bowl(d), np.random.default_rng(d)
    for _ in range(3):
        start = np.clip(top + 0.1 * rng.choice([-1.0, 1.0], d), 0.0, 1.0)
        np.testing.assert_allclose(climb(cube(d), score, start, None, 20), top, atol=1e-3)


def test_a_shorter_search_has_at_most_so_many_of_everything() -> None:
    search = LocalSearch(n_candidates=1, n_gradients=20)
    shorter = search.at_most(n_observed=3, n_candidates=2, n_gradients=10)
    assert shorter == LocalSearch(n_observed=3, n_candidates=1, n_gradients=10)


def test_an_ascent_takes_as_many_gradients_as_it_is_given() -> None:
    score, top = bowl(6)
    steps, ends = [], []
    for n in (1, 5, 10):
        seen = list[FloatArray]()
        ends.append(climb(cube(6), recorded(score, seen), top + 0.2, None, n))
        steps.append(len(seen))
    assert 1 <= steps[0] < 5 <= steps[1] < 10 <= steps[2] < 20  # a line search comes to its end
    assert [score(end[None])[0][0] for end in ends] == sorted(score(np.array(ends))[0])


def test_an_ascent_ends_at_the_border_and_scores_nothing_beyond() -> None:
    seen, start = list[FloatArray](), np.array([0.0, 0.6, 1.0])

    def score(vectors: FloatArray) -> tuple[FloatArray, FloatArray]:
        values = vectors @ [2.0, 1.0, -1.0] - (vectors[:, 1] - 0.5) ** 2
        return values, -values

    end = climb(cube(3), recorded(score, seen), start, None, 20)
    np.testing.assert_allclose(end, [1.0, 1.0, 0.0], atol=1e-6)
    asked = np.concatenate(seen)
    assert asked.min() >= 0.0 and asked.max() <= 1.0
    assert all(len(batch) == 7 for batch in seen)  # a point and six differences at a time


def test_an_ascent_stays_between_the_ends_that_it_is_given() -> None:
    (score, top), seen = bowl(3), list[FloatArray]()
    low, high = top - 0.2, top + np.array([0.2, -1e-3, 0.2])
    start = (low + high) / 2.0
    end = climb(cube(3), recorded(score, seen), start, None, 20, (low, high))
    assert end[1] == high[1]  # the maximum lies beyond
    asked = np.concatenate(seen)
    assert (asked >= low).all() and (asked <= high).all()
    low[0] = np.nan  # stays
    assert climb(cube(3), score, start, None, 20, (low, high))[0] == start[0]


def mixed() -> VectorSpace:
    """Real numbers, one of them on a log scale, beside parameters without a gradient."""
    space = ConfigurationSpace()
    kind = Categorical("kind", ["a", "b"])
    below = [Float("a0", (0.0, 1.0)), Float("b0", (1e-3, 1.0), log=True)]
    space.add([kind, *below, Float("x", (-3.0, 5.0)), Integer("n", (1, 9))])
    space.add([EqualsCondition(below[0], kind, "a"), EqualsCondition(below[1], kind, "b")])
    return VectorSpace(space)


def towards(target: float) -> Score:
    def score(vectors: FloatArray) -> tuple[FloatArray, FloatArray]:
        values = -np.nansum((vectors - target) ** 2, axis=1)
        return values, -values

    return score


def test_an_ascent_moves_the_active_real_numbers_that_are_free() -> None:
    space = mixed()
    kind, a, b, x, n = (space.names.index(name) for name in ("kind", "a0", "b0", "x", "n"))
    start, fixed = np.full(5, np.nan), np.full(5, np.nan)
    start[[kind, a, x, n]] = 0.0, 0.3, 0.9, 0.25
    start = space.canonical(start[None])[0]
    end = climb(space, towards(0.5), start, None, 20)
    np.testing.assert_allclose(end[[a, x]], 0.5, atol=1e-3)
    assert (end[kind], end[n]) == (start[kind], start[n]) and np.isnan(end[b])
    fixed[[x, kind]] = start[[x, kind]]
    end = climb(space, towards(0.5), start, fixed, 20)
    np.testing.assert_allclose(end[a], 0.5, atol=1e-3)
    assert end[x] == start[x] and np.isnan(end[b])
    fixed[a] = start[a]
    np.testing.assert_array_equal(climb(space, towards(0.5), start, fixed, 20), start)
    found = maximum(
        space, towards(0.5), start[None], search=LocalSearch(n_gradients=20), fixed=fixed
    )
    assert (found[a], found[x], found[kind]) == (start[a], start[x], start[kind])


def test_an_ascent_keeps_numbers_that_decide_conditions() -> None:
    space = ConfigurationSpace()
    x, child = Float("x", (0.0, 1.0)), Float("child", (0.0, 1.0))
    space.add([x, child])
    space.add(GreaterThanCondition(child, x, 0.5))
    vectors, seen = VectorSpace(space), list[FloatArray]()
    for start in ([0.4, np.nan], [0.6, 0.9]):
        for target in (0.1, 0.9):
            score = recorded(towards(target), seen)
            end = climb(vectors, score, np.array(start), None, 20)
            assert end[0] == start[0] and np.isnan(end[1]) == np.isnan(start[1])
            first = vectors.activate(vectors.sample(5, np.random.default_rng(0)))
            found = maximum(vectors, score, first, search=LocalSearch(n_gradients=20))
            assert np.isnan(found[1]) == (found[0] <= 0.5)
    scored = np.concatenate(seen)
    np.testing.assert_array_equal(np.isnan(scored[:, 1]), scored[:, 0] <= 0.5)


def test_an_ascent_to_a_forbidden_or_known_configuration_is_dropped() -> None:
    space = ConfigurationSpace()
    x, y = Float("x", (0.0, 1.0)), Float("y", (0.0, 1.0))
    space.add([x, y])
    space.add(ForbiddenGreaterThanRelation(x, y))
    vectors = VectorSpace(space)

    def score(v: FloatArray) -> tuple[FloatArray, FloatArray]:
        values = -((v[:, 0] - 0.8) ** 2) - (v[:, 1] - 0.2) ** 2  # where x > y
        return values, -values

    for seed in range(5):
        first = vectors.sample(20, np.random.default_rng(seed))
        found = maximum(vectors, score, first, seed=seed, search=LocalSearch(n_gradients=20))
        assert vectors.allowed(found[None])[0]
    smooth, top = bowl(2)
    end = climb(cube(2), smooth, top + 0.05, None, 20)
    found = maximum(
        cube(2), smooth, top[None] + 0.05, end[None], search=LocalSearch(n_gradients=20)
    )
    assert not (found == end).all()


@pytest.mark.filterwarnings("error")
def test_an_ascent_survives_scores_of_minus_infinity() -> None:
    score, top = bowl(2)

    def half(v: FloatArray) -> tuple[FloatArray, FloatArray]:
        return np.where(v[:, 0] > 0.1, score(v)[0], -INF), np.zeros(len(v))

    nowhere = climb(cube(2), lambda v: (np.full(len(v), -INF), v[:, 0]), top + 0.1, None, 20)
    np.testing.assert_array_equal(nowhere, top + 0.1)
    np.testing.assert_allclose(climb(cube(2), half, top + 0.1, None, 20), top, atol=1e-3)
    for start in ([0.1, 0.5], [0.1 + 5e-5, 0.5], [0.05, 0.5]):  # at the cliff, and below it
        end = climb(cube(2), half, np.array(start), None, 20)
        assert np.isfinite(end).all() and (end >= 0.0).all() and (end <= 1.0).all()


@pytest.mark.parametrize(("d", "n"), [(2, 15), (4, 30), (6, 40)])
def test_the_acquisition_of_a_process_is_maximised_to_a_thousandth_of_the_range(
    d: int, n: int
) -> None:
    rng = np.random.default_rng(d)
    X = rng.random((n, d))
    y = ((X - 0.4) ** 2).sum(axis=1) + 0.3 * np.sin(5.0 * X[:, 0])
    model = AveragedProcess().fit(X, y)

    def score(vectors: FloatArray) -> tuple[FloatArray, FloatArray]:
        mean, std = model.predict(vectors)
        return log_expected_improvement(mean, std, float(y.min())), mean

    first, observed = cube(d).sample(1000, rng), X[np.argsort(y)]
    found = maximum(cube(d), score, first, observed, search=LocalSearch(n_gradients=20))
    # Scipy's own search from the best of many more candidates
    starts = np.vstack([rng.random((5000, d)), np.clip(X + 0.02 * rng.normal(size=X.shape), 0, 1)])
    starts = starts[np.argsort(-score(starts)[0])[:20]]
    ends = [
        minimize(lambda x: -score(x[None])[0][0], start, bounds=[(0, 1)] * d, method="L-BFGS-B")
        for start in starts
    ]
    best = min(ends, key=lambda end: float(end.fun))
    value = float(score(found[None])[0][0])
    near = np.abs(found - best.x).max() <= 1e-3
    assert near or value >= -best.fun - 1e-6, (found, best.x, value, -best.fun)


def test_the_largest_distances_do_not_overflow() -> None:
    assert distance_factor(np.array([[1e300]]), 0.01).tolist() == [1.0]
