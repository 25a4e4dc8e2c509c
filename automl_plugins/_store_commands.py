"""``automl-plugins store ...``: look into a store of runs, copy it, delete from it."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from automl_plugins.records.trial import Status, count_statuses

from ._optional import require
from .addresses import check_exists

if TYPE_CHECKING:
    from .meta import MetaStore, MetaTask, TaskRecord

_BEST = 5  # configurations that are shown of a task


def add_parser(commands: Any) -> None:
    """The parsers of ``store`` and its commands; each sets ``run`` to what is called."""
    store = commands.add_parser("store", help="look into a store of runs, copy it, delete from it")
    actions = store.add_subparsers(dest="action", required=True)

    def action(name: str, run: Any, about: str) -> argparse.ArgumentParser:
        parser: argparse.ArgumentParser = actions.add_parser(name, help=about, description=about)
        parser.add_argument("store", metavar="STORE", help="a file, or the address of a database")
        parser.set_defaults(run=run)
        return parser

    action("tasks", _tasks, "The tasks, and how many runs each has.")
    action("searches", _searches, "The searches of all tasks.")
    show = action("show", _show, "What is known of a task, and its best configurations.")
    show.add_argument("task", metavar="TASK")
    export = action("export", _export, "Write runs to a file that any store can import.")
    export.add_argument("file", metavar="FILE", help="a name ending in .json.xz or .json")
    export.add_argument("--task", action="append", metavar="NAME", help="may be repeated")
    add = action("import", _import, "Add the runs of an exported file, to a new store too.")
    add.add_argument("file", metavar="FILE")
    delete = action("delete", _delete, "Delete a task, or a search of one task or of all.")
    delete.add_argument("--task", metavar="NAME")
    delete.add_argument("--search", metavar="NAME")
    delete.add_argument("--yes", action="store_true", help="without it, nothing is deleted")


@contextmanager
def _open_store(address: str, *, make: bool = False) -> Iterator[MetaStore]:
    """A store, made only where that is asked for.

    Raises:
        ValueError: If there is no such file, or the store cannot be used.
    """
    require("sqlalchemy", needed_by="automl-plugins store", extra="store")
    from .meta.store import MetaStore, StoreError
    from .meta.store.connection import parse_url

    parse_url(address)
    if not make:
        check_exists(address, "store")
    try:
        with MetaStore(address) as store:
            yield store
    except StoreError as error:
        raise ValueError(str(error)) from error


def _tasks(args: argparse.Namespace) -> None:
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


def _searches(args: argparse.Namespace) -> None:
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
        task = _find_task(store, args.task)
        records = store.records([args.task])
    print(f"task           {task.name}")
    if task.tags:
        print(f"tags           {_tags(task.tags)}")
    if task.meta_features:
        print(f"meta-features  {len(task.meta_features)}")
    for record in records:
        source = record.framework or "unknown framework"
        print(f"search         {source}: {count_statuses(record.status)}")
    for loss, configuration in _best(records):
        print(f"loss {loss:<9.4g} {configuration}")


def _find_task(store: MetaStore, name: str) -> MetaTask:
    tasks = {task.name: task for task in store.tasks()}
    if name not in tasks:
        known = ", ".join(islice(tasks, 10)) or "none"
        raise ValueError(f"{store} has no task {name!r}; it has {known}.")
    return tasks[name]


def _best(records: Sequence[TaskRecord]) -> list[tuple[float, dict[str, Any]]]:
    """The least losses in full, else at the highest budget, each configuration once."""
    found: dict[str, tuple[float, dict[str, Any]]] = {}
    for record in records:
        whole = np.isnan(record.budget)
        if not whole.any():
            whole = record.budget == record.budget.max(initial=-np.inf)
        for row in np.flatnonzero(whole & (record.status == Status.COMPLETE)).tolist():
            values, loss = dict(record.configurations[row]), float(record.losses[row])
            key = repr(sorted(values.items()))
            if key not in found or loss < found[key][0]:
                found[key] = loss, values
    return sorted(found.values(), key=lambda item: item[0])[:_BEST]


def _export(args: argparse.Namespace) -> None:
    with _open_store(args.store) as store:
        for name in args.task or ():
            _find_task(store, name)
        store.export(args.file, args.task)
    print(f"Wrote {args.file}.")


def _import(args: argparse.Namespace) -> None:
    check_exists(args.file)
    with _open_store(args.store, make=True) as store:
        print(f"{store.import_(args.file)} new runs.")


def _delete(args: argparse.Namespace) -> int:
    if args.task is None and args.search is None:
        raise ValueError("Name what to delete: --task NAME, --search NAME, or both.")
    with _open_store(args.store) as store:
        what = f"task {args.task!r}" if args.search is None else f"search {args.search!r}"
        if not args.yes:
            if args.task is not None:
                _find_task(store, args.task)
            n = sum(
                info.n_runs
                for info in store.searches()
                if args.task in (None, info.task) and args.search in (None, info.search)
            )
            print(f"{n} runs of the {what} would be deleted. Repeat with --yes to delete them.")
            return 1
        if args.search is None:
            n = store.delete_task(args.task)
        else:
            n = store.delete_search(args.search, task=args.task)
    print(f"Deleted {n} runs of the {what}.")
    return 0


def _tags(tags: Any) -> str:
    return ", ".join(f"{name}={value}" for name, value in tags.items())


def _print_table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Columns of text: numbers to the right."""
    texts = [list(header), *([str(cell) for cell in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
    numeric = [all(isinstance(row[i], int) for row in rows) for i in range(len(header))]
    for line in texts:
        cells = [
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(line, widths, numeric, strict=True)
        ]
        print("  ".join(cells).rstrip())
