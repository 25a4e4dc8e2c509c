"""Partitions: by hand, and as a property of random conditional spaces."""

from __future__ import annotations

import itertools
import math
import pickle
import sys
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from ConfigSpace import (
    AndConjunction,
    Beta,
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
    Normal,
    NormalFloatHyperparameter,
    NormalIntegerHyperparameter,
    NotEqualsCondition,
    OrConjunction,
    OrdinalHyperparameter,
)
from ConfigSpace.exceptions import (
    ActiveHyperparameterNotSetError,
    ForbiddenValueError,
    InactiveHyperparameterSetError,
)
from ConfigSpace.forbidden import (
    ForbiddenGreaterThanClause,
    ForbiddenGreaterThanEqualsClause,
    ForbiddenLessThanClause,
    ForbiddenLessThanEqualsClause,
)
from ConfigSpace.hyperparameters import (
    CategoricalHyperparameter,
    UniformFloatHyperparameter,
    UniformIntegerHyperparameter,
)
from hypothesis import assume, given, settings
from scipy import stats

from automl_plugins.arrays import FloatArray
from automl_plugins.spaces.cells import Partition, partition, pieces
from automl_plugins.spaces.choices import categorical, one_of
from automl_plugins.spaces.ranges import (
    ExactFloat,
    ExactInteger,
    float_range,
    integer_range,
    multiples_on_a_log_scale,
    stepped_range,
)
from automl_plugins.spaces.restriction import Range, narrow, restrict_space
from automl_plugins.spaces.scales import Steps, scale_of_floats
from automl_plugins.spaces.values import to_values
from automl_plugins.spaces.vector_space import VectorSpace

Value = dict[str, Any]

# Pieces


@pytest.mark.parametrize(
    ("low", "high", "k", "log", "groups"),
    [
        (1, 7, 3, False, [(1, 2), (3, 4), (5, 7)]),
        (-3, -2, 5, False, [(-3, -3), (-2, -2)]),
        (1, 100, 2, True, [(1, 7), (8, 100)]),  # sqrt(1/2 * 100.5) = 7.1
        (1, 3, 3, True, [(1, 1), (2, 2), (3, 3)]),
        (5, 6, 9, True, [(5, 5), (6, 6)]),
    ],
)
def test_groups_of_integers(low: int, high: int, k: int, log: bool, groups: Any) -> None:
    assert pieces(Integer("n", (low, high), log=log), k) == [Range(*group) for group in groups]


@given(st.integers(1, 10**6), st.integers(1, 10**6), st.integers(2, 40), st.booleans())
def test_groups_of_integers_cover_without_gaps(low: int, more: int, k: int, log: bool) -> None:
    parts: list[Any] = pieces(Integer("n", (low, low + more), log=log), k)
    assert len(parts) == min(k, more + 1)
    assert (parts[0].low, parts[-1].high) == (low, low + more)
    assert all(part.low <= part.high for part in parts)
    assert all(a.high + 1 == b.low for a, b in itertools.pairwise(parts))
    sizes = [part.high - part.low + 1 for part in parts]
    if not log:
        assert max(sizes) - min(sizes) <= 1
    elif min(sizes) > 100:
        widths = [math.log((part.high + 0.5) / (part.low - 0.5)) for part in parts]
        assert max(widths) == pytest.approx(min(widths), rel=0.1)


# Cells by hand


def learner() -> ConfigurationSpace:
    space = ConfigurationSpace()
    booster = Categorical("booster", ["gbt", "dart", "linear"], default="linear")
    rate = Float("rate", (1e-3, 1.0), log=True, default=0.9)
    depth, drop = Integer("depth", (1, 16)), Float("drop", (0.0, 1.0))
    space.add(booster, rate, depth, drop, Constant("seed", 3))
    space.add(
        InCondition(depth, booster, ["gbt", "dart"]),
        EqualsCondition(drop, booster, "dart"),
    )
    return space


def names(cells: Partition) -> list[str]:
    return [cell.name for cell in cells]


