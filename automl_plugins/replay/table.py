"""A table of recorded runs that answers what the result of a configuration would have been."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt
from ConfigSpace import Configuration, ConfigurationSpace
from scipy.spatial.distance import cdist

from automl_plugins.spaces.conditions import is_active
from automl_plugins.spaces.values import ABSENT, encoder, kind_of, reader, values_of
from automl_plugins.spaces.vector_space import VectorSpace

from .frames import arguments_of_searches, table_arguments

if TYPE_CHECKING:
    import pandas as pd

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Answer:
    """The recorded run that stands for a configuration.

    Attributes:
        row: Its row in the table.
        distance: 0 for the configuration itself; else the sum over hyperparameters of the
            difference on their own scale in [0, 1], 1 for another category.

    Example::

        answer = table.find({"C": 0.5, "depth": 3})
        print(table.config(answer.row), answer.distance)
    """

    row: int
    distance: float


class Table:
    """Recorded losses of configurations, and their seconds and learning curves where known.

    A configuration that was not recorded is answered by the nearest one that was.

    Args:
        name: What was tuned: the data set, the task.
        space: The search space. Its defaults and seed do not matter.
        configs: The n recorded configurations: values by name; inactive hyperparameters are
            absent, None or NaN; where None is a choice of the hyperparameter, it is one.
        losses: Losses (n,), to be minimised; NaN for a run that failed.
        seconds: Duration of each run (n,), or one number for all; None where unknown.
        curves: Losses (n, s) along each run, NaN from where a run has ended.
        steps: The steps (s,) of ``curves``, ascending: epochs, rows, rungs.
        curve_seconds: Seconds (n, s) from the start of a run to each step; None spreads
            ``seconds`` evenly over the steps.
        notes: What was assumed when the table was built, one sentence each: for reports.

    Raises:
        ValueError: For shapes that do not fit, configurations outside the space or recorded
            twice, negative seconds, or no finite loss at all.

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
        self.space = space
        self._vectors = VectorSpace(space)
        self._readers = {name: reader(space[name]) for name in space}
        self._encoders = {name: encoder(space[name]) for name in self._vectors.names}
        self._conditional = {name for name in space if space.parent_conditions_of[name]}
        self._values = [self._clean(row, config) for row, config in enumerate(configs)]
        self._measure(losses, seconds)
        self.steps, self.curves, self.curve_seconds = _learning_curves(
            self.name, len(self.losses), self.seconds, curves, steps, curve_seconds
        )
        self._rows = self._index()

    # --- how it is built ----------------------------------------------------------------------

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
            parameters: Columns of the hyperparameters; None takes all that nothing else names.
            space: The search space; None infers it, see ``infer_space``.
            seconds: Column of the durations.
            curves: Column of the loss at each step of the learning curve.
            curve_seconds: Column of the seconds from the start of the run to each step.
            maximize: Whether ``loss`` and ``curves`` are scores, larger is better.
            log: Numerical parameters on a log scale (for the inferred space); ``"auto"`` takes
                those whose values span decades, which ``notes`` of the table tell.
            grid: Numerical parameters that take their recorded values only.
            repeats: What to do with a configuration that was recorded more than once: None
                refuses, ``"mean"`` averages its loss, seconds and curve.
            none: Text that stands where the value of a hyperparameter is None, such as
                ``"none"``: a gap means that it was inactive. pandas reads "None" as a gap, unless
                it is read with ``keep_default_na=False, na_values=[""]``.

        Raises:
            ValueError: For unknown columns, or what ``Table`` refuses.
        """
        arguments = table_arguments(
            frame,
            loss=loss,
            parameters=parameters,
            space=space,
            seconds=seconds,
            curves=curves or {},
            curve_seconds=curve_seconds or {},
            maximize=maximize,
            log=log,
            grid=tuple(grid),
            repeats=repeats,
            none=none,
        )
        return cls(name, **arguments)

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

        Pruned trials are left out (they have no final loss), failed ones are kept as failed.

        Args:
            studies: One study or several, of any framework an adapter knows.
            name: Name of the table.
            space: The search space; None takes the one the adapter reads, else infers it.
            repeats: As in ``from_frame``.

        Raises:
            ValueError: If there is no complete trial, or for what ``Table`` refuses.
        """
        return cls(name, **arguments_of_searches(studies, space=space, repeats=repeats))

    def with_losses(
        self, name: str, losses: npt.ArrayLike, *, seconds: npt.ArrayLike | None = None
    ) -> Table:
        """The same configurations on another data set, without checking them again.

        Args:
            name: Name of the new table.
            losses: As for ``Table``.
            seconds: As for ``Table``.

        Raises:
            ValueError: As for ``Table``.
        """
        other = copy.copy(self)
        other.name = str(name)
        other.steps, other.curves, other.curve_seconds = (), None, None
        other._measure(losses, seconds)
        return other

    def _measure(self, losses: npt.ArrayLike, seconds: npt.ArrayLike | None) -> None:
        n = len(self._values)
        self.losses = _column(self.name, "losses", losses, n)
        self.seconds = None
        if seconds is not None:
            filled = np.broadcast_to(np.asarray(seconds, dtype=np.float64), (n,))
            self.seconds = _durations(self.name, "seconds", filled)
        if not np.isfinite(self.losses).any():
            raise ValueError(f"Table {self.name!r} has no finite loss in {n} rows.")

    def _clean(self, row: int, config: Mapping[str, Any]) -> tuple[Any, ...]:
        known = {k: v for k, v in config.items() if not self._is_absent(k, v)}
        if foreign := sorted(set(known) - set(self._vectors.names)):
            raise ValueError(
                f"Table {self.name!r}, row {row}: {', '.join(foreign)} not in the search space,"
                f" which has {', '.join(self._vectors.names)}."
            )
        try:
            values = {name: self._read(name, value) for name, value in known.items()}
        except ValueError as error:
            raise ValueError(f"Table {self.name!r}, row {row}: {error}") from None
        active: dict[str, Any] = {}
        for name in self._vectors.names:  # parents first
            if name in values and self._asks_for(name, active):
                active[name] = values[name]
        return tuple(active.get(name, ABSENT) for name in self._vectors.names)

    def _is_absent(self, name: str, value: Any) -> bool:
        """Whether a value says that a hyperparameter was inactive: NaN or None, if no choice."""
        if value is ABSENT:
            return True
        if kind_of(value) not in ("none", "missing"):
            return False
        return name not in self._readers or self._readers[name](value) is ABSENT

    def _read(self, name: str, value: Any) -> Any:
        if (found := self._readers[name](value)) is ABSENT:
            raise ValueError(f"{name}={value!r} is not a value of {self.space[name]}.")
        return found

    def _index(self) -> dict[tuple[Any, ...], int]:
        rows: dict[tuple[Any, ...], int] = {}
        for row, values in enumerate(self._values):
            first = rows.setdefault(_key(values), row)
            if first != row:
                raise ValueError(
                    f"Table {self.name!r}: rows {first} and {row} record one configuration,"
                    f" {self.config(row)}. Build it with repeats='mean' to average them."
                )
        return rows

    # --- what it knows ------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self.losses)

    def __repr__(self) -> str:
        return f"Table({self.name!r}, {len(self)} configurations of {len(self.space)} parameters)"

    @property
    def best(self) -> float:
        """The least recorded loss."""
        return float(np.nanmin(np.where(np.isinf(self.losses), np.nan, self.losses)))

    @property
    def worst(self) -> float:
        """The largest recorded loss that is finite."""
        return float(np.nanmax(np.where(np.isinf(self.losses), np.nan, self.losses)))

    @property
    def complete(self) -> bool:
        """Whether every configuration of the space was recorded, so that no answer is a guess."""
        # What forbidden clauses rule out is enumerated first.
        everything = self._vectors.enumerate(10 * len(self))
        if everything is None or len(everything) > len(self):
            return False
        return len(everything) == sum(self._is_configuration(v) for v in self._values)

    def _is_configuration(self, values: tuple[Any, ...]) -> bool:
        """Whether recorded values are all that is active, and not forbidden."""
        names = self._vectors.names
        config = {n: v for n, v in zip(names, values, strict=True) if v is not ABSENT}
        active = [n for n in names if self._asks_for(n, config)]
        if len(active) != len(config):
            return False
        return not any(
            clause.is_forbidden_value(config) for clause in self.space.forbidden_clauses
        )

    def _asks_for(self, name: str, values: Mapping[str, Any]) -> bool:
        return name not in self._conditional or is_active(self.space, name, values)

    def config(self, row: int) -> dict[str, Any]:
        """The active values recorded in a row."""
        pairs = zip(self._vectors.names, self._values[row], strict=True)
        return {name: value for name, value in pairs if value is not ABSENT}

    # --- what it answers ----------------------------------------------------------------------

    def find(self, config: Mapping[str, Any]) -> Answer:
        """The recorded run that stands for a configuration.

        Inactive values are ignored.

        Raises:
            ValueError: If an active hyperparameter has no value, or one outside its range.
        """
        if isinstance(config, Configuration):
            config = values_of(config)
        names, active = self._vectors.names, config
        # Conditions are slow, and an exact match needs none; True is no 1 (they are equal keys).
        row = self._rows.get(_key([config.get(name, ABSENT) for name in names]))
        if row is None:
            active = self._active(config)
            row = self._rows.get(_key([active.get(name, ABSENT) for name in names]))
        if row is not None:
            return Answer(row, 0.0)
        point = self._embed([active])
        distances = cdist(point, self._points, metric="cityblock")[0]
        row = int(distances.argmin())
        return Answer(row, float(distances[row]))

    def _active(self, config: Mapping[str, Any]) -> dict[str, Any]:
        """The active values of a configuration, checked."""
        active: dict[str, Any] = {}
        for name in self._vectors.names:  # parents first
            if not self._asks_for(name, active):
                continue
            value = config.get(name, ABSENT)
            if self._is_absent(name, value):
                raise ValueError(
                    f"The configuration {dict(config)} has no value for {name}, active there."
                )
            active[name] = self._read(name, value)
        return active

    def _embed(self, configs: Sequence[Mapping[str, Any]]) -> FloatArray:
        """Points (n, f) whose L1 distance is that of ``Answer``; inactive numbers count as 0.

        Two one-hot codes differ in two places, so half of each makes a distance of 1.
        """
        vectors = np.array(
            [
                [self._encoders[n](config[n]) if n in config else np.nan for n in self._encoders]
                for config in configs
            ]
        )
        numbers = self._vectors.numbers(vectors)
        numbers[np.isnan(numbers)] = 0.0
        codes = [0.5 * (vectors[:, [i]] == choices) for i, choices in self._categories]
        return np.hstack([np.zeros((len(configs), 1)), numbers, *codes])

    @cached_property
    def _categories(self) -> list[tuple[int, FloatArray]]:
        """Columns of the categorical hyperparameters, and their entries."""
        columns = np.flatnonzero(self._vectors.categorical).tolist()
        return [(i, np.arange(self._vectors.n_values[i])) for i in columns]

    @cached_property
    def _points(self) -> FloatArray:
        return self._embed([self.config(row) for row in range(len(self))])


