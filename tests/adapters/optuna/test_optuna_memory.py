"""Optuna studies read into a memory, and recorded while they go on."""

from __future__ import annotations

import logging
import math
import pickle
import threading
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import pytest
from automl_plugins.adapters.optuna import meta_dataset_from_studies, read_task, record
from known_runs import BrokenStore, FakeStore
from optuna.storages.journal import JournalFileBackend
from optuna.trial import TrialState

from automl_plugins.records.trial import Status

optuna.logging.set_verbosity(optuna.logging.CRITICAL)


def objective(trial: optuna.Trial) -> float:
    """Complete, pruned and failed ones; conditional."""
    model = trial.suggest_categorical("model", ["svm", "forest"])
    if model == "svm":
        x = math.log10(trial.suggest_float("C", 1e-3, 1e3, log=True))
    else:
        x = trial.suggest_int("n", 1, 50) / 10
    trial.report(x + 1, 1)
    if trial.number % 5 == 3:
        raise optuna.TrialPruned
    if trial.number % 5 == 4:
        raise RuntimeError("on purpose")
    return x


def searched(n: int = 20, **options: Any) -> optuna.Study:
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0), **options)
    study.optimize(objective, n_trials=n, catch=(RuntimeError,))
    return study


# --- reading ---------------------------------------------------------------------------------


def test_a_study_is_a_task() -> None:
    study = searched(study_name="iris")
    task = read_task(study)
    assert (task.name, task.framework, len(task)) == ("iris", "optuna", 20)
    for i, trial in enumerate(study.trials):
        assert task.configurations[i] == trial.params
        assert trial.datetime_complete is not None and trial.duration is not None
        assert task.times[i] == trial.datetime_complete.timestamp()
        assert task.seconds[i] == pytest.approx(trial.duration.total_seconds())
        if trial.state == TrialState.COMPLETE:
            assert (task.status[i], task.losses[i]) == (Status.COMPLETE, trial.value)
            assert math.isnan(task.budget[i])
        elif trial.state == TrialState.PRUNED:
            reported = trial.intermediate_values[1]
            assert (task.status[i], task.losses[i]) == (Status.PRUNED, reported)
            assert task.budget[i] == 1.0
        else:
            assert task.status[i] == Status.FAILED and math.isnan(task.losses[i])
    assert task.space is not None
    assert [str(c) for c in task.space.conditions] == [
        "C | model in {'svm'}",
        "n | model in {'forest'}",
    ]


def test_maximised_infinite_and_unfinished_trials() -> None:
    study = optuna.create_study(direction="maximize")
    values = [2.0, math.inf, -math.inf]
    for value in values:
        trial = study.ask({"x": optuna.distributions.FloatDistribution(0, 1)})
        study.tell(trial, value)
    study.ask()
    task = read_task(study, name="t")
    np.testing.assert_array_equal(task.losses, [-2.0, np.nan, np.nan])
    assert task.status.tolist() == [Status.COMPLETE, Status.FAILED, Status.FAILED]


def test_seconds_that_the_objective_measured_come_first() -> None:
    study = optuna.create_study()

    def timed(trial: optuna.Trial) -> float:
        trial.set_user_attr("seconds", 7.5)
        return trial.suggest_float("x", 0, 1)

    study.optimize(timed, n_trials=1)
    study.add_trial(optuna.trial.create_trial(value=1.0))
    np.testing.assert_array_equal(read_task(study).seconds, [7.5, np.nan])


def test_several_objectives_or_studies_are_refused(tmp_path: Path) -> None:
    study = optuna.create_study(directions=["minimize", "maximize"], study_name="two")
    with pytest.raises(ValueError, match="'two' has 2 objectives"):
        read_task(study)
    url = f"sqlite:///{tmp_path / 'all.db'}"
    for name in "ab":
        optuna.create_study(study_name=name, storage=url)
    with pytest.raises(ValueError, match="There are 2 studies"):
        read_task(url)


@pytest.mark.parametrize("kind", ["list", "mapping", "storage", "url", "journal"])
def test_studies_of_any_direction_are_a_data_set(kind: str, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'all.db'}" if kind != "journal" else str(tmp_path / "all.log")
    storage: Any = url if kind in ("url", "storage") else None
    if kind == "journal":
        storage = optuna.storages.JournalStorage(JournalFileBackend(url))
    studies = [
        searched(5, study_name="a", storage=storage),
        searched(5, study_name="b", storage=storage, direction="maximize"),
    ]
    sources: dict[str, Any] = {
        "list": studies,
        "mapping": dict(zip("ab", studies, strict=True)),
        "storage": optuna.storages.get_storage(url) if kind == "storage" else None,
        "url": url,
        "journal": url,
    }
    data = meta_dataset_from_studies(sources[kind], meta_features={"b": {"rows": 150.0}})
    assert [task.name for task in data.tasks] == ["a", "b"]
    assert data.tasks[1].meta_features == {"rows": 150.0}
    assert len(data) == 10
    complete = data.status == Status.COMPLETE
    np.testing.assert_array_equal(
        data.losses[data.rows[0]][complete[:5]], -data.losses[data.rows[1]][complete[5:]]
    )


def test_a_data_set_of_nothing_or_of_something_else_is_refused() -> None:
    with pytest.raises(ValueError, match="no runs to learn from"):
        meta_dataset_from_studies([optuna.create_study()])
    wrong: Any = [1]
    with pytest.raises(TypeError, match="Expected optuna studies, got 1"):
        meta_dataset_from_studies(wrong)
    with pytest.raises(ValueError, match="meta_features names 'x'"):
        meta_dataset_from_studies(searched(3), meta_features={"x": {}})


