"""Sources of a memory: records of tasks and searches of any framework, alone, listed or by name.

The one rule for all frameworks: what an adapter can read, every other one takes as a memory.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from automl_plugins.addresses import as_path, holds_studies, is_sqlite, tables_of
from automl_plugins.frameworks import adapter_of, owner_of
from automl_plugins.records.task_record import TaskRecord


def named_sources(memory: Any) -> list[tuple[str | None, Any]] | None:
    """The sources in a memory with the names that were given to their tasks, whatever they are.

    None for what is not a source, several, or several by name: an address, a memory itself.
    """
    if isinstance(memory, str | os.PathLike) or hasattr(memory, "records"):
        return None
    if isinstance(memory, TaskRecord) or adapter_of(memory) is not None:
        return [(None, memory)]  # a run history of SMAC is a mapping, too
    if isinstance(memory, Mapping):
        return [(str(name), source) for name, source in memory.items()]
    return [(None, source) for source in memory] if isinstance(memory, Iterable) else None


def read_source(source: Any, name: str | None = None) -> list[TaskRecord] | None:
    """The tasks in one source; None for what is none.

    Args:
        source: A record; what an adapter reads: an object of its framework, an address, a file or
            a folder.
        name: Name of the task, which the source must then be one of. None takes its own.

    Raises:
        TypeError: For another object of a framework.
        ValueError: For what its adapter cannot read, or a search without a name.
    """
    if isinstance(source, TaskRecord):
        return [source if name is None else replace(source, name=name)]
    if isinstance(source, str | os.PathLike):
        source = os.fspath(source)
        owner = owner_of(source)
    else:
        owner = None if isinstance(source, type) else adapter_of(source)
    if owner is None:
        return None
    return owner.read_tasks(source) if name is None else [owner.read_task(source, name=name)]


def records_in(memory: Any) -> list[TaskRecord] | None:
    """The tasks in all sources of a memory; None if it has no sources, or one that is none."""
    if (named := named_sources(memory)) is None:
        return None
    records: list[TaskRecord] = []
    for name, source in named:
        if (found := read_source(source, name)) is None:
            return None
        records += found
    return records


def is_of_framework(address: str) -> bool:
    """Whether a path or address, where something is, may be that of searches, and of no store.

    False if that cannot be found out: the store says what is wrong.
    """
    if "://" not in address:
        file = as_path(address)
        return file.is_file() and not is_sqlite(file)
    try:
        from sqlalchemy.exc import SQLAlchemyError
    except ModuleNotFoundError:
        return False
    try:
        return holds_studies(tables_of(address))
    except (ModuleNotFoundError, SQLAlchemyError, ValueError):
        return False
