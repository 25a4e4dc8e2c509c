"""RandomForest, ExtraTrees and the numeric functions below them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from automl_plugins.surrogates.base import FloatArray, standardise
from automl_plugins.surrogates.random_forest import (
    ExtraTrees,
    RandomForest,
    leaf_level_moments,
    leaf_statistics,
    tree_level_moments,
)

Model = RandomForest | ExtraTrees
Factory = Callable[..., Model]

FACTORIES: dict[str, Factory] = {
    "default": RandomForest,
    "smac": RandomForest.smac,
    "thesis": RandomForest.thesis,
    "extra": lambda **kwargs: ExtraTrees(n_trees=20, **kwargs),
}
every_model = pytest.mark.parametrize("make", FACTORIES.values(), ids=FACTORIES)


def sample(n: int = 60, seed: int = 0, *, missing: bool = False) -> tuple[FloatArray, FloatArray]:
    """Return features (n, 4) that span [0, 1] exactly, and noisy losses (n,)."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, 4))
    X[0], X[1] = 0.0, 1.0
    y = np.sin(5.0 * X[:, 0]) + X[:, 1] ** 2 + 0.1 * rng.normal(size=n)
    if missing:
        X[2::5, 1] = np.nan
        X[3::7, 2] = np.nan
    return X, y


def walk(tree: Any, row: FloatArray) -> int:
    """Follow the decisions of a scikit-learn tree from the root to a leaf."""
    node = 0
    while tree.children_left[node] != -1:
        value = np.float32(row[tree.feature[node]])
        if np.isnan(value):
            left = bool(tree.missing_go_to_left[node])
        else:
            left = bool(value <= tree.threshold[node])
        node = int((tree.children_left if left else tree.children_right)[node])
    return node


# Hand-computed values


def test_tree_level_moments_by_hand() -> None:
    mean, variance = tree_level_moments(np.array([[1.0, 2.0], [3.0, 2.0]]))
    np.testing.assert_array_equal(mean, [2.0, 2.0])
    np.testing.assert_array_equal(variance, [1.0, 0.0])


def test_leaf_level_moments_by_hand() -> None:
    # (0.5 + 1 + 1.5 + 9) / 2 - 2^2 = 2
    mean, variance = leaf_level_moments(np.array([[1.0], [3.0]]), np.array([[0.5], [1.5]]))
    np.testing.assert_allclose(mean, [2.0])
    np.testing.assert_allclose(variance, [2.0])


def test_leaf_level_variance_does_not_cancel_for_large_means() -> None:
    means = np.full((10, 1), 1e9)
    _, variance = leaf_level_moments(means, np.full((10, 1), 1e-6))
    np.testing.assert_allclose(variance, [1e-6], rtol=1e-12)


def test_leaf_statistics_by_hand() -> None:
    leaves = np.array([1, 1, 2, 1])
    means, variances = leaf_statistics(leaves, np.array([0.0, 3.0, 5.0, 3.0]), 4)
    np.testing.assert_allclose(means, [0.0, 2.0, 5.0, 0.0])
    np.testing.assert_allclose(variances, [0.0, 2.0, 0.0, 0.0])


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


@pytest.mark.parametrize("magnitude", [10.0**k for k in range(-300, 301, 50)])
def test_standardised_at_every_magnitude(magnitude: float) -> None:
    y = magnitude * np.array([-1.0, 3.0, 0.5, 7.0])
    z, centre, scale = standardise(y)
    assert z.mean() == pytest.approx(0.0, abs=1e-15)
    assert z.std() == pytest.approx(1.0)
    np.testing.assert_allclose(centre + scale * z, y, rtol=1e-14)


@pytest.mark.parametrize("value", [0.0, 0.1, -1e300, 1e-300])
def test_standardised_constant(value: float) -> None:
    z, centre, scale = standardise(np.full(3, value))
    np.testing.assert_array_equal(z, np.zeros(3))
    assert (centre, scale) == (value, 1.0)


# Independent implementation


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
    for tree, means, variances in zip(
        model.trees_, model.leaf_means_, model.leaf_variances_, strict=True
    ):
        leaf = tree.children_left == -1
        np.testing.assert_allclose(means[leaf], tree.value[leaf, 0, 0], atol=1e-12)
        np.testing.assert_allclose(variances[leaf], tree.impurity[leaf], atol=1e-12)