# --- recording -------------------------------------------------------------------------------


def test_every_finished_trial_is_recorded_once() -> None:
    store, study = FakeStore(), optuna.create_study(study_name="s")
    callback = record(store, task="iris", meta_features={"rows": 150.0}, tags={"who": "me"})
    study.optimize(objective, n_trials=20, callbacks=[callback], catch=(RuntimeError,))
    assert {task for task, *_ in store.runs} == {"iris"}
    whole = read_task(study)
    for column in ("losses", "status", "seconds", "times", "budget"):
        np.testing.assert_array_equal(store.column(column), getattr(whole, column))
    told, _ = next(iter(store.runs.values()))
    assert (told.meta_features, told.tags) == ({"rows": 150.0}, {"who": "me"})
    assert store.spaces["s"] == whole.space
    # again: another callback, an import, of a study that was loaded again
    for trial in study.trials:
        record(store, task="iris")(study, trial)
    assert record(store, task="iris").add(study) == 0
    assert (callback.n_recorded, callback.n_lost, len(store.runs)) == (20, 0, 20)


def test_what_no_callback_saw_is_imported() -> None:
    store, study = FakeStore(), optuna.create_study()
    callback = record(store)
    with pytest.raises(RuntimeError, match="on purpose"):
        study.optimize(objective, n_trials=20, callbacks=[callback])
    assert len(store.runs) == 4  # Optuna calls no callback for the trial that raised
    assert callback.add(study) == 1
    assert store.column("status")[-1] == Status.FAILED
    assert {task for task, *_ in store.runs} == {study.study_name}


def test_two_studies_of_one_name_are_two() -> None:
    store = FakeStore()
    for _ in range(2):
        study = optuna.create_study(study_name="same")
        study.optimize(lambda t: t.suggest_float("x", 0, 1), 3, callbacks=[record(store, "t")])
    assert len(store.runs) == 6


def test_threads_share_a_recorder_and_it_pickles() -> None:
    store, study = FakeStore(), optuna.create_study()
    study.optimize(
        lambda t: t.suggest_float("x", 0, 1), n_trials=40, n_jobs=4, callbacks=[record(store, "t")]
    )
    assert len(store.runs) == 40
    callback = pickle.loads(pickle.dumps(record(store, "t")))
    study.optimize(lambda t: t.suggest_float("x", 0, 1), n_trials=2, callbacks=[callback])
    assert len(callback.recorder.store.runs) == 42 and len(store.runs) == 40


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


def test_a_store_that_breaks_does_not_stop_the_study(caplog: pytest.LogCaptureFixture) -> None:
    study = optuna.create_study()
    callback = record(BrokenStore(), "t")
    with caplog.at_level(logging.WARNING, logger="automl_plugins"):
        study.optimize(lambda t: t.suggest_float("x", 0, 1), n_trials=5, callbacks=[callback])
    assert len(study.trials) == 5 and callback.n_lost == 5 and callback.n_recorded == 0
    (message,) = [r.getMessage() for r in caplog.records if "automl_plugins" in r.name]
    assert "OSError: no space left on device" in message
    with pytest.raises(OSError, match="no space"):
        callback.add(study)  # asked for by hand, it does not pass over it


def test_several_objectives_are_lost_and_said(caplog: pytest.LogCaptureFixture) -> None:
    study = optuna.create_study(directions=["minimize", "minimize"])
    callback = record(FakeStore(), "t")
    study.optimize(lambda t: (1.0, 2.0), n_trials=2, callbacks=[callback])
    assert callback.n_lost == 2 and "2 objectives" in caplog.text


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"store": 3}, TypeError, "store must be a MetaStore"),
        ({"store": "mysql://host/db"}, ValueError, "mysql is not"),
        ({"store": FakeStore(), "task": ""}, ValueError, "The name of a task must have 1 to"),
        ({"store": FakeStore(), "meta_features": {"a": "x"}}, TypeError, "must be a number"),
        ({"store": FakeStore(), "meta_features": {"a": math.inf}}, ValueError, "must be finite"),
        ({"store": FakeStore(), "tags": {"a": 1}}, TypeError, "must be text"),
    ],
)
def test_wrong_arguments_are_told_at_once(arguments: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        record(**arguments)


def test_a_real_store(tmp_path: Path) -> None:
    from automl_plugins.meta.store import MetaStore

    url = tmp_path / "memory.db"
    study = optuna.create_study(study_name="iris")
    callback = record(url, meta_features={"rows": 150.0})
    study.optimize(objective, n_trials=10, n_jobs=2, callbacks=[callback], catch=(RuntimeError,))
    assert (callback.n_recorded, callback.n_lost) == (10, 0)
    assert pickle.loads(pickle.dumps(callback)).add(study) == 0
    store = MetaStore(url)
    data = store.dataset()
    assert len(data) == 10 and data.tasks[0].meta_features == {"rows": 150.0}


def test_recording_does_not_slow_down(benchmark_trials: int = 300) -> None:
    """The space is not inferred from all trials after every trial."""
    store, study = FakeStore(), optuna.create_study()
    callback = record(store, "t")
    seconds: list[float] = []
    lock = threading.Lock()

    def timed(study: optuna.Study, trial: optuna.trial.FrozenTrial) -> None:
        start = datetime.now()
        callback(study, trial)
        with lock:
            seconds.append((datetime.now() - start).total_seconds())

    study.sampler = optuna.samplers.RandomSampler(seed=0)
    study.optimize(
        lambda t: sum(t.suggest_float(f"x{i}", 0, 1) for i in range(5)),
        n_trials=benchmark_trials,
        callbacks=[timed],
    )
    assert np.median(seconds[-100:]) < 0.005
