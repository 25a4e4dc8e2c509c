"""Fails loudly when SMAC changes what config selectors of this package rely on."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest
from automl_plugins.adapters.smac import _private
from ConfigSpace import ConfigurationSpace
from smac import RandomFacade, RunHistory, Scenario
from smac.initial_design import DefaultInitialDesign
from smac.intensifier import abstract_intensifier
from smac.main import config_selector
from smac.model.random_model import RandomModel


def made(folder: Path) -> tuple[Scenario, _private.Selector]:
    space = ConfigurationSpace({"x": (0.0, 1.0)}, seed=0)
    scenario = Scenario(space, deterministic=True, output_directory=folder)
    return scenario, _private.Selector(scenario)


def test_facades_tell_a_selector_what_it_needs(tmp_path: Path) -> None:
    scenario, selector = made(tmp_path)
    with pytest.raises(RuntimeError, match="has not been given to a facade"):
        _ = selector.runhistory
    design = DefaultInitialDesign(scenario)
    with _private.quiet():
        facade = RandomFacade(
            scenario,
            lambda config, seed: 0.0,
            initial_design=design,
            config_selector=selector,
            logging_level=False,
            overwrite=True,
        )
    assert selector.runhistory is facade.runhistory
    assert selector.initial_configurations == design.select_configurations()
    assert selector.scenario is scenario


def test_selectors_are_given_their_parts_by_name() -> None:
    parameters = inspect.signature(config_selector.ConfigSelector._set_components).parameters
    assert {"initial_design", "runhistory", "callbacks", "model"} <= parameters.keys()
    for name in ("_call_callbacks_on_start", "_call_callbacks_on_end"):
        assert callable(getattr(config_selector.ConfigSelector, name))


def test_intensifiers_end_with_their_selector() -> None:
    """A selector that returns stops the search; one that raises would lose running trials."""
    setter = vars(abstract_intensifier.AbstractIntensifier)["config_selector"].fset
    source = inspect.getsource(setter)
    assert "iter(config_selector)" in source


def test_a_selector_accepts_what_it_does_not_need(tmp_path: Path) -> None:
    scenario, selector = made(tmp_path)
    design, history = DefaultInitialDesign(scenario), RunHistory()
    selector._set_components(design, history, random_design=None, something_new=1)
    assert selector.runhistory is history


def test_models_know_their_space(tmp_path: Path) -> None:
    scenario, _ = made(tmp_path)
    assert _private.space_of(RandomModel(scenario.configspace)) is scenario.configspace
