"""The breaks of ``make breaks`` fit the code, so that who moves a line moves its break along."""

from __future__ import annotations

import itertools
import multiprocessing
import os
import re
import time
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import forkserver
from pathlib import Path
from typing import Any

import pytest
from breaks import ROOT, Break, exit_code, load

BREAKS = load()


@pytest.mark.parametrize("one", BREAKS, ids=lambda one: str(one.name))
def test_a_break_fits_and_names_tests_that_are_there(one: Break) -> None:
    assert one.apply(ROOT) != (ROOT / one.file).read_text(encoding="utf-8")
    for test in one.tests:
        file, _, name = test.partition("::")
        assert re.search(
            rf"^ *def {name.split('::')[-1]}\(", (ROOT / file).read_text(encoding="utf-8"), re.M
        ), f"{one.name}: there is no {test}"


def broken(**changes: str) -> Break:
    given = {"file": "a.py", "original": "1", "broken": "2"} | changes
    return Break(name="b", tests=("t.py::test",), **given)


def test_a_break_that_does_not_fit_says_so(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x = 1\ny = 11\n")
    with pytest.raises(ValueError, match=r"b: there is no file z\.py"):
        broken(file="z.py").apply(tmp_path)
    for original in ("1", "3"):
        with pytest.raises(ValueError, match=r"occurs [03] times in a\.py"):
            broken(original=original).apply(tmp_path)
    with pytest.raises(ValueError, match="differ from the broken one"):
        broken(original="y", broken="y").apply(tmp_path)
    assert broken(original="x = 1").apply(tmp_path) == "2\ny = 11\n"


def test_a_table_of_breaks_is_checked(tmp_path: Path) -> None:
    entry = '[b]\nfile = "a.py"\noriginal = "1"\nbroken = "2"\ntests = ["t.py::test"]\n'
    (tmp_path / "one.toml").write_text(entry)
    assert load(tmp_path) == [broken()]
    (tmp_path / "two.toml").write_text(entry)
    with pytest.raises(ValueError, match=r"two\.toml: there are two breaks named b"):
        load(tmp_path)
    (tmp_path / "two.toml").write_text('[c]\nfile = "a.py"\n')
    with pytest.raises(ValueError, match=r"two\.toml, c: needs exactly broken, file"):
        load(tmp_path)


def test_exit_codes_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def read_late(file: int) -> Any:
        time.sleep(next(seconds))  # another thread could read the code before this one does
        return read(file)

    seconds = itertools.cycle([0.03, 0.0, 0.01])
    read = forkserver.read_signed
    monkeypatch.setattr(forkserver, "read_signed", read_late)

    def run(code: int) -> int | None:
        context = multiprocessing.get_context("forkserver")
        return exit_code(context.Process(target=os._exit, args=(code,)), 60)

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(run, range(40))) == list(range(40))
