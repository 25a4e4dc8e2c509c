"""The start design: branches first, shares by weight, and what lies farthest."""

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

from automl_plugins.proposers.design import (
    apportion,
    distances,
    next_point,
    stratified,
)
from automl_plugins.spaces.vector_space import VectorSpace
from automl_plugins.surrogates.base import FloatArray


def algorithms() -> VectorSpace:
    """Return a space of a large, a small and an empty branch; the large one forks again."""
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


def design(space: VectorSpace, n: int, seed: int = 0) -> FloatArray:
    """Return ``n`` points, each chosen from a pool and the points before it alone."""
    points = np.empty((0, space.d))
    for k in range(n):
        rng = np.random.default_rng([seed, k])
        point = next_point(space, space.sample(256, rng), points, rng)
        points = np.vstack([points, point])
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


# Branches


@pytest.mark.parametrize("seed", range(5))
def test_every_branch_is_visited_before_any_twice(seed: int) -> None:
    space = algorithms()
    points = design(space, 12, seed)
    algorithm, kernel = (space.names.index(name) for name in ("algorithm", "kernel"))
    assert set(points[:3, algorithm]) == {0.0, 1.0, 2.0}
    svms = points[points[:, algorithm] == 0.0]
    assert set(svms[:2, kernel]) == {0.0, 1.0}


@pytest.mark.parametrize("seed", range(3))
def test_shares_are_proportional_to_what_lies_below(seed: int) -> None:
    space = algorithms()
    n = 40
    points = design(space, n, seed)
    column = space.names.index("algorithm")
    counts = np.array([(points[:, column] == option).sum() for option in range(3)])
    # 1 + bits: the three algorithms; a kernel, C and half of the time gamma; four sizes
    weights = 1.0 + np.log2(3.0) + np.array([1.0 + 4.0 + 0.5 * 4.0, 2.0, 0.0])
    assert (np.abs(counts - n * weights / weights.sum()) < 1.6).all()


def test_plain_categories_are_balanced() -> None:
    space = VectorSpace(ConfigurationSpace({"a": list("xyz"), "b": [0, 1], "x": (0.0, 1.0)}))
    points = design(space, 12)
    for column in np.flatnonzero(space.categorical):
        _, counts = np.unique(points[:, column], return_counts=True)
        assert np.ptp(counts) <= 1


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
        np.testing.assert_array_equal(counts, [2, 2, 2])
        # Whatever the other branch has tried, this one begins in its middle
        off = np.abs(own[0, [column("x"), column(child)]] - 0.5)
        assert off.sum() < 0.25


def test_what_was_tried_elsewhere_counts() -> None:
    space = algorithms()
    algorithm = space.names.index("algorithm")
    pool = space.sample(300, np.random.default_rng(0))
    for absent in range(3):
        tried = pool[pool[:, algorithm] != absent][:20]
        point = next_point(space, pool, tried, np.random.default_rng(1))
        assert point[algorithm] == absent


# Points


def test_the_first_point_is_the_middle() -> None:
    space = ConfigurationSpace()
    space.add(
        Float("x", (0.0, 1.0)), OrdinalHyperparameter("o", list("abc")), Categorical("c", [0, 1])
    )
    vectors = VectorSpace(space)
    pool = vectors.enumerate(1)
    assert pool is None
    pool = vectors.sample(200, np.random.default_rng(0))
    point = next_point(vectors, pool, pool[:0], np.random.default_rng(0))
    by_name = dict(zip(vectors.names, point, strict=True))
    assert by_name["o"] == 1.0
    same = pool[(pool[:, vectors.names.index("o")] == 1.0)]
    same = same[same[:, vectors.names.index("c")] == by_name["c"]]
    x = same[:, vectors.names.index("x")]
    assert abs(by_name["x"] - 0.5) == np.abs(x - 0.5).min()


