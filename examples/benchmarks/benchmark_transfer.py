"""Does a search that knows earlier tasks need fewer trials? Leave one data set out, on tables.

    benchmark_transfer.py regret  # transfer against no transfer, by budget
    benchmark_transfer.py adversarial  # memories whose losses are negated, shuffled
    benchmark_transfer.py speed  # seconds of a proposal

Every search is that of the proposer itself, without a framework (TPE is Optuna's). The memory of
oboe is every third of its tables, and every second of these is searched; of AdaBoost every second
is searched. With ``--path`` finished searches are kept in a file and not repeated.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from recorded_memories import MEMORIES, _read, memory_of
from recorded_tables import oboe

from automl_plugins import recipes
from automl_plugins.meta import MetaDataset
from automl_plugins.meta.task_memory import TaskMemory
from automl_plugins.proposers.proposal import Proposer
from automl_plugins.proposers.suggested_start import SuggestedStart
from automl_plugins.replay import Method, Problem, Table, proposing, replay
from automl_plugins.statistics import compare
from automl_plugins.surrogates import TwoStageTransfer

BUDGETS = (1, 3, 5, 10, 20, 30, 50, 100)
SUGGESTED = 10
REGRET = ("gbqr", "gbqr_diverse", "tpe", "tst", "tst_m", "tst_paper", "blended")
ADVERSARIAL = (
    *("tst_alone", "tst_negated", "tst_shuffled"),
    *("gbqr", "blended_negated", "blended_shuffled"),
)
Task = Mapping[str, float]


@cache
def source(name: str) -> tuple[list[Table], MetaDataset]:
    """Tables that are searched, and the memory."""
    if name == "oboe":
        tables = oboe(3)
        sizes = _read("oboe/dataset_sizes.csv", "dataset_id")
        described = _read("pmf_metafeatures/metafeatures.csv.gz", "dataset_id")
        return tables[::2], memory_of(tables, sizes.join(described.add_suffix("_pmf")))
    tables, memory = MEMORIES[name]()
    return (tables[::2] if name == "adaboost" else tables), memory


def spoilt(memory: MetaDataset, how: str) -> MetaDataset:
    """The memory with every task's losses negated or shuffled."""
    losses = memory.losses.copy()
    rng = np.random.default_rng(0)
    for rows in memory.rows:
        losses[rows] = -losses[rows] if how == "negated" else rng.permutation(losses[rows])
    return replace(memory, losses=losses)


def method(name: str, memory: MetaDataset, table: str) -> Method:
    """A method for one table, which its memory does not know."""
    if name == "tpe":
        from automl_plugins.adapters.optuna import optimizer

        tpe: Method = optimizer("TPESampler", name=name)
        return tpe
    left = memory.without(table)
    task = next(t.meta_features for t in memory.tasks if t.name == table)
    base, _, how = name.partition("_")
    if how in ("negated", "shuffled"):
        left = spoilt(left, how)
    makers: dict[str, Callable[[], Proposer]] = {
        "gbqr": recipes.gbqr,
        "tst": partial(recipes.tst, left),
        "tst_m": partial(recipes.tst, left, distance="meta_features", meta_features=task),
        "tst_paper": partial(recipes.tst, left, paper=True),
        "tst_alone": partial(recipes.make_proposer, TwoStageTransfer(), target="raw"),
        "blended": partial(recipes.blended, left, meta_features=task),
        "blended_mean": partial(recipes.blended, left),
        "gbqr_diverse": partial(_after_diverse, left, task),
    }
    make = makers[base if how in ("negated", "shuffled") else name]
    return proposing(name, lambda problem: make())


def _after_diverse(memory: MetaDataset, task: Task) -> Proposer:
    proposer = recipes.gbqr(n_startup=0)
    return SuggestedStart(TaskMemory(memory), proposer, n_suggested=SUGGESTED, meta_features=task)


def run(
    name: str, methods: list[str], trials: int, seeds: int, every: int, path: Path | None
) -> pd.DataFrame:
    """All searches, as ``replay`` returns them, and the real seconds of each method."""
    tables, memory = source(name)
    frames, spent = [], dict.fromkeys(methods, 0.0)
    for table in tables[::every]:
        for label in methods:
            begin = time.perf_counter()
            frames.append(
                replay(
                    method(label, memory, table.name),
                    table,
                    budget=trials,
                    seed=range(seeds),
                    progress=False,
                    path=None if path is None else path.with_suffix(f".{label}.csv"),
                ).query("table == @table.name")
            )
            spent[label] += time.perf_counter() - begin
        done = {label: round(seconds) for label, seconds in spent.items()}
        print(f"  {table.name}: seconds so far {done}", flush=True)
    return pd.concat(frames, ignore_index=True)


def shown(name: str, frame: pd.DataFrame, trials: int, control: str) -> None:
    """Print mean regrets and their comparison with a control."""
    wide = frame.pivot_table(index=["method", "table", "seed"], columns="trial", values="regret")
    curves = 100.0 * wide.ffill(axis=1).groupby("method", sort=False).mean()
    budgets = [b for b in BUDGETS if b <= trials]
    out = curves[budgets].round(2)
    out["mean"] = curves.mean(axis=1).round(3)
    out["20-"] = curves.loc[:, 20:].mean(axis=1).round(3)
    n_tables, n_seeds = frame.table.nunique(), frame.seed.nunique()
    print(f"\n{name}: {n_tables} tables, {n_seeds} seeds; mean normalised regret in percent")
    print(out.to_string())
    told = [b for b in (10, 30, 100) if b <= trials]
    if frame.method.nunique() > 1:
        print(compare(frame, control=control, budgets=told), flush=True)


def speed(names: list[str], methods: list[str], rows: int) -> None:
    """Print the seconds of a proposal with so many rows observed."""
    for name in names:
        tables, memory = source(name)
        table = tables[0]
        for label in methods:
            search = method(label, memory, table.name).start(Problem(table.space, 0))
            seconds = []
            for _ in range(rows):
                begin = time.perf_counter()
                asked = search.ask()
                seconds.append(time.perf_counter() - begin)
                assert asked is not None
                search.tell(asked, _outcome(float(table.losses[table.find(asked.config).row])))
            print(
                f"{name} {label}: first {seconds[0]:.2f} s, then median"
                f" {np.median(seconds[1:]):.3f}, largest {max(seconds[1:]):.3f} s",
                flush=True,
            )


def _outcome(loss: float) -> Any:
    from automl_plugins.replay import Outcome, TrialStatus

    return Outcome(TrialStatus.COMPLETE, loss, 0.0, 1.0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("what", choices=["regret", "adversarial", "speed"])
    parser.add_argument("--tables", nargs="+", default=["svm_grid", "oboe"])
    parser.add_argument("--methods", nargs="+")
    parser.add_argument("--trials", type=int, default=100)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--every", type=int, default=1, help="search one table of so many")
    parser.add_argument("--path", type=Path)
    args = parser.parse_args()
    if args.what == "speed":
        speed(args.tables, args.methods or ["gbqr", "tst", "blended"], min(args.trials, 20))
        return
    methods = args.methods or list(REGRET if args.what == "regret" else ADVERSARIAL)
    for name in args.tables:
        path = None if args.path is None else args.path.with_name(f"{args.path.name}_{name}.csv")
        frame = run(name, methods, args.trials, args.seeds, args.every, path)
        shown(name, frame, args.trials, methods[0])


if __name__ == "__main__":
    main()
