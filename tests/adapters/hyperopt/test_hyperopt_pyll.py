"""ConfigSpace in Hyperopt's language and back."""

from __future__ import annotations

import math
from collections import Counter
from functools import partial
from typing import Any

import pytest
from automl_plugins.adapters.hyperopt import optimizer, translate
from automl_plugins.adapters.hyperopt._pyll import labels
from automl_plugins.adapters.hyperopt.expressions import ExpressionSpace, expression
from ConfigSpace import (
    AndConjunction,
    BetaFloatHyperparameter,
    BetaIntegerHyperparameter,
    Categorical,
    CategoricalHyperparameter,
    Configuration,
    ConfigurationSpace,
    Constant,
    EqualsCondition,
    Float,
    ForbiddenAndConjunction,
    ForbiddenEqualsClause,
    GreaterThanCondition,
    InCondition,
    Integer,
    NormalFloatHyperparameter,
    NormalIntegerHyperparameter,
    NotEqualsCondition,
    OrConjunction,
    OrdinalHyperparameter,
)
from hyperopt import Domain, anneal, pyll, rand, tpe
from hyperopt_runs import minimise

from automl_plugins.frameworks import Outcome, Problem, TrialStatus

ALGOS = [rand.suggest, partial(tpe.suggest, n_startup_jobs=5), anneal.suggest]


def draw(space: ConfigurationSpace, n: int, algo: Any = rand.suggest) -> list[dict[str, Any]]:
    """Configurations that a search proposes, told losses that prefer late values."""
    search = optimizer(algo).start(Problem(space, seed=0))
    configs = []
    for k in range(n):
        proposal = search.ask()
        assert proposal is not None
        configs.append(dict(proposal.config))
        loss = -float(len(str(proposal.config)))
        search.tell(proposal, Outcome(TrialStatus.COMPLETE, loss, k, k + 1.0))
    return configs


def test_values_are_drawn_as_configspace_draws_them() -> None:
    space = ConfigurationSpace(seed=0)
    space.add(
        Float("float", (-1.0, 2.0)),
        Float("log:float", (1e-4, 1.0), log=True),
        Integer("integer.1", (-3, 4)),
        Integer("log:integer", (1, 1000), log=True),
        NormalFloatHyperparameter("normal", mu=0.0, sigma=1.0, lower=-2.0, upper=3.0),
        NormalFloatHyperparameter("cut", mu=0.0, sigma=1.0, lower=-0.5, upper=0.5),
        NormalFloatHyperparameter("lognormal", mu=1.0, sigma=1.0, lower=0.1, upper=9, log=True),
        NormalIntegerHyperparameter("normal:integer", mu=5, sigma=2, lower=0, upper=10),
        BetaFloatHyperparameter("beta", alpha=2, beta=3, lower=0.0, upper=1.0),
        BetaIntegerHyperparameter("beta:integer", alpha=2, beta=3, lower=0, upper=5),
        OrdinalHyperparameter("ordinal", ["low", "mid", "high"]),
        Categorical("category", ["a", "b", "c"]),
        Categorical("number", [1, 2.5]),
        CategoricalHyperparameter("weighted", ["x", "y"], weights=[9, 1]),
        CategoricalHyperparameter("single", ["only"]),
        Constant("constant", "fixed"),
    )
    configs = draw(space, 400)
    assert all(Configuration(space, values=config) for config in configs)
    assert set(Counter(c["integer.1"] for c in configs).values()) <= set(range(30, 75))
    assert Counter(c["ordinal"] for c in configs).keys() == {"low", "mid", "high"}
    assert 340 <= sum(c["weighted"] == "x" for c in configs) <= 380
    assert 75 <= sum(c["log:float"] < 1e-3 for c in configs) <= 125  # one of four decades
    # 400 log(9.5 / 0.5) / log(1000.5 / 0.5) = 155
    assert 130 <= sum(c["log:integer"] < 10 for c in configs) <= 180
    assert abs(sum(c["normal"] for c in configs)) / 400 < 0.2
    assert sum(c["cut"] in (-0.5, 0.5) for c in configs) == 0  # uniform, not clipped


