"""``memory=`` of an algorithm: any memory of the core, or the trials of earlier searches."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, NoReturn

from hyperopt import Trials

from automl_plugins.meta.task_memory import task_memory
from automl_plugins.spaces.vector_space import VectorSpace

from ._history import TrialReader
from .memory_io import finished, meta_dataset_from_trials

logger = logging.getLogger(__name__)


class _Later:
    """Stands for trials until the search space is known that they are read in."""

    store = None

    def on(self, space: VectorSpace) -> NoReturn:
        raise NotImplementedError("The trials are read at the first proposal.")


def checked(options: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Options to check a recipe with, and those to go on with: a memory is opened once.

    Raises:
        TypeError: For what is no memory.
        ValueError: For a memory without another task.
    """
    if "memory" not in options:
        return options, options
    if (named := _named(options["memory"])) is None:
        memory = task_memory(options["memory"], task=options.get("task"))
        options = options | {"memory": memory}
        return options, options
    if not set(named) - {options.get("task")}:
        raise ValueError("memory has no trials of another task: nothing to learn from.")
    return options | {"memory": _Later()}, options


def own_name(memory: Any, trials: Trials) -> str | None:
    """Name under which the trials of a search are among those it is to learn from."""
    named = _named(memory) or {}
    return next((name for name, source in named.items() if source is trials), None)


def aligned(options: dict[str, Any], reader: TrialReader, own: str | None) -> dict[str, Any]:
    """Options with a memory that the search space can use.

    Args:
        options: Options of a recipe.
        reader: Reads trials of the search space, which those of a memory must be of.
        own: Name of trials to leave out, which is logged.

    Raises:
        TypeError: For what is no memory.
        ValueError: If no other trials have finished, or they are not of this search space; if
            the space shares nothing with the memory.
    """
    if "memory" not in options:
        return options
    if (named := _named(options["memory"])) is None:
        memory = task_memory(options["memory"], task=options.get("task"))
        if reader.vectors.d:
            memory.on(reader.vectors)
        return options | {"memory": memory}
    if own is not None:
        logger.info(f"The trials {own!r} of the memory are those of this search: left out.")
    left = {n: t for n, t in named.items() if n != own and finished(t)}
    if not left:
        raise ValueError(
            f"memory has no finished trials of another task, only {', '.join(named) or 'nothing'}:"
            " run other searches first, or use an algorithm without a memory."
        )
    try:
        return options | {"memory": meta_dataset_from_trials(left, reader.known)}
    except ValueError as error:
        raise ValueError(
            f"memory has trials of another search space. {error} Or pass memory="
            "meta_dataset_from_trials(trials, {name: the search space of these trials})."
        ) from error


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
