"""Searches as sorted arrays, for regrets at budgets and means without a loop over runs.

Notation of this module::

    n  rows: finished evaluations, sorted by table, method, seed and trial
    r  runs: searches, each a slice of the rows
    T  tables
    M  methods
    G  budgets, ascending
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from automl_plugins._arguments import repeated
from automl_plugins.arrays import BoolArray, FloatArray, IntArray
from automl_plugins.formats import format_number, join_names
from automl_plugins.frameworks import adapter_of, searches_of
from automl_plugins.records.scores import rescale
from automl_plugins.records.search import KEYS, Search, search_frame
from automl_plugins.records.trial import Status, violates

if TYPE_CHECKING:
    import pandas as pd

Unit = Literal["trials", "seconds"]
UNITS: tuple[Unit, ...] = get_args(Unit)
Labels = tuple[Hashable, ...]
Label = tuple[Any, ...]  # (task, method) or (task, method, seed)
Notes = tuple[str, ...]

_VALUES = ("regret", "best", "loss")
_CROWDED = 0.01  # share of a table's scale; half of all losses below it are too many


@dataclass(frozen=True, eq=False)
class Runs:
    """Searches with the regret of each after every evaluation."""

    tables: Labels  # names (T)
    methods: Labels  # names (M)
    table: IntArray  # number of the table of each run (r,), ascending
    method: IntArray  # number of the method of each run (r,)
    seed: IntArray  # number of the seed of each run (r,)
    first: IntArray  # first row of each run (r,)
    spent: FloatArray  # trials or seconds at each row (n,), ascending within a run
    regret: FloatArray  # after each row (n,), NaN where there is no result yet
    notes: Notes  # on how the regret was computed

    def __len__(self) -> int:
        return len(self.first)

    @property
    def run(self) -> IntArray:
        """Number of the run of each row (n,)."""
        return np.repeat(np.arange(len(self)), np.diff(self.first, append=len(self.spent)))

    @property
    def length(self) -> FloatArray:
        """Trials or seconds at the end of each run (r,)."""
        return np.asarray(self.spent[np.append(self.first[1:], len(self.spent)) - 1])

    @property
    def present(self) -> BoolArray:
        """Whether there is a run of each method on each table (T, M)."""
        found = np.zeros((len(self.tables), len(self.methods)), dtype=np.bool_)
        found[self.table, self.method] = True
        return found

    def regret_at(self, budgets: FloatArray) -> FloatArray:
        """Regret of each run at budgets (r, G); NaN before its first result."""
        point = np.searchsorted(budgets, self.spent)  # the first budget at which the row counts
        rows = np.flatnonzero(~np.isnan(self.regret) & (point < len(budgets)))
        run, point = self.run[rows], point[rows]
        values = np.full((len(self), len(budgets)), np.nan)
        filled = np.zeros(values.shape, dtype=np.int64)
        values[run, point] = self.regret[rows]  # of several rows at one budget, the last remains
        filled[run, point] = point
        # At a budget without a row the last one before it counts.
        return np.take_along_axis(values, np.maximum.accumulate(filled, axis=1), axis=1)

    def mean_over_seeds(self, values: FloatArray, use: BoolArray) -> FloatArray:
        """Means (T, M, G) of values (r, G) over the runs in use (r,); NaN where there is none."""
        shape = len(self.tables), len(self.methods), values.shape[1]
        cell = (self.table * shape[1] + self.method)[use]  # ascending
        place = np.arange(len(cell)) - np.searchsorted(cell, cell)  # of a run among its seeds
        # By table and method, seed, budget; NaN where a method has fewer seeds than another.
        cube = np.full((shape[0] * shape[1], max(place, default=0) + 1, shape[2]), np.nan)
        cube[cell, place] = values[use]
        # Sorted, so that rounding in the order of the seeds cannot break ties between methods.
        total = np.nansum(np.sort(cube, axis=1), axis=1)
        with np.errstate(invalid="ignore"):
            return np.asarray((total / (~np.isnan(cube)).sum(axis=1)).reshape(shape))


def runs_of(frame: pd.DataFrame, unit: Unit) -> Runs:
    """Read the runs of a tidy frame, see ``automl_plugins.records.search.COLUMNS``.

    The regret is the column ``regret``. Without it, the regret is the best loss so far, scaled to
    [0, 1] by the least and the largest finite loss of any method on the table.
    """
    import pandas as pd

    value = _check_columns(frame, unit)
    codes, labels = [], []
    for name in KEYS[:3]:
        code, unique = pd.factorize(frame[name])
        if empty := (code < 0).sum():
            raise ValueError(f"The column {name} is empty in {empty} rows.")
        codes.append(code)
        labels.append(tuple(unique))
    trial = _numbers(frame, "trial")
    if not ((trial >= 1) & np.isfinite(trial) & (trial == np.floor(trial))).all():
        raise ValueError("The column trial must count finished evaluations from 1.")
    shape = [len(names) for names in labels]
    # One number for table, method and seed, in this order: the runs are sorted by table.
    run = np.ravel_multi_index(codes, shape)
    order = np.lexsort((trial, run))
    rows, run, trial = frame.iloc[order], run[order], trial[order]
    new = np.diff(run, prepend=-1) != 0
    twice = (np.diff(trial, prepend=np.nan) == 0) & ~new  # NaN: the first repeats none
    if twice.any():
        cases = [_place(row) for row in rows[twice].head(3).to_dict("records")]
        raise ValueError(
            f"{twice.sum()} rows repeat a trial of the same table, method and seed; first:"
            f" {'; '.join(cases)}. Give repeated searches seeds of their own."
        )
    if value == "regret":
        regret, notes = _recorded_regret(rows)
    else:
        regret, notes = _scaled_regret(rows, run, codes[0][order], labels[0])
    first = np.flatnonzero(new)
    table, method, seed = np.unravel_index(run[first], shape)
    return Runs(
        tables=labels[0],
        methods=labels[1],
        table=table,
        method=method,
        seed=seed,
        first=first,
        spent=trial if unit == "trials" else _seconds(rows, new),
        regret=regret,
        notes=notes,
    )


def _check_columns(frame: pd.DataFrame, unit: Unit) -> str:
    """Check the columns; return the name of the one from which the regret is computed."""
    import pandas as pd
    from pandas.api.types import is_numeric_dtype

    if not isinstance(frame, pd.DataFrame):
        raise TypeError(
            "Searches are given as a data frame with table, method, seed, trial and loss, as"
            f" replay(...) returns it, got a {type(frame).__name__}."
        )
    seconds = ["seconds"] if unit == "seconds" else []
    values = [name for name in _VALUES if name in frame]
    missing = [name for name in (*KEYS, *seconds) if name not in frame]
    if missing or not values:
        missing += [] if values else ["one of regret, best and loss"]
        raise ValueError(f"A tidy frame of searches lacks: {join_names(missing)}.")
    if not len(frame):
        raise ValueError("The tidy frame of searches has no rows.")
    numeric = ["trial", *values, *seconds]
    if strange := [name for name in numeric if not is_numeric_dtype(frame[name])]:
        raise ValueError(f"Columns that are not numeric: {join_names(strange)}.")
    return values[0]


def _numbers(frame: pd.DataFrame, name: str) -> FloatArray:
    return frame[name].to_numpy(dtype=np.float64, na_value=np.nan)


def _place(row: dict[Hashable, Any]) -> str:
    return ", ".join(f"{name} {row[name]}" for name in KEYS)


def _seconds(rows: pd.DataFrame, new: BoolArray) -> FloatArray:
    seconds = _numbers(rows, "seconds")
    gaps = rows["seconds"].isna().groupby(rows["table"]).agg(["sum", "size"])
    if len(gaps := gaps[gaps["sum"] > 0]):
        cases = sorted(f"{table} (in {n} of {of} rows)" for table, n, of in gaps.itertuples())
        raise ValueError(
            f"A budget in seconds, but no seconds on table {', '.join(cases)}: use unit='trials',"
            " or fill them in."
        )
    back = (np.diff(seconds, prepend=-np.inf) < 0) & ~new  # a new run begins at its own 0
    if back.any():
        case = _place(rows[back].iloc[0].to_dict())
        raise ValueError(f"seconds must not fall from trial to trial; they do at {case}.")
    return seconds


def _recorded_regret(rows: pd.DataFrame) -> tuple[FloatArray, Notes]:
    regret = _numbers(rows, "regret")
    if n := np.isinf(regret).sum():
        raise ValueError(
            f"The column regret is infinite in {n} rows: it must be finite, or NaN where there is"
            " no result yet."
        )
    note = "Scores: the column regret at the budget, 1 before the first result; mean over seeds."
    return regret, (note, *_missing_note(rows, np.isnan(regret), "regret"))


def _scaled_regret(
    rows: pd.DataFrame, run: IntArray, table: IntArray, tables: Labels
) -> tuple[FloatArray, Notes]:
    """Regret after each row, from its loss and the numbers of its run and table (n,).

    If the frame has only one of the columns loss and best, it is used for both.
    """
    import pandas as pd

    columns = [_numbers(rows, name) for name in ("loss", "best") if name in rows]
    if "status" in rows and "loss" in rows:
        columns[0] = np.where(_complete(rows), columns[0], np.nan)
    finite = [np.where(np.isfinite(column), column, np.nan) for column in columns]
    losses, found = finite[0], finite[-1]
    best = np.asarray(pd.Series(found).groupby(run).cummin(), dtype=np.float64)
    start = np.flatnonzero(np.diff(table, prepend=-1))
    # Per table (T,), whose rows are consecutive; NaN if no row of the table has a value.
    low = np.fmin.reduceat(best, start)
    high = np.fmax.reduceat(losses, start)
    middle = np.asarray(pd.Series(losses).groupby(table).median(), dtype=np.float64)
    notes = [
        "Scores: best loss so far, scaled on each table from 0, the least, to 1, the largest"
        " finite loss of any method there; 1 before the first result; mean over seeds.",
        *_missing_note(rows, np.isnan(losses), "complete and finite loss"),
    ]
    for odd, what in (
        (high == low, "All losses are equal, so their regret is 0"),
        (np.isnan(low), "No method has a result, so all have regret 1"),
        (
            (high > low) & (rescale(middle, low, high) < _CROWDED),
            "Half of all losses are in the lowest hundredth of the scale, which the largest loss"
            " of any method sets: ADTM and Wilcoxon's test count other tables more",
        ),
    ):
        if names := sorted((tables[i] for i in np.flatnonzero(odd)), key=str):
            notes.append(f"{what}, on: {join_names(names)}.")
    return rescale(best, low[table], high[table]), tuple(notes)


def _complete(rows: pd.DataFrame) -> BoolArray:
    status = rows["status"].map(str)
    known = [str(s) for s in Status if s != Status.RUNNING]
    if strange := [s for s in status.unique() if s not in known]:
        raise ValueError(f"status must be one of {join_names(known)}, got {join_names(strange)}.")
    return (status == str(Status.COMPLETE)).to_numpy(dtype=np.bool_)


def _missing_note(rows: pd.DataFrame, missing: BoolArray, what: str) -> list[str]:
    if not missing.any():
        return []
    return [
        f"{format_number(missing.sum())} of {len(rows)} evaluations have no {what}"
        f" ({_count_each(rows['method'][missing])}): they count against the budget and improve"
        " nothing."
    ]


def _count_each(methods: Iterable[Hashable]) -> str:
    """How often each method occurs, most often first."""
    counts = Counter(methods).items()
    most_first = sorted(counts, key=lambda item: (-item[1], str(item[0])))
    return ", ".join(f"{method} {n}" for method, n in most_first)


def _violating_note(searches: Iterable[Search]) -> list[str]:
    of = [(search.method, violates(trial)) for search in searches for trial in search.trials]
    if not (violating := [method for method, does in of if does]):
        return []
    return [
        f"{len(violating)} of {len(of)} evaluations violate a constraint"
        f" ({_count_each(violating)}): they count as failed."
    ]


# --- the objects of frameworks ---------------------------------------------------------------


def searches_frame(
    data: Mapping[Label, Any] | Iterable[Any], label: Callable[[Any], Label] | None = None
) -> tuple[pd.DataFrame, Notes]:
    """A tidy frame of searches or objects of frameworks, see ``compare``, with notes.

    Without a label, searches keep the names that the framework gives them. Searches with the same
    task and method but without a seed are numbered in their order.
    """
    searches, notes = _label_searches(data, label)
    places = [join_names((s.table, s.method, f"seed {s.seed}")) for s in searches]
    labels = [(s.table, s.method, s.seed) for s in searches]
    by_label = dict(zip(labels, places, strict=True))
    if twice := [by_label[label] for label in repeated(labels)]:
        raise ValueError(
            f"Several searches have the same task, method and seed: {'; '.join(twice[:3])}. Name"
            " them by label=... or by a mapping {(task, method, seed): search}."
        )
    about: dict[str, list[str]] = {}
    for search, place in zip(searches, places, strict=True):
        for sentence in search.left_out:
            about.setdefault(sentence, []).append(place)
    notes += [f"{'; '.join(where)}: {sentence}" for sentence, where in about.items()]
    if empty := [place for s, place in zip(searches, places, strict=True) if not s.trials]:
        notes.append(f"Left out, since they have no finished trial: {'; '.join(empty)}.")
    if len(empty) == len(searches):
        raise ValueError("There are no searches with finished trials.")
    searches = [search for search in searches if search.trials]
    maximized, minimized = ({s.table for s in searches if s.maximized is m} for m in (True, False))
    if mixed := sorted(maximized & minimized, key=str):
        notes.append(
            "Some searches were maximised and others minimised, so they are on one scale only if"
            f" the others minimised the negated score, on: {join_names(mixed)}."
        )
    notes += _violating_note(searches)
    return search_frame(searches), tuple(notes)


def _label_searches(
    data: Mapping[Label, Any] | Iterable[Any], label: Callable[[Any], Label] | None
) -> tuple[list[Search], list[str]]:
    named: list[tuple[Label, Any]]
    if adapter_of(data) is not None:  # one search; SMAC's is a mapping, Hyperopt's iterable
        data = [data]
    if isinstance(data, Mapping):
        if label is not None:
            raise ValueError("label names the objects of a sequence; a mapping has names already.")
        named = list(data.items())
    else:
        things = data if isinstance(data, Iterable) else [data]
        named = [(label(thing) if label else (), thing) for thing in things]
    has_labels = label is not None or isinstance(data, Mapping)
    searches: list[Search] = []
    unseeded: dict[Label, list[int]] = {}
    for name, thing in named:
        if has_labels and not (isinstance(name, tuple) and len(name) in (2, 3)):
            raise ValueError(f"A label is (task, method) or (task, method, seed), got {name!r}.")
        labels = dict(zip(("table", "method", "seed"), name, strict=False))
        found = searches_of(thing, **labels)
        if len(labels) == 2:
            positions = range(len(searches), len(searches) + len(found))
            unseeded.setdefault(name, []).extend(positions)
        searches += found
    numbered = []
    for (task, method), members in unseeded.items():
        # The seeds of the framework are kept if they tell the searches apart.
        if len({searches[i].seed for i in members}) < len(members):
            for seed, i in enumerate(members):
                searches[i] = replace(searches[i], seed=seed)
            numbered.append(f"{method} on {task} ({len(members)})")
    if not numbered:
        return searches, []
    return searches, [f"Without seeds, so numbered in the order given: {join_names(numbered)}."]
