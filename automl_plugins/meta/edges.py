"""Memories of which nearly all recorded numbers lie outside the range of a search."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from automl_plugins.meta.alignment import IN_RANGE, Reading
from automl_plugins.meta.coverage import Beyond
from automl_plugins.meta.units import ends_of
from automl_plugins.spaces.values import numbers_of
from automl_plugins.spaces.vector_space import VectorSpace

_AT_THE_EDGE = 3  # of so many configurations one goes to the end of the range


def doubt_edges(space: VectorSpace, readings: Sequence[Reading]) -> list[Reading]:
    """Readings of all tasks of a memory without most numbers of what is nearly all outside.

    Where the best value of a new task is beyond the end of a range, the end is the best guess;
    where it is anywhere else, it is a bad one, and the first trials of a search would all be
    there. The recorded values cannot say which: so of each three configurations outside one goes
    to the end, and those of the other two are not known.
    """
    numbers, outside, entries = (
        np.concatenate([getattr(reading, name) for reading in readings])
        for name in ("numbers", "outside", "entries")
    )
    n, n_outside = np.count_nonzero(~np.isnan(numbers), axis=0), np.count_nonzero(outside, axis=0)
    places = np.flatnonzero((space.n_values > 1) & (n > 0) & (n - n_outside < IN_RANGE * n))
    if not len(places):
        return [*readings]
    # By what was recorded, so that a configuration is the same one in every task.
    rows = np.nan_to_num(np.hstack([entries, numbers[:, places]]), nan=-1.0)
    doubted = np.zeros_like(outside)
    beyond: dict[str, Beyond] = {}
    for i in places.tolist():
        own = np.flatnonzero(outside[:, i])
        _, which = np.unique(rows[own], axis=0, return_inverse=True)
        # In no order of the recording, in which a grid repeats itself.
        drawn = np.random.default_rng(0).permutation(which.max() + 1)[which]
        doubted[own, i] = drawn % _AT_THE_EDGE != 0
        legal = numbers_of(ends_of(space.space[space.names[i]]))
        beyond[space.names[i]] = Beyond(
            n_outside=len(own),
            n=int(n[i]),
            n_at_end=int(np.count_nonzero(~doubted[own, i])),
            least=float(np.nanmin(numbers[:, i])),
            most=float(np.nanmax(numbers[:, i])),
            low=float(np.nanmin(legal)),
            high=float(np.nanmax(legal)),
        )
    parts = np.split(doubted, np.cumsum([len(reading.entries) for reading in readings])[:-1])
    return [
        reading._replace(
            entries=np.where(part, np.nan, reading.entries),
            outside=reading.outside & ~part,
            beyond=beyond,
        )
        for reading, part in zip(readings, parts, strict=True)
    ]
