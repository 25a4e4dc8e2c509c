"""Killed writers lose nothing but the run in flight, writers side by side nothing at all.

The quick form of examples/benchmarks/benchmark_store.py, checked here once more with other means.
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
    if "no PostgreSQL server" in done.stderr:
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("stores")
    told = run("kills", "writers", "reading", "--folder", str(folder))
    assert "10 writers killed" in told
    assert "800 stored, 0 lost" in told
    assert "MetaDataset(100 tasks, 10000 runs, 5 parameters)" in told
    return folder


def test_killed_writers(folder: Path) -> None:
    path = folder / "kills" / "store.db"
    with contextlib.closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        rows = connection.execute(
            "SELECT s.name, count(*), min(CAST(r.key AS INT)), max(CAST(r.key AS INT)),"
            " max(r.loss) FROM meta_runs r JOIN meta_searches s ON s.id = r.search_id GROUP BY 1"
        ).fetchall()
    stored = {name: n for name, n, *_ in rows}
    assert all(first == 0 and last == loss == n - 1 for _, n, first, last, loss in rows)
    logs = path.parent.glob("*.log")
    noted = {f"writer {log.stem}": len(log.read_text().splitlines()) for log in logs}
    assert sum(noted.values()) >= 3  # one of each group at least
    assert stored.keys() <= noted.keys()
    for name, n in noted.items():
        assert stored.get(name, 0) - n in (0, 1)
    with MetaStore(path) as store:
        assert store.record("bowl", {"i": -1}, 0.5, search="writer 0", key="after")


def test_writers_side_by_side(folder: Path) -> None:
    with MetaStore(folder / "writers" / "store.db") as store:
        assert [info.n_runs for info in store.searches()] == [100] * 8
        for record in store.records():
            assert [c["i"] for c in record.configurations] == list(range(100))


def test_writers_of_postgresql() -> None:
    pytest.importorskip("psycopg", reason="psycopg is not installed")
    told = run("kills", "writers", "--postgres")
    assert "10 writers killed" in told
    assert "800 stored, 0 lost" in told
