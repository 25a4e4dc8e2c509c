"""Surrogates with a memory, for the space that is searched."""

from __future__ import annotations

import copy
import pickle
from dataclasses import replace
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
from ConfigSpace import Categorical, ConfigurationSpace
from sklearn.base import clone

from automl_plugins.meta import MetaDataset, MetaLearner, TaskRecord
from automl_plugins.meta.memories import TaskMemory
from automl_plugins.meta.transfer import BlendedTemplate, LearnedLosses, TransferTemplate
from automl_plugins.spaces.vector_space import VectorSpace
from automl_plugins.surrogates import Sources, TwoStageTransfer

UNIT = ConfigurationSpace({"x": (0.0, 1.0)})
SPACE = VectorSpace(UNIT)
WIDER = ConfigurationSpace({"x": (0.0, 1.0)})
WIDER.add(Categorical("kind", ["a", "b"]))
GRID = np.linspace(0.0, 1.0, 21)[:, None]
X = np.array([[0.25], [0.7], [0.4]])
Y = (X[:, 0] - 0.25) ** 2


def records(*bests: float, n: int = 12) -> list[TaskRecord]:
    """Each task's best x is its meta-feature."""
    rng = np.random.default_rng(2)
    found = []
    for best in bests:
        x = rng.random(n)
        rows = [{"x": v} for v in x.tolist()]
        described = {"best": best}
        found.append(
            TaskRecord(f"task {best}", rows, np.abs(x - best), space=UNIT, meta_features=described)
        )
    return found


# --- two-stage transfer -----------------------------------------------------------------------

SOURCES = records(0.2, 0.3, 0.8)
MEMORY = MetaDataset.from_records(SOURCES, UNIT)


@pytest.fixture
def fits(monkeypatch: pytest.MonkeyPatch) -> Mock:
    """Notes each first stage that is fitted."""
    made = Mock(side_effect=Sources.fit)
    monkeypatch.setattr(Sources, "fit", made)
    return made


def test_the_first_stage_is_fitted_once_for_each_space(fits: Mock) -> None:
    maker = TransferTemplate(TaskMemory(MEMORY))
    first, second = maker.for_space(SPACE), maker.for_space(SPACE)
    assert first is not second and first.sources is second.sources
    assert fits.call_count == 1
    other = maker.for_space(VectorSpace(WIDER))
    assert isinstance(other.sources, Sources) and other.sources.n_features == 2
    again = pickle.loads(pickle.dumps(maker)).for_space(SPACE)
    assert fits.call_count == 3
    np.testing.assert_array_equal(again.fit(X, Y).predict(GRID), first.fit(X, Y).predict(GRID))
    assert repr(maker) == "TwoStageTransfer(TaskMemory(3 tasks))"


def test_the_papers_settings(fits: Mock) -> None:
    made = TransferTemplate(TaskMemory(MEMORY), paper=True).for_space(SPACE)
    paper = TwoStageTransfer.paper().get_params(deep=False)
    assert made.get_params(deep=False) | {"sources": None} == paper
    assert fits.call_args.kwargs["kernel"] == "se"


def test_meta_features_weigh_the_tasks() -> None:
    options: dict[str, Any] = {"distance": "meta_features", "meta_features": {"best": 0.78}}
    made = TransferTemplate(TaskMemory(MEMORY), **options).for_space(SPACE).fit(X, Y)
    shares = made.shares_
    assert shares["task 0.8"] > max(shares["task 0.2"], shares["task 0.3"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"distance": "meta_features"}, "needs the meta-features"),
        ({"bandwidth": -1.0}, "bandwidth must be a finite number > 0"),
        ({"max_rows": 1}, "max_rows"),
    ],
)
def test_illegal_options_are_refused_at_once(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        TransferTemplate(TaskMemory(MEMORY), **options)


# --- blended optimisation ---------------------------------------------------------------------

SMALL = MetaLearner(n_trees=40, learning_rate=0.2)
MANY = MetaDataset.from_records(records(0.1, 0.15, 0.2, 0.8, 0.85, 0.9, n=40), UNIT)


@pytest.fixture(autouse=True)
def _of_few_trees(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("automl_plugins.meta.meta_learner.MetaLearner", lambda: clone(SMALL))


def template(**options: Any) -> BlendedTemplate:
    return BlendedTemplate(TaskMemory(MANY), **options)


def expected(made: Any, grid: Any = GRID) -> Any:
    """What is expected before the first observation."""
    return made.fit(np.empty((0, grid.shape[1])), np.empty(0)).predict(grid)[0]


def learned(**options: Any) -> LearnedLosses:
    found = template(**options).for_space(SPACE).earlier
    assert isinstance(found, LearnedLosses)
    return found


def test_meta_features_decide_what_is_expected() -> None:
    for best in (0.12, 0.88):
        made = template(meta_features={"best": best}).for_space(SPACE)
        assert abs(GRID[np.argmin(expected(made)), 0] - best) < 0.3


@pytest.mark.parametrize("told", [{}, {"other": 3.0}, {"best": float("nan")}])
def test_without_known_meta_features_it_is_the_mean_over_the_tasks(told: dict[str, float]) -> None:
    made = template(meta_features=told).for_space(SPACE)
    bare = [replace(record, meta_features={}) for record in MANY.records()]
    learner = clone(SMALL).fit(MetaDataset.from_records(bare, UNIT))
    np.testing.assert_array_equal(expected(made), learner.predict(GRID, None))


def test_the_task_itself_is_left_out() -> None:
    memory = TaskMemory(MANY, task="task 0.1")
    made = BlendedTemplate(memory, meta_features={"best": 0.1}).for_space(SPACE)
    assert isinstance(made.earlier, LearnedLosses)
    assert len(made.earlier.learner.tasks_.known) == 5


def test_the_meta_learner_is_fitted_once_for_each_space() -> None:
    maker = template()
    first = maker.for_space(SPACE)
    assert maker.for_space(SPACE).earlier is first.earlier
    assert maker.for_space(SPACE) is not first
    other = maker.for_space(VectorSpace(WIDER))
    assert other.earlier is not first.earlier
    assert np.isfinite(expected(other, np.array([[0.5, 0.0], [0.5, 1.0]]))).all()


def test_predictions_are_remembered_and_equal() -> None:
    earlier = learned(meta_features={"best": 0.1})
    plain = earlier.learner.predict_features
    told = plain(GRID, {"best": 0.1})
    earlier.learner.predict_features = asked = Mock(side_effect=plain)  # type: ignore[method-assign]
    for rows in (slice(5), slice(None, None, -1), slice(None)):
        np.testing.assert_array_equal(earlier(GRID[rows]), told[rows])
    assert [len(call.args[0]) for call in asked.call_args_list] == [5, 16]
    assert copy.deepcopy(earlier) is earlier


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("automl_plugins.meta.transfer._KEPT", 10)
    earlier = learned()
    told = earlier.learner.predict_features(GRID, None)
    for rows in (slice(0, 8), slice(4, 12), slice(0, 21), slice(0, 3)):
        np.testing.assert_array_equal(earlier(GRID[rows]), told[rows])
        assert len(earlier._known) <= 21
