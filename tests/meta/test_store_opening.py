"""What a store opens, what it brings up to date, and what it refuses without touching it."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import optuna
import pytest
import sqlalchemy as sa

from automl_plugins.meta import TaskRecord
from automl_plugins.meta.store import MetaStore, StoreError, connection


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A closed store with some runs."""
    path = tmp_path / "runs.db"
    configurations = [{"x": i, "text": "some words that fill the pages"} for i in range(2000)]
    with MetaStore(path) as store:
        store.add(TaskRecord("iris", configurations, np.arange(2000.0)))
    return path


def execute(path: Path, *statements: str) -> None:
    with contextlib.closing(sqlite3.connect(path)) as plain:
        for statement in statements:
            plain.execute(statement)
        plain.commit()


def test_addresses_of_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    whole = f"sqlite:///{tmp_path}/runs.db"
    for address in ("runs.db", Path("runs.db"), "sqlite:///runs.db", whole):
        with MetaStore(address) as store:
            assert store.url == whole
            store.record("t", {"x": 1}, 0.5, search="s", key=1)
    with MetaStore("runs.db") as store:
        assert len(store.records()[0]) == 1
        monkeypatch.chdir("/")
        store.close()
        assert store.record("t", {"x": 2}, 0.5)  # the file is where it was
    assert [found.name for found in tmp_path.iterdir()] == ["runs.db"]


@pytest.mark.parametrize(
    ("url", "error", "told"),
    [
        ("mysql://u@h/d", ValueError, "mysql is not supported"),
        ("sqlite://", ValueError, "keeps its runs in a file"),
        ("sqlite:///:memory:", ValueError, "MetaDataset.from_records"),
        ("postgresql://h:port/d", ValueError, "cannot be read"),
        ("://", ValueError, "cannot be read"),
        (".", StoreError, "is a folder"),
        ("a/runs.db", StoreError, "there is no folder"),
    ],
)
def test_addresses_of_nothing(
    url: str, error: type[Exception], told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(error, match=told):
        MetaStore(url)
    assert not any(tmp_path.iterdir())
    with pytest.raises(ValueError, match="timeout must be a positive number"):
        MetaStore(url, timeout=0)


def test_no_password_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("psycopg", reason="psycopg is not installed")
    with pytest.raises(StoreError) as caught:
        MetaStore("postgresql://user:secret@/db?host=/nowhere&connect_timeout=1", timeout=1)
    assert "secret" not in str(caught.value) and "user:***@" in str(caught.value)
    monkeypatch.setattr("automl_plugins.meta.store.metastore.open_store", lambda _: None)
    store = MetaStore("postgresql://user:secret@host/db")
    assert repr(store) == "MetaStore('postgresql+psycopg://user:***@host/db')"


def test_without_sqlalchemy() -> None:
    code = (
        "import sys; import automl_plugins.meta.store, automl_plugins.meta.files\n"
        "assert 'sqlalchemy' not in sys.modules\n"
        "sys.modules['sqlalchemy'] = None\n"
        "try: automl_plugins.meta.store.MetaStore('runs.db')\n"
        "except ModuleNotFoundError as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "pip install automl_plugins[store]" in done.stdout


# --- what is no store ---------------------------------------------------------------------


def spoil(start: int, content: bytes) -> Callable[[Path], object]:
    def overwrite(path: Path) -> None:
        data = path.read_bytes()
        assert len(data) > 100_000
        path.write_bytes(data[:start] + content + data[start + len(content) :])

    return overwrite


def replace_by(*tables: str) -> Callable[[Path], object]:
    """Another database in place of the store."""

    def replace(path: Path) -> None:
        path.unlink()
        execute(path, *(f"CREATE TABLE {table} (id)" for table in tables))

    return replace


def replace_by_studies(path: Path) -> None:
    path.unlink()
    storage = optuna.storages.RDBStorage(f"sqlite:///{path}")
    optuna.create_study(storage=storage)
    storage.engine.dispose()


def set_version(version: int) -> Callable[[Path], object]:
    return lambda path: execute(path, f"UPDATE meta_schema SET version = {version}")


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda p: p.write_text("kernel,loss\nrbf,0.1\n"), "no SQLite file, or it is damaged"),
        (spoil(0, b"\0" * 16), "no SQLite file, or it is damaged"),
        (spoil(100, b"\xa5" * 4000), r"is damaged .* it was left as it is"),
        (spoil(4096, b"\xa5" * 4000), r"is damaged .* it was left as it is"),
        (spoil(40_960, b"\xa5" * 4000), r"is damaged .* it was left as it is"),
        (lambda p: p.write_bytes(p.read_bytes()[:40_960]), "is damaged"),
        (set_version(2), "version 2, this automl_plugins knows 1; it was left as it is"),
        (set_version(-1), "unknown version -1"),
        (replace_by("a", "b"), "SQLite file of something else, with the tables a, b;"),
        (replace_by("meta_runs"), "SQLite file of something else, with the tables meta_runs;"),
        (replace_by_studies, "holds studies of Optuna, it is no store; .* mean 'sqlite:///"),
    ],
)
def test_what_is_no_store_or_damaged_or_newer_stays_as_it_is(
    path: Path, change: Callable[[Path], object], told: str
) -> None:
    change(path)
    before = path.read_bytes()
    with pytest.raises(StoreError, match=told):
        MetaStore(path)
    assert path.read_bytes() == before
    log = path.with_name(f"{path.name}-wal")  # SQLite may have looked for it
    assert not log.exists() or not log.stat().st_size


