"""VectorSpace against ConfigSpace itself, against brute force, and by hand."""

from __future__ import annotations

import itertools
import pickle
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from ConfigSpace import (
    AndConjunction,
    BetaIntegerHyperparameter,
    Categorical,
    Configuration,
    ConfigurationSpace,
    Constant,
    EqualsCondition,
    Float,
    ForbiddenAndConjunction,
    ForbiddenEqualsClause,
    ForbiddenEqualsRelation,
    ForbiddenGreaterThanRelation,
    ForbiddenInClause,
    GreaterThanCondition,
    InCondition,
    Integer,
    LessThanCondition,
    NormalIntegerHyperparameter,
    NotEqualsCondition,
    OrConjunction,
    OrdinalHyperparameter,
)
from ConfigSpace.hyperparameters import IntegerHyperparameter

from automl_plugins.arrays import FloatArray
from automl_plugins.spaces import vector_space
from automl_plugins.spaces.conditions import is_active
from automl_plugins.spaces.vector_space import VectorSpace

Value = dict[str, Any]


def flat() -> ConfigurationSpace:
    """One hyperparameter of each kind, all of them always active."""
    space = ConfigurationSpace()
    space.add(
        Float("x", (-2.0, 3.0)),
        Float("rate", (1e-4, 1.0), log=True),
        Integer("i", (-3, 4)),
        Integer("width", (1, 64), log=True),
        Categorical("c", ["red", "green", "blue"]),
        Categorical("flag", [False, True]),
        OrdinalHyperparameter("size", ["s", "m", "l", "xl"]),
        Constant("k", "always"),
    )
    return space


def nested() -> ConfigurationSpace:
    """Algorithms with their own hyperparameters, two levels deep."""
    space = ConfigurationSpace()
    algorithm = Categorical("algorithm", ["svm", "forest", "knn"])
    kernel = Categorical("kernel", ["rbf", "poly", "linear"])
    c, degree = Float("C", (1e-3, 1e3), log=True), Integer("degree", (2, 5))
    trees, depth = Integer("trees", (1, 500), log=True), Integer("depth", (1, 20))
    k = Integer("k", (1, 30))
    space.add(algorithm, kernel, c, degree, trees, depth, k)
    space.add(
        EqualsCondition(kernel, algorithm, "svm"),
        EqualsCondition(c, algorithm, "svm"),
        EqualsCondition(degree, kernel, "poly"),
        EqualsCondition(trees, algorithm, "forest"),
        EqualsCondition(depth, algorithm, "forest"),
        EqualsCondition(k, algorithm, "knn"),
    )
    space.add(
        ForbiddenAndConjunction(
            ForbiddenEqualsClause(algorithm, "knn"), ForbiddenInClause(k, [1, 2, 3])
        ),
        ForbiddenAndConjunction(
            ForbiddenEqualsClause(kernel, "poly"), ForbiddenEqualsClause(degree, 5)
        ),
    )
    return space


def discrete() -> ConfigurationSpace:
    """Finite, with every kind of condition and of forbidden clause."""
    space = ConfigurationSpace()
    a, n = Categorical("a", ["x", "y", "z"]), Integer("n", (1, 4))
    b = OrdinalHyperparameter("b", ["low", "mid", "high"])
    m, p = Integer("m", (1, 6), log=True), Categorical("p", [0, 1])
    q, r = Categorical("q", ["u", "v"]), Categorical("r", [0, 1, 2])
    k, one = Constant("k", 7), Categorical("one", ["only"])
    space.add(a, n, b, m, p, q, r, k, one)
    space.add(
        InCondition(b, a, ["x", "y"]),
        GreaterThanCondition(m, n, 2),
        AndConjunction(EqualsCondition(p, a, "x"), LessThanCondition(p, n, 4)),
        NotEqualsCondition(q, a, "x"),
        OrConjunction(
            EqualsCondition(r, p, 1),
            AndConjunction(GreaterThanCondition(r, m, 4), EqualsCondition(r, q, "v")),
        ),
        EqualsCondition(k, r, 2),
        # "not equal", which holds for a parent that is inactive itself
        OrConjunction(GreaterThanCondition(one, b, "low"), NotEqualsCondition(one, p, 0)),
    )
    space.add(
        ForbiddenAndConjunction(ForbiddenEqualsClause(a, "y"), ForbiddenEqualsClause(n, 4)),
        ForbiddenInClause(m, [2, 3]),
        ForbiddenAndConjunction(ForbiddenEqualsClause(b, "high"), ForbiddenEqualsClause(p, 1)),
    )
    return space


