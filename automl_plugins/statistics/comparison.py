"""``compare``: from any data with methods and tasks to a ``Comparison``."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from itertools import combinations
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from automl_plugins._arguments import check_choice, check_flag
from automl_plugins._imports import require
from automl_plugins.arrays import BoolArray, FloatArray
from automl_plugins.formats import format_budget, format_count, format_number, join_names
from automl_plugins.records.trial import as_number
from automl_plugins.statistics.results import BudgetComparison, Comparison
from automl_plugins.statistics.runs import UNITS, Label, Notes, Runs, Unit, runs_of, searches_frame
from automl_plugins.statistics.significance import (
    ZERO_METHODS,
    ZeroMethod,
    average_ranks,
    differences,
    distance_to_minimum,
    finner,
    iman_davenport,
    wilcoxon_pairs,
)

if TYPE_CHECKING:
    import pandas as pd

_ZEROS: dict[ZeroMethod, str] = {
    "zsplit": "are ranked and give each side half of their ranks",
    "pratt": "are ranked, then dropped",
    "wilcox": "are dropped before the ranking",
}

# Columns of a wide frame that are no methods, whatever numbers they hold.
_TASK_COLUMNS = ("task", "task_id", "dataset", "dataset_id", "data_id", "table")

ShortRuns = Literal["carry", "leave_out", "raise"]
SHORT_RUNS: tuple[ShortRuns, ...] = get_args(ShortRuns)


def compare(
    data: pd.DataFrame | Mapping[Label, Any] | Iterable[Any],
    *,
    control: Hashable | None = None,
    budgets: float | Iterable[float] | None = None,
    unit: Unit = "trials",
    higher_is_better: bool = False,
    zero_method: ZeroMethod = "zsplit",
    alpha: float = 0.05,
    short_runs: ShortRuns = "carry",
    label: Callable[[Any], Label] | None = None,
) -> Comparison:
    """Compare methods over tasks: ranks, Iman-Davenport, and Wilcoxon adjusted by Finner.

    Nothing is left out silently: the ``notes`` of the result list what was left out, and why.

    Args:
        data: What to compare, one of

            * a frame of numbers with a row for each task and a column for each method, on scales
              whose differences can be compared between tasks;
            * a tidy frame of searches with the columns table, method, seed, trial and one of
              regret, best and loss, as ``replay`` returns it, with notes in ``attrs["notes"]``;
            * searches or the objects of a framework, such as Optuna studies: a sequence of them,
              or a mapping from (task, method) or (task, method, seed) to them.
        control: Method that all others are compared with; None compares all pairs.
        budgets: One budget or several at which searches are compared; None takes the largest
            number of trials that every method has reached on every task.
        unit: Unit of the budgets. A run in seconds is as long as the time at which its last
            evaluation finished.
        higher_is_better: Whether the numbers of a frame of tasks x methods are to be maximised;
            losses of searches are always minimised.
        zero_method: How Wilcoxon's test treats tasks on which a pair ties, see
            ``wilcoxon_pairs``.
        alpha: A pair is different if its adjusted p-value is at most this.
        short_runs: What to do with runs that end before a budget: ``"carry"`` keeps their last
            regret, ``"leave_out"`` leaves them out, ``"raise"`` raises a ``ValueError``.
        label: Returns (task, method) or (task, method, seed) for an object in a sequence.

    Raises:
        ValueError: For data that cannot be compared, or arguments that do not fit them.
        TypeError: For objects that no adapter knows, or ``higher_is_better`` that is no bool.
    """
    check_choice("unit", unit, UNITS)
    check_flag("higher_is_better", higher_is_better)
    check_choice("short_runs", short_runs, SHORT_RUNS)
    check_choice("zero_method", zero_method, ZERO_METHODS)
    if not 0 < as_number(alpha) < 1:
        raise ValueError(f"alpha must be in (0, 1), got {alpha!r}.")
    frame, notes = _read_frame(data, label)
    matrices, score_notes = _score_matrices(frame, budgets, unit, short_runs, higher_is_better)
    wide = None in matrices
    methods = tuple(next(iter(matrices.values())).columns)
    if len(methods) < 2:
        raise ValueError(f"compare needs two methods, got {join_names(methods) or 'none'}.")
    if control is not None and control not in methods:
        raise ValueError(f"control {control!r} is not one of the methods: {join_names(methods)}.")
    results = tuple(
        _compare_at(
            budget,
            matrix,
            # Regrets of searches are scaled to [0, 1] already.
            distance=distance_to_minimum if wide else np.asarray,
            control=control,
            sign=-1.0 if higher_is_better else 1.0,
            zero_method=zero_method,
            alpha=alpha,
        )
        for budget, matrix in matrices.items()
    )
    notes = (*notes, *score_notes)
    if len(methods) == 2:
        notes += ("Friedman's test needs three methods; two have Wilcoxon's alone.",)
    for result in results:
        where = "" if result.budget is None else f"At {format_budget(result.budget, unit)}: "
        notes += tuple(where + sentence for sentence in _remarks(result, alpha))
    ties = f"tasks on which a pair ties {_ZEROS[zero_method]}"
    return Comparison(
        methods=methods,
        control=control,
        unit=None if wide else unit,
        alpha=alpha,
        notes=(*notes, f"Wilcoxon's test, {zero_method}: {ties}."),
        budgets=results,
    )


def _read_frame(data: Any, label: Callable[[Any], Label] | None) -> tuple[pd.DataFrame, Notes]:
    """The data of ``compare`` as a wide or tidy frame, and notes on them."""
    require("pandas", needed_by="automl_plugins.statistics", extra="evidence")
    import pandas as pd

    if not isinstance(data, pd.DataFrame):
        return searches_frame(data, label)
    if label is not None:
        raise ValueError("label names the objects of a sequence; a frame has names already.")
    return data, tuple(map(str, data.attrs.get("notes", ())))


def _score_matrices(
    frame: pd.DataFrame,
    budgets: float | Iterable[float] | None,
    unit: Unit,
    short_runs: ShortRuns,
    higher_is_better: bool,
) -> tuple[dict[Any, pd.DataFrame], Notes]:
    """Scores, tasks x methods, by budget (None for a wide frame), and notes on them."""
    # A frame with these two columns is tidy; ``tidy_scores`` names the columns that it lacks.
    if {"table", "method"} <= set(frame.columns):
        if higher_is_better:
            raise ValueError(
                "Losses of searches are minimised: leave out higher_is_better, and negate scores"
                " that are to be maximised."
            )
        matrices, notes = tidy_scores(frame, budgets, unit, short_runs)
        return dict(matrices), (*notes, "ADTM: mean of the scores over the tasks.")
    if budgets is not None or unit != "trials":
        raise ValueError("A frame of tasks x methods has no budgets: leave out budgets and unit.")
    matrix, notes = wide_scores(frame)
    distance = "(max - score)" if higher_is_better else "(score - min)"
    adtm_note = (
        f"ADTM: mean over the tasks of {distance} / (max - min), with the extremes of the finite"
        " scores of the compared methods; 0 where they are equal."
    )
    unit_note = (
        "Wilcoxon's test ranks the differences as they are: where the tasks have other units or"
        " ranges, scale the scores of each first."
    )
    return {None: matrix}, (*notes, adtm_note, unit_note)


def _compare_at(
    budget: float | None,
    scores: pd.DataFrame,
    *,
    distance: Callable[[FloatArray], FloatArray],
    control: Hashable | None,
    sign: float,
    zero_method: ZeroMethod,
    alpha: float,
) -> BudgetComparison:
    import pandas as pd

    losses = sign * scores.to_numpy(dtype=np.float64)
    n_tasks, n_methods = losses.shape
    ranks = average_ranks(losses)
    # Ties by name, so that the table does not depend on the order of the columns.
    order = sorted(range(n_methods), key=lambda i: (ranks[i], str(scores.columns[i])))
    pairs = list(combinations(order, 2))
    if control is not None:
        names: list[Hashable] = list(scores.columns)
        first = names.index(control)
        pairs = [(first, other) for other in order if other != first]
    a, b = np.array(pairs).T
    difference = differences(losses[:, a], losses[:, b])
    with np.errstate(invalid="ignore", over="ignore"):  # the median between inf and -inf is NaN
        median = np.median(difference, axis=0)
    p = adjusted = np.full(len(pairs), np.nan)
    if n_tasks >= 2:
        p = wilcoxon_pairs(losses, pairs, zero_method=zero_method)
        adjusted = finner(p)
    table = {
        "method_a": scores.columns[a],
        "method_b": scores.columns[b],
        "wins": (difference < 0).sum(axis=0),
        "ties": (difference == 0).sum(axis=0),
        "losses": (difference > 0).sum(axis=0),
        "median_difference": sign * median + 0.0,  # not -0.0
        "p_wilcoxon": p,
        "p_finner": adjusted,
        "different": adjusted <= alpha,
    }
    ordered = scores.columns[order]
    return BudgetComparison(
        budget=budget,
        scores=scores,
        ranks=pd.Series(ranks[order], index=ordered, name="rank"),
        adtm=pd.Series(distance(losses).mean(axis=0)[order], index=ordered, name="adtm"),
        iman_davenport=iman_davenport(losses) if n_tasks >= 2 and n_methods >= 3 else None,
        pairs=pd.DataFrame(table),
    )


def _remarks(result: BudgetComparison, alpha: float) -> list[str]:
    """Sentences on few tasks, and on constant or infinite scores."""
    scores, n_pairs = result.scores, len(result.pairs)
    values = scores.to_numpy(dtype=np.float64)
    remarks = []
    if len(values) == 1:
        remarks.append("There is one task only, so nothing can be tested and no p-value is given.")
    elif len(same := scores.columns[(values == values[0]).all(axis=0)]):
        remarks.append(f"The score is the same on every task, and is kept: {join_names(same)}.")
    # If all N tasks agree, Wilcoxon's p is 2 / 2^N; here for every pair.
    least = float(finner(np.full(n_pairs, 2.0 ** (1 - len(values)))).max())
    if len(values) > 1 and least > alpha:
        remarks.append(
            f"With {len(values)} tasks and {format_count(n_pairs, 'pair')} none can be different:"
            f" a method that wins on all tasks has p = {least:.2g} by Finner. More tasks, or fewer"
            " pairs by control=, would help."
        )
    if len(odd := scores.columns[np.isinf(values).any(axis=0)]):
        remarks.append(
            f"Infinite scores rank as they are; in the ADTM the worse infinity has distance 1 and"
            f" the better one 0. Methods that have some: {join_names(odd)}."
        )
    return remarks


def wide_scores(frame: pd.DataFrame) -> tuple[pd.DataFrame, Notes]:
    """The complete tasks of a frame with a row for each task and a column for each method."""
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
    if named := [name for name in frame if str(name).lower() in _TASK_COLUMNS]:
        raise ValueError(
            f"{join_names(named)} names tasks, and no method: make it the index of the frame by"
            f" frame.set_index({named[0]!r})."
        )
    return _complete_tasks(frame.astype(np.float64), "value")


def tidy_scores(
    frame: pd.DataFrame, budgets: float | Iterable[float] | None, unit: Unit, short_runs: ShortRuns
) -> tuple[dict[float, pd.DataFrame], Notes]:
    """Mean regrets over the seeds, tasks x methods, by budget; see ``compare``."""
    import pandas as pd

    runs = runs_of(frame, unit)
    # Names may be tuples, which pandas would turn into levels.
    index = pd.Index(runs.tables, name="task", tupleize_cols=False)
    columns = pd.Index(runs.methods, name="method", tupleize_cols=False)
    present = runs.present
    has_all = np.asarray(present.all(axis=1))
    _, notes = _complete_tasks(pd.DataFrame(np.where(present, 1.0, np.nan), index, columns), "run")
    kept = has_all[runs.table]
    notes = (*runs.notes, *notes, *_seed_notes(runs, kept))
    if budgets is None:
        budgets, note = _common_budget(runs, kept, unit)
        notes = (*notes, note)
    if isinstance(budgets, str) or not isinstance(budgets, Iterable):
        budgets = [budgets]
    points = sorted({as_number(b) for b in budgets})
    if not points or not all(0 < value < np.inf for value in points):
        raise ValueError(f"budgets must be positive and finite, got {budgets!r}.")
    regrets = runs.regret_at(np.array(points))  # (r, G)
    matrices: dict[float, pd.DataFrame] = {}
    for budget, regret in zip(points, regrets.T, strict=True):
        where = f"At {format_budget(budget, unit)}: "
        use, short_notes = _long_enough(runs, kept, budget, short_runs, where)
        early = np.isnan(regret)  # no result counts as the worst one
        means = runs.mean_over_seeds(np.where(early, 1.0, regret)[:, None], use)[:, :, 0]
        # A cell is empty where all its runs are short and left out.
        matrix = pd.DataFrame(means, index, columns).loc[has_all]
        matrices[budget], gap_notes = _complete_tasks(matrix, "run", where)
        notes = (*notes, *short_notes, *gap_notes)
        if (use & early).any():
            notes = (*notes, f"{where}no result yet, so regret 1: {_count(runs, use & early)}.")
    return matrices, notes


def _complete_tasks(
    matrix: pd.DataFrame, what: str, where: str = ""
) -> tuple[pd.DataFrame, Notes]:
    """The tasks without a NaN, and a note for each set of methods that other tasks lack.

    ``what`` names the contents of a cell; ``where`` begins the notes.
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
    # Sorted, so that the notes do not depend on the order of the rows.
    notes = sorted(
        f"{where}Left out, since there is no {what} of"
        f" {join_names(sorted(methods, key=str))}: {join_names(sorted(tasks, key=str))}."
        for methods, tasks in affected.items()
    )
    return matrix[~incomplete], tuple(notes)


