"""Optuna parameters as one conditional space, and back."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import optuna
import pytest
from automl_plugins.adapters.optuna import AutoSampler
from automl_plugins.adapters.optuna._union import UnionSpace
from automl_plugins.adapters.optuna.space import are_equal, infer_rules, space_of_trials
from automl_plugins.adapters.optuna.trials import StudyColumns, read_trial
from ConfigSpace import (
    Categorical,
    ConfigurationSpace,
    Constant,
    Float,
    InCondition,
    Integer,
    OrdinalHyperparameter,
)
from ConfigSpace.hyperparameters import CategoricalHyperparameter
from effort import count_calls
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.trial import create_trial

from automl_plugins.replay import Table
from automl_plugins.spaces.choices import ExactCategorical
from automl_plugins.spaces.conditions import Rule

NAN = math.nan


@pytest.mark.parametrize(
    ("distribution", "values"),
    [
        (FloatDistribution(-2.0, 5.0), [-2.0, 0.3, 5.0]),
        (FloatDistribution(1e-7, 10.0, log=True), [1e-7, 1e-3, 10.0]),
        (FloatDistribution(-10.2, 10.2, step=0.1), [-10.2, 0.0, 10.2]),
        (IntDistribution(-3, 12), [-3, 0, 12]),
        (IntDistribution(1, 1000, log=True), [1, 2, 31, 1000]),
        (IntDistribution(2, 20, step=3), [2, 5, 20]),
        (CategoricalDistribution([True, 1.5, None, "x"]), [True, None, "x"]),
    ],
)
def test_values_survive_the_round_trip(distribution: BaseDistribution, values: list[Any]) -> None:
    union = UnionSpace({"p": distribution})
    internal = np.array([distribution.to_internal_repr(v) for v in values])
    vector = union.encode("p", internal)
    decoded = [union.decode("p", v) for v in vector]
    for got, want in zip(decoded, values, strict=True):
        assert type(got) is type(want)
        assert got == want or got == pytest.approx(want, rel=1e-9, abs=1e-9)
    # Canonical: what is proposed again has the very same vector, so it counts as seen.
    assert np.array_equal(union.vectors.canonical(vector[:, None])[:, 0], vector)


@pytest.mark.parametrize("log", [False, True])
def test_the_ends_of_a_range_are_read_as_they_were_proposed(log: bool) -> None:
    """ConfigSpace rounds them to 13 decimals, so that a value may lie beyond them."""
    for low, high in np.sort(10.0 ** np.random.default_rng(0).uniform(-6, 0, (50, 2))):
        union = UnionSpace({"p": FloatDistribution(low, high, log=log)})
        proposed = np.array([0.0, 1e-3, 0.5, 1.0])
        read = union.encode("p", np.array([union.decode("p", entry) for entry in proposed]))
        keys = [union.vectors.keys(column[:, None]) for column in (proposed, read)]
        np.testing.assert_array_equal(*keys)


@pytest.mark.parametrize("memory", [None, "mlp"])
def test_the_best_end_of_a_range_is_evaluated_once(memory: str | None) -> None:
    sampler = AutoSampler(memory, seed=0)
    study = optuna.create_study(sampler=sampler)

    def objective(trial: optuna.Trial) -> float:
        rate = trial.suggest_float("learning_rate_init", 1e-5, 0.02 / 3)
        return trial.suggest_float("alpha", 1e-8, 0.1, log=True) - rate

    study.optimize(objective, n_trials=16)
    assert len({tuple(trial.params.values()) for trial in study.trials}) == 16


def test_integer_parents_have_thresholds_in_either_direction() -> None:
    values = {
        "n": np.array([1.0, 2.0, 4.0]),
        "above": np.array([NAN, NAN, 7.0]),
        "below": np.array([7.0, NAN, NAN]),
    }
    distributions: dict[str, BaseDistribution] = {n: IntDistribution(1, 9) for n in values}
    assert infer_rules(values, distributions) == [
        Rule("above", "n", "above", (2.0,)),
        Rule("below", "n", "below", (2.0,)),
    ]
    union = UnionSpace(distributions, infer_rules(values, distributions))
    sample = union.vectors.sample(100, np.random.default_rng(0))
    for vector in sample:
        n = union.decode("n", vector[union.column["n"]])
        assert math.isnan(vector[union.column["above"]]) == (n <= 2)
        assert math.isnan(vector[union.column["below"]]) == (n >= 2)


def test_values_of_old_ranges_stay_finite_or_missing() -> None:
    union = UnionSpace({"x": FloatDistribution(1.0, 10.0, log=True)})
    encoded = union.encode("x", np.array([100.0, 0.0, -1.0, NAN]))
    assert encoded[0] == pytest.approx(2.0)
    assert np.isnan(encoded[1:]).all()


def test_a_rule_whose_parent_range_has_moved_is_dropped() -> None:
    distributions: dict[str, BaseDistribution] = {
        "n": IntDistribution(10, 20),
        "child": FloatDistribution(0, 1),
    }
    union = UnionSpace(distributions, [Rule("child", "n", "above", (2.0,))])
    assert not np.isnan(union.vectors.sample(20, np.random.default_rng(0))).any()


def test_choices_that_are_gone_are_missing() -> None:
    union = UnionSpace({"c": CategoricalDistribution(["a", "b"])}, ordinal={"c": ["b", "a"]})
    np.testing.assert_array_equal(
        union.encode("c", np.array([0.0, 1.0, 2.0, NAN])), [1, 0, NAN, NAN]
    )


# --- the space of given trials ----------------------------------------------------------------


def space_of(distributions: Mapping[str, BaseDistribution], rows: Sequence[Any]) -> Any:
    asked = [(row, {name: distributions[name] for name in row}) for row in rows]
    return space_of_trials([create_trial(value=1.0, params=p, distributions=d) for p, d in asked])


DISTRIBUTIONS: dict[str, tuple[BaseDistribution, Any]] = {
    "x": (FloatDistribution(-1, 2), Float("x", (-1.0, 2.0))),
    "rate": (FloatDistribution(1e-3, 1, log=True), Float("rate", (1e-3, 1.0), log=True)),
    "n": (IntDistribution(1, 9), Integer("n", (1, 9))),
    "wide": (IntDistribution(1, 1024, log=True), Integer("wide", (1, 1024), log=True)),
    "kind": (CategoricalDistribution(("b", "a")), Categorical("kind", ["b", "a"])),
    "even": (
        IntDistribution(2, 8, step=2),
        OrdinalHyperparameter("even", [2, 4, 6, 8], default_value=4),
    ),
    "halves": (
        FloatDistribution(0, 1, step=0.5),
        OrdinalHyperparameter("halves", [0.0, 0.5, 1.0], default_value=0.5),
    ),
    "whole": (
        FloatDistribution(0, 2, step=1.0),
        OrdinalHyperparameter("whole", [0.0, 1.0, 2.0], default_value=1.0),
    ),
    "many steps": (FloatDistribution(0, 1, step=1e-4), Float("many steps", (0.0, 1.0))),
    "one": (IntDistribution(3, 3), Constant("one", 3)),
}


def test_distributions_become_hyperparameters() -> None:
    row = {"kind": "a", "even": 4, "wide": 5, "n": 3, "one": 3, "whole": 1.0}
    distributions = {name: d for name, (d, _) in DISTRIBUTIONS.items()}
    space = space_of(distributions, [dict.fromkeys(DISTRIBUTIONS, 0.5) | row])
    assert dict(space) == {name: expected for name, (_, expected) in DISTRIBUTIONS.items()}


def test_runs_without_a_stepped_parameter_get_its_middle_as_of_a_range() -> None:
    """Not the lowest value, with which no run of the memory was made."""
    stepped = {"even": IntDistribution(2, 10, step=2), "order": CategoricalDistribution("abc")}
    found = UnionSpace(stepped, ordinal={"order": ["c", "b", "a"]}).vectors.space
    assert found["even"].default_value == 6 and found["order"].default_value == "b"
    space = space_of(stepped, [{"even": 2, "order": "a"}])
    assert space["even"].default_value == 6 and space["order"].default_value == "a"


def test_runs_without_a_choice_of_numbers_get_the_usual_one() -> None:
    """Of the depths that users list, the first is the least."""
    choices: dict[str, list[Any]] = {
        "bins": [63, 255, 127],
        "depth": [3, 5, 7, None],
        "word": ["b", "a"],
        "one": ["b", 2],
        "on": [True, False],
    }
    distributions = {n: CategoricalDistribution(c) for n, c in choices.items()}
    first = {name: values[0] for name, values in choices.items()}
    for space in (UnionSpace(distributions).vectors.space, space_of(distributions, [first])):
        found = {name: space[name].default_value for name in space}
        assert found == {"bins": 127, "depth": None, "word": "b", "one": "b", "on": True}


def test_the_only_choice_may_be_nan() -> None:
    distribution = CategoricalDistribution([NAN])
    trial = create_trial(value=1.0, params={"c": NAN}, distributions={"c": distribution})
    space = space_of_trials([trial])
    assert space is not None and space["c"].legal_value(NAN)
    union = UnionSpace({"c": CategoricalDistribution([NAN, NAN])})
    (vector,) = union.encode_all([{"c": 0.0}])
    assert math.isnan(union.values(vector, np.random.default_rng(0))["c"])


def test_conditions_of_a_space_are_inferred() -> None:
    distributions = {
        "kernel": CategoricalDistribution(("linear", "poly", "rbf")),
        "gamma": FloatDistribution(0, 1),
        "degree": IntDistribution(2, 5),
    }
    rows = [
        {"kernel": "linear"},
        {"kernel": "rbf", "gamma": 0.5},
        {"kernel": "poly", "gamma": 0.1, "degree": 3},
    ]
    conditions = {c.child.name: c for c in space_of(distributions, rows).conditions}
    assert conditions.keys() == {"gamma", "degree"}
    assert all(isinstance(c, InCondition) for c in conditions.values())
    assert set(conditions["gamma"].values) == {"poly", "rbf"}
    assert list(conditions["degree"].values) == ["poly"]


@pytest.mark.parametrize(
    ("last", "n"),
    [(IntDistribution(1, 5), 3), (IntDistribution(1, 9, step=2), 3), (IntDistribution(2, 2), 2)],
)
def test_a_condition_whose_threshold_is_gone_is_dropped(last: IntDistribution, n: int) -> None:
    first: dict[str, BaseDistribution] = {"n": IntDistribution(1, 9), "x": FloatDistribution(0, 1)}
    rows: list[dict[str, Any]] = [{"n": 2}, {"n": 6}, {"n": 8, "x": 0.5}]
    trials = [
        create_trial(value=1.0, params=row, distributions={name: first[name] for name in row})
        for row in rows
    ]
    trials.append(create_trial(value=1.0, params={"n": n}, distributions={"n": last}))
    space = space_of_trials(trials)
    assert space is not None and not space.conditions and set(space) == {"n", "x"}


def test_values_on_a_grid_of_tenths_are_found_in_their_table() -> None:
    def objective(trial: optuna.Trial) -> float:
        return trial.suggest_float("x", 0, 1, step=0.1) + trial.suggest_float("y", -1, 2, step=0.3)

    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    study.enqueue_trial({"x": 0.3})  # the grid's own value is 0.30000000000000004
    study.optimize(objective, n_trials=60)
    table = Table.from_studies(study, name="t")
    for trial in study.trials:
        assert table.find(trial.params).distance == 0


def test_conditions_are_added_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """ConfigSpace sorts a space anew at each addition: one by one, 40 branches take a second."""
    calls, add = list[int](), ConfigurationSpace.add

    def counted(space: ConfigurationSpace, *args: Any) -> None:
        calls.append(len(args))
        add(space, *args)

    monkeypatch.setattr(ConfigurationSpace, "add", counted)
    names = [f"x{i}" for i in range(5)]
    kind = CategoricalDistribution([*range(5)])
    parts: dict[str, BaseDistribution] = {name: FloatDistribution(0.0, 1.0) for name in names}
    rules = [Rule(name, "kind", "in", (float(i),)) for i, name in enumerate(names)]
    union = UnionSpace({"kind": kind} | parts, rules)
    assert len(union.vectors.space.conditions) == 5 and len(calls) == 2


@pytest.mark.parametrize("first", ["a0", "a1\0"], ids=["plain", "exact"])
def test_many_branches_are_told_apart_by_their_conditions_alone(
    first: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ConfigSpace compares the choices of 100 branches thousands of times, one by one."""
    branches = [first, *(f"a{i}" for i in range(1, 20))]
    distributions: dict[str, BaseDistribution] = {"kind": CategoricalDistribution(branches)}
    distributions |= {f"{name}{i}": FloatDistribution(0, 1) for i in range(20) for name in "xy"}
    rules = [Rule(f"{name}{i}", "kind", "in", (float(i),)) for i in range(20) for name in "xy"]
    compared = list[str]()
    for kind in (CategoricalHyperparameter, ExactCategorical):

        def counted(self: Any, other: Any, equal: Any = kind.__eq__) -> Any:
            compared.extend([self.name] if getattr(other, "name", None) == self.name else [])
            return equal(self, other)

        monkeypatch.setattr(kind, "__eq__", counted)
    space = UnionSpace(distributions, rules).vectors.space
    assert not compared
    # The groups are those that ConfigSpace finds, and the space is equal to its own.
    groups = _groups(space)
    assert sorted(groups) == sorted([f"x{i}", f"y{i}"] for i in range(20))
    if first == "a0":  # ConfigSpace takes the other for "a1"
        own = ConfigurationSpace()
        own.add(space.values())
        own.add([InCondition(c.child, c.parent, c.values) for c in space.conditions])
        assert own == space and space == own and _groups(own) == groups


