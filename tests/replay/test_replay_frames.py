"""Tables and spaces inferred from data frames, studies and searches."""

from __future__ import annotations

import copy
import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import pandas as pd
import pytest
from ConfigSpace import (
    Categorical,
    ConfigurationSpace,
    Constant,
    Float,
    GreaterThanCondition,
    InCondition,
    Integer,
    LessThanCondition,
    OrdinalHyperparameter,
)
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from automl_plugins.__main__ import main
from automl_plugins.records.search import COLUMNS
from automl_plugins.replay import (
    Answer,
    RecordedTrial,
    Search,
    Table,
    TrialStatus,
    search_frame,
)
from automl_plugins.replay.frames import infer_space

NAN = math.nan
COMPLETE, FAILED, PRUNED = TrialStatus.COMPLETE, TrialStatus.FAILED, TrialStatus.PRUNED


# --- infer_space ----------------------------------------------------------------------------


def test_types_are_those_of_the_columns() -> None:
    frame = pd.DataFrame(
        {
            "rate": [1e-3, 1.0, 0.1],
            "n": [1, 5, 9],
            "gaps": [1.0, NAN, 8.0],
            "size": [64, 16, 32],
            "kind": ["b", "a", "b"],
            "flag": [True, False, True],
            "only": ["x", "x", "x"],
            "one": [7, 7, 7],
            "group": pd.Categorical(["u", "v", "u"]),
        }
    )
    space = infer_space(frame, log=["rate"], grid=["size"]).space
    assert dict(space) == {
        "rate": Float("rate", (1e-3, 1.0), log=True),
        "n": Integer("n", (1, 9)),
        "gaps": Integer("gaps", (1, 8)),
        "size": OrdinalHyperparameter("size", [16, 32, 64]),
        "kind": Categorical("kind", ["a", "b"]),
        "flag": Categorical("flag", [False, True]),
        "only": Constant("only", "x"),
        "one": Constant("one", 7),
        "group": Categorical("group", ["u", "v"]),
    }


@pytest.mark.parametrize(
    ("parent", "child", "kind", "values"),
    [
        (["rbf", "linear", "poly", "rbf"], [0.1, NAN, 0.5, 0.9], InCondition, ["poly", "rbf"]),
        ([True, False, True], [0.5, NAN, 0.7], InCondition, [True]),
        ([1, 2, 3], [0.5, NAN, 0.7], InCondition, [1, 3]),  # a grid
        (["a", "b", "a"], pd.array([1, None, 3], dtype="Int64"), InCondition, ["a"]),
        ([1, 2, 3, 4], [NAN, NAN, 0.5, 0.7], GreaterThanCondition, 2),
        ([1, 2, 3, 4], [0.5, 0.7, NAN, NAN], LessThanCondition, 3),
    ],
)
def test_gaps_that_another_column_explains_are_a_condition(
    parent: Any, child: Any, kind: Any, values: Any
) -> None:
    grid = ["parent"] if parent == [1, 2, 3] else []
    space = infer_space(pd.DataFrame({"parent": parent, "x": child}), grid=grid).space
    (condition,) = space.conditions
    assert isinstance(condition, kind)
    assert (condition.child.name, condition.parent.name) == ("x", "parent")
    found = condition.values if kind is InCondition else condition.value
    assert found == values or sorted(found) == values


def test_whole_floats_become_integers_with_a_note() -> None:
    columns = {"x": [1.0, 3.0, 2.0], "n": [1, 3, 2], "gaps": [1.0, NAN, 2.0], "y": [1.5, 2.0, 3.0]}
    found = infer_space(pd.DataFrame(columns), log=())
    assert found.space["x"] == Integer("x", (1, 3)) and found.space["gaps"] == Integer(
        "gaps", (1, 2)
    )
    about = [note for note in found.notes if "is searched as an integer" in note]
    assert len(about) == 1 and about[0].startswith("x is searched")


