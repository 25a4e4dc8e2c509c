"""CSV files: recorded tables, the runs that ``replay`` writes, and scores to compare."""

from __future__ import annotations

import lzma
import os
import re
import warnings
import zlib
from codecs import BOM_UTF8
from collections.abc import Sequence
from gzip import BadGzipFile
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn
from zipfile import BadZipFile

from automl_plugins._arguments import repeated
from automl_plugins.addresses import as_path
from automl_plugins.formats import format_count, join_names, one_line
from automl_plugins.records.search import KEYS

if TYPE_CHECKING:
    import pandas as pd

_NUMBERS = ("seconds", "loss", "best", "regret", "step", "overhead")
_RUN_COLUMNS = "table, method, seed, trial and loss"
_NAMELESS = re.compile(r"Unnamed: \d+")  # as pandas calls it

# What unpacking a damaged file raises.
_COMPRESSED = (EOFError, zlib.error, lzma.LZMAError, BadGzipFile, BadZipFile)


def read_csv(
    path: str | os.PathLike[str], *, names: str | None = None, **options: Any
) -> pd.DataFrame:
    """``pandas.read_csv`` with numbers exact to the last bit, after lines that begin with "#".

    A "#" elsewhere is part of a text: "TPE #2". So is a space after a comma, unless the header has
    one.

    Args:
        path: The file.
        names: A column of names, kept as they are written: a data set may be called 01, or NA.
        **options: Of ``pandas.read_csv``.

    Raises:
        ValueError: For a file of something else, one with two columns of a name, and one whose
            rows have more fields than its header, which would move to other columns.
    """
    import pandas as pd

    path = as_path(path)
    with path.open("rb") as file:  # a compressed one does not begin with "#"
        comments = takewhile(lambda line: line.removeprefix(BOM_UTF8).startswith(b"#"), file)
        options["skiprows"] = sum(1 for _ in comments)

    if tuple(map(int, pd.__version__.split(".")[:2])) < (3, 1):  # exact by default since then
        options["float_precision"] = "round_trip"
    options["index_col"] = False  # else pandas takes the first of surplus fields for an index
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
    """Whether spaces follow its commas.

    ValueError for a column that is there twice, which pandas would call A and A.1, and for columns
    that something else than commas separates.
    """
    import pandas as pd

    (header,) = pd.read_csv(
        path, header=None, nrows=1, dtype=str, keep_default_na=False, skiprows=skiprows
    ).to_numpy()
    if len(header) == 1 and re.search("[;\t]", header[0]):
        _refuse_column(path, header[0])
    # Columns without a name may be several: pandas numbers them.
    if twice := sorted(filter(None, repeated(name.lstrip(" ") for name in header))):
        raise ValueError(f"{path} has more than one column {join_names(twice)}.")
    return any(name.startswith(" ") for name in header[1:])


def _refuse_column(file: Path | str, name: str) -> NoReturn:
    raise ValueError(f"{file} is no table of comma-separated values: its one column is {name!r}.")


def read_runs(path: str | os.PathLike[str]) -> pd.DataFrame:
    """Read a file of runs as the data frame that was written, exact to the last bit.

    A number that is missing may be empty, nan, NaN or NA.
    """
    return read_csv(
        path,
        # A table may be called 01, a method NA.
        dtype={"table": str, "method": str, "status": str},
        keep_default_na=False,
        na_values={name: ["", "nan", "NaN", "NA"] for name in _NUMBERS},
    )


def read_comparison(files: Sequence[str]) -> pd.DataFrame:
    """What is to be compared: the runs of several files, or the scores of one, tasks x methods.

    Raises:
        ValueError: For a file that is neither, has no rows, or lacks a name.
    """
    import pandas as pd

    # One of these names may be that of a method or of the tasks.
    headers = {file: [str(name) for name in read_csv(file, nrows=0)] for file in files}
    scores = [file for file, names in headers.items() if len({*KEYS} & {*names}) < 2]
    if scores and len(files) > 1:
        raise ValueError(
            "Only files of runs can be compared together; they have the columns"
            f" {_RUN_COLUMNS}, and {scores[0]} has not."
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
