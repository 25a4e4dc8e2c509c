"""Values of a parameter that no model proposes: its range is filled evenly."""

from __future__ import annotations

from typing import Any
from zlib import crc32

import numpy as np
from optuna.distributions import BaseDistribution, CategoricalDistribution

from automl_plugins.proposers.design import apportion, stratified_value
from automl_plugins.streams import Streams

from ._study import View
from ._union import UnionSpace
from .space import distinct_choices


def even_value(
    view: View, streams: Streams, k: int, name: str, distribution: BaseDistribution
) -> Any:
    """The least-tried choice, or an element of the parameter's own sequence.

    The number k of the trial chooses the element, as workers that begin together see the same
    counts. The first one is the middle.
    """
    tried = view.values(name)
    tried = tried[~np.isnan(tried)]
    label = crc32(name.encode())
    lower = [row for row in view.running if row.number < k]
    if isinstance(distribution, CategoricalDistribution):
        choices = distinct_choices(distribution)
        n = len(choices)
        if lower and np.isnan(view.columns.values(name)).all():
            # All choices in turn, in a new random order for every n trials.
            rng = streams.generator("independent", k - k % n, label)
            first = apportion(np.zeros(n), np.ones(n), rng)
            order = [first, *rng.permutation(np.delete(np.arange(n), first))]
            return distribution.choices[choices[int(order[k % n])]]
        rng = streams.generator("independent", k, label)
        counts = np.array([(tried == choice).sum() for choice in choices])
        return distribution.choices[choices[apportion(counts, np.ones(n), rng)]]
    unknown = any(name not in row.values for row in lower)
    union = UnionSpace({name: distribution})
    rng = streams.generator("sequence", label)
    index = k if unknown or len(tried) else 0
    return union.decode(name, stratified_value(union.vectors, 0, index, rng))
