"""The algorithms of this package in Hyperopt beside its own TPE, measured in the same run.

benchmark_hyperopt.py quality  # regret on recorded tables; needs the data
benchmark_hyperopt.py functions  # the kinds of problems of Hyperopt's own tests
benchmark_hyperopt.py overhead  # time per suggestion
"""

from __future__ import annotations

import argparse
import logging
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from automl_plugins.adapters.hyperopt import ei_per_second, gbqr, optimizer
from hyperopt import Domain, Trials, fmin, hp, rand, tpe
from hyperopt_functions import FUNCTIONS
from recorded_tables import oboe, svm_grid

from automl_plugins.replay import replay
from automl_plugins.statistics import compare

AT = (10, 20, 30, 50)  # trials at which regrets are shown
ALGOS = {"tpe": tpe.suggest, "gbqr": gbqr, "ei_per_second": ei_per_second}


def quality(every: dict[str, int], seeds: int, n_jobs: int, path: Path | None) -> None:
    """Mean normalised regret in percent, and whether the difference to TPE is significant."""
    methods = {name: optimizer(algo, name=name) for name, algo in ALGOS.items()}
    tables = {"svm_grid": svm_grid()[:: every["svm_grid"]], "oboe": oboe(every["oboe"])}
    for source, chosen in tables.items():
        frame = replay(
            methods, chosen, budget=max(AT), seed=range(seeds), n_jobs=n_jobs, path=path
        )
        print(f"{source}, {len(chosen)} tables, {seeds} seeds: regret in %")
        print(" " * 14 + "".join(f"{n:8d}" for n in AT))
        for name in methods:
            own = frame[frame["method"] == name]
            means = [100 * own.loc[own["trial"] == n, "regret"].mean() for n in AT]
            print(f"{name:14s}" + "".join(f"{mean:8.2f}" for mean in means), flush=True)
        for n in (30, 50):
            result = compare(frame[frame["trial"] <= n], control="tpe")
            print(f"after {n} trials, against tpe:\n{result}\n", flush=True)


def functions(n_trials: int, seeds: int) -> None:
    """Median of the best loss, by problem."""
    algos = {"rand": rand.suggest, **ALGOS}
    del algos["ei_per_second"]  # all points take equally long
    print(f"{'problem':14s}" + "".join(f"{name:>10s}" for name in algos) + "   best known")
    for problem, (space, loss, least) in FUNCTIONS.items():
        line = f"{problem:14s}"
        for algo in algos.values():
            best = []
            for seed in range(seeds):
                trials = Trials()
                fmin(
                    loss(seed),
                    space(),
                    algo=algo,
                    max_evals=n_trials,
                    trials=trials,
                    rstate=np.random.default_rng(seed),
                    show_progressbar=False,
                )
                best.append(min(trials.losses()))
            line += f"{np.median(best):10.4f}"
        print(f"{line}{least:12.3f}", flush=True)


def milliseconds(algo: Any, n_trials: int, cycles: int) -> float:
    """Mean processor time of a suggestion after ``n_trials``, 10 floats, a new result each."""
    space = {f"x{i}": hp.uniform(f"x{i}", 0, 1) for i in range(10)}
    domain, trials = Domain(None, space, pass_expr_memo_ctrl=False), Trials()
    trials.insert_trial_docs(rand.suggest(trials.new_trial_ids(n_trials), domain, trials, 0))
    passed = 0.0
    for cycle in range(cycles + 1):
        trials.refresh()
        for document in trials.trials:
            if document["state"] == 0:
                values = np.array([v[0] for v in document["misc"]["vals"].values()])
                loss = float(((values - 0.4) ** 2).sum())
                document["result"] = {"status": "ok", "loss": loss, "seconds": 1.0}
                document["state"] = 2
        start = time.process_time()
        documents = algo(trials.new_trial_ids(1), domain, trials, cycle)
        if cycle:  # translating the space is no part of a suggestion
            passed += time.process_time() - start
        trials.insert_trial_docs(documents)
    return 1e3 * passed / cycles


def overhead(at: list[int], cycles: int, repeats: int) -> None:
    """Table of milliseconds; algorithms take turns, the ratio is of medians."""
    print(f"{'algorithm':20s} {'trials':>7s} {'ms':>8s} {'/ tpe':>6s}")
    algos = {**ALGOS, "gbqr(seed=0)": gbqr(seed=0), "ei_per_second(seed=0)": ei_per_second(seed=0)}
    for n_trials in at:
        times: dict[str, list[float]] = {name: [] for name in algos}
        for _ in range(repeats):
            for name, algo in algos.items():
                times[name].append(milliseconds(algo, n_trials, cycles))
        for name, values in times.items():
            ratio = np.median(values) / np.median(times["tpe"])
            print(f"{name:20s} {n_trials:7d} {np.median(values):8.1f} {ratio:6.2f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("what", choices=["quality", "functions", "overhead"])
    parser.add_argument("--every-svm-grid", type=int, default=1)
    parser.add_argument("--every-oboe", type=int, default=6)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--n-trials", type=int, default=50, help="of functions")
    parser.add_argument("--at", type=int, nargs="+", default=[50, 200, 1000], help="of overhead")
    parser.add_argument("--cycles", type=int, default=20)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--n-jobs", type=int, default=1)
    parser.add_argument("--path", type=Path, help="where an interrupted quality run goes on")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.getLogger("hyperopt").setLevel(logging.ERROR)
    if args.what == "quality":
        every = {"svm_grid": args.every_svm_grid, "oboe": args.every_oboe}
        quality(every, args.seeds, args.n_jobs, args.path)
    elif args.what == "functions":
        functions(args.n_trials, args.seeds)
    else:
        overhead(args.at, args.cycles, args.repeats)


if __name__ == "__main__":
    main()
