"""Breaks: one-line mistakes that the tests must notice, tried one by one on a copy of the project.

    python tests/breaks/breaks.py [PART OF A NAME ...] [-j 2] [--passed]

Each table of a TOML file in this folder is a break:

    [name-of-the-break]
    file = "automl_plugins/streams.py"
    original = "the text that is replaced; it occurs once in the file"
    broken = "what replaces it"
    tests = ["tests/test_streams.py::test_that_must_fail"]

Every test that is named must pass on the copy as it is, and fail on the broken copy. Where all
have just passed on the project, ``--passed`` runs one of each file on the copy as it is. Each
break has a process of its own, forked from one that has imported the libraries.
"""

from __future__ import annotations

import argparse
import gc
import multiprocessing
import os
import queue
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import tomllib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
_KEYS = {"file", "original", "broken", "tests"}
_COPIED = ("adapters", "automl_plugins", "examples", "tests", "pyproject.toml", "README.md")
_SECONDS = 1800  # time limit of a break's tests, on a busy machine
_PYTEST = ("-q", "--tb=short", "-rfE", "-p", "no:cacheprovider")
_OUTCOME = re.compile(r"^(FAILED|ERROR) (\S+)", re.MULTILINE)

# What takes most of the time of a short test is to import these.
_LIBRARIES = ["hyperopt", "hypothesis", "lightgbm", "optuna", "pandas", "sklearn.ensemble", "smac"]
_FORKED = multiprocessing.get_context("forkserver")
# To start a process reads the exit codes of those that have ended, each of which can be read once:
# never in two threads at a time.
_EXIT_CODES = threading.Lock()


@dataclass(frozen=True)
class Break:
    """A mistake, and the tests that must notice it.

    Attributes:
        name: Name of the mistake.
        file: Path of the file from the root of the project.
        original: Text that occurs once in the file.
        broken: What replaces it.
        tests: Node ids of the tests that must fail, without parameters.
    """

    name: str
    file: str
    original: str
    broken: str
    tests: tuple[str, ...]

    def apply(self, root: Path) -> str:
        """The broken text of the file below ``root``; nothing is written.

        Raises:
            ValueError: If the break does not fit the file.
        """
        path = root / self.file
        if not path.is_file():
            raise ValueError(f"{self.name}: there is no file {self.file}; where is it now?")
        text = path.read_text(encoding="utf-8")
        n = text.count(self.original)
        if n != 1 or self.original == self.broken:
            raise ValueError(
                f"{self.name}: its original text occurs {n} times in {self.file} and must occur"
                " once, and differ from the broken one. Adapt the break to the code."
            )
        return text.replace(self.original, self.broken)


def load(folder: Path = Path(__file__).parent) -> list[Break]:
    """All breaks, sorted by TOML file and place in it.

    Raises:
        ValueError: For a key that is missing or unknown, or a repeated name.
    """
    found: dict[str, Break] = {}
    for path in sorted(folder.glob("*.toml")):
        for name, table in tomllib.loads(path.read_text(encoding="utf-8")).items():
            if table.keys() != _KEYS or not table["tests"]:
                raise ValueError(f"{path.name}, {name}: needs exactly {', '.join(sorted(_KEYS))}.")
            if name in found:
                raise ValueError(f"{path.name}: there are two breaks named {name}.")
            found[name] = Break(name, **{**table, "tests": tuple(table["tests"])})
    return list(found.values())


def copy_project(target: Path) -> Path:
    """Copy what the tests need to ``target``, with the adapters where they are imported from."""
    target.mkdir()
    skipped = shutil.ignore_patterns("__pycache__", "evidence", "*.egg-info")
    for name in _COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, target / name, ignore=skipped)
        else:
            shutil.copy2(source, target / name)
    # Else an editable installation would import the adapters of the original.
    (target / "automl_plugins" / "adapters").symlink_to(Path("..") / "adapters")
    return target


def _environment(root: Path) -> dict[str, str]:
    return {"PYTHONPATH": str(root), "OMP_NUM_THREADS": "1"}


def _run(arguments: Sequence[str], root: Path) -> subprocess.CompletedProcess[str]:
    # Nothing is broken yet: this writes the bytecode that the broken copies use.
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=root,
        env=os.environ | _environment(root) | {"PYTHONDONTWRITEBYTECODE": ""},
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        check=False,
    )


def check_copy(root: Path) -> None:
    """Check that Python imports the copy, not what is installed.

    Raises:
        RuntimeError: If it does not.
    """
    code = (
        "import automl_plugins, automl_plugins.adapters as a; print(automl_plugins.__file__);"
        " print(a.__file__)"
    )
    found = _run(["-c", code], root).stdout.split()
    if len(found) != 2 or not all(Path(f).is_relative_to(root) for f in found):
        raise RuntimeError(f"Python does not import the copy in {root} but {found}.")


