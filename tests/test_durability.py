"""What is written is on the disk before anything relies on it; writers take turns."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import sqlalchemy as sa
from known_runs import write_records
from sqlalchemy.dialects import postgresql

from automl_plugins.meta import TaskRecord
from automl_plugins.meta.store import MetaStore, schema
from automl_plugins.replay.csv_files import Journal


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, bytes]]:
    """What each call of fsync found: the file (its inode) and its content on the way."""
    calls: list[tuple[int, bytes]] = []
    real: Callable[[int], None] = os.fsync

    def fsync(descriptor: int) -> None:
        real(descriptor)
        status = os.fstat(descriptor)
        content = Path(f"/proc/self/fd/{descriptor}").read_bytes()
        calls.append((status.st_ino, content))

    monkeypatch.setattr(os, "fsync", fsync)
    return calls


needs_proc = pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs /proc")


@needs_proc
def test_rows_of_a_replay_are_on_the_disk_before_its_journal_counts_them(
    tmp_path: Path, synced: list[tuple[int, bytes]]
) -> None:
    path = tmp_path / "runs.csv"
    journal = Journal(path, {"budget": 3}, {})
    log = Path(f"{path}.journal")
    assert [inode for inode, _ in synced] == [log.stat().st_ino]
    synced.clear()
    journal.write(("t", "m", 0), pd.DataFrame({"trial": [1], "loss": [0.5]}))
    (first, rows), (second, lines) = synced
    assert (first, second) == (path.stat().st_ino, log.stat().st_ino)
    assert rows == path.read_bytes() and lines == log.read_bytes()
    assert b'"seed": 0' in lines


@needs_proc
def test_an_export_is_on_the_disk_before_it_gets_its_name(
    tmp_path: Path, synced: list[tuple[int, bytes]]
) -> None:
    path = tmp_path / "runs.json"
    write_records(path, [TaskRecord("iris", [{"x": 1}], np.array([0.5]))])
    assert synced == [(path.stat().st_ino, path.read_bytes())]


def test_a_commit_of_the_store_waits_for_the_disk(tmp_path: Path) -> None:
    with MetaStore(tmp_path / "runs.db") as store:
        level = store._database.read(lambda c: c.exec_driver_sql("PRAGMA synchronous").scalar())
        mode = store._database.read(lambda c: c.exec_driver_sql("PRAGMA journal_mode").scalar())
    assert (level, mode) == (2, "wal")  # FULL: a commit survives a power failure


# --- one after the other --------------------------------------------------------------------


class Announced:
    """A lock that calls a function whenever somebody asks for it."""

    def __init__(self, ask: Callable[[], None]) -> None:
        self._lock, self._ask = threading.Lock(), ask

    def __enter__(self) -> None:
        self._ask()
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()


def test_threads_make_one_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with MetaStore(tmp_path / "runs.db") as store:
        database = store._database
        database.close()
        database.forget()
        here: set[int] = set()
        changed, made, make = threading.Condition(), [], database._make_engine

        def arrive() -> None:
            with changed:
                here.add(threading.get_ident())
                changed.notify_all()

        def make_slowly() -> Any:
            arrive()
            made.append(make())
            with changed:  # until the other thread comes here too, or waits for the lock
                assert changed.wait_for(lambda: len(here) == 2, timeout=600)
            return made[-1]

        monkeypatch.setattr(database, "_lock", Announced(arrive))
        monkeypatch.setattr(database, "_make_engine", make_slowly)
        threads = [threading.Thread(target=store.tasks) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(made) == 1


class Listening:
    """A connection to PostgreSQL that only notes what it is asked."""

    dialect = postgresql.dialect()  # type: ignore[no-untyped-call]

    def __init__(self) -> None:
        self.said: list[str] = []

    def execute(self, statement: Any, *_: Any) -> Any:
        self.said.append(" ".join(str(statement.compile(dialect=self.dialect)).split()))
        return type("Result", (), {"scalar": lambda self: 7})()


def test_makers_of_the_tables_take_turns_on_postgresql(monkeypatch: pytest.MonkeyPatch) -> None:
    connection = Listening()
    order: list[str] = []

    def version(asking: Listening) -> int:
        order.append(f"version after {len(asking.said)}")
        return schema.VERSION

    monkeypatch.setattr(schema, "_version", version)
    schema._make_tables(connection)  # type: ignore[arg-type]
    assert order == ["version after 1"]  # looked at when the others have finished
    assert "pg_advisory_xact_lock" in connection.said[0]


def test_a_transaction_that_writes_locks_before_it_reads(tmp_path: Path) -> None:
    seen: list[str] = []
    with MetaStore(tmp_path / "runs.db") as store:
        store.tasks()
        engine = store._database._engine
        assert engine is not None

        @sa.event.listens_for(engine, "before_cursor_execute")
        def note(_c: Any, _cursor: Any, statement: str, *_: Any) -> None:
            seen.append(statement)

        store.record("t", {"x": 1}, 0.5)
    begins = [statement.strip() for statement in seen if statement.startswith("BEGIN")]
    assert begins == ["BEGIN IMMEDIATE"], seen
