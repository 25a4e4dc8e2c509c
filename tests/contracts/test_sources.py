"""What one framework's search takes as earlier runs, those of the others take, too."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

import numpy as np
import optuna
import pytest
from automl_plugins.adapters import optuna as optuna_samplers
from automl_plugins.adapters import smac as smac_facades
from automl_plugins.adapters.hyperopt import tst
from automl_plugins.adapters.optuna import TSTSampler, enqueue_initial_design, explain
from automl_plugins.adapters.optuna._sources import read_known, read_sources
from automl_plugins.adapters.smac import AutoFacade, MetaInitialDesign
from automl_plugins.adapters.smac._private import quiet
from ConfigSpace import Configuration, ConfigurationSpace
from hyperopt import Trials, hp, rand
from hyperopt_runs import explanation, minimise
from optuna.distributions import FloatDistribution
from optuna.storages import BaseStorage
from optuna.storages.journal import JournalFileBackend
from smac import RandomFacade, Scenario

from automl_plugins import frameworks
from automl_plugins.meta import MetaStore, TaskRecord, bundled
from automl_plugins.meta.memories import TaskMemory
from automl_plugins.meta.sources import names_of, read_memory
from automl_plugins.meta.store import StoreError

SPACE = ConfigurationSpace({"x": (0.0, 1.0)})
XS = np.array([0.1, 0.4, 0.6, 0.9])
Names = tuple[str, ...]


def record(name: str, best: float = 0.3, space: ConfigurationSpace | None = SPACE) -> TaskRecord:
    return TaskRecord(name, [{"x": x} for x in XS.tolist()], abs(XS - best), space=space)


def study(name: str, best: float = 0.2, storage: Any = None) -> optuna.Study:
    made = optuna.create_study(study_name=name, storage=storage)
    trials = optuna_samplers.ADAPTER.write_history(record(name, best)).trials
    made.add_trials(trials)
    return made


def run_history(best: float = 0.5) -> Any:
    return smac_facades.ADAPTER.write_history(record("unnamed", best))


# --- where a memory is given ------------------------------------------------------------------


def scenario(**options: Any) -> Scenario:
    return Scenario(SPACE, n_trials=9, deterministic=True, **options)


def of_selector(memory: Any) -> Names:
    proposer: Any = AutoFacade.get_config_selector(scenario(), memory=memory).proposer
    names: Names = proposer.memory.names
    return names


def of_fmin(memory: Any) -> Names:
    algo: Any = tst(memory=memory)
    names: Names = algo.keywords["memory"].names
    return names


DOORS: dict[str, Callable[[Any], Names]] = {
    "optuna": lambda memory: read_sources(memory).memory.names,
    "optuna design": lambda memory: names_of(read_known(memory)),
    "smac": of_selector,
    "hyperopt": of_fmin,
    "core": lambda memory: names_of(read_memory(memory)),
}

FORMS: dict[str, tuple[Callable[[], Any], Names]] = {
    "run history by name": (lambda: {"a": run_history()}, ("a",)),
    "study by name": (lambda: {"a": study("s")}, ("a",)),
    "record by name": (lambda: {"a": record("r")}, ("a",)),
    "all by name": (
        lambda: {"a": study("s"), "b": run_history(), "c": record("r")},
        ("a", "b", "c"),
    ),
    "study and record": (lambda: [study("s"), record("r")], ("s", "r")),
    "record and study": (lambda: (record("r"), study("s")), ("r", "s")),
    "one by one": (lambda: iter([record("r"), study("s")]), ("r", "s")),
    "records one by one": (lambda: iter([record("r"), record("s", 0.4)]), ("r", "s")),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("door", DOORS)
def test_every_form_is_taken_everywhere(door: str, form: str) -> None:
    make, names = FORMS[form]
    assert DOORS[door](make()) == names


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, tuple[Any, Names]]]:
    """Storages of Optuna and folders of SMAC, with two tasks each, and their names."""
    folder = tmp_path_factory.mktemp("places")
    address = f"sqlite:///{folder / 'studies.db'}"
    journal = optuna.storages.JournalStorage(JournalFileBackend(str(folder / "studies.log")))
    memory = optuna.storages.InMemoryStorage()
    for storage in (address, journal, memory):
        study("s1", 0.1, storage)
        study("s2", 0.8, storage)
        optuna.create_study(study_name="new", storage=storage)  # that of the search itself
        optuna.create_study(study_name="two", storage=storage, directions=["minimize"] * 2)
    for name, best in (("one", 0.1), ("two", 0.9)):
        own = scenario(name=name, output_directory=folder / "smac")
        with quiet():
            RandomFacade(
                own,
                lambda c, seed=0, best=best: abs(c["x"] - best),
                logging_level=False,
                overwrite=True,
            ).optimize()
    found = {
        "address": (address, ("s1", "s2")),
        "journal": (str(folder / "studies.log"), ("s1", "s2")),
        "storage": (memory, ("s1", "s2")),
        "folder": (folder / "smac", ("one", "two")),
        "addresses and folders": (
            [address, folder / "smac" / "one", record("r")],
            ("s1", "s2", "one", "r"),
        ),
        "folders by name": (
            {"a": str(folder / "smac" / "one"), "b": str(folder / "smac" / "two")},
            ("a", "b"),
        ),
    }
    yield {**found, "root": (folder, ())}


@pytest.mark.parametrize(
    "place",
    ["address", "journal", "storage", "folder", "addresses and folders", "folders by name"],
)
@pytest.mark.parametrize("door", DOORS)
def test_every_place_is_read_everywhere(
    door: str, place: str, places: dict[str, tuple[Any, Names]]
) -> None:
    memory, names = places[place]
    assert DOORS[door](memory) == names


def fits(source: type, kind: Any) -> bool:
    """Whether a type checker takes objects of a class for those of a class or protocol."""
    members = [name for name in vars(kind) if not name.startswith("_")]
    if getattr(kind, "_is_protocol", False):
        return all(hasattr(source, name) for name in members)
    return issubclass(source, get_origin(kind) or kind)


@pytest.mark.parametrize("source", [optuna.Study, BaseStorage, AutoFacade, TaskRecord, MetaStore])
@pytest.mark.parametrize(
    "door", [enqueue_initial_design, MetaInitialDesign.__init__, AutoFacade.__init__]
)
def test_one_alone_has_the_type_of_a_memory(door: Callable[..., Any], source: type) -> None:
    kinds = get_args(get_type_hints(door)["memory"])
    assert any(fits(source, kind) for kind in kinds)
    assert not any(fits(int, kind) for kind in kinds)


def test_a_facade_has_one_best_configuration() -> None:
    assert get_type_hints(AutoFacade.optimize)["return"] is Configuration


# --- what is learnt ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("memory", "names"),
    [
        (lambda: {"a": run_history(), "b": run_history(0.2)}, {"a", "b"}),
        (lambda: [study("s"), record("r", 0.25)], {"s", "r"}),
    ],
)
def test_a_sampler_learns_from_them(memory: Callable[[], Any], names: set[str]) -> None:
    search = optuna.create_study(sampler=TSTSampler(memory(), seed=0))
    search.optimize(lambda trial: abs(trial.suggest_float("x", 0, 1) - 0.3), n_trials=2)
    assert set(explain(search.trials[0]).shares or {}) == names
    design = enqueue_initial_design(
        optuna.create_study(), memory=memory(), search_space={"x": FloatDistribution(0, 1)}
    )
    assert len(design) > 1


def test_the_space_of_all_of_them_is_expected() -> None:
    wide = ConfigurationSpace({"x": (0.0, 2.0), "y": (1, 9)})
    runs = [{"x": x, "y": y} for x, y in ((0.1, 2), (1.5, 3))]
    other = TaskRecord("wide", runs, np.array([0.1, 0.2]), space=wide)
    expected = read_sources([study("s"), other]).foresight.distributions
    assert expected["x"] == FloatDistribution(0.0, 2.0)
    assert expected["y"] == optuna.distributions.IntDistribution(1, 9)
    unknown = record("unknown", space=None)
    found = read_sources([study("s"), unknown])
    assert found.foresight.distributions == {"x": FloatDistribution(0.0, 1.0)}
    assert isinstance(found.memory, TaskMemory) and found.memory.names == ("s", "unknown")


def test_a_study_among_records_is_no_source_of_itself() -> None:
    own = study("s")
    memory = read_sources([record("r"), own]).without(own)
    assert isinstance(memory, TaskMemory) and memory.exclude == {"s"}


def uniform_trials(n: int = 6) -> Trials:
    return minimise(lambda x: abs(x - 0.4), hp.uniform("x", 0, 1), rand.suggest, n)


@pytest.mark.parametrize("give", [lambda **memory: tst(**memory, seed=0), partial(partial, tst)])
def test_trials_by_name_may_have_others_along_with_them(give: Callable[..., Any]) -> None:
    memory = {"mine": Trials(), "t": uniform_trials(), "a": study("s"), "b": run_history()}
    trials = minimise(
        lambda x: abs(x - 0.3),
        hp.uniform("x", 0, 1),
        give(memory=memory),
        2,
        trials=memory["mine"],
    )
    assert set(explanation(trials.trials[-1])["shares"]) == {"t", "a", "b"}


# --- what is refused --------------------------------------------------------------------------


@pytest.mark.parametrize("door", [door for door in DOORS if door != "hyperopt"])
def test_trials_whose_space_is_not_known_are_refused_with_what_to_do(door: str) -> None:
    for memory in ({"a": uniform_trials()}, {"a": uniform_trials(), "b": study("s")}):
        with pytest.raises(ValueError, match=r"memory=meta_dataset_from_trials\(\{name:"):
            DOORS[door](memory)


@pytest.mark.parametrize("door", DOORS)
def test_what_is_no_source_is_refused_along_with_others(door: str) -> None:
    for memory in ({"a": 1}, {"a": study("s"), "b": 1}, [study("s"), record("r"), 1], [1]):
        with pytest.raises(TypeError, match=r"(?i)memory.* must be|expected optuna studies"):
            DOORS[door](memory)
    with pytest.raises(ValueError, match="give the Scenario a name"):
        DOORS[door](run_history())


@pytest.mark.parametrize("door", DOORS)
def test_a_study_of_several_objectives_is_refused_where_it_was_picked(
    door: str, tmp_path: Path
) -> None:
    """Whatever else is given: other studies, or a storage, in which one is left out."""
    storage = f"sqlite:///{tmp_path / 'studies.db'}"
    study("one", storage=storage)
    directions: Any = ["minimize", "maximize"]
    two = optuna.create_study(study_name="two", storage=storage, directions=directions)
    two.add_trial(optuna.trial.create_trial(values=[0.0, 1.0]))
    assert DOORS[door](storage) == DOORS[door]([storage]) == ("one",)
    picked = optuna.create_study(directions=directions)
    for memory in ([picked, study("s")], [picked, storage], [storage, picked]):
        with pytest.raises(ValueError, match="2 objectives"):
            DOORS[door](memory)


@pytest.mark.parametrize("door", DOORS)
def test_the_name_of_a_bundled_memory_stands_alone(door: str) -> None:
    told = r"got .*\. In a list .* are a memory: \[\*bundled\('svm'\)\.records\(\)\]"
    for memory in (["svm", study("s")], [record("r"), "svm"], ["svm"]):
        with pytest.raises(TypeError, match=f"(?i){told}"):
            DOORS[door](memory)
    assert {"s", "australian"} <= {*DOORS[door]([*bundled("svm").records(), study("s")])}


def test_a_name_is_given_to_one_task(places: dict[str, tuple[Any, Names]]) -> None:
    for place, told in (("address", "There are 4 studies, but"), ("folder", "2 run histories")):
        for read in DOORS.values():
            with pytest.raises(ValueError, match=told):
                read({"a": places[place][0]})


def test_a_store_is_read_as_a_store_though_optuna_has_made_its_tables_in_it(
    tmp_path: Path,
) -> None:
    address = f"sqlite:///{tmp_path / 'runs.db'}"
    with MetaStore(address) as store:
        for name, best in (("a", 0.1), ("b", 0.4)):
            store.add(record(name, best))
    study("s", storage=address)
    for read in DOORS.values():
        assert read(address) == ("a", "b")


def test_without_their_framework_places_are_refused_in_plain_words(
    places: dict[str, tuple[Any, Names]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(frameworks, "find_spec", lambda name: None)
    before = {path: path.read_bytes() for path in places["root"][0].iterdir() if path.is_file()}
    for place, error, told in (
        ("address", StoreError, "which is read where Optuna is installed"),
        ("journal", StoreError, "journal file of a storage is a memory where Optuna is installed"),
        ("folder", ValueError, "with a framework that is installed"),
    ):
        with pytest.raises(error, match=told):
            read_memory(places[place][0])
    assert {path: path.read_bytes() for path in before} == before


def test_a_design_of_smac_reads_a_storage(places: dict[str, tuple[Any, Names]]) -> None:
    design = MetaInitialDesign(scenario(), places["address"][0], n_configs=2)
    known = [record("s1", 0.1), record("s2", 0.8)]
    assert str(design.suggestions) == str(
        MetaInitialDesign(scenario(), known, n_configs=2).suggestions
    )
