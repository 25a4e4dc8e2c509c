"""QuantileBoosting: quantiles of groups by counting, small data, and what it refuses."""

from __future__ import annotations

from typing import get_args

import lightgbm
import numpy as np
import pytest

from automl_plugins.surrogates.base import FloatArray
from automl_plugins.surrogates.quantile_boosting import SMALL_DATA, Form, QuantileBoosting, boost

FORMS: tuple[Form, ...] = get_args(Form)
every_form = pytest.mark.parametrize("form", FORMS)
GROUPS = np.arange(4.0)[:, None]


def sample(n: int = 60, seed: int = 0, noise: float = 0.1) -> tuple[FloatArray, FloatArray]:
    """Return features (n, 3), of which the last does not matter, and noisy losses (n,)."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, 3))
    return X, np.sin(4.0 * X[:, 0]) + X[:, 1] ** 2 + noise * rng.normal(size=n)


def groups(rows: int = 100) -> tuple[FloatArray, FloatArray]:
    """Return four configurations (4 rows, 1), evaluated often, with skewed, unequal noise."""
    rng = np.random.default_rng(0)
    X = np.repeat(GROUPS, rows, axis=0)
    return X, X[:, 0] + (1.0 + X[:, 0]) * rng.exponential(size=len(X))


def counted(X: FloatArray, y: FloatArray, alpha: float) -> FloatArray:
    """Quantile of each group: what minimises the quantile loss when every group is a leaf."""
    return np.array([np.quantile(y[X[:, 0] == g], alpha) for g in GROUPS[:, 0]])


# Against counting


@pytest.mark.parametrize("alpha", [0.1, 0.3, 0.5, 0.9])
def test_bound_is_the_quantile_of_each_group(alpha: float) -> None:
    X, y = groups()
    mean, std = QuantileBoosting(form="bound", alpha=alpha).fit(X, y).predict(GROUPS)
    # Between two order statistics any value minimises the loss: 2 of 100 ranks of tolerance
    assert (mean >= counted(X, y, alpha - 0.02)).all()
    assert (mean <= counted(X, y, alpha + 0.02)).all()
    np.testing.assert_array_equal(std, np.zeros(4))


def test_three_quantiles_of_each_group() -> None:
    X, y = groups()
    mean, std = QuantileBoosting(form="three_quantile").fit(X, y).predict(GROUPS)
    np.testing.assert_allclose(mean, counted(X, y, 0.5), rtol=0.05)
    # Thesis eq. 5.1
    np.testing.assert_allclose(std, (counted(X, y, 0.84) - counted(X, y, 0.16)) / 2.0, rtol=0.05)


def test_three_quantiles_of_normal_noise_are_its_standard_deviation() -> None:
    rng = np.random.default_rng(0)
    X = np.repeat(GROUPS, 500, axis=0)
    y = 10.0 * X[:, 0] + (0.5 + X[:, 0]) * rng.normal(size=len(X))
    mean, std = QuantileBoosting(form="three_quantile", n_trees=100).fit(X, y).predict(GROUPS)
    np.testing.assert_allclose(mean, 10.0 * GROUPS[:, 0], atol=0.4)
    np.testing.assert_allclose(std, 0.5 + GROUPS[:, 0], rtol=0.1)


@pytest.mark.parametrize("alpha", [0.1, 0.3, 0.9])
def test_bound_covers_fresh_losses(alpha: float) -> None:
    X, y = sample(600, noise=0.5)
    fresh, losses = sample(3000, seed=1, noise=0.5)
    model = QuantileBoosting(form="bound", alpha=alpha, min_leaf_rows=30)
    assert (losses < model.fit(X, y).predict(fresh)[0]).mean() == pytest.approx(alpha, abs=0.08)


def test_bound_rises_with_alpha() -> None:
    X, y = sample(200, noise=0.5)
    levels = [
        QuantileBoosting(form="bound", alpha=alpha).fit(X, y).predict(X)[0].mean()
        for alpha in (0.1, 0.3, 0.5, 0.7, 0.9)
    ]
    assert levels == sorted(levels)
    assert levels[0] < y.mean() < levels[-1]


def test_ensemble_is_the_mean_and_spread_of_its_models() -> None:
    X, y = sample()
    model = QuantileBoosting(n_models=4, random_state=0).fit(X, y)
    assert len(model.models_) == 4
    by_model = np.array([booster.predict(X) for booster in model.models_])
    by_model = model.centre_ + model.scale_ * by_model
    mean, std = model.predict(X)
    np.testing.assert_allclose(mean, by_model.mean(axis=0))
    np.testing.assert_allclose(std, by_model.std(axis=0))
    assert (std > 0).mean() > 0.9
    assert (QuantileBoosting(n_models=1, random_state=0).fit(X, y).predict(X)[1] == 0).all()


@pytest.mark.parametrize("alpha", [0.1, 0.3, 0.5])
def test_ensemble_is_the_bootstrap_of_a_quantile(alpha: float) -> None:
    # One configuration, evaluated often: nothing to split, each model is a resampled quantile.
    rng = np.random.default_rng(0)
    X, y = np.zeros((100, 1)), rng.normal(size=100)
    model = QuantileBoosting(alpha=alpha, n_models=400, n_trees=1, random_state=0)
    mean, std = model.fit(X, y).predict(X[:1])
    resampled = [np.quantile(rng.choice(y, 100), alpha) for _ in range(4000)]
    assert mean[0] == pytest.approx(np.mean(resampled), abs=0.06)
    assert std[0] == pytest.approx(np.std(resampled), rel=0.2)


def test_prediction_follows_the_loss() -> None:
    X, y = sample(300)
    fresh, losses = sample(300, seed=1, noise=0.0)
    for form in FORMS:
        mean, _ = QuantileBoosting(form=form, random_state=0).fit(X, y).predict(fresh)
        assert np.corrcoef(mean, losses)[0, 1] > 0.9


# Uncertainty


@pytest.mark.parametrize("n", [10, 40, 200])
def test_three_quantiles_are_uncrossed(n: int) -> None:
    X, y = sample(n, noise=1.0)
    model = QuantileBoosting(form="three_quantile", random_state=0).fit(X, y)
    fresh, _ = sample(1000, seed=1)
    low, middle, high = np.sort([booster.predict(fresh) for booster in model.models_], axis=0)
    mean, std = model.predict(fresh)
    np.testing.assert_allclose(mean, model.centre_ + model.scale_ * middle)
    np.testing.assert_allclose(std, model.scale_ * (high - low) / 2.0)
    assert (std >= 0).all()
    assert (std > 0).mean() > 0.95


def test_std_grows_with_the_noise() -> None:
    quiet, loud = (sample(200, noise=noise) for noise in (0.1, 2.0))
    for form in ("three_quantile", "ensemble"):
        model = QuantileBoosting(form=form, random_state=0)
        small, large = (model.fit(X, y).predict(X)[1].mean() for X, y in (quiet, loud))
        assert large > 2.0 * small


# Small data


@every_form
def test_ten_rows_are_told_apart(form: Form) -> None:
    X, y = sample(10)
    mean, _ = QuantileBoosting(form=form, random_state=0).fit(X, y).predict(X)
    assert len(np.unique(mean)) >= 4
    assert np.corrcoef(mean, y)[0, 1] > 0.5
    # The trap: with LightGBM's own minimum of 20 rows in a leaf every prediction is the same.
    trap = lightgbm.train(
        {"objective": "quantile", "alpha": 0.3, "verbosity": -1, "num_threads": 1},
        lightgbm.Dataset(X, y),
        30,
    )
    assert np.ptp(np.asarray(trap.predict(X))) == 0.0


def test_ten_rows_are_told_apart_by_the_thesis_settings() -> None:
    X, y = sample(10)
    assert len(np.unique(QuantileBoosting.thesis().fit(X, y).predict(X)[0])) >= 4


def test_min_leaf_rows_counts_rows() -> None:
    X = np.arange(12.0)[:, None]
    y = np.random.default_rng(0).permutation(np.arange(12.0))
    for rows in (1, 2, 5, 6):
        model = QuantileBoosting(form="bound", n_trees=1, num_leaves=12, min_leaf_rows=rows)
        tree = model.fit(X, y).models_[0]
        leaves = np.bincount(np.asarray(tree.predict(X, pred_leaf=True), dtype=int).ravel())
        assert leaves[leaves > 0].min() >= rows
        assert len(leaves) > 1
    one = QuantileBoosting(form="bound", n_trees=1, min_leaf_rows=7).fit(X, y).predict(X)[0]
    assert np.ptp(one) == 0.0


@every_form
@pytest.mark.parametrize("value", [0.0, 0.1, -1e300, 1e-300])
@pytest.mark.parametrize("n", [1, 2, 30])
def test_constant_losses_are_predicted_exactly(form: Form, value: float, n: int) -> None:
    X, _ = sample(n)
    mean, std = QuantileBoosting(form=form).fit(X, np.full(n, value)).predict(sample(5, 1)[0])
    np.testing.assert_array_equal(mean, np.full(5, value))
    np.testing.assert_array_equal(std, np.zeros(5))


@every_form
def test_two_values(form: Form) -> None:
    X = np.linspace(0.0, 1.0, 20)[:, None]
    y = np.where(X[:, 0] < 0.5, 1.0, 2.0)
    mean, _ = QuantileBoosting(form=form, random_state=0).fit(X, y).predict(X)
    np.testing.assert_allclose(mean, y, atol=0.05)


# Missing values


@every_form
def test_missing_features(form: Form) -> None:
    X, y = sample(100)
    X[::2, 1] = np.nan
    y[::2] += 10.0  # being inactive is what matters most
    model = QuantileBoosting(form=form, random_state=0).fit(X, y)
    mean, std = model.predict(X)
    assert np.isfinite(mean).all()
    assert np.isfinite(std).all()
    assert mean[::2].min() > mean[1::2].max()
    nowhere = np.full((3, 3), np.nan)
    assert np.isfinite(model.predict(nowhere)[0]).all()


# Invariances


@every_form
def test_increasing_features_change_nothing(form: Form) -> None:
    X, y = sample(50)
    one = QuantileBoosting(form=form, random_state=0).fit(X, y).predict(X)
    two = QuantileBoosting(form=form, random_state=0).fit(X**3, y).predict(X**3)
    np.testing.assert_allclose(one, two)


@every_form
@pytest.mark.parametrize("scale", [2.0**-40, 2.0**100])
def test_scaled_losses_are_scaled_predictions(form: Form, scale: float) -> None:
    X, y = sample(50)
    one = QuantileBoosting(form=form, random_state=0).fit(X, y).predict(X)
    two = QuantileBoosting(form=form, random_state=0).fit(X, scale * y).predict(X)
    np.testing.assert_allclose(two, scale * np.array(one), rtol=1e-9, atol=1e-9 * scale)


@every_form
@pytest.mark.parametrize("offset", [-1e8, 1e8])
def test_an_offset_moves_the_predictions(form: Form, offset: float) -> None:
    X, y = sample(50)  # the spread of y is about 1: in single precision 1e8 + y is 1e8
    y = np.round(y * 1024.0) / 1024.0
    mean, std = QuantileBoosting(form=form, random_state=0).fit(X, y).predict(X)
    moved = QuantileBoosting(form=form, random_state=0).fit(X, offset + y).predict(X)
    assert np.corrcoef(moved[0] - offset, mean)[0, 1] > 0.99
    np.testing.assert_allclose(moved[0] - offset, mean, atol=1e-3)
    np.testing.assert_allclose(moved[1], std, atol=1e-3)


# Randomness


# Manners


def test_settings_of_the_thesis() -> None:
    model = QuantileBoosting.thesis(random_state=3)
    assert model.form == "bound"
    assert model.alpha == 0.1  # of the loss: 0.9 of a score
    assert model.n_trees == 100
    assert model.num_leaves == 8
    assert model.random_state == 3
    X, y = sample()
    mean, std = model.fit(X, y).predict(X)
    assert len(model.models_) == 1
    assert model.models_[0].num_trees() == 100
    np.testing.assert_array_equal(std, np.zeros(60))
    assert (mean <= y + 0.05).mean() > 0.8  # a lower bound
    leaves = np.asarray(model.models_[0].predict(X, pred_leaf=True))
    assert leaves.max() <= 7


def test_boost_is_lightgbm_train() -> None:
    X, y = sample(100)
    parameters = {"objective": "regression", "num_leaves": 4, **SMALL_DATA}
    ours = boost(lightgbm.Dataset(X, y, params=SMALL_DATA), parameters, 20)
    theirs = lightgbm.train(parameters, lightgbm.Dataset(X, y, params=SMALL_DATA), 20)
    np.testing.assert_allclose(
        np.asarray(ours.predict(X)), np.asarray(theirs.predict(X)), rtol=1e-12
    )
