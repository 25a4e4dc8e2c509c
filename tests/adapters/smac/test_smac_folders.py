"""A folder of several runs as a memory: some are of no use, others are being written."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from automl_plugins.adapters.optuna import AutoSampler
from automl_plugins.adapters.smac import (
    ADAPTER,
    AutoFacade,
    MetaInitialDesign,
    RecordCallback,
    curves,
    meta_dataset_from_runhistory,
    trials,
)
from automl_plugins.adapters.smac._private import quiet
from ConfigSpace import Configuration, ConfigurationSpace
from known_runs import FakeStore
from smac import RunHistory, Scenario
from smac_runs import StopAfter

from automl_plugins.meta import TaskRecord
from automl_plugins.meta.sources import names_of, read_memory

pytestmark = pytest.mark.usefixtures("nobody_answers")

SPACE = ConfigurationSpace({"x": (0.0, 1.0)}, seed=0)
UNNAMED = "0123456789abcdef" * 2  # as SMAC names a scenario that has no name
INSTANCES: dict[str, Any] = {
    "instances": ["u", "v"],
    "instance_features": {"u": [0.0], "v": [1.0]},
}


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> Any:
    for module in ("smac.facade.abstract_facade", "automl_plugins.adapters.smac.facades"):
        monkeypatch.setattr(f"{module}.setup_logging", lambda level: None)
    caplog.set_level(logging.INFO, logger="smac")
    return caplog


def history(best: float = 0.3) -> RunHistory:
    rows = [{"x": x} for x in (0.1, 0.4, 0.6, 0.9)]
    losses = np.array([abs(row["x"] - best) for row in rows])
    made: RunHistory = ADAPTER.write_history(TaskRecord("t", rows, losses, space=SPACE))
    return made


def stored(root: Path, name: str, seed: int = 0, best: float = 0.3, made: Any = None) -> Path:
    """The folder of a run, with the files that are read of what SMAC writes."""
    folder = root / name / str(seed)
    folder.mkdir(parents=True)
    SPACE.to_json(folder / "configspace.json")
    facts = {"name": name, "seed": seed, "_meta": {"facade": {"name": "RandomFacade"}}}
    (folder / "scenario.json").write_text(json.dumps(facts))
    (history(best) if made is None else made).save(folder / "runhistory.json")
    return folder


def several(cost: Any, instances: str = "u") -> RunHistory:
    made, config = RunHistory(), Configuration(SPACE, {"x": 0.5})
    for instance in instances:
        made.add(config, cost, seed=0, instance=instance)
    return made


def without_space(root: Path) -> Path:
    (folder := stored(root, "bad")).joinpath("configspace.json").unlink()
    return folder


def damaged(file: str, text: str = '{"stats": {') -> Callable[[Path], Path]:
    def make(root: Path) -> Path:
        (folder := stored(root, "bad")).joinpath(file).write_text(text)
        return folder

    return make


UNFIT: dict[str, tuple[Callable[[Path], Path], str]] = {
    "objectives": (
        lambda root: stored(root, "bad", made=several([1.0, 2.0])),
        "several objectives",
    ),
    "instances": (lambda root: stored(root, "bad", made=several(1.0, "uv")), "2 instances"),
    "unnamed": (lambda root: stored(root, UNNAMED), "give the Scenario a name"),
    "without a space": (without_space, "needs the search space in configspace.json"),
    "damaged runs": (damaged("runhistory.json"), "runhistory.json is not valid JSON"),
    "damaged space": (damaged("configspace.json"), "configspace.json is not what SMAC 2 writes"),
    "damaged scenario": (damaged("scenario.json"), "scenario.json is not valid JSON"),
    "scenario without facts": (
        damaged("scenario.json", '{"name": "bad", "_meta": null}'),
        "scenario.json is not what SMAC 2 writes",
    ),
    "scenario of another kind": (
        damaged("scenario.json", '{"name": 3}'),
        "scenario.json is not what SMAC 2 writes",
    ),
}


def listed(known: Any) -> list[TaskRecord]:
    assert isinstance(known, list)
    return known


def recorded(source: Any) -> tuple[str, ...]:
    RecordCallback(store := FakeStore()).add(source)
    return tuple(dict.fromkeys(name for name, _, _ in store.runs))


def searched(memory: Any) -> tuple[str, ...]:
    run = Scenario(SPACE, n_trials=9)
    proposer: Any = AutoFacade.get_config_selector(run, memory=memory).proposer
    names: tuple[str, ...] = proposer.memory.names
    return names


def designed(memory: Any) -> tuple[str, ...]:
    MetaInitialDesign(Scenario(SPACE, n_trials=9), memory, n_configs=1)
    return names_of(read_memory(memory))


DOORS: dict[str, Callable[[Any], tuple[str, ...]]] = {
    "memory": lambda memory: names_of(read_memory(memory)),
    "search": searched,
    "design": designed,
    "record": recorded,
    "dataset": lambda source: names_of(meta_dataset_from_runhistory(source)),
}


# --- runs of no use ---------------------------------------------------------------------------


@pytest.mark.parametrize("kind", UNFIT)
@pytest.mark.parametrize("door", [door for door in DOORS if door != "design"])
def test_a_run_of_no_use_does_not_spoil_its_folder(
    door: str, kind: str, tmp_path: Path, log: pytest.LogCaptureFixture
) -> None:
    make, why = UNFIT[kind]
    stored(tmp_path, "one"), stored(tmp_path, "two", best=0.8)
    folder = make(tmp_path)
    assert DOORS[door](tmp_path) == ("one", "two")
    (said,) = [r.getMessage() for r in log.records if r.levelname == "WARNING"]
    assert said.startswith(f"Source {str(folder)!r} is left out: ") and why in said


def test_a_design_is_made_of_the_others(tmp_path: Path, log: pytest.LogCaptureFixture) -> None:
    stored(tmp_path, "one"), stored(tmp_path, "two", best=0.8)
    stored(tmp_path, "bad", made=several([1.0, 2.0]))
    assert designed(tmp_path) == ("one", "two")
    assert "several objectives" in log.text


@pytest.mark.parametrize("kind", UNFIT)
def test_a_run_that_was_picked_is_refused(
    kind: str, tmp_path: Path, log: pytest.LogCaptureFixture
) -> None:
    """By its own folder, or its file, also where others are beside it."""
    make, why = UNFIT[kind]
    other = stored(tmp_path, "one")
    folder = make(tmp_path)
    for door in DOORS.values():
        for source in (folder, folder / "runhistory.json", str(folder), [folder, other]):
            with pytest.raises(ValueError, match=why):
                door(source)
    assert "left out" not in log.text


def test_a_folder_in_which_nothing_is_left_is_refused(tmp_path: Path) -> None:
    stored(tmp_path, "two", made=several([1.0, 2.0]))
    folder = damaged("runhistory.json")(tmp_path)
    for door in DOORS.values():
        with pytest.raises(ValueError, match=r"None of the 2 runs in .* can be used") as refused:
            door(tmp_path)
        assert str(folder) in str(refused.value) and "several objectives" in str(refused.value)


def test_a_task_that_is_named_may_be_of_a_run_without_a_name(
    tmp_path: Path, log: pytest.LogCaptureFixture
) -> None:
    stored(tmp_path, "one"), stored(tmp_path, UNNAMED)
    assert RecordCallback(store := FakeStore(), task="t").add(tmp_path) == 4  # as the other's
    assert {name for name, _, _ in store.runs} == {"t"}
    assert names_of(read_memory({"t": tmp_path / UNNAMED})) == ("t",)
    assert not log.records


def test_searches_to_be_compared_are_all_read_or_none(tmp_path: Path) -> None:
    stored(tmp_path, "one")
    damaged("runhistory.json")(tmp_path)
    with pytest.raises(ValueError, match=r"runhistory\.json is not valid JSON"):
        curves(tmp_path)


@pytest.mark.parametrize("options", [{}, {"name": "mine", **INSTANCES}], ids=["unnamed", "inst"])
def test_a_search_is_taken_up_again_beside_its_memory(
    options: dict[str, Any], tmp_path: Path
) -> None:
    """Its memory is the folder that it writes to, in which its own run is of no use."""
    stored(tmp_path, "one"), stored(tmp_path, "two", best=0.8)

    def train(config: Configuration, instance: str = "", seed: int = 0) -> float:
        return abs(float(config["x"]) - 0.5) + (instance == "v")

    def plain(config: Configuration, seed: int = 0) -> float:
        return train(config)

    def search(n: int, folder: Path = tmp_path) -> list[Any]:
        run = Scenario(
            SPACE, n_trials=8, deterministic=True, output_directory=folder, seed=1, **options
        )
        function: Any = train if options else plain
        with quiet():
            made = AutoFacade(
                run, function, memory=tmp_path, callbacks=[StopAfter(n)], logging_level=False
            )
            made.optimize()
        kept = made.runhistory
        return [(dict(kept.get_config(key.config_id)), key.instance) for key in kept]

    first = search(4)
    assert len(first) == 4
    whole = search(8)
    assert whole[:4] == first and len(whole) == 8
    assert len(search(9)) == 8


# --- several seeds of a task -------------------------------------------------------------------


@pytest.mark.parametrize("door", ["memory", "search", "dataset"])
def test_the_seeds_of_a_scenario_may_be_named(door: str, tmp_path: Path) -> None:
    stored(tmp_path, "x"), stored(tmp_path, "x", seed=1, best=0.8)
    for source in (tmp_path / "x", str(tmp_path)):
        assert DOORS[door]({"churn": source}) == ("churn",)
    records = listed(read_memory({"churn": tmp_path / "x"}))
    assert [record.seed for record in records] == [0, 1]
    assert [len(record) for record in records] == [4, 4]


def test_a_seed_of_no_use_is_left_out_of_a_task_that_is_named(
    tmp_path: Path, log: pytest.LogCaptureFixture
) -> None:
    stored(tmp_path, "x"), stored(tmp_path, "x", seed=1, made=several([1.0, 2.0]))
    assert len(read_memory({"churn": tmp_path / "x"})) == 1
    assert "left out: The run on 'x' has several objectives" in log.text


def test_one_name_is_not_given_to_several_tasks(tmp_path: Path) -> None:
    stored(tmp_path, "x"), stored(tmp_path, "x", seed=1), stored(tmp_path, UNNAMED)
    told = "holds 3 run histories, of one without a name and 'x', but 'churn' is one task: give"
    with pytest.raises(ValueError, match=told):
        read_memory({"churn": tmp_path})


# --- the file itself ---------------------------------------------------------------------------


def test_a_run_may_be_given_by_its_file(tmp_path: Path) -> None:
    file = stored(tmp_path, "one") / "runhistory.json"
    assert ADAPTER.owns(str(file)) and not ADAPTER.owns(str(file.with_name("scenario.json")))
    for given in (file, str(file)):
        for door in DOORS.values():
            assert door(given) == ("one",)
        assert names_of(read_memory({"t": given})) == ("t",)
        AutoSampler(given)


# --- a run that is being written ---------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 3])
def test_a_file_that_smac_is_writing_is_read_again(
    n: int, tmp_path: Path, waits: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = stored(tmp_path, "one") / "runhistory.json"
    text = file.read_text()
    file.write_text(text[:100])

    def write(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == n:
            file.write_text(text)

    monkeypatch.setattr(trials, "sleep", write)
    (record,) = listed(read_memory(tmp_path))
    assert len(record) == 4 and len(waits) == n


def test_a_file_that_smac_begins_to_write_while_it_is_read_is_not_empty(
    tmp_path: Path, waits: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """SMAC's own reader, which opens it for itself, takes a broken file for an empty one."""
    file = stored(tmp_path, "one") / "runhistory.json"
    text, load = file.read_text(), RunHistory.load

    def late(self: RunHistory, filename: Any, configspace: Any) -> None:
        file.write_text("" if not waits else text)
        load(self, filename, configspace)
        file.write_text(text)

    monkeypatch.setattr(RunHistory, "load", late)
    (record,) = listed(read_memory(tmp_path))
    assert len(record) == 4 and len(waits) == 1


