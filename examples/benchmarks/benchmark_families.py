"""Every method on nine families of problems, half of each to tune on, half to judge on.

benchmark_families.py run --half tuned --families svm_grid --methods GBQR mine --extra mine.py
benchmark_families.py report
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from common import run_command
from families import FAMILIES, family, surrogate
from family_searches import OURS, PEERS, read_results
from family_searches import run as run_searches

SCENARIOS = ("lcbench", "rbv2_xgboost")
BUDGETS = (10, 20, 30, 50, 60)
FOLDER = Path("build/families")
SCALES = "scales.csv"


def run(
    half: str = "tuned",
    families: Sequence[str] = tuple(FAMILIES),
    methods: Sequence[str] = (*OURS, *PEERS),
    seeds: int = 2,
    n_trials: int | None = None,
    n_jobs: int = 1,
    limit: int | None = None,
    every: int = 1,
    extra: Path | None = None,
    out: Path = FOLDER,
) -> None:
    """Run the searches that are missing."""
    run_searches(
        families,
        methods,
        half,
        range(seeds),
        out / half,
        extra=extra,
        n_trials=n_trials,
        n_jobs=n_jobs,
        limit=limit,
        every=every,
    )


def scale(
    families: Sequence[str] = tuple(FAMILIES), draws: int = 20_000, out: Path = FOLDER
) -> None:
    """Write the best and the worst loss of each task: regret is a share of their distance.

    For surrogates the best is that of random configurations, until a search finds a better one,
    and the "worst" is their median.
    """
    rows: list[tuple[str, float | None, float | None]] = []
    for name in families:
        if name in SCENARIOS:
            network = surrogate(name)
            space = network.space
            space.seed(0)
            configs = [dict(c) for c in space.sample_configuration(draws)]
            for task in network.tasks:
                losses = network.losses(task, configs)
                rows.append((f"{name}/{task}", float(losses.min()), float(np.median(losses))))
        else:
            rows += [(t.name, t.best, t.worst) for t in family(name)]
    out.mkdir(parents=True, exist_ok=True)
    pd.DataFrame(rows, columns=["task", "best", "worst"]).to_csv(out / SCALES, index=False)


def report(
    half: str = "tuned",
    families: Sequence[str] = tuple(FAMILIES),
    methods: Sequence[str] = (),
    floor: float = 0.1,
    out: Path = FOLDER,
) -> None:
    """Print mean and geometric mean regret, on the searches that all the methods made."""
    runs = regrets(out, half)
    if methods:
        runs = runs[runs.index.isin(methods, level="method")]
    for name in families:
        if not (runs.index.get_level_values("family") == name).any():
            continue
        of_family = pd.DataFrame(runs.xs(name, level="family")).dropna(axis=1, how="all")
        wide = of_family.drop(columns="ms").unstack("method").dropna()
        ms = of_family["ms"].groupby("method").mean()
        print(f"\n{name}: {len(wide)} searches; mean (geometric mean), ms for a trial")
        rows = {}
        for method in ms.index:
            cells = []
            for budget in of_family.columns.drop("ms"):
                values = wide[budget][method].to_numpy()
                geometric = np.exp(np.log(np.maximum(values, floor)).mean())
                cells.append(
                    f"{values.mean():.3f}"
                    if name == "smooth"
                    else f"{values.mean():.2f} ({geometric:.2f})"
                )
            rows[method] = [*cells, f"{ms[method]:.1f}"]
        columns = [*map(str, of_family.columns.drop("ms")), "ms"]
        print(pd.DataFrame.from_dict(rows, orient="index", columns=columns).to_string())


def regrets(out: Path, half: str) -> pd.DataFrame:
    """Regret of each search (family, task, seed, method) by budget, in percent.

    On smooth functions it is the decimal logarithm of the loss, at least -8. The column ``ms``
    has the milliseconds that proposing took for a trial.
    """
    scales = pd.read_csv(out / SCALES).set_index("task")
    found = list(read_results(out / half))
    best = scales["best"].to_dict()
    for r in found:
        if r["improvements"]:
            best[r["task"]] = min(best[r["task"]], r["improvements"][-1][1])
    rows = {}
    for r in found:
        low, high = best[r["task"]], scales["worst"][r["task"]]
        row: dict[str | int, float] = {"ms": 1e3 * r["proposing"] / r["n_trials"]}
        for budget in BUDGETS:
            if budget > r["n_trials"]:
                continue
            losses = [loss for trial, loss in r["improvements"] if trial <= budget]
            if math.isnan(high):
                row[budget] = math.log10(max(losses[-1] - low, 1e-8))
            else:
                last = losses[-1] if losses else high
                row[budget] = 100 * (last - low) / (high - low)
        rows[r["task"].partition("/")[0], r["task"], r["seed"], r["method"]] = row
    frame = pd.DataFrame.from_dict(rows, orient="index")
    frame.index = frame.index.set_names(["family", "task", "seed", "method"])
    return frame[[*(b for b in BUDGETS if b in frame), "ms"]]


if __name__ == "__main__":
    run_command(__doc__, run, scale, report, half=("tuned", "judged"), families=FAMILIES)