# What ``discrete`` means, in plain Python: values, when each is active, what is forbidden.
DISCRETE_VALUES: dict[str, list[Any]] = {
    "a": ["x", "y", "z"],
    "n": [1, 2, 3, 4],
    "b": ["low", "mid", "high"],
    "m": [1, 2, 3, 4, 5, 6],
    "p": [0, 1],
    "q": ["u", "v"],
    "r": [0, 1, 2],
    "k": [7],
    "one": ["only"],
}
DISCRETE_ACTIVE: dict[str, Callable[[Value], bool]] = {
    "b": lambda v: v["a"] in ("x", "y"),
    "m": lambda v: v["n"] > 2,
    "p": lambda v: v["a"] == "x" and v["n"] < 4,
    "q": lambda v: v["a"] != "x",
    "r": lambda v: v["p"] == 1 or (v["m"] in (5, 6) and v["q"] == "v"),
    "k": lambda v: v["r"] == 2,
    "one": lambda v: v["b"] in ("mid", "high") or v["p"] != 0,
}


def discrete_forbidden(v: Value) -> bool:
    return (
        (v["a"] == "y" and v["n"] == 4) or v["m"] in (2, 3) or (v["b"] == "high" and v["p"] == 1)
    )


def by_brute_force() -> set[frozenset[tuple[str, Any]]]:
    """Every combination, "inactive" included, that fulfils all rules of ``discrete``."""
    combinations = itertools.product(*([*v, None] for v in DISCRETE_VALUES.values()))

    def is_valid(v: Value) -> bool:
        rules = ((value, DISCRETE_ACTIVE.get(name)) for name, value in v.items())
        fits = all((rule is None or rule(v)) is (value is not None) for value, rule in rules)
        return fits and not discrete_forbidden(v)

    named = (dict(zip(DISCRETE_VALUES, values, strict=True)) for values in combinations)
    return {
        frozenset((name, value) for name, value in v.items() if value is not None)
        for v in named
        if is_valid(v)
    }


def decoded(space: VectorSpace, vectors: FloatArray) -> list[frozenset[tuple[str, Any]]]:
    """Configurations as the values that ConfigSpace makes of the vectors."""
    return [
        frozenset(
            (name, space.space[name].to_value(value))
            for name, value in zip(space.names, vector, strict=True)
            if not np.isnan(value)
        )
        for vector in vectors
    ]


def assert_valid(space: VectorSpace, vectors: FloatArray) -> None:
    for vector in vectors:
        Configuration(space.space, vector=vector).check_valid_configuration()


def legal(space: VectorSpace, name: str) -> FloatArray:
    """All legal vector entries (k,) of a finite hyperparameter."""
    hp = space.space[name]
    if isinstance(hp, IntegerHyperparameter):
        return np.asarray(hp.to_vector(np.arange(hp.lower, hp.upper + 1)), dtype=np.float64)
    return np.arange(float(hp.size)) if name != "k" else np.ones(1)


SPACES = {"flat": flat, "nested": nested, "discrete": discrete}
every_space = pytest.mark.parametrize("make", SPACES.values(), ids=SPACES)
Make = Callable[[], ConfigurationSpace]


def single(hyperparameter: Any) -> VectorSpace:
    space = ConfigurationSpace()
    space.add(hyperparameter)
    return VectorSpace(space)


