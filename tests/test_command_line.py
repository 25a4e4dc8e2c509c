"""``python -m automl_plugins compare`` and ``replay``."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import optuna
import pandas as pd
import pytest

from automl_plugins.__main__ import main
from automl_plugins.replay import read_runs
from automl_plugins.statistics import compare

BOASF = Path(__file__).parent / "statistics" / "boasf_table_1.csv"


def runs_file(path: Path, methods: tuple[str, ...] = ("a", "b", "c"), tasks: int = 8) -> Path:
    rng = np.random.default_rng(0)
    rows = [
        {"table": f"t{t}", "method": m, "seed": 0, "trial": i, "loss": rng.random() + k}
        for t in range(tasks)
        for k, m in enumerate(methods)
        for i in range(1, 6)
    ]
    pd.DataFrame(rows).to_csv(path, index=False)
    return path


def test_compares_a_file_of_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = runs_file(tmp_path / "runs.csv")
    assert main(["compare", str(file), "--control", "a", "--budget", "2", "--budget", "5"]) == 0
    printed = capsys.readouterr().out
    expected = compare(pd.read_csv(file), control="a", budgets=[2, 5])
    assert printed.strip() == expected.to_text().strip()


@pytest.mark.parametrize(("form", "sign"), [("markdown", "|:--"), ("latex", "\\toprule")])
def test_formats(tmp_path: Path, capsys: pytest.CaptureFixture[str], form: str, sign: str) -> None:
    assert main(["compare", str(runs_file(tmp_path / "r.csv")), "--format", form]) == 0
    assert sign in capsys.readouterr().out


def test_compares_a_file_of_tasks_and_methods(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", str(BOASF), "--maximize"]) == 0
    assert "8 methods on 30 tasks" in capsys.readouterr().out


def test_several_files_of_runs_are_one_comparison(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = runs_file(tmp_path / "1.csv", ("a", "b"))
    second = runs_file(tmp_path / "2.csv", ("x", "y"))
    assert main(["compare", str(first), str(second)]) == 0
    assert "4 methods on 8 tasks" in capsys.readouterr().out


def test_compares_the_studies_of_a_storage(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    address = f"sqlite:///{tmp_path}/studies.db"
    for table in ("one", "two", "three"):
        for shift, method in enumerate(("good", "fair", "bad")):
            study = optuna.create_study(study_name=f"{table}/{method}/0", storage=address)
            for x in (0.5, 0.25):
                study.add_trial(optuna.create_trial(value=x + shift))
    study.ask()  # stays running
    assert main(["compare", address]) == 0
    printed = capsys.readouterr().out
    assert "3 methods on 3 tasks" in printed
    assert "Study 'three/bad/0': 1 running trial left out." in printed


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
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
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


def test_replays_a_config(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
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
def test_replay_refuses(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], old: str, new: str, message: str
) -> None:
    assert old in CONFIG
    config = write_config(tmp_path, CONFIG.replace(old, new, 1))
    assert main(["replay", str(config)]) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_replay_refuses_a_path_of_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = write_config(tmp_path, CONFIG)
    assert main(["replay", str(tmp_path / "repaly.toml")]) == 2
    assert f"did you mean {str(config)!r}" in capsys.readouterr().err
    assert main(["replay", str(tmp_path)]) == 2
    assert "is a folder" in capsys.readouterr().err


def test_module_runs() -> None:
    command = [sys.executable, "-m", "automl_plugins", "--help"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "compare" in done.stdout and "replay" in done.stdout
