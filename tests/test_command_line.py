"""The command line: ``compare``, ``replay`` and ``store``."""

from __future__ import annotations

import itertools
import subprocess
import sys
import time
import tomllib
from importlib import import_module
from pathlib import Path

import numpy as np
import optuna
import pandas as pd
import pytest
from ConfigSpace import ConfigurationSpace

import automl_plugins
from automl_plugins.__main__ import main
from automl_plugins.meta import MetaStore, TaskRecord
from automl_plugins.records.trial import Status
from automl_plugins.replay import Table, read_runs, replay
from automl_plugins.statistics import compare

Printed = pytest.CaptureFixture[str]
BOASF = Path(__file__).parent / "statistics" / "boasf_table_1.csv"


def runs_file(path: Path, methods: str = "abc", tasks: int = 8) -> Path:
    rng = np.random.default_rng(0)
    rows = [
        {"table": f"t{t}", "method": m, "seed": 0, "trial": i, "loss": rng.random() + k}
        for t in range(tasks)
        for k, m in enumerate(methods)
        for i in range(1, 6)
    ]
    pd.DataFrame(rows).to_csv(path, index=False)
    return path


def test_compares_a_file_of_runs(tmp_path: Path, capsys: Printed) -> None:
    file = runs_file(tmp_path / "runs.csv")
    assert main(["compare", str(file), "--control", "a", "--budget", "2", "--budget", "5"]) == 0
    printed = capsys.readouterr().out
    expected = compare(pd.read_csv(file), control="a", budgets=[2, 5])
    assert printed.strip() == expected.to_text().strip()


@pytest.mark.parametrize(
    ("arguments", "sign"),
    [
        (["RUNS", "--format", "markdown"], "|:--"),
        (["RUNS", "--format", "latex"], "\\toprule"),
        ([str(BOASF), "--maximize"], "8 methods on 30 tasks"),
        (["RUNS", "OTHERS"], "5 methods on 8 tasks"),
    ],
)
def test_files_are_compared(
    tmp_path: Path, capsys: Printed, arguments: list[str], sign: str
) -> None:
    files = {"RUNS": runs_file(tmp_path / "1.csv"), "OTHERS": runs_file(tmp_path / "2.csv", "xy")}
    assert main(["compare", *(str(files.get(a, a)) for a in arguments)]) == 0
    assert sign in capsys.readouterr().out


def test_the_studies_of_a_storage_are_compared(tmp_path: Path, capsys: Printed) -> None:
    address = f"sqlite:///{tmp_path}/studies.db"
    for table, (shift, method) in itertools.product("123", enumerate(("good", "fair", "bad"))):
        study = optuna.create_study(study_name=f"{table}/{method}/0", storage=address)
        for x in (0.5, 0.25):
            study.add_trial(optuna.create_trial(value=x + shift))
    study.ask()  # stays running
    assert main(["compare", address]) == 0
    printed = capsys.readouterr().out
    assert "3 methods on 3 tasks" in printed
    assert "Study '3/bad/0': 1 running trial left out." in printed


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nothing.csv"], "nothing.csv"),
        (["somewhere"], "There is no file 'somewhere'"),
        (["MODULE"], "no installed framework knows it"),
        (["RUNS", "--control", "z"], "'z' is none of the methods: a, b, c"),
        (["RUNS", "sqlite:///x.db"], "cannot be mixed"),
        (["RUNS", "WIDE"], "no columns table, method and trial"),
    ],
)
def test_compare_refuses(
    tmp_path: Path, capsys: Printed, arguments: list[str], message: str
) -> None:
    known = {"RUNS": str(runs_file(tmp_path / "runs.csv")), "WIDE": str(BOASF)}
    known["MODULE"] = __file__
    assert main(["compare", *(known.get(a, a) for a in arguments)]) == 2
    captured = capsys.readouterr()
    assert captured.out == "" and message in captured.err


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


def write_config(folder: Path, text: str = CONFIG) -> Path:
    rows = [
        {"data": d, "kernel": k, "C": c, "score": -abs(c - 1.0) - (k == "poly")}
        for d in ("x", "y")
        for k in ("rbf", "poly")
        for c in (0.1, 1.0, 10.0)
    ]
    pd.DataFrame(rows).to_csv(folder / "grid.csv", index=False)
    (folder / "replay.toml").write_text(text, encoding="utf-8")
    return folder / "replay.toml"