def neighbours(space: VectorSpace, *arguments: Any, **options: Any) -> FloatArray:
    return space.neighbours(*arguments, **options)[0]


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


# Enumeration


def test_children_of_inactive_parents_are_inactive() -> None:
    space = ConfigurationSpace()
    a, b, c = Categorical("a", ["x", "y"]), Categorical("b", ["u", "v"]), Float("c", (0.0, 1.0))
    space.add(a, b, c)
    space.add(EqualsCondition(b, a, "x"), EqualsCondition(c, b, "u"))
    given = np.array([[0, 0, 0.3], [0, 1, 0.3], [1, 0, 0.3], [1, np.nan, 0.3], [0, np.nan, 0.3]])
    n = np.nan
    expected = [[0, 0, 0.3], [0, 1, n], [1, n, n], [1, n, n], [0, n, n]]
    assert VectorSpace(space).names == ("a", "b", "c")
    np.testing.assert_array_equal(VectorSpace(space).activate(given), expected)


def test_enumerate_is_brute_force() -> None:
    space = VectorSpace(discrete())
    vectors = space.enumerate(10**6)
    assert vectors is not None
    found = decoded(space, vectors)
    assert len(found) == len(set(found))
    assert set(found) == by_brute_force()
    for configuration in found:
        values = dict(configuration)
        assert {name for name in space.names if is_active(space.space, name, values)} == {*values}


def test_enumerate_up_to_its_limit_in_any_order_of_calls() -> None:
    space = ConfigurationSpace({"a": [0, 1], "n": (1, 3)})
    vectors = VectorSpace(space)
    answers = [vectors.enumerate(limit) for limit in (5, 5, 6, 5, 7)]
    assert [None if a is None else len(a) for a in answers] == [None, None, 6, None, 6]
    assert VectorSpace(flat()).enumerate(10**6) is None


def test_forbidden_configurations_count_in_any_order_of_calls() -> None:
    space = ConfigurationSpace({"a": [0, 1], "n": (1, 3)})
    space.add(ForbiddenEqualsClause(space["n"], 3))
    vectors = VectorSpace(space)
    answers = [vectors.enumerate(limit) for limit in (5, 6, 5)]
    assert [None if a is None else len(a) for a in answers] == [None, 4, None]


# Samples


@every_space
def test_sample_is_valid_for_configspace(make: Make) -> None:
    space = VectorSpace(make())
    vectors = space.sample(300, rng())
    assert vectors.shape == (300, space.d)
    assert_valid(space, vectors)
    again = pickle.loads(pickle.dumps(space))
    np.testing.assert_array_equal(again.sample(300, rng()), vectors)
    np.testing.assert_allclose(space.canonical(vectors), vectors, rtol=0, atol=1e-15)


def test_samples_are_those_that_configspace_draws() -> None:
    several = flat()
    several.add(Float("y", (0.0, 1.0)), Float("z", (1.0, 9.0), log=True))  # after x
    space = VectorSpace(several)
    state = np.random.RandomState(int(rng().integers(2**32)))
    drawn = [space.space[name].sample_vector(50, seed=state) for name in space.names]
    np.testing.assert_array_equal(space.sample(50, rng()), np.transpose(drawn))


@pytest.mark.parametrize(
    "parent",
    [
        Integer("n", (1, 77), log=True),
        NormalIntegerHyperparameter("n", mu=8, sigma=4, lower=2, upper=20, log=True),
        BetaIntegerHyperparameter("n", alpha=2, beta=3, lower=1, upper=9, log=True),
    ],
)
def test_integers_on_a_log_scale_are_drawn_at_their_entries(parent: Any) -> None:
    """Else "equals" in a condition or a clause, which compares entries, would miss its value."""
    space = ConfigurationSpace()
    child = Float("x", (0.0, 1.0))
    space.add(parent, child, EqualsCondition(child, parent, 3))
    space.add(ForbiddenEqualsClause(parent, 5))
    view = VectorSpace(space)
    vectors = view.sample(5000, rng())
    assert np.isin(vectors[:, 0], legal(view, "n")).all()
    values = parent.to_value(vectors[:, 0])
    assert {3, 4} < set(values.tolist()) and 5 not in values
    np.testing.assert_array_equal(np.isnan(vectors[:, 1]), values != 3)


