"""Command line: ``automl-plugins compare ...``, ``... replay CONFIG``, ``... store ...``.

``python -m automl_plugins`` is the same.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from . import __version__, _store_commands

if TYPE_CHECKING:
    import pandas as pd

_EPILOG = """\
A FILE is a CSV file: runs as `replay` writes them (table, method, seed, trial, loss, ...), or a
row for each task and a column for each method. A STORAGE is what an installed framework can read,
such as sqlite:///studies.db, an Optuna journal file or a folder of SMAC runs; its studies are
named <table>/<method>/<seed>."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    args = _make_parser().parse_args(arguments)
    try:
        code: int | None = args.run(args)
    except BrokenPipeError:  # the reader, such as `head`, has seen enough
        sys.stderr.close()
        return 0
    except (ValueError, TypeError, OSError, ImportError) as error:
        print(f"automl-plugins {args.command}: {error}", file=sys.stderr)
        return 2
    return code or 0


def _make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="automl-plugins", description="Search with a memory and a sense of cost."
    )
    parser.add_argument("--version", action="version", version=f"automl_plugins {__version__}")
    commands = parser.add_subparsers(dest="command", required=True)
    compare = commands.add_parser(
        "compare",
        help="which method is better, and is the difference real",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    compare.set_defaults(run=_compare)
    compare.add_argument("sources", nargs="+", metavar="FILE_OR_STORAGE")
    compare.add_argument("--control", metavar="NAME", help="compare with this method only")
    compare.add_argument(
        "--budget",
        type=float,
        action="append",
        metavar="N",
        help="trials or seconds; may be repeated. Default: what every search has reached",
    )
    compare.add_argument("--unit", choices=["trials", "seconds"], default="trials")
    compare.add_argument("--format", choices=["text", "markdown", "latex"], default="text")
    compare.add_argument(
        "--maximize", action="store_true", help="the numbers of a task x method file are scores"
    )
    compare.add_argument("--alpha", type=float, default=0.05, help="level of the tests")
    compare.add_argument("--zeros", choices=["zsplit", "pratt", "wilcox"], default="zsplit")
    replay = commands.add_parser("replay", help="run methods on recorded tables")
    replay.set_defaults(run=_replay)
    replay.add_argument("config", type=Path, metavar="CONFIG", help="a TOML file, see the README")
    _store_commands.add_parser(commands)
    return parser


def _compare(args: argparse.Namespace) -> None:
    from .statistics import compare

    comparison = compare(
        _read_sources(args.sources),
        control=args.control,
        budgets=args.budget,
        unit=args.unit,
        higher_is_better=args.maximize,
        zero_method=args.zeros,
        alpha=args.alpha,
    )
    print(getattr(comparison, f"to_{args.format}")())


def _read_sources(sources: Sequence[str]) -> pd.DataFrame | list[object]:
    """One frame, or the searches of all sources."""
    from automl_plugins.frameworks import owner_of

    from .addresses import check_exists, did_you_mean

    files = [source for source in sources if source.endswith((".csv", ".csv.gz"))]
    if len(files) == len(sources):
        return _read_frame([check_exists(file) for file in files])
    if files:
        raise ValueError("Files and storages cannot be mixed: compare one kind at a time.")
    searches: list[object] = []
    for source in sources:
        owner = owner_of(check_exists(source))  # which would create a database
        if owner is None:
            raise ValueError(
                f"Cannot read {source!r}: it is no .csv file, and no installed framework knows it."
                + did_you_mean(source)
            )
        searches += owner.curves(source)
    return searches


def _read_frame(files: Sequence[str]) -> pd.DataFrame:
    import pandas as pd

    from automl_plugins.replay.runs import read_csv

    frames = [read_csv(file, comment="#") for file in files]
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


def _replay(args: argparse.Namespace) -> None:
    from .replay.config import replay_config
    from .statistics import compare

    # A bar is for a terminal; a file or a pipe gets lines.
    runs = replay_config(args.config, progress=True if sys.stderr.isatty() else "lines")
    if runs["method"].nunique() > 1:
        print(compare(runs))


if __name__ == "__main__":
    sys.exit(main())
