"""TaskMemory: earlier tasks in the vectors of the space that is searched."""

from __future__ import annotations

import logging
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ConfigSpace import ConfigurationSpace, Float

from automl_plugins.meta import MetaDataset, MetaStore, TaskRecord
from automl_plugins.meta.memories import AlignedMemory, TaskMemory, task_memory
from automl_plugins.spaces.vector_space import VectorSpace


def a_space(upper: float = 1.0) -> ConfigurationSpace:
    space = ConfigurationSpace()
    space.add(Float("x", (0.0, upper)))
    return space


def records(*names: str) -> list[TaskRecord]:
    return [
        TaskRecord(name, [{"x": 0.25}, {"x": 0.5}], np.array([0.1, float(i)]), space=a_space())
        for i, name in enumerate(names)
    ]


ABC = MetaDataset.from_records(records("a", "b", "c"), a_space())
SPACE = VectorSpace(a_space())


def names(memory: AlignedMemory) -> tuple[str, ...]:
    return tuple(task.name for task in memory.on(SPACE).tasks)


def test_the_task_and_its_variants_are_left_out_which_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.INFO, logger="automl_plugins.meta.memories"):
        memory = TaskMemory(ABC, task="b", exclude={"c", "never seen"})
    assert names(memory) == ("a",)
    assert memory.names == ("a", "b", "c")
    assert [r.message for r in caplog.records] == [
        "Task 'b' is in the memory; its own runs there are left out."
    ]
    caplog.clear()
    with caplog.at_level(logging.INFO, logger="automl_plugins.meta.memories"):
        assert names(TaskMemory(ABC, task="new")) == ("a", "b", "c")
    assert not caplog.records


def test_vectors_are_those_of_the_space_that_is_searched() -> None:
    wide = TaskMemory(ABC).on(VectorSpace(a_space(upper=2.0)))
    np.testing.assert_allclose(wide.vectors[:2, 0], [0.125, 0.25])
    np.testing.assert_allclose(TaskMemory(ABC).on(SPACE).vectors[:2, 0], [0.25, 0.5])


def test_it_is_aligned_once_for_each_space() -> None:
    memory = TaskMemory(records("a", "b"))
    first = memory.on(SPACE)
    assert memory.on(SPACE) is first
    assert memory.on(VectorSpace(a_space(3.0))) is not first
    again = pickle.loads(pickle.dumps(memory))
    np.testing.assert_array_equal(again.on(SPACE).vectors, first.vectors)


def test_a_store_is_remembered_and_its_path_is_read(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with MetaStore(path) as store:
        for record in records("a", "b"):
            store.add(record)
        memory = TaskMemory(store, task="a")
        assert memory.store is store and names(memory) == ("b",)
        store.add(records("a", "b", "later")[2])
        assert names(memory) == ("b",)  # one search, one memory
    by_path = TaskMemory(path)
    assert by_path.store is None and names(by_path) == ("a", "b", "later")


@pytest.mark.parametrize("task", [None, "a"])
def test_what_aligns_itself_is_taken_as_it_is(task: str | None) -> None:
    class Own:
        store = None

        def on(self, space: VectorSpace) -> MetaDataset:
            return ABC

    own = Own()
    assert task_memory(own, task=task) is own
    assert isinstance(task_memory(ABC, task=task), TaskMemory)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: TaskMemory(ABC, exclude=["a", "b", "c"]), ValueError, "nothing to learn"),
        (lambda: TaskMemory(records("a"), task="a"), ValueError, "no task but a"),
        (lambda: TaskMemory([]), ValueError, "no sources to learn from"),
        (lambda: TaskMemory(3), TypeError, "memory must be"),  # type: ignore[arg-type]
        (lambda: TaskMemory(ABC, exclude="a"), TypeError, "exclude must be names"),
        (lambda: TaskMemory("no such memory"), ValueError, "no memory"),
    ],
)
def test_what_is_refused_and_why(make: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        make()


def test_a_space_without_a_common_parameter_is_refused() -> None:
    other = ConfigurationSpace()
    other.add(Float("y", (0.0, 1.0)))
    with pytest.raises(ValueError, match="share"):
        TaskMemory(ABC).on(VectorSpace(other))
