"""Scores of searches at budgets: which runs count, and their means over the seeds."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np

from automl_plugins.statistics.ranks import BoolArray, FloatArray
from automl_plugins.statistics.runs import Runs, Unit, runs_of
from automl_plugins.statistics.scores import Scores, complete_tasks, listed, number

if TYPE_CHECKING:
    import pandas as pd

ShortRuns = Literal["carry", "leave_out", "raise"]
SHORT_RUNS: tuple[ShortRuns, ...] = get_args(ShortRuns)


def tidy_scores(
    frame: pd.DataFrame,
    *,
    budgets: float | Iterable[float] | None = None,
    unit: Unit = "trials",
    short_runs: ShortRuns = "carry",
) -> Scores:
    """Regrets at budgets, as tasks x methods frames of the means over the seeds.

    Args:
        frame: A tidy frame of searches, see ``runs_of``.
        budgets: One budget or several; None is the largest number of trials that every method
            has reached on every task with at least one seed.
        unit: Unit of the budgets.
        short_runs: What to do with runs that end before a budget. ``"carry"`` lets their last
            regret count on, ``"leave_out"`` leaves them out, ``"raise"`` raises a ``ValueError``.

    Raises:
        ValueError: For illegal arguments, a frame that ``runs_of`` refuses, no task with runs of
            every method, or short runs where those are to raise.
    """
    runs = runs_of(frame, unit)
    counts = _matrix(runs, np.ones(len(runs.first)), np.ones(len(runs.first), dtype=np.bool_))
    _, notes = complete_tasks(counts, "run")
    has_all = counts.notna().all(axis=1).to_numpy()
    kept = has_all[runs.table]
    notes = (*runs.notes, *notes, *_seed_notes(runs, kept))
    if budgets is None:
        budgets, note = _common_budget(runs, kept, unit)
        notes = (*notes, note)
    matrices: dict[float | None, pd.DataFrame] = {}
    for budget in _checked_budgets(budgets):
        where = f"At {number(budget)} {unit}: "
        use, short_notes = _long_enough(runs, kept, budget, short_runs, where)
        regret = runs.regret_at(budget)
        early = use & np.isnan(regret)
        matrix = _matrix(runs, np.where(np.isnan(regret), 1.0, regret), use)
        matrices[budget], gap_notes = complete_tasks(matrix[has_all], "run", where)
        notes = (*notes, *short_notes, *gap_notes)
        if early.any():
            notes = (*notes, f"{where}no result yet, so regret 1: {_count(runs, early)}.")
    return Scores(matrices, normalised=True, notes=notes)


def _matrix(runs: Runs, values: FloatArray, use: BoolArray) -> pd.DataFrame:
    """Means of the used runs, tasks x methods; NaN where there is none.

    Values are sorted before they are added, so that the order of the seeds cannot part methods
    that tie.
    """
    import pandas as pd

    shape = len(runs.tables), len(runs.methods)
    cell = runs.table[use] * shape[1] + runs.method[use]
    order = np.lexsort((values[use], cell))
    size = np.bincount(cell, minlength=shape[0] * shape[1])
    full = np.flatnonzero(size)
    mean = np.full(len(size), np.nan)
    if len(full):
        first = np.cumsum(size[full]) - size[full]
        mean[full] = np.add.reduceat(values[use][order], first) / size[full]
    index = pd.Index(runs.tables, name="task", tupleize_cols=False)
    columns = pd.Index(runs.methods, name="method", tupleize_cols=False)
    return pd.DataFrame(mean.reshape(shape), index=index, columns=columns)


def _seed_notes(runs: Runs, kept: BoolArray) -> tuple[str, ...]:
    """A sentence if methods do not have the same seeds on the same task."""
    pairs = np.stack([runs.table[kept], runs.seed[kept]])
    (table, _), count = np.unique(pairs, axis=1, return_counts=True)
    uneven = np.unique(table[count < len(runs.methods)])
    if not len(uneven):
        return ()
    # By name, here and below: the order of the rows must not decide what is said.
    first = min(uneven.tolist(), key=lambda i: str(runs.tables[i]))
    here = np.bincount(runs.method[kept & (runs.table == first)], minlength=len(runs.methods))
    cases = ", ".join(sorted(f"{m} {n}" for m, n in zip(runs.methods, here, strict=True)))
    return (
        f"The methods do not have the same seeds on {len(uneven)} of {len(np.unique(table))}"
        f" tasks; first, {runs.tables[first]}, with these numbers of seeds: {cases}. Each mean"
        " is over the seeds that there are.",
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
        f"Budget: {number(budget)} trials, the most that every method has made on every task"
        f" ({runs.methods[method]} on {runs.tables[table]} made no more)."
    )


def _checked_budgets(budgets: float | Iterable[float]) -> list[float]:
    values = sorted({float(b) for b in (budgets if isinstance(budgets, Iterable) else [budgets])})
    if not values or not all(0 < value < np.inf for value in values):
        raise ValueError(f"budgets must be positive and finite, got {budgets!r}.")
    return values


def _long_enough(
    runs: Runs, kept: BoolArray, budget: float, short_runs: ShortRuns, where: str
) -> tuple[BoolArray, tuple[str, ...]]:
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
        shortest = f" (the shortest at {number(runs.length[mine].min())})" if lengths else ""
        cases.append(f"{runs.methods[i]} {mine.sum()}{shortest}")
    return listed(sorted(cases))
