"""Hyperopt search spaces in ConfigSpace's language."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from automl_plugins.adapters.hyperopt import translate
from automl_plugins.adapters.hyperopt.space import is_space
from ConfigSpace import Configuration, ConfigurationSpace
from ConfigSpace.hyperparameters import (
    CategoricalHyperparameter,
    NormalFloatHyperparameter,
    NormalIntegerHyperparameter,
    OrdinalHyperparameter,
    UniformFloatHyperparameter,
    UniformIntegerHyperparameter,
)
from hyperopt import Domain, Trials, hp, pyll, rand, space_eval, tpe
from hyperopt.pyll import scope
from hypothesis import given, settings
from hypothesis import strategies as st


def one(node: Any) -> Any:
    (hyperparameter,) = translate({"x": node}).space.values()
    return hyperparameter


# --- one hyperparameter ----------------------------------------------------------------------

FLOATS = [
    (hp.uniform("x", -2, 3), -2.0, 3.0, False),
    (hp.loguniform("x", math.log(0.01), math.log(100)), 0.01, 100.0, True),
    # z(0.9999) = 3.7190165
    (hp.lognormal("x", 1.0, 0.5), math.exp(1 - 0.5 * 3.7190165), math.exp(1 + 0.5 * 3.7190165), 1),
    (hp.quniform("x", 0, 1e6, 7), 0.0, 1e6, False),  # a grid with too many values
]


@pytest.mark.parametrize(("node", "low", "high", "log"), FLOATS)
def test_floats(node: Any, low: float, high: float, log: bool) -> None:
    hyperparameter = one(node)
    assert type(hyperparameter) is UniformFloatHyperparameter
    assert hyperparameter.lower == pytest.approx(low, rel=1e-6)
    assert hyperparameter.upper == pytest.approx(high, rel=1e-6)
    assert hyperparameter.log == bool(log)


INTEGERS = [
    (hp.randint("x", 5), 0, 4, False),
    (hp.randint("x", 3, 9), 3, 8, False),
    (hp.uniformint("x", 1, 4), 1, 4, False),
    (scope.int(hp.quniform("x", 1, 4.4, 1)), 1, 4, False),
    (hp.quniform("x", 0.4, 4.6, 1), 0, 5, False),  # round(0.4) is 0, round(4.6) is 5
    (hp.qloguniform("x", 0, math.log(50), 1), 1, 50, True),
]


@pytest.mark.parametrize(("node", "low", "high", "log"), INTEGERS)
def test_integers(node: Any, low: int, high: int, log: bool) -> None:
    hyperparameter = one(node)
    assert type(hyperparameter) is UniformIntegerHyperparameter
    assert (hyperparameter.lower, hyperparameter.upper, hyperparameter.log) == (low, high, log)


GRIDS = [
    (hp.quniform("x", 0, 10, 3), [0, 3, 6, 9]),
    (hp.quniform("x", 0, 1, 0.25), [0.0, 0.25, 0.5, 0.75, 1.0]),
    (hp.qloguniform("x", 0, math.log(8.9), 2), [2, 4, 6, 8]),
    (hp.qloguniform("x", -1, 1, 1), [0, 1, 2, 3]),  # 0 has no logarithm
    (hp.quniform("x", 1.8, 2.2, 1), [2]),
]


@pytest.mark.parametrize(("node", "values"), GRIDS)
def test_grids(node: Any, values: list[float]) -> None:
    hyperparameter = one(node)
    assert type(hyperparameter) is OrdinalHyperparameter
    assert list(hyperparameter.sequence) == values


def test_normal_distributions_have_their_quantiles_for_a_range() -> None:
    real, whole = one(hp.normal("x", 1.0, 2.0)), one(hp.qnormal("x", 5, 2, 1))
    assert type(real) is NormalFloatHyperparameter
    assert (real.mu, real.sigma) == (1.0, 2.0)
    assert (real.lower, real.upper) == pytest.approx((1 - 2 * 3.7190165, 1 + 2 * 3.7190165))
    assert type(whole) is NormalIntegerHyperparameter
    assert (whole.mu, whole.sigma, whole.lower, whole.upper) == (5.0, 2.0, -2, 12)


def test_every_value_drawn_is_a_value_of_the_translation() -> None:
    space = {
        **{f"float{i}": relabelled(node, f"float{i}") for i, (node, *_) in enumerate(FLOATS)},
        **{f"int{i}": relabelled(node, f"int{i}") for i, (node, *_) in enumerate(INTEGERS)},
        **{f"grid{i}": relabelled(node, f"grid{i}") for i, (node, _) in enumerate(GRIDS)},
    }
    known = translate(space)
    seen: dict[str, set[Any]] = {}
    for drawn in draws(space, 400):
        for label, value in known.values(drawn).items():
            inside = known.space[label].legal_value(value)
            # normal ones have no ends, and rounding makes values from beyond the ends of a range
            assert inside or label in ("float2", "grid2"), (label, value)
            seen.setdefault(label, set()).add(value)
    for i, (_, low, high, _) in enumerate(INTEGERS[:4]):
        assert seen[f"int{i}"] == set(range(low, high + 1))
    assert seen["grid0"] == {0, 3, 6, 9}


def relabelled(node: Any, label: str) -> Any:
    new: dict[Any, Any] = {}
    for below in pyll.dfs(node):
        if below.name == "hyperopt_param":
            new[below] = scope.hyperopt_param(label, new[below.arg["obj"]])
        else:
            new[below] = below.clone_from_inputs([new[i] for i in below.inputs()])
    return new[node]


def draws(space: Any, n: int, seed: int = 0) -> list[dict[str, Any]]:
    """What random search draws, by label."""
    trials = Trials()
    domain = Domain(None, space, pass_expr_memo_ctrl=False)
    documents = rand.suggest(list(range(n)), domain, trials, seed)
    return [{k: v[0] for k, v in d["misc"]["vals"].items() if len(v)} for d in documents]


# --- options ---------------------------------------------------------------------------------


def test_options_are_called_by_their_values_or_names() -> None:
    def relu() -> None: ...

    space = {
        "depth": hp.choice("depth", [None, 5, 10]),
        "layers": hp.choice("layers", [(64,), (64, 32), [1]]),
        "model": hp.choice("model", [{"type": "svm", "C": hp.uniform("C", 0, 1)}, {"type": "nb"}]),
        "same": hp.choice("same", [{"k": hp.randint("k", 3)}, {"k2": hp.randint("k2", 3)}]),
        "f": hp.choice("f", [relu, max]),
        "bool": hp.choice("bool", [True, False]),
        "clash": hp.choice("clash", [True, 1, "a"]),
        "numpy": hp.choice("numpy", [np.float64(0.5), np.int64(2), np.zeros(3)]),
    }
    assert translate(space).options == {
        "depth": (None, 5, 10),
        "layers": ("(64,)", "(64, 32)", "(1,)"),
        "model": ("svm", "nb"),
        "same": ("same[0]", "same[1]"),
        "f": (f"{relu.__qualname__}", "max"),
        "bool": (True, False),
        "clash": ("clash[0]", "clash[1]", "a"),
        "numpy": (0.5, 2, "numpy[2]"),
    }


def test_probabilities_are_weights() -> None:
    hyperparameter = one(hp.pchoice("x", [(0.2, "a"), (0.8, "b"), (0.0, "c")]))
    assert isinstance(hyperparameter, CategoricalHyperparameter)
    assert list(hyperparameter.choices) == ["a", "b", "c"]
    np.testing.assert_allclose(hyperparameter.probabilities, [0.2, 0.8, 0.0])


# --- conditions ------------------------------------------------------------------------------


def conditions(space: Any) -> set[str]:
    return {str(condition) for condition in translate(space).space.conditions}


def test_what_is_in_an_option_is_conditional() -> None:
    inner = hp.choice("kernel", ["linear", {"type": "rbf", "gamma": hp.uniform("gamma", 0, 1)}])
    space = hp.choice("m", [{"type": "svm", "kernel": inner}, {"type": "nb"}])
    assert conditions(space) == {"kernel | m in {'svm'}", "gamma | kernel in {'rbf'}"}


def test_what_several_options_share_is_in_each() -> None:
    c = hp.uniform("c", 0, 1)
    options = [{"type": "a", "c": c}, {"type": "b", "c": c}, {"type": "d"}]
    assert conditions(hp.choice("m", options)) == {"c | m in {'a', 'b'}"}
    assert conditions(hp.choice("m", options[:2])) == set()  # in all of them
    assert conditions({"m": hp.choice("m", options), "again": c}) == set()
    never = hp.pchoice("m", [(0.5, options[0]), (0.5, options[1]), (0.0, options[2])])
    assert conditions(never) == set()  # in all that may be chosen


# --- random spaces ---------------------------------------------------------------------------


def random_space(rng: np.random.Generator, prefix: str = "", depth: int = 2) -> dict[str, Any]:
    """Every value of the evaluated point is under the label that it was drawn for."""
    space: dict[str, Any] = {}
    for i in range(rng.integers(1, 4)):
        label = f"{prefix}p{i}"
        kind = rng.integers(7 if depth else 5)
        if kind == 0:
            space[label] = hp.uniform(label, -1, 2)
        elif kind == 1:
            space[label] = hp.loguniform(label, -4, 4)
        elif kind == 2:
            space[label] = hp.randint(label, 2, 7)
        elif kind == 3:
            space[label] = scope.int(hp.quniform(label, 1, 8, 1))
        elif kind == 4:
            space[label] = hp.choice(label, [None, 1, "a", 2.5])
        else:
            options = [
                {label: f"o{j}", **random_space(rng, f"{label}o{j}", depth - 1)}
                for j in range(rng.integers(1, 4))
            ]
            space[label] = (
                hp.choice(label, options)
                if kind == 5
                else hp.pchoice(label, [(1 / len(options), o) for o in options])
            )
    return space


def flat(point: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for label, value in point.items():
        found |= flat(value) if isinstance(value, dict) else {label: value}
    return found


def near(values: dict[str, Any]) -> dict[str, Any]:
    return {k: pytest.approx(v) if isinstance(v, float) else v for k, v in values.items()}


@settings(max_examples=40)
@given(st.integers(0, 10**6))
def test_values_are_what_the_objective_is_given(seed: int) -> None:
    space = random_space(np.random.default_rng(seed))
    known = translate(space)
    assert set(known.space) == set(Domain(None, space, pass_expr_memo_ctrl=False).params)
    for drawn in draws(space, 5, seed):
        values = known.values(drawn)
        assert values == flat(space_eval(space, drawn))
        # legal, with all that is active and nothing else
        assert dict(Configuration(known.space, values=values)) == near(values)
        assert known.labels(values) == drawn


# --- bad input -------------------------------------------------------------------------------


def test_a_range_that_depends_on_a_hyperparameter_is_named() -> None:
    low = hp.uniform("a", 0, 1)
    with pytest.raises(ValueError, match=r"high of 'b' .* mul\(float\(uniform\('a'\)\), 3\)"):
        translate({"a": low, "b": hp.uniform("b", 0, low * 3)})
    assert translate({"b": hp.uniform("b", 0, scope.add(1, 2))}).space["b"].upper == 3.0


def test_a_switch_that_is_no_choice_is_named() -> None:
    space = scope.switch(scope.int(hp.randint("a", 2)), "x", "y")
    with pytest.raises(ValueError, match=r"int\(randint\('a'\)\).*hp.choice"):
        translate(space)


def test_other_distributions_are_named() -> None:
    assert tpe.suggest is not None  # its module defines the distribution
    with pytest.raises(ValueError, match="'x' is drawn from GMM1"):
        translate(scope.hyperopt_param("x", scope.GMM1([1.0], [0.0], [1.0])))


def test_a_label_must_be_unique() -> None:
    with pytest.raises(ValueError, match="Two hyperparameters have the label 'x'"):
        translate([hp.uniform("x", 0, 1), hp.uniform("x", 0, 1)])


def test_what_is_below_another_option_is_left_out() -> None:
    known = translate({"x": hp.choice("x", [0, {"y": hp.uniform("y", 0, 1)}])})
    names = known.options["x"]
    assert known.labels({"x": names[1], "y": 0.5}) == {"x": 1, "y": 0.5}
    assert known.labels({"x": names[0], "y": 0.5}) == {"x": 0}


def test_trials_of_another_space_are_refused() -> None:
    known = translate(hp.choice("m", ["a", "b"]))
    with pytest.raises(ValueError, match="label 'z'; the search space has m"):
        known.values({"z": 1})
    with pytest.raises(ValueError, match="option 2 of 'm', which has 2"):
        known.values({"m": 2})


def test_what_is_a_space() -> None:
    assert is_space(hp.uniform("x", 0, 1)) and is_space({"a": [hp.uniform("x", 0, 1)]})
    assert not is_space({"a": 1}) and not is_space(ConfigurationSpace()) and not is_space(None)
