"""Run histories as searches and as tasks of a memory, and recorded while a facade continues."""

from __future__ import annotations

import math
import warnings
from functools import partial
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
from automl_plugins.adapters.smac._private import quiet
from ConfigSpace import Configuration, ConfigurationSpace, Float
from known_runs import FakeStore
from smac import HyperbandFacade, RandomFacade, RunHistory, Scenario
from smac.callback import Callback
from smac.runhistory import StatusType, TrialInfo, TrialValue

from automl_plugins.frameworks import Outcome, Problem
from automl_plugins.meta import TaskRecord
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


at_budgets = partial(optimize, kind=HyperbandFacade, fn=at_budget, min_budget=1, max_budget=9)


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
    np.testing.assert_equal([t.loss for t in search.trials], [math.nan, 0.0, math.nan, math.nan])
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
    for source, name in ((facade, None), (str(tmp_path), None), (facade.runhistory, "problem")):
        task = read_task(source, name=name)
        assert (task.name, task.framework, len(task)) == ("problem", "smac", 10)
        assert task.seed == (3 if name is None else None) and task.space == space()
        assert task.configurations == [t.config for t in search.trials]
        ends = [value.endtime for value in facade.runhistory.values()]
        np.testing.assert_array_equal(task.times, ends)


def test_budgets_are_steps_and_the_highest_is_none(tmp_path: Path) -> None:
    facade = at_budgets(tmp_path, n=14, name="p")
    (search,) = curves(facade)
    assert {t.step for t in search.trials} == {1.0, 3.0, None}
    (unknown,) = curves(facade.runhistory, table="t", method="m")
    assert [t.step for t in unknown.trials] == [t.step for t in search.trials]
    short = at_budgets(tmp_path, n=5, name="q")
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
    assert [t.status for t in read.trials] == [Status.COMPLETE, Status.FAILED]


def test_labels_must_be_known(history: RunHistory, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="pass table= and method= in Python"):
        curves(history)
    with pytest.raises(ValueError, match=r"pass table= in Python\."):
        curves(optimize(tmp_path, n=2))  # SMAC made up its name
    assert curves(RunHistory(), table="t", method="m")[0].trials == []


def test_only_run_histories_and_folders_with_some_are_owned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deep = tmp_path / "a" / "b" / "c"
    deep.mkdir(parents=True)
    assert not owns(str(tmp_path)) and not owns("sqlite:///x.db") and not owns("x" * 10_000)
    with pytest.raises(ValueError, match=r"No runhistory\.json"):
        curves(tmp_path)
    (deep / "runhistory.json").write_text("{}")
    assert owns(str(tmp_path)) and owns(str(deep)) and owns(str(deep / "runhistory.json"))
    for variable in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(variable, str(tmp_path))
    assert owns("~/a")
    for folder in (tmp_path, "~/a", deep / "runhistory.json"):
        with pytest.raises(ValueError, match=r"configspace\.json"):
            curves(folder)


def test_broken_files_are_errors(tmp_path: Path) -> None:
    optimize(tmp_path, name="p", n=2)
    file = tmp_path / "p" / "0" / "runhistory.json"
    file.write_text(file.read_text()[:-20])
    with pytest.raises(ValueError, match=r"runhistory\.json is not valid JSON"):
        curves(tmp_path)


@pytest.mark.parametrize("content", ['{"seed": "one"}', '{"seed": 1.5}', '{"max_budget": "9"}'])
def test_a_scenario_with_a_text_for_a_number_is_an_error(content: str, tmp_path: Path) -> None:
    at_budgets(tmp_path, n=4, name="p")
    (tmp_path / "p" / "0" / "scenario.json").write_text(content)
    with pytest.raises(ValueError, match=r"scenario\.json is not what SMAC 2 writes"):
        curves(tmp_path, table="p", method="m")


