"""RandomForest, ExtraTrees and the numeric functions below them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from automl_plugins.arrays import FloatArray
from automl_plugins.surrogates.base import standardise
from automl_plugins.surrogates.random_forest import (
    ExtraTrees,
    RandomForest,
    leaf_statistics,
)

Factory = Callable[..., RandomForest | ExtraTrees]

FACTORIES: dict[str, Factory] = {
    "default": RandomForest,
    "smac": RandomForest.smac,
    "thesis": RandomForest.thesis,
    "extra": lambda **kwargs: ExtraTrees(n_trees=20, **kwargs),
}
every_model = pytest.mark.parametrize("make", FACTORIES.values(), ids=FACTORIES)


def sample(n: int = 60, seed: int = 0, *, missing: bool = False) -> tuple[FloatArray, FloatArray]:
    """Features (n, 4) that span [0, 1] exactly, and noisy losses (n,)."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, 4))
    X[0], X[1] = 0.0, 1.0
    y = np.sin(5.0 * X[:, 0]) + X[:, 1] ** 2 + 0.1 * rng.normal(size=n)
    if missing:
        X[2::5, 1] = np.nan
        X[3::7, 2] = np.nan
    return X, y


def walk(tree: Any, row: FloatArray, *, larger: bool = False) -> int:
    """Follow the decisions of a scikit-learn tree to a leaf; missing values to the larger side."""
    node = 0
    while tree.children_left[node] != -1:
        sides = int(tree.children_left[node]), int(tree.children_right[node])
        value = np.float32(row[tree.feature[node]])
        left = bool(value <= tree.threshold[node])
        if np.isnan(value):
            sizes = tree.n_node_samples[list(sides)]
            left = bool(sizes[0] > sizes[1] if larger else tree.missing_go_to_left[node])
        node = sides[0] if left else sides[1]
    return node


def moments(uncertainty: Any, means: Any, variances: Any) -> tuple[FloatArray, FloatArray]:
    """Of trees (B) that each have a leaf for each query (m)."""
    model = RandomForest(uncertainty=uncertainty, variance_floor=0.0)
    model.leaf_means_, model.leaf_variances_ = list(np.array(means)), list(np.array(variances))
    return model._moments([np.arange(len(means[0]))] * len(means))


def test_moments_and_statistics_by_hand() -> None:
    mean, variance = moments("tree", [[1.0, 2.0], [3.0, 2.0]], [[9.0, 9.0], [9.0, 9.0]])
    np.testing.assert_array_equal([mean, variance], [[2.0, 2.0], [1.0, 0.0]])
    # (0.5 + 1 + 1.5 + 9) / 2 - 2^2 = 2
    found = moments("leaf", [[1.0], [3.0]], [[0.5], [1.5]])
    np.testing.assert_allclose(found, [[2.0], [2.0]])
    _, variance = moments("leaf", np.full((10, 1), 1e9), np.full((10, 1), 1e-6))
    np.testing.assert_allclose(variance, [1e-6], rtol=1e-12)  # nothing cancels
    found = leaf_statistics(np.array([1, 1, 2, 1]), np.array([0.0, 3.0, 5.0, 3.0]), 4)
    np.testing.assert_allclose(found, [[0.0, 2.0, 5.0, 0.0], [0.0, 2.0, 0.0, 0.0]])


def test_one_tree_by_hand() -> None:
    X = np.array([[0.0], [0.0], [1.0], [1.0]])
    y = np.array([0.0, 2.0, 10.0, 12.0])  # variance 26; within each leaf 1
    model = RandomForest(n_trees=1, bootstrap=False, random_state=0)
    mean, std = model.fit(X, y).predict(np.array([[0.2], [0.9], [-3.0]]))
    # Thresholds are random, but 0.2 and 0.9 lie on one side or the other of any of them.
    assert set(np.round(mean, 12)) <= {1.0, 11.0}
    assert mean[2] == pytest.approx(1.0)
    np.testing.assert_allclose(std, 1.0)
    floored = RandomForest(n_trees=1, bootstrap=False, variance_floor=0.5, random_state=0)
    np.testing.assert_allclose(floored.fit(X, y).predict(X)[1], np.sqrt(0.5 * 26.0))


