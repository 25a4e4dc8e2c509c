"""What all surrogates have in common: randomness, copies, shapes, edges, and what they refuse."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from automl_plugins.arrays import FloatArray
from automl_plugins.surrogates import (
    AveragedProcess,
    Blended,
    DistanceAware,
    ExtraTrees,
    Feasibility,
    GaussianProcess,
    LocalProcess,
    QuantileBoosting,
    RandomForest,
    RunningTime,
    Surrogate,
    TwoStageTransfer,
)
from automl_plugins.surrogates.base import OutOfSample, as_training

Make = Callable[..., Any]

LOSSES: dict[str, Make] = {
    "boosting": QuantileBoosting,
    "bound": lambda **k: QuantileBoosting(form="bound", **k),
    "three_quantile": lambda **k: QuantileBoosting(form="three_quantile", **k),
    "forest": RandomForest,
    "forest_smac": RandomForest.smac,
    "forest_thesis": RandomForest.thesis,
    "extra_trees": lambda **k: ExtraTrees(n_trees=20, **k),
    "gaussian_process": lambda **k: GaussianProcess(n_restarts=1, **k),
    "averaged_process": lambda **k: AveragedProcess(),
    "local_process": lambda **k: LocalProcess(),
    "distance_aware": lambda **k: DistanceAware(RandomForest(), **k),
    "blended": lambda **k: Blended(lambda X: np.nan_to_num(X[:, 0]), **k),
    "two_stage": lambda **k: TwoStageTransfer(),
}
OTHERS: dict[str, Make] = {"running_time": RunningTime, "feasibility": Feasibility}
ALL = LOSSES | OTHERS
every = pytest.mark.parametrize("name", list(ALL))
every_loss = pytest.mark.parametrize("name", list(LOSSES))


def sample(name: str, n: int = 40, seed: int = 0) -> tuple[FloatArray, Any]:
    """Features (n, 3) with missing values, and targets that the surrogate takes."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, 3))
    y = np.sin(4.0 * X[:, 0]) + X[:, 1] ** 2 + 0.1 * rng.normal(size=n)
    X[::4, 1] = np.nan
    if name == "feasibility":
        return X, y > np.median(y)
    return X, np.exp(y) if name == "running_time" else y


def predicted(model: Any, X: FloatArray) -> FloatArray:
    return np.array(model.predict(X))


@every
def test_the_same_seed_gives_the_same_output_and_nothing_else_is_touched(name: str) -> None:
    X, y = sample(name)
    given = X.copy(), y.copy()
    before = pickle.dumps(np.random.get_state())  # noqa: NPY002
    model = ALL[name](random_state=5)
    assert model.fit(X, y) is model
    first = predicted(model, X)
    np.testing.assert_array_equal(predicted(ALL[name](random_state=5).fit(X, y), X), first)
    ALL[name]().fit(X, y)
    assert pickle.dumps(np.random.get_state()) == before  # noqa: NPY002
    np.testing.assert_array_equal(X, given[0])
    np.testing.assert_array_equal(y, given[1])


@every
def test_copies_predict_the_same_and_clones_have_the_same_settings(name: str) -> None:
    X, y = sample(name)
    model = ALL[name](random_state=1).fit(X, y)
    copies = [copy.deepcopy(model)]
    if name != "blended":  # its function of the earlier tasks is one of this test
        copies.append(pickle.loads(pickle.dumps(model)))
        again = clone(model)
        assert repr(again.get_params()) == repr(model.get_params())
        copies.append(again.fit(X, y))
    for other in copies:
        np.testing.assert_array_equal(predicted(other, X), predicted(model, X))


@every
def test_a_second_fit_forgets_the_first(name: str) -> None:
    X, y = sample(name)
    model = ALL[name](random_state=0).fit(X[:5], y[:5])
    fresh = ALL[name](random_state=0).fit(X, y)
    np.testing.assert_array_equal(predicted(model.fit(X, y), X), predicted(fresh, X))


@every_loss
def test_it_is_a_surrogate_with_an_uncertainty_for_each_prediction(name: str) -> None:
    X, y = sample(name)
    assert isinstance(LOSSES[name](), Surrogate)
    mean, std = LOSSES[name](random_state=0).fit(X, y).predict(X.tolist())
    assert mean.dtype == std.dtype == np.float64
    assert mean.shape == std.shape == (40,)
    assert (std >= 0.0).all()


@every_loss
@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_few_rows_and_constant_losses(name: str, n: int) -> None:
    X, y = sample(name, n)
    new = np.vstack([sample(name, seed=1)[0], np.full((1, 3), np.nan)])
    mean, std = LOSSES[name](random_state=0).fit(X, y).predict(new)
    assert np.isfinite(mean).all() and np.isfinite(std).all()
    constant, _ = LOSSES[name](random_state=0).fit(X, np.full(n, 0.1)).predict(new)
    if name != "blended":  # adds what the earlier tasks predict
        np.testing.assert_array_equal(constant, 0.1)


