"""What a memory may be, and the runs in it.

It may be sources of any framework, alone, listed or by name: what an adapter can read, every
other framework takes as a memory. Or a store, the place of one, or the name of a ``bundled`` one.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from ConfigSpace import ConfigurationSpace
from ConfigSpace.conditions import Condition, EqualsCondition, InCondition

from automl_plugins._arguments import describe, did_you_mean, hint_of_seed
from automl_plugins.addresses import as_path, check_exists, holds_studies, is_sqlite, tables_of
from automl_plugins.frameworks import adapter_of, owner_of
from automl_plugins.meta.dataset import MetaDataset, union_space
from automl_plugins.meta.tasks import MetaTask, read_meta_features, read_names
from automl_plugins.records.task_record import TaskRecord
from automl_plugins.spaces.choices import one_of
from automl_plugins.spaces.restriction import values_named
from automl_plugins.spaces.values import ABSENT, reader

from .bundled_memories import LEARNERS, bundled
from .names import rename_all, spelling

if TYPE_CHECKING:
    from .store import MetaStore


class Store(Protocol):
    """The methods of a ``MetaStore`` that are needed here."""

    def records(self) -> list[TaskRecord]:
        """All runs, task by task."""
        ...


class HasTrials(Protocol):
    """A search that has its trials."""

    @property
    def trials(self) -> Any:
        """All trials."""
        ...


class HasStudies(Protocol):
    """A storage of searches."""

    def get_all_studies(self) -> Any:
        """All searches."""
        ...


class HasRuns(Protocol):
    """A search that has a run history."""

    @property
    def runhistory(self) -> Any:
        """All runs."""
        ...


#: One search alone, or a storage of several, of any framework.
Source = TaskRecord | HasTrials | HasStudies | HasRuns
#: A memory: aligned or not, in a database, its path or address, sources of any framework (see
#: ``read_source``), or the name of a bundled one.
#: For a search also ``"auto"``, see ``RecognisedMemory``.
Memory = MetaDataset | Store | Source | Iterable[Any] | str | os.PathLike[str]
Known = MetaDataset | list[TaskRecord]
AUTO = "auto"  # as a memory: the bundled one of the learner that is recognised


def open_memory(
    memory: Memory | None, space: ConfigurationSpace, *, exclude: Collection[str] = ()
) -> MetaDataset:
    """A memory aligned to a search space, without the tasks named in ``exclude``, known or not.

    Raises:
        MemoryMismatch: If it shares no hyperparameter with the space, or no run of it lies there.
    """
    exclude = read_names("exclude", exclude)
    known = read_memory(memory)
    names = names_of(known)
    if names and set(names) <= set(exclude):
        raise ValueError(f"exclude leaves no task: the memory has {', '.join(names)} only.")
    if isinstance(known, MetaDataset):
        return known.without(*exclude).aligned(space)
    return MetaDataset.from_records([r for r in known if r.name not in exclude], space)


def read_memory(memory: Memory | None) -> Known:
    """The runs of a memory, in the space or spaces that they were recorded in.

    Raises:
        StoreError: For a store that cannot be read.
        TypeError: For an object that is no memory.
        ValueError: For a name or place without a memory, ``"auto"``, or a meta-feature that is
            not a number.
    """
    if isinstance(memory, MetaDataset):
        return memory
    # Before any path: a file may have the name of a learner.
    if isinstance(memory, str) and memory in LEARNERS:
        return bundled(memory)
    if isinstance(memory, str) and memory == AUTO:
        raise ValueError(
            f"memory={AUTO!r} is for a search, such as AutoSampler. Here the learner must be"
            f" named: {', '.join(LEARNERS)}."
        )
    if isinstance(memory, str | os.PathLike):
        return _read_place(memory)
    # Of a class, such as MetaStore itself, there is nothing to read.
    if not isinstance(memory, type) and callable(stored := getattr(memory, "records", None)):
        return list(stored())
    records = records_in(memory)
    if records is None:
        raise TypeError(
            "memory must be a MetaDataset, a MetaStore, its path or address, records of tasks,"
            " searches of a framework (one, several, or by name of the task), or the name of a"
            f" bundled memory, got {describe(memory)}.{hint_of_kind(memory)}"
        )
    for record in records:  # before a search space is known, for which all are read again
        read_meta_features(record.meta_features, f"Task {record.name!r}: ")
    return records


def _read_place(memory: str | os.PathLike[str]) -> Known:
    """The runs at an address, or in a file or folder."""
    address = os.fspath(memory)
    if not address.strip():  # which would be the current folder
        raise ValueError(f"memory={memory!r} is empty: name a store, or pass None for no memory.")
    try:
        check_exists(address, "memory")
    except ValueError as error:
        text = "" if isinstance(memory, str) else "the text "
        hint = did_you_mean(address.lower(), [*LEARNERS, AUTO], about=text)
        raise ValueError(
            f"{error}{hint} It may be the path or address of a store that is there (MetaStore(...)"
            f" makes one), or the name of a bundled memory: {', '.join(LEARNERS)}."
        ) from None
    path = str(as_path(memory))
    if os.path.isdir(path):
        if (owner := owner_of(path)) is None:
            raise ValueError(
                f"{path} is a folder in which no runs are recorded: name a store, which is a file,"
                " or a folder that a search has written to, with a framework that is installed."
            )
        return owner.read_tasks(path)
    if is_of_framework(address) and (found := read_source(address)) is not None:
        return found
    with open_store(memory) as store:
        return store.records()


def hint_of_kind(given: Any) -> str:
    """What to do with frames of runs, several names or a seed; empty for anything else."""
    if isinstance(given, list | tuple) and given:
        texts = [item for item in given if isinstance(item, str)]
        if names := [name for name in texts if name in LEARNERS]:
            listed = ", ".join(f"*bundled({name!r}).records()" for name in names)
            return f" In a list the records of bundled memories are a memory: [{listed}]."
        if any(callable(getattr(item, "records", None)) for item in given):
            return " In a list with others give the records of a memory: [*memory.records(), ...]."
        if len(texts) == len(given):
            return f" The first item is the text {given[0]!r}, which is no address of a storage."
    items = list(given.values()) if isinstance(given, Mapping) else given
    frames = items if isinstance(items, list | tuple) else [items]
    if not any(hasattr(frame, "columns") for frame in frames):
        return hint_of_seed(given)
    return (
        " TaskRecord.from_frame(frame, name=..., loss=...) makes a record of the runs on one task,"
        " and a list of records is a memory."
    )


def check_no_name(store: object) -> None:
    """Raise ValueError for a text that is the name of a memory, and so no path, to ``memory=``."""
    if isinstance(store, str) and store in (*LEARNERS, AUTO):
        raise ValueError(
            f"store={store!r} would be a file that no search reads: memory={store!r} names a"
            f" bundled memory. Give a file, such as '{store}.db' or './{store}'."
        )


def open_store(address: str | os.PathLike[str]) -> MetaStore:
    """The store at an address or path; its errors."""
    from .store import MetaStore  # SQLAlchemy is an extra

    return MetaStore(address)


def tasks_of(known: Known) -> Sequence[MetaTask | TaskRecord]:
    """The tasks of a memory, with their descriptions; several records may be of one task."""
    return known.tasks if isinstance(known, MetaDataset) else known


def names_of(known: Known) -> tuple[str, ...]:
    """Names of the tasks of a memory, each once."""
    return tuple(dict.fromkeys(task.name for task in tasks_of(known)))


# --- sources of the frameworks -----------------------------------------------------------------


def named_sources(memory: Any) -> list[tuple[str | None, Any]] | None:
    """The sources in a memory, unchecked, each with the name that was given to its task.

    None for an address, a memory, and whatever else is not one source, several, or several by
    name.
    """
    if isinstance(memory, str | os.PathLike) or hasattr(memory, "records"):
        return None
    if isinstance(memory, TaskRecord) or adapter_of(memory) is not None:
        return [(None, memory)]  # a run history of SMAC is a mapping, too
    if isinstance(memory, Mapping):
        return [(str(name), source) for name, source in memory.items()]
    return [(None, source) for source in memory] if isinstance(memory, Iterable) else None


def read_source(source: Any, name: str | None = None) -> list[TaskRecord] | None:
    """The tasks in one source; None for what is not a source.

    Args:
        source: A record; what an adapter reads: an object of its framework, an address, a file or
            a folder.
        name: Name of the task. The source must then be one task, such as the seeds of one scenario
            of SMAC. None takes the name in the source.

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
    return owner.read_tasks(source, name=name)


