"""BOASF on recorded tables, on the simulated clock."""

from __future__ import annotations

import math
import pickle
from typing import Any

import pytest
from automl_plugins.adapters.hyperopt import arm_report, boasf_fmin, optimizer
from automl_plugins.adapters.hyperopt._expression import expression
from automl_plugins.adapters.hyperopt.replaying import HyperoptSearch
from ConfigSpace import (
    Categorical,
    ConfigurationSpace,
    EqualsCondition,
    Float,
    ForbiddenEqualsClause,
    Integer,
)
from hyperopt import rand

from automl_plugins.replay.protocol import Method, Optimizer, Outcome, Problem, TrialStatus
from automl_plugins.replay.simulation import Budget, Simulation
from automl_plugins.replay.table import Table

GRID = (("svm", 6), ("rf", 10), ("knn", 3))


def table() -> Table:
    """Three algorithms with grids of their own, one without any; seconds by algorithm."""
    space = ConfigurationSpace(seed=0)
    algorithm = Categorical("algorithm", ["svm", "rf", "knn", "nb"])
    space.add(algorithm)
    configs: list[dict[str, Any]] = [{"algorithm": "nb"}]
    for name, n in GRID:
        child = Integer(f"{name}.k", (1, n))
        space.add(child, EqualsCondition(child, algorithm, name))
        configs += [{"algorithm": name, f"{name}.k": k} for k in range(1, n + 1)]
    order = {"svm": 0.1, "rf": 0.2, "knn": 0.4, "nb": 0.6}
    losses = [order[c["algorithm"]] + 0.01 * grid_value(c) for c in configs]
    seconds = [{"svm": 3.0, "rf": 2.0, "knn": 1.0, "nb": 0.5}[c["algorithm"]] for c in configs]
    return Table("toy", space, configs, losses, seconds=seconds)


def grid_value(config: dict[str, Any]) -> float:
    return float(config.get(f"{config['algorithm']}.k", 0))


def simulate(method: Method, budget: Budget, *, seed: int = 0) -> Simulation:
    made = table()
    problem = Problem(made.space, seed=seed, n_trials=budget.n_trials, n_workers=budget.n_workers)
    simulation = Simulation(made, method.start(problem), budget)
    simulation.run()
    return simulation


def test_a_configuration_is_proposed_once_until_there_is_none() -> None:
    simulation = simulate(optimizer("boasf", inner="random"), Budget(n_trials=100))
    assert len(simulation.evaluations) == 20  # all there are
    configs = {str(sorted(e.proposal.config.items())) for e in simulation.evaluations}
    assert len(configs) == 20


@pytest.mark.parametrize("n_workers", [1, 3])
def test_a_budget_in_seconds_is_that_of_the_table(n_workers: int) -> None:
    method = optimizer(boasf_fmin, budget_seconds=20.0, inner=rand.suggest)
    simulation = simulate(method, Budget(n_trials=100, n_workers=n_workers))
    spent = sum(e.outcome.seconds for e in simulation.evaluations)
    assert 20 - 3 * n_workers <= spent <= 20 + 3 * (n_workers - 1)
    search = simulation.optimizer
    assert isinstance(search, HyperoptSearch)
    report = arm_report(search.trials, expression(table().space))
    assert report.records.seconds.sum() == pytest.approx(spent)
    assert len(report.rounds) == 3 and report.unit == "seconds"


def test_without_a_budget_the_replay_says_how_many_trials() -> None:
    simulation = simulate(optimizer("boasf"), Budget(n_trials=12))
    assert len(simulation.evaluations) == 12
    assert "max_evals" not in dict(optimizer("boasf").options)
    with pytest.raises(ValueError, match="one budget"):
        optimizer("boasf").start(Problem(table().space, seed=0))


def test_replays_are_named_pickled_and_repeatable() -> None:
    method = optimizer("boasf", rounds=2)
    assert isinstance(method, Method)
    assert isinstance(method.start(Problem(table().space, seed=0, n_trials=9)), Optimizer)
    assert method.name == "automl_plugins.boasf"
    assert optimizer(boasf_fmin, name="mine").name == "mine"
    copied = pickle.loads(pickle.dumps(method))
    runs = [
        [dict(e.proposal.config) for e in simulate(m, Budget(n_trials=15), seed=s).evaluations]
        for m, s in ((method, 3), (copied, 3), (method, 4))
    ]
    assert runs[0] == runs[1] != runs[2]


def test_options_are_checked_before_a_search_starts() -> None:
    for options in ({"budget": 3}, {"executor": None}, {"trials": None}):
        with pytest.raises(TypeError):
            optimizer("boasf", **options)
    with pytest.raises(ValueError, match="rounds must be >= 1"):
        optimizer("boasf", rounds=0)


def test_failures_are_dropped_and_forbidden_ones_cost_nothing() -> None:
    made = table()
    made.space.add(ForbiddenEqualsClause(made.space["rf.k"], 3))
    search = optimizer("boasf", budget_seconds=12.0).start(Problem(made.space, seed=1))
    clock, seen = 0.0, []
    while (proposal := search.ask()) is not None:
        seen.append(dict(proposal.config))
        failed = proposal.config["algorithm"] == "svm"
        status = TrialStatus.FAILED if failed else TrialStatus.COMPLETE
        loss = math.nan if failed else 0.5
        search.tell(proposal, Outcome(status, loss, clock, clock + 1.0))
        clock += 1.0
    assert {"algorithm": "rf", "rf.k": 3} not in seen
    assert [c["algorithm"] for c in seen].count("svm") <= 3
    assert clock <= 12


def test_cells_of_a_table_are_arms() -> None:
    space = ConfigurationSpace(seed=0)
    space.add(Float("x", (0.0, 1.0)), Float("y", (1e-3, 1.0), log=True))
    search = optimizer("boasf", split=2, inner="random", max_evals=40).start(
        Problem(space, seed=0)
    )
    n = 0
    while (proposal := search.ask()) is not None:
        loss = (proposal.config["x"] - 0.9) ** 2 + (math.log10(proposal.config["y"]) + 2.5) ** 2
        search.tell(proposal, Outcome(TrialStatus.COMPLETE, loss, n, n + 1.0))
        n += 1
    assert n == 40
    assert isinstance(search, HyperoptSearch)
    pulls = {row.arm: row.pulls for row in arm_report(search.trials, expression(space)).table()}
    assert max(pulls, key=lambda name: pulls[name]) == "x in [0.5, 1], y in [0.001, 0.03162)"
