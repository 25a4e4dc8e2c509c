"""Cells of search spaces: disjoint, covering, drawn as before within; and small ones listed."""

from __future__ import annotations

import math
from collections import Counter
from functools import partial
from typing import Any

import numpy as np
import pytest
from automl_plugins.adapters.hyperopt._arms import Arms, arms_of, branches, cells
from automl_plugins.adapters.hyperopt._branches import always_drawn, choices
from automl_plugins.adapters.hyperopt._cells import restricted, split_values
from automl_plugins.adapters.hyperopt._documents import new_document, own_trials, values_of
from automl_plugins.adapters.hyperopt._grid import grid_of
from hyperopt import Domain, Trials, fmin, hp, pyll, rand, space_eval, tpe
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import ks_2samp

DISTRIBUTIONS = {
    "uniform": hp.uniform("x", -1.0, 2.0),
    "uniform by keyword": hp.uniform("x", low=-1.0, high=2.0),
    "loguniform": hp.loguniform("x", math.log(1e-4), math.log(10.0)),
    "quniform": hp.quniform("x", 0, 10, 2.5),
    "uniformint": hp.uniformint("x", 1, 9),
    "qloguniform": hp.qloguniform("x", 0.0, 5.0, 1),
    "randint": hp.randint("x", 7),
    "randint from": hp.randint("x", 5, 12),
    "choice": hp.choice("x", ["a", "b", "c", "d", "e"]),
    "pchoice": hp.pchoice("x", [(0.1, "a"), (0.2, "b"), (0.0, "c"), (0.7, "d")]),
}


def expr(space: Any) -> Any:
    return pyll.as_apply(space)


def drawn(space: Any, n: int, seed: int = 0) -> list[dict[str, Any]]:
    """Values by label of n random configurations."""
    domain, ids = Domain(None, space, pass_expr_memo_ctrl=False), list(range(n))
    idxs, vals = rand.suggest_batch(ids, domain, Trials(), seed)
    found: list[dict[str, Any]] = [{} for _ in ids]
    for label in idxs:
        for i, value in zip(idxs[label], vals[label], strict=True):
            found[i][label] = value
    return found


def by_tpe(space: Any, n: int) -> list[dict[str, Any]]:
    """Values by label of n proposals of TPE, which likes some of them."""
    trials = Trials()
    fmin(
        lambda _: float(len(trials.trials) % 5),
        space,
        algo=partial(tpe.suggest, n_startup_jobs=3, verbose=False),
        max_evals=n,
        trials=trials,
        rstate=np.random.default_rng(0),
        show_progressbar=False,
    )
    return [values_of(document) for document in trials.trials]


def inside(arms: Arms, number: int, n: int, draw: Any = drawn) -> list[dict[str, Any]]:
    """Values of the whole space proposed within an arm."""
    arm = arms.arms[number]
    return [arm.outer(values) for values in (draw(arm.expr, n) if arm.labels else [{}])]


@pytest.mark.parametrize("name", DISTRIBUTIONS)
@pytest.mark.parametrize("k", [2, 3])
def test_cells_are_disjoint_and_cover_a_distribution(name: str, k: int) -> None:
    arms = cells(expr(DISTRIBUTIONS[name]), k, 16)
    assert len(arms.arms) == k
    values = drawn(DISTRIBUTIONS[name], 300)
    owners = Counter(
        tuple(i for i, arm in enumerate(arms.arms) if arm.contains(v)) for v in values
    )
    assert all(len(owner) == 1 for owner in owners)  # exactly one arm each
    assert len(owners) == k


@pytest.mark.parametrize("name", DISTRIBUTIONS)
@pytest.mark.parametrize("draw", [drawn, by_tpe])
def test_what_is_proposed_within_a_cell_lies_in_it(name: str, draw: Any) -> None:
    arms = cells(expr(DISTRIBUTIONS[name]), 2, 16)
    for number in range(2):
        assert {arms.find(values) for values in inside(arms, number, 12, draw)} == {number}


@pytest.mark.parametrize(
    "name", ["uniform", "loguniform", "qloguniform", "quniform", "uniformint"]
)
def test_within_a_cell_values_are_drawn_as_before(name: str) -> None:
    arms = cells(expr(DISTRIBUTIONS[name]), 2, 16)
    whole = drawn(DISTRIBUTIONS[name], 800, seed=1)
    for number in range(2):
        expected = [v["x"] for v in whole if arms.find(v) == number]
        got = [v["x"] for v in inside(arms, number, 400)]
        assert ks_2samp(expected, got).pvalue > 1e-3


def test_probabilities_keep_their_proportions_within_a_group() -> None:
    arms = cells(expr(DISTRIBUTIONS["pchoice"]), 2, 16)  # {a}, {b, d}: c is never drawn
    assert arms.names == ("x = a", "x = b | d")
    counts = Counter(v["x"] for v in inside(arms, 1, 900))
    assert set(counts) == {1, 3}
    assert abs(counts[3] / 900 - 7 / 9) < 4 * math.sqrt(7 / 9 * 2 / 9 / 900)