def test_a_grid_by_hand() -> None:
    cells = partition(learner(), dict.fromkeys(["booster", "rate", "depth"], 3), max_arms=100)
    low, mid, high = ("rate in [0.001, 0.01)", "rate in [0.01, 0.1)", "rate in [0.1, 1]")
    depths = ("depth in [1, 5]", "depth in [6, 10]", "depth in [11, 16]")
    boosted = itertools.product(("booster = gbt", "booster = dart"), (low, mid, high), depths)
    linear = itertools.product(["booster = linear"], (low, mid, high))
    assert names(cells) == [", ".join(c) for c in (*boosted, *linear)]
    assert cells.notes == ()
    first: Any = cells[0].space
    last: Any = cells[-1].space
    assert set(first) == {"booster", "rate", "depth", "seed"} and not first.conditions
    assert set(last) == {"booster", "rate", "seed"}
    assert first["rate"].log and first["depth"].lower == 1 and first["depth"].upper == 5
    assert first["booster"].choices == ("gbt",)
    # 0.9 has gone, and the middle of the log scale is the default
    assert first["rate"].default_value == pytest.approx(math.sqrt(1e-5))
    assert last["rate"].default_value == 0.9


def test_mixed_groups_keep_their_conditions() -> None:
    cells = partition(learner(), {"booster": 2, "depth": 2})
    # contiguous groups: {gbt} and {dart, linear}
    assert names(cells) == [
        "booster = gbt, depth in [1, 8]",
        "booster = gbt, depth in [9, 16]",
        "booster in {dart, linear}",
    ]
    mixed = cells[2].space
    assert [str(c) for c in mixed.conditions] == [
        "depth | booster in {'dart'}",
        "drop | booster == 'dart'",
    ]
    assert cells[2].contains({"booster": "linear", "rate": 0.5})
    assert not cells[0].contains({"booster": "linear", "rate": 0.5})


def test_cap_on_arms_is_told() -> None:
    cells = partition(learner(), 2, max_arms=5)
    assert names(cells) == [
        "booster = gbt, rate in [0.001, 0.03162)",
        "booster = gbt, rate in [0.03162, 1]",
        "booster in {dart, linear}, rate in [0.001, 0.03162)",
        "booster in {dart, linear}, rate in [0.03162, 1]",
    ]
    assert cells.notes == (
        "Not split, since depth would make 6 cells and max_arms is 5: depth, drop.",
    )


def test_conditional_parameters_alone() -> None:
    with pytest.raises(
        ValueError, match=r"Nothing can be split.*not always active in any cell: drop"
    ):
        partition(learner(), {"drop": 2})
    cells = partition(learner(), {"drop": 2, "rate": 2})
    assert len(cells) == 2
    assert cells.notes == ("Not split, since they are not always active in any cell: drop.",)


def test_cells_pickle_and_slice() -> None:
    cells = partition(learner(), 2)
    again = pickle.loads(pickle.dumps(cells))
    assert names(again) == names(cells) and again[0].space == cells[0].space
    assert cells[1:3] == cells.cells[1:3]


def test_cuts_belong_to_the_cell_above() -> None:
    space = ConfigurationSpace({"x": (0.0, 1.0)})
    low, high = partition(space)
    assert not low.contains({"x": 0.5}) and high.contains({"x": 0.5})
    assert low.contains({"x": math.nextafter(0.5, 0)}) and high.contains({"x": 1.0})
    top = low.space["x"].to_value(1.0)
    assert low.contains({"x": top}) and 0.5 - 2e-13 < top < 0.5


@pytest.mark.parametrize(
    ("low", "high"), [(1e-13, 3e-13), (0.0, 2e-13), (1e3, 1e3 + 1e-9), (-1e12, 1e12), (3e9, 7e9)]
)
@pytest.mark.parametrize("k", [2, 3, 7])
def test_ranges_at_the_limits_of_precision(low: float, high: float, k: int) -> None:
    space = ConfigurationSpace({"x": (low, high), "y": (0.0, 1.0)})
    cells = partition(space, {"x": k, "y": k}, max_arms=1_000)
    for u in np.linspace(0, 1, 23):
        x = float(space["x"].to_value(u))
        assert sum(cell.contains({"x": x, "y": 0.1}) for cell in cells) == 1
    for cell in cells:
        for u in (0.0, 0.5, 1.0):
            assert cell.contains({n: float(cell.space[n].to_value(u)) for n in ("x", "y")})


