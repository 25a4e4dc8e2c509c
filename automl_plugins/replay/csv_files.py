"""CSV files: recorded tables, scores to compare, and the runs of ``replay``, read and written."""

from __future__ import annotations

import json
import lzma
import os
import re
import warnings
import zlib
from codecs import BOM_UTF8
from collections.abc import Iterable, Mapping, Sequence
from gzip import BadGzipFile
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn
from zipfile import BadZipFile

from automl_plugins._arguments import repeated
from automl_plugins._imports import is_older
from automl_plugins.addresses import as_path, refuse_folder
from automl_plugins.formats import format_count, join_names, one_line
from automl_plugins.records.search import KEYS

if TYPE_CHECKING:
    import pandas as pd

Key = tuple[str, str, int]  # table, method, seed

_PACKED = (".gz", ".bz2", ".zip", ".xz", ".zst", ".tar")  # pandas unpacks files with these names

_NUMBERS = ("seconds", "loss", "best", "regret", "step", "overhead")
_RUN_COLUMNS = "table, method, seed, trial and loss"
_NAMELESS = re.compile(r"Unnamed: \d+")  # what pandas calls a column without a name

# What unpacking a damaged file raises.
_COMPRESSED = (EOFError, zlib.error, lzma.LZMAError, BadGzipFile, BadZipFile)


def read_csv(
    path: str | os.PathLike[str], *, names: str | None = None, **options: Any
) -> pd.DataFrame:
    """``pandas.read_csv`` with exact numbers; first lines that begin with "#" are skipped.

    A "#" elsewhere is text, as in "TPE #2". A space after a comma is text, too, unless the header
    has such spaces.

    Args:
        path: The file.
        names: A column of names, kept as they are written: a data set may be called 01, or NA.
        **options: Of ``pandas.read_csv``.

    Raises:
        ValueError: For a folder, a file that is not CSV, two columns of the same name, or a row
            with more fields than the header, whose values would move to other columns.
    """
    import pandas as pd

    path = as_path(path)
    refuse_folder(path, "a CSV file")
    with path.open("rb") as file:  # a compressed one does not begin with "#"
        comments = takewhile(lambda line: line.removeprefix(BOM_UTF8).startswith(b"#"), file)
        options["skiprows"] = sum(1 for _ in comments)

    if is_older(pd.__version__, "3.1"):  # exact by default since then
        options["float_precision"] = "round_trip"
    options["index_col"] = False  # else pandas takes the first field of longer rows as the index
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)
            options["skipinitialspace"] = _check_header(path, options["skiprows"])
            frame: pd.DataFrame = pd.read_csv(path, **options)
            if names in frame:  # a converter does not keep them: from 3.0 on NA becomes NaN
                options |= {"dtype": str, "keep_default_na": False, "na_values": []}
                frame[names] = pd.read_csv(path, usecols=[names], **options)[names]
    except pd.errors.ParserWarning:
        raise ValueError(
            f"{path} has rows with more fields than its header: name every column, the first one"
            " too (in R: write.csv, or write.table with col.names=NA)."
        ) from None
    except (
        pd.errors.ParserError,
        pd.errors.EmptyDataError,
        UnicodeDecodeError,
        *_COMPRESSED,
    ) as error:
        raise ValueError(
            f"{path} is no table of comma-separated values in UTF-8: {one_line(str(error))}."
        ) from None
    return frame


def _check_header(path: Path, skiprows: int) -> bool:
    """Check the header; return whether spaces follow its commas.

    ValueError for two columns of the same name, which pandas would call A and A.1, and for columns
    that are separated by tabs or semicolons.
    """
    import pandas as pd

    (header,) = pd.read_csv(
        path, header=None, nrows=1, dtype=str, keep_default_na=False, skiprows=skiprows
    ).to_numpy()
    if len(header) == 1 and re.search("[;\t]", header[0]):
        _refuse_column(path, header[0])
    # Several columns may have no name: pandas numbers them.
    if twice := sorted(filter(None, repeated(name.lstrip(" ") for name in header))):
        raise ValueError(f"{path} has more than one column {join_names(twice)}.")
    return any(name.startswith(" ") for name in header[1:])