def nested() -> ConfigurationSpace:
    """Two levels, a child shared by two values, and what Hyperopt cannot nest."""
    space = ConfigurationSpace(seed=0)
    model = Categorical("model", ["svm", "rf", "nb"])
    kernel, trees = Categorical("kernel", ["lin", "rbf"]), Integer("trees", (1, 9))
    gamma, c, depth, both, seldom, other = (
        Float(name, (0.0, 1.0)) for name in ("gamma", "C", "depth", "both", "s", "not nb")
    )
    space.add(model, kernel, gamma, c, trees, depth, both, seldom, other)
    space.add(
        EqualsCondition(kernel, model, "svm"),
        EqualsCondition(gamma, kernel, "rbf"),
        InCondition(c, model, ["svm", "nb"]),
        EqualsCondition(trees, model, "rf"),
        GreaterThanCondition(depth, trees, 4),
        OrConjunction(EqualsCondition(both, model, "rf"), EqualsCondition(both, model, "nb")),
        AndConjunction(
            EqualsCondition(seldom, kernel, "rbf"), GreaterThanCondition(seldom, c, 0.5)
        ),
        NotEqualsCondition(other, model, "nb"),
    )
    return space


def test_children_of_one_categorical_are_nested_others_always_drawn() -> None:
    space = nested()
    expr = expression(space)
    assert set(expr) == {"model", "depth", "s"}
    assert set(labels(pyll.as_apply(expr))) == set(space)
    svm, rf, nb = (set(labels(option)) for option in expr["model"].pos_args[1:])
    assert svm == {"kernel", "gamma", "C", "not nb"}
    assert rf == {"trees", "both", "not nb"}
    assert nb == {"C", "both"}
    Domain(None, expr)  # shared nodes are not duplicates


def test_what_is_active_without_its_parent_is_not_nested_in_it() -> None:
    space = ConfigurationSpace()
    model, kernel = Categorical("model", ["svm", "rf"]), Categorical("kernel", ["lin", "rbf"])
    gamma, shift = Float("gamma", (0.0, 1.0)), Float("shift", (0.0, 1.0))
    space.add(model, kernel, gamma, shift)
    space.add(EqualsCondition(kernel, model, "svm"), NotEqualsCondition(gamma, kernel, "lin"))
    space.add(NotEqualsCondition(shift, model, "svm"))
    expr = expression(space)
    assert set(expr) == {"model", "gamma"}
    svm, rf = (set(labels(option)) for option in expr["model"].pos_args[1:])
    assert (svm, rf) == ({"kernel"}, {"shift"})
    read = ExpressionSpace(space).values
    drawn = {"model": 1, "gamma": 0.5, "shift": 0.25}
    assert read(drawn) == {"model": "rf", "gamma": 0.5, "shift": 0.25}
    assert read({"model": 0, "kernel": 0, "gamma": 0.5}) == {"model": "svm", "kernel": "lin"}


def test_values_with_nested_ones_come_back() -> None:
    space = ConfigurationSpace({"n": [2, 1], "b": [True, False], "x": (0.0, 1.0), "y": (0, 9)})
    space.add(EqualsCondition(space["x"], space["n"], 2))
    space.add(EqualsCondition(space["y"], space["b"], True))
    back = translate(expression(space)).space
    assert (back["n"].choices, back["b"].choices) == ((2, 1), (True, False))


def test_the_objective_gets_the_values_and_the_space_comes_back() -> None:
    space = ConfigurationSpace({"n": [1, 2], "x": (0.0, 1.0), "z": Constant("z", 3.5)}, seed=0)
    kernel = CategoricalHyperparameter("kernel", ["rbf", "linear"], weights=[3, 1])
    gamma, degree = Float("gamma", (0.1, 1.0)), Constant("degree", 3)
    space.add(kernel, gamma, degree)
    space.add(EqualsCondition(gamma, kernel, "rbf"), EqualsCondition(degree, kernel, "linear"))
    got: list[dict[str, Any]] = []

    def objective(config: dict[str, Any]) -> float:
        got.append(config)
        return 0.0

    minimise(objective, expression(space), rand.suggest, 20)
    assert {config["kernel"]["kernel"] for config in got} == {"rbf", "linear"}
    for config in got:
        assert config["n"] in (1, 2) and 0.0 <= config["x"] <= 1.0 and config["z"] == 3.5
        inner = config["kernel"]
        assert set(inner) == {"kernel", "gamma" if inner["kernel"] == "rbf" else "degree"}
        assert inner.get("degree", 3) == 3
    back = translate(expression(space)).space
    assert set(back) == {"n", "x", "kernel", "gamma"}
    assert back["n"].choices == (1, 2) and back["kernel"].choices == ("rbf", "linear")
    assert back["kernel"].probabilities.tolist() == [0.75, 0.25]
    assert [str(condition) for condition in back.conditions] == ["gamma | kernel in {'rbf'}"]


