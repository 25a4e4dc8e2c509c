"""The README and the pages of the docs site: they run as printed, and are true to the code."""

from __future__ import annotations

import argparse
import ast
import importlib
import importlib.util
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
from architecture import ROOT, modules
from snippets import blocks, branches, recorded, run_snippet, snippets

from automl_plugins.__main__ import main
from automl_plugins.meta import bundled
from automl_plugins.meta.bundled_memories import LEARNERS

DOCS = ROOT / "docs"
PAGES = sorted(path.relative_to(ROOT).as_posix() for path in DOCS.rglob("*.md"))
CONFIG = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
WRITTEN = ["README.md", *(page for page in PAGES if not page.startswith("docs/api/"))]


def read(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def test_every_page_is_in_the_navigation_once() -> None:
    (navigation,) = re.findall(r"^nav:\n((?: .*\n)+)", CONFIG, re.M)
    (excluded,) = re.findall(r"^exclude_docs: \|\n((?: .*\n)+)", CONFIG, re.M)
    kept_out = tuple(f"docs/{line}" for line in excluded.split() if line.endswith("/"))
    shown = [page for page in PAGES if not page.startswith(kept_out)]
    named = re.findall(r"\S+\.md$", navigation, re.M)
    assert sorted(f"docs/{page}" for page in named) == shown


# What several pages have is run once.
SNIPPETS = {code: f"{page}-{i}" for page in WRITTEN for i, code in enumerate(snippets(read(page)))}


@pytest.mark.parametrize("code", SNIPPETS, ids=SNIPPETS.values())
@pytest.mark.filterwarnings("default")  # of the frameworks, as users see them
def test_a_snippet_runs_as_it_is_printed(
    code: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    run_snippet(code, tmp_path, monkeypatch)


def shown_as(package: str, name: str) -> str:
    """Where mkdocstrings finds a public name: a module of the same name would be shown instead."""
    path = f"{package}.{name}"
    if isinstance(getattr(importlib.import_module(package), name), str):
        return name  # a heading: mkdocstrings would print the docstring of Python's str
    return path if importlib.util.find_spec(path) is None else f"{path}.{name}"


def test_every_public_name_is_on_a_page_of_the_api() -> None:
    pages = [read(page) for page in PAGES if page.startswith("docs/api/")]
    assert len(pages) >= 10
    for page in pages:
        (package,) = re.findall(r"^`(automl_plugins\S*)`$", page, re.M)
        public = set(importlib.import_module(package).__all__) - {"ADAPTER"}
        named = re.findall(r"^(?:::: |## )(\S+)$", page, re.M)
        assert sorted(named) == sorted(shown_as(package, name) for name in public)


def test_messages_of_the_questions_are_those_of_the_code() -> None:
    texts = "\n".join(
        node.value
        for path in modules().values()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    )
    messages = re.findall(r"^## `(.*)`$", read("docs/faq.md"), re.M)
    assert len(messages) > 10
    for message in messages:
        for part in message.split("..."):
            assert part.strip(" []'") in texts, part


def test_the_first_figures_of_the_readme_are_those_of_the_page() -> None:
    page, readme = read("docs/evidence/public.md"), " ".join(read("README.md").split())
    (row,) = re.findall(r"^\| \*\*all tables not tuned on\*\* (.*)$", page, re.M)
    blocks, trials, never, alone, _ = re.findall(r"\d+", row)
    assert f"is after {trials} trials as good as Optuna's TPE after 100" in readme
    assert f"(median of {blocks} comparisons" in readme
    assert f"{alone} without the recorded runs" in readme and f"in {never} % it never is" in readme


@pytest.mark.parametrize("path", sorted(DOCS.rglob("*.svg")), ids=lambda path: path.name)
def test_a_picture_is_legible_on_light_and_on_dark_pages(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert "prefers-color-scheme:dark" in text and "fill:currentColor" in text
    assert not re.search(r"(fill|stroke): ?(#000000|#ffffff|black|white)", text)


def test_the_picture_of_the_packages_has_all_of_them() -> None:
    drawn = set(re.findall(r'bold">(\w+)(?:/|\.py)</text>', read("docs/packages.svg")))
    packages = {path.parent.name for path in (ROOT / "automl_plugins").glob("*/__init__.py")}
    assert drawn == packages | {"adapters", "frameworks"}


def test_files_that_the_pages_name_are_there() -> None:
    for page in WRITTEN:
        for name in re.findall(r"`(?:python )?((?:examples|tests)/[\w./]+)", read(page)):
            assert (ROOT / name).exists(), (page, name)


def test_what_it_withstands_names_commands_and_tests_that_are_there() -> None:
    rules = (ROOT / "Makefile").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (?!what \||---)(.*) \|$", read("docs/reliability.md"), re.M)
    assert len(rows) >= 5
    for row in rows:
        *_, command, test = row.split(" | ")
        targets = re.findall(r"make (\w+)", command)
        assert targets, row
        for target in targets:
            assert re.search(rf"^{target}:", rules, re.M), row
        named = re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", test)
        assert named, row
        for file, function in named:
            code = (ROOT / file).read_text(encoding="utf-8")
            assert not function or re.search(rf"^\s*(?:def|class) {function}\b", code, re.M), row
            if function:
                marked = rf"^@pytest\.mark\.slow\n(?:[@ )].*\n)*def {function}\b"
                ruled_out = "test" if re.search(marked, code, re.M) else "slow"
                assert ruled_out not in targets, row


# --- commands -----------------------------------------------------------------------------------


def test_the_configuration_of_a_replay_runs(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = read("docs/replay.md")
    (code,) = [code for language, code in blocks(page) if language == "toml"]
    assert code.count("budget = 60") == 1
    code = code.replace("budget = 60", "budget = 12")
    monkeypatch.chdir(tmp_path)
    recorded(tmp_path)
    (tmp_path / "replay.toml").write_text(code, encoding="utf-8")
    assert "`automl-plugins replay replay.toml`" in page
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
    (command,) = re.findall(r"`(automl-plugins compare [^`]*)`", read("docs/replay.md"))
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
    text = "\n".join(map(read, WRITTEN))
    shell = "\n".join(code for language, code in blocks(text) if not language)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = re.findall(r"pip install (?:-e )?\"\.\[([^\]]*)\]\"", text)
    assert extras
    for extra in extras:
        assert set(extra.split(",")) <= project["optional-dependencies"].keys()
    targets = re.findall(r"^make (\w+)", shell, re.M) + re.findall(r"`make (\w+)", text)
    rules = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert len(targets) >= 3
    for target in targets:
        assert re.search(rf"^{target}:", rules, re.M), target


def test_the_table_of_memories_is_that_of_the_package() -> None:
    rows = [
        f"| `{name}` | {len(memory.tasks)} | {len(next(iter(memory.records())).losses)} |"
        f" {', '.join(f'`{parameter}`' for parameter in sorted(memory.space))} |"
        for name in LEARNERS
        for memory in [bundled(name)]
    ]
    assert "\n".join(rows) in read("docs/memory.md")


# --- commands of figures ----------------------------------------------------------------------

COMMANDS = sorted(
    {
        " ".join(command.split())
        for command in re.findall(
            r"`(?:OMP_NUM_THREADS=1 )?(?:python )?(?:examples/benchmarks/)?"
            r"((?:benchmark_\w+|build_memory)\.py [^`]*)`",
            "\n".join(map(read, WRITTEN)),
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