def test_columns_that_cannot_be_inferred_are_refused() -> None:
    frame = pd.DataFrame({"kind": ["a", "b"], "x": [0.5, 1.0], "empty": [None, None]})
    with pytest.raises(ValueError, match=r"take numerical columns \(x\), got kind, y"):
        infer_space(frame[["kind", "x"]], log=["y"], grid=["kind"])
    with pytest.raises(ValueError, match=r"none here"):
        infer_space(frame[["kind"]], log=["kind"])
    with pytest.raises(ValueError, match=r"'empty' has no value in any row: leave it out"):
        infer_space(frame)
    with pytest.raises(ValueError, match="x"):
        infer_space(pd.DataFrame({"x": [0.0, 1.0]}), log=["x"])


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"x": [0.5, 1.0], "loss": [1.0, "low"]}, "Column 'loss' must be numbers, .*'low'"),
        (
            {"x": [[8, 8], [4]], "loss": [1.0, 2.0]},
            r"Column 'x' holds \[8, 8\]: .* a list .* text",
        ),
        ({"x": [], "loss": []}, "The frame has no row"),
    ],
)
def test_frames_of_something_else_are_refused(columns: dict[str, Any], message: str) -> None:
    for repeats in (None, "mean"):
        with pytest.raises(ValueError, match=message):
            Table.from_frame(pd.DataFrame(columns), name="t", loss="loss", repeats=repeats)


# --- from_frame -----------------------------------------------------------------------------


def runs() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "kernel": ["rbf", "rbf", "linear"],
            "gamma": [1.0, 4.0, NAN],
            "accuracy": [0.9, 0.5, NAN],
            "time": [3.0, 1.0, 2.0],
            "at1": [0.2, 0.1, NAN],
            "at2": [0.8, 0.4, NAN],
        }
    )


def test_scores_change_sign() -> None:
    table = Table.from_frame(
        runs(),
        name="t",
        loss="accuracy",
        seconds="time",
        curves={2: "at2", 1: "at1"},
        maximize=True,
    )
    np.testing.assert_array_equal(table.losses, [-0.9, -0.5, NAN])
    np.testing.assert_array_equal(table.seconds, [3, 1, 2])
    assert table.steps == (1, 2)
    assert table.curves is not None
    np.testing.assert_array_equal(table.curves[:2], [[-0.2, -0.8], [-0.1, -0.4]])
    assert table.config(0) == {"kernel": "rbf", "gamma": 1}
    assert isinstance(table.config(0)["gamma"], int)
    assert table.config(2) == {"kernel": "linear"}
    assert table.find({"kernel": "linear"}) == Answer(2, 0.0)
    assert table.find({"kernel": "rbf", "gamma": 2}).distance == pytest.approx(1 / 3)


def test_seconds_of_the_curves_are_read_by_step() -> None:
    frame = runs().fillna(0.0)
    frame["s1"], frame["s2"] = [1.0, 2, 3], [4.0, 5, 6]
    table = Table.from_frame(
        frame,
        name="t",
        loss="accuracy",
        parameters=["kernel", "gamma"],
        curves={1: "at1", 2: "at2"},
        curve_seconds={2: "s2", 1: "s1"},
    )
    assert table.curve_seconds is not None
    np.testing.assert_array_equal(table.curve_seconds, [[1, 4], [2, 5], [3, 6]])
    with pytest.raises(ValueError, match="same steps"):
        Table.from_frame(
            frame, name="t", loss="accuracy", curves={1: "at1"}, curve_seconds={2: "s2"}
        )
    odd: list[tuple[dict[Any, str], str]] = [
        ({1: "at1", "1.0": "at2"}, "curves has several columns of step 1"),
        ({"first": "at1"}, "curves: a step must be a number: .* 'first'"),
    ]
    for curves, message in odd:
        with pytest.raises(ValueError, match=message):
            Table.from_frame(frame, name="t", loss="accuracy", curves=curves)


def test_steps_are_numbers_though_they_are_given_as_text() -> None:
    frame = runs().fillna(0.0).assign(at10=[3.0, 4.0, 5.0])
    curves: Any = {"1": "at1", "10": "at10", "2": "at2"}
    table = Table.from_frame(frame, name="t", loss="accuracy", curves=curves)
    assert table.steps == (1.0, 2.0, 10.0) and table.curves is not None
    assert table.curves[:, 2].tolist() == [3.0, 4.0, 5.0]
    wrong: Any
    for wrong in ({"curves": ["at1"]}, {"curve_seconds": ["at1"]}):
        with pytest.raises(TypeError, match="takes names of columns by step; got <list of 1>"):
            Table.from_frame(frame, name="t", loss="accuracy", **wrong)


def test_unknown_columns_are_named() -> None:
    with pytest.raises(ValueError, match=r"no column 'loss'; it has kernel, gamma, accuracy"):
        Table.from_frame(runs(), name="t", loss="loss")
    with pytest.raises(ValueError, match=r"no column 'c', 'duration'"):
        Table.from_frame(
            runs(), name="t", loss="accuracy", parameters=["c", "kernel"], seconds="duration"
        )


