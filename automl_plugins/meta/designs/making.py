"""What the initial designs share: their input checked, their picks told."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import numpy.typing as npt
from ConfigSpace import ConfigurationSpace

from automl_plugins.spaces.values import to_values

from ..coverage import nothing_left
from ..dataset import MetaDataset
from ..task_features import TaskDescription
from .suggestion import Design, Suggestion

FloatArray = npt.NDArray[np.float64]

InitialDesign = Callable[[ConfigurationSpace, MetaDataset, TaskDescription, int], Design]

UNDESCRIBED = (
    "No meta-feature that the task has tells the known tasks apart: all of them count alike."
)


def checked(space: ConfigurationSpace, memory: MetaDataset, k: int) -> MetaDataset:
    """The memory aligned to the space.

    Raises:
        TypeError: For a memory or a k that is none.
        ValueError: For k below 1, or a memory without a complete run in the space.
    """
    if not isinstance(memory, MetaDataset):
        raise TypeError(
            f"memory must be a MetaDataset, got {type(memory).__name__}; a store has .dataset()."
        )
    if isinstance(k, bool) or not isinstance(k, int | np.integer):
        raise TypeError(f"k must be a whole number, got {k!r}.")
    if k < 1:
        raise ValueError(f"k must be at least 1, got {k}.")
    memory = memory.aligned(space)
    if not len(memory):
        raise nothing_left(memory.coverage)
    if np.isnan(memory.complete_losses).all():
        raise ValueError(
            f"None of the {len(memory)} runs of the memory completed: it knows no good"
            " configuration."
        )
    return memory


def told(
    method: str,
    memory: MetaDataset,
    vectors: FloatArray,
    scores: FloatArray,
    reasons: Sequence[str],
    notes: tuple[str, ...],
) -> Design:
    """A design of ``vectors`` (k, d), with scores (k,) and reasons (k)."""
    values: Sequence[Mapping[str, object]] = to_values(memory.space, vectors)
    return Design(
        method,
        tuple(
            Suggestion(vector, configuration, float(score), reason)
            for vector, configuration, score, reason in zip(
                vectors, values, scores, reasons, strict=True
            )
        ),
        notes,
    )