def records_in(memory: Any) -> list[TaskRecord] | None:
    """The tasks in all sources of a memory; None if anything in it is not a source."""
    if (named := named_sources(memory)) is None:
        return None
    records: list[TaskRecord] = []
    for name, source in named:
        if (found := read_source(source, name)) is None:
            return None
        records += found
    return records


def log_left_out(logger: logging.Logger, name: str, why: str) -> None:
    """Warn that one of the sources in a place is left out, which the user has not named."""
    logger.warning(f"Source {name!r} is left out: {why}")


def is_of_framework(address: str) -> bool:
    """Whether a file or database, which exists, may hold searches of a framework, and is no store.

    False if it cannot be read: opened as a store, it says what is wrong.
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


# --- the space of a memory ---------------------------------------------------------------------


def recorded_space(known: Known) -> ConfigurationSpace | None:
    """The space of all runs; None if it was not recorded, or contradicts itself."""
    try:
        return known.space if isinstance(known, MetaDataset) else union_space(known)
    except ValueError:
        return None


@np.errstate(over="ignore")  # ConfigSpace rounds defaults, however large they are
def take_conditions(space: ConfigurationSpace, known: Known) -> ConfigurationSpace:
    """A space without conditions, with those that a memory has for hyperparameters of it.

    Only conditions on the values of one parent are taken over.
    """
    if (source := recorded_space(known)) is None:
        return space
    taken: list[Condition] = []
    # The others keep their names: a new one that is not asked for may be that of another.
    if new := {own: name for own, name in spelling(space, source).items() if name in space}:
        source = rename_all(source, new)
    for name in space:
        conditions = source.parent_conditions_of[name] if name in source else []
        if len(conditions) != 1 or not isinstance(conditions[0], EqualsCondition | InCondition):
            continue
        condition: Condition = conditions[0]
        if condition.parent.name not in space:
            continue
        parent = space[condition.parent.name]
        read, wanted = reader(parent), values_named(condition)
        if legal := [found for value in wanted if (found := read(value)) is not ABSENT]:
            taken.append(one_of(space[name], parent, legal))
    space.add(taken)
    return space
