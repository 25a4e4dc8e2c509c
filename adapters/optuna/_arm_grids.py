"""Arms with few configurations: what is left to try in them.

On grids, recorded ones above all, an arm may run dry. Its configurations are counted as its
complete trials show them, conditions within the arm inferred; a branch that no trial has entered
is always left.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)

from automl_plugins.proposers.design import distances
from automl_plugins.records.trial import Status
from automl_plugins.spaces.conditions import Rule
from automl_plugins.spaces.ranges import count_floats

from ._arms import Arms
from ._steps import steps_of
from ._study import View
from .space import UnionSpace, infer_rules

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]

_MOST = 2000  # configurations beyond which an arm counts as endless


@dataclass(frozen=True)
class Grid:
    """The configurations of an arm.

    Attributes:
        union: The arm's own parameters.
        untried: Configurations (n, d) that no trial has, running ones included.
    """

    union: UnionSpace
    untried: FloatArray

    def vector(self, values: Mapping[str, Any]) -> FloatArray:
        """The configuration (d,) that ``values`` of all parameters stand for."""
        return np.asarray(self.union.vectors.activate(self.union.fixed(values)[None])[0])

    def is_untried(self, vector: FloatArray) -> bool:
        """Whether no trial has this configuration."""
        keys = self.union.vectors.keys
        return bool(np.isin(keys(vector[None]), keys(self.untried))[0])

    def nearest(
        self, vector: FloatArray, held: Mapping[str, Any], rng: np.random.Generator
    ) -> FloatArray | None:
        """The untried configuration that is most like ``vector``; ties are drawn.

        Args:
            vector: What was proposed (d,).
            held: Values that are decided already.
            rng: Source of randomness.

        Returns:
            None if every configuration with these values has been tried.
        """
        fixed = self.union.fixed(held)
        pool = self.untried[(np.isnan(fixed) | (self.untried == fixed)).all(axis=1)]
        if not len(pool):
            return None
        features = self.union.vectors.features
        gaps = distances(features(pool), features(vector[None]))[:, 0]
        return np.asarray(pool[rng.choice(np.flatnonzero(gaps == gaps.min()))])

    def values(self, vector: FloatArray, rng: np.random.Generator) -> dict[str, Any]:
        """Parameter values of a configuration; inactive ones are drawn."""
        complete = self.union.vectors.fill(vector, rng)
        return {n: self.union.decode(n, complete[c]) for n, c in self.union.column.items()}

    def internal(self, vector: FloatArray) -> dict[str, float]:
        """Optuna's internal values of the active parameters of a configuration."""
        named = {name: vector[column] for name, column in self.union.column.items()}
        return {n: self.union.internal(n, v) for n, v in named.items() if not np.isnan(v)}


class Parameters(Protocol):
    """Knows the parameters of each arm, see ``ArmMemory``."""

    parameters: dict[int, dict[str, BaseDistribution]]
    endless: set[int]


class Grids:
    """Cache of the grids of all arms: only the arms with new trials are looked at.

    Args:
        key: Key of the arms.
        memory: Knows the parameters of each arm.
    """

    def __init__(self, key: str, memory: Parameters) -> None:
        self._key = key
        self._memory = memory
        self._unions: dict[int, tuple[Any, UnionSpace]] = {}
        self._grids: dict[int, tuple[Any, Grid | None]] = {}

    def grid(self, view: View, arms: Arms, index: int) -> Grid | None:
        """The grid of an arm, None if it has too many configurations or is not known yet."""
        if index not in self._memory.parameters or index in self._memory.endless:
            return None
        rows = np.flatnonzero(view.values(self._key) == index)
        running = [row for row in view.running if row.values.get(self._key) == index]
        key = (len(rows), [(row.number, dict(row.values)) for row in running])
        known = self._grids.get(index)
        if known is None or known[0] != key:
            known = (key, self._count(view, arms, index, rows))
            self._grids[index] = known
        return known[1]

    def is_exhausted(self, view: View, arms: Arms, index: int) -> bool:
        """Whether every configuration of an arm has been tried."""
        grid = self.grid(view, arms, index)
        return grid is not None and not len(grid.untried)

    def _count(self, view: View, arms: Arms, index: int, rows: IntArray) -> Grid | None:
        parameters = dict(sorted(self._memory.parameters[index].items()))
        values = {name: view.values(name)[rows] for name in parameters}
        full = view.facts("status")[rows] == Status.COMPLETE
        always = [name for name, column in values.items() if not np.isnan(column[full]).any()]
        if math.prod(_size(arms.narrow(index, n, parameters[n])) for n in always) > _MOST:
            return None
        complete = {name: column[full] for name, column in values.items()}
        union = self._union(index, parameters, infer_rules(complete, parameters))
        space = union.vectors
        everything = space.enumerate(_MOST * len(arms) if arms.whole else _MOST)
        if everything is None:
            return None
        for name in arms.whole.keys() & union.column.keys():
            entries, place = np.unique(everything[:, union.column[name]], return_inverse=True)
            internal = [v if np.isnan(v) else union.internal(name, v) for v in entries]
            everything = everything[arms.contains(index, name, np.array(internal))[place]]
        if len(everything) > _MOST:
            return None
        tried = np.empty((len(rows), space.d))
        for name, column in union.column.items():
            tried[:, column] = union.encode(name, values[name])
        tried = tried[_explained(view, rows, {self._key, *parameters})]
        seen = space.seen(everything, np.unique(space.keys(tried)))
        return Grid(union, everything[~seen])

    def _union(
        self, index: int, parameters: dict[str, BaseDistribution], rules: list[Rule]
    ) -> UnionSpace:
        known = self._unions.get(index)
        if known is None or known[0] != (parameters, rules):
            known = ((parameters, rules), UnionSpace(parameters, rules))
            self._unions[index] = known
        return known[1]


def _explained(view: View, rows: IntArray, names: set[str]) -> npt.NDArray[np.bool_]:
    """Mask (len(rows),) of the trials that asked for nothing beyond ``names``.

    Others have failed, or run, in a branch that is not known yet: there is more to try in it.
    """
    trials = [*view.columns.trials, *view.running.trials]
    return np.array([trials[i].values.keys() <= names for i in rows], dtype=bool)


def _size(distribution: BaseDistribution) -> int:
    """Number of values of a parameter that is not continuous."""
    if isinstance(distribution, CategoricalDistribution):
        return len(distribution.choices)
    steps = steps_of(distribution)
    if steps is not None:
        return steps.n
    if isinstance(distribution, IntDistribution):
        return distribution.high - distribution.low + 1
    assert isinstance(distribution, FloatDistribution)
    return count_floats(distribution.low, distribution.high)
