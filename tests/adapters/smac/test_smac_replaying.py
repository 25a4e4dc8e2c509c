"""SMAC's searches step by step are those of ``optimize``."""

from __future__ import annotations

import logging
import math
import os
import pickle
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import smac
from automl_plugins.adapters.smac import optimizer
from automl_plugins.adapters.smac._private import quiet
from automl_plugins.adapters.smac.replaying import SMACSearch
from ConfigSpace import (
    Categorical,
    Configuration,
    ConfigurationSpace,
    Constant,
    EqualsCondition,
    Float,
    ForbiddenEqualsClause,
    Integer,
)
from smac import (
    HyperbandFacade,
    HyperparameterOptimizationFacade,
    MultiFidelityFacade,
    RandomFacade,
    Scenario,
)
from smac.acquisition.function import EI
from smac.model.random_forest.random_forest import RandomForest
from smac.runhistory import StatusType

from automl_plugins.frameworks import Method, Optimizer, Outcome, Problem, Proposal, TrialStatus
from automl_plugins.replay import Table, replay

STEPS = (1.0, 3.0, 9.0)


def small_forest(scenario: Scenario) -> RandomForest:
    """SMAC's default reserves room for a million leaves: a second for each fit."""
    options: dict[str, Any] = {"log_y": True, "n_trees": 5, "max_leaf_nodes": 50, "n_jobs": 1}
    return RandomForest(scenario.configspace, seed=scenario.seed, **options)


RETRAINED = partial(HyperparameterOptimizationFacade.get_config_selector, retrain_after=1)
FEW = partial(
    HyperparameterOptimizationFacade.get_acquisition_maximizer,
    challengers=50,
    local_search_iterations=1,
)
#: A model for each proposal, and its maximum, in little time.
EAGER: dict[str, Any] = {
    "config_selector": RETRAINED,
    "acquisition_maximizer": FEW,
    "model": small_forest,
}


@pytest.fixture(autouse=True)
def nothing_is_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """SMAC writes neither to the working directory nor, in the end, to the temporary one."""
    for name in ("work", "temp"):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temp"))
    yield
    assert not os.listdir(tmp_path / "work")
    # joblib may keep a folder of its own for its workers
    assert not [n for n in os.listdir(tmp_path / "temp") if not n.startswith("joblib")]


def space() -> ConfigurationSpace:
    made = ConfigurationSpace(seed=0)
    model = Categorical("model", ["svm", "rf"])
    c, k = Float("C", (-1.0, 1.0)), Integer("k", (1, 9))
    made.add(Float("x", (0.0, 1.0)), model, c, k, Constant("fixed", 3))
    made.add(EqualsCondition(c, model, "svm"), EqualsCondition(k, model, "rf"))
    return made


def tiny(values: str = "xyz") -> ConfigurationSpace:
    return ConfigurationSpace({"a": list(values), "b": (1, 2)}, seed=0)


def loss_of(config: Any) -> float:
    inner = config["C"] if config["model"] == "svm" else 0.1 * (config["k"] - 4)
    return 1.0 + float((config["x"] - 0.3) ** 2 + inner**2)


def run(
    search: SMACSearch, n: int, *, q: int = 1, loss: Any = loss_of, newest_first: bool = False
) -> list[Proposal]:
    """Proposals of a search with ``q`` workers in order of asking; a NaN loss is a failure."""
    asked: list[Proposal] = []
    running: list[Proposal] = []
    while True:
        while len(running) < q and len(asked) < n and (proposal := search.ask()) is not None:
            asked.append(proposal)
            running.append(proposal)
        if not running:
            return asked
        proposal = running.pop(-1 if newest_first else 0)
        value = loss(proposal.config)
        status = TrialStatus.FAILED if math.isnan(value) else TrialStatus.COMPLETE
        clock = float(len(asked))
        search.tell(proposal, Outcome(status, value, clock, clock + 1.5))


def configs(proposals: list[Proposal]) -> list[Any]:
    return [(dict(p.config), p.step) for p in proposals]


