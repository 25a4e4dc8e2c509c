"""Runs of earlier tasks, aligned to one search space: the memory that designs and models read."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, Unpack

import numpy as np
from ConfigSpace import ConfigurationSpace

from automl_plugins._arguments import check_kind, refuse_foreign, repeated
from automl_plugins.arrays import BoolArray, FloatArray, IntArray, check_shape
from automl_plugins.formats import format_count, join_names
from automl_plugins.meta.alignment import AlignOptions, align
from automl_plugins.meta.coverage import Coverage, MemoryMismatch
from automl_plugins.meta.readings import Reading, doubt_edges, guess_ranges, read_runs
from automl_plugins.meta.tasks import (
    MetaTask,
    meta_feature_names_of,
    meta_feature_values,
    read_meta_features,
    read_names,
    update_known,
)
from automl_plugins.records.scores import tame
from automl_plugins.records.task_record import TaskRecord, as_records
from automl_plugins.records.trial import Status, known_seconds
from automl_plugins.spaces.union import unite
from automl_plugins.spaces.values import is_same_space, to_values
from automl_plugins.spaces.vector_space import VectorSpace

from .names import held_values, respell


@dataclass(frozen=True, eq=False)
class MetaDataset:
    """Tasks x configurations, ragged: each task has its own runs.

    Attributes:
        space: The search space that all runs are aligned to.
        tasks: The tasks (T).
        task: Index of the task of each run (N,), ascending.
        vectors: Configurations (N, d) in the space's vector form; NaN = inactive.
        losses: Losses (N,), minimised; NaN where there is none.
        seconds: Duration of each run (N,); NaN where unknown, also in place of zeros.
        status: ``Status`` of each run (N,): COMPLETE, PRUNED or FAILED.
        coverage: What became of each task's runs when they were aligned, also of tasks of which no
            run is left.
        imputed: Entries of ``vectors`` (N, d) that were not recorded; None if all were.

    Raises:
        ValueError: On construction, for columns that do not fit each other.

    Example::

        memory = MetaDataset.from_records(task_records, space)
        print(memory.coverage, portfolio(space, memory, None, k=3))
    """

    space: ConfigurationSpace
    tasks: tuple[MetaTask, ...]
    task: IntArray
    vectors: FloatArray
    losses: FloatArray
    seconds: FloatArray
    status: IntArray
    coverage: tuple[Coverage, ...] = ()
    imputed: BoolArray | None = None

    def __post_init__(self) -> None:
        n = len(self.task)
        for name in ("losses", "seconds", "status"):
            check_shape(name, getattr(self, name), n)
        check_shape("vectors", self.vectors, n, len(self.space))
        if self.imputed is not None:
            check_shape("imputed", self.imputed, *self.vectors.shape)
        object.__setattr__(self, "seconds", known_seconds(self.seconds))
        if n and (self.task.min() < 0 or self.task.max() >= len(self.tasks)):
            raise ValueError(f"task must lie in [0, {len(self.tasks)}).")
        # So that the runs of a task are a slice, see ``rows``.
        if (np.diff(self.task) < 0).any():
            raise ValueError("task must be ascending.")
        names = [task.name for task in self.tasks]
        if empty := sorted({*names} - {names[t] for t in set(self.task.tolist())}):
            raise ValueError(f"Tasks must have runs, {', '.join(empty)} has none.")
        if twice := sorted(repeated(names)):
            raise ValueError(f"Tasks must have names of their own, {', '.join(twice)} does not.")

    # --- how it is built ----------------------------------------------------------------------

    @classmethod
    def from_records(
        cls,
        records: Iterable[TaskRecord],
        space: ConfigurationSpace | None = None,
        **options: Unpack[AlignOptions],
    ) -> MetaDataset:
        """Recorded runs aligned to a search space by the names of the hyperparameters.

        Names of the space may have a prefix, such as that of a pipeline's step, or be other
        ones that LightGBM, XGBoost or CatBoost have, such as ``eta``: see ``spelling``. Records of
        equal name are one task with the meta-features and tags of all its records; later records
        take precedence. Runs at a lower budget are left out, as their losses cannot be compared,
        and so are tasks without a run that lies in the space.

        Args:
            records: Runs by task.
            space: The search space; None takes the union of the recorded ones.
            **options: ``out_of_range`` and ``missing``, see ``AlignOptions``. If neither drops,
                most numbers of a hyperparameter nearly all outside are imputed: ``doubt_edges``.

        Raises:
            TypeError: For records, a space or an option of another kind.
            ValueError: If there is no record, a recorded task has no space and none is given, or
                a meta-feature is not a number.
            MemoryMismatch: If no task shares a hyperparameter with the space, or none of its runs
                lies in it.
        """
        name = "MetaDataset.from_records"
        check_kind(name, space, ConfigurationSpace | None, "a ConfigurationSpace as space")
        refuse_foreign(name, options, AlignOptions.__annotations__, {})
        found = [record for record in as_records(records) if len(record)]
        if not found:
            raise ValueError("There are no runs to learn from: every task is empty.")
        recorded = {record.tags.get("learner", ""): record.space or () for record in found}
        held = {name: held_values(name, space or (), [*own]) for name, own in recorded.items()}
        if space is not None:
            found = respell(space, found)
        by_name: dict[str, list[TaskRecord]] = {}
        for record in found:
            by_name.setdefault(record.name, []).append(record)
        every = [record for group in by_name.values() for record in group]
        if space is None:
            space = union_space(every)
        vector_space = VectorSpace(space)
        entries = {name: _read_held(vector_space, values) for name, values in held.items()}
        known = [_describe(name, group) for name, group in by_name.items()]
        full = [list(map(_at_full_budget, group)) for group in by_name.values()]
        # By all of them: a column of few runs may be choices by chance.
        guessed = guess_ranges(vector_space, every)
        readings = [
            read_runs(
                vector_space,
                [values for record in group for values in record.configurations],
                size=task.size,
                records=group,
                guessed=guessed,
            )
            for task, group in zip(known, full, strict=True)
        ]
        # Where gaps or misfits are to be dropped, nothing may become a gap or a misfit.
        if options.get("out_of_range") != "drop" and options.get("missing") != "drop":
            readings = doubt_edges(vector_space, readings)
        tasks: list[MetaTask] = []
        columns, coverage = [], []
        # The groups as they were: runs at a lower budget are counted, too.
        for task, group, reading in zip(known, by_name.values(), readings, strict=True):
            of_all = entries[group[0].tags.get("learner", "")]
            n_runs = sum(map(len, group))
            own, covered = _runs_of(task, n_runs, vector_space, reading, of_all, options)
            coverage.append(covered)
            if covered.n_kept:
                columns.append({"task": np.full(covered.n_kept, len(tasks)), **own})
                tasks.append(task)
        _refuse_useless(coverage, vector_space)
        # Some run is left, so there are columns.
        arrays = {name: np.concatenate([own[name] for own in columns]) for name in columns[0]}
        return cls(space, tuple(tasks), **arrays, coverage=tuple(coverage))

    def aligned(self, space: ConfigurationSpace, **options: Unpack[AlignOptions]) -> MetaDataset:
        """The same runs in another search space; arguments and errors of ``from_records``."""
        if is_same_space(space, self.space) and not options:
            return self
        return MetaDataset.from_records(self.records(), space, **options)

    def subset(self, keep: Callable[[MetaTask], bool]) -> MetaDataset:
        """The tasks for which ``keep`` is true, with their runs; ValueError if none is left."""
        kept = [index for index, task in enumerate(self.tasks) if keep(task)]
        if not kept:
            raise ValueError("No task is left.")
        rows = np.isin(self.task, kept)
        columns = ("vectors", "losses", "seconds", "status")
        tasks = tuple(self.tasks[i] for i in kept)
        names = {task.name for task in tasks}
        return replace(
            self,
            tasks=tasks,
            task=np.searchsorted(kept, self.task[rows]),
            coverage=tuple(covered for covered in self.coverage if covered.task in names),
            imputed=None if self.imputed is None else self.imputed[rows],
            **{name: getattr(self, name)[rows] for name in columns},
        )

    def without(self, *names: str) -> MetaDataset:
        """All tasks but those named, which need not be there; ValueError if none is left.

        TypeError for a name that is no text, such as a list of names.
        """
        names = read_names("without", names)
        if not any(task.name in names for task in self.tasks):
            return self
        return self.subset(lambda task: task.name not in names)

    def records(self) -> list[TaskRecord]:
        """The runs in plain values of this space, without imputed ones, task by task."""
        recorded = self.vectors
        if self.imputed is not None:
            recorded = np.where(self.imputed, np.nan, recorded)
        return [
            TaskRecord(
                task.name,
                to_values(self.space, recorded[rows]),
                self.losses[rows],
                seconds=self.seconds[rows],
                status=self.status[rows],
                space=self.space,
                meta_features=task.meta_features,
                tags=task.tags,
            )
            for task, rows in zip(self.tasks, self.rows, strict=True)
        ]

    # --- what it contains ---------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self.task)

    def __repr__(self) -> str:
        sizes = {"task": len(self.tasks), "run": len(self), "parameter": len(self.space)}
        return f"MetaDataset({join_names(format_count(n, what) for what, n in sizes.items())})"

    @cached_property
    def vector_space(self) -> VectorSpace:
        """Vectorised view of the search space."""
        return VectorSpace(self.space)

    @cached_property
    def rows(self) -> tuple[slice, ...]:
        """The runs of each task (T)."""
        edges = np.searchsorted(self.task, np.arange(len(self.tasks) + 1))
        return tuple(slice(int(a), int(b)) for a, b in pairwise(edges))

    def scores(self, scale: Callable[[FloatArray], FloatArray]) -> FloatArray:
        """Losses (N,) made comparable between tasks by a function of ``records.scores``.

        Failed and pruned runs count as the worst of their task.
        """
        losses = self.complete_losses
        # Beside an outlier a scale would leave the others no digits.
        return np.concatenate([scale(tame(losses[rows])) for rows in self.rows])

    @property
    def complete_losses(self) -> FloatArray:
        """Losses of complete runs (N,), NaN for all others."""
        return np.where(self.status == Status.COMPLETE, self.losses, np.nan)

    @cached_property
    def unknown(self) -> BoolArray:
        """Mask (d,) of the hyperparameters that no run has."""
        if self.imputed is None:
            return np.zeros(len(self.space), dtype=bool)
        known = ~self.imputed & ~np.isnan(self.vectors)  # without value where it is inactive
        return np.asarray(self.imputed.any(axis=0) & ~known.any(axis=0))

    @cached_property
    def arbitrary(self) -> BoolArray:
        """Mask (d,) of the ``unknown`` ones that do not decide which others are active."""
        mask = self.unknown.copy()
        mask[list(self.vector_space.deciding)] = False
        return mask

    def meta_feature_names(self) -> tuple[str, ...]:
        """Names of all meta-features that any task has, in order of first appearance."""
        return meta_feature_names_of(self.tasks)

    def meta_features(self, names: Sequence[str] | None = None) -> FloatArray:
        """Meta-features (T, m) by task; NaN where a task does not have one."""
        names = self.meta_feature_names() if names is None else names
        return meta_feature_values(self.tasks, names)

    @cached_property
    def distinct(self) -> tuple[FloatArray, IntArray]:
        """The distinct configurations (C, d), and the index of each run's configuration (N,)."""
        keys = self.vector_space.keys(self.vectors)
        _, first, which = np.unique(keys, return_index=True, return_inverse=True)
        order = np.argsort(first)  # as they come up, not as their hashes fall
        rank = np.argsort(order)  # ``argsort`` inverts a permutation
        return self.vectors[first[order]], rank[which].astype(np.int64)

    @cached_property
    def completed(self) -> BoolArray:
        """Mask (C,) of the distinct configurations that completed at least once."""
        distinct, which = self.distinct
        counts = np.bincount(which[~np.isnan(self.complete_losses)], minlength=len(distinct))
        return np.asarray(counts > 0)


