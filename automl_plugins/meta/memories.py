"""What counts as a memory: datasets, stores and where they are, records, names of bundled ones."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Sequence
from typing import Protocol

from ConfigSpace import ConfigurationSpace
from ConfigSpace.conditions import Condition, EqualsCondition, InCondition

from automl_plugins.addresses import existing
from automl_plugins.records.task_record import TaskRecord
from automl_plugins.spaces.union import union_space

from .bundled import LEARNERS, bundled
from .coverage import nothing_left
from .dataset import MetaDataset


class Store(Protocol):
    """What is needed of a ``MetaStore``."""

    def records(self) -> list[TaskRecord]:
        """All runs, task by task."""
        ...


#: A memory: aligned or not, in a database, its path or address, or the name of a bundled one.
Memory = MetaDataset | Store | Iterable[TaskRecord] | str | os.PathLike[str]


def opened(
    memory: Memory | None, space: ConfigurationSpace, *, exclude: Collection[str] = ()
) -> MetaDataset:
    """A memory aligned to a search space.

    Args:
        memory: The memory.
        space: The search space.
        exclude: Names of tasks to leave out, known or not.

    Raises:
        TypeError: For something else.
        ValueError: If it has no runs, shares no hyperparameter with the space, or no run of it
            lies there.
    """
    if isinstance(exclude, str):
        raise TypeError(
            f"exclude must be names of tasks, got the text {exclude!r}: [{exclude!r}]."
        )
    known = recorded(memory)
    if isinstance(known, MetaDataset):
        dataset = known.without(*exclude).aligned(space)
    else:
        kept = [record for record in known if record.name not in exclude]
        dataset = MetaDataset.from_records(kept, space)
    if not len(dataset):
        raise nothing_left(dataset.coverage)
    return dataset


def recorded(memory: Memory | None) -> MetaDataset | list[TaskRecord]:
    """What a memory holds, in the space or spaces that it was recorded in.

    Raises:
        StoreError: For a store that cannot be read.
        TypeError: For what is no memory.
        ValueError: For a name or path of none.
    """
    if isinstance(memory, MetaDataset):
        return memory
    if isinstance(memory, str) and memory in LEARNERS:
        return bundled(memory)
    if isinstance(memory, str | os.PathLike):
        try:
            existing(os.fspath(memory), "memory")
        except ValueError as error:
            raise ValueError(f"{error} The bundled memories are {', '.join(LEARNERS)}.") from None
        from .store import MetaStore

        with MetaStore(memory) as store:
            return store.records()
    if memory is not None and callable(found := getattr(memory, "records", None)):
        return list(found())
    if isinstance(memory, Iterable):
        records = list(memory)
        if all(isinstance(record, TaskRecord) for record in records):
            return records
    raise TypeError(
        "memory must be a MetaDataset, a MetaStore, its path or address, records of tasks, or the"
        f" name of a bundled memory, got {memory!r}."
    )


def conditioned(
    space: ConfigurationSpace, known: MetaDataset | Sequence[TaskRecord]
) -> ConfigurationSpace:
    """A space without conditions, with those that a memory has for hyperparameters of it.

    Only conditions on the values of one parent are taken over.
    """
    if isinstance(known, MetaDataset):
        source = known.space
    else:
        try:
            source = union_space(known)
        except ValueError:  # recorded without a space
            return space
    for name in space:
        conditions = source.parent_conditions_of[name] if name in source else []
        if len(conditions) != 1 or not isinstance(conditions[0], EqualsCondition | InCondition):
            continue
        condition: Condition = conditions[0]
        if condition.parent.name not in space:
            continue
        parent = space[condition.parent.name]
        wanted = condition.values if isinstance(condition, InCondition) else [condition.value]
        if legal := [value for value in wanted if parent.legal_value(value)]:
            space.add(InCondition(space[name], parent, legal))
    return space
