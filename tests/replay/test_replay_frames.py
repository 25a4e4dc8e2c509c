"""Tables and spaces inferred from data frames, studies and searches."""

from __future__ import annotations

import math
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
    with pytest.raises(ValueError, match="repeats must be None or 'mean', got 'median'"):
        Table.from_frame(frame, repeats="median", **arguments)


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


def test_complete_trials_are_kept_pruned_ones_left_out_failed_ones_failed() -> None:
    def objective(trial: optuna.Trial) -> float:
        x = trial.suggest_float("x", 0, 1)
        if trial.number == 3:
            raise optuna.TrialPruned
        if trial.number == 5:
            raise ArithmeticError
        return x**2

    study = study_of(objective)
    table = Table.from_studies(study, name="t")
    assert (table.name, len(table)) == ("t", 9)
    for trial in study.trials:
        if trial.number == 3:
            continue
        answer = table.find(trial.params)
        assert answer.distance == 0
        expected = NAN if trial.number == 5 else trial.value
        np.testing.assert_equal(table.losses[answer.row], expected)
    assert table.space["x"] == Float("x", (0.0, 1.0))


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
