"""Rows of tasks, searches and runs: written where they are missing, and read in bulk.

Every transaction touches a task, then a space, then a search, then runs: no two can wait for
each other in a circle.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import Connection, Row

from automl_plugins._arguments import check_integer
from automl_plugins.meta.files import DAMAGE, StoredSearch
from automl_plugins.meta.plain import (
    check_name,
    check_text,
    digest,
    encode,
    parse_meta_features,
    parse_space,
    plain_columns,
    plain_configurations,
    plain_space,
    plain_task,
)
from automl_plugins.meta.tasks import MetaTask, update_known
from automl_plugins.records.task_record import TaskRecord
from automl_plugins.spaces.union import unite

from .connection import StoreError
from .schema import runs, searches, spaces, tasks

# SQLite takes 32 766 variables in a statement, unless it was built with another limit.
_MOST_IDS = 100  # asked for at once: the runs of so many searches are held twice

# --- writing --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Rows:
    """Runs of one search as they are stored: all that can be wrong was refused before."""

    task: dict[str, Any]
    space: str | None
    search: dict[str, str | None]  # name, framework, seed
    runs: list[dict[str, Any]]

    @classmethod
    def of(
        cls, record: TaskRecord, *, search: str | None, keys: Sequence[str | int] | None
    ) -> Rows:
        """Encoded runs; the arguments and errors of ``MetaStore.add``."""
        space = None if record.space is None else encode(plain_space(record.space))
        check_integer("seed", record.seed, 0, optional=True)
        seed = None if record.seed is None else str(int(record.seed))
        framework = check_text(record.framework, "framework")
        if search is None:
            search = "unnamed-" + digest(space, framework, seed)
        texts = [encode(configuration) for configuration in plain_configurations(record)]
        losses, seconds, budget, times = plain_columns(record).values()
        rows = list(
            zip(texts, losses, seconds, record.status.tolist(), budget, times, strict=True)
        )
        if keys is None:
            names = _content_keys(rows)
        else:
            names = [check_name(str(key), "The key of a run") for key in keys]
            if len(names) != len(record) or len(set(names)) != len(names):
                raise ValueError(
                    f"Task {record.name!r}: {len(record)} runs need as many keys, each its own;"
                    f" got {len(names)}, {len(set(names))} of them different."
                )
        fields = ("key", "configuration", "loss", "seconds", "status", "budget", "time")
        return cls(
            task=plain_task(record.name, record.meta_features, record.tags),
            space=space,
            search={
                "name": check_name(search, "The name of a search"),
                "framework": framework,
                "seed": seed,
            },
            runs=[
                dict(zip(fields, (key, *row), strict=True))
                for key, row in zip(names, rows, strict=True)
            ],
        )


def _content_keys(rows: Sequence[Sequence[object]]) -> list[str]:
    """Keys (n) from configurations and all that was measured; repeated runs are numbered."""
    seen: Counter[str] = Counter()
    keys = []
    for row in rows:
        # 72 bits: of a million different runs two have one key with a probability of 1e-10.
        key = digest(*row, size=9)
        seen[key] += 1
        keys.append(key if seen[key] == 1 else f"{key}.{seen[key]}")
    return keys


def describe(connection: Connection, task: Mapping[str, Any], *, keep: bool = False) -> int:
    """Make a task or add to what is known, the new winning unless ``keep``; returns its id.

    An unknown meta-feature (NaN) replaces nothing.
    """
    name = {"name": task["name"]}
    row = _ensure(connection, tasks, name, {"meta_features": "{}", "tags": "{}"})
    if not task["meta_features"] and not task["tags"]:
        return int(row.id)
    known = connection.execute(
        # PostgreSQL: of two that describe a task at once the second adds to what the first wrote.
        sa.select(tasks).where(tasks.c.id == row.id).with_for_update()
    ).one_or_none()
    if known is None:  # deleted since: begin again
        return describe(connection, task, keep=keep)
    old = {column: getattr(known, column) for column in ("meta_features", "tags")}
    new = {}
    for column, text in old.items():
        stored, given = json.loads(text), task[column]
        low, high = (given, stored) if keep else (stored, given)
        new[column] = encode(update_known(low, high))
    if new != old:
        connection.execute(tasks.update().where(tasks.c.id == row.id).values(new))
    return int(row.id)


def add_runs(connection: Connection, rows: Rows, *, keep: bool = False) -> int:
    """Store the runs whose keys are new; returns how many. ``keep`` as for ``describe``."""
    task_id = describe(connection, rows.task, keep=keep)
    unique = {"task_id": task_id, "name": rows.search["name"]}
    known: dict[str, Any] = {name: v for name in ("framework", "seed") if (v := rows.search[name])}
    if rows.space is not None:
        known["space_id"] = _ensure_space(connection, rows.space)
    made = _ensure(connection, searches, unique, {"framework": ""} | known)
    if keep:
        known = _missing(connection, made, known)
    if any(getattr(made, name) != value for name, value in known.items()):
        connection.execute(searches.update().where(searches.c.id == made.id).values(known))
    if not rows.runs:
        return 0
    new = [run | {"search_id": made.id} for run in rows.runs]
    return len(connection.execute(_insert(connection, runs).returning(runs.c.id), new).all())


def _missing(connection: Connection, made: Row[Any], known: Mapping[str, Any]) -> dict[str, Any]:
    """Facts ``known`` from a file, which may be older, that a stored search lacks.

    The space becomes the union of both: in a narrower one runs would be clipped. If the two
    contradict each other the stored one stays.
    """
    lacking = {name: value for name, value in known.items() if not getattr(made, name)}
    stored, given = made.space_id, known.get("space_id")
    if stored is None or given in (None, stored):
        return lacking
    both = _read_spaces(connection, {stored, given})
    try:
        union = unite(both.values())
    except ValueError:
        return lacking
    if union != both[stored]:
        lacking["space_id"] = _ensure_space(connection, encode(plain_space(union)))
    return lacking


def delete_task(connection: Connection, name: str) -> int | None:
    """Delete a task with all that belongs to it; returns its number of runs, None if unknown."""
    task = connection.execute(sa.select(tasks.c.id).where(tasks.c.name == name)).scalar()
    if task is None:
        return None
    of_task = sa.select(searches.c.id).where(searches.c.task_id == task)
    return _delete(connection, tasks.delete().where(tasks.c.id == task), of_task)


def delete_search(connection: Connection, name: str, task: str | None) -> int | None:
    """``MetaStore.delete_search``; returns the number of runs, None if there is no search."""
    query = sa.select(searches.c.id).where(searches.c.name == name)
    if task is not None:
        query = query.join(tasks, tasks.c.id == searches.c.task_id).where(tasks.c.name == task)
    if connection.execute(query).first() is None:
        return None
    return _delete(connection, searches.delete().where(searches.c.id.in_(query)), query)


def _delete(connection: Connection, delete: sa.Delete, ids: sa.Select[int]) -> int:
    """``delete`` the searches ``ids``, and spaces that no other has; returns how many runs."""
    count = sa.select(sa.func.count()).select_from(runs).where(runs.c.search_id.in_(ids))
    n_runs = int(connection.execute(count).scalar_one())  # before they are gone
    connection.execute(delete)
    used = sa.select(searches.c.id).where(searches.c.space_id == spaces.c.id).exists()
    connection.execute(spaces.delete().where(~used))
    return n_runs


def _ensure(
    connection: Connection, table: sa.Table, unique: dict[str, Any], others: dict[str, Any]
) -> Row[Any]:
    """The row with these unique values, made if there is none; others may make it meanwhile."""
    query = sa.select(table).where(*(table.c[name] == value for name, value in unique.items()))
    # Until it is seen: what others have made they may delete again before it is read.
    while (row := connection.execute(query).one_or_none()) is None:
        connection.execute(_insert(connection, table), unique | others)
    return row


def _ensure_space(connection: Connection, text: str) -> int:
    """The id of an encoded space."""
    return int(_ensure(connection, spaces, {"digest": digest(text)}, {"space": text}).id)


def _insert(connection: Connection, table: sa.Table) -> sa.Insert:
    """INSERT that skips rows whose unique values exist."""
    dialect: Any = postgresql if connection.dialect.name == "postgresql" else sqlite
    insert: sa.Insert = dialect.insert(table).on_conflict_do_nothing()
    return insert


# --- reading --------------------------------------------------------------------------------


@contextmanager
def _intact() -> Iterator[None]:
    """Raise StoreError if the block cannot read a value: the store never wrote such a one."""
    try:
        yield
    except DAMAGE as error:
        raise StoreError(
            f"The store holds what it did not write ({type(error).__name__}: {error}): it is"
            " damaged, or was changed by something else. Restore a copy or an export of it."
        ) from error


@dataclass(frozen=True)
class SearchInfo:
    """What is stored of a search: task, name, framework ("" if unknown), seed, number of runs.

    Example::

        with MetaStore("runs.db") as store:
            print([search.task for search in store.searches()])
    """

    task: str
    search: str
    framework: str
    seed: int | None
    n_runs: int


@_intact()
def read_tasks(connection: Connection) -> dict[int, MetaTask]:
    """All tasks by id, in the order in which they were stored."""
    found = connection.execute(sa.select(tasks).order_by(tasks.c.id))
    known = {}
    for row in found:
        described = parse_meta_features(json.loads(row.meta_features), task=row.name)
        known[row.id] = MetaTask(row.name, described, json.loads(row.tags))
    return known


@_intact()
def read_infos(connection: Connection) -> list[SearchInfo]:
    """All searches, task by task."""
    names = {index: task.name for index, task in read_tasks(connection).items()}
    count = sa.select(runs.c.search_id, sa.func.count()).group_by(runs.c.search_id)
    n_runs = {search: n for search, n in connection.execute(count)}
    found = connection.execute(sa.select(searches).order_by(searches.c.task_id, searches.c.id))
    return [
        SearchInfo(names[r.task_id], r.name, r.framework, _seed(r), n_runs.get(r.id, 0))
        for r in found
    ]


@_intact()
def read_searches(
    connection: Connection,
    keep: Callable[[MetaTask], bool],
    *,
    framework: str | None = None,
    search: str | None = None,
) -> list[StoredSearch]:
    """The searches of the tasks that are kept, task by task; their runs in order of storage."""
    kept = {index: task for index, task in read_tasks(connection).items() if keep(task)}
    query = sa.select(searches).order_by(searches.c.task_id, searches.c.id)
    if framework is not None:
        query = query.where(searches.c.framework == framework)
    if search is not None:
        query = query.where(searches.c.name == search)
    wanted = [row for row in connection.execute(query) if row.task_id in kept]
    known = _read_spaces(connection, {row.space_id for row in wanted} - {None})
    found = []
    for start in range(0, len(wanted), _MOST_IDS):
        part = wanted[start : start + _MOST_IDS]
        ids, configurations, columns, keys = _read_runs(connection, [row.id for row in part])
        for row in part:
            task = kept[row.task_id]
            # The runs come by search: those of one are a slice.
            first, last = np.searchsorted(ids, [row.id, row.id + 1])
            record = TaskRecord(
                task.name,
                configurations[first:last],
                **{name: column[first:last] for name, column in columns.items()},
                space=known.get(row.space_id),
                meta_features=task.meta_features,
                tags=task.tags,
                framework=row.framework,
                seed=_seed(row),
            )
            found.append(StoredSearch(record, row.name, tuple(keys[first:last])))
    return found


def _seed(row: Row[Any]) -> int | None:
    return None if row.seed is None else int(row.seed)


def _read_spaces(connection: Connection, ids: Collection[int]) -> dict[int, Any]:
    known = {}
    query = sa.select(spaces)
    if len(ids) <= _MOST_IDS:
        query = query.where(spaces.c.id.in_(sorted(ids)))
    for row in connection.execute(query):
        if row.id not in ids:
            continue
        if digest(row.space) != row.digest:
            raise ValueError(f"the search space {row.id} has another digest than it had")
        known[row.id] = parse_space(json.loads(row.space))
    return known


def _read_runs(
    connection: Connection, ids: list[int]
) -> tuple[npt.NDArray[np.int64], list[dict[str, Any]], dict[str, npt.NDArray[Any]], list[str]]:
    """Search (n,) of each run, ascending; configurations (n), columns (n,) by name, keys."""
    c = runs.c
    asked = [c.search_id, c.key, c.configuration, c.loss, c.seconds, c.status, c.budget, c.time]
    query = sa.select(*asked).where(c.search_id.in_(ids)).order_by(c.search_id, c.id)
    # Plain tuples of the driver, taken apart without a container for each: objects that the
    # garbage collector counts would cost as much again as reading them.
    driver = connection.dialect.loaded_dbapi
    try:
        rows = connection.execute(query).cursor.fetchall()
    except driver.Error as error:  # SQLAlchemy has not seen it
        raise sa.exc.DBAPIError.instance(None, None, error, driver.Error) from error
    search, keys, texts, losses, seconds, status, budget, times = (
        [row[i] for row in rows] for i in range(len(asked))
    )
    # Parsed all at once, and each distinct one only once.
    distinct = dict.fromkeys(texts)
    configurations = json.loads("[" + ",".join(distinct) + "]")
    if len(configurations) != len(distinct) or not set(map(type, configurations)) <= {dict}:
        raise ValueError("a configuration is not an object of names and values")
    if len(distinct) < len(texts):
        parsed = dict(zip(distinct, configurations, strict=True))
        configurations = [parsed[text] for text in texts]
    measured = {"losses": losses, "seconds": seconds, "budget": budget, "times": times}
    # None becomes NaN.
    columns = {name: np.array(column, dtype=np.float64) for name, column in measured.items()}
    columns["status"] = np.array(status, dtype=np.int64)
    return np.array(search, dtype=np.int64), configurations, columns, keys
