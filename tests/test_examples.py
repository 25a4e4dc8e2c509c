"""Two examples and the classifiers run; smoke.py runs all."""

from __future__ import annotations

import importlib
import os
import re
import runpy
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = ROOT / "examples"


def run(folder: Path, script: str, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / script), *arguments],
        cwd=folder,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_quickstart(tmp_path: Path) -> None:
    output = run(tmp_path, "quickstart.py", "--n-trials", "4", "--seeds", "1")
    assert re.fullmatch(r"(\w+Sampler: mean log loss 0\.\d+ \(less is better\)\n){2}", output)


@pytest.mark.slow
def test_choosing_an_algorithm(tmp_path: Path) -> None:
    output = run(tmp_path, "boasf_optuna.py", "--seconds", "1")
    assert "4 arms, " in output and "Best accuracy 0." in output
    assert re.search(r"Round 1 \(\d+\.\d s\): ", output)
    assert (tmp_path / "build" / "boasf_optuna.html").stat().st_size > 0


def test_examples_are_short_and_stand_alone() -> None:
    files = sorted(EXAMPLES.glob("*.py"))
    names = "|".join(file.stem for file in files)
    for file in files:
        text = file.read_text(encoding="utf-8")
        assert len(text.splitlines()) < 60, file
        assert not re.search(rf"^(from|import) ({names})\b", text, re.MULTILINE), file
        assert f"python examples/{file.name} [" in text, file


def test_everything_is_in_the_smoke_test() -> None:
    smoke = runpy.run_path(str(ROOT / "tests" / "smoke.py"))
    for commands, files in (
        (smoke["PLAIN"], EXAMPLES.glob("*.py")),
        (smoke["BENCHMARKS"], (EXAMPLES / "benchmarks").glob("benchmark_*.py")),
    ):
        named = {command.split()[0] for command in commands}
        assert {file.name for file in files} <= named


# --- benchmarks -----------------------------------------------------------------------------


@pytest.fixture
def classifiers(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(EXAMPLES / "benchmarks"))
    return importlib.import_module("classifiers")


def test_every_classifier_of_the_paper_is_scored_without_warnings(classifiers: ModuleType) -> None:
    space = classifiers.search_space()
    assert len(classifiers.CLASSIFIERS) == 16 and len(space) == 53
    space.seed(0)
    drawn = {config["classifier"]: dict(config) for config in space.sample_configuration(200)}
    assert drawn.keys() == classifiers.CLASSIFIERS.keys()
    assert drawn["gaussian_nb"] == {"classifier": "gaussian_nb"}
    task = classifiers.Task("breast_cancer")
    for config in drawn.values():
        score = task.score(config)
        assert 0.3 < score <= 1.0 and score == task.score(config), config


def test_a_task_keeps_a_stratified_quarter(classifiers: ModuleType) -> None:
    task = classifiers.Task("digits")
    assert sorted([*task.train, *task.test]) == list(range(1797)) and len(task.test) == 450
    assert set(np.bincount(task.y[task.test]).tolist()) <= {43, 44, 45, 46}
    good, bad, too_many = (
        {"classifier": "k_nearest_neighbors", "k_nearest_neighbors:n_neighbors": n}
        for n in (3, 29, 1500)
    )
    assert task.score(good) > task.score(bad) > 0.8 and task.test_score(good) > 0.95
    with pytest.raises(ValueError, match="n_neighbors"):
        task.score(too_many)
