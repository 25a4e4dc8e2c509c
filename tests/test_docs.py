"""The pages of the docs site: in the navigation, run as printed, true to the code."""

from __future__ import annotations

import ast
import importlib
import re
from pathlib import Path

import pytest
from architecture import ROOT, modules
from snippets import run_snippet, snippets

DOCS = ROOT / "docs"
PAGES = sorted(path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md"))
CONFIG = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
HAND_WRITTEN = [page for page in PAGES if not page.startswith("api/")]


def read(page: str) -> str:
    return (DOCS / page).read_text(encoding="utf-8")


def test_every_page_is_in_the_navigation_once() -> None:
    (navigation,) = re.findall(r"^nav:\n((?: .*\n)+)", CONFIG, re.M)
    (excluded,) = re.findall(r"^exclude_docs: \|\n((?: .*\n)+)", CONFIG, re.M)
    kept_out = tuple(line for line in excluded.split() if line.endswith("/"))
    shown = [page for page in PAGES if not page.startswith(kept_out)]
    assert sorted(re.findall(r"\S+\.md$", navigation, re.M)) == shown


SNIPPETS = [
    pytest.param(code, id=f"{page}-{i}")
    for page in HAND_WRITTEN
    for i, code in enumerate(snippets(read(page)))
]


@pytest.mark.parametrize("code", SNIPPETS)
@pytest.mark.filterwarnings("default")  # of the frameworks, as users see them
def test_a_snippet_runs_as_it_is_printed(
    code: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    run_snippet(code, tmp_path, monkeypatch)


def test_every_public_name_is_on_a_page_of_the_api() -> None:
    named = {name for page in PAGES for name in re.findall(r"^::: (\S+)$", read(page), re.M)}
    packages = {name.rpartition(".")[0] for name in named}
    assert len(packages) == 10
    for package in packages:
        public = set(importlib.import_module(package).__all__) - {"ADAPTER"}
        assert {f"{package}.{name}" for name in public} == {
            name for name in named if name.rpartition(".")[0] == package
        }


def test_messages_of_the_questions_are_those_of_the_code() -> None:
    texts = "\n".join(
        node.value
        for path in modules().values()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    )
    messages = re.findall(r"^## `(.*)`$", read("faq.md"), re.M)
    assert len(messages) > 10
    for message in messages:
        for part in message.split("..."):
            assert part.strip(" []'") in texts, part


@pytest.mark.parametrize("path", sorted(DOCS.rglob("*.svg")), ids=lambda path: path.name)
def test_a_picture_is_legible_on_light_and_on_dark_pages(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert "prefers-color-scheme:dark" in text and "fill:currentColor" in text
    assert not re.search(r"(fill|stroke): ?(#000000|#ffffff|black|white)", text)


def test_the_picture_of_the_rooms_has_all_of_them() -> None:
    drawn = set(re.findall(r'bold">(\w+)(?:/|\.py)</text>', read("rooms.svg")))
    rooms = {path.parent.name for path in (ROOT / "automl_plugins").glob("*/__init__.py")}
    assert drawn == rooms | {"adapters", "frameworks"}


def test_files_that_the_pages_name_are_there() -> None:
    for page in HAND_WRITTEN:
        for name in re.findall(r"`(?:python )?((?:examples|tests)/[\w./]+)", read(page)):
            assert (ROOT / name).exists(), (page, name)
