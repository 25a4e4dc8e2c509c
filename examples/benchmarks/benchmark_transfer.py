"""Does a search that knows earlier tasks need fewer trials? Leave one data set out, on tables.

    benchmark_transfer.py regret  # transfer against no transfer, by budget

Every search is that of the proposer itself, without a framework (TPE is Optuna's). The memory of
oboe is every third of its tables, and every second of these is searched; of AdaBoost every second
is searched. With ``--path`` finished searches are kept in a file and not repeated.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, partial
from pathlib import Path

import pandas as pd
from automl_plugins.adapters.optuna import optimizer
from common import make_parser, mean_regrets
from recorded_tables import MEMORIES, memory_of, oboe, read_features

from automl_plugins import recipes
from automl_plugins.meta import MetaDataset
from automl_plugins.meta.memories import TaskMemory
from automl_plugins.proposers.proposal import Proposer
from automl_plugins.proposers.with_memory import SuggestedStart
from automl_plugins.replay import Method, Table, proposing, replay
from automl_plugins.statistics import compare

BUDGETS = (1, 3, 5, 10, 20, 30, 50, 100)
SUGGESTED = 10
METHODS = ("gbqr", "gbqr_diverse", "tpe", "tst", "tst_m", "tst_paper", "blended")
Task = Mapping[str, float]


@cache
def source(name: str) -> tuple[list[Table], MetaDataset]:
    """Tables that are searched, and the memory."""
    if name == "oboe":
        tables = oboe(3)
        sizes = read_features("oboe/dataset_sizes.csv", "dataset_id")
        described = read_features("pmf_metafeatures/metafeatures.csv.gz", "dataset_id")
        return tables[::2], memory_of(tables, sizes.join(described.add_suffix("_pmf")))
    tables, memory = MEMORIES[name]()
    return (tables[::2] if name == "adaboost" else tables), memory


def method(name: str, memory: MetaDataset, table: str) -> Method:
    """A method for one table, which its memory does not know."""
    if name == "tpe":
        tpe: Method = optimizer("TPESampler", name=name)
        return tpe
    left = memory.without(table)
    task = next(t.meta_features for t in memory.tasks if t.name == table)
    makers: dict[str, Callable[[], Proposer]] = {
        "gbqr": recipes.gbqr,
        "tst": partial(recipes.tst, left),
        "tst_m": partial(recipes.tst, left, distance="meta_features", meta_features=task),
        "tst_paper": partial(recipes.tst, left, paper=True),
        "blended": partial(recipes.blended, left, meta_features=task),
        "gbqr_diverse": partial(_after_diverse, left, task),
    }
    return proposing(name, lambda problem: makers[name]())


def _after_diverse(memory: MetaDataset, task: Task) -> Proposer:
    proposer = recipes.gbqr(n_startup=0)
    return SuggestedStart(TaskMemory(memory), proposer, n_suggested=SUGGESTED, meta_features=task)


def run(
    name: str, methods: list[str], trials: int, seeds: int, every: int, path: Path | None
) -> pd.DataFrame:
    """All searches, as ``replay`` returns them."""
    tables, memory = source(name)
    frames = []
    for table in tables[::every]:
        for label in methods:
            runs = replay(
                method(label, memory, table.name),
                table,
                budget=trials,
                seed=range(seeds),
                progress=False,
                path=None if path is None else path.with_suffix(f".{label}.csv"),
            )
            frames.append(runs[runs.table == table.name])  # the file has those of other tables
        print(f"  {table.name} is done", flush=True)
    return pd.concat(frames, ignore_index=True)


def main() -> None:
    parser = make_parser(__doc__, "regret")
    parser.add_argument("--tables", nargs="+", default=["svm_grid", "oboe"])
    parser.add_argument("--methods", nargs="+", default=METHODS, choices=METHODS)
    parser.add_argument("--trials", type=int, default=100)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--every", type=int, default=1, help="search one table of so many")
    parser.add_argument("--path", type=Path)
    args = parser.parse_args()
    for name in args.tables:
        path = None if args.path is None else args.path.with_name(f"{args.path.name}_{name}.csv")
        runs = run(name, args.methods, args.trials, args.seeds, args.every, path)
        n_tables = runs.table.nunique()
        print(
            f"\n{name}: {n_tables} tables, {args.seeds} seeds; mean normalised regret in percent"
        )
        print(mean_regrets(runs, BUDGETS).to_string())
        if runs.method.nunique() > 1:
            told = [b for b in (10, 30, 100) if b <= args.trials]
            print(compare(runs, control=args.methods[0], budgets=told), flush=True)


if __name__ == "__main__":
    main()