def test_repeats_are_refused_or_averaged() -> None:
    frame = pd.DataFrame(
        {
            "kind": ["a", "b", "a", "b"],
            "x": [1.5, NAN, 1.5, NAN],
            "y": [1, 2, 1, 3],
            "loss": [1.0, 5.0, 3.0, 7.0],
            "time": [2.0, 1.0, 6.0, 1.0],
            "at1": [10.0, 0.0, 30.0, 0.0],
        }
    )
    arguments: Any = {"name": "t", "loss": "loss", "seconds": "time", "curves": {1: "at1"}}
    with pytest.raises(ValueError, match=r"rows 0 and 2 record one configuration"):
        Table.from_frame(frame, **arguments)
    table = Table.from_frame(frame, repeats="mean", **arguments)
    assert len(table) == 3
    assert table.losses.tolist() == [2.0, 5.0, 7.0]
    assert table.seconds is not None and table.curves is not None
    assert table.seconds.tolist() == [4.0, 1.0, 1.0]
    assert table.curves[:, 0].tolist() == [20.0, 0.0, 0.0]
    last = Table.from_frame(frame, name="t", loss="loss", curves={2: "loss"}, repeats="mean")
    assert last.curves is not None and (last.curves[:, 0] == last.losses).all()
    with pytest.raises(ValueError, match="repeats must be None or 'mean', got 'median'"):
        Table.from_frame(frame, repeats="median", **arguments)
    text = frame.assign(loss=["1.0", "5.0", "crashed", "7.0"])
    with pytest.raises(ValueError, match="Column 'loss' must be numbers"):
        Table.from_frame(text, repeats="mean", **arguments)


def test_repeats_that_failed_count_as_failures_from_half_of_them_on() -> None:
    losses = [0.1, 0.3, NAN, 0.2, np.inf, NAN, 0.4, 0.6]
    frame = pd.DataFrame({"x": [1, 1, 1, 2, 2, 3, 4, 4], "loss": losses, "time": range(1, 9)})
    table = Table.from_frame(frame, name="t", loss="loss", seconds="time", repeats="mean")
    np.testing.assert_allclose(table.losses, [0.2, NAN, NAN, 0.5])
    assert table.seconds is not None
    np.testing.assert_allclose(table.seconds, [1.5, 4.5, 6.0, 7.5])
    (note,) = [note for note in table.notes if "failed" in note]
    assert note.startswith("2 of 4 configurations failed in some of their runs")
    assert not table.with_losses("other", [1.0, 2.0, 3.0, 4.0]).notes  # they speak of the first


def test_repeats_are_what_the_table_takes_for_one_configuration() -> None:
    space = ConfigurationSpace({"kernel": ["rbf", "linear"], "gamma": (0.0, 1.0)})
    space.add(InCondition(space["gamma"], space["kernel"], ["rbf"]))
    columns = {"kernel": ["linear", "linear", "rbf"], "gamma": [0.1, 0.7, 0.7]}
    frame = pd.DataFrame({**columns, "loss": [1.0, 2.0, 3.0]})  # a log has inactive values, too
    table = Table.from_frame(frame, name="t", loss="loss", space=space, repeats="mean")
    assert table.losses.tolist() == [1.5, 3.0]
    mixed = pd.Series([1, True, "a", "a"], dtype=object)  # 1 and True differ
    frame = pd.DataFrame({"x": mixed, "loss": [0.1, 0.9, 0.6, 0.8]})
    table = Table.from_frame(frame, name="t", loss="loss", repeats="mean")
    np.testing.assert_allclose(table.losses, [0.1, 0.9, 0.7])


def test_a_row_without_an_active_value_is_far_from_what_has_one() -> None:
    space = ConfigurationSpace({"C": (0.0, 1.0), "kernel": ["a", "b", "c"]})
    configs: list[dict[str, Any]] = [{"C": 0.9, "kernel": "a"}, {"kernel": "a"}, {"C": 0.0}]
    table = Table("t", space, configs, [1.0, 0.0, 2.0])
    assert table.find({"C": 0.0, "kernel": "a"}) == Answer(0, 0.9)
    assert table.find({"C": 0.0, "kernel": "b"}) == Answer(2, 1.0)