def test_ties_of_the_first_point_are_drawn() -> None:
    space = VectorSpace(ConfigurationSpace({"x": (0.0, 1.0)}))
    pool = np.array([[0.3], [0.7], [1.0 - 0.3], [0.1]])
    drawn = {
        float(next_point(space, pool, pool[:0], np.random.default_rng(seed))[0])
        for seed in range(40)
    }
    assert drawn == {0.3, 0.7}


def test_among_few_the_farthest_is_taken() -> None:
    space = VectorSpace(ConfigurationSpace({"x": (0.0, 1.0), "y": (0.0, 1.0)}))
    rng = np.random.default_rng(0)
    for n_tried in (1, 2, 10):
        pool, tried = rng.random((8, 2)), rng.random((n_tried, 2))
        gap = [min(np.abs(p - t).sum() for t in tried) for p in pool]
        np.testing.assert_array_equal(next_point(space, pool, tried, rng), pool[np.argmax(gap)])


def test_designs_go_on_where_they_were_interrupted() -> None:
    space = algorithms()
    whole = design(space, 10)
    rng = np.random.default_rng([0, 9])
    np.testing.assert_array_equal(
        next_point(space, space.sample(256, rng), whole[:9], rng), whole[9]
    )
    np.testing.assert_array_equal(design(space, 6), whole[:6])
    assert not np.array_equal(design(space, 6, seed=1), whole[:6], equal_nan=True)


def test_spaces_of_one_point() -> None:
    space = ConfigurationSpace()
    space.add(Constant("k", 1))
    vectors = VectorSpace(space)
    rng = np.random.default_rng(0)
    np.testing.assert_array_equal(next_point(vectors, np.ones((4, 1)), np.ones((2, 1)), rng), [1])
    np.testing.assert_array_equal(next_point(vectors, np.ones((4, 1)), np.empty((0, 1)), rng), [1])


# Apportionment


def test_apportion_by_hand() -> None:
    rng = np.random.default_rng(0)
    assert apportion([1, 0, 1], [9.0, 1e-9, 9.0], rng) == 1  # unvisited first, whatever it weighs
    # 6 / 3.5 = 1.71, 3 / 1.5 = 2, 1 / 1.5 = 0.67
    assert apportion([3, 1, 1], [6.0, 3.0, 1.0], rng) == 1
    # 6 / 3.5 = 1.71, 3 / 2.5 = 1.2
    assert apportion([3, 2, 1], [6.0, 3.0, 1.0], rng) == 0
    assert apportion([5], [2.0], rng) == 0


@pytest.mark.parametrize("seed", range(10))
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
    assert (np.abs(counts - 120 * weights / weights.sum()) < 1.0).all()


def test_ties_of_apportion_are_drawn_evenly() -> None:
    rng = np.random.default_rng(0)
    for counts, weights in (([0, 0, 5], [1.0, 7.0, 1.0]), ([2, 2, 2], [3.0, 3.0, 1.0])):
        drawn = np.bincount([apportion(counts, weights, rng) for _ in range(600)], minlength=3)
        assert drawn[2] == 0
        assert drawn[0] == pytest.approx(300, abs=60)


# Stratified numbers


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("m", [1, 3, 5])
def test_stratified_hits_every_interval_once(seed: int, m: int) -> None:
    n = 2**m
    drawn = np.array([stratified(i, np.random.default_rng(seed)) for i in range(4 * n)])
    assert drawn[0] == 0.5
    assert drawn.min() >= 0.0
    assert drawn.max() < 1.0
    intervals = np.floor(drawn * n).astype(int)
    # Element 0 is the middle, wherever the sequence would have begun: it may share an interval.
    assert len(set(intervals[1:n])) == n - 1
    for block in range(1, 4):
        assert sorted(intervals[block * n : (block + 1) * n]) == list(range(n))


# Distances


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
    np.testing.assert_allclose(distances(b, a), expected.T)
    np.testing.assert_array_equal(np.diag(distances(a, a)), np.zeros(20))
    assert distances(a, b).max() <= 1.0
