"""SMAC's facades begin with what a memory suggests."""

from __future__ import annotations

import json
import logging
import math
import pickle
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from automl_plugins.adapters.smac._private import quiet
from automl_plugins.adapters.smac.initial_design import KNNInitialDesign, MetaInitialDesign
from ConfigSpace import Categorical, Configuration, ConfigurationSpace, EqualsCondition
from known_runs import TASK, loss, model_space, records
from smac import (
    AlgorithmConfigurationFacade,
    BlackBoxFacade,
    HyperparameterOptimizationFacade,
    MultiFidelityFacade,
    RandomFacade,
    RunHistory,
    Scenario,
)
from smac.initial_design import (
    AbstractInitialDesign,
    DefaultInitialDesign,
    LatinHypercubeInitialDesign,
    SobolInitialDesign,
)
from smac_runs import known_target as target

from automl_plugins.meta import Design, MetaDataset, diverse, portfolio
from automl_plugins.meta.store import MetaStore


def budget_target(config: Configuration, seed: int = 0, budget: float = 1.0) -> float:
    return loss(config) + 1.0 / budget


@pytest.fixture
def memory() -> MetaDataset:
    return MetaDataset.from_records(records())


def scenario(tmp_path: Path, n_trials: int = 40, **options: Any) -> Scenario:
    options = {"deterministic": True, "seed": 1} | options
    return Scenario(model_space(), n_trials=n_trials, output_directory=tmp_path, **options)


def evaluated(history: RunHistory) -> list[dict[str, Any]]:
    """Configurations in the order in which they were first evaluated."""
    ids = dict.fromkeys(key.config_id for key in history)
    return told(history.get_config(i) for i in ids)


