"""Finished runs and search spaces in plain JSON values, and files of them.

A file, an export of a store or a memory that comes with the package, is JSON (without NaN and
Infinity), compressed with xz where the name ends in ``.json.xz``. Search spaces and distinct
configurations are written once; runs refer to them by index, in columns.
"""

from __future__ import annotations

import hashlib
import json
import lzma
import math
import os
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from ConfigSpace import ConfigurationSpace

from automl_plugins.records.task_record import TaskRecord
from automl_plugins.records.trial import Status
from automl_plugins.spaces.choices import DECODERS, ENCODERS
from automl_plugins.spaces.values import choices_of

FloatArray = npt.NDArray[np.float64]

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
    texts: list[list[str]] = []  # 1, 1.0 and True are equal, their texts are not
    distinct: dict[str, dict[str, Any]] = {}
    entries = []
    for stored in searches:
        record = stored.record
        space = None
        if record.space is not None:
            space = spaces.setdefault(encode(plain_space(record.space)), len(spaces))
        configurations = plain_configurations(record)
        texts.append(list(map(encode, configurations)))
        distinct.update(zip(texts[-1], configurations, strict=True))
        evident = np.where(np.isnan(record.losses), Status.FAILED, Status.COMPLETE)
        entry: dict[str, Any] = {
            "task": record.name,
            "meta_features": plain_meta_features(record.meta_features, task=record.name),
            "tags": plain_tags(record.tags, task=record.name),
            "framework": record.framework,
            "seed": None if record.seed is None else int(record.seed),
            "space": space,
            "status": None if (record.status == evident).all() else record.status.tolist(),
        }
        for name in _COLUMNS:
            column = plain_column(getattr(record, name), name=name, task=record.name)
            entry[name] = None if all(v is None for v in column) else column
        if stored.search:
            entry |= {"search": stored.search, "keys": list(stored.keys)}
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


_PLAIN = frozenset({str, int, float, bool, type(None)})
_RULE = "a value is text, a number, a bool or None"
_INSTEAD = 'Offer it as text, such as "inf", and turn it into the number where it is used.'

# Sorted, so that equal configurations are equal text.
encode = json.JSONEncoder(allow_nan=False, separators=(",", ":"), sort_keys=True).encode


def plain_configuration(configuration: Mapping[str, Any], *, where: str) -> dict[str, Any]:
    """Values by name as builtins; NaN is an inactive hyperparameter and left out.

    Errors call it ``where``: TypeError for a name that is no text, or a value that is neither
    text, number, bool nor None, ValueError for an infinite value.
    """
    plain = {}
    for name, value in configuration.items():
        kind = type(value)
        if kind is not float and kind not in _PLAIN:
            value = value.item() if isinstance(value, np.generic) else value
            if type(value) not in _PLAIN:
                raise TypeError(
                    f"{where}: {name}={value!r} is a {kind.__name__}; {_RULE}. Record its repr, or"
                    " its place among the choices."
                )
        if type(name) is not str:
            raise TypeError(f"{where}: {name!r} names a hyperparameter, but it is no text.")
        if isinstance(value, float) and not math.isfinite(value):
            if math.isinf(value):
                raise ValueError(f"{where}: {name}={value} must be finite. {_INSTEAD}")
            continue
        plain[name] = value
    return plain


def plain_configurations(record: TaskRecord) -> list[dict[str, Any]]:
    """``plain_configuration`` of each run; an error names the task and the run."""
    told = f"Task {record.name!r}, run "
    return [
        plain_configuration(configuration, where=told + str(row))
        for row, configuration in enumerate(record.configurations)
    ]


def plain_column(values: FloatArray, *, name: str, task: str) -> list[float | None]:
    """A column (n,) of floats with None for NaN; ValueError for an infinite entry."""
    if np.isinf(values).any():
        row = int(np.flatnonzero(np.isinf(values))[0])
        raise ValueError(
            f"Task {task!r}: {name} must be finite or NaN; row {row} has {values[row]}."
        )
    return [None if value != value else value for value in values.tolist()]


