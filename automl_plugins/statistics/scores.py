"""What is compared: scores of tasks x methods, with sentences on what was left out."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np

from automl_plugins.formats import format_number, join_names
from automl_plugins.statistics.runs import BoolArray, Notes, Runs, Unit, runs_of

if TYPE_CHECKING:
    import pandas as pd

ShortRuns = Literal["carry", "leave_out", "raise"]
SHORT_RUNS: tuple[ShortRuns, ...] = get_args(ShortRuns)


def wide_scores(frame: pd.DataFrame) -> tuple[pd.DataFrame, Notes]:
    """The complete tasks of a frame with a row for each task and a column for each method.

    Raises:
        ValueError: If a task or method occurs twice, a column is not numeric, or no task has a
            number for every method.
    """
    from pandas.api.types import is_complex_dtype, is_numeric_dtype

    for what, labels in (("task", frame.index), ("method", frame.columns)):
        if twice := list(labels[labels.duplicated()].unique()):
            raise ValueError(f"The {what}s must be unique; more than once: {join_names(twice)}.")
    strange = [
        name
        for name, dtype in frame.dtypes.items()
        if is_complex_dtype(dtype) or not is_numeric_dtype(dtype)
    ]
    if strange:
        raise ValueError(
            f"Columns that are not numeric: {join_names(strange)}. A wide frame has a column of"
            " numbers for each method and the tasks as its index; a tidy one has the columns"
            " table, method, seed and trial."
        )
    return _complete_tasks(frame.astype(np.float64), "value")


def tidy_scores(
    frame: pd.DataFrame, budgets: float | Iterable[float] | None, unit: Unit, short_runs: ShortRuns
) -> tuple[dict[float, pd.DataFrame], Notes]:
    """Regrets of searches, tasks x methods, by budget, means over the seeds; see ``compare``.

    Raises:
        ValueError: For illegal arguments, a frame that ``runs_of`` refuses, no task with runs of
            every method, or short runs where those are to raise.
    """
    import pandas as pd

    runs = runs_of(frame, unit)
    index = pd.Index(runs.tables, name="task", tupleize_cols=False)
    columns = pd.Index(runs.methods, name="method", tupleize_cols=False)
    one = np.ones((len(runs), 1))
    some = runs.mean_over_seeds(one, one[:, 0] > 0)[:, :, 0]
    has_all = np.isfinite(some.sum(axis=1))
    _, notes = _complete_tasks(pd.DataFrame(some, index, columns), "run")
    kept = has_all[runs.table]
    notes = (*runs.notes, *notes, *_seed_notes(runs, kept))
    if budgets is None:
        budgets, note = _common_budget(runs, kept, unit)
        notes = (*notes, note)
    points = sorted({float(b) for b in (budgets if isinstance(budgets, Iterable) else [budgets])})
    if not points or not all(0 < value < np.inf for value in points):
        raise ValueError(f"budgets must be positive and finite, got {budgets!r}.")
    regrets = runs.regret_at(np.array(points))
    matrices: dict[float, pd.DataFrame] = {}
    for budget, regret in zip(points, regrets.T, strict=True):
        where = f"At {format_number(budget)} {unit}: "
        use, short_notes = _long_enough(runs, kept, budget, short_runs, where)
        early = np.isnan(regret)
        means = runs.mean_over_seeds(np.where(early, 1.0, regret)[:, None], use)[:, :, 0]
        matrix = pd.DataFrame(means, index, columns).loc[has_all]
        matrices[budget], gap_notes = _complete_tasks(matrix, "run", where)
        notes = (*notes, *short_notes, *gap_notes)
        if (use & early).any():
            notes = (*notes, f"{where}no result yet, so regret 1: {_count(runs, use & early)}.")
    return matrices, notes


def _complete_tasks(
    matrix: pd.DataFrame, what: str, where: str = ""
) -> tuple[pd.DataFrame, Notes]:
    """The tasks without a NaN, and a sentence for each set of methods that others lack.

    ``what`` is missing in a cell; ``where`` begins the sentences.
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
    notes = sorted(
        f"{where}Left out, since there is no {what} of"
        f" {join_names(sorted(methods, key=str))}: {join_names(sorted(tasks, key=str))}."
        for methods, tasks in affected.items()
    )
    return matrix[~incomplete], tuple(notes)


def _seed_notes(runs: Runs, kept: BoolArray) -> Notes:
    """A sentence if methods do not have the same seeds on the same task."""
    pairs = np.stack([runs.table[kept], runs.seed[kept]])
    (table, _), count = np.unique(pairs, axis=1, return_counts=True)
    uneven = np.unique(table[count < len(runs.methods)])
    if not len(uneven):
        return ()
    # By name, here and below: the order of the rows must not decide what is said.
    first = min(uneven.tolist(), key=lambda i: str(runs.tables[i]))
    return (
        f"The methods do not have the same seeds on {len(uneven)} of {len(np.unique(table))}"
        f" tasks; first, {runs.tables[first]}, with these numbers of seeds:"
        f" {_count(runs, kept & (runs.table == first))}. Each mean is over the seeds that there"
        " are.",
    )


def _common_budget(runs: Runs, kept: BoolArray, unit: Unit) -> tuple[float, str]:
    if unit == "seconds":
        raise ValueError("budgets must be given when the unit is seconds.")
    longest = np.zeros((len(runs.tables), len(runs.methods)))
    np.maximum.at(longest, (runs.table, runs.method), runs.length)
    longest[np.setdiff1d(np.arange(len(longest)), runs.table[kept])] = np.inf
    budget = float(longest.min())
    table, method = min(
        np.argwhere(longest == budget).tolist(),
        key=lambda cell: (str(runs.tables[cell[0]]), str(runs.methods[cell[1]])),
    )
    return budget, (
        f"Budget: {format_number(budget)} trials, the most that every method has made on every"
        f" task ({runs.methods[method]} on {runs.tables[table]} made no more)."
    )


def _long_enough(
    runs: Runs, kept: BoolArray, budget: float, short_runs: ShortRuns, where: str
) -> tuple[BoolArray, Notes]:
    """Runs (r,) that count at a budget, and what is to be said of those that end before it."""
    short = kept & (runs.length < budget)
    if not short.any():
        return kept, ()
    found = f"{where}runs that end earlier: {_count(runs, short, lengths=True)}"
    if short_runs == "raise":
        raise ValueError(f"{found}. Choose smaller budgets, or short_runs='carry' or 'leave_out'.")
    if short_runs == "leave_out":
        return kept & ~short, (f"{found}; they are left out.",)
    return kept, (f"{found}; their last regret counts on.",)


def _count(runs: Runs, chosen: BoolArray, *, lengths: bool = False) -> str:
    """How many runs of which method are chosen, and how short the shortest is."""
    cases = []
    for i in np.unique(runs.method[chosen]):
        mine = chosen & (runs.method == i)
        shortest = f" (the shortest at {format_number(runs.length[mine].min())})"
        cases.append(f"{runs.methods[i]} {mine.sum()}{shortest * lengths}")
    return join_names(sorted(cases))
