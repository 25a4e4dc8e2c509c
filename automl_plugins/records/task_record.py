"""Runs on one task in plain values: the form in which frameworks exchange them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np
from ConfigSpace import ConfigurationSpace

from automl_plugins._arguments import check_flag, check_kind, describe, repeated
from automl_plugins.arrays import (
    FloatArray,
    IntArray,
    as_floats,
    check_seconds,
    check_shape,
    refuse_rows,
)
from automl_plugins.records.trial import (
    Status,
    Trial,
    column_of,
    count_statuses,
    fail_violating,
    known_seconds,
    known_times,
)

if TYPE_CHECKING:
    import pandas as pd


def _unknown() -> Any:
    return np.empty(0)  # a column that is not given; the number of runs is not known here


class UnnamedTask(ValueError):
    """A history without the name of its task."""


@dataclass(frozen=True, eq=False)  # == of two columns is an array, which has no truth value
class TaskRecord:
    """Finished evaluations on one task: a data set, a problem that was tuned.

    Columns that are not given are unknown; runs without a status are complete if they have a loss.

    Attributes:
        name: Name of the task.
        configurations: Values by name of each run (n); inactive hyperparameters are absent.
        losses: Losses (n,), minimised; NaN for a failed run. An infinite one fails its run.
        seconds: Duration of each run (n,); NaN where unknown, a lower bound for runs that were
            pruned or ran out of time. Zeros become NaN: the run was shorter than a clock tick.
        status: ``Status`` of each run (n,): COMPLETE, PRUNED or FAILED.
        budget: Step or budget at which a run was evaluated (n,); NaN in full.
        times: Unix time at which each run ended (n,); NaN where unknown.
        space: The space that was searched; None where it is not known.
        meta_features: Properties of the data by name; empty where they were not extracted.
        tags: Further facts about the task, texts by name.
        framework: Where the runs come from: "optuna", "smac", "hyperopt", ...
        seed: Seed of the search; None where it is not known.

    Raises:
        TypeError: On construction, for a configuration, meta-features or tags that are not values
            by name, or a space that is no ConfigurationSpace.
        ValueError: The same, naming the column and the row that is wrong.

    Example::

        record = TaskRecord("iris", [{"C": 1.0}, {"C": 10.0}], losses=[0.3, 0.2], space=space)
    """

    name: str
    configurations: Sequence[Mapping[str, Any]]
    losses: FloatArray
    seconds: FloatArray = field(default_factory=_unknown)
    status: IntArray = field(default_factory=_unknown)
    budget: FloatArray = field(default_factory=_unknown)
    times: FloatArray = field(default_factory=_unknown)
    space: ConfigurationSpace | None = None
    meta_features: Mapping[str, float] = field(default_factory=dict)
    tags: Mapping[str, str] = field(default_factory=dict)
    framework: str = ""
    seed: int | None = None

    def __post_init__(self) -> None:
        for row, configuration in enumerate(self.configurations):
            check_configuration(f"Task {self.name!r}", row, configuration)
        kinds = (
            ("space", ConfigurationSpace | None, "a ConfigurationSpace or None"),
            ("meta_features", Mapping, "numbers by name"),
            ("tags", Mapping, "texts by name"),
        )
        for argument, kind, allowed in kinds:
            check_kind(self._named(argument), getattr(self, argument), kind, allowed)
        losses = self._column("losses", self.losses, required=True)
        given = self.status if np.size(self.status) else np.full(len(losses), Status.COMPLETE)
        # As floats first: a status that is not a number then gets an error that names its row.
        status = self._column("status", given)
        done = (Status.COMPLETE, Status.PRUNED, Status.FAILED)
        wrong = ~np.isin(status, done)
        refuse_rows(self._named("status"), status, wrong, "must be COMPLETE, PRUNED or FAILED")
        # Objectives report a failure as +-inf; a complete run without a loss has failed, too.
        status = np.where(
            (status == Status.COMPLETE) & ~np.isfinite(losses), Status.FAILED, status
        )
        losses = np.where(np.isfinite(losses) & (status != Status.FAILED), losses, math.nan)
        object.__setattr__(self, "losses", losses)
        object.__setattr__(self, "status", status.astype(np.int64))
        for name in ("seconds", "budget", "times"):
            object.__setattr__(self, name, self._column(name, getattr(self, name)))
        # Before ``known_seconds``, which would accept infinite seconds as unknown.
        check_seconds(self._named("seconds"), self.seconds)
        object.__setattr__(self, "seconds", known_seconds(self.seconds))

    def _column(self, name: str, values: Any, *, required: bool = False) -> FloatArray:
        n = len(self.configurations)
        if not np.size(values) and not required:
            return np.full(n, math.nan)
        column = as_floats(values, self._named(name))
        check_shape(self._named(name), column, n)
        return column

    def _named(self, column: str) -> str:
        return f"Task {self.name!r}: {column}"

    def __len__(self) -> int:
        return len(self.configurations)

    def __repr__(self) -> str:
        known = self.losses[self.status == Status.COMPLETE]
        best = f", best loss {known.min():.4g}" if known.size else ""
        return f"TaskRecord({self.name!r}, {count_statuses(self.status)}{best})"

    @property
    def complete_losses(self) -> FloatArray:
        """Losses of the runs that are complete and in full (n,), NaN for all others."""
        full = (self.status == Status.COMPLETE) & np.isnan(self.budget)
        return np.where(full, self.losses, np.nan)

    def described(
        self,
        *,
        meta_features: Mapping[str, float] | None = None,
        tags: Mapping[str, str] | None = None,
        space: ConfigurationSpace | None = None,
    ) -> TaskRecord:
        """The same runs with a new description of the task; None keeps the old one."""
        return replace(
            self,
            meta_features=self.meta_features if meta_features is None else dict(meta_features),
            tags=self.tags if tags is None else dict(tags),
            space=self.space if space is None else space,
        )

    def rows(self, kept: Mapping[int, Mapping[str, Any]]) -> TaskRecord:
        """The runs at the keys of ``kept``, ascending, with its values as configurations."""
        # An empty list would become an array of floats, which cannot be an index.
        indices = np.array(sorted(kept), dtype=np.int64)
        names = ("losses", "seconds", "status", "budget", "times")
        columns = {name: getattr(self, name)[indices] for name in names}
        return replace(self, configurations=[kept[i] for i in indices.tolist()], **columns)

    @classmethod
    def of(
        cls,
        name: str,
        trials: Sequence[Trial],
        *,
        space: ConfigurationSpace | None = None,
        framework: str = "",
        seed: int | None = None,
    ) -> TaskRecord:
        """The record of finished trials, in the order given.

        Records have no constraints: a complete trial that violates one counts as failed, so that
        it is never suggested.
        """
        trials = fail_violating(trials)

        def column(attribute: str) -> FloatArray:
            return column_of(trials, attrgetter(attribute))

        return cls(
            name,
            [dict(trial.config) for trial in trials],
            column("loss"),
            seconds=column("seconds"),
            status=column("status").astype(np.int64),
            budget=column("budget"),
            times=known_times(column("ended")),
            space=space,
            framework=framework,
            seed=seed,
        )

    @classmethod
    def from_frame(
        cls,
        frame: pd.DataFrame,
        *,
        name: str,
        loss: str,
        parameters: Sequence[str] | None = None,
        seconds: str | None = None,
        space: ConfigurationSpace | None = None,
        maximize: bool = False,
        meta_features: Mapping[str, float] | None = None,
    ) -> TaskRecord:
        """The record of a data frame with one row for each run.

        Args:
            frame: The runs; a missing value is an inactive hyperparameter.
            name: Name of the task.
            loss: Column of the loss; missing for a run that failed.
            parameters: Columns of the hyperparameters; None takes all other columns.
            seconds: Column of the durations: numbers of seconds, or timedeltas.
            space: The space that was searched; without it a memory takes a column of numbers for
                a range where most of them are no choices of its search.
            maximize: Whether ``loss`` is a score, larger is better.
            meta_features: Properties of the data.

        Raises:
            TypeError: For an argument of the wrong type.
            ValueError: For a column that the frame does not have, or losses or seconds that are
                not numbers.
        """
        check_flag("maximize", maximize)
        if not isinstance(name, str):
            raise TypeError(f"name must be the task's name, a text, got {describe(name)}.")
        measured = [loss] if seconds is None else [loss, seconds]
        names = parameter_columns(frame, parameters, measured)
        columns = [_values(frame[c]) for c in names]
        present = [frame[c].notna().tolist() for c in names]
        configurations = [
            {str(c): v[i] for c, v, p in zip(names, columns, present, strict=True) if p[i]}
            for i in range(len(frame))  # not over the columns: there may be none
        ]
        sign = -1.0 if maximize else 1.0
        return cls(
            name,
            configurations,
            sign * float_column(frame, loss),
            seconds=_unknown() if seconds is None else float_column(frame, seconds),
            space=space,
            meta_features=dict(meta_features or {}),
        )


def parameter_columns(
    frame: pd.DataFrame, parameters: Sequence[str] | None, measured: Sequence[str]
) -> list[str]:
    """Columns of the hyperparameters: those named, or all that are not ``measured``.

    Raises:
        TypeError: For anything but a frame and a sequence of names.
        ValueError: For a column that the frame does not have, or has twice, such as 1 and "1", or
            one that is both named and measured.
    """
    if not hasattr(frame, "columns"):  # not isinstance: pandas is not loaded for a check
        raise TypeError(
            f"frame must be a data frame, such as pandas.read_csv(path), got {describe(frame)}."
        )
    if isinstance(parameters, str):
        raise TypeError(f"parameters must be names of columns: [{parameters!r}].")
    check_kind("parameters", parameters, Iterable | None, "names of columns")
    columns = list(frame.columns)
    if parameters is None:
        parameters = [c for c in columns if c not in measured]
    # Names become texts, so columns 1 and "1" would be one hyperparameter.
    if twice := dict.fromkeys(map(str, [*repeated(columns), *repeated(map(str, parameters))])):
        raise ValueError(f"The frame has more than one column {', '.join(map(repr, twice))}.")
    if absent := [c for c in [*parameters, *measured] if c not in columns]:
        raise ValueError(
            f"The frame has no column {', '.join(map(repr, absent))}; it has"
            f" {', '.join(map(str, columns))}."
        )
    if both := [c for c in parameters if c in measured]:
        raise ValueError(
            f"{', '.join(map(repr, both))} cannot be both a hyperparameter and a measured column:"
            " leave it out of parameters."
        )
    return list(parameters)


def _values(column: pd.Series[Any]) -> list[Any]:
    """The values (n,) of a column; a 32-bit float is read as it prints: 0.1, not 0.10000000149."""
    dtype: Any = column.dtype
    if str(dtype).startswith("Sparse"):  # its class is in pandas, which is not loaded here
        return _values(column.astype(dtype.subtype))
    if str(dtype) == "category" and dtype.categories.dtype.kind == "f":
        return _values(column.astype(dtype.categories.dtype))
    # pandas' nullable types have a kind and a size, too.
    if dtype.kind != "f" or dtype.itemsize >= 8:
        return column.tolist()
    known = column.to_numpy(dtype=f"f{dtype.itemsize}", na_value=math.nan)
    return [float(str(value)) for value in known]


def as_records(records: Iterable[TaskRecord]) -> list[TaskRecord]:
    """One record, or several, as a list. TypeError for anything else."""
    if isinstance(records, TaskRecord):
        return [records]
    # Anything that cannot be iterated is refused below.
    found = list(records) if isinstance(records, Iterable) else [records]
    if wrong := [record for record in found if not isinstance(record, TaskRecord)]:
        raise TypeError(f"records must be TaskRecords, such as store.records(), got {wrong[0]!r}.")
    return found


def float_column(frame: pd.DataFrame, name: str) -> FloatArray:
    """A column as floats, gaps as NaN, timedeltas in seconds.

    Raises:
        ValueError: For a column with anything else.
    """
    column = frame[name]
    if column.dtype.kind == "m":
        return np.asarray(column.to_numpy() / np.timedelta64(1, "s"), dtype=np.float64)
    if column.dtype.kind == "M":
        raise ValueError(f"Column {name!r} has dates; subtract the beginnings from the ends.")
    if column.dtype.kind == "c":  # ``as_floats`` raises; pandas would drop the imaginary parts
        return as_floats(column.to_numpy(), f"Column {name!r}")
    try:
        # Quick, and gaps of nullable columns become NaN.
        return column.to_numpy(dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        remedy = f"; pandas.to_numeric(frame[{name!r}], errors='coerce') makes the others NaN"
        return as_floats(column.tolist(), f"Column {name!r}", remedy)


def check_configuration(what: str, row: int, configuration: object) -> None:
    """Raise TypeError for a configuration that is not values by name."""
    if not isinstance(configuration, Mapping):
        raise TypeError(
            f"{what}: configurations are values by name, such as {{'C': 1.0}}; row {row} has"
            f" {configuration!r}."
        )
