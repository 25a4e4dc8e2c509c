"""Choices that ConfigSpace allows, searched in SMAC and read back as they were written."""

from pathlib import Path
from typing import Any

from automl_plugins.adapters.smac import ADAPTER, GBQRFacade
from ConfigSpace import Categorical, Configuration, ConfigurationSpace, Float, InCondition
from smac import Scenario

read_task = ADAPTER.read_task

LISTS: dict[str, list[Any]] = {
    "bools": [True, False],
    "numbers and a bool": [1.5, True],  # an array of floats for ConfigSpace
    "integers and floats": [1, 2.5],
    "None": ["auto", None, 0.5],
    "text of values": ["True", True, "None", None],
    "tuples": [(64, 32), (64,)],
}


def target(config: Configuration, seed: int = 0) -> float:
    return float(config["x"]) + sum(len(str(config[name])) for name in LISTS)


def test_choices_are_searched_and_read_as_they_are(tmp_path: Path) -> None:
    space = ConfigurationSpace(seed=0)
    space.add([Categorical(name, choices) for name, choices in LISTS.items()])
    space.add(Float("x", (0.0, 1.0)), Float("y", (0.0, 1.0)))
    space.add(InCondition(space["y"], space["numbers and a bool"], [True]))
    scenario = Scenario(
        space, name="t", n_trials=14, deterministic=True, output_directory=tmp_path, seed=1
    )
    facade = GBQRFacade(scenario, target, logging_level=False)
    facade.optimize()
    record = read_task(facade)
    assert len(record) == 14
    for name, choices in LISTS.items():
        found = [values[name] for values in record.configurations]
        assert {repr(value) for value in found} == {repr(choice) for choice in choices}, name
    for values in record.configurations:
        assert ("y" in values) == (values["numbers and a bool"] is True)