def test_replays_a_config(tmp_path: Path, capsys: Printed) -> None:
    config = write_config(tmp_path)
    assert main(["replay", str(config)]) == 0
    assert "2 methods on 2 tasks at 12 trials" in capsys.readouterr().out
    runs = read_runs(tmp_path / "out" / "runs.csv")
    assert set(runs["table"]) == {"grid/x", "grid/y"} and set(runs["method"]) == {"tpe", "random"}
    assert len(runs) == 2 * 2 * 2 * 12 and (runs["distance"] == 0).all()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("budget = 12", "budget = ", "is no TOML file"),
        ("budget = 12", "", "has no budget"),
        ("budget = 12", "budgets = 12", "unknown entries budgets"),
        ("[methods.tpe]", "[method.tpe]", "unknown entries method"),
        (
            'adapter = "optuna"\noptimizer = "T',
            'adapter = "ax"\noptimizer = "T',
            "no adapter 'ax'",
        ),
        ("TPESampler", "TPSampler", "No sampler 'TPSampler'"),
        ('loss = "score"', 'loss = "error"', "[tables.grid]: The frame has no column 'error'"),
        ('loss = "score"', "", "[tables.grid] needs file and loss"),
        ('file = "grid.csv"', 'file = "none.csv"', "none.csv"),
    ],
)
def test_replay_refuses(tmp_path: Path, capsys: Printed, old: str, new: str, message: str) -> None:
    assert old in CONFIG
    config = write_config(tmp_path, CONFIG.replace(old, new, 1))
    assert main(["replay", str(config)]) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_replay_refuses_a_path_of_nothing(tmp_path: Path, capsys: Printed) -> None:
    config = write_config(tmp_path, CONFIG)
    assert main(["replay", str(tmp_path / "repaly.toml")]) == 2
    assert f"did you mean {str(config)!r}" in capsys.readouterr().err
    assert main(["replay", str(tmp_path)]) == 2
    assert "is a folder" in capsys.readouterr().err


