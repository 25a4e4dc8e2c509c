"""Memories as a search sees them: aligned to its space, without the task itself."""

from __future__ import annotations

import copy
import logging
import os
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable
from typing import Any, Self

import numpy as np

from automl_plugins._arguments import did_you_mean
from automl_plugins.addresses import is_to_come
from automl_plugins.arrays import FloatArray
from automl_plugins.formats import format_count
from automl_plugins.meta.coverage import MemoryMismatch, Note, note_coverage
from automl_plugins.meta.dataset import MetaDataset
from automl_plugins.newest import Newest
from automl_plugins.records.history import History
from automl_plugins.spaces.vector_space import VectorSpace

from .bundled_memories import LEARNERS, bundled_among
from .sources import Known, Memory, names_of, open_memory, read_memory, tasks_of

_logger = logging.getLogger(__name__)


class AlignedMemory(ABC):
    """A memory that aligns itself to search spaces.

    Attributes:
        logger: Takes messages on the memory during the search.
    """

    logger: logging.Logger = _logger

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self  # it changes in nothing but caches and what it has logged

    @abstractmethod
    def on(self, space: VectorSpace) -> MetaDataset:
        """The earlier tasks in the vectors of ``space``.

        Raises:
            MemoryMismatch: If the space can use none of their runs.
        """

    def waits(self, space: VectorSpace, history: History) -> bool:
        """Whether the next trials may show that the memory is of no use, so it is not used yet."""
        return False

    def settle(self, space: VectorSpace) -> None:  # noqa: B027 (most need nothing)
        """Take note that the whole search space is known."""

    def learner_in(self, space: VectorSpace) -> str:
        """The learner whose bundled memory it is in this space; empty for any other memory."""
        return ""

    def name_in(self, space: VectorSpace) -> str:
        """Name in shares of all its tasks together, such as ``"meta-learner of svm"``."""
        learner = self.learner_in(space)
        return f"meta-learner of {learner}" if learner else "meta-learner"