def test_sample_of_a_forbidden_space_is_an_error() -> None:
    space = ConfigurationSpace()
    i, j = Integer("i", (1, 10**7), default=1), Integer("j", (1, 2), default=1)
    space.add([i, j])
    space.add(ForbiddenGreaterThanRelation(i, j))
    with pytest.raises(ValueError, match=r"None of \d+ configurations .* the forbidden clauses"):
        VectorSpace(space).sample(3, rng())


@pytest.mark.parametrize("valid", [500, 100, 10, 1])
def test_samples_of_spaces_of_which_little_is_allowed(valid: int) -> None:
    space = ConfigurationSpace({"i": (0, 999), "x": (0.0, 1.0)})
    space["i"].default_value = 0
    space.add(ForbiddenInClause(space["i"], list(range(valid, 1000))))
    vectors = VectorSpace(space)
    drawn = vectors.sample(512, rng())
    assert drawn.shape == (512, 2) and vectors.allowed(drawn).all()
    assert len(np.unique(drawn[:, 1])) == 512
    assert len(vectors.sample(0, rng())) == 0


def test_rare_configurations_are_repeated_where_too_few_are_drawn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(vector_space, "_MOST_DRAWN", 2000)
    space = ConfigurationSpace({"i": (0, 999), "x": (0.0, 1.0)})
    space["i"].default_value = 0
    space.add(ForbiddenInClause(space["i"], list(range(10, 1000))))
    vectors = VectorSpace(space)
    drawn = vectors.sample(200, rng())
    assert drawn.shape == (200, 2) and vectors.allowed(drawn).all()
    assert 1 < len(np.unique(drawn[:, 1])) < 200


@pytest.mark.parametrize("relation", [ForbiddenEqualsRelation, ForbiddenGreaterThanRelation])
@pytest.mark.parametrize("choices", [[3, 5, 7], None])
def test_relations_allow_no_rows_and_rows_without_values(
    relation: Any, choices: list[int] | None
) -> None:
    """Callers do not ask whether there are rows, or whether both sides are active."""
    space = ConfigurationSpace()
    a, b = Integer("a", (0, 9), default=1), Float("b", (0.0, 9.0), default=2.0)
    space.add(a, b if choices is None else Categorical("b", choices))
    space.add(relation(space["a"], space["b"]))
    vectors = VectorSpace(space)
    assert vectors.allowed(np.empty((0, 2))).tolist() == []
    assert vectors.allowed(np.full((2, 2), np.nan)).tolist() == [True, True]


@pytest.mark.parametrize("n", [1, 2])
def test_short_ordinals_are_ordinals(n: int) -> None:
    space = single(OrdinalHyperparameter("o", ["lo", "hi"][:n]))
    values = np.arange(float(n))[:, None]
    enumerated = space.enumerate(9)
    assert enumerated is not None
    np.testing.assert_array_equal(enumerated, values)
    np.testing.assert_array_equal(space.canonical(values + 0.2), values)
    assert space.quantile(0, (np.arange(n) + 0.5) / n).tolist() == list(range(n))
    assert set(neighbours(space, values, rng())[:, 0]) == set(range(n) if n > 1 else [])


# Validity


