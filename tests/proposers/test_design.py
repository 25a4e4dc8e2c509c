"""The start design: branches first, shares by weight, and the farthest candidates."""

from __future__ import annotations

import numpy as np
import pytest
from ConfigSpace import (
    Categorical,
    ConfigurationSpace,
    Constant,
    EqualsCondition,
    Float,
    Integer,
    OrdinalHyperparameter,
)

from automl_plugins.arrays import FloatArray
from automl_plugins.proposers.design import apportion, distances, next_point, stratify
from automl_plugins.spaces.vector_space import VectorSpace


def algorithms() -> VectorSpace:
    """A space of a large, a small and an empty branch; the large one forks again."""
    space = ConfigurationSpace()
    algorithm = Categorical("algorithm", ["svm", "forest", "none"])
    kernel = Categorical("kernel", ["rbf", "linear"])
    c, gamma = Float("C", (1e-3, 1e3), log=True), Float("gamma", (1e-4, 1.0), log=True)
    trees = Integer("trees", (1, 4))
    space.add(algorithm, kernel, c, gamma, trees)
    space.add(
        EqualsCondition(kernel, algorithm, "svm"),
        EqualsCondition(c, algorithm, "svm"),
        EqualsCondition(gamma, kernel, "rbf"),
        EqualsCondition(trees, algorithm, "forest"),
    )
    return VectorSpace(space)


ALGORITHMS = algorithms()
ALGORITHM, KERNEL = (ALGORITHMS.names.index(name) for name in ("algorithm", "kernel"))


def design(space: VectorSpace, n: int, seed: int = 0) -> FloatArray:
    """Points (n, d), each chosen from a pool and the earlier points only."""
    points = np.empty((0, space.d))
    for k in range(n):
        rng = np.random.default_rng([seed, k])
        points = np.vstack([points, next_point(space, space.sample(256, rng), points, rng)])
    return points


def webster(weights: FloatArray, n: int) -> FloatArray:
    """Counts of n turns by Webster's method with at least one each: rounded shares.

    The divisor is found by bisection, as a parliament's clerk would, and not turn by turn.
    """
    low, high = 1e-12, 4.0 * weights.sum()
    for _ in range(200):
        middle = 0.5 * (low + high)
        counts = np.maximum(1.0, np.round(weights / middle))
        low, high = (middle, high) if counts.sum() > n else (low, middle)
    return np.asarray(np.maximum(1.0, np.round(weights / high)))


@pytest.mark.parametrize("seed", range(3))
def test_every_branch_comes_first_and_then_in_proportion_to_what_lies_below(seed: int) -> None:
    n = 40
    points = design(ALGORITHMS, n, seed)
    assert set(points[:3, ALGORITHM]) == {0.0, 1.0, 2.0}
    assert set(points[points[:, ALGORITHM] == 0.0][:2, KERNEL]) == {0.0, 1.0}
    counts = np.array([(points[:, ALGORITHM] == option).sum() for option in range(3)])
    # 1 + bits: the three algorithms; a kernel, C and half of the time gamma; four sizes
    weights = 1.0 + np.log2(3.0) + np.array([1.0 + 4.0 + 0.5 * 4.0, 2.0, 0.0])
    assert (np.abs(counts - n * weights / weights.sum()) < 1.6).all()


@pytest.mark.parametrize("seed", range(3))
def test_each_branch_has_a_design_of_its_own(seed: int) -> None:
    space = ConfigurationSpace()
    branch, scaler = Categorical("branch", ["a", "b"]), Categorical("scaler", [0, 1, 2])
    x, u, v = Float("x", (0.0, 1.0)), Float("u", (0.0, 1.0)), Float("v", (0.0, 1.0))
    space.add(branch, scaler, x, u, v)
    space.add(EqualsCondition(u, branch, "a"), EqualsCondition(v, branch, "b"))
    vectors = VectorSpace(space)
    points = design(vectors, 12, seed)
    column = vectors.names.index
    for option, child in ((0.0, "u"), (1.0, "v")):
        own = points[points[:, column("branch")] == option]
        _, counts = np.unique(own[:, column("scaler")], return_counts=True)
        np.testing.assert_array_equal(counts, [2, 2, 2])  # plain categories are balanced
        # Each branch begins in its middle, regardless of the points of the other
        assert np.abs(own[0, [column("x"), column(child)]] - 0.5).sum() < 0.25


@pytest.mark.parametrize("absent", range(3))
def test_points_tried_in_other_branches_count(absent: int) -> None:
    pool = ALGORITHMS.sample(300, np.random.default_rng(0))
    tried = pool[pool[:, ALGORITHM] != absent][:20]
    point = next_point(ALGORITHMS, pool, tried, np.random.default_rng(1))
    assert point[ALGORITHM] == absent


