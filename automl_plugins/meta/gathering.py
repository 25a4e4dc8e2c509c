"""Records of tasks as the columns of a ``MetaDataset``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from ConfigSpace import ConfigurationSpace

from automl_plugins.records.task_record import TaskRecord
from automl_plugins.records.trial import Status
from automl_plugins.spaces.union import union_space
from automl_plugins.spaces.vector_space import VectorSpace

from .alignment import Missing, OutOfRange, align
from .coverage import Coverage, MemoryMismatch
from .tasks import MetaTask

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


class Gathered(NamedTuple):
    """The fields of a ``MetaDataset``, in its order."""

    space: ConfigurationSpace
    tasks: tuple[MetaTask, ...]
    task: IntArray
    vectors: FloatArray
    losses: FloatArray
    seconds: FloatArray
    status: IntArray
    coverage: tuple[Coverage, ...]


def gather(
    records: Iterable[TaskRecord],
    space: ConfigurationSpace | None,
    *,
    out_of_range: OutOfRange,
    missing: Missing,
    defaults: Mapping[str, Any] | None,
) -> Gathered:
    """See ``MetaDataset.from_records``."""
    records = [record for record in records if len(record)]
    if not records:
        raise ValueError("There are no runs to learn from: every task is empty.")
    if space is None:
        space = union_space(records)
    vector_space = VectorSpace(space)
    gathered: dict[str, list[TaskRecord]] = {}
    for record in records:
        gathered.setdefault(record.name, []).append(record)
    tasks, parts, coverage = [], [], []
    for index, (name, group) in enumerate(gathered.items()):
        features = {k: v for record in group for k, v in record.meta_features.items()}
        tags = {k: v for record in group for k, v in record.tags.items()}
        task = MetaTask(name, features, tags)
        part, covered = _aligned(
            vector_space,
            group,
            task,
            out_of_range=out_of_range,
            missing=missing,
            defaults=defaults,
        )
        tasks.append(task)
        parts.append((np.full(len(part[0]), index), *part))
        coverage.append(covered)
    if all(covered.n_partial == covered.n_runs for covered in coverage):
        raise MemoryMismatch(
            f"All {sum(covered.n_runs for covered in coverage)} recorded runs were evaluated at a"
            " lower budget: their losses cannot be compared with those of runs in full."
        )
    if not any(covered.shared for covered in coverage):
        known = sorted({n for covered in coverage for n in covered.ignored})
        raise MemoryMismatch(
            "The recorded runs and the search space share no hyperparameter: the runs have"
            f" {', '.join(known)}; the space has {', '.join(vector_space.names)}. Rename one"
            " of them."
        )
    task_column, vectors, losses, seconds, status = (
        np.concatenate(column) for column in zip(*parts, strict=True)
    )
    return Gathered(
        space=space,
        tasks=tuple(tasks),
        task=task_column,
        vectors=vectors,
        losses=losses,
        seconds=seconds,
        status=status,
        coverage=tuple(coverage),
    )


def _aligned(
    space: VectorSpace,
    records: Sequence[TaskRecord],
    task: MetaTask,
    *,
    out_of_range: OutOfRange,
    missing: Missing,
    defaults: Mapping[str, Any] | None,
) -> tuple[tuple[FloatArray, FloatArray, FloatArray, IntArray], Coverage]:
    """Vectors, losses, seconds and status of a task's runs at full budget, and the coverage."""
    full = [~_at_lower_budget(record) for record in records]
    configurations = [
        record.configurations[i]
        for record, rows in zip(records, full, strict=True)
        for i in np.flatnonzero(rows).tolist()
    ]
    vectors, keep, coverage = align(
        space,
        configurations,
        task=task.name,
        out_of_range=out_of_range,
        missing=missing,
        defaults=defaults,
        size=task.size,
    )

    def column(name: str) -> Any:
        parts = [getattr(r, name)[rows] for r, rows in zip(records, full, strict=True)]
        return np.concatenate(parts)[keep]

    n_partial = sum(len(record) for record in records) - len(configurations)
    coverage = replace(coverage, n_runs=coverage.n_runs + n_partial, n_partial=n_partial)
    return (vectors[keep], column("losses"), column("seconds"), column("status")), coverage


def _at_lower_budget(record: TaskRecord) -> npt.NDArray[np.bool_]:
    """Complete runs (n,) whose budget says that they were not evaluated in full."""
    return np.asarray(~np.isnan(record.budget) & (record.status == Status.COMPLETE))
