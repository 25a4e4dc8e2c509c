"""SMAC's run histories read into a memory, and recorded while a facade goes on."""

from __future__ import annotations

import logging
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from automl_plugins.adapters.smac import (
    RecordCallback,
    curves,
    meta_dataset_from_runhistory,
    read_task,
)
from automl_plugins.adapters.smac._private import quiet, scenario_of
from ConfigSpace import Configuration, ConfigurationSpace
from known_runs import BrokenStore, FakeStore
from smac import HyperbandFacade, RandomFacade, RunHistory, Scenario
from smac.callback import Callback
from smac.runhistory import StatusType

from automl_plugins.records.trial import Status


def space() -> ConfigurationSpace:
    return ConfigurationSpace({"x": (0.0, 1.0), "m": ["a", "b"]}, seed=0)


def target(config: Configuration, seed: int = 0) -> float:
    if config["x"] > 0.8:
        raise RuntimeError("on purpose")
    return float(config["x"]) + seed


def at_budget(config: Configuration, seed: int = 0, budget: float = 9.0) -> float:
    return float(config["x"]) + 1.0 / budget


def optimize(
    folder: Path,
    *callbacks: Callback,
    kind: Any = RandomFacade,
    fn: Any = target,
    n: int = 10,
    **arguments: Any,
) -> Any:
    scenario = Scenario(
        space(), deterministic=True, n_trials=n, output_directory=folder, **arguments
    )
    with quiet():
        facade = kind(scenario, fn, logging_level=False, callbacks=list(callbacks))
        facade.optimize()
    return facade


# --- reading ---------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["facade", "history", "folder"])
def test_a_run_history_is_a_task(kind: str, tmp_path: Path) -> None:
    facade = optimize(tmp_path, name="iris", seed=3)
    source = {"facade": facade, "history": facade.runhistory, "folder": str(tmp_path)}[kind]
    task = read_task(source, name="iris" if kind == "history" else None)
    assert (task.name, task.framework, len(task)) == ("iris", "smac", 10)
    assert task.seed == (None if kind == "history" else 3)
    assert task.space == space()
    for i, (key, value) in enumerate(facade.runhistory.items()):
        config = facade.runhistory.get_config(key.config_id)
        assert task.configurations[i] == dict(config)
        complete = value.status == StatusType.SUCCESS
        assert task.status[i] == (Status.COMPLETE if complete else Status.FAILED)
        np.testing.assert_array_equal(task.losses[i], value.cost if complete else np.nan)
        assert task.times[i] == value.endtime
        assert task.seconds[i] == (value.time or value.endtime - value.starttime)
    assert set(task.status.tolist()) == {Status.COMPLETE, Status.FAILED}


def test_it_agrees_with_the_curves(tmp_path: Path) -> None:
    arguments = {"min_budget": 1, "max_budget": 9, "name": "t"}
    facade = optimize(tmp_path, kind=HyperbandFacade, fn=at_budget, n=20, **arguments)
    task, (search,) = read_task(facade), curves(facade)
    assert task.configurations == [t.config for t in search.trials]
    np.testing.assert_array_equal(task.losses, [t.loss for t in search.trials])
    np.testing.assert_array_equal(task.seconds, [t.seconds for t in search.trials])
    budgets = [math.nan if t.step is None else t.step for t in search.trials]
    np.testing.assert_array_equal(task.budget, budgets)
    assert 0 < np.isnan(task.budget).sum() < 20
    data = meta_dataset_from_runhistory(facade)
    assert len(data) == np.isnan(task.budget).sum()  # those in full


def test_several_seeds_are_several_runs_and_infinite_costs_fail() -> None:
    history, (config,) = RunHistory(), [space().sample_configuration()]
    history.add(config, 1.0, seed=1, time=2.0)
    history.add(config, math.inf, seed=2)
    task = read_task(history, name="t")
    assert task.configurations == [dict(config)] * 2
    assert task.status.tolist() == [Status.COMPLETE, Status.FAILED]
    np.testing.assert_array_equal(task.seconds, [2.0, np.nan])
    np.testing.assert_array_equal(task.times, [np.nan, np.nan])


def test_what_is_no_single_task_is_refused(tmp_path: Path) -> None:
    wrong: Any = 3
    with pytest.raises(ValueError, match="pass name="):
        read_task(RunHistory())
    history, config = RunHistory(), space().sample_configuration()
    history.add(config, [1.0, 2.0], seed=0)
    with pytest.raises(ValueError, match="several objectives"):
        read_task(history, name="t")
    history = RunHistory()
    for instance in "ab":
        history.add(config, 1.0, seed=0, instance=instance)
    with pytest.raises(ValueError, match="2 instances"):
        read_task(history, name="t")
    for name in ("one", "two"):
        optimize(tmp_path, name=name, n=3)
    with pytest.raises(ValueError, match="holds 2 run histories"):
        read_task(tmp_path)
    with pytest.raises(TypeError, match="run histories, facades and folders"):
        read_task(wrong)