@pytest.mark.parametrize(
    ("low", "high"), [(2**-17, 2.0**7), (1e-16, 1.0), (1e-20, 1e-10), (1e-300, 1.0), (1e-15, 1e-9)]
)
@pytest.mark.parametrize("k", [2, 3, 4])
def test_ranges_that_configspace_would_round_are_cut_exactly(
    low: float, high: float, k: int
) -> None:
    space = ConfigurationSpace()
    space.add(float_range("x", low, high, log=True))
    ranges = [cell.domains["x"] for cell in partition(space, k)]
    ends = [(r.low, r.high) for r in ranges if isinstance(r, Range)]
    assert len(ends) == k and (ends[0][0], ends[-1][1]) == (low, high)
    for (_, before), (after, _) in itertools.pairwise(ends):
        assert math.nextafter(before, math.inf) == after
    widths = [math.log(b) - math.log(a) for a, b in ends]
    assert widths == pytest.approx([math.log(high / low) / k] * k)


STEPPED = {
    "tenths": stepped_range("x", Steps(0.0, 0.1, 11, is_integer=False)),
    "thirds": stepped_range("x", Steps(-1.0, 1 / 3, 7, is_integer=False)),
    "fives": stepped_range("x", Steps(10, 5, 11)),
    "listed": stepped_range("x", Steps(1, 5, 4, high=50, listed=[1, 7, 9, 50])),
    "large": integer_range("x", 2**60, 2**60 + 4096),
    "multiples": multiples_on_a_log_scale("x", 0.75, 20.0, 3.0),
}


@pytest.mark.parametrize("name", STEPPED)
@pytest.mark.parametrize("k", [2, 3, 5, 40])
def test_cells_of_steps_have_the_same_steps(name: str, k: int) -> None:
    whole = STEPPED[name]
    space = ConfigurationSpace(space=[whole])
    units = np.linspace(0.0, 1.0, 2001)
    values = set(whole.to_value(units).tolist())
    cells = partition(space, k, max_arms=100)
    assert len(cells) == min(k, len(values) - (2 if name == "multiples" else 0))
    found: list[Any] = []
    for cell in cells:
        part = cell.space["x"]
        inside = [part.value] if isinstance(part, Constant) else part.to_value(units).tolist()
        assert type(part) in (type(whole), Constant)
        assert all(cell.contains({"x": value}) for value in inside)
        found += sorted(set(inside))
    # Steps that are counted from another one may differ in the last digit.
    np.testing.assert_allclose(found, sorted(values), rtol=1e-14, atol=1e-16)
    assert all(sum(c.contains({"x": value}) for c in cells) == 1 for value in values)


@pytest.mark.parametrize("name", STEPPED)
def test_a_moved_default_leaves_the_scale(name: str) -> None:
    whole: Any = STEPPED[name]
    space = ConfigurationSpace(space=[whole, Categorical("kind", ["a", "b"])])
    space.add(
        ForbiddenAndConjunction(
            ForbiddenEqualsClause(space["kind"], "b"),
            ForbiddenEqualsClause(whole, whole.default_value),
        )
    )
    left = restrict_space(space, {"kind": ("b",)})
    assert left is not None
    part: Any = left["x"]
    assert (type(part), part.scale, part.log) == (type(whole), whole.scale, whole.log)
    assert part.default_value != whole.default_value and whole.legal_value(part.default_value)
    unrounded: Any = ExactFloat("x", scale_of_floats(1.2345678901234567, 2.0, log=False))
    assert narrow(unrounded, default=1.5).scale == unrounded.scale  # type: ignore[attr-defined]


def test_a_range_between_two_steps_is_refused() -> None:
    for name in ("tenths", "fives", "listed", "multiples"):
        whole: Any = STEPPED[name]
        with pytest.raises(ValueError, match=r"'x' has no value from"):
            narrow(whole, Range(whole.upper - 0.02, whole.upper - 0.01))


def test_a_default_between_two_cells_moves_to_the_end_of_its_own() -> None:
    for i, j in itertools.product(range(-24, 0), range(2, 9)):
        space = ConfigurationSpace()
        space.add(float_range("x", 2.0**i, 2.0 ** (i + j), log=True))
        assert len(partition(space, 2)) == 2


# Other distributions