@pytest.mark.parametrize("algo", ALGOS)
def test_proposals_hold_exactly_the_active_values(algo: Any) -> None:
    space = nested()
    configs = draw(space, 60, algo)
    assert {c["model"] for c in configs} == {"svm", "rf", "nb"}
    for config in configs:
        # ConfigSpace refuses inactive and missing values alike.
        Configuration(space, values=config).check_valid_configuration()
    constant = ConfigurationSpace({"a": Constant("a", 1)})  # no choice, and searched all the same
    assert draw(constant, 8, algo) == [{"a": 1}] * 8


def test_conditions_on_constants_and_ordinals_are_left_to_configspace() -> None:
    space = ConfigurationSpace(seed=0)
    size = OrdinalHyperparameter("size", [1, 2, 4])
    fixed, x, y = Constant("fixed", 3), Float("x", (0.0, 1.0)), Float("y", (0.0, 1.0))
    space.add(size, fixed, x, y)
    space.add(EqualsCondition(x, size, 4), EqualsCondition(y, fixed, 3))
    for config in draw(space, 20):
        assert ("x" in config) == (config["size"] == 4)
        assert "y" in config and config["fixed"] == 3


def test_forbidden_configurations_are_not_proposed() -> None:
    space = ConfigurationSpace({"a": ["x", "y"], "b": ["y", "x"]}, seed=0)
    space.add(
        ForbiddenAndConjunction(
            ForbiddenEqualsClause(space["a"], "x"), ForbiddenEqualsClause(space["b"], "x")
        )
    )
    drawn = Counter((c["a"], c["b"]) for c in draw(space, 60, ALGOS[1]))
    assert drawn.keys() == {("x", "y"), ("y", "x"), ("y", "y")}


def test_only_a_space_of_configspace_is_an_expression() -> None:
    with pytest.raises(TypeError, match="expression takes a ConfigurationSpace; got <dict of 1>"):
        expression({"x": 1})
    with pytest.raises(TypeError, match="a space of Hyperopt; expression makes one of a Config"):
        translate(ConfigurationSpace({"x": (0.0, 1.0)}))


def drawing(label: str, values: list[float]) -> Any:
    """An algorithm that draws these values in turn."""

    def suggest(ids: list[int], domain: Any, trials: Any, seed: int) -> list[dict[str, Any]]:
        documents: list[dict[str, Any]] = rand.suggest(ids, domain, trials, seed)
        documents[0]["misc"]["vals"][label] = [values[ids[0] % len(values)]]
        return documents

    return suggest


@pytest.mark.parametrize(
    ("label", "value"),
    [
        *(("a", value) for value in (-1, 2, "x", None, [1])),
        *(("b", value) for value in (math.inf, math.nan)),
        *(("c", value) for value in (math.nan, None, "x")),
    ],
)
def test_labels_of_another_space_are_refused(label: str, value: Any) -> None:
    search = optimizer(drawing(label, [value])).start(
        Problem(ConfigurationSpace({"a": ["x", "y"], "b": (1, 9), "c": (0.0, 1.0)}), seed=0)
    )
    with pytest.raises(ValueError, match="with the labels a, b, c is not of this search space"):
        search.ask()


def test_a_search_that_meets_only_forbidden_configurations_ends() -> None:
    space = ConfigurationSpace({"a": (1, 9)}, seed=0)
    space.add(ForbiddenEqualsClause(space["a"], 1))
    assert optimizer(drawing("a", [1])).start(Problem(space, seed=0)).ask() is None


def test_bounds_survive_exponentials() -> None:
    low, high = 1e-7, 0.1
    space = ConfigurationSpace({"x": Float("x", (low, high), log=True)}, seed=0)
    ends = [math.exp(math.log(end)) * factor for end in (low, high) for factor in (0.999, 1.001)]
    assert {low, high} <= {config["x"] for config in draw(space, 4, drawing("x", ends))}
    assert all(low <= config["x"] <= high for config in draw(space, 4, drawing("x", ends)))