def _groups(space: ConfigurationSpace) -> list[list[str]]:
    """The children that ConfigSpace keeps together, as they hang on the same value."""
    nodes = space._dag.minimum_conditions
    return [sorted(child.name for child in node.unique_children.values()) for node in nodes]


NANS = (math.nan, "a"), (float("nan"), "a")
PAIRS: list[tuple[Any, Any]] = [
    (("a", 1), ("a", 1)),
    (("a", 1), ("a", True)),
    NANS,
    ((1, 2), (2, 1)),
]


@pytest.mark.parametrize(("first", "second"), PAIRS, ids=str)
def test_choices_are_equal_as_optuna_says(first: Any, second: Any) -> None:
    one, other = CategoricalDistribution(first), CategoricalDistribution(second)
    assert are_equal(one, other) == (one == other)
    assert not are_equal(one, FloatDistribution(0, 1)) and are_equal(one, one)


def test_equal_choices_of_many_trials_are_not_compared_one_by_one() -> None:
    choices = [[f"o{i}" for i in range(1000)] for _ in range(5)]
    trials = [
        create_trial(
            value=1.0, params={"x": "o1"}, distributions={"x": CategoricalDistribution(own)}
        )
        for own in choices
    ]
    rows = [read_trial(trial, maximize=False) for trial in trials]
    assert count_calls(lambda: StudyColumns(rows)) < 500