@pytest.mark.parametrize(
    "name",
    ["boosting", "averaged_process", "distance_aware_boosting", "blended", "two_stage"],
)
def test_rows_are_predicted_without_them(name: str) -> None:
    given = {"distance_aware_boosting": lambda **k: DistanceAware(QuantileBoosting(), **k)}
    make = (LOSSES | given)[name]
    model, (X, y) = make(random_state=0), sample(name)
    assert isinstance(model, OutOfSample)
    with pytest.raises(NotFittedError):
        model.held_out()
    held_out = model.fit(X, y).held_out()
    assert held_out.shape == y.shape and held_out.dtype == np.float64
    told = ~np.isnan(held_out)
    assert told.mean() > 0.8 and np.corrcoef(held_out[told], y[told])[0, 1] > 0.3
    # Not what it predicts for rows that it knows
    error, known = held_out[told] - y[told], model.predict(X)[0][told] - y[told]
    assert np.abs(error).mean() > np.abs(known).mean()
    np.testing.assert_array_equal(copy.deepcopy(model).held_out(), held_out)
    for n in (1, 2, 3):
        few = make(random_state=0).fit(X[:n], np.full(n, 0.1)).held_out()
        assert few.shape == (n,) and (name == "blended" or np.isin(few, [0.1]).all())


@every
def test_predict_comes_after_fit(name: str) -> None:
    for method in ("predict", "beside", "promise"):
        if hasattr(model := ALL[name](), method):
            with pytest.raises(NotFittedError):
                getattr(model, method)(np.zeros((1, 3)))


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        (np.zeros(3), np.zeros(3), r"X must have shape \(n, f\)"),
        (np.empty((2, 0)), np.zeros(2), r"X must have shape \(n, f\) with n >= 1 and f >= 1"),
        (np.full((2, 1), np.inf), np.ones(2), "X must not hold infinities"),
        (np.zeros((2, 1)), np.ones(3), r"y must have shape \(2,\), got \(3,\)"),
        (np.zeros((2, 1)), np.ones((2, 1)), r"y must have shape \(2,\)"),
        (np.zeros((2, 1)), np.array([1.0, np.nan]), "y must be finite; row 1 has nan"),
        (np.zeros((2, 1)), np.array([-np.inf, 1.0]), "y must be finite; row 0 has -inf"),
    ],
)
def test_data_that_are_refused(X: FloatArray, y: FloatArray, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        RandomForest().fit(X, y)


def test_a_surrogate_that_needs_no_rows_says_so() -> None:
    with pytest.raises(ValueError, match=r"X must have shape \(n, f\) with n >= 0 and f >= 1"):
        TwoStageTransfer().fit(np.empty((0, 0)), np.empty(0))


@every
def test_everyone_refuses_such_data(name: str) -> None:
    with pytest.raises(ValueError, match="X must not hold infinities"):
        ALL[name]().fit(np.full((2, 1), np.inf), np.ones(2))
    with pytest.raises(ValueError, match=r"y must have shape \(2,\), got \(3,\)"):
        ALL[name]().fit(np.zeros((2, 1)), np.ones(3))
    with pytest.raises(ValueError, match="y must be finite; row 1 has nan"):
        ALL[name]().fit(np.zeros((2, 1)), np.array([1.0, np.nan]))


@every
def test_queries_that_are_refused(name: str) -> None:
    model = ALL[name](random_state=0).fit(*sample(name))
    with pytest.raises(ValueError, match=r"X must have shape \(n, f\)"):
        model.predict(np.zeros(3))
    with pytest.raises(ValueError, match="infinities"):
        model.predict(np.full((1, 3), np.inf))


@pytest.mark.parametrize("name", LOSSES)
def test_queries_of_another_width_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match="X must have 3 columns, got 2"):
        LOSSES[name](random_state=0).fit(*sample(name)).predict(np.zeros((2, 2)))


@pytest.mark.parametrize("name", ["forest", "extra_trees", "gaussian_process"])
def test_generators_are_seeds_too(name: str) -> None:
    X, y = sample(name)
    seeded = LOSSES[name](random_state=5).fit(X, y).predict(X)
    generated = LOSSES[name](random_state=np.random.default_rng(5)).fit(X, y).predict(X)
    np.testing.assert_array_equal(generated, seeded)


@pytest.mark.parametrize("name", ["boosting", "forest", "extra_trees", "feasibility"])
def test_another_seed_gives_another_output(name: str) -> None:
    X, y = sample(name)
    new = sample(name, seed=1)[0]
    first, second = (predicted(ALL[name](random_state=s).fit(X, y), new) for s in (0, 1))
    assert not np.array_equal(first, second)