def told(configs: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Values as builtins; ConfigSpace's differ in the last digit, with the way they are read."""
    return [
        {
            name: value if isinstance(value, str) else float(f"{value:.9g}")
            for name, value in config.items()
        }
        for config in configs
    ]


# --- modes ----------------------------------------------------------------------------------


def test_modes_beside_the_usual_design(tmp_path: Path, memory: MetaDataset) -> None:
    own = scenario(tmp_path)
    usual = told(SobolInitialDesign(own).select_configurations())
    assert len(usual) == 10  # a quarter of 40 trials
    expected = told(diverse(own.configspace, memory, TASK, 4).configurations)
    for mode, rest in (("replace", []), ("part", usual[:6]), ("add", usual)):
        design = MetaInitialDesign(own, memory, meta_features=TASK, n_configs=4, mode=mode)
        assert told(design.select_configurations()) == expected + rest
        assert told(design.suggestions.configurations) == expected
        assert all(s.reason for s in design.suggestions)


def test_runs_of_smac_are_a_memory(tmp_path: Path) -> None:
    facade = RandomFacade(
        scenario(tmp_path, 8, name="first"), target, logging_level=False, overwrite=True
    )
    with quiet():
        facade.optimize()
    losses = [value.cost for value in facade.runhistory.values()]
    folder = facade.scenario.output_directory
    given: list[Any] = [facade, folder, str(folder), [facade], {"first": facade.runhistory}]
    found = [MetaInitialDesign(scenario(tmp_path), memory, n_configs=3) for memory in given]
    assert all(each.meta == found[0].meta for each in found) and len(found[0].suggestions) == 3
    assert all(str(each.suggestions) == str(found[0].suggestions) for each in found)
    assert (
        told(found[0].suggestions.configurations)[0]
        == told(facade.runhistory.get_configs())[int(np.argmin(losses))]
    )
    with pytest.raises(ValueError, match="give the Scenario a name"):
        MetaInitialDesign(scenario(tmp_path), facade.runhistory)  # of which task?
    for wrong in ({"first": 1}, [facade, 1], RandomFacade):
        with pytest.raises(TypeError, match="searches of a framework"):
            MetaInitialDesign(scenario(tmp_path), wrong)


def test_a_misspelt_task_that_is_to_be_left_out_is_noted(
    tmp_path: Path, memory: MetaDataset
) -> None:
    name = memory.tasks[0].name
    design = MetaInitialDesign(scenario(tmp_path), memory, exclude=[f"{name}x"])
    assert any(f"Did you mean '{name}'?" in note for note in design.suggestions.notes)


def test_numbers_that_nobody_gave(tmp_path: Path, memory: MetaDataset) -> None:
    numbers = {
        mode: len(MetaInitialDesign(scenario(tmp_path), memory, mode=mode).suggestions)
        for mode in ("add", "part", "replace")
    }
    assert numbers == {"add": 5, "part": 5, "replace": 10}


def test_the_default_design_can_be_another(tmp_path: Path, memory: MetaDataset) -> None:
    own = scenario(tmp_path)
    cube = LatinHypercubeInitialDesign(own, n_configs=6)
    expected = told(LatinHypercubeInitialDesign(own, n_configs=6).select_configurations())
    design = MetaInitialDesign(own, memory, n_configs=2, default=cube)
    assert told(design.select_configurations())[2:] == expected[:4]
    assert design.meta["default"] == "LatinHypercubeInitialDesign"
    only = MetaInitialDesign(own, memory, default=DefaultInitialDesign(own), mode="part")
    assert len(only.select_configurations()) == 1


def test_suggestions_are_not_cut_unless_told_to(tmp_path: Path, memory: MetaDataset) -> None:
    own = scenario(tmp_path, 12)
    assert len(MetaInitialDesign(own, memory, n_configs=9).select_configurations()) == 9
    cut = MetaInitialDesign(own, memory, n_configs=9, max_ratio=0.25)
    assert told(cut.select_configurations()) == told(cut.suggestions.configurations)[:3]
    assert cut.meta["n_configs"] == 3
    assert len(KNNInitialDesign(scenario(tmp_path, 8), memory, k=25).suggestions) == 8


@pytest.mark.parametrize(
    ("n_trials", "options", "n"),
    [
        (2, {}, 1),
        (20, {}, 5),
        (30, {}, 7),
        (30, {"mode": "part"}, 7),
        (100, {}, 25),
        (500, {}, 25),
        (20, {"max_ratio": 0.5}, 10),
        (20, {"max_ratio": 1.0}, 20),
        (500, {"max_ratio": 1}, 25),
        (20, {"k": 7}, 7),
        (20, {"k": 30}, 20),
        (20, {"k": 7, "max_ratio": 0.25}, 5),
    ],
)
def test_nearest_tasks_take_a_quarter_of_the_trials_unless_told_to_take_more(
    tmp_path: Path, n_trials: int, options: dict[str, Any], n: int
) -> None:
    memory = MetaDataset.from_records(records(30))
    # Each task knows the same ten configurations: the notes say how many were asked for.
    design = KNNInitialDesign(scenario(tmp_path, n_trials), memory, **options)
    asked = [note for note in design.suggestions.notes if "suggestions were asked for" in note]
    n_suggested = min(n, len(design.suggestions))
    assert n_suggested == n or asked == [
        f"{n} suggestions were asked for, there are {n_suggested}."
    ]
    assert design.meta["n_configs"] == (n_suggested if "mode" not in options else 7)


@pytest.mark.parametrize(
    ("kind", "options", "warned"),
    [
        (KNNInitialDesign, {}, False),
        (KNNInitialDesign, {"k": 5}, False),
        (KNNInitialDesign, {"k": 6}, "6 of the 10 trials, more than half.* Lower k, or pass"),
        (KNNInitialDesign, {"k": 6, "mode": "part"}, "6 of the 10 trials"),
        (KNNInitialDesign, {"k": 25}, "10 of the 10 trials"),
        (KNNInitialDesign, {"k": 6, "max_ratio": 1}, False),
        (KNNInitialDesign, {"max_ratio": 0.9}, False),
        (MetaInitialDesign, {}, False),
        (MetaInitialDesign, {"n_configs": 5}, False),
        (MetaInitialDesign, {"n_configs": 6}, "6 of the 10 trials.* Lower n_configs, or pass"),
        (MetaInitialDesign, {"n_configs": 6, "max_ratio": 1.0}, False),
    ],
)
def test_suggestions_that_take_more_than_half_of_the_trials_are_warned_of(
    tmp_path: Path,
    memory: MetaDataset,
    caplog: pytest.LogCaptureFixture,
    kind: Any,
    options: dict[str, Any],
    warned: Any,
) -> None:
    kind(scenario(tmp_path, 10), memory, **options)
    said = [r for r in caplog.records if r.levelno >= logging.WARNING]
    assert [r.name for r in said] == ["smac.automl_plugins"] * bool(warned)
    assert all(re.search(warned, r.message) for r in said)


# --- equal configurations, additional ones --------------------------------------------------


def test_equal_configurations_are_one(tmp_path: Path, memory: MetaDataset) -> None:
    own = scenario(tmp_path)
    plain = MetaInitialDesign(own, memory, n_configs=3, mode="replace")
    again = [
        Configuration(own.configspace, values=values)
        for values in plain.suggestions.configurations
    ]
    other = Configuration(own.configspace, values={"model": "forest", "depth": 10})
    given = [*again, other, other]
    design = MetaInitialDesign(own, memory, n_configs=3, mode="replace", additional_configs=given)
    assert len(given) == 5  # the user's list is left alone
    configs = design.select_configurations()
    assert told(configs) == told([*plain.suggestions.configurations, other])
    history = RunHistory()
    for config in [*configs, *design.select_configurations(), *again]:
        rebuilt = Configuration(own.configspace, vector=config.get_array().copy())
        history.add(rebuilt, cost=0.0, seed=len(history))
    assert len(history.get_configs()) == 4
    assert configs[0].origin == "Initial Design: diverse, suggested by earlier tasks"


def test_the_default_configuration_is_added(tmp_path: Path, memory: MetaDataset) -> None:
    own = scenario(tmp_path, use_default_config=True)
    configs = MetaInitialDesign(own, memory, n_configs=2, mode="replace").select_configurations()
    default = own.configspace.get_default_configuration()
    assert told(configs)[-1] == told([default])[0] and len(configs) == 3
    added = MetaInitialDesign(own, memory, n_configs=2, mode="add").select_configurations()
    assert told(added).count(told([default])[0]) == 1
    knn = KNNInitialDesign(scenario(tmp_path, 4, use_default_config=True), memory, k=25)
    assert len(knn.suggestions) == 3


# --- what it says of itself -----------------------------------------------------------------


def test_meta_is_json_and_tells_the_whole_design(tmp_path: Path, memory: MetaDataset) -> None:
    own = scenario(tmp_path)
    task = TASK | {"ClassEntropy": math.nan}
    design = KNNInitialDesign(own, memory, k=3, meta_features=task, mode="part")
    meta = json.loads(json.dumps(design.meta, allow_nan=False))
    assert meta["name"] == "KNNInitialDesign"
    assert (meta["design"], meta["mode"], meta["seed"]) == ("knn", "part", 1)
    assert meta["meta_features"] == {"NumberOfInstances": 420.0, "ClassEntropy": None}
    assert [s["configuration"] for s in meta["suggestions"]] == design.suggestions.configurations
    # Nothing that another task in the memory changes.
    assert not {"memory", "notes"} & meta.keys()
    assert all(s.keys() == {"configuration"} for s in meta["suggestions"])
    for suggestion in design.suggestions:
        assert 0 <= suggestion.score <= 1 and "the best on t" in suggestion.reason
    everything = [s["configuration"] for s in meta["suggestions"]] + meta["default_configs"]
    assert told(everything) == told(design.select_configurations())


def test_equal_arguments_give_equal_designs(tmp_path: Path, memory: MetaDataset) -> None:
    def made(**options: Any) -> MetaInitialDesign:
        return MetaInitialDesign(scenario(tmp_path), memory, meta_features=TASK, **options)

    first = made()
    assert first.meta == made().meta
    assert first.select_configurations() == made().select_configurations()
    assert first.select_configurations() == first.select_configurations()
    assert first.meta != made(seed=5).meta  # other Sobol points
    assert first.meta != made(design="portfolio").meta
    assert pickle.loads(pickle.dumps(first)).meta == first.meta


def test_memories_and_designs(tmp_path: Path, memory: MetaDataset) -> None:
    own = scenario(tmp_path)
    expected = portfolio(own.configspace, memory, TASK, 3).configurations
    with MetaStore(tmp_path / "memory.db") as store:
        for record in records():
            store.add(record)
        ways: list[tuple[Any, Any]] = [
            (memory, portfolio),
            (memory, "portfolio"),
            (store, portfolio),
            (tmp_path / "memory.db", portfolio),
            (None, portfolio(own.configspace, memory, TASK, 3)),
        ]
        for remembered, way in ways:
            design = MetaInitialDesign(own, remembered, design=way, n_configs=3)
            assert design.suggestions.configurations == expected
            json.dumps(design.meta, allow_nan=False)


def test_data_and_notes(tmp_path: Path, memory: MetaDataset) -> None:
    own = scenario(tmp_path)
    X, y = np.random.default_rng(0).normal(size=(420, 2)), np.arange(420) % 2
    design = MetaInitialDesign(own, memory, X=X, y=y)
    assert design.meta["meta_features"]["NumberOfInstances"] == 420.0
    assert design.suggestions.notes == ()
    assert "count alike" in MetaInitialDesign(own, memory).suggestions.notes[0]
    few = MetaInitialDesign(own, memory, n_configs=20).suggestions.notes
    assert "20 suggestions were asked for, there are 10." in few


ANOTHER = Configuration(model_space(), values={"model": "svm", "C": 77.0})
DEEPER = ConfigurationSpace({"model": ["forest", "svm"], "depth": (1, 20)})
DEEP = Configuration(DEEPER, values={"model": "forest", "depth": 11})


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"mode": "only"}, ValueError, "'replace'"),
        ({"design": "best"}, ValueError, "design must be one of"),
        ({"X": np.zeros((9, 1))}, ValueError, "X without y"),
        ({"n_configs": 0}, ValueError, "an integer >= 1"),
        ({"memory": "nothing"}, ValueError, "no memory 'nothing'"),
        ({"kind": KNNInitialDesign, "k": 2.5}, TypeError, "an integer >= 1"),
        (
            {"kind": KNNInitialDesign, "design": "diverse"},
            TypeError,
            "argument design .design: it is knn",
        ),
        ({"default": []}, TypeError, "default must be an initial design of SMAC"),
        ({"n_trials": 8, "n_configs": 9}, ValueError, "more than the 8 trials of the scenario"),
        ({"n_trials": 8, "n_configs": 7, "mode": "add"}, ValueError, "8 trials.* lower n_configs"),
        (
            {"kind": KNNInitialDesign, "n_trials": 8, "k": 7, "mode": "add"},
            *(ValueError, "more than the 8 trials of the scenario: lower k, take another mode"),
        ),
        (
            {"n_trials": 8, "n_configs": 8, "additional_configs": [ANOTHER]},
            ValueError,
            "1 additional ones are more than the 8 trials",
        ),
        ({"additional_configs": ANOTHER}, TypeError, "a list of configurations, such as"),
        ({"additional_configs": [{"C": 1.0}]}, TypeError, "a list of configurations, such as"),
        ({"max_ratio": "x"}, TypeError, r"max_ratio must be a number in \[0, 1\]"),
        ({"max_ratio": 2.0}, ValueError, r"max_ratio must be a number in \[0, 1\]"),
        (
            {"additional_configs": [DEEP]},
            ValueError,
            "because of depth: depth, Type: UniformInteger",
        ),
    ],
)
def test_bad_input_at_construction(
    tmp_path: Path, memory: MetaDataset, options: dict[str, Any], error: Any, message: str
) -> None:
    given = {"kind": MetaInitialDesign, "memory": memory, "n_trials": 40} | options
    kind, n_trials = given.pop("kind"), given.pop("n_trials")
    with pytest.raises(error, match=message):
        kind(scenario(tmp_path, n_trials), **given)


