"""Optuna parameters as one conditional space, and back."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from automl_plugins.adapters.optuna.space import UnionSpace, infer_rules
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)

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


def test_a_random_proposal_always_lies_in_its_distribution() -> None:
    distributions: dict[str, BaseDistribution] = {
        "f": FloatDistribution(1e-7, 10.0, log=True),
        "s": FloatDistribution(-10.2, 10.2, step=0.1),
        "i": IntDistribution(1, 100, log=True),
        "j": IntDistribution(-7, 20, step=3),
    }
    union = UnionSpace(distributions)
    for vector in union.vectors.sample(200, np.random.default_rng(0)):
        for name, distribution in distributions.items():
            value = union.decode(name, vector[union.column[name]])
            assert distribution._contains(distribution.to_internal_repr(value))


def test_rules_of_a_categorical_parent() -> None:
    values = {
        "kind": np.array([0.0, 1.0, 2.0, 0.0]),
        "a": np.array([0.5, NAN, NAN, 0.1]),
        "b": np.array([NAN, 0.5, 0.5, NAN]),
        "shared": np.array([1.0, 1.0, 1.0, 1.0]),
    }
    distributions: dict[str, BaseDistribution] = {
        name: FloatDistribution(0, 1) for name in ("a", "b", "shared")
    }
    distributions["kind"] = CategoricalDistribution(["x", "y", "z"])
    assert infer_rules(values, distributions) == [
        Rule("a", "kind", "in", (0.0,)),
        Rule("b", "kind", "in", (1.0, 2.0)),
    ]


def test_the_nearest_parent_explains_a_nested_child() -> None:
    values = {
        "root": np.array([0.0, 0.0, 0.0, 1.0]),
        "middle": np.array([0.0, 1.0, 1.0, NAN]),
        "leaf": np.array([NAN, 0.5, 0.2, NAN]),
    }
    distributions: dict[str, BaseDistribution] = {
        "root": CategoricalDistribution(["a", "b"]),
        "middle": CategoricalDistribution(["c", "d"]),
        "leaf": FloatDistribution(0, 1),
    }
    assert infer_rules(values, distributions) == [
        Rule("leaf", "middle", "in", (1.0,)),
        Rule("middle", "root", "in", (0.0,)),
    ]


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


def test_what_no_rule_explains_stays_unconditional() -> None:
    values = {"x": np.array([0.0, 0.0, 1.0]), "y": np.array([0.5, NAN, 0.5])}
    distributions: dict[str, BaseDistribution] = {
        "x": CategoricalDistribution(["a", "b"]),
        "y": FloatDistribution(0, 1),
    }
    assert infer_rules(values, distributions) == []


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