def _key(values: Sequence[Any]) -> tuple[Any, ...]:
    """Values with whether each is a truth value, which would be equal to a number."""
    return (*values, *(isinstance(value, bool | np.bool_) for value in values))


# --- what was measured -----------------------------------------------------------------------


def _column(table: str, what: str, values: npt.ArrayLike, n: int) -> FloatArray:
    """A number for each of n configurations; errors name the table and ``what`` it is.

    Raises:
        ValueError: For another shape.
    """
    numbers = np.array(values, dtype=np.float64)
    if numbers.shape != (n,):
        raise ValueError(
            f"Table {table!r}: {what} has shape {numbers.shape} for {n} configurations."
        )
    return numbers


def _durations(table: str, what: str, values: FloatArray) -> FloatArray:
    """Seconds of any shape, NaN where unknown.

    Raises:
        ValueError: For negative or infinite ones.
    """
    wrong = np.argwhere(~(values >= 0) & ~np.isnan(values) | np.isinf(values))
    if len(wrong):
        place = tuple(int(i) for i in wrong[0])
        raise ValueError(
            f"Table {table!r}: {what} must be finite and >= 0, row {place[0]} has {values[place]}."
        )
    return np.array(values)


def _learning_curves(
    table: str,
    n: int,
    seconds: FloatArray | None,
    curves: npt.ArrayLike | None,
    steps: Sequence[float],
    curve_seconds: npt.ArrayLike | None,
) -> tuple[tuple[float, ...], FloatArray | None, FloatArray | None]:
    """Steps (s,), losses (n, s) and seconds (n, s) of the curves of n runs.

    Without ``curve_seconds`` the ``seconds`` (n,) of a run are spread evenly over its steps.

    Raises:
        ValueError: For shapes that do not fit, steps that do not ascend, or negative seconds.
    """
    if curves is None:
        if len(steps) or curve_seconds is not None:
            raise ValueError(f"Table {table!r} has steps or curve_seconds but no curves.")
        return (), None, None
    ascending = tuple(float(s) for s in steps)
    losses = np.array(curves, dtype=np.float64)
    shape = (n, len(ascending))
    if losses.shape != shape or not ascending:
        raise ValueError(
            f"Table {table!r}: curves has shape {losses.shape} for {shape[0]} runs and"
            f" {shape[1]} steps."
        )
    if any(b <= a for a, b in pairwise(ascending)):
        raise ValueError(f"Table {table!r}: steps must ascend, got {ascending}.")
    spent = None
    if curve_seconds is not None:
        spent = _durations(table, "curve_seconds", np.array(curve_seconds, dtype=np.float64))
        if spent.shape != shape:
            raise ValueError(f"Table {table!r}: curve_seconds has shape {spent.shape}.")
    elif seconds is not None:
        spent = seconds[:, None] * np.array(ascending) / ascending[-1]
    return ascending, losses, spent
