"""What was computed from the runs of a task, as named arrays: can be thrown away at any time."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from .schema import artifacts, tasks

Array = npt.NDArray[Any]


def to_bytes(arrays: Mapping[str, Any]) -> bytes:
    """Arrays by name as the content of an npz file.

    Raises:
        TypeError: For an array of objects, which only pickle can write.
    """
    plain = {name: np.asarray(array) for name, array in arrays.items()}
    for name, array in plain.items():
        if array.dtype.hasobject:
            raise TypeError(f"{name} is an array of objects; numbers and text can be stored.")
    file = io.BytesIO()
    np.savez_compressed(file, **plain)  # type: ignore[arg-type]
    return file.getvalue()


def from_bytes(content: bytes) -> dict[str, Array]:
    """The reverse of ``to_bytes``."""
    with np.load(io.BytesIO(content), allow_pickle=False) as file:
        return {name: file[name] for name in file.files}


def save(connection: Connection, task: str, name: str, version: str, content: bytes) -> bool:
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


def load(connection: Connection, task: str, name: str, version: str) -> bytes | None:
    """Content of an artifact; None if there is none of this version."""
    c = artifacts.c
    query = (
        sa.select(c.content)
        .join(tasks, tasks.c.id == c.task_id)
        .where(tasks.c.name == task, c.name == name, c.version == version)
    )
    content = connection.execute(query).scalar()
    return None if content is None else bytes(content)