@pytest.mark.parametrize("magnitude", [10.0**k for k in range(-300, 301, 100)])
def test_standardised_at_every_magnitude(magnitude: float) -> None:
    y = magnitude * np.array([-1.0, 3.0, 0.5, 7.0])
    z, centre, scale = standardise(y)
    assert (z.mean(), z.std()) == pytest.approx((0.0, 1.0), abs=1e-15)
    np.testing.assert_allclose(centre + scale * z, y, rtol=1e-14)
    z, centre, scale = standardise(np.full(3, magnitude))
    assert not z.any() and (centre, scale) == (magnitude, 1.0)


@pytest.mark.parametrize("splitter", ["random", "best"])
@pytest.mark.parametrize("missing", [False, True])
def test_leaf_level_prediction_by_walking_the_trees(splitter: Any, missing: bool) -> None:
    X, y = sample(40, missing=missing)
    Q, _ = sample(20, seed=1, missing=True)
    model = RandomForest(
        n_trees=4, min_samples_split=9, splitter=splitter, bootstrap=False, random_state=3
    ).fit(X, y)
    mean, std = model.predict(Q)
    for i, query in enumerate(Q):
        mu, s2 = np.empty(4), np.empty(4)
        for b, tree in enumerate(model.trees_):
            leaf = walk(tree, query)
            inside = [y_k for x_k, y_k in zip(X, y, strict=True) if walk(tree, x_k) == leaf]
            mu[b], s2[b] = np.mean(inside), max(np.var(inside), 0.01 * np.var(y))
        assert mean[i] == pytest.approx(np.mean(mu))  # eq. 3.1
        assert std[i] ** 2 == pytest.approx(np.mean(s2 + mu**2) - np.mean(mu) ** 2)  # eq. 3.2


@every_model
@pytest.mark.parametrize("missing", [False, True])
def test_leaf_statistics_are_those_scikit_learn_has_grown(make: Factory, missing: bool) -> None:
    model = make(random_state=0).fit(*sample(missing=missing))
    for tree, *found in zip(model.trees_, model.leaf_means_, model.leaf_variances_, strict=True):
        leaf = tree.children_left == -1
        np.testing.assert_allclose(found[0][leaf], tree.value[leaf, 0, 0], atol=1e-12)
        np.testing.assert_allclose(found[1][leaf], tree.impurity[leaf], atol=1e-12)


@every_model
def test_tree_level_uncertainty_is_the_spread_of_the_trees(make: Factory) -> None:
    X, y = sample()
    model = make(random_state=0)
    if isinstance(model, RandomForest):
        leaf_level = clone(model).fit(X, y).predict(X)
        model.set_params(uncertainty="tree")
    mean, std = model.fit(X, y).predict(X)
    z = np.array([[tree.value[walk(tree, row), 0, 0] for row in X] for tree in model.trees_])
    predictions = y.mean() + y.std() * z
    np.testing.assert_allclose(mean, predictions.mean(axis=0))
    np.testing.assert_allclose(std, predictions.std(axis=0), atol=1e-12)
    if make is RandomForest.thesis:  # leaf level adds the variance within the leaves
        np.testing.assert_array_equal(leaf_level[0], mean)
        assert (leaf_level[1] ** 2 - std**2 >= 0.01 * y.var() - 1e-12).all()


