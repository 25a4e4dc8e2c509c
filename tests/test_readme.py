"""The README is run: its snippets exactly as printed, its commands as far as their arguments."""

from __future__ import annotations

import argparse
import re
import runpy
import shlex
import sys
import tomllib
from pathlib import Path
from typing import Any

import optuna
import pandas as pd
import pytest
from snippets import blocks, branches, recorded, run_snippet, snippets

from automl_plugins.__main__ import main

ROOT = Path(__file__).resolve().parents[1]
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = blocks(TEXT)


SNIPPETS = snippets(TEXT)


@pytest.mark.parametrize("code", SNIPPETS, ids=range(len(SNIPPETS)))
@pytest.mark.filterwarnings("default")  # of the frameworks, as users see them
def test_a_snippet_runs_as_it_is_printed(
    code: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    run_snippet(code, tmp_path, monkeypatch)


def test_the_configuration_of_a_replay_runs(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (code,) = [code for language, code in BLOCKS if language == "toml"]
    monkeypatch.chdir(tmp_path)
    recorded(tmp_path)
    (tmp_path / "replay.toml").write_text(code, encoding="utf-8")
    assert "`automl-plugins replay replay.toml`" in TEXT
    assert not main(["replay", "replay.toml"])
    runs = pd.read_csv("replay.csv")
    assert set(runs.table) == {"mine/one", "mine/two", "mine/three"} and set(runs.seed) == {
        0,
        1,
        2,
    }
    assert (runs.groupby(["table", "seed"]).size() == tomllib.loads(code)["budget"]).all()


def test_the_command_that_compares_studies_runs(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (command,) = re.findall(r"`(automl-plugins compare [^`]*)`", TEXT)
    monkeypatch.chdir(tmp_path)
    for table in ("a", "b"):
        for method in ("TPE", "random"):
            study = optuna.create_study(
                storage="sqlite:///studies.db",
                study_name=f"{table}/{method}/0",
                sampler=optuna.samplers.RandomSampler(seed=0),
            )
            study.optimize(branches, n_trials=2)
    assert not main(shlex.split(command)[1:])
    assert "TPE" in capsys.readouterr().out


def test_shell_commands_name_what_there_is() -> None:
    shell = "\n".join(code for language, code in BLOCKS if not language)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = re.findall(r"pip install \"\.\[([^\]]*)\]\"", TEXT)
    assert extras
    for extra in extras:
        assert set(extra.split(",")) <= project["optional-dependencies"].keys()
    targets = re.findall(r"^make (\w+)", shell, re.M) + re.findall(r"`make (\w+)", TEXT)
    rules = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert len(targets) >= 3
    for target in targets:
        assert re.search(rf"^{target}:", rules, re.M), target


# --- commands of figures ----------------------------------------------------------------------

COMMANDS = sorted(
    {
        " ".join(command.split())
        for command in re.findall(
            r"`(?:OMP_NUM_THREADS=1 )?(?:python )?(?:examples/benchmarks/)?"
            r"((?:benchmark_\w+|compare_samplers|build_memory)\.py [^`]*)`",
            TEXT,
        )
    }
)


class Understood(Exception):
    """The arguments of a command are legal; it goes no further."""


@pytest.mark.parametrize("command", COMMANDS)
def test_the_command_of_a_figure_is_understood(
    command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    parse = argparse.ArgumentParser.parse_args

    def stop(parser: argparse.ArgumentParser, *args: Any) -> None:
        parse(parser, *args)
        raise Understood

    script, *arguments = shlex.split(command)
    path = ROOT / "examples" / "benchmarks" / script
    monkeypatch.setattr(argparse.ArgumentParser, "parse_args", stop)
    monkeypatch.setattr(sys, "argv", [str(path), *arguments])
    monkeypatch.syspath_prepend(str(path.parent))
    with pytest.raises(Understood):
        runpy.run_path(str(path), run_name="__main__")


def test_files_that_the_page_names_are_there() -> None:
    for name in re.findall(r"`((?:examples|tests|docs)/[\w./]+)`", TEXT):
        assert (ROOT / name).exists(), name
