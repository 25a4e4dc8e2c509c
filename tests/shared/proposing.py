"""Small search spaces, histories in them, and a surrogate with given predictions."""

from __future__ import annotations

from typing import Any

import numpy as np
from ConfigSpace import Categorical, ConfigurationSpace, EqualsCondition, Float, Integer

from automl_plugins.proposers.proposal import Proposer
from automl_plugins.records.history import History
from automl_plugins.spaces.vector_space import VectorSpace
from automl_plugins.streams import Streams

SQUARE = VectorSpace(ConfigurationSpace({"x": (0.0, 1.0), "y": (0.0, 1.0)}))
LINE = VectorSpace(ConfigurationSpace({"x": (0.0, 1.0)}))


def a_space() -> ConfigurationSpace:
    """Two kinds with a number, the second one with another."""
    space = ConfigurationSpace()
    kind, x, y = Categorical("kind", ["a", "b"]), Float("x", (0.0, 1.0)), Float("y", (0.0, 1.0))
    space.add(kind, x, y, EqualsCondition(y, kind, "b"))
    return space


def conditional(*children: str, when: str = "a") -> ConfigurationSpace:
    """A choice of a and b, and numbers that are active with one of them."""
    space = ConfigurationSpace()
    parent = Categorical("k", ["a", "b"])
    space.add(parent)
    for name in children:
        child = Float(name, (0.0, 1.0))
        space.add(child, EqualsCondition(child, parent, when))
    return space


def branches() -> VectorSpace:
    space = ConfigurationSpace()
    kind, a, b = Categorical("kind", ["a", "b"]), Integer("a", (0, 3)), Integer("b", (0, 2))
    space.add([kind, a, b])
    space.add([EqualsCondition(a, kind, "a"), EqualsCondition(b, kind, "b")])
    return VectorSpace(space)


def observed(space: VectorSpace, n: int, **columns: Any) -> History:
    vectors = space.sample(n, np.random.default_rng(0))
    losses = ((np.nan_to_num(vectors) - 0.3) ** 2).sum(axis=1)
    return History.of(vectors, columns.pop("losses", losses), **columns)


def search(space: VectorSpace, proposer: Proposer, n: int) -> History:
    rows: list[np.ndarray] = []
    history = History.of(np.empty((0, space.d)), [])
    for k in range(n):
        rows.append(proposer.propose(space, history, Streams(0), k).vector)
        losses = [float(((np.nan_to_num(row) - 0.3) ** 2).sum()) for row in rows]
        history = History.of(rows, losses)
    return history


class Told:
    """A surrogate with given predictions; records the sizes of its inputs."""

    def __init__(self, answer: Any) -> None:
        self.answer, self.sizes = answer, list[int]()

    def fit(self, X: Any, y: Any) -> Any:
        return self

    def predict(self, X: Any) -> Any:
        self.sizes.append(len(X))
        return self.answer(X)

    def __deepcopy__(self, memo: Any) -> Any:
        return self
