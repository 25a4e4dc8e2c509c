"""Does a search with a memory need fewer trials? Leave one data set out, on tables.

    benchmark_transfer.py regret  # transfer against no transfer, by budget

Proposers search directly, without a framework (TPE is Optuna's). The memory of oboe has every
third table, and every second of these is searched. With ``--path`` finished searches are kept in
files and not repeated.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pandas as pd
from automl_plugins.adapters.optuna import optimizer
from common import mean_regrets, run_command
from recorded_tables import memory_of, oboe, read_features, svm_memory

from automl_plugins import recipes
from automl_plugins.meta import MetaDataset
from automl_plugins.meta.memories import TaskMemory
from automl_plugins.proposers.proposal import Proposer
from automl_plugins.proposers.with_memory import SuggestedStart
from automl_plugins.replay import Method, Table, proposing, replay
from automl_plugins.statistics import compare

BUDGETS = (1, 3, 5, 10, 20, 30, 50, 100)
SUGGESTED = 10
#: From a memory and the meta-features of the searched task.
MAKERS: dict[str, Callable[[MetaDataset, Mapping[str, float]], Proposer]] = {
    "gbqr": lambda memory, task: recipes.gbqr(),
    "gbqr_diverse": lambda memory, task: SuggestedStart(
        TaskMemory(memory),
        recipes.gbqr(n_startup=0),
        n_suggested=SUGGESTED,
        meta_features=task,
    ),
    "auto": lambda memory, task: recipes.auto(None),
    "auto_memory": lambda memory, task: recipes.auto(memory, meta_features=task),
    "tst": lambda memory, task: recipes.tst(memory),
    "tst_m": lambda memory, task: recipes.tst(
        memory, distance="meta_features", meta_features=task
    ),
    "blended": lambda memory, task: recipes.blended(memory, meta_features=task),
}
METHODS = (*MAKERS, "tpe")


def oboe_source() -> tuple[list[Table], MetaDataset]:
    """Tables of oboe that are searched, and the memory, with all meta-features that are known."""
    tables = oboe(3)
    sizes = read_features("oboe/dataset_sizes.csv", "dataset_id")
    described = read_features("pmf_metafeatures/metafeatures.csv.gz", "dataset_id")
    return tables[::2], memory_of(tables, sizes.join(described.add_suffix("_pmf")))


SOURCES = {"svm_grid": svm_memory, "oboe": oboe_source}


def method(name: str, memory: MetaDataset, table: str) -> Method:
    """A method for one table, with a memory that does not contain the table."""
    if name == "tpe":
        tpe: Method = optimizer("TPESampler", name=name)
        return tpe
    left = memory.without(table)
    task = next(t.meta_features for t in memory.tasks if t.name == table)
    return proposing(name, lambda problem: MAKERS[name](left, task))


def regret(
    tables: Sequence[str] = tuple(SOURCES),
    methods: Sequence[str] = METHODS,
    trials: int = 100,
    seeds: int = 1,
    every: int = 1,
    path: Path | None = None,
) -> None:
    """Print mean regrets by budget, of searches on every ``every``-th table."""
    for name in tables:
        chosen, memory = SOURCES[name]()
        frames = []
        for table in chosen[::every]:
            for label in methods:
                runs = replay(
                    method(label, memory, table.name),
                    table,
                    budget=trials,
                    seed=range(seeds),
                    progress=False,
                    path=path and path.with_name(f"{path.name}_{name}.{label}.csv"),
                )
                frames.append(runs[runs.table == table.name])  # the file has other tables too
            print(f"  {table.name} is done", flush=True)
        runs = pd.concat(frames, ignore_index=True)
        n = runs.table.nunique()
        print(f"\n{name}: {n} tables, {seeds} seeds; mean normalised regret in percent")
        print(mean_regrets(runs, BUDGETS).to_string())
        if runs.method.nunique() > 1:
            budgets = [b for b in (10, 30, 100) if b <= trials]
            print(compare(runs, control=methods[0], budgets=budgets), flush=True)


if __name__ == "__main__":
    run_command(__doc__, regret, tables=SOURCES, methods=METHODS)
