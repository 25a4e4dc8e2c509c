"""The reading half of a store."""

from __future__ import annotations

import contextlib
import gc
import math
import os
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from ConfigSpace import ConfigurationSpace

from automl_plugins._optional import require
from automl_plugins.records.task_record import TaskRecord

from ..alignment import Missing, OutOfRange
from ..dataset import MetaDataset
from ..files import StoredSearch, write_searches
from ..tasks import MetaTask


@dataclass(frozen=True)
class SearchInfo:
    """What is stored of a search.

    Attributes:
        task: Name of its task.
        search: Its own name, unique in the task.
        framework: What it was made with; empty where that is not known.
        seed: Its seed; None where that is not known.
        n_runs: Runs that are stored.
    """

    task: str
    search: str
    framework: str
    seed: int | None
    n_runs: int


class StoreReader:
    """What ``MetaStore`` can tell; see there."""

    def __init__(self, url: str | os.PathLike[str], *, timeout: float = 60.0) -> None:
        require("sqlalchemy", needed_by="MetaStore", extra="store")
        from .connection import Database, parse_url
        from .opening import open_store

        if not 0 < timeout < math.inf:
            raise ValueError(f"timeout must be a positive number of seconds, got {timeout}.")
        self._database = Database(parse_url(url), timeout=timeout)
        try:
            open_store(self._database)
        except BaseException:
            self._database.close()
            raise

    def tasks(self, *, tags: Mapping[str, str] | None = None) -> list[MetaTask]:
        """The tasks that have all these tags, in the order in which they were stored."""
        from . import reading

        keep = _filter(None, (), tags)
        return [t for t in self._database.read(reading.read_tasks).values() if keep(t)]

    def searches(self) -> list[SearchInfo]:
        """What is stored of each search, task by task."""
        from . import reading

        return self._database.read(reading.read_infos)

    def records(
        self,
        tasks: Collection[str] | None = None,
        *,
        exclude: Collection[str] = (),
        tags: Mapping[str, str] | None = None,
        framework: str | None = None,
        search: str | None = None,
    ) -> list[TaskRecord]:
        """The runs in plain values, a record for each search, runs in the order of storage.

        Runs of equal configurations share one dictionary: it is there to be read.

        Args:
            tasks: Names of tasks; None takes all.
            exclude: Names of tasks that are left out, whether they are there or not.
            tags: Tags that a task must have.
            framework: What a search must have been made with.
            search: Name that a search must have.

        Raises:
            ValueError: For a task that is not there.
        """
        from . import reading

        keep = self._filter(tasks, exclude, tags)
        with _collector_paused():
            found = self._database.read(
                lambda c: reading.read_searches(c, keep, framework=framework, search=search)
            )
        return [stored.record for stored in found if len(stored.record)]

    def dataset(
        self,
        space: ConfigurationSpace | None = None,
        *,
        tasks: Collection[str] | None = None,
        exclude: Collection[str] = (),
        tags: Mapping[str, str] | None = None,
        framework: str | None = None,
        out_of_range: OutOfRange = "clip",
        missing: Missing = "impute",
        defaults: Mapping[str, Any] | None = None,
    ) -> MetaDataset:
        """The runs aligned to a search space: the form that designs and models read.

        Arguments are those of ``records`` and of ``MetaDataset.from_records``, and so are the
        errors.
        """
        with _collector_paused():
            return MetaDataset.from_records(
                self.records(tasks, exclude=exclude, tags=tags, framework=framework),
                space,
                out_of_range=out_of_range,
                missing=missing,
                defaults=defaults,
            )

    def export(self, path: str | os.PathLike[str], tasks: Collection[str] | None = None) -> None:
        """Write all runs, or those of some tasks, to one file (see ``files.write_records``).

        Raises:
            ValueError: For a task that is not there, or a suffix other than .json.xz and .json.
        """
        from . import reading

        keep = self._filter(tasks, (), None)
        found = self._database.read(lambda c: reading.read_searches(c, keep, with_keys=True))
        searched = {stored.record.name for stored in found}
        bare = [task for task in self.tasks() if keep(task) and task.name not in searched]
        write_searches(path, [StoredSearch(_described(task)) for task in bare] + found)

    def load_artifact(
        self, task: str, name: str, *, version: str
    ) -> dict[str, npt.NDArray[Any]] | None:
        """What ``save_artifact`` kept; None if there is nothing of this version."""
        from . import artifacts

        content = self._database.read(lambda c: artifacts.load(c, task, name, version))
        return None if content is None else artifacts.from_bytes(content)

    # --- itself -------------------------------------------------------------------------------

    @property
    def url(self) -> str:
        """Its address, without the password."""
        return str(self._database)

    def close(self) -> None:
        """Close the connections; another call of any method opens one again."""
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.url!r})"

    def __reduce__(self) -> tuple[Callable[[str], StoreReader], tuple[str]]:
        address = self._database.url.render_as_string(hide_password=False)
        return partial(type(self), timeout=self._database.timeout), (address,)

    def _filter(
        self,
        tasks: Collection[str] | None,
        exclude: Collection[str],
        tags: Mapping[str, str] | None,
    ) -> Callable[[MetaTask], bool]:
        keep = _filter(tasks, exclude, tags)
        if tasks is not None:
            known = {task.name for task in self.tasks()}
            if absent := sorted(set(tasks) - known):
                raise ValueError(
                    f"{self} has no task {', '.join(map(repr, absent))}; it has {len(known)}:"
                    f" {', '.join(sorted(known)[:10])}{', ...' if len(known) > 10 else ''}."
                )
        return keep


def _filter(
    tasks: Collection[str] | None, exclude: Collection[str], tags: Mapping[str, str] | None
) -> Callable[[MetaTask], bool]:
    for name, given in (("tasks", tasks), ("exclude", exclude)):
        if isinstance(given, str):
            raise TypeError(f"{name} must be a list of names, got the text {given!r}.")
    wanted = None if tasks is None else set(tasks)
    unwanted = set(exclude)
    asked = dict(tags or {})

    def keep(task: MetaTask) -> bool:
        return (
            (wanted is None or task.name in wanted)
            and task.name not in unwanted
            and all(task.tags.get(name) == value for name, value in asked.items())
        )

    return keep


@contextlib.contextmanager
def _collector_paused() -> Iterator[None]:
    """A million new objects without garbage: looking for some takes a third of the time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _described(task: MetaTask) -> TaskRecord:
    """A task of which no run is known."""
    return TaskRecord(task.name, [], np.empty(0), meta_features=task.meta_features, tags=task.tags)
