"""GBQR and EI per second in SMAC, beside SMAC's own default on the same recorded runs.

    benchmark_smac.py quality  # regret at 30 and 50 trials, svm_grid and oboe
    benchmark_smac.py seconds  # simulated time to the default's final best, oboe
    benchmark_smac.py overhead  # seconds per proposal at 100, 500, 1 000 trials

The first two need the recorded runs; an interrupted one goes on in build/. Set OMP_NUM_THREADS=1.
"""

from __future__ import annotations

import argparse
import math
import tempfile
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from automl_plugins.adapters.smac import (
    CostAndSecondsEncoder,
    EIPerSecond,
    GBQRFacade,
    ProposerConfigSelector,
    SurrogateModel,
    optimizer,
)
from ConfigSpace import Configuration, ConfigurationSpace
from recorded_tables import oboe, svm_grid
from scipy.stats import wilcoxon
from smac import HyperparameterOptimizationFacade, Scenario
from smac.facade.abstract_facade import AbstractFacade
from smac.initial_design import RandomInitialDesign
from smac.model.random_forest.random_forest import RandomForest
from smac.runhistory import TrialInfo, TrialValue

from automl_plugins.recipes import ei_per_second, gbqr_surrogate
from automl_plugins.replay import Method, Table, replay

RETRAINED = partial(HyperparameterOptimizationFacade.get_config_selector, retrain_after=1)
BUDGETS = (10, 20, 30, 50)


def forest(scenario: Scenario) -> RandomForest:
    """The default's forest, on one core and without room for the million leaves it never has.

    The same trees, for no run here has as many trials; ``overhead`` measures the default itself.
    """
    return RandomForest(
        scenario.configspace,
        log_y=True,
        n_trees=10,
        bootstrapping=True,
        ratio_features=1.0,
        min_samples_split=2,
        min_samples_leaf=1,
        max_depth=2**20,
        max_leaf_nodes=256,
        n_jobs=1,
        instance_features=scenario.instance_features,
        seed=scenario.seed,
    )


def per_second(scenario: Scenario) -> ProposerConfigSelector:
    return ProposerConfigSelector(scenario, ei_per_second())


def two_outputs(scenario: Scenario) -> SurrogateModel:
    return SurrogateModel(
        scenario.configspace, gbqr_surrogate(per_second=True), seed=scenario.seed
    )


QUALITY: dict[str, Method] = {
    "SMAC": optimizer(HyperparameterOptimizationFacade, config_selector=RETRAINED, model=forest),
    "GBQR": optimizer(GBQRFacade),
}
SECONDS: dict[str, Method] = {
    "SMAC": optimizer(HyperparameterOptimizationFacade, model=forest),
    "EI per second": optimizer(GBQRFacade, config_selector=per_second),
    "GBQR per second": optimizer(
        GBQRFacade, config_selector=partial(GBQRFacade.get_config_selector, per_second=True)
    ),
    # SMAC's own selector, told of seconds
    "EIPerSecond": optimizer(
        HyperparameterOptimizationFacade,
        config_selector=RETRAINED,
        model=two_outputs,
        acquisition_function=EIPerSecond(),
        runhistory_encoder=partial(CostAndSecondsEncoder, target="normal_scores"),
    ),
}


def spread(tables: list[Table], n: int) -> list[Table]:
    """At most ``n`` of the tables, evenly spread."""
    return [tables[i] for i in np.unique(np.linspace(0, len(tables) - 1, n).astype(int))]


def quality(n_tables: int, seeds: int) -> None:
    """Mean normalised regret after a number of trials, and Wilcoxon's p over tables at 30, 50."""
    tables = [*spread(svm_grid(), n_tables), *spread(oboe(), n_tables)]
    frame = replay(
        QUALITY, tables, budget=max(BUDGETS), seed=range(seeds), path="build/smac_quality.csv"
    )
    frame["source"] = frame.table.str.split("/").str[0]
    print(f"{'source':10s} {'method':8s}" + "".join(f"{n:>8d}" for n in BUDGETS))
    for (source, method), rows in frame.groupby(["source", "method"], sort=False):
        at = [100 * rows[rows.trial == n].regret.mean() for n in BUDGETS]
        print(f"{source:10s} {method:8s}" + "".join(f"{r:8.2f}" for r in at))
    for n in (30, 50):
        pairs = frame[frame.trial == n].pivot_table(
            index="table", columns="method", values="regret"
        )
        gain = pairs["SMAC"] - pairs["GBQR"]
        p = wilcoxon(gain).pvalue if (gain != 0).any() else 1.0
        print(
            f"{n} trials: better/equal/worse {sum(gain > 0)}/{sum(gain == 0)}/{sum(gain < 0)},"
            f" p = {p:.3f}"
        )


