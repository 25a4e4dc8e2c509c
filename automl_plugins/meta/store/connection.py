"""The connections to the database of a store, and the transactions on it.

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
from sqlalchemy import URL, Connection, Engine, event
from sqlalchemy.exc import ArgumentError, DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from automl_plugins._arguments import check_kind
from automl_plugins.addresses import as_database, as_path, without_password
from automl_plugins.formats import one_line

T = TypeVar("T")

_ATTEMPTS = 6  # of a transaction that others disturb; the waits between them add up to 0.3 s
RESCUE = "Restore a copy or an export of it, or save what is left with sqlite3 FILE .recover."
_DAMAGED = ("malformed", "not a database", "corrupt", "could not decode")  # as SQLite says it
_FULL = ("is full", "no space", "disk i/o error")
_LONGEST_WAIT = (2**31 - 1) // 1000  # seconds; SQLite counts milliseconds in 32 bits
_DEADLOCK = ("40001", "40P01")  # SQLSTATE of serialisation failures and deadlocks


class StoreError(RuntimeError):
    """A store that cannot be used: damaged, of a newer version, another database, locked, gone.

    Example::

        try:
            MetaStore("README.md")
        except StoreError as error:
            print(error)
    """


def parse_url(url: str | os.PathLike[str]) -> URL:
    """The address of a database; a path without ``://`` is an SQLite file.

    TypeError for anything else, ValueError for one that cannot be read, and for another kind of
    database or one in memory.
    """
    check_kind("A store", url, str | os.PathLike, "a path or the address of a database")
    text = os.fspath(url)
    if "\0" in text:
        raise ValueError(f"No file has the name {text!r}, with a character 0 in it.")
    if "://" not in text:
        parsed = URL.create("sqlite", database=text)
    else:
        try:
            parsed = sa.make_url(text)
        except (ArgumentError, ValueError) as error:
            raise ValueError(f"The address of the store cannot be read: {error}") from None
        if (parsed.database or "").startswith("file:"):
            raise ValueError(f"A store is named by its file, not by a URI as in {text!r}.")
    kind = parsed.drivername.split("+")[0]
    if kind in ("postgresql", "postgres"):
        # Without a driver SQLAlchemy would take psycopg2.
        plain = parsed.drivername == kind
        return parsed.set(drivername="postgresql+psycopg") if plain else parsed
    if kind != "sqlite":
        raise ValueError(
            f"A store is sqlite:///FILE, a path, or postgresql://USER@HOST/DATABASE; {kind} is not"
            " supported."
        )
    if parsed.drivername not in ("sqlite", "sqlite+pysqlite"):
        raise ValueError(f"A store takes Python's own driver: sqlite:///FILE, got {text!r}.")
    if not parsed.database or parsed.database == ":memory:":
        raise ValueError(
            "A store keeps its runs in a file: name one, as in sqlite:///memory.db. For runs that"
            " need not be kept, MetaDataset.from_records takes them as they are."
        )
    if parsed != URL.create(parsed.drivername, database=parsed.database):
        raise ValueError(
            f"A store is sqlite:///FILE without a host or options, got {without_password(text)!r}:"
            " timeout= is an argument of MetaStore, and a file with ? in its name is a path."
        )
    return parsed.set(database=str(as_path(parsed.database).absolute()))


class Database:
    """Connections to one database, for all threads of a process.

    They are opened when they are needed. Those that are not in use are closed before the process
    is forked: a child that inherited one would share its locks. Do not fork while another thread
    is in a transaction. A transaction waits ``timeout`` seconds for those of others.
    """

    def __init__(self, url: URL, *, timeout: float) -> None:
        self.url = url
        self.timeout = min(timeout, _LONGEST_WAIT)
        self._lock = threading.Lock()
        self._opening = threading.Lock()
        self._engine: Engine | None = None
        self._known: tuple[int, int] | None = None  # the file, see ``remember_file``
        _databases.add(self)

    @property
    def is_sqlite(self) -> bool:
        """Whether the database is a file of this machine."""
        return self.url.get_backend_name() == "sqlite"

    @property
    def file(self) -> Path:
        """Path of an SQLite database."""
        return Path(str(self.url.database))

    def __str__(self) -> str:
        return self.address(hide_password=True)

    def address(self, *, hide_password: bool) -> str:
        """The inverse of ``parse_url``; the password is hidden if asked for."""
        if self.url == URL.create("sqlite", database=self.url.database):
            return as_database(self.file)
        whole = self.url.render_as_string(hide_password=False)
        return without_password(whole) if hide_password else whole

    def read(self, work: Callable[[Connection], T]) -> T:
        """``work`` in a transaction that sees one state; StoreError if it cannot be read."""
        options = {} if self.is_sqlite else {"isolation_level": "REPEATABLE READ"}
        return self._transact(work, options)

    def write(self, work: Callable[[Connection], T]) -> T:
        """``work`` in a transaction, run again from the start where others were in its way."""
        # SQLite refuses one that has read, and would write while another does, without waiting.
        return self._transact(work, {"sqlite_begin": "IMMEDIATE"} if self.is_sqlite else {})

    def remember_file(self) -> None:
        """Take the SQLite file that is there now for the one that is meant."""
        self._known = _identity(self.file) if self.is_sqlite else None

    def follow_file(self, prepare: Callable[[Database], None]) -> bool:
        """Open the file anew, and prepare it, if it was removed since, or is another one.

        What is open would still write to the old one, which nobody reads. Returns whether it was.
        """
        with self._opening:  # one thread does it
            if not self.is_sqlite or _identity(self.file) == self._known:
                return False
            self.close()
            prepare(self)
            return True

    def checkpoint(self) -> None:
        """Move what was written into an SQLite file itself and empty its journal, if it can be."""
        if self.is_sqlite:
            with contextlib.suppress(DBAPIError), self._connect() as connection:
                # SQLAlchemy would begin a transaction, in which SQLite refuses it.
                raw = connection.connection.driver_connection
                assert raw is not None
                raw.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def close(self) -> None:
        """Close all connections that are not in use; the next transaction opens one again."""
        with self._lock:
            if self._engine is not None:
                self._engine.dispose()

    def forget(self) -> None:
        """Drop connections inherited from the parent process without closing them."""
        # A thread of the parent may hold the old locks for ever.
        self._lock, self._opening = threading.Lock(), threading.Lock()
        if self._engine is not None:
            self._engine.dispose(close=False)
            self._engine = None

    def _transact(self, work: Callable[[Connection], T], options: dict[str, Any]) -> T:
        for attempt in range(_ATTEMPTS):
            # A file read as immutable may change all the same, which SQLite does not notice.
            frozen = self.is_sqlite and is_frozen(self.file)
            before = _content(self.file) if frozen else None
            try:
                with self._connect() as connection:
                    connection = connection.execution_options(**options)
                    with connection.begin():
                        found = work(connection)
                if before is None or _content(self.file) == before:
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
                # A store that nobody closes leaves no open connection behind.
                weakref.finalize(self, self._engine.dispose)
            engine = self._engine
        return engine.connect()

    def _make_engine(self) -> Engine:
        if self.is_sqlite:
            if is_frozen(self.file):  # for each transaction anew: others may have begun to write
                engine = sa.create_engine(
                    self.url,
                    creator=lambda: read_only(self.file, self.timeout),
                    poolclass=sa.pool.NullPool,
                )
            else:
                engine = sa.create_engine(
                    self.url, connect_args={"timeout": self.timeout}, pool_timeout=self.timeout
                )
            # Settings belong to a connection, not to the file.
            event.listen(engine, "connect", _set_up)
            event.listen(engine, "begin", _begin)
            return engine
        try:
            # A server may have closed a connection that was not in use.
            return sa.create_engine(self.url, pool_pre_ping=True, pool_timeout=self.timeout)
        except ModuleNotFoundError as error:
            raise ModuleNotFoundError(
                f"A PostgreSQL store needs a driver, {error.name} is not installed:"
                " pip install 'psycopg[binary]'",
                name=error.name,
            ) from None

    def _explain(self, error: DBAPIError | PoolTimeoutError) -> StoreError:
        cause = one_line(str(error.orig if isinstance(error, DBAPIError) else error))
        text = cause.lower()
        if "locked" in text or isinstance(error, PoolTimeoutError):
            advice = f" Others kept it busy for more than {self.timeout:g} s; try again."
        elif any(sign in text for sign in _DAMAGED):
            advice = f" The file is damaged; nothing was written. {RESCUE}"
        elif "readonly" in text:
            advice = (
                " This user may read it, not write: record to a store of your own, or ask for the"
                " right to write to the file and its folder."
            )
        elif any(sign in text for sign in _FULL):
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
    # What was committed survives a power cut, and what was deleted is overwritten.
    *("foreign_keys=ON", "synchronous=FULL", "secure_delete=ON"),
    # A file from somebody else: its pages are checked, and no function is called by its schema.
    *("cell_size_check=ON", "trusted_schema=OFF"),
)


def _set_up(connection: Any, _: object) -> None:
    connection.isolation_level = None  # transactions begin where `_begin` says, and nowhere else
    for setting in _SETTINGS:
        connection.execute(f"PRAGMA {setting}")


def _begin(connection: Connection) -> None:
    # By itself sqlite3 begins one before it writes: several reads would see several states.
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


def is_frozen(path: Path) -> bool:
    """Whether this user may not write the file, which exists, or its folder."""
    if not path.exists():
        return False
    return not (os.access(path, os.W_OK) and os.access(path.resolve().parent, os.W_OK))


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
    path = path.resolve()  # it is not beside a link
    return path.with_name(f"{path.name}-wal")


def _identity(path: Path) -> tuple[int, int] | None:
    """What tells a file from another one of the same name; None if it cannot be found."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _content(path: Path) -> tuple[int, int, bool]:
    """Facts of a file that change when it is written."""
    status = path.stat()
    return status.st_mtime_ns, status.st_size, _log_of(path).exists()
