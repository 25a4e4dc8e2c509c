"""This package's facades beside SMAC's own default, on the same recorded runs.

    benchmark_smac.py seconds  # simulated time to the default's final best, oboe
    benchmark_smac.py overhead  # seconds of a proposal at 100, 500, 1 000 trials

Set OMP_NUM_THREADS=1. ``seconds`` needs the recorded runs; after an interruption it continues from
its file in build/.
"""

from __future__ import annotations

import math
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from automl_plugins.adapters.smac import AutoFacade, GBQRFacade, ProposerConfigSelector, optimizer
from common import by_search, run_command
from ConfigSpace import Configuration, ConfigurationSpace
from recorded_tables import oboe
from smac import HyperparameterOptimizationFacade, Scenario
from smac.facade.abstract_facade import AbstractFacade
from smac.initial_design import RandomInitialDesign
from smac.model.random_forest.random_forest import RandomForest
from smac.runhistory import TrialInfo, TrialValue

from automl_plugins.recipes import ei_per_second
from automl_plugins.replay import Method, replay


def forest(scenario: Scenario) -> RandomForest:
    """The default's forest, on one core and without memory for a million leaves.

    The trees are the same, since no run here has as many trials as leaves; ``overhead`` measures
    the default itself.
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


METHODS: dict[str, Method] = {
    "SMAC": optimizer(HyperparameterOptimizationFacade, model=forest),
    "Auto per second": optimizer(
        AutoFacade, config_selector=partial(AutoFacade.get_config_selector, per_second=True)
    ),
    "EI per second": optimizer(GBQRFacade, config_selector=per_second),
    "GBQR per second": optimizer(
        GBQRFacade, config_selector=partial(GBQRFacade.get_config_selector, per_second=True)
    ),
}


def seconds(tables: int = 8, seeds: int = 1) -> None:
    """Simulated time to the default facade's final best, as a ratio to its own."""
    every = oboe()
    chosen = np.unique(np.linspace(0, len(every) - 1, tables).astype(int))
    runs = replay(
        METHODS,
        [every[i] for i in chosen],
        budget=100,
        seed=range(seeds),
        path="build/smac_seconds.csv",
    )
    searches = by_search(runs)
    for name in list(METHODS)[1:]:
        ratios = []
        for key, default in searches["SMAC"].items():
            own, target = searches[name][key], default.regret.iloc[-1]
            first = default[default.regret <= target].seconds.iloc[0]
            reached = own[own.regret <= target].seconds
            ratios.append(float(reached.iloc[0] / first) if len(reached) else math.inf)
        print(
            f"{name}: median ratio {np.median(ratios):.3f} over {len(ratios)} searches,"
            f" never reached in {sum(map(math.isinf, ratios))},"
            f" at most 0.6 in {sum(r <= 0.6 for r in ratios)}"
        )


# --- overhead -------------------------------------------------------------------------------


def bowl(config: Configuration, seed: int = 0) -> float:
    return float(sum((x - 0.4) ** 2 for x in config.values()))


def fill(make: Callable[..., AbstractFacade], n_trials: int, folder: Path) -> AbstractFacade:
    """A facade with ``n_trials`` finished random configurations of ten numbers."""
    space = ConfigurationSpace({f"x{i}": (0.0, 1.0) for i in range(10)}, seed=0)
    scenario = Scenario(space, n_trials=2 * n_trials, deterministic=True, output_directory=folder)
    design = RandomInitialDesign(scenario, n_configs=0)
    facade = make(scenario, bowl, initial_design=design, logging_level=False, overwrite=True)
    for config in space.sample_configuration(n_trials):
        facade.tell(TrialInfo(config, seed=0), TrialValue(bowl(config), time=1.0), save=False)
    step(facade)  # SMAC sorts the stored trials into its queue once
    return facade


def step(facade: AbstractFacade) -> None:
    info = facade.ask()
    facade.tell(info, TrialValue(bowl(info.config), time=1.0), save=False)


def smac_refitted(scenario: Scenario, *arguments: Any, **parts: Any) -> AbstractFacade:
    """SMAC's default, its model refitted for each trial."""
    facade = HyperparameterOptimizationFacade
    selector = facade.get_config_selector(scenario, retrain_after=1)
    return facade(scenario, *arguments, config_selector=selector, **parts)


def overhead(at: Sequence[int] = (100, 500, 1000), cycles: int = 5) -> None:
    """Mean seconds of an ask/tell cycle, refits included."""
    facades = {"SMAC": smac_refitted, "Auto": AutoFacade, "GBQR": GBQRFacade}
    print("trials" + "".join(f"{name:>9s}" for name in facades) + "  SMAC's by theirs")
    for n_trials in at:
        spent = []
        for make in facades.values():
            n = cycles if make is smac_refitted else 10 * cycles
            with tempfile.TemporaryDirectory() as folder:
                facade = fill(make, n_trials, Path(folder))
                start = time.perf_counter()
                for _ in range(n):
                    step(facade)
                spent.append((time.perf_counter() - start) / n)
        cells = [f"{own:9.3f}" for own in spent] + [f"{spent[0] / own:8.1f}" for own in spent[1:]]
        print(f"{n_trials:6d}" + "".join(cells), flush=True)


if __name__ == "__main__":
    run_command(__doc__, seconds, overhead)