def seconds(n_tables: int, seeds: int, names: list[str]) -> None:
    """Simulated time to the default facade's final best, as a ratio to its own."""
    methods = {name: SECONDS[name] for name in dict.fromkeys(["SMAC", *names])}
    frame = replay(
        methods,
        spread(oboe(), n_tables),
        budget=100,
        seed=range(seeds),
        path="build/smac_seconds.csv",
    )
    searches = {
        name: dict(list(rows.groupby(["table", "seed"]))) for name, rows in frame.groupby("method")
    }
    for name in names:
        ratios = [ratio(default, searches[name][key]) for key, default in searches["SMAC"].items()]
        never = sum(map(math.isinf, ratios))
        print(
            f"{name}: median ratio {np.median(ratios):.3f} over {len(ratios)} searches,"
            f" never reached in {never}, at most 0.6 in {sum(r <= 0.6 for r in ratios)}"
        )


def ratio(default: pd.DataFrame, own: pd.DataFrame) -> float:
    target = default.regret.iloc[-1]
    reached = own[own.regret <= target]
    first = default[default.regret <= target].seconds.iloc[0]
    return float(reached.seconds.iloc[0] / first) if len(reached) else math.inf


# --- overhead -------------------------------------------------------------------------------


def bowl(config: Configuration, seed: int = 0) -> float:
    return float(sum((x - 0.4) ** 2 for x in config.values()))


def filled(make: Callable[..., AbstractFacade], n_trials: int, folder: Path) -> AbstractFacade:
    """A facade that knows ``n_trials`` random configurations of ten numbers."""
    space = ConfigurationSpace({f"x{i}": (0.0, 1.0) for i in range(10)}, seed=0)
    scenario = Scenario(space, n_trials=2 * n_trials, deterministic=True, output_directory=folder)
    facade = make(
        scenario,
        bowl,
        initial_design=RandomInitialDesign(scenario, n_configs=0),
        logging_level=False,
        overwrite=True,
    )
    for config in space.sample_configuration(n_trials):
        facade.tell(TrialInfo(config, seed=0), TrialValue(bowl(config), time=1.0), save=False)
    step(facade)  # SMAC sorts the stored trials into its queue once
    return facade


def step(facade: AbstractFacade) -> None:
    info = facade.ask()
    facade.tell(info, TrialValue(bowl(info.config), time=1.0), save=False)


def retrained(scenario: Scenario, *arguments: Any, **parts: Any) -> AbstractFacade:
    return HyperparameterOptimizationFacade(
        scenario, *arguments, config_selector=RETRAINED(scenario), **parts
    )


def overhead(at: list[int], cycles: int) -> None:
    """Mean seconds of an ask/tell cycle, refits included."""
    print(f"{'trials':>6s} {'SMAC':>8s} {'GBQR':>8s} {'ratio':>6s}")
    for n_trials in at:
        spent = []
        for make, n in ((retrained, cycles), (GBQRFacade, 10 * cycles)):
            with tempfile.TemporaryDirectory() as folder:
                facade = filled(make, n_trials, Path(folder))
                start = time.perf_counter()
                for _ in range(n):
                    step(facade)
                spent.append((time.perf_counter() - start) / n)
        smac, gbqr = spent
        print(f"{n_trials:6d} {smac:8.3f} {gbqr:8.3f} {smac / gbqr:6.1f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    for command in ("quality", "seconds"):
        sub = commands.add_parser(command)
        sub.add_argument("--tables", type=int, default=8, help="of each source")
        sub.add_argument("--seeds", type=int, default=1)
        if command == "seconds":
            sub.add_argument("--methods", nargs="+", default=["EI per second", "GBQR per second"])
    sub = commands.add_parser("overhead")
    sub.add_argument("--cycles", type=int, default=5)
    sub.add_argument("--at", type=int, nargs="+", default=[100, 500, 1000])
    args = parser.parse_args()
    warnings.simplefilter("ignore")  # SMAC's own; see _private.quiet
    if args.command == "quality":
        quality(args.tables, args.seeds)
    elif args.command == "seconds":
        seconds(args.tables, args.seeds, args.methods)
    else:
        overhead(args.at, args.cycles)


if __name__ == "__main__":
    main()
