"""Earlier tasks in the vectors of a union space, whose categories are indices."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

import numpy as np
from ConfigSpace import ConfigurationSpace
from ConfigSpace.conditions import (
    Condition,
    GreaterThanCondition,
    InCondition,
    LessThanCondition,
)
from ConfigSpace.hyperparameters import CategoricalHyperparameter
from optuna.distributions import CategoricalDistribution
from optuna.logging import get_logger

from automl_plugins.meta.alignment import MemoryMismatch, notes, nothing_left
from automl_plugins.meta.dataset import MetaDataset
from automl_plugins.meta.memories import opened
from automl_plugins.spaces.vector_space import VectorSpace

from ._cache import Cache
from ._sources import Sources
from ._space import UnionSpace
from .initial_design import understood

if TYPE_CHECKING:
    from automl_plugins.meta.store import MetaStore

_logger = get_logger("optuna.automl_plugins")


class UnionMemory:
    """The memory of one study: an ``AlignedMemory`` of the core.

    A union space has to be introduced before its vectors are asked for: they do not tell which
    values they stand for.

    Args:
        sources: The earlier tasks.
        exclude: Names of tasks to leave out.

    """

    def __init__(self, sources: Sources, exclude: Collection[str] = ()) -> None:
        self.store: MetaStore | None = sources.store
        self._sources, self._exclude = sources, set(exclude)
        self._unions: Cache[int, UnionSpace] = Cache()
        self._found: Cache[int, MetaDataset | str] = Cache()

    def introduce(self, union: UnionSpace) -> None:
        """Make the vectors of a union space known."""
        # Held, so that no other space can have its identity.
        self._unions.of(id(union.vectors), lambda: union)

    def on(self, space: VectorSpace) -> MetaDataset:
        """The earlier tasks in vectors of ``space``, the same object for the same space.

        Raises:
            LookupError: If the space was not introduced.
            MemoryMismatch: If no task is left, none shares a parameter with the space, or no run
                lies in it.
        """
        union = self._unions.get(id(space))
        if union is None or union.vectors is not space:
            raise LookupError("This space is not that of a union that was introduced.")
        found = self._found.of(id(space), lambda: self._aligned(union))
        if isinstance(found, str):
            raise MemoryMismatch(found, final=False)
        return found

    def _aligned(self, union: UnionSpace) -> MetaDataset | str:
        try:
            dataset = opened(self._sources.without(self._exclude), spoken(union))
            encoded = in_union(dataset, union)
        except ValueError as error:
            return str(error)
        for note in notes(encoded.coverage):
            _logger.info(note)
        return encoded

    def __repr__(self) -> str:
        return f"UnionMemory({len(set(self._sources.names) - self._exclude)} tasks)"


def spoken(union: UnionSpace) -> ConfigurationSpace:
    """A union space with the values of its parameters themselves, conditions included."""
    space, _ = understood(union.distributions)
    for condition in union.vectors.space.conditions:
        assert isinstance(condition, Condition)
        child, parent = space[condition.child.name], space[condition.parent.name]
        if isinstance(condition, InCondition):
            values = [_value(space, union, parent.name, v) for v in condition.values]
            space.add(InCondition(child, parent, values))
        else:
            assert isinstance(condition, GreaterThanCondition | LessThanCondition)
            value = _value(space, union, parent.name, condition.value)
            space.add(type(condition)(child, parent, value))
    return space


def _value(space: ConfigurationSpace, union: UnionSpace, name: str, entry: Any) -> Any:
    """What a value of the union's hyperparameter is called in the spoken space."""
    value = union.decode(name, float(union.vectors.space[name].to_vector(entry)))
    hyperparameter = space[name]
    if isinstance(hyperparameter, CategoricalHyperparameter):
        # Choices that ConfigSpace does not take are there as they are written.
        return value if value in hyperparameter.choices else str(value)
    return value


def in_union(dataset: MetaDataset, union: UnionSpace) -> MetaDataset:
    """A dataset in the spoken space of a union as one in the union's own vectors.

    Raises:
        ValueError: If no run is left.
    """
    if not len(dataset):
        raise nothing_left(dataset.coverage)
    vectors = np.full((len(dataset), union.vectors.d), np.nan)
    for name, column in union.column.items():
        entries = dataset.vectors[:, dataset.space.index_of[name]]
        internal = entries
        if not isinstance(union.distributions[name], CategoricalDistribution):
            active = ~np.isnan(entries)
            internal = np.full(len(entries), np.nan)
            internal[active] = dataset.space[name].to_value(entries[active])
        vectors[:, column] = union.encode(name, internal)
    return MetaDataset(
        union.vectors.space,
        dataset.tasks,
        dataset.task,
        union.vectors.canonical(union.vectors.activate(vectors)),
        dataset.losses,
        dataset.seconds,
        dataset.status,
        dataset.coverage,
    )
