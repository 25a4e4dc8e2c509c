"""A replay described by a TOML file, for the command line."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from inspect import signature
from pathlib import Path
from typing import Any

from automl_plugins._arguments import check_kind, refuse_foreign
from automl_plugins.addresses import as_path, check_exists, refuse_folder
from automl_plugins.formats import format_count, join_names
from automl_plugins.frameworks import Method, load_adapter

from .csv_files import check_rows, read_csv
from .table import Table

_SETTINGS = ("budget", "unit", "seeds", "n_workers", "overhead", "max_trials", "n_jobs", "path")

_NO_ENTRIES = {"name": "the section names it", "space": "it is inferred"}
# The other entries are arguments of ``Table.from_frame``, read from its signature.
_ENTRIES_OF_A_TABLE = [
    *("file", "group"),
    *(n for n in signature(Table.from_frame).parameters if n not in ("frame", *_NO_ENTRIES)),
]


def read_config(path: Path) -> dict[str, Any]:
    """The arguments of ``replay`` that a TOML file describes.

    The top level has the arguments of ``replay`` (``seeds`` is a list). ``[tables.<name>]`` has
    ``file``, the arguments of ``Table.from_frame`` but ``name`` and ``space``, and optionally
    ``group``, a column that splits the file into several tables. ``[methods.<name>]`` has
    ``adapter``, ``optimizer`` and arguments of that adapter's ``optimizer``. Relative paths start
    at the folder of the TOML file.

    Raises:
        ValueError: If the file does not exist, or entries are missing, unknown or illegal.
        TypeError: If entries of the top level are of another kind.
        OSError: If a file cannot be read.
    """
    refuse_folder(path, "the TOML file")
    path = as_path(check_exists(str(path)))
    with path.open("rb") as file:
        try:
            config = tomllib.load(file)
        except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
            raise ValueError(f"{path} is not a TOML file: {error}") from error
    tables = _section(config, "tables", path)
    methods = _section(config, "methods", path)
    # What is left now are arguments of ``replay``.
    if unknown := sorted(set(config) - set(_SETTINGS)):
        raise ValueError(
            f"{path} has the unknown entries {', '.join(unknown)}; it may have"
            f" {', '.join(_SETTINGS)}, [tables.<name>] and [methods.<name>]."
        )
    if "budget" not in config:
        raise ValueError(f"{path} has no budget: add one, such as budget = 60.")
    if "path" in config:
        check_kind("path", config["path"], str, "the name of a CSV file as text")
        # An absolute path stays what it is.
        config["path"] = path.parent / as_path(config["path"])
    seeds = config.pop("seeds", [0])
    check_kind("seeds", seeds, int | list, "a list of integers")
    return {
        "optimizer": {name: _method(name, entry) for name, entry in methods.items()},
        "table": [t for name, entry in tables.items() for t in _tables(name, entry, path.parent)],
        "seed": seeds,
        **config,
    }


def _section(config: dict[str, Any], name: str, path: Path) -> dict[str, dict[str, Any]]:
    section = config.pop(name, {})
    if not section or not all(isinstance(entry, Mapping) for entry in section.values()):
        raise ValueError(f"{path} needs at least one [{name}.<name>].")
    return {key: dict(entry) for key, entry in section.items()}


def _method(name: str, entry: dict[str, Any]) -> Method:
    if absent := [key for key in ("adapter", "optimizer") if key not in entry]:
        raise ValueError(f"[methods.{name}] has no {' and no '.join(absent)}.")
    try:
        if "name" in entry:
            raise ValueError("name cannot be given: the section has it.")
        make = load_adapter(entry.pop("adapter")).optimizer
        return make(entry.pop("optimizer"), name=name, **entry)
    except (TypeError, ValueError) as error:
        raise ValueError(f"[methods.{name}]: {error}") from error


def _tables(name: str, entry: dict[str, Any], folder: Path) -> list[Table]:
    if "file" not in entry or "loss" not in entry:
        raise ValueError(f"[tables.{name}] needs file and loss.")
    # Taken out first: all other entries but ``file`` are arguments of ``Table.from_frame``.
    group = entry.pop("group", None)
    options: dict[str, Any] = {}
    if "none" in entry:  # pandas would read some texts, such as "None", as gaps
        options = {"keep_default_na": False, "na_values": [""]}
    try:
        refuse_foreign("It", {*entry}, _ENTRIES_OF_A_TABLE, _NO_ENTRIES)
        check_kind("file", entry["file"], str, "the name of a CSV file as text")
        for key, column in {"group": group, **entry}.items():
            if key in ("group", "loss", "seconds"):
                check_kind(key, column, str | None, "the name of a column as text")
        file = str(folder / as_path(entry.pop("file")))
        frame = read_csv(check_exists(file), names=group, **options)
        check_rows(frame, file)
        if group is None:
            return [Table.from_frame(frame, name=name, **entry)]
        if group not in frame.columns:
            raise ValueError(
                f"group names the column {group!r}; the file has {join_names(frame.columns)}."
            )
        if n := (frame[group] == "").sum():
            raise ValueError(
                f"the column {group!r} is empty in {format_count(n, 'row')}, which then belong to"
                " no table: name their table, or remove them."
            )
        return [
            Table.from_frame(rows.drop(columns=group), name=f"{name}/{value}", **entry)
            for value, rows in frame.groupby(group)
        ]
    except (TypeError, ValueError) as error:
        raise ValueError(f"[tables.{name}]: {error}") from error