@pytest.mark.parametrize(
    ("hp", "kind"),
    [
        (Float("x", (0.0, 10.0), distribution=Normal(3.0, 2.0)), NormalFloatHyperparameter),
        (
            Float("x", (1.0, 99.0), log=True, distribution=Beta(2.0, 5.0)),
            UniformFloatHyperparameter,
        ),
    ],
    ids=["normal", "beta"],
)
def test_cells_of_a_distribution_are_equally_probable(hp: Any, kind: Any) -> None:
    space = ConfigurationSpace()
    space.add(hp)
    cells = partition(space, 3)
    drawn = hp.rvs(6_000, random_state=0)
    inside = [[x for x in drawn if cell.contains({"x": x})] for cell in cells]
    assert [len(xs) / 6_000 for xs in inside] == pytest.approx([1 / 3] * 3, abs=0.025)
    for seed, (cell, xs) in enumerate(zip(cells, inside, strict=True)):
        part: Any = cell.space["x"]
        assert type(part) is kind and part.log == hp.log
        if kind is NormalFloatHyperparameter:  # truncated; a beta one becomes uniform
            assert stats.ks_2samp(xs, part.rvs(2_000, random_state=seed)).pvalue > 0.01


def test_what_is_not_cut_stays_and_weights_follow_their_categories() -> None:
    space = ConfigurationSpace()
    space.add(
        Float("y", (0, 1), distribution=Beta(3, 2), default=0.9, meta={"unit": "m"}),
        Categorical("c", ["a", "b", "x", "y"], weights=[3.0, 1.0, 0.0, 0.0]),
    )
    cells = partition(space, {"c": 2})
    assert all(c.space["y"] == space["y"] and c.space["y"].meta == {"unit": "m"} for c in cells)
    low, high = (cell.space["c"] for cell in cells)
    assert isinstance(low, CategoricalHyperparameter) and low.weights == (3.0, 1.0)
    assert low.default_value == "a"
    assert high.weights is None  # type: ignore[attr-defined]  # never drawn: no distribution


def test_distributions_of_integers() -> None:
    normal = NormalIntegerHyperparameter("n", mu=5, sigma=3, lower=0, upper=20)
    narrow = NormalIntegerHyperparameter("m", mu=0, sigma=1, lower=0, upper=3)
    flat = NormalIntegerHyperparameter("f", mu=5, sigma=1000, lower=0, upper=20)
    beta = BetaIntegerHyperparameter("b", alpha=2, beta=5, lower=1, upper=30)
    log_normal = NormalIntegerHyperparameter("l", mu=5, sigma=3, lower=1, upper=99, log=True)
    assert pieces(normal, 2) == [Range(0, 5), Range(6, 20)]
    assert pieces(narrow, 3) == [Range(0, 0), Range(1, 1), Range(2, 3)]
    assert pieces(flat, 3) == [Range(0, 6), Range(7, 13), Range(14, 20)]
    assert pieces(beta, 2) == [Range(1, 8), Range(9, 30)]
    assert pieces(log_normal, 2) == [Range(1, 7), Range(8, 99)]
    space = ConfigurationSpace()
    space.add(normal, narrow, beta, log_normal)
    cells = partition(space, 2)
    assert len(cells) == 16
    one = cells[0].space
    assert isinstance(one["n"], NormalIntegerHyperparameter)
    assert isinstance(one["m"], Constant) and one["m"].value == 0
    assert isinstance(one["b"], UniformIntegerHyperparameter)
    assert isinstance(one["l"], UniformIntegerHyperparameter) and one["l"].log
    for cell in cells:
        assert all(cell.contains(c) for c in cell.space.sample_configuration(5))


# Forbidden clauses


def test_forbidden_cells_are_left_out() -> None:
    space = ConfigurationSpace()
    a, b = Categorical("a", [0, 1, 2, 3], default=3), Integer("b", (1, 4), default=4)
    space.add(a, b)
    space.add(
        ForbiddenAndConjunction(ForbiddenInClause(a, [0, 1]), ForbiddenInClause(b, [1, 2])),
        ForbiddenAndConjunction(ForbiddenEqualsClause(a, 3), ForbiddenEqualsClause(b, 1)),
    )
    cells = partition(space)
    assert names(cells) == [
        "a in {0, 1}, b in [3, 4]",
        "a in {2, 3}, b in [1, 2]",
        "a in {2, 3}, b in [3, 4]",
    ]
    assert cells.notes == ("1 of 4 cells are forbidden and left out.",)
    assert [len(cell.space.forbidden_clauses) for cell in cells] == [0, 1, 0]


