"""The command line: ``compare``, ``replay``, ``store``, in a folder with a file of each kind."""

from __future__ import annotations

import argparse
import io
import itertools
import os
import re
import shutil
import subprocess
import sys
import textwrap
import time
import tomllib
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import pandas as pd
import pytest
from ConfigSpace import ConfigurationSpace

import automl_plugins
from automl_plugins.__main__ import _EXAMPLE, _make_parser, main
from automl_plugins.meta import MetaStore, TaskRecord
from automl_plugins.records.trial import Status
from automl_plugins.replay import Table, read_runs, replay
from automl_plugins.replay.config import read_config
from automl_plugins.statistics import compare

Printed = pytest.CaptureFixture[str]

CONFIG = """
budget = 12
seeds = [0, 1]
path = "out/runs.csv"

[tables.grid]
file = "grid.csv"
group = "data"
loss = "score"
maximize = true
grid = ["C"]

[methods.tpe]
adapter = "optuna"
optimizer = "TPESampler"
n_startup_trials = 5

[methods.random]
adapter = "optuna"
optimizer = "RandomSampler"
"""


def write_runs(path: str, methods: str) -> None:
    rng = np.random.default_rng(0)
    rows = [
        {"table": f"t{t}", "method": m, "seed": 0, "trial": i, "loss": rng.random() + k}
        for t in range(8)
        for k, m in enumerate(methods)
        for i in range(1, 6)
    ]
    pd.DataFrame(rows).to_csv(path, index=False)


def write_store(path: str) -> None:
    """Two tasks: iris in two searches, wine in one."""
    status = np.array([Status.COMPLETE, Status.FAILED, Status.COMPLETE, Status.PRUNED])
    budget, losses = np.array([np.nan, np.nan, np.nan, 3.0]), np.array([0.25, np.nan, 0.125, 0.06])
    runs = [{"x": i, "kernel": "rbf"} for i in range(4)]
    first = TaskRecord(
        "iris", runs, losses, status=status, budget=budget, framework="optuna", seed=3
    )
    with MetaStore(path) as store:
        store.add(first, search="one")
        store.add(TaskRecord("iris", [{"x": 9}], np.array([0.5])), search="two")
        store.add(TaskRecord("wine", [{"x": 1}], np.array([2.0])), search="one")
        store.describe("iris", meta_features={"NumberOfClasses": 3.0}, tags={"source": "uci"})


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("files")
    write_runs(f"{folder}/runs.csv", "abc")
    write_runs(f"{folder}/others.csv", "xy")
    shutil.copy(Path(__file__).parent / "statistics" / "boasf_table_1.csv", folder / "wide.csv")
    rows = [
        {"data": d, "kernel": k, "C": c, "score": -abs(c - 1.0) - (k == "poly")}
        for d, k, c in itertools.product("xy", ("rbf", "poly"), (0.1, 1.0, 10.0))
    ]
    pd.DataFrame(rows).to_csv(folder / "grid.csv", index=False)
    (folder / "replay.toml").write_text(CONFIG)
    (folder / "empty.csv").touch()
    (folder / "header.csv").write_text("task,a,b\n")
    (folder / "semicolons.csv").write_text("task;a;b\n1;0.5;0.25\n")
    (folder / "binary.csv").write_bytes(bytes(range(256)))
    (folder / "foreign.db").write_text("no database, but a text that is long enough")
    (folder / "other.json").write_text('{"precious": 1}')
    write_store(f"{folder}/store.db")
    return folder


