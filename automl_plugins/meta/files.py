"""One file of finished runs: exports of a store and the memories that come with the package.

JSON (without NaN and Infinity), compressed with xz where the name ends in ``.json.xz``. Search
spaces and distinct configurations are written once; runs refer to them by index, in columns.
"""

from __future__ import annotations

import json
import lzma
import os
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from automl_plugins.records.task_record import TaskRecord
from automl_plugins.records.trial import Status

from .encoding import (
    encode,
    meta_features_of,
    plain_column,
    plain_configurations,
    plain_meta_features,
    plain_space,
    plain_tags,
    space_of,
)

FORMAT = "automl_plugins records"
VERSION = 1

_XZ = b"\xfd7zXZ\x00"
_COLUMNS = ("losses", "seconds", "budget", "times")


@dataclass(frozen=True)
class StoredSearch:
    """Runs of one search, with their names in it.

    Attributes:
        record: The runs.
        search: Name of the search, unique in its task; empty where there is none.
        keys: Name of each run (n), unique in the search; empty where there are none.
    """

    record: TaskRecord
    search: str = ""
    keys: tuple[str, ...] = ()


def write_records(path: str | os.PathLike[str], records: Iterable[TaskRecord]) -> None:
    """Write runs to one file: all of it, or nothing.

    What is written is read back exactly, floats to the last bit. The order of the
    hyperparameters within a configuration is not kept; a NaN among them is left out.

    Args:
        path: A name that ends in ``.json.xz`` (compressed) or ``.json``; a file of that name is
            replaced.
        records: Runs by task.

    Raises:
        TypeError: For a value that is neither text, number, bool nor None.
        ValueError: For another suffix, or an infinite value.
    """
    write_searches(path, [StoredSearch(record) for record in records])


def read_records(path: str | os.PathLike[str]) -> list[TaskRecord]:
    """Read what ``write_records`` wrote; runs of equal configurations share one dictionary.

    Raises:
        ValueError: For a file of something else, one that is damaged or cut short, and one of a
            newer version.
    """
    return [stored.record for stored in read_searches(path)]


def write_searches(path: str | os.PathLike[str], searches: Sequence[StoredSearch]) -> None:
    """``write_records`` with the identity of searches and runs, for a store to recognise them."""
    path = Path(path)
    if not path.name.endswith((".json", ".json.xz")):
        raise ValueError(f"{path.name} must end in .json.xz (compressed) or .json.")
    data = encode(_document(searches)).encode()
    if path.name.endswith(".xz"):
        data = lzma.compress(data, preset=6)
    # Beside the file: a name can be replaced atomically only on one file system.
    partial = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        with partial.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)


def read_searches(path: str | os.PathLike[str]) -> list[StoredSearch]:
    """``read_records`` with the identity of searches and runs; the same errors."""
    path = Path(path)
    data = path.read_bytes()
    try:
        if data.startswith(_XZ):
            data = lzma.decompress(data)
        document = json.loads(data, parse_constant=_refuse)
    except (lzma.LZMAError, EOFError, ValueError) as error:
        raise ValueError(
            f"{path} is no file of recorded runs, or it is damaged or cut short ({error})."
        ) from None
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise ValueError(
            f"{path} is no file of recorded runs: it does not say {FORMAT!r}. Such files are"
            " written by write_records and MetaStore.export."
        )
    version = document.get("version")
    if isinstance(version, int) and version > VERSION:
        raise ValueError(
            f"{path} has version {version} of the format, this automl_plugins knows {VERSION}:"
            " a newer automl_plugins reads it."
        )
    try:
        return _searches(document)
    except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
        raise ValueError(f"{path} is damaged: {type(error).__name__}: {error}") from error


def _refuse(constant: str) -> float:
    raise ValueError(f"{constant} is no JSON")


