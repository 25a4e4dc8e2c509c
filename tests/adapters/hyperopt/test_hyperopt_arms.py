"""Arms of search spaces: the choice that gives them, cells, weights, what is proposed inside."""

from __future__ import annotations

import itertools
import json
import math
from collections import Counter
from functools import partial
from typing import Any

import numpy as np
import pytest
from automl_plugins.adapters.hyperopt import _arms, auto, bandit, boasf, weighted
from automl_plugins.adapters.hyperopt._arms import (
    Arms,
    ArmSpace,
    arms_of,
    option_names,
    option_weights,
    root_choice,
)
from automl_plugins.adapters.hyperopt.algos import inner_of
from automl_plugins.adapters.hyperopt.space import PyllSpace, translate
from automl_plugins.adapters.hyperopt.trials import new_document
from hyperopt import Domain, Trials, hp, pyll, rand, space_eval, tpe
from hyperopt_runs import configs, minimise, options_of
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import ks_2samp

from automl_plugins.spaces.restriction import Range, domain_of


def nested() -> Any:
    """Options with 4, 1 and 0 hyperparameters; a choice with two options in the first."""
    kernel = hp.choice("kernel", [{"k": "lin"}, {"k": "rbf", "gamma": hp.uniform("gamma", 0, 4)}])
    return hp.choice(
        "model",
        [
            {
                "type": "svm",
                "C": hp.loguniform("C", -1, 1),
                "kernel": kernel,
                "n": hp.randint("n", 3),
            },
            {"type": "rf", "depth": hp.quniform("depth", 1, 5, 1)},
            {"type": "nb"},
        ],
    )


def four() -> Any:
    """A choice whose options can only be grouped."""
    return hp.choice("m", [{"t": i, "v": hp.uniform(f"v{i}", 0, 1)} for i in range(4)])


def arms(space: Any, **how: Any) -> ArmSpace:
    return arms_of(Domain(None, space, pass_expr_memo_ctrl=False), **how)


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
    losses = itertools.cycle([0.0, 1.0, 2.0, 3.0, 4.0])
    algo = partial(tpe.suggest, n_startup_jobs=3, verbose=False)
    return configs(minimise(lambda _: next(losses), space, algo, n))


def inside(found: ArmSpace, number: int, n: int, draw: Any = drawn) -> list[dict[str, Any]]:
    """Values of the whole space proposed within an arm."""
    labels = found.arms.arms[number].labels
    values = draw(found.exprs[number], n) if labels else [{}]
    return [found.outer(number, v) for v in values]


# --- the choice ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("space", "label", "expected"),
    [
        (nested(), None, "model"),
        ({"m": nested(), "s": hp.choice("s", [1, 2]), "x": hp.uniform("x", 0, 1)}, None, "model"),
        ([hp.uniform("x", 0, 1), nested()], None, "model"),
        ({"outer": {"inner": (nested(),)}}, None, "model"),
        ({"clf": hp.choice("model", ["a", "b"]), "x": hp.uniform("x", 0, 1)}, None, "model"),
        ([nested(), hp.choice("b", [hp.uniform("y", 0, 1), 2])], "b", "b"),
    ],
)
def test_the_root_or_the_only_choice_with_hyperparameters_gives_the_arms(
    space: Any, label: str | None, expected: str
) -> None:
    assert root_choice(translate(space, lenient=True), label) == expected


