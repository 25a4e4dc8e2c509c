"""Feasibility and Constraints: the border of success. RunningTime: seconds and their bounds."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
from sklearn.tree import ExtraTreeClassifier

from automl_plugins.arrays import BoolArray, FloatArray
from automl_plugins.surrogates.seconds_and_success import Constraints, Feasibility, RunningTime

GRID = np.linspace(0.0, 1.0, 101)[:, None]


def circle(n: int = 300, seed: int = 0) -> tuple[FloatArray, BoolArray]:
    """Features (n, 2) of which those in the corner at (1, 1) fail."""
    X = np.random.default_rng(seed).random((n, 2))
    return X, ((X - 1.0) ** 2).sum(axis=1) > 0.5**2


def test_probability_falls_over_the_gap() -> None:
    pair = np.array([[0.2], [0.8]])
    p = Feasibility(n_trees=200, random_state=0).fit(pair, np.array([True, False])).predict(GRID)
    assert (np.diff(p) <= 1e-12).all()
    # Cuts are uniform in the gap, so the average falls along a straight line
    inside = (GRID[:, 0] > 0.2) & (GRID[:, 0] < 0.8)
    line = (0.8 - GRID[inside, 0]) / 0.6
    # Two rows cannot tell the four ways of predicting apart, and for three of them all is 1 / 2.
    # prior: 0.1 observations at the rate (1 + 1) / (2 + 2)
    np.testing.assert_allclose(p[inside], (line / 4 + 3 / 8 + 0.1 * 0.5) / 1.1, atol=0.03)
    np.testing.assert_allclose(p[GRID[:, 0] < 0.2], (5 / 8 + 0.05) / 1.1)
    np.testing.assert_allclose(p[GRID[:, 0] > 0.81], (3 / 8 + 0.05) / 1.1)


def test_the_border_is_approached_by_bisection() -> None:
    # Whoever evaluates where the probability is one half halves the gap each time.
    border, X, y = 0.637, [0.0, 1.0], [True, False]
    fine = np.linspace(0.0, 1.0, 1001)
    for _ in range(5):
        model = Feasibility(random_state=0).fit(np.array(X)[:, None], np.array(y))
        X.append(float(fine[np.argmin(np.abs(model.predict(fine[:, None]) - 0.5))]))
        y.append(X[-1] < border)
    last = max(x for x, success in zip(X, y, strict=True) if success)
    first = min(x for x, success in zip(X, y, strict=True) if not success)
    assert first - last < 0.15


@pytest.mark.parametrize("n", [1, 2, 8, 100])
def test_laplaces_rule_where_all_agree(n: int) -> None:
    X = np.random.default_rng(0).random((n, 1))
    good = Feasibility().fit(X, np.ones(n, dtype=bool)).predict(GRID)
    bad = Feasibility().fit(X, np.zeros(n, dtype=bool)).predict(GRID)
    np.testing.assert_allclose(good, (n + 1.0) / (n + 2.0))
    np.testing.assert_allclose(bad, 1.0 / (n + 2.0))


def share_by_nodes(forest: list[Any], X: FloatArray, least: float) -> FloatArray:
    """Share of successes (m,) at the deepest node of at least ``least`` rows, or at the root."""
    shares = np.zeros(len(X))
    for tree in forest:
        passed = tree.decision_path(X).toarray().astype(bool)
        large = passed & (tree.tree_.n_node_samples >= least)
        large[:, 0] = True
        deepest = [np.flatnonzero(row)[-1] for row in large]  # children come after their parents
        shares += tree.tree_.value[deepest, 0, 1]
    return shares / len(forest)


@pytest.mark.parametrize("prior", [1e-300, 1e-12, 0.1, 10.0, 1e9])
def test_the_prior_draws_the_share_of_the_trees_towards_the_rate(prior: float) -> None:
    X, y = circle(60)
    X[::7, 1] = np.nan
    model = Feasibility(n_trees=20, prior=prior, random_state=0).fit(X, y)
    fresh, _ = circle(100, seed=1)
    fresh[::5, 0] = np.nan
    assert len(model.trees_) == 20 and model.rate_ == (y.sum() + 1.0) / 62.0
    # the same trees, grown by scikit-learn as classifiers
    tree = ExtraTreeClassifier(max_features=None, random_state=np.random.RandomState(0))
    forest = [copy.copy(tree).fit(X, y) for _ in range(20)]
    shares = np.array([share_by_nodes(forest, fresh, least) for least in (1, 4, 16, np.inf)])
    by_leaf = [tree.predict_proba(fresh)[:, 1] for tree in forest]
    np.testing.assert_allclose(shares[0], np.mean(by_leaf, axis=0))
    assert model.weights_.sum() == pytest.approx(1.0) and (model.weights_ > 0.0).all()
    expected = (model.weights_ @ shares + prior * model.rate_) / (1.0 + prior)
    np.testing.assert_allclose(model.predict(fresh), expected, atol=1e-11)
    assert prior < 0.1 or (expected.min() > 0.0 and expected.max() < 1.0)


@pytest.mark.parametrize("seed", range(3))
def test_failures_by_chance_are_blamed_on_no_configuration(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X, y = rng.random((80, 3)), rng.random(80) < 0.7
    model = Feasibility(random_state=0).fit(X, y)
    assert not model.predictable and model.weights_[2:].sum() > 0.5
    assert np.ptp(model.predict(X)) < 0.4 and (model.held_out() > 0.5).mean() > 0.9
    # beside a region that always fails
    y &= X[:, 0] < 0.6
    model = Feasibility(random_state=0).fit(X, y)
    assert model.weights_[3] < 0.01
    p = model.predict(X)
    assert p[X[:, 0] < 0.5].min() > p[X[:, 0] > 0.7].max()


def test_the_leaves_predict_where_the_configuration_decides() -> None:
    X, y = circle(100)
    model = Feasibility(random_state=0).fit(X, y)
    assert model.predictable and model.weights_[0] > 0.9
    assert ((model.held_out() > 0.5) == y).mean() > 0.9


def test_a_row_is_held_out_from_its_own_prediction() -> None:
    X = np.linspace(0.0, 1.0, 24)[:, None]
    y = np.ones(24, dtype=bool)
    y[12] = False
    model = Feasibility(random_state=0).fit(X, y)
    assert model.held_out()[12] > 0.8
    assert model.predict(X)[12] < model.held_out()[12]
    everywhere = Feasibility(random_state=0).fit(X, np.ones(24, dtype=bool))
    np.testing.assert_array_equal(everywhere.held_out(), np.full(24, everywhere.rate_))
    assert not everywhere.predictable


def test_contradictions_share_the_probability() -> None:
    X, y = np.zeros((5, 2)), np.array([True, True, True, False, False])
    p = Feasibility(random_state=0).fit(X, y).predict(X)
    np.testing.assert_allclose(p, (3 / 5 + 0.1 * 4 / 7) / 1.1)


def test_failing_regions_are_found() -> None:
    X, y = circle()
    fresh, truth = circle(2000, seed=1)
    p = Feasibility(random_state=0).fit(X, y).predict(fresh)
    assert ((p > 0.5) == truth).mean() > 0.95
    assert p[~truth].mean() < 0.2 < 0.9 < p[truth].mean()
    # An inactive feature can be what fails, also one that never was inactive before
    X[::3, 0] = np.nan
    asked = np.array([[np.nan, 0.5], [0.5, 0.5], [np.nan, np.nan]])
    p = Feasibility(random_state=0).fit(X, ~np.isnan(X[:, 0])).predict(asked)
    assert p[0] < 0.2 < 0.8 < p[1] and 0.0 < p[2] < 1.0


# Seconds


def sample(n: int = 200, seed: int = 0, noise: float = 0.1) -> tuple[FloatArray, FloatArray]:
    """Features (n, 3), of which the last does not matter, and seconds from 0.01 to 100."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, 3))
    log_seconds = 6.0 * X[:, 0] - 3.0 * X[:, 1] - 1.5 + noise * rng.normal(size=n)
    return X, np.exp(log_seconds)


