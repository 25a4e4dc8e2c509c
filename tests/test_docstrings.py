"""Docstrings: every argument is described, every public class has an example that runs."""

from __future__ import annotations

import importlib
import inspect
import math
import re
import textwrap
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, get_type_hints
from unittest.mock import MagicMock

import hyperopt
import numpy as np
import optuna
import pytest
from automl_plugins.adapters.optuna import SurrogateSampler, optimizer
from automl_plugins.adapters.smac import GBQRFacade
from ConfigSpace import ConfigurationSpace
from sklearn.datasets import load_wine
from sklearn.neighbors import KNeighborsRegressor
from smac import HyperparameterOptimizationFacade, Scenario
from smac.runhistory import TrialInfo

from automl_plugins import meta, recipes, replay, surrogates
from automl_plugins._arguments import read_arguments
from automl_plugins.bandits import UCB1, ArmRecords
from automl_plugins.meta import MetaDataset, TaskRecord, bundled
from automl_plugins.meta.factorization import MatrixFactorization, Recommender, complementary
from automl_plugins.replay import Proposal, Table
from automl_plugins.streams import Streams
from automl_plugins.surrogates import RandomForest

PACKAGES = [
    "automl_plugins.adapters.hyperopt",
    "automl_plugins.adapters.optuna",
    "automl_plugins.adapters.smac",
    "automl_plugins.bandits",
    "automl_plugins.meta",
    "automl_plugins.meta.designs",
    "automl_plugins.meta.factorization",
    "automl_plugins.meta.store",
    "automl_plugins.replay",
    "automl_plugins.statistics",
    "automl_plugins.surrogates",
    "automl_plugins.visualization",
]
_TRIALS = re.compile(r"\b(n_trials|max_evals)=\d+")
_SECONDS = re.compile(r"\b(timeout|seconds|budget_seconds)=\d+")
_FEW = 12  # trials, whatever an example says: more than an initial design has


def public() -> dict[str, tuple[str, Any]]:
    """Package and object of every public name, each object once."""
    found: dict[int, tuple[str, str, Any]] = {}
    for package in PACKAGES:
        module = importlib.import_module(package)
        for name in module.__all__:
            value = getattr(module, name)
            if callable(value):
                found.setdefault(id(value), (f"{package}.{name}", package, value))
    return {name: (package, value) for name, package, value in found.values()}


def example(value: Any) -> str:
    """The code of an object's example, its budgets small; "" without an example."""
    _, _, rest = (inspect.getdoc(value) or "").partition("Example::\n\n")
    lines = []
    for line in rest.splitlines():
        if line.strip() and not line.startswith("    "):
            break
        lines.append(line)
    code = textwrap.dedent("\n".join(lines))
    return _TRIALS.sub(rf"\1={_FEW}", _SECONDS.sub(r"\1=1", code))


def options_of(value: Any) -> Mapping[str, inspect.Parameter]:
    """The arguments that may be given by name; none of what is no function or class."""
    try:
        return inspect.signature(value).parameters
    except ValueError:
        return {}


PUBLIC = public()
ADAPTED = [name for name in PUBLIC if name.startswith("automl_plugins.adapters")]


@pytest.mark.parametrize("name", [n for n, (_, v) in PUBLIC.items() if inspect.isclass(v)])
def test_every_public_class_has_an_example(name: str) -> None:
    value = PUBLIC[name][1]
    assert example(value)
    inherited = [base.__doc__ for base in value.__mro__[1:]]
    assert value.__doc__ not in inherited


@pytest.mark.parametrize("name", ADAPTED)
def test_every_argument_is_described(name: str) -> None:
    value = PUBLIC[name][1]
    described = read_arguments(value)
    parameters = inspect.signature(value).parameters.values()
    named = [p for p in parameters if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)]
    silent = [p.name for p in named if p.kind != p.POSITIONAL_ONLY and not described.get(p.name)]
    assert not silent


LEARNING = [n for n in ADAPTED if "memory" in options_of(PUBLIC[n][1])]


