"""What a search sees of a memory, and the memories that come with the package."""

from __future__ import annotations

import json
import logging
import lzma
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ConfigSpace import Configuration, ConfigurationSpace

import automl_plugins
from automl_plugins.meta import MetaDataset, MetaStore, TaskRecord, bundled
from automl_plugins.meta.memories import (
    LEARNERS,
    METRICS,
    AlignedMemory,
    TaskMemory,
    task_memory,
)
from automl_plugins.records.trial import Status
from automl_plugins.spaces.vector_space import VectorSpace


def a_space(upper: float = 1.0) -> ConfigurationSpace:
    return ConfigurationSpace({"x": (0.0, upper)})


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
        memory = TaskMemory(ABC, task="b")
        assert names(memory) == ("a", "c") and memory.names == ("a", "b", "c")
        assert names(memory.without({"c", "never seen"})) == ("a",)
        assert names(TaskMemory(ABC, task="new")) == ("a", "b", "c")
    assert [r.message for r in caplog.records] == [
        "Task 'b' is in the memory; its own runs there are left out."
    ]


def test_it_is_aligned_once_for_each_space() -> None:
    memory = TaskMemory(records("a", "b"))
    first = memory.on(SPACE)
    np.testing.assert_allclose(first.vectors[:2, 0], [0.25, 0.5])
    assert memory.on(SPACE) is first
    wide = memory.on(VectorSpace(a_space(upper=2.0)))
    np.testing.assert_allclose(wide.vectors[:2, 0], [0.125, 0.25])
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
    ("memory", "options", "error", "message"),
    [
        (records("a"), {"task": "a"}, ValueError, "no task but a, .*nothing to learn"),
        ([], {}, ValueError, "no sources to learn from"),
        (3, {}, TypeError, "memory must be"),
        ("no such memory", {}, ValueError, "no memory"),
    ],
)
def test_what_is_refused_and_why(
    memory: Any, options: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        TaskMemory(memory, **options)


# --- those of the package ---------------------------------------------------------------------

DATA = Path(automl_plugins.__file__).parent / "data"


@pytest.mark.parametrize("learner", LEARNERS)
def test_enough_was_measured_and_described(learner: str) -> None:
    data = bundled(learner)
    assert len(data.tasks) >= 50
    distinct, which = data.distinct
    assert len(distinct) >= 60
    for rows in data.rows:  # the same configurations on every task
        assert len(np.unique(which[rows])) == len(distinct)
    complete = data.status == Status.COMPLETE
    assert complete.mean() > 0.95
    assert (data.losses[complete] >= 0).all() and (data.losses[complete] <= 1).all()
    assert np.isnan(data.seconds).mean() < 0.05 and not (data.seconds <= 0).any()
    for vector in distinct:
        Configuration(data.space, vector=vector.copy()).check_valid_configuration()
    known = data.meta_feature_names()
    assert {"NumberOfInstances", "NumberOfClasses"} <= set(known)
    assert np.isfinite(data.meta_features(known)).mean() > 0.9
    assert len({task.tags["family"] for task in data.tasks}) >= 40
    assert all(None not in task.size for task in data.tasks)
    # The text of the file: what reads it would make zeros unknown.
    document = json.loads(lzma.decompress((DATA / f"{learner}.json.xz").read_bytes()))
    seconds = [s for record in document["records"] for s in record["seconds"]]
    assert len(seconds) > 9000
    assert all(s is None or s > 0.0 for s in seconds)


def test_metrics_share_everything_but_the_losses() -> None:
    a, *others = (bundled("knn", metric=metric) for metric in METRICS)
    for other in others:
        np.testing.assert_array_equal(a.vectors, other.vectors)
        np.testing.assert_array_equal(a.seconds, other.seconds)
        assert (a.losses != other.losses).any()


def test_they_are_small() -> None:
    files = sorted(DATA.glob("*.json.xz"))
    assert {file.name.removesuffix(".json.xz") for file in files} == set(LEARNERS)
    assert sum(file.stat().st_size for file in files) < 3e6


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"learner": "xgboost"}, "learner must be one of 'lightgbm', 'random_forest'"),
        ({"learner": "svm", "metric": "rmse"}, "metric must be one of 'error', 'balanced_error'"),
    ],
)
def test_unknown_names(options: dict[str, str], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        bundled(**options)