class TaskMemory(AlignedMemory):
    """Earlier tasks for a search on one task.

    Tasks of which nothing can be learnt are left out with a warning: those with fewer than two
    complete runs, with losses that are all alike, or with the same runs as another one.

    A store fills up search by search. The first search finds it empty, or finds no SQLite database
    yet, which is no error: a warning says so, and every ``on`` raises an expected mismatch.

    Args:
        memory: See ``advise``.
        task: Name of the task that is searched: its own runs in the memory are left out, which is
            logged. If the memory has only a task of a similar name, that is logged, too.
        growing: Whether the search space is discovered by the trials: the memory may fit it later
            if it does not fit now.
        filling: Whether ``memory`` was read from a place that others still write to. For a store,
            its path or its address this need not be said.
        chosen: Whether the user has named it, and so is warned of what may be a mistake.
        logger: Takes the notes on what is left out or changed.

    Raises:
        TypeError: For an object that is no memory.
        ValueError: For a name or path without a memory.
        MemoryMismatch: For a memory without other tasks, or nothing to learn from, unless it is
            filling.
    """

    def __init__(
        self,
        memory: Memory,
        *,
        task: str | None = None,
        growing: bool = False,
        filling: bool = False,
        chosen: bool = True,
        logger: logging.Logger = _logger,
    ) -> None:
        is_path = isinstance(memory, str | os.PathLike) and memory not in LEARNERS
        #: Whether it is a store, or its path or address: others may record into it meanwhile.
        self.is_store = is_path or hasattr(memory, "searches")
        self.growing = growing
        self.chosen = chosen
        self.logger = logger
        self._learner = memory if isinstance(memory, str) and memory in LEARNERS else ""
        self.known: Known = []
        self._bundled: frozenset[str] = frozenset()
        self.exclude: frozenset[str] = frozenset()
        self._noted: set[str] = set()
        self._settled = False
        self._nothing = ""  # why there is nothing in a memory that is filling
        self._aligned: Newest[MetaDataset | str] = Newest()
        try:
            if isinstance(memory, str) and is_to_come(memory):
                raise MemoryMismatch(f"There is no database {memory!r} yet.")
            known = read_memory(memory)
            self.known = _informative(known, logger)
            self._bundled = bundled_among(tasks_of(self.known))
            if task in self.names:
                self.exclude = frozenset({task})
                log_own(logger, self.exclude)
            elif task is not None:
                for note in note_unknown("task", [task], names_of(known)):
                    logger.info(note)
            if not set(self.names) - self.exclude:
                raise MemoryMismatch(self._only_itself())
        except MemoryMismatch as mismatch:
            if not (filling or self.is_store):
                raise
            self._nothing = str(mismatch)
            logger.warning(f"{mismatch} This search does without a memory.")

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all tasks of the memory."""
        return names_of(self.known)

    def without(self, names: Collection[str]) -> Self:
        """The same memory with further tasks left out, known or not, all of them if need be."""
        other = copy.copy(self)
        other.exclude = self.exclude | set(names)
        is_whole = (set(names) - self.exclude).isdisjoint(self.names)
        # Never the same one: studies that take turns have spaces of their own.
        other._aligned = self._aligned.copy() if is_whole else Newest()
        return other

    def on(self, space: VectorSpace) -> MetaDataset:
        """The earlier tasks in the vectors of ``space``: the same object for the same space."""
        if self._nothing:
            raise MemoryMismatch(self._nothing, expected=True)
        found = self._aligned.get(space, lambda: self._align(space))
        if isinstance(found, str):
            raise MemoryMismatch(found, final=not self.growing)
        return found

    def settle(self, space: VectorSpace) -> None:
        """Log what a search space lacks that has grown until now; once, at the first call."""
        if self.growing and not self._settled:
            self._settled = True
            notes = note_coverage(self.on(space).coverage, self._bundled)
            self._log(note for note in notes if note.of_names)

    def learner_in(self, space: VectorSpace) -> str:
        """The name of the bundled memory that was asked for; empty for any other memory."""
        return self._learner

    def _align(self, space: VectorSpace) -> MetaDataset | str:
        """The aligned tasks, or the reason why there are none."""
        if not set(self.names) - self.exclude:
            return self._only_itself()
        try:
            dataset = open_memory(self.known, space.space, exclude=self.exclude)
        except ValueError as error:
            return str(error)  # kept as a memory would be: it is not sought at each trial
        notes = note_coverage(dataset.coverage, self._bundled)
        # What a space lacks that grows may be asked for by the next trial, see ``settle``.
        self._log(note for note in notes if not (self.growing and note.of_names))
        return dataset

    def _log(self, notes: Iterable[Note]) -> None:
        for text, is_warning, _ in notes:
            if text not in self._noted:  # most are the same in every form of a space that grows
                self._noted.add(text)
                self.logger.log(
                    logging.WARNING if is_warning and self.chosen else logging.INFO, text
                )

    def _only_itself(self) -> str:
        return (
            f"The memory has no task but {', '.join(self.names)}, the task itself: nothing to"
            " learn from. Record other tasks, or use a sampler without a memory."
        )

    def __repr__(self) -> str:
        return f"TaskMemory({format_count(len(self.names), 'task')})"


def log_own(logger: logging.Logger, names: Collection[str]) -> None:
    """Log that a search does not learn from the runs of these tasks, which are its own."""
    for name in sorted(names):
        logger.info(f"Task {name!r} is in the memory; its own runs there are left out.")


def note_unknown(argument: str, names: Collection[str], known: Collection[str]) -> tuple[str, ...]:
    """Notes on names in an argument that no task of the memory has, but that are like one."""
    hints = {name: did_you_mean(name, known) for name in names if name not in known}
    return tuple(
        f"{argument}: the memory has no task {name!r}.{hint}"
        for name, hint in hints.items()
        if hint
    )


def _informative(known: Known, logger: logging.Logger) -> Known:
    """The tasks that something can be learnt from; a warning says why others are left out."""
    reasons, n = _uninformative(known), len(names_of(known))
    listed = [f"{name}: {why}" for name, why in reasons.items()]
    if len(reasons) == n:
        raise MemoryMismatch(
            "There are no sources to learn from."
            f"{''.join(f' {text}.' for text in listed[:5])} Pass finished searches of other tasks,"
            " each with several trials that differ in their loss, or a memory of them."
        )
    if not reasons:
        return known
    more = f"; and {len(listed) - 10} more" if len(listed) > 10 else ""
    logger.warning(f"{len(listed)} of {n} sources are left out. {'; '.join(listed[:10])}{more}.")
    if isinstance(known, MetaDataset):
        return known.without(*reasons)
    return [record for record in known if record.name not in reasons]


def _uninformative(known: Known) -> dict[str, str]:
    """Names of tasks that nothing can be learnt from, with the reason."""
    losses: dict[str, list[FloatArray]] = {}
    contents: dict[str, list[Any]] = {}
    if isinstance(known, MetaDataset):
        for task, rows in zip(known.tasks, known.rows, strict=True):
            losses[task.name] = [known.complete_losses[rows]]
            contents[task.name] = [known.vectors[rows].tobytes()]
    else:
        for record in known:
            losses.setdefault(record.name, []).append(record.complete_losses)
            # As text: values may have no hash, and 1 and True would be equal.
            contents.setdefault(record.name, []).append(repr(record.configurations))
    found: dict[str, str] = {}
    seen: dict[Any, str] = {}
    for name, parts in losses.items():
        values = np.concatenate(parts)
        finite = values[np.isfinite(values)]
        content = (values.tobytes(), tuple(contents[name]))
        if len(finite) < 2:
            found[name] = f"{format_count(len(finite), 'complete trial')} of the full budget"
        elif finite.min() == finite.max():
            found[name] = f"all its losses are {finite[0]:g}"
        elif content in seen:
            found[name] = f"the same runs as {seen[content]}"
        seen.setdefault(content, name)
    return found
