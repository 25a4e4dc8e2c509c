"""Objects of frameworks find their adapter by where they come from."""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import optuna
import pytest
from automl_plugins.adapters import optuna as ours

from automl_plugins import frameworks
from automl_plugins.replay import Search, replay


class OwnStudy(optuna.study.Study):
    pass


class OwnSampler(optuna.samplers.RandomSampler):
    pass


class Foreign:
    pass


def study_of_a_derived_class() -> OwnStudy:
    storage = optuna.storages.InMemoryStorage()
    optuna.create_study(study_name="s", storage=storage)
    return OwnStudy("s", storage)


@pytest.mark.parametrize(
    "thing",
    [
        optuna.samplers.TPESampler,
        optuna.samplers.RandomSampler(seed=0),
        partial(optuna.samplers.TPESampler, multivariate=True),
        partial(partial(optuna.samplers.TPESampler), n_startup_trials=3),
        ours.GBQRSampler,
        ours.GBQRSampler.thesis,
        OwnSampler,
        OwnSampler(),
        OwnStudy,
        study_of_a_derived_class(),
        optuna.create_study,
        optuna.create_study(),
    ],
)
def test_what_comes_from_optuna_belongs_to_its_adapter(thing: Any) -> None:
    assert frameworks.adapter_of(thing) is ours.ADAPTER


@pytest.mark.parametrize(
    "thing",
    [None, 3, "optuna", Foreign, Foreign(), np.zeros(2), len, lambda: 0, SimpleNamespace(a=1)],
)
def test_other_objects_belong_to_none(thing: Any) -> None:
    assert frameworks.adapter_of(thing) is None


def test_the_adapter_answers() -> None:
    method = frameworks.ask_adapter("optimizer", optuna.samplers.RandomSampler)
    assert method.name == "RandomSampler"
    study = optuna.create_study()
    study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=2)
    (search,) = frameworks.searches_of(study, table="t", method="m", seed=4)
    assert isinstance(search, Search)
    assert (search.table, search.method, search.seed, len(search.trials)) == ("t", "m", 4, 2)


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (
            partial(frameworks.ask_adapter, "optimizer"),
            r"pass optimizer\(\.\.\.\) of an adapter, an object with",
        ),
        (frameworks.searches_of, r"searches of a Foreign: .*optuna"),
        (partial(frameworks.ask_adapter, "arm_report"), "arms of a Foreign: pass an ArmReport"),
        (
            partial(frameworks.ask_adapter, "source_shares"),
            "sources of a Foreign: pass an Optuna study",
        ),
        (
            partial(frameworks.ask_adapter, "member_trust"),
            "trust of a Foreign: pass an Optuna study, Hyperopt trials",
        ),
        (frameworks.reader_of, "Cannot read a Foreign as a history"),
        (lambda thing: replay(thing, [], budget=1), "Cannot replay"),
    ],
)
def test_what_no_adapter_knows_is_a_type_error_that_says_what_to_pass(
    ask: Any, message: str
) -> None:
    with pytest.raises(TypeError, match=message):
        ask(Foreign())


def test_an_unknown_adapter_is_refused() -> None:
    with pytest.raises(ValueError, match=r"no adapter 'nope'; there are .*optuna"):
        frameworks.load_adapter("nope")
    assert frameworks.load_adapter("optuna") is ours.ADAPTER


def test_a_storage_address_is_read_by_optuna() -> None:
    assert frameworks.owner_of("sqlite:///x.db") is ours.ADAPTER
    assert frameworks.owner_of("no/such/thing") is None