def test_a_given_space_is_used() -> None:
    space = ConfigurationSpace({"x": (0.0, 8.0)})
    frame = pd.DataFrame({"x": [1.0, 2.0], "fold": [0, 1], "loss": [0.0, 1.0]})
    table = Table.from_frame(frame, name="t", loss="loss", parameters=["x"], space=space)
    assert table.space is space and table.find({"x": 8.0}) == Answer(1, 0.75)
    with pytest.raises(ValueError, match="fold not in the search space"):
        Table.from_frame(frame, name="t", loss="loss", space=space)


# --- from_studies ---------------------------------------------------------------------------


def study_of(objective: Any, n_trials: int = 10, seed: int = 0) -> optuna.Study:
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=seed))
    study.optimize(objective, n_trials=n_trials, catch=(ArithmeticError,))
    return study


def test_conditions_are_inferred_and_what_failed_before_it_was_asked_is_no_configuration() -> None:
    def objective(trial: optuna.Trial) -> float:
        if trial.suggest_categorical("kernel", ["linear", "rbf"]) == "linear":
            return 1.0
        return trial.suggest_float("gamma", 1e-3, 1, log=True)

    study = study_of(objective, 20)
    study.tell(study.ask(), state=optuna.trial.TrialState.FAIL)
    table = Table.from_studies(study, name="t")
    (condition,) = table.space.conditions
    assert isinstance(condition, InCondition)
    assert (condition.child.name, list(condition.values)) == ("gamma", ["rbf"])
    # The linear kernel has but one configuration: its repeats are averaged.
    assert table.find({"kernel": "linear"}).distance == 0
    assert (table.losses == 1.0).sum() == 1


def test_several_studies_make_one_table() -> None:
    def objective(trial: optuna.Trial) -> float:
        return float(trial.suggest_int("n", 1, 3)) + trial.number

    studies = [study_of(objective, 12, seed) for seed in (0, 1)]
    table = Table.from_studies(studies, name="t")
    assert table.complete
    rows = [(t.params["n"], t.value) for s in studies for t in s.trials]
    for n in (1, 2, 3):
        mean = np.mean([value for m, value in rows if m == n])
        assert table.losses[table.find({"n": n}).row] == pytest.approx(mean)
    with pytest.raises(ValueError, match="record one configuration"):
        Table.from_studies(studies, name="t", repeats=None)


def test_studies_of_both_directions_are_told() -> None:
    studies = [optuna.create_study(direction=d) for d in ("minimize", "maximize")]
    for study, x in zip(studies, (0.2, 0.4), strict=True):
        study.enqueue_trial({"x": x})
        study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=1)
    (note,) = Table.from_studies(studies, name="t").notes
    assert note.startswith("Some studies were maximised and others minimised")
    assert not Table.from_studies(studies[0], name="t").notes


def test_steps_that_every_complete_trial_reported_are_the_learning_curves() -> None:
    study = optuna.create_study()
    for number, steps in enumerate([(1, 2, 3), (1, 3), (1,)]):
        trial = study.ask()
        trial.suggest_float("x", 0, 1)
        for step in steps:
            trial.report(10 * number + step, step)
        if number == 2:
            study.tell(trial, state=optuna.trial.TrialState.FAIL)
        else:
            study.tell(trial, float(number))
    table = Table.from_studies(study, name="t")
    assert table.steps == (1.0, 3.0)
    assert table.curves is not None
    np.testing.assert_array_equal(table.curves, [[1, 3], [11, 13], [21, NAN]])


def test_a_search_makes_a_table() -> None:
    trials = [
        RecordedTrial({"x": 0.0, "k": "a"}, COMPLETE, 1.0, 4.0),
        RecordedTrial({"x": 0.5, "k": "b"}, PRUNED, 0.1, 1.0),
        RecordedTrial({"x": 0.25, "k": "b"}, FAILED, NAN, 2.0),
        RecordedTrial({"x": 1.0, "k": "b"}, COMPLETE, 3.0, 5.0, step=3.0),
        RecordedTrial({"x": 0.75, "k": "b"}, COMPLETE, 2.0, 5.0),
    ]
    search = Search("t", "m", 0, trials)
    table = Table.from_studies([search], name="t")
    np.testing.assert_array_equal(table.losses, [1.0, NAN, 2.0])
    np.testing.assert_array_equal(table.seconds, [4.0, 2.0, 5.0])
    space = ConfigurationSpace({"x": (0.0, 2.0), "k": ["a", "b"]})
    assert Table.from_studies(search, name="t", space=space).space is space