@pytest.fixture(autouse=True)
def folder(files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory: a copy of the files."""
    shutil.copytree(files, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def printed(capsys: Printed, command: str, code: int = 0) -> str:
    """What a command prints."""
    capsys.readouterr()
    assert main(command.split()) == code
    return capsys.readouterr().out


# --- compare and replay -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "sign"),
    [
        ("runs.csv --format markdown", "|:--"),
        ("runs.csv --format latex", "\\toprule"),
        ("wide.csv --maximize", "8 methods on 30 tasks"),
        ("runs.csv others.csv", "5 methods on 8 tasks"),
    ],
)
def test_files_are_compared(capsys: Printed, command: str, sign: str) -> None:
    assert sign in printed(capsys, f"compare {command}")


def test_names_are_read_as_they_are_written(capsys: Printed) -> None:
    rows = ["1,NA,0,1,.1", "1,TPE #2,0,1,.3", "01,NA,1,1,.9", "01,TPE #2,1,1,.2"]
    Path("names.csv").write_text("\n".join(["# runs", "table,method,seed,trial,loss", *rows]))
    found = printed(capsys, "compare names.csv")
    assert "2 methods on 2 tasks" in found and "TPE #2" in found and "NA " in found
    Path("names.csv").write_text("# scores\ntask,a,b #2\nNA,1,2\n#1,3,1\n01,2,1\n1,3,4\n")
    found = printed(capsys, "compare names.csv")
    assert "2 methods on 4 tasks" in found and "b #2" in found


def test_a_sign_of_comments_within_a_recorded_table_is_text() -> None:
    values = [f"{i / 40},{('rbf', 'rbf#2')[i % 2]},{i / 80}" for i in range(40)]
    Path("signs.csv").write_text("\n".join(["# recorded", "x,kernel,loss", *values]))
    Path("signs.toml").write_text(
        "budget = 8\n[tables.m]\nfile = 'signs.csv'\nloss = 'loss'\n"
        "[methods.R]\nadapter = 'optuna'\noptimizer = 'RandomSampler'\n"
    )
    assert (replay(**read_config(Path("signs.toml")))["status"] == "complete").all()


def test_the_comparison_is_that_of_the_library(capsys: Printed) -> None:
    printed_text = printed(capsys, "compare runs.csv --control a --budget 2 --budget 5")
    expected = compare(pd.read_csv("runs.csv"), control="a", budgets=[2, 5])
    assert printed_text.strip() == expected.to_text().strip()


def test_the_studies_of_a_storage_are_compared(capsys: Printed) -> None:
    address = "sqlite:///studies.db"
    for table, (shift, method) in itertools.product("123", enumerate(("good", "fair", "bad"))):
        study = optuna.create_study(study_name=f"{table}/{method}/0", storage=address)
        for x in (0.5, 0.25):
            study.add_trial(optuna.create_trial(value=x + shift))
    study.ask()  # stays running
    printed_text = printed(capsys, f"compare {address}")
    assert "3 methods on 3 tasks" in printed_text
    assert "Study '3/bad/0': 1 running trial left out." in printed_text


def test_a_config_is_replayed(capsys: Printed, folder: Path) -> None:
    assert "2 methods on 2 tasks at 12 trials" in printed(capsys, "replay replay.toml")
    runs = read_runs(folder / "out" / "runs.csv")
    assert set(runs["table"]) == {"grid/x", "grid/y"} and set(runs["method"]) == {"tpe", "random"}
    assert len(runs) == 2 * 2 * 2 * 12 and (runs["distance"] == 0).all()


def test_a_replay_is_compared_in_its_unit_and_at_its_budget(capsys: Printed, folder: Path) -> None:
    rows = [f"{d},{c},{-c},{1 + c}" for d in "xy" for c in range(9)]
    (folder / "grid.csv").write_text("\n".join(["data,C,score,time", *rows]))
    text = CONFIG.replace('loss = "score"', 'loss = "score"\nseconds = "time"')
    text = text.replace("budget = 12", 'budget = 40\nunit = "seconds"')
    (folder / "replay.toml").write_text(text)
    found = printed(capsys, "replay replay.toml")
    assert "2 methods on 2 tasks at 40 seconds" in found
    again = printed(capsys, "compare out/runs.csv --unit seconds --budget 40").splitlines()
    assert set(again) <= set(found.splitlines())  # a file has no notes on its tables


def test_a_group_is_called_as_it_is_written(folder: Path) -> None:
    names = ["NA", "None", "null", "nan", "01", "1", "1.0"]
    rows = [f"{name},{c},{c - 1}" for name in names for c in range(3)]
    (folder / "grid.csv").write_text("\n".join(["data,C,score", *rows]))
    runs = replay(**read_config(folder / "replay.toml"))
    assert set(runs["table"]) == {f"grid/{name}" for name in names}


def test_columns_of_a_curve_are_named_by_step(folder: Path) -> None:
    curves = 'curves = { 9 = "s9", 10 = "s10" }'  # as texts, 10 is before 9
    rows = [f"x,{c},{c},{c},{c}" for c in range(12)]
    (folder / "grid.csv").write_text("\n".join(["data,C,score,s9,s10", *rows]))
    (folder / "replay.toml").write_text(CONFIG.replace("maximize = true", curves))
    assert len(replay(**read_config(folder / "replay.toml"))) == 2 * 2 * 12


def test_rows_of_no_group_are_refused(capsys: Printed, folder: Path) -> None:
    (folder / "grid.csv").write_text("data,C,score\nx,1,2\n,2,3\n,3,4\n")
    assert main(["replay", "replay.toml"]) == 2
    assert "[tables.grid]: the column 'data' is empty in 2 rows" in capsys.readouterr().err


def test_paths_of_a_replay_may_begin_at_home(
    capsys: Printed, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = folder / "home"
    home.mkdir()
    for variable in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(variable, str(home))
    (folder / "grid.csv").rename(home / "grid.csv")
    text = CONFIG.replace("grid.csv", "~/grid.csv").replace("out/", "~/out/")
    (home / "replay.toml").write_text(text)
    printed(capsys, "replay ~/replay.toml")
    assert len(printed(capsys, "compare ~/out/runs.csv")) > 0
    assert not Path("~").exists()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("budget = 12", "budget = ", "is not a TOML file"),
        ("budget = 12", "", "has no budget: add one, such as budget = 60"),
        ("budget = 12", "budgets = 12", "unknown entries budgets"),
        ("[methods.tpe]", "[method.tpe]", "unknown entries method"),
        ('"optuna"\noptimizer = "T', '"ax"\noptimizer = "T', "no adapter 'ax'"),
        ("TPESampler", "TPSampler", "No sampler 'TPSampler'"),
        ('loss = "score"', 'loss = "error"', "[tables.grid]: The frame has no column 'error'"),
        ('loss = "score"', "", "[tables.grid] needs file and loss"),
        ('file = "grid.csv"', 'file = "none.csv"', "none.csv"),
        ('file = "grid.csv"', 'file = "header.csv"', "[tables.grid]: header.csv has no rows."),
        ('"data"', '"date"', "group names the column 'date'; the file has data, kernel, C, score"),
        ('file = "grid.csv"', "file = 3", "[tables.grid]: file takes the name of a CSV file"),
        ('group = "data"', "group = [1]", "group takes the name of a column as text; got <list"),
        ('loss = "score"', "loss = 3", "loss takes the name of a column as text; got 3"),
        ("maximize = true", 'maximize = "no"', "maximize must be True or False, got 'no'"),
        ('grid = ["C"]', "grid = 3", "[tables.grid]: grid takes names of columns; got 3"),
        ('grid = ["C"]', "log = 3", "[tables.grid]: log takes 'auto' or names of columns; got 3"),
        ('grid = ["C"]', "parameters = 3", "parameters takes names of columns; got 3"),
        ('grid = ["C"]', "none = 3", "none takes the text that stands for None; got 3"),
        ("maximize = true", "curves = 3", "curves takes names of columns by step; got 3"),
        ("maximize", "maximise", "no argument maximise; it takes file, group, loss, "),
        ("maximize = true", 'space = "s.json"', "no argument space (space: it is inferred)"),
        ("maximize = true", 'name = "x"', "no argument name (name: the section names it)"),
        ("n_startup_trials = 5", 'name = "x"', "[methods.tpe]: name cannot be given"),
        ("n_startup_trials", "n_startup", "[methods.tpe]: tpe does not take these arguments"),
        ('path = "out/runs.csv"', "path = 3", "path takes the name of a CSV file as text; got 3"),
        ("seeds = [0, 1]", 'seeds = "01"', "seeds takes a list of integers; got '01'"),
        ("seeds = [0, 1]", "seeds = [1.5]", "seed must be an integer >= 0, got 1.5"),
        (
            "budget = 12",
            'budget = 12\noverhead = "no"',
            "overhead must be True or False, got 'no'",
        ),
    ],
)
def test_replay_refuses(capsys: Printed, folder: Path, old: str, new: str, message: str) -> None:
    assert old in CONFIG
    (folder / "replay.toml").write_text(CONFIG.replace(old, new, 1))
    assert main(["replay", "replay.toml"]) == 2
    assert message in capsys.readouterr().err
    assert not (folder / "out").exists()


def test_a_method_that_fails_is_named(
    capsys: Printed, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*args: Any) -> None:
        raise ValueError("out of ideas")

    monkeypatch.setattr(optuna.samplers.TPESampler, "sample_independent", fail)
    assert main(["replay", "replay.toml"]) == 2
    told = "replay: out of ideas (Method 'tpe' failed on table 'grid/x' with seed 0.)"
    assert told in capsys.readouterr().err


# --- store ----------------------------------------------------------------------------------


def test_tasks_and_searches_are_listed(capsys: Printed) -> None:
    lines = printed(capsys, "store tasks store.db").splitlines()
    assert [line.split() for line in lines] == [
        ["task", "runs", "searches", "meta-features", "tags"],
        ["iris", "5", "2", "1", "source=uci"],
        ["wine", "1", "1", "0"],
    ]
    lines = printed(capsys, "store searches sqlite:///store.db").splitlines()
    assert [line.split() for line in lines] == [
        ["task", "search", "framework", "seed", "runs"],
        ["iris", "one", "optuna", "3", "4"],
        ["iris", "two", "1"],
        ["wine", "one", "1"],
    ]


def losses_shown(lines: list[str]) -> list[float]:
    return [float(line.split()[1]) for line in lines if line.startswith("loss")]


def test_a_task_is_shown_with_its_best_configurations(capsys: Printed) -> None:
    lines = printed(capsys, "store show store.db iris").splitlines()
    assert "tags           source=uci" in lines
    assert "search         optuna: 4 rows: 2 complete, 1 pruned, 1 failed" in lines
    assert losses_shown(lines) == [0.125, 0.25, 0.5]  # pruned and failed runs are not results
    assert any(line.startswith("loss 0.125") and "'x': 2" in line for line in lines)
    budget, rows = np.array([1.0, 9.0, 9.0]), [{"x": i} for i in range(3)]
    with MetaStore("budgets.db") as store:  # the highest budget has the results
        store.add(TaskRecord("t", rows, np.arange(3.0), budget=budget), search="s")
        assert losses_shown(printed(capsys, "store show budgets.db t").splitlines()) == [1.0, 2.0]
        # Whichever search has it: a loss at another budget is another quantity.
        store.add(TaskRecord("t", [{"x": 5}], np.array([0.5]), budget=np.array([3.0])), search="u")
        assert losses_shown(printed(capsys, "store show budgets.db t").splitlines()) == [1.0, 2.0]
        store.add(TaskRecord("t", [{"x": 6}], np.array([7.0])), search="v")
        assert losses_shown(printed(capsys, "store show budgets.db t").splitlines()) == [7.0]
        store.describe("new")
    assert losses_shown(printed(capsys, "store show budgets.db new").splitlines()) == []


def test_a_terminal_does_not_obey_names(capsys: Printed) -> None:
    name = "a\n\x1b[2J\x9b31m"
    with MetaStore("names.db") as store:
        record = TaskRecord(name, [{"x": name}], np.array([1.0]), framework=name, tags={"t": name})
        store.add(record, search=name)
    for command in ("store tasks names.db", "store searches names.db"):
        lines = printed(capsys, command).splitlines()
        assert len(lines) == 2 and "a \\x1b[2J\\x9b31m" in lines[1]
    capsys.readouterr()
    assert main(["store", "show", "names.db", name]) == 0
    assert main(["store", "show", "names.db", "b"]) == 2
    found = capsys.readouterr()
    assert len(found.out.splitlines()) == 4 and len(found.err.splitlines()) == 1
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", found.out + found.err)


def test_a_task_is_shown_by_what_is_printed_of_its_name(capsys: Printed) -> None:
    with MetaStore("names.db") as store:
        for name in ("a\nb", "c\nd", "c  d", "-x"):
            store.add(TaskRecord(name, [{"x": 1}], np.array([1.0])))
    assert main(["store", "show", "names.db", "a b"]) == 0
    assert main(["store", "show", "names.db", "--", "-x"]) == 0
    assert main(["store", "show", "names.db", "c d"]) == 2  # which of the two?
    assert "has no task 'c d'" in capsys.readouterr().err
    # What is deleted has to be named exactly.
    assert main(["store", "delete", "names.db", "--task", "a b", "--yes"]) == 2
    capsys.readouterr()
    assert main(["store", "delete", "names.db", "--task", "a b"]) == 2
    assert r"has no task 'a b'; it has 'a\nb', " in capsys.readouterr().err


def test_names_that_a_terminal_cannot_write_are_escaped(
    capsys: Printed, monkeypatch: pytest.MonkeyPatch
) -> None:
    with MetaStore("names.db") as store:
        store.add(TaskRecord("é☃", [{"ü": "ü"}], np.array([1.0])), search="ß")
    output = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", output)
    for command in ("tasks names.db", "searches names.db", "show names.db é☃"):
        assert main(["store", *command.split()]) == 0
    output.seek(0)
    written = output.read()
    assert written.count("\\xe9\\u2603") == 3 and written.count("\\xdf") == 1
    assert capsys.readouterr().err == ""


def test_what_is_exported_can_be_imported(
    capsys: Printed, monkeypatch: pytest.MonkeyPatch
) -> None:
    printed(capsys, "store export store.db iris.json.xz --task iris")
    # The command has read the file to check it: the store does not read it again.
    monkeypatch.setattr("automl_plugins.meta.store.metastore.read_searches", None)
    for n in (5, 0):
        assert printed(capsys, "store import copy.db iris.json.xz") == f"{n} new runs.\n"
    with MetaStore("copy.db") as store:
        assert [task.name for task in store.tasks()] == ["iris"]
        assert [len(record) for record in store.records()] == [4, 1]


@pytest.mark.parametrize(
    ("options", "runs", "left"),
    [
        ("--task iris", "5 runs", [("wine", "one")]),
        ("--search one", "5 runs", [("iris", "two")]),
        ("--search one --task wine", "1 run", [("iris", "one"), ("iris", "two")]),
    ],
)
def test_deleting_has_to_be_confirmed(
    capsys: Printed, options: str, runs: str, left: list[tuple[str, str]]
) -> None:
    command = f"store delete store.db {options}"
    assert printed(capsys, command, 1).startswith(f"{runs} of the ")
    with MetaStore("store.db") as store:
        assert len(store.searches()) == 3
    assert f"Deleted {runs} of" in printed(capsys, f"{command} --yes")
    with MetaStore("store.db") as store:
        assert [(s.task, s.search) for s in store.searches()] == left


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ("--search zz", "search 'zz'"),
        ("--search two --task wine", "search 'two' in the task 'wine'"),
    ],
)
def test_an_unknown_search_is_answered_with_the_command_that_lists_them(
    capsys: Printed, options: str, what: str
) -> None:
    for confirmed in ("", " --yes"):
        assert main(f"store delete store.db {options}{confirmed}".split()) == 2
        message = capsys.readouterr().err
        assert f"has no {what}; `automl-plugins store searches` lists those" in message
        assert "searches()" not in message
    with MetaStore("store.db") as store, pytest.raises(ValueError, match=r"; see searches\(\)\.$"):
        store.delete_search("zz")
    assert "two" in printed(capsys, "store searches store.db")


# --- what is refused ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("compare nothing.csv", "nothing.csv"),
        ("compare somewhere", "There is no file 'somewhere'"),
        ("compare replay.toml", "no installed framework knows it"),
        ("compare runs.csv --control z", "'z' is not one of the methods: a, b, c"),
        ("compare runs.csv sqlite:///x.db", "cannot be mixed"),
        (
            "compare runs.csv wide.csv",
            "trial and loss, which wide.csv does not have",
        ),
        ("compare empty.csv", "empty.csv is no table of comma-separated values"),
        ("compare binary.csv", "binary.csv is no table of comma-separated values"),
        ("compare header.csv", "header.csv has no rows"),
        ("compare semicolons.csv", "comma-separated values: its one column is 'task;a;b'."),
        ("replay repaly.toml", "did you mean 'replay.toml'"),
        ("replay .", "is a folder"),
        ("store tasks missing.db", "There is no store"),
        ("store tasks empty.csv", "has no store in it"),
        ("store import new.db .", ". is a folder: name a file in it."),
        ("store tasks mem.db", "There is no store 'mem.db'.\n"),  # no name is like that
        ("store import new.db runs.csv", "is not a file of recorded runs"),
        ("store searches sqlite:///missing.db", "There is no store"),
        ("store show store.db titanic", "has no task 'titanic'; it has iris, wine."),
        ("store export store.db x.json --task titanic", "has no task 'titanic'"),
        ("store export store.db x.csv", "must end in .json.xz"),
        ("store export store.db other.json", "exists, and no export has written it"),
        ("store import missing.db nothing.json", "There is no file 'nothing.json'"),
        ("store delete store.db", "Name what to delete"),
        ("store delete store.db --task titanic", "has no task 'titanic'"),
        ("store delete store.db --search z --yes", "has no search 'z'"),
        ("store delete store.db --search z", "has no search 'z'"),
        ("store delete store.db --task wine --search two", "has no search 'two'"),
        ("store tasks foreign.db", "is not an SQLite file"),
        ("store tasks mysql://host/db", "not supported"),
    ],
)
def test_what_cannot_be_done_is_one_sentence(
    capsys: Printed, folder: Path, command: str, message: str
) -> None:
    before = sorted(folder.iterdir())
    assert main(command.split()) == 2
    captured = capsys.readouterr()
    assert captured.out == "" and message in captured.err
    assert sorted(folder.iterdir()) == before


# --- the command itself -------------------------------------------------------------------


def test_the_command_and_the_module_are_the_same(capsys: Printed) -> None:
    with pytest.raises(SystemExit, match="0"):
        main(["--version"])
    assert capsys.readouterr().out == f"automl_plugins {automl_plugins.__version__}\n"
    root = Path(__file__).resolve().parents[1]
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    module, _, function = project["scripts"]["automl-plugins"].partition(":")
    assert getattr(import_module(module), function) is main
    command = [sys.executable, "-m", "automl_plugins", "--help"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "compare" in done.stdout and "replay" in done.stdout


@pytest.mark.parametrize("command", ["store tasks store.db", "store --help"])
def test_a_reader_that_has_seen_enough_is_no_error(
    capsys: Printed, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    """However little there is: closing, as the interpreter does in the end, writes it again."""
    reading, writing = os.pipe()
    os.close(reading)
    with open(writing, "w") as output:
        monkeypatch.setattr(sys, "stdout", output)
        assert main(command.split()) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device of Linux")
def test_a_full_disk_is_one_line(capsys: Printed, monkeypatch: pytest.MonkeyPatch) -> None:
    with open("/dev/full", "w") as output:
        monkeypatch.setattr(sys, "stdout", output)
        assert main(["store", "tasks", "store.db"]) == 2
    assert re.fullmatch(r"automl-plugins store: .*No space left.*\n", capsys.readouterr().err)


def test_an_interrupted_command_says_so(capsys: Printed, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("automl_plugins.replay.runs.replay", interrupt)
    assert main(["replay", "replay.toml"]) == 130
    assert capsys.readouterr().err == "automl-plugins replay: interrupted.\n"


def test_every_argument_is_described() -> None:
    parsers, described = [_make_parser()], 0
    while parsers:
        for action in parsers.pop()._actions:
            if isinstance(action, argparse._SubParsersAction):
                parsers += action.choices.values()
            else:
                assert action.help, action
                described += 1
    assert described > 20


def test_the_example_of_the_help_is_legal(tmp_path: Path) -> None:
    text = textwrap.dedent(_EXAMPLE.partition(":\n\n")[2])
    assert set(tomllib.loads(text)["methods"]) == {"TPE"}
    rows = [{"dataset": d, "x": x, "loss": x % 7} for d in ("a", "b") for x in range(60)]
    pd.DataFrame(rows).to_csv(tmp_path / "runs.csv", index=False)
    path = tmp_path / "replay.toml"
    path.write_text(text.replace("budget = 60", "budget = 3"), encoding="utf-8")
    runs = replay(**read_config(path))
    assert set(runs.seed) == {0, 1, 2} and set(runs.table) == {"mine/a", "mine/b"}


def test_progress_on_a_pipe_is_lines_now_and_then(
    capsys: Printed, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = Table("t", ConfigurationSpace({"x": (0, 3)}), [{"x": i} for i in range(4)], range(4))
    clock = itertools.count(0.0, 4.0)  # a search takes four seconds
    monkeypatch.setattr(time, "monotonic", lambda: next(clock))
    method = {"first": lambda *_: {"x": 0}}
    quiet = replay(method, table, budget=1, seed=range(7), progress=False)
    assert capsys.readouterr().err == ""
    clock = itertools.count(0.0, 4.0)
    frame = replay(method, table, budget=1, seed=range(7), progress="lines")
    pd.testing.assert_frame_equal(frame, quiet)
    assert capsys.readouterr().err.splitlines() == [
        "0 of 7 searches, 0 s",
        "3 of 7 searches, 12 s",
        "6 of 7 searches, 24 s",
        "7 of 7 searches, 28 s",
    ]
