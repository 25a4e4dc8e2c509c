"""Facades, config selectors and initial designs of SMAC, tried on a case."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from automl_plugins.adapters import smac as ours
from automl_plugins.adapters.smac._private import quiet
from ConfigSpace import Configuration
from core_targets import RECIPES, WITH_MEMORY, memory_of
from core_targets import options_of as recipe_options
from histories import Case
from smac import HyperparameterOptimizationFacade, Scenario
from smac.runhistory import StatusType, TrialInfo, TrialValue
from smac_runs import few_candidates
from spaces import as_plain_configspace, listed

from automl_plugins import surrogates

STATUS = {
    "complete": StatusType.SUCCESS,
    "failed": StatusType.CRASHED,
    "pruned": StatusType.TIMEOUT,
    "running": StatusType.RUNNING,
}


@cache
def _folder() -> Path:
    """Where SMAC writes; it always does."""
    folder = tempfile.mkdtemp(prefix="fuzz-smac-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


def scenario_of(case: Case) -> Scenario:
    space = as_plain_configspace(case.space, case.pick(5, [0, 0, 1]))
    return Scenario(
        space,
        n_trials=case.pick(6, [100, 1000]),
        deterministic=True,
        seed=case.seed,
        output_directory=_folder(),
        use_default_config=case.pick(6, [False, False, True]),
    )


def fill(facade: Any, case: Case) -> None:
    """The runs of the case in the run history, as far as their values are of the space."""
    space, history = facade.scenario.configspace, facade.runhistory
    for i, run in enumerate(case.runs):
        try:
            config = Configuration(space, values=run.values)
        except Exception:  # other ranges, or values that are missing: SMAC cannot hold them
            config = space.sample_configuration()
        info = TrialInfo(config, seed=0)
        if run.state == "running":
            history.add_running_trial(info)
            continue
        seconds = run.seconds if isinstance(run.seconds, float) else 0.0
        cost = run.loss if run.state == "complete" else np.inf
        value = TrialValue(
            cost, time=seconds, status=STATUS[run.state], starttime=float(i), endtime=i + 1.0
        )
        history.add_trial(info, value)


def check_config(config: Configuration, case: Case) -> None:
    config.check_valid_configuration()
    again = Configuration(config.config_space, values=dict(config))
    assert np.allclose(again.get_array(), config.get_array(), equal_nan=True), "another one"
    places: dict[str, int] = {}
    for p in case.space:
        active = p.is_active(places)
        assert (p.name in config) == active, f"{p.name!r} is active: {p.name in config}"
        if active and p.kind == "choice":
            value = config[p.name]
            places[p.name] = next(i for i, c in enumerate(listed(p)) if c == value)


def optimise(
    kind: type[ours.GBQRFacade], parts: Callable[..., dict[str, Any]], case: Case
) -> None:
    """Two configurations after the runs, the first of which is answered."""
    with quiet():
        scenario = scenario_of(case)
        facade = kind(scenario, None, logging_level=False, overwrite=True, **parts(scenario, case))
        cost = case.pick(7, [0.5, np.inf, -np.inf, 1e308, -0.0])
        crashed = case.pick(4, [False, False, True])
        status = StatusType.CRASHED if crashed else StatusType.SUCCESS
        value = TrialValue(cost, time=0.0, status=status)
        if not case.runs:
            info = facade.ask()
            check_config(info.config, case)
            facade.tell(info, value)
            check_config(facade.ask().config, case)
            return
        # SMAC's intensifier may loop for ever in a run history that it has not made.
        fill(facade, case)
        proposed = iter(facade.intensifier.config_selector)
        config = next(proposed)
        check_config(config, case)
        facade.runhistory.add_trial(TrialInfo(config, seed=0), value)
        check_config(next(proposed), case)


def _gbqr(scenario: Scenario, case: Case) -> dict[str, Any]:
    if not case.pick(0, [0, 0, 1]):
        return {}
    return {
        "config_selector": ours.GBQRFacade.get_config_selector(
            scenario, **recipe_options(case), per_second=True
        )
    }


def _auto(scenario: Scenario, case: Case) -> dict[str, Any]:
    return {"per_second": bool(case.pick(0, [0, 0, 1]))}


def _auto_with_memory(scenario: Scenario, case: Case) -> dict[str, Any]:
    return {"memory": memory_of(case)}


def _selector(scenario: Scenario, case: Case) -> dict[str, Any]:
    recipes = {**RECIPES, **WITH_MEMORY}
    proposer = recipes[case.pick(1, sorted(recipes))](case)
    return {
        "config_selector": ours.ProposerConfigSelector(
            scenario, proposer, min_trials=case.pick(2, [None, 1])
        )
    }


def _parts(scenario: Scenario, case: Case) -> dict[str, Any]:
    """SMAC's own selector with one of the parts."""
    surrogate = case.pick(0, [surrogates.RandomForest, surrogates.QuantileBoosting])()
    return {
        "model": ours.SurrogateModel(scenario.configspace, surrogate, seed=0),
        "acquisition_maximizer": few_candidates(scenario),
    }


def start(design: Callable[..., Any], case: Case) -> None:
    with quiet():
        scenario = scenario_of(case)
        found = design(
            scenario,
            memory_of(case),
            meta_features=case.meta_features or None,
            mode=case.pick(1, ["part", "replace", "add"]),
            default=HyperparameterOptimizationFacade.get_initial_design(scenario)
            if case.pick(2, [0, 1])
            else None,
        )
        for config in found.select_configurations():
            check_config(config, case)
        str(found.meta)


TARGETS: dict[str, Callable[[Case], None]] = {
    "SMAC GBQRFacade": partial(optimise, ours.GBQRFacade, _gbqr),
    "SMAC AutoFacade": partial(optimise, ours.AutoFacade, _auto),
    "SMAC AutoFacade with memory": partial(optimise, ours.AutoFacade, _auto_with_memory),
    "SMAC ProposerConfigSelector": partial(optimise, ours.GBQRFacade, _selector),
    "SMAC SurrogateModel": partial(optimise, ours.GBQRFacade, _parts),
    "SMAC MetaInitialDesign": partial(start, ours.MetaInitialDesign),
    "SMAC KNNInitialDesign": partial(start, ours.KNNInitialDesign),
}
