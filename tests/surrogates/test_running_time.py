"""RunningTime: log-linear seconds, bounds instead of times, and what it refuses."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from sklearn.linear_model import LinearRegression

from automl_plugins.surrogates.base import FloatArray
from automl_plugins.surrogates.seconds_and_success import RunningTime

BoolArray = npt.NDArray[np.bool_]


def sample(n: int = 200, seed: int = 0, noise: float = 0.1) -> tuple[FloatArray, FloatArray]:
    """Return features (n, 3), of which the last does not matter, and seconds from 0.01 to 100."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, 3))
    log_seconds = 6.0 * X[:, 0] - 3.0 * X[:, 1] - 1.5 + noise * rng.normal(size=n)
    return X, np.exp(log_seconds)


def stopped(n: int = 300, seed: int = 0) -> tuple[FloatArray, FloatArray, FloatArray, BoolArray]:
    """Return features, true seconds, observed seconds, and the mask of those stopped early."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, 2))
    seconds = np.exp(4.0 * X[:, 0] + 0.1 * rng.normal(size=n))
    early = rng.random(n) < 0.5
    return X, seconds, np.where(early, seconds * rng.uniform(0.05, 0.9, size=n), seconds), early


# Predictions


def test_log_linear_seconds_are_recovered() -> None:
    X, seconds = sample()
    fresh, expected = sample(500, seed=1, noise=0.0)
    mean, std = RunningTime(random_state=0).fit(X, seconds).predict(fresh)
    error = mean - np.log(expected)
    assert np.sqrt((error**2).mean()) < 0.35  # their own standard deviation is 1.9
    assert abs(error.mean()) < 0.1
    assert (std >= 0).all()
    assert np.ptp(std) == 0.0
    # A straight line is the better model here: it says what is possible
    line = LinearRegression().fit(X, np.log(seconds)).predict(fresh)
    assert np.sqrt(((line - np.log(expected)) ** 2).mean()) < 0.05


def test_few_rows_are_told_apart() -> None:
    X, seconds = sample(15)
    mean, _ = RunningTime().fit(X, seconds).predict(X)
    assert len(np.unique(mean)) > 4
    assert np.corrcoef(mean, np.log(seconds))[0, 1] > 0.9


def test_std_is_that_of_the_residuals() -> None:
    X, seconds = sample(noise=0.5)
    mean, std = (model := RunningTime(random_state=0).fit(X, seconds)).predict(X)
    assert std[0] == pytest.approx((np.log(seconds) - mean).std())
    assert std[0] == model.std_
    louder = RunningTime(random_state=0).fit(*sample(noise=2.0))
    assert louder.std_ > 2.0 * model.std_


def test_expected_seconds_are_the_mean_of_a_log_normal() -> None:
    X, seconds = sample(noise=0.5)
    model = RunningTime(random_state=0).fit(X, seconds)
    mean, std = model.predict(X)
    np.testing.assert_allclose(model.predict_seconds(X), np.exp(mean + std**2 / 2.0))
    # One configuration, evaluated often: the mean of its times, and not their median
    rng = np.random.default_rng(0)
    times = rng.lognormal(1.0, 0.8, size=4000)
    model = RunningTime().fit(np.zeros((4000, 1)), times)
    assert model.predict_seconds(np.zeros((1, 1)))[0] == pytest.approx(times.mean(), rel=0.05)
    assert np.exp(model.predict(np.zeros((1, 1)))[0][0]) == pytest.approx(
        np.median(times), rel=0.05
    )


@pytest.mark.parametrize("seconds", [1e-3, 0.5, 1.0, 7.3, 3600.0, 1e6])
@pytest.mark.parametrize("n", [1, 2, 5, 60])
def test_equal_times_are_predicted_everywhere(seconds: float, n: int) -> None:
    X, _ = sample(n)
    model = RunningTime().fit(X, np.full(n, seconds))
    predicted = model.predict_seconds(sample(50, seed=1)[0])
    assert np.ptp(predicted) == 0.0
    # LightGBM keeps targets in single precision: ln seconds are good to 1e-7 of themselves.
    np.testing.assert_allclose(predicted, seconds, rtol=1e-6)
    assert model.std_ < 1e-6


@pytest.mark.parametrize("n", [1, 2, 3])
def test_few_rows(n: int) -> None:
    X, seconds = sample(n)
    for early in (None, np.ones(n, dtype=bool)):
        model = RunningTime().fit(X, seconds, early)
        predicted = model.predict_seconds(sample(20, seed=1)[0])
        assert np.isfinite(predicted).all()
        assert (predicted > 0).all()


def test_seconds_below_the_clock_are_one_millisecond() -> None:
    X, _ = sample(20)
    for seconds in (0.0, 1e-300, 1e-9):
        predicted = RunningTime().fit(X, np.full(20, seconds)).predict_seconds(X)
        np.testing.assert_allclose(predicted, 1e-3, rtol=1e-6)


@pytest.mark.parametrize("unit", [1e-2, 60.0, 3600.0])
def test_another_unit_of_time_shifts_the_logarithm(unit: float) -> None:
    X, seconds = sample()
    one = RunningTime(random_state=0).fit(X, 10.0 * seconds)
    two = RunningTime(random_state=0).fit(X, 10.0 * seconds * unit)
    np.testing.assert_allclose(two.predict(X)[0], one.predict(X)[0] + np.log(unit), atol=1e-5)
    np.testing.assert_allclose(two.predict_seconds(X), unit * one.predict_seconds(X), rtol=1e-5)


def test_seconds_of_all_magnitudes_are_positive() -> None:
    rng = np.random.default_rng(0)
    X = rng.random((100, 1))
    model = RunningTime(random_state=0).fit(X, 10.0 ** rng.uniform(-3, 9, size=100))
    predicted = model.predict_seconds(rng.random((100, 1)))
    assert np.isfinite(predicted).all()
    assert (predicted > 0).all()


def test_missing_features() -> None:
    X, seconds = sample()
    X[::2, 1] = np.nan
    seconds[::2] = 1e4 * (1.0 + X[::2, 0])  # being inactive is what takes long
    model = RunningTime(random_state=0).fit(X, seconds)
    predicted = model.predict_seconds(X)
    assert predicted[::2].min() > predicted[1::2].max()
    assert np.isfinite(model.predict_seconds(np.full((2, 3), np.nan))).all()


# Lower bounds


@pytest.mark.parametrize("seed", range(5))
def test_times_cut_short_are_not_taken_for_the_whole(seed: int) -> None:
    X, seconds, observed, early = stopped(seed=seed)
    plain, _ = RunningTime(random_state=0).fit(X, observed).predict(X)
    raised, _ = RunningTime(random_state=0).fit(X, observed, early).predict(X)
    assert raised[early].mean() > plain[early].mean()
    assert raised.mean() > plain.mean()
    # Single rows may move a little either way: the trees are others
    assert (raised - plain).min() > -0.25
    error = {
        name: np.abs(mean - np.log(seconds)).mean()
        for name, mean in (("plain", plain), ("raised", raised))
    }
    assert error["raised"] < 0.4 * error["plain"]


def test_no_lower_bounds_change_nothing() -> None:
    X, seconds = sample()
    plain = RunningTime(random_state=0).fit(X, seconds).predict(X)
    none = RunningTime(random_state=0).fit(X, seconds, np.zeros(200, dtype=bool)).predict(X)
    np.testing.assert_array_equal(plain, none)


def test_lower_bounds_above_the_prediction_stay() -> None:
    # Two configurations; one was stopped late, after more than all others took
    X = np.repeat([[0.0], [1.0]], 20, axis=0)
    seconds = np.where(X[:, 0] == 0.0, 2.0, 50.0)
    model = RunningTime(random_state=0).fit(X, seconds, X[:, 0] == 1.0)
    predicted = np.exp(model.predict(np.array([[0.0], [1.0]]))[0])
    np.testing.assert_allclose(predicted, [2.0, 50.0], rtol=0.05)


def test_only_lower_bounds() -> None:
    X, seconds = sample(50)
    model = RunningTime(random_state=0).fit(X, seconds, np.ones(50, dtype=bool))
    plain = RunningTime(random_state=0).fit(X, seconds)
    assert model.predict(X)[0].mean() >= plain.predict(X)[0].mean() - 1e-6
    assert np.isfinite(model.predict_seconds(X)).all()


def test_std_is_that_of_the_times_known_in_full() -> None:
    X, _, observed, early = stopped()
    model = RunningTime(random_state=0).fit(X, observed, early)
    residual = np.log(observed) - model.predict(X)[0]
    assert model.std_ == pytest.approx(residual[~early].std())
    assert model.std_ < 0.5 * residual.std()  # bounds far below their times are not noise


def test_std_where_nothing_is_known_in_full() -> None:
    X, seconds = sample(50)
    seconds[::2] *= 1e-3  # stopped early: the model raises them
    model = RunningTime(random_state=0).fit(X, seconds, np.ones(50, dtype=bool))
    raw = np.log(np.maximum(seconds, 1e-3)) - model.predict(X)[0]
    assert model.std_ < raw.std()


# Manners


def test_settings_of_the_thesis() -> None:
    parameters = RunningTime().get_params()
    expected = {"n_trees": 100, "learning_rate": 0.15, "num_leaves": 4, "l1": 0.20}
    assert {name: parameters[name] for name in expected} == expected
    X, seconds = sample()
    booster = RunningTime().fit(X, seconds).model_
    assert booster.num_trees() == 100
    assert np.asarray(booster.predict(X, pred_leaf=True)).max() <= 3


def test_l1_shrinks() -> None:
    X, seconds = sample(30)
    spreads = [
        np.ptp(RunningTime(l1=l1, n_trees=20).fit(X, seconds).predict(X)[0])
        for l1 in (0.0, 0.2, 5.0, 1e4)
    ]
    assert spreads == sorted(spreads, reverse=True)
    assert spreads[-1] == 0.0


@pytest.mark.parametrize(
    ("X", "seconds", "message"),
    [
        (np.zeros((3, 1)), np.array([1.0, -0.5, -2.0]), r"seconds must be >= 0, got -2\.0"),
        (np.zeros((3, 1)), np.ones(2), r"must have shape \(3,\) to match X, got \(2,\)"),
        (np.zeros((2, 1)), np.array([1.0, np.nan]), r"must be finite, got nan in row 1"),
        (np.zeros((2, 1)), np.array([np.inf, 1.0]), r"must be finite, got inf in row 0"),
        (np.empty((0, 1)), np.empty(0), r"X must have shape \(n, f\) with n, f >= 1"),
        (np.full((1, 1), -np.inf), np.ones(1), r"X must not hold infinities"),
    ],
)
def test_data_that_are_refused(X: FloatArray, seconds: FloatArray, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        RunningTime().fit(X, seconds)


def test_masks_of_another_length_are_refused() -> None:
    for n in (1, 2):
        with pytest.raises(ValueError, match=rf"lower_bound must have shape \(3,\), got \({n},\)"):
            RunningTime().fit(np.zeros((3, 1)), np.ones(3), np.ones(n, dtype=bool))
