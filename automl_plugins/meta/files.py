"""Files of finished runs, as JSON.

A file, an export of a store or a memory that comes with the package, is JSON (without NaN and
Infinity), compressed with xz where the name ends in ``.json.xz``. Search spaces and distinct
configurations are written once; runs refer to them by index, in columns. It begins with the digest
of what follows.

Whoever reads a file may not know who wrote it: it is data and never code, its size in memory is
limited, and everything in it is checked before it is used.
"""

from __future__ import annotations

import hashlib
import json
import lzma
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import IO, Any

import numpy as np

from automl_plugins._arguments import check_integer
from automl_plugins.addresses import as_path, refuse_folder, replacing
from automl_plugins.meta.plain import (
    COLUMNS,
    PLAIN_TYPES,
    VALUE_RULE,
    check_name,
    check_text,
    encode,
    parse_meta_features,
    parse_space,
    plain_columns,
    plain_configurations,
    plain_space,
    plain_tags,
    plain_task,
)
from automl_plugins.records.task_record import TaskRecord
from automl_plugins.records.trial import Status

FORMAT = "automl_plugins records"
VERSION = 1

LARGEST = 2**28  # bytes of JSON: a million runs, and memory for ten times as much to parse it
_PARTS = 2**22  # lists and objects in it: the smallest take thirty times the memory of their text
_XZ = b"\xfd7zXZ\x00"
_XZ_MEMORY = 2**27  # bytes that decompressing may take; our own files take 9 MB
_PRESET = 1  # of xz: eight times as fast as the usual 6, for a tenth more
_DIGEST = 16  # bytes
_HEAD_BYTES = 64  # of a file, in which the digest is
_HEAD = re.compile(rb'\{"digest":"([^"]*)",')
# What reading anything but our own data may raise.
DAMAGE = (LookupError, TypeError, ValueError, AttributeError, RecursionError, ArithmeticError)


@dataclass(frozen=True)
class StoredSearch:
    """Runs of one search, with their names in it, which are empty where there are none."""

    record: TaskRecord
    search: str = ""  # unique in its task
    keys: tuple[str, ...] = ()  # name of each run (n), unique in the search


def read_records(path: str | os.PathLike[str]) -> list[TaskRecord]:
    """Read the runs in a file; those of equal configurations share one dictionary.

    Raises:
        ValueError: For a file of something else, one that is damaged or cut short, too large, or
            of a newer version, and for a folder.
    """
    return [stored.record for stored in read_searches(path)]


def write_searches(
    path: str | os.PathLike[str], searches: Sequence[StoredSearch], *, preset: int = _PRESET
) -> None:
    """Write runs to one file: all of it, or nothing.

    What is written is read back exactly, floats to the last bit. The order of the
    hyperparameters within a configuration is not kept; a NaN among them is left out.

    Args:
        path: A name that ends in ``.json.xz`` (compressed) or ``.json``; a file of that name is
            replaced.
        searches: Runs, with the identity by which a store recognises them.
        preset: Preset of xz, from 0 (fast) to 9 (small).

    Raises:
        TypeError: For a value that is neither text, number, bool nor None.
        ValueError: For another suffix, an infinite value, what no store would import, such as a
            negative seed or a name of more than 500 characters, or more than can be read.
    """
    path = Path(path)
    if not path.name.endswith((".json", ".json.xz")):
        raise ValueError(f"{path.name} must end in .json.xz (compressed) or .json.")
    text = encode(_document(searches)).encode()
    data = b'{"digest":"' + _digest_of(text[1:]) + b'",' + text[1:]  # as its first entry
    if excess := _excess(data):
        raise ValueError(
            f"{path.name} was not written, for it could not be read: it would have {excess}."
            " Write some tasks at a time."
        )
    if path.name.endswith(".xz"):
        data = lzma.compress(data, preset=preset)
    with replacing(path) as file:
        file.write(data)


