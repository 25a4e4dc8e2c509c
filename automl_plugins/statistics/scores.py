"""Matrices of scores that are ready to be compared, with sentences on what was left out."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class Scores:
    """What is compared, at one budget or several.

    Attributes:
        matrices: A complete tasks x methods frame by budget; the one of a wide frame has the
            budget None.
        normalised: Whether the scores are regrets already, whose mean is the ADTM.
        notes: What was left out and why, and how the scores came about.
    """

    matrices: dict[float | None, pd.DataFrame]
    normalised: bool
    notes: tuple[str, ...]


def wide_scores(frame: pd.DataFrame) -> Scores:
    """Scores of a frame with a row for each task and a column for each method.

    Raises:
        ValueError: If a task or method occurs twice, a column is not numeric, or no task has a
            number for every method.
    """
    from pandas.api.types import is_complex_dtype, is_numeric_dtype

    for what, labels in (("task", frame.index), ("method", frame.columns)):
        if twice := list(labels[labels.duplicated()].unique()):
            raise ValueError(f"The {what}s must be unique; more than once: {listed(twice)}.")
    strange = [
        name
        for name, dtype in frame.dtypes.items()
        if is_complex_dtype(dtype) or not is_numeric_dtype(dtype)
    ]
    if strange:
        raise ValueError(
            f"Columns that are not numeric: {listed(strange)}. A wide frame has a column of"
            " numbers for each method and the tasks as its index; a tidy one has the columns"
            " table, method, seed and trial."
        )
    numbers = frame.astype(np.float64)
    complete, notes = complete_tasks(numbers, "value")
    return Scores({None: complete}, normalised=False, notes=notes)


def complete_tasks(
    matrix: pd.DataFrame, what: str, where: str = ""
) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """The tasks without a NaN, and a sentence for each set of methods that others lack.

    Args:
        matrix: Tasks x methods, NaN = missing.
        what: What is missing in a cell, in the singular.
        where: Start of the sentences, such as the budget.

    Raises:
        ValueError: If no task is left; it names the methods with the most gaps.
    """
    gaps = matrix.isna()
    incomplete = gaps.any(axis=1)
    if incomplete.all():
        counts = gaps.sum().sort_values(ascending=False, kind="stable")
        worst = [f"{name} (lacks {n} of {len(gaps)})" for name, n in counts.items() if n]
        detail = f"; most gaps: {', '.join(worst[:5])}. Compare without them" if worst else ""
        raise ValueError(f"{where}No task has a {what} of every method{detail}.")
    affected: dict[tuple[Hashable, ...], list[Hashable]] = {}
    for task, row in zip(matrix.index[incomplete], gaps[incomplete].to_numpy(), strict=True):
        affected.setdefault(tuple(matrix.columns[row]), []).append(task)
    # Sorted, so that the notes of shuffled rows are the same.
    notes = tuple(
        sorted(
            f"{where}Left out, since there is no {what} of {listed(sorted(methods, key=str))}:"
            f" {listed(sorted(tasks, key=str))}."
            for methods, tasks in affected.items()
        )
    )
    return matrix[~incomplete], notes


def listed(labels: Iterable[Hashable]) -> str:
    """The labels, separated by commas."""
    return ", ".join(map(str, labels))


def number(value: float) -> str:
    """A budget without superfluous digits, but with all others."""
    return f"{value:.15g}"
