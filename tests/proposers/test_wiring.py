"""What the proposer passes to its models, and what makes it fit them again."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from ConfigSpace import ConfigurationSpace, Float

from automl_plugins.proposers import models
from automl_plugins.proposers.maximizer import Candidates, maximize
from automl_plugins.proposers.model_based import ModelBasedProposer, ProposerSettings
from automl_plugins.proposers.models import ModelSettings, fit_models
from automl_plugins.records.history import History
from automl_plugins.records.trial import Status
from automl_plugins.spaces.vector_space import VectorSpace
from automl_plugins.streams import Streams
from automl_plugins.surrogates import DistanceAware, RandomForest, RunningTime


def line(high: float = 1.0) -> VectorSpace:
    space = ConfigurationSpace()
    space.add(Float("x", (0.0, high)))
    return VectorSpace(space)


POINTS = np.linspace(0.0, 1.0, 40)[:, None]


@pytest.mark.parametrize("changed", ["seconds", "constraints", "space", "status", "nothing"])
def test_models_are_fitted_again_when_anything_changes(changed: str) -> None:
    columns: dict[str, Any] = {
        "losses": POINTS[:10, 0],
        "seconds": np.ones(10),
        "constraints": -np.ones((10, 1)),
        "status": np.full(10, Status.COMPLETE),
    }
    settings = ModelSettings(surrogate=RandomForest(), timed=True)
    proposer, space = ModelBasedProposer(ProposerSettings(settings)), line()
    proposer.propose(space, History.of(POINTS[:10], **columns), Streams(0), 10)
    if changed == "space":
        space = line(high=2.0)
    elif changed == "status":
        columns["status"] = np.where(np.arange(10) == 4, Status.PRUNED, Status.COMPLETE)
    elif changed != "nothing":
        columns[changed] = columns[changed] + np.arange(10.0).reshape(columns[changed].shape)
    again = proposer.propose(space, History.of(POINTS[:10], **columns), Streams(0), 10)
    assert (again.fit_seconds is None) == (changed == "nothing")


def test_seconds_of_pruned_rows_are_lower_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[list[bool]] = []

    class Spy(RunningTime):
        def fit(self, X: Any, seconds: Any, lower_bound: Any = None) -> Any:
            seen.append(np.asarray(lower_bound).tolist())
            return super().fit(X, seconds, lower_bound)

    monkeypatch.setattr(models, "RunningTime", Spy)
    status = [Status.COMPLETE, Status.PRUNED, Status.FAILED, Status.COMPLETE]
    losses = [0.0, 1.0, np.nan, 2.0]
    history = History.of(POINTS[:4], losses, seconds=np.arange(1.0, 5.0), status=status)
    fit_models(ModelSettings(surrogate=RandomForest(), timed=True), line(), history, Streams(0))
    assert seen == [[False, True, False, False]]


def test_seconds_and_failures_of_the_newest_rows_count() -> None:
    space, late = line(), np.arange(40) >= 20
    vectors = POINTS[np.random.default_rng(0).permutation(40)]
    settings = ModelSettings(surrogate=RandomForest(), timed=True, max_rows=20)
    history = History.of(
        vectors,
        np.where(late, np.nan, 0.5),
        seconds=np.where(late, 100.0, 1.0),
        status=np.where(late, Status.FAILED, Status.COMPLETE),
    )
    fitted = fit_models(settings, space, history, Streams(0))
    features = space.features(POINTS)
    assert (np.exp(fitted.log_seconds(features)) > 50.0).all()
    assert (np.exp(fitted.log_success(features)) < 0.5).all()


def test_doubt_is_taken_from_the_best_rows() -> None:
    class Flat:
        random_state = None

        def fit(self, X: Any, y: Any) -> Any:
            return self

        def predict(self, X: Any) -> Any:
            return np.zeros(len(X)), np.zeros(len(X))

    model = DistanceAware(Flat(), max_rows=5).fit(POINTS, POINTS[:, 0])
    _, std = model.predict(POINTS)
    assert (std[:5] < 1e-6).all() and (std[5:] > 0.01).all()


def test_ties_go_to_the_lower_loss() -> None:
    space = line()
    nothing = np.empty(0, dtype=np.uint64)
    losses = np.random.default_rng(0).random(40)
    found = maximize(
        space,
        lambda vectors: (np.zeros(len(vectors)), losses[np.rint(vectors[:, 0] * 39).astype(int)]),
        Candidates(POINTS, nothing, complete=True),
        np.empty((0, 1)),
        None,
        np.random.default_rng(0),
        n_steps=1,
    )
    assert found[0] == POINTS[losses.argmin(), 0]