def test_defaults_move_to_what_is_allowed() -> None:
    space = ConfigurationSpace()
    a, b = Categorical("a", [0, 1, 2, 3], default=3), Integer("b", (1, 3), default=3)
    x = Float("x", (0, 1), distribution=Beta(3, 2))
    space.add(a, b, x)
    space.add(ForbiddenAndConjunction(ForbiddenEqualsClause(a, 0), ForbiddenInClause(b, [2, 3])))
    cell = partition(space, {"a": 2})[0].space
    assert dict(cell.get_default_configuration()) | {"x": 0} in (
        {"a": 0, "b": 1, "x": 0},
        {"a": 1, "b": 1, "x": 0},
        {"a": 1, "b": 2, "x": 0},
        {"a": 1, "b": 3, "x": 0},
    )
    assert restrict_space(space, {"a": (0,), "b": Range(2, 3)}) is None
    beta = restrict_space(space, {"a": (0,)})
    assert beta is not None and type(beta["x"]) is type(x) and beta["b"].default_value == 1


def test_cells_hidden_behind_relations() -> None:
    space = ConfigurationSpace()
    i, j = Float("i", (0, 1), default=0.0), Float("j", (0, 1), default=1.0)
    space.add(i, j)
    space.add(ForbiddenGreaterThanRelation(i, j))
    cells = partition(space)
    # i above the cut and j below it: nothing is allowed, found by drawing
    assert len(cells) == 3 and cells.notes == ("1 of 4 cells are forbidden and left out.",)


@pytest.mark.parametrize("ordinal", [False, True])
def test_bounds_that_are_forbidden(ordinal: bool, capsys: pytest.CaptureFixture[str]) -> None:
    values = list(range(1, 9))
    n: Any = OrdinalHyperparameter("n", values) if ordinal else Integer("n", (1, 8))
    space = ConfigurationSpace()
    n.default_value = 4
    space.add(n)
    clauses = ForbiddenLessThanEqualsClause(n, 3), ForbiddenGreaterThanEqualsClause(n, 7)
    space.add(*clauses)
    capsys.readouterr()
    found = []
    for cell in partition(space, 4):
        rows = VectorSpace(cell.space).enumerate(99)
        assert rows is not None
        found.append([int(cell.space["n"].to_value(v)) for v in rows[:, 0]])
    assert found == [[4], [5, 6]]
    assert capsys.readouterr().out == ""


def test_what_must_not_be_active() -> None:
    space = ConfigurationSpace()
    a, x = Categorical("a", [0, 1, 2], default=2), Float("x", (0, 1), default=0.9)
    space.add(a, x)
    space.add(EqualsCondition(x, a, 0), ForbiddenLessThanClause(x, 0.6))
    half = restrict_space(space, {"x": Range(0.0, 0.5)})
    assert half is not None
    rows = VectorSpace(half).sample(50, np.random.default_rng(0))
    assert {half["a"].to_value(v) for v in rows[:, 0]} == {1, 2}


@pytest.mark.parametrize(
    ("domains", "n"),
    [
        ({}, 3 + 2 * (1 + 3 * 3)),
        ({"algorithm": ("knn",)}, 3),  # what is never active is never equal
        ({"algorithm": ("svm",)}, 1 + 3 * 3),
        ({"algorithm": ("knn", "svm")}, 3 + 1 + 3 * 3),  # inactive by default
        ({"degree": Range(2, 4)}, 3 + 2 * 3 * 3),
        ({"degree": Range(1, 1)}, 3 + 2 * 1),
        ({"algorithm": ("svm",), "degree": Range(1, 1)}, 1),
        ({"algorithm": ("knn", "svm"), "degree": Range(1, 2), "shift": (0, 2)}, 2 + 1 + 2),
    ],
)
def test_what_is_inactive_is_not_equal(domains: dict[str, Any], n: int) -> None:
    space = ConfigurationSpace()
    algorithm = Categorical("algorithm", ["knn", "svm", "tree"], default="tree")
    degree, shift = Integer("degree", (1, 4)), OrdinalHyperparameter("shift", [0, 1, 2])
    space.add(algorithm, degree, shift)
    space.add(
        InCondition(degree, algorithm, ["svm", "tree"]), NotEqualsCondition(shift, degree, 1)
    )
    part = restrict_space(space, domains)
    assert part is not None
    rows = VectorSpace(part).enumerate(99)
    assert rows is not None and len(rows) == n
    assert_active(part, rows)
    for row in rows:
        Configuration(space, decoded(part, row))