def test_settings() -> None:
    defaults = RandomForest().get_params()
    assert defaults == {
        "n_trees": 10,
        "max_features": 1.0,
        "min_samples_split": 2,
        "min_samples_leaf": 1,
        "splitter": "random",
        "bootstrap": True,
        "uncertainty": "leaf",
        "variance_floor": 0.01,
        "random_state": None,
    }
    smac = {"uncertainty": "tree", "random_state": 1}
    thesis = {"max_features": 5 / 6, "min_samples_split": 10, "splitter": "best"}
    assert RandomForest.smac(random_state=1).get_params() == {**defaults, **smac}
    assert RandomForest.thesis().get_params() == {**defaults, **thesis}
    assert ExtraTrees().get_params() == {"n_trees": 100, "max_leaves": 64, "random_state": None}


@pytest.mark.parametrize(
    ("ratio", "n_features", "eligible"),
    [(5 / 6, 1, 1), (5 / 6, 6, 5), (5 / 6, 7, 6), (5 / 6, 12, 10), (0.07, 100, 7), (1e-12, 5, 1)],
)
def test_eligible_columns_are_rounded_up(ratio: float, n_features: int, eligible: int) -> None:
    model = RandomForest(n_trees=1, max_features=ratio)
    assert model._new_tree(n_features, seed=0).max_features == eligible


def test_how_far_trees_grow_and_on_which_rows() -> None:
    X, y = sample(200)
    for tree in RandomForest.thesis(random_state=0).fit(X, y).trees_:
        assert tree.n_node_samples[0] == 200
        assert tree.n_node_samples[tree.children_left != -1].min() >= 10
    leaves = [tree.n_leaves for tree in ExtraTrees(random_state=0).fit(X, y).trees_]
    assert (len(leaves), max(leaves)) == (100, 64)
    model = RandomForest(random_state=0).fit(X, y)
    assert len({float(tree.value[0, 0, 0]) for tree in model.trees_}) == model.n_trees
    whole = RandomForest(bootstrap=False, random_state=0).fit(X, y)
    assert [float(tree.value[0, 0, 0]) for tree in whole.trees_] == pytest.approx([0.0] * 10)
    mean, std = whole.predict(X)  # grown out, a tree on all rows interpolates
    np.testing.assert_allclose(mean, y)
    np.testing.assert_allclose(std, 0.1 * y.std())  # the floor


@every_model
@pytest.mark.parametrize("scale", [2.0**-40, 2.0**40])
def test_scaling_losses_scales_mean_and_std(make: Factory, scale: float) -> None:
    X, y = sample(missing=True)
    expected = scale * np.array(make(random_state=0).fit(X, y).predict(X))
    scaled = make(random_state=0).fit(X, scale * y).predict(X)
    np.testing.assert_array_equal(scaled, expected)


@pytest.mark.parametrize(
    "make",
    [RandomForest.thesis, FACTORIES["extra"], partial(RandomForest, bootstrap=False)],
    ids=["thesis", "extra", "all rows"],
)
@pytest.mark.parametrize(("scale", "shift"), [(1e12, 0.0), (0.1, -7.0), (1.0, 1e6)])
def test_affine_map_of_losses_with_rounding(make: Factory, scale: float, shift: float) -> None:
    # One column only: all splits of a node's last two rows are equally good, and in the choice
    # between columns rounding would decide. Repeated rows in grown trees are as delicate.
    X, y = sample()
    X = X[:, :1]
    mean, std = make(random_state=0).fit(X, y).predict(X)
    mapped_mean, mapped_std = make(random_state=0).fit(X, scale * y + shift).predict(X)
    np.testing.assert_allclose((mapped_mean - shift) / scale, mean, atol=1e-8)
    np.testing.assert_allclose(mapped_std / scale, std, atol=1e-8)


