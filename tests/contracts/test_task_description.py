"""A task may be described by its meta-features or its data, with the same result everywhere."""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import numpy as np
import optuna
import pytest
from automl_plugins.adapters import hyperopt as in_hyperopt
from automl_plugins.adapters import optuna as in_optuna
from automl_plugins.adapters import smac as in_smac
from ConfigSpace import ConfigurationSpace
from hyperopt import Trials, fmin, hp
from smac import Scenario

from automl_plugins import recipes
from automl_plugins.meta import MetaDataset, TaskRecord, meta_features
from automl_plugins.records.history import History
from automl_plugins.spaces.vector_space import VectorSpace
from automl_plugins.streams import Streams

SPACE = ConfigurationSpace({"x": (0.0, 1.0)})
X, Y = np.random.default_rng(0).normal(size=(40, 2)), np.arange(40) % 2


def memory() -> MetaDataset:
    """On small data a small x is best."""
    x = np.linspace(0.0, 1.0, 9)
    return MetaDataset.from_records(
        TaskRecord(
            f"t{i}",
            [{"x": float(v)} for v in x],
            np.abs(x - i / 5),
            space=SPACE,
            meta_features={"NumberOfInstances": 10.0 * 2**i},
        )
        for i in range(6)
    )


def core(method: str, **options: Any) -> list[float]:
    proposer = getattr(recipes, method)(memory(), **options)
    empty = History.of(np.empty((0, 1)), [])
    return [float(proposer.propose(VectorSpace(SPACE), empty, Streams(0), 0).vector[0])]


def with_optuna(method: str, **options: Any) -> list[float]:
    kind = {"tst": "TSTSampler", "blended": "BlendedSampler", "pmf": "PMFSampler"}[method]
    study = optuna.create_study(sampler=getattr(in_optuna, kind)(memory(), seed=0, **options))
    study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=2)
    return [trial.params["x"] for trial in study.trials]


def with_hyperopt(method: str, **options: Any) -> list[float]:
    algo = getattr(in_hyperopt, method)(memory=memory(), seed=0, **options)
    trials, draws = Trials(), np.random.default_rng(0)
    space = hp.uniform("x", 0, 1)
    fmin(float, space, algo, 2, trials=trials, rstate=draws, show_progressbar=False)
    return [values["x"][0] for values in (t["misc"]["vals"] for t in trials.trials)]


def optuna_design(method: str, **options: Any) -> list[float]:
    study = optuna.create_study()
    design = in_optuna.enqueue_initial_design(
        study, memory=memory(), design=method, search_space=SPACE, n_configs=2, **options
    )
    return [configuration["x"] for configuration in design.configurations]


def hyperopt_design(method: str, **options: Any) -> list[float]:
    space = hp.uniform("x", 0, 1)
    trials = in_hyperopt.initial_trials(
        space, memory=memory(), design=method, n_configs=2, **options
    )
    return [document["misc"]["vals"]["x"][0] for document in trials._dynamic_trials]


def smac_design(method: str, **options: Any) -> list[float]:
    scenario = Scenario(SPACE, n_trials=9)
    made = in_smac.MetaInitialDesign(scenario, memory(), design=method, n_configs=2, **options)
    return [configuration["x"] for configuration in made.select_configurations()[:2]]


DOORS: list[Callable[..., list[float]]] = [core, with_optuna, with_hyperopt]
# A framework hands the options of all methods on alike.
each_door_and_method = pytest.mark.parametrize(
    ("door", "method"),
    [
        *((core, method) for method in ("tst", "blended", "pmf")),
        *((door, "blended") for door in (with_optuna, with_hyperopt)),
        *((design, "knn") for design in (optuna_design, hyperopt_design, smac_design)),
    ],
)


@cache
def described() -> Mapping[str, float]:
    return meta_features(X, Y)


@each_door_and_method
def test_the_data_is_as_good_as_its_meta_features(
    door: Callable[..., list[float]], method: str
) -> None:
    options = {"distance": "meta_features"} if method == "tst" else {}
    found = door(method, meta_features=described(), **options)
    assert door(method, X=X, y=Y, **options) == found
    if method != "tst":
        assert found != door(method)


@each_door_and_method
def test_none_is_a_meta_feature_that_is_not_known(
    door: Callable[..., list[float]], method: str
) -> None:
    options = {"distance": "meta_features"} if method == "tst" else {}
    known: dict[str, Any] = {"NumberOfInstances": 20.0, "other": np.nan}
    found = door(method, meta_features=known, **options)
    assert door(method, meta_features=known | {"other": None}, **options) == found
    known["NumberOfInstances"] = np.nan
    found = door(method, meta_features=known, **options)
    known["NumberOfInstances"] = None
    assert door(method, meta_features=known, **options) == found


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize(
    ("options", "error", "told"),
    [
        ({"X": X}, ValueError, "X without y: meta-features need both"),
        ({"X": X, "y": Y, "meta_features": {}}, ValueError, "X and y or their meta-features"),
        ({"meta_features": [1.0]}, TypeError, "Meta-features must be numbers by name"),
        ({"meta_features": {"n": "many"}}, ValueError, "numbers by name, got n='many'"),
        ({"meta_features": {"n": 10**400}}, ValueError, "meta-feature n is a .* too large for a"),
    ],
)
def test_one_text_for_each_error(
    door: Callable[..., list[float]],
    options: dict[str, Any],
    error: type[Exception],
    told: str,
) -> None:
    with pytest.raises(error, match=told):
        door("blended", **options)
