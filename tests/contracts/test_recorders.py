"""Recorders of trials during a search, which behave the same in every framework.

A trial is written once, as ``read_task`` reads it, and a failing store does not stop a search.
"""

from __future__ import annotations

import logging
import math
import pickle
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import optuna
import pytest
from automl_plugins.adapters import hyperopt as with_hyperopt
from automl_plugins.adapters import optuna as with_optuna
from automl_plugins.adapters import smac as with_smac
from automl_plugins.adapters.smac._private import quiet
from ConfigSpace import Configuration, ConfigurationSpace
from hyperopt import Trials, fmin, hp, rand
from known_runs import BrokenStore, FakeStore
from smac import RandomFacade, Scenario

from automl_plugins.meta import MetaStore, TaskRecord, convert
from automl_plugins.meta.recorder import Recorder
from automl_plugins.meta.sources import names_of, read_memory
from automl_plugins.records.trial import Status

N = 12
FACTS: dict[str, Any] = {"meta_features": {"rows": 150.0}, "tags": {"who": "me"}}


def objective(x: float) -> float:
    """Complete and failed trials."""
    if x > 0.7:
        raise RuntimeError("on purpose")
    return x


class Framework(NamedTuple):
    """One framework.

    Attributes:
        record: Makes the recorder, of ``(store, task, **facts)``.
        search: Runs ``N`` trials with a recorder, or without one; returns their source.
        add: Writes the trials of a source.
        read: Reads the trials of a source as a task.
    """

    record: Callable[..., Any]
    search: Callable[[Any, Path], Any]
    add: Callable[[Any, Any], int]
    read: Callable[[Any], TaskRecord]


def search_with_optuna(recorder: Any, folder: Path) -> optuna.Study:
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    study.optimize(
        lambda trial: objective(trial.suggest_float("x", 0, 1)),
        n_trials=N,
        callbacks=[] if recorder is None else [recorder],
        catch=(RuntimeError,),
    )
    return study


SPACE = {"x": hp.uniform("x", 0, 1)}


def evaluate(point: dict[str, float]) -> float:
    return objective(point["x"])


def search_with_hyperopt(recorder: Any, folder: Path) -> Trials:
    trials = Trials()
    fmin(
        evaluate if recorder is None else recorder,
        SPACE,
        rand.suggest,
        N,
        trials=trials,
        rstate=np.random.default_rng(0),
        show_progressbar=False,
        return_argmin=False,
        catch_eval_exceptions=True,
    )
    return trials


def search_with_smac(recorder: Any, folder: Path) -> RandomFacade:
    scenario = Scenario(
        ConfigurationSpace({"x": (0.0, 1.0)}, seed=0),
        deterministic=True,
        n_trials=N,
        output_directory=folder,
    )

    def target(config: Configuration, seed: int = 0) -> float:
        return objective(config["x"])

    with quiet():
        callbacks = [] if recorder is None else [recorder]
        facade = RandomFacade(scenario, target, logging_level=False, callbacks=callbacks)
        facade.optimize()
    return facade


FRAMEWORKS = {
    "optuna": Framework(
        with_optuna.record,
        search_with_optuna,
        lambda recorder, study: recorder.add(study),
        lambda study: with_optuna.ADAPTER.read_task(study, name="iris"),
    ),
    "hyperopt": Framework(
        lambda *args, **facts: with_hyperopt.record(evaluate, *args, **facts),
        search_with_hyperopt,
        lambda recorder, trials: recorder.add(trials, SPACE),
        lambda trials: with_hyperopt.ADAPTER.read_task(trials, name="iris", space=SPACE),
    ),
    "smac": Framework(
        with_smac.RecordCallback,
        search_with_smac,
        lambda recorder, facade: recorder.add(facade),
        lambda facade: with_smac.ADAPTER.read_task(facade, name="iris"),
    ),
}


@pytest.fixture(params=list(FRAMEWORKS))
def framework(request: pytest.FixtureRequest) -> Framework:
    return FRAMEWORKS[request.param]


def test_every_trial_is_written_once_as_it_is_read(framework: Framework, tmp_path: Path) -> None:
    store = FakeStore()
    recorder = framework.record(store, "iris", **FACTS)
    source = framework.search(recorder, tmp_path)
    whole = framework.read(source)
    assert set(whole.status.tolist()) == {Status.COMPLETE, Status.FAILED}
    assert len(store.single) == N
    for i, record in enumerate(store.single):
        assert (record.name, record.meta_features, record.tags) == ("iris", *FACTS.values())
        assert record.configurations[0] == whole.configurations[i]
        for column in ("losses", "status", "budget"):
            np.testing.assert_array_equal(getattr(record, column)[0], getattr(whole, column)[i])
        if whole.framework != "hyperopt":  # where the recorder has a finer clock
            np.testing.assert_array_equal(record.seconds[0], whole.seconds[i])
            np.testing.assert_array_equal(record.times[0], whole.times[i])
    assert store.single[-1].space == whole.space
    assert framework.add(framework.record(store, "iris"), source) == 0
    assert (recorder.n_recorded, recorder.n_lost, len(store.runs)) == (N, 0, N)