def check_replaceable(path: str | os.PathLike[str]) -> None:
    """Raise ValueError if there is a file of another kind, such as a run history of SMAC."""
    path = as_path(path)
    if not path.is_file() or not path.stat().st_size:
        return
    opened = lzma.open if path.name.endswith(".xz") else open
    try:
        with opened(path, "rb") as file:
            begins = file.read(_HEAD_BYTES)
    except (lzma.LZMAError, EOFError):
        begins = b""
    if not _HEAD.match(begins):
        raise ValueError(f"{path} exists, and no export has written it: name another file.")


def read_searches(path: str | os.PathLike[str]) -> list[StoredSearch]:
    """``read_records`` with the identity of searches and runs; the same errors."""
    path = as_path(path)
    refuse_folder(path)
    with path.open("rb") as file:
        try:
            data = _read_bounded(file)
            excess = _excess(data)
            # What is too large is not parsed, and it is not damaged either.
            document = None if excess else json.loads(data, parse_constant=_refuse)
        except (lzma.LZMAError, EOFError, ValueError, RecursionError) as error:
            raise ValueError(
                f"{path} is not a file of recorded runs, or it is damaged or cut short ({error})."
            ) from None
    if excess:
        raise ValueError(f"{path} is too large: it has {excess}. Write some tasks at a time.")
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise ValueError(
            f"{path} is not a file of recorded runs: it does not say {FORMAT!r}. Such files are"
            " written by MetaStore.export."
        )
    # Only now, for what is of another kind should not be called damaged.
    if not _is_sealed(data):
        raise ValueError(
            f"{path} is damaged: its content is not that which was written. If you have changed it"
            ' yourself, remove the "digest" at its beginning.'
        )
    version = document.get("version")
    if isinstance(version, int) and version > VERSION:
        raise ValueError(
            f"{path} has version {version} of the format, this automl_plugins knows {VERSION}:"
            " a newer automl_plugins reads it."
        )
    try:
        return _searches(document)
    except DAMAGE as error:
        raise ValueError(f"{path} is damaged: {type(error).__name__}: {error}") from error


def _is_sealed(text: bytes) -> bool:
    """Whether a text has the digest that it begins with; true for one without a digest."""
    head = _HEAD.match(text)
    # A view, for a slice would copy the whole text.
    return head is None or head[1] == _digest_of(memoryview(text)[head.end() :])


def _digest_of(text: bytes | memoryview) -> bytes:
    return hashlib.blake2b(text, digest_size=_DIGEST).hexdigest().encode()


def _read_bounded(file: IO[bytes]) -> bytes:
    """What is in a file, decompressed if it is xz, up to a little more than ``LARGEST``."""
    data = file.read(LARGEST + 1)  # one more, by which ``_excess`` sees that it is too large
    if data.startswith(_XZ):
        decoder = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_XZ_MEMORY)
        first = decoder.decompress(data, 1)
        if first != b"{":  # a file of nothing but zeros unpacks without end
            raise ValueError("it does not hold JSON")
        data = first + decoder.decompress(b"", LARGEST)
        if not decoder.eof and len(data) <= LARGEST:
            raise EOFError("the compressed data end too early")
        if decoder.unused_data:
            raise ValueError("something follows the compressed data")
    return data


def _excess(data: bytes) -> str:
    """What there is too much of for JSON to be parsed; empty if it can be."""
    if len(data) > LARGEST:
        return f"more than {LARGEST >> 20} MB of JSON"
    if data.count(b"[") + data.count(b"{") > _PARTS:
        return f"more than {_PARTS} lists and objects, or brackets in texts"
    return ""


def _refuse(constant: str) -> float:
    raise ValueError(f"{constant} is not JSON")