def stopped(n: int = 300, seed: int = 0) -> tuple[FloatArray, FloatArray, FloatArray, BoolArray]:
    """Features, true seconds, observed seconds, and the mask of those stopped early."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, 2))
    seconds = np.exp(4.0 * X[:, 0] + 0.1 * rng.normal(size=n))
    early = rng.random(n) < 0.5
    return X, seconds, np.where(early, seconds * rng.uniform(0.05, 0.9, size=n), seconds), early


def slopes(seed: int = 0) -> tuple[FloatArray, FloatArray]:
    """Features (30, 2), and two constraints that hold left of 0.6 and below 0.7."""
    X = np.random.default_rng(seed).random((30, 2))
    return X, X - [0.6, 0.7]


def test_the_border_of_each_constraint_is_found() -> None:
    X, values = slopes()
    p = np.exp(
        Constraints()
        .fit(X, values)
        .log_probability(
            np.array([[0.3, 0.3], [0.3, 0.69], [0.3, 0.71], [0.59, 0.3], [0.61, 0.3], [0.9, 0.9]])
        )
    )
    assert (p[[0, 1, 3]] > 0.9).all() and (p[[2, 4, 5]] < 0.1).all()


def test_the_border_of_a_constraint_that_is_never_below_0_is_found() -> None:
    X, values = slopes()
    inside, outside = np.array([[0.2, 0.2], [0.4, 0.5]]), np.array([[0.8, 0.2], [0.3, 0.95]])
    broken = (values > 0.0).astype(np.float64)
    for c in (np.maximum(values, 0.0), broken, 1e300 * broken):
        model = Constraints().fit(X, c)
        assert (np.exp(model.log_probability(inside)) > 0.9).all()
        assert (np.exp(model.log_probability(outside)) < 0.1).all()
    # Only whether it holds: as if it said -1 and 1.
    expected = Constraints().fit(X, 2.0 * broken - 1.0).log_probability(X)
    found = Constraints().fit(X, broken).log_probability(X)
    np.testing.assert_array_equal(found, expected)


def test_of_rows_as_near_to_a_border_the_newest_are_learnt() -> None:
    X = np.random.default_rng(0).random((2_000, 1))
    X = X[np.argsort(-np.abs(X[:, 0] - 0.05))]  # a search draws near to a border
    model = Constraints().fit(X, (X > 0.05).astype(np.float64))
    p = np.exp(model.log_probability(np.array([[0.045], [0.055]])))
    assert p[0] > 0.9 and p[1] < 0.1


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_the_few_rows_on_one_side_of_a_border_are_all_learnt(sign: float) -> None:
    X = 0.8 * np.random.default_rng(0).random((500, 2))
    few = np.arange(1, 11)  # old ones, far from the others
    X[few, 0] += 0.9 - 0.8 * X[few, 0]
    sides = np.full(500, -sign)
    sides[few] = sign
    p = np.exp(Constraints().fit(X, sides[:, None]).log_probability(X))
    holds = sides < 0.0
    assert (p[holds] > 0.9).all() and (p[~holds] < 0.1).all()


@pytest.mark.parametrize("unit", [1e-200, 1e-3, 1e3, 1e140])
def test_the_unit_of_a_constraint_does_not_matter(unit: float) -> None:
    X, values = slopes()
    expected = Constraints().fit(X, values).log_probability(X)
    found = Constraints().fit(X, unit * values).log_probability(X)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-9)


def test_unknown_and_infinite_values_of_constraints() -> None:
    X, values = slopes()
    known = X[:, 0] < 0.7
    expected = Constraints().fit(X[known], values[known]).log_probability(X)
    values[~known] = np.nan
    np.testing.assert_array_equal(Constraints().fit(X, values).log_probability(X), expected)
    values[~known] = np.inf
    p = np.exp(Constraints().fit(X, values).log_probability(X))
    assert (p[~known] < 0.1).all() and np.isfinite(p).all()
    values[X[:, 0] > 0.1] = np.inf  # the median, too
    p = np.exp(Constraints().fit(X, values).log_probability(X))
    assert (p[~known] < 0.1).all() and np.isfinite(p).all()


def test_a_border_is_learnt_from_the_rows_near_it() -> None:
    X = np.random.default_rng(0).random((2_000, 1))
    p = np.exp(Constraints().fit(X, X - 0.05).log_probability(np.array([[0.045], [0.055]])))
    assert p[0] > 0.9 and p[1] < 0.1


def test_log_linear_seconds_are_recovered() -> None:
    X, seconds = sample()
    fresh, expected = sample(500, seed=1, noise=0.0)
    mean, std = RunningTime(random_state=0).fit(X, seconds).predict(fresh)
    error = mean - np.log(expected)
    assert np.sqrt((error**2).mean()) < 0.35  # their own standard deviation is 1.9
    assert abs(error.mean()) < 0.1 and (std >= 0).all() and np.ptp(std) == 0.0
    few, seconds = sample(15)
    mean, _ = RunningTime().fit(few, seconds).predict(few)
    assert len(np.unique(mean)) > 4 and np.corrcoef(mean, np.log(seconds))[0, 1] > 0.9


def test_expected_seconds_are_the_mean_of_a_log_normal() -> None:
    X, seconds = sample(noise=0.5)
    model = RunningTime(random_state=0).fit(X, seconds)
    mean, std = model.predict(X)
    assert std[0] == model.std_ == pytest.approx((np.log(seconds) - mean).std())
    np.testing.assert_allclose(model.predict_seconds(X), np.exp(mean + std**2 / 2.0))
    # One configuration, evaluated often: the mean of its times, and not their median
    times = np.random.default_rng(0).lognormal(1.0, 0.8, size=4000)
    model = RunningTime().fit(np.zeros((4000, 1)), times)
    assert model.predict_seconds(np.zeros((1, 1)))[0] == pytest.approx(times.mean(), rel=0.05)
    median = np.exp(model.predict(np.zeros((1, 1)))[0][0])
    assert median == pytest.approx(np.median(times), rel=0.05)


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [(0.0, 1e-3), (1e-9, 1e-9), (1e-3, 1e-3), (1.0, 1.0), (3600.0, 3600.0), (1e12, 1e12)],
)
@pytest.mark.parametrize("n", [1, 2, 60])
def test_equal_times_are_predicted_everywhere(seconds: float, expected: float, n: int) -> None:
    model = RunningTime().fit(sample(n)[0], np.full(n, seconds))
    predicted = model.predict_seconds(sample(50, seed=1)[0])
    # LightGBM keeps targets in single precision: ln seconds are good to 1e-7 of themselves.
    np.testing.assert_allclose(predicted, expected, rtol=3e-6)
    assert np.ptp(predicted) == 0.0 and model.std_ < 3e-6


@pytest.mark.parametrize(
    ("typical", "odd", "expected"),
    [
        (1.0, 1e-9, 1e-3),  # a clock's ticks, or a broken one
        (1.0, 1e15, 1e9),
        (1e-6, 1e-12, 1e-9),  # in another unit
        (1e12, 1e17, 1e15),
    ],
)
def test_far_outliers_are_cut_off(typical: float, odd: float, expected: float) -> None:
    X, seconds = np.arange(12.0)[:, None], np.full(12, typical)
    seconds[-2:] = odd
    expected_too = np.where(seconds == odd, expected, seconds)
    one, two = (RunningTime(random_state=0).fit(X, known) for known in (seconds, expected_too))
    np.testing.assert_allclose(one.predict_seconds(X), two.predict_seconds(X), rtol=1e-9)
    assert one.predict_seconds(X)[-1] != pytest.approx(typical, rel=0.5)


@pytest.mark.parametrize("unit", [1e-2, 3600.0, 1e-8, 1e12])
def test_another_unit_of_time_shifts_the_logarithm(unit: float) -> None:
    X, seconds = sample()
    one = RunningTime(random_state=0).fit(X, 10.0 * seconds)
    two = RunningTime(random_state=0).fit(X, 10.0 * seconds * unit)
    np.testing.assert_allclose(two.predict(X)[0], one.predict(X)[0] + np.log(unit), atol=1e-5)
    np.testing.assert_allclose(two.predict_seconds(X), unit * one.predict_seconds(X), rtol=1e-5)


def test_being_inactive_may_be_what_takes_long() -> None:
    X, seconds = sample()
    X[::2, 1] = np.nan
    seconds[::2] = 1e4 * (1.0 + X[::2, 0])
    model = RunningTime(random_state=0).fit(X, seconds)
    predicted = model.predict_seconds(X)
    assert predicted[::2].min() > predicted[1::2].max()
    assert np.isfinite(model.predict_seconds(np.full((2, 3), np.nan))).all()


@pytest.mark.parametrize("seed", range(3))
def test_times_cut_short_are_not_taken_for_the_whole(seed: int) -> None:
    X, seconds, observed, early = stopped(seed=seed)
    plain, _ = RunningTime(random_state=0).fit(X, observed).predict(X)
    model = RunningTime(random_state=0).fit(X, observed, early)
    raised, _ = model.predict(X)
    assert raised[early].mean() > plain[early].mean() and raised.mean() > plain.mean()
    # Single rows may move a little either way: the trees are others
    assert (raised - plain).min() > -0.25
    error = [np.abs(mean - np.log(seconds)).mean() for mean in (raised, plain)]
    assert error[0] < 0.4 * error[1]
    # How far bounds lie below their times is not noise
    residual = np.log(observed) - raised
    assert model.std_ == pytest.approx(residual[~early].std())
    assert model.std_ < 0.5 * residual.std()


def test_lower_bounds_at_the_edges() -> None:
    X, seconds = sample(50)
    plain = RunningTime(random_state=0).fit(X, seconds).predict(X)
    none = RunningTime(random_state=0).fit(X, seconds, np.zeros(50, dtype=bool)).predict(X)
    np.testing.assert_array_equal(plain, none)
    seconds[::2] *= 1e-3  # nothing but bounds: the model raises those stopped early
    model = RunningTime(random_state=0).fit(X, seconds, np.ones(50, dtype=bool))
    raw = np.log(np.maximum(seconds, 1e-3)) - model.predict(X)[0]
    assert model.std_ < raw.std() and np.isfinite(model.predict_seconds(X)).all()
    # One of two was stopped late, after more than all others took: it stays
    two = np.repeat([[0.0], [1.0]], 20, axis=0)
    late = two[:, 0] == 1.0
    model = RunningTime(random_state=0).fit(two, np.where(late, 50.0, 2.0), late)
    predicted = np.exp(model.predict(np.array([[0.0], [1.0]]))[0])
    np.testing.assert_allclose(predicted, [2.0, 50.0], rtol=0.05)


def test_settings_of_the_thesis() -> None:
    parameters = RunningTime().get_params()
    expected = {"n_trees": 100, "learning_rate": 0.15, "num_leaves": 4, "l1": 0.20}
    assert {name: parameters[name] for name in expected} == expected
    X, seconds = sample()
    booster = RunningTime().fit(X, seconds).model_
    assert booster.num_trees() == 100
    assert np.asarray(booster.predict(X, pred_leaf=True)).max() <= 3
    X, seconds = sample(30)
    spreads = [
        np.ptp(RunningTime(l1=l1, n_trees=20).fit(X, seconds).predict(X)[0])
        for l1 in (0.0, 0.2, 5.0, 1e4)
    ]
    assert spreads == sorted(spreads, reverse=True) and spreads[-1] == 0.0


def test_seconds_that_are_refused() -> None:
    with pytest.raises(ValueError, match=r"seconds must be finite and >= 0, .*row 1 has -0\.5"):
        RunningTime().fit(np.zeros((3, 1)), np.array([1.0, -0.5, -2.0]))
    for n in (1, 2):
        with pytest.raises(ValueError, match=rf"lower_bound must have shape \(3,\), got \({n},\)"):
            RunningTime().fit(np.zeros((3, 1)), np.ones(3), np.ones(n, dtype=bool))


def test_features_of_another_number_are_refused() -> None:
    X = np.random.default_rng(0).random((20, 3))
    for model in (
        Feasibility(random_state=0).fit(X, X[:, 0] > 0.5),
        RunningTime().fit(X, X[:, 0]),
    ):
        with pytest.raises(ValueError, match="X must have 3 columns, got 2"):
            model.predict(X[:, :2])


def test_success_is_a_mask() -> None:
    X = np.random.default_rng(0).random((20, 3))
    with pytest.raises(ValueError, match="success must be a mask"):
        Feasibility().fit(X, np.arange(20))  # type: ignore[arg-type]


def test_bounds_may_be_a_list() -> None:
    X = np.random.default_rng(0).random((20, 3))
    bounds = X[:, 1] > 0.5
    masks: tuple[Any, ...] = bounds, bounds.tolist()
    first, second = (RunningTime().fit(X, X[:, 0], mask).predict(X)[0] for mask in masks)
    np.testing.assert_array_equal(first, second)
