"""Studies, and the storages and files that hold them."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import optuna
from optuna.exceptions import StorageInternalError
from optuna.storages import BaseStorage
from optuna.storages.journal import JournalFileBackend
from optuna.study import Study, StudyDirection
from optuna.trial import FrozenTrial

from automl_plugins._arguments import check_kind, describe
from automl_plugins.addresses import (
    STORE,
    STUDIES,
    as_path,
    check_exists,
    hint_of_database,
    tables_of,
    without_password,
)
from automl_plugins.formats import one_line
from automl_plugins.logs import hidden

from .trials import as_written


def is_maximized(study: Study) -> bool:
    """Whether larger values are better; ValueError for a study of several objectives."""
    if len(study.directions) > 1:
        raise ValueError(
            f"Study {study.study_name!r} has {len(study.directions)} objectives; a search has one."
        )
    return study.direction == StudyDirection.MAXIMIZE


def check_study(function: str, study: Any) -> None:
    """Raise TypeError for anything but a study."""
    check_kind(
        function, study, Study, "a study, such as optuna.load_study(study_name=..., storage=...)"
    )


def finished_trials(study: Study) -> list[FrozenTrial]:
    """The finished trials of a study, in the order in which they ended."""
    done = [t for t in study.get_trials(deepcopy=False) if t.state.is_finished()]
    return sorted(done, key=lambda t: (as_written(t.datetime_complete), t.number))


#: Studies, storages (or their addresses or journal files) for all studies in them.
StudySource = Study | BaseStorage | str


def studies_in(source: StudySource | Iterable[StudySource]) -> list[Study]:
    """The studies of one source or several; studies of a storage are sorted by name.

    TypeError for anything else, ValueError for a storage that does not exist or cannot be read.
    """
    if isinstance(source, Study):
        return [source]
    if isinstance(source, BaseStorage | str):
        what = repr(without_password(source)) if isinstance(source, str) else "The storage"
        with reading(what):
            storage = open_storage(source) if isinstance(source, str) else source
            names = sorted(optuna.get_all_study_names(storage))
            return [optuna.load_study(study_name=name, storage=storage) for name in names]
    each = list(source) if isinstance(source, Iterable) else [source]
    for item in each:
        if not isinstance(item, StudySource):
            raise TypeError(
                "Expected optuna studies, a storage, its address or its journal file, or several"
                f" of them, got {describe(item)}."
            )
    return [study for item in each for study in studies_in(item)]


def one_study(source: StudySource) -> Study:
    """The only study of a source, which is a task; ValueError if it has none or several."""
    found = studies_in(source)
    if len(found) != 1:
        raise ValueError(
            f"There are {len(found)} studies, but a task is one study: load it with"
            " optuna.load_study(study_name=..., storage=...), or read all with"
            " meta_dataset_from_studies."
        )
    return found[0]


@contextmanager
def reading(what: str) -> Iterator[None]:
    """Raise ValueError if the block cannot read a storage: damaged, outdated, out of reach."""
    try:
        yield
    except (ImportError, OSError):  # no driver, no such file: they say so themselves
        raise
    except Exception as error:  # of Optuna, SQLAlchemy, a driver, or a journal of anything
        # Our own messages pass; a damaged line of a journal raises a ValueError, too.
        if isinstance(error, ValueError) and not isinstance(error, json.JSONDecodeError):
            raise
        # Optuna's message only says that a commit failed, and SQLAlchemy's repeats the statement;
        # the error of the driver says what is wrong.
        cause = error.__cause__ if isinstance(error, StorageInternalError) else error
        cause = getattr(cause, "orig", None) or cause
        raise ValueError(
            f"{what} cannot be read: {type(cause).__name__}: {one_line(str(cause))}"
        ) from error


def owns(source: str) -> bool:
    """Whether a text may be a storage: an address, or a journal file.

    An empty file counts only if its name ends with ``.log``.
    """
    if "://" in source:
        return True
    path = as_path(source)
    if not os.path.isfile(path):  # False also for a text that is no path
        return False
    return source.endswith(".log") or (path.stat().st_size > 0 and _is_journal(path))


def open_storage(source: str) -> BaseStorage | str:
    """The storage at an address or in a journal file, as Optuna takes it.

    Optuna creates its tables in every database that it opens, so a database without them is not
    opened: if it has no table, an empty storage is returned, else ValueError is raised. See
    ``tables_of`` for further errors.
    """
    check_exists(source)  # first, because SQLite creates a missing file
    if "://" not in source:
        path = as_path(source)
        if path.is_file() and _is_journal(path):
            return optuna.storages.JournalStorage(JournalFileBackend(str(path)))
        hint = hint_of_database(source) or (
            " Studies are read from such a file, or from a database by its address, as in"
            " 'sqlite:///studies.db'."
        )
        raise ValueError(f"{source!r} is not a journal file of Optuna.{hint}")
    tables, shown = sorted(tables_of(source)), repr(without_password(source))
    if not tables:
        return optuna.storages.InMemoryStorage()
    if STUDIES.issubset(tables):
        return source
    if STORE in tables:
        raise ValueError(
            f"{shown} is a store of runs (MetaStore), and holds no studies of Optuna:"
            " samplers take it as their memory, and `automl-plugins store` shows what is in it."
        )
    raise ValueError(
        f"{shown} holds no studies of Optuna, but the tables {', '.join(tables[:5])}"
        f"{', ...' if len(tables) > 5 else ''}: name the database with the studies."
    )


def _is_journal(path: Path) -> bool:
    with path.open("rb") as file:
        first = file.readline()
    try:
        # Each line of a journal is an operation, as JSON.
        return not first or "op_code" in json.loads(first)
    except (ValueError, TypeError):
        return False


# --- Optuna's log ---------------------------------------------------------------------------


def quiet(level: int = logging.WARNING) -> AbstractContextManager[None]:
    """Hide Optuna's log below a level, for studies that the user did not ask for."""
    return hidden("optuna", level)
