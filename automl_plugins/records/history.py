"""The observations of a search so far, as columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from automl_plugins.arrays import (
    FARTHEST,
    BoolArray,
    FloatArray,
    IntArray,
    check_seconds,
    check_shape,
    refuse_rows,
)
from automl_plugins.formats import format_count
from automl_plugins.records.trial import Columns, Status, count_statuses, known_seconds


@dataclass(frozen=True)
class History:
    """Observations of one search, finished ones first and in the order in which they finished.

    The first s finished rows never change as the history grows, so a model that was fitted on s
    rows can be fitted again, exactly, at any later time.

    Attributes:
        number: Identifiers of the rows (n,), unique.
        vectors: Configurations (n, d) in ConfigSpace's vector form; NaN = inactive, or missing.
            Values of an old range may lie outside the present one; they are clipped to
            +-``FARTHEST``, in widths of the present range.
        losses: Losses (n,), minimised; NaN where unknown, never infinite.
        seconds: Cost of each row (n,), > 0; NaN where unknown. A lower bound for pruned and
            running rows. Zeros become NaN, see ``known_seconds``.
        status: ``Status`` of each row (n,).
        budget: Budget or pruning step of each loss (n,); NaN where there is none.
        constraints: Constraint values (n, c); feasible iff all <= 0; NaN where unknown.
        curves: Intermediate losses by step, of each row (n,); empty where there are none.
        missing: Mask (n, d) of active parameters that the objective did not ask for, as in an
            evaluation that failed half-way. A running row may already have a proposed value there.
            ``of`` takes None for all False.

    Raises:
        ValueError: On construction, naming the column and the row that is wrong.
    """

    number: IntArray
    vectors: FloatArray
    losses: FloatArray
    seconds: FloatArray
    status: IntArray
    budget: FloatArray
    constraints: FloatArray
    curves: npt.NDArray[np.object_]
    missing: BoolArray

    def __post_init__(self) -> None:
        n = len(self.number)
        check_shape("vectors", self.vectors, n, "d")
        for name in ("losses", "seconds", "status", "budget", "curves"):
            check_shape(name, getattr(self, name), n)
        check_shape("constraints", self.constraints, n, "c")
        check_shape("missing", self.missing, *self.vectors.shape)
        self._refuse(np.isinf(self.vectors), "vectors", "must be finite or NaN")
        # After the check: clipping would turn an infinite value into a legal one.
        object.__setattr__(self, "vectors", np.clip(self.vectors, -FARTHEST, FARTHEST))
        self._refuse(np.isinf(self.losses), "losses", "must be finite or NaN (clip infinities)")
        check_seconds("seconds", self.seconds)
        object.__setattr__(self, "seconds", known_seconds(self.seconds))
        self._refuse(~np.isin(self.status, list(Status)), "status", "must be a Status")
        complete = self.status == Status.COMPLETE
        self._refuse(complete & np.isnan(self.losses), "losses", "of a COMPLETE row must be known")
        running = self.status == Status.RUNNING
        # ``first(n_finished)`` has to be all of the finished rows.
        followed = np.append(running[:-1] & ~running[1:], False)
        self._refuse(followed, "status", "of a RUNNING row must come last")
        repeated = np.ones(n, dtype=bool)
        repeated[np.unique(self.number, return_index=True)[1]] = False  # the first of each
        self._refuse(repeated, "number", "must be unique")

    def _refuse(self, wrong: BoolArray, column: str, rule: str) -> None:
        refuse_rows(column, getattr(self, column), wrong, rule)

    @classmethod
    def of(
        cls,
        vectors: Any,
        losses: Any,
        *,
        seconds: Any = None,
        status: Any = None,
        number: Any = None,
        budget: Any = None,
        constraints: Any = None,
        curves: Sequence[Mapping[float, float]] | None = None,
        missing: Any = None,
    ) -> History:
        """Build a history from array-likes; columns not given are unknown, rows COMPLETE."""
        vectors = np.asarray(vectors, dtype=np.float64)
        n = len(vectors)
        constraints = np.empty((n, 0)) if constraints is None else constraints
        missing = np.zeros(vectors.shape) if missing is None else missing
        curves = [{} for _ in range(n)] if curves is None else curves

        def column(values: Any, default: float) -> FloatArray:
            return np.full(n, default) if values is None else np.asarray(values, dtype=np.float64)

        return cls(
            number=np.arange(n) if number is None else np.asarray(number, dtype=np.int64),
            vectors=vectors,
            losses=column(losses, np.nan),
            seconds=column(seconds, np.nan),
            status=column(status, Status.COMPLETE).astype(np.int64),
            budget=column(budget, np.nan),
            constraints=np.asarray(constraints, dtype=np.float64),
            # np.array would try to convert the mappings.
            curves=np.fromiter(curves, dtype=object, count=len(curves)),
            missing=np.asarray(missing, dtype=bool),
        )

    @classmethod
    def of_trials(
        cls, *parts: Columns[Any], vectors: FloatArray, missing: BoolArray | None = None
    ) -> History:
        """The trials of all ``parts``, one part after the other, as a history.

        ``vectors`` (n, d) and ``missing`` (n, d) have one row for each trial, in the same order. A
        complete trial with a lower budget counts as pruned: its loss cannot be compared with
        losses at the full budget.
        """

        def column(name: str) -> FloatArray:
            return np.concatenate([part.facts(name) for part in parts])

        status, budget = column("status").astype(np.int64), column("budget")
        partial = (status == Status.COMPLETE) & ~np.isnan(budget)
        # Sorted: the order of a set of strings differs from process to process.
        names = sorted(set[str]().union(*(part.constraint_names for part in parts)))
        constraints = [np.concatenate([part.constraint(name) for part in parts]) for name in names]
        return cls.of(
            vectors,
            column("loss"),
            seconds=column("seconds"),
            status=np.where(partial, Status.PRUNED, status),
            number=column("number"),
            budget=budget,
            # Reshaped, as an empty list would have no second axis: (n, 0) is legal.
            constraints=np.array(constraints).reshape(len(names), len(vectors)).T,
            curves=[trial.curve for part in parts for trial in part],
            missing=missing,
        )

    def __len__(self) -> int:
        return len(self.number)

    def __repr__(self) -> str:
        size = format_count(self.vectors.shape[1], "parameter")
        return f"History({count_statuses(self.status)}; {size})"

    @property
    def n_finished(self) -> int:
        """Number of rows that are not RUNNING; they are the first ones."""
        return int((self.status != Status.RUNNING).sum())

    def first(self, n: int) -> History:
        """The history of the first ``n`` rows."""
        return self.rows(slice(n))

    def before(self, k: int) -> History:
        """The rows that a proposal for number ``k`` uses: finished ones, and running ones below k.

        Of two concurrent proposals only the higher number takes account of the other one, so a
        proposal never depends on the progress of higher numbers.
        """
        keep = (self.status != Status.RUNNING) | (self.number < k)
        return self if keep.all() else self.rows(keep)

    def rows(self, keep: BoolArray | slice) -> History:
        """The history of the rows in the mask (n,) or slice ``keep``."""
        part = object.__new__(History)  # rows of a valid history need no validation
        for name in self.__dataclass_fields__:
            object.__setattr__(part, name, getattr(self, name)[keep])
        return part

    @property
    def n_tried(self) -> IntArray:
        """Number of distinct values (d,) that the complete rows have in each column."""
        complete = self.vectors[self.status == Status.COMPLETE]
        counts = [len(np.unique(column[~np.isnan(column)])) for column in complete.T]
        return np.array(counts, dtype=np.int64)

    @property
    def feasible(self) -> BoolArray:
        """Rows (n,) whose known constraints are all <= 0."""
        return np.asarray(~(self.constraints > 0).any(axis=1))  # NaN is not above 0