def _refuse_column(file: Path | str, name: str) -> NoReturn:
    raise ValueError(f"{file} is no table of comma-separated values: its one column is {name!r}.")


def read_runs(path: str | os.PathLike[str]) -> pd.DataFrame:
    """Read a file of runs as the data frame that was written, exact to the last bit.

    A missing number is an empty field, nan, NaN or NA.
    """
    return read_csv(
        path,
        # A table may be called 01, a method NA.
        dtype={"table": str, "method": str, "status": str},
        keep_default_na=False,
        na_values={name: ["", "nan", "NaN", "NA"] for name in _NUMBERS},
    )


def read_comparison(files: Sequence[str]) -> pd.DataFrame:
    """The data to compare: runs of one file or several, or scores of one file, tasks x methods.

    Raises:
        ValueError: For a file of neither kind, without rows, or with a name missing.
    """
    import pandas as pd

    # A file of scores may use one of these names, for a method or for its column of tasks.
    headers = {file: [str(name) for name in read_csv(file, nrows=0)] for file in files}
    scores = [file for file, names in headers.items() if len({*KEYS} & {*names}) < 2]
    if scores and len(files) > 1:
        raise ValueError(
            "Only files of runs can be compared together; they have the columns"
            f" {_RUN_COLUMNS}, which {scores[0]} does not have."
        )
    if scores:
        return _read_scores(files[0], *headers[files[0]])
    return pd.concat([_read_named_runs(file) for file in files], ignore_index=True)


def _read_named_runs(file: str) -> pd.DataFrame:
    runs = read_runs(file)
    check_rows(runs, file)
    if absent := [name for name in KEYS if name not in runs]:
        raise ValueError(
            f"{file} has no column {join_names(absent)}: a file of runs has the columns"
            f" {_RUN_COLUMNS}."
        )
    # An empty trial makes its column text, which ``compare`` refuses.
    for name in KEYS[:3]:
        if n := (runs[name] == "").sum():
            raise ValueError(f"{file}: the column {name} is empty in {format_count(n, 'row')}.")
    return runs


def _read_scores(file: str, first: str, *methods: str) -> pd.DataFrame:
    from pandas.api.types import is_numeric_dtype

    if not methods:
        _refuse_column(file, first)
    scores = read_csv(file, names=first).set_index(first)
    check_rows(scores, file)
    if nameless := [place for place, m in enumerate(methods, 2) if _NAMELESS.fullmatch(m)]:
        raise ValueError(f"{file}: the header has no name for column {join_names(nameless)}.")
    if texts := [m for m in methods if not is_numeric_dtype(scores[m])]:
        raise ValueError(
            f"{file} has columns that are not numeric: {join_names(texts)}. A file of scores has"
            " a row for each task and a column of numbers for each method, a file of runs the"
            f" columns {_RUN_COLUMNS}."
        )
    return scores


def check_rows(frame: pd.DataFrame, file: str) -> None:
    """Raise ValueError for a file without a row."""
    if frame.empty:
        raise ValueError(f"{file} has no rows.")


# --- the runs of a replay, which an interrupted one continues ----------------------------------


def check_names(path: str | os.PathLike[str], names: Iterable[str]) -> None:
    """ValueError for the name of a table or method that a CSV file would not return unchanged."""
    for name in names:
        if "\r" in name:
            what = "the carriage return"
        elif name.encode(errors="ignore").decode() != name:
            what = "the half of a character"
        else:
            continue
        raise ValueError(
            f"{as_path(path)} cannot keep {what} in the name {name!r}: rename the table or the"
            " method."
        )