@pytest.mark.parametrize(
    ("space", "label", "message"),
    [
        ({"x": hp.uniform("x", 0, 1)}, None, r"no choice .*hp\.choice.*split=2"),
        ([nested(), hp.choice("b", [hp.uniform("y", 0, 1), 2])], None, r"'model', 'b'.*label="),
        ([hp.choice("a", [1, 2]), hp.choice("b", [1, 2])], None, r"'a', 'b'.*label="),
        (nested(), "kernel", r"'kernel' is not made in every configuration.*'model' do"),
        (nested(), "kernal", r"No choice has the label 'kernal'; there are 'model'"),
    ],
)
def test_errors_name_the_labels(space: Any, label: str | None, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        root_choice(translate(space, lenient=True), label)


def test_options_of_all_kinds_have_names() -> None:
    options = [
        "text",
        7,
        hp.uniform("x", 0, 1),
        ("pair", {"a": hp.uniform("y", 0, 1)}),
        {"z": "last", "name": "first"},
        {"twice": "same"},
        {"again": "same"},
        None,
        "7",
    ]
    names = option_names(translate(hp.choice("m", options)), "m")
    expected = ("text", "m[1]", "m[2]", "pair", "first", "{'twice': 'same'}", "{'again': 'same'}")
    assert names == (*expected, "None", "m[8]")


# --- options as arms ----------------------------------------------------------------------


SHARED = hp.uniform("alpha", 0, 1)


@pytest.mark.parametrize(
    ("space", "expected"),
    [
        (  # What is outside the choice belongs to every arm.
            {"clf": nested(), "x": hp.uniform("x", 0, 1)},
            [("C", "kernel", "gamma", "n", "x"), ("depth", "x"), ("x",)],
        ),
        (  # Labels that options share belong to each.
            hp.choice("m", [{"t": "a", "alpha": SHARED}, {"t": "b", "alpha": SHARED}, "c"]),
            [("alpha",), ("alpha",), ()],
        ),
        (hp.choice("m", [hp.uniform("x", 0, 1), 3, "a"]), [("x",), (), ()]),
    ],
)
def test_hyperparameters_of_an_arm(space: Any, expected: list[tuple[str, ...]]) -> None:
    found = arms(space)
    assert [arm.labels for arm in found.arms.arms] == expected
    assert set(found.domain(0).params) == set(expected[0])
    assert pyll.rec_eval(arms(hp.choice("m", [hp.uniform("x", 0, 1), 3])).exprs[1]) == 3


def test_options_of_probability_zero_are_no_arms_and_have_no_weight() -> None:
    found = arms(hp.pchoice("m", [(0.5, "a"), (0.0, hp.uniform("x", 0, 1)), (0.5, "c")]))
    assert found.arms.names == ("a", "c")
    assert found.arms.notes == ("Left out, since their probability is zero: m[1].",)
    assert [found.arms.find({"m": i}) for i in range(3)] == [0, None, 1]
    for weights in ("2^N", "volume", [1, 5, 1]):
        np.testing.assert_allclose(option_weights(found, weights), [0.5, 0.5])


def test_options_are_named_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Names compare all options with all: once for each of them takes the cube."""
    named: list[str] = []

    def name(known: PyllSpace, label: str) -> tuple[str, ...]:
        named.append(label)
        found: tuple[str, ...] = option_names(known, label)
        return found

    monkeypatch.setattr(_arms, "option_names", name)
    assert arms(hp.choice("m", [*"abcde"])).arms.names == ("a", "b", "c", "d", "e")
    assert named == ["m"]


# --- weights ------------------------------------------------------------------------------


ONE = hp.choice("one", [hp.uniform("x", 0, 1)])
NEVER = hp.pchoice("p", [(0.0, hp.uniform("x", 0, 9)), (1.0, hp.uniform("y", 0, 3))])


@pytest.mark.parametrize(
    ("space", "weights", "expected"),
    [
        # C, kernel, gamma, n; then depth; then nothing
        ({"clf": nested(), "x": hp.uniform("x", 0, 1)}, "2^N", [16 / 19, 2 / 19, 1 / 19]),
        # (1 - -1) for C, (1 + 4) over the kernels, 3 values of n; 5 depths; nothing
        ({"clf": nested(), "x": hp.uniform("x", 0, 1)}, "volume", [30 / 36, 5 / 36, 1 / 36]),
        # What has one value is not tuned; nested options of probability zero have no volume.
        (hp.choice("m", [ONE, hp.quniform("q", 2, 2.2, 1)]), "2^N", [2 / 3, 1 / 3]),
        (hp.choice("m", [NEVER, hp.uniform("z", 0, 1)]), "volume", [0.75, 0.25]),
        ({"m": hp.choice("m", [1, 2]), "x": hp.normal("x", 0, 1)}, "volume", [0.5, 0.5]),
        (
            hp.choice("m", [{"t": 1, "v": SHARED}, {"t": 2, "v": SHARED}, 3]),
            "2^N",
            [0.4, 0.4, 0.2],
        ),
        (nested(), {"svm": 1, "rf": 3, "nb": 0}, [0.25, 0.75, 0.0]),
        (nested(), {0.0: 1, 1.0: 3, 2.0: 0}, [0.25, 0.75, 0.0]),  # as JSON or a frame may have it
        (nested(), {0: 1, "rf": 3, 2: 0}, [0.25, 0.75, 0.0]),
        (nested(), [1, 3, 0], [0.25, 0.75, 0.0]),
    ],
)
def test_weights_of_options(space: Any, weights: Any, expected: list[float]) -> None:
    np.testing.assert_allclose(option_weights(arms(space), weights), expected)


def test_a_normal_distribution_has_no_volume() -> None:
    with pytest.raises(ValueError, match="range of 'x' is unbounded or unknown"):
        option_weights(arms(hp.choice("m", [hp.normal("x", 0, 1), 2])), "volume")


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ("3^N", r"'2\^N', 'volume' or a number"),
        ([1, 2], r"for each of the 3 options of 'model', got \[1, 2\]"),
        (3, "for each of the 3 options of 'model', got 3"),
        ({"svm": 1, "knn": 2}, r"svm, rf, nb; missing: \['rf', 'nb'\], unknown: \['knn'\]"),
        ({"svm": 1, "rf": 2}, r"missing: \['nb'\]"),
        ([1, -1, 1], "must be finite, >= 0"),
        (["a", "b", "c"], "must have one number .* got {'svm': 'a', 'rf': 'b', 'nb': 'c'}"),
        ([0, 0, 0], "not all 0"),
        ([1, math.nan, 1], "finite"),
    ],
)
def test_weights_that_do_not_fit_are_refused(weights: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        option_weights(arms(nested()), weights)


# --- cells --------------------------------------------------------------------------------

DISTRIBUTIONS = {
    "uniform": hp.uniform("x", -1.0, 2.0),
    "uniform by keyword": hp.uniform("x", low=-1.0, high=2.0),
    "loguniform": hp.loguniform("x", math.log(1e-4), math.log(10.0)),
    "quniform": hp.quniform("x", 0, 10, 2.5),
    "quniform, fine": hp.quniform("x", 0, 10, 0.005),
    "uniformint": hp.uniformint("x", 1, 9),
    "qloguniform": hp.qloguniform("x", 0.0, 5.0, 1),
    "randint": hp.randint("x", 7),
    "randint from": hp.randint("x", 5, 12),
    "choice": hp.choice("x", ["a", "b", "c", "d", "e"]),
    "pchoice": hp.pchoice("x", [(0.1, "a"), (0.2, "b"), (0.0, "c"), (0.7, "d")]),
}


@pytest.mark.parametrize("name", DISTRIBUTIONS)
@pytest.mark.parametrize("k", [2, 3])
def test_cells_are_disjoint_and_cover_a_distribution(name: str, k: int) -> None:
    found = arms(DISTRIBUTIONS[name], split=k)
    assert len(found.arms) == k
    values = drawn(DISTRIBUTIONS[name], 300)
    owners = Counter(
        tuple(i for i, arm in enumerate(found.arms.arms) if arm.contains(v)) for v in values
    )
    assert all(len(owner) == 1 for owner in owners)  # exactly one arm each
    assert len(owners) == k


@pytest.mark.parametrize("name", DISTRIBUTIONS)
@pytest.mark.parametrize("draw", [drawn, by_tpe])
def test_what_is_proposed_within_a_cell_lies_in_it(name: str, draw: Any) -> None:
    found = arms(DISTRIBUTIONS[name], split=2)
    for number in range(2):
        assert {found.arms.find(values) for values in inside(found, number, 12, draw)} == {number}


@pytest.mark.parametrize(
    "node",
    [
        hp.uniform("x", -0.3, 1000),
        hp.loguniform("x", math.log(1e-4), math.log(3e3)),
        hp.quniform("x", 0, 4.7, 0.01),
        hp.qloguniform("x", math.log(1e-3), math.log(1e4), 3),
        hp.uniformint("x", -5, 11),
        hp.randint("x", 5, 40),
    ],
)
@pytest.mark.parametrize("k", [2, 7])
def test_the_ends_of_a_cell_lie_in_it(node: Any, k: int) -> None:
    found = arms(node, split=k)
    for number, expr in enumerate(found.exprs):
        known = translate(expr)
        whole = domain_of(known.space["x"])
        for end in (whole.low, whole.high) if isinstance(whole, Range) else whole:
            values = found.outer(number, known.labels({"x": end}))
            assert found.arms.find(values) == number


def test_proposers_that_like_the_ends_of_cells_repeat_nothing() -> None:
    space = {"x": hp.uniform("x", 0, 1), "y": hp.uniform("y", 0, 1)}
    algo = boasf(max_evals=16, split=2, inner=auto(n_startup=2))
    trials = minimise(lambda c: abs(c["x"] - 0.5) + abs(c["y"] - 0.5), space, algo, 16)
    assert len({tuple(values.items()) for values in configs(trials)}) == 16


@pytest.mark.parametrize(
    "name", ["uniform", "loguniform", "qloguniform", "quniform", "quniform, fine", "uniformint"]
)
def test_within_a_cell_values_are_drawn_as_before(name: str) -> None:
    found = arms(DISTRIBUTIONS[name], split=2)
    whole = drawn(DISTRIBUTIONS[name], 800, seed=1)
    for number in range(2):
        expected = [v["x"] for v in whole if found.arms.find(v) == number]
        got = [v["x"] for v in inside(found, number, 400)]
        assert ks_2samp(expected, got).pvalue > 1e-3


def test_probabilities_keep_their_proportions_within_a_group() -> None:
    found = arms(DISTRIBUTIONS["pchoice"], split=2)  # {a}, {b, d}: c is never drawn
    assert found.arms.names == ("x = a", "x in {b, d}")
    counts = Counter(v["x"] for v in inside(found, 1, 900))
    assert set(counts) == {1, 3}
    assert abs(counts[3] / 900 - 7 / 9) < 4 * math.sqrt(7 / 9 * 2 / 9 / 900)


@pytest.mark.parametrize(
    ("node", "k", "ends"),
    [
        (hp.uniform("x", 0, 8), 4, [2, 4, 6]),
        (hp.loguniform("x", math.log(1e-4), 0.0), 2, [0.01]),
        (hp.uniformint("x", 1, 4), 2, [2.5]),
        (hp.quniform("x", 0, 10, 5), 2, [2.5]),
        (hp.quniform("x", 0, 100, 0.05), 2, [50.025]),
        (hp.randint("x", 5, 12), 3, [6.5, 8.5]),
    ],
)
def test_ends_by_hand(node: Any, k: int, ends: list[float]) -> None:
    parts = [arm.parts["x"] for arm in arms(node, split=k).arms.arms]
    assert [part.low for part in parts] == pytest.approx([-math.inf, *ends])
    assert [part.high for part in parts] == pytest.approx([*ends, math.inf])


@pytest.mark.parametrize(
    ("node", "k"),
    [
        (hp.qloguniform("x", 0.0, math.log(200), 4), 8),
        (hp.qloguniform("x", math.log(30), math.log(3000), 50), 6),
        (hp.quniform("x", 0, 300, 0.3), 7),
    ],
)
def test_cells_of_multiples_have_some(node: Any, k: int) -> None:
    found = arms(node, split=k)
    for number, arm in enumerate(found.arms.arms):
        assert {found.arms.find(values) for values in inside(found, number, 20)} == {number}
        grid = found.grid(number)
        assert len(grid) == (arm.size or 0)
        assert all(found.arms.find(values) == number for values in grid)


@given(
    low=st.floats(-1e6, 1e6), width=st.floats(1e-3, 1e6), q=st.sampled_from([0.1, 1, 3, 50]),
    k=st.integers(2, 7), u=st.floats(0, 1, exclude_max=True),
)  # fmt: skip
def test_a_rounded_value_lies_in_the_cell_whose_range_gives_it(
    low: float, width: float, q: float, k: int, u: float
) -> None:
    try:
        found = arms(hp.quniform("x", low, low + width, q), split=k)
    except ValueError:
        return  # one value, or a range too narrow to be split
    raw = low + u * width
    rounded = float(np.round(raw / q) * q)
    owners = [i for i, arm in enumerate(found.arms.arms) if arm.contains({"x": rounded})]
    assert len(owners) == 1
    params = found.domain(owners[0]).params
    first, last = (float(arg.obj) for arg in params["x"].pos_args[:2])
    assert first - 1e-9 * abs(first) <= raw <= last + 1e-9 * abs(last)


def conditional() -> Any:
    kernel = hp.choice("kernel", [{"k": "lin"}, {"k": "rbf", "gamma": hp.uniform("gamma", 0, 1)}])
    return {
        "clf": hp.choice("model", [{"t": "svm", "kernel": kernel}, {"t": "nb"}]),
        "x": hp.uniform("x", 0, 1),
    }


def test_what_lies_below_an_option_of_probability_zero_is_not_split() -> None:
    option = {"t": "b", "y": hp.uniform("y", 0, 1)}
    space = {"x": hp.uniform("x", 0, 1), "m": hp.pchoice("m", [(1.0, {"t": "a"}), (0.0, option)])}
    for split in (2, {"x": 2, "y": 3}):
        found = arms(space, split=split)
        assert found.arms.names == ("x in [0, 0.5)", "x in [0.5, 1]")
        assert "Not split, since their probability is zero: y." in found.arms.notes


def test_what_only_some_options_have_is_split_where_it_is_always_drawn() -> None:
    found = arms(conditional(), split=2)
    assert found.arms.names == (
        "model = svm, kernel = lin, x in [0, 0.5)",
        "model = svm, kernel = lin, x in [0.5, 1]",
        "model = svm, kernel = rbf, gamma in [0, 0.5), x in [0, 0.5)",
        "model = svm, kernel = rbf, gamma in [0, 0.5), x in [0.5, 1]",
        "model = svm, kernel = rbf, gamma in [0.5, 1], x in [0, 0.5)",
        "model = svm, kernel = rbf, gamma in [0.5, 1], x in [0.5, 1]",
        "model = nb, x in [0, 0.5)",
        "model = nb, x in [0.5, 1]",
    )
    owners = Counter(found.arms.find(values) for values in drawn(conditional(), 200))
    assert None not in owners and len(owners) == 8


def test_children_of_a_group_of_options_are_left_whole_and_told_apart() -> None:
    space = four()
    found = arms(space, split=2)
    assert found.arms.names == ("m in {m[0], m[1]}", "m in {m[2], m[3]}")
    (note,) = found.arms.notes
    assert note.startswith("Not split") and note.endswith("v0, v1, v2, v3.")
    for draw in (drawn, by_tpe):
        # Numbered from 0 within the cell, as TPE needs it, and by their own number outside.
        for values in inside(found, 1, 20, draw):
            assert values["m"] in (2, 3)
            assert set(values) == {"m", f"v{values['m']}"}
            assert space_eval(space, values) == {"t": values["m"], "v": values[f"v{values['m']}"]}


@pytest.mark.parametrize(
    ("space", "split", "max_arms", "message"),
    [
        (hp.uniform("x", 0, 1), 1, 16, "split must be an integer >= 2"),
        (hp.uniform("x", 0, 1), {"y": 2}, 16, "no label 'y'; there are x"),
        (hp.normal("x", 0, 1), 2, 16, "Nothing can be split.* no bounds: x"),
        (hp.uniform("x", 0, 1), 8, 4, "max_arms is 4"),
    ],
)
def test_what_cannot_be_split_is_refused(
    space: Any, split: Any, max_arms: int, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        arms(space, split=split, max_arms=max_arms)


def test_labels_are_named_or_taken_in_their_order_and_split_alike_wherever_they_are() -> None:
    space = [hp.choice("m", [{"t": "a", "v": SHARED}, {"t": "b", "v": SHARED}]), SHARED]
    assert len(arms(space, split=2).arms) == 4
    named = arms({name: hp.uniform(name, 0, 1) for name in "abcd"}, split={"d": 3, "b": 2})
    assert named.arms.names[0] == "d in [0, 0.3333), b in [0, 0.5)" and len(named.arms) == 6


def test_an_empty_label_is_split_like_any_other() -> None:
    found = arms({"": hp.choice("", list("abcd")), "m": hp.choice("m", ["only"])}, split=2)
    values = [{v[""] for v in inside(found, i, 40)} for i in range(2)]
    assert values == [{0, 1}, {2, 3}]


# --- what ConfigSpace cannot express ------------------------------------------------------


def foreign() -> dict[str, Any]:
    """A range that depends on another hyperparameter, and a switch that is not a choice."""
    depends = {"y": hp.uniform("y", 0, 1), "x": hp.uniform("x", 0, 1 + hp.randint("n", 3))}
    index = pyll.scope.int(hp.quniform("i", 0, 1, 1))
    below = pyll.scope.switch(index, hp.choice("b", [1, hp.randint("z", 5)]), 0)
    return {"m": hp.choice("m", [depends, {"k": hp.randint("k", 4)}]), "s": below}


def test_spaces_that_configspace_cannot_express_have_arms() -> None:
    found = arms(foreign())
    assert [set(arm.labels) for arm in found.arms.arms] == [
        {"y", "x", "n", "i", "b", "z"},
        {"k", "i", "b", "z"},
    ]
    assert [arm.size for arm in found.arms.arms] == [None, None]
    np.testing.assert_allclose(option_weights(found, "2^N"), [0.8, 0.2])
    cells = arms(foreign(), split={"m": 2, "x": 2, "b": 2})
    assert cells.arms.names == ("m = m[0]", "m = m[1]")
    assert cells.arms.notes == ("Not split, since they have no bounds: x, b.",)
    for algo in (weighted, bandit(inner="random"), boasf(max_evals=12, inner="random")):
        trials = minimise(lambda c: c["m"].get("x", 1) / 10, foreign(), algo, 12)
        assert set(options_of(trials, "m")) == {0, 1}


# --- inside an arm ------------------------------------------------------------------------


def test_an_arm_sees_values_as_its_own_expression_names_them() -> None:
    domain, trials = Domain(None, four(), pass_expr_memo_ctrl=False), Trials()
    document = new_document(trials, domain, 0, {"m": 3, "v3": 0.5})
    assert document["misc"]["vals"] == {"m": [3], "v0": [], "v1": [], "v2": [], "v3": [0.5]}
    assert document["misc"]["idxs"] == {"m": [0], "v0": [], "v1": [], "v2": [], "v3": [0]}
    document["state"] = 2
    (seen,) = arms_of(domain, split=2).view(1, trials, [document]).trials
    assert seen["misc"]["vals"] == {"m": [1], "v2": [], "v3": [0.5]}
    assert seen["misc"]["idxs"] == {"m": [0], "v2": [], "v3": [0]}
    assert document["misc"]["vals"]["m"] == [3]  # untouched


def test_a_view_shows_what_has_changed() -> None:
    domain, trials = Domain(None, four(), pass_expr_memo_ctrl=False), Trials()
    documents = [new_document(trials, domain, i, {"m": 3, "v3": i / 2}) for i in range(2)]
    cells = arms_of(domain, split=2)
    view = cells.view(1, trials, documents)
    before = list(view.trials)
    documents[0].update(state=2, result={"status": "ok", "loss": 0.5})
    assert cells.view(1, trials, documents) is view
    after = list(view.trials)
    assert after[0]["state"] == 2 and after[0]["result"]["loss"] == 0.5
    assert after[1] is before[1]
    documents[1]["misc"]["automl_plugins"] = {"seconds": 3.0, "arm": 1}
    assert cells.view(1, trials, documents[1:]).tids == [1]
    assert view.trials[0]["misc"]["automl_plugins"] == {"seconds": 3.0}
    assert cells.view(1, Trials(), documents) is not view  # of another search


@pytest.mark.parametrize(
    ("space", "how"),
    [(nested(), {}), (four(), {"split": 2}), (hp.uniform("x", 0, 1), {"split": 3})],
)
def test_arms_survive_as_plain_data(space: Any, how: Any) -> None:
    found = arms(space, **how).arms
    # Strict JSON has no infinity, which is an end of the first and the last cell.
    assert Arms.from_dict(json.loads(json.dumps(found.to_dict(), allow_nan=False))) == found


def test_arms_are_made_once_and_leave_no_trace_on_the_domain() -> None:
    domain = Domain(None, conditional(), pass_expr_memo_ctrl=False)
    before = set(vars(domain))
    assert arms_of(domain) is arms_of(domain)
    assert arms_of(domain) is not arms_of(domain, split=2)
    assert set(vars(domain)) == before


@pytest.mark.parametrize(("n_arms", "jobs"), [(1, 20), (3, 7), (5, 4), (12, 3)])
def test_arms_share_the_random_trials_of_tpe(n_arms: int, jobs: int) -> None:
    for inner in ("tpe", tpe.suggest, partial(tpe.suggest, gamma=0.3)):
        assert inner_of(inner, n_arms).keywords["n_startup_jobs"] == jobs
    given = inner_of(partial(partial(tpe.suggest, n_startup_jobs=9), gamma=0.3), n_arms)
    assert given.keywords["n_startup_jobs"] == 9
    assert inner_of(rand.suggest, n_arms) is rand.suggest


# --- grids --------------------------------------------------------------------------------


def listed(node: Any) -> list[dict[str, Any]] | None:
    """The configurations of a space, those of an arm that is the whole of it."""
    whole = arms({"all": hp.choice("all", [1]), "node": node}, label="all")
    size, grid = whole.arms.arms[0].size, whole.grid(0)
    assert len(grid) == (size or 0)
    return None if size is None else grid


def test_few_configurations_are_listed() -> None:
    kernel = hp.choice("kernel", [{"k": "lin"}, {"k": "rbf", "d": hp.randint("d", 2, 4)}])
    found = listed({"kernel": kernel, "q": hp.quniform("q", 0.5, 3.5, 1)})
    assert found is not None
    # 0.5 and 3.5 themselves are never drawn, so 0 and 4 are not values of q
    expected = [{"all": 0, "kernel": 0, "q": q} for q in (1, 2, 3)]
    expected += [{"all": 0, "kernel": 1, "d": d, "q": q} for d in (2, 3) for q in (1, 2, 3)]
    for values in expected:
        assert values in found
    assert len(found) == len(expected)


@pytest.mark.parametrize("name", sorted({*DISTRIBUTIONS} - {"uniform", "loguniform"}))
def test_the_listed_values_are_those_that_are_drawn(name: str) -> None:
    found = listed(DISTRIBUTIONS[name])
    if name in ("quniform, fine", "uniform by keyword"):
        assert found is None
        return
    assert found is not None
    values = {float(v["x"]) for v in found}
    seen = {float(v["x"]) for v in drawn(DISTRIBUTIONS[name], 600)}
    assert seen == values if len(values) <= 12 else seen <= values


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
    assert listed(space) is None