@pytest.mark.parametrize("kind", [MetaInitialDesign, KNNInitialDesign])
def test_a_space_is_no_scenario(kind: Any, memory: MetaDataset) -> None:
    with pytest.raises(TypeError, match="takes a Scenario first, then the memory; got"):
        kind(model_space(), memory)


def test_an_additional_configuration_that_is_suggested_takes_no_room(
    tmp_path: Path, memory: MetaDataset
) -> None:
    suggested = MetaInitialDesign(scenario(tmp_path, 8), memory, n_configs=8, mode="replace")
    again = [
        Configuration(model_space(), values=dict(suggested.select_configurations()[i]))
        for i in [0]
    ]
    design = MetaInitialDesign(
        scenario(tmp_path, 8), memory, n_configs=8, mode="replace", additional_configs=again
    )
    assert design.select_configurations() == suggested.select_configurations()


def test_another_space(tmp_path: Path, memory: MetaDataset) -> None:
    other = Scenario(ConfigurationSpace({"a": (0.0, 1.0)}), output_directory=tmp_path)
    with pytest.raises(ValueError, match="share no hyperparameter"):
        MetaInitialDesign(other, memory)
    with pytest.raises(ValueError, match="another search space"):
        MetaInitialDesign(scenario(tmp_path), memory, default=SobolInitialDesign(other))


