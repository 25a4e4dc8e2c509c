"""Addresses and paths: missing ones are refused, and files are replaced as a whole."""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO
from urllib.parse import quote, unquote

_SQLITE = re.compile(r"sqlite(\+\w+)?://(?P<file>/.*)?$")
# Up to the last @, for a password may have one, too.
_PASSWORD = re.compile(r"(?P<user>://[^:/@]*):.*@")
_OPTION = re.compile(r"(?P<name>[?&](ssl)?(password|passwd))=[^&]*")
_HEADER = b"SQLite format 3\0"

STUDIES = frozenset({"studies", "trials"})
"""Tables of Optuna by which a database with studies is recognised."""

STORE = "meta_schema"
"""Table by which a ``MetaStore`` is recognised."""


def check_exists(address: str, what: str | None = None) -> str:
    """Return the path, or address of a database, if its file exists; servers are not asked.

    ``what`` is the error's word for it; None is "database" for an address and "file" for a path.
    Anything but a "file" is a database, such as a "store".

    Raises:
        ValueError: If there is no such file; the message suggests one with a similar name.
    """
    file = file_of(address)
    if file is None or os.path.exists(file):  # ``Path.exists`` raises if the name is too long
        return address
    what = what or ("database" if "://" in address else "file")
    hint = _hint(file, is_database=what != "file")
    if what == "database" and hint.endswith("?"):  # see ``is_to_come``
        hint += f" If not, make it first: MetaStore({address!r}), or a study with this storage."
    raise ValueError(f"There is no {what} {address!r}{hint}")


def as_path(path: str | os.PathLike[str]) -> Path:
    """A path that may begin with ~, or ~user; a name such as ~new.db stays as it is."""
    return Path(os.path.expanduser(path))


def refuse_folder(path: Path, allowed: str = "a file") -> None:
    """ValueError for a folder; the message asks for the file in it that is ``allowed``."""
    if path.is_dir():
        raise ValueError(f"{path} is a folder: name {allowed} in it.")


def is_to_come(address: str) -> bool:
    """Whether an address is of an SQLite database that another process may still create.

    Its folder exists, but no database with this name or a similar one, which may be meant instead.
    """
    file = file_of(address) if _SQLITE.match(address) else None
    if file is None or file.exists() or not file.parent.is_dir():
        return False
    return _similar(file, is_database=True) is None


def file_of(address: str) -> Path | None:
    """The file of an SQLite database, or of a path; None for any other database.

    Raises:
        ValueError: For an SQLite database in memory, which is empty for everyone else.
    """
    if "://" not in address:
        return as_path(address)
    match = _SQLITE.match(address)
    if match is None:
        return None
    try:
        from sqlalchemy import make_url  # since 2.1 it reads %C3%A4 as a letter
    except ModuleNotFoundError:  # then no database can be read
        name = (match["file"] or "")[1:].split("?")[0]
    else:
        name = make_url(address).database or ""
    name = name.removeprefix("file:")
    if name in ("", ":memory:"):
        raise ValueError(f"The database {address!r} is in memory, so it is empty: name a file.")
    return as_path(name)


def hint_of_database(source: str) -> str:
    """Hint for a path that cannot be read: its address, if it is an SQLite database."""
    file = as_path(source)
    if "://" in source or not file.is_file() or not is_sqlite(file):
        return ""
    return f" It is a database: did you mean {as_database(source)!r}?"


def is_sqlite(path: Path) -> bool:
    """Whether a file is an SQLite database."""
    with path.open("rb") as file:
        return file.read(len(_HEADER)) == _HEADER


