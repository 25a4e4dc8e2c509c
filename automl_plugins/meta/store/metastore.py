"""A database of finished runs that every framework writes to and every framework starts from."""

from __future__ import annotations

import logging
import math
import os
import secrets
import time as clock
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from numbers import Real
from typing import TYPE_CHECKING, Any, Self, TypeVar, Unpack

import numpy as np
from ConfigSpace import ConfigurationSpace

from automl_plugins._arguments import check_finite, check_kind
from automl_plugins._imports import require
from automl_plugins.addresses import as_path
from automl_plugins.meta.alignment import AlignOptions
from automl_plugins.meta.dataset import MetaDataset
from automl_plugins.meta.files import (
    StoredSearch,
    check_replaceable,
    read_searches,
    write_searches,
)
from automl_plugins.meta.plain import check_texts, plain_float, plain_task
from automl_plugins.meta.tasks import MetaTask, read_names
from automl_plugins.records.task_record import TaskRecord
from automl_plugins.records.trial import Status

# Before what imports it, whose error would not name the extra.
require("sqlalchemy", needed_by="MetaStore", extra="store")

from . import rows  # noqa: E402
from .connection import Database, parse_url  # noqa: E402
from .schema import prepare_tables  # noqa: E402

if TYPE_CHECKING:
    from sqlalchemy import Connection

T = TypeVar("T")
_logger = logging.getLogger(__name__)