def _document(searches: Sequence[StoredSearch]) -> dict[str, Any]:
    spaces: dict[str, int] = {}
    texts: list[list[str]] = []  # 1, 1.0 and True are equal, their texts are not
    distinct: dict[str, dict[str, Any]] = {}
    entries = []
    for stored in searches:
        entry = _entry(stored)
        if (space := stored.record.space) is not None:
            entry["space"] = spaces.setdefault(encode(plain_space(space)), len(spaces))
        configurations = plain_configurations(stored.record)
        texts.append(list(map(encode, configurations)))
        distinct.update(zip(texts[-1], configurations, strict=True))
        entries.append(entry)
    # Configurations with the same hyperparameters are a block of columns.
    blocks: dict[tuple[str, ...], list[str]] = {}
    for text, configuration in distinct.items():
        blocks.setdefault(tuple(sorted(configuration)), []).append(text)
    index = {text: i for i, text in enumerate(chain.from_iterable(blocks.values()))}
    for entry, of_runs in zip(entries, texts, strict=True):
        entry["configurations"] = [index[text] for text in of_runs]
    return {
        "format": FORMAT,
        "version": VERSION,
        "spaces": [json.loads(text) for text in spaces],
        "configurations": [
            {
                "names": list(names),
                "n": len(rows),
                "columns": [[distinct[text][name] for text in rows] for name in names],
            }
            for names, rows in blocks.items()
        ],
        "records": entries,
    }


def _entry(stored: StoredSearch) -> dict[str, Any]:
    """A search without its space and configurations, which several may share."""
    record = stored.record
    check_integer("seed", record.seed, 0, optional=True)
    # Statuses that follow from the losses are left out.
    evident = np.where(np.isnan(record.losses), Status.FAILED, Status.COMPLETE)
    task = plain_task(record.name, record.meta_features, record.tags)
    entry: dict[str, Any] = {
        "task": task.pop("name"),
        **task,
        "framework": check_text(record.framework, "framework"),
        "seed": None if record.seed is None else int(record.seed),
        "space": None,
        "status": None if (record.status == evident).all() else record.status.tolist(),
    }
    for name, column in plain_columns(record).items():
        entry[name] = None if all(v is None for v in column) else column
    if stored.search:
        keys = [check_name(key, "The key of a run") for key in stored.keys]
        entry |= {"search": check_name(stored.search, "The name of a search"), "keys": keys}
    return entry


def _searches(document: dict[str, Any]) -> list[StoredSearch]:
    spaces = [parse_space(plain) for plain in document["spaces"]]
    configurations: list[dict[str, Any]] = []
    for block in document["configurations"]:
        names, n = block["names"], block["n"]
        columns = block["columns"]
        # Equal ones are written once, so at most one has no hyperparameter.
        if not columns and n != 1:
            raise ValueError(f"{n} configurations without a hyperparameter")
        for name, column in zip(names, columns, strict=True):
            if type(name) is not str or not PLAIN_TYPES.issuperset(map(type, column)):
                raise TypeError(f"{name!r} has something else than values; {VALUE_RULE}")
        rows = zip(*columns, strict=True) if columns else [()]
        configurations += [dict(zip(names, row, strict=True)) for row in rows]
    found = []
    for entry in document["records"]:
        places = entry["configurations"]
        if places and min(places) < 0:  # which Python would count from the end
            raise ValueError("a configuration has a negative index")
        nothing = [None] * len(places)  # a column without any value is written as null
        given = {name: np.array(entry[name] or nothing, dtype=np.float64) for name in COLUMNS}
        record = TaskRecord(
            check_text(entry["task"], "The name of a task"),
            [configurations[place] for place in places],
            **given,
            status=np.array(entry["status"] or [], dtype=np.int64),
            space=None if entry["space"] is None else spaces[entry["space"]],
            meta_features=parse_meta_features(entry["meta_features"], task=entry["task"]),
            tags=plain_tags(entry["tags"], task=entry["task"]),
            framework=check_text(entry["framework"], "framework"),
            seed=None if entry["seed"] is None else int(entry["seed"]),
        )
        search, keys = entry.get("search", ""), entry.get("keys", ())
        texts = [check_text(text, "The name of a search or run") for text in (search, *keys)]
        found.append(StoredSearch(record, search, tuple(texts[1:])))
    return found