def tables_of(address: str) -> set[str]:
    """Names of the tables of a database.

    Raises:
        ValueError: If there is no such database, or it is of a kind that is not known.
        ModuleNotFoundError: Without its driver.
        sqlalchemy.exc.DatabaseError: If it cannot be read.
    """
    import sqlalchemy as sa

    shown = repr(without_password(check_exists(address)))
    try:
        engine = sa.create_engine(address)
    # Of a kind of database that is not known; of a port that is no number.
    except (sa.exc.ArgumentError, ValueError) as error:
        raise ValueError(
            f"{shown} is not the address of a database: studies are in those that Optuna"
            f" takes, a store in sqlite:///FILE or postgresql://USER@HOST/DATABASE. {error}."
        ) from None
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"{shown} needs a driver that is not installed: pip install {error.name}",
            name=error.name,
        ) from None
    try:
        return set(sa.inspect(engine).get_table_names())
    finally:
        engine.dispose()


def holds_studies(tables: Collection[str]) -> bool:
    """Whether a database with these tables is a storage of studies; a store may have them, too."""
    return STUDIES.issubset(tables) and STORE not in tables


def without_password(address: str) -> str:
    """The address of a database as a message may show it."""
    return _PASSWORD.sub(r"\g<user>:***@", _OPTION.sub(r"\g<name>=***", address))


def as_database(path: str | Path) -> str:
    """The address of the SQLite database in a file; its path if it has no address."""
    for address in (f"sqlite:///{path}", f"sqlite:///{quote(str(path))}"):
        if file_of(address) == as_path(path):
            return address
    return str(path)  # ? cannot be written in an address before SQLAlchemy 2.1


def _hint(file: Path, *, is_database: bool) -> str:
    """End of the message: what has a similar name in the same folder, if there is one."""
    if not file.parent.is_dir():
        return f": there is no folder {str(file.parent)!r}."
    if (found := _similar(file, is_database=is_database)) is None:
        return "."
    return f"; did you mean {(as_database(found) if is_sqlite(found) else str(found))!r}?"


def _similar(file: Path, *, is_database: bool) -> Path | None:
    """The file in the folder of ``file``, which must exist, whose name may be the one meant.

    With ``is_database`` only databases count, with any suffix; else only files with the suffix of
    ``file``, if it has one.
    """
    same_kind = bool(file.suffix) and not is_database
    others = (other for other in sorted(file.parent.iterdir()) if other.is_file())
    found = [
        other
        for other in others
        # An address may write a space as %20, which is a name of its own for others.
        if _is_slip(unquote(file.stem), unquote(other.stem))
        and not (same_kind and other.suffix != file.suffix)
    ]
    # The same name with another suffix is nearest.
    found.sort(key=lambda other: other.stem.casefold() != file.stem.casefold())
    return next((other for other in found if not is_database or is_sqlite(other)), None)


def _is_slip(given: str, known: str) -> bool:
    """Whether two names are equal or differ by one typing error.

    A typing error is a letter too many or too few, or two neighbours swapped. Other digits and
    replaced letters are none: ``run_1`` and ``run_2``, ``a`` and ``b`` are different names.
    """
    short, long = sorted((given.casefold(), known.casefold()), key=len)
    if short == long:
        return True
    if len(short) < 2 or len(long) > len(short) + 1:  # one letter is too short to be similar
        return False
    places = [i for i, letter in enumerate(long) if not letter.isdigit()]
    fewer = {long[:i] + long[i + 1 :] for i in places}
    swapped = {long[:i] + long[i + 1] + long[i] + long[i + 2 :] for i in places if i + 1 in places}
    return short in fewer | swapped


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Open a file that takes the place of ``path`` once it is complete and on the disk.

    If the block raises, or the process dies, the old file stays. An OSError names ``path``, not
    the temporary file.
    """
    path = as_path(path)
    if not path.parent.is_dir():
        raise FileNotFoundError(f"{path} cannot be written: there is no folder {path.parent}.")
    # Beside the file: a name can be replaced atomically only on one file system.
    partial = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        with partial.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, path)
    except OSError as error:
        if error.filename is None or os.fspath(error.filename) != os.fspath(partial):
            raise
        raise OSError(error.errno, error.strerror, str(path)) from None  # of the same kind
    finally:
        partial.unlink(missing_ok=True)