def test_canonical_takes_the_nearest_legal_value() -> None:
    space = VectorSpace(flat())
    name = space.names.index
    vectors = np.full((3, space.d), np.nan)
    vectors[:, name("i")] = [-9.0, 3.4 / 7.0, 2.0]
    vectors[:, name("size")] = [-1.0, 1.4, 8.0]
    vectors[:, name("c")] = [0.4, 0.6, 99.0]
    vectors[:, name("x")] = [-0.1, 0.123, 1.1]
    before = vectors.copy()
    out = space.canonical(vectors)
    np.testing.assert_allclose(out[:, name("i")], [0.0, 3.0 / 7.0, 1.0])
    np.testing.assert_array_equal(out[:, name("size")], [0.0, 1.0, 3.0])
    np.testing.assert_array_equal(out[:, name("c")], [0.0, 1.0, 2.0])
    np.testing.assert_array_equal(out[:, name("x")], [0.0, 0.123, 1.0])
    np.testing.assert_array_equal(vectors, before)


# Neighbours


@every_space
def test_neighbours_are_one_exchange_away(make: Make) -> None:
    space = VectorSpace(make())
    steps = np.random.default_rng(1)
    for vector in space.sample(20, rng()):
        moved = neighbours(space, vector[None], steps)
        assert len(moved)
        if make is not discrete:
            assert_valid(space, moved)
        both = ~np.isnan(moved) & ~np.isnan(vector)
        np.testing.assert_array_equal((both & (moved != vector)).sum(axis=1), 1)
        # What else changed is a child that became active or inactive with its parent.
        for row in moved:
            switched = np.isnan(row) != np.isnan(vector)
            for column in np.flatnonzero(switched):
                assert space.space.parents_of[space.names[column]]


def test_neighbours_hold_every_other_category_once() -> None:
    space = VectorSpace(ConfigurationSpace({"c": list("abcd"), "flag": [False, True]}))
    moved = neighbours(space, np.array([[2.0, 1.0], [0.0, 0.0]]), rng())
    expected = [[c, 1.0] for c in (0.0, 1.0, 3.0)] + [[2.0, 0.0]]
    expected += [[c, 0.0] for c in (1.0, 2.0, 3.0)] + [[0.0, 1.0]]
    assert sorted(map(tuple, moved)) == sorted(map(tuple, expected))


def test_of_very_many_categories_some_are_neighbours() -> None:
    space = VectorSpace(ConfigurationSpace({"c": [f"c{i}" for i in range(1000)]}))
    start, stream = np.array([[500.0]]), rng()
    drawn = [neighbours(space, start, stream)[:, 0] for _ in range(2)]
    assert all(len(set(d)) == len(d) == 100 and 500.0 not in d for d in drawn)
    assert set(drawn[0]) != set(drawn[1])


def test_steps_have_the_stated_widths() -> None:
    space = VectorSpace(ConfigurationSpace({"x": (0.0, 1.0)}))
    steps = neighbours(space, np.full((5_000, 1), 0.5), rng())[:, 0] - 0.5
    # Log-uniform widths from a to b have E[width^2] = (b^2 - a^2) / (2 ln(b / a)).
    variance = (0.3**2 - 0.01**2) / (2.0 * np.log(30.0))
    inside = np.abs(steps) < 0.5  # a few are clipped at the border
    assert inside.mean() > 0.98
    assert steps.std() == pytest.approx(np.sqrt(variance), rel=0.05)
    assert abs(steps.mean()) < 0.005
    assert np.median(np.abs(steps)) == pytest.approx(0.035, rel=0.1)  # few are wide


@pytest.mark.parametrize("start", [0.0, 0.02, 0.98, 1.0])
def test_steps_over_the_border_are_reflected(start: float) -> None:
    space = VectorSpace(ConfigurationSpace({"x": (0.0, 1.0)}))
    moved = neighbours(space, np.full((2000, 1), start), rng())
    assert moved.min() >= 0.0
    assert moved.max() <= 1.0
    at_border = np.isin(moved, [0.0, 1.0]).mean()
    assert at_border < 0.02  # no heap of candidates on the border