@pytest.mark.parametrize("name", ["runhistory.json", "scenario.json", "configspace.json"])
@pytest.mark.parametrize("content", ["{}", "[]", "null", "{", '{"data": [{"config_id": 1}]}'])
def test_files_of_something_else_are_errors_that_name_them(
    name: str, content: str, tmp_path: Path
) -> None:
    optimize(tmp_path, name="p", n=2)
    (tmp_path / "p" / "0" / name).write_text(content)
    if (name, content[:2]) in {("scenario.json", "{}"), ("scenario.json", '{"')}:
        curves(tmp_path, table="p", method="m")  # facts that are missing may be given
        return
    with pytest.raises(ValueError, match=r"(runhistory|scenario|configspace)\.json is not "):
        curves(tmp_path, table="p", method="m")


# --- tasks ------------------------------------------------------------------------------------


def test_runs_in_full_are_the_data(tmp_path: Path) -> None:
    facade = at_budgets(tmp_path, n=20, name="t")
    task = read_task(facade)
    assert 0 < np.isnan(task.budget).sum() < 20
    assert len(meta_dataset_from_runhistory(facade)) == np.isnan(task.budget).sum()
    assert read_task(facade, space=(wider := ConfigurationSpace())).space is wider
    again = read_task(ADAPTER.write_history(task), name="t")
    for name in ("losses", "seconds", "budget", "status"):
        np.testing.assert_array_equal(getattr(again, name), getattr(task, name))


def test_a_repeated_configuration_is_written_with_another_seed() -> None:
    rows = [{"x": 0.5, "m": "a"}, {"x": 0.25, "m": "b"}, {"x": 0.5, "m": "a"}]
    record = TaskRecord("t", rows, np.array([1.0, math.nan, 3.0]), space=space())
    history = ADAPTER.write_history(record)
    assert [key.seed for key in history] == [0, 0, 1]
    assert [value.cost for value in history.values()] == [1.0, 3.0, 3.0]
    failed = ADAPTER.write_history(record, crash_cost=9.0)
    assert [value.cost for value in failed.values()] == [1.0, 9.0, 3.0]
    with pytest.raises(ValueError, match="crash_cost must be a number, got 'a'"):
        ADAPTER.write_history(record, crash_cost="a")


def test_a_run_without_a_time_stays_where_it_was() -> None:
    rows = [{"x": x, "m": "a"} for x in (0.1, 0.2, 0.3)]
    times = np.array([1.7e9, math.nan, 1.7e9 + 100])
    record = TaskRecord("t", rows, np.arange(3.0), np.ones(3), times=times, space=space())
    again = read_task(ADAPTER.write_history(record), name="t")
    assert [values["x"] for values in again.configurations] == [0.1, 0.2, 0.3]
    # as for the other frameworks: right after the run before it
    assert again.times.tolist() == [1.7e9, 1.7e9 + 1, 1.7e9 + 100]