@every_model
def test_tree_level_uncertainty_is_the_spread_of_the_trees(make: Factory) -> None:
    X, y = sample()
    model = make(random_state=0)
    if isinstance(model, RandomForest):
        model.set_params(uncertainty="tree")
    mean, std = model.fit(X, y).predict(X)
    z = np.array([[tree.value[walk(tree, row), 0, 0] for row in X] for tree in model.trees_])
    predictions = y.mean() + y.std() * z
    np.testing.assert_allclose(mean, predictions.mean(axis=0))
    np.testing.assert_allclose(std, predictions.std(axis=0), atol=1e-12)


def test_leaf_level_adds_the_variance_within_leaves() -> None:
    X, y = sample()
    leaf = RandomForest.thesis(random_state=0).fit(X, y)
    tree = clone(leaf).set_params(uncertainty="tree").fit(X, y)
    np.testing.assert_array_equal(leaf.predict(X)[0], tree.predict(X)[0])
    within = leaf.predict(X)[1] ** 2 - tree.predict(X)[1] ** 2
    assert (within >= 0.01 * y.var() - 1e-12).all()


# Settings


def test_settings() -> None:
    defaults = {
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
    thesis = {"max_features": 5 / 6, "min_samples_split": 10, "splitter": "best"}
    assert RandomForest().get_params() == defaults
    assert RandomForest.smac(random_state=1).get_params() == {
        **defaults,
        "uncertainty": "tree",
        "random_state": 1,
    }
    assert RandomForest.thesis().get_params() == {**defaults, **thesis}
    assert ExtraTrees().get_params() == {"n_trees": 100, "max_leaves": 64, "random_state": None}


@pytest.mark.parametrize(
    ("ratio", "n_features", "eligible"),
    [(5 / 6, 1, 1), (5 / 6, 6, 5), (5 / 6, 7, 6), (5 / 6, 12, 10), (0.07, 100, 7), (1e-12, 5, 1)],
)
def test_eligible_columns_are_rounded_up(ratio: float, n_features: int, eligible: int) -> None:
    model = RandomForest(n_trees=1, max_features=ratio)
    assert model._new_tree(n_features, seed=0).max_features == eligible


def test_thesis_forest_splits_no_node_below_ten_rows() -> None:
    X, y = sample(100)
    for tree in RandomForest.thesis(random_state=0).fit(X, y).trees_:
        assert tree.n_node_samples[0] == 100
        assert tree.n_node_samples[tree.children_left != -1].min() >= 10


def test_extra_trees_have_at_most_max_leaves() -> None:
    X, y = sample(200)
    leaves = [tree.n_leaves for tree in ExtraTrees(random_state=0).fit(X, y).trees_]
    assert len(leaves) == 100
    assert max(leaves) == 64


def test_bootstrap_draws_differ_between_trees() -> None:
    X, y = sample()
    model = RandomForest(random_state=0).fit(X, y)
    assert len({float(tree.value[0, 0, 0]) for tree in model.trees_}) == model.n_trees
    whole = RandomForest(bootstrap=False, random_state=0).fit(X, y)
    for tree in whole.trees_:
        assert tree.value[0, 0, 0] == pytest.approx(0.0, abs=1e-12)


# Invariants


@every_model
@pytest.mark.parametrize("scale", [2.0**-40, 2.0**40])
def test_scaling_losses_scales_mean_and_std(make: Factory, scale: float) -> None:
    X, y = sample(missing=True)
    mean, std = make(random_state=0).fit(X, y).predict(X)
    scaled_mean, scaled_std = make(random_state=0).fit(X, scale * y).predict(X)
    np.testing.assert_array_equal(scaled_mean, scale * mean)
    np.testing.assert_array_equal(scaled_std, scale * std)


@pytest.mark.parametrize(
    "make",
    [RandomForest.thesis, FACTORIES["extra"], partial(RandomForest, bootstrap=False)],
    ids=["thesis", "extra", "all rows"],
)
@pytest.mark.parametrize(("scale", "shift"), [(1e-12, 0.0), (1e12, 0.0), (0.1, -7.0), (1.0, 1e6)])
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
@pytest.mark.parametrize("scale", [1e-12, 2.0**-20, 1e12, 1e100])
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
def test_mean_stays_between_the_losses_and_std_is_not_negative(make: Factory) -> None:
    X, y = sample(missing=True)
    queries = 10.0 * np.random.default_rng(2).normal(size=(500, 4))
    mean, std = make(random_state=0).fit(X, y).predict(queries)
    assert mean.shape == std.shape == (500,)
    assert mean.dtype == std.dtype == np.float64
    assert (mean >= y.min() - 1e-12).all()
    assert (mean <= y.max() + 1e-12).all()
    assert (std >= 0.0).all()


@every_model
def test_predictions_follow_the_losses(make: Factory) -> None:
    X, y = sample(200)
    Q, y_query = sample(200, seed=1)
    mean, _ = make(random_state=0).fit(X, y).predict(Q)
    assert np.corrcoef(mean, y_query)[0, 1] > 0.9


def test_grown_tree_on_all_rows_interpolates() -> None:
    X, y = sample()
    mean, std = RandomForest(bootstrap=False, random_state=0).fit(X, y).predict(X)
    np.testing.assert_allclose(mean, y)
    np.testing.assert_allclose(std, 0.1 * y.std())  # the floor


# Edges


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
def test_column_of_nothing_but_missing_values_changes_nothing_at_prediction(make: Factory) -> None:
    X, y = sample()
    X[:, 2] = np.nan
    model = make(random_state=0).fit(X, y)
    present = X.copy()
    present[:, 2] = np.linspace(-1.0, 2.0, len(X))
    np.testing.assert_array_equal(model.predict(present), model.predict(X))


@every_model
def test_value_missing_only_at_prediction_follows_the_larger_side(make: Factory) -> None:
    X, y = sample()
    model = make(random_state=0).fit(X, y)
    query = np.array([[np.nan, 0.3, 0.3, 0.3]])
    means = []
    for tree, values in zip(model.trees_, model.leaf_means_, strict=True):
        node = 0
        while tree.children_left[node] != -1:
            left, right = tree.children_left[node], tree.children_right[node]
            value = np.float32(query[0, tree.feature[node]])
            larger_is_left = tree.n_node_samples[left] > tree.n_node_samples[right]
            goes_left = larger_is_left if np.isnan(value) else value <= tree.threshold[node]
            node = left if goes_left else right
        means.append(values[node])
    mean, _ = model.predict(query)
    np.testing.assert_allclose(mean, y.mean() + y.std() * np.mean(means))


@every_model
def test_missing_values_are_informative(make: Factory) -> None:
    X = np.random.default_rng(0).random((80, 2))
    X[::2, 1] = np.nan
    y = np.where(np.isnan(X[:, 1]), 1.0, 0.0)
    mean, _ = make(random_state=0).fit(X, y).predict(np.array([[0.5, np.nan], [0.5, 0.5]]))
    assert mean[0] > 0.8
    assert mean[1] < 0.2


@every_model
def test_present_value_beyond_the_range_is_not_taken_for_a_missing_one(make: Factory) -> None:
    X = np.full((40, 1), 0.3)
    X[::2] = np.nan
    y = np.where(np.isnan(X[:, 0]), 1.0, 0.0)
    mean, _ = make(random_state=0).fit(X, y).predict(np.array([[-9.0], [0.3], [9.0], [np.nan]]))
    # Random splits leave some trees unsplit, hence no exact values.
    np.testing.assert_array_equal(mean[:3], mean[1])
    assert mean[3] - mean[1] > 0.3


@every_model
def test_values_beyond_the_range_act_like_its_ends(make: Factory) -> None:
    X, y = sample()
    model = make(random_state=0).fit(X, y)
    far = np.array([[-1e300] * 4, [1e300] * 4])
    np.testing.assert_array_equal(model.predict(far), model.predict(X[:2]))


def test_duplicates_are_averaged() -> None:
    X = np.repeat([[0.0], [1.0]], 3, axis=0)
    y = np.array([1.0, 2.0, 3.0, 7.0, 8.0, 9.0])
    mean, std = RandomForest(bootstrap=False, random_state=0).fit(X, y).predict(X[[0, 5]])
    np.testing.assert_allclose(mean, [2.0, 8.0])
    np.testing.assert_allclose(std, np.sqrt(2.0 / 3.0))


@every_model
def test_one_outlier_of_any_size_stays_finite(make: Factory) -> None:
    X, y = sample()
    y[7] = 1e200
    mean, std = make(random_state=0).fit(X, y).predict(X)
    assert np.isfinite(mean).all()
    assert np.isfinite(std).all()
