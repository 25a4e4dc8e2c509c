"""Runs recorded in one search space as vectors of another, matched by name.

Missing values are imputed, values outside are clipped, or their runs dropped, and ``Coverage``
counts these runs.

Two spaces may differ in a choice among algorithms. Runs of one algorithm belong to its branch of a
search among several, though they do not have the choice itself; and runs of several do not belong
to a search of one of them unless they have its hyperparameters.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal, NamedTuple, TypedDict, get_args

import numpy as np
from ConfigSpace.conditions import AndConjunction, Condition, ConditionLike, Conjunction

from automl_plugins._arguments import check_choice
from automl_plugins.arrays import BoolArray, FloatArray
from automl_plugins.meta.coverage import Coverage, count_varied
from automl_plugins.meta.readings import Reading
from automl_plugins.records.task_record import TaskRecord
from automl_plugins.spaces.columns import Column
from automl_plugins.spaces.conditions import satisfied
from automl_plugins.spaces.values import kind_of, to_vector
from automl_plugins.spaces.vector_space import VectorSpace

OutOfRange = Literal["clip", "drop"]
Missing = Literal["impute", "drop"]

_MOST_VALUES = 1000  # values of a parent that are tried, evenly spaced if it has more


class AlignOptions(TypedDict, total=False):
    """How runs that do not fit are treated.

    Attributes:
        out_of_range: What becomes of a number outside its range: ``"clip"`` moves it to the
            border, ``"drop"`` leaves the run out. A number inside, between two steps, always goes
            to the nearer step. If the space has categories in place of a recorded range (or a
            guessed one, ``guess_ranges``), the number goes to the nearest category that is a
            number, by their ratio if the range was logarithmic; without such it is unknown. Words
            such as "sqrt" count as the numbers that they mean on the recorded data, but only for
            numbers up to four times as large or as small: any other number is a category that the
            space does not have. Such a category always drops the run, unless hardly any value of
            the hyperparameter means something in the space (numbers for categories; counts for
            fractions without the sizes): then the others are unknown. A switch may be written as
            truth values or as 0 and 1.
        missing: What becomes of a run without a value for an active hyperparameter:
            ``"impute"`` sets its default, or what all runs of a bundled memory had; ``"drop"``
            leaves the run out.
    """

    out_of_range: OutOfRange
    missing: Missing


class Alignment(NamedTuple):
    """Runs (n) in a search space: vectors (n, d), and the mask (n,) of those that are used.

    Rows that are not used are NaN. ``imputed`` (n, d) are the entries that were not recorded.
    """

    vectors: FloatArray
    keep: BoolArray
    coverage: Coverage
    imputed: BoolArray


def align(
    space: VectorSpace,
    reading: Reading,
    task: str,
    *,
    held: FloatArray | None = None,
    out_of_range: OutOfRange = "clip",
    missing: Missing = "impute",
) -> Alignment:
    """Configurations of any space, as ``read_runs`` reads them, as vectors of ``space``.

    Runs of a branch that the space does not have are left out: they would be default
    configurations with losses of another algorithm. Such a run has none of the hyperparameters
    of the space, or lacks one that depended, where it was recorded, on a hyperparameter that the
    space does not have. Runs of a space that is a branch of this one belong to that branch, see
    ``impute``.
    ``task`` is the name of their task, for the report; for ``held`` (d,) see ``impute``, for the
    options ``AlignOptions``.

    Raises:
        ValueError: For an unknown policy.
    """
    check_choice("out_of_range", out_of_range, get_args(OutOfRange))
    check_choice("missing", missing, get_args(Missing))
    configurations, records, vectors = reading.configurations, reading.records, reading.entries
    outside, foreign, n = reading.outside, reading.foreign, len(configurations)
    lost = foreign | outside if out_of_range == "drop" else foreign  # (n, d)
    completed = impute(space, vectors, held)
    # A constant has its value, recorded or not: nothing is guessed.
    imputed = np.isnan(vectors) & ~np.isnan(completed) & (space.n_values > 1)
    absent = imputed & ~reading.recorded
    unrelated = np.any(absent[:, dependent_elsewhere(space, records)], axis=1)
    # A run without any value is the default configuration; one with other values only is not.
    for i in np.flatnonzero(~reading.recorded.any(axis=1)).tolist():
        kinds = map(kind_of, configurations[i].values())
        unrelated[i] |= not {*kinds} <= {"none", "missing"}
    keep = ~lost.any(axis=1) & ~unrelated & space.allowed(completed)
    if missing == "drop":
        keep &= ~imputed.any(axis=1)
        lost = lost | (imputed & reading.recorded)  # what is missing itself is no reason to name
    # After ``allowed``, which would take NaN for inactive.
    completed[~keep] = np.nan

    def by_name(mask: BoolArray) -> dict[str, int]:
        counts = mask.sum(axis=0).tolist()
        return {name: count for name, count in zip(space.names, counts, strict=True) if count}

    shared = tuple(name for name in space.names if name in reading.names)
    ignored = tuple(sorted(reading.names - set(shared)))
    kept = [configurations[i] for i in np.flatnonzero(keep).tolist()] if ignored else []
    coverage = Coverage(
        task=task,
        n_runs=n,
        n_kept=int(keep.sum()),
        n_clipped=int(outside[keep].any(axis=1).sum()),
        imputed=by_name(imputed[keep]),
        shared=shared,
        ignored=ignored,
        clipped=by_name(outside[keep]),
        dropped=by_name(lost),
        converted=by_name(reading.converted[keep]),
        n_unrelated=int(unrelated.sum()),
        rounded=by_name(reading.rounded[keep]),
        unusable=by_name((imputed & reading.recorded)[keep]),
        beyond=reading.beyond,
        lacking=count_varied(kept, ignored),
    )
    imputed[~keep] = False
    return Alignment(completed, np.asarray(keep), coverage, imputed)


# --- values that a run does not have -----------------------------------------------------------


def impute(space: VectorSpace, vectors: FloatArray, held: FloatArray | None = None) -> FloatArray:
    """Vectors (n, d) with a value for every active hyperparameter; NaN where inactive.

    A missing value is the one that all runs ``held`` (d,), NaN where not known, else the default.
    But that of a parent is one with which the hyperparameters that the run has are active, if
    there is any: the usual one if possible, else the first.
    """
    defaults = to_vector(space.space, {hp.name: hp.default_value for hp in space.space.values()})
    if held is not None:
        defaults = np.where(np.isnan(held), defaults, held)
    completed = space.activate(np.where(np.isnan(vectors), defaults, vectors))
    known = ~np.isnan(vectors)
    # Runs with recorded values that the defaults of their parents switch off.
    lost = np.flatnonzero((known & np.isnan(completed)).any(axis=1))
    if len(lost):
        patterns, which = np.unique(known[lost], axis=0, return_inverse=True)
        values = np.array([_with_parents(space, p, defaults) for p in patterns])
        completed[lost] = space.activate(np.where(known[lost], vectors[lost], values[which]))
    return completed


def _with_parents(space: VectorSpace, known: BoolArray, defaults: FloatArray) -> FloatArray:
    """The defaults (d,), with the values of parents that the ``known`` columns need."""
    values, wanted = defaults.copy(), known.copy()
    for parent in reversed(space.deciding):  # children first: a parent may need one of its own
        parts = [
            part
            for column in np.flatnonzero(wanted).tolist()
            for condition in space.space.parent_conditions_of[space.names[column]]
            for part in _sufficient(condition)
            if space.space.index_of[part.parent.name] == parent
        ]
        if not parts or known[parent]:
            continue
        # The default comes first, for ``argmax`` takes the first of equals.
        candidates = np.append(values[parent], _candidates(space, parent))
        columns = np.full((space.d, len(candidates)), np.nan)
        columns[parent] = candidates
        fulfilled = np.sum([satisfied(part, columns) for part in parts], axis=0)
        values[parent] = candidates[fulfilled.argmax()]
        wanted[parent] = True
    return values


def _sufficient(condition: ConditionLike) -> Iterator[Condition]:
    """Conditions on single parents that together fulfil ``condition``."""
    if isinstance(condition, Conjunction):
        parts = condition.components
        # Any part fulfils an "or".
        for part in parts if isinstance(condition, AndConjunction) else parts[:1]:
            yield from _sufficient(part)
    else:
        yield condition


def _candidates(space: VectorSpace, column: int) -> FloatArray:
    """Legal entries of a column, ascending: all of them, or many."""
    found = Column(space.space[space.names[column]])
    if found.n_values <= _MOST_VALUES:
        return found.legal_vectors()
    places = np.arange(_MOST_VALUES) / _MOST_VALUES
    return np.array([*map(found.quantile, places), found.largest])


def dependent_elsewhere(space: VectorSpace, records: Iterable[TaskRecord]) -> BoolArray:
    """Mask (d,) of hyperparameters that, where recorded, depend on one that ``space`` lacks.

    A run without a value of them is of another branch; the search of a run without a value of
    any other may not have had it.
    """
    spaces = [record.space for record in records if record.space is not None]
    dependent = {
        name
        for known in spaces
        for name, parents in known.parents_of.items()
        if any(parent.name not in space.space for parent in parents)
    }
    return np.array([name in dependent for name in space.names], dtype=bool)
