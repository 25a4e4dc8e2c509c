"""What earlier tasks tell of a search space, and how trials refute it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import optuna
import pytest
from automl_plugins.adapters.optuna._foresight import (
    Foresight,
    explain_by_stopped,
    find_abandoned,
    find_refuted,
)
from automl_plugins.adapters.optuna._study import StudyReader
from automl_plugins.adapters.optuna.space import infer_rules, value_in
from automl_plugins.adapters.optuna.trials import StudyTrial
from hypothesis import given
from hypothesis import strategies as st
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.trial import TrialState, create_trial

from automl_plugins.records.trial import Status
from automl_plugins.spaces.conditions import Rule
from automl_plugins.spaces.values import ABSENT

SPACE: dict[str, BaseDistribution] = {
    "kind": CategoricalDistribution(["a", "b", "c"]),
    "n": IntDistribution(1, 5),
    "x": FloatDistribution(0, 1),
    "z": FloatDistribution(0, 1),
}
NAN = float("nan")


def row(kind: str, n: int, x: float | None, z: float | None = 0.5) -> dict[str, Any]:
    values = {"kind": kind, "n": n, "x": x, "z": z}
    return {name: value for name, value in values.items() if value is not None}


EARLIER = [[row("a", 1, 0.2), row("b", 2, None), row("a", 3, 0.9), row("b", 4, None)]]


def own(**columns: list[float]) -> dict[str, np.ndarray[Any, Any]]:
    n = len(next(iter(columns.values()), []))
    return {m: np.array(columns.get(m, [NAN] * n), dtype=np.float64) for m in SPACE}


def test_conditions_are_known_before_any_trial() -> None:
    ignorant = [row("a", 3, None), row("b", 1, None)]  # a task that does not know x
    for tasks in (EARLIER, [*EARLIER, ignorant]):
        assert Foresight(SPACE, tasks).rules(own(), SPACE) == [Rule("x", "kind", "in", (0.0,))]


def test_choices_are_matched_by_value_not_by_place() -> None:
    other = SPACE | {"kind": CategoricalDistribution(["b", "a"])}
    assert Foresight(SPACE, EARLIER).rules(own(), other) == [Rule("x", "kind", "in", (1.0,))]
    only_b = SPACE | {"kind": CategoricalDistribution(["b", "d"])}  # rows of "a" tell nothing
    assert Foresight(SPACE, EARLIER).rules(own(), only_b) == []


def test_a_condition_is_of_the_choices_in_the_order_of_the_first_trial() -> None:
    study = optuna.create_study()
    reader = StudyReader(study, None, {}, {}, Foresight(SPACE, EARLIER))
    waiting = create_trial(state=TrialState.WAITING)
    for _ in range(2):  # before the trial asks, and while it runs
        space = reader.space(reader.view(study, waiting), {}).vectors.space
        (condition,) = space.conditions
        assert condition.value == ["a"]
        study.ask().suggest_categorical("kind", ["c", "b", "a"])


def test_trials_extend_conditions_and_refute_them() -> None:
    foresight = Foresight(SPACE, EARLIER)
    more = own(kind=[2.0], n=[3.0], x=[0.4], z=[0.1])  # a kind that was never tried
    assert foresight.rules(more, SPACE) == [Rule("x", "kind", "in", (0.0, 2.0))]
    against = own(kind=[1.0], n=[3.0], x=[0.4], z=[0.1])
    assert foresight.rules(against, SPACE) == []
    # Thresholds are conditions, too, and those of the trials alone stay if the tasks know none.
    layers = own(kind=[0.0, 0.0], n=[1.0, 4.0], x=[0.2, 0.4], z=[NAN, 0.3])
    unknown = Foresight(SPACE, [[row("a", 1, 0.2, None), row("b", 2, None, None)]])
    rules = unknown.rules(layers, SPACE)
    assert Rule("z", "n", "above", (1.0,)) in rules and Rule("x", "kind", "in", (0.0,)) in rules


def test_what_a_trial_should_have_asked_for_is_not_expected_any_more() -> None:
    foresight = Foresight(SPACE, EARLIER)

    def refuted(asked: set[str], **columns: list[float]) -> Any:
        values = own(**columns)
        return find_refuted(values, foresight.rules(values, SPACE), SPACE.keys() - asked)

    assert refuted(set()) == set()
    assert refuted({"kind", "n", "z"}, kind=[1.0], n=[2.0], z=[0.0]) == set()  # x may come yet
    assert refuted({"kind", "n"}, kind=[1.0], n=[2.0]) == {"z"}
    assert refuted({"kind", "n", "z"}, kind=[0.0], n=[2.0], z=[0.1]) == {"x"}
    assert refuted({"n"}, n=[2.0]) == {"kind", "x", "z"}  # with its parent x is out of reach


@pytest.mark.parametrize(
    ("asked", "abandoned"),
    [
        ([1] * 30 + [0] * 2, False),  # by chance once in 31^2
        ([0] * 20, False),
        ([1] * 30 + [0] * 3, True),
        ([1] + [0] * 13, False),
        ([1] + [0] * 14, True),
        ([0] * 9 + [1] * 4 + [0] * 6, True),  # a second change
        ([0] * 99 + [1] * 9 + [0] * 3, False),  # by chance once in 10^3, whatever was before
        ([1, 0, 1, 1] + [0] * 90, False),  # a condition that no rule expresses
        ([1] * 30 + [0] * 30 + [1], False),
    ],
)
def test_what_all_trials_asked_for_and_all_ask_for_another_since_is_abandoned(
    asked: list[int], abandoned: bool
) -> None:
    n, last = len(asked), max([i for i, one in enumerate(asked) if one], default=-1)
    x = [0.5 if one else NAN for one in asked]
    z = [NAN] * (last + 1) + [0.5] * (n - last - 1)
    values = own(n=[1.0] * n, x=x, z=z)
    assert find_abandoned(values, [], SPACE) == ({"x"} if abandoned else set())
    # Told in between without values, it says nothing.
    more = {name: np.append(column, [NAN] * 5) for name, column in values.items()}
    assert find_abandoned(more, [], SPACE) == ({"x"} if abandoned else set())


def test_what_has_no_other_in_its_place_is_not_abandoned() -> None:
    x = [0.5] * 10 + [NAN] * 30
    for z in ([NAN] * 40, [0.5] * 40, [NAN] * 10 + [0.5, NAN] * 15, [NAN] * 12 + [0.5] * 28):
        assert find_abandoned(own(n=[1.0] * 40, x=x, z=z), [], SPACE) == set()
    assert find_abandoned(own(), [], SPACE) == find_abandoned({}, [], []) == set()


def test_a_branch_is_abandoned_with_its_parameter_only() -> None:
    rules = [Rule("x", "kind", "in", (0.0,))]
    late = [NAN] * 8 + [0.5] * 20
    turns = own(kind=[0.0] * 8 + [1.0] * 20, x=[0.5] * 8 + [NAN] * 20, z=late)
    assert find_abandoned(turns, rules, SPACE) == set()
    renamed = own(kind=[0.0, 1.0] * 4 + [NAN] * 20, x=[0.5, NAN] * 4 + [NAN] * 20, z=late)
    assert find_abandoned(renamed, rules, SPACE) == {"kind", "x"}
    kept = own(kind=[0.0] * 8 + [NAN] * 20, x=[0.5] * 28, z=late)
    assert find_abandoned(kept, rules, SPACE) == {"kind"}


@given(
    st.lists(
        st.tuples(st.sampled_from("abc"), st.integers(1, 5), st.floats(0, 1), st.booleans()),
        max_size=30,
    )
)
def test_condensed_examples_have_the_conditions_of_all(
    drawn: list[tuple[str, int, float, bool]],
) -> None:
    configurations = [
        row(kind, n, x if kind == "b" else None, x if n > 3 or extra else None)
        for kind, n, x, extra in drawn
    ]
    columns = {
        name: np.array([c.get(name, NAN) for c in configurations], dtype=np.float64)
        for name in ("n", "x", "z")
    }
    columns["kind"] = np.array(["abc".index(c["kind"]) for c in configurations], dtype=np.float64)
    expected = {(r.child, r.parent, r.values) for r in infer_rules(columns, SPACE)}
    rules = Foresight(SPACE, [configurations]).rules({}, SPACE)
    assert {(r.child, r.parent, r.values) for r in rules} == expected


@pytest.mark.parametrize(
    ("distribution", "value", "expected"),
    [
        (FloatDistribution(0, 1), 1, 1.0),
        (FloatDistribution(0, 1, step=0.1), 0.30000000000000004, 0.30000000000000004),
        (FloatDistribution(0, 1, step=0.5), 0.3, ABSENT),
        (FloatDistribution(1e-3, 1, log=True), 0.0, ABSENT),
        (IntDistribution(1, 9, log=True), 0, ABSENT),
        (IntDistribution(0, 9), 3.0, 3),
        (IntDistribution(0, 9), 3.5, ABSENT),
        (IntDistribution(0, 8, step=2), 3, ABSENT),
        (IntDistribution(0, 9), math.inf, ABSENT),
        (IntDistribution(1, 9, log=True), 10**400, ABSENT),
        (IntDistribution(1, 9, log=True), 10**25, ABSENT),
        (FloatDistribution(0, 1), 10**25, ABSENT),
        (IntDistribution(0, 2**60), 2**60 - 1, 2**60 - 1),
        (FloatDistribution(0, 1, step=0.5), -math.inf, ABSENT),
    ],
)
def test_a_foretold_value_is_used_if_the_distribution_has_it(
    distribution: BaseDistribution, value: Any, expected: Any
) -> None:
    found = value_in(distribution, value)
    assert found == expected and type(found) is type(expected)


@pytest.mark.parametrize(
    "distribution",
    [
        IntDistribution(0, 9),
        IntDistribution(1, 9, log=True),
        IntDistribution(0, 8, step=2),
        FloatDistribution(0, 1),
        FloatDistribution(0, 1, step=0.5),
    ],
)
def test_what_no_float_holds_is_nearest_to_an_end(distribution: Any) -> None:
    for value in (math.inf, 2**70, 10**400, "1e999"):
        assert value_in(distribution, value, nearest=True) == distribution.high
    assert value_in(distribution, -math.inf, nearest=True) == distribution.low


# Trials that stopped


def stopped(status: Status, **values: float) -> StudyTrial:
    return StudyTrial(dict(values), status, NAN, values=dict(values), distributions=SPACE)


def test_pruned_trials_show_the_branches_of_which_none_completes() -> None:
    trials = [
        stopped(Status.COMPLETE, kind=0.0, n=1.0, x=0.2),
        stopped(Status.PRUNED, kind=1.0, n=2.0, z=0.3),
        stopped(Status.PRUNED, kind=2.0, n=3.0, z=0.4),
    ]
    found = explain_by_stopped(trials, SPACE, [])
    assert found == [Rule("x", "kind", "in", (0.0,)), Rule("z", "kind", "in", (1.0, 2.0))]


def test_what_complete_trials_explain_stays_as_it_is() -> None:
    known = [Rule("x", "n", "above", (1.0,))]
    trials = [
        stopped(Status.PRUNED, kind=0.0, n=2.0, x=0.5),
        stopped(Status.PRUNED, kind=1.0, n=2.0),  # before it asked for x
    ]
    assert explain_by_stopped(trials, SPACE, known) == known
    assert explain_by_stopped([], SPACE, known) == known


def test_a_failed_trial_shows_choices_and_no_threshold() -> None:
    complete = stopped(Status.COMPLETE, kind=0.0, n=1.0, x=0.2)
    assert explain_by_stopped([complete, stopped(Status.FAILED, kind=0.0, n=4.0)], SPACE, []) == []
    assert explain_by_stopped([complete, stopped(Status.FAILED, kind=1.0, n=1.0)], SPACE, []) == [
        Rule("x", "kind", "in", (0.0,))
    ]


def test_proposed_values_that_were_not_asked_for_explain_nothing() -> None:
    ended = stopped(Status.FAILED, kind=1.0, n=1.0)
    ended.values["x"] = 0.7
    trials = [stopped(Status.COMPLETE, kind=0.0, n=1.0, x=0.2), ended]
    assert explain_by_stopped(trials, SPACE, []) == [Rule("x", "kind", "in", (0.0,))]


def test_a_parent_is_never_the_child_of_its_own_child() -> None:
    earlier = [Rule("kind", "n", "above", (2.0,)), Rule("z", "kind", "in", (1.0,))]
    trials = [stopped(Status.PRUNED, z=0.5, kind=1.0, n=1.0), stopped(Status.PRUNED, kind=0.0)]
    assert explain_by_stopped(trials, SPACE, earlier) == earlier
