"""Command line: ``automl-plugins compare ...``, ``... replay CONFIG``, ``... store ...``.

``python -m automl_plugins`` is the same.
"""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from automl_plugins import __version__
from automl_plugins._imports import require
from automl_plugins.addresses import check_exists, hint_of_database
from automl_plugins.formats import align_columns, format_count, one_line
from automl_plugins.records.trial import Status, count_statuses

if TYPE_CHECKING:
    import pandas as pd

    from automl_plugins.meta import MetaStore, MetaTask, TaskRecord

_EPILOG = """\
A FILE is a CSV file: runs as `replay` writes them (table, method, seed, trial, loss, ...), or a
row for each task and a column for each method. A STORAGE is what an installed framework can read,
such as sqlite:///studies.db, an Optuna journal file or a folder of SMAC runs; its studies are
named <table>/<method>/<seed>."""

_EXAMPLE = """\
The top level of CONFIG has the arguments of automl_plugins.replay.replay (seeds is a list). Each
[tables.NAME] has file=, group= and the arguments of Table.from_frame; each [methods.NAME] has
adapter=, optimizer= and the optimizer's options. Then the methods are compared at the budget:

    budget = 60               # trials, unless unit = "seconds"
    seeds = [0, 1, 2]
    path = "replay.csv"       # kept, and resumed

    [tables.mine]
    file = "runs.csv"         # a row for each run
    group = "dataset"         # a table for each value
    loss = "loss"

    [methods.TPE]
    adapter = "optuna"        # optuna, hyperopt or smac
    optimizer = "TPESampler\""""

# argparse takes an argument that begins with a dash for an option.
_DASH = ". A name that begins with a dash comes after two dashes: STORE -- -NAME"

_BEST = 5  # configurations that are shown of a task


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    name = "automl-plugins"
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # the terminal may lack characters of names
            stream.reconfigure(errors="backslashreplace")
    try:
        # Output that is still buffered is written here, so that its errors are handled below.
        try:
            args = _make_parser().parse_args(arguments)
            name += f" {args.command}"
            code: int | None = args.run(args)
        finally:
            print(end="", flush=True)
    except BrokenPipeError:  # the reader, such as `head`, has seen enough
        _drop_output()
        return 0
    except KeyboardInterrupt:
        print(f"{name}: interrupted.", file=sys.stderr)
        return 130  # as shells have it
    except (ValueError, TypeError, OSError, ImportError) as error:
        _drop_output()
        notes = (f"({note})" for note in getattr(error, "__notes__", ()))
        print(f"{name}: {one_line(' '.join([str(error), *notes]))}", file=sys.stderr)
        return 2
    return code or 0


