"""A database of finished runs that every framework writes to and every framework starts from."""

from __future__ import annotations

import math
import os
import secrets
import time as clock
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from ConfigSpace import ConfigurationSpace

from automl_plugins.records.task_record import TaskRecord
from automl_plugins.records.trial import Status

from ..encoding import checked_name
from ..files import read_searches
from .reader import StoreReader


class MetaStore(StoreReader):
    """Runs of earlier tasks in an SQLite file or a PostgreSQL database.

    Kept are: tasks (name, meta-features, tags), the search spaces, searches (framework, seed) and
    their runs (configuration, loss, seconds, status, budget, time of the end), in tables whose
    names begin with ``meta_``. Nothing else, in particular no data and no code; ``delete_task``
    and ``delete_search`` remove it for good.

    Any number of threads and processes may read and write at once. Each method is one
    transaction: it happens in full or not at all, so a writer that is killed loses at most the
    run that it was writing. A run has a key that is unique in its search; a run that is there
    already is left as it is, so that writing it again, or importing the same runs twice, adds
    nothing.

    An SQLite file must lie on a local disk: network file systems do not lock reliably. Stores
    pickle as their address, with its password if it has one, and survive a fork.

    Args:
        url: ``sqlite:///FILE``, a path (the same), or ``postgresql://USER@HOST/DATABASE``. What
            is not there yet is made.
        timeout: How long a transaction waits for those of others, in seconds.

    Raises:
        ModuleNotFoundError: Without SQLAlchemy, or the driver of the database.
        StoreError: On construction and from every method: for a damaged file, a database of
            something else or of a newer version, one that cannot be reached or is busy for longer
            than ``timeout``.
        ValueError: For an address that is none.
    """

    def describe(
        self,
        task: str,
        *,
        meta_features: Mapping[str, float] | None = None,
        tags: Mapping[str, str] | None = None,
    ) -> None:
        """Make a task, or add to what is known of it; the new wins over the old, name by name.

        Args:
            task: Name of the task.
            meta_features: Properties of its data.
            tags: What else is known of it.

        Raises:
            TypeError: For a meta-feature that is no number, or a tag that is no text.
            ValueError: For an infinite meta-feature, or a name that is empty or too long.
        """
        from . import writing

        description = writing.Description.of(task, meta_features or {}, tags or {})
        self._database.write(lambda connection: writing.describe(connection, description))

    def record(
        self,
        task: str,
        configuration: Mapping[str, Any],
        loss: float | None,
        *,
        seconds: float | None = None,
        status: Status | None = None,
        budget: float | None = None,
        time: float | None = None,
        space: ConfigurationSpace | None = None,
        framework: str = "",
        seed: int | None = None,
        search: str | None = None,
        key: str | int | None = None,
    ) -> bool:
        """Store one finished run; its task is made if it is new.

        Args:
            task: Name of the task.
            configuration: Values of the active hyperparameters by name: text, numbers, bools,
                None.
            loss: What is minimised; None, NaN or infinite if the run failed.
            seconds: Duration.
            status: COMPLETE, PRUNED or FAILED; None takes COMPLETE if there is a loss.
            budget: Step or budget at which it was evaluated; None in full.
            time: Unix time at which it ended; None is now.
            space: The space that is searched; the last that was told is that of the whole search.
            framework: What the search is made with: "optuna", "smac", "hyperopt", ...
            seed: Its seed.
            search: Its name, unique in the task; None takes that of all unnamed searches of equal
                space, framework and seed.
            key: Name of the run, unique in the search, such as the number of the trial; None
                gives it one of its own.

        Returns:
            Whether it is new: False if the search has a run of this key, which stays as it is.

        Raises:
            TypeError: For a value that cannot be stored.
            ValueError: The same.
        """
        measured = {"loss": loss, "seconds": seconds, "budget": budget, "time": time}
        for name, value in measured.items():
            if value is not None and not isinstance(value, int | float | np.number):
                raise TypeError(f"{name} must be a number or None, got {value!r}.")

        def column(value: float | None) -> npt.NDArray[np.float64]:
            return np.array([math.nan if value is None else value], dtype=np.float64)

        record = TaskRecord(
            task,
            [configuration],
            column(loss),
            seconds=column(seconds),
            status=np.array([] if status is None else [status], dtype=np.int64),
            budget=column(budget),
            times=column(clock.time() if time is None else time),
            space=space,
            framework=framework,
            seed=seed,
        )
        return bool(
            self.add(record, search=search, keys=[secrets.token_hex(9) if key is None else key])
        )

    def add(
        self,
        record: TaskRecord,
        *,
        search: str | None = None,
        keys: Sequence[str | int] | None = None,
    ) -> int:
        """Store the runs of a search; its task is made if it is new, described if it is not.

        Args:
            record: The runs.
            search: See ``record``.
            keys: Name of each run (n), unique in the search. None makes them from the runs
                themselves: the same record again, or with more runs, adds only what is new.

        Returns:
            How many runs are new.

        Raises:
            TypeError: For a value that cannot be stored; then none of the runs is.
            ValueError: The same.
        """
        from . import writing

        rows = writing.Rows.of(record, search=search, keys=keys)
        return self._database.write(lambda connection: writing.add_runs(connection, rows))

    def delete_task(self, task: str) -> int:
        """Delete a task with all that belongs to it; returns how many runs.

        Deleted content is overwritten in an SQLite file, which keeps its size, and in its journal
        unless others are reading: then the last of them to close does it.

        Raises:
            ValueError: If there is no such task.
        """
        from . import writing

        count = self._database.write(lambda connection: writing.delete_task(connection, task))
        if count is None:
            raise ValueError(f"{self} has no task {task!r}.")
        self._database.checkpoint()
        return count

    def delete_search(self, search: str, *, task: str | None = None) -> int:
        """Delete the runs of a search, and what was computed from them; returns how many runs.

        Args:
            search: Its name, as told by ``searches``.
            task: The task to delete it from; None deletes it from all.

        Raises:
            ValueError: If there is no such search.
        """
        from . import writing

        count = self._database.write(lambda c: writing.delete_search(c, search, task))
        if count is None:
            where = "" if task is None else f" in the task {task!r}"
            raise ValueError(f"{self} has no search {search!r}{where}; see searches().")
        self._database.checkpoint()
        return count

    def import_(self, path: str | os.PathLike[str]) -> int:
        """Store the runs of a file; those that are there already are left as they are.

        The file is read and checked before anything is stored; each of its searches is a
        transaction of its own, and importing it again completes what was cut short.

        Returns:
            How many runs are new.

        Raises:
            ValueError: For a file of something else, or one that is damaged.
        """
        from . import writing

        found = [
            (
                writing.Description.of(s.record.name, s.record.meta_features, s.record.tags),
                # A task of which no run is known has no search either.
                writing.Rows.of(s.record, search=s.search or None, keys=s.keys or None)
                if len(s.record) or s.search
                else None,
            )
            for s in read_searches(path)
        ]
        count = 0
        for task, rows in found:
            if rows is None:
                self._database.write(partial(writing.describe, task=task))
            else:
                count += self._database.write(partial(writing.add_runs, rows=rows))
        return count

    def save_artifact(
        self, task: str, name: str, arrays: Mapping[str, Any], *, version: str
    ) -> None:
        """Keep arrays that were computed from the runs of a task, in place of earlier ones.

        Args:
            task: Name of the task.
            name: What they are, such as "surrogate"; unique in the task.
            arrays: Arrays of numbers or text by name.
            version: What they depend on; asked for again by ``load_artifact``.

        Raises:
            TypeError: For an array of objects.
            ValueError: If there is no such task.
        """
        from . import artifacts

        checked_name(name, "The name of an artifact")
        content = artifacts.to_bytes(arrays)
        if not self._database.write(lambda c: artifacts.save(c, task, name, version, content)):
            raise ValueError(f"{self} has no task {task!r}.")