@pytest.mark.parametrize(
    ("when", "default"),
    [
        (lambda c, p: EqualsCondition(c, p, 4), 4),
        (lambda c, p: NotEqualsCondition(c, p, 4), 1),
        (lambda c, p: InCondition(c, p, [2, 4]), 4),
        (lambda c, p: LessThanCondition(c, p, 4), 1),
        (lambda c, p: GreaterThanCondition(c, p, 4), 5),
    ],
)
@pytest.mark.parametrize("most", [4, 5])
def test_what_an_inactive_number_is_not_equal_to(when: Any, default: int, most: int) -> None:
    space = ConfigurationSpace()
    size = Integer("size", (1, 6), default=default)
    degree, shift = Integer("degree", (1, 3), default=1), Integer("shift", (0, 1))
    space.add(size, degree, shift)
    space.add(when(degree, size), NotEqualsCondition(shift, degree, 2))
    part = restrict_space(space, {"size": Range(1, most)})
    assert part is not None
    every, left = VectorSpace(space).enumerate(99), VectorSpace(part).enumerate(99)
    assert every is not None and left is not None
    inside = [c for row in every if (c := decoded(space, row))["size"] <= most]
    assert {tuple(sorted(decoded(part, row).items())) for row in left} == {
        tuple(sorted(c.items())) for c in inside
    }
    assert len(left) == len(inside)


def test_a_step_alone_in_its_cell_decides_what_is_not_equal_to_it() -> None:
    space = ConfigurationSpace()
    switch = Categorical("switch", ["off", "on"], default="on")
    rate = stepped_range("rate", Steps(2.0, 0.1, 3, is_integer=False))
    child = Integer("n", (1, 2))
    space.add(switch, rate, child)
    space.add(EqualsCondition(rate, switch, "on"), NotEqualsCondition(child, rate, 2.1))
    part = restrict_space(space, {"rate": Range(2.1, 2.1, 2.2)})
    assert part is not None
    rows = VectorSpace(part).enumerate(9)
    assert rows is not None
    assert_active(part, rows)
    found = [decoded(part, row) for row in rows]
    assert [values["switch"] for values in found] == ["off", "off", "on"]
    assert ["n" in values for values in found] == [True, True, False]


