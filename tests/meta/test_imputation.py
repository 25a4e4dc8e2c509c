"""Values of hyperparameters that a recorded run does not have."""

import itertools
import math
from typing import Any

import numpy as np
import pytest
from ConfigSpace import (
    AndConjunction,
    Categorical,
    ConfigurationSpace,
    EqualsCondition,
    Float,
    ForbiddenEqualsClause,
    GreaterThanCondition,
    InCondition,
    Integer,
    LessThanCondition,
    OrConjunction,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from automl_plugins.meta import MetaDataset, TaskRecord, bundled, portfolio
from automl_plugins.meta.alignment import impute
from automl_plugins.meta.designs.design import spread
from automl_plugins.spaces.values import to_values, to_vector
from automl_plugins.spaces.vector_space import VectorSpace


def pipelines(*, default: str = "svm") -> ConfigurationSpace:
    """A scaler, and an algorithm; boosting has a booster with hyperparameters of its own."""
    space = ConfigurationSpace()
    scaler = Categorical("scaler", ["none", "standard"])
    algorithm = Categorical("algorithm", ["svm", "linear", "boosting"], default=default)
    C, booster = Float("C", (0.1, 10.0), default=1.0), Categorical("booster", ["linear", "trees"])
    depth, rate = Integer("depth", (1, 9), default=5), Float("rate", (0.1, 0.9), default=0.5)
    space.add(scaler, algorithm, C, booster, depth, rate)
    space.add(
        InCondition(C, algorithm, ["svm", "linear"]),
        EqualsCondition(booster, algorithm, "boosting"),
        EqualsCondition(depth, booster, "trees"),
        EqualsCondition(rate, algorithm, "boosting"),
    )
    return space


def imputed(space: ConfigurationSpace, *runs: dict[str, Any]) -> list[dict[str, Any]]:
    vectors = VectorSpace(space)
    recorded = np.array([to_vector(space, run) for run in runs])
    return to_values(space, impute(vectors, recorded))


@pytest.mark.parametrize(
    ("run", "expected"),
    [
        ({"rate": 0.2}, {"algorithm": "boosting", "booster": "linear", "rate": 0.2}),
        ({"depth": 3}, {"algorithm": "boosting", "booster": "trees", "depth": 3, "rate": 0.5}),
        ({"C": 2.0}, {"algorithm": "svm", "C": 2.0}),
        ({}, {"algorithm": "svm", "C": 1.0}),
        # What was recorded stays: a rate that nobody asked for is not one.
        ({"algorithm": "linear", "rate": 0.2}, {"algorithm": "linear", "C": 1.0}),
    ],
)
def test_parents_are_those_of_the_recorded_branch(
    run: dict[str, Any], expected: dict[str, Any]
) -> None:
    for scaler in ("none", "standard"):
        (found,) = imputed(pipelines(), {"scaler": scaler} | run)
        assert found == pytest.approx({"scaler": scaler} | expected)


def test_each_run_has_a_branch_of_its_own() -> None:
    found = imputed(pipelines(), {"rate": 0.2}, {"C": 2.0}, {"depth": 3}, {"rate": 0.3})
    assert [run["algorithm"] for run in found] == ["boosting", "svm", "boosting", "boosting"]
    assert [run.get("booster") for run in found] == ["linear", None, "trees", "linear"]


def test_the_default_stays_where_the_branch_allows_it() -> None:
    assert imputed(pipelines(default="linear"), {"C": 2.0})[0]["algorithm"] == "linear"
    # ``a`` is on two branches, ``b`` on one of them: the parent is one that both have.
    space, p = ConfigurationSpace(), Categorical("p", ["x", "y", "z"])
    a, b = Float("a", (0.0, 1.0)), Float("b", (0.0, 1.0))
    space.add(p, a, b)
    space.add(InCondition(a, p, ["x", "z"]), EqualsCondition(b, p, "z"))
    assert imputed(space, {"a": 0.5, "b": 0.5})[0]["p"] == "z"
    assert imputed(space, {"a": 0.5})[0]["p"] == "x"


def test_thresholds_and_conjunctions() -> None:
    space = ConfigurationSpace()
    n, x, p = Integer("n", (1, 5000), log=True), Float("x", (0.0, 1.0)), Categorical("p", "ab")
    both, either = Float("both", (0.0, 1.0)), Float("either", (0.0, 1.0))
    space.add(n, x, p, both, either)
    space.add(
        AndConjunction(GreaterThanCondition(both, n, 4000), EqualsCondition(both, p, "b")),
        OrConjunction(LessThanCondition(either, x, 0.1), EqualsCondition(either, p, "b")),
    )
    (found,) = imputed(space, {"both": 0.5})
    assert found["n"] > 4000 and found["p"] == "b" and found["both"] == 0.5
    (found,) = imputed(space, {"either": 0.5})
    assert found["x"] < 0.1 and found["p"] == "a" and found["either"] == 0.5


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_a_branch_is_found_if_there_is_one(data: st.DataObject) -> None:
    """Against all values of all missing parents."""
    space = ConfigurationSpace()
    names = [f"c{i}" for i in range(5)]
    hyperparameters = [Categorical(name, [0, 1, 2]) for name in names]
    space.add(hyperparameters)
    for child in range(1, 5):
        if data.draw(st.booleans()):
            parent = data.draw(st.integers(0, child - 1))
            values = data.draw(st.lists(st.integers(0, 2), min_size=1, max_size=2, unique=True))
            space.add(InCondition(hyperparameters[child], hyperparameters[parent], values))
    known = data.draw(st.lists(st.booleans(), min_size=5, max_size=5))
    recorded = {
        name: data.draw(st.integers(0, 2))
        for name, there in zip(names, known, strict=True)
        if there
    }
    vectors = VectorSpace(space)
    (found,) = imputed(space, recorded)

    def kept(values: dict[str, Any]) -> int:
        active = vectors.activate(to_vector(space, values)[None])[0]
        return sum(not math.isnan(active[space.index_of[name]]) for name in recorded)

    every = itertools.product(range(3), repeat=5)
    most = max(kept(dict(zip(names, values, strict=True)) | recorded) for values in every)
    assert all(found[name] == value for name, value in recorded.items() if name in found)
    if most == len(recorded):
        assert recorded.items() <= found.items()


# --- memories of several algorithms -------------------------------------------------------------


def test_a_memory_of_one_algorithm_serves_a_search_among_several() -> None:
    space = ConfigurationSpace({"rate": (0.1, 0.9), "scaler": ["none", "standard"]})
    runs = [{"rate": 0.2, "scaler": "standard"}, {"rate": 0.7, "scaler": "none"}]
    memory = MetaDataset.from_records(
        [TaskRecord("t", runs, np.arange(2.0), space=space)], pipelines()
    )
    assert memory.coverage[0].imputed == {"algorithm": 2, "booster": 2}
    (back,) = memory.records()
    for found, run in zip(back.configurations, runs, strict=True):
        assert found == pytest.approx(run)


def test_runs_of_other_branches_are_left_out() -> None:
    runs = [
        {"scaler": "standard", "algorithm": "svm", "C": 2.0},
        {
            "scaler": "standard",
            "algorithm": "boosting",
            "booster": "trees",
            "rate": 0.3,
            "depth": 2,
        },
        {"scaler": "none", "algorithm": "boosting", "booster": "linear", "rate": 0.4},
    ]
    record = TaskRecord("t", runs, np.arange(3.0), space=pipelines())
    asked = ConfigurationSpace({"rate": (0.1, 0.9), "scaler": ["none", "standard"], "new": (0, 8)})
    memory = MetaDataset.from_records([record], asked)
    assert memory.losses.tolist() == [1.0, 2.0] and memory.coverage[0].n_unrelated == 1
    assert memory.coverage[0].imputed == {"new": 2}  # what nobody knew is imputed
    assert "1 of another branch" in str(memory.coverage[0])
    # Trees alone: both of its hyperparameters depend on the booster, which is not asked for.
    trees = ConfigurationSpace({"rate": (0.1, 0.9), "depth": (1, 9)})
    assert MetaDataset.from_records([record], trees).losses.tolist() == [1.0]


# --- what all runs of a bundled memory had ------------------------------------------------------


@pytest.mark.parametrize(
    ("learner", "unknown", "expected"),
    [
        # Trees of any depth are deep ones, or the choice that means it.
        ("random_forest", Integer("max_depth", (2, 12)), 12),
        ("random_forest", Integer("max_depth", (2, 50)), 20),
        ("random_forest", Categorical("max_depth", [4, 8, None]), None),
        ("lightgbm", Categorical("max_depth", [4, -1, 8]), -1),
        ("random_forest", Categorical("max_depth", [4, 8, 16]), 16),
        ("random_forest", Categorical("max_leaf_nodes", [4, 8, None]), None),
        ("random_forest", Integer("max_leaf_nodes", (10, 100), default=30), 30),
        ("random_forest", Float("ccp_alpha", (0.0, 0.05)), 0.0),
        ("lightgbm", Categorical("max_bin", [63, 127, 300], default=63), 300),
        ("lightgbm", Categorical("boosting_type", ["dart", "gbdt"]), "gbdt"),
        ("lightgbm", Categorical("boosting_type", ["dart", "rf"]), "dart"),
        # Of the number of trees more would be better.
        ("random_forest", Integer("n_estimators", (10, 200), default=150), 150),
    ],
)
def test_suggestions_have_what_all_runs_of_a_bundled_memory_had(
    learner: str, unknown: Any, expected: Any
) -> None:
    """A forest with the recorded shares of columns has trees of any depth, not the shallowest."""
    space = ConfigurationSpace(seed=0)
    names = ("num_leaves", "min_child_samples")
    if learner == "random_forest":
        names = ("max_features", "min_samples_leaf")
    space.add([bundled(learner).space[name] for name in names])
    space.add(unknown)
    memory = MetaDataset.from_records(bundled(learner).records(), space)
    column = space.index_of[unknown.name]
    assert memory.imputed is not None and memory.imputed[:, column].all()
    assert {*(v[unknown.name] for v in to_values(space, memory.vectors))} == {expected}
    design = portfolio(space, memory, None, k=7)
    found = [configuration[unknown.name] for configuration in design.configurations]
    assert found[:5] == [expected] * 5 and {*found[5:]} != {expected}


def test_runs_of_users_have_the_defaults_of_the_space() -> None:
    space = ConfigurationSpace({"max_features": (0.0, 1.0), "max_depth": (2, 12)})
    runs = [{"max_features": x} for x in (0.1, 0.5)]
    for tags in ({}, {"learner": "mine"}):
        memory = MetaDataset.from_records(
            [TaskRecord("t", runs, np.array([0.1, 0.2]), tags=tags)], space
        )
        assert [v["max_depth"] for v in to_values(space, memory.vectors)] == [7, 7]


# --- what is suggested of hyperparameters that no run has --------------------------------------


def suggested(space: ConfigurationSpace, *runs: dict[str, Any], unknown: str) -> list[Any]:
    """The values of ``unknown``, which no run has, in configurations made of the runs."""
    vectors = VectorSpace(space)
    rows = np.array([to_vector(space, run) for run in runs])
    mask = np.array([name == unknown for name in vectors.names])
    defaults = to_vector(space, {name: space[name].default_value for name in space})
    found = spread(vectors, rows, mask, defaults)
    known = ~mask
    np.testing.assert_array_equal(found[:, known], rows[:, known])
    return [run.get(unknown) for run in to_values(space, found)]


@pytest.mark.parametrize(
    ("unknown", "default", "expected"),
    [
        # After a corner and the middle the Sobol sequence has 3/4, 1/4, 3/8, 7/8.
        (Float("z", (0.0, 1.0)), 0.5, [0.75, 0.25, 0.375, 0.875]),
        (Float("z", (1.0, 10000.0), log=True), 100.0, [1000.0, 10.0, 10**1.5, 10**3.5]),
        (Integer("z", (1, 8), default=3), 3, [6, 2, 4, 8]),
        (Categorical("z", ["a", "b", "c"], default="c"), "c", ["c", "a", "b", "c"]),
    ],
)
def test_values_that_no_run_has_are_spread(
    unknown: Any, default: Any, expected: list[Any]
) -> None:
    space = ConfigurationSpace({"x": (0.0, 1.0)})
    space.add(unknown)
    runs = [{"x": x / 10, "z": default} for x in range(9)]
    found, expected = suggested(space, *runs, unknown="z"), [default] * 5 + expected
    assert found == (pytest.approx(expected) if isinstance(default, float) else expected)
    for n in range(1, 9):
        assert suggested(space, *runs[:n], unknown="z") == found[:n]


def test_columns_are_spread_in_ways_of_their_own() -> None:
    space = VectorSpace(ConfigurationSpace({name: (0.0, 1.0) for name in "abcx"}))
    rows = np.full((11, 4), 0.5)
    found = spread(space, rows, np.array([True, True, True, False]), np.full(4, 0.5))
    assert (found[:5] == 0.5).all() and (found[:, 3] == 0.5).all()
    # Sobol: each lies in an octant of its own.
    assert len({*map(tuple, found[5:, :3] >= 0.5)}) == 6


def test_what_was_chosen_forbidden_or_inactive_is_not_spread() -> None:
    space = ConfigurationSpace({"x": (0.0, 1.0), "z": (0.0, 1.0), "c": ["a", "b"]})
    chosen = [{"x": 0.5, "z": 0.3, "c": "a"}] * 7
    assert suggested(space, *chosen, unknown="z") == pytest.approx([0.3] * 7)
    space.add(ForbiddenEqualsClause(space["c"], "b"))
    allowed = [{"x": x / 10, "z": 0.5, "c": "a"} for x in range(7)]
    assert suggested(space, *allowed, unknown="c") == ["a"] * 7
    conditional = ConfigurationSpace({"c": ["a", "b"], "z": (0.0, 1.0)})
    conditional.add(EqualsCondition(conditional["z"], conditional["c"], "b"))
    active: dict[str, Any] = {"c": "b", "z": 0.5}
    runs = [*[active] * 5, {"c": "a"}, active]
    assert suggested(conditional, *runs, unknown="z") == [0.5] * 5 + [None, 0.25]


def test_what_is_arbitrary_decides_nothing_and_no_run_has_it() -> None:
    recorded = ConfigurationSpace({"depth": (1, 9), "rate": (0.1, 0.9)})
    runs = [{"depth": 3, "rate": 0.2}, {"depth": 4, "rate": 0.4}]
    record = TaskRecord("t", runs, np.array([0.1, 0.2]), space=recorded)
    dataset = MetaDataset.from_records([record], pipelines())
    names = np.array(dataset.vector_space.names)
    assert {*names[dataset.unknown]} == {"algorithm", "booster", "scaler"}
    assert {*names[dataset.arbitrary]} == {"scaler"}
    assert not MetaDataset.from_records([record]).unknown.any()


def test_what_no_run_of_a_branch_has_is_unknown() -> None:
    recorded = ConfigurationSpace({"model": ["rf", "gb"], "depth": (1, 20)})
    wider = ConfigurationSpace({"model": ["rf", "gb"], "depth": (1, 20), "rate": (0.0, 1.0)})
    wider.add(EqualsCondition(wider["rate"], wider["model"], "gb"))
    runs: list[dict[str, Any]] = [{"model": m, "depth": 3} for m in ("rf", "gb")]
    record = TaskRecord("t", runs, np.array([0.1, 0.2]), space=recorded)
    dataset = MetaDataset.from_records([record], wider)
    assert dataset.unknown.tolist() == [name == "rate" for name in dataset.vector_space.names]
    # Inactive in all runs, it is not one of which they say nothing.
    other = MetaDataset.from_records([record.rows({0: runs[0]})], wider)
    assert not other.unknown.any()