def test_folders_facades_and_histories_are_a_data_set(tmp_path: Path) -> None:
    for name in ("one", "two"):
        for seed in (0, 1):
            facade = optimize(tmp_path, name=name, n=5, seed=seed)
    data = meta_dataset_from_runhistory(tmp_path, meta_features={"two": {"rows": 3.0}})
    assert [task.name for task in data.tasks] == ["one", "two"]  # seeds go together
    assert [rows.stop - rows.start for rows in data.rows] == [10, 10]
    assert data.tasks[1].meta_features == {"rows": 3.0}
    several = meta_dataset_from_runhistory([tmp_path / "one", facade])
    assert [rows.stop - rows.start for rows in several.rows] == [10, 5]
    named = meta_dataset_from_runhistory({"mine": facade.runhistory}, space())
    assert [task.name for task in named.tasks] == ["mine"]


# --- recording -------------------------------------------------------------------------------


def test_the_scenario_of_a_callback() -> None:
    """Fails loudly when SMAC moves it."""
    import tempfile

    seen = []

    class Looks(Callback):
        def on_tell_end(self, smbo: Any, info: Any, value: Any) -> None:
            seen.append(scenario_of(smbo))

    with tempfile.TemporaryDirectory() as folder:
        facade = optimize(Path(folder), Looks(), n=2)
    assert seen == [facade.scenario] * 2


def test_every_trial_is_recorded_once(tmp_path: Path) -> None:
    store = FakeStore()
    callback = RecordCallback(store, task="iris", meta_features={"rows": 150.0}, tags={"a": "b"})
    facade = optimize(tmp_path, callback, seed=5)
    whole = read_task(facade, name="iris")
    assert len(store.runs) == 10
    for i, told in enumerate(store.single):
        assert (told.name, told.seed, told.space) == ("iris", 5, space())
        assert told.meta_features == {"rows": 150.0} and told.tags == {"a": "b"}
        assert told.configurations[0] == whole.configurations[i]
        for column in ("losses", "status", "seconds", "times", "budget"):
            np.testing.assert_array_equal(getattr(told, column)[0], getattr(whole, column)[i])
    again = RecordCallback(store, task="iris")
    for source in (facade, tmp_path, str(tmp_path)):
        assert again.add(source) == 0
    assert (callback.n_recorded, callback.n_lost) == (10, 0)


def test_budgets_are_recorded_and_the_highest_is_full(tmp_path: Path) -> None:
    store = FakeStore()
    callback = RecordCallback(store)
    facade = optimize(
        tmp_path,
        callback,
        kind=HyperbandFacade,
        fn=at_budget,
        n=20,
        min_budget=1,
        max_budget=9,
        name="t",
    )
    told = [record.budget[0] for record in store.single]
    np.testing.assert_array_equal(told, read_task(facade).budget)
    assert {record.name for record in store.single} == {"t"}


def test_one_configuration_at_two_budgets_is_two_trials() -> None:
    history, configuration = RunHistory(), space().sample_configuration()
    for budget in (1.0, 3.0):
        history.add(configuration, cost=1.0, seed=0, budget=budget, starttime=1.0, endtime=2.0)
    store = FakeStore()
    assert RecordCallback(store, task="t").add(history) == 2
    keys = {key for _, _, key in store.runs}
    assert len(keys) == 2


def test_seeds_of_a_scenario_are_searches_of_one_task(tmp_path: Path) -> None:
    store = FakeStore()
    for seed in (0, 1):
        optimize(tmp_path, RecordCallback(store, "t"), seed=seed, n=3)
    assert len(store.runs) == 6 and len({search for _, search, _ in store.runs}) == 2


def test_a_store_that_breaks_does_not_stop_smac(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    callback = RecordCallback(BrokenStore(), "t")
    with caplog.at_level(logging.WARNING, logger="automl_plugins"):
        facade = optimize(tmp_path, callback)
    assert facade.runhistory.finished == 10 and callback.n_lost == 10
    told = [r.getMessage() for r in caplog.records if r.name.startswith("automl_plugins")]
    assert len(told) == 1 and "no space left" in told[0]


def test_scenarios_that_cannot_be_recorded_are_refused_before_they_start(tmp_path: Path) -> None:
    callback = RecordCallback(FakeStore())
    with pytest.raises(ValueError, match="no name to call the task by: pass task="):
        optimize(tmp_path / "a", callback, n=2)  # SMAC makes one up, another for each seed
    several: dict[str, Any] = {
        "instances": ["i", "j"],
        "instance_features": {"i": [0.0], "j": [1.0]},
    }
    with pytest.raises(ValueError, match="2 instances"):
        optimize(tmp_path / "b", RecordCallback(FakeStore(), "t"), fn=of_instance, **several)


def of_instance(config: Configuration, instance: str, seed: int = 0) -> float:
    return 1.0


def test_wrong_arguments_are_told_at_once() -> None:
    wrong: Any = 3
    with pytest.raises(TypeError, match="store must be a MetaStore"):
        RecordCallback(wrong)
    with pytest.raises(ValueError, match="must be finite"):
        RecordCallback(FakeStore(), "t", meta_features={"a": math.inf})


def test_a_real_store(tmp_path: Path) -> None:
    from automl_plugins.meta.store import MetaStore

    callback = RecordCallback(tmp_path / "memory.db", "iris")
    facade = optimize(tmp_path / "smac", callback)
    assert (callback.n_recorded, callback.n_lost) == (10, 0)
    assert callback.add(facade) == 0
    assert len(MetaStore(tmp_path / "memory.db").dataset()) == 10
