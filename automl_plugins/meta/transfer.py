"""Two-stage transfer on a memory, in whatever search space it is asked for."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from automl_plugins.surrogates.base import FloatArray
from automl_plugins.surrogates.processes import Kernel
from automl_plugins.surrogates.two_stage import TwoStageTransfer
from automl_plugins.surrogates.two_stage_sources import Sources

if TYPE_CHECKING:
    from automl_plugins.meta.dataset import MetaDataset
    from automl_plugins.meta.store import MetaStore
    from automl_plugins.meta.task_memory import AlignedMemory
    from automl_plugins.spaces.vector_space import VectorSpace

_logger = logging.getLogger("automl_plugins.meta.transfer")

_ARTIFACT = "two_stage_sources"


class TransferTemplate:
    """Makes ``TwoStageTransfer`` surrogates; the first stage is fitted once for each space.

    Processes of earlier tasks are kept in this process, and in the store that the memory comes
    from, if any, where the next search finds them.

    Args:
        memory: The earlier tasks.
        paper: Whether to make the authors' surrogate, ``TwoStageTransfer.paper``.
        max_rows: Largest number of runs of a task, and of the search, to learn from.
        **options: Further arguments of ``TwoStageTransfer``.

    Raises:
        ValueError: For illegal arguments.
    """

    def __init__(
        self,
        memory: AlignedMemory,
        *,
        paper: bool = False,
        max_rows: int = 300,
        **options: Any,
    ) -> None:
        make = TwoStageTransfer.paper if paper else TwoStageTransfer
        self._surrogate = make(max_rows=max_rows, **options)
        self._surrogate.check_arguments()
        self.memory = memory
        self._last: tuple[VectorSpace, Sources] | None = None

    def for_space(self, space: VectorSpace) -> TwoStageTransfer:
        """An unfitted surrogate for features of ``space``.

        Raises:
            ValueError: If the space can use no run of the memory.
        """
        last = self._last  # read once: threads share the template
        if last is None or last[0] is not space:
            sources = self._sources(self.memory.on(space))
            self._last = last = (space, sources)
        options = self._surrogate.get_params(deep=False)
        return TwoStageTransfer(**(options | {"sources": last[1]}))

    def best_recorded(self, space: VectorSpace) -> FloatArray:
        """The best complete run of each earlier task (n, d), n <= S, distinct.

        Raises:
            ValueError: If the space can use no run of the memory.
        """
        dataset = self.memory.on(space)
        losses = dataset.complete_losses
        best = [
            rows.start + int(np.nanargmin(losses[rows]))
            for rows in dataset.rows
            if not np.isnan(losses[rows]).all()
        ]
        vectors = space.canonical(dataset.vectors[best])
        _, first = np.unique(space.keys(vectors), return_index=True)
        return vectors[np.sort(first)]

    def _sources(self, dataset: MetaDataset) -> Sources:
        kernel, max_rows = self._surrogate.kernel, self._surrogate.max_rows
        store = self.memory.store
        if store is None:
            return Sources.fit(dataset, kernel=kernel, max_rows=max_rows)
        version = _version(dataset, kernel, max_rows)
        first = dataset.tasks[0].name
        kept = _kept(store, first, version)
        if kept is not None:
            return kept
        sources = Sources.fit(dataset, kernel=kernel, max_rows=max_rows)
        _keep(store, first, sources, version)
        return sources

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_last": None}

    def __repr__(self) -> str:
        return f"TwoStageTransfer({self.memory!r})"


def _kept(store: MetaStore, task: str, version: str) -> Sources | None:
    arrays: Mapping[str, Any] | None = store.load_artifact(task, _ARTIFACT, version=version)
    return None if arrays is None else Sources.from_arrays(arrays)


def _keep(store: MetaStore, task: str, sources: Sources, version: str) -> None:
    from automl_plugins.meta.store import StoreError  # the memory imports surrogates

    try:
        store.save_artifact(task, _ARTIFACT, sources.arrays(), version=version)
    except StoreError as error:  # it can be computed again
        _logger.info(f"The first stage of TST could not be kept in {store}: {error}")


def _version(dataset: MetaDataset, kernel: Kernel, max_rows: int) -> str:
    """Identifies all that the first stage depends on."""
    digest = hashlib.blake2b(digest_size=16)
    digest.update(repr((kernel, max_rows, dataset.vector_space.feature_names)).encode())
    for task in dataset.tasks:
        features = sorted(task.meta_features.items())
        digest.update(repr((task.name, features)).encode())
    for column in (dataset.task, dataset.vectors, dataset.losses, dataset.status):
        digest.update(np.ascontiguousarray(column).tobytes())
    return digest.hexdigest()
