"""A table of recorded runs that looks up the result of a configuration."""

from __future__ import annotations

import copy
import hashlib
import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt
from ConfigSpace import ConfigurationSpace

from automl_plugins._arguments import check_flag, check_kind, repeated
from automl_plugins.arrays import (
    BoolArray,
    FloatArray,
    IntArray,
    as_floats,
    check_seconds,
    check_shape,
)
from automl_plugins.formats import format_count
from automl_plugins.frameworks import searches_of
from automl_plugins.records.task_record import float_column, parameter_columns
from automl_plugins.records.trial import violates
from automl_plugins.replay.frames import cells_of, check_values, frame_of, infer_space
from automl_plugins.replay.lookup import Answer, RecordedConfigurations
from automl_plugins.spaces.choices import ENCODERS

if TYPE_CHECKING:
    import pandas as pd


class Table:
    """Recorded losses of configurations, and their seconds and learning curves where known.

    A configuration that was not recorded is answered by the nearest one that was.

    Args:
        name: Name of the data set or task.
        space: The search space. Its defaults and seed do not matter.
        configs: The n recorded configurations: values by name; inactive hyperparameters are
            absent, NaN, or None unless None is one of their choices.
        losses: Losses (n,), to be minimised; NaN for a run that failed.
        seconds: Duration of each run (n,), or one number for all; None if unknown. If some are
            NaN, the median of the others replaces them.
        curves: Losses (n, s) along each run, NaN from where a run has ended.
        steps: The steps (s,) of ``curves``, ascending: epochs, rows, rungs.
        curve_seconds: Seconds (n, s) from the start of a run to each step; None spreads
            ``seconds`` evenly over the steps. If the first step is 0 or less, the run begins as
            long before it as the second step is after it.
        notes: Assumptions made when the table was built, one sentence each, for reports.

    Raises:
        ValueError: For shapes that do not fit, configurations outside the space or recorded
            twice, steps that do not ascend, negative or infinite seconds, or no finite loss.
        TypeError: For a configuration that is not values by name.

    Example::

        table = Table("iris", space, [{"C": 0.1}, {"C": 1.0}], losses=[0.3, 0.2], seconds=1.5)
        print(replay(optimizer(RandomSampler()), table, budget=2))
    """

    def __init__(
        self,
        name: str,
        space: ConfigurationSpace,
        configs: Sequence[Mapping[str, Any]],
        losses: npt.ArrayLike,
        *,
        seconds: npt.ArrayLike | None = None,
        curves: npt.ArrayLike | None = None,
        steps: Sequence[float] = (),
        curve_seconds: npt.ArrayLike | None = None,
        notes: Sequence[str] = (),
    ) -> None:
        self.name = str(name)
        self.notes = tuple(notes)
        self._about_runs: tuple[str, ...] = ()  # the notes that do not hold for other losses
        self.space = space
        self._recorded = RecordedConfigurations(f"Table {self.name!r}", space, configs)
        self._set_losses(losses, seconds)
        self._set_curves(curves, steps, curve_seconds)  # which spread the seconds

    # --- construction -------------------------------------------------------------------------

    @classmethod
    def from_frame(
        cls,
        frame: pd.DataFrame,
        *,
        name: str,
        loss: str,
        parameters: Sequence[str] | None = None,
        space: ConfigurationSpace | None = None,
        seconds: str | None = None,
        curves: Mapping[float, str] | None = None,
        curve_seconds: Mapping[float, str] | None = None,
        maximize: bool = False,
        log: Iterable[str] | Literal["auto"] = "auto",
        grid: Iterable[str] = (),
        repeats: str | None = None,
        none: str | None = None,
    ) -> Table:
        """A table from a data frame with a row for each recorded run.

        Args:
            frame: The recorded runs.
            name: Name of the table.
            loss: Column of the loss; NaN for a run that failed.
            parameters: Columns of the hyperparameters; None takes all that no other argument
                names.
            space: The search space; None infers it, see ``infer_space``.
            seconds: Column of the durations.
            curves: Column of the loss at each step of the learning curve.
            curve_seconds: Column of the seconds from the start of the run to each step.
            maximize: Whether ``loss`` and ``curves`` are scores, larger is better.
            log: Numerical parameters on a log scale (for the inferred space); ``"auto"`` takes
                those whose values span decades, and lists them in ``notes`` of the table.
            grid: Numerical parameters that take their recorded values only.
            repeats: What to do with a configuration that was recorded more than once: None
                raises an error, ``"mean"`` averages the losses, seconds and curves of its runs
                that did not fail. It counts as failed if at least half of its runs failed.
            none: Text that stands for the value None of a hyperparameter, such as ``"none"``: a
                gap means that it was inactive. pandas reads "None" as a gap unless the file is
                read with ``keep_default_na=False, na_values=[""]``.

        Raises:
            ValueError: For unknown columns, or any error of ``Table``.
            TypeError: For an argument of another kind.
        """
        if repeats not in (None, "mean"):
            raise ValueError(f"repeats must be None or 'mean', got {repeats!r}.")
        check_flag("maximize", maximize)
        check_kind("space", space, ConfigurationSpace | None, "a ConfigurationSpace or None")
        for argument, column in (("loss", loss), ("seconds", seconds)):
            check_kind(argument, column, Hashable, "the name of a column")
        curves = _by_step("curves", curves or {})
        curve_seconds = _by_step("curve_seconds", curve_seconds or {})
        if curve_seconds and set(curve_seconds) != set(curves):
            raise ValueError("curve_seconds must name the same steps as curves.")
        measured = [loss, *([] if seconds is None else [seconds])]
        measured += [*curves.values(), *curve_seconds.values()]
        measured = list(dict.fromkeys(measured))  # the last step of a curve is the loss
        names = parameter_columns(frame, parameters, measured)
        check_values(frame[names])
        notes: tuple[str, ...] = ()
        if space is None:
            space, cells, notes = infer_space(frame[names], log=log, grid=grid, none=none)
        else:
            cells = cells_of(frame[names], none)
        if foreign := sorted(set(cells) - set(space)):
            raise ValueError(
                f"{', '.join(foreign)} not in the search space, which has {', '.join(space)}: name"
                " the parameters= or leave these columns out."
            )
        # Without columns ``zip`` would make no rows; each run has an empty configuration.
        rows = zip(*cells.values(), strict=True) if cells else [()] * len(frame)
        configs = [dict(zip(cells, row, strict=True)) for row in rows]
        averaged: list[str] = []
        if repeats == "mean":
            first = RecordedConfigurations(f"Table {name!r}", space, configs, repeats=True).first
            configs = [configs[row] for row in np.unique(first)]
            frame = frame[measured].copy()  # the user's frame is not changed
            for column in measured:
                frame[column] = float_column(frame, column)
            frame, averaged = _average(frame, loss, first)
        sign = -1.0 if maximize else 1.0
        steps = sorted(curves)

        def numbers(columns: Iterable[str]) -> FloatArray:
            return np.column_stack([float_column(frame, column) for column in columns])

        table = cls(
            name,
            space,
            configs,
            sign * float_column(frame, loss),
            seconds=None if seconds is None else float_column(frame, seconds),
            curves=sign * numbers([curves[s] for s in steps]) if steps else None,
            steps=steps,
            curve_seconds=numbers([curve_seconds[s] for s in steps]) if curve_seconds else None,
            notes=notes,
        )
        # Not by notes=: this note is about the runs, and does not hold for other losses.
        table._note(*averaged)
        return table

    @classmethod
    def from_studies(
        cls,
        studies: Any,
        *,
        name: str,
        space: ConfigurationSpace | None = None,
        repeats: str | None = "mean",
    ) -> Table:
        """A table from the finished trials of studies, run histories or trials of one problem.

        Pruned trials and trials at a lower budget are left out (they have no final loss). Trials
        that failed or violate a constraint count as failed; ``notes`` say how many violate one,
        and whether some studies were maximised and others minimised.

        Args:
            studies: One study or several, of any framework with an adapter.
            name: Name of the table.
            space: The search space; None takes the one that the adapter reads, or infers it.
            repeats: As in ``from_frame``.

        Raises:
            ValueError: If there is no complete trial, or for any error of ``Table``.
        """
        studies = studies if isinstance(studies, list | tuple) else [studies]
        # Placeholders: without labels, the name of a study would have to give table and method.
        labels = {"table": "", "method": "", "seed": 0}
        searches = [search for study in studies for search in searches_of(study, **labels)]
        trials = [trial for search in searches for trial in search.trials]
        known = frame_of(trials)
        if space is None:
            space = next((s.space for s in searches if s.space is not None), None)
        table = cls.from_frame(name=name, space=space, repeats=repeats, **known)
        if n := sum(map(violates, trials)):
            table._note(f"{n} of {len(trials)} trials violate a constraint: they count as failed.")
        if len({search.maximized for search in searches}) > 1:
            table._note(
                "Some studies were maximised and others minimised, so they are on one scale only"
                " if the others minimised the negated score."
            )
        return table

    def digest(self) -> str:
        """A hash of the recorded data and the search space; its defaults do not count."""
        found = hashlib.blake2b(digest_size=16)
        recorded = (self.losses, self.seconds, self.curves, self.curve_seconds)
        # As Python's numbers: how NumPy writes its own depends on its version.
        arrays = [None if array is None else array.tolist() for array in recorded]
        space = self.space.to_serialized_dict(ENCODERS)
        for hyperparameter in space["hyperparameters"]:
            hyperparameter.pop("default_value", None)
        parts = [space[name] for name in ("hyperparameters", "conditions", "forbiddens")]
        found.update(repr((parts, self._recorded.values, self.steps, arrays)).encode())
        return found.hexdigest()

    def with_losses(
        self, name: str, losses: npt.ArrayLike, *, seconds: npt.ArrayLike | None = None
    ) -> Table:
        """A table of the same configurations on another data set; they are not checked again.

        Arguments and errors are those of ``Table``. Notes on the search space stay.
        """
        other = copy.copy(self)  # the recorded configurations are shared
        other.name = str(name)
        other.notes = tuple(note for note in self.notes if note not in self._about_runs)
        other._about_runs = ()
        other.steps, other.curves, other.curve_seconds = (), None, None
        other._set_losses(losses, seconds)
        return other

    def _set_losses(self, losses: npt.ArrayLike, seconds: npt.ArrayLike | None) -> None:
        n = len(self._recorded)
        self.losses = self._numbers("losses", losses, n)
        self.seconds = None
        if seconds is not None:
            seconds = as_floats(seconds, f"Table {self.name!r}: seconds")
            if not seconds.ndim:
                seconds = np.full(n, seconds)
            self.seconds = self._complete(self._seconds("seconds", seconds, n))
        if not np.isfinite(self.losses).any():
            raise ValueError(f"Table {self.name!r} has no finite loss in {n} rows.")

    def _numbers(self, what: str, values: npt.ArrayLike, *shape: int) -> FloatArray:
        """A copy of an array that must have this shape."""
        found = as_floats(values, f"Table {self.name!r}: {what}")
        check_shape(f"Table {self.name!r}: {what}", found, *shape)
        return found

    def _seconds(self, what: str, values: npt.ArrayLike, *shape: int) -> FloatArray:
        found = self._numbers(what, values, *shape)
        check_seconds(f"Table {self.name!r}: {what}", found)
        return found

    def _complete(self, seconds: FloatArray) -> FloatArray | None:
        """Replace unknown seconds (n,), which would be free, by the median; None if all are."""
        unknown = np.isnan(seconds)
        if unknown.all():
            return None
        if unknown.any():
            # In place: ``_numbers`` has copied what was given.
            seconds[unknown] = median = float(np.median(seconds[~unknown]))
            self._note(
                f"{unknown.sum()} of {len(seconds)} runs have no seconds: they take {median:g} s,"
                " the median of the others."
            )
        return seconds

    def _set_curves(
        self,
        curves: npt.ArrayLike | None,
        steps: Sequence[float],
        curve_seconds: npt.ArrayLike | None,
    ) -> None:
        self.steps = tuple(float(s) for s in steps)
        self.curves: FloatArray | None = None
        self.curve_seconds: FloatArray | None = None
        if curves is None:
            if self.steps or curve_seconds is not None:
                raise ValueError(f"Table {self.name!r} has steps or curve_seconds but no curves.")
            return
        if not self.steps:
            raise ValueError(f"Table {self.name!r} has curves but no steps.")
        shape = (len(self), len(self.steps))
        self.curves = self._numbers("curves", curves, *shape)
        ascend = all(a < b for a, b in pairwise(self.steps))
        if not ascend or not all(map(math.isfinite, self.steps)):
            raise ValueError(
                f"Table {self.name!r}: steps must ascend and be finite, got {self.steps}."
            )
        if curve_seconds is not None:
            self.curve_seconds = self._seconds("curve_seconds", curve_seconds, *shape)
            self._complete_curve_seconds(self.curve_seconds, ~np.isnan(self.curves))
        elif self.seconds is not None:
            self.curve_seconds = self._evenly(self.seconds)

    def _evenly(self, seconds: FloatArray) -> FloatArray:
        """Seconds (n, s) from the start of each run to each step, see ``share_at``."""
        return np.outer(seconds, [share_at(self.steps, k) for k in range(len(self.steps))])

    def _complete_curve_seconds(self, spent: FloatArray, reported: BoolArray) -> None:
        """Fill in unknown seconds (n, s), which would be free; note how many losses had none."""
        unknown = np.isnan(spent)
        if not unknown.any():
            return
        # Without seconds a run takes one unit of time, as on the simulated clock.
        whole = np.ones(len(spent)) if self.seconds is None else self.seconds
        spent[unknown] = self._evenly(whole)[unknown]
        if n := int((unknown & reported).sum()):
            self._note(
                f"{n} of {reported.sum()} losses of curves have no seconds: their steps share"
                " those of the run evenly."
            )

    def _note(self, *notes: str) -> None:
        """Add notes on the recorded runs."""
        self._about_runs = (*self._about_runs, *notes)
        self.notes = tuple(dict.fromkeys([*self.notes, *notes]))

    # --- contents -----------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self.losses)

    def __repr__(self) -> str:
        size = format_count(len(self), "configuration")
        return f"Table({self.name!r}, {size} of {format_count(len(self.space), 'parameter')})"

    @property
    def best(self) -> float:
        """The least recorded loss."""
        return float(self.losses[np.isfinite(self.losses)].min())

    @property
    def worst(self) -> float:
        """The largest recorded loss that is finite."""
        return float(self.losses[np.isfinite(self.losses)].max())

    @property
    def complete(self) -> bool:
        """Whether every configuration of the space was recorded, so that every answer is exact."""
        return self._recorded.complete

    def config(self, row: int) -> dict[str, Any]:
        """The active values recorded in a row."""
        return self._recorded.config(row)

    def find(self, config: Mapping[str, Any]) -> Answer:
        """The recorded run of a configuration, or of the nearest one if it was not recorded.

        Inactive values are ignored.

        Raises:
            ValueError: If an active hyperparameter has no value or an illegal one.
        """
        return self._recorded.find(config)


