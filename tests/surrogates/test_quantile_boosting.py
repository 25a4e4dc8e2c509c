"""QuantileBoosting: quantiles of groups by counting, small data, and LightGBM's own training."""

from __future__ import annotations

from typing import get_args

import lightgbm
import numpy as np
import pytest

from automl_plugins.arrays import FloatArray
from automl_plugins.surrogates.quantile_boosting import SMALL_DATA, Form, QuantileBoosting, boost

FORMS: tuple[Form, ...] = get_args(Form)
every_form = pytest.mark.parametrize("form", FORMS)
GROUPS = np.arange(4.0)[:, None]


def sample(n: int = 60, seed: int = 0, noise: float = 0.1) -> tuple[FloatArray, FloatArray]:
    """Features (n, 3), of which the last does not matter, and noisy losses (n,)."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, 3))
    return X, np.sin(4.0 * X[:, 0]) + X[:, 1] ** 2 + noise * rng.normal(size=n)


def groups(rows: int = 100) -> tuple[FloatArray, FloatArray]:
    """Four configurations (4 rows, 1), evaluated often, with skewed, unequal noise."""
    rng = np.random.default_rng(0)
    X = np.repeat(GROUPS, rows, axis=0)
    return X, X[:, 0] + (1.0 + X[:, 0]) * rng.exponential(size=len(X))


def counted(X: FloatArray, y: FloatArray, alpha: float) -> FloatArray:
    """Quantile of each group: what minimises the quantile loss when every group is a leaf."""
    return np.array([np.quantile(y[X[:, 0] == g], alpha) for g in GROUPS[:, 0]])


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


@pytest.mark.parametrize("alpha", [0.1, 0.3, 0.9])
def test_bound_covers_fresh_losses(alpha: float) -> None:
    X, y = sample(600, noise=0.5)
    fresh, losses = sample(3000, seed=1, noise=0.5)
    model = QuantileBoosting(form="bound", alpha=alpha, min_leaf_rows=30)
    assert (losses < model.fit(X, y).predict(fresh)[0]).mean() == pytest.approx(alpha, abs=0.08)


def test_ensemble_is_the_mean_and_spread_of_its_models() -> None:
    X, y = sample()
    model = QuantileBoosting(n_models=4, random_state=0).fit(X, y)
    by_model = model.centre_ + model.scale_ * np.array([m.predict(X) for m in model.models_])
    assert by_model.shape == (4, 60)
    mean, std = model.predict(X)
    np.testing.assert_allclose(mean, by_model.mean(axis=0))
    np.testing.assert_allclose(std, by_model.std(axis=0))
    assert (std > 0).mean() > 0.9
    assert (QuantileBoosting(n_models=1, random_state=0).fit(X, y).predict(X)[1] == 0).all()


@pytest.mark.parametrize("alpha", [0.1, 0.5])
def test_ensemble_is_the_bootstrap_of_a_quantile(alpha: float) -> None:
    # One configuration, evaluated often: nothing to split, each model is a resampled quantile.
    rng = np.random.default_rng(0)
    X, y = np.zeros((100, 1)), rng.normal(size=100)
    model = QuantileBoosting(alpha=alpha, n_models=200, n_trees=1, random_state=0)
    mean, std = model.fit(X, y).predict(X[:1])
    resampled = [np.quantile(rng.choice(y, 100), alpha) for _ in range(2000)]
    assert mean[0] == pytest.approx(np.mean(resampled), abs=0.06)
    assert std[0] == pytest.approx(np.std(resampled), rel=0.2)


@pytest.mark.parametrize("n", [10, 40, 200])
def test_three_quantiles_are_uncrossed(n: int) -> None:
    X, y = sample(n, noise=1.0)
    model = QuantileBoosting(form="three_quantile", random_state=0).fit(X, y)
    fresh, _ = sample(1000, seed=1)
    low, middle, high = np.sort([booster.predict(fresh) for booster in model.models_], axis=0)
    mean, std = model.predict(fresh)
    np.testing.assert_allclose(mean, model.centre_ + model.scale_ * middle)
    np.testing.assert_allclose(std, model.scale_ * (high - low) / 2.0)
    assert (std >= 0).all() and (std > 0).mean() > 0.95


@every_form
def test_predictions_follow_the_loss_and_doubt_the_noise(form: Form) -> None:
    fresh, losses = sample(300, seed=1, noise=0.0)
    doubts = []
    for noise in (0.1, 2.0):
        model = QuantileBoosting(form=form, random_state=0).fit(*sample(300, noise=noise))
        mean, std = model.predict(fresh)
        doubts.append(std.mean())
        assert noise > 1.0 or np.corrcoef(mean, losses)[0, 1] > 0.9
    assert doubts[1] > 2.0 * doubts[0] or form == "bound"


def test_held_out_is_the_mean_of_the_models_that_did_not_see_a_row() -> None:
    X, y = sample(30)
    model = QuantileBoosting(n_models=4, random_state=3).fit(X, y)
    held_out, seen = model.held_out(), np.zeros((4, 30), dtype=bool)
    rng = np.random.default_rng(3)  # the fit's own draws: a sample, then LightGBM's seed
    for drawn in seen:
        drawn[rng.integers(30, size=30)] = True
        rng.integers(2**31)
    np.testing.assert_array_equal(model.left_out_, ~seen)
    for row in range(30):
        votes = [
            float(np.asarray(booster.predict(X[[row]]))[0])
            for booster, left_out in zip(model.models_, ~seen[:, row], strict=True)
            if left_out
        ]
        expected = model.centre_ + model.scale_ * np.mean(votes) if votes else np.nan
        np.testing.assert_allclose(held_out[row], expected)
    assert 0 < np.isnan(held_out).sum() < 15
    single = QuantileBoosting(n_models=1, random_state=0).fit(X, y)
    np.testing.assert_array_equal(np.isnan(single.held_out()), ~single.left_out_[0])


def test_noise_is_hardly_predicted_by_models_that_have_not_drawn_it() -> None:
    X, held_out, known = sample(40)[0], [], []
    for seed in range(8):
        noise = np.random.default_rng(seed).normal(size=40)
        model = QuantileBoosting(random_state=seed).fit(X, noise)
        told = ~np.isnan(model.held_out())
        held_out.append(np.corrcoef(model.held_out()[told], noise[told])[0, 1])
        known.append(np.corrcoef(model.predict(X)[0], noise)[0, 1])
    assert np.mean(held_out) < 0.35 < 0.7 < np.mean(known)


@pytest.mark.parametrize("form", ["bound", "three_quantile"])
def test_without_samples_nothing_is_held_out(form: Form) -> None:
    X, y = sample(20)
    held_out = QuantileBoosting(form=form, random_state=0).fit(X, y).held_out()
    np.testing.assert_array_equal(held_out, np.full(20, np.nan))


@every_form
def test_ten_rows_are_told_apart(form: Form) -> None:
    X, y = sample(10)
    for model in (QuantileBoosting(form=form, random_state=0), QuantileBoosting.thesis()):
        mean, _ = model.fit(X, y).predict(X)
        assert len(np.unique(mean)) >= 4 and np.corrcoef(mean, y)[0, 1] > 0.5
    # The trap: with LightGBM's own minimum of 20 rows in a leaf every prediction is the same.
    parameters = {"objective": "quantile", "alpha": 0.3, "verbosity": -1, "num_threads": 1}
    trap = lightgbm.train(parameters, lightgbm.Dataset(X, y), 30)
    assert np.ptp(np.asarray(trap.predict(X))) == 0.0


@pytest.mark.parametrize("rows", [1, 2, 5, 6, 7])
def test_min_leaf_rows_counts_rows(rows: int) -> None:
    X, y = np.arange(12.0)[:, None], np.random.default_rng(0).permutation(np.arange(12.0))
    model = QuantileBoosting(form="bound", n_trees=1, num_leaves=12, min_leaf_rows=rows)
    tree = model.fit(X, y).models_[0]
    leaves = np.bincount(np.asarray(tree.predict(X, pred_leaf=True), dtype=int).ravel())
    assert leaves.min() >= rows and (len(leaves) > 1) == (rows < 7)


@every_form
@pytest.mark.parametrize("value", [0.0, 0.1, -1e300, 1e-300])
@pytest.mark.parametrize("n", [1, 30])
def test_constant_losses_are_predicted_exactly(form: Form, value: float, n: int) -> None:
    X = sample(n)[0]
    model = QuantileBoosting(form=form).fit(X, np.full(n, value))
    mean, std = model.predict(np.random.default_rng(0).random((4, X.shape[1])))
    np.testing.assert_array_equal(mean, np.full(4, value))
    np.testing.assert_array_equal(std, np.zeros(4))


@every_form
def test_being_inactive_may_be_what_matters_most(form: Form) -> None:
    X, y = sample(100)
    X[::2, 1] = np.nan
    y[::2] += 10.0
    model = QuantileBoosting(form=form, random_state=0).fit(X, y)
    mean, std = model.predict(X)
    assert np.isfinite(mean).all() and np.isfinite(std).all()
    assert mean[::2].min() > mean[1::2].max()
    assert np.isfinite(model.predict(np.full((3, 3), np.nan))[0]).all()


@every_form
@pytest.mark.parametrize(("scale", "offset"), [(2.0**-40, 0), (2.0**100, 0), (1, -1e8), (1, 1e8)])
def test_the_unit_of_losses_and_features_does_not_matter(
    form: Form, scale: float, offset: float
) -> None:
    X, y = sample(50)  # the spread of y is about 1: in single precision 1e8 + y is 1e8
    y = np.round(y * 1024.0) / 1024.0
    mean, std = QuantileBoosting(form=form, random_state=0).fit(X, y).predict(X)
    moved = QuantileBoosting(form=form, random_state=0).fit(X**3, offset + scale * y)
    moved_mean, moved_std = moved.predict(X**3)
    close = 1e-3 if offset else 1e-9
    np.testing.assert_allclose((moved_mean - offset) / scale, mean, atol=close)
    np.testing.assert_allclose(moved_std / scale, std, atol=close)


def test_settings_of_the_thesis() -> None:
    model = QuantileBoosting.thesis(random_state=3)
    given = {"form": "bound", "alpha": 0.1, "n_trees": 100, "num_leaves": 8, "max_bin": 255}
    assert model.get_params() == {
        **QuantileBoosting(learning_rate=0.1, random_state=3).get_params(),
        **given,
    }
    X, y = sample()
    mean, std = model.fit(X, y).predict(X)
    assert [booster.num_trees() for booster in model.models_] == [100]
    assert not std.any() and (mean <= y + 0.05).mean() > 0.8  # a lower bound
    assert np.asarray(model.models_[0].predict(X, pred_leaf=True)).max() <= 7


def test_boost_is_lightgbm_train() -> None:
    X, y = sample(100)
    parameters = {"objective": "regression", "num_leaves": 4, **SMALL_DATA}
    ours = boost(lightgbm.Dataset(X, y, params=SMALL_DATA), parameters, 20)
    theirs = lightgbm.train(parameters, lightgbm.Dataset(X, y, params=SMALL_DATA), 20)
    ours_predicted, theirs_predicted = np.asarray(ours.predict(X)), np.asarray(theirs.predict(X))
    np.testing.assert_allclose(ours_predicted, theirs_predicted, rtol=1e-12)
