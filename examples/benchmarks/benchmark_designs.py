"""How good are meta-learned starts? Leave one data set out, of recorded tables and memories.

benchmark_designs.py regret  # mean normalised regret after 1, 3, 5 and 10
benchmark_designs.py summary  # its ratio to the portfolio's, over all sources
benchmark_designs.py learner  # rank correlation of the meta-learner
benchmark_designs.py speed  # seconds of a fit of the meta-learner
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from common import keep_rows, run_command
from ConfigSpace import ConfigurationSpace
from joblib import Parallel, delayed
from recorded_tables import BUNDLED, MEMORIES
from scipy.stats import kendalltau, wilcoxon
from sklearn.base import clone

from automl_plugins.meta import (
    Design,
    MetaDataset,
    MetaLearner,
    TaskRecord,
    bad_start,
    delta,
    diverse,
    knn,
    opt,
    portfolio,
    top_k,
)
from automl_plugins.replay import Table
from automl_plugins.replay import regret as normalised_regret

RECORDED = tuple(MEMORIES)
SOURCES = MEMORIES | BUNDLED
BUDGETS = (1, 3, 5, 10)
K = max(BUDGETS)
# Prefixes with which OpenML, auto-sklearn and pymfe name the accuracies of simple learners.
LANDMARKERS = (
    *("Landmark", "best_node", "elite_nn", "linear_discr", "naive_bayes"),
    *("one_nn", "random_node", "worst_node"),
)


def designs(
    memory: MetaDataset, own: MetaDataset, task: Mapping[str, float], only: Sequence[str] = ()
) -> dict[str, Callable[[], Design]]:
    """Every design of ``memory`` for the task ``own``, or ``only`` some that need no learner."""
    made: dict[str, Callable[..., Design]] = {
        "diverse": diverse,
        "portfolio": portfolio,
        "knn": knn,
    }
    if only:
        made = {name: made[name] for name in only}
    else:
        learner = MetaLearner().fit(memory)
        made |= {
            "top_k": partial(top_k, learner=learner),
            "delta 0.1": partial(delta, delta=0.1, learner=learner),
            "delta 0.2": partial(delta, delta=0.2, learner=learner),
            "bad_start": partial(bad_start, learner=learner),
            "opt": partial(opt, vectors=own.vectors, losses=own.losses),
        }
    return {name: partial(make, memory.space, memory, task, K) for name, make in made.items()}


def regrets(table: Table, configurations: list[dict[str, object]]) -> list[float]:
    """Normalised regret of the best so far after each budget; all configurations are tried."""
    rows = [table.find(configuration).row for configuration in configurations]
    found = normalised_regret(table.losses[rows], best=table.best, worst=table.worst)
    return [float(found[min(b, len(found)) - 1]) for b in BUDGETS]


def one_table(
    table: Table, memory: MetaDataset, seed: int, only: Sequence[str] = ()
) -> list[dict[str, object]]:
    """A row for each design on one table, left out of the memory with its family.

    ``only`` restricts the designs.
    """
    task = next(t for t in memory.tasks if t.name == table.name)
    family = task.tags.get("family", task.name)
    left = memory.subset(lambda t: t.tags.get("family", t.name) != family)
    own = memory.subset(lambda t: t.name == table.name)
    found: dict[str, list[float]] = {
        name: regrets(table, make().configurations)
        for name, make in designs(left, own, task.meta_features, only).items()
    }
    rng = np.random.default_rng(seed)
    drawn = [
        regrets(table, [table.config(int(i)) for i in rng.choice(len(table), K, replace=False)])
        for _ in range(20)
    ]
    found["random"] = np.mean(drawn, axis=0).tolist()
    return [
        {"table": table.name, "design": name}
        | {str(b): 100.0 * value for b, value in zip(BUDGETS, values, strict=True)}
        for name, values in found.items()
    ]


def regret(sources: Sequence[str] = RECORDED, n_jobs: int = 2) -> None:
    """Print the mean regret of each design, and p-values against the portfolio."""
    for source in sources:
        tables, memory = SOURCES[source]()
        parts = Parallel(n_jobs=n_jobs)(
            delayed(one_table)(table, memory, seed) for seed, table in enumerate(tables)
        )
        frame = pd.DataFrame([row for part in parts for row in part])
        shown = frame.drop(columns="table").groupby("design", sort=False).mean()
        wide = frame.pivot(index="table", columns="design")
        for b in map(str, BUDGETS):
            base = wide[b]["portfolio"]
            shown[f"p@{b}"] = [_p(wide[b][name] - base) for name in shown.index]
        print(f"\n{source}: {len(tables)} tables; mean regret in percent, p against the portfolio")
        print(shown.round(3).to_string())


def summary(
    sources: Sequence[str] = tuple(SOURCES),
    n_jobs: int = 2,
    out: Path = Path("build/designs.csv"),
) -> None:
    """Print regrets of the designs, and their mean ratio to the portfolio's over the sources."""

    def source_means(source: str, design: str) -> dict[str, Any]:
        tables, memory = SOURCES[source]()
        parts = Parallel(n_jobs=n_jobs)(
            delayed(one_table)(table, memory, 0, [design]) for table in tables
        )
        rows = [row for part in parts for row in part if row["design"] == design]
        return dict(pd.DataFrame(rows)[[str(b) for b in BUDGETS]].mean())

    wanted = list(product(sources, ("portfolio", "diverse", "knn")))
    found = keep_rows(out, ("source", "design"), wanted, source_means)
    means = found.pivot(index="source", columns="design")
    for b in map(str, BUDGETS):
        ratio = means[b].div(means[b]["portfolio"], axis=0)
        print(f"\nAfter {b}, mean regret in percent over {len(ratio)} sources")
        print(means[b].round(2).to_string())
        shown = pd.DataFrame(
            {
                "mean ratio": ratio.mean(),
                "geometric mean": np.exp(np.log(ratio.clip(lower=0.05)).mean()),
                "ratio of means": means[b].mean() / means[b]["portfolio"].mean(),
            }
        )
        print(shown.round(3).to_string())


