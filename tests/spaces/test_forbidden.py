"""Forbidden clauses mean the same for vectors and for values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from ConfigSpace import ConfigurationSpace, Float, Integer, OrdinalHyperparameter
from ConfigSpace.forbidden import (
    ForbiddenAndConjunction,
    ForbiddenEqualsClause,
    ForbiddenGreaterThanClause,
    ForbiddenGreaterThanEqualsClause,
    ForbiddenLessThanClause,
    ForbiddenLessThanEqualsClause,
    ForbiddenLike,
    ForbiddenOrConjunction,
)

from automl_plugins.spaces.vector_space import VectorSpace

RELATIONS: dict[Any, Callable[[Any, Any], bool]] = {
    ForbiddenLessThanClause: lambda v, limit: v < limit,
    ForbiddenLessThanEqualsClause: lambda v, limit: v <= limit,
    ForbiddenGreaterThanClause: lambda v, limit: v > limit,
    ForbiddenGreaterThanEqualsClause: lambda v, limit: v >= limit,
}


def sizes(*, high: bool = True) -> ConfigurationSpace:
    """Defaults at one end, since they must be allowed."""
    space = ConfigurationSpace()
    space.add(Integer("n", (1, 9), default=9 if high else 1))
    space.add(Float("x", (0.0, 1.0), default=1.0 if high else 0.0))
    space.add(OrdinalHyperparameter("size", [1, 2, 4, 8], default_value=4 if high else 1))
    return space


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize(("name", "limit"), [("n", 4), ("size", 2), ("x", 0.25)])
def test_vectors_are_allowed_if_their_values_are(
    relation: Any, name: str, limit: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    less = RELATIONS[relation](0, 1)
    space, free = sizes(high=less), VectorSpace(sizes())
    space.add(relation(space[name], limit))
    vectors = free.sample(300, np.random.default_rng(0))
    values = [space[name].to_value(v) for v in vectors[:, space.index_of[name]]]
    expected = [not RELATIONS[relation](value, limit) for value in values]
    assert True in expected and False in expected
    view = VectorSpace(space)
    capsys.readouterr()  # ConfigSpace has printed what it checked when the clause was added
    assert view.allowed(vectors).tolist() == expected
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("kind", [ForbiddenAndConjunction, ForbiddenOrConjunction])
def test_clauses_within_conjunctions(kind: Any) -> None:
    space, free = sizes(), VectorSpace(sizes())
    parts: list[ForbiddenLike] = [
        ForbiddenLessThanEqualsClause(space["n"], 4),
        ForbiddenEqualsClause(space["size"], 8),
    ]
    space.add(kind(*parts))
    vectors = free.sample(300, np.random.default_rng(0))
    combine = all if kind is ForbiddenAndConjunction else any
    expected = []
    for vector in vectors:
        n, size = (space[h].to_value(vector[space.index_of[h]]) for h in ("n", "size"))
        expected.append(not combine([n <= 4, size == 8]))
    assert VectorSpace(space).allowed(vectors).tolist() == expected


def test_samples_and_neighbours_obey() -> None:
    space = sizes()
    space.add(ForbiddenLessThanEqualsClause(space["n"], 4))
    vectors = VectorSpace(space).sample(100, np.random.default_rng(0))
    numbers = {int(space["n"].to_value(v)) for v in vectors[:, space.index_of["n"]]}
    assert numbers == {5, 6, 7, 8, 9}
