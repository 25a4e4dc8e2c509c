"""Eight workers against one at the same number of trials, on the families of problems.

The workers are simulated: all begin at once, an evaluation takes 0.5 to 1.5 seconds, and a worker
asks for the next one when its own has ended. Durations follow from the seed, so every figure is
reproducible. Searches are appended to a file; a search in the file is not run again. The judged
halves of the families of ``families.py`` are searched; smooth functions need no recorded runs.
``AutoSampler`` has no memory here.

    benchmark_workers.py  # nine families, up to six tasks and 3 seeds each: half an hour

Regret is the gap between the best loss so far and the least possible or known one. It is a share
of the distance from that least loss to the worst one of a table, or to the median of random
configurations; on smooth functions it is the gap itself. In geometric means it is at least 0.0001.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from common import keep_rows, run_command
from families import FAMILIES, Task, half, spread
from family_searches import METHODS as SEARCHED
from family_searches import NO_MEMORY, MakeMethod, start

from automl_plugins.replay import Outcome, TrialStatus
from automl_plugins.replay.runs import search_seed
from automl_plugins.streams import Streams

METHODS: dict[str, MakeMethod] = {
    "AutoSampler": SEARCHED[NO_MEMORY],
    "GBQR": SEARCHED["GBQR"],
    "TPE": SEARCHED["Optuna TPE"],  # counts running trials as bad ones, by default
    "random": SEARCHED["random"],
}
N_WORKERS = 8
AT = (32, 64)
FLOOR = 1e-4
_DRAWS = 2000  # random configurations that stand for an unknown best loss


def search(method: str, task: Task, workers: int, seed: int) -> dict[str, float]:
    """The best losses after the numbers of trials in ``AT``, in the order in which they ended."""
    optimizer = start(METHODS[method](), task, seed, max(AT))
    streams = Streams(search_seed(seed, task.name))  # of the durations
    running: list[tuple[float, int, Any]] = []
    losses: list[float] = []
    now, asked = 0.0, 0
    while len(losses) < max(AT):
        while len(running) < workers and asked < max(AT):
            proposal = optimizer.ask()
            if proposal is None:  # the search has nothing left to try
                break
            seconds = float(streams.generator("duration", asked).uniform(0.5, 1.5))
            heapq.heappush(running, (now + seconds, asked, (proposal, now)))
            asked += 1
        if not running:
            break
        now, _, (proposal, began) = heapq.heappop(running)
        loss = task.loss(proposal.config)
        status = TrialStatus.COMPLETE if math.isfinite(loss) else TrialStatus.FAILED
        optimizer.tell(proposal, Outcome(status, loss, began, now))
        losses.append(loss)
    return {str(at): float(np.nanmin(losses[:at])) for at in AT}


@cache
def tasks_of(family: str, limit: int) -> dict[str, Task]:
    """At most ``limit`` evenly spaced judged tasks of a family, by name."""
    return {task.name: task for task in spread(half(family, "judged"), limit)}


def to_regrets(found: pd.DataFrame, limit: int) -> pd.DataFrame:
    """The searches with regrets in place of losses."""
    columns = [str(at) for at in AT]
    parts = []
    for (family, name), rows in found.groupby(["family", "task"], sort=False):
        best, worst = tasks_of(str(family), limit)[str(name)].scale(_DRAWS)
        best = min(best, rows[columns].min().min())
        width = 1.0 if worst is None else worst - best
        parts.append(rows.assign(**{at: (rows[at] - best) / width for at in columns}))
    return pd.concat(parts)


def show(regrets: pd.DataFrame) -> None:
    """Print geometric mean regrets by family, and the ratio of eight workers' to one's."""
    columns = [str(at) for at in AT]
    logs = regrets.assign(**{at: np.log(regrets[at].clip(lower=FLOOR)) for at in columns})
    print("Geometric mean regret in percent (of smooth functions as it is, times 100)")
    means = logs.groupby(["family", "method", "workers"], sort=False)[columns].mean()
    shown = means.apply(np.exp).mul(100.0).unstack("workers")
    print(shown.to_string(float_format=lambda x: f"{x:.3g}"))
    over_all = means.groupby(["method", "workers"], sort=False).mean()
    for method in over_all.index.unique("method"):
        difference = over_all.loc[method, N_WORKERS] - over_all.loc[method, 1]
        ratios = " / ".join(f"{math.exp(difference[at]):.2f}" for at in columns)
        print(f"{method}: regret of {N_WORKERS} workers is {ratios} of one's after {AT} trials")


def main(
    methods: Sequence[str] = tuple(METHODS),
    families: Sequence[str] = tuple(FAMILIES),
    limit: int = 6,
    seeds: int = 3,
    path: str = "build/workers.csv",
) -> None:
    """Run the missing searches and print the means."""
    names = [(family, task) for family in families for task in tasks_of(family, limit)]

    def run(method: str, family: str, task: str, workers: int, seed: int) -> dict[str, float]:
        return search(method, tasks_of(family, limit)[task], workers, seed)

    wanted = [
        (method, family, task, workers, seed)
        for method, (family, task), workers, seed in product(
            methods, names, [1, N_WORKERS], range(seeds)
        )
    ]
    key = ["method", "family", "task", "workers", "seed"]
    show(to_regrets(keep_rows(Path(path), key, wanted, run), limit))


if __name__ == "__main__":
    run_command(__doc__, main, methods=METHODS, families=FAMILIES)
