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


def assert_refused(path: Path, told: str) -> None:
    """And not changed; SQLite may have looked for a log of it."""
    before = path.read_bytes()
    with pytest.raises(StoreError, match=told):
        MetaStore(path)
    assert path.read_bytes() == before
    log = path.with_name(f"{path.name}-wal")
    assert not log.exists() or not log.stat().st_size


def test_addresses_of_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for address in (
        "runs.db",
        Path("runs.db"),
        "sqlite:///runs.db",
        f"sqlite:///{tmp_path}/runs.db",
    ):
        with MetaStore(address) as store:
            assert store.url == f"sqlite:///{tmp_path}/runs.db"
            store.record("t", {"x": 1}, 0.5, search="s", key=1)
    with MetaStore("runs.db") as store:
        assert len(store.records()[0]) == 1
        monkeypatch.chdir("/")
        store.close()
        assert store.record("t", {"x": 2}, 0.5)  # the file is where it was
    assert [found.name for found in tmp_path.iterdir()] == ["runs.db"]


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("mysql://u@h/d", "mysql is not supported"),
        ("sqlite://", "keeps its runs in a file"),
        ("sqlite:///:memory:", "MetaDataset.from_records"),
        ("postgresql://h:port/d", "cannot be read"),
        ("://", "cannot be read"),
    ],
)
def test_wrong_addresses(url: str, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        MetaStore(url)


def test_no_password_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("psycopg", reason="psycopg is not installed")
    with pytest.raises(StoreError) as caught:
        MetaStore("postgresql://user:secret@/db?host=/nowhere&connect_timeout=1", timeout=1)
    assert "secret" not in str(caught.value) and "user:***@" in str(caught.value)
    monkeypatch.setattr("automl_plugins.meta.store.metastore.open_store", lambda _: None)
    store = MetaStore("postgresql://user:secret@host/db")
    assert repr(store) == "MetaStore('postgresql+psycopg://user:***@host/db')"


def test_places_where_no_file_can_be(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="is a folder"):
        MetaStore(tmp_path)
    with pytest.raises(StoreError, match="there is no folder"):
        MetaStore(tmp_path / "a" / "runs.db")
    assert not any(tmp_path.iterdir())


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


def overwrite(path: Path, start: int, content: bytes) -> None:
    data = path.read_bytes()
    assert len(data) > 100_000
    path.write_bytes(data[:start] + content + data[start + len(content) :])


@pytest.mark.parametrize(
    ("spoil", "told"),
    [
        (lambda p: p.write_text("kernel,loss\nrbf,0.1\n"), "no SQLite file, or it is damaged"),
        (lambda p: overwrite(p, 0, b"\0" * 16), "no SQLite file, or it is damaged"),
        (lambda p: overwrite(p, 100, b"\xa5" * 4000), r"is damaged .* it was left as it is"),
        (lambda p: overwrite(p, 4096, b"\xa5" * 4000), r"is damaged .* it was left as it is"),
        (lambda p: overwrite(p, 40_960, b"\xa5" * 4000), r"is damaged .* it was left as it is"),
        (lambda p: p.write_bytes(p.read_bytes()[:40_960]), "is damaged"),
        (
            lambda p: execute(p, "UPDATE meta_schema SET version = 2"),
            "version 2, this automl_plugins knows 1; it was left as it is",
        ),
        (lambda p: execute(p, "UPDATE meta_schema SET version = -1"), "unknown version -1"),
    ],
)
def test_what_is_no_store_or_damaged_or_newer(
    path: Path, spoil: Callable[[Path], object], told: str
) -> None:
    spoil(path)
    assert_refused(path, told)


@pytest.mark.parametrize("tables", [("a", "b"), ("meta_runs",)])
def test_a_database_of_another_program(tmp_path: Path, tables: tuple[str, ...]) -> None:
    execute(tmp_path / "a.db", *(f"CREATE TABLE {table} (id)" for table in tables))
    told = f"SQLite file of something else, with the tables {', '.join(tables)};"
    assert_refused(tmp_path / "a.db", told)


def test_a_database_of_something_else(tmp_path: Path) -> None:
    path = tmp_path / "study.db"
    storage = optuna.storages.RDBStorage(f"sqlite:///{path}")
    optuna.create_study(storage=storage)
    storage.engine.dispose()
    assert_refused(path, "holds studies of Optuna, it is no store; .* Did you mean 'sqlite:///")


def test_damage_while_it_is_open(path: Path) -> None:
    with MetaStore(path) as store:
        store.close()
        data = path.read_bytes()
        path.write_bytes(data[:4096] + b"\xa5" * (len(data) - 4096))
        with pytest.raises(StoreError, match="is damaged; nothing was written"):
            store.records()
        with pytest.raises(StoreError, match="is damaged; nothing was written"):
            store.record("t", {"x": 1}, 0.5)


def test_an_old_version_is_brought_up_to_date_in_full_or_not_at_all(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = []

    def migrate(engine: sa.Connection) -> None:
        engine.execute(sa.text("CREATE TABLE meta_new (id INTEGER)"))
        calls.append(1)
        if len(calls) == 1:
            raise KeyboardInterrupt

    execute(path, "UPDATE meta_schema SET version = 0")
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


def test_text_that_something_else_has_changed(path: Path) -> None:
    execute(path, "UPDATE meta_runs SET configuration = '{\"x\": ' WHERE id = 7")
    with MetaStore(path) as store, pytest.raises(StoreError, match="text that is no JSON"):
        store.records()
