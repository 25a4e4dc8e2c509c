"""What a store opens, what it brings up to date, and what it refuses without touching it."""

from __future__ import annotations

import contextlib
import os
import pickle
import re
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import pytest
import sqlalchemy as sa
from known_runs import kernel_record as record

from automl_plugins.meta import TaskRecord
from automl_plugins.meta.sources import read_memory
from automl_plugins.meta.store import MetaStore, StoreError, connection, metastore, schema


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


def test_an_export_is_no_store(path: Path) -> None:
    export = path.with_name("runs.json.xz")
    with MetaStore(path) as store:
        store.export(export)
    with pytest.raises(StoreError, match="An export is imported into a store") as refused:
        MetaStore(export)
    assert f"import_({str(export)!r})" in str(refused.value)


def test_a_frame_of_runs_is_no_store(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    path.write_text("C,loss\n1,0.5\n")
    with pytest.raises(StoreError, match=r"TaskRecord.from_frame\(pandas.read_csv\(") as refused:
        read_memory(path)
    assert repr(str(path)) in str(refused.value)


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
        ("sqlite+aiosqlite:///a.db", ValueError, "takes Python's own driver: sqlite:///FILE"),
        ("a\0.db", ValueError, "with a character 0 in it"),
        (None, TypeError, "A store takes a path or the address of a database; got None"),
        (b"a.db", TypeError, "A store takes a path or the address of a database; got "),
        ("sqlite://", ValueError, "keeps its runs in a file"),
        ("sqlite:///:memory:", ValueError, "MetaDataset.from_records"),
        ("sqlite:///a.db?mode=ro", ValueError, "FILE without a host or options, got 'sqlite:///a"),
        ("sqlite:///a.db?timeout=5", ValueError, "timeout= is an argument of MetaStore"),
        ("sqlite://host/a.db", ValueError, "without a host"),
        ("postgresql://h:port/d", ValueError, "cannot be read"),
        ("://", ValueError, "cannot be read"),
        (".", StoreError, "is a folder"),
        ("a/runs.db", StoreError, "there is no folder"),
    ],
)
def test_addresses_of_nothing(
    url: Any, error: type[Exception], told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(error, match=told):
        MetaStore(url)
    assert not any(tmp_path.iterdir())
    with pytest.raises(ValueError, match="timeout must be a finite number > 0"):
        MetaStore(url, timeout=0)


def test_no_password_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("psycopg", reason="psycopg is not installed")
    with pytest.raises(StoreError) as caught:
        MetaStore("postgresql://user:secret@/db?host=/nowhere&connect_timeout=1", timeout=1)
    assert "secret" not in str(caught.value) and "user:***@" in str(caught.value)
    monkeypatch.setattr(
        "automl_plugins.meta.store.metastore.prepare_tables", lambda *_, **__: None
    )
    store = MetaStore("postgresql://user:secret@host/db")
    assert repr(store) == "MetaStore('postgresql+psycopg://user:***@host/db')"
    store = MetaStore("postgresql://host/db?user=me&password=se%40cret")
    assert store.url == "postgresql+psycopg://host/db?password=***&user=me"
    assert "se%40cret" in pickle.loads(pickle.dumps(store))._database.address(hide_password=False)


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


# --- what is not a store ---------------------------------------------------------------------


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
        (lambda p: p.write_text("kernel,loss\nrbf,0.1\n"), "not an SQLite file, or it is damaged"),
        (spoil(0, b"\0" * 16), "not an SQLite file, or it is damaged"),
        (spoil(100, b"\xa5" * 4000), r"is damaged .* it was left as it is"),
        (spoil(4096, b"\xa5" * 4000), r"is damaged .* it was left as it is"),
        (spoil(40_960, b"\xa5" * 4000), r"is damaged .* it was left as it is"),
        (lambda p: p.write_bytes(p.read_bytes()[:40_960]), "is damaged"),
        (set_version(2), "version 2, this automl_plugins knows 1; it was left as it is"),
        (set_version(-1), "unknown version -1"),
        (replace_by("a", "b"), "SQLite file of something else, with the tables a, b;"),
        (replace_by("meta_runs"), "SQLite file of something else, with the tables meta_runs;"),
        (
            replace_by_studies,
            "holds studies of Optuna, it is not a store; .* mean 'sqlite:///.*', which is read"
            " where Optuna is installed",
        ),
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
    with MetaStore(path) as store, pytest.raises(StoreError, match="what it did not write"):
        store.records()


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


def test_a_wait_of_years_is_one(path: Path) -> None:
    """SQLite counts milliseconds in 32 bits: more of them overflow, and it would not wait."""
    with contextlib.closing(sqlite3.connect(path, check_same_thread=False)) as other:
        other.isolation_level = None
        other.execute("BEGIN IMMEDIATE")
        with MetaStore(path, timeout=1e12) as store, ThreadPoolExecutor(1) as pool:
            writing = pool.submit(store.record, "t", {"x": 1}, 0.5)
            assert not wait([writing], timeout=0.2).done  # it waits, however slow the machine
            other.execute("ROLLBACK")
            assert writing.result(60)


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


@pytest.mark.parametrize("closed", [False, True])
@pytest.mark.parametrize("replaced", [False, True])
def test_a_file_that_is_gone_is_noticed(
    path: Path, replaced: bool, closed: bool, caplog: pytest.LogCaptureFixture
) -> None:
    other = path.with_name("other.db")
    with MetaStore(other) as another:
        another.record("wine", {"x": 0}, 0.5)
    with MetaStore(path) as store:
        store.record("iris", {"x": 1}, 0.5)
        if closed:
            store.close()
        for file in path.parent.glob("runs.db*"):
            file.unlink()
        if replaced:
            other.rename(path)
        for i in range(3):
            assert store.record("t", {"x": i}, 0.5)
        tasks = [task.name for task in store.tasks()]
        assert tasks == (["wine", "t"] if replaced else ["t"])
    assert [r.getMessage() for r in caplog.records] == [
        f"{store.url} was removed or replaced while it was open: what is written from now on"
        " goes to the file that is there now, what was in the old one is not in it."
    ]
    with MetaStore(path) as store:
        assert len(store.records(["t"])[0]) == 3


def test_a_file_that_is_there_is_opened_once(
    path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    with MetaStore(path) as store:
        prepared: list[object] = []
        monkeypatch.setattr(metastore, "prepare_tables", lambda *a, **_: prepared.append(a))
        store.record("t", {"x": 1}, 0.5)
        store.close()
        store.record("t", {"x": 2}, 0.5)
        store.delete_task("iris")
    assert not prepared and not caplog.records


def test_a_store_without_its_folder_is_told_until_it_is_back(path: Path) -> None:
    folder, elsewhere = path.parent, path.parent.with_name("elsewhere")
    with MetaStore(path) as store:
        folder.rename(elsewhere)
        for _ in range(2):
            with pytest.raises(StoreError, match="cannot be made: there is no folder"):
                store.record("t", {"x": 1}, 0.5)
        elsewhere.rename(folder)
        assert store.record("t", {"x": 1}, 0.5)
        assert {task.name for task in store.tasks()} == {"iris", "t"}


def test_something_else_in_its_place_is_left_as_it_is(path: Path) -> None:
    with MetaStore(path) as store:
        for file in path.parent.glob("runs.db*"):
            file.unlink()
        path.write_text("a text of somebody else")
        with pytest.raises(StoreError, match="is not an SQLite file"):
            store.record("t", {"x": 1}, 0.5)
    assert path.read_text() == "a text of somebody else"


def test_a_folder_that_this_user_may_not_write_to_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.access", lambda *_: False)
    told = f"new.db cannot be made: this user may not write to the folder {tmp_path}. Name a"
    with pytest.raises(StoreError, match=re.escape(told)):
        MetaStore(tmp_path / "new.db")
    with pytest.raises(StoreError, match=f"there is no folder {re.escape(str(tmp_path / 'a'))}"):
        MetaStore(tmp_path / "a" / "new.db")
    assert not list(tmp_path.iterdir())


# --- damage at random bytes -----------------------------------------------------------------


def test_no_flipped_bits_bring_down_a_reader(tmp_path: Path) -> None:
    """SQLite has no checksums: a changed digit stays unseen, a search that cannot be is told."""
    path, rng = tmp_path / "runs.db", np.random.default_rng(0)
    with MetaStore(path) as store:
        for seed, name in enumerate(["iris", "wine"]):
            store.add(record(name, 30, seed), search="s", keys=range(30))
    whole = path.read_bytes()
    outcomes = Counter[str]()
    for n_bits in [1, 20] * 40:
        content = bytearray(whole)
        for place in rng.integers(len(whole), size=n_bits):
            content[place] ^= 1 << int(rng.integers(8))
        path.write_bytes(content)
        for log in tmp_path.glob("runs.db-*"):
            log.unlink()
        try:
            with MetaStore(path) as store:
                found = store.records()
                outcomes["read"] += 1
                assert all(r.space in (record().space, None) for r in found)
        except StoreError as error:
            outcomes["refused"] += 1
            assert "\n" not in str(error)
    assert min(outcomes["read"], outcomes["refused"]) >= 10, outcomes


def alter(*statements: str) -> Callable[[Path], object]:
    return lambda path: execute(path, *statements)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (alter("UPDATE meta_runs SET configuration = '{}, {}' WHERE id = 1"), "did not write"),
        (alter("UPDATE meta_runs SET configuration = '[1]' WHERE id = 1"), "not an object"),
        (alter("UPDATE meta_runs SET configuration = x'ff' WHERE id = 1"), "did not write"),
        (alter("UPDATE meta_runs SET configuration = CAST(x'ff' AS TEXT)"), "is damaged"),
        (alter("UPDATE meta_runs SET loss = 'low' WHERE id = 1"), "did not write"),
        (alter("UPDATE meta_runs SET status = 77 WHERE id = 1"), "status must be COMPLETE"),
        (alter("UPDATE meta_searches SET seed = 'x'"), "did not write"),
        (alter('UPDATE meta_tasks SET meta_features = \'{"n": "x"}\''), "must be a number"),
        (alter(f"UPDATE meta_tasks SET tags = '{'[' * 5000}'"), "did not write"),
        (alter("UPDATE meta_spaces SET space = replace(space, '50', '51')"), "another digest"),
    ],
)
def test_what_something_else_wrote_is_told(
    tmp_path: Path, change: Callable[[Path], object], told: str
) -> None:
    path = tmp_path / "runs.db"
    with MetaStore(path) as store:
        store.add(record())
    change(path)
    with MetaStore(path) as store, pytest.raises(StoreError, match=told):
        store.records()