def notes_of(tables: Sequence[Table]) -> list[str]:
    """The notes of the tables: each note once, with the names of its tables."""
    assumed: dict[str, list[str]] = {}
    for table in tables:
        for note in table.notes:
            assumed.setdefault(note, []).append(table.name)
    notes = []
    for note, names in assumed.items():
        more = f" and {len(names) - 3} more" if len(names) > 3 else ""
        notes.append(f"Table {', '.join(names[:3])}{more}: {note}")
    return notes


def share_at(steps: Sequence[float], k: int) -> float:
    """The share in (0, 1] of a run that has passed at the k-th of its ascending ``steps``.

    It is steps[k] / steps[-1]. If the first step is 0 or less, the run begins as long before it as
    the second step is after it: otherwise the first of the epochs 0, 1, ... would be free.
    """
    if len(steps) == 1:
        return 1.0
    begin = 0.0 if steps[0] > 0 else 2.0 * steps[0] - steps[1]
    return (steps[k] - begin) / (steps[-1] - begin)


def _by_step(argument: str, columns: Mapping[float, str]) -> dict[float, str]:
    check_kind(argument, columns, Mapping, "names of columns by step")
    try:
        steps = [float(step) for step in columns]
    except (TypeError, ValueError) as error:
        raise ValueError(f"{argument}: a step must be a number: {error}.") from None
    if twice := repeated(steps):
        raise ValueError(f"{argument} has several columns of step {twice[0]:g}.")
    return dict(zip(steps, columns.values(), strict=True))


def _average(frame: pd.DataFrame, loss: str, first: IntArray) -> tuple[pd.DataFrame, list[str]]:
    """The mean of each configuration's runs, see ``repeats`` of ``Table.from_frame``; and notes.

    ``first`` (n,) is the row in which each row's configuration occurs first; means are sorted by
    it.
    """
    failed = ~np.isfinite(frame[loss])
    share = failed.groupby(first).transform("mean")
    # A configuration that counts as failed keeps its rows, so that it stays in the table.
    counts = ~failed | (share >= 0.5)
    # Groups come in ascending order of their first rows, as ``np.unique(first)`` does.
    means = frame[counts].groupby(first[counts]).mean()
    by_configuration = share.groupby(first).first()
    means.loc[by_configuration >= 0.5, loss] = np.nan
    n = int(((by_configuration > 0.0) & (by_configuration < 1.0)).sum())
    if not n:
        return means, []
    return means, [
        f"{n} of {len(means)} configurations failed in some of their runs: in at least half of"
        " them, so they count as failed; in fewer, so the others are averaged."
    ]
