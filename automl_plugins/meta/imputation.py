"""Values of hyperparameters that a recorded run does not have, because its space was another one.

Two spaces may differ in a choice among algorithms. Runs of one algorithm belong to its branch of a
search among several, though they do not have the choice itself; and runs of several do not belong
to a search of one of them unless they have its hyperparameters.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
from ConfigSpace.conditions import AndConjunction, Condition, ConditionLike, Conjunction

from automl_plugins.arrays import BoolArray, FloatArray
from automl_plugins.records.task_record import TaskRecord
from automl_plugins.spaces.columns import Column
from automl_plugins.spaces.conditions import satisfied
from automl_plugins.spaces.values import to_vector
from automl_plugins.spaces.vector_space import VectorSpace

_MOST_VALUES = 1000  # of a parent, tried one by one; of more, evenly spaced ones are


def impute(space: VectorSpace, vectors: FloatArray) -> FloatArray:
    """Vectors (n, d) with a value for every active hyperparameter; NaN where inactive.

    A missing value is the default, but that of a parent is one with which the hyperparameters
    that the run has are active, if there is any: the default if possible, else the first.
    """
    defaults = to_vector(space.space, {hp.name: hp.default_value for hp in space.space.values()})
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
    """Mask (d,) of what depends, where it was recorded, on a hyperparameter that is not here.

    A run without a value for it is of another branch, and not one that never knew it.
    """
    spaces = [record.space for record in records if record.space is not None]
    return np.array(
        [
            any(
                parent.name not in space.space
                for known in spaces
                if name in known
                for parent in known.parents_of[name]
            )
            for name in space.names
        ],
        dtype=bool,
    )
