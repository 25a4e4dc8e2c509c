"""The factorisation: likelihood, posterior, training, files, bad input, which pipeline is next."""

from __future__ import annotations

import io
import json
import zipfile
from contextlib import nullcontext
from dataclasses import fields
from pathlib import Path
from typing import Any

import idea_pictures
import numpy as np
import pytest
from scipy.optimize import check_grad
from scipy.stats import multivariate_normal
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

from automl_plugins.arrays import FloatArray
from automl_plugins.meta.factorization import (
    FactorizationFileError,
    MatrixFactorization,
    Recommender,
    complementary,
    processes,
)
from automl_plugins.meta.factorization.processes import (
    Kernel,
    Parameters,
    ScalePrior,
    covariance,
    objective,
    scales,
)
from automl_plugins.meta.factorization.recommendation import most_improving
from automl_plugins.meta.factorization.training import _Adam, _descend
from automl_plugins.meta.tasks import by_distance

KERNELS: list[Kernel] = ["se", "linear"]


def _parameters(n: int, q: int, seed: int = 0) -> Parameters:
    rng = np.random.default_rng(seed)
    return Parameters(
        rng.normal(size=(n, q)),
        rng.normal(-1.0, 0.3, n),
        rng.normal(0.0, 0.3, q),
        np.array([0.2]),
    )


def _losses(n: int, d: int, missing: float, seed: int = 0) -> FloatArray:
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n, d))
    z[rng.random((n, d)) < missing] = np.nan
    return z