@pytest.mark.parametrize("name", LEARNING)
def test_what_a_memory_may_be_is_said_where_it_is_given(name: str) -> None:
    value = PUBLIC[name][1]
    described = read_arguments(value)["memory"]
    assert "MetaStore" in described and "bundled" in described and "records" in described
    if options_of(value)["memory"].default == "auto":
        assert '``"auto"`` takes' in described and "None for" in described


#: What hints name that is imported for type checkers only, and why.
FOR_CHECKERS = {
    "pd": "pandas is an optional library",
    "go": "plotly is an optional library",
    "MetaLearner": "most searches have no meta-learner, and LightGBM is slow",
    "MatrixFactorization": "most searches do not factorise, and it loads much",
    "DistanceAware": "scikit-learn is slow, and a recipe needs it once it makes a model",
    "Distance": "scikit-learn is slow, and a recipe needs it once it makes a model",
}


@pytest.mark.parametrize("name", PUBLIC)
def test_type_hints_can_be_read(name: str) -> None:
    value = PUBLIC[name][1]
    members = [f for n, f in inspect.getmembers(value) if not n.startswith("_")]
    stand_ins = {name: MagicMock() for name in FOR_CHECKERS}
    for owner in [value, *(members if inspect.isclass(value) else ())]:
        if inspect.isclass(owner) or inspect.isfunction(owner) or inspect.ismethod(owner):
            get_type_hints(owner, localns=stand_ins)


# --- what the user of an example has ---------------------------------------------------------


@cache
def of_core() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    space = ConfigurationSpace({"C": (0.01, 1.0), "depth": (1, 9)}, seed=0)
    configs = [dict(c) for c in space.sample_configuration(12)]
    records = [
        TaskRecord(name, configs, rng.random(12), space=space, meta_features={"size": size})
        for name, size in (("iris", 150.0), ("wine", 178.0), ("digits", 1797.0))
    ]
    memory = MetaDataset.from_records(records, space)
    tables = [Table(r.name, space, configs, r.losses, seconds=1.0) for r in records]
    methods = {
        "random": optimizer(optuna.samplers.RandomSampler()),
        "tpe": optimizer(optuna.samplers.TPESampler()),
    }
    given = of_hyperopt()
    X, Y = rng.random((20, 3)), rng.random((10, 6))
    model = MatrixFactorization(2, epochs=1).fit(Y)
    start = complementary(Y, Y.mean(axis=1), 3)
    return {
        **{name: getattr(p, name) for p in (meta, replay, surrogates) for name in p.__all__},
        **{"np": np, "math": math, "KNeighborsRegressor": KNeighborsRegressor},
        **{"SurrogateSampler": SurrogateSampler, "RandomSampler": optuna.samplers.RandomSampler},
        **{"optimizer": optimizer, "Streams": Streams, "UniformSearch": UniformSearch},
        **{"space": space, "other_space": ConfigurationSpace({"x": (0.0, 1.0)})},
        **{"X": X, "y": X[:, 0], "X_new": rng.random((5, 3)), "seconds": 1.0 + X[:, 1]},
        **{
            "succeeded": X[:, 0] < 0.8,
            "values": X - 0.8,
            "task_records": records,
            "memory": memory,
        },
        **{"features": memory.vector_space.features(memory.vectors[:12])},
        **{"losses": memory.losses[:12], "scores": rng.random((8, 3)), "Y": Y, "model": model},
        **{"recommender": Recommender(model, Y, start, n_start=3)},
        **{"complementary": complementary, "allowed": np.ones(10, dtype=bool)},
        **{"table": tables[0], "frame": replay.replay(methods, tables, budget=10)},
        **{"records": ArmRecords.of([0, 1, 0], [0.4, 0.7, math.nan]), "rounds": ()},
        **{"sample": lambda i: i / 100, "evaluate": lambda x, resource: x / resource},
        **{"trials": given["trials_1"], "pyll_space": given["space"]},
    }


class UniformSearch:
    """What the example of ``Optimizer`` defines, for the examples beside it."""

    def __init__(self, space: ConfigurationSpace) -> None:
        self.space = space

    def ask(self) -> Proposal:
        return Proposal(dict(self.space.sample_configuration()))

    def tell(self, proposal: Proposal, outcome: Any) -> None:
        pass