@pytest.mark.parametrize("name", ["_loss", "_seconds", "_at 1.0"])
def test_a_hyperparameter_may_have_any_name(name: str) -> None:
    curve = {1.0: 3.0, 2.0: 1.0}
    trials = [RecordedTrial({name: x}, COMPLETE, 1.0, 2.0, curve=curve) for x in (0.5, 0.75)]
    table = Table.from_studies(Search("t", "m", 0, trials), name="t")
    assert [table.config(row) for row in range(2)] == [{name: 0.5}, {name: 0.75}]
    assert table.curves is not None and table.curves.tolist() == [[3.0, 1.0]] * 2


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [([4.0, NAN, 8.0], [4.0, 6.0, 8.0]), ([NAN, NAN, NAN], None)],
    ids=["some", "none"],
)
def test_trials_of_unknown_duration_take_the_median(seconds: Any, expected: Any) -> None:
    trials = [RecordedTrial({"x": s / 2}, COMPLETE, 1.0, seconds[s]) for s in range(3)]
    table = Table.from_studies(Search("t", "m", 0, trials), name="t")
    assert (None if table.seconds is None else table.seconds.tolist()) == expected
    notes = ["1 of 3 runs have no seconds: they take 6 s, the median of the others."]
    assert list(table.notes) == (notes if expected else [])


def test_what_violates_a_constraint_has_failed_in_a_table() -> None:
    trials = [
        RecordedTrial({"x": 0.0}, COMPLETE, 1.0, constraints={"c": 1.0}),
        RecordedTrial({"x": 0.5}, COMPLETE, 2.0, constraints={"c": 0.0}),
        RecordedTrial({"x": 1.0, "y": 0.5}, COMPLETE, 0.5, constraints={"c": 1.0}),
        RecordedTrial({"x": 0.75}, PRUNED, 3.0, constraints={"c": 1.0}),
    ]
    table = Table.from_studies(Search("t", "m", 0, trials), name="t")
    np.testing.assert_array_equal(table.losses, [NAN, 2.0, NAN])
    assert "2 of 4 trials violate a constraint: they count as failed." in table.notes
    frame = search_frame([Search("t", "m", 0, trials)])
    assert frame["status"].tolist() == ["failed", "complete", "failed", "pruned"]
    np.testing.assert_array_equal(frame["loss"], [NAN, 2.0, NAN, 3.0])
    np.testing.assert_array_equal(frame["best"], [NAN, 2.0, 2.0, 2.0])
    with pytest.raises(ValueError, match="no complete trial that violates no constraint"):
        Table.from_studies(Search("t", "m", 0, trials[::2]), name="t")


def test_a_study_without_a_complete_trial_makes_no_table() -> None:
    trials = [RecordedTrial({"x": 0.0}, PRUNED, 1.0), RecordedTrial({"x": 0.5}, FAILED, NAN)]
    with pytest.raises(ValueError, match="no complete trial"):
        Table.from_studies(Search("t", "m", 0, trials), name="t")
    with pytest.raises(ValueError, match="no complete trial"):
        Table.from_studies(optuna.create_study(), name="t")
    with pytest.raises(TypeError, match="Cannot read the searches of a int"):
        Table.from_studies([3], name="t")


# --- search_frame ---------------------------------------------------------------------------


def test_the_frame_of_searches_by_hand() -> None:
    one = [
        RecordedTrial({}, FAILED, NAN, 1.0, 1.0),
        RecordedTrial({}, COMPLETE, 5.0, 1.0, 2.0),
        RecordedTrial({}, PRUNED, 1.0, 1.0, 3.0),
        RecordedTrial({}, COMPLETE, 2.0, 1.0, 4.0, step=1.0),
        RecordedTrial({}, COMPLETE, 4.0, 1.0, NAN),
        RecordedTrial({}, COMPLETE, 6.0, 1.0, 9.0),
    ]
    two = [RecordedTrial({}, COMPLETE, -1.0)]
    frame = search_frame([Search("t", "m", 3, one), Search("u", "n", 0, two)])
    assert frame.columns.tolist() == list(COLUMNS)
    assert frame["table"].tolist() == ["t"] * 6 + ["u"]
    assert frame["method"].tolist() == ["m"] * 6 + ["n"]
    assert frame["seed"].tolist() == [3] * 6 + [0]
    assert frame["trial"].tolist() == [1, 2, 3, 4, 5, 6, 1]
    np.testing.assert_array_equal(frame["seconds"], [1, 2, 3, 4, NAN, 9, NAN])
    np.testing.assert_array_equal(frame["loss"], [NAN, 5, 1, 2, 4, 6, -1])
    np.testing.assert_array_equal(frame["best"], [NAN, 5, 5, 5, 4, 4, -1])
    words = ["failed", "complete", "pruned", "complete", "complete", "complete", "complete"]
    assert frame["status"].tolist() == words