def test_ends_by_hand() -> None:
    def parts(node: Any, k: int = 2) -> list[str]:
        params, known = always_drawn(expr(node)), choices(expr(node))
        return [str(part) for part in split_values(params["x"], known.get("x"), k)]

    assert parts(hp.uniform("x", 0, 8), 4) == ["x < 2", "2 <= x < 4", "4 <= x < 6", "6 <= x"]
    assert parts(hp.loguniform("x", math.log(1e-4), 0.0)) == ["x < 0.01", "0.01 <= x"]
    assert parts(hp.uniformint("x", 1, 4)) == ["x < 2.5", "2.5 <= x"]
    assert parts(hp.quniform("x", 0, 10, 5)) == ["x < 7.5", "7.5 <= x"]
    assert parts(hp.randint("x", 5, 12), 3) == ["x < 7", "7 <= x < 9", "9 <= x"]
    assert parts(hp.choice("x", ["a", "b", "c"])) == ["x = a", "x = b | c"]
    assert parts(hp.quniform("x", 0, 1, 5)) == [] or len(parts(hp.quniform("x", 0, 1, 5))) == 1
    for node in (hp.normal("x", 0, 1), hp.lognormal("x", 0, 1), hp.qnormal("x", 0, 1, 1)):
        assert parts(node) == []


@given(
    low=st.floats(-1e6, 1e6), width=st.floats(1e-3, 1e6), q=st.sampled_from([0.1, 1, 3, 50]),
    k=st.integers(2, 7), u=st.floats(0, 1, exclude_max=True),
)  # fmt: skip
def test_a_rounded_value_lies_in_the_cell_whose_range_gives_it(
    low: float, width: float, q: float, k: int, u: float
) -> None:
    (param,) = always_drawn(expr(hp.quniform("x", low, low + width, q))).values()
    parts = split_values(param, None, k)
    raw = low + u * width
    rounded = float(np.round(raw / q) * q)
    owners = [part for part in parts if part.contains(rounded)]
    assert len(owners) == 1
    first, last = (float(arg.obj) for arg in owners[0].node.pos_args[:2])
    assert first - 1e-9 * abs(first) <= raw <= last + 1e-9 * abs(last)


# --- conditional spaces -------------------------------------------------------------------


def conditional() -> Any:
    kernel = hp.choice("kernel", [{"k": "lin"}, {"k": "rbf", "gamma": hp.uniform("gamma", 0, 1)}])
    return {
        "clf": hp.choice("model", [{"t": "svm", "kernel": kernel}, {"t": "nb"}]),
        "x": hp.uniform("x", 0, 1),
    }


def test_what_only_some_options_have_is_split_where_it_is_always_drawn() -> None:
    arms = cells(expr(conditional()), 2, 16)
    assert arms.names == (
        "model = svm & kernel = lin & x < 0.5",
        "model = svm & kernel = lin & 0.5 <= x",
        "model = svm & kernel = rbf & gamma < 0.5 & x < 0.5",
        "model = svm & kernel = rbf & gamma < 0.5 & 0.5 <= x",
        "model = svm & kernel = rbf & 0.5 <= gamma & x < 0.5",
        "model = svm & kernel = rbf & 0.5 <= gamma & 0.5 <= x",
        "model = nb & x < 0.5",
        "model = nb & 0.5 <= x",
    )
    owners = Counter(arms.find(values) for values in drawn(conditional(), 200))
    assert None not in owners and len(owners) == 8


def test_children_of_a_group_of_options_are_left_whole_and_told_apart() -> None:
    options = [{"t": i, "v": hp.uniform(f"v{i}", 0, 1)} for i in range(4)]
    space = hp.choice("m", options)
    arms = cells(expr(space), 2, 16)
    assert arms.names == ("m = m[0] | m[1]", "m = m[2] | m[3]")
    assert arms.notes == ("Not split, since they cannot be: v0, v1, v2, v3.",)
    for draw in (drawn, by_tpe):
        # Numbered from 0 within the cell, as TPE needs it, and by their own number outside.
        for values in inside(arms, 1, 20, draw):
            assert values["m"] in (2, 3)
            assert set(values) == {"m", f"v{values['m']}"}
            assert space_eval(space, values) == {"t": values["m"], "v": values[f"v{values['m']}"]}


def test_only_the_first_are_split_when_there_would_be_too_many() -> None:
    space = {name: hp.uniform(name, 0, 1) for name in "abcd"}
    arms = cells(expr(space), 2, 4)
    assert len(arms.arms) == 4
    assert arms.notes == ("Not split, since c would make 8 cells and max_arms is 4: c, d.",)


def test_labels_may_be_named_in_order_of_importance() -> None:
    space = {name: hp.uniform(name, 0, 1) for name in "abcd"}
    arms = cells(expr(space), {"d": 3, "b": 2}, 6)
    assert arms.names[0] == "d < 0.3333 & b < 0.5" and len(arms.arms) == 6
    assert arms.notes == ()