@pytest.mark.parametrize(
    ("make", "arguments", "message"),
    [
        (QuantileBoosting, {"form": "quantile"}, "form must be one of.*, got 'quan"),
        (QuantileBoosting, {"alpha": 0.0}, r"alpha must lie in \(0, 1\), got 0\.0"),
        (QuantileBoosting, {"alpha": float("nan")}, r"alpha must lie in \(0, 1\), got nan"),
        (QuantileBoosting, {"n_models": 0}, "n_models must be an integer >= 1, got 0"),
        (QuantileBoosting, {"n_trees": 0}, "n_trees must be an integer >= 1, got 0"),
        (QuantileBoosting, {"num_leaves": 1}, "num_leaves must be an integer >= 2, got 1"),
        (QuantileBoosting, {"min_leaf_rows": 0}, "min_leaf_rows must be an integer >= 1, got 0"),
        (
            QuantileBoosting,
            {"learning_rate": float("nan")},
            "learning_rate must be a finite number > 0",
        ),
        (RandomForest, {"n_trees": 0}, "n_trees must be an integer >= 1, got 0"),
        (RandomForest, {"max_features": 0.0}, r"max_features must be in \(0, 1\], got 0.0"),
        (RandomForest, {"max_features": 1.5}, r"max_features must be in \(0, 1\], got 1.5"),
        (RandomForest, {"min_samples_split": 1}, "min_samples_split must be an integer >= 2"),
        (RandomForest, {"min_samples_leaf": 0}, "min_samples_leaf must be an integer >= 1"),
        (RandomForest, {"variance_floor": -0.1}, "variance_floor must be a finite number >= 0"),
        (RandomForest, {"variance_floor": np.nan}, "variance_floor must be a finite number >= 0"),
        (RandomForest, {"splitter": "worst"}, "splitter must be .* got 'worst'"),
        (RandomForest, {"uncertainty": "root"}, "uncertainty must be .* got 'root'"),
        (ExtraTrees, {"max_leaves": 1}, "max_leaves must be an integer >= 2, got 1"),
        (GaussianProcess, {"n_restarts": -1}, "n_restarts must be an integer >= 0, got -1"),
        (RunningTime, {"num_leaves": 1}, "num_leaves must be an integer >= 2, got 1"),
        (
            RunningTime,
            {"learning_rate": 0.0},
            r"learning_rate must be a finite number > 0, got 0\.0",
        ),
        (RunningTime, {"l1": -0.1}, r"l1 must be a finite number >= 0, got -0\.1"),
        (Feasibility, {"prior": float("nan")}, "prior must be a finite number > 0, got nan"),
        (partial(DistanceAware, RandomForest()), {"strength": -1.0}, "strength must be .*>= 0"),
        (partial(DistanceAware, RandomForest()), {"max_rows": 0}, "max_rows must be .*>= 1"),
        (Blended, {"patience": 0.0}, "patience must be a finite number > 0, got 0.0"),
        (TwoStageTransfer, {"distance": "far"}, "distance must be one of 'ranks'"),
        (TwoStageTransfer, {"scale": "log"}, "scale must be one of "),
        (TwoStageTransfer, {"spread": "all"}, "spread must be one of 'votes', 'own'"),
        (TwoStageTransfer, {"ties": "none"}, "ties must be one of 'half', 'strict'"),
        (TwoStageTransfer, {"bandwidth": 0.0}, "bandwidth must be a finite number > 0"),
        (TwoStageTransfer, {"distance": "meta_features"}, "needs the meta-features"),
    ],
)
def test_arguments_that_are_refused(make: Make, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make(**arguments).fit(*as_training(np.zeros((3, 1)), np.ones(3)))


@pytest.mark.parametrize(
    ("make", "arguments", "message"),
    [
        (QuantileBoosting, {"n_models": 2.0}, r"n_models must be an integer >= 1, got 2\.0"),
        (RandomForest, {"n_trees": 2.5}, r"n_trees must be an integer >= 1, got 2\.5"),
        (RandomForest, {"max_features": "sqrt"}, r"max_features must be in \(0, 1\], got 'sqrt'"),
        (RandomForest, {"variance_floor": "x"}, "variance_floor must be a finite number >= 0"),
        (GaussianProcess, {"max_rows": 9.5}, r"max_rows must be an integer >= 2, got 9\.5"),
        (RunningTime, {"n_trees": True}, "n_trees must be an integer >= 1, got True"),
        (Feasibility, {"prior": None}, "prior must be a finite number > 0, got None"),
    ],
)
def test_arguments_of_the_wrong_type(make: Make, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        make(**arguments).fit(*as_training(np.zeros((3, 1)), np.ones(3)))
