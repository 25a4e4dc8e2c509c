"""Average ranks, the groups of a rank diagram, and distances to the minimum."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from automl_plugins.statistics import average_ranks, cliques, distance_to_minimum

Matrix = npt.NDArray[np.float64]

MATRICES = arrays(
    np.float64,
    st.tuples(st.integers(1, 6), st.integers(1, 5)),
    elements=st.integers(-3, 3).map(float),
)


# Average ranks


@given(MATRICES)
def test_ranks_count_wins_and_half_the_ties(scores: Matrix) -> None:
    better = (scores[:, :, None] > scores[:, None, :]).sum(axis=2)
    tied = (scores[:, :, None] == scores[:, None, :]).sum(axis=2) - 1
    expected = (1 + better + 0.5 * tied).mean(axis=0)
    np.testing.assert_allclose(average_ranks(scores), expected)
    mirrored = average_ranks(scores, higher_is_better=True)
    np.testing.assert_allclose(mirrored, scores.shape[1] + 1 - expected)


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        (np.empty((0, 3)), "tasks x methods matrix, got shape"),
        ([[np.nan, 1.0], [np.nan, 2.0]], "NaN in 2 cells"),
    ],
)
def test_no_matrix_is_refused(scores: npt.ArrayLike, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        average_ranks(scores)


# Groups


def test_groups_of_a_chain_and_of_nothing() -> None:
    chain = np.eye(4, k=1) + np.eye(4, k=-1) > 0
    assert cliques(chain) == [(0, 1), (1, 2), (2, 3)]
    assert cliques(np.zeros((3, 3))) == []
    assert cliques(np.ones((3, 3))) == [(0, 1, 2)]
    assert cliques([[True]]) == []


@given(st.integers(1, 7), st.data())
def test_groups_agree_with_all_subsets(k: int, data: st.DataObject) -> None:
    edges = np.zeros((k, k), dtype=bool)
    for a, b in combinations(range(k), 2):
        edges[a, b] = edges[b, a] = data.draw(st.booleans())
    joined = [
        set(group)
        for size in range(2, k + 1)
        for group in combinations(range(k), size)
        if all(edges[a, b] for a, b in combinations(group, 2))
    ]
    maximal = [g for g in joined if not any(g < other for other in joined)]
    assert cliques(edges) == sorted(tuple(sorted(g)) for g in maximal)


@pytest.mark.parametrize("edges", [[True, False], [[0, 1], [0, 0]], [[0, 1, 1], [1, 0, 1]]])
def test_an_asymmetric_relation_is_refused(edges: npt.ArrayLike) -> None:
    with pytest.raises(ValueError, match="symmetric"):
        cliques(edges)


# Distances


def test_distances_by_hand() -> None:
    distances = distance_to_minimum([[1.0, 3.0, 2.0], [5.0, 5.0, 5.0], [0.0, -1.0, 3.0]])
    np.testing.assert_allclose(distances, [[0.0, 1.0, 0.5], [0.0, 0.0, 0.0], [0.25, 0.0, 1.0]])


def test_distances_of_infinite_losses() -> None:
    losses = [[np.inf, 1.0, 2.0], [-np.inf, 1.0, 2.0], [np.inf, 1.0, 1.0], [np.inf, -np.inf, 7.0]]
    expected = [[1.0, 0.0, 1.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [1.0, 0.0, 0.0]]
    np.testing.assert_array_equal(distance_to_minimum(losses), expected)
    np.testing.assert_array_equal(distance_to_minimum([[np.inf, np.inf]]), [[1.0, 1.0]])


@pytest.mark.parametrize("size", [1e-300, 1e-9, 1.0, 1e150, 1.7e308])
def test_distances_of_any_size(size: float) -> None:
    losses = size * np.array([[-1.0, 0.0, 1.0]])
    np.testing.assert_allclose(distance_to_minimum(losses), [[0.0, 0.5, 1.0]])
