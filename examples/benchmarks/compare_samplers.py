"""The evidence page: every sampler of this package against the samplers one would use instead.

One protocol for all: recorded tables, one search space, 60 trials, a seed of its own for every
search. Searches are appended to a file, so an interrupted run goes on where it stopped; the page
is written from that file.

    compare_samplers.py  # run what is missing, write the page
    compare_samplers.py --quick  # two tables of each source
    compare_samplers.py --methods "GBQR,GBQR without doubt" --no-page
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pandas as pd
from automl_plugins.adapters import hyperopt, optuna, smac
from common import Quiet, make_parser
from evidence_page import write_page
from optuna.samplers import CmaEsSampler, GPSampler, RandomSampler, TPESampler
from recorded_tables import adaboost, oboe, svm_grid

from automl_plugins.replay import Method, Table, replay

N_TRIALS = 60
SOURCES: dict[str, Callable[[], list[Table]]] = {
    "svm_grid": lambda: svm_grid()[::2],
    "oboe": partial(oboe, every=18),
    "adaboost": partial(adaboost, every=4),
}
OURS: dict[str, Method] = {
    "GBQR": optuna.optimizer("GBQRSampler"),
    "GBQR thesis": optuna.optimizer("GBQRSampler.thesis"),
    "EI per second": optuna.optimizer("EIPerSecondSampler", cost=optuna.SECONDS),
    "Forest EI": optuna.optimizer("SurrogateSampler", surrogate="random_forest"),
}
PEERS: dict[str, Method] = {
    "Optuna TPE": optuna.optimizer(TPESampler),
    "Optuna TPE grouped": optuna.optimizer(TPESampler, multivariate=True, group=True),
    "Optuna GP": optuna.optimizer(GPSampler, warn_independent_sampling=False),
    "Optuna CMA-ES": optuna.optimizer(CmaEsSampler, warn_independent_sampling=False),
    "Hyperopt TPE": hyperopt.optimizer("tpe"),
    "SMAC": smac.optimizer("HyperparameterOptimizationFacade"),
    "random": optuna.optimizer(RandomSampler),
}
#: Not on the page: what each part of GBQR is worth.
ABLATIONS: dict[str, Method] = {
    "GBQR without doubt": optuna.optimizer("GBQRSampler", doubt=0.0),
    "GBQR without balance": optuna.optimizer("GBQRSampler", balance=None),
    "GBQR one model": optuna.optimizer("GBQRSampler", n_models=1),
}
TWICE = "random 2x"


def run(
    methods: Mapping[str, Method],
    tables: list[Table],
    seeds: int,
    n_jobs: int,
    folder: Path,
    n_trials: int = N_TRIALS,
) -> pd.DataFrame:
    """All searches as one tidy frame; what the folder holds already is not run again."""
    shared: dict[str, Any] = {"seed": range(seeds), "n_jobs": n_jobs}
    quiet = {name: Quiet(method) for name, method in methods.items()}
    frames = [replay(quiet, tables, budget=n_trials, path=folder / "runs.csv", **shared)]
    if "random" in methods:
        twice = replay(
            {TWICE: quiet["random"]},
            tables,
            budget=2 * n_trials,
            path=folder / "random.csv",
            **shared,
        )
        frames.append(halved(twice))
    return pd.concat(frames, ignore_index=True)


def halved(runs: pd.DataFrame) -> pd.DataFrame:
    """Two evaluations counted as one trial, as if made on two machines."""
    second = runs[runs.trial % 2 == 0]
    return second.assign(trial=second.trial // 2, seconds=second.seconds / 2)


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--methods", help="names, separated by commas; default: all but ablations")
    parser.add_argument("--sources", default=",".join(SOURCES))
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--n-jobs", type=int, default=1)
    parser.add_argument("--n-trials", type=int, default=N_TRIALS)
    parser.add_argument("--quick", action="store_true", help="two tables of each source")
    parser.add_argument("--control", default="GBQR")
    parser.add_argument("--no-page", action="store_true", help="run only")
    parser.add_argument("--runs", type=Path, default=Path("build/evidence"), help="their folder")
    parser.add_argument("--out", type=Path, help="folder of the page; default: that of the runs")
    args = parser.parse_args()
    every = OURS | PEERS | ABLATIONS
    names = args.methods.split(",") if args.methods else [*OURS, *PEERS]
    if "Optuna GP" in names and find_spec("torch") is None:
        print("Optuna GP is left out: it needs torch, which is not installed.")
        names.remove("Optuna GP")
    tables = [
        t for s in args.sources.split(",") for t in SOURCES[s]()[: 2 if args.quick else None]
    ]
    methods = {name: every[name] for name in names}
    runs = run(methods, tables, args.seeds, args.n_jobs, args.runs, args.n_trials)
    if not args.no_page:
        write_page(runs, args.out or args.runs, control=args.control, ours=list(OURS))


if __name__ == "__main__":
    main()