# Bad input


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"k": 1}, "k must be an integer >= 2, got 1"),
        ({"k": {"rate": 0}}, r"k\['rate'\] must be an integer >= 2, got 0"),
        ({"max_arms": 1}, "booster would make 2 cells and max_arms is 1"),
        ({"k": {"alpha": 2}}, "'alpha' is not a parameter of the space: it has booster"),
        ({"k": {"seed": 2}}, "'seed' has one value"),
        ({"k": {}}, r"Nothing can be split\. No parameter has two values"),
    ],
)
def test_bad_partitions(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        partition(learner(), **options)
    with pytest.raises(TypeError, match=r"k must be an integer >= 2, got 2\.5"):
        partition(learner(), 2.5)  # type: ignore[arg-type]


# Random spaces


@st.composite
def hyperparameters(draw: st.DrawFn, name: str, *, finite: bool) -> Any:
    kind = draw(
        st.sampled_from(
            ["cat", "ord", "int", "log int", "steps", "whole steps", "one"]
            + ["float", "log", "multiples"] * (not finite)
        )
    )
    size = draw(st.integers(1 if kind == "ord" else 2, 5))
    low = draw(st.integers(1, 3))
    if kind == "cat":
        return Categorical(name, [f"{name}{i}" for i in range(size)])
    if kind == "ord":
        return OrdinalHyperparameter(name, [f"{name}{i}" for i in range(size)])
    if kind == "one":
        return Constant(name, "same")
    if kind in ("int", "log int"):
        return Integer(name, (low, low + size - 1), log=kind == "log int")
    if kind in ("steps", "whole steps"):
        return stepped_range(
            name, Steps(low, 0.25 if kind == "steps" else 3, size, is_integer=kind != "steps")
        )
    if kind == "multiples":
        return multiples_on_a_log_scale(name, low, low + 5.0, 0.75)
    return Float(name, (low / 7, low + 0.3), log=kind == "log")


def some_value(draw: st.DrawFn, hp: Any) -> Any:
    if hasattr(hp, "choices"):
        return draw(st.sampled_from(hp.choices))
    if hasattr(hp, "sequence"):
        return draw(st.sampled_from(hp.sequence))
    if isinstance(hp, Constant):
        return hp.value
    if isinstance(hp, ExactFloat | ExactInteger):
        return hp.to_value(draw(st.floats(0.0, 1.0)))
    if hp.size < math.inf:
        return draw(st.integers(hp.lower, hp.upper))
    return draw(st.floats(hp.lower, hp.upper))


def a_condition(draw: st.DrawFn, child: Any, parent: Any) -> Any:
    value = some_value(draw, parent)
    kinds: list[Any] = [EqualsCondition, NotEqualsCondition, InCondition]
    if parent.ORDERABLE:
        kinds += [GreaterThanCondition, LessThanCondition] * 2
    kind = draw(st.sampled_from(kinds))
    if kind is InCondition:
        return InCondition(child, parent, list(dict.fromkeys([value, some_value(draw, parent)])))
    return kind(child, parent, value)


def a_clause(draw: st.DrawFn, hps: list[Any]) -> Any:
    hp = draw(st.sampled_from(hps))
    value = some_value(draw, hp)
    kinds: list[Any] = [ForbiddenEqualsClause, ForbiddenInClause]
    if hp.ORDERABLE:
        kinds += [
            ForbiddenGreaterThanClause,
            ForbiddenGreaterThanEqualsClause,
            ForbiddenLessThanClause,
            # ConfigSpace takes "<=" for ">=" in arrays, so there is nothing to compare with.
        ]
    numbers = [h for h in hps if hasattr(h, "lower")]
    if len(numbers) > 1:
        kinds += [ForbiddenGreaterThanRelation, ForbiddenEqualsRelation]
    kind = draw(st.sampled_from(kinds))
    if kind is ForbiddenInClause:
        return ForbiddenInClause(hp, [value])
    if kind in (ForbiddenGreaterThanRelation, ForbiddenEqualsRelation):
        left, right = draw(st.permutations(numbers))[:2]
        return kind(left, right)
    return kind(hp, value)


@st.composite
def spaces(draw: st.DrawFn, *, finite: bool) -> ConfigurationSpace:
    n = draw(st.integers(2, 6))
    hps = [draw(hyperparameters(f"p{i}", finite=finite)) for i in range(n)]
    conditions = []
    for i in range(1, n):
        parents = draw(st.lists(st.sampled_from(hps[:i]), max_size=2, unique_by=lambda h: h.name))
        parts = [a_condition(draw, hps[i], parent) for parent in parents]
        if len(parts) == 1:
            conditions += parts
        elif parts:
            conditions.append(draw(st.sampled_from([AndConjunction, OrConjunction]))(*parts))
    clauses = []
    for _ in range(draw(st.integers(0, 2))):
        parts = [a_clause(draw, hps) for _ in range(draw(st.integers(1, 2)))]
        clauses.append(parts[0] if len(parts) == 1 else ForbiddenAndConjunction(*parts))
    space = ConfigurationSpace()
    try:
        space.add(hps, conditions, clauses)
    except (
        ForbiddenValueError,  # the default is forbidden, which ConfigSpace does not allow
        # the parent of a "not equal" is inactive by default, which it does not allow either
        ActiveHyperparameterNotSetError,
        InactiveHyperparameterSetError,
    ):
        assume(False)
    return space


def decoded(space: ConfigurationSpace, vector: FloatArray) -> Value:
    """Values of the active hyperparameters."""
    pairs = zip(space.at, vector, strict=True)
    return {name: space[name].to_value(v) for name, v in pairs if not np.isnan(v)}


def accepts(space: ConfigurationSpace, values: Value) -> bool:
    """Whether a configuration is one of the space: names, values, conditions, clauses."""
    if not set(values) <= set(space):
        return False
    if not all(space[name].legal_value(value) for name, value in values.items()):
        return False
    view = VectorSpace(space)
    filled = [space[n].to_vector(values.get(n, space[n].default_value)) for n in view.names]
    row = view.activate(np.array([filled]))
    active = {n for n, v in zip(view.names, row[0], strict=True) if not np.isnan(v)}
    return active == set(values) and bool(view.allowed(row)[0])


def assert_active(space: ConfigurationSpace, rows: FloatArray) -> None:
    """That the values of vectors (n, d) are those of all hyperparameters active to ConfigSpace."""
    for row in rows:
        assert set(decoded(space, row)) == space.get_active_hyperparameters(row)


def cells_of(space: ConfigurationSpace, k: int) -> Partition:
    assume(any(space[n].size > 1 for n in space.unconditional_hyperparameters))
    return partition(space, k, max_arms=12)


@settings(max_examples=30)
@given(spaces(finite=True), st.integers(2, 4))
def test_cells_of_finite_spaces_are_a_partition(space: ConfigurationSpace, k: int) -> None:
    cells = cells_of(space, k)
    rows = VectorSpace(space).enumerate(10**6)
    assert rows is not None
    assert_active(space, rows[:200])
    whole = {frozenset(decoded(space, row).items()) for row in rows}
    seen: set[frozenset[tuple[str, Any]]] = set()
    for cell in cells:
        inner = VectorSpace(cell.space).enumerate(10**6)
        assert inner is not None and len(inner)
        assert_active(cell.space, inner[:200])
        found = {frozenset(decoded(cell.space, row).items()) for row in inner}
        assert not found & seen
        assert all([c.contains(dict(f)) for c in cells].count(True) == 1 for f in found)
        assert all(cell.contains(dict(f)) for f in found)
        seen |= found
    assert seen == whole


@settings(max_examples=30)
@given(spaces(finite=False), st.integers(2, 3), st.integers(0, 2**32 - 1))
def test_cells_are_disjoint_and_cover(space: ConfigurationSpace, k: int, seed: int) -> None:
    cells = cells_of(space, k)
    rng = np.random.default_rng(seed)
    view = VectorSpace(space)
    try:
        rows = view.sample(20, rng)
    except ValueError:  # the clauses leave the default and little else
        assume(False)
    for row in rows:
        values = decoded(space, row)
        holders = [cell for cell in cells if cell.contains(values)]
        assert len(holders) == 1
        assert accepts(holders[0].space, values)
    for cell in cells:
        for row in VectorSpace(cell.space).sample(5, rng):
            values = decoded(cell.space, row)
            assert [c.contains(values) for c in cells] == [c is cell for c in cells]
            assert accepts(space, values)


def test_choices_that_are_equal_to_python_lie_in_cells_of_their_own() -> None:
    space = ConfigurationSpace()
    choice = categorical("c", [1, True, math.nan, "a"], weights=[4, 3, 2, 1])
    child = UniformFloatHyperparameter("x", 0.0, 1.0)
    space.add(choice, child, one_of(child, choice, [True, "a"]))
    cells = partition(space, {"c": 4})
    for i, value in enumerate((1, True, math.nan, "a")):
        assert [cell.contains({"c": value}) for cell in cells] == [i == k for k in range(4)]
    assert [list(cell.space) for cell in cells] == [["c"], ["c", "x"], ["c"], ["c", "x"]]
    left = restrict_space(space, {"c": (True, math.nan)})
    assert left is not None
    assert to_values(left, np.array([[0.0, 0.5], [1.0, math.nan]]))[0] == {"c": True, "x": 0.5}
    probabilities: Any = left["c"].probabilities  # type: ignore[attr-defined]
    assert probabilities.tolist() == pytest.approx([0.6, 0.4])


def test_what_a_lost_choice_decided_is_not_decided_by_an_equal_one() -> None:
    """Without 1, ConfigSpace's own class holds the choice again: to that, 1 is True."""
    space = ConfigurationSpace()
    choice = categorical("c", [1, True, "a"])
    child = UniformFloatHyperparameter("x", 0.0, 1.0)
    space.add(choice, child, one_of(child, choice, [1, "a"]))
    part = restrict_space(space, {"c": (True, "a")})
    assert part is not None
    vectors = VectorSpace(part).activate(np.array([[0.0, 0.5], [1.0, 0.5]]))
    assert to_values(part, vectors) == [{"c": True}, {"c": "a", "x": 0.5}]


@pytest.mark.parametrize(
    ("low", "high", "log"),
    [(-sys.float_info.max, sys.float_info.max, False), (1e300, 1e308, True)],
)
def test_cells_of_ranges_as_wide_as_floats(low: float, high: float, log: bool) -> None:
    space = ConfigurationSpace()
    with np.errstate(over="ignore"):  # ConfigSpace rounds the default
        space.add(float_range("x", low, high, log=log))
    cells = partition(space, 2).cells
    numbers: list[Any] = [cell.space["x"] for cell in cells]
    ends = [(x.lower, x.upper) for x in numbers]
    assert ends[0][0] == low and ends[-1][1] == high
    assert all(low <= a < b <= high for a, b in ends)
    assert all(x.lower <= x.default_value <= x.upper for x in numbers)


def test_cells_of_integers_beyond_floats_keep_the_given_default() -> None:
    whole = integer_range("n", 0, 2**62)
    part: Any = narrow(whole, Range(0, 2**60), 2**55)
    assert (part.lower, part.upper, part.default_value) == (0, 2**60, 2**55)