def test_a_locked_file_is_waited_for_as_long_as_one_says(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[float] = []

    def read_only(path: Path, timeout: float) -> sqlite3.Connection:
        waits.append(timeout)
        return connection.read_only(path, timeout)

    monkeypatch.setattr(schema, "read_only", read_only)
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("PRAGMA locking_mode=EXCLUSIVE")
        other.execute("BEGIN EXCLUSIVE")
        other.execute("UPDATE meta_tasks SET tags = '{}'")
        with pytest.raises(StoreError, match="locked"):
            MetaStore(path, timeout=0.01)
    assert waits == [0.01]


# --- without the right to write -------------------------------------------------------------

NOBODY = 65534
AS_NOBODY = """
import os, sys
from automl_plugins.meta import MetaDataset
from automl_plugins.meta.sources import read_memory
from automl_plugins.meta.store import MetaStore, StoreError
if not os.getuid():  # root may write everywhere
    os.setgroups([]), os.setgid({nobody}), os.setuid({nobody})
for path in sys.argv[1:]:
    print(len(read_memory(path)[0]))
    with MetaStore(path) as store:
        try:
            store.record("t", {{"x": 1}}, 0.5)
        except StoreError as error:
            print(error)
        print(len(store.records()[0]))
"""


@pytest.fixture
def shared() -> Iterator[Path]:
    """A folder that everybody may look into."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="rights are those of Unix")
def test_stores_that_may_only_be_read(shared: Path) -> None:
    paths = [shared / folder / "runs.db" for folder in ("frozen", "file_only", "in_use")]
    with contextlib.ExitStack() as stack:
        for path, mode in zip(paths, (0o555, 0o777, 0o555), strict=True):
            path.parent.mkdir()
            store = stack.enter_context(MetaStore(path))
            store.add(record(n=30))
            if path.parent.name != "in_use":
                store.close()
            path.chmod(0o444)
            path.parent.chmod(mode)
        try:
            before = [(path.read_bytes(), sorted(path.parent.iterdir())) for path in paths]
            command = [sys.executable, "-c", AS_NOBODY.format(nobody=NOBODY), *map(str, paths)]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            told = done.stdout.splitlines()
            assert told[::3] == told[2::3] == ["30"] * 3
            assert all("This user may read it, not write" in line for line in told[1::3])
            assert before == [(p.read_bytes(), sorted(p.parent.iterdir())) for p in paths]
        finally:
            for path in paths:
                path.parent.chmod(0o755)
                path.chmod(0o644)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="rights are those of Unix")
def test_a_link_to_a_store_that_may_only_be_read(shared: Path) -> None:
    """What was written lately is beside the file, not beside the link."""
    (shared / "team").mkdir()
    (shared / "own").mkdir()
    (shared / "own").chmod(0o777)
    path, link = shared / "team" / "runs.db", shared / "own" / "runs.db"
    link.symlink_to(path)
    command = [sys.executable, "-c", AS_NOBODY.format(nobody=NOBODY), str(link)]
    with MetaStore(path) as store:
        store.add(record(n=30))
        path.chmod(0o444)
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.stdout.splitlines()[::2] == ["30", "30"], done.stderr
    path.chmod(0o666)  # the folder is not theirs still
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.stdout.splitlines()[::2] == ["30", "30"], done.stderr


def test_a_frozen_store_that_changes_is_read_again(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "is_frozen", lambda _: True)
    with MetaStore(path) as store:
        calls = []

        def count(c: sa.Connection) -> int:
            found = c.execute(sa.select(sa.func.count()).select_from(schema.runs)).scalar_one()
            calls.append(found)
            if len(calls) == 1:
                execute(path, "DELETE FROM meta_runs WHERE id <= 10")
            return int(found)

        assert store._database.read(count) == 1990 and calls == [2000, 1990]


def test_a_folder_that_may_not_be_looked_into(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> bool:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(schema, "is_sqlite", refuse)
    with pytest.raises(StoreError, match=r"runs\.db cannot be read: Permission denied"):
        MetaStore(path)
