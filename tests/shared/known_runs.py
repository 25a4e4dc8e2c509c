"""Memories and stores that the tests of several folders share."""

from __future__ import annotations

import math
import os
import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from ConfigSpace import Categorical, ConfigurationSpace, EqualsCondition, Float, Integer

from automl_plugins.meta import TaskRecord
from automl_plugins.meta.files import StoredSearch, write_searches

TASK = {"NumberOfInstances": 420.0}


def model_space() -> ConfigurationSpace:
    space = ConfigurationSpace(seed=0)
    space.add(Categorical("model", ["svm", "forest"]))
    space.add(Float("C", (0.001, 1000.0), log=True), Integer("depth", (1, 10)))
    space.add(EqualsCondition(space["C"], space["model"], "svm"))
    space.add(EqualsCondition(space["depth"], space["model"], "forest"))
    return space


def kernel_space(upper: float = 8.0) -> ConfigurationSpace:
    made = ConfigurationSpace()
    kernel, gamma = Categorical("kernel", ["rbf", "linear"]), Float("gamma", (1e-5, upper))
    made.add(kernel, gamma, Integer("n", (1, 50)), EqualsCondition(gamma, kernel, "rbf"))
    return made


def kernel_record(name: str = "iris", n: int = 5, draw: int = 0, **changes: Any) -> TaskRecord:
    """Runs with every column, some of them unknown."""
    rng = np.random.default_rng(draw)
    configurations: list[dict[str, Any]] = [
        {"gamma": float(rng.uniform(0.1, 1)), "kernel": "rbf", "n": int(rng.integers(1, 50))}
        if i % 2
        else {"kernel": "linear", "n": 3}
        for i in range(n)
    ]
    given: dict[str, Any] = {
        "seconds": np.append(rng.random(n - 1), np.nan),
        "budget": np.append(np.full(n - 1, np.nan), 3.0),
        "times": 1.7e9 + rng.random(n),
        "space": kernel_space(),
        "meta_features": {"NumberOfInstances": 150.0, "Skewness": np.nan},
        "tags": {"family": "flowers"},
        "framework": "optuna",
        "seed": 3,
    }
    return TaskRecord(
        name, configurations, np.append(rng.random(n - 1), np.nan), **given | changes
    )


def loss(config: Mapping[str, Any], task: float = 3.2, n_tasks: int = 8) -> float:
    """On small data an SVM with a C that grows with it is best, on large data a deep forest."""
    small = task < n_tasks / 2
    if "C" in config:  # Hyperopt's spaces need not name the model
        return (0.1 if small else 0.5) + 0.05 * abs(math.log10(config["C"]) - task / 2)
    return float((0.6 if small else 0.3) - 0.02 * config.get("depth", 0))


def records(n_tasks: int = 8, *, described: bool = True) -> list[TaskRecord]:
    """The same ten configurations on every task, the larger the later."""
    grid: list[dict[str, Any]] = [{"model": "svm", "C": 10.0**e} for e in range(-2, 3)]
    grid += [{"model": "forest", "depth": d} for d in range(1, 11, 2)]
    return [
        TaskRecord(
            f"t{task}",
            grid,
            np.array([loss(config, task, n_tasks) for config in grid]),
            space=model_space(),
            meta_features={"NumberOfInstances": 100.0 * (task + 1)} if described else {},
        )
        for task in range(n_tasks)
    ]


def assert_same(left: TaskRecord, right: TaskRecord) -> None:
    """Equal to the last bit: 1, 1.0, True, 0.0 and -0.0 are not the same."""

    def exact(value: Any) -> Any:
        return type(value), struct.pack("<d", value) if isinstance(value, float) else value

    configurations = [
        [{k: exact(v) for k, v in c.items()} for c in record.configurations]
        for record in (left, right)
    ]
    assert configurations[0] == configurations[1]
    for name in ("losses", "seconds", "budget", "times", "status"):
        mine, its = getattr(left, name), getattr(right, name)
        np.testing.assert_array_equal(mine, its)
        np.testing.assert_array_equal(np.signbit(mine), np.signbit(its))
    for name in ("name", "space", "meta_features", "tags", "framework", "seed"):
        assert repr(getattr(left, name)) == repr(getattr(right, name)), name


class FakeStore:
    """What ``MetaStore.add`` promises, in memory; pickles."""

    def __init__(self) -> None:
        self.runs: dict[tuple[str, str, str], tuple[TaskRecord, int]] = {}
        self.spaces: dict[str, ConfigurationSpace | None] = {}

    def add(
        self,
        record: TaskRecord,
        *,
        search: str | None = None,
        keys: Sequence[str | int] | None = None,
    ) -> int:
        assert search is not None and keys is not None and len(keys) == len(record)
        new = 0
        for i, key in enumerate(keys):
            place = (record.name, search, str(key))
            new += place not in self.runs
            self.runs.setdefault(place, (record, i))
        self.spaces[search] = record.space
        return new

    @property
    def single(self) -> list[TaskRecord]:
        """The records of runs that came one at a time."""
        return [told for told, _ in self.runs.values()]

    def column(self, name: str) -> list[float]:
        """A column of all runs, in the order in which they came."""
        return [float(getattr(told, name)[i]) for told, i in self.runs.values()]


class BrokenStore:
    def add(self, record: TaskRecord, **_: Any) -> int:
        raise OSError("no space left on device")


def write_records(path: str | os.PathLike[str], records: Iterable[TaskRecord]) -> None:
    """Write runs to a file, without the identity of their searches."""
    write_searches(path, [*map(StoredSearch, records)])
