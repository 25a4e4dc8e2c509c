"""Hyperopt's searches step by step are those of ``fmin``."""

from __future__ import annotations

import math
import pickle
from functools import partial
from typing import Any

import pytest
from automl_plugins.adapters.hyperopt import curves, optimizer
from ConfigSpace import Categorical, ConfigurationSpace, EqualsCondition, Float, Integer
from hyperopt import Trials, anneal, hp, rand, tpe
from hyperopt_runs import minimise

from automl_plugins.frameworks import Method, Optimizer, Outcome, Problem, TrialStatus

FAST_TPE = partial(tpe.suggest, n_startup_jobs=5)


def space() -> ConfigurationSpace:
    made = ConfigurationSpace(seed=0)
    model = Categorical("model", ["svm", "rf"])
    c, k = Float("C", (-1.0, 1.0)), Integer("k", (1, 9))
    made.add(Float("x", (0.0, 1.0)), Float("lr", (1e-4, 1.0), log=True), model, c, k)
    made.add(EqualsCondition(c, model, "svm"), EqualsCondition(k, model, "rf"))
    return made


#: The same space as a user of Hyperopt writes it, with values in place of indices.
BY_HAND = {
    "x": hp.uniform("x", 0.0, 1.0),
    "lr": hp.loguniform("lr", math.log(1e-4), math.log(1.0)),
    "rest": hp.choice(
        "model",
        [
            {"model": "svm", "C": hp.uniform("C", -1.0, 1.0)},
            {"model": "rf", "k": hp.quniform("k", 0.50001, 9.49999, 1)},
        ],
    ),
}


def loss_of(config: dict[str, Any]) -> float:
    inner = config["C"] if config["model"] == "svm" else 0.1 * (config["k"] - 4)
    return float((config["x"] - 0.3) ** 2 + math.log10(config["lr"]) ** 2 / 10 + inner**2)


@pytest.mark.parametrize("algo", [rand.suggest, FAST_TPE, anneal.suggest])
def test_a_search_is_that_of_fmin(algo: Any) -> None:
    expected: list[dict[str, Any]] = []

    def objective(drawn: dict[str, Any]) -> float:
        expected.append({"x": drawn["x"], "lr": drawn["lr"], **drawn["rest"]})
        return loss_of(expected[-1])

    minimise(objective, BY_HAND, algo, 25, seed=3)
    search = optimizer(algo).start(Problem(space(), seed=3, n_trials=25))
    for i in range(25):
        proposal = search.ask()
        assert proposal is not None and proposal.config == expected[i]
        loss = loss_of(dict(proposal.config))
        search.tell(proposal, Outcome(TrialStatus.COMPLETE, loss, i, i + 1.5))


def test_failures_are_lived_with() -> None:
    search: Any = optimizer(FAST_TPE).start(Problem(space(), seed=0))
    for i in range(15):
        proposal = search.ask()
        assert proposal is not None
        failed = i < 3 or i % 2 == 1
        status = TrialStatus.FAILED if failed else TrialStatus.COMPLETE
        loss = math.nan if failed else loss_of(dict(proposal.config))
        search.tell(proposal, Outcome(status, loss, i, i + 1.0))
    statuses = search.trials.statuses()
    assert statuses.count("fail") == 9 and statuses.count("ok") == 6


def test_trials_carry_the_simulated_clock_and_are_read_in_order_of_their_results() -> None:
    search: Any = optimizer("rand").start(Problem(space(), seed=0))
    first, second, third = search.ask(), search.ask(), search.ask()
    assert first is not None and second is not None and third is not None
    search.tell(second, Outcome(TrialStatus.COMPLETE, 0.5, 1.0, 3.25))
    search.tell(first, Outcome(TrialStatus.FAILED, math.nan, 0.0, 4.0))
    assert [d["result"] for d in search.trials.trials][:2] == [
        {"status": "fail"},
        {"status": "ok", "loss": 0.5, "seconds": 2.25},
    ]
    (read,) = curves(search.trials, table="t", method="m")
    assert [(t.seconds, t.finished) for t in read.trials] == [(2.25, 3.25), (4.0, 4.0)]
    assert [t.config["x"] for t in read.trials] == [second.config["x"], first.config["x"]]
    assert read.left_out == ("1 running trial left out.",)


def test_an_algorithm_that_has_nothing_more_ends_the_search() -> None:
    def at_most_two(ids: list[int], domain: Any, trials: Trials, seed: int) -> Any:
        return rand.suggest(ids, domain, trials, seed) if len(trials) < 2 else []

    search = optimizer(at_most_two).start(Problem(space(), seed=0))
    assert [search.ask() is None for _ in range(4)] == [False, False, True, True]


def test_methods_are_named_and_pickled() -> None:
    method, problem = optimizer("tpe.suggest", n_startup_jobs=5), Problem(space(), seed=1)
    assert isinstance(method, Method) and isinstance(method.start(problem), Optimizer)
    assert optimizer(partial(tpe.suggest, gamma=0.5)).name == "hyperopt.tpe"
    assert optimizer(FAST_TPE, name="mine").name == "mine"
    copied = pickle.loads(pickle.dumps(method))
    assert copied.name == method.name == "hyperopt.tpe"
    searches = copied.start(problem), method.start(problem)
    assert [searches[0].ask() for _ in range(3)] == [searches[1].ask() for _ in range(3)]


@pytest.mark.parametrize("name", ["tpe", "hyperopt.tpe.suggest", "hyperopt.tpe:suggest", "atpe"])
def test_algorithms_are_found_by_name(name: str) -> None:
    assert optimizer(name).name in ("hyperopt.tpe", "hyperopt.atpe")


@pytest.mark.parametrize("name", ["tpee", "tpe.sugest", "no.such:thing", "hyperopt.no:x"])
def test_unknown_names_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match=r"No suggest function .*'package\.module:attribute'"):
        optimizer(name)


def test_options_are_checked_before_a_search_starts() -> None:
    with pytest.raises(TypeError, match=r"hyperopt\.tpe does not take .*gama"):
        optimizer("tpe", gama=0.5)
    with pytest.raises(TypeError, match="boasf takes no argument foo; it takes budget_seconds"):
        optimizer("boasf", foo=3)