def union_space(records: Iterable[TaskRecord]) -> ConfigurationSpace:
    """The union of the recorded spaces (``unite``); ValueError if one of them is not known."""
    spaces = []
    for record in records:
        if record.space is None:
            raise ValueError(
                f"Task {record.name!r} has no search space: pass the space that the"
                " runs should be aligned to."
            )
        spaces.append(record.space)
    return unite(spaces)


def _describe(name: str, records: Sequence[TaskRecord]) -> MetaTask:
    features: dict[str, float] = {}
    for record in records:
        given = read_meta_features(record.meta_features, f"Task {name!r}: ")
        features = update_known(features, given)
    return MetaTask(name, features, {k: v for record in records for k, v in record.tags.items()})


def _at_full_budget(record: TaskRecord) -> TaskRecord:
    # Only losses of complete runs are compared, so only their budgets matter.
    full = np.isnan(record.budget) | (record.status != Status.COMPLETE)
    if full.all():
        return record
    return record.rows({i: record.configurations[i] for i in np.flatnonzero(full).tolist()})


def _read_held(space: VectorSpace, held: Mapping[str, Any]) -> FloatArray:
    """Vector (d,) of the values that all runs had, by name; NaN where not known."""
    # As if they came from ranges: of choices of numbers the nearest one is taken.
    found = read_runs(space, [held], guessed=dict.fromkeys(held, math.nan))
    return np.asarray(found.entries[0])