def test_values_that_smac_rounds_are_warned_of() -> None:
    where = ConfigurationSpace({"x": Float("x", (1e-13, 1.0), log=True), "y": (0.0, 1.0)})
    rows = [{"x": 3.46e-13, "y": 0.0}, {"x": 3.14e-13, "y": 0.0}, {"x": 0.1, "y": 1 / 3}]
    with pytest.warns(UserWarning, match=r"13 decimals: in 2 of 3 runs a value changes") as warned:
        ADAPTER.write_history(TaskRecord("t", rows, np.arange(3.0), space=where))
    assert warned[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ADAPTER.write_history(TaskRecord("t", rows[2:], np.zeros(1), space=where))


def test_a_deterministic_scenario_continues_from_repeated_runs(tmp_path: Path) -> None:
    rows = [{"x": 0.7, "m": "a"}, {"x": 0.7, "m": "a"}]
    history = ADAPTER.write_history(TaskRecord("t", rows, np.full(2, 0.7), space=space()))
    scenario = Scenario(space(), deterministic=True, n_trials=10, output_directory=tmp_path)
    with quiet():
        facade = RandomFacade(scenario, easy, logging_level=False)
        for key, value in history.items():  # as ``write_history`` shows it
            if key.seed == 0 or not scenario.deterministic:
                config = history.get_config(key.config_id)
                facade.tell(TrialInfo(config, seed=key.seed), value, save=False)
        best: Any = facade.optimize()
    costs: list[Any] = [value.cost for value in facade.runhistory.values()]
    assert best["x"] == min(costs) < 0.7


def test_without_a_complete_run_the_largest_loss_is_the_cost_of_the_others() -> None:
    rows = [{"x": 0.5, "m": "a"}, {"x": 0.25, "m": "b"}, {"x": 0.75, "m": "a"}]
    status = np.array([Status.PRUNED, Status.COMPLETE, Status.FAILED])
    losses, budget = np.array([700.0, 900.0, math.nan]), np.array([3.0, 1.0, 1.0])
    record = TaskRecord("t", rows, losses, status=status, budget=budget, space=space())
    history = ADAPTER.write_history(record)
    assert [value.cost for value in history.values()] == [900.0] * 3
    again = read_task(history, name="t")
    np.testing.assert_array_equal(again.budget, budget)
    np.testing.assert_array_equal(again.status, status)
    failed = TaskRecord("t", rows, np.full(3, math.nan), space=space())
    said = r"No run of 't' has a loss.*its 3 failed ones.*cost 1"
    with pytest.warns(UserWarning, match=said) as warned:
        assert {value.cost for value in ADAPTER.write_history(failed).values()} == {1.0}
    assert warned[0].filename == __file__


def several(losses: Any = 1.0, instances: str = "a") -> RunHistory:
    history, config = RunHistory(), space().sample_configuration()
    for instance in instances:
        history.add(config, losses, seed=0, instance=instance)
    return history


@pytest.mark.parametrize(
    ("source", "name", "error", "message"),
    [
        (RunHistory(), None, ValueError, "give the Scenario a name.* task= for RecordCallback"),
        (several([1.0, 2.0]), "t", ValueError, "several objectives"),
        (several(instances="ab"), "t", ValueError, "2 instances"),
        (3, None, TypeError, "A run of SMAC is a run history, a facade or a folder"),
    ],
)
def test_what_is_no_task_is_refused(source: Any, name: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        read_task(source, name=name)


def test_folders_facades_and_histories_are_several_searches(tmp_path: Path) -> None:
    for name in ("one", "two"):
        for seed in (0, 1):
            facade = optimize(tmp_path, name=name, n=5, seed=seed)
    found = [(s.table, s.seed) for s in curves(tmp_path)]
    assert found == [("one", 0), ("one", 1), ("two", 0), ("two", 1)]
    assert {s.method for s in curves(tmp_path, method="mine")} == {"mine"}
    with pytest.raises(ValueError, match="holds 4 run histories"):
        read_task(tmp_path)
    data = meta_dataset_from_runhistory(tmp_path, meta_features={"two": {"rows": 3.0}})
    assert [task.name for task in data.tasks] == ["one", "two"]  # seeds go together
    assert [rows.stop - rows.start for rows in data.rows] == [10, 10]
    assert data.tasks[1].meta_features == {"rows": 3.0}
    both = meta_dataset_from_runhistory([tmp_path / "one", facade])
    assert [rows.stop - rows.start for rows in both.rows] == [10, 5]
    named = meta_dataset_from_runhistory({"mine": facade.runhistory}, space())
    assert [task.name for task in named.tasks] == ["mine"]


# --- recording -------------------------------------------------------------------------------


def test_budgets_are_recorded_and_the_highest_is_full(tmp_path: Path) -> None:
    store = FakeStore()
    recorder = RecordCallback(store, meta_features={"NumberOfInstances": 9.0})
    facade = at_budgets(tmp_path, recorder, n=20, name="t")
    assert all(r.meta_features == {"NumberOfInstances": 9.0} for r in store.single)
    told = [record.budget[0] for record in store.single]
    np.testing.assert_array_equal(told, read_task(facade).budget)
    assert {record.name for record in store.single} == {"t"}


def test_one_configuration_at_two_budgets_is_two_trials() -> None:
    history, configuration = RunHistory(), space().sample_configuration()
    for budget in (1.0, 3.0):
        history.add(configuration, cost=1.0, seed=0, budget=budget, starttime=1.0, endtime=2.0)
    store = FakeStore()
    assert RecordCallback(store, task="t").add(history) == 2
    assert len({key for _, _, key in store.runs}) == 2


def test_what_was_told_without_a_time_again_is_another_run() -> None:
    config = Configuration(space(), values={"x": 0.5, "m": "a"})
    store = FakeStore()
    for cost, new in ((1.0, 1), (6.0, 1), (6.0, 0)):
        history = RunHistory()
        history.add(config, cost=cost, seed=0)
        assert RecordCallback(store, task="t").add(history) == new


@pytest.mark.parametrize("cost", [1, np.float32(1.5), [1.5]], ids=repr)
def test_costs_of_any_kind_that_smac_takes_are_stored_once(tmp_path: Path, cost: Any) -> None:
    recorder = RecordCallback(store := FakeStore(), task="t")
    scenario = Scenario(space(), deterministic=True, n_trials=3, output_directory=tmp_path)
    with quiet():
        facade = RandomFacade(scenario, None, logging_level=False, callbacks=[recorder])
        for _ in range(3):
            facade.tell(facade.ask(), TrialValue(cost))
    assert len(store.runs) == 3 and recorder.n_lost == 0
    assert all(record.losses[0] == np.ravel(cost)[0] for record in store.single)
    assert recorder.add(facade) == 0


def test_a_bare_run_history_is_known_to_be_that_of_a_recorded_run(tmp_path: Path) -> None:
    recorder = RecordCallback(store := FakeStore(), task="t")
    facade = optimize(tmp_path, recorder, fn=easy, seed=3, n=4)
    loaded = RunHistory()
    loaded.load(facade.scenario.output_directory / "runhistory.json", space())
    for history in (facade.runhistory, loaded):
        assert RecordCallback(store, task="t").add(history) == 0
        assert read_task(history, name="t").seed == 3
    assert len(store.runs) == 4
    mine: list[Any] = [{"automl_plugins": "mine"}, {"host": "node7"}, "text"]
    for info in mine:
        facade.tell(facade.ask(), TrialValue(1.0, additional_info=info), save=False)
    told = [value.additional_info for value in facade.runhistory.values()][4:]
    assert told == [mine[0], {"host": "node7", "automl_plugins": {"seed": 3}}, "text"]
    assert mine[1] == {"host": "node7"} and recorder.add(facade.runhistory) == 0


def test_seeds_of_a_scenario_are_searches_of_one_task(tmp_path: Path) -> None:
    store = FakeStore()
    for seed in (0, 1):
        optimize(tmp_path, RecordCallback(store, "t"), seed=seed, n=3)
    assert len(store.runs) == 6 and len({search for _, search, _ in store.runs}) == 2


def test_scenarios_that_cannot_be_recorded_are_refused_before_they_start(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no name, so the task has none: pass task="):
        optimize(tmp_path / "a", RecordCallback(FakeStore()), n=2)  # SMAC makes one up
    options: dict[str, Any] = {
        "instances": ["i", "j"],
        "instance_features": {"i": [0.0], "j": [1.0]},
    }
    with pytest.raises(ValueError, match="2 instances"):
        optimize(tmp_path / "b", RecordCallback(FakeStore(), "t"), fn=of_instance, **options)
    with pytest.raises(ValueError, match="RecordCallback takes one objective, the scenario has 2"):
        optimize(tmp_path / "c", RecordCallback(FakeStore(), "t"), objectives=["loss", "size"])


def of_instance(config: Configuration, instance: str, seed: int = 0) -> float:
    return 1.0
