"""``memory=`` of an algorithm: any memory of the core, or the trials of earlier searches."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from hyperopt import Trials

from automl_plugins.meta.alignment import MemoryMismatch
from automl_plugins.meta.dataset import MetaDataset
from automl_plugins.meta.task_memory import TaskMemory, task_memory
from automl_plugins.meta.tasks import describe_options
from automl_plugins.spaces.vector_space import VectorSpace

from .memory import meta_dataset_from_trials
from .space import PyllSpace
from .trials import finished_documents

logger = logging.getLogger(__name__)


class TrialsMemory:
    """Trials of earlier searches as an ``AlignedMemory`` of the core.

    Args:
        trials: The trials by name of their task.
        space: The search space that they are of; None as long as it is not known.
        task: Name of the task that is searched.
    """

    store = None

    def __init__(
        self, trials: Mapping[str, Trials], space: PyllSpace | None, *, task: str | None
    ) -> None:
        self._trials, self._space, self._task = trials, space, task
        self._found: TaskMemory | str | None = None

    def on(self, space: VectorSpace) -> MetaDataset:
        """The earlier tasks in the vectors of ``space``, read at the first call.

        Raises:
            MemoryMismatch: If no other trials have finished, or they are of another space.
        """
        if self._found is None:
            self._found = self._read()
        if isinstance(self._found, str):
            raise MemoryMismatch(self._found)
        return self._found.on(space)

    def _read(self) -> TaskMemory | str:
        """The memory, or why there is none."""
        used = {n: trials for n, trials in self._trials.items() if finished_documents(trials)}
        if not set(used) - {self._task}:
            return (
                f"memory has no finished trials of another task, only"
                f" {', '.join(self._trials) or 'nothing'}: run other searches first, or use an"
                " algorithm without a memory."
            )
        try:
            dataset = meta_dataset_from_trials(used, self._space)
        except ValueError as error:
            return (
                f"memory has trials of another search space. {error} Or pass memory="
                "meta_dataset_from_trials(trials, {name: the search space of these trials})."
            )
        return TaskMemory(dataset, task=self._task)


def opened(options: dict[str, Any]) -> dict[str, Any]:
    """Options whose memory is opened, so that proposers share it; trials stay what they are.

    Meta-features take the place of the data ``X`` and ``y``.

    Raises:
        TypeError: For what is no memory.
        MemoryMismatch: For a memory without another task.
    """
    if "memory" not in options:
        return options
    options, task = describe_options(options), options.get("task")
    if (named := _named(options["memory"])) is None:
        return options | {"memory": task_memory(options["memory"], task=task)}
    if not set(named) - {task}:
        raise MemoryMismatch("memory has no trials of another task: nothing to learn from.")
    return options


def own_name(memory: Any, trials: Trials) -> str | None:
    """Name under which the trials of a search are among those it is to learn from."""
    named = _named(memory) or {}
    return next((name for name, source in named.items() if source is trials), None)


def in_space(
    options: Mapping[str, Any], space: PyllSpace | None, own: str | None = None
) -> Mapping[str, Any]:
    """Options with trials by name as a memory of the core.

    Args:
        options: Options of a recipe.
        space: The search space, which the trials must be of.
        own: Name of trials to leave out, which is logged.
    """
    if (named := _named(options.get("memory"))) is None:
        return options
    if own is not None:
        logger.info(f"The trials {own!r} of the memory are those of this search: left out.")
    others = {name: trials for name, trials in named.items() if name != own}
    return {**options, "memory": TrialsMemory(others, space, task=options.get("task"))}


def _named(memory: Any) -> Mapping[str, Trials] | None:
    """Trials by name; None for a memory of another kind.

    Raises:
        TypeError: For trials without a name, or a mapping to something else.
    """
    if isinstance(memory, Trials):
        raise TypeError(
            "Trials do not say what was tuned: pass memory={name of the task: its trials}."
        )
    if not isinstance(memory, Mapping):
        return None
    for name, source in memory.items():
        if not isinstance(source, Trials):
            raise TypeError(f"memory[{name!r}] must be hyperopt.Trials, got {source!r}.")
    return memory