def _runs_of(
    task: MetaTask,
    n_runs: int,
    space: VectorSpace,
    reading: Reading,
    held: FloatArray,
    options: AlignOptions,
) -> tuple[dict[str, Any], Coverage]:
    """Columns of the runs that are used, and the coverage of all ``n_runs`` of the task."""
    vectors, keep, coverage, imputed = align(space, reading, task.name, held=held, **options)
    columns = {"vectors": vectors[keep], "imputed": imputed[keep]}
    for name in ("losses", "seconds", "status"):
        columns[name] = np.concatenate([getattr(r, name) for r in reading.records])[keep]
    return columns, replace(coverage, n_runs=n_runs, n_partial=n_runs - len(keep))


def _refuse_useless(coverage: Sequence[Coverage], space: VectorSpace) -> None:
    """Raise MemoryMismatch if no run is left, saying why."""
    if all(covered.n_partial == covered.n_runs for covered in coverage):
        raise MemoryMismatch(
            f"All {sum(covered.n_runs for covered in coverage)} recorded runs were evaluated at a"
            " lower budget: their losses cannot be compared with those of runs in full."
        )
    if not any(covered.shared for covered in coverage):
        known = sorted({n for covered in coverage for n in covered.ignored}) or ["none"]
        raise MemoryMismatch(
            "The recorded runs and the search space share no hyperparameter: the runs have"
            f" {', '.join(known)}; the space has {', '.join(space.names) or 'none'}. Rename one of"
            " them."
        )
    if not any(covered.n_kept for covered in coverage):
        listed = "; ".join(map(str, coverage[:3]))
        raise MemoryMismatch(f"No run of the memory lies in the search space: {listed}.")
