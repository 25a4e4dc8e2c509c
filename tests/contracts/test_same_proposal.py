"""The same history and seed, the same proposal: in Optuna, in SMAC and in Hyperopt."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from automl_plugins.adapters import hyperopt as our_hyperopt
from automl_plugins.adapters import optuna as our_optuna
from ConfigSpace import Configuration, ConfigurationSpace
from golden_proposals import METHODS, Method
from searches import (
    Parameter,
    Run,
    Values,
    as_configspace,
    draw_runs,
    in_hyperopt,
    in_optuna,
    in_smac,
    plain,
)

from automl_plugins import recipes
from automl_plugins.meta import TaskRecord
from automl_plugins.proposers.proposal import Proposer
from automl_plugins.records.history import History
from automl_plugins.records.trial import Status
from automl_plugins.spaces.vector_space import VectorSpace
from automl_plugins.streams import Streams

SEED = 7


def random_space(rng: np.random.Generator) -> list[Parameter]:
    """One to two choices, nested at random, with numbers above and below them; parents first."""
    parameters = [number(rng, "always")]
    outer = Parameter("outer", "choice", high=int(rng.integers(2, 4)))
    parameters.append(outer)
    for option in range(outer.high):
        for i in range(int(rng.integers(0, 3))):
            below = number(rng, f"n{option}{i}")
            parameters.append(replace(below, parent="outer", options=(option,)))
    if outer.high > 2:  # else it is active under all options, which is not a condition to Optuna
        parameters.append(replace(number(rng, "both"), parent="outer", options=(0, 1)))
    if rng.random() < 0.6:
        inner = Parameter("inner", "choice", high=2, parent="outer", options=(0,))
        below = replace(number(rng, "deep"), parent="inner", options=(1,))
        parameters += [inner, below]
    return parameters


def number(rng: np.random.Generator, name: str) -> Parameter:
    kind = str(rng.choice(["float", "log", "int", "log_int"]))
    low = int(rng.integers(-4, 2))
    if kind == "log_int":
        return Parameter(name, kind, abs(low) + 1, abs(low) + 1 + int(rng.integers(2, 500)))
    return Parameter(name, kind, low, low + int(rng.integers(2, 9)))


def random_memory(parameters: list[Parameter], rng: np.random.Generator) -> list[TaskRecord]:
    """Earlier tasks of one space, whose losses depend on similar functions."""
    space = as_configspace(parameters)
    records = []
    for name in ("monday", "tuesday", "wednesday"):
        runs = draw_runs(parameters, 12, rng)
        losses = np.array([run.loss for run in runs])
        records.append(TaskRecord(name, [run.values for run in runs], losses, space=space))
    return records


def in_core(proposer: Proposer, space: ConfigurationSpace, runs: list[Run]) -> Values:
    vectors = VectorSpace(space)
    raw = [Configuration(space, values=run.values).get_array() for run in runs]
    complete = np.array([run.status == "complete" for run in runs])
    finished = np.array([run.status != "running" for run in runs])
    history = History.of(
        vectors.canonical(np.array(raw).reshape(len(runs), vectors.d)),
        np.where(complete, [run.loss for run in runs], np.nan),
        seconds=np.where(finished, [run.seconds for run in runs], np.nan),
        status=[Status[run.status.upper()] for run in runs],
    )
    chosen = proposer.propose(vectors, history, Streams(SEED), len(runs)).vector
    return {k: plain(v) for k, v in dict(Configuration(space, vector=chosen)).items()}


# --- the contract -------------------------------------------------------------------------------

ALWAYS = ("gbqr", "gbqr_per_second", "ei_per_second", "tst")
ONCE: dict[str, Method] = {
    **{
        name: METHODS[name]
        for name in (
            "auto",
            "auto_per_second",
            "auto_with_memory",
            "random_forest",
            "extra_trees",
            "gaussian_process",
            "gbqr_thesis",
            "tst_paper",
        )
    },
    "gbqr_thesis_per_second": Method(
        partial(recipes.gbqr_thesis, per_second=True),
        partial(our_optuna.GBQRSampler.thesis, cost="seconds"),
        partial(our_hyperopt.gbqr, thesis=True, per_second=True),
    ),
    "pmf_paper": Method(
        partial(recipes.pmf, paper=True),
        our_optuna.PMFSampler.paper,
        partial(our_hyperopt.pmf, paper=True),
        transfers=True,
    ),
}


@pytest.mark.parametrize(
    ("method", "case"),
    [
        *((method, 0) for method in ALWAYS),
        *((method, 1) for method in ("gbqr_per_second", "tst")),
        *(pytest.param(method, n, marks=pytest.mark.slow) for method in ALWAYS for n in (2, 3)),
        *((method, 0) for method in ONCE),
    ],
)
def test_all_frameworks_propose_the_same(method: str, case: int, tmp_path: Path) -> None:
    rng = np.random.default_rng([case, 5])
    parameters = random_space(rng)
    # enough trials for Optuna to infer all conditions
    runs = draw_runs(parameters, int(rng.integers(60, 80)), rng, failed=0.1, running=2)
    check(method, parameters, random_memory(parameters, rng), runs, tmp_path)


@pytest.mark.parametrize("case", range(2))
def test_transfer_begins_the_same(case: int, tmp_path: Path) -> None:
    """Before any trial; Optuna has the space from the memory, as the others from the user."""
    rng = np.random.default_rng([case, 6])
    parameters = random_space(rng)
    check("tst", parameters, random_memory(parameters, rng), [], tmp_path)


@pytest.mark.parametrize("among_two", [True, False])
def test_a_memory_and_a_search_may_differ_in_a_choice(among_two: bool, tmp_path: Path) -> None:
    """A search among two algorithms with a memory of one of them, and the reverse."""
    rng = np.random.default_rng(3)
    always, b = Parameter("always", "float", 0, 1), Parameter("b", "float", 0, 1)
    outer = Parameter("outer", "choice", high=2)
    a = Parameter("a", "float", 0, 1, parent="outer", options=(0,))
    one, two = [always, b], [always, outer, a, replace(b, parent="outer", options=(1,))]
    of_two, of_branch, of_one = [], [], []
    for name in ("monday", "tuesday", "wednesday"):
        runs = draw_runs(two, 24, rng)
        rows = [(run.values, run.loss) for run in runs]
        served = [(values, loss) for values, loss in rows if "b" in values]
        bare = [({n: values[n] for n in ("always", "b")}, loss) for values, loss in served]
        of_two.append(record_of(name, two, rows))
        of_branch.append(record_of(name, two, served))
        of_one.append(record_of(name, one, bare))
    parameters = two if among_two else one
    memory, same = (of_one, of_branch) if among_two else (of_two, of_one)
    runs = draw_runs(parameters, 40, rng)
    check("tst", parameters, memory, runs, tmp_path)
    found, expected = (
        in_core(recipes.tst(known), as_configspace(parameters), runs) for known in (memory, same)
    )
    assert found == expected


def record_of(
    name: str, parameters: list[Parameter], rows: list[tuple[Values, float]]
) -> TaskRecord:
    configurations, losses = zip(*rows, strict=True)
    return TaskRecord(name, configurations, np.array(losses), space=as_configspace(parameters))


def test_of_many_options_the_least_served_has_its_turn(tmp_path: Path) -> None:
    """It has every fifth turn, whichever member of the committee proposes, though it is bad."""
    options, least = 16, 11
    parameters = [Parameter("outer", "choice", high=options)]
    parameters += [
        Parameter(f"n{i}", "float", 0, 1, parent="outer", options=(i,)) for i in range(options)
    ]
    runs = [
        Run({"outer": f"outer{i}", f"n{i}": (i + j) / 20}, "complete", j / 10 + (i == least), 1.0)
        for j in range(4)
        for i in range(options)
        if j < 2 or i != least
    ]
    del runs[60:]
    space = as_configspace(parameters)
    found = in_core(recipes.auto(), space, runs)
    assert len(runs) % 5 == 0 and found["outer"] == f"outer{least}"
    assert in_core(recipes.auto(balance=None), space, runs)["outer"] != f"outer{least}"
    check("auto", parameters, [], runs, tmp_path)


def test_the_spaces_are_of_every_kind() -> None:
    spaces = [random_space(np.random.default_rng([case, 5])) for case in range(4)]
    found = {p.kind for space in spaces for p in space}
    assert found == {"choice", "float", "log", "int", "log_int"}
    assert {"both", "inner"} <= {p.name for space in spaces for p in space}


def check(
    method: str,
    parameters: list[Parameter],
    memory: list[TaskRecord],
    runs: list[Run],
    folder: Path,
) -> None:
    made, space = (METHODS | ONCE)[method], as_configspace(parameters)
    earlier = [memory] if made.transfers else []
    named = {"memory": memory} if made.transfers else {}
    expected = in_core(made.core(*earlier), space, runs)
    found = {
        "Optuna": in_optuna(made.optuna(*earlier, seed=SEED), parameters, runs),
        "SMAC": in_smac(made.core(*earlier), space, runs, folder, SEED),
        "Hyperopt": in_hyperopt(made.hyperopt(**named, seed=SEED), parameters, runs),
    }
    for framework, values in found.items():
        assert values.keys() == expected.keys(), framework
        for name, value in values.items():
            if isinstance(value, str):
                assert value == expected[name], framework
            else:
                assert value == pytest.approx(expected[name], rel=1e-9), framework
