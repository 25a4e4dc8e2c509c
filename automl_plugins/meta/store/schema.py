"""Tables of the store: what is kept, and nothing else.

A run belongs to a search, a search to a task. Deleting one deletes all that belongs to it.
"""

from __future__ import annotations

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
)

VERSION = 1

metadata = MetaData()

_Id = BigInteger().with_variant(Integer, "sqlite")


def _id() -> Column[int]:
    return Column("id", _Id, primary_key=True)


def _parent(name: str, table: str, *, nullable: bool = False) -> Column[int]:
    key = ForeignKey(f"{table}.id", ondelete="CASCADE")
    return Column(name, _Id, key, nullable=nullable)


schema = Table("meta_schema", metadata, Column("version", Integer, nullable=False))

tasks = Table(
    "meta_tasks",
    metadata,
    _id(),
    Column("name", Text, nullable=False, unique=True),
    Column("meta_features", Text, nullable=False),  # JSON: name -> number or null
    Column("tags", Text, nullable=False),  # JSON: name -> text
    sqlite_autoincrement=True,
)

spaces = Table(
    "meta_spaces",
    metadata,
    _id(),
    Column("digest", Text, nullable=False, unique=True),
    Column("space", Text, nullable=False),  # JSON: ConfigSpace's serialised form
    sqlite_autoincrement=True,
)

searches = Table(
    "meta_searches",
    metadata,
    _id(),
    _parent("task_id", "meta_tasks"),
    Column("name", Text, nullable=False),
    Column("space_id", _Id, ForeignKey("meta_spaces.id"), index=True),
    Column("framework", Text, nullable=False),
    Column("seed", Text),  # an integer of any size
    UniqueConstraint("task_id", "name"),
    sqlite_autoincrement=True,
)

runs = Table(
    "meta_runs",
    metadata,
    _id(),
    _parent("search_id", "meta_searches"),
    Column("key", Text, nullable=False),
    Column("configuration", Text, nullable=False),  # JSON: name -> value
    Column("loss", Double),
    Column("seconds", Double),
    Column("status", SmallInteger, nullable=False),  # history.Status
    Column("budget", Double),
    Column("time", Double),  # Unix time of the end
    UniqueConstraint("search_id", "key"),
)

artifacts = Table(
    "meta_artifacts",
    metadata,
    _id(),
    _parent("task_id", "meta_tasks"),
    Column("name", Text, nullable=False),
    Column("version", Text, nullable=False),
    Column("content", LargeBinary, nullable=False),  # npz of plain arrays
    UniqueConstraint("task_id", "name"),
)
