"""Runs without a space, such as those of data frames: which of their numbers are ranges."""

from __future__ import annotations

import math
from collections.abc import Sequence
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from ConfigSpace import Categorical, ConfigurationSpace, Float, Integer

from automl_plugins.meta import MetaDataset, TaskRecord
from automl_plugins.meta.conversion import conform
from automl_plugins.meta.coverage import Coverage, note_coverage
from automl_plugins.meta.store import MetaStore
from automl_plugins.spaces.choices import categorical
from automl_plugins.spaces.values import to_values

BATCHES = [16, 32, 64, 128]


def space_of(*hyperparameters: Any) -> ConfigurationSpace:
    space = ConfigurationSpace()
    space.add(*hyperparameters, Float("x", (0.0, 1.0)))
    return space


def record(name: str, values: Sequence[Any], task: str = "t", **options: Any) -> TaskRecord:
    rows = [{name: value, "x": 0.5} for value in values]
    return TaskRecord(task, rows, np.arange(float(len(rows))), **options)


def read(
    choice: Any, values: Sequence[Any], known: Any = None
) -> tuple[dict[Any, Any], Coverage, tuple[str, ...]]:
    """Values in the space by recorded one, of runs that are kept; the coverage; the notes."""
    space = space_of(choice)
    runs = record(choice.name, values, space=None if known is None else space_of(known))
    found = MetaDataset.from_records([runs], space)
    kept = zip(found.losses.astype(int), to_values(space, found.vectors), strict=True)
    by_value = {values[i]: run[choice.name] for i, run in kept}
    notes = tuple(note.text for note in note_coverage(found.coverage))
    return by_value, found.coverage[0], notes


# --- ranges ---------------------------------------------------------------------------------


def test_numbers_of_a_frame_go_to_the_nearest_choice(tmp_path: Path) -> None:
    """Also where half of them are choices, as of every 16th number up to 128."""
    text = "batch_size,x,loss\n" + "".join(f"{n},0.5,{n / 128}\n" for n in range(16, 129, 16))
    frame = pd.read_csv(StringIO(text))
    space = space_of(Categorical("batch_size", BATCHES))
    runs = TaskRecord.from_frame(frame, name="t", loss="loss")
    found = MetaDataset.from_records([runs], space)
    got = [run["batch_size"] for run in to_values(space, found.vectors)]
    assert got == [16, 32, 32, 64, 64, 64, 128, 128]
    assert found.coverage[0].rounded == {"batch_size": 4} and not found.coverage[0].dropped
    # As out of a store, with the range that was searched and without.
    known = runs.described(space=space_of(Integer("batch_size", (16, 128))))
    with MetaStore(tmp_path / "runs.db") as store:
        store.add(runs)
        (kept,) = store.records()
    for other in (known, kept):
        again = MetaDataset.from_records([other], space)
        np.testing.assert_array_equal(again.vectors, found.vectors)
        assert again.coverage == found.coverage


def test_a_converted_frame_goes_to_the_nearest_choice() -> None:
    """The runs that need not be fitted decide with the others."""
    runs = record("batch_size", [16, 40, 128, 500])
    space = space_of(Categorical("batch_size", BATCHES))
    with pytest.warns(UserWarning, match="moved to the nearest value batch_size in 1"):
        found = conform(runs, space)
    assert [run["batch_size"] for run in found.configurations] == [16, 32, 128, 128]
    with pytest.warns(UserWarning, match="imputed batch_size in 1"):
        conform(record("batch_size", [16, 32, 128, 500]), space)


def test_numbers_of_a_frame_that_are_mostly_choices_are_labels() -> None:
    got, coverage, _ = read(Categorical("batch_size", BATCHES), [16, 32, 64, 256, 512])
    assert got == {16: 16, 32: 32, 64: 64} and coverage.dropped == {"batch_size": 2}
    # Of a single number nobody knows what is near to it.
    one = categorical("gamma", ["scale", 0.5])
    got, coverage, _ = read(one, [0.5, 0.6, 0.7])
    assert got == {0.5: 0.5} and coverage.dropped == {"gamma": 2}


def test_a_number_that_is_repeated_counts_once() -> None:
    got, _, _ = read(Categorical("batch_size", BATCHES), [32, 32, 32, 32, 40, 100])
    assert got == {32: 32, 40: 32, 100: 128}


def test_all_frames_of_a_memory_decide_together() -> None:
    space = space_of(Categorical("batch_size", BATCHES))
    few = record("batch_size", [16, 32, 64, 40])
    many = record("batch_size", [*range(20, 30)], "other")
    found = MetaDataset.from_records([few, many], space)
    assert [covered.n_kept for covered in found.coverage] == [4, 10]
    assert MetaDataset.from_records([few], space).coverage[0].dropped == {"batch_size": 1}


def test_a_recorded_space_is_not_guessed() -> None:
    labels = categorical("batch_size", [16, 40, 100, 200])
    got, coverage, _ = read(Categorical("batch_size", BATCHES), [16, 40, 100, 200], labels)
    assert got == {16: 16} and coverage.dropped == {"batch_size": 3}
    # Nor is that of other tasks, which have none of their own.
    space = space_of(Categorical("batch_size", BATCHES))
    known = record("batch_size", [*range(20, 30)], "known", space=space_of(labels))
    found = MetaDataset.from_records([known, record("batch_size", [16, 32, 40])], space)
    assert found.coverage[-1].dropped == {"batch_size": 1}


