"""The maximiser: a local search from every start, each until none of its neighbours is better."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest
from ConfigSpace import (
    AndConjunction,
    Categorical,
    ConfigurationSpace,
    EqualsCondition,
    Float,
    ForbiddenEqualsClause,
)

from automl_plugins.proposers.maximizer import (
    SMAC_SEARCH,
    Candidates,
    LocalSearch,
    Score,
    maximize,
)
from automl_plugins.spaces.vector_space import VectorSpace

FloatArray = npt.NDArray[np.float64]

N_CATEGORIES, N_COLUMNS = 4, 5


def letters() -> VectorSpace:
    """1 024 configurations, of which one is forbidden for each other column."""
    space = ConfigurationSpace()
    for i in range(N_COLUMNS):
        space.add(Categorical(f"c{i}", [f"v{j}" for j in range(N_CATEGORIES)]))
    space.add(ForbiddenEqualsClause(space["c0"], "v3"))
    return VectorSpace(space)


def rugged(seed: int) -> Score:
    """A score of its own for every configuration; no two are equal."""
    table = np.random.default_rng(seed).standard_normal((N_CATEGORIES,) * N_COLUMNS)

    def score(vectors: FloatArray) -> tuple[FloatArray, FloatArray]:
        values = table[tuple(vectors.astype(int).T)]
        return values, -values

    return score


def climb(start: FloatArray, level: float, value: Callable[[FloatArray], float]) -> float:
    """The best value scored by one best-improvement search, written plainly."""
    best = -np.inf
    while True:
        options = []
        for column in range(N_COLUMNS):
            for category in range(4):
                other = start.copy()
                other[column] = category
                if other[0] != 3 and category != start[column]:
                    options.append((value(other), tuple(other)))
        top, where = max(options)
        best = max(best, top)
        if top <= level:
            return best
        level, start = top, np.array(where)


@pytest.mark.parametrize("seed", range(8))
def test_every_start_is_searched_until_nothing_is_better(seed: int) -> None:
    space, score = letters(), rugged(seed)
    rng = np.random.default_rng(seed)
    first, observed = space.sample(6, rng), space.sample(4, rng)

    def value(vector: FloatArray) -> float:
        hidden = (observed == vector).all(axis=1).any()
        return -np.inf if hidden else float(score(vector[None])[0][0])

    worth = score(first)[0]
    leaders = first[np.argsort(-worth)[:2]]
    plain = max(
        [float(worth.max())]
        + [climb(start, -np.inf, value) for start in observed[:3]]
        + [climb(start, value(start), value) for start in leaders]
    )
    pool = Candidates(first, np.sort(space.keys(observed)))
    search = LocalSearch(n_observed=3, n_candidates=2, tolerance=0.0, joins=False)
    found = maximize(space, score, pool, observed, None, rng, search=search)
    assert score(found[None])[0][0] == plain


@pytest.mark.parametrize("seed", range(8))
def test_the_search_of_smac_starts_from_the_observed_that_score_best(seed: int) -> None:
    space, score = letters(), rugged(seed)
    rng = np.random.default_rng(seed)
    first, observed = space.sample(6, rng), space.sample(30, rng)

    def value(vector: FloatArray) -> float:
        hidden = (observed == vector).all(axis=1).any()
        return -np.inf if hidden else float(score(vector[None])[0][0])

    worth = score(observed)[0]
    starts = np.argsort(-worth)[:10]
    plain = max(climb(observed[i], float(worth[i]), value) for i in starts)
    plain = max(plain, float(score(first)[0].max()))
    pool = Candidates(first, np.sort(space.keys(observed)))
    found = maximize(space, score, pool, observed, None, rng, search=SMAC_SEARCH)
    assert score(found[None])[0][0] == plain


def test_a_start_that_is_behind_at_first_finds_the_higher_hill() -> None:
    space = ConfigurationSpace()
    space.add([Float(f"x{i}", (0.0, 1.0)) for i in range(6)])
    vectors = VectorSpace(space)

    def hills(v: FloatArray) -> tuple[FloatArray, FloatArray]:
        low = np.exp(-((v - 0.25) ** 2).sum(axis=1) / 0.5)
        high = 2.0 * np.exp(-((v - 0.8) ** 2).sum(axis=1) / 0.3)
        return np.maximum(low, high), np.zeros(len(v))

    for seed in range(10):
        rng = np.random.default_rng(seed)
        near = np.clip(0.25 + 0.1 * rng.standard_normal((1000, 6)), 0, 1)
        observed = np.clip(0.25 + 0.08 * rng.standard_normal((5, 6)), 0, 1)
        observed[0] = 0.55  # worth 0.57, where the others are worth 0.9
        pool = Candidates(near, np.sort(vectors.keys(observed)))
        found = maximize(vectors, hills, pool, observed, None, rng)
        assert hills(found[None])[0][0] > 1.2


def test_nothing_is_searched_where_the_first_batch_is_all_there_is() -> None:
    space, score = letters(), rugged(0)
    first = space.sample(5, np.random.default_rng(0))
    sizes: list[int] = []

    def counted(vectors: FloatArray) -> tuple[FloatArray, FloatArray]:
        sizes.append(len(vectors))
        return score(vectors)

    pool = Candidates(first, np.sort(space.keys(first)), complete=True)
    found = maximize(space, counted, pool, first, None, np.random.default_rng(0))
    assert sizes == [5]
    assert score(found[None])[0][0] == score(first)[0].max()


def test_joined_gains_climb_a_sum_with_half_of_the_neighbours() -> None:
    space = VectorSpace(ConfigurationSpace({f"x{i}": (0.0, 1.0) for i in range(20)}))
    rng = np.random.default_rng(0)
    first = Candidates(space.sample(50, rng), np.empty(0, dtype=np.uint64))

    def search(joins: bool) -> tuple[float, int]:
        rows = 0

        def score(vectors: FloatArray) -> tuple[FloatArray, FloatArray]:
            nonlocal rows
            rows += len(vectors)
            distances = np.abs(vectors - 0.4).sum(axis=1)
            return -distances, distances

        settings = LocalSearch(tolerance=0.02, joins=joins)
        nothing = np.empty((0, 20))
        best = maximize(
            space, score, first, nothing, None, np.random.default_rng(1), search=settings
        )
        return float(np.abs(best - 0.4).sum()), rows

    (together, fewer), (single, many) = search(joins=True), search(joins=False)
    assert together <= single
    assert 2 * fewer <= many


def test_joined_gains_keep_to_forbidden_clauses() -> None:
    space, score = letters(), rugged(3)
    seen: list[FloatArray] = []

    def record(vectors: FloatArray) -> tuple[FloatArray, FloatArray]:
        seen.append(vectors)
        return score(vectors)

    first = Candidates(space.sample(5, np.random.default_rng(0)), np.empty(0, dtype=np.uint64))
    maximize(space, record, first, np.empty((0, N_COLUMNS)), None, np.random.default_rng(1))
    assert (np.concatenate(seen)[:, 0] != 3).all()


def test_joined_gains_that_meet_a_condition_together_are_whole() -> None:
    both = ConfigurationSpace()
    a, b, c = (Categorical(name, ["off", "on"]) for name in "abc")
    child = Float("child", (0.0, 1.0))
    both.add([a, b, c, child])
    both.add(AndConjunction(EqualsCondition(child, a, "on"), EqualsCondition(child, b, "on")))
    space = VectorSpace(both)
    parents = [space.names.index(name) for name in "ab"]
    seen: list[FloatArray] = []

    def score(vectors: FloatArray) -> tuple[FloatArray, FloatArray]:
        seen.append(vectors)
        value = (vectors[:, parents] == 1.0).sum(axis=1).astype(np.float64)
        return value, -value

    off = space.sample(200, np.random.default_rng(0))
    off = off[(off[:, parents] == 0.0).all(axis=1)][:3]
    first = Candidates(off, np.empty(0, dtype=np.uint64))
    maximize(space, score, first, np.empty((0, space.d)), None, np.random.default_rng(1))
    scored = np.concatenate(seen)
    active = (scored[:, parents] == 1.0).all(axis=1)
    assert active.any()
    assert (~np.isnan(scored[:, space.names.index("child")]) == active).all()