@every_model
@pytest.mark.parametrize("scale", [1e-12, 2.0**-20, 1e100])
def test_features_may_have_any_scale(make: Factory, scale: float) -> None:
    X, y = sample(missing=True)
    expected = make(random_state=0).fit(X, y).predict(X)
    actual = make(random_state=0).fit(scale * X, y).predict(scale * X)
    np.testing.assert_allclose(actual, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("make", [FACTORIES["extra"], partial(RandomForest, bootstrap=False)])
def test_order_of_rows_does_not_matter_without_bootstrap(make: Factory) -> None:
    X, y = sample()
    order = np.random.default_rng(1).permutation(len(X))
    expected = make(random_state=0).fit(X, y).predict(X)
    actual = make(random_state=0).fit(X[order], y[order]).predict(X)
    np.testing.assert_allclose(actual, expected, atol=1e-12)


@every_model
def test_predictions_follow_the_losses_and_stay_between_them(make: Factory) -> None:
    X, y = sample(200)
    Q, y_query = sample(200, seed=1)
    model = make(random_state=0).fit(X, y)
    assert np.corrcoef(model.predict(Q)[0], y_query)[0, 1] > 0.9
    mean, std = model.predict(10.0 * np.random.default_rng(2).normal(size=(500, 4)))
    assert y.min() - 1e-12 <= mean.min() and mean.max() <= y.max() + 1e-12
    assert (std >= 0.0).all()
    far = np.array([[-1e300] * 4, [1e300] * 4])  # acts like the ends of the range
    np.testing.assert_array_equal(model.predict(far), model.predict(X[:2]))
    y[7] = 1e200
    assert np.isfinite(make(random_state=0).fit(X, y).predict(X)).all()


@every_model
@pytest.mark.parametrize("n", [1, 2, 30])
def test_constant_losses(make: Factory, n: int) -> None:
    X = np.random.default_rng(0).random((n, 3))
    model = make(random_state=0).fit(X, np.full(n, 0.1))
    mean, std = model.predict(np.vstack([X, [[np.nan, 5.0, -5.0]]]))
    np.testing.assert_array_equal(mean, 0.1)
    leaf_level = isinstance(model, RandomForest) and model.uncertainty == "leaf"
    np.testing.assert_allclose(std, 0.1 if leaf_level else 0.0)


@every_model
def test_a_value_missing_only_at_prediction_follows_the_larger_side(make: Factory) -> None:
    X, y = sample()
    model = make(random_state=0).fit(X, y)
    query = np.array([np.nan, 0.3, 0.3, 0.3])
    trees = zip(model.trees_, model.leaf_means_, strict=True)
    means = [values[walk(tree, query, larger=True)] for tree, values in trees]
    mean, _ = model.predict(query[None])
    np.testing.assert_allclose(mean, y.mean() + y.std() * np.mean(means))


@every_model
def test_missing_values_are_informative(make: Factory) -> None:
    X = np.random.default_rng(0).random((80, 2))
    X[::2, 1] = np.nan
    y = np.where(np.isnan(X[:, 1]), 1.0, 0.0)
    mean, _ = make(random_state=0).fit(X, y).predict(np.array([[0.5, np.nan], [0.5, 0.5]]))
    assert mean[1] < 0.2 < 0.8 < mean[0]
    # A present value beyond the range of training is not taken for a missing one
    X = np.where(np.isnan(X[:, 1:]), np.nan, 0.3)
    mean, _ = make(random_state=0).fit(X, y).predict(np.array([[-9.0], [0.3], [9.0], [np.nan]]))
    # Random splits leave some trees unsplit, hence no exact values.
    np.testing.assert_array_equal(mean[:3], mean[1])
    assert mean[3] - mean[1] > 0.3
    # Where all values were missing, one that is present changes nothing
    X, y = sample()
    X[:, 2] = np.nan
    model, present = make(random_state=0).fit(X, y), X.copy()
    present[:, 2] = np.linspace(-1.0, 2.0, len(X))
    np.testing.assert_array_equal(model.predict(present), model.predict(X))


def test_duplicates_are_averaged() -> None:
    X = np.repeat([[0.0], [1.0]], 3, axis=0)
    y = np.array([1.0, 2.0, 3.0, 7.0, 8.0, 9.0])
    mean, std = RandomForest(bootstrap=False, random_state=0).fit(X, y).predict(X[[0, 5]])
    np.testing.assert_allclose([mean, std], [[2.0, 8.0], [np.sqrt(2.0 / 3.0)] * 2])
