"""Killed writers lose nothing but the run in flight, writers side by side nothing at all.

The quick form of examples/benchmarks/benchmark_store.py, which compares what the writers noted
with what the store has.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from automl_plugins.meta.store import MetaStore

SCRIPT = Path(__file__).resolve().parents[2] / "examples" / "benchmarks" / "benchmark_store.py"

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="the writers are forked")


def run(*arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, str(SCRIPT), *arguments, "--quick"],
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    if "PostgreSQL cannot be started" in done.stderr:
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stderr
    assert "10 writers killed" in done.stdout
    assert "800 stored, 0 lost" in done.stdout
    return done.stdout


@pytest.mark.slow
def test_writers_of_sqlite(tmp_path: Path) -> None:
    told = run("kills", "writers", "reading", "--folder", str(tmp_path))
    assert "MetaDataset(100 tasks, 10000 runs, 5 parameters)" in told
    path = tmp_path / "kills" / "store.db"
    with contextlib.closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    logs = path.parent.glob("*.log")
    assert sum(len(log.read_text().splitlines()) for log in logs) >= 3  # one of each group
    with MetaStore(path) as store:
        assert store.record("bowl", {"i": -1}, 0.5, search="writer 0", key="after")
    with MetaStore(tmp_path / "writers" / "store.db") as store:
        for record in store.records():
            assert [c["i"] for c in record.configurations] == list(range(100))


@pytest.mark.slow
def test_writers_of_postgresql() -> None:
    pytest.importorskip("psycopg", reason="psycopg is not installed")
    run("kills", "writers", "--postgres")