def test_neighbours_reach_every_ordinal_and_integer() -> None:
    for hp in (OrdinalHyperparameter("v", list("abcdef")), Integer("v", (3, 8))):
        space = single(hp)
        everything = legal(space, "v")
        for value in everything:
            moved = neighbours(space, np.full((500, 1), value), rng())
            others = everything[everything != value]
            near = others[np.abs(others - value) <= 1.01 * (everything[1] - everything[0])]
            assert set(near) <= set(moved[:, 0])
            assert set(moved[:, 0]) <= set(others)


@pytest.mark.parametrize(
    ("value", "near"), [(1, {2}), (2, {1, 3}), (5, {4, 6}), (999, set()), (1000, set())]
)
def test_steps_of_log_integers_are_at_least_one(value: int, near: set[int]) -> None:
    space = single(Integer("i", (1, 1000), log=True))
    hp = space.space["i"]
    moved = neighbours(space, np.full((300, 1), hp.to_vector(value)), rng())
    assert len(moved) == 300 * 4  # none is rounded away
    np.testing.assert_array_equal(space.canonical(moved), moved)
    values = {int(hp.to_value(v)) for v in moved[:, 0]}
    assert value not in values
    assert near <= values


def test_neighbours_draw_activated_children_at_random() -> None:
    space = VectorSpace(nested())
    knn = np.full(space.d, np.nan)
    knn[space.names.index("algorithm")] = 2.0
    knn[space.names.index("k")] = space.space["k"].to_vector(20)
    moved = neighbours(space, np.repeat(knn[None], 200, axis=0), rng())
    forests = moved[moved[:, space.names.index("algorithm")] == 1.0]
    assert len(forests) == 200
    depths = forests[:, space.names.index("depth")]
    assert len(np.unique(depths)) == 20
    assert depths.mean() == pytest.approx(0.5, abs=0.1)


def test_what_cannot_change_has_no_neighbours() -> None:
    space = single(Constant("k", "x"))
    assert space.quantile(0, np.array([0.7])) == space.sample(1, rng())[0, 0]
    assert neighbours(space, np.ones((3, 1)), rng()).shape == (0, 1)
    assert neighbours(VectorSpace(flat()), np.empty((0, 8)), rng()).shape == (0, 8)


# Completion


@every_space
def test_complete_fills_what_is_missing(make: Make) -> None:
    space = VectorSpace(make())
    vectors = space.sample(200, rng())
    holes = np.where(rng(1).random(vectors.shape) < 0.3, np.nan, vectors)
    whole = space.complete(holes, rng(2))
    whole = whole[space.allowed(whole)]
    assert len(whole) > 100
    assert_valid(space, whole)


def test_complete_imposes_fixed_values_and_their_consequences() -> None:
    space = VectorSpace(nested())
    algorithm, trees, k = (space.names.index(n) for n in ("algorithm", "trees", "k"))
    fixed = np.full(space.d, np.nan)
    fixed[algorithm], fixed[trees] = 1.0, space.space["trees"].to_vector(50)
    vectors = space.sample(100, rng())
    out = space.complete(vectors, rng(1), fixed)
    assert (out[:, algorithm] == 1.0).all()
    assert (out[:, trees] == fixed[trees]).all()
    assert np.isnan(out[:, k]).all()
    assert_valid(space, out)
    fixed[algorithm] = 2.0  # trees play no part now
    assert np.isnan(space.complete(vectors, rng(1), fixed)[:, trees]).all()


# Quantiles


@pytest.mark.parametrize("name", ["i", "c", "flag", "size"])
def test_quantile_hits_every_legal_value_equally(name: str) -> None:
    space = VectorSpace(flat())
    column, n = space.names.index(name), 1000
    drawn = space.quantile(column, (np.arange(n) + 0.5) / n).tolist()
    assert drawn == sorted(drawn)
    values, counts = np.unique(drawn, return_counts=True)
    np.testing.assert_array_equal(values, legal(space, name))
    assert np.ptp(counts) <= 1


