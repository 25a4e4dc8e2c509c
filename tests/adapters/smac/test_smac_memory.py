"""Run histories as searches and as tasks of a memory, and recorded while a facade continues."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from automl_plugins.adapters.smac import (
    ADAPTER,
    RecordCallback,
    curves,
    meta_dataset_from_runhistory,
    optimizer,
)
from automl_plugins.adapters.smac._private import quiet, scenario_of
from ConfigSpace import Configuration, ConfigurationSpace
from known_runs import FakeStore
from smac import HyperbandFacade, RandomFacade, RunHistory, Scenario
from smac.callback import Callback
from smac.runhistory import StatusType

from automl_plugins.frameworks import Outcome, Problem
from automl_plugins.records.trial import Status

owns = ADAPTER.owns
read_task = ADAPTER.read_task


def space() -> ConfigurationSpace:
    return ConfigurationSpace({"x": (0.0, 1.0), "m": ["a", "b"]}, seed=0)


def target(config: Configuration, seed: int = 0) -> float:
    if config["x"] > 0.8:
        raise RuntimeError("on purpose")
    return float(config["x"]) + seed


def easy(config: Configuration, seed: int = 0) -> float:
    return float(config["x"])


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


# --- searches ---------------------------------------------------------------------------------


@pytest.fixture
def history() -> RunHistory:
    """Four trials that end in another order, and one that runs."""
    made, configs = RunHistory(), space().sample_configuration(5)
    ends = [(StatusType.SUCCESS, 15.0), (StatusType.CRASHED, 13.0), (StatusType.TIMEOUT, 19.0)]
    ends += [(StatusType.MEMORYOUT, 17.0), (StatusType.RUNNING, 0.0)]
    for i, (config, (status, end)) in enumerate(zip(configs, ends, strict=True)):
        start = 10.0 + i if end else 0.0
        made.add(config, i, status=status, starttime=start, endtime=end, seed=0)
    return made


def test_a_run_history_is_read_in_order_of_its_results(history: RunHistory) -> None:
    (search,) = curves(history, table="t", method="m")
    assert (search.table, search.method, search.seed) == ("t", "m", 0)
    assert search.space == space()
    assert [t.finished for t in search.trials] == [3.0, 5.0, 7.0, 9.0]
    assert [t.seconds for t in search.trials] == [2.0, 5.0, 4.0, 7.0]
    failed, complete = Status.FAILED, Status.COMPLETE
    assert [t.status for t in search.trials] == [failed, complete, failed, failed]
    assert [t.loss for t in search.trials if t.status == complete] == [0.0]
    assert sum(math.isnan(t.loss) for t in search.trials) == 3
    assert search.left_out == ("1 running trial left out.",)
    assert all(type(v) in (float, str) for t in search.trials for v in t.config.values())


def test_what_optimize_did_is_read_from_its_facade_and_its_folder(tmp_path: Path) -> None:
    facade = optimize(tmp_path, fn=easy, name="problem", seed=3)
    (search,) = curves(facade)
    assert (search.table, search.method, search.seed) == ("problem", "smac.Random", 3)
    assert [t.loss for t in search.trials] == [t.config["x"] for t in search.trials]
    assert all(0.0 <= t.seconds <= t.finished < 60.0 for t in search.trials)
    assert search.left_out == ()
    folder = tmp_path / "problem" / "3"
    for source in (folder, str(folder), tmp_path):
        assert curves(source) == [search]
    (labelled,) = curves(facade, table="", method="", seed=0)
    assert (labelled.table, labelled.method, labelled.seed) == ("", "", 0)
    (plain,) = curves(facade.runhistory, table="t", method="m", seed=3)
    assert plain.trials == search.trials


def test_a_folder_of_runs_is_a_search_for_each(tmp_path: Path) -> None:
    for name in ("one", "two"):
        for seed in (0, 1):
            optimize(tmp_path, name=name, seed=seed, n=2)
    searches = curves(tmp_path)
    assert [(s.table, s.seed) for s in searches] == [
        ("one", 0),
        ("one", 1),
        ("two", 0),
        ("two", 1),
    ]
    assert {s.method for s in curves(tmp_path, method="mine")} == {"mine"}


def test_budgets_are_steps_and_the_highest_is_none(tmp_path: Path) -> None:
    budgets: dict[str, Any] = {"kind": HyperbandFacade, "fn": at_budget}
    budgets |= {"min_budget": 1, "max_budget": 9}
    facade = optimize(tmp_path, n=14, name="p", **budgets)
    (search,) = curves(facade)
    assert {t.step for t in search.trials} == {1.0, 3.0, None}
    (unknown,) = curves(facade.runhistory, table="t", method="m")
    assert [t.step for t in unknown.trials] == [t.step for t in search.trials]
    short = optimize(tmp_path, n=5, name="q", **budgets)
    assert {t.step for t in curves(short)[0].trials} == {1.0}


def test_a_replayed_search_comes_back() -> None:
    search = optimizer(RandomFacade).start(Problem(space(), 0, 5))
    first, second = search.ask(), search.ask()
    assert first is not None and second is not None
    search.tell(second, Outcome(Status.COMPLETE, 2.0, 0.0, 1.5))
    search.tell(first, Outcome(Status.FAILED, math.nan, 0.0, 4.0))
    (read,) = curves(search.facade, table="t")
    assert (read.table, read.method) == ("t", "smac.Random")
    assert [t.config for t in read.trials] == [second.config, first.config]
    assert [(t.seconds, t.finished) for t in read.trials] == [(1.5, 1.5), (4.0, 4.0)]
    statuses = [t.status for t in read.trials]
    assert statuses == [Status.COMPLETE, Status.FAILED]


def test_labels_must_be_known(history: RunHistory, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="pass table= and method="):
        curves(history)
    with pytest.raises(ValueError, match=r"pass table=\."):
        curves(optimize(tmp_path, n=2))  # SMAC made up its name
    assert curves(RunHistory(), table="t", method="m")[0].trials == []


def test_only_folders_with_run_histories_are_owned(tmp_path: Path) -> None:
    deep = tmp_path / "a" / "b" / "c"
    deep.mkdir(parents=True)
    assert not owns(str(tmp_path)) and not owns("sqlite:///x.db") and not owns("x" * 10_000)
    with pytest.raises(ValueError, match=r"No runhistory\.json"):
        curves(tmp_path)
    (deep / "runhistory.json").write_text("{}")
    assert owns(str(tmp_path)) and owns(str(deep)) and not owns(str(deep / "runhistory.json"))
    with pytest.raises(ValueError, match=r"configspace\.json"):
        curves(tmp_path)


def test_broken_files_are_errors(tmp_path: Path) -> None:
    optimize(tmp_path, name="p", n=2)
    file = tmp_path / "p" / "0" / "runhistory.json"
    file.write_text(file.read_text()[:-20])
    with pytest.raises(ValueError, match=r"runhistory\.json is no JSON"):
        curves(tmp_path)


# --- tasks ------------------------------------------------------------------------------------


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
        assert task.configurations[i] == dict(config) and task.times[i] == value.endtime


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