def _seed_notes(runs: Runs, kept: BoolArray) -> Notes:
    """A note if the methods do not have the same seeds on some task."""
    pairs = np.stack([runs.table[kept], runs.seed[kept]])
    # A seed that all methods have on a table occurs once for each of them.
    (table, _), count = np.unique(pairs, axis=1, return_counts=True)
    uneven = np.unique(table[count < len(runs.methods)])
    if not len(uneven):
        return ()
    # By name, here and below, so that the notes do not depend on the order of the rows.
    first = min(uneven.tolist(), key=lambda i: str(runs.tables[i]))
    return (
        f"The methods do not have the same seeds on {len(uneven)} of {len(np.unique(table))}"
        f" tasks; first, {runs.tables[first]}, with these numbers of seeds:"
        f" {_count(runs, kept & (runs.table == first))}. Each mean is over the seeds that there"
        " are.",
    )


def _common_budget(runs: Runs, kept: BoolArray, unit: Unit) -> tuple[float, str]:
    """The largest number of trials that every method has reached on every task, and a note."""
    if unit == "seconds":
        raise ValueError("budgets must be given when the unit is seconds.")
    longest = np.zeros((len(runs.tables), len(runs.methods)))
    # The longest run over the seeds; by ``at``, since several runs belong to one cell.
    np.maximum.at(longest, (runs.table, runs.method), runs.length)
    # Tables that are left out set no limit.
    longest[np.setdiff1d(np.arange(len(longest)), runs.table[kept])] = np.inf
    budget = float(longest.min())
    table, method = min(
        np.argwhere(longest == budget).tolist(),
        key=lambda cell: (str(runs.tables[cell[0]]), str(runs.methods[cell[1]])),
    )
    return budget, (
        f"Budget: {format_count(int(budget), 'trial')}, the most that every method has made on"
        f" every task ({runs.methods[method]} on {runs.tables[table]} made no more)."
    )


def _long_enough(
    runs: Runs, kept: BoolArray, budget: float, short_runs: ShortRuns, where: str
) -> tuple[BoolArray, Notes]:
    """Whether each run (r,) counts at a budget, and a note on those that end before it."""
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
    """The number of chosen runs of each method, and on request the shortest length."""
    cases = []
    for i in np.unique(runs.method[chosen]):
        mine = chosen & (runs.method == i)
        shortest = f" (the shortest at {format_number(runs.length[mine].min())})"
        cases.append(f"{runs.methods[i]} {mine.sum()}{shortest * lengths}")
    return join_names(sorted(cases))
