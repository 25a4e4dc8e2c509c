"""Gaussian processes: kernels, likelihood, averages of kernels, and the surrogate by itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.optimize import approx_fprime, minimize
from scipy.stats import norm
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern, WhiteKernel

from automl_plugins.arrays import FloatArray
from automl_plugins.surrogates import averaged_process, gaussian_process
from automl_plugins.surrogates.averaged_process import (
    AveragedProcess,
    Candidate,
    EvidenceAverage,
    fit_relevances,
    uninformed_kernels,
)
from automl_plugins.surrogates.base import complete_inputs, informative_rows
from automl_plugins.surrogates.gaussian_process import (
    KERNELS,
    GaussianProcess,
    Kernel,
    correlation,
    fit_shared,
    log_likelihood,
    squared_distances,
)

THETA = np.log([1.7, 0.4, 1.3, 0.05])
RNG = np.random.default_rng(0)
X = RNG.random((12, 2))
Z = np.stack([np.sin(6.0 * X[:, 0]), X[:, 1] - X[:, 0]], axis=1) + 0.05 * RNG.normal(size=(12, 2))
NEW = RNG.random((5, 2))
every_kernel = pytest.mark.parametrize("kernel", KERNELS)


def reference(theta: FloatArray, kernel: Kernel) -> GaussianProcessRegressor:
    scales = np.exp(theta[1:-1])
    form = RBF(scales) if kernel == "se" else Matern(scales, nu=2.5)
    k = ConstantKernel(np.exp(theta[0])) * form + WhiteKernel(np.exp(theta[-1]))
    return GaussianProcessRegressor(k, alpha=0.0, optimizer=None, random_state=0)


def test_correlation_by_hand() -> None:
    A, B, scales = np.array([[0.0, 0.0]]), np.array([[3.0, 8.0]]), np.array([1.0, 2.0])  # u = 5
    assert correlation(A, B, scales, "se")[0, 0] == pytest.approx(np.exp(-12.5))
    r = 5.0 * np.sqrt(5.0)
    by_hand = (1.0 + r + r * r / 3.0) * np.exp(-r)
    assert correlation(A, B, scales, "matern52")[0, 0] == pytest.approx(by_hand)


def test_covariance_that_is_not_positive_definite_is_an_error() -> None:
    one = Candidate(np.ones(1), noise=-2.0)
    with pytest.raises(np.linalg.LinAlgError, match="not positive definite"):
        EvidenceAverage([one], "matern52").fit(np.array([[0.0], [1.0]]), np.array([0.0, 1.0]))


def test_many_predictions_are_those_of_one_row_at_a_time() -> None:
    rng = np.random.default_rng(3)
    X, Q = rng.random((30, 4)), rng.random((600, 4))  # more rows than are predicted at a time
    model = EvidenceAverage(uninformed_kernels(4), "matern52").fit(X, X.sum(axis=1))
    alone = np.array([model.predict(row[None]) for row in Q])[:, :, 0]
    np.testing.assert_allclose(np.array(model.predict(Q)).T, alone, rtol=1e-9)


@pytest.mark.parametrize("d", [2, gaussian_process._FEW_INPUTS + 5])  # two ways to compute them
def test_distances_and_correlations_in_few_and_in_many_columns(d: int) -> None:
    rng = np.random.default_rng(d)
    A, B = rng.random((9, d)), rng.random((7, d))
    B[0], A[1] = A[0], A[0]
    brute = ((A[:, None] - B[None]) ** 2).sum(axis=2)
    found = squared_distances(A, B)
    np.testing.assert_allclose(found, brute, atol=1e-12)
    assert (found >= 0.0).all() and (squared_distances(A, A) >= 0.0).all()
    scales, theta = rng.uniform(0.5, 2.0, d), np.zeros(d + 2)
    for kernel in KERNELS:
        theta[1:-1] = np.log(scales)
        expected = reference(theta, kernel).kernel.k1.k2(A, B)
        np.testing.assert_allclose(correlation(A, B, scales, kernel), expected, atol=1e-9)
    # One length scale for all columns takes a shorter way
    y, given = rng.normal(size=9), [Candidate(np.full(d, 0.7), 0.01), Candidate(scales, 0.01)]
    for candidate in given:
        near = Candidate(candidate.scales * (1.0 + 1e-9 * np.arange(d)), 0.01)
        one, other = (EvidenceAverage([c], "matern52").fit(A, y) for c in (candidate, near))
        np.testing.assert_allclose(one.predict(B), other.predict(B), rtol=1e-5, atol=1e-6)


@every_kernel
def test_likelihood_is_the_sum_over_the_tasks(kernel: Kernel) -> None:
    single = [reference(THETA, kernel).fit(X, z).log_marginal_likelihood_value_ for z in Z.T]
    assert log_likelihood(THETA, X, Z, kernel)[0] == pytest.approx(sum(single))


@every_kernel
def test_gradient_against_finite_differences(kernel: Kernel) -> None:
    slope = log_likelihood(THETA, X + 100.0, Z, kernel)[1]
    numeric = approx_fprime(THETA, lambda theta: log_likelihood(theta, X, Z, kernel)[0], 1e-6)
    np.testing.assert_allclose(slope, numeric, rtol=1e-4)


def test_likelihood_of_one_row_by_hand() -> None:
    # K = 2 + 0.5: the density of N(0, 2.5) at 3
    theta, x, z = np.log([2.0, 1.0, 0.5]), np.array([[0.3]]), np.array([[3.0]])
    value, gradient = log_likelihood(theta, x, z, "matern52")
    assert value == pytest.approx(-0.5 * 9.0 / 2.5 - 0.5 * np.log(2.0 * np.pi * 2.5))
    slope = 0.5 * (9.0 / 2.5**2 - 1.0 / 2.5)
    np.testing.assert_allclose(gradient, [2.0 * slope, 0.0, 0.5 * slope], atol=1e-15)


def test_learnt_hyperparameters_find_what_matters() -> None:
    inputs = np.random.default_rng(0).random((40, 2))
    losses = np.stack([np.sin(8.0 * inputs[:, 0] + phase) for phase in range(5)], axis=1)
    theta = fit_shared([(inputs, losses)], "matern52")
    assert np.exp(theta[1]) < 2.0 < 10.0 < np.exp(theta[2])  # the second column does nothing
    assert np.exp(theta[-1]) < 1e-4  # there is no noise
    start = np.append(np.zeros(3), np.log(0.01))
    values = [log_likelihood(t, inputs, losses, "matern52")[0] for t in (start, theta)]
    assert values[0] < values[1]


def test_complete_inputs_by_hand() -> None:
    given = np.array([[1.0, np.nan], [np.nan, 0.25]])
    found = complete_inputs(given, np.array([1]))
    np.testing.assert_array_equal(found, [[1.0, 0.5, 0.0], [0.5, 0.25, 1.0]])


@pytest.mark.parametrize(("n", "limit"), [(30, 2), (31, 3), (97, 29), (30, 10)])
def test_informative_rows_are_distinct_and_hold_both_ends(n: int, limit: int) -> None:
    y = np.random.default_rng(n).normal(size=n)
    rows = informative_rows(y, limit)
    assert len(set(rows.tolist())) == len(rows) == limit
    assert set(np.argsort(y)[: limit // 2].tolist()) | {int(np.argmax(y))} <= set(rows.tolist())
    # By hand: in order of loss rows 5, 1, 3, 4, 2, 0; the best two, then ranks 5 and 2.
    y = np.array([5.0, 1.0, 4.0, 2.0, 3.0, 0.0])
    np.testing.assert_array_equal(informative_rows(y, 4), [0, 1, 3, 5])
    np.testing.assert_array_equal(informative_rows(np.zeros(3), 9), np.arange(3))


# Average over kernels


@every_kernel
def test_one_candidate_is_the_gaussian_process(kernel: Kernel) -> None:
    y = 3.0 + 2.0 * Z[:, 0]
    theta = np.log([1.7, 0.4, 1.3, 0.05])
    one = Candidate(np.exp(theta[1:-1]), 0.05, variance=1.7)
    model = EvidenceAverage([one], kernel).fit(X, y)
    expected = reference(theta, kernel).fit(X, (y - y.mean()) / y.std())
    mean, std = expected.predict(NEW, return_std=True)
    found = model.predict(NEW)
    np.testing.assert_allclose(found[0], y.mean() + y.std() * mean)
    np.testing.assert_allclose(found[1], y.std() * np.sqrt(std**2 - 0.05), rtol=1e-6)


def test_candidates_are_weighed_by_prior_and_evidence() -> None:
    y = Z[:, 0]
    z = (y - y.mean()) / y.std()
    given = ((0.3, 0.0, 1.0), (1.0, 28.0, 1.0), (0.5, 1.0, 2.5))
    candidates = [Candidate(np.full(2, scale), 0.01, prior, c) for scale, prior, c in given]
    model = EvidenceAverage(candidates, "matern52").fit(X, y)
    logs = [
        log_likelihood(np.log([c.variance, *c.scales, c.noise]), X, z[:, None], "matern52")[0]
        + c.log_prior
        for c in candidates
    ]
    np.testing.assert_allclose(model.evidence_, np.exp(logs) / np.exp(logs).sum())
    assert (model.evidence_ > 0.001).all()
    # mean and variance of the mixture
    alone = [EvidenceAverage([c], "matern52").fit(X, y).predict(NEW) for c in candidates]
    mean = model.evidence_ @ [m for m, _ in alone]
    square = model.evidence_ @ [s**2 + m**2 for m, s in alone]
    np.testing.assert_allclose(model.predict(NEW), [mean, np.sqrt(square - mean**2)])


@every_kernel
def test_held_out_is_a_fit_without_each_row(kernel: Kernel) -> None:
    y = 3.0 + 2.0 * Z[:, 0]
    z = (y - y.mean()) / y.std()
    thetas = np.log([[1.7, 0.4, 1.3, 0.05], [0.6, 0.7, 0.7, 0.2]])
    candidates = [
        Candidate(np.exp(t[1:-1]), np.exp(t[-1]), log_prior, np.exp(t[0]))
        for t, log_prior in zip(thetas, (0.0, 7.0), strict=True)
    ]
    model = EvidenceAverage(candidates, kernel).fit(X, y)
    assert (model.evidence_ > 0.01).all()
    expected = np.zeros(12)
    for row in range(12):  # of losses standardised, and kernels weighed, by all rows
        rest = np.arange(12) != row
        alone = [reference(t, kernel).fit(X[rest], z[rest]).predict(X[[row]])[0] for t in thetas]
        expected[row] = model.evidence_ @ alone
    np.testing.assert_allclose(model.held_out(), y.mean() + y.std() * expected)
    assert EvidenceAverage(candidates, kernel).fit(X[:0], y[:0]).held_out().shape == (0,)
    constant = EvidenceAverage(candidates, kernel).fit(X, np.full(12, 7.0))
    np.testing.assert_array_equal(constant.held_out(), np.full(12, 7.0))


def test_a_candidate_that_is_added_counts_as_those_before() -> None:
    y, (*first, last) = Z[:, 0], uninformed_kernels(2)
    whole = EvidenceAverage([*first, last], "matern52").fit(X, y)
    grown = EvidenceAverage(first, "matern52").fit(X, y)
    grown.add(last)
    assert grown.candidates == whole.candidates
    np.testing.assert_allclose(grown.evidence_, whole.evidence_)
    np.testing.assert_allclose(grown.predict(NEW), whole.predict(NEW))
    np.testing.assert_allclose(grown.held_out(), whole.held_out())


def test_without_observations_it_is_the_prior_and_constant_losses_leave_its_weights() -> None:
    model = EvidenceAverage(uninformed_kernels(2), "matern52").fit(X[:0], X[:0, 0])
    np.testing.assert_allclose(model.predict(NEW), [np.zeros(5), np.ones(5)])
    model = EvidenceAverage(uninformed_kernels(2), "se").fit(X, np.full(12, 7.0))
    np.testing.assert_allclose(model.evidence_, 1.0 / len(model.candidates))
    mean, std = model.predict(X)
    np.testing.assert_array_equal(mean, np.full(12, 7.0))
    assert (std < 0.2).all()


# A length scale for each input


def relevances(monkeypatch: pytest.MonkeyPatch, kernel: Kernel, steps: int) -> Any:
    """What ``fit_relevances`` minimises and where it ends, after at most so many steps."""
    asked: dict[str, Any] = {}

    def spy(loss: Any, start: Any, *, options: Any, **how: Any) -> Any:
        asked.update(loss=loss, start=start, bounds=how["bounds"])
        asked["end"] = minimize(loss, start, options={"maxiter": steps, "ftol": 1e-14}, **how)
        return asked["end"]

    monkeypatch.setattr(averaged_process, "minimize", spy)
    inputs, losses = sample(30, noise=0.1)
    asked["inputs"], asked["z"] = inputs, (losses - losses.mean()) / losses.std()
    start = Candidate(np.full(3, 0.5), 0.01)
    asked["found"] = fit_relevances(inputs, asked["z"], start, kernel)
    return asked


@every_kernel
def test_relevances_are_a_posteriori_and_their_slope_is_right(
    kernel: Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, rng = relevances(monkeypatch, kernel, 1), np.random.default_rng(0)
    loss, start = asked["loss"], np.log([1.0, 0.5, 0.5, 0.5, 0.01])
    np.testing.assert_allclose(asked["start"], start)
    scale_std, constant_std = averaged_process._LOG_SCALE_STD, averaged_process._LOG_CONSTANT_STD

    def by_scikit_learn(theta: FloatArray) -> float:
        model = reference(theta, kernel).fit(asked["inputs"], asked["z"])
        priors = norm.logpdf(theta[:4] - start[:4], scale=[constant_std, *[scale_std] * 3])
        return float(model.log_marginal_likelihood_value_ + priors.sum())

    thetas = start + rng.normal(size=(4, 5))
    values = np.array([loss(theta)[0] for theta in thetas])
    expected = -np.array([by_scikit_learn(theta) for theta in thetas])
    np.testing.assert_allclose(np.diff(values), np.diff(expected), rtol=1e-6)  # but for a constant
    for theta in thetas:
        numeric = approx_fprime(theta, lambda t: loss(t)[0], 1e-6)
        np.testing.assert_allclose(loss(theta)[1], numeric, rtol=1e-3, atol=1e-3)


@every_kernel
def test_relevances_end_where_nothing_is_likelier(
    kernel: Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = relevances(monkeypatch, kernel, 500)
    found, start, (low, high) = asked["found"], asked["start"], asked["bounds"].T
    end = np.log([found.variance, *found.scales, found.noise])
    assert (end >= low - 1e-9).all() and (end <= high + 1e-9).all()
    slope = approx_fprime(end, lambda t: asked["loss"](t)[0], 1e-6)
    downhill = ((slope > 0) & (end > low + 1e-6)) | ((slope < 0) & (end < high - 1e-6))
    np.testing.assert_allclose(np.where(downhill, slope, 0.0), 0.0, atol=2e-2)
    assert asked["loss"](end)[0] < asked["loss"](start)[0]
    # The prior of length scales and constant; that of the noise is flat
    std = np.array([averaged_process._LOG_CONSTANT_STD, *[averaged_process._LOG_SCALE_STD] * 3])
    prior = -0.5 * np.sum(((end - start)[:4] / std) ** 2)
    assert found.log_prior == pytest.approx(prior)


@every_kernel
def test_what_has_no_influence_has_a_long_length_scale(kernel: Kernel) -> None:
    inputs, losses = sample(40)
    z = (losses - losses.mean()) / losses.std()
    start = Candidate(np.full(3, 0.5), 0.01)
    found = fit_relevances(inputs, z, start, kernel)
    assert found.scales[2] > 2.0 * found.scales[:2].max()
    order = [2, 0, 1]
    moved = fit_relevances(inputs[:, order], z, start, kernel)
    np.testing.assert_allclose(moved.scales, found.scales[order], rtol=1e-3)


# The surrogates


def sample(
    n: int = 25, seed: int = 0, *, noise: float = 0.0, missing: bool = False
) -> tuple[FloatArray, FloatArray]:
    """Features (n, 3), of which the last does not matter, and losses (n,)."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, 3))
    y = np.sin(5.0 * X[:, 0]) + X[:, 1] ** 2 + noise * rng.normal(size=n)
    if missing:
        X[::4, 1] = np.nan
    return X, y


