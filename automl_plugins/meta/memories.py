"""What counts as a memory: datasets, stores and where they are, records, names of bundled ones."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Sequence
from functools import cache
from importlib.resources import as_file, files
from typing import TYPE_CHECKING, Literal, Protocol, cast, get_args

from ConfigSpace import ConfigurationSpace
from ConfigSpace.conditions import Condition, EqualsCondition, InCondition

from automl_plugins.addresses import check_exists
from automl_plugins.meta.alignment import nothing_left
from automl_plugins.meta.dataset import MetaDataset
from automl_plugins.meta.files import read_records
from automl_plugins.records.task_record import TaskRecord
from automl_plugins.spaces.choices import one_of
from automl_plugins.spaces.union import union_space
from automl_plugins.spaces.values import ABSENT, reader

if TYPE_CHECKING:
    from .store import MetaStore


class Store(Protocol):
    """What is needed of a ``MetaStore``."""

    def records(self) -> list[TaskRecord]:
        """All runs, task by task."""
        ...


#: A memory: aligned or not, in a database, its path or address, or the name of a bundled one.
Memory = MetaDataset | Store | Iterable[TaskRecord] | str | os.PathLike[str]


def open_memory(
    memory: Memory | None, space: ConfigurationSpace, *, exclude: Collection[str] = ()
) -> MetaDataset:
    """A memory aligned to a search space, without the tasks named in ``exclude``, known or not.

    Raises:
        TypeError: For something else.
        MemoryMismatch: If it has no runs, shares no hyperparameter with the space, or no run of
            it lies there.
    """
    if isinstance(exclude, str):
        raise TypeError(
            f"exclude must be names of tasks, got the text {exclude!r}: [{exclude!r}]."
        )
    known = read_memory(memory)
    if isinstance(known, MetaDataset):
        dataset = known.without(*exclude).aligned(space)
    else:
        kept = [record for record in known if record.name not in exclude]
        dataset = MetaDataset.from_records(kept, space)
    if not len(dataset):
        raise nothing_left(dataset.coverage)
    return dataset


def read_memory(memory: Memory | None) -> MetaDataset | list[TaskRecord]:
    """What a memory holds, in the space or spaces that it was recorded in.

    Raises:
        StoreError: For a store that cannot be read.
        TypeError: For what is no memory.
        ValueError: For a name or path of none.
    """
    if isinstance(memory, MetaDataset):
        return memory
    if isinstance(memory, str) and memory in LEARNERS:
        return bundled(memory)
    if isinstance(memory, str | os.PathLike):
        try:
            check_exists(os.fspath(memory), "memory")
        except ValueError as error:
            raise ValueError(f"{error} The bundled memories are {', '.join(LEARNERS)}.") from None
        with open_store(memory) as store:
            return store.records()
    if memory is not None and callable(found := getattr(memory, "records", None)):
        return list(found())
    if isinstance(memory, Iterable):
        records = list(memory)
        if all(isinstance(record, TaskRecord) for record in records):
            return records
    raise TypeError(
        "memory must be a MetaDataset, a MetaStore, its path or address, records of tasks, or the"
        f" name of a bundled memory, got {memory!r}."
    )


def open_store(address: str | os.PathLike[str]) -> MetaStore:
    """The store at an address or path; its errors."""
    from .store import MetaStore  # SQLAlchemy is an extra

    return MetaStore(address)


def store_of(memory: object) -> MetaStore | None:
    """The memory, if it is a store that keeps what was computed of its tasks."""
    return cast("MetaStore", memory) if hasattr(memory, "save_artifact") else None


def take_conditions(
    space: ConfigurationSpace, known: MetaDataset | Sequence[TaskRecord]
) -> ConfigurationSpace:
    """A space without conditions, with those that a memory has for hyperparameters of it.

    Only conditions on the values of one parent are taken over.
    """
    if isinstance(known, MetaDataset):
        source = known.space
    else:
        try:
            source = union_space(known)
        except ValueError:  # recorded without a space
            return space
    for name in space:
        conditions = source.parent_conditions_of[name] if name in source else []
        if len(conditions) != 1 or not isinstance(conditions[0], EqualsCondition | InCondition):
            continue
        condition: Condition = conditions[0]
        if condition.parent.name not in space:
            continue
        parent = space[condition.parent.name]
        wanted = condition.values if isinstance(condition, InCondition) else [condition.value]
        read = reader(parent)
        if legal := [found for value in wanted if (found := read(value)) is not ABSENT]:
            space.add(one_of(space[name], parent, legal))
    return space


Learner = Literal[
    "lightgbm", "random_forest", "extra_trees", "svm", "logistic_regression", "mlp", "knn"
]
Metric = Literal["error", "balanced_error", "auc_error"]

LEARNERS: tuple[Learner, ...] = get_args(Learner)
METRICS: tuple[Metric, ...] = get_args(Metric)


@cache
def bundled(learner: str, *, metric: str = "balanced_error") -> MetaDataset:
    """The runs of a learner on at least 50 classification data sets, which come with the package.

    ``examples/benchmarks/build_memory.py`` trained every learner at the same 64 configurations
    on each data set (KEEL's and one of scikit-learn, at most 2 000 rows), three stratified folds
    each. Hyperparameters have the names and scales of scikit-learn and LightGBM. Fixed were: 50
    trees of the forests, 100 iterations at most of the networks and of logistic regression. The
    layers of ``mlp`` are ``n_layers`` times ``n_units``; ``class_weight="none"`` stands for None.
    ``seconds`` are CPU seconds of one thread over all folds, without preprocessing; NaN for the
    few runs (1.3 % of ``knn``, 0.4 % of ``logistic_regression``, 0.1 % of ``svm``) that ended
    before the clock moved on. A task's tag ``"family"`` is equal for data sets that stem from
    one source.

    Args:
        learner: One of ``LEARNERS``.
        metric: ``"error"`` is 1 - accuracy, ``"balanced_error"`` 1 - the mean of the classes'
            recalls, ``"auc_error"`` 1 - the area under the ROC curve (one against the rest).

    Raises:
        ValueError: For another learner or metric.
    """
    if learner not in LEARNERS:
        raise ValueError(f"learner must be one of {', '.join(LEARNERS)}, got {learner!r}.")
    if metric not in METRICS:
        raise ValueError(f"metric must be one of {', '.join(METRICS)}, got {metric!r}.")
    with as_file(files("automl_plugins") / "data" / f"{learner}.json.xz") as path:
        records = read_records(path)
    memory = MetaDataset.from_records(r for r in records if r.tags["metric"] == metric)
    for column in (memory.task, memory.vectors, memory.losses, memory.seconds, memory.status):
        column.setflags(write=False)  # all callers share them
    return memory