def _drop_output() -> None:
    """Forget output that cannot be written, which Python would try once more as it exits."""
    try:
        print(end="", flush=True)
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="automl-plugins",
        description="Compare recorded searches, replay them, and look into a store of runs.",
    )
    parser.add_argument("--version", action="version", version=f"automl_plugins {__version__}")
    commands = parser.add_subparsers(dest="command", required=True)
    _add_compare(commands)
    replay = commands.add_parser(
        "replay",
        help="run methods on recorded tables",
        epilog=_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    replay.set_defaults(run=_replay)
    replay.add_argument("config", type=Path, metavar="CONFIG", help="a TOML file, see below")
    _add_store(commands)
    return parser


def _add_compare(commands: Any) -> None:
    compare = commands.add_parser(
        "compare",
        help="which method is better, and is the difference real",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    compare.set_defaults(run=_compare)
    compare.add_argument("sources", nargs="+", metavar="FILE_OR_STORAGE", help="see below")
    compare.add_argument(
        "--control",
        metavar="NAME",
        help="compare all others with this method only; default: each with each",
    )
    compare.add_argument(
        "--budget",
        type=float,
        action="append",
        metavar="N",
        help="trials or seconds; may be repeated. Default: what every search has reached",
    )
    compare.add_argument(
        "--unit",
        # Written out here and below: to import the names would load scipy.stats for --help, too.
        choices=["trials", "seconds"],
        default="trials",
        help="what --budget counts; default: trials. Seconds need a --budget",
    )
    compare.add_argument(
        "--format",
        choices=["text", "markdown", "latex"],
        default="text",
        help="of the output; default: text",
    )
    compare.add_argument(
        "--maximize", action="store_true", help="the numbers of a task x method file are scores"
    )
    compare.add_argument(
        "--alpha",
        type=float,
        default=0.05,
        help="largest adjusted p-value of a difference; default: 0.05",
    )
    compare.add_argument(
        "--zeros",
        choices=["zsplit", "pratt", "wilcox"],
        default="zsplit",
        help="tasks on which two methods tie: each gets half of their ranks (zsplit, the default),"
        " they are ranked and dropped (pratt), or dropped before ranking (wilcox)",
    )


def _add_store(commands: Any) -> None:
    store = commands.add_parser("store", help="look into a store of runs, copy it, delete from it")
    actions = store.add_subparsers(dest="action", required=True)

    def add_action(name: str, run: Any, about: str) -> argparse.ArgumentParser:
        action: argparse.ArgumentParser = actions.add_parser(name, help=about, description=about)
        action.add_argument("store", metavar="STORE", help="a file, or the address of a database")
        action.set_defaults(run=run)
        return action

    add_action("tasks", _list_tasks, "The tasks, and how many runs each has.")
    add_action("searches", _list_searches, "The searches of all tasks.")
    show = add_action(
        "show",
        _show,
        "What is known of a task, and its best configurations. Losses are minimised:"
        " a score of 0.9 that was maximised is a loss of -0.9.",
    )
    show.add_argument("task", metavar="TASK", help="its name, as in: store tasks STORE" + _DASH)
    export = add_action("export", _export, "Write runs to a file that any store can import.")
    export.add_argument("file", metavar="FILE", help="a name ending in .json.xz or .json")
    export.add_argument(
        "--task",
        action="append",
        metavar="NAME",
        help="may be repeated; default: all. --task=-NAME if it begins with a dash",
    )
    add = add_action("import", _import, "Add the runs of an exported file, to a new store too.")
    add.add_argument("file", metavar="FILE", help="what `store export` wrote")
    delete = add_action("delete", _delete, "Delete a task, or a search of one task or of all.")
    delete.add_argument("--task", metavar="NAME", help="default: every task with the search")
    delete.add_argument("--search", metavar="NAME", help="default: all searches of the task")
    delete.add_argument(
        "--yes", action="store_true", help="without it nothing is deleted, only counted"
    )


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
    from .frameworks import owner_of
    from .replay.csv_files import read_comparison

    files = [source for source in sources if source.lower().endswith((".csv", ".csv.gz"))]
    if len(files) == len(sources):
        return read_comparison([check_exists(file) for file in files])
    if files:
        raise ValueError("Files and storages cannot be mixed: compare one kind at a time.")
    searches: list[object] = []
    for source in sources:
        owner = owner_of(check_exists(source))  # which would create a database
        if owner is None:
            raise ValueError(
                f"Cannot read {source!r}: it is no .csv file, and no installed framework knows it."
                + hint_of_database(source)
            )
        searches += owner.curves(source)
    return searches


def _replay(args: argparse.Namespace) -> None:
    from .replay.config import read_config
    from .replay.runs import replay
    from .statistics import compare

    given = read_config(args.config)
    # A bar is for a terminal; a file or a pipe gets lines.
    runs = replay(**given, progress=True if sys.stderr.isatty() else "lines")
    if runs["method"].nunique() > 1:
        print(compare(runs, budgets=given["budget"], unit=given.get("unit", "trials")))


# --- store ----------------------------------------------------------------------------------


@contextmanager
def _open_store(address: str, *, make: bool = False) -> Iterator[MetaStore]:
    """Open a store, which is created only with ``make``; ValueError if it cannot be used."""
    require("sqlalchemy", needed_by="automl-plugins store", extra="store")
    from automl_plugins.meta.store.connection import StoreError, parse_url
    from automl_plugins.meta.store.metastore import ExistingStore, MetaStore

    # For its errors, which say what a store may be; those of ``check_exists`` do not.
    parse_url(address)
    if not make:
        check_exists(address, "store")
    try:
        with (MetaStore if make else ExistingStore)(address) as store:
            yield store
    except StoreError as error:
        raise ValueError(str(error)) from error  # one line, see ``main``


def _list_tasks(args: argparse.Namespace) -> None:
    with _open_store(args.store) as store:
        tasks, searches = store.tasks(), store.searches()
    runs = Counter[str]()
    for search in searches:
        runs[search.task] += search.n_runs
    n_searches = Counter(search.task for search in searches)
    _print_table(
        ("task", "runs", "searches", "meta-features", "tags"),
        [
            (t.name, runs[t.name], n_searches[t.name], len(t.meta_features), _tags(t.tags))
            for t in tasks
        ],
    )


def _list_searches(args: argparse.Namespace) -> None:
    with _open_store(args.store) as store:
        searches = store.searches()
    _print_table(
        ("task", "search", "framework", "seed", "runs"),
        [
            (s.task, s.search, s.framework, "" if s.seed is None else s.seed, s.n_runs)
            for s in searches
        ],
    )


def _show(args: argparse.Namespace) -> None:
    with _open_store(args.store) as store:
        task = _find_task(store, args.task, printed=True)
        records = store.records([task.name])
    print(f"task           {one_line(task.name)}")
    if task.tags:
        print(f"tags           {one_line(_tags(task.tags))}")
    if task.meta_features:
        print(f"meta-features  {len(task.meta_features)}")
    for record in records:
        source = record.framework or "unknown framework"
        print(f"search         {one_line(source)}: {count_statuses(record.status)}")
    for loss, configuration in _best(records):
        print(f"loss {loss:<9.4g} {configuration}")


def _find_task(store: MetaStore, name: str, *, printed: bool = False) -> MetaTask:
    """The task of a name; with ``printed`` also of a name as it is printed, if that is unique."""
    tasks = {task.name: task for task in store.tasks()}
    alike = [task for task in tasks.values() if one_line(task.name) == name]
    if printed and name not in tasks and len(alike) == 1:
        return alike[0]
    if name not in tasks:
        # A name that printing would change is shown as a Python literal.
        shown = (known if one_line(known) == known else repr(known) for known in islice(tasks, 10))
        raise ValueError(f"{store} has no task {name!r}; it has {', '.join(shown) or 'none'}.")
    return tasks[name]


def _best(records: Sequence[TaskRecord]) -> list[tuple[float, dict[str, Any]]]:
    """The best runs at the full budget, else at the highest one, each configuration once."""
    losses, budgets, status = (
        np.concatenate([np.empty(0), *(getattr(record, name) for record in records)])
        for name in ("losses", "budget", "status")
    )
    configurations = [values for record in records for values in record.configurations]
    budgets = np.where(np.isnan(budgets), np.inf, budgets)  # NaN: the full budget
    complete = status == Status.COMPLETE
    rows = np.flatnonzero(complete & (budgets == budgets[complete].max(initial=-np.inf)))
    distinct: dict[str, tuple[float, dict[str, Any]]] = {}
    for row in rows[np.argsort(losses[rows], kind="stable")].tolist():
        values = dict(configurations[row])
        # As text, in which 1, 1.0 and True differ.
        distinct.setdefault(repr(sorted(values.items())), (float(losses[row]), values))
        if len(distinct) == _BEST:
            break
    return list(distinct.values())


def _export(args: argparse.Namespace) -> None:
    with _open_store(args.store) as store:
        store.export(args.file, args.task)
    print(f"Wrote {args.file}.")


def _import(args: argparse.Namespace) -> None:
    from .meta.files import read_searches

    searches = read_searches(check_exists(args.file))  # a damaged file must not leave a new store
    with _open_store(args.store, make=True) as store:
        print(f"{format_count(store.import_(searches), 'new run')}.")


def _delete(args: argparse.Namespace) -> int:
    if args.task is None and args.search is None:
        raise ValueError("Name what to delete: --task NAME, --search NAME, or both.")
    with _open_store(args.store) as store:
        what = f"task {args.task!r}" if args.search is None else f"search {args.search!r}"
        if args.task is not None:
            _find_task(store, args.task)
        searches = [s for s in store.searches() if args.task in (None, s.task)]
        if args.search is not None:
            searches = [s for s in searches if s.search == args.search]
            # Not left to the store, whose message names a method.
            if not searches:
                where = "" if args.task is None else f" in the task {args.task!r}"
                listed = "`automl-plugins store searches` lists those that it has"
                raise ValueError(f"{store} has no {what}{where}; {listed}.")
        if not args.yes:
            runs = format_count(sum(s.n_runs for s in searches), "run")
            print(f"{runs} of the {what} would be deleted. Repeat with --yes to delete.")
            return 1  # what was asked for was not done
        if args.search is None:
            n = store.delete_task(args.task)
        else:
            n = store.delete_search(args.search, task=args.task)
    print(f"Deleted {format_count(n, 'run')} of the {what}.")
    return 0


def _tags(tags: Any) -> str:
    return ", ".join(f"{name}={value}" for name, value in tags.items())


def _print_table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print columns of text, numbers aligned to the right."""
    texts = [header, *([one_line(str(cell)) for cell in row] for row in rows)]
    numeric = [all(isinstance(row[i], int) for row in rows) for i in range(len(header))]
    for line in align_columns(texts, numeric):
        print(line)


if __name__ == "__main__":
    sys.exit(main())