def test_the_averaged_process_has_a_length_scale_for_each_input() -> None:
    X, y = sample(40)
    model = AveragedProcess().fit(X, y)
    own = model.process_.candidates[-1]
    assert own.scales[2] > 2.0 * own.scales[:2].max()
    shared = uninformed_kernels(3, averaged_process._OWN_NOISES)
    assert len(model.process_.candidates) == len(shared) + 1
    (Q, y_query), plain = sample(100, seed=1), EvidenceAverage(shared, "matern52").fit(X, y)
    errors = [np.abs(one.predict(Q)[0] - y_query).mean() for one in (model, plain)]
    assert errors[0] < errors[1]
    for one in (AveragedProcess().fit(X, np.full(40, 2.0)), AveragedProcess().fit(X[:1], y[:1])):
        assert len(one.process_.candidates) == len(shared)  # nothing tells inputs apart


def test_the_averaged_process_predicts_rows_without_them() -> None:
    X, y = sample(40, noise=0.05, missing=True)
    model = AveragedProcess(max_rows=12).fit(X, y)
    held_out, rows = model.held_out(), np.zeros(40, dtype=bool)
    rows[informative_rows(y, 12)] = True
    np.testing.assert_array_equal(~np.isnan(held_out), rows)
    inputs = complete_inputs(X, np.array([1]))
    expected = EvidenceAverage(model.process_.candidates, "matern52").fit(inputs[rows], y[rows])
    np.testing.assert_allclose(held_out[rows], expected.held_out())
    # An outlier is not what the others predict, but it is what the process predicts there
    y[3] += 10.0
    model = AveragedProcess().fit(X, y)
    assert model.predict(X)[0][3] > model.held_out()[3] + 1.0


