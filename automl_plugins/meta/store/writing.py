"""Rows of tasks, searches and runs: made where they are missing, left alone where they are not.

Every transaction touches a task, then a space, then a search, then runs: no two can wait for
each other in a circle.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import Connection, Row

from automl_plugins.records.task_record import TaskRecord

from ..encoding import (
    check_name,
    check_text,
    content_keys,
    digest,
    encode,
    plain_column,
    plain_configurations,
    plain_meta_features,
    plain_space,
    plain_tags,
)
from .schema import artifacts, runs, searches, spaces, tasks


@dataclass(frozen=True)
class Description:
    """A task as it is stored."""

    name: str
    meta_features: Mapping[str, float | None]
    tags: Mapping[str, str]

    @classmethod
    def of(
        cls, task: str, meta_features: Mapping[str, Any], tags: Mapping[str, str]
    ) -> Description:
        """Checked on the way; see ``encoding`` for the errors."""
        return cls(
            check_name(task, "The name of a task"),
            plain_meta_features(meta_features, task=task),
            plain_tags(tags, task=task),
        )


@dataclass(frozen=True)
class Rows:
    """Runs of one search as they are stored: all that can be wrong was refused before."""

    task: Description
    search: str
    space: str | None
    framework: str
    seed: str | None
    runs: list[dict[str, Any]]

    @classmethod
    def of(
        cls, record: TaskRecord, *, search: str | None, keys: Sequence[str | int] | None
    ) -> Rows:
        """Encoded runs; the arguments and errors of ``MetaStore.add``."""
        space = None if record.space is None else encode(plain_space(record.space))
        seed = None if record.seed is None else str(int(record.seed))
        framework = check_text(record.framework, "framework")
        texts = [encode(configuration) for configuration in plain_configurations(record)]
        status = record.status.tolist()
        losses, seconds, budget, times = (
            plain_column(getattr(record, name), name=name, task=record.name)
            for name in ("losses", "seconds", "budget", "times")
        )
        if search is None:
            search = "unnamed-" + digest(space, framework, seed)
        if keys is None:
            names = content_keys(texts, losses, seconds, status, budget, times)
        else:
            names = [check_name(str(key), "The key of a run") for key in keys]
            if len(names) != len(record) or len(set(names)) != len(names):
                raise ValueError(
                    f"Task {record.name!r}: {len(record)} runs need as many keys, each its own;"
                    f" got {len(names)}, {len(set(names))} of them different."
                )
        columns = zip(names, texts, losses, seconds, status, budget, times, strict=True)
        fields = ("key", "configuration", "loss", "seconds", "status", "budget", "time")
        return cls(
            task=Description.of(record.name, record.meta_features, record.tags),
            search=check_name(search, "The name of a search"),
            space=space,
            framework=framework,
            seed=seed,
            runs=[dict(zip(fields, row, strict=True)) for row in columns],
        )


def describe(connection: Connection, task: Description) -> int:
    """Make a task or add to what is known of it, the new winning; returns its id."""
    row = _ensure(connection, tasks, {"name": task.name}, {"meta_features": "{}", "tags": "{}"})
    if not task.meta_features and not task.tags:
        return int(row.id)
    known = connection.execute(
        sa.select(tasks).where(tasks.c.id == row.id).with_for_update()
    ).one_or_none()
    if known is None:  # deleted since: begin again
        return describe(connection, task)
    new = {
        "meta_features": encode(json.loads(known.meta_features) | dict(task.meta_features)),
        "tags": encode(json.loads(known.tags) | dict(task.tags)),
    }
    if new != {"meta_features": known.meta_features, "tags": known.tags}:
        connection.execute(tasks.update().where(tasks.c.id == row.id).values(new))
    return int(row.id)


def add_runs(connection: Connection, rows: Rows) -> int:
    """Store the runs whose keys are new; returns how many."""
    task_id = describe(connection, rows.task)
    told: dict[str, Any] = {}
    if rows.space is not None:
        row = _ensure(connection, spaces, {"digest": digest(rows.space)}, {"space": rows.space})
        told["space_id"] = row.id
    if rows.framework:
        told["framework"] = rows.framework
    if rows.seed is not None:
        told["seed"] = rows.seed
    made = _ensure(
        connection,
        searches,
        {"task_id": task_id, "name": rows.search},
        {"framework": rows.framework} | told,
    )
    if any(getattr(made, name) != value for name, value in told.items()):
        connection.execute(searches.update().where(searches.c.id == made.id).values(told))
    if not rows.runs:
        return 0
    new = [run | {"search_id": made.id} for run in rows.runs]
    return len(connection.execute(_insert(connection, runs).returning(runs.c.id), new).all())


def delete_task(connection: Connection, name: str) -> int | None:
    """Delete a task with all that belongs to it; returns its runs, None if there is none."""
    task = connection.execute(sa.select(tasks.c.id).where(tasks.c.name == name)).scalar()
    if task is None:
        return None
    of_task = sa.select(searches.c.id).where(searches.c.task_id == task)
    count = connection.execute(
        sa.select(sa.func.count()).select_from(runs).where(runs.c.search_id.in_(of_task))
    ).scalar_one()
    connection.execute(tasks.delete().where(tasks.c.id == task))
    _tidy(connection)
    return int(count)


def delete_search(connection: Connection, name: str, task: str | None) -> int | None:
    """Delete the runs of a search, in one task or all; returns how many, None if there is none.

    What was computed from the runs of its tasks goes with them.
    """
    query = sa.select(searches.c.id, searches.c.task_id).where(searches.c.name == name)
    if task is not None:
        query = query.join(tasks, tasks.c.id == searches.c.task_id).where(tasks.c.name == task)
    found = connection.execute(query.order_by(searches.c.task_id)).all()
    if not found:
        return None
    ids = [row.id for row in found]
    of_search = runs.c.search_id.in_(ids)
    count = connection.execute(
        sa.select(sa.func.count()).select_from(runs).where(of_search)
    ).scalar_one()
    connection.execute(
        artifacts.delete().where(artifacts.c.task_id.in_({row.task_id for row in found}))
    )
    connection.execute(searches.delete().where(searches.c.id.in_(ids)))
    _tidy(connection)
    return int(count)


def _tidy(connection: Connection) -> None:
    """Spaces in which nobody searched."""
    used = sa.select(searches.c.id).where(searches.c.space_id == spaces.c.id).exists()
    connection.execute(spaces.delete().where(~used))


def _ensure(
    connection: Connection, table: sa.Table, unique: dict[str, Any], others: dict[str, Any]
) -> Row[Any]:
    """The row with these unique values, made if there is none; others may make it meanwhile."""
    query = sa.select(table).where(*(table.c[name] == value for name, value in unique.items()))
    while (row := connection.execute(query).one_or_none()) is None:
        connection.execute(_insert(connection, table), unique | others)
    return row


def _insert(connection: Connection, table: sa.Table) -> sa.Insert:
    """INSERT that leaves rows alone whose unique values are there."""
    dialect: Any = postgresql if connection.dialect.name == "postgresql" else sqlite
    insert: sa.Insert = dialect.insert(table).on_conflict_do_nothing()
    return insert


def pack(arrays: Mapping[str, Any]) -> bytes:
    """Arrays by name as the content of an npz file; TypeError for objects, which need pickle."""
    plain = {name: np.asarray(array) for name, array in arrays.items()}
    for name, array in plain.items():
        if array.dtype.hasobject:
            raise TypeError(f"{name} is an array of objects; numbers and text can be stored.")
    file = io.BytesIO()
    np.savez_compressed(file, **plain)  # type: ignore[arg-type]
    return file.getvalue()


def save_artifact(
    connection: Connection, task: str, name: str, version: str, content: bytes
) -> bool:
    """Put an artifact in the place of an earlier one; False if there is no such task."""
    # The lock is what lets two writers take turns.
    query = sa.select(tasks.c.id).where(tasks.c.name == task).with_for_update()
    task_id = connection.execute(query).scalar()
    if task_id is None:
        return False
    c = artifacts.c
    connection.execute(artifacts.delete().where(c.task_id == task_id, c.name == name))
    connection.execute(
        artifacts.insert().values(task_id=task_id, name=name, version=version, content=content)
    )
    return True