def test_quantile_of_log_integers_is_uniform_in_the_logarithm() -> None:
    space = VectorSpace(flat())
    column, n = space.names.index("width"), 5000
    drawn = space.quantile(column, (np.arange(n) + 0.5) / n).tolist()
    assert drawn == sorted(drawn)
    values, counts = np.unique(drawn, return_counts=True)
    np.testing.assert_array_equal(values, legal(space, "width"))
    width = np.arange(1, 65)
    expected = np.log((width + 0.5) / (width - 0.5)) / np.log(64.5 / 0.5)
    np.testing.assert_allclose(counts / n, expected, atol=1.5 / n)


# Features


def test_features_by_hand() -> None:
    space = ConfigurationSpace()
    c, flag = Categorical("c", ["red", "green", "blue"]), Categorical("flag", [False, True])
    size = OrdinalHyperparameter("size", ["s", "m", "l"])
    space.add(c, flag, size, Float("x", (0.0, 2.0)), Constant("k", 5))
    space.add(EqualsCondition(size, c, "blue"), EqualsCondition(flag, c, "red"))
    vectors = VectorSpace(space)
    assert vectors.names == ("c", "k", "x", "flag", "size")
    assert vectors.feature_names == ("c=0", "c=1", "c=2", "x", "flag", "size")
    constant = single(Constant("k", 5))
    np.testing.assert_array_equal(constant.features(np.ones((3, 1))), np.zeros((3, 1)))
    assert constant.feature_names == ("constant",)
    np.testing.assert_array_equal(
        vectors.features(
            np.array(
                [
                    [0.0, 1.0, 0.25, 1.0, np.nan],
                    [1.0, 1.0, 0.5, np.nan, np.nan],
                    [2.0, 1.0, 0.0, np.nan, 1.0],
                ]
            )
        ),
        [
            [1.0, 0.0, 0.0, 0.25, 1.0, np.nan],
            [0.0, 1.0, 0.0, 0.5, np.nan, np.nan],
            [0.0, 0.0, 1.0, 0.0, np.nan, 0.5],
        ],
    )


def test_features_of_options_that_are_none() -> None:
    """Options of an old space, numbers between two options, and inactive ones beside others."""
    space = ConfigurationSpace()
    space.add(
        Categorical("a", ["r", "g", "b"]), Categorical("b", list("pqrs")), Float("x", (0, 1))
    )
    vectors = VectorSpace(space)
    entries = [0.0, -0.0, 2.0, 3.0, -1.0, 0.5, 1e9, np.nan]
    rows = np.array(list(itertools.product(entries, entries, [0.25])))
    expected = [
        [np.nan if np.isnan(entry) else float(entry == option)]
        for row in rows
        for entry, n in zip(row[:2], (3, 4), strict=True)
        for option in range(n)
    ]
    features = vectors.features(rows)
    np.testing.assert_array_equal(features[:, :7], np.reshape(expected, (len(rows), 7)))
    assert (features[:, 7] == 0.25).all()


def test_features_of_many_options_take_little_more_than_their_own_memory() -> None:
    """A comparison with each of hundreds of options would take most of the time of a proposal."""
    space = ConfigurationSpace()
    space.add(Categorical("c", [f"o{i}" for i in range(500)]), Float("x", (0, 1)))
    vectors = VectorSpace(space)
    rows = vectors.sample(200, np.random.default_rng(0))
    size = vectors.features(rows).nbytes
    tracemalloc.start()
    vectors.features(rows)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 1.25 * size


# Keys


def test_keys_are_equal_iff_the_configurations_are() -> None:
    space = VectorSpace(discrete())
    vectors = space.enumerate(10**6)
    assert vectors is not None
    assert len(np.unique(space.keys(vectors))) == len(vectors)
    grid = VectorSpace(ConfigurationSpace({"i": (1, 60), "j": (-60, -1), "c": list("abcde")}))
    vectors = grid.enumerate(18_000)
    assert vectors is not None
    assert len(np.unique(grid.keys(vectors))) == 18_000


