"""Quality on recorded tuning runs: mean normalised regret of many samplers, one shared protocol.

Every run has a seed of its own (data set and repetition), 60 trials, the search space of
``recorded_tables``; runs are appended to a CSV file, so an interrupted benchmark resumes.

    python examples/benchmark_quality.py run --methods gbqr,optuna_tpe --sources svm_grid,oboe
    python examples/benchmark_quality.py report
"""

from __future__ import annotations

import argparse
import csv
import tempfile
import warnings
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from recorded_tables import Parameter, RecordedTable, adaboost, oboe, svm_grid

SOURCES: dict[str, Callable[[], list[RecordedTable]]] = {
    "svm_grid": svm_grid,
    "oboe": lambda: oboe(every=6),
    "adaboost": adaboost,
}
Losses = list[float]


# --- one search by each framework ---------------------------------------------------------


def suggest(trial: Any, table: RecordedTable) -> dict[str, Any]:
    """The table's space as a define-by-run Optuna objective would ask for it."""
    config: dict[str, Any] = {}
    for p in table.parameters:
        if p.parent is not None and config.get(p.parent) != p.parent_value:
            continue
        if p.choices is not None:
            config[p.name] = trial.suggest_categorical(p.name, p.choices)
        elif p.integer:
            config[p.name] = trial.suggest_int(p.name, int(p.low), int(p.high), log=p.log)
        else:
            config[p.name] = trial.suggest_float(p.name, p.low, p.high, log=p.log)
    return config


def run_optuna(sampler: Any, table: RecordedTable, n_trials: int) -> Losses:
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(sampler=sampler)
    losses = []
    for _ in range(n_trials):
        trial = study.ask()
        losses.append(table.evaluate(suggest(trial, table))[0])
        study.tell(trial, losses[-1])
    return losses


def _optuna(name: str, **arguments: Any) -> Callable[[RecordedTable, int, int], Losses]:
    def run(table: RecordedTable, seed: int, n_trials: int) -> Losses:
        import optuna

        sampler = getattr(optuna.samplers, name)(seed=seed, **arguments)
        return run_optuna(sampler, table, n_trials)

    return run


def _own(name: str, **arguments: Any) -> Callable[[RecordedTable, int, int], Losses]:
    def run(table: RecordedTable, seed: int, n_trials: int) -> Losses:
        import automl_plugins.adapters.optuna as plugins

        factory: Any = plugins
        for part in name.split("."):
            factory = getattr(factory, part)
        return run_optuna(factory(seed=seed, **arguments), table, n_trials)

    return run


def run_hyperopt(table: RecordedTable, seed: int, n_trials: int) -> Losses:
    from hyperopt import Trials, fmin, hp, tpe

    def expression(p: Parameter) -> Any:
        if p.choices is not None:
            children = {
                value: [
                    q for q in table.parameters if (q.parent, q.parent_value) == (p.name, value)
                ]
                for value in p.choices
            }
            return hp.choice(
                p.name,
                [
                    {p.name: value, **{q.name: expression(q) for q in children[value]}}
                    for value in p.choices
                ],
            )
        if p.integer:
            return hp.randint(p.name, int(p.low), int(p.high) + 1)
        low, high = (np.log(p.low), np.log(p.high)) if p.log else (p.low, p.high)
        return (hp.loguniform if p.log else hp.uniform)(p.name, low, high)

    def flatten(config: dict[str, Any]) -> Iterator[tuple[str, Any]]:
        for key, value in config.items():
            if isinstance(value, dict):
                yield from flatten(value)
            else:
                yield key, value

    trials = Trials()
    fmin(
        lambda config: table.evaluate(dict(flatten(config)))[0],
        {p.name: expression(p) for p in table.parameters if p.parent is None},
        algo=tpe.suggest,
        max_evals=n_trials,
        trials=trials,
        rstate=np.random.default_rng(seed),
        show_progressbar=False,
        verbose=False,
    )
    return [float(loss) for loss in trials.losses()]


def run_smac(table: RecordedTable, seed: int, n_trials: int) -> Losses:
    from ConfigSpace import Categorical, ConfigurationSpace, EqualsCondition, Float, Integer
    from smac import HyperparameterOptimizationFacade, Scenario

    space = ConfigurationSpace(seed=seed)
    for p in table.parameters:
        if p.choices is not None:
            space.add(Categorical(p.name, list(p.choices)))
        elif p.integer:
            space.add(Integer(p.name, (int(p.low), int(p.high)), log=p.log))
        else:
            space.add(Float(p.name, (p.low, p.high), log=p.log))
    space.add(
        [
            EqualsCondition(space[p.name], space[p.parent], p.parent_value)
            for p in table.parameters
            if p.parent is not None
        ]
    )
    losses: Losses = []

    def target(config: Any, seed: int = 0) -> float:
        losses.append(table.evaluate(dict(config))[0])
        return losses[-1]

    with tempfile.TemporaryDirectory() as folder:
        scenario = Scenario(
            space, n_trials=n_trials, deterministic=True, seed=seed, output_directory=Path(folder)
        )
        HyperparameterOptimizationFacade(
            scenario, target, logging_level=False, overwrite=True
        ).optimize()
    # A space smaller than the budget ends the search early: its best stays the best.
    return losses + [min(losses)] * (n_trials - len(losses))