def test_module_runs() -> None:
    command = [sys.executable, "-m", "automl_plugins", "--help"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "compare" in done.stdout and "replay" in done.stdout


# --- store ----------------------------------------------------------------------------------


@pytest.fixture
def path(tmp_path: Path) -> str:
    """A store of two tasks: iris in two searches, wine in one."""
    file = tmp_path / "runs.db"
    status = np.array([Status.COMPLETE, Status.FAILED, Status.COMPLETE, Status.PRUNED])
    budget = np.array([np.nan, np.nan, np.nan, 3.0])
    losses = np.array([0.25, np.nan, 0.125, 0.0625])
    runs = [{"x": i, "kernel": "rbf"} for i in range(4)]
    first = TaskRecord(
        "iris", runs, losses, status=status, budget=budget, framework="optuna", seed=3
    )
    with MetaStore(file) as store:
        store.add(first, search="one")
        store.add(TaskRecord("iris", [{"x": 9}], np.array([0.5])), search="two")
        store.add(TaskRecord("wine", [{"x": 1}], np.array([2.0])), search="one")
        store.describe("iris", meta_features={"NumberOfClasses": 3.0}, tags={"source": "uci"})
    return str(file)


def printed(capsys: Printed, *arguments: str) -> list[list[str]]:
    """The words of the lines that a command prints."""
    capsys.readouterr()
    assert main(arguments) == 0
    return [line.split() for line in capsys.readouterr().out.splitlines()]


def test_tasks_and_searches_are_listed(path: str, capsys: Printed) -> None:
    assert printed(capsys, "store", "tasks", path) == [
        ["task", "runs", "searches", "meta-features", "tags"],
        ["iris", "5", "2", "1", "source=uci"],
        ["wine", "1", "1", "0"],
    ]
    assert printed(capsys, "store", "searches", f"sqlite:///{path}") == [
        ["task", "search", "framework", "seed", "runs"],
        ["iris", "one", "optuna", "3", "4"],
        ["iris", "two", "1"],
        ["wine", "one", "1"],
    ]


def test_a_task_is_shown_with_its_best_configurations(path: str, capsys: Printed) -> None:
    assert main(["store", "show", path, "iris"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "tags           source=uci" in lines
    assert "search         optuna: 4 rows: 2 complete, 1 pruned, 1 failed" in lines
    losses = [line for line in lines if line.startswith("loss")]
    assert len(losses) == 3  # the pruned and the failed run are no results
    assert losses[0].startswith("loss 0.125") and "'x': 2" in losses[0]
    assert [float(line.split()[1]) for line in losses] == [0.125, 0.25, 0.5]


def test_what_is_exported_can_be_imported(path: str, tmp_path: Path, capsys: Printed) -> None:
    file, copy = str(tmp_path / "iris.json.xz"), str(tmp_path / "copy.db")
    assert main(["store", "export", path, file, "--task", "iris"]) == 0
    assert printed(capsys, "store", "import", copy, file) == [["5", "new", "runs."]]
    assert printed(capsys, "store", "import", copy, file) == [["0", "new", "runs."]]
    with MetaStore(copy) as store:
        assert [task.name for task in store.tasks()] == ["iris"]
        assert [len(record) for record in store.records()] == [4, 1]


@pytest.mark.parametrize(
    ("options", "n", "left"),
    [
        (["--task", "iris"], 5, [("wine", "one")]),
        (["--search", "one"], 5, [("iris", "two")]),
        (["--search", "one", "--task", "wine"], 1, [("iris", "one"), ("iris", "two")]),
    ],
)
def test_deleting_has_to_be_confirmed(
    path: str,
    capsys: Printed,
    options: list[str],
    n: int,
    left: list[tuple[str, str]],
) -> None:
    assert main(["store", "delete", path, *options]) == 1
    assert capsys.readouterr().out.startswith(f"{n} runs of the ")
    with MetaStore(path) as store:
        assert len(store.searches()) == 3
    assert main(["store", "delete", path, *options, "--yes"]) == 0
    assert f"Deleted {n} runs" in capsys.readouterr().out
    with MetaStore(path) as store:
        assert [(s.task, s.search) for s in store.searches()] == left


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["tasks", "MISSING"], "There is no store"),
        (["searches", "sqlite:///MISSING"], "There is no store"),
        (["show", "STORE", "titanic"], "has no task 'titanic'; it has iris, wine."),
        (["export", "STORE", "x.json", "--task", "titanic"], "has no task 'titanic'"),
        (["export", "STORE", "x.csv"], "must end in .json.xz"),
        (["import", "MISSING", "nothing.json"], "There is no file 'nothing.json'"),
        (["delete", "STORE"], "Name what to delete"),
        (["delete", "STORE", "--task", "titanic"], "has no task 'titanic'"),
        (["delete", "STORE", "--search", "z", "--yes"], "has no search 'z'"),
        (["tasks", "FOREIGN"], "is no SQLite file"),
        (["tasks", "mysql://host/db"], "not supported"),
    ],
)
def test_store_refuses(
    path: str,
    tmp_path: Path,
    capsys: Printed,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    missing = tmp_path / "missing.db"
    (tmp_path / "foreign.db").write_text("no database, but a text that is long enough")
    for name, value in {
        "STORE": path,
        "MISSING": str(missing),
        "FOREIGN": str(tmp_path / "foreign.db"),
    }.items():
        arguments = [argument.replace(name, value) for argument in arguments]
    assert main(["store", *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == "" and message in captured.err
    assert not missing.exists()


def test_configurations_at_the_highest_budget_are_the_results(
    tmp_path: Path, capsys: Printed
) -> None:
    file = str(tmp_path / "budgets.db")
    budget = np.array([1.0, 9.0, 9.0])
    with MetaStore(file) as store:
        record = TaskRecord("t", [{"x": i} for i in range(3)], np.arange(3.0), budget=budget)
        store.add(record, search="s")
    lines = printed(capsys, "store", "show", file, "t")
    assert [line[1] for line in lines if line[0] == "loss"] == ["1", "2"]


# --- the command itself -------------------------------------------------------------------


def test_version(capsys: Printed) -> None:
    with pytest.raises(SystemExit, match="0"):
        main(["--version"])
    assert capsys.readouterr().out == f"automl_plugins {automl_plugins.__version__}\n"


def test_the_console_script_is_the_command_line() -> None:
    root = Path(__file__).resolve().parents[1]
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    module, _, function = project["scripts"]["automl-plugins"].partition(":")
    assert getattr(import_module(module), function) is main


# --- progress -----------------------------------------------------------------------------


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