def test_keys_of_real_numbers() -> None:
    space = VectorSpace(ConfigurationSpace({"x": (0.0, 1.0), "y": (0.0, 1.0)}))
    vectors = space.sample(20_000, rng())
    assert len(np.unique(space.keys(vectors))) == 20_000
    one = np.array([[0.25, 0.75]])
    assert space.keys(one) == space.keys(one + 1e-15)  # rounding errors of a scale
    assert space.keys(one) != space.keys(one + 1e-9)
    assert space.keys(one) != space.keys(one[:, ::-1])
    assert space.keys(one) != space.keys(np.array([[0.25, np.nan]]))
    assert space.keys(np.array([[0.0, 0.5]])) != space.keys(np.array([[np.nan, 0.5]]))


@pytest.mark.filterwarnings("error")
def test_keys_of_entries_out_of_range() -> None:
    space = VectorSpace(ConfigurationSpace({"x": (0.0, 1.0)}))
    legal_keys = space.keys(np.array([[0.0], [0.5], [1.0], [np.nan]]))
    outside = space.keys(np.array([[1e300], [-1e300], [2.0**23], [2.0**24], [-(2.0**25)]]))
    assert not np.isin(outside, legal_keys).any()


def test_seen_is_membership() -> None:
    space = VectorSpace(discrete())
    vectors = space.enumerate(10**6)
    assert vectors is not None
    keys = space.keys(vectors)
    for observed in (keys[::3], keys[:1], keys[:0], keys):
        np.testing.assert_array_equal(
            space.seen(vectors, np.sort(observed)), np.isin(keys, observed)
        )
    assert space.seen(vectors[:0], np.sort(keys)).shape == (0,)


# Facts about the space


def test_features_that_only_numbers_activate_by_hand() -> None:
    space = VectorSpace(discrete())
    assert [space.feature_names[feature] for feature in space.implied] == ["m"]
    assert VectorSpace(nested()).implied == VectorSpace(flat()).implied == ()
    layers = ConfigurationSpace(
        {"net": ["mlp", "none"], "n": (1, 3), "w": (1, 9), "act": [*"abc"]}
    )
    layers.add(
        EqualsCondition(layers["n"], layers["net"], "mlp"),
        GreaterThanCondition(layers["w"], layers["n"], 1),
        GreaterThanCondition(layers["act"], layers["w"], 4),
    )
    space = VectorSpace(layers)
    found = [space.feature_names[feature] for feature in space.implied]
    assert found == ["w", "act=0", "act=1", "act=2"] and sorted(space.implied) == [*space.implied]


def test_branching_and_volume_by_hand() -> None:
    space = VectorSpace(nested())
    assert [space.names[c] for c in space.branching] == ["algorithm", "kernel"]
    assert space.deciding == space.branching
    knn = np.full((1, space.d), np.nan)
    knn[0, space.names.index("algorithm")] = 2.0
    knn[0, space.names.index("k")] = 0.5
    # 3 algorithms, and 30 neighbours of which at most 16 count
    assert space.volume_bits(knn)[0] == pytest.approx(np.log2(3) + 4.0)
    linear = np.full((1, space.d), np.nan)
    linear[0, space.names.index("algorithm")] = 0.0
    linear[0, space.names.index("kernel")] = 2.0
    linear[0, space.names.index("C")] = 0.5
    assert space.volume_bits(linear)[0] == pytest.approx(2 * np.log2(3) + 4.0)
    assert VectorSpace(flat()).branching == ()
    # n decides too, but its values are not categories
    assert [VectorSpace(discrete()).names[c] for c in VectorSpace(discrete()).branching] == [
        name for name in VectorSpace(discrete()).names if name in ("a", "p", "q", "r")
    ]
    numbers = set(VectorSpace(discrete()).deciding) - set(VectorSpace(discrete()).branching)
    assert {VectorSpace(discrete()).names[c] for c in numbers} == {"n", "m", "b"}
