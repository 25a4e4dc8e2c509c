"""Memories of which nearly all recorded numbers lie outside the range of a search."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from automl_plugins.meta.alignment import IN_RANGE, Reading
from automl_plugins.meta.coverage import Beyond
from automl_plugins.spaces.restriction import Range, domain_of
from automl_plugins.spaces.vector_space import VectorSpace

_AT_THE_EDGE = 3  # of so many configurations one goes to the end of the range


def doubt_edges(space: VectorSpace, readings: Sequence[Reading]) -> list[Reading]:
    """Readings of all tasks of a memory without most numbers of what is nearly all outside.

    Where the best value of a new task is beyond the end of a range, the end is the best guess;
    where it is anywhere else, it is a bad one, and the first trials of a search would all be
    there. The recorded values cannot say which: so of each three configurations one goes to the
    end, and those of the other two are not known.
    """
    places: list[int] = []
    beyond: dict[str, Beyond] = {}
    for i, name in enumerate(space.names):
        n, n_outside = (
            sum(int(np.count_nonzero(array)) for array in arrays)
            for arrays in (
                [~np.isnan(reading.numbers[:, i]) for reading in readings],
                [reading.outside[:, i] for reading in readings],
            )
        )
        if space.n_values[i] > 1 and n and n - n_outside < IN_RANGE * n:
            places.append(i)
            numbers = np.concatenate([reading.numbers[:, i] for reading in readings])
            domain = domain_of(space.space[name])
            legal = (domain.low, domain.high) if isinstance(domain, Range) else domain
            ends = float(np.nanmin(numbers)), float(np.nanmax(numbers))
            beyond[name] = Beyond(n_outside, n, *ends, min(legal), max(legal))
    if not places:
        return [*readings]
    # By what was recorded, so that a configuration is the same one in every task.
    rows = [np.hstack([r.entries, r.numbers[:, places]]) for r in readings]
    _, first, which = np.unique(
        np.nan_to_num(np.concatenate(rows), nan=-1.0),
        axis=0,
        return_index=True,
        return_inverse=True,
    )
    order = np.empty(len(first), dtype=np.int64)
    order[np.argsort(first)] = np.arange(len(first))
    stays = order[which.reshape(-1)] % _AT_THE_EDGE == 0
    found: list[Reading] = []
    start = 0
    for reading in readings:
        doubted = np.zeros_like(reading.outside)
        doubted[:, places] = reading.outside[:, places]
        doubted &= ~stays[start : start + len(doubted), None]
        start += len(doubted)
        entries = np.where(doubted, np.nan, reading.entries)
        outside = reading.outside & ~doubted
        found.append(reading._replace(entries=entries, outside=outside, beyond=beyond))
    return found
