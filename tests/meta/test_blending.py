"""BlendedTemplate: a meta-learner for the space that is searched, fitted once."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from ConfigSpace import Categorical, ConfigurationSpace, Float

from automl_plugins.meta import MetaDataset, MetaLearner, TaskRecord
from automl_plugins.meta.memories import TaskMemory
from automl_plugins.meta.transfer import BlendedTemplate, LearnedLosses
from automl_plugins.spaces.vector_space import VectorSpace

RNG = np.random.default_rng(2)
SMALL = MetaLearner(n_trees=40, learning_rate=0.2)


def a_space(categorical: bool = False) -> ConfigurationSpace:
    space = ConfigurationSpace()
    space.add(Float("x", (0.0, 1.0)))
    if categorical:
        space.add(Categorical("kind", ["a", "b"]))
    return space


def a_memory(n: int = 40) -> MetaDataset:
    """Each task's best x is its meta-feature."""
    space = a_space()
    records = []
    for i, best in enumerate((0.1, 0.15, 0.2, 0.8, 0.85, 0.9)):
        x = RNG.random(n)
        records.append(
            TaskRecord(
                f"task {i}",
                [{"x": float(v)} for v in x],
                np.abs(x - best),
                space=space,
                meta_features={"best": best},
            )
        )
    return MetaDataset.from_records(records, space)


MEMORY = a_memory()
SPACE = VectorSpace(a_space())
GRID = np.linspace(0.0, 1.0, 21)[:, None]


def template(memory: MetaDataset = MEMORY, **options: Any) -> BlendedTemplate:
    return BlendedTemplate(TaskMemory(memory), learner=SMALL, **options)


def best_x(made: Any) -> float:
    mean, _ = made.fit(np.empty((0, 1)), np.empty(0)).predict(GRID)
    return float(GRID[int(np.argmin(mean)), 0])


def test_meta_features_decide_what_is_expected() -> None:
    low = template(meta_features={"best": 0.12}).for_space(SPACE)
    high = template(meta_features={"best": 0.88}).for_space(SPACE)
    assert best_x(low) < 0.4 and best_x(high) > 0.6


def test_without_known_meta_features_it_is_the_mean_over_the_tasks() -> None:
    options: list[dict[str, Any]] = [
        {},
        {"meta_features": {"other": 3.0}},
        {"meta_features": {"best": float("nan")}},
    ]
    means = [
        template(**o).for_space(SPACE).fit(np.empty((0, 1)), np.empty(0)).predict(GRID)[0]
        for o in options
    ]
    np.testing.assert_array_equal(means[0], means[1])
    np.testing.assert_array_equal(means[0], means[2])
    bare = [replace(record, meta_features={}) for record in MEMORY.records()]
    learner = SMALL.clone().fit(MetaDataset.from_records(bare, MEMORY.space))
    np.testing.assert_array_equal(means[0], learner.predict(GRID, None))


def test_the_task_itself_is_left_out() -> None:
    memory = TaskMemory(MEMORY, task="task 0")
    made = BlendedTemplate(memory, learner=SMALL, meta_features={"best": 0.1}).for_space(SPACE)
    assert isinstance(made.earlier, LearnedLosses)
    assert len(made.earlier.learner.tasks_.known) == 5


def test_it_is_fitted_once_for_each_space() -> None:
    maker = template()
    first = maker.for_space(SPACE)
    assert maker.for_space(SPACE).earlier is first.earlier
    assert maker.for_space(SPACE) is not first
    other = maker.for_space(VectorSpace(a_space(categorical=True)))
    assert other.earlier is not first.earlier
    mean, _ = other.fit(np.empty((0, 2)), np.empty(0)).predict(np.array([[0.5, 0.0], [0.5, 1.0]]))
    assert np.isfinite(mean).all()


def test_predictions_are_remembered_and_equal() -> None:
    made = template(meta_features={"best": 0.1}).for_space(SPACE)
    earlier = made.earlier
    assert isinstance(earlier, LearnedLosses)
    expected = earlier.learner.predict_features(GRID, {"best": 0.1})
    np.testing.assert_array_equal(earlier(GRID[:5]), expected[:5])
    asked: list[int] = []
    plain = earlier.learner.predict_features

    def counted(X: Any, task: Any) -> Any:
        asked.append(len(X))
        return plain(X, task)

    earlier.learner.predict_features = counted  # type: ignore[method-assign]
    np.testing.assert_array_equal(earlier(GRID[::-1]), expected[::-1])
    np.testing.assert_array_equal(earlier(GRID), expected)
    assert asked == [16]
    assert copy.deepcopy(earlier) is earlier


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("automl_plugins.meta.transfer._KEPT", 10)
    earlier = template().for_space(SPACE).earlier
    assert isinstance(earlier, LearnedLosses)
    expected = earlier.learner.predict_features(GRID, None)
    for rows in (slice(0, 8), slice(4, 12), slice(0, 21), slice(0, 3)):
        np.testing.assert_array_equal(earlier(GRID[rows]), expected[rows])
        assert len(earlier._known) <= 21
