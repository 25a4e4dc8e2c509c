"""A small conditional search in SMAC, shared by several tests."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from automl_plugins.adapters.smac import GBQRFacade, ProposerConfigSelector
from automl_plugins.adapters.smac._private import quiet
from ConfigSpace import Categorical, Configuration, ConfigurationSpace, EqualsCondition, Float
from known_runs import loss
from smac import Callback, Scenario
from smac.acquisition.maximizer import LocalAndSortedRandomSearch
from smac.facade.abstract_facade import AbstractFacade
from smac.intensifier.hyperband import Hyperband

from automl_plugins.proposers.proposal import Proposal
from automl_plugins.records.history import History
from automl_plugins.spaces.vector_space import VectorSpace
from automl_plugins.streams import Streams

QUICK: dict[str, Any] = {"n_startup": 4, "n_candidates": 100, "n_models": 1}
BUDGETS: dict[str, Any] = {"min_budget": 1, "max_budget": 9, "n_trials": 20}
INSTANCES: dict[str, Any] = {
    "instances": ["0", "1", "2"],
    "instance_features": {"0": [0.0], "1": [1.0], "2": [2.0]},
}


@partial
def few_candidates(run: Scenario) -> LocalAndSortedRandomSearch:
    """A fast maximizer."""
    return LocalAndSortedRandomSearch(
        run.configspace,
        challengers=20,
        max_steps=1,
        n_steps_plateau_walk=1,
        local_search_iterations=1,
        seed=run.seed,
    )


def search_space() -> ConfigurationSpace:
    space = ConfigurationSpace(seed=0)
    kind, c = Categorical("kind", ["linear", "rbf"]), Float("C", (1e-3, 1e3), log=True)
    space.add(kind, c, Float("x", (0.0, 1.0)), EqualsCondition(c, kind, "rbf"))
    return space


def target(config: Configuration, seed: int = 0) -> float:
    inner = math.log10(config["C"]) / 3 if config["kind"] == "rbf" else 0.5
    return float((config["x"] - 0.3) ** 2 + inner**2)


def known_target(config: Configuration, seed: int = 0) -> float:
    """The loss of the tasks in ``known_runs``."""
    return loss(config)


def budget_target(config: Configuration, seed: int = 0, budget: float = 1.0) -> float:
    return target(config) + 1.0 / budget


def instance_target(config: Configuration, instance: str, seed: int = 0) -> float:
    return target(config) + float(instance)


QUICKLY = partial(GBQRFacade.get_config_selector, **QUICK)
HYPERBAND: dict[str, Any] = {
    **BUDGETS,
    "function": budget_target,
    "intensifier": partial(Hyperband),
}


def scenario(folder: Path, space: ConfigurationSpace | None = None, **options: Any) -> Scenario:
    options = {"n_trials": 12, "deterministic": True, "seed": 3} | options
    return Scenario(space or search_space(), output_directory=folder, **options)


def facade(
    folder: Path,
    proposer: Any = None,
    *,
    kind: type[AbstractFacade] = GBQRFacade,
    function: Any = target,
    space: ConfigurationSpace | None = None,
    overwrite: bool = True,
    **given: Any,
) -> AbstractFacade:
    """A facade; ``given`` are its parts and the scenario's options, partials take the scenario."""
    options = {k: v for k, v in given.items() if k in Scenario.__dataclass_fields__}
    run = scenario(folder, space, **options)
    parts = {k: v for k, v in given.items() if k not in options}
    if proposer is not None:
        parts["config_selector"] = partial(ProposerConfigSelector, proposer=proposer)
    parts = {k: v(run) if isinstance(v, partial) else v for k, v in parts.items()}
    with quiet():
        return kind(run, function, logging_level=False, overwrite=overwrite, **parts)


def selector_of(smac: AbstractFacade) -> ProposerConfigSelector:
    selector = smac.intensifier.config_selector
    assert isinstance(selector, ProposerConfigSelector)
    return selector


def search(smac: AbstractFacade) -> list[dict[str, Any]]:
    """Run the search; its configurations and costs in order."""
    with quiet():
        smac.optimize()
    return trajectory(smac)


def trajectory(smac: AbstractFacade) -> list[dict[str, Any]]:
    return [
        {**dict(smac.runhistory.get_config(key.config_id)), "cost": value.cost}
        for key, value in smac.runhistory.items()
    ]


def origins(smac: AbstractFacade) -> list[str | None]:
    return [config.origin for config in smac.runhistory.get_configs()]


class Watched:
    """Proposes at random, and remembers what it was shown."""

    def __init__(self, answer: Callable[[int], Any] | None = None) -> None:
        self.shown: list[tuple[History, int]] = []
        self.answer = answer

    def propose(
        self, space: VectorSpace, history: History, streams: Streams, k: int, fixed: Any = None
    ) -> Proposal:
        self.shown.append((history, k))
        if self.answer is not None and (vector := self.answer(k)) is not None:
            return Proposal(np.array(vector, dtype=np.float64), "model")
        return Proposal(space.sample(1, streams.generator("test", k))[0], "model", loss=1.0)

    @property
    def numbers(self) -> list[int]:
        return [k for _, k in self.shown]


class StopAfter(Callback):
    def __init__(self, n: int) -> None:
        super().__init__()
        self.n = n

    def on_tell_end(self, smbo: Any, info: Any, value: Any) -> bool:
        return bool(smbo.runhistory.finished < self.n)
