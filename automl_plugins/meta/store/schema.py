"""The tables of a store: recognised in a database, made in a new one."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import time
from pathlib import Path

import sqlalchemy as sa

from automl_plugins.addresses import STORE, as_database, holds_studies, is_sqlite
from automl_plugins.formats import one_line

from .connection import RESCUE, Database, StoreError, read_only

VERSION = 1
_LOCK = 0x6D657461  # "meta"; of PostgreSQL's advisory locks, while tables are made

# A run belongs to a search, a search to a task. Deleting one deletes all that belongs to it.
metadata = sa.MetaData()

# SQLite numbers rows by itself only in a column that is called INTEGER.
_Id = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def _id() -> sa.Column[int]:
    return sa.Column("id", _Id, primary_key=True)


def _parent(name: str, table: str) -> sa.Column[int]:
    return sa.Column(name, _Id, sa.ForeignKey(f"{table}.id", ondelete="CASCADE"), nullable=False)


def _text(name: str, *, unique: bool = False) -> sa.Column[str]:
    return sa.Column(name, sa.Text, nullable=False, unique=unique)


schema = sa.Table(STORE, metadata, sa.Column("version", sa.Integer, nullable=False))

# Ids are never given again (``sqlite_autoincrement``): others may hold those of deleted rows.
tasks = sa.Table(
    "meta_tasks",
    metadata,
    _id(),
    _text("name", unique=True),
    _text("meta_features"),  # JSON: name -> number or null
    _text("tags"),  # JSON: name -> text
    sqlite_autoincrement=True,
)

spaces = sa.Table(
    "meta_spaces",
    metadata,
    _id(),
    _text("digest", unique=True),
    _text("space"),  # JSON: ConfigSpace's serialised form
    sqlite_autoincrement=True,
)

searches = sa.Table(
    "meta_searches",
    metadata,
    _id(),
    _parent("task_id", "meta_tasks"),
    _text("name"),
    sa.Column("space_id", _Id, sa.ForeignKey("meta_spaces.id"), index=True),
    _text("framework"),
    sa.Column("seed", sa.Text),  # an integer of any size
    sa.UniqueConstraint("task_id", "name"),
    sqlite_autoincrement=True,
)

runs = sa.Table(
    "meta_runs",
    metadata,
    _id(),
    _parent("search_id", "meta_searches"),
    _text("key"),
    _text("configuration"),  # JSON: name -> value
    sa.Column("loss", sa.Double),
    sa.Column("seconds", sa.Double),
    sa.Column("status", sa.SmallInteger, nullable=False),  # records.trial.Status
    sa.Column("budget", sa.Double),
    sa.Column("time", sa.Double),  # Unix time of the end
    sa.UniqueConstraint("search_id", "key"),
)


def prepare_tables(database: Database, *, make: bool = True) -> None:
    """Make the tables of a new store, in one transaction.

    Raises:
        StoreError: For a file or database of something else, a damaged file, a newer version, and
            unless ``make`` one without a store; none of them is changed.
    """
    if database.is_sqlite:
        try:
            _recognise_file(database.file, database.timeout)
        except OSError as error:  # no right to look into the folder, or to read the file
            raise StoreError(f"{database} cannot be read: {error.strerror or error}.") from error
    version = database.read(_version)
    if version is None and not make:
        raise StoreError(
            f"{database} has no store in it. One is made by what records runs, or imports them."
        )
    if version is None:
        if database.is_sqlite:
            _let_readers_read(database)
        database.write(_make_tables)
    database.remember_file()


def _recognise_file(path: Path, timeout: float) -> None:
    """Look at an SQLite file; StoreError unless it is a store, empty or new."""
    if not path.parent.is_dir():
        raise StoreError(f"{path} cannot be made: there is no folder {path.parent}.")
    if path.is_dir():
        raise StoreError(f"{path} is a folder: name a file in it.")
    if not (path.exists() or os.access(path.parent, os.W_OK | os.X_OK)):
        raise StoreError(
            f"{path} cannot be made: this user may not write to the folder {path.parent}. Name a"
            " file elsewhere, or ask for the right to."
        )
    if not path.exists() or not path.stat().st_size:
        return
    if not is_sqlite(path):
        raise StoreError(
            f"{path} is not an SQLite file, or it is damaged; it was left as it is."
            f" {_suggest_instead(path)}"
        )
    try:
        with contextlib.closing(read_only(path, timeout)) as connection:
            rows = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
            names = {name for (name,) in rows}
            if schema.name in names:
                # One error is enough to refuse the file.
                found = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
                if found != "ok":
                    raise sqlite3.DatabaseError(found)
    except sqlite3.OperationalError as error:
        raise StoreError(f"{path} cannot be read: {error}.") from error
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        raise StoreError(
            f"{path} is damaged ({one_line(str(error))}); it was left as it is. {RESCUE}"
        ) from error
    foreign = sorted(name for name in names if not name.startswith("sqlite_"))
    if foreign and schema.name not in names:
        raise StoreError(_describe_foreign(path, foreign))


def _describe_foreign(path: Path, tables: list[str]) -> str:
    if holds_studies(tables):
        return (
            f"{path} holds studies of Optuna, it is not a store; it was left as it is. As a"
            f" memory: did you mean {as_database(path)!r}, which is read where Optuna is"
            " installed? A store needs a file of its own."
        )
    return (
        f"{path} is an SQLite file of something else, with the tables"
        f" {', '.join(tables[:5])}{', ...' if len(tables) > 5 else ''}; it was left as it"
        " is. Name a file of its own for the store."
    )


def _suggest_instead(path: Path) -> str:
    if path.name.endswith((".json", ".json.xz")):
        return f"An export is imported into a store: MetaStore('runs.db').import_({str(path)!r})."
    if path.name.endswith(".csv"):
        return (
            f"TaskRecord.from_frame(pandas.read_csv({str(path)!r}), name=..., loss=...) makes"
            " a record of the runs on one task, and a list of records is a memory."
        )
    if path.name.endswith(".log"):
        return "The journal file of a storage is a memory where Optuna is installed."
    return "Name another file, or restore a copy or an export of it."


def _version(connection: sa.Connection) -> int | None:
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
    if not isinstance(version, int) or version < VERSION:
        raise StoreError(f"The store has the unknown version {version}.")
    if version > VERSION:
        raise StoreError(
            f"The store has version {version}, this automl_plugins knows {VERSION}; it was"
            " left as it is. A newer automl_plugins opens it."
        )
    return version


def _make_tables(connection: sa.Connection) -> None:
    if connection.dialect.name == "postgresql":
        # Of two processes that make the same tables at once PostgreSQL refuses one.
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_LOCK)))
    if _version(connection) is None:  # others may have been quicker
        metadata.create_all(connection)
        connection.execute(schema.insert().values(version=VERSION))


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