def table_of(columns: dict[str, Any], **options: Any) -> Table:
    frame = pd.DataFrame(columns)
    frame["loss"] = np.arange(len(frame), dtype=float)
    return Table.from_frame(frame, name="t", loss="loss", **options)


# --- any frame ------------------------------------------------------------------------------

_FLOATS = st.one_of(
    st.floats(0, 1),
    st.floats(-1e3, 1e3),
    st.floats(allow_nan=False, allow_infinity=False, max_value=1e290, min_value=-1e290),
    st.builds(lambda e: 10.0**e, st.floats(-12, 12)),
)
# Floats cannot hold all integers of a range wider than 2^53.
_INTS = st.one_of(st.integers(-5, 5), st.integers(1, 10**6), st.integers(-(2**51), 2**51))
_COLUMNS = st.sampled_from(
    [
        _FLOATS,
        _INTS,
        st.sampled_from(["a", "b", "sqrt"]),
        st.booleans(),
        st.one_of(_FLOATS, st.just(NAN)),
        st.one_of(_INTS, st.none()),
        st.one_of(st.integers(1, 9), st.just("none")),
        st.sampled_from(["a", "none", None]),
    ]
)


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_a_table_holds_every_row_of_its_frame(data: st.DataObject) -> None:
    n = data.draw(st.integers(2, 8))
    columns: dict[str, list[Any]] = {
        f"c{i}": data.draw(st.lists(kind, min_size=n, max_size=n))
        for i, kind in enumerate(data.draw(st.lists(_COLUMNS, min_size=1, max_size=4)))
    }
    columns["id"] = [f"r{i}" for i in range(n)]  # no configuration twice
    frame = pd.DataFrame(columns)
    assume(frame.notna().any().all())
    has_none = any(isinstance(v, str) and v == "none" for vs in columns.values() for v in vs)
    frame["loss"] = np.arange(n, dtype=float)
    table = Table.from_frame(frame, name="t", loss="loss", none="none" if has_none else None)
    assert len(table) == n
    for row in range(n):
        for name in columns:
            value = frame[name][row]
            if pd.isna(value):
                assert name not in table.config(row)
            elif isinstance(value, str) and value == "none":
                assert table.config(row)[name] is None
            else:
                assert table.config(row)[name] == value
            # The bounds contain what was recorded, also in ConfigSpace's own check.
            if name in table.config(row):
                assert table.space[name].legal_value(table.config(row)[name])
        if len(table.config(row)) == len(columns):
            assert table.find(table.config(row)) == Answer(row, 0.0)


def test_columns_may_be_called_by_numbers() -> None:
    frame = pd.DataFrame([[1, 0.5, 2.0], [2, 0.25, 3.0], [2, 0.25, 5.0]])
    table = Table.from_frame(frame, name="t", loss=2, repeats="mean")  # type: ignore[arg-type]
    assert table.find({"0": 2, "1": 0.25}) == Answer(1, 0.0)
    assert table.losses.tolist() == [2.0, 4.0]
    twice = pd.DataFrame([[1, 2, 0.5]], columns=[1, "1", "loss"])
    with pytest.raises(ValueError, match="more than one column '1'"):
        Table.from_frame(twice, name="t", loss="loss")
    assert len(Table.from_frame(twice, name="t", loss="loss", parameters=["1"])) == 1


def test_large_integers_of_a_frame_are_what_was_recorded() -> None:
    for column in (
        [2**60, 1, 2, 5],
        [10**30, 1, 2],
        [-(10**30), 7, 10**30],
        [10**30, 10**30 + 2**60],
    ):
        for log in ([], ["n"] if min(column) > 0 else []):
            table = table_of({"n": column}, log=log)
            for row, value in enumerate(column):
                assert table.find({"n": value}) == Answer(row, 0.0)
                assert table.config(row) == {"n": value}
    for large in (10**400, int(sys.float_info.max) + 1):
        with pytest.raises(ValueError, match="'n' has a whole number too large for a float: leav"):
            table_of({"n": np.array([1, 2, large], dtype=object)})


