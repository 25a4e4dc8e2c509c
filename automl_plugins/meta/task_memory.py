"""A memory as a search looks at it: aligned to its space, the task itself left out."""

from __future__ import annotations

import copy
import logging
from collections.abc import Collection
from typing import TYPE_CHECKING, Any, Protocol, Self, runtime_checkable

import numpy as np
import numpy.typing as npt

from automl_plugins.meta.alignment import MemoryMismatch, notes
from automl_plugins.records.task_record import TaskRecord
from automl_plugins.records.trial import Status
from automl_plugins.spaces.vector_space import VectorSpace

from .dataset import MetaDataset
from .memories import Memory, open_memory, read_memory, store_of

if TYPE_CHECKING:
    from .store import MetaStore

FloatArray = npt.NDArray[np.float64]

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

    Tasks of which nothing can be learnt are left out with a warning: those with fewer than two
    complete runs, with losses that are all alike, or with the same runs as another one.

    Args:
        memory: A ``MetaDataset``; a ``MetaStore``, its path or address; records of tasks; or the
            name of a bundled memory.
        task: Name of the task that is searched: its own runs in the memory are left out, which is
            logged.
        exclude: Names of further tasks to leave out, such as variants of the same data.
        growing: Whether the search space is discovered by the trials, so that one of which the
            memory knows nothing may become one that fits.
        logger: Takes the notes on what is left out or changed.

    Raises:
        TypeError: For what is no memory.
        ValueError: For a name or path of none.
        MemoryMismatch: For a memory without other tasks, or nothing to learn from.
    """

    def __init__(
        self,
        memory: Memory,
        *,
        task: str | None = None,
        exclude: Collection[str] = (),
        growing: bool = False,
        logger: logging.Logger = _logger,
    ) -> None:
        if isinstance(exclude, str):
            raise TypeError(f"exclude must be names of tasks, got the text {exclude!r}.")
        self.store = store_of(memory)
        self.known = _informative(read_memory(memory), logger)
        self.task = task
        self.exclude = frozenset(exclude) | ({task} if task is not None else frozenset())
        self.growing = growing
        self._logger = logger
        if task in self.names:
            logger.info(f"Task {task!r} is in the memory; its own runs there are left out.")
        if not set(self.names) - self.exclude:
            raise MemoryMismatch(self._only_itself())
        self._last: tuple[VectorSpace, MetaDataset | str] | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all tasks of the memory."""
        return _names(self.known)

    def without(self, names: Collection[str]) -> Self:
        """The same memory with further tasks left out, all of them if need be."""
        other = copy.copy(self)
        other.exclude, other._last = self.exclude | set(names), None
        return other

    def on(self, space: VectorSpace) -> MetaDataset:
        """The earlier tasks in the vectors of ``space``, the same object for the same space.

        Raises:
            MemoryMismatch: If no task is left, none shares a hyperparameter with the space, or no
                run lies in it.
        """
        last = self._last  # read once: threads share the memory
        if last is None or last[0] is not space:
            self._last = last = (space, self._align(space))
        if isinstance(last[1], str):
            raise MemoryMismatch(last[1], final=not self.growing)
        return last[1]

    def _align(self, space: VectorSpace) -> MetaDataset | str:
        """The tasks, or why there are none."""
        if not set(self.names) - self.exclude:
            return self._only_itself()
        try:
            dataset = open_memory(self.known, space.space, exclude=self.exclude)
        except ValueError as error:
            return str(error)
        for note in notes(dataset.coverage):
            self._logger.info(note)
        return dataset

    def _only_itself(self) -> str:
        return (
            f"The memory has no task but {', '.join(self.names)}, the task itself: nothing to"
            " learn from. Record other tasks, or use a sampler without a memory."
        )

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self  # nothing in it ever changes but a cache

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_last": None}

    def __repr__(self) -> str:
        return f"TaskMemory({len(self.names)} tasks)"


def task_memory(memory: Memory | AlignedMemory, *, task: str | None = None) -> AlignedMemory:
    """``memory`` as it is if it aligns itself, else a ``TaskMemory`` of it; errors of that."""
    if isinstance(memory, AlignedMemory):
        return memory
    return TaskMemory(memory, task=task)


Known = MetaDataset | list[TaskRecord]


def _names(known: Known) -> tuple[str, ...]:
    tasks = known.tasks if isinstance(known, MetaDataset) else known
    return tuple(dict.fromkeys(task.name for task in tasks))


def _informative(known: Known, logger: logging.Logger) -> Known:
    """The tasks that something can be learnt from; a warning says why others are left out."""
    reasons, n = _uninformative(known), len(_names(known))
    told = [f"{name}: {why}" for name, why in reasons.items()]
    if len(reasons) == n:
        raise MemoryMismatch(
            "There are no sources to learn from."
            f"{''.join(f' {text}.' for text in told[:5])} Pass finished searches of other tasks,"
            " each with several trials that differ in their loss, or a memory of them."
        )
    if not reasons:
        return known
    more = f"; and {len(told) - 10} more" if len(told) > 10 else ""
    logger.warning(f"{len(told)} of {n} sources left out. {'; '.join(told[:10])}{more}.")
    if isinstance(known, MetaDataset):
        return known.without(*reasons)
    return [record for record in known if record.name not in reasons]


def _uninformative(known: Known) -> dict[str, str]:
    """Why nothing can be learnt from a task, by its name."""
    losses: dict[str, list[FloatArray]] = {}
    contents: dict[str, list[Any]] = {}
    if isinstance(known, MetaDataset):
        for task, rows in zip(known.tasks, known.rows, strict=True):
            losses[task.name] = [known.complete_losses[rows]]
            contents[task.name] = [known.vectors[rows].tobytes()]
    else:
        for record in known:
            full = (record.status == Status.COMPLETE) & np.isnan(record.budget)
            losses.setdefault(record.name, []).append(np.where(full, record.losses, np.nan))
            contents.setdefault(record.name, []).append(repr(record.configurations))
    found: dict[str, str] = {}
    seen: dict[Any, str] = {}
    for name, parts in losses.items():
        values = np.concatenate(parts)
        finite = values[np.isfinite(values)]
        content = (values.tobytes(), tuple(contents[name]))
        if len(finite) < 2:
            found[name] = f"{len(finite)} complete trials in full"
        elif finite.min() == finite.max():
            found[name] = f"all its losses are {finite[0]:g}"
        elif content in seen:
            found[name] = f"the same runs as {seen[content]}"
        seen.setdefault(content, name)
    return found
