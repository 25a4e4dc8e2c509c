"""Which choice of a search space gives the arms, and what lies below each option."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from automl_plugins.adapters.hyperopt._arms import branches
from automl_plugins.adapters.hyperopt._branches import choices, labels, root_choice
from automl_plugins.adapters.hyperopt._weights import log_volume, n_tuned, option_weights
from hyperopt import hp, pyll


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


def expr(space: Any) -> Any:
    return pyll.as_apply(space)


def test_the_root_is_found_and_named() -> None:
    choice = root_choice(expr(nested()))
    assert (choice.label, choice.n_options, choice.always) == ("model", 3, True)
    assert choice.names() == ("svm", "rf", "nb")
    assert choice.labels_below(0) == ("C", "kernel", "gamma", "n")
    assert [choice.labels_below(i) for i in (1, 2)] == [("depth",), ()]


@pytest.mark.parametrize(
    "space",
    [
        {
            "clf": nested(),
            "scaler": hp.choice("scaler", ["none", "std"]),
            "x": hp.uniform("x", 0, 1),
        },
        [hp.uniform("x", 0, 1), nested()],
        {"outer": {"inner": (nested(),)}},
    ],
)
def test_inside_a_dict_the_only_choice_with_hyperparameters_is_taken(space: Any) -> None:
    assert root_choice(expr(space)).label == "model"


def test_a_lone_choice_of_bare_values_is_taken() -> None:
    space = {"clf": hp.choice("clf", ["a", "b"]), "x": hp.uniform("x", 0, 1)}
    assert root_choice(expr(space)).label == "clf"


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
        root_choice(expr(space), label)


def test_a_label_chooses_among_several() -> None:
    space = [nested(), hp.choice("b", [hp.uniform("y", 0, 1), 2])]
    assert root_choice(expr(space), "b").label == "b"


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
    ]
    names = root_choice(expr(hp.choice("m", options))).names()
    assert names == ("text", "7", "m[2]", "pair", "first", "m[5]", "m[6]", "m[7]")


def test_all_choices_are_found_outer_ones_first() -> None:
    found = choices(expr({"a": nested(), "b": hp.pchoice("p", [(0.5, 1), (0.5, 2)])}))
    assert list(found) == ["model", "kernel", "p"]
    assert [c.always for c in found.values()] == [True, False, True]


def test_what_a_hand_made_switch_switches_is_not_always_drawn() -> None:
    index = pyll.scope.int(hp.quniform("i", 0, 1, 1))
    space = {"a": pyll.scope.switch(index, hp.choice("b", [1, hp.uniform("x", 0, 1)]), 0)}
    assert not choices(expr(space))["b"].always


# --- arms ---------------------------------------------------------------------------------


def test_what_is_outside_the_choice_belongs_to_every_arm() -> None:
    space = {"clf": nested(), "x": hp.uniform("x", 0, 1)}
    arms = branches(expr(space)).arms
    assert [arm.name for arm in arms] == ["svm", "rf", "nb"]
    assert [arm.labels for arm in arms] == [
        ("C", "kernel", "gamma", "n", "x"),
        ("depth", "x"),
        ("x",),
    ]


def test_labels_that_options_share_belong_to_each() -> None:
    shared = hp.uniform("alpha", 0, 1)
    space = hp.choice("m", [{"t": "a", "alpha": shared}, {"t": "b", "alpha": shared}, {"t": "c"}])
    choice = root_choice(expr(space))
    assert [n_tuned(choice, i) for i in range(3)] == [1, 1, 0]
    assert [arm.labels for arm in branches(expr(space)).arms] == [("alpha",), ("alpha",), ()]


def test_options_that_are_nodes_or_bare_values_are_arms() -> None:
    arms = branches(expr(hp.choice("m", [hp.uniform("x", 0, 1), 3, "a"]))).arms
    assert [arm.labels for arm in arms] == [("x",), (), ()]
    assert pyll.rec_eval(arms[1].expr) == 3
    assert list(arms[0].domain.params) == ["x"]


def test_restricting_leaves_the_space_as_it_was() -> None:
    space = expr({"clf": nested(), "x": hp.uniform("x", 0, 1)})
    before = str(space)
    for arm in branches(space).arms:
        assert "model" not in labels(arm.expr)
    assert str(space) == before


def test_options_of_probability_zero_are_no_arms() -> None:
    space = hp.pchoice("m", [(0.5, "a"), (0.0, "b"), (0.5, "c")])
    arms = branches(expr(space))
    assert arms.names == ("a", "c")
    assert arms.notes == ("Left out, since their probability is zero: b.",)
    assert [arms.find({"m": i}) for i in range(3)] == [0, None, 1]


# --- weights ------------------------------------------------------------------------------


def test_weights_are_powers_of_the_number_of_hyperparameters() -> None:
    choice = root_choice(expr({"clf": nested(), "x": hp.uniform("x", 0, 1)}))
    # nested: C, kernel, gamma, n; then depth; then nothing: 16 : 2 : 1
    assert [n_tuned(choice, i) for i in range(3)] == [4, 1, 0]
    np.testing.assert_allclose(option_weights(choice, "2^N"), np.array([16, 2, 1]) / 19)


def test_what_has_one_value_is_not_tuned() -> None:
    constant = hp.choice("one", [hp.uniform("x", 0, 1)])
    choice = root_choice(expr(hp.choice("m", [constant, hp.quniform("q", 2, 2.2, 1)])))
    assert [n_tuned(choice, i) for i in range(2)] == [1, 0]


def test_volumes_are_products_of_ranges_and_sums_over_options() -> None:
    choice = root_choice(expr(nested()))
    # (1 - -1) for C, (1 + 4) over the kernels, 3 values of n; 5 depths; nothing
    volumes = [math.exp(log_volume(choice, i)) for i in range(3)]
    np.testing.assert_allclose(volumes, [2 * 5 * 3, 5, 1])
    np.testing.assert_allclose(option_weights(choice, "volume"), np.array([30, 5, 1]) / 36)


def test_a_normal_distribution_has_no_volume() -> None:
    choice = root_choice(expr(hp.choice("m", [hp.normal("x", 0, 1), 2])))
    with pytest.raises(ValueError, match="volume of 'x', drawn from normal"):
        option_weights(choice, "volume")


@pytest.mark.parametrize(
    "weights", [{"svm": 1, "rf": 3, "nb": 0}, {0: 1, "rf": 3, 2: 0}, [1, 3, 0], (0.5, 1.5, 0.0)]
)
def test_weights_are_given_by_name_index_or_order(weights: Any) -> None:
    choice = root_choice(expr(nested()))
    np.testing.assert_allclose(option_weights(choice, weights), [0.25, 0.75, 0.0])


def test_huge_weights_do_not_overflow() -> None:
    choice = root_choice(expr(nested()))
    np.testing.assert_allclose(option_weights(choice, [1e308, 1e308, 1e308]), [1 / 3] * 3)


def test_options_of_probability_zero_have_no_weight() -> None:
    choice = root_choice(
        expr(hp.pchoice("m", [(0.5, "a"), (0.0, hp.uniform("x", 0, 1)), (0.5, "c")]))
    )
    for weights in ("2^N", "volume", [1, 5, 1]):
        np.testing.assert_allclose(option_weights(choice, weights), [0.5, 0.0, 0.5])


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ("3^N", r"'2\^N', 'volume' or a number"),
        ([1, 2], "for each of the 3 options of 'model', got 2"),
        ({"svm": 1, "knn": 2}, r"no option 'knn'.*svm, rf, nb"),
        ({"svm": 1, "rf": 2}, "nb of 'model' must have one"),
        ([1, -1, 1], "must be finite, >= 0"),
        ([0, 0, 0], "not all 0"),
        ([1, math.nan, 1], "finite"),
    ],
)
def test_weights_that_do_not_fit_are_refused(weights: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        option_weights(root_choice(expr(nested())), weights)