class MetaStore:
    """Runs of earlier tasks in an SQLite file or a PostgreSQL database.

    Kept are: tasks (name, meta-features, tags), the search spaces, searches (framework, seed) and
    their runs (configuration, loss, seconds, status, budget, time of the end), in tables whose
    names begin with ``meta_``. Nothing else, in particular no data and no code; ``delete_task``
    and ``delete_search`` remove it for good.

    Any number of threads and processes may read and write at once. Each method that writes is one
    transaction (``import_`` one for each search): it happens in full or not at all, so a writer
    that is killed loses at most the run that it was writing. A run has a key that is unique in its
    search; a run that is there already is left as it is, so that writing it again, or importing
    the same runs twice, adds nothing. If its file was removed or replaced meanwhile, the next
    method that writes opens the one that is there, or makes it, and logs a warning.

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
        ValueError: For an address that cannot be read.

    Example::

        with MetaStore("runs.db") as store:
            store.add(task_records[0])
            print(store.tasks())
    """

    _make = True  # what is not there yet

    def __init__(self, url: str | os.PathLike[str], *, timeout: float = 60.0) -> None:
        check_finite("timeout", timeout, positive=True)
        self._database = Database(parse_url(url), timeout=timeout)
        try:
            prepare_tables(self._database, make=self._make)
        # An interruption, too, leaves nobody to close it.
        except BaseException:
            self._database.close()
            raise

    # --- writing ------------------------------------------------------------------------------

    def describe(
        self,
        task: str,
        *,
        meta_features: Mapping[str, float] | None = None,
        tags: Mapping[str, str] | None = None,
    ) -> None:
        """Make a task, or add to what is known of it; the new wins over the old, name by name.

        Raises:
            TypeError: For a meta-feature that is not a number, or a tag that is not text.
            ValueError: For an infinite meta-feature, a name that is empty or too long, or a text
                that no database can hold.
        """
        description = plain_task(task, meta_features or {}, tags or {})
        self._write(partial(rows.describe, task=description))

    def record(
        self,
        task: str,
        configuration: Mapping[str, Any],
        loss: float | None,
        *,
        seconds: float | None = None,
        status: Status | str | None = None,
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
            status: COMPLETE, PRUNED or FAILED, or its name as text; None takes COMPLETE if there
                is a loss.
            budget: Step or budget at which it was evaluated; None in full.
            time: Unix time at which it ended; None is now.
            space: The space that is searched; the last one given is that of the whole search.
            framework: What the search is made with: "optuna", "smac", "hyperopt", ...
            seed: Its seed.
            search: Its name, unique in the task; None takes one name for all unnamed searches of
                equal space, framework and seed.
            key: Name of the run, unique in the search, such as the number of the trial; None
                gives it one of its own.

        Returns:
            Whether it is new: False if the search has a run of this key, which stays as it is.

        Raises:
            TypeError: For a value that cannot be stored.
            ValueError: The same.
        """
        time = clock.time() if time is None else time
        measured = {"loss": loss, "seconds": seconds, "budget": budget, "time": time}
        columns = {}
        for name, value in measured.items():
            if value is not None and not isinstance(value, Real):
                raise TypeError(f"{name} must be a number or None, got {value!r}.")
            number = math.nan if value is None else plain_float(value, name=name)
            columns[name] = np.array([number])
        if status is not None:
            try:
                status = Status(status)  # type: ignore[arg-type]  # its name is a value, too
            except ValueError:
                allowed = "'complete', 'pruned', 'failed' or None"
                raise ValueError(f"status must be {allowed}, got {status!r}.") from None
        record = TaskRecord(
            task,
            [configuration],
            columns["loss"],
            seconds=columns["seconds"],
            status=np.array([] if status is None else [status], dtype=np.int64),
            budget=columns["budget"],
            times=columns["time"],
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
        allowed = (
            "a TaskRecord: record(store, task=...).add(...) of an adapter reads studies, trials"
            " and run histories, TaskRecord.from_frame reads data frames"
        )
        check_kind("MetaStore.add", record, TaskRecord, allowed)
        added = rows.Rows.of(record, search=search, keys=keys)
        return self._write(partial(rows.add_runs, rows=added))

    def delete_task(self, task: str) -> int:
        """Delete a task with all that belongs to it; returns how many runs.

        Deleted content is overwritten in an SQLite file, which keeps its size, and in its journal
        unless others are reading: then the last of them to close does it.

        Raises:
            ValueError: If there is no such task.
        """
        check_texts(task=task)
        count = self._write(partial(rows.delete_task, name=task))
        if count is None:
            raise ValueError(f"{self} has no task {task!r}.")
        self._database.checkpoint()
        return count

    def delete_search(self, search: str, *, task: str | None = None) -> int:
        """Delete the runs of a search; returns how many.

        ``task`` is the task to delete it from; None deletes it from all.

        Raises:
            ValueError: If there is no such search.
        """
        check_texts(search=search, task=task)
        count = self._write(partial(rows.delete_search, name=search, task=task))
        if count is None:
            where = "" if task is None else f" in the task {task!r}"
            raise ValueError(f"{self} has no search {search!r}{where}; see searches().")
        self._database.checkpoint()
        return count

    def import_(self, path: str | os.PathLike[str] | list[StoredSearch]) -> int:
        """Store the runs of a file; returns how many are new.

        Runs that are there are left alone, and so are meta-features and tags: the file adds those
        that are missing, for it may be older.

        What ``read_searches`` has read from it may be given in place of its path.

        The file is read and checked before anything is stored; each of its searches is a
        transaction of its own, and importing it again completes what was cut short.

        Raises:
            ValueError: For a file of something else, or one that is damaged.
        """
        searches = path if isinstance(path, list) else read_searches(path)
        found = [
            rows.Rows.of(s.record, search=s.search or None, keys=s.keys or None) for s in searches
        ]
        count = 0
        for stored, added in zip(searches, found, strict=True):
            if len(stored.record) or stored.search:
                count += self._write(partial(rows.add_runs, rows=added, keep=True))
            else:  # a task of which no run is known has no search either
                self._write(partial(rows.describe, task=added.task, keep=True))
        return count

    # --- reading ------------------------------------------------------------------------------

    def tasks(self, *, tags: Mapping[str, str] | None = None) -> list[MetaTask]:
        """The tasks that have all these tags, in the order in which they were stored."""
        keep = self._filter(None, (), tags)
        return [task for task in self._database.read(rows.read_tasks).values() if keep(task)]

    def searches(self) -> list[rows.SearchInfo]:
        """Facts of each search, task by task."""
        return self._database.read(rows.read_infos)

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
        check_texts(framework=framework, search=search)
        keep = self._filter(tasks, exclude, tags)
        found = self._database.read(
            partial(rows.read_searches, keep=keep, framework=framework, search=search)
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
        **options: Unpack[AlignOptions],
    ) -> MetaDataset:
        """The runs aligned to a search space: the form that designs and models read.

        Arguments and errors are those of ``records`` and ``MetaDataset.from_records``.
        """
        records = self.records(tasks, exclude=exclude, tags=tags, framework=framework)
        if not records and (stored := self.records()):
            asked = {"tasks": tasks, "exclude": exclude, "tags": tags, "framework": framework}
            given = ", ".join(f"{name}={value!r}" for name, value in asked.items() if value)
            there = sorted({f"{r.name!r} (framework {r.framework!r})" for r in stored})
            raise ValueError(
                f"There are no runs to learn from with {given}: the store has {', '.join(there)}."
            )
        return MetaDataset.from_records(records, space, **options)

    def export(self, path: str | os.PathLike[str], tasks: Collection[str] | None = None) -> None:
        """Write all runs, or those of some tasks, to one file (see ``files.write_searches``).

        Raises:
            ValueError: For a task that is not there, a suffix other than .json.xz and .json, the
                file of the store itself or of anything but records, or more runs than can be
                imported at a time: 256 MB of JSON.
        """
        if self._database.is_sqlite and as_path(path).resolve() == self._database.file.resolve():
            raise ValueError(f"{path} is the store itself: name another file.")
        check_replaceable(path)
        keep = self._filter(tasks, (), None)
        found = self._database.read(partial(rows.read_searches, keep=keep))
        searched = {stored.record.name for stored in found}
        # Tasks that have a description, and no search.
        bare = [
            TaskRecord(t.name, [], np.empty(0), meta_features=t.meta_features, tags=t.tags)
            for t in self.tasks()
            if keep(t) and t.name not in searched
        ]
        write_searches(path, [*map(StoredSearch, bare), *found])

    # --- itself -------------------------------------------------------------------------------

    @property
    def url(self) -> str:
        """Address of the database, without the password; the path of a file that has none."""
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

    def __reduce__(self) -> tuple[Callable[[str], MetaStore], tuple[str]]:
        address = self._database.address(hide_password=False)
        return partial(type(self), timeout=self._database.timeout), (address,)

    def _write(self, work: Callable[[Connection], T]) -> T:
        """``Database.write``, in the file that has the store's name now."""
        if self._database.follow_file(partial(prepare_tables, make=self._make)):
            _logger.warning(
                "%s was removed or replaced while it was open: what is written from now on goes to"
                " the file that is there now, what was in the old one is not in it.",
                self.url,
            )
        return self._database.write(work)

    def _filter(
        self,
        tasks: Collection[str] | None,
        exclude: Collection[str],
        tags: Mapping[str, str] | None,
    ) -> Callable[[MetaTask], bool]:
        left_out = frozenset(read_names("exclude", exclude))
        wanted = None if tasks is None else frozenset(read_names("tasks", tasks))
        check_kind("tags", tags, Mapping | None, "texts by name")
        if wanted is not None:
            known = {task.name for task in self.tasks()}
            if absent := sorted(wanted - known):
                raise ValueError(
                    f"{self} has no task {', '.join(map(repr, absent))}; it has {len(known)}:"
                    f" {', '.join(sorted(known)[:10])}{', ...' if len(known) > 10 else ''}."
                )

        def keep(task: MetaTask) -> bool:
            return (
                (wanted is None or task.name in wanted)
                and task.name not in left_out
                and (tags or {}).items() <= task.tags.items()
            )

        return keep


class ExistingStore(MetaStore):
    """A store that is there, for commands: a database without one is refused and left as it is.

    An SQLite file must exist. Messages call the store by its address.
    """

    _make = False

    def __repr__(self) -> str:
        return self.url