@pytest.mark.parametrize(
    ("space", "split", "max_arms", "message"),
    [
        (hp.uniform("x", 0, 1), 1, 16, "split must be at least 2"),
        (hp.uniform("x", 0, 1), {"y": 2}, 16, "no label 'y'; there are x"),
        (hp.normal("x", 0, 1), 2, 16, "Normal distributions are not"),
        (hp.uniform("x", 0, 1), 8, 4, "max_arms is 4"),
    ],
)
def test_what_cannot_be_split_is_refused(
    space: Any, split: Any, max_arms: int, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        cells(expr(space), split, max_arms)


def test_a_shared_label_is_split_alike_wherever_it_is() -> None:
    shared = hp.uniform("alpha", 0, 1)
    space = [hp.choice("m", [{"t": "a", "v": shared}, {"t": "b", "v": shared}]), shared]
    assert len(cells(expr(space), 2, 16).arms) == 4


# --- own view -----------------------------------------------------------------------------


def test_an_arm_sees_values_as_its_own_expression_names_them() -> None:
    space = hp.choice("m", [{"t": i, "v": hp.uniform(f"v{i}", 0, 1)} for i in range(4)])
    domain, trials = Domain(None, space, pass_expr_memo_ctrl=False), Trials()
    arms = arms_of(domain, split=2)
    document = new_document(trials, domain, 0, {"m": 3, "v3": 0.5})
    assert document["misc"]["vals"] == {"m": [3], "v0": [], "v1": [], "v2": [], "v3": [0.5]}
    assert document["misc"]["idxs"] == {"m": [0], "v0": [], "v1": [], "v2": [], "v3": [0]}
    document["state"] = 2
    (seen,) = own_trials(arms.arms[1], [document]).trials
    assert seen["misc"]["vals"] == {"m": [1], "v2": [], "v3": [0.5]}
    assert document["misc"]["vals"]["m"] == [3]  # untouched


def test_arms_are_made_once_and_leave_no_trace_on_the_domain() -> None:
    domain = Domain(None, conditional(), pass_expr_memo_ctrl=False)
    before = set(vars(domain))
    assert arms_of(domain) is arms_of(domain)
    assert arms_of(domain) is not arms_of(domain, split=2)
    assert set(vars(domain)) == before


# --- grids --------------------------------------------------------------------------------


def test_few_configurations_are_listed() -> None:
    kernel = hp.choice("kernel", [{"k": "lin"}, {"k": "rbf", "d": hp.randint("d", 2, 4)}])
    space = {"kernel": kernel, "q": hp.quniform("q", 0.5, 3.5, 1)}
    found = grid_of(expr(space))
    assert found is not None
    # 0.5 and 3.5 themselves are never drawn, so 0 and 4 are no values of q
    expected = [{"kernel": 0, "q": q} for q in (1, 2, 3)]
    expected += [{"kernel": 1, "d": d, "q": q} for d in (2, 3) for q in (1, 2, 3)]
    assert sorted(found, key=str) == sorted(expected, key=str)


@pytest.mark.parametrize(
    "node",
    [
        DISTRIBUTIONS[n]
        for n in (
            "quniform",
            "uniformint",
            "qloguniform",
            "randint",
            "randint from",
            "choice",
            "pchoice",
        )
    ],
)
def test_the_listed_values_are_those_that_are_drawn(node: Any) -> None:
    found = grid_of(expr(node))
    assert found is not None
    listed = {float(values["x"]) for values in found}
    seen = {float(v["x"]) for v in drawn(node, 600)}
    assert seen <= listed
    if len(listed) <= 12:
        assert seen == listed


def test_a_shared_label_is_listed_once() -> None:
    shared = hp.randint("s", 3)
    space = {"a": shared, "m": hp.choice("m", [{"t": 1, "s": shared}, {"t": 2}])}
    found = grid_of(expr(space))
    assert found is not None and len(found) == 6


@pytest.mark.parametrize(
    "space",
    [
        hp.uniform("x", 0, 1),
        hp.qnormal("x", 0, 1, 1),
        hp.randint("x", 1001),
        [hp.randint(str(i), 10) for i in range(4)],
        hp.choice("m", [hp.randint("x", 900), hp.randint("y", 900)]),
        hp.choice("m", [1, hp.uniform("x", 0, 1)]),
    ],
)
def test_many_configurations_are_not_listed(space: Any) -> None:
    assert grid_of(expr(space)) is None


def test_an_arm_lists_configurations_of_the_whole_space() -> None:
    space = {
        "m": hp.choice("m", [{"t": "a"}, {"t": "b", "d": hp.randint("d", 2)}]),
        "n": hp.randint("n", 2),
    }
    first, second = branches(expr(space)).arms
    assert first.grid == ({"m": 0, "n": 0}, {"m": 0, "n": 1})
    assert second.grid is not None and len(second.grid) == 4
    assert all(values["m"] == 1 for values in second.grid)


def test_restricting_to_nothing_is_a_copy() -> None:
    space = expr(conditional())
    copy = restricted(space, {})
    assert copy is not space and str(copy) == str(space)