def test_columns_that_numbers_name() -> None:
    frame = pd.DataFrame({1: [0.1, 0.9, 10.0], "loss": [1.0, 2.0, 3.0]})
    space, *_ = infer_space(frame[[1]], log=["1"])
    assert space["1"].log  # type: ignore[attr-defined]
    with pytest.raises(ValueError, match="The frame has more than one column '1'"):
        infer_space(frame.rename(columns={"loss": "1"}))


# --- bounds ---------------------------------------------------------------------------------


def test_values_beyond_rounded_bounds_lie_in_a_space_of_the_users_own() -> None:
    low, high = 0.0017580580987654321, 0.48613911287370995
    space = ConfigurationSpace({"x": (low, high)})  # rounds both, the first one up
    assert space["x"].lower > low  # type: ignore[attr-defined]
    frame = pd.DataFrame({"x": [low, 0.1, high], "loss": [0.0, 1.0, 2.0]})
    table = Table.from_frame(frame, name="t", loss="loss", space=space)
    assert table.find({"x": low}) == Answer(0, 0.0)
    assert table.find({"x": 0.0017580580988}).row == 0
    with pytest.raises(ValueError, match="is not a value of x"):
        table.find({"x": low - 1e-9})


def test_numbers_that_no_space_can_bound_are_refused_with_a_sentence() -> None:
    with pytest.raises(ValueError, match="'x' has an infinite value: leave its rows out"):
        table_of({"x": [0.5, math.inf]})
    assert table_of({"x": [0.5, 1e300]}).find({"x": 1e300}).row == 1
    for value in (0.0, -1.0):
        with pytest.raises(ValueError, match=r"log names 'x'.* needs values > 0"):
            table_of({"x": [0.5, value]}, log=["x"])


# --- log scales -----------------------------------------------------------------------------


def test_columns_that_span_decades_are_on_a_log_scale_and_the_table_says_so() -> None:
    rng = np.random.default_rng(0)
    columns: dict[str, Any] = {
        "rate": 10.0 ** rng.uniform(-5, 0, 40),
        "C": [10.0**k for k in range(-4, 4)] * 5,
        "depth": rng.permutation(40) + 1,
        "units": [2**k for k in range(1, 11)] * 4,
        "dropout": rng.uniform(0, 1, 40),
        "zero": [0.0, *(10.0 ** rng.uniform(-5, 0, 39))],
        "tiny": 10.0 ** rng.uniform(-20, 0, 40),
    }
    table = table_of(columns)
    logs = {name for name in columns if table.space[name].log}  # type: ignore[attr-defined]
    assert logs == {"rate", "C", "units", "tiny"}
    assert [note.split(" is taken to be on a log scale")[0] for note in table.notes] == [
        "C",
        "rate",
        "tiny",
        "units",
    ]
    assert "its values span 0.0001 to 1000" in table.notes[0]
    assert not table_of(columns, log=()).notes
    assert table_of(columns, log=["rate"]).space["C"] == Float("C", (1e-4, 1e3))
    assert table_of(columns, grid=["units"]).space["units"].size == 10
    with pytest.raises(ValueError, match="log must be 'auto' or names of columns, got 'rate'"):
        table_of(columns, log="rate")
    with pytest.raises(ValueError, match=r"grid must be names of columns, got 'C': \['C'\]"):
        table_of(columns, grid="C")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"log": 3}, r"log takes 'auto' or names of columns; got 3\."),
        ({"log": None}, r"log takes 'auto' or names of columns; got None\."),
        ({"grid": True}, r"grid takes names of columns; got True\."),
        ({"parameters": 3}, r"parameters takes names of columns; got 3\."),
        ({"none": 3}, r"none takes the text that stands for None; got 3\."),
        ({"space": {"x": 3}}, r"space takes a ConfigurationSpace.*; got <dict of 1>\."),
        ({"loss": ["loss"]}, r"loss takes the name of a column; got <list of 1>\."),
        ({"seconds": ["loss"]}, r"seconds takes the name of a column; got <list of 1>\."),
    ],
)
def test_settings_of_another_kind_are_refused(settings: dict[str, Any], message: str) -> None:
    frame = pd.DataFrame({"x": [0.1, 0.2], "loss": [1.0, 2.0]})
    with pytest.raises(TypeError, match=message):
        Table.from_frame(frame, **{"name": "t", "loss": "loss", **settings})


# --- None -----------------------------------------------------------------------------------