class Journal:
    """Appends finished runs to a CSV file and keeps account of them.

    Beside ``runs.csv``, the tidy frame, ``runs.csv.journal`` has the settings in its first line
    and, for each run that was written in full, a line with its key and the length of the file
    after it. Anything after the last such length belongs to a run that a crash cut short.

    All runs in the file must have the same ``settings`` (JSON values). ``digests`` are the hashes
    of the tables' data by name: a table must not have changed since its runs were written.

    Raises:
        ValueError: If the file has runs with other settings or on other data, was not written by
            a replay, or has lost rows since; or if its name ends like a compressed file's.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        settings: dict[str, Any],
        digests: Mapping[str, str],
    ) -> None:
        self.path = as_path(path)
        if self.path.suffix.lower() in _PACKED:
            raise ValueError(
                f"{self.path} would not be compressed, for runs are appended to it: name a file"
                " that ends in .csv."
            )
        self._digests = digests
        self._log = Path(f"{self.path}.journal")
        self.done: set[Key] = set()
        self._end = 0  # bytes of the file that are accounted for
        self.path.parent.mkdir(parents=True, exist_ok=True)
        if self._log.exists() and b"\n" in self._log.read_bytes():
            self._resume(settings)
        elif self.path.exists() and self._log.exists():
            raise ValueError(
                f"{self._log} is damaged, its first line was cut. Restore a copy of it, or delete"
                f" it and {self.path.name} to begin anew."
            )
        elif self.path.exists():
            raise ValueError(
                f"{self.path} exists but was not written by a replay (no {self._log.name} beside"
                " it): choose another file."
            )
        else:
            self._log.unlink(missing_ok=True)  # a crash cut its first line
            _append(self._log, json.dumps(settings) + "\n")

    def _resume(self, settings: dict[str, Any]) -> None:
        content = self._log.read_bytes()
        complete = content[: content.rfind(b"\n") + 1]  # a crash may have cut the last line
        try:
            lines = [json.loads(line) for line in complete.decode().splitlines()]
            stored, entries = dict(lines[0]), lines[1:]
            done = {(e["table"], e["method"], e["seed"]) for e in entries}
            seen = {(e["table"], e.get("data")) for e in entries}
            end = self._end = int(entries[-1]["end"]) if entries else 0
        except (ValueError, TypeError, LookupError, RecursionError) as error:
            raise ValueError(
                f"{self._log} is damaged, no replay wrote it so ({error}). Restore a copy of it,"
                f" or delete it and {self.path.name} to begin anew."
            ) from None
        changed = [
            f"{key} {stored.get(key)!r}, now {settings.get(key)!r}"
            for key in sorted(stored.keys() | settings.keys())
            if stored.get(key) != json.loads(json.dumps(settings.get(key)))
        ]
        if changed:
            raise ValueError(
                f"{self.path} holds runs with {'; '.join(changed)}: continue with the same"
                " settings, or choose another file."
            )
        # Tables that this call does not have are not compared.
        if other := sorted(t for t, data in seen if data and self._digests.get(t, data) != data):
            raise ValueError(
                f"{self.path} holds runs on table {', '.join(other)} as it was before its records"
                " changed (or its search space): choose another file."
            )
        size = self._size()
        if size < end:
            what = f"has {size} bytes of {end} written: it was cut or changed"
            raise ValueError(
                f"{self.path} {what if size else 'is gone or empty'}. To begin anew, delete"
                f" {self._log.name} too."
            )
        if size > end:
            os.truncate(self.path, end)
        if complete != content:
            os.truncate(self._log, len(complete))
        self.done = done

    def _size(self) -> int:
        return self.path.stat().st_size if self.path.exists() else 0

    def write(self, key: Key, frame: pd.DataFrame) -> None:
        """Append one run; it counts as done only once it is on the disk.

        Raises:
            ValueError: Where something else has written to the file.
        """
        # Rows that are not accounted for would be cut off at the next start.
        if self._size() != self._end:
            raise ValueError(
                f"{self.path} was changed while this replay ran. If another one writes to it, let"
                " that end, then run this again: it continues with what is missing."
            )
        # Line ends of one byte on every system, as lengths are counted.
        text = frame.to_csv(index=False, header=not self._end, lineterminator="\n")
        self._end = _append(self.path, text)
        table, method, seed = key
        entry = {"table": table, "method": method, "seed": seed, "end": self._end}
        _append(self._log, json.dumps(entry | {"data": self._digests.get(table)}) + "\n")
        self.done.add(key)


def _append(path: Path, text: str) -> int:
    """Add text to the end of a file, on the disk; returns the length of the file."""
    with path.open("a", encoding="utf-8", newline="") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
        return file.tell()
