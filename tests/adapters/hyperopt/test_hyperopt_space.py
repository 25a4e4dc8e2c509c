"""Hyperopt search spaces in ConfigSpace's language."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from automl_plugins.adapters.hyperopt import (
    arm_report,
    bandit,
    boasf,
    boasf_fmin,
    gbqr,
    translate,
)
from automl_plugins.adapters.hyperopt._pyll import labels, restrict
from automl_plugins.adapters.hyperopt.space import is_space
from ConfigSpace import Configuration, ConfigurationSpace
from ConfigSpace.hyperparameters import (
    NormalFloatHyperparameter,
    NormalIntegerHyperparameter,
    OrdinalHyperparameter,
    UniformFloatHyperparameter,
    UniformIntegerHyperparameter,
)
from hyperopt import Domain, Trials, fmin, hp, pyll, rand, space_eval, tpe
from hyperopt.pyll import scope
from hyperopt.pyll.stochastic import quniform, sample
from hyperopt_runs import minimise, values_of
from hypothesis import given, settings
from hypothesis import strategies as st

from automl_plugins.spaces.ranges import ExactFloat


def draws(space: Any, n: int, seed: int = 0) -> list[dict[str, Any]]:
    """What random search draws, by label."""
    domain = Domain(None, space, pass_expr_memo_ctrl=False)
    return [values_of(d) for d in rand.suggest(list(range(n)), domain, Trials(), seed)]


# --- one hyperparameter ----------------------------------------------------------------------

Z = 3.7190165  # the quantile 0.9999 of the normal distribution
#: These have no ends, or rounding makes values from beyond them.
BEYOND = [hp.lognormal("x", 1.0, 0.5), hp.qloguniform("x", 0, math.log(8.9), 2)]
#: What a distribution becomes: its class and the ends of the range, or the values of a grid.
DISTRIBUTIONS: list[tuple[Any, Any, Any, bool]] = [
    (hp.uniform("x", -2, 3), UniformFloatHyperparameter, (-2, 3), False),
    (hp.loguniform("x", math.log(0.01), 2), UniformFloatHyperparameter, (0.01, math.e**2), True),
    (BEYOND[0], UniformFloatHyperparameter, np.exp([1 - Z / 2, 1 + Z / 2]), True),
    (hp.quniform("x", 0, 1e6, 7), ExactFloat, (0, 999_999), False),  # a long grid
    (hp.qloguniform("x", math.log(2), math.log(600), 3), ExactFloat, (3, 600), True),  # not 2
    (hp.randint("x", 5), UniformIntegerHyperparameter, (0, 4), False),
    (hp.randint("x", 3, 9), UniformIntegerHyperparameter, (3, 8), False),
    (hp.uniformint("x", 1, 4), UniformIntegerHyperparameter, (1, 4), False),
    (scope.int(hp.quniform("x", 1, 4.4, 1)), UniformIntegerHyperparameter, (1, 4), False),
    (hp.quniform("x", 0.4, 4.6, 1), UniformIntegerHyperparameter, (0, 5), False),  # rounded
    (hp.qloguniform("x", 0, math.log(50), 1), UniformIntegerHyperparameter, (1, 50), True),
    (hp.normal("x", 1.0, 2.0), NormalFloatHyperparameter, (1 - 2 * Z, 1 + 2 * Z), False),
    (hp.qnormal("x", 5, 2, 1), NormalIntegerHyperparameter, (-2, 12), False),
    (hp.quniform("x", 0, 10, 3), OrdinalHyperparameter, [0, 3, 6, 9], False),
    (hp.quniform("x", 0, 1, 0.25), OrdinalHyperparameter, [0, 0.25, 0.5, 0.75, 1], False),
    (BEYOND[1], OrdinalHyperparameter, [2, 4, 6, 8], True),
    (hp.qloguniform("x", -1, 1, 1), OrdinalHyperparameter, [0, 1, 2, 3], True),  # log(0)
    (hp.quniform("x", 1.8, 2.2, 1), OrdinalHyperparameter, [2], False),
    (hp.qnormal("x", 3, 0.1, 1), OrdinalHyperparameter, [3], False),
]


@pytest.mark.parametrize(
    "rounded",
    [
        hp.qloguniform("x", math.log(16), math.log(512), 16),
        hp.qlognormal("x", 3.0, 1.0, 2),
        hp.quniform("x", 0, 1e5, 10),
    ],
)
def test_rounded_numbers_are_not_evaluated_again(rounded: Any) -> None:
    space, trials = {"x": rounded, "y": hp.uniform("y", 0, 1)}, Trials()

    def loss(values: dict[str, float]) -> float:
        return abs(math.log((values["x"] + 1.0) / 33.0)) + abs(values["y"] - 0.3)

    rng = np.random.default_rng(2)
    fmin(loss, space, gbqr, 25, trials=trials, rstate=rng, show_progressbar=False)
    evaluated = {tuple(d["misc"]["vals"][label][0] for label in "xy") for d in trials}
    assert len(evaluated) == 25
    known = translate(space)
    (row,) = known.space["x"].to_vector(np.array([trials.trials[-1]["misc"]["vals"]["x"][0]]))
    assert known.space["x"].to_value(np.array([row]))[0] == pytest.approx(
        trials.trials[-1]["misc"]["vals"]["x"][0], abs=1e-9
    )


@pytest.mark.parametrize(
    "node",
    [
        hp.quniform("x", 0.2, 3000.3, 0.5),
        hp.qnormal("x", 0, 300, 1.5),
        hp.qnormal("x", 1, 0.25, 1e-4),
        hp.qloguniform("x", math.log(20), math.log(1000), 16),
        hp.qloguniform("x", math.log(25), math.log(1005), 16),
        hp.qloguniform("x", math.log(0.1), math.log(70), 3),
        hp.qlognormal("x", 2, 0.5, 0.5),
        hp.qlognormal("x", 0, 3, 1),
    ],
)
def test_every_place_of_a_rounded_range_is_a_draw(node: Any) -> None:
    """Else a trial is read as another configuration than the one that was proposed."""
    known = translate({"x": node})
    found: Any = known.space["x"]
    for place in (0.0, 1e-3, *np.random.default_rng(0).uniform(0, 1, 200), 1.0):
        (value,) = found.to_value(np.array([place]))
        read = known.values(known.labels({"x": value}))["x"]
        assert read == pytest.approx(value, rel=1e-12)
        assert found.to_vector(np.array([read])) == found.to_vector(np.array([value]))


def test_a_number_beyond_those_listed_stays() -> None:
    """Half a step beyond the last one it is still rounded to it."""
    known = translate({"x": hp.qnormal("x", 0, 1, 0.5), "one": hp.quniform("one", 1.8, 2.2, 1)})
    drawn = {"x": 9.0, "one": 5.0}
    assert known.values(drawn) == drawn
    assert known.values({"x": 3.7, "one": 2.0}) == {"x": 3.5, "one": 2.0}
    assert known.values({"x": -9.0, "one": 2.0})["x"] == -9.0


@pytest.mark.parametrize(("node", "kind", "values", "log"), DISTRIBUTIONS)
def test_distributions(node: Any, kind: Any, values: Any, log: bool) -> None:
    known = translate({"x": node})
    found: Any = known.space["x"]
    assert type(found) is kind
    if kind is OrdinalHyperparameter:
        assert list(found.sequence) == values
    else:
        assert (found.lower, found.upper) == pytest.approx(tuple(values), rel=1e-6)
        assert found.log == log
    if kind in (NormalFloatHyperparameter, NormalIntegerHyperparameter):
        assert (found.mu, found.sigma) in ((1.0, 2.0), (5.0, 2.0))
        return  # without ends
    seen = {known.values(drawn)["x"] for drawn in draws({"x": node}, 200)}
    assert all(map(found.legal_value, seen)) or any(node is other for other in BEYOND)
    if kind is UniformIntegerHyperparameter and not log:
        assert seen == set(range(found.lower, found.upper + 1))


@pytest.mark.parametrize("q", [1, 8])
@pytest.mark.parametrize("name", ["qloguniform", "qlognormal", "quniform", "qnormal"])
def test_draws_of_a_grid_lie_where_those_of_hyperopt_do(name: str, q: int) -> None:
    """Of a distribution over the logarithms half of the draws are below the geometric mean."""
    given = {
        "qloguniform": (math.log(8), math.log(4096)),
        "qlognormal": (5, 1),
        "quniform": (0, 400),
        "qnormal": (100, 30),
    }[name]
    known = translate({"x": getattr(hp, name)("x", *given, q)})
    values = known.space["x"].sample_value(10_000, seed=np.random.RandomState(0))
    own = [known.labels({"x": value})["x"] for value in values]
    many = getattr(scope, name)(*given, q, size=(10_000,))
    median = float(np.median(sample(many, np.random.default_rng(0))))
    assert float(np.median(own)) == pytest.approx(median, rel=0.2, abs=q)
    assert all(value % q == 0 for value in own)


def test_zero_of_a_long_logarithmic_grid_is_an_octave() -> None:
    """A lognormal with q = 1 has 0, 1, 2, ... 1700: too many for an ordinal, most below 10."""
    known = translate({"j": hp.qlognormal("j", 0, 2, 1)})
    found: Any = known.space["j"]
    assert found.log and found.lower == 0.25
    values = found.sample_value(2000, seed=np.random.RandomState(0))
    zeros = np.mean([known.labels({"j": value})["j"] == 0.0 for value in values])
    assert zeros == pytest.approx(math.log(2) / math.log(1700 / 0.25), abs=0.02)
    assert known.values({"j": 0.0}) == {"j": 0.25} and known.labels({"j": 0.25}) == {"j": 0.0}


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


def test_options_are_called_by_their_values_under_the_label_of_the_choice() -> None:
    c = hp.uniform("c", 0, 1)
    options: dict[str, list[Any]] = {
        "number": [{"number": 2, "c": c}, {"number": 1}],
        "truth": [{"criterion": "gini", "truth": True, "c": c}, False],
        "text": [{"scaler": "a", "text": "rbf", "c": c}, {"scaler": "a", "text": "linear"}],
        "equal": [{"equal": 1, "name": "a"}, {"equal": True, "name": "b"}],
        "lacking": [{"lacking": 1, "name": "a"}, {"name": "b"}],
    }
    found = translate({label: hp.choice(label, each) for label, each in options.items()}).options
    assert found == {
        "number": (2, 1),
        "truth": (True, False),
        "text": ("rbf", "linear"),
        "equal": ("a", "b"),
        "lacking": ("a", "b"),
    }


def test_a_value_that_is_no_option_is_refused() -> None:
    space = translate({"b": hp.choice("b", [True, False])})
    assert space.labels({"b": "true"}) == {"b": 0}  # as files have it
    with pytest.raises(ValueError, match="1 is not an option of 'b'; its options are True"):
        space.labels({"b": 1})


def test_runs_without_a_choice_of_numbers_get_the_usual_one() -> None:
    depths = hp.choice("depth", [3, 5, 7])
    likely = hp.pchoice("likely", [(0.7, 3), (0.2, 5), (0.1, 7)])
    space = translate({"depth": depths, "likely": likely}).space
    assert space["depth"].default_value == 5 and space["likely"].default_value == 3


def test_probabilities_are_weights() -> None:
    space = translate(hp.pchoice("x", [(0.2, "a"), (0.8, "b"), (0.0, "c")])).space
    found: Any = space["x"]
    assert list(found.choices) == ["a", "b", "c"]
    np.testing.assert_allclose(found.probabilities, [0.2, 0.8, 0.0])


# --- conditions ------------------------------------------------------------------------------


def test_what_is_in_options_is_conditional() -> None:
    def conditions(space: Any) -> set[str]:
        return {str(condition) for condition in translate(space).space.conditions}

    inner = hp.choice("kernel", ["linear", {"type": "rbf", "gamma": hp.uniform("gamma", 0, 1)}])
    space = hp.choice("m", [{"type": "svm", "kernel": inner}, {"type": "nb"}])
    assert conditions(space) == {"kernel | m in {'svm'}", "gamma | kernel in {'rbf'}"}
    c = hp.uniform("c", 0, 1)  # shared by several options
    options = [{"type": "a", "c": c}, {"type": "b", "c": c}, {"type": "d"}]
    assert conditions(hp.choice("m", options)) == {"c | m in {'a', 'b'}"}
    assert conditions(hp.choice("m", options[:2])) == set()  # in all of them
    assert conditions({"m": hp.choice("m", options), "again": c}) == set()
    never = hp.pchoice("m", [(0.5, options[0]), (0.5, options[1]), (0.0, options[2])])
    assert conditions(never) == set()  # in all that may be chosen


def test_what_is_below_another_option_is_left_out() -> None:
    known = translate({"x": hp.choice("x", [0, {"y": hp.uniform("y", 0, 1)}])})
    names = known.options["x"]
    assert known.labels({"x": names[1], "y": 0.5}) == {"x": 1, "y": 0.5}
    assert known.labels({"x": names[0], "y": 0.5}) == {"x": 0}


# --- switches --------------------------------------------------------------------------------

#: The index of a switch on three options, and the options that it reaches.
INDICES: dict[str, tuple[Any, tuple[int, ...]]] = {
    "randint": (hp.randint("i", 3), (0, 1, 2)),
    "randint, whole": (scope.int(hp.randint("i", 3)), (0, 1, 2)),
    "low > 0": (hp.randint("i", 1, 3), (1, 2)),
    "by name": (hp.randint("i", low=1, high=2), (1,)),
    "too few": (hp.randint("i", 2), (0, 1)),
    "bare": (scope.hyperopt_param("i", scope.randint(1, 3)), (1, 2)),
    "weights": (
        scope.int(scope.hyperopt_param("i", scope.categorical((0.5, 0.0, 0.5)))),
        (0, 2),
    ),
}


@pytest.mark.parametrize("name", INDICES)
def test_a_switch_on_a_random_integer_is_a_choice(name: str) -> None:
    index, reached = INDICES[name]
    options = [["a", hp.uniform("p", 0, 1)], ["b", hp.uniform("q", 5, 6)], ["c"]]
    space = {"m": scope.switch(index, *options)}
    known = translate(space)
    found: Any = known.space["i"]
    assert list(found.choices) == ["a", "b", "c"] and found.size == 3
    assert [i for i, p in enumerate(found.probabilities) if p] == list(reached)
    np.testing.assert_allclose(found.probabilities[list(reached)], 1 / len(reached))
    for drawn in draws(space, 20):
        assert known.values(drawn)["i"] == space_eval(space, drawn)["m"][0]
        assert known.labels(known.values(drawn)) == drawn
    algos = (tpe.suggest, gbqr, bandit, boasf(max_evals=20, split=2))
    for algo in algos[: None if len(reached) > 1 else 2]:
        seen: list[str] = []

        def objective(config: dict[str, Any], seen: list[str] = seen) -> float:
            seen.append(config["m"][0])
            return float(sum(config["m"][1:]))

        trials = minimise(objective, space, algo, 20)
        assert set(seen) == {"abc"[i] for i in reached}
        assert objective(space_eval(space, trials.argmin)) == min(trials.losses())


def shared_index() -> dict[str, Any]:
    """An index that is a value of its own, and decides in two switches."""
    i = hp.randint("i", 3)
    wide = [{"t": "x"}, {"t": "y", "u": hp.uniform("u", 0, 1)}, {"t": "z"}, {"t": "never"}]
    return {"i": i, "short": scope.switch(i, "a", "b", "c"), "wide": scope.switch(i, *wide)}


def test_an_index_may_have_several_switches() -> None:
    space = shared_index()
    known = translate(space)
    assert known.options == {"i": ("x", "y", "z", "never")}
    assert [str(condition) for condition in known.space.conditions] == ["u | i in {'y'}"]
    for drawn in draws(space, 20):
        assert known.values(drawn)["i"] == space_eval(space, drawn)["wide"]["t"]
    below = {"s": scope.switch(hp.randint("i", 2), 0, 1, hp.uniform("never", 0, 1))}
    assert set(translate(below).space) == {"i", "never"}


def test_a_restricted_index_keeps_its_numbers_elsewhere() -> None:
    space = pyll.as_apply(shared_index())
    left = restrict(space, {"i": (1, 2)})
    found = [space_eval(left, {"i": i, "u": 0.5}) for i in range(2)]
    assert [(f["i"], f["short"], f["wide"]["t"]) for f in found] == [(1, "b", "y"), (2, "c", "z")]
    assert labels(left, {"i": 0}) == ("i", "u") and labels(left, {"i": 1}) == ("i",)
    only = {"i": 2, "short": "c", "wide": {"t": "z"}}
    assert space_eval(restrict(space, {"i": (2,)}), {}) == only


# --- random spaces ---------------------------------------------------------------------------


def random_space(rng: np.random.Generator, prefix: str = "", depth: int = 2) -> dict[str, Any]:
    """Every value of the evaluated point is under the label that it was drawn for."""
    space: dict[str, Any] = {}
    simple: list[Callable[[str], Any]] = [
        lambda label: hp.uniform(label, -1, 2),
        lambda label: hp.loguniform(label, -4, 4),
        lambda label: hp.randint(label, 2, 7),
        lambda label: scope.int(hp.quniform(label, 1, 8, 1)),
        lambda label: hp.choice(label, [None, 1, "a", 2.5]),
    ]
    for i in range(rng.integers(1, 4)):
        label = f"{prefix}p{i}"
        kind = rng.integers(8 if depth else 5)
        if kind < 5:
            space[label] = simple[kind](label)
            continue
        options = [
            {label: f"o{j}", **random_space(rng, f"{label}o{j}", depth - 1)}
            for j in range(rng.integers(1, 4))
        ]
        weighted = [(1 / len(options), option) for option in options]
        space[label] = hp.choice(label, options) if kind == 5 else hp.pchoice(label, weighted)
        if kind == 7:
            first = int(rng.integers(len(options)))
            space[label] = scope.switch(hp.randint(label, first, len(options)), *options)
    return space


def flat(point: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for label, value in point.items():
        found |= flat(value) if isinstance(value, dict) else {label: value}
    return found


@settings(max_examples=30)
@given(st.integers(0, 10**6))
def test_values_are_what_the_objective_is_given(seed: int) -> None:
    space = random_space(np.random.default_rng(seed))
    known = translate(space)
    assert set(known.space) == set(Domain(None, space, pass_expr_memo_ctrl=False).params)
    for drawn in draws(space, 5, seed):
        values = known.values(drawn)
        assert values == flat(space_eval(space, drawn))
        # legal, with all that is active and nothing else
        near = {k: pytest.approx(v) if isinstance(v, float) else v for k, v in values.items()}
        assert dict(Configuration(known.space, values=values)) == near
        assert known.labels(values) == drawn


# --- bad input -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("space", "message"),
    [
        (
            lambda: hp.uniform("b", 0, hp.uniform("a", 0, 1) * 3),
            r"high of 'b' .* mul\(float\(uniform\('a'\)\), 3\).*must be constant",
        ),
        (lambda: hp.normal("y", hp.randint("m", 3), 1), r"mu of 'y' depends on .*randint\('m'\)"),
        (
            lambda: scope.switch(1 - hp.randint("a", 2), "x", "y"),
            r"int\(randint\('a'\)\).*hp.choice",
        ),
        (
            lambda: scope.switch(hp.uniformint("a", 0, 1), "x", "y"),
            r"int\(float\(quniform\('a'\)\)\).*hp.choice",
        ),
        (
            lambda: scope.switch(hp.randint("a", hp.randint("n", 1, 3)), "x", "y"),
            r"int\(randint\('a'\)\).*hp.choice",
        ),
        (
            lambda: scope.switch(hp.randint("a", 3), "x", "y"),
            r"'a' .* range\(0, 3\).*0 to 1: give",
        ),
        (lambda: scope.switch(hp.randint("a", -1, 2), "x", "y"), r"'a' .* range\(-1, 2\).*0 to 1"),
        (lambda: hp.choice("a", []), "'a' has no options: give hp.choice at least one"),
        (
            lambda: tpe and scope.hyperopt_param("x", scope.GMM1([1.0], [0.0], [1.0])),
            "'x' is drawn from GMM1",
        ),
        (
            lambda: [hp.uniform("x", 0, 1), hp.uniform("x", 0, 1)],
            "Two hyperparameters have the label 'x'",
        ),
        (lambda: hp.quniform("x", 0, 1, 0), "q of 'x' must be a finite number above 0, got 0"),
        (lambda: hp.qnormal("x", 0, 1, -0.5), "q of 'x' .* got -0.5"),
        (lambda: hp.normal("x", 1, -1), "sigma of 'x' must be a finite number >= 0, got -1"),
        (lambda: hp.randint("x", 3, 3), "'x' needs an upper end above the lower .* 3 and 3"),
        (lambda: hp.randint("x", 0, math.inf), r"'x' needs finite ends, got \[0, inf\]"),
        (lambda: hp.randint("x", 0), "'x' needs an upper end above the lower .* 0 and 0"),
        (
            lambda: hp.loguniform("x", 0, -7),
            "'x' needs low <= high in hp.loguniform, got 0 and -7",
        ),
        (lambda: hp.quniform("x", 0, -3, 0.5), "'x' needs low <= high in hp.quniform, got 0 and"),
        (lambda: hp.qloguniform("x", 0, -3, 0.01), "'x' needs low <= high in hp.qloguniform"),
        (lambda: hp.qloguniform("x", 0, 1, math.inf), "q of 'x' .* got inf"),
        (lambda: hp.qloguniform("x", 1, 1000, 1), r"'x' reaches e \*\* 1000.*are natural log"),
        (lambda: hp.qloguniform("x", 1, 709.7, 0.5), r"'x' reaches e \*\* 709.7.*hp.qloguniform"),
        (lambda: hp.qlognormal("x", 0, 200, 1), r"'x' reaches e \*\* 743.*hp.qlognormal"),
        (lambda: hp.loguniform("x", 800, 900), r"'x' reaches e \*\* 800.*hp.loguniform"),
        (lambda: hp.lognormal("x", 1000, 1), r"'x' reaches e \*\* 996.*hp.lognormal"),
        (lambda: hp.quniform("x", 0, math.inf, 1), "'x' needs finite ends, got 0 and inf"),
        (lambda: hp.qnormal("x", -math.inf, 1, 2), "'x' needs finite ends, got -inf and -inf"),
        (lambda: hp.qlognormal("x", math.nan, 1, 2), "'x' needs finite ends, got nan and nan"),
        (lambda: hp.uniform("x", 0, 10**400), "high of 'x' is too large for a float"),
        (lambda: hp.uniform("x", "0", "1"), "low of 'x' must be a number, got '0'"),
        (lambda: hp.uniform("x", None, 1), "low of 'x' must be a number, got None"),
        (lambda: hp.quniform("x", 0, 5, "a"), "q of 'x' must be a number, got 'a'"),
        (lambda: hp.normal("x", 10**400, 1), "mu of 'x' is too large for a float"),
        (lambda: hp.randint("x", 10**400), "low of 'x' is too large for a float"),
        (
            lambda: hp.quniform("x", 0, 10),
            r"'x' must be drawn from quniform\(low, high, q\), got quniform\(0, 10\)",
        ),
        (lambda: hp.qlognormal("x", 0, 1), r"qlognormal\(mu, sigma, q\), got qlognormal\(0, 1\)"),
        (lambda: hp.normal("x", 1), r"'x' .* normal\(mu, sigma\), got normal\(1\)"),
        (lambda: hp.uniform("x", 0, 10, 2), r"uniform\(low, high\), got uniform\(0, 10, 2\)"),
        (lambda: hp.randint("x", 1, 9, 2), r"randint\(low, high\), got randint\(1, 9, 2\)"),
        (lambda: hp.randint("x"), r"'x' .* randint\(low, high\), got randint\(\)"),
    ],
)
def test_what_configspace_cannot_express_is_named(space: Callable[[], Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        translate(space())


@pytest.mark.parametrize("mean", [3, 5, -271, 4.5])
def test_a_mean_without_deviation_is_rounded_as_hyperopt_rounds_it(mean: float) -> None:
    known = translate(hp.qnormal("x", mean, 0, 2))
    drawn = pyll.stochastic.sample(known.expr, rng=np.random.default_rng(0))
    assert known.space["x"].default_value == drawn


@pytest.mark.parametrize("value", [math.nan, math.inf, 10**400, "inf", "x", None])
def test_what_cannot_be_drawn_is_named(value: Any) -> None:
    known = translate({"i": hp.randint("i", 9), "q": hp.quniform("q", 0, 9, 3)})
    for label in ("i", "q"):
        with pytest.raises(ValueError, match=f"{label}=.* is not a number, as {label}, "):
            known.labels({label: value})


def test_ranges_may_be_expressions_of_constants() -> None:
    space: Any = translate({"b": hp.uniform("b", 0, scope.add(1, 2))}).space
    assert space["b"].upper == 3.0


def test_labels_of_other_branches_are_absent() -> None:
    """Points that a user gives may have values for all labels."""
    known = translate(
        hp.choice("m", [{"k": "svm", "C": hp.uniform("C", 0, 2)}, {"n": hp.randint("n", 99)}])
    )
    assert known.values({"m": 0, "C": 1.0, "n": 50}) == {"m": "svm", "C": 1.0}
    assert set(known.values({"m": 1, "C": 1.0, "n": 50})) == {"m", "n"}


def test_trials_of_another_space_are_refused() -> None:
    known = translate(hp.choice("m", ["a", "b"]))
    with pytest.raises(ValueError, match="label 'z'; the search space has m"):
        known.values({"z": 1})
    # the label may have been that of a range
    for index in (2, 0.5, -0.5):
        with pytest.raises(ValueError, match=f"option {index} of 'm', which has 2"):
            known.values({"m": index})
    for value in (math.nan, math.inf, "a"):
        with pytest.raises(ValueError, match="for 'm', which must be a number"):
            known.values({"m": value})


def test_what_is_a_space() -> None:
    assert is_space(hp.uniform("x", 0, 1)) and is_space({"a": [hp.uniform("x", 0, 1)]})
    assert not is_space({"a": 1}) and not is_space(ConfigurationSpace()) and not is_space(None)


@pytest.mark.parametrize(
    ("ends", "kind"),
    [
        ((math.log(5e-324), math.log(1e-310)), UniformFloatHyperparameter),
        ((-800.0, -760.0), OrdinalHyperparameter),  # of which all are 0
    ],
)
def test_ranges_below_the_least_normal_float(ends: tuple[float, float], kind: Any) -> None:
    found = translate({"x": hp.loguniform("x", *ends)}).space["x"]
    assert isinstance(found, kind)
    assert 0.0 <= found.default_value <= 1e-309


def test_ranges_near_the_largest_float_are_translated_without_a_warning() -> None:
    space = translate({"x": hp.loguniform("x", math.log(1e300), math.log(1e308))}).space
    assert space["x"].lower == pytest.approx(1e300)


@pytest.mark.parametrize("integer", [int, np.int64])
def test_integers_beyond_2_to_53_keep_their_digits(integer: Any) -> None:
    known = translate({"r": hp.randint("r", 2**53, 2**53 + 5)})
    assert known.labels({"r": integer(2**53 + 1)}) == {"r": 2**53 + 1}


@pytest.mark.parametrize("q", [1, 2, 0.5, 7])
def test_multiples_are_those_of_the_page_on_conversions(q: float) -> None:
    rng = np.random.default_rng(0)
    for low, high in [(1, 10), (1, 7), (5, 9), (0.25, 1.0), *np.sort(rng.uniform(-9, 9, (20, 2)))]:
        first, last = math.floor(low / q + 0.5), math.ceil(high / q - 0.5)
        if first > last:
            continue  # one number in the middle of two multiples
        drawn = quniform(low, high, q, rng=np.random.default_rng(0), size=20_000)
        assert (drawn.min(), drawn.max()) == (first * q, last * q)


@pytest.mark.parametrize("name", ["translate", "boasf_fmin", "arm_report"])
def test_a_space_of_configspace_is_refused_with_the_way_to_translate_it(name: str) -> None:
    space = ConfigurationSpace({"x": (0.0, 1.0)})
    calls: dict[str, Callable[[], Any]] = {
        "translate": lambda: translate(space),
        "boasf_fmin": lambda: boasf_fmin(lambda _: 0.0, space, max_evals=2),
        "arm_report": lambda: arm_report(Trials(), space),
    }
    with pytest.raises(TypeError, match=f"^{name} takes a space of Hyperopt; expression makes"):
        calls[name]()
