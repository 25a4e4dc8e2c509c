"""PretrainedProcess: what earlier tasks teach a Gaussian process."""

from __future__ import annotations

import pickle
from collections.abc import Callable

import numpy as np
import pytest
from ConfigSpace import ConfigurationSpace, Float

from automl_plugins.arrays import FloatArray
from automl_plugins.meta import MetaDataset, TaskRecord
from automl_plugins.surrogates import (
    AveragedProcess,
    PretrainedProcess,
    Sources,
    TaskFunctions,
)
from automl_plugins.surrogates.averaged_process import Candidate, EvidenceAverage
from automl_plugins.surrogates.gaussian_process import correlation

Loss = Callable[[FloatArray], FloatArray]  # of inputs (n, 2)

CURVES: dict[str, Loss] = {
    "wave": lambda x: np.sin(6.0 * x[:, 0]),
    "shifted": lambda x: np.cos(6.0 * x[:, 0]),
    "slope": lambda x: 2.0 * x[:, 1],
}


def remember(tasks: dict[str, Loss], n: int = 60) -> MetaDataset:
    space = ConfigurationSpace()
    space.add(Float("x", (0.0, 1.0)), Float("y", (0.0, 1.0)))
    places = np.random.default_rng(3).uniform(size=(n, 2))
    configurations = [{"x": float(x), "y": float(y)} for x, y in places]
    records = [
        TaskRecord(name, configurations, loss(places), space=space) for name, loss in tasks.items()
    ]
    return MetaDataset.from_records(records, space)


def functions_of(tasks: dict[str, Loss], n: int = 60) -> TaskFunctions:
    memory = remember(tasks, n)
    return TaskFunctions.fit(Sources.fit(memory), memory)


def draw(n: int, seed: int = 0) -> FloatArray:
    return np.random.default_rng(seed).uniform(size=(n, 2))


def error(model: AveragedProcess, loss: Loss, seed: int = 1) -> float:
    """Root mean square error at 200 places, in deviations of the losses."""
    new = draw(200, seed)
    predicted, _ = model.predict(new)
    return float(np.sqrt(np.mean((predicted - loss(new)) ** 2)) / loss(new).std())


# --- linear inputs ----------------------------------------------------------------------------


def test_linear_inputs_are_those_of_a_bayesian_regression() -> None:
    """With hardly any process the mean and deviation are those of ridge regression."""
    rng = np.random.default_rng(0)
    x, B, new = rng.uniform(size=(12, 1)), rng.normal(size=(12, 2)), rng.normal(size=(5, 2))
    y = B @ [1.5, -0.5] + 0.1 * rng.normal(size=12)
    small, noise, prior = 1e-9, 0.05, np.array([2.0, 0.7])
    candidate = Candidate(np.ones(1), noise, 0.0, small, prior / small)
    model = EvidenceAverage([candidate], "matern52").fit(np.hstack([x, B]), y)
    mean, std = model.predict(np.hstack([np.zeros((5, 1)), new]))
    z = (y - y.mean()) / y.std()
    covariance = np.linalg.inv(B.T @ B / noise + np.diag(1.0 / prior))
    weights = covariance @ B.T @ z / noise
    np.testing.assert_allclose(mean, y.mean() + y.std() * (new @ weights), rtol=1e-5)
    variance = np.einsum("nb,bc,nc->n", new, covariance, new)
    np.testing.assert_allclose(std, y.std() * np.sqrt(variance), rtol=1e-4)
    [(evidence, found)] = model.linear_weights()
    assert evidence == 1.0
    np.testing.assert_allclose(found, weights, rtol=1e-5)


def test_evidence_of_linear_inputs_is_that_of_the_whole_covariance() -> None:
    rng = np.random.default_rng(1)
    inputs, y = rng.uniform(size=(9, 3)), rng.normal(size=9)
    scales, linear = np.array([0.5, 0.3]), np.array([0.8])
    plain, taught = Candidate(scales, 0.1), Candidate(scales, 0.1, 0.0, 0.4, linear / 0.4)
    model = EvidenceAverage([plain, taught], "matern52").fit(inputs, y)
    C, b = correlation(inputs[:, :2], inputs[:, :2], scales, "matern52"), inputs[:, 2:]
    logs = []
    for K in (C, 0.4 * C + 0.8 * b @ b.T):
        K = K + 0.1 * np.eye(9)
        z = (y - y.mean()) / y.std()
        logs.append(-0.5 * z @ np.linalg.solve(K, z) - 0.5 * np.linalg.slogdet(K)[1])
    expected = np.exp(logs) / np.exp(logs).sum()
    np.testing.assert_allclose(model.evidence_, expected, rtol=1e-8)


# --- the functions ----------------------------------------------------------------------------


def test_functions_reproduce_mean_and_covariance_of_the_tasks() -> None:
    functions, new = functions_of(CURVES), draw(40, 7)
    known = functions.sources.predict(functions.places)
    F = functions.sources.predict(new) - known.mean(axis=1, keepdims=True)
    F /= known.std(axis=1, keepdims=True)
    B = functions(new)
    assert B.shape == (40, 2 + 2)  # three tasks differ from their mean in two ways
    assert (B[:, 0] == 1.0).all()
    np.testing.assert_allclose(B[:, 1], F.mean(axis=0), atol=0.02)
    difference = F - F.mean(axis=0)
    np.testing.assert_allclose(B[:, 2:] @ B[:, 2:].T, difference.T @ difference / 3, atol=0.05)