@pytest.mark.parametrize(("d", "n", "expected"), [(3, 50, 50), (20, 200, 128), (21, 200, 64)])
def test_relevances_of_many_inputs_are_judged_by_rows_that_they_were_not_fitted_to(
    d: int, n: int, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []

    def fit(inputs: Any, *others: Any) -> Any:
        seen.append(len(inputs))
        return fit_relevances(inputs, *others)

    monkeypatch.setattr(averaged_process, "fit_relevances", fit)
    X = np.random.default_rng(0).random((n, d))
    model = AveragedProcess().fit(X, X[:, 0])
    assert seen == [expected] and len(model.rows_) == min(n, 150)


def test_evaluations_under_way_come_out_as_predicted() -> None:
    (X, y), pending = sample(), np.array([[0.3, 0.6, 0.2], [0.9, 0.1, 0.7]])
    model = AveragedProcess().fit(X, y)
    before, seen = model.predict(pending), model.beside(pending)
    mean, std = seen.predict(pending)
    np.testing.assert_allclose(mean, before[0], atol=0.05 * y.std())
    assert (std < before[1]).all()
    assert seen.process_.candidates == model.process_.candidates
    np.testing.assert_array_equal(model.predict(pending), before)  # itself unchanged


@pytest.mark.parametrize("missing", [False, True])
def test_further_rows_are_taken_in_with_the_kernels_of_the_fit(missing: bool) -> None:
    X, y = sample(40, noise=0.05, missing=missing)
    model = AveragedProcess(max_rows=30).fit(X[:25], y[:25])
    before, seen = model.predict(X), model.conditioned(X, y)
    shares = zip(model.process_.candidates, model.process_.evidence_, strict=True)
    likely = [candidate for candidate, share in shares if share >= 1e-4]
    assert 0 < len(likely) < len(model.process_.candidates)
    assert list(map(id, seen.process_.candidates)) == list(map(id, likely))
    rows = informative_rows(y, 30)
    inputs = complete_inputs(X, model.flagged_)
    expected = EvidenceAverage(likely, "matern52").fit(inputs[rows], y[rows])
    np.testing.assert_array_equal(seen.predict(X), expected.predict(inputs))
    np.testing.assert_array_equal(np.flatnonzero(~np.isnan(seen.held_out())), rows)
    np.testing.assert_array_equal(model.predict(X), before)  # itself unchanged
    np.testing.assert_allclose(model.conditioned(X[:25], y[:25]).predict(X), before)


def test_rows_that_the_likely_kernels_do_not_explain_ask_all_kernels() -> None:
    """One likely kernel without noise would predict far less than any loss, and be certain."""
    rng = np.random.default_rng(3)
    X = rng.random((67, 2))
    X[:64, 0], X[64:, 0] = 0.4 + 0.6 * X[:64, 0], 0.2 + 0.15 * rng.random(3)
    everywhere = rng.random((3000, 2))
    # The second input has an effect that only the last rows can show.
    effect = np.where(X[:, 0] < 0.38, 0.3 * np.sin(25.0 * X[:, 1]), 0.0)
    y = (X[:, 0] - 0.3) ** 2 + effect
    model = AveragedProcess().fit(X[:64], y[:64])
    likely, everything = model.process_.likely, model.process_.candidates
    assert len(likely) == 1 and len(everything) == 11
    seen = model.conditioned(X, y)
    assert list(map(id, seen.process_.candidates)) == list(map(id, everything))
    alone = EvidenceAverage(likely, "matern52").fit(X, y)
    mean, std = seen.predict(everywhere)
    assert mean.min() > y.min() - 3.0 * y.std() > alone.predict(everywhere)[0].min()
    assert std[everywhere[:, 0] < 0.35].mean() > 10.0 * alone.predict(everywhere)[1].mean()


def test_the_misfit_is_the_mean_squared_error_in_predictive_deviations() -> None:
    X, y = sample(12)
    candidates = uninformed_kernels(3)
    average = EvidenceAverage(candidates, "matern52").fit(X, y)
    best = candidates[int(average.evidence_.argmax())]
    K = correlation(X, X, best.scales, "matern52") + best.noise * np.eye(12)
    z = average.z_
    np.testing.assert_allclose(average.misfit, z @ np.linalg.solve(K, z) / 12)


def test_rows_beside_running_evaluations_are_held_out_alone() -> None:
    X, y = sample(20)
    seen = AveragedProcess().fit(X, y).beside(X[:3] + 0.01)
    assert seen.held_out().shape == (20,) and not np.isnan(seen.held_out()).any()


def test_a_column_that_has_its_first_missing_value_is_fitted_anew() -> None:
    X, y = sample(40)
    model = AveragedProcess(max_rows=30).fit(X[:25], y[:25])
    X[[26, 27], 1] = np.nan
    seen = model.conditioned(X, y)
    assert seen.flagged_.tolist() == [1] and model.flagged_.tolist() == []
    np.testing.assert_array_equal(
        seen.predict(X), AveragedProcess(max_rows=30).fit(X, y).predict(X)
    )


def test_noise_is_learnt_where_there_is_some() -> None:
    rng = np.random.default_rng(3)
    X = rng.random((40, 3))
    y = 3.0 * (X[:, 0] - 0.4) ** 2 + X[:, 1]
    smooth = AveragedProcess().fit(X, y)
    assert smooth.noise_ < 1e-3 and len(smooth.process_.candidates) == 11
    noisy = AveragedProcess().fit(X, y + 0.5 * y.std() * rng.standard_normal(40))
    # The kernel that a second ascent has found is the likeliest one.
    assert 0.03 < noisy.noise_ < 0.6 and len(noisy.process_.candidates) == 12
    assert noisy.process_.likeliest is noisy.process_.candidates[-1]


def test_the_first_candidates_alone_are_their_average() -> None:
    X, y = sample(20)
    candidates = uninformed_kernels(3)
    part = EvidenceAverage(candidates, "matern52").fit(X, y).first(4)
    alone = EvidenceAverage(candidates[:4], "matern52").fit(X, y)
    np.testing.assert_array_equal(part.evidence_, alone.evidence_)
    np.testing.assert_array_equal(part.predict(X), alone.predict(X))
    assert part.misfit == alone.misfit and part.likeliest is alone.likeliest


def test_what_numbers_imply_has_no_flag() -> None:
    X, y = sample(40)
    X[X[:, 0] < 0.5, 1] = np.nan
    model, flagged = AveragedProcess(implied=(1,)).fit(X, y), AveragedProcess().fit(X, y)
    assert model.flagged_.tolist() == [] and flagged.flagged_.tolist() == [1]
    filled = AveragedProcess().fit(np.nan_to_num(X, nan=0.5), y)
    np.testing.assert_array_equal(model.predict(X), filled.predict(np.nan_to_num(X, nan=0.5)))
    # Its first missing value is no reason to fit anew.
    early = AveragedProcess(implied=(1,)).fit(np.nan_to_num(X[:25], nan=0.5), y[:25])
    assert early.conditioned(X, y).process_.candidates == tuple(early.process_.likely)


def fitted(X: FloatArray, y: FloatArray, **arguments: int) -> GaussianProcess:
    return GaussianProcess(**{"random_state": 0, **arguments}).fit(X, y)


def test_std_is_that_of_scikit_learn_without_the_noise() -> None:
    X, y = sample(noise=0.2)
    model, Q = fitted(X, y), sample(10, seed=1)[0]
    z_mean, z_std = model.regressor_.predict(Q, return_std=True)
    noise = model.regressor_.kernel_.k2.noise_level
    assert noise > 1e-3
    expected = y.mean() + y.std() * z_mean, y.std() * np.sqrt(z_std**2 - noise)
    np.testing.assert_allclose(model.predict(Q), expected)


def test_more_starts_are_never_worse() -> None:
    models = [fitted(*sample(noise=0.1), n_restarts=n) for n in (0, 2, 5)]
    values = [model.regressor_.log_marginal_likelihood_value_ for model in models]
    assert values == sorted(values)


@pytest.mark.parametrize("noise", [0.0, 10.0])
def test_hyperparameters_stay_in_their_bounds_without_warning(noise: float) -> None:
    # Warnings are errors: scikit-learn's own search would warn at the bounds touched here.
    kernel = fitted(*sample(40, noise=noise)).regressor_.kernel_
    assert (kernel.theta >= kernel.bounds[:, 0]).all()
    assert (kernel.theta <= kernel.bounds[:, 1]).all()
    if not noise:  # a column without effect gets the longest length scale
        assert np.argmax(kernel.k1.k2.length_scale) == 2


@pytest.mark.parametrize("seed", range(3))
def test_constant_column_keeps_its_length_scale(seed: int) -> None:
    X, y = sample(noise=0.1)
    X[:, 2] = 0.7
    kernel = fitted(X, y, n_restarts=4, random_state=seed).regressor_.kernel_
    assert kernel.k1.k2.length_scale[2] == pytest.approx(1.0, rel=1e-6)


def test_rows_beyond_the_limit_are_left_out() -> None:
    X, y = sample(40)
    model = fitted(X, y, max_rows=10)
    assert model.regressor_.X_train_.shape == (10, 3)
    assert all(X[row] in model.regressor_.X_train_ for row in (np.argmin(y), np.argmax(y)))
    assert (model.y_centre_, model.y_scale_) == pytest.approx((y.mean(), y.std()))


@pytest.mark.parametrize(("scale", "shift"), [(1e-12, 0.0), (1e12, 0.0), (0.1, -7.0), (1.0, 1e6)])
def test_affine_map_of_losses(scale: float, shift: float) -> None:
    (X, y), Q = sample(noise=0.1), sample(20, seed=1)[0]
    mean, std = fitted(X, y).predict(Q)
    mapped_mean, mapped_std = fitted(X, scale * y + shift).predict(Q)
    # The search ends at slightly different points.
    np.testing.assert_allclose((mapped_mean - shift) / scale, mean, atol=1e-3)
    np.testing.assert_allclose(mapped_std / scale, std, atol=1e-3)


def test_order_of_rows_and_queries_does_not_matter() -> None:
    (X, y), Q = sample(noise=0.1, missing=True), sample(20, seed=1)[0]
    order = np.random.default_rng(1).permutation(len(X))
    expected = np.array(fitted(X, y).predict(Q))
    np.testing.assert_allclose(fitted(X[order], y[order]).predict(Q), expected, atol=1e-3)
    np.testing.assert_allclose(fitted(X, y).predict(Q[::-1]), expected[:, ::-1], atol=1e-9)


def test_smooth_losses_are_interpolated_and_far_away_the_prior_returns() -> None:
    (X, y), (Q, y_query) = sample(40), sample(50, seed=1)
    model = fitted(X, y)
    mean, std = model.predict(X)
    np.testing.assert_allclose(mean, y, atol=0.01 * y.std())
    assert (std < 0.01 * y.std()).all()
    mean, std = model.predict(Q)
    assert np.corrcoef(mean, y_query)[0, 1] > 0.99
    assert (np.abs(mean - y_query) < 5.0 * std + 1e-3).all()
    mean, std = model.predict(np.full((1, 3), 1e9))
    prior = y.std() * np.sqrt(model.regressor_.kernel_.k1.k1.constant_value)
    assert (mean[0], std[0]) == pytest.approx((y.mean(), prior))


@pytest.mark.parametrize("n", [1, 2, 20])
def test_constant_losses(n: int) -> None:
    X = np.random.default_rng(0).random((n, 2))
    model = fitted(X, np.full(n, 0.1))
    mean, std = model.predict(np.vstack([X, [[0.5, np.nan], [1e9, 1e9]]]))
    np.testing.assert_array_equal(mean, 0.1)
    assert (std > 0.0).all() and (std[:n] <= 0.1).all() and std[-1] == pytest.approx(1.0)


def test_contradicting_duplicates_are_averaged_and_many_equal_rows_are_solvable() -> None:
    X = np.repeat([[0.0], [0.5], [1.0]], 10, axis=0)
    y = np.repeat([1.0, 3.0, 2.0], 10) + np.tile([-0.5, 0.5], 15)
    mean, std = fitted(X, y).predict(X[::10])
    np.testing.assert_allclose(mean, [1.0, 3.0, 2.0], atol=0.1)
    # The noise of a single loss is 0.5, that of the mean of ten is 0.16.
    np.testing.assert_allclose(std, 0.5 / np.sqrt(10.0), rtol=0.3)
    X, y = np.vstack([np.full((150, 2), 0.5), [[0.5, 0.6]]]), np.append(np.zeros(150), 1.0)
    mean, std = fitted(X, y).predict(X)
    np.testing.assert_allclose(mean, y, atol=0.05)
    assert np.isfinite(std).all()


def test_a_flag_tells_missing_from_the_imputed_value() -> None:
    X = np.random.default_rng(0).random((40, 2))
    X[:, 1] = np.where(np.arange(40) % 2 == 0, np.nan, 0.4 + 0.2 * X[:, 1])
    model = fitted(X, np.isnan(X[:, 1]) + 0.1 * X[:, 0])
    np.testing.assert_array_equal(model.flagged_, [1])
    mean, _ = model.predict(np.array([[0.5, np.nan], [0.5, 0.5]]))
    np.testing.assert_allclose(mean, [1.05, 0.05], atol=0.05)
    # A value missing only at prediction is imputed
    X, y = sample()
    missing, imputed = (np.array([[0.2, value, 0.3]]) for value in (np.nan, 0.5))
    assert fitted(X, y).predict(missing) == fitted(X, y).predict(imputed)
    # A column of nothing but missing values
    X[:, 2] = np.nan
    model, present = fitted(X, y), np.where(np.isnan(X), 0.5, X)
    np.testing.assert_allclose(model.predict(X)[0], y, atol=0.05)
    assert (model.predict(present)[1] > model.predict(X)[1]).all()


def test_evaluations_of_an_old_range_far_away_do_not_spoil_the_others() -> None:
    """With many columns distances are matrix products, which would round the near ones away."""
    rng = np.random.default_rng(3)
    near, y = rng.random((30, 30)), rng.random(30)
    far = near[:1].copy()
    far[0, 0] = 1e15
    rows, losses = np.vstack([near, far]), np.append(y, 5.0)
    mean, std = AveragedProcess().fit(rows, losses).predict(near)
    assert np.isfinite(mean).all() and np.isfinite(std).all()
    assert complete_inputs(far, np.empty(0, dtype=np.intp))[0, 0] == 1000.0