def test_texts_beside_numbers_stay() -> None:
    choice = categorical("gamma", ["scale", 0.01, 1.0])
    got, _, _ = read(choice, ["scale", 0.02, 0.5, 1.0])
    assert got == {"scale": "scale", 0.02: 0.01, 0.5: 0.01, 1.0: 1.0}
    # A text that is no choice is that of something else, and so may be the numbers.
    got, _, _ = read(choice, ["auto", 0.02, 0.5, 1.0])
    assert got == {1.0: 1.0}


# --- no limit -------------------------------------------------------------------------------


def test_what_stands_for_no_limit_is_not_near_to_a_choice() -> None:
    choice = categorical("max_leaf_nodes", [None, 8, 32])
    got, coverage, notes = read(choice, [-1, None, 8, 10, 20, 40])
    assert got == {None: None, 8: 8, 10: 8, 20: 8, 40: 32}
    assert coverage.dropped == {"max_leaf_nodes": 1}
    assert notes[0] == "1 of 6 recorded runs are left out because of max_leaf_nodes in 1."
    # Where the search has it too, it is that choice.
    got, _, _ = read(categorical("max_leaf_nodes", [-1, 8, 32]), [-1, 8, 10, 20, 40])
    assert got[-1] == -1


def test_several_negative_numbers_are_of_a_range() -> None:
    got, _, _ = read(Categorical("shift", [0, 5, 10]), [-3, -1, 2, 7, 12])
    assert got == {-3: 0, -1: 0, 2: 0, 7: 5, 12: 10}


@pytest.mark.parametrize("known", [None, Integer("max_depth", (-1, 12))], ids=["frame", "range"])
@pytest.mark.parametrize("no_limit", [-1, 0])
@pytest.mark.parametrize("meant", [None, "None", -1, 0])
def test_a_depth_without_limit_is_the_choice_that_means_it(
    known: Any, no_limit: int, meant: Any
) -> None:
    choice = categorical("max_depth", [3, 10, meant])
    got, coverage, _ = read(choice, [no_limit, 2, 3, 4, 9], known)
    assert got == {no_limit: meant, 2: 3, 3: 3, 4: 3, 9: 10}
    assert not coverage.imputed


@pytest.mark.parametrize("known", [None, Integer("max_depth", (-1, 12))], ids=["frame", "range"])
def test_a_depth_without_limit_is_deep_among_choices(known: Any) -> None:
    got, coverage, _ = read(Categorical("max_depth", [3, 6, 10]), [-1, 2, 3, 4, 9], known)
    assert got == {-1: 10, 2: 3, 3: 3, 4: 3, 9: 10} and coverage.clipped == {"max_depth": 2}


def test_nothing_is_known_of_a_depth_among_texts() -> None:
    _, coverage, _ = read(
        Categorical("max_depth", ["shallow", "deep"]), [0, 2, 3], Integer("max_depth", (0, 12))
    )
    assert coverage.imputed == {"max_depth": 3}


@pytest.mark.parametrize("known", [None, Integer("n", (0, 12))], ids=["frame", "range"])
def test_no_number_is_near_to_the_choice_of_no_limit(known: Any) -> None:
    got, coverage, _ = read(Categorical("n", [-1, 3, 10]), [0, 1, 3, 5, 12], known)
    assert got == {0: 3, 1: 3, 3: 3, 5: 3, 12: 10}
    assert coverage.clipped == {"n": 3} and coverage.rounded == {"n": 1}
    # Beside a negative number it is one of the range.
    got, _, _ = read(Categorical("n", [-1, 3, 10]), [-2, 0, 1.5, 5], Float("n", (-2.0, 12.0)))
    assert got == {-2: -1, 0: -1, 1.5: 3, 5: 3}


def test_no_depth_is_near_to_a_zero_that_means_no_limit() -> None:
    """As of XGBoost, whose stumps would be its deepest trees."""
    got, _, _ = read(
        Categorical("max_depth", [0, 3, 6]), [0, 1, 3, 5, 12], Integer("max_depth", (0, 12))
    )
    assert got == {0: 0, 1: 3, 3: 3, 5: 6, 12: 6}
    got, _, _ = read(Categorical("n", [0, 3, 6]), [0, 1, 3, 5, 12], Integer("n", (0, 12)))
    assert got == {0: 0, 1: 0, 3: 3, 5: 6, 12: 6}


def test_numbers_far_outside_are_at_their_own_end() -> None:
    got, _, _ = read(Categorical("n", [1, 3, 10]), [2, 3, 7, 1e300, math.inf])
    assert got == {2: 1, 3: 3, 7: 10, 1e300: 10, math.inf: 10}


def test_exponents_are_not_the_numbers_that_were_recorded() -> None:
    """Of ``C = 10 ** trial.suggest_float("C", -3, 3)``, say; -1 alone may stand for no limit."""
    known = Float("C", (0.01, 100.0), log=True)
    values = [0.1, 1.0, 3.0]
    for asked in (Float("C", (-3.0, 5.0)), Integer("C", (-3, 5))):
        got, coverage, notes = read(asked, values, known)
        assert set(got.values()) == {asked.default_value} and coverage.unusable == {"C": 3}
        assert notes[0].startswith("C has values that cannot be used in 3 of 3 recorded runs")
    for same in (Float("C", (-1.0, 5.0)), Float("C", (0.1, 5.0), log=True)):
        assert read(same, values, known)[0] == pytest.approx(
            dict(zip(values, values, strict=True))
        )
    linear = Float("C", (0.01, 100.0))
    assert read(Float("C", (-3.0, 5.0)), values, linear)[1].unusable == {}