def test_a_task_alone_has_a_mean_only() -> None:
    functions = functions_of({"wave": CURVES["wave"]})
    X, y = draw(6), CURVES["wave"](draw(6))
    model = PretrainedProcess(functions=functions).fit(X, y)
    assert error(model, CURVES["wave"]) < 0.2
    assert set(model.shares_) == {"wave"}


def test_many_configurations_are_thinned_with_the_best_kept() -> None:
    memory = remember(CURVES, 400)
    functions = TaskFunctions.fit(Sources.fit(memory), memory)
    assert len(functions.places) == 200
    for loss in CURVES.values():
        best = memory.vectors[loss(memory.vectors).argmin()]
        assert (np.abs(functions.places - best).max(axis=1) < 1e-12).any()


# --- the process ------------------------------------------------------------------------------


def test_without_functions_it_is_the_averaged_process() -> None:
    X, y = draw(12), CURVES["wave"](draw(12))
    for model in (PretrainedProcess(), PretrainedProcess(functions=None)):
        np.testing.assert_array_equal(
            model.fit(X, y).predict(draw(5)), AveragedProcess().fit(X, y).predict(draw(5))
        )
        assert model.shares_ == {}


@pytest.mark.parametrize("sign", [1.0, -1.0], ids=["alike", "opposite"])
def test_eight_trials_of_a_combination_of_tasks_are_enough(sign: float) -> None:
    def loss(x: FloatArray) -> FloatArray:
        return sign * (CURVES["wave"](x) + 0.5 * CURVES["slope"](x))

    X = draw(8)
    taught = PretrainedProcess(functions=functions_of(CURVES)).fit(X, loss(X))
    plain = AveragedProcess().fit(X, loss(X))
    assert error(taught, loss) < 0.25 < error(plain, loss)


def test_a_loss_that_no_task_resembles_is_learnt_as_without_them() -> None:
    def loss(x: FloatArray) -> FloatArray:
        return np.asarray(np.sin(15.0 * x[:, 0] * x[:, 1]))

    X = draw(40)
    taught = PretrainedProcess(functions=functions_of({"slope": CURVES["slope"]})).fit(X, loss(X))
    plain = AveragedProcess().fit(X, loss(X))
    assert error(taught, loss) < 1.1 * error(plain, loss)
    assert sum(taught.shares_.values()) < 0.1


def test_shares_name_the_task_that_the_losses_resemble() -> None:
    X = draw(10)
    for name in ("wave", "shifted"):  # a slope is as simple without any task
        y = CURVES[name](X)
        model = PretrainedProcess(functions=functions_of(CURVES)).fit(X, y)
        shares = model.shares_
        assert max(shares, key=shares.__getitem__) == name
        assert 0.5 < sum(shares.values()) <= 1.0 + 1e-12
        assert min(shares.values()) >= 0.0


def test_losses_of_any_level_and_scale_are_learnt_alike() -> None:
    X, y = draw(10), CURVES["wave"](draw(10))
    functions = functions_of(CURVES)
    mean, std = PretrainedProcess(functions=functions).fit(X, y).predict(draw(5, 2))
    high, wide = PretrainedProcess(functions=functions).fit(X, 70 + 3 * y).predict(draw(5, 2))
    np.testing.assert_allclose(high, 70 + 3 * mean, rtol=1e-6)
    np.testing.assert_allclose(wide, 3 * std, rtol=1e-4)


def test_one_loss_and_equal_losses_are_no_error() -> None:
    functions = functions_of(CURVES)
    for n in (1, 3):
        model = PretrainedProcess(functions=functions).fit(draw(n), np.full(n, 2.0))
        mean, std = model.predict(draw(4, 1))
        np.testing.assert_allclose(mean, 2.0)
        assert (std > 0.0).all()


def test_running_and_further_trials_count() -> None:
    X, y = draw(12), CURVES["wave"](draw(12))
    model = PretrainedProcess(functions=functions_of(CURVES)).fit(X[:8], y[:8])
    known = model.conditioned(X, y)
    assert error(known, CURVES["wave"]) < 0.2
    pending = draw(1, 9)
    assert model.beside(pending).predict(pending)[1][0] < model.predict(pending)[1][0]
    held_out = model.held_out()
    assert held_out.shape == (8,)
    assert np.corrcoef(held_out, y[:8])[0, 1] > 0.8


def test_it_survives_pickling() -> None:
    X, y = draw(9), CURVES["slope"](draw(9))
    model = PretrainedProcess(functions=functions_of(CURVES)).fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(draw(4)), model.predict(draw(4)))


def test_tasks_may_have_run_other_configurations() -> None:
    space = ConfigurationSpace()
    space.add(Float("x", (0.0, 1.0)), Float("y", (0.0, 1.0)))

    def record(name: str, seed: int) -> TaskRecord:
        places = draw(50, seed)
        configurations = [{"x": float(x), "y": float(y)} for x, y in places]
        return TaskRecord(name, configurations, CURVES[name](places), space=space)

    records = [record(name, seed) for seed, name in enumerate(CURVES, 20)]
    memory = MetaDataset.from_records(records, space)
    X, loss = draw(8), CURVES["shifted"]
    functions = TaskFunctions.fit(Sources.fit(memory), memory)
    taught = PretrainedProcess(functions=functions).fit(X, loss(X))
    assert error(taught, loss) < 0.6 * error(AveragedProcess().fit(X, loss(X)), loss)