def test_the_default_design_may_have_another_order_of_choices(
    tmp_path: Path, memory: MetaDataset
) -> None:
    other = ConfigurationSpace(seed=0)
    other.add(Categorical("model", ["forest", "svm"], default="svm"))
    other.add(*(model_space()[name] for name in ("C", "depth")))
    for name, model in (("C", "svm"), ("depth", "forest")):
        other.add(EqualsCondition(other[name], other["model"], model))
    run = scenario(tmp_path)
    assert other == run.configspace
    asked = Scenario(other, output_directory=tmp_path, n_trials=40)
    usual, again = (SobolInitialDesign(asked, n_configs=6, seed=0) for _ in range(2))
    made = MetaInitialDesign(run, memory, default=usual, n_configs=2, mode="add")
    found = [config for config in made.select_configurations() if "Sobol" in (config.origin or "")]
    assert len(found) >= 4 and all(config.config_space is run.configspace for config in found)
    drawn = told(again.select_configurations())
    assert all(config in drawn for config in told(found))


# --- facades --------------------------------------------------------------------------------


def begun(facade: Any) -> list[dict[str, Any]]:
    with quiet():
        facade.optimize()
    return evaluated(facade.runhistory)


@pytest.mark.parametrize(
    ("facade", "options"),
    [
        (HyperparameterOptimizationFacade, {}),
        (BlackBoxFacade, {}),
        (RandomFacade, {}),
        (AlgorithmConfigurationFacade, {}),
        (MultiFidelityFacade, {"min_budget": 1, "max_budget": 9}),
    ],
)
def test_every_facade_begins_with_it(
    tmp_path: Path, memory: MetaDataset, facade: Any, options: dict[str, Any]
) -> None:
    own = scenario(tmp_path, 4, **options)
    with quiet():
        usual: AbstractInitialDesign = facade.get_initial_design(own)
        design = MetaInitialDesign(
            own, memory, meta_features=TASK, n_configs=4, mode="replace", default=usual
        )
        function = budget_target if options else target
        smac = facade(own, function, initial_design=design, logging_level=False)
    assert begun(smac) == told(design.suggestions.configurations)
    stored = json.loads(next(tmp_path.rglob("scenario.json")).read_text())
    assert stored["_meta"]["initial_design"] == json.loads(json.dumps(design.meta))


def test_an_interrupted_run_is_continued(tmp_path: Path, memory: MetaDataset) -> None:
    """The name of a run is the hash of ``meta``: the same design finds its own run again."""
    seen: list[Any] = []

    def counted(config: Configuration, seed: int = 0) -> float:
        seen.append(config)
        return loss(config)

    for _ in range(2):
        own = scenario(tmp_path, 4)
        design = MetaInitialDesign(own, memory, meta_features=TASK, n_configs=4, mode="replace")
        with quiet():
            smac = HyperparameterOptimizationFacade(
                own, counted, initial_design=design, logging_level=False
            )
        begun(smac)
    assert len(seen) == 4 and isinstance(design.suggestions, Design)
