"""Vectors as plain values and as configurations."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from ConfigSpace import Configuration, ConfigurationSpace

FloatArray = npt.NDArray[np.float64]


def plain_values(space: ConfigurationSpace, vectors: FloatArray) -> list[dict[str, Any]]:
    """Active values by name of each vector (n, d), as builtins."""
    columns = {}
    for name, column in space.index_of.items():
        active = ~np.isnan(vectors[:, column])
        found = iter(space[name].to_value(vectors[active, column]))
        there = active.tolist()
        columns[name] = [(_builtin(next(found)) if here else None, here) for here in there]
    rows = zip(*columns.values(), strict=True)
    return [
        {name: value for name, (value, there) in zip(columns, row, strict=True) if there}
        for row in rows
    ]


def as_configuration(space: ConfigurationSpace, vector: FloatArray) -> Configuration:
    """The configuration of a vector (d,) in canonical form: equal ones hash equally."""
    return Configuration(space, vector=np.array(vector, dtype=np.float64))


def _builtin(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value
