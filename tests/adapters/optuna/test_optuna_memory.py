"""Studies as searches and as tasks of a memory, and recorded while they continue."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import pytest
from automl_plugins.adapters.optuna import ADAPTER, curves, meta_dataset_from_studies, record
from ConfigSpace import ConfigurationSpace
from effort import count_calls
from known_runs import FakeStore
from objectives import needs_constraints
from objectives import search as search_with
from optuna.distributions import BaseDistribution, FloatDistribution, IntDistribution
from optuna.samplers import RandomSampler
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState, create_trial
from storages import storage_in

from automl_plugins.meta import TaskRecord
from automl_plugins.records.trial import Status
from automl_plugins.replay import search_frame

owns = ADAPTER.owns
read_task = ADAPTER.read_task

NAN = math.nan
START = datetime(2024, 2, 28, 23, 59)


def trial_of(
    begin: float, end: float, value: float | None = None, x: float | None = None, **options: Any
) -> FrozenTrial:
    """A finished trial from ``begin`` to ``end`` seconds after ``START``."""
    trial = create_trial(
        value=value,
        params={} if x is None else {"x": x},
        distributions={} if x is None else {"x": FloatDistribution(0, 1)},
        **options,
    )
    trial.datetime_start = START + timedelta(seconds=begin)
    trial.datetime_complete = START + timedelta(seconds=end)
    return trial


def study_of(trials: Sequence[FrozenTrial], name: str = "t/m", **arguments: Any) -> Study:
    study = optuna.create_study(study_name=name, **arguments)
    study.add_trials(trials)
    return study


# --- searches -------------------------------------------------------------------------------


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_trials_by_hand(sign: float) -> None:
    reports = {1: 9.0 * sign, 4: 7.0 * sign}, {2: 6.0 * sign, 1: 8.0 * sign}
    pruned: dict[str, Any] = {"state": TrialState.PRUNED, "intermediate_values": reports[0]}
    study = study_of(
        [
            trial_of(10, 14, 3.0 * sign, 0.5),
            trial_of(11, 12, 5.0 * sign, 0.25),
            trial_of(12, 13.5, None, 1.0, **pruned),
            trial_of(20, 26, None, 0.0, state=TrialState.FAIL),
            trial_of(30, 30, 1.0 * sign, 0.75, intermediate_values=reports[1]),
        ],
        direction="minimize" if sign > 0 else "maximize",
    )
    (search,) = curves(study)
    # In the order of finishing; a trial that took no time at all was added, not run.
    expected = [
        ({"x": 0.25}, Status.COMPLETE, 5.0, 1.0, 2.0, {}),
        ({"x": 1.0}, Status.PRUNED, 7.0, 1.5, 3.5, {1.0: 9.0, 4.0: 7.0}),
        ({"x": 0.5}, Status.COMPLETE, 3.0, 4.0, 4.0, {}),
        ({"x": 0.0}, Status.FAILED, NAN, 6.0, 16.0, {}),
        ({"x": 0.75}, Status.COMPLETE, 1.0, NAN, 20.0, {1.0: 8.0, 2.0: 6.0}),
    ]
    found = [(t.config, t.status, t.loss, t.seconds, t.finished, t.curve) for t in search.trials]
    assert repr(found) == repr(expected)  # NaN is not equal to itself
    assert search.left_out == () and search.maximized is (sign < 0)
    frame = search_frame([search])
    np.testing.assert_array_equal(frame["seconds"], [2, 3.5, 4, 16, 20])
    np.testing.assert_array_equal(frame["loss"], [5, 7, 3, NAN, 1])
    np.testing.assert_array_equal(frame["best"], [5, 5, 3, 3, 1])
    assert frame["trial"].tolist() == [1, 2, 3, 4, 5]
    assert frame["status"].tolist() == ["complete", "pruned", "complete", "failed", "complete"]


@pytest.mark.parametrize("kind", ["memory", "sqlite", "journal"])
def test_runs_of_another_kind_are_not_added_to_a_study(kind: str, tmp_path: Path) -> None:
    study = optuna.create_study(storage=storage_in(tmp_path, kind))
    study.optimize(lambda trial: trial.suggest_int("x", 0, 3), n_trials=2)
    rows: list[dict[str, Any]] = [{"k": "p", "x": 0.0}, {"k": "q", "x": 1.0}]
    space = ConfigurationSpace({"k": ["p", "q"], "x": (0.0, 1.0)})
    record = TaskRecord("t", rows, np.array([1.0, 0.5]), space=space)
    with pytest.raises(ValueError, match=r"'x' is IntDistr.* FloatDistr.*Nothing was added"):
        ADAPTER.write_history(record, study=study)
    assert len(study.trials) == 2
    fitting: dict[str, BaseDistribution] = {"x": IntDistribution(0, 3)}
    ADAPTER.write_history(record, fitting, study=study)
    assert len(study.trials) > 2


def test_trials_under_way_are_left_out_and_named() -> None:
    study = study_of([trial_of(0, 1, 3.0)], "t/m/2")
    study.ask()
    study.ask()
    study.enqueue_trial({"x": 0.5})
    (search,) = curves(study)
    assert len(search.trials) == 1
    assert search.left_out == (
        "Study 't/m/2': 2 running trials left out.",
        "Study 't/m/2': 1 waiting trial left out.",
    )
    (search,) = curves(study_of([]))
    assert (list(search.trials), search.space, search.left_out) == ([], None, ())


# --- labels ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "attributes", "arguments", "expected"),
    [
        ("iris/tpe/7", {}, {}, ("iris", "tpe", 7)),
        ("iris/tpe", {}, {}, ("iris", "tpe", 0)),
        ("s", {"table": "iris", "method": "tpe", "seed": 3}, {}, ("iris", "tpe", 3)),
        ("s", {"table": "iris"}, {"method": "tpe", "seed": 0}, ("iris", "tpe", 0)),
        ("s", {}, {"table": "iris", "method": "tpe"}, ("iris", "tpe", 0)),
        # Arguments before attributes before the name.
        ("a/b/1", {"table": "c", "seed": 2}, {"seed": 5}, ("c", "b", 5)),
        ("a/b/1", {"seed": 2}, {"table": "", "method": ""}, ("", "", 2)),
        ("a/b/1", {}, {"seed": 0}, ("a", "b", 0)),
        ("iris/tpe/007", {}, {}, ("iris", "tpe", 7)),
    ],
)
def test_labels_come_from_arguments_attributes_and_name(
    name: str,
    attributes: dict[str, Any],
    arguments: dict[str, Any],
    expected: tuple[str, str, int],
) -> None:
    study = study_of([], name)
    for key, value in attributes.items():
        study.set_user_attr(key, value)
    (search,) = curves(study, **arguments)
    assert (search.table, search.method, search.seed) == expected


@pytest.mark.parametrize(
    ("name", "arguments", "match"),
    [
        ("s", {}, r"'s' has no table and method: name it '<tab.*-attr.*in Python"),
        ("s", {"table": "iris"}, "has no method: name it"),
        ("a/b/x", {}, "the seed 'x' is not a whole number"),
        ("a/b", {"seed": 1.7}, "the seed 1.7 is not a whole number"),
        ("a/b/2/x", {}, "'a/b/2/x': a name has at most three parts"),
        ("a/b/2/x", {"table": "a"}, "'a/b/2/x': a name has at most three parts"),
    ],
)
def test_a_study_that_does_not_say_what_was_tuned_is_refused(
    name: str, arguments: dict[str, Any], match: str
) -> None:
    with pytest.raises(ValueError, match=match):
        curves(study_of([], name), **arguments)


# --- tasks -----------------------------------------------------------------------------------


def objective(trial: optuna.Trial) -> float:
    x = trial.suggest_float("x", 0, 1)
    if trial.number % 5 == 4:
        raise RuntimeError("on purpose")
    return x


def searched(n: int = 20, **options: Any) -> Study:
    return search_with(RandomSampler(seed=0), objective, n, catch=RuntimeError, **options)


def test_several_objectives_or_studies_are_refused(tmp_path: Path) -> None:
    study = optuna.create_study(directions=["minimize", "maximize"], study_name="two")
    with pytest.raises(ValueError, match="'two' has 2 objectives"):
        read_task(study)
    with pytest.raises(ValueError, match="'two' has 2 objectives; a search has one"):
        curves(study, table="t", method="m")
    storage = storage_in(tmp_path, "memory")
    for name in "ab":
        optuna.create_study(study_name=name, storage=storage)
    with pytest.raises(ValueError, match="There are 2 studies"):
        read_task(storage)


def test_studies_of_any_direction_are_a_data_set(tmp_path: Path) -> None:
    storage = storage_in(tmp_path, "sqlite")
    studies = [
        searched(5, study_name="a", storage=storage),
        searched(5, study_name="b", storage=storage, direction="maximize"),
    ]
    url = f"sqlite:///{tmp_path / 'study.db'}"
    for source in (studies, dict(zip("ab", studies, strict=True)), storage, url):
        data = meta_dataset_from_studies(source, meta_features={"b": {"rows": 150.0}})
        assert [task.name for task in data.tasks] == ["a", "b"]
        assert data.tasks[1].meta_features == {"rows": 150.0}
        minimized, maximized = (data.losses[rows] for rows in data.rows)
        np.testing.assert_array_equal(minimized[:3], -maximized[:3])  # the complete ones
    losses = [t.loss for search in curves(url, table="t", method="m") for t in search.trials]
    np.testing.assert_array_equal(losses, data.losses)
    assert owns(url) and not owns(str(tmp_path)) and not owns(str(tmp_path / "runs.csv"))


def test_a_data_set_of_nothing_or_of_something_else_is_refused() -> None:
    with pytest.raises(ValueError, match="no runs to learn from"):
        meta_dataset_from_studies([optuna.create_study()])
    wrong: Any = [1]
    with pytest.raises(TypeError, match=r"Expected optuna studies, a storage, .*, got 1"):
        meta_dataset_from_studies(wrong)
    wrong = {"a": "sqlite:///a.db"}
    with pytest.raises(
        TypeError, match=r"A memory by name takes a study, .*; got 'sqlite:///a.db'"
    ):
        meta_dataset_from_studies(wrong)
    with pytest.raises(ValueError, match="meta_features names 'x'"):
        meta_dataset_from_studies(searched(3), meta_features={"x": {}})


# --- recording -------------------------------------------------------------------------------


def test_what_no_callback_saw_is_imported() -> None:
    store, study = FakeStore(), optuna.create_study()
    callback = record(store)
    with pytest.raises(RuntimeError, match="on purpose"):
        study.optimize(objective, n_trials=20, callbacks=[callback])
    assert len(store.runs) == 4  # Optuna calls no callback for the trial that raised
    assert callback.add(study) == 1
    assert store.column("status")[-1] == Status.FAILED
    assert {task for task, *_ in store.runs} == {study.study_name}


def test_two_studies_of_one_name_are_two_and_threads_share_a_recorder() -> None:
    store = FakeStore()
    for _ in range(2):
        study = optuna.create_study(study_name="same")
        study.optimize(
            lambda t: t.suggest_float("x", 0, 1),
            n_trials=20,
            n_jobs=4,
            callbacks=[record(store, "t")],
        )
    assert len(store.runs) == 40


def test_studies_without_times_are_told_apart_by_what_they_evaluated() -> None:
    space = ConfigurationSpace({"x": (0.0, 1.0)})
    runs = [
        TaskRecord("churn", [{"x": 0.5}], np.array([loss]), space=space) for loss in (1.0, 2.0)
    ]
    store = FakeStore()
    added = [record(store, task="t").add(ADAPTER.write_history(run)) for run in (*runs, runs[0])]
    assert added == [1, 1, 0]


@needs_constraints
def test_what_violates_a_constraint_has_failed_in_a_task() -> None:
    def objective(trial: optuna.Trial) -> float:
        x = trial.suggest_float("x", 0.0, 1.0)
        trial.set_constraint("c", 0.5 - x)
        return x

    study = search_with(RandomSampler(seed=0), objective, 20)
    task = ADAPTER.read_task(study)
    feasible = [t.params["x"] >= 0.5 for t in study.trials]
    assert 0 < sum(feasible) < 20
    assert (task.status == np.where(feasible, Status.COMPLETE, Status.FAILED)).all()
    assert np.isnan(task.losses[~np.array(feasible)]).all()
    (found,) = curves(study, table="t", method="m")
    assert all(trial.status == Status.COMPLETE for trial in found.trials)


def test_the_space_follows_the_trials() -> None:
    """A condition that the next trial contradicts is not kept."""
    store, study = FakeStore(), optuna.create_study(study_name="s")
    callback = record(store, "t")

    def define(trial: optuna.Trial) -> float:
        trial.suggest_int("i", 0, 3)
        trial.suggest_float("late", 0, 1) if trial.number >= 10 else None
        return 1.0

    for n in (10, 1, 29):
        study.optimize(define, n_trials=n, callbacks=[callback])
        assert store.spaces["s"] == read_task(study).space or n == 29
    assert store.spaces["s"] is not None and set(store.spaces["s"]) == {"i", "late"}


def test_several_objectives_are_lost_and_said(caplog: pytest.LogCaptureFixture) -> None:
    study = optuna.create_study(directions=["minimize", "minimize"])
    callback = record(FakeStore(), "t")
    study.optimize(lambda t: (1.0, 2.0), n_trials=2, callbacks=[callback])
    assert callback.n_lost == 2 and "2 objectives" in caplog.text
    assert repr(callback) == "StudyRecorder(task='t', 0 trials recorded, 2 lost)"


def test_recording_does_not_slow_down() -> None:
    """The space is not inferred from all trials after every trial."""
    callback = record(FakeStore(), "t")
    calls: list[int] = []

    def counted(study: Study, trial: FrozenTrial) -> None:
        calls.append(count_calls(lambda: callback(study, trial)))

    study = optuna.create_study(sampler=RandomSampler(seed=0))
    study.optimize(
        lambda t: sum(t.suggest_float(f"x{i}", 0, 1) for i in range(5)), 150, callbacks=[counted]
    )
    assert np.median(calls[100:]) < 1.5 * min(calls)
