"""Rows of the store as records, in bulk."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from automl_plugins.records.task_record import TaskRecord

from ..encoding import meta_features_of, space_of
from ..files import StoredSearch
from ..tasks import MetaTask
from .connection import StoreError
from .schema import artifacts, runs, searches, spaces, tasks

FloatArray = npt.NDArray[np.float64]

_ROWS = 10_000  # read at once, unless one search has more
_SEARCHES = 500  # asked for at once

Keep = Callable[[MetaTask], bool]


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


def _parse(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise StoreError(
            f"The store holds text that is no JSON ({error}): it was changed by something else."
            " Restore a copy or an export of it."
        ) from None


def read_tasks(connection: Connection) -> dict[int, MetaTask]:
    """All tasks by id, in the order in which they were stored."""
    found = connection.execute(sa.select(tasks).order_by(tasks.c.id))
    return {
        row.id: MetaTask(row.name, meta_features_of(_parse(row.meta_features)), _parse(row.tags))
        for row in found
    }


def read_infos(connection: Connection) -> list[SearchInfo]:
    """All searches, task by task."""
    names = {index: task.name for index, task in read_tasks(connection).items()}
    counts = _counts(connection)
    found = connection.execute(sa.select(searches).order_by(searches.c.task_id, searches.c.id))
    return [
        SearchInfo(names[r.task_id], r.name, r.framework, _seed(r), counts.get(r.id, 0))
        for r in found
    ]


def read_searches(
    connection: Connection,
    keep: Keep,
    *,
    framework: str | None = None,
    search: str | None = None,
    with_keys: bool = False,
) -> list[StoredSearch]:
    """The searches of the tasks that are kept, task by task; their runs in order of storage."""
    kept = {index: task for index, task in read_tasks(connection).items() if keep(task)}
    query = sa.select(searches).order_by(searches.c.task_id, searches.c.id)
    if framework is not None:
        query = query.where(searches.c.framework == framework)
    if search is not None:
        query = query.where(searches.c.name == search)
    wanted = [row for row in connection.execute(query) if row.task_id in kept]
    known = _spaces(connection, {row.space_id for row in wanted} - {None})
    found = []
    for part in _parts(wanted, _counts(connection, [row.id for row in wanted])):
        columns = _read_runs(connection, [row.id for row in part], with_keys=with_keys)
        for row in part:
            task = kept[row.task_id]
            rows = columns.rows(row.id)
            record = TaskRecord(
                task.name,
                columns.configurations[rows],
                columns.losses[rows],
                seconds=columns.seconds[rows],
                status=columns.status[rows],
                budget=columns.budget[rows],
                times=columns.times[rows],
                space=known.get(row.space_id),
                meta_features=task.meta_features,
                tags=task.tags,
                framework=row.framework,
                seed=_seed(row),
            )
            found.append(StoredSearch(record, row.name, tuple(columns.keys[rows])))
    return found


def _seed(row: Row[Any]) -> int | None:
    return None if row.seed is None else int(row.seed)


def _counts(connection: Connection, ids: Sequence[int] | None = None) -> dict[int, int]:
    """Number of runs by search, of some or all."""
    count = sa.select(runs.c.search_id, sa.func.count()).group_by(runs.c.search_id)
    if ids is not None and len(ids) <= _SEARCHES:
        count = count.where(runs.c.search_id.in_(ids))
    return {search: n for search, n in connection.execute(count)}


def _spaces(connection: Connection, ids: Collection[int]) -> dict[int | None, Any]:
    if not ids:
        return {}
    found = connection.execute(sa.select(spaces).where(spaces.c.id.in_(sorted(ids))))
    return {row.id: space_of(_parse(row.space)) for row in found}


def _parts(wanted: Sequence[Row[Any]], counts: dict[int, int]) -> Iterator[list[Row[Any]]]:
    """Searches that are read together."""
    part: list[Row[Any]] = []
    n = 0
    for row in wanted:
        more = counts.get(row.id, 0)
        if part and (n + more > _ROWS or len(part) == _SEARCHES):
            yield part
            part, n = [], 0
        part.append(row)
        n += more
    if part:
        yield part


@dataclass(frozen=True)
class _Columns:
    """Runs (n), ascending by search."""

    search: npt.NDArray[np.int64]
    keys: list[str]
    configurations: list[dict[str, Any]]
    losses: FloatArray
    seconds: FloatArray
    status: npt.NDArray[np.int64]
    budget: FloatArray
    times: FloatArray

    def rows(self, search: int) -> slice:
        """The runs of a search."""
        first, last = np.searchsorted(self.search, [search, search + 1])
        return slice(int(first), int(last))


def _read_runs(connection: Connection, ids: list[int], *, with_keys: bool) -> _Columns:
    c = runs.c
    asked = [c.search_id, c.configuration, c.loss, c.seconds, c.status, c.budget, c.time]
    if with_keys:
        asked.append(c.key)
    query = sa.select(*asked).where(c.search_id.in_(ids)).order_by(c.search_id, c.id)
    result = connection.execute(query)
    # Plain tuples of the driver, taken apart without a container for each: objects that the
    # garbage collector counts would cost as much again as reading them.
    rows = result.cursor.fetchall()
    search, texts, *measured = ([row[i] for row in rows] for i in range(len(asked)))
    keys = measured.pop() if with_keys else []
    # Parsed all at once, and each distinct one only once.
    distinct = dict.fromkeys(texts)
    configurations = _parse("[" + ",".join(distinct) + "]")
    if len(distinct) < len(texts):
        parsed = dict(zip(distinct, configurations, strict=True))
        configurations = [parsed[text] for text in texts]
    losses, seconds, status, budget, times = measured
    return _Columns(
        search=np.array(search, dtype=np.int64),
        keys=keys,
        configurations=configurations,
        losses=np.array(losses, dtype=np.float64),  # None becomes NaN
        seconds=np.array(seconds, dtype=np.float64),
        status=np.array(status, dtype=np.int64),
        budget=np.array(budget, dtype=np.float64),
        times=np.array(times, dtype=np.float64),
    )


def load_artifact(connection: Connection, task: str, name: str, version: str) -> bytes | None:
    """Content of an artifact; None if there is none of this version."""
    c = artifacts.c
    query = (
        sa.select(c.content)
        .join(tasks, tasks.c.id == c.task_id)
        .where(tasks.c.name == task, c.name == name, c.version == version)
    )
    content = connection.execute(query).scalar()
    return None if content is None else bytes(content)


def unpack(content: bytes) -> dict[str, npt.NDArray[Any]]:
    """The arrays that ``writing.pack`` made bytes of."""
    with np.load(io.BytesIO(content), allow_pickle=False) as file:
        return {name: file[name] for name in file.files}