def test_damage_while_it_is_open(path: Path) -> None:
    with MetaStore(path) as store:
        store.close()
        data = path.read_bytes()
        path.write_bytes(data[:4096] + b"\xa5" * (len(data) - 4096))
        with pytest.raises(StoreError, match="is damaged; nothing was written"):
            store.records()
        with pytest.raises(StoreError, match="is damaged; nothing was written"):
            store.record("t", {"x": 1}, 0.5)


def test_text_that_something_else_has_changed(path: Path) -> None:
    execute(path, "UPDATE meta_runs SET configuration = '{\"x\": ' WHERE id = 7")
    with MetaStore(path) as store, pytest.raises(StoreError, match="text that is no JSON"):
        store.records()


def test_an_old_version_is_brought_up_to_date_in_full_or_not_at_all(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = []

    def migrate(engine: sa.Connection) -> None:
        engine.execute(sa.text("CREATE TABLE meta_new (id INTEGER)"))
        calls.append(1)
        if len(calls) == 1:
            raise KeyboardInterrupt

    set_version(0)(path)
    monkeypatch.setitem(connection.MIGRATIONS, 0, migrate)
    with pytest.raises(KeyboardInterrupt):
        MetaStore(path)
    for _ in range(2):
        with MetaStore(path) as store:
            assert len(store.records()[0]) == 2000
    assert len(calls) == 2
    with contextlib.closing(sqlite3.connect(path)) as plain:
        assert plain.execute("SELECT version FROM meta_schema").fetchall() == [(1,)]


# --- others at work -----------------------------------------------------------------------


def test_a_busy_store_is_read_and_told(path: Path) -> None:
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with MetaStore(path, timeout=0.2) as store:
            assert len(store.records()[0]) == 2000
            begin = time.monotonic()
            with pytest.raises(StoreError, match=r"busy for more than 0\.2 s; try again"):
                store.record("t", {"x": 1}, 0.5)
            assert time.monotonic() - begin > 0.1
            other.execute("ROLLBACK")
            assert store.record("t", {"x": 1}, 0.5)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_child_keeps_its_log_when_the_parent_closes(path: Path) -> None:
    """With an inherited connection it has no lock of its own: its log would be deleted."""
    written, closed = os.pipe(), os.pipe()
    with MetaStore(path) as store:
        store.record("t", {"x": 0}, 0.5)
        child = os.fork()
        if not child:
            try:
                store.record("t", {"x": 1}, 0.5)
                os.write(written[1], b".")
                os.read(closed[0], 1)
                store.record("t", {"x": 2}, 0.5)
            finally:
                os._exit(0)
        os.read(written[0], 1)
        store.close()
        os.write(closed[1], b".")
        assert os.waitpid(child, 0)[1] == 0
    for descriptor in (*written, *closed):
        os.close(descriptor)
    with MetaStore(path) as store:
        assert [c["x"] for c in store.records(["t"])[0].configurations] == [0, 1, 2]
