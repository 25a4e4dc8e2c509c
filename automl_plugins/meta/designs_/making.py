"""What the initial designs share: their input checked, their picks told."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import numpy.typing as npt
from ConfigSpace import ConfigurationSpace

from .dataset import MetaDataset
from .suggestion import Design, Suggestion
from .task_features import TaskDescription
from .values import plain_values

FloatArray = npt.NDArray[np.float64]

InitialDesign = Callable[[ConfigurationSpace, MetaDataset, TaskDescription, int], Design]

UNDESCRIBED = "The task shares no meta-feature with the memory: all known tasks count alike."


def checked(space: ConfigurationSpace, memory: MetaDataset, k: int) -> MetaDataset:
    """The memory aligned to the space.

    Raises:
        ValueError: For k below 1, or a memory without a run in the space.
    """
    if k < 1:
        raise ValueError(f"k must be at least 1, got {k}.")
    memory = memory.aligned(space)
    if not len(memory):
        raise ValueError(
            "No run of the memory lies in the search space: "
            + "; ".join(str(covered) for covered in memory.coverage[:3])
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
    values: Sequence[Mapping[str, object]] = plain_values(memory.space, vectors)
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