def test_the_first_point_is_the_middle() -> None:
    space = ConfigurationSpace()
    ordinal, plain = OrdinalHyperparameter("o", list("abc")), Categorical("c", [0, 1])
    space.add(Float("x", (0.0, 1.0)), ordinal, plain)
    vectors = VectorSpace(space)
    pool = vectors.sample(200, np.random.default_rng(0))
    point = next_point(vectors, pool, pool[:0], np.random.default_rng(0))
    c, o, x = (vectors.names.index(name) for name in "cox")
    same = pool[(pool[:, o] == 1.0) & (pool[:, c] == point[c])]
    assert point[o] == 1.0
    assert abs(point[x] - 0.5) == np.abs(same[:, x] - 0.5).min()


def test_ties_of_the_first_point_are_drawn() -> None:
    space = VectorSpace(ConfigurationSpace({"x": (0.0, 1.0)}))
    pool = np.array([[0.3], [0.7], [1.0 - 0.3], [0.1]])
    generators = map(np.random.default_rng, range(40))
    assert {float(next_point(space, pool, pool[:0], rng)[0]) for rng in generators} == {0.3, 0.7}


@pytest.mark.parametrize("n_tried", [1, 2, 10])
def test_among_few_the_farthest_is_taken(n_tried: int) -> None:
    space = VectorSpace(ConfigurationSpace({"x": (0.0, 1.0), "y": (0.0, 1.0)}))
    rng = np.random.default_rng(n_tried)
    pool, tried = rng.random((8, 2)), rng.random((n_tried, 2))
    gap = [min(np.abs(p - t).sum() for t in tried) for p in pool]
    np.testing.assert_array_equal(next_point(space, pool, tried, rng), pool[np.argmax(gap)])


def test_spaces_of_one_point() -> None:
    space = ConfigurationSpace()
    space.add(Constant("k", 1))
    for n in (0, 2):
        rng = np.random.default_rng(0)
        point = next_point(VectorSpace(space), np.ones((4, 1)), np.ones((n, 1)), rng)
        np.testing.assert_array_equal(point, [1])


@pytest.mark.parametrize(
    ("counts", "weights", "drawn"),
    [
        ([1, 0, 1], [9.0, 1e-9, 9.0], {1}),  # unvisited first, regardless of its weight
        ([3, 1, 1], [6.0, 3.0, 1.0], {1}),  # 6 / 3.5 = 1.71, 3 / 1.5 = 2, 1 / 1.5 = 0.67
        ([3, 2, 1], [6.0, 3.0, 1.0], {0}),  # 6 / 3.5 = 1.71, 3 / 2.5 = 1.2
        ([5], [2.0], {0}),
        ([0, 0, 5], [1.0, 7.0, 1.0], {0, 1}),  # ties are drawn evenly
        ([2, 2, 2], [3.0, 3.0, 1.0], {0, 1}),
    ],
)
def test_apportion_by_hand(counts: list[int], weights: list[float], drawn: set[int]) -> None:
    rng = np.random.default_rng(0)
    found = np.bincount([apportion(counts, weights, rng) for _ in range(600)])
    assert set(np.flatnonzero(found).tolist()) == drawn
    assert found[found > 0] == pytest.approx(600 / len(drawn), abs=60)


@pytest.mark.parametrize("seed", range(5))
def test_apportion_is_websters_method(seed: int) -> None:
    rng = np.random.default_rng(seed)
    weights = rng.uniform(1.0, 20.0, size=rng.integers(2, 8))
    counts = np.zeros(len(weights))
    for n in range(1, 121):
        counts[apportion(counts, weights, rng)] += 1
        if n <= len(weights):
            assert counts.max() == 1  # every option once first
        else:
            np.testing.assert_array_equal(counts, webster(weights, n))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("m", [1, 3, 5])
def test_stratified_hits_every_interval_once(seed: int, m: int) -> None:
    n = 2**m
    drawn = np.array([stratify(i, np.random.default_rng(seed)) for i in range(4 * n)])
    assert drawn[0] == 0.5
    assert drawn.min() >= 0.0 and drawn.max() < 1.0
    intervals = np.floor(drawn * n).astype(int)
    # Element 0 is always the middle, not one of the sequence: it may share an interval.
    assert len(set(intervals[1:n])) == n - 1
    for block in range(1, 4):
        assert sorted(intervals[block * n : (block + 1) * n]) == list(range(n))


def test_distances_one_pair_at_a_time() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.random((20, 5)), rng.random((30, 5))
    a[rng.random(a.shape) < 0.3] = np.nan
    b[rng.random(b.shape) < 0.3] = np.nan
    expected = np.zeros((20, 30))
    for i, x in enumerate(a):
        for j, y in enumerate(b):
            for u, v in zip(x, y, strict=True):
                if np.isnan(u) != np.isnan(v):
                    expected[i, j] += 0.2
                elif not np.isnan(u):
                    expected[i, j] += 0.2 * abs(u - v)
    np.testing.assert_allclose(distances(a, b), expected)