def test_all_damaged_files_together_are_waited_for_less_than_a_second(
    tmp_path: Path, waits: list[float], log: pytest.LogCaptureFixture
) -> None:
    stored(tmp_path, "one"), stored(tmp_path, "fine")
    for name in ("a", "b"):
        damaged("runhistory.json")(tmp_path / name)
    without_space(tmp_path)
    assert names_of(read_memory(tmp_path)) == ("fine", "one")
    assert len(waits) == len(trials._WAITS) > 2 and 0 < sum(waits) < 1
    assert sum("is left out" in r.getMessage() for r in log.records) == 3


def test_what_cannot_be_mended_by_waiting_is_not_waited_for(
    tmp_path: Path, waits: list[float]
) -> None:
    stored(tmp_path, "one"), without_space(tmp_path), stored(tmp_path, UNNAMED)
    assert names_of(read_memory(tmp_path)) == ("one",)
    assert not waits


def test_a_file_that_nobody_may_read_is_left_out(
    tmp_path: Path, log: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of another user, or removed since the folder was looked through."""
    stored(tmp_path, "one")
    folder, read = stored(tmp_path, "secret"), Path.read_text

    def refuse(self: Path, *args: Any, **options: Any) -> str:
        if self.parent == folder:
            raise PermissionError(13, "Permission denied", str(self))
        return read(self, *args, **options)

    monkeypatch.setattr(Path, "read_text", refuse)
    assert names_of(read_memory(tmp_path)) == ("one",)
    assert "cannot be read: Permission denied" in log.text
