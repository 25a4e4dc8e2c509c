"""Doubt that grows with the distance from the observations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from automl_plugins.surrogates import DistanceAware, QuantileBoosting, RandomForest
from automl_plugins.surrogates.distance_aware import gaps_to, typical_gap

X = np.random.default_rng(0).random((30, 3))
Y = X[:, 0] - X[:, 1] ** 2
FAR = np.full((1, 3), 9.0)


class Flat:
    random_state = None

    def fit(self, X: Any, y: Any) -> Any:
        return self

    def predict(self, X: Any) -> Any:
        return np.zeros(len(X)), np.zeros(len(X))


def test_the_mean_is_the_surrogates_and_the_doubt_is_added_in_squares() -> None:
    plain = RandomForest(random_state=1).fit(X, Y)
    aware = DistanceAware(RandomForest(), strength=0.5, random_state=1).fit(X, Y)
    (mean, std), (aware_mean, aware_std) = plain.predict(FAR), aware.predict(FAR)
    assert aware_mean == pytest.approx(mean)
    assert aware_std[0] ** 2 == pytest.approx(std[0] ** 2 + (0.5 * Y.std()) ** 2)
    assert aware.predict(X)[1] == pytest.approx(plain.predict(X)[1], abs=1e-6)


def test_the_doubt_is_full_at_the_median_gap_between_neighbours() -> None:
    points = np.array([[0.0], [0.1], [0.4], [1.0]])  # gaps 0.1, 0.1, 0.3, 0.6
    model = DistanceAware(Flat(), strength=2.0).fit(points, np.array([-1.0, 1.0, -1.0, 1.0]))
    assert model.scale_ == pytest.approx(0.2)
    _, std = model.predict(np.array([[0.4], [0.45], [0.5], [0.6], [0.7], [9.0]]))
    np.testing.assert_allclose(std, [0.0, 0.5, 1.0, 2.0, 2.0, 2.0], atol=1e-7)


def test_inactive_features_are_a_distance() -> None:
    points = np.array([[0.5, np.nan], [0.5, 0.5]])
    aware = DistanceAware(QuantileBoosting(), random_state=0).fit(points[:1], np.zeros(1))
    aware.spread_ = 1.0
    _, std = aware.predict(points)
    assert std[0] == 0.0 < std[1]


def test_gaps_against_brute_force() -> None:
    a, b = X[:7], X[7:18]
    brute = np.linalg.norm(a[:, None] - b[None], axis=2)
    assert gaps_to(b, a) == pytest.approx(brute.min(axis=1), abs=1e-7)
    assert (gaps_to(a * 1e8, a * 1e8) >= 0).all()
    assert typical_gap(a[:1]) == typical_gap(a[[0, 0]]) == 1.0


def test_points_that_were_all_observed_twice_have_no_gap() -> None:
    for seed in range(50):  # in some of the draws distances of 0 are 1e-8 by rounding
        points = np.random.default_rng(seed).random((20, 10))
        assert typical_gap(np.repeat(points, 2, axis=0)) == 1.0


def test_the_floor_and_the_scale_of_the_targets() -> None:
    std = DistanceAware(QuantileBoosting(), floor=0.2, random_state=0).fit(X, Y).predict(X)[1]
    assert std.min() >= 0.2 * Y.std()
    larger = DistanceAware(QuantileBoosting(), floor=0.2, random_state=0).fit(X, 8 * Y).predict(X)
    assert larger[1] == pytest.approx(8 * std, rel=1e-4)


def test_evaluations_under_way_count_with_a_typical_outcome() -> None:
    aware = DistanceAware(RandomForest(), random_state=1).fit(X, Y)
    pending = np.full((1, 3), 2.0)
    before = aware.predict(pending)
    supposed = RandomForest(random_state=1)
    supposed.fit(np.vstack([X, pending]), np.append(Y, np.median(Y)))
    found, expected = aware.beside(pending).predict(pending), supposed.predict(pending)
    np.testing.assert_allclose(found, expected, atol=1e-6)  # and there is no doubt
    # The model itself is unchanged, and so are its scales
    np.testing.assert_array_equal(aware.predict(pending), before)
    doubts = [
        model.predict(FAR)[1] ** 2 - model.surrogate_.predict(FAR)[1] ** 2
        for model in (aware, aware.beside(pending))
    ]
    assert doubts[0] == pytest.approx(doubts[1])


def test_many_observations_are_not_fitted_again_for_one_proposal() -> None:
    many = np.random.default_rng(0).random((256, 2))
    aware = DistanceAware(RandomForest(n_trees=2), random_state=1).fit(many, many.sum(axis=1))
    pending = np.full((1, 2), 2.0)
    seen = aware.beside(pending)
    assert seen.surrogate_ is aware.surrogate_
    assert seen.predict(pending)[1][0] < aware.predict(pending)[1][0]


def test_doubt_is_taken_from_the_best_rows() -> None:
    points = np.linspace(0.0, 1.0, 40)[:, None]
    _, std = DistanceAware(Flat(), max_rows=5).fit(points, points[:, 0]).predict(points)
    assert (std[:5] < 1e-6).all() and (std[5:] > 0.01).all()


def test_what_is_held_out_is_that_of_the_surrogate() -> None:
    aware = DistanceAware(QuantileBoosting(), random_state=1).fit(X, Y)
    plain = QuantileBoosting(random_state=1).fit(X, Y)
    np.testing.assert_array_equal(aware.held_out(), plain.held_out())
    np.testing.assert_array_equal(DistanceAware(Flat()).fit(X, Y).held_out(), np.full(30, np.nan))


def test_the_surrogate_keeps_its_own_seed() -> None:
    first, again = (DistanceAware(QuantileBoosting(random_state=1)).fit(X, Y) for _ in range(2))
    np.testing.assert_array_equal(first.predict(X), again.predict(X))
    other = DistanceAware(QuantileBoosting(random_state=1), random_state=2).fit(X, Y)
    assert not np.array_equal(first.predict(X), other.predict(X))


@pytest.mark.parametrize("largest", [1e-300, 1e154, 1e300])
def test_the_doubt_is_finite_for_any_size_of_the_targets(largest: float) -> None:
    _, std = DistanceAware(Flat(), strength=0.5).fit(X, largest * Y).predict(FAR)
    assert std[0] == pytest.approx(largest * 0.5 * Y.std())