@pytest.mark.parametrize(
    ("facade", "n", "steps", "parts"),
    [
        (RandomFacade, 12, (), {}),
        (HyperparameterOptimizationFacade, 8, (), EAGER),
        (HyperbandFacade, 30, STEPS, {}),
        (MultiFidelityFacade, 16, STEPS, EAGER),
    ],
)
def test_a_search_is_that_of_optimize(
    facade: Any, n: int, steps: tuple[float, ...], parts: Any, tmp_path: Path
) -> None:
    budgets: dict[str, Any] = {"min_budget": steps[0], "max_budget": steps[-1]} if steps else {}
    folder = tmp_path / "optimize"
    scenario = Scenario(
        space(), seed=5, n_trials=n, deterministic=True, output_directory=folder, **budgets
    )

    def target(config: Configuration, seed: int = 0) -> float:
        return loss_of(config)

    def target_at(config: Configuration, seed: int = 0, budget: float = 9.0) -> float:
        return loss_of(config)

    made = {key: part(scenario) for key, part in parts.items()}
    with quiet():
        there = facade(scenario, target_at if steps else target, logging_level=False, **made)
        there.optimize()
    keys = list(there.runhistory)
    expected = [dict(there.runhistory.get_config(key.config_id)) for key in keys]
    here = run(optimizer(facade, **parts).start(Problem(space(), 5, n, 1, steps)), n)
    assert [dict(p.config) for p in here] == expected
    limit = steps[-1] if steps else None
    assert [p.step or limit for p in here] == [key.budget for key in keys]


@pytest.mark.parametrize("q", [1, 4])
@pytest.mark.parametrize("newest_first", [False, True])
def test_hyperband_promotes_in_any_order_of_results(q: int, newest_first: bool) -> None:
    search = optimizer(HyperbandFacade).start(Problem(space(), 0, 13, q, STEPS))
    proposals = run(search, 13, q=q, newest_first=newest_first)
    steps = Counter(p.step for p in proposals)
    # A bracket of 9, 3 and 1; with several workers the next one begins before it ends.
    assert steps[1.0] == 9 and (q > 1 or steps == {1.0: 9, 3.0: 3, None: 1})


def test_budgets_are_the_steps_of_the_curves() -> None:
    # 0.1 * 3 * 3 and 0.9 / 9 differ from the steps by rounding errors
    steps = (0.0, 0.1, 0.3, 0.9)
    search = optimizer("MultiFidelity", **EAGER).start(Problem(space(), 0, 13, 1, steps))
    assert {p.step for p in run(search, 13)} == {0.1, 0.3, None}
    narrow = optimizer("Hyperband", scenario={"min_budget": 3, "max_budget": 9})
    search = narrow.start(Problem(space(), 0, 8, 1, (1.0, 3.0, 9.0, 27.0)))
    assert {p.step for p in run(search, 8)} == {3.0, 9.0}


def test_several_fidelities_need_steps() -> None:
    with pytest.raises(ValueError, match=r"HyperbandFacade .* needs steps > 0"):
        optimizer(HyperbandFacade).start(Problem(space(), seed=0))


# --- small spaces -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("facade", "q"),
    [(HyperparameterOptimizationFacade, 4), (RandomFacade, 1), (RandomFacade, 8)],
)
def test_a_finite_space_ends_the_search(facade: Any, q: int) -> None:
    parts = EAGER if facade is HyperparameterOptimizationFacade else {}
    search = optimizer(facade, **parts).start(Problem(tiny(), 0, 50, q))
    proposals = run(search, 50, q=q, loss=lambda c: float(c["b"]))
    assert len({tuple(p.config.items()) for p in proposals}) == 6
    assert search.ask() is None


@pytest.mark.parametrize("facade", [HyperparameterOptimizationFacade, HyperbandFacade])
def test_nothing_hangs_while_every_configuration_is_under_way(facade: Any) -> None:
    small = tiny("xy")
    small.add(ForbiddenEqualsClause(small["a"], "y"))  # leaves two
    search = optimizer(facade).start(Problem(small, 0, 20, 4, STEPS))
    proposals = [search.ask() for _ in range(2)]
    assert None not in proposals and search.ask() is None
    for proposal in proposals:  # nor when all of them fail
        assert proposal is not None
        search.tell(proposal, Outcome(TrialStatus.FAILED, math.nan, 0.0, 1.0))
    assert search.ask() is None


def test_a_space_without_a_choice_has_one_configuration() -> None:
    only = ConfigurationSpace(seed=0)
    only.add(Constant("a", 1))
    search = optimizer(RandomFacade).start(Problem(only, 0, 5))
    assert configs(run(search, 5, loss=lambda c: 1.0)) == [({"a": 1}, None)]


