"""CSV files: recorded tables, the runs that ``replay`` writes, and scores to compare."""

from __future__ import annotations

import lzma
import os
import warnings
import zlib
from collections.abc import Sequence
from gzip import BadGzipFile
from itertools import takewhile
from typing import TYPE_CHECKING, Any
from zipfile import BadZipFile

from automl_plugins.formats import one_line

if TYPE_CHECKING:
    import pandas as pd

# What unpacking a damaged file raises.
_COMPRESSED = (EOFError, zlib.error, lzma.LZMAError, BadGzipFile, BadZipFile)


def read_csv(
    path: str | os.PathLike[str], *, names: str | None = None, **options: Any
) -> pd.DataFrame:
    """``pandas.read_csv`` with numbers exact to the last bit, after lines that begin with "#".

    A "#" elsewhere is part of a text: "TPE #2".

    Args:
        path: The file.
        names: A column of names, kept as they are written: a data set may be called 01, or NA.
        **options: Of ``pandas.read_csv``.

    Raises:
        ValueError: For a file of something else, and one whose rows have more fields than its
            header, which would move to other columns.
    """
    import pandas as pd

    with open(path, "rb") as file:  # a compressed one does not begin with "#"
        options["skiprows"] = sum(1 for _ in takewhile(lambda line: line.startswith(b"#"), file))

    if tuple(map(int, pd.__version__.split(".")[:2])) < (3, 1):  # exact by default since then
        options["float_precision"] = "round_trip"
    options["index_col"] = False  # else pandas takes the first of surplus fields for an index
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)
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
            f"{path} is no table of comma-separated values: {one_line(str(error))}."
        ) from None
    return frame


def read_runs(path: str | os.PathLike[str]) -> pd.DataFrame:
    """Read a file of runs as the data frame that was written, exact to the last bit."""
    return read_csv(
        path,
        dtype={"table": str, "method": str, "status": str},
        keep_default_na=False,
        na_values={c: [""] for c in ("seconds", "loss", "best", "regret", "step", "overhead")},
    )


def read_comparison(files: Sequence[str]) -> pd.DataFrame:
    """What is to be compared: the runs of several files, or the scores of one, tasks x methods.

    Raises:
        ValueError: For a file that is neither, or has no rows.
    """
    import pandas as pd

    frames = []
    for file in files:
        first, *others = read_csv(file, nrows=0).columns
        if {"table", "method", "trial"} <= {first, *others}:
            frames.append(read_runs(file))
        elif not others:
            raise ValueError(
                f"{file} is no table of comma-separated values: its one column is {first!r}."
            )
        else:
            frames.append(read_csv(file, names=first))
        if frames[-1].empty:
            raise ValueError(f"{file} has no rows.")
    tidy = [{"table", "method", "trial"} <= set(frame.columns) for frame in frames]
    if all(tidy):
        runs = pd.concat(frames, ignore_index=True)
        return runs.astype({"table": str, "method": str})
    if len(frames) > 1:
        raise ValueError(
            "Only files of runs can be compared together, and"
            f" {files[tidy.index(False)]} has no columns table, method and trial."
        )
    return frames[0].set_index(frames[0].columns[0])
