"""Weighted model sampling: by hand, by brute force, by simulation, and where theorem 1 fails."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import hypothesis.strategies as st
import idea_pictures
import numpy as np
import pytest
from ConfigSpace import (
    AndConjunction,
    Categorical,
    ConfigurationSpace,
    Constant,
    EqualsCondition,
    Float,
    ForbiddenAndConjunction,
    ForbiddenEqualsClause,
    ForbiddenInClause,
    GreaterThanCondition,
    InCondition,
    Integer,
    LessThanCondition,
    NotEqualsCondition,
    OrConjunction,
    OrdinalHyperparameter,
)
from hypothesis import given

from automl_plugins.bandits.model_weights import (
    failure_probability,
    model_weights,
    weights_from_counts,
    weights_from_logs,
)
from automl_plugins.spaces import branches
from automl_plugins.spaces.branches import hyperparameter_counts
from automl_plugins.spaces.choices import categorical, one_of
from automl_plugins.spaces.ranges import float_range, integer_range
from automl_plugins.spaces.vector_space import VectorSpace

NAN = math.nan
# Hyperparameters of the paper's models (table 3).
PAPER = [8, 6, 11, 10, 2, 3, 1, 8, 3, 4, 1]


def nested() -> ConfigurationSpace:
    """An SVM with nested kernels, a forest, and one model with nothing to tune."""
    space = ConfigurationSpace()
    model = Categorical("model", ["svm", "forest", "bayes"])
    kernel = Categorical("kernel", ["rbf", "poly", "linear"])
    c, gamma, degree = (
        Float("C", (0.0, 2.0)),
        Float("gamma", (0.5, 1.0)),
        Integer("degree", (2, 5)),
    )
    shift, cache = Float("shift", (1.0, math.e**3), log=True), Constant("cache", 200)
    trees, size = Integer("trees", (1, 100), log=True), OrdinalHyperparameter("size", ["s", "m"])
    one = Categorical("one", ["only"])
    scale = Categorical("scale", [True, False])  # of no model
    space.add(model, kernel, c, gamma, degree, shift, cache, trees, size, one, scale)
    space.add(
        *(EqualsCondition(hp, model, "svm") for hp in (kernel, c, cache, one)),
        InCondition(gamma, kernel, ["rbf", "poly"]),
        EqualsCondition(degree, kernel, "poly"),
        GreaterThanCondition(shift, degree, 3),
        EqualsCondition(trees, model, "forest"),
        EqualsCondition(size, model, "forest"),
    )
    return space


# Weights of counts


def test_paper_weights_by_hand() -> None:
    np.testing.assert_allclose(weights_from_counts([2, 0, 3]), [4 / 13, 1 / 13, 8 / 13])
    expected = 2.0 ** np.array(PAPER) / 3688
    np.testing.assert_allclose(weights_from_counts(PAPER), expected, rtol=1e-12)
    huge = weights_from_counts([100_000, 100_001, 3])
    np.testing.assert_allclose(huge, [1 / 3, 2 / 3, 0.0], rtol=1e-9)


@given(st.lists(st.integers(0, 40), min_size=1, max_size=12))
def test_weights_are_exact_probabilities(counts: list[int]) -> None:
    weights, total = weights_from_counts(counts), sum(2**n for n in counts)
    np.testing.assert_allclose(weights, [2**n / total for n in counts], rtol=1e-11)
    assert weights.sum() == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("counts", [[], [1.5], [-1], [math.nan], [math.inf], [[1, 2]]])
def test_counts_that_are_none(counts: Any) -> None:
    with pytest.raises(ValueError, match="whole numbers >= 0"):
        weights_from_counts(counts)


@pytest.mark.parametrize(
    ("logs", "message"),
    [([-math.inf, -math.inf], "positive weight"), ([0.0, math.inf], "finite"), ([0, NAN], "no")],
)
def test_logarithms(logs: list[float], message: str) -> None:
    np.testing.assert_allclose(weights_from_logs([-math.inf, 900.0, 900.0]), [0.0, 0.5, 0.5])
    with pytest.raises(ValueError, match=message):
        weights_from_logs(logs)


# Weights of a space


def test_all_hyperparameters_of_a_branch_count_but_no_constants() -> None:
    # svm: kernel, C, gamma, degree, shift; forest: trees, size
    assert hyperparameter_counts(nested()) == {"svm": 5, "forest": 2, "bayes": 0}
    assert hyperparameter_counts(nested(), "kernel") == {"rbf": 1, "poly": 3, "linear": 0}
    assert model_weights(nested(), "scale") == {True: 0.5, False: 0.5}
    weights = model_weights(nested())
    assert list(weights) == ["svm", "forest", "bayes"]
    assert list(weights.values()) == pytest.approx([32 / 37, 4 / 37, 1 / 37])


def test_child_of_several_options_counts_in_each() -> None:
    space = ConfigurationSpace()
    model, rate = Categorical("model", ["a", "b", "c"]), Float("rate", (0, 1))
    depth, both = Integer("depth", (1, 9)), Float("both", (0, 1))
    space.add(model, rate, depth, both)
    space.add(
        NotEqualsCondition(rate, model, "a"),
        EqualsCondition(depth, model, "b"),
        OrConjunction(EqualsCondition(both, model, "c"), GreaterThanCondition(both, depth, 4)),
    )
    assert hyperparameter_counts(space) == {"a": 0, "b": 3, "c": 2}


def log_volumes(space: ConfigurationSpace, choice: str = "model") -> dict[Any, float]:
    logs = branches.log_volumes(space, choice)
    return dict(zip(branches.options_of(space, choice), logs, strict=True))


def test_volume_by_hand() -> None:
    volumes = log_volumes(nested())
    # poly: degree 2 or 3 without shift, 4 or 5 with it
    poly = 0.5 * (2 + 2 * 3)
    assert math.exp(volumes["svm"]) == pytest.approx(2.0 * (0.5 + poly + 1.0))
    assert math.exp(volumes["forest"]) == pytest.approx(100 * 2)
    assert volumes["bayes"] == 0.0
    weights = model_weights(nested(), rule="volume")
    assert list(weights.values()) == pytest.approx(np.array([11, 200, 1]) / 212)


def test_volume_of_independent_parents_is_a_product() -> None:
    space = ConfigurationSpace()
    model = Categorical("model", ["a", "b"])
    flags = [Categorical(f"f{i:02d}", [False, True]) for i in range(24)]
    inner = [Integer(f"n{i:02d}", (1, 7)) for i in range(24)]
    space.add(model, *flags, *inner)
    space.add(*(EqualsCondition(f, model, "a") for f in flags))
    space.add(*(EqualsCondition(n, f, True) for n, f in zip(inner, flags, strict=True)))
    # 2^24 combinations of flags, each one 1 + 7; summed one by one this would take hours
    assert log_volumes(space)["a"] == pytest.approx(24 * math.log(8))


def test_volume_below_a_parent_with_many_values() -> None:
    space = ConfigurationSpace({"m": ["x", "y"], "n": (0, 10**6 - 1), "d": (1, 4), "e": (1, 9)})
    n = space["n"]
    space.add(EqualsCondition(n, space["m"], "x"), GreaterThanCondition(space["d"], n, 10**5 - 1))
    space.add(InCondition(space["e"], n, [0, 10**5, 10**6 - 1]))
    expected = 9 + (10**5 - 1) + 2 * 36 + (9 * 10**5 - 2) * 4
    assert math.exp(log_volumes(space, "m")["x"]) == pytest.approx(expected)


@np.errstate(over="ignore")  # ConfigSpace rounds defaults
def test_volumes_of_ranges_wider_than_floats_are_finite() -> None:
    space = ConfigurationSpace()
    space.add(choice := Categorical("m", ["a", "b", "c", "d"]))
    ranges = {
        "a": float_range("wide", -1e308, 1e308),
        "b": float_range("ratio", 1e-300, 1e300, log=True),
        "c": float_range("near", 1e16, 1e16 + 4, log=True),  # logarithms are equal, ratios not
        "d": float_range("unit", 0.0, 2.0),
    }
    for option, found in ranges.items():
        space.add(found, EqualsCondition(found, choice, option))
    ends = {
        "a": math.log(2.0) + 308 * math.log(10),
        "b": math.log(600 * math.log(10)),
        "c": math.log(2.0**-51),
        "d": math.log(2.0),
    }
    assert log_volumes(space, "m") == pytest.approx(ends, rel=1e-9)
    weights = model_weights(space, rule="volume")
    assert weights["a"] == pytest.approx(1.0) and weights["c"] == 0.0


def finite(forbidden: bool) -> ConfigurationSpace:
    space = ConfigurationSpace()
    model, other = Categorical("model", ["a", "b", "c"], default="c"), Integer("other", (1, 3))
    kind = Categorical("kind", [0, 1, 2])
    n, m = Integer("n", (1, 6)), Integer("m", (1, 4), log=True)
    o = OrdinalHyperparameter("o", ["low", "mid", "high"])
    space.add(model, other, kind, n, m, o)
    space.add(
        InCondition(kind, model, ["a", "b"]),
        AndConjunction(EqualsCondition(n, model, "a"), NotEqualsCondition(n, kind, 1)),
        AndConjunction(GreaterThanCondition(m, n, 2), LessThanCondition(m, n, 6)),
        OrConjunction(EqualsCondition(o, kind, 1), EqualsCondition(o, m, 2)),
    )
    if forbidden:
        space.add(
            ForbiddenAndConjunction(ForbiddenEqualsClause(n, 3), ForbiddenInClause(m, [1, 4])),
            ForbiddenAndConjunction(
                ForbiddenEqualsClause(o, "mid"), ForbiddenEqualsClause(kind, 1)
            ),
        )
    return space


@pytest.mark.parametrize("forbidden", [False, True])
def test_volume_of_a_finite_branch_is_the_number_of_its_configurations(forbidden: bool) -> None:
    space = finite(forbidden)
    view = VectorSpace(space)
    rows = view.enumerate(10**6)
    assert rows is not None
    found = {
        option: len(rows[rows[:, view.names.index("model")] == i]) / 3  # of "other", no part of it
        for i, option in enumerate(["a", "b", "c"])
    }
    assert {o: math.exp(v) for o, v in log_volumes(space).items()} == pytest.approx(found)
    assert found["a"] != found["b"] != found["c"] == 1


def test_what_needs_a_parent_not_to_have_a_value_is_in_the_branches_without_it() -> None:
    space = ConfigurationSpace()
    model, kind = Categorical("model", ["a", "b"]), Categorical("kind", [0, 1, 2])
    o = OrdinalHyperparameter("o", list(range(5)))
    space.add(model, kind, o)
    space.add(EqualsCondition(kind, model, "a"), NotEqualsCondition(o, kind, 1))
    assert hyperparameter_counts(space) == {"a": 2, "b": 1}
    volumes = {option: math.exp(volume) for option, volume in log_volumes(space).items()}
    assert volumes == pytest.approx({"a": 1 + 2 * 5, "b": 5})


def test_integers_that_floats_cannot_tell_apart_are_counted_once() -> None:
    space = ConfigurationSpace()
    model, n = Categorical("model", ["a", "b"]), integer_range("n", 2**53, 2**53 + 8)  # 5 floats
    k = Integer("k", (1, 3))
    space.add(model, n, k)
    space.add(EqualsCondition(n, model, "a"), EqualsCondition(k, n, 2**53 + 4))
    assert log_volumes(space) == pytest.approx({"a": math.log(4 + 3), "b": 0.0})


def test_what_is_there_without_the_choice_is_not_in_its_branches() -> None:
    """It is counted one by one, for there is a forbidden clause."""
    space = ConfigurationSpace()
    root, model = Categorical("root", ["x", "y"]), Categorical("model", ["a", "b"])
    n = Integer("n", (1, 3))
    space.add(root, model, n)
    either = OrConjunction(EqualsCondition(n, model, "b"), EqualsCondition(n, root, "y"))
    space.add(EqualsCondition(model, root, "x"), either)
    space.add(ForbiddenEqualsClause(n, 3))
    assert log_volumes(space) == pytest.approx({"a": 0.0, "b": math.log(2)})


def test_forbidden_options_are_never_drawn() -> None:
    space = ConfigurationSpace()
    model, x = Categorical("model", ["a", "b", "c"], default="c"), Float("x", (0, 1))
    space.add(model, x)
    space.add(EqualsCondition(x, model, "a"))
    space.add(ForbiddenEqualsClause(model, "a"))
    for rule in ("2^N", "volume"):
        assert model_weights(space, rule=rule) == {"a": 0.0, "b": 0.5, "c": 0.5}


def test_given_weights() -> None:
    weights = model_weights(nested(), rule={"bayes": 1, "svm": 3, "forest": 0})
    assert weights == {"svm": 0.75, "forest": 0.0, "bayes": 0.25}
    huge = model_weights(nested(), rule={"bayes": 1e308, "svm": 1e308, "forest": 0})
    assert huge == {"svm": 0.5, "forest": 0.0, "bayes": 0.5}


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ({"svm": 1, "forest": 1}, r"missing: \['bayes'\]"),
        ({"svm": 1, "forest": 1, "bayes": 1, "knn": 1}, r"unknown: \['knn'\]"),
        ({"svm": 1, "forest": -1, "bayes": 1}, "finite, >= 0"),
        ({"svm": 0, "forest": 0, "bayes": 0}, "not all 0"),
        ({"svm": 1, "forest": math.nan, "bayes": 1}, "finite"),
        ("3^N", "rule must be '2\\^N', 'volume' or a mapping"),
        (np.array([1.0, 2.0, 3.0]), "rule must be '2\\^N', 'volume' or a mapping"),
    ],
)
def test_rules_that_do_not_fit(rule: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        model_weights(nested(), rule=rule)


def two_roots() -> ConfigurationSpace:
    space = ConfigurationSpace({"a": ["x", "y"], "b": ["u", "v"], "c": (0.0, 1.0), "d": (1, 4)})
    space.add(EqualsCondition(space["c"], space["a"], "x"))
    space.add(EqualsCondition(space["d"], space["b"], "v"))
    return space


@pytest.mark.parametrize(
    ("make", "choice", "message"),
    [
        (lambda: ConfigurationSpace({"a": ["x", "y"]}), None, "choice is needed.* there are none"),
        (two_roots, None, "there are 2: a, b"),
        (two_roots, "c", "got 'c'; it has a, b"),
        (two_roots, "model", "got 'model'; it has a, b"),
    ],
)
def test_choices_that_select_nothing(
    make: Callable[[], ConfigurationSpace], choice: str | None, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        model_weights(make(), choice)


def test_volumes_that_cannot_be_summed() -> None:
    space = ConfigurationSpace({"m": ["x", "y"], "c": (0.0, 1.0), "d": (1, 4), "e": (1, 9)})
    space.add(EqualsCondition(space["c"], space["m"], "x"))
    space.add(GreaterThanCondition(space["d"], space["c"], 0.5))
    with pytest.raises(ValueError, match="summed over c"):
        log_volumes(space, "m")
    space = two_roots()
    space.add(e := Integer("e", (1, 3)))
    space.add(
        AndConjunction(EqualsCondition(e, space["a"], "x"), EqualsCondition(e, space["b"], "u"))
    )
    with pytest.raises(ValueError, match="depend on b outside"):
        log_volumes(space, "a")
    assert hyperparameter_counts(space, "a") == {"x": 2, "y": 0}


# Failure probability: lemma 1 and theorem 1


def test_failure_probability_by_hand() -> None:
    assert failure_probability([0.5, 0.5], [1, 2], 2) == pytest.approx((0.25 + 0.5625) / 2)
    assert failure_probability([1.0], [1.0], 0) == 1.0
    assert failure_probability([1.0], [1.0], 1) == 0.0
    assert failure_probability([0.0, 1.0], [5, 1], 7) == 0.5
    assert failure_probability([0.5, 0.5], [1.0, math.inf], 10_000) == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("n_draws", "weighted", "uniform"),
    [(33, 0.991, 0.730), (99, 0.974, 0.557), (3_000, 0.443, 0.213), (10_000, 0.066, 0.101)],
)
def test_theorem_1_fails_for_the_models_of_the_paper(
    n_draws: int, weighted: float, uniform: float
) -> None:
    theta = 2.0 ** np.array(PAPER)
    p_w = failure_probability(weights_from_counts(PAPER), theta, n_draws)
    p_u = failure_probability(np.full(11, 1 / 11), theta, n_draws)
    assert p_w == pytest.approx(weighted, abs=5e-4)
    assert p_u == pytest.approx(uniform, abs=5e-4)
    assert p_w == pytest.approx((1 - 1 / theta.sum()) ** n_draws)  # eq. 10


def test_the_picture_of_the_page_shows_the_models_of_the_paper() -> None:
    uniform, by_size = [
        np.asarray(line.get_xydata(), dtype=np.float64)
        for line in idea_pictures.weighted_models().axes[0].lines
    ]
    draws, missed = by_size.T
    weights, theta = weights_from_counts(PAPER), 2.0 ** np.array(PAPER)
    expected = [failure_probability(weights, theta, int(k)) for k in draws]
    assert missed == pytest.approx(expected)
    wins = missed < uniform[:, 1]
    assert (wins == (draws >= 7_774)).all()


@pytest.mark.parametrize(
    ("weights", "theta", "n_draws", "message"),
    [
        ([0.5, 0.5], [1.0], 3, "one number for each model"),
        ([], [], 3, "one number for each model"),
        ([0.5, 0.6], [1.0, 1.0], 3, "sum to 1"),
        ([-0.5, 1.5], [1.0, 2.0], 3, "sum to 1"),
        ([0.5, 0.5], [0.0, 1.0], 3, "positive"),
        ([0.5, 0.5], [1.0, math.nan], 3, "positive"),
        ([0.5, 0.5], [1.0, 1.0], -1, "an integer >= 0"),
        ([0.3, 0.7], [1.0, 0.5], 3, r"Model 1 has p = 0.7 > theta = 0.5.* smaller units"),
    ],
)
def test_bad_input(weights: Any, theta: Any, n_draws: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        failure_probability(weights, theta, n_draws)


def test_options_that_python_calls_equal_have_a_volume_each() -> None:
    space = ConfigurationSpace()
    space.add(choice := categorical("m", [True, 1, "a"]))
    for i, option in enumerate([True, 1, "a"]):
        space.add(found := float_range(f"x{i}", 0.0, 2.0**i), one_of(found, choice, [option]))
    assert branches.log_volumes(space, "m") == pytest.approx([0.0, math.log(2), math.log(4)])