def _document(searches: Sequence[StoredSearch]) -> dict[str, Any]:
    spaces: dict[str, int] = {}
    pool = _Pool()
    entries = []
    for stored in searches:
        record = stored.record
        space = None
        if record.space is not None:
            space = spaces.setdefault(encode(plain_space(record.space)), len(spaces))
        entry: dict[str, Any] = {
            "task": record.name,
            "meta_features": plain_meta_features(record.meta_features, task=record.name),
            "tags": plain_tags(record.tags, task=record.name),
            "framework": record.framework,
            "seed": None if record.seed is None else int(record.seed),
            "space": space,
            "configurations": [pool.place(c) for c in plain_configurations(record)],
            "status": None if _is_evident(record) else record.status.tolist(),
        }
        for name in _COLUMNS:
            column = plain_column(getattr(record, name), name=name, task=record.name)
            entry[name] = None if all(v is None for v in column) else column
        if stored.search:
            entry |= {"search": stored.search, "keys": list(stored.keys)}
        entries.append(entry)
    order = pool.order()
    for entry in entries:
        entry["configurations"] = [order[place] for place in entry["configurations"]]
    return {
        "format": FORMAT,
        "version": VERSION,
        "spaces": [json.loads(text) for text in spaces],
        "configurations": pool.columns(),
        "records": entries,
    }


def _is_evident(record: TaskRecord) -> bool:
    told = np.where(np.isnan(record.losses), Status.FAILED, Status.COMPLETE)
    return bool((record.status == told).all())


class _Pool:
    """Distinct configurations, in blocks of those with the same hyperparameters."""

    def __init__(self) -> None:
        self._places: dict[str, tuple[int, int]] = {}
        self._blocks: dict[tuple[str, ...], tuple[int, list[list[Any]]]] = {}

    def place(self, configuration: dict[str, Any]) -> tuple[int, int]:
        """Block and row of a configuration."""
        text = encode(configuration)  # 1, 1.0 and True are equal, their text is not
        if text not in self._places:
            names = tuple(sorted(configuration))
            block, rows = self._blocks.setdefault(names, (len(self._blocks), []))
            self._places[text] = (block, len(rows))
            rows.append([configuration[name] for name in names])
        return self._places[text]

    def order(self) -> dict[tuple[int, int], int]:
        """Index of each place when the blocks follow each other."""
        return {place: index for index, place in enumerate(sorted(self._places.values()))}

    def columns(self) -> list[dict[str, Any]]:
        """The blocks: names, number of rows, and the values of each name."""
        return [
            {
                "names": list(names),
                "n": len(rows),
                "columns": [[row[i] for row in rows] for i in range(len(names))],
            }
            for names, (_, rows) in self._blocks.items()
        ]


def _searches(document: dict[str, Any]) -> list[StoredSearch]:
    spaces = [space_of(plain) for plain in document["spaces"]]
    configurations: list[dict[str, Any]] = []
    for block in document["configurations"]:
        names, n = block["names"], block["n"]
        columns = block["columns"]
        rows = zip(*columns, strict=True) if columns else [()] * n
        configurations += [dict(zip(names, row, strict=True)) for row in rows]
    found = []
    for entry in document["records"]:
        places = entry["configurations"]
        if places and min(places) < 0:
            raise ValueError("a configuration has a negative index")
        # A column without any value is written as null.
        given = {name: np.array(entry[name] or [], dtype=np.float64) for name in _COLUMNS}
        losses = given.pop("losses")
        record = TaskRecord(
            entry["task"],
            [configurations[place] for place in places],
            losses,
            **given,
            status=np.array(entry["status"] or [], dtype=np.int64),
            space=None if entry["space"] is None else spaces[entry["space"]],
            meta_features=meta_features_of(entry["meta_features"]),
            tags=dict(entry["tags"]),
            framework=entry["framework"],
            seed=entry["seed"],
        )
        found.append(StoredSearch(record, entry.get("search", ""), tuple(entry.get("keys", ()))))
    return found
