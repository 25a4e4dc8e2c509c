"""A memory as a search looks at it: aligned to its space, the task itself left out."""

from __future__ import annotations

import logging
from collections.abc import Collection
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from automl_plugins.meta.alignment import MemoryMismatch, notes
from automl_plugins.spaces.vector_space import VectorSpace

from .dataset import MetaDataset
from .memories import Memory, open_memory, read_memory, store_of

if TYPE_CHECKING:
    from .store import MetaStore

_logger = logging.getLogger("automl_plugins.meta.task_memory")


@runtime_checkable
class AlignedMemory(Protocol):
    """What transfer needs of a memory."""

    def on(self, space: VectorSpace) -> MetaDataset:
        """The earlier tasks in the vectors of ``space``.

        Raises:
            MemoryMismatch: If the space can use none of their runs.
        """
        ...

    @property
    def store(self) -> MetaStore | None:
        """Where what was computed of the tasks is kept; None keeps it in this process only."""
        ...


class TaskMemory:
    """Earlier tasks for a search on one task.

    Args:
        memory: A ``MetaDataset``; a ``MetaStore``, its path or address; records of tasks; or the
            name of a bundled memory.
        task: Name of the task that is searched: its own runs in the memory are left out, which is
            logged.
        exclude: Names of further tasks to leave out, such as variants of the same data.

    Raises:
        TypeError: For what is no memory.
        ValueError: For a name or path of none.
        MemoryMismatch: For a memory without other tasks.
    """

    def __init__(
        self, memory: Memory, *, task: str | None = None, exclude: Collection[str] = ()
    ) -> None:
        self.store = store_of(memory)
        self.known = read_memory(memory)
        if isinstance(exclude, str):
            raise TypeError(f"exclude must be names of tasks, got the text {exclude!r}.")
        self.task = task
        self.exclude = frozenset(exclude) | ({task} if task is not None else frozenset())
        names = self.names
        if task in names:
            _logger.info(f"Task {task!r} is in the memory; its own runs there are left out.")
        if not set(names) - self.exclude:
            raise MemoryMismatch(
                f"The memory has no task but {', '.join(names) or 'none at all'}: nothing to learn"
                " from. Record other tasks, or use a sampler without a memory."
            )
        self._last: tuple[VectorSpace, MetaDataset | str] | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all tasks of the memory."""
        tasks = self.known.tasks if isinstance(self.known, MetaDataset) else self.known
        return tuple(dict.fromkeys(task.name for task in tasks))

    def on(self, space: VectorSpace) -> MetaDataset:
        """The earlier tasks in the vectors of ``space``, the same object for the same space.

        Raises:
            MemoryMismatch: If the space shares no hyperparameter with them, or no run lies in it.
        """
        last = self._last  # read once: threads share the memory
        if last is None or last[0] is not space:
            self._last = last = (space, self._aligned(space))
        if isinstance(last[1], str):
            raise MemoryMismatch(last[1])
        return last[1]

    def _aligned(self, space: VectorSpace) -> MetaDataset | str:
        """The tasks, or why there are none."""
        try:
            dataset = open_memory(self.known, space.space, exclude=self.exclude)
        except ValueError as error:
            return str(error)
        for note in notes(dataset.coverage):
            _logger.info(note)
        return dataset

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_last": None}

    def __repr__(self) -> str:
        return f"TaskMemory({len(self.names)} tasks)"


def task_memory(memory: Memory | AlignedMemory, *, task: str | None = None) -> AlignedMemory:
    """``memory`` as it is if it aligns itself, else a ``TaskMemory`` of it; errors of that."""
    if isinstance(memory, AlignedMemory):
        return memory
    return TaskMemory(memory, task=task)