def _p(difference: pd.Series) -> float:
    if not difference.any():
        return 1.0
    return float(wilcoxon(difference, zero_method="zsplit").pvalue)


def learner(sources: Sequence[str] = RECORDED, folds: int | None = None) -> None:
    """Print the rank correlation of the meta-learner, with and without landmarkers.

    ``folds`` is the number of parts in which tasks are left out; None leaves them out singly.
    """
    for source in sources:
        _, memory = SOURCES[source]()
        for label, used in (("all", memory), ("no landmarkers", _without_landmarkers(memory))):
            for leaves in (4, 16):
                begin = time.perf_counter()
                report = rank_report(MetaLearner(num_leaves=leaves), used, folds)
                seconds = time.perf_counter() - begin
                print(
                    f"{source}, {label}, {leaves} leaves: {report} ({seconds:.0f} s)", flush=True
                )


def rank_report(model: MetaLearner, memory: MetaDataset, folds: int | None) -> str:
    """Rank correlation of predicted and true losses on tasks left out, and what is used most."""
    n = len(memory.tasks)
    parts = np.arange(n) % (n if folds is None else min(folds, n))
    found = []
    for part in range(parts.max() + 1):
        out = {memory.tasks[t].name for t in np.flatnonzero(parts == part)}
        fitted = clone(model).fit(memory.without(*out))
        for task, rows in zip(memory.tasks, memory.rows, strict=True):
            known = ~np.isnan(memory.complete_losses[rows])
            if task.name in out and known.sum() > 1:
                predicted = fitted.predict(memory.vectors[rows], task.meta_features)
                truth = memory.losses[rows][known]
                found.append(kendalltau(predicted[known], truth).statistic)
    tau = np.array(found)[~np.isnan(found)]
    fitted = clone(model).fit(memory)
    gain = fitted.booster_.feature_importance("gain")
    order = np.argsort(-gain, kind="stable")[:5]
    used = ", ".join(f"{fitted.feature_names_[i]} {gain[i] / gain.sum():.0%}" for i in order)
    return f"Kendall tau-b {tau.mean():.3f}, mean of {len(tau)} tasks; most used: {used}"


def _without_landmarkers(memory: MetaDataset) -> MetaDataset:
    tasks = [
        replace(
            task,
            meta_features={
                name: value
                for name, value in task.meta_features.items()
                if not name.startswith(LANDMARKERS)
            },
        )
        for task in memory.tasks
    ]
    return replace(memory, tasks=tuple(tasks))


def speed() -> None:
    """Print how long a fit takes on 1 000 random runs of each of 100 described tasks."""
    rng = np.random.default_rng(0)
    space = ConfigurationSpace({f"x{i}": (0.0, 1.0) for i in range(8)})
    records = [
        TaskRecord(
            f"t{t}",
            [dict(zip(space, row, strict=True)) for row in rng.random((1000, 8)).tolist()],
            rng.random(1000),
            space=space,
            meta_features={f"m{i}": float(v) for i, v in enumerate(rng.random(80))},
        )
        for t in range(100)
    ]
    memory = MetaDataset.from_records(records)
    begin = time.perf_counter()
    MetaLearner().fit(memory)
    print(f"{len(memory)} runs, one thread: {time.perf_counter() - begin:.1f} s")


if __name__ == "__main__":
    run_command(__doc__, regret, summary, learner, speed, sources=SOURCES)
