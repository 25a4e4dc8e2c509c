"""Searches with learning curves: samplers under Optuna's pruners, facades under SMAC's Hyperband.

The curves of lcbench (YAHPO Gym), accuracies of neural networks after 1 to 52 epochs, need the
recorded runs; every second task is searched. The others are invented: the best configurations
learn as fast as the others (alike), or more slowly (slower). SMAC trains a promoted configuration
anew; under a pruner of Optuna it is trained on. Only configurations that were trained in full
count. Searches are appended to a file; a search in the file is not run again.

    benchmark_fidelity.py  # 3 seeds; SMAC's own facade: a third of the tasks of lcbench, 1 seed
    benchmark_fidelity.py --curves alike slower --seeds 5

Regret is the gap between the best loss so far and the least loss of all searches and of 2 000
random configurations, in percent of the gap between the median of these and the least loss.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import optuna
from automl_plugins.adapters.optuna import SuccessiveFilteringPruner
from automl_plugins.adapters.optuna.space import distributions_of
from automl_plugins.adapters.smac import AutoFacade, GBQRFacade
from benchmark_choices import METHODS
from common import keep_rows, run_command
from ConfigSpace import ConfigurationSpace, Float, Integer
from families import EPOCHS, Surrogate, draw, surrogate
from optuna.pruners import BasePruner, HyperbandPruner, MedianPruner, NopPruner
from optuna.pruners import SuccessiveHalvingPruner as HalvingPruner
from optuna.trial import TrialState
from smac import MultiFidelityFacade, RandomFacade, Scenario
from smac.facade.abstract_facade import AbstractFacade
from smac.intensifier.hyperband import Hyperband
from smac.runhistory import TrialValue

from automl_plugins.arrays import FloatArray

LEAST = 2  # epochs before the first decision
AT = (10, 20, 30, 50)  # budgets, in trainings of 52 epochs
PRUNERS: dict[str, Callable[[], BasePruner]] = {
    "no pruner": NopPruner,
    "MedianPruner": MedianPruner,
    "SuccessiveHalvingPruner": lambda: HalvingPruner(min_resource=LEAST, reduction_factor=3),
    "HyperbandPruner": lambda: HyperbandPruner(LEAST, EPOCHS, reduction_factor=3),
    "SuccessiveFilteringPruner": lambda: SuccessiveFilteringPruner(LEAST, seed=0),
}
FACADES: dict[str, type[AbstractFacade]] = {
    "AutoFacade": AutoFacade,
    "GBQRFacade": GBQRFacade,
    "RandomFacade": RandomFacade,
    "MultiFidelityFacade": MultiFidelityFacade,
}
SMAC = "SMAC's Hyperband"
SETUPS = (*PRUNERS, SMAC)
CURVES = ("lcbench", "alike", "slower")


class Invented:
    """Curves that fall exponentially to a final loss, all as fast, or the best ones more slowly.

    Args:
        are_alike: Whether all are as fast.
    """

    def __init__(self, *, are_alike: bool) -> None:
        self.are_alike = are_alike
        self.space = ConfigurationSpace()
        rates = {"rate": (1e-4, 1.0), "decay": (1e-6, 0.1)}
        self.space.add([Float(name, ends, log=True) for name, ends in rates.items()])
        self.space.add([Integer("width", (8, 512), log=True), Float("dropout", (0.0, 0.6))])

    def curve(self, _: str, config: Mapping[str, Any]) -> FloatArray:
        """Losses (52,) after each epoch."""
        rate, width = math.log10(config["rate"]) + 2, math.log2(config["width"])
        speed = 0.15
        if not self.are_alike:
            speed *= 10 ** (0.3 * rate) * (1 + (width - 6) / 12)
        epochs = np.arange(1, EPOCHS + 1)
        final = 0.1 + 0.05 * rate**2 + 0.01 * (math.log10(config["decay"]) + 3) ** 2
        final += abs(width - 7) / 60 + 0.2 * (config["dropout"] - 0.2) ** 2
        return np.asarray(final + 0.9 * np.exp(-speed * epochs / 2))

    def losses(self, task: str, configs: Sequence[Mapping[str, Any]]) -> FloatArray:
        """Losses (n,) after the last epoch."""
        return np.array([self.curve(task, config)[-1] for config in configs])


@cache
def network(curves: str) -> Surrogate | Invented:
    """What answers for the curves of a name of ``CURVES``."""
    return surrogate(curves) if curves == "lcbench" else Invented(are_alike=curves == "alike")


def tasks_of(curves: str) -> list[str]:
    """The names of the tasks, as in lcbench/3945."""
    if curves == "lcbench":
        return [f"{curves}/{task}" for task in surrogate(curves).tasks[1::2]]
    return [f"{curves}/"]


class Budget:
    """Counts epochs; keeps the best loss of a training in full within each of several budgets."""

    def __init__(self, budgets: Sequence[int]) -> None:
        self.epochs, self.best, self.reached = 0, np.inf, dict.fromkeys(budgets, np.inf)

    @property
    def is_left(self) -> bool:
        """Whether the largest budget is not spent yet."""
        return self.epochs < max(self.reached) * EPOCHS

    def spend(self, epochs: int, loss: float | None = None) -> None:
        """Count the epochs of a training, and its loss if it was in full."""
        self.epochs += epochs
        if loss is not None:
            self.best = min(self.best, loss)
        for at in self.reached:
            if self.epochs <= at * EPOCHS:
                self.reached[at] = self.best


def prune(method: str, pruner: str, task: str, seed: int, budget: Budget) -> None:
    """A search with a sampler and a pruner of Optuna."""
    curves, name = task.split("/")
    source = network(curves)
    space = distributions_of(source.space)
    study = optuna.create_study(
        sampler=METHODS[method](seed=seed), pruner=PRUNERS[pruner](), study_name="fidelity"
    )
    while budget.is_left:
        trial = study.ask(space)
        curve = source.curve(name, trial.params)
        for epoch, loss in enumerate(curve.tolist(), 1):
            trial.report(loss, epoch)
            if epoch < EPOCHS and trial.should_prune():
                study.tell(trial, state=TrialState.PRUNED)
                budget.spend(epoch)
                break
        else:
            study.tell(trial, curve[-1])
            budget.spend(EPOCHS, float(curve[-1]))


def halve(facade: str, task: str, seed: int, budget: Budget) -> None:
    """A search with a facade of SMAC and its Hyperband."""
    curves, name = task.split("/")
    source = network(curves)
    with tempfile.TemporaryDirectory() as folder:
        scenario = Scenario(
            source.space,
            n_trials=10**6,
            min_budget=LEAST,
            max_budget=EPOCHS,
            deterministic=True,
            seed=seed,
            output_directory=Path(folder),
        )
        smac = FACADES[facade](
            scenario,
            lambda config, seed, budget: 0.0,
            intensifier=Hyperband(scenario, eta=3),
            logging_level=False,
        )
        clock = 0.0
        while budget.is_left:
            info = smac.ask()
            assert info.budget is not None
            epochs = round(info.budget)
            curve = source.curve(name, dict(info.config))
            clock += epochs
            loss = float(curve[epochs - 1])
            smac.tell(info, TrialValue(loss, epochs, starttime=clock - epochs, endtime=clock))
            budget.spend(epochs, float(curve[-1]) if epochs == EPOCHS else None)


def search(
    setup: str, method: str, task: str, seed: int, budgets: Sequence[int]
) -> dict[str, Any]:
    """The best losses within the budgets."""
    budget = Budget(budgets)
    if setup == SMAC:
        halve(method, task, seed, budget)
    else:
        prune(method, setup, task, seed, budget)
    return {str(at): loss for at, loss in budget.reached.items()}


@cache
def at_random(task: str) -> FloatArray:
    """Losses of 2 000 random configurations."""
    curves, name = task.split("/")
    source = network(curves)
    return source.losses(name, draw(source.space, 2000))


def main(
    setups: Sequence[str] = SETUPS,
    curves: Sequence[str] = ("lcbench",),
    seeds: int = 3,
    at: Sequence[int] = AT,
    path: str = "build/fidelity.csv",
) -> None:
    """Run the missing searches and print mean and median regrets."""
    wanted = []
    for setup, name in product(setups, curves):
        tasks = tasks_of(name)
        for method, task, seed in product(
            FACADES if setup == SMAC else METHODS, tasks, range(seeds)
        ):
            is_slow = name == "lcbench" and FACADES.get(method) is MultiFidelityFacade
            if not is_slow or (seed == 0 and task in tasks[::3]):
                wanted.append((setup, method, task, seed))
    found = keep_rows(
        Path(path), ["setup", "method", "task", "seed"], wanted, partial(search, budgets=at)
    )
    columns = [str(budget) for budget in at]
    for task in found["task"].unique():
        rows, random = found["task"] == task, at_random(task)
        best = min(found.loc[rows, columns].min().min(), random.min())
        regrets = 100 * (found.loc[rows, columns] - best) / (np.median(random) - best)
        found.loc[rows, columns] = regrets.clip(upper=200)
    print("Mean regret in percent (median); at most 200")
    found["curves"] = found["task"].str.split("/").str[0]
    for names, own in found.groupby(["curves", "setup", "method"], sort=False):
        means, medians = own[columns].mean(), own[columns].median()
        shown = "  ".join(f"{means[c]:5.1f} ({medians[c]:.1f})" for c in columns)
        print(f"{'  '.join(map(str, names)):48s} {len(own):4d} {shown}")


if __name__ == "__main__":
    run_command(__doc__, main, setups=SETUPS, curves=CURVES)