METHODS: dict[str, Callable[[RecordedTable, int, int], Losses]] = {
    "random": _optuna("RandomSampler"),
    "optuna_tpe": _optuna("TPESampler"),
    "optuna_tpe_group": _optuna("TPESampler", multivariate=True, group=True),
    "hyperopt_tpe": run_hyperopt,
    "smac_hpo": run_smac,
    "gbqr": _own("GBQRSampler"),
    "gbqr_thesis": _own("GBQRSampler.thesis"),
    "gbqr_no_doubt": _own("GBQRSampler", doubt=0.0),
    "gbqr_no_balance": _own("GBQRSampler", balance=None),
    "gbqr_one_model": _own("GBQRSampler", n_models=1),
    "ei_per_second": _own("EIPerSecondSampler"),
    "surrogate_forest": _own("SurrogateSampler", surrogate="random_forest"),
}


# --- the protocol -------------------------------------------------------------------------


def seed_of(source: str, name: str, repetition: int) -> int:
    """A seed of its own for every table: one seed for all of them flips rankings of methods."""
    return zlib.crc32(f"{source}/{name}/{repetition}".encode()) % 2**31


def _job(job: tuple[str, str, int, int, int]) -> list[tuple[Any, ...]]:
    method, source, position, repetition, n_trials = job
    warnings.simplefilter("ignore")
    table = SOURCES[source]()[position]
    seed = seed_of(source, table.name, repetition)
    regret = table.regret(np.array(METHODS[method](table, seed, n_trials)))
    return [(method, source, table.name, repetition, i + 1, r) for i, r in enumerate(regret)]


def run(
    methods: list[str],
    sources: list[str],
    n_trials: int,
    seeds: int,
    n_jobs: int,
    out: Path,
    n_tables: int | None = None,
) -> None:
    """Append every missing run, on the first ``n_tables`` of each source, to the file ``out``."""
    done = set()
    if out.exists():
        frame = pd.read_csv(out, dtype={"table": str})
        done = set(frame[["method", "source", "table", "seed"]].itertuples(index=False, name=None))
    jobs = [
        (method, source, position, repetition, n_trials)
        for repetition in range(seeds)
        for source in sources
        for method in methods
        for position, table in enumerate(SOURCES[source]()[:n_tables])
        if (method, source, table.name, repetition) not in done
    ]
    out.parent.mkdir(parents=True, exist_ok=True)
    fresh = not out.exists()
    with out.open("a", newline="") as file, ProcessPoolExecutor(n_jobs) as pool:
        writer = csv.writer(file)
        if fresh:
            writer.writerow(["method", "source", "table", "seed", "trial", "regret"])
        for i, rows in enumerate(pool.map(_job, jobs), 1):
            writer.writerows(rows)
            file.flush()
            if i % max(1, len(jobs) // 20) == 0:
                print(f"{i}/{len(jobs)} runs", flush=True)


def report(out: Path, control: str) -> str:
    """Mean percent regret and a paired Wilcoxon test of ``control`` against every method."""
    from scipy.stats import wilcoxon

    frame = pd.read_csv(out, dtype={"table": str})
    lines = []
    for source, rows in frame.groupby("source"):
        lines += [f"\n### {source}\n", "| method | runs | @20 | @30 | @50 | @60 | p@30 | p@50 |"]
        lines += ["|---|---|---|---|---|---|---|---|"]
        means = {
            t: rows[rows.trial == t].pivot_table(index="table", columns="method", values="regret")
            for t in (20, 30, 50, 60)
        }
        for method in means[50].mean().sort_values().index:
            p_values = []
            for t in (30, 50):
                p = float("nan")
                if control in means[t] and method != control:
                    pair = means[t][[control, method]].dropna()
                    p = wilcoxon(pair[control], pair[method], zero_method="zsplit").pvalue
                p_values.append(f"{p:.2g}")
            runs = rows[(rows.method == method) & (rows.trial == 50)].shape[0]
            cells = [f"{100 * means[t][method].mean():.2f}" for t in (20, 30, 50, 60)]
            lines.append(f"| {method} | {runs} | {' | '.join(cells)} | {' | '.join(p_values)} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("action", choices=["run", "report"])
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--sources", default=",".join(SOURCES))
    parser.add_argument("--n-trials", type=int, default=60)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--n-jobs", type=int, default=1)
    parser.add_argument("--quick", action="store_true", help="two tables of each source")
    parser.add_argument("--control", default="gbqr")
    parser.add_argument("--out", type=Path, default=Path("build/quality.csv"))
    args = parser.parse_args()
    if args.action == "run":
        methods, sources = args.methods.split(","), args.sources.split(",")
        n_tables = 2 if args.quick else None
        run(methods, sources, args.n_trials, args.seeds, args.n_jobs, args.out, n_tables)
    print(report(args.out, args.control))


if __name__ == "__main__":
    main()
