"""The sources of a sampler as one study looks at them."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from optuna.logging import get_logger

from automl_plugins.meta.alignment import MemoryMismatch, notes
from automl_plugins.meta.dataset import MetaDataset
from automl_plugins.meta.memories import open_memory
from automl_plugins.spaces.vector_space import VectorSpace

from ._cache import Cache
from ._sources import Sources

if TYPE_CHECKING:
    from automl_plugins.meta.store import MetaStore

_logger = get_logger("optuna.automl_plugins")


class UnionMemory:
    """The ``AlignedMemory`` of one study, whose search space grows as trials ask for more.

    Args:
        sources: The earlier tasks.
        exclude: Names of tasks to leave out.
    """

    def __init__(self, sources: Sources, exclude: Collection[str] = ()) -> None:
        self.store: MetaStore | None = sources.store
        self._sources, self._exclude = sources, set(exclude)
        # Spaces are held, so that no other can have the identity of one.
        self._found: Cache[int, tuple[VectorSpace, MetaDataset | str]] = Cache()

    def on(self, space: VectorSpace) -> MetaDataset:
        """The earlier tasks in vectors of ``space``, the same object for the same space.

        Raises:
            MemoryMismatch: If no task is left, none shares a parameter with the space, or no run
                lies in it.
        """
        _, found = self._found.of(id(space), lambda: (space, self._align(space)))
        if isinstance(found, str):
            raise MemoryMismatch(found, final=False)
        return found

    def _align(self, space: VectorSpace) -> MetaDataset | str:
        try:
            dataset = open_memory(self._sources.without(self._exclude), space.space)
        except ValueError as error:
            return str(error)
        for note in notes(dataset.coverage):
            _logger.info(note)
        return dataset

    def __repr__(self) -> str:
        return f"UnionMemory({len(set(self._sources.names) - self._exclude)} tasks)"
