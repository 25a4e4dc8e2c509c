"""The database of a store: its tables; recognised, made, brought up to date, and used.

``Database.read`` and ``Database.write`` run a function in one transaction.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
import time
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

import sqlalchemy as sa
from sqlalchemy import (
    BigInteger,
    Column,
    Double,
    ForeignKey,
    Integer,
    LargeBinary,
    MetaData,
    SmallInteger,
    Table,
    Text,
    UniqueConstraint,
    event,
)
from sqlalchemy.engine import URL, Connection, Engine
from sqlalchemy.exc import ArgumentError, DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from automl_plugins.addresses import as_database, is_sqlite
from automl_plugins.formats import one_line

T = TypeVar("T")

VERSION = 1
_ATTEMPTS = 6
_LOCK = 0x6D657461  # of PostgreSQL's advisory locks, while tables are made
_RESCUE = "Restore a copy or an export of it, or save what is left with sqlite3 FILE .recover."
_DAMAGED = ("malformed", "not a database", "corrupt", "could not decode")  # as SQLite says it
_FULL = ("is full", "no space", "disk i/o error")
_DEADLOCK = ("40001", "40P01")  # SQLSTATE of serialisation failures and deadlocks


class StoreError(RuntimeError):
    """A store that cannot be used: damaged, of a newer version, something else, busy, away.

    Example::

        try:
            MetaStore("README.md")
        except StoreError as error:
            print(error)
    """


# --- its tables -----------------------------------------------------------------------------

# A run belongs to a search, a search to a task. Deleting one deletes all that belongs to it.
metadata = MetaData()

_Id = BigInteger().with_variant(Integer, "sqlite")


def _id() -> Column[int]:
    return Column("id", _Id, primary_key=True)


def _parent(name: str, table: str) -> Column[int]:
    return Column(name, _Id, ForeignKey(f"{table}.id", ondelete="CASCADE"), nullable=False)


def _text(name: str, *, unique: bool = False) -> Column[str]:
    return Column(name, Text, nullable=False, unique=unique)


schema = Table("meta_schema", metadata, Column("version", Integer, nullable=False))

tasks = Table(
    "meta_tasks",
    metadata,
    _id(),
    _text("name", unique=True),
    _text("meta_features"),  # JSON: name -> number or null
    _text("tags"),  # JSON: name -> text
    sqlite_autoincrement=True,
)

spaces = Table(
    "meta_spaces",
    metadata,
    _id(),
    _text("digest", unique=True),
    _text("space"),  # JSON: ConfigSpace's serialised form
    sqlite_autoincrement=True,
)

searches = Table(
    "meta_searches",
    metadata,
    _id(),
    _parent("task_id", "meta_tasks"),
    _text("name"),
    Column("space_id", _Id, ForeignKey("meta_spaces.id"), index=True),
    _text("framework"),
    Column("seed", Text),  # an integer of any size
    UniqueConstraint("task_id", "name"),
    sqlite_autoincrement=True,
)

runs = Table(
    "meta_runs",
    metadata,
    _id(),
    _parent("search_id", "meta_searches"),
    _text("key"),
    _text("configuration"),  # JSON: name -> value
    Column("loss", Double),
    Column("seconds", Double),
    Column("status", SmallInteger, nullable=False),  # records.trial.Status
    Column("budget", Double),
    Column("time", Double),  # Unix time of the end
    UniqueConstraint("search_id", "key"),
)

artifacts = Table(
    "meta_artifacts",
    metadata,
    _id(),
    _parent("task_id", "meta_tasks"),
    _text("name"),
    _text("version"),
    Column("content", LargeBinary, nullable=False),  # npz of plain arrays
    UniqueConstraint("task_id", "name"),
)


# --- the connections to it --------------------------------------------------------------------


def parse_url(url: str | os.PathLike[str]) -> URL:
    """The address of a database; a path without ``://`` is an SQLite file.

    Raises:
        ValueError: For another kind of database, an address that cannot be read, and an SQLite
            database in memory.
    """
    text = os.fspath(url)
    if "://" not in text:
        parsed = URL.create("sqlite", database=text)
    else:
        try:
            parsed = sa.make_url(text)
        except (ArgumentError, ValueError) as error:
            raise ValueError(f"The address of the store cannot be read: {error}") from None
    kind = parsed.drivername.split("+")[0]
    if kind in ("postgresql", "postgres"):
        plain = parsed.drivername == kind
        return parsed.set(drivername="postgresql+psycopg") if plain else parsed
    if kind != "sqlite":
        raise ValueError(
            f"A store is sqlite:///FILE, a path, or postgresql://USER@HOST/DATABASE; {kind} is not"
            " supported."
        )
    if not parsed.database or parsed.database == ":memory:":
        raise ValueError(
            "A store keeps its runs in a file: name one, as in sqlite:///memory.db. For runs that"
            " need not be kept, MetaDataset.from_records takes them as they are."
        )
    return parsed.set(database=str(Path(parsed.database).expanduser().absolute()))


class Database:
    """Connections to one database, for all threads of a process.

    They are opened when they are needed. Those that are not in use are closed before the process
    is forked: a child that inherited one would share its locks. Do not fork while another thread
    is in a transaction.

    Args:
        url: Its address, from ``parse_url``.
        timeout: How long a transaction waits for those of others, in seconds.
    """

    def __init__(self, url: URL, *, timeout: float) -> None:
        self.url = url
        self.timeout = timeout
        self._lock = threading.Lock()
        self._engine: Engine | None = None
        _databases.add(self)

    @property
    def is_sqlite(self) -> bool:
        """Whether it is a file of this machine."""
        return self.url.get_backend_name() == "sqlite"

    @property
    def file(self) -> str:
        """Path of an SQLite database."""
        assert self.url.database is not None
        return self.url.database

    @property
    def _frozen(self) -> bool:
        """Whether it is a file that this user may not write, or whose folder not."""
        return self.is_sqlite and is_frozen(Path(self.file))

    def __str__(self) -> str:
        return self.url.render_as_string(hide_password=True)

    def read(self, work: Callable[[Connection], T]) -> T:
        """``work`` in a transaction that sees one state; StoreError if it cannot be read."""
        if self.is_sqlite:
            return self._transact(work, {"sqlite_begin": ""})
        return self._transact(work, {"isolation_level": "REPEATABLE READ"})

    def write(self, work: Callable[[Connection], T]) -> T:
        """``work`` in a transaction, run again from the start where others were in its way.

        Raises:
            StoreError: If the database cannot be written; then nothing was.
        """
        return self._transact(work, {"sqlite_begin": "IMMEDIATE"} if self.is_sqlite else {})

    def checkpoint(self) -> None:
        """Move what was written into an SQLite file itself and empty its journal, if it can be."""
        if self.is_sqlite:
            with contextlib.suppress(DBAPIError), self._connect() as connection:
                raw = connection.connection.driver_connection
                assert raw is not None
                raw.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def close(self) -> None:
        """Close all connections that are not in use; the next transaction opens one again."""
        with self._lock:
            if self._engine is not None:
                self._engine.dispose()

    def forget(self) -> None:
        """Leave what was inherited from the parent process alone."""
        self._lock = threading.Lock()
        if self._engine is not None:
            self._engine.dispose(close=False)
            self._engine = None

    def _transact(self, work: Callable[[Connection], T], options: dict[str, Any]) -> T:
        for attempt in range(_ATTEMPTS):
            before = _content(Path(self.file)) if self._frozen else None
            try:
                with self._connect() as connection:
                    connection = connection.execution_options(**options)
                    with connection.begin():
                        found = work(connection)
                if before is None or _content(Path(self.file)) == before:
                    return found
            except (DBAPIError, PoolTimeoutError) as error:
                if attempt + 1 == _ATTEMPTS or not _passes(error):
                    raise self._explain(error) from error
            time.sleep(0.01 * 2**attempt)
        raise StoreError(f"{self}: others write to it all the time; try again.")

    def _connect(self) -> Connection:
        with self._lock:
            if self._engine is None:
                self._engine = self._make_engine()
                weakref.finalize(self, self._engine.dispose)
            engine = self._engine
        return engine.connect()

    def _make_engine(self) -> Engine:
        if self.is_sqlite:
            if self._frozen:  # for each transaction anew: others may have begun to write
                engine = sa.create_engine(
                    self.url,
                    creator=lambda: read_only(Path(self.file), self.timeout),
                    poolclass=sa.pool.NullPool,
                )
            else:
                engine = sa.create_engine(
                    self.url, connect_args={"timeout": self.timeout}, pool_timeout=self.timeout
                )
            event.listen(engine, "connect", _set_up)
            event.listen(engine, "begin", _begin)
            return engine
        try:
            return sa.create_engine(self.url, pool_pre_ping=True, pool_timeout=self.timeout)
        except ModuleNotFoundError as error:
            raise ModuleNotFoundError(
                f"A PostgreSQL store needs a driver, {error.name} is not installed:"
                " pip install 'psycopg[binary]'",
                name=error.name,
            ) from None

    def _explain(self, error: DBAPIError | PoolTimeoutError) -> StoreError:
        cause = one_line(str(error.orig if isinstance(error, DBAPIError) else error))
        told = cause.lower()
        if "locked" in told or isinstance(error, PoolTimeoutError):
            advice = f" Others kept it busy for more than {self.timeout:g} s; try again."
        elif any(sign in told for sign in _DAMAGED):
            advice = f" The file is damaged; nothing was written. {_RESCUE}"
        elif "readonly" in told:
            advice = (
                " This user may read it, not write: record to a store of your own, or ask for the"
                " right to write to the file and its folder."
            )
        elif any(sign in told for sign in _FULL):
            advice = " Nothing was written: make room on the disk, and record it again."
        else:
            advice = ""
        return StoreError(f"{self}: {cause}.{advice}")


def _passes(error: DBAPIError | PoolTimeoutError) -> bool:
    """Whether trying again helps: a lost connection, a deadlock, a row that was just deleted."""
    return isinstance(error, DBAPIError) and (
        error.connection_invalidated
        or isinstance(error, sa.exc.IntegrityError)
        or getattr(error.orig, "sqlstate", None) in _DEADLOCK
    )


_SETTINGS = (
    *("foreign_keys=ON", "synchronous=FULL", "secure_delete=ON"),
    # A file from somebody else: its pages are checked, and no function is called by its schema.
    *("cell_size_check=ON", "trusted_schema=OFF"),
)


def _set_up(connection: Any, _: object) -> None:
    connection.isolation_level = None  # transactions begin where `_begin` says, and nowhere else
    for setting in _SETTINGS:
        connection.execute(f"PRAGMA {setting}")


def _begin(connection: Connection) -> None:
    mode = connection.get_execution_options().get("sqlite_begin", "")
    connection.exec_driver_sql(f"BEGIN {mode}")


_databases: weakref.WeakSet[Database] = weakref.WeakSet()


def _before_fork() -> None:
    for database in list(_databases):
        with contextlib.suppress(sa.exc.SQLAlchemyError):
            database.close()


def _after_fork() -> None:
    for database in list(_databases):
        database.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_child=_after_fork)


# --- a store in it ----------------------------------------------------------------------------


MIGRATIONS: dict[int, Callable[[Connection], None]] = {}
"""What turns a store of each earlier version into one of the next."""


def open_store(database: Database) -> None:
    """Make the tables of a new store and migrate those of an old one, in one transaction.

    Raises:
        StoreError: For a file or database of something else, a damaged file, and a newer version;
            none of them is changed.
    """
    if database.is_sqlite:
        try:
            _recognise_file(Path(database.file))
        except OSError as error:  # no right to look into the folder, or to read the file
            raise StoreError(f"{database} cannot be read: {error.strerror or error}.") from error
    if database.read(_version) == VERSION:
        return
    if database.is_sqlite:
        _let_readers_read(database)
    database.write(_bring_up_to_date)


def is_frozen(path: Path) -> bool:
    """Whether there is a file that this user may not write, or whose folder not."""
    return path.exists() and not (os.access(path, os.W_OK) and os.access(path.parent, os.W_OK))


def read_only(path: Path, timeout: float) -> sqlite3.Connection:
    """A connection that cannot write.

    To read a file with write-ahead logging SQLite makes others beside it. Where it may not, and
    nobody writes at this moment, the file is read as one that never changes.
    """
    frozen = is_frozen(path) and not _log_of(path).exists()
    mode = "immutable=1" if frozen else "mode=ro"
    # Connections are used by one thread after another, as SQLAlchemy's own.
    return sqlite3.connect(
        f"file:{quote(str(path))}?{mode}", uri=True, timeout=timeout, check_same_thread=False
    )


def _log_of(path: Path) -> Path:
    return path.with_name(f"{path.name}-wal")


def _content(path: Path) -> tuple[int, int, bool]:
    """What differs once somebody has written to a file."""
    status = path.stat()
    return status.st_mtime_ns, status.st_size, _log_of(path).exists()


def _recognise_file(path: Path) -> None:
    """Look at an SQLite file; StoreError unless it is a store, empty or new."""
    if not path.parent.is_dir():
        raise StoreError(f"{path} cannot be made: there is no folder {path.parent}.")
    if path.is_dir():
        raise StoreError(f"{path} is a folder: name a file in it.")
    if not path.exists() or not path.stat().st_size:
        return
    if not is_sqlite(path):
        raise StoreError(
            f"{path} is no SQLite file, or it is damaged; it was left as it is. Name another"
            " file, or restore a copy or an export of it."
        )
    try:
        with contextlib.closing(read_only(path, 60.0)) as connection:
            rows = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
            names = {name for (name,) in rows}
            if schema.name in names:
                told = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
                if told != "ok":
                    raise sqlite3.DatabaseError(told)
    except sqlite3.OperationalError as error:
        raise StoreError(f"{path} cannot be read: {error}.") from error
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        raise StoreError(
            f"{path} is damaged ({one_line(str(error))}); it was left as it is. {_RESCUE}"
        ) from error
    foreign = sorted(name for name in names if not name.startswith("sqlite_"))
    if foreign and schema.name not in names:
        if {"studies", "trials"} <= names:
            raise StoreError(
                f"{path} holds studies of Optuna, it is no store; it was left as it is. Did you"
                f" mean {as_database(path)!r}, as studies, or another file?"
            )
        raise StoreError(
            f"{path} is an SQLite file of something else, with the tables"
            f" {', '.join(foreign[:5])}{', ...' if len(foreign) > 5 else ''}; it was left as it"
            " is. Name a file of its own for the store."
        )


def _version(connection: Connection) -> int | None:
    """Version of the store, None where there is none yet; StoreError if it is unknown."""
    inspector = sa.inspect(connection)
    if not inspector.has_table(schema.name):
        taken = [table for table in metadata.tables if inspector.has_table(table)]
        if taken:
            raise StoreError(
                f"The database has a table {taken[0]}, but not of a store: use another database"
                " or schema."
            )
        return None
    version = connection.execute(sa.select(schema.c.version)).scalar()
    if not isinstance(version, int) or (version < VERSION and version not in MIGRATIONS):
        raise StoreError(f"The store has the unknown version {version}.")
    if version > VERSION:
        raise StoreError(
            f"The store has version {version}, this automl_plugins knows {VERSION}; it was"
            " left as it is. A newer automl_plugins opens it."
        )
    return version


def _bring_up_to_date(connection: Connection) -> None:
    if connection.dialect.name == "postgresql":
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_LOCK)))
    version = _version(connection)  # others may have been quicker
    if version is None:
        metadata.create_all(connection)
        connection.execute(schema.insert().values(version=VERSION))
        return
    for old in range(version, VERSION):
        MIGRATIONS[old](connection)
        connection.execute(schema.update().values(version=old + 1))


def _let_readers_read(database: Database) -> None:
    """Write-ahead logging: readers and the writer do not wait for each other; kept in the file."""
    end = time.monotonic() + database.timeout
    plain = sqlite3.connect(database.file, timeout=database.timeout)
    with contextlib.closing(plain) as connection:
        while True:
            try:
                connection.execute("PRAGMA journal_mode=WAL")
                return
            except sqlite3.OperationalError as error:  # it does not wait for the others
                if "locked" not in str(error) or time.monotonic() > end:
                    raise StoreError(f"{database}: {error}.") from error
                time.sleep(0.01)
