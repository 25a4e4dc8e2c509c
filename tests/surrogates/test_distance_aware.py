"""Doubt that grows with the distance from the observations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from automl_plugins.surrogates import DistanceAware, QuantileBoosting, RandomForest
from automl_plugins.surrogates.distance_aware import _squared_distances


def data(n: int = 30) -> tuple[np.ndarray, np.ndarray]:
    X = np.random.default_rng(0).random((n, 3))
    return X, X[:, 0] - X[:, 1] ** 2


def test_the_mean_is_the_surrogates_and_the_doubt_is_added_in_squares() -> None:
    X, y = data()
    plain = RandomForest(random_state=1).fit(X, y)
    aware = DistanceAware(RandomForest(), strength=0.5, random_state=1).fit(X, y)
    far = np.full((1, 3), 9.0)
    mean, std = plain.predict(far)
    aware_mean, aware_std = aware.predict(far)
    assert aware_mean == pytest.approx(mean)
    assert aware_std[0] ** 2 == pytest.approx(std[0] ** 2 + (0.5 * y.std()) ** 2)


def test_no_doubt_is_added_on_an_observation_and_it_grows_away_from_it() -> None:
    X, y = data()
    plain = RandomForest(random_state=1).fit(X, y)
    aware = DistanceAware(RandomForest(), random_state=1).fit(X, y)
    assert aware.predict(X)[1] == pytest.approx(plain.predict(X)[1], abs=1e-6)
    # The median gap between neighbours is where the doubt is full.
    steps = X[0] + np.outer(np.linspace(0.0, 1.0, 5), [0.0, 0.0, -aware.scale_])
    added = np.sqrt(aware.predict(steps)[1] ** 2 - plain.predict(steps)[1] ** 2 + 1e-15)
    assert added[0] < 1e-6 and added.max() <= 0.6 * y.std() + 1e-6


def test_inactive_features_are_a_distance() -> None:
    X = np.array([[0.5, np.nan], [0.5, 0.5]])
    aware = DistanceAware(QuantileBoosting(), random_state=0).fit(X[:1], np.zeros(1))
    aware.spread_ = 1.0
    _, std = aware.predict(X)
    assert std[0] == 0.0 < std[1]


def test__squared_distances_against_brute_force() -> None:
    a, b = data(7)[0], data(11)[0]
    brute = np.array([[((x - z) ** 2).sum() for z in b] for x in a])
    assert _squared_distances(a, b) == pytest.approx(brute, abs=1e-12)
    assert (_squared_distances(a * 1e8, a * 1e8) >= 0).all()


def test_the_floor_and_the_scale_of_the_targets() -> None:
    X, y = data()
    std = DistanceAware(QuantileBoosting(), floor=0.2, random_state=0).fit(X, y).predict(X)[1]
    assert std.min() >= 0.2 * y.std()
    larger = DistanceAware(QuantileBoosting(), floor=0.2, random_state=0).fit(X, 8 * y).predict(X)
    assert larger[1] == pytest.approx(8 * std, rel=1e-4)


def test_evaluations_under_way_count_with_a_typical_outcome() -> None:
    X, y = data()
    aware = DistanceAware(RandomForest(), random_state=1).fit(X, y)
    pending = np.full((1, 3), 2.0)
    before = aware.predict(pending)
    supposed = RandomForest(random_state=1).fit(
        np.vstack([X, pending]), np.append(y, np.median(y))
    )
    for found, expected in zip(
        aware.beside(pending).predict(pending), supposed.predict(pending), strict=True
    ):
        assert found == pytest.approx(expected, abs=1e-6)  # and there is no doubt
    # The model itself is unchanged, and so are its scales
    np.testing.assert_array_equal(aware.predict(pending), before)
    far = np.full((1, 3), 9.0)
    doubts = [
        model.predict(far)[1] ** 2 - model.surrogate_.predict(far)[1] ** 2
        for model in (aware, aware.beside(pending))
    ]
    assert doubts[0] == pytest.approx(doubts[1])


def test_many_observations_are_not_fitted_again_for_one_proposal() -> None:
    rng = np.random.default_rng(0)
    X = rng.random((256, 2))
    aware = DistanceAware(RandomForest(n_trees=2), random_state=1).fit(X, X.sum(axis=1))
    pending = np.full((1, 2), 2.0)
    seen = aware.beside(pending)
    assert seen.surrogate_ is aware.surrogate_
    assert seen.predict(pending)[1][0] < aware.predict(pending)[1][0]


def test_doubt_is_taken_from_the_best_rows() -> None:
    class Flat:
        random_state = None

        def fit(self, X: Any, y: Any) -> Any:
            return self

        def predict(self, X: Any) -> Any:
            return np.zeros(len(X)), np.zeros(len(X))

    points = np.linspace(0.0, 1.0, 40)[:, None]
    _, std = DistanceAware(Flat(), max_rows=5).fit(points, points[:, 0]).predict(points)
    assert (std[:5] < 1e-6).all() and (std[5:] > 0.01).all()
