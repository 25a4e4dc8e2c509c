"""Recognise a store, make a new one, bring an old one up to date."""

from __future__ import annotations

import contextlib
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from automl_plugins.addresses import as_database

from . import schema
from .connection import Database
from .errors import StoreError

_HEADER = b"SQLite format 3\0"
_LOCK = 0x6D657461  # of PostgreSQL's advisory locks, while tables are made


def _from_0(connection: Connection) -> None:
    """Version 0, which was never released, had no budget in its runs."""
    connection.execute(sa.text("ALTER TABLE meta_runs ADD COLUMN budget DOUBLE PRECISION"))


MIGRATIONS: dict[int, Callable[[Connection], None]] = {0: _from_0}
"""What turns a store of each earlier version into one of the next."""


def open_store(database: Database) -> None:
    """Make the tables of a new store and migrate those of an old one, in one transaction.

    Raises:
        StoreError: For a file or database of something else, a damaged file, and a newer version;
            none of them is changed.
    """
    if database.is_sqlite:
        assert database.url.database is not None
        recognise_file(Path(database.url.database))
    if database.read(_version) == schema.VERSION:
        return
    if database.is_sqlite:
        _let_readers_read(database)
    database.write(_bring_up_to_date)


def recognise_file(path: Path) -> None:
    """Look at an SQLite file without changing it.

    Raises:
        StoreError: If it is neither a store nor empty nor new.
    """
    if not path.parent.is_dir():
        raise StoreError(f"{path} cannot be made: there is no folder {path.parent}.")
    if path.is_dir():
        raise StoreError(f"{path} is a folder: name a file in it.")
    if not path.exists() or not path.stat().st_size:
        return
    with path.open("rb") as file:
        if file.read(len(_HEADER)) != _HEADER:
            raise StoreError(
                f"{path} is no SQLite file, or it is damaged; it was left as it is. Name another"
                " file, or restore a copy or an export of it."
            )
    try:
        with contextlib.closing(
            sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True, timeout=60)
        ) as connection:
            rows = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
            names = {name for (name,) in rows}
            if schema.schema.name in names:
                told = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
                if told != "ok":
                    raise sqlite3.DatabaseError(" ".join(told.split()))
    except sqlite3.OperationalError as error:
        raise StoreError(f"{path} cannot be read: {error}.") from error
    except sqlite3.DatabaseError as error:
        raise StoreError(
            f"{path} is damaged ({error}); it was left as it is. Restore a copy or an export of"
            " it, or save what is left with the command sqlite3 FILE .recover."
        ) from error
    foreign = sorted(name for name in names if not name.startswith("sqlite_"))
    if foreign and schema.schema.name not in names:
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
    """Version of the store, None where there is none yet.

    Raises:
        StoreError: If it is newer than this code, or older than all migrations.
    """
    inspector = sa.inspect(connection)
    if not inspector.has_table(schema.schema.name):
        taken = [table for table in schema.metadata.tables if inspector.has_table(table)]
        if taken:
            raise StoreError(
                f"The database has a table {taken[0]}, but not of a store: use another database"
                " or schema."
            )
        return None
    version = connection.execute(sa.select(schema.schema.c.version)).scalar()
    if not isinstance(version, int) or (version < schema.VERSION and version not in MIGRATIONS):
        raise StoreError(f"The store has the unknown version {version}.")
    if version > schema.VERSION:
        raise StoreError(
            f"The store has version {version}, this automl_plugins knows {schema.VERSION}; it was"
            " left as it is. A newer automl_plugins opens it."
        )
    return version


def _bring_up_to_date(connection: Connection) -> None:
    if connection.dialect.name == "postgresql":
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_LOCK)))
    version = _version(connection)  # others may have been quicker
    if version is None:
        schema.metadata.create_all(connection)
        connection.execute(schema.schema.insert().values(version=schema.VERSION))
        return
    for old in range(version, schema.VERSION):
        MIGRATIONS[old](connection)
        connection.execute(schema.schema.update().values(version=old + 1))


def _let_readers_read(database: Database) -> None:
    """Write-ahead logging: readers and the writer do not wait for each other; kept in the file."""
    assert database.url.database is not None
    end = time.monotonic() + database.timeout
    with contextlib.closing(
        sqlite3.connect(database.url.database, timeout=database.timeout)
    ) as connection:
        while True:
            try:
                connection.execute("PRAGMA journal_mode=WAL")
                return
            except sqlite3.OperationalError as error:  # it does not wait for the others
                if "locked" not in str(error) or time.monotonic() > end:
                    raise StoreError(f"{database}: {error}.") from error
                time.sleep(0.01)
