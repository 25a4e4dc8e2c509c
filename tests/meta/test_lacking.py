"""What a memory says of recorded hyperparameters that a search does not have."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from ConfigSpace import ConfigurationSpace

from automl_plugins.meta import MetaDataset, TaskRecord, bundled
from automl_plugins.meta.coverage import count_varied, note_coverage
from automl_plugins.meta.memories import TaskMemory
from automl_plugins.meta.recognition import RecognisedMemory
from automl_plugins.meta.warm_start import advise
from automl_plugins.spaces.vector_space import VectorSpace

N = 6
IGNORED = "Hyperparameters of the runs that this search does not have are ignored: "
RENAMED = (
    f"{IGNORED}lr in {2 * N} of {2 * N} recorded runs. The search has learning_rate, which no run"
    " has. If two of these are one by different names, rename it in the runs or in the search;"
    " else nothing need be done."
)
Ranges = Mapping[str, tuple[float, float]]


def record(task: str, ranges: Ranges, **fixed: Any) -> TaskRecord:
    rng = np.random.default_rng(len(task))
    rows = [{n: float(rng.uniform(*ends)) for n, ends in ranges.items()} | fixed for _ in range(N)]
    return TaskRecord(task, rows, rng.random(N))


def records(*names: str, **fixed: Any) -> list[TaskRecord]:
    ranges = dict.fromkeys(names, (0.0, 1.0))
    return [record(task, ranges, **fixed) for task in ("a", "bc")]


def space_of(*names: str) -> ConfigurationSpace:
    return ConfigurationSpace({name: (0.0, 1.0) for name in names})


def warned(log: pytest.LogCaptureFixture) -> list[str]:
    return [r.getMessage() for r in log.records if r.levelno == logging.WARNING]


def noted(memory: Any, space: ConfigurationSpace, bundled: Sequence[str] = ()) -> tuple[str, ...]:
    notes = note_coverage(MetaDataset.from_records(memory, space).coverage, bundled)
    return tuple(note.text for note in notes if note.text.startswith(IGNORED))


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.INFO, logger="automl_plugins")
    return caplog


# --- what is said ---------------------------------------------------------------------------


def test_what_the_search_does_not_have_is_named(log: pytest.LogCaptureFixture) -> None:
    design = advise(space_of("x"), records("x", "lr", "momentum"), k=1).design
    note = f"{IGNORED}lr in 12 and momentum in 12 of 12 recorded runs."
    assert design.notes[-1] == note and not warned(log)
    TaskMemory(records("x", "lr", "momentum")).on(VectorSpace(space_of("x")))
    assert note in log.messages and not warned(log)


def test_what_may_have_another_name_is_a_warning(log: pytest.LogCaptureFixture) -> None:
    space = space_of("x", "learning_rate")
    assert RENAMED in advise(space, records("x", "lr"), k=1).design.notes
    assert warned(log) == [RENAMED]
    log.clear()
    memory = TaskMemory(records("x", "lr"))
    for extra in ("x", "y"):  # said once
        memory.on(VectorSpace(space_of("x", "learning_rate", extra)))
        assert warned(log)[0] == RENAMED
    # A task that has it is enough: nothing is renamed then.
    log.clear()
    known = [*records("x", "lr"), record("def", {"x": (0.0, 1.0), "learning_rate": (0.0, 1.0)})]
    notes = advise(space, known, k=1).design.notes
    assert f"{IGNORED}lr in 12 of 18 recorded runs." in notes and not warned(log)
    # Nobody has named the memory: nobody can have made a mistake.
    TaskMemory(records("x", "lr"), chosen=False).on(VectorSpace(space))
    assert RENAMED in log.messages and not warned(log)


def test_only_what_makes_a_difference_is_named() -> None:
    assert not noted(records("x", optimizer="sgd"), space_of("x"))
    runs: list[dict[str, Any]] = [{"x": 0.1, "model": "a", "depth": 3}, {"x": 0.2, "model": "b"}]
    space = ConfigurationSpace({"x": (0.0, 1.0), "model": ["b", "c"]})
    left_out = [{"x": 0.3, "model": "a", "depth": 4}, {"x": 0.5, "model": "c"}]
    assert not noted([TaskRecord("t", [*runs, *left_out], np.arange(4.0))], space)
    space = ConfigurationSpace({"x": (0.0, 1.0)})
    named = noted([TaskRecord("t", [*runs, *left_out], np.arange(4.0))], space)
    assert named == (f"{IGNORED}model in 4 and depth in 2 of 4 recorded runs.",)


def test_values_that_differ() -> None:
    runs: list[dict[str, Any]]
    runs = [{"a": 1, "b": None, "c": [1], "d": float("nan"), "e": 1.0}, {"a": 1.0, "b": "x"}]
    runs += [{"c": (1,), "d": 2.0, "e": True}]
    assert count_varied(runs, "abcdef") == {"b": 2, "e": 2}


def test_many_names_are_cut_short() -> None:
    names = [f"n{i:02d}" for i in range(13)]
    (note,) = noted(records("x", *names), space_of("x"))
    assert "n09 in 12 and 3 more of 12 recorded runs" in note and "n10" not in note


# --- memories that come with the package ----------------------------------------------------


def test_what_a_bundled_memory_has_more_is_no_news(log: pytest.LogCaptureFixture) -> None:
    space = ConfigurationSpace(
        {"num_leaves": (8, 64), "learning_rate": (0.01, 0.3), "max_bin": (63, 255)}
    )
    for memory in ("lightgbm", bundled("lightgbm"), bundled("lightgbm").records()):
        found = TaskMemory(memory).on(VectorSpace(space))
        assert "subsample" in found.coverage[0].lacking
        assert not any(IGNORED in note for note in advise(space, memory, k=1).design.notes)
    RecognisedMemory().on(VectorSpace(space))
    assert not warned(log) and IGNORED not in log.text
    # Beside it one's own runs are told of as ever.
    own = record("own", {"num_leaves": (8, 64), "learning_rate": (0.01, 0.3), "bins": (63, 255)})
    design = advise(space, [*bundled("lightgbm").records(), own], k=1).design
    (note,) = (note for note in design.notes if note.startswith(IGNORED))
    assert note.startswith(f"{IGNORED}bins in {N} of") and "The search has max_bin" in note


# --- spaces that grow -----------------------------------------------------------------------


def test_a_space_that_grows_is_waited_for(log: pytest.LogCaptureFixture) -> None:
    memory = TaskMemory(records("x", "lr"), growing=True)
    few, all_of_it = VectorSpace(space_of("learning_rate", "x")), VectorSpace(space_of("x", "lr"))
    memory.on(few)
    assert not warned(log) and IGNORED not in log.text
    memory.on(all_of_it)
    memory.settle(all_of_it)
    assert IGNORED not in log.text
    again = TaskMemory(records("x", "lr"), growing=True)
    again.settle(few)
    again.settle(few)
    assert warned(log) == [RENAMED]
    (note,) = (note for note in note_coverage(again.on(few).coverage) if note.is_warning)
    assert note.text == RENAMED
