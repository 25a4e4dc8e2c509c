"""SMAC's run histories as searches."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from automl_plugins.adapters.smac import curves, optimizer, owns
from automl_plugins.adapters.smac._private import quiet
from ConfigSpace import Configuration, ConfigurationSpace
from smac import HyperbandFacade, RandomFacade, RunHistory, Scenario
from smac.runhistory import StatusType

from automl_plugins.replay.protocol import Outcome, Problem, TrialStatus


def space() -> ConfigurationSpace:
    return ConfigurationSpace({"x": (0.0, 1.0), "m": ["a", "b"]}, seed=0)


def optimize(folder: Path, *, kind: Any = RandomFacade, n: int = 5, **arguments: Any) -> Any:
    scenario = Scenario(
        space(), deterministic=True, n_trials=n, output_directory=folder, **arguments
    )

    def target(config: Configuration, seed: int = 0) -> float:
        return float(config["x"])

    def target_at(config: Configuration, seed: int = 0, budget: float = 9.0) -> float:
        return float(config["x"]) + 1.0 / budget

    several = "max_budget" in arguments
    with quiet():
        facade = kind(scenario, target_at if several else target, logging_level=False)
        facade.optimize()
    return facade


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
    failed, complete = TrialStatus.FAILED, TrialStatus.COMPLETE
    assert [t.status for t in search.trials] == [failed, complete, failed, failed]
    assert [t.loss for t in search.trials if t.status == complete] == [0.0]
    assert sum(math.isnan(t.loss) for t in search.trials) == 3
    assert search.left_out == ("1 running trial left out.",)
    assert all(type(v) in (float, str) for t in search.trials for v in t.config.values())


def test_what_optimize_did_is_read_from_its_facade_and_its_folder(tmp_path: Path) -> None:
    facade = optimize(tmp_path, name="problem", seed=3)
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
    facade = optimize(tmp_path, kind=HyperbandFacade, n=14, name="p", min_budget=1, max_budget=9)
    (search,) = curves(facade)
    assert {t.step for t in search.trials} == {1.0, 3.0, None}
    (unknown,) = curves(facade.runhistory, table="t", method="m")
    assert [t.step for t in unknown.trials] == [t.step for t in search.trials]
    short = optimize(tmp_path, kind=HyperbandFacade, n=5, name="q", min_budget=1, max_budget=9)
    assert {t.step for t in curves(short)[0].trials} == {1.0}


def test_a_replayed_search_comes_back() -> None:
    search = optimizer(RandomFacade).start(Problem(space(), 0, 5))
    first, second = search.ask(), search.ask()
    assert first is not None and second is not None
    search.tell(second, Outcome(TrialStatus.COMPLETE, 2.0, 0.0, 1.5))
    search.tell(first, Outcome(TrialStatus.FAILED, math.nan, 0.0, 4.0))
    (read,) = curves(search.facade, table="t")
    assert (read.table, read.method) == ("t", "smac.Random")
    assert [t.config for t in read.trials] == [second.config, first.config]
    assert [(t.seconds, t.finished) for t in read.trials] == [(1.5, 1.5), (4.0, 4.0)]
    statuses = [t.status for t in read.trials]
    assert statuses == [TrialStatus.COMPLETE, TrialStatus.FAILED]


def test_unknown_times_are_unknown() -> None:
    made = RunHistory()
    for config, seconds in zip(space().sample_configuration(2), (0.0, 3.0), strict=True):
        made.add(config, 1.0, time=seconds, seed=0)
    (search,) = curves(made, table="t", method="m")
    assert math.isnan(search.trials[0].seconds) and search.trials[1].seconds == 3.0
    assert all(math.isnan(t.finished) for t in search.trials)


def test_several_seeds_of_a_configuration_are_trials_of_their_own() -> None:
    made, (config, _) = RunHistory(), space().sample_configuration(2)
    for seed in (1, 2):
        made.add(config, float(seed), seed=seed, starttime=seed, endtime=seed + 1.0)
    (search,) = curves(made, table="t", method="m")
    assert [t.loss for t in search.trials] == [1.0, 2.0]


def test_objectives_and_instances_are_refused() -> None:
    config = space().get_default_configuration()
    objectives, instances = RunHistory(), RunHistory()
    objectives.add(config, [1.0, 2.0], seed=0)
    for instance in ("a", "b"):
        instances.add(config, 1.0, instance=instance, seed=0)
    for made, words in ((objectives, "several objectives"), (instances, "2 instances")):
        with pytest.raises(ValueError, match=words):
            curves(made, table="t", method="m")


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


def test_other_things_are_refused() -> None:
    with pytest.raises(TypeError, match="run histories, facades and folders"):
        curves(7)