# --- failures ---------------------------------------------------------------------------------


def test_failures_cost_as_much_as_the_worst_so_far() -> None:
    losses = [math.nan, math.nan, 2.0, 5.0, math.nan, 7.0]
    search = optimizer(RandomFacade).start(Problem(space(), 0, 6))
    run(search, 6, loss=lambda _: losses.pop(0))
    values = list(search.facade.runhistory.values())
    assert [v.cost for v in values] == [2.0, 2.0, 2.0, 5.0, 5.0, 7.0]
    crashed = [v.status == StatusType.CRASHED for v in values]
    assert crashed == [True, True, False, False, True, False]
    assert [(v.starttime, v.endtime, v.time) for v in values] == [
        (i, i + 1.5, 1.5) for i in range(1, 7)
    ]


# --- the method -------------------------------------------------------------------------------


def test_methods_are_named_compared_and_pickled() -> None:
    method = optimizer(RandomFacade, scenario={"use_default_config": True})
    assert isinstance(method, Method)
    assert isinstance(method.start(Problem(space(), seed=0)), Optimizer)
    assert method.name == "smac.Random"
    assert optimizer().name == "smac.HyperparameterOptimization"
    assert optimizer(name="mine", **EAGER).name == "mine"
    copied = pickle.loads(pickle.dumps(method))
    assert copied == method and hash(copied) == hash(method)
    pickle.loads(pickle.dumps(optimizer(config_selector=RETRAINED)))
    problem = Problem(space(), 1, 5)
    assert configs(run(copied.start(problem), 5)) == configs(run(method.start(problem), 5))


def test_objects_are_copied_and_functions_called() -> None:
    seen: list[Scenario] = []

    def selector(scenario: Scenario) -> Any:
        seen.append(scenario)
        return HyperparameterOptimizationFacade.get_config_selector(scenario, retrain_after=3)

    improvement = EI(log=True)  # callable, but no factory
    method = optimizer(config_selector=selector, acquisition_function=improvement)
    first, second = (method.start(Problem(space(), seed, 8)) for seed in (0, 1))
    assert [s.seed for s in seen] == [0, 1]
    found = [s.facade._acquisition_function for s in (first, second)]
    assert all(isinstance(f, EI) for f in found)
    assert len({id(f) for f in [*found, improvement]}) == 3


def test_facades_and_parts_are_checked() -> None:
    for name in ("BlackBox", "AlgorithmConfigurationFacade", "MultiFidelity"):
        assert optimizer(name).facade.__name__ in vars(smac)
    with pytest.raises(ValueError, match=r"No facade 'Randon' in smac, which has .*RandomFacade"):
        optimizer("Randon")
    with pytest.raises(TypeError, match=r"Scenario does not take .*crash_costs"):
        optimizer("Random", scenario={"crash_costs": 3.0})
    with pytest.raises(TypeError, match=r"RandomFacade does not take .*modle"):
        optimizer("Random", modle=None)
    with pytest.raises(
        TypeError, match=r"AutoFacade takes no argument foo; it takes model, .*memory"
    ):
        optimizer("Auto", foo=3)
    with pytest.raises(ValueError, match="n_trials, overwrite, seed cannot be given"):
        optimizer("Random", scenario={"seed": 1, "n_trials": 3}, overwrite=False)


def test_logging_and_random_numbers_of_the_user_are_left_alone() -> None:
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    before = pickle.dumps(np.random.get_state())  # noqa: NPY002
    run(optimizer(**EAGER).start(Problem(space(), 0, 4)), 4)
    assert (root.handlers, root.level) == (handlers, level)
    assert logging.getLogger("smac").level == logging.NOTSET
    assert pickle.dumps(np.random.get_state()) == before  # noqa: NPY002


@pytest.mark.parametrize("name", ["Random", "HyperparameterOptimization", "AutoFacade", "GBQR"])
def test_facades_by_name_search_recorded_floats_of_full_precision(name: str) -> None:
    """ConfigSpace rounds the ends of a range, so the table has a hyperparameter of our own."""
    draws = np.random.default_rng(0).random((30, 2))
    frame = pd.DataFrame(draws, columns=["C", "loss"])
    table = Table.from_frame(frame, name="t", loss="loss")
    parts = EAGER if name == "HyperparameterOptimization" else {}
    assert len(replay(optimizer(name, **parts), table, budget=4)) == 4