def of_optuna() -> dict[str, Any]:
    def objective(trial: optuna.Trial) -> float:
        kind = trial.suggest_categorical("algorithm", ["boosting", "forest"])
        trial.suggest_categorical("classifier", ["a", "b"])
        trial.set_user_attr("seconds", 1.0)
        trial.suggest_float("C", 1e-2, 1e2, log=True)
        leaves = trial.suggest_int("num_leaves", 4, 255, log=True)
        return leaves * trial.suggest_float("learning_rate", 0.01, 0.5, log=True) + len(kind)

    storage = optuna.storages.InMemoryStorage()
    for name in ("one", "two"):
        quiet = optuna.samplers.RandomSampler(seed=0)
        earlier = optuna.create_study(study_name=name, storage=storage, sampler=quiet)
        earlier.optimize(objective, n_trials=6)
    X, y = load_wine(return_X_y=True)
    return {
        **{"optuna": optuna, "objective": objective, "storage": storage, "X": X, "y": y},
        **{"names": ["one", "two"], "study": optuna.create_study()},
        "HyperbandPruner": optuna.pruners.HyperbandPruner,
    }


def of_hyperopt() -> dict[str, Any]:
    hp, quiet = hyperopt.hp, {"show_progressbar": False, "verbose": False}
    space = hp.choice("kind", [{"C": hp.loguniform("C", -3, 3)}, {"gamma": hp.uniform("g", 0, 1)}])

    def objective(config: dict[str, Any]) -> float:
        return float(sum(config.values()))

    def fmin(fn: Any, space: Any, **options: Any) -> Any:
        options = {"rstate": np.random.default_rng(0), "max_evals": _FEW} | options
        return hyperopt.fmin(fn, space, **quiet, **options)

    earlier = [hyperopt.Trials(), hyperopt.Trials()]
    for trials in earlier:
        fmin(objective, space, algo=hyperopt.rand.suggest, trials=trials)
    X, y = load_wine(return_X_y=True)
    return {
        **{"fmin": fmin, "hp": hp, "tpe": hyperopt.tpe, "space": space, "objective": objective},
        **{"trials": hyperopt.Trials(), "trials_1": earlier[0], "trials_2": earlier[1]},
        **{"X": X, "y": y, "UCB1": UCB1, "bundled": bundled},
        "ConfigurationSpace": ConfigurationSpace,
    }


def of_smac() -> dict[str, Any]:
    space = ConfigurationSpace({"num_leaves": (4, 255), "learning_rate": (0.01, 0.5)})
    scenario = Scenario(
        space, deterministic=True, n_trials=4, output_directory=Path("smac"), seed=1
    )
    X, y = load_wine(return_X_y=True)
    other = Scenario(space, deterministic=True, n_trials=4, output_directory=Path("other"))
    facade = HyperparameterOptimizationFacade(other, lambda config, seed=0: 0.0)
    record = TaskRecord(
        "iris", [{"num_leaves": 9, "learning_rate": 0.1}], np.array([0.3]), space=space
    )
    return {
        **{"space": space, "facade": facade, "record": record, "Facade": type(facade)},
        **{"bundled": bundled, "tst": recipes.tst, "RandomForest": RandomForest},
        **{"TrialInfo": TrialInfo, "GBQRFacade": GBQRFacade},
        **{"scenario": scenario, "X": X, "y": y, "Scenario": Scenario},
        "train": lambda config, seed=0: config["num_leaves"] * config["learning_rate"],
        "HyperparameterOptimizationFacade": HyperparameterOptimizationFacade,
    }


GIVEN: dict[str, Callable[[], dict[str, Any]]] = {
    "automl_plugins.adapters.hyperopt": of_hyperopt,
    "automl_plugins.adapters.optuna": of_optuna,
    "automl_plugins.adapters.smac": of_smac,
}


@pytest.mark.parametrize("name", [n for n, (_, v) in PUBLIC.items() if example(v)])
def test_the_example_runs(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package, value = PUBLIC[name]
    module = importlib.import_module(package)
    names = {n: getattr(module, n) for n in module.__all__}
    monkeypatch.chdir(tmp_path)
    Path("README.md").write_text("# no store\n")
    given = GIVEN.get(package, of_core)()
    exec(compile(example(value), name, "exec"), names | given)