def plain_meta_features(meta_features: Mapping[str, Any], *, task: str) -> dict[str, float | None]:
    """Meta-features by name as floats, None for NaN.

    Raises:
        TypeError: For one that is no number.
        ValueError: For an infinite one.
    """
    plain: dict[str, float | None] = {}
    for name, value in meta_features.items():
        number = isinstance(value, int | float | np.integer | np.floating | np.bool_)
        if not number or type(name) is not str:
            raise TypeError(
                f"Task {task!r}: the meta-feature {name!r} must be a number, {value!r}."
            )
        value = float(value)
        if math.isinf(value):
            raise ValueError(
                f"Task {task!r}: the meta-feature {name} must be finite or NaN, not {value}."
            )
        plain[name] = None if math.isnan(value) else value
    return plain


def meta_features_of(plain: Mapping[str, float | None]) -> dict[str, float]:
    """The reverse of ``plain_meta_features``."""
    return {name: math.nan if value is None else value for name, value in plain.items()}


def plain_tags(tags: Mapping[str, str], *, task: str) -> dict[str, str]:
    """Tags by name; TypeError for one that is no text."""
    for name, value in tags.items():
        if not isinstance(name, str) or not isinstance(value, str):
            raise TypeError(f"Task {task!r}: the tag {name!r} must be text, got {value!r}.")
    return {str(name): str(value) for name, value in tags.items()}


def plain_space(space: ConfigurationSpace) -> dict[str, Any]:
    """ConfigSpace's own serialised form, without its version: equal spaces, equal text.

    The seed and the ``meta`` of the space as a whole are no part of it.

    Raises:
        TypeError: For a choice that is neither text, number, bool nor None.
        ValueError: For a choice that is infinite or NaN.
    """
    for name, hyperparameter in space.items():
        for value in choices_of(hyperparameter) or ():
            if type(value) not in _PLAIN:
                raise TypeError(
                    f"The search space cannot be stored: {name} has the choice {value!r}, a"
                    f" {type(value).__name__}; {_RULE}."
                )
            if isinstance(value, float) and not math.isfinite(value):
                raise ValueError(
                    f"The search space cannot be stored: {name} has the choice {value}, and"
                    f" numbers in a store are finite. {_INSTEAD}"
                )
    plain: dict[str, Any] = space.to_serialized_dict(ENCODERS)
    del plain["python_module_version"]
    return dict(json.loads(json.dumps(plain, default=_item)))


def space_of(plain: Mapping[str, Any]) -> ConfigurationSpace:
    """The reverse of ``plain_space``."""
    copy = json.loads(json.dumps(plain))  # ConfigSpace takes the dictionary to pieces
    return ConfigurationSpace.from_serialized_dict(copy, DECODERS)


def _item(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{value!r} is a {type(value).__name__}; {_RULE}.")


def digest(*parts: object, size: int = 16) -> str:
    """Hash of some values, ``size`` bytes as hexadecimal text."""
    text = "\0".join(map(str, parts))
    return hashlib.blake2b(text.encode(), digest_size=size).hexdigest()


LONGEST_NAME = 500  # characters: an index of PostgreSQL has a limit


def check_name(name: str, what: str) -> str:
    """A name that every database can hold, else TypeError or ValueError."""
    if not 0 < len(check_text(name, what)) <= LONGEST_NAME:
        raise ValueError(f"{what} must have 1 to {LONGEST_NAME} characters, got {len(name)}.")
    return name


def check_text(text: str, what: str) -> str:
    """Text that every database can hold, else TypeError or ValueError."""
    if not isinstance(text, str):
        raise TypeError(f"{what} must be text, got {text!r}.")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{what} is no valid text: {text!r}.") from None
    if "\0" in text:
        raise ValueError(f"{what} has a character that cannot be stored: {text!r}.")
    return text
