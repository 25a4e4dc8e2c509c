"""The process near the best row: its region by hand, its rows, branches, and further rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from automl_plugins.arrays import FloatArray
from automl_plugins.surrogates import AveragedProcess, LocalProcess

NAN = np.nan


def valley(n: int, d: int = 2, seed: int = 0) -> tuple[FloatArray, FloatArray]:
    """Rows (n, d), and losses with their minimum at 0.3, steep in the first input."""
    X = np.random.default_rng(seed).random((n, d))
    return X, ((X - 0.3) ** 2) @ np.r_[25.0, np.ones(d - 1)]


def test_region_by_hand() -> None:
    # The best ten rows of one input: distances of 0, 0.01, ..., 0.09 from the best, mean 0.045.
    X = np.r_[0.5 + 0.01 * np.arange(10), 0.9, 0.1][:, None]
    model = LocalProcess().fit(X, np.arange(12.0))
    np.testing.assert_allclose([model.low_, model.high_], [[0.455], [0.545]])


def test_a_region_has_a_least_and_a_largest_width() -> None:
    X = np.column_stack([np.full(30, 0.4), np.r_[0.0, np.ones(29)]])
    model = LocalProcess().fit(X, np.arange(30.0))
    np.testing.assert_allclose(model.high_ - model.low_, [2e-4, 1.0])  # 0 and 1 are two options
    np.testing.assert_allclose(model.low_, [0.4 - 1e-4, -0.5])


def test_a_branch_of_few_rows_is_tried_widely() -> None:
    # Two rows of ten that would be measured: 0.2 for one, half of the range for eight.
    model = LocalProcess().fit(np.array([[0.5], [0.7]]), np.array([0.0, 1.0]))
    np.testing.assert_allclose(model.high_ - model.low_, [2.0 * 0.1 * (0.2 + 8 * 0.5)])
    assert LocalProcess().fit(np.array([[0.5]]), np.zeros(1)).high_[0] == 0.95


def test_it_is_a_process_of_the_nearest_rows_in_units_of_the_region() -> None:
    X, y = valley(200, 3)
    model = LocalProcess(max_rows=60).fit(X, y)
    centre, width = X[y.argmin()], (model.high_ - model.low_) / 2.0
    assert width[0] < 0.8 * width[1:].min()  # the best rows are close together where it is steep
    distance = (np.abs(X - centre) / width).max(axis=1)
    near = np.flatnonzero(distance <= np.sort(distance)[59])
    assert len(near) == 60
    scaled = (X - centre) / width / 2.0 + 0.5
    expected = AveragedProcess().fit(scaled[near], y[near])
    queries = np.random.default_rng(1).uniform(model.low_, model.high_, (20, 3))
    for own, known in zip(
        model.predict(queries),
        expected.predict((queries - centre) / width / 2.0 + 0.5),
        strict=True,
    ):
        np.testing.assert_allclose(own, known, rtol=1e-4, atol=1e-7)
    assert model.noise_ == pytest.approx(expected.noise_)


def test_it_predicts_the_region_of_a_narrow_valley_better_than_one_kernel_for_all() -> None:
    rng = np.random.default_rng(3)

    def bent(X: FloatArray) -> FloatArray:
        return np.asarray(100.0 * (X[:, 1] - X[:, 0] ** 2) ** 2 + (1.0 - X[:, 0]) ** 2)

    X = 4.0 * rng.random((300, 2)) - 2.0
    X[150:] = [1.0, 1.0] + 0.05 * rng.normal(size=(150, 2))  # of a search that has come near
    y, unit = bent(X), (X + 2.0) / 4.0
    model = LocalProcess().fit(unit, y)
    queries = rng.uniform(model.low_, model.high_, (200, 2))
    true = bent(4.0 * queries - 2.0)
    errors = [
        np.abs(m.predict(queries)[0] - true).mean()
        for m in (model, AveragedProcess().fit(unit, y))
    ]
    assert errors[0] < 0.1 * errors[1]


def of_two_branches() -> tuple[FloatArray, FloatArray]:
    """Rows with either their second or their third feature; the best one has the second."""
    X, y = valley(60, 3)
    X[::2, 1], X[1::2, 2] = NAN, NAN
    y[::2] += 5.0
    return X, y


def test_rows_of_another_branch_are_unknown() -> None:
    X, y = of_two_branches()
    model = LocalProcess().fit(X, y)
    assert np.isnan(model.low_).tolist() == np.isnan(model.high_).tolist() == [False, False, True]
    alone = LocalProcess().fit(X[1::2], y[1::2])
    np.testing.assert_array_equal(model.predict(X[1::2]), alone.predict(X[1::2]))
    mean, std = model.predict(X[::2])
    np.testing.assert_allclose(mean, y[1::2].mean())
    np.testing.assert_allclose(std, y[1::2].std())
    beside = model.beside(X[::2])
    np.testing.assert_array_equal(beside.predict(X), model.predict(X))


def test_running_evaluations_are_believed() -> None:
    X, y = valley(60)
    model = LocalProcess().fit(X, y)
    pending = (model.low_ + model.high_)[None] / 2.0 + 0.3 * (model.high_ - model.low_)
    before, after = model.predict(pending), model.beside(pending).predict(pending)
    assert after[0] == pytest.approx(before[0], rel=1e-3)
    assert after[1] < 0.8 * before[1]


def test_further_rows_move_the_region_and_keep_the_kernels() -> None:
    X, y = valley(120)
    model = LocalProcess().fit(X[:80], y[:80])
    seen, anew = model.conditioned(X, y), LocalProcess().fit(X, y)
    np.testing.assert_array_equal([seen.low_, seen.high_], [anew.low_, anew.high_])
    assert (anew.low_ != model.low_).any()
    kernels = [
        {candidate.scales.tobytes() for candidate in known.process_.process_.candidates}
        for known in (seen, model)
    ]
    assert kernels[0] <= kernels[1]
    queries = np.random.default_rng(1).uniform(seen.low_, seen.high_, (20, 2))
    np.testing.assert_allclose(seen.predict(queries)[0], anew.predict(queries)[0], atol=0.01)


def test_a_best_row_in_another_branch_is_learnt_anew() -> None:
    X, y = of_two_branches()
    model, better = LocalProcess().fit(X, y), np.where(np.arange(60) % 2 == 0, y - 10.0, y)
    seen: Any = model.conditioned(X, better)
    np.testing.assert_array_equal(seen.predict(X), LocalProcess().fit(X, better).predict(X))


@pytest.mark.filterwarnings("error")
def test_a_best_row_without_any_feature_and_large_losses() -> None:
    X = np.array([[NAN, NAN], [0.2, 0.3], [NAN, NAN]])
    model = LocalProcess().fit(X, np.array([0.0, 1.0, 0.5]))
    mean, std = model.predict(X)
    assert np.isfinite(mean).all() and np.isfinite(std).all()
    assert np.isnan(model.conditioned(X, np.array([0.0, 1.0, 0.5])).low_).all()
    X, y = of_two_branches()
    for factor in (1e300, 1e-300):
        _, std = LocalProcess().fit(X, y * factor).predict(X[::2])
        np.testing.assert_allclose(std, factor * y[1::2].std())