def _low_rank(n: int = 40, d: int = 30, seed: int = 0) -> FloatArray:
    """Losses of data sets with different levels and ranges, of rank 3."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n, 3)) @ rng.normal(size=(3, d)) + rng.normal(0.0, 0.05, (n, d))
    return rng.uniform(0.0, 1.0, d) + rng.uniform(0.5, 2.0, d) * (z + rng.normal(size=(n, 1)))


@pytest.mark.parametrize("missing", [0.0, 0.4])
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("n", [7, 3])  # more and fewer pipelines than latent dimensions
def test_the_likelihood_is_that_of_scipy(kernel: Kernel, missing: float, n: int) -> None:
    p, z = _parameters(n, 4), _losses(n, 5, missing)
    C = covariance(kernel, p) + np.diag(p.noise)
    expected = 0.0
    for column in z.T:
        seen = ~np.isnan(column)
        if seen.any():
            part = multivariate_normal(cov=C[np.ix_(seen, seen)])
            expected -= float(part.logpdf(column[seen]))
    assert objective(kernel, p, z)[0] == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("missing", [0.0, 0.4])
@pytest.mark.parametrize("kernel", KERNELS)
def test_gradients_are_those_of_finite_differences(kernel: Kernel, missing: float) -> None:
    p, z = _parameters(7, 3), _losses(7, 5, missing)
    shapes = {f.name: getattr(p, f.name).shape for f in fields(p)}
    ends = np.cumsum([np.prod(shape) for shape in shapes.values()])[:-1].astype(int)

    def at(values: FloatArray) -> tuple[float, Parameters]:
        parts = zip(shapes.items(), np.split(values, ends), strict=True)
        return objective(kernel, Parameters(**{n: v.reshape(s) for (n, s), v in parts}), z)

    def flat(q: Parameters) -> FloatArray:
        return np.concatenate([getattr(q, name).ravel() for name in shapes])

    assert check_grad(lambda v: at(v)[0], lambda v: flat(at(v)[1]), flat(p)) < 2e-5


def test_the_posterior_is_that_of_scikit_learn() -> None:
    model = MatrixFactorization(3, scaling=None, epochs=3).fit(_low_rank())
    rows, losses = np.array([4, 17, 30, 2]), np.array([0.3, -0.2, 1.0, 0.1])
    mean, std = model.posterior(rows, losses)
    amplitude = float(np.exp(model.parameters_.log_amplitude[0]))
    other = GaussianProcessRegressor(
        ConstantKernel(amplitude) * RBF(1.0), alpha=model.noise_[rows], optimizer=None
    ).fit(model.embedding_[rows], losses - model.mean_[rows])
    expected, deviation = other.predict(model.embedding_, return_std=True)
    np.testing.assert_allclose(mean, model.mean_ + expected, atol=1e-8)
    np.testing.assert_allclose(std**2, deviation**2 + model.noise_, atol=1e-8)


def test_the_linear_posterior_is_bayesian_regression_in_the_places() -> None:
    model = MatrixFactorization(3, kernel="linear", scaling=None, epochs=2).fit(_low_rank())
    rows, losses = np.array([4, 17, 30, 2, 9]), np.array([0.3, -0.2, 1.0, 0.1, 0.7])
    X, noise = model.parameters_.places, model.noise_
    precision = np.eye(3) + (X[rows].T / noise[rows]) @ X[rows]
    weights = np.linalg.solve(precision, (X[rows].T / noise[rows]) @ (losses - model.mean_[rows]))
    mean, std = model.posterior(rows, losses)
    np.testing.assert_allclose(mean, model.mean_ + X @ weights, atol=1e-8)
    spread = np.einsum("nq,nq->n", X @ np.linalg.inv(precision), X)
    np.testing.assert_allclose(std**2, spread + noise, atol=1e-8)


def test_pipelines_under_way_lower_the_deviation_and_leave_no_trace() -> None:
    model = MatrixFactorization(3, scaling=None, epochs=0).fit(_low_rank())
    conditioned = model.conditioned()
    conditioned.observe(4)
    conditioned.observe(4)  # twice is once
    before = conditioned.posterior(np.array([0.3]))
    after = conditioned.deviation_after([7, 9])
    np.testing.assert_allclose(after, model.posterior([4, 7, 9], [0.3, 1.0, 2.0])[1])
    for a, b in zip(conditioned.posterior(np.array([0.3])), before, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(
    ("kernel", "factor", "offset"),
    [("se", 1.0, 0.0), ("linear", 1.0, 0.0), ("se", 1000.0, 0.0), ("se", 1000.0, -5000.0)],
)
def test_a_held_out_data_set_is_predicted_from_a_few_pipelines(
    kernel: Kernel, factor: float, offset: float
) -> None:
    """In another unit, too."""
    Y = factor * _low_rank() + offset
    model = MatrixFactorization(3, kernel=kernel, epochs=20).fit(_low_rank()[:, :24])
    rows, others = np.arange(0, 40, 4), np.flatnonzero(np.arange(40) % 4)
    errors = []
    for losses in Y[:, 24:].T:
        mean, std = model.posterior(rows, losses[rows])
        errors.append(np.mean((mean - losses)[others] ** 2) / np.var(losses[others]))
        assert (std > 0).all()
    assert np.mean(errors) < 0.1


@pytest.mark.parametrize(
    ("scaling", "shift", "stretch"),
    [
        ("regret", [1.0, 5.0, 0.0], [2.0, 1.0, 1.0]),
        ("standardised", [2.0, 5.0, 0.0], [1.0, 1.0, 1.0]),
        (None, [0.0] * 3, [1.0] * 3),
    ],
)
def test_scales_of_data_sets(scaling: Any, shift: list[float], stretch: list[float]) -> None:
    y = np.array([[1.0, 5.0, np.nan], [3.0, 5.0, np.nan], [np.nan, 5.0, np.nan]])
    np.testing.assert_array_equal(scales(y, scaling), [shift, stretch])


def test_the_scale_is_found_where_the_losses_tell_it() -> None:
    rng = np.random.default_rng(0)
    prior = ScalePrior.learn(rng.uniform(0, 1, 50), rng.uniform(0.5, 2, 50), "regret")
    mean = rng.normal(size=60)
    L = 1e-2 * np.eye(60)
    shift, stretch = prior.infer(0.4 + 1.3 * mean, mean, L)
    assert shift == pytest.approx(0.4, abs=0.1)
    assert stretch == pytest.approx(1.3, rel=0.1)


@pytest.mark.parametrize("value", [0.5, 1e-200, 1e6])
def test_losses_that_are_equal_but_for_rounding_count_as_equal(value: float) -> None:
    model = MatrixFactorization(3, epochs=3).fit(_low_rank())
    nearly = np.array([value, np.nextafter(value, 0.0), value, value, np.nextafter(value, 1e9)])
    mean, std = model.posterior(range(5), np.full(5, value))
    near_mean, near_std = model.posterior(range(5), nearly)
    np.testing.assert_allclose(near_mean, mean, rtol=1e-6)
    np.testing.assert_allclose(near_std, std, rtol=1e-6)


def test_losses_that_are_all_zero_have_a_scale_of_the_known_data_sets() -> None:
    model = MatrixFactorization(3, epochs=3).fit(_low_rank())
    conditioned = model.conditioned()
    for row in range(5):
        conditioned.observe(row)
    *_, stretch = conditioned.scaled_posterior(np.zeros(5))
    known = np.exp(model.scale_prior_.log_stretch)
    assert known.min() <= stretch <= known.max()


@pytest.mark.parametrize(
    "losses",
    [
        [1e308, -1e308, 1e308],
        [1.7e308] * 3,
        [1e308, 0.0, 1e-308],
        [1e-323] * 3,
        [0.0, 5e-324, 1e-320],
    ],
)
def test_the_largest_losses_give_finite_answers(losses: list[float]) -> None:
    Y = _low_rank()
    model = MatrixFactorization(3, epochs=3).fit(Y)
    for found in model.posterior(range(3), losses):
        assert np.isfinite(found).all()
    recommender = Recommender(model, Y, complementary(Y, Y.mean(axis=1), 3), n_start=3)
    allowed = np.arange(len(Y)) >= 3
    chosen = recommender.next([0, 1, 2], np.array(losses), [], allowed)
    assert chosen.loss is not None and chosen.std is not None
    assert np.isfinite([chosen.loss, chosen.std]).all()


@pytest.mark.parametrize("scaling", ["regret", "standardised"])
def test_a_model_of_the_largest_losses_is_finite(scaling: Any) -> None:
    Y = _low_rank()
    Y[3, 2], Y[4, 2], Y[5, 5] = 1.2e308, -1.2e308, 1e308
    model = MatrixFactorization(3, epochs=1, scaling=scaling).fit(Y)
    assert np.isfinite(model.embedding_).all() and np.isfinite(model.scale_prior_.deviation)
    assert np.isfinite(model.posterior([0, 1], [0.1, 0.2])).all()


def test_losses_too_far_apart_to_be_taken_as_they_are() -> None:
    Y = _low_rank()
    Y[3, 2], Y[4, 2], Y[5, 5] = 1e20, -1e20, 1e20
    with pytest.raises(ValueError, match="too far apart to be taken as they are: scale them"):
        MatrixFactorization.paper(epochs=3).fit(Y)


def test_a_loss_far_from_all_others_leaves_shares() -> None:
    Y = _low_rank()
    model = MatrixFactorization(3, epochs=1).fit(Y)
    recommender = Recommender(model, Y, complementary(Y, Y.mean(axis=1), 3), n_start=3)
    allowed = np.arange(len(Y)) >= 3
    shares = recommender.next([0, 1, 2], np.array([0.1, 0.2, 1e300]), [], allowed).shares
    assert 0.0 < shares.sum() <= 1.0
    # Together they are the part of the variance that the observed losses leave.
    losses, conditioned = np.array([0.1, 0.4, 0.2]), model.conditioned()
    shares = recommender.next([0, 1, 2], losses, [], allowed).shares
    for row in range(3):
        conditioned.observe(row)
    _, std, *_ = conditioned.scaled_posterior(losses)
    left = np.mean(std**2) / np.mean(model.prior_variance)
    assert shares.sum() == pytest.approx(left) and left < 0.95


@pytest.mark.parametrize("kernel", KERNELS)
def test_training_raises_the_likelihood(kernel: Kernel) -> None:
    Y = _low_rank()
    options: dict[str, Any] = {"kernel": kernel, "scaling": None, "validation": 0.0}
    z = Y - MatrixFactorization(3, epochs=0, **options).fit(Y).mean_[:, None]
    losses = [
        objective(kernel, MatrixFactorization(3, epochs=e, **options).fit(Y).parameters_, z)[0]
        for e in (0, 40)
    ]
    assert losses[1] < losses[0] - 1.0


def test_without_training_the_linear_model_is_the_singular_value_decomposition() -> None:
    Y = _low_rank()
    model = MatrixFactorization(3, kernel="linear", scaling=None, epochs=0, own_share=0.0).fit(Y)
    Z = Y - Y.mean(axis=1, keepdims=True)
    U, s, _ = np.linalg.svd(Z, full_matrices=False)
    np.testing.assert_allclose(
        model.embedding_ @ model.embedding_.T, (U[:, :3] * s[:3] ** 2) @ U[:, :3].T / 30, atol=1e-9
    )
    left = (Z**2).mean(axis=1) - (model.embedding_**2).sum(axis=1)
    np.testing.assert_allclose(model.noise_, left, rtol=0.02)


def test_the_same_seed_is_the_same_model() -> None:
    Y = _low_rank()
    Y[np.random.default_rng(1).random(Y.shape) < 0.2] = np.nan
    a, b = (MatrixFactorization(3, epochs=4, block=16, batch=8).fit(Y) for _ in range(2))
    np.testing.assert_array_equal(a.embedding_, b.embedding_)
    other = MatrixFactorization(3, epochs=4, block=16, batch=8, random_state=1).fit(Y)
    assert not np.array_equal(other.embedding_, a.embedding_)


def test_early_stopping_keeps_the_best_epoch() -> None:
    Y = _low_rank()
    model = MatrixFactorization(3, epochs=60, learning_rate=0.1, patience=3).fit(Y)
    best = int(np.argmin(model.scores_))
    assert best > 0 and len(model.scores_) == best + 4  # the start, and three without a gain
    sooner = MatrixFactorization(3, epochs=60, learning_rate=0.1, patience=2).fit(Y)
    assert sooner.scores_ == model.scores_[:-1]
    np.testing.assert_array_equal(sooner.embedding_, model.embedding_)


@pytest.mark.parametrize("validation", [0.0, 0.2])
def test_each_epoch_of_each_training_is_reported(
    validation: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[int, int, float]] = []
    monkeypatch.setattr(
        MatrixFactorization, "_progress", lambda model: nullcontext(lambda *now: seen.append(now))
    )
    model = MatrixFactorization(3, epochs=4, validation=validation).fit(_low_rank())
    judged = len(model.scores_[1:])
    assert [score for _, _, score in seen[:judged]] == model.scores_[1:]
    stop = int(np.argmin(model.scores_)) if judged else 4
    assert [now[:2] for now in seen[judged:]] == [(i, stop) for i in range(1, stop + 1)]
    assert stop > 0 and np.isnan([score for _, _, score in seen[judged:]]).all()


def test_a_progress_bar_counts_both_trainings(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("tqdm")
    MatrixFactorization(3, epochs=3, validation=0.2, progress=True).fit(_low_rank())
    MatrixFactorization(3, epochs=2, validation=0.0, progress=True).fit(_low_rank())
    shown = capsys.readouterr().err
    assert "score=" in shown and "2/2" in shown


def test_a_data_set_with_a_single_loss_is_not_held_out() -> None:
    Y = _low_rank(d=15)
    Y[1:, np.random.default_rng(0).permutation(15)[0]] = np.nan  # the first in the draw
    model = MatrixFactorization(3, epochs=3).fit(Y)
    assert len(set(model.scores_)) == 4
    # Without another one there is none to judge by, and all epochs count.
    single = np.where(np.eye(15), Y[:15], np.nan)
    assert MatrixFactorization(3, epochs=3).fit(single).scores_ == []


@pytest.mark.parametrize("shape", [(15, 6), (6, 15)])
def test_without_a_number_there_are_as_many_components_as_the_matrix_can_have(
    shape: tuple[int, int],
) -> None:
    Y = np.random.default_rng(0).random(shape)
    found = MatrixFactorization(None, epochs=1).fit(Y)
    assert found.embedding_.shape == (shape[0], 6)


AWKWARD = {
    "one data set": np.array([[0.1], [0.3], [0.2]]),
    "one pipeline": np.array([[0.1, 0.3, 0.2]]),
    "one entry": np.array([[0.5]]),
    "constant": np.full((5, 4), 0.25),
    "constant data set": np.array([[0.1, 1.0], [0.2, 1.0], [0.3, 1.0]]),
    "empty data set": np.array([[0.1, np.nan], [0.2, np.nan], [0.3, np.nan]]),
    "empty pipeline": np.array([[0.1, 0.4], [np.nan, np.nan], [0.3, 0.1]]),
    "tiny": 1e-300 * np.arange(6.0).reshape(3, 2),
    "huge": 1e200 * np.arange(6.0).reshape(3, 2),
    "integers": np.arange(6).reshape(3, 2),
}


REFUSED = [
    *(("n_components", 0), ("kernel", "rbf"), ("scaling", "minmax")),
    *(("noise", "none"), ("own_share", 1.0), ("epochs", -1), ("learning_rate", 0.0)),
    *(
        ("block", 1),
        ("batch", 0),
        ("validation", 1.0),
        ("patience", 0),
        ("optimizer", "newton"),
    ),
]


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("name", AWKWARD)
def test_awkward_matrices_give_finite_answers(name: str, kernel: Kernel) -> None:
    Y = AWKWARD[name]
    model = MatrixFactorization(kernel=kernel, epochs=2).fit(Y)
    assert model.embedding_.shape == (len(Y), 100)
    for rows, losses in (([], []), ([0], [0.3]), (list(range(len(Y))), [0.2] * len(Y))):
        mean, std = model.posterior(rows, losses)
        assert np.isfinite(mean).all() and np.isfinite(std).all() and (std >= 0).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        *(({name: value}, name) for name, value in REFUSED),
        ({"Y": np.zeros(3)}, "shape"),
        ({"Y": np.zeros((0, 3))}, "shape"),
        ({"Y": np.full((2, 2), np.nan)}, "no loss at all"),
        ({"Y": np.array([[1.0, np.inf]])}, "pipeline 0 on data set 1"),
        ({"rows": [40]}, "rows must lie in"),
        ({"rows": [-1]}, "rows must lie in"),
        ({"rows": [0, 1]}, "one shape"),
        ({"rows": [0.5]}, "integers"),
        ({"losses": [np.nan]}, "finite"),
    ],
)
def test_what_is_refused(options: Any, message: str) -> None:
    given = {"Y": _low_rank(), "rows": [0], "losses": [0.1], "epochs": 0} | options
    Y, rows, losses = (given.pop(name) for name in ("Y", "rows", "losses"))
    with pytest.raises(ValueError, match=message):
        MatrixFactorization(**given).fit(Y).posterior(rows, losses)


@pytest.mark.parametrize(
    "options", [{"n_components": 2.5}, {"batch": True}, {"block": None}, {"learning_rate": "x"}]
)
def test_arguments_of_the_wrong_type_are_refused(options: Any) -> None:
    (name,) = options
    with pytest.raises(TypeError, match=f"{name} must be .*, got"):
        MatrixFactorization(**options).fit(_low_rank())


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_saved_model_comes_back(
    tmp_path: Path, kernel: Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = MatrixFactorization(4, kernel=kernel, epochs=2).fit(_low_rank())
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    path = "~/model.npz"
    model.save(path)
    back = MatrixFactorization.load(path)
    assert back.get_params() == model.get_params()
    assert back.scores_ == model.scores_
    assert [p.name for p in tmp_path.iterdir()] == ["model.npz"]
    for a, b in zip(
        back.posterior([1, 2], [0.5, 0.1]), model.posterior([1, 2], [0.5, 0.1]), strict=True
    ):
        np.testing.assert_array_equal(a, b)


def test_numbers_of_numpy_are_saved(tmp_path: Path) -> None:
    options: Any = {"random_state": np.int64(3), "learning_rate": np.float32(0.5)}
    path = tmp_path / "model.npz"
    MatrixFactorization(np.int64(2), epochs=0, **options).fit(_low_rank()).save(path)
    back = MatrixFactorization.load(path)
    assert (back.n_components, back.random_state, back.learning_rate) == (2, 3, 0.5)


def test_files_that_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.npz"
    MatrixFactorization(4, epochs=0).fit(_low_rank()).save(path)
    whole = path.read_bytes()
    with np.load(path) as archive:
        arrays = dict(archive)
    header = json.loads(str(arrays["header"]))
    for n in (0, 10, len(whole) // 2, len(whole) - 10):
        path.write_bytes(whole[:n])
        with pytest.raises(FactorizationFileError, match="damaged"):
            MatrixFactorization.load(path)
    for place in (8, 10):  # of an entry: whether it is encrypted, and how it is packed
        damaged = bytearray(whole)
        damaged[whole.index(b"PK\x01\x02") + place] |= 0x41
        path.write_bytes(damaged)
        with pytest.raises(FactorizationFileError, match="damaged"):
            MatrixFactorization.load(path)
    for changes, message in (
        ({"header": json.dumps(header | {"version": 99})}, "version 99"),
        ({"header": json.dumps(header | {"format": "another"})}, "another"),
        ({"mean": arrays["mean"][:-1]}, "mean"),
        ({"line": np.zeros(3)}, "line must be finite and have shape"),
        ({"line": np.array([0.0, np.nan])}, "line must be finite"),
        ({"log_stretch": arrays["log_stretch"][None]}, "log_stretch must be"),
        ({"log_stretch": np.full(3, np.inf)}, "log_stretch must be finite"),
        ({"deviation": np.zeros(1)}, "deviation must be finite and have shape"),
        ({"deviation": -1.0}, "deviation must be >= 0"),
    ):
        np.savez(path, **(arrays | {name: np.array(v) for name, v in changes.items()}))
        with pytest.raises(FactorizationFileError, match=message):
            MatrixFactorization.load(path)
    with pytest.raises(FileNotFoundError):
        MatrixFactorization.load(tmp_path / "none.npz")


def test_a_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "model.npz"
    model = MatrixFactorization(2, epochs=0).fit(_low_rank())
    model.save(path)
    before = path.read_bytes()
    model.random_state = object()  # type: ignore[assignment]  # no JSON
    with pytest.raises(TypeError):
        model.save(path)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["model.npz"]


def test_the_first_step_of_adam_is_as_long_as_the_rate() -> None:
    """Kingma and Ba 2015, algorithm 1: without the correction of the moments it is 3.2 times."""
    p = _parameters(4, 2)
    before = p.places.copy()
    gradient = Parameters(**{f.name: np.ones_like(getattr(p, f.name)) for f in fields(p)})
    _descend(p, _Adam(p).direction(gradient, np.arange(4)), np.arange(4), 0.01)
    np.testing.assert_allclose(before - p.places, 0.01, rtol=1e-6)


@pytest.mark.parametrize(
    ("gaps", "expected"),
    [
        ([0.0, 2.0, 4.0, np.inf], np.exp([0.0, -2.0, -8.0, -np.inf])),  # half the median: width 1
        ([0.0, 0.0, 0.0, 3.0], [1.0, 1.0, 1.0, 0.0]),
        ([1e6] * 4, np.ones(4)),  # no underflow
    ],
)
def test_weights_of_data_sets(gaps: list[float], expected: Any) -> None:
    np.testing.assert_allclose(by_distance(np.array(gaps)), expected / np.sum(expected))


def test_the_portfolio_follows_the_weights() -> None:
    # Pipeline d is the best of data set d, pipeline 3 good on all.
    z = np.array([[0.0, 1.0, 1.0], [1.0, 0.0, 1.0], [1.0, 1.0, 0.0], [0.3, 0.3, 0.3]])
    means = z.mean(axis=1)
    assert complementary(z, means, 1)[0].row == 3
    first, second = complementary(z, means, 2, np.array([0.1, 0.8, 0.1]))
    assert (first.row, second.row) == (1, 3)
    np.testing.assert_allclose(first.shares, [0.0, 1.0, 0.0])
    np.testing.assert_allclose(second.shares, [0.5, 0.0, 0.5])


def test_without_any_improvement_the_smallest_mean_is_chosen() -> None:
    mean = np.array([3.0, 1.0, 2.0])
    assert most_improving(mean, np.zeros(3), -1.0, 0.0, np.array([0, 2])) == 2
    assert most_improving(mean, np.array([9.0, 0.1, 0.1]), 1.0, 0.0, np.arange(3)) == 0


def test_single_precision_changes_hardly_anything(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    z = rng.normal(size=(300, 5)) @ rng.normal(size=(5, 60)) + 0.1 * rng.normal(size=(300, 60))
    model = MatrixFactorization(20, epochs=0).fit(z)
    rows = rng.permutation(300)[:280]  # more than there is room for at first
    mean, std = model.posterior(rows, z[rows, 0])
    monkeypatch.setattr(processes, "_SINGLE", 1)
    single_mean, single_std = model.posterior(rows, z[rows, 0])
    assert float(np.abs(single_mean - mean).max()) < 1e-2 * float(std.min())
    np.testing.assert_allclose(single_std, std, rtol=1e-2)
    assert not np.array_equal(single_std, std)


def test_a_bomb_of_arrays_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.npz"
    for content in (_bomb(), _packed_object()):
        path.write_bytes(content)
        with pytest.raises(FactorizationFileError, match="damaged"):
            MatrixFactorization.load(path)


def test_the_picture_of_the_page_shows_192_pipelines() -> None:
    dots = idea_pictures.pmf().axes[0].collections
    points = [len(np.asarray(of_learner.get_offsets())) for of_learner in dots]
    assert points == [64, 64, 64]


def _bomb() -> bytes:
    """An npz file that says it holds 4 GB."""
    file = io.BytesIO()
    np.savez_compressed(file, a=np.zeros(3))
    with zipfile.ZipFile(file) as archive:
        size = archive.infolist()[0].file_size.to_bytes(4, "little")
    head, _, last = file.getvalue().rpartition(size)  # of the archive's directory
    return head + (2**32 - 2).to_bytes(4, "little") + last


def _packed_object() -> bytes:
    file = io.BytesIO()
    np.savez(file, a=np.array([Path], dtype=object))
    return file.getvalue()