def test_a_real_store_is_filled_during_a_search_or_after_it(
    framework: Framework, tmp_path: Path
) -> None:
    recorder = framework.record(tmp_path / "memory.db", "iris")
    source = framework.search(recorder, tmp_path / "one")
    assert (recorder.n_recorded, recorder.n_lost) == (N, 0)
    assert framework.add(recorder, source) == 0
    later = framework.record(str(tmp_path / "memory.db"), "later", **FACTS)
    assert framework.add(later, source) == N
    with MetaStore(tmp_path / "memory.db") as store:
        data = store.dataset()
    assert [task.name for task in data.tasks] == ["iris", "later"] and len(data) == 2 * N
    assert data.tasks[1].meta_features == FACTS["meta_features"]


@pytest.mark.parametrize("seconds", [1.0, math.nan])
def test_runs_without_times_are_told_apart_by_what_they_found(
    framework: Framework, seconds: float, tmp_path: Path
) -> None:
    recorder = framework.record(tmp_path / "memory.db", "iris")
    kind = next(name for name, each in FRAMEWORKS.items() if each is framework)
    space = ConfigurationSpace({"x": (0.0, 1.0)})
    for seed in (1, 2):
        x = np.random.default_rng(seed).random(5)
        found = TaskRecord(
            "iris",
            [{"x": float(each)} for each in x],
            losses=x**2,
            seconds=np.full(5, seconds),
            space=space,
        )
        source = convert(found, kind)
        assert framework.add(recorder, source) == 5  # of another search, with the same numbers
        assert framework.add(recorder, source) == 0


def test_long_names_of_searches_are_told_apart_by_their_ends(tmp_path: Path) -> None:
    record = TaskRecord("t", [{"x": 1}], np.ones(1))
    with MetaStore(tmp_path / "memory.db") as store:
        recorder = Recorder(store, task="t")
        for end in "ab":
            found = [recorder.add(record, search="n" * 5000 + end, keys=["0"]) for _ in range(2)]
            assert found == [1, 0]
        assert len(store.searches()) == 2


def test_a_store_that_breaks_does_not_stop_a_search(
    framework: Framework, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    recorder = framework.record(BrokenStore(), "iris")
    with caplog.at_level(logging.WARNING, logger="automl_plugins"):
        source = framework.search(recorder, tmp_path)
    assert len(framework.read(source)) == N and (recorder.n_lost, recorder.n_recorded) == (N, 0)
    (message,) = [r.getMessage() for r in caplog.records if "automl_plugins" in r.name]
    assert "OSError: no space left on device" in message
    with pytest.raises(OSError, match="no space"):
        framework.add(recorder, source)  # called by the user, it raises


def test_a_store_that_is_removed_is_made_again(framework: Framework, tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    recorder = framework.record(path, "iris")
    framework.search(recorder, tmp_path / "one")
    for file in tmp_path.glob("memory.db*"):
        file.unlink()
    framework.search(recorder, tmp_path / "two")
    assert (recorder.n_recorded, recorder.n_lost) == (2 * N, 0)
    with MetaStore(path) as store:
        assert sum(search.n_runs for search in store.searches()) == N


@pytest.mark.parametrize("name", ["svm", "xgboost_regression", "auto"])
def test_a_store_is_not_called_as_a_memory_that_is_there(
    framework: Framework, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    told = (
        f"memory='{name}' names a bundled memory. Give a file, such as '{name}.db' or './{name}'"
    )
    with pytest.raises(ValueError, match=re.escape(told)):
        framework.record(name, "u")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("store", ["./svm", Path("svm"), "svm.db", "sqlite:///svm"])
def test_what_is_plainly_a_path_is_one_to_a_recorder_and_to_a_search(
    framework: Framework, store: str | Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    framework.search(framework.record(store, "u"), tmp_path / "runs")
    (found,) = names_of(read_memory(store))
    assert found == "u"


def test_recorders_pickle(framework: Framework, tmp_path: Path) -> None:
    recorder = pickle.loads(pickle.dumps(framework.record(FakeStore(), "iris")))
    framework.search(recorder, tmp_path)
    assert len(recorder.recorder.store.runs) == N


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((3, "t"), TypeError, "store must be a MetaStore"),
        (("mysql://host/db", "t"), ValueError, "mysql is not"),
        ((FakeStore(), ""), ValueError, "The name of a task must have 1 to"),
        ((FakeStore(), "t", {"meta_features": {"a": "x"}}), TypeError, "must be a number"),
        ((FakeStore(), "t", {"meta_features": {"a": math.inf}}), ValueError, "must be finite"),
        ((FakeStore(), "t", {"tags": {"a": 1}}), TypeError, "must be text"),
    ],
)
def test_wrong_arguments_are_refused_at_once(
    framework: Framework, arguments: Any, error: Any, message: str
) -> None:
    store, task, *facts = arguments
    with pytest.raises(error, match=message):
        framework.record(store, task, **(facts[0] if facts else {}))
