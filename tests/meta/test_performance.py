"""Regrets of the same configurations on all tasks."""

import numpy as np
import pytest
from ConfigSpace import Categorical, ConfigurationSpace, EqualsCondition, Float

from automl_plugins.meta import MetaDataset, TaskRecord
from automl_plugins.meta.designs.performance import coordinates, kernel_means, performance
from automl_plugins.spaces.vector_space import VectorSpace

SPACE = ConfigurationSpace({"x": (0.0, 1.0)})


def memory(*tasks: dict[float, float]) -> MetaDataset:
    return MetaDataset.from_records(
        TaskRecord(f"t{i}", [{"x": x} for x in task], np.array(list(task.values())), space=SPACE)
        for i, task in enumerate(tasks)
    )


def test_measured_regrets_by_hand() -> None:
    known = performance(memory({0.1: 1.0, 0.5: 2.0, 0.9: 3.0}, {0.5: 7.0, 0.3: 5.0}))
    assert known.candidates[:, 0].tolist() == pytest.approx([0.1, 0.5, 0.9, 0.3])
    np.testing.assert_allclose(
        known.measured, [[0.0, 0.5, 1.0, np.nan], [np.nan, 1.0, np.nan, 0.0]]
    )
    assert not np.isnan(known.filled).any() and not np.isnan(known.smoothed).any()
    np.testing.assert_allclose(known.filled[0, :3], [0.0, 0.5, 1.0])
    assert known.smoothed[0, 0] == pytest.approx(0.5 * known.estimated[0, 0])
    assert known.smoothed[0, 3] == known.estimated[0, 3]


def test_kernel_means_by_hand() -> None:
    runs, values = np.array([[0.0], [0.2]]), np.array([0.0, 1.0])
    weight = np.exp(-0.5)  # one width away
    expected = [weight / (1 + weight), 1 / (1 + weight), 0.5]
    got = kernel_means(np.array([[0.0], [0.2], [0.1]]), runs, values)
    np.testing.assert_allclose(got, expected)


def test_of_many_configurations_the_best_of_each_task() -> None:
    rng = np.random.default_rng(0)
    tasks = [{float(x): float(rng.random()) for x in rng.random(50)} for _ in range(4)]
    known = performance(memory(*tasks), 8)
    best = [sorted(task, key=lambda x, task=task: task[x])[:2] for task in tasks]  # type: ignore[misc]
    expected = sorted(x for pair in best for x in pair)
    assert sorted(known.candidates[:, 0].tolist()) == pytest.approx(expected)
    assert known.measured.shape == (4, 8)


def test_a_task_without_usable_runs_says_nothing() -> None:
    data = MetaDataset.from_records(
        [
            TaskRecord("a", [{"k": "p", "x": 0.1}], np.zeros(1)),
            TaskRecord("b", [{"k": "q", "x": 0.1}, {"k": "q", "x": 0.4}], np.arange(2.0)),
        ],
        ConfigurationSpace({"x": (0.0, 1.0), "k": ["q", "r"]}),
    )
    known = performance(data)
    assert known.filled.tolist() == [[0.5, 0.5], [0.0, 1.0]]


def test_inactive_numbers_lie_apart() -> None:
    space = ConfigurationSpace()
    parent, child = Categorical("k", ["a", "b"]), Float("c", (0.0, 1.0))
    space.add(parent, child, Float("x", (0.0, 1.0)))
    space.add(EqualsCondition(child, parent, "a"))
    vectors = VectorSpace(space)
    rows = np.full((3, 3), 0.5)
    rows[:, space.index_of["k"]] = [0, 0, 1]
    rows[:, space.index_of["c"]] = [0.0, 1.0, np.nan]
    points = coordinates(vectors, rows)
    assert not np.isnan(points).any()
    column = [i for i in range(points.shape[1]) if len(set(points[:, i])) == 3]
    assert points[:, column[0]].tolist() == pytest.approx([1 / 3, 1.0, 0.0])