def _run_broken(tests: Sequence[str], root: Path, report: Path) -> None:
    """Run tests on a copy in this process, which ends with their exit code."""
    # Also for the processes that the tests start. Bytecode of a broken file could be used later.
    os.environ |= _environment(root) | {"PYTHONDONTWRITEBYTECODE": "1"}
    sys.dont_write_bytecode = True
    gc.freeze()  # at its end pytest collects garbage: not among all that the libraries hold
    sys.path.insert(0, str(root))
    os.chdir(root)
    with report.open("w", encoding="utf-8") as file:
        for stream in (1, 2):
            os.dup2(file.fileno(), stream)
    # Of several tests each has to fail; of one the first failure is enough.
    options = ["--maxfail=1"] if len(tests) == 1 else []
    options += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]  # of imported plugins
    # Of pytest's own folders, whose iterators the garbage collector closes at any time.
    options += ["-W", "ignore:unclosed scandir iterator:ResourceWarning"]
    code = pytest.main([*_PYTEST, *options, *tests])
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # at once: a library's thread may crash while the process ends


def exit_code(process: BaseProcess, seconds: float) -> int | None:
    """Start a process and wait for its end; its exit code, or None after ``seconds``."""
    with _EXIT_CODES:
        process.start()
    wait([process.sentinel], seconds)
    with _EXIT_CODES:
        return process.exitcode


def verdict(one: Break, root: Path) -> str:
    """Run a break's tests; empty if all notice it, else a report. The copy is restored."""
    path, report = root / one.file, root / "report.txt"
    before, stat = path.read_text(encoding="utf-8"), path.stat()
    path.write_text(one.apply(root), encoding="utf-8")
    process = _FORKED.Process(target=_run_broken, args=(one.tests, root, report))
    try:
        code = exit_code(process, _SECONDS)
        if code is None:
            process.kill()
            return f"its tests hang for {_SECONDS} s"
    finally:
        path.write_text(before, encoding="utf-8")
        os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    output = report.read_text(encoding="utf-8", errors="replace") if report.exists() else ""
    if code not in (0, 1):
        return f"its tests cannot be run (exit code {code}):\n{output}"
    failed = {name.split("[")[0] for _, name in _OUTCOME.findall(output)}
    passed = [test for test in one.tests if test not in failed]
    return f"NOT NOTICED by {', '.join(passed)}\n{output}" if passed else ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("names", nargs="*", help="parts of the names of breaks; all by default")
    parser.add_argument("-j", "--jobs", type=int, default=2, help="breaks at a time")
    parser.add_argument("--passed", action="store_true", help="all tests have just passed")
    args = parser.parse_args()
    breaks = [b for b in load() if not args.names or any(part in b.name for part in args.names)]
    if not breaks:
        print(f"No break has a name with {' or '.join(args.names)}.")
        return 1
    os.environ["OMP_NUM_THREADS"] = "1"  # read by the libraries when they are imported
    _FORKED.set_forkserver_preload(["__main__", *_LIBRARIES])
    with tempfile.TemporaryDirectory() as folder:
        copies: queue.SimpleQueue[Path] = queue.SimpleQueue()
        first = copy_project(Path(folder).resolve() / "0")
        check_copy(first)
        for one in breaks:
            one.apply(first)
        print(
            f"{len(breaks)} breaks fit. Running their tests on the code as it is ...", flush=True
        )
        tests = sorted({test for one in breaks for test in one.tests})
        if args.passed:
            tests = list({test.partition("::")[0]: test for test in reversed(tests)}.values())
        whole = _run(["-m", "pytest", *_PYTEST, "-n", str(args.jobs), *tests], first)
        if whole.returncode != 0:
            print(whole.stdout, whole.stderr, "The tests must pass before anything is broken.")
            return 1
        copies.put(first)
        for k in range(1, args.jobs):
            # With the bytecode, which takes longer to write than most tests take.
            copies.put(shutil.copytree(first, first.with_name(str(k)), symlinks=True))

        def judge(one: Break) -> str:
            copy, start = copies.get(), time.monotonic()
            try:
                report = verdict(one, copy)
            finally:
                copies.put(copy)
            seconds = time.monotonic() - start
            print(f"{seconds:5.1f} s  {one.name}: {report or 'noticed'}", flush=True)
            return report

        with ThreadPoolExecutor(args.jobs) as pool:
            n = sum(bool(report) for report in pool.map(judge, breaks))
    print(f"{len(breaks) - n} of {len(breaks)} breaks are noticed.")
    return min(n, 1)


if __name__ == "__main__":
    sys.exit(main())