def test_a_text_stands_for_the_value_none() -> None:
    columns: dict[str, list[Any]] = {
        "algorithm": ["rf", "rf", "rf", "svm", "svm"],
        "max_depth": ["none", 3, 6, None, None],
        "C": [NAN, NAN, NAN, 1.0, 2.0],
    }
    table = table_of(columns, none="none")
    assert table.space["max_depth"] == Categorical("max_depth", [None, 3, 6])
    assert {c.child.name for c in table.space.conditions} == {"max_depth", "C"}
    assert table.config(0) == {"algorithm": "rf", "max_depth": None}
    assert table.config(3) == {"algorithm": "svm", "C": 1} and not table.notes
    assert table.find({"algorithm": "rf", "max_depth": None}) == Answer(0, 0.0)
    # A proposal may say None of what is inactive.
    assert table.find({"algorithm": "svm", "max_depth": None, "C": 2}) == Answer(4, 0.0)
    with pytest.raises(ValueError, match="has no value for max_depth, which is active"):
        table.find({"algorithm": "rf"})
    again = copy.deepcopy(table)
    assert again.find({"algorithm": "rf", "max_depth": None}) == Answer(0, 0.0)
    assert again.config(3) == table.config(3)


def test_a_gap_that_nothing_explains_is_told() -> None:
    columns: dict[str, list[Any]] = {"k": ["a", "a", "b"], "depth": [3, None, 6]}
    (note,) = table_of(columns).notes
    assert "depth is empty in 1 of 3 rows, which no other column explains" in note
    assert "none='none'" in note


def test_texts_of_a_file_beside_the_marker_are_numbers_again(tmp_path: Path) -> None:
    file = tmp_path / "runs.csv"
    file.write_text("depth,boot,loss\nNone,True,1\n3,None,2\n6,False,3\n")
    with pytest.raises(ValueError, match=r"none='None' stands in no cell.*keep_default_na=False"):
        Table.from_frame(pd.read_csv(file), name="t", loss="loss", none="None")
    frame = pd.read_csv(file, keep_default_na=False, na_values=[""])
    table = Table.from_frame(frame, name="t", loss="loss", none="None")
    assert [table.config(row) for row in range(3)] == [
        {"depth": None, "boot": True},
        {"depth": 3, "boot": None},
        {"depth": 6, "boot": False},
    ]
    assert type(table.config(0)["boot"]) is bool and type(table.config(1)["depth"]) is int


def test_none_of_a_search_is_a_value_and_what_was_not_asked_for_is_not() -> None:
    configs: list[dict[str, Any]] = [
        {"k": "a", "d": None},
        {"k": "a", "d": 3.0},
        {"k": "b"},
        {"k": "a", "d": 5.0},
    ]
    trials = [RecordedTrial(c, TrialStatus.COMPLETE, float(i)) for i, c in enumerate(configs)]
    table = Table.from_studies(Search("t", "m", 0, trials), name="t")
    assert [table.config(row) for row in range(4)] == [t.config for t in trials]


# --- the README's way -----------------------------------------------------------------------


def test_the_command_line_does_the_same_and_knows_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = np.random.default_rng(1)
    columns: dict[str, Any] = {
        "dataset": np.repeat(["a", "b"], 10),
        "lr": 10.0 ** rng.uniform(-4, 0, 20),
        "class_weight": rng.choice(["None", "balanced"], 20),
        "loss": rng.random(20),
    }
    pd.DataFrame(columns).to_csv(tmp_path / "runs.csv", index=False)
    lines = [
        *('budget = 4\npath = "replay.csv"', "[tables.mine]", 'file = "runs.csv"'),
        *('group = "dataset"', 'loss = "loss"', 'none = "None"'),
        *('[methods.random]\nadapter = "optuna"', 'optimizer = "RandomSampler"'),
        *('[methods.TPE]\nadapter = "optuna"', 'optimizer = "TPESampler"'),
    ]
    (tmp_path / "replay.toml").write_text("\n".join(lines))
    assert main(["replay", str(tmp_path / "replay.toml")]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "Table mine/a: lr is taken to be on a log scale" in printed
    assert "class_weight is empty" not in printed
    assert len(pd.read_csv(tmp_path / "replay.csv", comment="#")) == 16


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("largest", [1e308, 1.5e308])
def test_the_largest_numbers_are_a_range(largest: float) -> None:
    frame = pd.DataFrame({"x": [largest / 10, largest / 2, largest], "loss": [1.0, 2.0, 3.0]})
    space = Table.from_frame(frame, name="t", loss="loss").space
    assert (space["x"].lower, space["x"].upper) == (largest / 10, largest)  # type: ignore[attr-defined]
